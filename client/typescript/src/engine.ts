import { performance } from 'node:perf_hooks';

import { type Answered, type Ask, askServers, type ServerList, type ServerStatus } from './asks.js';
import { Call } from './call.js';
import { Connection, type ConnectionHost } from './connection.js';
import { Names } from './dial.js';
import { failed, type Failure } from './errors.js';
import { HealthRules } from './health_rules.js';
import { Fleet } from './fleet.js';
import type { CallOptions, Settings } from './options.js';
import type { Server } from './server.js';
import { TlsFiles } from './tls.js';
import type { Counters } from './view.js';

const ASK_AGAIN_MIN_MS = 50;
const ASK_AGAIN_MAX_MS = 300_000;
const NO_LIST_YET_MS = 1_000;
const NO_SUCH_METHOD_MS = 60_000;
const TROUBLE_PAUSE_MS = 1_000;
const UPKEEP_MS = 1_000;

/** The parts of a client: the fleet, its connections and the background work. */
export class Engine implements ConnectionHost {
  readonly fleet: Fleet;
  readonly rules: HealthRules;
  readonly names = new Names();
  readonly calls = new Set<Call<unknown>>();
  private begun: Call<unknown>[] = []; // in this turn
  readonly counters: Counters = {
    calls: 0, failed: 0, refused: 0, attempts: 0, retries: 0, retriesDenied: 0, timeouts: 0, broken: 0,
    connects: 0, connectsFailed: 0, lists: 0, localTaken: 0, localMissed: 0,
  };
  closed = false;
  readonly tls: TlsFiles;
  /** Called when the client is closed. */
  readonly closing = new Set<() => void>();
  private readonly open = new Map<Connection, Server>();
  private readonly probing = new Map<Connection, Server>();
  private listDue = Infinity;
  private listAsked = -Infinity;
  private askingList = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(readonly settings: Settings) {
    this.fleet = new Fleet(settings);
    this.rules = new HealthRules(this.fleet, () => this.askListSoon());
    this.tls = new TlsFiles(settings.tls ?? {});
    if (settings.listsChange) this.listDue = performance.now();
    this.wake();
  }

  get attemptLimitMs(): number {
    return this.settings.attemptLimitMs;
  }

  /** Calls a server. The promise is rejected with a FirnError, or with the reason of the signal. */
  call<T>(ask: Ask<T>, options: CallOptions | undefined): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const limitMs = options?.deadlineMs ?? this.settings.deadlineMs;
      const call = new Call(this, ask, limitMs, options?.signal, resolve, reject);
      if (this.begun.push(call as Call<unknown>) === 1) process.nextTick(this.turnEnds);
    });
  }

  /** The deadlines of a turn's calls start when it ends: before that, nothing is sent, however long the turn takes. */
  private readonly turnEnds = (): void => {
    const [now, all] = [performance.now(), this.begun];
    this.begun = [];
    for (const one of all) one.turnEnds(now);
  };

  /** Does not wait: calls in progress are rejected. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.timer);
    for (const call of [...this.calls]) call.closed();
    for (const end of [...this.closing]) end();
    for (const connection of [...this.open.keys()]) connection.close(failed('closed', 'the client was closed'));
  }

  count(failure: Failure): void {
    if (failure.end === 'timeout') this.counters.timeouts++;
    if (failure.end === 'broken' || (failure.end === 'wrong service' && !failure.lacksMethod)) this.counters.broken++;
  }

  // --- connections ----------------------------------------------------------------------------------

  /** Returns the connection to a server; begins to open it if there is none. */
  connectionTo(server: Server): Connection {
    return server.connection ??= this.connect(server);
  }

  private connect(server: Server): Connection {
    const made = new Connection(server, server.tls ? this.tls : undefined, this);
    this.open.set(made, server);
    this.counters.connects++;
    made.open();
    return made;
  }

  admit(status: ServerStatus): Failure | undefined {
    return this.rules.admit(status);
  }

  opened(connection: Connection, failure: Failure | undefined, now: number): void {
    const server = this.open.get(connection) ?? this.probing.get(connection);
    if (!server || this.closed) return;
    if (failure) this.counters.connectsFailed++;
    this.rules.dialled(server, !failure || failure.end === 'refused', now);
    if (!this.probing.delete(connection)) return;
    this.rules.probed(server, connection.status, failure, now);
    if (!failure && server.connection !== connection) connection.close(failed('closed', ''));
    this.wake();
  }

  unasked(connection: Connection, failure: Failure, now: number): void {
    const server = this.open.get(connection);
    if (!server || this.closed) return;
    this.count(failure);
    this.rules.failed(server, '', failure, now);
  }

  closedBy(connection: Connection): void {
    const server = this.open.get(connection);
    this.open.delete(connection);
    if (server?.connection === connection) server.connection = undefined;
  }

  // --- background work ------------------------------------------------------------------------------

  /** Probes servers and asks for lists, when they are due. */
  private readonly upkeep = (): void => {
    if (this.closed) return;
    const now = performance.now();
    const { due, next } = this.rules.takeProbes(now);
    for (const one of due) this.probe(one);
    if (this.listDue <= now && !this.askingList) void this.askList(now);
    const listDue = this.askingList ? Infinity : this.listDue;
    this.timer = setTimeout(this.upkeep, Math.max(1, Math.min(UPKEEP_MS, Math.min(next, listDue) - now)));
    this.timer.unref();
  };

  private wake(): void {
    clearTimeout(this.timer);
    if (this.closed) return;
    this.timer = setTimeout(this.upkeep, 1);
    this.timer.unref();
  }

  /** Probes a server: over its connection to be, or over another one beside it. */
  private probe(server: Server): void {
    const made = this.connect(server);
    this.probing.set(made, server);
    server.connection ??= made;
  }

  /** Asks for the list within a random time of at most 1 s, because other clients see the same failure. */
  private askListSoon(): void {
    const soon = Math.max(performance.now(), this.listAsked + TROUBLE_PAUSE_MS) + Math.random() * TROUBLE_PAUSE_MS;
    if (this.listDue !== Infinity) this.listDue = Math.min(this.listDue, soon);
    this.wake();
  }

  private async askList(now: number): Promise<void> {
    this.listAsked = now;
    this.askingList = true;
    const one = this.fleet.pick('', [], now);
    const wait = one ? await this.askForList(one, now) : NO_LIST_YET_MS;
    this.askingList = false;
    this.listDue = performance.now() + wait;
    this.wake();
  }

  /** Asks a server for its list; returns when to ask again. */
  private async askForList(server: Server, began: number): Promise<number> {
    const outcome = await new Promise<Answered<unknown>>((resolve) => {
      this.connectionTo(server).send({
        ask: askServers(this.fleet.version) as Ask<unknown>,
        abandoned: false,
        ended: resolve,
        isLate: (shared) => {
          resolve({ failure: { ...failed('timeout', ''), shared } });
          return true;
        },
      }, began);
    });
    const now = performance.now();
    server.inFlight--;
    if (this.closed) return NO_LIST_YET_MS;
    if ('failure' in outcome) {
      const { failure } = outcome;
      if (failure.end === 'refused') return failure.retryAfterMs || NO_LIST_YET_MS;
      if (failure.lacksMethod) return NO_SUCH_METHOD_MS; // an older server: keep using the known addresses
      if (!failure.shared) this.rules.failed(server, '', failure, now);
      return NO_LIST_YET_MS;
    }
    const list = outcome.answer as ServerList;
    const version = this.fleet.version;
    for (const gone of this.fleet.apply(list, server)) gone.leave();
    if (this.fleet.version !== version) this.counters.lists++;
    return Math.min(Math.max(list.askAgainMs, ASK_AGAIN_MIN_MS), ASK_AGAIN_MAX_MS);
  }
}
