//! Ids a second of the Rust client and of bare stubs: see ../../rates.py. Built as an example of the client's
//! package. A bare stub is a loop over one socket per thread that writes a constant request and reads the answer.
//!
//! The `single` and `batch` of the table are those of the blocking client, beside a stub with blocking sockets; the
//! asynchronous client stands beside a stub on the same runtime.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use firn_client::{blocking, Client, LocalTag, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const BATCH: usize = 100;
const BUNCH: u64 = 50;

struct Settings {
    address: String,
    seconds: f64,
    threads: usize,
}

/// Returns the frame of getId or getIds for the tag `default`.
fn request(method: &str, count: Option<i32>) -> Vec<u8> {
    let mut body = vec![0x80, 1, 0, 1, 0, 0, 0, method.len() as u8];
    body.extend(method.bytes());
    body.extend([0, 0, 0, 1, 11, 0, 1, 0, 0, 0, 7]);
    body.extend(b"default");
    if let Some(count) = count {
        body.extend([8, 0, 2]);
        body.extend(count.to_be_bytes());
    }
    body.push(0);
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend(body);
    frame
}

/// Reads the ids of an answer to getId or getIds, as a generated stub does.
fn ids_of(answer: &[u8], batch: bool) -> Vec<i64> {
    let ids = if batch {
        &answer[4 + 8 + 6 + 4 + 8..answer.len() - 1]
    } else {
        &answer[4 + 8 + 5 + 4 + 3..answer.len() - 1]
    };
    ids.chunks_exact(8).map(|id| i64::from_be_bytes(id.try_into().unwrap())).collect()
}

fn is_whole(input: &[u8]) -> bool {
    input.len() >= 4 && input.len() == 4 + u32::from_be_bytes(input[..4].try_into().unwrap()) as usize
}

fn check(ids: &[i64], batch: bool) {
    assert_eq!(ids.len(), if batch { BATCH } else { 1 });
    assert!(ids.iter().all(|id| *id > 0));
}

/// Returns calls a second, after a warm-up, of threads that each call what `make` returns.
fn on_threads<C: FnMut() + Send + 'static>(settings: &Settings, make: impl Fn() -> C) -> f64 {
    let mut rate = 0.0;
    for length in [settings.seconds / 4.0, settings.seconds] {
        let (count, began) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let threads: Vec<_> = (0..settings.threads)
            .map(|_| {
                let (mut call, count) = (make(), Arc::clone(&count));
                std::thread::spawn(move || {
                    while began.elapsed().as_secs_f64() < length {
                        (0..BUNCH).for_each(|_| call());
                        count.fetch_add(BUNCH, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        rate = count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    }
    rate
}

fn blocking_stub(settings: &Settings, request: &[u8], batch: bool) -> f64 {
    on_threads(settings, || {
        let mut stream = std::net::TcpStream::connect(&settings.address).unwrap();
        stream.set_nodelay(true).unwrap();
        let (request, mut input, mut buffer) = (request.to_vec(), Vec::new(), [0; 4096]);
        move || {
            stream.write_all(&request).unwrap();
            input.clear();
            while !is_whole(&input) {
                let got = stream.read(&mut buffer).unwrap();
                input.extend_from_slice(&buffer[..got]);
            }
            check(&ids_of(&input, batch), batch);
        }
    })
}

fn options() -> Options {
    Options::new().deadline(Duration::from_secs(30)).attempt_limit(Duration::from_secs(10))
}

fn blocking_client(settings: &Settings, options: Options, call: fn(&blocking::Client)) -> f64 {
    let client = blocking::Client::with_options(&format!("firn://{}", settings.address), options).unwrap();
    on_threads(settings, || {
        let client = client.clone();
        move || call(&client)
    })
}

/// Returns calls a second of as many tasks as threads, on a runtime with at most as many threads as the machine has.
async fn in_tasks<F, C>(settings: &Settings, make: impl Fn() -> C) -> f64
where
    F: std::future::Future<Output = ()> + Send,
    C: FnMut(u64) -> F + Send + 'static,
{
    let mut rate = 0.0;
    for length in [settings.seconds / 4.0, settings.seconds] {
        let (count, began) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let tasks: Vec<_> = (0..settings.threads)
            .map(|_| {
                let (mut call, count) = (make(), Arc::clone(&count));
                tokio::spawn(async move {
                    while began.elapsed().as_secs_f64() < length {
                        call(BUNCH).await;
                        count.fetch_add(BUNCH, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        rate = count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    }
    rate
}

async fn async_stub(settings: &Settings) -> f64 {
    let address = settings.address.clone();
    let frame = Arc::new(request("getId", None));
    in_tasks(settings, || {
        let (address, frame) = (address.clone(), Arc::clone(&frame));
        let stream = Arc::new(tokio::sync::Mutex::new(None));
        move |times| {
            let (address, frame, stream) = (address.clone(), Arc::clone(&frame), Arc::clone(&stream));
            async move {
                let mut stream = stream.lock().await;
                if stream.is_none() {
                    let made = tokio::net::TcpStream::connect(&address).await.unwrap();
                    made.set_nodelay(true).unwrap();
                    *stream = Some(made);
                }
                let (stream, mut input) = (stream.as_mut().unwrap(), Vec::with_capacity(4096));
                for _ in 0..times {
                    stream.write_all(&frame).await.unwrap();
                    input.clear();
                    while !is_whole(&input) {
                        stream.read_buf(&mut input).await.unwrap();
                    }
                    check(&ids_of(&input, false), false);
                }
            }
        }
    })
    .await
}

async fn async_client(settings: &Settings, options: Options, tag: &'static str) -> f64 {
    let client = Client::with_options(&format!("firn://{}", settings.address), options).unwrap();
    in_tasks(settings, || {
        let client = client.clone();
        move |times| {
            let client = client.clone();
            async move {
                for _ in 0..times {
                    client.next_id(tag).await.unwrap();
                }
            }
        }
    })
    .await
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let settings = Settings {
        address: arguments[1].clone(),
        seconds: arguments[2].parse().unwrap(),
        threads: arguments[3].parse().unwrap(),
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let single = |client: &blocking::Client| {
        client.next_id("default").unwrap();
    };
    let batch = |client: &blocking::Client| {
        client.next_ids("default", BATCH).unwrap();
    };
    let segment = |client: &blocking::Client| {
        client.next_id("count").unwrap();
    };
    let ahead = |tag: LocalTag| options().local_range(tag);
    let (snowflake, count) = (LocalTag::snowflake("default"), LocalTag::segment("count"));
    let rates = [
        ("bare single", blocking_stub(&settings, &request("getId", None), false)),
        ("single", blocking_client(&settings, options(), single)),
        ("bare batch", BATCH as f64 * blocking_stub(&settings, &request("getIds", Some(100)), true)),
        ("batch", BATCH as f64 * blocking_client(&settings, options(), batch)),
        ("bare single async", runtime.block_on(async_stub(&settings))),
        ("single async", runtime.block_on(async_client(&settings, options(), "default"))),
        ("ahead snowflake", blocking_client(&settings, ahead(snowflake.clone()), single)),
        ("ahead segment", blocking_client(&settings, ahead(count.clone()), segment)),
        ("ahead segment async", runtime.block_on(async_client(&settings, ahead(count), "count"))),
    ];
    let rates: Vec<String> = rates.iter().map(|(name, rate)| format!("\"{name}\": {rate}")).collect();
    println!("{{{}}}", rates.join(", "));
}
