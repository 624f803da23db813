//! The list: what is wrong first, then the rest in the order in which one would look.

use crate::backend::ExaminationFailed;
use crate::drawn::Asked;
use crate::i18n::Messages;
use crate::i18n::checks::{CheckText, examination_text, failure, looked_at, summary};
use crate::icon::Icon;
use crate::paths;
use crate::session::{UiError, not_found};
use crate::widgets::SeverityIcon;
use api::{Check, ConditionStatus, Examination, Severity, Verdict, WorkerId, WorkerView};
use leptos::prelude::*;
use std::cmp::Reverse;

/// The host of the worker that the address names, looked at now.
pub async fn draw(asked: &Asked) -> Result<String, UiError> {
    let id = worker_of(&asked.path).ok_or_else(not_found)?;
    let worker = asked.backend.workers(&[id]).await.into_iter().next().ok_or_else(not_found)?;
    let examined = asked.backend.examine(id).await;
    Ok(asked.render(|| page(&worker, examined.as_ref(), asked.messages())))
}

fn worker_of(path: &str) -> Option<WorkerId> {
    path.strip_prefix(paths::WORKERS)?.strip_prefix('/')?.strip_suffix(paths::HOST)?.parse().ok().map(WorkerId)
}

fn page(
    worker: &WorkerView,
    examined: Result<&Examination, &ExaminationFailed>,
    messages: &'static Messages,
) -> AnyView {
    let content = match examined {
        Ok(examination) => list(examination, messages),
        Err(why) => view! { <p class="note warning">{failure(*why, messages.language)}</p> }.into_any(),
    };
    view! {
        <div class="worker-head">
            <p class="breadcrumb"><a href=paths::worker(worker.id)>{Icon::Back.view()}<span class="mono">{worker.name.clone()}</span></a></p>
            <div class="worker-title"><h1>{messages.worker.check_host}</h1></div>
        </div>
        {content}
    }
    .into_any()
}

fn list(examination: &Examination, messages: &'static Messages) -> AnyView {
    let language = messages.language;
    let texts = examination_text(examination, language);
    let mut points: Vec<(&Check, CheckText)> = examination.checks.iter().zip(texts).collect();
    // a sort that keeps the order among equals
    points.sort_by_key(|(check, _)| Reverse(check.verdict().max(Verdict::NotChecked)));
    let rows = points.into_iter().enumerate().map(|(place, (check, text))| row(place, check, text, messages));
    view! {
        <section class="panel section conditions">
            <h2>{summary(examination, language)}</h2>
            <p class="muted">{looked_at(examination, language)}</p>
            <ul>{rows.collect_view()}</ul>
        </section>
    }
    .into_any()
}

fn row(place: usize, check: &Check, text: CheckText, messages: &'static Messages) -> AnyView {
    let (severity, status) = match check.verdict() {
        Verdict::Ok => (Severity::Ok, ConditionStatus::True),
        Verdict::NotChecked => (Severity::Ok, ConditionStatus::Unknown),
        Verdict::Warning => (Severity::Warning, ConditionStatus::False),
        Verdict::Failed => (Severity::Error, ConditionStatus::False),
    };
    let CheckText { title, what, next_step, commands } = text;
    let key = format!("{place} {title}");
    view! {
        <li class="condition" data-key=key>
            <SeverityIcon severity status/>
            <strong class="condition-kind">{title}</strong>
            <div class="condition-text"><p>{what}</p>{next(next_step, &commands, messages)}</div>
        </li>
    }
    .into_any()
}

fn next(next_step: String, commands: &[String], messages: &'static Messages) -> Option<AnyView> {
    if commands.is_empty() {
        return (!next_step.is_empty()).then(|| view! { <p class="next-step">{next_step}</p> }.into_any());
    }
    let commands = commands.join("\n");
    let details = view! {
        <details class="commands">
            <summary><span class="next-step">{next_step}</span>" "<span class="unfold">{messages.workers.show_commands}</span></summary>
            <div class="commands-body"><pre><code>{commands}</code></pre></div>
        </details>
    };
    Some(details.into_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_names_the_worker() {
        assert_eq!(worker_of("/workers/31/host"), Some(WorkerId(31)));
        for path in ["/workers/host", "/workers//host", "/workers/31", "/devices", "/workers/x/host"] {
            assert_eq!(worker_of(path), None, "{path}");
        }
    }
}
