// Takes ids until its standard input ends, with an ES module of the package. Prints what it got.
//
//     ids.mjs SERVERS

import { Client, FirnError } from 'firn-client';

const client = new Client(process.argv[2], { deadlineMs: 30_000, attemptLimitMs: 1_000 });
const ids = new Set();
let [answered, ending] = [0, false];
process.stdin.resume().on('end', () => (ending = true));

async function work() {
  while (!ending) {
    try {
      ids.add(await client.nextId('default'));
      if (++answered % 1_000 === 0) console.log('answered', answered);
    } catch (fault) {
      console.error(fault instanceof FirnError ? `${fault.kind}: ${fault.message}` : fault);
      process.exit(1);
    }
  }
}

console.log('answered', (await client.nextIds('default', 10)).length);
await Promise.all(Array.from({ length: 8 }, work));
client.close();
console.log('duplicates', answered - ids.size);
