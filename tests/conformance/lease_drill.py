#!/usr/bin/python3
"""Local ids under leases of three real servers, which are killed and paused, as are programs that hold leases.

    lease_drill.py LANGUAGE FIRN_SERVER FIRN [--driver PROGRAM]

While an interval lasts, no next() may fail, also while all servers are down. No id may be issued twice by the programs
of a language and the servers together. LANGUAGE is python, go, java, typescript, rust, or cpp, whose program is built
already: --driver conformance_lease. Exit 77 when something is not installed.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import builds
import cluster
import driver_process

SEQUENCE_BITS, MACHINE_BITS, EPOCH_MS = 12, 10, 1_704_067_200_000  # of the layout of clusters here, `firn`
WORKERS = 128  # each lease that is not given back keeps one for as long as the claim window
WINDOW_MS = 40_000  # shorter than cluster.PATIENCE_S: a restarted server keeps a lease that was replaced meanwhile so long
DOWN_S = 7     # longer than a third of Drill.ahead_ms, and shorter than the two thirds that are left
RECOVERY_MS = 4_000  # for the first requests after a restart: waits between them are up to 1.25 s
ATTEMPTS = 5    # to restart the servers in time
BURST = 20_000


def now_ms():
    return int(time.time() * 1000)


def faults_of(from_servers, programs):
    """A sentence for each fault in recorded ids. `from_servers`: the ids that servers issued. `programs`: name, ids of each
    thread, and the end of the last interval in milliseconds since 1970; None: it is not known.

    Two holders of a machine id need not issue equal ids, so a tick of a machine id must have one owner."""
    faults, seen, duplicates, owners = [], set(from_servers), len(from_servers) - len(set(from_servers)), {}
    owners.update(dict.fromkeys((number >> SEQUENCE_BITS for number in from_servers), "a server"))
    for name, threads, until_ms in programs:
        mine, ticks = set(), set()
        for ids in threads:
            if ids != sorted(ids):
                faults.append(f"the ids of a thread of {name} do not ascend")
            duplicates += len(ids) - len(set(ids)) + len(mine.intersection(ids))
            mine.update(ids)
            ticks.update(number >> SEQUENCE_BITS for number in ids)
        duplicates += len(seen & mine)
        seen |= mine
        shared = [tick for tick in ticks if tick in owners]
        if shared:
            faults.append(f"{name} and {owners[shared[0]]} issued ids of one machine id in {len(shared)} equal ticks")
        owners.update(dict.fromkeys(ticks, name))
        last_ms = EPOCH_MS + (max(ticks) >> MACHINE_BITS) if ticks else 0
        if until_ms is not None and last_ms >= until_ms:
            faults.append(f"{name} issued ids up to {last_ms}, but its interval ended at {until_ms}")
    if duplicates:
        faults.append(f"{duplicates} duplicates")
    print(f"  ids {len(seen)}, {len(from_servers)} of them from servers, duplicates {duplicates}", flush=True)
    return faults


class Lessee:
    """A program with a generator, and the files with its ids."""

    def __init__(self, command, folder, number, log, **options):
        self.name, self.file = f"lessee-{number}", os.path.join(folder, f"ids-{number}")
        self.number, self.until_ms = number, None
        self.driver = driver_process.Driver(command, log)
        opened = self.driver.ask("open", name=self.name, timeout_ms=30_000, file=self.file, **options)
        if opened:
            raise SystemExit(f"{self.name} gets no lease: {opened}")

    def so_far(self):
        return self.driver.ask("so_far")

    def signal(self, which):
        os.kill(self.driver.process.pid, which)

    def ids(self):
        """All ids, in the order of each thread."""
        folder, name = os.path.split(self.file)
        threads = []
        for file in sorted(os.listdir(folder)):
            if file.startswith(name + "."):
                with open(os.path.join(folder, file)) as lines:
                    threads.append([int(line) for line in lines])
        return threads


class ServerIds(threading.Thread):
    """Takes ids from all servers that answer, with pauses."""

    def __init__(self, members, pause_s):
        super().__init__(daemon=True)
        self.members, self.pause_s, self.ending, self.ids = members, pause_s, False, []

    def run(self):
        while not self.ending:
            for member in self.members:
                url = f"http://127.0.0.1:{member.port}/v1/ids/default?count=100"
                try:
                    with urllib.request.urlopen(url, timeout=0.5) as answer:
                        self.ids += map(int, json.load(answer)["ids"])
                except (urllib.error.URLError, OSError):
                    pass  # it is killed or paused
            time.sleep(self.pause_s)

    def end(self):
        self.ending = True
        self.join(cluster.PATIENCE_S)


class Drill:
    programs, threads = 4, 2
    ahead_ms = 18_000  # a renewal comes after a third of it
    pause_s = 0.02     # between two rounds of requests for ids of servers

    def __init__(self, servers, command, folder, log):
        self.members, self.zookeeper, self.faults = servers.members, servers.zookeeper, []
        self.seeds = "firn://" + ",".join(one.address for one in self.members)
        self.command, self.folder, self.log = command, folder, log
        self.servers = ServerIds(self.members, self.pause_s)
        self.servers.start()
        self.lessees = [self.lessee(i) for i in range(self.programs)]
        self.gone = []

    def lessee(self, number):
        return Lessee(self.command, self.folder, number, self.log, servers=self.seeds, ahead_ms=self.ahead_ms,
                      threads=self.threads)

    def fault(self, sentence):
        print("  " + sentence, flush=True)
        self.faults.append(sentence)

    def await_covered(self, lessees):
        """Waits until each has a later interval than it can have had before, so that it was renewed or replaced."""
        since, deadline = now_ms(), time.monotonic() + cluster.PATIENCE_S
        for one in lessees:
            failure = ""
            while (said := one.so_far())["until_ms"] <= since + self.ahead_ms:
                failure = said["failure"] or failure
                if time.monotonic() > deadline:
                    raise SystemExit(f"{one.name} gets no later interval: {said}, {failure}; servers have {self.leased()}")
                time.sleep(0.05)

    def await_more(self, lessees):
        before = [one.so_far()["ids"] for one in lessees]
        cluster.patiently("a program issues nothing", lambda: all(
            one.so_far()["ids"] > count + 100 for one, count in zip(lessees, before)))

    def check(self, event, lessees):
        """No id was refused, and no lease lost."""
        for one in lessees:
            said = one.so_far()
            if said["failed"] or said["lost"]:
                self.fault(f"{event}: {one.name} failed {said['failed']} times, the first: {said['failure'][:300]}; "
                           f"leases lost: {said['lost']}")

    def events(self):
        return self.killed_and_paused, self.all_down, self.killed_program, self.burst

    def play(self):
        began = time.monotonic()
        self.await_more(self.lessees)
        for event in self.events():
            event()
            print(f"  {event.__name__.replace('_', ' ')}: {time.monotonic() - began:.1f} s", flush=True)
        self.close()
        self.servers.end()
        self.count()

    def killed_and_paused(self):
        """One program is paused beyond its interval. Meanwhile one server is killed, and another one paused."""
        paused, *others = self.lessees
        paused.signal(signal.SIGSTOP)
        ends_ms = now_ms() + self.ahead_ms  # at the latest
        self.members[0].signal(signal.SIGKILL)
        self.members[0].process.wait()
        self.await_covered(others)
        self.members[0].start()
        self.members[0].await_ready()
        self.members[1].signal(signal.SIGSTOP)
        self.await_covered(others)
        self.members[1].signal(signal.SIGCONT)
        self.check("a server was killed, then one paused", others)
        time.sleep(max(0, ends_ms + 500 - now_ms()) / 1000)
        before = sum(map(len, paused.ids()))
        for member in self.members:  # otherwise it can have the next lease before its first call
            member.signal(signal.SIGSTOP)
        paused.signal(signal.SIGCONT)
        cluster.patiently("no call fails after the interval", lambda: paused.so_far()["failed"])
        for member in self.members:
            member.signal(signal.SIGCONT)
        self.await_more([paused])
        print(f"  the paused program wrote {before} ids before, and failed {paused.so_far()['failed']} times after", flush=True)
        self.check("all servers were paused", others)

    def all_down(self):
        """Kills all servers, for a shorter time than intervals last. A slow machine may need several attempts."""
        for _ in range(ATTEMPTS):
            self.await_covered(self.lessees)
            before = [one.so_far() for one in self.lessees]
            restarted_ms = self.restart_all()
            self.await_covered(self.lessees)
            if restarted_ms <= min(one["until_ms"] for one in before) - RECOVERY_MS:
                break
            print("  the servers were down for too long: this machine is slow", flush=True)
        else:
            return self.fault(f"all servers were down: none of {ATTEMPTS} restarts was fast enough for a verdict")
        for one, earlier in zip(self.lessees, before):
            said = one.so_far()
            if (said["failed"], said["lost"]) != (earlier["failed"], earlier["lost"]):
                self.fault(f"all servers were down: {one.name} failed, the first time: {said['failure'][:300]}")

    def restart_all(self):
        """Kills and restarts all servers. Returns when they are ready, in milliseconds since 1970."""
        for member in self.members:
            member.signal(signal.SIGKILL)
            member.process.wait()
        time.sleep(DOWN_S)
        for member in self.members:
            member.start()
        for member in self.members:
            member.await_ready()
        return now_ms()

    def killed_program(self):
        victim = self.lessees.pop()
        victim.signal(signal.SIGKILL)
        self.gone.append(victim)
        self.lessees.append(self.lessee(self.programs))
        self.await_more(self.lessees)

    def burst(self):
        said = self.lessees[1].driver.ask("burst", count=BURST)
        print(f"  {said['ids']} ids in {said['took_ms']} ms", flush=True)
        if said["failure"] or said["ids"] != BURST:
            self.fault(f"a burst failed: {said}")

    def close(self):
        if self.command[-1].endswith(".py") and not self.lessees[0].driver.ask("fork")["failure"]:
            self.fault("a forked child issued an id")
        for one in self.lessees:
            one.until_ms = one.so_far()["until_ms"] or None  # none: it has no lease
            said = one.driver.ask("close")
            if not said["after_close"]:
                self.fault(f"{one.name} issued an id after it was closed")
            one.driver.end()
        names, deadline = {one.name for one in self.lessees}, time.monotonic() + cluster.PATIENCE_S
        while left := [one for one in self.leased() if one["name"] in names]:
            if time.monotonic() > deadline:
                raise SystemExit(f"leases that were closed have not ended: {left}")
            time.sleep(0.05)

    def leased(self):
        """All leases that servers have."""
        return [one for member in self.members for one in self.leases_of(member)]

    @staticmethod
    def leases_of(member):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{member.admin}/v1/leases", timeout=5) as answer:
                return json.load(answer)["leases"]
        except (urllib.error.URLError, OSError):
            return []  # it is killed or paused

    def count(self):
        programs = [(one.name, one.ids(), one.until_ms) for one in [*self.lessees, *self.gone]]
        for sentence in faults_of(self.servers.ids, programs):
            self.fault(sentence)


def play(said, drill, flags=()):
    """Plays a drill with each language on servers with `flags`, and exits: with 1 after a fault."""
    if lacking := builds.missing(*said.languages, more=("java", "/usr/share/java/zookeeper.jar")):
        print(f"skipped: not installed: {', '.join(lacking)}")
        sys.exit(77)
    folder, faults = tempfile.mkdtemp(prefix="firn-leases-"), []
    try:
        for language in said.languages:
            print(f"{language}:", flush=True)
            place = builds.new(folder, language)
            command = [os.path.abspath(said.driver)] if language == "cpp" else builds.build(language, place, of="lease")
            # A registry in a folder would be locked by a server that is paused while it writes.
            with cluster.Cluster(os.path.abspath(said.server), os.path.abspath(said.firn), builds.new(place, "servers"),
                                 WORKERS, flags) as servers, open(os.path.join(place, "drivers.log"), "w") as log:
                played = drill(servers, command, builds.new(place, "ids"), log)
                played.play()
            faults += played.faults
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    play(builds.parsed(builds.parser()), Drill, [f"--claim_window_ms={WINDOW_MS}"])
