// What answers, failures and probes mean for a server.

import { ServerState, type ServerStatus } from './asks.js';
import { type Failure, failed } from './errors.js';
import type { Fleet } from './fleet.js';
import { FAILURES_IN_A_ROW } from './health.js';
import type { Server } from './server.js';

const NO_ADVICE_MS = 100;
const PROBE_AGAIN_MS = 30_000;
const PROBE_FIRST_MS = 1_000;
const LONGEST_QUARANTINE_MS = 300_000;
const FIRST_DIAL_PAUSE_MS = 10;
const LONGEST_DIAL_PAUSE_MS = 100;
const TAGS_MAX = 1_000;
const MOVES_EVERY = 10; // attempt limits

/** Applies outcomes to the servers of a fleet. `trouble` is called when a newer list may help. */
export class HealthRules {
  constructor(private readonly fleet: Fleet, private readonly trouble: () => void) {}

  /** Returns a failure unless the server with this status is of the cluster. */
  admit(status: ServerStatus): Failure | undefined {
    const { fleet } = this;
    if (status.clusterUuid === '' && fleet.uuid !== '') {
      return failed('refused', 'it does not know its cluster yet', 'NOT_READY');
    }
    if (fleet.uuid !== '' && status.clusterUuid !== fleet.uuid) {
      return failed('wrong service', `its cluster is '${status.clusterUuid}', not '${fleet.uuid}'`);
    }
    if (status.layout === '' || (fleet.layout !== '' && status.layout !== fleet.layout)) {
      return failed('wrong service', `its layout is '${status.layout}', not '${fleet.layout}'`);
    }
    fleet.uuid = status.clusterUuid;
    fleet.layout = status.layout;
    for (const tag of status.tags) if (tag.strategy !== 'snowflake') fleet.ownNumbers.add(tag.tag);
    return undefined;
  }

  /**
   * A server has answered a call, or refused it as every server would. A server that gave ids of the tag no longer
   * drains: it would have refused.
   */
  answered(one: Server, tag: string, gaveIds: boolean, now: number): void {
    one.lastAnswer = now;
    let back = one.health.out;
    if (gaveIds) {
      back ||= one.draining;
      one.draining = false;
      if (one.closedUntil.size > 0) one.closedUntil.delete(tag);
    }
    if (!back && !one.health.tooManyFailures) return one.health.answered();
    one.health.reset();
    if (!one.quarantined && !one.draining) one.probeAt = Infinity;
    this.fleet.tellNews();
    if (back) this.fleet.tell('healthy', one.address, 'answers again');
  }

  failed(one: Server, tag: string, failure: Failure, now: number): void {
    if (failure.end === 'no room' || failure.stale || failure.lacksMethod) return;
    if (failure.end === 'refused') return this.refused(one, tag, failure, now);
    this.trouble();
    if (failure.end === 'broken' || failure.end === 'wrong service') this.quarantine(one, failure, false, now);
    else this.count(one, failure.end === 'connect timeout' ? 2 : 1, failure, now);
  }

  private refused(one: Server, tag: string, failure: Failure, now: number): void {
    const advice = failure.retryAfterMs || NO_ADVICE_MS;
    const until = now + atLeast(advice);
    switch (failure.reason) {
      case 'INTERNAL':
        return this.count(one, 1, failure, now);
      case 'BAD_REQUEST': case 'UNKNOWN_TAG': case 'REJECTED': case 'EXHAUSTED':
        return this.answered(one, tag, false, now);
    }
    one.why = `${failure.reason}: ${failure.detail}`;
    if (failure.reason === 'NOT_READY' || failure.reason === 'CLOCK') one.notReadyUntil = until;
    if (failure.reason === 'STORE_DOWN') remember(one.downUntil, tag, until);
    if (failure.reason !== 'DRAINING') return;
    remember(one.closedUntil, tag, now + atLeast(PROBE_AGAIN_MS));
    if (one.draining || one.quarantined) return;
    one.draining = true;
    one.probeAt = now;
    this.trouble();
    this.fleet.tell('draining', one.address, failure.detail);
  }

  private count(one: Server, times: number, failure: Failure, now: number): void {
    one.health.failed(times);
    if (one.health.out || !one.health.tooManyFailures) return;
    one.why = failure.detail ? `${failure.end}: ${failure.detail}` : failure.end;
    const length = this.takeOut(one, now);
    const what = one.health.ejected ? 'ejected' : 'called last';
    this.fleet.tell('unhealthy', one.address, `${what} for ${(length / 1000).toFixed(1)} s; ${one.why}`);
  }

  private takeOut(one: Server, now: number): number {
    const length = one.health.takeOut(this.fleet.mayLeave(one), now);
    if (!one.quarantined && !one.draining) one.probeAt = now + length;
    return length;
  }

  /**
   * For a server that violates the protocol, or is foreign: of another cluster or service. Other connections may
   * report the same again, which changes nothing; a failed probe makes the quarantine longer.
   */
  quarantine(one: Server, failure: Failure, probed: boolean, now: number): void {
    const foreign = failure.end === 'wrong service';
    const began = !one.quarantined;
    if (!foreign && began && !this.fleet.mayLeave(one)) return this.count(one, FAILURES_IN_A_ROW, failure, now);
    if (began || probed || (foreign && !one.foreign)) {
      one.quarantined = true;
      one.foreign ||= foreign;
      one.why = failure.detail;
      one.probeAt = now + this.untilNextProbe(one, now);
    }
    if (began) this.fleet.tell('quarantined', one.address, failure.detail);
  }

  private untilNextProbe(one: Server, now: number): number {
    if (one.quarantined && !one.foreign) return one.quarantine.next(now, PROBE_AGAIN_MS, LONGEST_QUARANTINE_MS);
    return one.probeBackoff.next(now, PROBE_FIRST_MS, PROBE_AGAIN_MS);
  }

  // --- probes and connections -----------------------------------------------------------------------

  /** Returns the servers to probe now, and when the next probe is due. */
  takeProbes(now: number): { due: Server[]; next: number } {
    const due: Server[] = [];
    let next = Infinity;
    for (const one of this.fleet.servers.values()) {
      if (one.probeAt <= now) {
        due.push(one);
        one.probeAt = now + PROBE_AGAIN_MS;
      }
      next = Math.min(next, one.probeAt);
    }
    return { due, next };
  }

  /** The result of a probe. */
  probed(one: Server, status: ServerStatus | undefined, failure: Failure | undefined, now: number): void {
    if (failure && (failure.end === 'broken' || failure.end === 'wrong service')) {
      return this.quarantine(one, failure, true, now);
    }
    if (failure || !status) {
      one.probeAt = now + this.untilNextProbe(one, now);
      if (one.health.out) this.takeOut(one, now);
      return;
    }
    const out = one.draining || one.quarantined || one.health.out;
    one.draining = status.state === ServerState.DRAINING;
    one.quarantined = one.foreign = false;
    one.health.seen();
    one.probeAt = one.draining ? now + PROBE_AGAIN_MS : Infinity;
    if (!out || one.draining) return;
    this.fleet.tellNews();
    this.fleet.tell('healthy', one.address, 'answers again');
  }

  /** A connection, up to the server's status, was opened or failed. After a failure no call opens one for a while. */
  dialled(one: Server, reached: boolean, now: number): void {
    if (!reached) {
      one.dialFailed = true;
      one.connectAt = now + one.dialPause.next(now, FIRST_DIAL_PAUSE_MS, LONGEST_DIAL_PAUSE_MS);
      return;
    }
    one.connectAt = -Infinity;
    if (!one.dialFailed) return;
    one.dialFailed = false;
    this.fleet.tellNews(); // calls that wait for the end of the backoff
  }

  /**
   * Returns whether a call whose failure is shared with another call's timeout fails over free of the retry budget:
   * another server has answered since the call began, and the server has not lost calls so recently.
   */
  mayMove(from: Server, began: number, now: number): boolean {
    let othersAnswer = false;
    for (const one of this.fleet.servers.values()) othersAnswer ||= one !== from && one.lastAnswer > began;
    if (!othersAnswer) return false;
    const limit = this.fleet.settings.attemptLimitMs;
    if (now >= from.movesAgainAt) {
      from.movesUntil = now + limit;
      from.movesAgainAt = now + MOVES_EVERY * limit;
    }
    return now < from.movesUntil;
  }
}

/** Adds up to half at random, so that not all clients return at the same moment. */
function atLeast(advice: number): number {
  return advice + Math.random() * (advice / 2);
}

function remember(times: Map<string, number>, tag: string, until: number): void {
  if (times.size >= TAGS_MAX) times.clear();
  times.set(tag, until);
}
