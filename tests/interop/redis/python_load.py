"""Takes ids with redis-py, as the page says, until standard input ends: see redis_haproxy_test.py.

    python_load.py PAGE PORT TAG...

One caller for each tag. Prints `id TAG N` for each id, and `failed MESSAGE` for each failed call.
"""

import re
import sys
import threading

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

page, port, tags = *sys.argv[1:3], sys.argv[3:]
with open(page) as file:
    snippet = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL).group(1)
if snippet.count("6379") != 1:
    sys.exit(f"{page}: its snippet does not name the port 6379 once")
snippet = compile(snippet.replace("6379", port), page, "exec")
ended = threading.Event()
out = threading.Lock()


def call(tag):
    scope = {"redis": redis, "Retry": Retry, "ExponentialBackoff": ExponentialBackoff}
    exec(snippet, scope)
    client = scope["client"]
    while not ended.wait(0.001):
        try:
            line = f"id {tag} {client.incr(tag)}"
        except redis.RedisError as error:
            line = f"failed {error!r}"
        with out:
            print(line, flush=True)


callers = [threading.Thread(target=call, args=[tag]) for tag in tags]
for caller in callers:
    caller.start()
sys.stdin.read()
ended.set()
for caller in callers:
    caller.join()
