import { performance } from 'node:perf_hooks';

import type { Answered, Ask, ServerStatus } from './asks.js';
import { Connection } from './connection.js';
import type { Engine } from './engine.js';
import { type Failure, failed, FirnError } from './errors.js';
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

interface Exchange {
  readonly answered: Answered<unknown>;
  readonly status: ServerStatus | undefined;
}

/**
 * Sends the requests of a lessee to the servers of a client: each on a connection of its own, because an answer may take
 * seconds, and calls for ids must not wait for it.
 */
export class LeaseTransport {
  private readonly open = new Set<Connection>();

  constructor(private readonly engine: Engine, private readonly wishes: LeaseWishes) {}

  /** Resolves within 8 s, and is never rejected. */
  async send(request: LeaseRequest): Promise<LeaseOutcome> {
    const server = this.serverFor(request);
    if (!server) return { kind: 'no answer', server: '', sent: false, message: 'no usable server is known' };
    const limitMs = request.kind === 'grant' ? GRANT_MS : ATTEMPT_MS;
    const { answered, status } = await this.exchange(server, this.askOf(request), limitMs);
    server.inFlight--;
    return outcomeOf(server.address, answered, status);
  }

  /** Ends all requests without an answer. */
  close(): void {
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

  private exchange(server: Server, ask: Ask<unknown>, limitMs: number): Promise<Exchange> {
    const { engine } = this;
    return new Promise((resolve) => {
      const connection: Connection = new Connection(server, server.tls ? engine.tls : undefined, {
        names: engine.names,
        get attemptLimitMs() {
          return connection.opening ? ATTEMPT_MS : limitMs;
        },
        admit: (status) => engine.admit(status),
        opened: () => undefined,
        unasked: () => undefined,
        closedBy: () => this.open.delete(connection),
      });
      this.open.add(connection);
      const ended = (answered: Answered<unknown>): void => {
        resolve({ answered, status: connection.status });
        connection.close(failed('closed', ''));
      };
      connection.send({ ask, abandoned: false, ended, isLate: () => false }, performance.now());
      connection.open();
    });
  }
}

/** `status`: of the server, after which the request was sent; undefined: it was not. */
function outcomeOf(server: string, answered: Answered<unknown>, status: ServerStatus | undefined): LeaseOutcome {
  if ('failure' in answered) return outcomeOfFailure(server, answered.failure, status !== undefined);
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
