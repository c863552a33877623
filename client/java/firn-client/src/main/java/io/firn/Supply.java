package io.firn;

import io.firn.Wire.Run;
import java.util.List;

/** The prefetched ids of one tag. Thread-safe.
 *
 * <p>It has two buffers. The next buffer is fetched when half of the current one is used, or at once if
 * the other half would not last until the answer. If a fetch is used up too soon, the next one is larger;
 * if it lasts too long, smaller. After a failure the next fetch waits 10 ms to
 * 1 s, or 1 s to 30 s if the server's reason says that a retry will not help. */
final class Supply {
  private static final int FIRST = 128;
  private static final long REFUSED_FOR_MS = 60_000;

  /** The runs of one fetch; ids are taken from its front. */
  private static final class Buffer {
    private final List<Run> runs;
    private final long askedAt;
    private final int size;
    private int left;
    private int run;
    private int taken; // taken ids of the run

    Buffer(List<Run> runs, int size, long askedAt) {
      this.runs = runs;
      this.size = size;
      this.left = size;
      this.askedAt = askedAt;
    }

    long take() {
      Run now = runs.get(run);
      long id = now.first + taken * now.stride;
      taken++;
      if (taken == now.count) {
        run++;
        taken = 0;
      }
      left--;
      return id;
    }
  }

  private static final Buffer EMPTY = new Buffer(List.of(), 0, 0);

  private final LocalTag tag;
  private final Engine engine;
  private Buffer inUse = EMPTY;
  private Buffer next = EMPTY;
  private long usedSince;
  private long lastUseMs = Long.MAX_VALUE;
  private long lastFetchMs;
  private int size = FIRST;
  private int most;
  private long mostUntil;
  private boolean starved;
  private boolean fetching;
  private long notBefore;
  private long soonMs;
  private long lateMs;

  Supply(LocalTag tag, Engine engine) {
    this.tag = tag;
    this.engine = engine;
  }

  /** Returns an id from memory; 0 if there is none, after waiting for a fetch in progress. */
  synchronized long take(long patienceMs) {
    long until = Server.now() + patienceMs;
    while (true) {
      long now = Server.now();
      long id = prepare(now) ? inUse.take() : 0;
      fetchIfLow(now);
      if (id != 0 || !fetching || now >= until || engine.fleet.stopped()) {
        return id;
      }
      try {
        wait(until - now);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        return 0;
      }
    }
  }

  /** Whether the current buffer has ids that may be taken. */
  private boolean prepare(long now) {
    inUse = aged(inUse, now) ? EMPTY : inUse;
    next = aged(next, now) ? EMPTY : next;
    if (inUse.left == 0 && next.left > 0) {
      if (usedSince != 0) {
        lastUseMs = now - usedSince;
        resize();
      }
      usedSince = now;
      starved = false;
      inUse = next;
      next = EMPTY;
    }
    starved = starved || inUse.left == 0;
    return inUse.left > 0;
  }

  private boolean aged(Buffer buffer, long now) {
    return buffer.left > 0 && tag.maxAgeMs > 0 && now - buffer.askedAt > tag.maxAgeMs;
  }

  private void resize() {
    if (lastUseMs > 2 * tag.lastsMs) {
      size = Math.max(1, size / 2);
    } else if (lastUseMs < tag.lastsMs / 16) {
      size = Math.min(size * 8, tag.fetchMax);
    } else if (starved || lastUseMs < tag.lastsMs / 2) {
      size = Math.min(size * 2, tag.fetchMax);
    }
  }

  private void fetchIfLow(long now) {
    int enough = lastUseMs / 2 >= lastFetchMs ? inUse.size / 2 : inUse.size;
    if (next.left > 0 || inUse.left > enough || fetching || now < notBefore) {
      return;
    }
    fetching = true;
    int count = now < mostUntil ? Math.min(size, most) : size;
    engine.inBackground(() -> fetch(count, now));
  }

  private void fetch(int count, long askedAt) {
    List<Run> runs = null;
    FirnException failure = null;
    try {
      runs = engine.call(Ask.runs(tag.tag, count), engine.options.deadlineMs);
    } catch (FirnException fault) {
      failure = fault;
    } finally { // also after a fault of this library, or the tag would never be fetched again
      ended(runs, failure, count, askedAt);
    }
  }

  private synchronized void ended(List<Run> runs, FirnException failure, int count, long askedAt) {
    fetching = false;
    if (runs != null) {
      next = new Buffer(runs, count, askedAt);
      lastFetchMs = Server.now() - askedAt;
      soonMs = lateMs = 0;
    } else {
      failed(failure, count);
    }
    notifyAll();
  }

  private void failed(FirnException failure, int count) {
    long now = Server.now();
    boolean refused = failure != null && failure.kind() == FirnException.Kind.REFUSED;
    if (refused && failure.reason() == Reason.UNKNOWN_TAG) { // it was deleted: no more ids of it
      inUse = next = EMPTY;
    }
    boolean tooMany = refused && failure.reason() == Reason.BAD_REQUEST && count > 1;
    if (tooMany) {
      most = count / 2;
      mostUntil = now + REFUSED_FOR_MS;
    }
    if (tooMany || !refused) {
      soonMs = Math.min(Math.max(10, 2 * soonMs), 1000);
      notBefore = now + soonMs;
    } else {
      lateMs = Math.min(Math.max(1000, 2 * lateMs), 30_000);
      notBefore = now + lateMs;
    }
  }
}
