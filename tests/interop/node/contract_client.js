// Every method of the wire contract, with the stubs of `thrift --gen js:node,es6`.
//
//     contract_client.js STUBS PORT PORT_WITHOUT_MACHINE_ID REASON=PORT/TAG...
//
// Exit 0 when all answers were right; otherwise the first that was not is shown.
'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const Int64 = require('node-int64');
const thrift = require('thrift');

const [stubs, port, waitingPort, ...troubles] = process.argv.slice(2);
const IdService = require(path.join(stubs, 'IdService.js'));
const Twitter = require(path.join(stubs, 'old', 'Snowflake.js'));
const {Reason, ServerState, Refusal, InvalidUserAgentError, ComposeRequest} =
    require(path.join(stubs, 'firn_types.js'));

// Numbers of JavaScript are exact up to 2^53 only, so ids come as Int64 objects.
const big = (value) => BigInt('0x' + value.toOctetString());
const int64 = (value) => new Int64(BigInt(value).toString(16).padStart(16, '0'));

const connections = [];
function connect(service, at, protocol = thrift.TBinaryProtocol) {
  const connection =
      thrift.createConnection('127.0.0.1', at, {transport: thrift.TFramedTransport, protocol});
  connections.push(connection);
  return thrift.createClient(service, connection);
}

function assertRising(ids) {
  for (let i = 1; i < ids.length; ++i) assert(ids[i] > ids[i - 1], `${ids[i]} after ${ids[i - 1]}`);
}

async function assertRefused(reason, call) {
  await assert.rejects(call, (error) => {
    assert(error instanceof Refusal, `not a refusal: ${error}`);
    assert.equal(error.reason, reason, error.message);
    assert(error.message);
    assert.equal(typeof error.retry_after_ms, 'number');
    assert.equal(typeof error.another_server_may_help, 'boolean');
    return true;
  });
}

const tests = {
  async 'gives ids in both codings'() {
    for (const protocol of [thrift.TBinaryProtocol, thrift.TCompactProtocol]) {
      const client = connect(IdService, port, protocol);
      const ids = [];
      for (let i = 0; i < 100; ++i) ids.push(big(await client.getId('default')));
      ids.push(big(await client.getId('')));
      assertRising(ids);
    }
  },

  async 'gives lists, runs and texts'() {
    const client = connect(IdService, port);
    const ids = (await client.getIds('default', 1000)).map(big);
    assert.equal(ids.length, 1000);
    assertRising(ids);
    const runs = await client.getRuns('default', 5000);
    assert.equal(runs.reduce((sum, run) => sum + run.count, 0), 5000);
    assert(runs.every((run) => big(run.stride) >= 1n));
    assert(big(runs[0].first) > ids.at(-1));
    assert(BigInt(await client.getText('default')) > big(runs.at(-1).first));
  },

  async 'explains and composes'() {
    const client = connect(IdService, port);
    const id = await client.getId('default');
    const fields = await client.explain(id, '');
    assert.deepEqual([fields.machine, fields.worker, fields.rack], [13, 3, 1]);
    assert.equal(fields.layout, 'firn');
    const again = await client.compose(new ComposeRequest(
        {ticks: fields.ticks, worker: 3, rack: 1, sequence: fields.sequence}));
    assert.equal(big(again), big(id));
    const known = await client.explain(int64(1169786042799259000n), 'twitter');
    assert.equal(big(known.time_ms), 1567733700834n);
    assert.equal(known.machine, 39);
    assert.equal(big(known.sequence), 3448n);
    assert.equal(await client.formatTime(0, 'twitter'), '2010-11-04T01:42:54.657Z');
  },

  async 'tells its status'() {
    const client = connect(IdService, port);
    await client.ping();
    const status = await client.status();
    assert.equal(status.state, ServerState.READY);
    assert.equal(status.machine, 13);
    assert.equal(status.layout, 'firn');
    assert(status.cluster_uuid);
    assert(big(status.bound_ms) > big(status.wall_ms));
    assert(status.tags.some((tag) => tag.tag === 'default'));
  },

  async 'refuses with the declared exception'() {
    const client = connect(IdService, port);
    await assertRefused(Reason.UNKNOWN_TAG, () => client.getId('nothing'));
    await assertRefused(Reason.UNKNOWN_TAG, () => client.getIds('nothing', 1));
    await assertRefused(Reason.UNKNOWN_TAG, () => client.getRuns('nothing', 1));
    await assertRefused(Reason.UNKNOWN_TAG, () => client.getText('nothing'));
    await assertRefused(Reason.BAD_REQUEST, () => client.getIds('default', 100001));
    await assertRefused(Reason.BAD_REQUEST, () => client.getRuns('default', 0));
    await assertRefused(Reason.BAD_REQUEST, () => client.explain(int64(1n), 'nothing'));
    await assertRefused(Reason.BAD_REQUEST, () => client.compose(new ComposeRequest()));
    await assertRefused(Reason.BAD_REQUEST, () => client.formatTime(int64(1n << 62n), ''));
    assert(big(await client.getId('default')) > 0n);
  },

  async 'says that it holds no machine id'() {
    const client = connect(IdService, waitingPort);
    for (const call of [() => client.getId('default'), () => client.getIds('default', 5),
                        () => client.getRuns('default', 5), () => client.getText('default'),
                        () => client.get_id('node'), () => client.get_worker_id(),
                        () => client.get_datacenter_id()]) {
      await assertRefused(Reason.NOT_READY, call);
    }
    await client.ping();
    assert.equal((await client.status()).state, ServerState.NOT_READY);
    assert(big(await client.get_timestamp()) > 0n);
  },

  async 'tells every trouble by its reason'() {
    for (const [, reason, at, tag] of troubles.map((text) => text.match(/(.*)=(.*)\/(.*)/))) {
      const client = connect(IdService, at);
      for (const call of [() => client.getId(tag), () => client.getIds(tag, 1),
                          () => client.getRuns(tag, 1), () => client.getText(tag)]) {
        await assertRefused(Reason[reason], async () => {
          for (let i = 0; i < 1000; ++i) await call();
        });
      }
    }
  },

  async 'tells which user agents it takes'() {
    const client = connect(IdService, port);
    for (const agent of ['', '1', 'a b', 'a_b', '-']) {
      await assert.rejects(() => client.get_id(agent), InvalidUserAgentError);
    }
    assert(big(await client.get_id('A-1')) > 0n);
  },

  async 'serves Twitter\'s old clients'() {
    const client = connect(Twitter, port);
    assert(big(await client.get_timestamp()) > 0n);
    const ids = [];
    for (let i = 0; i < 10; ++i) ids.push(big(await client.get_id('snowflake-client-1')));
    assertRising(ids);
    assert.equal(big(await client.get_worker_id()), ids[0] >> 12n & 31n);
    assert.equal(big(await client.get_datacenter_id()), ids[0] >> 17n & 31n);
    await assert.rejects(() => client.get_id('1-starts-with-a-digit'));
    assert(big(await client.get_id('a')) > ids.at(-1));
  },
};

async function main() {
  for (const [name, test] of Object.entries(tests)) {
    await test();
    console.log('ok   ' + name);
  }
  for (const connection of connections) connection.end();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
