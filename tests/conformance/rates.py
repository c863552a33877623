#!/usr/bin/python3
"""Measures ids per second of the clients and of a bare generated stub of the same language.

    rates.py LANGUAGE,... FIRN_SERVER FIRN [--driver PROGRAM] [--seconds S] [--threads N,...]

Every program asks the same firn-server on this machine, one after the other: one id a call, batches of
100, and prefetched ids, which are taken from memory. `asynchronous` rows have as many calls under way as
the others have threads; their bare stub is asynchronous, too, where the language has one. LANGUAGE is python, go, java, typescript, rust, or cpp, whose
program is built already: --driver conformance_rates; `all` are these six. A bare stub has a connection for
each thread. The server has a layout whose milliseconds are not used up by them. Exit 77 when something
is not installed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import builds

sys.path.insert(0, os.path.join(builds.HERE, "..", "interop"))
import interop

ROWS = (("one id a call", "bare single", "single"),
        ("one id a call, asynchronous", "bare single async", "single async"), ("batches of 100", "bare batch", "batch"),
        ("prefetched snowflake ids", None, "ahead snowflake"),
        ("prefetched segment numbers", None, "ahead segment"))
WIDE = "time:41 machine:4 sequence:18"


def command_of(language, said, folder):
    if language == "cpp":
        return [os.path.abspath(said.driver)]
    return builds.build(language, os.path.join(folder, language), of="rates")


def measure(said, folder):
    """The program's figures, by language and number of threads."""
    server = interop.Server(os.path.abspath(said.server), os.path.join(folder, "server"),
                            "--layout=" + WIDE)
    try:
        subprocess.run([said.firn, "tags", "create", "count", "strategy=segment",
                        "--registry=" + server.registry], check=True, stdout=subprocess.DEVNULL)
        server.becomes("count", "ID")
        told = {}
        for language in said.languages:
            command = command_of(language, said, folder)
            for threads in said.threads:
                answer = builds.run(*command, f"127.0.0.1:{server.port}", str(said.seconds),
                                    str(threads))
                told[language, threads] = json.loads(answer.splitlines()[-1])
        return told
    finally:
        server.stop()


def show(said, told):
    """A table in Markdown."""
    print("| ids a second |", " | ".join(f"{threads} thread{'s' * (threads > 1)}: stub | client"
                                        for threads in said.threads), "|")
    print("|---" * (1 + 2 * len(said.threads)) + "|")
    for language in said.languages:
        measured = told[language, said.threads[0]]
        for name, *columns in ROWS:
            if columns[1] not in measured:
                continue
            cells = [f"{told[language, threads][column]:,.0f}" if column in measured else ""
                     for threads in said.threads for column in columns]
            print(f"| {language}, {name} |", " | ".join(cells), "|")


def main():
    parser = builds.parser()
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--threads", type=lambda text: [int(one) for one in text.split(",")],
                        default=[1, 8])
    said = builds.parsed(parser)
    if lacking := builds.missing(*said.languages):
        print(f"skipped: not installed: {', '.join(lacking)}")
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="firn-rates-")
    try:
        show(said, measure(said, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
