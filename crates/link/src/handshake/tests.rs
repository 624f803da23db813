use super::*;
use std::sync::Mutex;
use tokio::io::DuplexStream;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Knows one token and no keys, and keeps what it was told.
#[derive(Default)]
struct TokenGate {
    join_requests: Mutex<Vec<Bytes>>,
}

#[async_trait]
impl Gatekeeper for TokenGate {
    async fn tokens(&self) -> Vec<JoinToken> {
        vec![JoinToken::new(TOKEN)]
    }

    async fn recognise(&self, applicant: &Applicant) -> Result<(), Refusal> {
        match applicant.token {
            ShownToken::None => Err(Refusal::UnknownKey),
            ShownToken::Wrong => Err(Refusal::WrongToken),
            ShownToken::Valid(_) => Ok(()),
        }
    }

    async fn admit(&self, _applicant: &Applicant, join_request: Bytes) -> Result<Admission, Refusal> {
        self.join_requests.lock().unwrap().push(join_request);
        Ok(Admission::Link { id: "worker".into(), answer: Bytes::from_static(b"welcome") })
    }
}

struct Server {
    keys: KeyPair,
    gate: Arc<TokenGate>,
}

impl Server {
    fn new() -> Self {
        Self { keys: KeyPair::generate().unwrap(), gate: Arc::default() }
    }

    async fn receive(&self, io: DuplexStream) -> Result<Accepted, AcceptError> {
        let side = ServerSide {
            tls: TlsAcceptor::from(Arc::new(encryption::server_config(&self.keys).unwrap())),
            key: self.keys.public(),
            gatekeeper: Arc::clone(&self.gate) as Arc<dyn Gatekeeper>,
            key_rotation: Duration::from_hours(24),
        };
        side.receive(Box::new(io), "127.0.0.1:1".parse().unwrap(), &Traffic::new()).await
    }
}

async fn join(keys: &KeyPair, server_key: Option<PublicKey>, io: DuplexStream) -> Result<Joined, JoinError> {
    let token = JoinToken::new(TOKEN);
    let side = WorkerSide {
        keys,
        server_key,
        token: Some(&token),
        generation: Generation { process: 1, attempt: 1 },
        join_request: Bytes::from_static(b"let me in"),
        key_rotation: Duration::from_hours(24),
    };
    side.join(Box::new(io), &Traffic::new()).await
}

/// TLS as the server speaks it, with messages of the test's own.
async fn as_server(keys: &KeyPair, io: DuplexStream) -> tokio_rustls::server::TlsStream<DuplexStream> {
    TlsAcceptor::from(Arc::new(encryption::server_config(keys).unwrap())).accept(io).await.unwrap()
}

/// TLS as a worker speaks it, with messages of the test's own.
async fn as_worker(keys: &KeyPair, io: DuplexStream) -> tokio_rustls::client::TlsStream<DuplexStream> {
    let config = encryption::client_config(keys, None, Arc::default()).unwrap();
    TlsConnector::from(Arc::new(config)).connect(encryption::no_name(), io).await.unwrap()
}

fn pipe() -> (DuplexStream, DuplexStream) {
    tokio::io::duplex(64 * 1024)
}

#[tokio::test]
async fn both_sides_come_to_know_each_other_by_the_token() {
    let (near, far) = pipe();
    let server = Server::new();
    let worker = KeyPair::generate().unwrap();
    let (joined, accepted) = tokio::join!(join(&worker, None, near), server.receive(far));
    let (joined, accepted) = (joined.ok().unwrap(), accepted.ok().unwrap());
    assert_eq!((joined.server_key, joined.answer), (server.keys.public(), Bytes::from_static(b"welcome")));
    assert_eq!((accepted.applicant.worker_key, &*accepted.id), (worker.public(), "worker"));
}

/// A man in the middle without the token: speaks TLS with both sides, and passes the worker's proof on.
#[tokio::test]
async fn a_proof_that_is_passed_on_is_worth_nothing() {
    let (worker_io, from_worker) = pipe();
    let (to_server, server_io) = pipe();
    let server = Server::new();
    let worker = KeyPair::generate().unwrap();
    let middle = KeyPair::generate().unwrap();
    let man_in_the_middle = async {
        let mut from_worker = as_server(&middle, from_worker).await;
        let hello = message::read(&mut from_worker, &[Kind::WorkerHello]).await.unwrap();
        let mut to_server = as_worker(&middle, to_server).await;
        message::write(&mut to_server, &hello).await.unwrap();
        let answer = message::read(&mut to_server, &[Kind::ServerHello, Kind::Refused]).await.unwrap();
        message::write(&mut from_worker, &answer).await.unwrap();
        answer
    };
    let (joined, refused, answer) =
        tokio::join!(join(&worker, None, worker_io), server.receive(server_io), man_in_the_middle);
    assert_eq!(answer, Message::Refused(Refusal::WrongToken), "and nothing beside it");
    assert!(matches!(refused, Err(AcceptError::Refused(Refusal::WrongToken))));
    assert!(matches!(joined, Err(JoinError::Refused { refusal: Refusal::WrongToken, proven: false })));
    assert!(server.gate.join_requests.lock().unwrap().is_empty());
}

/// A man in the middle without the token who plays the server: with no proof, with the worker's own, with a made-up one.
#[tokio::test]
async fn a_server_that_does_not_know_the_token_hears_nothing() {
    for forge in [|_| None, |own| own, |_| Some([7; 32])] {
        let forge: fn(Option<[u8; 32]>) -> Option<[u8; 32]> = forge;
        let (worker_io, server_io) = pipe();
        let worker = KeyPair::generate().unwrap();
        let forger = async {
            let mut tls = as_server(&KeyPair::generate().unwrap(), server_io).await;
            let Message::WorkerHello(hello) = message::read(&mut tls, &[Kind::WorkerHello]).await.unwrap() else {
                panic!("the worker did not say hello")
            };
            let token_proof = forge(hello.token_proof);
            message::write(&mut tls, &Message::ServerHello(ServerHello { version: 1, token_proof })).await.unwrap();
            message::read(&mut tls, &[Kind::Join]).await
        };
        let (joined, heard) = tokio::join!(join(&worker, None, worker_io), forger);
        assert!(matches!(joined, Err(JoinError::ServerNotProven)));
        assert!(matches!(heard, Err(MessageError::Io(_))), "the join request went to a stranger");
    }
}

#[tokio::test]
async fn a_known_server_is_told_from_any_other_before_the_worker_says_who_it_is() {
    let (worker_io, server_io) = pipe();
    let server = Server::new();
    let expected = KeyPair::generate().unwrap().public();
    let worker = KeyPair::generate().unwrap();
    let (joined, received) = tokio::join!(join(&worker, Some(expected), worker_io), server.receive(server_io));
    let found = server.keys.public();
    assert!(
        matches!(joined, Err(JoinError::ServerKeyChanged { expected: e, found: f }) if e == expected && f == found)
    );
    assert!(matches!(received, Err(AcceptError::Encryption(_))));
}

fn hello(min_version: u16, max_version: u16) -> Message {
    let generation = Generation { process: 1, attempt: 1 };
    Message::WorkerHello(WorkerHello { min_version, max_version, generation, knows_server: true, token_proof: None })
}

/// What the server answers to a worker that sends these bytes after TLS.
async fn answer_to(bytes: &[u8]) -> (Message, AcceptError) {
    let (worker_io, server_io) = pipe();
    let server = Server::new();
    let worker = async {
        let mut tls = as_worker(&KeyPair::generate().unwrap(), worker_io).await;
        tls.write_all(bytes).await.unwrap();
        tls.flush().await.unwrap();
        message::read(&mut tls, &[Kind::ServerHello, Kind::Refused]).await.unwrap()
    };
    let (answer, received) = tokio::join!(worker, server.receive(server_io));
    (answer, received.err().unwrap())
}

#[tokio::test]
async fn a_version_that_the_server_does_not_speak_is_refused_with_those_it_does() {
    let mut bytes = Vec::new();
    message::write(&mut bytes, &hello(8, 9)).await.unwrap();
    let (answer, error) = answer_to(&bytes).await;
    let refusal = Refusal::VersionUnsupported { min: 1, max: 1 };
    assert_eq!(answer, Message::Refused(refusal.clone()));
    assert!(matches!(error, AcceptError::Refused(refused) if refused == refusal));
}

#[tokio::test]
async fn a_worker_that_speaks_later_versions_too_is_understood() {
    let mut bytes = Vec::new();
    message::write(&mut bytes, &hello(1, 9)).await.unwrap();
    let (answer, _) = answer_to(&bytes).await;
    assert_eq!(answer, Message::Refused(Refusal::UnknownKey));
}

#[tokio::test]
async fn garbage_endless_and_untimely_messages_are_refused() {
    let mut join_first = Vec::new();
    message::write(&mut join_first, &Message::Join(Bytes::new())).await.unwrap();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[1, 0xff, 0xff, 0xff, 0xff], &[1, 0, 0, 0, 1, 0], &join_first] {
        let (answer, error) = answer_to(bytes).await;
        assert_eq!(answer, Message::Refused(Refusal::Malformed));
        assert!(matches!(error, AcceptError::Message(_)), "{error}");
    }
}

/// The reason must arrive although the worker has sent more than the server will ever read.
#[tokio::test]
async fn a_refusal_arrives_at_a_worker_that_goes_on_talking() {
    let (worker_io, server_io) = tokio::io::duplex(4096);
    let server = Server::new();
    let worker = async {
        let tls = as_worker(&KeyPair::generate().unwrap(), worker_io).await;
        let (mut read, mut write) = tokio::io::split(tls);
        let talk = async {
            let endless = [9; 1024];
            while write.write_all(&endless).await.is_ok() {}
        };
        let answer = message::read(&mut read, &[Kind::Refused]);
        tokio::select! {
            () = talk => panic!("the connection ended without a reason"),
            answer = answer => answer.unwrap(),
        }
    };
    let (answer, _) = tokio::join!(worker, server.receive(server_io));
    assert_eq!(answer, Message::Refused(Refusal::Malformed));
}

/// A worker that was let in and then speaks something else than HTTP/2.
#[tokio::test]
async fn a_worker_that_turns_to_nonsense_loses_its_link_and_who_waits_is_told() {
    use crate::handle::{CloseReason, RequestError};
    let (near, far) = pipe();
    let server = Server::new();
    let worker = KeyPair::generate().unwrap();
    let (joined, accepted) = tokio::join!(join(&worker, None, near), server.receive(far));
    let (mut stream, accepted) = (joined.ok().unwrap().stream, accepted.ok().unwrap());
    let tuning = crate::tuning::Tuning::default();
    let carrier = crate::upgrade::Carrier::Stream;
    let begun = crate::driver::begin(accepted, carrier, Traffic::new(), &tuning).await.unwrap();
    let link = begun.handle.clone();
    let waiting = async {
        let request = http::Request::get("/").body(http_body_util::Empty::<Bytes>::new()).unwrap();
        link.request(request, Duration::from_mins(1)).await.unwrap_err()
    };
    let nonsense = async {
        stream.write_all(&[0xff; 100]).await.unwrap();
        stream.flush().await.unwrap();
    };
    let (reason, error, ()) = tokio::join!(begun.run(), waiting, nonsense);
    assert!(matches!(reason, CloseReason::Broken(_)), "{reason}");
    assert!(matches!(error, RequestError::Closed(CloseReason::Broken(_))), "{error}");
}
