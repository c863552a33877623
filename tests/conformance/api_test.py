#!/usr/bin/python3
"""Checks that each client declares the names that the table of client/call/API.md has in its column.

    api_test.py
"""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
JAVA = "client/java/firn-client/src/main/java/io/firn/"
# The files in which a client declares what its users call.
PUBLIC = {
    "C++": ["client/client.h", "client/client_options.h", "client/client_view.h", "client/lease/lease_options.h",
            "common/base/status.h"],
    "Python": ["client/python/firn/" + name for name in ("client.py", "base.py", "options.py", "local_generator.py",
                                                      "errors.py", "server.py", "view.py")],
    "Go": ["client/go/" + name for name in ("client.go", "options.go", "local_generator.go", "errors.go", "fleet.go")],
    "Java": [JAVA + name for name in ("FirnClient.java", "Options.java", "LocalGenerator.java",
                                     "LeaseLoss.java", "FirnException.java", "SeenServer.java")],
    "TypeScript": ["client/typescript/src/" + name for name in ("client.ts", "options.ts", "local_generator.ts",
                                                              "lease_request.ts", "errors.ts", "view.ts")],
    "Rust": ["client/rust/src/" + name for name in ("client.rs", "options.rs", "lease/generator.rs",
                                                    "lease/lessee.rs", "error.rs", "server.rs")],
}
# What precedes the name of a declared function, option or type.
DECLARED = {
    "C++": r"^ [^/]*?", "Python": r"^\s*(?:(?:async )?def |class |.*?)", "Go": r"^(?:func [^/]*?|type |\t)",
    "Java": r"^ *(?:public [^/]*?|(?=[A-Z_]+,$))", "TypeScript": r"^(?:  (?:readonly )?|export .*?)",
    "Rust": r"^ *(?:pub (?:(?:async fn|fn|struct) )?|(?=\w+,$))",
}


def rows(text):
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return table[0][1:], table[2:]


def faults(languages, table):
    """A sentence for each name that a client does not declare."""
    for column, language in enumerate(languages, 1):
        public = ""
        for name in PUBLIC[language]:
            with open(os.path.join(ROOT, name)) as file:
                public += file.read()
        for row in table:
            name = row[column].strip("`")
            if not re.search(DECLARED[language] + r"(?<!\w)" + re.escape(name) + r"\b", public, re.M):
                yield f"{language} does not declare {name}: {row[0]}"


def main():
    with open(os.path.join(ROOT, "client", "call", "API.md")) as page:
        languages, table = rows(page.read())
    if sorted(languages) != sorted(PUBLIC) or len(table) < 10:
        sys.exit(f"the table is of {languages}, and has {len(table)} rows")
    if len(list(faults(languages, [["none", *["`no_such_name`"] * len(languages)]]))) < len(languages):
        sys.exit("a name that no client declares is not noticed")
    wrong = list(faults(languages, table))
    print(*wrong, f"{len(table)} rows, {len(wrong)} faults", sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
