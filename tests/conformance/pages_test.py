#!/usr/bin/python3
"""What the pages say, done as it stands, with a real firn-server: the stubs of thrift/STUBS.md, and the
first lines and the example of each client.

    pages_test.py FIRN_SERVER NODE_FOLDER

NODE_FOLDER has the npm package `thrift`, or else Node's page is not tried. Exit 77 when something is not
installed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import builds
import pages

sys.path.insert(0, os.path.join(builds.HERE, "..", "interop"))
import interop
import web

PORT = "7609"
PATIENCE_S = 240


def module_proxy(folder):
    """Debian's Thrift for Go, as `go get` finds modules; the address."""
    place = os.path.join(folder, "proxy", "github.com", "apache", "thrift", "@v")
    os.makedirs(place)
    module = builds.thrift_for_go(os.path.join(folder, "proxy"))
    version = "v" + subprocess.run(["thrift", "--version"], check=True, text=True,
                                   stdout=subprocess.PIPE).stdout.split()[-1]
    for name, text in (("list", f"{version}\n"), (f"{version}.info", json.dumps({"Version": version})),
                       (f"{version}.mod", "module github.com/apache/thrift\n\ngo 1.19\n")):
        with open(os.path.join(place, name), "w") as file:
            file.write(text)
    with zipfile.ZipFile(os.path.join(place, f"{version}.zip"), "w") as packed:
        for at, _, names in os.walk(module):
            for name in names:
                path = os.path.join(at, name)
                packed.write(path, os.path.join(f"github.com/apache/thrift@{version}",
                                                os.path.relpath(path, module)))
    return "file://" + os.path.join(folder, "proxy")


class PagesTest(unittest.TestCase):
    program = node = folder = None

    @classmethod
    def setUpClass(cls):
        cls.server = interop.Server(cls.program, os.path.join(cls.folder, "server"))
        cls.port = str(cls.server.port)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.log()

    def new_folder(self):
        return tempfile.mkdtemp(dir=self.folder)

    def for_this_server(self, text):
        """A page's text asks the usual port, and a tag that stands for the user's own."""
        return text.replace(PORT, self.port).replace('"order"', '"default"')

    def ran(self, *command, **options):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE_S, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def given(self, *command, **options):
        """The output of a program that takes ids with a client's default deadlines."""
        done = pages.run(*command, timeout=PATIENCE_S, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def ids_in(self, text, at_least):
        """The ids in a program's output, each once."""
        ids = re.findall(r"\b\d{15,19}\b", text)
        self.assertGreaterEqual(len(ids), at_least, text)
        return ids

    # --- stubs ------------------------------------------------------------------------------------

    def stub(self, language, **environment):
        """Does what the page's section says; its program gives ten ids."""
        with open(os.path.join(builds.ROOT, "thrift", "STUBS.md")) as page:
            section = re.search(rf"^## {language}\n(.*?)(?=^## |\Z)", page.read(),
                                re.DOTALL | re.MULTILINE)[1]
        name = re.search(r"`([\w.]+)`", section)[1]
        program, commands = pages.blocks_of(section)
        folder = self.new_folder()
        shutil.copy(os.path.join(builds.ROOT, "thrift", "firn.thrift"), folder)
        with open(os.path.join(folder, name), "w") as file:
            file.write(self.for_this_server(program))
        if language == "Node":
            os.symlink(os.path.join(self.node, "node_modules"), os.path.join(folder, "node_modules"))
            commands = commands.replace("npm install thrift\n", "")  # it is there
        said = self.ran("bash", "-e", "-c", commands, cwd=folder, env={**os.environ, **environment})
        self.assertEqual(len(set(self.ids_in(said, 10))), 10, said)

    def test_the_stub_of_python_takes_ids(self):
        self.stub("Python")

    def test_the_stub_of_java_takes_ids(self):
        self.stub("Java", JAVA_TOOL_OPTIONS=" ".join(builds.QUICK))

    def test_the_stub_of_go_takes_ids(self):
        folder = self.new_folder()
        self.stub("Go", **{**builds.go_environment(folder), "GOPROXY": module_proxy(folder),
                           "GOSUMDB": "off"})

    def test_the_stub_of_node_takes_ids(self):
        if not os.path.exists(os.path.join(self.node, "installed")) or not shutil.which("node"):
            self.skipTest("Node has no package thrift here")
        self.stub("Node")

    # --- clients ----------------------------------------------------------------------------------

    def first_lines(self, language):
        """The first program on the client's page."""
        page = pages.blocks(f"client/{language}/README.md")
        return next(block for block in page if "7609" in block).replace(PORT, self.port)

    def built(self, language):
        folder = self.new_folder()
        return folder, builds.build(language, folder)

    def own_server(self):
        """A firn-server that a test may end, and a port for a web service."""
        return interop.Server(self.program, os.path.join(self.new_folder(), "server")), interop.programs.free_port()

    def test_the_example_of_python_takes_ids(self):
        folder, (python, *_) = self.built("python")
        said = self.given(python, "-c", self.first_lines("python"))
        self.assertEqual(len(set(self.ids_in(said, 102))), 102)
        self.assertIn(" healthy", said)
        example = os.path.join(folder, "client", "python", "example.py")
        self.assertIn("4000 different", self.given(python, example, "firn://127.0.0.1:" + self.port))
        server, port = self.own_server()
        web.check([python, "-c", web.program("client/python/README.md", "wsgiref", server, port)], port, server)

    def test_the_example_of_go_takes_ids(self):
        folder, _ = self.built("go")
        program = os.path.join(folder, "driver")
        environment = builds.go_environment(folder)
        with open(os.path.join(program, "main.go"), "w") as file:
            file.write(self.first_lines("go"))
        self.ids_in(self.given("go", "run", ".", cwd=program, env=environment), 101)
        shutil.copy(os.path.join(folder, "client", "go", "example", "main.go"), program)
        said = self.given("go", "run", ".", "firn://127.0.0.1:" + self.port, cwd=program,
                        env=environment)
        self.assertIn("from memory", said)
        server, port = self.own_server()
        with open(os.path.join(program, "main.go"), "w") as file:
            file.write(web.program("client/go/README.md", "net/http", server, port))
        self.ran("go", "build", "-o", "orders", ".", cwd=program, env=environment)
        web.check([os.path.join(program, "orders")], port, server)

    def test_the_example_of_java_takes_ids(self):
        folder, (*java, path, _) = self.built("java")
        with open(os.path.join(folder, "Ids.java"), "w") as file:
            file.write(self.first_lines("java"))
        self.ids_in(self.given(*java, path, os.path.join(folder, "Ids.java")), 101)
        example = os.path.join(folder, "client", "java", "example", "Example.java")
        said = self.given(*java, path, example, "firn://127.0.0.1:" + self.port)
        self.assertIn("from memory", said)


if __name__ == "__main__":
    for language in "python", "go", "java":
        if lacking := builds.missing(language):
            interop.skip(f"not installed: {', '.join(lacking)}")
    interop.main(PagesTest, "thrift", "node")
