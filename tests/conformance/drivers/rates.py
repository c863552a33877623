"""Ids a second of the Python client and of a bare stub: see ../rates.py."""

import asyncio
import json
import struct
import sys
import threading
import time

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport import TSocket, TTransport

import firn
import firn.aio
from stubs.firn.wire import IdService

BATCH, BUNCH = 100, 50
LIMITS = {"deadline_ms": 30_000, "attempt_limit_ms": 10_000}


def stub(address):
    host, port = address.split(":")
    transport = TTransport.TFramedTransport(TSocket.TSocket(host, int(port)))
    transport.open()
    return IdService.Client(TBinaryProtocolAccelerated(transport, fallback=True))


def measured(make, threads, seconds):
    """Calls a second, after a warm-up, of threads that each call what `make` gives them."""
    counts, calls = [0] * threads, [make() for _ in range(threads)]

    def work(mine, length):
        call, until, count = calls[mine], time.monotonic() + length, 0
        while time.monotonic() < until:
            for _ in range(BUNCH):
                call()
            count += BUNCH
        counts[mine] = count

    for length in seconds / 4, seconds:
        workers = [threading.Thread(target=work, args=(i, length)) for i in range(threads)]
        began = time.monotonic()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return sum(counts) / (time.monotonic() - began)


async def in_tasks(make, tasks, seconds):
    """Calls a second, after a warm-up, of tasks that each await what `make` gives them."""
    calls = [await make() for _ in range(tasks)]

    async def work(call, until):
        count = 0
        while time.monotonic() < until:
            for _ in range(BUNCH):
                await call()
            count += BUNCH
        return count

    for length in seconds / 4, seconds:
        began = time.monotonic()
        counts = await asyncio.gather(*(work(call, began + length) for call in calls))
    return sum(counts) / (time.monotonic() - began)


async def bare_single_async(address, tasks, seconds):
    """Streams of asyncio that write a constant request and read the id of the answer."""
    body = (b"\x80\1\0\1" + struct.pack(">i", 5) + b"getId" + struct.pack(">i", 1) +
            b"\x0b\0\1" + struct.pack(">i", 7) + b"default" + b"\0")
    request = struct.pack(">i", len(body)) + body

    async def make():
        host, port = address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))

        async def call():
            writer.write(request)
            size, = struct.unpack(">i", await reader.readexactly(4))
            answer = await reader.readexactly(size)
            return struct.unpack(">q", answer[-9:-1])[0]
        return call
    return await in_tasks(make, tasks, seconds)


async def single_async(address, tasks, seconds):
    async with firn.aio.Client("firn://" + address, **LIMITS) as client:
        async def make():
            return lambda: client.next_id("default")
        return await in_tasks(make, tasks, seconds)


def main(address, seconds, threads):
    def bare(verb, *arguments):
        def make():
            method = getattr(stub(address), verb)
            return lambda: method("default", *arguments)
        return measured(make, int(threads), float(seconds))

    def ours(call, *local):
        with firn.Client("firn://" + address, local_ranges=local, **LIMITS) as client:
            return measured(lambda: lambda: call(client), int(threads), float(seconds))

    print(json.dumps({
        "bare single": bare("getId"),
        "bare batch": BATCH * bare("getIds", BATCH),
        "single": ours(lambda client: client.next_id("default")),
        "bare single async": asyncio.run(bare_single_async(address, int(threads), float(seconds))),
        "single async": asyncio.run(single_async(address, int(threads), float(seconds))),
        "batch": BATCH * ours(lambda client: client.next_ids("default", BATCH)),
        "ahead snowflake": ours(lambda client: client.next_id("default"),
                                firn.LocalTag.snowflake("default")),
        "ahead segment": ours(lambda client: client.next_id("count"),
                              firn.LocalTag.segment("count"))}))


if __name__ == "__main__":
    main(*sys.argv[1:])
