"""MOVING.md: the indented lines of each section, as they stand, each section with a registry of its own;
and that no server holds a machine id while it is reserved. In a network of its own, where the port that the
page names is free.

    moving_test.py ROOT BIN MACHINE_PY_FOLDER
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT, BIN = (os.path.abspath(path) for path in sys.argv[1:3])
sys.path.insert(0, sys.argv[3])
from machine import in_a_network_of_its_own  # noqa: E402

PATIENCE_S = 400
# A thousand records that are synced one by one take their time beside other tests.
PATIENT = 'firn() { command firn "$@" --timeout_ms=60000; }\n'
ORIGINS = ("Twitter's Snowflake", "Leaf, snowflake mode", "Vesta", "CosId, SnowflakeId")


def sections():
    """Each section's indented lines, by its title."""
    with open(os.path.join(ROOT, "MOVING.md")) as page:
        parts = re.split(r"^## (.*)\n", page.read(), flags=re.MULTILINE)
    return {title: "\n".join(re.findall(r"^    (.*)", text, re.MULTILINE))
            for title, text in zip(parts[1::2], parts[2::2])}


class MovingTest(unittest.TestCase):
    def run_in(self, folder, script):
        """The outcome of a script in a shell; whatever it has started ends with it."""
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}",
                       "registry": f"dir://{folder}/registry", "state": f"{folder}/state"}
        log = os.path.join(folder, "log")
        with open(log, "w") as file:
            shell = subprocess.Popen(["bash", "-euo", "pipefail", "-c", PATIENT + script],
                                     stdout=file, stderr=subprocess.STDOUT, env=environment,
                                     cwd=folder, start_new_session=True)
        try:
            code = shell.wait(PATIENCE_S)
        finally:
            with contextlib.suppress(ProcessLookupError):  # nothing was left running
                os.killpg(shell.pid, signal.SIGKILL)
        with open(log) as file:
            return code, file.read()

    def test_every_section_with_commands_is_tried(self):
        self.assertEqual(list(ORIGINS), [title for title, lines in sections().items() if lines])

    def test_every_step_works(self):
        for title in ORIGINS:
            with self.subTest(title), tempfile.TemporaryDirectory(prefix="firn-moving-") as folder:
                script = sections()[title]
                # Before the release: who holds what.
                before, release = re.split(r"(?=^firn machines release)", script, flags=re.MULTILINE)
                listed = "firn machines list --json --registry=$registry >machines.json\n"
                code, said = self.run_in(folder, before + listed + release)
                self.assertEqual(0, code, said)
                self.assertIn("nothing is wrong", said)
                with open(os.path.join(folder, "machines.json")) as file:
                    uses = [machine["use"] for machine in json.load(file)]
                self.assertIn("reserved", uses, said)
                self.assertEqual(1, uses.count("held"), said)


if __name__ == "__main__":
    in_a_network_of_its_own(os.path.join(BIN, "firn"))
    unittest.main(argv=sys.argv[:1], verbosity=2)
