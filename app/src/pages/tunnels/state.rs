//! The state of a forward as people see it.

use crate::drawn::Asked;
use crate::format;
use crate::i18n::tunnels::{FaultText, fault_text};
use crate::icon::Icon;
use api::{ForwardReport, ForwardState};
use leptos::prelude::*;

/// A forward's state, and whether it is of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What its agent told last.
    pub state: ForwardState,
    /// Its agent is connected, so it is so now.
    pub is_current: bool,
}

/// How much a state needs somebody to look at it; the greater, the more.
pub const fn badness(state: ForwardState) -> u8 {
    match state {
        ForwardState::Up => 0,
        ForwardState::Unproved => 1,
        ForwardState::Starting => 2,
        ForwardState::Degraded => 3,
        ForwardState::Down => 4,
    }
}

impl Seen {
    /// The worst of several; what nobody knows now is no better than what is known.
    pub fn worst(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter().max_by_key(|seen| (badness(seen.state), !seen.is_current))
    }

    /// Whether somebody should look at it.
    pub const fn is_trouble(self) -> bool {
        !self.is_current || matches!(self.state, ForwardState::Degraded | ForwardState::Down)
    }

    /// The colour, in the words of the stylesheet.
    pub const fn tag(self) -> &'static str {
        match self.state {
            _ if !self.is_current => "pending",
            ForwardState::Up | ForwardState::Unproved => "ready",
            ForwardState::Starting => "pending",
            ForwardState::Degraded => "trouble",
            ForwardState::Down => "not_ready",
        }
    }

    /// Each state has its own shape.
    pub const fn icon(self) -> Icon {
        match self.state {
            ForwardState::Up => Icon::Ready,
            ForwardState::Unproved => Icon::Check,
            ForwardState::Starting => Icon::Pending,
            ForwardState::Degraded => Icon::Warning,
            ForwardState::Down => Icon::NotReady,
        }
    }

    /// In a word or two.
    pub fn word(self, asked: &Asked) -> String {
        let words = &asked.messages().tunnels;
        let word = (words.state)(self.state);
        if self.is_current { word.to_owned() } else { (words.last_known_state)(word) }
    }

    /// Icon and word.
    pub fn badge(self, asked: &Asked) -> AnyView {
        view! { <span class="state" data-state=self.tag()>{self.icon().view()}<span>{self.word(asked)}</span></span> }
            .into_any()
    }
}

/// Since when a forward is in its state, with the full time on hover.
pub fn since(forward: &ForwardReport, reported_ms: Option<i64>, asked: &Asked) -> Option<AnyView> {
    let age_ms = i64::try_from(forward.state_age_ms).unwrap_or(i64::MAX);
    let since_ms = reported_ms?.saturating_sub(age_ms);
    let short = format::short_time(since_ms, asked.now_ms, asked.zone);
    Some(
        view! {
            <time class="muted" datetime=format::machine_time(since_ms) title=format::full_time(since_ms, asked.zone)>
                {(asked.messages().words.since)(&short)}
            </time>
        }
        .into_any(),
    )
}

/// Why a forward does not work, and what to do; nothing when it works.
pub fn why(forward: &ForwardReport, asked: &Asked) -> Option<AnyView> {
    let FaultText { what, next_step, lines } = fault_text(forward.fault.as_ref()?, asked.language(), asked.now_ms);
    let next = if lines.is_empty() {
        view! { <p class="next-step">{next_step}</p> }.into_any()
    } else {
        let unfold = asked.messages().workers.show_commands;
        view! {
            <details class="commands">
                <summary><span class="next-step">{next_step}</span>" "<span class="unfold">{unfold}</span></summary>
                <div class="commands-body"><pre><code>{lines.join("\n")}</code></pre></div>
            </details>
        }
        .into_any()
    };
    Some(view! { <div class="forward-why"><p>{what}</p>{next}</div> }.into_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_several_is_what_needs_to_be_looked_at_most() {
        let seen = |state, is_current| Seen { state, is_current };
        let all = [seen(ForwardState::Up, true), seen(ForwardState::Degraded, true), seen(ForwardState::Up, false)];
        assert_eq!(Seen::worst(all), Some(seen(ForwardState::Degraded, true)));
        assert_eq!(Seen::worst([all[0], all[2]]), Some(all[2]), "what is not known now is not well");
        assert_eq!(Seen::worst([]), None);
    }
}
