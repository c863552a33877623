package io.firn;

import java.io.Serializable;
import java.util.Locale;

/** An attempt of a call at one server. */
public final class Attempt implements Serializable {
  private static final long serialVersionUID = 1;

  /** The outcome of an attempt. */
  public enum End {
    /** Refused, no route, reset while connecting. */
    UNREACHABLE("unreachable"),
    /** The connection was not accepted in time. */
    CONNECT_TIMEOUT("connect timeout"),
    /** The connection ended before the complete answer. */
    CLOSED("closed"),
    /** No complete answer in time. */
    TIMEOUT("timeout"),
    /** The received bytes are not an answer to the request. */
    BROKEN("broken"),
    /** The server is not an IdService of this cluster. */
    WRONG_SERVICE("wrong service"),
    /** The server refused with a reason. */
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
  /** Null unless the server refused. */
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
