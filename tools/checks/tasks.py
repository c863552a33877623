#!/usr/bin/env python3
"""Checks that coroutines use only forms that g++ 12 compiles correctly (common/task/task.h):
`co_await` only as `T x = co_await F(names);`, `co_await F(names);` or `co_return co_await F(names);`,
no lambda that is a coroutine, no task with a parameter by reference, no over-aligned local.

    tools/checks/tasks.py [ROOT]
"""

import re

import cpp
from lengths import matching_braces

NAME = r"&?[A-Za-z_]\w*(?:(?:\.|->)\w+)*"
CALL = rf"co_await\s+[A-Za-z_][\w:]*(?:(?:\.|->)\w+)*\(\s*(?:{NAME}(?:,\s*{NAME})*)?\s*\);"
FORM = re.compile(rf"(?:(?:const\s+)?[A-Za-z_][\w:<>,*&\s]*\s\w+\s=\s+|co_return\s+)?{CALL}")
LABEL = re.compile(r"\s*(?:(?:case\s[\w:]+|default|public|private|protected)\s*:(?!:)\s*)*")
LAMBDA = re.compile(r"\[[^][]*\]\s*(?:\([^{}]*\)\s*)?(?:mutable\s*|noexcept\s*)*(?:->[^{}()]*)?$")
TASK = re.compile(r"\bTask<(?:[^<>;()]|<(?:[^<>;()]|<[^<>;()]*>)*>)*>\s+[\w:]+\(")
BORROWED = re.compile(r"&|\b(?:string_view|span)\b")


def closing(code, start):
    """Offset after the parenthesis that closes the one at `start`."""
    depth = 0
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at + 1
    return len(code)


def without_condition(statement):
    """The statement after an if's condition: it may contain an await, the condition may not."""
    head = re.match(r"(?:else\s+)?if\s*(?=\()", statement)
    return statement[closing(statement, head.end()):].lstrip() if head else statement


def has_form(text, code, at):
    """Whether the statement around the await at `at` has a permitted form."""
    begin = max(code.rfind(mark, 0, at) for mark in ";{}") + 1
    end = code.find(";", at) + 1
    statement = code[begin:end]
    statement = without_condition(statement[LABEL.match(statement).end():])
    return FORM.fullmatch(statement) and '"' not in text[at:end]  # literals are blanked out


def in_lambda(code, at, pairs):
    for opening, end in pairs.items():
        if opening < at < end and LAMBDA.search(code[:opening].rstrip()):
            return True
    return False


def faults_in(path, text):
    code = cpp.code_of(text)
    if "Task<" not in code and "co_" not in code:
        return
    pairs = matching_braces(code)
    for match in re.finditer(r"(?<!operator )\bco_(?:await|return|yield)\b", code):
        line = cpp.line_of(code, match.start())
        if in_lambda(code, match.start(), pairs):
            yield f"{path}:{line}: a lambda is a coroutine"
        elif match.group() == "co_yield" or (match.group() == "co_await" and not
                                             has_form(text, code, match.start())):
            yield f"{path}:{line}: use `T x = co_await F(names);` or another permitted form"
    for match in TASK.finditer(code):
        parameters = code[match.end():closing(code, match.end() - 1)]
        while parameters != (outer := re.sub(r"<[^<>]*>", "", parameters)):
            parameters = outer
        if BORROWED.search(parameters):
            line = cpp.line_of(code, match.start())
            yield f"{path}:{line}: a task may outlive the object of a reference parameter"
    if "co_await" in code and (match := re.search(r"\balignas\b", code)):
        yield f"{path}:{cpp.line_of(code, match.start())}: an over-aligned object beside an await"


def faults_of(root):
    return [fault for path in cpp.files_below(root, ".h", ".cc")
            for fault in faults_in(path, cpp.read(root, path))]


if __name__ == "__main__":
    cpp.report("tasks", faults_of(cpp.root_argument()))
