#!/usr/bin/python3
"""Local ids under leases of three real servers, while ZooKeeper is unreachable for minutes.

    lease_outage.py LANGUAGE,... FIRN_SERVER FIRN [--seconds S] [--driver PROGRAM]

Ten programs of a language have leases that are long enough for an outage of S seconds (300). ZooKeeper is paused for the
first half of it. Then it is killed, and restarted on its data at the end. One server is killed and restarted in each
half. No next() may fail, no lease may be lost, and no id may be issued twice by the programs and the servers together.
After the outage, a server must extend or replace each lease in time. For the languages and exit 77 see lease_drill.py.
"""

import functools
import signal
import time

import builds
import cluster
import lease_drill

RECOVERY_S = 25  # for what a loaded machine needs longer than planned: restarts, and claims of machine ids afterwards
DEFAULT_S = 300  # with it, the servers' --claim_window_ms is the default


def ahead_s(seconds):
    """The interval of a lease. Two thirds are left at any time."""
    return 1.5 * (seconds + RECOVERY_S)


def window_s(seconds):
    """The claim window. A bound is set as far ahead with every write to the registry. No interval is longer."""
    return max(2 * seconds, round(ahead_s(seconds)) + 5)


class Outage(lease_drill.Drill):
    programs, threads = 10, 1
    pause_s = 0.2

    def __init__(self, *arguments, seconds):
        self.seconds, self.window_ms = seconds, 1000 * window_s(seconds)
        self.ahead_ms = round(1000 * ahead_s(seconds))
        super().__init__(*arguments)

    def events(self):
        return self.backed, self.outage

    def backed(self):
        """Waits until the registry has bounds far ahead for all leases: those of new ones are near."""
        names = {one.name for one in self.lessees}

        def holds():
            bounds = {one["name"]: one["bound_ms"] for member in self.members for one in self.leases_of(member)}
            return names <= bounds.keys() and min(bounds.values()) > lease_drill.now_ms() + 0.9 * self.window_ms
        cluster.patiently("a lease's bound is near", holds)

    def outage(self):
        before = {one.name: one.so_far()["until_ms"] for one in self.lessees}
        ids_before, began = len(self.servers.ids), time.monotonic()
        self.zookeeper.process.send_signal(signal.SIGSTOP)
        latest_ms = lease_drill.now_ms() + self.window_ms  # no earlier bound is later
        self.sleep_until(began + self.seconds / 4)
        unknown = self.kill_and_restart(self.members[0])
        self.sleep_until(began + self.seconds / 2)
        self.zookeeper.kill()
        others = [one for one in self.lessees if one.name not in unknown]
        self.await_until(others, lambda one: before[one.name], "is not extended without the registry")
        unknown |= self.kill_and_restart(self.members[1])
        self.sleep_until(began + self.seconds)
        self.await_more(self.lessees)
        self.check("ZooKeeper was unreachable", self.lessees)
        from_servers = len(self.servers.ids) - ids_before
        self.zookeeper.start()
        print(f"  ZooKeeper was unreachable for {time.monotonic() - began:.1f} s: servers issued {from_servers} ids; the "
              f"servers of {len(unknown)} leases were killed", flush=True)
        if not from_servers:
            self.fault("servers issued no id while ZooKeeper was unreachable")
        self.recover(latest_ms, unknown)

    def recover(self, latest_ms, unknown):
        """Waits until each program has an interval for which a server wrote to the registry after the outage."""
        began = time.monotonic()
        self.await_until([one for one in self.lessees if one.name in unknown], lambda _: latest_ms, "has no new lease")
        print(f"  leases of killed servers were replaced after {time.monotonic() - began:.1f} s", flush=True)
        self.await_until(self.lessees, lambda _: latest_ms, "is not extended after the outage")
        print(f"  all leases were extended after {time.monotonic() - began:.1f} s", flush=True)
        self.await_more(self.lessees)
        self.check("ZooKeeper was restarted", self.lessees)

    def kill_and_restart(self, member):
        """Returns the names of the leases that the server had. After the restart it does not know them."""
        names = {one["name"] for one in self.leases_of(member)}
        member.signal(signal.SIGKILL)
        member.process.wait()
        member.start()
        member.await_ready()
        self.await_more(self.lessees)
        self.check("a server was restarted without the registry", self.lessees)
        return names

    @staticmethod
    def sleep_until(moment):
        time.sleep(max(0, moment - time.monotonic()))

    def await_until(self, lessees, than, otherwise):
        """Waits until the interval of each ends later than `than(lessee)`. A renewal comes after a third of it."""
        deadline = time.monotonic() + self.ahead_ms / 3000 + cluster.PATIENCE_S
        for one in lessees:
            while (said := one.so_far())["until_ms"] <= than(one):
                if said["failed"] or said["lost"] or time.monotonic() > deadline:
                    raise SystemExit(f"{one.name} {otherwise}: {said}")
                time.sleep(0.2)


def main():
    parser = builds.parser()
    parser.add_argument("--seconds", type=int, default=DEFAULT_S)
    said = builds.parsed(parser)
    lease_drill.play(said, functools.partial(Outage, seconds=said.seconds),
                     [f"--claim_window_ms={1000 * window_s(said.seconds)}"])


if __name__ == "__main__":
    main()
