package io.firn;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;

/** One connection to one server, used by one call at a time, or by a Pipeline. Any failure ends it, so a late answer
 * cannot be taken for the answer to another call. */
final class Connection implements Watchdog.Watched {
  private static final int FIRST_BYTES = 1 << 16;

  /** Reads many short answers at once. */
  private static final class Input extends BufferedInputStream {
    Input(InputStream from) {
      super(from);
    }

    boolean hasFrame() {
      int left = count - pos - 4;
      return left >= 0 && left >= ByteBuffer.wrap(buf, pos, 4).getInt();
    }
  }

  boolean used; // an earlier call used it: if it is closed, the call may try again
  volatile long idleSince;
  Wire.Status status; // the server's status at the start of the connection
  IdCheck check;
  private final Watchdog watchdog;
  private final AtomicLong limit = new AtomicLong(Watchdog.NEVER); // when the wait for an answer ends
  private final Socket plain;
  private Socket socket;
  private Input in;
  private final byte[] head = new byte[4];
  private int sequence;
  private int got; // received bytes of the current answer

  /** Tries each address in turn, with its share of the time. */
  Connection(Watchdog watchdog, List<InetAddress> addresses, String host, int port, Tls tls, long until)
      throws Failure {
    this.watchdog = watchdog;
    IOException fault = new IOException("it has no address");
    Socket made = null;
    for (int tried = 0; tried < addresses.size() && made == null; tried++) {
      Socket trying = new Socket();
      try {
        int left = Math.max(1, leftMs(until) / (addresses.size() - tried));
        trying.connect(new InetSocketAddress(addresses.get(tried), port), left);
        trying.setTcpNoDelay(true);
        made = trying;
      } catch (IOException failure) {
        fault = failure;
        closeQuietly(trying);
      }
    }
    if (made == null) {
      if (isOwnLack(fault)) {
        throw new Failure(Attempt.End.NO_ROOM, "this process has no file descriptor or memory left");
      }
      boolean late = fault instanceof SocketTimeoutException;
      throw new Failure(late ? Attempt.End.CONNECT_TIMEOUT : Attempt.End.UNREACHABLE,
          late ? "" : fault.getMessage());
    }
    plain = made;
    socket = made;
    if (tls != null) {
      secure(tls, host, port, until);
    }
    try {
      in = new Input(socket.getInputStream());
    } catch (IOException gone) {
      close();
      throw new Failure(Attempt.End.UNREACHABLE, gone.getMessage());
    }
  }

  /** Whether this process, and not the server, is at fault. */
  private static boolean isOwnLack(IOException fault) {
    String text = String.valueOf(fault.getMessage());
    return text.contains("Too many open files") || text.contains("No buffer space")
        || text.contains("Cannot allocate memory");
  }

  private void secure(Tls tls, String host, int port, long until) throws Failure {
    try {
      plain.setSoTimeout(leftMs(until));
      SSLSocket secured = tls.over(plain, host, port);
      secured.startHandshake();
      plain.setSoTimeout(0);
      socket = secured;
    } catch (IOException fault) {
      close();
      if (fault instanceof SocketTimeoutException) {
        throw new Failure(Attempt.End.CONNECT_TIMEOUT, "in the TLS handshake");
      }
      boolean answered = fault instanceof SSLException && !endedByPeer(fault);
      throw new Failure(answered ? Attempt.End.WRONG_SERVICE : Attempt.End.UNREACHABLE,
          "TLS: " + fault.getMessage());
    }
  }

  /** Whether the connection just ended, which says nothing about certificates. */
  private static boolean endedByPeer(Throwable fault) {
    for (Throwable cause = fault.getCause(); cause != null; cause = cause.getCause()) {
      if (cause instanceof EOFException || cause instanceof SocketException) {
        return true;
      }
    }
    return false;
  }

  /** Whether the server has closed the connection, or sent bytes without a request. Only for an idle
   * connection; takes 1 ms. */
  boolean isOver() {
    try {
      return !isSilent();
    } catch (IOException gone) {
      return true;
    }
  }

  private boolean isSilent() throws IOException {
    plain.setSoTimeout(1);
    try {
      in.read();
      return false;
    } catch (SocketTimeoutException silent) {
      plain.setSoTimeout(0); // the watchdog ends later reads
      return true;
    }
  }

  /** Closes at once, from any thread, without a TLS close_notify, which would wait. */
  @Override
  public void close() {
    closeQuietly(plain);
  }

  private static void closeQuietly(Socket socket) {
    try {
      socket.close();
    } catch (IOException gone) {
      // the connection is closed anyway
    }
  }

  /** Milliseconds until that time, at least 1. */
  private static int leftMs(long until) {
    return (int) Math.max(1, Math.min(Integer.MAX_VALUE, (until - System.nanoTime()) / 1_000_000));
  }

  @Override
  public long waitsUntil() {
    return limit.get();
  }

  @Override
  public void expire(long until) {
    if (limit.compareAndSet(until, Watchdog.EXPIRED)) {
      close();
    }
  }

  <T> T call(Ask<T> ask, long until) throws Failure {
    int sequence = nextSequence();
    got = 0;
    byte[] answer;
    limit.set(until);
    watchdog.begins(until);
    try {
      write(Wire.request(ask, sequence));
      answer = receive();
    } catch (IOException fault) {
      throw failure(fault);
    } finally {
      limit.compareAndSet(until, Watchdog.NEVER); // if it has expired meanwhile, the next call finds the connection closed
    }
    used = true;
    return Wire.answer(answer, ask, sequence);
  }

  /** Returns the number of the next request. */
  int nextSequence() {
    return ++sequence;
  }

  void write(byte[] requests) throws IOException {
    socket.getOutputStream().write(requests);
  }

  /** Returns the next answer, which may belong to any request. */
  byte[] nextFrame() throws IOException, Failure {
    got = 0;
    return receive();
  }

  /** Whether the next answer was read whole. */
  boolean hasFrame() {
    return in.hasFrame();
  }

  /** Whether bytes of the server wait for the thread that reads. */
  boolean hasUnread() {
    try {
      return plain.getInputStream().available() > 0;
    } catch (IOException closed) {
      return false;
    }
  }

  /** Returns why reading or writing failed. */
  Failure failure(IOException fault) {
    if (limit.get() == Watchdog.EXPIRED) {
      return new Failure(Attempt.End.TIMEOUT, "");
    }
    if (fault instanceof SSLException) {
      return new Failure(Attempt.End.WRONG_SERVICE, "TLS: " + fault.getMessage());
    }
    return new Failure(Attempt.End.CLOSED, fault.getMessage(), null, 0, false, used && got == 0);
  }

  /** Returns the next frame. Memory for it grows with the bytes that arrive. */
  private byte[] receive() throws IOException, Failure {
    receive(head, 0);
    int size = Wire.frameSize(ByteBuffer.wrap(head).getInt());
    byte[] frame = new byte[Math.min(size, FIRST_BYTES)];
    receive(frame, 0);
    while (frame.length < size) {
      int have = frame.length;
      frame = Arrays.copyOf(frame, Math.min(size, 2 * have));
      receive(frame, have);
    }
    return frame;
  }

  /** Fills the array from `at` on. */
  private void receive(byte[] data, int at) throws IOException {
    while (at < data.length) {
      int more = in.read(data, at, data.length - at);
      if (more < 0) {
        throw new EOFException("before the whole answer");
      }
      at += more;
      got += more;
    }
  }
}
