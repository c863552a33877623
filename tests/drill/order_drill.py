#!/usr/bin/python3
"""Numbers of a tag with buffer = owner rise over the whole cluster, whatever happens to its owner.

    order_drill.py FIRN_SERVER FIRN [--only NAME]

Three real servers with a real ZooKeeper. Callers take numbers at each server and note when each call began and ended: over
Redis's protocol, and where the owner is killed or stopped also over HTTP and in pipelines over Thrift. At the end, each call
must have larger numbers than all calls that had ended before it began.
"""

import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from order_callers import Caller, disorder
from order_stage import CONNECTIONS, FAKETIME, STEP, STEP_MAX, TAG, TAKEOVER_S, WINDOW_S, Drill, closes, cluster

AWAY = ("not connected to ZooKeeper", "the registry does not acknowledge this server's renewals")


def killed_owner(drill, times=2):
    """The owner is killed, and started again."""
    for _ in range(times):
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


def isolated_owner(drill):
    """The other servers cannot reach the owner, which reaches ZooKeeper and its callers: another server takes over."""
    owner, since = drill.settled(), time.monotonic()
    owner.wire.cut()
    cluster.patiently("doctor does not say so", lambda: f"cannot reach {owner.address}" in drill.run("doctor").stdout)
    cluster.patiently("the owner does not give up", lambda: drill.owner() not in (None, owner))
    gap = drill.gap_elsewhere(owner, since)
    print(f"    first number at another server after {gap:.1f} s", flush=True)
    cluster.patiently("not every server gives numbers", drill.all_serve)
    heir = drill.settled()
    assert heir is not owner and drill.status_owners() == {heir.address}, (heir.address, drill.status_owners())
    cluster.patiently("a command finds a fault", drill.nothing_is_wrong)
    owner.wire.mend()
    cluster.patiently("a command finds a fault", drill.nothing_is_wrong)
    assert drill.settled() is heir and drill.status_owners() == {heir.address}


def disconnected_owner(drill):
    """The owner cannot reach ZooKeeper, but its callers and the other servers reach it: another server takes over."""
    owner, since = drill.settled(), time.monotonic()
    others = [caller for caller in drill.callers if caller.member is not owner]
    before = drill.lines(owner, "no longer owns partition")
    owner.to_zookeeper.cut()
    cluster.patiently("the owner continues", lambda: drill.lines(owner, "no longer owns partition") > before)
    left = time.monotonic()
    cluster.patiently("no server takes over", lambda: all(caller.answered_at > left for caller in others))
    print(f"    first number at another server after {time.monotonic() - since:.1f} s", flush=True)
    cluster.patiently("the owner does not say why it refuses calls",
                      lambda: any("the registry does not" in said for said in drill.refusals(left)))
    owner.to_zookeeper.mend()
    cluster.patiently("not every server gives numbers", drill.all_serve)
    assert drill.settled() is not owner
    cluster.patiently("a command finds a fault", drill.nothing_is_wrong)


def full_owner(drill):
    """The owner has as many connections as it permits: it is reached by a server that connects to it only then."""
    owner = drill.settled()
    other = next(member for member in drill.members if member is not owner)
    clients = []
    try:
        other.drain()
        while not closes(owner, clients):
            assert len(clients) <= CONNECTIONS, len(clients)
        other.start()
        other.await_ready()
        cluster.patiently("not every server gives numbers", drill.all_serve)
        assert drill.settled() is owner
        assert closes(owner, clients), "the owner has free places"
        cluster.patiently("a command finds a fault", drill.nothing_is_wrong)
    finally:
        for client in clients:
            client.close()


def drained_owner(drill):
    """Each server is restarted, the owner first, and the owner once all others have just started. Each caller uses one server
    only, so its calls are refused while that server stops and starts, and no others are."""
    owner, since = drill.settled(), time.monotonic()
    for member in [owner, *drill.members]:
        drill.restart([member])
    owner = drill.settled()
    drill.restart([member for member in drill.members if member is not owner])
    drill.restart([owner])
    drill.refuses_where_it_stops(since)
    cluster.patiently("a command finds a fault", drill.nothing_is_wrong)


def stopped_together(drill):
    """Two servers, one of them the owner, are stopped together, also just after a restart of the third. The third refuses no
    call meanwhile. Then all three are stopped: until they have ended, they refuse calls only with DRAINING or NOT_READY."""
    since = time.monotonic()
    for third_starts in False, True:
        owner = drill.settled()
        third = next(member for member in drill.members if member is not owner)
        if third_starts:
            drill.restart([third])
        others, taken = [member for member in drill.members if member is not third], drill.lines(third, "server owns")
        silence = drill.silence(lambda: drill.restart(others), third)
        print(f"    longest time without a number at the third server {silence:.2f} s", flush=True)
        assert drill.lines(third, "server owns") > taken
    drill.refuses_where_it_stops(since)
    since = time.monotonic()
    drill.restart(drill.members)
    drill.refuses_where_it_stops(since, "STORE_DOWN")
    cluster.patiently("a command finds a fault", drill.nothing_is_wrong)


def restarted_zookeeper(drill):
    """ZooKeeper is away for longer than a window, and the owner is stopped meanwhile: calls are refused, and each screen says
    why; then numbers continue in order."""
    for stops in False, True:
        owner = drill.settled()
        drill.zookeeper.kill()
        time.sleep(0.5)
        if stops:
            owner.drain()
            time.sleep(2 * WINDOW_S)
        else:
            cluster.patiently("a server does not say that the registry is away", lambda: drill.all_refuse(AWAY) and all(
                drill.shows(member, AWAY) for member in drill.members))
            found = drill.run("doctor")
            assert found.returncode and "the registry cannot be read" in found.stdout, found
        drill.zookeeper.start()
        if stops:
            owner.start()
        cluster.patiently("not every server gives numbers", drill.all_serve)
        cluster.patiently("a command finds a fault", drill.nothing_is_wrong)


def killed_zookeeper_leader(drill):
    """The leader of three ZooKeepers is killed, and started again."""
    for _ in range(2):
        leaders = []
        cluster.patiently("the ensemble has no leader", lambda: leaders.append(drill.zookeeper.leader()) or leaders[-1])
        leader = leaders[-1]

        def others_continue():
            leader.kill()
            time.sleep(WINDOW_S)
            cluster.patiently("not every server gives numbers", drill.all_serve)
        print(f"    longest time without a number {drill.silence(others_continue):.1f} s", flush=True)
        leader.start()
        cluster.patiently("a command finds a fault", drill.nothing_is_wrong)


def keeps_owner(drill, member, offset):
    """Whether the owner remains and each caller is answered within 2 s while the wall clock is stepped. At a wrong clock, the
    commands may only find faults of clocks."""
    changes = [drill.lines(one, "owns partition") for one in drill.members]

    def step():
        member.step_clock(offset)
        time.sleep(1.25 * WINDOW_S)
    silence = drill.silence(step)
    print(f"    clock {offset}: longest time without a number {silence:.2f} s", flush=True)

    def only_clocks():
        found = drill.findings()
        return all("clock" in line for line in found) and (found or offset == "+0")
    cluster.patiently("the commands do not find the clock, or another fault", only_clocks)
    return changes == [drill.lines(one, "owns partition") for one in drill.members] and silence < 2


def stepped_clock(drill):
    """The wall clocks of the owner and of another server step by a day in both directions: the owner remains."""
    if not FAKETIME:
        assert os.environ.get("CI") != "true", "requires the package libfaketime"
        print("    not run: requires the package libfaketime")
        return
    for _ in range(3):  # a stall of a busy machine may end the owner's term, too
        owner = drill.settled()
        other = next(member for member in drill.members if member is not owner)
        kept = [keeps_owner(drill, member, offset) for member in (owner, other) for offset in ("+1d", "-1d", "+0")]
        if all(kept):
            break
    assert all(kept), kept
    cluster.patiently("a command finds a fault", drill.nothing_is_wrong)


def edited_tag(drill):
    """The tag is changed while callers use it, disabled, and enabled again by one of two operators."""
    owner = drill.settled()
    for step in 2 * STEP, STEP:
        assert drill.does("tags", "set", TAG, f"step={step}")
        cluster.patiently("not every server gives numbers", drill.all_serve)
    assert drill.does("tags", "disable", TAG)
    cluster.patiently("a server gives numbers", lambda: not drill.served())
    owner.signal(signal.SIGKILL)
    owner.process.wait()
    enables = [threading.Thread(target=drill.does, args=("tags", "set", TAG, "disabled=false")) for _ in range(2)]
    for operator in enables:
        operator.start()
    for operator in enables:
        operator.join()
    owner.start()
    cluster.patiently("not every server gives numbers", drill.all_serve)
    cluster.patiently("a command finds a fault", drill.nothing_is_wrong)


def edited_from_none(drill):
    """Two operators give the tag an owner while callers take numbers from ZooKeeper; a server is stopped meanwhile, and another
    one cannot reach ZooKeeper. Then the owner is killed."""
    _, cut_off, stopped = drill.members
    stopped.signal(signal.SIGKILL)
    stopped.process.wait()
    cut_off.to_zookeeper.cut()
    cluster.patiently("no number is given", drill.served)
    edited = []
    edits = [threading.Thread(target=lambda: edited.append(drill.does("tags", "set", TAG, "buffer=owner"))) for _ in range(2)]
    since = time.monotonic()
    for operator in edits:
        operator.start()
    for operator in edits:
        operator.join()
    assert any(edited), "no edit was permitted"
    drill.settled()
    others = [caller for caller in drill.callers if caller.member not in (cut_off, stopped)]
    cluster.patiently("the owner gives no numbers", lambda: all(caller.answered_at > since + 1 for caller in others))
    stopped.start()
    cut_off.to_zookeeper.mend()
    stopped.await_ready()
    cluster.patiently("not every server gives numbers", drill.all_serve)
    refused = collections.Counter(re.search("DRAINING|NOT_READY|STORE_DOWN|$", said)[0] for said in drill.refusals(since))
    print(f"    refused: {dict(refused)}", flush=True)
    assert not refused[""], "calls were refused for another reason"
    assert not drill.does("tags", "set", TAG, "buffer=none"), "the owner was taken away"
    killed_owner(drill, times=1)
    cluster.patiently("a command finds a fault", drill.nothing_is_wrong)


def encrypted(drill):
    """The servers require TLS and certificates, also of each other; the owner is killed."""
    killed_owner(drill, times=1)


def first_use(drill):
    """All servers create the tag at the same time, by its first use; then the owner is killed."""
    killed_owner(drill, times=1)


def rolled_back(drill):
    """ZooKeeper loses its last writes under the running owner; after a restore, the numbers continue in order."""
    drill.zookeeper.copy()
    cluster.patiently("not every server gives numbers", drill.all_serve)
    time.sleep(WINDOW_S)
    drill.zookeeper.put_back()
    cluster.patiently("not every server says that a restore is needed", lambda: all(
        caller.refused and "run firn restore" in caller.refused[-1][1] for caller in drill.callers))
    assert drill.does("restore")
    cluster.patiently("not every server gives numbers", drill.all_serve)
    cluster.patiently("a command finds a fault", drill.nothing_is_wrong)


def cloned_owner(drill):
    """A server starts with a copy of the owner's folder beside it. The owner is killed, and started again."""
    owner = drill.settled()
    copy = os.path.join(drill.cluster.folder, "clone")
    shutil.copytree(owner.state, copy)
    clone = cluster.Member(drill.cluster.server, copy, drill.registry.partition("=")[2], *drill.cluster.flags)
    caller = Caller(clone, TAG, drill.calls, drill.tls)
    try:
        time.sleep(2 * WINDOW_S)
        since = time.monotonic()
        owner.signal(signal.SIGKILL)
        owner.process.wait()
        drill.gap(since + 0.05)
        owner.start()
        time.sleep(2 * WINDOW_S)
    finally:
        caller.stop()
        clone.drain()
    cluster.patiently("not every server gives numbers", drill.all_serve)
    cluster.patiently("a command finds a fault", drill.nothing_is_wrong)


def stored_in_redis(drill):
    """The ranges come from a database; the owner is killed."""
    killed_owner(drill, times=1)


def busy_zookeeper(drill):
    """Reads and writes of ZooKeeper do not grow with the number of tags. Calls add those for ranges of numbers."""
    def rates():
        def counts():
            return time.monotonic(), drill.issued(), *drill.zookeeper.requests()
        (began, *before), _, (ended, *after) = counts(), time.sleep(2 * WINDOW_S), counts()
        return [(last - first) / (ended - began) for first, last in zip(before, after)]
    cluster.patiently("ranges are small", lambda: drill.issued() > 10 * STEP_MAX)
    busy = rates()
    for caller in drill.callers:
        caller.stop()
    idle = [max(each) for each in zip(rates(), rates())]  # a busy machine makes fewer requests
    tags = [f"more{number}" for number in range(24)]
    for tag in tags:
        assert drill.does("tags", "create", tag, "strategy=segment", "start=1", "buffer=owner")
    for tag in tags:
        cluster.patiently(f"{tag} gives no number", lambda tag=tag: subprocess.run(
            [drill.program, "next", tag, f"--servers=list://{drill.members[0].address}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0)
    many = [min(each) for each in zip(rates(), rates())]
    print("    a second              numbers   reads  writes  others", flush=True)
    for name, row in ("busy", busy), ("idle", idle), (f"idle, {len(tags)} more tags", many):
        print(f"    {name:18} {{:10.0f}}  {{:6.1f}}  {{:6.1f}}  {{:6.1f}}".format(*row), flush=True)
    numbers, _, writes, _ = busy
    reports = 2 * len(drill.members)  # of the servers' load
    assert writes < 1.5 * idle[2] + reports + 1.25 * numbers / STEP_MAX, (idle, busy)
    for kind in 1, 2:
        assert many[kind] < 1.5 * idle[kind] + 1, (idle, many)


SCENARIOS = [killed_owner, paused_owner, isolated_owner, disconnected_owner, full_owner, drained_owner,
             stopped_together, restarted_zookeeper, killed_zookeeper_leader, stepped_clock, edited_tag, edited_from_none,
             rolled_back, cloned_owner, stored_in_redis, encrypted, first_use, busy_zookeeper]


def main():
    words = sys.argv[1:]
    only = words[words.index("--only") + 1] if "--only" in words else None
    numbers = calls = refused = twice = late = faults = 0
    for scenario in SCENARIOS:
        if only and scenario.__name__ != only:
            continue
        print(scenario.__name__.replace("_", "-") + ": " + scenario.__doc__, flush=True)
        folder = tempfile.mkdtemp(prefix="firn-order-")
        drill = Drill(*(os.path.abspath(path) for path in words[:2]), folder, scenario.__name__)
        try:
            with drill:
                scenario(drill)
        except (Exception, SystemExit):
            traceback.print_exc(file=sys.stdout)
            print(*{caller.refused[-1][1] for caller in drill.callers if caller.refused}, sep="\n    ")
            for member in drill.cluster.members:
                with open(member.log_path) as log:
                    print(member.address, *log.readlines()[-60:], sep="\n    ")
            faults += 1
        wrong, again = disorder(drill.calls)
        for call, largest in wrong[:3]:
            print(f"    {call[2]} to {call[3]} was answered although {largest} had been before")
        numbers += drill.issued()
        calls, twice, late = calls + len(drill.calls), twice + again, late + len(wrong)
        refused += sum(len(caller.refused) for caller in drill.callers)
        shutil.rmtree(folder, ignore_errors=True)
    for name, value in [("ids", numbers), ("duplicates", twice), ("out of order", late),
                        ("calls failed", f"{refused} of {calls + refused}"),
                        ("verdict", "BROKEN" if faults or twice or late else "every promise was kept")]:
        print(f"  {name:18} {value}")
    return 1 if faults or twice or late else 0


if __name__ == "__main__":
    sys.exit(main())
