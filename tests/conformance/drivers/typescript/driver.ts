// The TypeScript client, controlled by standard input and output as ../../README.md describes.

import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';

import {
  type CallOptions, Client, type ClientOptions, FirnError, segmentTag, snowflakeTag, type TlsOptions,
} from 'firn-client';

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
      if (said['on_event'] === 'closes') client!.close();
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

const TEXT = { toString: (): string => { throw new Error('as the case says'); } };
const NO_STRINGS = [5, null, 1n, true, ['a', 'b'], { a: 1 }, Symbol('a'), () => 'a', Buffer.from('a'), new String('a'), TEXT];
const NO_COUNTS = [0, -1, 1.5, 100_001, NaN, Infinity, '5', 1n, null, undefined, [], {}, Symbol('a'), TEXT];
const NO_DEADLINES = [-1, NaN, Infinity, '5', 1n, [], {}, Symbol('a'), TEXT];
const NO_SIGNALS = ['a', 5, {}, { aborted: 1 }, TEXT];
const NO_OPTIONS: Record<string, unknown[]> = {
  clusterUuid: [5, {}, TEXT], rack: [-1, 1.5, '1', {}], deadlineMs: [0, '5', NaN, {}], attemptLimitMs: [0, '5', NaN],
  attemptsMax: [0, '5', 1.5], serversMax: [-1, '5'], failfast: ['no', 1], onEvent: ['a', {}, 5], tls: ['a', 5, { ca: 5 }, { name: {} }],
  localRanges: ['a', {}, [5], ['a'], [null], [{ tag: 5 }], [{ tag: 'a' }], [{ ...segmentTag('a'), lastsMs: 'a' }]],
};

/** Passes wrong types and values for every parameter; counts the calls that failed, and names those that did not. */
async function wrong(): Promise<Told> {
  const loose = client! as unknown as Record<string, (...values: unknown[]) => unknown>;
  const Loose = Client as unknown as new (...values: unknown[]) => Client;
  const made = (...values: unknown[]) => (): void => new Loose(...values).close();
  const all: [string, () => unknown][] = [];
  for (const value of [...NO_STRINGS, 'a'.repeat(129), 'ü'.repeat(65)]) {
    for (const name of ['nextId', 'nextText']) all.push([name, () => loose[name]!(value)]);
    all.push(['nextIds', () => loose['nextIds']!(value, 1)]);
  }
  for (const count of NO_COUNTS) all.push(['nextIds', () => loose['nextIds']!('order', count)]);
  const options = [...NO_DEADLINES.map((deadlineMs) => ({ deadlineMs })), ...NO_SIGNALS.map((signal) => ({ signal }))];
  for (const option of options) {
    for (const name of ['nextId', 'nextText']) all.push([name, () => loose[name]!('order', option)]);
    all.push(['nextIds', () => loose['nextIds']!('order', 1, option)]);
  }
  for (const servers of [undefined, '', 'list://', ...NO_STRINGS]) all.push(['servers', made(servers)]);
  for (const value of ['a', 5, true]) all.push(['options', made('list://127.0.0.1:1', value)]);
  for (const [name, values] of Object.entries(NO_OPTIONS)) {
    for (const value of values) all.push([name, made('list://127.0.0.1:1', { [name]: value })]);
  }
  const leases = [undefined, null, 5, {}, { name: 5 }, { name: '' }, ...['rack', 'aheadMs', 'timeoutMs'].flatMap(
    (name) => ['5', NaN, -1, {}].map((value) => ({ name: 'a', [name]: value }))), { name: 'a', onLost: 'a' }];
  for (const value of leases) all.push(['localGenerator', () => loose['localGenerator']!(value)]);
  let failed = 0;
  const taken: string[] = [];
  await Promise.all(all.map(async ([name, call]) => {
    try {
      await call();
      taken.push(name);
    } catch {
      failed++;
    }
  }));
  return { answered: taken.length, failed, failure: taken.join() };
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
      return { servers: Object.fromEntries(client!.servers().map((one) => [one.address, one.health])) };
    case 'seen':
      return { events };
    case 'burst': {
      const began = performance.now();
      return { ...await call('id', { ...said, threads: said['calls'] }), took_ms: performance.now() - began };
    }
    case 'wrong':
      return wrong();
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
