#!/usr/bin/env python3
"""Checks that every package, page and changelog has the version of the project line in CMakeLists.txt.

    tools/checks/package_versions.py [ROOT]

Where a project asks for Firn by its minor version, that is compared, such as 0.2.
"""

import re

import cpp

PROJECT = r"^project\(firn VERSION (\S+)"
POM = r"<artifactId>firn-[a-z-]+</artifactId>\s*<version>([\d.]+)</version>"
TOML = r'^name = "firn-client"\nversion = "(.*)"'
CMAKE = r"^ *find_package\(firn (\S+) REQUIRED\)"
CARGO = r'^firn-client = "(.*)"'
CHANGES = r"^## \[?(\d\S*?)\]?$"
# Files, and the text around each of their versions. Of a changelog, the newest section counts.
PLACES = {
    "tools/package/helm/Chart.yaml": r"^(?:version|appVersion): (.*)",
    "tools/package/LIFE.md": r"/root/firn-\w+_(.*?)~",
    **{f"client/java/{name}": POM for name in (
        "pom.xml", "firn-client/pom.xml", "firn-spring-boot-starter/pom.xml", "README.md",
        "firn-spring-boot-starter/README.md")},
    **{f"tests/conformance/samples/java/{name}/pom.xml": POM for name in ("boot", "project")},
    **{path: TOML for path in (
        "client/python/pyproject.toml", "client/rust/Cargo.toml", "client/rust/Cargo.lock",
        "tests/conformance/generators/rust/Cargo.lock", "tests/conformance/samples/rust/Cargo.lock")},
    "client/rust/README.md": CARGO,
    "client/go-leased/go.mod": r"/client/go v(.*)",
    **{path: CMAKE for path in ("client/README.md", "server/node/EMBEDDED.md", "server/OWN.md",
                                "tests/install/consumer/CMakeLists.txt",
                                "tests/install/client_consumer/CMakeLists.txt")},
    **{f"client/typescript/{name}": r'"name": "firn-client",\n\s*"version": "(.*)"'
       for name in ("package.json", "package-lock.json")},
    **{path: CHANGES for path in ("CHANGELOG.md", *(
        f"client/{language}/CHANGELOG.md" for language in ("go", "java", "python", "rust", "typescript")))},
}


def faults_of(root):
    version, = re.findall(PROJECT, cpp.read(root, "CMakeLists.txt"), re.MULTILINE)
    for path, pattern in PLACES.items():
        found = re.findall(pattern, cpp.read(root, path), re.MULTILINE)
        if pattern == CHANGES:
            found = found[:1]
        if not found:
            yield f"{path}: has no version"
        wanted = version.rpartition(".")[0] if pattern in (CMAKE, CARGO) else version
        for other in sorted(set(found) - {wanted}):
            yield f"{path}: has version {other}, not {wanted}"


if __name__ == "__main__":
    cpp.report("package_versions", list(faults_of(cpp.root_argument())))
