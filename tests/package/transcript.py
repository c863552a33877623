"""A page with the transcript of a test, and a check that a new transcript equals it except for
numbers."""

import difflib
import os
import re

PROMPT = "# "


class Transcript:
    def __init__(self, head):
        self.lines = head.splitlines()

    def section(self, title):
        self.lines += ["", f"## {title}"]

    def says(self, sentence):
        self.lines += ["", *sentence.splitlines()]

    def shows(self, command, printed):
        """Adds the command and its output to the current block."""
        if not self.lines[-1].startswith("    "):
            self.lines.append("")
        self.lines.append(f"    {PROMPT}{command}".rstrip())
        self.lines += [f"    {line}".rstrip() for line in printed.splitlines()]

    def differences(self, page):
        """Returns the differences from the page's file; with FIRN_PAGE=FILE it writes the new page there instead."""
        left = os.environ.get("FIRN_PAGE")
        if left:
            with open(left, "w") as file:
                file.write("\n".join(self.lines) + "\n")
            return []
        with open(page) as file:
            wanted = file.read().splitlines()
        return list(difflib.unified_diff(without_numbers(wanted), without_numbers(self.lines),
                                         "the page", "today", lineterm="", n=1))


def without_numbers(lines):
    """Replaces numbers, and the widths of columns that contain some."""
    return [re.sub(r"\s+", " ", re.sub(r"\d[\d,.]*", "1", line)) for line in lines]
