use super::super::problem::{
    Clash, Expected, FileProblems, KeyFault, Lack, Named, PortTaken, Problem, Rule, TokenFault,
};
use super::super::syntax::Slip;
use super::super::yaml::Position;
use super::*;
use crate::config::TokenError;
use api::ServerUrlError;
use std::path::PathBuf;

fn text(text: &str) -> String {
    text.to_owned()
}

fn path(text: &str) -> PathBuf {
    text.into()
}

fn every_slip() -> Vec<Slip> {
    vec![
        Slip::Tab,
        Slip::NoColon { line: text("here bastion") },
        Slip::NoSpace { key: text("here"), value: text("bastion") },
        Slip::WideColon { key: text("here") },
        Slip::ColonInValue,
        Slip::OpenQuote,
        Slip::BehindQuote,
        Slip::Escape,
        Slip::OpenBracket { bracket: '[' },
        Slip::NoComma,
        Slip::StrayBracket,
        Slip::Indentation,
        Slip::ListBehindKey,
        Slip::NeedsQuotes { first: '@' },
        Slip::Other { said: text("unexpected eof") },
    ]
}

fn every_rule() -> Vec<Rule> {
    let mut rules = vec![
        Rule::Switch,
        Rule::Account,
        Rule::BareAccount,
        Rule::Brackets,
        Rule::User,
        Rule::WhoLogsIn,
        Rule::NoUrl,
        Rule::Address,
        Rule::NoWildcard,
        Rule::NoStar,
        Rule::Port,
        Rule::PlainPath,
        Rule::NoHome,
        Rule::WholePath,
        Rule::KeepAlive,
        Rule::Unanswered,
        Rule::WorkerName(128),
    ];
    let urls = [
        ServerUrlError::Empty,
        ServerUrlError::Scheme(text("ftp")),
        ServerUrlError::UserInfo,
        ServerUrlError::Query,
        ServerUrlError::NoHost,
        ServerUrlError::Host(text("a b")),
        ServerUrlError::Port(text("x")),
    ];
    rules.extend(urls.map(Rule::ServerUrl));
    rules
}

fn every_key_fault() -> Vec<KeyFault> {
    let key = || path("/k");
    let unreadable = |owner| KeyFault::Unreadable { path: key(), cause: SystemCause::NotAllowed, owner };
    vec![
        KeyFault::PublicHalf { path: path("/k.pub"), private: key() },
        KeyFault::Encrypted { path: key() },
        KeyFault::Folder { path: key() },
        unreadable(None),
        unreadable(Some((0, 1000))),
        KeyFault::Open { path: key(), mode: 0o644 },
        KeyFault::NoKey { path: key() },
        KeyFault::NoCertificate { path: path("/k-cert.pub") },
        KeyFault::OtherKey { certificate: path("/k-cert.pub"), key: key() },
    ]
}

/// One of every fault, in each of its forms.
fn every_fault() -> Vec<Fault> {
    let (key, name) = (|| text("workers.npu-1.ssh"), || text("npu-1"));
    let token = |fault| Fault::TokenFile { key: text("token_file"), path: path("/t"), fault };
    let mut faults: Vec<Fault> = every_slip().into_iter().map(|slip| Fault::Syntax { slip }).collect();
    faults.extend([
        Fault::TooLarge { bytes: 2_000_000 },
        Fault::TooDeep,
        Fault::Anchor,
        Fault::Tag,
        Fault::SecondDocument,
        Fault::KeyIsNoWord,
        Fault::Empty,
        Fault::UnknownKey { table: text("a"), key: text("vi"), nearest: Some(text("via")), known: vec!["ssh", "via"] },
        Fault::UnknownKey { table: String::new(), key: text("x"), nearest: None, known: vec!["ssh", "via"] },
        Fault::NoSpace { table: String::new(), key: text("id"), value: text("x"), is_wide: false },
        Fault::NoSpace { table: String::new(), key: text("id"), value: text("x"), is_wide: true },
        Fault::DottedKey { key: text("server.address"), table: text("server"), inner: text("address") },
        Fault::DuplicateKey { key: key(), first: 3 },
        Fault::WrongType { key: String::new(), expected: Expected::Table },
        Fault::WrongType { key: text("ssh"), expected: Expected::Common },
        Fault::WrongType { key: key(), expected: Expected::OneValue },
        Fault::HostKeyUnknown { host: text("10.0.0.1:22") },
        Fault::KnownHosts { path: path("/known"), cause: SystemCause::NotAllowed },
        Fault::NoValue { key: key() },
        Fault::Placeholder { key: key(), value: text("<ip>") },
        Fault::NoEffect { key: text("workers.npu-1.health_port"), needs: "health_check: true" },
        Fault::UnknownName { key: text("here"), name: name(), of: Named::Here, nearest: None },
        Fault::UnknownName { key: key(), name: name(), of: Named::Bastion, nearest: Some(text("npu-2")) },
        Fault::UnknownName { key: key(), name: name(), of: Named::Worker, nearest: None },
        Fault::NoSuchEnd { key: text("forwards.up.ssh"), name: text("zz"), nearest: Some(text("z")) },
        Fault::Circle { names: vec![text("a"), text("b"), text("a")] },
        Fault::PassesTwice { end: name(), hop: text("t@b:22") },
        Fault::EndsHere { name: name() },
        Fault::SameWorkerName { name: name(), first_line: 4 },
        Fault::ForwardNameTaken { id: text("npu-1.server"), first: 4 },
        Fault::HealthCheckNeedsServer { worker: name() },
        Fault::PortsDiffer { worker: name(), worker_port: 10150, health_port: 10151 },
        Fault::PortRemembered { worker: name(), port: 10150, other: text("npu-2"), file: text("/s/ports.json") },
        Fault::NoPortLeft { worker: name(), file: text("/s/ports.json") },
        Fault::Nothing,
        Fault::StateDirIsFile { path: path("/s") },
        Fault::StateDirTooLong { bytes: 200, max: 95 },
        Fault::NoIdentity { key: name() },
        Fault::NoAgent { key: text("ssh.agent") },
        token(TokenFault::Unreadable { cause: SystemCause::NotFound }),
        token(TokenFault::Open { mode: 0o644 }),
        token(TokenFault::Content(TokenError::Empty)),
        token(TokenFault::Content(TokenError::Several)),
        token(TokenFault::Content(TokenError::Character)),
    ]);
    faults.extend(every_rule().into_iter().map(|rule| Fault::BadValue { key: key(), value: text("x"), rule }));
    faults.extend(every_key_fault().into_iter().map(|fault| Fault::Key { key: text("ssh.identity"), fault }));
    let names = [Named::Agent, Named::AgentByHost, Named::Bastion, Named::Worker, Named::Forward];
    faults.extend(names.map(|of| Fault::BadName { name: text("a b"), max: 80, of }));
    faults.extend(
        [Named::Bastion, Named::Worker, Named::Forward].map(|of| Fault::ReservedName { name: text("server"), of }),
    );
    let server = [Lack::Server, Lack::ReportServer];
    faults.extend(server.map(|lack| Fault::Missing { table: String::new(), lack }));
    let lacks = [Lack::WayToServer, Lack::EndAtServer, Lack::ServerAddress];
    faults.extend(lacks.map(|lack| Fault::Missing { table: text("server"), lack }));
    let lacks = [Lack::Login, Lack::End, Lack::Target, Lack::Listen];
    faults.extend(lacks.map(|lack| Fault::Missing { table: text("forwards.up"), lack }));
    let clashes =
        [Clash::CertificateOfOneKey, Clash::UserTwice, Clash::BothEnds, Clash::NamedEnd, Clash::NoForwardNeeded];
    faults.extend(clashes.map(|clash| Fault::Conflict { key: key(), clash }));
    let port = |host: Option<&str>, remedy| {
        let (forward, listen, other) = (text("b"), text("127.0.0.1:9090"), text("a"));
        Fault::PortTaken(Box::new(PortTaken { forward, listen, host: host.map(text), other, other_line: 3, remedy }))
    };
    faults.extend([port(None, None), port(Some("10.0.0.1"), Some("health_port"))]);
    faults
}

fn every_text(language: Language) -> String {
    every_fault().iter().map(|fault| self::fault(fault, language) + "\n").collect()
}

#[test]
fn every_fault_says_what_is_wrong_and_what_to_write() {
    insta::assert_snapshot!("english", every_text(Language::En));
    insta::assert_snapshot!("chinese", every_text(Language::Zh));
}

#[test]
fn chinese_sentences_hold_no_english_ones() {
    for fault in every_fault() {
        let said = self::fault(&fault, Language::Zh);
        // what stands in a file, and what was quoted, is as it is
        let own: String = said.split('`').step_by(2).collect::<Vec<_>>().join("").split('“').next().unwrap().to_owned();
        let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
        let words: Vec<&str> = own.split(' ').collect();
        assert!(!words.windows(3).any(|three| three.iter().all(|word| is_word(word))), "{said}");
    }
}

#[test]
fn problems_are_told_line_by_line_in_either_language() {
    let problem = Problem::new(Position { line: 2, column: 5 }, Fault::Nothing);
    let problems = FileProblems::new("tunnels.yaml", vec![problem]);
    assert!(problems.text(Language::Zh).starts_with("tunnels.yaml:2:5: 没有任何要转发的内容"));
    assert!(problems.to_string().starts_with("tunnels.yaml:2:5: nothing is to be forwarded"));
}
