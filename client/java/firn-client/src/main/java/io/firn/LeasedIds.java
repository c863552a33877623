package io.firn;

import io.firn.LeaseWire.Terms;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * The ids of one lease after another.
 *
 * <ol>
 * <li>An id has a tick in the interval of its lease. The tick is compared after it was computed.
 * <li>The position, tick and sequence, never falls: neither in a lease, nor in the next one, which begins above the
 * last tick used.
 * <li>A closed lease issues nothing: closing replaces the position, and a thread that has computed an id from the
 * former one fails to take it.
 * <li>The id clock starts at the wall clock, or at the lease's first tick if that is later. While the wall clock is
 * behind, it follows the monotonic clock: at nine tenths of its pace while the difference is at most 5 s. A wrong clock
 * can waste ticks. It cannot repeat one.
 * <li>A wall clock that is more than 5 s ahead of the id clock has jumped: no id is issued until a server confirms it.
 * </ol>
 *
 * <p>Thread-safe. One thread calls adopt, extendTo and advance.
 */
final class LeasedIds {
  /** The clocks of the machine. */
  interface Clock {
    long wallMs();

    /** A monotonic clock with any origin. */
    long nanos();

    /** Waits for about this time. */
    void pause(long nanos);
  }

  private static final long CLOSED = -1; // in place of a position, which is not negative
  private static final long JUMP_MAX_NS = 5_000_000_000L; // the largest step of the wall clock that is followed at once
  private static final long WALL_STEP_NS = 1_000_000; // in which the wall clock is read
  private static final long WALL_MS_MAX = Long.MAX_VALUE / 2_000_000;
  private static final long SPIN_NS = 60_000; // a thread sleeps longer than asked for by about this time
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss 'UTC'").withZone(ZoneOffset.UTC);

  static final Clock SYSTEM = new Clock() {
    @Override
    public long wallMs() {
      return System.currentTimeMillis();
    }

    @Override
    public long nanos() {
      return System.nanoTime();
    }

    @Override
    public void pause(long nanos) {
      if (nanos > 2 * SPIN_NS) {
        LockSupport.parkNanos(nanos - SPIN_NS);
      } else {
        Thread.onSpinWait();
      }
    }
  };

  /** The id clock at one moment of the monotonic clock. */
  private static final class Reading {
    final long timeNs;
    final long nanos;
    final long aheadNs; // of the wall clock, while the pace is lower; otherwise 0
    final long jumpNs; // how far the wall clock has jumped forward; 0: it has not

    Reading(long timeNs, long nanos, long aheadNs, long jumpNs) {
      this.timeNs = timeNs;
      this.nanos = nanos;
      this.aheadNs = aheadNs;
      this.jumpNs = jumpNs;
    }

    /** Returns the id clock. At nine tenths of the pace, a time of ten times the difference makes it vanish. */
    long at(long now) {
      long passed = Math.max(0, now - nanos);
      return timeNs + passed - Math.min(passed / 10, aheadNs);
    }
  }

  /** One lease. Its value is the first free position, tick and sequence side by side, or CLOSED. */
  private static final class Holding extends AtomicLong {
    private static final long serialVersionUID = 1;

    final transient Terms terms;
    final int bits; // of the sequence in a position
    final long mask;
    volatile long until;

    Holding(Terms terms, long firstTick) {
      this.terms = terms;
      bits = 64 - Long.numberOfLeadingZeros(terms.sequenceCount - 1);
      mask = (1L << bits) - 1;
      until = terms.untilTick;
      set(firstTick << bits);
    }

    /** Returns the last tick of which an id was issued, or the one before the first. */
    long lastTick(long position) {
      return (position & mask) == 0 ? (position >> bits) - 1 : position >> bits;
    }

    /** Returns the position behind this id. */
    long after(long tick, long index) {
      return index + 1 < terms.sequenceCount ? (tick << bits | index) + 1 : tick + 1 << bits;
    }

    /** Returns where a tick's sequence begins: at random in the lower half, so that ids are spread over all their
     * remainders, or at 0 if the tick before was used up. */
    long start(long freeBefore) {
      return freeBefore == 0 || terms.sequenceCount < 4 ? 0
          : ThreadLocalRandom.current().nextLong(terms.sequenceCount / 2);
    }

    long idAt(long tick, long index) {
      return terms.baseBits | tick << terms.tickShift | terms.sequenceFrom + index << terms.sequenceShift;
    }
  }

  private final Clock clock;
  private volatile Holding current;
  private volatile Reading reading;
  /** Called once for each jump of the wall clock, without the lock, when next finds it. */
  volatile Runnable onJump = () -> { };
  private volatile boolean jumpTold; // to onJump; written under the lock
  private Terms firstTerms; // of the first lease, whose layout the others have; under the lock, as below
  private long lastTick = -1; // of the lease that was closed last
  private boolean stopped;
  private String reason = "no server has answered yet"; // of the last failure
  private long lostAtMs;

  LeasedIds(Clock clock) {
    this.clock = clock;
    lostAtMs = clock.wallMs();
    reading = new Reading(wallNs(), clock.nanos(), 0, 0);
  }

  private long wallNs() {
    return Math.max(0, Math.min(clock.wallMs(), WALL_MS_MAX)) * 1_000_000;
  }

  // --- ids ----------------------------------------------------------------------------------------

  /** Returns the next id. Waits if this tick's sequence is used up. */
  long next() throws FirnException {
    while (true) {
      Holding held = current;
      if (held == null) {
        held = settled();
      }
      long position = held.get();
      if (position == CLOSED) {
        continue; // `current` was replaced before
      }
      Terms terms = held.terms;
      long nowNs = reading.at(clock.nanos());
      long now = (nowNs / 1_000_000 - terms.epochMs) / terms.tickMs;
      long tick = position >> held.bits;
      long index = position & held.mask;
      if (tick < now || index == 0) {
        boolean jumped = wallNs() - nowNs > JUMP_MAX_NS;
        if (jumped || jumpTold) { // or it was corrected: the next jump is another one
          checkJump();
        }
        if (jumped) {
          continue;
        }
      }
      boolean later = tick > now && index == 0; // where index is above 0, another thread's clock was there
      if (tick < now) {
        index = held.start(index);
        tick = now;
      }
      long id = held.idAt(tick, index);
      if (tick >= held.until) {
        throw ended(held);
      }
      if (later) {
        await(terms.startOf(tick) * 1_000_000 - nowNs);
      } else if (held.compareAndSet(position, held.after(tick, index))) {
        return id;
      } else {
        Thread.onSpinWait();
      }
    }
  }

  /** Reads the clocks, and fails if the wall clock has jumped. */
  private void checkJump() throws FirnException {
    long jumpNs;
    boolean told;
    synchronized (this) {
      advanceNs();
      jumpNs = reading.jumpNs;
      told = jumpTold;
      jumpTold = jumpNs > 0;
    }
    if (jumpNs == 0) {
      return;
    }
    if (!told) {
      onJump.run();
    }
    throw new FirnException(FirnException.Kind.NO_LEASE, "the wall clock has jumped forward by "
        + jumpNs / 1_000_000_000 + " s, and no server has confirmed it: " + reason(), null, 0, List.of());
  }

  private void await(long nanos) throws FirnException {
    if (Thread.currentThread().isInterrupted()) {
      throw new FirnException(FirnException.Kind.UNAVAILABLE, "the thread was interrupted", null, 0, List.of());
    }
    clock.pause(nanos);
  }

  /** Returns the current lease when none is being replaced. */
  private synchronized Holding settled() throws FirnException {
    if (current == null) {
      throw noLease();
    }
    return current;
  }

  private FirnException noLease() {
    return stopped
        ? new FirnException(FirnException.Kind.CLOSED, "the generator was closed", null, 0, List.of())
        : new FirnException(FirnException.Kind.NO_LEASE,
            "no lease of a machine id since " + text(lostAtMs) + ": " + reason, null, 0, List.of());
  }

  private synchronized FirnException ended(Holding held) {
    return new FirnException(FirnException.Kind.NO_LEASE, "the lease of machine id " + held.terms.machine
        + " ended at " + text(held.terms.startOf(held.until)) + ", and no server has extended it: " + reason, null, 0,
        List.of());
  }

  static String text(long wallMs) {
    return TIME.format(Instant.ofEpochMilli(wallMs));
  }

  // --- leases -------------------------------------------------------------------------------------

  /** Issues ids of this lease from now on; closes the lease before. Returns null, or a sentence if it changes nothing,
   * because no id may be issued under these terms. */
  synchronized String adopt(Terms terms) {
    if (stopped) {
      return "the generator was closed";
    }
    if (terms.fault() != null) {
      return terms.fault();
    }
    if (firstTerms != null && !firstTerms.sameLayout(terms)) { // ids of two layouts can be equal
      return "its layout is not that of this generator's first lease; restart the program if the cluster's has changed";
    }
    long endNs = terms.startOf(terms.untilTick) * 1_000_000;
    if (advanceNs() >= endNs && wallNs() >= endNs) { // a late answer must not replace a lease in use
      return "its interval has ended";
    }
    closeCurrent();
    long from = Math.max(terms.fromTick, lastTick + 1);
    start(terms, Math.min(from, terms.untilTick));
    firstTerms = firstTerms == null ? terms : firstTerms;
    current = new Holding(terms, from);
    return null;
  }

  /** Sets the id clock for a lease that begins at the tick. A clock beyond the interval would waste it. */
  private void start(Terms terms, long first) {
    long timeNs = advanceNs();
    long firstNs = terms.startOf(first) * 1_000_000;
    long endNs = terms.startOf(terms.untilTick) * 1_000_000;
    if (timeNs >= endNs && wallNs() < endNs) {
      timeNs = wallNs();
    }
    timeNs = Math.max(firstNs, timeNs);
    reading = new Reading(timeNs < endNs ? timeNs : firstNs, reading.nanos, 0, 0);
  }

  private void closeCurrent() {
    Holding held = current;
    if (held != null) {
      current = null; // before the position, so that a thread that finds it closed reads `current` again
      lastTick = held.lastTick(held.getAndSet(CLOSED));
      lostAtMs = clock.wallMs();
    }
  }

  /** Moves the end of this lease after a renewal, if it is the current one. Ignores an earlier end. Sets an id clock
   * beyond the interval, which has followed a wrong wall clock, back to the wall clock, but not below the first free
   * tick. */
  synchronized void extend(String lease, long untilTick) {
    Holding held = current;
    if (held != null && held.terms.lease.equals(lease)) {
      held.until = Math.max(held.until, untilTick);
      long endNs = held.terms.startOf(held.until) * 1_000_000;
      if (advanceNs() >= endNs && wallNs() < endNs) {
        long free = held.terms.startOf(held.get() >> held.bits) * 1_000_000; // of the first free position's tick
        reading = new Reading(Math.max(free, wallNs()), reading.nanos, 0, 0);
      }
    }
  }

  /** Moves the id clock forward to the wall clock of a request that a server has accepted, plus the time since. The
   * monotonic clock may lack the time for which the machine was suspended. `wallAtZeroNs`: that wall clock minus the
   * monotonic clock. */
  synchronized void confirm(long wallAtZeroNs) {
    long timeNs = Math.max(advanceNs(), wallAtZeroNs + reading.nanos);
    reading = new Reading(timeNs, reading.nanos, 0, 0);
  }

  /** Ends the current lease: no id is issued after this has returned. */
  synchronized void close(String why) {
    closeCurrent();
    reason = why;
  }

  /** Ends the current lease, and adopts no other one. */
  synchronized void stop() {
    stopped = true;
    closeCurrent();
  }

  /** Sets the reason that calls report while they fail. */
  synchronized void explain(String why) {
    reason = why;
  }

  synchronized String reason() {
    return reason;
  }

  /** Returns the last tick of which an id was issued under the lease that was closed last, or the one before its
   * first. */
  synchronized long lastTick() {
    return lastTick;
  }

  /** Returns whether ids are of this lease, or were until stop(). */
  synchronized boolean issuesOf(String lease) {
    return stopped || (current != null && current.terms.lease.equals(lease));
  }

  /** Returns the terms of the current lease; null: there is none. */
  Terms terms() {
    Holding held = current;
    return held == null ? null : held.terms;
  }

  /** Returns the current lease's interval, unless it has ended, or the wall clock has jumped. */
  synchronized Optional<LocalGenerator.Interval> interval() {
    Holding held = current;
    if (held == null) {
      return Optional.empty();
    }
    long untilMs = held.terms.startOf(held.until);
    Reading now = read();
    return now.timeNs / 1_000_000 >= untilMs || now.jumpNs > 0 ? Optional.empty()
        : Optional.of(new LocalGenerator.Interval(held.terms.machine,
            Instant.ofEpochMilli(held.terms.startOf(held.terms.fromTick)), Instant.ofEpochMilli(untilMs)));
  }

  /** Returns the wall time at which the current lease ends, -1 without one. */
  long untilMs() {
    Holding held = current;
    return held == null ? -1 : held.terms.startOf(held.until);
  }

  // --- the id clock -------------------------------------------------------------------------------

  /** Reads the clocks, and returns the id clock. */
  synchronized long advance() {
    return advanceNs() / 1_000_000;
  }

  /** Returns whether the wall clock had jumped when it was read last. */
  boolean jumped() {
    return reading.jumpNs > 0;
  }

  private long advanceNs() {
    reading = read();
    jumpTold &= reading.jumpNs > 0;
    return reading.timeNs;
  }

  private Reading read() {
    long nanos = clock.nanos();
    long wall = wallNs();
    long expected = firstTerms == null ? wall : reading.at(nanos); // before the first lease, no clock can have jumped
    long ahead = wall - expected;
    long jump = ahead > JUMP_MAX_NS ? ahead : 0;
    boolean slow = -ahead > WALL_STEP_NS && -ahead <= JUMP_MAX_NS;
    return new Reading(ahead > 0 && jump == 0 ? wall : expected, nanos, slow ? -ahead : 0, jump);
  }
}
