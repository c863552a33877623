package io.firn;

/** One server as a client sees it. */
public final class SeenServer {
  public final String address;
  public final int rack;
  public final int weight;
  /** One of: fit, ill, resting, disabled, draining, last resort, quarantined. */
  public final String fitness;
  /** A sentence, unless it is fit. */
  public final String why;
  public final int inFlight;

  SeenServer(String address, int rack, int weight, String fitness, String why, int inFlight) {
    this.address = address;
    this.rack = rack;
    this.weight = weight;
    this.fitness = fitness;
    this.why = why;
    this.inFlight = inFlight;
  }

  @Override
  public String toString() {
    return address + " " + fitness + (why.isEmpty() ? "" : " (" + why + ")") + " rack=" + rack + " weight=" + weight
        + " inFlight=" + inFlight;
  }
}
