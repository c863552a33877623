//! The generator on servers in this process, whose answers a test decides.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::player::{machine_of, EPOCH_MS};
use crate::{Client, ErrorKind, LeaseOptions, LossKind, Options, Reason};

/// How a server answers a request about leases.
#[derive(Clone, Debug)]
enum Reply {
    Usual,
    Nothing,
    /// Terms that cannot be used.
    Unusable,
    TooOld,
    /// A LeaseRefusal: the fault and another server.
    Fault(u32, String),
    /// A Refusal for this reason.
    Reason(u32),
}

/// A server that leases one machine id.
#[derive(Clone)]
struct Peer {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
    reply: Arc<Mutex<Reply>>,
    connections: Arc<Mutex<JoinSet<std::io::Result<()>>>>,
    listening: Arc<Mutex<Option<AbortHandle>>>,
}

fn field(kind: u8, id: u8, value: &[u8]) -> Vec<u8> {
    [&[kind, 0, id], value].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

fn i32_field(id: u8, value: u32) -> Vec<u8> {
    field(8, id, &value.to_be_bytes())
}

fn i64_field(id: u8, value: i64) -> Vec<u8> {
    field(10, id, &value.to_be_bytes())
}

fn structure(id: u8, fields: &[Vec<u8>]) -> Vec<u8> {
    field(12, id, &[fields.concat(), vec![0]].concat())
}

fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

impl Peer {
    async fn start(machine: u32) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let reply = Arc::new(Mutex::new(Reply::Usual));
        let peer =
            Peer { address, asked: Arc::default(), reply, connections: Arc::default(), listening: Arc::default() };
        let serving = peer.clone();
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let connection = serving.clone().serve(stream, machine);
                serving.connections.lock().unwrap().spawn(connection);
            }
        });
        *peer.listening.lock().unwrap() = Some(accepting.abort_handle());
        peer
    }

    fn refuse_connections(&self) {
        self.listening.lock().unwrap().take().unwrap().abort();
    }

    fn drop_connections(&self) {
        self.connections.lock().unwrap().abort_all();
    }

    async fn renewals(&self, more: usize) {
        let before = self.count("renewLease");
        until("no renewals", || self.count("renewLease") >= before + more).await;
    }

    fn set(&self, reply: Reply) {
        *self.reply.lock().unwrap() = reply;
    }

    fn count(&self, method: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|one| *one == method).count()
    }

    async fn serve(self, mut stream: TcpStream, machine: u32) -> std::io::Result<()> {
        loop {
            let size = stream.read_u32().await? as usize;
            let mut request = vec![0; size];
            stream.read_exact(&mut request).await?;
            let end = 8 + request[7] as usize;
            let (method, sequence) =
                (String::from_utf8_lossy(&request[8..end]).into_owned(), &request[end..end + 4]);
            self.asked.lock().unwrap().push(method.clone());
            let reply = self.reply.lock().unwrap().clone();
            let (kind, result) = match (method.as_str(), reply) {
                ("status", _) => {
                    let (uuid, layout) = (field(11, 1, &text("u")), field(11, 5, &text("firn")));
                    (2, structure(0, &[uuid, layout, i32_field(7, 2)]))
                }
                (_, Reply::Nothing) => continue,
                (_, Reply::TooOld) => (3, [field(11, 1, &text("unknown")), i32_field(2, 1)].concat()),
                (_, Reply::Fault(fault, server)) => {
                    let (message, server) = (field(11, 2, &text("as the test says")), field(11, 3, &text(&server)));
                    (2, structure(2, &[i32_field(1, fault), message, server]))
                }
                (_, Reply::Reason(reason)) => {
                    (2, structure(1, &[i32_field(1, reason), field(11, 2, &text("no right @lease"))]))
                }
                ("releaseLease", Reply::Usual | Reply::Unusable) => (2, Vec::new()),
                (_, Reply::Unusable) => (2, self.terms(5000)), // its machine id is too large
                (_, Reply::Usual) => (2, self.terms(machine)),
            };
            let head = [0x80, 1, 0, kind];
            let frame = [&head, &*text(&method), sequence, &result, &[0]].concat();
            stream.write_all(&[&(frame.len() as u32).to_be_bytes()[..], &frame].concat()).await?;
        }
    }

    fn terms(&self, machine: u32) -> Vec<u8> {
        let now = wall_ms() - EPOCH_MS;
        structure(
            0,
            &[
                field(11, 1, &text(&format!("lease-{machine}"))),
                i32_field(3, machine),
                i64_field(6, i64::from(machine) << 12),
                i32_field(7, 22),
                i32_field(9, 12),
                i64_field(11, 4096),
                i32_field(12, 1),
                i64_field(13, EPOCH_MS),
                i64_field(14, now - 1000),
                i64_field(15, now + 60_000),
                i32_field(16, 100),
                field(11, 18, &text(&self.address)),
            ],
        )
    }
}

fn client_of(peers: &[&Peer]) -> Client {
    let addresses: Vec<&str> = peers.iter().map(|one| one.address.as_str()).collect();
    let patient = Options::new().deadline(Duration::from_secs(20)).attempt_limit(Duration::from_secs(10));
    Client::with_options(&format!("list://{}", addresses.join(",")), patient).unwrap()
}

fn options() -> LeaseOptions {
    LeaseOptions::new("checkout-7f9c")
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}");
}

#[tokio::test]
async fn makes_ids_from_memory_renews_and_releases_its_lease() {
    let peer = Peer::start(7).await;
    let generator = client_of(&[&peer]).local_generator(options()).await.unwrap(); // keeps the client
    let ids: Vec<i64> = (0..20_000).map(|_| generator.next().unwrap()).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(ids.iter().all(|id| machine_of(*id) == 7));
    assert_eq!(generator.machine_id(), Some(7));
    let first = generator.until().unwrap();
    until("no renewal", || generator.until().unwrap() > first).await;
    generator.close().await;
    assert_eq!(peer.count("releaseLease"), 1);
    let error = generator.next().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Closed, "the generator was closed"));
    assert_eq!((generator.machine_id(), generator.until()), (None, None));
    generator.close().await; // again
}

#[tokio::test]
async fn renewals_keep_their_connection() {
    let peer = Peer::start(7).await;
    let generator = client_of(&[&peer]).local_generator(options()).await.unwrap();
    peer.renewals(1).await;
    peer.refuse_connections();
    peer.renewals(4).await;
    assert_eq!(generator.last_refusal(), None);
    generator.next().unwrap();
}

#[tokio::test]
async fn a_renewal_replaces_a_connection_that_the_server_closed() {
    let peer = Peer::start(7).await;
    let generator = client_of(&[&peer]).local_generator(options()).await.unwrap();
    for _ in 0..3 {
        peer.renewals(1).await;
        peer.drop_connections();
    }
    peer.renewals(2).await;
    assert_eq!(generator.last_refusal(), None);
    generator.next().unwrap();
}

#[tokio::test]
async fn a_dropped_generator_gives_its_lease_back() {
    let peer = Peer::start(7).await;
    drop(client_of(&[&peer]).local_generator(options()).await.unwrap());
    until("no release", || peer.count("releaseLease") == 1).await;
}

#[tokio::test]
async fn opening_fails_when_no_server_answers_in_time() {
    let peer = Peer::start(7).await;
    peer.set(Reply::Nothing);
    let client = client_of(&[&peer]);
    let error = client.local_generator(options().timeout(Duration::from_millis(300))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoLease);
    assert!(error.message().starts_with("no server has granted a lease within 300ms; "), "{error}");
    client.close();
    assert_eq!(client.local_generator(options()).await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn opening_fails_at_once_when_every_server_would_refuse() {
    let peer = Peer::start(7).await;
    peer.set(Reply::Reason(8));
    let error = client_of(&[&peer]).local_generator(options()).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Refused, Some(Reason::Rejected)));
    assert!(error.message().contains("no right @lease"), "{error}");
}

#[tokio::test]
async fn asks_another_server_when_one_is_too_old_grants_none_or_does_not_have_the_lease() {
    let (old, poor, good) = (Peer::start(7).await, Peer::start(8).await, Peer::start(9).await);
    old.set(Reply::TooOld);
    poor.set(Reply::Fault(5, String::new()));
    let client = client_of(&[&old, &poor, &good]);
    let generator = client.local_generator(options()).await.unwrap();
    assert_eq!(generator.machine_id(), Some(9));
    old.set(Reply::Usual);
    good.set(Reply::Fault(4, old.address.clone()));
    generator.close().await;
    assert_eq!(old.count("releaseLease"), 1);
}

#[tokio::test]
async fn gives_back_a_lease_that_cannot_be_used_and_asks_another_server() {
    let (bad, good) = (Peer::start(7).await, Peer::start(8).await);
    bad.set(Reply::Unusable);
    let client = client_of(&[&bad, &good]);
    for _ in 0..100 {
        let generator = client.local_generator(options()).await.unwrap();
        assert_eq!(generator.machine_id(), Some(8));
        generator.close().await;
        if bad.count("releaseLease") > 0 {
            return; // the servers are asked in any order
        }
    }
    panic!("not given back");
}

#[tokio::test]
async fn repeats_a_renewal_that_was_answered_with_unusable_terms() {
    let peer = Peer::start(7).await;
    let generator = client_of(&[&peer]).local_generator(options()).await.unwrap();
    peer.set(Reply::Unusable);
    let before = peer.count("renewLease");
    until("not repeated", || peer.count("renewLease") > before + 1).await;
    assert_eq!(peer.count("lease"), 1);
    generator.next().unwrap();
}

#[tokio::test]
async fn stops_at_once_when_the_lease_is_revoked() {
    let peers = [Peer::start(7).await, Peer::start(8).await];
    let lost = Arc::new(Mutex::new(Vec::new()));
    let losses = Arc::clone(&lost);
    let options = options().on_lost(move |loss| {
        losses.lock().unwrap().push(loss.clone());
        panic!("of the program's callback: the generator continues");
    });
    let generator = client_of(&[&peers[0], &peers[1]]).local_generator(options).await.unwrap();
    peers.iter().for_each(|one| one.set(Reply::Fault(3, String::new())));
    until("not lost", || !lost.lock().unwrap().is_empty()).await;
    assert_eq!(lost.lock().unwrap()[0].kind, LossKind::Revoked);
    let error = generator.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoLease);
    assert!(error.message().contains("was revoked at ") && error.message().contains("as the test says"), "{error}");
    peers.iter().for_each(|one| one.set(Reply::Usual));
    until("no other lease", || generator.machine_id().is_some()).await;
    generator.next().unwrap();
}

#[tokio::test]
async fn close_waits_at_most_a_second_for_a_server_that_does_not_answer() {
    let peer = Peer::start(7).await;
    let generator = client_of(&[&peer]).local_generator(options()).await.unwrap();
    peer.set(Reply::Nothing);
    tokio::time::timeout(Duration::from_secs(20), generator.close()).await.unwrap();
    assert_eq!(peer.count("releaseLease"), 1);
}

#[tokio::test]
async fn the_end_of_the_client_ends_its_generators() {
    let peer = Peer::start(7).await;
    let client = client_of(&[&peer]);
    let generator = client.local_generator(options()).await.unwrap();
    client.close();
    until("it still issues", || generator.next().is_err()).await;
    let error = generator.next().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Closed, "the client of this generator was closed"));
    generator.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_of_all_threads_differ_and_none_follows_the_end() {
    let peer = Peer::start(7).await;
    let generator = Arc::new(client_of(&[&peer]).local_generator(options()).await.unwrap());
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let generator = Arc::clone(&generator);
            std::thread::spawn(move || std::iter::from_fn(|| generator.next().ok()).collect::<Vec<i64>>())
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(20)).await;
    generator.close().await; // while they issue
    let ids: Vec<i64> = threads.into_iter().flat_map(|one| one.join().unwrap()).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    assert!(generator.next().is_err());
}

#[tokio::test]
async fn every_fault_of_the_options_is_named() {
    let peer = Peer::start(7).await;
    let client = client_of(&[&peer]);
    for ahead in [Duration::from_millis(1999), Duration::from_secs(86_401)] {
        let error = client.local_generator(options().ahead(ahead)).await.unwrap_err();
        assert!(error.message().ends_with("not 2 s to 24 h"), "{error}");
    }
    for name in ["", "\u{fc}", "a\n", &"a".repeat(65)] {
        assert_eq!(client.local_generator(LeaseOptions::new(name)).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
    let wrong = LeaseOptions::new("a b").rack(-1).ahead(Duration::ZERO);
    let error = client.local_generator(wrong).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    for part in ["name is 'a b'", "rack is -1", "ahead is 0ns"] {
        assert!(error.message().contains(part), "{part}: {error}");
    }
}

#[cfg(feature = "blocking")]
#[tokio::test]
async fn a_blocking_generator_gives_its_lease_back_when_it_is_dropped() {
    let peer = Peer::start(7).await;
    let servers = format!("list://{}", peer.address);
    let thread = std::thread::spawn(move || {
        let client = crate::blocking::Client::new(&servers).unwrap();
        let generator = client.local_generator(LeaseOptions::new("checkout-7f9c")).unwrap();
        drop(client);
        assert_eq!(machine_of(generator.next().unwrap()), 7);
        assert_eq!(generator.machine_id(), Some(7));
        assert!(generator.until().unwrap() > SystemTime::now());
        drop(generator);
        let client = crate::blocking::Client::new(&servers).unwrap();
        let generator = client.local_generator(LeaseOptions::new("checkout-7f9c")).unwrap();
        generator.close();
        assert_eq!(generator.next().unwrap_err().kind(), ErrorKind::Closed);
    });
    until("the thread hangs", || thread.is_finished()).await;
    thread.join().unwrap();
    assert_eq!(peer.count("releaseLease"), 2);
}
