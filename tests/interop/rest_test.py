#!/usr/bin/python3
"""Every HTTP path of firn-server by curl, as users of other systems call it.

    rest_test.py FIRN_SERVER FIRN

FIRN_SERVER and FIRN are the programs. Exit 77 when curl is not installed.
"""

import itertools
import json
import os
import shutil
import subprocess
import unittest

import interop

TOKEN = "3c6e0b8a9c15224a"


class Answer:
    def __init__(self, text):
        head, _, self.body = text.rpartition("\r\n\r\n")
        self.steps = head.split("\r\n\r\n")  # the final answer's head, after interim ones
        lines = self.steps[-1].split("\r\n")
        self.status = int(lines[0].split()[1])
        self.fields = {name.lower(): value for name, value in
                       (line.split(": ", 1) for line in lines[1:])}

    def json(self):
        return json.loads(self.body)


def curl(url, *flags):
    done = subprocess.run(["curl", "-s", "-i", "-m", "60", *flags, url], capture_output=True,
                          check=True)
    return Answer(done.stdout.decode())


class RestTest(unittest.TestCase):
    program = firn = folder = None

    @classmethod
    def setUpClass(cls):
        path = lambda name: os.path.join(cls.folder, name)
        with open(path("tokens"), "w") as tokens:
            tokens.write(f"{TOKEN}=default,order\n")
        os.chmod(path("tokens"), 0o600)
        cls.registry = "--registry=dir://" + path("registry")
        cls.history = path("history")
        cls.server = interop.Server(
            cls.program, path("firn"), cls.registry, "--worker=3", "--rack=1",
            f"--tinyid_token_file={path('tokens')}", f"--history_file={cls.history}")
        cls.vesta = interop.Server(cls.program, path("vesta"), "--layout=vesta-max-peak",
                                   "--worker=5")
        cls.waiting = interop.Server(cls.program, path("waiting"), "--registry=static:8",
                                     state="NOT_READY")
        cls.servers = [cls.server, cls.vesta, cls.waiting]

    @classmethod
    def tearDownClass(cls):
        for server in cls.servers:
            assert server.stop() == 0, server.log()
        with open(cls.history) as file:
            recorded = file.read()
        assert " recorded " in recorded and " http 127.0.0.1:" in recorded, recorded
        for server in cls.servers:
            assert TOKEN not in server.log(), "a token was logged"

    def ask(self, target, *flags, server=None):
        return curl(f"http://127.0.0.1:{(server or self.server).port}{target}", *flags)

    def admin(self, target, *flags):
        return curl(f"http://127.0.0.1:{self.server.admin_port}{target}", *flags)

    def fields_of(self, id):
        return self.ask(f"/v1/explain/{id}").json()

    def refused(self, answer, status, reason):
        self.assertEqual(answer.status, status, answer.body)
        error = answer.json()["error"]
        self.assertEqual(error["reason"], reason)
        self.assertTrue(error["message"])
        self.assertIn("retry_after_ms", error)
        self.assertIn("another_server_may_help", error)

    # ---- native ----------------------------------------------------------------------------------

    def test_native_ids_in_every_form(self):
        one = self.ask("/v1/ids/default")
        self.assertEqual(one.status, 200)
        self.assertEqual(one.fields["cache-control"], "no-store")
        self.assertEqual(one.fields["content-type"], "application/json")
        self.assertEqual(one.json()["tag"], "default")
        many = self.ask("/v1/ids/default?count=100").json()["ids"]
        self.assertEqual(len(set(many)), 100)
        self.assertEqual(many, sorted(many, key=int))
        posted = self.ask("/v1/ids/default", "-d", "count=3&form=text").json()["texts"]
        self.assertGreater(int(posted[0]), int(many[-1]))
        runs = self.ask("/v1/ids/default?count=5000&form=runs").json()["runs"]
        self.assertEqual(sum(run["count"] for run in runs), 5000)

    def test_native_explain_compose_and_time(self):
        id = self.ask("/v1/ids/default").json()["ids"][0]
        fields = self.fields_of(id)
        self.assertEqual((fields["machine"], fields["worker"], fields["rack"]), (13, 3, 1))
        made = self.ask(f"/v1/compose?ticks={fields['ticks']}&machine=13"
                        f"&sequence={fields['sequence']}").json()
        self.assertEqual(made["id"], id)
        self.assertEqual(self.ask(f"/v1/time/{fields['ticks']}").json()["time"], fields["time"])
        known = self.ask("/v1/explain/1169786042799259000?layout=twitter").json()
        self.assertEqual((known["time_ms"], known["machine"], known["sequence"]),
                         (1567733700834, 39, 3448))

    def test_native_refusals(self):
        self.refused(self.ask("/v1/ids/nothing"), 404, "UNKNOWN_TAG")
        for target in ("/v1/ids/default?count=0", "/v1/ids/default?count=x",
                       "/v1/ids/default?count=100001", "/v1/ids/default?form=song",
                       "/v1/explain/x", "/v1/explain/1?layout=nothing", "/v1/compose",
                       "/v1/time/-1"):
            self.refused(self.ask(target), 400, "BAD_REQUEST")
        waiting = self.ask("/v1/ids/default", server=self.waiting)
        self.refused(waiting, 503, "NOT_READY")
        self.assertNotIn("cache-control", waiting.fields)
        self.assertEqual(self.ask("/v1/ids/default", "-X", "DELETE").status, 405)
        self.assertEqual(self.ask("/v1/nothing").status, 404)

    def test_a_client_that_expects_100_continue_gets_it(self):
        answer = self.ask("/v1/ids/default", "-H", "Expect: 100-continue", "--expect100-timeout",
                          "60", "-d", "count=2")
        self.assertTrue(answer.steps[0].startswith("HTTP/1.1 100 "), answer.steps)
        self.assertEqual(len(answer.json()["ids"]), 2)

    # ---- Leaf ------------------------------------------------------------------------------------

    def test_leaf_paths_answer_as_leaf_does(self):
        answer = self.ask("/api/snowflake/get/default")
        self.assertEqual(answer.status, 200)
        self.assertEqual(self.fields_of(answer.body)["machine"], 13)
        self.assertEqual(self.ask("/api/segment/get/default").body, "'default' is not a segment tag")
        for kind in "segment", "snowflake":
            self.assertEqual(self.ask(f"/api/{kind}/get/nothing").status, 500)
            self.assertEqual(self.ask(f"/api/{kind}/get/default", server=self.waiting).status, 500)
        decoded = self.ask(f"/decodeSnowflakeId?snowflakeId={answer.body}").json()
        fields = self.fields_of(answer.body)
        self.assertEqual(decoded["workerId"], "13")
        self.assertEqual(decoded["sequenceId"], str(fields["sequence"]))
        self.assertTrue(decoded["timestamp"].startswith(f"{fields['time_ms']}("))
        self.assertIn("errorMsg", self.ask("/decodeSnowflakeId?snowflakeId=x").json())

    # ---- Vesta -----------------------------------------------------------------------------------

    def test_vesta_paths_answer_as_vesta_does(self):
        ask = lambda target: self.ask(target, server=self.vesta)
        machine = int(json.loads(curl(
            f"http://127.0.0.1:{self.vesta.admin_port}/v1/status").body)["machine"])
        issued = ask(f"/expid?id={ask('/genid').body}").json()
        self.assertEqual((issued["machine"], issued["genMethod"]), (machine, 2))
        self.assertRegex(ask(f"/transtime?time={issued['time']}").body,
                         r"^\w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC \d{4}$")
        self.assertEqual(self.ask("/genid", server=self.waiting).status, 503)

    def test_vesta_makes_ids_of_every_subset_of_fields(self):
        ask = lambda target: self.ask(target, server=self.vesta)
        machine = int(json.loads(curl(
            f"http://127.0.0.1:{self.vesta.admin_port}/v1/status").body)["machine"])
        given = {"version": 0, "type": 0, "genMethod": 1, "machine": 77, "time": 12758739,
                 "seq": 99}
        own = {"version": 0, "type": 0, "genMethod": 2, "machine": machine}
        for size in range(len(given) + 1):
            for subset in itertools.combinations(given, size):
                query = "&".join(f"{name}={given[name]}" for name in subset)
                answer = ask("/makeid?" + query)
                if not {"time", "seq"} <= set(subset):
                    self.assertEqual(answer.status, 400, query)
                    continue
                self.assertEqual(answer.status, 200, query)
                self.assertEqual(ask(f"/expid?id={answer.body}").json(),
                                 {**own, **{name: given[name] for name in subset}}, query)

    # ---- Tinyid ----------------------------------------------------------------------------------

    def test_tinyid_paths_answer_as_tinyid_does(self):
        for below in "", "/tinyid":
            ask = lambda verb, more="": self.ask(
                f"{below}/id/{verb}?bizType=default&token={TOKEN}{more}")
            ids = ask("nextId", "&batchSize=3").json()
            self.assertEqual((ids["code"], len(ids["data"]), ids["message"]), (200, 3, ""))
            simple = [int(id) for id in ask("nextIdSimple", "&batchSize=3").body.split(",")]
            self.assertGreater(simple[0], ids["data"][-1])
            segment = ask("nextSegmentId").json()["data"]
            self.assertGreater(segment["maxId"], segment["currentId"])
            self.assertEqual(len(ask("nextSegmentIdSimple").body.split(",")), 5)
            posted = self.ask(f"{below}/id/nextId", "-d", f"bizType=default&token={TOKEN}").json()
            self.assertEqual(posted["code"], 200)

    def test_tinyid_asks_for_the_token(self):
        for query in ("bizType=default", "bizType=default&token=wrong",
                      f"bizType=other&token={TOKEN}"):
            answer = self.ask("/id/nextId?" + query).json()
            self.assertEqual((answer["code"], answer["message"]), (5, "token is error"))
            self.assertEqual(self.ask("/id/nextIdSimple?" + query).body, "")
        unknown = self.ask(f"/id/nextId?bizType=order&token={TOKEN}").json()
        self.assertEqual((unknown["code"], unknown["data"]), (6, None))

    # ---- admin -----------------------------------------------------------------------------------

    def test_admin_paths_show_the_server_and_change_it(self):
        self.assertEqual(self.admin("/healthz").body, "ok\n")
        self.assertEqual(self.admin("/readyz").body, "READY\n")
        status = self.admin("/v1/status").json()
        self.assertEqual((status["state"], status["machine"]), ("READY", 13))
        self.assertTrue(status["registry"]["connected"])
        self.assertGreater(status["bound_in_ms"], 0)
        self.assertNotIn("trouble", status)
        self.assertEqual(self.admin("/v1/offline").status, 405)
        self.assertEqual(self.admin("/v1/offline", "-X", "POST").status, 403)
        mine = ("-X", "POST", "-H", "X-Firn-Admin: 1")
        self.assertEqual(self.admin("/v1/offline", *mine).status, 200)
        self.assertEqual(self.admin("/readyz").body, "OFFLINE\n")
        self.assertEqual(self.admin("/v1/online", *mine).status, 200)
        self.assertEqual(self.admin("/readyz").body, "READY\n")
        self.assertIn("<title>Firn</title>", self.admin("/").body)
        self.assertEqual(self.admin("/v1/explain/4194304").json()["ticks"], 1)
        for target in "/", "/healthz", "/readyz", "/v1/status", "/metrics":
            self.assertEqual(self.ask(target).status, 404)
        self.assertEqual(self.ask("/v1/offline", "-X", "POST").status, 404)

    def test_the_admin_port_answers_no_foreign_host_on_any_path(self):
        for path in "/v1/servers", "/v1/openapi.json", "/v1/status":
            url = f"http://127.0.0.1:{self.server.admin_port}{path}"
            self.assertEqual(curl(url, "-H", "Host: attacker.example").status, 403, path)
            self.assertEqual(curl(url).status, 200, path)

    def test_status_names_the_reason_of_not_ready(self):
        status = curl(f"http://127.0.0.1:{self.waiting.admin_port}/v1/status").json()
        self.assertEqual(status["state"], "NOT_READY")
        self.assertIn("grant", status["trouble"])

    def test_metrics_have_the_series_that_operators_use(self):
        self.ask("/v1/ids/default")
        self.ask("/v1/ids/nothing")
        text = self.admin("/metrics").body
        for line in ('firn_ids_total{tag="default"}', 'firn_refusals_total{reason="UNKNOWN_TAG"}',
                     'firn_calls_total', 'firn_connections{door="public"}',
                     'firn_request_seconds_bucket{door="public",protocol="http",le="+Inf"}',
                     'firn_request_seconds_count{door="public",protocol="thrift"}',
                     'firn_requests_parked_total', 'firn_machine_id 13', 'firn_bound_seconds',
                     'firn_clock_skew_seconds', 'firn_wall_clock_behind_seconds',
                     'firn_clock_steps_total{direction="back"}', 'firn_registry_connected 1',
                     'firn_registry_session_seconds', 'firn_renewals_total{outcome="failed"}',
                     'firn_layout_remaining_seconds', 'firn_history_runs_total{outcome="dropped"} 0'):
            self.assertIn("\n" + line, text)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (package prometheus)")
    def test_metrics_follow_the_conventions_of_prometheus(self):
        self.ask("/v1/ids/default")
        checked = subprocess.run(["promtool", "check", "metrics"], input=self.admin("/metrics").body, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual((checked.returncode, checked.stdout), (0, ""))

    # ---- history ---------------------------------------------------------------------------------

    def test_serves_a_tag_with_a_history(self):
        subprocess.run([self.firn, "tags", "create", "recorded", "strategy=snowflake",
                        "plugins=history", self.registry], check=True, capture_output=True)
        for _ in range(1000):
            if self.ask("/v1/ids/recorded").status == 200:
                return
        self.fail("the tag is not served")


if __name__ == "__main__":
    interop.main(RestTest, "curl", "firn")
