// Which ids a server can have issued.

const DEFAULT_EPOCH_MS = 1_704_067_200_000;
const SLACK_MS = 24 * 3_600_000;

const NAMED: Record<string, string> = {
  firn: 'time:41 machine:10 sequence:12',
  twitter: 'time:41 machine:10 sequence:12 epoch:1288834974657',
  'vesta-max-peak': 'version:1 type:1=0 method:2 time:30s sequence:20 machine:10 epoch:1420041600000',
  'vesta-min-granularity': 'version:1 type:1=1 method:2 time:40 sequence:10 machine:10 epoch:1420041600000',
  'js-safe': 'time:41 machine:6 sequence:6',
};

/** The position of the time in an id, and the bits that never change. */
export interface Layout {
  readonly tickMs: number;
  readonly epochMs: number;
  readonly fixedMask: bigint;
  readonly fixedBits: bigint;
  readonly timeShift: bigint;
  readonly timeMask: bigint;
  /** Valid ids may be negative. */
  readonly signed: boolean;
}

/** Returns undefined for a text that is not a layout. */
export function readLayout(text: string): Layout | undefined {
  const read = { tickMs: 1, epochMs: DEFAULT_EPOCH_MS, fixedMask: 0n, fixedBits: 0n, timeShift: 0n,
                 timeMask: 0n, signed: false };
  let shift = 0;
  for (const token of (NAMED[text] ?? text).split(/\s+/).filter(Boolean).reverse()) {
    const colon = token.indexOf(':');
    const [name, value] = [token.slice(0, colon), token.slice(colon + 1)];
    if (name === 'epoch') {
      read.epochMs = /^\d+$/.test(value) ? Number(value) : Date.parse(value);
      if (!Number.isFinite(read.epochMs)) return undefined;
      continue;
    }
    const match = (name === 'time' ? /^(\d{1,2})(?:@(\d+))?(ms|s)?$/ : /^(\d{1,2})(?:=(\d+))?()$/).exec(value);
    if (!match) return undefined;
    const width = Number(match[1]);
    const mask = (1n << BigInt(width)) - 1n;
    if (name === 'time') {
      read.tickMs = Number(match[2] ?? 1) * (match[3] === 's' ? 1000 : 1);
      read.timeShift = BigInt(shift);
      read.timeMask = mask;
    } else if (name === 'zero' || name === 'type') {
      read.fixedMask |= mask << BigInt(shift);
      read.fixedBits |= BigInt(match[2] ?? 0) << BigInt(shift);
    }
    shift += width;
    read.signed ||= name === 'version' && shift === 64;
  }
  if (read.timeMask === 0n || shift > 64) return undefined;
  read.fixedMask |= ((1n << 64n) - 1n) ^ ((1n << BigInt(shift)) - 1n);
  return read;
}

/** Knows the ids that one server can have issued, by its status at the start of a connection. */
export class IdCheck {
  private readonly layout: Layout | undefined;

  /**
   * `timed` are the tags whose ids contain a time and are not obfuscated; `wallMs` is the server's clock at
   * `saidAt`, a time of this process's monotonic clock.
   */
  constructor(layout: string, private readonly timed: ReadonlySet<string>, private readonly wallMs: number,
              private readonly saidAt: number) {
    this.layout = readLayout(layout);
  }

  /** Returns a sentence if the server cannot have issued these ids. */
  faultOf(tag: string, ids: readonly bigint[], now: number): string {
    const { layout } = this;
    const timed = layout && this.timed.has(tag);
    const serverMs = this.wallMs + now - this.saidAt;
    for (const id of ids) {
      if (id === 0n || (id < 0n && !layout?.signed)) return `no id is ${id}`;
      if (!timed) continue;
      const bits = id < 0n ? BigInt.asUintN(64, id) : id;
      if ((bits & layout.fixedMask) !== layout.fixedBits) {
        return `${id} cannot be an id of this cluster: a fixed bit of the layout differs`;
      }
      const ticks = Number((bits >> layout.timeShift) & layout.timeMask);
      if (Math.abs(layout.epochMs + ticks * layout.tickMs - serverMs) > SLACK_MS) {
        return `${id} cannot be an id of this cluster: its time is more than a day from the clock`;
      }
    }
    return '';
  }
}
