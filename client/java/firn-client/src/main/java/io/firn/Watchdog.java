package io.firn;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/** Closes connections whose answer does not arrive in time. A read with a timeout of its own would make up to two
 * more system calls. Thread-safe. */
final class Watchdog {
  private static final long NEVER = Connection.IDLE;

  private final Set<Connection> watched = ConcurrentHashMap.newKeySet();
  private final long longestNs; // after a call, the next round is due then at the latest
  private final Thread thread;
  private volatile long next = NEVER; // when the next round is due
  private volatile boolean closed;

  Watchdog(long longestNs) {
    this.longestNs = longestNs;
    thread = Engine.daemon(this::run, "firn-deadlines");
    thread.start();
  }

  void add(Connection connection) {
    watched.add(connection);
  }

  void remove(Connection connection) {
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
    watched.forEach(Connection::close);
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
    for (Connection one : watched) {
      long until = one.waitsUntil();
      if (until <= now) {
        one.expire(until);
      } else if (until != Connection.EXPIRED) {
        due = Math.min(due, until);
      }
    }
    return due;
  }
}
