#!/usr/bin/python3
"""Runs the adapters of client/GENERATORS.md with the libraries that they replace.

    generators_test.py FIRN_SERVER FIRN

The cluster is created by the page's command. Exit 77 when something is not installed, or a registry of packages cannot
be reached.
"""

import os
import re
import shutil
import subprocess
import time
import unittest

import builds
import cluster
import interop
import pages

PAGE = "client/GENERATORS.md"
SAMPLES = os.path.join(builds.HERE, "samples", "generators")
HUTOOL = "cn.hutool:hutool-core:5.8.40"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
GO_MODULES = "github.com/bwmarrin/snowflake@v0.3.0", "github.com/sony/sonyflake@v1.3.0"
CLOCKS_MS = 60_000  # between an id's time and the end of its program on a busy machine


def block(start, contained=""):
    return next(one for one in pages.blocks(PAGE) if one.startswith(start) and contained in one)


def write(text, *path):
    with open(os.path.join(*path), "w") as file:
        file.write(text)


class GeneratorsTest(unittest.TestCase):
    program = firn = folder = None

    @classmethod
    def setUpClass(cls):
        registry = f"dir://{cls.folder}/registry"
        firn, *arguments = block("firn init").replace("$registry", registry).split()
        assert firn == "firn"
        builds.run(cls.firn, *arguments)
        cls.server = interop.Server(cls.program, os.path.join(cls.folder, "server"), "--registry=" + registry)
        cls.servers = f"firn://127.0.0.1:{cls.server.port}"

    @classmethod
    def tearDownClass(cls):
        cluster.programs.end(cls.server.process)

    def check_time(self, said):
        """The library reads the time of Firn's ids."""
        ms = int(re.search(r"^time (\d+)$", said, re.MULTILINE)[1])
        self.assertLess(abs(ms - time.time() * 1000), CLOCKS_MS)

    def test_adapters_of_hutool_take_ids(self):
        folder = builds.new(self.folder, "hutool")
        *_, path, _ = builds.build("java", folder)
        builds.maven(COPY, "-Dartifact=" + HUTOOL, "-DoutputDirectory=" + folder, cwd=folder)
        path = [*path.split(":"), builds.java_jar(folder), folder]
        self.assertEqual(self.hutool(folder, path, "FirnSnowflake", "Caller"),
                         "different 2001 of 2001\ncalls 2001\nfailure FirnException\n")
        self.assertEqual(self.hutool(folder, path, "LeasedSnowflake", "LeasedCaller"),
                         "in the interval\ndifferent 10000 of 10000\nmachine id of the lease\nfailure FirnException\n")

    def hutool(self, folder, path, adapter, caller):
        """The output of a program that uses an adapter of the page, without the time in it."""
        source = os.path.join(folder, adapter + ".java")
        write(block("import cn.hutool", f"class {adapter} "), source)
        builds.javac("11", folder, path, source, os.path.join(SAMPLES, caller + ".java"))
        said = builds.run("java", *builds.QUICK, "-cp", ":".join(path), caller, self.servers)
        self.check_time(said)
        return re.sub(r"time \d+\n", "", said)

    def test_adapters_of_go_libraries_take_ids(self):
        folder = os.path.join(self.folder, "caller")
        shutil.copytree(os.path.join(SAMPLES, "caller"), folder)
        ids = builds.new(folder, "ids")
        for number, text in enumerate(one for one in pages.blocks(PAGE) if one.startswith("package ids")):
            write(text, ids, f"ids{number}.go")
        client = builds.copy("go", self.folder, planted=False)
        environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
        builds.run("go", "mod", "init", "caller", cwd=folder, env=environment)
        builds.run("go", "mod", "edit", f"-require={builds.GO_MODULE}@v0.0.0",
                   f"-replace={builds.GO_MODULE}={client}", *("-require=" + one for one in GO_MODULES),
                   cwd=folder, env=environment)
        got = subprocess.run(["go", "mod", "download", *GO_MODULES], cwd=folder, env=environment, capture_output=True,
                             text=True)
        if got.returncode:
            self.skipTest("no module proxy has the libraries: " + got.stderr[-300:])
        builds.run("go", "build", "-o", "run", ".", cwd=folder, env=environment)
        said = builds.run(os.path.join(folder, "run"), self.servers)
        self.check_time(said)
        self.assertEqual(re.sub(r"time \d+\n", "", said),
                         "different 2000 of 2000\nascending 2000\ncalls 2001\nfailure true\n")

    def test_go_libraries_use_leased_machine_ids(self):
        client = builds.copy("go", builds.new(self.folder, "leases"), planted=False)
        leased = os.path.join(os.path.dirname(client), "go-leased")
        shutil.copytree(os.path.join(builds.ROOT, "client", "go-leased"), leased)
        environment = {**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "FIRN_SERVERS": self.servers}
        got = subprocess.run(["go", "mod", "download"], cwd=leased, env=environment, capture_output=True, text=True)
        if got.returncode:
            self.skipTest("no module proxy has the libraries: " + got.stderr[-300:])
        builds.run("go", "vet", ".", cwd=leased, env=environment)
        said = builds.run("go", "test", "-count=1", "-v", ".", cwd=leased, env=environment)
        self.assertNotIn("SKIP", said)


if __name__ == "__main__":
    if lacking := builds.missing("java", "go"):
        interop.skip(f"not installed: {', '.join(lacking)}")
    interop.main(GeneratorsTest, "mvn", "firn")
