//! The interface for programs.

use std::fmt;
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{mpsc, Notify};
use tokio::time::{sleep, timeout_at};

use super::ids::{Clock, LeasedIds};
use super::lessee::{Hooks, LeaseLoss, Lessee};
use super::pace::Now;
use super::transport::{Transport, Wishes};
use crate::client::Client;
use crate::engine::Engine;
use crate::error::{printable, Error, ErrorKind};
use crate::random;

const NAME_BYTES_MAX: usize = 64;
const RACK_MAX: i32 = 65_535;
const AHEAD_MIN: Duration = Duration::from_secs(2);
const AHEAD_MAX: Duration = Duration::from_secs(86_400);
const CLOSE_MAX: Duration = Duration::from_secs(1);

type OnLost = Arc<dyn Fn(&LeaseLoss) + Send + Sync>;

/// The options of a [`LocalGenerator`].
///
/// ```
/// use std::time::Duration;
/// let options = firn_client::LeaseOptions::new("checkout-7f9c").ahead(Duration::from_secs(30));
/// ```
#[derive(Clone)]
pub struct LeaseOptions {
    name: String,
    rack: Option<i32>,
    ahead: Duration,
    timeout: Duration,
    on_lost: Option<OnLost>,
}

impl LeaseOptions {
    /// Returns the default options. `name` is a label for operators: 1 to 64 letters, digits or characters of `-_.:/@`.
    pub fn new(name: impl Into<String>) -> LeaseOptions {
        let (ahead, timeout) = (Duration::from_secs(60), Duration::from_secs(10));
        LeaseOptions { name: name.into(), rack: None, ahead, timeout, on_lost: None }
    }

    /// Sets the rack of the machine id. By default it is that of the server.
    pub fn rack(mut self, rack: i32) -> LeaseOptions {
        self.rack = Some(rack);
        self
    }

    /// Sets how far ahead the lease should end, 2 s to 24 h: how long ids last without a server. (60 s)
    pub fn ahead(mut self, time: Duration) -> LeaseOptions {
        self.ahead = time;
        self
    }

    /// Sets the maximum time to wait for the first lease. (10 s)
    pub fn timeout(mut self, time: Duration) -> LeaseOptions {
        self.timeout = time;
        self
    }

    /// Sets the callback for a lease that the generator has lost. It is called by the client's own tasks, and must return
    /// soon.
    pub fn on_lost(mut self, callback: impl Fn(&LeaseLoss) + Send + Sync + 'static) -> LeaseOptions {
        self.on_lost = Some(Arc::new(callback));
        self
    }

    /// Returns what each request names, or fails with every fault.
    fn check(&self) -> Result<Wishes, Error> {
        let mut faults = Vec::new();
        let permitted = |one: u8| one.is_ascii_alphanumeric() || b"-_.:/@".contains(&one);
        if !(1..=NAME_BYTES_MAX).contains(&self.name.len()) || !self.name.bytes().all(permitted) {
            let name = printable(&self.name);
            faults.push(format!("name is '{name}', not 1 to 64 letters, digits or characters of -_.:/@"));
        }
        if let Some(rack) = self.rack.filter(|rack| !(0..=RACK_MAX).contains(rack)) {
            faults.push(format!("rack is {rack}, not 0 to {RACK_MAX}"));
        }
        let ahead_ms = i32::try_from(self.ahead.as_millis()).unwrap_or(i32::MAX);
        if !(AHEAD_MIN..=AHEAD_MAX).contains(&self.ahead) {
            faults.push(format!("ahead is {:?}, not 2 s to 24 h", self.ahead));
        }
        if !faults.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, faults.join("; ")));
        }
        Ok(Wishes { name: self.name.clone(), rack: self.rack, ahead_ms })
    }
}

impl fmt::Debug for LeaseOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseOptions")
            .field("name", &self.name)
            .field("rack", &self.rack)
            .field("ahead", &self.ahead)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Makes ids in this process, under a machine id that servers lease to it: no other process has that machine id at the
/// same time.
///
/// Ids come from memory, also while no server is reachable, until the lease ends. A task of the client extends the
/// lease, and takes another one in time if a server does not extend it. Ids rise, across all threads.
/// [`Client::local_generator`] creates it; share it in an [`Arc`].
///
/// A child of `fork()` gets no ids from the generator of its parent. When the generator is dropped, it stops, and its lease
/// is given back in the background if the runtime still runs.
///
/// ```no_run
/// # async fn f(client: firn_client::Client) -> Result<(), firn_client::Error> {
/// let generator = client.local_generator(firn_client::LeaseOptions::new("checkout-7f9c")).await?;
/// println!("{}", generator.next()?);
/// generator.close().await;
/// # Ok(()) }
/// ```
pub struct LocalGenerator {
    shared: Arc<Shared>,
}

/// What the generator and its task share.
struct Shared {
    ids: Arc<LeasedIds>,
    progress: Mutex<Progress>,
    changed: Notify,
    stopping: Notify,
}

#[derive(Default)]
struct Progress {
    stopping: bool,
    /// Nothing is left to be sent.
    over: bool,
    last_refusal: Option<String>,
    final_refusal: Option<Error>,
}

impl LocalGenerator {
    pub(crate) async fn open(client: Client, options: LeaseOptions) -> Result<LocalGenerator, Error> {
        let wishes = options.check()?;
        if client.engine().is_closed() {
            return Err(Error::closed());
        }
        let until = Instant::now() + options.timeout;
        let shared = Arc::new(Shared {
            ids: Arc::new(LeasedIds::new(SystemClock::start())),
            progress: Mutex::default(),
            changed: Notify::new(),
            stopping: Notify::new(),
        });
        let generator = LocalGenerator { shared: Arc::clone(&shared) };
        let ahead_us = i64::from(wishes.ahead_ms) * 1000;
        let engine = Arc::clone(client.engine());
        let hooks = hooks(&shared, &engine, options.on_lost.clone());
        let lessee = Lessee::new(Arc::clone(&shared.ids), ahead_us, hooks);
        engine.spawn(run(Task { shared: Arc::clone(&shared) }, lessee, wishes, client));

        let granted = || {
            let progress = shared.progress();
            shared.ids.held().is_some() || progress.over || progress.final_refusal.is_some()
        };
        shared.wait(until, granted).await;
        if shared.ids.held().is_some() {
            return Ok(generator);
        }
        if engine.is_closed() {
            return Err(Error::closed());
        }
        let progress = shared.progress();
        Err(progress.final_refusal.clone().unwrap_or_else(|| {
            let why = progress.last_refusal.as_deref().unwrap_or("no usable server is known");
            let text = format!("no server has granted a lease within {:?}; {why}", options.timeout);
            Error::new(ErrorKind::NoLease, text)
        }))
    }

    /// Returns the next id, from memory. If the sequence of this tick is used up, blocks the thread until the next tick,
    /// unless that begins in more than 5 s; in most layouts, a tick is 1 ms long. Blocks it again if other threads have
    /// used up that one, too.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::NoLease`] if there is none, with the reason and since when, and with
    /// [`ErrorKind::Closed`] after [`close`](LocalGenerator::close).
    pub fn next(&self) -> Result<i64, Error> {
        self.shared.ids.next()
    }

    /// Returns the machine id of the current lease.
    pub fn machine_id(&self) -> Option<u32> {
        self.shared.ids.held().map(|lease| lease.machine)
    }

    /// Returns when the current lease ends, unless a server extends it.
    pub fn until(&self) -> Option<SystemTime> {
        self.shared.ids.held().map(|lease| lease.until())
    }

    /// Issues no id from now on, and gives the lease back. Waits at most 1 s for the server: without its answer, the
    /// machine id becomes free when the lease ends.
    pub async fn close(&self) {
        if self.shared.ids.is_forked() {
            return;
        }
        self.shared.stop();
        self.shared.wait(Instant::now() + CLOSE_MAX, || self.shared.progress().over).await;
    }

    #[cfg(test)]
    pub(super) fn last_refusal(&self) -> Option<String> {
        self.shared.progress().last_refusal.clone()
    }
}

impl fmt::Debug for LocalGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalGenerator").field("machine_id", &self.machine_id()).finish_non_exhaustive()
    }
}

impl Drop for LocalGenerator {
    fn drop(&mut self) {
        if !self.shared.ids.is_forked() {
            self.shared.stop();
        }
    }
}

impl Shared {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.ids.end(Error::new(ErrorKind::Closed, "the generator was closed"));
        self.progress().stopping = true;
        self.stopping.notify_one();
    }

    async fn wait(&self, until: Instant, holds: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified(); // counts from here
            if holds() || timeout_at(until.into(), changed).await.is_err() {
                return;
            }
        }
    }
}

fn hooks(shared: &Arc<Shared>, engine: &Arc<Engine>, on_lost: Option<OnLost>) -> Hooks {
    let (refused, engine) = (Arc::clone(shared), Arc::clone(engine));
    Hooks {
        on_lost: Box::new(move |loss| {
            if let Some(on_lost) = &on_lost {
                tell(on_lost, &loss);
            }
        }),
        knows: Box::new(move |address| engine.fleet.knows(address)),
        on_refused: Box::new(move |message, error| {
            let mut progress = refused.progress();
            progress.last_refusal = Some(message);
            progress.final_refusal = progress.final_refusal.take().or(error);
        }),
        draw: Box::new(draw),
        fraction: Box::new(random::fraction),
    }
}

/// A panic of the program's callback must not end the task that extends the lease.
fn tell(on_lost: &OnLost, loss: &LeaseLoss) {
    let _ = catch_unwind(AssertUnwindSafe(|| on_lost(loss)));
}

/// Returns 128 bits of the operating system: a copy of this process must not draw the same ones.
fn draw() -> String {
    let mut bytes = [0; 16];
    getrandom::getrandom(&mut bytes).expect("the operating system has random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Ends the ids with the task, also when the client is closed or its runtime ends.
struct Task {
    shared: Arc<Shared>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.shared.ids.end(Error::new(ErrorKind::Closed, "the client of this generator was closed"));
        self.shared.progress().over = true;
        self.shared.changed.notify_waiters();
    }
}

/// Sends what is due, until the generator is stopped. Keeps the client.
async fn run(task: Task, mut lessee: Lessee, wishes: Wishes, client: Client) {
    let shared = &task.shared;
    let transport = Transport::new(Arc::clone(client.engine()), wishes);
    let (answers, mut answered) = mpsc::unbounded_channel();
    let mut give_up = None;
    loop {
        let now = shared.ids.now();
        if give_up.is_none() && shared.progress().stopping {
            give_up = Some(Instant::now() + CLOSE_MAX);
            lessee.stop(Error::new(ErrorKind::Closed, "the generator was closed"), now);
        }
        for (number, request) in lessee.tick(now) {
            let sent = Arc::clone(&transport).send(request);
            client.engine().spawn(post(answers.clone(), number, sent));
        }
        shared.changed.notify_waiters();
        if lessee.is_stopped() || give_up.is_some_and(|at| at <= Instant::now()) {
            return;
        }
        let due = Duration::from_micros((lessee.due_us() - now.mono_us).max(1000) as u64);
        tokio::select! {
            Some((number, outcome)) = answered.recv() => lessee.on_reply(number, outcome, shared.ids.now()),
            () = sleep(due) => {}
            () = shared.stopping.notified() => {}
            () = shared.ids.jumps.notified() => {}
        }
    }
}

async fn post<T>(answers: mpsc::UnboundedSender<(u64, T)>, number: u64, sent: impl Future<Output = T>) {
    let _ = answers.send((number, sent.await)); // fails after the end
}

struct SystemClock {
    began: Instant,
}

impl SystemClock {
    fn start() -> SystemClock {
        SystemClock { began: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn read(&self) -> Now {
        Now { wall_us: self.wall_us(), mono_us: self.began.elapsed().as_micros() as i64 }
    }

    fn wall_us(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as i64)
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn process(&self) -> u32 {
        std::process::id()
    }

    fn fraction(&self) -> f64 {
        random::fraction()
    }
}
