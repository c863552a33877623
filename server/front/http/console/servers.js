// The servers of the cluster: what they report, as a table.

import {ageOf, isOutdated} from './findings.js';
import {count, difference, duration, element, latency, machineLink, make, moment, number, pairs, rate, show,
        showTable} from './format.js';
import {leftMs, leftText, placeOf, slotOf, useOf} from './machines.js';

const kSilentMs = 12000, kRowsMax = 12;
const kProtocols = ['thrift', 'http', 'redis', 'dubbo'];

let all = false;  // rows beyond kRowsMax are shown, too
let sorting = {column: 1, down: false};  // the worst state first

// Since its last report, or since reports were first requested.
const silence = (audit, server) => server.pace?.age_ms ?? audit.paces_wanted_ms ?? 0;
const isSilent = (audit, server) => silence(audit, server) > kSilentMs;

function stateOf(audit, server, listed) {
  if (server.left) return ['has left, or is cut off', 'bad'];
  if (isOutdated(audit)) return [`${wordOf(server.state)} when last read`, 'soft'];
  if (isSilent(audit, server)) return [`silent for ${duration(silence(audit, server))}`, 'bad'];
  if (listed?.online === false) return ['offline', 'warn'];
  return [wordOf(server.state), server.state === 'serving' ? '' : 'warn'];
}

const wordOf = (state) => state.replace('_', ' ');

// All servers: those that are listed, and holders that left without giving their machine id back.
export function serversOf({audit, servers}) {
  const listed = new Map(servers.map((server) => [server.address, server]));
  const left = audit.machines.filter((slot) => slot.left)
      .map((slot) => ({...slot, address: `${slot.host}, pid ${slot.pid}`, machines: [slot]}));
  return [...audit.providers, ...left].map((server) => {
    const [text, kind] = stateOf(audit, server, listed.get(server.address));
    return {...server, text, kind, weight: listed.get(server.address)?.weight,
            serves: !server.left && server.state === 'serving' && !isSilent(audit, server) &&
                listed.get(server.address)?.online !== false};
  });
}

// The servers' activity added up, as far as they have reported it.
export function totalsOf(audit) {
  const servers = audit.providers.filter((server) => server.pace && !isSilent(audit, server));
  const sum = (value) => servers.reduce((all, server) => all + value(server.pace), 0);
  const rates = (name) => sum((pace) => 1000 * pace[name] / pace.over_ms);
  const slowest = Math.max(-1, ...servers.map(({pace}) => pace.p99_us ?? -1));
  return {reported: servers.length, ids: rates('ids'), calls: rates('calls'), refused: rates('refused'),
          p99: slowest < 0 ? undefined : slowest,
          connections: Object.fromEntries(kProtocols.map((protocol) =>
              [protocol, sum(({connections}) => connections?.[protocol] ?? 0)]))};
}

export const historiesOf = (audit) => audit.providers
    .filter((server) => server.pace?.history && !isSilent(audit, server))
    .map(({address, pace}) => ({address, history: pace.history, age_ms: pace.age_ms + ageOf(audit)}));

// "http 1, redis 20".
export const connectionsText = (connections) => Object.entries(connections ?? {})
    .filter(([, open]) => open > 0).map(([name, open]) => `${name} ${number(open)}`).join(', ');

// Rates of a server; undefined where it has not reported them.
function activityOf(audit, server) {
  const {pace} = server;
  if (pace === undefined || isOutdated(audit) || isSilent(audit, server)) return {};
  const each = (value) => 1000 * value / pace.over_ms;
  return {ids: each(pace.ids), calls: each(pace.calls), refused: each(pace.refused), p99: pace.p99_us,
          connections: pace.connections};
}

// The machine ids that it reports to hold, and a warning where the registry disagrees.
function machinesOf(view, server) {
  return server.machines.flatMap(({machine, bound_ms: bound}, i) => {
    const slot = slotOf(view.audit, machine);
    const bad = leftMs(view.audit, bound, server.clock_skew_ms) < 0 ||
        slot?.use !== 'held' || slot.endpoint !== server.address;
    const link = machineLink(machine, {
      class: bad ? 'warn' : undefined,
      title: `${placeOf(view.status, machine)}, ${useOf(view.audit, slot)}, ` +
          leftText(view.audit, bound, server.clock_skew_ms)});
    return i > 0 ? [', ', link] : [link];
  });
}

const kColumns = [
  {name: 'server'}, {name: 'state'}, {name: 'machine ids', number: true, kind: 'ids'},
  {name: 'ids/s', number: true}, {name: 'refused/s', number: true},
  {name: 'p99', number: true, title: 'latency below which 99 of 100 requests remain'},
  {name: 'connections', number: true}, {name: 'may issue for', title: 'until its bound', number: true}];

const kSoft = (text) => ({text, kind: 'soft'});

// A dash, not 0, for values that a server has not reported.
function cellsOf(view, server) {
  const {audit} = view, {ids, refused, p99, connections} = activityOf(audit, server);
  const own = server.address === view.status?.address ? ' (this server)' : '';
  const link = make('a', {href: `#/server/${encodeURIComponent(server.address)}`}, server.address);
  const silent = server.pace === undefined && !server.left && !isOutdated(audit) ?
      audit.paces_wanted_ms === undefined ? 'cannot be asked' : 'no report yet' : '–';
  return [server.left ? server.address : [link, own],
          make('span', {class: server.kind || undefined, title: server.reason}, server.text),
          server.machines.length > 0 ? machinesOf(view, server) : kSoft('none'),
          ids === undefined ? kSoft(silent) : rate(ids),
          refused === undefined ? kSoft('–') : refused > 0 ? {text: rate(refused), kind: 'warn'} : '0',
          p99 === undefined ? kSoft(ids === undefined ? '–' : 'no calls') : latency(p99),
          connections === undefined ? kSoft('–') : number(sumOf(connections)),
          server.machines.length > 0 ? leftText(audit, server.bound_ms, server.clock_skew_ms) : '–'];
}

const sumOf = (connections) => Object.values(connections ?? {}).reduce((sum, open) => sum + open, 0);
const kKinds = ['bad', 'warn', 'soft', ''];

// What a column is sorted by; texts as people sort them.
function keyOf(view, server, column) {
  const {ids, refused, p99, connections} = activityOf(view.audit, server);
  return [server.address, kKinds.indexOf(server.kind), server.machines[0]?.machine ?? -1, ids ?? -1, refused ?? -1,
          p99 ?? -1, connections === undefined ? -1 : sumOf(connections), server.bound_ms ?? 0][column];
}

function sorted(view) {
  const order = (a, b) => typeof a === 'string' ? a.localeCompare(b, 'en', {numeric: true}) : a - b;
  const by = (a, b, column) => order(keyOf(view, a, column), keyOf(view, b, column));
  return serversOf(view).sort((a, b) => (sorting.down ? -1 : 1) * by(a, b, sorting.column) || by(a, b, 0));
}

export function showServers(view) {
  const {audit, unread} = view;
  const columns = kColumns.map((column, i) => ({...column, sort: sorting.column !== i ? 'none' :
      sorting.down ? 'descending' : 'ascending'}));
  if (audit === null) {
    show(element('serverscount'));
    show(element('allservers'));
    return showTable(element('servers'), 'Servers', columns, [],
                     unread ? `Not known: ${unread}.` : 'Being read.');
  }
  const servers = sorted(view), serving = servers.filter((server) => server.serves).length;
  show(element('serverscount'), `${number(serving)} of ${number(servers.length)} serving`);
  const shown = all ? servers : servers.slice(0, kRowsMax);
  showTable(element('servers'), 'Servers', columns, shown.map((server) => cellsOf(view, server)),
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
  element('servers').addEventListener('click', (event) => {
    const column = kColumns.findIndex(({name}) => name === event.target.closest('thead button')?.textContent);
    if (column < 0) return;
    // Numbers begin with the largest.
    const down = column === sorting.column ? !sorting.down : Boolean(kColumns[column].number);
    sorting = {column, down};
    again();
  });
}

// ---- the page of one ----------------------------------------------------------------------------

// Other hosts cannot reach a console that listens on a loopback address.
const isLocal = (host) => host === 'localhost' || host === '[::1]' || host.startsWith('127.');

function consoleOf({pace}) {
  const page = pace?.console;
  if (!page || !URL.canParse(page) || !/^https?:$/.test(new URL(page).protocol) ||
      (isLocal(new URL(page).hostname) && !isLocal(location.hostname))) {
    return undefined;
  }
  return make('a', {href: page}, page);
}

export function showServerPage(view, address, into) {
  const {audit, unread} = view;
  if (audit === null) return show(into, make('p', {}, unread ? `Not known: ${unread}.` : 'Being read.'));
  const server = serversOf(view).find((one) => one.address === address);
  if (server === undefined) return show(into, make('p', {}, 'No server of the cluster has this address.'));
  const {ids, calls, refused, p99, connections} = activityOf(audit, server);
  const each = (value) => value === undefined ? '–' : rate(value);
  show(into, make('dl', {id: 'serverfields'}, pairs([
    ['state', make('span', {class: server.kind || undefined}, server.text)], ['reason', server.reason],
    ['console', consoleOf(server)],
    ['machine ids', server.machines.length > 0 ? machinesOf(view, server) : 'none'],
    ['may issue for', server.machines.length > 0 ? leftText(audit, server.bound_ms, server.clock_skew_ms) : ''],
    ['ids/s', each(ids)], ['calls/s', each(calls)], ['refused/s', each(refused)],
    ['p99', p99 === undefined ? '–' : latency(p99)],
    ['connections', connectionsText(connections) || 'none'],
    ['rack', number(server.rack)], ['weight', server.weight === undefined ? '–' : number(server.weight)],
    ['clock', `its ids are ${difference(server.clock_skew_ms)} ahead of its clock`],
    ['application', server.application], ['pid', String(server.pid)],
    ['since', moment(server.since_ms)], ['build', server.build]])));
}
