//! A connection to one server, used by one call at a time, or by a `Pipe`.

use std::io;
use std::pin::Pin;
#[cfg(feature = "blocking")]
use std::sync::Arc;
use std::task::{Context, Poll};
#[cfg(feature = "blocking")]
use std::time::Duration;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout_at;

use crate::error::{End, Failure};
use crate::layout::IdCheck;
use crate::wire::{frame_size, read_answer, Answer, Ask, Status};

/// Memory that an idle connection keeps, and the most that is reserved before bytes have arrived.
pub(crate) const BUFFER_BYTES: usize = 16 << 10;

/// A connection over TCP or TLS, or to a Unix socket. Only TCP connections are made to block for blocking calls.
pub(crate) enum Stream {
    Plain(TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
    /// Reads and writes block the thread, at most until the timeouts of the socket. Only for blocking calls, which
    /// then need no other thread to wake them.
    #[cfg(feature = "blocking")]
    Blocking(Arc<std::net::TcpStream>),
}

#[cfg(any(feature = "blocking", test))]
impl Stream {
    /// Reads without waiting.
    fn try_read(&self) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.try_read(&mut [0]),
            #[cfg(unix)]
            Stream::Unix(stream) => stream.try_read(&mut [0]),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.get_ref().0.try_read(&mut [0]),
            #[cfg(feature = "blocking")]
            Stream::Blocking(stream) => {
                stream.set_nonblocking(true)?;
                let unread = stream.peek(&mut [0]);
                stream.set_nonblocking(false)?;
                unread
            }
        }
    }
}

/// Repeats a blocking read or write that a signal interrupted.
#[cfg(feature = "blocking")]
fn uninterrupted<T>(mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match act() {
            Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            #[cfg(unix)]
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
            #[cfg(feature = "blocking")]
            Stream::Blocking(stream) => {
                let read = uninterrupted(|| io::Read::read(&mut &**stream, buf.initialize_unfilled()));
                Poll::Ready(read.map(|count| buf.advance(count)))
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            #[cfg(unix)]
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, buf),
            #[cfg(feature = "blocking")]
            Stream::Blocking(stream) => Poll::Ready(uninterrupted(|| io::Write::write(&mut &**stream, buf))),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            #[cfg(unix)]
            Stream::Unix(stream) => Pin::new(stream).poll_flush(cx),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
            #[cfg(feature = "blocking")]
            Stream::Blocking(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            #[cfg(unix)]
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
            #[cfg(feature = "blocking")]
            Stream::Blocking(_) => Poll::Ready(Ok(())),
        }
    }
}

/// A connection to one server. Any failure, and a call that ends early, drops it, so that a late answer cannot be
/// taken for the answer to another call.
pub(crate) struct Connection {
    stream: Stream,
    input: Vec<u8>, // received bytes that no answer has used
    output: Vec<u8>,
    sequence: i32,
    /// An earlier call used it: if it is closed, the call may try again.
    pub(crate) used: bool,
    #[cfg(feature = "blocking")]
    pub(crate) idle_since: Instant,
    check: Option<IdCheck>,
}

impl Connection {
    pub(crate) fn new(stream: Stream) -> Connection {
        Connection {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            sequence: 0,
            used: false,
            #[cfg(feature = "blocking")]
            idle_since: Instant::now(),
            check: None,
        }
    }

    /// Returns the connection, the number of its last request, and the check of ids.
    pub(crate) fn into_parts(self) -> (Stream, i32, Option<IdCheck>) {
        (self.stream, self.sequence, self.check)
    }

    /// Begins to check ids by the server's status.
    pub(crate) fn check_by(&mut self, status: &Status) {
        self.check = Some(IdCheck::new(status));
    }

    /// Makes reads and writes of a TCP connection block, and also returns its socket, with which another thread can end
    /// them. Leaves a connection over TLS or a Unix socket unchanged.
    #[cfg(feature = "blocking")]
    pub(crate) fn into_blocking(
        self,
        limit: Duration,
    ) -> io::Result<(Connection, Option<Arc<std::net::TcpStream>>)> {
        match self.stream {
            Stream::Plain(stream) => {
                let stream = Arc::new(stream.into_std()?);
                stream.set_nonblocking(false)?;
                stream.set_write_timeout(Some(limit))?;
                let socket = Arc::clone(&stream);
                Ok((Connection { stream: Stream::Blocking(stream), ..self }, Some(socket)))
            }
            _ => Ok((self, None)),
        }
    }

    /// Returns whether the server has closed the connection, or sent bytes without a request. Only for an idle
    /// connection.
    #[cfg(any(feature = "blocking", test))]
    pub(crate) fn is_over(&self) -> bool {
        let unread = self.stream.try_read();
        !self.input.is_empty() || !matches!(unread, Err(fault) if fault.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends the request and reads the answer.
    pub(crate) async fn call(&mut self, ask: &Ask<'_>, until: Instant) -> Result<Answer, Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        let size = match timeout_at(until.into(), self.exchange(ask, until)).await {
            Err(_) => return Err(Failure::new(End::Timeout, "")),
            Ok(size) => size?,
        };
        self.used = true;
        let answer = read_answer(&self.input[4..4 + size], ask, self.sequence);
        self.consume(4 + size);
        let answer = answer?;
        match self.check.as_ref().and_then(|check| check.fault_of(&answer, ask)) {
            Some(fault) => Err(Failure::new(End::Broken, fault)),
            None => Ok(answer),
        }
    }

    /// Sends the request and receives a whole frame; returns its size without the length before it.
    async fn exchange(&mut self, ask: &Ask<'_>, until: Instant) -> Result<usize, Failure> {
        self.output.clear();
        ask.write(self.sequence, &mut self.output);
        let sent = async {
            self.stream.write_all(&self.output).await?;
            self.stream.flush().await
        };
        sent.await.map_err(|fault| read_failure(&fault).or_stale(self.used))?;
        loop {
            let size = frame_size(&self.input)?;
            if let Some(size) = size.filter(|size| self.input.len() >= 4 + size) {
                return Ok(size);
            }
            let stale = self.used && self.input.is_empty();
            self.limit_reads(until)?;
            self.receive(4 + size.unwrap_or(0)).await.map_err(|failure| failure.or_stale(stale))?;
        }
    }

    /// Limits the time of a read that blocks.
    fn limit_reads(&self, _until: Instant) -> Result<(), Failure> {
        #[cfg(feature = "blocking")]
        if let Stream::Blocking(stream) = &self.stream {
            let left = _until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::new(End::Timeout, ""));
            }
            return stream.set_read_timeout(Some(left)).map_err(|fault| read_failure(&fault));
        }
        Ok(())
    }

    /// Reads once. Reserves memory for `wanted` bytes in all, but little beyond what has arrived.
    async fn receive(&mut self, wanted: usize) -> Result<(), Failure> {
        let lacking = wanted.saturating_sub(self.input.len());
        self.input.reserve(lacking.clamp(256, BUFFER_BYTES.max(self.input.len())));
        match self.stream.read_buf(&mut self.input).await {
            Ok(0) => Err(Failure::new(End::ConnClosed, "the server closed the connection")),
            Ok(_) => Ok(()),
            Err(fault) => Err(read_failure(&fault)),
        }
    }

    fn consume(&mut self, bytes: usize) {
        if self.input.len() == bytes && self.input.capacity() > BUFFER_BYTES {
            self.input = Vec::new();
        } else {
            self.input.drain(..bytes);
        }
    }
}

pub(crate) fn read_failure(fault: &io::Error) -> Failure {
    // A blocking read or write that reaches its limit fails with either, depending on the system.
    if matches!(fault.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) {
        return Failure::new(End::Timeout, "");
    }
    #[cfg(feature = "tls")]
    if let Some(text) = crate::tls::fault_of(fault) {
        return Failure::new(End::WrongService, text);
    }
    Failure::new(End::ConnClosed, fault.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration as Time;
    use tokio::net::TcpListener;

    /// Returns a connection to a server that answers one request after the other with these bytes.
    async fn connected(answers: Vec<Vec<u8>>) -> Connection {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        tokio::spawn(async move {
            let (mut peer, _) = listener.accept().await.unwrap();
            for answer in answers {
                let _ = peer.read(&mut [0; 1000]).await;
                peer.write_all(&answer).await.unwrap();
            }
            std::future::pending::<()>().await;
        });
        Connection::new(Stream::Plain(stream))
    }

    fn soon() -> Instant {
        Instant::now() + Time::from_millis(300)
    }

    fn reply(sequence: u8, id: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, 0, 29, 0x80, 1, 0, 2, 0, 0, 0, 5];
        frame.extend(b"getId");
        frame.extend([0, 0, 0, sequence, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, id, 0]);
        frame
    }

    const ASK: Ask<'_> = Ask::Id { tag: "order" };

    #[tokio::test]
    async fn a_length_reserves_little_memory_before_its_bytes_arrive() {
        let mut connection = connected(vec![vec![1, 0, 0, 0, 0x80]]).await;
        let failure = connection.call(&ASK, soon()).await.unwrap_err();
        assert_eq!(failure.end, End::Timeout);
        assert!(connection.input.capacity() <= 2 * BUFFER_BYTES, "{}", connection.input.capacity());
    }

    #[tokio::test]
    async fn an_answer_in_pieces_is_read_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut peer, _) = listener.accept().await.unwrap();
        let drip = async move {
            for byte in reply(1, 7) {
                peer.write_all(&[byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
            peer
        };
        let mut connection = Connection::new(Stream::Plain(stream));
        let until = Instant::now() + Time::from_secs(20);
        let (answer, _peer) = tokio::join!(connection.call(&ASK, until), drip);
        assert_eq!(answer.unwrap(), Answer::Id(7));
    }

    #[tokio::test]
    async fn a_repeated_answer_is_not_taken_for_the_next_one() {
        let mut connection = connected(vec![[reply(1, 7), reply(1, 7)].concat()]).await;
        assert_eq!(connection.call(&ASK, soon()).await.unwrap(), Answer::Id(7));
        assert!(connection.is_over());
        assert_eq!(connection.call(&ASK, soon()).await.unwrap_err().end, End::Broken);
    }
}
