import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';

import type { Engine } from './engine.js';
import { FirnError, textOf } from './errors.js';
import { startOf } from './lease.js';
import type { LeaseLoss } from './lease_request.js';
import { LeaseTransport, type LeaseWishes } from './lease_transport.js';
import { type LeaseClock, LeasedIds } from './leased_ids.js';
import { Lessee } from './lessee.js';

/** The options of a {@link LocalGenerator}. */
export interface LocalGeneratorOptions {
  /** Label for operators: 1 to 64 letters, digits or characters of `-_.:/@`. */
  readonly name: string;
  /** Rack of the machine id. Default: that of the server. */
  readonly rack?: number;
  /**
   * How far ahead the lease should end, in milliseconds: how long ids last without a server. 2000 to 86400000. Default:
   * 60000.
   */
  readonly aheadMs?: number;
  /** Maximum time to wait for the first lease, in milliseconds. Default: 10000. */
  readonly timeoutMs?: number;
  /** Called when the generator has lost its lease, after which `next()` throws until there is another one. */
  readonly onLost?: (loss: LeaseLoss) => void;
}

const OPEN_MS = 10_000;
const CLOSE_MS = 1_000;
const BLOCKED_MS = 1_000;
const AHEAD_MS = 60_000;
const AHEAD_MIN_MS = 2_000;
const AHEAD_MAX_MS = 86_400_000;
const NAME = /^[A-Za-z0-9._:/@-]{1,64}$/;

const sleeper = new Int32Array(new SharedArrayBuffer(4));
const clock: LeaseClock = {
  read: () => ({ wallMs: Date.now(), monoMs: performance.now() }),
  wallMs: Date.now,
  sleep: (ms) => void Atomics.wait(sleeper, 0, 0, ms),
};

/**
 * Makes ids in this process, under a machine id that servers lease to it: no other process has that machine id at the
 * same time. Ids come from memory, also while no server is reachable, until the lease ends. The generator extends its
 * lease in the background, and takes another one in time if a server does not extend it. Ids rise.
 *
 * `Client.localGenerator` creates it. A worker thread needs a generator of its own, as does a process of a cluster.
 */
export class LocalGenerator {
  readonly #ids = new LeasedIds(clock, Math.random);
  readonly #engine: Engine;
  readonly #lessee: Lessee;
  readonly #transport: LeaseTransport;
  readonly #onLost: ((loss: LeaseLoss) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #awaiting = new Set<() => void>();
  #lastRefusal = 'no usable server is known';
  #finalRefusal: FirnError | undefined;
  #ended = false;

  private constructor(engine: Engine, wishes: LeaseWishes, onLost: ((loss: LeaseLoss) => void) | undefined) {
    this.#engine = engine;
    this.#transport = new LeaseTransport(engine, wishes);
    this.#onLost = onLost;
    this.#lessee = new Lessee({
      aheadMs: wishes.aheadMs,
      draw: () => randomBytes(16).toString('hex'),
      random: Math.random,
      knows: (address) => engine.fleet.servers.has(address),
      onLost: (loss) => this.#lost(loss),
      onRefused: (message, failure) => {
        this.#lastRefusal = message;
        this.#finalRefusal ??= failure;
      },
    }, this.#ids);
    engine.closing.add(this.#clientClosed);
    this.#ids.onJump = () => void setImmediate(this.#run).unref();
    this.#run();
  }

  /** @internal */
  static async open(engine: Engine, options: LocalGeneratorOptions): Promise<LocalGenerator> {
    if (engine.closed) throw new FirnError('closed', 'the client was closed');
    const made = new LocalGenerator(engine, wishesOf(options), options.onLost);
    const { timeoutMs = OPEN_MS } = options;
    await made.#wait(timeoutMs, () => made.#ids.held !== undefined || made.#finalRefusal !== undefined || made.#ended);
    if (made.#ids.held) return made;
    const refusal = made.#finalRefusal;
    await made.close();
    if (engine.closed) throw new FirnError('closed', 'the client was closed');
    throw refusal ?? new FirnError('no lease', `no server has granted a lease within ${timeoutMs} ms; ${made.#lastRefusal}`);
  }

  /**
   * Returns the next id, from memory. Blocks the thread until the next tick, unless that begins in more than 5 s, if the
   * sequence of this tick is used up. In most layouts, a tick is 1 ms long.
   *
   * The lease is extended by the event loop: a loop of calls that never awaits anything ends it.
   *
   * @throws {@link FirnError} of the kind `no lease` if there is none, with the reason and since when; and of the
   * kind `closed` after `close`
   */
  next(): bigint {
    try {
      return this.#ids.next();
    } catch (failure) {
      throw this.#explained(failure);
    }
  }

  /** Returns the machine id of the current lease; undefined without one. */
  machineId(): number | undefined {
    return this.#ids.held?.machine;
  }

  /** Returns when the current lease ends, unless a server extends it; undefined without one. */
  until(): Date | undefined {
    const { held } = this.#ids;
    return held && new Date(startOf(held, held.untilTick));
  }

  /**
   * Issues no id from now on, and gives the lease back. Waits at most 1 s for the server: without its answer, the machine
   * id becomes free when the lease ends.
   */
  async close(): Promise<void> {
    this.#lessee.stop(clock.read(), () => new FirnError('closed', 'the generator was closed'));
    this.#run();
    await this.#wait(CLOSE_MS, () => this.#lessee.stopped || this.#ended);
    this.#end();
  }

  // --- background work ------------------------------------------------------------------------------

  /** Sends what is due. */
  readonly #run = (): void => {
    clearTimeout(this.#timer);
    if (this.#ended) return;
    const now = clock.read();
    for (const [number, request] of this.#lessee.tick(now)) {
      void this.#transport.send(request).then((outcome) => {
        if (this.#ended) return;
        this.#lessee.onReply(number, outcome, clock.read());
        this.#run();
      });
    }
    for (const check of [...this.#awaiting]) check();
    this.#timer = setTimeout(this.#run, Math.max(1, Math.ceil(this.#lessee.dueMs - now.monoMs)));
    this.#timer.unref();
  };

  /** Returns the failure, which says so if the program has not let this generator renew its lease. */
  #explained(failure: unknown): unknown {
    const blockedMs = clock.read().monoMs - this.#lessee.dueMs;
    if (!(failure instanceof FirnError) || failure.kind !== 'no lease' || blockedMs < BLOCKED_MS || this.#ended) return failure;
    return new FirnError('no lease', `${failure.message}: the program has blocked its event loop for ` +
                         `${(blockedMs / 1000).toFixed(1)} s, so no renewal was sent; await something between calls`);
  }

  /** Waits until the condition holds, at most that long. Keeps the process alive. */
  #wait(atMostMs: number, holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#awaiting.delete(check);
        resolve();
      };
      const check = (): void => {
        if (holds()) end();
      };
      const timer = setTimeout(end, atMostMs);
      this.#awaiting.add(check);
      check();
    });
  }

  #lost(loss: LeaseLoss): void {
    try {
      this.#onLost?.(loss);
    } catch {
      // The program's fault must not change the generator.
    }
  }

  readonly #clientClosed = (): void => {
    this.#lessee.stop(clock.read(), () => new FirnError('closed', 'the client of this generator was closed'));
    this.#end();
  };

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#engine.closing.delete(this.#clientClosed);
    this.#transport.close();
    for (const check of [...this.#awaiting]) check();
  }
}

/** Throws a FirnError that names every fault. */
function wishesOf(options: LocalGeneratorOptions): LeaseWishes {
  const { name, rack, aheadMs = AHEAD_MS, timeoutMs = OPEN_MS, onLost } = options;
  const faults: string[] = [];
  if (typeof name !== 'string' || !NAME.test(name)) {
    faults.push(`name is '${textOf(name)}', not 1 to 64 letters, digits or characters of -_.:/@`);
  }
  if (rack !== undefined && !(Number.isInteger(rack) && rack >= 0 && rack <= 65_535)) {
    faults.push(`rack is ${textOf(rack)}, not an integer from 0 to 65535`);
  }
  if (!(Number.isInteger(aheadMs) && aheadMs >= AHEAD_MIN_MS && aheadMs <= AHEAD_MAX_MS)) {
    faults.push(`aheadMs is ${textOf(aheadMs)}, not an integer from ${AHEAD_MIN_MS} to ${AHEAD_MAX_MS}`);
  }
  if (!(typeof timeoutMs === 'number' && timeoutMs >= 0)) faults.push(`timeoutMs is ${textOf(timeoutMs)}, not 0 or more`);
  if (onLost !== undefined && typeof onLost !== 'function') faults.push(`onLost is ${textOf(onLost)}, not a function`);
  if (faults.length > 0) throw new FirnError('invalid', faults.join('; '));
  return { name, rack, aheadMs };
}
