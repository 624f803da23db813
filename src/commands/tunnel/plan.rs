//! `gpustack tunnel plan`: what a `tunnels.yaml` asks for.

use super::super::exit::CommandError;
use super::super::{language, output};
use super::{FileArgs, file_error};
use crate::tunnel::file::{self, Surroundings};
use crate::tunnel::plan::{
    ForwardId, Plan, PlanNote, PlannedForward, PlannedHop, Proof, check_names, label, ssh_commands, ssh_config,
};
use api::{AgentPlace, ForwardDirection, ForwardRole};
use app::i18n::tunnel_plan::{TunnelPlanMessages, messages};
use clap::Args;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use unicode_width::UnicodeWidthStr;

const EXIT: &str = "Nothing is connected, and nothing is written. Ends with 0 when the plan can be run, with 1 when a name \
does not resolve on this host, with 2 when the file is wrong.";

/// Which file, and in which form.
#[derive(Debug, Args)]
#[command(after_help = EXIT)]
pub struct PlanArgs {
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    form: FormArgs,
    /// The language of the words: en or zh [default: the locale's]
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<String>,
}

#[derive(Clone, Copy, Debug, Args)]
#[group(multiple = false)]
struct FormArgs {
    /// Print ssh commands that make the same forwards
    #[arg(long)]
    ssh: bool,
    /// Print a file for ssh -F, with which `ssh -N GPUStack-Tunnel-ID` makes a forward
    #[arg(long)]
    ssh_config: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &PlanArgs) -> Result<(), CommandError> {
    let language = language::choose(args.language.as_deref(), &language::text_variables())?;
    let words = messages(language);
    let surroundings = Surroundings::of_process();
    let loaded = file::load(&args.file.config, &surroundings);
    let plan = loaded.map_err(|error| file_error(&error, language))?.plan;
    output::print(&printed(&plan, args.form, &surroundings, words)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let problems = runtime.block_on(check_names(&plan));
    // a resolver that hangs is not waited for
    runtime.shutdown_background();
    let problems: Vec<String> = problems.iter().map(|problem| problem.text(language)).collect();
    if problems.is_empty() { Ok(()) } else { Err(CommandError::failed(problems.join("\n"))) }
}

fn printed(
    plan: &Plan,
    form: FormArgs,
    surroundings: &Surroundings,
    words: &TunnelPlanMessages,
) -> Result<String, CommandError> {
    let FormArgs { ssh, ssh_config: config, json: is_json } = form;
    let heading = |forward: &PlannedForward| format!("{}: {}", forward.id, role(forward, words));
    if ssh {
        return Ok(format!(
            "# {}\n\n{}",
            words.run_on(&plan.place),
            ssh_commands(plan, &surroundings.default_keys, heading)
        ));
    }
    if config {
        return Ok(format!("# {}\n\n{}", words.ssh_config_use, ssh_config(plan, heading)));
    }
    if is_json { json(plan) } else { Ok(text(plan, words)) }
}

fn role(forward: &PlannedForward, words: &TunnelPlanMessages) -> String {
    (words.role)(forward.role, &forward.workers.join(words.list_separator))
}

fn text(plan: &Plan, words: &TunnelPlanMessages) -> String {
    let mut text = format!("{}\n", (words.runs)(plan.id.as_str(), &plan.place));
    // writing to a String cannot fail
    let _ = writeln!(text, "{}", (words.state_dir)(&plan.state_dir.display().to_string()));
    let reports = plan.reporting.as_ref().map(|reporting| (words.reports_to)(&reporting.server_url));
    let _ = writeln!(text, "{}", reports.unwrap_or_else(|| words.reports_nowhere.to_owned()));
    for (index, forward) in plan.forwards.iter().enumerate() {
        let _ = writeln!(text, "\n{}. {} · {}", index + 1, forward.id, role(forward, words));
        text.push_str(&rows(&forward_rows(forward, words)));
    }
    if !plan.notes.is_empty() {
        let _ = writeln!(text, "\n{}", words.notes);
    }
    for note in &plan.notes {
        let _ = writeln!(text, "- {}", note_text(note, words));
    }
    text
}

fn forward_rows(forward: &PlannedForward, words: &TunnelPlanMessages) -> Vec<(&'static str, String)> {
    let end = forward.route.last().map(hop).unwrap_or_default();
    let (listens, leads_to) = match forward.direction {
        ForwardDirection::Local => (words.here.to_owned(), (words.seen_from)(&end)),
        ForwardDirection::Remote => ((words.on)(&end), words.seen_from_here.to_owned()),
    };
    let behind = forward.behind.as_ref().map(|id| (words.behind)(id.as_str()));
    let route: Vec<String> = forward.route.iter().map(hop).collect();
    let proof = match &forward.proof {
        Proof::Server { .. } => words.proof_server.to_owned(),
        Proof::Worker { name } => (words.proof_worker)(name),
        Proof::Connection => words.proof_connection.to_owned(),
    };
    vec![
        (words.listens, joined(&forward.listen.to_string(), &listens, words)),
        (words.leads_to, joined(&forward.target.to_string(), &behind.unwrap_or(leads_to), words)),
        (words.through, route.join(" → ")),
        (words.proof, proof),
    ]
}

fn joined(address: &str, place: &str, words: &TunnelPlanMessages) -> String {
    format!("{address}{}{place}", words.place_separator)
}

fn hop(hop: &PlannedHop) -> String {
    format!("{}@{}", hop.user, hop.server)
}

fn rows(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(label, _)| label.width()).max().unwrap_or(0);
    rows.iter().fold(String::new(), |mut text, (label, value)| {
        let pad = " ".repeat(width.saturating_sub(label.width()));
        let _ = writeln!(text, "   {label}{pad}  {value}");
        text
    })
}

fn note_text(note: &PlanNote, words: &TunnelPlanMessages) -> String {
    match note {
        PlanNote::LinkIsEnough => words.link_is_enough.to_owned(),
        PlanNote::StartWorkerWith { worker, flags } => (words.start_worker_with)(worker, &flags.join(" ")),
        PlanNote::PortChosen { worker, port } => (words.port_chosen)(worker, *port),
    }
}

/// A plan for programs.
#[derive(Serialize)]
struct JsonPlan<'a> {
    id: &'a str,
    #[serde(flatten)]
    place: &'a AgentPlace,
    state_dir: &'a PathBuf,
    server_url: Option<&'a str>,
    forwards: Vec<JsonForward<'a>>,
    notes: Vec<JsonNote<'a>>,
}

/// As in what an agent reports, where it reports it.
#[derive(Serialize)]
struct JsonForward<'a> {
    id: &'a str,
    label: String,
    role: ForwardRole,
    direction: ForwardDirection,
    workers: &'a [String],
    listen: String,
    target: String,
    route: Vec<String>,
    behind: Option<&'a str>,
    proof: JsonProof<'a>,
}

#[derive(Serialize)]
#[serde(tag = "answers", rename_all = "snake_case")]
enum JsonProof<'a> {
    Server,
    Worker { name: &'a str },
    Connection,
}

#[derive(Serialize)]
#[serde(tag = "note", rename_all = "snake_case")]
enum JsonNote<'a> {
    LinkIsEnough,
    StartWorkerWith { worker: &'a str, flags: &'a [String] },
    PortChosen { worker: &'a str, port: u16 },
}

fn json(plan: &Plan) -> Result<String, CommandError> {
    let notes = plan.notes.iter().map(|note| match note {
        PlanNote::LinkIsEnough => JsonNote::LinkIsEnough,
        PlanNote::StartWorkerWith { worker, flags } => JsonNote::StartWorkerWith { worker, flags },
        PlanNote::PortChosen { worker, port } => JsonNote::PortChosen { worker, port: *port },
    });
    let shown = JsonPlan {
        id: plan.id.as_str(),
        place: &plan.place,
        state_dir: &plan.state_dir,
        server_url: plan.reporting.as_ref().map(|reporting| reporting.server_url.as_str()),
        forwards: plan.forwards.iter().map(json_forward).collect(),
        notes: notes.collect(),
    };
    let mut text = serde_json::to_string_pretty(&shown).map_err(CommandError::failed)?;
    text.push('\n');
    Ok(text)
}

fn json_forward(forward: &PlannedForward) -> JsonForward<'_> {
    JsonForward {
        id: forward.id.as_str(),
        label: label(&forward.id),
        role: forward.role,
        direction: forward.direction,
        workers: &forward.workers,
        listen: forward.listen.to_string(),
        target: forward.target.to_string(),
        route: forward.route.iter().map(hop).collect(),
        behind: forward.behind.as_ref().map(ForwardId::as_str),
        proof: match &forward.proof {
            Proof::Server { .. } => JsonProof::Server,
            Proof::Worker { name } => JsonProof::Worker { name },
            Proof::Connection => JsonProof::Connection,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::plan::tests::{plan, surroundings};
    use app::i18n::Language;

    const FILE: &str = "
server: {address: 10.0.0.1:8090, ssh: root@10.0.0.1}
bastions:
  bastion-02: {ssh: tunnel@10.20.0.1}
workers:
  npu-198-97: {ssh: root@10.20.0.20, via: bastion-02, health_check: true}
forwards:
  prometheus: {local: 9090, target: 10.20.0.20:9100, ssh: bastion-02}
";

    fn shown(form: FormArgs, language: Language) -> String {
        printed(&plan(FILE), form, &surroundings(), messages(language)).unwrap()
    }

    const TEXT: FormArgs = FormArgs { ssh: false, ssh_config: false, json: false };

    #[test]
    fn a_plan_is_told_in_english() {
        insta::assert_snapshot!(shown(TEXT, Language::En));
    }

    #[test]
    fn a_plan_is_told_in_chinese() {
        insta::assert_snapshot!(shown(TEXT, Language::Zh));
    }

    #[test]
    fn programs_get_what_an_agent_would_report() {
        let shown = shown(FormArgs { json: true, ..TEXT }, Language::En);
        insta::assert_json_snapshot!(serde_json::from_str::<serde_json::Value>(&shown).unwrap());
    }

    #[test]
    fn commands_say_where_to_run_them_and_what_for() {
        insta::assert_snapshot!(shown(FormArgs { ssh: true, ..TEXT }, Language::Zh));
    }

    #[test]
    fn a_configuration_says_how_to_use_it() {
        let shown = shown(FormArgs { ssh_config: true, ..TEXT }, Language::En);
        assert!(shown.starts_with("# ") && shown.contains("\nHost GPUStack-Tunnel-prometheus\n"), "{shown}");
    }
}
