#!/usr/bin/python3
"""Redis clients of other languages take ids from a running firn-server: plain, with a login and rights, and over TLS.

    redis_clients_test.py FIRN_SERVER FIRN FOLDER CLIENT

CLIENT is one of python, ioredis, node-redis, go, lettuce, jedis, hiredis. Its packages, at the versions that this
folder pins, are installed into FOLDER unless they are there. Exit 77 when the language or its packages are missing.
Debian's hiredis knows neither RESP3 nor TLS.

Each client program prints the ids that it took one by one, then the ids of a pipeline or a transaction, then
`refused:` and the error of an INCR of a tag that does not exist.
"""

import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import interop
import npm
import redis_test

COUNT = 50
PATIENCE_S = 300
REDIS_PY = ["redis==6.4.0", "async-timeout==5.0.1"]
USER = {"FIRN_USER": "alice", "FIRN_PASSWORD": "secret"}


def require(*tools):
    for tool in tools:
        if not shutil.which(tool):
            interop.skip(f"{tool} is not installed")


def install(*command, **options):
    """Runs a command that may need its language's package registry. Skips the test if that fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=PATIENCE_S, **options)
    except subprocess.TimeoutExpired:
        interop.skip(f"{command[0]} could not fetch its packages in {PATIENCE_S} s")
    if done.returncode:
        interop.skip(f"{command[0]} could not fetch its packages: {done.stdout[-300:]}")


def python_client(folder):
    target = os.path.join(folder, REDIS_PY[0])
    if not os.path.exists(os.path.join(target, "async_timeout")):
        install("/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target",
                target, *REDIS_PY)
    return ["/usr/bin/python3", os.path.join(HERE, "python_client.py")], {"PYTHONPATH": target}


def node_client(name):
    def build(folder):
        target = os.path.join(folder, "node")
        npm.install(os.path.join(HERE, "node"), target)
        return (["node", os.path.join(HERE, "node", name)],
                {"NODE_PATH": os.path.join(target, "node_modules")})
    return build


def go_client(folder):
    require("go")
    program = os.path.join(folder, "go_client")
    install("go", "build", "-o", program, ".", cwd=os.path.join(HERE, "go"))
    return [program], {}


def java_client(name):
    def build(folder):
        require("java", "javac", "mvn")
        jars, classes = os.path.join(folder, "jars"), os.path.join(folder, "classes")
        source = os.path.join(HERE, "java")
        if not os.path.exists(os.path.join(folder, "jars-done")):
            install("mvn", "-B", "-q", "dependency:copy-dependencies", f"-DoutputDirectory={jars}",
                    "-f", os.path.join(source, "pom.xml"))
            open(os.path.join(folder, "jars-done"), "w").close()
        subprocess.run(["javac", "-nowarn", "-proc:none", "-cp", jars + "/*", "-d", classes,
                        *(os.path.join(source, file) for file in ("Lettuce.java", "JedisClient.java"))],
                       check=True)
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*:{classes}", name], {}
    return build


def c_client(folder):
    require("cc")
    program = os.path.join(folder, "hiredis_client")
    subprocess.run(["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", program,
                    os.path.join(HERE, "c", "hiredis_client.c"), "-lhiredis"], check=True)
    return [program], {}


CLIENTS = {"python": python_client, "ioredis": node_client("ioredis_client.js"),
           "node-redis": node_client("node_redis_client.js"), "go": go_client,
           "lettuce": java_client("Lettuce"), "jedis": java_client("JedisClient"), "hiredis": c_client}


class RedisClientsTest(redis_test.RedisTest):
    """Uses the servers of redis_test, but not its tests."""

    command, environment = [], {}
    protocols = [2, 3]

    def run_client(self, server, protocol, **environment):
        return subprocess.run(
            [*self.command, "127.0.0.1", str(server.port), str(protocol), str(COUNT)],
            env={**os.environ, **self.environment, **environment}, capture_output=True, text=True,
            timeout=interop.PATIENCE_S)

    def take(self, server, protocol, **environment):
        """The client's report of a refused call, after it has taken ids."""
        done = self.run_client(server, protocol, **environment)
        *ids, refused = done.stdout.strip().split("\n")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        numbers = [int(id) for id in ids]
        self.assertEqual(len(set(numbers)), 2 * COUNT, done.stdout)
        self.assertEqual(numbers, sorted(numbers))
        self.assertTrue(refused.startswith("refused: "), done.stdout)
        self.assertIn("nothing", refused)
        return refused

    def test_takes_ids(self):
        self.patiently(self.plain, "INCR", "order")
        for protocol in self.protocols:
            with self.subTest(protocol=protocol):
                self.take(self.plain, protocol)

    def test_sees_no_id_twice_that_its_language_would_round(self):
        for protocol in self.protocols:
            with self.subTest(protocol=protocol):
                done = self.run_client(self.plain, protocol, FIRN_TAG="default")
                answers = done.stdout.strip().split("\n")
                self.assertEqual(len(answers), COUNT, done.stdout + done.stderr)
                for answer in answers:
                    self.assertIn("FIRN.ID", answer)

    def test_takes_ids_with_a_login_and_the_rights_of_its_user(self):
        self.patiently(self.closed, "INCR", "order", flags=["--no-auth-warning", "--user", "alice", "--pass", "secret"])
        for protocol in self.protocols:
            with self.subTest(protocol=protocol):
                refused = self.take(self.closed, protocol, **USER)
                self.assertIn("user 'redis:alice' has no right to ids of 'nothing'", refused)

    def test_reports_a_missing_login(self):
        for protocol in self.protocols:
            with self.subTest(protocol=protocol):
                done = self.run_client(self.closed, protocol)
                self.assertRegex(done.stdout + done.stderr, "NOAUTH|[Aa]uthentication")
                self.assertNotRegex(done.stdout, r"(?m)^\d+$")

    def test_takes_ids_with_a_login_and_over_tls(self):
        flags = ["--tls", "--cacert", self.ca, "-a", "word", "--no-auth-warning"]
        self.patiently(self.encrypted, "INCR", "order", flags=flags)
        for protocol in self.protocols:
            with self.subTest(protocol=protocol):
                self.take(self.encrypted, protocol, FIRN_CA=self.ca, **USER)


def only(case, *names):
    """Keeps only these tests of the case."""
    for name in dir(case):
        if name.startswith("test_") and name not in names:
            setattr(case, name, None)
    return case


if __name__ == "__main__":
    client, folder = sys.argv.pop(4), os.path.abspath(sys.argv.pop(3))
    os.makedirs(folder, exist_ok=True)
    RedisClientsTest.command, RedisClientsTest.environment = CLIENTS[client](folder)
    tests = ["test_takes_ids", "test_takes_ids_with_a_login_and_the_rights_of_its_user", "test_reports_a_missing_login"]
    if client == "hiredis":
        RedisClientsTest.protocols = [2]
    else:
        tests.append("test_takes_ids_with_a_login_and_over_tls")
    if "node" in RedisClientsTest.command[0]:
        tests.append("test_sees_no_id_twice_that_its_language_would_round")
    interop.main(only(RedisClientsTest, *tests), "redis-cli", "firn")
