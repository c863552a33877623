#!/usr/bin/env python3
"""Checks that every folder of sources has a README.md; tests/ has one for all of its folders.

    tools/checks/readmes.py [ROOT]
"""

import os

import cpp


def faults_of(root):
    sources = cpp.files_below(root, ".h", ".cc", ".thrift")
    folders = {os.path.dirname(p) for p in sources if not p.startswith("tests/")} | {"tests"}
    return [f"{folder}/: has no README.md" for folder in sorted(folders)
            if not os.path.isfile(os.path.join(root, folder, "README.md"))]


if __name__ == "__main__":
    cpp.report("readmes", faults_of(cpp.root_argument()))
