package io.firn;

/** Outcome of an attempt without an answer. */
final class Failure extends Exception {
  private static final long serialVersionUID = 1;

  final Attempt.End end;
  final String detail;
  final Reason reason;
  final long retryAfterMs;
  final boolean anotherMayHelp;
  /** An idle connection ended before the first byte of the answer. */
  final boolean stale;
  /** The failure is the server's already, once for all calls that it ends. */
  boolean counted;
  /** The server does not have the method; it may be older. */
  boolean lacksMethod;
  /** The reason of a refusal that is about leases; otherwise null. Then `reason` is null, too. */
  LeaseWire.Fault leaseFault;
  /** The server that has the lease, if the refusal names one. */
  String leaseServer = "";

  Failure(Attempt.End end, String detail) {
    this(end, detail, null, 0, false, false);
  }

  Failure(Attempt.End end, String detail, Reason reason, long retryAfterMs, boolean anotherMayHelp,
      boolean stale) {
    super(detail, null, false, false);
    this.end = end;
    this.detail = detail == null ? "" : printable(detail);
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
    this.anotherMayHelp = anotherMayHelp;
    this.stale = stale;
  }

  static Failure lackingMethod(String detail) {
    Failure failure = new Failure(Attempt.End.BROKEN, detail);
    failure.lacksMethod = true;
    return failure;
  }

  static Failure ofLease(LeaseWire.Refusal refusal) {
    Failure failure = new Failure(Attempt.End.REFUSED, refusal.message);
    failure.leaseFault = LeaseWire.Fault.of(refusal.fault);
    failure.leaseServer = refusal.server;
    return failure;
  }

  /** Replaces control characters, with which a server's text could forge lines in a log or a terminal. */
  static String printable(String text) {
    return isPrintable(text) ? text : text.replaceAll("\\p{Cntrl}|[\\x80-\\x9f]", "?");
  }

  static boolean isPrintable(String text) {
    return text.chars().noneMatch(Character::isISOControl);
  }

  /** Returns the outcome, and the detail if there is any. */
  String text() {
    return detail.isEmpty() ? end.toString() : end + ": " + detail;
  }

  boolean unsent() {
    return end == Attempt.End.UNREACHABLE || end == Attempt.End.CONNECT_TIMEOUT
        || end == Attempt.End.NO_ROOM;
  }

  boolean refused() {
    return end == Attempt.End.REFUSED;
  }

  boolean quarantines() {
    return !lacksMethod && (end == Attempt.End.BROKEN || end == Attempt.End.WRONG_SERVICE);
  }
}
