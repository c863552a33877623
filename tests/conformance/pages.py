"""The examples on the pages."""

import os
import re

import builds


def blocks(page):
    """The code blocks of a page, whose path is relative to the root, without their indentation."""
    with open(os.path.join(builds.ROOT, page)) as file:
        return blocks_of(file.read())


def blocks_of(text):
    found = re.findall(r"(?:^    .*\n(?:^\n)*)+", text, re.MULTILINE)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE).rstrip("\n") + "\n" for block in found]
