//! The sockets that closing a client shuts down.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::connection::Connection;
use crate::error::{End, Failure};

/// The sockets of connections on which blocking calls read. They end when the client is closed.
#[derive(Default)]
pub(crate) struct Sockets(Mutex<Vec<Weak<TcpStream>>>);

impl Sockets {
    /// Makes a new connection block. Fails if the client was closed meanwhile.
    pub(crate) fn block(
        &self,
        connection: Connection,
        limit: Duration,
        is_closed: impl Fn() -> bool,
    ) -> Result<Connection, Failure> {
        let (connection, socket) =
            connection.into_blocking(limit).map_err(|fault| Failure::new(End::Unreachable, fault.to_string()))?;
        if let Some(socket) = socket {
            let mut sockets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            sockets.retain(|one| one.strong_count() > 0);
            sockets.push(Arc::downgrade(&socket));
            if is_closed() {
                return Err(Failure::new(End::ConnClosed, "the client was closed"));
            }
        }
        Ok(connection)
    }

    /// Ends all reads.
    pub(crate) fn end(&self) {
        for socket in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}
