import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FirnError } from '../src/errors.js';
import { lease, machineOf, NOON_MS, Rig, tickOf } from './lease_rig.js';

const SECOND = 1_000;

test('repeats a grant without an answer with its token at the same server', () => {
  const rig = new Rig();
  rig.tick();
  const first = rig.newest('grant');
  assert.deepEqual([first.server, first.token.length], ['', 32]);
  rig.noAnswer('grant', 'a:1');
  rig.pass(SECOND);
  assert.equal(rig.count('grant'), 2);
  assert.deepEqual([rig.newest('grant').server, rig.newest('grant').token], ['a:1', first.token]);
  rig.hold();
  assert.equal(machineOf(rig.take(1)[0]!), 7);
});

test('asks another server with a fresh token when a grant stays without an answer', () => {
  const rig = new Rig();
  rig.tick();
  const { token } = rig.newest('grant');
  for (const sent of [true, false]) { // the second one does not reach it
    rig.noAnswer('grant', 'a:1', sent);
    rig.pass(2 * SECOND);
  }
  const next = rig.newest('grant');
  assert.deepEqual([next.server, next.avoid], ['', ['a:1']]);
  assert.notEqual(next.token, token);
});

test('asks another server with the same token when a grant was not sent, or cannot be granted there', () => {
  const rig = new Rig();
  rig.tick();
  const { token } = rig.newest('grant');
  rig.noAnswer('grant', 'a:1', false);
  rig.answer('grant', { kind: 'refused', server: 'b:1', message: 'NO_LEASES' });
  const next = rig.newest('grant');
  assert.deepEqual([next.server, next.avoid, next.token], ['', ['a:1', 'b:1'], token]);
  rig.noAnswer('grant', '', false); // all were asked
  assert.equal(rig.count('grant'), 3);
  rig.pass(SECOND);
  assert.deepEqual(rig.newest('grant').avoid, []);
  assert.deepEqual(rig.refusals.slice(0, 2), ['a:1 timeout', 'NO_LEASES']);
});

// A slow registry, or a probation: another server would claim a second machine id.
test('repeats the token at a server that is claiming a machine id', () => {
  const rig = new Rig();
  rig.tick();
  const { token } = rig.newest('grant');
  const claiming = { kind: 'not ready', server: 'a:1', message: 'claiming', retryAfterMs: 700, claiming: true } as const;
  for (let i = 2; i < 12; i++) {
    rig.answer('grant', claiming);
    rig.pass(3 * SECOND);
    assert.deepEqual([rig.count('grant'), rig.newest('grant').server, rig.newest('grant').token], [i, 'a:1', token]);
  }
  rig.noAnswer('grant', 'a:1');
  rig.pass(3 * SECOND);
  assert.equal(rig.newest('grant').server, 'a:1');
  rig.noAnswer('grant', 'a:1');
  rig.pass(3 * SECOND);
  assert.equal(rig.newest('grant').server, '');
});

test('waits as long as a server that is not ready says, and repeats the token there', () => {
  const rig = new Rig();
  rig.tick();
  const { token } = rig.newest('grant');
  rig.answer('grant', { kind: 'not ready', server: 'a:1', message: 'too many leases', retryAfterMs: 5 * SECOND });
  rig.pass(4_900);
  assert.equal(rig.count('grant'), 1);
  rig.pass(200);
  assert.deepEqual([rig.newest('grant').server, rig.newest('grant').token], ['a:1', token]);
});

test('draws a fresh token when the lease of the first is outdated, revoked or unusable', () => {
  for (const kind of ['outdated', 'revoked', 'unknown'] as const) {
    const rig = new Rig();
    rig.tick();
    const { token } = rig.newest('grant');
    rig.answer('grant', { kind, server: 'a:1', message: '' });
    assert.notEqual(rig.newest('grant').token, token);
  }
  const rig = new Rig();
  rig.hold(7);
  rig.pass(41 * SECOND);
  const { token } = rig.newest('grant');
  const other = { ...lease(8, NOON_MS, NOON_MS + 900 * SECOND), tickMs: 10 };
  rig.answer('grant', { kind: 'lease', server: 'b:1', lease: other });
  assert.match(rig.refusals.at(-1)!, /the lease of b:1 cannot be used: its layout/);
  assert.notEqual(rig.newest('grant').token, token);
  rig.take(); // of the first lease
});

test('issues no id outside the interval', () => {
  const rig = new Rig();
  const held = rig.hold(7, 10 * SECOND);
  for (let i = 0; i < 12; i++) {
    if (i < 10) {
      const tick = tickOf(rig.take(1)[0]!);
      assert(tick >= held.fromTick && tick < held.untilTick);
    } else {
      rig.assertNone(/^the lease of machine id 7 ended at 2026-11-26 12:00:10 UTC, and no server has extended it$/);
    }
    rig.clock.advance(SECOND);
  }
});

test('renews with a fresh turn and the turn that was answered last', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.pass(20 * SECOND);
  const first = rig.newest('renewal');
  assert.deepEqual([first.lease, first.server, first.turn.length, first.acknowledged], ['lease-7', held.server, 32, '']);
  rig.answer('renewal', { kind: 'lease', server: held.server, lease: lease(7, NOON_MS, NOON_MS + 80 * SECOND) });
  rig.pass(20 * SECOND);
  const second = rig.newest('renewal');
  assert.notEqual(second.turn, first.turn);
  assert.equal(second.acknowledged, first.turn);
  rig.clock.advance(39 * SECOND);
  rig.take();
});

test('repeats a renewal with its turn when the answer is lost', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.pass(20 * SECOND);
  const first = rig.newest('renewal');
  for (let i = 0; i < 3; i++) {
    rig.noAnswer('renewal', held.server);
    rig.pass(3 * SECOND);
    assert.deepEqual({ ...rig.newest('renewal'), clockMs: first.clockMs }, first);
  }
  assert.equal(rig.count('renewal'), 4);
  rig.answer('renewal', { kind: 'lease', server: held.server, lease: lease(7, NOON_MS, NOON_MS + 90 * SECOND) });
  rig.clock.advance(55 * SECOND);
  rig.take();
});

test('has one renewal under way', () => {
  const rig = new Rig();
  rig.hold();
  rig.pass(50 * SECOND);
  assert.equal(rig.count('renewal'), 1);
});

test('stops at once when the lease is revoked, and takes another one with a fresh token', () => {
  for (const kind of ['revoked', 'outdated'] as const) {
    const rig = new Rig();
    const held = rig.hold();
    const { token } = rig.newest('grant');
    rig.take();
    rig.pass(20 * SECOND);
    rig.answer('renewal', { kind, server: held.server, message: 'another process extended it' });
    rig.assertNone(/^the lease of machine id 7 was revoked at 2026-11-26 12:00:20 UTC: another process extended it$/);
    assert.deepEqual(rig.losses, [{ kind: 'revoked', machineId: 7, reason: 'another process extended it' }]);
    const next = rig.newest('grant');
    assert.notEqual(next.token, token);
    assert.deepEqual(next.avoid, [held.server]);
    rig.hold(8);
    assert.equal(machineOf(rig.take(1)[0]!), 8);
    assert.equal(rig.count('release'), 0);
  }
});

test('uses a lease that its server does not know to its end, and requests another at once', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.pass(20 * SECOND);
  assert.equal(rig.count('grant'), 1);
  rig.answer('renewal', { kind: 'unknown', server: held.server, message: '' });
  assert.equal(rig.count('grant'), 2);
  rig.noAnswer('grant', 'b:1', false);
  rig.clock.advance(39 * SECOND);
  assert.equal(machineOf(rig.take(1)[0]!), 7);
  rig.clock.advance(SECOND);
  rig.assertNone(/ended at/);
  assert.equal(rig.count('renewal'), 1);
  rig.hold(8);
  rig.take();
  assert.equal(rig.count('release'), 0); // its server does not have the first lease
});

test('requests another lease at once when the server extends this one no further, and then releases it', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.pass(41 * SECOND); // a grant is in progress, too
  rig.noAnswer('grant', '', false);
  assert.equal(rig.count('grant'), 2);
  rig.answer('renewal', { kind: 'refused', server: held.server, message: 'NO_LEASES' });
  assert.equal(rig.count('grant'), 3); // at once
  rig.pass(10 * SECOND);
  assert.equal(rig.count('renewal'), 1);
  rig.take();
  rig.hold(8);
  assert.equal(rig.newest('release').lease, 'lease-7');
});

test('keeps the lease, and asks for no other, when a late renewal succeeds', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.pass(41 * SECOND);
  rig.noAnswer('grant', '', false);
  rig.answer('renewal', { kind: 'lease', server: held.server, lease: lease(7, NOON_MS, NOON_MS + 101 * SECOND) });
  rig.pass(10 * SECOND);
  assert.equal(rig.count('grant'), 2);
  assert.equal(machineOf(rig.take(1)[0]!), 7);
});

test('renews an ending lease up to its bound, and replaces it when a third is left', () => {
  const rig = new Rig();
  const held = rig.hold(7, 60 * SECOND, { ending: true });
  const beganMs = rig.clock.now.wallMs;
  const boundMs = beganMs + 180 * SECOND;
  let answered = 0;
  for (let second = 0; second < 159; second++) {
    rig.pass(SECOND);
    if (rig.count('renewal') === answered) continue;
    answered++;
    const untilMs = Math.min(rig.clock.now.wallMs + 60 * SECOND, boundMs);
    rig.answer('renewal', { kind: 'lease', server: held.server, lease: lease(7, beganMs, untilMs, { ending: true }) });
    assert.equal(machineOf(rig.take(1)[0]!), 7);
  }
  assert(answered >= 6, String(answered));
  assert.equal(rig.count('grant'), 1);
  rig.pass(3 * SECOND);
  assert.equal(rig.count('grant'), 2);
  rig.pass(17 * SECOND);
  assert.equal(machineOf(rig.take(1)[0]!), 7);
  assert.deepEqual(rig.losses, []);
});

test('replaces an ending lease when a third is left, in a later tick', () => {
  const rig = new Rig();
  const held = rig.hold(7, 60 * SECOND, { ending: true });
  rig.pass(39 * SECOND);
  assert.equal(rig.count('grant'), 1);
  rig.pass(2 * SECOND);
  assert.deepEqual([rig.count('grant'), rig.newest('grant').avoid], [2, [held.server]]);
  const last = rig.take(1)[0]!;
  const { wallMs } = rig.clock.now;
  rig.answer('grant', { kind: 'lease', server: 'c:1', lease: lease(3, wallMs - SECOND, wallMs + 60 * SECOND) });
  rig.clock.advance(1); // a smaller machine id in the same tick would be a smaller id
  const next = rig.take(1)[0]!;
  assert.deepEqual([machineOf(next), tickOf(next)], [3, tickOf(last) + 1]);
  const release = rig.newest('release');
  assert.deepEqual([release.lease, release.usedTick, release.turn],
    ['lease-7', tickOf(last), rig.newest('renewal').turn]);
  assert.deepEqual(rig.losses, []);
});

test('replaces a lease that no server extends', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.pass(20 * SECOND);
  const { turn } = rig.newest('renewal');
  rig.noAnswer('renewal', held.server, false);
  rig.pass(21 * SECOND);
  rig.hold(8);
  assert.equal(rig.newest('release').turn, turn); // the server may have accepted it
  rig.take();
});

test('asks the server that has the lease, and follows at most 2 servers', () => {
  const rig = new Rig();
  rig.hold();
  rig.pass(20 * SECOND);
  const { turn } = rig.newest('renewal');
  for (let i = 0; i < 2; i++) {
    rig.answer('renewal', { kind: 'elsewhere', server: `a:${i}`, owner: `a:${i + 1}`, message: '' });
    assert.deepEqual([rig.newest('renewal').server, rig.newest('renewal').turn], [`a:${i + 1}`, turn]);
  }
  rig.answer('renewal', { kind: 'elsewhere', server: 'a:2', owner: 'a:3', message: '' });
  assert.equal(rig.count('renewal'), 3);
  rig.pass(SECOND);
  assert.equal(rig.newest('renewal').server, 'a:2');
});

test('refuses a renewal that has the terms of another lease', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.pass(20 * SECOND);
  const { turn } = rig.newest('renewal');
  const later = lease(7, NOON_MS, NOON_MS + 900 * SECOND);
  const others = [lease(8, NOON_MS, NOON_MS + 900 * SECOND), lease(7, NOON_MS, NOON_MS + 50 * SECOND),
                  { ...later, tickMs: 2 }, { ...later, epochMs: later.epochMs + 1 }];
  for (const [at, other] of others.entries()) {
    rig.answer('renewal', { kind: 'lease', server: held.server, lease: other });
    assert.match(rig.refusals[at]!, /answered a renewal with another lease/);
    rig.pass(SECOND);
    assert.deepEqual([rig.newest('renewal').turn, rig.count('renewal')], [turn, at + 2]);
  }
});

test('stops at the end after a pause, and reports the loss once', () => {
  const rig = new Rig();
  rig.hold();
  rig.take();
  rig.clock.advance(600 * SECOND); // SIGSTOP, or a suspended machine
  rig.assertNone(/ended at/);
  rig.pass(5 * SECOND);
  assert.deepEqual(rig.losses.map((one) => one.kind), ['expired']);
  rig.hold(9);
  rig.take();
});

test('continues the same lease when it is extended after the pause', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.clock.advance(90 * SECOND);
  rig.tick();
  rig.answer('renewal', { kind: 'lease', server: held.server, lease: lease(7, NOON_MS, NOON_MS + 120 * SECOND) });
  assert.equal(machineOf(rig.take(1)[0]!), 7);
});

test('ignores the answer to a request that is no longer needed', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.pass(20 * SECOND);
  const renewals = rig.sent.filter(([, one]) => one.kind === 'renewal');
  rig.answer('renewal', { kind: 'revoked', server: held.server, message: '' });
  rig.lessee.onReply(renewals[0]![0],
                     { kind: 'lease', server: held.server, lease: lease(7, NOON_MS, NOON_MS + 900 * SECOND) }, rig.clock.now);
  rig.assertNone(/was revoked/);
});

test('closes the ids before it reads the last tick, and stays closed', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.pass(20 * SECOND);
  const renewal = rig.sent.at(-1)!;
  const { turn } = rig.newest('renewal');
  const last = rig.take(1)[0]!;
  rig.lessee.stop(rig.clock.now, () => new FirnError('closed', 'the generator was closed'));
  rig.assertNone(/^the generator was closed$/);
  rig.tick();
  const release = rig.newest('release');
  assert.deepEqual([release.usedTick, release.turn], [tickOf(last), turn]); // the server may have accepted the turn
  rig.lessee.onReply(renewal[0], { kind: 'lease', server: held.server, lease: lease(7, NOON_MS, NOON_MS + 900 * SECOND) },
                     rig.clock.now);
  rig.assertNone(/^the generator was closed$/);
  assert(!rig.lessee.stopped);
  rig.answer('release', { kind: 'released', server: held.server });
  assert(rig.lessee.stopped);
});

test('releases an unused lease below its first tick', () => {
  const rig = new Rig();
  const held = rig.hold();
  rig.lessee.stop(rig.clock.now, () => new FirnError('closed', ''));
  rig.tick();
  assert.equal(rig.newest('release').usedTick, held.fromTick - 1);
});

test('repeats a release until it is answered or the lease has ended', () => {
  const rig = new Rig();
  const held = rig.hold(7, 30 * SECOND, { ending: true });
  rig.pass(21 * SECOND);
  rig.hold(8, 600 * SECOND);
  rig.noAnswer('release', held.server);
  rig.pass(5 * SECOND);
  assert.equal(rig.count('release'), 2);
  rig.noAnswer('release', held.server);
  rig.pass(20 * SECOND);
  assert.equal(rig.count('release'), 3);
  rig.noAnswer('release', held.server);
  rig.pass(5 * SECOND);
  assert.equal(rig.count('release'), 3); // the lease has ended
});

test('pauses between a lease and the request for another', () => {
  const rig = new Rig();
  rig.hold(7, 1);
  rig.pass(1_900);
  assert.equal(rig.count('grant'), 1);
  rig.pass(200);
  assert.equal(rig.count('grant'), 2);
});
