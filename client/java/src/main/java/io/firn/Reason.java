package io.firn;

/** Why a server said no. */
public enum Reason {
  BAD_REQUEST, UNKNOWN_TAG, NOT_READY, CLOCK, OVERLOADED, EXHAUSTED, DRAINING, REJECTED, STORE_DOWN,
  INTERNAL;

  /** The numbers of the contract begin with 1; one that is newer than this client is INTERNAL. */
  static Reason of(io.firn.wire.Reason told) {
    return told == null ? INTERNAL : valueOf(told.name());
  }
}
