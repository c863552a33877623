// The types of the CommonJS modules.

import firn = require('@OWNER/firn-client');
import metrics = require('@OWNER/firn-client/prometheus');

export const first = (client: firn.Client): Promise<bigint> => client.nextId('order');
export const options: firn.ClientOptions = { failfast: true };
export const collect = (client: firn.Client): (() => void) => metrics.collectMetrics(client);
