"""Bursts of INCR by redis-py for asyncio: see bursts.py."""

import asyncio
import sys
import time

import redis.asyncio


async def main():
    port, calls, rounds = map(int, sys.argv[1:])
    # The calls share few connections, and wait for one: without a pool that blocks, each call would open its own.
    pool = redis.asyncio.BlockingConnectionPool(host="127.0.0.1", port=port, max_connections=64, timeout=60)
    client = redis.asyncio.Redis(connection_pool=pool)
    for _ in range(rounds):
        began = time.monotonic()
        ends = await asyncio.gather(*(client.incr("default") for _ in range(calls)), return_exceptions=True)
        print(sum(isinstance(one, Exception) for one in ends), (time.monotonic() - began) * 1000)
    await client.aclose()
    await pool.disconnect()


asyncio.run(main())
