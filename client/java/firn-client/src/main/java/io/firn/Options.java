package io.firn;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

/** The options of a client. Each setter returns this object. A client copies them when it is created. */
public final class Options {
  static final Consumer<Event> NO_HOOK = event -> { };
  private static final String NO_UNIX =
      "; the Java client does not connect to Unix sockets: use the server's host and port";
  final String servers;
  String clusterUuid = "";
  Integer rack;
  boolean failfast;
  int deadlineMs = 200;
  int attemptLimitMs = 80;
  int attemptsMax = 3;
  int connectionsMax = 64;
  int serversMax = 16;
  List<LocalTag> localRanges = List.of();
  Tls tls;
  Consumer<Event> onEvent = NO_HOOK;
  Executor executor;

  private Options(Options other) {
    servers = other.servers;
    clusterUuid = other.clusterUuid;
    rack = other.rack;
    failfast = other.failfast;
    deadlineMs = other.deadlineMs;
    attemptLimitMs = other.attemptLimitMs;
    attemptsMax = other.attemptsMax;
    connectionsMax = other.connectionsMax;
    serversMax = other.serversMax;
    localRanges = other.localRanges;
    tls = other.tls;
    onEvent = other.onEvent;
    executor = other.executor;
  }

  Options copy() {
    return new Options(this);
  }

  /** Servers: firn://seed,seed discovers all through any of these; list://host:port,... names all. */
  public Options(String servers) {
    this.servers = servers;
  }

  /** UUID of the cluster; default: that of the first server that answers. */
  public Options clusterUuid(String uuid) {
    clusterUuid = uuid;
    return this;
  }

  /** Use servers of this rack while one is healthy. */
  public Options rack(int number) {
    rack = number;
    return this;
  }

  /** Return the first failure instead of failing over. */
  public Options failfast(boolean yes) {
    failfast = yes;
    return this;
  }

  /** Maximum time of a call, unless the call sets it; 200. */
  public Options deadlineMs(int ms) {
    deadlineMs = ms;
    return this;
  }

  /** Maximum time of a call, unless the call sets it; 200 ms. */
  public Options deadline(Duration time) {
    return deadlineMs(millis(time));
  }

  /** Maximum time of an attempt, connecting included; 80 ms. */
  public Options attemptLimit(Duration time) {
    return attemptLimitMs(millis(time));
  }

  /** Maximum time of an attempt, connecting included; 80. */
  public Options attemptLimitMs(int ms) {
    attemptLimitMs = ms;
    return this;
  }

  /** Maximum requests per call; 3. */
  public Options attemptsMax(int requests) {
    attemptsMax = requests;
    return this;
  }

  /** Maximum connections per server; each serves one call at a time; 64. Asynchronous calls share others, at most 4. */
  public Options connectionsMax(int connections) {
    connectionsMax = connections;
    return this;
  }

  /** Maximum servers used in a large cluster; 16. 0: all. */
  public Options serversMax(int most) {
    serversMax = most;
    return this;
  }

  /** Tags whose ids are prefetched. */
  public Options localRanges(List<LocalTag> tags) {
    localRanges = List.copyOf(tags);
    return this;
  }

  /** Use TLS for every server. */
  public Options tls(Tls how) {
    tls = how;
    return this;
  }

  /** Receives events about servers, on a thread of its own, one at a time. */
  public Options onEvent(Consumer<Event> hook) {
    onEvent = hook;
    return this;
  }

  /** Completes the futures of asynchronous calls, and so runs what depends on them. Default: at most 64 own threads. */
  public Options executor(Executor runs) {
    executor = runs;
    return this;
  }

  private static int millis(Duration time) {
    return (int) Math.max(0, Math.min(Integer.MAX_VALUE, time.toMillis()));
  }

  boolean listsChange() {
    return servers.startsWith("firn://");
  }

  /** The unique addresses in `servers`. IllegalArgumentException names every fault. */
  List<String> check() {
    List<String> faults = new ArrayList<>();
    range(faults, "deadlineMs", deadlineMs, 1, 3_600_000);
    range(faults, "attemptLimitMs", attemptLimitMs, 1, 3_600_000);
    range(faults, "attemptsMax", attemptsMax, 1, 100);
    range(faults, "connectionsMax", connectionsMax, 1, 10_000);
    range(faults, "serversMax", serversMax, 0, 1_000);
    if (clusterUuid == null || onEvent == null) {
      faults.add((clusterUuid == null ? "clusterUuid" : "onEvent") + " is null");
    }
    Set<String> tags = new HashSet<>();
    for (LocalTag one : localRanges) {
      if (one.tag == null || !tags.add(one.tag)) {
        faults.add("localRanges has the tag " + one.tag + (one.tag == null ? "" : " twice"));
      }
    }
    LinkedHashSet<String> addresses = new LinkedHashSet<>();
    if (servers == null) {
      faults.add("servers is null, neither firn://... nor list://...");
    } else if (!listsChange() && !servers.startsWith("list://")) {
      faults.add("servers is '" + servers + "', neither firn://... nor list://...");
    } else {
      for (String address : servers.substring("firn://".length()).split(",", -1)) {
        if (portOf(address) == 0) {
          faults.add("'" + address + "' is not host:port" + (address.startsWith("unix:") ? NO_UNIX : ""));
        }
        addresses.add(address);
      }
    }
    if (!faults.isEmpty()) {
      throw new IllegalArgumentException(String.join("; ", faults));
    }
    return List.copyOf(addresses);
  }

  private static void range(List<String> faults, String name, int value, int low, int high) {
    if (value < low || value > high) {
      faults.add(name + " is " + value + ", not " + low + " to " + high);
    }
  }

  /** The port of host:port; 0 if it is invalid. An IPv6 host has brackets. */
  static int portOf(String address) {
    int mark = address.lastIndexOf(':');
    boolean bracketed = mark > 0 && address.charAt(mark - 1) == ']' && address.startsWith("[");
    if (mark < 1 || (!bracketed && address.indexOf(':') != mark)) {
      return 0;
    }
    try {
      int port = Integer.parseInt(address.substring(mark + 1));
      return port > 0 && port < 65536 ? port : 0;
    } catch (NumberFormatException none) {
      return 0;
    }
  }

  static String hostOf(String address) {
    String host = address.substring(0, address.lastIndexOf(':'));
    return host.startsWith("[") ? host.substring(1, host.length() - 1) : host;
  }
}
