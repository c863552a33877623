#!/usr/bin/env python3
"""Checks server/node/STATES.md against the code: each state of a tag, a claim, a root node and a server, each
refusal reason, and each outcome of a request for a lease, has a row; the metrics, alerts, status fields and audit lines in the rows exist.

    tools/checks/states.py [ROOT]
"""

import re

import cpp

PAGE = "server/node/STATES.md"
# Where the names of states are defined: function or enum, and its file. A name is one word.
NAMED = {
    "TagStateName": "server/node/served_tags.cc",
    "ClaimStateName": "registry/claim/claim_status.cc",
    "ReasonName": "common/id/reason.cc",
    "PhaseName": "common/id/server_phase.cc",
    "LeaseVerdictName": "server/lease/lease_desk.cc",
    "LeaseResult ResultOf": "server/front/desk/lease_calls.cc",
}
# Words that name no state in which a call is refused.
NO_STATES = {"unknown", "granted", "ended"}
ROOTS = ("RootState", "server/node/known_root.h")
ALERTS = "tools/package/alerts.yml"


def returned_words(text, function):
    """The words that a function returns or lists: "ready", "NOT_READY"."""
    start = text.find(function + "(")
    body = text[start:text.find("\n}", start)]
    return set(re.findall(r'"([A-Za-z_]+)"', body)) - NO_STATES


def enumerators(text, name):
    """kMissing of an enum as missing."""
    body = re.search(rf"enum class {name}\b[^{{]*{{(.*?)}};", text, re.S)
    words = re.findall(r"\bk([A-Z]\w*)", re.sub(r"//[^\n]*", "", body.group(1))) if body else []
    return {re.sub(r"(?<!^)([A-Z])", r"_\1", word).lower() for word in words}


def rows_of(page):
    """Each table row as {heading: cell}."""
    heads = None
    for line in page.splitlines():
        if not line.startswith("|"):
            heads = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if heads is None:
            heads = [head.replace("`", "") for head in cells]
        elif not set(line) <= set("|- "):
            yield dict(zip(heads, cells))


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


def faults_of(root):
    rows = list(rows_of(cpp.read(root, PAGE)))
    states = {word for row in rows for column in ("state", "reason", "calls get", "requests get", "metric")
              for word in quoted(row.get(column, ""))}
    wanted = {ROOTS: enumerators(cpp.read(root, ROOTS[1]), ROOTS[0])}
    for item in NAMED.items():
        wanted[item] = returned_words(cpp.read(root, item[1]), item[0])
    for (name, path), words in wanted.items():
        if not words:
            yield f"{path}: no words of {name} found"
        for word in sorted(words - states):
            yield f"{PAGE}: no row for `{word}` ({name}, {path})"
    sources = {"metric": ("server/front", "server"), "status field": ("server/front/http",)}
    texts = {column: "".join(cpp.read(root, path) for path in cpp.files_below(root, ".cc", ".h")
                             if path.startswith(folders)) for column, folders in sources.items()}
    texts["firn audit"] = "".join(cpp.read(root, path) for path in cpp.files_below(root, ".cc")
                                  if path.startswith("registry/"))
    alerts = cpp.read(root, ALERTS)
    for row in rows:
        for column, text in texts.items():
            for word in quoted(row.get(column, "")):
                known = word in text if column == "firn audit" else f'"{word}"' in text
                if not known:
                    yield f"{PAGE}: {column} `{word}` is not in the code"
        for alert in re.findall(r"\bFirn\w+", row.get("alert", "")):
            if f"alert: {alert}\n" not in alerts:
                yield f"{PAGE}: {ALERTS} has no {alert}"


if __name__ == "__main__":
    cpp.report("states", list(faults_of(cpp.root_argument())))
