"""A consumer of Dubbo 3.3 that measures calls, and Dubbo's own provider beside Firn."""

import os
import sys

from processes import Folder, Server, program

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "interop"))
import dubbo_consumer  # noqa: E402

VERSION = "3.3"
# Callers that share one connection, as Dubbo's consumers do.
CALLERS = [1, 8, 64]
# After so much time the just-in-time compiler has optimized the code of calls.
WARMUP_MS = 3_000
FIGURES = "rate", "p50_us", "p99_us"


def check_installed():
    for name, package in (("java", "default-jdk-headless"), ("javac", "default-jdk-headless"), ("mvn", "maven")):
        program(name, package)


class Programs:
    """The compiled programs, in a folder that is deleted with it. Maven's packages are kept below build/."""

    def __init__(self):
        self.folder = Folder("dubbo")
        self.path = dubbo_consumer.class_path(VERSION, os.path.join(ROOT, "build", "bench", "dubbo"),
                                              self.folder / "classes")
        self.consumers = {}

    def provider(self, pin):
        folder = Folder("dubbo-provider")
        return Server(folder, dubbo_consumer.java(self.path, folder / "hosts", "DubboProvider", "@PORT@", quick=[]),
                      pin)

    def consumer(self, row, pin):
        """Returns the row's consumer after its warm-up."""
        if row.name not in self.consumers:
            consumer = dubbo_consumer.Consumer(self.path, self.folder.path, "-", f"127.0.0.1:{row.server.port}",
                                               pin=pin, quick=[])
            self.consumers[row.name] = consumer
            for callers in CALLERS:
                self.rate(consumer, row, callers, WARMUP_MS)
        return self.consumers[row.name]

    @staticmethod
    def rate(consumer, row, callers, millis):
        words = consumer.ask(f"rate {row.subject} {callers} {millis}").split()
        figures = dict(word.split("=", 1) for word in words if "=" in word)
        if not set(FIGURES) <= set(figures):
            raise SystemExit(f"{row.name}: {' '.join(words)}")
        return int(figures["calls"]), {name: float(figures[name]) for name in FIGURES}

    def measure(self, row, callers, millis, pin):
        consumer = self.consumer(row, pin)
        before = row.server.processor_s()
        calls, figures = self.rate(consumer, row, callers, millis)
        used = row.server.processor_s() - before
        return {**figures, "server_us": used / calls * 1e6}

    def stop(self):
        for consumer in self.consumers.values():
            consumer.end()
        self.folder.remove()
