package io.firn;

/** What asking one server came to, inside the client. */
final class Failure extends Exception {
  private static final long serialVersionUID = 1;

  final Attempt.End end;
  final String detail;
  final Reason reason;
  final long retryAfterMs;
  final boolean anotherMayHelp;
  /** A connection that had been idle ended before a byte of the answer. */
  final boolean stale;

  Failure(Attempt.End end, String detail) {
    this(end, detail, null, 0, false, false);
  }

  Failure(Attempt.End end, String detail, Reason reason, long retryAfterMs, boolean anotherMayHelp,
      boolean stale) {
    super(detail, null, false, false);
    this.end = end;
    this.detail = detail == null ? "" : detail;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
    this.anotherMayHelp = anotherMayHelp;
    this.stale = stale;
  }

  boolean unsent() {
    return end == Attempt.End.UNREACHABLE || end == Attempt.End.CONNECT_TIMEOUT
        || end == Attempt.End.NO_ROOM;
  }

  boolean refused() {
    return end == Attempt.End.REFUSED;
  }

  boolean nonsense() {
    return end == Attempt.End.BROKEN || end == Attempt.End.WRONG_SERVICE;
  }
}
