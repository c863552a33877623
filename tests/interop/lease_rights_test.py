#!/usr/bin/python3
"""Rights to lease machine ids, and their limits: real client certificates, over HTTP and Thrift, at a real server.

    lease_rights_test.py FIRN_SERVER FIRN_THRIFT

Exit 77 when Python's Thrift library or the command openssl is not installed.
"""

import http.client
import json
import os
import re
import socket
import ssl
import time
import unittest
import urllib.parse
import urllib.request

import interop
from lease_test import now_ms, random_bits
from tls_test import Authority

try:
    from thrift.protocol import TBinaryProtocol
    from thrift.transport import TSocket, TTransport
except ImportError:
    interop.skip("Python's Thrift library (python3-thrift) is not installed")

RIGHTS = """\
shop.example    order,@lease:2
etl.example     *
pool.example    *,@lease:1
reader.example  order
"""
CLIENTS = "shop.example", "etl.example", "pool.example", "reader.example", "unlisted.example"


class LeaseRightsTest(unittest.TestCase):
    program = contract = folder = None

    @classmethod
    def setUpClass(cls):
        global IdService, ttypes
        IdService, ttypes = interop.python_stubs(cls.contract, cls.folder)
        cls.authority = Authority(cls.folder, "ours")
        cls.certificate = cls.authority.sign("server")
        cls.contexts = {}
        for client in CLIENTS:
            context = cls.contexts[client] = cls.trusting()
            context.load_cert_chain(*cls.authority.sign(client))

    @classmethod
    def trusting(cls):
        context = ssl.create_default_context(cafile=cls.authority.path("ca.crt"))
        context.check_hostname = False
        return context

    def setUp(self):
        folder = os.path.join(self.folder, self.id().split(".")[-1])
        self.rights = folder + "-rights"
        self.write_rights(RIGHTS)
        self.server = interop.Server(self.program, folder, f"--tls_cert={self.certificate[0]}",
                                     f"--tls_key={self.certificate[1]}", f"--rights_file={self.rights}",
                                     "--tls_client_ca=" + self.authority.path("ca.crt"))

    def tearDown(self):
        self.assertEqual(self.server.stop(), 0, self.server.log())

    def write_rights(self, text):
        with open(self.rights + ".new", "w") as file:
            file.write(text)
        os.rename(self.rights + ".new", self.rights)

    # ---- one call over each protocol: (reason, message) of its refusal, or ("", lease) ------------

    def by_http(self, client, verb, path, **words):
        connection = http.client.HTTPSConnection("127.0.0.1", self.server.port, context=self.contexts[client],
                                                 timeout=interop.PATIENCE_S)
        try:
            connection.request(verb, path + "?" + urllib.parse.urlencode(words))
            answer = connection.getresponse()
            said = json.loads(answer.read() or "{}")
        finally:
            connection.close()
        if "error" not in said:
            return "", said.get("lease")
        self.assertEqual(answer.status, {"REJECTED": 403, "NOT_READY": 503}[said["error"]["reason"]])
        return said["error"]["reason"], said["error"]["message"]

    def by_thrift(self, client, method, argument):
        plain = socket.create_connection(("127.0.0.1", self.server.port), interop.PATIENCE_S)
        with self.contexts[client].wrap_socket(plain) as handle:
            connection = TSocket.TSocket()
            connection.setHandle(handle)
            stub = IdService.Client(TBinaryProtocol.TBinaryProtocol(TTransport.TFramedTransport(connection)))
            try:
                answer = getattr(stub, method)(argument)
                return "", answer and answer.lease
            except ttypes.Refusal as refusal:
                return ttypes.Reason._VALUES_TO_NAMES[refusal.reason], refusal.message

    def ask(self, protocol, client, token=None):
        words = {"token": token or random_bits(), "name": "program", "clock_ms": now_ms()}
        if protocol == "http":
            return self.by_http(client, "POST", "/v1/leases", **words)
        return self.by_thrift(client, "lease", ttypes.LeaseAsk(**words))

    def renew(self, protocol, client, lease, turn, acknowledged=""):
        words = {"turn": turn, "clock_ms": now_ms()}
        if protocol == "http":
            acknowledged = {"acknowledged": acknowledged} if acknowledged else {}
            return self.by_http(client, "PUT", f"/v1/leases/{lease}", **words, **acknowledged)
        return self.by_thrift(client, "renewLease", ttypes.LeaseRenewal(lease=lease, acknowledged=acknowledged, **words))

    def granted(self, protocol, client, token=None):
        """Returns the lease. Retries, because a server that has just started repeats its claim."""
        return self.at_last("", lambda: self.ask(protocol, client, token))

    def at_last(self, part, ask):
        """Repeats the request until its message contains `part`; "": until it returns a lease. Returns the answer."""
        deadline = time.time() + interop.PATIENCE_S
        while True:
            reason, said = ask()
            if part in said if part else not reason:
                return said
            self.assertLess(time.time(), deadline, said)
            self.assertIn(reason, ("", "NOT_READY"), said)
            time.sleep(0.2)

    def await_true(self, what, true):
        """Waits for a list or a count, which servers update after a short delay."""
        deadline = time.time() + interop.PATIENCE_S
        while not true():
            self.assertLess(time.time(), deadline, what)
            time.sleep(0.05)

    def listed(self):
        return json.loads(self.admin("/v1/leases"))["leases"]

    def admin(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.admin_port}{path}", timeout=30) as answer:
            return answer.read().decode()

    def refused(self, reason):
        """Returns the server's number of requests refused for that reason."""
        return float(re.search(rf'firn_leases_refused_total{{reason="{reason}"}} (\S+)', self.admin("/metrics"))[1])

    # ---- tests -----------------------------------------------------------------------------------

    def test_grants_leases_by_the_names_of_certificates(self):
        for protocol in "http", "thrift":
            for client in "reader.example", "unlisted.example":
                with self.subTest(protocol, client=client):
                    self.assertEqual(self.ask(protocol, client),
                                     ("REJECTED", "no name of this client has the right @lease"))
            for client in "shop.example", "etl.example":
                self.assertTrue(self.granted(protocol, client))
        self.await_true("a list of all leases", lambda: sorted(one["client"] for one in self.listed()) == [
            "etl.example", "etl.example", "shop.example", "shop.example"])

    def test_refuses_a_client_without_a_certificate(self):
        self.contexts["none"] = self.trusting()
        for protocol in "http", "thrift":
            with self.subTest(protocol), self.assertRaises((OSError, EOFError, TTransport.TTransportException,
                                                            http.client.HTTPException)):
                self.ask(protocol, "none")
        self.assertEqual(self.listed(), [])

    def test_refuses_more_leases_than_the_right_says(self):
        token = random_bits()
        first, second = self.granted("http", "shop.example", token), self.granted("thrift", "shop.example")
        before = self.refused("limit")
        for protocol in "http", "thrift":
            with self.subTest(protocol):
                reason, message = self.ask(protocol, "shop.example")
                self.assertEqual(reason, "NOT_READY", message)
                for part in "shop.example has 2 leases", "@lease:2", "another server", "--rights_file":
                    self.assertIn(part, message)
        self.await_true("two counted refusals", lambda: self.refused("limit") == before + 2)
        # Others are not affected, nor are the leases.
        self.assertTrue(self.granted("http", "etl.example"))
        self.assertEqual(self.ask("thrift", "shop.example", token), ("", first))
        turn = random_bits()
        self.assertEqual(self.renew("http", "shop.example", first, turn), ("", first))
        self.assertEqual(self.renew("thrift", "shop.example", second, random_bits()), ("", second))
        # A lease that was returned unused no longer counts.
        self.by_http("shop.example", "DELETE", f"/v1/leases/{first}", turn=turn, used_tick=-1)
        self.assertNotIn(self.granted("thrift", "shop.example"), (first, second))

    def test_a_client_with_all_rights_keeps_its_limit_of_leases(self):
        self.granted("thrift", "pool.example")
        for protocol in "http", "thrift":
            self.assertIn("@lease:1", self.ask(protocol, "pool.example")[1])

    def test_a_lower_limit_ends_no_lease(self):
        leases = [self.granted(protocol, "shop.example") for protocol in ("http", "thrift")]
        self.write_rights(RIGHTS.replace("@lease:2", "@lease:0"))
        self.at_last("@lease:0", lambda: self.ask("http", "shop.example"))
        for protocol, lease in zip(("http", "thrift"), leases):
            turn = random_bits()
            self.assertEqual(self.renew(protocol, "shop.example", lease, turn), ("", lease))
            self.assertEqual(self.renew(protocol, "shop.example", lease, random_bits(), turn), ("", lease))
            self.assertIn("shop.example has 2 leases", self.ask(protocol, "shop.example")[1])
        self.write_rights(RIGHTS.replace("@lease:2", "@lease"))
        self.assertNotIn(self.granted("http", "shop.example"), leases)


if __name__ == "__main__":
    interop.main(LeaseRightsTest, "openssl", "contract")
