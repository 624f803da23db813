//! Command lines, and the files that are made of them.

use super::*;
use crate::tunnel::file;
use crate::tunnel::plan::tests::{made, no_ports, surroundings};
use crate::tunnel::plan::{Plan, PlannedForward, ssh_commands};
use api::ForwardDirection;
use proptest::prelude::*;
use std::fmt::Write;

const COMMENTS: Comments = Comments { heading: "heading", token_file: "token", no_server: "no server" };

/// Article 1, 2.3.1 and 2.3.2, as it prints them.
const FIRST_ARTICLE: &str = "
# 以下隧道创建命令均需在堡垒机上执行！
# 在堡垒机上创建GPUStack服务端口的LPF隧道
ssh -o ServerAliveInterval=60 -o ServerAliveCountMax=3 -o SetEnv=Notes=GPUStack -CfNg -L 8090:<GPUStack服务端IP>:8090 root@<GPUStack服务端IP>
# 在上述隧道基础上在NPU服务器上建立RPF隧道
ssh -o ServerAliveInterval=60 -o ServerAliveCountMax=3 -o ExitOnForwardFailure=yes -o SetEnv=Notes=GPUStack -CfNg -R 8090:127.0.0.1:8090 user@<NPU服务器IP>
# 在堡垒机上创建GPUStack worker的健康检查端口的LPF隧道
ssh -o ServerAliveInterval=60 -o ServerAliveCountMax=3 -o SetEnv=Notes=GPUStack -CfNg -L 10150:<NPU服务器IP>:10150 user@<NPU服务器IP>
# 在上述隧道的基础上在GPUStack服务端宿主机上建立RPF隧道
ssh -o ServerAliveInterval=60 -o ServerAliveCountMax=3 -o ExitOnForwardFailure=yes -o SetEnv=Notes=GPUStack -CfNg -R 10150:127.0.0.1:10150 root@<GPUStack服务端IP>
";

/// Article 2, 3.2, with its lines and the option of its label.
const SECOND_ARTICLE: &str = "
# 在堡垒机上执行（VLAN10→VLAN20）
ssh -NfL 8090:gpu-stack-svc:8090 bastion-user@bastion-01
# 在NPU节点执行（VLAN20→VLAN10）
ssh -NfR 8090:localhost:8090 npu-user@npu-node-01 -o SetEnv=ChannelType=GPUStack-Tunnel-${TUNNEL_ID}
# 在NPU节点暴露健康检查端口
ssh -NfL 10150:localhost:10150 bastion-user@bastion-01
# 在服务端建立反向隧道
ssh -NfR 10150:localhost:10150 gpustack-user@gpu-stack-svc
";

/// The file, and the notes below it.
fn shown(text: &str) -> String {
    let Imported { yaml, notes } = import(text, &COMMENTS);
    let mut shown = yaml.unwrap_or_else(|| "nothing\n".to_owned());
    shown.push_str("-----\n");
    for ImportNote { line, kind } in notes {
        let _ = writeln!(shown, "{line}: {kind:?}");
    }
    shown
}

/// What is planned for the file, on another host than those of the commands.
fn planned(text: &str) -> Plan {
    let yaml = import(text, &COMMENTS).yaml.unwrap();
    let planned = made(&format!("id: somewhere\n{yaml}"), no_ports());
    planned.unwrap_or_else(|problems| panic!("{problems}\n{yaml}")).plan
}

/// Each forward as direction, listener, target and way.
fn forwards(text: &str) -> Vec<String> {
    planned(text).forwards.iter().map(as_option).collect()
}

fn as_option(forward: &PlannedForward) -> String {
    let route: Vec<String> = forward.route.iter().map(|hop| format!("{}@{}", hop.user, hop.server)).collect();
    let flag = if forward.direction == ForwardDirection::Local { "-L" } else { "-R" };
    format!("{flag} {}:{} {}", forward.listen, forward.target, route.join(">"))
}

#[test]
fn the_first_article_becomes_a_server_and_a_worker() {
    insta::assert_snapshot!(shown(FIRST_ARTICLE));
}

#[test]
fn the_second_article_keeps_what_it_says_of_bastions() {
    insta::assert_snapshot!(shown(SECOND_ARTICLE));
}

#[test]
fn the_first_article_is_planned_as_it_was() {
    let text = FIRST_ARTICLE.replace("<GPUStack服务端IP>", "10.0.0.1").replace("<NPU服务器IP>", "10.20.0.20");
    // the worker's own address is its loopback interface, as the worker's SSH server sees it
    assert_eq!(
        forwards(&text),
        [
            "-L 127.0.0.1:8090:10.0.0.1:8090 root@10.0.0.1:22",
            "-R 127.0.0.1:8090:127.0.0.1:8090 user@10.20.0.20:22",
            "-L 127.0.0.1:10150:127.0.0.1:10150 user@10.20.0.20:22",
            "-R 127.0.0.1:10150:127.0.0.1:10150 root@10.0.0.1:22",
        ]
    );
}

#[test]
fn the_second_article_is_planned_as_it_was() {
    assert_eq!(
        forwards(SECOND_ARTICLE),
        [
            "-L 127.0.0.1:8090:gpu-stack-svc:8090 bastion-user@bastion-01:22",
            "-R 127.0.0.1:8090:127.0.0.1:8090 npu-user@npu-node-01:22",
            "-L 127.0.0.1:10150:localhost:10150 bastion-user@bastion-01:22",
            "-R 127.0.0.1:10150:localhost:10150 gpustack-user@gpu-stack-svc:22",
        ]
    );
}

#[test]
fn nothing_but_placeholders_keeps_a_file_from_being_read() {
    let yaml = import(FIRST_ARTICLE, &COMMENTS).yaml.unwrap();
    let problems = file::read(&yaml, &surroundings()).problems;
    let placeholders = problems.iter().filter(|problem| matches!(problem.fault, file::Fault::Placeholder { .. }));
    assert_eq!((problems.len(), placeholders.count()), (3, 3), "{problems:#?}");
}

#[test]
fn many_workers_share_what_leads_to_the_server() {
    let text = "
sudo -u tunnel nohup /usr/bin/ssh -i /etc/key -fN -L 18090:10.0.0.1:8090 -p 2222 root@10.0.0.1 > /dev/null 2>&1 &
AUTOSSH_GATETIME=0 autossh -M 0 -f -N -i /etc/key -J t@near,t@far:2200 \\
    -R 8090:127.0.0.1:18090 root@10.20.0.20
ssh -i /etc/key -J t@near -fNR 8091:localhost:18090 -l root 10.20.0.21
ssh -i /etc/key -fNR 0.0.0.0:8092:localhost:18090 root@10.20.0.22
";
    insta::assert_snapshot!(shown(text));
    assert_eq!(
        forwards(text),
        [
            "-L 127.0.0.1:18090:10.0.0.1:8090 root@10.0.0.1:2222",
            "-R 127.0.0.1:8090:127.0.0.1:18090 t@near:22>t@far:2200>root@10.20.0.20:22",
            "-R 127.0.0.1:8091:127.0.0.1:18090 t@near:22>root@10.20.0.21:22",
            "-R 0.0.0.0:8092:localhost:18090 root@10.20.0.22:22",
        ]
    );
}

#[test]
fn commands_are_found_in_scripts_and_units() {
    let text = "
while true; do ssh -N -i $HOME/.ssh/key -L 1:a:1 u@a; sleep 5; done
if ! pgrep -f x > /dev/null; then
  timeout 60 ssh -N -i key -L 2:a:1 u@a
fi
[Service]
Restart=always
ExecStart=/usr/bin/autossh -M0 -N -L 3:a:1 u@a
";
    insta::assert_snapshot!(shown(text));
}

#[test]
fn forwards_for_something_else_stay_as_they_are() {
    let text = "
ssh -N -L [::1]:9090:[fe80::1]:9090 -L 9091:a:9091 -R :9092:b:1 u@[fe80::2]
ssh -N -o 'LocalForward 9093 c:1' -o Port=2222 -o User=x -o \"ProxyJump j\" d -o SetEnv=ChannelType=GPUStack-Tunnel-07
ssh -N -o 'LocalForward 9093 c:1' -o Port=2222 -o User=x -o \"ProxyJump j\" d
";
    insta::assert_snapshot!(shown(text));
}

#[test]
fn what_cannot_be_taken_over_is_refused_with_its_reason() {
    let text = "
ssh -fN -D 1080 u@a
ssh -fN -L /run/x.sock:/run/y.sock u@a
ssh -fN -R 9000 u@a
ssh -fN -L 9090 u@a
ssh -fN -L 0:a:1 u@a
ssh -fN -L ${PORT}:a:1 u@a
";
    insta::assert_snapshot!(shown(text));
}

#[test]
fn what_a_plan_prints_is_imported_as_the_same_plan() {
    let file = "
id: somewhere
server: {address: 10.0.0.1:8090, ssh: root@10.0.0.1}
bastions: {near: {ssh: t@near}, far: {ssh: 't@[fe80::1]:2200', via: near}}
workers:
  npu-1: {ssh: root@10.20.0.20, via: far, health_check: true}
  npu-2: {ssh: root@10.20.0.21, via: near, server_port: 8091}
forwards:
  up: {remote: 9000, target: x:1, ssh: npu-1}
";
    // bastions with keys of their own are passed with `ProxyCommand`, others with `-J`
    for file in [file.to_owned(), format!("ssh: {{identity: /etc/a key}}\n{file}")] {
        let plan = made(&file, no_ports()).unwrap().plan;
        let text = ssh_commands(&plan, &surroundings().default_keys, |forward| forward.id.to_string());
        let mut expected: Vec<String> = plan.forwards.iter().map(as_option).collect();
        let mut found = forwards(&text);
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_proxy_that_is_no_bastion_is_told() {
    let text = "
ssh -N -o 'ProxyCommand nc -x proxy:1080 %h %p' -L 1:a:1 u@a
ssh -N -i /k -o 'ProxyCommand ssh -q -i /other -W %h:%p -p 2222 b' -L 2:a:1 u@a
";
    insta::assert_snapshot!(shown(text));
}

fn likely_command() -> impl Strategy<Value = String> {
    let words = [
        "ssh",
        "sudo",
        "autossh",
        " ",
        " ",
        " ",
        "-L",
        "-R",
        "-NfL",
        "-J",
        "-o",
        "-p",
        "-i",
        "-D",
        "8090",
        ":",
        "a",
        "b@c",
        "127.0.0.1",
        "[::1]",
        "<IP>",
        "${X}",
        "$(",
        "'",
        "\"",
        "\\",
        "\n",
        "#",
        ";",
        ">",
        "<",
        "&",
        "Port=1",
        "LocalForward",
        "堡",
        ",",
        "10150",
    ];
    proptest::collection::vec(proptest::sample::select(words.to_vec()), 0..60).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_makes_an_import_panic(text in prop_oneof![any::<String>(), likely_command()]) {
        if let Some(yaml) = import(&text, &COMMENTS).yaml {
            let problems = file::read(&yaml, &surroundings()).problems;
            let is_no_yaml = problems.iter().any(|problem| matches!(problem.fault, file::Fault::Syntax { .. }));
            prop_assert!(!is_no_yaml, "{yaml}\n{problems:?}");
        }
    }

    #[test]
    fn well_formed_forwards_read_back(
        port in 1_u16..,
        target in 1_u16..,
        host in "[a-z][a-z0-9-]{0,8}",
        is_remote: bool,
        user in "[a-z]{1,8}",
    ) {
        let flag = if is_remote { "-R" } else { "-L" };
        let text = format!("ssh -fN {flag} {port}:{host}:{target} {user}@h-{host}");
        prop_assert_eq!(forwards(&text), [format!("{flag} 127.0.0.1:{port}:{host}:{target} {user}@h-{host}:22")]);
    }
}
