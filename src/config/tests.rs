use super::*;
use std::io::Write;
use tempfile::NamedTempFile;

const ARTICLE_TOKEN: &str = "c8e291d8045736ab3aa5ddb6de619291";

/// The three sources of one start.
#[derive(Default)]
struct Given {
    flags: &'static [(Key, &'static str)],
    variables: &'static [(&'static str, &'static str)],
    file: Option<&'static str>,
}

fn load(given: &Given) -> Result<Config, ConfigError> {
    let flags = given.flags.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
    let environment = Environment::of_pairs(given.variables.iter().copied());
    let file = given.file.map(|text| {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    });
    Config::load(flags, file.as_ref().map(NamedTempFile::path), &environment)
}

fn server_of(config: Config) -> ServerConfig {
    match config.role {
        Role::Server(server) | Role::ServerAndWorker(server, _) => server,
        Role::Worker(_) => panic!("a worker"),
    }
}

fn worker_of(config: Config) -> WorkerConfig {
    match config.role {
        Role::Worker(worker) => worker,
        _ => panic!("no worker"),
    }
}

fn server(flags: &'static [(Key, &'static str)]) -> ServerConfig {
    server_of(load(&Given { flags, ..Given::default() }).unwrap())
}

fn error(given: &Given) -> String {
    let error = load(given).unwrap_err().to_string();
    // the file's name is random
    let words = error
        .split(' ')
        .map(|word| if word.starts_with(std::env::temp_dir().to_str().unwrap()) { "FILE" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn nothing_given_is_a_server_with_a_worker_and_the_known_defaults() {
    let config = load(&Given::default()).unwrap();
    assert_eq!(config.data_dir, Path::new("/var/lib/gpustack"));
    assert!(!config.debug);
    let Role::ServerAndWorker(server, worker) = config.role else { panic!("wrong role") };
    assert_eq!((server.host.as_str(), server.port), ("0.0.0.0", 80));
    assert_eq!(server.database, Path::new("/var/lib/gpustack/gpustack.db"));
    assert_eq!(server.worker_offline_timeout, Duration::from_mins(1));
    assert!(server.token.is_none() && server.bootstrap_password.is_none() && server.tls.is_none());
    assert_eq!(worker.identity, WorkerIdentity { name: None, ip: None, ifname: None, port: 10150 });
    assert_eq!(worker.system_reserved, SystemReserved { ram: 2 * GIB, vram: GIB });
}

#[test]
fn a_flag_wins_over_a_variable_over_the_file_over_the_default() {
    let file = Some("port: 3003\n");
    let variables = &[("GPUSTACK_PORT", "2002")];
    let flags = &[(Key::Port, "1001")];
    for (given, port) in [
        (Given { flags, variables, file }, 1001),
        (Given { variables, file, ..Given::default() }, 2002),
        (Given { file, ..Given::default() }, 3003),
        (Given { flags, file, ..Given::default() }, 1001),
        (Given::default(), 80),
    ] {
        assert_eq!(server_of(load(&given).unwrap()).port, port);
    }
}

#[test]
fn a_variable_names_the_file_too() {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(b"port: 3003").unwrap();
    let environment = Environment::of_pairs([("GPUSTACK_CONFIG_FILE", file.path().to_str().unwrap())]);
    let config = Config::load(BTreeMap::new(), None, &environment).unwrap();
    assert_eq!(server_of(config).port, 3003);
}

#[test]
fn switches_are_read_in_every_spelling_and_from_every_source() {
    for (given, is_server_only) in [
        (Given { flags: &[(Key::DisableWorker, "true")], ..Given::default() }, true),
        (Given { variables: &[("GPUSTACK_DISABLE_WORKER", "1")], ..Given::default() }, true),
        (Given { variables: &[("GPUSTACK_DISABLE_WORKER", "True")], ..Given::default() }, true),
        (Given { variables: &[("GPUSTACK_DISABLE_WORKER", "0")], ..Given::default() }, false),
        (Given { variables: &[("GPUSTACK_DISABLE_WORKER", "")], ..Given::default() }, false),
        (Given { file: Some("disable_worker: true"), ..Given::default() }, true),
        (Given { file: Some("disable_worker: false"), ..Given::default() }, false),
        (Given { file: Some("disable_worker:"), ..Given::default() }, false),
    ] {
        let role = load(&given).unwrap().role;
        assert_eq!(matches!(role, Role::Server(_)), is_server_only, "{:?} {:?}", given.variables, given.file);
    }
}

#[test]
fn a_server_url_makes_it_a_worker() {
    let given = Given {
        flags: &[
            (Key::ServerUrl, "http://127.0.0.1:8090"),
            (Key::WorkerIp, "127.0.0.1"),
            (Key::WorkerPort, "10150"),
            (Key::WorkerName, "npu-198-97"),
            (Key::Token, ARTICLE_TOKEN),
        ],
        ..Given::default()
    };
    let worker = worker_of(load(&given).unwrap());
    assert_eq!(worker.server_url.to_string(), "http://127.0.0.1:8090");
    assert_eq!(worker.token.unwrap().expose(), ARTICLE_TOKEN);
    assert_eq!(worker.trust, ServerTrust::System);
    let identity =
        WorkerIdentity { name: Some("npu-198-97".into()), ip: "127.0.0.1".parse().ok(), ifname: None, port: 10150 };
    assert_eq!(worker.identity, identity);
}

#[test]
fn a_server_url_without_scheme_is_taken_as_http_and_said_so() {
    let config = load(&Given { flags: &[(Key::ServerUrl, "10.0.0.1:8090")], ..Given::default() }).unwrap();
    assert_eq!(config.warnings, ["--server-url has no scheme; taken as http://10.0.0.1:8090"]);
}

#[test]
fn a_worker_does_not_read_what_only_a_server_uses() {
    // Kubernetes sets this one in every pod beside a service named gpustack
    let given = Given {
        flags: &[(Key::ServerUrl, "http://gpustack")],
        variables: &[("GPUSTACK_PORT", "tcp://10.0.0.1:80")],
        ..Given::default()
    };
    assert!(load(&given).is_ok());
}

#[test]
fn tls_changes_the_default_port() {
    let tls: &[(Key, &str)] = &[(Key::SslKeyfile, "/k"), (Key::SslCertfile, "/c")];
    let config = server(tls);
    assert_eq!(config.port, 443);
    assert_eq!(config.tls, Some(TlsFiles { key: "/k".into(), certificate: "/c".into() }));
}

#[test]
fn a_database_is_named_as_gpustack_names_it() {
    for (url, path) in [
        ("sqlite:///srv/gpu.db", "/srv/gpu.db"),
        ("sqlite:////srv/gpu.db", "/srv/gpu.db"),
        ("SQLite:///srv/gpu.db", "/srv/gpu.db"),
    ] {
        assert_eq!(sqlite_path(url), Ok(path.into()), "{url}");
    }
}

#[test]
fn reserved_memory_is_json_or_yaml_in_gib() {
    let expected = SystemReserved { ram: 3 * GIB, vram: 0 };
    for given in [
        Given { flags: &[(Key::SystemReserved, r#"{"ram": 3, "vram": 0}"#)], ..Given::default() },
        Given { variables: &[("GPUSTACK_SYSTEM_RESERVED", r#"{"memory":3,"gpu_memory":0}"#)], ..Given::default() },
        Given { file: Some("system_reserved:\n  ram: 3\n  vram: 0\n"), ..Given::default() },
    ] {
        let Role::ServerAndWorker(_, worker) = load(&given).unwrap().role else { panic!("wrong role") };
        assert_eq!(worker.system_reserved, expected);
    }
}

#[test]
fn tokens_are_trimmed_from_every_source() {
    for given in [
        Given { flags: &[(Key::Token, " abc\n")], ..Given::default() },
        Given { variables: &[("GPUSTACK_TOKEN", "\u{feff}abc\r\n")], ..Given::default() },
        Given { file: Some("token: |\n  abc\n"), ..Given::default() },
    ] {
        assert_eq!(server_of(load(&given).unwrap()).token.unwrap().expose(), "abc");
    }
}

#[test]
fn a_password_is_taken_as_it_is() {
    let config = server(&[(Key::BootstrapPassword, " p w ")]);
    assert_eq!(config.bootstrap_password.unwrap().expose(), " p w ");
}

#[test]
fn known_keys_without_effect_are_a_warning_and_others_an_error() {
    let config = load(&Given { file: Some("port: 90\ncache_dir: /c\n"), ..Given::default() }).unwrap();
    assert_eq!(config.warnings.len(), 1);
    assert!(config.warnings[0].starts_with("`cache_dir` in "), "{:?}", config.warnings);
    for (file, expected) in [
        ("prot: 90", "unknown key `prot` in FILE did you mean `port`?"),
        ("worker-name: a", "unknown key `worker-name` in FILE did you mean `worker_name`?"),
        ("something_else_altogether: 1", "unknown key `something_else_altogether` in FILE"),
        ("key_rotation: 1h", "unknown key `key_rotation` in FILE did you mean `security.key_rotation`?"),
        (
            "security: {key_rotatoin: 1h}",
            "unknown key `security.key_rotatoin` in FILE did you mean `security.key_rotation`?",
        ),
    ] {
        assert_eq!(error(&Given { file: Some(file), ..Given::default() }), expected);
    }
}

#[test]
fn no_known_key_is_without_effect_too() {
    for key in Key::ALL {
        assert!(!key::WITHOUT_EFFECT.contains(&key.name()), "{}", key.name());
        let is_nested = Key::SECURITY.contains(&key);
        let found = if is_nested { Key::of_security_name(key.name()) } else { Key::of_name(key.name()) };
        assert_eq!(found, Some(key));
    }
}

#[test]
fn the_encryption_of_links_is_set_as_the_article_has_it() {
    let article = "security:\n  data_encryption: aes-256-gcm\n  key_rotation: 24h\n";
    let of = |file| Given { file: Some(file), ..Given::default() };
    assert_eq!(server_of(load(&of(article)).unwrap()).key_rotation, Duration::from_hours(24));
    assert_eq!(server_of(load(&of("security:\n")).unwrap()).key_rotation, Duration::from_hours(24));
    let worker = Given { flags: &[(Key::ServerUrl, "h"), (Key::Token, "t")], ..of("security: {key_rotation: 30m}") };
    assert_eq!(worker_of(load(&worker).unwrap()).key_rotation, Duration::from_mins(30));
    let shape = "it must be a time from 1m to 30d, such as 24h";
    let only = "links are always encrypted with aes-256-gcm, which is the only value";
    for (file, expected) in [
        ("security: {data_encryption: chacha20}", format!("`security.data_encryption` in FILE is `chacha20`; {only}")),
        ("security: {data_encryption: none}", format!("`security.data_encryption` in FILE is `none`; {only}")),
        ("security: {key_rotation: 59s}", format!("`security.key_rotation` in FILE is `59s`; {shape}")),
        ("security: {key_rotation: 31d}", format!("`security.key_rotation` in FILE is `31d`; {shape}")),
        ("security: {key_rotation: 24}", format!("`security.key_rotation` in FILE is `24`; {shape}")),
        ("security: {key_rotation: 1 汉}", format!("`security.key_rotation` in FILE is `1 汉`; {shape}")),
    ] {
        assert_eq!(error(&of(file)), expected);
    }
    let text = error(&of("security: aes"));
    assert!(text.contains("`security` must hold `key: value` lines"), "{text}");
}

#[test]
fn a_bad_value_names_where_it_stands_and_what_is_allowed() {
    let flag = |flags| Given { flags, ..Given::default() };
    let variable = |variables| Given { variables, ..Given::default() };
    let file = |file| Given { file: Some(file), ..Given::default() };
    let port_range = "it must be a port number from 0 to 65535 (0: any free port)";
    let token_hint = "put the server's token there (`gpustack token` on the server prints it)";
    let table = [
        (flag(&[(Key::Port, "eighty")]), format!("--port is `eighty`; {port_range}")),
        (flag(&[(Key::Port, "+80")]), format!("--port is `+80`; {port_range}")),
        (variable(&[("GPUSTACK_PORT", "70000")]), format!("GPUSTACK_PORT is `70000`; {port_range}")),
        (file("port: -1"), format!("`port` in FILE is `-1`; {port_range}")),
        (file("port: [80]"), "`port` in FILE must be one value".into()),
        (
            flag(&[(Key::WorkerOfflineTimeout, "29")]),
            "--worker-offline-timeout is 29; it must be a number of seconds from 30 to 86400: a worker must be able to \
             miss two of its 10 s heartbeats"
                .into(),
        ),
        (flag(&[(Key::Token, "")]), format!("--token is empty; {token_hint}")),
        (variable(&[("GPUSTACK_TOKEN", "")]), format!("GPUSTACK_TOKEN is empty; {token_hint}")),
        (file("token:"), format!("`token` in FILE is empty; {token_hint}")),
        (file("token: 12345678"), "`token` in FILE must be in quotes, or its digits are read as a number".into()),
        (
            flag(&[(Key::SslKeyfile, "/k")]),
            "--ssl-keyfile needs --ssl-certfile beside it: TLS takes a certificate and its private key".into(),
        ),
        (
            flag(&[(Key::Host, "0.0.0.0:80")]),
            "--host is `0.0.0.0:80`; it must be an address or a name of this host without a port, such as 0.0.0.0".into(),
        ),
        (
            flag(&[(Key::ServerUrl, "ftp://h")]),
            "--server-url is wrong: the server URL begins with `ftp://`; only http:// and https:// can be used".into(),
        ),
        (
            flag(&[(Key::WorkerIp, "localhost")]),
            "--worker-ip is `localhost`; it must be an IP address such as 10.0.0.7".into(),
        ),
        (variable(&[("GPUSTACK_DEBUG", "yes")]), "GPUSTACK_DEBUG is `yes`; it must be true or false".into()),
        (
            flag(&[(Key::DatabaseUrl, "sqlite:///var/lib/gpustack/database.db")]),
            "--database-url names database.db, which is GPUStack 0.7's database and is left untouched; choose another name"
                .into(),
        ),
        (
            variable(&[("GPUSTACK_WORKER_PORT", "tcp://10.96.0.7:10150")]),
            "GPUSTACK_WORKER_PORT=tcp://10.96.0.7:10150 was set by Kubernetes for a service of that name, not by you: set \
             `enableServiceLinks: false` in the pod, or give --worker-port"
                .into(),
        ),
    ];
    for (given, expected) in table {
        assert_eq!(error(&given), expected);
    }
}

#[test]
fn no_error_shows_a_secret() {
    const SECRET: &str = "Geheim123";
    for given in [
        Given { flags: &[(Key::Token, "Geheim123 Geheim123")], ..Given::default() },
        Given { flags: &[(Key::DatabaseUrl, "postgresql://u:Geheim123@db/gpustack")], ..Given::default() },
    ] {
        let told = error(&given);
        assert!(!told.contains(SECRET), "{told}");
    }
    let config = load(&Given { flags: &[(Key::Token, SECRET), (Key::BootstrapPassword, SECRET)], ..Given::default() });
    assert!(!format!("{config:?}").contains(SECRET));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let environment = Environment::default();
    let missing = Config::load(BTreeMap::new(), Some(Path::new("/nonexistent/config.yaml")), &environment);
    let told = missing.unwrap_err().to_string();
    assert!(told.starts_with("cannot use the configuration file /nonexistent/config.yaml: "), "{told}");
    for file in ["port: [", "- port", "port: 1\nport: 2"] {
        let told = error(&Given { file: Some(file), ..Given::default() });
        assert!(told.starts_with("cannot use the configuration file FILE"), "{file}: {told}");
    }
}

#[test]
fn a_server_and_its_worker_cannot_share_a_port() {
    let both = |flags| error(&Given { flags, ..Given::default() });
    for told in [
        both(&[(Key::Port, "8090"), (Key::WorkerPort, "8090")]),
        both(&[(Key::Port, "10150")]),
        both(&[(Key::WorkerPort, "80")]),
    ] {
        assert!(told.starts_with("--port and --worker-port are both "), "{told}");
    }
    for flags in [&[(Key::Port, "0"), (Key::WorkerPort, "0")], &[(Key::Port, "10150"), (Key::DisableWorker, "true")]] {
        assert!(load(&Given { flags, ..Given::default() }).is_ok());
    }
}

#[test]
fn a_pinned_certificate_is_trusted_and_nothing_else() {
    const PIN: &str = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    const HTTPS: (Key, &str) = (Key::ServerUrl, "https://h");
    let flags = &[HTTPS, (Key::ServerFingerprint, PIN)];
    let trust = worker_of(load(&Given { flags, ..Given::default() }).unwrap()).trust;
    assert_eq!(trust, ServerTrust::Pinned(Fingerprint::parse(PIN).unwrap()));
    let told = |flags| error(&Given { flags, ..Given::default() });
    let short = told(&[HTTPS, (Key::ServerFingerprint, "sha256:9f86")]);
    assert!(short.starts_with("--server-fingerprint is `sha256:9f86`; it must be sha256: and 64"), "{short}");
    let plain = told(&[(Key::ServerUrl, "http://h"), (Key::ServerFingerprint, PIN)]);
    assert!(plain.starts_with("--server-fingerprint needs a server that speaks TLS, and http://h"), "{plain}");
    let both = told(&[HTTPS, (Key::ServerFingerprint, PIN), (Key::CaFile, "/ca.pem")]);
    assert!(both.contains("together with --ca-file"), "{both}");
}
