// The types of the CommonJS modules.

import firn = require('@OWNER/firn-client');

export const first = (client: firn.Client): Promise<bigint> => client.nextId('order');
export const options: firn.ClientOptions = { failfast: true };
