import { FirnError } from './errors.js';
import type { Now } from './id_pace.js';
import { haveOneLayout, type Lease, startOf } from './lease.js';
import { RETRY_FIRST_MS, advisedMs, longestDelayMs, uselessAtMs } from './lease_pace.js';
import type { LeaseLoss, LeaseOutcome, LeaseRequest, UnusableTerms } from './lease_request.js';
import { type LeasedIds, utc } from './leased_ids.js';
import type { Grant, Held, Pending, Release, Renewal } from './lessee_requests.js';

export interface LesseeOptions {
  readonly aheadMs: number;
  readonly onLost: (loss: LeaseLoss) => void;
  /** Returns whether the list of servers has this address. */
  readonly knows: (address: string) => boolean;
  /** A request failed, and is repeated or given up. `failure`: every server would refuse it again. */
  readonly onRefused: (message: string, failure: FirnError | undefined) => void;
  /** Returns 128 unguessable random bits as 32 hexadecimal digits. */
  readonly draw: () => string;
  /** Returns a number from 0, inclusive, to 1, exclusive. */
  readonly random: () => number;
}

const RENEW_MIN_MS = 100;
const TICK_MAX_MS = 1_000;
const REPEATS_MAX = 1; // of a grant at one server
const HOPS_MAX = 2;
const RELEASES_MAX = 4;
const GRANT_PAUSE_MS = 2_000; // between a lease and the request for another

/**
 * Obtains a lease, extends it, and obtains the next one in time.
 *
 * 1. A grant is repeated with its token at the server that may have granted it, once, or until it is answered if that is the
 *    only server. Then another one is asked with a fresh token: nothing was issued under the first, and its lease expires.
 * 2. A renewal has a fresh turn, which is repeated until it is answered, and the turn that was answered last. If several
 *    requests are due, it is sent first.
 * 3. The lease is used until its end. Only a revocation ends it earlier: then the generator is closed at once.
 * 4. A lease that is ending is renewed, too: its server extends it up to a final bound. When a third of the interval is left,
 *    or at once if the server does not extend the lease, another one is requested. It replaces the first, and continues in a later tick.
 * 5. A lease that was replaced is released: first its ids are closed, then the last tick is read. A lease that cannot be
 *    used is released at once.
 * 6. A lease's id is secret. It is sent only to servers in the list, to the one that granted the lease, and to the one that
 *    the grant named.
 *
 * Reads no clock but the id clock, sends nothing itself and never waits.
 */
export class Lessee {
  private numbers = 0;
  private held: Held | undefined;
  private grant: Grant | undefined;
  private renewal: Renewal | undefined;
  private releases: Release[] = [];
  private lastServer = '';
  private grantNotBeforeMs = -Infinity;
  private stopping = false;
  private nextTickMs = 0;
  private intervalMs: number; // that a server gave last, at most `aheadMs`; before that, `aheadMs`

  constructor(private readonly options: LesseeOptions, private readonly ids: LeasedIds) {
    this.intervalMs = options.aheadMs;
  }

  /** When `tick` must be called next, by the monotonic clock. */
  get dueMs(): number {
    return this.nextTickMs;
  }

  /** Whether nothing is left to be sent after `stop`. */
  get stopped(): boolean {
    return this.stopping && this.releases.length === 0;
  }

  /** Returns the requests that are due, with their numbers. */
  tick(now: Now): [number, LeaseRequest][] {
    const timeMs = this.ids.advance();
    this.nextTickMs = now.monoMs + TICK_MAX_MS;
    this.hurry(now);
    if (this.held) this.tickHeld(this.held, timeMs, now);
    const wanted = !this.stopping && (!this.held || timeMs >= this.held.replaceAtMs);
    if (wanted && now.monoMs >= this.grantNotBeforeMs) this.grant ??= this.newGrant(now);
    this.releases = this.releases.filter((one) => one.uselessAtMs > timeMs);

    const due: [number, LeaseRequest][] = [];
    const { grant, renewal, held } = this;
    const clockMs = now.wallMs;
    if (renewal && held && this.isDue(renewal, now)) {
      due.push([renewal.number, {
        kind: 'renewal', server: held.server, lease: held.lease.id, turn: renewal.turn, acknowledged: held.acknowledged,
        clockMs,
      }]);
    }
    if (grant && this.isDue(grant, now)) {
      due.push([grant.number, { kind: 'grant', server: grant.server, avoid: grant.avoid, token: grant.token, clockMs }]);
    }
    for (const one of this.releases) {
      if (!this.isDue(one, now)) continue;
      const { server, lease, turn, usedTick } = one;
      due.push([one.number, { kind: 'release', server, lease, turn, usedTick, clockMs }]);
    }
    return due;
  }

  /** The outcome of a request. Ignored if the request is no longer needed. */
  onReply(number: number, outcome: LeaseOutcome, now: Now): void {
    this.nextTickMs = now.monoMs;
    const release = this.releases.find((one) => one.number === number);
    const pending = [this.grant, this.renewal, release].find((one) => one?.number === number);
    if (!pending) return;
    pending.inFlight = false;
    if (pending === this.grant) this.onGrant(this.grant, outcome, now);
    else if (pending === this.renewal && this.held) this.onRenewal(this.renewal, this.held, outcome, now);
    else if (release) this.onRelease(release, outcome, now);
  }

  /** Closes the generator for good, and asks for the end of its lease. */
  stop(now: Now, failure: () => FirnError): void {
    if (this.stopping) return;
    this.stopping = true;
    this.ids.close(failure);
    this.release(now);
    this.held = this.grant = this.renewal = undefined;
    this.nextTickMs = now.monoMs;
  }

  // --- what is due ----------------------------------------------------------------------------------

  private tickHeld(held: Held, timeMs: number, now: Now): void {
    const endMs = startOf(held.lease, held.lease.untilTick);
    if (timeMs >= endMs && !held.expired) {
      held.expired = true;
      this.lose('expired', held, `the lease ended at ${utc(endMs)}, and no server has extended it`);
    }
    if (held.renewable && !this.renewal) {
      if (now.monoMs >= held.renewAtMs) this.renewal = { ...this.newPending(now), turn: this.options.draw() };
      else this.nextTickMs = Math.min(this.nextTickMs, held.renewAtMs);
    }
    if (timeMs < endMs) this.nextTickMs = Math.min(this.nextTickMs, now.monoMs + endMs - timeMs);
  }

  /**
   * After a jump of the wall clock, makes a request due whose answer confirms it: a renewal, or a request that was sent
   * before the jump. If that fails, too, it has the ordinary delay.
   */
  private hurry(now: Now): void {
    const { held, ids: { jumped } } = this;
    if (held && jumped) held.renewAtMs = Math.min(held.renewAtMs, held.answeredAtMs + RENEW_MIN_MS);
    for (const one of [this.renewal, this.grant]) {
      if (!one) continue;
      one.sentInJump &&= jumped;
      if (jumped && !one.sentInJump) one.sendAtMs = Math.min(one.sendAtMs, now.monoMs);
    }
  }

  private newPending(now: Now): Pending {
    return { number: ++this.numbers, sendAtMs: now.monoMs, inFlight: false, delayMs: RETRY_FIRST_MS, hops: 0,
      wallAtZeroMs: Infinity, sentInJump: false };
  }

  private newGrant(now: Now): Grant {
    const avoid = this.lastServer ? [this.lastServer] : [];
    return { ...this.newPending(now), token: this.options.draw(), server: '', avoid, spent: false, former: undefined, repeats: 0,
      refusal: undefined, hopeful: false };
  }

  private isDue(one: Pending, now: Now): boolean {
    if (one.inFlight) return false;
    if (now.monoMs >= one.sendAtMs) {
      one.wallAtZeroMs = Math.min(one.wallAtZeroMs, now.wallMs - now.monoMs);
      one.sentInJump = this.ids.jumped;
      return one.inFlight = true;
    }
    this.nextTickMs = Math.min(this.nextTickMs, one.sendAtMs);
    return false;
  }

  // --- answers --------------------------------------------------------------------------------------

  private onGrant(grant: Grant, outcome: LeaseOutcome, now: Now): void {
    switch (outcome.kind) {
      case 'lease': {
        const fault = this.holds(outcome.lease) ? 'it is held already' : this.adopt(outcome.lease, outcome.server, grant.wallAtZeroMs, now);
        if (!fault) return;
        const message = `the lease of ${outcome.server} cannot be used: ${fault}`;
        const endMs = startOf(outcome.lease, outcome.lease.untilTick);
        return this.onUnusable(grant, outcome.server, { ...outcome.lease, endMs }, message, now);
      }
      case 'unusable':
        return this.onUnusable(grant, outcome.server, outcome.terms, outcome.message, now);
      case 'not ready':
        this.options.onRefused(outcome.message, undefined);
        grant.spent = grant.hopeful = true;
        if (outcome.claiming) grant.repeats = -1; // a machine id, for this token
        return this.askAgain(grant, outcome.server, outcome.retryAfterMs, now);
      case 'no answer':
        if (outcome.server) {
          this.options.onRefused(outcome.message, undefined);
          grant.hopeful = true;
        }
        grant.spent ||= outcome.sent;
        if (grant.spent && outcome.server) return this.askAgain(grant, outcome.server, 0, now);
        return this.askAnother(grant, outcome.server, now);
      case 'refused':
        this.options.onRefused(outcome.message, undefined);
        grant.refusal ??= outcome.failure;
        return this.askAnother(grant, outcome.server, now);
      default: // this token's lease has ended, or a copy of this process has extended it
        grant.spent = true;
        return this.askAnother(grant, outcome.server, now);
    }
  }

  private holds(lease: { id: string }): boolean {
    return this.held?.lease.id === lease.id;
  }

  /** Gives the lease back, and asks another server. */
  private onUnusable(grant: Grant, server: string, terms: UnusableTerms, message: string, now: Now): void {
    this.options.onRefused(message, undefined);
    const usedTick = Number.isSafeInteger(terms.fromTick) ? Math.max(terms.fromTick, 0) - 1 : -1;
    if (terms.id && !this.holds(terms)) {
      this.addRelease({
        ...this.newPending(now), lease: terms.id, server: this.home(terms.server, server), grantedBy: terms.server,
        turn: '', usedTick, uselessAtMs: uselessAtMs(terms.endMs, this.ids.advance(), this.options.aheadMs),
      });
    }
    grant.spent = true; // the token would get the same lease
    this.askAnother(grant, server, now);
  }

  /** Repeats the grant at the server that may have granted it; then asks another one. */
  private askAgain(grant: Grant, server: string, retryAfterMs: number, now: Now): void {
    if (++grant.repeats > REPEATS_MAX) {
      const former = { server, token: grant.token };
      this.askAnother(grant, server, now);
      if (grant.avoid.length === 1) grant.former = former;
      return;
    }
    grant.server = server;
    this.retry(grant, retryAfterMs, now);
  }

  private askAnother(grant: Grant, server: string, now: Now): void {
    const { former } = grant;
    if (grant.spent) grant.token = this.options.draw();
    Object.assign(grant, { spent: false, server: '', repeats: 0, former: undefined });
    if (server) {
      grant.avoid = [...grant.avoid, server];
      grant.sendAtMs = now.monoMs;
    } else { // all were tried
      if (grant.refusal && !grant.hopeful) this.options.onRefused(grant.refusal.message, grant.refusal);
      grant.refusal = undefined;
      grant.hopeful = false;
      grant.avoid = [];
      if (former) Object.assign(grant, former, { spent: true });
      this.retry(grant, 0, now);
    }
  }

  /** Returns a sentence if the lease cannot be used. */
  private adopt(lease: Lease, address: string, wallAtZeroMs: number, now: Now): string {
    const fault = this.ids.adopt(lease, () => this.release(now));
    if (fault) return fault;
    this.ids.confirm(wallAtZeroMs);
    this.grant = this.renewal = undefined;
    this.lastServer = this.home(lease.server, address);
    this.held = {
      lease, server: this.lastServer, grantedBy: lease.server, acknowledged: '', thirdMs: 0, replaceAtMs: 0,
      renewAtMs: 0, answeredAtMs: 0, renewable: true, unknown: false, expired: false,
    };
    this.grantNotBeforeMs = now.monoMs + GRANT_PAUSE_MS;
    this.schedule(this.held, lease, now);
    return '';
  }

  private schedule(held: Held, answered: Lease, now: Now): void {
    const endMs = startOf(held.lease, held.lease.untilTick);
    const timeMs = this.ids.advance();
    const leftMs = Math.max(endMs - timeMs, 0);
    const thirdMs = leftMs / 3;
    if (leftMs > 0) this.intervalMs = Math.min(leftMs, this.options.aheadMs);
    held.thirdMs = answered.ending ? Math.max(thirdMs, held.thirdMs) : thirdMs; // finally it is not extended
    held.replaceAtMs = endMs - held.thirdMs;
    held.answeredAtMs = now.monoMs;
    held.renewAtMs = now.monoMs + Math.max(Math.min(answered.renewInMs, thirdMs), RENEW_MIN_MS);
    held.expired &&= timeMs >= endMs;
  }

  private onRenewal(renewal: Renewal, held: Held, outcome: LeaseOutcome, now: Now): void {
    switch (outcome.kind) {
      case 'lease': {
        const { lease } = outcome;
        const { id, baseBits } = held.lease;
        const same = lease.id === id && lease.baseBits === baseBits && haveOneLayout(lease, held.lease);
        if (!same || lease.untilTick < held.lease.untilTick) {
          this.options.onRefused(`${outcome.server} answered a renewal with another lease`, undefined);
          return this.retry(renewal, 0, now);
        }
        this.ids.extendTo(lease.untilTick);
        this.ids.confirm(renewal.wallAtZeroMs);
        held.acknowledged = renewal.turn;
        held.server = this.home(lease.server, outcome.server);
        this.renewal = undefined;
        this.schedule(held, lease, now);
        if (this.grant && !this.grant.spent && !this.grant.inFlight && !lease.ending) this.grant = undefined;
        return;
      }
      case 'revoked':
      case 'outdated':
        return this.onRevoked(held, outcome.message, now);
      case 'unknown':
        held.unknown = true;
        return this.onExtendedNoFurther(held, now);
      case 'elsewhere':
        return this.follow(renewal, held, outcome, now);
      case 'refused':
        this.options.onRefused(outcome.message, undefined);
        return outcome.failure ? this.retry(renewal, 0, now) : this.onExtendedNoFurther(held, now);
      default:
        if (outcome.kind !== 'released') this.options.onRefused(outcome.message, undefined);
        return this.retry(renewal, outcome.kind === 'not ready' ? outcome.retryAfterMs : 0, now);
    }
  }

  /** The lease is used to its end, and another one is requested at once. */
  private onExtendedNoFurther(held: Held, now: Now): void {
    held.renewable = false;
    held.replaceAtMs = -Infinity;
    this.renewal = undefined;
    if (this.grant && !this.grant.spent) this.grant.sendAtMs = now.monoMs; // a server answers again
  }

  private onRevoked(held: Held, message: string, now: Now): void {
    const reason = message || 'the server has ended it, because another process may have its ids';
    const text = `the lease of machine id ${held.lease.machine} was revoked at ${utc(now.wallMs)}: ${reason}`;
    this.ids.close(() => new FirnError('no lease', text));
    this.held = this.renewal = undefined;
    this.lose('revoked', held, reason);
  }

  private onRelease(release: Release, outcome: LeaseOutcome, now: Now): void {
    if (outcome.kind === 'elsewhere') {
      this.follow(release, release, outcome, now);
    } else if (outcome.kind === 'no answer' || outcome.kind === 'not ready') {
      this.retry(release, outcome.kind === 'not ready' ? outcome.retryAfterMs : 0, now);
    } else {
      this.releases = this.releases.filter((one) => one !== release);
    }
  }

  /** Asks for the end of the lease, whose ids are closed. */
  private release(now: Now): void {
    const { held } = this;
    if (!held || held.unknown) return;
    this.addRelease({
      ...this.newPending(now), lease: held.lease.id, server: held.server, grantedBy: held.grantedBy,
      turn: this.renewal?.turn ?? held.acknowledged,
      usedTick: Math.min(this.ids.usedTick, held.lease.untilTick - 1),
      uselessAtMs: startOf(held.lease, held.lease.untilTick),
    });
  }

  private addRelease(release: Release): void {
    if (this.releases.length === RELEASES_MAX) this.releases.shift();
    this.releases.push(release);
  }

  /** Returns the server to ask next about a lease: the one that its terms name, or the one that sent the terms. */
  private home(named: string, address: string): string {
    return this.options.knows(named) ? named : address;
  }

  /** Repeats the request at once at the server that is said to have the lease, unless that may be a stranger's. */
  private follow(pending: Pending, lease: Held | Release, to: { owner: string; message: string }, now: Now): void {
    const permitted = this.options.knows(to.owner) || to.owner === lease.grantedBy;
    if (!permitted || pending.hops === HOPS_MAX) {
      this.options.onRefused(to.message, undefined);
      return this.retry(pending, 0, now);
    }
    pending.hops++;
    lease.server = to.owner;
    pending.sendAtMs = now.monoMs;
  }

  /**
   * Delays the next repetition. The delay doubles, and half of it is random. A server may ask for a longer one, but not so
   * long that the lease ends.
   */
  private retry(pending: Pending, adviceMs: number, now: Now): void {
    const longestMs = Math.min(pending.delayMs, longestDelayMs(this.intervalMs));
    const delayMs = longestMs * (1 + this.options.random()) / 2;
    const { held } = this;
    const leftMs = held ? startOf(held.lease, held.lease.untilTick) - this.ids.advance() : 0;
    pending.sendAtMs = now.monoMs + Math.max(delayMs, advisedMs(adviceMs, leftMs));
    pending.delayMs = 2 * longestMs;
  }

  private lose(kind: LeaseLoss['kind'], held: Held, reason: string): void {
    this.options.onLost({ kind, machineId: held.lease.machine, reason });
  }
}
