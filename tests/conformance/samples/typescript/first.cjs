// Takes ids with a CommonJS module of the package.
//
//     first.cjs SERVERS

const { Client, segmentTag } = require('firn-client');

const client = new Client(process.argv[2], { deadlineMs: 30_000, attemptLimitMs: 10_000 });
client.nextId('default').then((id) => {
  console.log(typeof id, typeof segmentTag, id > 0n);
  client.close();
});
