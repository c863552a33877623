// A lessee with clocks that a test moves, which plays the steps of tests/contract/lessees.json and jumps.json. The generators
// of all languages share them.

import assert from 'node:assert/strict';

import { FirnError } from '../src/errors.js';
import type { Now } from '../src/id_pace.js';
import { readLayout } from '../src/layout.js';
import { type Lease, readLease } from '../src/lease.js';
import type { LeaseTerms } from '../src/lease_asks.js';
import type { LeaseLoss, LeaseOutcome, LeaseRequest } from '../src/lease_request.js';
import { type LeaseClock, LeasedIds } from '../src/leased_ids.js';
import { Lessee } from '../src/lessee.js';

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
    renewInMs: 20_000, ending: false, server: `10.0.0.${machine}:7609`, ...more,
  };
}

export function lease(...of: Parameters<typeof terms>): Lease {
  const read = readLease(terms(...of), LAYOUT);
  assert(typeof read !== 'string', String(read));
  return read;
}

export const tickOf = (id: bigint): number => Number(id >> 22n);
export const machineOf = (id: bigint): number => Number((id >> 12n) & 1023n);
const addressOf = (server: string): string => `10.0.0.${server.slice(1)}:7609`;

/** Returns whether the request has the parts that the pattern has. */
function matches(request: string, pattern: string): boolean {
  const parts = request.split(':');
  return pattern.replace('?', '').split(':').every((one, i) => one === '_' || one === parts[i]);
}

const REASONS: Record<string, RegExp> = {
  none: /^no server has granted a lease since /, ended: / ended at .* UTC, and no server has extended it$/,
  revoked: / was revoked at /, closed: /^the generator was closed$/, jumped: / s, and no server has confirmed it$/, nothing: /./,
};

export interface Case {
  readonly case: string;
  readonly steps: readonly string[];
  readonly servers?: number;
  readonly ahead?: number;
}

export class Player {
  readonly clock = new FakeClock();
  readonly ids = new LeasedIds(this.clock, () => 0);
  readonly losses: LeaseLoss[] = [];
  readonly refusals: string[] = [];
  /** Refusals that every server has given. */
  readonly finals: FirnError[] = [];
  readonly lessee: Lessee;
  /** The requests without an outcome; the first one is visible. */
  readonly waiting: [number, LeaseRequest][] = [];
  readonly seen: { readonly text: string; readonly atMs: number }[] = []; // since the last check

  private readonly servers: string[];
  private readonly replies: Record<string, string> = {}; // by kind
  private readonly names = { t: [] as string[], r: [] as string[] };
  private readonly leases = new Map<string, LeaseTerms>();
  private readonly used = new Map<string, number>(); // the last tick, by lease
  private machine = 6;
  private held = ''; // the lease that was granted last, and is usable
  private visible = false;
  private woken = false;
  private last = -1n;
  private drawn = 0;

  constructor(of: Partial<Case> = {}) {
    this.servers = Array.from({ length: of.servers ?? 2 }, (_, i) => addressOf(`s${i + 1}`));
    this.ids.onJump = () => void (this.woken = true);
    this.lessee = new Lessee({
      aheadMs: of.ahead ?? 60_000, random: Math.random,
      onLost: (loss) => this.losses.push(loss), // throws nothing: the generator catches errors of the program's callback
      knows: (address) => this.servers.includes(address), onRefused: (message, failure) => {
        this.refusals.push(message);
        if (failure) this.finals.push(failure);
      },
      draw: () => (++this.drawn).toString(16).padStart(32, '0'),
    }, this.ids);
  }

  play(...steps: readonly string[]): this {
    for (const [i, step] of steps.entries()) {
      const [verb, ...words] = step.split(' ');
      try {
        this.step(verb!, words);
      } catch (fault) {
        throw new Error(`step ${i + 1}, ${step}: ${String(fault)}`, { cause: fault });
      }
    }
    return this;
  }

  private step(verb: string, words: string[]): void {
    const word = words[0] ?? '';
    switch (verb) {
      case 'lease':
        this.turn();
        this.answer(`terms:${word}`);
        this.seen.length = 0;
        return;
      case 'pass': return this.pass(Number(word));
      case 'work':
        for (let ms = Number(word); ms > 0; ms -= 50) {
          this.pass(50);
          this.check(this.ids.next());
        }
        return;
      case 'sleep': return this.clock.advance(Number(word));
      case 'step':
        this.clock.step(Number(word));
        return this.clock.advance(1);
      case 'next': return this.next(word, words[1]);
      case 'look': return assert(this.ids.held);
      case 'sent':
      case 'saw': return this.compare(verb === 'sent', words);
      case 'answer': return this.answer(word);
      case 'reply':
        this.replies[word] = words[1]!;
        return this.reveal();
      case 'waits': return this.waits(word, Number(words[1]), Number(words[2]));
      case 'loss': return assert.deepEqual(this.losses.splice(0).map((one) => one.kind), words);
      case 'stop':
        this.lessee.stop(this.clock.now, () => new FirnError('closed', 'the generator was closed'));
        return this.turn();
      case 'stopped': return assert.equal(this.lessee.stopped, word === 'yes');
    }
    assert.fail('unknown step');
  }

  // --- time and requests ----------------------------------------------------------------------------

  turn(): void {
    this.collect();
    this.reveal();
  }

  private collect(): void {
    const requests = this.lessee.tick(this.clock.now);
    for (const [, { clockMs }] of requests) assert.equal(clockMs, this.clock.wallMs());
    this.waiting.push(...requests);
  }

  /** Shows the first request, and answers those that have a standing reply. */
  private reveal(): void {
    while (this.waiting.length > 0) {
      const [, request] = this.waiting[0]!;
      const { kind } = request;
      if (!this.serverOf(request)) { // all were asked
        this.give({ kind: 'no answer', server: '', sent: false, message: 'no server is left' });
        continue;
      }
      if (!this.visible) this.seen.push({ text: this.textOf(request), atMs: this.clock.now.monoMs });
      this.visible = true;
      assert(this.seen.length < 100_000, 'requests without end');
      const reply = this.replies[kind];
      if (!reply) return;
      this.give(this.outcome(reply, request));
    }
  }

  give(outcome: LeaseOutcome): void {
    const [number] = this.waiting.shift()!;
    this.visible = false;
    this.lessee.onReply(number, outcome, this.clock.now);
    this.collect();
  }

  private answer(word: string): void {
    assert(this.waiting.length > 0, 'each request has an outcome');
    this.give(this.outcome(word, this.waiting[0]![1]));
    this.reveal();
  }

  /** Lets the time pass, as the timer of a generator does. */
  private pass(ms: number): void {
    const until = this.clock.now.monoMs + ms;
    this.turn();
    while (this.clock.now.monoMs < until) {
      const left = until - this.clock.now.monoMs;
      this.clock.advance(Math.min(left, Math.max(1, Math.ceil(this.lessee.dueMs - this.clock.now.monoMs))));
      this.turn();
    }
  }

  /** A transport chooses the server of a grant that has none; empty: all were tried. */
  private serverOf(request: LeaseRequest): string {
    if (request.server || request.kind !== 'grant') return request.server;
    return this.servers.find((one) => !request.avoid.includes(one)) ?? '';
  }

  // --- checks ---------------------------------------------------------------------------------------

  assertNone(message: RegExp): void {
    assert.throws(() => this.ids.next(), (fault) => {
      assert(fault instanceof FirnError);
      assert.match(fault.message, message);
      return true;
    });
  }

  private next(expected: string, more: string | undefined): void {
    if (REASONS[expected]) {
      this.assertNone(REASONS[expected]);
      if (more) assert.equal(this.woken ? 'woken' : 'asleep', more);
    } else if (expected === 'id') {
      this.check(this.ids.next(), undefined, 0);
    } else {
      this.check(this.ids.next(), expected, more === undefined ? undefined : Number(more));
    }
    if (this.woken) this.turn();
    this.woken = false;
  }

  private check(id: bigint, machine?: string, afterWall?: number): void {
    const held = this.leases.get(this.held)!;
    const tick = tickOf(id);
    assert.equal(machineOf(id), held.machine);
    assert.equal(String(held.machine), machine ?? String(held.machine));
    assert(tick >= held.fromTick && tick < held.untilTick, 'outside the interval');
    const position = id & ~(1023n << 12n);
    assert(position > this.last, 'ids do not rise');
    this.last = position;
    this.used.set(this.held, tick);
    if (afterWall === undefined) return;
    const after = tick - (this.clock.wallMs() - EPOCH_MS); // not exact at nine tenths of the pace
    assert(Math.abs(after - afterWall) <= (afterWall >= 1000 ? 60 : 0), `${after} ms`);
  }

  private compare(inOrder: boolean, expected: string[]): void {
    const sent = this.seen.splice(0).map((one) => one.text);
    const same = inOrder ?
      sent.length === expected.length && sent.every((one, i) => matches(one, expected[i]!)) :
      sent.every((one) => expected.some((pattern) => matches(one, pattern))) &&
        expected.every((pattern) => pattern.startsWith('?') || sent.some((one) => matches(one, pattern)));
    assert(same, `sent ${sent.join(' ')}`);
  }

  private waits(kind: string, least: number, most: number): void {
    const at = this.seen.splice(0).filter((one) => matches(one.text, kind)).map((one) => one.atMs);
    const longest = Math.max(...at.slice(1).map((one, i) => one - at[i]!));
    assert(longest >= least && longest <= most + 1, `${longest} ms`);
  }

  private name(kind: 't' | 'r', drawn: string): string {
    if (!drawn) return '-';
    assert.equal(drawn.length, 32);
    if (!this.names[kind].includes(drawn)) this.names[kind].push(drawn);
    return `${kind}${this.names[kind].indexOf(drawn) + 1}`;
  }

  private textOf(request: LeaseRequest): string {
    const server = `s${this.serverOf(request)[7]}`;
    if (request.kind === 'grant') return `grant:${this.name('t', request.token)}:${server}`;
    if (request.kind === 'renewal') {
      assert.equal(request.lease, this.held);
      return `renewal:${this.name('r', request.turn)}:${this.name('r', request.acknowledged)}:${server}`;
    }
    const { machine, fromTick } = this.leases.get(request.lease)!;
    const first = Math.max(Number(fromTick), 0) - 1;
    const used = this.used.get(request.lease);
    if (used !== undefined) assert.equal(request.usedTick, used);
    assert(request.usedTick >= first && request.usedTick <= Math.max(first, ...this.used.values()), `${request.usedTick}`);
    return `release:${machine}:${this.name('r', request.turn)}:${server}`;
  }

  // --- answers --------------------------------------------------------------------------------------

  private outcome(text: string, request: LeaseRequest): LeaseOutcome {
    const [word, more = ''] = [text.split(':')[0]!, text.slice(text.indexOf(':') + 1 || text.length)];
    const server = this.serverOf(request);
    const message = word;
    switch (word) {
      case 'terms': {
        const keys = Object.fromEntries(more.split(',').map((pair) => pair.split('='))) as Record<string, string>;
        const given = request.kind === 'grant' ? this.granted(keys, server) : this.renewed(keys);
        const read = readLease(given, LAYOUT);
        if (typeof read !== 'string') return { kind: 'lease', server, lease: read };
        const endMs = Number(given.epochMs) + Number(given.untilTick) * given.tickMs;
        const unusable = { id: given.lease, server: given.server, fromTick: Number(given.fromTick), endMs };
        return { kind: 'unusable', server, message: read, terms: unusable };
      }
      case 'released': return { kind: 'released', server };
      case 'unknown':
      case 'outdated':
      case 'revoked': return { kind: word, server, message };
      case 'lost':
      case 'unreachable': return { kind: 'no answer', server, message, sent: word === 'lost' };
      case 'notready':
      case 'claiming':
        return { kind: 'not ready', server, message, retryAfterMs: Number(more), claiming: word === 'claiming' };
      case 'refused': return { kind: 'refused', server, message, failure: new FirnError('refused', message) };
      case 'none':
      case 'other':
      case 'old': return { kind: 'refused', server, message };
      case 'elsewhere': return { kind: 'elsewhere', server, owner: addressOf(more), message };
    }
    return assert.fail('unknown word');
  }

  /** Returns the terms with the end and what else an answer may change. */
  private changed(given: LeaseTerms, keys: Record<string, string>): LeaseTerms {
    const nowTick = this.clock.wallMs() - EPOCH_MS;
    const bound = Number(keys['bound'] ?? 0);
    const asked = nowTick + Number(keys['for'] ?? 60_000);
    const untilTick = BigInt(bound ? Math.min(asked, NOON_MS - EPOCH_MS + bound) : asked);
    const changed = { ...given, untilTick, renewInMs: Number(keys['renew'] ?? 20_000), ending: bound > 0,
      server: keys['server'] ? addressOf(keys['server']) : given.server };
    const spoilt: Record<string, Partial<LeaseTerms>> = {
      name: { lease: '' }, overlap: { baseBits: given.baseBits | 1n }, empty: { untilTick: given.fromTick },
      begin: { fromTick: -5n }, layout: { epochMs: given.epochMs + 1n }, lease: { lease: 'another' },
      machine: { machine: 99, baseBits: 99n << 12n }, less: { untilTick: (this.leases.get(this.held)?.untilTick ?? 0n) - 1n },
    };
    return { ...changed, ...spoilt[keys['spoilt'] ?? ''] };
  }

  private granted(keys: Record<string, string>, server: string): LeaseTerms {
    const fromMs = this.clock.wallMs() + Number(keys['from'] ?? -3_600_000);
    let given = this.changed(terms(++this.machine, fromMs, fromMs, { server }), keys);
    if (keys['again']) {
      given = { ...this.leases.get(this.held)!, ...(keys['again'] === 'interval' ? { lease: given.lease } : {}) };
    }
    this.leases.set(given.lease, given);
    if (!keys['spoilt'] && given.untilTick > this.clock.wallMs() - EPOCH_MS) this.held = given.lease;
    return given;
  }

  private renewed(keys: Record<string, string>): LeaseTerms {
    const given = this.changed(this.leases.get(this.held)!, keys);
    if (!keys['spoilt']) this.leases.set(this.held, given);
    return given;
  }
}
