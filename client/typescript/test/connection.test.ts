import assert from 'node:assert/strict';
import { test } from 'node:test';

import { type Answered, type Ask, askId } from '../src/asks.js';
import { Type } from '../src/codec.js';
import { Connection, type Pending } from '../src/connection.js';
import { Names } from '../src/dial.js';
import { answer, FakeServer, i64, type Request } from './fake_server.js';

test('an answer to a request that is not written yet breaks the connection', async () => {
  const server = await new FakeServer().start();
  server.answers = (request) => { // also answers the next request, in the same write
    const next = { ...request, sequence: request.sequence + 1 };
    request.socket.write(Buffer.concat([answer(request, Type.I64, i64(1n)), answer(next, Type.I64, i64(2n))]));
  };
  let unasked = 0;
  const connection = new Connection({ address: server.address, spoke: false }, undefined, {
    names: new Names(), attemptLimitMs: 10_000, admit: () => undefined, opened: () => undefined,
    unasked: () => void unasked++, closedBy: () => undefined,
  });
  const pending = (ended: (outcome: Answered<unknown>) => void): Pending =>
    ({ ask: askId('count') as Ask<unknown>, abandoned: false, ended, isLate: () => false });
  const second = await new Promise<Answered<unknown>>((resolve) => {
    connection.send(pending(() => connection.send(pending(resolve), performance.now())), performance.now());
    connection.open();
  });
  assert('failure' in second && second.failure.end === 'closed', JSON.stringify(second, (_, value) => String(value)));
  assert.equal(unasked, 1);
  await new Promise(setImmediate); // a fault in what the turn has left to do would end the process
  await server.close();
});

test('requests behind one that was reported late count as lost', async (context) => {
  const server = await new FakeServer().start();
  context.after(() => server.close());
  const held: Request[] = [];
  server.answers = (request) => held.push(request);
  const connection = new Connection({ address: server.address, spoke: false }, undefined, {
    names: new Names(), attemptLimitMs: 10_000, admit: () => undefined, opened: () => undefined,
    unasked: () => undefined, closedBy: () => undefined,
  });
  let late = 0;
  const send = (): Promise<Answered<unknown>> => new Promise((ended) => {
    const isLate = (): boolean => ++late > 0;
    connection.send({ ask: askId('count') as Ask<unknown>, abandoned: false, ended, isLate }, performance.now());
  });
  const [answered, first] = [send(), send()];
  connection.open();
  while (held.length < 2) await new Promise(setImmediate);
  await new Promise((resolve) => setTimeout(resolve, 5_000)); // half of an attempt's time
  server.give(held[0]!);
  await answered;
  const ends = await Promise.all([first, send(), send()]);
  assert.equal(late, 1);
  assert.deepEqual(ends.map((end) => 'failure' in end && end.failure.shared), [true, false, false]);
});
