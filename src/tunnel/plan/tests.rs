//! Files and what is planned for them.

use super::*;
use crate::tunnel::file::{self, FileProblems, Surroundings};
use ssh::Identity;
use std::fmt::Write;
use std::path::Path;

/// A host like many.
pub fn surroundings() -> Surroundings {
    Surroundings {
        home: Some("/home/t".into()),
        hostname: "bastion-01".to_owned(),
        agent: Some(Identity::Agent { socket: "/run/agent".into() }),
        default_keys: vec!["/home/t/.ssh/id_ed25519".into()],
    }
}

/// What is planned for a file, and everything that is wrong with it. No key is looked at.
pub fn made(text: &str, ports: PortBook) -> Result<Planned, FileProblems> {
    let mut read = file::read(text, &surroundings());
    let Some(file) = read.file else { return Err(FileProblems::new("tunnels.yaml", read.problems)) };
    match make(&file, ports).planned {
        Ok(planned) if read.problems.is_empty() => Ok(planned),
        Ok(_) => Err(FileProblems::new("tunnels.yaml", read.problems)),
        Err(further) => {
            read.problems.extend(further);
            Err(FileProblems::new("tunnels.yaml", read.problems))
        }
    }
}

pub fn no_ports() -> PortBook {
    PortBook::open(Path::new("/nonexistent/tunnels")).unwrap()
}

pub fn plan(text: &str) -> Plan {
    made(text, no_ports()).unwrap_or_else(|problems| panic!("{problems}")).plan
}

fn problems(text: &str) -> String {
    made(text, no_ports()).unwrap_err().to_string()
}

/// A line or two for each forward.
fn summary(text: &str) -> String {
    let plan = plan(text);
    let mut lines = String::new();
    for forward in &plan.forwards {
        let route: Vec<String> =
            forward.route.iter().map(|hop| format!("{}={}@{}", hop.name, hop.user, hop.server)).collect();
        let PlannedForward { id, role, direction, listen, target, workers, behind, proof, .. } = forward;
        let behind = behind.as_ref().map(|id| format!(" behind {id}")).unwrap_or_default();
        let _ = writeln!(lines, "{id}: {role:?} {direction:?} {listen} -> {target}{behind}");
        let _ = writeln!(lines, "    over {}; workers {workers:?}; proof {proof:?}", route.join(" > "));
    }
    for note in &plan.notes {
        let _ = writeln!(lines, "{note:?}");
    }
    let url = plan.reporting.map(|reporting| reporting.server_url);
    let _ = writeln!(lines, "reports to {url:?}");
    lines
}

const ARTICLE: &str = "
server: {address: 10.0.0.1:8090, ssh: root@10.0.0.1}
workers:
  npu-198-97: {ssh: root@10.20.0.20, health_check: true}
  npu-198-98: {ssh: root@10.20.0.21}
";

#[test]
fn a_bastion_brings_workers_and_server_together() {
    insta::assert_snapshot!(summary(ARTICLE));
}

#[test]
fn a_bastion_that_reaches_the_server_needs_no_forward_for_it() {
    let file = "
server: {address: 10.0.0.1:8090}
workers: {npu-1: {ssh: root@npu-1, server_port: 18090}}
";
    insta::assert_snapshot!(summary(file));
}

#[test]
fn on_the_servers_host_nobody_logs_in_at_the_server() {
    insta::assert_snapshot!(summary(&format!("here: server\n{ARTICLE}")));
}

#[test]
fn on_a_workers_host_only_that_worker_counts() {
    insta::assert_snapshot!(summary(&format!("here: npu-198-97\n{ARTICLE}")));
}

#[test]
fn the_last_bastion_reaches_the_server_where_nobody_may_log_in_there() {
    let file = "
here: npu-1
server: {address: 10.0.0.1:8090, via: [near, far]}
bastions: {near: {ssh: t@near}, far: {ssh: t@far}}
workers: {npu-1: {}}
";
    insta::assert_snapshot!(summary(file));
}

#[test]
fn bastions_make_chains_that_begin_at_the_agents_own() {
    let file = "
id: bastion-01
server: {address: 10.0.0.1:8090, via: bastion-00}
bastions:
  bastion-00: {ssh: t@10.10.0.1}
  bastion-02: {ssh: t@10.20.0.1, via: bastion-01}
  bastion-03: {ssh: t@10.30.0.1, via: bastion-02}
workers:
  npu-1: {ssh: root@10.30.0.20, via: bastion-03}
  npu-2: {ssh: root@10.30.0.20, via: bastion-02}
";
    insta::assert_snapshot!(summary(file));
}

#[test]
fn further_forwards_are_taken_as_they_are() {
    let file = "
report: false
bastions: {b: {ssh: t@b}}
workers: {}
forwards:
  up: {remote: 127.0.0.1:9000, target: 127.0.0.1:9090, ssh: root@10.20.0.20}
  prometheus: {local: 9090, target: 10.20.0.20:9090, ssh: root@10.20.0.20, via: b}
  at-bastion: {local: '[::1]:9091', target: 10.20.0.21:9090, ssh: b}
";
    insta::assert_snapshot!(summary(file));
}

#[test]
fn a_worker_may_have_a_name_that_no_label_can_hold() {
    let file = "
server: {address: 10.0.0.1:8090, local_port: 18090, ssh: root@10.0.0.1}
workers: {npu-1: {name: 昇腾 1, ssh: root@npu-1, health_check: true, worker_port: 10160}}
";
    insta::assert_snapshot!(summary(file));
}

#[test]
fn ports_for_health_checks_stay_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let two = |first: &str, second: &str| {
        let worker = |name: &str| format!("  {name}: {{ssh: root@{name}, health_check: true}}\n");
        format!("server: {{address: s:8090, ssh: root@s}}\nworkers:\n{}{}", worker(first), worker(second))
    };
    let ports = |planned: &Planned| -> Vec<(String, u16)> {
        let health = planned.plan.forwards.iter().filter(|forward| forward.role == ForwardRole::WorkerAtServer);
        health.map(|forward| (forward.workers[0].clone(), forward.listen.port)).collect()
    };
    let first = made(&two("a", "b"), PortBook::open(folder.path()).unwrap()).unwrap();
    assert_eq!(ports(&first), [("a".to_owned(), 10150), ("b".to_owned(), 10151)]);
    first.ports.remember().unwrap();
    let second = made(&two("c", "b"), PortBook::open(folder.path()).unwrap()).unwrap();
    assert_eq!(ports(&second), [("c".to_owned(), 10152), ("b".to_owned(), 10151)]);
    let chosen = second.plan.notes.iter().filter(|note| matches!(note, PlanNote::PortChosen { .. })).count();
    assert_eq!(chosen, 1);
}

#[test]
fn everything_that_does_not_fit_together_is_told_at_once() {
    let file = "
here: npu-5
server: {address: 10.0.0.1:8090}
bastions:
  one: {ssh: t@one, via: two}
  two: {ssh: t@two, via: three}
  three: {ssh: t@three, via: one}
  four: {ssh: t@four, via: for}
workers:
  npu-1: {ssh: root@npu-1, via: one}
  npu-2: {ssh: root@npu-2, via: [five]}
forwards:
  a: {local: 9090, target: x:1, ssh: root@x, workers: [npu-3]}
  b: {local: '0.0.0.0:9090', target: x:1, ssh: root@x}
  c: {local: 1, target: x:1, ssh: t@four, via: four2}
  d: {remote: 1, target: x:1, ssh: t@one, via: one}
";
    insta::assert_snapshot!(problems(file));
}

#[test]
fn ports_and_names_are_looked_at_whatever_else_is_wrong() {
    let file = "
server: {address: nowhere, ssh: root@10.0.0.1, via: gone}
bastions:
  b: {ssh: 't@', via: c}
workers:
  npu-1: {ssh: root@<IP>, via: bb, health_check: true, health_port: 9090}
forwards:
  a: {local: 9090, target: x, ssh: b}
  c: {local: 9090, target: x:1, ssh: zz}
  d: {local: 9090, target: x:1, ssh: root@x, via: d}
";
    insta::assert_snapshot!(problems(file));
}

#[test]
fn a_host_without_a_key_hides_nothing_else() {
    let mut surroundings = surroundings();
    surroundings.default_keys.clear();
    let file = "
report: false
forwards:
  a: {remote: 9090, target: x:1, ssh: root@x}
  b: {remote: 9090, target: x:1, ssh: root@x}
";
    let read = file::read(file, &surroundings).file.unwrap();
    let problems = make(&read, no_ports()).planned.unwrap_err();
    let problems = FileProblems::new("tunnels.yaml", problems).to_string();
    assert!(
        problems.contains("`a` has no key") && problems.contains("`b` listens at 127.0.0.1:9090 on x"),
        "{problems}"
    );
}

#[test]
fn on_a_workers_host_nobody_asks_how_other_workers_are_reached() {
    let file = "
here: npu-1
server: {address: 10.0.0.1:8090, ssh: root@10.0.0.1}
workers: {npu-1: {}, npu-2: {ssh: root@npu-2, via: bastion-07}}
";
    assert_eq!(plan(file).forwards.len(), 1);
}

#[test]
fn ports_of_one_host_are_not_given_twice() {
    let file = "
server: {address: 10.0.0.1:8090, ssh: root@10.0.0.1}
workers:
  npu-1: {ssh: root@10.20.0.20, health_check: true, health_port: 10150}
  npu-2: {ssh: root@10.20.0.20}
  npu-3: {ssh: root@10.20.0.21, health_check: true, worker_port: 10150}
  npu-4: {ssh: root@10.20.0.22, health_check: true, worker_port: 10160, health_port: 10161}
forwards:
  npu-1.server: {local: 9000, target: x:1, ssh: npu-1}
";
    insta::assert_snapshot!(problems(file));
}

#[test]
fn a_way_passes_no_account_twice() {
    let file = "
report: false
bastions: {one: {ssh: t@one}}
forwards:
  up: {remote: 1, target: x:1, ssh: t@one, via: one}
  here: {remote: 1, target: x:1, ssh: server}
";
    insta::assert_snapshot!(problems(file));
}

#[test]
fn no_forward_ends_on_its_own_host_and_no_two_workers_have_one_name() {
    let file = "
server: {address: 10.0.0.1:8090}
bastions: {bastion-01: {ssh: t@one}}
workers:
  npu-1: {ssh: root@npu-1}
  npu-2: {ssh: root@npu-2, name: npu-1}
forwards:
  up: {remote: 1, target: x:1, ssh: bastion-01}
";
    insta::assert_snapshot!(problems(file));
}

#[test]
fn nobody_logs_in_at_the_host_where_the_agent_runs() {
    let file = "
report: false
server: {address: 10.0.0.1:8090, ssh: root@10.0.0.1}
workers: {npu-1: {ssh: root@npu-1}}
forwards: {up: {remote: 1, target: x:1, ssh: END}}
";
    for (here, end) in [("server", "server"), ("npu-1", "npu-1")] {
        let problems = problems(&format!("here: {here}\n{}", file.replace("END", end)));
        assert!(problems.contains(&format!("`{end}` is this agent's own host")), "{problems}");
    }
}

#[test]
fn a_worker_of_a_server_with_tls_is_started_with_https() {
    let file = "
server_url: https://gpustack.corp
server: {address: 10.0.0.1:443}
workers: {npu-1: {ssh: root@npu-1, server_port: 8443}}
";
    let notes = plan(file).notes;
    let flags = notes.iter().find_map(|note| match note {
        PlanNote::StartWorkerWith { flags, .. } => Some(flags.join(" ")),
        _ => None,
    });
    assert_eq!(flags.as_deref(), Some("--server-url https://127.0.0.1:8443 --worker-name npu-1"));
}

#[test]
fn health_checks_need_a_login_at_the_server() {
    let file = "
server: {address: 10.0.0.1:8090}
workers: {npu-1: {ssh: root@npu-1, health_check: true}}
";
    insta::assert_snapshot!(problems(file));
}

#[test]
fn a_port_that_a_worker_was_started_with_is_not_given_away() {
    let folder = tempfile::tempdir().unwrap();
    let state = format!("state_dir: {}\n", folder.path().display());
    let one = format!(
        "{state}server: {{address: s:8090, ssh: root@s}}\nworkers:\n  a: {{ssh: root@a, health_check: true}}\n"
    );
    made(&one, PortBook::open(folder.path()).unwrap()).unwrap().ports.remember().unwrap();
    let two = format!("{one}  b: {{ssh: root@b, health_check: true, health_port: 10150}}\n");
    let problems = made(&two, PortBook::open(folder.path()).unwrap()).unwrap_err();
    assert!(
        problems
            .problems
            .iter()
            .any(|problem| matches!(problem.fault, file::Fault::PortRemembered { port: 10150, .. }))
    );
}

#[test]
fn hosts_of_one_address_behind_different_bastions_are_different_hosts() {
    let file = "
server: {address: 10.0.0.1:8090}
bastions: {one: {ssh: t@one}, two: {ssh: t@two}}
workers:
  npu-1: {ssh: root@192.168.0.2, via: one}
  npu-2: {ssh: root@192.168.0.2, via: two}
";
    assert_eq!(plan(file).forwards.len(), 2);
}
