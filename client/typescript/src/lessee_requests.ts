// What a lessee remembers of its requests and of its lease.

import type { FirnError } from './errors.js';
import type { Lease } from './lease.js';

/** A request that is repeated until it has an outcome. */
export interface Pending {
  readonly number: number;
  sendAtMs: number;
  inFlight: boolean;
  delayMs: number; // of the next repetition
  hops: number; // from one server to another that has the lease
  /**
   * The wall clock minus the monotonic clock, when it was sent. Of several times, the lowest: which of them was answered
   * is unknown.
   */
  wallAtZeroMs: number;
  /** In a jump of the wall clock, the last time. */
  sentInJump: boolean;
}

export interface Grant extends Pending {
  token: string;
  server: string;
  avoid: string[];
  /** A server may have granted a lease for this token. */
  spent: boolean;
  /** The token before, of the only server that was asked in this round. */
  former: { readonly server: string; readonly token: string } | undefined;
  repeats: number;
  /** Of a server that would refuse every repetition. */
  refusal: FirnError | undefined;
  /** Another server may still grant a lease. */
  hopeful: boolean;
}

export interface Renewal extends Pending {
  readonly turn: string;
}

export interface Release extends Pending {
  readonly lease: string;
  readonly grantedBy: string;
  readonly turn: string;
  readonly usedTick: number;
  readonly uselessAtMs: number; // by the id clock
  server: string;
}

export interface Held {
  readonly lease: Lease;
  server: string;
  readonly grantedBy: string; // address of the server, as the grant named it
  acknowledged: string; // turn of the last answer
  thirdMs: number; // of the interval
  replaceAtMs: number; // by the id clock: then another lease is requested
  renewAtMs: number;
  answeredAtMs: number;
  renewable: boolean;
  /** The server does not have it. */
  unknown: boolean;
  expired: boolean; // and reported
}
