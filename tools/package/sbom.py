#!/usr/bin/env python3
"""Prints an SPDX 2.3 document (JSON) of a container image: one entry for each Debian package in it, and for each file
that is published beside it.

    sbom.py --format                                        prints the format for dpkg-query
    dpkg-query -W -f "$(sbom.py --format)" | sbom.py NAME [FILE...]     reads its output

NAME is the image's name, such as firn:0.2.0. The document depends only on the packages, the files, NAME and the time in
SOURCE_DATE_EPOCH (default: now).
"""

import argparse
import datetime
import hashlib
import json
import os
import sys
import urllib.parse

FIELDS = ("db:Status-Status", "Package", "Version", "Architecture", "Maintainer", "source:Package",
          "source:Version")
FORMAT = "\\t".join(f"${{{field}}}" for field in FIELDS) + "\\n"
UNKNOWN = "NOASSERTION"


def quoted(word):
    return urllib.parse.quote(word, safe="")


def fields_of(line):
    fields = line.rstrip("\n").split("\t")
    if len(fields) != len(FIELDS) or not all(fields):
        raise ValueError(f"not a line in the format of --format: {line!r}")
    return fields


def package(name, version, architecture, maintainer, source, source_version):
    is_own = source == "firn" or source.startswith("firn-")
    place = f"pkg:deb/{'firn' if is_own else 'debian'}/{quoted(name)}"
    return {
        # SPDX permits no "+" and no "%" in an identifier.
        "SPDXID": f"SPDXRef-Package-{quoted(name).replace('%', '.')}-{architecture}",
        "name": name, "versionInfo": version, "supplier": f"Organization: {maintainer.partition(' <')[0]}",
        "downloadLocation": UNKNOWN, "filesAnalyzed": False, "sourceInfo": f"{source} {source_version}",
        "licenseConcluded": UNKNOWN, "licenseDeclared": "MIT" if is_own else UNKNOWN,
        "copyrightText": UNKNOWN,
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"{place}@{quoted(version)}?arch={quoted(architecture)}"}]}


def published(path):
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    return {"SPDXID": f"SPDXRef-File-{hashlib.sha256(path.encode()).hexdigest()}", "name": os.path.basename(path), "packageFileName": path,
            "downloadLocation": UNKNOWN, "filesAnalyzed": False, "licenseConcluded": UNKNOWN,
            "licenseDeclared": "MIT", "copyrightText": UNKNOWN,
            "checksums": [{"algorithm": "SHA256", "checksumValue": digest}]}


def document(name, lines, files, created):
    rows = [fields_of(line) for line in sorted(lines)]
    packages = [package(*row) for status, *row in rows if status == "installed"]
    image = {"SPDXID": "SPDXRef-Image", "name": name, "downloadLocation": UNKNOWN,
             "filesAnalyzed": False, "primaryPackagePurpose": "CONTAINER",
             "licenseConcluded": UNKNOWN, "licenseDeclared": UNKNOWN, "copyrightText": UNKNOWN}
    beside = [published(path) for path in files]
    digest = hashlib.sha256(json.dumps([name, created, packages, beside]).encode()).hexdigest()
    contains = [{"spdxElementId": image["SPDXID"], "relationshipType": "CONTAINS",
                 "relatedSpdxElement": part["SPDXID"]} for part in packages]
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": f"https://firn.io/spdx/{digest}",
        "creationInfo": {"created": created, "creators": ["Tool: firn-sbom"]},
        "packages": [image, *packages, *beside],
        "relationships": [*({"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                             "relatedSpdxElement": part["SPDXID"]} for part in (image, *beside)), *contains]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", help="name of the image")
    parser.add_argument("files", nargs="*", help="files that are published beside the image")
    parser.add_argument("--format", action="store_true", help="print the format for dpkg-query")
    arguments = parser.parse_args()
    if arguments.format:
        print(FORMAT)
        return 0
    lines = [line for line in sys.stdin if line.strip()]
    if not arguments.name or not lines:
        print("sbom.py: requires the image's name and dpkg-query's output on standard input; see --help",
              file=sys.stderr)
        return 2
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", datetime.datetime.now().timestamp()))
    created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc)
    try:
        made = document(arguments.name, lines, arguments.files, created.strftime("%Y-%m-%dT%H:%M:%SZ"))
    except (OSError, ValueError) as fault:
        print(f"sbom.py: {fault}", file=sys.stderr)
        return 1
    json.dump(made, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
