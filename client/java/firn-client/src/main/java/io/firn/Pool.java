package io.firn;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** The connections to one server that asynchronous calls share, and the calls that wait for room on one. Calls into a
 * call without its own lock. */
final class Pool {
  private static final int CONNECTIONS_MAX = 4;

  private final Server server;
  private final int most;
  private final List<Pipeline> open = new ArrayList<>();
  private final Deque<AsyncCall<?>> waiting = new ArrayDeque<>();
  private boolean dialling;
  private volatile boolean isOpen;

  Pool(Server server, int connectionsMax) {
    this.server = server;
    most = Math.min(CONNECTIONS_MAX, connectionsMax);
  }

  Server server() {
    return server;
  }

  boolean isOpen() {
    return isOpen;
  }

  /** Returns a connection, which the call uses until `left`. Returns null if none has room: the call waits for one. Opens
   * another connection, up to the limit, while all are slow. */
  synchronized Pipeline enter(Engine engine, AsyncCall<?> call) {
    Pipeline one = waiting.isEmpty() ? pick() : null;
    if (open.stream().noneMatch(Pipeline::isPrompt)) {
      dialIfRoom(engine);
    }
    if (one == null) {
      waiting.add(call);
    } else {
      one.load++;
    }
    return one;
  }

  /** Returns the first connection that is not slow, so that many requests are written at a time; otherwise the least busy
   * one. */
  private Pipeline pick() {
    Pipeline best = null;
    for (Pipeline one : open) {
      if (one.load >= Pipeline.IN_FLIGHT_MAX || one.isClosed()) {
        continue;
      }
      if (one.isPrompt()) {
        return one;
      }
      if (best == null || one.load < best.load) {
        best = one;
      }
    }
    return best;
  }

  private void dialIfRoom(Engine engine) {
    if (!dialling && open.size() < most) {
      dialling = engine.inBackground(() -> dial(engine)); // the task takes the lock before it changes this
    }
  }

  private void dial(Engine engine) {
    Pipeline made = null;
    Failure failure = new Failure(Attempt.End.UNREACHABLE, "the client was closed");
    try {
      long until = System.nanoTime() + engine.options.attemptLimitMs * 1_000_000L;
      made = new Pipeline(engine, this, engine.connect(server, until));
    } catch (Failure why) {
      failure = why;
    } finally { // also after a fault of this library, or no connection would be opened again
      synchronized (this) {
        dialling = false;
        if (made != null) {
          open.add(made);
          isOpen = true;
        }
      }
    }
    if (made != null && !made.start()) {
      made = null;
      failure = new Failure(Attempt.End.NO_ROOM, "this process can start no thread");
    }
    if (made != null) {
      admit(made);
      if (!engine.fleet.lists(server)) {
        made.leave();
      }
      return;
    }
    engine.fleet.failed(server, "", failure); // once for all calls that wait
    failure.counted = true;
    if (!isOpen) {
      refuse(failure);
    }
  }

  /** Lets waiting calls use the connection. */
  private void admit(Pipeline to) {
    for (AsyncCall<?> next = next(to); next != null; next = next(to)) {
      if (!next.roomIn(to)) {
        synchronized (this) {
          to.load--;
        }
      }
    }
  }

  private synchronized AsyncCall<?> next(Pipeline to) {
    if (to.load >= Pipeline.IN_FLIGHT_MAX || to.isClosed() || waiting.isEmpty()) {
      return null;
    }
    to.load++;
    return waiting.poll();
  }

  private void refuse(Failure failure) {
    List<AsyncCall<?>> all;
    synchronized (this) {
      all = new ArrayList<>(waiting);
      waiting.clear();
    }
    all.forEach(one -> one.refused(server, failure));
  }

  /** A call no longer uses the connection. */
  void left(Pipeline from) {
    synchronized (this) {
      from.load--;
    }
    admit(from);
  }

  /** The connection has ended. */
  void ended(Engine engine, Pipeline one) {
    synchronized (this) {
      open.remove(one);
      isOpen = !open.isEmpty();
      if (!waiting.isEmpty() && !isOpen) {
        dialIfRoom(engine);
      }
    }
    if (engine.fleet.isOut(server)) {
      refuse(new Failure(Attempt.End.NO_ROOM, "it failed while this call waited for a connection"));
    }
  }

  /** Closes the connections when the calls on them have ended. */
  void leave() {
    List<Pipeline> all;
    synchronized (this) {
      all = List.copyOf(open);
    }
    all.forEach(Pipeline::leave);
  }
}
