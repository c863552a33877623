"""How long a lessee waits after failures, and how long it repeats a release."""

import unittest

from firn.errors import LeaseFault
from lease_world import START_MS, World, lost, refused, terms_of, unreachable

MINUTE_MS = 60_000


class WaitTest(unittest.TestCase):
    def widest_wait_ms(self, ahead_ms, given_ms):
        """The widest time between two attempts of a renewal, if a server gives intervals of this length and then none."""
        world = World(servers=1, ahead_ms=ahead_ms)
        now = START_MS - terms_of().epoch_ms
        world.servers[0].say = [terms_of(until_tick=now + given_ms, renew_in_ms=1)] + [lost()] * 1000
        world.turn()
        world.known = []
        at = []
        for ms in range(given_ms - 1):
            world.clock.advance(1)
            at += [ms] * len(world.turn())
            world.take()
        return max(later - one for one, later in zip(at, at[1:]))

    def test_waits_are_at_most_a_twelfth_of_the_interval_that_was_given(self):
        for ahead_ms, given_ms, longest_ms in ((MINUTE_MS, MINUTE_MS, 2_000), (MINUTE_MS, 6_000, 500),
                                               (MINUTE_MS, 3_000, 250), (MINUTE_MS, 1_000, 100),
                                               (6_000, MINUTE_MS, 500), (2_000, MINUTE_MS, 167)):
            widest_ms = self.widest_wait_ms(ahead_ms, given_ms)
            self.assertLessEqual(widest_ms, longest_ms + 1, (ahead_ms, given_ms))
            self.assertGreaterEqual(widest_ms, longest_ms // 2, (ahead_ms, given_ms))

    def test_shorter_interval_bounds_the_waits_of_a_request_that_is_pending(self):
        world = World()
        a, b = world.servers
        world.turn()
        a.say, world.known = [refused(LeaseFault.NO_LEASES)] + [lost()] * 1000, [b]
        b.say = [None, refused(LeaseFault.REVOKED)]
        world.run(9_950)  # b's lease is held since 5 s, and the release of a's fails
        now = world.clock.tick()
        b.say += [terms_of(40, server=b.address, from_tick=now, until_tick=now + 3_000)] + [lost()] * 1000
        world.run(1_300, take=False)
        self.assertEqual(len(world.lost), 1)
        for _ in range(8):
            released = [one for one in world.run(250, take=False) if one[1] == "releaseLease"]
            self.assertNotEqual(released, [])


class UnusedLeaseTest(unittest.TestCase):
    def released_ms(self, **words):
        """How long an unused lease, whose release is not answered, is released."""
        world = World(servers=1)
        world.servers[0].say = [terms_of(**words)] + [unreachable()] * 1000
        last_ms, began_ms = 0, world.clock.wall
        world.turn()
        world.known = []
        for _ in range(1_500):
            world.clock.advance(100)
            if world.turn():
                last_ms = (world.clock.wall - began_ms) // 1_000_000
        return last_ms

    def test_unused_lease_is_released_until_its_end_or_for_ahead(self):
        now = START_MS - terms_of().epoch_ms
        for words, end_ms in (({"base_bits": 1}, 15_000),
                              ({"base_bits": 1, "until_tick": now + 600_000}, MINUTE_MS),  # more than was asked for
                              ({"until_tick": now - 1}, MINUTE_MS),  # the end is unknown
                              ({"tick_ms": -(1 << 31), "until_tick": (1 << 63) - 1}, MINUTE_MS)):
            last_ms = self.released_ms(**words)
            self.assertLess(last_ms, end_ms, words)
            self.assertGreater(last_ms, end_ms - 3_000, words)


if __name__ == "__main__":
    unittest.main()
