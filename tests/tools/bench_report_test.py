#!/usr/bin/env python3
"""tools/bench/report makes one page of a run's results, with a plot for each table.

    bench_report_test.py ROOT
"""

import copy
import html.parser
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

RESULTS = {
    "format": 1,
    "conditions": {"date": "2026-01-02 03:04 UTC", "processor": "A <fast> one", "cores": 2},
    "tables": [
        {"title": "door: 8 connections", "against": ["echo", "absent"], "rows": [
            {"name": "echo", "rounds": 3, "rate": 200000.0, "p50_us": 38.9, "p99_us": 58.9,
             "server_us": 0.25},
            {"name": "firn thrift", "rounds": 3, "rate": 150000.0, "p50_us": 50.25,
             "p99_us": 80.0}]},
        {"title": "HTTP by wrk", "against": [], "rows": [
            {"name": "firn http", "rounds": 3, "rate": 999.0}]}],
    "notes": ["memory: 12 MB"],
}

SVG = "{http://www.w3.org/2000/svg}"


class Page(html.parser.HTMLParser):
    """Collects the cells of each table row, and counts the elements by name."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.counts, self.open, self.said = [], {}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag != "meta":
            self.open.append(tag)
        self.said.extend(value for name, value in attrs if name in ("src", "href"))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


class BenchReportTest(unittest.TestCase):
    root = None

    def run_report(self, results, *more):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(results if isinstance(results, str) else json.dumps(results))
            return subprocess.run([os.path.join(self.root, "tools/bench/report"), path, *more],
                                  capture_output=True, text=True, check=False)

    def test_has_every_figure_and_the_ratios(self):
        done = self.run_report(RESULTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = Page(done.stdout)
        self.assertEqual(page.open, [], "an element is not closed")
        self.assertEqual(page.rows[0],
                         ["", "a second", "p50 µs", "p99 µs", "p99.9 µs", "server µs", "× echo",
                          "× absent"])
        self.assertEqual(page.rows[1],
                         ["echo", "200,000", "38.9", "58.9", "", "0.25", "1.00", ""])
        self.assertEqual(page.rows[2],
                         ["firn thrift", "150,000", "50.2", "80.0", "", "", "0.75", ""])
        self.assertEqual(page.rows[4], ["firn http", "999.0", "", "", "", ""])

    def test_draws_the_rates_of_all_tables(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "picture.svg")
            done = self.run_report(RESULTS, "--picture", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            root = xml.etree.ElementTree.parse(path).getroot()
        self.assertEqual(root.tag, SVG + "svg")
        self.assertEqual(len(list(root.iter(SVG + "rect"))), 3)
        texts = [each.text for each in root.iter(SVG + "text")]
        self.assertIn("door: 8 connections, a second", texts)
        self.assertIn("150,000", texts)
        lines = [int(each.get("y")) for each in root.iter(SVG + "text")]
        self.assertEqual(lines, sorted(lines))
        self.assertLess(lines[-1], float(root.get("viewBox").split()[3]))

    def test_refuses_a_page_and_a_picture_together(self):
        done = self.run_report(RESULTS, "page.html", "--picture", "picture.svg")
        self.assertEqual(done.returncode, 2)
        self.assertIn("either a page or --picture", done.stderr)

    def test_writes_a_page_that_needs_no_other_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.html")
            self.assertEqual(self.run_report(RESULTS, path).returncode, 0)
            with open(path, encoding="utf-8") as file:
                text = file.read()
        page = Page(text)
        self.assertTrue(text.endswith("</html>\n"))
        self.assertEqual(page.counts["svg"], 3, "rate and p99 of one table, rate of the other")
        self.assertEqual(page.counts["rect"], 5)
        self.assertEqual(page.said, [])
        # Bars are as long as their figures, and texts are escaped.
        for part in ("width='480.0'", "width='360.0'", "A &lt;fast&gt; one", "2026-01-02 03:04 UTC",
                     "memory: 12 MB"):
            self.assertIn(part, text)
        for elsewhere in ("http:", "https:", "@import", "<script"):
            self.assertNotIn(elsewhere, text)

    def test_refuses_files_that_are_not_results(self):
        later = copy.deepcopy(RESULTS)
        later["format"] = 2
        for text in "", "[]", "{}", json.dumps(later):
            done = self.run_report(text)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    BenchReportTest.root = sys.argv.pop(1)
    unittest.main(verbosity=2)
