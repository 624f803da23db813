//! Language and theme: chosen by the user, kept in cookies, known to the server before it renders a page.

#![allow(clippy::unused_async, reason = "server functions are asynchronous whether or not they wait")]

use crate::browser;
use crate::fleet::Layout;
use crate::i18n::{Language, Text};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// Cookie that keeps the language.
pub const LANGUAGE_COOKIE: &str = "gpustack_language";
/// Cookie that keeps the theme.
pub const THEME_COOKIE: &str = "gpustack_theme";
/// Cookie that keeps whether the workers are shown as cards or as a table.
pub const LAYOUT_COOKIE: &str = "gpustack_layout";

/// Light or dark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Theme {
    /// As the operating system says.
    #[default]
    System,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// All of them, in the order of the theme menu.
    pub const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    /// The value of `<html data-theme>` and of the cookie.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// Reads [`Theme::tag`].
    pub fn from_tag(tag: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.tag() == tag)
    }
}

/// What the document is rendered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preferences {
    /// Of every text.
    pub language: Language,
    /// Of every colour.
    pub theme: Theme,
    /// Of the list of workers; absent until the user has chosen one.
    pub layout: Option<Layout>,
}

impl Preferences {
    /// What the request asks for, on the server; what the server decided, in the browser. Both are the same choice,
    /// so the browser takes over exactly what the server rendered.
    pub fn current() -> Self {
        #[cfg(feature = "ssr")]
        if let Some(parts) = use_context::<http::request::Parts>() {
            return Self::of_request(&parts.headers);
        }
        Self {
            language: browser::html_attribute("lang").and_then(|tag| Language::from_tag(&tag)).unwrap_or(Language::En),
            theme: browser::html_attribute("data-theme").and_then(|tag| Theme::from_tag(&tag)).unwrap_or_default(),
            layout: browser::html_attribute("data-layout").and_then(|tag| Layout::from_tag(&tag)),
        }
    }

    /// Cookies first, then `Accept-Language`.
    #[cfg(feature = "ssr")]
    pub fn of_request(headers: &http::HeaderMap) -> Self {
        let accepted = headers.get(http::header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or("");
        Self {
            language: request_cookie(headers, LANGUAGE_COOKIE)
                .and_then(Language::from_tag)
                .unwrap_or_else(|| Language::from_accept_language(accepted)),
            theme: request_cookie(headers, THEME_COOKIE).and_then(Theme::from_tag).unwrap_or_default(),
            layout: request_cookie(headers, LAYOUT_COOKIE).and_then(Layout::from_tag),
        }
    }
}

/// A cookie of a request.
#[cfg(feature = "ssr")]
pub fn request_cookie<'a>(headers: &'a http::HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(http::header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.split_once('='))
        .find_map(|(key, value)| (key.trim() == name).then_some(value.trim()))
}

/// A cookie that keeps a choice for a year. Scripts may read it: it holds no secret.
pub fn cookie(name: &str, value: &str) -> String {
    format!("{name}={value}; Path=/; Max-Age=31536000; SameSite=Lax")
}

/// The theme, as a signal.
#[derive(Clone, Copy, Debug)]
pub struct ThemeChoice(pub RwSignal<Theme>);

/// The layout that the user chose for the list of workers, as a signal.
#[derive(Clone, Copy, Debug)]
pub struct LayoutChoice(pub RwSignal<Option<Layout>>);

/// The layout that the user chose.
pub fn use_layout() -> RwSignal<Option<Layout>> {
    use_context::<LayoutChoice>().map_or_else(|| RwSignal::new(None), |choice| choice.0)
}

/// Changes the layout for later visits.
pub fn choose_layout(choice: RwSignal<Option<Layout>>, layout: Layout) {
    choice.set(Some(layout));
    browser::set_html_attribute("data-layout", layout.tag());
    browser::set_cookie(LAYOUT_COOKIE, layout.tag());
}

/// Changes the language at once, and for later visits.
pub fn choose_language(text: Text, language: Language) {
    text.set(language);
    browser::set_html_attribute("lang", language.tag());
    browser::set_cookie(LANGUAGE_COOKIE, language.tag());
}

/// Changes the theme at once, and for later visits.
pub fn choose_theme(choice: ThemeChoice, theme: Theme) {
    choice.0.set(theme);
    browser::set_html_attribute("data-theme", theme.tag());
    browser::set_cookie(THEME_COOKIE, theme.tag());
}

/// The form behind the language menu where there is no JavaScript; it leads back to the page it was sent from.
#[server(endpoint = "set_language")]
pub async fn set_language(
    /// [`Language::tag`].
    language: String,
) -> Result<(), ServerFnError> {
    if let Some(language) = Language::from_tag(&language) {
        crate::session::send_cookie(&cookie(LANGUAGE_COOKIE, language.tag()));
    }
    Ok(())
}

/// The form behind the theme menu where there is no JavaScript; it leads back to the page it was sent from.
#[server(endpoint = "set_theme")]
pub async fn set_theme(
    /// [`Theme::tag`].
    theme: String,
) -> Result<(), ServerFnError> {
    if let Some(theme) = Theme::from_tag(&theme) {
        crate::session::send_cookie(&cookie(THEME_COOKIE, theme.tag()));
    }
    Ok(())
}

#[cfg(test)]
#[cfg(feature = "ssr")]
mod tests {
    use super::*;

    fn headers(cookie: &str, accept_language: &str) -> http::HeaderMap {
        let mut headers = http::HeaderMap::new();
        headers.insert(http::header::COOKIE, cookie.parse().unwrap());
        headers.insert(http::header::ACCEPT_LANGUAGE, accept_language.parse().unwrap());
        headers
    }

    #[test]
    fn cookies_win_over_accept_language() {
        let chosen = Preferences::of_request(&headers("a=b; gpustack_language=en; gpustack_theme=dark", "zh-CN"));
        assert_eq!(chosen, Preferences { language: Language::En, theme: Theme::Dark, layout: None });
    }

    #[test]
    fn without_cookies_the_browser_decides() {
        let chosen = Preferences::of_request(&headers("gpustack_theme=pink; gpustack_layout=table", "zh-CN,en;q=0.5"));
        assert_eq!(chosen, Preferences { language: Language::Zh, theme: Theme::System, layout: Some(Layout::Table) });
    }
}
