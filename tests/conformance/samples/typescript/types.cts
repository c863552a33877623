// The types of the CommonJS modules.

import firn = require('firn-client');
import metrics = require('firn-client/prometheus');

export const first = (client: firn.Client): Promise<bigint> => client.nextId('order');
export const options: firn.ClientOptions = { failfast: true };
export const collect = (client: firn.Client): (() => void) => metrics.collectMetrics(client);
