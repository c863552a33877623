// What a lessee does when the wall clock jumps.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FirnError } from '../src/errors.js';
import { EPOCH_MS, lease, NOON_MS, Rig, tickOf } from './lease_rig.js';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const SERVER = '10.0.0.7:7609';

function leased(): Rig {
  const rig = new Rig();
  rig.hold();
  return rig;
}

function renewed(rig: Rig): void {
  const extended = lease(7, NOON_MS, rig.clock.wallMs() + 60 * SECOND, { renewInMs: 20 * SECOND });
  rig.answer('renewal', { kind: 'lease', server: SERVER, lease: extended });
}

function takesAnIdOfNow(rig: Rig): void {
  assert.equal(tickOf(rig.take(1)[0]!), rig.clock.wallMs() - EPOCH_MS);
}

// The monotonic clock lacks the time for which the machine was suspended.
test('a renewal confirms a jump at once', () => {
  const rig = leased();
  rig.pass(SECOND);
  rig.clock.step(HOUR);
  rig.assertNone(/the wall clock has jumped forward by 3600 s, and no server has confirmed it/);
  rig.tick();
  assert.equal(rig.count('renewal'), 1);
  assert.equal(rig.newest('renewal').clockMs, NOON_MS + HOUR + SECOND);
  renewed(rig);
  takesAnIdOfNow(rig);
  rig.pass(SECOND);
  assert.equal(rig.count('renewal'), 1);
});

test('a request from before a jump confirms nothing', () => {
  for (const firstIsLost of [false, true]) {
    const rig = leased();
    rig.pass(20 * SECOND);
    assert.equal(rig.count('renewal'), 1);
    if (firstIsLost) {
      rig.noAnswer('renewal', SERVER);
      rig.clock.step(HOUR);
      rig.tick(); // the server may have received only the first sending
      assert.equal(rig.count('renewal'), 2);
    } else {
      rig.clock.step(HOUR);
    }
    renewed(rig);
    rig.assertNone(/jumped/);
    const sent = rig.count('renewal');
    rig.pass(99);
    assert.equal(rig.count('renewal'), sent);
    rig.pass(1);
    assert.equal(rig.count('renewal'), sent + 1);
    renewed(rig);
    takesAnIdOfNow(rig);
  }
});

test('a jump that servers refuse is not followed', () => {
  const rig = leased();
  rig.pass(SECOND);
  rig.clock.step(HOUR);
  rig.tick();
  const message = "the program's clock is 1 h ahead of the server's";
  for (let times = 1; times < 30; times++) {
    assert.equal(rig.count('renewal'), times);
    rig.answer('renewal', { kind: 'refused', server: SERVER, message, failure: new FirnError('refused', message) });
    rig.assertNone(/jumped/);
    if (times === 29) rig.clock.step(-HOUR);
    rig.pass(2 * SECOND);
  }
  renewed(rig);
  takesAnIdOfNow(rig);
});

// The machine was suspended for longer than the lease.
test('a grant confirms a jump', () => {
  const rig = leased();
  rig.pass(2 * SECOND);
  rig.clock.step(HOUR);
  rig.tick();
  rig.answer('renewal', { kind: 'unknown', server: SERVER, message: '' });
  assert.equal(rig.count('grant'), 2);
  const { wallMs } = rig.clock.now;
  const granted = lease(8, wallMs - HOUR, wallMs + 60 * SECOND);
  rig.answer('grant', { kind: 'lease', server: granted.server, lease: granted });
  takesAnIdOfNow(rig);
});
