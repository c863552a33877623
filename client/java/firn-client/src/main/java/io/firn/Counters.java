package io.firn;

import java.util.concurrent.atomic.LongAdder;

/** What a client has done since it was created. Each number only grows. */
public final class Counters {
  /** What a client counts. */
  static final class Tally {
    final LongAdder calls = new LongAdder();
    final LongAdder callNanos = new LongAdder();
    final LongAdder failed = new LongAdder();
    final LongAdder refused = new LongAdder();
    final LongAdder attempts = new LongAdder();
    final LongAdder retries = new LongAdder();
    final LongAdder retriesDenied = new LongAdder();
    final LongAdder timeouts = new LongAdder();
    final LongAdder broken = new LongAdder();
    final LongAdder connects = new LongAdder();
    final LongAdder connectsFailed = new LongAdder();
    final LongAdder lists = new LongAdder();
    final LongAdder localTaken = new LongAdder();
    final LongAdder localMissed = new LongAdder();

    void ended(FirnException failure, long nanos) {
      calls.increment();
      callNanos.add(nanos);
      if (failure != null) {
        (failure.kind() == FirnException.Kind.REFUSED ? refused : failed).increment();
      }
    }

    /** Counts an attempt; `failure` is null if the server gave ids. */
    void attempted(Failure failure) {
      if (failure == null || !failure.unsent()) {
        attempts.increment();
      }
      if (failure != null && failure.end == Attempt.End.TIMEOUT) {
        timeouts.increment();
      }
      if (failure != null && failure.quarantines()) {
        broken.increment();
      }
    }
  }

  /** Calls to servers; ids from memory need none. */
  public final long calls;
  /** Time of all these calls, in nanoseconds. */
  public final long callNanos;
  /** Calls that failed without a refusal. */
  public final long failed;
  /** Calls that a server refused. */
  public final long refused;
  /** Requests that were sent. */
  public final long attempts;
  /** Requests that used the retry budget. */
  public final long retries;
  /** Retries that the exhausted retry budget prevented. */
  public final long retriesDenied;
  /** Attempts without an answer in time. */
  public final long timeouts;
  /** Invalid answers. */
  public final long broken;
  /** Connections that were begun. */
  public final long connects;
  /** Connections that failed before the server's status arrived. */
  public final long connectsFailed;
  /** Server lists that were accepted. */
  public final long lists;
  /** Ids from memory. They are counted in the blocks that threads take. */
  public final long localTaken;
  /** Ids that were not in memory although their tag is prefetched. */
  public final long localMissed;

  Counters(Tally tally) {
    calls = tally.calls.sum();
    callNanos = tally.callNanos.sum();
    failed = tally.failed.sum();
    refused = tally.refused.sum();
    attempts = tally.attempts.sum();
    retries = tally.retries.sum();
    retriesDenied = tally.retriesDenied.sum();
    timeouts = tally.timeouts.sum();
    broken = tally.broken.sum();
    connects = tally.connects.sum();
    connectsFailed = tally.connectsFailed.sum();
    lists = tally.lists.sum();
    localTaken = tally.localTaken.sum();
    localMissed = tally.localMissed.sum();
  }

  @Override
  public String toString() {
    return "calls=" + calls + " callNanos=" + callNanos + " failed=" + failed + " refused=" + refused + " attempts="
        + attempts + " retries=" + retries + " retriesDenied=" + retriesDenied + " timeouts=" + timeouts + " broken="
        + broken + " connects=" + connects + " connectsFailed=" + connectsFailed + " lists=" + lists + " localTaken="
        + localTaken + " localMissed=" + localMissed;
  }
}
