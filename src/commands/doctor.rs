//! `gpustack doctor`: what is wrong with this host, before and after it joins, and what to do.

use super::exit::CommandError;
use super::{language, output, stop};
use crate::config::{Config, Environment, Key};
use crate::doctor::{self, Findings, bundle};
use api::{Check, Examination, Verdict};
use app::i18n::Language;
use app::i18n::checks::{CheckText, examination_text, summary, verdict_word};
use chrono::{DateTime, Local};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use unicode_width::UnicodeWidthStr;

const EXIT: &str = "Ends with 0 when nothing failed, with 1 when something did, with 2 when the command line is wrong. \
The settings are those of `gpustack start`: flags, GPUSTACK_* variables, the configuration file.";

/// What to look at.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = EXIT)]
pub struct DoctorArgs {
    /// Try the way to this server
    #[arg(short, long, value_name = "URL", help = "Try the way to this server, e.g. http://10.0.0.1:8090")]
    server_url: Option<String>,
    /// The join token; without it only whether the server is there is looked at
    #[arg(short, long, value_name = "TOKEN")]
    token: Option<String>,
    /// The address at which the server is to reach this worker [default: found out]
    #[arg(long, value_name = "ADDRESS")]
    worker_ip: Option<String>,
    /// Take the address of this network interface
    #[arg(long, value_name = "INTERFACE")]
    worker_ifname: Option<String>,
    /// The port on which the worker answers [default: 10150]
    #[arg(long, value_name = "PORT")]
    worker_port: Option<String>,
    /// Trust the server's certificate if one of these authorities issued it, in PEM
    #[arg(long, value_name = "FILE")]
    ca_file: Option<String>,
    /// Trust a server that shows the certificate with this fingerprint, and no other
    #[arg(long, value_name = "FINGERPRINT")]
    server_fingerprint: Option<String>,
    /// The worker's name; taken so that a worker's flags can be given as they are
    #[arg(long, value_name = "NAME")]
    worker_name: Option<String>,
    /// Kept free for the system; taken like the name
    #[arg(long, value_name = "JSON", hide_short_help = true)]
    system_reserved: Option<String>,
    /// How links are encrypted; taken like the name
    #[arg(long, value_name = "CIPHER", hide_short_help = true)]
    data_encryption: Option<String>,
    /// How often links take new keys; taken like the name
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    key_rotation: Option<String>,
    /// Taken like the name: a doctor has no log
    #[arg(short, long, hide_short_help = true)]
    debug: bool,
    /// Where the worker keeps its state [default: /var/lib/gpustack]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Read settings from a YAML file
    #[arg(long, value_name = "FILE")]
    config_file: Option<PathBuf>,

    /// Print JSON: each check with what was seen, its verdict, the reason's code and parameters, and the words
    #[arg(long)]
    json: bool,
    /// Write a file to hand on, with all that was seen and what the vendors' tools printed, and without secrets
    #[arg(long, value_name = "FILE")]
    #[expect(clippy::option_option, reason = "not given, given without a name, given with one")]
    bundle: Option<Option<PathBuf>>,
    /// The language of the words: en or zh [default: the locale's]
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<String>,
}

pub fn run(args: DoctorArgs) -> Result<(), CommandError> {
    let variables = language::text_variables();
    let language = language::choose(args.language.as_deref(), &variables)?;
    let (is_json, bundle) = (args.json, args.bundle.clone());
    let (flags, config_file) = args.into_flags();
    let config = Config::load(flags, config_file.as_deref(), &Environment::of_process())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let looked = runtime.block_on(async {
        let stopping = stop::on_signal()?;
        let detection = doctor::thorough();
        tokio::select! {
            findings = doctor::examine(&config, &variables, &detection) => Ok(findings),
            // what runs by then, as a tool that hangs, ends with the runtime
            () = stopping.cancelled() => Err(CommandError::failed("interrupted")),
        }
    });
    drop(runtime);
    let findings = looked?;
    let report = report(&findings.examination, language);
    let printed = if is_json { json(&findings.examination, language)? } else { report.clone() };
    output::print(&printed)?;
    if let Some(file) = bundle {
        write_bundle(file, &findings, &report, language)?;
    }
    match findings.examination.count(Verdict::Failed) {
        0 => Ok(()),
        count => Err(CommandError::failed(failed(count, language))),
    }
}

fn write_bundle(
    file: Option<PathBuf>,
    findings: &Findings,
    report: &str,
    language: Language,
) -> Result<(), CommandError> {
    let examination = &findings.examination;
    let path = file.unwrap_or_else(|| PathBuf::from(bundle_name(examination)));
    bundle::write(&path, findings, report).map_err(CommandError::failed)?;
    let path = path.display();
    // beside a report in JSON, standard output is for programs
    eprintln!(
        "{}",
        match language {
            Language::En => format!("The bundle is in {path}. Look through it before you hand it on."),
            Language::Zh => format!("诊断包已写入 {path}，交给他人之前请先查看内容。"),
        }
    );
    Ok(())
}

/// A host's name may hold whatever somebody gave it.
fn bundle_name(examination: &Examination) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let host: String = examination.hostname.chars().filter(is_plain).collect();
    format!("gpustack-doctor-{host}-{}.tar.gz", local_time(examination.at_ms).format("%Y%m%d-%H%M%S"))
}

fn local_time(at_ms: i64) -> DateTime<Local> {
    DateTime::from_timestamp_millis(at_ms).unwrap_or_default().with_timezone(&Local)
}

fn failed(count: usize, language: Language) -> String {
    match (language, count) {
        (Language::En, 1) => "1 check failed".to_owned(),
        (Language::En, _) => format!("{count} checks failed"),
        (Language::Zh, _) => format!("{count} 项检查失败"),
    }
}

fn report(examination: &Examination, language: Language) -> String {
    let texts = examination_text(examination, language);
    let width = |text: &str| text.width();
    let verdicts = examination.checks.iter().map(Check::verdict);
    let words: Vec<&str> = verdicts.map(|verdict| verdict_word(verdict, language)).collect();
    let word_width = words.iter().map(|word| width(word)).max().unwrap_or(0);
    let title_width = texts.iter().map(|text| width(&text.title)).max().unwrap_or(0);
    let mut report = format!(
        "gpustack {} · {} · {}\n\n",
        examination.version,
        examination.hostname,
        local_time(examination.at_ms).format("%Y-%m-%d %H:%M:%S %:z")
    );
    for (word, text) in words.iter().zip(&texts) {
        line(&mut report, (word, word_width), text, title_width);
    }
    report.push('\n');
    report.push_str(&summary(examination, language));
    report.push('\n');
    report
}

fn line(report: &mut String, (word, word_width): (&str, usize), text: &CheckText, title_width: usize) {
    let CheckText { title, what, next_step, commands } = text;
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.width()));
    let indent = " ".repeat(word_width + title_width + 4);
    let mut lines = what.lines();
    let first = lines.next().unwrap_or_default();
    // writing to a String cannot fail
    let _ = writeln!(report, "{word}{}  {title}{}  {first}", pad(word, word_width), pad(title, title_width));
    for more in lines {
        let _ = writeln!(report, "{indent}{more}");
    }
    if !next_step.is_empty() {
        let _ = writeln!(report, "{indent}→ {next_step}");
    }
    for command in commands {
        let _ = writeln!(report, "{indent}    {command}");
    }
}

#[derive(Serialize)]
struct JsonReport<'a> {
    version: &'a str,
    hostname: &'a str,
    os: &'a str,
    at_ms: i64,
    /// The worst verdict of what was looked at.
    verdict: Verdict,
    checks: Vec<JsonCheck<'a>>,
}

#[derive(Serialize)]
struct JsonCheck<'a> {
    #[serde(flatten)]
    check: &'a Check,
    verdict: Verdict,
    title: String,
    what: String,
    next_step: String,
    commands: Vec<String>,
}

fn json(examination: &Examination, language: Language) -> Result<String, CommandError> {
    let texts = examination_text(examination, language);
    let checks = examination.checks.iter().zip(texts).map(|(check, text)| {
        let CheckText { title, what, next_step, commands } = text;
        JsonCheck { verdict: check.verdict(), check, title, what, next_step, commands }
    });
    let Examination { version, hostname, os, at_ms, .. } = examination;
    let looked_at = examination.checks.iter().map(Check::verdict).filter(|verdict| *verdict != Verdict::NotChecked);
    let verdict = looked_at.max().unwrap_or(Verdict::Ok);
    let report = JsonReport { version, hostname, os, at_ms: *at_ms, verdict, checks: checks.collect() };
    let mut text = serde_json::to_string_pretty(&report).map_err(CommandError::failed)?;
    text.push('\n');
    Ok(text)
}

impl DoctorArgs {
    fn into_flags(self) -> (BTreeMap<Key, String>, Option<PathBuf>) {
        let all = [
            (Key::DataDir, self.data_dir),
            (Key::Token, self.token),
            (Key::ServerUrl, self.server_url),
            (Key::WorkerIp, self.worker_ip),
            (Key::WorkerIfname, self.worker_ifname),
            (Key::WorkerPort, self.worker_port),
            (Key::WorkerName, self.worker_name),
            (Key::SystemReserved, self.system_reserved),
            (Key::DataEncryption, self.data_encryption),
            (Key::KeyRotation, self.key_rotation),
            (Key::Debug, self.debug.then(|| "true".to_owned())),
            (Key::CaFile, self.ca_file),
            (Key::ServerFingerprint, self.server_fingerprint),
        ];
        let given = all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        (given, self.config_file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{HostReason, NodeState, Reason, Seen, Severity};

    fn examination() -> Examination {
        let node = |path: &str, state| Seen::Node { path: path.to_owned(), state, access: None };
        let missing = Reason::DeviceNodeMissing { node: "/dev/hisi_hdc".to_owned() };
        Examination {
            version: "0.1.0".to_owned(),
            hostname: "npu-1".to_owned(),
            os: "openEuler 22.03".to_owned(),
            at_ms: 1_764_504_093_000,
            checks: vec![
                Check::good(node("/dev/davinci0", NodeState::Usable)),
                Check::bad(node("/dev/hisi_hdc", NodeState::Missing), Severity::Error, missing),
                Check::bad(
                    Seen::Proxies { variables: vec!["http_proxy=http://p:1".to_owned()] },
                    Severity::Warning,
                    HostReason::ProxyInTheWay { host: "10.0.0.1".to_owned() },
                ),
                Check::bad(
                    Seen::Server { url: String::new(), version: None, took_ms: None },
                    Severity::Ok,
                    HostReason::ServerNotGiven {},
                ),
            ],
        }
    }

    fn body(report: &str) -> &str {
        report.split_once("\n\n").unwrap().1
    }

    #[test]
    fn people_get_a_line_for_each_check_and_what_to_do_below_it() {
        insta::assert_snapshot!(body(&report(&examination(), Language::En)));
        insta::assert_snapshot!(body(&report(&examination(), Language::Zh)));
    }

    #[test]
    fn programs_get_codes_and_words() {
        let value: serde_json::Value = serde_json::from_str(&json(&examination(), Language::En).unwrap()).unwrap();
        assert_eq!(value["verdict"], "failed");
        let check = &value["checks"][1];
        assert_eq!((&check["check"], &check["verdict"]), (&"node".into(), &"failed".into()));
        assert_eq!(check["problem"]["reason"], "device_node_missing");
        assert!(check["next_step"].as_str().unwrap().contains("--device=/dev/hisi_hdc"));
    }

    #[test]
    fn a_bundles_name_holds_nothing_but_plain_letters() {
        let examination = Examination { hostname: "../a b/主机".to_owned(), ..examination() };
        let name = bundle_name(&examination);
        assert!(name.starts_with("gpustack-doctor-..ab-") && !name.contains('/'), "{name}");
    }
}
