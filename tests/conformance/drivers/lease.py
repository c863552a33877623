"""The Python client's generator of local ids, controlled as ../README.md describes."""

import json
import os
import sys
import threading
import time

import firn

PASS = 10  # ids
PAUSE_S = 0.01


class Issuer:
    """A thread that takes ids, and writes them into a file of its own."""

    def __init__(self, generator, file):
        self.generator, self.file = generator, open(file, "w")
        self.ids = self.failed = 0
        self.failure = ""
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        closed = False
        while not closed:
            taken = []
            try:
                for _ in range(PASS):
                    taken.append(self.generator.next())
            except firn.Closed:
                closed = True
            except firn.FirnError as failure:
                self.failed += 1
                self.failure = self.failure or str(failure)
            self.file.writelines(f"{number}\n" for number in taken)
            self.file.flush()
            self.ids += len(taken)
            time.sleep(PAUSE_S)


class Driver:
    def __init__(self):
        self.client = self.generator = None
        self.lost, self.issuers = [], []

    def open(self, servers, name, ahead_ms, timeout_ms, threads, file, **tls):
        try:
            options = {"tls": firn.Tls(**{key.removeprefix("tls_"): value for key, value in tls.items()})} if tls else {}
            self.client = firn.Client(servers, **options)
            self.generator = firn.LocalGenerator(self.client, name, ahead_ms=int(ahead_ms), timeout_ms=int(timeout_ms),
                                                 on_lost=self.lost.append)
        except firn.FirnError as failure:
            return {"failure": str(failure)}
        self.file = file
        self.issuers = [Issuer(self.generator, f"{file}.{i}") for i in range(int(threads))]
        return {}

    def so_far(self):
        until = self.generator.until()
        failures = [one.failure for one in self.issuers if one.failure]
        for one in self.issuers:
            one.failure = ""
        return {"ids": sum(one.ids for one in self.issuers), "failed": sum(one.failed for one in self.issuers),
                "failure": failures[0] if failures else "", "machine_id": self.generator.machine_id(),
                "until_ms": int(until.timestamp() * 1000) if until else 0, "lost": len(self.lost)}

    def burst(self, count):
        taken, failure, began = [], "", time.monotonic()
        try:
            for _ in range(int(count)):
                taken.append(self.generator.next())
        except firn.FirnError as fault:
            failure = str(fault)
        took_ms = int((time.monotonic() - began) * 1000)
        with open(self.file + ".burst", "w") as out:
            out.writelines(f"{number}\n" for number in taken)
        return {"ids": len(taken), "took_ms": took_ms, "failure": failure}

    def close(self):
        self.generator.close()
        for one in self.issuers:
            one.thread.join()
        self.client.close()
        return {"ids": sum(one.ids for one in self.issuers), "failed": sum(one.failed for one in self.issuers),
                "after_close": self.next_failure()}

    def fork(self):
        """next() in a child of this process."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            with os.fdopen(writing, "w") as out:
                out.write(self.next_failure())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            failure = answer.read()
        os.waitpid(child, 0)
        return {"failure": failure}

    def next_failure(self):
        try:
            self.generator.next()
        except firn.FirnError as failure:
            return str(failure)
        return ""


if __name__ == "__main__":
    driver = Driver()
    for line in sys.stdin:
        verb, *words = line.split()
        print(json.dumps(getattr(driver, verb)(**dict(word.split("=", 1) for word in words))), flush=True)
