package io.firn;

/** A tag whose ids are fetched ahead of need, so that one costs no call. */
public final class LocalTag {
  final String tag;
  final long maxAgeMs; // 0: ids keep
  final long lastsMs;

  private LocalTag(String tag, long maxAgeMs, long lastsMs) {
    this.tag = tag;
    this.maxAgeMs = maxAgeMs;
    this.lastsMs = lastsMs;
  }

  /** Ids made of time: a second old at most. */
  public static LocalTag snowflake(String tag) {
    return new LocalTag(tag, 1000, 250);
  }

  /** Ids made of counting: they keep. */
  public static LocalTag segment(String tag) {
    return new LocalTag(tag, 0, 1000);
  }
}
