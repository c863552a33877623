import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Client, type ClientOptions, FirnError, segmentTag } from '../src/index.js';
import { settingsOf, splitAddress } from '../src/options.js';

function faultOf(servers: string, options: ClientOptions = {}): string {
  try {
    new Client(servers, options).close();
  } catch (fault) {
    assert(fault instanceof FirnError);
    assert.equal(fault.kind, 'invalid');
    return fault.message;
  }
  return '';
}

test('names every fault of the options', () => {
  const fault = faultOf('list://nowhere', { attemptsMax: 0, deadlineMs: 1.5, localRanges: [segmentTag('a'), segmentTag('a')] });
  for (const part of ['nowhere', 'attemptsMax', 'deadlineMs', 'a tag twice']) assert(fault.includes(part), part);
  assert.match(faultOf('http://a:1'), /neither firn:\/\/... nor list:\/\//);
  assert.match(faultOf('list://a:1', { tls: { cert: 'a' } }), /both cert and key/);
  assert.equal(faultOf('list://a:1,[::1]:7609'), '');
});

test('reads addresses', () => {
  assert.deepEqual(splitAddress('a.example:7609'), { host: 'a.example', port: 7609 });
  assert.deepEqual(splitAddress('[2001:db8::7]:1'), { host: '2001:db8::7', port: 1 });
  for (const text of ['', 'a', ':1', 'a:', 'a:0', 'a:65536', 'a:1:2', 'a b:1', 'a\u0007:1', '[::1]', '2001:db8::7:1',
    'unix:1']) {
    assert.equal(splitAddress(text), undefined, text);
  }
});

test('refuses paths that no Unix socket can have', () => {
  for (const [address, words] of [
    ['unix:firn.sock', 'requires an absolute path'], ['unix:', 'requires an absolute path'],
    ['unix:/a\0b', 'no NUL'], [`unix:/${'x'.repeat(107)}`, 'at most 107 bytes'],
    [`unix:/${'\u00e4'.repeat(54)}`, 'at most 107 bytes'], ['a:1,unix:firn.sock', 'requires an absolute path'],
    ['/run/firn.sock', 'not host:port'],
  ] as const) {
    assert(faultOf(`list://${address}`).includes(words), address);
  }
  assert.deepEqual(settingsOf(`list://a:1,unix:/${'x'.repeat(106)}`, {}).seeds, ['a:1', `unix:/${'x'.repeat(106)}`]);
});

test('keeps a seed once', () => {
  assert.deepEqual(settingsOf('firn://a:1,b:1,a:1', {}).seeds, ['a:1', 'b:1']);
});
