#!/usr/bin/python3
"""Leases of machine ids over HTTP, from real servers on one directory registry.

    lease_test.py FIRN_SERVER FIRN

A server that is killed leaves its leases behind: their machine ids are not claimed before their bounds.
"""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest
import unittest.mock
import urllib.error
import urllib.parse
import urllib.request

import interop


def random_bits():
    return os.urandom(16).hex()


def now_ms():
    return int(time.time() * 1000)


def ids_of(lease):
    """The first and the last id that a program may issue in each tick of a lease: all ids are too many to list."""
    base = int(lease["base_bits"])
    last = lease["sequence_from"] + lease["sequence_count"] - 1
    return [base | tick << lease["tick_shift"] | sequence << lease["sequence_shift"]
            for tick in (lease["from_tick"], lease["until_tick"] - 1)
            for sequence in (lease["sequence_from"], last)]


class LeaseTest(unittest.TestCase):
    program = firn = folder = None

    def setUp(self):
        self.servers = []
        self.first = self.start("first")

    def tearDown(self):
        for server in self.servers:
            if server.process.poll() is None:
                self.assertEqual(server.stop(), 0, server.log())

    def start(self, name, *flags):
        folder = os.path.join(self.folder, self.id().split(".")[-1], name)
        if self.servers:
            flags = (f"--registry={self.first.registry}", *flags)
        self.servers.append(interop.Server(self.program, folder, *flags))
        return self.servers[-1]

    @staticmethod
    def ask(server, method, path, words=None, kind="form", admin=False, **headers):
        """Status and JSON, or text if it is not JSON."""
        port = server.admin_port if admin else server.port
        body = None
        if words is not None and kind == "form":
            body = urllib.parse.urlencode(words).encode()
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        elif words is not None:
            body = json.dumps(words).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=interop.PATIENCE_S) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as answer:
            text = answer.read()
            return answer.code, json.loads(text) if text.startswith(b"{") else text

    def lease(self, server, token=None, **words):
        words = {"token": token or random_bits(), "name": "shop-1", "clock_ms": now_ms(), **words}
        deadline = time.time() + interop.PATIENCE_S
        while True:
            status, lease = self.ask(server, "POST", "/v1/leases", words, kind="json")
            if status != 503 or time.time() > deadline:
                break
            time.sleep(lease["error"]["retry_after_ms"] / 1000)
        self.assertEqual(status, 201, lease)
        return lease

    def renew(self, server, lease, turn, acknowledged=None, **words):
        words = {"turn": turn, "clock_ms": now_ms(), **words}
        if acknowledged:
            words["acknowledged"] = acknowledged
        return self.ask(server, "PUT", f"/v1/leases/{lease['lease']}", words)

    def listed(self, server):
        """Returns the list of leases, once it has any: servers update it after a short delay."""
        deadline = time.time() + interop.PATIENCE_S
        while True:
            status, answer = self.ask(server, "GET", "/v1/leases", admin=True)
            self.assertEqual(status, 200)
            if answer["leases"] or time.time() > deadline:
                return answer["leases"]
            time.sleep(0.05)

    def test_life_of_a_lease(self):
        token = random_bits()
        lease = self.lease(self.first, token)
        self.assertEqual(lease["server"], f"127.0.0.1:{self.first.port}")
        self.assertGreaterEqual(lease["worker"], 8)  # of 16: the upper half is for leases
        self.assertEqual(self.lease(self.first, token), {**lease, "renew_in_ms": unittest.mock.ANY})
        for id_ in ids_of(lease):
            _, explained = self.ask(self.first, "GET", f"/v1/explain/{id_}")
            self.assertEqual(explained["machine"], lease["machine_id"])
            self.assertLess(explained["time_ms"], now_ms() + 20_000)
        listed = self.listed(self.first)
        self.assertEqual([(one["name"], one["machine_id"]) for one in listed],
                         [("shop-1", lease["machine_id"])])
        self.assertNotIn(lease["lease"], json.dumps(listed))
        turn = random_bits()
        status, longer = self.renew(self.first, lease, turn)
        self.assertEqual(status, 200, longer)
        self.assertGreaterEqual(longer["until_tick"], lease["until_tick"])
        self.assertEqual(longer["from_tick"], lease["from_tick"])
        audit = json.loads(subprocess.run(
            [self.firn, "audit", "--json", f"--registry={self.first.registry}"],
            stdout=subprocess.PIPE, check=False).stdout)
        self.assertIn({"name": "shop-1", "server": lease["server"]},
                      [machine.get("lease") for machine in audit["machines"]])
        used = lease["from_tick"] + 10
        status, _ = self.ask(self.first, "DELETE",
                             f"/v1/leases/{lease['lease']}?turn={turn}&used_tick={used}")
        self.assertEqual(status, 204)
        self.assertEqual(self.renew(self.first, lease, random_bits(), turn)[0], 404)

    def test_a_page_of_another_site_gets_no_lease(self):
        words = {"token": random_bits(), "name": "of-a-page", "clock_ms": now_ms()}
        for name, value in ("Sec-Fetch-Site", "cross-site"), ("Origin", "https://other.example"):
            status, why = self.ask(self.first, "POST", "/v1/leases", words, **{name: value})
            self.assertEqual(status, 403, why)
        self.lease(self.first)
        self.assertEqual([one["name"] for one in self.listed(self.first)], ["shop-1"])

    def test_a_new_lease_can_be_extended_to_the_claim_window_within_seconds(self):
        lease, granted, turn, reached = self.lease(self.first), time.monotonic(), None, {}
        while 590_000 not in reached:
            turn, last = random_bits(), turn
            status, longer = self.renew(self.first, lease, turn, last, ahead_ms=600_000)
            self.assertEqual(status, 200, longer)
            ahead = longer["epoch_ms"] + longer["until_tick"] * longer["tick_ms"] - now_ms()
            for least in 55_000, 590_000:
                if ahead >= least:
                    reached.setdefault(least, time.monotonic() - granted)
            self.assertLess(time.monotonic() - granted, interop.PATIENCE_S, ahead)
            time.sleep(0.02)
        print(f"60 s ahead after {reached[55_000]:.2f} s, the claim window after {reached[590_000]:.2f} s ... ", end="")
        self.assertLess(reached[55_000], reached[590_000])

    def test_requests_with_one_token_get_one_lease(self):
        token, leases = random_bits(), []
        # The first client disconnects before its answer arrives.
        body = urllib.parse.urlencode({"token": token, "name": "shop-1", "clock_ms": now_ms()})
        with socket.create_connection(("127.0.0.1", self.first.port)) as left:
            left.sendall((f"POST /v1/leases HTTP/1.1\r\nHost: 127.0.0.1:{self.first.port}\r\n"
                          "Content-Type: application/x-www-form-urlencoded\r\n"
                          f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
        threads = [threading.Thread(target=lambda: leases.append(self.lease(self.first, token)))
                   for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(leases), 12)
        self.assertEqual(len({(lease["lease"], lease["until_tick"]) for lease in leases}), 1)
        self.assertEqual(len(self.listed(self.first)), 1)

    def test_the_commands_of_the_page_in_a_shell(self):
        with open(os.path.join(interop.HERE, "..", "..", "server", "lease", "LEASES.md")) as file:
            section = file.read().split("\n## A lease by hand\n")[1].split("\n## ")[0]
        commands = re.findall(r"(?m)^    ([A-Z]+=.*|curl .*)$", section)
        self.assertEqual(sum(command.startswith("curl") for command in commands), 4)
        shell = ["set -eu", 'curl() { command curl -s -o answer -w "%{http_code}\\n" "$@"; }',
                 """field() { python3 -c 'import json, sys; print(json.load(open("answer"))[sys.argv[1]])' $1; }"""]
        for command in commands:
            command = command.replace("127.0.0.1:7609", f"127.0.0.1:{self.first.port}")
            command = re.sub(r"^LEASE=.*", "LEASE=$(field lease)", command)
            shell.append(re.sub(r"^USED=.*", "USED=$(field from_tick)", command))
        said = subprocess.run(["bash", "-c", "\n".join(shell)], cwd=self.folder, stdout=subprocess.PIPE,
                              text=True, timeout=interop.PATIENCE_S, check=True).stdout
        self.assertEqual(said.split(), ["201", "200", "200", "204"])
        self.assertIn("was given back", self.first.log())

    def test_a_renewal_that_names_another_last_turn_revokes_the_lease(self):
        for acknowledged in None, random_bits():
            lease, turn = self.lease(self.first), random_bits()
            self.assertEqual(self.renew(self.first, lease, turn)[0], 200)
            status, answer = self.renew(self.first, lease, random_bits(), acknowledged)
            self.assertEqual(status, 410)
            self.assertIn("'acknowledged'", answer["error"]["message"])

    def test_a_copy_revokes_the_lease(self):
        lease = self.lease(self.first)
        self.assertEqual(self.renew(self.first, lease, random_bits())[0], 200)
        status, answer = self.renew(self.first, lease, random_bits())
        self.assertEqual((status, answer["error"]["reason"]), (410, "REVOKED"))
        self.assertIn("two processes renew the same lease", self.first.log())

    def test_another_server_names_the_owner(self):
        other = self.start("other")
        lease = self.lease(self.first)
        status, answer = self.renew(other, lease, random_bits())
        self.assertEqual(status, 421)
        self.assertEqual(answer["error"]["server"], lease["server"])

    def test_leases_and_servers_share_no_machine_id(self):
        other = self.start("other")
        leases = [self.lease(server) for server in (self.first, other) * 3]
        machines = [lease["machine_id"] for lease in leases]
        for server in (self.first, other):
            _, status = self.ask(server, "GET", "/v1/status", admin=True)
            machines.append(status["machine"])
        self.assertEqual(len(set(machines)), len(machines), machines)

    def test_a_killed_server_leaves_its_leases(self):
        other = self.start("other")
        lease = self.lease(other)
        other.process.kill()
        other.process.wait()
        leases = os.path.join(os.path.dirname(other.log_path), "state")
        self.assertTrue(any(name.endswith(".leases") for name in os.listdir(leases)))
        machines = {self.lease(self.first)["machine_id"] for _ in range(6)}
        self.assertNotIn(lease["machine_id"], machines)

    def restart(self, server, which):
        server.process.send_signal(which)
        server.process.wait(interop.PATIENCE_S)
        with open(server.log_path, "a") as log:
            server.process = interop.programs.start(server.process.args, stderr=log)
        deadline = time.time() + interop.PATIENCE_S
        while server.state() != "READY":
            self.assertLess(time.time(), deadline, server.log())
            time.sleep(0.05)

    def renewed(self, server, lease, turn, acknowledged):
        deadline = time.time() + interop.PATIENCE_S
        while True:
            status, answer = self.renew(server, lease, turn, acknowledged)
            if status != 503 or time.time() > deadline:
                break
            time.sleep(0.1)
        self.assertEqual(status, 200, answer)
        return answer

    def leased_machines(self):
        audit = json.loads(subprocess.run(
            [self.firn, "audit", "--json", f"--registry={self.first.registry}"],
            stdout=subprocess.PIPE, check=False).stdout)
        return sorted(machine["machine"] for machine in audit["machines"] if machine.get("lease"))

    def test_a_rolling_restart_uses_up_no_machine_id(self):
        servers = [self.start("second"), self.start("third")]
        leases = [[server, self.lease(server), None] for server in servers * 3]
        for number in range(4):
            for one in leases:
                server, lease, turn = one
                one[2] = random_bits()
                longer = self.renewed(server, lease, one[2], turn)
                self.assertEqual(longer["machine_id"], lease["machine_id"])
                self.assertGreaterEqual(longer["until_tick"], lease["until_tick"])
            if number < 3:
                self.restart(servers[number % 2], (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL)[number])
        self.assertEqual(self.leased_machines(), sorted(lease["machine_id"] for _, lease, _ in leases))

    def test_a_short_claim_window_shortens_the_interval_of_programs_that_ask_for_more(self):
        short = self.start("short", "--claim_window_ms=5000")
        for asked in {}, {"ahead_ms": 60_000}, {"ahead_ms": 86_400_000}:
            with self.subTest(asked):
                lease = self.lease(short, **asked)
                status, longer = self.renew(short, lease, random_bits(), **asked)
                self.assertEqual(status, 200, longer)
                ends_ms = longer["epoch_ms"] + longer["until_tick"] * longer["tick_ms"]
                self.assertLessEqual(ends_ms, now_ms() + 5_000)
                self.assertGreater(longer["until_tick"], longer["from_tick"])
                self.assertLess(longer["renew_in_ms"], 2_000)

    def test_refusals_name_the_fault(self):
        rows = [({"token": "x"}, "token must have"), ({"name": "a b"}, "name must have"),
                ({"clock_ms": 1}, "clock"), ({"ahead_ms": 1}, "ahead_ms is 1; it must be"),
                ({"rack": 99}, "rack is 99"), ({"unknown": 1}, "unknown")]
        for changes, words in rows:
            with self.subTest(words):
                asked = {"token": random_bits(), "name": "a", "clock_ms": now_ms(), **changes}
                status, answer = self.ask(self.first, "POST", "/v1/leases", asked, kind="json")
                self.assertEqual(status, 400, answer)
                self.assertIn(words, answer["error"]["message"])
        none = self.start("none", "--leases_max=0")
        status, answer = self.ask(none, "POST", "/v1/leases",
                                  {"token": random_bits(), "name": "a", "clock_ms": now_ms()})
        self.assertEqual((status, answer["error"]["reason"]), (503, "NO_LEASES"))

    def test_refuses_a_client_without_the_right(self):
        rights, users = (os.path.join(self.folder, name) for name in ("rights", "users"))
        for path, line in (rights, "redis:alice @lease"), (users, "alice:secret"):
            with open(path, "w") as file:
                file.write(line + "\n")
            os.chmod(path, 0o600)
        server = self.start("rights", f"--rights_file={rights}", f"--redis_auth_file={users}")
        status, answer = self.ask(server, "POST", "/v1/leases",
                                  {"token": random_bits(), "name": "a", "clock_ms": now_ms()})
        self.assertEqual((status, answer["error"]["reason"]), (403, "REJECTED"))
        self.assertIn("@lease", answer["error"]["message"])

    def test_static_servers_lease_nothing(self):
        folder = os.path.join(self.folder, "static")
        server = interop.Server(self.program, folder, f"--registry=static:{os.getpid() % 1024}",
                                "--static_first_start")
        self.servers.append(server)
        status, answer = self.ask(server, "POST", "/v1/leases",
                                  {"token": random_bits(), "name": "a", "clock_ms": now_ms()})
        self.assertEqual((status, answer["error"]["reason"]), (503, "NO_LEASES"))


if __name__ == "__main__":
    interop.main(LeaseTest, "true", "firn")
