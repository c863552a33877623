package io.firn;

/** A tag whose ids are prefetched, so that taking one costs no call. */
public final class LocalTag {
  final String tag;
  final long maxAgeMs; // 0: ids are kept
  final long lastsMs;
  final int fetchMax;

  private LocalTag(String tag, long maxAgeMs, long lastsMs, int fetchMax) {
    this.tag = tag;
    this.maxAgeMs = maxAgeMs;
    this.lastsMs = lastsMs;
    this.fetchMax = fetchMax;
  }

  /** For snowflake tags: ids at most 1 s old. A fetch takes what a server issues in 25 ms. */
  public static LocalTag snowflake(String tag) {
    return new LocalTag(tag, 1000, 250, 100_000);
  }

  /** For segment tags: ids are kept. */
  public static LocalTag segment(String tag) {
    return new LocalTag(tag, 0, 1000, 10_000_000);
  }
}
