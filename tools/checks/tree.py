#!/usr/bin/env python3
"""Checks that every source file is in the build, that no folder has too many files, and that no marker
of unfinished work is left.

    tools/checks/tree.py [ROOT]
"""

import collections
import os
import re

import cpp

FOLDER_FILES_MAX = 32
MARK = re.compile(r"\b(TODO|FIXME|XXX)\b")


def names(text, name):
    """Whether a CMakeLists.txt's text names the file, in full or through a foreach: as
    ${scenario}_test.cc, if the text contains the scenario's name."""
    if re.search(r"(?<![\w.-])" + re.escape(name) + r"(?![\w.-])", text):
        return True
    for before, after in re.findall(r"(?<![\w.}-])([\w.-]*)\$\{\w+\}([\w.-]*)", text):
        word = name[len(before):len(name) - len(after)]
        if after and name == before + word + after and re.search(rf"\b{re.escape(word)}\b", text):
            return True
    return False


def nearest_list(path, lists):
    """The text of the nearest CMakeLists.txt, in the file's folder or above it."""
    while path:
        path = os.path.dirname(path)
        if (own := os.path.join(path, "CMakeLists.txt")) in lists:
            return lists[own]
    return "HEADERS"


def named_in_build(root, path, lists):
    """Whether a CMakeLists.txt in the file's folder, or above it, names the file."""
    folder = os.path.dirname(path)
    while True:
        if names(lists.get(os.path.join(folder, "CMakeLists.txt"), ""), os.path.basename(path)):
            return True
        if not folder:
            return False
        folder = os.path.dirname(folder)


def belongs_in_build(path, lists):
    """All code that a build must name: headers of libraries that list them, and test scripts, too."""
    if path.startswith("tests/install/consumer/"):
        return False  # a project of its own
    if path.endswith(".h"):
        if path.startswith("tests/"):
            return False
        return "HEADERS" in nearest_list(path, lists)
    return path.endswith((".cc", "_test.sh", "_test.py"))


def faults_of(root):
    lists = {p: cpp.read(root, p) for p in cpp.files_below(root, "CMakeLists.txt")}
    sources = cpp.files_below(root, ".h", ".cc", "_test.sh", "_test.py")
    faults = [f"{path}: no CMakeLists.txt names it" for path in sources
              if belongs_in_build(path, lists) and not named_in_build(root, path, lists)]
    folders = collections.Counter(map(os.path.dirname, cpp.files_below(root, ".h", ".cc")))
    faults += [f"{folder}/: has {count} files of code, more than {FOLDER_FILES_MAX}"
               for folder, count in sorted(folders.items()) if count > FOLDER_FILES_MAX]
    for path in cpp.files_below(root, ".h", ".cc", ".thrift", ".cmake"):
        text = cpp.read(root, path)
        faults += [f"{path}:{cpp.line_of(text, m.start())}: contains a {m.group()}"
                   for m in MARK.finditer(text)]
    return faults


if __name__ == "__main__":
    cpp.report("tree", faults_of(cpp.root_argument()))
