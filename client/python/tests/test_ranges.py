"""Ids from memory."""

import threading
import time
import unittest

import firn
from fake_server import PATIENCE_S, FakeServer, patiently
from firn.ranges import Buffer
from firn.threads import run


class RangesTest(unittest.TestCase):
    def test_threads_take_different_ids(self):
        taken = [[] for _ in range(8)]
        with FakeServer() as server, firn.Client(
                f"list://{server.address}", deadline_ms=60_000, attempt_limit_ms=60_000,
                local_ranges=[firn.LocalTag.segment("count")]) as client:
            def work(mine):
                for _ in range(20_000):
                    mine.append(client.next_id("count"))
            threads = [threading.Thread(target=work, args=(mine,)) for mine in taken]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            ids = [number for mine in taken for number in mine]
            self.assertEqual(len(set(ids)), 160_000)
            self.assertLess(len(server.asked), 2_000)
            self.assertGreaterEqual(client.counters().local_ids, 100_000)

    def test_batches_come_from_memory_in_order(self):
        with FakeServer() as server, firn.Client(
                f"list://{server.address}", deadline_ms=60_000, attempt_limit_ms=60_000,
                local_ranges=[firn.LocalTag.segment("count")]) as client:
            ids = [client.next_id("count")]
            patiently(lambda: not client._engine.supplies["count"]._fetching)
            for _ in range(50):
                batch = client.next_ids("count", 7)
                self.assertEqual((len(batch), batch), (7, sorted(batch)))
                ids += batch
                ids.append(client.next_id("count"))
            self.assertEqual(len(set(ids)), len(ids))
            self.assertLess(server.asked.count("getIds"), 25)  # most are from memory
            self.assertEqual(len(client.next_ids("count", 100_000)), 100_000)  # more than are in memory

    def test_drops_the_ids_of_every_thread_when_the_tag_is_deleted(self):
        with FakeServer() as server, firn.Client(
                f"list://{server.address}", deadline_ms=60_000, attempt_limit_ms=60_000,
                local_ranges=[firn.LocalTag("count", lasts_ms=60_000)]) as client:
            client.next_id("count")
            supply = client._engine.supplies["count"]
            patiently(lambda: not supply._fetching)
            server.refuse_for = firn.Reason.UNKNOWN_TAG
            # Until the next fetch is refused, ids are in memory.
            with self.assertRaises(firn.Refused):
                for _ in range(1_000):
                    client.next_id("count")
                    time.sleep(0.001)
            self.assertIsNone(supply.take_now())

    def test_takes_the_ids_of_a_fetch_that_ends_during_the_attempt(self):
        with firn.Client("list://127.0.0.1:1", local_ranges=[firn.LocalTag.segment("count")]) as client:
            supply = client._engine.supplies["count"]
            take_now = supply.take_now

            def attempt_before_the_fetch_ends():
                supply.take_now = take_now
                supply._next, supply._fetching = Buffer([range(1, 9)], time.monotonic()), False
                supply.fetched.ring()
            supply._fetching, supply.take_now = True, attempt_before_the_fetch_ends
            self.assertEqual(run(supply.take(time.monotonic() + PATIENCE_S)), 1)

    def test_drops_ids_by_age(self):
        with FakeServer() as server, firn.Client(
                f"list://{server.address}", deadline_ms=60_000, attempt_limit_ms=60_000,
                local_ranges=[firn.LocalTag("order", max_age_ms=50)]) as client:
            client.next_id("order")
            time.sleep(0.06)
            now_ms = int(time.time() * 1000)
            self.assertGreaterEqual((client.next_id("order") >> 22) + 1_704_067_200_000, now_ms - 50)


if __name__ == "__main__":
    unittest.main()
