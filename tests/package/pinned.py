"""Tools of other languages in pinned versions, each in a folder that is named after its version."""

import os
import shutil
import subprocess
import sys


def import_from(folder, requirement):
    """Installs a package of PyPI below the folder, unless it is there, and makes it importable."""
    place = os.path.join(folder, requirement)
    if not os.path.exists(place):
        making = f"{place}.new"
        shutil.rmtree(making, ignore_errors=True)
        subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--root-user-action=ignore",
                        "--target", making, requirement], check=True)
        os.rename(making, place)
    sys.path.insert(0, place)


def go_program(folder, module):
    """Builds a Go program below the folder, unless it is there. Returns its path."""
    place = os.path.join(folder, module.rpartition("@")[2])
    program = os.path.join(place, os.path.basename(module.partition("@")[0]))
    if not os.path.exists(program):
        subprocess.run(["go", "install", "-trimpath", "-ldflags=-s", module], check=True,
                       env={**os.environ, "GOBIN": place, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"})
    return program
