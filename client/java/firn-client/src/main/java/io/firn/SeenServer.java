package io.firn;

/** One server as a client sees it. */
public final class SeenServer {
  public final String address;
  public final int rack;
  public final int weight;
  /** One of: healthy, failing, ejected, disabled, draining, last resort, quarantined. */
  public final String health;
  /** A sentence, unless it is healthy. */
  public final String why;
  public final int inFlight;

  SeenServer(String address, int rack, int weight, String health, String why, int inFlight) {
    this.address = address;
    this.rack = rack;
    this.weight = weight;
    this.health = health;
    this.why = why;
    this.inFlight = inFlight;
  }

  @Override
  public String toString() {
    return address + " " + health + (why.isEmpty() ? "" : " (" + why + ")") + " rack=" + rack + " weight=" + weight
        + " inFlight=" + inFlight;
  }
}
