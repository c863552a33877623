// The TypeScript client, controlled by standard input and output as ../../README.md describes.

import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';

import {
  type CallOptions, Client, type ClientOptions, FirnError, segmentTag, snowflakeTag, type TlsOptions,
} from '@OWNER/firn-client';

type Words = Record<string, string | undefined>;
type Told = Record<string, unknown>;
type Writable<T> = { -readonly [key in keyof T]: T[key] };

const number = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text));
const json = (value: unknown): string =>
  JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? `@${one}@` : one)).replace(/"@(-?\d+)@"/g, '$1');

let client: Client | undefined;
let events: string[] = [];
let load: Load | undefined;

function open(said: Words): Told {
  const options: Writable<ClientOptions> = {
    failfast: said['on_failure'] === 'failfast',
    localRanges: [
      ...(said['segment'] ? [segmentTag(said['segment'])] : []),
      ...(said['snowflake'] ? [snowflakeTag(said['snowflake'])] : []),
    ],
    onEvent: (event) => {
      events.push(event.kind);
      if (said['on_event'] === 'throws') throw new Error('as the case says');
    },
  };
  const names = {
    deadline_ms: 'deadlineMs', attempt_limit_ms: 'attemptLimitMs', attempts_max: 'attemptsMax',
    servers_max: 'serversMax', rack: 'rack',
  } as const;
  for (const [name, option] of Object.entries(names)) {
    const value = number(said[name]);
    if (value !== undefined) options[option] = value;
  }
  if (said['cluster_uuid']) options.clusterUuid = said['cluster_uuid'];
  if (said['tls_ca']) {
    const tls: Writable<TlsOptions> = { ca: said['tls_ca'] };
    if (said['tls_cert']) tls.cert = said['tls_cert'];
    if (said['tls_key']) tls.key = said['tls_key'];
    if (said['tls_name']) tls.name = said['tls_name'];
    options.tls = tls;
  }
  events = [];
  try {
    client = new Client(said['servers']!, options);
  } catch (fault) {
    return { kind: (fault as FirnError).kind, failure: (fault as FirnError).message };
  }
  return {};
}

async function idsOf(verb: string, said: Words): Promise<bigint[]> {
  const deadlineMs = number(said['deadline_ms']);
  const options: CallOptions = deadlineMs === undefined ? {} : { deadlineMs };
  if (verb === 'ids') return client!.nextIds(said['tag']!, Number(said['count']), options);
  if (verb === 'text') return [BigInt(await client!.nextText(said['tag'], options))];
  return [await client!.nextId(said['tag'], options)];
}

async function call(verb: string, said: Words): Promise<Told> {
  let [answered, failed] = [0, 0];
  const ids: bigint[] = [];
  const result: Told = {};
  const work = async (): Promise<void> => {
    for (let i = 0; i < Number(said['times'] ?? 1); i++) {
      try {
        ids.push(...await idsOf(verb, said));
        answered++;
      } catch (fault) {
        if (failed++ === 0) Object.assign(result, told(fault));
      }
    }
  };
  await Promise.all(Array.from({ length: Number(said['threads'] ?? 1) }, work));
  return { answered, failed, ids, ...result };
}

function told(fault: unknown): Told {
  if (!(fault instanceof FirnError)) throw fault;
  return {
    kind: fault.kind, failure: fault.message, reason: fault.reason ?? '', retry_after_ms: fault.retryAfterMs,
    attempts: fault.attempts.map((one) => ({ server: one.server, end: one.end, reason: one.reason ?? '' })),
  };
}

/** Calls without end; their ids go into a file. */
class Load {
  private ending = false;
  private readonly calls: number[];
  private readonly ids: bigint[] = [];
  private longest = 0;
  private failed = 0;
  private first: Told = {};
  private readonly work: Promise<void>[];

  constructor(private readonly tag: string, private readonly file: string, threads: number) {
    this.calls = new Array<number>(threads).fill(0);
    this.work = this.calls.map((_, mine) => this.callOn(mine));
  }

  private async callOn(mine: number): Promise<void> {
    while (!this.ending && this.first['kind'] !== 'closed') {
      const began = performance.now();
      try {
        this.ids.push(await client!.nextId(this.tag));
      } catch (fault) {
        if (this.failed++ === 0) this.first = told(fault);
        if (!(fault instanceof FirnError) || fault.kind === 'closed') return;
      }
      this.longest = Math.max(this.longest, performance.now() - began);
      this.calls[mine]!++;
    }
  }

  soFar(): Told {
    return { calls: Math.min(...this.calls) };
  }

  async end(): Promise<Told> {
    this.ending = true;
    await Promise.all(this.work);
    const out = createWriteStream(this.file);
    for (const id of this.ids) out.write(`${id}\n`);
    await new Promise<void>((resolve) => out.end(resolve));
    return { answered: this.ids.length, failed: this.failed, longest_us: Math.round(this.longest * 1000), ...this.first };
  }
}

async function answer(verb: string, said: Words): Promise<Told> {
  switch (verb) {
    case 'open':
      return open(said);
    case 'view':
      return { servers: Object.fromEntries(client!.servers().map((one) => [one.address, one.fitness])) };
    case 'seen':
      return { events };
    case 'start':
      load = new Load(said['tag']!, said['file']!, Number(said['threads'] ?? 4));
      return {};
    case 'so_far':
      return load!.soFar();
    case 'stop':
      return load!.end();
    case 'close':
      client?.close();
      return {};
  }
  return call(verb, said);
}

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, ...words] = line.split(' ');
  const said: Words = {};
  for (const word of words) {
    const at = word.indexOf('=');
    said[word.slice(0, at)] = word.slice(at + 1);
  }
  process.stdout.write(`${json(await answer(verb!, said))}\n`);
}
