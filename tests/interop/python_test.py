#!/usr/bin/python3
"""Every method of the wire contract from Python, against a running firn-server.

    python_test.py FIRN_SERVER FIRN FIRN_THRIFT

FIRN_SERVER and FIRN are the programs, FIRN_THRIFT the contract, from which the stubs are generated. Exit 77
when Python's Thrift library is not installed.
"""

import sys
import time
import unittest

import interop

try:
    from thrift.Thrift import TApplicationException
    from thrift.protocol import TBinaryProtocol, TCompactProtocol
    from thrift.transport import TSocket, TTransport
except ImportError:
    interop.skip("Python's Thrift library (python3-thrift) is not installed")


class ContractTest(unittest.TestCase):
    servers = None

    def client(self, coding=TBinaryProtocol.TBinaryProtocol, service=None, server=None):
        port = (server or self.servers.ready).port
        transport = TTransport.TFramedTransport(TSocket.TSocket("127.0.0.1", port))
        transport.open()
        self.addCleanup(transport.close)
        return (service or IdService).Client(coding(transport))

    def refused(self, reason, call, *arguments):
        with self.assertRaises(ttypes.Refusal) as caught:
            call(*arguments)
        refusal = caught.exception
        self.assertEqual(refusal.reason, reason, refusal.message)
        self.assertTrue(refusal.message)
        self.assertIsInstance(refusal.retry_after_ms, int)
        self.assertIsInstance(refusal.another_server_may_help, bool)

    def test_gives_ids_in_both_codings(self):
        for coding in TBinaryProtocol.TBinaryProtocol, TCompactProtocol.TCompactProtocol:
            client = self.client(coding)
            ids = [client.getId("default") for _ in range(100)]
            self.assertEqual(ids, sorted(set(ids)))
            self.assertGreater(client.getId(""), ids[-1])

    def test_gives_lists_runs_and_texts(self):
        client = self.client()
        ids = client.getIds("default", 1000)
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual(len(ids), 1000)
        runs = client.getRuns("default", 5000)
        self.assertEqual(sum(run.count for run in runs), 5000)
        self.assertGreater(runs[0].first, ids[-1])
        self.assertGreater(int(client.getText("default")), runs[-1].first)

    def test_explains_and_composes(self):
        client = self.client()
        id = client.getId("default")
        fields = client.explain(id, "")
        self.assertEqual((fields.machine, fields.worker, fields.rack), (13, 3, 1))
        self.assertEqual(fields.layout, "firn")
        again = client.compose(ttypes.ComposeRequest(
            ticks=fields.ticks, worker=fields.worker, rack=fields.rack, sequence=fields.sequence))
        self.assertEqual(again, id)
        by_time = client.compose(ttypes.ComposeRequest(
            time_ms=fields.time_ms, machine=13, sequence=fields.sequence))
        self.assertEqual(by_time, id)
        known = client.explain(1169786042799259000, "twitter")
        self.assertEqual((known.time_ms, known.machine, known.sequence), (1567733700834, 39, 3448))
        self.assertEqual(client.formatTime(0, "twitter"), "2010-11-04T01:42:54.657Z")
        self.assertEqual(client.formatTime(fields.ticks, ""), fields.time_text)

    def test_returns_its_status(self):
        client = self.client()
        client.ping()
        status = client.status()
        self.assertEqual(status.state, ttypes.ServerState.READY)
        self.assertEqual(status.machine, 13)
        self.assertEqual(status.rack_bits, 2)
        self.assertEqual(status.layout, "firn")
        self.assertTrue(status.cluster_uuid)
        self.assertEqual(status.address, f"127.0.0.1:{self.servers.ready.port}")
        self.assertGreater(status.bound_ms, status.wall_ms)
        self.assertGreater(status.layout_ends_ms, status.wall_ms)
        self.assertGreaterEqual(status.wall_ms, status.started_ms)
        self.assertIn("default", [tag.tag for tag in status.tags])
        self.assertTrue(status.version and status.build and status.application)

    def test_refuses_with_the_declared_exception(self):
        client = self.client()
        reason = ttypes.Reason
        for method, arguments in [(client.getId, ()), (client.getIds, (1,)),
                                  (client.getRuns, (1,)), (client.getText, ())]:
            self.refused(reason.UNKNOWN_TAG, method, "nothing", *arguments)
        self.refused(reason.BAD_REQUEST, client.getIds, "default", 0)
        self.refused(reason.BAD_REQUEST, client.getIds, "default", 100001)
        self.refused(reason.BAD_REQUEST, client.getRuns, "default", -1)
        self.refused(reason.BAD_REQUEST, client.explain, -1, "")
        self.refused(reason.BAD_REQUEST, client.explain, 1, "nothing")
        self.refused(reason.BAD_REQUEST, client.compose, ttypes.ComposeRequest())
        self.refused(reason.BAD_REQUEST, client.compose,
                     ttypes.ComposeRequest(ticks=1, sequence=4096))
        self.refused(reason.BAD_REQUEST, client.formatTime, -1, "")
        self.assertGreater(client.getId("default"), 0)

    def test_says_that_it_holds_no_machine_id(self):
        client = self.client(server=self.servers.waiting)
        reason = ttypes.Reason
        for method, arguments in [(client.getId, ("default",)), (client.getIds, ("default", 5)),
                                  (client.getRuns, ("default", 5)), (client.getText, ("default",)),
                                  (client.get_id, ("python",)), (client.get_worker_id, ()),
                                  (client.get_datacenter_id, ())]:
            self.refused(reason.NOT_READY, method, *arguments)
        client.ping()
        status = client.status()
        self.assertEqual(status.state, ttypes.ServerState.NOT_READY)
        self.assertIsNone(status.machine)
        self.assertGreater(client.get_timestamp(), 0)
        self.assertEqual(client.formatTime(0, "twitter"), "2010-11-04T01:42:54.657Z")

    def test_refusals_have_their_reasons(self):
        for name, (server, tag) in self.servers.troubles.items():
            client = self.client(server=server)
            for method, arguments in [(client.getId, ()), (client.getIds, (1,)),
                                      (client.getRuns, (1,)), (client.getText, ())]:
                with self.subTest(reason=name, method=method.__name__):
                    self.in_the_end_refused(getattr(ttypes.Reason, name), method, tag, *arguments)

    def in_the_end_refused(self, reason, call, *arguments):
        with self.assertRaises(ttypes.Refusal) as caught:
            for _ in range(1000):
                call(*arguments)
        self.assertEqual(caught.exception.reason, reason, caught.exception.message)

    def test_serves_twitters_old_clients(self):
        client = self.client(service=TwitterSnowflake)
        self.assertLess(abs(client.get_timestamp() - time.time() * 1000), 60_000)
        ids = [client.get_id("snowflake-client-1") for _ in range(10)]
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual(client.get_worker_id(), ids[0] >> 12 & 31)
        self.assertEqual(client.get_datacenter_id(), ids[0] >> 17 & 31)
        with self.assertRaises(TApplicationException):
            client.get_id("1-starts-with-a-digit")
        self.assertGreater(client.get_id("a"), ids[-1])

    def test_refuses_invalid_user_agents(self):
        client = self.client()
        for agent in "", "1", "a b", "a_b", "-", "ä":
            with self.assertRaises(ttypes.InvalidUserAgentError):
                client.get_id(agent)
        self.assertGreater(client.get_id("A-1"), 0)


if __name__ == "__main__":
    program, firn, contract = (sys.argv.pop(1) for _ in range(3))
    with interop.Servers(program, firn) as servers:
        IdService, ttypes = interop.python_stubs(contract, servers.folder)
        from twitter import Snowflake as TwitterSnowflake
        ContractTest.servers = servers
        passed = unittest.main(exit=False, verbosity=2).result.wasSuccessful()
    sys.exit(0 if passed else 1)
