// Texts and elements. Texts of servers only ever become text nodes, never HTML.

const kSvg = new Set(['svg', 'g', 'path', 'line', 'text', 'rect']);

export const element = (id) => document.getElementById(id);

// An element with attributes (those that are undefined, null or false are left out) and children.
export function make(name, attributes = {}, ...children) {
  const made = kSvg.has(name) ? document.createElementNS('http://www.w3.org/2000/svg', name) :
      document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return made;
}

// Makes the element's children equal to the wanted ones and changes only what differs, so that the
// focus stays where it is and screen readers announce no unchanged text.
export function show(into, ...wanted) {
  const nodes = wanted.flat().filter((node) => node !== undefined && node !== null)
      .map((node) => typeof node === 'string' ? document.createTextNode(node) : node);
  nodes.forEach((node, i) => {
    const present = into.childNodes[i];
    if (present === undefined) into.append(node);
    else if (present.nodeName !== node.nodeName) present.replaceWith(node);
    else if (node.nodeType === Node.TEXT_NODE) {
      if (present.data !== node.data) present.data = node.data;
    } else {
      copyAttributes(present, node);
      show(present, ...node.childNodes);
    }
  });
  while (into.childNodes.length > nodes.length) into.lastChild.remove();
}

function copyAttributes(to, from) {
  for (const {name} of [...to.attributes]) if (!from.hasAttribute(name)) to.removeAttribute(name);
  for (const {name, value} of from.attributes) {
    if (to.getAttribute(name) !== value) to.setAttribute(name, value);
  }
}

// ---- numbers and times --------------------------------------------------------------------------

// "2,000". Texts of 64-bit numbers are not rounded; other texts stay as they are.
export function number(value) {
  if (typeof value !== 'string') return value.toLocaleString('en');
  return /^-?\d+$/.test(value) ? BigInt(value).toLocaleString('en') : value;
}

// A rate a second: "0.3", "12", "25,000".
export function rate(value) {
  return value > 0 && value < 10 ? value.toFixed(1) : number(Math.round(value));
}

// A latency: "64 µs", "2.0 ms", "524 ms".
export function latency(us) {
  if (us < 1000) return `${number(us)} µs`;
  return us < 10000 ? `${(us / 1000).toFixed(1)} ms` : `${number(Math.round(us / 1000))} ms`;
}

export function duration(ms) {
  const s = Math.round(ms / 1000);
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${Math.round(s / 3600)} h` : `${number(Math.round(s / 86400))} days`;
}

export const difference = (ms) =>
    Math.abs(ms) < 10000 ? `${number(ms)} ms` : ms < 0 ? `-${duration(-ms)}` : duration(ms);

// "2026-11-25 03:15:17 UTC".
export const moment = (ms) =>
    ms > 0 ? `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC` : '–';

export const clock = (ms) => new Date(ms).toISOString().slice(11, 19);

// "1 server", "3 servers".
export const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? '' : 's'}`;

// ---- lists and tables ---------------------------------------------------------------------------

// Rows of a description list. Pairs without a value are left out.
export const pairs = (list) => list.filter(([, value]) => value !== undefined && value !== '')
    .flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]);

// The rows of a table's body. A cell is a text, an element, or {text, kind} with a class. On narrow
// screens the style sheet shows a row as a list, with the columns' names from `data-label`.
export function rows(columns, list) {
  return list.map((cells) => make('tr', {role: 'row'}, cells.map((cell, i) => {
    const {text = cell, kind = ''} = cell !== null && typeof cell === 'object' &&
        !(cell instanceof Node) && !Array.isArray(cell) ? cell : {};
    const classes = [columns[i].number ? 'number' : '', columns[i].kind, kind].filter(Boolean).join(' ');
    return make(i === 0 ? 'th' : 'td',
                {'role': i === 0 ? 'rowheader' : 'cell', 'scope': i === 0 ? 'row' : undefined,
                 'data-label': columns[i].name, 'class': classes || undefined}, text);
  })));
}

// Shows a table, or a sentence in its place while there is nothing to list. A column with `sort`, its
// aria-sort, has a button as its head.
export function showTable(into, caption, columns, list, empty) {
  if (list.length === 0) return show(into, make('p', {class: 'empty'}, empty));
  const head = columns.map(({name, title, number: right, sort}) => make('th',
      {'role': 'columnheader', 'scope': 'col', title, 'class': right ? 'number' : undefined, 'aria-sort': sort},
      sort ? make('button', {type: 'button'}, name) : name));
  show(into, make('table', {'role': 'table', 'aria-label': caption},
                  make('thead', {role: 'rowgroup'}, make('tr', {role: 'row'}, head)),
                  make('tbody', {role: 'rowgroup'}, rows(columns, list))));
}

// ---- links between the pages --------------------------------------------------------------------

export const tagLink = (tag) => make('a', {href: `#/tag/${encodeURIComponent(tag)}`}, tag);
export const machineLink = (machine, attributes = {}) =>
    make('a', {href: `#/machine/${machine}`, ...attributes}, number(machine));
