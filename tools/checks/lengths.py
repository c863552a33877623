#!/usr/bin/env python3
"""Checks that no source file is longer than 400 lines and no C++ function longer than 70.

    tools/checks/lengths.py [ROOT]
"""

import re

import cpp

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
# Text before a function's head that is not part of it, or that hides its kind.
LABEL = re.compile(r"\s*(?:(?:public|private|protected)\s*:\s*)*")
ATTRIBUTE = re.compile(r"\b(alignas|__attribute__)\s*\([^{}]*?\)+")
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^()=]*$")


def matching_braces(code):
    """Maps the offset of each { to that of its }. Leaves out unbalanced ones."""
    pairs, open_braces = {}, []
    for match in re.finditer(r"[{}]", code):
        if match.group() == "{":
            open_braces.append(match.start())
        elif open_braces:
            pairs[open_braces.pop()] = match.start()
    return pairs


def functions(text):
    """(first line, last line, head) of each function body outside other functions."""
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()),
                  cpp.code_of(text), flags=re.MULTILINE)
    pairs = matching_braces(code)
    at = head_at = 0
    while True:
        mark = re.compile(r"[{};]").search(code, at)
        if not mark:
            return
        at = mark.end()
        if mark.group() != "{" or mark.start() not in pairs:
            head_at = at
            continue
        head, end = code[head_at:mark.start()].strip(), pairs[mark.start()]
        if SCOPE.search(ATTRIBUTE.sub("", head)):
            head_at = at  # look inside
            continue
        at = end + 1
        after = code[at:].lstrip()[:1]
        if after in (",", "{") or (after in (")", ";") and "(" not in head):
            continue  # a braced initialiser: the head continues after it
        if "(" in head:
            first = LABEL.match(code, head_at).end()
            yield cpp.line_of(code, first), cpp.line_of(code, end), head
        head_at = at


def faults_of(root):
    faults = []
    for path in cpp.files_below(root, ".h", ".cc", ".ts", ".py", ".sh", ".cmake", "CMakeLists.txt"):
        text = cpp.read(root, path)
        lines = text.count("\n")
        if lines > FILE_LINES_MAX:
            faults.append(f"{path}:{lines}: {lines} lines, more than {FILE_LINES_MAX}")
        if path.endswith((".h", ".cc")):
            for first, last, head in functions(text):
                if last - first + 1 > FUNCTION_LINES_MAX:
                    name = re.sub(r"\s+", " ", head)[:60]
                    faults.append(f"{path}:{first}: {last - first + 1} lines, more than "
                                  f"{FUNCTION_LINES_MAX}: {name}")
    return faults


if __name__ == "__main__":
    cpp.report("lengths", faults_of(cpp.root_argument()))
