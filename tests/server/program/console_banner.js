// Prints the banner of a server's console for that server alone, one line of JSON with an array
// of {urgency, what}.
//
//     node console_banner.js http://127.0.0.1:7610
//
// The console's own module reads the server's own status. tests/interop/console_test.py runs the page in a browser.
'use strict';

async function main() {
  const [, , base] = process.argv;
  const text = async (path) => (await fetch(base + path)).text();
  const findings = await import('data:text/javascript,' + encodeURIComponent(await text('/console/findings.js')));
  console.log(JSON.stringify(findings.troublesOf(JSON.parse(await text('/v1/status')))));
}
main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
