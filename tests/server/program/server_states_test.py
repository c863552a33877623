#!/usr/bin/env python3
"""Produces every state of a server in server/node/STATES.md on real servers, and compares what calls get, /readyz, the
status, the metrics, the alerts, firn audit, firn doctor and the console with the row of each.

    server_states_test.py BIN ROOT
"""

import http.client
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request

import states_walk as walk
from states_walk import row_of, walks

for folder in "interop", "conformance":
    sys.path.insert(0, os.path.join(walk.ROOT, "tests", folder))
from cluster import ZooKeeper  # noqa: E402
from tls_test import Authority  # noqa: E402

# Rows that no test here produces, and why.
UNPRODUCED = {}


class ServerStatesTest(walk.Walk):
    def serving(self, *flags, **options):
        """A server that has issued ids of `default` and of the segment tag `order`, whose claim is valid for a
        minute at least."""
        self.init()
        self.firn("tags", "create", "order", "strategy=segment", "start=1")
        server = self.start(*flags, **options)
        self.await_true("ids", lambda: [server.reason(tag) for tag in ("default", "order")] == ["served"] * 2, server)
        self.await_true("a long claim", lambda: server.status()["bound_in_ms"] > 60_000, server)
        return server

    # ---- claims ----------------------------------------------------------------------------------

    @walks("root whole", "READY")
    def test_a_server_that_serves(self):
        server = self.serving()
        self.compare("root whole", server, "default")
        self.compare("READY", server, "default", like="root whole")
        self.compare_page(server, "Healthy", "Nothing is wrong.")

    @walks("tags unread (root unread)")
    def test_a_start_without_the_registry(self):
        self.registry = f"zk://127.0.0.1:{walk.programs.free_port()}/firn/states"
        server = self.start()
        self.compare("tags unread (root unread)", server, "default")
        self.assertEqual(server.reason("order"), "NOT_READY")

    @walks("seeking, claiming")
    def test_a_server_without_a_free_machine_id(self):
        self.firn("init", "--brand-new", "--force", "--workers=1")
        self.firn("tags", "create", "order", "strategy=segment", "start=1")
        self.await_ready(self.start(name="holder"))
        server = self.start()
        self.await_true("numbers", lambda: server.reason("order") == "served", server)
        self.compare("seeking, claiming", server, "default")
        self.firn("tags", "set", "order", "disabled=true")
        self.await_true("audit", lambda: " cannot issue: " in self.firn_says("audit")[1], server)
        self.compare("seeking, claiming", server, "default")

    @walks("holding, bound reached")
    def test_a_claim_that_cannot_be_renewed(self):
        self.init()
        server = self.start("--claim_window_ms=2000")
        self.await_ready(server)
        with self.hold_registry():
            self.compare("holding, bound reached", server, "default")
            self.assertEqual(server.status()["trouble"], "the bound is reached")
        self.await_ready(server)

    @walks("lapsing, restored")
    def test_a_cluster_that_was_restored(self):
        server = self.serving()
        self.firn("restore")
        self.compare("lapsing, restored", server, "default")
        self.assertEqual(server.reason("order"), "served")

    @walks("releasing, released")
    def test_a_server_that_gives_its_claim_back(self):
        row = row_of("releasing, released")
        self.assertEqual({cell for key, cell in row.items() if key not in ("state", "calls get")}, {"none"})
        self.assertEqual(row["calls get"], "none: no connection")
        self.init()
        server = self.start("--drain_notice_ms=0")
        self.await_ready(server)
        with self.hold_registry():  # so that the release is not acknowledged
            server.process.send_signal(signal.SIGTERM)
            self.await_true("no connection while it releases",
                            lambda: (server.get("/readyz")[0], server.reason("default")) == (0, "no connection"),
                            server)
        self.assertEqual(server.process.wait(walk.PATIENCE_S), 0)
        self.compared.append("releasing, released")

    @walks("killed")
    def test_a_killed_server(self):
        row = row_of("killed")
        server, other = self.serving(), self.start(name="other")
        self.await_ready(other)
        self.scrape(server)
        server.process.kill()
        server.process.wait()
        await_it = lambda what, true: self.await_true(what, true, other)
        self.assertEqual(row["calls get"], "none: no connection")
        self.assertEqual((server.get("/readyz")[0], server.reason("default")), (0, "no connection"))
        await_it(row["alert"], lambda: self.prometheus.holds(self.prometheus.alerts[row["alert"]], server.admin))
        self.compare_audit(row, other, await_it)
        self.assertEqual(self.firn_says("audit")[0], 1)
        self.compare_doctor(row, other, await_it)
        self.compare_page(other, "Act soon", *walk.states.quoted(row["firn audit"]))
        self.browser.await_text("totals", r"servers serving\s+1 of 2")
        self.compared.append("killed")

    # ---- the root node ---------------------------------------------------------------------------

    @walks("root frozen")
    def test_a_cluster_that_lost_the_node_of_a_used_tag(self):
        server = self.serving()
        shutil.rmtree(os.path.dirname(self.node("tags/order")))
        self.compare("root frozen", server, "default")
        self.compare_page(server, "Act now", "the cluster is frozen: ")
        self.assertEqual(server.reason("nothing"), "NOT_READY")

    def compare_root(self, name, change, restored=False):
        """Compares the row after `change`, which returns the new text of the root node, or None to remove it."""
        server = self.serving()
        text = change()
        if restored:
            self.firn("restore")
            self.await_true("lapsing", lambda: server.status()["machines"][0]["claim"] == "lapsing", server)
        os.remove(self.node())
        if text:
            with open(self.node(), "wb") as file:
                file.write(text)
        self.await_true("no root", lambda: server.reason("order") == "NOT_READY", server)
        self.compare(name, server, "default", refused="order")
        return server

    @walks("root missing")
    def test_a_missing_root_node(self):
        self.compare_root("root missing", lambda: None)

    @walks("root unreadable")
    def test_an_unreadable_root_node(self):
        self.compare_root("root unreadable", lambda: walk.node_text(b"not JSON"))

    @walks("root foreign")
    def test_a_foreign_root_node(self):
        server = self.compare_root("root foreign", lambda: walk.read(self.other_root()))
        server.process.kill()
        server.process.wait()
        os.remove(server.log_path)
        server.start()
        self.await_true("a start", lambda: server.reason("order") == "NOT_READY", server)
        self.compare("root foreign", server, "default", refused="order")
        for text in server.get("/readyz")[1], server.status()["trouble"], server.status()["root_trouble"]:
            for remedy in "--registry", "--state_dir", "firn restore":
                self.assertIn(remedy, text)

    @walks("root older than one that the server has read")
    def test_an_older_root_node(self):
        self.compare_root("root older than one that the server has read", lambda: walk.read(self.node()), restored=True)

    def other_root(self):
        """The root node's file of another cluster."""
        own, self.registry = self.registry, f"dir://{self.folder}/other"
        self.init()
        self.registry = own
        return f"{self.folder}/other/node"

    # ---- clocks ----------------------------------------------------------------------------------

    @walks("strict clock")
    def test_a_strict_clock(self):
        self.init()
        self.firn("tags", "create", "order", "strategy=segment", "start=1")
        self.firn("restore")
        server = self.start("--clock_policy=strict")
        self.await_ready(server, "order")
        self.compare("strict clock", server, "default")

    @walks("layout ended")
    def test_a_layout_that_ends(self):
        # Not in a registry: there no machine id is claimed in the layout's last day.
        self.registry = f"static:{os.getpid() % 1024}"
        bits, lasts_s = 30, 10
        epoch = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + lasts_s - 2**bits))
        server = self.start("--static_first_start", f"--layout=time:{bits}s machine:10 sequence:12 epoch:{epoch}")
        self.compare("layout ended", server, "default", audit=False)

    @walks("registry clock off")
    def test_a_registry_clock_that_steps(self):
        clock = f"{self.folder}/clock"
        with open(clock, "w", encoding="utf-8") as file:
            file.write("+0\n")
        self.init()
        # Each renewal reads the registry's clock: with this window every 3 s.
        server = self.start("--claim_window_ms=60000", environment=walk.clock_of(clock))
        self.await_ready(server)
        # A step back lasts: ids follow a step ahead, which the server adopts with its next claim.
        with open(clock, "w", encoding="utf-8") as file:
            file.write("-1h\n")
        self.compare("registry clock off", server, "default")

    # ---- files -----------------------------------------------------------------------------------

    @walks("grant stuck")
    def test_a_grant_that_can_be_neither_written_nor_removed(self):
        zookeeper = ZooKeeper(f"{self.folder}/zookeeper")  # a directory registry would suffer from the limit, too
        self.addCleanup(zookeeper.kill)
        self.registry = f"zk://127.0.0.1:{zookeeper.port}/firn/states"
        memory = walk.tempfile.mkdtemp(prefix="firn-states-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, memory, ignore_errors=True)
        server = self.serving(f"--grant_dir={memory}")
        folder = f"{memory}/firn-{os.getuid()}"
        if subprocess.run(["chattr", "+i", folder], check=False).returncode != 0:
            self.skipTest("no immutable folders here")
        self.addCleanup(subprocess.run, ["chattr", "-i", folder], check=True)
        subprocess.run(["prlimit", f"--pid={server.process.pid}", "--fsize=0"], check=True)
        self.compare("grant stuck", server, "default")

    @walks("no grant file")
    def test_a_grant_folder_that_is_not_private(self):
        memory = walk.tempfile.mkdtemp(prefix="firn-states-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, memory, ignore_errors=True)
        folder = f"{memory}/firn-{os.getuid()}"
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        self.init()
        server = self.start(f"--grant_dir={memory}")
        self.await_ready(server)
        self.compare("no grant file", server, "default")
        self.compare_page(server, "Act soon", "no grant file, ")

    @walks("history lost")
    def test_a_history_that_cannot_be_written(self):
        self.init()
        self.firn("tags", "create", "order", "plugins=history")
        server = self.start(f"--history_file={self.folder}/history")
        self.await_ready(server, "order")
        self.scrape(server)  # the first sample of the counter
        subprocess.run(["prlimit", f"--pid={server.process.pid}", "--fsize=20000"], check=True)
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        self.addCleanup(connection.close)

        def call():
            connection.request("GET", "/v1/ids/order")
            connection.getresponse().read()
            return 'outcome="lost"} 0' not in server.get("/metrics")[1]
        self.await_true("a lost run", call, server)
        self.compare("history lost", server, "order")

    @walks("certificate expired")
    def test_an_expired_certificate(self):
        self.init()
        authority = Authority(self.folder, "ca")
        certificate, key = authority.sign("server", days=-1)
        trusted = ssl.create_default_context(cafile=authority.path("ca.crt"))
        trusted.check_hostname = False
        server = self.start(f"--tls_cert={certificate}", f"--tls_key={key}", context=trusted)
        self.await_ready(server)
        self.compare("certificate expired", server, "default")
        with self.assertRaisesRegex(OSError, "certificate has expired"):
            urllib.request.urlopen(f"https://127.0.0.1:{server.port}/v1/ids/default", timeout=30, context=trusted)

    @walks("overloaded")
    def test_a_server_that_is_asked_for_too_many_ids(self):
        self.init("--layout=time:31s machine:10 sequence:1")  # two ids a second
        server = self.start("--issue_wait_ms=0")
        self.await_ready(server)
        ended = threading.Event()
        self.addCleanup(ended.set)

        def ask():
            while not ended.wait(0.02):
                server.reason("default")
        load = threading.Thread(target=ask, daemon=True)
        load.start()
        self.compare("overloaded", server, "default")
        self.compare_page(server, "Calls are refused", "refuses calls (OVERLOADED)")
        ended.set()
        load.join()
        self.await_true("the end", lambda: self.firn_says("doctor")[0] == 0, server)
        self.compare_page(server, "Healthy", "Nothing is wrong.")

    # ---- readiness -------------------------------------------------------------------------------

    @walks("default tag undefined")
    def test_an_undefined_default_tag(self):
        self.init()
        server = self.start("--default_tag=orders")
        self.await_ready(server, "default")
        self.compare("default tag undefined", server, "default", called="")
        self.assertEqual(server.reason("default"), "served")

    @walks("NOT_READY")
    def test_a_default_tag_that_cannot_issue(self):
        self.init()
        self.firn("tags", "create", "order", "strategy=segment", "store=main", "start=1")
        server = self.start("--default_tag=order")
        self.await_ready(server, "default")
        self.compare("NOT_READY", server, "order", like="unsupported")

    @walks("offline setting unread")
    def test_an_offline_setting_that_cannot_be_read(self):
        self.init()
        folder = f"{self.folder}/registry/firn.IdService/configurators"
        os.makedirs(os.path.dirname(folder))
        os.symlink(folder, folder)  # a loop
        server = self.start()
        self.compare("offline setting unread", server, "default")

    @walks("OFFLINE")
    def test_an_offline_server_serves(self):
        self.init()
        server = self.start()
        self.await_ready(server)
        # The command refuses a server that has not announced itself yet.
        self.await_true("offline", lambda: self.firn_says("servers", "offline", f"127.0.0.1:{server.port}")[0] == 0 and
                        server.get("/readyz")[1] == "OFFLINE\n", server)
        self.compare("OFFLINE", server, "default")

    @walks("DRAINING")
    def test_a_server_that_drains(self):
        server = self.serving("--drain_notice_ms=0", f"--drain_refuse_ms={5 * walk.PATIENCE_S * 1000}")
        with socket.create_connection(("127.0.0.1", server.port)) as held:
            held.sendall(b"GET /v1/ids/default HTTP/1.1\r\nHost: firn\r\n\r\n")
            self.assertIn(b" 200 ", held.recv(4096))  # so the server has accepted it
            server.process.send_signal(signal.SIGTERM)
            self.compare("DRAINING", server, "default")
            self.assertEqual(server.reason("order"), "DRAINING")
            self.assertEqual(server.get("/readyz")[1], "DRAINING\n")


class CompleteTest(walk.complete(lambda row: "/readyz" in row, UNPRODUCED, ServerStatesTest)):
    pass


if __name__ == "__main__":
    walk.main()
