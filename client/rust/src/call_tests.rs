//! A failover rule that needs a look inside the client; tests/conformance plays the others.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

use crate::options::Options;
use crate::upkeep;

const TAG: &str = "count";

/// A server of one segment tag. While it hangs, it reads calls for ids and does not answer them.
struct Peer {
    address: String,
    hangs: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>, // connections
}

impl Peer {
    async fn start(ids: &Arc<AtomicI64>) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let peer = Peer { address, hangs: Arc::default(), asked: Arc::default(), open: Arc::default() };
        let open = Arc::clone(&peer.open);
        let (hangs, asked, ids) = (Arc::clone(&peer.hangs), Arc::clone(&peer.asked), Arc::clone(ids));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let serving = serve(stream, Arc::clone(&hangs), Arc::clone(&asked), Arc::clone(&ids));
                let open = Arc::clone(&open);
                tokio::spawn(async move {
                    open.fetch_add(1, Ordering::SeqCst);
                    let _ = serving.await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        peer
    }
}

fn field(kind: u8, id: u8, value: &[u8]) -> Vec<u8> {
    [&[kind, 0, id], value].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

fn status() -> Vec<u8> {
    let tag = [field(11, 1, &text(TAG)), field(11, 2, &text("segment")), vec![0]].concat();
    let tags = [&[12][..], &1u32.to_be_bytes(), &tag].concat();
    let (uuid, layout) = (field(11, 1, &text("u")), field(11, 5, &text("firn")));
    let fields = [uuid, layout, field(8, 7, &[0, 0, 0, 2]), field(15, 14, &tags), vec![0]];
    field(12, 0, &fields.concat())
}

async fn serve(
    mut stream: TcpStream,
    hangs: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    ids: Arc<AtomicI64>,
) -> std::io::Result<()> {
    loop {
        let size = stream.read_u32().await? as usize;
        let mut request = vec![0; size];
        stream.read_exact(&mut request).await?;
        let end = 8 + request[7] as usize; // of the method's name
        let result = if &request[8..end] == b"status" {
            status()
        } else {
            asked.fetch_add(1, Ordering::SeqCst);
            if hangs.load(Ordering::SeqCst) {
                continue;
            }
            field(10, 0, &ids.fetch_add(1, Ordering::SeqCst).to_be_bytes())
        };
        let head = [&[0x80, 1, 0, 2], &request[4..end + 4]].concat();
        let answer = [head, result, vec![0]].concat();
        stream.write_u32(answer.len() as u32).await?;
        stream.write_all(&answer).await?;
    }
}

#[tokio::test]
async fn a_hung_server_does_not_use_up_the_retry_budget() {
    let ids = Arc::new(AtomicI64::new(1));
    let (hung, healthy) = (Peer::start(&ids).await, Peer::start(&ids).await);
    let options = Options {
        deadline: Duration::from_secs(60),
        attempt_limit: Duration::from_secs(2),
        connections_max: 1000,
        ..Options::default()
    };
    let seeds = options.check(&format!("list://{},{}", hung.address, healthy.address)).unwrap();
    let until = Instant::now() + options.deadline;
    let engine = Engine::new(options, seeds, Handle::current());
    engine.spawn(upkeep::run(Arc::clone(&engine)));
    engine.call(Ask::Id { tag: TAG }, until, Mode::Async).await.unwrap();
    for _ in 0..197 {
        assert!(engine.fleet.take_retry()); // three are left, and 20 more in 2 s
    }
    hung.hangs.store(true, Ordering::SeqCst);
    let calls: Vec<_> = (0..200)
        .map(|_| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move { engine.call(Ask::Id { tag: TAG }, until, Mode::Async).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert!(hung.asked.load(Ordering::SeqCst) > 40, "the hung server got only {:?} requests", hung.asked);
    engine.close();
}

fn start(peer: &Peer, attempt_limit: Duration) -> Arc<Engine> {
    let options = Options { attempt_limit, ..Options::default() };
    let seeds = options.check(&format!("list://{}", peer.address)).unwrap();
    let engine = Engine::new(options, seeds, Handle::current());
    engine.spawn(upkeep::run(Arc::clone(&engine)));
    engine
}

async fn closes(peer: &Peer) {
    let limit = Instant::now() + Duration::from_secs(10);
    while peer.open.load(Ordering::SeqCst) > 0 {
        assert!(Instant::now() < limit, "{:?} connections are open", peer.open);
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_silent_connection_is_closed_after_its_calls_were_dropped() {
    let peer = Peer::start(&Arc::new(AtomicI64::new(1))).await;
    let engine = start(&peer, Duration::from_millis(300));
    let until = Instant::now() + Duration::from_secs(60);
    engine.call(Ask::Id { tag: TAG }, until, Mode::Async).await.unwrap();
    peer.hangs.store(true, Ordering::SeqCst);
    let call = engine.call(Ask::Id { tag: TAG }, until, Mode::Async);
    assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
    closes(&peer).await;
    assert_eq!(engine.fleet.counts.read().timeouts, 1);
    engine.close();
}

#[tokio::test]
async fn a_connection_whose_server_left_the_list_meanwhile_is_closed_after_its_calls() {
    let peer = Peer::start(&Arc::new(AtomicI64::new(1))).await;
    let engine = start(&peer, Duration::from_secs(10));
    ask_gone(&engine, &peer).await.unwrap();
    closes(&peer).await;
    engine.close();
}

#[tokio::test]
async fn closing_the_client_ends_calls_at_a_server_that_left_the_list() {
    let peer = Peer::start(&Arc::new(AtomicI64::new(1))).await;
    peer.hangs.store(true, Ordering::SeqCst);
    let engine = start(&peer, Duration::from_secs(10));
    let closing = async {
        while peer.asked.load(Ordering::SeqCst) == 0 {
            sleep(Duration::from_millis(5)).await;
        }
        engine.close();
    };
    let (outcome, ()) = tokio::join!(ask_gone(&engine, &peer), closing);
    assert_eq!(outcome.unwrap_err().detail, "the client was closed");
}

/// Asks the peer on a connection that is opened after it left the list.
async fn ask_gone(engine: &Arc<Engine>, peer: &Peer) -> Result<(Answer, bool), Failure> {
    let picked = engine.fleet.pick(TAG, &[], Mode::Async).unwrap();
    let gone = Server {
        id: picked.server.id + 1,
        slot: picked.server.slot,
        address: peer.address.clone(),
        #[cfg(feature = "blocking")]
        room: tokio::sync::Semaphore::new(1),
        dialling: tokio::sync::Mutex::default(),
        spoke: Default::default(),
        in_flight: Default::default(),
    };
    let until = Instant::now() + Duration::from_secs(10);
    let how = How { mode: Mode::Async, fresh: false };
    let ask = Ask::Id { tag: TAG };
    engine.attempt(&gone, &ask, how, until, &[], &mut Late::default()).await
}

#[tokio::test]
async fn the_future_of_a_call_is_small() {
    let client = crate::Client::new("list://127.0.0.1:1").unwrap();
    let bytes = std::mem::size_of_val(&client.next_id(TAG));
    assert!(bytes <= 768, "{bytes}");
}
