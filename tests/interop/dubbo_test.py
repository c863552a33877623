#!/usr/bin/python3
"""Real consumers of Dubbo 2.7 or 3.3 against real servers, with a real ZooKeeper.

    dubbo_test.py FIRN_SERVER FIRN VERSION FOLDER

Maven copies the packages that dubbo/VERSION/pom.xml names into FOLDER, unless they are there already. Exit 77
when they cannot be fetched, or a tool is not installed.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

import dubbo_consumer
import interop
import programs

sys.path.insert(0, os.path.join(interop.HERE, "..", "conformance"))
import cluster


class Member(cluster.Member):
    def start(self, *more):
        # On a loaded machine the registry needs longer to show that a tag does not exist than a call waits by default.
        self.history_path = self.log_path + ".history"
        super().start("--dubbo", "--issue_wait_ms=5000", "--history_file=" + self.history_path, *more)

    def history(self):
        with open(self.history_path) as lines:
            return lines.read()

    def log(self):
        with open(self.log_path) as lines:
            return lines.read()


class DubboTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.zookeeper = cluster.ZooKeeper(os.path.join(cls.folder, "zookeeper"))
        cls.registry = f"zk://127.0.0.1:{cls.zookeeper.port}/firn/dubbo"
        cls.firn_does("init", "--brand_new", "--force", "--workers=16")
        cls.firn_does("tags", "create", "order", "strategy=segment", "text=ORD-{id}")
        cls.members = [Member(cls.program, os.path.join(cls.folder, name), cls.registry) for name in "abc"]
        for member in cls.members:
            member.await_ready()
        cls.consumers = []
        cls.direct = cls.consumer("-", cls.members[0].address)

    @classmethod
    def tearDownClass(cls):
        for consumer in cls.consumers:
            consumer.end()
        for member in cls.members:
            programs.end(member.process)
        cls.zookeeper.kill()

    @classmethod
    def firn_does(cls, *words):
        cluster.patiently("firn " + words[0], lambda: subprocess.run(
            [cls.firn, *words, "--registry=" + cls.registry], stdout=subprocess.DEVNULL).returncode == 0)

    @classmethod
    def consumer(cls, *where):
        cls.consumers.append(dubbo_consumer.Consumer(cls.path, cls.folder, *where))
        return cls.consumers[-1]

    @classmethod
    def registered(cls):
        """A consumer that finds the servers in ZooKeeper."""
        return cls.consumer(f"zookeeper://127.0.0.1:{cls.zookeeper.port}")

    def says(self, command, pattern):
        answer = self.direct.ask(command)
        self.assertRegex(answer, "^" + pattern + "$")
        return answer

    def test_calls_return_ids_lists_and_texts(self):
        first = int(self.says("nextId default", r"\d{15,}"))
        self.assertGreater(int(self.direct.ask("nextId default")), first)
        self.says("nextIds order 3", r"\[\d+, \d+, \d+\]")
        self.says("nextText order", r"ORD-\d+")

    def test_vesta_calls_take_ids_apart_and_make_them(self):
        made = self.says("vestaGenId", r"\d{15,}")
        machine, seq, time_field, method, kind, version = self.says("vestaExpId " + made, r"[\d ]+").split()
        self.assertEqual(self.direct.ask(f"vestaMakeId {time_field} {seq} {machine}"), made)
        self.says("vestaTransTime " + time_field, r"\d{13}")
        self.says(f"vestaMakeId {time_field} {seq} 99999999", r"threw java\.lang\.IllegalArgumentException .*")

    def test_echo_returns_its_argument(self):
        self.says("echo hello", "hello")
        self.says("echoNumber 5", "5")

    def test_generic_calls_need_no_interface(self):
        self.says("generic nextId java.lang.String=default", r"Long \d+")
        self.says("generic nextIds java.lang.String=order int=2", r"ArrayList \[\d+, \d+\]")
        self.says("genericAsync nextId java.lang.String=default", r"Long \d+")
        made = self.direct.ask("vestaGenId")
        self.says("genericVesta expId long=" + made,
                  r"map \{class=com\.robert\.vesta\.service\.bean\.Id, genMethod=0, machine=\d+, .*\}")

    def test_refusals_are_exceptions_with_message_and_trace(self):
        self.says("nextId nosuch:tag!", r"threw java\.lang\.IllegalArgumentException cause=null: UNKNOWN_TAG: .*")
        self.says("nextIds order 0", r"threw java\.lang\.IllegalArgumentException cause=null: BAD_REQUEST: .*")
        self.says("generic drop", r"threw .*no method 'drop'.*")

    def test_log_and_history_have_the_trace_of_a_call(self):
        trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        self.firn_does("tags", "create", "traced", "plugins=history")
        traced = f"nextTraced traced traceparent 00-{trace}-00f067aa0ba902b7-01"
        cluster.patiently("the tag is not served", lambda: self.direct.ask(traced).isdigit())
        cluster.patiently("the history lacks the trace", lambda: trace in self.members[0].history())
        # At most three refusals for each reason are logged in ten seconds.
        cluster.patiently("the log lacks the trace", lambda: (
            self.direct.ask("nextTraced nosuch traceId 1.23.15988")
            and "(trace 1.23.15988)" in self.members[0].log()))

    def test_one_way_call_takes_no_id(self):
        before = self.metric("firn_dubbo_one_way_total")
        self.says("oneway default", "sent")
        cluster.patiently("no one-way call is counted",
                          lambda: self.metric("firn_dubbo_one_way_total") == before + 1)

    def test_heartbeats_are_answered(self):
        consumer = self.consumer("-", self.members[0].address + "?heartbeat=1000")
        consumer.ask("nextId default")
        cluster.patiently("no heartbeats are counted", lambda: self.metric("firn_dubbo_heartbeats_total") > 3)
        self.assertRegex(consumer.ask("nextId default"), r"^\d+$")

    def metric(self, name):
        url = f"http://127.0.0.1:{self.members[0].admin}/metrics"
        with urllib.request.urlopen(url, timeout=5) as page:
            return float(re.search(rf"^{name} (\S+)$", page.read().decode(), re.M).group(1))

    def test_consumers_find_servers_and_follow_weights(self):
        consumer = self.registered()
        counts = self.peers(consumer, 90)
        self.assertEqual(set(counts), {member.address for member in self.members})
        heavy = self.members[1].address
        self.firn_does("servers", "weight", heavy, "10000")
        cluster.patiently("the weight has no effect",
                          lambda: self.peers(consumer, 60).get(heavy, 0) > 50)
        self.firn_does("servers", "offline", heavy)
        cluster.patiently("an offline server is called", lambda: heavy not in self.peers(consumer, 30))
        self.firn_does("servers", "online", heavy)
        cluster.patiently("the server is not called again", lambda: heavy in self.peers(consumer, 60))
        self.firn_does("servers", "weight", heavy, "100")

    def test_consumers_are_listed(self):
        consumer = self.registered()
        consumer.ask("nextId default")
        listed = lambda: subprocess.run([self.firn, "servers", "--consumers", "--registry=" + self.registry],
                                        capture_output=True, text=True).stdout
        cluster.patiently("the consumer is not listed", lambda: re.search(
            r"io\.firn\.IdService +127\.0\.0\.1 +firn-test +" + str(consumer.process.pid), listed()))
        cluster.patiently("the admin port does not list the consumer", lambda: any(
            one["pid"] == str(consumer.process.pid) for one in self.admin("/v1/consumers").get("consumers", [])))
        self.direct.ask("nextId default")
        dubbo = {one["protocol"]: one for one in self.admin("/v1/status")["protocols"]}["dubbo"]
        self.assertGreater(dubbo["connections"], 0)
        self.assertGreater(dubbo["calls"], 0)

    def admin(self, path):
        """The answer of the first server's admin port; an empty one before it has read ZooKeeper."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.members[0].admin}{path}", timeout=5) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            self.assertEqual(refused.code, 503)
            return {}

    def peers(self, consumer, calls):
        """Makes `calls` calls. Returns the servers that got some, each with its number of calls."""
        before = {member: self.dubbo_calls(member) for member in self.members}
        self.assertEqual(consumer.ask(f"calls {calls}"), "done")
        shares = {member.address: self.dubbo_calls(member) - before[member] for member in self.members}
        return {address: share for address, share in shares.items() if share > 2}  # not heartbeats

    @staticmethod
    def dubbo_calls(member):
        with urllib.request.urlopen(f"http://127.0.0.1:{member.admin}/metrics", timeout=5) as page:
            found = re.search(r'^firn_request_seconds_count\{door="public",protocol="dubbo"\} (\S+)$',
                              page.read().decode(), re.M)
        return float(found.group(1)) if found else 0

    def test_no_call_fails_while_servers_are_killed_and_stopped(self):
        consumer = self.registered()
        consumer.ask("nextId default")
        answers = []
        load = threading.Thread(target=lambda: answers.append(consumer.ask("load default 4 12000")))
        load.start()
        killed, stopped = self.members[2], self.members[1]
        time.sleep(2)
        programs.end(killed.process)
        time.sleep(4)
        stopped.drain()
        load.join()
        for member in killed, stopped:
            member.start()
        for member in killed, stopped:
            member.await_ready()
        self.assertRegex(answers[0], "^calls=")
        calls, failed, distinct = re.match(r"calls=(\d+) failed=(\d+) distinct=(\d+)", answers[0]).groups()
        self.assertEqual(failed, "0", answers[0])
        self.assertEqual(calls, distinct)
        self.assertGreater(int(calls), 200)


if __name__ == "__main__":
    dubbo_consumer.main(DubboTest, "java", "firn")
