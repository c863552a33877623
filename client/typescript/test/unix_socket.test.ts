// Unix sockets of servers in this process; tests/conformance/unix_socket_test.py has real ones.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { test } from 'node:test';

import { ServerState } from '../src/asks.js';
import { Fleet } from '../src/fleet.js';
import { Client, type ClientOptions, FirnError } from '../src/index.js';
import { settingsOf } from '../src/options.js';
import { FakeServer } from './fake_server.js';

const GENEROUS: ClientOptions = { deadlineMs: 20_000, attemptLimitMs: 10_000 };

async function withPath(body: (file: string) => Promise<void>): Promise<void> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'firn-'));
  try {
    await body(path.join(folder, 'firn.sock'));
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

async function take(client: Client, count: number): Promise<void> {
  const ids = new Set<bigint>();
  for (let i = 0; i < count; i++) ids.add(await client.nextId('order'));
  assert.equal(ids.size, count);
}

test('takes ids over a Unix socket without TLS', () => withPath(async (file) => {
  const server = await new FakeServer().start(file);
  const client = new Client(`list://${server.address}`, { ...GENEROUS, tls: { ca: '/nowhere/ca.pem' } });
  try {
    await take(client, 10);
    assert.deepEqual(client.servers().map((one) => one.address), [`unix:${file}`]);
  } finally {
    client.close();
    await server.close();
  }
}));

test('a missing Unix socket is unreachable', () => withPath(async (file) => {
  const client = new Client(`list://unix:${file}`, { deadlineMs: 100 });
  try {
    await assert.rejects(client.nextId('order'), (fault) => {
      assert(fault instanceof FirnError);
      assert.equal(fault.kind, 'unavailable');
      assert(fault.attempts.some((one) => one.server === `unix:${file}` && one.end === 'unreachable'));
      return true;
    });
  } finally {
    client.close();
  }
}));

test('ignores Unix sockets in the list of servers', () => {
  const [seed, other, listed] = ['unix:/run/firn.sock', 'unix:/run/other.sock', '10.0.0.1:7609'] as const;
  const fleet = new Fleet(settingsOf(`firn://${seed}`, { tls: {} }));
  const servers = [listed, seed, other].map((address) => (
    { address, rack: 0, weight: 100, online: true, state: ServerState.READY, tls: false }));
  fleet.apply({ version: 1n, servers, askAgainMs: 0 }, fleet.servers.get(seed)!);
  assert.deepEqual([...fleet.servers.keys()], [listed, seed]);
  assert.equal(fleet.servers.get(seed)!.lastResort, true);
  assert.deepEqual([listed, seed].map((one) => fleet.servers.get(one)!.tls), [true, false]);
});
