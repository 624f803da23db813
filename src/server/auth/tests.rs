use super::*;
use crate::config::Secret;
use crate::data_dir::INITIAL_ADMIN_PASSWORD;
use crate::server::rest;
use crate::server::store::NewPassword;
use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, StatusCode, header};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

const PASSWORD: &str = "Bootstrap-1";
const TOKEN: &str = "c8e291d8045736ab3aa5ddb6de619291";

struct Fixture {
    dir: TempDir,
    auth: Auth,
    router: Router,
}

struct Answer {
    status: StatusCode,
    set_cookie: Option<String>,
    retry_after: Option<String>,
    body: Value,
}

impl Answer {
    /// The `name=value` of the cookie that it sets.
    fn cookie(&self) -> String {
        self.set_cookie.as_ref().unwrap().split(';').next().unwrap().to_owned()
    }

    fn reason(&self) -> &str {
        self.body["reason"].as_str().unwrap_or_default()
    }
}

fn config(dir: &TempDir, bootstrap_password: Option<&str>) -> ServerConfig {
    ServerConfig {
        host: "127.0.0.1".into(),
        port: 0,
        data_dir: dir.path().into(),
        database: dir.path().join("gpustack.db"),
        token: JoinToken::parse(TOKEN).ok(),
        bootstrap_password: bootstrap_password.map(Secret::new),
        tls: None,
        worker_offline_timeout: Duration::from_mins(1),
        key_rotation: Duration::from_hours(24),
    }
}

async fn open(dir: TempDir, bootstrap_password: Option<&str>) -> Fixture {
    let config = config(&dir, bootstrap_password);
    let auth = Auth::open(Store::open(&config.database).await.unwrap(), &config).await.unwrap();
    let router = Router::<Auth>::new()
        .merge(Router::from(rest::login::router()))
        .merge(Router::from(rest::users::router()))
        .merge(Router::from(rest::api_keys::router()))
        .route("/admin", get(|AdminUser(user): AdminUser| async move { user.username }))
        .route("/change", post(|AdminUser(user): AdminUser| async move { user.username }))
        .route("/caller", get(|caller: Caller| async move { format!("{caller:?}") }))
        .with_state(auth.clone());
    Fixture { dir, auth, router }
}

async fn with_password() -> Fixture {
    open(tempfile::tempdir().unwrap(), Some(PASSWORD)).await
}

impl Fixture {
    async fn send(&self, mut request: Request<Body>) -> Answer {
        let peer = PeerAddress { addr: "127.0.0.1:4000".parse().unwrap(), https: false };
        request.extensions_mut().insert(peer);
        let response = self.router.clone().oneshot(request).await.unwrap();
        let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (status, set_cookie, retry_after) =
            (response.status(), header(header::SET_COOKIE), header(header::RETRY_AFTER));
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
        Answer { status, set_cookie, retry_after, body }
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.call("GET", path, headers, Value::Null).await
    }

    async fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Value) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, "gpu:8090");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    async fn login(&self, username: &str, password: &str) -> Answer {
        let request = Request::post("/auth/login").header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.send(request.body(Body::from(format!("username={username}&password={password}"))).unwrap()).await
    }

    async fn cookie(&self) -> String {
        self.login("admin", PASSWORD).await.cookie()
    }

    fn initial_password(&self) -> Option<String> {
        self.auth.inner.data_dir.read(INITIAL_ADMIN_PASSWORD).unwrap().map(|text| text.trim().to_owned())
    }
}

fn basic(user_and_password: &str) -> String {
    format!("Basic {}", STANDARD.encode(user_and_password))
}

#[tokio::test]
async fn a_login_sets_a_cookie_that_admits_until_logout() {
    let fixture = with_password().await;
    let answer = fixture.login("admin", PASSWORD).await;
    assert_eq!((answer.status, &answer.body), (StatusCode::OK, &Value::Null));
    assert!(!answer.set_cookie.as_ref().unwrap().contains("Secure"));
    let cookie = answer.cookie();
    assert_eq!(fixture.get("/admin", &[("cookie", &cookie)]).await.body, "admin");
    let answer = fixture.call("POST", "/auth/logout", &[("cookie", &cookie)], Value::Null).await;
    assert!(answer.set_cookie.unwrap().contains("Max-Age=0"));
    assert_eq!(fixture.get("/admin", &[("cookie", &cookie)]).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_user_are_answered_alike() {
    let fixture = with_password().await;
    let wrong = fixture.login("admin", "wrong").await;
    let unknown = fixture.login("nobody", PASSWORD).await;
    assert_eq!((wrong.status, unknown.status), (StatusCode::UNAUTHORIZED, StatusCode::UNAUTHORIZED));
    assert_eq!(wrong.body, unknown.body);
}

#[tokio::test]
async fn nobody_is_let_in_for_coming_from_the_same_host() {
    let fixture = with_password().await;
    assert_eq!(fixture.get("/admin", &[]).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(fixture.get("/v1/users/me", &[]).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn too_many_tries_are_refused_with_a_time_to_wait() {
    let fixture = with_password().await;
    let right = [("authorization", basic(&format!("admin:{PASSWORD}")))];
    let right = right.each_ref().map(|(name, value)| (*name, value.as_str()));
    let cookie = fixture.cookie().await;
    assert_eq!(fixture.get("/admin", &right).await.status, StatusCode::OK);
    for number in 0..10 {
        assert_eq!(fixture.login("admin", &format!("wrong{number}")).await.status, StatusCode::UNAUTHORIZED);
    }
    let refused = fixture.login("admin", PASSWORD).await;
    assert_eq!((refused.status, refused.reason()), (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"));
    assert!(refused.retry_after.unwrap().parse::<u64>().unwrap() > 0);
    // it was right a moment ago, but who guesses must not learn that
    assert_eq!(fixture.get("/admin", &right).await.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(fixture.get("/admin", &[("cookie", &cookie)]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_program_with_an_old_password_locks_nobody_out() {
    let fixture = with_password().await;
    for _ in 0..30 {
        let answer = fixture.get("/admin", &[("authorization", &basic("admin:an old password"))]).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
    let cookie = fixture.cookie().await;
    let change = json!({"current_password": PASSWORD, "new_password": "an old password"});
    let headers = [("cookie", cookie.as_str()), ("content-type", "application/json")];
    assert_eq!(fixture.call("POST", "/auth/update-password", &headers, change).await.status, StatusCode::OK);
    let answer = fixture.get("/admin", &[("authorization", &basic("admin:an old password"))]).await;
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test]
async fn the_join_token_in_place_of_an_api_key_is_named() {
    let fixture = with_password().await;
    let answer = fixture.get("/admin", &[("authorization", &format!("Bearer {TOKEN}"))]).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    let told = answer.body["message"].as_str().unwrap();
    assert!(told.contains("join token") && told.contains("API key"), "{told}");
}

#[tokio::test]
async fn a_generated_password_must_be_changed_before_anything_else() {
    let fixture = open(tempfile::tempdir().unwrap(), None).await;
    let initial = fixture.initial_password().unwrap();
    let form = initial.replace('%', "%25").replace('&', "%26").replace('+', "%2B").replace('#', "%23");
    let cookie = fixture.login("admin", &form).await.cookie();
    let headers = [("cookie", cookie.as_str())];
    let refused = fixture.get("/admin", &headers).await;
    assert_eq!((refused.status, refused.reason()), (StatusCode::FORBIDDEN, "PasswordChangeRequired"));
    let me = fixture.get("/v1/users/me", &headers).await;
    assert_eq!(me.body["require_password_change"], true);

    let change = |current: &str, new: &str| json!({"current_password": current, "new_password": new});
    for (body, status) in [
        (change("wrong", "long enough"), StatusCode::BAD_REQUEST),
        (change(&initial, "short"), StatusCode::UNPROCESSABLE_ENTITY),
        (change(&initial, &initial), StatusCode::UNPROCESSABLE_ENTITY),
        (change(&initial, "long enough"), StatusCode::OK),
    ] {
        let answer = fixture.call("POST", "/auth/update-password", &headers, body).await;
        assert_eq!(answer.status, status, "{}", answer.body);
    }
    assert_eq!(fixture.get("/admin", &headers).await.body, "admin");
    assert_eq!(fixture.initial_password(), None);
}

#[tokio::test]
async fn changing_the_password_ends_other_sessions_only() {
    let fixture = with_password().await;
    let (mine, other) = (fixture.cookie().await, fixture.cookie().await);
    assert_eq!(fixture.get("/admin", &[("cookie", &other)]).await.status, StatusCode::OK);
    let body = json!({"current_password": PASSWORD, "new_password": "another one"});
    fixture.call("POST", "/auth/update-password", &[("cookie", &mine)], body).await;
    assert_eq!(fixture.get("/admin", &[("cookie", &mine)]).await.status, StatusCode::OK);
    assert_eq!(fixture.get("/admin", &[("cookie", &other)]).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_password_that_another_process_changed_ends_remembered_sessions_within_seconds() {
    let fixture = with_password().await;
    let cookie = fixture.cookie().await;
    assert_eq!(fixture.get("/admin", &[("cookie", &cookie)]).await.status, StatusCode::OK);
    let elsewhere = Store::open(&fixture.dir.path().join("gpustack.db")).await.unwrap();
    let password = NewPassword { password_hash: "x", require_password_change: true, kept_session: None };
    elsewhere.set_password(1, password).await.unwrap();
    tokio::time::pause();
    tokio::time::advance(EPOCH_CHECK_INTERVAL).await;
    tokio::time::resume();
    assert_eq!(fixture.get("/admin", &[("cookie", &cookie)]).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn who_asks_again_costs_no_statement() {
    let fixture = with_password().await;
    let cookie = fixture.cookie().await;
    let password = basic(&format!("admin:{PASSWORD}"));
    let credentials = [("cookie", cookie.as_str()), ("authorization", password.as_str())];
    for credential in credentials {
        assert_eq!(fixture.get("/admin", &[credential]).await.status, StatusCode::OK);
    }
    fixture.auth.inner.store.close().await;
    for credential in credentials {
        assert_eq!(fixture.get("/admin", &[credential]).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_used_session_lives_longer_and_an_expired_one_is_over() {
    let fixture = with_password().await;
    let cookie = fixture.cookie().await;
    let store = &fixture.auth.inner.store;
    let set_expiry = async |expires_ms: i64| {
        sqlx::query("UPDATE sessions SET expires_ms = $1").bind(expires_ms).execute(store.writer()).await.unwrap();
        fixture.auth.forget_lookups();
    };
    let soon_ms = crate::server::store::now_ms() + 60_000;
    set_expiry(soon_ms).await;
    assert_eq!(fixture.get("/admin", &[("cookie", &cookie)]).await.status, StatusCode::OK);
    let extended: i64 = sqlx::query_scalar("SELECT expires_ms FROM sessions").fetch_one(store.readers()).await.unwrap();
    assert!(extended > soon_ms + 60_000, "{extended}");
    set_expiry(crate::server::store::now_ms() - 1).await;
    assert_eq!(fixture.get("/admin", &[("cookie", &cookie)]).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn only_hashes_of_secrets_are_stored() {
    let fixture = with_password().await;
    let cookie = fixture.cookie().await;
    let headers = [("cookie", cookie.as_str())];
    let key = fixture.call("POST", "/v1/api-keys", &headers, json!({"name": "ci"})).await;
    let key_secret = key.body["value"].as_str().unwrap().rsplit('_').next().unwrap().to_owned();
    let cookie_secret = cookie.split('=').nth(1).unwrap().to_owned();
    fixture.auth.inner.store.close().await;
    let file = std::fs::read(fixture.dir.path().join("gpustack.db")).unwrap();
    for secret in [PASSWORD, &key_secret, &cookie_secret] {
        assert!(!file.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}

#[tokio::test]
async fn an_api_key_admits_until_it_is_deleted() {
    let fixture = with_password().await;
    let cookie = fixture.cookie().await;
    let headers = [("cookie", cookie.as_str())];
    let created = fixture.call("POST", "/v1/api-keys", &headers, json!({"name": "ci", "expires_in": 3600})).await;
    assert_eq!(created.status, StatusCode::OK, "{}", created.body);
    assert!(created.body["expires_at"].is_string());
    let bearer = format!("Bearer {}", created.body["value"].as_str().unwrap());
    assert_eq!(fixture.get("/admin", &[("authorization", &bearer)]).await.body, "admin");

    let list = fixture.get("/v1/api-keys", &headers).await;
    assert_eq!(list.body["pagination"]["total"], 1);
    assert_eq!(list.body["items"][0]["value"], Value::Null);
    let again = fixture.call("POST", "/v1/api-keys", &headers, json!({"name": "ci"})).await;
    assert_eq!((again.status, again.reason()), (StatusCode::CONFLICT, "AlreadyExists"));

    let path = format!("/v1/api-keys/{}", created.body["id"]);
    assert_eq!(fixture.call("DELETE", &path, &headers, Value::Null).await.status, StatusCode::OK);
    assert_eq!(fixture.call("DELETE", &path, &headers, Value::Null).await.status, StatusCode::NOT_FOUND);
    assert_eq!(fixture.get("/admin", &[("authorization", &bearer)]).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_wrong_or_expired_api_key_admits_nobody() {
    let fixture = with_password().await;
    let admin = UserIdentity { id: 1, username: "admin".into(), is_admin: true, require_password_change: false };
    let expired = crate::server::store::now_ms() - 1;
    let old = fixture.auth.create_api_key(&admin, "old", None, Some(expired)).await.unwrap().unwrap().value;
    let good = fixture.auth.create_api_key(&admin, "good", None, None).await.unwrap().unwrap().value;
    let wrong_secret = format!("{}{}", &good[..good.len() - 32], "0".repeat(32));
    for key in [old.as_str(), &wrong_secret, "gpustack_", TOKEN] {
        let answer = fixture.get("/admin", &[("authorization", &format!("Bearer {key}"))]).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{key}");
    }
}

#[tokio::test]
async fn a_bad_api_key_request_changes_nothing() {
    let fixture = with_password().await;
    let cookie = fixture.cookie().await;
    let headers = [("cookie", cookie.as_str())];
    for (body, status) in [
        (json!({"name": " "}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"name": "x".repeat(101)}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"name": "ci", "expires_in": u64::MAX}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"name": "ci", "expires_in": -1}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({}), StatusCode::UNPROCESSABLE_ENTITY),
    ] {
        let answer = fixture.call("POST", "/v1/api-keys", &headers, body.clone()).await;
        assert_eq!((answer.status, answer.reason()), (status, "Invalid"), "{body}");
    }
    assert_eq!(fixture.get("/v1/api-keys", &headers).await.body["pagination"]["total"], 0);
}

#[tokio::test]
async fn a_gpustack_worker_is_known_by_the_join_token_whatever_its_address() {
    let fixture = with_password().await;
    for address in ["10.0.0.7", "fe80::1", "主机-一"] {
        let header = basic(&format!("system/worker/{address}:{TOKEN}"));
        let answer = fixture.get("/caller", &[("authorization", &header)]).await;
        assert_eq!(answer.body, format!("LegacyWorker {{ address: {address:?} }}"));
    }
    let latin_1 = [b"system/worker/h\xf4te:".as_slice(), TOKEN.as_bytes()].concat();
    let header = format!("Basic {}", STANDARD.encode(latin_1));
    assert_eq!(fixture.get("/caller", &[("authorization", &header)]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_gpustack_worker_with_a_wrong_token_is_refused() {
    let fixture = with_password().await;
    let wrong = TOKEN.replace('c', "d");
    for password in [wrong.as_str(), "", "x", &TOKEN[1..], &format!("{TOKEN}0")] {
        let header = basic(&format!("system/worker/10.0.0.7:{password}"));
        let answer = fixture.get("/caller", &[("authorization", &header)]).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{password}");
    }
}

#[tokio::test]
async fn a_worker_is_no_administrator() {
    let fixture = with_password().await;
    let header = basic(&format!("system/worker/10.0.0.7:{TOKEN}"));
    assert_eq!(fixture.get("/admin", &[("authorization", &header)]).await.status, StatusCode::FORBIDDEN);
    assert_eq!(fixture.get("/v1/api-keys", &[("authorization", &header)]).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn another_sites_page_can_change_nothing() {
    let fixture = with_password().await;
    let cookie = fixture.cookie().await;
    for (origin, status) in [
        ("http://gpu:8090", StatusCode::OK),
        ("http://gpu:9000", StatusCode::FORBIDDEN),
        ("https://evil.example", StatusCode::FORBIDDEN),
    ] {
        let headers = [("cookie", cookie.as_str()), ("origin", origin)];
        assert_eq!(fixture.call("POST", "/change", &headers, Value::Null).await.status, status, "{origin}");
    }
    let foreign = [("cookie", cookie.as_str()), ("origin", "https://evil.example")];
    fixture.call("POST", "/auth/logout", &foreign, Value::Null).await;
    assert_eq!(fixture.get("/admin", &[("cookie", &cookie)]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn two_instances_on_one_host_do_not_log_each_other_out() {
    let (first, second) = (with_password().await, with_password().await);
    let both = format!("{}; {}", first.cookie().await, second.cookie().await);
    assert_eq!(first.get("/admin", &[("cookie", &both)]).await.status, StatusCode::OK);
    assert_eq!(second.get("/admin", &[("cookie", &both)]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_proxys_own_password_beside_the_cookie_does_no_harm() {
    let fixture = with_password().await;
    let cookie = fixture.cookie().await;
    let headers = [("cookie", cookie.as_str()), ("authorization", &basic("proxy:secret"))];
    assert_eq!(fixture.get("/admin", &headers).await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_admin_is_made_once_and_its_file_only_without_a_given_password() {
    let fixture = open(tempfile::tempdir().unwrap(), None).await;
    let FirstLogin::Generated { password, file } = fixture.auth.first_login() else { panic!("not generated") };
    assert_eq!(fixture.initial_password().as_deref(), Some(password.expose()));
    assert_eq!(*file, fixture.dir.path().join(INITIAL_ADMIN_PASSWORD));
    fixture.auth.inner.store.close().await;

    let again = open(fixture.dir, Some("too late")).await;
    assert!(matches!(again.auth.first_login(), FirstLogin::InFile(_)));
    assert_eq!(again.login("admin", "too late").await.status, StatusCode::UNAUTHORIZED);

    let bootstrapped = with_password().await;
    assert!(matches!(bootstrapped.auth.first_login(), FirstLogin::Bootstrap));
    assert_eq!(bootstrapped.initial_password(), None);
}

#[tokio::test]
async fn a_user_keeps_a_bounded_number_of_sessions_and_the_newest() {
    let fixture = with_password().await;
    let cookie = fixture.cookie().await;
    let store = &fixture.auth.inner.store;
    let hash = store.user_by_id(1).await.unwrap().unwrap().password_hash;
    for number in 0..3 {
        let session = crate::server::store::NewSession {
            token_sha256: &format!("{number}"),
            user_id: 1,
            password_hash: &hash,
            expires_ms: i64::MAX,
            max_of_user: 2,
        };
        assert!(store.insert_session(session).await.unwrap());
    }
    let kept: Vec<String> =
        sqlx::query_scalar("SELECT token_sha256 FROM sessions").fetch_all(store.readers()).await.unwrap();
    assert_eq!(kept.len(), 2);
    assert!(kept.contains(&"2".to_owned()));
    fixture.auth.forget_lookups();
    assert_eq!(fixture.get("/admin", &[("cookie", &cookie)]).await.status, StatusCode::UNAUTHORIZED);
}
