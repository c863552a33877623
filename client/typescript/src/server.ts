import { type ServerEntry, ServerState } from './asks.js';
import type { Connection } from './connection.js';
import { Backoff, Health } from './health.js';

// The standings, as numbers of HEALTH in view.ts.
export const HEALTHY = 0;
const FAILING = 1;
export const EJECTED = 2;
const DISABLED = 3;
const DRAINING = 4;
const LAST_RESORT = 5;
export const QUARANTINED = 6;

/** One server. */
export class Server {
  rack = 0;
  weight = 100;
  online = true;
  state: number = ServerState.READY;
  /** A seed that is not in the list. */
  lastResort = false;
  inFlight = 0;
  readonly health = new Health();
  why = '';
  notReadyUntil = -Infinity;
  /** By tag: its store is down. */
  readonly downUntil = new Map<string, number>();
  /** By tag: refused with DRAINING. */
  readonly closedUntil = new Map<string, number>();
  draining = false;
  /** In quarantine. */
  quarantined = false;
  /** In quarantine, as a server of another cluster or service. */
  foreign = false;
  readonly quarantine = new Backoff();
  /** Between two probes, unless in quarantine. */
  readonly probeBackoff = new Backoff();
  /** Whether the last connection received its status. */
  spoke = false;
  /** No call opens a connection before this time. */
  connectAt = -Infinity;
  dialFailed = false;
  readonly dialPause = new Backoff();
  /** The time of the next probe. */
  probeAt = Infinity;
  lastAnswer = -Infinity;
  movesUntil = -Infinity;
  movesAgainAt = -Infinity;
  connection: Connection | undefined;

  constructor(readonly address: string, public tls: boolean) {}

  standing(tag: string, needsMachine: boolean, now: number): number {
    const leaves = this.state === ServerState.DRAINING || this.state === ServerState.OFFLINE;
    if (this.quarantined) return QUARANTINED;
    if (this.lastResort) return LAST_RESORT;
    if (this.draining || leaves || isBefore(now, this.closedUntil, tag)) return DRAINING;
    if (!this.online || this.weight <= 0) return DISABLED;
    const notReady = needsMachine && (this.state === ServerState.NOT_READY || now < this.notReadyUntil);
    if (notReady || this.health.ejected || isBefore(now, this.downUntil, tag)) return EJECTED;
    return this.health.out || this.health.tooManyFailures ? FAILING : HEALTHY;
  }

  /** Returns whether a call has, or may open, a connection to it. */
  mayServe(now: number): boolean {
    return this.connection !== undefined || now >= this.connectAt;
  }

  get share(): number {
    return Math.max(this.weight, 1);
  }

  /** Takes over an entry of a new list, which ends what only the next list ends. */
  listed(entry: ServerEntry, tls: boolean): void {
    this.rack = entry.rack;
    this.weight = entry.weight;
    this.online = entry.online;
    this.state = entry.state;
    this.tls = tls;
    this.lastResort = this.draining = this.quarantined = this.foreign = false;
    this.closedUntil.clear();
  }
}

function isBefore(now: number, times: ReadonlyMap<string, number>, tag: string): boolean {
  return times.size > 0 && now < (times.get(tag) ?? -Infinity);
}
