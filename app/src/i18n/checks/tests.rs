use super::*;
use api::{
    CheckProblem, ClockMeasurement, CredentialKind, NodeAccess, NodeState, PortHolder, Severity, TimeService,
    WorkerUuid,
};

/// Each point in each of its forms.
fn every_seen() -> Vec<Seen> {
    let huawei = || "Huawei".to_owned();
    let access = Some(NodeAccess { mode: 0o660, uid: 0, gid: 1000 });
    let node = |state, access| Seen::Node { path: "/dev/davinci0".into(), state, access };
    let driver = |running: Option<&str>, installed: Option<&str>| Seen::Driver {
        vendor: huawei(),
        running: running.map(str::to_owned),
        installed: installed.map(str::to_owned),
    };
    let devices = |on_bus, without_driver| Seen::Devices { vendor: huawei(), on_bus, without_driver, listed: 8 };
    let container = |engine: Option<&str>, is_privileged, is_filtered| Seen::Container {
        engine: engine.map(str::to_owned),
        is_privileged,
        is_filtered,
    };
    let time = |service, source: Option<&str>| Seen::TimeService {
        service,
        is_synchronised: None,
        source: source.map(str::to_owned),
    };
    let credential = |kind, known_as: Option<&str>| Seen::Credential { kind, known_as: known_as.map(str::to_owned) };
    let url = || "http://10.0.0.1:8090".to_owned();
    let port = |holder| Seen::WorkerPort { port: 10150, holder };
    vec![
        Seen::System { os: "openEuler 22.03".into(), kernel: "5.10.0".into(), architecture: "aarch64".into() },
        Seen::System { os: String::new(), kernel: "5.10.0".into(), architecture: "aarch64".into() },
        container(None, false, false),
        container(Some("Docker"), true, false),
        container(Some("Docker"), false, true),
        Seen::DataDir { path: "/var/lib/gpustack".into(), available_bytes: Some(1 << 34), total_bytes: Some(1 << 40) },
        Seen::DataDir { path: "/var/lib/gpustack".into(), available_bytes: None, total_bytes: None },
        Seen::OpenFiles { limit: Some(1024) },
        Seen::OpenFiles { limit: None },
        Seen::Accelerators { found: 0 },
        Seen::Accelerators { found: 1 },
        Seen::Accelerators { found: 8 },
        devices(0, 0),
        devices(8, 0),
        devices(8, 2),
        Seen::Tool { tool: "npu-smi".into(), path: Some("/usr/local/sbin/npu-smi".into()) },
        Seen::Tool { tool: "npu-smi".into(), path: None },
        node(NodeState::Usable, access),
        node(NodeState::Forbidden, access),
        node(NodeState::Missing, None),
        driver(Some("25.2.0"), Some("25.5.1")),
        driver(Some("25.2.0"), None),
        driver(None, Some("25.2.0")),
        driver(None, None),
        Seen::Firmware { vendor: huawei(), versions: vec!["7.5.0".into()] },
        Seen::Firmware { vendor: huawei(), versions: Vec::new() },
        Seen::Runtime { vendor: huawei(), version: Some("8.2".into()) },
        Seen::Runtime { vendor: "AMD".into(), version: None },
        Seen::Variable { name: "ASCEND_VISIBLE_DEVICES".into(), value: "0-3".into() },
        Seen::Variable { name: "ASCEND_VISIBLE_DEVICES".into(), value: String::new() },
        Seen::PersistenceMode { off: Vec::new() },
        Seen::PersistenceMode { off: vec![0, 1] },
        time(Some(TimeService::Chrony), Some("203.0.113.15")),
        time(Some(TimeService::Timesyncd), None),
        time(None, None),
        Seen::HardwareClock { is_local_time: false },
        Seen::HardwareClock { is_local_time: true },
        Seen::TimeZone { name: Some("Asia/Shanghai".into()), offset_s: 28_800 },
        Seen::TimeZone { name: None, offset_s: -12_600 },
        Seen::Proxies { variables: Vec::new() },
        Seen::Proxies { variables: vec!["http_proxy=http://p:1".into()] },
        Seen::Server { url: url(), version: Some("0.1.0".into()), took_ms: Some(12) },
        Seen::Server { url: url(), version: None, took_ms: None },
        credential(CredentialKind::Token, Some("npu-1")),
        credential(CredentialKind::Token, None),
        credential(CredentialKind::Key, Some("npu-1")),
        credential(CredentialKind::Key, None),
        credential(CredentialKind::Nothing, None),
        Seen::ServerClock { measured: Some(ClockMeasurement { offset_ms: 20, error_ms: 4 }) },
        Seen::ServerClock { measured: None },
        port(PortHolder::Nobody),
        port(PortHolder::ThisWorker),
        port(PortHolder::OtherWorker),
        port(PortHolder::OtherProgram),
        port(PortHolder::Unknown),
        Seen::WayBack { url: url(), round_trip_ms: Some(0.8) },
        Seen::WayBack { url: url(), round_trip_ms: None },
    ]
}

fn uuid() -> WorkerUuid {
    serde_json::from_str("\"00000000-0000-0000-0000-000000000001\"").unwrap()
}

fn every_host_reason() -> Vec<HostReason> {
    let address = || "10.0.0.1:8090".to_owned();
    let url = || "http://10.0.0.1:8090".to_owned();
    let path = || "/var/lib/gpustack".to_owned();
    let text = || "text".to_owned();
    vec![
        HostReason::ServerNotGiven {},
        HostReason::ServerNotReached {},
        HostReason::TokenNeeded {},
        HostReason::WayBackNotTried {},
        HostReason::ServerTooOld {},
        HostReason::TimeServiceMissing {},
        HostReason::TimeServiceOfHost {},
        HostReason::TimeServiceUnknown {},
        HostReason::SeccompFilter {},
        HostReason::ProxyInTheWay { host: text() },
        HostReason::OpenFilesFew { limit: 256 },
        HostReason::DataDirUnusable { path: path(), error: text() },
        HostReason::PortInUse { port: 10150 },
        HostReason::PortOfOtherWorker { port: 10150, worker_uuid: uuid() },
        HostReason::PortUnusable { port: 10150, error: text() },
        HostReason::PersistenceModeOff {},
        HostReason::ServerNotResolved { host: text() },
        HostReason::ServerRefused { address: address() },
        HostReason::ServerNoRoute { address: address() },
        HostReason::ServerTimedOut { address: address(), timeout_s: 10 },
        HostReason::ServerClosed { address: address() },
        HostReason::ServerNetwork { address: address(), detail: text() },
        HostReason::CertificateUnknown { address: address() },
        HostReason::CertificateOther { address: address(), expected: text(), presented: text() },
        HostReason::CertificateName { address: address(), names: text() },
        HostReason::TlsNotSpoken { address: address() },
        HostReason::TlsFailed { address: address(), detail: text() },
        HostReason::HttpNotSpoken { address: address() },
        HostReason::ServerIsAnother { url: url(), status: 404 },
        HostReason::ServerRedirects { url: url(), location: url() },
        HostReason::GatewayFailed { address: address(), status: 502 },
        HostReason::UpgradeTakenAway { address: address() },
        HostReason::ServerBusy {},
        HostReason::TokenMissing {},
        HostReason::TokenWrong { address: address() },
        HostReason::WorkerNotKnown { address: address() },
        HostReason::ServerKeyChanged { address: address(), file: path() },
        HostReason::ServerNotProven { address: address() },
        HostReason::ServerRefuses { message: text() },
    ]
}

fn every_check() -> Vec<Check> {
    let good = every_seen().into_iter().map(Check::good);
    let bad = every_host_reason().into_iter().map(|reason| {
        let problem = CheckProblem { severity: Severity::Error, trouble: reason.into() };
        Check { seen: Seen::Proxies { variables: Vec::new() }, problem: Some(problem) }
    });
    good.chain(bad).collect()
}

fn texts(language: Language) -> Vec<(Check, CheckText)> {
    let checks = every_check();
    let examination = Examination {
        version: String::new(),
        hostname: String::new(),
        os: "openEuler 22.03".to_owned(),
        at_ms: 1_764_504_093_000,
        checks: checks.clone(),
    };
    checks.into_iter().zip(examination_text(&examination, language)).collect()
}

#[test]
fn every_point_and_every_cause_has_plain_words_in_every_language() {
    for language in Language::ALL {
        for (check, text) in texts(language) {
            assert!(!text.title.trim().is_empty() && !text.what.trim().is_empty(), "{check:?} {language:?}");
            for part in [&text.title, &text.what, &text.next_step] {
                assert!(!part.contains(['<', '>', '{', '}']), "{check:?} {language:?}: {part}");
            }
        }
    }
}

#[test]
fn chinese_words_are_chinese() {
    for (check, text) in texts(Language::Zh) {
        let is_figure = matches!(
            check.seen,
            Seen::TimeZone { .. }
                | Seen::System { .. }
                | Seen::Firmware { .. }
                | Seen::Runtime { .. }
                | Seen::DataDir { .. }
        ) || matches!(&check.seen, Seen::Proxies { variables } if !variables.is_empty())
            || matches!(check.seen, Seen::WayBack { round_trip_ms: None, .. });
        let is_chinese = |part: &str| part.is_empty() || part.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
        assert!((is_figure || is_chinese(&text.what)) && is_chinese(&text.next_step), "{check:?}: {text:?}");
    }
}

#[test]
fn a_way_back_that_fails_asks_for_nothing_once_the_link_is_known_to_work() {
    let way_back = Check::bad(
        Seen::WayBack { url: "http://10.0.0.7:10150/healthz".into(), round_trip_ms: None },
        Severity::Warning,
        Reason::DirectTimedOut { url: "http://10.0.0.7:10150/healthz".into(), timeout_s: 5 },
    );
    let credential = Check::good(Seen::Credential { kind: CredentialKind::Token, known_as: None });
    let examination = Examination {
        version: String::new(),
        hostname: String::new(),
        os: String::new(),
        at_ms: 0,
        checks: vec![credential, way_back],
    };
    let text = examination_text(&examination, Language::En);
    assert!(text[1].next_step.starts_with("Nothing has to be done"), "{}", text[1].next_step);
}

#[test]
fn an_offset_from_utc_has_hours_and_minutes() {
    for (offset_s, expected) in [(28_800, "+08:00"), (0, "+00:00"), (-12_600, "-03:30"), (20_700, "+05:45")] {
        assert_eq!(utc_offset(offset_s), expected);
    }
}
