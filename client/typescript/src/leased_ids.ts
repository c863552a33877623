import { FirnError } from './errors.js';
import { IdPace, type Now } from './id_pace.js';
import { haveOneLayout, type Lease, startOf } from './lease.js';

/** The clocks of a generator; a test has its own. */
export interface LeaseClock {
  read(): Now;
  wallMs(): number;
  /** Blocks the thread. */
  sleep(ms: number): void;
}

const WAIT_MAX_MS = 5_000;
const WAIT_STEP_MS = 50;
const WAIT_STEP_LAST_MS = 0.25;

/**
 * The ids of one lease after another.
 *
 * 1. An id is computed, and its tick is then compared with the end of the lease.
 * 2. Ids rise, also over renewals and leases: the next lease begins above the last tick used.
 * 3. The id clock starts at the wall clock or at the lease's first tick, whichever is later. A wrong clock wastes the
 *    interval and repeats no id.
 * 4. After the wall clock has jumped forward, no id is issued until a server confirms it.
 * 5. After `close` no id is issued.
 */
export class LeasedIds {
  /** Called once for each jump of the wall clock, when `next` finds it. */
  onJump: () => void = () => undefined;
  /** The lease of which ids are issued. */
  held: Lease | undefined;
  /** The highest tick of which an id was issued under the last lease; the one before its first tick if there is none. */
  usedTick = -1;

  private readonly pace: IdPace;
  private lastLease: Lease | undefined;
  private highestTick = -1; // of all ids
  private failure: () => FirnError;
  private seenWallMs = NaN;
  private jumpTold = false; // to `onJump`

  // The next id, and how many are left in its tick.
  private tick = -1;
  private nextId = 0n;
  private step = 1n;
  private left = 0;

  /** `random` returns a number from 0, inclusive, to 1, exclusive. */
  constructor(private readonly clock: LeaseClock, private readonly random: () => number) {
    this.pace = new IdPace(clock.read());
    const since = utc(clock.wallMs());
    this.failure = () => new FirnError('no lease', `no server has granted a lease since ${since}`);
  }

  /** Returns the next id. Waits for the next tick, at most 5 s, if the sequence of this one is used up. */
  next(): bigint {
    for (let waitedMs = 0; ;) {
      const waitMs = this.prepare();
      if (waitMs === 0) return this.take();
      if (waitedMs + waitMs > WAIT_MAX_MS) {
        throw new FirnError('unavailable', 'the sequence of this tick is used up', { retryAfterMs: Math.ceil(waitMs) });
      }
      const stepMs = waitMs > 2 ? Math.min(waitMs - 1, WAIT_STEP_MS) : Math.min(waitMs, WAIT_STEP_LAST_MS);
      this.clock.sleep(stepMs);
      waitedMs += stepMs;
    }
  }

  /**
   * Issues ids of this lease from now on, and of no other. Returns a sentence, and changes nothing, if it cannot.
   * `closed` is called when the last lease has ended, and `usedTick` is still its own.
   */
  adopt(lease: Lease, closed: () => void): string {
    if (this.lastLease && !haveOneLayout(this.lastLease, lease)) {
      return 'its layout is not that of the first lease, so its ids could equal earlier ones';
    }
    if (Math.min(this.advance(), this.clock.wallMs()) >= startOf(lease, lease.untilTick)) {
      return 'its interval has ended'; // a late answer must not replace a lease in use
    }
    closed();
    this.beginAt(Math.max(lease.fromTick, this.highestTick + 1), lease);
    this.held = this.lastLease = lease;
    this.usedTick = lease.fromTick - 1;
    this.step = 1n << lease.sequenceShift;
    return '';
  }

  /**
   * Moves the end of the lease. Ignores an earlier end. An id clock beyond the interval returns, but not below the last
   * tick used.
   */
  extendTo(untilTick: number): void {
    const { held } = this;
    if (!held) return;
    held.untilTick = Math.max(held.untilTick, untilTick);
    const now = this.clock.read();
    if (this.pace.advance(now) < startOf(held, held.untilTick)) return;
    this.beginAt(Math.max(held.fromTick, this.highestTick + 1), held);
  }

  /**
   * Moves the id clock forward to the wall clock of a request that a server has accepted, plus the time since. The
   * monotonic clock does not advance while the machine is suspended. `wallAtZeroMs`: that wall clock minus the monotonic
   * clock.
   */
  confirm(wallAtZeroMs: number): void {
    const now = this.clock.read();
    this.pace.advance(now);
    this.pace.raiseTo(wallAtZeroMs + now.monoMs);
    this.seenWallMs = NaN;
  }

  /** Issues no id from now on. `failure` is thrown by calls. */
  close(failure: () => FirnError): void {
    this.held = undefined;
    this.left = 0;
    this.failure = failure;
  }

  /** Reads the clocks, and returns the id clock. */
  advance(): number {
    const now = this.clock.read();
    this.followBeforeTheFirstLease(now);
    const timeMs = this.pace.advance(now);
    this.jumpTold &&= this.jumped;
    return timeMs;
  }

  /** Whether the wall clock had jumped when it was read last. */
  get jumped(): boolean {
    return this.pace.jumpMs > 0;
  }

  /** Before the first lease, the wall clock cannot jump. */
  private followBeforeTheFirstLease(now: Now): void {
    if (!this.lastLease) this.pace.restart(now.wallMs, now);
  }

  /** Returns how long to wait for an id that may be taken; 0: not at all. */
  private prepare(): number {
    const { held } = this;
    if (!held) throw this.failure();
    if (this.left > 0 && this.clock.wallMs() === this.seenWallMs) return 0;
    const now = this.clock.read();
    const timeMs = this.pace.advance(now);
    const told = this.jumpTold;
    this.jumpTold = this.jumped;
    if (this.jumped) {
      if (!told) this.onJump();
      throw new FirnError('no lease', `the wall clock has jumped forward by ${Math.floor(this.pace.jumpMs / 1000)} s, ` +
                          'and no server has confirmed it');
    }
    this.seenWallMs = now.wallMs;
    const tick = Math.floor((timeMs - held.epochMs) / held.tickMs);
    if (tick > this.tick) this.enter(tick, held);
    if (this.left > 0) return 0;
    if (this.tick + 1 >= held.untilTick) throw this.expired();
    return startOf(held, this.tick + 1) - timeMs;
  }

  private take(): bigint {
    const id = this.nextId;
    if (!this.held || this.tick >= this.held.untilTick) throw this.expired();
    this.nextId += this.step;
    this.left--;
    this.usedTick = this.highestTick = this.tick;
    return id;
  }

  /**
   * The sequence of a tick begins at random in its lower half, so that the ids of a quiet program do not all end with
   * the same bits; after a tick that is used up, at its lowest number.
   */
  private enter(tick: number, lease: Lease): void {
    const { sequenceFrom, sequenceCount } = lease;
    const usedUp = this.left === 0 && this.tick === this.highestTick;
    const skipped = usedUp ? 0 : Math.floor(this.random() * Math.ceil(sequenceCount / 2));
    const sequence = BigInt(sequenceFrom + skipped) << lease.sequenceShift;
    this.tick = tick;
    this.nextId = BigInt.asIntN(64, lease.baseBits | BigInt(tick) << lease.tickShift | sequence);
    this.left = sequenceCount - skipped;
  }

  /**
   * The next id has this tick or a later one. An id clock that followed a wrong wall clock beyond the interval returns to
   * a corrected one.
   */
  private beginAt(firstTick: number, lease: Lease): void {
    const firstMs = startOf(lease, firstTick);
    const untilMs = startOf(lease, lease.untilTick);
    const now = this.clock.read();
    const timeMs = Math.max(now.wallMs, firstMs);
    if (this.pace.timeMs >= untilMs && timeMs < untilMs) this.pace.restart(timeMs, now);
    this.pace.advance(now);
    this.pace.raiseTo(firstMs);
    this.tick = firstTick - 1;
    this.left = 0;
  }

  private expired(): FirnError {
    if (!this.held) return this.failure();
    const { machine, untilTick } = this.held;
    const until = utc(startOf(this.held, untilTick));
    return new FirnError('no lease',
                         `the lease of machine id ${machine} ended at ${until}, and no server has extended it`);
  }
}

/** Returns a time for people. */
export function utc(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
