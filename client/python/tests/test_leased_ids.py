"""The ids of leases: intervals, clocks that are wrong, and exhausted sequences."""

import os
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import firn
from firn import lease_terms
from firn.leased_ids import LeasedIds
from lease_player import EPOCH_MS, START_MS, Clock, terms_of


def tick_of(number):
    return number >> 22


class LeasedIdsTest(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.ids = LeasedIds(self.clock)
        self.terms = terms_of()

    def sleep(self, seconds):
        """Stands for time.sleep: the clock passes."""
        self.clock.advance(seconds * 1000)

    def test_ids_have_the_machine_id_and_the_ticks_of_the_terms(self):
        self.ids.adopt(self.terms)
        number = self.ids.next()
        self.assertEqual(number & ~4095, self.terms.from_tick << 22 | 17 << 12)
        self.assertEqual((self.ids.next(), self.ids.next()), (number + 1, number + 2))

    def test_uses_only_its_part_of_the_sequence(self):
        self.ids.adopt(self.terms._replace(sequence_from=100, sequence_count=4, sequence_shift=0))
        with mock.patch("time.sleep", self.sleep):
            for _ in range(50):
                self.assertIn(self.ids.next() & 4095, range(100, 104))

    def test_no_id_before_the_first_lease(self):
        with self.assertRaisesRegex(firn.NoLease, "no server has granted one yet") as raised:
            self.ids.next()
        self.assertEqual(raised.exception.since_ms, START_MS)
        self.assertIn("since 2024-01-12 13:46:40 UTC", str(raised.exception))

    def test_interval_ends_and_says_since_when(self):
        self.ids.adopt(self.terms)
        self.clock.advance(14_999)
        self.assertEqual(tick_of(self.ids.next()), self.terms.until_tick - 1)
        self.ids.trouble = "10.0.0.1:7609 timeout"
        self.clock.advance(1)
        with self.assertRaisesRegex(firn.NoLease, "machine id 17 ended, .*last failure: 10.0.0.1:7609 timeout") as raised:
            self.ids.next()
        self.assertEqual(raised.exception.since_ms, START_MS + 15_000)

    def test_pause_inside_a_call_returns_no_id_outside_the_interval(self):
        """The pause comes after the clock was read. The tick that was read is this lease's forever."""
        self.ids.adopt(self.terms)
        self.clock.advance(5)

        def paused():
            read = self.clock.wall
            self.clock.advance(3_600_000)
            return read
        with mock.patch.object(self.clock, "wall_ns", paused):
            self.assertEqual(tick_of(self.ids.next()), self.terms.from_tick + 5)
        with self.assertRaises(firn.NoLease):
            self.ids.next()

    def test_exhausted_sequence_waits_for_the_next_tick(self):
        self.ids.adopt(self.terms)
        with mock.patch("time.sleep", self.sleep):
            taken = [self.ids.next() for _ in range(20_000)]
        self.assertEqual(taken, sorted(set(taken)))
        self.assertLessEqual(len(set(map(tick_of, taken))), 7)

    def test_exhausted_last_tick_fails_instead_of_waiting(self):
        self.ids.adopt(self.terms)
        self.clock.advance(14_999)
        with mock.patch("time.sleep", lambda _: self.fail("it waits")), self.assertRaises(firn.NoLease):
            for _ in range(4097):
                self.ids.next()

    def test_rare_ids_begin_at_different_sequences(self):
        self.ids.adopt(self.terms)
        low = set()
        for _ in range(100):
            self.clock.advance(10)
            low.add(self.ids.next() & 4095)
        self.assertGreater(len(low), 50)

    # --- clocks -----------------------------------------------------------------------------------

    def test_confirmation_does_not_move_the_id_clock_back(self):
        self.ids.adopt(self.terms)
        first = self.ids.next()
        self.clock.step(-3_000)
        self.ids.confirm(self.clock.wall_at_zero())
        self.clock.advance(10)
        self.assertEqual(tick_of(self.ids.next()) - tick_of(first), 9)

    def test_lease_of_another_layout_is_not_adopted_after_a_loss(self):
        self.ids.adopt(self.terms)
        self.ids.next()
        self.ids.close(firn.NoLease, "it was revoked")
        for words in {"epoch_ms": EPOCH_MS + 1}, {"tick_ms": 2}, {"tick_shift": 23}, {"sequence_bits": 11}:
            with self.subTest(words), self.assertRaisesRegex(ValueError, "layout is not that of the first lease"):
                self.ids.adopt(terms_of(18, **{"sequence_count": 2048, **words}))
        self.ids.adopt(terms_of(18))
        self.ids.next()

    def test_terms_are_checked(self):
        bad = [{"lease": ""}, {"server": "nowhere"}, {"tick_ms": 0}, {"tick_ms": 5_001}, {"until_tick": START_MS - EPOCH_MS},
               {"from_tick": -1}, {"base_bits": 17 << 12 | 1}, {"base_bits": 1 << 22}, {"tick_shift": 11},
               {"tick_shift": 60}, {"tick_shift": -1}, {"sequence_from": -1}, {"sequence_count": 0},
               {"sequence_from": 1}, {"sequence_shift": 21}, {"sequence_bits": 63}, {"sequence_shift": -1},
               {"until_tick": 1 << 62}]
        for words in bad:
            with self.subTest(words), self.assertRaises(ValueError):
                LeasedIds(self.clock).adopt(self.terms._replace(**words))
        self.assertIsNone(lease_terms.fault_of(self.terms))
        vesta = terms_of(tick_shift=30, sequence_shift=10, sequence_bits=20, sequence_count=1 << 20, base_bits=3 << 60 | 5,
                         from_tick=1, until_tick=(1 << 30) - 1)
        self.assertIsNone(lease_terms.fault_of(vesta))

    # --- closing and forking ----------------------------------------------------------------------

    def test_no_id_and_no_lease_after_close(self):
        self.ids.adopt(self.terms)
        used = tick_of(self.ids.next())
        self.assertEqual(self.ids.close(firn.Closed, "the generator was closed"), used)
        self.assertEqual(self.ids.close(firn.NoLease, "it was revoked"), used)
        with self.assertRaises(firn.Closed):
            self.ids.next()
        with self.assertRaisesRegex(ValueError, "closed"):
            self.ids.adopt(terms_of(18))

    def test_close_ends_a_wait_for_the_next_tick(self):
        self.ids.adopt(terms_of(tick_ms=5_000, epoch_ms=START_MS, from_tick=0, until_tick=100))
        self.ids.next()
        self.ids._left = 0, iter(())
        failures = []

        def wait():
            try:
                self.ids.next()
            except firn.Closed as failure:
                failures.append(failure)
        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.1)
        self.assertTrue(waiting.is_alive())
        self.ids.close(firn.Closed, "the generator was closed")
        waiting.join(60)
        self.assertEqual(len(failures), 1)

    def test_threads_take_different_ids(self):
        ids = LeasedIds()  # with the system's clock
        now = int(time.time() * 1000) - EPOCH_MS
        ids.adopt(terms_of(from_tick=now, until_tick=now + 600_000))
        taken = [[] for _ in range(4)]
        threads = [threading.Thread(target=lambda mine=mine: mine.extend(ids.next() for _ in range(20_000)))
                   for mine in taken]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for mine in taken:
            self.assertEqual(mine, sorted(mine))
        self.assertEqual(len({number for mine in taken for number in mine}), 80_000)

    def fork_and_take(self, advance_ms):
        """Takes an id in a forked child in which no hook of a generator runs, while a thread of the parent holds the lock.
        Returns the child's exit code, which is 7 for NoLease."""
        with self.ids._lock:
            child = os.fork()
            if child == 0:
                if advance_ms:
                    self.clock.advance(advance_ms)
                    self.ids._lock.release()  # only Linux has a mark that the child sees before it locks
                try:
                    self.ids.next()
                except firn.NoLease:
                    os._exit(7)
                os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    @unittest.skipUnless(hasattr(os, "fork"), "this system does not fork")
    def test_child_that_ran_no_hook_issues_nothing_in_a_later_tick(self):
        self.ids.adopt(self.terms)
        self.ids.next()
        self.ids._mark = b"\1"  # as on other systems than Linux
        self.assertEqual(self.fork_and_take(1), 7)
        self.ids.next()

    @unittest.skipUnless(sys.platform == "linux", "only Linux marks the pages of a child")
    def test_child_that_ran_no_hook_issues_nothing_in_the_same_tick(self):
        self.ids.adopt(self.terms)
        self.ids.next()
        self.assertEqual(self.fork_and_take(0), 7)
        self.ids.next()


HANDLER = """
import signal, sys, time
from firn.errors import Closed, NoLease
from firn.leased_ids import LeasedIds
from lease_player import EPOCH_MS, terms_of

ids, taken, calls = LeasedIds(), [], 0
now = int(time.time() * 1000) - EPOCH_MS
ids.adopt(terms_of(from_tick=now, until_tick=now + 600_000))

def handler(*_):
    global calls
    calls += 1
    try:
        taken.append(ids.next())
    except NoLease as none:
        assert "has interrupted next()" in str(none), none
    except Closed:
        pass
    if sys.argv[1] == "close" and calls == 20:
        ids.refuse(Closed, "in a handler")

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
try:
    while calls < 2_000:
        taken.append(ids.next())
except Closed:
    print("closed", calls)
signal.setitimer(signal.ITIMER_REAL, 0)
assert len(set(taken)) == len(taken)
print("taken", len(taken))
"""


class HandlerTest(unittest.TestCase):
    """A handler that waited for a lock of the call that it has interrupted would wait for ever."""

    def run_script(self, what):
        here = os.path.dirname(os.path.abspath(__file__))
        return subprocess.run([sys.executable, "-B", "-c", HANDLER, what], cwd=here, stdout=subprocess.PIPE, text=True,
                              timeout=120, check=True).stdout

    def test_next_in_a_signal_handler_repeats_no_id(self):
        self.assertIn("taken", self.run_script("next"))

    def test_generator_is_closed_in_a_signal_handler(self):
        self.assertIn("closed", self.run_script("close"))


if __name__ == "__main__":
    unittest.main()
