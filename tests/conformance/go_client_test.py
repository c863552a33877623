#!/usr/bin/python3
"""Runs the Go client's own tests, as a module in an empty project gets them, and uses it while servers are killed.

    go_client_test.py FIRN_SERVER FIRN

The module is served as a GOPROXY by files. Exit 77 when something is not installed.
"""

import os
import re
import shutil
import subprocess
import sys
import unittest

import builds
import cluster
import driver_process
import interop
import packing
import pages
import trio

FRAMES = os.path.abspath(os.path.join(builds.ROOT, "tests", "contract", "frames.json"))
STATICCHECK = "honnef.co/go/tools/cmd/staticcheck@v0.6.1"
MUST_HAVE = {"go.mod", "LICENSE", "README.md", "CHANGELOG.md", "client.go", "firnvars/firnvars.go", "example/main.go"}


class GoTest(unittest.TestCase):
    program = firn = folder = None

    @classmethod
    def setUpClass(cls):
        cls.client = builds.copy("go", cls.folder, planted=False)
        cls.environment = {**builds.go_environment(cls.folder), "GOPROXY": "file://" + packing.go(cls.folder),
                           "GOSUMDB": "off", "GOFLAGS": "-mod=mod -modcacherw"}

    def go(self, *arguments, cwd, **environment):
        return builds.run("go", *arguments, cwd=cwd, env={**self.environment, **environment})

    def project(self, name, main):
        """An empty project that needs the module, with the text of its program."""
        folder = builds.new(self.folder, name)
        with open(os.path.join(folder, "main.go"), "w") as file:
            file.write(main)
        self.go("mod", "init", name, cwd=folder)
        self.go("get", f"{builds.GO_MODULE}@v{builds.VERSION}", cwd=folder)
        return folder

    def test_module_has_what_a_module_needs(self):
        files = {os.path.relpath(os.path.join(at, name), self.client)
                 for at, _, names in os.walk(self.client) for name in names}
        self.assertEqual(MUST_HAVE - files, set())
        with open(os.path.join(self.client, "go.mod")) as file:
            self.assertNotIn("require", file.read())

    def test_own_tests_pass(self):
        self.go("vet", "./...", cwd=self.client)
        self.assertEqual(builds.run("gofmt", "-l", ".", cwd=self.client), "")
        said = self.go("test", "-count=1", "-v", "./...", cwd=self.client, FIRN_FRAMES=FRAMES, FIRN_SERVER="")
        self.assertEqual(re.findall(r"--- SKIP: (\w+)", said), ["TestExamplesRun"])  # without a server

    def test_staticcheck_finds_nothing(self):
        tools = os.path.join(builds.ROOT, "build", "go", "bin")
        program = shutil.which("staticcheck") or os.path.join(tools, "staticcheck")
        if not os.path.exists(program):
            done = subprocess.run(["go", "install", STATICCHECK], capture_output=True, text=True,
                                  env={**os.environ, "GOBIN": os.path.abspath(tools)})
            if done.returncode:
                self.skipTest("staticcheck is not installed, and no module proxy has it: " + done.stderr[-300:])
        builds.run(program, "./...", cwd=self.client, env=self.environment)

    def test_takes_ids_while_servers_are_killed(self):
        with open(os.path.join(builds.DRIVERS, "go", "driver", "main.go")) as file:
            driver = self.project("driver", file.read())
        self.go("build", "-o", "run", ".", cwd=driver)
        with trio.running(self.program, self.firn, self.folder) as members:
            self.run_the_page(members[0].address)
            self.go("test", "-count=1", "-run", "TestExamplesRun", ".", cwd=self.client, FIRN_SERVER=members[0].address)
            self.take_ids(os.path.join(driver, "run"), members)

    def run_the_page(self, address):
        program = next(block for block in pages.blocks("client/go/README.md") if "package main" in block)
        folder = self.project("page", program.replace("127.0.0.1:7609", address))
        said = pages.run("go", "run", ".", cwd=folder, env=self.environment)
        self.assertEqual(len(set(re.findall(r"\b\d{15,19}\b", said.stdout))), 101, said)

    def take_ids(self, program, members):
        with open(os.path.join(self.folder, "driver.log"), "w") as log:
            driver = driver_process.Driver([program], log)
        driver.ask("open", servers=trio.seeds(members),
                   deadline_ms=60_000, attempt_limit_ms=1_000)
        file = os.path.join(self.folder, "ids")
        driver.ask("start", tag="default", threads=8, file=file)

        def more():
            before = driver.ask("so_far")["calls"]
            cluster.patiently("calls come to nothing", lambda: driver.ask("so_far")["calls"] > before + 100)

        trio.kill_each(members, more)
        said = driver.ask("stop")
        driver.ask("close")
        driver.end()
        with open(file) as lines:
            ids = lines.read().split()
        self.assertEqual((said["failed"], len(ids) - len(set(ids))), (0, 0), said)


if __name__ == "__main__":
    if lacking := builds.missing("go"):
        print(f"skipped: not installed: {', '.join(lacking)}")
        sys.exit(77)
    interop.main(GoTest, "go", "firn")
