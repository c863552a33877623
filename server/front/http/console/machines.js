// Machine ids: the map of all of them, and the page of one.

import {count, duration, element, machineLink, make, moment, number, pairs, show, showTable}
  from './format.js';

const kCellsMax = 4096;
// Names of a slot's states, in the order of the key.
const kUses = {held: 'held', unattended: 'granted, holder away', passed: 'expired',
               released: 'given back', reserved: 'reserved for another system', retired: 'retired',
               poisoned: 'bound too far ahead', unreadable: 'unreadable', unused: 'never used'};

let rackBits = 0, current = null;  // current: the cell that Tab reaches

export const slotOf = (audit, machine) => audit?.machines.find((slot) => slot.machine === machine);
export const useOf = (audit, slot) => audit === null ? 'not read yet' :
    kUses[slot === undefined ? 'unused' : slot.use] ?? slot.use;
export const placeOf = (status, machine) => `worker ${number(machine >> status.rack_bits)}, ` +
    `rack ${number(machine & (1 << status.rack_bits) - 1)}`;

// By the clock of the server that read it, and in the time of ids, which may run ahead of it. A
// registry that is unreachable moves no bound.
export const leftMs = (audit, ms, aheadMs = 0) =>
    ms - audit.at_ms - (audit.trouble ? audit.age_ms : 0) - aheadMs;

export function leftText(audit, ms, aheadMs = 0) {
  const left = leftMs(audit, ms, aheadMs);
  return left >= 0 ? duration(left) : `ended ${duration(-left)} ago`;
}

// Machine ids that have a slot: racks of as many workers each.
function shapeOf({status, audit}) {
  const racks = 1 << status.rack_bits;
  const all = 1 << Math.max(0, status.machine_bits - status.rack_bits);
  const workers = audit === null ? all : Math.min(all, Math.ceil(audit.slots / racks));
  return {racks, workers: racks * workers > kCellsMax ? 0 : workers};
}

function cellOf(view, machine, slot, own) {
  const name = `${machine}: ${placeOf(view.status, machine)}, ${useOf(view.audit, slot)}` +
      (slot?.host ? `, ${slot.host}` : '') + (own ? ', this server' : '');
  return make('a', {'href': `#/machine/${machine}`, 'class': `${slot?.use ?? ''}${own ? ' own' : ''}`,
                    'data-machine': machine, 'tabindex': machine === current ? 0 : -1,
                    'title': name, 'aria-label': name});
}

export function showMap(view) {
  const {status, audit} = view, {racks, workers} = shapeOf(view);
  rackBits = status.rack_bits;
  const slots = new Map((audit?.machines ?? []).map((slot) => [slot.machine, slot]));
  const own = new Set(status.machines.map(({machine}) => machine));
  current ??= own.values().next().value ?? 0;
  show(element('map'), Array.from({length: workers > 0 ? racks : 0}, (_, rack) => make(
      'div', {class: 'rack'}, make('small', {}, `rack ${rack}`), make(
          'div', {class: 'cells'}, Array.from({length: workers}, (_, worker) => {
            const machine = worker << rackBits | rack;
            return cellOf(view, machine, slots.get(machine), own.has(machine));
          })))));
  element('map').className = workers <= 32 ? 'few' : '';
  showKey(audit, slots);
  showUsed(view);
}

function showKey(audit, slots) {
  if (audit === null) return show(element('key'), 'Not read yet.');
  const counts = new Map(Object.keys(kUses).map((use) => [use, 0]));
  for (const {use} of slots.values()) counts.set(use, (counts.get(use) ?? 0) + 1);
  counts.set('unused', Math.max(0, audit.slots - slots.size));
  show(element('key'), [...counts].filter(([, of]) => of > 0).map(([use, of]) => make(
      'span', {}, make('i', {class: use}), `${kUses[use] ?? use} ${number(of)}`)));
}

const kColumns = [{name: 'machine id', number: true}, {name: 'worker', number: true},
                  {name: 'rack', number: true}, {name: 'state'}, {name: 'holder'},
                  {name: 'since', kind: 'whole'}, {name: 'bound', kind: 'whole'}];

function showUsed({audit}) {
  const slots = [...audit?.machines ?? []].sort((a, b) => a.machine - b.machine);
  show(element('usedcount'), `Table of ${count(slots.length, 'machine id')} that ` +
      (slots.length === 1 ? 'was used' : 'were used'));
  if (!element('used').open) return show(element('usedtable'));
  showTable(element('usedtable'), 'Machine ids that were used', kColumns, slots.map((slot) => [
    machineLink(slot.machine), number(slot.worker), number(slot.rack), useOf(audit, slot),
    slot.endpoint ?? slot.owner, moment(slot.since_ms), moment(slot.bound_ms)]),
            'No machine id was ever used.');
}

// ---- leases -------------------------------------------------------------------------------------

const kLeasesMax = 50;
const kLeases = [{name: 'program'}, {name: 'machine id', number: true}, {name: 'server'},
                 {name: 'since', kind: 'whole'}, {name: 'reserved for', kind: 'whole'}];

// Of all servers. A lease whose machine id is free again has ended.
export function showLeases({audit}) {
  const leased = (audit?.machines ?? [])
      .filter(({lease, use}) => lease !== undefined && (use === 'held' || use === 'unattended'))
      .sort((a, b) => a.machine - b.machine);
  const more = leased.length - kLeasesMax;
  element('leasesection').hidden = leased.length === 0;
  show(element('leasescount'), count(leased.length, 'machine id') +
      (more > 0 ? `, the first ${kLeasesMax} of them` : ''));
  showTable(element('leases'), 'Leases', kLeases, leased.slice(0, kLeasesMax).map((slot) => [
    slot.lease.name, machineLink(slot.machine), slot.lease.server, moment(slot.since_ms),
    leftText(audit, slot.bound_ms, slot.clock_skew_ms)]), 'No machine id is leased.');
}

// ---- the page of one ----------------------------------------------------------------------------

const kHolders = [{name: 'from', kind: 'whole'}, {name: 'until', kind: 'whole'}, {name: 'owner'}, {name: 'host'},
                  {name: 'pid', number: true}];

export function showMachine(view, machine, into) {
  const {status, audit} = view;
  if (audit === null) {
    return show(into, make('p', {}, view.unread ? `Not known: ${view.unread}.` : 'Being read.'));
  }
  const {racks, workers} = shapeOf(view);
  if (!(machine >= 0) || (workers > 0 && machine >= racks * workers)) {
    return show(into, make('p', {}, 'This cluster has no such machine id.'));
  }
  const slot = slotOf(audit, machine), past = slot?.past ?? [];
  const more = (slot?.past_count ?? 0) - past.length;
  show(into, make('dl', {id: 'holder'}, pairs([
    ['place', placeOf(status, machine)],
    ['state', useOf(audit, slot)],
    ...slot === undefined ? [] : [
      ['leased to', slot.lease?.name],
      ['server', slot.endpoint], ['owner', slot.owner],
      ['host', slot.host && `${slot.host}, pid ${slot.pid}`],
      ['held since', slot.since_ms > 0 ? moment(slot.since_ms) : ''],
      ['bound', slot.bound_ms > 0 ? `${moment(slot.bound_ms)} ` +
          `(${leftText(audit, slot.bound_ms, slot.clock_skew_ms)})` : ''],
      ['build', slot.build]]])),
       make('h3', {}, 'Past holders'),
       holdersTable(past.toReversed()),
       more > 0 ? make('p', {class: 'soft'}, `and ${number(more)} before these`) : null,
       make('p', {},
            machine > 0 ? make('a', {href: `#/machine/${machine - 1}`}, `machine id ${machine - 1}`) : null,
            machine > 0 ? ' · ' : null,
            make('a', {href: `#/machine/${machine + 1}`}, `machine id ${machine + 1}`)));
}

function holdersTable(past) {
  const into = make('div', {id: 'past'});
  showTable(into, 'Past holders', kHolders, past.map((holder) => [
    moment(holder.first_ms), moment(holder.end_ms), holder.owner, holder.host, String(holder.pid)]),
            'No other process has held it before.');
  return into;
}

// ---- arrow keys ---------------------------------------------------------------------------------

function onKey(event) {
  const cells = [...element('map').querySelectorAll('a')];
  const tops = cells.map((cell) => cell.offsetTop);
  const columns = tops.filter((top) => top === tops[0]).length;  // of a whole row
  const step = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns}[event.key];
  if (step === undefined || cells.length === 0) return;
  event.preventDefault();
  const at = cells.indexOf(document.activeElement);
  const next = cells[Math.min(Math.max(at + step, 0), cells.length - 1)];
  for (const cell of cells) cell.tabIndex = cell === next ? 0 : -1;
  current = Number(next.dataset.machine);
  next.focus();
}

export function startMachines(again) {
  element('map').addEventListener('keydown', onKey);
  element('used').addEventListener('toggle', again);
}
