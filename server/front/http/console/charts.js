// Charts of the past 15 minutes: what the servers issued, what they refused, and their latency.

import {clock, element, latency, make, number, rate, show} from './format.js';

const kEveryMs = 10000, kPeriods = 90, kColours = 8, kHeight = 190,
      kMargin = {left: 76, right: 10, top: 10, bottom: 22};
const kColumns = ['ids', 'refused', 'p99_us'];

const colours = new Map();  // address -> number of its colour, kept while it is among the largest
// The last period with a sample, the last that is complete, and one that the reader points at.
let series = [], lastPeriod = 0, complete = 0, chosen = null;

// ---- from histories to series -------------------------------------------------------------------

const totalOf = (values) => values.reduce((sum, value) => sum + value, 0);

// Seconds for which the newest sample counts. Below 0, its age says when its period ends.
export const secondsOf = (history) =>
    Math.max(1000, kEveryMs + Math.min(0, history.age_ms)) / 1000;

// Samples of a server by period. Ages, not clocks, say when a sample was taken.
function samplesOf({address, history, age_ms: ageMs}) {
  const samples = new Map(), length = history.ids.length;
  const whole = kEveryMs / 1000 / secondsOf(history);  // from a part of a period to all of it
  const newest = Date.now() - ageMs - history.age_ms - kEveryMs / 2;
  for (let i = 0; i < length; ++i) {
    const period = Math.floor((newest - (length - 1 - i) * kEveryMs) / kEveryMs);
    samples.set(period, Object.fromEntries(kColumns.map((name) => [name, history[name][i]])));
  }
  const last = Math.floor(newest / kEveryMs), {ids, refused, ...rest} = samples.get(last);
  samples.set(last, {ids: ids * whole, refused: refused * whole, ...rest});
  return {address, samples, last, complete: history.age_ms < 0 ? last - 1 : last, ids: totalOf(history.ids),
          refused: totalOf(history.refused)};
}

// Adds up the servers for which there are no colours.
function sumOf(servers) {
  const samples = new Map();
  for (const server of servers) {
    for (const [period, sample] of server.samples) {
      const sum = samples.get(period) ?? {ids: 0, refused: 0, p99_us: 0};
      samples.set(period, {ids: sum.ids + sample.ids, refused: sum.refused + sample.refused,
                           p99_us: Math.max(sum.p99_us, sample.p99_us)});
    }
  }
  return {address: `${number(servers.length)} others`, samples, colour: 'others'};
}

function giveColours(largest) {
  const addresses = new Set(largest.map(({address}) => address));
  for (const address of colours.keys()) if (!addresses.has(address)) colours.delete(address);
  for (const address of addresses) {
    if (colours.has(address)) continue;
    const taken = new Set(colours.values());
    colours.set(address, Array.from({length: kColours}, (_, i) => i).find((i) => !taken.has(i)));
  }
}

// `histories`: [{address, history, age_ms}].
export function setHistories(histories) {
  const servers = histories.filter(({history}) => history.ids.length > 0).map(samplesOf);
  const ids = totalOf(servers.map((one) => one.ids)), refused = totalOf(servers.map((one) => one.refused));
  const part = (one) => one.ids / Math.max(ids, 1) + one.refused / Math.max(refused, 1);
  servers.sort((a, b) => part(b) - part(a) || a.address.localeCompare(b.address, 'en', {numeric: true}));
  const largest = servers.slice(0, servers.length <= kColours ? kColours : kColours - 1);
  giveColours(largest);
  series = largest.map((server) => ({...server, colour: String(colours.get(server.address))}));
  const others = servers.slice(largest.length);
  if (others.length > 0) series.push(sumOf(others));
  // The last period of which every server that still reports has told all.
  lastPeriod = Math.max(...servers.map(({last}) => last));
  complete = Math.min(...servers.map((one) => one.complete).filter((one) => one >= lastPeriod - 3));
  if (!series.some(({samples}) => samples.has(complete))) complete = lastPeriod;
  showCharts();
}

// Rates a second, or the latency, of the last period; undefined: no sample.
const valueAt = (one, period, name) => {
  const value = one.samples.get(period)?.[name];
  return value === undefined || name === 'p99_us' ? value : value * 1000 / kEveryMs;
};

// ---- drawing ------------------------------------------------------------------------------------

const kCharts = [
  {id: 'chart-ids', name: 'ids', title: 'Ids issued per second', unit: 'ids/s', stacked: true,
   text: rate, empty: 'No ids were issued in this time.'},
  {id: 'chart-refused', name: 'refused', title: 'Calls refused per second', unit: 'refused/s',
   stacked: true, text: rate, empty: 'No calls were refused in this time.'},
  {id: 'chart-p99', name: 'p99_us', title: 'Latency, 99th percentile', unit: 'p99', stacked: false,
   text: latency, empty: 'There were no requests in this time.'},
];

// The end of an axis that begins at 0: 1, 2 or 5 times a power of ten, 1 at least.
function endOfAxis(top) {
  const power = 10 ** Math.floor(Math.log10(Math.max(top, 1)));
  return [1, 2, 5, 10].map((times) => times * power).find((end) => end >= top);
}

// {ticks, y}: values with labels, and a function from a value to a height. The latency's axis is
// logarithmic, as its values are powers of two.
function axisOf(chart, top) {
  const low = kHeight - kMargin.bottom, high = kMargin.top;
  if (chart.stacked) {
    const end = endOfAxis(top);
    return {ticks: [0, end / 2, end], y: (value) => low - (low - high) * value / end};
  }
  const end = Math.max(3, Math.ceil(Math.log10(Math.max(top, 1))));
  return {ticks: Array.from({length: end + 1}, (_, i) => 10 ** i),
          y: (value) => low - (low - high) * Math.log10(Math.max(value, 1)) / end};
}

function stackedPaths(chart, periods, x, y) {
  const base = periods.map(() => 0);
  return series.map((one) => {
    const lower = periods.map((_, i) => `${x(i + 1)},${y(base[i])}L${x(i)},${y(base[i])}`).reverse();
    periods.forEach((period, i) => { base[i] += valueAt(one, period, chart.name) ?? 0; });
    const upper = periods.map((_, i) => `${x(i)},${y(base[i])}L${x(i + 1)},${y(base[i])}`);
    return make('path', {class: `area s${one.colour}`, d: `M${upper.join('L')}L${lower.join('L')}Z`});
  });
}

// A dash for each server and period with requests. Lines between them would hide each other.
function linePaths(chart, periods, x, y) {
  return series.map((one) => {
    const path = periods.map((period, i) => {
      const value = valueAt(one, period, chart.name) ?? 0;
      return value > 0 ? `M${x(i)},${y(value)}L${x(i + 1)},${y(value)}` : '';
    }).join('');
    return make('path', {class: `line s${one.colour}`, d: path || 'M0,0'});
  });
}

function topOf(chart, periods) {
  const values = periods.map((period) => series.map((one) => valueAt(one, period, chart.name) ?? 0));
  return Math.max(0, ...values.map((all) =>
      chart.stacked ? all.reduce((sum, value) => sum + value, 0) : Math.max(...all)));
}

function frame(chart, axis, periods, width) {
  const low = kHeight - kMargin.bottom, right = width - kMargin.right;
  const lines = axis.ticks.flatMap((tick) => [
    make('line', {class: 'grid', x1: kMargin.left, x2: right, y1: axis.y(tick), y2: axis.y(tick)}),
    make('text', {'class': 'tick', 'x': kMargin.left - 6, 'y': axis.y(tick) + 4,
                  'text-anchor': 'end'}, chart.text(tick))]);
  const times = [0, 30, 60, 90].map((i) => make('text',
      {'class': 'tick', 'y': kHeight - 5, 'x': kMargin.left + (right - kMargin.left) * i / kPeriods,
       'text-anchor': i === 0 ? 'start' : i === kPeriods ? 'end' : 'middle'},
      clock((periods[0] + i) * kEveryMs).slice(0, 5) + (i === kPeriods ? ' UTC' : '')));
  return [...lines, ...times,
          make('line', {class: 'axis', x1: kMargin.left, x2: right, y1: low, y2: low})];
}

function showChart(chart, periods) {
  const into = element(chart.id), width = Math.max(280, into.clientWidth);
  const top = topOf(chart, periods), axis = axisOf(chart, top);
  const x = (i) => (kMargin.left + (width - kMargin.left - kMargin.right) * i / kPeriods).toFixed(1);
  const y = (value) => axis.y(value).toFixed(1);
  const paths = (chart.stacked ? stackedPaths : linePaths)(chart, periods, x, y);
  const at = chosen === null ? [] : [make('line', {
    class: 'chosen', x1: x(chosen - periods[0] + 0.5), x2: x(chosen - periods[0] + 0.5),
    y1: kMargin.top, y2: kHeight - kMargin.bottom})];
  const pale = Number(x(complete + 1 - periods[0])), later = make('rect', {
    class: 'later', x: pale, y: kMargin.top, width: (width - kMargin.right - pale).toFixed(1),
    height: kHeight - kMargin.top - kMargin.bottom});
  const label = `${chart.title}, the past 15 minutes. ` +
      (top > 0 ? `Highest: ${chart.text(top)}.` : chart.empty);
  show(into, make('svg', {'role': 'img', 'aria-label': label, 'width': width, 'height': kHeight,
                          'viewBox': `0 0 ${width} ${kHeight}`},
                  ...frame(chart, axis, periods, width), ...top > 0 ? [...paths, later] : [], ...at,
                  ...top > 0 ? [] : [make('text',
                      {'class': 'none', 'x': (width + kMargin.left) / 2, 'y': 42,
                       'text-anchor': 'middle'}, chart.empty)]));
}

export function showCharts() {
  if (series.length === 0) {
    for (const {id} of kCharts) {
      show(element(id), make('p', {class: 'empty'},
                             'No sample yet. Each server takes one every 10 seconds.'));
    }
    return show(element('legend'));
  }
  const periods = Array.from({length: kPeriods}, (_, i) => lastPeriod - kPeriods + 1 + i);
  if (chosen !== null && chosen < periods[0]) chosen = null;
  for (const chart of kCharts) showChart(chart, periods);
  showLegend();
}

function showLegend() {
  const period = chosen ?? complete;
  const heads = ['server', ...kCharts.map(({unit}) => unit)];
  const values = (one) => kCharts.map((chart) => {
    const value = valueAt(one, period, chart.name);
    return make('td', {class: 'number'},
                value === undefined || (chart.name === 'p99_us' && value === 0) ? '–' : chart.text(value));
  });
  const all = kCharts.map((chart) => {
    const each = series.map((one) => valueAt(one, period, chart.name) ?? 0);
    const value = chart.stacked ? each.reduce((sum, one) => sum + one, 0) : Math.max(...each);
    return make('td', {class: 'number'}, !chart.stacked && value === 0 ? '–' : chart.text(value));
  });
  show(element('legend'), make('table', {},
      make('caption', {}, `${clock(period * kEveryMs)} to ${clock((period + 1) * kEveryMs)} UTC` +
          (period > complete ? ', incomplete' : '')),
      make('thead', {}, make('tr', {}, heads.map((head, i) => make('th',
          {scope: 'col', class: i > 0 ? 'number' : undefined}, head)))),
      make('tbody', {},
           series.map((one) => make('tr', {}, make('th', {scope: 'row'},
               make('i', {class: `swatch s${one.colour}`}), one.address), values(one))),
           make('tr', {class: 'sum'}, make('th', {scope: 'row'}, 'all'), all))));
}

// ---- pointing at a period -----------------------------------------------------------------------

function choose(period) {
  chosen = period === null ? null : Math.min(Math.max(period, lastPeriod - kPeriods + 1), lastPeriod);
  showCharts();
}

function onPoint(event) {
  const box = event.currentTarget.getBoundingClientRect();
  const part = (event.clientX - box.left - kMargin.left) / (box.width - kMargin.left - kMargin.right);
  choose(lastPeriod - kPeriods + 1 + Math.floor(part * kPeriods));
}

function onKey(event) {
  const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -6, PageDown: 6}[event.key];
  if (event.key === 'Escape') return choose(null);
  if (step === undefined || series.length === 0) return;
  event.preventDefault();
  choose((chosen ?? complete) + step);
}

export function startCharts() {
  for (const {id} of kCharts) {
    element(id).addEventListener('pointermove', onPoint);
    element(id).addEventListener('pointerleave', () => choose(null));
    element(id).addEventListener('keydown', onKey);
  }
  addEventListener('resize', showCharts);
}
