//! What a part is drawn from.

use crate::backend::SharedBackend;
use crate::format::Zone;
use crate::i18n::{Language, Messages, Text};
use leptos::prelude::*;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is asked for, and the server that knows the answer.
pub struct Asked {
    /// The server.
    pub backend: SharedBackend,
    /// Path of the page, e.g. `/workers/3`.
    pub path: String,
    query: Vec<(String, String)>,
    language: Language,
    /// In which times are written.
    pub zone: Zone,
    /// The server's clock, in milliseconds since 1970.
    pub now_ms: i64,
}

/// The farthest from UTC that a zone can be.
const ZONE_MAX_MINUTES: i32 = 24 * 60;

impl Asked {
    /// Of a page's path and query. The address may come from anybody who is logged in, so it is taken as it comes.
    /// `zone_minutes` is how far the reader's zone is ahead of UTC, where that is known.
    pub fn new(backend: SharedBackend, address: &str, language: Language, zone_minutes: Option<i32>) -> Self {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let zone = zone_minutes.filter(|minutes| minutes.abs() <= ZONE_MAX_MINUTES).map_or(Zone::Utc, Zone::Ahead);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
        Self { backend, path: path.to_owned(), query, language, zone, now_ms }
    }

    /// A value of the query; the last when there are several.
    pub fn value(&self, key: &str) -> Option<String> {
        self.query.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    }

    /// The reader's language.
    pub fn language(&self) -> Language {
        self.language
    }

    /// The texts in the reader's language.
    pub fn messages(&self) -> &'static Messages {
        self.language.messages()
    }

    /// The HTML of a view, in the reader's language and with everything in it escaped. It waits for nothing: what it shows
    /// has been looked up before.
    pub fn render(&self, view: impl FnOnce() -> AnyView) -> String {
        html_of(self.language, view)
    }
}

/// The HTML of a view, which is made here, because what it is made of belongs to an owner that ends with this.
pub fn html_of(language: Language, view: impl FnOnce() -> AnyView) -> String {
    let owner = Owner::new();
    let html = owner.with(|| {
        provide_context(Text::new(language));
        view().to_html()
    });
    owner.cleanup();
    // Marks between texts, for a browser that takes a view over. Nobody takes this one over, and in texts and attributes
    // the signs are escaped.
    html.replace("<!>", "")
}
