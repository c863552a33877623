import { performance } from 'node:perf_hooks';

import type { Answered, Ask, ServerStatus } from './asks.js';
import { Connection } from './connection.js';
import type { Engine } from './engine.js';
import { type Failure, failed, FirnError, spoke } from './errors.js';
import { readLayout } from './layout.js';
import { readLease } from './lease.js';
import { askLease, askRelease, askRenewal, type LeaseTerms } from './lease_asks.js';
import type { LeaseOutcome, LeaseRequest } from './lease_request.js';
import { Server } from './server.js';

/** What the requests of one generator have in common. */
export interface LeaseWishes {
  readonly name: string;
  readonly rack: number | undefined;
  readonly aheadMs: number;
}

/** Maximum time to connect to a server, with its status, and then to get an answer from it. */
const ATTEMPT_MS = 2_000;
/** Maximum time of a grant: the server claims a machine id meanwhile, which needs several answers of the registry. */
const GRANT_MS = 6_000;

/** A connection for requests about leases, one at a time. */
interface Line {
  readonly address: string;
  readonly connection: Connection;
  limitMs: number; // of the current request
}

interface Exchange {
  readonly answered: Answered<unknown>;
  /** Status of the server; undefined: no connection to it was open. */
  readonly status: ServerStatus | undefined;
  /** The server may have received the request. */
  readonly sent: boolean;
}

/**
 * Sends the requests of a lessee to the servers of a client. They share no connection with calls for ids, because an answer
 * may take seconds. The connection of the last lease is kept, so that its renewal needs no file descriptor and no DNS.
 */
export class LeaseTransport {
  private readonly open = new Set<Connection>();
  private kept: Line | undefined;
  private closed = false;

  constructor(private readonly engine: Engine, private readonly wishes: LeaseWishes) {}

  /** Resolves within 10 s, and is never rejected. */
  async send(request: LeaseRequest): Promise<LeaseOutcome> {
    const server = this.serverFor(request);
    if (!server) return { kind: 'no answer', server: '', sent: false, message: 'no usable server is known' };
    const limitMs = request.kind === 'grant' ? GRANT_MS : ATTEMPT_MS;
    const exchange = await this.exchange(server, this.askOf(request), limitMs);
    server.inFlight--;
    return outcomeOf(server.address, exchange);
  }

  /** Ends all requests without an answer. */
  close(): void {
    this.closed = true;
    for (const one of [...this.open]) one.close(failed('closed', 'the generator was closed'));
  }

  private serverFor(request: LeaseRequest): Server | undefined {
    const { fleet, settings } = this.engine;
    if (request.server === '') {
      const avoid = request.kind === 'grant' ? request.avoid : [];
      const tried = [...fleet.servers.values()].filter((one) => avoid.includes(one.address));
      return fleet.pick('', tried, performance.now());
    }
    const known = fleet.servers.get(request.server) ?? new Server(request.server, settings.tls !== undefined);
    known.inFlight++;
    return known;
  }

  private askOf(request: LeaseRequest): Ask<unknown> {
    const { name, rack, aheadMs } = this.wishes;
    const clockMs = BigInt(request.clockMs);
    switch (request.kind) {
      case 'grant': return askLease({ token: request.token, name, clockMs, aheadMs, rack });
      case 'renewal': return askRenewal({ ...request, clockMs, aheadMs });
      case 'release': return askRelease({ ...request, usedTick: BigInt(request.usedTick) });
    }
  }

  private async exchange(server: Server, ask: Ask<unknown>, limitMs: number): Promise<Exchange> {
    const { kept } = this;
    if (kept?.address !== server.address) return this.ask(this.lineTo(server), ask, limitMs);
    this.kept = undefined; // another request must not use it meanwhile
    const began = performance.now();
    const exchange = await this.ask(kept, ask, limitMs);
    const { answered } = exchange;
    if (!('failure' in answered) || !answered.failure.stale || this.closed) return exchange;
    // The server closed it while it was idle.
    const leftMs = Math.max(limitMs - (performance.now() - began), ATTEMPT_MS);
    return { ...await this.ask(this.lineTo(server), ask, leftMs), sent: true };
  }

  private ask(line: Line, ask: Ask<unknown>, limitMs: number): Promise<Exchange> {
    const { connection } = line;
    const reused = !connection.opening;
    line.limitMs = limitMs;
    return new Promise((resolve) => {
      const ended = (answered: Answered<unknown>): void => {
        const { status } = connection;
        resolve({ answered, status, sent: status !== undefined });
        const good = 'answer' in answered ? reused || answered.answer !== true : reused && spoke(answered.failure);
        if (good) this.keep(line);
        else connection.close(failed('closed', ''));
      };
      connection.send({ ask, abandoned: false, ended, isLate: () => false }, performance.now());
      if (!reused) connection.open();
    });
  }

  private keep(line: Line): void {
    if (this.kept !== line) this.kept?.connection.close(failed('closed', ''));
    this.kept = line;
  }

  /** Returns a connection that is not open yet. */
  private lineTo(server: Server): Line {
    const { engine } = this;
    const connection: Connection = new Connection(server, server.tls ? engine.tls : undefined, {
      names: engine.names,
      get attemptLimitMs() {
        return connection.opening ? ATTEMPT_MS : line.limitMs;
      },
      admit: (status) => engine.admit(status),
      opened: () => undefined,
      unasked: () => undefined,
      closedBy: () => {
        this.open.delete(connection);
        if (this.kept === line) this.kept = undefined;
      },
    });
    const line: Line = { address: server.address, connection, limitMs: ATTEMPT_MS };
    this.open.add(connection);
    return line;
  }
}

function outcomeOf(server: string, { answered, status, sent }: Exchange): LeaseOutcome {
  if ('failure' in answered) return outcomeOfFailure(server, answered.failure, sent);
  if (answered.answer === true) return { kind: 'released', server };
  const terms = answered.answer as LeaseTerms;
  const lease = readLease(terms, readLayout(status?.layout ?? ''));
  if (typeof lease !== 'string') return { kind: 'lease', server, lease };
  const message = `the lease of ${server} cannot be used: ${lease}`;
  const { lease: id, server: named, fromTick, untilTick, tickMs, epochMs } = terms;
  const endMs = Number(epochMs) + Number(untilTick) * tickMs;
  return { kind: 'unusable', server, message, terms: { id, server: named, fromTick: Number(fromTick), endMs } };
}

function outcomeOfFailure(server: string, failure: Failure, sent: boolean): LeaseOutcome {
  const message = `${server} ${failure.reason ?? failure.lease?.fault ?? failure.end}: ${failure.detail}`;
  switch (failure.lease?.fault) {
    case undefined: break;
    case 'UNKNOWN_LEASE': return { kind: 'unknown', server, message };
    case 'OUTDATED': return { kind: 'outdated', server, message };
    case 'REVOKED': return { kind: 'revoked', server, message };
    case 'ANOTHER_SERVERS': return { kind: 'elsewhere', server, owner: failure.lease!.server, message };
    default: return { kind: 'refused', server, message };
  }
  if (failure.lacksMethod) return { kind: 'refused', server, message };
  // A refusal before the request was sent: the server does not know its cluster yet.
  if (failure.end !== 'refused' || !sent) return { kind: 'no answer', server, sent, message };
  const { reason, retryAfterMs } = failure;
  const claiming = reason === 'NOT_READY' && !failure.anotherMayHelp;
  if (claiming) return { kind: 'not ready', server, message, retryAfterMs, claiming };
  if (reason !== 'BAD_REQUEST' && reason !== 'REJECTED') return { kind: 'not ready', server, message, retryAfterMs };
  return { kind: 'refused', server, message, failure: new FirnError('refused', message, { reason }) };
}
