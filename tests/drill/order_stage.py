"""The cluster of order_drill.py, with its callers."""

import collections
import glob
import itertools
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "conformance"))
import cluster  # noqa: E402
import conformance  # noqa: E402
import redis_bursts  # noqa: E402
from order_callers import Caller, HttpCaller, PipelinedCaller  # noqa: E402

TAG = "order"
STEP, STEP_MAX = 1000, 100_000
CONNECTIONS = 24
FAKETIME = (glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1") or [""])[0]
WINDOW_S = 3.0
TAKEOVER_S = 1.25 * WINDOW_S + 1


class ClockedMember(cluster.Member):
    """A server whose wall clock can be stepped. Its boot clock stays right."""

    def start(self, *more):
        self.step_clock("+0")
        # A sanitizer's library would have to be the first.
        fake = [f"LD_PRELOAD={FAKETIME}", f"FAKETIME_TIMESTAMP_FILE={self.state}.clock", "FAKETIME_NO_CACHE=1",
                "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1", "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0"]
        with open(self.log_path, "a") as log:
            self.process = cluster.programs.start(["env", *fake, *self.command, *more], stderr=log)

    def step_clock(self, offset):
        """Sets the wall clock to an offset such as +1d."""
        with open(f"{self.state}.new", "w") as file:
            file.write(offset + "\n")
        os.replace(f"{self.state}.new", f"{self.state}.clock")


class ClockedCluster(cluster.Cluster):
    """Servers whose wall clocks can be stepped."""

    def member(self, folder, registry):
        return ClockedMember(self.server, folder, registry, *self.flags)


class Ensemble:
    """Three ZooKeepers."""

    def __init__(self, folder):
        ports = [[cluster.programs.free_port() for _ in range(2)] for _ in range(3)]
        peers = [f"server.{number}=127.0.0.1:{quorum}:{election}\n" for number, (quorum, election) in enumerate(ports, 1)]
        more = "initLimit=50\nsyncLimit=25\n" + "".join(peers)
        self.peers = [cluster.ZooKeeper(f"{folder}/{number}", more, number) for number in (1, 2, 3)]
        cluster.patiently("the ensemble has no leader", self.leader)
        self.hosts = ",".join(peer.hosts for peer in self.peers)

    def leader(self):
        """The leader, while the others follow it."""
        modes = [peer.mode() for peer in self.peers]
        return self.peers[modes.index("leader")] if sorted(modes) == ["follower", "follower", "leader"] else None

    def kill(self):
        for peer in self.peers:
            peer.kill()


def closes(member, clients):
    """Whether the member closes a client's new connection after its first call; otherwise keeps it among `clients`."""
    client = socket.create_connection(("127.0.0.1", member.port), cluster.PATIENCE_S)
    try:
        for _ in range(2):
            client.sendall(b"*1\r\n$4\r\nPING\r\n")
            if not client.recv(100):
                raise ConnectionError("closed")
    except ConnectionError:
        client.close()
        return True
    clients.append(client)
    return False


class Drill:
    """Three servers, at least six callers and a tag, as the scenario of this name needs them."""

    def __init__(self, server, program, folder, scenario):
        self.calls, self.callers, self.stops, self.tls, self.redis = [], [], [], None, None
        flags = ["--session_timeout_ms=4000"]
        self.makes_tag = ["tags", "create", TAG, "strategy=segment", "start=1", "buffer=owner", f"step={STEP}",
                          f"step_max={STEP_MAX}"]
        if scenario == "first_use":
            self.makes_tag = ["set", "default_strategy=counter"]
        if scenario == "edited_from_none":
            self.makes_tag[5] = "buffer=none"
            flags.append("--issue_wait_ms=2500")  # each number needs a write to ZooKeeper
        if scenario == "stored_in_redis":
            self.redis = redis_bursts.Redis(folder)
            stores = os.path.join(folder, "stores.ini")
            with open(stores, "w") as file:
                file.write(f"[main]\nkind = redis\naddress = 127.0.0.1:{self.redis.port}\n")
            flags.append(f"--stores_file={stores}")
            self.makes_tag.append("store=main")
        if scenario == "drained_owner":
            flags.append("--issue_wait_ms=2500")  # on a busy machine a handover takes a while, a takeover longer
        if scenario == "stopped_together":
            flags.append("--issue_wait_ms=1500")  # not as long as a server that has just started cannot take over
        if scenario == "full_owner":
            flags.append(f"--connections_max={CONNECTIONS}")
        if scenario == "encrypted":
            files = conformance.certificates(folder)
            cert, key = files["server"]
            flags += [f"--tls_cert={cert}", f"--tls_key={key}", f"--tls_client_ca={files['ca']}"]
            self.tls = ssl.create_default_context(cafile=files["ca"])
            self.tls.load_cert_chain(cert, key)
        made = ClockedCluster if scenario == "stepped_clock" else cluster.Cluster
        wired = scenario in ("isolated_owner", "disconnected_owner", "edited_from_none")
        self.cluster = made(server, program, folder, flags=flags, wired=wired,
                            zookeeper=Ensemble if scenario == "killed_zookeeper_leader" else cluster.ZooKeeper)
        self.kinds = [Caller, Caller]  # of each server's callers
        if scenario in ("killed_owner", "drained_owner", "stopped_together"):
            self.kinds += [HttpCaller, PipelinedCaller]
        if scenario == "edited_from_none":
            self.kinds = [HttpCaller, PipelinedCaller]  # INCRBY is refused with buffer=none
        self.program = program

    def __enter__(self):
        self.cluster.__enter__()
        self.members, self.zookeeper = self.cluster.members, self.cluster.zookeeper
        self.registry = f"--registry=zk://{self.zookeeper.hosts}/firn/drill"
        assert self.does(*self.makes_tag)
        self.callers = [kind(member, TAG, self.calls, self.tls) for member in self.members for kind in self.kinds]
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

    def all_refuse(self, reasons):
        """Whether each server refuses each call of its callers, for one of the reasons."""
        now = time.monotonic()
        time.sleep(2.5)  # longer than two calls wait
        return all(caller.answered_at < now and caller.refused and caller.refused[-1][0] > now
                   and any(reason in caller.refused[-1][1] for reason in reasons) for caller in self.callers)

    def issued(self):
        """How many numbers the callers got."""
        return sum(last - first + 1 for _, _, first, last in list(self.calls))

    def silence(self, step, member=None):
        """The longest time between two answers to one caller, of this server or any, while the step runs."""
        callers = [caller for caller in self.callers if member in (None, caller.member)]
        for caller in callers:
            caller.silence = 0.0
        step()
        now = time.monotonic()
        return max(max(caller.silence, now - caller.answered_at) for caller in callers)

    def restart(self, members):
        """Stops these servers together by SIGTERM, and starts them again. Notes in `stops` from when to when each was not
        ready, and when all had ended."""
        began = time.monotonic()
        for member in members:
            member.signal(signal.SIGTERM)
        for member in members:
            member.process.wait(cluster.PATIENCE_S)
        ended = time.monotonic()
        for member in members:
            member.start()
        for member in members:
            member.await_ready()
        cluster.patiently("not every server gives numbers", self.all_serve)
        self.stops.extend((member, began, ended, time.monotonic()) for member in members)

    def refuses_where_it_stops(self, since, *later):
        """Fails if a server refused a call while it neither stopped nor started, or for another reason. `later`: also permitted
        once all had ended that were stopped together."""
        def is_expected(member, at, reason):
            return any(member is stopped and begin <= at <= ready and (
                reason in ("DRAINING", "NOT_READY") or (at > ended and reason in later))
                for stopped, begin, ended, ready in self.stops)
        reasons, unexpected = collections.Counter(), []
        for caller in self.callers:
            for at, said in caller.refused:
                if at < since:
                    continue
                reason = re.search("DRAINING|NOT_READY|STORE_DOWN|$", said)[0] or said
                reasons[reason] += 1
                if not is_expected(caller.member, at, reason):
                    unexpected.append((caller.member.address, said))
        longest = max(call[1] - call[0] for call in list(self.calls) if call[0] > since)
        print(f"    refused: {', '.join(f'{count} {reason}' for reason, count in reasons.items()) or 'none'}; "
              f"longest call {1000 * longest:.0f} ms", flush=True)
        assert not unexpected, unexpected[:5]

    @staticmethod
    def lines(member, text):
        """The number of lines in the member's log that contain the text."""
        with open(member.log_path) as log:
            return sum(text in line for line in log)

    def run(self, *words):
        return subprocess.run([self.program, *words, self.registry], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              text=True)

    def does(self, *words):
        """Whether a command succeeds. Repeats one that writes while ZooKeeper does not answer in time."""
        writes = words[0] in ("tags", "set", "restore")
        done = cluster.again(lambda: self.run(*words), "create" in words) if writes else self.run(*words)
        return done.returncode == 0

    def findings(self):
        """What `firn doctor` and `firn audit` find, without the fixes."""
        lines = [line for words in ("doctor", "audit") for line in self.run(words).stdout.splitlines()]
        return [line for line in lines if re.match("(WRONG: |REFUSED|SOON|NOW|NOTE)", line)]

    def nothing_is_wrong(self):
        """Whether the commands for operators find no fault."""
        return all(map(self.does, ("audit", "doctor")))

    def status_owners(self):
        """The owners of the tag as `firn audit` and the servers' status pages show them, with the time since when."""
        def owner(member):
            with urllib.request.urlopen(f"http://127.0.0.1:{member.admin}/v1/status", timeout=5) as page:
                tags = [tag for tag in json.load(page)["tags"] if tag["tag"] == TAG]
            assert all(("owner" in tag) == ("owner_since" in tag) for tag in tags), tags
            return {tag.get("owner") for tag in tags}
        audit = json.loads(self.run("audit", "--json").stdout)
        audited = {part.get("owner") for part in audit.get("partitions", []) if TAG in part["tags"]}
        return audited.union(*(owner(member) for member in self.members))

    def page(self, member, path):
        """The status and the text of a page of the admin port."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{member.admin}{path}", timeout=5) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def shows(self, member, reasons):
        """Whether every screen of the server says that the tag is refused, for one of the reasons."""
        def names(text):
            return any(reason in text for reason in reasons)
        status, ready = self.page(member, f"/readyz?tag={TAG}")
        _, page = self.page(member, "/v1/status")
        shown = json.loads(page or "{}")
        tags = [tag.get("trouble", "") for tag in shown.get("tags", []) if tag["tag"] == TAG]
        refused = [tag["why"] for tag in shown.get("refused_tags", []) if tag["tag"] == TAG]
        return (status == 503 and names(ready) and all(map(names, [*tags, *refused])) and len(tags) == len(refused) == 1
                and f'firn_tag_refused{{tag="{TAG}",state="no_numbers"}} 1' in self.metrics(member))

    def metrics(self, member):
        return self.page(member, "/metrics")[1]

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
            recent = itertools.takewhile(lambda call: call[1] > since, reversed(self.calls))
            return [call for call in recent if call[0] > since]
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
