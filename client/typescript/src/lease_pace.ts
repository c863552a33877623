// How long a lessee waits between attempts, and until when it repeats a release.

/** The delay after the first failure. */
export const RETRY_FIRST_MS = 200;
const RETRY_MAX_MS = 2_000;
const RETRY_MAX_LEAST_MS = 100;
const RETRY_PART = 12; // of the interval: the longest delay after a failure
const ADVICE_MAX_MS = 10_000; // of a server, to wait

/** Returns the longest delay after a failure: a twelfth of the interval, but at least 100 ms, and at most 2 s. */
export function longestDelayMs(intervalMs: number): number {
  return Math.min(Math.max(intervalMs / RETRY_PART, RETRY_MAX_LEAST_MS), RETRY_MAX_MS);
}

/** Returns how long to wait if a server asks for it: not so long that the lease ends. `leftMs` is left of its interval. */
export function advisedMs(adviceMs: number, leftMs: number): number {
  return Math.min(adviceMs, leftMs > 0 ? Math.min(ADVICE_MAX_MS, leftMs / 2) : ADVICE_MAX_MS);
}

/**
 * Returns until when the release of an unused lease is repeated. Its terms may be wrong: an end that has passed, or is
 * more than `aheadMs` away, is ignored.
 */
export function uselessAtMs(endMs: number, timeMs: number, aheadMs: number): number {
  return endMs > timeMs ? Math.min(endMs, timeMs + aheadMs) : timeMs + aheadMs;
}
