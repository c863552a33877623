"""The Python client, controlled by standard input and output as ../README.md describes. With FIRN_CLIENT=aio in the
environment, the client for asyncio."""

import asyncio
import functools
import json
import os
import sys
import threading
import time

import firn
import firn.aio

NUMBERS = ("deadline_ms", "attempt_limit_ms", "attempts_max", "connections_max", "servers_max", "rack")
BLOCKING_THREADS = 20
TEXTS = ("cluster_uuid", "on_failure")


class LoopClient:
    """The client for asyncio, in a loop of its own, for threads. A forked child has another loop."""

    def __init__(self, servers, **options):
        self.client = firn.aio.Client(servers, **options)
        self.begin_loop()
        self.run(self.client.__aenter__())

    def begin_loop(self):
        self.process, self.loop = os.getpid(), asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, work):
        if self.process != os.getpid():
            self.begin_loop()
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def __getattr__(self, name):
        verb = getattr(self.client, name)
        if not asyncio.iscoroutinefunction(verb):
            return verb
        return lambda *arguments, **said: self.run(verb(*arguments, **said))

    def close(self):
        self.loop.call_soon_threadsafe(self.client.close)
        self.loop.call_soon_threadsafe(lambda: self.loop.call_later(5, self.loop.stop))


CLIENT = LoopClient if os.environ.get("FIRN_CLIENT") == "aio" else firn.Client


class Driver:
    def __init__(self):
        self.client, self.events, self.load = None, [], None

    def open(self, servers, **said):
        options = {name: int(said[name]) for name in NUMBERS if name in said}
        options.update({name: said[name] for name in TEXTS if name in said})
        make = {"segment": firn.LocalTag.segment, "snowflake": firn.LocalTag.snowflake}
        options["local_ranges"] = [make[kind](said[kind]) for kind in make if kind in said]
        tls = {name[4:]: said[name] for name in said if name.startswith("tls_")}
        if tls:
            options["tls"] = firn.Tls(**tls)
        self.events = []

        def on_event(event):
            self.events.append(event.kind)
            if said.get("on_event") == "throws":
                raise RuntimeError("as the case says")
            if said.get("on_event") == "closes":
                self.client.close()

        self.client = CLIENT(servers, on_event=on_event, **options)
        return {}

    def call(self, method, tag="", count=None, times=1, threads=1, deadline_ms=None):
        """So many calls by so many threads; all ids, and the first failure."""
        verb = getattr(self.client, method)
        arguments = [tag] if count is None else [tag, int(count)]
        deadline = None if deadline_ms is None else int(deadline_ms)
        result, lock = {"answered": 0, "failed": 0, "ids": []}, threading.Lock()

        def work():
            for _ in range(int(times)):
                try:
                    got, failure = verb(*arguments, deadline_ms=deadline), None
                except firn.FirnError as fault:
                    got, failure = [], fault
                ids = got if isinstance(got, list) else [int(got)]
                with lock:
                    result["failed" if failure else "answered"] += 1
                    result["ids"] += ids
                    if failure and result["failed"] == 1:
                        result.update(told(failure))

        workers = [threading.Thread(target=work) for _ in range(int(threads))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return result

    def id(self, **said):
        return self.call("next_id", **said)

    def ids(self, **said):
        return self.call("next_ids", **said)

    def text(self, **said):
        return self.call("next_text", **said)

    def view(self):
        return {"servers": {one.address: one.health for one in self.client.servers()}}

    def seen(self):
        return {"events": list(self.events)}

    def burst(self, calls, tag="order"):
        """So many calls at once. A client for threads has a thread for each call under way."""
        began, calls = time.monotonic(), int(calls)
        if isinstance(self.client, LoopClient):
            result = self.client.run(gathered(self.client.client, tag, calls))
        else:
            threads = min(calls, BLOCKING_THREADS)
            result = self.call("next_id", tag, threads=threads, times=calls // threads)
        return {**result, "took_ms": (time.monotonic() - began) * 1000}

    def wrong(self):
        """Passes wrong types and values for every parameter; counts the calls that failed, and names those that did not."""
        failed, taken = 0, []
        for name, call in wrong_calls(self.client):
            try:
                call()
                taken.append(name)
            except Exception:
                failed += 1
        return {"answered": len(taken), "failed": failed, "failure": ",".join(taken)}

    def start(self, tag, file, threads=4):
        """Calls without end in the background; their ids go into a file."""
        self.load = Load(self.client, tag, int(threads))
        self.load.file = file
        return {}

    def so_far(self):
        return {"calls": min(self.load.calls)}

    def stop(self):
        return self.load.end()

    def fork(self, **said):
        """A call in a child of this process."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            with os.fdopen(writing, "w") as out:
                json.dump(self.call("next_id", **said), out)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            result = json.load(answer)
        os.waitpid(child, 0)
        return result

    def close(self):
        self.client.close()
        return {}


class Load:
    def __init__(self, client, tag, threads):
        self.client, self.tag, self.ending = client, tag, False
        self.calls, self.ids, self.longest = [0] * threads, [[] for _ in range(threads)], 0
        self.failures = []
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(threads)]
        for thread in self.threads:
            thread.start()

    def work(self, mine):
        while not self.ending:
            began = time.monotonic()
            try:
                self.ids[mine].append(self.client.next_id(self.tag))
            except firn.FirnError as failure:
                self.failures.append(failure)
                if isinstance(failure, firn.Closed):
                    return
            self.longest = max(self.longest, time.monotonic() - began)
            self.calls[mine] += 1

    def end(self):
        self.ending = True
        for thread in self.threads:
            thread.join()
        with open(self.file, "w") as out:
            out.writelines(f"{number}\n" for ids in self.ids for number in ids)
        result = {"answered": sum(map(len, self.ids)), "failed": len(self.failures),
                  "longest_us": int(self.longest * 1e6)}
        return {**result, **(told(self.failures[0]) if self.failures else {})}


async def gathered(client, tag, calls):
    ends = await asyncio.gather(*(client.next_id(tag) for _ in range(calls)), return_exceptions=True)
    ids = [one for one in ends if isinstance(one, int)]
    failures = [one for one in ends if not isinstance(one, int)]
    return {"answered": len(ids), "failed": len(failures), "ids": ids, **(told(failures[0]) if failures else {})}


def wrong_calls(client):
    class Hostile:
        def __str__(self):
            raise RuntimeError("as the case says")
        __repr__ = __hash__ = __eq__ = __str__

    no_texts = [5, None, 1.5, True, b"a", ["a", "b"], {"a": 1}, object(), Hostile()]
    no_numbers = ["5", 1.5, float("nan"), float("inf"), [], {}, b"5", Hostile(), -1]
    methods = (client.next_id, client.next_text, lambda tag, **said: client.next_ids(tag, 1, **said))
    for tag in [*no_texts, "a" * 129, "\u00fc" * 65, "\ud800"]:
        yield from (("tag", functools.partial(method, tag)) for method in methods)
    for count in [*no_numbers, 0, 100_001, None]:
        yield "count", functools.partial(client.next_ids, "order", count)
    for limit in set_aside(no_numbers, 1.5):
        yield from (("deadline_ms", functools.partial(method, "order", deadline_ms=limit)) for method in methods)
    make = functools.partial(firn.Client, "list://127.0.0.1:1")
    for servers in [*no_texts, "", "list://", "list://nowhere"]:
        yield "servers", functools.partial(firn.Client, servers)
    for name in NUMBERS:
        for value in set_aside(no_numbers, 1.5):
            yield name, functools.partial(make, **{name: value})
    for name in "cluster_uuid", "on_failure", "local_ranges", "tls", "on_event":
        for value in [5, 1.5, True, object(), ["a"], {"a": 1}]:
            yield name, functools.partial(make, **{name: value})
    for value in no_texts:
        yield "LocalTag", lambda value=value: make(local_ranges=[firn.LocalTag.segment(value)])
        if value is not None:
            yield "Tls", lambda value=value: make(tls=firn.Tls(ca=value))
    base = client.client if isinstance(client, LoopClient) else client
    lease = functools.partial(firn.LocalGenerator, base, timeout_ms=1)
    for name in [*no_texts, "", "a b"]:
        yield "name", functools.partial(lease, name)
    for name, values in {"ahead_ms": no_numbers, "timeout_ms": no_numbers, "rack": no_numbers, "on_lost": ["a", 5]}.items():
        for value in values:
            yield name, lambda name=name, value=value: lease("a", **{name: value})


def set_aside(values, one):
    return [value for value in values if value is not one]


def told(failure):
    kinds = {firn.Refused: "refused", firn.Unavailable: "unavailable", firn.Closed: "closed"}
    return {"kind": kinds[type(failure)], "failure": str(failure),
            "reason": failure.reason.name if failure.reason else "",
            "retry_after_ms": failure.retry_after_ms,
            "attempts": [{"server": one.server, "end": one.end.value,
                          "reason": one.reason.name if one.reason else ""}
                         for one in failure.attempts]}


if __name__ == "__main__":
    driver = Driver()
    for line in sys.stdin:
        verb, *words = line.split()
        try:
            answer = getattr(driver, verb)(**dict(word.split("=", 1) for word in words))
        except ValueError as fault:
            answer = {"kind": "invalid", "failure": str(fault)}
        print(json.dumps(answer), flush=True)
