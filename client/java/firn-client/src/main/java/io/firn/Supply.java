package io.firn;

import io.firn.Wire.Run;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** The prefetched ids of one tag. Thread-safe.
 *
 * <pre>
 *     fetch -- next buffer -- buffer in use -- a piece for each thread -- id
 *              (under one lock             )   (without a lock        )
 * </pre>
 *
 * <p>The next buffer is fetched when half of the current one is used, or at once if the other half would not last
 * until the answer. If a fetch is used up too soon, the next one is larger; if it lasts too long, smaller. After a
 * failure the next fetch waits 10 ms to 1 s, or 1 s to 30 s if the server's reason says that a retry will not help. */
final class Supply {
  private static final int FIRST = 128;
  private static final int LANES = 64;
  private static final int PIECE_MAX = 1024;
  private static final long REFUSED_FOR_MS = 60_000;

  /** Prefetched ids of one run. Threads take from it without a lock; its value counts the ids that were taken, and can
   * exceed their number. It fills cache lines of its own, because each piece is mostly used by one thread. */
  static final class Piece extends AtomicLong {
    private static final long serialVersionUID = 1;
    static final Piece EMPTY = new Piece(null, 0, 1, 0);

    final transient Object of; // the fetch that it belongs to
    private final long first;
    private final long stride;
    private final int count;
    long pad0;
    long pad1;
    long pad2;
    long pad3;
    long pad4;
    long pad5;
    long pad6;
    long pad7;
    long pad8;

    Piece(Object of, long first, long stride, int count) {
      this.of = of;
      this.first = first;
      this.stride = stride;
      this.count = count;
    }

    /** Cuts at most that many ids from the front of a run. */
    static Piece cut(Object of, Run run, int most) {
      Piece piece = new Piece(of, run.first, run.stride, Math.min(most, run.count));
      run.count -= piece.count;
      if (run.count > 0) { // beyond the last id, the next one may not exist
        run.first += piece.count * run.stride;
      }
      return piece;
    }

    int size() {
      return count;
    }

    /** Returns an id, or 0 if none is left. */
    long take() {
      long at = getAndIncrement();
      return at < count ? first + at * stride : 0;
    }

    /** Takes ids into the array from `begin` on, as many as there are. Returns their number. */
    int take(long[] into, int begin) {
      long at = getAndAdd(into.length - begin);
      int taken = (int) Math.max(0, Math.min(into.length - begin, count - at));
      write(at, taken, into, begin);
      return taken;
    }

    /** Fills the array; false if it has too few ids for that, or if another thread took some meanwhile. */
    boolean fill(long[] into) {
      long at = get();
      if (at + into.length > count || !compareAndSet(at, at + into.length)) {
        return false;
      }
      write(at, into.length, into, 0);
      return true;
    }

    private void write(long at, int ids, long[] into, int begin) {
      for (int i = 0; i < ids; i++) {
        into[begin + i] = first + (at + i) * stride;
      }
    }
  }

  /** The runs of one fetch; pieces are cut from its front. */
  private static final class Buffer {
    private final List<Run> runs;
    private final long askedAt;
    private final int size;
    private int left;
    private int run;

    Buffer(List<Run> runs, int size, long askedAt) {
      this.runs = runs;
      this.size = size;
      this.left = size;
      this.askedAt = askedAt;
    }

    /** Cuts at most that many ids. It must not be empty. */
    Piece cut(int most) {
      Run now = runs.get(run);
      Piece piece = Piece.cut(this, now, most);
      left -= piece.size();
      if (now.count == 0) {
        run++;
      }
      return piece;
    }
  }

  private static final Buffer EMPTY = new Buffer(List.of(), 0, 0);

  private final LocalTag tag;
  private final Engine engine;
  private final AtomicReferenceArray<Piece> lanes = new AtomicReferenceArray<>(LANES);
  private final ReentrantLock lock = new ReentrantLock(); // of all below
  private final Condition fetched = lock.newCondition();
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
  private boolean closed;
  private List<Runnable> awaitFetched = new ArrayList<>();
  private long notBefore;
  private long soonMs;
  private long lateMs;

  Supply(LocalTag tag, Engine engine) {
    this.tag = tag;
    this.engine = engine;
    clearLanes(null);
  }

  private static int lane() {
    return (int) Thread.currentThread().getId() & (LANES - 1);
  }

  /** Returns an id of this thread's piece; 0 if none is left. */
  long take() {
    return lanes.get(lane()).take();
  }

  /** Returns an id from memory; 0 if there is none, after waiting for a fetch in progress. */
  long take(long patienceMs) {
    long until = Server.now() + patienceMs;
    lock.lock();
    try {
      while (true) {
        long id = take(); // another thread may have filled it
        if (id != 0) {
          return id;
        }
        long now = Server.now();
        boolean filled = prepare(now);
        if (filled) {
          cut();
        }
        fetchIfLow(now);
        if (!filled && (!fetching || closed || now >= until || !awaitFetch(until - now))) {
          engine.tally.localMissed.increment();
          return 0;
        }
      }
    } finally {
      lock.unlock();
    }
  }

  /** Runs `then` when the fetch in progress has ended. Returns false if none is, or the client is closed. */
  boolean onFetched(Runnable then) {
    lock.lock();
    try {
      boolean waits = fetching && !closed;
      if (waits) {
        awaitFetched.add(then);
      }
      return waits;
    } finally {
      lock.unlock();
    }
  }

  /** Returns ids from memory in ascending order; null if there are too few. Does not wait. */
  long[] takeMany(int count) {
    long[] ids = new long[count];
    if (!lanes.get(lane()).fill(ids)) {
      lock.lock();
      try {
        long now = Server.now();
        boolean enough = prepare(now) && inUse.left >= count;
        if (enough) {
          for (int got = lanes.get(lane()).take(ids, 0); got < count;) {
            got += cut().take(ids, got);
          }
        }
        fetchIfLow(now);
        if (!enough) {
          return null;
        }
      } finally {
        lock.unlock();
      }
    }
    if (!Ask.ascend(ids)) { // a piece can be older than the buffer
      Arrays.sort(ids);
    }
    return ids;
  }

  /** Drops all ids, and fetches none any more. */
  void close() {
    lock.lock();
    try {
      closed = true;
      inUse = next = EMPTY;
      clearLanes(null);
      fetched.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private boolean awaitFetch(long ms) {
    try {
      fetched.await(ms, TimeUnit.MILLISECONDS);
      return true;
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Gives this thread's lane a piece of the buffer in use, which must not be empty. */
  private Piece cut() {
    Piece piece = inUse.cut(Math.max(1, Math.min(inUse.size / 32, PIECE_MAX)));
    lanes.set(lane(), piece);
    engine.tally.localTaken.add(piece.size());
    return piece;
  }

  /** Drops the pieces of that buffer; null: of all. */
  private void clearLanes(Buffer of) {
    for (int i = 0; i < LANES; i++) {
      if (of == null || lanes.get(i).of == of) {
        lanes.set(i, Piece.EMPTY);
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
    return buffer.left > 0 && tag.maxAgeMs > 0 && now - buffer.askedAt >= tag.maxAgeMs;
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
    if (next.left > 0 || inUse.left > enough || fetching || closed || now < notBefore) {
      return;
    }
    int count = now < mostUntil ? Math.min(size, most) : size;
    fetching = engine.inBackground(() -> fetch(count, now)); // the task takes the lock before it changes this
    if (!fetching) {
      failed(null, count);
    }
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

  private void ended(List<Run> runs, FirnException failure, int count, long askedAt) {
    List<Runnable> then;
    lock.lock();
    try {
      fetching = false;
      if (runs == null) {
        failed(failure, count);
      } else if (!closed) {
        next = new Buffer(runs, count, askedAt);
        lastFetchMs = Server.now() - askedAt;
        soonMs = lateMs = 0;
        expireLater(next);
      }
      fetched.signalAll();
      then = awaitFetched;
      awaitFetched = new ArrayList<>();
    } finally {
      lock.unlock();
    }
    then.forEach(Runnable::run);
  }

  /** Threads do not read the clock for each id, so a timer drops the pieces of a buffer that is too old. */
  private void expireLater(Buffer buffer) {
    if (tag.maxAgeMs > 0) {
      engine.later(Math.max(0, buffer.askedAt + tag.maxAgeMs - Server.now()), () -> expire(buffer));
    }
  }

  private void expire(Buffer buffer) {
    lock.lock();
    try {
      clearLanes(buffer);
    } finally {
      lock.unlock();
    }
  }

  private void failed(FirnException failure, int count) {
    long now = Server.now();
    boolean refused = failure != null && failure.kind() == FirnException.Kind.REFUSED;
    if (refused && failure.reason() == Reason.UNKNOWN_TAG) { // it was deleted: no more ids of it
      inUse = next = EMPTY;
      clearLanes(null);
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
