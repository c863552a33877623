"""Rates of LocalGenerator and of the package snowflake-id: see ../../generator_rates.py."""

import json
import sys
import time

import firn
import snowflake

CHECKED = 20_000  # ids that are compared
BUNCH = 50        # ids between two checks of the clock


def patient(generator):
    """Calls a generator of snowflake-id, which returns None when a millisecond's ids are used up."""
    take = generator.__next__

    def taken():
        while (number := take()) is None:
            pass
        return number
    return taken


def round_of(length_s, take):
    """Ids a second and nanoseconds of processor time an id."""
    before, began, count = time.process_time_ns(), time.perf_counter(), 0
    while time.perf_counter() - began < length_s:
        for _ in range(BUNCH):
            take()
        count += BUNCH
    return count / (time.perf_counter() - began), (time.process_time_ns() - before) / count


def main():
    servers, _, rounds, length_ms = sys.argv[1:]
    client = firn.Client(servers)
    generators = {"firn": firn.LocalGenerator(client, "rates").next,
                  "snowflake-id": patient(snowflake.SnowflakeGenerator(1))}
    told = {}
    for name, take in generators.items():
        told[name] = {"taken": CHECKED, "different": len({take() for _ in range(CHECKED)}), "rates": [], "cpu": []}
        round_of(int(length_ms) / 1000, take)  # warms up
    for _ in range(int(rounds)):
        for name, take in generators.items():
            rate, cpu = round_of(int(length_ms) / 1000, take)
            told[name]["rates"].append(rate)
            told[name]["cpu"].append(cpu)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
