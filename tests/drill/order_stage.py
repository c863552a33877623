"""The cluster, callers and judge of order_drill.py."""

import bisect
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "conformance"))
import cluster  # noqa: E402
import conformance  # noqa: E402
import redis_bursts  # noqa: E402

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
    """Three servers, six callers and a tag, as the scenario of this name needs them."""

    def __init__(self, server, program, folder, scenario):
        self.calls, self.callers, self.tls, self.redis, flags = [], [], None, None, ["--session_timeout_ms=4000"]
        self.makes_tag = ["tags", "create", TAG, "strategy=segment", "start=1", "buffer=owner", f"step={STEP}",
                          "step_max=100000"]
        if scenario == "first_use":
            self.makes_tag = ["set", "default_strategy=counter"]
        if scenario == "stored_in_redis":
            self.redis = redis_bursts.Redis(folder)
            stores = os.path.join(folder, "stores.ini")
            with open(stores, "w") as file:
                file.write(f"[main]\nkind = redis\naddress = 127.0.0.1:{self.redis.port}\n")
            flags.append(f"--stores_file={stores}")
            self.makes_tag.append("store=main")
        if scenario == "drained_owner":
            flags.append("--issue_wait_ms=2500")  # on a busy machine a handover takes a while, a takeover longer
        if scenario == "encrypted":
            files = conformance.certificates(folder)
            cert, key = files["server"]
            flags += [f"--tls_cert={cert}", f"--tls_key={key}", f"--tls_client_ca={files['ca']}"]
            self.tls = ssl.create_default_context(cafile=files["ca"])
            self.tls.load_cert_chain(cert, key)
        self.cluster = cluster.Cluster(server, program, folder, flags=flags,
                                       wired=scenario in ("isolated_owner", "disconnected_owner"))
        self.program = program

    def __enter__(self):
        self.cluster.__enter__()
        self.members, self.zookeeper = self.cluster.members, self.cluster.zookeeper
        self.registry = f"--registry=zk://127.0.0.1:{self.zookeeper.port}/firn/drill"
        assert self.does(*self.makes_tag)
        self.callers = [Caller(member, self.calls, self.tls) for member in self.members for _ in range(2)]
        cluster.patiently("not every server gives numbers", self.all_serve)
        return self

    def __exit__(self, *_):
        for caller in self.callers:
            caller.stop()
        self.cluster.__exit__()
        if self.redis:
            self.redis.close()

    def all_serve(self):
        """Whether each server answers each of its callers, and refuses none for half a second."""
        now = time.monotonic()
        time.sleep(0.5)
        return not self.refusals(now) and all(caller.answered_at > now for caller in self.callers)

    def served(self):
        """Whether any caller was answered in half a second."""
        now = time.monotonic()
        time.sleep(0.5)
        return any(caller.answered_at > now for caller in self.callers)

    @staticmethod
    def lines(member, text):
        """The number of lines in the member's log that contain the text."""
        with open(member.log_path) as log:
            return sum(text in line for line in log)

    def run(self, *words):
        return subprocess.run([self.program, *words, self.registry], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              text=True)

    def does(self, *words):
        """Whether a command succeeds."""
        return self.run(*words).returncode == 0

    def nothing_is_wrong(self):
        """Whether the commands for operators find no fault."""
        return all(map(self.does, ("audit", "doctor")))

    def status_owners(self):
        """The owners of the tag as the servers' status pages show them, with the time since when."""
        def owner(member):
            with urllib.request.urlopen(f"http://127.0.0.1:{member.admin}/v1/status", timeout=5) as page:
                tags = [tag for tag in json.load(page)["tags"] if tag["tag"] == TAG]
            assert all(("owner" in tag) == ("owner_since" in tag) for tag in tags), tags
            return {tag.get("owner") for tag in tags}
        return set().union(*(owner(member) for member in self.members))

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

    def gap_elsewhere(self, owner, since):
        """Seconds from `since` to the first number that a caller of another server got later, once it had been refused."""
        others = [caller for caller in self.callers if caller.member is not owner]
        assert any(at > since for caller in others for at, _ in caller.refused), "no call was refused"
        refused = max(at for caller in others for at, _ in caller.refused)
        cluster.patiently("no call is answered", lambda: all(caller.answered_at > refused for caller in others))
        return refused - since

    def refusals(self, since):
        return [said for caller in self.callers for at, said in caller.refused if at > since]
