"""The examples on the pages."""

import os
import re
import subprocess

import builds

TRIES = 20


def blocks(page):
    """The code blocks of a page, whose path is relative to the root, without their indentation."""
    with open(os.path.join(builds.ROOT, page)) as file:
        return blocks_of(file.read())


def blocks_of(text):
    found = re.findall(r"(?:^    .*\n(?:^\n)*)+", text, re.MULTILINE)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE).rstrip("\n") + "\n" for block in found]


def run(*command, **options):
    """Runs a page's program, whose default deadlines are short for a busy machine: again if they have passed."""
    for _ in range(TRIES):
        done = subprocess.run(command, capture_output=True, text=True, **options)
        if "the deadline has passed" not in done.stdout + done.stderr:
            break
    return done
