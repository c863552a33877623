import { Counter, Gauge, register, type Registry } from 'prom-client';

import type { Client } from './client.js';
import { type Counters, HEALTH } from './view.js';

/** The options of {@link collectMetrics}. */
export interface MetricsOptions {
  /** Default: the default registry of prom-client. */
  readonly registry?: Registry;
  /** The label `client` of all metrics, which tells several clients of a process apart. Default: `default`. */
  readonly client?: string;
}

const HELP: Record<keyof Counters, [name: string, help: string]> = {
  calls: ['calls', 'Calls to servers.'],
  failed: ['calls_failed', 'Calls that failed without a refusal.'],
  refused: ['calls_refused', 'Calls that a server refused.'],
  attempts: ['attempts', 'Requests that were sent.'],
  retries: ['retries', 'Requests that used the retry budget.'],
  retriesDenied: ['retries_denied', 'Retries that the exhausted retry budget prevented.'],
  timeouts: ['attempt_timeouts', 'Attempts without an answer in time.'],
  broken: ['invalid_answers', 'Invalid answers.'],
  connects: ['connects', 'Connections that were begun.'],
  connectsFailed: ['connects_failed', "Connections that failed before the server's status arrived."],
  lists: ['lists', 'Server lists that were accepted.'],
  localTaken: ['local_ids', 'Ids from memory.'],
  localMissed: ['local_ids_missed', 'Ids that were not in memory although their tag is prefetched.'],
};

const clients = new WeakMap<Registry, Map<string, Client>>();

/**
 * Registers the counters of a client, and a gauge of its servers by their health, with prom-client: metrics
 * `firn_client_*`. Returns a function that removes this client's values.
 */
export function collectMetrics(client: Client, options: MetricsOptions = {}): () => void {
  const { registry = register, client: name = 'default' } = options;
  let named = clients.get(registry);
  if (!named) {
    named = new Map();
    clients.set(registry, named);
    registerAll(registry, named);
  }
  named.set(name, client);
  return () => {
    if (named.get(name) === client) named.delete(name);
  };
}

function registerAll(registry: Registry, named: ReadonlyMap<string, Client>): void {
  for (const [field, [name, help]] of Object.entries(HELP)) {
    new Counter({
      name: `firn_client_${name}_total`, help, labelNames: ['client'], registers: [registry],
      collect() {
        this.reset();
        for (const [label, one] of named) this.inc({ client: label }, one.counters()[field as keyof Counters]);
      },
    });
  }
  new Gauge({
    name: 'firn_client_servers', help: 'Servers by their health.', labelNames: ['client', 'health'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [label, one] of named) {
        const servers = one.servers();
        for (const health of HEALTH) {
          this.set({ client: label, health }, servers.filter((server) => server.health === health).length);
        }
      }
    },
  });
}
