// The servers of the cluster: what they report, as a table.

import {count, difference, duration, element, machineLink, make, moment, number, rate, latency, show,
        showTable} from './format.js';
import {leftMs, leftText, placeOf, slotOf, useOf} from './machines.js';

const kSilentMs = 12000, kGoneMax = 20, kRowsMax = 25;
const kProtocols = ['thrift', 'http', 'redis', 'dubbo'];

// Servers that were listed since the page was opened, by address, so that one that left is seen.
const known = new Map();
let all = false;  // rows beyond kRowsMax are shown, too

export function meet(servers) {
  for (const server of known.values()) server.gone = true;
  for (const server of servers) known.set(server.address, server);
  for (const [address, {gone}] of known) {
    if (known.size <= servers.length + kGoneMax) break;
    if (gone) known.delete(address);
  }
}

export const missing = () => [...known.values()].filter(({gone}) => gone).length;

// Since its last report, or since reports were first requested.
const silence = (audit, server) => server.pace?.age_ms ?? audit.paces_wanted_ms ?? 0;
const isSilent = (audit, server) => silence(audit, server) > kSilentMs;

function stateOf(audit, server, listed) {
  if (server.gone) return ['left the list', 'bad'];
  if (audit.trouble) return [`${wordOf(server.state)} when last read`, 'soft'];
  if (isSilent(audit, server)) return [`silent for ${duration(silence(audit, server))}`, 'bad'];
  if (listed?.online === false) return ['offline', 'warn'];
  return [wordOf(server.state), server.state === 'serving' ? 'good' : 'warn'];
}

const wordOf = (state) => state.replace('_', ' ');

// The servers' activity added up, as far as they have reported it.
export function totalsOf(audit) {
  const servers = audit.providers.filter((server) => server.pace && !isSilent(audit, server));
  const sum = (value) => servers.reduce((all, server) => all + value(server.pace), 0);
  const rates = (name) => sum((pace) => 1000 * pace[name] / pace.over_ms);
  const slowest = Math.max(-1, ...servers.map(({pace}) => pace.p99_us ?? -1));
  return {reported: servers.length, all: audit.providers.length,
          serving: audit.providers.filter((server) => server.state === 'serving' &&
              !isSilent(audit, server)).length,
          ids: rates('ids'), calls: rates('calls'), refused: rates('refused'),
          p99: slowest < 0 ? undefined : slowest,
          connections: Object.fromEntries(kProtocols.map((protocol) =>
              [protocol, sum(({connections}) => connections?.[protocol] ?? 0)]))};
}

export const historiesOf = (audit) => audit.providers
    .filter((server) => server.pace?.history && !isSilent(audit, server))
    .map(({address, pace}) => ({address, history: pace.history, age_ms: pace.age_ms + audit.age_ms +
        Date.now() - audit.fetched}));

// "http 1, redis 20".
export const connectionsText = (connections) => Object.entries(connections ?? {})
    .filter(([, open]) => open > 0).map(([name, open]) => `${name} ${number(open)}`).join(', ');

// A dash, not 0, for values that a server has not reported.
function activityOf(audit, server) {
  const {pace} = server, soft = (text) => ({text, kind: 'soft'});
  if (server.gone || audit.trouble || isSilent(audit, server)) return Array(5).fill(soft('–'));
  if (pace === undefined) {
    const why = audit.paces_wanted_ms === undefined ? 'cannot be asked' : 'no report yet';
    return [soft(why), ...Array(4).fill(soft('–'))];
  }
  const each = (value) => rate(1000 * value / pace.over_ms);
  return [each(pace.ids), each(pace.calls),
          pace.refused > 0 ? {text: each(pace.refused), kind: 'warn'} : '0',
          pace.p99_us === undefined ? soft('no calls') : latency(pace.p99_us),
          connectionsText(pace.connections) || soft('none')];
}

// The machine ids that it reports to hold, and a warning where the registry disagrees.
function machinesOf(view, server) {
  if (server.machines.length === 0) return {text: 'none', kind: 'soft'};
  return server.machines.flatMap(({machine, bound_ms: bound}, i) => {
    const slot = slotOf(view.audit, machine);
    const bad = !server.gone && (leftMs(view.audit, bound, server.clock_skew_ms) < 0 ||
        slot?.use !== 'held' || slot.endpoint !== server.address);
    const link = machineLink(machine, {
      class: bad ? 'warn' : undefined,
      title: `${placeOf(view.status, machine)}, ${useOf(view.audit, slot)}, ` +
          leftText(view.audit, bound, server.clock_skew_ms)});
    return i > 0 ? [', ', link] : [link];
  });
}

// Other hosts cannot reach a console that listens on a loopback address.
const isLocal = (host) => host === 'localhost' || host === '[::1]' || host.startsWith('127.');

function addressOf(view, server) {
  if (server.address === view.status?.address) return [server.address, ' (this server)'];
  const page = server.gone ? undefined : server.pace?.console;
  if (!page || !URL.canParse(page) || !/^https?:$/.test(new URL(page).protocol) ||
      (isLocal(new URL(page).hostname) && !isLocal(location.hostname))) {
    return [server.address];
  }
  return [make('a', {href: page, title: 'the console of this server'}, server.address)];
}

const kColumns = [
  {name: 'server'}, {name: 'state'}, {name: 'machine ids', number: true, kind: 'ids'},
  {name: 'ids/s', number: true}, {name: 'calls/s', number: true},
  {name: 'refused/s', number: true},
  {name: 'p99', number: true, title: 'latency below which 99 of 100 requests remain'},
  {name: 'connections', title: 'open connections, by protocol'},
  {name: 'rack', number: true}, {name: 'weight', number: true},
  {name: 'may issue for', title: 'until its bound', kind: 'whole'},
  {name: 'clock', number: true, title: 'how far its ids are ahead of its clock'},
  {name: 'since', kind: 'whole'}, {name: 'build', kind: 'whole'}];

function cellsOf(view, server, listed) {
  const {audit} = view, [state, kind] = stateOf(audit, server, listed);
  const reason = server.reason && !server.gone ? make('small', {}, server.reason) : undefined;
  return [addressOf(view, server), [make('span', {class: kind}, state), reason].filter(Boolean),
          machinesOf(view, server), ...activityOf(audit, server), number(server.rack),
          listed?.weight === undefined ? '–' : number(listed.weight),
          server.machines.length > 0 ? leftText(audit, server.bound_ms, server.clock_skew_ms) : '–',
          difference(server.clock_skew_ms), moment(server.since_ms), server.build];
}

export function showServers(view) {
  const {audit, unread} = view;
  if (audit === null) {
    show(element('serverscount'));
    show(element('allservers'));
    return showTable(element('servers'), 'Servers', kColumns, [],
                     unread ? `Not known: ${unread}.` : 'Being read.');
  }
  const listed = new Map(view.servers.map((server) => [server.address, server]));
  const rank = (server) => stateOf(audit, server, listed.get(server.address))[1] === 'good' ? 1 : 0;
  const servers = [...known.values()].sort((a, b) => rank(a) - rank(b) ||
      a.address.localeCompare(b.address, 'en', {numeric: true}));
  const serving = servers.filter((server) => rank(server) === 1).length;
  show(element('serverscount'), `${number(serving)} of ${number(servers.length)} serving`);
  const shown = all ? servers : servers.slice(0, kRowsMax);
  showTable(element('servers'), 'Servers', kColumns,
            shown.map((server) => cellsOf(view, server, listed.get(server.address))),
            'No server has announced itself.');
  show(element('allservers'), servers.length <= kRowsMax ? null :
      make('button', {type: 'button', id: 'more'},
           all ? `Show the first ${kRowsMax}` : `Show all ${count(servers.length, 'server')}`));
}

export function startServers(again) {
  element('allservers').addEventListener('click', (event) => {
    if (event.target.id !== 'more') return;
    all = !all;
    again();
  });
}
