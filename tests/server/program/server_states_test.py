#!/usr/bin/env python3
"""Produces states of server/node/STATES.md on real servers, and compares what calls get, /readyz, the status, the
metrics and firn audit say with the row of each.

    server_states_test.py BIN ROOT
"""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

BIN, ROOT = (os.path.abspath(path) for path in sys.argv[1:3])
for folder in "tools", "tools/checks":
    sys.path.insert(0, os.path.join(ROOT, folder))
sys.dont_write_bytecode = True

import cpp  # noqa: E402
import programs  # noqa: E402
import states  # noqa: E402

PATIENCE_S = 60
ROWS = list(states.rows_of(cpp.read(ROOT, states.PAGE)))
READY_OF_TAG = ("/readyz?tag=T", "snowflake tag's /readyz?tag=T")


def row_of(word):
    found = [row for row in ROWS if word in row.get("state", "").split(":")[0]]
    assert len(found) == 1, (word, found)
    return found[0]


class Server:
    """One firn-server on loopback with a directory as its registry."""

    def __init__(self, test, folder, *flags):
        self.test, self.folder = test, folder
        self.port, self.admin = programs.free_port(), programs.free_port()
        self.registry = f"dir://{folder}/registry"
        self.log = open(f"{folder}/log", "w", encoding="utf-8")
        test.addCleanup(self.log.close)
        self.process = programs.start(
            [f"{BIN}/firn-server", f"--registry={self.registry}", f"--listen=127.0.0.1:{self.port}",
             f"--admin_listen=127.0.0.1:{self.admin}", f"--state_dir={folder}/state",
             "--restore_probation_ms=0", *flags], stderr=self.log)
        test.addCleanup(programs.end, self.process)

    def get(self, path, port=None):
        """(status, body); status 0: no answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port or self.admin}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def reason(self, tag):
        """What a call for an id of the tag gets: "served", or the reason of the refusal."""
        status, body = self.get(f"/v1/ids/{tag}", self.port)
        return "served" if status == 200 else json.loads(body or "{}").get("error", {}).get("reason", body)

    def firn(self, *words):
        done = subprocess.run([f"{BIN}/firn", *words, f"--registry={self.registry}"], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        return done.stdout


class StatesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="firn-states-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def init(self, *words):
        self.firn("init", "--brand-new", "--force", "--workers=2", *words)

    def firn(self, *words):
        done = subprocess.run([f"{BIN}/firn", *words, f"--registry=dir://{self.folder}/registry"],
                              check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, f"firn {words}: {done.stdout}")

    def start(self, *flags):
        return Server(self, self.folder, *flags)

    def await_true(self, what, true, server):
        end = time.monotonic() + PATIENCE_S
        while not true():
            if time.monotonic() > end or server.process.poll() is not None:
                with open(f"{self.folder}/log", encoding="utf-8") as log:
                    self.fail(f"{what}: {server.get('/readyz')}\n{log.read()}")
            time.sleep(0.1)

    def await_ready(self, server, tag=""):
        path = "/readyz" + (f"?tag={tag}" if tag else "")
        self.await_true("ready", lambda: server.get(path)[0] == 200, server)

    def compare(self, word, server, tag, called=None, default=None, metrics=None):
        """The surfaces with the row. `tag`: the one that the state is about; `called`: the tag of the calls; `default`:
        the status of /readyz where the row leaves it open."""
        row = row_of(word)
        reasons = re.findall(r"`([A-Z_]+)`", row["calls get"]) or ["served"]
        of_tag = next(row[key] for key in READY_OF_TAG if key in row)
        want = int(of_tag)
        self.await_true(f"{word}: /readyz?tag={tag} is {want}",
                        lambda: server.get(f"/readyz?tag={tag}")[0] == want, server)
        self.await_true(f"{word}: calls get {reasons}", lambda: server.reason(tag if called is None else called) in reasons, server)
        ready = int(row["/readyz"]) if "/readyz" in row else default
        self.await_true(f"{word}: /readyz is {ready}", lambda: server.get("/readyz")[0] == ready, server)
        status = server.get("/v1/status")[1]
        for field in states.quoted(row["status field"]):
            self.assertIn(f'"{field}"', status, word)
        if "refused_tags" in row["status field"] and tag:
            self.await_true(f"{word}: status lists {tag}", lambda: [word.strip("`")] == [
                one["state"] for one in json.loads(server.get("/v1/status")[1])["refused_tags"]
                if one["tag"] == tag], server)
        for metric in metrics or states.quoted(row["metric"]):
            self.assertRegex(server.get("/metrics")[1], rf"(?m)^{metric}\b", word)
        lines = states.quoted(row["firn audit"])
        if lines:
            self.await_true(f"{word}: audit says one of {lines}",
                            lambda: any(line in server.firn("audit") for line in lines), server)
        return json.loads(status)

    # ---- states of a tag -------------------------------------------------------------------------

    def test_a_tag_whose_store_the_server_lacks(self):
        self.init()
        self.firn("tags", "create", "order", "strategy=segment", "store=main", "start=1")
        server = self.start("--default_tag=order")
        self.await_ready(server, "default")
        self.compare("`unsupported`", server, "order", default=503,
                     metrics=['firn_tag_refused{tag="order",state="unsupported"} 1', "firn_ready 0"])
        self.assertIn("there is no store 'main' here", server.get("/readyz")[1])
        self.assertIn(f"127.0.0.1:{server.port} refuses tag 'order': unsupported: there is no store 'main' here",
                      server.firn("audit"))
        self.await_true("clients keep the server", lambda: [
            one["state"] for one in json.loads(server.get("/v1/servers")[1]).get("servers", [])] == ["READY"],
            server)
        self.assertEqual(server.reason("default"), "served")

    def test_a_disabled_tag(self):
        self.init()
        self.firn("tags", "create", "order")
        self.firn("tags", "set", "default", "disabled=true")
        server = self.start()
        self.await_ready(server, "order")
        status = self.compare("`disabled`", server, "default", default=200)
        self.assertEqual(status["state"], "READY")

    def node_file(self, name):
        found = glob.glob(f"{self.folder}/registry/**/{name}*", recursive=True)
        self.assertTrue(found, name)
        return found[0]

    # ---- states of a server ----------------------------------------------------------------------

    def test_an_undefined_default_tag(self):
        self.init()
        server = self.start("--default_tag=orders")
        self.await_ready(server, "default")
        self.compare("default tag undefined", server, "default", called="", metrics=["firn_ready 0"])
        self.assertEqual(server.reason("default"), "served")

    def test_a_strict_clock(self):
        self.init()
        self.firn("tags", "create", "order", "strategy=segment", "start=1")
        self.firn("restore")
        server = self.start("--clock_policy=strict")
        self.await_ready(server, "order")
        self.compare("strict clock", server, "default")

    def test_an_offline_server_serves(self):
        self.init()
        server = self.start()
        self.await_ready(server)
        # The command refuses a server that has not announced itself yet.
        self.await_true("offline", lambda: server.firn("servers", "offline", f"127.0.0.1:{server.port}") and
                        server.get("/readyz")[1] == "OFFLINE\n", server)
        self.compare("`OFFLINE`", server, "default")

    def test_a_server_that_drains(self):
        self.init()
        server = self.start("--drain_notice_ms=20000")
        self.await_ready(server)
        server.process.send_signal(signal.SIGTERM)
        self.await_true("draining", lambda: server.get("/readyz")[1] == "DRAINING\n", server)
        self.assertEqual(server.get("/readyz?tag=default")[0],
                         int(row_of("`DRAINING`")["snowflake tag's /readyz?tag=T"]))
        self.assertRegex(server.get("/metrics")[1], r'(?m)^firn_state{state="DRAINING"} 1$')


if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main()
