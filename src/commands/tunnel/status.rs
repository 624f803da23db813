//! `gpustack tunnel status`: how the forwards of the agent on this host are.

use crate::commands::exit::CommandError;
use crate::commands::{language, output};
use crate::tunnel::agent::status_socket;
use crate::tunnel::agent::{Joined, Status};
use api::{ForwardReport, ForwardState};
use app::i18n::Language;
use app::i18n::tunnel_status::{TunnelStatusMessages, messages};
use app::i18n::tunnels::{fault_text, refused_config};
use chrono::Utc;
use clap::Args;
use std::fmt::Write;
use std::path::PathBuf;
use unicode_width::UnicodeWidthStr;

const EXIT: &str = "Ends with 0 when all forwards work, with 1 when one does not or no agent runs.";

/// Of which agent.
#[derive(Debug, Args)]
#[command(after_help = EXIT)]
pub struct StatusArgs {
    /// The agent's state directory
    #[arg(long, value_name = "DIR", default_value = "/var/lib/gpustack/tunnels")]
    state_dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The language of the words: en or zh [default: the locale's]
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<String>,
}

pub fn run(args: &StatusArgs) -> Result<(), CommandError> {
    let language = language::choose(args.language.as_deref(), &language::text_variables())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = runtime.block_on(status_socket::ask(&args.state_dir));
    let status = asked.map_err(|error| CommandError::failed(error.text(language)))?;
    let now_ms = Utc::now().timestamp_millis();
    if args.json {
        output::print(&format!("{}\n", serde_json::to_string_pretty(&status).map_err(CommandError::failed)?))?;
    } else {
        output::print(&text(&status, language, now_ms))?;
    }
    let failed = status.report.forwards.iter().filter(|forward| !forward.state.is_available()).count();
    if failed == 0 { Ok(()) } else { Err(CommandError::failed((messages(language).failed)(failed))) }
}

fn text(status: &Status, language: Language, now_ms: i64) -> String {
    let words = messages(language);
    let mut text = format!("{}\n", (words.agent)(&status.id, status.pid, &status.version));
    let url = status.server_url.as_deref().unwrap_or_default();
    let joined = match &status.joined {
        Joined::Off => words.off.to_owned(),
        Joined::Joining { cause, cause_zh } => {
            let told = match language {
                Language::En => cause.clone(),
                Language::Zh => cause_zh.clone().or_else(|| cause.as_deref().map(words.quoted)),
            };
            (words.joining)(url, told.as_deref())
        }
        Joined::Up => (words.joined)(url),
    };
    // writing to a String cannot fail
    let _ = writeln!(text, "{joined}");
    if let Some(why) = refused_config(&status.report, language) {
        let _ = writeln!(text, "{}", (words.refused_config)(why));
    }
    text.push('\n');
    text.push_str(&table(&status.report.forwards, words, language, now_ms));
    for certificate in &status.report.certificates {
        let Some(view) = &certificate.certificate else { continue };
        let left_ms = view.valid_before_ms.map(|before_ms| before_ms - now_ms);
        let _ =
            writeln!(text, "\n{}", (words.certificate)(&certificate.key_file, &view.principals.join(", "), left_ms));
    }
    text
}

/// A row for each forward, and under it what is wrong with it.
fn table(forwards: &[ForwardReport], words: &TunnelStatusMessages, language: Language, now_ms: i64) -> String {
    let rows: Vec<[String; 8]> = forwards.iter().map(|forward| cells(forward, words)).collect();
    let heads = words.heads.map(str::to_owned);
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| {
            let cells = rows.iter().chain([&heads]).filter_map(|row| row.get(column));
            cells.map(|cell| cell.width()).max().unwrap_or(0)
        })
        .collect();
    let line = |row: &[String; 8]| {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.width())));
        format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    let mut text = line(&heads);
    for (row, forward) in rows.iter().zip(forwards) {
        text.push_str(&line(row));
        if let Some(fault) = &forward.fault {
            let fault = fault_text(fault, language, now_ms);
            for sentence in [fault.what, fault.next_step].into_iter().filter(|sentence| !sentence.is_empty()) {
                let _ = writeln!(text, "    {sentence}");
            }
            for line in fault.lines {
                let _ = writeln!(text, "      {line}");
            }
        }
    }
    text
}

fn cells(forward: &ForwardReport, words: &TunnelStatusMessages) -> [String; 8] {
    let share = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), |share| format!("{:.2} %", share * 100.0));
    let availability = &forward.availability;
    [
        forward.id.clone(),
        (words.state)(forward.state).to_owned(),
        if forward.state == ForwardState::Starting { "–".to_owned() } else { age(forward.state_age_ms / 1000) },
        forward.round_trip_ms.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.1} ms")),
        forward.reconnects.to_string(),
        share(availability.day),
        share(availability.week),
        share(availability.month),
    ]
}

/// In the two largest units, which are the same in all languages.
fn age(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}
