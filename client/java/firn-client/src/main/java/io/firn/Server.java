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
 * <p>After 3 failures in a row, or when half of its last 20 calls failed, the server is ejected for 1 s, doubling
 * to 30 s, spread over the upper half. Any success ends this and clears all failures. An answer that violates the
 * protocol quarantines it for 30 s, doubling to 5 min. A server of another cluster is foreign, and probed like an
 * ejected one. */
final class Server {
  // In the order of use: servers of a later standing only if none of an earlier one is left.
  enum Standing { HEALTHY, FAILING, EJECTED, DISABLED, DRAINING, LAST_RESORT, QUARANTINED }

  static final long NEVER = Long.MAX_VALUE;
  private static final int WINDOW = 20;
  private static final long FIRST_EJECTION_MS = 1000;
  static final long LONGEST_EJECTION_MS = 30_000;
  private static final long FIRST_QUARANTINE_MS = 30_000;
  private static final long LONGEST_QUARANTINE_MS = 300_000;
  private static final long FIRST_CONNECT_PAUSE_MS = 10;
  private static final long LONGEST_CONNECT_PAUSE_MS = 100;
  private static final long MOVES_EVERY = 10; // in times of an attempt

  final String address;
  final String host;
  final int port;
  final boolean named; // the host is a name, which must be resolved
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
  volatile boolean gone; // no longer in the list
  String why = "";
  long notReadyUntil;
  final Map<String, Long> downUntil = new HashMap<>();   // by tag: its store is down
  final Map<String, Long> closedUntil = new HashMap<>(); // by tag: refused with DRAINING
  boolean draining;
  boolean quarantined;
  boolean foreign; // quarantined, as a server of another cluster or service
  volatile boolean spoke; // whether the last connection received its status
  long connectAt; // no call opens a connection before this time
  private long connectPauseMs;
  private long quarantineMs;
  long probeAt = NEVER; // time of the next probe
  long resolveAt;
  long ejectedUntil = NEVER; // NEVER: it is not ejected
  boolean out; // it failed too often, and has not answered since
  private long ejectionMs;
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

  Standing standing(String tag, boolean needsMachine, long now) {
    boolean notReady = state == Wire.State.NOT_READY || now < notReadyUntil;
    if (quarantined) {
      return Standing.QUARANTINED;
    }
    if (lastResort) {
      return Standing.LAST_RESORT;
    }
    if (draining || state == Wire.State.DRAINING || state == Wire.State.OFFLINE
        || lasts(closedUntil, tag, now)) {
      return Standing.DRAINING;
    }
    if (!online || weight <= 0) {
      return Standing.DISABLED;
    }
    if (ejected() || (notReady && needsMachine) || lasts(downUntil, tag, now)) {
      return Standing.EJECTED;
    }
    return tooManyFailures() ? Standing.FAILING : Standing.HEALTHY;
  }

  private static boolean lasts(Map<String, Long> untils, String tag, long now) {
    return !untils.isEmpty() && now < untils.getOrDefault(tag, now); // usually without a hash
  }

  double share() {
    return Math.max(weight, 1);
  }

  boolean tooManyFailures() {
    return inARow >= 3 || Integer.bitCount(window) * 2 >= WINDOW;
  }

  boolean ejected() {
    return ejectedUntil != NEVER;
  }

  /** A call went well, and the server has not failed too often. */
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
    ejectionMs = 0;
    ejectedUntil = NEVER;
    if (!quarantined && !draining) { // these are probed all the same
      probeAt = NEVER;
    }
    out = false;
  }

  /** Ejects the server, or, if too many servers are ejected, calls it after the healthy ones. It is probed either way. */
  void takeOut(boolean eject) {
    ejectionMs = Math.min(Math.max(FIRST_EJECTION_MS, 2 * ejectionMs), LONGEST_EJECTION_MS);
    probeAt = now() + upperHalf(ejectionMs);
    ejectedUntil = eject ? probeAt : NEVER;
    out = true;
  }

  void quarantine(boolean isForeign, String because) {
    if (foreign != isForeign) {
      quarantineMs = 0;
    }
    quarantined = true;
    foreign = isForeign;
    why = because;
    long first = isForeign ? FIRST_EJECTION_MS : FIRST_QUARANTINE_MS;
    long longest = isForeign ? LONGEST_EJECTION_MS : LONGEST_QUARANTINE_MS;
    quarantineMs = Math.min(Math.max(first, 2 * quarantineMs), longest);
    probeAt = now() + upperHalf(quarantineMs);
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
