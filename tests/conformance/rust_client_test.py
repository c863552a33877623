#!/usr/bin/python3
"""Runs the Rust client's own tests, and compiles the programs of drivers/rust, which other tests use.

    rust_client_test.py          # the tests
    rust_client_test.py --lints  # format, lints and documentation instead, which compile all crates again

Exit 77 when Rust is not installed, is too old, or cannot fetch a crate.
"""

import os
import shutil
import sys
import tempfile

import builds

CLIENT = os.path.join(builds.ROOT, "client", "rust")
FRAMES = os.path.join(builds.ROOT, "tests", "contract", "frames.json")
DRIVERS = os.path.join(builds.DRIVERS, "rust")


def main():
    if lacking := builds.missing("rust"):
        print(f"skipped: not installed: {', '.join(lacking)}")
        sys.exit(77)
    if "--lints" in sys.argv[1:]:
        check_lints()
    else:
        run_tests()


def run_tests():
    os.environ["FIRN_FRAMES"] = os.path.abspath(FRAMES)
    print(builds.cargo("test", "--locked", "--all-features", cwd=CLIENT))
    folder = tempfile.mkdtemp(prefix="firn-rust-client-")
    try:
        for of in "driver", "lease", "rates":
            builds.build("rust", builds.new(folder, of), of=of)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_lints():
    builds.cargo("check", "--locked", "--no-default-features", cwd=CLIENT)
    for features in ("--all-features", "--no-default-features"):
        print(builds.cargo("clippy", "--locked", "--all-targets", features, "--", "-D", "warnings", cwd=CLIENT))
    sources = [os.path.join(DRIVERS, name) for name in sorted(os.listdir(DRIVERS))]
    builds.cargo("fmt", "--check", cwd=CLIENT)
    builds.run("rustfmt", "--check", "--edition", "2021", "--config-path", CLIENT, *sources)
    os.environ["RUSTDOCFLAGS"] = "-D warnings"
    builds.cargo("doc", "--locked", "--all-features", "--no-deps", cwd=CLIENT)


if __name__ == "__main__":
    main()
