#!/usr/bin/python3
"""Failover of redis-py behind HAProxy, with the configuration and the snippet of INCR.md, on servers with a
drain of 2 s: a pause of ZooKeeper, kill -9 and a clean stop under load.

    redis_haproxy_test.py FIRN_SERVER FIRN FOLDER PAGE

Counts failed calls and ids that were issued twice. Exit 77 without redis-py, when it cannot be fetched.
"""

import os
import re
import signal
import subprocess
import sys
import unittest
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "conformance")]
import cluster
import interop
import programs
import redis_clients_test
import redis_ring_test

CALLERS = 8
IDS_AFTER_FAULT = 2_000
NAMES = "firn1", "firn2"


class Member(cluster.Member):
    def start(self):
        super().start("--drain_notice_ms=2000")


def configuration(page, port, members):
    """The page's configuration, with the test's addresses."""
    with open(page) as file:
        text = re.search(r"```haproxy\n(.*?)```", file.read(), re.DOTALL).group(1)
    for old, new in (("bind 127.0.0.1:6379", f"bind 127.0.0.1:{port}"),
                     *((f"server {name} {name}:7609", f"server {name} {member.address}")
                       for name, member in zip(NAMES, members))):
        if text.count(old) != 1:
            raise SystemExit(f"{page}: its configuration has no '{old}'")
        text = text.replace(old, new)
    return text


class RedisHaproxyTest(unittest.TestCase):
    program = firn = folder = page = None
    command, environment = [], {}

    @classmethod
    def setUpClass(cls):
        cls.zookeeper = cluster.ZooKeeper(os.path.join(cls.folder, "zookeeper"))
        cls.registry = f"zk://127.0.0.1:{cls.zookeeper.port}/firn/haproxy"
        cls.commanded("init", "--brand_new", "--force")
        cls.tags = [f"order{caller}" for caller in range(CALLERS)]
        cls.members = [Member(cls.program, os.path.join(cls.folder, name), cls.registry) for name in NAMES]
        for member in cls.members:
            member.await_ready()
        for tag in cls.tags:
            # With this step_max, a range lasts for less than a second.
            cls.commanded("tags", "create", tag, "step_max=1000")
        cls.port = programs.free_port()
        config = os.path.join(cls.folder, "haproxy.cfg")
        with open(config, "w") as file:
            file.write(configuration(cls.page, cls.port, cls.members))
        subprocess.run(["haproxy", "-c", "-q", "-f", config], check=True)
        cls.proxy = programs.start(["haproxy", "-db", "-q", "-f", config])
        cluster.patiently("no id through HAProxy", cls.all_tags_issue)

    @classmethod
    def tearDownClass(cls):
        for process in [cls.proxy, *(member.process for member in cls.members), cls.zookeeper.process]:
            programs.end(process)

    @classmethod
    def commanded(cls, *words):
        cluster.again(lambda: subprocess.run([cls.firn, *words, "--registry=" + cls.registry],
                                             stdout=subprocess.DEVNULL), makes=True).check_returncode()

    @classmethod
    def all_tags_issue(cls):
        return all(re.fullmatch(r"\d+", subprocess.run(["redis-cli", "-p", str(cls.port), "INCR", tag],
                                                       capture_output=True, text=True).stdout.strip())
                   for tag in cls.tags)

    @staticmethod
    def connections(member):
        """Open Redis connections of the server, with those of checks."""
        with urllib.request.urlopen(f"http://127.0.0.1:{member.admin}/v1/status", timeout=30) as answer:
            protocols = interop.json.load(answer)["protocols"]
        return next(one["connections"] for one in protocols if one["protocol"] == "redis")

    def test_fails_over_without_a_failed_call(self):
        load = redis_ring_test.Load([*self.command, self.page, str(self.port), *self.tags], self.environment)
        load.takes(IDS_AFTER_FAULT)
        before = self.try_again()
        self.zookeeper.process.send_signal(signal.SIGSTOP)
        cluster.patiently("no call is refused", lambda: self.try_again() > before)
        self.zookeeper.process.send_signal(signal.SIGCONT)
        load.takes(IDS_AFTER_FAULT)
        redis_ring_test.report("pause of ZooKeeper", load)

        killed, stopped = self.members
        for member in self.members:
            self.assertGreater(self.connections(member), 1, "callers of both servers")

        programs.end(killed.process)
        load.takes(IDS_AFTER_FAULT)
        redis_ring_test.report("kill -9", load)
        killed.start()
        killed.await_ready()

        # HAProxy uses the server again after two successful checks.
        cluster.patiently("HAProxy does not use the server again", lambda: self.is_used(killed))
        stopped.drain()
        load.takes(IDS_AFTER_FAULT)
        redis_ring_test.report("clean stop", load)
        self.assertEqual(stopped.process.returncode, 0)

        load.end()
        self.assertEqual(len(load.ids), len(set(load.ids)))
        self.assertEqual(sum(load.failures.values()), 0, load.failures)

    def is_used(self, member):
        before = self.calls(member)
        for _ in range(4):
            subprocess.run(["redis-cli", "-p", str(self.port), "INCR", self.tags[0]], capture_output=True)
        return self.calls(member) > before

    @classmethod
    def calls(cls, member):
        return cls.metric(member, r'firn_protocol_calls_total\{protocol="redis"\}')

    @classmethod
    def try_again(cls):
        """Calls that both servers refused because they had no range left."""
        return sum(cls.metric(member, r'firn_protocol_refusals_total\{protocol="redis",reason="STORE_DOWN"\}')
                   for member in cls.members)

    @staticmethod
    def metric(member, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{member.admin}/metrics", timeout=5) as page:
            return sum(map(float, re.findall(rf"^{name} (\S+)$", page.read().decode(), re.M)))


if __name__ == "__main__":
    folder = os.path.abspath(sys.argv.pop(3))
    RedisHaproxyTest.page = os.path.abspath(sys.argv.pop(3))
    os.makedirs(folder, exist_ok=True)
    (python, _), RedisHaproxyTest.environment = redis_clients_test.python_client(folder)
    RedisHaproxyTest.command = [python, os.path.join(HERE, "python_load.py")]
    interop.main(RedisHaproxyTest, "haproxy", "firn")
