// Takes ids with ioredis: see redis_clients_test.py.
'use strict';

const fs = require('fs');
const Redis = require('ioredis');

async function main() {
  const [host, port, , count] = process.argv.slice(2);
  const { FIRN_USER: username, FIRN_PASSWORD: password, FIRN_CA: ca, FIRN_TAG: tag } = process.env;
  const client = new Redis({
    host, port: Number(port), username, password, connectionName: 'ioredis', stringNumbers: !tag,
    tls: ca ? { ca: fs.readFileSync(ca) } : undefined,
  });
  if (tag) {
    for (let i = 0; i < count; ++i) console.log(await client.incr(tag).catch((error) => error.message));
    return client.quit();
  }
  for (let i = 0; i < count; ++i) console.log(await client.incr('order'));
  const pipeline = client.pipeline();
  for (let i = 0; i < count; ++i) pipeline.call('FIRN.ID', 'order');
  const transaction = client.multi();
  for (let i = 0; i < count; ++i) transaction.incr('order');
  for (const several of [pipeline, transaction]) {
    for (const [error, id] of await several.exec()) console.log(error || id);
  }
  await client.incr('nothing').catch((error) => console.log('refused:', error.message));
  await client.quit();
}

main();
