package io.firn;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/** One call, which fails over from server to server: what it does next, and what it learns from outcomes. `run` blocks
 * its thread; an AsyncCall takes the same steps without. It asks each server once and sends at most attemptsMax
 * requests; each request after the first one is paid for from the retry budget, unless the server before
 * could not be reached, or has lost other calls as well. A refusal that every server would repeat ends the
 * call. When all servers that could be reached are overloaded, the call waits for the shortest advice and starts over, if the deadline allows.
 * When no server is known, or all were unreachable, silent or draining, it waits for news of servers, or for
 * the time of one attempt, and asks all once more. Nothing begins at or after the deadline. */
final class Call<T> {
  /** Asks one server. */
  interface Attempting<T> {
    T ask(Server server, Ask<T> ask, boolean fresh, long until) throws Failure;
  }

  private static final int CONNECTS_MAX = 16;
  private static final int HOSTS_NAMED = 3;
  private static final long OVERLOAD_PAUSE_MS = 10;

  private final Fleet fleet;
  final Ask<T> ask;
  final long until;
  private final List<Attempt> attempts = new ArrayList<>();
  private Failure last;
  private int sent;
  private boolean waited; // for news of servers
  long waitUntil; // if no server can be asked now
  boolean waitsForNews;
  private boolean foundNobody;
  private boolean freeNext = true; // of the retry budget
  private long attemptBegan;
  private Set<Server> tried; // in this round, as all below
  private int unreached;
  private int overloaded;
  private int lost;
  private long adviceMs;

  Call(Fleet fleet, Ask<T> ask, long deadlineMs) {
    this.fleet = fleet;
    this.ask = ask;
    until = Server.now() + deadlineMs;
    fleet.budget.callBegins();
    beginRound();
  }

  private void beginRound() {
    tried = new HashSet<>();
    unreached = overloaded = lost = 0;
    adviceMs = Long.MAX_VALUE;
  }

  T run(Attempting<T> attempting) throws FirnException {
    while (true) {
      if (Thread.currentThread().isInterrupted()) {
        throw failure("the thread was interrupted");
      }
      Server server = next();
      if (server == null) {
        fleet.await(waitUntil, waitsForNews);
        continue;
      }
      try {
        return askOne(server, attempting);
      } catch (Failure failure) {
        heed(server, failure);
      }
    }
  }

  /** Returns the server to ask; null: the call waits until `waitUntil`, or for news of servers if `waitsForNews`. */
  Server next() throws FirnException {
    stopIfOver();
    Server server = null;
    if (sent < fleet.options.attemptsMax) {
      server = fleet.pick(ask.tag, tried);
      if (server == null && waited) {
        beginRound();
        server = fleet.pick(ask.tag, tried);
      }
    }
    waited = server == null && await();
    if (server != null && !freeNext) {
      payForRetry(server);
    }
    attemptBegan = Server.now();
    return server;
  }

  private void payForRetry(Server server) throws FirnException {
    if (fleet.budget.take(Server.now())) {
      fleet.tally.retries.increment();
      return;
    }
    fleet.tally.retriesDenied.increment();
    fleet.giveBack(server);
    throw failure("the retry budget is exhausted");
  }

  /** Asks the server; tries again on a new connection if an idle one turns out to be closed. */
  private T askOne(Server server, Attempting<T> attempting) throws Failure {
    try {
      return timed(server, attempting, false);
    } catch (Failure failure) {
      if (!failure.stale || Server.now() >= until) {
        throw failure;
      }
      return timed(server, attempting, true);
    } finally {
      fleet.giveBack(server);
    }
  }

  private T timed(Server server, Attempting<T> attempting, boolean fresh) throws Failure {
    long began = System.nanoTime();
    try {
      T answer = attempting.ask(server, ask, fresh, until);
      answered(server);
      return answer;
    } catch (Failure failure) {
      failed(server, failure, began);
      throw failure;
    }
  }

  void answered(Server server) {
    fleet.answered(server, ask.tag, ask.form == Ask.Form.NOTHING); // a status contains no ids
    fleet.tally.attempted(null);
  }

  /** Records an attempt that began at that time, in nanoseconds. */
  void failed(Server server, Failure failure, long began) {
    fleet.tally.attempted(failure);
    double tookMs = (System.nanoTime() - began) / 1e6;
    attempts.add(new Attempt(server.address, failure.end, failure.reason, tookMs, failure.detail));
    // A timeout after too little time says nothing about the server's health.
    boolean late = failure.end == Attempt.End.TIMEOUT || failure.end == Attempt.End.CONNECT_TIMEOUT;
    if (!failure.counted && (!late || tookMs * 2 >= fleet.options.attemptLimitMs)) {
      fleet.failed(server, ask.tag, failure);
    }
  }

  /** Records the outcome of an attempt. Throws the call's failure if the attempt ends it. */
  void heed(Server server, Failure failure) throws FirnException {
    last = failure;
    if (failure.refused() && failure.reason.retry != Reason.Retry.ELSEWHERE
        && !(failure.reason.retry == Reason.Retry.IF_SAID && failure.anotherMayHelp)) {
      throw new FirnException(FirnException.Kind.REFUSED, failure.detail, failure.reason,
          failure.retryAfterMs, attempts);
    }
    if (fleet.options.failfast) {
      throw failure("the first server failed");
    }
    tried.add(server);
    freeNext = failure.unsent()
        || (failure.end == Attempt.End.TIMEOUT && fleet.mayMove(server, attemptBegan));
    if (failure.unsent()) {
      unreached++;
    } else {
      sent++;
    }
    if (failure.unsent() || failure.end == Attempt.End.TIMEOUT || failure.end == Attempt.End.CLOSED
        || failure.reason == Reason.DRAINING) {
      lost++;
    }
    if (failure.reason == Reason.OVERLOADED) {
      overloaded++;
      long advice = failure.retryAfterMs > 0 ? failure.retryAfterMs : OVERLOAD_PAUSE_MS;
      adviceMs = Math.min(advice, adviceMs);
    }
  }

  /** Decides how long to wait for an event that may help, or fails. Returns whether that can be news of servers. */
  private boolean await() throws FirnException {
    long now = Server.now();
    long paused = fleet.pausedUntil(tried);
    if (sent < fleet.options.attemptsMax && paused != Server.NEVER) {
      wait(Math.min(until, paused), true);
      return false;
    }
    foundNobody |= tried.isEmpty();
    if (overloaded > 0 && overloaded + unreached == tried.size()) {
      // Adds up to half of the time at random, so that clients do not return together.
      long left = until - now - adviceMs;
      if (left <= 0) {
        throw failure("all servers are overloaded");
      }
      long pause = adviceMs + ThreadLocalRandom.current().nextLong(Math.min(adviceMs, left) / 2 + 1);
      wait(now + pause, false);
      sent = 0;
      beginRound();
      return false;
    }
    boolean news = tried.isEmpty() || (lost == tried.size() && fleet.options.listsChange());
    if (!news || sent >= fleet.options.attemptsMax) {
      throw failure("no other server is left to ask");
    }
    wait(Math.min(until, now + fleet.options.attemptLimitMs), true);
    return true;
  }

  private void wait(long until, boolean forNews) {
    waitUntil = until;
    waitsForNews = forNews;
  }

  private void stopIfOver() throws FirnException {
    if (Server.now() >= until || fleet.stopped()) {
      throw failure("the deadline has passed");
    }
    if (unreached >= CONNECTS_MAX) {
      throw failure("too many servers are out of reach");
    }
  }

  FirnException failure(String why) {
    String sentence = why;
    if (foundNobody && attempts.isEmpty()) {
      sentence = "no provider: no usable server is known";
      List<String> hosts = fleet.unresolved();
      if (!hosts.isEmpty()) {
        sentence += "; no address is known for " + String.join(", ", hosts.subList(0, Math.min(HOSTS_NAMED, hosts.size())));
      }
      fleet.tell("no server", "", sentence);
    }
    return new FirnException(FirnException.Kind.UNAVAILABLE, sentence,
        last == null ? null : last.reason, last == null ? 0 : last.retryAfterMs, attempts);
  }
}
