"""The cluster, callers and screens of operators_drill.py."""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in "conformance", "../client/python":
    sys.path.insert(0, os.path.join(HERE, "..", folder))
import cluster  # noqa: E402
import firn  # noqa: E402

TAGS = {  # name: fields
    "order": ["strategy=segment", "step=20", "step_max=200", "start=1"],
    "coupon": ["strategy=segment", "step=20", "step_max=200", "start=1", "plugins=obfuscate", "obfuscate.width=12",
               "obfuscate.key=k1", "obfuscate.check=dc95c0"],
    "ticket": ["strategy=dated", "zone=UTC", "step=20", "step_max=200"],
}
SNOWFLAKE = "default"
COUNT = 5
NOT_TRUSTWORTHY, REFUSED, USAGE = 6, 4, 2  # exit codes of firn


class Caller:
    """Takes numbers of one tag from one server, until stopped."""

    def __init__(self, member, tag, taken):
        self.member, self.tag, self.taken, self.stopped = member, tag, taken, False
        self.answered, self.last, self.reason = 0, 0, ""
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        line = None
        while not self.stopped:
            try:
                line = line or http.client.HTTPConnection("127.0.0.1", self.member.port, timeout=20)
                line.request("GET", f"/v1/ids/{self.tag}?count={COUNT}")
                answer = line.getresponse()
                text = answer.read().decode()
                if answer.status == 200:
                    said = json.loads(text)
                    self.taken.extend(said.get("numbers") or [int(one) for one in said["ids"]])
                    self.answered, self.last = self.answered + 1, self.taken[-1]
                    self.reason = ""
                else:
                    self.reason = text
            except (OSError, http.client.HTTPException) as lost:
                line, self.reason = None, f"no answer: {lost}"
            time.sleep(0.02)

    def stop(self):
        self.stopped = True
        self.thread.join()


class Lessee:
    """Makes ids under a leased machine id, until stopped."""

    def __init__(self, members, taken):
        self.taken, self.stopped, self.made, self.failed, self.reason, self.first = taken, False, 0, 0, "", ""
        self.client = firn.Client("list://" + ",".join(member.address for member in members), deadline_ms=2_000)
        self.generator = firn.LocalGenerator(self.client, "operators", ahead_ms=120_000, timeout_ms=60_000)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stopped:
            try:
                self.taken.extend(self.generator.next() for _ in range(COUNT))
                self.made += COUNT
                self.reason = ""
            except firn.NoLease as none:
                self.failed += 1
                self.reason = str(none)
                self.first = self.first or self.reason
            time.sleep(0.02)

    def stop(self):
        self.stopped = True
        self.thread.join()
        self.generator.close()
        self.client.close()


class Drill:
    def __init__(self, server, program, folder, tags=TAGS, init=()):
        self.program, self.folder, self.steps, self.tags = program, folder, 0, tags
        self.taken = {tag: [] for tag in (*tags, SNOWFLAKE)}
        self.callers, self.lessee = [], None
        keys = os.path.join(folder, "keys")
        os.makedirs(keys, mode=0o700)
        with open(os.open(f"{keys}/k1.key", os.O_WRONLY | os.O_CREAT, 0o600), "w") as key:
            key.write("00" * 32)
        self.cluster = cluster.Cluster(server, program, folder, flags=[
            f"--key_dir={keys}", "--session_timeout_ms=4000", "--issue_wait_ms=500"], init=init)

    def __enter__(self):
        self.cluster.__enter__()
        self.members, self.zookeeper = self.cluster.members, self.cluster.zookeeper
        self.registry = f"--registry=zk://127.0.0.1:{self.zookeeper.port}/firn/drill"
        for tag, fields in self.tags.items():
            self.create(tag, fields)
        self.begin()
        return self

    def create(self, tag, fields):
        self.does("tags", "create", tag, *fields)

    def __exit__(self, *_):
        self.end()
        self.cluster.__exit__()

    def begin(self):
        self.callers = [Caller(member, tag, self.taken[tag]) for member in self.members for tag in self.taken]
        self.lessee = Lessee(self.members, self.taken[SNOWFLAKE])

    def end(self):
        for caller in self.callers:
            caller.stop()
        if self.lessee:
            self.lessee.stop()
        self.callers, self.lessee = [], None

    # --- what operators do --------------------------------------------------------------------------------

    def says(self, *words):
        """Exit code and output of a command."""
        done = subprocess.run([self.program, *words, self.registry, "--timeout_ms=30000"], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def does(self, *words, code=0):
        """The output of a command that exits with `code`; it is repeated while the registry is slow."""
        said = []

        def ended():
            said[:] = self.says(*words)
            return said[0] not in (cluster.TRY_LATER, cluster.UNKNOWN)
        cluster.patiently(f"firn {' '.join(words)} is refused as slow: {said}", ended)
        assert said[0] == code, f"firn {' '.join(words)} exits with {said[0]}, not {code}:\n{said[1]}"
        return said[1]

    def interrupted(self, after_s, *words):
        """Kills a command in the middle."""
        process = subprocess.Popen([self.program, *words, self.registry], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(after_s)
        process.kill()
        return process.wait()

    def interrupted_once_begun(self, document):
        """Kills a restore with a backup as soon as the registry knows that it is unfinished."""
        process = subprocess.Popen([self.program, "restore", f"--from={document}", self.registry], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            cluster.patiently("the restore does not begin", lambda: f"--from={document}" in self.says("doctor")[1])
        finally:
            process.kill()
            process.wait()

    def backup(self, name):
        path = os.path.join(self.folder, name)
        self.does("backup", path)
        return path

    def stop_servers(self):
        for member in self.members:
            member.drain()

    def start_servers(self):
        for member in self.members:
            member.start()

    def await_renewals(self):
        """Waits until each server has renewed its claim."""
        renewals = lambda: [json.loads(self.asked(member, "/v1/status")[1] or '{"registry": {"renewals": 0}}')
                            ["registry"]["renewals"] for member in self.members]
        before = renewals()
        cluster.patiently("not every server renewed its claim",
                          lambda: all(now > was for was, now in zip(before, renewals())))

    def printed(self):
        """The words of the restore that the servers print."""
        for member in self.members:
            trouble = json.loads(self.asked(member, "/v1/status")[1] or "{}").get("trouble", "")
            if found := re.search(r"firn restore (--.*)", trouble):
                return found[1]
        return ""

    def commands(self):
        """The restore commands that all screens show, without what a shell does not read."""
        texts = {screen: self.says(screen)[1] for screen in ("doctor", "audit")}
        for member in self.members:
            texts[f"status of {member.address}"] = json.loads(self.asked(member, "/v1/status")[1] or "{}").get("trouble", "")
            texts[f"console of {member.address}"] = self.asked(member, "/v1/audit")[1]
            with open(member.log_path) as log:
                texts[f"log of {member.address}"] = log.read()
        found = {screen: re.findall(r"firn restore (--[^\n\"]*)", text) for screen, text in texts.items()}
        return {screen: commands[-1].strip() if commands else "" for screen, commands in found.items()}

    def agree_on_the_command(self, document):
        """Waits until all screens show the same command, which names the document."""
        seen = {}

        def agree():
            nonlocal seen
            seen = self.commands()
            return len(set(seen.values())) == 1 and f"--from={document}" in seen["doctor"]
        try:
            cluster.patiently("", agree)
        except SystemExit:
            raise AssertionError(f"the screens show different commands: {json.dumps(seen, indent=1)}\n{self.logs()}") from None
        return seen["doctor"]

    def paste(self, words):
        """Runs a printed command as a shell does."""
        done = subprocess.run(["sh", "-c", f"{self.program} restore {words}"], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    @staticmethod
    def at_once(*what):
        """Does everything at the same time; returns the results."""
        results = [None] * len(what)

        def operate(index):
            results[index] = what[index]()
        operators = [threading.Thread(target=operate, args=[index]) for index in range(len(what))]
        for operator in operators:
            operator.start()
        for operator in operators:
            operator.join()
        return results

    # --- what the screens show ----------------------------------------------------------------------------

    def asked(self, member, path):
        line = http.client.HTTPConnection("127.0.0.1", member.admin, timeout=20)
        try:
            line.request("GET", path)
            answer = line.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            line.close()

    def screens(self):
        """Everything that an operator can see, now."""
        before = [caller.answered for caller in self.callers]
        made = self.lessee.made
        time.sleep(1.5)
        return {
            "doctor": self.says("doctor"), "audit": self.says("audit"),
            "frozen": ["\nfirn_cluster_frozen 1\n" in self.asked(member, "/metrics")[1] for member in self.members],
            "readyz": {tag: [self.asked(member, f"/readyz?tag={tag}")[0] for member in self.members]
                       for tag in self.taken},
            "served": {tag: [caller.answered > was for caller, was in zip(self.callers, before) if caller.tag == tag]
                       for tag in self.taken},
            "reasons": {f"{caller.tag} {caller.member.address}": caller.reason for caller in self.callers if caller.reason},
            "lessee": self.lessee.made > made or self.lessee.reason,
            "who": self.says("who", *map(str, self.taken[SNOWFLAKE][-6:]))[1] if self.taken[SNOWFLAKE] else "",
        }

    @staticmethod
    def well(seen):
        """Whether all screens show that nothing is wrong."""
        return (seen["doctor"][0] == seen["audit"][0] == 0 and not any(seen["frozen"]) and seen["lessee"] is True and
                "no process" not in seen["who"] and
                all(status == 200 for tag in seen["readyz"].values() for status in tag) and
                all(served for tag in seen["served"].values() for served in tag))

    @staticmethod
    def lost(seen):
        """Whether all screens show a loss of data and the command that repairs it. Numbers in memory may be served, and
        readiness says for which tags they are."""
        return (seen["doctor"][0] == NOT_TRUSTWORTHY and seen["audit"][0] != 0 and all(seen["frozen"]) and
                all("firn restore" in seen[screen][1] for screen in ("doctor", "audit")) and
                all((status == 200) == served for tag in seen["readyz"]
                    for status, served in zip(seen["readyz"][tag], seen["served"][tag], strict=True)))

    @staticmethod
    def foreign(seen):
        """Whether no server serves a number, because the registry holds another cluster. The program with a lease makes ids
        until its lease ends, which is longer than a drill waits."""
        return (seen["doctor"][0] == NOT_TRUSTWORTHY and seen["audit"][0] != 0 and "unknown" in seen["who"] and
                all("belongs to cluster" in seen[screen][1] for screen in ("doctor", "audit")) and
                not any(served for tag in seen["served"].values() for served in tag) and
                all(status == 503 for tag in seen["readyz"].values() for status in tag))

    def agree(self, what, shows):
        """Waits until all screens show this."""
        seen = {}

        def shown():
            nonlocal seen
            seen = self.screens()
            return shows(seen)
        try:
            cluster.patiently("", shown)
        except SystemExit:
            raise AssertionError(f"{what}: the screens do not agree on '{shows.__name__}': "
                                 f"{json.dumps(seen, indent=1)}\n{self.logs()}") from None
        self.judge(what)
        self.steps += 1
        print(f"  {what}: {shows.__name__}", flush=True)

    def count(self):
        return sum(map(len, self.taken.values()))

    def twice(self):
        return sum(len(numbers) - len(set(numbers)) for numbers in map(list, self.taken.values()))

    def judge(self, what):
        assert self.twice() == 0, f"{what}: {self.twice()} ids or numbers were issued twice"

    def logs(self):
        logs = ""
        for member in self.members:
            with open(member.log_path) as log:
                logs += f"\n--- {member.address}\n{self.asked(member, '/v1/status')[1]}\n" + log.read()[-9000:]
        return logs


def play(kind, scenarios):
    """Plays the scenarios, {function: further arguments of `kind`}, or the one that --only names. Returns the exit code."""
    words = sys.argv[1:]
    only = words[words.index("--only") + 1] if "--only" in words else None
    steps = ids = twice = faults = 0
    for scenario, more in scenarios.items():
        if only and scenario.__name__ != only:
            continue
        print(scenario.__name__.replace("_", "-") + ": " + scenario.__doc__, flush=True)
        folder = tempfile.mkdtemp(prefix="firn-operators-")
        drill = kind(*(os.path.abspath(path) for path in words[:2]), folder, **more)
        try:
            with drill:
                scenario(drill)
        except (Exception, SystemExit):
            traceback.print_exc(file=sys.stdout)
            faults += 1
        steps, ids, twice = steps + drill.steps, ids + drill.count(), twice + drill.twice()
        shutil.rmtree(folder, ignore_errors=True)
    for name, value in [("ids", ids), ("duplicates", twice), ("screens agreed", f"after {steps} steps"),
                        ("verdict", "BROKEN" if faults or twice else "every promise was kept")]:
        print(f"  {name:18} {value}")
    return 1 if faults or twice else 0
