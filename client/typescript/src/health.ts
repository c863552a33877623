export const FAILURES_IN_A_ROW = 3;
const FAILURE_WINDOW = 20;
const WINDOW_MASK = (1 << FAILURE_WINDOW) - 1;
const FIRST_EJECTION_MS = 1_000;
const LONGEST_EJECTION_MS = 30_000;

/**
 * An exponential backoff: twice as long each time, up to a longest, and drawn from the upper half, so that clients
 * do not return together. It starts again when nothing failed for as long as the longest.
 */
export class Backoff {
  private length = 0;
  private until = -Infinity;

  next(now: number, first: number, longest: number): number {
    if (now > this.until + longest) this.length = 0;
    this.length = Math.min(Math.max(2 * this.length, first), longest);
    const spread = this.length / 2 + Math.random() * (this.length / 2);
    this.until = now + spread;
    return spread;
  }
}

/**
 * Recent failures of a server. After 3 failures in a row, or when half of its last 20 calls failed, the server is out:
 * ejected, or, if half of the servers already are, failing and called after the healthy ones.
 */
export class Health {
  out = false;
  ejected = false;
  private times = new Backoff();
  private inARow = 0;
  private window = 0; // the last calls, newest in bit 0; 1: failed

  get tooManyFailures(): boolean {
    return this.inARow >= FAILURES_IN_A_ROW || ones(this.window) * 2 >= FAILURE_WINDOW;
  }

  answered(): void {
    this.inARow = 0;
    this.window = (this.window << 1) & WINDOW_MASK;
  }

  failed(times: number): void {
    for (let i = 0; i < times; i++) {
      this.inARow++;
      this.window = ((this.window << 1) | 1) & WINDOW_MASK;
    }
  }

  /** A probe found it healthy: forgets the failures, but not how long it was last out. */
  seen(): void {
    this.out = this.ejected = false;
    this.inARow = this.window = 0;
  }

  /** A call was answered: forgets everything. */
  reset(): void {
    this.seen();
    this.times = new Backoff();
  }

  /** Begins a time out; returns its length. */
  takeOut(eject: boolean, now: number): number {
    this.out = true;
    this.ejected = eject;
    return this.times.next(now, FIRST_EJECTION_MS, LONGEST_EJECTION_MS);
  }
}

function ones(bits: number): number {
  let count = 0;
  for (let rest = bits; rest; rest &= rest - 1) count++;
  return count;
}

const RETRIES_PER_CALL = 0.2;
const RETRIES_PER_SECOND = 10;
const RETRIES_MOST = 200;

/** Limits the retries of all calls together, so that clients do not multiply the load on slow servers. */
export class RetryBudget {
  private spent = 0;
  private last = 0;

  callBegins(): void {
    this.earn(RETRIES_PER_CALL);
  }

  /** Pays for one retry; returns false when the budget is exhausted. */
  take(now: number): boolean {
    this.earn((RETRIES_PER_SECOND * (now - this.last)) / 1000);
    this.last = now;
    if (this.spent > RETRIES_MOST - 1) return false;
    this.spent++;
    return true;
  }

  private earn(retries: number): void {
    this.spent = Math.max(0, this.spent - retries);
  }
}
