//! Reports to the recorder of the crate `metrics`, if the feature is enabled.

use crate::error::{End, ErrorKind};
use crate::options::EventKind;

/// Counts an event about servers.
pub(crate) fn event(_kind: EventKind) {
    #[cfg(feature = "metrics")]
    metrics::counter!("firn_client_events_total", "kind" => _kind.name()).increment(1);
}

/// Counts a failed attempt at a server.
pub(crate) fn attempt_failed(_end: End) {
    #[cfg(feature = "metrics")]
    metrics::counter!("firn_client_attempts_failed_total", "end" => _end.name()).increment(1);
}

/// Counts ids that were handed to a thread from memory.
pub(crate) fn prefetched(_ids: i32) {
    #[cfg(feature = "metrics")]
    metrics::counter!("firn_client_prefetched_ids_total").increment(u64::try_from(_ids).unwrap_or(0));
}

/// Counts a call, and measures its time, when it ends. A call whose future is dropped counts as `cancelled`.
pub(crate) struct CallTimer {
    #[cfg(feature = "metrics")]
    began: std::time::Instant,
    #[cfg(feature = "metrics")]
    outcome: &'static str,
}

impl CallTimer {
    pub(crate) fn start() -> CallTimer {
        CallTimer {
            #[cfg(feature = "metrics")]
            began: std::time::Instant::now(),
            #[cfg(feature = "metrics")]
            outcome: "cancelled",
        }
    }

    pub(crate) fn ended(&mut self, _failure: Option<ErrorKind>) {
        #[cfg(feature = "metrics")]
        {
            self.outcome = _failure.map_or("ok", ErrorKind::name);
        }
    }
}

#[cfg(feature = "metrics")]
impl Drop for CallTimer {
    fn drop(&mut self) {
        metrics::counter!("firn_client_calls_total", "outcome" => self.outcome).increment(1);
        metrics::histogram!("firn_client_call_seconds").record(self.began.elapsed().as_secs_f64());
    }
}
