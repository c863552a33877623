//! Sends the requests of a lessee to the servers of a client.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::lessee::{LeaseOutcome, LeaseRequest, Outcome, Unusable, What};
use super::terms::Lease;
use super::wire::{LeaseAsk, LeaseEnd, LeaseRenewal};
use crate::connection::Connection;
use crate::engine::Engine;
use crate::error::{End, Error, ErrorKind, Failure, LeaseFault, Reason};
use crate::layout::Layout;
use crate::server::Mode;
use crate::wire::{Answer, Ask};

/// Maximum time to connect to a server, with its status, and then to get an answer from it.
const ATTEMPT: Duration = Duration::from_secs(2);
/// Maximum time of a grant: the server claims a machine id meanwhile, which needs several answers of the registry.
const GRANT: Duration = Duration::from_secs(6);

/// What the requests of one generator have in common.
#[derive(Clone, Debug)]
pub(crate) struct Wishes {
    pub(crate) name: String,
    pub(crate) rack: Option<i32>,
    pub(crate) ahead_ms: i32,
}

/// A connection over which a server has granted or extended a lease.
struct Line {
    server: String,
    connection: Connection,
    layout: String,
}

/// Sends the requests of one generator. They share no connection with calls, because an answer may take seconds. The
/// connection of the last lease is kept, so that its renewal needs no file descriptor and no DNS.
pub(crate) struct Transport {
    engine: Arc<Engine>,
    wishes: Wishes,
    kept: Mutex<Option<Line>>, // a request takes it, so that a failure, or the end of its task, closes it
}

impl Transport {
    pub(crate) fn new(engine: Arc<Engine>, wishes: Wishes) -> Arc<Transport> {
        Arc::new(Transport { engine, wishes, kept: Mutex::default() })
    }

    /// Sends a request, and returns its outcome within 8 s.
    pub(crate) async fn send(self: Arc<Self>, request: LeaseRequest) -> LeaseOutcome {
        let fleet = &self.engine.fleet;
        let mut picked = None; // counts as a call in flight while it lives
        let server = if let (true, What::Grant { avoid, .. }) = (request.server.is_empty(), &request.what) {
            picked = fleet.pick("", &fleet.ids_of(avoid), Mode::Async);
            picked.as_ref().map(|one| one.server.address.clone()).unwrap_or_default()
        } else {
            request.server
        };
        if server.is_empty() {
            let message = "no usable server is known".to_owned();
            return LeaseOutcome { server, kind: Outcome::NoAnswer { sent: false }, message };
        }
        let outcome = self.exchange(&server, &request.what, request.clock_ms).await;
        drop(picked);
        outcome
    }

    async fn exchange(&self, server: &str, what: &What, clock_ms: i64) -> LeaseOutcome {
        let limit = if matches!(what, What::Grant { .. }) { GRANT } else { ATTEMPT };
        let end = Instant::now() + ATTEMPT + limit;
        let mut kept = self.take(server);
        let mut sent = false;
        loop {
            let mut line = match kept.take() {
                Some(line) => line,
                None => match self.dial(server, end.min(Instant::now() + ATTEMPT)).await {
                    Ok(line) => line,
                    Err(failure) => return outcome_of_failure(server, failure, sent),
                },
            };
            let reused = line.connection.used;
            let until = end.min(Instant::now() + limit);
            let outcome = self.call(&mut line.connection, what, clock_ms, until).await;
            sent = true;
            match outcome {
                Ok(answer) => {
                    let keeps = reused || matches!(answer, Answer::Lease(_));
                    let outcome = outcome_of_answer(server, answer, &line.layout);
                    if keeps {
                        *self.kept() = Some(line);
                    }
                    return outcome;
                }
                Err(failure) if failure.stale => {} // the server closed it while it was idle: dials at once
                Err(failure) => {
                    if reused && failure.spoke() {
                        *self.kept() = Some(line);
                    }
                    return outcome_of_failure(server, failure, true);
                }
            }
        }
    }

    /// Takes the kept connection if it is one to this server.
    fn take(&self, server: &str) -> Option<Line> {
        let mut kept = self.kept();
        if kept.as_ref().is_some_and(|line| line.server == server) {
            kept.take()
        } else {
            None
        }
    }

    async fn dial(&self, server: &str, until: Instant) -> Result<Line, Failure> {
        let secure = self.engine.fleet.is_secure(server);
        let (connection, status) = self.engine.dial_address(server, secure, until).await?;
        Ok(Line { server: server.to_owned(), connection, layout: status.layout })
    }

    async fn call(
        &self,
        connection: &mut Connection,
        what: &What,
        clock_ms: i64,
        until: Instant,
    ) -> Result<Answer, Failure> {
        let ahead_ms = Some(self.wishes.ahead_ms);
        match what {
            What::Grant { token, .. } => {
                let (token, name, rack) = (token.clone(), self.wishes.name.clone(), self.wishes.rack);
                connection.call(&Ask::Lease(&LeaseAsk { token, name, clock_ms, ahead_ms, rack }), until).await
            }
            What::Renewal { lease, turn, acknowledged } => {
                let (lease, turn, acknowledged) = (lease.clone(), turn.clone(), acknowledged.clone());
                let renewal = LeaseRenewal { lease, turn, acknowledged, clock_ms, ahead_ms };
                connection.call(&Ask::RenewLease(&renewal), until).await
            }
            What::Release { lease, turn, used_tick } => {
                let (lease, turn) = (lease.clone(), turn.clone());
                let end = LeaseEnd { lease, turn, used_tick: Some(*used_tick) };
                connection.call(&Ask::ReleaseLease(&end), until).await
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Option<Line>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn outcome_of_answer(server: &str, answer: Answer, layout: &str) -> LeaseOutcome {
    let (kind, message) = match answer {
        Answer::Lease(terms) => match Lease::read(&terms, Layout::parse(layout).as_ref()) {
            Ok(lease) => (Outcome::Lease(Box::new(lease)), String::new()),
            Err(fault) => {
                let message = format!("the lease of {server} cannot be used: {fault}");
                let unusable = Unusable {
                    id: terms.lease.clone(),
                    server: terms.server.clone(),
                    from_tick: terms.from_tick,
                    end_us: terms.end_us(),
                };
                (Outcome::Unusable(unusable), message)
            }
        },
        _ => (Outcome::Released, String::new()),
    };
    LeaseOutcome { server: server.to_owned(), kind, message }
}

/// `sent`: the server has received the request, or may have.
fn outcome_of_failure(server: &str, failure: Failure, sent: bool) -> LeaseOutcome {
    let what = failure.reason.map_or(failure.end.name(), Reason::name);
    let message = format!("{server} {what}: {}", failure.detail);
    let kind = match failure.lease {
        Some(LeaseFault::UnknownLease) => Outcome::Unknown,
        Some(LeaseFault::Outdated) => Outcome::Outdated,
        Some(LeaseFault::Revoked) => Outcome::Revoked,
        Some(LeaseFault::AnotherServers(owner)) => Outcome::Elsewhere(owner),
        Some(LeaseFault::NoLeases) => Outcome::Refused,
        None if failure.lacks_method => Outcome::Refused,
        // A refusal before the request was sent: the server does not know its cluster yet.
        None if failure.end != End::Refused || !sent => Outcome::NoAnswer { sent },
        None => match failure.reason {
            Some(reason @ (Reason::BadRequest | Reason::Rejected)) => {
                let error = Error::new(ErrorKind::Refused, message.clone()).with_refusal(Some(reason), None);
                Outcome::RefusedForGood(error)
            }
            reason => Outcome::NotReady {
                retry_after_us: failure.retry_after.as_micros() as i64,
                claiming: reason == Some(Reason::NotReady) && !failure.another_may_help,
            },
        },
    };
    LeaseOutcome { server: server.to_owned(), kind, message }
}
