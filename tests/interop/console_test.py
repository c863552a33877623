#!/usr/bin/python3
"""The console page of the admin side, as a real browser shows it.

    console_test.py FIRN_SERVER

Exit 77 when chromium is not installed.
"""

import os
import re
import subprocess
import unittest

import interop


class ConsoleTest(unittest.TestCase):
    program = folder = None

    @classmethod
    def setUpClass(cls):
        cls.server = interop.Server(cls.program, os.path.join(cls.folder, "server"), "--worker=3",
                                    "--rack=1")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.log()

    def shown(self, place=""):
        """The page's elements as they are after some seconds of the page's own time: id -> text."""
        page = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={self.folder}/browser", "--virtual-time-budget=9000", "--dump-dom",
             f"http://127.0.0.1:{self.server.admin_port}/{place}"], capture_output=True, text=True,
            timeout=interop.PATIENCE_S, check=True).stdout.split("<script>")[0]
        return {name: re.sub(r"<[^>]*>", " ", text) for _, name, text in
                re.findall(r'<(span|p|dl|tbody)\b[^>]*\bid="(\w+)"[^>]*>(.*?)</\1>', page, re.S)}

    def test_shows_the_server_its_tags_and_refusals(self):
        self.assertEqual(self.server.answer("default"), "ID")
        self.assertEqual(self.server.answer("nothing"), "UNKNOWN_TAG")
        shown = self.shown()
        self.assertEqual(shown["state"], "READY", shown)
        self.assertEqual(shown["address"], f"127.0.0.1:{self.server.port}")
        self.assertIn("13: worker 3, rack 1", shown["facts"])
        self.assertIn("connected", shown["facts"])
        self.assertRegex(shown["tags"], r"default\s+snowflake\s+0\s+1\b")
        self.assertRegex(shown["refused"], r"UNKNOWN_TAG\s+1\b")
        self.assertEqual(shown["trouble"], "")

    def test_explains_the_id_of_its_address(self):
        self.assertRegex(self.shown("#4255744")["fields"], r"worker\s+3\s+rack\s+3\b")
        self.assertIn("no", self.shown("#%3Cb%3E")["fields"])


if __name__ == "__main__":
    interop.main(ConsoleTest, "chromium")
