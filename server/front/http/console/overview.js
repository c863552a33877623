// The overview: what is wrong, totals, tags, and this server.

import {secondsOf} from './charts.js';
import {ageOf, bannerOf, isOutdated, linesOf, troublesOf} from './findings.js';
import {clock, count, duration, element, latency, make, moment, number, pairs, rate, show, showTable,
        tagLink} from './format.js';
import {connectionsText, serversOf, totalsOf} from './servers.js';

const kLinesFirst = 3, kLinesMax = 20, kRecentMax = 10, kConsumersMax = 50;
const kUrgencies = {data: 'Act now', refused: 'Calls are refused', soon: 'Act soon', note: 'Note',
                    good: 'Healthy', unknown: 'Not current'};

// ---- health -------------------------------------------------------------------------------------

const findingOf = ({urgency, what, fix}) => make('li', {class: urgency},
    make('strong', {}, `${kUrgencies[urgency] ?? urgency}:`), ' ', what,
    fix ? make('div', {class: 'fix'}, 'Fix: ', make('code', {}, fix)) : null);

export function showHealth(view) {
  const banner = bannerOf(view), lines = linesOf(view);
  element('banner').className = banner.urgency;
  show(element('banner'), make('strong', {id: 'urgency'}, `${kUrgencies[banner.urgency] ?? banner.urgency}:`),
       ' ', make('span', {id: 'verdict'}, banner.what),
       banner.fix ? make('div', {class: 'fix'}, 'Fix: ', make('code', {}, banner.fix)) : null);
  const more = lines.length - kLinesMax;
  show(element('findings'), ...lines.slice(0, kLinesFirst).map(findingOf));
  // Many servers report one cause: folded, so that the servers remain in sight.
  element('morefindings').hidden = lines.length <= kLinesFirst;
  show(element('morecount'), count(lines.length - kLinesFirst, 'more finding'));
  show(element('morelist'), ...lines.slice(kLinesFirst, kLinesMax).map(findingOf),
       more > 0 ? make('li', {}, `and ${number(more)} more: run `, make('code', {}, 'firn doctor')) : null);
  show(element('readat'), view.audit === null ? '' :
      `registry read ${duration(ageOf(view.audit))} ago`);
}

// ---- totals -------------------------------------------------------------------------------------

const tile = (name, value, note, kind, title) => make('div', {class: `tile ${kind ?? ''}`, title},
    make('dt', {}, name), make('dd', {}, value, note ? make('small', {}, note) : null));

// Until the other servers have reported, the values of this one, from its own history.
function ownTotals({history}) {
  const last = (name) => history[name].at(-1) ?? 0, seconds = secondsOf(history);
  return {ids: last('ids') / seconds, refused: last('refused') / seconds, p99: last('p99_us') || undefined};
}

export function showTotals(view) {
  const {status, audit, tags, consumers} = view;
  const cluster = audit === null ? undefined : totalsOf(audit), known = cluster?.reported > 0;
  const totals = known ? cluster : ownTotals(view);
  const all = audit === null ? [] : serversOf(view), serving = all.filter((server) => server.serves).length;
  const partly = !known ? 'this server' :
      cluster.reported < all.length ? `${number(cluster.reported)} of ${number(all.length)} servers` : '';
  const held = audit?.machines.filter(({use}) => use === 'held').length;
  const disabled = status.refused_tags.filter(({state}) => state === 'disabled').length;
  const refusedTags = status.refused_tags_count - disabled;
  const tagCount = tags?.length ?? status.tags.length;
  const connections = totals.connections ??
      Object.fromEntries(view.protocols.map(({protocol, connections: open}) => [protocol, open]));
  const sum = Object.values(connections).reduce((sum, open) => sum + open, 0);
  element('totals').className = audit !== null && isOutdated(audit) ? 'outdated' : '';
  show(element('totals'),
       audit === null ? tile('servers serving', status.state === 'READY' ? '1' : '0', 'this server') :
           tile('servers serving', `${number(serving)} of ${number(all.length)}`, '',
                serving < all.length ? 'warn' : ''),
       tile('ids/s', rate(totals.ids), partly),
       totals.calls === undefined ? null : tile('calls/s', rate(totals.calls), partly),
       tile('refused/s', rate(totals.refused), partly, totals.refused > 0 ? 'warn' : ''),
       tile('p99', totals.p99 === undefined ? 'no calls' : latency(totals.p99),
            known && all.length > 1 ? 'slowest server' : partly),
       tile('connections', number(sum), partly, '', connectionsText(connections)),
       consumers.length > 0 ? tile('Dubbo consumers', number(consumers.length), 'registered') : null,
       tile('tags', number(tagCount), refusedTags > 0 ? `${number(refusedTags)} refused here` : '',
            refusedTags > 0 ? 'warn' : ''),
       tile('machine ids held', held === undefined ? number(status.machines.length) : number(held),
            audit === null ? 'this server' : `of ${number(audit.slots)}`));
}

// ---- tags ---------------------------------------------------------------------------------------

export function stateOfTag(status, tag) {
  const refused = status.refused_tags.find(({tag: name}) => name === tag.tag);
  const here = status.tags.find(({tag: name}) => name === tag.tag);
  if (refused?.state === 'disabled' || tag.state === 'disabled') return {text: 'disabled', kind: 'soft'};
  if (refused) return {text: 'refused here', kind: 'bad', why: `${refused.state}: ${refused.why}`};
  if (here?.trouble) return {text: 'in trouble', kind: 'bad', why: here.trouble};
  if (here?.outdated) return {text: 'earlier definition', kind: 'warn', why: here.outdated};
  return {text: tag.state ?? 'served', kind: 'good'};
}

// All tags of the registry and of this server.
export function tagsOf({status, tags}) {
  const names = new Set((tags ?? []).map(({tag}) => tag));
  return [...tags ?? [], ...status.tags.filter(({tag}) => !names.has(tag)),
          ...status.refused_tags.filter(({tag}) => !names.has(tag))];
}

const kTags = [{name: 'tag'}, {name: 'strategy'}, {name: 'state'}, {name: 'step', number: true},
               {name: 'next number', number: true}, {name: 'ids/s here', number: true},
               {name: 'issued here', number: true}, {name: 'in memory here', number: true}];

export function showTags(view) {
  const {status, rates} = view, served = new Map(status.tags.map((tag) => [tag.tag, tag]));
  const rank = (tag) => ['bad', 'warn'].includes(stateOfTag(status, tag).kind) ? 0 : 1;
  const list = tagsOf(view).sort((a, b) => rank(a) - rank(b));
  const value = (given) => given === undefined ? '–' : number(given);
  showTable(element('tags'), 'Tags', kTags, list.map((tag) => {
    const here = served.get(tag.tag), {text, kind, why} = stateOfTag(status, tag);
    const counted = tag.strategy !== 'snowflake';
    return [tagLink(tag.tag), tag.strategy ?? '–',
            [make('span', {class: kind}, text), why ? make('small', {}, why) : null].filter(Boolean),
            counted && tag.buffer !== 'none' ? value(here?.step ?? (tag.step || undefined)) : '–',
            counted ? value(tag.next ?? here?.high) : '–', rate(rates.get(tag.tag) ?? 0),
            value(here?.issued), value(here?.supply)];
  }), 'No tag is defined. Create one with: firn tags create NAME');
  show(element('tagscount'), number(list.length));
}

const kConsumers = [{name: 'application'}, {name: 'host'}, {name: 'pid', number: true},
                    {name: 'interface'}, {name: 'Dubbo'}];

export function showConsumers({consumers}) {
  const more = consumers.length - kConsumersMax;
  element('consumersection').hidden = consumers.length === 0;
  show(element('consumerscount'), `${number(consumers.length)} registered in ZooKeeper` +
      (more > 0 ? `, the first ${kConsumersMax} of them` : ''));
  showTable(element('consumers'), 'Dubbo consumers', kConsumers, consumers.slice(0, kConsumersMax)
      .map((one) => [one.application || '–', one.host, one.pid || '–', one.interface, one.dubbo || '–']),
            'No Dubbo consumer is registered.');
}

// ---- this server --------------------------------------------------------------------------------

// A server that looks for a machine id has no number yet.
function machineText({machine, worker, rack, claim, trouble}) {
  const which = machine === undefined ? 'none' : `${machine}: worker ${worker}, rack ${rack}`;
  return [which, claim === 'holding' ? '' : claim, trouble].filter((text) => text).join(', ');
}

export function showServer({status, protocols}) {
  const {registry} = status;
  element('state').className = status.state;
  show(element('state'), status.state);
  show(element('address'), status.address);
  show(element('cluster'), `${status.cluster_name} ${status.cluster_uuid}`);
  show(element('facts'), pairs([
    ...status.machines.map((one, i) => [i > 0 ? 'and' : 'machine id', machineText(one)]),
    ...troublesOf(status).map(({urgency, what}) => ['trouble', make('span', {class: urgency}, what)]),
    ['may issue for', status.bound_in_ms === undefined ? undefined : duration(status.bound_in_ms)],
    ['registry', `${registry.connected ? 'connected' : 'unreachable'}, session ` +
        duration(registry.session_age_ms)],
    ['renewals', `${number(registry.renewals)}, ${number(registry.renewals_failed)} failed`],
    ['clock', status.clock_skew_ms === undefined ? undefined :
        `${number(status.clock_skew_ms)} ms ahead of the registry's`],
    ['layout', `${status.layout}, until ${status.layout_ends.slice(0, 10)}`],
    ...status.certificates.map(({door, expires}) => [`certificate, ${door} port`,
                                                     `valid until ${moment(Date.parse(expires))}`]),
    ['started', moment(Date.parse(status.started))],
    ['version', `${status.version}, build ${status.build}`]]));
  showTable(element('protocols'), 'Protocols of this server', [
    {name: 'protocol'}, {name: 'connections', number: true}, {name: 'calls for ids', number: true},
    {name: 'refused', number: true}, {name: 'p99', number: true}],
            protocols.map(({protocol, connections, calls, refused, p99}) => [
              protocol, number(connections), number(calls),
              number(Object.values(refused).reduce((sum, of) => sum + of, 0)),
              p99 > 0 ? latency(p99) : '–']),
            'None.');
}

export function showRefusals(status, before) {
  const reasons = Object.entries(status.refused).filter(([, refused]) => refused > 0);
  showTable(element('refused'), 'Refusals by reason', [{name: 'reason'}, {name: 'calls', number: true}],
            reasons.map(([reason, refused]) => [reason, number(refused)]),
            'None since this server started.');
  if (!before) return;
  for (const [reason, refused] of Object.entries(status.refused)) {
    const more = refused - before.refused[reason];
    if (more <= 0) continue;
    element('recent').prepend(make('li', {}, `${clock(Date.parse(status.time))} UTC ${reason} ` +
        count(more, 'call')));
  }
  while (element('recent').childElementCount > kRecentMax) element('recent').lastChild.remove();
}
