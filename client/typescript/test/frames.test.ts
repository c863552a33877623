// The frames of tests/contract/frames.json, which all hand-written codecs share. FIRN_FRAMES is its path.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import {
  type Ask, askId, askIds, askRuns, askServers, askStatus, askText, readAnswer, type Run, type ServerList,
  type ServerStatus, writeAsk,
} from '../src/asks.js';
import { FrameSplitter, FrameWriter } from '../src/codec.js';
import { askLease, askRelease, askRenewal, type LeaseTerms } from '../src/lease_asks.js';

interface Frame {
  case: string;
  method: string;
  sequence: number;
  arguments?: { tag?: string; count?: number; known_version?: string } & LeaseArguments;
  frame: string;
  answer?: unknown;
  refusal?: { reason: number; message: string; retry_after_ms: number; another_server_may_help: boolean };
  lease_refusal?: { fault: number; message: string; server: string };
  lacks_method?: boolean;
  broken?: boolean;
  incomplete?: boolean;
}

interface LeaseArguments {
  token?: string;
  name?: string;
  rack?: number;
  lease?: string;
  turn?: string;
  acknowledged?: string;
  clock_ms?: string;
  ahead_ms?: number;
  used_tick?: string;
}

const path = process.env['FIRN_FRAMES'] ?? '../../tests/contract/frames.json';
const frames = JSON.parse(readFileSync(path, 'utf8')) as Record<string, Frame[]>;
const requests = [...frames['requests']!, ...frames['lease_requests'] ?? []];
const answers = [...frames['answers']!, ...frames['lease_answers'] ?? []];
const FAULTS = ['OTHER', 'UNKNOWN_LEASE', 'OUTDATED', 'REVOKED', 'ANOTHER_SERVERS', 'NO_LEASES'];
const REASONS = ['', 'BAD_REQUEST', 'UNKNOWN_TAG', 'NOT_READY', 'CLOCK', 'OVERLOADED', 'EXHAUSTED', 'DRAINING',
                 'REJECTED', 'STORE_DOWN', 'INTERNAL'];

function leaseAskOf(method: string, said: LeaseArguments): Ask<unknown> | undefined {
  const { token = '', name = '', rack, lease = '', turn = '', acknowledged = '', ahead_ms: aheadMs } = said;
  const clockMs = BigInt(said.clock_ms ?? 0);
  const usedTick = said.used_tick === undefined ? undefined : BigInt(said.used_tick);
  switch (method) {
    case 'lease': return askLease({ token, name, rack, clockMs, aheadMs });
    case 'renewLease': return askRenewal({ lease, turn, acknowledged, clockMs, aheadMs });
    case 'releaseLease': return askRelease({ lease, turn, usedTick });
  }
  return undefined;
}

/** Terms as frames.json has them. */
function toldTerms(terms: LeaseTerms): unknown {
  const entries = Object.entries(terms).map(([name, value]) => {
    const told: unknown = typeof value === 'bigint' ? String(value) : value;
    return [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), told];
  });
  return Object.fromEntries(entries);
}

function askOf(frame: Frame): Ask<unknown> {
  const leaseAsk = leaseAskOf(frame.method, frame.arguments ?? {});
  if (leaseAsk) return leaseAsk;
  const { tag = '', count = 0, known_version: version = '0' } = frame.arguments ?? {};
  switch (frame.method) {
    case 'getId': return askId(tag);
    case 'getIds': return askIds(tag, count);
    case 'getRuns': return askRuns(tag, count);
    case 'getText': return askText(tag);
    case 'status': return askStatus;
  }
  assert.equal(frame.method, 'servers');
  return askServers(BigInt(version));
}

/** A result as frames.json has it. */
function told(method: string, answer: unknown): unknown {
  switch (method) {
    case 'getIds': return (answer as bigint[]).map(String);
    case 'getRuns': return (answer as Run[]).map((run) => [String(run.first), run.count, String(run.stride)]);
    case 'getText': return answer;
    case 'lease': case 'renewLease': return toldTerms(answer as LeaseTerms);
    case 'releaseLease': return {};
    case 'status': {
      const status = answer as ServerStatus;
      return {
        cluster_uuid: status.clusterUuid, layout: status.layout, state: status.state, wall_ms: String(status.wallMs),
        tags: status.tags.map((one) => ({ tag: one.tag, strategy: one.strategy, as_issued: one.asIssued })),
      };
    }
    case 'servers': {
      const list = answer as ServerList;
      return { version: String(list.version), ask_again_ms: list.askAgainMs, servers: list.servers };
    }
  }
  return String(answer);
}

/** What a connection makes of these bytes: the first frame, nothing yet, or a length that is none. */
function split(bytes: Buffer): Buffer | 'incomplete' | 'broken' {
  let found: Buffer | undefined;
  const valid = new FrameSplitter().receive(bytes, (frame) => {
    found ??= Buffer.from(frame);
    return true;
  });
  return found ?? (valid ? 'incomplete' : 'broken');
}

for (const one of requests) {
  test(`writes ${one.case}`, () => {
    const out = new FrameWriter();
    writeAsk(askOf(one), one.sequence, out);
    assert.equal(out.written().toString('hex'), one.frame);
  });
}

for (const one of answers) {
  test(`reads ${one.case}`, () => {
    const frame = split(Buffer.from(one.frame, 'hex'));
    if (one.incomplete) return assert.equal(frame, 'incomplete');
    if (frame === 'broken') return assert(one.broken);
    assert(typeof frame !== 'string');
    const outcome = readAnswer(askOf(one), one.sequence, frame);
    if ('answer' in outcome) return assert.deepEqual(told(one.method, outcome.answer), one.answer);
    const { failure } = outcome;
    if (one.broken) return assert.equal(failure.end, 'broken');
    if (one.lacks_method) return assert(failure.lacksMethod);
    if (one.lease_refusal) {
      const { fault, message, server } = one.lease_refusal;
      return assert.deepEqual([failure.lease, failure.detail], [{ fault: FAULTS[fault], server }, message]);
    }
    assert.deepEqual(
      [failure.end, failure.reason, failure.detail, failure.retryAfterMs, failure.anotherMayHelp],
      ['refused', REASONS[one.refusal!.reason], one.refusal!.message, one.refusal!.retry_after_ms,
       one.refusal!.another_server_may_help]);
  });

  test(`reads no further than its end: ${one.case}`, () => {
    const whole = Buffer.from(one.frame, 'hex');
    for (let length = 0; length < whole.length - 4; length++) {
      readAnswer(askOf(one), one.sequence, whole.subarray(4, 4 + length)); // must return
    }
  });
}
