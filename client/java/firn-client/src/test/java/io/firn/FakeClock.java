package io.firn;

import java.util.concurrent.atomic.AtomicInteger;

/** Clocks that a test sets. A thread that waits makes the time pass. Thread-safe. */
final class FakeClock implements LeasedIds.Clock {
  static final long START_MS = 1_795_600_000_000L;

  private long wallMs = START_MS;
  private long nanos = 5_000_000_000L;
  private Runnable betweenReadings = () -> { };

  @Override
  public synchronized long wallMs() {
    return wallMs;
  }

  @Override
  public long nanos() {
    long read;
    Runnable then;
    synchronized (this) {
      read = nanos;
      then = betweenReadings;
    }
    then.run(); // after the reading: the thread was interrupted here
    return read;
  }

  @Override
  public void pause(long ns) {
    passNs(Math.max(ns, 1000));
  }

  synchronized void passMs(long ms) {
    passNs(ms * 1_000_000);
  }

  private synchronized void passNs(long ns) {
    long before = nanos / 1_000_000;
    nanos += ns;
    wallMs += nanos / 1_000_000 - before;
  }

  /** Sets the wall clock. */
  synchronized void stepWall(long ms) {
    wallMs += ms;
  }

  /** Lets the reading after so many others throw. */
  synchronized void failAfter(int readings, Error fault) {
    AtomicInteger left = new AtomicInteger(readings);
    betweenReadings = () -> {
      if (left.getAndDecrement() == 0) {
        throw fault;
      }
    };
  }

  /** Runs something once, between a thread's next reading and its use. */
  synchronized void interruptOnce(Runnable run) {
    betweenReadings = () -> {
      synchronized (this) {
        betweenReadings = () -> { };
      }
      run.run();
    };
  }
}
