#!/usr/bin/python3
"""Tests the verdict of the drills of leases on recorded ids: each planted fault makes it red.

    lease_verdict_test.py
"""

import contextlib
import io
import os
import tempfile
import types
import unittest

import lease_drill

BEGAN_MS = 1_795_582_362_000
UNTIL_MS = BEGAN_MS + 12_000


def id_of(at_ms, machine, sequence=0):
    return (at_ms - lease_drill.EPOCH_MS) << 22 | machine << 12 | sequence


def passes(machine, first_ms=BEGAN_MS, last_ms=BEGAN_MS + 1_000, step_ms=10, sequences=range(10)):
    """The ids of a thread of a driver: some at once, then a pause."""
    return [id_of(at, machine, sequence) for at in range(first_ms, last_ms, step_ms) for sequence in sequences]


class LeaseVerdictTest(unittest.TestCase):
    def verdict(self, *programs, servers=(), until_ms=UNTIL_MS, killed=()):
        """The faults after a drill in which each program has written the ids of its threads into its files."""
        drill = lease_drill.Drill.__new__(lease_drill.Drill)
        drill.servers, drill.faults = types.SimpleNamespace(ids=list(servers)), []
        with tempfile.TemporaryDirectory(prefix="firn-verdict-") as folder:
            drill.lessees = [self.recorded(folder, f"lessee-{i}", threads, until_ms)
                             for i, threads in enumerate(programs)]
            drill.gone = [self.recorded(folder, f"killed-{i}", threads, None) for i, threads in enumerate(killed)]
            with contextlib.redirect_stdout(io.StringIO()):
                drill.count()
        return drill.faults

    @staticmethod
    def recorded(folder, name, threads, until_ms):
        lessee = lease_drill.Lessee.__new__(lease_drill.Lessee)
        lessee.name, lessee.file, lessee.until_ms = name, os.path.join(folder, name), until_ms
        for number, ids in enumerate(threads):
            with open(f"{lessee.file}.{number}", "w") as file:
                file.writelines(f"{one}\n" for one in ids)
        return lessee

    def check_red(self, words, *programs, **options):
        faults = self.verdict(*programs, **options)
        self.assertTrue(any(words in fault for fault in faults), faults)

    def test_ids_of_disjoint_leases_are_green(self):
        later = BEGAN_MS + 2_000
        one = [passes(513, sequences=range(10)), passes(513, sequences=range(10, 20))]
        # A machine id that another program had before, and two in a row.
        other = [passes(514) + passes(513, later, later + 500)]
        self.assertEqual(self.verdict(one, other, servers=passes(1), killed=[[passes(600)]]), [])

    def test_a_machine_id_that_was_granted_twice_is_red(self):
        self.check_red("duplicates", [passes(513)], [passes(513)])
        # No two ids are equal.
        self.check_red("equal ticks", [passes(513)], [passes(513, step_ms=30, sequences=range(100, 105))])
        self.check_red("equal ticks", [passes(513)], killed=[[passes(513, step_ms=70, sequences=range(100, 105))]])

    def test_a_machine_id_that_a_server_has_too_is_red(self):
        self.check_red("a server issued", [passes(7)], servers=passes(7, sequences=range(50, 60)))

    def test_a_program_that_issues_beyond_its_interval_is_red(self):
        self.assertEqual(self.verdict([passes(513, UNTIL_MS - 500, UNTIL_MS)]), [])
        self.check_red("its interval ended", [passes(513, UNTIL_MS - 500, UNTIL_MS) + [id_of(UNTIL_MS, 513)]])
        # The next holder of the machine id begins there.
        beyond = passes(513, UNTIL_MS - 500, UNTIL_MS + 200)
        self.check_red("equal ticks", killed=[[beyond], [passes(513, UNTIL_MS, UNTIL_MS + 500)]])

    def test_equal_ids_of_one_program_are_red(self):
        self.check_red("1 duplicates", [passes(513), [id_of(BEGAN_MS, 513)]])
        self.check_red("1 duplicates", [[id_of(BEGAN_MS, 513)] * 2])

    def test_equal_ids_of_servers_are_red(self):
        self.check_red("1 duplicates", servers=[id_of(BEGAN_MS, 1)] * 2)

    def restarts(self, *restarted_ms, failed):
        """The faults after all servers were restarted at these times. `failed`: calls failed by each time a program is asked."""
        drill, failed = lease_drill.Drill.__new__(lease_drill.Drill), iter(failed)
        drill.faults, restarted_ms = [], iter(restarted_ms)
        drill.lessees = [types.SimpleNamespace(name="program", so_far=lambda: {
            "until_ms": UNTIL_MS, "failed": next(failed), "lost": 0, "failure": "no lease"})]
        drill.await_covered, drill.restart_all = lambda _: None, lambda: next(restarted_ms)
        with contextlib.redirect_stdout(io.StringIO()):
            drill.all_down()
        return drill.faults

    def test_a_restart_that_was_too_late_is_repeated(self):
        self.assertEqual(self.restarts(BEGAN_MS, failed=[2, 2]), [])
        self.assertEqual(self.restarts(UNTIL_MS, BEGAN_MS, failed=[0, 2, 2]), [])
        self.assertIn("program failed", self.restarts(UNTIL_MS, BEGAN_MS, failed=[0, 2, 3])[0])

    def test_restarts_that_are_always_too_late_are_red(self):
        attempts = lease_drill.ATTEMPTS
        self.assertIn("fast enough", self.restarts(*[UNTIL_MS] * attempts, failed=[0] * attempts)[0])

    def test_descending_ids_are_red(self):
        self.check_red("do not ascend", [[id_of(BEGAN_MS + 1, 513), id_of(BEGAN_MS, 513)]])


if __name__ == "__main__":
    unittest.main()
