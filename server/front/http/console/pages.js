// The pages of a tag, a machine id, a server and an id, which the part of the address behind # names.

import {element, make, moment, number, pairs, rate, show} from './format.js';
import {showMachine} from './machines.js';
import {stateOfTag, tagsOf} from './overview.js';
import {showServerPage} from './servers.js';

// {kind, name}: kind '' is the overview. `#<id>` is short for `#/id/<id>`.
export function pageOf(hash) {
  const [, kind, name] = hash.match(/^#\/(tag|machine|server|id)\/(.*)$/s) ?? ['', '', ''];
  if (kind) return {kind, name: decode(name)};
  const id = decode(hash.slice(1));
  return id && !id.startsWith('/') && !element(id) ? {kind: 'id', name: id} : {kind: '', name: ''};
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const kTitles = {tag: 'Tag', machine: 'Machine id', server: 'Server', id: 'Id'};

// Shows the page that the address names. Returns its title.
export function showPage(view, page) {
  element('overview').hidden = page.kind !== '';
  element('page').hidden = page.kind === '';
  if (page.kind === '') return 'overview';
  const title = `${kTitles[page.kind]} ${page.name}`;
  show(element('pagetitle'), title);
  const into = element('pagebody');
  if (page.kind === 'machine') showMachine(view, Number(page.name || NaN), into);
  if (page.kind === 'server') showServerPage(view, page.name, into);
  if (page.kind === 'tag') showTag(view, page.name, into);
  if (page.kind === 'id') showId(page.name, into);
  return title;
}

// ---- a tag --------------------------------------------------------------------------------------

function showTag(view, name, into) {
  const {status, rates, audit} = view, tag = tagsOf(view).find((one) => one.tag === name);
  if (tag === undefined) {
    return show(into, make('p', {}, view.tags === null && !view.unread ? 'Being read.' :
        'No tag has this name.'));
  }
  const {text, kind, why} = stateOfTag(status, tag), here = status.tags.find((one) => one.tag === name);
  const fields = (view.tags ?? []).find((one) => one.tag === name) ?? {};
  const findings = (audit?.findings ?? []).filter(({what}) => what.includes(`'${name}'`) ||
      what.includes(` tag ${name} `) || what.includes(` tag ${name}:`));
  show(into, make('dl', {}, pairs([['state', make('span', {class: kind}, text)], ['why', why]])),
       make('h3', {}, 'On this server'), make('dl', {id: 'taghere'}, here === undefined ?
           pairs([['', 'This server does not serve it.']]) : pairs([
             ['ids/s', rate(rates.get(name) ?? 0)],
             ['issued since start', number(here.issued)],
             ['highest number', here.high === undefined ? undefined : number(here.high)],
             ['numbers in memory', here.supply === undefined ? undefined : number(here.supply)],
             ['they last for', here.supply_seconds === undefined ? undefined :
                 `${number(Math.round(here.supply_seconds))} s at the present rate`],
             ['numbers come from', here.owner && [here.owner, here.owner_since].filter(Boolean).join(', since ')],
             ['step', here.step === undefined ? undefined : number(here.step)],
             ['store unreachable since', here.ledger_since],
             ['numbers from the ledger meanwhile', here.ledger_numbers]])),
       make('h3', {}, 'Definition in the registry'),
       Object.keys(fields).length === 0 ? make('p', {class: 'empty'}, 'None: it is not in the registry.') :
           make('dl', {id: 'tagfields'}, pairs(Object.entries(fields).filter(([key]) => key !== 'tag')
               .map(([key, value]) => [key, value === '' ? '–' : String(value)]))),
       make('h3', {}, 'Findings'), findings.length === 0 ? make('p', {class: 'empty'}, 'None.') :
           make('ul', {}, findings.map(({what, fix}) => make('li', {}, what,
               fix ? make('div', {class: 'fix'}, 'Fix: ', make('code', {}, fix)) : null))));
}

// ---- an id --------------------------------------------------------------------------------------

let shown = '';  // the id whose answers are on the page

function showId(id, into) {
  if (id === shown) return;
  shown = id;
  show(into, make('dl', {id: 'fields'}), make('h3', {}, 'Issued by'),
       make('dl', {id: 'who', 'aria-live': 'polite'}));
  explain(id);
}

export const forgetId = () => { shown = ''; };

async function explain(id) {
  const answer = await fetch(`/v1/explain/${encodeURIComponent(id)}`), fields = await answer.json();
  if (id !== shown) return;
  const machine = fields.machine === undefined ? [] :
      [['', make('a', {href: `#/machine/${fields.machine}`}, 'holders of this machine id')]];
  show(element('fields'), pairs(answer.ok ?
      [...Object.entries(fields).map(([name, value]) => [name, String(value)]), ...machine] :
      [['refused', fields.error.message]]));
  if (answer.ok) tellWho(id);
}

// The cluster is read for it, which takes a moment.
async function tellWho(id, tries = 10) {
  const answer = await fetch(`/v1/who/${encodeURIComponent(id)}`), said = await answer.json();
  if (id !== shown) return;
  if (answer.status === 503 && tries > 0) {
    show(element('who'), pairs([['', said.error.message]]));
    setTimeout(() => tellWho(id, tries - 1), 1000);
    return;
  }
  const holders = (said.holders ?? []).map((holder) => ['server',
      `${holder.owner} on ${holder.host}, pid ${holder.pid}, which ` +
      (holder.present ? `holds the machine id since ${moment(holder.first_ms)}` :
          `held the machine id from ${moment(holder.first_ms)} to ${moment(holder.end_ms)}`)]);
  show(element('who'), pairs(holders.length > 0 ? holders :
      [['', answer.ok ? said.unknown : said.error.message]]));
}
