"""What a lessee requests when, and what answers, and lost answers, mean."""

import dataclasses
import unittest

import firn
from firn.errors import LeaseFault
from firn.lease_requests import Backoff
from lease_world import START_MS, World, lost, not_ready, refused, terms_of, unreachable


def methods(requests):
    return [(one[0], one[1]) for one in requests]


class GrantTest(unittest.TestCase):
    def setUp(self):
        self.world = World()
        self.a, self.b = self.world.servers

    def leased(self):
        return self.world.ids.terms() is not None

    def test_first_lease(self):
        self.assertEqual(self.world.turn(), [("1", "lease", f"{1:032x}", "checkout", START_MS, 60_000, None)])
        self.world.take()
        self.assertEqual(self.world.turn(), [])

    def test_lost_answer_is_repeated_with_its_token_at_the_same_server(self):
        self.a.after = [lost()]
        sent = self.world.run(1_000, take=False)
        self.assertEqual([one[:3] for one in sent], [("1", "lease", f"{1:032x}")] * 2)
        self.assertEqual(len(self.a.leases), 1)
        self.world.take()

    def test_server_that_stays_silent_is_left_with_a_fresh_token(self):
        self.a.say = [lost(), lost()]
        sent = self.world.run(1_000, take=False)
        self.assertEqual([one[:3] for one in sent], [("1", "lease", f"{1:032x}")] * 2 + [("2", "lease", f"{2:032x}")])
        self.world.take()

    def test_server_that_dies_after_granting_is_left_at_once(self):
        self.a.after, self.a.say = [lost()], [None, unreachable()]
        sent = self.world.run(500, take=False)
        self.assertEqual([one[:3] for one in sent], [("1", "lease", f"{1:032x}")] * 2 + [("2", "lease", f"{2:032x}")])

    def test_only_server_keeps_the_token(self):
        self.world.known = [self.a]
        self.a.after, self.a.say = [lost()], [None, lost(), lost(), lost(), unreachable()]
        sent = self.world.run(10_000, take=False)
        self.assertEqual({one[2] for one in sent if one[1] == "lease"}, {f"{1:032x}"})
        self.assertEqual(len(self.a.leases), 1)

    def test_unreachable_servers_are_asked_in_turn_with_the_same_token(self):
        self.a.say, self.b.say = [unreachable()] * 3, [unreachable()] * 2
        sent = self.world.run(3_000, take=False)
        self.assertEqual([one[0] for one in sent], ["1", "2", "1", "2", "1", "2"])
        self.assertEqual({one[2] for one in sent}, {f"{1:032x}"})
        self.assertTrue(self.leased())

    def test_waits_as_long_as_a_server_that_is_not_ready_says(self):
        self.world.known = [self.a]
        self.a.say = [not_ready(700)]
        self.assertEqual(len(self.world.turn()), 1)
        self.assertEqual(self.world.run(650, take=False), [])
        self.assertEqual(len(self.world.run(100, take=False)), 1)
        self.assertTrue(self.leased())

    def test_server_without_leases_and_an_old_server_are_left(self):
        old = firn.errors.AttemptFailed(firn.End.WRONG_SERVICE, "it does not know the method", lacks_method=True)
        self.world = World(3)
        self.world.servers[0].say, self.world.servers[1].say = [old], [refused(LeaseFault.NO_LEASES)]
        self.assertEqual([one[0] for one in self.world.turn()], ["1", "2", "3"])
        self.assertTrue(self.leased())

    def test_token_of_a_lease_that_was_renewed_is_replaced(self):
        self.a.say = [refused(LeaseFault.OUTDATED)]
        self.b.say = [unreachable()]
        sent = self.world.run(1_000, take=False)
        self.assertEqual([one[2] for one in sent], [f"{1:032x}", f"{2:032x}", f"{2:032x}"])

    def test_unusable_terms_are_reported_and_another_token_is_used(self):
        self.a.say = [terms_of(base_bits=1)]
        self.world.turn()
        with self.assertRaisesRegex(firn.NoLease, "10.0.0.1:7609 granted a lease that cannot be used: fields that overlap"):
            self.world.ids.next()
        sent = self.world.run(1_000, take=False)
        self.assertEqual([one[:3] for one in sent], [("2", "lease", f"{2:032x}")])

    def test_unusable_terms_are_given_back(self):
        bad = terms_of(base_bits=1, server="10.9.9.9:7609")
        self.a.say, self.b.say = [bad], [bad._replace(from_tick=-(1 << 63))]
        self.world.run(3_000, take=False)
        self.assertEqual(self.a.ended, {bad.lease: ("", bad.from_tick - 1)})
        self.assertEqual(self.b.ended, {bad.lease: ("", -1)})
        self.assertTrue(self.leased())

    def test_wait_that_a_server_asks_for_is_at_most_10_s(self):
        self.world.known = [self.a]
        self.a.say = [not_ready(3_600_000)]
        self.world.turn()
        self.assertEqual(self.world.run(9_950, take=False), [])
        self.assertEqual(len(self.world.run(100, take=False)), 1)

    def test_backoff_ends_at_2_s_or_a_twelfth_of_the_interval(self):
        for interval_ms, most_s in (60_000, 2.0), (6_000, 0.5), (2_000, 2 / 12), (0, 0.1):
            backoff = Backoff()
            waits = [backoff.next(interval_ms) for _ in range(20)]
            self.assertLessEqual(max(waits), most_s)
            self.assertGreaterEqual(min(waits[5:]), most_s / 2)

    def test_reason_of_the_last_failure_is_in_the_exception(self):
        self.a.say, self.b.say = [unreachable()], [not_ready()]
        self.world.turn()
        with self.assertRaisesRegex(firn.NoLease, "granted one yet; last failure: 10.0.0.2:7609 refused .NOT_READY.: the"):
            self.world.ids.next()


class RenewalTest(unittest.TestCase):
    def setUp(self):
        self.world = World()
        self.a, self.b = self.world.servers
        self.world.turn()
        self.lease = self.world.ids.terms().lease

    def tearDown(self):
        self.world.check(self)

    def turns(self, sent):
        return [(one[3], one[4]) for one in sent if one[1] == "renewLease"]

    def test_each_renewal_has_a_fresh_turn_and_shows_the_last(self):
        sent = self.world.run(120_000)
        self.assertEqual({one[1] for one in sent}, {"renewLease"})
        self.assertEqual(self.turns(sent)[:3], [(f"{2:032x}", ""), (f"{3:032x}", f"{2:032x}"), (f"{4:032x}", f"{3:032x}")])
        self.assertEqual(len(sent), 6)  # after 5 s, and then every 20 s
        self.assertEqual(self.world.lost, [])

    def test_lost_answer_is_repeated_with_its_turn(self):
        self.a.after = [lost(), lost()]
        sent = self.world.run(10_000)
        self.assertEqual(self.turns(sent), [(f"{2:032x}", "")] * 3)
        self.assertEqual(self.turns(self.world.run(20_000)), [(f"{3:032x}", f"{2:032x}")])

    def test_lost_request_is_repeated_with_its_turn(self):
        self.a.say = [lost(), unreachable(), not_ready()]
        sent = self.world.run(10_000)
        self.assertEqual(self.turns(sent), [(f"{2:032x}", "")] * 4)

    def test_refused_renewal_is_repeated_until_it_succeeds(self):
        behind = firn.errors.AttemptFailed(firn.End.REFUSED, "the program's clock is behind", firn.Reason.BAD_REQUEST)
        self.a.say = [behind, behind]
        self.assertEqual(self.turns(self.world.run(10_000)), [(f"{2:032x}", "")] * 3)

    def test_wait_that_a_server_asks_for_is_at_most_half_of_what_is_left(self):
        self.a.say = [not_ready(3_600_000)]
        self.world.run(5_000)  # 10 s are left
        self.assertEqual(self.world.run(4_900), [])
        self.assertEqual(self.turns(self.world.run(200)), [(f"{2:032x}", "")])

    def test_renewal_is_sent_before_a_grant_and_a_grant_before_releases(self):
        self.world.lessee._give_back(terms_of(30), self.a.address)
        self.world.clock.advance(11_000)  # less than a third of 15 s is left
        self.a.say = [not_ready()]
        self.assertEqual([one[1] for one in self.world.turn()], ["renewLease", "lease", "releaseLease", "releaseLease"])

    def test_dead_server_is_replaced_when_a_third_is_left(self):
        self.a.say = [unreachable()] * 1000
        sent = self.world.run(9_950)
        self.assertEqual({one[0] for one in sent}, {"1"})
        sent = self.world.run(1_000)
        self.assertIn(("2", "lease"), methods(sent))
        self.assertEqual(self.world.lost, [])
        self.world.run(60_000)
        self.assertEqual(self.world.ids.terms().server, self.b.address)

    def test_replaced_lease_is_released_with_the_last_turn_and_the_highest_tick(self):
        self.a.say = [unreachable()] * 8
        self.world.run(9_950)
        self.a.say = []
        self.a.renewLease = lambda *_: not_ready()
        last = self.world.issued[-1]
        sent = self.world.run(1_000)
        self.assertIn(("1", "releaseLease"), methods(sent))
        self.assertEqual(self.a.ended[self.lease], (f"{2:032x}", last >> 22))

    def test_release_is_repeated_until_the_lease_has_ended(self):
        self.a.say = [unreachable()] * 1000
        sent = self.world.run(30_000)
        tries = [one for one in sent if one[1] == "releaseLease"]
        self.assertGreater(len(tries), 2)
        self.assertEqual([one for one in self.world.run(30_000) if one[1] == "releaseLease"], [])

    def test_all_servers_down_for_longer_than_a_renewal(self):
        self.world.run(6_000)  # the interval has 60 s
        self.a.say, self.b.say = [unreachable()] * 1000, [unreachable()] * 1000
        self.world.run(55_000)
        self.a.say = self.b.say = []
        self.world.run(60_000)
        self.assertEqual(self.world.lost, [])

    def test_renewal_that_succeeds_cancels_a_grant_that_no_server_has_received(self):
        self.world.known = []
        self.a.say = [unreachable()] * 1000
        self.world.run(11_000)
        self.assertIsNotNone(self.world.lessee._grant)
        self.a.say = []
        self.world.run(4_000)
        self.assertIsNone(self.world.lessee._grant)
        self.world.known = self.world.servers
        self.assertEqual([one for one in self.world.run(30_000) if one[1] == "lease"], [])

    def test_interval_that_ends_is_reported_once_and_the_next_lease_goes_on(self):
        self.world.known = []
        self.a.say = [unreachable()] * 1000
        self.world.run(14_950)
        self.world.run(10_000, take=False)
        with self.assertRaisesRegex(firn.NoLease, "machine id 17 ended, .*10.0.0.1:7609 unreachable: refused"):
            self.world.take()
        self.assertEqual(len(self.world.lost), 1)
        self.assertRegex(self.world.lost[0], "machine id 17 ended at 2024-01-12 13:46:55 UTC")
        self.world.known = [self.b]
        self.world.run(11_000, take=False)
        self.world.take()

    def test_revoked_lease_stops_at_once_and_the_next_has_a_fresh_token(self):
        self.a.say = [refused(LeaseFault.REVOKED)]
        self.world.run(4_950)
        sent = self.world.run(50, take=False)
        self.assertEqual(methods(sent), [("1", "renewLease"), ("2", "lease")])
        self.assertEqual(self.world.lost, ["the lease of machine id 17 was revoked: REVOKED"])
        self.assertNotEqual(sent[1][2], f"{1:032x}")
        self.world.run(60_000)
        self.assertEqual(self.a.ended, {})  # there is nothing to release

    def test_no_id_between_a_revocation_and_the_next_lease(self):
        self.world.known = []
        self.a.say = [refused(LeaseFault.REVOKED)]
        self.world.run(4_950)
        self.world.run(50, take=False)
        with self.assertRaisesRegex(firn.NoLease, "was revoked"):
            self.world.take()

    def test_turn_that_another_process_has_overtaken_is_a_revocation(self):
        self.a.say = [refused(LeaseFault.OUTDATED)]
        self.world.run(5_000, take=False)
        self.assertEqual(len(self.world.lost), 1)

    def test_copy_of_the_process_is_found(self):
        """The copy renews first; then the turn that this process shows is not the last one."""
        held, = self.a.leases.values()
        held[1] = "f" * 32
        self.world.run(5_000, take=False)
        self.assertEqual(len(self.world.lost), 1)

    def test_unknown_lease_is_used_and_replaced_at_once(self):
        self.a.leases.clear()
        self.a.leases["x"] = [self.world.ids.terms()._replace(lease="x"), ""]
        sent = self.world.run(5_000)
        self.assertEqual(methods(sent), [("1", "renewLease"), ("2", "lease")])
        self.assertEqual(self.world.lost, [])
        self.world.run(20_000)
        self.assertEqual(self.a.ended, {})

    def test_grant_that_waits_is_sent_at_once_when_the_lease_is_unknown(self):
        self.world.known, self.a.say = [], [unreachable()] * 1000
        self.world.run(11_000)
        self.world.known, self.a.say = [self.b], [refused(LeaseFault.UNKNOWN_LEASE)]
        self.world.lessee._grant.send_at += 10
        self.assertEqual(methods(self.world.run(2_100)), [("1", "renewLease"), ("2", "lease")])

    def test_unknown_lease_is_used_to_its_end_if_no_server_grants_another(self):
        self.world.known = []
        self.a.say = [refused(LeaseFault.UNKNOWN_LEASE)]
        sent = self.world.run(14_950)
        self.assertEqual(methods(sent), [("1", "renewLease")])
        with self.assertRaises(firn.NoLease):
            self.world.run(100)

    def test_another_server_that_is_named_is_asked(self):
        self.b.leases = self.a.leases
        self.a.say = [refused(LeaseFault.ANOTHER_SERVERS, self.b.address)]
        sent = self.world.run(5_000)
        self.assertEqual(methods(sent), [("1", "renewLease"), ("2", "renewLease")])
        self.assertEqual(len({one[3] for one in sent}), 1)

    def test_servers_that_name_each_other_are_asked_ever_more_rarely(self):
        self.a.say = [refused(LeaseFault.ANOTHER_SERVERS, self.b.address)] * 1000
        self.b.say = [refused(LeaseFault.ANOTHER_SERVERS, self.a.address)] * 1000
        self.assertLess(len(self.world.run(9_000)), 12)

    def test_renewal_follows_at_most_2_servers(self):
        world = World(4)
        world.turn()
        for one, other in zip(world.servers, world.servers[1:]):
            one.say = [refused(LeaseFault.ANOTHER_SERVERS, other.address)] * 1000
        self.assertEqual([one[0] for one in world.run(5_000)], ["1", "2", "3"])
        self.assertEqual({one[0] for one in world.run(4_000)}, {"3"})

    def test_address_that_is_not_listed_gets_no_renewal_and_no_release(self):
        """A lease's id is a secret: another server than those in the list must not get it."""
        for address in "nowhere", "10.9.9.9:7609":
            with self.subTest(address):
                world = World(1)
                world.turn()
                world.servers[0].say = [refused(LeaseFault.ANOTHER_SERVERS, address)] * 3
                sent = world.run(6_000)
                self.assertEqual([one[3] for one in sent if one[1] == "renewLease"], [f"{2:032x}"] * len(sent))
                world.servers[0].say = [refused(LeaseFault.ANOTHER_SERVERS, address)] * 3
                world.lessee.stop()
                self.assertEqual({one[:2] for one in world.run(2_000, take=False)}, {("1", "releaseLease")})

    def test_address_that_the_grant_named_is_followed(self):
        world = World(3)
        world.listed.remove(world.servers[2].address)
        world.known.remove(world.servers[2])
        world.servers[0].say = [terms_of(server=world.servers[2].address)]
        world.turn()
        world.servers[0].say = [refused(LeaseFault.ANOTHER_SERVERS, world.servers[2].address)]
        self.assertEqual(methods(world.run(5_000))[:2], [("1", "renewLease"), ("3", "renewLease")])

    def test_renewal_goes_to_the_server_that_the_terms_name_if_it_is_listed(self):
        for server, expected in ("10.0.0.2:7609", "2"), ("10.9.9.9:7609", "1"):
            with self.subTest(server):
                world = World()
                world.servers[0].say = [terms_of(server=server)]
                world.turn()
                self.assertEqual(methods(world.run(5_000))[0], (expected, "renewLease"))

    def test_lease_that_a_server_extends_no_further_is_replaced_at_once_and_released(self):
        for fault in LeaseFault.NO_LEASES, LeaseFault.OTHER:
            with self.subTest(fault):
                world = World()
                world.turn()
                lease = world.ids.terms().lease
                world.servers[0].say = [refused(fault)]
                sent = world.run(5_000)
                self.assertEqual(methods(sent), [("1", "renewLease"), ("2", "lease"), ("1", "releaseLease")])
                self.assertIn(lease, world.servers[0].ended)
                self.assertEqual(world.lost, [])

    def test_terms_of_another_lease_do_not_extend_this_one(self):
        terms = self.world.ids.terms()
        for words in {"machine": 18, "base_bits": 18 << 12}, {"lease": "x"}, {"until_tick": terms.until_tick - 1}:
            self.a.say.append(terms._replace(**words))
        self.assertEqual(self.turns(self.world.run(7_000)), [(f"{2:032x}", "")] * 4)

    def test_exception_of_on_lost_does_not_end_the_renewals(self):
        def raising(_):
            raise RuntimeError("as the test says")
        self.world.lessee._on_lost = raising
        self.a.say = [refused(LeaseFault.REVOKED)]
        self.world.run(5_000, take=False)
        self.world.run(60_000)

    # --- the end ----------------------------------------------------------------------------------

    def test_stop_closes_before_it_reads_the_highest_tick(self):
        self.world.run(7_000)
        self.world.lessee.stop()
        with self.assertRaises(firn.Closed):
            self.world.take()
        self.assertEqual(methods(self.world.turn()), [("1", "releaseLease")])
        self.assertEqual(self.a.ended[self.lease], (f"{2:032x}", self.world.issued[-1] >> 22))
        self.assertTrue(self.world.lessee.stopped)
        self.assertEqual(self.world.run(60_000, take=False), [])

    def test_stop_during_a_renewal_names_the_turn_that_has_no_answer(self):
        self.world.clock.advance(5_000)
        order = self.world.lessee.due()
        self.world.lessee.stop()
        self.world.lessee.done(order, self.a.answer(order.ask))
        self.world.turn()
        self.assertEqual(self.a.ended[self.lease], (f"{2:032x}", START_MS - 1_704_067_200_000 - 1))

    def test_lease_that_is_granted_after_stop_is_released_unused(self):
        world = World()
        order = world.lessee.due()
        world.lessee.stop()
        granted = world.servers[0].answer(order.ask)
        world.lessee.done(dataclasses.replace(order), granted)
        world.turn()
        self.assertEqual(world.servers[0].ended, {granted.lease: ("", granted.from_tick - 1)})


if __name__ == "__main__":
    unittest.main()
