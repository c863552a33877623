// Takes ids with dubbo2.js: see dubbo_node_test.py. Arguments: the addresses of a server, and of ZooKeeper.
'use strict';

const { DirectlyDubbo, Dubbo, java, setting } = require('dubbo2.js');

const NAME = 'io.firn.IdService';
const PATIENCE_S = 60;
const [server, zookeeper] = process.argv.slice(2);
const service = {
  dubboInterface: NAME,
  version: '0.0.0',
  timeout: PATIENCE_S * 1000,
  methods: {
    nextId: (tag) => [java.String(tag)],
    nextIds: (tag, count) => [java.String(tag), java.int(count)],
    nextText: (tag) => [java.String(tag)],
  },
};

// Prints the answer to each call, or why it was refused.
async function use(name, ids) {
  const calls = [['nextId', 'order'], ['nextId', 'default'], ['nextIds', 'order', 3], ['nextText', 'order'],
    ['nextIds', 'order', 0]];
  for (const [method, ...values] of calls) {
    const { res, err } = await ids[method](...values);
    console.log(name, method, err ? `refused: ${err.message}` : JSON.stringify(res));
  }
}

async function main() {
  const direct = DirectlyDubbo.from({
    dubboAddress: server, dubboVersion: '2.0.2', dubboInvokeTimeout: PATIENCE_S,
  });
  await use('direct', direct.proxyService(service));
  const dubbo = new Dubbo({
    application: { name: 'node' }, register: zookeeper, dubboInvokeTimeout: PATIENCE_S,
    dubboSetting: setting.match(NAME, { version: '0.0.0' }),
    service: { ids: (container) => container.proxyService(service) },
  });
  await dubbo.ready();
  await use('registered', dubbo.service.ids);
  process.exit(0);
}

main().catch((error) => {
  console.log('error:', error);
  process.exit(1);
});
