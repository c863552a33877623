#!/usr/bin/python3
"""Operators repair a cluster in the wrong order, incompletely, or twice, while callers use it.

    operators_drill.py FIRN_SERVER FIRN [--only NAME]

Three real servers with a real ZooKeeper. Callers take ids of a snowflake tag, and numbers of a plain, an obfuscated and a
dated segment tag; a program makes ids under a leased machine id. After each step all outputs must agree: `firn doctor`,
`firn audit`, /readyz, status, metrics and the calls. At the end no id and no number may be a duplicate.
"""

import os
import re
import signal
import subprocess
import sys
import time

from operators_stage import REFUSED, USAGE, Drill, cluster, play


def interrupted_restores(drill):
    """A wiped registry; restores from backups of different ages, killed in the middle, in any order."""
    older = drill.backup("older.json")
    drill.agree("all callers have numbers", drill.well)
    newer = drill.backup("newer.json")
    drill.zookeeper.put_back(copy=False)
    drill.does("init", "--brand-new", code=REFUSED)
    drill.interrupted_once_begun(older)
    drill.agree_on_the_command(older)
    for after_s in 0.3, 3, 21:
        drill.interrupted(after_s, "restore", f"--from={older}")
        drill.judge("an interrupted restore")
    code, said = drill.says("restore", f"--from={newer}")
    if code != 0:  # because the first restore is unfinished
        assert code == REFUSED and "older.json" in said, (code, said)
        drill.does("restore", f"--from={older}")
    drill.agree("restored", drill.well)
    for again in older, newer:
        drill.does("restore", f"--from={again}")
    drill.agree("restored once more with each backup", drill.well)


def rollback_and_two_operators(drill):
    """The registry goes back under running servers; two operators paste the printed command at the same time."""
    drill.zookeeper.copy()
    drill.agree("all callers have numbers", drill.well)
    drill.await_renewals()  # so that the copy has older records of their claims
    drill.zookeeper.put_back()
    drill.agree("the registry went back", drill.lost)
    cluster.patiently("no server prints the command", drill.printed)
    words = drill.printed()
    codes = drill.at_once(*[lambda: drill.paste(words)] * 2)
    assert any(code == 0 for code, _ in codes), codes
    refused = [said for code, said in codes if code != 0]
    assert all("another command" in said or "run the command again" in said for said in refused), refused
    drill.agree("restored by two operators", drill.well)


def two_operators_with_other_backups(drill):
    """A wiped registry; the second operator adds another backup while the first one's restore waits for reports."""
    older = drill.backup("older.json")
    drill.agree("all callers have numbers", drill.well)
    newer = drill.backup("newer.json")
    drill.zookeeper.put_back(copy=False)

    def second():
        time.sleep(5)
        return drill.says("restore", f"--from={older},{newer}")
    (first_code, first), (second_code, said) = drill.at_once(lambda: drill.says("restore", f"--from={older}"), second)
    assert first_code == REFUSED and newer in first, (first_code, first)
    assert second_code == 0, (second_code, said)
    drill.agree("restored with both backups", drill.well)


def bad_files(drill):
    """Backups that are truncated, edited, of another cluster or of a later version change nothing."""
    good = drill.backup("good.json")
    with open(good) as file:
        text = file.read()
    other = os.path.join(drill.folder, "other.json")
    registry = f"--registry=dir://{drill.folder}/other"
    for words in ["init", "--brand-new", "--force", registry], ["backup", other, registry]:
        subprocess.run([drill.program, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    later = re.sub(r'("firn_backup": )\d+', r"\g<1>999", text, count=1)
    assert later != text
    bad = {"cut": text[:len(text) // 2], "edited": text.replace("order", "ordre"), "later": later, "empty": "",
           "none": None, "other": open(other).read()}
    for name, contents in bad.items():
        path = os.path.join(drill.folder, f"bad-{name}.json")
        if contents is not None:
            with open(path, "w") as file:
                file.write(contents)
        code, said = drill.says("restore", f"--from={path}")
        assert code != 0, f"a restore with the file '{name}' exits with 0:\n{said}"
        assert len(said.strip().splitlines()) <= 3, f"'{name}' gets more than one sentence:\n{said}"
        print(f"  {name}: {said.strip()}")
    drill.agree("refused files", drill.well)


def needless_restores(drill):
    """Operators restore a healthy cluster, several at a time, while another one changes a tag."""
    drill.agree("all callers have numbers", drill.well)
    for turn in range(6):
        codes = drill.at_once(*[lambda: drill.says("restore")] * 2, lambda: drill.says(
            "tags", "set", "order", f"hold_minutes={5 + turn}"))
        drill.agree(f"needless restores {[code for code, _ in codes]}", drill.well)


def stopped_and_put_back(drill):
    """ZooKeeper loses recent writes while the servers are stopped; the operator restarts them before any check."""
    drill.zookeeper.copy()
    drill.agree("all callers have numbers", drill.well)
    drill.stop_servers()
    drill.zookeeper.put_back()
    drill.start_servers()
    drill.agree("the servers know more than the registry", drill.lost)
    drill.stop_servers()
    drill.start_servers()
    drill.agree("restarted, as if that helped", drill.lost)
    cluster.patiently("no server prints the command", drill.printed)
    for after_s in 1, 21:
        code = drill.interrupted(after_s, *["restore"])
        drill.judge(f"a restore killed after {after_s} s ({code})")
    drill.does("restore")
    drill.agree("restored", drill.well)


def planned_changes(drill):
    """Settings change under load; no claim ends, and the program with a lease issues without a pause."""
    drill.agree("all callers have numbers", drill.well)
    for percent in 70, 30:
        drill.does("set", f"lease_share={percent}")
        assert str(percent) in drill.does("set"), "the settings show the change"
    drill.does("set", "lease_share=much", code=USAGE)
    drill.does("machines", "reserve", "1", "--reserved_for=another system")
    drill.agree("changed", drill.well)
    assert drill.lessee.failed == 0, f"the program with a lease had no id {drill.lessee.failed} times: {drill.lessee.first}"


def mistaken_init(drill):
    """The registry is wiped while no server runs, and an operator creates a new cluster with a tag of another form; the
    servers start; the backup is restored over it, at first incompletely."""
    kept = drill.backup("kept.json")
    drill.agree("all callers have numbers", drill.well)
    drill.stop_servers()
    drill.zookeeper.put_back(copy=False)
    drill.does("init", "--brand-new", "--force", "--workers=8")
    drill.does("tags", "create", "coupon", "strategy=segment", "start=1")
    drill.start_servers()
    drill.agree("servers of another cluster", drill.foreign)
    drill.interrupted(2, "restore", f"--from={kept}")
    drill.does("restore", f"--from={kept}")
    drill.agree("restored over the mistaken cluster", drill.well)


def rolling_restart(drill):
    """Servers and ZooKeeper restart one after the other; the program with a lease issues without a pause."""
    for member in drill.members:
        member.signal(signal.SIGKILL if member is drill.members[0] else signal.SIGTERM)
        member.process.wait()
        drill.zookeeper.kill()
        drill.zookeeper.start()
        member.start()
        member.await_ready()
    drill.agree("restarted", drill.well)
    assert drill.lessee.failed == 0, f"the program with a lease had no id {drill.lessee.failed} times: {drill.lessee.first}"


SCENARIOS = [bad_files, rolling_restart, planned_changes, mistaken_init, interrupted_restores,
             rollback_and_two_operators, two_operators_with_other_backups, needless_restores, stopped_and_put_back]


if __name__ == "__main__":
    sys.exit(play(Drill, dict.fromkeys(SCENARIOS, {})))
