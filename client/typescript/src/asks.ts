// The methods of firn.thrift that the client calls: how each request is written and its answer read.

import { BrokenFrame, FrameReader, FrameWriter, MessageType, Type } from './codec.js';
import { type Failure, failed, printable, reasonOf } from './errors.js';

/** Ids in compact form: first, first + stride, ... */
export interface Run {
  first: bigint;
  count: number;
  readonly stride: bigint;
}

export interface ServerStatus {
  clusterUuid: string;
  layout: string;
  state: number;
  wallMs: bigint;
  tags: TagStatus[];
}

export interface TagStatus {
  tag: string;
  strategy: string;
  asIssued: boolean;
}

export interface ServerEntry {
  address: string;
  rack: number;
  weight: number;
  online: boolean;
  state: number;
  tls: boolean;
}

export interface ServerList {
  version: bigint;
  servers: ServerEntry[];
  askAgainMs: number;
}

export const ServerState = { NOT_READY: 1, READY: 2, OFFLINE: 3, DRAINING: 4 } as const;

/** A request, and the rules of its answer. T is the successful answer. */
export interface Ask<T> {
  readonly method: string;
  readonly tag: string;
  /** The answer is ids of the tag. */
  readonly givesIds: boolean;
  /** The Thrift type of the result; STOP: it has none. */
  readonly type: number;
  write(to: FrameWriter): void;
  read(from: FrameReader): T;
  /** Returns a sentence if this cannot be an answer to the request. */
  faultOf(answer: T): string;
  /** Returns the ids of an answer by which the server's cluster can be checked. */
  idsOf(answer: T): readonly bigint[];
  /** Reads the second exception of a method that has one. */
  readSecondRefusal?(from: FrameReader): Failure;
}

const none: readonly bigint[] = [];
const APPLICATION_UNKNOWN_METHOD = 1;

export function askId(tag: string): Ask<bigint> {
  return {
    method: 'getId', tag, givesIds: true, type: Type.I64,
    write: (to) => to.string(1, tag),
    read: (from) => from.i64(),
    faultOf: () => '',
    idsOf: (id) => [id],
  };
}

export function askIds(tag: string, count: number): Ask<bigint[]> {
  return {
    method: 'getIds', tag, givesIds: true, type: Type.LIST,
    write: (to) => {
      to.string(1, tag);
      to.i32(2, count);
    },
    read: (from) => from.list(Type.I64, () => from.i64()),
    faultOf: (ids) => faultOfIds(ids, count),
    idsOf: (ids) => ids,
  };
}

export function askRuns(tag: string, count: number): Ask<Run[]> {
  return {
    method: 'getRuns', tag, givesIds: true, type: Type.LIST,
    write: (to) => {
      to.string(1, tag);
      to.i64(2, BigInt(count));
    },
    read: (from) => from.list(Type.STRUCT, () => readRun(from)),
    faultOf: (runs) => faultOfRuns(runs, count),
    idsOf: (runs) => runs.flatMap((run) => [run.first, run.first + BigInt(run.count - 1) * run.stride]),
  };
}

export function askText(tag: string): Ask<string> {
  return {
    method: 'getText', tag, givesIds: true, type: Type.STRING,
    write: (to) => to.string(1, tag),
    read: (from) => from.string(),
    faultOf: (text) => {
      if (text === '') return 'its text is empty';
      return printable(text) === text ? '' : 'its text has a control character';
    },
    idsOf: () => none,
  };
}

export const askStatus: Ask<ServerStatus> = {
  method: 'status', tag: '', givesIds: false, type: Type.STRUCT,
  write: () => undefined,
  read: readStatus,
  faultOf: () => '',
  idsOf: () => none,
};

export function askServers(knownVersion: bigint): Ask<ServerList> {
  return {
    method: 'servers', tag: '', givesIds: false, type: Type.STRUCT,
    write: (to) => to.i64(1, knownVersion),
    read: readServerList,
    faultOf: () => '',
    idsOf: () => none,
  };
}

/** Writes the frame of a request. */
export function writeAsk(ask: Ask<unknown>, sequence: number, to: FrameWriter): void {
  to.beginCall(ask.method, sequence);
  ask.write(to);
  to.end();
}

const scratch = new FrameWriter();

/** Returns the frame of a request, for a sequence number that is not known yet. */
export function encodeAsk(ask: Ask<unknown>): Buffer {
  scratch.clear(false); // also after a request that could not be encoded
  writeAsk(ask, 0, scratch);
  return Buffer.from(scratch.written());
}

export type Answered<T> = { readonly answer: T } | { readonly failure: Failure };

/** Reads the answer to a request; every fault of the frame becomes a failure. */
export function readAnswer<T>(ask: Ask<T>, sequence: number, frame: Buffer): Answered<T> {
  try {
    const from = new FrameReader(frame);
    const head = from.messageBegin();
    if (head.type === MessageType.EXCEPTION) return { failure: readException(from) };
    if (head.name !== ask.method || head.type !== MessageType.REPLY || head.sequence !== sequence) {
      return { failure: failed('broken', 'its answer does not belong to the request') };
    }
    return readResult(ask, from);
  } catch (fault) {
    if (!(fault instanceof BrokenFrame)) throw fault;
    return { failure: failed('broken', `its answer cannot be read: ${fault.message}`) };
  }
}

function readResult<T>(ask: Ask<T>, from: FrameReader): Answered<T> {
  let answer: T | undefined;
  let refusal: Failure | undefined;
  from.struct((type, field) => {
    if (field === 0 && type === ask.type) answer = ask.read(from);
    else if (field === 1 && type === Type.STRUCT) refusal = readRefusal(from);
    else if (field === 2 && type === Type.STRUCT && ask.readSecondRefusal) refusal = ask.readSecondRefusal(from);
    else return false;
    return true;
  });
  if (refusal) return { failure: refusal };
  if (ask.type === Type.STOP) answer = ask.read(from);
  if (answer === undefined) {
    return { failure: failed('broken', 'its answer holds neither ids nor a refusal') };
  }
  const fault = ask.faultOf(answer);
  return fault ? { failure: failed('broken', fault) } : { answer };
}

function readException(from: FrameReader): Failure {
  let text = '';
  let kind = 0;
  from.struct((type, field) => {
    if (field === 1 && type === Type.STRING) text = from.string();
    else if (field === 2 && type === Type.I32) kind = from.i32();
    else return false;
    return true;
  });
  const lacks = kind === APPLICATION_UNKNOWN_METHOD;
  const failure = failed(lacks ? 'wrong service' : 'broken',
                         lacks ? `it does not know the method: ${text}` : `it failed: ${text}`);
  failure.lacksMethod = lacks;
  return failure;
}

function readRefusal(from: FrameReader): Failure {
  let reason = 0;
  let text = '';
  let retryAfterMs = 0;
  let anotherMayHelp = false;
  from.struct((type, field) => {
    if (field === 1 && type === Type.I32) reason = from.i32();
    else if (field === 2 && type === Type.STRING) text = from.string();
    else if (field === 3 && type === Type.I32) retryAfterMs = from.i32();
    else if (field === 4 && type === Type.BOOL) anotherMayHelp = from.bool();
    else return false;
    return true;
  });
  const failure = failed('refused', text, reasonOf(reason));
  failure.retryAfterMs = Math.max(0, retryAfterMs);
  failure.anotherMayHelp = anotherMayHelp;
  return failure;
}

function readRun(from: FrameReader): Run {
  let first = 0n;
  let count = 0;
  let stride = 0n;
  from.struct((type, field) => {
    if (field === 1 && type === Type.I64) first = from.i64();
    else if (field === 2 && type === Type.I32) count = from.i32();
    else if (field === 3 && type === Type.I64) stride = from.i64();
    else return false;
    return true;
  });
  return { first, count, stride };
}

function readStatus(from: FrameReader): ServerStatus {
  const status: ServerStatus = { clusterUuid: '', layout: '', state: 0, wallMs: 0n, tags: [] };
  from.struct((type, field) => {
    if (field === 1 && type === Type.STRING) status.clusterUuid = from.string();
    else if (field === 5 && type === Type.STRING) status.layout = from.string();
    else if (field === 7 && type === Type.I32) status.state = from.i32();
    else if (field === 10 && type === Type.I64) status.wallMs = from.i64();
    else if (field === 14 && type === Type.LIST) status.tags = from.list(Type.STRUCT, () => readTag(from));
    else return false;
    return true;
  });
  return status;
}

function readTag(from: FrameReader): TagStatus {
  const tag: TagStatus = { tag: '', strategy: '', asIssued: false };
  from.struct((type, field) => {
    if (field === 1 && type === Type.STRING) tag.tag = from.string();
    else if (field === 2 && type === Type.STRING) tag.strategy = from.string();
    else if (field === 6 && type === Type.BOOL) tag.asIssued = from.bool();
    else return false;
    return true;
  });
  return tag;
}

function readServerList(from: FrameReader): ServerList {
  const list: ServerList = { version: 0n, servers: [], askAgainMs: 0 };
  from.struct((type, field) => {
    if (field === 3 && type === Type.I64) list.version = from.i64();
    else if (field === 4 && type === Type.LIST) list.servers = from.list(Type.STRUCT, () => readEntry(from));
    else if (field === 6 && type === Type.I32) list.askAgainMs = from.i32();
    else return false;
    return true;
  });
  return list;
}

function readEntry(from: FrameReader): ServerEntry {
  const entry: ServerEntry = { address: '', rack: 0, weight: 0, online: false, state: 0, tls: false };
  from.struct((type, field) => {
    if (field === 1 && type === Type.STRING) entry.address = from.string();
    else if (field === 2 && type === Type.I32) entry.rack = from.i32();
    else if (field === 3 && type === Type.I32) entry.weight = from.i32();
    else if (field === 4 && type === Type.BOOL) entry.online = from.bool();
    else if (field === 5 && type === Type.I32) entry.state = from.i32();
    else if (field === 6 && type === Type.BOOL) entry.tls = from.bool();
    else return false;
    return true;
  });
  return entry;
}

function faultOfIds(ids: readonly bigint[], count: number): string {
  if (ids.length !== count) return `it gave ${ids.length} ids, not ${count}`;
  for (let i = 1; i < ids.length; i++) {
    if (ids[i]! > ids[i - 1]!) continue;
    // Only an obfuscated tag's ids do not ascend.
    return new Set(ids).size === count ? '' : 'its answer contains an id twice';
  }
  return '';
}

/** Returns a sentence if the runs are not `count` ids in ascending order. */
function faultOfRuns(runs: readonly Run[], count: number): string {
  let got = 0;
  let last = -(1n << 63n);
  for (const run of runs) {
    if (run.count < 1 || run.stride < 1n || run.first <= last) return 'a run is empty, or does not ascend';
    last = run.first + BigInt(run.count - 1) * run.stride;
    if (last >= 1n << 63n) return 'a run exceeds the largest 64-bit id';
    got += run.count;
  }
  return got === count ? '' : `its runs hold ${got} ids, not ${count}`;
}
