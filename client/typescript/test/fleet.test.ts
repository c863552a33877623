import assert from 'node:assert/strict';
import { test } from 'node:test';

import { lessBusy, subsetOf } from '../src/choice.js';
import { failed } from '../src/errors.js';
import { HealthRules } from '../src/health_rules.js';
import { Fleet } from '../src/fleet.js';
import { Backoff, RetryBudget } from '../src/health.js';
import { settingsOf } from '../src/options.js';
import { Server } from '../src/server.js';

const addresses = (count: number): string[] => Array.from({ length: count }, (_, at) => `10.0.0.${at + 1}:7609`);

function world(count: number): { fleet: Fleet; rules: HealthRules; servers: Server[] } {
  const fleet = new Fleet(settingsOf(`list://${addresses(count).join()}`, {}));
  return { fleet, rules: new HealthRules(fleet, () => undefined), servers: [...fleet.servers.values()] };
}

const standing = (fleet: Fleet, now: number): string[] => fleet.view(now).map((one) => one.health);

test('ejects a server after three failures, and never more than half', () => {
  const { fleet, rules, servers } = world(4);
  for (const server of servers) {
    for (let i = 0; i < 3; i++) rules.failed(server, 'order', failed('timeout', ''), 0);
  }
  assert.deepEqual(standing(fleet, 1), ['ejected', 'ejected', 'failing', 'failing']);
});

test('a connect timeout counts twice', () => {
  const { fleet, rules, servers } = world(3);
  for (let i = 0; i < 2; i++) rules.failed(servers[0]!, 'order', failed('connect timeout', ''), 0);
  assert.deepEqual(standing(fleet, 1), ['ejected', 'healthy', 'healthy']);
});

test('calls a server last for the tag that it does not issue', () => {
  const { fleet, rules, servers } = world(2);
  rules.failed(servers[0]!, 'count', failed('refused', '', 'STORE_DOWN'), 0);
  for (let i = 0; i < 50; i++) assert.equal(fleet.pick('count', [], 1), servers[1]);
  const picked = new Set(Array.from({ length: 100 }, () => fleet.pick('order', [], 1)));
  assert.equal(picked.size, 2);
  assert.equal(fleet.pick('count', [servers[1]!], 1), servers[0], 'when no other server is left');
});

test('quarantines a server, and calls it only while fewer than half are healthy', () => {
  const { fleet, rules, servers } = world(3);
  rules.failed(servers[0]!, '', failed('broken', ''), 0);
  assert.deepEqual(standing(fleet, 1), ['quarantined', 'healthy', 'healthy']);
  assert.equal(fleet.pick('', [servers[1]!, servers[2]!], 1), undefined);
  for (let i = 0; i < 3; i++) rules.failed(servers[1]!, '', failed('timeout', ''), 1);
  assert.equal(fleet.pick('', [servers[1]!, servers[2]!], 2), servers[0]);
});

test('never calls a foreign server', () => {
  const { fleet, rules, servers } = world(1);
  rules.failed(servers[0]!, '', failed('wrong service', ''), 0);
  assert.equal(fleet.pick('', [], 1), undefined);
});

test('a failed connection begins a backoff', () => {
  const { fleet, rules, servers } = world(1);
  rules.dialled(servers[0]!, false, 0);
  assert.equal(fleet.pick('', [], 1), undefined);
  const until = fleet.pausedUntil([], 1);
  assert(until > 1 && until <= 10, `${until}`);
  assert.equal(fleet.pick('', [], until), servers[0]);
});

test('the subset of a large cluster changes by one server when one leaves', () => {
  const servers = addresses(40).map((address) => new Server(address, false));
  const before = subsetOf(servers, 'name', 16, undefined);
  assert.equal(before.length, 16);
  const gone = before[3]!;
  const after = subsetOf(servers.filter((one) => one !== gone), 'name', 16, undefined);
  assert.equal(after.filter((one) => before.includes(one)).length, 15);
  assert.notDeepEqual(subsetOf(servers, 'another', 16, undefined), before);
});

test('a quarter of the subset is outside the rack', () => {
  const servers = addresses(40).map((address) => new Server(address, false));
  servers.forEach((one, at) => (one.rack = at < 20 ? 1 : 2));
  const subset = subsetOf(servers, 'name', 16, 1);
  assert.equal(subset.filter((one) => one.rack === 1).length, 12);
  servers.forEach((one, at) => (one.rack = at < 5 ? 1 : 2));
  assert.equal(subsetOf(servers, 'name', 16, 1).length, 16);
});

test('picks the less busy of two', () => {
  const [busy, idle] = addresses(2).map((address) => new Server(address, false));
  busy!.inFlight = 10;
  for (let i = 0; i < 20; i++) assert.equal(lessBusy([busy!, idle!]), idle);
});

test('limits retries to a fifth of the calls, 10 a second, and 200 for bursts', () => {
  const budget = new RetryBudget();
  const taken = (now: number): number => {
    let count = 0;
    while (budget.take(now)) count++;
    return count;
  };
  assert.equal(taken(0), 200);
  assert.equal(taken(1000), 10);
  for (let i = 0; i < 100; i++) budget.callBegins();
  assert(Math.abs(taken(1000) - 20) <= 1);
});

test('a backoff doubles, is drawn from the upper half, and starts again', () => {
  const backoff = new Backoff();
  for (const [now, length] of [[0, 10], [20, 20], [60, 40], [100, 40], [1000, 10]] as const) {
    const drawn = backoff.next(now, 10, 40);
    assert(drawn >= length / 2 && drawn <= length, `${drawn} of ${length}`);
  }
});
