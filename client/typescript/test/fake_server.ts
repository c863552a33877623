// A server in this process, whose answers a test decides.

import * as net from 'node:net';

import { FrameSplitter, Type } from '../src/codec.js';

export interface Request {
  readonly method: string;
  readonly sequence: number;
  readonly socket: net.Socket;
  /** The whole frame, without its length. */
  readonly frame: Buffer;
}

const EPOCH_MS = 1_704_067_200_000;

const i16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
export const i32 = (value: number): Buffer => Buffer.from([value >>> 24, (value >> 16) & 255, (value >> 8) & 255, value & 255]);
export const i64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
};
export const text = (value: string): Buffer => Buffer.concat([i32(Buffer.byteLength(value)), Buffer.from(value)]);
export const field = (type: number, number: number, value: Buffer): Buffer => Buffer.concat([Buffer.from([type]), i16(number), value]);

/** The frame of a successful answer. */
export function answer(request: Request, type: number, value: Buffer): Buffer {
  return result(request, field(type, 0, value));
}

/** The frame of an answer with these fields. */
export function result(request: Request, fields: Buffer): Buffer {
  const body = Buffer.concat([
    i32(0x8001_0002 | 0), text(request.method), i32(request.sequence), fields, Buffer.from([0]),
  ]);
  return Buffer.concat([i32(body.length), body]);
}

function status(): Buffer {
  return Buffer.concat([
    field(Type.STRING, 1, text('11111111-2222-3333-4444-555555555555')), field(Type.STRING, 5, text('firn')),
    field(Type.I32, 7, i32(2)), field(Type.I64, 10, i64(BigInt(Date.now()))), Buffer.from([0]),
  ]);
}

let lastId = BigInt(Date.now() - EPOCH_MS) << 22n;

export class FakeServer {
  /** Requests for ids that have arrived. */
  readonly requests: Request[] = [];
  /** Answers a request for ids; may be replaced. */
  answers: (request: Request) => void = (request) => this.give(request);
  chunks = 0;
  readonly sockets = new Set<net.Socket>();
  private readonly server = net.createServer((socket) => this.serve(socket));

  /** Listens on a free port, or on a Unix socket at `path`. */
  async start(path?: string): Promise<this> {
    await new Promise<void>((resolve) => {
      if (path === undefined) this.server.listen(0, '127.0.0.1', resolve);
      else this.server.listen(path, resolve);
    });
    return this;
  }

  get address(): string {
    const at = this.server.address();
    return typeof at === 'string' ? `unix:${at}` : `127.0.0.1:${at!.port}`;
  }

  give(request: Request): void {
    lastId++;
    const ids = Buffer.concat([Buffer.from([Type.STRUCT]), i32(1), field(Type.I64, 1, i64(lastId)),
                               field(Type.I32, 2, i32(128)), field(Type.I64, 3, i64(1n)), Buffer.from([0])]);
    if (request.method === 'getRuns') {
      lastId += 128n;
      request.socket.write(answer(request, Type.LIST, ids));
    } else {
      request.socket.write(answer(request, Type.I64, i64(lastId)));
    }
  }

  refuseConnections(): void {
    this.server.close();
  }

  dropConnections(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.dropConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private serve(socket: net.Socket): void {
    const splitter = new FrameSplitter();
    this.sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.sockets.delete(socket));
    socket.on('data', (chunk) => {
      this.chunks++;
      splitter.receive(chunk, (frame) => {
        const length = frame.readInt32BE(4);
        const method = frame.toString('latin1', 8, 8 + length);
        const request = { method, sequence: frame.readInt32BE(8 + length), socket, frame: Buffer.from(frame) };
        if (method === 'status') {
          socket.write(answer(request, Type.STRUCT, status()));
        } else if (method === 'servers') { // a list that is unchanged
          socket.write(answer(request, Type.STRUCT, Buffer.concat([field(Type.I32, 6, i32(100)), Buffer.from([0])])));
        } else {
          this.requests.push(request);
          this.answers(request);
        }
        return true;
      });
    });
  }
}
