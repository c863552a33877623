package io.firn;

/** A lease that a generator has lost. Until the next one, {@link LocalGenerator#next} throws. */
public final class LeaseLoss {
  /** How a lease was lost. */
  public enum Kind {
    /** A server ended it, because another process may have its ids. */
    REVOKED,
    /** Its interval ended before a server extended it. */
    EXPIRED
  }

  public final Kind kind;
  public final int machineId;
  /** A sentence. */
  public final String reason;

  LeaseLoss(Kind kind, int machineId, String reason) {
    this.kind = kind;
    this.machineId = machineId;
    this.reason = reason;
  }

  @Override
  public String toString() {
    return reason;
  }
}
