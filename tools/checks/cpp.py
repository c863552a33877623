"""Functions that the checks share: they list the repository's files and strip comments from C++ code."""

import os
import re
import sys

SKIPPED_FOLDERS = {".git", "build", "firn-state", "node_modules", "__pycache__"}


def files_below(root, *suffixes):
    """Sorted paths, relative to `root`, of the files that end in one of `suffixes`; all without any."""
    found = []
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n not in SKIPPED_FOLDERS)
        for name in files:
            if not suffixes or name.endswith(suffixes):
                found.append(os.path.relpath(os.path.join(folder, name), root))
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/'                       # comments
    r'|R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",    # not the ' of 1'000
    re.DOTALL)


def code_of(text):
    """`text` with comments and literals replaced by blanks; every line keeps its number."""
    return _TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def report(what, faults):
    """Prints each fault and ends the program: 0 without faults, 1 with some."""
    for fault in faults:
        print(fault)
    print(f"{what}: {'no' if not faults else len(faults)} fault{'' if len(faults) == 1 else 's'}")
    sys.exit(1 if faults else 0)


def root_argument():
    """The tree to check: the first argument, or the repository of this file."""
    here = os.path.dirname(os.path.abspath(__file__))
    return sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(here))
