package io.firn;

/** Limits how many requests all calls together may add as retries, so that clients do not multiply the
 * load on servers that are already slow. Each call earns a fifth of a retry and each second earns ten; at
 * most 200 are stored. Thread-safe. */
final class RetryBudget {
  private static final double PER_CALL = 0.2;
  private static final double PER_MS = 0.01;
  private static final double MOST = 200;

  private double tokens = MOST;
  private long last;

  RetryBudget(long nowMs) {
    last = nowMs;
  }

  synchronized void callBegins() {
    tokens = Math.min(MOST, tokens + PER_CALL);
  }

  /** Pays for one retry; false when the budget is exhausted. */
  synchronized boolean take(long nowMs) {
    tokens = Math.min(MOST, tokens + PER_MS * Math.max(0, nowMs - last));
    last = Math.max(last, nowMs);
    if (tokens < 1) {
      return false;
    }
    tokens -= 1;
    return true;
  }
}
