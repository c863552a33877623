//! The parts of a client: the servers, their connections, prefetched ids, and what begins and ends them.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout_at;

use crate::call::Call;
use crate::connection::Connection;
use crate::dial::Dialer;
use crate::error::{End, Error, Failure};
use crate::fleet::Fleet;
use crate::meter;
use crate::options::{Options, Seeds};
use crate::ranges::Supply;
use crate::server::Server;
use crate::upkeep;
use crate::wire::{Answer, Ask, Status};

pub(crate) struct Engine {
    pub(crate) options: Options,
    pub(crate) fleet: Arc<Fleet>,
    supplies: Vec<Arc<Supply>>,
    dialer: Dialer,
    runtime: Handle,
    closed: AtomicBool,
    closing: Notify,
    #[cfg(feature = "blocking")]
    sockets: crate::blocking::Sockets,
}

/// How a call waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Async,
    #[cfg(feature = "blocking")]
    Blocking,
}

/// How an attempt gets its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) mode: Mode,
    /// A new connection, although one may be idle.
    pub(crate) fresh: bool,
}

impl Mode {
    pub(crate) fn may_use(self, connection: &Connection) -> bool {
        match self {
            Mode::Async => !connection.is_blocking(),
            // Others could be made to block, but are left to background work.
            #[cfg(feature = "blocking")]
            Mode::Blocking => connection.is_blocking() || connection.never_blocks(),
        }
    }
}

impl Engine {
    /// Begins the background work on the runtime.
    pub(crate) fn start(options: Options, seeds: Seeds, runtime: Handle) -> Arc<Engine> {
        let engine = Arc::new(Engine {
            fleet: Arc::new(Fleet::new(&options, seeds)),
            supplies: options.local_ranges.iter().map(|tag| Arc::new(Supply::new(tag))).collect(),
            dialer: Dialer::new(&options),
            options,
            runtime,
            closed: AtomicBool::new(false),
            closing: Notify::new(),
            #[cfg(feature = "blocking")]
            sockets: crate::blocking::Sockets::default(),
        });
        engine.spawn(upkeep::run(Arc::clone(&engine)));
        engine
    }

    /// Does not wait: calls in progress end with an error.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.closing.notify_waiters();
        #[cfg(feature = "blocking")]
        self.sockets.end();
        self.fleet.drop_all_idle();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Runs background work until the client is closed.
    pub(crate) fn spawn(self: &Arc<Engine>, work: impl Future<Output = ()> + Send + 'static) {
        let engine = Arc::clone(self);
        self.runtime.spawn(async move {
            engine.until_closed(work).await;
        });
    }

    /// Returns None if the client is closed first.
    pub(crate) async fn until_closed<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let closing = self.closing.notified();
        if self.is_closed() {
            return None;
        }
        tokio::select! {
            biased;
            outcome = work => Some(outcome),
            () = closing => None,
        }
    }

    /// Returns the prefetched ids of the tag, if it has any.
    pub(crate) fn supply(&self, tag: &str) -> Option<&Arc<Supply>> {
        self.supplies.iter().find(|supply| supply.tag() == tag)
    }

    /// Calls until the deadline.
    pub(crate) async fn call(&self, ask: Ask<'_>, until: Instant, mode: Mode) -> Result<Answer, Error> {
        let mut timer = meter::CallTimer::start();
        let mut call = Call::new(self, ask, until, mode);
        let outcome = match self.until_closed(call.run()).await {
            Some(outcome) => outcome,
            None => Err(call.closed()),
        };
        self.fleet.counts.ended(&outcome);
        timer.ended(outcome.as_ref().err().map(Error::kind));
        outcome
    }

    /// Asks one server. While all its connections are in use, the call waits for one until the deadline; it gives
    /// up its place if the server has failed meanwhile and an untried one is fitter.
    pub(crate) async fn attempt(
        &self,
        server: &Server,
        ask: &Ask<'_>,
        how: How,
        deadline: Instant,
        tried: &[u64],
    ) -> Result<Answer, Failure> {
        let _permit = match server.room.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                let Ok(Ok(permit)) = timeout_at(deadline.into(), server.room.acquire()).await else {
                    return Err(Failure::new(End::NoRoom, "all connections were in use"));
                };
                if self.fleet.has_fitter(server, ask.tag(), tried) {
                    return Err(Failure::new(End::NoRoom, "it failed while this call waited for a connection"));
                }
                permit
            }
        };
        let until = deadline.min(Instant::now() + self.options.attempt_limit);
        let mut connection = self.take(server, how, until).await?;
        let outcome = connection.call(ask, until).await;
        self.put(server, connection, &outcome);
        outcome
    }

    /// Returns the connection that was used last, or a new one.
    pub(crate) async fn take(&self, server: &Server, how: How, until: Instant) -> Result<Connection, Failure> {
        if !how.fresh {
            if let Some(connection) = self.fleet.take_idle(server, how.mode) {
                return Ok(connection);
            }
        }
        if !self.fleet.may_dial(server, until) {
            let failure = Failure::new(End::NoRoom, "a connection to it has just failed");
            return Err(Failure { paused: true, ..failure });
        }
        let (connection, _) = self.connect(server, until).await?;
        match how.mode {
            Mode::Async => Ok(connection),
            #[cfg(feature = "blocking")]
            Mode::Blocking => self.sockets.block(connection, self.options.attempt_limit, || self.is_closed()),
        }
    }

    /// Keeps the connection for the next call after a valid answer.
    pub(crate) fn put(&self, server: &Server, connection: Connection, outcome: &Result<Answer, Failure>) {
        if outcome.as_ref().map_or_else(Failure::spoke, |_| true) && !self.is_closed() {
            self.fleet.put_idle(server, connection);
        }
    }

    /// Opens a connection, asks for the server's status, and fails unless the server is of this cluster.
    pub(crate) async fn connect(&self, server: &Server, until: Instant) -> Result<(Connection, Status), Failure> {
        let outcome = self.dial(server, until).await;
        self.fleet.dialled(server, outcome.as_ref().map_or_else(Failure::spoke, |_| true));
        outcome
    }

    async fn dial(&self, server: &Server, until: Instant) -> Result<(Connection, Status), Failure> {
        let secure = self.fleet.lock().member(server).is_some_and(|member| member.tls);
        self.dial_address(&server.address, secure, until).await
    }

    /// As `connect`, for an address that may not be in the list.
    pub(crate) async fn dial_address(
        &self,
        address: &str,
        secure: bool,
        until: Instant,
    ) -> Result<(Connection, Status), Failure> {
        let mut connection = self.dialer.connect(address, secure, until).await?;
        let status = match connection.call(&Ask::Status, until).await {
            Ok(Answer::Status(status)) => status,
            Ok(_) => return Err(Failure::new(End::WrongService, "its answer is not a status")),
            Err(failure) if failure.end == End::Broken || failure.spoke() => {
                return Err(Failure::new(End::WrongService, failure.detail));
            }
            Err(mut failure) => {
                if failure.end == End::ConnClosed {
                    failure.detail += ", before its status: it may use TLS, or require a certificate";
                }
                return Err(failure);
            }
        };
        self.fleet.admit(&status)?;
        connection.used = false;
        connection.check_by(&status);
        Ok((connection, status))
    }
}
