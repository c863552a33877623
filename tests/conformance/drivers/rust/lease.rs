//! The Rust client's generator of local ids, controlled by standard input and output as ../../README.md describes. Built
//! as an example of the client's package. With FIRN_CLIENT=blocking in the environment it is that of the blocking client.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use firn_client::{blocking, Client, Error, ErrorKind, LeaseOptions, LocalGenerator, Options, Tls};
use tokio::runtime::Runtime;

type Words = HashMap<String, String>;

const PASS: usize = 10; // ids
const PAUSE: Duration = Duration::from_millis(10);

/// One of the two generators, with its client.
enum Either {
    Async(Client, LocalGenerator),
    Blocking(blocking::Client, blocking::LocalGenerator),
}

impl Either {
    fn open(runtime: &Runtime, words: &Words, options: LeaseOptions) -> Result<Either, Error> {
        let (servers, of_client) = (&words["servers"], client_options(words));
        if std::env::var("FIRN_CLIENT").is_ok_and(|which| which == "blocking") {
            let client = blocking::Client::with_options(servers, of_client)?;
            let generator = client.local_generator(options)?;
            return Ok(Either::Blocking(client, generator));
        }
        runtime.block_on(async {
            let client = Client::with_options(servers, of_client)?;
            let generator = client.local_generator(options).await?;
            Ok(Either::Async(client, generator))
        })
    }

    fn next(&self) -> Result<i64, Error> {
        match self {
            Either::Async(_, generator) => generator.next(),
            Either::Blocking(_, generator) => generator.next(),
        }
    }

    fn machine_id(&self) -> Option<u32> {
        match self {
            Either::Async(_, generator) => generator.machine_id(),
            Either::Blocking(_, generator) => generator.machine_id(),
        }
    }

    fn until(&self) -> Option<SystemTime> {
        match self {
            Either::Async(_, generator) => generator.until(),
            Either::Blocking(_, generator) => generator.until(),
        }
    }

    fn close(&self, runtime: &Runtime) {
        match self {
            Either::Async(_, generator) => runtime.block_on(generator.close()),
            Either::Blocking(_, generator) => generator.close(),
        }
    }

    fn close_client(&self) {
        match self {
            Either::Async(client, _) => client.close(),
            Either::Blocking(client, _) => client.close(),
        }
    }
}

fn client_options(words: &Words) -> Options {
    let Some(ca) = words.get("tls_ca") else { return Options::new() };
    let mut tls = Tls::new().ca(ca);
    if let (Some(cert), Some(key)) = (words.get("tls_cert"), words.get("tls_key")) {
        tls = tls.identity(cert, key);
    }
    Options::new().tls(tls)
}

/// What the threads have done.
#[derive(Default)]
struct Counts {
    ids: AtomicU64,
    failed: AtomicU64,
    lost: AtomicU64,
    failure: Mutex<String>,
}

/// Takes ids until the generator is closed, and writes them into a file.
fn issue(generator: &Either, counts: &Counts, mut file: File) {
    loop {
        let (mut taken, mut closed) = (String::new(), false);
        for _ in 0..PASS {
            match generator.next() {
                Ok(id) => {
                    taken += &format!("{id}\n");
                    counts.ids.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    closed = error.kind() == ErrorKind::Closed;
                    if !closed {
                        counts.failed.fetch_add(1, Ordering::Relaxed);
                        let mut failure = counts.failure.lock().unwrap();
                        if failure.is_empty() {
                            *failure = error.to_string();
                        }
                    }
                    break;
                }
            }
        }
        file.write_all(taken.as_bytes()).unwrap();
        if closed {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

struct Driver {
    runtime: Runtime,
    generator: Option<Arc<Either>>,
    counts: Arc<Counts>,
    file: String,
    threads: Vec<JoinHandle<()>>,
}

impl Driver {
    fn open(&mut self, words: &Words) -> String {
        let lost = Arc::clone(&self.counts);
        let time = |key: &str| Duration::from_millis(words[key].parse().unwrap());
        let options = LeaseOptions::new(&words["name"])
            .ahead(time("ahead_ms"))
            .timeout(time("timeout_ms"))
            .on_lost(move |_| drop(lost.lost.fetch_add(1, Ordering::Relaxed)));
        let generator = match Either::open(&self.runtime, words, options) {
            Ok(generator) => Arc::new(generator),
            Err(error) => return format!("{{\"failure\":{}}}", quoted(&error.to_string())),
        };
        self.file.clone_from(&words["file"]);
        let count: usize = words["threads"].parse().unwrap();
        for at in 0..count {
            let file = File::create(format!("{}.{at}", self.file)).unwrap();
            let (generator, counts) = (Arc::clone(&generator), Arc::clone(&self.counts));
            self.threads.push(std::thread::spawn(move || issue(&generator, &counts, file)));
        }
        self.generator = Some(generator);
        "{}".to_owned()
    }

    fn generator(&self) -> &Either {
        self.generator.as_ref().expect("no generator is open")
    }

    fn so_far(&self) -> String {
        let until = self.generator().until().and_then(|until| until.duration_since(UNIX_EPOCH).ok());
        let failure = std::mem::take(&mut *self.counts.failure.lock().unwrap());
        let machine = self.generator().machine_id().map_or("null".to_owned(), |machine| machine.to_string());
        format!(
            "{{\"ids\":{},\"failed\":{},\"failure\":{},\"machine_id\":{machine},\"until_ms\":{},\"lost\":{}}}",
            self.counts.ids.load(Ordering::Relaxed),
            self.counts.failed.load(Ordering::Relaxed),
            quoted(&failure),
            until.map_or(0, |until| until.as_millis()),
            self.counts.lost.load(Ordering::Relaxed),
        )
    }

    fn burst(&self, count: usize) -> String {
        let (mut taken, mut failure) = (Vec::with_capacity(count), String::new());
        let began = Instant::now();
        while taken.len() < count && failure.is_empty() {
            match self.generator().next() {
                Ok(id) => taken.push(id),
                Err(error) => failure = error.to_string(),
            }
        }
        let took_ms = began.elapsed().as_millis();
        let lines: String = taken.iter().map(|id| format!("{id}\n")).collect();
        std::fs::write(format!("{}.burst", self.file), lines).unwrap();
        format!("{{\"ids\":{},\"took_ms\":{took_ms},\"failure\":{}}}", taken.len(), quoted(&failure))
    }

    fn close(&mut self) -> String {
        self.generator().close(&self.runtime);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
        self.generator().close_client();
        let after = self.generator().next().map_or_else(|error| error.to_string(), |_| String::new());
        format!(
            "{{\"ids\":{},\"failed\":{},\"after_close\":{}}}",
            self.counts.ids.load(Ordering::Relaxed),
            self.counts.failed.load(Ordering::Relaxed),
            quoted(&after),
        )
    }
}

/// Quotes a string for JSON.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|one| match one {
            '"' | '\\' => format!("\\{one}"),
            one if u32::from(one) < 32 => format!("\\u{:04x}", u32::from(one)),
            one => one.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

fn main() {
    let mut driver = Driver {
        runtime: Runtime::new().unwrap(),
        generator: None,
        counts: Arc::default(),
        file: String::new(),
        threads: Vec::new(),
    };
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let mut parts = line.split(' ');
        let verb = parts.next().unwrap_or_default();
        let words: Words =
            parts.filter_map(|word| word.split_once('=')).map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
        let answer = match verb {
            "open" => driver.open(&words),
            "so_far" => driver.so_far(),
            "burst" => driver.burst(words["count"].parse().unwrap()),
            _ => driver.close(),
        };
        println!("{answer}");
    }
    std::process::exit(0); // also while threads issue
}
