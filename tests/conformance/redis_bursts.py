"""Bursts of calls by the best Redis client of each language, on a real redis-server."""

import functools
import os
import shutil
import socket
import subprocess
import sys

import builds
import cluster

sys.path.append(os.path.join(builds.ROOT, "tests", "interop", "redis"))
import programs
import redis_clients_test as clients

HERE = os.path.join(builds.HERE, "redis_bursts")

NEEDS = ["redis-server", "/usr/include/hiredis/async.h"]
NAMES = {"cpp": "hiredis", "python": "redis-py asyncio", "go": "go-redis", "java": "Lettuce", "typescript": "ioredis", "rust": "redis-rs"}


def build_cpp(folder):
    program = os.path.join(folder, "burst")
    builds.run("cc", "-O2", os.path.join(HERE, "burst.c"), "-o", program, "-lhiredis")
    return [program], {}


def build_python(folder):
    return ["/usr/bin/python3", os.path.join(HERE, "burst.py")], clients.python_client(folder)[1]


def build_typescript(folder):
    return ["node", os.path.join(HERE, "burst.js")], clients.node_client("ioredis_client.js")(folder)[1]


def build_go(folder):
    program = builds.new(folder, "go")
    for name in "go.mod", "go.sum":
        shutil.copy(os.path.join(clients.HERE, "go", name), program)
    shutil.copy(os.path.join(HERE, "burst.go"), program)
    clients.install("go", "build", "-o", "burst", ".", cwd=program)
    return [os.path.join(program, "burst")], {}


def build_java(folder):
    clients.java_client("Lettuce")(folder)
    classes = os.path.join(folder, "burst")
    builds.run("javac", "-nowarn", "-proc:none", "-cp", os.path.join(folder, "jars", "*"), "-d", classes,
               os.path.join(HERE, "Burst.java"))
    return ["java", "-cp", f"{folder}/jars/*:{classes}", "Burst"], {}


def build_rust(folder):
    package = os.path.join(folder, "rust")
    shutil.copytree(os.path.join(HERE, "rust"), package)
    builds.cargo("build", "--locked", "--release", cwd=package)
    return [os.path.join(builds.ROOT, "build", "rust", "target", "release", "burst")], {}


class Redis:
    """A redis-server without a disk."""

    def __init__(self, folder):
        self.port = programs.free_port()
        self.process = programs.start(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                                       "--appendonly", "no", "--dir", folder])
        cluster.patiently("redis-server does not listen", self.listens)

    def listens(self):
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def close(self):
        programs.end(self.process)


@functools.cache
def build(language, folder):
    """The command and its environment."""
    return globals()["build_" + language](builds.new(folder, "redis-" + language))


def measure(language, folder, port, calls, rounds):
    """Returns failed calls and milliseconds of each round."""
    command, environment = build(language, folder)
    done = subprocess.run([*command, str(port), str(calls), str(rounds)], stdout=subprocess.PIPE, text=True, check=True,
                          env={**os.environ, **environment}, timeout=2 * cluster.PATIENCE_S)
    return [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
