#!/usr/bin/python3
"""Tests the console's page in a real browser, on invented clusters of 3, 12, 40 and 100 servers.

    console_pages_test.py

Exit 77 when chromium is not installed. With --pictures it replaces the pictures of the console's README.
"""

import itertools
import os
import re
import shutil
import sys
import tempfile
import unittest

import browser
import interop
from console_stage import CONSOLE, Stage

# Elements that Tab must reach. Tab reaches one of the map's squares; arrow keys reach the others.
REACHABLE = """[...document.querySelectorAll('a[href], button, input, summary, [tabindex="0"]')]
    .filter((one) => one.tabIndex >= 0 && one.checkVisibility())"""
# Texts whose contrast with their background is below 4.5:1, as WCAG requires for text of this size.
PALE = """(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
      .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const faults = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const one = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !one.checkVisibility()) continue;
    const style = getComputedStyle(one), svg = one.namespaceURI.endsWith('svg');
    const shown = ratio(light(parse(svg ? style.fill : style.color)), light(behind(one)));
    if (shown < 4.5) faults.push(`${texts.currentNode.data.trim()}: ${shown.toFixed(2)}`);
  }
  for (const one of document.querySelectorAll('#key i, .swatch')) {
    const style = getComputedStyle(one);
    if (one.className === 'unused' || style.backgroundImage !== 'none') continue;
    const least = /passed|released/.test(one.className) ? 2 : 3;
    const shown = ratio(light(parse(style.backgroundColor)), light(behind(one.parentElement)));
    if (shown < least) faults.push(`${one.className}: ${shown.toFixed(2)}`);
  }
  return faults;
})()"""
# Elements whose content does not fit.
CUT = """[...document.querySelectorAll('main *')].filter((one) => one.scrollWidth > one.clientWidth + 1 &&
    one.clientWidth > 0 && getComputedStyle(one).overflowX !== 'visible' && one.tagName !== 'INPUT' &&
    !(one.namespaceURI.endsWith('svg')) && one.closest('thead') === null).map((one) => one.outerHTML.slice(0, 99))"""
UNLABELLED = """[...document.querySelectorAll('input, table, section, nav, [role=group], [role=img]')]
    .filter((one) => one.checkVisibility() && !(one.labels?.length) && !one.caption &&
        !one.getAttribute('aria-label') &&
        !document.getElementById(one.getAttribute('aria-labelledby'))?.textContent)
    .map((one) => one.outerHTML.slice(0, 99))"""

# The labels of a chart's vertical axis.
TICKS = "[...document.querySelectorAll('#%s .tick[x=\"70\"]')].map((one) => one.textContent)"
ROWS = "[...document.querySelectorAll('#servers tbody tr')]"
# What a person sees first in each scene: the banner and the first row.
FIRST = {
    "healthy": (r"^Healthy: Nothing is wrong\.$", r"^10\.0\.0\.1:7609 \(this server\)\s+serving\s"),
    "killed": (r"^Act soon: rack \d worker \d+: its holder, firn 10\.0\.0\.\d+:7609 on host-\d+, has left without giving it "
               r"back, .*Fix: start that server again", r"^host-\d+, pid 4711\s+has left, or is cut off\s"),
    "frozen": (r"^Act now: the cluster is frozen: .*Fix: run the firn restore command", r"^10\.0\.0\.1:7609 \(this server\)\s+serving\s"),
    "overloaded": (r"^Calls are refused: 10\.0\.0\.1:7609 refuses calls \(OVERLOADED\): .*Fix: add servers",
                   r"^10\.0\.0\.1:7609 \(this server\)\s+serving\s+0\s+[\d,]+\s+[1-9]"),
}

# The pictures of the console's README: file, servers, scene, width and colours.
PICTURES = (("overview-3.png", 3, "healthy", 1280, "light"), ("overview-40.png", 40, "killed", 1280, "light"),
            ("overview-narrow.png", 12, "trouble", 390, "dark"))


class ConsolePagesTest(unittest.TestCase):
    folder = None

    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser(os.path.join(cls.folder, "browser"))
        cls.addClassCleanup(cls.browser.end)

    def show(self, servers, scene, place="", width=1600, scheme="light"):
        stage = Stage(servers, scene)
        self.addCleanup(stage.end)
        self.browser.size(width)
        self.browser.scheme(scheme)
        self.browser.open(f"http://127.0.0.1:{stage.serve()}/{place}")
        self.browser.wait("!!document.getElementById('readat')?.textContent")
        return self.browser

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])

    def test_lists_a_hundred_servers(self):
        page = self.show(100, "healthy")
        self.assertIn("100 of 100", page.text("totals"))
        self.assertEqual(page.evaluate("document.querySelectorAll('#servers tbody tr').length"), 12)
        self.assertEqual(page.text("more"), "Show all 100 servers")
        page.evaluate("document.getElementById('more').click()")
        self.assertEqual(page.evaluate("document.querySelectorAll('#servers tbody tr').length"), 100)
        self.assertIn("93 others", page.text("legend"))
        self.assertIn("16 registered", page.text("consumerscount"))
        self.assertRegex(page.text("consumers"), r"shop\s+10\.1\.0\.0\s+300\s+firn\.IdService\s+3\.3\.0")

    def test_shows_first_what_is_wrong_what_to_do_and_who_serves(self):
        """In each scene, with 3 and 40 servers, on a laptop without scrolling and on a telephone."""
        for scene, servers in itertools.product(FIRST, (3, 40)):
            page = self.show(servers, scene, width=1280)
            finding, row = FIRST[scene]
            page.await_text("banner", finding)
            serving = servers - (scene == "killed")
            for width in 1280, 390:
                with self.subTest(scene=scene, servers=servers, width=width):
                    page.size(width)
                    self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                    self.assertEqual(page.evaluate(CUT), [])
                    self.assertRegex(page.evaluate(f"{ROWS}[0].innerText"), row)
                    self.assertIn(f"{serving} of {servers}", page.text("totals"))
                    self.assertEqual(page.text("serverscount"), f"{serving} of {servers} serving")
                    for chart in "chart-ids", "chart-refused", "chart-p99":
                        labels = page.evaluate(TICKS % chart)
                        self.assertGreater(len(labels), 2)
                        self.assertEqual(len(set(labels)), len(labels), labels)
                    bottoms = page.evaluate(f"[document.getElementById('banner'), ...{ROWS}]"
                                            ".map((one) => one.getBoundingClientRect().bottom)")
                    self.assertEqual(len(bottoms), 1 + min(servers, 12))
                    if width == 1280:
                        self.assertLess(bottoms[1 if scene in ("frozen", "overloaded") else -1], 800)  # more findings
                        heights = page.evaluate(f"{ROWS}.slice(0, -1).map((one) => one.getBoundingClientRect().height)")
                        self.assertLess(max(heights), 35)
                    else:
                        self.assertLess(bottoms[0], 500)
                        self.assertLess(bottoms[1], 1400)
                    coloured = page.evaluate("document.querySelectorAll('#servers .warn, #servers .bad').length")
                    self.assertEqual(coloured > 0, scene in ("killed", "overloaded"))

    def test_axes_of_low_rates_have_labels_that_differ(self):
        labels = self.show(3, "warned").evaluate(TICKS % "chart-ids")
        self.assertEqual(labels, ["0", "0.5", "1.0"])

    def column(self, page, place):
        return page.evaluate(f"{ROWS}.map((one) => one.children[{place}].innerText)")

    def test_sorts_servers_by_each_column(self):
        page = self.show(40, "trouble", width=1280)
        page.evaluate("document.getElementById('more').click()")
        heads = page.evaluate("[...document.querySelectorAll('#servers thead button')].map((one) => one.textContent)")
        self.assertEqual(heads, ["server", "state", "machine ids", "ids/s", "refused/s", "p99", "connections",
                                 "may issue for"])
        units = {"µs": 1, "ms": 1000, "s": 1_000_000, "min": 60_000_000}

        def key(place, text):
            if place == 0:
                return [int(part) for part in re.findall(r"\d+", text.removesuffix(" (this server)"))]
            if place == 1:
                return ["silent", "serving"].index(text.split()[0])
            number, unit = re.fullmatch(r"([\d,.]+|–) ?(\D*)", text).groups()
            return -1 if number == "–" else float(number.replace(",", "")) * units.get(unit, 1)
        for place, head in enumerate(heads):
            seen = set()
            for _ in range(2):
                direction, cells = page.evaluate(f"""(() => {{
                    document.querySelectorAll('#servers thead button')[{place}].click();
                    return [document.querySelector('#servers th:nth-child({place + 1})').ariaSort,
                            {ROWS}.map((one) => one.children[{place}].innerText)];
                }})()""")
                seen.add(direction)
                keys = [key(place, text) for text in cells]
                self.assertEqual(len(keys), 40)
                self.assertNotEqual(keys[0], keys[-1], head)
                self.assertEqual(keys, sorted(keys, reverse=direction == "descending"), head)
            self.assertEqual(seen, {"ascending", "descending"}, head)

    def test_says_when_the_data_are_outdated(self):
        page = self.show(3, "outdated")
        self.assertRegex(page.text("banner"), r"^Not current: The cluster was read 21\d s ago")
        self.assertEqual(page.evaluate("document.getElementById('totals').className"), "outdated")
        colours = page.evaluate("['totals', 'serverscount'].map((id) => getComputedStyle(document.getElementById(id)).color)")
        self.assertEqual(colours[0], colours[1])
        self.assertEqual(self.column(page, 1), ["serving when last read"] * 3)
        self.assertEqual(self.column(page, 3), ["–"] * 3)

    def test_a_trouble_that_refuses_no_calls_is_not_shown_as_a_refusal(self):
        page = self.show(3, "warned")
        self.assertEqual(page.text("banner"), "Act soon: This server: no grant file")
        self.assertEqual(page.evaluate("document.getElementById('banner').className"), "soon")

    def test_a_server_has_a_page(self):
        page = self.show(12, "healthy", "#/server/10.0.0.5%3A7609")
        page.wait("!!document.getElementById('serverfields')")
        for words in "serving", "http://10.0.0.5:7610/", "build\nabc1234", "weight\n100", "pid\n4711":
            self.assertIn(words, page.text("pagebody"))
        self.assertRegex(page.text("pagebody"), r"since\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")

    def test_charts_have_axes_and_a_legend_that_adds_up(self):
        page = self.show(12, "trouble")
        for chart in "chart-ids", "chart-refused", "chart-p99":
            self.assertRegex(page.text(chart), r"\d\d:\d\d UTC")
            self.assertGreater(page.evaluate(f"document.querySelectorAll('#{chart} path').length"), 7)
        values = page.evaluate("[...document.querySelectorAll('#legend tbody td:nth-child(2)')]"
                               ".map((one) => Number(one.textContent.replaceAll(',', '')))")
        self.assertEqual(sum(values[:-1]), values[-1])
        before = page.text("legend")
        page.evaluate("document.getElementById('chart-ids').focus()")
        for _ in range(8):
            page.press("ArrowLeft")
        self.assertNotEqual(page.text("legend").split("\n")[0], before.split("\n")[0])

    def test_the_most_urgent_finding_comes_first_with_its_fix(self):
        page = self.show(12, "trouble")
        banner = page.text("banner")
        self.assertTrue(banner.startswith("Calls are refused: server 10.0.0.2:7609 refuses tag"), banner)
        self.assertIn("--stores_file", banner)
        self.assertIn("certificate", page.text("findings"))
        first = page.evaluate("document.querySelector('#servers tbody tr').innerText")
        self.assertIn("silent for", first)
        self.assertIn("invoice", page.evaluate("document.querySelector('#tags tbody tr').innerText"))

    def test_folds_all_but_the_first_findings(self):
        page = self.show(40, "frozen")
        shown = lambda: page.evaluate("[...document.querySelectorAll('#findings li, #morelist li')]"
                                      ".filter((one) => one.checkVisibility()).length")
        self.assertEqual((shown(), page.text("morecount")), (3, "77 more findings"))
        page.evaluate("document.getElementById('morecount').click()")
        self.assertEqual(shown(), 21)
        self.assertIn("and 60 more: run firn doctor", page.text("morelist"))
        page = self.show(12, "trouble")
        self.assertEqual((shown(), page.evaluate("document.getElementById('morefindings').hidden")), (2, True))

    def test_reserved_and_retired_machine_ids_have_colours_of_their_own(self):
        page = self.show(12, "trouble")
        looks = page.evaluate("""[...document.querySelectorAll('#key i')].map((one) => {
            const {backgroundColor, backgroundImage} = getComputedStyle(one);
            return [one.className, backgroundColor + backgroundImage];
        })""")
        looks = dict(looks)
        self.assertGreaterEqual(set(looks), {"held", "unattended", "reserved", "retired", "unused"})
        self.assertEqual(looks.pop("passed"), looks["released"])
        self.assertEqual(len(set(looks.values())), len(looks))

    def test_empty_states_are_sentences(self):
        page = self.show(3, "fresh")
        self.assertIn("No ids were issued", page.text("chart-ids"))
        self.assertIn("No calls were refused", page.text("chart-refused"))
        self.assertIn("There were no requests", page.text("chart-p99"))
        self.assertEqual(page.text("refused"), "None since this server started.")
        page = self.show(3, "healthy", "#/machine/1000")
        self.assertIn("never used", page.text("pagebody"))
        self.assertIn("No other process has held it before.", page.text("pagebody"))
        page = self.show(3, "healthy", "#/tag/nothing")
        self.assertEqual(page.text("pagebody"), "No tag has this name.")

    def test_a_tag_has_a_page(self):
        page = self.show(12, "trouble", "#/tag/invoice")
        text = page.wait("document.getElementById('tagfields') && document.getElementById('pagebody').innerText")
        for words in "refused here", "no store 'main'", "25000", "This server does not serve it", \
                "refuses tag 'invoice'":
            self.assertIn(words, text)
        self.assertEqual(page.text("pagetitle"), "Tag invoice")

    def test_a_machine_id_has_a_page_with_present_and_past_holders(self):
        page = self.show(12, "healthy", "#/machine/16")
        page.wait("document.querySelectorAll('#past tbody tr').length === 5")
        text = page.text("pagebody")
        for words in "worker 4, rack 0", "held", "10.0.0.5:7609", "host-16, pid 4711", "host-0", "and 2 before":
            self.assertIn(words, text)

    def test_leases_name_their_programs(self):
        page = self.show(12, "healthy")
        self.assertEqual(page.text("leasescount"), "4 machine ids")
        self.assertRegex(page.text("leases"), r"shop-1\s+516\s+10\.0\.0\.1:7609\s")
        page = self.show(12, "healthy", "#/machine/516")
        page.wait("!!document.getElementById('holder')")
        self.assertRegex(page.text("pagebody"), r"leased to\s+shop-1")
        page = self.show(3, "fresh")
        self.assertTrue(page.evaluate("document.getElementById('leasesection').hidden"))

    def test_nothing_is_cut_and_nothing_scrolls_sideways(self):
        for servers, scene, place, width in ((12, "trouble", "", 390), (100, "healthy", "", 390),
                                             (12, "trouble", "#/tag/invoice", 390),
                                             (12, "trouble", "#/machine/16", 390), (12, "trouble", "", 800),
                                             (12, "trouble", "", 1024), (100, "healthy", "", 1600)):
            with self.subTest(servers=servers, place=place, width=width):
                page = self.show(servers, scene, place, width)
                page.evaluate("document.getElementById('used')?.setAttribute('open', '')")
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                self.assertEqual(page.evaluate(CUT), [])

    def test_texts_and_colours_have_contrast_in_both_schemes(self):
        for scheme in "light", "dark":
            for place in "", "#/tag/invoice", "#/machine/16":
                with self.subTest(scheme=scheme, place=place):
                    page = self.show(12, "trouble", place, scheme=scheme)
                    self.assertEqual(page.evaluate(PALE), [])
            page = self.show(100, "healthy", scheme=scheme)
            self.assertEqual(page.evaluate(PALE), [])

    def test_the_keyboard_reaches_everything(self):
        page = self.show(12, "trouble")
        page.evaluate("document.activeElement.blur()")
        count = page.evaluate(f"{REACHABLE}.length")
        self.assertGreater(count, 20)
        page.evaluate("window.reached = new Set()")
        for _ in range(count + 5):
            page.press("Tab")
            page.evaluate("window.reached.add(document.activeElement)")
        self.assertEqual(page.evaluate(f"{REACHABLE}.filter((one) => !window.reached.has(one))"
                                       ".map((one) => one.outerHTML.slice(0, 99))"), [])

    def test_arrow_keys_move_between_machine_ids_and_enter_opens_one(self):
        page = self.show(12, "healthy")
        page.evaluate("document.querySelector('#map a[tabindex=\"0\"]').focus()")
        page.press("ArrowRight")
        page.press("ArrowRight")
        page.press("ArrowLeft")
        self.assertEqual(page.evaluate("document.activeElement.dataset.machine"), "4")
        page.press("Enter")
        page.wait("document.getElementById('pagetitle').textContent === 'Machine id 4'")
        self.assertEqual(page.evaluate("document.activeElement.id"), "pagetitle")

    def test_the_focus_survives_new_readings(self):
        page = self.show(12, "healthy")
        page.evaluate("document.querySelector('#servers a').focus(); "
                      "window.before = document.getElementById('totals').innerText")
        page.wait("document.getElementById('totals').innerText !== window.before ||"
                  "performance.now() > 6000")
        self.assertEqual(page.evaluate("document.activeElement.closest('#servers') !== null"), True)

    def test_parts_of_the_page_have_names_for_screen_readers(self):
        page = self.show(12, "trouble")
        page.evaluate("document.getElementById('used').setAttribute('open', '')")
        self.assertEqual(page.evaluate(UNLABELLED), [])
        for mark in "header", "nav", "main", "h2", "#banner[role=status][aria-live=polite]", "form[role=search]":
            self.assertTrue(page.evaluate(f"!!document.querySelector('{mark}')"), mark)
        self.assertIn("Highest:", page.evaluate("document.querySelector('#chart-ids svg').ariaLabel"))

    def test_equals_the_pictures_on_its_page(self):
        """Fonts and times may differ, another arrangement may not."""
        stored = {}
        for name, servers, scene, width, scheme in PICTURES:
            with open(os.path.join(CONSOLE, name), "rb") as file:
                stored[name] = file.read()
            self.show(servers, scene, "", width, scheme)
            shown = self.browser.picture(whole=False)
            self.browser.open("about:blank")
            distance = self.browser.difference(stored[name], shown)
            self.assertLess(distance, 0.02, f"{name}: {distance}; tests/interop/console_pages_test.py --pictures")
        first, *others = stored.values()
        for other in others:
            self.assertGreater(self.browser.difference(first, other), 0.02)


def leave_pictures():
    """Replaces the pictures on the console's page."""
    ConsolePagesTest.folder = tempfile.mkdtemp()
    ConsolePagesTest.setUpClass()
    test = ConsolePagesTest()
    for name, servers, scene, width, scheme in PICTURES:
        with open(os.path.join(CONSOLE, name), "wb") as file:
            file.write(test.show(servers, scene, "", width, scheme).picture(whole=False))
    ConsolePagesTest.browser.end()
    shutil.rmtree(ConsolePagesTest.folder)
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--pictures"]:
        leave_pictures()
    interop.main(ConsolePagesTest, "chromium", program=False)
