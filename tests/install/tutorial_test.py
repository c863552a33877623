"""Runs every indented line of TUTORIAL.md, in one shell. It runs in its own network, where the ports that the page
names are free. pip and go use Debian's packages instead of downloads. The packages of `npm ci` are installed before,
once for all tests.

    tutorial_test.py ROOT BIN MACHINE_PY_FOLDER
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT, BIN = (os.path.abspath(path) for path in sys.argv[1:3])
sys.path[:0] = [os.path.join(ROOT, "tests/conformance"), sys.argv[3]]
import builds  # noqa: E402
from machine import await_true, in_a_network_of_its_own, programs, skip_unless  # noqa: E402
import pages  # noqa: E402

PATIENCE_S = 1000
# Retries a program, because a client's own timeouts may be too short on a busy machine.
TRIED = 'tried() { local i; for i in {1..20}; do "$@" && return; done; return 1; }\n'
PROGRAM = re.compile(r"^(build/ids/cpp|build/ids/venv/bin/python |go run |java |node )", re.MULTILINE)
LANGUAGES = ("C++", "Python", "Go", "Java", "TypeScript")
FIRST = "./tools/run"


def text_of(path):
    with open(path) as file:
        return file.read()


class TutorialTest(unittest.TestCase):
    def setUp(self):
        # A tree of links, so that the page's commands write into the test's folder.
        self.folder = tempfile.mkdtemp(prefix="firn-tutorial-")
        for name in os.listdir(ROOT):
            if name in ("client", "thrift"):  # pip makes files there
                shutil.copytree(os.path.join(ROOT, name), os.path.join(self.folder, name))
            elif name not in ("build", "firn-state", ".git"):
                os.symlink(os.path.join(ROOT, name), os.path.join(self.folder, name))
        os.makedirs(os.path.join(self.folder, "build"))
        os.symlink(os.path.dirname(BIN), os.path.join(self.folder, "build/release"))
        self.server = None

    def tearDown(self):
        self.end_server()
        subprocess.run([f"{ROOT}/tools/cluster", "down", f"--folder={self.folder}/cluster"],
                       check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder)

    def end_server(self):
        if self.server:
            self.server.send_signal(signal.SIGINT)
            self.server.wait()
            self.server = None

    def as_here(self, script):
        """Returns the script changed so that it builds nothing and writes its files here."""
        script = re.sub(r"^cmake --build .*", ":", script, flags=re.MULTILINE)
        script = re.sub(r"^npm ci$", f"ln -s {os.path.abspath(builds.NODE_PACKAGES)} node_modules", script, flags=re.MULTILINE)
        script = TRIED + PROGRAM.sub(r"tried \1", script)
        script = re.sub(r"\./tools/cluster (\w+)", rf"./tools/cluster \1 --folder={self.folder}/cluster",
                        script)
        return script.replace("./tools/cluster up", f"./tools/cluster up --bin={BIN}")

    def environment(self):
        """An environment with Debian's programs and without the network."""
        pip = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "false",
               "PIP_DISABLE_PIP_VERSION_CHECK": "1",
               "PYTHONPATH": "/usr/lib/python3/dist-packages"}  # Debian's setuptools and wheel
        npm = {"npm_config_offline": "true", "npm_config_audit": "false", "npm_config_update_notifier": "false"}
        return {**builds.go_environment(self.folder), **pip, **npm, "SHELL": "/bin/bash", "PATH": "/usr/bin:" + os.environ["PATH"]}

    def test_every_command_of_the_page_works(self):
        first, *rest = pages.blocks("TUTORIAL.md")
        self.assertEqual(FIRST + "\n", first)
        log = os.path.join(self.folder, "run.log")
        with open(log, "w") as file:
            self.server = programs.start(
                [os.path.join(ROOT, "tools/run"), "--bin", BIN, "--folder", "firn-state"],
                cwd=self.folder, stdout=file, stderr=subprocess.STDOUT)
        await_true("tools/run has said all", lambda: "Ctrl-C ends" in text_of(log),
                   lambda: text_of(log))
        said = subprocess.run(["bash", "-euo", "pipefail", "-x", "-c", self.as_here("".join(rest))],
                              cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=PATIENCE_S,
                              env=self.environment())
        print(said.stdout)
        self.assertEqual(0, said.returncode)
        self.assertRegex(said.stdout, r'"tag": ?"invoice".*1\d\d\d')
        numbers = [re.search(rf"^{re.escape(language)} (1\d\d\d)$", said.stdout, re.MULTILINE)
                   for language in LANGUAGES]
        self.assertTrue(all(numbers))
        self.assertEqual(len(LANGUAGES), len({number[1] for number in numbers}))
        self.assertIn("may have been issued by", said.stdout)
        self.assertRegex(said.stdout, r"server-2 .* ended ")
        self.assertRegex(said.stdout, r" calls, 0 failed; 0 duplicates among ")


if __name__ == "__main__":
    for lacking in map(builds.missing, ("python", "go", "java", "typescript")):
        skip_unless(not lacking, f"not installed: {', '.join(lacking)}")
    builds.node_packages()
    in_a_network_of_its_own(os.path.join(BIN, "firn"))
    unittest.main(argv=sys.argv[:1], verbosity=2)
