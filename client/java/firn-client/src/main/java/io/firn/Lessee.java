package io.firn;

import io.firn.LeaseWire.Terms;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
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
 * <li>When a third of the interval is left, another lease is requested. It replaces the first.
 * <li>A lease that was replaced, or was stopped, is released: first its ids are closed, then the last tick is read.
 * </ol>
 *
 * <p>Owns no thread. One request is under way at a time: due() returns it, and answered() receives its outcome. One
 * thread.
 */
final class Lessee {
  /** The servers that can be asked for a lease. */
  interface Servers {
    /** Returns the address of one that is not among `tried`; null if there is none. */
    String pick(Set<String> tried);
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
    private long sendAt; // in milliseconds of the monotonic clock
    private long pauseMs = RETRY_FIRST_MS;
    private int failures; // in a row, of a grant at its server
    private int failuresMax = FAILURES_FIRST;
    private int redirects;
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
      /** The server will not grant or extend a lease to this program, for the reason in the message. */
      REFUSED,
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

    static Outcome elsewhere(String message, String server) {
      return new Outcome(Kind.ANOTHER_SERVERS, null, message, server, 0);
    }
  }

  /** The lease in use. */
  private static final class Held {
    Terms terms; // of the last answer
    String server; // its address, by its own account
    String via; // the address that granted it
    String acknowledged = ""; // turn of the last answer
    String sent = ""; // the last turn sent
    long endMs; // of the id clock, as the next one
    long replaceAtMs;
    long renewAt; // of the monotonic clock
    boolean renewable;
    boolean expired; // and reported
  }

  static final long RETRY_FIRST_MS = 200;
  private static final long RETRY_MAX_MS = 10_000;
  private static final long RENEW_MIN_MS = 100;
  private static final long GRANT_PAUSE_MS = 2_000; // between a lease and the request for the next one
  private static final long DUE_MAX_MS = 1_000;
  private static final int FAILURES_FIRST = 2; // of a grant at one server, while another one is known
  private static final int FAILURES_MAX = 8; // in later rounds: the servers may be slow
  private static final int REDIRECTS_MAX = 3;
  private static final int RELEASES_MAX = 4;

  private final LeasedIds ids;
  private final LeasedIds.Clock clock;
  private final Servers servers;
  private final Consumer<String> onLost;
  private final boolean knowsUse;
  private final SecureRandom random = new SecureRandom();
  private Held held;
  private Request grant;
  private Request renewal;
  private final List<Request> releases = new ArrayList<>();
  private final Set<String> tried = new HashSet<>(); // by the current grant, in this round
  private String lastServer; // of the lease held last
  private long grantNotBefore = Long.MIN_VALUE;
  private boolean stopping;

  /** `knowsUse`: releases report the last tick of `ids`. Otherwise another generator uses the lease, and its servers
   * keep the whole interval. */
  Lessee(LeasedIds ids, LeasedIds.Clock clock, Servers servers, Consumer<String> onLost, boolean knowsUse) {
    this.ids = ids;
    this.clock = clock;
    this.servers = servers;
    this.onLost = onLost;
    this.knowsUse = knowsUse;
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
    Request first = earliest();
    if (first == null || first.sendAt > now || (first.kind == Kind.GRANT && !aim(now))) {
      return null;
    }
    first.clockMs = clock.wallMs();
    if (first.kind == Kind.RENEWAL) {
      held.sent = first.turn;
    }
    return first;
  }

  /** Returns the milliseconds until due() must be called again. */
  long dueInMs() {
    long time = ids.advance();
    long now = now();
    Request first = earliest();
    long due = first == null ? DUE_MAX_MS : first.sendAt - now;
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

  private Request earliest() {
    List<Request> all = new ArrayList<>(releases);
    all.add(renewal);
    all.add(grant);
    Request first = null;
    for (Request one : all) {
      first = one != null && (first == null || one.sendAt < first.sendAt) ? one : first;
    }
    return first;
  }

  private void reportExpiry(long time) {
    if (time >= held.endMs && !held.expired) {
      held.expired = true;
      lose("the lease of machine id " + held.terms.machine + " ended at " + LeasedIds.text(held.endMs)
          + ", and no server has extended it: " + ids.reason());
    }
  }

  private void lose(String why) {
    try {
      onLost.accept(why);
    } catch (RuntimeException | Error fault) {
      Fleet.report(fault);
    }
  }

  // --- grants -------------------------------------------------------------------------------------

  private void beginGrant(long now) {
    grant = new Request(Kind.GRANT, now);
    tried.clear();
    if (lastServer != null) {
      tried.add(lastServer);
    }
  }

  /** Chooses the server of the grant, if it has none. Returns false if none is known. */
  private boolean aim(long now) {
    if (grant.server != null && !tried.contains(grant.server)) {
      return true;
    }
    String server = servers.pick(tried);
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
        String fault = outcome.terms.fault();
        if (fault != null) {
          refused("the terms of a lease are unusable: " + fault, now);
        } else {
          adopt(outcome.terms, now);
        }
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
    grant.token = draw(); // the former one may get the same answer for ever
    tried.add(grant.server);
    delay(grant, 0, now);
  }

  /** Uses the lease from now on. Its adoption closes the ids of the lease before. */
  private void adopt(Terms terms, long now) {
    String via = grant.server;
    grant = null;
    if (!ids.adopt(terms)) {
      release(terms, Options.portOf(terms.server) == 0 ? via : terms.server, "", terms.fromTick - 1);
      return;
    }
    if (held != null) {
      releaseHeld();
    }
    renewal = null;
    held = new Held();
    held.via = via;
    held.server = Options.portOf(terms.server) == 0 ? via : terms.server;
    lastServer = via;
    grantNotBefore = now + GRANT_PAUSE_MS;
    schedule(terms, now);
  }

  private void schedule(Terms terms, long now) {
    held.terms = terms;
    held.endMs = terms.startOf(terms.untilTick);
    long time = ids.advance();
    long third = Math.max(0, held.endMs - time) / 3;
    held.replaceAtMs = held.endMs - third;
    held.renewAt = now + Math.max(RENEW_MIN_MS, Math.min(terms.renewInMs, third));
    held.renewable = !terms.ending;
    held.expired = held.expired && time >= held.endMs;
    if (terms.ending) {
      ids.explain("its server extends it no further");
    }
  }

  // --- renewals -----------------------------------------------------------------------------------

  private void beginRenewal(long now) {
    renewal = new Request(Kind.RENEWAL, now);
    renewal.server = held.server;
    renewal.lease = held.terms.lease;
    renewal.turn = draw();
    renewal.acknowledged = held.acknowledged;
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
        held.renewable = false;
        held.replaceAtMs = Long.MIN_VALUE;
        ids.explain(held.server + ": " + outcome.message);
        renewal = null;
        return;
      case ANOTHER_SERVERS:
        redirect(outcome, now);
        return;
      default:
        explain(renewal, outcome);
        if (outcome.kind == Outcome.Kind.NO_ANSWER || outcome.kind == Outcome.Kind.UNSENT) {
          renewal.server = renewal.server.equals(held.server) ? held.via : held.server;
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
    ids.extendTo(terms.untilTick);
    held.acknowledged = renewal.turn;
    held.server = renewal.server;
    renewal = null;
    schedule(terms, now);
    if (held.renewable && grant != null) { // this machine id stays; a lease that was granted meanwhile expires unused
      grant = null;
    }
  }

  private void revoked(String message) {
    String why = message.isEmpty() ? "another process may have its ids" : message;
    String sentence = "the lease of machine id " + held.terms.machine + " was revoked: " + why;
    ids.close(sentence);
    held = null;
    renewal = null;
    lose(sentence);
  }

  private void redirect(Outcome outcome, long now) {
    boolean follows = Options.portOf(outcome.server) != 0 && ++renewal.redirects <= REDIRECTS_MAX;
    if (follows) {
      held.server = outcome.server;
      renewal.server = outcome.server;
      return; // at once
    }
    explain(renewal, outcome);
    renewal.redirects = 0;
    delay(renewal, 0, now);
  }

  // --- releases -----------------------------------------------------------------------------------

  /** The ids of the lease must be closed. */
  private void releaseHeld() {
    release(held.terms, held.server, held.sent, Math.min(ids.lastTick(), held.terms.untilTick - 1));
  }

  private void release(Terms terms, String server, String turn, long usedTick) {
    if (releases.size() == RELEASES_MAX) {
      releases.remove(0);
    }
    Request request = new Request(Kind.RELEASE, now());
    request.server = server;
    request.lease = terms.lease;
    request.turn = turn;
    request.usedTick = knowsUse ? usedTick : null;
    request.uselessAt = terms.startOf(terms.untilTick);
    releases.add(request);
  }

  private void released(Request request, Outcome outcome) {
    switch (outcome.kind) {
      case NO_ANSWER:
      case UNSENT:
      case LATER:
        delay(request, outcome.retryMs, now());
        return;
      case ANOTHER_SERVERS:
        if (Options.portOf(outcome.server) != 0 && ++request.redirects <= REDIRECTS_MAX) {
          request.server = outcome.server;
          return;
        }
        break;
      default:
    }
    releases.remove(request);
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

  /** Delays the next attempt, twice as long after each failure, and at random in the upper half. */
  private static void delay(Request request, long adviceMs, long now) {
    long pause = request.pauseMs / 2 + ThreadLocalRandom.current().nextLong(request.pauseMs / 2 + 1);
    request.sendAt = now + Math.max(pause, Math.min(adviceMs, RETRY_MAX_MS));
    request.pauseMs = Math.min(2 * request.pauseMs, RETRY_MAX_MS);
  }

  // --- the end ------------------------------------------------------------------------------------

  /** Closes the ids for good, and requests the end of the lease. */
  void stop() {
    stopping = true;
    ids.stop();
    if (held != null) {
      releaseHeld();
      held = null;
    }
    grant = null;
    renewal = null;
  }

  /** Returns whether nothing is left to be sent after stop(). */
  boolean stopped() {
    return stopping && releases.isEmpty();
  }

  /** Returns whether a lease is held. */
  boolean holds() {
    return held != null;
  }
}
