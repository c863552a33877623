package io.firn;

import io.firn.LeaseWire.Terms;
import io.firn.Lessee.Outcome;
import io.firn.Lessee.Request;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * Makes ids in this process, under a machine id that is leased from the servers.
 *
 * <pre>
 * try (LocalGenerator ids = client.localGenerator("checkout-7f9c").open()) {
 *   long id = ids.next();
 * }
 * </pre>
 *
 * <p>Ids come from memory, also while no server is reachable, until the interval of the lease ends. A thread extends
 * the lease, and obtains the next one when a server does not extend it. Ids ascend, also across leases. Close the
 * generator before its client.
 *
 * <p>Thread-safe. A copy of the running process, such as a restored checkpoint, is detected at the next renewal; ids
 * that both copies made until then are duplicated.
 */
public final class LocalGenerator implements AutoCloseable {
  /** Options of a generator; from {@link FirnClient#localGenerator}. Each setter returns this object. */
  public static final class Builder {
    private final FirnClient client;
    private final String name;
    private Integer rack;
    private long aheadMs = 60_000;
    private Consumer<LeaseLoss> onLost = loss -> { };

    Builder(FirnClient client, String name) {
      this.client = client;
      this.name = name;
    }

    /** Rack of the machine id; default: any. */
    public Builder rack(int number) {
      rack = number;
      return this;
    }

    /** How far ahead of now the interval of a lease ends after a renewal: 2 s to 24 h; default: 60 s. A server gives at
     * most its --claim_window_ms. The generator can do without servers for two thirds of the interval. */
    public Builder ahead(Duration time) {
      aheadMs = time.toMillis();
      return this;
    }

    /** Receives each lease that is lost, on a thread of its own, one at a time, until the generator is closed. */
    public Builder onLost(Consumer<LeaseLoss> hook) {
      onLost = hook;
      return this;
    }

    /** Returns a generator that has a lease, after at most 10 s. */
    public LocalGenerator open() throws FirnException {
      return open(Duration.ofSeconds(10));
    }

    /** Returns a generator that has a lease. Fails if no server grants one within this time. */
    public LocalGenerator open(Duration patience) throws FirnException {
      return open(patience, true);
    }

    /** Returns a lease for the generator of another library, which takes a machine id. Fails as {@link #open} does. */
    public MachineLease openMachineLease(Duration patience) throws FirnException {
      return new MachineLease(open(patience, false));
    }

    private LocalGenerator open(Duration patience, boolean issues) throws FirnException {
      String fault = LeaseWire.faultOfName(name);
      if (aheadMs < AHEAD_MIN_MS || aheadMs > AHEAD_MAX_MS) {
        fault = "ahead is " + aheadMs + " ms; it must be 2 s to 24 h";
      }
      if (fault != null) {
        throw new IllegalArgumentException(fault);
      }
      LocalGenerator generator = new LocalGenerator(this, issues);
      generator.awaitLease(patience);
      return generator;
    }
  }

  /**
   * A lease of a machine id for the generator of another library.
   *
   * <p>An id of that generator is unique only if its time is in the interval of the lease whose machine id it has. A
   * process can be paused at any moment, so compare each id after it was made, and drop one outside of the interval.
   * To stop the generator before the interval ends is not enough.
   */
  public static final class MachineLease implements AutoCloseable {
    private final LocalGenerator generator;

    private MachineLease(LocalGenerator generator) {
      this.generator = generator;
    }

    /** Returns the current machine id and its interval; empty without a lease, or after its end. A renewal moves the
     * end. The next lease can have another machine id. */
    public Optional<Interval> current() {
      return generator.ids.interval();
    }

    /** Gives the lease back; the other generator must have stopped. The machine id stays reserved to the end of the
     * interval, because nothing is known about its use. */
    @Override
    public void close() {
      generator.close();
    }
  }

  /** A machine id, and the times that its ids may contain: from {@link #from} on, before {@link #until}. */
  public static final class Interval {
    public final int machineId;
    public final Instant from;
    public final Instant until;

    Interval(int machineId, Instant from, Instant until) {
      this.machineId = machineId;
      this.from = from;
      this.until = until;
    }
  }

  static final long ATTEMPT_MS = 2_000; // a server may have to write to its registry before it answers
  private static final long AHEAD_MIN_MS = 2_000;
  private static final long AHEAD_MAX_MS = 24 * 3_600_000;
  private static final long CLOSE_PATIENCE_MS = 1_000;
  private static final long FAULT_PAUSE_NS = 1_000_000_000;

  private final Engine engine;
  private final String name;
  private final Integer rack;
  private final long aheadMs;
  final LeasedIds ids = new LeasedIds(LeasedIds.SYSTEM);
  final Lessee lessee; // of the thread
  private Connection kept; // of the thread: to the server that answered last with a lease; null: none
  private String keptAt;
  final Event.Hooks hooks = new Event.Hooks();
  private final Thread thread;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private boolean leased; // under the lock, as the next one
  private boolean ended; // the thread
  private boolean woken; // under the lock
  private volatile boolean stopping; // changed before a signal

  private LocalGenerator(Builder options, boolean issues) {
    engine = options.client.engine;
    name = options.name;
    rack = options.rack;
    aheadMs = options.aheadMs;
    Consumer<LeaseLoss> onLost = options.onLost;
    lessee = new Lessee(ids, LeasedIds.SYSTEM, engine.fleet, loss -> hooks.call(() -> {
      if (!stopping) { // the program has not closed it meanwhile
        onLost.accept(loss);
      }
    }), issues, aheadMs);
    thread = Engine.daemon(this::run, "firn-lease");
    ids.onJump = this::wake;
    thread.start();
  }

  // --- ids ----------------------------------------------------------------------------------------

  /** Returns the next id. If the ids of this tick are used up, waits for the next tick. Fails without a lease, or
   * when its interval has ended; the message says why and since when. */
  public long next() throws FirnException {
    return ids.next();
  }

  /** Returns the machine id in new ids; empty without a lease. Another generator with this machine id would repeat
   * these ids: it needs a {@link MachineLease}. */
  public OptionalInt machineId() {
    Terms terms = ids.terms();
    return terms == null ? OptionalInt.empty() : OptionalInt.of(terms.machine);
  }

  /** Returns when the current lease ends unless a server extends it; empty without a lease. */
  public Optional<Instant> until() {
    long ms = ids.untilMs();
    return ms < 0 ? Optional.empty() : Optional.of(Instant.ofEpochMilli(ms));
  }

  /** Stops the generator, then gives its lease back, for at most 1 s. */
  @Override
  public void close() {
    ids.stop();
    stopping = true;
    wake();
    if (Thread.currentThread() == thread) {
      return;
    }
    try {
      thread.join(CLOSE_PATIENCE_MS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  // --- the thread ---------------------------------------------------------------------------------

  private void wake() {
    LockSupport.unpark(thread);
    lock.lock();
    try {
      woken = true;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private void run() {
    boolean told = false;
    while (!(told && lessee.stopped()) && !engine.fleet.stopped()) {
      try {
        hooks.retry();
        Request request = lessee.due();
        if (request != null) {
          lessee.answered(request, send(request));
        }
        told = await(request == null ? lessee.dueInMs() : 0, told);
      } catch (RuntimeException | Error fault) { // such as no memory; without the thread, the lease would end
        Fleet.report(fault);
        LockSupport.parkNanos(this, FAULT_PAUSE_NS); // allocates nothing
      }
    }
    ids.explain("its client was closed");
    hangUp();
    lock.lock();
    try {
      ended = true;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Waits for that time, or for wake(). Returns whether close() is known. */
  private boolean await(long ms, boolean told) {
    lock.lock();
    try {
      if (ms > 0 && !woken) {
        changed.await(ms, TimeUnit.MILLISECONDS);
      }
      woken = false;
      if (leased != lessee.holds()) {
        leased = lessee.holds();
        changed.signalAll();
      }
      if (stopping && !told) {
        lessee.stop();
      }
      return stopping;
    } catch (InterruptedException interrupted) {
      return told; // does not happen: this class interrupts no thread
    } finally {
      lock.unlock();
    }
  }

  private void awaitLease(Duration patience) throws FirnException {
    long left = patience.toNanos();
    boolean got;
    lock.lock();
    try {
      while (!leased && !ended && left > 0) {
        left = changed.awaitNanos(left);
      }
      got = leased;
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      got = false;
    } finally {
      lock.unlock();
    }
    if (!got) {
      String reason = ids.reason();
      close();
      throw new FirnException(FirnException.Kind.NO_LEASE,
          "no lease of a machine id within " + patience.toMillis() / 1000.0 + " s: " + reason, null, 0, List.of());
    }
  }

  // --- requests -----------------------------------------------------------------------------------

  private Outcome send(Request request) {
    try {
      switch (request.kind) {
        case GRANT:
          return Outcome.of(ask(request, Ask.lease(
              LeaseWire.ask(request.token, name, request.clockMs, (int) aheadMs, rack))));
        case RENEWAL:
          return Outcome.of(ask(request, Ask.renewLease(LeaseWire.renewal(request.lease, request.turn,
              request.acknowledged, request.clockMs, (int) aheadMs))));
        default:
          ask(request, Ask.releaseLease(LeaseWire.end(request.lease, request.turn, request.usedTick)));
          return Outcome.of(Outcome.Kind.RELEASED, "");
      }
    } catch (Failure failure) {
      return outcomeOf(failure);
    }
  }

  /** Asks over a connection that no call uses. That of the last lease is kept, so that its renewal needs no file
   * descriptor and no DNS. It has half of the time: its path can be dead. */
  private <T> T ask(Request request, Ask<T> ask) throws Failure {
    long now = System.nanoTime();
    long until = now + request.limitMs * 1_000_000;
    Failure earlier = null;
    if (kept != null && request.server.equals(keptAt)) {
      try {
        return ask(kept, request, ask, now + request.limitMs * 500_000);
      } catch (Failure failure) {
        if (!(failure.stale || failure.end == Attempt.End.TIMEOUT) || engine.fleet.stopped()) {
          throw failure;
        }
        earlier = failure;
      }
    }
    Connection made;
    try {
      made = engine.connectForLease(request.server, until);
    } catch (Failure failure) { // after an earlier request, the server may have granted the lease
      throw earlier != null && request.kind == Lessee.Kind.GRANT ? earlier : failure;
    }
    return ask(made, request, ask, until);
  }

  private <T> T ask(Connection over, Request request, Ask<T> ask, long until) throws Failure {
    boolean keeps = false;
    try {
      T answer = Engine.ask(over, ask, until);
      keeps = over == kept || answer instanceof Terms;
      return answer;
    } catch (Failure failure) {
      keeps = over == kept && (failure.refused() || failure.lacksMethod);
      throw failure;
    } finally {
      if (keeps && over != kept) {
        hangUp();
        kept = over;
        keptAt = request.server;
      } else if (!keeps && over == kept) {
        hangUp();
      } else if (!keeps) {
        engine.drop(over);
      }
    }
  }

  /** Closes the kept connection. */
  private void hangUp() {
    if (kept != null) {
      engine.drop(kept);
      kept = null;
    }
  }

  static Outcome outcomeOf(Failure failure) {
    if (failure.leaseFault != null) {
      return outcomeOf(failure.leaseFault, failure);
    }
    if (failure.lacksMethod) {
      return Outcome.of(Outcome.Kind.NO_LEASES, "this server is too old to grant leases");
    }
    if (failure.reason == Reason.NOT_READY && !failure.anotherMayHelp) {
      return Outcome.claiming(failure.reason + ": " + failure.detail, failure.retryAfterMs);
    }
    if (failure.refused()) {
      return failure.reason == Reason.BAD_REQUEST || failure.reason == Reason.REJECTED
          ? Outcome.of(Outcome.Kind.REFUSED, failure.reason + ": " + failure.detail)
          : Outcome.later(failure.reason + ": " + failure.detail, failure.retryAfterMs);
    }
    return Outcome.of(failure.unsent() ? Outcome.Kind.UNSENT : Outcome.Kind.NO_ANSWER, failure.text());
  }

  private static Outcome outcomeOf(LeaseWire.Fault fault, Failure failure) {
    switch (fault) {
      case UNKNOWN_LEASE:
        return Outcome.of(Outcome.Kind.UNKNOWN_LEASE, failure.detail);
      case OUTDATED:
        return Outcome.of(Outcome.Kind.OUTDATED, failure.detail);
      case REVOKED:
        return Outcome.of(Outcome.Kind.REVOKED, failure.detail);
      case ANOTHER_SERVERS:
        return Outcome.elsewhere(failure.detail, failure.leaseServer);
      default: // also the fault of a newer server
        return Outcome.of(Outcome.Kind.NO_LEASES, failure.detail);
    }
  }
}
