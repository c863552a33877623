"""Tests tools/evidence: a quick run writes a page with the programs' numbers, and the page reports broken promises
and impossible runs.

    evidence_test.py ROOT BIN
"""

import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
ROOT, BIN = (os.path.abspath(path) for path in sys.argv[1:3])


def load():
    loader = importlib.machinery.SourceFileLoader("evidence", os.path.join(ROOT, "tools", "evidence"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("evidence", loader))
    loader.exec_module(module)
    return module


evidence = load()

VERDICT = """drill: kill-server
  ids                1000
  awkward clients    200 ids, 4 connections
  duplicates         {}
  calls failed       0 of 1000
  longest call       12500 us
  served again       310 ms after the repair began
"""
ORDER = """killed-owner: The owner is killed, and started again.
    first number after 3.8 s
  ids                3000
  duplicates         0
  out of order       {}
  calls failed       20 of 1000
  verdict            every promise was kept
"""
DRILLS = """drill RestartsInTime: ids 500, duplicates 0, longest stall of a process 8 ms, machine ids a 1
drill of stores: order: numbers 50, duplicates {}, covered and not given 3
"""
FIGURES = {"tables": [{"title": "door: single ids", "against": ["epoll echo", "redis INCR"], "rows": [
    {"name": "firn thrift", "rate": 3000.0, "p50_us": 10.0, "p99_us": 20.0, "p999_us": 30.0},
    {"name": "redis INCR", "rate": 1000.0}]}]}


def page(runs, figures=None):
    return evidence.page(types.SimpleNamespace(size="middle"), runs, figures, [("cores", 2)], 7)


def row(text, cell):
    """The cells of the row that begins with this one."""
    return next(line for line in text.splitlines() if line.startswith(f"| {cell} |")).strip("| ").split(" | ")


class PageTest(unittest.TestCase):
    def test_every_promise_is_quoted_from_the_readme(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            readme = " ".join(file.read().split())
        for words, names in evidence.PROMISES:
            with self.subTest(words):
                self.assertIn(words, readme)
                self.assertTrue(names)

    def test_every_scenario_and_drill_exists(self):
        with open(os.path.join(ROOT, "tools", "drill"), encoding="utf-8") as file:
            every = re.search(r"every=\((.*?)\)", file.read(), re.DOTALL)[1].split()
        self.assertEqual(evidence.SCENARIOS, every)
        folder = os.path.join(ROOT, "tests", "drill")
        drills = {name.removesuffix("_drill_test.cc") for name in os.listdir(folder) if name.endswith("_drill_test.cc")}
        self.assertEqual(set(evidence.DRILLS), drills - {"version"})  # tools/versions runs it

    def test_counts_what_the_programs_print(self):
        text = page([evidence.Run("kill-server", "kept", VERDICT.format(0)),
                     evidence.Run("restart_drill_test", "kept", DRILLS.format(0)),
                     evidence.Run("bench", "kept", "")], FIGURES)
        self.assertIn("**1,750 ids compared, 0 duplicates.** 3 of 3 runs kept every promise", text)
        self.assertEqual(row(text, "`kill-server`"), ["`kill-server`", "1000", "0", "-", "0 of 1000", "12.5 ms",
                                                      "310 ms", "kept"])
        self.assertEqual(row(text, "not after a crash"), ["not after a crash", "`kill-server`, `restart_drill_test`",
                                                          "shown"])
        self.assertEqual(row(text, "x Redis `INCR` in the same run")[2], "x 3.0 (door)")
        self.assertEqual(row(text, "firn thrift")[1:], ["3,000", "10 µs", "20 µs", "30 µs", "-", "3.00"])
        self.assertEqual(row(text, "a clock change")[2], "not run")

    def test_shows_calls_that_are_out_of_order(self):
        for late, state in (0, "kept"), (2, "BROKEN"):
            text = page([evidence.Run("rising-order", state, ORDER.format(late))])
            self.assertIn("**3,000 ids compared, 0 duplicates.**", text)
            self.assertEqual(row(text, "`rising-order`"), ["`rising-order`", "3000", "0", str(late), "20 of 1000", "-", "-",
                                                           state])

    def test_reports_a_broken_promise(self):
        text = page([evidence.Run("kill-server", "BROKEN", VERDICT.format(2)),
                     evidence.Run("restart_drill_test", "kept", DRILLS.format(1))])
        self.assertIn("3 duplicates.** 1 of 2 runs", text)
        self.assertEqual(row(text, "not after a crash")[2], "BROKEN by kill-server")
        self.assertIn("Not measured.", text)

    def test_a_run_that_was_not_possible_is_not_a_result(self):
        text = page([evidence.Run("clock-back", "not possible", "drill: clock-back requires the package libfaketime")])
        self.assertEqual(row(text, "a clock change")[1:], ["-", "not run"])
        self.assertEqual(row(text, "`clock-back`")[-1], "not possible")


class QuickRunTest(unittest.TestCase):
    def test_writes_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([os.path.join(ROOT, "tools", "evidence"), "--quick", "--bin", BIN, "--logs",
                                   f"{folder}/logs", "--out", f"{folder}/page.md"], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, done.stdout)
            with open(f"{folder}/page.md", encoding="utf-8") as file:
                text = file.read()
            with open(f"{folder}/logs/restart-server.txt", encoding="utf-8") as file:
                ids = re.search(r"^  ids +(\d+)$", file.read(), re.MULTILINE)[1]
            self.assertEqual(row(text, "`restart-server`")[1:3], [ids, "0"])
            self.assertEqual(row(text, "fails over within a call")[1:], ["`restart-server`", "shown"])
            for name in "claim_sim", "segment_sim", "lease_sim":
                self.assertRegex(row(text, f"`{name}`")[1], r"^\d+ seeds from 1 on in ")
            self.assertGreater(int(re.search(r"\*\*([\d,]+) ids compared, 0 dup", text)[1].replace(",", "")), int(ids))
            self.assertIn("| firn INCR | ", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
