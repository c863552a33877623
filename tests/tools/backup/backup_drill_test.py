#!/usr/bin/env python3
"""Runs the commands of each section of tools/package/BACKUP.md as printed, on a real ZooKeeper and real servers, after
the section's kind of loss. Takes ids before the backup, after it, and after the restore: no id is issued twice.

    backup_drill_test.py BIN ROOT
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

BIN, ROOT = (os.path.abspath(path) for path in sys.argv[1:3])
for folder in "tools", "tests/interop", "tests/conformance":
    sys.path.insert(0, os.path.join(ROOT, folder))
sys.dont_write_bytecode = True

import programs  # noqa: E402
from cluster import Member, ZooKeeper, patiently  # noqa: E402

PAGE = "tools/package/BACKUP.md"
PATIENCE_S = 300
TAGS = ("default", "order", "bill")
BACKUP = "Make a backup"
LOSSES = ("The registry was wiped", "The registry was rolled back", "Move to another ZooKeeper", "Undo an init")


def sections():
    """Each section's indented lines, by its title."""
    with open(os.path.join(ROOT, PAGE), encoding="utf-8") as page:
        parts = re.split(r"^## (.*)\n", page.read(), flags=re.MULTILINE)
    return {title: "\n".join(re.findall(r"^    (.*)", text, re.MULTILINE))
            for title, text in zip(parts[1::2], parts[2::2])}


class BackupDrillTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="firn-backup-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.zookeeper = self.start_zookeeper("zk")
        self.registry = f"zk://127.0.0.1:{self.zookeeper.port}/firn/shop"
        self.other, self.ids = "", {tag: [] for tag in TAGS}
        self.flags = f"{self.folder}/firn-server.flags"
        with open(self.flags, "w", encoding="utf-8") as file:
            file.write(f"# the flags of a package\n--registry={self.registry}\n--claim_window_ms=60000\n"
                       "--restore_probation_ms=0\n")
        self.firn("init", "--brand-new", "--force", "--workers=4")
        self.firn("machines", "reserve", "3", "--reserved_for=old")
        for tag in "order", "bill":
            self.firn("tags", "create", tag, "strategy=segment", "start=1", "step=50", "step_max=100")
        self.server = Member(f"{BIN}/firn-server", f"{self.folder}/server", self.registry)
        self.server.command = [word for word in self.server.command if not word.startswith("--registry")]
        self.server.command += [f"--flagfile={self.flags}"]
        self.addCleanup(lambda: programs.end(self.server.process))
        self.server.await_ready()
        self.take(120)
        self.run_section(BACKUP)

    def start_zookeeper(self, name):
        zookeeper = ZooKeeper(f"{self.folder}/{name}")
        self.addCleanup(zookeeper.kill)
        return zookeeper

    def firn(self, *words, registry=None, code=0):
        done = subprocess.run([f"{BIN}/firn", *words, f"--registry={registry or self.registry}",
                               "--timeout_ms=30000"], check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, code, f"firn {words}: {done.stdout}")
        return done.stdout

    def take(self, count):
        """Takes ids of each tag, one call after the other. A call is refused while a tag cannot issue yet, and while
        a slow registry has not granted the next range."""
        for tag in TAGS:
            for _ in range(count):
                patiently(f"an id of {tag}; see {self.server.log_path}", lambda t=tag: self.one(t))

    def take_beyond_the_gap(self):
        """Takes numbers that no restore of the backup alone would skip."""
        self.firn("tags", "set", "bill", "start=5000000")
        patiently("numbers above the new start", lambda: self.one("bill") and int(self.ids["bill"][-1]) >= 5_000_000)
        self.take(300)

    def one(self, tag):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.server.port}/v1/ids/{tag}", timeout=30) as answer:
                self.ids[tag] += json.load(answer)["ids"]
                return True
        except (urllib.error.URLError, OSError):
            return False

    def run_section(self, title):
        """Runs the section's commands in a shell that maps the page's names to this test's cluster."""
        script = sections()[title].replace("/etc/firn/firn-server.flags", self.flags)
        parts = re.split(r"^(systemctl \w+ firn-server)$", script, flags=re.MULTILINE)
        said = ""
        for part in parts:
            if part == "systemctl stop firn-server":
                self.server.drain()
            elif part == "systemctl start firn-server":
                self.server.start()
                if title == "The registry was rolled back":
                    patiently("the cluster is frozen", lambda: self.status().get("frozen"))
            else:
                said += self.run_in_shell(part)
        return said

    def run_in_shell(self, script):
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "registry": self.registry,
                       "other": self.other, "server": f"http://127.0.0.1:{self.server.port}"}
        # Servers' reports are a few seconds old, and a refused tag recovers with a call, as the page says.
        patient = """firn() {
          for tries in {1..60}; do
            command firn "$@" --timeout_ms=30000 >said 2>&1 && code=0 || code=$?
            [[ $1 = audit && $code = 1 ]] || break
            for tag in default order bill; do curl -s -o /dev/null "$server/v1/ids/$tag" || true; done
            sleep 1
          done
          cat said; return $code
        }
"""
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", patient + script], check=False, cwd=self.folder,
                              env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, f"{script}\n{done.stdout}\n{self.log()}")
        return done.stdout

    def log(self):
        with open(self.server.log_path, encoding="utf-8") as file:
            return file.read()

    def status(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.server.admin}/v1/status", timeout=30) as answer:
                return json.load(answer)
        except (urllib.error.URLError, OSError):
            return {}

    def uuid(self):
        done = subprocess.run([f"{BIN}/firn", "audit", "--json", f"--registry={self.registry}"], check=False,
                              stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout)["cluster"]["uuid"]

    def nodes(self):
        """Returns the data that a restore must keep."""
        tags = json.loads(self.firn("tags", "list", "--json"))["tags"]
        machines = json.loads(self.firn("machines", "list", "--json"))
        return ({tag["tag"]: {key: tag[key] for key in ("strategy", "step", "step_max")} for tag in tags},
                [one["machine"] for one in machines if one["use"] == "reserved"])

    def finish(self, said, before):
        self.assertIn("nothing is wrong", said)
        self.server.await_ready()
        highest = {tag: max(map(int, ids)) for tag, ids in self.ids.items()}
        taken = {tag: len(ids) for tag, ids in self.ids.items()}
        self.take(120)
        for tag, ids in self.ids.items():
            self.assertGreater(min(map(int, ids[taken[tag]:])), highest[tag], f"{tag}: {said}")
            self.assertEqual(len(ids), len(set(ids)), f"an id of {tag} was issued twice: {said}")
            self.assertGreaterEqual(len(ids), 240)
        self.assertEqual(self.nodes(), before)

    # ---- the losses ------------------------------------------------------------------------------

    def test_every_section_with_commands_is_tried(self):
        self.assertEqual([BACKUP, *LOSSES], [title for title, lines in sections().items() if lines])

    def test_a_wipe_while_a_server_runs(self):
        before = self.nodes()
        self.take_beyond_the_gap()
        self.zookeeper.put_back(copy=False)
        said = self.run_section("The registry was wiped")
        self.assertIn("nothing was changed (--dry_run)", said)
        self.assertIn("tag order is re-created from the backup, above the servers' reports", said)
        self.finish(said, before)

    def test_a_wipe_while_no_server_runs(self):
        before = self.nodes()
        self.server.drain()
        self.zookeeper.put_back(copy=False)
        said = self.run_section("The registry was wiped")
        self.assertIn("tag order is known from the backup alone", said)
        self.server.start()
        self.finish(said, before)

    def test_a_roll_back_with_all_servers_stopped(self):
        before = self.nodes()
        self.zookeeper.copy()
        self.server.await_ready()
        self.take_beyond_the_gap()
        self.server.drain()
        self.zookeeper.put_back()
        said = self.run_section("The registry was rolled back")
        self.finish(said, before)

    def test_a_move_to_another_zookeeper(self):
        before = self.nodes()
        self.take(300)
        self.other = f"zk://127.0.0.1:{self.start_zookeeper('zk2').port}/firn/shop"
        said = self.run_section("Move to another ZooKeeper")
        self.zookeeper.kill()
        self.registry = self.other
        self.finish(said, before)

    def test_an_init_in_place_of_a_lost_cluster(self):
        before, lost = self.nodes(), self.uuid()
        self.take(300)
        self.zookeeper.put_back(copy=False)
        # A server of the lost cluster may freeze the new one before it is complete.
        subprocess.run([f"{BIN}/firn", "init", "--brand-new", "--force", "--workers=4",
                        f"--registry={self.registry}"], check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        self.assertNotEqual(self.uuid(), lost)
        said = self.run_section("Undo an init")
        self.assertEqual(self.uuid(), lost)
        self.finish(said, before)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
