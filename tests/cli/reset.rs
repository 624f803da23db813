//! `gpustack reset-admin-password`.

use crate::process::{Running, run, stderr, stdout};
use std::path::Path;
use std::time::Duration;

fn reset(data_dir: &Path) -> String {
    let output = run(&["reset-admin-password", "--data-dir", data_dir.to_str().unwrap()], &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output).lines().nth(1).unwrap().to_owned()
}

async fn login(url: &str, password: &str) -> reqwest::Response {
    let form = format!("username=admin&password={}", urlencoded(password));
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
    client
        .post(format!("{url}/auth/login"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .await
        .unwrap()
}

fn urlencoded(text: &str) -> String {
    text.bytes().fold(String::new(), |all, byte| all + &format!("%{byte:02X}"))
}

#[tokio::test]
async fn it_works_while_the_server_runs() {
    let dir = tempfile::tempdir().unwrap();
    let server = Running::server(dir.path(), &["--disable-worker", "--bootstrap-password", "first one"]);
    assert_eq!(login(server.url(), "first one").await.status(), 200);
    let password = reset(dir.path());
    assert_eq!(login(server.url(), "first one").await.status(), 401);
    assert_eq!(login(server.url(), &password).await.status(), 200);
}

#[tokio::test]
async fn it_works_while_no_server_runs() {
    let dir = tempfile::tempdir().unwrap();
    Running::server(dir.path(), &["--disable-worker"]).stop();
    let password = reset(dir.path());
    assert!(!dir.path().join("initial_admin_password").exists());
    let server = Running::server(dir.path(), &["--disable-worker"]);
    assert_eq!(login(server.url(), &password).await.status(), 200);
}

#[test]
fn without_a_database_it_makes_none() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["reset-admin-password", "--data-dir", dir.path().to_str().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is no database"), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
