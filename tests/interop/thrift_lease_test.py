#!/usr/bin/python3
"""Leases of machine ids over Thrift, by a generated stub, from real servers on one directory registry.

    thrift_lease_test.py FIRN_SERVER FIRN_THRIFT

HTTP and Thrift give access to the same leases. Exit 77 when Python's Thrift library is not installed.
"""

import fcntl
import os
import socket
import struct
import time
import unittest

import interop
import lease_test
from lease_test import now_ms, random_bits

try:
    from thrift.protocol import TBinaryProtocol, TCompactProtocol
    from thrift.transport import TSocket, TTransport
except ImportError:
    interop.skip("Python's Thrift library (python3-thrift) is not installed")

CODINGS = TBinaryProtocol.TBinaryProtocol, TCompactProtocol.TCompactProtocol


class LockedRegistry:
    """Holds the lock of a directory registry, so that no claim ends. A context."""

    def __init__(self, registry):
        self.path = os.path.join(registry.removeprefix("dir://"), ".firn", "lock")

    def __enter__(self):
        self.file = open(self.path, "rb")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


class ThriftLeaseTest(unittest.TestCase):
    program = contract = folder = None

    @classmethod
    def setUpClass(cls):
        global IdService, ttypes
        IdService, ttypes = interop.python_stubs(cls.contract, cls.folder)

    def setUp(self):
        self.servers = []
        self.first = self.start("first")

    def tearDown(self):
        for server in self.servers:
            self.assertEqual(server.stop(), 0, server.log())

    def start(self, name, *flags):
        folder = os.path.join(self.folder, self.id().split(".")[-1], name)
        if self.servers:
            flags = (f"--registry={self.first.registry}", *flags)
        self.servers.append(interop.Server(self.program, folder, *flags))
        return self.servers[-1]

    def client(self, server=None, coding=CODINGS[0]):
        connection = TSocket.TSocket("127.0.0.1", (server or self.first).port)
        connection.setTimeout(interop.PATIENCE_S * 1000)
        transport = TTransport.TFramedTransport(connection)
        transport.open()
        self.addCleanup(transport.close)
        return IdService.Client(coding(transport))

    @staticmethod
    def asked(token=None, **fields):
        token = random_bits() if token is None else token
        return ttypes.LeaseAsk(**{"token": token, "name": "shop-1", "clock_ms": now_ms(), **fields})

    def patiently(self, call, *arguments):
        """Returns the answer. After NOT_READY it repeats the call at the time that the refusal names."""
        deadline = time.time() + interop.PATIENCE_S
        while True:
            try:
                return call(*arguments)
            except ttypes.Refusal as refusal:
                if refusal.reason != ttypes.Reason.NOT_READY or time.time() > deadline:
                    raise
                time.sleep(refusal.retry_after_ms / 1000)

    def lease(self, client, token=None):
        return self.patiently(client.lease, self.asked(token))

    @staticmethod
    def renew(client, lease, turn, acknowledged=""):
        return client.renewLease(ttypes.LeaseRenewal(lease=lease, turn=turn, acknowledged=acknowledged,
                                                     clock_ms=now_ms()))

    def refused(self, fault, call, *arguments):
        with self.assertRaises(ttypes.LeaseRefusal) as caught:
            self.patiently(call, *arguments)
        self.assertEqual(caught.exception.fault, fault, caught.exception)
        self.assertTrue(caught.exception.message)
        return caught.exception

    def test_life_of_a_lease_in_both_codings(self):
        for coding in CODINGS:
            with self.subTest(coding.__name__):
                client = self.client(coding=coding)
                token, turn = random_bits(), random_bits()
                lease = self.lease(client, token)
                self.assertEqual(lease.server, f"127.0.0.1:{self.first.port}")
                last = lease.sequence_from + lease.sequence_count - 1
                for tick in lease.from_tick, lease.until_tick - 1:
                    fields = client.explain(
                        lease.base_bits | tick << lease.tick_shift | last << lease.sequence_shift, "")
                    self.assertEqual((fields.ticks, fields.machine, fields.worker, fields.rack, fields.sequence),
                                     (tick, lease.machine, lease.worker, lease.rack, last))
                    self.assertEqual(fields.time_ms, lease.epoch_ms + tick * lease.tick_ms)
                self.assertEqual(self.lease(client, token).lease, lease.lease)
                longer = self.renew(client, lease.lease, turn)
                self.assertGreaterEqual(longer.until_tick, lease.until_tick)
                self.assertEqual((longer.lease, longer.from_tick), (lease.lease, lease.from_tick))
                self.refused(ttypes.LeaseFault.OUTDATED, client.lease, self.asked(token))
                client.releaseLease(ttypes.LeaseEnd(lease=lease.lease, turn=turn, used_tick=lease.from_tick))
                self.refused(ttypes.LeaseFault.UNKNOWN_LEASE, self.renew, client, lease.lease, random_bits(), turn)

    def test_http_and_thrift_use_the_same_lease(self):
        client, token, turn = self.client(), random_bits(), random_bits()
        lease = self.lease(client, token)
        words = {"token": token, "name": "shop-1", "clock_ms": now_ms()}
        status, by_http = lease_test.LeaseTest.ask(self.first, "POST", "/v1/leases", words)
        self.assertEqual(status, 201, by_http)
        by_thrift = {**vars(lease), "base_bits": str(lease.base_bits), "machine_id": lease.machine}
        del by_thrift["machine"]
        self.assertEqual({**by_http, "renew_in_ms": 0}, {**by_thrift, "renew_in_ms": 0})
        renewed = self.renew(client, lease.lease, turn)
        path = f"/v1/leases/{lease.lease}"
        status, by_http = lease_test.LeaseTest.ask(self.first, "PUT", path, {"turn": turn, "clock_ms": now_ms()})
        self.assertEqual((status, by_http["until_tick"]), (200, renewed.until_tick))
        status, _ = lease_test.LeaseTest.ask(self.first, "DELETE", f"{path}?turn={turn}&used_tick={lease.from_tick}")
        self.assertEqual(status, 204)
        self.refused(ttypes.LeaseFault.UNKNOWN_LEASE, client.releaseLease,
                     ttypes.LeaseEnd(lease=lease.lease, turn=turn))

    def test_copies_over_both_protocols_revoke_the_lease(self):
        client = self.client()
        lease = self.lease(client)
        first = random_bits()
        self.renew(client, lease.lease, first)
        path = f"/v1/leases/{lease.lease}"
        words = {"turn": random_bits(), "clock_ms": now_ms()}
        status, answer = lease_test.LeaseTest.ask(self.first, "PUT", path, words)
        self.assertEqual((status, answer["error"]["reason"]), (410, "REVOKED"))
        self.refused(ttypes.LeaseFault.REVOKED, self.renew, client, lease.lease, random_bits(), first)
        self.refused(ttypes.LeaseFault.REVOKED, client.releaseLease,
                     ttypes.LeaseEnd(lease=lease.lease, turn=first))
        self.assertIn("two processes renew the same lease", self.first.log())

    def test_another_server_names_the_owner(self):
        other = self.client(self.start("other"))
        lease = self.lease(self.client())
        for call, argument in ((self.renew, (other, lease.lease, random_bits())),
                               (other.releaseLease, (ttypes.LeaseEnd(lease=lease.lease, turn=""),))):
            refusal = self.refused(ttypes.LeaseFault.ANOTHER_SERVERS, call, *argument)
            self.assertEqual(refusal.server, lease.server)
        self.renew(self.client(), lease.lease, random_bits())

    def test_peers_that_leave_while_their_calls_are_parked(self):
        """A slow peer gets its answer, a peer that has left uses no lease, and others are served meanwhile."""
        gone, slow = random_bits(), random_bits()
        other = self.client()
        with LockedRegistry(self.first.registry):
            with self.raw(gone):
                pass
            waiting = self.raw(slow)
            self.addCleanup(waiting.close)
            waiting.settimeout(0.5)
            self.assertRaises(TimeoutError, waiting.recv, 1)
            for _ in range(100):
                self.assertGreater(other.getId(""), 0)
        waiting.settimeout(interop.PATIENCE_S)
        (size,) = struct.unpack(">i", waiting.recv(4, socket.MSG_WAITALL))
        answer = IdService.Client(TBinaryProtocol.TBinaryProtocol(
            TTransport.TMemoryBuffer(waiting.recv(size, socket.MSG_WAITALL))))
        lease = answer.recv_lease()
        self.assertEqual(self.lease(other, slow).lease, lease.lease)
        self.assertNotEqual(self.lease(other, gone).machine, lease.machine)

    def raw(self, token):
        """A connection on which a lease was requested."""
        buffer = TTransport.TMemoryBuffer()
        IdService.Client(TBinaryProtocol.TBinaryProtocol(buffer)).send_lease(self.asked(token))
        frame = buffer.getvalue()
        connection = socket.create_connection(("127.0.0.1", self.first.port))
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        return connection

    def test_a_call_without_an_answer_is_repeated_with_its_token(self):
        client, token = self.client(), random_bits()
        with LockedRegistry(self.first.registry):
            with self.assertRaises(ttypes.Refusal) as caught:
                client.lease(self.asked(token))
        self.assertEqual(caught.exception.reason, ttypes.Reason.NOT_READY, caught.exception)
        self.assertFalse(caught.exception.another_server_may_help)  # this one is claiming
        self.assertGreater(caught.exception.retry_after_ms, 0)
        self.assertEqual(self.lease(client, token).lease, self.lease(client, token).lease)

    def test_a_short_claim_window_shortens_the_interval_of_programs_that_ask_for_more(self):
        client = self.client(self.start("short", "--claim_window_ms=5000"))
        for ahead_ms in None, 60_000:
            with self.subTest(ahead_ms=ahead_ms):
                lease = self.patiently(client.lease, self.asked(ahead_ms=ahead_ms))
                longer = client.renewLease(ttypes.LeaseRenewal(lease.lease, random_bits(), "", now_ms(), ahead_ms))
                self.assertLessEqual(longer.epoch_ms + longer.until_tick * longer.tick_ms, now_ms() + 5_000)
                self.assertLess(longer.renew_in_ms, 2_000)

    def test_refusals_name_the_fault(self):
        rows = [({"token": "x"}, "token must have"), ({"name": "a b"}, "name must have"),
                ({"clock_ms": 1}, "clock"), ({"ahead_ms": 1}, "ahead_ms is 1; it must be"),
                ({"rack": 99}, "rack is 99"), ({"rack": -1}, "no such rack"), ({"token": ""}, "token is missing")]
        client = self.client()
        for changes, words in rows:
            with self.subTest(words), self.assertRaises(ttypes.Refusal) as caught:
                self.patiently(client.lease, self.asked(**changes))
            self.assertEqual(caught.exception.reason, ttypes.Reason.BAD_REQUEST)
            self.assertFalse(caught.exception.another_server_may_help)
            self.assertIn(words, caught.exception.message)
        none = self.client(self.start("none", "--leases_max=0"))
        self.refused(ttypes.LeaseFault.NO_LEASES, none.lease, self.asked())
        self.assertGreater(client.getId(""), 0)


if __name__ == "__main__":
    interop.main(ThriftLeaseTest, "thrift", "contract")
