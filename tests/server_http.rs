//! What holds for every answer of the server, and the event stream of browsers.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper of a test that cannot go on fails the test"
)]

mod common;

use common::worker::TestWorker;
use common::{TestServer, answered, take_block, until};
use flate2::write::GzDecoder;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;

#[tokio::test]
async fn every_error_has_one_shape_and_names_its_request() {
    let server = TestServer::start().await;
    for (method, path, status) in [
        (Method::GET, "/v1/nothing", StatusCode::NOT_FOUND),
        (Method::GET, "/v1/workers/999", StatusCode::NOT_FOUND),
        (Method::GET, "/v1/workers/x", StatusCode::UNPROCESSABLE_ENTITY),
        (Method::PATCH, "/v1/workers", StatusCode::METHOD_NOT_ALLOWED),
        (Method::POST, "/v1/fleet", StatusCode::METHOD_NOT_ALLOWED),
    ] {
        let answer = server.as_admin(method.clone(), path).header("x-request-id", "abc-1").send().await.unwrap();
        assert_eq!((answer.status(), &answer.headers()["x-request-id"]), (status, &"abc-1".parse().unwrap()));
        let body: Value = answer.json().await.unwrap();
        assert_eq!((&body["code"], &body["request_id"]), (&json!(status.as_u16()), &json!("abc-1")), "{method} {path}");
        assert!(!body["reason"].as_str().unwrap().is_empty() && !body["message"].as_str().unwrap().is_empty());
    }
}

#[tokio::test]
async fn the_api_is_described() {
    let server = TestServer::start().await;
    let (status, mut document) = answered(server.request(Method::GET, "/openapi.json")).await;
    assert_eq!(status, StatusCode::OK);
    document["info"]["version"] = json!("[version]");
    insta::assert_json_snapshot!(document);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let server = TestServer::start().await;
    let large = vec![b' '; 3 * 1024 * 1024];
    let call = server.request(Method::POST, "/v1/worker-sessions").bearer_auth(common::TOKEN).body(large);
    // the server may close the connection before all of it is sent
    if let Ok(answer) = call.send().await {
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(answer.json::<Value>().await.unwrap()["code"], json!(413));
    }
    assert_eq!(answered(server.request(Method::GET, "/healthz")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn the_background_jobs_are_shown_to_administrators() {
    let server = TestServer::start().await;
    let jobs = server.admin_json("/v1/tasks").await;
    let jobs = jobs.as_array().unwrap();
    assert!(jobs.len() >= 4 && jobs.iter().all(|job| job["state"] == json!("running") && job["restarts"] == json!(0)));
}

#[tokio::test]
async fn the_dashboard_has_the_shape_of_gpustack_0_7() {
    let server = TestServer::start().await;
    let joined = TestWorker::new().join(&server).await;
    let status = json!({
        "cpu": {"total": 8.0, "utilization_rate": 1.5},
        "gpu_devices": [{"index": 0, "name": "910B3", "memory": {"total": 200, "used": 10}}],
    });
    joined.report(status);
    until("the report", async || {
        let devices = server.admin_json("/v1/gpu-devices").await;
        (devices["pagination"]["total"] == json!(1)).then_some(())
    })
    .await;
    let nothing = json!([]);
    let expected = json!({
        "resource_counts": {"worker_count": 1, "gpu_count": 1, "model_count": 0, "model_instance_count": 0},
        "system_load": {
            "current": {"cpu": 1.5, "ram": null, "gpu": null, "vram": 5.0},
            "history": {"cpu": nothing, "ram": nothing, "gpu": nothing, "vram": nothing},
        },
        "model_usage": {
            "api_request_history": nothing,
            "completion_token_history": nothing,
            "prompt_token_history": nothing,
            "top_users": nothing,
        },
        "active_models": nothing,
    });
    assert_eq!(server.admin_json("/v1/dashboard").await, expected);
}

#[tokio::test]
async fn a_browser_is_told_of_a_new_worker_and_of_its_deletion() {
    let server = TestServer::start().await;
    let mut events = Events::open(&server).await;
    let (name, hello) = events.next().await;
    assert_eq!(name, "hello");
    let snapshot = server.admin_json("/v1/fleet").await;
    assert!(snapshot["sequence"].as_u64() >= hello["sequence"].as_u64());

    let joined = TestWorker::new().join(&server).await;
    let id = json!(joined.id());
    let brief = events.find("update", |update| update["changed"][0]["id"] == id).await["changed"][0].clone();
    assert_eq!((&brief["name"], &brief["devices"]), (&json!("npu-host"), &Value::Null));

    answered(server.as_admin(Method::DELETE, &format!("/v1/workers/{id}"))).await;
    events.find("update", |update| update["removed"] == json!([id])).await;
}

#[tokio::test]
async fn a_browser_is_told_everything_about_a_worker_at_which_it_looks() {
    let server = TestServer::start().await;
    let joined = TestWorker::new().join(&server).await;
    let id = json!(joined.id());
    let mut events = Events::open(&server).await;
    let (_, hello) = events.next().await;
    let (_, shown) = events.watch(&server, &hello, &json!({"workers": [id], "show": [id, 999]})).await;
    assert_eq!((&shown["changed"][0]["name"], &shown["changed"][1]), (&json!("npu-host"), &Value::Null));

    let status = |celsius: u32| json!({"gpu_devices": [{"index": 0, "name": "910B3", "temperature": celsius}]});
    joined.report(status(40));
    let is_told = |update: &Value| update["changed"][0]["devices"][0]["readings"] == json!([null, null, 40.0, null]);
    events.find("watched", is_told).await;
    // nothing listens on its port: once that is known too, nothing but readings changes any more
    let is_settled = |row: &Value| {
        let conditions = row["conditions"].as_array().unwrap();
        let is = |kind, status| {
            conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == status)
        };
        is("direct", "false") && is("link", "true") && row["clock_offset_ms"].is_number()
    };
    until("all that is known of the worker", async || {
        let rows = server.admin_json("/v1/workers").await;
        is_settled(&rows["items"][0]).then_some(())
    })
    .await;
    // who is looked at tells every change
    joined.report(status(41));
    let is_told = |update: &Value| {
        update["readings"][0]["devices"] == json!([[null, null, 41.0, null]])
            || update["changed"][0]["devices"][0]["readings"] == json!([null, null, 41.0, null])
    };
    events.find("watched", is_told).await;
    events.find("watched", |update| update["heartbeats"][0][0] == id).await;
}

#[tokio::test]
async fn what_a_browser_cannot_look_at_is_refused() {
    let server = TestServer::start().await;
    let mut events = Events::open(&server).await;
    let (_, hello) = events.next().await;
    let too_many: Vec<u32> = (0..501).collect();
    for (wish, expected) in [
        (json!({"workers": too_many}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"workers": [], "show": too_many}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"workers": ["a"]}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({}), StatusCode::UNPROCESSABLE_ENTITY),
    ] {
        assert_eq!(events.watch(&server, &hello, &wish).await.0, expected);
    }
    let nowhere = json!({"stream": "0".repeat(32)});
    assert_eq!(events.watch(&server, &nowhere, &json!({"workers": []})).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn events_are_compressed_for_browsers_that_take_it() {
    let server = TestServer::start().await;
    let call = server.as_admin(Method::GET, "/v1/events").header("accept-encoding", "gzip, deflate");
    let mut answer = call.send().await.unwrap();
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    assert_eq!(answer.headers()["vary"], "accept-encoding");
    let mut decoder = GzDecoder::new(Vec::new());
    while !decoder.get_ref().ends_with(b"\n\n") {
        decoder.write_all(&answer.chunk().await.unwrap().unwrap()).unwrap();
        decoder.flush().unwrap();
    }
    assert!(decoder.get_ref().starts_with(b"event: hello\ndata: {"));
    // what was compressed is complete at the end, too
    let stopping = tokio::spawn(server.stop());
    while let Some(chunk) = answer.chunk().await.unwrap() {
        decoder.write_all(&chunk).unwrap();
    }
    decoder.finish().unwrap();
    stopping.await.unwrap();
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let server = TestServer::start().await;
    let mut events = Events::open(&server).await;
    events.next().await;
    let stopping = tokio::spawn(server.stop());
    while events.try_next().await.is_some() {}
    stopping.await.unwrap();
}

/// Server-sent events.
struct Events {
    answer: Response,
    buffer: String,
}

impl Events {
    async fn open(server: &TestServer) -> Self {
        let answer = server.as_admin(Method::GET, "/v1/events").send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self { answer, buffer: String::new() }
    }

    async fn next(&mut self) -> (String, Value) {
        self.try_next().await.unwrap()
    }

    async fn try_next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some(event) = take_block(&mut self.buffer) {
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                if let (Some(name), Some(data)) = (field("event:"), field("data:")) {
                    return Some((name.to_owned(), serde_json::from_str(data).unwrap()));
                }
                continue;
            }
            let chunk = tokio::time::timeout(Duration::from_mins(1), self.answer.chunk()).await.unwrap();
            self.buffer.push_str(std::str::from_utf8(&chunk.ok()??).unwrap());
        }
    }

    async fn watch(&self, server: &TestServer, hello: &Value, wish: &Value) -> (StatusCode, Value) {
        let path = format!("/v1/events/{}/watch", hello["stream"].as_str().unwrap());
        answered(server.as_admin(Method::POST, &path).json(wish)).await
    }

    async fn find(&mut self, event: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        tokio::time::timeout(Duration::from_mins(1), self.look_for(event, is_wanted)).await.unwrap()
    }

    async fn look_for(&mut self, event: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let mut sequence = None;
        loop {
            let (name, data) = self.next().await;
            if name == "update" {
                let number = data["sequence"].as_u64();
                assert!(sequence.is_none() || number == sequence.map(|before: u64| before + 1));
                sequence = number;
            }
            if name == event && is_wanted(&data) {
                return data;
            }
        }
    }
}

#[tokio::test]
async fn pages_are_served_to_who_is_logged_in() {
    let server = TestServer::start().await;
    let page = |path: &str| server.request(Method::GET, path).header("accept", "text/html");
    let answer = page("/login").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let policy = answer.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("'nonce-"), "{policy}");
    assert_eq!(answer.headers()["cache-control"], "no-store");

    let login = server.request(Method::POST, "/auth/login").header("content-type", "application/x-www-form-urlencoded");
    let login = login.body(format!("username=admin&password={}", common::PASSWORD.replace(' ', "+")));
    let answer = login.send().await.unwrap();
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let worker = TestWorker::new();
    let _joined = worker.join_as(&server, &worker.named("<b>npu-01</b>")).await.unwrap();
    let html = page("/workers").header("cookie", &cookie).send().await.unwrap().text().await.unwrap();
    assert!(html.contains("&lt;b&gt;npu-01") && !html.contains("<b>npu-01"), "the worker is shown, as text");
    let html = page("/workers/add").header("cookie", &cookie).send().await.unwrap().text().await.unwrap();
    assert!(html.contains(&format!("http://{}", server.address)), "the command names this server");

    let answer = page("/nothing/here").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    assert!(answer.text().await.unwrap().contains("<html"));
    let (status, body) = answered(server.request(Method::GET, "/nothing/here")).await;
    assert_eq!((status, &body["reason"]), (StatusCode::NOT_FOUND, &json!("NotFound")));
}

#[tokio::test]
async fn a_page_without_a_session_leads_to_the_login() {
    let server = TestServer::start().await;
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let answer =
        client.get(format!("http://{}/workers", server.address)).header("accept", "text/html").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::FOUND);
    assert!(answer.headers()["location"].to_str().unwrap().starts_with("/login"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_pages_at_once_are_all_rendered() {
    let server = TestServer::start().await;
    let login = format!("username=admin&password={}", common::PASSWORD.replace(' ', "+"));
    let login = server.request(Method::POST, "/auth/login").body(login);
    let answer = login.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap();
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let mut asked = tokio::task::JoinSet::new();
    for path in ["/login", "/workers", "/settings", "/no-such-page"] {
        for number in 0..100 {
            // a person who is logged in is led away from the login page
            let cookie = if path == "/login" { "" } else { &cookie };
            let request = server.request(Method::GET, &format!("{path}?n={number}")).header("cookie", cookie);
            asked.spawn(request.header("accept", "text/html").send());
        }
    }
    while let Some(answer) = asked.join_next().await {
        let answer = answer.unwrap().unwrap();
        let expected = if answer.url().path() == "/no-such-page" { StatusCode::NOT_FOUND } else { StatusCode::OK };
        assert_eq!(answer.status(), expected, "{}", answer.url());
    }
}
