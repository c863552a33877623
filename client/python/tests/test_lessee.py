"""Plays the tables of lessees that the generators of all languages share, and tests what only this one has."""

import os
import unittest

import firn
from firn.ask import Ask
from firn.errors import AttemptFailed, End
from lease_player import EPOCH_MS, Player, table
from test_frames import PATH


@unittest.skipUnless(os.path.exists(PATH), "a source package does not contain the tables")
class TableTest(unittest.TestCase):
    def test_follows_the_shared_tables(self):
        for name, least in ("lessees.json", 60), ("jumps.json", 10):
            cases = table(name)
            self.assertGreaterEqual(len(cases), least)
            for one in cases:
                with self.subTest(one["case"]):
                    Player(self, one).play(one["steps"])


class LesseeTest(unittest.TestCase):
    def setUp(self):
        self.player = Player(self, {})

    def test_request_for_a_lease(self):
        order = self.player.lessee.due()
        wall_ms = self.player.clock.wall // 1_000_000
        self.assertEqual(order.ask, Ask("lease", lease=(f"{1:032x}", "checkout", wall_ms, 60_000, None)))

    def test_reason_of_the_last_failure_is_in_the_exception(self):
        self.player.play(["pass 0", "answer unreachable", "answer notready:700"])
        with self.assertRaisesRegex(firn.NoLease, "granted one yet; last failure: 10.0.0.2:7609 refused .NOT_READY.: not"):
            self.player.ids.next()
        player = Player(self, {})
        player.play(["pass 0", "answer terms:spoilt=overlap"])
        with self.assertRaisesRegex(firn.NoLease, "10.0.0.1:7609 granted a lease that cannot be used: fields that overlap"):
            player.ids.next()

    def test_reasons_of_losses(self):
        said = []
        self.player.lessee._on_lost = lambda loss: said.append(loss.reason)
        self.player.play(["lease", "reply renewal lost", "reply grant lost", "pass 60100", "reply release released",
                          "reply grant terms", "pass 3000", "reply renewal revoked", "pass 20000"])
        self.assertRegex(said[0], "^the lease of machine id 7 ended at 2024-01-12 13:47:40 UTC")
        self.assertRegex(said[1], "^the lease of machine id .* was revoked: revoked$")

    def test_exception_of_on_lost_does_not_end_the_renewals(self):
        def raising(_):
            raise RuntimeError("as the test says")
        self.player.lessee._on_lost = raising
        self.player.play(["lease", "reply renewal revoked", "reply grant terms", "pass 20000", "next 8",
                          "reply renewal terms", "work 60000"])

    def test_lease_that_is_granted_after_stop_is_released_unused(self):
        self.player.play(["pass 0", "sent grant", "stop", "answer terms", "sent release:7:-:s1", "answer released", "stopped yes"])

    def test_paused_server_of_a_short_lease_is_replaced_in_time(self):
        """One request is sent at a time: each one to a paused server lasts until its limit."""
        for busy in False, True:  # the other server is not ready at first
            with self.subTest(busy):
                player = Player(self, {"ahead": 3_000})
                player.play(["lease for=3000", "reply renewal terms:for=3000", "reply grant terms:for=3000", "work 5000"])
                first, player.replies, asked = player.servers[0], {"release": "lost"}, 0
                until = player.clock.boot + 10_000 * 1_000_000
                while player.clock.boot < until:
                    player.clock.advance(50)
                    player.turn()
                    if player.order and player.order.address == first:
                        player.clock.advance(player.order.limit_s * 1000)
                        player.do_answer("lost")
                    elif player.order:
                        asked += 1
                        player.do_answer("notready" if busy and asked == 1 else "terms:for=3000")
                    player.check_id(player.ids.next())
                self.assertEqual(player.losses, [])
                self.assertEqual(player.leases[player.held].machine, 8)

    def test_attempt_has_a_limit_that_leaves_time_for_another_server(self):
        self.player.play(["lease for=6000", "pass 2000"])
        self.assertAlmostEqual(self.player.order.limit_s, 2.0)
        self.player.play(["answer lost", "sleep 1500", "pass 0"])
        self.assertAlmostEqual(self.player.order.limit_s, 0.5)

    def test_terms_that_overflow_are_given_back(self):
        self.player.turn()
        order, self.player.order = self.player.order, None
        terms = self.player.granted({}, order)._replace(tick_ms=-(1 << 31), until_tick=(1 << 63) - 1)
        self.player.lessee.done(order, terms)
        self.player.play(["reply grant lost", "pass 0", "saw release:7 grant"])

    def test_failures_of_old_attempts_are_ignored(self):
        self.player.turn()
        order = self.player.order
        self.player.play(["answer terms"])
        self.player.lessee.done(order, AttemptFailed(End.TIMEOUT, ""))
        self.player.play(["next 7 +0"])
        self.assertEqual(self.player.leases[self.player.held].epoch_ms, EPOCH_MS)


if __name__ == "__main__":
    unittest.main()
