"""The counters of clients as metrics of prometheus_client: `pip install firn-client[prometheus]`."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Iterator, Optional

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from .server import NAMES

if TYPE_CHECKING:
    from .base import BaseClient

# By field of Counters: the name of the metric, without firn_client_, and its help.
_METRICS = {
    "calls": ("calls", "Calls to servers."),
    "failed": ("calls_failed", "Calls that failed without a refusal."),
    "refused": ("calls_refused", "Calls that a server refused."),
    "attempts": ("attempts", "Attempts at servers."),
    "retries": ("retries", "Requests that used the retry budget."),
    "retries_denied": ("retries_denied", "Retries that the exhausted retry budget prevented."),
    "timeouts": ("attempt_timeouts", "Attempts without an answer in time."),
    "broken": ("invalid_answers", "Invalid answers."),
    "connects": ("connects", "Connections that were begun."),
    "connects_failed": ("connects_failed", "Connections that failed before the server's status arrived."),
    "lists": ("lists", "Server lists that were accepted."),
    "local_ids": ("local_ids", "Ids that threads took from memory."),
    "local_ids_missed": ("local_ids_missed", "How often no id was in memory although its tag is prefetched."),
}


class ClientCollector(Collector):
    """Registers the metrics `firn_client_*_total` and `firn_client_servers`.

        firn.prometheus.ClientCollector().add(client)

    One collector serves all clients of a registry; the label `client` tells them apart. A client that is
    closed or forgotten is left out."""

    def __init__(self, registry: Optional[CollectorRegistry] = REGISTRY) -> None:
        self._clients: dict[str, weakref.ref[BaseClient]] = {}
        if registry is not None:
            registry.register(self)

    def add(self, client: BaseClient, name: str = "default") -> None:
        """Adds the client under that name, which replaces an earlier client of the name."""
        self._clients[name] = weakref.ref(client)

    def collect(self) -> Iterator[Metric]:
        shown = {}
        for name, reference in list(self._clients.items()):
            client = reference()
            if client is not None and not client._closed:
                shown[name] = client.counters(), client.servers()
        for field, (metric, text) in _METRICS.items():
            family = CounterMetricFamily(f"firn_client_{metric}", text, labels=["client"])
            for name, (counters, _) in shown.items():
                family.add_metric([name], getattr(counters, field))
            yield family
        servers = GaugeMetricFamily("firn_client_servers", "Servers by their health.",
                                    labels=["client", "health"])
        for name, (_, seen) in shown.items():
            for health in NAMES:
                servers.add_metric([name, health], sum(one.health == health for one in seen))
        yield servers
