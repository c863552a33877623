//! A client for programs without a Tokio runtime. Its calls block the thread.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::counters::Counters;
use crate::error::{Error, ErrorKind};
use crate::lease::LeaseOptions;
use crate::options::Options;
use crate::server::SeenServer;

/// Takes ids from a cluster of Firn servers; every call blocks, at most until its deadline.
///
/// Create one client, and clone it for every thread; clones share their connections. The client has a thread of its own,
/// which watches sockets and timers, requests server lists and probes servers. Over TCP, a call writes its request on its
/// caller's thread, and blocks there in a read until the answer arrives. Over TLS and Unix sockets, it sleeps until the
/// client's thread wakes it, and then reads. Must not be used on a thread of an asynchronous runtime, where calls panic;
/// use [`crate::Client`] there.
///
/// ```no_run
/// let client = firn_client::blocking::Client::new("firn://127.0.0.1:7609")?;
/// println!("{}", client.next_id("order")?);
/// # Ok::<(), firn_client::Error>(())
/// ```
#[derive(Clone)]
pub struct Client {
    client: crate::Client, // before the thread, so that it is closed first
    thread: Arc<RuntimeThread>,
}

impl Client {
    /// Creates a client with default options. See [`Client::with_options`].
    ///
    /// # Errors
    ///
    /// Fails as [`Client::with_options`] does.
    pub fn new(servers: &str) -> Result<Client, Error> {
        Client::with_options(servers, Options::default())
    }

    /// Creates a client as [`crate::Client::with_options`] does.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Invalid`] if the servers or the options are invalid, and with
    /// [`ErrorKind::Unavailable`] if the thread cannot be started.
    pub fn with_options(servers: &str, options: Options) -> Result<Client, Error> {
        options.check(servers)?;
        let thread = RuntimeThread::start().map_err(|fault| {
            Error::new(ErrorKind::Unavailable, format!("cannot start the client's thread: {fault}"))
        })?;
        let entered = thread.runtime.enter();
        let client = crate::Client::with_options(servers, options)?.blocking();
        drop(entered);
        Ok(Client { client, thread: Arc::new(thread) })
    }

    /// Returns a clone whose calls have this deadline.
    #[must_use]
    pub fn within(&self, deadline: Duration) -> Client {
        Client { client: self.client.within(deadline), thread: Arc::clone(&self.thread) }
    }

    /// Returns one id; from memory, if [`Options::local_range`] names the tag.
    ///
    /// # Errors
    ///
    /// Fails as [`crate::Client::next_id`] does.
    pub fn next_id(&self, tag: &str) -> Result<i64, Error> {
        match self.client.try_local(tag) {
            Some(id) => Ok(id),
            None => self.thread.runtime.block_on(self.client.next_id(tag)),
        }
    }

    /// Returns exactly `count` ids, 1 to 100 000; in ascending order, unless the tag is obfuscated.
    ///
    /// # Errors
    ///
    /// Fails as [`crate::Client::next_id`] does.
    pub fn next_ids(&self, tag: &str, count: usize) -> Result<Vec<i64>, Error> {
        self.thread.runtime.block_on(self.client.next_ids(tag, count))
    }

    /// Returns one id in the text form of its tag.
    ///
    /// # Errors
    ///
    /// Fails as [`crate::Client::next_id`] does.
    pub fn next_text(&self, tag: &str) -> Result<String, Error> {
        self.thread.runtime.block_on(self.client.next_text(tag))
    }

    /// Leases a machine id, and returns a generator that makes ids with it in this process. Waits for the first lease.
    ///
    /// # Errors
    ///
    /// Fails as [`crate::Client::local_generator`] does.
    pub fn local_generator(&self, options: LeaseOptions) -> Result<LocalGenerator, Error> {
        let generator = self.thread.runtime.block_on(self.client.local_generator(options))?;
        Ok(LocalGenerator { generator, thread: Arc::clone(&self.thread) })
    }

    /// Returns the servers as this client sees them, in the order of their addresses.
    pub fn servers(&self) -> Vec<SeenServer> {
        self.client.servers()
    }

    /// Returns what the client and its clones have done since the client was created.
    pub fn counters(&self) -> Counters {
        self.client.counters()
    }

    /// Closes the client and its clones. Does not wait: calls in progress end with [`ErrorKind::Closed`], as do later
    /// ones.
    pub fn close(&self) {
        self.client.close();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}

/// Makes ids in this process, under a machine id that servers lease to it, as [`crate::LocalGenerator`] does.
/// [`Client::local_generator`] creates it. When it is dropped, it waits as `close` does.
///
/// ```no_run
/// # fn f(client: firn_client::blocking::Client) -> Result<(), firn_client::Error> {
/// let generator = client.local_generator(firn_client::LeaseOptions::new("checkout-7f9c"))?;
/// println!("{}", generator.next()?);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LocalGenerator {
    generator: crate::LocalGenerator,
    thread: Arc<RuntimeThread>,
}

impl LocalGenerator {
    /// Returns the next id, from memory, as [`crate::LocalGenerator::next`] does.
    ///
    /// # Errors
    ///
    /// Fails as [`crate::LocalGenerator::next`] does.
    pub fn next(&self) -> Result<i64, Error> {
        self.generator.next()
    }

    /// Returns the machine id of the current lease.
    pub fn machine_id(&self) -> Option<u32> {
        self.generator.machine_id()
    }

    /// Returns when the current lease ends, unless a server extends it.
    pub fn until(&self) -> Option<SystemTime> {
        self.generator.until()
    }

    /// Issues no id from now on, and gives the lease back. Waits at most 1 s for the server.
    pub fn close(&self) {
        self.thread.runtime.block_on(self.generator.close());
    }
}

impl Drop for LocalGenerator {
    fn drop(&mut self) {
        // Waiting on a thread of a runtime would panic; there, and on the client's own thread, nothing waits.
        if Handle::try_current().is_err() {
            self.close();
        }
    }
}

/// A thread that drives a runtime until this is dropped.
#[derive(Debug)]
struct RuntimeThread {
    runtime: Handle,
    ending: Option<oneshot::Sender<()>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl RuntimeThread {
    fn start() -> std::io::Result<RuntimeThread> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (ending, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("firn-client".to_owned()).spawn(move || {
            let _ = runtime.block_on(ended);
            runtime.shutdown_background(); // a name may still be looked up
        })?;
        Ok(RuntimeThread { runtime: handle, ending: Some(ending), thread: Mutex::new(Some(thread)) })
    }
}

impl Drop for RuntimeThread {
    fn drop(&mut self) {
        drop(self.ending.take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A callback may drop the last client on the client's own thread, which cannot wait for itself.
        if let Some(thread) = thread.filter(|one| one.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}
