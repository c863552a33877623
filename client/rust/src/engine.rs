//! The parts of a client: the servers, their connections, prefetched ids, and what begins and ends them.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout_at;

use crate::connection::Connection;
use crate::dial::Dialer;
use crate::error::{End, Failure};
use crate::fleet::Fleet;
use crate::options::{Options, Seeds};
use crate::pipe::{Late, Pipe};
use crate::server::{Mode, Server};
#[cfg(feature = "blocking")]
use crate::sockets::Sockets;
use crate::wire::{Answer, Ask, Status};

pub(crate) struct Engine {
    pub(crate) options: Options,
    pub(crate) fleet: Arc<Fleet>,
    dialer: Dialer,
    runtime: Handle,
    closed: AtomicBool,
    closing: Notify,
    #[cfg(feature = "blocking")]
    sockets: Sockets,
}

/// How an attempt gets its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) mode: Mode,
    /// A new connection, although one may be idle.
    pub(crate) fresh: bool,
}

impl Engine {
    pub(crate) fn new(options: Options, seeds: Seeds, runtime: Handle) -> Arc<Engine> {
        Arc::new(Engine {
            fleet: Arc::new(Fleet::new(&options, seeds)),
            dialer: Dialer::new(&options),
            options,
            runtime,
            closed: AtomicBool::new(false),
            closing: Notify::new(),
            #[cfg(feature = "blocking")]
            sockets: Sockets::default(),
        })
    }

    /// Does not wait: calls in progress end with an error.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.closing.notify_waiters();
        #[cfg(feature = "blocking")]
        {
            self.sockets.end();
            self.fleet.drop_idle();
        }
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

    /// Asks one server; also returns whether the answer is to an earlier attempt, which is late.
    pub(crate) async fn attempt(
        self: &Arc<Engine>,
        server: &Server,
        ask: &Ask<'_>,
        how: How,
        deadline: Instant,
        _tried: &[u64],
        late: &mut Late,
    ) -> Result<(Answer, bool), Failure> {
        match how.mode {
            Mode::Async => {
                let pipe = self.pipe(server, how.fresh, deadline).await?;
                late.answer(pipe.send(ask)?, ask, deadline).await
            }
            #[cfg(feature = "blocking")]
            Mode::Blocking => {
                let answer = self.attempt_blocking(server, ask, how.fresh, deadline, _tried).await?;
                Ok((answer, false))
            }
        }
    }

    /// Returns the connection that the calls to the server share. One call opens it, and the others wait.
    async fn pipe(
        self: &Arc<Engine>,
        server: &Server,
        fresh: bool,
        deadline: Instant,
    ) -> Result<Arc<Pipe>, Failure> {
        if let Some(pipe) = self.fleet.pipe_of(server).filter(|_| !fresh) {
            return Ok(pipe);
        }
        let Ok(_dialling) = timeout_at(deadline.into(), server.dialling.lock()).await else {
            return Err(Failure::new(End::NoRoom, "its connection was not open before the deadline"));
        };
        if let Some(pipe) = self.fleet.pipe_of(server) {
            return Ok(pipe);
        }
        let until = deadline.min(Instant::now() + self.options.attempt_limit);
        self.check_dial(server, until)?;
        let (connection, _) = self.connect(server, until).await?;
        let (pipe, task) = Pipe::new(connection, self.options.attempt_limit);
        let (fleet, id) = (Arc::clone(&self.fleet), server.id);
        self.spawn(async move {
            if let Some(failure) = task.await {
                fleet.unreported(id, failure);
            }
        });
        self.fleet.put_pipe(server, &pipe);
        Ok(pipe)
    }

    /// Fails while no connection to the server may be opened.
    fn check_dial(&self, server: &Server, until: Instant) -> Result<(), Failure> {
        if self.fleet.may_dial(server, until) {
            return Ok(());
        }
        let failure = Failure::new(End::NoRoom, "a connection to it has just failed");
        Err(Failure { paused: true, ..failure })
    }

    /// Asks one server. While all its connections are in use, the call waits for one until the deadline; it gives
    /// up its place if the server has failed meanwhile and an untried one is healthier.
    #[cfg(feature = "blocking")]
    async fn attempt_blocking(
        &self,
        server: &Server,
        ask: &Ask<'_>,
        fresh: bool,
        deadline: Instant,
        tried: &[u64],
    ) -> Result<Answer, Failure> {
        let _permit = match server.room.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                let Ok(Ok(permit)) = timeout_at(deadline.into(), server.room.acquire()).await else {
                    return Err(Failure::new(End::NoRoom, "all connections were in use"));
                };
                if self.fleet.has_healthier(server, ask.tag(), tried) {
                    return Err(Failure::new(End::NoRoom, "it failed while this call waited for a connection"));
                }
                permit
            }
        };
        let until = deadline.min(Instant::now() + self.options.attempt_limit);
        let mut connection = self.take(server, fresh, until).await?;
        let outcome = connection.call(ask, until).await;
        if outcome.as_ref().map_or_else(Failure::spoke, |_| true) && !self.is_closed() {
            self.fleet.put_idle(server, connection);
        }
        outcome
    }

    /// Returns the connection that was used last, or a new one.
    #[cfg(feature = "blocking")]
    async fn take(&self, server: &Server, fresh: bool, until: Instant) -> Result<Connection, Failure> {
        if let Some(connection) = (!fresh).then(|| self.fleet.take_idle(server)).flatten() {
            return Ok(connection);
        }
        self.check_dial(server, until)?;
        let (connection, _) = self.connect(server, until).await?;
        self.sockets.block(connection, self.options.attempt_limit, || self.is_closed())
    }

    /// Opens a connection, asks for the server's status, and fails unless the server is of this cluster.
    pub(crate) async fn connect(&self, server: &Server, until: Instant) -> Result<(Connection, Status), Failure> {
        let outcome = self.dial(server, until).await;
        server.spoke.store(outcome.is_ok(), Ordering::Relaxed);
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
        let spoke = self.fleet.has_spoken(address); // not on a connection that is opened meanwhile
        let mut connection = self.dialer.connect(address, secure, until).await?;
        let status = match connection.call(&Ask::Status, until).await {
            Ok(Answer::Status(status)) => status,
            Ok(_) => return Err(Failure::new(End::WrongService, "its answer is not a status")),
            Err(failure) if failure.end == End::Broken || failure.spoke() => {
                return Err(Failure::new(End::WrongService, failure.detail));
            }
            Err(mut failure) => {
                if failure.end == End::ConnClosed && !spoke {
                    failure.detail += ", during the first request: it may speak TLS, or require a certificate";
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
