// Plays the tables of lessees that the generators of all languages share, and tests what only this one has.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { FirnError } from '../src/errors.js';
import { type Case, NOON_MS, Player } from './lease_player.js';

const path = process.env['FIRN_FRAMES'] ?? '../../tests/contract/frames.json';
for (const [name, least] of [['lessees.json', 60], ['jumps.json', 10]] as const) {
  const { cases } = JSON.parse(readFileSync(join(dirname(path), name), 'utf8')) as { cases: Case[] };
  assert(cases.length >= least);
  for (const one of cases) test(one.case, () => void new Player(one).play(...one.steps));
}

test('has one renewal under way', () => {
  const player = new Player().play('lease', 'pass 38000');
  assert.equal(player.waiting.length, 1);
});

test('ignores the answer to a request that is no longer needed', () => {
  const player = new Player().play('lease', 'pass 20000');
  const [number] = player.waiting[0]!;
  player.play('answer revoked');
  player.lessee.onReply(number, { kind: 'released', server: 'a:1' }, player.clock.now);
  player.assertNone(/was revoked/);
});

test('reports losses and refusals with their reasons', () => {
  const player = new Player().play('pass 0', 'answer terms:spoilt=overlap', 'reply grant terms', 'pass 2000', 'reply release released',
                                   'reply renewal revoked', 'pass 20000');
  assert.deepEqual(player.losses, [{ kind: 'revoked', machineId: 8, reason: 'revoked' }]);
  assert.deepEqual(player.refusals, ['its fields overlap']);
});

test('gives back terms with any invalid field', () => {
  for (const [fromTick, usedTick] of [[100, 99], [-5, -1], [2 ** 62, -1]] as const) {
    for (const [endMs, lastMs] of [[NOON_MS + 15_000, 15_000], [-(2 ** 94), 60_000], [2 ** 94, 60_000]] as const) {
      const player = new Player();
      player.turn();
      player.give({ kind: 'unusable', server: 'a:1', message: '', terms: { id: 'lease-9', server: 'a:1', fromTick, endMs } });
      player.lessee.stop(player.clock.now, () => new FirnError('closed', ''));
      const [, release] = player.waiting.at(-1)!;
      assert(release.kind === 'release');
      assert.deepEqual([release.lease, release.turn, release.usedTick], ['lease-9', '', usedTick]);
      player.clock.advance(lastMs - 1);
      player.lessee.tick(player.clock.now);
      assert(!player.lessee.stopped);
      player.clock.advance(1);
      player.lessee.tick(player.clock.now);
      assert(player.lessee.stopped);
    }
  }
});

// The clock of one server is wrong, for instance.
test('reports a refusal as final only if all servers refuse', () => {
  const round = (...answers: string[]): number => {
    const player = new Player().play('pass 0');
    for (const one of answers) player.play(`answer ${one}`, 'pass 0');
    return player.play('pass 3000').finals.length;
  };
  assert.equal(round('refused', 'none'), 1);
  assert.equal(round('refused', 'refused'), 1);
  assert.equal(round('refused', 'unreachable'), 0);
  assert.equal(round('refused', 'terms'), 0);
});
