import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readLease } from '../src/lease.js';
import { LeasedIds } from '../src/leased_ids.js';
import { EPOCH_MS, FakeClock, LAYOUT, lease, NOON_MS, Player, terms, tickOf } from './lease_player.js';

const SECOND = 1_000;

test('says since when there is no lease', () => {
  new Player().assertNone(/^no server has granted a lease since 2026-11-26 12:00:00 UTC$/);
});

test('waits for the next tick when the sequence is used up', () => {
  const { clock, ids } = held();
  take(ids, 4096);
  assert.equal(clock.slept, 0);
  const next = take(ids, 4096);
  assert.equal(clock.slept, 1);
  assert.equal(tickOf(next[0]!), tickOf(next[4095]!));
  assert.equal(next[0]! & 4095n, 0n); // after a tick that is used up, the sequence begins at 0
});

/** Ids of a lease that begins now. */
function held(lastsMs = 60 * SECOND): { clock: FakeClock; ids: LeasedIds; firstTick: number } {
  const clock = new FakeClock();
  const ids = new LeasedIds(clock, () => 0);
  const granted = lease(7, NOON_MS, NOON_MS + lastsMs);
  assert.equal(ids.adopt(granted, () => undefined), '');
  return { clock, ids, firstTick: granted.fromTick };
}

function take(ids: LeasedIds, count = 3): bigint[] {
  return Array.from({ length: count }, () => ids.next());
}

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

test('a pause after the clock was read gives no tick outside the lease', () => {
  const { clock, ids, firstTick } = held(10 * SECOND);
  clock.advance(5 * SECOND);
  clock.afterRead = () => {
    clock.afterRead = undefined;
    clock.advance(60 * SECOND); // paused beyond the end, in the middle of a call
  };
  assert.equal(tickOf(ids.next()), firstTick + 5 * SECOND);
  assert.throws(() => ids.next(), /ended at/);
});

test('an id that is computed while the lease is closed is not returned', () => {
  const { clock, ids } = held();
  take(ids);
  clock.advance(1);
  clock.afterRead = () => ids.close(() => new Error('closed meanwhile') as never);
  assert.throws(() => ids.next(), /closed meanwhile/);
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
  const { ids } = held();
  const other = readLease({ ...terms(8, NOON_MS, NOON_MS), tickMs: 10, fromTick: 1n, untilTick: 2n }, undefined);
  assert(typeof other !== 'string', String(other));
  assert.match(ids.adopt(other, () => assert.fail()), /its layout is not that of the first lease/);
  take(ids);
  ids.close(() => new Error('revoked') as never);
  const good = lease(9, NOON_MS, NOON_MS + 60 * SECOND);
  for (const change of [{ tickMs: 2 }, { epochMs: 0 }, { tickShift: 23n }, { sequenceShift: 1n }, { sequenceBits: 11 }]) {
    assert.match(ids.adopt({ ...good, ...change }, () => assert.fail()), /its layout is not that of the first lease/);
  }
  assert.equal(ids.adopt(good, () => undefined), '');
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
