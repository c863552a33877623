import { performance } from 'node:perf_hooks';

/**
 * Calls a function once, at a time of the monotonic clock or later. Answers that have arrived while the process was
 * busy are read first: otherwise a program that blocks its event loop would see timeouts that did not happen.
 */
export class Alarm {
  private timer: NodeJS.Timeout | undefined;
  private immediate: NodeJS.Immediate | undefined;

  /** `keepsAlive`: the process does not end before. */
  constructor(readonly at: number, private readonly due: () => void, private readonly keepsAlive: boolean,
              now = performance.now()) {
    this.arm(now);
  }

  cancel(): void {
    clearTimeout(this.timer);
    clearImmediate(this.immediate);
  }

  private arm(now: number): void {
    this.timer = setTimeout(this.fired, Math.ceil(Math.max(this.at - now, 0)));
    if (!this.keepsAlive) this.timer.unref();
  }

  private readonly fired = (): void => {
    const now = performance.now();
    if (now < this.at) this.arm(now); // Node counts from the beginning of its event loop's turn
    else this.immediate = setImmediate(this.due);
  };
}
