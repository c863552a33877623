package io.firn;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;

/** One server; the fleet's lock guards all but its room and its connections.
 *
 * <p>It is ill after 3 failures in a row, or when half of its last 20 calls failed. An ill server rests
 * for 1 s at first, twice as long each time up to 30 s, spread over the upper half; any success ends that
 * and forgets all failures. An answer that breaks the protocol quarantines it for 30 s, twice as long each
 * time up to 5 min; another cluster's server is foreign, and probed as one that rests. */
final class Server {
  // In the order of use: servers of a later standing only if none of an earlier one is left.
  enum Fitness { FIT, ILL, RESTING, DISABLED, DRAINING, LAST_RESORT, QUARANTINED }

  static final long NEVER = Long.MAX_VALUE;
  private static final int WINDOW = 20;
  private static final long FIRST_REST_MS = 1000;
  static final long LONGEST_REST_MS = 30_000;
  private static final long FIRST_QUARANTINE_MS = 30_000;
  private static final long LONGEST_QUARANTINE_MS = 300_000;
  private static final long FIRST_CONNECT_PAUSE_MS = 10;
  private static final long LONGEST_CONNECT_PAUSE_MS = 100;
  private static final long MOVES_EVERY = 10; // in times of an attempt

  final String address;
  final String host;
  final int port;
  final boolean named; // and so to be looked up
  final Semaphore room; // fair: calls get a place in order of arrival
  final Pool pool; // of connections that asynchronous calls share
  final Deque<Connection> idle = new ConcurrentLinkedDeque<>(); // the one used last comes first
  List<InetAddress> addresses = List.of();
  int rack;
  int weight = 100;
  boolean online = true;
  boolean tls;
  Wire.State state = Wire.State.READY;
  boolean lastResort;
  final AtomicInteger inFlight = new AtomicInteger();
  volatile boolean gone; // from the list
  String why = "";
  long notReadyUntil;
  final Map<String, Long> downUntil = new HashMap<>();   // by tag: without its store
  final Map<String, Long> closedUntil = new HashMap<>(); // by tag: given up here
  boolean draining;
  boolean quarantined;
  boolean foreign; // quarantined, as a server of another cluster or service
  volatile boolean spoke; // on the last connection, it sent its status: it speaks as this client does
  long connectAt; // no call opens a connection before
  private long connectPauseMs;
  private long quarantineMs;
  long lookAt = NEVER; // when its status is to be asked in the background
  long resolveAt;
  long restUntil = NEVER; // NEVER: it does not rest
  boolean out; // it failed too often, and has not answered since
  private long restMs;
  long answeredAt; // when it last answered a call
  private long lostAt; // when a call last timed out here
  private long movesUntil;
  private long movesAgainAt;
  private int inARow;
  private int window; // the last calls, newest in bit 0; 1: failed

  Server(String address, int connectionsMax) {
    this.address = address;
    host = Options.hostOf(address);
    port = Options.portOf(address);
    room = new Semaphore(connectionsMax, true);
    pool = new Pool(this, connectionsMax);
    named = !host.matches("[0-9.]+|.*:.*");
    if (!named) {
      try {
        addresses = List.of(InetAddress.getByName(host)); // an address: needs no lookup
      } catch (UnknownHostException odd) {
        addresses = List.of();
      }
    }
  }

  /** Milliseconds of a monotonic clock. */
  static long now() {
    return System.nanoTime() / 1_000_000;
  }

  static long upperHalf(long ms) {
    return ms / 2 + ThreadLocalRandom.current().nextLong(ms / 2 + 1);
  }

  Fitness fitness(String tag, boolean needsMachine, long now) {
    boolean notReady = state == Wire.State.NOT_READY || now < notReadyUntil;
    if (quarantined) {
      return Fitness.QUARANTINED;
    }
    if (lastResort) {
      return Fitness.LAST_RESORT;
    }
    if (draining || state == Wire.State.DRAINING || state == Wire.State.OFFLINE
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

  /** Records that a call timed out. Returns whether it may move to another server free of the retry budget: another
   * call has timed out here since {@code began}, others answer, and the last move is long ago, or has just begun. */
  boolean mayMove(long began, long now, long attemptLimitMs, boolean othersAnswer) {
    boolean shared = lostAt > began;
    lostAt = now;
    if (!shared || !othersAnswer) {
      return false;
    }
    if (now >= movesAgainAt) {
      movesUntil = now + attemptLimitMs;
      movesAgainAt = now + MOVES_EVERY * attemptLimitMs;
    }
    return now < movesUntil;
  }

  void recovered() {
    inARow = 0;
    window = 0;
    restMs = 0;
    restUntil = NEVER;
    if (!quarantined && !draining) { // these are probed all the same
      lookAt = NEVER;
    }
    out = false;
  }

  /** Rests, or, where too many servers rest already, is only asked after the fit ones; probed either way. */
  void takeOut(boolean rests) {
    restMs = Math.min(Math.max(FIRST_REST_MS, 2 * restMs), LONGEST_REST_MS);
    lookAt = now() + upperHalf(restMs);
    restUntil = rests ? lookAt : NEVER;
    out = true;
  }

  void quarantine(boolean isForeign, String because) {
    if (foreign != isForeign) {
      quarantineMs = 0;
    }
    quarantined = true;
    foreign = isForeign;
    why = because;
    long first = isForeign ? FIRST_REST_MS : FIRST_QUARANTINE_MS;
    long longest = isForeign ? LONGEST_REST_MS : LONGEST_QUARANTINE_MS;
    quarantineMs = Math.min(Math.max(first, 2 * quarantineMs), longest);
    lookAt = now() + upperHalf(quarantineMs);
  }

  /** After a connection that failed, calls open no other one for 10 ms, doubling to 100 ms. */
  void dialled(boolean connected) {
    spoke &= connected;
    connectPauseMs = connected ? 0 : Math.min(Math.max(FIRST_CONNECT_PAUSE_MS, 2 * connectPauseMs),
        LONGEST_CONNECT_PAUSE_MS);
    connectAt = connected ? 0 : now() + upperHalf(connectPauseMs);
  }

  /** A call is about to use the server: after a failed connection one call alone dials, and the others wait
   * for its outcome. */
  void used(long now, long dialLimitMs) {
    if (connectPauseMs > 0 && !isConnected()) {
      connectAt = now + dialLimitMs;
    }
  }

  boolean recovers(boolean connected) {
    return connected && connectPauseMs > 0;
  }

  boolean mayServe(long now) {
    return now >= connectAt || isConnected();
  }

  private boolean isConnected() {
    return !idle.isEmpty() || pool.isOpen();
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
