//! The background work of a client: probes, lists of servers, and idle connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::engine::{Engine, How};
use crate::error::{End, Failure};
use crate::pipe::Late;
use crate::random;
use crate::server::{Mode, Server};
use crate::wire::{Answer, Ask};

const ASK_AGAIN_MIN: Duration = Duration::from_millis(50);
const ASK_AGAIN_MAX: Duration = Duration::from_secs(300);
const NO_LIST_YET: Duration = Duration::from_secs(1);
const NO_SUCH_METHOD: Duration = Duration::from_secs(60);
const TROUBLE_PAUSE: Duration = Duration::from_secs(1);
#[cfg(feature = "blocking")]
const IDLE_CHECKED: Duration = Duration::from_secs(1);
const ROUND_MOST: Duration = Duration::from_secs(1);

/// Runs until the client is closed.
pub(crate) async fn run(engine: Arc<Engine>) {
    let mut list_due = engine.fleet.lists_change.then(Instant::now);
    let mut list_asked = Instant::now();
    loop {
        let (due, next_probe) = engine.fleet.due_probes();
        for server in due {
            engine.spawn(probe(Arc::clone(&engine), server));
        }
        if list_due.is_some_and(|due| due <= Instant::now()) {
            list_asked = Instant::now();
            let pause = ask_list(&engine).await;
            list_due = Some(Instant::now() + pause);
        }
        #[cfg(feature = "blocking")]
        engine.fleet.drop_closed(IDLE_CHECKED);
        let now = Instant::now();
        let next = next_probe.into_iter().chain(list_due).map(|at| at.saturating_duration_since(now)).min();
        let pause = next.unwrap_or(ROUND_MOST).min(ROUND_MOST);
        if timeout(pause, engine.fleet.trouble.notified()).await.is_ok() {
            // A newer list may help. Other clients see the same failure, so the time is random.
            let soon = Instant::now().max(list_asked + TROUBLE_PAUSE) + random::up_to(TROUBLE_PAUSE);
            list_due = list_due.map(|due| due.min(soon));
        }
    }
}

/// Asks a server for its status on a connection of its own.
async fn probe(engine: Arc<Engine>, server: Arc<Server>) {
    let until = Instant::now() + engine.options.attempt_limit;
    let outcome = engine.connect(&server, until).await.map(|(_, status)| status);
    engine.fleet.probed(&server, outcome);
}

/// Asks any server for its list, and returns when to ask again.
async fn ask_list(engine: &Arc<Engine>) -> Duration {
    let Some(picked) = engine.fleet.pick("", &[], Mode::Async) else { return NO_LIST_YET };
    ask_list_of(engine, &picked.server).await.unwrap_or_else(|failure| {
        engine.fleet.failed(&picked.server, "", &failure);
        NO_LIST_YET
    })
}

async fn ask_list_of(engine: &Arc<Engine>, server: &Server) -> Result<Duration, Failure> {
    let until = Instant::now() + engine.options.attempt_limit;
    let known = engine.fleet.lock().version;
    let how = How { mode: Mode::Async, fresh: false };
    match engine.attempt(server, &Ask::Servers { known }, how, until, &[], &mut Late::default()).await {
        Ok((Answer::Servers(list), _)) => {
            engine.fleet.apply(&list, server);
            let again = Duration::from_millis(u64::try_from(list.ask_again_ms).unwrap_or(0));
            Ok(again.clamp(ASK_AGAIN_MIN, ASK_AGAIN_MAX))
        }
        Ok(_) => Ok(NO_LIST_YET),
        Err(failure) if failure.lacks_method => Ok(NO_SUCH_METHOD), // an older server: the addresses stay
        Err(failure) if failure.end == End::Refused && !failure.retry_after.is_zero() => Ok(failure.retry_after),
        Err(failure) if failure.end == End::Refused => Ok(NO_LIST_YET),
        Err(failure) => Err(failure),
    }
}
