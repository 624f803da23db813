use super::*;
use api::SshStep;

const NOW_MS: i64 = 1_764_504_093_000;

/// One of every cause, in each of its forms. The match makes a new one fail to compile until it is added here.
#[expect(clippy::too_many_lines, reason = "one example for each cause; the compiler sees that none is missing")]
fn every_cause() -> Vec<FaultCause> {
    let address = || "10.20.0.20:22".to_owned();
    let target = || "127.0.0.1:8090".to_owned();
    let url = || "http://127.0.0.1:8090/healthz".to_owned();
    let detail = || "connection reset by peer".to_owned();
    let user = || "root".to_owned();
    let fingerprint = || "SHA256:Nh0Me49Zh9fDw/VYUfq43IJmI1T+XrjiYONPND8GzaM".to_owned();
    let slow = |step| FaultCause::TooSlow { step, deadline_s: 10 };
    let nothing_answers =
        |asked_on: Option<&str>, target_from: Option<&str>, detail: &str| FaultCause::NothingAnswers {
            url: url(),
            detail: detail.to_owned(),
            asked_on: asked_on.map(str::to_owned),
            target: Some("10.0.0.1:8090".to_owned()),
            target_from: target_from.map(str::to_owned),
        };
    let causes = vec![
        FaultCause::NameUnknown { host: "npu-1".to_owned() },
        FaultCause::SshRefused { address: address() },
        FaultCause::SshNoAnswer { address: address() },
        FaultCause::NoRoute { address: address() },
        FaultCause::SshConnect { address: address(), detail: detail() },
        FaultCause::NotSsh { first_line: "HTTP/1.1 400 Bad Request".to_owned() },
        FaultCause::ClosedBeforeGreeting { said: None },
        FaultCause::ClosedBeforeGreeting { said: Some("Not allowed at this time".to_owned()) },
        slow(SshStep::Connect),
        slow(SshStep::Greet),
        slow(SshStep::AgreeOnKeys),
        slow(SshStep::LetIn),
        FaultCause::NoCommonProtocol { detail: detail() },
        FaultCause::HostKeyUnknown { algorithm: "ssh-ed25519".to_owned(), fingerprint: fingerprint() },
        FaultCause::HostKeyChanged { fingerprint: fingerprint(), known: vec!["/root/.ssh/known_hosts:3".to_owned()] },
        FaultCause::HostKeyRevoked { fingerprint: fingerprint(), place: "/root/.ssh/known_hosts:4".to_owned() },
        FaultCause::HostCertificate { key_id: "host".to_owned(), detail: detail() },
        FaultCause::KnownHosts { detail: detail() },
        FaultCause::KeyMissing { path: "/root/.ssh/id_ed25519".to_owned() },
        FaultCause::KeyNotPrivate { path: "/root/.ssh/my key".to_owned(), mode: "644".to_owned() },
        FaultCause::KeyUnusable { detail: detail() },
        FaultCause::CertificateNotYetValid { key_id: "a".to_owned(), valid_after_ms: NOW_MS, clock_ms: 0 },
        FaultCause::CertificateExpired { key_id: "a".to_owned(), valid_before_ms: NOW_MS - 1, clock_ms: NOW_MS },
        FaultCause::LoginRefused { user: user(), tried: Vec::new() },
        FaultCause::LoginRefused { user: user(), tried: vec!["/root/.ssh/id_ed25519".to_owned()] },
        FaultCause::KeyNotEnough { user: user(), offered: vec!["password".to_owned()] },
        FaultCause::TooManyKeys { tried: 6 },
        FaultCause::PortTakenHere { address: target(), agent: None, pid: None },
        FaultCause::PortTakenHere { address: target(), agent: Some("bastion-02".to_owned()), pid: Some(4711) },
        FaultCause::ListenHere { address: target(), detail: detail() },
        FaultCause::PortTakenThere { address: target() },
        FaultCause::StaleListener { address: target(), waited_s: 40 },
        FaultCause::ListenForbidden { address: target() },
        FaultCause::PrivilegedPort { address: target() },
        FaultCause::ListenDenied { address: target() },
        FaultCause::LoopbackOnly { address: target() },
        FaultCause::TargetForbidden { target: target() },
        FaultCause::TargetRefused { target: target(), detail: None },
        FaultCause::TargetRefused { target: target(), detail: Some(detail()) },
        FaultCause::TargetNoAnswer { target: target(), deadline_s: 10 },
        FaultCause::KeepAliveLost { silent_s: 45 },
        FaultCause::SessionClosed {},
        FaultCause::SessionEnded { message: "shutting down".to_owned() },
        FaultCause::SessionBroken { detail: detail() },
        nothing_answers(None, Some("root@10.0.0.1:22"), "no answer within 10 s"),
        nothing_answers(Some("root@10.0.0.1:22"), None, "the connection was closed without an answer: x"),
        FaultCause::NothingAnswers { url: url(), detail: detail(), asked_on: None, target: None, target_from: None },
        FaultCause::WrongAnswer { url: url(), status: Some(404) },
        FaultCause::WrongAnswer { url: url(), status: None },
        FaultCause::WrongServer { url: url(), expected: Some(fingerprint()), answered: Some("SHA256:x".to_owned()) },
        FaultCause::WrongServer { url: url(), expected: None, answered: None },
        FaultCause::WrongWorker { expected: "npu-1".to_owned(), answered: "npu-2".to_owned() },
        FaultCause::ProbeForbidden { address: target() },
        FaultCause::DependsOn { forward: "server".to_owned() },
    ];
    for cause in &causes {
        match cause {
            FaultCause::NameUnknown { .. }
            | FaultCause::SshRefused { .. }
            | FaultCause::SshNoAnswer { .. }
            | FaultCause::NoRoute { .. }
            | FaultCause::SshConnect { .. }
            | FaultCause::NotSsh { .. }
            | FaultCause::ClosedBeforeGreeting { .. }
            | FaultCause::TooSlow { .. }
            | FaultCause::NoCommonProtocol { .. }
            | FaultCause::HostKeyUnknown { .. }
            | FaultCause::HostKeyChanged { .. }
            | FaultCause::HostKeyRevoked { .. }
            | FaultCause::HostCertificate { .. }
            | FaultCause::KnownHosts { .. }
            | FaultCause::KeyMissing { .. }
            | FaultCause::KeyNotPrivate { .. }
            | FaultCause::KeyUnusable { .. }
            | FaultCause::CertificateNotYetValid { .. }
            | FaultCause::CertificateExpired { .. }
            | FaultCause::LoginRefused { .. }
            | FaultCause::KeyNotEnough { .. }
            | FaultCause::TooManyKeys { .. }
            | FaultCause::PortTakenHere { .. }
            | FaultCause::ListenHere { .. }
            | FaultCause::PortTakenThere { .. }
            | FaultCause::StaleListener { .. }
            | FaultCause::ListenForbidden { .. }
            | FaultCause::PrivilegedPort { .. }
            | FaultCause::ListenDenied { .. }
            | FaultCause::LoopbackOnly { .. }
            | FaultCause::TargetForbidden { .. }
            | FaultCause::TargetRefused { .. }
            | FaultCause::TargetNoAnswer { .. }
            | FaultCause::KeepAliveLost { .. }
            | FaultCause::SessionClosed { .. }
            | FaultCause::SessionEnded { .. }
            | FaultCause::SessionBroken { .. }
            | FaultCause::NothingAnswers { .. }
            | FaultCause::WrongAnswer { .. }
            | FaultCause::WrongServer { .. }
            | FaultCause::WrongWorker { .. }
            | FaultCause::ProbeForbidden { .. }
            | FaultCause::DependsOn { .. } => {}
        }
    }
    causes
}

fn every_text(language: Language) -> String {
    let text = |cause| {
        let fault = TunnelFault { hop: Some("root@10.20.0.20:22".to_owned()), cause };
        let FaultText { what, next_step, lines } = fault_text(&fault, language, NOW_MS);
        let lines = lines.into_iter().map(|line| format!("    {line}"));
        [what, format!("  {next_step}")].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    };
    every_cause().into_iter().map(text).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_fault_says_what_happened_and_what_to_do() {
    insta::assert_snapshot!("english", every_text(Language::En));
    insta::assert_snapshot!("chinese", every_text(Language::Zh));
}

#[test]
fn no_text_is_empty_and_chinese_ones_are_chinese() {
    for cause in every_cause() {
        let fault = TunnelFault { hop: None, cause };
        let english = fault_text(&fault, Language::En, NOW_MS);
        assert!(!english.what.is_empty() && !english.next_step.is_empty(), "{fault:?}");
        let chinese = fault_text(&fault, Language::Zh, NOW_MS);
        for text in [&chinese.what, &chinese.next_step] {
            assert!(text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)), "{fault:?}: {text}");
        }
    }
}

#[test]
fn what_programs_say_is_told_in_the_readers_language_or_set_off() {
    assert_eq!(detail("Connection refused", Language::Zh), "连接被拒绝，该处没有程序在监听");
    assert_eq!(detail("no answer within 10 s", Language::Zh), "10 秒内没有应答");
    assert_eq!(detail("open failed", Language::Zh), "系统提示：“open failed”");
    assert_eq!(detail("open failed", Language::En), "open failed");
}

#[test]
fn a_command_holds_a_file_name_together() {
    assert_eq!(shell_word("/root/.ssh/id_ed25519"), "/root/.ssh/id_ed25519");
    assert_eq!(shell_word("/root/my key; rm -rf '/'"), r"'/root/my key; rm -rf '\''/'\'''");
}
