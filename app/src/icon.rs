//! Icons, drawn once in a sprite and used by reference. Each state has a shape of its own, so that colour is never
//! the only sign.

use leptos::prelude::*;

/// An icon of the sprite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icon {
    /// Circle with a check mark.
    Ready,
    /// Octagon with a cross.
    NotReady,
    /// Broken link in a diamond.
    Unreachable,
    /// Wrench.
    Maintenance,
    /// Dotted circle.
    Pending,
    /// Triangle with an exclamation mark.
    Warning,
    /// Check mark.
    Check,
    /// Cross.
    Cross,
    /// Question mark.
    Unknown,
    /// Servers.
    Workers,
    /// A chip with its pins.
    Device,
    /// Sliders.
    Settings,
    /// Plus sign.
    Add,
    /// Magnifying glass.
    Search,
    /// Half-filled circle.
    Theme,
    /// Globe.
    Language,
    /// Head and shoulders.
    User,
    /// Two sheets.
    Copy,
    /// Three dots.
    More,
    /// Chevron down.
    Down,
    /// Four squares.
    Cards,
    /// Lines.
    Table,
    /// Heart.
    Heartbeat,
    /// Two arrows, there and back.
    Probe,
    /// Clock.
    Clock,
    /// Arrow left.
    Back,
}

impl Icon {
    const fn reference(self) -> &'static str {
        match self {
            Self::Ready => "#i-ready",
            Self::NotReady => "#i-not-ready",
            Self::Unreachable => "#i-unreachable",
            Self::Maintenance => "#i-maintenance",
            Self::Pending => "#i-pending",
            Self::Warning => "#i-warning",
            Self::Check => "#i-check",
            Self::Cross => "#i-cross",
            Self::Unknown => "#i-unknown",
            Self::Workers => "#i-workers",
            Self::Device => "#i-device",
            Self::Settings => "#i-settings",
            Self::Add => "#i-add",
            Self::Search => "#i-search",
            Self::Theme => "#i-theme",
            Self::Language => "#i-language",
            Self::User => "#i-user",
            Self::Copy => "#i-copy",
            Self::More => "#i-more",
            Self::Down => "#i-down",
            Self::Cards => "#i-cards",
            Self::Table => "#i-table",
            Self::Heartbeat => "#i-heartbeat",
            Self::Probe => "#i-probe",
            Self::Clock => "#i-clock",
            Self::Back => "#i-back",
        }
    }

    /// The icon beside a word that says the same: hidden from screen readers.
    pub fn view(self) -> impl IntoView {
        view! { <svg class="icon" aria-hidden="true" focusable="false"><use href=self.reference()></use></svg> }
            .into_any()
    }
}

/// The drawings. Must be in the document once.
#[component]
pub fn IconSprite() -> impl IntoView {
    view! { <svg class="sprite" aria-hidden="true" inner_html=SPRITE></svg> }.into_any()
}

const SPRITE: &str = concat!(
    r#"<defs><pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch-ground" width="4" height="4"/><rect class="hatch-line" width="1.4" height="4"/></pattern></defs>"#,
    r#"<symbol id="i-ready" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="currentColor"/><path d="M4.8 8.2l2.2 2.2 4.2-4.6" fill="none" class="i-cut"/></symbol>"#,
    r#"<symbol id="i-not-ready" viewBox="0 0 16 16"><path d="M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1z" fill="currentColor"/><path d="M5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2" fill="none" class="i-cut"/></symbol>"#,
    r#"<symbol id="i-unreachable" viewBox="0 0 16 16"><path d="M8 .6L15.4 8 8 15.4.6 8z" fill="currentColor"/><path d="M4.2 8h2.1M9.7 8h2.1M7.2 10.2l1.6-4.4" fill="none" class="i-cut"/></symbol>"#,
    r#"<symbol id="i-maintenance" viewBox="0 0 16 16"><rect x="1" y="1" width="14" height="14" rx="3" fill="currentColor"/><path d="M5.8 4.6v6.8M10.2 4.6v6.8" fill="none" class="i-cut"/></symbol>"#,
    r#"<symbol id="i-pending" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" stroke-width="1.8" stroke-dasharray="2.4 2.47"/></symbol>"#,
    r#"<symbol id="i-warning" viewBox="0 0 16 16"><path d="M8 1.2l7.2 13H.8z" fill="currentColor" stroke="currentColor" stroke-width="1" stroke-linejoin="round"/><path d="M8 6v4M8 12.1v.3" fill="none" class="i-cut"/></symbol>"#,
    r#"<symbol id="i-check" viewBox="0 0 16 16"><path d="M3 8.5l3.4 3.4L13 4.8" class="i-line"/></symbol>"#,
    r#"<symbol id="i-cross" viewBox="0 0 16 16"><path d="M4 4l8 8M12 4l-8 8" class="i-line"/></symbol>"#,
    r#"<symbol id="i-unknown" viewBox="0 0 16 16"><path d="M5.6 6a2.4 2.4 0 1 1 3.5 2.2c-.7.4-1.1.8-1.1 1.6M8 12.4v.2" class="i-line"/></symbol>"#,
    r#"<symbol id="i-workers" viewBox="0 0 16 16"><path d="M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.1M4.5 11h.1M7.5 5h4M7.5 11h4" class="i-line"/></symbol>"#,
    r#"<symbol id="i-device" viewBox="0 0 16 16"><path d="M4 4h8v8H4zM6.5 4V2M9.5 4V2M6.5 14v-2M9.5 14v-2M4 6.5H2M4 9.5H2M14 6.5h-2M14 9.5h-2" class="i-line"/></symbol>"#,
    r#"<symbol id="i-settings" viewBox="0 0 16 16"><path d="M2 4.5h6M12 4.5h2M2 11.5h2M8 11.5h6" class="i-line"/><circle cx="10" cy="4.5" r="1.8" class="i-line"/><circle cx="6" cy="11.5" r="1.8" class="i-line"/></symbol>"#,
    r#"<symbol id="i-add" viewBox="0 0 16 16"><path d="M8 3v10M3 8h10" class="i-line"/></symbol>"#,
    r#"<symbol id="i-search" viewBox="0 0 16 16"><circle cx="7" cy="7" r="4.4" class="i-line"/><path d="M10.4 10.4L14 14" class="i-line"/></symbol>"#,
    r#"<symbol id="i-theme" viewBox="0 0 16 16"><circle cx="8" cy="8" r="5.8" class="i-line"/><path d="M8 2.2a5.8 5.8 0 0 1 0 11.6z" fill="currentColor"/></symbol>"#,
    r#"<symbol id="i-language" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6" class="i-line"/><path d="M2 8h12M8 2c4 3.6 4 8.4 0 12M8 2C4 5.600 4 10.400 8 14" class="i-line"/></symbol>"#,
    r#"<symbol id="i-user" viewBox="0 0 16 16"><circle cx="8" cy="5.4" r="2.800" class="i-line"/><path d="M2.600 14c.6-3 2.600-4.600 5.400-4.600s4.800 1.600 5.400 4.600" class="i-line"/></symbol>"#,
    r#"<symbol id="i-copy" viewBox="0 0 16 16"><path d="M5.500 5.500h8v8h-8zM3.500 10.500h-1v-8h8v1" class="i-line"/></symbol>"#,
    r#"<symbol id="i-more" viewBox="0 0 16 16"><circle cx="3.400" cy="8" r="1.300" fill="currentColor"/><circle cx="8" cy="8" r="1.300" fill="currentColor"/><circle cx="12.600" cy="8" r="1.300" fill="currentColor"/></symbol>"#,
    r#"<symbol id="i-down" viewBox="0 0 16 16"><path d="M4 6.300l4 4 4-4" class="i-line"/></symbol>"#,
    r#"<symbol id="i-cards" viewBox="0 0 16 16"><path d="M2.500 2.500h4.500v4.500H2.500zM9 2.500h4.500v4.500H9zM2.500 9h4.500v4.500H2.500zM9 9h4.500v4.500H9z" class="i-line"/></symbol>"#,
    r#"<symbol id="i-table" viewBox="0 0 16 16"><path d="M2.500 3.500h11M2.500 8h11M2.500 12.500h11" class="i-line"/></symbol>"#,
    r#"<symbol id="i-heartbeat" viewBox="0 0 16 16"><path d="M1.500 8.500h3l1.500-4 3 7.500 1.800-5 .9 1.500h2.800" class="i-line"/></symbol>"#,
    r#"<symbol id="i-probe" viewBox="0 0 16 16"><path d="M2 5.500h11M10.500 3L13 5.500 10.500 8M14 10.500H3M5.500 8L3 10.500 5.500 13" class="i-line"/></symbol>"#,
    r#"<symbol id="i-clock" viewBox="0 0 16 16"><circle cx="8" cy="8" r="5.800" class="i-line"/><path d="M8 4.700V8l2.300 1.600" class="i-line"/></symbol>"#,
    r#"<symbol id="i-back" viewBox="0 0 16 16"><path d="M9.700 4l-4 4 4 4" class="i-line"/></symbol>"#,
);
