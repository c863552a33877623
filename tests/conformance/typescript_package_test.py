#!/usr/bin/python3
"""Packs the TypeScript client, installs the package into an empty project, and uses it as a user would.

    typescript_package_test.py FIRN_SERVER FIRN

The project takes ids from three real servers, each of which is killed and restarted. Exit 77 when something is not
installed, or npm's registry cannot be reached.
"""

import json
import os
import re
import shutil
import tarfile
import unittest

import builds
import interop
import npm
import packing
import pages
import trio
import web

SAMPLES = os.path.join(builds.HERE, "samples", "typescript")
STRICT = ("--strict", "--noEmit", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--target", "es2022")
NODE16 = ("--module", "node16", "--moduleResolution", "node16")
NODE10 = ("--module", "commonjs", "--moduleResolution", "node10")  # the compiler's default for CommonJS
ANSWERS = 3  # lines of the program, each after 1000 ids


class PackageTest(unittest.TestCase):
    program = firn = folder = None

    @classmethod
    def setUpClass(cls):
        cls.name, cls.package = "firn-client", packing.typescript(builds.new(cls.folder, "packing"))
        cls.project = builds.new(cls.folder, "project")
        with open(os.path.join(cls.project, "package.json"), "w") as file:
            json.dump({"name": "project", "version": "1.0.0", "private": True}, file)
        npm.run_npm(cls.project, "install", "--offline", cls.package, local=True)
        for sample in os.listdir(SAMPLES):
            shutil.copy(os.path.join(SAMPLES, sample), cls.project)

    def test_package_has_what_a_package_needs(self):
        with tarfile.open(self.package) as packed:
            names = {name.removeprefix("package/") for name in packed.getnames()}
        for name in ("package.json", "README.md", "CHANGELOG.md", "LICENSE", "dist/esm/index.js", "dist/esm/index.d.ts",
                     "dist/cjs/index.js", "dist/cjs/index.d.ts", "dist/cjs/package.json", "dist/esm/prometheus.js"):
            self.assertIn(name, names)
        self.assertEqual([name for name in names if "test" in name or name.endswith(".map")], [])
        with open(os.path.join(self.project, "node_modules", self.name, "package.json")) as file:
            self.assertNotIn("dependencies", json.load(file))
        installed = os.listdir(os.path.join(self.project, "node_modules"))
        self.assertEqual([name for name in installed if not name.startswith(".")], ["firn-client"])

    def test_publint_finds_nothing(self):
        said = builds.run("node", os.path.join(builds.NODE_PACKAGES, "publint", "src", "cli.js"), "run", self.package,
                          "--strict")
        self.assertIn("All good!", said)

    def test_types_are_strict(self):
        for name in ("@types", "undici-types", "prom-client"):  # a TypeScript project has installed them
            os.symlink(os.path.join(builds.NODE_PACKAGES, name), os.path.join(self.project, "node_modules", name))
        builds.run("node", builds.COMPILER, *STRICT, *NODE16, "types.mts", "types.cts", cwd=self.project)
        builds.run("node", builds.COMPILER, *STRICT, *NODE10, "types.cts", cwd=self.project)

    def test_modules_take_ids_while_servers_are_killed(self):
        with trio.running(self.program, self.firn, self.folder) as members:
            servers = trio.seeds(members)
            said = builds.run("node", "first.cjs", servers, cwd=self.project)
            self.assertEqual(said, "bigint function true\n")
            self.run_first_lines_of_the_page(members[0].address)
            code, said = trio.take_ids(["node", "ids.mjs", servers], members, self.take_more, cwd=self.project)
        self.assertEqual(code, 0, said)
        self.assertTrue(said.endswith("duplicates 0\n"), said)

    def run_first_lines_of_the_page(self, address):
        with open(os.path.join(builds.ROOT, "client", "typescript", "README.md")) as page:
            lines = "".join(re.findall(r"(?m)^(?:    .*\n|\n(?=    ))+", page.read())[1])
        with open(os.path.join(self.project, "page.mjs"), "w") as file:
            file.write(lines.replace("127.0.0.1:7609", address))
        done = pages.run("node", "page.mjs", cwd=self.project)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(set(re.findall(r"\b(\d{15,19})n\b", done.stdout))), 101, done.stdout)

    def test_the_web_service_of_the_page_serves_ids(self):
        server, port = interop.Server(self.program, os.path.join(self.folder, "web")), interop.programs.free_port()
        with open(os.path.join(self.project, "orders.mjs"), "w") as file:
            file.write(web.program("client/typescript/README.md", "node:http", server, port))
        web.check(["node", "orders.mjs"], port, server, cwd=self.project)

    def take_more(self, ids):
        for _ in range(ANSWERS):
            self.assertRegex(ids.stdout.readline(), r"^answered \d+$")


if __name__ == "__main__":
    if lacking := builds.missing("typescript"):
        interop.skip(f"not installed: {', '.join(lacking)}")
    interop.main(PackageTest, "node", "firn")
