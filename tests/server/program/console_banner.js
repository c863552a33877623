// Prints the banner of a server's console page, one line of JSON with an array of texts.
//
//     node console_banner.js http://127.0.0.1:7610
//
// The page's own script runs on the server's own answers. Only the elements are stand-ins, which keep the texts that
// the script writes. tests/interop/console_test.py runs the page in a browser.
'use strict';
const vm = require('node:vm');

const [, , base] = process.argv;
const elements = new Map();

function makeElement() {
  return {textContent: '', className: '', children: [], dataset: {}, childElementCount: 0, value: '',
          append(...more) { this.children.push(...more); },
          prepend(...more) { this.children.unshift(...more); },
          replaceChildren(...all) { this.children = all; },
          querySelectorAll() { return []; },
          setAttribute() {},
          addEventListener() {},
          get firstElementChild() { return makeElement(); }};
}

function elementOf(id) {
  if (!elements.has(id)) elements.set(id, makeElement());
  return elements.get(id);
}

async function main() {
  const page = await (await fetch(base + '/')).text();
  const script = page.match(/<script>(.*)<\/script>/s)[1];
  const context = vm.createContext({
    document: {getElementById: elementOf, createElement: makeElement, title: ''},
    location: {hash: ''}, performance, console, addEventListener() {}, setTimeout() {},
    fetch: (path) => fetch(base + path)});
  vm.runInContext(script, context);
  await vm.runInContext('look()', context);
  const banner = elementOf('trouble');
  const texts = banner.children.map(({textContent}) => textContent);
  if (banner.textContent) texts.push(banner.textContent);  // the page failed
  console.log(JSON.stringify(texts));
}
main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
