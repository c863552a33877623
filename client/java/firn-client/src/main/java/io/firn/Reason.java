package io.firn;

/** The reason of a refusal. */
public enum Reason {
  BAD_REQUEST, UNKNOWN_TAG, NOT_READY, CLOCK, OVERLOADED, EXHAUSTED, DRAINING, REJECTED, STORE_DOWN,
  INTERNAL;

  private static final Reason[] ALL = values();

  /** The contract's numbers start at 1; a number that is newer than this client means INTERNAL. */
  static Reason of(int number) {
    return number > 0 && number <= ALL.length ? ALL[number - 1] : INTERNAL;
  }
}
