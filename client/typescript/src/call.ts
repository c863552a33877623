import { performance } from 'node:perf_hooks';

import { Alarm } from './alarm.js';
import { type Answered, type Ask, encodeAsk } from './asks.js';
import type { Connection, Pending } from './connection.js';
import type { Engine } from './engine.js';
import { type Attempt, type End, type ErrorKind, failed, type Failure, FirnError, spoke, unsent } from './errors.js';
import type { Server } from './server.js';

const CONNECTS_MAX = 16;
const ATTEMPTS_KEPT = 32;
const ROUNDS_MAX = 100;
const OVERLOAD_PAUSE_MS = 10;

/** One request of a call at one server. */
class Asking implements Pending {
  abandoned = false;
  late = false;

  constructor(private readonly call: Call<unknown>, readonly server: Server, readonly connection: Connection,
              readonly ask: Ask<unknown>, readonly began: number) {}

  ended(outcome: Answered<unknown>, now: number): void {
    this.call.ended(this, outcome, now);
  }

  isLate(shared: boolean, now: number): boolean {
    return this.call.isLate(this, shared, now);
  }
}

/**
 * The failover of one call. It tries each server once, and sends at most `attemptsMax` requests. A refusal that
 * another server would repeat ends it. If all reachable servers are overloaded, it waits for the shortest advised
 * time and starts again, if the deadline permits. If no server is left, or all are unreachable, silent or draining,
 * it waits for news of servers, or for the time of an attempt, and tries all of them once more. No attempt starts at
 * or after the deadline.
 *
 * A server that answers other calls but not this one keeps the request: the call asks the next server, and takes
 * whichever answer comes first.
 */
export class Call<T> {
  private readonly request: Buffer;
  private attempts: Attempt[] = []; // the last ATTEMPTS_KEPT
  private dropped = 0; // earlier attempts
  private last: Failure | undefined;
  private asking: Asking | undefined;
  private late: Asking[] = [];
  private sent = 0;
  private alone = false; // no server could be asked
  private paid = false; // the next request uses the retry budget
  private rounds = 0; // rounds that ended because all servers were overloaded
  private again: Server | undefined; // its idle connection turned out to be closed
  private repeated = false;
  private waited = false; // for news

  private tried: Server[] = []; // in this round, as all below
  private unreached = 0;
  private overloaded = 0;
  private lost = 0;
  private advice = 0;

  private finished = false;
  private until: number;
  private deadline: Alarm | undefined;
  private sleep: Alarm | undefined;
  private cancelNews: (() => void) | undefined;

  constructor(private readonly engine: Engine, private readonly ask: Ask<T>, private readonly limitMs: number,
              private readonly signal: AbortSignal | undefined, private readonly resolve: (answer: T) => void,
              private readonly reject: (fault: unknown) => void) {
    this.request = encodeAsk(ask as Ask<unknown>);
    const now = performance.now();
    this.until = now + limitMs;
    engine.calls.add(this as Call<unknown>);
    engine.counters.calls++;
    engine.fleet.budget.callBegins();
    signal?.addEventListener('abort', this.onAbort);
    this.advance(now);
  }

  /** The deadline starts. */
  turnEnds(now: number): void {
    if (this.finished) return;
    this.until = now + this.limitMs;
    this.deadline = new Alarm(this.until, this.onDeadline, true, now);
  }

  private advance(now: number): void {
    if (this.finished) return;
    const why = this.over(now);
    if (why) return this.fail(why, now);
    const { fleet, settings } = this.engine;
    if (this.again?.mayServe(now)) {
      this.again.inFlight++;
      return this.send(this.again, now);
    }
    this.again = undefined;
    let server: Server | undefined;
    if (this.sent < settings.attemptsMax) {
      server = fleet.pick(this.ask.tag, this.tried, now);
      if (!server && this.waited) {
        this.beginRound();
        server = fleet.pick(this.ask.tag, this.tried, now);
      }
    }
    this.waited = false;
    if (!server) return this.wait(now);
    if (this.paid) {
      if (!fleet.budget.take(now)) {
        server.inFlight--;
        this.engine.counters.retriesDenied++;
        return this.stall('the retry budget is exhausted', now);
      }
      this.engine.counters.retries++;
    }
    this.repeated = false;
    this.send(server, now);
  }

  private send(server: Server, now: number): void {
    this.again = undefined;
    this.engine.counters.attempts++;
    const asking = new Asking(this as Call<unknown>, server, this.engine.connectionTo(server), this.ask, now);
    this.asking = asking;
    asking.connection.send(asking, now, this.request);
  }

  // --- ends of requests -----------------------------------------------------------------------------

  ended(asking: Asking, outcome: Answered<unknown>, now: number): void {
    const { server } = asking;
    server.inFlight--;
    if ('answer' in outcome) {
      // A late answer does not make up for its timeout: a server that is always late is ejected.
      if (!asking.late) this.engine.rules.answered(server, this.ask.tag, this.ask.givesIds, now);
      if (!this.finished) this.succeed(outcome.answer as T);
      return;
    }
    const { failure } = outcome;
    const tookMs = now - asking.began;
    // A timeout after too little time says nothing about the server's health.
    const short = (failure.end === 'timeout' || failure.end === 'connect timeout') &&
      2 * tookMs < this.engine.settings.attemptLimitMs;
    if (!failure.shared && !short && !asking.late && !this.engine.closed) {
      this.engine.count(failure);
      this.engine.rules.failed(server, this.ask.tag, failure, now);
    }
    if (this.finished || asking.abandoned) return;
    if (asking.late) {
      this.late = this.late.filter((one) => one !== asking);
      if (!this.asking && !this.sleep) this.advance(now);
      return;
    }
    this.asking = undefined;
    this.record(asking, failure.end, failure, now);
    if (failure.stale && !this.repeated) {
      this.repeated = true;
      this.again = server;
    } else if (this.heed(server, asking.began, failure, now)) {
      return this.refused(failure);
    } else if (this.engine.settings.failfast) {
      return this.fail('the first server failed', now);
    }
    this.advance(now);
  }

  isLate(asking: Asking, shared: boolean, now: number): boolean {
    if (this.finished || asking !== this.asking) return false;
    const failure = { ...failed('timeout', ''), shared };
    if (!shared) {
      this.engine.count(failure);
      this.engine.rules.failed(asking.server, this.ask.tag, failure, now);
    }
    this.asking = undefined;
    asking.late = true;
    this.late.push(asking);
    this.record(asking, 'timeout', failure, now);
    this.heed(asking.server, asking.began, failure, now);
    if (this.engine.settings.failfast) this.fail('the first server failed', now);
    else this.advance(now);
    return true;
  }

  private record(asking: Asking, end: End, failure: Failure | undefined, now: number): void {
    if (this.attempts.length === ATTEMPTS_KEPT) {
      this.attempts.shift();
      this.dropped++;
    }
    const reason = failure?.reason ? { reason: failure.reason } : {};
    this.attempts.push({
      server: asking.server.address, end, ...reason, tookMs: now - asking.began, detail: failure?.detail ?? '',
    });
  }

  /** Records the outcome of an attempt; returns whether it ends the call. */
  private heed(server: Server, began: number, failure: Failure, now: number): boolean {
    this.last = failure;
    if (failure.end === 'refused' && !anotherMayAnswer(failure)) return true;
    this.tried.push(server);
    const free = unsent(failure) || (failure.shared && this.engine.rules.mayMove(server, began, now));
    this.paid = !free;
    if (unsent(failure)) this.unreached++;
    else this.sent++;
    if (!spoke(failure) || failure.reason === 'DRAINING') this.lost++;
    if (failure.reason === 'OVERLOADED') {
      const advice = Math.max(failure.retryAfterMs, OVERLOAD_PAUSE_MS);
      this.advice = this.overloaded === 0 ? advice : Math.min(this.advice, advice);
      this.overloaded++;
    }
    return false;
  }

  // --- waiting --------------------------------------------------------------------------------------

  private beginRound(): void {
    this.tried = [];
    this.unreached = this.overloaded = this.lost = this.advice = 0;
  }

  /** Waits for an event that may help, or fails. */
  private wait(now: number): void {
    const { fleet, settings } = this.engine;
    const mayAsk = this.sent < settings.attemptsMax;
    const paused = fleet.pausedUntil(this.tried, now);
    if (paused !== Infinity && mayAsk) return this.sleepUntil(Math.min(paused, this.until), true);
    this.alone ||= this.tried.length === 0;
    if (this.overloaded > 0 && this.overloaded + this.unreached === this.tried.length) {
      const room = this.until - now - this.advice;
      this.rounds++;
      if (room <= 0 || this.rounds === ROUNDS_MAX) return this.stall('all servers are overloaded', now);
      // Adds up to half of the time at random, so that clients do not return together.
      const pause = this.advice + (Math.random() * Math.min(this.advice, room)) / 2;
      this.sent = 0;
      this.beginRound();
      return this.sleepUntil(now + pause, false);
    }
    const lost = this.lost === this.tried.length && settings.listsChange;
    if (!(this.tried.length === 0 || lost) || !mayAsk) return this.stall('no other server is left to ask', now);
    this.waited = true;
    this.sleepUntil(Math.min(now + settings.attemptLimitMs, this.until), true);
  }

  private sleepUntil(at: number, forNews: boolean): void {
    const wake = (): void => {
      this.wakeUp();
      this.advance(performance.now());
    };
    this.sleep = new Alarm(at, wake, true);
    if (forNews) this.cancelNews = this.engine.fleet.onNews(wake);
  }

  private wakeUp(): void {
    this.sleep?.cancel();
    this.sleep = undefined;
    this.cancelNews?.();
    this.cancelNews = undefined;
  }

  // --- the end --------------------------------------------------------------------------------------

  private over(now: number): string {
    if (this.engine.closed) return 'the client was closed';
    if (now >= this.until) return 'the deadline has passed';
    return this.unreached >= CONNECTS_MAX ? 'too many servers are out of reach' : '';
  }

  private readonly onDeadline = (): void => this.fail('the deadline has passed', performance.now());

  private readonly onAbort = (): void => {
    if (this.finished) return;
    this.finish();
    this.engine.counters.failed++;
    this.reject(this.signal!.reason);
  };

  /** Ends the call when the client is closed. */
  closed(): void {
    this.fail('the client was closed', performance.now());
  }

  /** Fails, unless a server that is late may still answer. */
  private stall(why: string, now: number): void {
    if (this.late.length === 0) this.fail(why, now);
  }

  private succeed(answer: T): void {
    this.finish();
    this.resolve(answer);
  }

  private refused(failure: Failure): void {
    this.finish();
    this.engine.counters.refused++;
    this.reject(new FirnError('refused', failure.detail, {
      reason: failure.reason, retryAfterMs: failure.retryAfterMs, attempts: this.attempts,
    }));
  }

  private fail(why: string, now: number): void {
    if (this.finished) return;
    if (this.asking) {
      const silence = this.asking.connection.silence();
      this.record(this.asking, silence.end, silence, now);
      this.last = silence;
    }
    this.finish();
    this.engine.counters.failed++;
    let text = why;
    if (this.dropped > 0) text += `; the last ${ATTEMPTS_KEPT} of ${ATTEMPTS_KEPT + this.dropped} attempts:`;
    let kind: ErrorKind = 'unavailable';
    if (this.engine.closed) {
      [kind, text] = ['closed', 'the client was closed'];
    } else if (this.alone && this.attempts.length === 0) {
      text = 'no usable server is known';
      this.engine.fleet.tell('no server', '', text);
    }
    this.reject(new FirnError(kind, text, {
      reason: this.last?.reason, retryAfterMs: this.last?.retryAfterMs ?? 0, attempts: this.attempts,
    }));
  }

  private finish(): void {
    this.finished = true;
    if (this.asking) this.asking.abandoned = true;
    for (const one of this.late) one.abandoned = true;
    this.wakeUp();
    this.deadline?.cancel();
    this.signal?.removeEventListener('abort', this.onAbort);
    this.engine.calls.delete(this as Call<unknown>);
  }
}

function anotherMayAnswer(refusal: Failure): boolean {
  switch (refusal.reason) {
    case 'NOT_READY': case 'CLOCK': case 'OVERLOADED': case 'DRAINING': case 'STORE_DOWN':
      return true;
    case 'INTERNAL': case 'EXHAUSTED':
      return refusal.anotherMayHelp;
  }
  return false;
}
