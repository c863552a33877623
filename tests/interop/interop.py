"""Common parts of the interop tests: servers, stubs, and how a test is skipped."""

import fcntl
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))
import programs

PATIENCE_S = 120


def skip(sentence):
    """Ends the test as skipped, because it cannot run here."""
    print("skipped: " + sentence)
    sys.exit(77)


def main(case, needs, *others, program=True):
    """Runs the tests of one class. The paths of firn-server, unless `program` is false, and then of `others`
    come from the command line and become attributes of the class, which also gets a `folder`. `needs` is a
    command that must be installed."""
    for name in (*["program"] * program, *others):
        setattr(case, name, os.path.abspath(sys.argv.pop(1)))
    if not shutil.which(needs):
        skip(f"{needs} is not installed")
    case.folder = tempfile.mkdtemp(prefix="firn-interop-")
    try:
        passed = unittest.main(exit=False, verbosity=2).result.wasSuccessful()
    finally:
        shutil.rmtree(case.folder, ignore_errors=True)
    sys.exit(0 if passed else 1)


class Server:
    """A firn-server in a separate folder. `flags` are added to its addresses and its folder."""

    def __init__(self, program, folder, *flags, state="READY", environment=None):
        os.makedirs(folder)
        self.registry = f"dir://{folder}/state/registry"
        self.port, self.admin_port = programs.free_port(), programs.free_port()
        self.log_path = os.path.join(folder, "log")
        with open(self.log_path, "w") as log:
            self.process = programs.start(
                [program, f"--listen=127.0.0.1:{self.port}",
                 f"--admin_listen=127.0.0.1:{self.admin_port}", f"--state_dir={folder}/state",
                 "--drain_notice_ms=0", *flags], stderr=log,
                env={**os.environ, **(environment or {})})
        deadline = time.time() + PATIENCE_S
        while self.state() != state:
            if time.time() > deadline or self.process.poll() is not None:
                programs.end(self.process)
                raise SystemExit(f"firn-server never was {state}:\n" + self.log())
            time.sleep(0.05)

    def state(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/readyz",
                                        timeout=5) as answer:
                return self.first_line(answer)
        except urllib.error.HTTPError as answer:
            return self.first_line(answer)
        except (urllib.error.URLError, OSError):
            return ""

    @staticmethod
    def first_line(answer):
        """The state; the next line is the reason if it is not READY."""
        return answer.read().decode().split("\n")[0]

    def log(self):
        with open(self.log_path) as log:
            return log.read()

    def pause(self, registry):
        """SIGSTOP at a moment when the server does not lock the registry's folder, which others read."""
        deadline = time.time() + PATIENCE_S
        with open(os.path.join(registry, ".firn", "lock"), "rb") as lock:
            while True:
                self.process.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    self.process.send_signal(signal.SIGCONT)
                    assert time.time() < deadline, "the registry's folder is always locked"
                    time.sleep(0.01)

    def ask_to_end(self):
        """Sends SIGTERM, once: after a second one the server would not stop cleanly."""
        self.process.send_signal(signal.SIGTERM)
        self.ask_to_end = lambda: None

    def stop(self):
        """Its exit code after SIGTERM."""
        self.ask_to_end()
        return self.process.wait(PATIENCE_S)


    def answer(self, tag):
        """The answer to a call for one id of the tag: the reason of its refusal, or "ID"."""
        url = f"http://127.0.0.1:{self.port}/v1/ids/{tag}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                return "ID" if json.load(answer)["ids"] else ""
        except urllib.error.HTTPError as answer:
            return json.load(answer)["error"]["reason"]

    def becomes(self, tag, reason):
        """Waits until ids of the tag are refused with the reason."""
        deadline = time.time() + PATIENCE_S
        while (said := self.answer(tag)) != reason:
            if time.time() > deadline:
                raise SystemExit(f"'{tag}' is not refused with {reason}: {said}\n" + self.log())
            time.sleep(0.05)


class Servers:
    """The servers that every language calls: one that issues under machine id 13 (worker 3, rack 1),
    one that holds no machine id, and those with the other faults. A context; all must end cleanly.

    `troubles` maps a reason to (server, tag). The tag's ids are refused with that reason, at once or
    after some ids."""

    def __init__(self, program, firn):
        self.program, self.firn = program, firn
        self.folder = tempfile.mkdtemp(prefix="firn-interop-")
        self.all = []
        self.troubles = {}

    def __enter__(self):
        self.ready = self.start("ready", "--worker=3", "--rack=1")
        self.waiting = self.start("waiting", f"--registry=static:{os.getpid() % 1024}",
                                  state="NOT_READY")
        self.troubles["NOT_READY"] = (self.waiting, "default")
        self.trouble_tags()
        self.turn_the_clock_back()
        self.begin_to_drain()
        return self

    def start(self, name, *flags, **options):
        self.all.append(Server(self.program, os.path.join(self.folder, name), *flags, **options))
        return self.all[-1]

    def trouble_tags(self):
        """A server with two snowflake ids a second, and tags whose numbers are exhausted."""
        stores = os.path.join(self.folder, "stores.ini")
        with open(stores, "w") as file:
            file.write(f"[away]\nkind = redis\naddress = 127.0.0.1:{programs.free_port()}\n")
        server = self.start("troubled", "--layout=time:31s machine:10 sequence:1",
                            "--issue_wait_ms=0", f"--stores_file={stores}")
        for tag in (("used-up", "strategy=segment", "start=9223372036854775800", "step=1"),
                    ("limited", "strategy=segment", "plugins=limit", "limit.per_second=1"),
                    ("storeless", "strategy=segment", "store=away"),
                    ("damaged", "strategy=snowflake")):
            subprocess.run([self.firn, "tags", "create", *tag, "--registry=" + server.registry],
                           check=True, stdout=subprocess.DEVNULL)
        self.troubles.update(OVERLOADED=(server, "default"), EXHAUSTED=(server, "used-up"),
                             REJECTED=(server, "limited"), STORE_DOWN=(server, "storeless"),
                             INTERNAL=(server, "damaged"))
        server.becomes("damaged", "OVERLOADED")
        shutil.rmtree(os.path.join(self.folder, "troubled/state/registry/tags/damaged"))
        for reason, (_, tag) in self.troubles.items():
            if tag != "default":
                server.becomes(tag, reason)

    def turn_the_clock_back(self):
        """A server that waits for its wall clock, which was set an hour back."""
        offset = os.path.join(self.folder, "offset")
        library = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")[0]
        write = lambda text: open(offset, "w").write(text)
        write("+0")
        server = self.start("behind", "--clock_policy=strict", environment={
            "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": offset, "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1",
            "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"})
        write("-1h")
        server.becomes("default", "CLOCK")
        self.troubles["CLOCK"] = (server, "default")

    def begin_to_drain(self):
        """A draining server, which waits for a connection to close."""
        server = self.start("draining", f"--drain_refuse_ms={PATIENCE_S * 1000}")
        self.held = socket.create_connection(("127.0.0.1", server.port))
        server.ask_to_end()
        server.becomes("default", "DRAINING")
        self.troubles["DRAINING"] = (server, "default")

    def __exit__(self, *_):
        self.held.close()
        codes = [server.stop() for server in self.all]
        logs = "".join(server.log() for server in self.all)
        shutil.rmtree(self.folder, ignore_errors=True)
        if any(codes):
            raise SystemExit(f"the servers ended with {codes}:\n{logs}")


def generate(language, contract, folder):
    """Stubs of the contract, and in `folder`/old those of Twitter's own service."""
    for source, out in (contract, folder), (os.path.join(HERE, "twitter.thrift"),
                                            os.path.join(folder, "old")):
        os.makedirs(out, exist_ok=True)
        subprocess.run(["thrift", "--gen", language, "-out", out, source], check=True)


def python_stubs(contract, folder):
    """The modules IdService and ttypes of the contract's stubs, which are generated in `folder`/stubs."""
    stubs = os.path.join(folder, "stubs")
    generate("py", contract, stubs)
    sys.path[:0] = [stubs, os.path.join(stubs, "old")]
    from firn.wire import IdService, ttypes
    return IdService, ttypes


def run_client(command, servers, **options):
    """Runs a client program with two ports and the expected refusals as REASON=port/tag. Returns its
    exit code."""
    told = [str(servers.ready.port), str(servers.waiting.port)]
    told += [f"{reason}={server.port}/{tag}" for reason, (server, tag) in servers.troubles.items()]
    return subprocess.run([*command, *told], timeout=PATIENCE_S, **options).returncode
