//! The failover of one call.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::futures::Notified;
use tokio::time::{sleep, timeout_at};

use crate::counters::add;
use crate::engine::{Engine, How};
use crate::error::{Attempt, End, Error, ErrorKind, Failure, Reason};
use crate::fleet::Picked;
use crate::meter;
use crate::options::EventKind;
use crate::pipe::{Asked, Late};
use crate::random;
use crate::server::{Mode, Server};
use crate::wire::{Answer, Ask};

const CONNECTS_MAX: usize = 16;
const ATTEMPTS_KEPT: usize = 32;
const ROUNDS_MAX: usize = 100;
const OVERLOAD_PAUSE: Duration = Duration::from_millis(10);

/// One call. It tries each server once, and sends at most `attempts_max` requests. A refusal that another server
/// would repeat ends it. If all reachable servers are overloaded, it waits for the shortest advised time and starts
/// again, if the deadline permits. If no server is left, or all are unreachable, silent or draining, it waits for
/// news of servers, or for the time of an attempt, and tries all of them once more. No attempt starts at or after
/// the deadline.
pub(crate) struct Call<'a> {
    engine: &'a Arc<Engine>,
    ask: Ask<'a>,
    until: Instant,
    mode: Mode,
    attempts: Vec<Attempt>,
    dropped: usize, // earlier attempts
    asking: Option<(Arc<Server>, Instant)>,
    late: Late,
    began: Instant,         // of the last attempt
    reason: Option<Reason>, // of the last failure, as its advice
    retry_after: Duration,
    sent: usize,
    alone: bool,   // no server could be asked
    paid: bool,    // the next request uses the retry budget
    rounds: usize, // that ended because all servers were overloaded
    round: Round,
}

/// The servers that were tried since the call began, or since it waited for all of them.
#[derive(Default)]
struct Round {
    tried: Vec<u64>,
    unreached: usize,
    overloaded: usize,
    lost: usize,
    advice: Duration,
}

/// An attempt whose request was sent on an open connection.
struct Sent {
    began: Instant,
    asked: Asked,
    failure: Option<Box<Failure>>,
}

impl Sent {
    /// Returns the server's answer. None: the attempt failed, or takes too long.
    async fn answer(&mut self, ask: &Ask<'_>, until: Instant) -> Option<Answer> {
        match self.asked.answer(ask, until).await? {
            Ok(answer) => Some(answer),
            Err(failure) => {
                self.failure = Some(Box::new(failure));
                None
            }
        }
    }
}

impl Engine {
    /// Calls until the deadline. Most calls end with their first attempt. The rest is boxed, because a future has the size
    /// of its longest way, and a burst of calls writes all of it.
    pub(crate) async fn call(
        self: &Arc<Engine>,
        ask: Ask<'_>,
        until: Instant,
        mode: Mode,
    ) -> Result<Answer, Error> {
        let mut timer = meter::CallTimer::start();
        add(&self.fleet.counts.calls, 1);
        let mut first = self.begin(&ask, until, mode);
        let answer = match &mut first {
            Some((_, Some(sent))) => sent.answer(&ask, until).await,
            _ => None,
        };
        let outcome = match (answer, first) {
            (Some(answer), Some((picked, _))) => {
                self.fleet.counts.attempted::<()>(&Ok(()));
                self.fleet.answered(&picked.server, ask.tag(), false);
                Ok(answer)
            }
            (_, first) => Box::pin(self.fail_over(ask, until, mode, first)).await,
        };
        self.fleet.counts.ended(&outcome);
        timer.ended(outcome.as_ref().err().map(Error::kind));
        outcome
    }

    /// Picks the first server, and sends it the request if it has an open connection.
    fn begin(&self, ask: &Ask<'_>, until: Instant, mode: Mode) -> Option<(Picked, Option<Sent>)> {
        let began = Instant::now();
        if began >= until {
            return None;
        }
        let mut picked = self.fleet.pick_at(began, ask.tag(), &[], mode)?;
        let pipe = picked.pipe.take().filter(|_| mode == Mode::Async);
        let asked = pipe.and_then(|pipe| pipe.send(ask).ok());
        Some((picked, asked.map(|asked| Sent { began, asked, failure: None })))
    }

    /// Continues a call after its first attempt, which may still be answered, or begins it.
    async fn fail_over(
        self: &Arc<Engine>,
        ask: Ask<'_>,
        until: Instant,
        mode: Mode,
        first: Option<(Picked, Option<Sent>)>,
    ) -> Result<Answer, Error> {
        let mut call = Call::new(self, ask, until, mode);
        if let Some((picked, Some(sent))) = &first {
            call.asking = Some((Arc::clone(&picked.server), sent.began));
        }
        match self.until_closed(call.run(first)).await {
            Some(outcome) => outcome,
            None => Err(call.closed()),
        }
    }
}

impl<'a> Call<'a> {
    fn new(engine: &'a Arc<Engine>, ask: Ask<'a>, until: Instant, mode: Mode) -> Call<'a> {
        Call {
            engine,
            ask,
            until,
            mode,
            attempts: Vec::new(),
            dropped: 0,
            asking: None,
            late: Late::default(),
            began: Instant::now(),
            reason: None,
            retry_after: Duration::ZERO,
            sent: 0,
            alone: false,
            paid: false,
            rounds: 0,
            round: Round::default(),
        }
    }

    async fn run(&mut self, mut first: Option<(Picked, Option<Sent>)>) -> Result<Answer, Error> {
        let fleet = Arc::clone(&self.engine.fleet);
        let mut waited = false;
        loop {
            let news = fleet.news.notified(); // counts from here, so that none is lost until the call waits
            if self.engine.is_closed() {
                return Err(self.closed()); // it ends the reads of blocking calls
            }
            let (picked, sent) = if let Some(first) = first.take() {
                first
            } else {
                if let Some(why) = self.over() {
                    return Err(self.failure(why));
                }
                let Some(picked) = self.pick(waited) else {
                    match self.wait(news).await {
                        Ok(news) => waited = news,
                        Err(why) => return self.stall(why).await,
                    }
                    continue;
                };
                waited = false;
                if self.paid && !fleet.take_retry() {
                    return self.stall("the retry budget is exhausted").await;
                }
                (picked, None)
            };
            let failure = match self.ask_one(&picked, sent).await {
                Ok(answer) => return Ok(answer),
                Err(failure) if failure.paused => continue,
                Err(failure) => failure,
            };
            if self.ends_with(&picked, &failure) {
                let error = Error::new(ErrorKind::Refused, failure.detail);
                let advice = Some(failure.retry_after).filter(|advice| !advice.is_zero());
                return Err(error.with_refusal(failure.reason, advice).with_attempts(self.take_attempts()));
            }
            if self.engine.options.failfast {
                return Err(self.failure("the first server failed"));
            }
        }
    }

    /// Fails, unless a server that is late still answers.
    async fn stall(&mut self, why: &str) -> Result<Answer, Error> {
        match self.late.any_until(&self.ask, self.until).await {
            Some(answer) => Ok(answer),
            None => Err(self.failure(why)),
        }
    }

    /// Returns the error of a call that was in progress when the client was closed.
    pub(crate) fn closed(&mut self) -> Error {
        if let Some((server, began)) = self.asking.take() {
            self.keep(
                server.address.clone(),
                began.elapsed(),
                &Failure::new(End::ConnClosed, "the client was closed"),
            );
        }
        Error::new(ErrorKind::Closed, "the client was closed").with_attempts(self.take_attempts())
    }

    fn pick(&mut self, waited: bool) -> Option<Picked> {
        if self.sent >= self.engine.options.attempts_max {
            return None;
        }
        let picked = self.engine.fleet.pick(self.ask.tag(), &self.round.tried, self.mode);
        if picked.is_none() && waited {
            self.round = Round::default();
            return self.engine.fleet.pick(self.ask.tag(), &[], self.mode);
        }
        picked
    }

    /// Asks the server. Tries again on a new connection if an idle one turns out to be closed.
    async fn ask_one(&mut self, picked: &Picked, sent: Option<Sent>) -> Result<Answer, Failure> {
        match self.timed(picked, false, sent).await {
            Err(failure) if failure.stale && self.may_retry() => self.timed(picked, true, None).await,
            outcome => outcome,
        }
    }

    fn may_retry(&self) -> bool {
        Instant::now() < self.until && !self.engine.is_closed()
    }

    async fn timed(&mut self, picked: &Picked, fresh: bool, sent: Option<Sent>) -> Result<Answer, Failure> {
        let how = How { mode: self.mode, fresh };
        let began = sent.as_ref().map_or_else(Instant::now, |sent| sent.began);
        let (server, tag) = (&*picked.server, self.ask.tag());
        self.began = began;
        self.asking = Some((Arc::clone(&picked.server), began));
        let (ask, late) = (&self.ask, &mut self.late);
        let outcome = match sent {
            None => self.engine.attempt(server, ask, how, self.until, &self.round.tried, late).await,
            Some(Sent { failure: Some(failure), .. }) => Err(*failure),
            Some(sent) => late.answer(sent.asked, ask, self.until).await,
        };
        self.asking = None;
        if !outcome.as_ref().is_err_and(|failure| failure.paused) {
            self.engine.fleet.counts.attempted(&outcome);
        }
        match &outcome {
            // A late answer does not make up for its timeout: a server that is always late is ejected.
            Ok((_, true)) => {}
            Ok(_) => self.engine.fleet.answered(server, tag, false),
            Err(failure) if failure.paused => {}
            Err(failure) => {
                let took = began.elapsed();
                self.keep(server.address.clone(), took, failure);
                // A timeout after too little time says nothing about the server's health.
                let late = matches!(failure.end, End::Timeout | End::ConnectTimeout);
                if !(late && 2 * took < self.engine.options.attempt_limit) {
                    self.engine.fleet.failed(server, tag, failure);
                }
            }
        }
        outcome.map(|(answer, _)| answer)
    }

    fn keep(&mut self, server: String, took: Duration, failure: &Failure) {
        meter::attempt_failed(failure.end);
        if self.attempts.len() == ATTEMPTS_KEPT {
            self.attempts.remove(0);
            self.dropped += 1;
        }
        let (end, reason, detail) = (failure.end, failure.reason, failure.detail.clone());
        self.attempts.push(Attempt { server, end, reason, took, detail });
    }

    /// Records the outcome of an attempt, and returns whether it ends the call.
    fn ends_with(&mut self, picked: &Picked, failure: &Failure) -> bool {
        use Reason::*;
        self.reason = failure.reason;
        self.retry_after = failure.retry_after;
        let elsewhere = match failure.reason {
            Some(NotReady | Clock | Overloaded | Draining | StoreDown) => true,
            Some(Internal | Exhausted) => failure.another_may_help,
            _ => false,
        };
        if failure.end == End::Refused && !elsewhere {
            return true;
        }
        let late = failure.end == End::Timeout;
        let free = failure.unsent() || (late && self.engine.fleet.may_move(&picked.server, self.began));
        self.paid = !free;
        let round = &mut self.round;
        round.tried.push(picked.server.id);
        if failure.unsent() {
            round.unreached += 1;
        } else {
            self.sent += 1;
        }
        let silent = matches!(failure.end, End::Timeout | End::ConnClosed);
        round.lost += usize::from(silent || failure.unsent() || failure.reason == Some(Draining));
        if failure.reason == Some(Overloaded) {
            let advice = failure.retry_after.max(OVERLOAD_PAUSE);
            round.advice = if round.overloaded == 0 { advice } else { advice.min(round.advice) };
            round.overloaded += 1;
        }
        false
    }

    /// Waits for an event that may help. Returns whether that may be news of servers, or why it does not wait.
    async fn wait(&mut self, news: Notified<'_>) -> Result<bool, &'static str> {
        let mut news = pin!(news);
        let may_send = self.sent < self.engine.options.attempts_max;
        if let Some(at) = self.engine.fleet.paused_until(&self.round.tried, self.mode).filter(|_| may_send) {
            let _ = timeout_at(at.min(self.until).into(), &mut news).await;
            return Ok(false);
        }
        let (round, tried) = (&self.round, self.round.tried.len());
        self.alone |= tried == 0;
        if round.overloaded > 0 && round.overloaded + round.unreached == tried {
            let room = self.until.saturating_duration_since(Instant::now()).saturating_sub(round.advice);
            self.rounds += 1;
            if room.is_zero() || self.rounds == ROUNDS_MAX {
                return Err("all servers are overloaded");
            }
            // Adds up to half of the time at random, so that clients do not return together.
            sleep(round.advice + random::up_to(round.advice.min(room) / 2)).await;
            self.sent = 0;
            self.round = Round::default();
            return Ok(false);
        }
        let lost = round.lost == tried && self.engine.fleet.lists_change;
        if !(tried == 0 || lost) || !may_send {
            return Err("no other server is left to ask");
        }
        let limit = Instant::now() + self.engine.options.attempt_limit;
        let _ = timeout_at(limit.min(self.until).into(), &mut news).await;
        Ok(true)
    }

    fn over(&self) -> Option<&'static str> {
        if Instant::now() >= self.until {
            return Some("the deadline has passed");
        }
        (self.round.unreached >= CONNECTS_MAX).then_some("too many servers are out of reach")
    }

    fn failure(&mut self, why: &str) -> Error {
        let mut message = why.to_owned();
        if self.dropped > 0 {
            let all = ATTEMPTS_KEPT + self.dropped;
            message += &format!("; the last {ATTEMPTS_KEPT} of {all} attempts:");
        }
        if self.alone && self.attempts.is_empty() {
            message = "no usable server is known".to_owned();
            self.engine.fleet.tell(EventKind::NoServer, "", &message);
        }
        let advice = Some(self.retry_after).filter(|advice| !advice.is_zero());
        Error::new(ErrorKind::Unavailable, message)
            .with_refusal(self.reason, advice)
            .with_attempts(self.take_attempts())
    }

    fn take_attempts(&mut self) -> Vec<Attempt> {
        std::mem::take(&mut self.attempts)
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
