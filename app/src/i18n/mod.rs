//! Every text of the UI, in every language it speaks.
//!
//! One struct of messages for each part of the UI, one constant of it for each language: a message that a language
//! lacks does not compile. A message with parameters is a function, so that no sentence is glued from parts.

pub mod add_worker;
#[cfg(feature = "ssr")]
pub mod checks;
pub mod copy;
#[cfg(feature = "ssr")]
pub mod devices;
pub mod frame;
pub mod login;
pub mod reasons;
pub mod settings;
#[cfg(feature = "ssr")]
pub mod system_words;
#[cfg(feature = "ssr")]
pub mod tunnel_import;
#[cfg(feature = "ssr")]
pub mod tunnel_plan;
#[cfg(feature = "ssr")]
pub mod tunnel_status;
#[cfg(feature = "ssr")]
pub mod tunnels;
pub mod words;
pub mod worker;
#[cfg(feature = "ssr")]
pub mod worker_facts;
pub mod workers;

pub use reasons::{ReasonContext, ReasonText, reason_text};

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

/// A language that the UI speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Language {
    /// English.
    En,
    /// Simplified Chinese.
    Zh,
}

impl Language {
    /// All of them, in the order of the language menu.
    pub const ALL: [Self; 2] = [Self::Zh, Self::En];

    /// The value of `<html lang>` and of the cookie (BCP 47).
    pub const fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh-CN",
        }
    }

    /// The language's name in itself.
    pub const fn own_name(self) -> &'static str {
        match self {
            Self::En => "English",
            Self::Zh => "中文",
        }
    }

    /// Reads a language tag; any Chinese is [`Language::Zh`], any English [`Language::En`].
    pub fn from_tag(tag: &str) -> Option<Self> {
        let primary = tag.trim().split(['-', '_']).next()?;
        match primary.to_ascii_lowercase().as_str() {
            "zh" => Some(Self::Zh),
            "en" => Some(Self::En),
            _ => None,
        }
    }

    /// The best language for an `Accept-Language` header (RFC 9110, section 12.5.4), English when none fits.
    pub fn from_accept_language(header: &str) -> Self {
        let mut best: Option<(f32, Self)> = None;
        for item in header.split(',') {
            let mut parts = item.split(';');
            let Some(language) = parts.next().and_then(Self::from_tag) else { continue };
            let quality = parts
                .find_map(|part| part.trim().strip_prefix("q="))
                .map_or(1.0, |value| value.trim().parse::<f32>().unwrap_or(0.0));
            if quality > 0.0 && best.is_none_or(|(best_quality, _)| quality > best_quality) {
                best = Some((quality, language));
            }
        }
        best.map_or(Self::En, |(_, language)| language)
    }

    /// All texts in this language.
    pub const fn messages(self) -> &'static Messages {
        match self {
            Self::En => &Messages {
                language: Self::En,
                words: words::EN,
                workers: workers::EN,
                worker: worker::EN,
                frame: frame::EN,
                login: login::EN,
                settings: settings::EN,
                add_worker: add_worker::EN,
                copy: copy::EN,
                #[cfg(feature = "ssr")]
                devices: devices::EN,
                #[cfg(feature = "ssr")]
                tunnels: tunnels::EN,
                #[cfg(feature = "ssr")]
                worker_facts: worker_facts::EN,
            },
            Self::Zh => &Messages {
                language: Self::Zh,
                words: words::ZH,
                workers: workers::ZH,
                worker: worker::ZH,
                frame: frame::ZH,
                login: login::ZH,
                settings: settings::ZH,
                add_worker: add_worker::ZH,
                copy: copy::ZH,
                #[cfg(feature = "ssr")]
                devices: devices::ZH,
                #[cfg(feature = "ssr")]
                tunnels: tunnels::ZH,
                #[cfg(feature = "ssr")]
                worker_facts: worker_facts::ZH,
            },
        }
    }
}

/// All texts in one language.
#[derive(Debug)]
pub struct Messages {
    /// Which language.
    pub language: Language,
    /// Words and measures that many parts use.
    pub words: words::WordMessages,
    /// The list of workers.
    pub workers: workers::WorkersMessages,
    /// The page of one worker.
    pub worker: worker::WorkerMessages,
    /// What is around every page.
    pub frame: frame::FrameMessages,
    /// The login page.
    pub login: login::LoginMessages,
    /// The settings pages.
    pub settings: settings::SettingsMessages,
    /// The page that gives the join command.
    pub add_worker: add_worker::AddWorkerMessages,
    /// The button that copies.
    pub copy: copy::CopyMessages,
    /// The page of all devices, which the server draws.
    #[cfg(feature = "ssr")]
    pub devices: devices::DevicesMessages,
    /// The page of tunnels, which the server draws.
    #[cfg(feature = "ssr")]
    pub tunnels: tunnels::TunnelsMessages,
    /// Host, reach and events of one worker, which the server draws.
    #[cfg(feature = "ssr")]
    pub worker_facts: worker_facts::WorkerFactsMessages,
}

/// The user's language, as a signal: what reads texts through it inside a closure changes with the language, without
/// a reload.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    language: RwSignal<Language>,
}

impl Text {
    /// Starts with this language.
    pub fn new(language: Language) -> Self {
        Self { language: RwSignal::new(language) }
    }

    /// The language now; tracks it.
    pub fn language(self) -> Language {
        self.language.get()
    }

    /// All texts in the language of now; tracks it.
    pub fn get(self) -> &'static Messages {
        self.language.get().messages()
    }

    /// One text as a signal, for use in a view: `{text.of(|m| m.frame.workers)}`. A signal and no closure: views of
    /// closures are compiled anew for every single one.
    pub fn of<T: Send + Sync + 'static>(
        self,
        pick: impl Fn(&'static Messages) -> T + Send + Sync + 'static,
    ) -> Signal<T> {
        Signal::derive(move || pick(self.get()))
    }

    /// Changes the language of every text at once.
    pub fn set(self, language: Language) {
        self.language.set(language);
    }
}

/// The texts of the user's language.
///
/// [`crate::App`] provides them; outside of it they are English.
pub fn use_text() -> Text {
    use_context::<Text>().unwrap_or_else(|| Text::new(Language::En))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_language_prefers_the_highest_quality_and_falls_back_to_english() {
        for (header, expected) in [
            ("zh-CN,zh;q=0.9,en;q=0.8", Language::Zh),
            ("zh-TW", Language::Zh),
            ("en-US,en;q=0.9,zh;q=0.8", Language::En),
            ("en;q=0.2, zh;q=0.7", Language::Zh),
            ("de,fr;q=0.5", Language::En),
            ("zh;q=0, en", Language::En),
            ("zh;q=nonsense", Language::En),
            ("", Language::En),
        ] {
            assert_eq!(Language::from_accept_language(header), expected, "{header}");
        }
    }

    #[test]
    fn every_tag_reads_back() {
        for language in Language::ALL {
            assert_eq!(Language::from_tag(language.tag()), Some(language));
        }
    }
}
