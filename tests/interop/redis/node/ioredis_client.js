// Takes ids with ioredis: see redis_clients_test.py.
'use strict';

const fs = require('fs');
const Redis = require('ioredis');

async function main() {
  const [host, port, , count] = process.argv.slice(2);
  const { FIRN_USER: username, FIRN_PASSWORD: password, FIRN_CA: ca } = process.env;
  const client = new Redis({
    host, port: Number(port), username, password, connectionName: 'ioredis', stringNumbers: true,
    tls: ca ? { ca: fs.readFileSync(ca) } : undefined,
  });
  for (let i = 0; i < count; ++i) console.log(await client.incr('order'));
  const pipeline = client.multi();
  for (let i = 0; i < count; ++i) pipeline.call('FIRN.ID', 'order');
  for (const [error, id] of await pipeline.exec()) console.log(error || id);
  await client.incr('nothing').catch((error) => console.log('refused:', error.message));
  await client.quit();
}

main();
