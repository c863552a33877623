import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Registry } from 'prom-client';

import { Client } from '../src/index.js';
import { collectMetrics } from '../src/prometheus.js';
import { FakeServer } from './fake_server.js';

test('shows the counters and servers of each client', async (t) => {
  const server = await new FakeServer().start();
  t.after(() => server.close());
  const registry = new Registry();
  const clients = ['a', 'b'].map(() =>
    new Client(`list://${server.address}`, { deadlineMs: 20_000, attemptLimitMs: 10_000 }));
  t.after(() => clients.forEach((client) => client.close()));
  const remove = clients.map((client, at) => collectMetrics(client, { registry, client: 'ab'[at]! }));
  for (let i = 0; i < 3; i++) await clients[0]!.nextId('order');
  for (let i = 0; i < 2; i++) { // a second collection does not add to the first
    const text = await registry.metrics();
    assert.match(text, /^firn_client_calls_total\{client="a"\} 3$/m);
    assert.match(text, /^firn_client_calls_total\{client="b"\} 0$/m);
    assert.match(text, /^firn_client_servers\{client="a",health="healthy"\} 1$/m);
  }
  remove[1]!();
  assert.doesNotMatch(await registry.metrics(), /client="b"/);
});
