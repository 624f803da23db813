//! What the command line says to those who use it wrongly, and its small commands.

use crate::process::{Variables, run, stderr, stdout};

#[test]
fn the_version_is_printed_in_two_forms() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(stdout(&run(&["version"], &[])), format!("gpustack {version}\n"));
    assert_eq!(stdout(&run(&["version", "--short"], &[])), format!("{version}\n"));
    assert_eq!(stdout(&run(&["--version"], &[])), format!("gpustack {version}\n"));
}

#[test]
fn wrong_usage_ends_with_status_2_and_names_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.yaml");
    std::fs::write(&config, "prot: 8090\n").unwrap();
    let config = config.to_str().unwrap();
    let in_file = format!("unknown key `prot` in {config}; did you mean `port`?");
    let table: [(&[&str], Variables, &str); 8] = [
        (&["strat"], &[], "strat"),
        (&["start", "--prot", "80"], &[], "--prot"),
        (&["start", "--port", "eighty"], &[], "--port is `eighty`; it must be a port number"),
        (&["start"], &[("GPUSTACK_PORT", "tcp://10.0.0.1:80")], "enableServiceLinks: false"),
        (&["start", "--worker-offline-timeout", "5"], &[], "--worker-offline-timeout is 5; it must be"),
        (&["start", "--config-file", config], &[], &in_file),
        (&["start", "--database-url", "mysql://u:p@h/d"], &[], "only sqlite:///path can be used"),
        (&["token", "--data-dir", "/nonexistent"], &[], "there is no data directory /nonexistent"),
    ];
    for (args, variables, expected) in table {
        let output = run(args, variables);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{args:?}");
    }
}

#[test]
fn devices_that_the_file_describes_are_shown_in_place_of_those_that_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.yaml");
    let text = "resources:\n  gpu_devices:\n    - {name: Ascend910B, vendor: Huawei, index: 0, memory: {total: 68719476736}, type: npu}\n";
    std::fs::write(&config, text).unwrap();
    let output = run(&["devices", "--json", "--config-file", config.to_str().unwrap()], &[]);
    let shown: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&shown["items"][0]["name"], shown["items"].as_array().map(Vec::len)), (&"Ascend910B".into(), Some(1)));
}

#[test]
fn wrong_tls_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (data_dir, empty) = (dir.path().join("data"), dir.path().join("empty.pem"));
    std::fs::write(&empty, "").unwrap();
    let empty = empty.to_str().unwrap();
    let args = ["start", "--data-dir", data_dir.to_str().unwrap(), "--host", "127.0.0.1", "--port", "0"];
    let tls = ["--disable-worker", "--ssl-keyfile", empty, "--ssl-certfile", empty];
    let output = run(&[args.as_slice(), &tls].concat(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains(&format!("certificate (--ssl-certfile) {empty} is empty")), "{}", stderr(&output));
}

#[test]
fn devices_are_printed_for_people_and_for_programs() {
    let for_people = run(&["devices"], &[]);
    assert!(for_people.status.success(), "{}", stderr(&for_people));
    let for_programs = run(&["devices", "--json"], &[]);
    let value: serde_json::Value = serde_json::from_slice(&for_programs.stdout).unwrap();
    assert!(value["items"].is_array() && value["problems"].is_array(), "{value}");
}

#[test]
fn a_data_directory_that_cannot_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let in_the_way = dir.path().join("file");
    std::fs::write(&in_the_way, "").unwrap();
    let output = run(&["start", "--data-dir", in_the_way.to_str().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("a file is in its place"), "{}", stderr(&output));
}
