"""A process of a language's driver, as README.md describes."""

import json
import subprocess
import threading

import builds  # noqa: F401 (the path of tools)
import programs

PATIENCE_S = 60


class Red(Exception):
    """A client's behaviour differs from its row."""


class Driver:
    """A process of a language's driver; used by one thread at a time."""

    def __init__(self, command, log):
        self.process = programs.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                      text=True)
        self.asking = threading.Lock()

    def ask(self, verb, **words):
        line = " ".join([verb, *(f"{key}={value}" for key, value in words.items())])
        with self.asking:
            watch = threading.Timer(2 * PATIENCE_S, self.process.kill)
            watch.start()
            try:
                self.process.stdin.write(line + "\n")
                self.process.stdin.flush()
                answer = self.process.stdout.readline()
            except BrokenPipeError:
                answer = ""
            finally:
                watch.cancel()
        if not answer:
            raise Red(f"the driver ended, or said nothing for {2 * PATIENCE_S} s, at: {line[:200]}")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            programs.end(self.process)
        if self.process.returncode > 0:
            raise Red(f"the driver ended with {self.process.returncode}; a sanitizer's finding is in its log")
