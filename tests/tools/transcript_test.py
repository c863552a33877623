#!/usr/bin/env python3
"""Replays the transcript of a page: each command must print the lines that follow it there, in order.

    transcript_test.py PAGE BIN

Commands are the indented lines that begin with "$ ", and all run in one shell in an empty folder,
with BIN in front of the PATH. Ports of the page become free ones. Where the page has the date of its
writing there stands some day: the same one all through, unless midnight came.
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import programs

PAGE, BIN = sys.argv[1], os.path.abspath(sys.argv[2])
WRITTEN_ON = "20261122"
MARK = "--- end of a command ---"
PATIENCE_S = 240


def steps_of(page):
    """[(command, the lines that it prints)]"""
    steps = []
    for line in page.splitlines():
        if line.startswith("    $ "):
            steps.append((line[6:], []))
        elif line.startswith("    ") and steps:
            steps[-1][1].append(line[4:])
    return steps


def replay(steps, folder):
    """The output of each command."""
    script = "set -m\n" + "".join(f"{command}\necho '{MARK}'\n" for command, _ in steps)
    script += "kill %% 2>/dev/null; wait\n"
    environment = dict(os.environ, PATH=BIN + os.pathsep + os.environ["PATH"])
    shell = programs.start(["bash", "-c", script], cwd=folder, env=environment, text=True,
                           stdout=subprocess.PIPE)
    try:
        printed, _ = shell.communicate(timeout=PATIENCE_S)
    finally:
        programs.end(shell)
    return [part.splitlines() for part in printed.replace(MARK + "\n", MARK).split(MARK)[:-1]]


def dates_in(parts):
    return sorted(set(re.findall(r"20\d{6}(?=-?\d{6})", "\n".join(sum(parts, [])))))


def differences(steps, parts):
    found = []
    for (command, wanted), told in zip(steps, parts):
        told = [re.sub(r"20\d{6}(?=-?\d{6})", WRITTEN_ON, line) for line in told]
        if told != wanted:
            found.append(f"$ {command}\nwanted: {wanted}\ngot:    {told}")
    if len(parts) != len(steps):
        found.append(f"{len(steps)} commands, {len(parts)} came to their end")
    return found


def main():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    ports = sorted(set(re.findall(r"127\.0\.0\.1:(\d+)", page)))
    for attempt in ("first", "after midnight"):
        text = page
        for port, free in [(port, programs.free_port()) for port in ports]:
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}")
        steps = steps_of(text)
        with tempfile.TemporaryDirectory() as folder:
            parts = replay(steps, folder)
            found = differences(steps, parts)
            if found and attempt == "first" and len(dates_in(parts)) > 1:
                continue
            log = os.path.join(folder, "server.log")
            if found and os.path.isfile(log):
                with open(log, encoding="utf-8") as file:
                    print(file.read())
        print("\n".join(found) or f"{len(steps)} commands, as on the page")
        return 1 if found else 0
    return 1


sys.exit(main())
