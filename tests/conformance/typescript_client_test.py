#!/usr/bin/python3
"""Checks the types of the TypeScript client, of its tests and of its drivers, and runs its unit tests.

    typescript_client_test.py

The compiler comes from npm, as client/typescript/package-lock.json says. Exit 77 when something is not installed, or
npm's registry cannot be reached.
"""

import os
import shutil
import subprocess
import sys
import tempfile

import builds

FRAMES = os.path.join(builds.ROOT, "tests", "contract", "frames.json")


def main():
    if lacking := builds.missing("typescript"):
        print(f"skipped: not installed: {', '.join(lacking)}")
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="firn-typescript-")
    try:
        client = builds.copy("typescript", folder, planted=False)
        builds.build_typescript(client, folder, "driver", check=())
        builds.run("node", builds.COMPILER, "-p", "tsconfig.test.json", cwd=client)
        done = subprocess.run(["node", "--test", "dist/test/test/"], cwd=client,
                              env={**os.environ, "FIRN_FRAMES": os.path.abspath(FRAMES)})
        sys.exit(done.returncode)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
