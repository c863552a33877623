/** A reading of both clocks, in milliseconds: the wall clock, and one that only advances. */
export interface Now {
  readonly wallMs: number;
  readonly monoMs: number;
}

const JUMP_MAX_MS = 5_000;
const JUMP_HOLD_MS = 30_000;

/**
 * The id clock, as servers have it (common/id/id_pace.h): computes its time from readings of both clocks.
 *
 * 1. It starts at the first wall time, and never goes back, except by `restart`.
 * 2. It advances with the monotonic clock. The result is the expected time.
 * 3. A wall clock that is ahead of it by at most 5 s is followed; one that is further ahead, after 30 s.
 * 4. While the wall clock is behind, the id clock continues: at nine tenths of its pace if the difference is at most
 *    5 s, so that it vanishes.
 */
export class IdPace {
  timeMs = -Infinity;
  private seen: Now | undefined;
  private jump: { readonly sinceMs: number; readonly aheadMs: number } | undefined;

  /** Returns the time. Ignores a reading that is older than the last one. */
  advance(now: Now): number {
    if (!this.seen) {
      this.seen = now;
      return this.timeMs = Math.max(this.timeMs, now.wallMs);
    }
    const passedMs = now.monoMs - this.seen.monoMs;
    if (passedMs < 0) return this.timeMs;
    this.seen = now;
    const expectedMs = this.timeMs + passedMs;
    if (now.wallMs >= expectedMs) this.getAhead(now, expectedMs);
    else this.fallBehind(now, expectedMs, passedMs);
    return this.timeMs;
  }

  /** The time is at least this one from now on. */
  raiseTo(timeMs: number): void {
    this.timeMs = Math.max(this.timeMs, timeMs);
  }

  /** Sets the time, as if no clock had been read before. */
  restart(timeMs: number, now: Now): void {
    this.timeMs = timeMs;
    this.seen = now;
    this.jump = undefined;
  }

  private getAhead(now: Now, expectedMs: number): void {
    const aheadMs = now.wallMs - expectedMs;
    if (aheadMs <= JUMP_MAX_MS || this.persists(now, aheadMs)) {
      this.jump = undefined;
      this.timeMs = now.wallMs;
    } else {
      this.timeMs = expectedMs;
    }
  }

  private persists(now: Now, aheadMs: number): boolean {
    if (!this.jump || Math.abs(aheadMs - this.jump.aheadMs) > JUMP_MAX_MS) {
      this.jump = { sinceMs: now.monoMs, aheadMs };
    }
    return now.monoMs - this.jump.sinceMs >= JUMP_HOLD_MS;
  }

  private fallBehind(now: Now, expectedMs: number, passedMs: number): void {
    this.jump = undefined;
    const behindMs = expectedMs - now.wallMs;
    const heldMs = Math.max(this.timeMs, now.wallMs);
    // Two clocks of which one has whole milliseconds differ by up to one.
    if (behindMs <= 1) this.timeMs = heldMs;
    else if (behindMs <= JUMP_MAX_MS) this.timeMs = Math.max(this.timeMs + 0.9 * passedMs, heldMs);
    else this.timeMs = expectedMs;
  }
}
