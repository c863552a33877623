#!/usr/bin/env python3
"""Produces every state in server/node/STATES.md in which leases are refused, on real servers, and compares what requests
get, the metrics, the alerts and firn audit with the row of each.

    lease_states_test.py BIN ROOT
"""

import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
import urllib.parse

import states_walk as walk
from states_walk import row_of, states, walks

for folder in "interop", "conformance":
    sys.path.insert(0, os.path.join(walk.ROOT, "tests", folder))
from cluster import ZooKeeper  # noqa: E402
from tls_test import Authority  # noqa: E402

# The alerts need more than one refusal in ten seconds, over five minutes.
REPEATED = 80


def random_bits():
    return os.urandom(16).hex()


class LeaseStatesTest(walk.Walk):
    def ask(self, server, verb="POST", lease="", **words):
        """(status, reason, message) of a request; reason and message are empty if it is granted."""
        if verb == "POST":
            words = {"token": random_bits(), "name": "program", **words}
        if verb != "DELETE":
            words = {"clock_ms": int(time.time() * 1000), **words}
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=walk.PATIENCE_S)
        if server.context:
            connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=walk.PATIENCE_S,
                                                     context=server.context)
        path = f"/v1/leases/{lease}" if lease else "/v1/leases"
        try:
            connection.request(verb, path + "?" + urllib.parse.urlencode(words))
            answer = connection.getresponse()
            said = json.loads(answer.read() or "{}")
        finally:
            connection.close()
        self.granted = said
        error = said.get("error", {})
        return answer.status, error.get("reason", ""), error.get("message", "")

    def lease(self, server, **words):
        """A lease, once the server grants one."""
        self.await_true("a lease", lambda: self.ask(server, **words)[0] == 201, server)
        return self.granted["lease"]

    def compare_refusal(self, name, server, part, ask, audit=True, ready=200):
        """Compares the row of a state in which `ask` is refused, with a message that contains `part`."""
        row = row_of(name)
        self.compared.append(name)
        await_it = lambda what, true: self.await_true(f"{name}: {what}", true, server)
        status, reason = re.match(r"(\d+) `(\w+)`", row["requests get"]).groups()
        said = []

        def refused():
            said[:] = ask()
            return said[:2] == [int(status), reason] and part in said[2]
        self.scrape(server)
        try:
            await_it(f"requests get {status} {reason}", refused)
        except AssertionError as failure:
            raise AssertionError(f"{said}") from failure
        self.assertEqual(server.get("/readyz")[0], ready)
        metric, *label = states.quoted(row["metric"])
        label = label[0] if label else r"[^\"]*"
        await_it(f"{metric} {label}", lambda: re.search(rf'(?m)^{metric}{{\w+="{label}"}} [1-9]',
                                                        server.get("/metrics")[1]))
        alerts = re.findall(r"\bFirn\w+", row["alert"])
        if "FirnLeasesRefused" in alerts:
            for _ in range(REPEATED):
                ask()
        for alert in alerts:
            await_it(alert, lambda n=alert: self.prometheus.holds(self.prometheus.alerts[n], server.admin))
        for alert in {one for one in self.prometheus.alerts if one.startswith("FirnLease")} - set(alerts):
            self.assertFalse(self.prometheus.holds(self.prometheus.alerts[alert], server.admin), f"{name}: {alert}")
        if audit:
            self.compare_audit(row, server, await_it)

    def serving(self, *flags, workers=16, name="server", init=True, **options):
        if init:
            self.firn("init", "--brand-new", "--force", f"--workers={workers}")
        server = self.start("--rack=0", *flags, name=name, **options)
        self.await_ready(server)
        return server

    # ---- requests for a lease --------------------------------------------------------------------

    @walks("no leases here")
    def test_a_server_that_grants_none(self):
        server = self.serving("--leases_max=0")
        self.compare_refusal("no leases here", server, "--leases_max", lambda: self.ask(server))

    @walks("no leases here")
    def test_a_server_without_a_registry(self):
        self.registry = "static:5"
        server = self.serving("--static_first_start", init=False)
        self.compare_refusal("no leases here", server, "static: has no registry", lambda: self.ask(server), audit=False)

    @walks("server full")
    def test_a_server_with_all_its_leases(self):
        server = self.serving("--leases_max=1")
        lease = self.lease(server)
        self.compare_refusal("server full", server, "as many as --leases_max permits", lambda: self.ask(server))
        self.assertEqual(self.ask(server, "PUT", lease, turn=random_bits())[0], 200)

    def serving_with_rights(self, line):
        """A server that reads rights from a file with that line. Its clients are client.example."""
        rights = f"{self.folder}/rights"
        with open(rights, "w", encoding="utf-8") as file:
            file.write(line + "\n")
        authority = Authority(self.folder, "ours")
        (certificate, key), client = authority.sign("server"), authority.sign("client.example")
        context = ssl.create_default_context(cafile=authority.path("ca.crt"))
        context.check_hostname = False
        context.load_cert_chain(*client)
        return self.serving(f"--rights_file={rights}", f"--tls_cert={certificate}", f"--tls_key={key}",
                            f"--tls_client_ca={authority.path('ca.crt')}", context=context)

    @walks("client full")
    def test_a_client_with_all_its_leases(self):
        server = self.serving_with_rights("client.example @lease:1")
        self.lease(server)
        self.compare_refusal("client full", server, "client.example has 1 lease", lambda: self.ask(server),
                             audit=False)  # it warns of certificates that expire within a month

    @walks("no right")
    def test_a_client_without_the_right(self):
        server = self.serving_with_rights("client.example order")
        self.compare_refusal("no right", server, "@lease", lambda: self.ask(server), audit=False)  # likewise

    @walks("share used up")
    def test_a_rack_without_free_machine_ids(self):
        server = self.serving(workers=2)  # one in each rack is for leases
        lease = self.lease(server)
        time.sleep(5)  # until its claim reaches far enough
        self.assertEqual(self.ask(server, "PUT", lease, turn=random_bits(), ahead_ms=600_000)[0], 200)
        self.compare_refusal("share used up", server, "request another rack", lambda: self.ask(server))

    @walks("pace")
    def test_requests_that_come_too_fast(self):
        server = self.serving(workers=128)
        self.lease(server)
        self.compare_refusal("pace", server, "this server claims machine ids for 20 leases at once", lambda: self.ask(server))

    @walks("claiming")
    def test_a_claim_that_takes_long(self):
        server = self.serving("--probation_ms=15000", workers=128)
        self.compare_refusal("claiming", server, "this server is claiming a machine id for the request",
                             lambda: self.ask(server))

    @walks("no machine id")
    def test_a_server_without_a_machine_id(self):
        self.firn("init", "--brand-new", "--force", "--workers=1")
        self.serving(name="holder", init=False)
        server = self.start("--rack=0")
        self.compare_refusal("no machine id", server, "no machine id of its own", lambda: self.ask(server), ready=503)

    @walks("registry unreachable")
    def test_a_registry_that_does_not_answer(self):
        zookeeper = ZooKeeper(f"{self.folder}/zookeeper")
        self.addCleanup(zookeeper.kill)
        self.registry = f"zk://127.0.0.1:{zookeeper.port}/firn/states"
        server = self.serving()
        self.await_true("a long claim", lambda: server.status()["bound_in_ms"] > 60_000, server)
        lease = self.lease(server)
        zookeeper.kill()
        self.compare_refusal("registry unreachable", server, "the registry is unreachable", lambda: self.ask(server))
        self.assertEqual(self.ask(server, "PUT", lease, turn=random_bits())[0], 200)

    @walks("state folder")
    def test_a_state_folder_that_cannot_be_written(self):
        server = self.serving()
        folder = f"{self.folder}/server"
        if subprocess.run(["chattr", "+i", folder], check=False).returncode != 0:
            self.skipTest("no immutable folders here")
        self.addCleanup(subprocess.run, ["chattr", "-i", folder], check=True)
        self.compare_refusal("state folder", server, "the state folder cannot be written", lambda: self.ask(server))

    @walks("clock off")
    def test_a_program_whose_clock_is_wrong(self):
        server = self.serving()
        self.compare_refusal("clock off", server, "correct the clock",
                             lambda: self.ask(server, clock_ms=int(time.time() * 1000) + 3_600_000))

    # ---- requests for more time ------------------------------------------------------------------

    @walks("lease over", "repeated late", "another server's")
    def test_leases_that_a_server_does_not_renew(self):
        server = self.serving()
        lease, turn, next_turn = self.lease(server), random_bits(), random_bits()
        self.assertEqual(self.ask(server, "PUT", lease, turn=turn)[0], 200)
        self.assertEqual(self.ask(server, "PUT", lease, turn=next_turn, acknowledged=turn)[0], 200)
        self.compare_refusal("repeated late", server, "a later renewal",
                             lambda: self.ask(server, "PUT", lease, turn=turn))
        other = self.serving(name="other", init=False)
        self.compare_refusal("another server's", other, f"belongs to server 127.0.0.1:{server.port}",
                             lambda: self.ask(other, "PUT", lease, turn=random_bits(), acknowledged=next_turn))
        self.assertEqual(self.ask(server, "DELETE", lease, turn=next_turn)[0], 204)
        self.compare_refusal("lease over", server, "it has ended",
                             lambda: self.ask(server, "PUT", lease, turn=random_bits(), acknowledged=next_turn))

    @walks("lease copied")
    def test_two_processes_with_one_lease(self):
        server = self.serving()
        lease = self.lease(server)
        self.scrape(server)  # the first sample of the counter
        self.assertEqual(self.ask(server, "PUT", lease, turn=random_bits())[0], 200)
        self.compare_refusal("lease copied", server, "two processes renew the same lease",
                             lambda: self.ask(server, "PUT", lease, turn=random_bits()))

    def renew(self, server, lease, turns):
        """The next renewal in order; `turns` are the earlier ones."""
        turns.append(random_bits())
        acknowledged = turns[-2] if len(turns) > 1 else ""
        return self.ask(server, "PUT", lease, turn=turns[-1], acknowledged=acknowledged)

    @walks("lease lost")
    def test_a_lost_machine_id_that_another_server_leases(self):
        server = self.serving(workers=16)
        lease = self.lease(server)
        worker = self.granted["worker"]
        unused = self.granted["from_tick"] - 1
        self.assertEqual(self.ask(server, "DELETE", lease, used_tick=unused)[0], 204)
        leases = lambda: json.loads(server.get("/v1/leases")[1])["leases"]
        self.await_true("the machine id is free", lambda: not leases(), server)
        time.sleep(2)  # until its bound has passed
        slot, backup = f"{self.folder}/registry/machines/0/{worker}", f"{self.folder}/backup"
        shutil.copytree(slot, backup)
        lease, turns = self.lease(server), []
        self.assertEqual(self.granted["worker"], worker)  # used ones are leased first
        other = self.serving(name="other", init=False)
        self.scrape(server)  # the first sample of the counter

        def quiet():  # the next write to the registry is half a minute after the last one
            self.assertEqual(self.renew(server, lease, turns)[0], 200)
            return any(one["bound_ms"] > time.time() * 1000 + 595_000 for one in leases())
        self.await_true("a bound far ahead", quiet, server, pause_s=0.5)
        shutil.rmtree(slot)
        shutil.copytree(backup, slot)  # from before the lease
        other_lease, other_turns = self.lease(other), []
        self.assertEqual(self.granted["worker"], worker)
        self.assertEqual(self.renew(server, lease, turns)[0], 200)  # the server cannot know it yet

        def found():
            self.assertEqual(self.renew(other, other_lease, other_turns)[0], 200)
            return self.renew(server, lease, turns)[0] != 200
        self.await_true("the server finds it", found, server, pause_s=1)
        self.compare_refusal("lease lost", server, "the slot is now claimed by",
                             lambda: self.renew(server, lease, turns))
        self.assertEqual(self.ask(server, "DELETE", lease, turn=turns[-1])[0], 410)


class CompleteTest(walk.complete(lambda row: "requests get" in row, {}, LeaseStatesTest)):
    pass


if __name__ == "__main__":
    walk.main()
