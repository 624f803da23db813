//! Starting a worker.

use crate::process::{Running, Variables, gpustack, run, stderr};

#[test]
fn a_worker_without_a_token_ends_at_once_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.yaml");
    std::fs::write(&config, "token:\n").unwrap();
    let config = config.to_str().unwrap();
    let data_dir = dir.path().join("data");
    let base = ["start", "--server-url", "http://127.0.0.1:9", "--worker-port", "0", "--data-dir"];
    let base = [base.as_slice(), &[data_dir.to_str().unwrap()]].concat();
    let table: [(&[&str], Variables, &str); 4] = [
        (&[], &[], "no join token"),
        (&["--token", ""], &[], "--token is empty"),
        (&[], &[("GPUSTACK_TOKEN", "")], "GPUSTACK_TOKEN is empty"),
        (&["--config-file", config], &[], "`token` in "),
    ];
    for (args, variables, expected) in table {
        let output = run(&[base.as_slice(), args].concat(), variables);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
fn a_worker_that_has_joined_before_starts_without_a_token() {
    let dir = tempfile::tempdir().unwrap();
    let server_key = link::KeyPair::generate().unwrap().public();
    server_key.save(&dir.path().join("link_server_key")).unwrap();
    let args = ["start", "--server-url", "http://127.0.0.1:9", "--worker-port", "0", "--data-dir"];
    let mut worker = Running::start(gpustack(&args).arg(dir.path()));
    worker.wait_for_stderr("joins http://127.0.0.1:9");
    assert_eq!(worker.stop().code(), Some(0));
}

#[test]
fn a_worker_whose_token_is_not_the_servers_says_so_and_goes_on() {
    let (server_dir, worker_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Running::server(server_dir.path(), &["--disable-worker", "--token", "the-right-token"]);
    let start = |token: &str| {
        let args = ["start", "--server-url", server.url(), "--worker-port", "0", "--token", token, "--data-dir"];
        Running::start(gpustack(&args).arg(worker_dir.path()))
    };
    let mut worker = start("the-right-token");
    worker.wait_for_stderr("the worker has joined the server");
    assert_eq!(worker.stop().code(), Some(0));
    std::fs::remove_file(worker_dir.path().join("link_server_key")).unwrap();
    let mut worker = start("another-token");
    let line = worker.wait_for_stderr("cannot join the server");
    assert!(line.contains("refuses the join token"), "{line}");
    assert!(!line.contains("another-token"), "{line}");
    assert_eq!(worker.stop().code(), Some(0));
}
