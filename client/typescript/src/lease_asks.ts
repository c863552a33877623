// The methods of firn.thrift for leases of machine ids.

import type { Ask } from './asks.js';
import { type FrameReader, type FrameWriter, Type } from './codec.js';
import { type Failure, failed, type LeaseFault, printable } from './errors.js';

/**
 * A lease as a server sent it. Its holder may issue the ids
 * `baseBits | tick << tickShift | sequence << sequenceShift` for every tick in [fromTick, untilTick) and every sequence
 * in [sequenceFrom, sequenceFrom + sequenceCount).
 */
export interface LeaseTerms {
  /** Secret; names its server. */
  lease: string;
  /** Public. */
  number: bigint;
  machine: number;
  worker: number;
  rack: number;
  baseBits: bigint;
  tickShift: number;
  sequenceShift: number;
  sequenceBits: number;
  sequenceFrom: bigint;
  sequenceCount: bigint;
  tickMs: number;
  epochMs: bigint;
  fromTick: bigint;
  untilTick: bigint;
  renewInMs: number;
  /** It is extended no further. */
  ending: boolean;
  /** Address of the server that has the lease. */
  server: string;
}

/** A request for a lease. The same token gets the same lease. */
export interface LeaseAsk {
  readonly token: string;
  readonly name: string;
  readonly clockMs: bigint;
  readonly aheadMs: number | undefined;
  readonly rack: number | undefined;
}

/** A request for a later end. */
export interface LeaseRenewal {
  readonly lease: string;
  /** New for each renewal, the same in its repetitions. */
  readonly turn: string;
  /** The turn of the last answer; empty: there was none. */
  readonly acknowledged: string;
  readonly clockMs: bigint;
  readonly aheadMs: number | undefined;
}

/** Gives a lease back. */
export interface LeaseEnd {
  readonly lease: string;
  /** The last one sent, answered or not; empty: none was. */
  readonly turn: string;
  /** The highest tick used; undefined: unknown. */
  readonly usedTick: bigint | undefined;
}

const FAULTS: readonly LeaseFault[] = ['UNKNOWN_LEASE', 'OUTDATED', 'REVOKED', 'ANOTHER_SERVERS', 'NO_LEASES'];

export function askLease(ask: LeaseAsk): Ask<LeaseTerms> {
  return {
    ...ofTerms, method: 'lease',
    write: (to) => to.struct(1, () => {
      to.string(1, ask.token);
      to.string(2, ask.name);
      to.i64(3, ask.clockMs);
      if (ask.aheadMs !== undefined) to.i32(4, ask.aheadMs);
      if (ask.rack !== undefined) to.i32(5, ask.rack);
    }),
  };
}

export function askRenewal(renewal: LeaseRenewal): Ask<LeaseTerms> {
  return {
    ...ofTerms, method: 'renewLease',
    write: (to) => to.struct(1, () => {
      to.string(1, renewal.lease);
      to.string(2, renewal.turn);
      to.string(3, renewal.acknowledged);
      to.i64(4, renewal.clockMs);
      if (renewal.aheadMs !== undefined) to.i32(5, renewal.aheadMs);
    }),
  };
}

/** The answer to a release is `true`. */
export function askRelease(end: LeaseEnd): Ask<true> {
  return {
    ...ofLeases, method: 'releaseLease', type: Type.STOP,
    write: (to: FrameWriter) => to.struct(1, () => {
      to.string(1, end.lease);
      to.string(2, end.turn);
      if (end.usedTick !== undefined) to.i64(3, end.usedTick);
    }),
    read: () => true,
    faultOf: () => '',
  };
}

const ofLeases = { tag: '', givesIds: false, idsOf: (): readonly bigint[] => [], readSecondRefusal: readLeaseRefusal };
const ofTerms = { ...ofLeases, type: Type.STRUCT, read: readTerms, faultOf: faultOfTerms };

/** Whether a lease may be used is decided where it is: see `readLease` in lease.ts. */
function faultOfTerms(terms: LeaseTerms): string {
  return isReadable(terms.lease) && isReadable(terms.server) ? '' : 'a text of its lease is not printable';
}

/** Returns whether the text has no control character, and was UTF-8. */
function isReadable(text: string): boolean {
  return printable(text) === text && !text.includes('\ufffd');
}

function readTerms(from: FrameReader): LeaseTerms {
  const terms: LeaseTerms = {
    lease: '', number: 0n, machine: 0, worker: 0, rack: 0, baseBits: 0n, tickShift: 0, sequenceShift: 0,
    sequenceBits: 0, sequenceFrom: 0n, sequenceCount: 0n, tickMs: 0, epochMs: 0n, fromTick: 0n, untilTick: 0n,
    renewInMs: 0, ending: false, server: '',
  };
  from.struct((type, field) => {
    if (type === Type.I64) return readI64(terms, field, from);
    if (type === Type.I32) return readI32(terms, field, from);
    if (field === 1 && type === Type.STRING) terms.lease = from.string();
    else if (field === 17 && type === Type.BOOL) terms.ending = from.bool();
    else if (field === 18 && type === Type.STRING) terms.server = from.string();
    else return false;
    return true;
  });
  return terms;
}

function readI64(terms: LeaseTerms, field: number, from: FrameReader): boolean {
  switch (field) {
    case 2: terms.number = from.i64(); return true;
    case 6: terms.baseBits = from.i64(); return true;
    case 10: terms.sequenceFrom = from.i64(); return true;
    case 11: terms.sequenceCount = from.i64(); return true;
    case 13: terms.epochMs = from.i64(); return true;
    case 14: terms.fromTick = from.i64(); return true;
    case 15: terms.untilTick = from.i64(); return true;
  }
  return false;
}

function readI32(terms: LeaseTerms, field: number, from: FrameReader): boolean {
  switch (field) {
    case 3: terms.machine = from.i32(); return true;
    case 4: terms.worker = from.i32(); return true;
    case 5: terms.rack = from.i32(); return true;
    case 7: terms.tickShift = from.i32(); return true;
    case 8: terms.sequenceShift = from.i32(); return true;
    case 9: terms.sequenceBits = from.i32(); return true;
    case 12: terms.tickMs = from.i32(); return true;
    case 16: terms.renewInMs = from.i32(); return true;
  }
  return false;
}

function readLeaseRefusal(from: FrameReader): Failure {
  let fault = 0;
  let text = '';
  let server = '';
  from.struct((type, field) => {
    if (field === 1 && type === Type.I32) fault = from.i32();
    else if (field === 2 && type === Type.STRING) text = from.string();
    else if (field === 3 && type === Type.STRING) server = from.string();
    else return false;
    return true;
  });
  const failure = failed('refused', text);
  failure.lease = { fault: FAULTS[fault - 1] ?? 'OTHER', server };
  return failure;
}
