package io.firn;

import java.util.ArrayDeque;
import java.util.Deque;

/** An event about servers, for the program's log; the library itself logs nothing. */
public final class Event {
  /** Calls functions of the program one after another, on a thread of its own and without a lock. A function that blocks
   * delays only later ones. While MOST wait, further ones are dropped. Thread-safe. */
  static final class Hooks {
    private static final int MOST = 1000;

    private final Deque<Runnable> waiting = new ArrayDeque<>();
    private boolean running;

    synchronized void call(Runnable one) {
      if (waiting.size() < MOST) {
        waiting.add(one);
      }
      start();
    }

    /** Runs the functions that wait because no thread could be started. */
    synchronized void retry() {
      start();
    }

    private void start() {
      if (!running && !waiting.isEmpty()) {
        try {
          Engine.daemon(this::run, "firn-hooks").start();
          running = true;
        } catch (OutOfMemoryError noThread) {
          // retry() does
        }
      }
    }

    private void run() {
      for (Runnable one = next(); one != null; one = next()) {
        try {
          one.run();
        } catch (Throwable fault) { // of the program; also a checked one, which other languages of the JVM can throw
          Fleet.report(fault);
        }
      }
    }

    private synchronized Runnable next() {
      Runnable one = waiting.poll();
      running = one != null;
      return one;
    }
  }

  /** One of: list, unhealthy, healthy, quarantined, draining, no server. */
  public final String kind;
  public final String server;
  public final String detail;

  Event(String kind, String server, String detail) {
    this.kind = kind;
    this.server = server;
    this.detail = detail;
  }

  @Override
  public String toString() {
    return kind + (server.isEmpty() ? "" : " " + server) + (detail.isEmpty() ? "" : ": " + detail);
  }
}
