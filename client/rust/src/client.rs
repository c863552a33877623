//! The asynchronous client.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::counters::Counters;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::lease::{LeaseOptions, LocalGenerator};
use crate::options::Options;
use crate::ranges::Supply;
use crate::server::{Mode, SeenServer};
use crate::upkeep;
use crate::wire::{Answer, Ask};

const TAG_MAX: usize = 128; // bytes
const COUNT_MAX: usize = 100_000;

/// Takes ids from a cluster of Firn servers.
///
/// Create one client, and clone it for every task; clones share their connections. A call ends by its deadline, with
/// ids or with an [`Error`] that lists every attempt. A call whose future is dropped ends at once. The client is
/// closed when its last clone is dropped.
///
/// Calls must be awaited on a Tokio runtime with IO and time enabled, and background tasks run on the one on which
/// the client was created.
#[derive(Clone)]
pub struct Client {
    owner: Arc<Owner>,
    deadline: Duration,
    mode: Mode,
}

/// Closes the engine when the last client is dropped; background tasks hold the engine itself.
struct Owner {
    engine: Arc<Engine>,
    supplies: Vec<Arc<Supply>>,
}

impl Owner {
    /// Returns the prefetched ids of the tag, if it has any and the client is open.
    fn supply(&self, tag: &str) -> Option<&Arc<Supply>> {
        self.supplies.iter().find(|supply| supply.tag() == tag).filter(|_| !self.engine.is_closed())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.engine.close();
    }
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

    /// Creates a client of `firn://seed,seed`, which discovers all servers through any of these, or of
    /// `list://host:port,unix:/path`, which names all of them. Does not wait for a server.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Invalid`] if the servers or the options are invalid, and outside a Tokio runtime. The
    /// error names every fault.
    pub fn with_options(servers: &str, options: Options) -> Result<Client, Error> {
        let seeds = options.check(servers)?;
        let runtime = Handle::try_current().map_err(|_| {
            let text = "no Tokio runtime is running; create the client in one, or use firn_client::blocking";
            Error::new(ErrorKind::Invalid, text)
        })?;
        let deadline = options.deadline;
        let supplies = options.local_ranges.iter().map(|tag| Arc::new(Supply::new(tag))).collect();
        let engine = Engine::new(options, seeds, runtime);
        engine.spawn(upkeep::run(Arc::clone(&engine)));
        Ok(Client { owner: Arc::new(Owner { engine, supplies }), deadline, mode: Mode::Async })
    }

    /// Returns a clone whose calls have this deadline:
    ///
    /// ```no_run
    /// # async fn f(client: firn_client::Client) -> Result<(), firn_client::Error> {
    /// let id = client.within(std::time::Duration::from_millis(50)).next_id("order").await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn within(&self, deadline: Duration) -> Client {
        Client { owner: Arc::clone(&self.owner), deadline, mode: self.mode }
    }

    /// Returns one id; from memory, if [`Options::local_range`] names the tag. An empty tag is the servers' default.
    ///
    /// # Errors
    ///
    /// Fails if every server would refuse ([`ErrorKind::Refused`]), if no server answers by the deadline
    /// ([`ErrorKind::Unavailable`]), or if the client was closed ([`ErrorKind::Closed`]).
    pub async fn next_id(&self, tag: &str) -> Result<i64, Error> {
        if let Some(supply) = self.owner.supply(tag) {
            if let Some(id) = supply.try_take(&self.owner.engine) {
                return Ok(id);
            }
            return Box::pin(self.after_fetch(supply)).await;
        }
        self.one(tag, Instant::now() + self.deadline).await
    }

    /// Returns an id of the fetch in progress, or of a call if that takes too long.
    async fn after_fetch(&self, supply: &Arc<Supply>) -> Result<i64, Error> {
        let (engine, until) = (&self.owner.engine, Instant::now() + self.deadline);
        match engine.until_closed(supply.take(engine, self.deadline / 4)).await {
            Some(Some(id)) => Ok(id),
            _ => self.one(supply.tag(), until).await,
        }
    }

    async fn one(&self, tag: &str, until: Instant) -> Result<i64, Error> {
        match self.call(Ask::Id { tag }, until).await? {
            Answer::Id(id) => Ok(id),
            _ => Err(unexpected()),
        }
    }

    /// Returns exactly `count` ids, 1 to 100 000; in ascending order, unless the tag is obfuscated.
    ///
    /// # Errors
    ///
    /// Fails as [`Client::next_id`] does.
    pub async fn next_ids(&self, tag: &str, count: usize) -> Result<Vec<i64>, Error> {
        let wire_count = i32::try_from(count).ok().filter(|_| (1..=COUNT_MAX).contains(&count));
        let Some(wire_count) = wire_count else {
            return Err(Error::bad_request(format!("count is {count}; it must be 1 to {COUNT_MAX}")));
        };
        match self.call(Ask::Ids { tag, count: wire_count }, Instant::now() + self.deadline).await? {
            Answer::Ids(ids) => Ok(ids),
            _ => Err(unexpected()),
        }
    }

    /// Returns one id in the text form of its tag.
    ///
    /// # Errors
    ///
    /// Fails as [`Client::next_id`] does.
    pub async fn next_text(&self, tag: &str) -> Result<String, Error> {
        match self.call(Ask::Text { tag }, Instant::now() + self.deadline).await? {
            Answer::Text(text) => Ok(text),
            _ => Err(unexpected()),
        }
    }

    /// Leases a machine id, and returns a generator that makes ids with it in this process. Waits for the first lease.
    /// The generator keeps the client alive when all clones are dropped. [`Client::close`] ends it, and then its lease is
    /// not given back: close the generator first.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Invalid`] for invalid options, with [`ErrorKind::NoLease`] if no server grants a
    /// lease in time, and with [`ErrorKind::Refused`] if a server refuses for a reason that others would repeat.
    pub async fn local_generator(&self, options: LeaseOptions) -> Result<LocalGenerator, Error> {
        LocalGenerator::open(self.clone(), options).await
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.owner.engine
    }

    /// Returns the servers as this client sees them, in the order of their addresses.
    pub fn servers(&self) -> Vec<SeenServer> {
        self.owner.engine.fleet.view()
    }

    /// Returns what the client and its clones have done since the client was created.
    pub fn counters(&self) -> Counters {
        self.owner.engine.fleet.counts.read()
    }

    /// Closes the client and its clones. Does not wait: calls in progress end with [`ErrorKind::Closed`], as do later
    /// ones.
    pub fn close(&self) {
        self.owner.engine.close();
    }

    /// Returns a client whose calls may block their thread.
    #[cfg(feature = "blocking")]
    pub(crate) fn blocking(self) -> Client {
        Client { mode: Mode::Blocking, ..self }
    }

    /// Returns an id from memory without waiting.
    #[cfg(feature = "blocking")]
    pub(crate) fn try_local(&self, tag: &str) -> Option<i64> {
        self.owner.supply(tag)?.try_take(&self.owner.engine)
    }

    async fn call(&self, ask: Ask<'_>, until: Instant) -> Result<Answer, Error> {
        if ask.tag().len() > TAG_MAX {
            return Err(Error::bad_request(format!("a tag has at most {TAG_MAX} bytes")));
        }
        if self.owner.engine.is_closed() {
            return Err(Error::closed());
        }
        self.owner.engine.call(ask, until, self.mode).await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

/// The codec returns the type of answer that was asked for.
fn unexpected() -> Error {
    Error::new(ErrorKind::Unavailable, "the answer has another type than the call")
}
