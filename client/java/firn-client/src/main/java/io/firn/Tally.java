package io.firn;

import java.util.concurrent.atomic.LongAdder;

/** What a client counts. */
final class Tally {
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
