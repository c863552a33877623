#!/usr/bin/python3
"""Restores in a cluster whose servers and commands are of two versions, while callers use it.

    mixed_restore_drill.py OLD NEW [--only NAME]

OLD and NEW are folders of programs. Two servers are of the old version and one is of the new version, with a real ZooKeeper.
The callers are those of operators_drill.py. After each step the screens of both versions must show what is so. At the end
no id and no number may be a duplicate.
"""

import json
import os
import re
import signal
import subprocess
import sys

from operators_stage import NOT_TRUSTWORTHY, REFUSED, TAGS, USAGE, Drill, cluster, play

AT_ONCE = "--skew_max_ms=0"  # a restore of 0.1.0 with this flag freezes the cluster, and then stops


class Mixed(Drill):
    """The base class's commands are of the new version."""

    def __init__(self, old, new, folder, **more):
        super().__init__(os.path.join(old, "firn-server"), os.path.join(new, "firn"), folder, **more)
        self.old, self.new = os.path.join(old, "firn"), os.path.join(new, "firn-server")
        self.cluster.firn = self.old

    def create(self, tag, fields):
        code, said = self.old_says("tags", "create", tag, *fields)
        assert code == 0, said

    def begin(self):
        newer = self.members[2]
        newer.drain()
        newer.command[0] = self.new
        newer.start()
        newer.await_ready()
        super().begin()

    def old_says(self, *words):
        """Exit code and output of a command of the old version."""
        done = subprocess.run([self.old, *words, self.registry], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def screens(self):
        return {**super().screens(), "old audit": self.old_says("audit")}

    @staticmethod
    def well(seen):
        """A server of 0.1.0 whose record went back shows `frozen` until its claim ends, also after the restore."""
        return Drill.well({**seen, "frozen": seen["frozen"][2:]}) and seen["old audit"][0] == 0

    @staticmethod
    def lost(seen):
        """Whether the audits of both versions, firn doctor and each server show a loss and a restore as its remedy."""
        return (seen["doctor"][0] == NOT_TRUSTWORTHY and seen["audit"][0] != 0 != seen["old audit"][0] and
                all(seen["frozen"]) and all("firn restore" in seen[screen][1] for screen in ("doctor", "audit", "old audit")))

    # --- what operators do --------------------------------------------------------------------------------

    def old_restore(self):
        """The restore that a server of the old version prints, for its own command."""
        def printed():
            trouble = json.loads(self.asked(self.members[0], "/v1/status")[1] or "{}").get("trouble", "")
            found = re.search(r"firn restore (--[^\n]*)", trouble)
            return found and found[1]
        cluster.patiently("the old server prints no restore", printed)
        return printed()

    def does_old(self, words):
        code, said = self.paste_old(words)
        assert code == 0, (code, said)

    def paste_old(self, words):
        done = subprocess.run(["sh", "-c", f"{self.old} restore {words}"], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def new_unfinished(self, *words):
        """A restore of the new version that is killed while it waits for the servers' reports."""
        process = subprocess.Popen([self.program, "restore", *words, self.registry], text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for line in process.stderr:
            if "the cluster is frozen" in line:
                break
        process.kill()
        process.wait()
        process.stderr.close()

    def roll_back(self):
        self.zookeeper.copy()
        self.agree("all callers have numbers", self.well)
        self.zookeeper.put_back()
        self.agree("the registry went back", self.lost)

    def restored(self, what, restore):
        """Restores until all screens show that nothing is wrong. A server of 0.1.0 that saw the loss during the restore can
        freeze the cluster again."""
        for attempt in range(3):
            restore()
            try:
                return self.agree(what, self.well)
            except AssertionError:
                if attempt == 2 or "went back" not in self.says("doctor")[1]:
                    raise
            print("  frozen again, for a loss that a server saw during the restore")

    def root(self):
        """The root node and the tags, as an audit shows them."""
        shown = json.loads(self.does("audit", "--json"))
        return shown["cluster"]


def refused_backups(drill):
    """A backup of the new version is given to the restore of the old one, which refuses it and changes nothing."""
    kept = drill.backup("kept.json")
    before = drill.root()
    for words in [f"--from={kept}"], [kept], [f"--from={os.path.join(drill.folder, 'a')}"]:
        code, said = drill.old_says("restore", *words)
        assert code != 0, f"the old version takes {words}: {said}"
        first, *more = said.strip().splitlines()
        assert more in ([], ["See firn restore --help"]), f"{words} gets more than one sentence:\n{said}"
        print(f"  {first}")
    assert drill.root() == before, (drill.root(), before)
    drill.agree("refused backups", drill.well)


def either_restores(drill):
    """The registry goes back under servers of both versions; the old command restores it, and then the new one."""
    drill.zookeeper.copy()
    drill.agree("all callers have numbers", drill.well)
    drill.await_renewals()  # so that the copy has older records of their claims
    drill.zookeeper.put_back()
    drill.agree("the registry went back", drill.lost)
    drill.restored("restored by the old version", lambda: drill.does_old(drill.old_restore()))
    drill.roll_back()
    drill.restored("restored by the new version", lambda: drill.does("restore"))


def new_continues(drill):
    """A wiped registry; the old version begins to re-create the cluster, and the new one continues with a backup."""
    kept = drill.backup("kept.json")
    drill.agree("all callers have numbers", drill.well)
    drill.zookeeper.put_back(copy=False)
    code, said = drill.paste_old(f"{AT_ONCE} {drill.old_restore()}")
    assert code != 0, said
    drill.agree("the old version's restore is unfinished", drill.lost)
    drill.restored("completed by the new version", lambda: drill.does("restore", f"--from={kept}"))


def old_continues(drill):
    """A wiped registry; the new version begins a restore with a backup, and the old one continues without it."""
    kept = drill.backup("kept.json")
    drill.agree("all callers have numbers", drill.well)
    drill.zookeeper.put_back(copy=False)
    words = drill.old_restore()
    drill.new_unfinished(f"--from={kept}")
    drill.agree("the new version's restore is unfinished", drill.lost)
    drill.restored("completed by the old version", lambda: drill.does_old(words))
    drill.restored("restored once more, with the backup", lambda: drill.does("restore", f"--from={kept}"))


def rolled_back_and_continued(drill):
    """The registry goes back; each version continues what the other one began."""
    drill.roll_back()
    code, said = drill.old_says("restore", AT_ONCE)
    assert code != 0, said
    drill.agree("the old version's restore is unfinished", drill.lost)
    drill.restored("completed by the new version", lambda: drill.does("restore"))
    kept = drill.backup("kept.json")
    drill.roll_back()
    drill.new_unfinished(f"--from={kept}")
    drill.agree("the new version's restore is unfinished", drill.lost)
    drill.restored("completed by the old version", lambda: drill.does_old(drill.old_restore()))


def folder_of_a_stopped_server(drill):
    """A wiped registry; the new version restores it from the state folder of a server of the old version that was killed. The
    folder lacks the settings of the cluster, for which the command asks."""
    drill.agree("all callers have numbers", drill.well)
    killed = drill.members[1]
    killed.signal(signal.SIGKILL)
    killed.process.wait()
    drill.zookeeper.put_back(copy=False)
    words = ["restore", f"--from={os.path.join(drill.folder, 'b')}"]
    assert "--layout" in drill.does(*words, code=USAGE)
    words.append("--layout=firn")
    said = drill.does(*words, code=REFUSED)
    assert all(f"--set={answer}=" in said for answer in ("default_strategy", "reserve", "window")), said
    words += ["--set=default_strategy=none", "--set=reserve=none", "--set=window=600000", "--set=folders=all"]
    drill.restored("restored from the state folder", lambda: (drill.does(*words), killed.start()))


def date_of_the_first_id(drill):
    """The cluster serves undefined tags. The upgraded server takes no ranges until a restore records the date of their first
    id, while servers of the old version run."""
    newer = drill.members[2]
    cluster.patiently("the upgraded server takes ranges", lambda: any(
        "the date of its first id is unknown" in caller.reason for caller in drill.callers if caller.member is newer))
    drill.restored("the date is recorded", lambda: drill.does("restore", "--ids_since=2026-01-01"))


SCENARIOS = {scenario: {} for scenario in (
    refused_backups, either_restores, new_continues, old_continues, rolled_back_and_continued, folder_of_a_stopped_server)}
SCENARIOS[date_of_the_first_id] = {  # no tag of such a cluster is obfuscated
    "init": ["--default_strategy=snowflake"], "tags": {tag: TAGS[tag] for tag in TAGS if tag != "coupon"}}


if __name__ == "__main__":
    sys.exit(play(Mixed, SCENARIOS))
