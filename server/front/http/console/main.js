// Reads this server and, through it, the cluster, and shows both. It sends requests only to the
// server that it came from.

import {setHistories, showCharts, startCharts} from './charts.js';
import {element, show} from './format.js';
import {showLeases, showMap, startMachines} from './machines.js';
import {showConsumers, showHealth, showRefusals, showServer, showTags, showTotals} from './overview.js';
import {forgetId, pageOf, showPage} from './pages.js';
import {historiesOf, showServers, startServers} from './servers.js';

const kServerEveryMs = 2000, kClusterEveryMs = 5000, kFirstReportsMs = 20000;

// What was read last; null: nothing yet.
const view = {status: null, audit: null, unread: '', servers: [], tags: null, consumers: [], history: null,
              rates: new Map(), protocols: []};
let before;  // the last {at, status}; undefined: none

// ---- this server --------------------------------------------------------------------------------

// Each protocol of the public port, with the 99th percentile of its requests; 0: none.
function protocolsOf(status, metrics) {
  const took = new Map(status.protocols.map(({protocol}) => [protocol, []]));
  for (const [, name, le, requests] of metrics.matchAll(
      /^firn_request_seconds_bucket\{door="public",protocol="(\w+)",le="([^"]+)"\} (\d+)$/gm)) {
    took.get(name)?.push([Number(le.replace('+Inf', 'Infinity')), Number(requests)]);
  }
  return status.protocols.map((one) => {
    const buckets = took.get(one.protocol), requests = buckets.at(-1)?.[1] ?? 0;
    const most = buckets.find(([, below]) => below >= 0.99 * requests)?.[0] ?? 0;
    return {...one, p99: requests > 0 && Number.isFinite(most) ? Math.round(most * 1e6) : 0};
  });
}

// Ids a second of each tag on this server.
function ratesOf(now) {
  if (before === undefined) return view.rates;
  const issued = new Map(before.status.tags.map((tag) => [tag.tag, tag.issued]));
  const seconds = (now.at - before.at) / 1000;
  return new Map(now.status.tags.map((tag) =>
      [tag.tag, Math.max(0, tag.issued - (issued.get(tag.tag) ?? 0)) / seconds]));
}

async function readServer() {
  try {
    const [status, metrics, history] = await Promise.all([
      fetch('/v1/status').then((answer) => answer.json()),
      fetch('/metrics').then((answer) => answer.text()),
      fetch('/v1/history').then((answer) => answer.json())]);
    const now = {at: performance.now(), status};
    Object.assign(view, {status, history: {...history, fetched: Date.now()}, rates: ratesOf(now),
                         protocols: protocolsOf(status, metrics)});
    showServer(view);
    showRefusals(status, before?.status);
    before = now;
    showAll();
  } catch (error) {
    element('state').className = '';
    show(element('state'), 'no answer');
    element('banner').className = 'refused';
    show(element('banner'), `This server does not answer: ${error.message}`);
  }
  setTimeout(readServer, kServerEveryMs);
}

// ---- the cluster --------------------------------------------------------------------------------

const ask = (path) => fetch(path).then((answer) => answer.json());

// Shorter until the cluster is read, and while servers write their first reports.
function pauseAfter(audit) {
  if (audit === null) return 500;
  const begin = audit.paces_wanted_ms < kFirstReportsMs && audit.providers.some(({pace}) => !pace);
  return begin ? 1500 : kClusterEveryMs;
}

async function readCluster() {
  try {
    const [audit, tags, servers, consumers] = await Promise.all(
        [ask('/v1/audit'), ask('/v1/tags'), ask('/v1/servers'), ask('/v1/consumers')]);
    const why = audit.error?.message ?? '';
    view.unread = /being read/.test(why) ? '' : why;
    if (!audit.error) view.audit = {...audit, fetched: Date.now()};
    if (tags.tags) view.tags = tags.tags;
    view.servers = servers.servers ?? [];
    view.consumers = consumers.consumers ?? [];
    showAll();
  } catch {
    // readServer says so.
  }
  setTimeout(readCluster, pauseAfter(view.audit));
}

// ---- everything ---------------------------------------------------------------------------------

let page = pageOf(location.hash);

// The histories of this server and of all others that have reported.
function histories() {
  const {status: {address: own}, history, audit} = view;
  const others = audit === null ? [] : historiesOf(audit).filter(({address}) => address !== own);
  return [{address: own, history, age_ms: Date.now() - history.fetched}, ...others];
}

function showAll() {
  if (view.status === null) return;
  showHealth(view);
  document.title = `Firn ${view.status.address} ${view.status.state}: ${showPage(view, page)}`;
  if (page.kind !== '') return;
  showTotals(view);
  setHistories(histories());
  showServers(view);
  showMap(view);
  showLeases(view);
  showTags(view);
  showConsumers(view);
}

function turnPage() {
  if (location.hash === '#main') return;  // the link that skips to the content
  page = pageOf(location.hash);
  forgetId();
  showAll();
  if (page.kind !== '') {
    scrollTo(0, 0);
    element('pagetitle').focus();
  } else {
    showCharts();
    element(location.hash.slice(1))?.scrollIntoView();
  }
}

element('explain').addEventListener('submit', (event) => {
  event.preventDefault();
  const id = element('id').value.trim();
  if (id) location.hash = `#/id/${encodeURIComponent(id)}`;
});
addEventListener('hashchange', turnPage);
startCharts();
startMachines(showAll);
startServers(showAll);
readServer().then(readCluster);
