import assert from 'node:assert/strict';
import { test } from 'node:test';

import { askId, writeAsk } from '../src/asks.js';
import { FRAME_MAX, FrameSplitter, FrameWriter } from '../src/codec.js';

function framesOf(chunks: Buffer[]): string[] {
  const splitter = new FrameSplitter();
  const found: string[] = [];
  for (const chunk of chunks) {
    assert(splitter.receive(chunk, (frame) => found.push(frame.toString()) > 0));
    chunk.fill(0); // a chunk may be reused
  }
  return found;
}

function framed(text: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(text.length);
  return Buffer.concat([length, Buffer.from(text)]);
}

test('splits frames however they arrive', () => {
  const texts = ['a', 'bcd', 'x'.repeat(300), 'e'];
  const bytes = Buffer.concat(texts.map(framed));
  for (const size of [1, 2, 3, 4, 5, 7, 100, bytes.length]) {
    const copy = Buffer.from(bytes);
    const chunks: Buffer[] = [];
    for (let at = 0; at < copy.length; at += size) chunks.push(copy.subarray(at, at + size));
    assert.deepEqual(framesOf(chunks), texts, `in chunks of ${size}`);
  }
});

test('stops when a frame ends the connection', () => {
  const found: string[] = [];
  new FrameSplitter().receive(Buffer.concat(['a', 'b'].map(framed)), (frame) => {
    found.push(frame.toString());
    return false;
  });
  assert.deepEqual(found, ['a']);
});

test('allocates no more for a long frame than has arrived', () => {
  const splitter = new FrameSplitter();
  const head = Buffer.alloc(5);
  head.writeInt32BE(FRAME_MAX);
  const before = process.memoryUsage().arrayBuffers;
  for (let i = 0; i < 10; i++) assert(new FrameSplitter().receive(head, () => true));
  assert(splitter.receive(head, () => true));
  assert(process.memoryUsage().arrayBuffers - before < FRAME_MAX);
  assert.equal(splitter.rest, 5);
});

test('writes requests one after another, also beyond the first buffer', () => {
  const out = new FrameWriter();
  for (let i = 0; i < 100; i++) writeAsk(askId('order'), i, out);
  assert.equal(framesOf([Buffer.from(out.written())]).length, 100);
  const first = out.written();
  const bytes = first.toString('hex');
  out.clear(true);
  writeAsk(askId('other'), 1, out);
  assert.equal(first.toString('hex'), bytes, 'bytes that the socket still has must not change');
});
