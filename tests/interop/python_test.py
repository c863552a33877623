#!/usr/bin/python3
"""Every method of the wire contract from Python, against a running firn-server.

    python_test.py FIRN_SERVER FIRN_THRIFT

FIRN_SERVER is the program, FIRN_THRIFT the contract, from which the stubs are generated. Exit 77,
with the reason, when Python's Thrift library is not installed or lacks a library of its own.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

try:
    from thrift.Thrift import TApplicationException
    from thrift.protocol import TBinaryProtocol, TCompactProtocol
    from thrift.transport import TSocket, TTransport
except ImportError as missing:
    print(missing)
    sys.exit(77)

# The service as Twitter's clients knew it: the same names and numbers, no `throws`.
TWITTER = """
namespace py twitter
service Snowflake {
  i64 get_worker_id(), i64 get_timestamp(), i64 get_id(1: string useragent), i64 get_datacenter_id()
}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A firn-server under machine id 13 (worker 3, rack 1) in a folder of its own."""

    def __init__(self, program, folder):
        self.port, self.admin_port = free_port(), free_port()
        self.log = open(os.path.join(folder, "log"), "w")
        self.process = subprocess.Popen(
            [program, f"--listen=127.0.0.1:{self.port}",
             f"--admin_listen=127.0.0.1:{self.admin_port}", "--worker=3", "--rack=1",
             f"--state_dir={folder}/state", "--drain_notice_ms=0"], stderr=self.log)
        deadline = time.time() + 60
        while not self.ready():
            if time.time() > deadline or self.process.poll() is not None:
                raise SystemExit("firn-server does not get ready:\n" + open(self.log.name).read())
            time.sleep(0.05)

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/readyz", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.log.close()
        return code


class ContractTest(unittest.TestCase):
    server = None

    def client(self, coding=TBinaryProtocol.TBinaryProtocol, service=None):
        transport = TTransport.TFramedTransport(TSocket.TSocket("127.0.0.1", self.server.port))
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
        known = client.explain(1169786042799259000, "twitter")
        self.assertEqual((known.time_ms, known.machine, known.sequence), (1567733700834, 39, 3448))
        self.assertEqual(client.formatTime(0, "twitter"), "2010-11-04T01:42:54.657Z")

    def test_tells_its_status(self):
        client = self.client()
        client.ping()
        status = client.status()
        self.assertEqual(status.state, ttypes.ServerState.READY)
        self.assertEqual(status.machine, 13)
        self.assertEqual(status.layout, "firn")
        self.assertTrue(status.cluster_uuid)
        self.assertIn("default", [tag.tag for tag in status.tags])

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

    def test_serves_twitters_old_clients(self):
        client = self.client(service=TwitterSnowflake)
        self.assertEqual(client.get_worker_id(), 3)
        self.assertEqual(client.get_datacenter_id(), 1)
        self.assertLess(abs(client.get_timestamp() - time.time() * 1000), 60_000)
        ids = [client.get_id("snowflake-client-1") for _ in range(10)]
        self.assertEqual(ids, sorted(set(ids)))
        with self.assertRaises(TApplicationException):
            client.get_id("1-starts-with-a-digit")
        self.assertGreater(client.get_id("a"), ids[-1])

    def test_tells_new_clients_which_user_agents_it_takes(self):
        client = self.client()
        for agent in "", "1", "a b", "a_b", "-", "ä":
            with self.assertRaises(ttypes.InvalidUserAgentError):
                client.get_id(agent)
        self.assertGreater(client.get_id("A-1"), 0)


def generate(contract, folder):
    twitter = os.path.join(folder, "twitter.thrift")
    with open(twitter, "w") as file:
        file.write(TWITTER)
    for source in contract, twitter:
        subprocess.run(["thrift", "--gen", "py", "-out", folder, source], check=True)


if __name__ == "__main__":
    program, contract = sys.argv.pop(1), sys.argv.pop(1)
    folder = tempfile.mkdtemp(prefix="firn-interop-")
    generate(contract, folder)
    sys.path.insert(0, folder)
    from firn.wire import IdService, ttypes
    from twitter import Snowflake as TwitterSnowflake
    ContractTest.server = Server(program, folder)
    result = unittest.main(exit=False, verbosity=2).result
    code = ContractTest.server.stop()
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if result.wasSuccessful() and code == 0 else 1)
