package io.firn;

import java.util.List;
import java.util.stream.Collectors;

/** A failed call. Lists every attempt with the server, the outcome and the duration. */
public final class FirnException extends Exception {
  private static final long serialVersionUID = 1;

  /** The classes of failures. */
  public enum Kind {
    /** A server refused for a reason that other servers would repeat. */
    REFUSED,
    /** No server could answer now. */
    UNAVAILABLE,
    /** A LocalGenerator has no lease of a machine id. */
    NO_LEASE,
    /** The client was closed. */
    CLOSED
  }

  private final Kind kind;
  private final Reason reason;
  private final long retryAfterMs;
  private final List<Attempt> attempts;

  FirnException(Kind kind, String sentence, Reason reason, long retryAfterMs, List<Attempt> attempts) {
    super(sentence + attempts.stream().map(one -> "; " + one).collect(Collectors.joining()));
    this.kind = kind;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
    this.attempts = List.copyOf(attempts); // which is serializable
  }

  public Kind kind() {
    return kind;
  }

  /** The reason of the last refusal; null if no server refused. */
  public Reason reason() {
    return reason;
  }

  /** The server's advice when to retry; 0: none. */
  public long retryAfterMs() {
    return retryAfterMs;
  }

  public List<Attempt> attempts() {
    return attempts;
  }
}
