// Which servers a client uses, and which of several it picks.

import { createHash } from 'node:crypto';

import type { Server } from './server.js';

const OUTSIDE_RACK = 4; // of 16 servers that a client uses

/** Returns the servers that this client uses: weighted rendezvous hashing of its random name and their addresses. */
export function subsetOf(servers: Iterable<Server>, name: string, most: number, rack: number | undefined): Server[] {
  const scored: [number, Server][] = [];
  for (const one of servers) {
    if (one.lastResort) continue;
    const hash = createHash('sha256').update(name + one.address).digest().readUIntBE(0, 6);
    scored.push([-Math.log((hash + 1) / 2 ** 48) / one.share, one]);
  }
  const ranked = scored.sort((a, b) => a[0] - b[0]).map(([, one]) => one);
  if (most === 0 || ranked.length <= most) return ranked;
  if (rack === undefined) return ranked.slice(0, most);
  const inside = ranked.filter((one) => one.rack === rack);
  const outside = ranked.filter((one) => one.rack !== rack);
  const kept = Math.min(Math.floor((most * OUTSIDE_RACK) / 16), outside.length);
  return [...inside.slice(0, most - kept), ...outside].slice(0, most);
}

/** Draws two servers by weight; returns the first, unless the second is clearly less busy. */
export function lessBusy(servers: readonly Server[]): Server {
  const first = draw(servers, undefined);
  if (servers.length === 1) return first;
  const second = draw(servers, first);
  const mean = (first.share + second.share) / 2;
  const cost = (one: Server): number => 1 + (one.inFlight * mean) / one.share;
  return cost(second) * 1.5 <= cost(first) ? second : first;
}

function draw(servers: readonly Server[], except: Server | undefined): Server {
  let total = 0;
  for (const one of servers) if (one !== except) total += one.share;
  let at = Math.random() * total;
  let drawn: Server | undefined;
  for (const one of servers) {
    if (one === except) continue;
    drawn = one;
    if ((at -= one.share) < 0) break;
  }
  return drawn!;
}
