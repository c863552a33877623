#!/usr/bin/python3
"""Checks that each row of FAILOVER.md has a case in each language.

    rows_test.py

A case names its row by the beginning of its first cell. Rows of what only the C++ client has are tested
`elsewhere`: in a file of the C++ tests that the case names. A row of every language that is tested elsewhere
names a file of each.
"""

import json
import os
import sys

import case_list

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
CASES = os.path.join(HERE, "cases.json")
LANGUAGES = ("cpp", "python", "go", "java", "typescript", "rust")
# Their tests of leases, which need no server.
LESSEES = ("tests/client/lease/lease_sender_test.cc", "client/python/tests/test_lessee.py", "client/go/lessee_test.go",
           "client/java/firn-client/src/test/java/io/firn/LesseeTest.java", "client/typescript/test/lessee.test.ts",
           "client/rust/src/lease/lessee_tests.rs")


def rows(text):
    """The first cell of each row of the tables of conditions, without their heads."""
    head = ""
    for line in text.splitlines():
        cell = line.split("|")[1].strip() if line.startswith("|") else ""
        if not cell or not head:
            head = cell
        elif head == "condition" and not cell.startswith("---"):
            yield cell


def faults(rows_there, cases, elsewhere):
    """A sentence for each missing case."""
    for row in rows_there:
        tests = [test for one in elsewhere if row.startswith(one["row"])
                 for test in (LESSEES if one["elsewhere"] == "lessees" else [one["elsewhere"]])]
        yield from (f"'{row}': {test} does not exist" for test in tests
                    if not os.path.exists(os.path.join(ROOT, test)))
        played = [case for case in cases if row.startswith(case["row"])]
        for language in LANGUAGES:
            if not tests and not any(language in case.get("languages", LANGUAGES) for case in played):
                yield f"'{row}' has no case in {language}"
    for one in elsewhere:
        if not any(row.startswith(one["row"]) for row in rows_there):
            yield f"'{one['row']}' is not a row"


def main():
    with open(os.path.join(ROOT, "client", "call", "FAILOVER.md")) as page:
        there = list(rows(page.read()))
    with open(CASES) as file:
        elsewhere = [case for case in json.load(file) if "elsewhere" in case]
    cases = case_list.load(CASES)
    if "a row without a case" not in " ".join(faults(["a row without a case"], cases, [])):
        sys.exit("a row without a case is not noticed")
    wrong = list(faults(there, cases, elsewhere))
    print(*wrong, f"{len(there)} rows, {len(wrong)} faults", sep="\n")
    sys.exit(1 if wrong or len(there) < 30 else 0)


if __name__ == "__main__":
    main()
