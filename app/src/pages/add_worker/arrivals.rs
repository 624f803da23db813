//! The workers that arrive while the page is open, each with its checks as they pass.

use super::JoinPage;
use super::command::Packaging;
use crate::fleet::devices::models;
use crate::fleet::store::WorkerCell;
use crate::fleet::use_fleet;
use crate::format::{self, Zone};
use crate::i18n::{ReasonContext, ReasonText, Text, reason_text, use_text};
use crate::icon::Icon;
use crate::paths;
use crate::reactive::{When, each_worker, memo};
use api::{Condition, ConditionStatus, Severity, WorkerId, WorkerView};
use leptos::prelude::*;

/// More than these are in the list of workers.
const MOST_SHOWN: usize = 20;

/// The workers that have joined since `newest` did, the newest first.
#[component]
pub fn Arrivals(newest: WorkerId, page: JoinPage) -> impl IntoView {
    let text = use_text();
    let fleet = use_fleet();
    let arrived = memo(move || newest_first(&fleet.members(), newest));
    let shown = Signal::derive(move || arrived.read().iter().copied().take(MOST_SHOWN).collect::<Vec<_>>());
    fleet.look(shown);
    let count = move || arrived.read().len();
    let hint = move || {
        let messages = &text.get().add_worker;
        match page.form.read().packaging {
            Packaging::Container => messages.waiting_hint_container,
            Packaging::Binary => messages.waiting_hint_binary,
            Packaging::Systemd => messages.waiting_hint_systemd,
        }
    };
    view! {
        <section class="panel arrivals">
            <h2>{text.of(|m| m.add_worker.arrivals)}</h2>
            <p class="without-script">{text.of(|m| m.add_worker.waiting_static)}</p>
            <p class="arrivals-now with-script" role="status">
                {move || match count() {
                    0 => view! { <span class="pulse"></span> {text.of(|m| m.add_worker.waiting)} }.into_any(),
                    count => view! { {move || (text.get().add_worker.arrived)(count)} }.into_any(),
                }}
            </p>
            <When holds=move || count() == 0>
                <p class="muted with-script">{hint}</p>
            </When>
            <ul class="arrivals-list">
                {each_worker(
                    shown,
                    move |id| fleet.view_of(id, |worker| view! { <Arrival worker/> }.into_any(), |_| ().into_any()),
                )}
            </ul>
        </section>
    }
    .into_any()
}

/// A later row has a higher number.
fn newest_first(members: &[WorkerId], newest: WorkerId) -> Vec<WorkerId> {
    members.iter().rev().copied().take_while(|id| *id > newest).collect()
}

#[component]
fn Arrival(worker: WorkerCell) -> impl IntoView {
    let text = use_text();
    let view = worker.read_untracked();
    let (id, name) = (view.id, view.name.clone());
    drop(view);
    let facts = {
        let worker = worker.clone();
        move || facts(&worker.read())
    };
    let label = {
        let name = name.clone();
        move || (text.get().add_worker.open_worker)(&name)
    };
    let checks = move || checks(&worker.read(), text).into_iter().map(Check::view).collect_view();
    view! {
        <li class="arrival">
            <div class="arrival-head">
                <strong class="mono">{name}</strong>
                <span class="muted">{facts}</span>
                <a class="button" href=paths::worker(id) aria-label=label>{text.of(|m| m.add_worker.open)}</a>
            </div>
            <ul class="checks">{checks}</ul>
        </li>
    }
    .into_any()
}

/// Address, system and devices, as far as they are known.
fn facts(worker: &WorkerView) -> String {
    let models = models(worker.devices.as_deref().unwrap_or_default()).into_iter().map(|model| {
        let memory = model.memory_bytes.map(|bytes| format!(" · {} GiB", format::gib(bytes))).unwrap_or_default();
        format!("{} × {}{memory}", model.count, model.name)
    });
    let known = [format!("{}:{}", worker.ip, worker.port), worker.os.clone()].into_iter().chain(models);
    known.filter(|fact| !fact.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// How a check stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckState {
    Passed,
    Running,
    Warning,
    Failed,
}

impl CheckState {
    fn of(condition: &Condition) -> Self {
        match (condition.status, condition.severity) {
            // what does not hold may lack nothing: there is no way back beside a link that stands
            (ConditionStatus::True, _) | (ConditionStatus::False, Severity::Ok) => Self::Passed,
            (ConditionStatus::Unknown, _) => Self::Running,
            (ConditionStatus::False, Severity::Error) => Self::Failed,
            (ConditionStatus::False, Severity::Warning) => Self::Warning,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Passed => "check passed",
            Self::Running => "check running",
            Self::Warning => "check warned",
            Self::Failed => "check failed",
        }
    }

    fn icon(self) -> Icon {
        match self {
            Self::Passed => Icon::Check,
            Self::Running => Icon::Pending,
            Self::Warning => Icon::Warning,
            Self::Failed => Icon::NotReady,
        }
    }
}

/// One line of an arrival's checklist.
struct Check {
    state: CheckState,
    name: &'static str,
    reason: Option<ReasonText>,
}

impl Check {
    fn view(self) -> impl IntoView {
        let (what, next_step) = self.reason.map(|reason| (reason.what, reason.next_step)).unwrap_or_default();
        // a check that passed says all with its name
        let next_step = (self.state != CheckState::Passed && !next_step.is_empty()).then_some(next_step);
        view! {
            <li class=self.state.class()>
                {self.state.icon().view()}
                <span class="check-name">{self.name}</span>
                <span class="check-text">{what} {next_step.map(|step| view! { " " <span class="check-step">{step}</span> }.into_any())}</span>
            </li>
        }.into_any()
    }
}

/// That it joined, and its conditions.
fn checks(worker: &WorkerView, text: Text) -> Vec<Check> {
    let messages = text.get();
    let joined = Check { state: CheckState::Passed, name: messages.add_worker.check_joined, reason: None };
    let context = ReasonContext { now_ms: use_fleet().now_ms(), zone: Zone::Browser, os: &worker.os, also: None };
    let conditions = worker.conditions.iter().map(|condition| Check {
        state: CheckState::of(condition),
        name: messages.condition_word(condition.kind),
        reason: Some(reason_text(&condition.reason, text.language(), &context)),
    });
    std::iter::once(joined).chain(conditions).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{ConditionKind, Reason};

    #[test]
    fn only_who_joined_since_then_has_arrived_and_the_newest_comes_first() {
        assert_eq!(newest_first(&[1, 3, 4, 7].map(WorkerId), WorkerId(3)), [WorkerId(7), WorkerId(4)]);
    }

    #[test]
    fn what_nobody_can_say_yet_is_running_and_no_failure() {
        for (status, severity, expected) in [
            (ConditionStatus::True, Severity::Ok, CheckState::Passed),
            (ConditionStatus::Unknown, Severity::Ok, CheckState::Running),
            (ConditionStatus::False, Severity::Ok, CheckState::Passed),
            (ConditionStatus::False, Severity::Warning, CheckState::Warning),
            (ConditionStatus::False, Severity::Error, CheckState::Failed),
        ] {
            let reason = Reason::ClockNotMeasured {};
            let condition = Condition { kind: ConditionKind::Clock, status, severity, reason, since_ms: None };
            assert_eq!(CheckState::of(&condition), expected);
        }
    }
}
