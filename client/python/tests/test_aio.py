"""What only the client for asyncio can get wrong: cancellation, a blocked loop, several loops, garbage collection."""

import asyncio
import gc
import os
import threading
import time
import unittest

import firn.aio
from fake_server import FakeServer

GENEROUS = {"deadline_ms": 60_000, "attempt_limit_ms": 60_000}


class AioTest(unittest.IsolatedAsyncioTestCase):
    async def test_takes_ids_in_many_tasks_without_a_thread(self):
        with FakeServer() as server:
            async with firn.aio.Client(f"firn://{server.address}", **GENEROUS) as client:
                ids = await asyncio.gather(*(client.next_id("order") for _ in range(500)))
                ids += await client.next_ids("order", 100)
                ids.append(int(await client.next_text("order")))
                self.assertEqual(len(set(ids)), 601)
                names = [one.name for one in threading.enumerate() if one.name.startswith("firn-")]
                self.assertEqual(names, [])
                self.assertEqual(len(server.peers), 1)  # which all calls share

    async def test_ids_from_memory_are_different(self):
        with FakeServer() as server:
            async with firn.aio.Client(f"list://{server.address}", **GENEROUS,
                                       local_ranges=[firn.LocalTag.segment("count")]) as client:
                async def many():
                    return [await client.next_id("count") for _ in range(2_000)]
                ids = sum(await asyncio.gather(*(many() for _ in range(5))), [])
                self.assertEqual(len(set(ids)), 10_000)
                self.assertLess(len(server.asked), 1_000)

    async def test_cancelled_call_leaks_neither_its_place_nor_its_connection(self):
        with FakeServer() as server:
            async with firn.aio.Client(f"list://{server.address}", connections_max=1, **GENEROUS) as client:
                server.delay_s["getId"] = 0.2
                for _ in range(3):
                    using, waiting = (asyncio.ensure_future(client.next_id("order")) for _ in range(2))
                    await asyncio.sleep(0.05)
                    for one in using, waiting:
                        one.cancel()
                    ended = await asyncio.gather(using, waiting, return_exceptions=True)
                    self.assertTrue(all(isinstance(one, asyncio.CancelledError) for one in ended))
                server.delay_s.clear()
                await client.next_id("order")
                self.assertLessEqual(len(client._engine._open), 1)

    async def test_answer_received_while_the_loop_was_blocked_is_not_a_timeout(self):
        with FakeServer() as server:
            async with firn.aio.Client(f"list://{server.address}", deadline_ms=60_000,
                                       attempt_limit_ms=5_000) as client:
                await client.next_id("order")
                client._engine.options.__dict__["attempt_limit_ms"] = 200
                asked = len(server.asked)
                call = asyncio.ensure_future(client.next_id("order"))
                while len(server.asked) == asked:
                    await asyncio.sleep(0)
                time.sleep(0.5)
                await call
                self.assertEqual(client.counters().timeouts, 0)

    async def test_close_ends_calls_in_progress(self):
        with FakeServer() as server:
            server.delay_s["getId"] = 1
            client = firn.aio.Client(f"list://{server.address}", **GENEROUS)
            call = asyncio.ensure_future(client.next_id("order"))
            await asyncio.sleep(0.1)
            client.close()
            with self.assertRaises(firn.Closed):
                await call
            with self.assertRaises(firn.Closed):
                await client.next_id("order")

    async def test_forgotten_client_closes_its_connections(self):
        with FakeServer() as server:
            client = firn.aio.Client(f"list://{server.address}", **GENEROUS)
            await client.next_id("order")
            del client
            gc.collect()
            deadline = time.monotonic() + 60
            while server.peers and time.monotonic() < deadline:
                await asyncio.sleep(0.05)
            self.assertFalse(server.peers)


class LoopsTest(unittest.TestCase):
    def test_can_be_created_before_the_loop_and_names_a_wrong_loop(self):
        with FakeServer() as server:
            client = firn.aio.Client(f"list://{server.address}", **GENEROUS)
            self.assertEqual(client.servers(), [])
            self.assertGreater(asyncio.run(client.next_id("order")), 0)
            with self.assertRaisesRegex(RuntimeError, "another event loop"):
                asyncio.run(client.next_id("order"))
            client.close()

    def test_child_starts_again_after_fork(self):
        with FakeServer() as server:
            client = firn.aio.Client(f"list://{server.address}", **GENEROUS,
                                     local_ranges=[firn.LocalTag.segment("count")])

            async def parent():
                mine = {await client.next_id("count") for _ in range(20)}
                reading, writing = os.pipe()
                child = os.fork()
                if child == 0:
                    os.close(reading)
                    ids = []
                    asyncio.set_event_loop(None)
                    asyncio.events._set_running_loop(None)
                    async def take():
                        ids.extend([await client.next_id("count") for _ in range(20)])
                    asyncio.run(take())
                    os.write(writing, repr(ids).encode())
                    os._exit(0)
                os.close(writing)
                with os.fdopen(reading) as told:
                    theirs = set(eval(told.read()))
                os.waitpid(child, 0)
                mine |= {await client.next_id("count") for _ in range(20)}
                return mine, theirs
            mine, theirs = asyncio.run(parent())
            self.assertEqual(len(mine | theirs), 60)


if __name__ == "__main__":
    unittest.main()
