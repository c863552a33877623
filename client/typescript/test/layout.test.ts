import assert from 'node:assert/strict';
import { test } from 'node:test';

import { IdCheck, readLayout } from '../src/layout.js';

const EPOCH_MS = 1_704_067_200_000;
const NOW_MS = EPOCH_MS + 1_000_000_000;

function check(layout: string, id: bigint, elapsed = 0): string {
  return new IdCheck(layout, new Set(['order']), NOW_MS, 100).faultOf('order', [id], 100 + elapsed);
}

test('reads named and custom layouts', () => {
  for (const text of ['firn', 'twitter', 'vesta-max-peak', 'vesta-min-granularity', 'js-safe',
                      'time:31s machine:10 sequence:1', 'time:39@10ms machine:12 sequence:12 epoch:2020-01-01',
                      'version:1 type:1=1 method:2 time:40 sequence:10 machine:10']) {
    assert(readLayout(text), text);
  }
  assert.equal(readLayout('time:39@10ms machine:24')!.tickMs, 10);
  assert.equal(readLayout('time:40 machine:23 epoch:2020-01-01')!.epochMs, Date.UTC(2020, 0, 1));
});

test('refuses texts that are not layouts', () => {
  for (const text of ['', 'machine:10', 'time:x machine:10', 'time:41 machine:30', 'future']) {
    assert.equal(readLayout(text), undefined, text);
  }
});

test('accepts an id of now', () => {
  assert.equal(check('firn', 1_000_000_000n << 22n | 5n), '');
  assert.equal(check('firn', 1_000_000_000n + 3_600_000n << 22n), '');
  assert.equal(check('firn', 1_000_000_000n + 90_000_000n << 22n, 86_400_000), '', 'a day later');
});

test('refuses ids that the server cannot have issued', () => {
  assert.match(check('firn', 0n), /no id is 0/);
  assert.match(check('firn', -5n), /no id is -5/);
  assert.match(check('firn', 1_000_000_000n + 90_000_000n << 22n), /more than a day from the clock/);
  assert.match(check('firn', 1_000_000_000n - 90_000_000n << 22n), /more than a day from the clock/);
  assert.match(check('js-safe', 1n << 60n), /a fixed bit of the layout differs/);
});

test('checks only the sign of tags without a time, and of unknown layouts', () => {
  const faultOf = (layout: string, tag: string, id: bigint): string =>
    new IdCheck(layout, new Set(['order']), NOW_MS, 0).faultOf(tag, [id], 0);
  assert.equal(faultOf('firn', 'count', 7n), '');
  assert.equal(faultOf('a newer layout', 'order', 7n), '');
  assert.match(faultOf('a newer layout', 'order', -7n), /no id is/);
});

test('accepts negative ids of a layout whose version is the highest bit', () => {
  const layout = 'version:1 time:40 sequence:10 machine:13';
  assert.equal(check(layout, BigInt.asIntN(64, 1n << 63n | 1_000_000_000n << 23n)), '');
});
