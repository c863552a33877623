import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';

import { Client, type ClientOptions, segmentTag } from '../src/index.js';
import { FakeServer, type Request } from './fake_server.js';

const GENEROUS: ClientOptions = { deadlineMs: 20_000, attemptLimitMs: 10_000 };

async function using(options: ClientOptions, count: number,
                     body: (client: Client, ...servers: FakeServer[]) => Promise<void>): Promise<void> {
  const servers = await Promise.all(Array.from({ length: count }, () => new FakeServer().start()));
  const client = new Client(`list://${servers.map((one) => one.address).join()}`, { ...GENEROUS, ...options });
  try {
    await body(client, ...servers);
  } finally {
    client.close();
    await Promise.all(servers.map((one) => one.close()));
  }
}

/** Blocks the event loop, as a program with a long computation does. */
function block(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test('sends the requests of one turn in one write, on one connection', () => using({}, 1, async (client, server) => {
  await client.nextId('order');
  const before = server!.chunks;
  const ids = await Promise.all(Array.from({ length: 100 }, () => client.nextId('order')));
  assert.equal(new Set(ids).size, 100);
  assert.equal(server!.chunks - before, 1);
  assert.equal(server!.sockets.size, 1);
}));

test('a busy event loop causes no timeout', () =>
  using({ deadlineMs: 1500, attemptLimitMs: 1000 }, 1, async (client, server) => {
    for (let i = 0; i < 2; i++) {
      server!.answers = (request) => {
        server!.give(request); // the answer arrives, and the process is busy
        block(2000);
      };
      assert(await client.nextId('order') > 0n);
    }
    assert.equal(client.counters().timeouts, 0);
  }));

test('the turn that begins calls uses up neither their time nor that of an attempt', () =>
  using({ deadlineMs: 1500, attemptLimitMs: 1000 }, 2, async (client) => {
    for (let i = 0; i < 2; i++) {
      const calls = Array.from({ length: 50 }, () => client.nextId('order'));
      block(2000); // nothing is sent before the turn ends
      assert.equal(new Set(await Promise.all(calls)).size, 50);
    }
    assert.equal(client.counters().retries, 0);
  }));

test('an aborted call is rejected with the reason of its signal', () => using({}, 1, async (client, server) => {
  server!.answers = () => undefined;
  const controller = new AbortController();
  const call = client.nextId('order', { signal: controller.signal });
  setImmediate(() => controller.abort(new Error('the page was closed')));
  await assert.rejects(call, /the page was closed/);
  await assert.rejects(client.nextId('order', { signal: controller.signal }), /the page was closed/);
  await assert.rejects(client.nextId('order', { signal: AbortSignal.abort() }), { name: 'AbortError' });
  server!.answers = (request) => server!.give(request);
  for (const request of server!.requests) server!.give(request); // the late answer
  assert(await client.nextId('order') > 0n);
  assert.equal(server!.sockets.size, 1, 'the connection continues');
}));

test('late answers are taken while others arrive, and a server with many is ejected', async () => {
  const events: string[] = [];
  await using({ attemptLimitMs: 500, onEvent: (event) => events.push(event.kind) }, 1, async (client, server) => {
    while (await client.nextId('order').then(() => false, () => true)); // the connection is open
    const held: Request[] = [];
    server!.answers = (request) => held.push(request);
    for (let round = client.counters().timeouts + 1; !events.includes('unhealthy'); round++) {
      assert(round <= 20);
      // One answer in time, and one late.
      const calls = [client.nextId('order'), client.nextId('order')];
      while (held.length < 2) await new Promise(setImmediate);
      server!.give(held.shift()!);
      while (client.counters().timeouts < round) await new Promise(setImmediate);
      server!.give(held.shift()!);
      const [first, second] = await Promise.all(calls);
      assert.notEqual(first, second);
    }
    assert.equal(server!.sockets.size, 1, 'the connection stays open');
  });
  assert.deepEqual(events, ['unhealthy']);
});

test('calls that time out together blame their server once', () =>
  using({ attemptLimitMs: 2_000 }, 2, async (client, slow, quick) => {
    while (slow!.requests.length === 0 || quick!.requests.length === 0) await client.nextId('order');
    const answered = slow!.requests.length;
    slow!.answers = (request) => { // answers one call, so that the connection is not silent
      if (slow!.requests.length === answered + 1) slow!.give(request);
    };
    const ids = await Promise.all(Array.from({ length: 1_000 }, () => client.nextId('order')));
    assert.equal(new Set(ids).size, 1_000);
    const { retriesDenied, timeouts } = client.counters();
    const late = slow!.requests.length - answered - 1;
    assert(late > 250, `${late}`); // more than the retry budget
    assert(timeouts < late / 4, `${timeouts} of ${late}`);
    assert.equal(retriesDenied, 0);
  }));

test('prefetched ids come without a promise, and many at once', () =>
  using({ localRanges: [segmentTag('count')] }, 1, async (client, server) => {
    assert.equal(client.tryNextId('count'), undefined);
    assert.equal(client.tryNextId('other'), undefined);
    const first = await client.nextId('count');
    const ids = [first, client.tryNextId('count')!, ...await client.nextIds('count', 10)];
    assert.equal(new Set(ids).size, 12);
    assert(server!.requests.every((one) => one.method === 'getRuns'));
    assert(client.counters().localTaken >= 11);
  }));

test('refuses arguments that no server accepts, before anything is sent', () => using({}, 1, async (client, server) => {
  const refused = { kind: 'refused', reason: 'BAD_REQUEST' };
  await assert.rejects(client.nextIds('order', 0), refused);
  await assert.rejects(client.nextIds('order', 1.5), refused);
  await assert.rejects(client.nextIds('order', 100_001), refused);
  await assert.rejects(client.nextId('ü'.repeat(65)), refused);
  await assert.rejects(client.nextId('order', { deadlineMs: -1 }), refused);
  for (const tag of [['a', 'b'], 5, null, Symbol('a')]) await assert.rejects(client.nextId(tag as unknown as string), refused);
  assert.equal(server!.requests.length, 0);
}));

test('a block that declares the client by `using` closes it', () => using({}, 1, async (client) => {
  client[Symbol.dispose]();
  await assert.rejects(client.nextId('order'), { kind: 'closed' });
}));

test('close ends calls in progress and later ones', () => using({}, 2, async (client, ...servers) => {
  for (const server of servers) server.answers = () => undefined;
  const call = client.nextId('order');
  while (servers.every((one) => one.requests.length === 0)) await new Promise(setImmediate);
  client.close();
  await assert.rejects(call, { kind: 'closed' });
  await assert.rejects(client.nextId('order'), { kind: 'closed' });
  await Promise.all(servers.flatMap((one) => [...one.sockets].map((socket) => once(socket, 'close'))));
}));

test('a client that is not closed does not keep the process alive', async () => {
  const server = await new FakeServer().start();
  const index = new URL('../src/index.js', import.meta.url).href;
  const program = `import { Client, segmentTag } from '${index}';
    const client = new Client('firn://' + process.argv[1], { localRanges: [segmentTag('count')] });
    console.log(await client.nextId('order', { deadlineMs: 20000 }) > 0n);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, server.address],
                      { stdio: ['ignore', 'pipe', 'inherit'], timeout: 60_000 });
  let said = '';
  child.stdout.on('data', (chunk) => (said += String(chunk)));
  const [code] = await once(child, 'exit') as [number];
  assert.deepEqual([code, said], [0, 'true\n']);
  await server.close();
});
