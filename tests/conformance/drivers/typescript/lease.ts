// The TypeScript client's generator of local ids, controlled by standard input and output as ../../README.md describes.

import { openSync, writeFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { Client, type ClientOptions, FirnError, type LocalGenerator } from 'firn-client';

type Words = Record<string, string | undefined>;

const PASS = 10; // ids
const PAUSE_MS = 10;

let client: Client;
let generator: LocalGenerator;
let file = '';
let lost = 0;
let issuers: Issuer[] = [];

/** Takes ids again and again, and writes them into a file of its own. */
class Issuer {
  ids = 0;
  failed = 0;
  failure = '';
  readonly ended: Promise<void>;
  private readonly out: number;

  constructor(path: string) {
    this.out = openSync(path, 'w');
    this.ended = this.work();
  }

  private async work(): Promise<void> {
    for (let closed = false; !closed;) {
      const taken: bigint[] = [];
      try {
        while (taken.length < PASS) taken.push(generator.next());
      } catch (fault) {
        if (!(fault instanceof FirnError)) throw fault;
        closed = fault.kind === 'closed';
        if (!closed) {
          this.failed++;
          this.failure ||= fault.message;
        }
      }
      if (taken.length > 0) writeSync(this.out, lines(taken));
      this.ids += taken.length;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

const lines = (ids: bigint[]): string => ids.map((id) => `${id}\n`).join('');
const sum = (of: 'ids' | 'failed'): number => issuers.reduce((all, one) => all + one[of], 0);

function optionsOf(said: Words): ClientOptions {
  const { tls_ca: ca, tls_cert: cert, tls_key: key } = said;
  if (!ca) return {};
  return { tls: cert && key ? { ca, cert, key } : { ca } };
}

async function open(said: Words): Promise<object> {
  try {
    client = new Client(said['servers']!, optionsOf(said));
    generator = await client.localGenerator({
      name: said['name']!, aheadMs: Number(said['ahead_ms']), timeoutMs: Number(said['timeout_ms']), onLost: () => lost++,
    });
  } catch (fault) {
    return { failure: (fault as FirnError).message };
  }
  file = said['file']!;
  issuers = Array.from({ length: Number(said['threads']) }, (_, at) => new Issuer(`${file}.${at}`));
  return {};
}

function soFar(): object {
  const failure = issuers.find((one) => one.failure)?.failure ?? '';
  for (const one of issuers) one.failure = '';
  return {
    ids: sum('ids'), failed: sum('failed'), failure, machine_id: generator.machineId() ?? null,
    until_ms: generator.until()?.getTime() ?? 0, lost,
  };
}

function burst(count: number): object {
  const taken: bigint[] = [];
  let failure = '';
  const began = performance.now();
  try {
    while (taken.length < count) taken.push(generator.next());
  } catch (fault) {
    failure = (fault as FirnError).message;
  }
  const tookMs = Math.round(performance.now() - began);
  writeFileSync(`${file}.burst`, lines(taken));
  return { ids: taken.length, took_ms: tookMs, failure };
}

async function close(): Promise<object> {
  await generator.close();
  await Promise.all(issuers.map((one) => one.ended));
  client.close();
  let failure = '';
  try {
    generator.next();
  } catch (fault) {
    failure = (fault as FirnError).message;
  }
  return { ids: sum('ids'), failed: sum('failed'), after_close: failure };
}

async function answer(verb: string, said: Words): Promise<object> {
  switch (verb) {
    case 'open': return open(said);
    case 'so_far': return soFar();
    case 'burst': return burst(Number(said['count']));
  }
  return close();
}

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, ...words] = line.split(' ');
  const said: Words = {};
  for (const word of words) {
    const at = word.indexOf('=');
    said[word.slice(0, at)] = word.slice(at + 1);
  }
  process.stdout.write(`${JSON.stringify(await answer(verb!, said))}\n`);
}
process.exit(0); // also while issuers work
