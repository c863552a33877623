"""Which servers a client of a large cluster uses, and which of several it picks."""

from __future__ import annotations

import hashlib
import math
import random
from typing import Optional

from .server import Server

_OUTSIDE_RACK = 4  # of 16 servers that a client uses


def subset(servers: list[Server], name: bytes, most: int, rack: Optional[int]) -> list[Server]:
    """Returns the servers that a client uses: those that weighted rendezvous hashing of its own name with
    their addresses puts first, most of them of its rack. 0: all servers."""
    def score(server: Server) -> float:
        digest = hashlib.blake2b(server.address.encode(), key=name, digest_size=8)
        drawn = (int.from_bytes(digest.digest(), "big") + 1) / (1 << 64)
        return -math.log(drawn) / max(server.weight, 1)

    ranked = sorted(servers, key=score)
    most = most or len(ranked)
    if len(ranked) > most and rack is not None:
        inside = [one for one in ranked if one.rack == rack]
        outside = [one for one in ranked if one.rack != rack]
        kept = min(most * _OUTSIDE_RACK // 16, len(outside))
        ranked = inside[:most - kept] + outside
    return ranked[:most]


def less_busy(servers: list[Server]) -> Server:
    """Draws two servers by weight, and returns the first, unless the second is clearly less busy."""
    if len(servers) == 1:
        return servers[0]
    first = _drawn(servers)
    second = _drawn([one for one in servers if one is not first])
    mean = (max(first.weight, 1) + max(second.weight, 1)) / 2

    def cost(server: Server) -> float:
        return 1 + server.in_flight * mean / max(server.weight, 1)

    return second if cost(second) * 1.5 <= cost(first) else first


def _drawn(servers: list[Server]) -> Server:
    """Draws one server by weight."""
    at = random.random() * sum(max(one.weight, 1) for one in servers)
    for server in servers:
        at -= max(server.weight, 1)
        if at < 0:
            return server
    return servers[-1]
