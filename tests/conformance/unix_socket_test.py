#!/usr/bin/python3
"""A client on the Unix sockets of real servers.

    unix_socket_test.py LANGUAGE FIRN_SERVER

Exit 77 when something is not installed.
"""

import contextlib
import os
import sys
import unittest

import builds
import cluster
import driver_process
import interop

# Values of FIRN_CLIENT, which selects one of a package's clients.
CLIENTS = {"python": ("", "aio"), "rust": ("", "blocking")}
GENEROUS = {"deadline_ms": 60_000, "attempt_limit_ms": 30_000}


class UnixSocketTest(unittest.TestCase):
    language = program = folder = None

    @classmethod
    def setUpClass(cls):
        cls.commands = {of: builds.build(cls.language, builds.new(cls.folder, "build-" + of), of=of)
                        for of in ("driver", "lease")}

    @contextlib.contextmanager
    def server(self, name, *flags):
        """A server on a Unix socket; also its path."""
        path = os.path.join(self.folder, name + ".sock")
        server = interop.Server(self.program, os.path.join(self.folder, name), f"--listen_unix={path}",
                                *flags)
        try:
            yield server, path
        finally:
            if server.process.poll() is None:
                server.stop()

    @contextlib.contextmanager
    def driver(self, of="driver"):
        with open(os.path.join(self.folder, of + ".log"), "a") as log:
            driver = driver_process.Driver(self.commands[of], log)
        try:
            yield driver
        finally:
            driver.end()

    def each_client(self):
        for client in CLIENTS.get(self.language, ("",)):
            os.environ["FIRN_CLIENT"] = client
            with self.driver() as driver:
                yield driver

    def take(self, driver, calls=20):
        said = driver.ask("id", tag="default", times=calls)
        self.assertEqual((said["answered"], said["failed"], len(set(said["ids"]))), (calls, 0, calls), said)

    def test_takes_ids_and_discovers_the_network_addresses(self):
        with self.server("alone") as (server, path):
            for driver in self.each_client():
                driver.ask("open", servers=f"list://unix:{path}", **GENEROUS)
                self.take(driver)
                self.assertEqual(list(driver.ask("view")["servers"]), [f"unix:{path}"])
                driver.ask("open", servers=f"firn://unix:{path}", **GENEROUS)
                cluster.patiently("the network address is not discovered",
                                  lambda: f"127.0.0.1:{server.port}" in driver.ask("view")["servers"])
                self.take(driver)

    def test_fails_over_from_missing_sockets_and_from_those_of_killed_servers(self):
        with self.server("good") as (server, good):
            for number, driver in enumerate(self.each_client()):
                with self.server(f"bad{number}", f"--registry={server.registry}") as (bad, path):
                    both = f"list://unix:{path},unix:{good}"
                    driver.ask("open", servers=both, **GENEROUS)
                    self.take(driver)
                    bad.process.kill()
                    bad.process.wait()
                    self.assertTrue(os.path.exists(path))
                    self.take(driver)
                    os.remove(path)
                    self.take(driver)
                    driver.ask("open", servers=both, **GENEROUS)
                    self.take(driver)

    def test_refuses_paths_that_no_socket_can_have(self):
        for driver in self.each_client():
            for path, words in (("/" + 107 * "x", "at most 107 bytes"), ("firn.sock", "requires an absolute path")):
                said = driver.ask("open", servers=f"list://unix:{path}", **GENEROUS)
                self.assertEqual(said.get("kind"), "invalid", said)
                self.assertIn(words, said["failure"])

    def test_extends_a_lease(self):
        with self.server("leases") as (_, path):
            for at, client in enumerate(CLIENTS.get(self.language, ("",))):
                os.environ["FIRN_CLIENT"] = client
                with self.subTest(client), self.driver("lease") as driver:
                    opened = driver.ask("open", servers=f"list://unix:{path}", name=f"over-unix-{at}", ahead_ms=3_000,
                                        timeout_ms=30_000, threads=1, file=os.path.join(self.folder, f"ids{at}"))
                    self.assertEqual(opened, {})
                    until = driver.ask("so_far")["until_ms"]
                    cluster.patiently("the lease is not extended",
                                      lambda: driver.ask("so_far")["until_ms"] > until + 3_000)
                    self.assertEqual(driver.ask("close")["failed"], 0)


if __name__ == "__main__":
    UnixSocketTest.language = sys.argv.pop(1)
    if lacking := builds.missing(UnixSocketTest.language):
        interop.skip("not installed: " + ", ".join(lacking))
    interop.main(UnixSocketTest, "python3")
