//! What a caller learns of a failed call.

use std::fmt;
use std::time::Duration;

/// Why a server refused a call. The numbers are those of the wire contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The request is invalid; every server would refuse it.
    BadRequest = 1,
    /// The cluster has no such tag.
    UnknownTag = 2,
    /// The server holds no machine id now.
    NotReady = 3,
    /// The server's clock is behind what it has issued, or cannot be trusted.
    Clock = 4,
    /// The server has more requests than it can serve now.
    Overloaded = 5,
    /// There are no more ids of this kind.
    Exhausted = 6,
    /// The server is shutting down.
    Draining = 7,
    /// A rule of the tag, such as its rate limit, forbids the call.
    Rejected = 8,
    /// The store of the tag's ranges does not respond.
    StoreDown = 9,
    /// The server has a defect.
    Internal = 10,
}

impl Reason {
    pub(crate) fn from_wire(number: i32) -> Reason {
        use Reason::*;
        match number {
            1 => BadRequest,
            2 => UnknownTag,
            3 => NotReady,
            4 => Clock,
            5 => Overloaded,
            6 => Exhausted,
            7 => Draining,
            8 => Rejected,
            9 => StoreDown,
            _ => Internal,
        }
    }

    /// Returns the reason's name in the wire contract, such as `UNKNOWN_TAG`.
    pub fn name(self) -> &'static str {
        use Reason::*;
        match self {
            BadRequest => "BAD_REQUEST",
            UnknownTag => "UNKNOWN_TAG",
            NotReady => "NOT_READY",
            Clock => "CLOCK",
            Overloaded => "OVERLOADED",
            Exhausted => "EXHAUSTED",
            Draining => "DRAINING",
            Rejected => "REJECTED",
            StoreDown => "STORE_DOWN",
            Internal => "INTERNAL",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The outcome of one failed attempt at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum End {
    /// The connection was refused or reset while it was established, or there is no route.
    Unreachable,
    /// The connection was not established in time.
    ConnectTimeout,
    /// The connection ended before the complete answer.
    ConnClosed,
    /// No complete answer arrived in time.
    Timeout,
    /// The received bytes are not an answer to the request.
    Broken,
    /// The server is not an IdService of this cluster.
    WrongService,
    /// The server refused with a [`Reason`].
    Refused,
    /// All of this client's connections were in use, or the process had no descriptor left.
    NoRoom,
}

impl End {
    /// Returns the outcome in words, such as `connect timeout`.
    pub fn name(self) -> &'static str {
        match self {
            End::Unreachable => "unreachable",
            End::ConnectTimeout => "connect timeout",
            End::ConnClosed => "closed",
            End::Timeout => "timeout",
            End::Broken => "broken",
            End::WrongService => "wrong service",
            End::Refused => "refused",
            End::NoRoom => "no room",
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failed attempt of a call at one server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// The server's address, `host:port`.
    pub server: String,
    /// What happened.
    pub end: End,
    /// The reason, if the server refused.
    pub reason: Option<Reason>,
    /// How long the attempt took.
    pub took: Duration,
    /// The details in a sentence; may be empty.
    pub detail: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.server, self.end)?;
        if let Some(reason) = self.reason {
            write!(f, " ({reason})")?;
        }
        write!(f, " after {:.1} ms", self.took.as_secs_f64() * 1000.0)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A server refused for a reason that every server would repeat, such as an unknown tag.
    Refused,
    /// No server could answer now.
    Unavailable,
    /// A [`LocalGenerator`](crate::LocalGenerator) has no lease of a machine id.
    NoLease,
    /// The client was closed.
    Closed,
    /// The options are invalid.
    Invalid,
}

impl ErrorKind {
    /// Returns the kind in one word, such as `unavailable`.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Refused => "refused",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::NoLease => "no lease",
            ErrorKind::Closed => "closed",
            ErrorKind::Invalid => "invalid",
        }
    }
}

/// A call that failed. Its text lists every attempt (of many, the last 32): the server, what happened, and after
/// how long.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    reason: Option<Reason>,
    retry_after: Option<Duration>,
    attempts: Vec<Attempt>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            reason: None,
            retry_after: None,
            attempts: Vec::new(),
        }))
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Refused, message).with_refusal(Some(Reason::BadRequest), None)
    }

    pub(crate) fn closed() -> Error {
        Error::new(ErrorKind::Closed, "the client was closed")
    }

    pub(crate) fn with_refusal(mut self, reason: Option<Reason>, retry_after: Option<Duration>) -> Error {
        self.0.reason = reason;
        self.0.retry_after = retry_after;
        self
    }

    pub(crate) fn with_attempts(mut self, attempts: Vec<Attempt>) -> Error {
        self.0.attempts = attempts;
        self
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the cause in a sentence, without the attempts.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the reason of the last refusal, if the last attempt ended with one.
    pub fn reason(&self) -> Option<Reason> {
        self.0.reason
    }

    /// Returns how long to wait before the next call, if the server that refused advised a time.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns the failed attempts in order; of many, the last 32.
    pub fn attempts(&self) -> &[Attempt] {
        &self.0.attempts
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        self.0.attempts.iter().try_for_each(|attempt| write!(f, "; {attempt}"))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({}: {self})", self.0.kind.name())
    }
}

impl std::error::Error for Error {}

/// The outcome of a failed attempt, with what only the client needs to know of it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) end: End,
    pub(crate) detail: String,
    pub(crate) reason: Option<Reason>,
    pub(crate) retry_after: Duration,
    pub(crate) another_may_help: bool,
    /// Nothing was tried, because a connection has just failed.
    pub(crate) paused: bool,
    /// An older server, healthy for the methods that it has.
    pub(crate) lacks_method: bool,
    /// An idle connection ended before the first byte of the answer.
    pub(crate) stale: bool,
    /// Of the method of a lease: why the server does not grant, extend or end it.
    pub(crate) lease: Option<LeaseFault>,
}

/// Why a server does not grant, extend or end a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseFault {
    /// The server has no such lease.
    UnknownLease,
    /// The server has accepted a later request.
    Outdated,
    /// Another process may have the ids.
    Revoked,
    /// The lease belongs to the server with this address.
    AnotherServers(String),
    /// The server grants none, or the reason is newer than this version.
    NoLeases,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.end.name())?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl Failure {
    /// Creates every failure. Replaces control characters of a server's text, so that none reaches an error, an
    /// event or a terminal.
    pub(crate) fn new(end: End, detail: impl AsRef<str>) -> Failure {
        Failure {
            end,
            detail: printable(detail.as_ref()),
            reason: None,
            retry_after: Duration::ZERO,
            another_may_help: false,
            paused: false,
            lacks_method: false,
            stale: false,
            lease: None,
        }
    }

    pub(crate) fn refused(reason: Reason, detail: &str) -> Failure {
        Failure { reason: Some(reason), ..Failure::new(End::Refused, detail) }
    }

    /// Marks the end of an idle connection. A server that is silent has not closed it.
    pub(crate) fn or_stale(self, idle: bool) -> Failure {
        Failure { stale: idle && self.end != End::Timeout, ..self }
    }

    /// Returns whether the server sent a valid answer, so that the connection can be used again.
    pub(crate) fn spoke(&self) -> bool {
        self.end == End::Refused || self.lacks_method
    }

    /// Returns whether no request was sent.
    pub(crate) fn unsent(&self) -> bool {
        matches!(self.end, End::Unreachable | End::ConnectTimeout | End::NoRoom)
    }
}

/// Replaces control characters.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { '?' } else { one }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_lists_message_and_attempts() {
        let attempt = Attempt {
            server: "a:1".into(),
            end: End::Refused,
            reason: Some(Reason::NotReady),
            took: Duration::from_micros(1250),
            detail: "no machine id".into(),
        };
        let error =
            Error::new(ErrorKind::Unavailable, "no other server is left to ask").with_attempts(vec![attempt]);
        assert_eq!(
            error.to_string(),
            "no other server is left to ask; a:1 refused (NOT_READY) after 1.2 ms: no machine id"
        );
    }

    #[test]
    fn a_failure_without_a_detail_has_no_empty_part() {
        assert_eq!(Failure::new(End::Timeout, "").to_string(), "timeout");
        assert_eq!(Failure::new(End::Broken, "too long").to_string(), "broken: too long");
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(Failure::new(End::Broken, "\u{1b}[2J\u{9b}x\r\n").detail, "?[2J?x??");
    }

    #[test]
    fn reasons_have_the_numbers_of_the_contract() {
        for number in 1..=10 {
            assert_eq!(Reason::from_wire(number) as i32, number);
        }
        assert_eq!(Reason::from_wire(77), Reason::Internal);
    }
}
