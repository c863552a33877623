// Ids a second of the TypeScript client and of a bare stub: see ../../rates.py.
//
// The stub is a socket with the client's codec, and nothing else: no deadline, no check of the ids.

import { once } from 'node:events';
import * as net from 'node:net';

import { Client, type ClientOptions, type LocalTag, segmentTag, snowflakeTag } from 'firn-client';

// Internal modules, in the folder in which ../../builds.py builds the client.
import { type Ask, askId, askIds, readAnswer, writeAsk } from '../client/typescript/dist/esm/asks.js';
import { FrameSplitter, FrameWriter } from '../client/typescript/dist/esm/codec.js';

const BATCH = 100;
const BUNCH = 50;
const [address, seconds, threads] = [process.argv[2]!, Number(process.argv[3]), Number(process.argv[4])];
const LIMITS: ClientOptions = { deadlineMs: 30_000, attemptLimitMs: 10_000 };

type Call = () => unknown;

async function bare<T>(ask: Ask<T>): Promise<() => Promise<T>> {
  const [host, port] = address.split(':');
  const socket = net.connect({ host: host!, port: Number(port), noDelay: true });
  await once(socket, 'connect');
  const out = new FrameWriter();
  const splitter = new FrameSplitter();
  let sequence = 0;
  let answered: ((answer: T) => void) | undefined;
  socket.on('data', (chunk) => splitter.receive(chunk, (frame) => {
    const outcome = readAnswer(ask, sequence, frame);
    if (!('answer' in outcome)) throw new Error(outcome.failure.detail);
    answered!(outcome.answer);
    return true;
  }));
  return () => new Promise<T>((resolve) => {
    answered = resolve;
    writeAsk(ask, ++sequence, out);
    socket.write(out.written());
    out.clear(true);
  });
}

/** Calls a second, after a warm-up, of loops that each call what `make` gives them. */
async function measured(make: () => Promise<Call> | Call): Promise<number> {
  const calls = await Promise.all(Array.from({ length: threads }, make));
  await spell(calls, seconds / 4);
  return spell(calls, seconds);
}

async function spell(calls: Call[], length: number): Promise<number> {
  let count = 0;
  const began = performance.now();
  await Promise.all(calls.map(async (call) => {
    while (performance.now() - began < length * 1000) {
      for (let i = 0; i < BUNCH; i++) {
        const got = call();
        if (got instanceof Promise) await got; // an id from memory needs no promise
      }
      count += BUNCH;
    }
  }));
  return (count * 1000) / (performance.now() - began);
}

async function ours(call: (client: Client) => unknown, ...localRanges: LocalTag[]): Promise<number> {
  const client = new Client(`firn://${address}`, { ...LIMITS, localRanges });
  try {
    return await measured(() => () => call(client));
  } finally {
    client.close();
  }
}

console.log(JSON.stringify({
  'bare single': await measured(() => bare(askId('default'))),
  'bare batch': BATCH * await measured(() => bare(askIds('default', BATCH))),
  single: await ours((client) => client.nextId('default')),
  batch: BATCH * await ours((client) => client.nextIds('default', BATCH)),
  'ahead snowflake': await ours((client) => client.tryNextId('default') ?? client.nextId('default'), snowflakeTag('default')),
  'ahead segment': await ours((client) => client.tryNextId('count') ?? client.nextId('count'), segmentTag('count')),
}));
process.exit(0);
