import type { FirnError } from './errors.js';
import type { Lease } from './lease.js';

/** A request to a server, without its connection. */
export type LeaseRequest = {
  /** Address of the server; empty, for a grant: any one that is not in `avoid`. */
  readonly server: string;
  /** The wall clock. */
  readonly clockMs: number;
} & (
  | { readonly kind: 'grant'; readonly avoid: readonly string[]; readonly token: string }
  | { readonly kind: 'renewal'; readonly lease: string; readonly turn: string; readonly acknowledged: string }
  | { readonly kind: 'release'; readonly lease: string; readonly turn: string; readonly usedTick: number }
);

/** The outcome of a LeaseRequest. `server` is the one that was asked; empty: none was left. */
export type LeaseOutcome = { readonly server: string } & (
  | { readonly kind: 'lease'; readonly lease: Lease }
  | { readonly kind: 'released' }
  /** Another process may have the ids. `outdated`: the server has accepted a later turn, which was not this one's. */
  | { readonly kind: 'revoked' | 'outdated'; readonly message: string }
  /** The server has no such lease. It will not extend it, but the interval remains valid. */
  | { readonly kind: 'unknown'; readonly message: string }
  | { readonly kind: 'elsewhere'; readonly owner: string; readonly message: string }
  /** The request may be repeated at this server. `claiming`: it is claiming a machine id for the token. */
  | { readonly kind: 'not ready'; readonly message: string; readonly retryAfterMs: number; readonly claiming?: boolean }
  /** Another server may grant a lease. `failure` is given where a repetition does not help. */
  | { readonly kind: 'refused'; readonly message: string; readonly failure?: FirnError }
  /** No id may be issued under these terms, which may be wrong in every respect. */
  | { readonly kind: 'unusable'; readonly message: string; readonly terms: UnusableTerms }
  /** `sent`: the server may have done it. */
  | { readonly kind: 'no answer'; readonly message: string; readonly sent: boolean }
);

/** What is needed to give back a lease that cannot be used. */
export interface UnusableTerms {
  readonly id: string;
  readonly server: string;
  readonly fromTick: number;
  readonly endMs: number;
}

/** A lease that a generator has lost. Until the next one, `next()` throws. */
export interface LeaseLoss {
  /**
   * - `revoked`: a server ended it, because another process may have its ids
   * - `expired`: its interval ended before a server extended it
   */
  readonly kind: 'revoked' | 'expired';
  readonly machineId: number;
  /** A sentence. */
  readonly reason: string;
}
