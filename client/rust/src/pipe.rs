//! A connection that asynchronous calls share.

use std::collections::VecDeque;
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::io::{split, AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{oneshot, Notify};
use tokio::task::yield_now;
use tokio::time::{sleep, sleep_until, timeout_at};

use crate::connection::{read_failure, Connection, Stream, BUFFER_BYTES};
use crate::error::{End, Failure};
use crate::layout::IdCheck;
use crate::wire::{frame_size, read_answer, Answer, Ask};

/// A connection to one server with many requests in flight, which the server answers in their order. A task reads and
/// writes. Any failure but a refusal closes it and ends all requests on it. Each call compares the sequence number of
/// its answer, so a late answer cannot be taken for the answer to another call.
pub(crate) struct Pipe {
    state: Mutex<State>,
    check: Option<IdCheck>,
    limit: Duration,
    writes: Notify,
    begins: Notify, // a request waits, and none did before
    closing: Notify,
}

struct State {
    out: Vec<u8>, // requests that are not written yet
    queue: VecDeque<Waiting>,
    sequence: i32,
    used: bool, // an earlier call used it: if it is closed, a call may try again
    leaving: bool,
    closed: Option<Ending>,
    heard_at: Instant,
    reported: bool, // since then, a call has reported a time-out
}

#[derive(Clone)]
struct Ending {
    end: End,
    detail: String,
    whole: bool, // not within an answer
}

impl Ending {
    fn failure(&self, stale: bool) -> Failure {
        Failure::new(self.end, &self.detail).or_stale(self.end == End::ConnClosed && self.whole && stale)
    }
}

struct Waiting {
    stale: bool,
    sent: Instant,
    answer: oneshot::Sender<Result<Vec<u8>, Failure>>,
}

/// A request in flight.
pub(crate) struct Asked {
    pipe: Arc<Pipe>,
    sequence: i32,
    sent: Instant,
    answer: oneshot::Receiver<Result<Vec<u8>, Failure>>,
}

impl Pipe {
    /// Also returns the task that reads and writes; it ends with the failure that ended the connection, if no call
    /// reports that: an answer that belongs to no call, or silence after all calls have given up.
    pub(crate) fn new(
        connection: Connection,
        limit: Duration,
    ) -> (Arc<Pipe>, impl Future<Output = Option<Failure>> + Send) {
        let (stream, sequence, check) = connection.into_parts();
        let state = State {
            out: Vec::new(),
            queue: VecDeque::new(),
            sequence,
            used: false,
            leaving: false,
            closed: None,
            heard_at: Instant::now(),
            reported: false,
        };
        let (writes, begins, closing) = (Notify::new(), Notify::new(), Notify::new());
        let pipe = Arc::new(Pipe { state: Mutex::new(state), check, limit, writes, begins, closing });
        let task = run(Task(Arc::clone(&pipe)), stream);
        (pipe, task)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed.is_some()
    }

    /// Queues the request. The time limit of the attempt begins here.
    pub(crate) fn send(self: Arc<Pipe>, ask: &Ask<'_>) -> Result<Asked, Failure> {
        let mut state = self.lock();
        if let Some(ending) = &state.closed {
            return Err(ending.failure(true));
        }
        state.sequence = state.sequence.wrapping_add(1);
        let (sequence, stale, sent) = (state.sequence, state.used, Instant::now());
        let (sender, answer) = oneshot::channel();
        let begins = state.queue.is_empty();
        state.queue.push_back(Waiting { stale, sent, answer: sender });
        ask.write(sequence, &mut state.out);
        drop(state);
        self.writes.notify_one();
        if begins {
            self.begins.notify_one();
        }
        Ok(Asked { pipe: self, sequence, sent, answer })
    }

    /// Closes the connection when its calls have ended.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.leaving = true;
        let idle = state.queue.is_empty();
        drop(state);
        if idle {
            self.close(End::ConnClosed, "", true);
        }
    }

    /// Closes the connection when its first calls have ended. It must have one soon.
    pub(crate) fn leave_when_used(&self) {
        self.lock().leaving = true;
    }

    /// Ends the connection and all requests on it.
    pub(crate) fn close(&self, end: End, detail: &str, whole: bool) {
        let mut state = self.lock();
        if state.closed.is_some() {
            return;
        }
        let ending = Ending { end, detail: detail.to_owned(), whole };
        state.closed = Some(ending.clone());
        let queue = std::mem::take(&mut state.queue);
        drop(state);
        self.closing.notify_one();
        for one in queue {
            let _ = one.answer.send(Err(ending.failure(one.stale)));
        }
    }

    /// Gives a frame to the oldest request. Returns false if there is none, and whether the connection must end.
    fn take(&self, frame: Vec<u8>, now: Instant) -> Result<bool, Failure> {
        let mut state = self.lock();
        state.heard_at = now;
        state.reported = false;
        state.used = true;
        let first = state.queue.pop_front();
        let ends = state.leaving && state.queue.is_empty();
        drop(state);
        let first = first.ok_or_else(|| Failure::new(End::Broken, "an answer belongs to no call"))?;
        let _ = first.answer.send(Ok(frame)); // a call that has ended does not wait for it
        Ok(ends)
    }

    /// Returns the connection's requests that are not written yet.
    fn take_out(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock().out)
    }

    /// Returns when the connection is silent if nothing arrives until then: the time of an attempt after the first
    /// request since the last answer. Earlier requests are late then, and have that time once more. None: no request
    /// waits.
    fn silent_at(&self) -> Option<Instant> {
        let state = self.lock();
        state.queue.front()?;
        let again = state.heard_at + self.limit;
        let first = state.queue.iter().map(|one| one.sent).find(|sent| *sent >= state.heard_at);
        Some(first.map_or(again, |sent| sent.min(again)) + self.limit)
    }

    /// Returns whether a call has reported the silence, or still waits after the time of an attempt, and will. A call
    /// that finds the silence at the same time has closed the connection.
    fn is_reported(&self, now: Instant) -> bool {
        let state = self.lock();
        state.closed.is_some()
            || state.reported
            || state.queue.iter().any(|one| now >= one.sent + self.limit && !one.answer.is_closed())
    }

    /// A call reports a time-out. As for the server's health, too little time does not count.
    fn gave_up(&self, sent: Instant) {
        if 2 * sent.elapsed() >= self.limit {
            self.lock().reported = true;
        }
    }

    fn is_silent_since(&self, sent: Instant) -> bool {
        self.lock().heard_at <= sent
    }
}

/// Returns the failure of requests that were in flight when the client was closed.
pub(crate) fn client_closed() -> Failure {
    Failure::new(End::ConnClosed, "the client was closed")
}

/// Closes the connection when its task ends, which is dropped when the client is closed.
struct Task(Arc<Pipe>);

impl Drop for Task {
    fn drop(&mut self) {
        let failure = client_closed();
        self.0.close(failure.end, &failure.detail, false);
    }
}

async fn run(task: Task, stream: Stream) -> Option<Failure> {
    let pipe = &task.0;
    let (reader, writer) = split(stream);
    let (failure, whole) = tokio::select! {
        biased; // an answer that has arrived is read before the connection is found to be silent
        ended = read(pipe, reader) => ended,
        failure = write(pipe, writer) => (failure, true),
        () = pipe.closing.notified() => return None,
        () = silence(pipe) => {
            let reported = pipe.is_reported(Instant::now());
            pipe.close(End::Timeout, "", false);
            return (!reported).then(|| Failure::new(End::Timeout, ""));
        }
    };
    pipe.close(failure.end, &failure.detail, whole);
    (failure.end == End::Broken).then_some(failure)
}

/// Ends when no answer has arrived for the time of an attempt. Calls may have a shorter deadline, or be dropped, so none
/// may be left to notice that.
async fn silence(pipe: &Pipe) {
    let mut graced = false;
    loop {
        let Some(due) = pipe.silent_at() else {
            pipe.begins.notified().await;
            continue;
        };
        sleep_until(due.into()).await;
        yield_now().await; // an answer that arrived while the process was busy is read first
        let now = Instant::now();
        if pipe.silent_at().map_or(true, |at| now < at) {
            graced = false;
        } else if !graced && now > due + pipe.limit / 4 {
            graced = true; // this process was late itself
            sleep(pipe.limit / 8).await;
        } else {
            return;
        }
    }
}

async fn write(pipe: &Pipe, mut stream: WriteHalf<Stream>) -> Failure {
    loop {
        pipe.writes.notified().await;
        yield_now().await; // other calls add their requests
        let bytes = pipe.take_out();
        let written = async {
            stream.write_all(&bytes).await?;
            stream.flush().await
        };
        if let Err(fault) = written.await {
            return read_failure(&fault);
        }
    }
}

/// Returns why reading ended, and whether that was not within an answer.
async fn read(pipe: &Pipe, mut stream: ReadHalf<Stream>) -> (Failure, bool) {
    let mut input: Vec<u8> = Vec::new();
    loop {
        let (mut at, mut wanted, now) = (0, 4, Instant::now());
        loop {
            let size = match frame_size(&input[at..]) {
                Err(failure) => return (failure, false),
                Ok(None) => break,
                Ok(Some(size)) => size,
            };
            if input.len() - at < 4 + size {
                wanted = 4 + size;
                break;
            }
            match pipe.take(input[at + 4..at + 4 + size].to_vec(), now) {
                Err(unasked) => return (unasked, false),
                Ok(true) => return (Failure::new(End::ConnClosed, ""), true),
                Ok(false) => at += 4 + size,
            }
        }
        input.drain(..at);
        if input.is_empty() && input.capacity() > BUFFER_BYTES {
            input = Vec::new();
        }
        // Reserves little memory beyond what has arrived.
        let lacking = wanted.saturating_sub(input.len());
        input.reserve(lacking.clamp(BUFFER_BYTES / 4, BUFFER_BYTES.max(input.len())));
        match stream.read_buf(&mut input).await {
            Ok(0) => return (Failure::new(End::ConnClosed, "the server closed the connection"), input.is_empty()),
            Ok(_) => {}
            Err(fault) => return (read_failure(&fault), input.is_empty()),
        }
    }
}

impl Asked {
    /// Returns the answer; None if it does not come within the time of an attempt.
    pub(crate) async fn answer(&mut self, ask: &Ask<'_>, deadline: Instant) -> Option<Result<Answer, Failure>> {
        let until = deadline.min(self.sent + self.pipe.limit);
        let got = timeout_at(until.into(), &mut self.answer).await.ok()?;
        Some(self.read(received(got), ask))
    }

    /// Reads what has come. An invalid answer closes the connection.
    fn read(&self, got: Result<Vec<u8>, Failure>, ask: &Ask<'_>) -> Result<Answer, Failure> {
        let outcome = got.and_then(|frame| {
            let answer = read_answer(&frame, ask, self.sequence)?;
            match self.pipe.check.as_ref().and_then(|check| check.fault_of(&answer, ask)) {
                Some(fault) => Err(Failure::new(End::Broken, fault)),
                None => Ok(answer),
            }
        });
        if matches!(&outcome, Err(failure) if failure.end == End::Broken && !failure.spoke()) {
            self.pipe.close(End::ConnClosed, "another answer was invalid", false);
        }
        outcome
    }
}

/// Requests of one call whose answers are late: the call takes whichever answer comes first.
#[derive(Default)]
pub(crate) struct Late(Vec<Asked>);

impl Late {
    /// Returns the answer to the request; `true`: to an earlier, late one. If none comes within the time of an attempt,
    /// but others do on the connection, the request is late. A silent connection is closed.
    pub(crate) async fn answer(
        &mut self,
        mut asked: Asked,
        ask: &Ask<'_>,
        deadline: Instant,
    ) -> Result<(Answer, bool), Failure> {
        let limit = asked.pipe.limit;
        let mut until = deadline.min(asked.sent + limit);
        let mut graced = false;
        loop {
            let waits = !self.0.is_empty();
            tokio::select! {
                biased;
                got = &mut asked.answer => return asked.read(received(got), ask).map(|answer| (answer, false)),
                late = self.any(ask), if waits => match late {
                    Some(answer) => return Ok((answer, true)),
                    None => continue,
                },
                () = sleep_until(until.into()) => {}
            }
            yield_now().await; // an answer that arrived while the process was busy is read first
            if let Ok(got) = asked.answer.try_recv() {
                return asked.read(got, ask).map(|answer| (answer, false));
            }
            let now = Instant::now();
            if !graced && now > until + limit / 4 {
                (graced, until) = (true, now + limit / 8); // this process was late itself
                continue;
            }
            if until < deadline {
                if asked.pipe.is_silent_since(asked.sent) {
                    asked.pipe.close(End::Timeout, "", false);
                } else {
                    asked.pipe.gave_up(asked.sent);
                    self.0.push(asked);
                }
            } else {
                asked.pipe.gave_up(asked.sent);
            }
            return Err(Failure::new(End::Timeout, ""));
        }
    }

    /// Waits for a late answer until that time. Returns None if there is none.
    pub(crate) async fn any_until(&mut self, ask: &Ask<'_>, until: Instant) -> Option<Answer> {
        timeout_at(until.into(), self.any(ask)).await.ok().flatten()
    }

    async fn any(&mut self, ask: &Ask<'_>) -> Option<Answer> {
        poll_fn(|cx| {
            let mut at = 0;
            while at < self.0.len() {
                match Pin::new(&mut self.0[at].answer).poll(cx) {
                    Poll::Pending => at += 1,
                    Poll::Ready(got) => {
                        let asked = self.0.swap_remove(at);
                        if let Ok(answer) = asked.read(received(got), ask) {
                            return Poll::Ready(Some(answer));
                        }
                    }
                }
            }
            if self.0.is_empty() {
                Poll::Ready(None)
            } else {
                Poll::Pending
            }
        })
        .await
    }
}

fn received(got: Result<Result<Vec<u8>, Failure>, oneshot::error::RecvError>) -> Result<Vec<u8>, Failure> {
    got.unwrap_or_else(|_| Err(Failure::new(End::ConnClosed, "the connection has ended")))
}
