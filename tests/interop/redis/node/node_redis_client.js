// Takes ids with node-redis: see redis_clients_test.py.
'use strict';

const fs = require('fs');
const { createClient } = require('redis');

async function main() {
  const [host, port, protocol, count] = process.argv.slice(2);
  const { FIRN_USER: username, FIRN_PASSWORD: password, FIRN_CA: ca, FIRN_TAG: tag } = process.env;
  const client = createClient({
    username, password, name: 'node-redis', RESP: Number(protocol),
    socket: { host, port: Number(port), reconnectStrategy: false, ...(ca ? { tls: true, ca: fs.readFileSync(ca) } : {}) },
  });
  client.on('error', (error) => console.log('error:', error.message));
  await client.connect();
  if (tag) {
    for (let i = 0; i < count; ++i) console.log(await client.incr(tag).catch((error) => error.message));
    return client.close();
  }
  const take = () => client.sendCommand(['FIRN.ID', 'order']);
  for (let i = 0; i < count; ++i) console.log(await take());
  for (const id of await Promise.all(Array.from({ length: count }, take))) console.log(id);
  const transaction = client.multi();
  for (let i = 0; i < count; ++i) transaction.incr('order');
  for (const id of await transaction.exec()) console.log(id);
  await client.incr('nothing').catch((error) => console.log('refused:', error.message));
  await client.close();
}

main();
