"""What a lessee does while a server claims a machine id slowly, and while a lease is ending."""

import unittest

import firn
from lease_world import World, claiming, lost


class ClaimingTest(unittest.TestCase):
    def setUp(self):
        self.world = World()
        self.a, self.b = self.world.servers

    # A slow registry, or a probation.
    def test_server_that_is_claiming_keeps_the_request_and_its_token(self):
        self.a.say = [claiming()] * 30
        sent = self.world.run(60_000, take=False)
        self.assertEqual({one[:3] for one in sent if one[1] == "lease"}, {("1", "lease", f"{1:032x}")})
        self.assertIsNotNone(self.world.ids.terms())
        self.assertEqual((len(self.a.leases), len(self.b.leases)), (1, 0))

    def test_server_that_was_claiming_and_stays_silent_is_left(self):
        self.a.say = [claiming(), claiming(), lost(), lost()]
        sent = self.world.run(6_000, take=False)
        self.assertEqual([one[:3] for one in sent if one[1] == "lease"],
                         [("1", "lease", f"{1:032x}")] * 4 + [("2", "lease", f"{2:032x}")])


class EndingTest(unittest.TestCase):
    def setUp(self):
        self.world = World()
        self.a, self.b = self.world.servers
        self.world.turn()
        self.world.take()

    def tearDown(self):
        self.world.check(self)

    def test_ending_lease_is_renewed_up_to_its_bound_and_replaced_when_a_third_is_left(self):
        held, = self.a.leases.values()
        held[0] = held[0]._replace(ending=True)
        self.a.bound = self.world.clock.tick() + 300_000
        sent = self.world.run(290_000)
        self.assertGreaterEqual(sum(one[:2] == ("1", "renewLease") for one in sent), 13)
        first, = (one for one in self.b.leases.values())
        self.assertAlmostEqual(first[0].from_tick, self.a.bound - 20_000, delta=1_100)
        self.assertEqual([one[1] for one in sent].count("lease"), 1)

    # No server can grant a lease: the ending one lasts to its bound.
    def test_ending_lease_without_a_successor_is_used_to_its_bound(self):
        held, = self.a.leases.values()
        held[0] = held[0]._replace(ending=True)
        self.a.bound = self.world.clock.tick() + 300_000
        self.world.known = []
        self.world.run(299_900)
        with self.assertRaises(firn.NoLease):
            self.world.run(200)


if __name__ == "__main__":
    unittest.main()
