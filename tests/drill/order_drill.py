#!/usr/bin/python3
"""Numbers of a tag with buffer = owner rise over the whole cluster, whatever happens to its owner.

    order_drill.py FIRN_SERVER FIRN [--only NAME]

Three real servers with a real ZooKeeper. Callers take numbers at each server and note when each call began and ended.
At the end, each call must have larger numbers than all calls that had ended before it began.
"""

import bisect
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "conformance"))
import cluster  # noqa: E402
import conformance  # noqa: E402

TAG = "order"
STEP = 1000
COUNTS = (1, 1, 7, STEP)  # numbers of a caller's calls
WINDOW_S = 3.0
TAKEOVER_S = 1.25 * WINDOW_S + 1


class Caller:
    """Takes numbers from one server by INCR and INCRBY, until stopped."""

    def __init__(self, member, calls, tls):
        self.member, self.calls, self.tls, self.stopped, self.refused = member, calls, tls, False, []
        self.answered_at = 0.0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        line, turn = None, 0
        while not self.stopped:
            try:
                if line is None:
                    line = socket.create_connection(("127.0.0.1", self.member.port), 5)
                    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    if self.tls:
                        line = self.tls.wrap_socket(line, server_hostname="127.0.0.1")
                    answers = line.makefile("rb")
                count, turn = COUNTS[turn % len(COUNTS)], turn + 1
                began = time.monotonic()
                words = "INCRBY", TAG, str(count)
                line.sendall("".join([f"*{len(words)}\r\n", *(f"${len(one)}\r\n{one}\r\n" for one in words)]).encode())
                answer = answers.readline()
                ended = time.monotonic()
                if answer[:1] == b":":
                    last = int(answer[1:])
                    self.calls.append((began, ended, last - count + 1, last))
                    self.answered_at = ended
                elif not answer:
                    raise OSError("closed")
                else:
                    self.refused.append((ended, answer.decode().strip()))
                    time.sleep(0.01)
            except OSError:
                line = None
                time.sleep(0.02)

    def stop(self):
        self.stopped = True
        self.thread.join()


def disorder(calls):
    """The calls that got a number below one that had been answered before they began, and duplicates."""
    by_end = sorted(calls, key=lambda call: call[1])
    ends, largest, top = [call[1] for call in by_end], [], 0
    for call in by_end:
        top = max(top, call[3])
        largest.append(top)
    late = []
    for call in calls:
        before = bisect.bisect_left(ends, call[0])
        if before and largest[before - 1] >= call[2]:
            late.append((call, largest[before - 1]))
    runs, twice, end = sorted((call[2], call[3]) for call in calls), 0, 0
    for first, last in runs:
        twice += max(0, min(end, last) - first + 1)
        end = max(end, last)
    return late, twice


class Drill:
    def __init__(self, server, program, folder, encrypted):
        self.calls, self.callers, self.tls, flags = [], [], None, ["--session_timeout_ms=4000"]
        if encrypted:
            files = conformance.certificates(folder)
            cert, key = files["server"]
            flags += [f"--tls_cert={cert}", f"--tls_key={key}", f"--tls_client_ca={files['ca']}"]
            self.tls = ssl.create_default_context(cafile=files["ca"])
            self.tls.load_cert_chain(cert, key)
        self.cluster = cluster.Cluster(server, program, folder, flags=flags)
        self.program = program

    def __enter__(self):
        self.cluster.__enter__()
        self.members, self.zookeeper = self.cluster.members, self.cluster.zookeeper
        self.registry = f"--registry=zk://127.0.0.1:{self.zookeeper.port}/firn/drill"
        assert os.spawnv(os.P_WAIT, self.program, [self.program, "tags", "create", TAG, "strategy=segment", "start=1",
                                                   "buffer=owner", f"step={STEP}", "step_max=100000", self.registry]) == 0
        self.callers = [Caller(member, self.calls, self.tls) for member in self.members for _ in range(2)]
        cluster.patiently("not every server gives numbers", self.all_serve)
        return self

    def __exit__(self, *_):
        for caller in self.callers:
            caller.stop()
        self.cluster.__exit__()

    def all_serve(self):
        """Whether each server answers each of its callers, and refuses none for half a second."""
        now = time.monotonic()
        time.sleep(0.5)
        return not self.refusals(now) and all(caller.answered_at > now for caller in self.callers)

    def nothing_is_wrong(self):
        """Whether the commands for operators find no fault."""
        return all(subprocess.run([self.program, command, self.registry], stdout=subprocess.DEVNULL).returncode == 0
                   for command in ("audit", "doctor"))

    def metrics(self, member):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{member.admin}/metrics", timeout=5) as page:
                return page.read().decode()
        except OSError:
            return ""

    def owner(self):
        """The server that owns the tag, as all others show it; None while they disagree."""
        owners = {found for member in self.members
                  for found in re.findall(r'^firn_tag_owner\{.*owner="([^"]+)".*\} 1$', self.metrics(member), re.M)}
        named = [member for member in self.members if member.address in owners]
        return named[0] if len(owners) == 1 and named else None

    def settled(self):
        cluster.patiently("the servers do not agree on an owner", self.owner)
        return self.owner()

    def gap(self, since):
        """Seconds from `since` to the end of the first call that began later and was answered."""
        def first():
            return [call for call in self.calls[-5000:] if call[0] > since]
        cluster.patiently("no call is answered", first)
        return min(call[1] for call in first()) - since

    def refusals(self, since):
        return [said for caller in self.callers for at, said in caller.refused if at > since]


def killed_owner(drill):
    """The owner is killed, and started again."""
    for _ in range(2):
        owner = drill.settled()
        since = time.monotonic()
        owner.signal(signal.SIGKILL)
        owner.process.wait()
        gap = drill.gap(since + 0.05)
        print(f"    first number after {gap:.1f} s", flush=True)
        assert gap < TAKEOVER_S + 2, gap
        owner.start()
        owner.await_ready()
        cluster.patiently("not every server gives numbers", drill.all_serve)


def paused_owner(drill):
    """The owner is paused beyond its window, then continues in the middle of its calls."""
    for pause_s in 1, 2 * WINDOW_S:
        owner = drill.settled()
        owner.signal(signal.SIGSTOP)
        time.sleep(pause_s)
        owner.signal(signal.SIGCONT)
        cluster.patiently("not every server gives numbers", drill.all_serve)


def drained_owner(drill):
    """Each server is stopped by SIGTERM and started again, the owner first; no call is refused."""
    for member in [drill.settled(), *drill.members]:
        since = time.monotonic()
        member.drain()
        kept = [said for said in drill.refusals(since) if "DRAINING" not in said]
        assert not kept, kept[:5]
        member.start()
        member.await_ready()
        cluster.patiently("not every server gives numbers", drill.all_serve)
        time.sleep(1.25 * WINDOW_S + 0.5)  # a server may take over only then
    cluster.patiently("a command finds a fault", drill.nothing_is_wrong)


def restarted_zookeeper(drill):
    """ZooKeeper is away for longer than a window: numbers stop, and continue in order."""
    drill.zookeeper.kill()
    time.sleep(2 * WINDOW_S)
    drill.zookeeper.start()
    cluster.patiently("not every server gives numbers", drill.all_serve)


def encrypted(drill):
    """The servers require TLS and certificates, also of each other; the owner is killed."""
    killed_owner(drill)


SCENARIOS = [killed_owner, paused_owner, drained_owner, restarted_zookeeper, encrypted]


def main():
    words = sys.argv[1:]
    only = words[words.index("--only") + 1] if "--only" in words else None
    numbers = calls = twice = late = faults = 0
    for scenario in SCENARIOS:
        if only and scenario.__name__ != only:
            continue
        print(scenario.__name__.replace("_", "-") + ": " + scenario.__doc__, flush=True)
        folder = tempfile.mkdtemp(prefix="firn-order-")
        drill = Drill(*(os.path.abspath(path) for path in words[:2]), folder, scenario is encrypted)
        try:
            with drill:
                scenario(drill)
        except (AssertionError, SystemExit):
            traceback.print_exc(file=sys.stdout)
            print(*{caller.refused[-1][1] for caller in drill.callers if caller.refused}, sep="\n    ")
            for member in drill.cluster.members:
                with open(member.log_path) as log:
                    print(member.address, *log.readlines()[-60:], sep="\n    ")
            faults += 1
        wrong, again = disorder(drill.calls)
        for call, largest in wrong[:3]:
            print(f"    {call[2]} to {call[3]} was answered although {largest} had been before")
        numbers += sum(last - first + 1 for _, _, first, last in drill.calls)
        calls, twice, late = calls + len(drill.calls), twice + again, late + len(wrong)
        shutil.rmtree(folder, ignore_errors=True)
    for name, value in [("calls", calls), ("ids", numbers), ("duplicates", twice), ("out of order", late),
                        ("verdict", "BROKEN" if faults or twice or late else "every promise was kept")]:
        print(f"  {name:18} {value}")
    return 1 if faults or twice or late else 0


if __name__ == "__main__":
    sys.exit(main())
