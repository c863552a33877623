package io.firn;

import io.firn.wire.ServerState;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;

/** One server; the fleet's lock guards all but its room.
 *
 * <p>It is ill after 3 failures in a row, or when half of its last 20 calls failed. An ill server rests
 * for 1 s at first, twice as long each time up to 30 s, spread over the upper half; any success ends that
 * and forgets all failures. */
final class Server {
  // In the order in which servers are asked: the later ones only when no earlier one is left.
  enum Fitness { FIT, ILL, RESTING, DISABLED, DRAINING, LAST_RESORT, QUARANTINED }

  static final long NEVER = Long.MAX_VALUE;
  private static final int WINDOW = 20;
  private static final long FIRST_REST_MS = 1000;
  static final long LONGEST_REST_MS = 30_000;

  final String address;
  final String host;
  final int port;
  final boolean named; // and so to be looked up
  final Semaphore room; // fair: whoever came first goes first
  final Deque<Connection> idle = new ArrayDeque<>();
  List<InetAddress> addresses = List.of();
  int rack;
  int weight = 100;
  boolean online = true;
  boolean tls;
  ServerState state = ServerState.READY;
  boolean lastResort;
  int inFlight;
  String why = "";
  long notReadyUntil;
  final Map<String, Long> downUntil = new HashMap<>();   // by tag: without its store
  final Map<String, Long> closedUntil = new HashMap<>(); // by tag: given up here
  boolean draining;
  boolean quarantined;
  private long quarantineMs = 500;
  long lookAt = NEVER; // when its status is to be asked in the background
  long resolveAt;
  long restUntil = NEVER; // NEVER: it does not rest
  private long restMs;
  private int inARow;
  private int window; // the last calls, newest in bit 0; 1: failed

  Server(String address, int connectionsMax) {
    this.address = address;
    host = Options.hostOf(address);
    port = Options.portOf(address);
    room = new Semaphore(connectionsMax, true);
    named = !host.matches("[0-9.]+|.*:.*");
    if (!named) {
      try {
        addresses = List.of(InetAddress.getByName(host)); // asks nobody: it is a number
      } catch (UnknownHostException odd) {
        addresses = List.of();
      }
    }
  }

  /** Milliseconds of a clock that only goes forward. */
  static long now() {
    return System.nanoTime() / 1_000_000;
  }

  static long upperHalf(long ms) {
    return ms / 2 + ThreadLocalRandom.current().nextLong(ms / 2 + 1);
  }

  Fitness fitness(String tag, boolean needsMachine, long now) {
    boolean notReady = state == ServerState.NOT_READY || now < notReadyUntil;
    if (quarantined) {
      return Fitness.QUARANTINED;
    }
    if (lastResort) {
      return Fitness.LAST_RESORT;
    }
    if (draining || state == ServerState.DRAINING || state == ServerState.OFFLINE
        || now < closedUntil.getOrDefault(tag, now)) {
      return Fitness.DRAINING;
    }
    if (!online || weight <= 0) {
      return Fitness.DISABLED;
    }
    if (resting() || (notReady && needsMachine) || now < downUntil.getOrDefault(tag, now)) {
      return Fitness.RESTING;
    }
    return ill() ? Fitness.ILL : Fitness.FIT;
  }

  double share() {
    return Math.max(weight, 1);
  }

  boolean ill() {
    return inARow >= 3 || Integer.bitCount(window) * 2 >= WINDOW;
  }

  boolean resting() {
    return restUntil != NEVER;
  }

  /** A call went well, and the server is not ill. */
  void answered() {
    inARow = 0;
    window = window << 1 & ((1 << WINDOW) - 1);
  }

  void failed(int times) {
    for (int i = 0; i < times; i++) {
      inARow++;
      window = (window << 1 | 1) & ((1 << WINDOW) - 1);
    }
  }

  void recovered() {
    inARow = 0;
    window = 0;
    restMs = 0;
    restUntil = NEVER;
    lookAt = NEVER;
  }

  void rest() {
    restMs = Math.min(Math.max(FIRST_REST_MS, 2 * restMs), LONGEST_REST_MS);
    restUntil = now() + upperHalf(restMs);
    lookAt = restUntil;
  }

  void quarantine(String because) {
    quarantined = true;
    why = because;
    quarantineMs = Math.min(2 * quarantineMs, LONGEST_REST_MS);
    lookAt = now() + upperHalf(quarantineMs);
  }

  static void remember(Map<String, Long> times, String tag, long until) {
    if (times.size() >= 1000) {
      times.clear();
    }
    times.put(tag, until);
  }

  void resolved(InetAddress[] found) {
    addresses = Arrays.asList(found);
  }
}
