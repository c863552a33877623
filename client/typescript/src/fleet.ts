import { randomUUID } from 'node:crypto';

import type { ServerList } from './asks.js';
import { lessBusy, subsetOf } from './choice.js';
import type { Connection } from './connection.js';
import { RetryBudget } from './health.js';
import { type ClientEvent, pathOfSocket, type Settings, splitAddress } from './options.js';
import { EJECTED, HEALTHY, QUARANTINED, Server } from './server.js';
import { HEALTH, type SeenServer } from './view.js';

const HEALTHY_MIN = 3; // while fewer are healthy, calls can use all servers

/** The servers of one client: which there are, which are healthy, and which one is called next. */
export class Fleet {
  readonly servers = new Map<string, Server>();
  readonly budget = new RetryBudget();
  /** Tags that need no machine id. */
  readonly ownNumbers = new Set<string>();
  uuid: string;
  layout = '';
  version = 0n;
  /** Decides which servers this client uses. */
  private readonly name = randomUUID();
  private subset: Server[] = [];
  private awaitingNews = new Set<() => void>();

  constructor(readonly settings: Settings) {
    this.uuid = settings.clusterUuid;
    for (const seed of settings.seeds) this.servers.set(seed, this.made(seed));
    this.choose();
  }

  /**
   * Takes over a list if it is newer, or if only a last resort answers. Returns the connections of servers that
   * are not in it.
   */
  apply(list: ServerList, toldBy: Server): Connection[] {
    const lower = list.version < this.version && !toldBy.lastResort;
    if (list.servers.length === 0 || list.version === this.version || lower) return [];
    const before = new Map(this.servers);
    this.servers.clear();
    for (const entry of list.servers) {
      if (!splitAddress(entry.address)) continue;
      const one = before.get(entry.address) ?? this.made(entry.address);
      one.listed(entry, entry.tls || this.settings.tls !== undefined);
      this.servers.set(entry.address, one);
    }
    for (const seed of this.settings.seeds) {
      if (this.servers.has(seed)) continue;
      const one = before.get(seed) ?? this.made(seed);
      one.lastResort = true;
      this.servers.set(seed, one);
    }
    this.version = list.version;
    this.choose();
    this.tellNews();
    this.tell('list', '', `${list.servers.length} servers`);
    const gone: Connection[] = [];
    for (const [address, one] of before) {
      if (!this.servers.has(address) && one.connection) gone.push(one.connection);
    }
    return gone;
  }

  /**
   * Returns a server that is not among `tried`, or undefined. Draws two of the healthiest servers by weight, from the
   * client's rack if possible, and picks the second if it is clearly less busy. The server counts as busy until the
   * caller decreases `inFlight`.
   */
  pick(tag: string, tried: readonly Server[], now: number): Server | undefined {
    let offer = this.offer(this.subset, tag, tried, now);
    const few = offer.servers.length < HEALTHY_MIN && offer.servers.length < this.subset.length;
    if (offer.best > HEALTHY || few) offer = this.offer(this.servers.values(), tag, tried, now);
    let { servers } = offer;
    if (servers.length === 0) return undefined;
    const { rack } = this.settings;
    if (rack !== undefined) {
      const mine = servers.filter((one) => one.rack === rack);
      if (mine.length > 0) servers = mine;
    }
    const picked = lessBusy(servers);
    picked.inFlight++;
    return picked;
  }

  /**
   * The servers with the best standing. Quarantined servers are among them only while fewer than half are healthy, and
   * foreign ones never.
   */
  private offer(servers: Iterable<Server>, tag: string, tried: readonly Server[],
                now: number): { best: number; servers: Server[] } {
    const needsMachine = !this.ownNumbers.has(tag);
    let best = QUARANTINED;
    let offered: Server[] = [];
    for (const one of servers) {
      if (tried.includes(one) || !one.mayServe(now)) continue;
      let standing = one.standing(tag, needsMachine, now);
      if (standing === QUARANTINED) {
        if (one.foreign || !this.panics(now)) continue;
        standing = EJECTED;
      }
      if (standing < best) {
        best = standing;
        offered = [];
      }
      if (standing === best) offered.push(one);
    }
    return { best, servers: offered };
  }

  /** Returns whether fewer than half of the servers are healthy. */
  private panics(now: number): boolean {
    let members = 0;
    let healthy = 0;
    for (const one of this.servers.values()) {
      if (!one.online || one.foreign || one.lastResort) continue;
      members++;
      if (one.standing('', false, now) === HEALTHY) healthy++;
    }
    return healthy * 2 < members;
  }

  /**
   * Returns whether a server may be ejected or quarantined: at most half of the enabled servers are. Foreign ones,
   * which are not of the cluster, do not count.
   */
  mayLeave(leaving: Server): boolean {
    let members = 0;
    let out = 0;
    for (const one of this.servers.values()) {
      if (!one.online || one.foreign) continue;
      members++;
      if (one !== leaving && (one.health.ejected || one.quarantined)) out++;
    }
    return (out + 1) * 2 <= members;
  }

  /** Returns when the first server that is not tried may be connected to again; Infinity: none is in backoff. */
  pausedUntil(tried: readonly Server[], now: number): number {
    let first = Infinity;
    for (const one of this.servers.values()) {
      if (tried.includes(one) || one.foreign || one.mayServe(now)) continue;
      first = Math.min(first, one.connectAt);
    }
    return first;
  }

  view(now: number): SeenServer[] {
    const seen = [...this.servers.values()].map((one) => {
      const standing = one.standing('', true, now);
      return {
        address: one.address, rack: one.rack, weight: one.weight, health: HEALTH[standing]!,
        why: standing === HEALTHY ? '' : one.why, inFlight: one.inFlight,
      };
    });
    return seen.sort((a, b) => (a.address < b.address ? -1 : 1));
  }

  // --- news and events ------------------------------------------------------------------------------

  /** Calls `wake` once, later, when servers were added or became healthy. Returns a function that cancels. */
  onNews(wake: () => void): () => void {
    this.awaitingNews.add(wake);
    return () => this.awaitingNews.delete(wake);
  }

  tellNews(): void {
    if (this.awaitingNews.size === 0) return;
    const awaiting = this.awaitingNews;
    this.awaitingNews = new Set();
    setImmediate(() => {
      for (const wake of awaiting) wake();
    });
  }

  tell(kind: ClientEvent['kind'], server: string, detail: string): void {
    try {
      this.settings.onEvent?.({ kind, server, detail });
    } catch {
      // The program's fault must not change the client.
    }
  }

  private made(address: string): Server {
    return new Server(address, this.settings.tls !== undefined && pathOfSocket(address) === undefined);
  }

  private choose(): void {
    const { serversMax, rack } = this.settings;
    this.subset = subsetOf(this.servers.values(), this.name, serversMax, rack);
  }
}
