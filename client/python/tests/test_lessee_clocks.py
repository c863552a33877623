"""What a lessee does when the wall clock jumps, in the table tests/contract/jumps.json that the generators of all languages
share, and how long it waits for a silent server."""

import json
import os
import types
import unittest

import firn
from firn.errors import AttemptFailed, End, LeaseFault, Reason
from lease_world import World, lost, not_ready, refused, terms_of
from test_frames import PATH

KINDS = {"Grant": "grant", "Renewal": "renewal", "Release": "release"}


class Jumps(World):
    """The steps of the table."""

    def __init__(self, test):
        super().__init__()
        self.test, self.unanswered, self.sent_kinds = test, None, []

    def turn(self):
        if self.unanswered is None:
            self.unanswered = self.lessee.due()
            if self.unanswered:
                self.sent_kinds.append(KINDS[type(self.unanswered.request).__name__])

    def play(self, steps):
        for number, step in enumerate(steps, 1):
            verb, *words = step.split()
            try:
                getattr(self, "do_" + verb)(*words)
            except AssertionError as fault:
                raise AssertionError(f"step {number}, {step}: {fault}") from fault

    def do_lease(self):
        self.turn()
        self.do_answer("terms")
        self.sent_kinds = []

    def do_pass(self, ms):
        self.turn()
        until = self.clock.boot + int(ms) * 1_000_000
        while self.clock.boot < until:
            due_ms = int(ms) if self.unanswered else max(1, self.lessee.next_at * 1e3 - self.clock.boot / 1e6)
            self.clock.advance(min(due_ms, (until - self.clock.boot) / 1e6))
            self.turn()

    def do_step(self, ms):
        self.clock.step(int(ms))
        self.clock.advance(1)

    def do_next(self, expected):
        if expected == "id":
            self.test.assertEqual(self.ids.next() >> 22, self.clock.tick())
        else:
            with self.test.assertRaisesRegex(firn.NoLease, "the wall clock has jumped forward by 3600 s, and no server has "
                                             "confirmed it"):
                self.ids.next()
        if not self.ids.wakes.empty():
            self.ids.wakes.get()
            self.turn()

    def do_look(self, _):
        generator = types.SimpleNamespace(_ids=self.ids)
        self.test.assertIsNotNone(firn.LocalGenerator.machine_id(generator))
        self.test.assertIsNotNone(firn.LocalGenerator.until(generator))

    def do_sent(self, *kinds):
        self.test.assertEqual(self.sent_kinds, list(kinds))
        self.sent_kinds = []

    def do_answer(self, word):
        order, self.unanswered = self.unanswered, None
        tick = self.clock.tick()
        if word == "terms":
            held = self.ids.terms()
            if KINDS[type(order.request).__name__] == "grant":
                held = terms_of(18 if held else 17, from_tick=tick - 3_600_000)
            outcome = held._replace(until_tick=tick + 60_000, renew_in_ms=20_000)
        elif word == "refused":
            outcome = AttemptFailed(End.REFUSED, "the program's clock is ahead of the server's", Reason.BAD_REQUEST)
        else:
            outcome = lost() if word == "lost" else refused(LeaseFault.UNKNOWN_LEASE)
        self.lessee.done(order, outcome)
        self.turn()


@unittest.skipUnless(os.path.exists(PATH), "a source package does not contain the table")
class JumpTest(unittest.TestCase):
    def test_jumps(self):
        with open(os.path.join(os.path.dirname(PATH), "jumps.json"), encoding="utf-8") as file:
            cases = json.load(file)["cases"]
        self.assertGreater(len(cases), 10)
        for one in cases:
            with self.subTest(one["case"]):
                Jumps(self).play(one["steps"])


class PausedServerTest(unittest.TestCase):
    def test_paused_server_of_a_short_lease_is_replaced_in_time(self):
        for busy in 0, 1:  # answers of the other server that it is not ready
            with self.subTest(busy):
                world = World(ahead_ms=3_000)
                world.turn()
                world.run(5_000)
                world.servers[0].paused, world.servers[1].say = True, [not_ready()] * busy
                world.run(10_000)
                self.assertEqual(world.lost, [])
                self.assertEqual(world.ids.terms().server, world.servers[1].address)
                world.check(self)


if __name__ == "__main__":
    unittest.main()
