"""What a strictly typed program may write; checked by mypy --strict, and never run."""

import asyncio
from typing import Optional

import firn
import firn.aio
from firn.prometheus import ClientCollector


def on_event(event: firn.Event) -> None:
    print(event.kind, event.server, event.detail)


def threads() -> list[int]:
    with firn.Client("list://10.0.0.7:7609", rack=3, deadline_ms=500, on_event=on_event,
                     tls=firn.Tls(ca="ca.crt"), local_ranges=[firn.LocalTag.segment("order")]) as client:
        ClientCollector().add(client, "orders")
        one: int = client.next_id("order", deadline_ms=100)
        text: str = client.next_text()
        seen: list[firn.SeenServer] = client.servers()
        calls: int = client.counters().calls
        print(text, seen[0].health, calls)
        return [one, *client.next_ids("order", 10)]


async def tasks() -> Optional[firn.Reason]:
    try:
        async with firn.aio.Client("firn://10.0.0.7:7609") as client:
            number: int = await client.next_id("order")
            print(number, await client.next_ids("order", 10), await client.next_text("order"))
    except firn.Refused as refused:
        return refused.reason
    except firn.Unavailable as failure:
        print([(one.server, one.end.value, one.took_ms) for one in failure.attempts])
    return None


if __name__ == "__main__":
    print(threads(), asyncio.run(tasks()))
