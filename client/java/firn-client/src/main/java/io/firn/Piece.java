package io.firn;

import io.firn.Wire.Run;
import java.util.concurrent.atomic.AtomicLong;

/** Prefetched ids of one run. Threads take from it without a lock; its value counts the ids that were taken, and can
 * exceed their number. It fills cache lines of its own, because each piece is mostly used by one thread. */
final class Piece extends AtomicLong {
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
