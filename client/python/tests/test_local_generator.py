"""Generators of local ids, with servers that lease machine ids over TCP."""

import asyncio
import dataclasses
import datetime
import gc
import os
import threading
import time
import unittest
import unittest.mock

import firn
import firn.aio
from fake_server import PATIENCE_S, FakeServer, patiently
from firn.errors import AttemptFailed, End
from firn.leased_ids import LeasedIds
from firn.local_generator import _Runner
from firn.protocol import Status


def lessees():
    return [one for one in threading.enumerate() if one.name == "firn-lease"]


class LocalGeneratorTest(unittest.TestCase):
    def setUp(self):
        self.server = FakeServer()
        self.addCleanup(self.server.close)
        self.client = firn.Client(f"list://{self.server.address}", deadline_ms=60_000, attempt_limit_ms=60_000)
        self.addCleanup(self.client.close)

    def test_ids_under_a_lease_that_is_renewed(self):
        self.server.renew_ms = 200
        with firn.LocalGenerator(self.client, "checkout-7f9c") as generator:
            first = generator.next()
            self.assertEqual((first >> 12 & 1023, generator.machine_id()), (17, 17))
            self.assertLess(generator.until() - datetime.datetime.now(datetime.timezone.utc),
                            datetime.timedelta(seconds=16))
            patiently(lambda: self.server.asked.count("renewLease") >= 4)
            self.assertGreater(generator.next(), first)
        self.assertEqual(self.server.asked.count("lease"), 1)
        self.assertEqual(self.server.asked[-1], "releaseLease")
        self.assertIsNone(generator.machine_id() or generator.until())
        with self.assertRaises(firn.Closed):
            generator.next()
        generator.close()  # again

    def test_renewals_keep_their_connection(self):
        self.server.renew_ms = 200
        with firn.LocalGenerator(self.client, "checkout") as generator:
            self.await_renewal(generator)
            self.server.refuse_connections()
            self.await_renewal(generator)
            self.await_renewal(generator)
            generator.next()
            self.assertEqual(generator._ids.trouble, "")

    def test_renewal_replaces_a_connection_that_the_server_has_closed(self):
        self.server.renew_ms = 200
        with firn.LocalGenerator(self.client, "checkout") as generator:
            for _ in range(3):
                self.await_renewal(generator)
                self.server.drop()
            self.await_renewal(generator)
            self.assertEqual(generator._ids.trouble, "")

    def test_renewal_replaces_a_connection_that_gets_no_answer(self):
        runner = _Runner(self.client, LeasedIds(), "checkout", 60_000, None, None)
        self.addCleanup(runner._engine.close)
        self.addCleanup(runner._hang_up)
        order = runner._lessee.due()
        runner._lessee.done(order, runner._send(order))
        self.server.mute()  # without a reset, only a timeout shows that the path is dead
        runner._lessee._held.renew_at = 0
        order = runner._lessee.due()
        order = dataclasses.replace(order, limit_s=4.0)
        self.assertIsNotNone(runner._send(order))
        self.assertEqual(self.server.asked.count("renewLease"), 2)

    def test_unexpected_exception_closes_the_kept_connection(self):
        runner = _Runner(self.client, LeasedIds(), "checkout", 60_000, None, None)
        self.addCleanup(runner._engine.close)
        order = runner._lessee.due()
        runner._send(order)
        with unittest.mock.patch.object(runner._kept, "idle_and_open", side_effect=ValueError):
            with self.assertRaises(ValueError):
                runner._send(order)
        self.assertIsNone(runner._kept)

    @staticmethod
    def await_renewal(generator):
        """Returns when the generator has taken the answer."""
        before = generator.until()
        patiently(lambda: generator.until() > before)

    def await_renewals(self, more):
        before = self.server.asked.count("renewLease")
        patiently(lambda: self.server.asked.count("renewLease") >= before + more)

    def test_client_that_is_closed_does_not_end_the_generator(self):
        with firn.LocalGenerator(self.client, "checkout") as generator:
            self.client.close()
            generator.next()
            with self.assertRaises(firn.Closed):
                firn.LocalGenerator(self.client, "checkout")

    def test_client_and_generator_share_servers(self):
        self.server.lease_ms = 600
        events = []
        client = firn.Client(f"firn://{self.server.address}", deadline_ms=60_000, attempt_limit_ms=60_000,
                             on_event=events.append)
        self.addCleanup(client.close)
        patiently(lambda: "servers" in self.server.asked)
        with firn.LocalGenerator(client, "checkout") as generator:
            patiently(lambda: self.server.asked.count("renewLease") >= 2)
            self.assertEqual(self.server.asked.count("servers"), 1)
            fleet = client._engine.fleet
            client.close()
            fleet.list_pace.due = 0.0  # the generator's thread asks from now on
            patiently(lambda: self.server.asked.count("servers") == 2)
            heard = len(events)
            self.server.close()
            patiently(lambda: fleet.view()[0].health != "healthy")  # no connection can be opened
            self.assertEqual(len(events), heard)  # the client was closed
            generator.next()

    def test_server_without_its_cluster_leaves_a_grant_to_others(self):
        self.client.next_id("order")  # the client knows its cluster
        with self.assertRaises(AttemptFailed) as refused:
            self.client._engine.fleet.admit(Status())
        self.assertTrue(refused.exception.another_may_help)

    def test_connection_for_a_lease_ends_no_quarantine(self):
        self.server.lease_ms = 600
        with firn.Client(f"list://{self.server.address},127.0.0.1:1") as client, firn.LocalGenerator(client, "checkout"):
            fleet = client._engine.fleet
            fleet.failed(fleet.servers[self.server.address], "order", AttemptFailed(End.BROKEN, "as the test says"))
            before = self.server.asked.count("renewLease")
            patiently(lambda: self.server.asked.count("renewLease") >= before + 2)
            self.assertIn("quarantined", [one.health for one in client.servers()])

    def test_connection_for_a_lease_ends_a_row_of_failures(self):
        fleet = self.client._engine.fleet
        server, = fleet.servers.values()
        for _ in range(2):
            fleet.failed(server, "order", AttemptFailed(End.CLOSED, ""))
        with firn.LocalGenerator(self.client, "checkout"):
            fleet.failed(server, "order", AttemptFailed(End.CLOSED, ""))
            self.assertEqual(self.client.servers()[0].health, "healthy")

    def test_hooks_that_block_delay_no_renewal(self):
        self.server.lease_ms, self.server.renew_ms = 1_500, 200
        release, told = threading.Event(), []

        def block(what):
            told.append(what)
            release.wait(PATIENCE_S)
        self.addCleanup(release.set)
        with firn.Client(f"list://{self.server.address}", on_event=block) as client, \
                firn.LocalGenerator(client, "checkout", on_lost=block) as generator:
            server, = client._engine.fleet.servers.values()
            server.health.failed(2)
            self.server.refuse_status = True
            self.server.drop()  # the generator opens a connection, which is the third failure
            patiently(lambda: told)
            self.server.refuse_status = False
            self.await_renewals(2)
            self.server.lease_fault = 3
            patiently(lambda: len(told) == 2)
            self.server.lease_fault = None
            self.await_renewals(2)
            generator.next()

    def test_queued_hooks_run_after_the_client_is_closed(self):
        release, kinds = threading.Event(), []

        def block(event):
            release.wait(PATIENCE_S)
            kinds.append(event.kind)
        with firn.Client(f"list://{self.server.address}", on_event=block) as client:
            fleet = client._engine.fleet
            fleet.tell("first", "", "")
            fleet.tell("second", "", "")
        fleet.tell("after the end", "", "")
        release.set()
        patiently(lambda: len(kinds) == 2 and not fleet.io._hooks._running)
        self.assertEqual(kinds, ["first", "second"])

    def test_loss_is_not_reported_after_the_generator_is_closed(self):
        release, lost = threading.Event(), []
        self.addCleanup(release.set)
        with firn.LocalGenerator(self.client, "checkout", on_lost=lost.append) as generator:
            hooks = generator._runner._hooks
            hooks.call(lambda: release.wait(PATIENCE_S))
            generator._runner._lessee._on_lost(firn.LeaseLoss("revoked", 17, ""))
        release.set()
        patiently(lambda: not hooks._running)
        self.assertEqual(lost, [])

    def test_hook_runs_after_no_thread_could_be_started(self):
        told = []
        with firn.Client(f"list://{self.server.address}", on_event=told.append) as client:
            fleet = client._engine.fleet
            with unittest.mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("no thread")):
                fleet.tell("first", "", "")
            patiently(lambda: told)  # without another event

    def test_generator_whose_thread_cannot_start_leaves_no_thread(self):
        def start(thread):
            if thread.name == "firn-lease":
                raise RuntimeError("can't start new thread")
            before(thread)
        before = threading.Thread.start
        upkeeps = [one for one in threading.enumerate() if one.name == "firn-upkeep"]
        with unittest.mock.patch.object(threading.Thread, "start", start), self.assertRaises(RuntimeError):
            firn.LocalGenerator(self.client, "checkout")
        patiently(lambda: all(one in upkeeps for one in threading.enumerate() if one.name == "firn-upkeep"))

    def test_threads_take_different_ids(self):
        taken = [[] for _ in range(4)]
        with firn.LocalGenerator(self.client, "checkout") as generator:
            threads = [threading.Thread(target=lambda mine=mine: mine.extend(generator.next() for _ in range(10_000)))
                       for mine in taken]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(len({number for mine in taken for number in mine}), 40_000)

    def test_close_while_threads_take_ids(self):
        generator = firn.LocalGenerator(self.client, "checkout")
        ended = []

        def work():
            try:
                while True:
                    generator.next()
            except firn.FirnError as failure:
                ended.append(type(failure))
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
        generator.close()
        for thread in threads:
            thread.join(PATIENCE_S)
        self.assertEqual(ended, [firn.Closed] * 4)

    def test_no_id_after_close_while_a_request_is_in_progress(self):
        self.server.lease_ms = 3_000
        generator = firn.LocalGenerator(self.client, "checkout")
        self.server.delay_s["renewLease"] = 5
        patiently(lambda: "renewLease" in self.server.asked)
        generator.close()
        with self.assertRaises(firn.Closed):
            generator.next()

    def test_tasks_of_asyncio_take_different_ids(self):
        async def play():
            async with firn.aio.Client(f"list://{self.server.address}") as client:
                with await asyncio.to_thread(firn.LocalGenerator, client, "checkout") as generator:
                    async def take():
                        return generator.next()
                    return await asyncio.gather(*(take() for _ in range(100)))
        self.assertEqual(len(set(asyncio.run(play()))), 100)

    def test_no_server_grants_a_lease(self):
        before = len(lessees())
        self.server.lease_fault = 5
        with self.assertRaisesRegex(firn.NoLease, "no server has granted one yet; last failure: 127.0.0.1:.* refused: as "):
            firn.LocalGenerator(self.client, "checkout", timeout_ms=3_000)
        patiently(lambda: len(lessees()) <= before)  # one of an earlier test may have ended meanwhile

    def test_revocation_is_reported_and_the_next_lease_follows(self):
        self.server.renew_ms = 200
        lost = []
        with firn.LocalGenerator(self.client, "checkout", on_lost=lost.append) as generator:
            self.server.lease_fault = 3
            patiently(lambda: lost)
            self.assertEqual(lost, [firn.LeaseLoss("revoked", 17, "the lease of machine id 17 was revoked: as the test says")])
            with self.assertRaisesRegex(firn.NoLease, "revoked"):
                generator.next()
            self.server.lease_fault = None
            patiently(lambda: generator.machine_id() == 18)
            generator.next()

    def test_generator_can_be_closed_by_on_lost(self):
        self.server.renew_ms = 200
        closed = threading.Event()

        def close(_):
            generator.close()
            closed.set()
        generator = firn.LocalGenerator(self.client, "checkout", on_lost=close)
        self.server.lease_fault = 3
        self.assertTrue(closed.wait(PATIENCE_S))

    def test_forgotten_generator_ends_its_thread_and_its_lease(self):
        before = len(lessees())
        firn.LocalGenerator(self.client, "checkout").next()
        gc.collect()
        patiently(lambda: len(lessees()) <= before)  # one of an earlier test may have ended meanwhile
        self.assertEqual(self.server.asked[-1], "releaseLease")

    @unittest.skipUnless(hasattr(os, "fork"), "this system does not fork")
    def test_forked_child_issues_nothing_and_sends_nothing(self):
        self.server.lease_ms = 600
        with firn.LocalGenerator(self.client, "checkout") as generator:
            generator.next()
            generator._ids._tick_ends_ns = 1 << 62  # the child is in the same tick
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    generator.next()
                except firn.NoLease as failure:
                    code = 7 if "forked" in str(failure) else 2
                generator.close()
                os._exit(code)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
            self.assertNotIn("releaseLease", self.server.asked)
            before = self.server.asked.count("renewLease")
            patiently(lambda: self.server.asked.count("renewLease") > before + 1)
            generator.next()

    @unittest.skipUnless(hasattr(os, "fork"), "this system does not fork")
    def test_forked_child_makes_a_generator_of_its_own(self):
        with firn.LocalGenerator(self.client, "checkout") as generator:
            child = os.fork()
            if child == 0:
                with firn.LocalGenerator(self.client, "worker") as own:
                    os._exit(own.machine_id())
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 18)
            self.assertEqual(generator.machine_id(), 17)

    def test_invalid_options(self):
        for words in {"name": ""}, {"name": "a b"}, {"name": "a" * 65}, {"name": "ü"}, {"ahead_ms": 1_999}, {"ahead_ms": 86_400_001}, {"name": "a\n"}:
            with self.subTest(words), self.assertRaisesRegex(ValueError, next(iter(words))):
                firn.LocalGenerator(self.client, **{"name": "checkout", **words})


if __name__ == "__main__":
    unittest.main()
