// What a lease permits, after its terms were checked.

import type { Layout } from './layout.js';
import type { LeaseTerms } from './lease_asks.js';
import { splitAddress } from './options.js';

const LARGEST_ID = (1n << 64n) - 1n;
const LARGEST_TIME_MS = 8.64e15; // that a Date can show

/** The ids of one machine id with a tick in [fromTick, untilTick), and the server that extends it. */
export interface Lease {
  /** Secret; names its server. */
  readonly id: string;
  readonly server: string;
  readonly machine: number;
  readonly baseBits: bigint;
  readonly tickShift: bigint;
  readonly sequenceShift: bigint;
  readonly sequenceBits: number;
  readonly sequenceFrom: number;
  readonly sequenceCount: number;
  readonly tickMs: number;
  readonly epochMs: number;
  readonly fromTick: number;
  untilTick: number;
  readonly renewInMs: number;
  readonly ending: boolean;
}

/**
 * Returns the lease, or a sentence that says why no id may be issued under it. `layout` is that of the cluster; undefined
 * if this version cannot read it.
 */
export function readLease(terms: LeaseTerms, layout: Layout | undefined): Lease | string {
  const numbers = [terms.sequenceFrom, terms.sequenceCount, terms.epochMs, terms.fromTick, terms.untilTick];
  if (!numbers.every((one) => Number.isSafeInteger(Number(one)))) return 'one of its numbers is too large';
  const lease: Lease = {
    id: terms.lease, server: terms.server, machine: terms.machine, baseBits: BigInt.asUintN(64, terms.baseBits),
    tickShift: BigInt(terms.tickShift), sequenceShift: BigInt(terms.sequenceShift), sequenceBits: terms.sequenceBits,
    sequenceFrom: Number(terms.sequenceFrom), sequenceCount: Number(terms.sequenceCount), tickMs: terms.tickMs,
    epochMs: Number(terms.epochMs), fromTick: Number(terms.fromTick), untilTick: Number(terms.untilTick),
    renewInMs: terms.renewInMs, ending: terms.ending,
  };
  return faultOf(lease, layout) || lease;
}

/** When a tick of the lease begins, by the wall clock. */
export function startOf(lease: Pick<Lease, 'epochMs' | 'tickMs'>, tick: number): number {
  return lease.epochMs + tick * lease.tickMs;
}

/** Returns whether ticks and sequences of both leases mean the same. */
export function haveOneLayout(one: Lease, other: Lease): boolean {
  return one.tickMs === other.tickMs && one.epochMs === other.epochMs && one.tickShift === other.tickShift &&
    one.sequenceShift === other.sequenceShift && one.sequenceBits === other.sequenceBits;
}

function faultOf(lease: Lease, layout: Layout | undefined): string {
  if (lease.id === '' || !splitAddress(lease.server)) return 'it has no id, or no server';
  if (lease.tickMs < 1 || Math.abs(startOf(lease, lease.untilTick)) > LARGEST_TIME_MS) return 'its time is impossible';
  if (lease.fromTick < 0 || lease.untilTick <= lease.fromTick) {
    return `it is from tick ${lease.fromTick} to ${lease.untilTick}`;
  }
  const { sequenceBits, sequenceFrom, sequenceCount } = lease;
  if (!isShift(lease.tickShift) || !isShift(lease.sequenceShift) || sequenceBits < 0 || sequenceBits > 52) {
    return 'its fields are not in 64 bits';
  }
  if (sequenceFrom < 0 || sequenceCount < 1 || sequenceFrom + sequenceCount > 2 ** sequenceBits) {
    return `its sequences ${sequenceFrom} to ${sequenceFrom + sequenceCount} are not in ${sequenceBits} bits`;
  }
  const sequence = maskOf(sequenceBits) << lease.sequenceShift;
  const ticks = maskOf((lease.untilTick - 1).toString(2).length) << lease.tickShift;
  const time = layout ? layout.timeMask << layout.timeShift : ticks;
  if ((sequence | time | ticks) > LARGEST_ID || (ticks & ~time) !== 0n) return 'its ticks do not fit into the layout';
  if ((lease.baseBits & (sequence | time)) !== 0n || (sequence & time) !== 0n) return 'its fields overlap';
  return layout ? faultInLayout(lease, layout) : '';
}

function faultInLayout(lease: Lease, layout: Layout): string {
  if (lease.tickShift !== layout.timeShift || lease.tickMs !== layout.tickMs || lease.epochMs !== layout.epochMs) {
    return 'its ticks are not those of the layout';
  }
  return (lease.baseBits & layout.fixedMask) === layout.fixedBits ? '' : 'a fixed bit of the layout differs';
}

function isShift(shift: bigint): boolean {
  return shift >= 0n && shift < 64n;
}

function maskOf(bits: number): bigint {
  return (1n << BigInt(bits)) - 1n;
}
