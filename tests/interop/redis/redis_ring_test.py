#!/usr/bin/python3
"""Failover of a go-redis Ring of three servers under load: kill -9, a paused process, and a clean stop.

    redis_ring_test.py FIRN_SERVER FIRN FOLDER

Counts failed calls and ids that were issued twice. Exit 77 without Go or its packages.
"""

import collections
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import interop
import programs
import redis_clients_test

CALLERS = 8
SERVERS = 3
# Ids that all callers together must get from the remaining servers after each fault.
IDS_AFTER_FAULT = 2_000


class Load:
    """A program that takes ids until its standard input ends, and prints each id or failure."""

    def __init__(self, command, environment=None):
        self.process = programs.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      env={**os.environ, **(environment or {})})
        self.ids, self.failures = [], collections.Counter()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            kind, _, rest = line.strip().partition(" ")
            if kind == "id":
                self.ids.append(rest)  # with its tag: numbers of different tags may be equal
            else:
                self.failures[rest] += 1

    def takes(self, count):
        """Waits until it has taken `count` more ids."""
        wanted, deadline = len(self.ids) + count, time.time() + interop.PATIENCE_S
        while len(self.ids) < wanted:
            if time.time() > deadline:
                raise SystemExit(f"{len(self.ids)} ids, {self.failures}")
            time.sleep(0.05)

    def end(self):
        self.process.stdin.close()
        self.process.wait(interop.PATIENCE_S)
        self.reader.join()


def report(fault, load):
    print(f"after {fault}: {len(load.ids)} ids, {sum(load.failures.values())} failed calls", flush=True)


class RedisRingTest(unittest.TestCase):
    program = firn = folder = None
    command = []

    @classmethod
    def start(cls, index):
        return interop.Server(cls.program, os.path.join(cls.folder, f"server{index}"),
                              f"--registry=dir://{cls.folder}/registry", "--drain_notice_ms=1500", "--redis_incr_64bit")

    def test_fails_over_without_a_failed_call(self):
        servers = [self.start(index) for index in range(SERVERS)]
        tags = [f"order{caller}" for caller in range(CALLERS)]
        for tag in tags:
            subprocess.run([self.firn, "tags", "create", tag, f"--registry=dir://{self.folder}/registry"],
                           check=True, stdout=subprocess.DEVNULL)
        for server in servers:
            for tag in tags:
                server.becomes(tag, "ID")
        load = Load([*self.command, "ring", *(f"127.0.0.1:{server.port}" for server in servers)])
        load.takes(IDS_AFTER_FAULT)

        servers[0].process.kill()
        servers[0].process.wait()
        load.takes(IDS_AFTER_FAULT)
        report("kill -9", load)

        servers[1].pause(f"{self.folder}/registry")
        load.takes(IDS_AFTER_FAULT)
        servers[1].process.send_signal(signal.SIGCONT)
        load.takes(IDS_AFTER_FAULT)
        report("pause", load)

        self.assertEqual(servers[2].stop(), 0, servers[2].log())
        load.takes(IDS_AFTER_FAULT)
        report("clean stop", load)

        load.end()
        self.assertEqual(servers[1].stop(), 0, servers[1].log())
        duplicates = len(load.ids) - len(set(load.ids))
        self.assertEqual(duplicates, 0)
        self.assertEqual(sum(load.failures.values()), 0, load.failures)


if __name__ == "__main__":
    folder = os.path.abspath(sys.argv.pop(3))
    os.makedirs(folder, exist_ok=True)
    RedisRingTest.command, _ = redis_clients_test.go_client(folder)
    interop.main(RedisRingTest, "go", "firn")
