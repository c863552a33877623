package io.firn;

import io.firn.Server.Standing;
import io.firn.Wire.Entry;
import io.firn.Wire.ServerList;
import io.firn.Wire.Status;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Collectors;

/** The servers of a client, their health, and the one that a call asks next. Thread-safe. */
final class Fleet implements Lessee.Servers {
  /** Limits how many requests all calls together may add as retries, so that clients do not multiply the
   * load on servers that are already slow. Each call earns a fifth of a retry and each second earns ten; at
   * most 200 are stored. Thread-safe. */
  static final class RetryBudget {
    private static final double PER_CALL = 0.2;
    private static final double PER_MS = 0.01;
    private static final double MOST = 200;

    private double tokens = MOST;
    private long last;

    RetryBudget(long nowMs) {
      last = nowMs;
    }

    synchronized void callBegins() {
      tokens = Math.min(MOST, tokens + PER_CALL);
    }

    /** Pays for one retry; false when the budget is exhausted. */
    synchronized boolean take(long nowMs) {
      tokens = Math.min(MOST, tokens + PER_MS * Math.max(0, nowMs - last));
      last = Math.max(last, nowMs);
      if (tokens < 1) {
        return false;
      }
      tokens -= 1;
      return true;
    }
  }

  private static final long NO_ADVICE_MS = 100;
  private static final long PROBE_AGAIN_MS = 30_000;
  private static final long PROBE_FIRST_MS = 1000;
  private static final int FAILURES_IN_A_ROW = 3;
  private static final int OUTSIDE_RACK = 4; // of 16 servers that a client uses
  private static final int HEALTHY_MIN = 3; // while fewer are healthy, calls can use all servers

  final Options options;
  private final List<String> seeds;
  private final Runnable trouble;
  final Counters.Tally tally;
  private final Event.Hooks hooks = new Event.Hooks();
  final RetryBudget budget = new RetryBudget(Server.now());
  private final long name = ThreadLocalRandom.current().nextLong();
  private final Set<String> ownNumbers = new HashSet<>(); // tags that need no machine id
  private Map<String, Server> servers = new TreeMap<>();
  private List<Server> subset;
  private String uuid;
  private String layout = "";
  private long version;
  private final ReentrantLock newsLock = new ReentrantLock();
  private final Condition newsCame = newsLock.newCondition();
  private long news;
  private volatile boolean stopped;
  private final Runnable onNews; // called with locks held

  Fleet(Options options, List<String> seeds, Counters.Tally tally, Runnable trouble, Runnable onNews) {
    this.options = options;
    this.seeds = seeds;
    this.tally = tally;
    this.trouble = trouble;
    this.onNews = onNews;
    uuid = options.clusterUuid;
    for (String seed : seeds) {
      servers.put(seed, made(seed));
    }
    choose();
  }

  private Server made(String address) {
    Server server = new Server(address, options.connectionsMax);
    server.tls = options.tls != null;
    return server;
  }

  // --- the list ---------------------------------------------------------------------------------

  /** Takes a list if it is newer, or if only a last resort answers; the servers that left. */
  List<Server> apply(ServerList list, Server toldBy) {
    List<Server> gone = new ArrayList<>();
    synchronized (this) {
      boolean lower = list.version < version && !toldBy.lastResort;
      if (list.servers.isEmpty() || list.version == version || lower) {
        return gone;
      }
      Map<String, Server> before = servers;
      servers = new TreeMap<>();
      for (Entry entry : list.servers) {
        merge(entry, before);
      }
      for (String seed : seeds) {
        if (!servers.containsKey(seed)) {
          Server server = before.containsKey(seed) ? before.get(seed) : made(seed);
          server.lastResort = true;
          servers.put(seed, server);
        }
      }
      before.values().stream().filter(one -> !servers.containsKey(one.address)).forEach(gone::add);
      gone.forEach(one -> one.gone = true);
      version = list.version;
      choose();
      tellNews();
    }
    tally.lists.increment();
    tell("list", "", list.servers.size() + " servers");
    return gone;
  }

  private void merge(Entry entry, Map<String, Server> before) {
    if (Options.portOf(entry.address) == 0) {
      return;
    }
    Server server = before.containsKey(entry.address) ? before.get(entry.address) : made(entry.address);
    server.rack = entry.rack;
    server.weight = entry.weight;
    server.online = entry.online;
    server.state = entry.state;
    server.tls = entry.tls || options.tls != null;
    server.lastResort = server.draining = server.quarantined = server.foreign = false;
    server.closedUntil.clear();
    servers.put(entry.address, server);
  }

  /** Chooses the subset of the listed servers that this client uses, by weighted rendezvous hashing of its own name
   * with their addresses. Most of them are of its rack. */
  private void choose() {
    Map<Server, Double> scores = new HashMap<>();
    for (Server one : servers.values()) {
      long hash = (name ^ one.address.hashCode() * 0x9E3779B97F4A7C15L) * 0xff51afd7ed558ccdL;
      double drawn = (((hash ^ hash >>> 33) * 0xc4ceb9fe1a85ec53L >>> 11) + 1) * 0x1p-53;
      scores.put(one, -Math.log(drawn) / one.share());
    }
    List<Server> ranked = servers.values().stream().filter(one -> !one.lastResort)
        .sorted(Comparator.comparing(scores::get)).collect(Collectors.toList());
    int most = options.serversMax == 0 ? ranked.size() : Math.min(options.serversMax, ranked.size());
    if (options.rack != null && most < ranked.size()) {
      Map<Boolean, List<Server>> byRack =
          ranked.stream().collect(Collectors.partitioningBy(one -> one.rack == options.rack));
      int kept = Math.min(most * OUTSIDE_RACK / 16, byRack.get(false).size());
      ranked = byRack.get(true).stream().limit(most - kept).collect(Collectors.toList());
      ranked.addAll(byRack.get(false));
    }
    subset = List.copyOf(ranked.subList(0, Math.min(most, ranked.size())));
  }

  // --- picking ----------------------------------------------------------------------------------

  /** Returns a server that is not among `tried`, or null. Of the servers with the best standing, those of the client's
   * rack come first; two of them are drawn by weight, and the second is taken if it is clearly less busy. The server
   * counts as busy until giveBack. */
  synchronized Server pick(String tag, Set<Server> tried) {
    long now = Server.now();
    List<Server> offered = offer(subset, tag, tried, now);
    boolean healthy = !offered.isEmpty()
        && offered.get(0).standing(tag, !ownNumbers.contains(tag), now) == Standing.HEALTHY;
    if (!healthy || offered.size() < Math.min(HEALTHY_MIN, subset.size())) {
      offered = offer(servers.values(), tag, tried, now);
    }
    if (offered.isEmpty()) {
      return null;
    }
    if (options.rack != null) {
      List<Server> mine =
          offered.stream().filter(one -> one.rack == options.rack).collect(Collectors.toList());
      offered = mine.isEmpty() ? offered : mine;
    }
    Server picked = lessBusy(offered);
    picked.inFlight.incrementAndGet();
    picked.used(now, options.attemptLimitMs);
    return picked;
  }

  /** Returns when the first untried server's backoff ends; NEVER: no untried server is in backoff. */
  synchronized long pausedUntil(Set<Server> tried) {
    long now = Server.now();
    return servers.values().stream()
        .filter(one -> !tried.contains(one) && !one.addresses.isEmpty() && !one.mayServe(now))
        .mapToLong(one -> one.connectAt).min().orElse(Server.NEVER);
  }

  private List<Server> offer(Collection<Server> from, String tag, Set<Server> tried, long now) {
    Standing best = Standing.QUARANTINED;
    List<Server> offered = new ArrayList<>(from.size());
    boolean needsMachine = !ownNumbers.contains(tag);
    for (Server one : from) {
      if (tried.contains(one) || one.addresses.isEmpty() || !one.mayServe(now)) {
        continue;
      }
      Standing standing = one.standing(tag, needsMachine, now);
      if (standing == Standing.QUARANTINED && !one.foreign && panics(tag, needsMachine, now)) {
        standing = Standing.EJECTED;
      }
      if (standing.compareTo(best) < 0) {
        best = standing;
        offered.clear();
      }
      if (standing == best) {
        offered.add(one);
      }
    }
    return offered;
  }

  /** Whether fewer than half of the servers are healthy. */
  private boolean panics(String tag, boolean needsMachine, long now) {
    return servers.values().stream()
        .filter(one -> one.standing(tag, needsMachine, now) == Standing.HEALTHY).count() * 2 < servers.size();
  }

  private static Server lessBusy(List<Server> from) {
    Server first = draw(from, null);
    if (from.size() == 1) {
      return first;
    }
    Server second = draw(from, first);
    double mean = (first.share() + second.share()) / 2;
    return (1 + second.inFlight.get() * mean / second.share()) * 1.5
        <= 1 + first.inFlight.get() * mean / first.share() ? second : first;
  }

  /** Draws a server by weight, without `except`. */
  private static Server draw(List<Server> from, Server except) {
    double total = 0;
    for (Server one : from) {
      total += one == except ? 0 : one.share();
    }
    double at = ThreadLocalRandom.current().nextDouble() * total;
    Server drawn = null;
    for (Server one : from) {
      if (one != except && (drawn == null || at >= 0)) {
        drawn = one;
        at -= one.share();
      }
    }
    return drawn;
  }

  @Override
  public synchronized String pickForLease(Set<String> tried) {
    Server picked = pick("", servers.values().stream().filter(one -> tried.contains(one.address))
        .collect(Collectors.toSet()));
    if (picked == null) {
      return null;
    }
    giveBack(picked);
    return picked.address;
  }

  @Override
  public synchronized boolean lists(String address) {
    return servers.containsKey(address);
  }

  /** Returns the server at the address, also if no list contains it. */
  synchronized Server at(String address) {
    Server listed = servers.get(address);
    if (listed != null) {
      return listed;
    }
    Server other = made(address);
    other.gone = true; // its connections are not kept
    return other;
  }

  synchronized boolean lacksAddress(Server server) {
    return server.addresses.isEmpty();
  }

  void giveBack(Server server) {
    server.inFlight.decrementAndGet();
  }

  /** Whether calls avoid the server because it failed. */
  synchronized boolean isOut(Server server) {
    return server.ejected() || server.quarantined;
  }

  synchronized void dialled(Server server, boolean connected) {
    boolean news = server.recovers(connected);
    server.dialled(connected);
    if (news) {
      tellNews();
    }
  }

  synchronized List<SeenServer> view() {
    long now = Server.now();
    List<SeenServer> seen = new ArrayList<>();
    for (Server one : servers.values()) {
      Standing standing = one.standing("", true, now);
      seen.add(new SeenServer(one.address, one.rack, one.weight,
          standing.name().toLowerCase(Locale.ROOT).replace('_', ' '),
          standing == Standing.HEALTHY ? "" : one.why, one.inFlight.get()));
    }
    return seen;
  }

  // --- waiting ----------------------------------------------------------------------------------

  /** Waits until that time, until servers were added or recovered if `forNews`, or until the client is closed. */
  void await(long until, boolean forNews) {
    newsLock.lock(); // not a monitor, in which a waiting virtual thread would keep its carrier
    try {
      long seen = news;
      for (long left = until - Server.now(); left > 0; left = until - Server.now()) {
        if (stopped || (forNews && news != seen)) {
          return;
        }
        newsCame.await(left, TimeUnit.MILLISECONDS);
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    } finally {
      newsLock.unlock();
    }
  }

  private void tellNews() {
    newsLock.lock();
    try {
      news++;
      newsCame.signalAll();
    } finally {
      newsLock.unlock();
    }
    onNews.run();
  }

  void stop() {
    stopped = true;
    tellNews();
  }

  boolean stopped() {
    return stopped;
  }

  boolean lists(Server server) {
    return !server.gone;
  }

  synchronized long version() {
    return version;
  }

  synchronized List<Server> all() {
    return List.copyOf(servers.values());
  }

  /** Reports an event. After the client was closed, servers fail because of that, so nothing is reported. */
  void tell(String kind, String server, String detail) {
    if (!stopped && options.onEvent != Options.NO_HOOK) {
      hooks.call(() -> options.onEvent.accept(new Event(kind, server, detail)));
    }
  }

  /** Runs the hooks that wait because no thread could be started. */
  void retryHooks() {
    hooks.retry();
  }

  /** Never fails: what the handler itself throws is discarded, as the JVM does. */
  static void report(Throwable fault) {
    Thread thread = Thread.currentThread();
    try {
      thread.getUncaughtExceptionHandler().uncaughtException(thread, fault);
    } catch (Throwable again) {
      // of the program, also a checked one, or no memory
    }
  }

  // --- answers and failures -----------------------------------------------------------------------

  /** Fails unless the server with this status is of this cluster. */
  synchronized void admit(Status status) throws Failure {
    String theirs = status.clusterUuid;
    if (theirs.isEmpty() && !uuid.isEmpty()) {
      throw new Failure(Attempt.End.REFUSED, "it does not know its cluster yet", Reason.NOT_READY, 0,
          true, false);
    }
    if (!uuid.isEmpty() && !theirs.equals(uuid)) {
      throw new Failure(Attempt.End.WRONG_SERVICE,
          "its cluster is '" + theirs + "', not '" + uuid + "'");
    }
    if (status.layout.isEmpty()
        || (!layout.isEmpty() && !status.layout.equals(layout))) {
      throw new Failure(Attempt.End.WRONG_SERVICE,
          "its layout is '" + status.layout + "', not '" + layout + "'");
    }
    uuid = theirs;
    layout = status.layout;
    status.tags.stream().filter(one -> !"snowflake".equals(one.strategy))
        .forEach(one -> ownNumbers.add(one.tag));
  }

  /** Records that a server has answered a call: with ids of the tag, or {@code withoutIds}. A server that sends ids
   * has stopped draining, since it would have refused otherwise. */
  void answered(Server server, String tag, boolean withoutIds) {
    boolean back;
    synchronized (this) {
      back = server.out;
      server.answeredAt = Server.now();
      if (!withoutIds) {
        back |= server.draining;
        server.draining = false;
        server.closedUntil.remove(tag);
      }
      if (!back && !server.tooManyFailures()) {
        server.answered();
        return;
      }
      server.recovered();
      tellNews();
    }
    if (back) {
      tell("healthy", server.address, "answers again");
    }
  }

  /** Records that a connection for a lease was opened. It ends no ejection: probes and calls do. */
  synchronized void connected(Server server) {
    if (!server.out) {
      server.answered();
    }
  }

  /** Returns whether a call whose attempt timed out fails over free of the retry budget, so that one hung server does
   * not use it up. */
  synchronized boolean mayMove(Server from, long began) {
    boolean othersAnswer = servers.values().stream().anyMatch(one -> one != from && one.answeredAt > began);
    return from.mayMove(began, Server.now(), options.attemptLimitMs, othersAnswer);
  }

  /** Records the failure of an attempt. */
  void failed(Server server, String tag, Failure failure) {
    if (failure.end == Attempt.End.NO_ROOM || failure.stale || failure.lacksMethod) {
      return;
    }
    if (failure.refused()) {
      refused(server, tag, failure);
      return;
    }
    trouble.run();
    if (failure.quarantines()) {
      quarantine(server, failure);
    } else {
      count(server, failure.end == Attempt.End.CONNECT_TIMEOUT ? 2 : 1, failure);
    }
  }

  private void refused(Server server, String tag, Failure failure) {
    if (failure.reason == Reason.INTERNAL) {
      count(server, 1, failure);
    } else if (failure.reason.isAnswer) {
      answered(server, tag, true);
    } else if (put(server, tag, failure)) {
      trouble.run();
      tell("draining", server.address, failure.detail);
    }
  }

  /** Records a refusal. Returns whether the server has begun to drain. */
  private synchronized boolean put(Server server, String tag, Failure failure) {
    long now = Server.now();
    long advice = failure.retryAfterMs > 0 ? failure.retryAfterMs : NO_ADVICE_MS;
    long until = now + advice + ThreadLocalRandom.current().nextLong(advice / 2 + 1);
    server.why = failure.reason + ": " + failure.detail;
    if (failure.reason == Reason.NOT_READY || failure.reason == Reason.CLOCK) {
      server.notReadyUntil = until;
    } else if (failure.reason == Reason.STORE_DOWN) {
      Server.remember(server.downUntil, tag, until);
    } else if (failure.reason == Reason.DRAINING) {
      Server.remember(server.closedUntil, tag, now + PROBE_AGAIN_MS);
      if (!server.draining && !server.quarantined) {
        server.draining = true;
        server.probeAt = now;
        return true;
      }
    }
    return false;
  }

  private void count(Server server, int times, Failure failure) {
    boolean eject;
    synchronized (this) {
      server.failed(times);
      if (server.out || !server.tooManyFailures()) {
        return;
      }
      server.why = failure.text();
      eject = mayLeave(server);
      server.takeOut(eject);
    }
    tell("unhealthy", server.address, (eject ? "ejected; " : "called last; ") + server.why);
  }

  /** At most half of the servers are ejected or quarantined. */
  private boolean mayLeave(Server server) {
    List<Server> members = servers.values().stream().filter(one -> one.online && !one.foreign)
        .collect(Collectors.toList());
    long out = members.stream()
        .filter(one -> one != server && (one.ejected() || one.quarantined)).count();
    return (out + 1) * 2 <= members.size();
  }

  private void quarantine(Server server, Failure failure) {
    boolean foreign = failure.end == Attempt.End.WRONG_SERVICE;
    boolean began;
    boolean floor;
    synchronized (this) {
      began = !server.quarantined;
      floor = !foreign && began && !mayLeave(server);
      if (!floor) {
        server.quarantine(foreign, failure.detail);
      }
    }
    if (floor) {
      count(server, FAILURES_IN_A_ROW, failure);
    } else if (began) {
      tell("quarantined", server.address, failure.detail);
    }
  }

  // --- probes of unhealthy servers --------------------------------------------------------------

  /** Returns the servers to probe now. */
  synchronized List<Server> takeProbes() {
    long now = Server.now();
    List<Server> due = servers.values().stream()
        .filter(one -> one.probeAt <= now && !one.addresses.isEmpty()).collect(Collectors.toList());
    due.forEach(one -> one.probeAt = now + PROBE_AGAIN_MS);
    return due;
  }

  synchronized long nextProbe() {
    return servers.values().stream().mapToLong(one -> one.probeAt).min().orElse(Server.NEVER);
  }

  /** Records the result of a probe: the status, or a failure. */
  void probed(Server server, Status status, Failure failure) {
    if (failure != null && failure.quarantines()) {
      quarantine(server, failure);
      return;
    }
    synchronized (this) {
      if (failure != null) { // the probe is repeated
        server.probeAt = Server.now() + PROBE_FIRST_MS;
        if (server.out) {
          server.takeOut(mayLeave(server));
        }
        return;
      }
      boolean out = server.draining || server.quarantined || server.out;
      server.quarantined = server.foreign = false;
      server.draining = status.state == Wire.State.DRAINING;
      server.recovered();
      if (server.draining) {
        server.probeAt = Server.now() + PROBE_AGAIN_MS;
      }
      if (!out || server.draining) {
        return;
      }
      tellNews();
    }
    tell("healthy", server.address, "answers again");
  }

  /** Returns the servers whose names must be resolved: without an address, or failing. */
  synchronized List<Server> takeNames() {
    long now = Server.now();
    List<Server> names = servers.values().stream().filter(one -> one.named
        && now >= one.resolveAt && (one.addresses.isEmpty() || one.tooManyFailures())).collect(Collectors.toList());
    names.forEach(one -> one.resolveAt = now + 2000);
    return names;
  }

  /** Hosts that have no known address. */
  synchronized List<String> unresolved() {
    return servers.values().stream().filter(one -> one.addresses.isEmpty()).map(one -> one.host)
        .collect(Collectors.toList());
  }

  synchronized void resolved(Server server, InetAddress[] found) {
    server.resolved(found);
    tellNews();
  }
}
