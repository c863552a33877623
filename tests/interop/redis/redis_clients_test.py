#!/usr/bin/python3
"""Redis clients of other languages take ids from a running firn-server: plain, with a login and rights, and over TLS.

    redis_clients_test.py FIRN_SERVER FIRN FOLDER CLIENT

CLIENT is one of python, ioredis, node-redis, go, lettuce, jedis, hiredis. Its packages, at the versions that this
folder pins, are installed into FOLDER unless they are there. Exit 77 when the language or its packages are missing.
Debian's hiredis knows neither RESP3 nor TLS.

Each client program prints the ids that it took one by one, then the ids of a pipeline, then those of a transaction, then
`refused:` and the error of an INCR of a tag that does not exist.
"""

import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import interop
import npm
import redis_test

PAGE = os.path.join(HERE, "..", "..", "..", "server", "front", "redis", "INCR.md")
PAGE_CLASS = """import redis.clients.jedis.*;

final class Page {
    static JedisPooled client(String host, int port) {
        %s
        return client;
    }
}
"""
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


def snippet_of_page():
    """The page's Java, with the test's address."""
    with open(PAGE) as file:
        text = re.search(r"```java\n(.*?)```", file.read(), re.DOTALL).group(1)
    if text.count('"firn1", 7609') != 1:
        raise SystemExit(f"{PAGE}: its Java does not name the server once")
    return text.replace('"firn1", 7609', "host, port")


def java_client(name):
    def build(folder):
        require("java", "javac", "mvn")
        jars, classes = os.path.join(folder, "jars"), os.path.join(folder, "classes")
        source = os.path.join(HERE, "java")
        if not os.path.exists(os.path.join(folder, "jars-done")):
            install("mvn", "-B", "-q", "dependency:copy-dependencies", f"-DoutputDirectory={jars}",
                    "-f", os.path.join(source, "pom.xml"))
            open(os.path.join(folder, "jars-done"), "w").close()
        page = os.path.join(folder, "Page.java")
        with open(page, "w") as file:
            file.write(PAGE_CLASS % snippet_of_page())
        subprocess.run(["javac", "-nowarn", "-proc:none", "-cp", jars + "/*", "-d", classes, page,
                        *(os.path.join(source, file) for file in ("Lettuce.java", "JedisClient.java", "IdleJedis.java"))],
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
        self.assertEqual(len(set(numbers)), 3 * COUNT, done.stdout)
        self.assertEqual(numbers, sorted(numbers))
        self.assertTrue(refused.startswith("refused: "), done.stdout)
        self.assertIn("nothing", refused)
        return refused

    def test_takes_ids(self):
        self.patiently(self.plain, "INCR", "order")
        for protocol in self.protocols:
            with self.subTest(protocol=protocol):
                self.take(self.plain, protocol)

    def test_refuses_ids_that_its_language_would_round(self):
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


    def test_a_pool_as_the_page_configures_it_survives_closed_connections(self):
        server = self.start("idle", "--idle_ms=1000")
        self.addCleanup(server.stop)
        self.patiently(server, "INCR", "order")
        idle = lambda: self.metric("firn_connections_closed_total", 'door="public",cause="idle"', server)
        before = idle()
        command = [*self.command[:-1], "IdleJedis", str(server.port)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            self.assertRegex(client.stdout.readline(), r"^\d+ \d+$")
            deadline = time.time() + interop.PATIENCE_S
            while idle() < before + 2 and time.time() < deadline:
                time.sleep(0.05)
            answers = client.communicate("\n", timeout=interop.PATIENCE_S)[0]
        self.assertRegex(answers, r"^(pooled: \d+\nplain: failed\n){2}$")


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
        tests.append("test_refuses_ids_that_its_language_would_round")
    if client == "jedis":
        tests.append("test_a_pool_as_the_page_configures_it_survives_closed_connections")
    interop.main(only(RedisClientsTest, *tests), "redis-cli", "firn")
