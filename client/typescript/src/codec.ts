// Thrift's framed binary protocol: what the requests and answers of firn.thrift need.

/** A frame that violates the protocol. */
export class BrokenFrame extends Error {}

export const FRAME_MAX = 16 << 20;
const VERSION = 0x8001;
const DEPTH_MAX = 32;

export const MessageType = { CALL: 1, REPLY: 2, EXCEPTION: 3 } as const;

export const Type = {
  STOP: 0, BOOL: 2, BYTE: 3, DOUBLE: 4, I16: 6, I32: 8, I64: 10, STRING: 11, STRUCT: 12, MAP: 13, SET: 14,
  LIST: 15,
} as const;

/** The least number of bytes of a value, by type; absent: not a type. */
const LEAST_BYTES: Record<number, number> = {
  [Type.BOOL]: 1, [Type.BYTE]: 1, [Type.DOUBLE]: 8, [Type.I16]: 2, [Type.I32]: 4, [Type.I64]: 8,
  [Type.STRING]: 4, [Type.STRUCT]: 1, [Type.MAP]: 6, [Type.SET]: 5, [Type.LIST]: 5,
};

/** Writes frames one after another into one buffer. */
export class FrameWriter {
  private bytes = Buffer.allocUnsafe(1024);
  private used = 0;
  private begin = 0;

  get size(): number {
    return this.used;
  }

  beginCall(method: string, sequence: number): void {
    this.begin = this.used;
    this.reserve(16 + method.length);
    this.used += 4; // the length, written by end()
    this.used = this.bytes.writeUInt16BE(VERSION, this.used);
    this.used = this.bytes.writeUInt16BE(MessageType.CALL, this.used);
    this.used = this.bytes.writeInt32BE(method.length, this.used);
    this.used += this.bytes.write(method, this.used, 'latin1');
    this.used = this.bytes.writeInt32BE(sequence, this.used);
  }

  string(field: number, value: string): void {
    const length = Buffer.byteLength(value);
    this.field(Type.STRING, field, 4 + length);
    this.used = this.bytes.writeInt32BE(length, this.used);
    this.used += this.bytes.write(value, this.used, 'utf8');
  }

  i32(field: number, value: number): void {
    this.field(Type.I32, field, 4);
    this.used = this.bytes.writeInt32BE(value, this.used);
  }

  i64(field: number, value: bigint): void {
    this.field(Type.I64, field, 8);
    this.used = this.bytes.writeBigInt64BE(value, this.used);
  }

  /** Writes a struct: `write` writes its fields. */
  struct(field: number, write: () => void): void {
    this.field(Type.STRUCT, field, 0);
    write();
    this.stop();
  }

  /** Appends a frame that another writer has written, under this sequence number. */
  frame(frame: Buffer, sequence: number): void {
    this.reserve(frame.length);
    frame.copy(this.bytes, this.used);
    this.bytes.writeInt32BE(sequence, this.used + 12 + frame.readInt32BE(8)); // after the length of the method's name
    this.used += frame.length;
  }

  /** Ends the arguments and the frame. */
  end(): void {
    this.stop();
    this.bytes.writeInt32BE(this.used - this.begin - 4, this.begin);
  }

  /** Returns all frames. They are valid until the next call of a method. */
  written(): Buffer {
    return this.bytes.subarray(0, this.used);
  }

  /** Starts again; `kept`: what was written is still in use, so a new buffer is taken. */
  clear(kept: boolean): void {
    this.used = 0;
    if (kept || this.bytes.length > 64 * 1024) this.bytes = Buffer.allocUnsafe(1024);
  }

  private stop(): void {
    this.reserve(1);
    this.bytes[this.used++] = Type.STOP;
  }

  private field(type: number, field: number, size: number): void {
    this.reserve(3 + size);
    this.bytes[this.used++] = type;
    this.used = this.bytes.writeInt16BE(field, this.used);
  }

  private reserve(size: number): void {
    if (this.used + size <= this.bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.used + size));
    this.bytes.copy(larger, 0, 0, this.used);
    this.bytes = larger;
  }
}

/** Reads one frame, without its length. Throws BrokenFrame, and never reads or allocates beyond the frame. */
export class FrameReader {
  private at = 0;

  constructor(private readonly bytes: Buffer) {}

  /** Reads the head of an answer. */
  messageBegin(): { name: string; type: number; sequence: number } {
    this.need(4);
    const version = this.bytes.readUInt16BE(this.at);
    const type = this.bytes[this.at + 3]!;
    this.at += 4;
    if (version !== VERSION) throw new BrokenFrame('it is not a message of the binary protocol');
    return { name: this.string(), type, sequence: this.i32() };
  }

  /** Reads a struct: calls `read` for each field; a field that it does not read (false) is skipped. */
  struct(read: (type: number, field: number) => boolean): void {
    for (;;) {
      const type = this.byte();
      if (type === Type.STOP) return;
      this.need(2);
      const field = this.bytes.readInt16BE(this.at);
      this.at += 2;
      if (!read(type, field)) this.skip(type);
    }
  }

  /** Reads a list whose elements have the type; `read` reads one element. */
  list<T>(type: number, read: () => T): T[] {
    const size = this.listSize(type);
    const values = new Array<T>(size);
    for (let i = 0; i < size; i++) values[i] = read();
    return values;
  }

  byte(): number {
    this.need(1);
    return this.bytes[this.at++]!;
  }

  bool(): boolean {
    return this.byte() !== 0;
  }

  i32(): number {
    this.need(4);
    const value = this.bytes.readInt32BE(this.at);
    this.at += 4;
    return value;
  }

  i64(): bigint {
    this.need(8);
    const value = this.bytes.readBigInt64BE(this.at);
    this.at += 8;
    return value;
  }

  string(): string {
    const length = this.i32();
    this.need(length);
    const value = this.bytes.toString('utf8', this.at, this.at + length);
    this.at += length;
    return value;
  }

  skip(type: number, depth = 0): void {
    if (depth > DEPTH_MAX) throw new BrokenFrame('it is nested too deeply');
    switch (type) {
      case Type.STRING: {
        const length = this.i32();
        this.need(length);
        this.at += length;
        return;
      }
      case Type.STRUCT:
        return this.struct((inner) => {
          this.skip(inner, depth + 1);
          return true;
        });
      case Type.LIST:
      case Type.SET: {
        const element = this.byte();
        return this.skipMany([element], this.i32(), depth);
      }
      case Type.MAP: {
        const key = this.byte();
        const value = this.byte();
        return this.skipMany([key, value], this.i32(), depth);
      }
    }
    const length = LEAST_BYTES[type];
    if (length === undefined) throw new BrokenFrame(`${type} is not a type`);
    this.need(length);
    this.at += length;
  }

  private skipMany(types: number[], size: number, depth: number): void {
    if (size === 0) return;
    this.needMany(types, size);
    for (let i = 0; i < size; i++) for (const type of types) this.skip(type, depth + 1);
  }

  private listSize(type: number): number {
    const element = this.byte();
    const size = this.i32();
    if (size === 0) return 0;
    if (element !== type) throw new BrokenFrame('a list has elements of another type');
    this.needMany([type], size);
    return size;
  }

  /** Fails unless that many elements can be in the rest of the frame. */
  private needMany(types: number[], size: number): void {
    let least = 0;
    for (const type of types) {
      const bytes = LEAST_BYTES[type];
      if (bytes === undefined) throw new BrokenFrame(`${type} is not a type`);
      least += bytes;
    }
    if (size < 0 || size * least > this.bytes.length - this.at) {
      throw new BrokenFrame('a list is longer than the frame');
    }
  }

  private need(size: number): void {
    if (size < 0 || size > this.bytes.length - this.at) throw new BrokenFrame('it ends too early');
  }
}

/** Splits what a connection receives into frames. Holds at most one incomplete frame. */
export class FrameSplitter {
  private held: Buffer[] = [];
  private heldBytes = 0;
  private wanted = 4; // bytes until the length, or the frame, is complete

  /** The number of received bytes that are not yet a complete frame. */
  get rest(): number {
    return this.heldBytes;
  }

  /**
   * Calls `take` for each complete frame; it returns whether to continue. Returns false if a length is not one of
   * an answer. The chunk may be reused afterwards: what is kept of it is copied.
   */
  receive(chunk: Buffer, take: (frame: Buffer) => boolean): boolean {
    let bytes = chunk;
    if (this.heldBytes > 0) {
      if (this.heldBytes + chunk.length < this.wanted) {
        this.hold(chunk);
        return true;
      }
      bytes = Buffer.concat([...this.held, chunk], this.heldBytes + chunk.length);
      this.held = [];
      this.heldBytes = 0;
    }
    let at = 0;
    while (bytes.length - at >= 4) {
      const length = bytes.readUInt32BE(at);
      if (length === 0 || length > FRAME_MAX) return false;
      if (bytes.length - at - 4 < length) break;
      const frame = bytes.subarray(at + 4, at + 4 + length);
      at += 4 + length;
      if (!take(frame)) return true;
    }
    const left = bytes.length - at;
    this.wanted = left < 4 ? 4 : 4 + bytes.readUInt32BE(at);
    if (left > 0) this.hold(bytes.subarray(at));
    return true;
  }

  private hold(chunk: Buffer): void {
    this.held.push(Buffer.from(chunk));
    this.heldBytes += chunk.length;
  }
}
