#!/usr/bin/python3
"""Real consumers of Dubbo 2.7 or 3.3 discover a server in ZooKeeper and call it over TLS with client certificates.

    dubbo_tls_test.py FIRN_SERVER FIRN VERSION FOLDER

Like dubbo_test.py.
"""

import os
import subprocess
import sys
import unittest

import dubbo_consumer
import interop
import programs
import tls_test

sys.path.insert(0, os.path.join(interop.HERE, "..", "conformance"))
import cluster


class DubboTlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ours, cls.theirs = (tls_test.Authority(cls.folder, name) for name in ("ours", "theirs"))
        certificate, key = cls.ours.sign("server")
        cls.zookeeper = cluster.ZooKeeper(os.path.join(cls.folder, "zookeeper"))
        registry = f"zk://127.0.0.1:{cls.zookeeper.port}/firn/tls"
        cluster.again(lambda: subprocess.run([cls.firn, "init", "--brand_new", "--force", "--registry=" + registry],
                                             stdout=subprocess.DEVNULL), makes=True).check_returncode()
        rights = os.path.join(cls.folder, "rights")
        with open(rights, "w") as file:
            file.write("shop default\n")
        cls.server = cluster.Member(cls.program, os.path.join(cls.folder, "server"), registry)
        programs.end(cls.server.process)
        cls.server.start("--dubbo", "--tls_cert=" + certificate, "--tls_key=" + key,
                         "--tls_client_ca=" + cls.ours.path("ca.crt"), "--rights_file=" + rights,
                         "--issue_wait_ms=5000")
        cls.server.await_ready()

    @classmethod
    def tearDownClass(cls):
        programs.end(cls.server.process)
        cls.zookeeper.kill()

    def answer(self, tag, authority=None):
        """Returns a consumer's result for a tag, with a certificate of the authority."""
        environment = {}
        if authority:
            certificate, key = authority.sign("shop")
            environment = {"FIRN_CA": self.ours.path("ca.crt"), "FIRN_CERT": certificate, "FIRN_KEY": key}
        consumer = dubbo_consumer.Consumer(self.path, self.folder, f"zookeeper://127.0.0.1:{self.zookeeper.port}",
                                           environment=environment)
        try:
            return consumer.ask("nextId " + tag)
        finally:
            consumer.end()

    def test_takes_ids_of_tags_to_which_its_certificate_gives_a_right(self):
        self.assertRegex(self.answer("default", self.ours), r"^\d{15,}$")
        self.assertIn("no right to ids of 'order'", self.answer("order", self.ours))

    def test_a_consumer_without_tls_gets_no_id(self):
        self.assertRegex(self.answer("default"), "^threw ")

    def test_a_consumer_with_a_foreign_certificate_gets_no_id(self):
        self.assertRegex(self.answer("default", self.theirs), "^threw ")


if __name__ == "__main__":
    dubbo_consumer.main(DubboTlsTest, "openssl", "firn")
