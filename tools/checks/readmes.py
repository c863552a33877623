#!/usr/bin/env python3
"""Checks that every folder of sources has a README.md, or that the next README.md above it names the folder (`net/`);
tests/ has one for all of its folders. Checks that the links and file names in all pages exist in the tree.

    tools/checks/readmes.py [ROOT]
"""

import os
import re

import cpp

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
FILE = re.compile(r"`([\w./-]*\w\.(?:h|cc|thrift))`")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
# The changelog may name files that were deleted.
HISTORY = "CHANGELOG.md"


def without_readme(root):
    sources = cpp.files_below(root, ".h", ".cc", ".thrift")
    folders = {os.path.dirname(p) for p in sources if not p.startswith("tests/")} | {"tests"}
    return [f"{folder}/: has no README.md, and none above names it" for folder in sorted(folders)
            if not described(root, folder)]


def described(root, folder):
    above = folder
    while not os.path.isfile(os.path.join(root, above, "README.md")):
        if not above:
            return False
        above = os.path.dirname(above)
    return above == folder or (os.path.relpath(folder, above or ".") + "/" in
                               cpp.read(root, os.path.join(above, "README.md")))


def dead_links(root, page, text):
    for link in LINK.findall(CODE.sub("", text)):
        target = os.path.join(root, os.path.dirname(page), link)
        if not re.match(r"\w+:", link) and not os.path.exists(target):
            yield f"{page}: the link {link} leads to no file"


def lost_files(page, text, files):
    """The file names in a page's text; a page may omit the leading folders."""
    for name in FILE.findall(text):
        path = "/" + os.path.normpath(name).lstrip("./")
        if not name.startswith("/") and not any(("/" + file).endswith(path) for file in files):
            yield f"{page}: there is no file {name}"


def faults_of(root):
    faults = without_readme(root)
    files = cpp.files_below(root, ".h", ".cc", ".thrift")
    for page in cpp.files_below(root, ".md"):
        text = cpp.read(root, page)
        faults += dead_links(root, page, text)
        if os.path.basename(page) != HISTORY:
            faults += lost_files(page, text, files)
    return faults


if __name__ == "__main__":
    cpp.report("readmes", faults_of(cpp.root_argument()))
