package io.firn;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.function.Consumer;

/** Everything about a client that is decided once. Each setter returns this object. */
public final class Options {
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
  Consumer<Event> onEvent = event -> { };

  /** The servers firn://seed,seed, which tell the others, or list://host:port,..., which are all. */
  public Options(String servers) {
    this.servers = servers;
  }

  /** The cluster that it must be; that of the first server that answers unless said. */
  public Options clusterUuid(String uuid) {
    clusterUuid = uuid;
    return this;
  }

  /** Ask servers of this rack while one is fit. */
  public Options rack(int number) {
    rack = number;
    return this;
  }

  /** Tell the first failure, and ask nobody else. */
  public Options failfast(boolean yes) {
    failfast = yes;
    return this;
  }

  /** Of a whole call, unless the call says otherwise; 200. */
  public Options deadlineMs(int ms) {
    deadlineMs = ms;
    return this;
  }

  /** Of one server's answer, connecting included; 80. */
  public Options attemptLimitMs(int ms) {
    attemptLimitMs = ms;
    return this;
  }

  /** Requests that a call may send; 3. */
  public Options attemptsMax(int requests) {
    attemptsMax = requests;
    return this;
  }

  /** Per server, one for each call at a time; 64. */
  public Options connectionsMax(int connections) {
    connectionsMax = connections;
    return this;
  }

  /** Keep to so many servers of a large cluster; 16, and 0 for all. */
  public Options serversMax(int most) {
    serversMax = most;
    return this;
  }

  /** Tags whose ids are fetched ahead of need. */
  public Options localRanges(List<LocalTag> tags) {
    localRanges = List.copyOf(tags);
    return this;
  }

  /** Speak TLS to every server. */
  public Options tls(Tls how) {
    tls = how;
    return this;
  }

  /** Told what happens to servers, on any thread; must return soon. */
  public Options onEvent(Consumer<Event> hook) {
    onEvent = hook;
    return this;
  }

  boolean listsChange() {
    return servers.startsWith("firn://");
  }

  /** The addresses that `servers` names, each once. IllegalArgumentException names every fault. */
  List<String> check() {
    List<String> faults = new ArrayList<>();
    range(faults, "deadlineMs", deadlineMs, 1, 3_600_000);
    range(faults, "attemptLimitMs", attemptLimitMs, 1, 3_600_000);
    range(faults, "attemptsMax", attemptsMax, 1, 100);
    range(faults, "connectionsMax", connectionsMax, 1, 10_000);
    range(faults, "serversMax", serversMax, 0, 1_000);
    LinkedHashSet<String> addresses = new LinkedHashSet<>();
    if (!listsChange() && !servers.startsWith("list://")) {
      faults.add("servers is '" + servers + "', neither firn://... nor list://...");
    } else {
      for (String address : servers.substring("firn://".length()).split(",", -1)) {
        if (portOf(address) == 0) {
          faults.add("'" + address + "' is not host:port");
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

  /** The port of host:port; 0 when it is none. An IPv6 host has brackets. */
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
