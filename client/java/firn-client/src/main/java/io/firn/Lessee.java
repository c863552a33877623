package io.firn;

import io.firn.LeaseWire.Terms;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;

/**
 * Obtains a lease of a machine id, extends it, and obtains the next one in time.
 *
 * <ol>
 * <li>A grant is repeated with its token at the server that may have granted it. After two failures, more in later
 * rounds, the next server gets a fresh token, and the lease of the former token expires unused.
 * <li>A renewal has a fresh turn, which is repeated until it is answered. It names the turn of the last answer.
 * <li>The lease is used until its end, whatever servers answer. The exception is REVOKED, and OUTDATED, which only a
 * copy of this process can cause: then its ids are closed at once.
 * <li>When a third of the interval is left, or at once if its server does not extend it, another lease is requested. It
 * replaces the first.
 * <li>A lease that was replaced, or was stopped, is released: first its ids are closed, then the last tick is read. A
 * lease that cannot be used is released at once.
 * <li>Of several requests that are due, a renewal is sent first, then a grant, then releases.
 * </ol>
 *
 * <p>Owns no thread. One request is under way at a time: due() returns it, and answered() receives its outcome. One
 * thread.
 */
final class Lessee {
  /** The current list of servers. */
  interface Servers {
    /** Returns the address of a server to ask for a lease, one that is not among `tried`; null if there is none. */
    String pickForLease(Set<String> tried);

    /** Returns whether the list has this address. */
    boolean lists(String address);
  }

  /** The kinds of requests. */
  enum Kind { GRANT, RENEWAL, RELEASE }

  /** A request, which is repeated until it has an outcome. */
  static final class Request {
    final Kind kind;
    String server; // its address
    String token = "";
    String lease = "";
    String turn = "";
    String acknowledged = "";
    Long usedTick;
    long clockMs; // the wall clock when it is sent
    long limitMs; // one request is sent at a time, and a more urgent one must be sent before the lease ends
    private long wallAtZeroNs = Long.MAX_VALUE; // wall minus monotonic clock; of several times, the lowest
    private boolean sentInJump; // the last time
    private long sendAt; // in milliseconds of the monotonic clock
    private long pauseMs = RETRY_FIRST_MS;
    private int failures; // in a row, of a grant at its server
    private int failuresMax = FAILURES_FIRST;
    private String named = ""; // address that the grant contained
    private int hops; // to servers that refusals named
    private long uselessAt = Long.MAX_VALUE; // of the id clock: a release after the end of its lease

    private Request(Kind kind, long sendAt) {
      this.kind = kind;
      this.sendAt = sendAt;
    }
  }

  /** The outcome of a request. */
  static final class Outcome {
    /** The kinds of outcomes. */
    enum Kind {
      TERMS, RELEASED, REVOKED, OUTDATED, UNKNOWN_LEASE, ANOTHER_SERVERS,
      /** The server cannot answer yet: the same token or turn is repeated. */
      LATER,
      /** The server is claiming a machine id for the token, which is repeated there. */
      CLAIMING,
      /** The server will not grant or extend a lease now, for the reason in the message. */
      REFUSED,
      /** The server grants and extends no leases. */
      NO_LEASES,
      /** The request may have been handled. */
      NO_ANSWER,
      /** It did not reach the server. */
      UNSENT
    }

    final Kind kind;
    final Terms terms;
    final String message;
    final String server; // of ANOTHER_SERVERS
    final long retryMs;

    private Outcome(Kind kind, Terms terms, String message, String server, long retryMs) {
      this.kind = kind;
      this.terms = terms;
      this.message = message;
      this.server = server;
      this.retryMs = retryMs;
    }

    static Outcome of(Terms terms) {
      return new Outcome(Kind.TERMS, terms, "", "", 0);
    }

    static Outcome of(Kind kind, String message) {
      return new Outcome(kind, null, message, "", 0);
    }

    static Outcome later(String message, long retryMs) {
      return new Outcome(Kind.LATER, null, message, "", retryMs);
    }

    static Outcome claiming(String message, long retryMs) {
      return new Outcome(Kind.CLAIMING, null, message, "", retryMs);
    }

    static Outcome elsewhere(String message, String server) {
      return new Outcome(Kind.ANOTHER_SERVERS, null, message, server, 0);
    }
  }

  /** The lease in use. */
  private static final class Held {
    Terms terms; // of the last answer
    String via; // address of the server that granted it
    String named; // address that the grant contained
    String acknowledged = ""; // turn of the last answer
    String sent = ""; // the last turn sent, unless the server extends no leases
    long endMs; // of the id clock, as the next one
    long thirdMs; // of the interval
    long replaceAtMs;
    long renewAt; // of the monotonic clock, as the next one
    long answeredAt;
    boolean renewable;
    boolean unknown; // its server has no such lease
    boolean expired; // and reported
  }

  static final long RETRY_FIRST_MS = 200;
  private static final long RETRY_MAX_MS = 2_000;
  private static final int RETRY_PART = 12; // of the interval: the longest pause after a failure
  private static final long RETRY_MAX_LEAST_MS = 100;
  private static final long ADVICE_MAX_MS = 10_000; // of a server: a larger one could make the lease end
  private static final long RENEW_MIN_MS = 100;
  private static final long GRANT_PAUSE_MS = 2_000; // between a lease and the request for the next one
  private static final long DUE_MAX_MS = 1_000;
  private static final int FAILURES_FIRST = 2; // of a grant at one server, while another one is known
  private static final int FAILURES_MAX = 8; // in later rounds: the servers may be slow
  private static final int HOPS_MAX = 2;
  private static final int RELEASES_MAX = 4;

  private final LeasedIds ids;
  private final LeasedIds.Clock clock;
  private final Servers servers;
  final Consumer<LeaseLoss> onLost;
  private final boolean knowsUse;
  private final long aheadMs;
  private final SecureRandom random = new SecureRandom();
  private Held held;
  private Request grant;
  private Request renewal;
  private final List<Request> releases = new ArrayList<>();
  private final Set<String> tried = new HashSet<>(); // by the current grant, in this round
  private Set<String> lastServers = Set.of(); // addresses of the server that granted the last lease
  private long intervalMs; // that a server gave last, at most `aheadMs`; before that, `aheadMs`
  private long grantNotBefore = Long.MIN_VALUE;
  private boolean stopping;

  /** `knowsUse`: releases report the last tick of `ids`. Otherwise another generator uses the lease, and its servers
   * keep the whole interval. */
  Lessee(LeasedIds ids, LeasedIds.Clock clock, Servers servers, Consumer<LeaseLoss> onLost, boolean knowsUse,
      long aheadMs) {
    this.ids = ids;
    this.clock = clock;
    this.servers = servers;
    this.onLost = onLost;
    this.knowsUse = knowsUse;
    this.aheadMs = aheadMs;
    this.intervalMs = aheadMs;
  }

  private long now() {
    return clock.nanos() / 1_000_000;
  }

  private String draw() {
    byte[] bytes = new byte[16];
    random.nextBytes(bytes);
    StringBuilder text = new StringBuilder();
    for (byte one : bytes) {
      text.append(String.format("%02x", one));
    }
    return text.toString();
  }

  // --- what is due --------------------------------------------------------------------------------

  /** Returns the request that is to be sent now; null if none is. Reports a lease whose interval has ended. */
  Request due() {
    long time = ids.advance();
    long now = now();
    dropUnused();
    boolean jumped = ids.jumped();
    hurry(jumped, now);
    if (held != null) {
      reportExpiry(time);
      if (held.renewable && renewal == null && now >= held.renewAt) {
        beginRenewal(now);
      }
    }
    boolean lacks = held == null || time >= held.replaceAtMs;
    if (lacks && !stopping && grant == null && now >= grantNotBefore) {
      beginGrant(now);
    }
    releases.removeIf(one -> one.uselessAt <= time);
    for (Request one : pending()) {
      if (one.sendAt <= now && (one.kind != Kind.GRANT || aim(now))) {
        one.clockMs = clock.wallMs(); // before the monotonic clock: a pause between must not prolong the time since
        one.wallAtZeroNs = Math.min(one.wallAtZeroNs, one.clockMs * 1_000_000 - clock.nanos());
        one.limitMs = limitMs(one, time, now);
        one.sentInJump = jumped;
        if (one.kind == Kind.RENEWAL) {
          held.sent = one.turn;
        }
        return one;
      }
    }
    return null;
  }

  /** Drops a lease of which `ids` issues no id: an Error, such as no memory, has interrupted its replacement. */
  private void dropUnused() {
    if (held != null && !ids.issuesOf(held.terms.lease)) {
      held = null;
      renewal = null;
    }
  }

  /** After a jump of the wall clock, makes a request due whose answer confirms it: a renewal, or a request that was sent
   * before the jump. If that fails, too, it has the ordinary pause. */
  private void hurry(boolean jumped, long now) {
    if (held != null && jumped) {
      held.renewAt = Math.min(held.renewAt, held.answeredAt + RENEW_MIN_MS);
    }
    for (Request one : pending()) {
      one.sentInJump &= jumped;
      if (jumped && !one.sentInJump && one.kind != Kind.RELEASE) {
        one.sendAt = Math.min(one.sendAt, now);
      }
    }
  }

  private long limitMs(Request one, long time, long now) {
    if (held == null || one.kind == Kind.GRANT) {
      return LocalGenerator.ATTEMPT_MS;
    }
    long left = one.kind == Kind.RENEWAL ? held.replaceAtMs - time : held.renewAt - now;
    return Math.min(Math.max(left, longestPauseMs()), LocalGenerator.ATTEMPT_MS);
  }

  /** Returns the milliseconds until due() must be called again. */
  long dueInMs() {
    long time = ids.advance();
    long now = now();
    long due = DUE_MAX_MS;
    for (Request one : pending()) {
      due = Math.min(due, one.sendAt - now);
    }
    if (held != null) {
      if (held.renewable && renewal == null) {
        due = Math.min(due, held.renewAt - now);
      }
      due = time < held.replaceAtMs ? Math.min(due, held.replaceAtMs - time) : due;
      due = time < held.endMs ? Math.min(due, held.endMs - time) : due;
    }
    if (!stopping && grant == null && now < grantNotBefore) {
      due = Math.min(due, grantNotBefore - now);
    }
    return Math.max(1, Math.min(due, DUE_MAX_MS));
  }

  /** Returns the requests without an outcome, the most urgent one first. */
  private List<Request> pending() {
    List<Request> all = new ArrayList<>(Arrays.asList(renewal, grant));
    all.removeIf(Objects::isNull);
    all.addAll(releases);
    return all;
  }

  private void reportExpiry(long time) {
    if (time >= held.endMs && !held.expired) {
      held.expired = true;
      lose(LeaseLoss.Kind.EXPIRED, held.terms.machine, "the lease of machine id " + held.terms.machine + " ended at " + LeasedIds.text(held.endMs)
          + ", and no server has extended it: " + ids.reason());
    }
  }

  private void lose(LeaseLoss.Kind kind, int machineId, String why) {
    try {
      onLost.accept(new LeaseLoss(kind, machineId, why));
    } catch (RuntimeException | Error fault) {
      Fleet.report(fault);
    }
  }

  // --- grants -------------------------------------------------------------------------------------

  private void beginGrant(long now) {
    grant = new Request(Kind.GRANT, now);
    tried.clear();
    tried.addAll(lastServers);
  }

  /** Chooses the server of the grant, if it has none. Returns false if none is known. */
  private boolean aim(long now) {
    if (grant.server != null && !tried.contains(grant.server)) {
      return true;
    }
    String server = servers.pickForLease(tried);
    if (server == null) {
      boolean first = grant.server == null && !tried.isEmpty(); // only the server before was left out
      tried.clear();
      grant.failures = 0;
      if (!first) {
        grant.failuresMax = Math.min(2 * grant.failuresMax, FAILURES_MAX);
        explainLackOfServers();
        delay(grant, 0, now);
        return false;
      }
      return aim(now);
    }
    if (!server.equals(grant.server)) {
      grant.server = server;
      grant.token = draw();
      grant.failures = 0;
    }
    return true;
  }

  private void explainLackOfServers() {
    if (grant.server == null) {
      ids.explain("no usable server is known");
    }
  }

  private void granted(Outcome outcome) {
    long now = now();
    switch (outcome.kind) {
      case TERMS:
        String fault = holds(outcome.terms) ? "it is held already" : ids.adopt(outcome.terms);
        if (fault == null) {
          ids.confirm(grant.wallAtZeroNs);
          hold(outcome.terms, now);
        } else {
          giveBack(outcome.terms);
          refused("it granted a lease that cannot be used: " + fault, now);
        }
        return;
      case CLAIMING:
        explain(grant, outcome);
        grant.failures = 0;
        delay(grant, outcome.retryMs, now);
        return;
      case LATER:
      case NO_ANSWER:
        explain(grant, outcome);
        if (++grant.failures >= grant.failuresMax) {
          tried.add(grant.server);
        }
        delay(grant, outcome.retryMs, now);
        return;
      case UNSENT:
        explain(grant, outcome);
        tried.add(grant.server);
        return; // without a pause: another server may be reachable
      default:
        refused(outcome.message, now);
    }
  }

  private void refused(String message, long now) {
    ids.explain(grant.server + ": " + message);
    grant.token = draw(); // the former token may get the same answer each time
    tried.add(grant.server);
    delay(grant, 0, now);
  }

  /** Replaces the lease before, whose ids are closed. */
  private void hold(Terms terms, long now) {
    Held next = new Held();
    next.via = grant.server;
    next.named = terms.server;
    next.terms = terms;
    next.endMs = terms.startOf(terms.untilTick);
    next.replaceAtMs = next.endMs;
    next.renewAt = now;
    next.renewable = true;
    lastServers = new HashSet<>(List.of(grant.server, terms.server));
    releaseHeld();
    renewal = null;
    held = next;
    grant = null;
    grantNotBefore = now + GRANT_PAUSE_MS;
    schedule(terms, now);
  }

  private void schedule(Terms terms, long now) {
    held.terms = terms;
    held.endMs = terms.startOf(terms.untilTick);
    long time = ids.advance();
    long left = Math.max(0, held.endMs - time);
    long third = left / 3;
    intervalMs = left > 0 ? Math.min(left, aheadMs) : intervalMs;
    held.thirdMs = terms.ending ? Math.max(third, held.thirdMs) : third; // finally it is not extended
    held.replaceAtMs = held.endMs - held.thirdMs;
    held.answeredAt = now;
    held.renewAt = now + Math.max(RENEW_MIN_MS, Math.min(terms.renewInMs, third));
    held.renewable = true;
    held.expired = held.expired && time >= held.endMs;
    if (terms.ending) {
      ids.explain("its server extends it up to a final bound");
    }
  }

  // --- renewals -----------------------------------------------------------------------------------

  private void beginRenewal(long now) {
    renewal = new Request(Kind.RENEWAL, now);
    renewal.server = home(held.terms, held.via);
    renewal.named = held.named;
    renewal.lease = held.terms.lease;
    renewal.turn = draw();
    renewal.acknowledged = held.acknowledged;
  }

  /** Returns the address for requests about the lease. */
  private String home(Terms terms, String via) {
    return servers.lists(terms.server) ? terms.server : via;
  }

  private void renewed(Outcome outcome) {
    long now = now();
    switch (outcome.kind) {
      case TERMS:
        extend(outcome.terms, now);
        return;
      case REVOKED:
      case OUTDATED: // by a copy of this process: this one repeats a turn until it is answered
        revoked(outcome.message);
        return;
      case UNKNOWN_LEASE:
      case NO_LEASES:
        held.renewable = false;
        held.unknown = outcome.kind == Outcome.Kind.UNKNOWN_LEASE;
        held.sent = held.acknowledged; // the server has not accepted that of this renewal
        held.replaceAtMs = Long.MIN_VALUE;
        explain(renewal, outcome);
        renewal = null;
        return;
      default:
        explain(renewal, outcome);
        if (follows(renewal, outcome)) {
          return;
        }
        if (outcome.kind == Outcome.Kind.UNSENT) {
          renewal.server = home(held.terms, held.via); // the server that was named is unreachable from here
        }
        delay(renewal, outcome.retryMs, now);
    }
  }

  private void extend(Terms terms, long now) {
    if (terms.fault() != null || !terms.extend(held.terms)) {
      explain(renewal, Outcome.of(Outcome.Kind.REFUSED, "a renewal was answered with the terms of another lease"));
      delay(renewal, 0, now);
      return;
    }
    ids.extend(terms.lease, terms.untilTick);
    ids.confirm(renewal.wallAtZeroNs);
    held.acknowledged = renewal.turn;
    renewal = null;
    schedule(terms, now);
    if (!terms.ending && grant != null) { // this machine id stays; a lease that was granted meanwhile expires unused
      grant = null;
    }
  }

  private void revoked(String message) {
    String why = message.isEmpty() ? "another process may have its ids" : message;
    String sentence = "the lease of machine id " + held.terms.machine + " was revoked: " + why;
    int machineId = held.terms.machine;
    ids.close(sentence);
    held = null;
    renewal = null;
    lose(LeaseLoss.Kind.REVOKED, machineId, sentence);
  }

  /** Returns whether the request is to be sent at once to another server, which the refusal names. The id of a lease is
   * a secret: only servers in the list, and the one that the grant named, receive it. */
  private boolean follows(Request request, Outcome outcome) {
    boolean known = servers.lists(outcome.server)
        || (outcome.server.equals(request.named) && Options.portOf(outcome.server) != 0);
    if (outcome.kind != Outcome.Kind.ANOTHER_SERVERS || !known || request.hops == HOPS_MAX) {
      return false;
    }
    request.server = outcome.server;
    request.hops++;
    return true;
  }

  // --- releases -----------------------------------------------------------------------------------

  /** Releases the lease in use, whose ids are closed. A server that does not know it gets no request. */
  private void releaseHeld() {
    if (held == null || held.unknown) {
      return;
    }
    Request request = release(held.terms, held.via);
    request.named = held.named;
    request.turn = held.sent;
    request.usedTick = knowsUse ? Math.min(ids.lastTick(), held.terms.untilTick - 1) : null;
    request.uselessAt = held.endMs;
  }

  /** Releases a lease under which no id was issued. Its terms may be wrong: an end that has passed, or is more than
   * `ahead` away, is ignored. */
  private void giveBack(Terms terms) {
    if (terms.named() && !holds(terms)) {
      Request request = release(terms, grant.server);
      request.named = terms.server;
      request.usedTick = Math.max(terms.fromTick, 0) - 1;
      long time = ids.advance();
      long end = terms.startOf(terms.untilTick);
      request.uselessAt = end > time && end < time + aheadMs ? end : time + aheadMs;
    }
  }

  private Request release(Terms terms, String via) {
    if (releases.size() == RELEASES_MAX) {
      releases.remove(0);
    }
    Request request = new Request(Kind.RELEASE, now());
    request.server = home(terms, via);
    request.lease = terms.lease;
    releases.add(request);
    return request;
  }

  private void released(Request request, Outcome outcome) {
    switch (outcome.kind) {
      case NO_ANSWER:
      case UNSENT:
      case LATER:
      case CLAIMING:
        delay(request, outcome.retryMs, now());
        return;
      case ANOTHER_SERVERS:
        if (!follows(request, outcome)) {
          delay(request, 0, now());
        }
        return;
      default:
        releases.remove(request);
    }
  }

  // --- outcomes -----------------------------------------------------------------------------------

  /** Receives the outcome of the request that due() returned last. */
  void answered(Request request, Outcome outcome) {
    if (request == grant) {
      granted(outcome);
    } else if (request == renewal) {
      renewed(outcome);
    } else if (releases.contains(request)) {
      released(request, outcome);
    }
  }

  private void explain(Request request, Outcome outcome) {
    ids.explain(request.server + ": " + outcome.message);
  }

  /** Returns the longest pause after a failure: a twelfth of the interval, but at least 100 ms, and at most 2 s. */
  private long longestPauseMs() {
    return Math.min(Math.max(intervalMs / RETRY_PART, RETRY_MAX_LEAST_MS), RETRY_MAX_MS);
  }

  /** Delays the next attempt, twice as long after each failure, and at random in the upper half. The server's advice
   * prolongs this, but not beyond half of the remaining interval. */
  private void delay(Request request, long adviceMs, long now) {
    long longest = Math.min(request.pauseMs, longestPauseMs());
    long pause = longest / 2 + ThreadLocalRandom.current().nextLong(longest / 2 + 1);
    request.pauseMs = 2 * longest;
    long advice = Math.min(adviceMs, ADVICE_MAX_MS);
    long end = request.kind == Kind.RELEASE ? request.uselessAt : held == null ? Long.MIN_VALUE : held.endMs;
    long time = ids.advance();
    if (end > time) {
      advice = Math.min(advice, (end - time) / 2);
    }
    request.sendAt = now + Math.max(pause, advice);
  }

  // --- the end ------------------------------------------------------------------------------------

  /** Closes the ids for good, and requests the end of the lease. */
  void stop() {
    stopping = true;
    ids.stop();
    releaseHeld();
    held = null;
    grant = null;
    renewal = null;
  }

  /** Returns whether nothing is left to be sent after stop(). */
  boolean stopped() {
    return stopping && releases.isEmpty();
  }

  private boolean holds(Terms terms) {
    return held != null && held.terms.lease.equals(terms.lease);
  }

  /** Returns whether a lease is held. */
  boolean holds() {
    return held != null;
  }
}
