import { performance } from 'node:perf_hooks';

import { askRuns, type Run } from './asks.js';
import type { Engine } from './engine.js';
import { FirnError } from './errors.js';
import type { LocalTag } from './options.js';
import type { Counters } from './view.js';

const FIRST_FETCH = 128;
const TOO_MANY_FOR_MS = 60_000;
const SOON_MS = { first: 10, longest: 1_000 };
const LATE_MS = { first: 1_000, longest: 30_000 };

/** The runs of one fetch; ids are taken from its front. */
class RunBuffer {
  left: number;
  private at = 0;

  constructor(private readonly runs: Run[], readonly size: number, readonly askedAt: number) {
    this.left = size;
  }

  take(): bigint {
    const run = this.runs[this.at]!;
    const id = run.first;
    this.left--;
    if (--run.count === 0) this.at++;
    else run.first = id + run.stride;
    return id;
  }
}

const EMPTY = new RunBuffer([], 0, 0);

/**
 * The prefetched ids of one tag, in two buffers. The next buffer is fetched when half of the current one is used,
 * or at once if the other half would not last until the answer. If a fetch is used up too soon, the next one is
 * larger; if it lasts too long, smaller. After a failure the next fetch waits 10 ms to 1 s, or 1 s to 30 s if the
 * server's reason says that a retry will not help.
 */
export class Supply {
  private inUse = EMPTY;
  private next = EMPTY;
  private enough = 0; // while more ids than these are left, no fetch is needed
  private usedSince = -Infinity;
  private lastUse = 3_600_000;
  private lastFetch = 0;
  private size = FIRST_FETCH;
  private most = Infinity;
  private mostUntil = -Infinity;
  private starved = false;
  private notBefore = -Infinity;
  private soon = 0;
  private late = 0;
  private fetching: Promise<void> | undefined;

  private readonly maxAgeMs: number;
  private readonly counters: Counters;

  constructor(private readonly tag: LocalTag, private readonly engine: Engine) {
    this.maxAgeMs = tag.maxAgeMs;
    this.counters = engine.counters;
  }

  /** Returns an id from memory; undefined if there is none. Fetches the next ids in time. */
  take(): bigint | undefined {
    const { inUse, maxAgeMs } = this;
    const fresh = maxAgeMs === 0 || performance.now() - inUse.askedAt <= maxAgeMs;
    if (!(fresh && inUse.left > this.enough) && !this.prepare(1)) return undefined;
    this.counters.localTaken++;
    return this.inUse.take();
  }

  /** Returns ids of one buffer, in ascending order; undefined if it holds fewer. */
  takeMany(count: number): bigint[] | undefined {
    if (!this.prepare(count)) return undefined;
    this.counters.localTaken += count;
    const { inUse } = this;
    return Array.from({ length: count }, () => inUse.take());
  }

  /** Waits for a fetch in progress, at most that long, and returns an id if one has arrived. */
  async await(patienceMs: number): Promise<bigint | undefined> {
    const until = performance.now() + patienceMs;
    for (;;) {
      const left = until - performance.now();
      if (!this.fetching || left <= 0) return undefined;
      let timer: NodeJS.Timeout | undefined;
      await Promise.race([this.fetching, new Promise((resolve) => (timer = setTimeout(resolve, Math.ceil(left))))]);
      clearTimeout(timer);
      const id = this.take();
      if (id !== undefined) return id;
    }
  }

  /** Returns whether the current buffer has that many ids that may be taken. */
  private prepare(count: number): boolean {
    const now = performance.now();
    this.inUse = this.unlessAged(this.inUse, now);
    this.next = this.unlessAged(this.next, now);
    if (this.inUse.left === 0 && this.next.left > 0) {
      if (this.usedSince > 0) {
        this.lastUse = now - this.usedSince;
        this.resize();
      }
      this.usedSince = now;
      this.starved = false;
      this.inUse = this.next;
      this.next = EMPTY;
    }
    this.starved ||= this.inUse.left === 0;
    this.fetchIfLow(now);
    if (this.inUse.left >= count) return true;
    this.counters.localMissed += count;
    return false;
  }

  private unlessAged(buffer: RunBuffer, now: number): RunBuffer {
    const { maxAgeMs } = this;
    return buffer.left > 0 && maxAgeMs > 0 && now - buffer.askedAt > maxAgeMs ? EMPTY : buffer;
  }

  private resize(): void {
    const { lastsMs, fetchMax } = this.tag;
    if (this.lastUse > 2 * lastsMs) this.size = Math.floor(this.size / 2);
    else if (this.lastUse < lastsMs / 16) this.size *= 8;
    else if (this.starved || this.lastUse < lastsMs / 2) this.size *= 2;
    this.size = Math.min(Math.max(this.size, 1), fetchMax);
  }

  private fetchIfLow(now: number): void {
    const lasts = this.lastUse / 2 >= this.lastFetch;
    this.enough = lasts ? this.inUse.size >> 1 : this.inUse.size;
    if (this.next.left > 0) this.enough = 0;
    if (this.next.left > 0 || this.inUse.left > this.enough || this.fetching || now < this.notBefore) return;
    if (this.engine.closed) return;
    const count = now < this.mostUntil ? Math.min(this.size, this.most) : this.size;
    this.fetching = this.fetch(count, now).finally(() => (this.fetching = undefined));
  }

  private async fetch(count: number, askedAt: number): Promise<void> {
    try {
      const runs = await this.engine.call(askRuns(this.tag.tag, count), undefined);
      this.lastFetch = performance.now() - askedAt;
      this.soon = this.late = 0;
      this.next = new RunBuffer(runs, count, askedAt);
    } catch (fault) {
      this.failed(fault, count, performance.now());
    }
  }

  private failed(fault: unknown, count: number, now: number): void {
    const reason = fault instanceof FirnError && fault.kind === 'refused' ? fault.reason : undefined;
    if (reason === 'UNKNOWN_TAG') this.inUse = this.next = EMPTY; // it was deleted: no more ids of it
    const tooMany = reason === 'BAD_REQUEST' && count > 1;
    if (tooMany) {
      this.most = Math.floor(count / 2);
      this.mostUntil = now + TOO_MANY_FOR_MS;
    }
    if (tooMany || !reason) {
      this.soon = Math.min(Math.max(2 * this.soon, SOON_MS.first), SOON_MS.longest);
      this.notBefore = now + this.soon;
    } else {
      this.late = Math.min(Math.max(2 * this.late, LATE_MS.first), LATE_MS.longest);
      this.notBefore = now + this.late;
    }
  }
}
