#!/usr/bin/python3
"""Tests the console of the admin port on real servers, in a real browser.

    console_test.py FIRN_SERVER FIRN

Exit 77 when chromium is not installed. console_pages_test.py tests the page on invented clusters.
"""

import json
import os
import re
import signal
import subprocess
import time
import unittest
import urllib.parse
import urllib.request

import browser
import interop
from console_stage import left_finding

HOSTILE = "<b>bold</b><script>alert(1)</script>"


class ConsoleTest(unittest.TestCase):
    """A cluster of four servers: one serves the page; another took the machine id of a server that had
    ended; a third has three machine ids; the fourth was killed. A slow one has run and ended."""

    program = firn = folder = None

    @classmethod
    def setUpClass(cls):
        cls.registry = f"dir://{cls.folder}/registry"
        cls.run_firn("init", "--brand-new", "--force", "--workers=16")
        cls.run_firn("tags", "create", "order", "step=50")
        cls.run_firn("tags", "create", HOSTILE, "strategy=snowflake", "disabled=true")
        cls.killed = cls.start("killed", 7, 2)
        cls.server = cls.asked = cls.start("first", 3, 1)
        ended = cls.start("ended", 5, 0)
        cls.id_of_ended, cls.pid_of_ended = cls.one_id(ended), ended.process.pid
        assert ended.stop() == 0, ended.log()
        cls.successor = cls.start("successor", 5, 0)
        assert cls.start("slow", 9, 3).stop() == 0
        cls.several = cls.start_with("several", "--machine_ids=3", "--rack=1")
        cls.kill(cls.killed)
        cls.browser = browser.Browser(os.path.join(cls.folder, "browser"))
        cls.addClassCleanup(cls.browser.end)
        cls.browser.size(1600)

    @classmethod
    def tearDownClass(cls):
        for server in cls.server, cls.successor, cls.several:
            assert server.stop() == 0, server.log()

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])

    @classmethod
    def firn_says(cls, *words):
        done = subprocess.run([cls.firn, *words, "--registry=" + cls.registry], check=False,
                              stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout

    @classmethod
    def run_firn(cls, *words, check=True):
        code, said = cls.firn_says(*words)
        assert code == 0 or not check, said
        return said

    @staticmethod
    def get(server, path):
        """The answer of the admin port."""
        with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}{path}", timeout=interop.PATIENCE_S) as answer:
            return json.load(answer)

    @classmethod
    def kill(cls, server):
        """Kills a server whose machine id is reserved for longer than the tests take."""
        deadline = time.time() + interop.PATIENCE_S
        while cls.get(server, "/v1/status").get("bound_in_ms", 0) < 500_000:
            assert time.time() < deadline, server.log()
            time.sleep(0.1)
        server.process.kill()
        server.process.wait()

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

    def open(self, place="", server=None):
        self.browser.open(f"http://127.0.0.1:{(server or self.server).admin_port}/{place}")
        self.browser.wait("document.getElementById('state')?.textContent === 'READY'")
        return self.browser

    def becomes(self, element, pattern, before_each=lambda: None):
        """Waits until the text of an element matches, and returns it."""
        deadline = time.time() + interop.PATIENCE_S
        while not re.search(pattern, text := self.browser.text(element), re.S):
            self.assertLess(time.time(), deadline, f"{element} is not {pattern}: {text}")
            before_each()
            time.sleep(0.2)
        return text

    def test_shows_the_server_its_tags_and_refusals(self):
        self.assertEqual(self.server.answer("default"), "ID")
        self.assertEqual(self.server.answer("nothing"), "UNKNOWN_TAG")
        page = self.open()
        self.assertEqual(page.text("address"), f"127.0.0.1:{self.server.port}")
        self.becomes("facts", r"13: worker 3, rack 1.*connected")
        self.becomes("tags", r"default\s+snowflake\b")
        self.becomes("refused", r"UNKNOWN_TAG\s+\d+\b")
        self.becomes("protocols", r"http\s+[\d,]+\s+[1-9][\d,]*\s+[1-9][\d,]*\s+[\d.,]+ [µm]s")

    def test_lists_the_programs_that_have_leases(self):
        words = {"token": os.urandom(16).hex(), "name": "shop-1", "clock_ms": int(time.time() * 1000),
                 "ahead_ms": 60000}
        # In a separate cluster, because the other tests count machine ids.
        server = interop.Server(self.program, os.path.join(self.folder, "leases"))
        self.addCleanup(server.ask_to_end)
        url = f"http://127.0.0.1:{server.port}/v1/leases"
        with urllib.request.urlopen(url, urllib.parse.urlencode(words).encode(),
                                    timeout=interop.PATIENCE_S) as answer:
            lease = json.load(answer)
        self.open(server=server)
        self.becomes("leases", rf"shop-1\s+{lease['machine_id']}\s+127\.0\.0\.1:{server.port}\b")
        self.assertEqual(server.stop(), 0, server.log())

    def test_charts_have_data_when_the_page_first_shows_them(self):
        self.one_id(self.server)  # the server does not wait for the end of the period
        page = self.open()
        first = page.wait("document.querySelector('#chart-ids svg, #chart-ids p')?.outerHTML")
        self.assertIn("Highest:", first)
        self.assertIn('class="area', first)
        # The other servers' histories follow when they report.
        for server in self.server, self.successor, self.several:
            self.becomes("legend", rf"127\.0\.0\.1:{server.port}\b")

    def test_the_banner_is_the_first_finding_of_the_doctor(self):
        def first():
            findings = json.loads(self.run_firn("doctor", "--json", check=False))["findings"]
            return findings[0]["what"] if findings else "Nothing is wrong."

        def agree(words):
            plain = lambda text: re.sub(r"[\d:.]+", "#", text)  # it may contain the time
            deadline = time.time() + interop.PATIENCE_S
            while True:
                said, shown = first(), self.browser.text("verdict")
                if words in said and plain(said) == plain(shown):
                    return
                self.assertLess(time.time(), deadline, f"the doctor: {said}\nthe banner: {shown}")
                time.sleep(0.5)
        self.open()
        agree("")
        self.run_firn("tags", "create", "--force", "storeless", "strategy=segment", "store=away")
        try:
            agree("storeless")
            self.assertEqual(self.browser.evaluate("document.getElementById('banner').className"), "refused")
            self.browser.evaluate("location.hash = '#/tag/storeless'")
            self.becomes("pagebody", r"refused here.*away.*Findings\s.*storeless")
        finally:
            self.run_firn("tags", "delete", "storeless", check=False)

    def test_answers_the_first_request_of_a_fresh_server(self):
        server = self.start("fresh", 9, 3)
        try:
            for path in "/v1/audit", "/v1/tags", "/v1/consumers", "/v1/who/" + self.id_of_ended:
                self.assertIn("age_ms", self.get(server, path))
        finally:
            self.assertEqual(server.stop(), 0, server.log())

    def test_a_killed_server_is_a_finding_on_all_surfaces(self):
        finding = left_finding("rack 2 worker 7", rf"firn 127\.0\.0\.1:{self.killed.port} on \S+", r"\d{4}-\S+Z")
        for command in "doctor", "audit":
            code, said = self.firn_says(command)
            self.assertEqual(code, 1, said)
            self.assertRegex(said, finding["what"])
        first = json.loads(self.run_firn("doctor", "--json", check=False))["findings"][0]
        self.assertRegex(first["what"], f"^{finding['what']}$")
        self.assertEqual({**first, "what": ""}, {**finding, "what": ""})
        page = self.open()
        self.becomes("verdict", f"^{finding['what']}$")
        self.assertEqual(page.evaluate("document.getElementById('banner').className"), "soon")
        self.assertIn(finding["fix"], page.text("banner"))
        self.becomes("totals", r"servers serving\s+3 of 4")
        self.becomes("serverscount", "^3 of 4 serving$")
        self.assertRegex(page.evaluate("document.querySelector('#servers tbody tr').innerText"),
                         rf"^\S+, pid {self.killed.process.pid}\s+has left, or is cut off\s+30\s")

    def test_shows_every_machine_id_and_server_of_the_cluster(self):
        page = self.open()
        key = self.becomes("key", r"held 5.*given back 1.*never used 57")
        self.assertIn("granted, holder away 1", key)
        for server in self.server, self.successor:
            self.becomes("servers", rf"127\.0\.0\.1:{server.port}\b.*?serving")
        self.becomes("totals", r"machine ids held\s+5\s+of 64")
        cells = lambda kind="": page.evaluate(f"document.querySelectorAll('#map a{kind}').length")
        self.assertEqual([cells(), cells(".held"), cells(".own")], [64, 5, 1])

    def test_shows_all_machine_ids_of_a_server_that_has_several(self):
        page = self.open(server=self.several)
        self.becomes("key", "held 5")
        titles = page.wait(f"""(() => {{
            const row = [...document.querySelectorAll('#servers tbody tr')]
                .find((one) => one.innerText.includes('127.0.0.1:{self.several.port}'));
            const links = [...row?.querySelectorAll('.ids a') ?? []];
            return links.length === 3 && links.map((one) => [one.textContent, one.title]);
        }})()""")
        for machine, title in titles:
            self.assertRegex(title, rf"^worker {int(machine) // 4}, rack 1, held, \d+ ")
            self.assertIn(f"{machine}: worker {int(machine) // 4}, rack 1", page.text("facts"))
        self.assertEqual(page.evaluate("document.querySelectorAll('#map a.own').length"), 3)

    def test_shows_every_tag_and_hostile_names_as_text(self):
        page = self.open()
        text = self.becomes("tags", r"order\s+segment\s+enabled\s+50\s+1\b.*disabled|"
                            r"disabled.*order\s+segment\s+enabled\s+50\s+1\b")
        self.assertIn(HOSTILE, text)
        page.evaluate("[...document.querySelectorAll('#tags a')]"
                      ".find((one) => one.textContent.startsWith('<b>')).click()")
        self.becomes("pagetitle", re.escape("Tag " + HOSTILE))
        self.becomes("pagebody", "disabled")

    def row(self, server, pattern, before_each=lambda: None):
        """Waits until the row of a server matches from its state on."""
        self.becomes("servers", rf"127\.0\.0\.1:{server.port}( \(this server\))?\s+({pattern})", before_each)

    def test_shows_the_activity_of_other_servers(self):
        def calls():
            for _ in range(100):
                self.one_id(self.successor)
                # Or STORE_DOWN, if the registry's disk is too slow to show that the tag does not
                # exist.
                self.assertNotEqual(self.successor.answer("nothing"), "ID")
        self.open()
        rate = r"[\d.,]*[1-9][\d.,]*"
        self.row(self.successor, rf"serving\s+20\s+{rate}\s+{rate}\s+[\d.,]+ [µm]s", calls)
        self.row(self.successor, r"serving\s+20\s+0\s+0\s+no calls")

    def test_links_to_the_console_of_each_server(self):
        url = self.open(f"#/server/127.0.0.1%3A{self.successor.port}").wait(
            f"document.querySelector('#serverfields a[href*=\":{self.successor.admin_port}/\"]')?.href")
        self.assertEqual(url, f"http://127.0.0.1:{self.successor.admin_port}/")

    def await_listed(self, server, machine):
        """Waits until the registry lists the server with its machine id: it serves shortly before that."""
        deadline = time.time() + interop.PATIENCE_S
        while True:
            audit = json.loads(self.run_firn("audit", "--json", check=False))
            if any(one["machine"] == machine for listed in audit["providers"]
                   if listed["address"] == f"127.0.0.1:{server.port}"
                   for one in listed["machines"]):
                return
            self.assertLess(time.time(), deadline, audit["providers"])

    def test_a_server_without_reports_is_not_shown_as_idle(self):
        """The server is paused before its first report, resumed, and paused again."""
        slow = self.start("slow again", 9, 3)
        try:
            self.await_listed(slow, 39)
            self.open()
            slow.pause(os.path.join(self.folder, "registry"))
            # Which of the two depends on how long reports have been requested.
            self.row(slow, r"serving\s+39\s+no report yet|silent for \d+ s\s+39(\s+–){4}")
            slow.process.send_signal(signal.SIGCONT)
            self.row(slow, r"serving\s+39\s+0\s+0\s+no calls")
            slow.pause(os.path.join(self.folder, "registry"))
            self.row(slow, r"silent for \d+ s\s+39(\s+–){4}")
        finally:
            slow.process.send_signal(signal.SIGCONT)
            self.assertEqual(slow.stop(), 0, slow.log())

    def test_explains_the_id_of_its_address(self):
        self.open("#4255744")
        self.becomes("fields", r"worker\s+3\s+rack\s+3\b")
        self.open("#%3Cb%3E")
        self.becomes("fields", "refused")

    def test_names_who_issued_an_id_and_who_has_its_machine_id_now(self):
        pids = [f"pid {pid}" for pid in (self.pid_of_ended, self.successor.process.pid)]
        self.open("#" + self.id_of_ended)
        who = self.becomes("who", pids[0])
        self.assertIn("held the machine id from", who)
        self.assertNotIn(pids[1], who)
        self.browser.evaluate("document.querySelector('#fields a').click()")
        self.becomes("holder", pids[1])
        self.becomes("past", str(self.pid_of_ended))


if __name__ == "__main__":
    interop.main(ConsoleTest, "chromium", "firn")
