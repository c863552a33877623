#!/usr/bin/env python3
"""Checks comments, messages and pages for wordings that CONTRIBUTING.md rules out.

    tools/checks/prose.py [ROOT]
    tools/checks/prose.py --list [ROOT] [PREFIX]    prints each place below PREFIX

The tree may contain at most ALLOWED places. The number only goes down: it counts text that predates the rules, and
the few places where the wording is right.
"""

import re
import sys

import cpp

WORDINGS = (
    ("an indefinite person", r"\b(?:whoever|nobody|somebody)\b"),
    ("an archaic word", r"\b(?:anew|amiss|of late|in vain|mend(?:s|ed|ing)?|to be had)\b"),
    ("go on, go by", r"\b(?:goes|go|going|gone|went) (?:on|by)"
                     r"(?: (?:with|without|above|below|inside|from|at)\b|[.,;:)]|$)"),
    ("is no, for is not a", r"(?<!there )\b(?:is|are|was|were) no (?!longer|more|such|other)[a-z]+\b"),
    ("a passive of look, go or tell",
     r"\b(?:is|are|was|were|be|been) (?:looked at|gone by|gone on|told(?! to\b))\b"),
    ("what is said or told", r"\bwhat (?:is|was|are) (?:said|told|not there)\b"),
    ("a sentence without a concrete subject", r"(?:^|[.] )(?:Who|One that|That which|Those that) "),
)
PATTERNS = [(what, re.compile(pattern, re.IGNORECASE)) for what, pattern in WORDINGS]

ALLOWED = 125

PAGES = (".md", ".html")
SOURCES = (".h", ".cc", ".py", ".go", ".java", ".ts", ".thrift", ".sh", ".yml", ".yaml", ".service", ".flags")
COMMENT = r"(?:[ \t]*(?://|#)[^\n]*\n?)+|/\*.*?\*/|\"\"\".*?\"\"\""
LITERAL = r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*'
TEXT = re.compile(f"{COMMENT}|{LITERAL}", re.DOTALL)
MARK = re.compile(r'^[ \t]*(?://+|#+|\*)[ \t]?|"\s*\n\s*"', re.MULTILINE)
TEST_NAME = re.compile(r"\bTEST(?:_[FP])?\(\s*\w+,\s*(\w+)\)")


def pieces(path, text):
    """(offset, text) of each comment, literal, test name or paragraph in the file."""
    if path.endswith(PAGES):
        for paragraph in re.finditer(r"(?:[^\n]+\n?)+", text):
            yield paragraph.start(), paragraph.group()
        return
    for found in TEXT.finditer(text):
        yield found.start(), MARK.sub(" ", found.group())
    for found in TEST_NAME.finditer(text):
        yield found.start(), re.sub(r"(?<!^)(?=[A-Z])", " ", found.group(1))


def places(root):
    """(path, line, what, excerpt) of each wording in the tree."""
    for path in cpp.files_below(root, *PAGES, *SOURCES):
        if "corpus/" in path or path.endswith("checks/prose.py"):
            continue
        text = cpp.read(root, path)
        for offset, piece in pieces(path, text):
            joined = re.sub(r"\s+", " ", piece).strip()
            for what, pattern in PATTERNS:
                for hit in pattern.finditer(joined):
                    excerpt = joined[max(0, hit.start() - 40):hit.end() + 40]
                    yield path, cpp.line_of(text, offset), what, excerpt


def faults_of(root, allowed=ALLOWED):
    found = list(places(root))
    if len(found) <= allowed:
        return []
    return [f"{path}:{line}: {what}: ...{excerpt}..." for path, line, what, excerpt in found] + [
        f"{len(found)} places, {allowed} allowed; see the rules in CONTRIBUTING.md"]


def main():
    if "--list" in sys.argv:
        sys.argv.remove("--list")
        prefix = sys.argv.pop(2) if len(sys.argv) > 2 else ""
        for path, line, what, excerpt in places(cpp.root_argument()):
            if path.startswith(prefix):
                print(f"{path}:{line}: {what}: ...{excerpt}...")
        return
    cpp.report("prose", faults_of(cpp.root_argument()))


if __name__ == "__main__":
    main()
