#!/usr/bin/python3
"""A rolling upgrade under load, as tools/package/UPGRADE.md describes it: servers, clients and commands of two versions in one
cluster.

    upgrade_drill.py BIN [--old TREE] [--languages LANGUAGE,...]

BIN is the folder of this tree's programs; the older version's are in TREE/build/dev/bin. Without TREE, this version also
plays the older one. Clients of both versions call during the whole drill, in all languages that a version has, or those
named. Three servers with a real ZooKeeper are stopped, killed, upgraded, and put back to the older version. The commands of the
page run as printed.

Every id of every client and command is recorded. None may be issued twice, and no call may fail.
"""

import collections
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "conformance"))
import cluster  # noqa: E402
import driver_process  # noqa: E402

# The tags of each language's clients: snowflake ids, numbers with ranges in memory, numbers that rise over the cluster.
TAGS = {"cpp": ("default", "number"), "python": ("default", "strict"), "go": ("number",), "java": ("default",),
        "typescript": ("number",), "rust": ("default",)}
MAKES_TAGS = (("number", "strategy=segment"), ("strict", "strategy=segment", "buffer=none"),
              ("order", "strategy=dated", "text=ORD-{period}-{count}"))
OPTIONS = {"deadline_ms": 30_000, "attempt_limit_ms": 5_000}
CALLS = 30  # of each thread, between one step and the next
THREADS = 2
# A flag that the older version has and this one ignores with a warning.
FLAGS = ("--drain_notice_ms=500", "--session_timeout_ms=4000", "--issue_wait_ms=4000", "--turn_us_max=2000")
with open(os.path.join(ROOT, "tools", "package", "UPGRADE.md"), encoding="utf-8") as page:
    PAGE = re.findall(r"(?:^ {4,}|`)((?:firn|firn-server|curl) [^`\n]*-[^`\n]+)", page.read(), re.MULTILINE)
BUILD = ("import builds, json, sys; print(); "
         "print(json.dumps(builds.build(sys.argv[1], sys.argv[2])))")


class Version:
    """The programs and clients of one version."""

    def __init__(self, name, tree, programs, folder):
        self.name, self.tree, self.programs, self.folder = name, tree, programs, os.path.join(folder, name)
        os.makedirs(self.folder)

    def program(self, name):
        return os.path.join(self.programs, name)

    def has(self, language):
        return language == "cpp" or os.path.isdir(os.path.join(self.tree, "client", language))

    @functools.cache
    def driver(self, language):
        """The command of a client, which the version's own tree builds."""
        if language == "cpp":
            return [self.program("conformance_driver")]
        done = subprocess.run([sys.executable, "-B", "-c", BUILD, language, os.path.join(self.folder, language)],
                              cwd=os.path.join(self.tree, "tests", "conformance"), stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"the {language} client of the {self.name} version cannot be built: {done.stdout}")
        return json.loads(done.stdout.splitlines()[-1])

    def __str__(self):
        return self.name


class Drill:
    def __init__(self, old, new, languages, folder):
        self.old, self.new, self.languages, self.folder = old, new, languages, folder
        self.versions = [old] if old is new else [old, new]
        self.cluster = cluster.Cluster(old.program("firn-server"), old.program("firn"), folder, flags=FLAGS)
        self.ids, self.drivers, self.turns = collections.Counter(), [], 0

    def __enter__(self):
        commands = [(version, language, version.driver(language))
                    for version in self.versions for language in self.languages if version.has(language)]
        self.cluster.__enter__()
        self.members = self.cluster.members
        self.registry = f"--registry=zk://127.0.0.1:{self.cluster.zookeeper.port}/firn/drill"
        for tag in MAKES_TAGS:
            self.firn(self.old, "tags", "create", *tag, self.registry)
        with open(os.path.join(self.folder, "drivers.log"), "w") as log:
            for version, language, command in commands:
                for tag in TAGS[language]:
                    self.begin(f"{version} {language} client, {tag}", tag, driver_process.Driver(command, log))
        return self

    def __exit__(self, *_):
        for _, _, driver, _ in self.drivers:
            cluster.programs.end(driver.process)
        self.cluster.__exit__()

    def begin(self, name, tag, driver):
        driver.ask("open", servers="firn://" + ",".join(member.address for member in self.members[:2]), **OPTIONS)
        file = os.path.join(self.folder, f"ids-{len(self.drivers)}")
        driver.ask("start", tag=tag, threads=THREADS, file=file)
        self.drivers.append((name, tag, driver, file))

    def firn(self, version, *words):
        """Runs the command of a version."""
        done = cluster.again(lambda: subprocess.run([version.program("firn"), *words], capture_output=True, text=True),
                             makes="create" in words)
        if done.returncode != 0:
            raise AssertionError(f"firn {' '.join(words)} of the {version} version exits with {done.returncode}:\n"
                                 f"{done.stdout}{done.stderr}")

    def paste(self, begin, member=None):
        """Runs the page's command that begins so, with the new version's programs and the addresses of this drill."""
        command, = {one for one in PAGE if one.startswith(begin)}
        command = command.replace("/etc/firn", self.folder)
        if member:
            command = command.replace("127.0.0.1:7610", f"127.0.0.1:{member.admin}")
        place = {**os.environ, "PATH": f"{self.new.programs}:{os.environ['PATH']}", "registry": self.registry.partition("=")[2]}
        return self.await_success(["bash", "-c", command], cwd=self.folder, env=place)

    def take(self, version, member, tag):
        """Takes an id by a version's command from one server, which may refuse a new tag at first."""
        def taken():
            done = subprocess.run([version.program("firn"), "next", tag, f"--servers=list://{member.address}",
                                   "--deadline_ms=30000"], capture_output=True, text=True)
            self.ids.update([(tag, done.stdout.strip())] * (done.returncode == 0))
            return done.returncode == 0
        cluster.patiently(f"firn next {tag} of the {version} version gets nothing from {member.address}", taken)

    # --- what is checked after each step ------------------------------------------------------------

    def check(self, versions=None):
        """Every client gets more ids; commands of both versions work, and what one creates all servers serve."""
        versions, self.turns = versions or self.versions, self.turns + 1
        for name, _, driver, _ in self.drivers:
            before = driver.ask("so_far")["calls"]
            cluster.patiently(f"the {name} gets nothing", lambda: driver.ask("so_far")["calls"] >= before + CALLS)
        for version in versions:
            tag = f"tag-{version}-{self.turns}"
            self.firn(version, "tags", "create", tag, "strategy=segment", "start=1", self.registry)
            self.firn(version, "tags", "set", tag, "step=50", self.registry)
        for version in versions:
            for verb in "audit", "servers":
                self.await_success([version.program("firn"), verb, self.registry])
            self.firn(version, "tags", "list", self.registry)
            for member in self.members:
                for tag in ("order", "default", *(f"tag-{maker}-{self.turns}" for maker in versions)):
                    self.take(version, member, tag)

    @staticmethod
    def await_success(command, **options):
        """Runs a command until it succeeds. On a busy machine, a server can be slow to answer or to become ready."""
        done = []

        def succeeds():
            done[:] = [subprocess.run(command, capture_output=True, text=True, **options)]
            return done[0].returncode == 0
        try:
            cluster.patiently("", succeeds)
        except SystemExit:
            raise AssertionError(f"{' '.join(command)} exits with {done[0].returncode}:\n"
                                 f"{done[0].stdout}{done[0].stderr}") from None
        return done[0].stdout + done[0].stderr

    @staticmethod
    def machine(member):
        with urllib.request.urlopen(f"http://127.0.0.1:{member.admin}/v1/status", timeout=30) as answer:
            return json.load(answer)["machine"]

    # --- steps --------------------------------------------------------------------------------------

    def step(self, what):
        print(f"  {time.strftime('%H:%M:%S')} {what}", flush=True)

    def restart(self, member, version, killed=False):
        """Ends a server and starts a version with the same flags, state and address. It has the same machine id."""
        held = self.machine(member)
        if killed:
            member.signal(signal.SIGKILL)
            member.process.wait()
        else:
            member.drain()
            assert member.process.returncode == 0, f"{member.address} ended with {member.process.returncode}"
        member.command[0] = version.program("firn-server")
        if version is self.new:
            with open(os.path.join(self.folder, "firn-server.flags"), "w") as flags:
                flags.write("\n".join(member.command[1:]))
            assert "turn_us_max" in self.paste("firn-server --check_config")
        member.start()
        member.await_ready()
        if version is self.new:
            self.paste("curl -sf", member)
            self.paste("firn servers")
        addresses = {one.address for one in self.members}
        for one in self.members:
            cluster.patiently("not every server is listed", lambda one=one: addresses <= one.listed())
        assert self.machine(member) == held, f"{member.address} held machine id {held}, and now {self.machine(member)}"
        self.step(f"{'killed' if killed else 'stopped'} server {'abc'[self.members.index(member)]}; "
                  f"the {version} version continues with machine id {held}")
        self.check()

    def refuse_what_is_new(self):
        """`firn tags create` refuses a tag that an older server would refuse, and says what to do."""
        done = subprocess.run([self.new.program("firn"), "tags", "create", "rising", "start=1", "buffer=owner", self.registry],
                              capture_output=True, text=True)
        assert done.returncode == 2 and "upgrade it first" in done.stderr, done
        assert any(member.address in done.stderr for member in self.members[1:]), done

    def upgrade(self):
        one, two, three = self.members
        self.step(f"three servers of the {self.old} version")
        self.paste("firn backup")
        self.paste("firn audit")
        self.check()
        self.restart(one, self.new)
        if self.old is not self.new:
            self.refuse_what_is_new()
            self.restart(two, self.new, killed=True)
            self.restart(one, self.new, killed=True)
            self.restart(two, self.old)
            self.restart(one, self.old, killed=True)
            self.restart(one, self.new)
        self.restart(two, self.new, killed=True)
        self.restart(three, self.new)
        if self.old is not self.new:
            self.restart(three, self.old)
            self.restart(three, self.new)
        self.paste("firn upgrade")
        self.firn(self.new, "tags", "create", "rising", "start=1", "buffer=owner", self.registry)
        for member in self.members:
            self.take(self.new, member, "rising")
        self.check([self.new])  # the audit of 0.1.0 reports such a tag as a fault
        self.await_success([self.new.program("firn"), "doctor", self.registry])
        self.step("firn upgrade; a tag with buffer=owner; firn audit and firn doctor find no fault")

    def verdict(self):
        """Ends the clients, and counts. Whether nothing was broken."""
        calls = failed = 0
        for name, tag, driver, file in self.drivers:
            told = driver.ask("stop")
            calls, failed = calls + told["answered"], failed + told["failed"]
            print(f"  {name:30} {told['answered']:8} ids, {told['failed']} failed calls, "
                  f"longest call {told['longest_us'] / 1e6:.2f} s", told.get("failure", "")[:600])
            with open(file) as lines:
                self.ids.update((tag, line.strip()) for line in lines)
        twice = [f"{tag} {one}" for (tag, one), count in self.ids.items() if count > 1]
        for label, value in (("ids", self.ids.total()), ("issued twice", len(twice)), ("failed calls", failed)):
            print(f"  {label:18} {value}")
        if twice:
            print("  issued twice:", ", ".join(twice[:5]))
        return calls > 0 and not failed and not twice


def main():
    words = sys.argv[1:]
    named = {name: words[words.index(name) + 1] for name in ("--old", "--languages") if name in words}
    folder = tempfile.mkdtemp(prefix="firn-upgrade-")
    new = Version("new", ROOT, os.path.abspath(words[0]), folder)
    old = new
    if "--old" in named:
        tree = os.path.abspath(named["--old"])
        old = Version("old", tree, os.path.join(tree, "build", "dev", "bin"), folder)
    languages = named.get("--languages", ",".join(TAGS)).split(",")
    kept = False
    try:
        with Drill(old, new, languages, folder) as drill:
            try:
                drill.upgrade()
                kept = drill.verdict()
            except BaseException:
                for member in drill.members:
                    with open(member.log_path) as log:
                        print(member.address, *log.readlines()[-30:], sep="\n    ")
                raise
    except (AssertionError, SystemExit, driver_process.Red):
        traceback.print_exc(file=sys.stdout)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"  {'verdict':18} {'every promise was kept' if kept else 'BROKEN'}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
