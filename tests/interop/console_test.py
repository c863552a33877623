#!/usr/bin/python3
"""Tests the console page of the admin side in a real browser.

    console_test.py FIRN_SERVER FIRN

Exit 77 when chromium is not installed. With FIRN_PICTURES=FOLDER it leaves pictures of the page
there: wide, narrow, dark.
"""

import json
import os
import re
import signal
import subprocess
import time
import unittest
import urllib.request

import interop

HOSTILE = "<b>bold</b><script>alert(1)</script>"
PICTURES = {"wide": ["--window-size=1300,1700"], "narrow": ["--window-size=500,2900"],
            "dark": ["--window-size=1300,1700", "--blink-settings=preferredColorScheme=0"]}


class ConsoleTest(unittest.TestCase):
    """A cluster of four servers: the first serves the page; the second took the machine id of one
    that had ended before; the third was killed; the fourth has three machine ids. A slow one has
    run and ended."""

    program = firn = folder = None

    @classmethod
    def setUpClass(cls):
        cls.registry = f"dir://{cls.folder}/registry"
        cls.run_firn("init", "--brand-new", "--force", "--workers=16")
        cls.run_firn("tags", "create", "order", "step=50")
        cls.run_firn("tags", "create", HOSTILE, "strategy=snowflake", "disabled=true")
        cls.server = cls.asked = cls.start("first", 3, 1)
        ended = cls.start("ended", 5, 0)
        cls.id_of_ended, cls.pid_of_ended = cls.one_id(ended), ended.process.pid
        assert ended.stop() == 0, ended.log()
        cls.successor = cls.start("successor", 5, 0)
        assert cls.start("slow", 9, 3).stop() == 0
        cls.killed = cls.start("killed", 7, 2)
        cls.killed.process.kill()
        cls.killed.process.wait()
        cls.several = cls.start_with("several", "--machine_ids=3", "--rack=1")

    @classmethod
    def tearDownClass(cls):
        for server in cls.server, cls.successor, cls.several:
            assert server.stop() == 0, server.log()

    @classmethod
    def run_firn(cls, *words):
        subprocess.run([cls.firn, *words, "--registry=" + cls.registry], check=True,
                       stdout=subprocess.DEVNULL)

    @classmethod
    def start(cls, name, worker, rack):
        return cls.start_with(name, f"--worker={worker}", f"--rack={rack}")

    @classmethod
    def start_with(cls, name, *flags):
        return interop.Server(cls.program, os.path.join(cls.folder, name),
                              "--registry=" + cls.registry, *flags)

    @staticmethod
    def one_id(server, tag="default"):
        url = f"http://127.0.0.1:{server.port}/v1/ids/{tag}"
        with urllib.request.urlopen(url, timeout=interop.PATIENCE_S) as answer:
            return json.load(answer)["ids"][0]

    def browse(self, place, *flags):
        return subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={self.folder}/browser", "--virtual-time-budget=9000", *flags,
             f"http://127.0.0.1:{self.asked.admin_port}/{place}"], capture_output=True, text=True,
            timeout=interop.PATIENCE_S, check=True).stdout

    def page(self, place=""):
        """The page's elements after some seconds of the browser's virtual time, without its
        script."""
        return self.browse(place, "--dump-dom").split("<script>")[0]

    def shown(self, place=""):
        """id -> text, of the elements that have one."""
        return {name: re.sub(r"<[^>]*>", " ", text) for _, name, text in
                re.findall(r'<(span|p|dl|div|tbody)\b[^>]*\bid="(\w+)"[^>]*>(.*?)</\1>',
                           self.page(place), re.S)}

    def shown_at_last(self, wanted, place=""):
        """The same, once `wanted` is true for it: the browser's virtual time does not wait until the
        cluster was read, so the page is loaded repeatedly."""
        deadline = time.time() + interop.PATIENCE_S
        while not wanted(shown := self.shown(place)):
            self.assertLess(time.time(), deadline, shown)
            time.sleep(1)
        return shown

    def test_shows_the_server_its_tags_and_refusals(self):
        self.assertEqual(self.server.answer("default"), "ID")
        self.assertEqual(self.server.answer("nothing"), "UNKNOWN_TAG")
        shown = self.shown()
        self.assertEqual(shown["state"], "READY", shown)
        self.assertEqual(shown["address"], f"127.0.0.1:{self.server.port}")
        self.assertIn("13: worker 3, rack 1", shown["facts"])
        self.assertIn("connected", shown["facts"])
        self.assertRegex(shown["tags"], r"default\s+snowflake\b")
        self.assertRegex(shown["refused"], r"UNKNOWN_TAG\s+1\b")
        self.assertEqual(shown["trouble"], "")

    def test_shows_every_machine_id_and_server_of_the_cluster(self):
        shown = self.shown_at_last(lambda shown: all(
            words in shown["key"] for words in ("never used 57", "held 5", "given back 1")))
        # The killed server's grant is short: the rest of it depends on the machine.
        self.assertRegex(shown["key"], "(its holder is away|its time has passed) 1")
        self.assertIn("Nothing is wrong.", shown["alarms"])
        for server in self.server, self.successor:
            self.assertRegex(shown["servers"], rf"127\.0\.0\.1:{server.port}\b.*?serving")
        cells = re.findall(r"<i\b[^>]*data-machine[^>]*>", self.page())
        self.assertEqual(len(cells), 64)
        self.assertEqual(sum("held" in cell for cell in cells), 5)
        self.assertEqual(sum("own" in cell for cell in cells), 1)

    def test_shows_all_machine_ids_of_a_server_that_has_several(self):
        def titles():
            """machine id -> the title of its row."""
            row = re.search(rf">127\.0\.0\.1:{self.several.port}\b.*?</tr>", self.page())
            return dict(re.findall(r'data-machine="(\d+)" title="([^"]*)"', row[0] if row else ""))
        deadline = time.time() + interop.PATIENCE_S
        while len(machines := titles()) != 3 or "not read" in str(machines):
            self.assertLess(time.time(), deadline, machines)
            time.sleep(1)
        for machine, title in machines.items():
            self.assertRegex(title, rf"^worker {int(machine) // 4}, rack 1, held, another \d+ ")
        # Its own page lists all of them, too.
        self.asked = self.several
        shown = self.shown_at_last(lambda shown: "held 5" in shown["key"])
        for machine in machines:
            self.assertIn(f"{machine}: worker {int(machine) // 4}, rack 1", shown["facts"])
        cells = re.findall(r"<i\b[^>]*data-machine[^>]*>", self.page())
        self.assertEqual(sum("own" in cell for cell in cells), 3)

    def test_shows_every_tag_and_hostile_names_as_text(self):
        shown = self.shown_at_last(lambda shown: "disabled" in shown["tags"])
        self.assertRegex(shown["tags"], r"order\s+segment\s+enabled\s+50\s+1\b")
        self.assertIn(HOSTILE.replace("<", "&lt;").replace(">", "&gt;"), shown["tags"])

    def row_at_last(self, server, wanted, before_each=lambda: None):
        """The row of a server, from its state on, once it matches `wanted`."""
        def row(shown):
            before_each()
            found = re.search(rf"127\.0\.0\.1:{server.port}\b(.*?)127\.0", shown["servers"] + "127.0")
            return found.group(1) if found else ""
        shown = self.shown_at_last(lambda shown: re.search(wanted, row(shown)))
        return row(shown)

    def test_shows_what_the_other_servers_do(self):
        def calls():
            for _ in range(100):
                self.one_id(self.successor)
                # Or STORE_DOWN, if the registry's disk is too slow to answer that there is no such
                # tag.
                self.assertNotEqual(self.successor.answer("nothing"), "ID")
        rate = r"[1-9][\d.,]*"
        self.row_at_last(self.successor, rf"serving\s+20\s+{rate}\s+{rate}\s+{rate}\s+\S+ ms",
                         before_each=calls)
        self.row_at_last(self.successor, r"serving\s+20\s+0\s+0\s+0\s+no calls")

    def await_listed(self, server, machine):
        """A server serves shortly before the registry lists it with its machine id."""
        deadline = time.time() + interop.PATIENCE_S
        while True:
            audit = json.loads(subprocess.run(
                [self.firn, "audit", "--json", "--registry=" + self.registry], check=False,
                stdout=subprocess.PIPE).stdout)
            if any(one["machine"] == machine for listed in audit["providers"]
                   if listed["address"] == f"127.0.0.1:{server.port}"
                   for one in listed["machines"]):
                return
            self.assertLess(time.time(), deadline, audit["providers"])

    def test_a_server_that_says_nothing_does_not_do_nothing(self):
        """The server is paused before its first report, resumed, and paused again."""
        slow = self.start("slow again", 9, 3)
        try:
            self.await_listed(slow, 39)
            slow.process.send_signal(signal.SIGSTOP)
            # Which of the two depends on how long reports have been requested.
            self.row_at_last(slow, r"(serving\s+39\s+no report yet"
                                   r"|silent for \d+ s\s+39(\s+–){4})\s+3\b")
            slow.process.send_signal(signal.SIGCONT)
            self.row_at_last(slow, r"serving\s+39\s+0\s+0\s+0\s+no calls")
            slow.process.send_signal(signal.SIGSTOP)
            self.row_at_last(slow, r"silent for \d+ s\s+39\s+(–\s+){4}")
        finally:
            slow.process.send_signal(signal.SIGCONT)
            self.assertEqual(slow.stop(), 0, slow.log())

    def test_explains_the_id_of_its_address(self):
        self.assertRegex(self.shown("#4255744")["fields"], r"worker\s+3\s+rack\s+3\b")
        self.assertIn("no", self.shown("#%3Cb%3E")["fields"])

    def test_names_who_issued_an_id_and_who_has_its_machine_id_now(self):
        pids = [f"pid {pid}" for pid in (self.pid_of_ended, self.successor.process.pid)]
        shown = self.shown_at_last(
            lambda shown: pids[0] in shown["who"] and pids[0] in shown["holder"],
            "#" + self.id_of_ended)
        self.assertIn("held its machine id from", shown["who"])
        self.assertNotIn(pids[1], shown["who"])
        self.assertIn(pids[1], shown["holder"])

    def test_leaves_pictures(self):
        folder = os.environ.get("FIRN_PICTURES")
        if not folder:
            self.skipTest("FIRN_PICTURES names no folder")
        self.shown_at_last(lambda shown: "held" in shown["who"], "#" + self.id_of_ended)
        for name, flags in PICTURES.items():
            self.browse("#" + self.id_of_ended, "--hide-scrollbars", *flags,
                        f"--screenshot={os.path.join(folder, name)}.png")


if __name__ == "__main__":
    interop.main(ConsoleTest, "chromium", "firn")
