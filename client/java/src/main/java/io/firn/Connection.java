package io.firn;

import io.firn.wire.Refusal;
import io.firn.wire.ServerStatus;
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
import java.util.List;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TBase;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.apache.thrift.transport.TMemoryBuffer;
import org.apache.thrift.transport.TMemoryInputTransport;

/** One connection to one server, used by one call at a time. Any failure ends it, so a late answer
 * cannot be taken for the answer to another call. */
final class Connection {
  private static final int FRAME_MAX = 16 << 20;

  boolean used; // an earlier call used it: if it is closed, the call may try again
  volatile long idleSince;
  ServerStatus status; // the server's status at the start of the connection
  IdCheck check;
  private final Socket plain;
  private Socket socket;
  private InputStream in; // reads head and body of a short answer at once
  private int sequence;
  private int got; // received bytes of the current answer

  /** Tries each address in turn, with its share of the time. */
  Connection(List<InetAddress> addresses, String host, int port, Tls tls, long until)
      throws Failure {
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
      in = new BufferedInputStream(socket.getInputStream());
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
      plain.setSoTimeout(1);
      in.read();
      return true;
    } catch (SocketTimeoutException alive) {
      return false;
    } catch (IOException gone) {
      return true;
    }
  }

  /** Closes at once, from any thread, without a TLS close_notify, which would wait. */
  void close() {
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

  <T> T call(Ask<T> ask, long until) throws Failure {
    sequence++;
    got = 0;
    byte[] answer;
    try {
      socket.getOutputStream().write(request(ask));
      answer = receive(until);
    } catch (SocketTimeoutException late) {
      throw new Failure(Attempt.End.TIMEOUT, "");
    } catch (SSLException fault) {
      throw new Failure(Attempt.End.WRONG_SERVICE, "TLS: " + fault.getMessage());
    } catch (IOException fault) {
      throw new Failure(Attempt.End.CLOSED, fault.getMessage(), null, 0, false, used && got == 0);
    }
    used = true;
    try {
      return read(answer, ask);
    } catch (TException | RuntimeException fault) {
      throw new Failure(Attempt.End.BROKEN, "its answer cannot be read: " + fault.getMessage());
    }
  }

  private byte[] request(Ask<?> ask) throws IOException {
    try {
      TMemoryBuffer buffer = new TMemoryBuffer(256);
      buffer.write(new byte[4], 0, 4);
      TBinaryProtocol protocol = new TBinaryProtocol(buffer);
      protocol.writeMessageBegin(new TMessage(ask.method, TMessageType.CALL, sequence));
      ask.arguments.write(protocol);
      byte[] frame = java.util.Arrays.copyOf(buffer.getArray(), buffer.length());
      ByteBuffer.wrap(frame).putInt(frame.length - 4);
      return frame;
    } catch (TException fault) {
      throw new IOException(fault);
    }
  }

  private byte[] receive(long until) throws IOException, Failure {
    int size = ByteBuffer.wrap(receive(4, until)).getInt();
    if (size >>> 16 == 0x1503) {
      throw new Failure(Attempt.End.BROKEN, "it speaks TLS");
    }
    if (size <= 0 || size > FRAME_MAX) {
      throw new Failure(Attempt.End.BROKEN, "it does not speak Thrift");
    }
    return receive(size, until);
  }

  private byte[] receive(int size, long until) throws IOException {
    byte[] data = new byte[size];
    for (int at = 0; at < size;) {
      if (System.nanoTime() >= until) {
        throw new SocketTimeoutException();
      }
      plain.setSoTimeout(leftMs(until));
      int more = in.read(data, at, size - at);
      if (more < 0) {
        throw new EOFException("before the whole answer");
      }
      at += more;
      got += more;
    }
    return data;
  }

  private <T> T read(byte[] frame, Ask<T> ask) throws TException, Failure {
    TBinaryProtocol protocol = new TBinaryProtocol(new TMemoryInputTransport(frame), frame.length,
        frame.length, true, true);
    TMessage head = protocol.readMessageBegin();
    if (head.type == TMessageType.EXCEPTION) {
      TApplicationException fault = TApplicationException.readFrom(protocol);
      String detail = "it does not know the method: " + fault.getMessage();
      throw fault.getType() == TApplicationException.UNKNOWN_METHOD
          ? Failure.lackingMethod(detail) : new Failure(Attempt.End.BROKEN, detail);
    }
    if (!head.name.equals(ask.method) || head.type != TMessageType.REPLY
        || head.seqid != sequence) {
      throw new Failure(Attempt.End.BROKEN, "it answers something that was not asked");
    }
    TBase<?, ?> result = ask.newResult();
    result.read(protocol);
    Refusal refusal = Ask.refusalIn(result);
    if (refusal != null) {
      throw new Failure(Attempt.End.REFUSED, refusal.message, Reason.of(refusal.reason),
          Math.max(0, refusal.retry_after_ms), refusal.another_server_may_help, false);
    }
    T answer = ask.answerIn(result);
    if (answer == null) {
      throw new Failure(Attempt.End.BROKEN, "its answer holds neither ids nor a refusal");
    }
    return answer;
  }
}
