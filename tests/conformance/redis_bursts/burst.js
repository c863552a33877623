// Bursts of INCR by ioredis: see bursts.py.
'use strict';

const Redis = require('ioredis');

async function main() {
  const [port, calls, rounds] = process.argv.slice(2).map(Number);
  const client = new Redis({ host: '127.0.0.1', port });
  for (let round = 0; round < rounds; ++round) {
    const began = performance.now();
    const ends = await Promise.allSettled(Array.from({ length: calls }, () => client.incr('default')));
    console.log(ends.filter((one) => one.status === 'rejected').length, performance.now() - began);
  }
  await client.quit();
}

main();
