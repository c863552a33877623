"""The metrics for prometheus_client."""

import unittest

import firn
from fake_server import FakeServer

try:
    import prometheus_client
    from firn.prometheus import ClientCollector
except ImportError:
    prometheus_client = None


@unittest.skipUnless(prometheus_client, "prometheus_client is not installed")
class PrometheusTest(unittest.TestCase):
    def test_shows_the_counters_and_servers_of_each_client(self):
        registry = prometheus_client.CollectorRegistry()
        collector = ClientCollector(registry)
        with FakeServer() as server:
            clients = {name: firn.Client(f"list://{server.address}", deadline_ms=60_000, attempt_limit_ms=60_000)
                       for name in "ab"}
            for name, client in clients.items():
                collector.add(client, name)
            for _ in range(3):
                clients["a"].next_id("order")
            for _ in range(2):  # a second collection does not add to the first
                self.assertEqual(registry.get_sample_value("firn_client_calls_total", {"client": "a"}), 3)
                self.assertEqual(registry.get_sample_value("firn_client_calls_total", {"client": "b"}), 0)
                self.assertEqual(
                    registry.get_sample_value("firn_client_servers", {"client": "a", "health": "healthy"}), 1)
            clients["b"].close()
            self.assertNotIn('client="b"', prometheus_client.generate_latest(registry).decode())
            clients["a"].close()


if __name__ == "__main__":
    unittest.main()
