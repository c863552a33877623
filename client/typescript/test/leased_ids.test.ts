import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readLease } from '../src/lease.js';
import { LeasedIds } from '../src/leased_ids.js';
import { EPOCH_MS, FakeClock, LAYOUT, lease, NOON_MS, Rig, terms, tickOf } from './lease_rig.js';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

test('says since when there is no lease', () => {
  new Rig().assertNone(/^no server has granted a lease since 2026-11-26 12:00:00 UTC$/);
});

test('a wall clock hours behind begins at the first tick', () => {
  const rig = new Rig();
  rig.clock.step(-3 * HOUR);
  rig.tick();
  const granted = lease(7, NOON_MS, NOON_MS + 60 * SECOND);
  rig.answer('grant', { kind: 'lease', server: granted.server, lease: granted });
  assert.equal(tickOf(rig.take(1)[0]!), granted.fromTick);
  rig.clock.advance(30 * SECOND);
  assert.equal(tickOf(rig.take(1)[0]!), granted.fromTick + 30 * SECOND);
  rig.clock.advance(30 * SECOND);
  rig.assertNone(/ended at/);
});

test('a wall clock hours ahead wastes the interval and repeats nothing', () => {
  const rig = new Rig();
  rig.hold();
  rig.take();
  rig.clock.step(3 * HOUR);
  rig.ids.confirm(rig.clock.wallAtZeroMs); // the server's is as wrong
  rig.assertNone(/ended at/);
  rig.clock.step(-3 * HOUR);
  rig.pass(3 * SECOND);
  rig.hold(7); // even the same machine id
  rig.take();
  assert(tickOf([...rig.taken].at(-1)!) < tickOf([...rig.taken][0]!) + 60 * SECOND);
});

test('a wall clock that steps back does not move the position', () => {
  const rig = new Rig();
  rig.hold();
  for (let i = 0; i < 30; i++) {
    rig.take();
    rig.clock.advance(SECOND);
    rig.clock.step(-5 * SECOND);
  }
  assert.equal(rig.taken.size, 90);
  rig.clock.advance(40 * SECOND);
  rig.assertNone(/ended at/);
});

test('the same interval granted twice repeats no id', () => {
  const rig = new Rig();
  const first = rig.hold(7, 30 * SECOND);
  rig.take();
  rig.pass(21 * SECOND);
  rig.take();
  rig.answer('grant', { kind: 'lease', server: 'b:1', lease: { ...first } }); // by a faulty server
  rig.clock.advance(1);
  rig.take();
  assert.equal(rig.taken.size, 9);
});

test('a confirmation does not move the id clock back', () => {
  const rig = new Rig();
  rig.hold();
  const first = tickOf(rig.take(1)[0]!);
  rig.clock.step(-3 * SECOND);
  rig.ids.confirm(rig.clock.wallAtZeroMs);
  rig.clock.advance(10);
  assert.equal(tickOf(rig.take(1)[0]!), first + 9);
});

test('an id clock beyond the interval returns at a renewal, to the wall clock or to the last tick used', () => {
  for (const backMs of [3 * HOUR, 3 * HOUR + 30 * SECOND]) {
    const rig = new Rig();
    const held = rig.hold();
    const first = tickOf(rig.take(1)[0]!);
    rig.clock.advance(30 * SECOND - 1);
    const last = rig.take(1)[0]!;
    rig.clock.step(3 * HOUR);
    rig.ids.confirm(rig.clock.wallAtZeroMs);
    rig.clock.advance(1);
    rig.assertNone(/ended at/);
    rig.clock.step(-backMs);
    rig.ids.extendTo(held.untilTick + 30 * SECOND);
    const next = rig.take(5_000)[0]!;
    assert(next > last);
    assert.equal(tickOf(next), first + 30 * SECOND);
  }
});

test('waits for the next tick when the sequence is used up', () => {
  const rig = new Rig();
  rig.hold();
  rig.take(4096);
  assert.equal(rig.clock.slept, 0);
  const next = rig.take(4096);
  assert.equal(rig.clock.slept, 1);
  assert.equal(tickOf(next[0]!), tickOf(next[4095]!));
  assert.equal(next[0]! & 4095n, 0n); // after a tick that is used up, the sequence begins at 0
});

function longTicks(tickMs: number): { clock: FakeClock; ids: LeasedIds } {
  const clock = new FakeClock();
  const ids = new LeasedIds(clock, () => 0);
  const first = BigInt(Math.floor((NOON_MS - EPOCH_MS) / tickMs));
  const long = readLease({ ...terms(7, NOON_MS, NOON_MS), tickMs, sequenceBits: 1, sequenceCount: 2n, fromTick: first,
                           untilTick: first + 2n }, undefined);
  assert(typeof long !== 'string', String(long));
  assert.equal(ids.adopt(long, () => undefined), '');
  return { clock, ids };
}

test('waits for a tick of a second unless the lease ends', () => {
  const { clock, ids } = longTicks(SECOND);
  for (let i = 0; i < 4; i++) ids.next();
  assert.equal(clock.slept, SECOND);
  assert.throws(() => ids.next(), /ended at/);
  assert.equal(clock.slept, SECOND);
});

test('says when to retry if the next tick is far away', () => {
  const { clock, ids } = longTicks(10 * SECOND);
  ids.next();
  ids.next();
  assert.throws(() => ids.next(), { kind: 'unavailable', retryAfterMs: 10 * SECOND, message: /the sequence of this tick/ });
  assert.equal(clock.slept, 0);
});

test('the sequence of a tick begins at random in its lower half', () => {
  const clock = new FakeClock();
  const drawn = [0, 0.5, 0.999];
  const ids = new LeasedIds(clock, () => drawn.shift()!);
  ids.adopt(lease(7, NOON_MS, NOON_MS + 60 * SECOND), () => undefined);
  clock.advance(1);
  ids.next();
  const begins = [1, 2].map(() => {
    clock.advance(1);
    return Number(ids.next() & 4095n);
  });
  assert.deepEqual(begins, [1024, 2045]);
});

test('an id of which the clock was read before a pause has a tick of the lease', () => {
  const rig = new Rig();
  const held = rig.hold(7, 10 * SECOND);
  rig.clock.advance(5 * SECOND);
  rig.clock.afterRead = () => {
    rig.clock.afterRead = undefined;
    rig.clock.advance(60 * SECOND); // paused beyond the end, in the middle of a call
  };
  assert.equal(tickOf(rig.take(1)[0]!), held.fromTick + 5 * SECOND);
  rig.assertNone(/ended at/);
});

test('an id that is computed while the lease is closed is not returned', () => {
  const rig = new Rig();
  rig.hold();
  rig.take();
  rig.clock.advance(1);
  rig.clock.afterRead = () => rig.ids.close(() => new Error('closed meanwhile') as never);
  assert.throws(() => rig.ids.next(), /closed meanwhile/);
});

test('ids have only a part of the sequence where the lease does', () => {
  const clock = new FakeClock();
  const ids = new LeasedIds(clock, () => 0.99);
  ids.adopt(lease(7, NOON_MS, NOON_MS + SECOND, { sequenceFrom: 1024n, sequenceCount: 4n }), () => undefined);
  const seen = new Set<number>();
  for (let i = 0; i < 200; i++) seen.add(Number(ids.next() & 4095n));
  assert.deepEqual([...seen].sort(), [1024, 1025, 1026, 1027]);
});

test('uses no lease of another layout', () => {
  const rig = new Rig();
  rig.hold();
  const other = readLease({ ...terms(8, NOON_MS, NOON_MS), tickMs: 10, fromTick: 1n, untilTick: 2n }, undefined);
  assert(typeof other !== 'string', String(other));
  assert.match(rig.ids.adopt(other, () => assert.fail()), /its layout is not that of the first lease/);
  rig.take();
  rig.ids.close(() => new Error('revoked') as never);
  const good = lease(9, NOON_MS, NOON_MS + 60 * SECOND);
  for (const change of [{ tickMs: 2 }, { epochMs: 0 }, { tickShift: 23n }, { sequenceShift: 1n }, { sequenceBits: 11 }]) {
    assert.match(rig.ids.adopt({ ...good, ...change }, () => assert.fail()), /its layout is not that of the first lease/);
  }
  assert.equal(rig.ids.adopt(good, () => undefined), '');
});

test('terms that permit no id are refused', () => {
  const good = terms(7, NOON_MS, NOON_MS + SECOND);
  assert.equal(typeof readLease(good, LAYOUT), 'object');
  assert.equal(typeof readLease(good, undefined), 'object');
  const top = 1n << 62n;
  const bad: [Partial<typeof good>, RegExp][] = [
    [{ lease: '' }, /no id/], [{ server: '' }, /no server/],
    [{ fromTick: good.untilTick }, /from tick/], [{ fromTick: -1n }, /from tick/],
    [{ untilTick: (1n << 41n) + 1n }, /fit into the layout/], [{ untilTick: top }, /too large/],
    [{ sequenceFrom: 1n }, /sequences/], [{ sequenceCount: 4097n }, /sequences/], [{ sequenceCount: 0n }, /sequences/],
    [{ sequenceFrom: -1n }, /sequences/],
    [{ baseBits: good.baseBits | 1n }, /overlap/], [{ baseBits: good.baseBits | 1n << 30n }, /overlap/],
    [{ sequenceShift: 20 }, /overlap/], [{ sequenceShift: 64 }, /64 bits/], [{ tickShift: -1 }, /64 bits/],
    [{ sequenceBits: 60 }, /64 bits/], [{ tickMs: 0 }, /time is impossible/], [{ epochMs: 9_000_000_000_000_000n }, /impossible/],
  ];
  for (const [change, message] of bad) {
    for (const layout of [LAYOUT, undefined]) {
      if (change.untilTick === (1n << 41n) + 1n && !layout) continue; // it fits into 64 bits
      const read = readLease({ ...good, ...change }, layout);
      assert(typeof read === 'string', JSON.stringify({ ...change }, (_, one) => String(one)));
      assert.match(read, message);
    }
  }
  for (const change of [{ tickShift: 23 }, { tickMs: 2 }, { epochMs: 0n }]) {
    assert.match(String(readLease({ ...good, ...change }, LAYOUT)), /layout|overlap/);
  }
  assert.match(String(readLease({ ...good, baseBits: good.baseBits | -(1n << 63n) }, LAYOUT)), /fixed bit/);
});
