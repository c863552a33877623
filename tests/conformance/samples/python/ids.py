"""Takes ids with each client of the package without end, and answers each line of its input after 1000 more.

    ids.py SERVERS
"""

import asyncio
import sys
import threading

import firn
import firn.aio


def main(servers: str) -> int:
    ids: list[int] = []
    failures: list[firn.FirnError] = []
    ending = threading.Event()

    def threads(client: firn.Client) -> None:
        while not ending.is_set():
            try:
                ids.append(client.next_id("default"))
                ids.extend(client.next_ids("default", 3))
            except firn.FirnError as failure:
                failures.append(failure)

    async def task(client: firn.aio.Client) -> None:
        while not ending.is_set():
            try:
                ids.append(await client.next_id("default"))
                ids.append(int(await client.next_text("default")))
            except firn.FirnError as failure:
                failures.append(failure)

    async def tasks() -> None:
        async with firn.aio.Client(servers, deadline_ms=60_000, attempt_limit_ms=1_000) as client:
            await asyncio.gather(*(task(client) for _ in range(8)))

    client = firn.Client(servers, deadline_ms=60_000, attempt_limit_ms=1_000)
    local = firn.Client(servers, deadline_ms=60_000, local_ranges=[firn.LocalTag.snowflake("default")])
    workers = [threading.Thread(target=threads, args=(one,)) for one in (client, client, client)]
    workers.append(threading.Thread(target=lambda: asyncio.run(tasks())))
    for worker in workers:
        worker.start()
    for _ in sys.stdin:
        before = len(ids)
        while len(ids) < before + 1_000 and not failures:
            ids.append(local.next_id("default"))
            ending.wait(0.001)
        print("answered", len(ids) - before, flush=True)
    ending.set()
    for worker in workers:
        worker.join()
    local.close()
    client.close()
    for failure in failures[:3]:
        print(failure)
    print("failed", len(failures), "duplicates", len(ids) - len(set(ids)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
