//! What only the Rust client can get wrong: dropped futures, clones, runtimes, the blocking client and metrics.
//! tests/conformance plays the failover rules.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use firn_client::{Client, ErrorKind, LocalTag, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// A server of one segment tag. It answers a call for ids only with a permit of `gate`.
struct Server {
    address: String,
    gate: Arc<Semaphore>,
    asked: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    drop: Arc<tokio::sync::Notify>, // closes all connections
}

fn field(kind: u8, id: u8, value: &[u8]) -> Vec<u8> {
    [&[kind, 0, id], value].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

impl Server {
    async fn start(permits: usize) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server {
            address: listener.local_addr().unwrap().to_string(),
            gate: Arc::new(Semaphore::new(permits)),
            asked: Arc::default(),
            open: Arc::default(),
            drop: Arc::default(),
        };
        let drop = Arc::clone(&server.drop);
        let (gate, asked, open) = (Arc::clone(&server.gate), Arc::clone(&server.asked), Arc::clone(&server.open));
        tokio::spawn(async move {
            let ids = Arc::new(AtomicUsize::new(1));
            loop {
                let (peer, _) = listener.accept().await.unwrap();
                let (gate, asked, open, ids) =
                    (Arc::clone(&gate), Arc::clone(&asked), Arc::clone(&open), Arc::clone(&ids));
                let drop = Arc::clone(&drop);
                tokio::spawn(async move {
                    open.fetch_add(1, Ordering::SeqCst);
                    tokio::select! {
                        _ = serve(peer, &gate, &asked, &ids) => {}
                        () = drop.notified() => {}
                    }
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        server
    }

    fn url(&self) -> String {
        format!("list://{}", self.address)
    }
}

async fn serve(
    mut peer: TcpStream,
    gate: &Semaphore,
    asked: &AtomicUsize,
    ids: &AtomicUsize,
) -> std::io::Result<()> {
    loop {
        let size = peer.read_u32().await? as usize;
        let mut request = vec![0; size];
        peer.read_exact(&mut request).await?;
        let name_end = 8 + request[7] as usize;
        let (name, sequence) = (request[8..name_end].to_vec(), &request[name_end..name_end + 4]);
        let result = if name == b"status" {
            let tag = [field(11, 1, &text("count")), field(11, 2, &text("segment")), vec![0]].concat();
            let tags = [&[12][..], &1u32.to_be_bytes(), &tag].concat();
            let fields = [
                field(11, 1, &text("u")),
                field(11, 5, &text("firn")),
                field(8, 7, &[0, 0, 0, 2]),
                field(15, 14, &tags),
            ];
            field(12, 0, &[fields.concat(), vec![0]].concat())
        } else {
            asked.fetch_add(1, Ordering::SeqCst);
            let mut byte = [0];
            let permit = async {
                gate.acquire().await.unwrap().forget();
            };
            tokio::select! {
                () = permit => {}
                _ = peer.peek(&mut byte) => {} // the client has closed the connection
            }
            let count = if name == b"getRuns" {
                i64::from_be_bytes(request[request.len() - 9..request.len() - 1].try_into().unwrap())
            } else {
                1
            };
            let first = ids.fetch_add(count as usize, Ordering::SeqCst) as i64;
            match name.as_slice() {
                b"getId" => field(10, 0, &first.to_be_bytes()),
                b"getText" => field(11, 0, &text(&first.to_string())),
                _ => {
                    let run = [
                        field(10, 1, &first.to_be_bytes()),
                        field(8, 2, &(count as i32).to_be_bytes()),
                        field(10, 3, &1i64.to_be_bytes()),
                        vec![0],
                    ];
                    field(15, 0, &[&[12][..], &1u32.to_be_bytes(), &run.concat()].concat())
                }
            }
        };
        let head = [&[0x80, 1, 0, 2][..], &text(std::str::from_utf8(&name).unwrap()), sequence].concat();
        let answer = [head, result, vec![0]].concat();
        peer.write_all(&[&(answer.len() as u32).to_be_bytes()[..], &answer].concat()).await?;
    }
}

fn patient() -> Options {
    Options::new().deadline(Duration::from_secs(20)).attempt_limit(Duration::from_secs(10))
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..4000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("after 20 s: {what}");
}

#[tokio::test]
async fn a_dropped_call_gives_its_answer_to_no_other_call() {
    let server = Server::start(0).await;
    let client = Client::with_options(&server.url(), patient().connections_max(1)).unwrap();
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.next_id("count").await }
    });
    until("no request was sent", || server.asked.load(Ordering::SeqCst) == 1).await;
    assert_eq!(client.servers()[0].in_flight, 1);
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert_eq!(client.servers()[0].in_flight, 0);
    server.gate.add_permits(10);
    // The only place is free again, and the answer to the dropped call is lost with its connection.
    let id = client.next_id("count").await.unwrap();
    assert_eq!(server.asked.load(Ordering::SeqCst), 2, "{id}");
    until("the connection of the dropped call stays open", || server.open.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test]
async fn the_last_clone_closes_the_connections() {
    let server = Server::start(10).await;
    let client = Client::with_options(&server.url(), patient()).unwrap();
    let clone = client.within(Duration::from_secs(5));
    drop(client);
    clone.next_id("count").await.unwrap();
    assert_eq!(server.open.load(Ordering::SeqCst), 1);
    drop(clone);
    until("a connection stays open", || server.open.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn calls_of_a_closed_client_fail_as_closed_and_name_the_server() {
    let server = Server::start(0).await;
    let client = Client::with_options(&server.url(), patient()).unwrap();
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.next_id("count").await }
    });
    until("no request was sent", || server.asked.load(Ordering::SeqCst) == 1).await;
    client.close();
    let error = call.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.attempts()[0].server.as_str()), (ErrorKind::Closed, server.address.as_str()));
    assert_eq!(client.next_id("count").await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_call_ends_at_its_own_deadline() {
    let server = Server::start(0).await;
    let client = Client::with_options(&server.url(), patient()).unwrap();
    let error = client.within(Duration::from_millis(20)).next_text("count").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    server.gate.add_permits(10);
    assert!(client.next_text("count").await.unwrap().parse::<i64>().is_ok());
}

#[tokio::test]
async fn ids_from_memory_are_different_on_all_threads() {
    let server = Server::start(1000).await;
    let options = patient().local_range(LocalTag::segment("count").fetch_max(1000));
    let client = Client::with_options(&server.url(), options).unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut ids = Vec::new();
                for _ in 0..2000 {
                    ids.push(client.next_id("count").await.unwrap());
                }
                ids
            })
        })
        .collect();
    let mut ids = Vec::new();
    for task in tasks {
        ids.extend(task.await.unwrap());
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 16_000);
    assert!(server.asked.load(Ordering::SeqCst) < 4000);
}

#[test]
fn a_client_outside_a_runtime_names_the_remedy() {
    let error = Client::new("firn://127.0.0.1:7609").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("blocking"), "{error}");
}

#[cfg(feature = "blocking")]
mod blocking {
    use super::*;
    use firn_client::blocking::Client;

    #[test]
    fn threads_share_one_client_and_its_end_closes_all() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::start(1000));
        let client = Client::with_options(&server.url(), patient()).unwrap();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let client = client.clone();
                std::thread::spawn(move || (0..50).map(|_| client.next_id("count").unwrap()).collect::<Vec<_>>())
            })
            .collect();
        let mut ids: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 200);
        drop(client);
        runtime.block_on(until("a connection stays open", || server.open.load(Ordering::SeqCst) == 0));
    }

    #[test]
    fn a_closed_client_ends_a_blocked_read() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::start(1));
        let client = Client::with_options(&server.url(), patient()).unwrap();
        client.next_id("count").unwrap();
        let blocked = std::thread::spawn({
            let client = client.clone();
            move || client.next_id("count")
        });
        runtime.block_on(until("no request was sent", || server.asked.load(Ordering::SeqCst) == 2));
        client.close();
        let error = blocked.join().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::Closed, 1), "{error}");
    }

    #[test]
    fn a_late_answer_is_given_to_no_other_call() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::start(1));
        let client = Client::with_options(&server.url(), patient()).unwrap();
        let first = client.next_id("count").unwrap();
        assert!(client.within(Duration::from_millis(20)).next_id("count").is_err());
        server.gate.add_permits(10);
        let next = client.next_id("count").unwrap();
        assert!(next > first, "{next} after {first}");
        let open = || server.open.load(Ordering::SeqCst) == 1;
        runtime.block_on(until("the connection of the late answer stays open", open));
    }

    #[test]
    fn a_call_fails_over_when_its_server_has_closed_an_idle_connection() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::start(10));
        let client = Client::with_options(&server.url(), patient()).unwrap();
        client.next_id("count").unwrap();
        server.drop.notify_waiters();
        runtime.block_on(until("a connection stays open", || server.open.load(Ordering::SeqCst) == 0));
        client.next_id("count").unwrap();
        assert_eq!(client.servers()[0].health, firn_client::ServerHealth::Healthy);
    }

    #[test]
    fn a_silent_server_is_asked_once() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::start(1));
        let options = patient().attempt_limit(Duration::from_secs(1)).failfast(true);
        let client = Client::with_options(&server.url(), options).unwrap();
        client.next_id("count").unwrap();
        assert_eq!(client.next_id("count").unwrap_err().attempts()[0].end, firn_client::End::Timeout);
        assert_eq!(server.asked.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn ids_come_from_memory() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::start(1000));
        let options = patient().local_range(LocalTag::segment("count"));
        let client = Client::with_options(&server.url(), options).unwrap();
        let mut ids: Vec<_> = (0..5000).map(|_| client.next_id("count").unwrap()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 5000);
        assert!(server.asked.load(Ordering::SeqCst) < 2500);
    }

    #[test]
    fn a_call_ends_at_its_deadline_and_a_closed_client_says_so() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::start(0));
        let client = Client::with_options(&server.url(), patient()).unwrap();
        let error = client.within(Duration::from_millis(20)).next_id("count").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        client.close();
        assert_eq!(client.next_id("count").unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(Client::new("list://nowhere").unwrap_err().kind(), ErrorKind::Invalid);
    }
}

#[cfg(feature = "metrics")]
mod metered {
    use super::*;
    use std::sync::Mutex;

    /// Collects the names and labels of all metrics that are touched.
    #[derive(Default)]
    struct Names(Mutex<Vec<String>>);

    impl metrics::Recorder for &'static Names {
        fn describe_counter(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
        fn describe_gauge(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
        fn describe_histogram(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
        fn register_counter(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
            self.0.lock().unwrap().push(key.to_string());
            metrics::Counter::noop()
        }
        fn register_gauge(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
            metrics::Gauge::noop()
        }
        fn register_histogram(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Histogram {
            self.0.lock().unwrap().push(key.to_string());
            metrics::Histogram::noop()
        }
    }

    #[test]
    fn calls_attempts_and_events_are_reported() {
        let names: &'static Names = Box::leak(Box::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        metrics::with_local_recorder(&names, || {
            runtime.block_on(async {
                let server = Server::start(1).await;
                let client = Client::with_options(&server.url(), patient()).unwrap();
                client.next_id("count").await.unwrap();
                assert!(client.within(Duration::from_millis(20)).next_id("count").await.is_err());
                let dead = Client::with_options("list://127.0.0.1:1", Options::new()).unwrap();
                assert!(dead.next_id("count").await.is_err());
            });
        });
        let names = names.0.lock().unwrap().join("\n");
        for wanted in [
            "firn_client_calls_total, [outcome = ok]",
            "firn_client_calls_total, [outcome = unavailable]",
            "firn_client_call_seconds",
            "firn_client_attempts_failed_total, [end = timeout]",
            "firn_client_attempts_failed_total, [end = unreachable]",
        ] {
            assert!(names.contains(wanted), "{wanted} is not in:\n{names}");
        }
    }
}
