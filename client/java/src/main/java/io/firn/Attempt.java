package io.firn;

import java.io.Serializable;
import java.util.Locale;

/** One server that a call asked. */
public final class Attempt implements Serializable {
  private static final long serialVersionUID = 1;

  /** What became of asking it. */
  public enum End {
    /** Refused, no route, reset while connecting. */
    UNREACHABLE("unreachable"),
    /** Nobody took the connection in time. */
    CONNECT_TIMEOUT("connect timeout"),
    /** The connection ended before the whole answer. */
    CLOSED("closed"),
    /** No answer, or not all of it, in time. */
    TIMEOUT("timeout"),
    /** What came is not an answer to what was asked. */
    BROKEN("broken"),
    /** It is not an IdService of this cluster. */
    WRONG_SERVICE("wrong service"),
    /** A typed "no". */
    REFUSED("refused"),
    /** This client could not use it: all connections were busy, or no file descriptor was left. */
    NO_ROOM("no room");

    private final String words;

    End(String words) {
      this.words = words;
    }

    @Override
    public String toString() {
      return words;
    }
  }

  public final String server;
  public final End end;
  /** Null unless it refused. */
  public final Reason reason;
  public final double tookMs;
  public final String detail;

  Attempt(String server, End end, Reason reason, double tookMs, String detail) {
    this.server = server;
    this.end = end;
    this.reason = reason;
    this.tookMs = tookMs;
    this.detail = detail;
  }

  @Override
  public String toString() {
    return server + " " + end + (reason == null ? "" : " (" + reason + ")")
        + String.format(Locale.ROOT, " after %.1f ms", tookMs)
        + (detail.isEmpty() ? "" : ": " + detail);
  }
}
