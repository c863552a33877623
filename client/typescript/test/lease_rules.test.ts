// Whom a lessee asks, and when: waits, the order of requests, and servers that are not in the list.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FirnError } from '../src/errors.js';
import { NOON_MS, Rig, lease } from './lease_rig.js';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

test('a wait that a server asks for is at most 10 s', () => {
  const rig = new Rig();
  rig.tick();
  rig.answer('grant', { kind: 'not ready', server: 'a:1', message: '', retryAfterMs: HOUR });
  rig.pass(9_900);
  assert.equal(rig.count('grant'), 1);
  rig.pass(200);
  assert.equal(rig.count('grant'), 2);
});

test('a wait that a server asks for is at most half of what is left of the interval', () => {
  const rig = new Rig();
  const held = rig.hold(7, 15 * SECOND);
  rig.pass(5 * SECOND);
  rig.answer('renewal', { kind: 'not ready', server: held.server, message: '', retryAfterMs: HOUR });
  rig.pass(4_900);
  assert.equal(rig.count('renewal'), 1);
  rig.pass(200);
  assert.equal(rig.count('renewal'), 2);
});

test('delays end at 2 s, or at a twelfth of the interval that was given', () => {
  for (const [aheadMs, givenMs, mostMs] of [
    [60_000, 600_000, 2_000], [60_000, 6_000, 500], [60_000, 3_000, 250], [60_000, 1_000, 100],
    [6_000, 600_000, 500], [2_400, 600_000, 200], [2_000, 600_000, 167],
  ] as const) {
    const rig = new Rig(aheadMs);
    const held = rig.hold(7, givenMs);
    rig.pass(givenMs / 3);
    let [last, widest, sent] = [0, 0, 0];
    for (let ms = 0; ms < Math.min(givenMs / 2, 60_000); ms++) {
      if (rig.count('renewal') > sent) {
        widest = sent > 0 ? Math.max(widest, ms - last) : 0;
        [last, sent] = [ms, rig.count('renewal')];
        rig.noAnswer('renewal', held.server);
      }
      rig.clock.advance(1);
      rig.tick();
    }
    assert(Math.abs(widest - mostMs / 2) <= 1, `${aheadMs} ${givenMs}: ${widest}`); // the random half is 0
  }
});

// The release of the first lease is pending when a server gives a shorter interval.
test('a shorter interval bounds the delays of a request that is pending', () => {
  const rig = new Rig();
  const held = rig.hold(7);
  rig.pass(20 * SECOND);
  rig.answer('renewal', { kind: 'refused', server: held.server, message: '' });
  const next = rig.hold(8);
  for (let i = 0; i < 10; i++) {
    rig.noAnswer('release', held.server);
    rig.pass(SECOND);
  }
  rig.pass(10 * SECOND);
  rig.answer('renewal', { kind: 'revoked', server: next.server, message: '' });
  rig.hold(9, 3 * SECOND);
  const sent = rig.count('release');
  rig.noAnswer('release', held.server);
  rig.pass(250);
  assert.equal(rig.count('release'), sent + 1);
});

test('a renewal is sent before a grant, and a grant before releases', () => {
  const rig = new Rig();
  rig.hold(7, 60 * SECOND, { ending: true });
  rig.pass(41 * SECOND);
  rig.hold(8, 15 * SECOND);
  rig.noAnswer('release', '10.0.0.7:7609', false);
  rig.sent.length = 0;
  rig.clock.advance(11 * SECOND); // less than a third is left, and the renewal is late
  rig.tick();
  assert.deepEqual(rig.sent.map(([, one]) => one.kind), ['renewal', 'grant', 'release']);
});

test('a lease id is sent to no address that is not in the list', () => {
  const rig = new Rig();
  rig.strangers.add('stranger:1');
  const held = rig.hold();
  rig.pass(20 * SECOND);
  rig.answer('renewal', { kind: 'elsewhere', server: held.server, owner: 'stranger:1', message: 'it moved' });
  assert.deepEqual(rig.refusals, ['it moved']);
  rig.pass(SECOND);
  assert.deepEqual([rig.count('renewal'), rig.newest('renewal').server], [2, held.server]);
  rig.lessee.stop(rig.clock.now, () => new FirnError('closed', ''));
  rig.tick();
  rig.answer('release', { kind: 'elsewhere', server: held.server, owner: 'stranger:1', message: '' });
  rig.pass(SECOND);
  assert.deepEqual([rig.count('release'), rig.newest('release').server], [2, held.server]);
});

test('the address that the grant named is followed', () => {
  const rig = new Rig();
  rig.strangers.add('10.0.0.7:7609');
  rig.tick();
  const granted = lease(7, NOON_MS, NOON_MS + 60 * SECOND);
  rig.answer('grant', { kind: 'lease', server: 'a:1', lease: granted });
  rig.pass(20 * SECOND);
  assert.equal(rig.newest('renewal').server, 'a:1'); // the one that granted the lease
  rig.answer('renewal', { kind: 'elsewhere', server: 'a:1', owner: granted.server, message: '' });
  assert.equal(rig.newest('renewal').server, granted.server);
});

test('a renewal goes to the server that the terms name, if the list has it', () => {
  const rig = new Rig();
  rig.tick();
  rig.answer('grant', { kind: 'lease', server: 'a:1', lease: lease(7, NOON_MS, NOON_MS + 60 * SECOND) });
  rig.pass(20 * SECOND);
  assert.equal(rig.newest('renewal').server, '10.0.0.7:7609');
  rig.strangers.add('10.0.0.7:7609');
  rig.answer('renewal', { kind: 'lease', server: 'b:1', lease: lease(7, NOON_MS, NOON_MS + 80 * SECOND) });
  rig.pass(20 * SECOND);
  assert.equal(rig.newest('renewal').server, 'b:1');
});

test('unusable terms are given back, and another server is asked with a fresh token', () => {
  for (const [fromTick, usedTick] of [[100, 99], [-5, -1], [2 ** 62, -1]] as const) {
    const rig = new Rig();
    rig.strangers.add('stranger:1');
    rig.tick();
    const { token } = rig.newest('grant');
    rig.answer('grant', {
      kind: 'unusable', server: 'a:1', message: 'cannot be used', terms: { id: 'lease-9', server: 'stranger:1', fromTick, endMs: 0 },
    });
    const { lease: id, server, turn, usedTick: used } = rig.newest('release');
    assert.deepEqual([id, server, turn, used], ['lease-9', 'a:1', '', usedTick]);
    assert.deepEqual([rig.count('grant'), rig.newest('grant').avoid], [2, ['a:1']]);
    assert.notEqual(rig.newest('grant').token, token);
    assert.deepEqual(rig.refusals, ['cannot be used']);
  }
});

/** Returns how long an unused lease, whose release is not answered, is released. */
function releasedMs(rig: Rig): number {
  let [lastMs, sent] = [0, 0];
  for (let ms = 0; ms < 150_000; ms += 10) {
    if (rig.count('release') > sent) {
      [lastMs, sent] = [ms, rig.count('release')];
      rig.noAnswer('release', 'a:1', false);
    }
    rig.clock.advance(10);
    rig.tick();
  }
  return lastMs;
}

test('an unused lease is released until its end, or for `ahead`', () => {
  for (const [endMs, lastsMs] of [
    [NOON_MS + 15_000, 15_000],
    [NOON_MS + 600_000, 60_000], // more than was asked for
    [NOON_MS, 60_000], // the end is unknown
    [-(2 ** 94), 60_000], [2 ** 94, 60_000],
  ] as const) {
    const rig = new Rig();
    rig.tick();
    const unusable = { id: 'lease-9', server: 'a:1', fromTick: 1, endMs };
    rig.answer('grant', { kind: 'unusable', server: 'a:1', message: 'cannot be used', terms: unusable });
    const lastMs = releasedMs(rig);
    assert(lastMs < lastsMs && lastMs > lastsMs - 3 * SECOND, `${endMs}: ${lastMs}`);
  }
});

test('an unused lease of another layout is released until its end', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.pass(20 * SECOND);
  rig.answer('renewal', { kind: 'revoked', server: held.server, message: '' });
  const other = { ...lease(8, NOON_MS, NOON_MS + 35 * SECOND), sequenceBits: 11 }; // 15 s are left
  rig.answer('grant', { kind: 'lease', server: other.server, lease: other });
  const lastMs = releasedMs(rig);
  assert(lastMs < 15_000 && lastMs > 12_000, `${lastMs}`);
});

test('a lease of another layout is given back after a loss, too', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.pass(20 * SECOND);
  rig.answer('renewal', { kind: 'revoked', server: held.server, message: '' });
  const other = { ...lease(8, NOON_MS, NOON_MS + 60 * SECOND), epochMs: 0 };
  rig.answer('grant', { kind: 'lease', server: other.server, lease: other });
  assert.match(rig.refusals.at(-1)!, /its layout is not that of the first lease/);
  const { lease: id, usedTick } = rig.newest('release');
  assert.deepEqual([id, usedTick], ['lease-8', other.fromTick - 1]);
  rig.hold(9);
  rig.take();
});

test('unusable terms for a renewal count as no answer', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.pass(20 * SECOND);
  const { turn } = rig.newest('renewal');
  const bad = { id: 'lease-7', server: held.server, fromTick: 1, endMs: 0 };
  rig.answer('renewal', { kind: 'unusable', server: held.server, message: 'cannot be used', terms: bad });
  rig.pass(SECOND);
  assert.deepEqual([rig.count('renewal'), rig.newest('renewal').turn], [2, turn]);
  assert.deepEqual([rig.count('grant'), rig.count('release')], [1, 0]);
});

// The clock of one server is wrong, for instance.
test('reports a refusal as final only if all servers refuse', () => {
  const rig = new Rig();
  const failure = new FirnError('refused', 'the clock', { reason: 'BAD_REQUEST' });
  const refuses = (server: string): void =>
    rig.answer('grant', { kind: 'refused', server, message: 'the clock', failure });
  const round = (other: () => void): number => {
    rig.pass(3 * SECOND);
    refuses('a:1');
    rig.tick();
    other();
    rig.pass(3 * SECOND);
    rig.noAnswer('grant', '', false); // all were asked
    return rig.finals.length;
  };
  assert.equal(round(() => rig.answer('grant', { kind: 'refused', server: 'b:1', message: 'NO_LEASES' })), 1);
  assert.equal(round(() => refuses('b:1')), 2);
  assert.equal(round(() => rig.noAnswer('grant', 'b:1', false)), 2);
  rig.pass(3 * SECOND);
  refuses('a:1');
  rig.hold();
  assert.equal(rig.finals.length, 2);
});
