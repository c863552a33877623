"""Rules of failover that need a look inside the client; tests/conformance plays the others."""

import asyncio
import unittest

import firn
import firn.aio
from fake_server import FakeServer


class EventTest(unittest.TestCase):
    def test_text_has_no_empty_part(self):
        self.assertEqual(str(firn.options.Event("list", "", "3 servers")), "list: 3 servers")
        self.assertEqual(str(firn.options.Event("unhealthy", "a:1", "silent")), "unhealthy a:1: silent")


class FailoverTest(unittest.TestCase):
    def test_hung_server_does_not_use_up_the_retry_budget(self):
        async def play(hung, healthy):
            async with firn.aio.Client(f"list://{hung.address},{healthy.address}", deadline_ms=60_000,
                                       attempt_limit_ms=2_000) as client:
                await client.next_id("order")
                client._engine.fleet._budget._left = 3.0  # and 20 more in 2 s
                hung.delay_s["getId"] = 20
                ids = await asyncio.gather(*(client.next_id("order") for _ in range(200)))
                self.assertEqual(len(set(ids)), 200)
                return client.counters()

        with FakeServer() as hung, FakeServer() as healthy:
            counters = asyncio.run(play(hung, healthy))
        self.assertEqual((counters.failed, counters.retries_denied), (0, 0))
        self.assertGreater(counters.timeouts, 40)

    def test_counters_can_be_read_after_close(self):
        with FakeServer() as server:
            with firn.Client(f"list://{server.address}", deadline_ms=60_000, attempt_limit_ms=60_000) as client:
                client.next_id("order")
            self.assertEqual((client.counters().calls, client.servers()), (1, []))

    def test_options_of_another_type_are_named(self):
        for options in {"local_ranges": ["order"]}, {"local_ranges": firn.LocalTag.segment("order")}, {"tls": True}:
            with self.assertRaisesRegex(ValueError, next(iter(options))):
                firn.Client("firn://127.0.0.1:7609", **options)


if __name__ == "__main__":
    unittest.main()
