import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';

import { Type } from '../src/codec.js';
import { Engine } from '../src/engine.js';
import { Client, type LocalGeneratorOptions } from '../src/index.js';
import type { LeaseOutcome } from '../src/lease_request.js';
import { LeaseTransport } from '../src/lease_transport.js';
import { settingsOf } from '../src/options.js';
import { answer, FakeServer, field, i32, i64, type Request, result, text } from './fake_server.js';
import { EPOCH_MS, machineOf } from './lease_player.js';

const NAME = { name: 'checkout-7f9c' };

function terms(machine: number, server: string, lastsMs: number): Buffer {
  const now = BigInt(Date.now() - EPOCH_MS);
  return Buffer.concat([
    field(Type.STRING, 1, text(`lease-${machine}`)), field(Type.I64, 2, i64(1n)), field(Type.I32, 3, i32(machine)),
    field(Type.I64, 6, i64(BigInt(machine) << 12n)), field(Type.I32, 7, i32(22)), field(Type.I32, 9, i32(12)),
    field(Type.I64, 11, i64(4096n)), field(Type.I32, 12, i32(1)), field(Type.I64, 13, i64(BigInt(EPOCH_MS))),
    field(Type.I64, 14, i64(now - 1_000n)), field(Type.I64, 15, i64(now + BigInt(lastsMs))),
    field(Type.I32, 16, i32(100)), field(Type.STRING, 18, text(server)), Buffer.from([0]),
  ]);
}

function refusal(request: Request, fault: number, message: string, server = ''): Buffer {
  const fields = [field(Type.I32, 1, i32(fault)), field(Type.STRING, 2, text(message))];
  if (server) fields.push(field(Type.STRING, 3, text(server)));
  return result(request, field(Type.STRUCT, 2, Buffer.concat([...fields, Buffer.from([0])])));
}

/** Sends an answer. */
function send(request: Request, bytes: Buffer): true {
  request.socket.write(bytes);
  return true;
}

/** Answers requests for leases, and counts all requests. */
class Landlord {
  readonly asked: string[] = [];
  lastsMs = 60_000;
  /** Answers a request instead, if it returns true. */
  instead: (request: Request) => boolean = () => false;

  constructor(readonly server: FakeServer, machine: number) {
    const { address } = server;
    server.answers = (request) => {
      this.asked.push(request.method);
      if (this.instead(request)) return;
      const { socket } = request;
      if (request.method === 'releaseLease') socket.write(result(request, Buffer.alloc(0)));
      else if (!request.method.endsWith('ease')) server.give(request);
      else socket.write(answer(request, Type.STRUCT, terms(machine, address, this.lastsMs)));
    };
  }

  count(method: string): number {
    return this.asked.filter((one) => one === method).length;
  }
}

async function using(count: number, body: (client: Client, ...of: Landlord[]) => Promise<void>): Promise<void> {
  const servers = await Promise.all(Array.from({ length: count }, () => new FakeServer().start()));
  const client = new Client(`list://${servers.map((one) => one.address).join()}`,
                            { deadlineMs: 20_000, attemptLimitMs: 10_000 });
  try {
    await body(client, ...servers.map((one, at) => new Landlord(one, 7 + at)));
  } finally {
    client.close();
    await Promise.all(servers.map((one) => one.close()));
  }
}

/** `renew` sends a renewal. A lease was granted before. */
async function usingTransport(body: (landlord: Landlord, renew: () => Promise<LeaseOutcome>) => Promise<void>): Promise<void> {
  await using(1, async (_, landlord) => {
    const { address } = landlord.server;
    const engine = new Engine(settingsOf(`list://${address}`, {}));
    const transport = new LeaseTransport(engine, { name: 'checkout-7f9c', rack: undefined, aheadMs: 60_000 });
    const common = { server: address, clockMs: Date.now() };
    try {
      const granted = await transport.send({ ...common, kind: 'grant', avoid: [], token: 'a token' });
      assert.equal(granted.kind, 'lease');
      await body(landlord, () => transport.send({ ...common, kind: 'renewal', lease: 'lease-7', turn: 'b', acknowledged: 'a' }));
    } finally {
      transport.close();
      engine.close();
    }
  });
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let i = 0; !holds(); i++) {
    assert(i < 2_000, what);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test('makes ids from memory, renews, and releases its lease', () => using(1, async (client, landlord) => {
  const generator = await client.localGenerator(NAME);
  const ids = Array.from({ length: 20_000 }, () => generator.next());
  assert.equal(new Set(ids).size, ids.length);
  assert(ids.every((id, at) => machineOf(id) === 7 && (at === 0 || id > ids[at - 1]!)));
  assert.equal(generator.machineId(), 7);
  const first = generator.until()!;
  await until('no renewal', () => generator.until()! > first);
  await generator.close();
  assert.equal(landlord.count('releaseLease'), 1);
  assert.throws(() => generator.next(), { kind: 'closed', message: 'the generator was closed' });
  assert.equal(generator.machineId(), undefined);
  assert.equal(generator.until(), undefined);
  await generator.close(); // again
  assert(await client.nextId('order') > 0n);
}));

test('renewals keep their connection', () => usingTransport(async (landlord, renew) => {
  landlord.server.refuseConnections();
  for (let i = 0; i < 3; i++) assert.equal((await renew()).kind, 'lease');
}));

test('a renewal replaces a connection that the server closed', () => usingTransport(async (landlord, renew) => {
  landlord.server.dropConnections();
  await until('not closed', () => landlord.server.sockets.size === 0);
  assert.equal((await renew()).kind, 'lease');
  let closed = 0;
  landlord.instead = ({ socket }) => closed++ === 0 && !!socket.destroy(); // before the client has seen the end
  assert.equal((await renew()).kind, 'lease');
  assert.equal(closed, 2);
}));

test('a renewal without an answer closes its connection in time', () => usingTransport(async (landlord, renew) => {
  landlord.instead = () => true;
  const began = performance.now();
  assert.equal((await renew()).kind, 'no answer');
  assert(performance.now() - began < 5_000);
  await until('not closed', () => landlord.server.sockets.size === 0);
}));

test('an error says that a blocked event loop prevents renewals', () =>
  using(1, async (client, landlord) => {
    landlord.lastsMs = 4_000;
    const generator = await client.localGenerator(NAME);
    assert.throws(() => {
      for (;;) generator.next();
    }, { kind: 'no lease', message: /ended at .*: the program has blocked its event loop for \d+\.\d s, so no renewal was sent/ });
    await until('no renewal', () => {
      try {
        return generator.next() > 0n;
      } catch {
        return false;
      }
    });
    await generator.close();
  }));

test('calls for ids do not wait for a lease', () => using(1, async (client, landlord) => {
  landlord.instead = (request) => request.method === 'lease';
  const generator = client.localGenerator({ ...NAME, timeoutMs: 300 });
  await until('no request', () => landlord.count('lease') > 0);
  assert(await client.nextId('order') > 0n);
  await assert.rejects(generator, { kind: 'no lease', message: /no server has granted a lease within 300 ms/ });
}));

test('asks another server when one is too old, grants none, or does not have the lease', () =>
  using(3, async (client, old, poor, good) => {
    old.instead = (request) => {
      const frame = result(request, Buffer.concat([field(Type.STRING, 1, text('Unknown')), field(Type.I32, 2, i32(1))]));
      frame[7] = 3; // an exception
      return send(request, frame);
    };
    poor.instead = (request) => send(request, refusal(request, 5, 'this server grants no leases'));
    const generator = await client.localGenerator(NAME);
    assert.equal(generator.machineId(), 9);
    await generator.close();
    good.instead = (request) => request.method === 'releaseLease' &&
      send(request, refusal(request, 4, 'it moved', old.server.address));
    const other = await client.localGenerator(NAME);
    const before = old.count('releaseLease');
    await other.close();
    assert.equal(old.count('releaseLease'), before + 1);
  }));

test('gives back a lease that cannot be used, and asks another server', () => using(2, async (client, ...landlords) => {
  let refused = 0;
  for (const one of landlords) {
    one.instead = (request) => request.method === 'lease' && refused++ === 0 &&
      send(request, answer(request, Type.STRUCT, terms(5_000, one.server.address, 60_000))); // its machine id is too large
  }
  const generator = await client.localGenerator(NAME);
  await until('not given back', () => landlords.some((one) => one.count('releaseLease') > 0));
  await generator.close();
  assert.equal(landlords[0]!.count('lease') + landlords[1]!.count('lease'), 2);
}));

test('repeats a renewal that was answered with unusable terms', () => using(2, async (client, ...landlords) => {
  const generator = await client.localGenerator(NAME);
  for (const one of landlords) {
    one.instead = (request) => request.method === 'renewLease' &&
      send(request, answer(request, Type.STRUCT, terms(5_000, one.server.address, 60_000)));
  }
  const before = landlords[0]!.count('renewLease') + landlords[1]!.count('renewLease');
  await until('not repeated', () => landlords[0]!.count('renewLease') + landlords[1]!.count('renewLease') > before + 1);
  assert.equal(landlords[0]!.count('lease') + landlords[1]!.count('lease'), 1);
  await generator.close();
}));

test('stops at once when the lease is revoked, and calls onLost, whose exceptions are ignored', () =>
  using(2, async (client, ...landlords) => {
    const lost: string[] = [];
    const options: LocalGeneratorOptions = {
      ...NAME,
      onLost: (loss) => {
        lost.push(`${loss.kind} ${loss.reason}`);
        throw new Error('the program fails');
      },
    };
    const generator = await client.localGenerator(options);
    for (const one of landlords) {
      one.instead = (request) => request.method !== 'getId' && send(request, refusal(request, 3, 'a copy renewed it'));
    }
    await until('not lost', () => lost.length > 0);
    assert.match(lost[0]!, /^revoked 127\.0\.0\.1:\d+ REVOKED: a copy renewed it$/);
    assert.throws(() => generator.next(), { kind: 'no lease', message: /was revoked at .* UTC: .*a copy renewed it/ });
    for (const one of landlords) one.instead = () => false;
    await until('no other lease', () => generator.machineId() !== undefined);
    generator.next();
    await generator.close();
  }));

test('close waits at most a second for a server that does not answer', () => using(1, async (client, landlord) => {
  const generator = await client.localGenerator(NAME);
  landlord.instead = (request) => request.method === 'releaseLease';
  await generator.close();
  assert.equal(landlord.count('releaseLease'), 1);
}));

test('the end of the client ends its generators', () => using(1, async (client) => {
  const generator = await client.localGenerator(NAME);
  client.close();
  assert.throws(() => generator.next(), { kind: 'closed', message: 'the client of this generator was closed' });
  await generator.close();
  await assert.rejects(client.localGenerator(NAME), { kind: 'closed' });
}));

test('a refusal that no server would withdraw ends the opening', () => using(1, async (client, landlord) => {
  landlord.instead = (request) => send(request, result(request, field(Type.STRUCT, 1, Buffer.concat([
    field(Type.I32, 1, i32(8)), field(Type.STRING, 2, text('no name of this client has the right @lease')), Buffer.from([0]),
  ]))));
  await assert.rejects(client.localGenerator(NAME), { kind: 'refused', reason: 'REJECTED', message: /the right @lease/ });
}));

test('every fault of the options is named', () => using(1, async (client) => {
  await assert.rejects(client.localGenerator({ name: 'a b', rack: -1, aheadMs: 2_000.5 }),
                       { kind: 'invalid', message: /name is 'a b'.*; rack is -1.*; aheadMs is 2000\.5/ });
  for (const [options, message] of [
    [{ aheadMs: 1_999 }, /aheadMs is 1999, not an integer from 2000 to 86400000/], [{ aheadMs: 86_400_001 }, /aheadMs/],
    [{ name: '' }, /name is ''/], [{ name: 'a'.repeat(65) }, /name is 'a/], [{ name: 'ü' }, /name/], [{ name: 'a\n' }, /name/],
  ] as const) {
    await assert.rejects(client.localGenerator({ ...NAME, ...options }), { kind: 'invalid', message });
  }
}));

test('a generator that is not closed does not keep the process alive', () => using(1, async (_, landlord) => {
  const index = new URL('../src/index.js', import.meta.url);
  const program = `import { Client } from '${index}';
    const generator = await new Client('list://${landlord.server.address}').localGenerator({ name: 'quiet' });
    console.log(String(generator.next()));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (chunk) => (said += String(chunk)));
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
  assert.match(said, /^\d+\n$/);
}));
