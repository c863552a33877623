// Jumps of the wall clock, in the table tests/contract/jumps.json that the generators of all languages share.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { FirnError } from '../src/errors.js';
import type { LeaseOutcome } from '../src/lease_request.js';
import { EPOCH_MS, lease, Rig, tickOf } from './lease_rig.js';

const HOUR = 3_600_000;
const SERVER = '10.0.0.7:7609';

class World extends Rig {
  private seen = 0; // of the requests that were sent
  private woken = false;

  constructor() {
    super();
    this.ids.onJump = () => void (this.woken = true);
  }

  play(step: string): void {
    const [verb, ...words] = step.split(' ');
    const word = words[0]!;
    switch (verb) {
      case 'lease':
        this.tick();
        this.give('terms');
        this.seen = this.sent.length;
        return;
      case 'pass': return this.pass(Number(word));
      case 'step':
        this.clock.step(Number(word));
        return this.clock.advance(1);
      case 'next': return this.next(word);
      case 'look': return assert(this.ids.held);
      case 'answer': return this.give(word);
      case 'sent':
        assert.deepEqual(this.sent.slice(this.seen).map(([, request]) => request.kind), words);
        this.seen = this.sent.length;
        return;
    }
    assert.fail('unknown step');
  }

  private next(expected: string): void {
    if (expected === 'id') assert.equal(tickOf(this.take(1)[0]!), this.clock.wallMs() - EPOCH_MS);
    else this.assertNone(/the wall clock has jumped forward by 3600 s, and no server has confirmed it/);
    if (this.woken) this.tick();
    this.woken = false;
  }

  private give(word: string): void {
    const { kind } = this.sent.at(-1)![1];
    this.answer(kind, this.outcome(word, kind === 'renewal'));
  }

  private outcome(word: string, renewed: boolean): LeaseOutcome {
    const now = this.clock.wallMs();
    const { held } = this.ids;
    const message = "the program's clock is ahead of the server's";
    switch (word) {
      case 'terms': {
        const [machine, from] = held && renewed ? [held.machine, held.fromTick + EPOCH_MS] : [held ? 8 : 7, now - HOUR];
        return { kind: 'lease', server: SERVER, lease: lease(machine, from, now + 60_000, { renewInMs: 20_000 }) };
      }
      case 'unknown': return { kind: 'unknown', server: SERVER, message: '' };
      case 'refused': return { kind: 'refused', server: SERVER, message, failure: new FirnError('refused', message) };
    }
    return { kind: 'no answer', server: SERVER, sent: true, message: 'timeout' };
  }
}

const path = process.env['FIRN_FRAMES'] ?? '../../tests/contract/frames.json';
const table = JSON.parse(readFileSync(join(dirname(path), 'jumps.json'), 'utf8')) as
  { cases: { case: string; steps: string[] }[] };
assert(table.cases.length > 10);
for (const one of table.cases) {
  test(one.case, (context) => {
    const world = new World();
    for (const [i, step] of one.steps.entries()) {
      context.diagnostic(`step ${i + 1}: ${step}`);
      world.play(step);
    }
  });
}
