// A lessee with clocks and servers that a test moves.

import assert from 'node:assert/strict';

import type { Now } from '../src/id_pace.js';
import { type Lease, readLease } from '../src/lease.js';
import type { LeaseTerms } from '../src/lease_asks.js';
import { type LeaseClock, LeasedIds } from '../src/leased_ids.js';
import type { LeaseLoss, LeaseOutcome, LeaseRequest } from '../src/lease_request.js';
import { Lessee } from '../src/lessee.js';
import { FirnError } from '../src/errors.js';
import { readLayout } from '../src/layout.js';

export const EPOCH_MS = 1_704_067_200_000;
export const NOON_MS = Date.parse('2026-11-26T12:00:00Z');
export const LAYOUT = readLayout('firn')!;

export class FakeClock implements LeaseClock {
  now: Now = { wallMs: NOON_MS, monoMs: 1_000 };
  slept = 0;
  /** Runs between a reading of the clocks and what follows it. */
  afterRead: (() => void) | undefined;

  read(): Now {
    const { now } = this;
    this.afterRead?.();
    return now;
  }

  wallMs(): number {
    return this.now.wallMs;
  }

  sleep(ms: number): void {
    this.slept += ms;
    this.advance(ms);
  }

  /** The wall clock minus the monotonic clock. */
  get wallAtZeroMs(): number {
    return this.now.wallMs - this.now.monoMs;
  }

  advance(ms: number): void {
    this.now = { wallMs: this.now.wallMs + ms, monoMs: this.now.monoMs + ms };
  }

  step(ms: number): void {
    this.now = { ...this.now, wallMs: this.now.wallMs + ms };
  }
}

export function terms(machine: number, fromMs: number, untilMs: number, more: Partial<LeaseTerms> = {}): LeaseTerms {
  return {
    lease: `lease-${machine}`, number: 1n, machine, worker: machine, rack: 0, baseBits: BigInt(machine) << 12n,
    tickShift: 22, sequenceShift: 0, sequenceBits: 12, sequenceFrom: 0n, sequenceCount: 4096n, tickMs: 1,
    epochMs: BigInt(EPOCH_MS), fromTick: BigInt(fromMs - EPOCH_MS), untilTick: BigInt(untilMs - EPOCH_MS),
    renewInMs: Math.max(0, Math.floor((untilMs - fromMs) / 3)), ending: false, server: `10.0.0.${machine}:7609`, ...more,
  };
}

export function lease(...of: Parameters<typeof terms>): Lease {
  const read = readLease(terms(...of), LAYOUT);
  assert(typeof read !== 'string', String(read));
  return read;
}

export const tickOf = (id: bigint): number => Number(id >> 22n);
export const machineOf = (id: bigint): number => Number((id >> 12n) & 1023n);

export type Sent = [number, LeaseRequest];
type Kind = LeaseRequest['kind'];

export class Rig {
  readonly clock = new FakeClock();
  readonly ids = new LeasedIds(this.clock, () => 0);
  readonly sent: Sent[] = [];
  readonly losses: LeaseLoss[] = [];
  readonly refusals: string[] = [];
  /** Refusals that every server has given. */
  readonly finals: FirnError[] = [];
  readonly taken = new Set<bigint>();
  /** Servers that are not in the list. */
  readonly strangers = new Set<string>();
  private last = -1n;
  private drawn = 0;

  readonly lessee: Lessee;

  constructor(aheadMs = 60_000) {
    this.lessee = new Lessee({
      aheadMs, random: () => 0, onLost: (loss) => this.losses.push(loss),
      knows: (address) => !this.strangers.has(address), onRefused: (message, failure) => {
        this.refusals.push(message);
        if (failure) this.finals.push(failure);
      },
      draw: () => (++this.drawn).toString(16).padStart(32, '0'),
    }, this.ids);
  }

  tick(): void {
    this.sent.push(...this.lessee.tick(this.clock.now));
  }

  /** Lets the time pass, as the timer of a generator does. */
  pass(ms: number): void {
    const until = this.clock.now.monoMs + ms;
    this.tick();
    while (this.clock.now.monoMs < until) {
      const left = until - this.clock.now.monoMs;
      this.clock.advance(Math.min(left, Math.max(1, Math.ceil(this.lessee.dueMs - this.clock.now.monoMs))));
      this.tick();
    }
  }

  /** The last request of this kind. */
  newest<K extends Kind>(kind: K): LeaseRequest & { kind: K } {
    return this.sentOf(kind).at(-1)![1] as LeaseRequest & { kind: K };
  }

  count(kind: Kind): number {
    return this.sentOf(kind).length;
  }

  /** Answers the last request of this kind. */
  answer(kind: Kind, outcome: LeaseOutcome): void {
    this.lessee.onReply(this.sentOf(kind).at(-1)![0], outcome, this.clock.now);
    this.tick();
  }

  /** Grants what the lessee has requested, or requests now. */
  hold(machine = 7, lastsMs = 60_000, more: Partial<LeaseTerms> = {}): Lease {
    this.tick();
    const { wallMs } = this.clock.now;
    const granted = lease(machine, wallMs, wallMs + lastsMs, more);
    this.answer('grant', { kind: 'lease', server: granted.server, lease: granted });
    return granted;
  }

  noAnswer(kind: Kind, server: string, sent = true): void {
    this.answer(kind, { kind: 'no answer', server, sent, message: `${server} timeout` });
  }

  /** Takes ids, which must rise. */
  take(count = 3): bigint[] {
    return Array.from({ length: count }, () => {
      const id = this.ids.next();
      assert(id > this.last, `${id} after ${this.last}`);
      this.last = id;
      this.taken.add(id);
      return id;
    });
  }

  assertNone(message: RegExp): void {
    assert.throws(() => this.ids.next(), (fault) => {
      assert(fault instanceof FirnError);
      assert.match(fault.message, message);
      return true;
    });
  }

  private sentOf(kind: Kind): Sent[] {
    return this.sent.filter(([, request]) => request.kind === kind);
  }
}
