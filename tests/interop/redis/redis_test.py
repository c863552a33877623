#!/usr/bin/python3
"""redis-cli and redis-benchmark against a running firn-server, plain, with users and rights, and over TLS.

    redis_test.py FIRN_SERVER FIRN
"""

import os
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import interop

CALLS = 20_000


class RedisTest(unittest.TestCase):
    program = firn = folder = None

    @classmethod
    def setUpClass(cls):
        cls.users = cls.write("users", "default:word\nalice:secret\n", 0o600)
        rights = cls.write("rights", "redis:alice order\n", 0o644)
        cls.ca, key = (os.path.join(cls.folder, name) for name in ("server.crt", "server.key"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cls.ca],
                       check=True, capture_output=True)
        cls.plain = cls.start("plain")
        cls.closed = cls.start("closed", f"--redis_auth_file={cls.users}", f"--rights_file={rights}")
        cls.encrypted = cls.start("encrypted", f"--redis_auth_file={cls.users}",
                                  f"--tls_cert={cls.ca}", f"--tls_key={key}")

    @classmethod
    def tearDownClass(cls):
        for server in cls.plain, cls.closed, cls.encrypted:
            assert server.stop() == 0, server.log()

    @classmethod
    def write(cls, name, text, mode):
        path = os.path.join(cls.folder, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    @classmethod
    def start(cls, name, *flags):
        server = interop.Server(cls.program, os.path.join(cls.folder, name), "--issue_wait_ms=5000", *flags)
        for tag in (["order", "strategy=segment", "step=100", "start=1001"], ["counter:__rand_int__", "strategy=segment", "step=100000"]):
            subprocess.run([cls.firn, "tags", "create", *tag, f"--registry={server.registry}"],
                           check=True, stdout=subprocess.DEVNULL)
        return server

    def cli(self, server, *words, flags=(), text=None):
        done = subprocess.run(["redis-cli", "-p", str(server.port), *flags, *words], input=text,
                              capture_output=True, text=True, timeout=interop.PATIENCE_S)
        return (done.stdout + done.stderr).strip()

    def patiently(self, server, *words, flags=()):
        """The answer, once the server knows the tag."""
        deadline = time.time() + interop.PATIENCE_S
        while "UNKNOWN_TAG" in (answer := self.cli(server, *words, flags=flags)):
            self.assertLess(time.time(), deadline, answer)
            time.sleep(0.05)
        return answer

    def test_redis_cli_takes_rising_numbers(self):
        first = int(self.patiently(self.plain, "INCR", "order"))
        answers = self.cli(self.plain, text="INCR order\n" * 100).split()
        self.assertEqual([int(answer) for answer in answers],
                         list(range(first + 1, first + 101)))
        last = first + 100
        self.assertEqual(self.cli(self.plain, "-3", "FIRN.ID", "order"), str(last + 1))
        taken = int(self.cli(self.plain, "INCRBY", "order", "10"))
        self.assertGreaterEqual(taken, last + 11)
        self.assertEqual(self.cli(self.plain, "INCR", "order"), str(taken + 1))

    def test_refusals_name_their_reason(self):
        self.assertIn("UNKNOWN_TAG: no tag 'nothing'", self.cli(self.plain, "INCR", "nothing"))
        self.assertIn("its step, 100", self.cli(self.plain, "INCRBY", "order", "101"))
        self.assertIn("ERR unknown command", self.cli(self.plain, "SET", "order", "1"))
        self.assertIn("cluster support disabled", self.cli(self.plain, "CLUSTER", "INFO"))

    def test_info_and_hello_show_what_the_server_is(self):
        info = self.cli(self.plain, "INFO")
        self.assertIn("firn_state:READY", info)
        self.assertNotIn(self.folder, info, "the registry's path")
        self.assertIn("firn", self.cli(self.plain, "-3", "HELLO", "3"))

    def test_users_get_the_ids_of_their_tags(self):
        self.assertIn("NOAUTH", self.cli(self.closed, "INCR", "order"))
        alice = ["--no-auth-warning", "--user", "alice", "--pass", "secret"]
        self.assertGreater(int(self.patiently(self.closed, "INCR", "order", flags=alice)), 1000)
        self.assertIn("NOPERM", self.cli(self.closed, "INCR", "default", flags=alice))
        default = ["--no-auth-warning", "-a", "word"]
        self.assertIn("NOPERM", self.cli(self.closed, "INCR", "order", flags=default))
        wrong = ["--no-auth-warning", "-a", "sword"]
        self.assertIn("WRONGPASS", self.cli(self.closed, "PING", flags=wrong))

    def test_a_reload_takes_new_passwords(self):
        before = self.closed.log().count("reloaded")
        self.write("users", "alice:secret\ndefault:word\nbob:b\n", 0o600)
        self.closed.process.send_signal(signal.SIGHUP)
        deadline = time.time() + interop.PATIENCE_S
        while self.closed.log().count("reloaded") == before:
            self.assertLess(time.time(), deadline, self.closed.log())
            time.sleep(0.05)
        bob = ["--no-auth-warning", "--user", "bob", "--pass", "b"]
        self.assertEqual(self.cli(self.closed, "PING", flags=bob), "PONG")

    def test_redis_cli_takes_ids_over_tls(self):
        flags = ["--tls", "--cacert", self.ca, "-a", "word", "--no-auth-warning"]
        self.assertGreater(int(self.cli(self.encrypted, "FIRN.ID", "default", flags=flags)), 0)
        self.assertNotIn("PONG", self.cli(self.encrypted, "PING"), "a plain client")

    def test_redis_benchmark_measures_calls_in_a_row(self):
        self.patiently(self.plain, "INCR", "counter:__rand_int__")
        before = self.metric("firn_ids_total", 'tag="counter:__rand_int__"')
        for pipeline in "1", "16", "64":
            done = subprocess.run(
                ["redis-benchmark", "-p", str(self.plain.port), "-t", "incr", "-n", str(CALLS), "-P",
                 pipeline, "--csv"], capture_output=True, text=True, timeout=interop.PATIENCE_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('"INCR"', done.stdout)
        issued = self.metric("firn_ids_total", 'tag="counter:__rand_int__"') - before
        self.assertGreaterEqual(issued, 3 * CALLS)
        self.assertEqual(self.metric("firn_refusals_total", 'reason="INTERNAL"'), 0)

    def metric(self, name, labels, server=None):
        text = interop.urllib.request.urlopen(
            f"http://127.0.0.1:{(server or self.plain).admin_port}/metrics").read().decode()
        return next(float(line.split()[-1]) for line in text.split("\n")
                    if line.startswith(f"{name}{{{labels}}}"))


if __name__ == "__main__":
    interop.main(RedisTest, "redis-cli", "firn")
