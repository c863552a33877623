#!/usr/bin/env python3
"""Finds C++ constructs that this repository does not use.

    tools/checks/habits.py [ROOT]

Two statements joined by a comma, a ?: within another or in place of an if, a case that falls through, and a `default:`
that keeps the compiler from naming a forgotten enumerator. Also second implementations of shared
functions: parsing numbers, joining text, hexadecimal digits, hashes, forks. In tests, too: comment
dividers on two lines.
"""

import re

import cpp

# Known exceptions, by habit. Do not add any.
NOT_YET = {
    "choice": ("common/id/text_form.h",),
    "comma": ("common/base/units.h",),
}

# Shared functions: name, regex of a second implementation, what to use, permitted files. Comments are
# not searched.
ONCE = (
    ("from_chars", r"\bfrom_chars\b", "ParseNumber of common/base/parse.h",
     ("common/base/parse.h",)),
    ("sum", r"\+=?\s*std::to_string\b|\bstd::to_string\((?:[^()]|\([^()]*\))*\)\s*\+(?!\+)",
     "Cat of common/base/cat.h", ()),
    ("hex", r'"0123456789([aA][bB][cC][dD][eE][fF])+"', "common/base/hex.h", ("common/base/hex.cc",)),
    ("fnv", r"(?i)\b0x0*100000001b3\b|\b0xcbf29ce484222325\b", "common/base/fnv.h",
     ("common/base/fnv.h",)),
    ("getpid", r"\bgetpid\s*\(", "ForkSentinel of common/base/fork.h; a pid is only a name",
     ("registry/dir/dir_witness.cc", "client/source/list_cache.cc", "server/node/embedded.cc",
      "server/flags/options.cc")),
    ("fallthrough", r"\bfallthrough\b", "a case of its own", ()),
)

SPLIT_DIVIDER = re.compile(r"^// --- [^\n]*\n(?=// -{8,}$)", re.MULTILINE)
OPENING, CLOSING = "([{", ")]}"
LITERAL = re.compile(r'R"(?P<d>[^()\s\\]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
TEMPLATE = re.compile(r"<[^<>;(){}]*>")
LIST = re.compile(r"(?<=[(,{=])\s*\{[^{};]*\}")
HEAD = re.compile(r"^(?:(?:if|for|while|switch)\s*(?:constexpr\s*)?\(\)|else|do|case\b(?:[^:]|::)*:(?!:)|"
                  r"default\s*:|(?:public|private|protected)\s*:)\s*")
VALUE = re.compile(r"(?<![=!<>])=(?!=)|<<|\b(?:co_)?(?:return|yield)\b|\bthrow\b")
TWO_WORDS = re.compile(r"[\w\]>*&]\s+[*&]*\w")
ACTS = re.compile(r"[()=]|\+\+|--")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def without_comments(text):
    """`text` with comments, but not literals, replaced by blanks."""
    return re.sub(f"{LITERAL.pattern}|{COMMENT.pattern}", lambda m:
                  blank(m) if m.group().startswith("/") else m.group(), text, flags=re.DOTALL)


def nested_choices(code):
    """Offsets of each ? within an operand of another ?."""
    open_choices = [0]  # for each open bracket: number of ? since the last separator
    for mark in re.finditer(r"[()\[\]{};,?]", code):
        sign = mark.group()
        if sign in OPENING:
            open_choices.append(0)
        elif sign in CLOSING:
            if len(open_choices) > 1:
                open_choices.pop()
            if sign == "}":
                open_choices[-1] = 0
        elif sign in ";,":
            open_choices[-1] = 0
        else:
            if any(open_choices):
                yield mark.start()
            open_choices[-1] += 1


def statements(code):
    """(offset, text) of each statement that ends in a semicolon, without the contents of brackets."""
    depth, text, begin = 0, "", 0
    for at, sign in enumerate(code):
        if sign in "{}" or sign == ";" and depth == 0:
            if sign == ";":
                yield begin, text
            depth, text, begin = 0, "", at + 1
            continue
        if sign in ")]":
            depth = max(0, depth - 1)
        if depth == 0:
            begin = at if not text.strip() else begin
            text = (text if text.strip() else "") + sign
        if sign in "([":
            depth += 1


def branches(code):
    """Offsets of statements that use a ?: in place of an if, because they do not use its value."""
    for offset, text in statements(code):
        while HEAD.match(text):
            text = HEAD.sub("", text, count=1)
        if "?" in text and not VALUE.search(text.split("?")[0]):
            yield offset


def comma_statements(code):
    """Offsets of statements that join two by a comma."""
    while LIST.search(code):
        code = LIST.sub(blank, code)
    for offset, text in statements(code):
        text = " ".join(text.split())
        while HEAD.match(text):
            text = HEAD.sub("", text, count=1)
        while TEMPLATE.search(text):
            text = TEMPLATE.sub("", text)
        if "," not in text or "<" in text:
            continue
        first = text.split(",")[0].strip()
        leaves = re.match(r"(?:co_)?(?:return|yield)\b", first)
        if leaves or ACTS.search(first) and not TWO_WORDS.search(first.split("=")[0].strip()):
            yield offset


def blind_switches(code):
    """Offsets of each `default:` beside cases of Firn's own enumerators."""
    bodies = []
    for mark in re.finditer(r"\bswitch\b|[{}]|\bcase\s+[\w:]*\bk[A-Z]\w*\s*:|\bdefault\s*:", code):
        sign = mark.group()
        if sign == "{":
            bodies.append([False, None])
        elif sign == "}":
            if bodies:
                ours, default = bodies.pop()
                if ours and default is not None:
                    yield default
        elif bodies and sign.startswith("case"):
            bodies[-1][0] = True
        elif bodies and sign.startswith("default"):
            bodies[-1][1] = mark.start()


SHAPES = (
    ("choice", nested_choices, "a ?: within another"),
    ("branch", branches, "a ?: in place of an if"),
    ("comma", comma_statements, "two statements joined by a comma"),
    ("default", blind_switches, "a default: keeps the compiler from naming a forgotten enumerator"),
)


def excused(habit, path):
    return any(path == place or path.startswith(place + "/") for place in NOT_YET.get(habit, ()))


def faults_of(root):
    faults = []
    for path in cpp.files_below(root, ".h", ".cc"):
        text = cpp.read(root, path)
        faults += [f"{path}:{cpp.line_of(text, m.start())}: a divider on two lines"
                   for m in SPLIT_DIVIDER.finditer(text)]
        if path.startswith(("tests/", "tools/bench/")):
            continue
        plain = without_comments(text)
        for habit, regex, instead, places in ONCE:
            if path in places or excused(habit, path):
                continue
            faults += [f"{path}:{cpp.line_of(plain, m.start())}: {habit}: use {instead}"
                       for m in re.finditer(regex, plain)]
        code = DIRECTIVE.sub(blank, cpp.code_of(text))
        for habit, find, sentence in SHAPES:
            if not excused(habit, path):
                faults += [f"{path}:{cpp.line_of(code, offset)}: {sentence}"
                           for offset in find(code)]
    return faults


if __name__ == "__main__":
    cpp.report("habits", faults_of(cpp.root_argument()))
