#!/usr/bin/python3
"""Leases of machine ids over TLS: a client's generator, and a real server that requires certificates and rights.

    lease_tls_test.py LANGUAGE FIRN_SERVER

Exit 77 when something is not installed.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
import urllib.request

import builds
import cluster
import conformance
import driver_process

AHEAD_MS = 6_000
SHORT_MS = 3_000  # until an opening that must fail has failed


class Case:
    def __init__(self, language, program, folder):
        self.files = conformance.certificates(builds.new(folder, "certificates"))
        self.command = builds.build(language, builds.new(folder, "build"), of="lease")
        self.program, self.folder = program, folder
        self.log = open(os.path.join(folder, "driver.log"), "w")

    def server(self, name, rights):
        """A server that gives all clients of its authority these rights. The certificates have the name localhost."""
        path = os.path.join(self.folder, name + "-rights")
        with open(path, "w") as file:
            file.write(f"localhost {rights}\n")
        cert, key = self.files["server"]
        return cluster.interop.Server(self.program, os.path.join(self.folder, name), f"--tls_cert={cert}",
                                      f"--tls_key={key}", f"--tls_client_ca={self.files['ca']}", f"--rights_file={path}")

    @contextlib.contextmanager
    def generator(self, server, identity, timeout_ms, ca="ca"):
        """A driver that was asked to open a generator, and the reason why that failed."""
        driver, words = driver_process.Driver(self.command, self.log), {}
        if identity:
            words = {"tls_cert": self.files[identity][0], "tls_key": self.files[identity][1]}
        if ca:
            words["tls_ca"] = self.files[ca]
        try:
            opened = driver.ask("open", servers=f"firn://127.0.0.1:{server.port}", name="over-tls", ahead_ms=AHEAD_MS,
                                timeout_ms=timeout_ms, threads=1, file=os.path.join(self.folder, "ids"), **words)
            yield driver, opened.get("failure", "")
        finally:
            driver.end()

    def refused(self, what, server, *identity, says=""):
        with self.generator(server, *identity) as (_, failure):
            print(f"  {what}: {failure}", flush=True)
            if not failure or says not in failure:
                raise SystemExit(f"{what}: '{failure}' does not contain '{says}'")

    def play(self):
        with contextlib.ExitStack() as ending:
            server, poor = self.server("server", "default,@lease"), self.server("poor", "default")
            ending.callback(poor.stop)
            ending.callback(server.stop)
            with self.generator(server, "client", 30_000) as (driver, failure):
                if failure:
                    raise SystemExit(f"no lease over TLS: {failure}")
                self.renews(driver)
                if leased(server) != {"over-tls"}:
                    raise SystemExit(f"the server lists {leased(server)}")
                closed = driver.ask("close")
                if closed["failed"] or not closed["after_close"]:
                    raise SystemExit(f"the generator failed: {closed}")
                cluster.patiently("the lease was not released", lambda: not leased(server))
            self.refused("a client without the right", poor, "client", 2 * SHORT_MS, says="@lease")
            self.refused("a client of another authority", server, "other", SHORT_MS)
            self.refused("a client without a certificate", server, None, SHORT_MS)
            self.refused("a server of another authority", server, "client", SHORT_MS, "other_ca")
            self.refused("a client without TLS", server, None, SHORT_MS, None)
            if leased(server) | leased(poor):
                raise SystemExit("a server has a lease")

    @staticmethod
    def renews(driver):
        """Waits for ids, and for an interval that only a renewal can give."""
        since, deadline = int(time.time() * 1000), time.monotonic() + cluster.PATIENCE_S
        while True:
            said = driver.ask("so_far")
            if said["ids"] > 100 and said["until_ms"] > since + AHEAD_MS:
                return
            if said["failed"] or said["lost"] or time.monotonic() > deadline:
                raise SystemExit(f"no ids, or no later interval: {said}")
            time.sleep(0.05)


def leased(server):
    """The names of a server's leases."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/v1/leases", timeout=cluster.PATIENCE_S) as answer:
        return {one["name"] for one in json.load(answer)["leases"]}


def main():
    language, program = sys.argv[1:]
    if lacking := builds.missing(language, more=("openssl",)):
        print(f"skipped: not installed: {', '.join(lacking)}")
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="firn-lease-tls-")
    try:
        Case(language, os.path.abspath(program), folder).play()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
