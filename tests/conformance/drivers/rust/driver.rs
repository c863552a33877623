//! The Rust client, controlled by standard input and output as ../../README.md describes. Built as an example of
//! the client's package. With FIRN_CLIENT=blocking in the environment it is the blocking client.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use firn_client::{blocking, Client, Error, ErrorKind, Event, LeaseOptions, LocalTag, Options, Tls};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

type Words = HashMap<String, String>;

const BLOCKING_THREADS: usize = 20;

fn number<T: std::str::FromStr>(words: &Words, key: &str) -> Option<T> {
    words.get(key).and_then(|value| value.parse().ok())
}

fn duration(words: &Words, key: &str) -> Option<Duration> {
    number(words, key).map(Duration::from_millis)
}

fn tag(words: &Words) -> String {
    words.get("tag").cloned().unwrap_or_default()
}

/// Quotes a string for JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for one in text.chars() {
        match one {
            '"' | '\\' => out.extend(['\\', one]),
            one if u32::from(one) < 32 => write!(out, "\\u{:04x}", u32::from(one)).unwrap(),
            one => out.push(one),
        }
    }
    out.push('"');
    out
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

fn object<K: AsRef<str>>(fields: impl IntoIterator<Item = (K, String)>) -> String {
    let fields = fields.into_iter().map(|(key, value)| format!("{}:{value}", quoted(key.as_ref())));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// Returns the fields that describe a failed call.
fn told(error: &Error) -> Vec<(&'static str, String)> {
    let attempts = error.attempts().iter().map(|one| {
        let reason = one.reason.map_or("", |reason| reason.name());
        object([("server", quoted(&one.server)), ("end", quoted(one.end.name())), ("reason", quoted(reason))])
    });
    vec![
        ("kind", quoted(error.kind().name())),
        ("failure", quoted(&error.to_string())),
        ("reason", quoted(error.reason().map_or("", |reason| reason.name()))),
        ("retry_after_ms", error.retry_after().map_or(0, |time| time.as_millis()).to_string()),
        ("attempts", list(attempts)),
    ]
}

/// One of the two clients.
#[derive(Clone)]
enum Either {
    Async(Client),
    Blocking(blocking::Client),
}

/// What a call asks for.
#[derive(Clone)]
struct Call {
    client: Either,
    verb: String,
    tag: String,
    count: usize,
}

impl Call {
    /// Calls until `done` says so after a call, on a task or on a thread.
    fn repeat(
        self,
        runtime: &Runtime,
        mut done: impl FnMut(&Outcome) -> bool + Send + 'static,
    ) -> JoinHandle<Outcome> {
        let (verb, tag, count) = (self.verb, self.tag, self.count);
        let number = |text: String| vec![text.parse().unwrap_or(0)];
        let mut outcome = Outcome::default();
        match self.client {
            Either::Async(client) => runtime.spawn(async move {
                while !done(&outcome) {
                    let began = Instant::now();
                    let result = match verb.as_str() {
                        "ids" => client.next_ids(&tag, count).await,
                        "text" => client.next_text(&tag).await.map(number),
                        _ => client.next_id(&tag).await.map(|id| vec![id]),
                    };
                    outcome.add(result, began.elapsed());
                }
                outcome
            }),
            Either::Blocking(client) => runtime.spawn_blocking(move || {
                while !done(&outcome) {
                    let began = Instant::now();
                    let result = match verb.as_str() {
                        "ids" => client.next_ids(&tag, count),
                        "text" => client.next_text(&tag).map(number),
                        _ => client.next_id(&tag).map(|id| vec![id]),
                    };
                    outcome.add(result, began.elapsed());
                }
                outcome
            }),
        }
    }
}

/// The outcome of some calls.
#[derive(Default)]
struct Outcome {
    answered: usize,
    failed: usize,
    ids: Vec<i64>,
    first: Option<Error>,
    longest: Duration,
}

impl Outcome {
    fn add(&mut self, result: Result<Vec<i64>, Error>, took: Duration) {
        self.longest = self.longest.max(took);
        match result {
            Ok(ids) => {
                self.answered += 1;
                self.ids.extend(ids);
            }
            Err(error) => {
                self.failed += 1;
                self.first.get_or_insert(error);
            }
        }
    }

    fn merge(&mut self, other: Outcome) {
        self.answered += other.answered;
        self.failed += other.failed;
        self.ids.extend(other.ids);
        self.first = self.first.take().or(other.first);
        self.longest = self.longest.max(other.longest);
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = self.first.as_ref().map(told).unwrap_or_default();
        fields.push(("answered", self.answered.to_string()));
        fields.push(("failed", self.failed.to_string()));
        fields
    }
}

/// Calls without end; their ids are written to a file.
struct Load {
    file: String,
    ending: Arc<AtomicBool>,
    workers: Vec<(Arc<AtomicU64>, JoinHandle<Outcome>)>,
}

struct Driver {
    runtime: Runtime,
    events: Arc<Mutex<Vec<&'static str>>>,
    client: Option<Either>,
    load: Option<Load>,
}

impl Driver {
    fn open(&mut self, words: &Words) -> String {
        let _entered = self.runtime.enter();
        self.events = Arc::default();
        let events = Arc::clone(&self.events);
        let does = |what| words.get("on_event").is_some_and(|value| value == what);
        let throws = does("throws");
        let to_close = Arc::new(OnceLock::new()); // by the callback
        let own = Arc::clone(&to_close);
        let mut options = Options::new()
            .failfast(words.get("on_failure").is_some_and(|value| value == "failfast"))
            .on_event(move |event: Event| {
                events.lock().unwrap().push(event.kind.name());
                assert!(!throws, "as the case says");
                match own.get() {
                    Some(Either::Async(client)) => client.close(),
                    Some(Either::Blocking(client)) => client.close(),
                    None => (),
                }
            });
        if let Some(uuid) = words.get("cluster_uuid") {
            options = options.cluster_uuid(uuid);
        }
        if let Some(rack) = number(words, "rack") {
            options = options.rack(rack);
        }
        if let Some(time) = duration(words, "deadline_ms") {
            options = options.deadline(time);
        }
        if let Some(time) = duration(words, "attempt_limit_ms") {
            options = options.attempt_limit(time);
        }
        if let Some(most) = number(words, "attempts_max") {
            options = options.attempts_max(most);
        }
        if let Some(most) = number(words, "connections_max") {
            options = options.connections_max(most);
        }
        if let Some(most) = number(words, "servers_max") {
            options = options.servers_max(most);
        }
        if let Some(tag) = words.get("segment") {
            options = options.local_range(LocalTag::segment(tag));
        }
        if let Some(tag) = words.get("snowflake") {
            options = options.local_range(LocalTag::snowflake(tag));
        }
        if let Some(ca) = words.get("tls_ca") {
            let mut tls = Tls::new().ca(ca);
            if let (Some(cert), Some(key)) = (words.get("tls_cert"), words.get("tls_key")) {
                tls = tls.identity(cert, key);
            }
            if let Some(name) = words.get("tls_name") {
                tls = tls.name(name);
            }
            options = options.tls(tls);
        }
        let made = if std::env::var("FIRN_CLIENT").is_ok_and(|which| which == "blocking") {
            blocking::Client::with_options(&words["servers"], options).map(Either::Blocking)
        } else {
            Client::with_options(&words["servers"], options).map(Either::Async)
        };
        match made {
            Ok(client) => {
                if does("closes") {
                    let _ = to_close.set(client.clone());
                }
                self.client = Some(client);
                object::<&str>([])
            }
            Err(error) => object(told(&error)),
        }
    }

    fn call_of(&self, verb: &str, words: &Words) -> Call {
        let client = match (self.client.as_ref().expect("no client is open"), duration(words, "deadline_ms")) {
            (client, None) => client.clone(),
            (Either::Async(client), Some(time)) => Either::Async(client.within(time)),
            (Either::Blocking(client), Some(time)) => Either::Blocking(client.within(time)),
        };
        Call { client, verb: verb.to_owned(), tag: tag(words), count: number(words, "count").unwrap_or(1) }
    }

    /// Also returns how long the calls took.
    fn call(&self, verb: &str, words: &Words) -> (String, Duration) {
        let times = number(words, "times").unwrap_or(1);
        let began = Instant::now();
        let tasks: Vec<_> = (0..number(words, "threads").unwrap_or(1))
            .map(|_| {
                let done = move |so_far: &Outcome| so_far.answered + so_far.failed >= times;
                self.call_of(verb, words).repeat(&self.runtime, done)
            })
            .collect();
        let mut all = Outcome::default();
        for task in tasks {
            all.merge(self.runtime.block_on(task).expect("a call panicked"));
        }
        let took = began.elapsed();
        let mut fields = all.fields();
        fields.push(("ids", list(all.ids.iter().map(i64::to_string))));
        (object(fields), took)
    }

    /// Passes wrong values for every parameter; counts the calls that failed, and names those that did not.
    fn wrong(&self) -> String {
        let client = self.client.as_ref().expect("no client is open");
        let long = "a".repeat(129);
        let (mut failed, mut taken) = (0, Vec::new());
        let mut note = |name: &'static str, is_error: bool| if is_error { failed += 1 } else { taken.push(name) };
        for (verb, tag, count, within) in [
            ("id", &*long, 1, None),
            ("ids", &*long, 1, None),
            ("text", &*long, 1, None),
            ("ids", "order", 0, None),
            ("ids", "order", 100_001, None),
            ("ids", "order", usize::MAX, None),
            ("id", "order", 1, Some(Duration::ZERO)),
            ("text", "order", 1, Some(Duration::ZERO)),
        ] {
            let client = match (client.clone(), within) {
                (Either::Async(client), Some(time)) => Either::Async(client.within(time)),
                (Either::Blocking(client), Some(time)) => Either::Blocking(client.within(time)),
                (client, None) => client,
            };
            let call = Call { client, verb: verb.to_owned(), tag: tag.to_owned(), count };
            let task = call.repeat(&self.runtime, |so_far| so_far.answered + so_far.failed > 0);
            note(verb, self.runtime.block_on(task).expect("a call panicked").failed > 0);
        }
        let _entered = self.runtime.enter();
        for servers in ["", "list://", "list://nowhere", "http://127.0.0.1:1"] {
            note("servers", Client::new(servers).is_err());
        }
        let twice = Options::new().local_range(LocalTag::segment("a")).local_range(LocalTag::segment("a"));
        for options in [
            Options::new().deadline(Duration::ZERO),
            Options::new().deadline(Duration::MAX),
            Options::new().attempt_limit(Duration::ZERO),
            Options::new().attempt_limit(Duration::MAX),
            Options::new().attempts_max(0),
            Options::new().attempts_max(usize::MAX),
            Options::new().connections_max(0),
            Options::new().connections_max(usize::MAX),
            twice,
        ] {
            note("options", Client::with_options("list://127.0.0.1:1", options).is_err());
        }
        for options in [
            LeaseOptions::new(""),
            LeaseOptions::new("a b"),
            LeaseOptions::new(long.clone()),
            LeaseOptions::new("a").rack(-1),
            LeaseOptions::new("a").rack(i32::MAX),
            LeaseOptions::new("a").ahead(Duration::ZERO),
            LeaseOptions::new("a").ahead(Duration::MAX),
        ] {
            let made = match client {
                Either::Async(client) => self.runtime.block_on(client.local_generator(options)).is_err(),
                Either::Blocking(client) => client.local_generator(options).is_err(),
            };
            note("local_generator", made);
        }
        object([
            ("answered", taken.len().to_string()),
            ("failed", failed.to_string()),
            ("failure", quoted(&taken.join(","))),
        ])
    }

    fn view(&self) -> String {
        let servers = match self.client.as_ref().expect("no client is open") {
            Either::Async(client) => client.servers(),
            Either::Blocking(client) => client.servers(),
        };
        let servers = servers.iter().map(|one| (one.address.as_str(), quoted(one.health.name())));
        object([("servers", object(servers))])
    }

    fn start(&mut self, words: &Words) -> String {
        let ending = Arc::new(AtomicBool::new(false));
        let workers = (0..number(words, "threads").unwrap_or(4)).map(|_| {
            let calls = Arc::new(AtomicU64::new(0));
            let (counted, ending) = (Arc::clone(&calls), Arc::clone(&ending));
            let task = self.call_of("id", words).repeat(&self.runtime, move |so_far| {
                counted.store((so_far.answered + so_far.failed) as u64, Ordering::Relaxed);
                let closed = so_far.first.as_ref().is_some_and(|error| error.kind() == ErrorKind::Closed);
                closed || ending.load(Ordering::Relaxed)
            });
            (calls, task)
        });
        let workers = workers.collect();
        self.load = Some(Load { file: words["file"].clone(), ending, workers });
        object::<&str>([])
    }

    fn so_far(&self) -> String {
        let load = self.load.as_ref().expect("no load runs");
        let least = load.workers.iter().map(|(calls, _)| calls.load(Ordering::Relaxed)).min();
        object([("calls", least.unwrap_or(0).to_string())])
    }

    fn stop(&mut self) -> String {
        let load = self.load.take().expect("no load runs");
        load.ending.store(true, Ordering::Relaxed);
        let mut all = Outcome::default();
        for (_, task) in load.workers {
            all.merge(self.runtime.block_on(task).expect("a call panicked"));
        }
        let mut file = std::io::BufWriter::new(std::fs::File::create(load.file).expect("the file cannot be made"));
        for id in &all.ids {
            writeln!(file, "{id}").expect("the file cannot be written");
        }
        file.flush().expect("the file cannot be written");
        let mut fields = all.fields();
        fields.push(("longest_us", all.longest.as_micros().to_string()));
        object(fields)
    }

    fn act(&mut self, verb: &str, words: &Words) -> String {
        match verb {
            "open" => self.open(words),
            "view" => self.view(),
            "seen" => {
                let events = self.events.lock().unwrap().clone();
                object([("events", list(events.iter().map(|kind| quoted(kind))))])
            }
            "burst" => {
                // A blocking client has a thread for each call.
                let calls: usize = number(words, "calls").unwrap_or(1);
                let blocks = matches!(self.client, Some(Either::Blocking(_)));
                let threads = if blocks { calls.min(BLOCKING_THREADS) } else { calls };
                let mut words = words.clone();
                words.insert("threads".to_owned(), threads.to_string());
                words.insert("times".to_owned(), (calls / threads).to_string());
                let (told, took) = self.call("id", &words);
                format!("{{\"took_ms\":{},{}", took.as_secs_f64() * 1000.0, &told[1..])
            }
            "wrong" => self.wrong(),
            "start" => self.start(words),
            "so_far" => self.so_far(),
            "stop" => self.stop(),
            "close" => {
                match &self.client {
                    Some(Either::Async(client)) => client.close(),
                    Some(Either::Blocking(client)) => client.close(),
                    None => {}
                }
                object::<&str>([])
            }
            _ => self.call(verb, words).0,
        }
    }
}

fn main() {
    let runtime = Runtime::new().expect("no runtime");
    let mut driver = Driver { runtime, events: Arc::default(), client: None, load: None };
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("no line");
        let mut parts = line.split_whitespace();
        let verb = parts.next().unwrap_or_default();
        let words = parts.filter_map(|word| word.split_once('='));
        let words = words.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        println!("{}", driver.act(verb, &words));
    }
}
