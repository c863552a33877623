#!/usr/bin/python3
"""Counts failed calls, and measures the time, of bursts of calls by each client, on three real servers.

    bursts.py LANGUAGE,... FIRN_SERVER FIRN [--driver PROGRAM] [--calls N,...] [--defaults]

A burst is that many calls at once by one process, and is repeated on the same client. An attempt times out after 10 s;
with --defaults, after the client's own time limit. Blocking clients share a burst among 20 threads. Exit 1 if a call
failed, and 77 when something is not installed.
"""

import os
import shutil
import sys
import tempfile

import builds
import cluster
import driver_process

GENEROUS = {"deadline_ms": 20_000, "attempt_limit_ms": 10_000}
ROUNDS = 3


def burst(language, said, folder, servers):
    """Prints a row for each size; returns the number of failed calls."""
    place = os.path.join(folder, language)
    os.makedirs(place)
    command = [os.path.abspath(said.driver)] if language == "cpp" else builds.build(language, place)
    failed = 0
    with open(os.path.join(folder, language + ".log"), "w") as log:
        driver = driver_process.Driver(command, log)
        for calls in said.calls:
            driver.ask("open", servers="list://" + ",".join(servers), **({} if said.defaults else GENEROUS))
            ends = [driver.ask("burst", calls=calls, tag="default") for _ in range(ROUNDS)]
            driver.ask("close")
            ids = [one for end in ends for one in end["ids"]]
            if len(ids) != len(set(ids)):
                raise SystemExit(f"{language}: an id was issued twice")
            failed += sum(end["failed"] for end in ends)
            print(f"| {language} | {calls:,} |", " | ".join(f"{end['failed']:,} | {end['took_ms']:,.0f}" for end in ends), "|",
                  next((end["failure"][:300] for end in ends if end["failed"]), ""), flush=True)
        driver.end()
    return failed


def main():
    parser = builds.parser()
    parser.add_argument("--calls", type=lambda text: [int(one) for one in text.split(",")], default=[1, 100, 10_000])
    parser.add_argument("--defaults", action="store_true")
    said = builds.parsed(parser)
    if lacking := builds.missing(*said.languages):
        print(f"skipped: not installed: {', '.join(lacking)}")
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="firn-bursts-")
    try:
        with cluster.Cluster(os.path.abspath(said.server), os.path.abspath(said.firn), folder) as servers:
            print("| client | calls at once |" + " failed | ms |" * ROUNDS)
            failed = sum(burst(language, said, folder, [one.address for one in servers.members])
                         for language in said.languages)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
