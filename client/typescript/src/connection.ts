import type * as net from 'node:net';
import { performance } from 'node:perf_hooks';

import { Alarm } from './alarm.js';
import { type Answered, type Ask, askStatus, encodeAsk, readAnswer, type ServerStatus, writeAsk } from './asks.js';
import { FrameSplitter, FrameWriter } from './codec.js';
import { dial, type Names } from './dial.js';
import { type Failure, failed, spoke } from './errors.js';
import { IdCheck } from './layout.js';
import { pathOfSocket, splitAddress } from './options.js';
import { isNetworkError, type TlsFiles, tlsFailure } from './tls.js';

/** A request on a connection. */
export interface Pending {
  readonly ask: Ask<unknown>;
  /** The call has ended: the request is not sent if it still waits for the connection to open. */
  abandoned: boolean;
  /** Called once, with the answer or a failure. */
  ended(outcome: Answered<unknown>, now: number): void;
  /**
   * The answer is late, though others on the connection arrive; `ended` is still called. `shared`: another request, late
   * at the same moment, bears the blame. Returns whether a call waited for the answer.
   */
  isLate(shared: boolean, now: number): boolean;
}

/** What a connection needs from its client. */
export interface ConnectionHost {
  readonly names: Names;
  readonly attemptLimitMs: number;
  /** Returns a failure unless the server is of this cluster. */
  admit(status: ServerStatus): Failure | undefined;
  /** The connection is usable; `failure`: it ended before it was. */
  opened(connection: Connection, failure: Failure | undefined, now: number): void;
  /** The server sent an answer that no call waits for. */
  unasked(connection: Connection, failure: Failure, now: number): void;
  closedBy(connection: Connection): void;
}

/** A server as its connections know it. */
export interface SpokenTo {
  readonly address: string;
  /** On the last connection, it sent its status: it speaks as this client does. */
  spoke: boolean;
}

interface Waiting {
  readonly pending: Pending;
  readonly request: Buffer;
  readonly pooled: boolean; // the connection was open before the request came
  readonly sequence: number;
  watched: number;
  late: boolean;
}

type Phase = 'connecting' | 'agreeing' | 'checking' | 'open' | 'closed';

const TLS_ALERT = 0x15;
const FAILURES_MOST = 3; // with which a server is ejected

/**
 * A connection to one server with many requests in flight; the server answers in their order. It first asks for
 * the server's status. Any failure closes it and ends all requests on it: the first one reports the failure, or
 * up to three that had their time in silence, and the others share it.
 */
export class Connection {
  status: ServerStatus | undefined;
  private phase: Phase = 'connecting';
  private socket: net.Socket | undefined;
  private giveUp: (() => void) | undefined;
  private readonly splitter = new FrameSplitter();
  private readonly out = new FrameWriter();
  private queue: Waiting[] = [];
  private head = 0;
  private unwritten = 0; // of the queue's last requests
  private sequence = 0;
  private statusSequence = 0;
  private heardAt = -Infinity; // when the last answer came
  private check: IdCheck | undefined;
  private flushing = false;
  private leftOver = false; // its server has left the list
  private openAlarm: Alarm | undefined;
  private watchAlarm: Alarm | undefined;
  private readonly spoke: boolean; // as the server, before this connection

  constructor(private readonly server: SpokenTo, private readonly tls: TlsFiles | undefined,
              private readonly host: ConnectionHost) {
    this.spoke = server.spoke;
  }

  get idle(): boolean {
    return this.queue.length === this.head;
  }

  get opening(): boolean {
    return this.phase !== 'open' && this.phase !== 'closed';
  }

  /** The failure of waiting here without an answer. */
  silence(): Failure {
    if (this.phase === 'connecting') return failed('connect timeout', '');
    return this.phase === 'agreeing' ? failed('connect timeout', 'in the TLS handshake') : failed('timeout', '');
  }

  /** Begins to connect. `ConnectionHost.opened` is called later. */
  open(): void {
    const limit = this.host.attemptLimitMs;
    const path = pathOfSocket(this.server.address);
    const { host, port } = path === undefined ? splitAddress(this.server.address)! : { host: path, port: 0 };
    const start = (addresses: readonly string[]): void => {
      if (this.phase !== 'connecting') return;
      this.giveUp = dial(addresses, port, limit, (result) => {
        this.giveUp = undefined;
        if ('end' in result && 'detail' in result) {
          this.host.names.failed(host, performance.now());
          this.close(result);
        } else {
          this.connected(result, host);
        }
      });
    };
    // Never within this call, so that a caller can add its request first. `of` throws for a name whose last lookup
    // has just failed.
    void Promise.resolve()
      .then(() => {
        if (this.phase !== 'connecting') return;
        this.openAlarm = new Alarm(performance.now() + limit, () => {
          if (this.opening) this.close(this.silence());
        }, false);
      })
      .then(() => path === undefined ? this.host.names.of(host, performance.now()) : [path])
      .then(start)
      .catch((fault: unknown) => this.close(failed('unreachable', String((fault as Error)?.message ?? fault))));
  }

  private connected(plain: net.Socket, host: string): void {
    let socket = plain;
    if (this.tls) {
      this.phase = 'agreeing';
      try {
        const secure = this.tls.begin(plain, host);
        socket = secure;
        secure.once('secureConnect', () => this.askForStatus());
      } catch (fault) {
        plain.on('error', () => undefined);
        plain.destroy();
        return this.close(failed('unreachable', `TLS: ${(fault as Error).message}`));
      }
    }
    this.socket = socket;
    // Calls in progress keep the process alive by their timers, and an idle connection does not.
    socket.unref();
    socket.on('data', (chunk: Buffer) => this.received(chunk));
    socket.on('error', (fault) => this.close(this.failureOf(fault)));
    socket.on('close', () => this.close(this.failureOf(undefined)));
    socket.on('end', () => this.close(this.failureOf(undefined)));
    if (!this.tls) this.askForStatus();
  }

  private askForStatus(): void {
    if (this.phase === 'closed') return;
    this.phase = 'checking';
    this.statusSequence = ++this.sequence;
    writeAsk(askStatus, this.statusSequence, this.out);
    this.flush();
  }

  private failureOf(fault: NodeJS.ErrnoException | undefined): Failure {
    if (this.phase === 'agreeing') {
      return fault ? tlsFailure(fault) : failed('unreachable', 'the connection ended in the TLS handshake');
    }
    if (fault && this.tls && !isNetworkError(fault)) return tlsFailure(fault);
    const text = fault ? fault.message : 'the server closed the connection';
    const rest = this.splitter.rest;
    if (rest > 0) return failed('closed', `${text}, after ${rest} bytes of an answer`);
    if (this.phase !== 'checking' || this.spoke) return failed('closed', text);
    return failed('closed', `${text}, during the first request: it may speak TLS, or require a certificate`);
  }

  // --- requests -------------------------------------------------------------------------------------

  /**
   * Sends a request, when the connection is open and the current turn of the event loop ends. It is encoded already,
   * because nothing may throw then.
   */
  send(pending: Pending, now: number, request = encodeAsk(pending.ask)): void {
    const pooled = this.phase === 'open';
    this.sequence = (this.sequence + 1) & 0x7fff_ffff;
    this.queue.push({ pending, request, pooled, sequence: this.sequence, watched: now, late: false });
    if (!pooled) return;
    this.out.frame(request, this.sequence);
    this.unwritten++;
    this.flushSoon();
  }

  private flushSoon(): void {
    if (this.flushing) return;
    this.flushing = true;
    process.nextTick(this.flushNow); // after all promises that the last answers have settled
  }

  private readonly flushNow = (): void => {
    this.flushing = false;
    if (this.phase !== 'open') return;
    // The time limit of an attempt starts here: a program that begins many calls in one turn may take longer than that.
    const now = performance.now();
    for (let i = this.queue.length - this.unwritten; i < this.queue.length; i++) this.queue[i]!.watched = now;
    this.unwritten = 0;
    this.flush();
    if (!this.idle) this.watch(now + this.host.attemptLimitMs);
  };

  private flush(): void {
    const socket = this.socket!;
    if (this.out.size === 0) return;
    socket.write(this.out.written());
    this.out.clear(socket.writableLength > 0);
  }

  private isOpen(now: number): void {
    this.openAlarm?.cancel();
    this.phase = 'open';
    const wanted = this.queue.filter((one) => !one.pending.abandoned);
    const dropped = this.queue.filter((one) => one.pending.abandoned);
    this.queue = wanted;
    for (const one of wanted) {
      one.watched = now;
      this.out.frame(one.request, one.sequence);
    }
    this.flush();
    if (wanted.length > 0) this.watch(now + this.host.attemptLimitMs);
    this.host.opened(this, undefined, now);
    for (const one of dropped) one.pending.ended({ failure: { ...this.silence(), shared: true } }, now);
  }

  // --- answers --------------------------------------------------------------------------------------

  private received(chunk: Buffer): void {
    if (this.phase === 'closed') return;
    const now = performance.now();
    const speaksTls = this.phase === 'checking' && chunk[0] === TLS_ALERT && chunk[1] === 3;
    const whole = this.splitter.receive(chunk, (frame) => {
      this.heardAt = now;
      if (this.phase === 'checking') this.takeStatus(frame, now);
      else this.takeAnswer(frame, now);
      return this.phase !== 'closed';
    });
    if (whole) return;
    const first = this.phase === 'checking';
    this.closeBroken(undefined, failed(first ? 'wrong service' : 'broken',
                                       speaksTls ? 'it speaks TLS' : 'it does not speak Thrift'), now);
  }

  private takeStatus(frame: Buffer, now: number): void {
    const outcome = readAnswer(askStatus, this.statusSequence, frame);
    if ('failure' in outcome) return this.close(failed('wrong service', outcome.failure.detail));
    this.server.spoke = true;
    const status = outcome.answer;
    const failure = this.host.admit(status);
    if (failure) return this.close(failure);
    const timed = status.tags.filter((one) => one.strategy === 'snowflake' && one.asIssued).map((one) => one.tag);
    this.check = new IdCheck(status.layout, new Set(timed), Number(status.wallMs), now);
    this.status = status;
    this.isOpen(now);
  }

  private takeAnswer(frame: Buffer, now: number): void {
    const first = this.queue[this.head];
    if (!first || this.queue.length - this.head === this.unwritten) { // the server cannot know the first request
      this.host.unasked(this, failed('broken', 'an answer belongs to no call'), now);
      return this.endAll(this.end(), failed('closed', 'another answer was invalid'), 0, now);
    }
    this.head++;
    if (this.head === this.queue.length) {
      this.queue.length = this.head = 0;
    } else if (this.head === 1024) {
      this.queue.splice(0, this.head);
      this.head = 0;
    }
    const { ask } = first.pending;
    const outcome = readAnswer(ask, first.sequence, frame);
    if ('answer' in outcome) {
      const fault = ask.givesIds ? this.check!.faultOf(ask.tag, ask.idsOf(outcome.answer), now) : '';
      if (fault) return this.closeBroken(first, failed('broken', fault), now);
    } else if (!spoke(outcome.failure)) {
      return this.closeBroken(first, outcome.failure, now);
    }
    first.pending.ended(outcome, now);
    if (this.idle && this.phase === 'open' && this.leftOver) this.close(failed('closed', ''));
  }

  /** The server has left the list: the connection is closed when its requests have ended. */
  leave(): void {
    this.leftOver = true;
    if (this.idle) this.close(failed('closed', ''));
  }

  // --- the end --------------------------------------------------------------------------------------

  /** Closes the connection when no answer has arrived for the time of an attempt. */
  private watch(at: number): void {
    if (this.watchAlarm && at < this.watchAlarm.at) { // of an earlier request, which had more time
      this.watchAlarm.cancel();
      this.watchAlarm = undefined;
    }
    this.watchAlarm ??= new Alarm(at, () => {
      this.watchAlarm = undefined;
      this.checkSilence(performance.now());
    }, false);
  }

  private checkSilence(now: number): void {
    if (this.phase !== 'open' || this.idle) return;
    const limit = this.host.attemptLimitMs;
    const late: Waiting[] = [];
    let oldest = Infinity;
    for (let i = this.head; i < this.queue.length; i++) {
      const one = this.queue[i]!;
      if (now - one.watched >= limit) {
        if (this.heardAt <= one.watched) return this.closeSilent(now);
        one.watched = now;
        if (!one.late) late.push(one);
        one.late = true;
      }
      oldest = Math.min(oldest, one.watched);
    }
    this.watch(oldest + limit);
    let shared = false;
    for (const one of late) shared = one.pending.isLate(shared, now) || shared;
  }

  /**
   * Each request that had half of its time counts, so that a server that holds a burst is ejected; not one that was
   * reported late.
   */
  private closeSilent(now: number): void {
    const waiting = this.queue.slice(this.head);
    const lost = waiting.filter((one) => !one.late && 2 * (now - one.watched) >= this.host.attemptLimitMs).length;
    this.close(this.silence(), Math.min(lost, FAILURES_MOST));
  }

  private closeBroken(first: Waiting | undefined, failure: Failure, now: number): void {
    if (!first) return this.close(failure);
    const rest = this.end();
    first.pending.ended({ failure }, now);
    // The server is quarantined for this answer already.
    this.endAll(rest, failed('closed', 'another answer was invalid'), 0, now);
  }

  /** Closes the connection and ends all requests on it, of which that many count as failures of the server. */
  close(why: Failure, count = 1): void {
    if (this.phase === 'closed') return;
    const now = performance.now();
    const wasOpening = this.opening;
    if (wasOpening) this.server.spoke = false;
    const whole = why.end === 'closed' && this.splitter.rest === 0;
    const rest = this.end();
    if (wasOpening) this.host.opened(this, why, now);
    this.endAll(rest, why, count, now, whole);
  }

  private end(): Waiting[] {
    this.phase = 'closed';
    this.openAlarm?.cancel();
    this.watchAlarm?.cancel();
    this.giveUp?.();
    this.socket?.destroy();
    const rest = this.queue.slice(this.head);
    this.queue = [];
    this.head = 0;
    this.host.closedBy(this);
    return rest;
  }

  private endAll(all: Waiting[], why: Failure, count: number, now: number, whole = false): void {
    let left = count;
    for (const one of all) {
      const shared = why.shared || one.late || left-- <= 0; // one that was reported late does not report this end
      one.pending.ended({ failure: { ...why, shared, stale: whole && one.pooled } }, now);
    }
  }
}
