package io.firn;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** One connection with many requests in flight, which the server answers in their order. A thread of its own reads. Any
 * failure but a refusal closes it and ends all requests on it, so a late answer cannot be taken for the answer to
 * another call. Calls into a call without its own lock. */
final class Pipeline implements Watchdog.Watched {
  static final int IN_FLIGHT_MAX = 1024;
  // A part of the time of an attempt: for bytes that this process has not read yet, and until a connection is slow.
  private static final int GRACES = 8;

  /** A request, until its answer. */
  static final class Exchange<T> {
    final Pipeline on;
    private final AsyncCall<T> call;
    private final int sequence;
    private final boolean stale; // an earlier call used the connection: if it is closed, the call may try again
    private long watched; // when it was sent, or last found to be late
    private boolean late;

    private Exchange(Pipeline on, AsyncCall<T> call, int sequence, long now) {
      this.on = on;
      this.call = call;
      this.sequence = sequence;
      stale = on.used;
      watched = now;
    }
  }

  int load; // calls that use it; the pool's lock guards it
  private final Engine engine;
  private final Pool pool;
  private final Connection connection;
  private final long limitNs;
  private final Deque<Exchange<?>> queue = new ArrayDeque<>(); // the lock guards this and all below
  private final ByteArrayOutputStream out = new ByteArrayOutputStream(); // requests that are not written yet
  private boolean writing;
  private Thread reader;
  private boolean used;
  private boolean leaving;
  private volatile boolean closed;
  private long heardAt = System.nanoTime();
  private volatile long movedAt = heardAt; // when it began to wait for the answer that is next
  private volatile long due = Watchdog.NEVER;

  Pipeline(Engine engine, Pool pool, Connection connection) {
    this.engine = engine;
    this.pool = pool;
    this.connection = connection;
    connection.used = true; // whether an earlier call used it, each request knows itself
    limitNs = engine.options.attemptLimitMs * 1_000_000L;
  }

  /** Returns false, and has ended, if the system starts no thread. */
  boolean start() {
    engine.watchdog.add(this);
    reader = Engine.daemon(this::read, "firn-answers");
    try {
      reader.start();
      return true;
    } catch (OutOfMemoryError noThread) {
      end(new Failure(Attempt.End.NO_ROOM, "this process can start no thread"));
      return false;
    }
  }

  /** Queues the request of a call, and writes it unless another thread is about to. Returns null if the connection has
   * ended. */
  <T> Exchange<T> send(AsyncCall<T> call) {
    Exchange<T> made;
    boolean alone;
    boolean begins;
    boolean waits;
    synchronized (this) {
      if (closed) {
        return null;
      }
      made = new Exchange<>(this, call, connection.nextSequence(), System.nanoTime());
      alone = queue.isEmpty();
      movedAt = alone ? made.watched : movedAt;
      queue.add(made);
      out.writeBytes(Wire.request(call.ask(), made.sequence));
      begins = !writing && Thread.currentThread() != reader; // which writes for all answers that it has received
      writing |= begins;
      waits = due == Watchdog.NEVER;
      if (waits) {
        due = made.watched + limitNs;
      }
    }
    if (waits) {
      engine.watchdog.begins(due);
    }
    // On its own, it finds the socket's buffer empty, and does not block.
    boolean more = begins && (!alone || write());
    if (more) {
      writeOn();
    }
    return made;
  }

  private void writeOn() {
    boolean writes = engine.inBackground(() -> {
      while (write()) { }
    });
    if (!writes) { // this thread can block, for at most the time of an attempt
      while (write()) { }
    }
  }

  private void flush() {
    boolean begins;
    synchronized (this) {
      begins = !writing && out.size() > 0;
      writing |= begins;
    }
    if (begins) {
      writeOn();
    }
  }

  /** Writes what is queued. Returns whether more was queued meanwhile. */
  private boolean write() {
    byte[] batch;
    synchronized (this) {
      batch = out.toByteArray();
      out.reset();
    }
    try {
      connection.write(batch);
    } catch (IOException fault) {
      connection.close(); // the thread that reads finds out
    }
    synchronized (this) {
      writing = out.size() > 0 && !closed;
      return writing;
    }
  }

  boolean isClosed() {
    return closed;
  }

  /** Whether it has no calls, or an answer has arrived a short time ago: the server answers in order, and may hold a call
   * until it has ids. */
  boolean isPrompt() {
    return !closed && (load == 0 || System.nanoTime() - movedAt < limitNs / GRACES);
  }

  private void read() {
    try {
      while (true) {
        if (!connection.hasFrame()) {
          flush();
        }
        byte[] frame = connection.nextFrame();
        Exchange<?> first;
        synchronized (this) {
          first = queue.peek();
          used = true;
          heardAt = System.nanoTime();
          movedAt = heardAt;
        }
        if (first == null) {
          Failure unasked = new Failure(Attempt.End.BROKEN, "an answer belongs to no call");
          engine.tally.attempted(unasked);
          engine.fleet.failed(pool.server(), "", unasked);
          throw unasked;
        }
        take(first, frame);
      }
    } catch (IOException fault) {
      end(connection.failure(fault));
    } catch (Failure why) {
      end(why);
    } catch (RuntimeException | Error fault) { // of this library
      end(new Failure(Attempt.End.CLOSED, fault.toString()));
      throw fault;
    }
  }

  private <T> void take(Exchange<T> first, byte[] frame) throws Failure {
    T answer = null;
    Failure failure = null;
    try {
      answer = Wire.answer(frame, first.call.ask(), first.sequence);
      String fault = first.call.ask().faultOf(answer, connection.check);
      if (fault != null) {
        throw new Failure(Attempt.End.BROKEN, fault);
      }
    } catch (Failure why) {
      failure = why;
    }
    boolean left;
    synchronized (this) {
      if (closed) { // meanwhile, which has ended the request
        return;
      }
      queue.poll();
      left = leaving && queue.isEmpty();
    }
    first.call.ended(first, failure == null ? answer : null, failure);
    if (failure != null && !failure.refused() && !failure.lacksMethod) {
      throw new Failure(Attempt.End.CLOSED, "another answer was invalid");
    }
    if (left) {
      connection.close();
    }
    pool.left(this);
  }

  /** Whether an answer waits for the thread that reads: this process is late, and not the server. */
  boolean hasUnread() {
    return connection.hasUnread();
  }

  @Override
  public long waitsUntil() {
    return due;
  }

  @Override
  public void expire(long until) {
    due = Watchdog.EXPIRED;
    if (!engine.inBackground(this::judge)) {
      due = System.nanoTime() + limitNs / GRACES;
    }
  }

  /** Closes the connection if no answer has arrived for the time of an attempt. Otherwise, requests that have waited as
   * long are late. */
  private void judge() {
    List<Exchange<?>> late = new ArrayList<>();
    boolean unread = hasUnread();
    boolean silent = false;
    synchronized (this) {
      long now = System.nanoTime();
      long next = Watchdog.NEVER;
      for (Exchange<?> one : queue) {
        if (now - one.watched >= limitNs && unread) {
          next = Math.min(next, now + limitNs / GRACES);
          continue;
        }
        if (now - one.watched >= limitNs) {
          silent |= heardAt <= one.watched;
          one.watched = now;
          if (!one.late) {
            one.late = true;
            late.add(one);
          }
        }
        next = Math.min(next, one.watched + limitNs);
      }
      due = next;
    }
    if (silent) {
      end(new Failure(Attempt.End.TIMEOUT, ""));
      return;
    }
    if (due != Watchdog.NEVER) {
      engine.watchdog.begins(due);
    }
    late.forEach(Pipeline::late);
  }

  private static <T> void late(Exchange<T> one) {
    one.call.late(one);
  }

  /** Closes the connection when its calls have ended. */
  void leave() {
    boolean idle;
    synchronized (this) {
      leaving = true;
      idle = queue.isEmpty();
    }
    if (idle) {
      connection.close();
    }
  }

  @Override
  public void close() {
    connection.close();
  }

  /** Ends the connection and all requests on it. */
  private void end(Failure why) {
    List<Exchange<?>> all;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      all = new ArrayList<>(queue);
      queue.clear();
      due = Watchdog.NEVER;
    }
    engine.watchdog.remove(this);
    engine.drop(connection);
    for (Exchange<?> one : all) {
      ended(one, new Failure(why.end, why.detail, null, 0, false, why.stale && one.stale));
    }
    pool.ended(engine, this);
  }

  private static <T> void ended(Exchange<T> one, Failure why) {
    one.call.ended(one, null, why);
  }
}
