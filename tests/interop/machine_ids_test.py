#!/usr/bin/python3
"""A firn-server with several machine ids: killed, and started again with more and with fewer.

    machine_ids_test.py FIRN_SERVER FIRN
"""

import json
import os
import signal
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import interop
import programs

MACHINE_SHIFT, TICK_SHIFT = 12, 22  # of the layout `firn`


class MachineIdsTest(unittest.TestCase):
    program = firn = folder = None

    def setUp(self):
        self.place = os.path.join(self.folder, self.id())
        os.makedirs(self.place)
        self.port, self.admin_port = programs.free_port(), programs.free_port()
        self.registry = f"dir://{self.place}/state/registry"
        self.seen = set()
        self.process = None

    def tearDown(self):
        if self.process is not None:
            programs.end(self.process)

    def start(self, machine_ids):
        with open(os.path.join(self.place, "log"), "a") as log:
            self.process = programs.start(
                [self.program, f"--listen=127.0.0.1:{self.port}",
                 f"--admin_listen=127.0.0.1:{self.admin_port}", f"--state_dir={self.place}/state",
                 "--drain_notice_ms=0", f"--machine_ids={machine_ids}"], stderr=log)
        deadline = time.time() + interop.PATIENCE_S
        while len(machines := self.machines()) != machine_ids:
            self.assertIsNone(self.process.poll(), self.log())
            self.assertLess(time.time(), deadline, self.log())
            time.sleep(0.05)
        return machines

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(interop.PATIENCE_S), 0, self.log())

    def log(self):
        with open(os.path.join(self.place, "log")) as log:
            return log.read()

    def ask(self, path, admin=False):
        port = self.admin_port if admin else self.port
        url = f"http://127.0.0.1:{port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=interop.PATIENCE_S) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as refused:
            refused.msg += ": " + refused.read().decode()
            raise

    def machines(self):
        """Returns the machine ids that the server holds, in its order; none until it issues ids."""
        try:
            self.ask("/readyz", admin=True)
            status = json.loads(self.ask("/v1/status", admin=True))
        except (urllib.error.URLError, OSError):
            return []
        held = [one["machine"] for one in status["machines"] if one["claim"] == "holding"]
        if held:
            self.assertEqual(status["machine"], held[0])
        return held

    def take(self, calls):
        """Takes ids with `calls` calls; checks that none was seen before, and that the ids of a call rise."""
        taken = []
        for _ in range(calls):
            ids = [int(one) for one in json.loads(self.ask("/v1/ids/default?count=1000"))["ids"]]
            self.assertEqual(ids, sorted(set(ids)))
            taken += ids
        self.assertFalse(self.seen.intersection(taken))
        self.assertEqual(len(set(taken)), len(taken))
        self.seen.update(taken)
        return taken

    def audit(self):
        done = subprocess.run([self.firn, "audit", "--json", "--registry=" + self.registry],
                              capture_output=True, text=True, check=False)
        audit = json.loads(done.stdout)
        self.assertEqual(audit["faults"], [], done.stdout)
        return audit

    def test_keeps_its_machine_ids_after_crashes_and_changes_of_their_number(self):
        three = self.start(3)
        self.assertEqual(len(set(three)), 3)
        first = max(self.take(20))
        self.kill()
        four = self.start(4)
        self.assertEqual(four[:3], three)
        self.assertGreater(min(self.take(20)) >> TICK_SHIFT, first >> TICK_SHIFT)
        self.kill()
        self.assertEqual(self.start(1), three[:1])
        self.take(20)
        self.stop()
        self.assertEqual(self.start(3), three)
        self.take(20)
        self.stop()

    def test_every_output_shows_all_machine_ids(self):
        machines = self.start(3)
        deadline = time.time() + interop.PATIENCE_S
        providers = []
        while not providers or len(providers[0]["machines"]) != 3:
            self.assertLess(time.time(), deadline, providers)
            providers = self.audit()["providers"]
            time.sleep(0.1)
        self.assertEqual({one["machine"] for one in providers[0]["machines"]}, set(machines))
        metrics = self.ask("/metrics", admin=True)
        for i, machine in enumerate(machines):
            self.assertIn(f'firn_machine_id{{claim="{i + 1}"}} {machine}\n', metrics)
        self.assertIn("firn_machine_ids_held 3\n", metrics)
        self.assertIn("firn_machine_ids_wanted 3\n", metrics)
        held = {slot["machine"] for slot in self.audit()["machines"] if slot["use"] == "held"}
        self.assertEqual(held, set(machines))

    def test_who_finds_the_server_by_each_machine_id(self):
        machines = self.start(2)
        taken = self.take(1)[-1]
        tick = taken >> TICK_SHIFT
        for machine in machines:
            number = tick << TICK_SHIFT | machine << MACHINE_SHIFT
            done = subprocess.run([self.firn, "who", str(number), "--registry=" + self.registry],
                                  capture_output=True, text=True, check=False)
            self.assertIn(f"machine {machine}", done.stdout, done.stderr)
            self.assertIn(f"pid {self.process.pid},", done.stdout)

    def test_refuses_impossible_numbers_of_machine_ids(self):
        for flags in (["--machine_ids=0"], ["--machine_ids=17"],
                      ["--machine_ids=2", "--worker=3"],
                      ["--machine_ids=2", "--registry=static:3", "--static_first_start"]):
            done = subprocess.run([self.program, f"--state_dir={self.place}/state", *flags],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--machine_ids", done.stderr)


if __name__ == "__main__":
    interop.main(MachineIdsTest, "python3", "firn")
