"""Runs the indented lines of each section of MIGRATION.md as printed, each section with its own registry,
and checks that no server holds a machine id while it is reserved. Runs the regions of SIZING.md and checks
that their ids cannot collide. Works in a network namespace, where the port that the pages name is free.

    migration_test.py ROOT BIN MACHINE_PY_FOLDER
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
from machine import in_a_network_of_its_own, programs  # noqa: E402

PATIENCE_S = 400
# Syncing files is slow while other tests run.
PATIENT = 'firn() { command firn "$@" --timeout_ms=60000; }\n'
ORIGINS = ("Twitter's Snowflake", "Leaf, snowflake mode", "Vesta", "CosId, SnowflakeId")


REGIONS = "Racks, zones, regions"
# Prints the ranges that servers may claim, ids of a server in Europe, and the error of a European server with an
# American rack.
TRIED = """
firn machines list --json --registry=$europe >europe.json
firn machines list --json --registry=$america >america.json
firn-server --registry=$europe --rack=2 --state_dir=$state & server=$!
curl -sf --retry 60 --retry-all-errors http://127.0.0.1:7609/v1/ids/default >id.json
kill $server; wait $server
firn-server --registry=$europe --rack=5 --state_dir=$state-5 & server=$!
for i in {1..600}; do
  curl -s http://127.0.0.1:7610/v1/status >status.json || true
  ! grep -E 'no machine id is free|"READY"' status.json || break
  sleep 0.1
done
kill $server; wait $server
"""


def sections(page="MIGRATION.md"):
    """Each section's indented lines, by its title."""
    with open(os.path.join(ROOT, page)) as page:
        parts = re.split(r"^## (.*)\n", page.read(), flags=re.MULTILINE)
    return {title: "\n".join(re.findall(r"^    (.*)", text, re.MULTILINE))
            for title, text in zip(parts[1::2], parts[2::2])}


class MigrationTest(unittest.TestCase):
    def run_in(self, folder, script):
        """Runs a script in a shell, and ends all processes that it has started. Returns its outcome."""
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}",
                       "registry": f"dir://{folder}/registry", "state": f"{folder}/state",
                       "europe": f"dir://{folder}/europe", "america": f"dir://{folder}/america"}
        log = os.path.join(folder, "log")
        with open(log, "w") as file:
            shell = programs.start(["bash", "-euo", "pipefail", "-c", PATIENT + script],
                                   stdout=file, stderr=subprocess.STDOUT, env=environment, cwd=folder)
        try:
            code = shell.wait(PATIENCE_S)
        finally:
            with contextlib.suppress(ProcessLookupError):  # no process of the script still runs
                os.killpg(shell.pid, signal.SIGKILL)
        with open(log) as file:
            return code, file.read()

    def test_every_section_with_commands_is_tried(self):
        self.assertEqual(list(ORIGINS), [title for title, lines in sections().items() if lines])

    def test_every_step_works(self):
        for title in ORIGINS:
            with self.subTest(title), tempfile.TemporaryDirectory(prefix="firn-moving-") as folder:
                script = sections()[title]
                # Before the release: the holders of machine ids.
                before, release = re.split(r"(?=^firn machines release)", script, flags=re.MULTILINE)
                listed = "firn machines list --json --registry=$registry >machines.json\n"
                code, said = self.run_in(folder, before + listed + release)
                self.assertEqual(0, code, said)
                self.assertIn("nothing is wrong", said)
                with open(os.path.join(folder, "machines.json")) as file:
                    uses = [machine["use"] for machine in json.load(file)]
                self.assertIn("reserved", uses, said)
                self.assertEqual(1, uses.count("held"), said)

    def test_regions_issue_different_ids(self):
        commands = [line for line in sections("SIZING.md")[REGIONS].splitlines() if line]
        self.assertEqual(4, len(commands))
        with tempfile.TemporaryDirectory(prefix="firn-regions-") as folder:
            code, said = self.run_in(folder, "\n".join(commands) + TRIED)
            self.assertEqual(0, code, said)

            def told(name):
                with open(os.path.join(folder, name)) as file:
                    return json.load(file)

            kept = {name: {row["machine"] for row in told(name + ".json") if row["use"] == "reserved"}
                    for name in ("europe", "america")}
            self.assertEqual(set(range(1024)), kept["europe"] | kept["america"])
            self.assertEqual(set(), kept["europe"] & kept["america"])
            machine = int(told("id.json")["ids"][0]) >> 12 & 1023
            self.assertEqual(2, machine % 8)
            self.assertNotIn(machine, kept["europe"])
            self.assertEqual("NOT_READY", told("status.json")["state"], said)
            self.assertIn("no machine id is free", told("status.json")["trouble"])


if __name__ == "__main__":
    in_a_network_of_its_own(os.path.join(BIN, "firn"))
    unittest.main(argv=sys.argv[:1], verbosity=2)
