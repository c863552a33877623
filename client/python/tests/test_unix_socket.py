"""Unix sockets of scripted servers; tests/conformance/unix_socket_test.py has real ones."""

import asyncio
import os
import tempfile
import unittest

import firn
import firn.aio
from fake_server import FakeServer
from firn.fleet import Fleet
from firn.options import Options
from firn.protocol import Entry, ServerList
from firn.threads import ThreadIo

LIMITS = {"deadline_ms": 60_000, "attempt_limit_ms": 30_000}


class UnixSocketTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "firn.sock")

    def test_invalid_paths_are_refused(self):
        for address, words in {"unix:firn.sock": "requires an absolute path", "unix:": "requires an absolute path",
                               "unix:/a\0b": "no NUL", "unix:/" + 107 * "x": "at most 107 bytes",
                               "unix:/" + 54 * "\u00e4": "at most 107 bytes", "/run/firn.sock": "not host:port",
                               "127.0.0.1:7609,unix:firn.sock": "requires an absolute path"}.items():
            with self.assertRaisesRegex(ValueError, words, msg=address):
                Options("list://" + address)
        for address in "unix:/" + 106 * "x", "unix:/run/firn.sock":
            self.assertEqual(Options(f"list://127.0.0.1:7609,{address}").addresses(), ["127.0.0.1:7609", address])

    def test_ids_are_taken_without_tls(self):
        tls = firn.Tls(ca="/nowhere/ca.pem")  # of servers on the network
        with FakeServer(self.path) as server, firn.Client(f"list://{server.address}", tls=tls, **LIMITS) as client:
            self.assertEqual(len({client.next_id("order") for _ in range(10)}), 10)
            self.assertEqual([one.address for one in client.servers()], [f"unix:{self.path}"])

            async def take():
                async with firn.aio.Client(f"list://{server.address}", tls=tls, **LIMITS) as loops:
                    return [await loops.next_id("order") for _ in range(10)]
            self.assertEqual(len(set(asyncio.run(take()))), 10)

    def test_missing_socket_is_unreachable(self):
        def check(failure):
            self.assertIn((f"unix:{self.path}", firn.End.UNREACHABLE),
                          [(one.server, one.end) for one in failure.attempts])
            self.assertIn("No such file", str(failure))

        async def take():
            async with firn.aio.Client(f"list://unix:{self.path}", deadline_ms=100) as loops:
                await loops.next_id("order")
        with firn.Client(f"list://unix:{self.path}", deadline_ms=100) as client:
            with self.assertRaises(firn.Unavailable) as raised:
                client.next_id("order")
        check(raised.exception)
        with self.assertRaises(firn.Unavailable) as raised:
            asyncio.run(take())
        check(raised.exception)

    def test_server_list_has_only_network_addresses(self):
        seed, other = "unix:/run/firn.sock", "unix:/run/other.sock"
        fleet = Fleet(Options(f"firn://{seed}", tls=firn.Tls()), ThreadIo())
        entries = [Entry(address, online=True) for address in ("10.0.0.1:7609", seed, other, "unix:7609")]
        fleet.apply(ServerList(version=1, servers=entries), fleet.servers[seed])
        self.assertEqual(set(fleet.servers), {"10.0.0.1:7609", seed})
        self.assertTrue(fleet.servers[seed].last_resort)
        self.assertEqual([fleet.servers[one].tls for one in ("10.0.0.1:7609", seed)], [True, False])


if __name__ == "__main__":
    unittest.main()
