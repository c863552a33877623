#!/usr/bin/env python3
"""Produces every state of a tag and every refusal of a call in server/node/STATES.md on real servers, and compares
what calls get, /readyz, the status, the metrics, the alerts, firn audit and the console with the row of each.

    tag_states_test.py BIN ROOT
"""

import http.client
import os
import re
import shutil
import subprocess

import states_walk as walk
from states_walk import row_of, walks


# Rows that no test here produces, and why.
UNPRODUCED = {"outdated": "redis_tag_test compares its surfaces"}


class TagStatesTest(walk.Walk):
    @walks("unsupported")
    def test_a_tag_whose_store_the_server_lacks(self):
        self.init()
        self.firn("tags", "create", "order", "strategy=segment", "store=main", "start=1")
        server = self.start("--default_tag=order")
        self.await_ready(server, "default")
        self.compare("unsupported", server, "order", default=503)
        self.assertIn("this server has no store 'main'", server.get("/readyz")[1])
        self.assertIn(f"127.0.0.1:{server.port} refuses tag 'order': unsupported: this server has no store 'main'",
                      self.firn_says("audit")[1])
        self.await_true("clients keep the server", lambda: [
            one["state"] for one in walk.json.loads(server.get("/v1/servers")[1]).get("servers", [])] == ["READY"],
            server)
        self.assertEqual(server.reason("default"), "served")

    @walks("disabled")
    def test_a_disabled_tag(self):
        self.init()
        self.firn("tags", "create", "order")
        self.firn("tags", "set", "default", "disabled=true")
        server = self.start()
        self.await_ready(server, "order")
        self.compare("disabled", server, "default", default=200)
        self.assertEqual(server.status()["state"], "READY")

    @walks("unreadable")
    def test_a_tag_whose_node_is_damaged(self):
        self.init()
        self.firn("tags", "create", "order", "strategy=snowflake")
        os.truncate(self.node("tags/order"), 10)
        server = self.start()
        self.await_ready(server)
        self.compare("unreadable", server, "order", default=200)

    @walks("lost", "INTERNAL")
    def test_a_tag_whose_node_has_disappeared(self):
        self.init()
        self.firn("tags", "create", "order", "strategy=snowflake")
        server = self.start()
        self.await_ready(server, "order")
        shutil.rmtree(os.path.dirname(self.node("tags/order")))
        self.compare("lost", server, "order", default=200)
        self.compare_refusal("INTERNAL", server, "/v1/ids/order")
        # The command that the log prints brings the tag back.
        command = re.findall("firn restore --.*", server.log())[-1]
        done = subprocess.run(command, shell=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "PATH": walk.BIN + ":" + os.environ["PATH"]}, text=True)
        self.assertEqual(done.returncode, 0, command + "\n" + done.stdout)
        self.await_true("served again", lambda: server.reason("order") == "served", server)
        self.await_true("no trouble", lambda: "lost tags" not in server.status().get("trouble", ""), server)

    @walks("no_root")
    def test_a_tag_with_a_ledger_without_a_root_node(self):
        self.init()
        self.firn("tags", "create", "order", "strategy=segment", "start=1")
        server = self.start()
        self.await_ready(server)  # with a machine id, which a segment tag does not need
        self.await_ready(server, "order")
        os.remove(self.node())
        self.compare("no_root", server, "order", default=200)

    @walks("no_numbers")
    def test_a_tag_without_numbers(self):
        self.init()
        stores = f"{self.folder}/stores.ini"
        with open(stores, "w", encoding="utf-8") as file:
            file.write(f"[away]\nkind = redis\naddress = 127.0.0.1:{walk.programs.free_port()}\n")
        self.firn("tags", "create", "order", "strategy=segment", "store=away")
        server = self.start(f"--stores_file={stores}")
        self.await_ready(server)
        self.compare("no_numbers", server, "order", default=200)

    @walks("no_numbers")
    def test_a_tag_at_its_end(self):
        self.init()
        self.firn("tags", "create", "order", "strategy=segment", "start=9223372036854775800", "step=1")
        server = self.start()
        self.await_ready(server)
        self.await_true("the end", lambda: server.reason("order") == "EXHAUSTED", server)
        self.compare("no_numbers", server, "order", default=200)

    # ---- refusals of single calls ----------------------------------------------------------------

    def compare_refusal(self, reason, server, path):
        """Compares the row of a reason for which every call of the path is refused."""
        self.scrape(server)
        self.compared.append(reason)
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        self.addCleanup(connection.close)

        def refused():
            connection.request("GET", path)
            return walk.json.loads(connection.getresponse().read()).get("error", {}).get("reason") == reason
        # The alert needs more than one refusal in a second, over five minutes.
        for _ in range(500):
            self.await_true(reason, refused, server, pause_s=0)
        self.assertEqual(server.get("/readyz")[0], 200)
        self.assertRegex(server.get("/metrics")[1], rf'(?m)^firn_refusals_total{{reason="{reason}"}} [1-9]')
        alert = self.prometheus.alerts[row_of(reason)["alert"]]
        self.await_true(row_of(reason)["alert"], lambda: self.prometheus.holds(alert, server.admin), server)

    @walks("BAD_REQUEST", "UNKNOWN_TAG", "REJECTED", "OVERLOADED")
    def test_calls_that_are_refused(self):
        layout = ["--layout=time:31s machine:10 sequence:1"]  # two ids a second
        self.init(*layout)
        self.firn("tags", "create", "limited", "strategy=segment", "plugins=limit", "limit.per_second=1")
        paths = {"BAD_REQUEST": "/v1/ids/default?count=-1", "UNKNOWN_TAG": "/v1/ids/nothing",
                 "REJECTED": "/v1/ids/limited", "OVERLOADED": "/v1/ids/default"}
        for rack, (reason, path) in enumerate(paths.items()):
            # Each on a server of its own, so that no other reason raises the alert.
            server = self.start("--issue_wait_ms=0", f"--rack={rack}", name=reason)
            self.await_ready(server)
            self.compare_refusal(reason, server, path)


class CompleteTest(walk.complete(lambda row: "/readyz" not in row and "requests get" not in row, UNPRODUCED,
                                 TagStatesTest)):
    pass


if __name__ == "__main__":
    walk.main()
