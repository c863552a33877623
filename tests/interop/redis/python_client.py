"""Takes ids with redis-py: see redis_clients_test.py."""

import os
import sys

import redis

host, port, protocol, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
ca = os.environ.get("FIRN_CA")
client = redis.Redis(host=host, port=port, protocol=protocol, username=os.environ.get("FIRN_USER"),
                     password=os.environ.get("FIRN_PASSWORD"), ssl=bool(ca), ssl_ca_certs=ca,
                     client_name="python")
for _ in range(count):
    print(client.incr("order"))
for transaction in False, True:
    with client.pipeline(transaction) as pipeline:
        for _ in range(count):
            pipeline.incr("order")
        for number in pipeline.execute():
            print(number)
try:
    client.incr("nothing")
except redis.ResponseError as error:
    print("refused:", error)
