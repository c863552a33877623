package io.firn;

/** A tag whose ids are fetched ahead of need, so that one costs no call. */
public final class LocalTag {
  final String tag;
  final long maxAgeMs; // 0: ids keep
  final long lastsMs;
  final int fetchMax;

  private LocalTag(String tag, long maxAgeMs, long lastsMs, int fetchMax) {
    this.tag = tag;
    this.maxAgeMs = maxAgeMs;
    this.lastsMs = lastsMs;
    this.fetchMax = fetchMax;
  }

  /** Ids made of time: a second old at most. A fetch takes 25 ms of what a server can give. */
  public static LocalTag snowflake(String tag) {
    return new LocalTag(tag, 1000, 250, 100_000);
  }

  /** Ids made of counting: they keep. */
  public static LocalTag segment(String tag) {
    return new LocalTag(tag, 0, 1000, 10_000_000);
  }
}
