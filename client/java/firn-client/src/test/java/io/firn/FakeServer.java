package io.firn;

import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** A server that answers the calls of a client with numbers from a counter. Its answers can be held back. */
final class FakeServer implements Closeable {
  private static final long BEGAN_MS = System.currentTimeMillis();
  private final ServerSocket listener = new ServerSocket(0, 100, InetAddress.getLoopbackAddress());
  private final AtomicLong next = new AtomicLong(1000);
  private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
  volatile CountDownLatch mayAnswer = new CountDownLatch(0);
  volatile boolean holds; // it has held back an answer
  volatile int leaseMs; // the interval of leases; 0: it grants none
  volatile int renewMs = 200; // when they are renewed
  private final Set<Socket> muted = ConcurrentHashMap.newKeySet();

  FakeServer() throws IOException {
    Thread accepting = new Thread(this::accept);
    accepting.setDaemon(true);
    accepting.start();
  }

  String address() {
    return "127.0.0.1:" + listener.getLocalPort();
  }

  long lastIssued() {
    return next.get() - 1;
  }

  /** Lets the client start no thread while `work` runs. */
  static void withoutThreads(FirnClient client, Runnable work) {
    ThreadPoolExecutor background = (ThreadPoolExecutor) client.engine.background;
    ThreadFactory before = background.getThreadFactory();
    background.setKeepAliveTime(1, TimeUnit.MILLISECONDS);
    while (background.getPoolSize() > background.getActiveCount()) { // idle threads end
      Thread.yield();
    }
    background.setThreadFactory(run -> {
      throw new OutOfMemoryError("unable to create native thread: as the test says");
    });
    try {
      work.run();
    } finally {
      background.setThreadFactory(before);
    }
  }

  /** Resets all connections. New ones are accepted. */
  void reset() throws IOException {
    for (Socket one : sockets) {
      sockets.remove(one);
      one.setSoLinger(true, 0);
      one.close();
    }
  }

  /** Answers no more requests on the connections that are open. */
  void mute() {
    muted.addAll(sockets);
  }

  @Override
  public void close() {
    try {
      mayAnswer.countDown();
      listener.close();
    } catch (IOException gone) {
      // it is closed
    }
  }

  private void accept() {
    while (true) {
      try {
        Socket one = listener.accept();
        sockets.add(one);
        Thread serving = new Thread(() -> serve(one));
        serving.setDaemon(true);
        serving.start();
      } catch (IOException end) {
        return;
      }
    }
  }

  private void serve(Socket socket) {
    try (socket) {
      socket.setTcpNoDelay(true);
      DataInputStream in = new DataInputStream(socket.getInputStream());
      while (true) {
        byte[] request = new byte[in.readInt()];
        in.readFully(request);
        answer(new Reader(request), socket);
      }
    } catch (IOException | Reader.Malformed | InterruptedException end) {
      // the client has closed the connection
    }
  }

  private static final class Arguments {
    String tag = "";
    long count = 1;
  }

  private void answer(Reader request, Socket socket) throws IOException, Reader.Malformed, InterruptedException {
    request.i32();
    String method = request.string();
    int sequence = request.i32();
    Arguments arguments = request.struct(new Arguments(), (from, into, id, type) -> {
      if (type == Reader.STRUCT) { // about a lease
        return false;
      }
      if (type == Reader.STRING) {
        into.tag = from.string();
      } else {
        into.count = type == Reader.I32 ? from.i32() : from.i64();
      }
      return true;
    });
    if (!method.equals("status")) {
      CountDownLatch until = mayAnswer;
      holds |= until.getCount() > 0;
      until.await();
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeInt(0x80010002);
    string(out, method);
    out.writeInt(sequence);
    result(out, method, (int) arguments.count);
    out.writeByte(Reader.STOP);
    ByteArrayOutputStream frame = new ByteArrayOutputStream();
    new DataOutputStream(frame).writeInt(bytes.size());
    bytes.writeTo(frame);
    if (!muted.contains(socket)) {
      socket.getOutputStream().write(frame.toByteArray());
    }
  }

  private void result(DataOutputStream out, String method, int count) throws IOException {
    if (leaseMs > 0 && method.toLowerCase(Locale.ROOT).endsWith("lease")) {
      lease(field(out, Reader.STRUCT, 0));
      return;
    }
    long first = method.equals("status") ? 0 : next.getAndAdd(count);
    switch (method) {
      case "getId":
        field(out, Reader.I64, 0).writeLong(first);
        break;
      case "getIds":
        field(out, Reader.LIST, 0).writeByte(Reader.I64);
        out.writeInt(count);
        for (int i = 0; i < count; i++) {
          out.writeLong(first + i);
        }
        break;
      case "getRuns":
        field(out, Reader.LIST, 0).writeByte(Reader.STRUCT);
        out.writeInt(1);
        field(out, Reader.I64, 1).writeLong(first);
        field(out, Reader.I32, 2).writeInt(count);
        field(out, Reader.I64, 3).writeLong(1);
        out.writeByte(Reader.STOP);
        break;
      case "getText":
        string(field(out, Reader.STRING, 0), "N-" + first);
        break;
      default: // status
        string(field(field(out, Reader.STRUCT, 0), Reader.STRING, 1), "a-cluster");
        string(field(out, Reader.STRING, 5), "firn");
        out.writeByte(Reader.STOP);
    }
  }

  /** Writes the terms of the only lease, of machine id 17. */
  private void lease(DataOutputStream out) throws IOException {
    string(field(out, Reader.STRING, 1), "a-lease");
    string(field(out, Reader.STRING, 18), address());
    for (int[] one : new int[][] {{3, 17}, {7, 22}, {9, 12}, {12, 1}, {16, renewMs}}) {
      field(out, Reader.I32, one[0]).writeInt(one[1]);
    }
    for (long[] one : new long[][] {{6, 17 << 12}, {11, 4096}, {13, BEGAN_MS - 1000}, {14, 1000},
        {15, System.currentTimeMillis() - BEGAN_MS + 1000 + leaseMs}}) {
      field(out, Reader.I64, (int) one[0]).writeLong(one[1]);
    }
    out.writeByte(Reader.STOP);
  }

  private static DataOutputStream field(DataOutputStream out, byte type, int id) throws IOException {
    out.writeByte(type);
    out.writeShort(id);
    return out;
  }

  private static void string(DataOutputStream out, String text) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    out.writeInt(bytes.length);
    out.write(bytes);
  }
}
