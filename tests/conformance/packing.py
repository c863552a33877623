#!/usr/bin/python3
"""Packs the clients as the registries of their languages take them.

    packing.py FOLDER [LANGUAGE...]     files, the Maven repository FOLDER/maven and the Go module proxy FOLDER/go
"""

import glob
import json
import os
import re
import shutil
import sys
import tempfile
import zipfile

import builds
import npm

GO_TIME = (2026, 1, 1, 0, 0, 0)  # of the files in a module, so that equal inputs make equal files


def python(folder):
    """The wheel and the source package."""
    dist = os.path.dirname(builds.wheel_of(builds.copy("python", folder, planted=False)))
    return [os.path.join(dist, name) for name in os.listdir(dist)]


def typescript(folder):
    """The npm package."""
    client = builds.copy("typescript", folder, planted=False)
    os.symlink(builds.node_packages(), os.path.join(folder, "node_modules"))
    packed, = json.loads(npm.run_npm(client, "pack", "--json", "--ignore-scripts=false", local=True))
    return os.path.join(client, packed["filename"])


def rust(folder):
    """The crate."""
    client = builds.copy("rust", folder, planted=False)
    builds.cargo("package", "--locked", "--no-verify", cwd=client)
    return os.path.join(builds.ROOT, "build", "rust", "target", "package", f"firn-client-{builds.VERSION}.crate")


def java(folder):
    """A Maven repository."""
    client = builds.copy("java", folder, planted=False)
    builds.maven("package", "-DskipTests", cwd=client)
    made = os.path.join(folder, "maven")
    for name, module in ("firn-parent", "."), *((name, name) for name in ("firn-client", "firn-spring-boot-starter")):
        place = builds.new(made, "io", "firn", name, builds.VERSION)
        shutil.copy(os.path.join(client, module, "pom.xml"), os.path.join(place, f"{name}-{builds.VERSION}.pom"))
        for jar in glob.glob(os.path.join(folder, "build", "java", name, "*.jar")):
            shutil.copy(jar, place)
    return made


def go(folder, *names):
    """A module proxy of files with the client, and the folders named beside it."""
    made = os.path.join(folder, "go")
    for name in "go", *names:
        client = builds.copy(name, os.path.join(folder, "copies", name), planted=False)
        add_module(made, client, builds.GO_MODULE.removesuffix("go") + name)
    return made


def add_module(proxy, client, module):
    """Adds a module to a proxy, with the version of this tree."""
    version, escaped = "v" + builds.VERSION, re.sub("[A-Z]", lambda letter: "!" + letter[0].lower(), module)
    place = builds.new(proxy, escaped, "@v")
    shutil.copy(os.path.join(client, "go.mod"), os.path.join(place, version + ".mod"))
    with open(os.path.join(place, "list"), "w") as file:
        file.write(version + "\n")
    with open(os.path.join(place, version + ".info"), "w") as file:
        json.dump({"Version": version}, file)
    with zipfile.ZipFile(os.path.join(place, version + ".zip"), "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(os.path.join(at, name) for at, _, names in os.walk(client) for name in names):
            with open(path, "rb") as file:
                packed.writestr(zipfile.ZipInfo(f"{module}@{version}/{os.path.relpath(path, client)}", GO_TIME),
                                file.read(), zipfile.ZIP_DEFLATED)


def pack(into, language):
    with tempfile.TemporaryDirectory(prefix="firn-packing-") as folder:
        if language == "python":
            for made in python(folder):
                shutil.copy(made, into)
        elif language in ("typescript", "rust"):
            shutil.copy({"typescript": typescript, "rust": rust}[language](folder), into)
        elif language == "java":
            shutil.copytree(java(folder), os.path.join(into, "maven"))
        else:
            shutil.copytree(go(folder, "go-leased"), os.path.join(into, "go"))


if __name__ == "__main__":
    for one in sys.argv[2:] or ("python", "typescript", "rust", "java", "go"):
        pack(os.path.abspath(sys.argv[1]), one)
