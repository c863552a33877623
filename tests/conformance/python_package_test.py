#!/usr/bin/python3
"""Packs the Python client, installs the wheel into an empty environment, and uses it as a user would.

    python_package_test.py FIRN_SERVER FIRN

Its programs take ids by threads and by asyncio from three real servers, each of which is killed and restarted. Exit 77
when something is not installed.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import unittest
import zipfile

import builds
import interop
import pages
import trio

SAMPLES = os.path.join(builds.HERE, "samples", "python")
FRAMES = os.path.abspath(os.path.join(builds.ROOT, "tests", "contract", "frames.json"))


class PackageTest(unittest.TestCase):
    program = firn = folder = None

    @classmethod
    def setUpClass(cls):
        cls.client = builds.copy("python", cls.folder, planted=False)
        cls.wheel = builds.wheel_of(cls.client)
        cls.python = builds.install_python(cls.wheel, builds.new(cls.folder, "installed"))
        # With Debian's prometheus_client; the wheel stays in front of it.
        cls.more = builds.install_python(cls.wheel, builds.new(cls.folder, "more"), "--system-site-packages")

    def test_wheel_has_what_a_package_needs(self):
        with zipfile.ZipFile(self.wheel) as packed:
            names = packed.namelist()
            meta = packed.read(next(name for name in names if name.endswith("/METADATA"))).decode()
        for name in ("firn/__init__.py", "firn/aio.py", "firn/prometheus.py", "firn/py.typed"):
            self.assertIn(name, names)
        self.assertTrue(any(name.endswith("/LICENSE") for name in names), names)
        self.assertEqual([name for name in names if "test" in name], [])
        self.assertIn("Name: firn-client\n", meta)
        self.assertEqual(re.findall(r"Requires-Dist: (.*)", meta),
                         ["prometheus-client (>=0.14) ; extra == 'prometheus'"])

    def test_source_package_has_the_tests(self):
        source = next(name for name in os.listdir(os.path.dirname(self.wheel)) if name.endswith(".tar.gz"))
        with tarfile.open(os.path.join(os.path.dirname(self.wheel), source)) as packed:
            names = {name.partition("/")[2] for name in packed.getnames()}
        for name in ("LICENSE", "CHANGELOG.md", "README.md", "tests/test_frames.py", "example.py"):
            self.assertIn(name, names)

    def test_own_tests_pass(self):
        done = subprocess.run([self.more, "-B", "-m", "unittest", "discover", "-s", "tests"],
                              cwd=os.path.join(self.client), env={**os.environ, "FIRN_FRAMES": FRAMES},
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("skipped", done.stderr)

    def test_links_of_the_page_work_outside_of_the_tree(self):
        with open(os.path.join(self.client, "README.md")) as page:
            self.assertEqual(re.findall(r"\]\((?!https://|#)[^)]*\)", page.read()), [])

    def test_types_are_strict(self):
        if not shutil.which("mypy"):
            self.skipTest("mypy is not installed")
        for names in ["firn"], [os.path.join(SAMPLES, name) for name in os.listdir(SAMPLES)]:
            builds.run("mypy", "--strict", "--python-version=3.9", "--cache-dir=" + os.path.join(self.folder, "mypy"),
                       "--python-executable=" + self.more, *names, cwd=self.client)

    def test_takes_ids_while_servers_are_killed(self):
        with trio.running(self.program, self.firn, self.folder) as members:
            self.run_the_page(members[0].address)
            command = [self.python, os.path.join(SAMPLES, "ids.py"), trio.seeds(members)]
            code, said = trio.take_ids(command, members, self.take_more)
        self.assertEqual(code, 0, said)
        self.assertTrue(said.endswith("failed 0 duplicates 0\n"), said)

    def run_the_page(self, address):
        """The first programs of the page, and that of local ids, in the environment that has nothing but the wheel."""
        blocks = pages.blocks("client/python/README.md")
        local = next(block for block in blocks if "LocalGenerator" in block)
        client = 'import firn\nclient = firn.Client("firn://127.0.0.1:7609")\n'
        for program in [*[block for block in blocks if "import firn" in block][:2], client + local]:
            program = program.replace("127.0.0.1:7609", address)
            done = pages.run(self.python, "-c", program)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"^\d{15,19}\b")

    def take_more(self, ids):
        ids.stdin.write("more\n")
        ids.stdin.flush()
        self.assertRegex(ids.stdout.readline(), r"^answered \d+$")


if __name__ == "__main__":
    if lacking := builds.missing("python"):
        print(f"skipped: not installed: {', '.join(lacking)}")
        sys.exit(77)
    interop.main(PackageTest, "pip3", "firn")
