#!/usr/bin/python3
"""Tests a client by the cases of cases.json, against the rows of FAILOVER.md.

    conformance.py LANGUAGE [--planted] [--only TEXT] [--failover-by-tls] [--driver PROGRAM]

Builds the language's client from a copy and prints its column of the matrix. A case that is not
fulfilled is red; one that `not_yet` names for the language is shown as that. With --planted the client
has a fault, and its row must be red. --failover-by-tls plays only short cases of listed servers,
through TLS. --driver: a program that is built already (C++). Exit 77 when something is not
installed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import builds
import case_list

HERE = os.path.dirname(os.path.abspath(__file__))
CONTRACT = os.path.join(builds.ROOT, "thrift", "firn.thrift")


def certificates(folder):
    """Two authorities; certificates of a server at 127.0.0.1, of a client, and of the other's client."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    path = lambda name: os.path.join(folder, name)
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in "ca", "other_ca":
        openssl("req", "-x509", "-days", "2", *new, "-subj", "/CN=" + name, "-keyout",
                path(name + ".key"), "-out", path(name + ".crt"))
    with open(path("names"), "w") as names:
        names.write("subjectAltName = IP:127.0.0.1, DNS:localhost\n")

    def pair(name, authority):
        openssl("req", *new, "-subj", "/CN=" + name, "-keyout", path(name + ".key"), "-out",
                path(name + ".csr"))
        openssl("x509", "-req", "-in", path(name + ".csr"), "-CA", path(authority + ".crt"), "-CAkey",
                path(authority + ".key"), "-CAcreateserial", "-days", "2", "-extfile", path("names"),
                "-out", path(name + ".crt"))
        return path(name + ".crt"), path(name + ".key")

    return {"ca": path("ca.crt"), "other_ca": path("other_ca.crt"), "server": pair("server", "ca"),
            "client": pair("client", "ca"), "other": pair("other", "other_ca")}


def judge(cases, ends, language):
    """Prints the matrix's column; returns the number of failed cases."""
    words = []
    for case, end in zip(cases, ends):
        awaited = case.get("not_yet", {}).get(language)
        word = "ok" if end is None else "not yet" if awaited else "RED"
        words.append(word)
        note = f" ({awaited})" if word == "not yet" else ""
        print(f"{word:8}{language:8}{case['row']}: {case['case']}{note}")
        if word == "RED":
            print("      " + end)
    count = {word: words.count(word) for word in ("ok", "not yet", "RED")}
    print(f"{language}:", ", ".join(f"{number} {word}" for word, number in count.items()))
    return count["RED"]


def failover_by_tls(cases):
    """The cases of plain calls to listed servers, without long waits, through TLS."""
    return [{**case, "tls": True, "open": {**case.get("open", {}), "tls_ca": "{ca}"}} for case in cases
            if not case.keys() & {"tls", "list", "alone", "first"}
            and not case.get("open", {}).keys() & {"servers", "segment", "snowflake", "tls_ca", "invalid"}]


def play(said, folder):
    """Runs the selected cases; returns their results."""
    subprocess.run(["thrift", "--gen", "py", "-out", folder, CONTRACT], check=True)
    sys.path[:0] = [folder]
    import cases as suite
    row = builds.PLANTS[said.language][3] if said.planted else None
    if said.planted:
        suite.PATIENCE_S = 5  # a client with a planted fault never meets the condition
    chosen = [case for case in case_list.load(os.path.join(HERE, "cases.json"))
              if said.language in case.get("languages", [said.language])
              and said.only in f"{case['row']}: {case['case']}" and row in (None, case["row"])]
    if said.failover_by_tls:
        chosen = failover_by_tls(chosen)
    driver = [said.driver] if said.driver else builds.build(said.language, folder, said.planted)
    return chosen, suite.play_all(chosen, driver, certificates(folder), folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("language", choices=builds.PLANTS)
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--failover-by-tls", action="store_true")
    parser.add_argument("--driver")
    said = parser.parse_args()
    if lacking := builds.missing(said.language, more=("openssl",)):
        print(f"skipped: not installed: {', '.join(lacking)}")
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="firn-conformance-")
    try:
        chosen, ends = play(said, folder)
        if said.planted:
            red = [end for end in ends if end]
            print(f"with a planted fault {len(red)} of {len(ends)} cases are red:", *red, sep="\n  ")
            sys.exit(0 if red and not any("driver" in end for end in red) else 1)
        wrong = judge(chosen, ends, said.language)
        if wrong:
            with open(os.path.join(folder, "driver.log")) as log:
                print(log.read()[-4000:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
