#!/usr/bin/python3
"""A language's client under load in two processes, while something happens to one of three real servers
or to ZooKeeper.

    drill.py LANGUAGE,... FIRN_SERVER FIRN [--driver PROGRAM] [--defaults] [--storm ROUNDS]

No call may fail while a server is healthy, no id may be issued twice, and numbers of a tag with an owner must rise
over clients, HTTP and Redis; the longest call of each scenario is printed, and at last a table of all. LANGUAGE is python, go, java, typescript, rust, or cpp, whose program is built
already: --driver conformance_driver; `all` are these six. The time limits are generous, so that a busy machine
changes no outcome; with --defaults they are the client's own, for figures on a quiet machine. Exit 77 when
something is not installed.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request

import builds
import cluster
import driver_process

GENEROUS = {"deadline_ms": 30_000, "attempt_limit_ms": 1_000}
CALLS = 30  # of each thread, between one event and the next


RISES = 50  # numbers for each caller

THREADS = 4
STORM_THREADS = 16  # of each of the two processes


class Drill:
    def __init__(self, servers, command, options, folder):
        self.servers, self.folder = servers, folder
        with open(os.path.join(folder, "drivers.log"), "a") as log:
            self.drivers = [driver_process.Driver(command, log) for _ in range(2)]
        seeds = ",".join(member.address for member in servers.members[:2])
        for driver in self.drivers:
            driver.ask("open", servers="firn://" + seeds, **options)
        self.given, self.failed, self.longest_ms = set(), 0, {}

    def more(self):
        """Every thread of both processes gets more answers."""
        for driver in self.drivers:
            before = driver.ask("so_far")["calls"]
            cluster.patiently("calls come to nothing", lambda: driver.ask("so_far")[
                "calls"] >= before + CALLS)

    def play(self, scenario, threads=THREADS):
        self.await_all_listed()
        files = [os.path.join(self.folder, f"ids-{i}") for i in range(len(self.drivers))]
        for driver, file in zip(self.drivers, files):
            driver.ask("start", tag="default", threads=threads, file=file)
        self.more()
        getattr(self, scenario)()
        self.more()
        longest, answered, duplicates = 0, 0, 0
        for driver, file in zip(self.drivers, files):
            told = driver.ask("stop")
            longest, answered = max(longest, told["longest_us"]), answered + told["answered"]
            if told["failed"]:
                self.failed += told["failed"]
                print(f"  failed: {told['failed']}, the first: {told['failure'][:600]}")
            with open(file) as lines:
                ids = [int(line) for line in lines]
            duplicates += len(ids) - len(set(ids)) + len(self.given.intersection(ids))
            self.given.update(ids)
        self.longest_ms[scenario] = longest / 1000
        print(f"{scenario:16} ids {answered}, duplicates {duplicates}, longest call "
              f"{longest / 1000:.1f} ms", flush=True)
        self.failed += duplicates

    # --- what happens -----------------------------------------------------------------------------

    def quiet(self):
        pass

    def killed(self):
        member = self.servers.members[0]
        member.signal(signal.SIGKILL)
        member.process.wait()
        self.more()
        member.start()
        member.await_ready()

    def paused(self):
        member = self.servers.members[1]
        member.signal(signal.SIGSTOP)
        self.more()
        member.signal(signal.SIGCONT)
        member.await_ready()

    def storm(self):
        """Kills and pauses of one server after the other, so that a second one begins before the caller has
        found out about the first: never all three at a time."""
        for turn in range(3 * self.rounds):
            killed, paused = (self.servers.members[(turn + i) % 3] for i in range(2))
            killed.signal(signal.SIGKILL)
            paused.signal(signal.SIGSTOP)
            killed.process.wait()
            self.more()
            paused.signal(signal.SIGCONT)
            killed.start()
            self.more()
            self.await_all_listed()

    def cut_off(self):
        """The member and its session are healthy, but clients get nothing from it."""
        member, wire = self.servers.members[0], cluster.Wire(self.servers.members[0].port)
        member.drain()
        member.start("--advertise=" + wire.address)
        self.await_listed(wire.address)
        self.more()
        wire.cut()
        self.more()
        wire.mend()
        member.drain()
        member.start()
        self.await_listed(member.address)
        wire.close()

    def await_listed(self, *addresses):
        """Waits until every client lists the addresses."""
        for driver in self.drivers:
            cluster.patiently(f"a client does not list all of {addresses}",
                              lambda one=driver: set(addresses) <= set(one.ask("view")["servers"]))

    def await_all_listed(self):
        """Waits until every server, and then every client, lists every server. A client can only call servers
        that it knows, and a server that has restarted is ready before the lists contain it again. After this,
        a client takes no list that lacks a server: the lists of all servers are newer."""
        members = self.servers.members
        addresses = {member.address for member in members}
        for member in members:
            member.await_ready()
        for member in members:
            cluster.patiently(f"{member.address} does not list all of {addresses} as ready",
                              lambda one=member: addresses <= one.listed())
        self.await_listed(*addresses)

    def drained(self):
        member = self.servers.members[2]
        member.drain()
        self.more()
        member.start()
        member.await_ready()

    def zookeeper_away(self):
        self.servers.zookeeper.kill()
        self.more()
        self.servers.zookeeper.start()

    def rolling_restart(self):
        for member in self.servers.members:
            member.drain()
            member.start()
            member.await_ready()
            self.await_listed(*(one.address for one in self.servers.members))
            self.more()

    def rising(self):
        """Takes numbers of a tag with an owner through both processes, HTTP and Redis in turn. Each must be larger than
        all before, whichever server answers."""
        create = [self.servers.firn, "tags", "create", "rising", "strategy=segment", "buffer=owner",
                  "--registry=" + self.servers.registry]
        cluster.patiently("the tag cannot be created",  # 4: it exists, after an unknown outcome
                          lambda: subprocess.run(create, stdout=subprocess.DEVNULL).returncode in (0, 4))
        first, second = self.servers.members[:2]
        takes = [lambda: self.by_http(first), lambda: self.by_redis(second)]
        for driver in self.drivers:
            takes += [lambda one=driver: one.ask("id", tag="rising")["ids"],
                      lambda one=driver: sorted(one.ask("ids", tag="rising", count=7)["ids"])]
        driver = self.drivers[0]
        cluster.patiently("no server owns the tag", lambda: driver.ask("id", tag="rising")["ids"])
        for member in self.servers.members:
            cluster.patiently("a server cannot take numbers from the owner", lambda one=member: self.by_http(one))
        last = disorder = 0
        for _ in range(RISES):
            for take in takes:
                numbers = []

                def taken():  # on a busy machine, the owner may fall silent for a while
                    numbers.extend(take())
                    return numbers

                cluster.patiently("a call is refused again and again", taken)
                disorder += numbers[0] <= last
                last = max([last, *numbers])
        print(f"rising           numbers up to {last}, out of order {disorder}", flush=True)
        self.failed += disorder

    @staticmethod
    def by_http(member):
        """A number of the tag `rising`; [] if the call is refused."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{member.port}/api/segment/get/rising", timeout=30) as answer:
                return [int(answer.read())]
        except OSError:
            return []

    @staticmethod
    def by_redis(member):
        """The same over Redis."""
        with socket.create_connection(("127.0.0.1", member.port), 30) as line:
            line.sendall(b"*2\r\n$4\r\nINCR\r\n$6\r\nrising\r\n")
            answer = line.recv(100)
        return [int(answer[1:])] if answer.startswith(b":") else []

    def end(self):
        for driver in self.drivers:
            driver.ask("close")
            driver.end()


SCENARIOS = ("quiet", "killed", "paused", "cut_off", "drained", "zookeeper_away", "rolling_restart")


def drilled(language, said, folder):
    """The drill, when all its scenarios have been played."""
    os.makedirs(folder)
    command = [os.path.abspath(said.driver)] if language == "cpp" else builds.build(language, folder)
    with cluster.Cluster(said.server, said.firn, folder) as servers:
        drill = Drill(servers, command, {} if said.defaults else GENEROUS, folder)
        drill.rounds = said.storm
        for scenario in SCENARIOS:
            drill.play(scenario)
        drill.play("storm", STORM_THREADS)
        drill.rising()
        drill.end()
    return drill


def show(drills):
    """A table in Markdown."""
    print("| longest call, ms |", " | ".join(drills), "|")
    print("|---" * (1 + len(drills)) + "|")
    for scenario in (*SCENARIOS, "storm"):
        print(f"| {scenario.replace('_', ' ')} |",
              " | ".join(f"{drill.longest_ms[scenario]:.1f}" for drill in drills.values()), "|")
    print("| failed calls and repeated ids |",
          " | ".join(str(drill.failed) for drill in drills.values()), "|")


def main():
    parser = builds.parser()
    parser.add_argument("--defaults", action="store_true")
    parser.add_argument("--storm", type=int, default=1, metavar="ROUNDS",
                        help="Rounds of the storm, each a kill and a pause of every server. (1)")
    said = builds.parsed(parser)
    if lacking := builds.missing(*said.languages, more=("java", "/usr/share/java/zookeeper.jar")):
        print(f"skipped: not installed: {', '.join(lacking)}")
        sys.exit(77)
    folder, drills = tempfile.mkdtemp(prefix="firn-drill-"), {}
    try:
        for language in said.languages:
            print(f"{language}:", flush=True)
            drills[language] = drilled(language, said, os.path.join(folder, language))
        show(drills)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if any(drill.failed for drill in drills.values()) else 0)


if __name__ == "__main__":
    main()
