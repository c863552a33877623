#!/usr/bin/python3
"""Counts failed calls, and measures the time, of bursts of calls by each client, on three real servers.

    bursts.py LANGUAGE,... FIRN_SERVER FIRN [--driver PROGRAM] [--calls N,...] [--defaults] [--redis] [--factor X]

A burst is that many calls at once by one process, and is repeated on the same client. An attempt times out after 10 s;
with --defaults, after the client's own time limit. --redis also measures the best Redis client of each language on a real
redis-server, and prints how much more time Firn's client takes in its fastest round. Exit 1 if a call failed, or if a
client takes more than --factor times as long, and 77 when something is not installed.
"""

import os
import shutil
import sys
import tempfile

import builds
import cluster
import driver_process
import redis_bursts

GENEROUS = {"deadline_ms": 20_000, "attempt_limit_ms": 10_000}
ROUNDS = 3


def command_of(language, said, folder):
    """The client is optimized, and asynchronous where it has that form."""
    if language == "cpp":
        return [os.path.abspath(said.driver)]
    place = builds.new(folder, language)
    command = builds.build(language, place, **({"fast": True} if language in ("java", "rust") else {}))
    return ["env", "FIRN_CLIENT=aio", *command] if language == "python" else command


def row(name, calls, rounds, more=""):
    """Prints failed calls and milliseconds of each round."""
    print(f"| {name} | {calls:,} |", " | ".join(f"{failed:,.0f} | {took:,.0f}" for failed, took in rounds), "|", more,
          flush=True)


def burst(language, said, folder, servers):
    """Prints a row for each size; returns the number of failed calls, and of rows that take too long."""
    failed = slow = 0
    with open(os.path.join(folder, language + ".log"), "w") as log:
        driver = driver_process.Driver(command_of(language, said, folder), log)
        for calls in said.calls:
            driver.ask("open", servers="list://" + ",".join(servers), **({} if said.defaults else GENEROUS))
            ends = [driver.ask("burst", calls=calls, tag="default") for _ in range(ROUNDS)]
            driver.ask("close")
            ids = [one for end in ends for one in end["ids"]]
            if len(ids) != len(set(ids)):
                raise SystemExit(f"{language}: an id was issued twice")
            failed += sum(end["failed"] for end in ends)
            rounds = [(end["failed"], end["took_ms"]) for end in ends]
            row(language, calls, rounds, next((end["failure"][:300] for end in ends if end["failed"]), ""))
            if said.redis or said.factor:
                ratio = beside_redis(language, folder, calls, min(took for _, took in rounds))
                slow += bool(said.factor and ratio > said.factor)
        driver.end()
    return failed + slow


def beside_redis(language, folder, calls, fastest_ms):
    """Prints a row; returns how many times as long Firn's client takes."""
    server = redis_bursts.Redis(folder)
    try:
        rounds = redis_bursts.measure(language, folder, server.port, calls, ROUNDS)
    finally:
        server.close()
    ratio = fastest_ms / max(min(took for _, took in rounds), 0.01)
    row(redis_bursts.NAMES[language], calls, rounds, f"{language} takes {ratio:.1f} times as long")
    return ratio


def main():
    parser = builds.parser()
    parser.add_argument("--calls", type=lambda text: [int(one) for one in text.split(",")], default=[1, 100, 10_000])
    parser.add_argument("--defaults", action="store_true")
    parser.add_argument("--redis", action="store_true")
    parser.add_argument("--factor", type=float)
    said = builds.parsed(parser)
    if lacking := builds.missing(*said.languages, more=redis_bursts.NEEDS if said.redis or said.factor else []):
        print(f"skipped: not installed: {', '.join(lacking)}")
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="firn-bursts-")
    try:
        with cluster.Cluster(os.path.abspath(said.server), os.path.abspath(said.firn), folder) as servers:
            print("| client | calls at once |" + " failed | ms |" * ROUNDS)
            faults = sum(burst(language, said, folder, [one.address for one in servers.members])
                         for language in said.languages)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
