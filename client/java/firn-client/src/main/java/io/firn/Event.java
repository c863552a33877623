package io.firn;

/** An event about servers, for the program's log; the library itself logs nothing. */
public final class Event {
  /** One of: list, unhealthy, healthy, quarantined, draining, no server. */
  public final String kind;
  public final String server;
  public final String detail;

  Event(String kind, String server, String detail) {
    this.kind = kind;
    this.server = server;
    this.detail = detail;
  }

  @Override
  public String toString() {
    return kind + (server.isEmpty() ? "" : " " + server) + (detail.isEmpty() ? "" : ": " + detail);
  }
}
