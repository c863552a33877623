package io.firn;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** The parts of a client: the fleet, its connections and the background threads. */
final class Engine {
  private static final long ASK_AGAIN_MIN_MS = 50;
  private static final long ASK_AGAIN_MAX_MS = 300_000;
  private static final long NO_LIST_YET_MS = 1000;
  private static final long NO_SUCH_METHOD_MS = 60_000;
  private static final long TROUBLE_MS = 1000;
  private static final long CHECK_IDLE_MS = 1000;
  private static final int CHECKS_MAX = 16; // checked connections of one server per second
  private static final Tls SYSTEM_TLS = new Tls(null, null, null, null);

  final Options options;
  final Fleet fleet;
  final Map<String, Supply> supplies = new HashMap<>();
  final ExecutorService background;
  final AsyncCalls async;
  final Counters.Tally tally = new Counters.Tally();
  private final ScheduledThreadPoolExecutor timer;
  final Watchdog watchdog;
  private final Object wake = new Object();
  private long listDue = Server.NEVER;
  private long listAsked;
  private boolean woken;

  Engine(Options options, List<String> seeds) {
    this.options = options;
    fleet = new Fleet(options, seeds, tally, this::askListSoon, this::newsCame);
    background = Executors.newCachedThreadPool(run -> daemon(run, "firn-background"));
    timer = new ScheduledThreadPoolExecutor(1, run -> daemon(run, "firn-timer"));
    timer.setRemoveOnCancelPolicy(true);
    watchdog = new Watchdog(options.attemptLimitMs * 1_000_000L);
    async = new AsyncCalls(this, options.executor);
    if (options.listsChange()) {
      listDue = Server.now();
    }
    for (LocalTag tag : options.localRanges) {
      supplies.put(tag.tag, new Supply(tag, this));
    }
    try {
      background.execute(this::upkeep);
    } catch (OutOfMemoryError noThread) {
      watchdog.close(); // which has a thread
      throw noThread;
    }
  }

  private void newsCame() {
    if (async != null) { // null while the constructor reads the first lists
      async.newsCame();
    }
  }

  static Thread daemon(Runnable run, String name) {
    Thread thread = new Thread(run, name);
    thread.setDaemon(true);
    return thread;
  }

  /** Does not wait: calls in progress end with CLOSED. */
  void close() {
    fleet.stop();
    supplies.values().forEach(Supply::close);
    for (Server server : fleet.all()) {
      server.room.release(1_000_000); // waiting calls continue, and notice the end
    }
    wakeUp();
    watchdog.close();
    async.close();
    background.shutdownNow();
    timer.shutdownNow();
  }

  /** Runs a short task after that time, unless the client is closed. Returns null if it is closed already. */
  ScheduledFuture<?> later(long ms, Runnable run) {
    try {
      return timer.schedule(run, ms, TimeUnit.MILLISECONDS);
    } catch (java.util.concurrent.RejectedExecutionException closed) {
      return null;
    }
  }

  <T> T call(Ask<T> ask, long deadlineMs) throws FirnException {
    long began = System.nanoTime();
    FirnException fault = null;
    try {
      return new Call<>(fleet, ask, deadlineMs).run(this::attempt);
    } catch (FirnException failure) {
      fault = ofClosed(failure);
      throw fault;
    } finally {
      tally.ended(fault, System.nanoTime() - began);
    }
  }

  /** Returns the failure of a call, which has another kind after the client was closed. */
  FirnException ofClosed(FirnException failure) {
    return !fleet.stopped() ? failure
        : new FirnException(FirnException.Kind.CLOSED, "the client was closed", null, 0, failure.attempts());
  }

  /** Returns one server's answer. While all connections are in use, the call waits until the deadline. */
  private <T> T attempt(Server server, Ask<T> ask, boolean fresh, long deadline) throws Failure {
    // tryAcquire() alone would overtake the calls that wait.
    boolean waited = server.room.hasQueuedThreads() || !server.room.tryAcquire();
    if (waited) {
      awaitRoom(server, deadline);
    }
    try {
      if (waited && fleet.isOut(server)) {
        throw new Failure(Attempt.End.NO_ROOM, "it failed while this call waited for a connection");
      }
      long limitMs = Math.min(options.attemptLimitMs, deadline - Server.now());
      return ask(server, ask, fresh, System.nanoTime() + limitMs * 1_000_000);
    } finally {
      server.room.release();
    }
  }

  /** Returns a connection for requests about a lease. An answer may take longer than ids, because the server may have to
   * write to its registry, so only the connection tells of the server's health. */
  Connection connectForLease(String address, long until) throws Failure {
    Server server = fleet.at(address);
    if (fleet.lacksAddress(server)) {
      resolve(server);
    }
    try {
      Connection connection = connect(server, until);
      fleet.connected(server);
      return connection;
    } catch (Failure failure) {
      fleet.failed(server, "", failure);
      throw failure;
    }
  }

  static <T> T ask(Connection connection, Ask<T> ask, long until) throws Failure {
    T answer = connection.call(ask, until);
    String fault = ask.faultOf(answer, connection.check);
    if (fault != null) {
      throw new Failure(Attempt.End.BROKEN, fault);
    }
    return answer;
  }

  private static void awaitRoom(Server server, long deadline) throws Failure {
    try {
      if (!server.room.tryAcquire(Math.max(0, deadline - Server.now()), TimeUnit.MILLISECONDS)) {
        throw new Failure(Attempt.End.NO_ROOM, "all connections were in use until the deadline");
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new Failure(Attempt.End.NO_ROOM, "interrupted");
    }
  }

  private <T> T ask(Server server, Ask<T> ask, boolean fresh, long until) throws Failure {
    Connection connection = take(server, fresh, until);
    boolean whole = false;
    try {
      T answer = ask(connection, ask, until);
      whole = true;
      return answer;
    } catch (Failure failure) {
      whole = failure.refused() || failure.lacksMethod;
      throw failure;
    } finally {
      put(server, connection, whole);
    }
  }

  /** Returns the connection that was used last, or a new one to a server of this cluster. */
  private Connection take(Server server, boolean fresh, long until) throws Failure {
    Connection idle = fresh ? null : server.idle.poll();
    return idle != null ? idle : connect(server, until);
  }

  /** Returns a new connection to a server of this cluster. */
  Connection connect(Server server, long until) throws Failure {
    boolean spoke = server.spoke; // not on a connection that is opened meanwhile
    List<InetAddress> addresses;
    Tls tls;
    synchronized (fleet) {
      addresses = server.addresses;
      tls = server.tls ? (options.tls == null ? SYSTEM_TLS : options.tls) : null;
    }
    Connection connection = dial(server, addresses, tls, until);
    watchdog.add(connection);
    if (fleet.stopped()) {
      drop(connection);
    }
    try {
      greet(server, connection, spoke, until);
      fleet.dialled(server, true);
      return connection;
    } catch (Failure failure) {
      tally.connectsFailed.increment();
      fleet.dialled(server, failure.refused());
      drop(connection);
      throw failure;
    }
  }

  /** Opens a connection. After a failure, calls open no other one to that server for a moment. */
  private Connection dial(Server server, List<InetAddress> addresses, Tls tls, long until) throws Failure {
    tally.connects.increment();
    try {
      return new Connection(watchdog, addresses, server.host, server.port, tls, until);
    } catch (Failure failure) {
      tally.connectsFailed.increment();
      fleet.dialled(server, failure.end == Attempt.End.NO_ROOM);
      throw failure;
    }
  }

  /** Asks for the server's status, and fails unless the server is of this cluster. */
  private void greet(Server server, Connection connection, boolean spoke, long until) throws Failure {
    Wire.Status status;
    try {
      status = connection.call(Ask.status(), until);
    } catch (Failure failure) {
      if (failure.refused() || failure.end == Attempt.End.BROKEN) {
        throw new Failure(Attempt.End.WRONG_SERVICE, failure.detail);
      }
      if (failure.end == Attempt.End.CLOSED && !spoke) {
        throw new Failure(Attempt.End.CLOSED, failure.detail
            + ", during the first request: it may speak TLS, or require a certificate");
      }
      throw failure;
    }
    server.spoke = true;
    fleet.admit(status);
    connection.used = false;
    connection.check = new IdCheck(status.layout, Ask.timedTags(status), status.wallMs);
    connection.status = status;
  }

  private void put(Server server, Connection connection, boolean whole) {
    if (!whole || !fleet.lists(server) || fleet.stopped()) {
      drop(connection);
      return;
    }
    connection.idleSince = Server.now();
    server.idle.push(connection);
    if (!fleet.lists(server)) { // it left the list meanwhile
      dropIdle(server);
    }
  }

  private void dropIdle(Server server) {
    for (Connection idle = server.idle.poll(); idle != null; idle = server.idle.poll()) {
      drop(idle);
    }
  }

  /** Closes idle connections that the server has closed: nothing else would notice, and the system would
   * keep their descriptors. The oldest are checked first; calls use the youngest. */
  private void dropClosed(Server server) {
    long idleBefore = Server.now() - CHECK_IDLE_MS;
    for (int checked = 0; checked < CHECKS_MAX; checked++) {
      Connection oldest = server.idle.pollLast();
      if (oldest == null) {
        return;
      }
      if (oldest.idleSince > idleBefore) {
        server.idle.addLast(oldest);
        return;
      }
      if (oldest.isOver()) {
        drop(oldest);
      } else {
        oldest.idleSince = Server.now();
        server.idle.push(oldest);
      }
    }
  }

  void drop(Connection connection) {
    watchdog.remove(connection);
    connection.close();
  }

  // --- background -------------------------------------------------------------------------------

  private void upkeep() {
    while (!fleet.stopped()) {
      try {
        upkeepOnce();
      } catch (InterruptedException end) {
        return;
      } catch (RuntimeException fault) { // of this library; without upkeep no server would come back
        Fleet.report(fault);
      }
    }
  }

  private void upkeepOnce() throws InterruptedException {
    fleet.retryHooks();
    for (Server server : fleet.takeNames()) {
      inBackground(() -> resolve(server));
    }
    for (Server server : fleet.takeProbes()) {
      inBackground(() -> probe(server));
    }
    boolean ask;
    synchronized (wake) {
      ask = listDue <= Server.now();
    }
    if (ask) {
      askList();
    }
    fleet.all().forEach(this::dropClosed);
    long next = fleet.nextProbe();
    synchronized (wake) {
      long left = Math.min(1000, Math.min(next, listDue) - Server.now());
      if (left > 0 && !woken) {
        wake.wait(left);
      }
      woken = false;
    }
  }

  /** Returns whether the task runs: not after the client was closed, nor while the system starts no thread. */
  boolean inBackground(Runnable run) {
    if (fleet.stopped()) {
      return false;
    }
    try {
      background.execute(run);
      return true;
    } catch (java.util.concurrent.RejectedExecutionException | OutOfMemoryError noThread) {
      return false;
    }
  }

  private void wakeUp() {
    synchronized (wake) {
      woken = true;
      wake.notifyAll();
    }
  }

  /** After a failed call the list may have changed: asks within a random time of at most 1 s, because
   * other clients see the same failure. */
  private void askListSoon() {
    long soon = ThreadLocalRandom.current().nextLong(TROUBLE_MS);
    synchronized (wake) {
      if (listDue != Server.NEVER) {
        listDue = Math.min(listDue, Math.max(Server.now(), listAsked + TROUBLE_MS) + soon);
      }
    }
    wakeUp();
  }

  private void resolve(Server server) {
    try {
      fleet.resolved(server, InetAddress.getAllByName(server.host));
    } catch (UnknownHostException unknown) {
      // keeps the address; the name is resolved again
    }
  }

  private void probe(Server server) {
    long until = System.nanoTime() + options.attemptLimitMs * 1_000_000L;
    try {
      Connection connection = connect(server, until);
      drop(connection);
      fleet.probed(server, connection.status, null);
    } catch (Failure failure) {
      fleet.probed(server, null, failure);
    }
  }

  private void askList() {
    listAsked = Server.now();
    long waitMs = NO_LIST_YET_MS;
    Server server = fleet.pick("", Set.of());
    if (server == null) {
      waitMs = 10; // its name is being resolved
    } else {
      try {
        waitMs = askForList(server);
      } catch (Failure failure) {
        fleet.failed(server, "", failure);
      } finally {
        fleet.giveBack(server);
      }
    }
    synchronized (wake) {
      listDue = Server.now() + waitMs;
    }
  }

  /** Asks the server for its list. Returns the milliseconds until the next request. */
  private long askForList(Server server) throws Failure {
    long until = System.nanoTime() + options.attemptLimitMs * 1_000_000L;
    Connection connection = take(server, false, until);
    boolean whole = false;
    Wire.ServerList list;
    try {
      list = connection.call(Ask.servers(fleet.version()), until);
      whole = true;
    } catch (Failure failure) {
      whole = failure.refused();
      if (whole) {
        return failure.retryAfterMs > 0 ? failure.retryAfterMs : NO_LIST_YET_MS;
      }
      if (failure.lacksMethod) { // an older server: keep using the known addresses
        whole = true;
        return NO_SUCH_METHOD_MS;
      }
      throw failure;
    } finally {
      put(server, connection, whole);
    }
    for (Server gone : fleet.apply(list, server)) {
      dropIdle(gone);
      gone.pool.leave();
    }
    return Math.min(Math.max(list.askAgainMs, ASK_AGAIN_MIN_MS), ASK_AGAIN_MAX_MS);
  }
}
