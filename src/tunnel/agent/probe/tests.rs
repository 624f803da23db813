use super::*;
use crate::tunnel::plan::tests::plan;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_rustls::TlsAcceptor;

const URL: &str = "https://127.0.0.1:8443/healthz";

/// The forward that brings the port of a server with TLS to a worker.
fn forward() -> PlannedForward {
    let file = "
server_url: https://10.0.0.1:443
server: {address: 10.0.0.1:443}
workers: {npu-1: {ssh: root@npu-1, server_port: 8443}}
";
    plan(file).forwards.remove(0)
}

fn question() -> Question {
    Question::new(Scheme::Https, &Endpoint::new("127.0.0.1", 8443))
}

fn answer(health: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{health}", health.len())
}

/// Answers whatever is asked in the clear.
async fn answer_plainly(mut stream: DuplexStream, answer: String) {
    let _ = stream.read(&mut [0; 4096]).await;
    let _ = stream.write_all(answer.as_bytes()).await;
}

/// Answers over TLS, with a certificate that nobody knows.
async fn answer_over_tls(stream: DuplexStream, answer: String) {
    let made = rcgen::generate_simple_self_signed(vec!["elsewhere".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let mut stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await.unwrap();
    let _ = stream.read(&mut [0; 4096]).await;
    stream.write_all(answer.as_bytes()).await.unwrap();
    let _ = stream.shutdown().await;
}

fn expected(server: &str) -> Expected {
    Expected { server: Some(server.to_owned()) }
}

#[tokio::test]
async fn a_server_that_speaks_tls_is_asked_over_it_and_known_by_its_key() {
    let (near, far) = duplex(64 * 1024);
    let asked = question();
    let (answer, ()) =
        tokio::join!(asked.ask(Box::new(near)), answer_over_tls(far, answer(r#"{"server":"SHA256:a"}"#)));
    let answer = answer.unwrap();
    assert_eq!(judge(&answer, &forward(), &expected("SHA256:a"), URL), Ok(()));
    let other = FaultCause::WrongServer {
        url: URL.to_owned(),
        expected: Some("SHA256:b".to_owned()),
        answered: Some("SHA256:a".to_owned()),
    };
    assert_eq!(judge(&answer, &forward(), &expected("SHA256:b"), URL), Err(other));
}

#[tokio::test]
async fn what_speaks_no_tls_where_a_server_should_is_something_else() {
    let (near, far) = duplex(64 * 1024);
    let asked = question();
    let (answer, ()) = tokio::join!(asked.ask(Box::new(near)), answer_plainly(far, answer("{}")));
    assert_eq!(answer.unwrap_err(), here(FaultCause::WrongAnswer { url: URL.to_owned(), status: None }));
}

#[test]
fn who_does_not_answer_is_named_with_the_host_where_to_look() {
    let question =
        Question { asked_on: Some("root@npu-1:22".to_owned()), target: Some("10.0.0.1:443".to_owned()), ..question() };
    let fault = question.unanswered(fault::no_answer_within(DEADLINE));
    let FaultCause::NothingAnswers { url, detail, asked_on, target, target_from } = fault.cause else { panic!() };
    assert_eq!((url.as_str(), detail.as_str(), target_from), (URL, "no answer within 10 s", None));
    assert_eq!((asked_on.as_deref(), target.as_deref()), (Some("root@npu-1:22"), Some("10.0.0.1:443")));
}
