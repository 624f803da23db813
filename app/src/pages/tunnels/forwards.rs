//! The table of forwards, with a history of cuts for each.

use super::query::{ROWS, Row, TunnelQuery, TunnelSort};
use super::state::{since, why};
use crate::drawn::Asked;
use crate::format::{self, Span};
use crate::i18n::tunnels::fault_text;
use crate::icon::Icon;
use crate::paths;
use api::{ForwardCut, ForwardReport, ForwardState, TunnelAgent};
use leptos::prelude::*;
use std::collections::BTreeSet;

/// Stands for a figure that is not known.
const UNKNOWN: &str = "–";

/// Filters and table.
pub fn forwards(agents: &[TunnelAgent], query: &TunnelQuery, asked: &Asked) -> AnyView {
    let words = &asked.messages().tunnels;
    let rows = query.rows(agents);
    let page = query.page.min(rows.len().saturating_sub(1) / ROWS);
    let shown: Vec<Row<'_>> = rows.iter().skip(page * ROWS).take(ROWS).copied().collect();
    let table = if shown.is_empty() {
        view! { <p class="muted">{words.nothing_matches}</p> }.into_any()
    } else {
        table(&shown, query, asked)
    };
    view! {
        <section class="panel section" id="forwards">
            <h2>{words.forwards}</h2>
            {filters(agents, query, asked)}
            {table}
            {pager(query, page, rows.len(), asked)}
        </section>
    }
    .into_any()
}

fn filters(agents: &[TunnelAgent], query: &TunnelQuery, asked: &Asked) -> AnyView {
    let words = &asked.messages().tunnels;
    let count = |only_trouble| TunnelQuery { only_trouble, ..query.clone() }.rows(agents).len();
    let chip = |word: &'static str, icon: Option<Icon>, only_trouble: bool| {
        let address = TunnelQuery { only_trouble, page: 0, ..query.clone() }.address();
        let is_chosen = query.only_trouble == only_trouble;
        view! {
            <li data-key=word>
                <a class="chip" data-noscroll="" data-state=icon.map(|_| "trouble") href=address aria-current=is_chosen.then_some("true")>
                    {icon.map(Icon::view)}<span>{word}</span><strong>{count(only_trouble)}</strong>
                </a>
            </li>
        }
        .into_any()
    };
    let forwards = || agents.iter().flat_map(|agent| &agent.report.forwards);
    let workers: BTreeSet<&str> = forwards().flat_map(|forward| &forward.workers).map(String::as_str).collect();
    let names: BTreeSet<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let clear = query.is_filtered().then(|| {
        let address = TunnelQuery { sort: query.sort, reversed: query.reversed, ..TunnelQuery::default() }.address();
        view! { <a href=address data-noscroll="">{asked.messages().workers.clear_filters}</a> }.into_any()
    });
    view! {
        <div class="toolbar">
            <ul class="chips" aria-label=words.filters>
                {chip(words.all, None, false)}
                {chip(words.troubled, Some(Icon::Warning), true)}
            </ul>
            <form class="toolbar-right" method="get" action=paths::TUNNELS>
                {query.kept().map(|(name, value)| view! { <input type="hidden" name=name value=value/> }.into_any()).collect_view()}
                {choice("agent", words.agent, &names, query.agent.as_deref(), asked)}
                {choice("worker", words.worker, &workers, query.worker.as_deref(), asked)}
                <button class="button">{words.filter}</button>
                {clear}
            </form>
        </div>
    }
    .into_any()
}

fn choice(
    name: &'static str,
    label: &'static str,
    values: &BTreeSet<&str>,
    chosen: Option<&str>,
    asked: &Asked,
) -> AnyView {
    let option = |value: &str| {
        let is_chosen = chosen == Some(value);
        let (value, word) = (value.to_owned(), value.to_owned());
        view! { <option value=value selected=is_chosen>{word}</option> }.into_any()
    };
    // One that has gone meanwhile is still what is asked for.
    let gone = chosen.filter(|chosen| !values.contains(chosen)).map(option);
    view! {
        <label class="tunnel-choice">
            <span class="muted">{label}</span>
            <select class="input" name=name>
                <option value="">{asked.messages().tunnels.any}</option>
                {gone}
                {values.iter().copied().map(option).collect_view()}
            </select>
        </label>
    }
    .into_any()
}

fn table(rows: &[Row<'_>], query: &TunnelQuery, asked: &Asked) -> AnyView {
    let words = &asked.messages().tunnels;
    let plain = |word: &'static str| view! { <th scope="col">{word}</th> }.into_any();
    let by = |word, sort| sorting(word, sort, query);
    view! {
        <div class="table-scroll">
            <table class="devices-table forwards-table" aria-label=words.forwards>
                <thead><tr>
                    {by(words.column_forward, TunnelSort::Forward)}
                    {by(words.column_state, TunnelSort::State)}
                    {plain(words.column_way)}
                    {by(words.column_round_trip, TunnelSort::RoundTrip)}
                    {plain(words.column_traffic)}
                    {by(words.column_reconnects, TunnelSort::Reconnects)}
                    {by(words.column_availability, TunnelSort::Availability)}
                </tr></thead>
                <tbody>{rows.iter().map(|row| table_row(row, asked)).collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

/// A column's head, which sorts by it, and the other way round when pressed again.
fn sorting(word: &'static str, sort: TunnelSort, query: &TunnelQuery) -> AnyView {
    let is_chosen = query.sort == sort;
    let reversed = is_chosen && !query.reversed;
    let address = TunnelQuery { sort, reversed, page: 0, ..query.clone() }.address();
    let is_descending = query.reversed == (sort == TunnelSort::Forward || sort == TunnelSort::Availability);
    let order = is_chosen.then_some(if is_descending { "descending" } else { "ascending" });
    let class = if is_descending { "sort-mark" } else { "sort-mark reversed" };
    let mark = is_chosen.then(|| view! { <span class=class>{Icon::Down.view()}</span> }.into_any());
    view! { <th scope="col" aria-sort=order><a data-noscroll="" href=address>{word} " " {mark}</a></th> }.into_any()
}

fn table_row(row: &Row<'_>, asked: &Asked) -> AnyView {
    let words = &asked.messages().tunnels;
    let Row { agent, forward } = *row;
    // of one that is not answered it was that of another time
    let is_answered = forward.state == ForwardState::Up;
    let round_trip = forward.round_trip_ms.filter(|_| is_answered);
    let round_trip = round_trip.map(|ms| format!("{} ms", format::milliseconds(ms)));
    // a number and its unit stay in one line
    let size = |bytes| format::bytes(bytes).replace(' ', "\u{a0}");
    let traffic = (words.traffic)(&size(forward.to_target_bytes), &size(forward.from_target_bytes));
    let connections = (forward.open_connections > 0).then(|| (words.open_connections)(forward.open_connections));
    let is_old = !agent.is_connected;
    view! {
        <tr data-key=format!("{} {}", agent.id, forward.id) class:old=is_old>
            <th scope="row">
                <span class="mono">{forward.id.clone()}</span>
                <small class="muted">{(words.role)(forward.role)}</small>
                <small class="muted">{words.agent} " " <span class="mono">{agent.name.clone()}</span></small>
            </th>
            <td class="forward-state">
                <p>{row.seen().badge(asked)} " " {since(forward, agent.reported_ms, asked)}</p>
                {why(forward, asked)}
                {cuts(forward, agent, asked)}
            </td>
            <td>
                <span class="mono">{(words.way)(&forward.listen, &forward.target)}</span>
                <small class="muted">{(words.over)(&forward.route.join(" → "))}</small>
            </td>
            <td class="number" data-label=words.column_round_trip>{round_trip.unwrap_or_else(|| UNKNOWN.to_owned())}</td>
            <td data-label=words.column_traffic>{traffic} <small class="muted">{connections}</small></td>
            <td class="number" data-label=words.column_reconnects>{forward.reconnects}</td>
            <td data-label=words.column_availability>{availability(forward, asked)}</td>
        </tr>
    }
    .into_any()
}

fn availability(forward: &ForwardReport, asked: &Asked) -> AnyView {
    let parts = [forward.availability.day, forward.availability.week, forward.availability.month];
    let line = |(part, span): (Option<f64>, &'static str)| {
        let figure = part.map_or_else(|| UNKNOWN.to_owned(), percent);
        view! { <dt>{span}</dt><dd>{figure}</dd> }.into_any()
    };
    let lines = parts.into_iter().zip(asked.messages().tunnels.spans).map(line).collect_view();
    view! { <dl class="availability">{lines}</dl> }.into_any()
}

/// A part of the time as people read it. What was not all of the time is not rounded up to that.
fn percent(part: f64) -> String {
    if part >= 1.0 { "100 %".to_owned() } else { format!("{:.2} %", (part * 10_000.0).floor() / 100.0) }
}

fn cuts(forward: &ForwardReport, agent: &TunnelAgent, asked: &Asked) -> AnyView {
    let words = &asked.messages().tunnels;
    if forward.cuts.is_empty() {
        return view! { <small class="muted">{words.no_cuts}</small> }.into_any();
    }
    let reported_ms = agent.reported_ms.unwrap_or(asked.now_ms);
    let rows = forward.cuts.iter().map(|cut| cut_row(cut, reported_ms, asked)).collect_view();
    view! {
        <details class="cuts">
            <summary><span class="unfold-cuts">{(words.cuts)(forward.cuts.len())}</span></summary>
            <table>
                <thead><tr>
                    <th scope="col">{words.cut_began}</th><th scope="col">{words.cut_lasted}</th><th scope="col">{words.cut_why}</th>
                </tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </details>
    }
    .into_any()
}

fn cut_row(cut: &ForwardCut, reported_ms: i64, asked: &Asked) -> AnyView {
    let messages = asked.messages();
    let began_ms = reported_ms.saturating_sub(i64::try_from(cut.began_ago_ms).unwrap_or(i64::MAX));
    let lasted = cut.lasted_ms.map_or_else(
        || messages.tunnels.cut_goes_on.to_owned(),
        |lasted_ms| (messages.words.span)(Span::of_seconds(lasted_ms.div_ceil(1000))),
    );
    view! {
        <tr data-key=began_ms.to_string()>
            <td>
                <time datetime=format::machine_time(began_ms) title=format::full_time(began_ms, asked.zone)>
                    {format::short_time(began_ms, asked.now_ms, asked.zone)}
                </time>
            </td>
            <td>{lasted}</td>
            <td>{fault_text(&cut.fault, asked.language(), asked.now_ms).what}</td>
        </tr>
    }
    .into_any()
}

fn pager(query: &TunnelQuery, page: usize, all: usize, asked: &Asked) -> Option<AnyView> {
    let messages = asked.messages();
    let to = |page: usize| TunnelQuery { page, ..query.clone() }.address();
    let before = (page > 0).then(|| {
        view! { <a class="button" href=to(page - 1) rel="prev">{messages.workers.previous_page}</a> }.into_any()
    });
    let end = all.min((page + 1) * ROWS);
    let after = (end < all)
        .then(|| view! { <a class="button" href=to(page + 1) rel="next">{messages.workers.next_page}</a> }.into_any());
    (all > ROWS).then(|| {
        view! {
            <nav class="pager" aria-label=messages.devices.pages>
                {before}<span class="muted">{(messages.tunnels.range)(page * ROWS + 1, end, all)}</span>{after}
            </nav>
        }
        .into_any()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_all_of_the_time_is_not_rounded_up_to_it() {
        for (part, text) in [(1.0, "100 %"), (0.999_999, "99.99 %"), (0.5, "50.00 %"), (0.0, "0.00 %")] {
            assert_eq!(percent(part), text);
        }
    }
}
