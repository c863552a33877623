#!/usr/bin/python3
"""dubbo2.js, a Dubbo consumer for Node.js, calls a server directly, and discovers it in a real ZooKeeper.

    dubbo_node_test.py FIRN_SERVER FIRN FOLDER

Exit 77 when Node.js, npm's packages or ZooKeeper are missing.
"""

import os
import subprocess
import sys
import unittest

import interop
import npm
import programs

sys.path.insert(0, os.path.join(interop.HERE, "..", "conformance"))
import cluster

SOURCE = os.path.join(interop.HERE, "dubbo", "node")


class DubboNodeTest(unittest.TestCase):
    packages = None

    @classmethod
    def setUpClass(cls):
        cls.zookeeper = cluster.ZooKeeper(os.path.join(cls.folder, "zookeeper"))
        registry = f"zk://127.0.0.1:{cls.zookeeper.port}/firn/node"
        for words in (["init", "--brand_new", "--force"],
                      ["tags", "create", "order", "strategy=segment", "start=1001", "text=ORD-{id}"]):
            cluster.patiently(words[0], lambda: subprocess.run(
                [cls.firn, *words, "--registry=" + registry], stdout=subprocess.DEVNULL).returncode == 0)
        cls.server = cluster.Member(cls.program, os.path.join(cls.folder, "server"), registry)
        programs.end(cls.server.process)
        cls.server.start("--dubbo", "--issue_wait_ms=20000")
        cls.server.await_ready()

    @classmethod
    def tearDownClass(cls):
        programs.end(cls.server.process)
        cls.zookeeper.kill()

    def test_takes_ids_directly_and_by_discovery(self):
        cluster.patiently("the server is not registered", self.is_registered)
        done = subprocess.run(
            ["node", os.path.join(SOURCE, "dubbo2_client.js"), self.server.address,
             f"127.0.0.1:{self.zookeeper.port}"], capture_output=True, text=True, timeout=interop.PATIENCE_S,
            env={**os.environ, "NODE_PATH": os.path.join(self.packages, "node_modules")})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for way in "direct", "registered":
            answers = [line.split(" ", 1)[1] for line in done.stdout.splitlines() if line.startswith(way + " ")]
            for answer, pattern in zip(answers, (r"nextId 1\d{3}", r'nextId "?\d{15,}"?',
                                                 r"nextIds \[1\d{3},1\d{3},1\d{3}\]", r'nextText "ORD-1\d{3}"',
                                                 r"nextIds refused: .*BAD_REQUEST: count is 0.*"), strict=True):
                self.assertRegex(answer, f"^{pattern}$", done.stdout + done.stderr)

    def is_registered(self):
        with interop.urllib.request.urlopen(f"http://127.0.0.1:{self.server.admin}/metrics", timeout=5) as page:
            return b"\nfirn_dubbo_registered 1\n" in page.read()


if __name__ == "__main__":
    DubboNodeTest.packages = os.path.abspath(sys.argv.pop(3))
    if not os.path.exists("/usr/share/java/zookeeper.jar"):
        interop.skip("ZooKeeper (libzookeeper-java) is not installed")
    npm.install(SOURCE, DubboNodeTest.packages)
    interop.main(DubboNodeTest, "node", "firn")
