package io.firn;

import java.util.List;
import java.util.stream.Collectors;

/** A call that failed; it lists every server that was asked, what happened, and after how long. */
public final class FirnException extends Exception {
  private static final long serialVersionUID = 1;

  /** What the caller should think of it. */
  public enum Kind {
    /** A server said no, and no other one would say otherwise. */
    REFUSED,
    /** Nobody could answer now. */
    UNAVAILABLE,
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

  /** That of the last refusal; null when nobody refused. */
  public Reason reason() {
    return reason;
  }

  /** The server's advice when to come back; 0: none. */
  public long retryAfterMs() {
    return retryAfterMs;
  }

  public List<Attempt> attempts() {
    return attempts;
  }
}
