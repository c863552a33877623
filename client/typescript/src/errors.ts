/** The reason of a refusal, as in firn.thrift. */
export type Reason =
  | 'BAD_REQUEST' | 'UNKNOWN_TAG' | 'NOT_READY' | 'CLOCK' | 'OVERLOADED' | 'EXHAUSTED' | 'DRAINING'
  | 'REJECTED' | 'STORE_DOWN' | 'INTERNAL';

const REASONS: readonly Reason[] = [
  'BAD_REQUEST', 'UNKNOWN_TAG', 'NOT_READY', 'CLOCK', 'OVERLOADED', 'EXHAUSTED', 'DRAINING', 'REJECTED',
  'STORE_DOWN', 'INTERNAL',
];

/** Returns the name of the reason with this number of the contract; INTERNAL for an unknown one. */
export function reasonOf(number: number): Reason {
  return REASONS[number - 1] ?? 'INTERNAL';
}

/**
 * The outcome of one attempt at a server:
 *
 * - `unreachable`: the connection was refused, reset, or there is no route
 * - `connect timeout`: the connection, TLS included, was not established in time
 * - `closed`: the connection ended before the complete answer
 * - `timeout`: no complete answer arrived in time
 * - `broken`: the received bytes are not an answer to the request
 * - `wrong service`: the server is not an IdService of this cluster
 * - `refused`: the server refused with a reason
 * - `no room`: this process has no file descriptor or memory left for a connection
 */
export type End =
  | 'unreachable' | 'connect timeout' | 'closed' | 'timeout' | 'broken' | 'wrong service' | 'refused' | 'no room';

/** An attempt of a call at one server. */
export interface Attempt {
  /** host:port */
  readonly server: string;
  readonly end: End;
  /** The reason, if the server refused. */
  readonly reason?: Reason;
  /** The duration of the attempt in milliseconds. */
  readonly tookMs: number;
  /** A sentence or a part of one; may be empty. */
  readonly detail: string;
}

function attemptText(attempt: Attempt): string {
  const reason = attempt.reason ? ` (${attempt.reason})` : '';
  const detail = attempt.detail ? `: ${attempt.detail}` : '';
  return `${attempt.server} ${attempt.end}${reason} after ${attempt.tookMs.toFixed(1)} ms${detail}`;
}

/**
 * How a call failed:
 *
 * - `refused`: a server refused for a reason that other servers would repeat
 * - `unavailable`: no server could answer now
 * - `no lease`: a `LocalGenerator` has no lease of a machine id
 * - `closed`: the client was closed
 * - `invalid`: the options of the client are invalid
 */
export type ErrorKind = 'refused' | 'unavailable' | 'no lease' | 'closed' | 'invalid';

/** A call that failed, or a client with invalid options. The message lists every attempt. */
export class FirnError extends Error {
  override readonly name = 'FirnError';
  readonly kind: ErrorKind;
  /** The reason of the last refusal. */
  readonly reason: Reason | undefined;
  /** When to retry, in milliseconds, as the last refusal advises; 0: no advice. */
  readonly retryAfterMs: number;
  /** The attempts, the latest last; of many, the last 32. */
  readonly attempts: readonly Attempt[];

  constructor(kind: ErrorKind, sentence: string,
              of: { reason?: Reason | undefined; retryAfterMs?: number; attempts?: readonly Attempt[] } = {}) {
    super([sentence, ...(of.attempts ?? []).map(attemptText)].join('; '));
    this.kind = kind;
    this.reason = of.reason;
    this.retryAfterMs = of.retryAfterMs ?? 0;
    this.attempts = of.attempts ?? [];
  }
}

/** The client's internal outcome of a failed attempt. */
export interface Failure {
  readonly end: End;
  readonly detail: string;
  reason?: Reason;
  retryAfterMs: number;
  anotherMayHelp: boolean;
  /** An older server that lacks the method, healthy for the methods that it has. */
  lacksMethod: boolean;
  /** An idle connection ended before the first byte of the answer. */
  stale: boolean;
  /** Another call on the connection has already reported this end of it. */
  shared: boolean;
  /** Of the method of a lease: why the server does not grant, extend or end it, and the server that has it. */
  lease?: { readonly fault: LeaseFault; readonly server: string };
}

/** Why a server does not grant, extend or end a lease, as in firn.thrift; `OTHER`: for a newer reason. */
export type LeaseFault = 'UNKNOWN_LEASE' | 'OUTDATED' | 'REVOKED' | 'ANOTHER_SERVERS' | 'NO_LEASES' | 'OTHER';

/** Creates every failure. Replaces control characters of a server's text. */
export function failed(end: End, detail: string, reason?: Reason): Failure {
  const failure: Failure = {
    end, detail: printable(detail), retryAfterMs: 0, anotherMayHelp: false, lacksMethod: false, stale: false,
    shared: false,
  };
  if (reason) failure.reason = reason;
  return failure;
}

/** Returns whether the server sent a valid answer, so that the connection can be used again. */
export function spoke(failure: Failure): boolean {
  return failure.end === 'refused' || failure.lacksMethod;
}

/** Returns whether no request was sent: a retry then uses no retry budget. */
export function unsent(failure: Failure): boolean {
  return failure.end === 'unreachable' || failure.end === 'connect timeout' || failure.end === 'no room';
}

/** Returns a wrong argument as text, whatever it is. */
export function textOf(value: unknown): string {
  const type = typeof value;
  if (type === 'object') return value === null ? 'null' : Array.isArray(value) ? 'an array' : 'an object';
  return type === 'function' ? 'a function' : printable(String(value)).slice(0, 100);
}

/** Replaces control characters, and halves of surrogate pairs. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}|\p{Cs}|\p{Zl}|\p{Zp}/gu, '?');
}
