//! What a client has done.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{End, Error, ErrorKind, Failure};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a client and its clones have done since the client was created. Each number only grows.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The counters while they change.
        #[derive(Debug, Default)]
        pub(crate) struct Counts {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Counts {
            pub(crate) fn read(&self) -> Counters {
                Counters { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Calls to servers; ids from memory are not among them.
    calls,
    /// Calls that failed without a refusal.
    failed,
    /// Calls that a server refused.
    refused,
    /// Attempts at servers.
    attempts,
    /// Requests that used the retry budget.
    retries,
    /// Retries that the exhausted retry budget prevented.
    retries_denied,
    /// Attempts without an answer in time.
    timeouts,
    /// Invalid answers.
    broken,
    /// Connections that were begun.
    connects,
    /// Connections that failed before the server's status arrived.
    connects_failed,
    /// Server lists that were accepted.
    lists,
    /// Ids that threads took from memory, in pieces.
    local_taken,
    /// How often no id was in memory although the tag is prefetched.
    local_missed,
}

impl Counts {
    pub(crate) fn ended<T>(&self, outcome: &Result<T, Error>) {
        match outcome.as_ref().err().map(Error::kind) {
            None => {}
            Some(ErrorKind::Refused) => add(&self.refused, 1),
            Some(_) => add(&self.failed, 1),
        }
    }

    pub(crate) fn attempted<T>(&self, outcome: &Result<T, Failure>) {
        add(&self.attempts, 1);
        match outcome.as_ref().err().map(|failure| failure.end) {
            Some(End::Timeout | End::ConnectTimeout) => add(&self.timeouts, 1),
            Some(End::Broken | End::WrongService) => add(&self.broken, 1),
            _ => {}
        }
    }

    pub(crate) fn dialled(&self, reached: bool) {
        add(&self.connects, 1);
        add(&self.connects_failed, u64::from(!reached));
    }
}

pub(crate) fn add(to: &AtomicU64, number: u64) {
    to.fetch_add(number, Ordering::Relaxed);
}
