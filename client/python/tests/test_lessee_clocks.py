"""What a lessee does when the wall clock jumps, and how long it waits for a silent server."""

import unittest

import firn
from firn.errors import AttemptFailed, End, LeaseFault, Reason
from lease_world import World, lost, not_ready, refused


def methods(sent):
    return [one[:2] for one in sent]


class JumpTest(unittest.TestCase):
    def setUp(self):
        self.world = World()
        self.a, self.b = self.world.servers
        self.world.turn()

    def tearDown(self):
        self.world.check(self)

    def jump(self, ms):
        self.world.clock.step(ms)
        self.world.clock.advance(1)

    def fails(self, words):
        with self.assertRaisesRegex(firn.NoLease, words):
            self.world.take()

    def test_renewal_confirms_a_jump_at_once(self):
        """Some clocks lack the time for which the machine was suspended."""
        self.world.run(1_000)
        self.jump(3_600_000)
        self.fails("the wall clock has jumped forward by 3600 s, and no server has confirmed it")
        self.assertFalse(self.world.ids.wakes.empty())  # of the thread that renews
        self.assertEqual(methods(self.world.turn()), [("1", "renewLease")])
        self.world.take()
        self.assertEqual(self.world.issued[-1] >> 22, self.world.clock.tick())

    def test_request_from_before_a_jump_confirms_nothing(self):
        for first_is_lost in False, True:
            with self.subTest(first_is_lost):
                self.setUp()
                self.world.run(4_950)
                self.world.clock.advance(50)
                order = self.world.lessee.due()
                if first_is_lost:  # the server may have received only the first sending
                    self.world.lessee.done(order, lost())
                    self.jump(3_600_000)
                    self.assertEqual(methods(self.world.turn()), [("1", "renewLease")])
                else:
                    self.jump(3_600_000)
                    self.world.lessee.done(order, self.a.answer(order.ask))
                self.fails("jumped")
                self.assertEqual(self.world.run(50, take=False), [])
                self.assertEqual(methods(self.world.run(50)), [("1", "renewLease")])

    def test_jump_that_servers_refuse_is_not_followed(self):
        refusal = AttemptFailed(End.REFUSED, "the program's clock is 1 h ahead of the server's", Reason.BAD_REQUEST)
        self.a.say, self.b.say = [refusal] * 1000, [refusal] * 1000
        self.world.run(1_000)
        self.jump(3_600_000)
        self.assertGreater(len(self.world.run(40_000, take=False)), 20)
        self.fails("no server has confirmed it; last failure: .*ahead of the server's")
        self.a.say, self.b.say = [], []
        self.jump(-3_600_000)
        self.world.run(3_000, take=False)
        self.world.take()

    def test_grant_confirms_a_jump(self):
        """The machine was suspended for longer than the lease."""
        self.world.run(1_000)
        self.a.say = [refused(LeaseFault.UNKNOWN_LEASE)]
        self.jump(3_600_000)
        self.world.run(2_000, take=False)
        self.world.take()
        self.assertEqual(self.world.issued[-1] >> 22, self.world.clock.tick())
        self.assertEqual(self.world.ids.terms().machine, 18)


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
