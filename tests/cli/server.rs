//! Starting and stopping a server.

use crate::process::{Running, gpustack, run, stderr, stdout};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const TOKEN: &str = "c8e291d8045736ab3aa5ddb6de619291";

#[test]
fn a_new_server_tells_how_to_log_in_and_where_the_token_is() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    let mut server = Running::server(&data_dir, &["--disable-worker"]);
    let printed = server.printed().to_owned();
    let password = std::fs::read_to_string(data_dir.join("initial_admin_password")).unwrap();
    assert!(printed.contains("admin") && printed.contains(password.trim()), "{printed}");
    assert!(printed.contains(data_dir.join("token").to_str().unwrap()), "{printed}");
    assert_eq!(server.stop().code(), Some(0));

    let mut again = Running::server(&data_dir, &["--disable-worker"]);
    assert!(!again.printed().contains(password.trim()), "{}", again.printed());
    assert_eq!(again.stop().code(), Some(0));
}

#[test]
fn everything_with_a_secret_is_for_its_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Running::server(dir.path(), &["--disable-worker"]);
    for name in ["token", "initial_admin_password", "gpustack.db", "gpustack.db-wal", "server.lock"] {
        let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}: {mode:o}");
    }
    server.stop();
}

#[test]
fn a_second_server_on_one_data_directory_is_told_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = Running::server(dir.path(), &["--disable-worker"]);
    let output = run(&["start", "--data-dir", dir.path().to_str().unwrap(), "--port", "0", "--disable-worker"], &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains(&format!("already in use by pid {}", server.pid())), "{}", stderr(&output));
}

#[test]
fn a_killed_server_leaves_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    Running::server(dir.path(), &["--disable-worker"]).kill();
    assert_eq!(Running::server(dir.path(), &["--disable-worker"]).stop().code(), Some(0));
}

#[test]
fn a_server_whose_log_nobody_reads_any_more_still_stops() {
    let dir = tempfile::tempdir().unwrap();
    let args =
        ["start", "--data-dir", dir.path().to_str().unwrap(), "--host", "127.0.0.1", "--port", "0", "--disable-worker"];
    let mut server = Running::start_without_reader_of_stderr(&mut gpustack(&args));
    server.wait_for_stdout("Join token");
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_taken_port_is_named_with_the_flag_that_changes_it() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let base = ["start", "--data-dir", dir.path().to_str().unwrap(), "--host", "127.0.0.1"];
    for (args, flag) in [
        (vec!["--port", &port, "--worker-port", "0"], "--port"),
        (vec!["--port", "0", "--worker-port", &port], "--worker-port"),
    ] {
        let output = run(&[base.as_slice(), &args].concat(), &[]);
        assert_eq!(output.status.code(), Some(1));
        let told = stderr(&output);
        assert!(told.contains(&format!("port {port} is in use")) && told.contains(flag), "{told}");
    }
}

#[test]
fn the_state_of_a_gpustack_is_taken_over_and_its_database_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let theirs = [
        ("token", format!("{TOKEN}\r\n")),
        ("database.db", "SQLite format 3 of another program".to_owned()),
        ("jwt_secret_key", "ab".repeat(32)),
        ("worker_uuid", "7c1a3f0e-5b5f-4c0e-9a53-0d5f4c4f9a11".to_owned()),
    ];
    for (name, content) in &theirs {
        std::fs::write(dir.path().join(name), content).unwrap();
    }
    let mut server = Running::server(dir.path(), &[]);
    let printed = run(&["token", "--data-dir", dir.path().to_str().unwrap()], &[]);
    assert_eq!(stdout(&printed), format!("{TOKEN}\n"));
    server.stop();
    for (name, content) in &theirs {
        assert_eq!(&std::fs::read_to_string(dir.path().join(name)).unwrap(), content, "{name}");
    }
}

#[test]
fn a_server_gets_and_loses_its_worker_from_start_to_start() {
    let dir = tempfile::tempdir().unwrap();
    for args in [&["--disable-worker"][..], &[], &["--disable-worker"], &[]] {
        assert_eq!(Running::server(dir.path(), args).stop().code(), Some(0), "{args:?}");
    }
}

#[test]
fn secrets_are_in_no_log() {
    let dir = tempfile::tempdir().unwrap();
    let password = "Bootstrap-Geheim";
    let args = ["start", "--debug", "--host", "127.0.0.1", "--port", "0", "--worker-port", "0", "--data-dir"];
    let mut command = gpustack(&args);
    command.arg(dir.path()).env("GPUSTACK_TOKEN", TOKEN).env("GPUSTACK_BOOTSTRAP_PASSWORD", password);
    let mut server = Running::start(&mut command);
    server.wait_for_stdout("Join token");
    let said = server.wait_for_stderr("joins") + server.printed();
    server.stop();
    let said = said + &server.rest_of_stderr();
    assert!(!said.contains(TOKEN) && !said.contains(password), "{said}");
}

#[test]
fn the_token_that_variables_give_is_the_one_that_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["token", "--data-dir", dir.path().to_str().unwrap()], &[("GPUSTACK_TOKEN", " abc\n")]);
    assert_eq!(stdout(&output), "abc\n");
    let none = run(&["token", "--data-dir", dir.path().to_str().unwrap()], &[]);
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("no server has been started"), "{}", stderr(&none));
}

#[test]
fn this_hosts_worker_joins_over_http_and_over_https() {
    let dir = tempfile::tempdir().unwrap();
    let (key, certificate) = self_signed(dir.path());
    for args in [&[][..], &["--ssl-keyfile", &key, "--ssl-certfile", &certificate]] {
        let mut server = Running::server(&dir.path().join("data"), args);
        assert!(server.url().starts_with(if args.is_empty() { "http://" } else { "https://" }));
        server.wait_for_stderr("has joined the server");
        assert_eq!(server.stop().code(), Some(0));
    }
}

#[test]
fn a_worker_elsewhere_joins_with_the_printed_token() {
    let dir = tempfile::tempdir().unwrap();
    let (key, certificate) = self_signed(dir.path());
    let data_dir = dir.path().join("server");
    let tls = ["--disable-worker", "--host", "localhost", "--ssl-keyfile", &key, "--ssl-certfile", &certificate];
    let server = Running::server(&data_dir, &tls);
    let token = stdout(&run(&["token", "--data-dir", data_dir.to_str().unwrap()], &[]));
    let own_dir = dir.path().join("worker");
    let args = ["start", "--server-url", server.url(), "--ca-file", &certificate, "--token", &token];
    let own = ["--worker-ip", "127.0.0.1", "--worker-port", "0", "--worker-name", "npu-198-97", "--data-dir"];
    let mut worker = Running::start(gpustack(&[args.as_slice(), &own].concat()).arg(own_dir));
    worker.wait_for_stderr("has joined the server as npu-198-97");
    assert_eq!(worker.stop().code(), Some(0));
}

/// Paths of a key and of a certificate for `localhost`.
fn self_signed(dir: &Path) -> (String, String) {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (key, certificate) = (dir.join("key.pem"), dir.join("cert.pem"));
    std::fs::write(&key, pair.signing_key.serialize_pem()).unwrap();
    std::fs::write(&certificate, pair.cert.pem()).unwrap();
    (key.to_str().unwrap().to_owned(), certificate.to_str().unwrap().to_owned())
}
