#!/usr/bin/env python3
"""Takes ids with every kind of call, and prints events about servers.

    example.py firn://127.0.0.1:7609 [TAG]
"""

import sys
import threading

import firn


def main(servers: str, tag: str = "") -> int:
    with firn.Client(servers, deadline_ms=2000, on_event=print) as client:
        try:
            print("one:", client.next_id(tag))
            print("ten:", client.next_ids(tag, 10))
            print("text:", client.next_text(tag))
        except firn.Refused as no:
            print(f"no server would give one: {no.reason}: {no}")
            return 1
        except firn.Unavailable as failure:
            for attempt in failure.attempts:
                print(attempt)
            return 1

    # Four threads with prefetched ids.
    with firn.Client(servers, deadline_ms=2000,
                     local_ranges=[firn.LocalTag.snowflake(tag)]) as client:
        ids = []
        threads = [threading.Thread(target=lambda: ids.extend(client.next_id(tag) for _ in range(1000)))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("from memory:", len(set(ids)), "different ones")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
