// Uses every exported name, so that `tsc --strict` checks the types of the package as a user's project sees them.

import {
  type Attempt, type CallOptions, Client, type ClientEvent, type ClientOptions, type Counters, type End,
  type ErrorKind, FirnError, type LocalTag, type Reason, type SeenServer, type ServerHealth, segmentTag, snowflakeTag,
  type TlsOptions,
} from 'firn-client';
import { collectMetrics, type MetricsOptions } from 'firn-client/prometheus';

const tls: TlsOptions = { ca: 'ca.pem' };
const tags: LocalTag[] = [segmentTag('count'), snowflakeTag('order')];
const options: ClientOptions = {
  tls, localRanges: tags, rack: 1, onEvent: (event: ClientEvent) => console.log(event.kind, event.server),
};
const call: CallOptions = { deadlineMs: 100, signal: AbortSignal.timeout(50) };
const metrics: MetricsOptions = { client: 'shop' };

export async function use(): Promise<[bigint, bigint[], string, bigint | undefined]> {
  const client = new Client('firn://127.0.0.1:7609', options);
  const remove: () => void = collectMetrics(client, metrics);
  const servers: SeenServer[] = client.servers();
  const health: ServerHealth | undefined = servers[0]?.health;
  const counters: Counters = client.counters();
  try {
    return [await client.nextId('order', call), await client.nextIds('order', 10, call), await client.nextText('order'),
            client.tryNextId('count')];
  } catch (fault) {
    if (fault instanceof FirnError) {
      const kind: ErrorKind = fault.kind;
      const reason: Reason | undefined = fault.reason;
      const attempt: Attempt | undefined = fault.attempts[0];
      const end: End | undefined = attempt?.end;
      console.log(kind, reason, end, health, counters.calls);
    }
    throw fault;
  } finally {
    remove();
    client.close();
  }
}

// @ts-expect-error A tag is a text.
export const wrong = (client: Client): Promise<bigint> => client.nextId(7);
