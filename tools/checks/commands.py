#!/usr/bin/env python3
"""Checks that every command that a program prints for a person to run is a row of kPrintedCommands
(common/base/printed_command.h), and that a test pastes each row into a shell (tests/support/paste.h).

    tools/checks/commands.py [ROOT]

A C++ source takes a command from PrintCommand. It may name a verb of `firn` itself only in help (flags,
verbs) and in the sentences of MENTIONS, which do not ask a person to run anything.
"""

import re

import cpp

TABLE = "common/base/printed_command.h"
FOLDERS = ("common/", "registry/", "server/", "client/", "tools/")
LITERALS = r'(?:"(?:\\.|[^"\\\n])*"\s*)+'
COMMAND = re.compile(r"\bfirn [a-z]+(?! *:|[a-z])")
# Flags and verbs explain themselves; metrics have help, too.
HELP = re.compile(r"\bDEFINE_\w+\((?:[^\"();]|" + LITERALS + r"|\([^()]*\))*\)"
                  r"|\.(?:details|summary|arguments)\s*=\s*(?:Cat\()?" + LITERALS +
                  r"|\b(?:NUMBER|TEXT|SWITCH|BOOL|FLAG)\((?:[^\"();]|" + LITERALS + r"|\([^()]*\))*\)"
                  r"|\bpage\.(?:Gauge|Counter)\(" + LITERALS + r",\s*" + LITERALS)
MENTIONS = (
    "firn restore retires it", "was permanently retired by firn restore",
    "because of the floor of the last firn restore or init", "firn restore repairs it",
    "`firn restore` skips at least", "firn tags 2 ",
)


def rows_of(root):
    text = cpp.read(root, TABLE)
    return dict(re.findall(r'CommandTemplate\{PrintedCommand::(k\w+),\s*"([^"]*)"\}', text))


def without_comments(text):
    return re.sub(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")',
                  lambda m: m.group(1) or re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def composed(root):
    for path in cpp.files_below(root, ".cc", ".h"):
        if not path.startswith(FOLDERS) or path == TABLE:
            continue
        code = without_comments(cpp.read(root, path))
        code = HELP.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), code)
        for match in re.finditer(LITERALS, code):
            text = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', match.group()))
            for mention in MENTIONS:
                text = text.replace(mention, "")
            if COMMAND.search(text):
                yield (f"{path}:{cpp.line_of(code, match.start())}: a command comes from PrintCommand: "
                       f"\"{text[:80]}\"")


def faults_of(root):
    faults = list(composed(root))
    rows = rows_of(root)
    enum = re.search(r"enum class PrintedCommand \{(.*?)\};", cpp.read(root, TABLE), re.S)
    for name in sorted(set(re.findall(r"\bk\w+", enum.group(1))) ^ set(rows)):
        faults.append(f"{TABLE}: {name} is not both an enumerator and a row")
    tests = "".join(cpp.read(root, path) for path in cpp.files_below(root, ".cc")
                    if path.startswith("tests/"))
    for name in rows:
        if not re.search(rf"\bPaste\(\s*PrintedCommand::{name}\b", tests):
            faults.append(f"{TABLE}: no test pastes {name}, \"{rows[name]}\", into a shell")
    return faults


if __name__ == "__main__":
    cpp.report("commands", faults_of(cpp.root_argument()))
