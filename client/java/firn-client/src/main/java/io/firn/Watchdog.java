package io.firn;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/** Ends waits of connections whose answer does not arrive in time. A read with a timeout of its own would make up to two
 * more system calls. Thread-safe. */
final class Watchdog {
  /** A connection that waits for answers. */
  interface Watched {
    /** Returns when the wait for an answer ends; NEVER if nothing waits, EXPIRED if its end is known. */
    long waitsUntil();

    /** Ends the wait, if it is still the one until that time. Must not block. */
    void expire(long until);

    void close();
  }

  static final long NEVER = Long.MAX_VALUE;
  static final long EXPIRED = Long.MAX_VALUE - 1;

  private final Set<Watched> watched = ConcurrentHashMap.newKeySet();
  private final long longestNs; // after a call, the next round is due then at the latest
  private final Thread thread;
  private volatile long next = NEVER; // when the next round is due
  private volatile boolean closed;

  Watchdog(long longestNs) {
    this.longestNs = longestNs;
    thread = Engine.daemon(this::run, "firn-deadlines");
    thread.start();
  }

  void add(Watched connection) {
    watched.add(connection);
  }

  void remove(Watched connection) {
    watched.remove(connection);
  }

  /** A connection has begun to wait until that time, which it has stored before. */
  void begins(long until) {
    if (until < next) {
      LockSupport.unpark(thread);
    }
  }

  void close() {
    closed = true;
    LockSupport.unpark(thread);
    watched.forEach(Watched::close);
  }

  private void run() {
    while (!closed) {
      long now = System.nanoTime();
      next = now + longestNs; // before the round, so that a wait that it misses unparks this thread
      long due = round(now);
      if (due == NEVER) {
        next = NEVER;
        due = round(now);
      }
      if (due == NEVER) {
        LockSupport.park(this);
      } else {
        LockSupport.parkNanos(this, Math.min(due, now + longestNs) - System.nanoTime());
      }
    }
  }

  /** Ends what is over. Returns the earliest end of the others, which is NEVER if nothing waits. */
  private long round(long now) {
    long due = NEVER;
    for (Watched one : watched) {
      long until = one.waitsUntil();
      if (until <= now) {
        one.expire(until);
      } else if (until != EXPIRED) {
        due = Math.min(due, until);
      }
    }
    return due;
  }
}
