//! A recorded conversation of a GPUStack 0.7.1 worker with its server, replayed to this one; and what such a worker
//! may not do.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper of a test that cannot go on fails the test"
)]

mod common;

use common::worker::TestWorker;
use common::{TestServer, answered, take_block, until};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const RECORDED: &str = include_str!("fixtures/gpustack-0.7.1-worker-http.log");

/// One recorded request.
struct Recorded {
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Value>,
}

impl Recorded {
    fn all() -> Vec<Self> {
        let parts = RECORDED.split("\n=== ").map(|part| part.trim_start_matches("=== "));
        parts.filter(|part| part.starts_with("request ")).map(Self::parse).collect()
    }

    fn parse(part: &str) -> Self {
        let mut lines = part.lines().skip(1);
        let mut first = lines.next().unwrap().strip_prefix("> ").unwrap().split(' ');
        let (method, path) = (first.next().unwrap().parse().unwrap(), first.next().unwrap().to_owned());
        let (mut headers, mut body) = (Vec::new(), None);
        for line in lines {
            if let Some((name, value)) = line.strip_prefix("> ").and_then(|header| header.split_once(": ")) {
                headers.push((name.to_owned(), value.to_owned()));
            } else if line.starts_with('{') {
                body = Some(serde_json::from_str(line).unwrap());
            }
        }
        Self { method, path, headers, body }
    }

    fn is_watch(&self) -> bool {
        self.path.ends_with("watch=true")
    }

    fn replay(&self, server: &TestServer, port: u16) -> RequestBuilder {
        let mut request = server.request(self.method.clone(), &self.path);
        // what concerns the connection and its coding is the client's own affair
        for (name, value) in &self.headers {
            if !["host", "connection", "content-length", "accept-encoding"].contains(&name.to_lowercase().as_str()) {
                request = request.header(name, value);
            }
        }
        match &self.body {
            Some(body) => {
                let mut body = body.clone();
                body["port"] = json!(port);
                request.body(body.to_string())
            }
            None => request,
        }
    }
}

/// Answers health checks as GPUStack 0.7 does.
async fn legacy_health() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n\"ok\"";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    port
}

/// What the recorded worker needs of an answer to go on.
fn check_answer(recorded: &Recorded, answer: &Value) {
    let row_of = |answer: &Value| {
        assert_eq!(answer["id"], json!(1));
        assert_eq!(answer["worker_uuid"], json!("4d9fa62f-0733-4171-9995-0b3cd8da5d67"));
        for field in
            ["name", "hostname", "ip", "port", "labels", "system_reserved", "status", "created_at", "updated_at"]
        {
            assert!(!answer[field].is_null(), "{field} of {answer}");
        }
        assert!(answer["unreachable"].is_boolean());
        let known = ["not_ready", "ready", "unreachable"];
        assert!(known.contains(&answer["state"].as_str().unwrap()), "{}", answer["state"]);
        let time = answer["heartbeat_time"].as_str().unwrap();
        assert!(time.len() == "2026-11-30T13:48:32Z".len() && time.ends_with('Z'), "{time}");
    };
    if recorded.method != Method::GET {
        return row_of(answer);
    }
    assert!(answer["pagination"]["totalPage"].is_u64());
    for row in answer["items"].as_array().unwrap() {
        row_of(row);
    }
}

#[tokio::test]
async fn a_recorded_worker_joins_and_shows_its_eight_npus() {
    let server = TestServer::start().await;
    let port = legacy_health().await;
    let recorded = Recorded::all();
    assert_eq!(recorded.len(), 23);
    let mut watches = Vec::new();
    for request in &recorded {
        let answer = request.replay(&server, port).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{} {}", request.method, request.path);
        if request.is_watch() {
            assert_eq!(answer.headers()["content-type"], "text/event-stream; charset=utf-8");
            watches.push(answer);
            continue;
        }
        check_answer(request, &answer.json().await.unwrap());
    }
    assert_eq!(watches.len(), 2);

    let devices = server.admin_json("/v1/gpu-devices").await;
    assert_eq!(devices["pagination"]["total"], json!(8));
    let ids: Vec<_> = devices["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
    assert_eq!(ids[7], json!("npu-test:npu:7"));
    let row = until("the answered probe", || async {
        let row = server.admin_json("/v1/workers/1").await;
        let is_probed = row["conditions"].as_array().unwrap().iter().any(|it| it["reason"] == json!("direct_answered"));
        is_probed.then_some(row)
    })
    .await;
    assert_eq!((&row["state"], &row["state_message"]), (&json!("ready"), &Value::Null));
    let has_link = row["conditions"].as_array().unwrap().iter().any(|it| it["type"] == json!("link"));
    assert!(!has_link && row["link"].is_null(), "it cannot have one: {row}");
    // the record is of another day than today, and that decides nothing
    let clock = row["conditions"].as_array().unwrap().iter().find(|it| it["type"] == json!("clock")).cloned().unwrap();
    assert_ne!(clock["reason"], json!("clock_not_measured"));
}

#[tokio::test]
async fn the_row_of_a_joined_worker_is_found_however_many_share_its_address() {
    let server = TestServer::start().await;
    for number in 0..105 {
        let (status, _) = post(&server, &format!("w{number}"), "127.0.0.1").await;
        assert_eq!(status, StatusCode::OK);
    }
    // the first of them starts again
    let (_, found) = answered(server.as_legacy_worker(Method::GET, "/v1/workers?name=w0")).await;
    let row = found["items"][0].clone();
    let mut again = row.clone();
    again["heartbeat_time"] = Value::Null;
    let put = server.as_legacy_worker(Method::PUT, &format!("/v1/workers/{}", row["id"])).json(&again);
    assert_eq!(answered(put).await.0, StatusCode::OK);
    let (_, first_hundred) = answered(server.as_legacy_worker(Method::GET, "/v1/workers")).await;
    assert_eq!(first_hundred["items"][0]["name"], json!("w0"));
}

async fn post(server: &TestServer, name: &str, ip: &str) -> (StatusCode, Value) {
    let body = json!({
        "name": name, "hostname": name, "ip": ip, "port": 9, "status": {}, "worker_uuid": uuid::Uuid::new_v4(),
    });
    answered(server.as_legacy_worker(Method::POST, "/v1/workers").json(&body)).await
}

#[tokio::test]
async fn a_worker_may_do_only_what_a_worker_must() {
    let server = TestServer::start().await;
    let own_worker = TestWorker::new();
    let own = own_worker.join(&server).await;
    let (_, mine) = post(&server, "mine", "127.0.0.1").await;
    let (_, elsewhere) = post(&server, "elsewhere", "10.9.9.9").await;
    let forbidden = [
        (Method::DELETE, format!("/v1/workers/{}", mine["id"])),
        (Method::GET, format!("/v1/workers/{}", elsewhere["id"])),
        (Method::GET, format!("/v1/workers/{}", own.id())),
        (Method::GET, "/v1/workers?watch=true".to_owned()),
        (Method::POST, format!("/v1/workers/{}/replacement", mine["id"])),
        (Method::GET, "/v1/gpu-devices".to_owned()),
        (Method::GET, "/v1/fleet".to_owned()),
        (Method::GET, "/v1/events".to_owned()),
        (Method::POST, "/v1/events/0/watch".to_owned()),
        (Method::GET, "/v1/tasks".to_owned()),
        (Method::GET, "/v1/users/me".to_owned()),
        (Method::GET, "/v1/api-keys".to_owned()),
    ];
    for (method, path) in forbidden {
        let (status, body) = answered(server.as_legacy_worker(method.clone(), &path)).await;
        assert!(matches!(status, StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED), "{method} {path}: {status} {body}");
    }
    // a row that is another's: its id is not enough
    let mut stolen = elsewhere.clone();
    stolen["worker_uuid"] = mine["worker_uuid"].clone();
    let put = server.as_legacy_worker(Method::PUT, &format!("/v1/workers/{}", elsewhere["id"])).json(&stolen);
    assert_eq!(answered(put).await.0, StatusCode::FORBIDDEN);
    // one of ours has a credential of its own, and its id is no secret
    let mut stolen = mine.clone();
    stolen["worker_uuid"] = json!(own_worker.uuid);
    let put = server.as_legacy_worker(Method::PUT, &format!("/v1/workers/{}", own.id())).json(&stolen);
    assert_eq!(answered(put).await.0, StatusCode::FORBIDDEN);
    let post = server.as_legacy_worker(Method::POST, "/v1/workers").json(&stolen);
    assert_eq!(answered(post).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn nobody_gets_in_without_a_secret() {
    let server = TestServer::start().await;
    for (method, path) in [
        (Method::GET, "/v1/workers"),
        (Method::POST, "/v1/workers"),
        (Method::GET, "/v1/workers/1"),
        (Method::PUT, "/v1/workers/1"),
        (Method::DELETE, "/v1/workers/1"),
        (Method::POST, "/v1/workers/1/replacement"),
        (Method::GET, "/v1/gpu-devices"),
        (Method::GET, "/v1/gpu-devices/a:npu:0"),
        (Method::GET, "/v1/model-instances"),
        (Method::GET, "/v1/fleet"),
        (Method::GET, "/v1/events"),
        (Method::POST, "/v1/events/0/watch"),
        (Method::GET, "/v1/tasks"),
    ] {
        let call = server.request(method.clone(), path).json(&json!({}));
        let (status, body) = answered(call).await;
        assert_eq!((status, &body["reason"]), (StatusCode::UNAUTHORIZED, &json!("Unauthorized")), "{method} {path}");
        let wrong = server.request(method.clone(), path).basic_auth("system/worker/127.0.0.1", Some("0".repeat(32)));
        assert_eq!(answered(wrong.json(&json!({}))).await.0, StatusCode::UNAUTHORIZED, "{method} {path}");
    }
    assert_eq!(answered(server.request(Method::GET, "/readyz")).await, (StatusCode::OK, json!("ok")));
    assert_eq!(answered(server.request(Method::GET, "/healthz")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn an_operators_labels_survive_the_workers_old_copy_of_them() {
    let server = TestServer::start().await;
    let (_, row) = post(&server, "w", "127.0.0.1").await;
    let path = format!("/v1/workers/{}", row["id"]);
    let labels = json!({"rack": "7"});
    let change = json!({"labels": labels, "name": "w", "state": "not_ready"});
    let (status, changed) = answered(server.as_admin(Method::PUT, &path).json(&change)).await;
    assert_eq!((status, &changed["labels"], &changed["name"]), (StatusCode::OK, &labels, &json!("w")));
    let beat = server.as_legacy_worker(Method::PUT, &path).json(&row);
    assert_eq!(answered(beat).await.1["labels"], labels);
}

#[tokio::test]
async fn a_watch_begins_with_all_rows_and_goes_on_with_changes() {
    let server = TestServer::start().await;
    let (_, first) = post(&server, "first", "127.0.0.1").await;
    let mut watch = server.as_admin(Method::GET, "/v1/workers?watch=true").send().await.unwrap();
    let mut lines = Lines::default();
    let event = lines.next(&mut watch).await;
    assert_eq!((&event["type"], &event["data"]["name"]), (&json!(1), &json!("first")));
    post(&server, "second", "127.0.0.1").await;
    let event = lines.next_of(&mut watch, "second").await;
    assert_eq!(event["type"], json!(1));
    let path = format!("/v1/workers/{}", first["id"]);
    let maintenance = json!({"maintenance": {"enabled": true, "message": "new fans"}});
    answered(server.as_admin(Method::PUT, &path).json(&maintenance)).await;
    loop {
        let event = lines.next_of(&mut watch, "first").await;
        assert_eq!(event["type"], json!(2));
        if event["data"]["state"] == json!("maintenance") {
            assert_eq!(event["data"]["state_message"], json!("new fans"));
            break;
        }
    }
    answered(server.as_admin(Method::DELETE, &path)).await;
    loop {
        let event = lines.next_of(&mut watch, "first").await;
        if event["type"] == json!(3) {
            break;
        }
    }
}

/// JSON objects, each followed by two newlines.
#[derive(Default)]
struct Lines {
    buffer: String,
}

impl Lines {
    async fn next(&mut self, watch: &mut Response) -> Value {
        loop {
            if let Some(line) = take_block(&mut self.buffer) {
                if !line.is_empty() {
                    return serde_json::from_str(&line).unwrap();
                }
                continue;
            }
            let chunk = tokio::time::timeout(Duration::from_mins(1), watch.chunk()).await.unwrap().unwrap().unwrap();
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    async fn next_of(&mut self, watch: &mut Response, name: &str) -> Value {
        loop {
            let event = self.next(watch).await;
            if event["data"]["name"] == json!(name) {
                return event;
            }
        }
    }
}

#[tokio::test]
async fn lists_are_cut_into_pages_and_searched() {
    let server = TestServer::start().await;
    for name in ["npu-a", "npu-b", "gpu-c"] {
        post(&server, name, "127.0.0.1").await;
    }
    let names = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    let page = server.admin_json("/v1/workers?page=2&perPage=2").await;
    assert_eq!(names(&page), ["npu-a"]);
    assert_eq!(page["pagination"], json!({"page": 2, "perPage": 2, "total": 3, "totalPage": 2}));
    assert_eq!(names(&server.admin_json("/v1/workers?search=NPU").await), ["npu-b", "npu-a"]);
    assert_eq!(names(&server.admin_json("/v1/workers?name=npu").await), Vec::<String>::new());
    for bad in ["perPage=101", "perPage=0", "page=0", "page=x"] {
        let (status, body) = answered(server.as_admin(Method::GET, &format!("/v1/workers?{bad}"))).await;
        assert_eq!((status, &body["reason"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("Invalid")), "{bad}");
    }
}

#[tokio::test]
async fn a_hostile_name_stays_plain_text_in_every_message() {
    let server = TestServer::start().await;
    let (_, row) = post(&server, "<img src=x onerror=alert(1)>", "127.0.0.1").await;
    let path = format!("/v1/workers/{}", row["id"]);
    let row = until("the failed probe", || async {
        let row = server.admin_json(&path).await;
        (row["state"] == json!("unreachable")).then_some(row)
    })
    .await;
    assert!(!row["state_message"].as_str().unwrap().contains('<'));
    let answer = server.as_admin(Method::GET, &path).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
}
