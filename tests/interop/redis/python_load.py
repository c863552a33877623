"""Takes ids with redis-py until standard input ends: see redis_haproxy_test.py.

    python_load.py PORT TAG...

One caller for each tag. Prints `id TAG N` for each id, and `failed MESSAGE` for each failed call.
"""

import sys
import threading

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

port, tags = int(sys.argv[1]), sys.argv[2:]
ended = threading.Event()
out = threading.Lock()


def call(tag):
    client = redis.Redis(port=port, socket_timeout=1, retry=Retry(ExponentialBackoff(cap=0.5, base=0.01), 10),
                         retry_on_error=[redis.ConnectionError, redis.TimeoutError])
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
