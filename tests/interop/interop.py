"""What the interop tests share: servers to ask, stubs, and the way in which a test is skipped."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE_S = 120


def skip(sentence):
    """Ends the test as one that cannot run here."""
    print("skipped: " + sentence)
    sys.exit(77)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A firn-server in a folder of its own. `flags` are added to its addresses and its folder."""

    def __init__(self, program, folder, *flags, state="READY"):
        os.makedirs(folder)
        self.port, self.admin_port = free_port(), free_port()
        self.log_path = os.path.join(folder, "log")
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen(
                [program, f"--listen=127.0.0.1:{self.port}",
                 f"--admin_listen=127.0.0.1:{self.admin_port}", f"--state_dir={folder}/state",
                 "--drain_notice_ms=0", *flags], stderr=log)
        deadline = time.time() + PATIENCE_S
        while self.state() != state:
            if time.time() > deadline or self.process.poll() is not None:
                self.process.kill()
                raise SystemExit(f"firn-server never was {state}:\n" + self.log())
            time.sleep(0.05)

    def state(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/readyz",
                                        timeout=5) as answer:
                return answer.read().decode().strip()
        except urllib.error.HTTPError as answer:
            return answer.read().decode().strip()
        except (urllib.error.URLError, OSError):
            return ""

    def log(self):
        with open(self.log_path) as log:
            return log.read()

    def stop(self):
        """Its exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


class Servers:
    """The two that every language asks: one that issues under machine id 13 (worker 3, rack 1), one
    that holds no machine id. A context; both must end cleanly."""

    def __init__(self, program):
        self.program = program
        self.folder = tempfile.mkdtemp(prefix="firn-interop-")

    def __enter__(self):
        folder = lambda name: os.path.join(self.folder, name)
        self.ready = Server(self.program, folder("ready"), "--worker=3", "--rack=1")
        self.waiting = Server(self.program, folder("waiting"), "--registry=static:7",
                              state="NOT_READY")
        return self

    def __exit__(self, *_):
        codes = [self.ready.stop(), self.waiting.stop()]
        logs = self.ready.log() + self.waiting.log()
        shutil.rmtree(self.folder, ignore_errors=True)
        if codes != [0, 0]:
            raise SystemExit(f"the servers ended with {codes}:\n{logs}")


def generate(language, contract, folder):
    """Stubs of the contract, and in `folder`/old those of Twitter's own service."""
    for source, out in (contract, folder), (os.path.join(HERE, "twitter.thrift"),
                                            os.path.join(folder, "old")):
        os.makedirs(out, exist_ok=True)
        subprocess.run(["thrift", "--gen", language, "-out", out, source], check=True)


def run_client(command, servers, **options):
    """Runs a client program that is given both ports; its exit code."""
    ports = [str(servers.ready.port), str(servers.waiting.port)]
    return subprocess.run([*command, *ports], timeout=PATIENCE_S, **options).returncode
