import { performance } from 'node:perf_hooks';

import { askId, askIds, askText } from './asks.js';
import { Engine } from './engine.js';
import { FirnError, textOf } from './errors.js';
import { LocalGenerator, type LocalGeneratorOptions } from './local_generator.js';
import { type CallOptions, type ClientOptions, settingsOf } from './options.js';
import { Supply } from './ranges.js';
import type { Counters, SeenServer } from './view.js';

const TAG_MAX_BYTES = 128;
const COUNT_MAX = 100_000;

/**
 * Takes ids from a cluster of Firn servers. Create one client and share it for as long as the program runs.
 *
 * A call ends by its deadline, with ids or with a {@link FirnError} that lists every attempt. Ids have 64 bits and
 * are never issued twice. A tag, such as `order`, is the name under which a program takes ids; an empty tag is the
 * servers' default.
 *
 * @example
 * const client = new Client('firn://10.0.0.7:7609,10.0.0.8:7609');
 * const id = await client.nextId('order');
 */
export class Client {
  readonly #engine: Engine;
  readonly #supplies = new Map<string, Supply>();

  /**
   * Does not wait for a server.
   *
   * @param servers `firn://seed,seed`, which discovers all servers through any of these, or
   * `list://host:port,unix:/path`, which names all of them
   * @throws {@link FirnError} of the kind `invalid` that names every fault of the options
   */
  constructor(servers: string, options: ClientOptions = {}) {
    this.#engine = new Engine(settingsOf(servers, options));
    for (const one of this.#engine.settings.localRanges) {
      this.#supplies.set(one.tag, new Supply(one, this.#engine));
    }
  }

  /** Returns one id; from memory, if `localRanges` names the tag. */
  nextId(tag = '', options?: CallOptions): Promise<bigint> {
    const fault = this.#faultOf(tag, options);
    if (fault) return Promise.reject(fault);
    const supply = this.#supplies.get(tag);
    if (!supply) return this.#engine.call(askId(tag), options);
    const id = supply.take();
    return id === undefined ? this.#awaitId(supply, tag, options) : Promise.resolve(id);
  }

  /** Returns one id from memory without a promise; undefined if there is none. Needs `localRanges`. */
  tryNextId(tag = ''): bigint | undefined {
    return this.#engine.closed ? undefined : this.#supplies.get(tag)?.take();
  }

  /**
   * Returns exactly `count` ids, 1 to 100000, in ascending order unless the tag is obfuscated; from memory, if
   * `localRanges` names the tag and enough ids are there.
   */
  nextIds(tag: string, count: number, options?: CallOptions): Promise<bigint[]> {
    const fault = this.#faultOf(tag, options);
    if (fault) return Promise.reject(fault);
    if (!Number.isInteger(count) || count < 1 || count > COUNT_MAX) {
      return Promise.reject(badRequest(`${textOf(count)} is not a number of ids from 1 to ${COUNT_MAX}`));
    }
    const ids = this.#supplies.get(tag)?.takeMany(count);
    return ids ? Promise.resolve(ids) : this.#engine.call(askIds(tag, count), options);
  }

  /** Returns one id in the text form of its tag. */
  nextText(tag = '', options?: CallOptions): Promise<string> {
    const fault = this.#faultOf(tag, options);
    return fault ? Promise.reject(fault) : this.#engine.call(askText(tag), options);
  }

  /**
   * Leases a machine id, and returns a generator that makes ids with it in this process. Close it before the client.
   *
   * @throws {@link FirnError} if no server grants a lease in time, or the options are invalid
   * @example
   * const generator = await client.localGenerator({ name: 'checkout-7f9c' });
   * const id = generator.next();
   */
  localGenerator(options: LocalGeneratorOptions): Promise<LocalGenerator> {
    return LocalGenerator.open(this.#engine, options);
  }

  /** Returns the servers as this client sees them, in the order of their addresses. */
  servers(): SeenServer[] {
    return this.#engine.fleet.view(performance.now());
  }

  /** Returns what the client has done since it was created. */
  counters(): Counters {
    return { ...this.#engine.counters };
  }

  /** Ends the client. Does not wait: calls in progress and later ones are rejected with the kind `closed`. */
  close(): void {
    this.#engine.close();
  }

  /** Closes the client at the end of a block that declares it by `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** The wait for prefetched ids is part of the call's deadline. */
  async #awaitId(supply: Supply, tag: string, options: CallOptions | undefined): Promise<bigint> {
    const deadlineMs = options?.deadlineMs ?? this.#engine.settings.deadlineMs;
    const began = performance.now();
    const id = await supply.await(deadlineMs / 4);
    if (id !== undefined) return id;
    options?.signal?.throwIfAborted();
    const left = Math.max(0, deadlineMs - (performance.now() - began));
    return this.#engine.call(askId(tag), { ...options, deadlineMs: left });
  }

  #faultOf(tag: string, options: CallOptions | undefined): unknown {
    if (this.#engine.closed) return new FirnError('closed', 'the client was closed');
    if (typeof tag !== 'string') return badRequest(`a tag is ${textOf(tag)}, not a string`);
    if (tag.length > TAG_MAX_BYTES || (tag.length * 3 > TAG_MAX_BYTES && Buffer.byteLength(tag) > TAG_MAX_BYTES)) {
      return badRequest(`a tag has at most ${TAG_MAX_BYTES} bytes`);
    }
    const deadlineMs = options?.deadlineMs;
    if (deadlineMs !== undefined && !(typeof deadlineMs === 'number' && deadlineMs >= 0 && deadlineMs <= 3_600_000)) {
      return badRequest(`a deadline of ${textOf(deadlineMs)} ms is not from 0 to 3600000`);
    }
    const signal = options?.signal;
    if (signal != undefined && !(signal instanceof AbortSignal)) return badRequest('a signal is not an AbortSignal');
    return signal?.aborted ? signal.reason : undefined;
  }
}

function badRequest(text: string): FirnError {
  return new FirnError('refused', text, { reason: 'BAD_REQUEST' });
}
