package io.firn;

/** The reason of a refusal. */
public enum Reason {
  BAD_REQUEST, UNKNOWN_TAG, NOT_READY, CLOCK, OVERLOADED, EXHAUSTED, DRAINING, REJECTED, STORE_DOWN,
  INTERNAL;

  /** The contract's numbers start at 1; a number that is newer than this client means INTERNAL. */
  static Reason of(io.firn.wire.Reason told) {
    return told == null ? INTERNAL : valueOf(told.name());
  }
}
