/** A reading of both clocks, in milliseconds: the wall clock, and one that only advances. */
export interface Now {
  readonly wallMs: number;
  readonly monoMs: number;
}

const JUMP_MAX_MS = 5_000;

/**
 * The id clock: computes its time from readings of both clocks.
 *
 * 1. It starts at the wall clock, and never goes back, except by `restart`.
 * 2. It advances with the monotonic clock. The result is the expected time.
 * 3. It follows a wall clock that is at most 5 s ahead of the expected time. A wall clock that is further ahead has
 *    jumped, and a server must confirm it.
 * 4. While the wall clock is behind, the id clock continues: at nine tenths of its pace if the difference is at most
 *    5 s, so that it vanishes.
 */
export class IdPace {
  timeMs: number;
  /** How far the wall clock has jumped forward without confirmation; 0: it has not. */
  jumpMs = 0;
  private seenMs: number; // by the monotonic clock

  constructor(now: Now) {
    this.timeMs = now.wallMs;
    this.seenMs = now.monoMs;
  }

  /** Returns the time. Ignores a reading that is older than the last one. */
  advance(now: Now): number {
    const passedMs = now.monoMs - this.seenMs;
    if (passedMs < 0) return this.timeMs;
    this.seenMs = now.monoMs;
    const expectedMs = this.timeMs + passedMs;
    const aheadMs = now.wallMs - expectedMs;
    this.jumpMs = aheadMs > JUMP_MAX_MS ? aheadMs : 0;
    if (aheadMs >= 0) this.timeMs = this.jumpMs > 0 ? expectedMs : now.wallMs;
    else this.timeMs = this.behind(now, expectedMs, passedMs);
    return this.timeMs;
  }

  /** The time is at least this one from now on. */
  raiseTo(timeMs: number): void {
    this.timeMs = Math.max(this.timeMs, timeMs);
  }

  /** Sets the time, as if no clock had been read before. */
  restart(timeMs: number, now: Now): void {
    this.timeMs = timeMs;
    this.seenMs = now.monoMs;
    this.jumpMs = 0;
  }

  private behind(now: Now, expectedMs: number, passedMs: number): number {
    const behindMs = expectedMs - now.wallMs;
    const heldMs = Math.max(this.timeMs, now.wallMs);
    // Two clocks of which one has whole milliseconds differ by up to one.
    if (behindMs <= 1) return heldMs;
    return behindMs <= JUMP_MAX_MS ? Math.max(this.timeMs + 0.9 * passedMs, heldMs) : expectedMs;
  }
}
