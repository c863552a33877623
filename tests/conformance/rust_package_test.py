#!/usr/bin/python3
"""Packs the Rust client, and uses the unpacked package in an empty project, as a user would.

    rust_package_test.py FIRN_SERVER FIRN

The project runs the programs of the client's page, its example, and the drill's load while three servers are killed and
paused in turn. Exit 77 when something is not installed.
"""

import argparse
import os
import re
import shutil
import sys
import tarfile
import tempfile

import builds
import cluster
import drill
import packing
import web

MUST_HAVE = {"Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "CHANGELOG.md", "src/lib.rs", "examples/ids.rs"}
MAY_HAVE = re.compile(r"src/(lease/)?\w+\.rs|Cargo\.toml\.orig")


def packed(folder, place):
    """Packs a copy of the client; the folder of the unpacked package, below `place`."""
    return unpacked_below(place, packing.rust(folder))


def unpacked_below(place, crate):
    """Unpacks a crate, and checks its files; its folder."""
    unpacked = os.path.join(place, os.path.basename(crate).removesuffix(".crate"))
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(crate) as package:
        package.extractall(place)
    files = {os.path.relpath(os.path.join(at, name), unpacked)
             for at, _, names in os.walk(unpacked) for name in names}
    if lacking := MUST_HAVE - files:
        raise SystemExit(f"the package lacks {lacking}")
    if more := [name for name in files - MUST_HAVE if not MAY_HAVE.fullmatch(name)]:
        raise SystemExit(f"the package has {more}")
    for name in files:  # a package has one time for all versions, by which cargo would recognise no change
        os.utime(os.path.join(unpacked, name))
    return unpacked


def project(place, unpacked, server, asked, listens):
    """An empty project that needs the package; its programs ask the server. Its web service listens on an address, and
    asks another server. Its folder."""
    with open(os.path.join(unpacked, "README.md")) as page:
        text = page.read()
    manifest, first, local, service = re.findall(r"```(?:toml|rust)\n(.*?)```", text, re.DOTALL)
    dependencies = re.sub(r"firn-client = .*", f'firn-client = {{ path = "{unpacked}", features = '
                          '["blocking", "metrics", "tls"] }', manifest)
    dependencies += re.search(r"`(axum = .*?)`", text)[1] + "\n"
    made = os.path.join(place, "project")
    shutil.rmtree(made, ignore_errors=True)
    programs = builds.new(made, "src", "bin")
    with open(os.path.join(made, "Cargo.toml"), "w") as file:
        file.write('[package]\nname = "project"\nversion = "0.0.0"\nedition = "2021"\n\n' + dependencies)
    with open(os.path.join(programs, "first.rs"), "w") as file:
        file.write(first.replace("127.0.0.1:7609", server))
    with open(os.path.join(programs, "local.rs"), "w") as file:
        file.write(local.replace("127.0.0.1:7609", server))
    with open(os.path.join(programs, "service.rs"), "w") as file:
        file.write(service.replace("127.0.0.1:7609", asked).replace("127.0.0.1:8080", listens))
    shutil.copy(os.path.join(unpacked, "examples", "ids.rs"), programs)
    shutil.copy(os.path.join(builds.DRIVERS, "rust", "driver.rs"), programs)
    # The versions of crates that the tests have already, and those of axum.
    shutil.copy(os.path.join(builds.HERE, "samples", "rust", "Cargo.lock"), made)
    return made


def programs_of(folder, *addresses):
    """Builds the project; the folder of its programs."""
    with builds.rust_place() as place:
        builds.cargo("build", cwd=project(place, packed(folder, place), *addresses))
        for name in "first", "ids", "local", "driver", "service":
            shutil.copy(os.path.join(place, "target", "debug", name), folder)
    return folder


def ids_in(text, at_least):
    ids = re.findall(r"\b\d{15,19}\b", text)
    if len(set(ids)) != len(ids) or len(ids) < at_least:
        raise SystemExit(f"these are not {at_least} different ids:\n{text}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("firn")
    said = parser.parse_args()
    if lacking := builds.missing("rust", more=("java", "/usr/share/java/zookeeper.jar")):
        print(f"skipped: not installed: {', '.join(lacking)}")
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="firn-rust-package-")
    try:
        with cluster.Cluster(said.server, said.firn, builds.new(folder, "servers")) as servers:
            port, asked = cluster.programs.free_port(), cluster.interop.Server(said.server, os.path.join(folder, "web"))
            programs = programs_of(folder, servers.members[0].address, f"127.0.0.1:{asked.port}", f"127.0.0.1:{port}")
            web.check([os.path.join(programs, "service")], port, asked)
            ids_in(builds.run(os.path.join(programs, "first")), 101)
            ids_in(builds.run(os.path.join(programs, "local")), 1)
            print(builds.run(os.path.join(programs, "ids"), "firn://" + servers.members[0].address, "default"))
            play = drill.Drill(servers, [os.path.join(programs, "driver")], drill.GENEROUS, folder)
            play.rounds = 1
            for scenario in "quiet", "killed", "storm":
                play.play(scenario)
            play.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if play.failed else 0)


if __name__ == "__main__":
    main()
