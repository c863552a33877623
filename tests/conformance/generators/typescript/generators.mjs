// Rates of LocalGenerator, simple-flakeid and nodejs-snowflake: see ../../generator_rates.py.

import { Client } from 'firn-client';
import flakeid from 'simple-flakeid';
import nodejs from 'nodejs-snowflake';

const CHECKED = 20_000; // ids that are compared
const BUNCH = 50; // ids between two checks of the clock

function different(take) {
  const ids = new Set();
  for (let i = 0; i < CHECKED; i++) ids.add(take());
  return ids.size;
}

/** Returns ids a second and nanoseconds of processor time an id. */
function round(lengthMs, take) {
  const before = process.cpuUsage();
  const began = performance.now();
  let count = 0;
  for (; performance.now() - began < lengthMs; count += BUNCH) {
    for (let i = 0; i < BUNCH; i++) take();
  }
  const tookMs = performance.now() - began;
  const used = process.cpuUsage(before);
  return [count / tookMs * 1000, (used.user + used.system) * 1000 / count];
}

const [servers, , rounds, lengthMs] = process.argv.slice(2);
const client = new Client(servers);
const local = await client.localGenerator({ name: 'rates' });
const flake = new flakeid.SnowflakeIdv1({ workerId: 1, workerIdBitLength: 10, seqBitLength: 12, maxSeqNumber: 4095 });
const wasm = new nodejs.Snowflake({ instance_id: 1 });
const generators = {
  firn: () => local.next(), 'simple-flakeid': () => flake.NextBigId(), 'nodejs-snowflake': () => wasm.getUniqueID(),
};
const told = {};
for (const [name, take] of Object.entries(generators)) {
  told[name] = { taken: CHECKED, different: different(take), rates: [], cpu: [] };
  round(Number(lengthMs), take); // warms up
}
for (let i = 0; i < Number(rounds); i++) {
  for (const [name, take] of Object.entries(generators)) {
    await new Promise((resolve) => setImmediate(resolve)); // the client extends its lease
    const [rate, cpu] = round(Number(lengthMs), take);
    told[name].rates.push(rate);
    told[name].cpu.push(cpu);
  }
}
console.log(JSON.stringify(told));
process.exit(0);
