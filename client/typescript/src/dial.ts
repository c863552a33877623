import * as dns from 'node:dns';
import * as net from 'node:net';

import { type Failure, failed } from './errors.js';

const LOOKUP_AGAIN_MS = 2_000;
const LOOKUP_OLD_MS = 60_000;
const NEXT_ADDRESS_MS = 250;

/** Errors of this process or its machine, and not of a server. */
const OWN_FAULTS = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM']);

interface Name {
  addresses: string[];
  lookedUpAt: number;
  lookup: Promise<void> | undefined;
  fault: string;
  turn: number;
}

/** The addresses of server names. A lookup does not block calls while earlier addresses are known. */
export class Names {
  private readonly names = new Map<string, Name>();

  /** Returns the addresses of a host, a different one first each time; resolves at once where they are known. */
  of(host: string, now: number): Promise<string[]> | string[] {
    if (net.isIP(host) !== 0) return [host];
    let name = this.names.get(host);
    if (!name) {
      name = { addresses: [], lookedUpAt: -Infinity, lookup: undefined, fault: '', turn: 0 };
      this.names.set(host, name);
    }
    const known = name;
    const old = now - known.lookedUpAt > (known.addresses.length > 0 ? LOOKUP_OLD_MS : LOOKUP_AGAIN_MS);
    if (old && !known.lookup) known.lookup = this.lookUp(host, known, now);
    if (known.addresses.length > 0 || !known.lookup) return this.inTurn(known, host);
    return known.lookup.then(() => this.inTurn(known, host));
  }

  /** No address of the host works: it is looked up again, at most every 2 s. */
  failed(host: string, now: number): void {
    const name = this.names.get(host);
    if (!name || name.lookup || now - name.lookedUpAt < LOOKUP_AGAIN_MS) return;
    name.lookup = this.lookUp(host, name, now);
  }

  private inTurn(name: Name, host: string): string[] {
    if (name.addresses.length === 0) throw new Error(name.fault || `no address of ${host} is known`);
    const first = name.turn++ % name.addresses.length;
    return [...name.addresses.slice(first), ...name.addresses.slice(0, first)];
  }

  private async lookUp(host: string, name: Name, now: number): Promise<void> {
    try {
      const found = await dns.promises.lookup(host, { all: true });
      name.addresses = found.map((one) => one.address);
    } catch (fault) {
      name.fault = (fault as Error).message;
    }
    name.lookedUpAt = now;
    name.lookup = undefined;
  }
}

/**
 * Connects to the first of the addresses that accepts. The next one is tried, too, when the current one does not
 * respond within its share of the time, and at once when it fails. With port 0, the addresses are paths of Unix
 * sockets. Returns a function that gives up.
 */
export function dial(addresses: readonly string[], port: number, limitMs: number,
                     done: (result: net.Socket | Failure) => void): () => void {
  const share = Math.min(NEXT_ADDRESS_MS, limitMs / addresses.length);
  const sockets = new Set<net.Socket>();
  let next = 0;
  let over = false;
  let timer: NodeJS.Timeout | undefined;
  let lastFault: NodeJS.ErrnoException | undefined;

  const end = (winner?: net.Socket): void => {
    over = true;
    clearTimeout(timer);
    for (const socket of sockets) if (socket !== winner) socket.destroy();
  };

  const tryNext = (): void => {
    clearTimeout(timer);
    if (over) return;
    if (next >= addresses.length) {
      if (sockets.size > 0) return;
      end();
      const own = lastFault?.code !== undefined && OWN_FAULTS.has(lastFault.code);
      return done(own ? failed('no room', 'this process has no file descriptor or memory left')
                      : failed('unreachable', lastFault?.message ?? 'no address'));
    }
    const host = addresses[next++]!;
    const socket = net.connect(port === 0 ? { path: host } : { host, port, noDelay: true, autoSelectFamily: false });
    sockets.add(socket);
    socket.on('error', (fault) => {
      if (over) return;
      lastFault = fault;
      sockets.delete(socket);
      tryNext();
    });
    socket.once('connect', () => {
      if (over) return;
      socket.removeAllListeners('error');
      end(socket);
      done(socket);
    });
    if (next < addresses.length) timer = setTimeout(tryNext, share);
  };
  tryNext();
  return end;
}
