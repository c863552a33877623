#!/usr/bin/env python3
"""Checks tools/layers.txt: who includes whom, where vendors' headers and banned calls stand.

    tools/checks/layers.py [ROOT]
"""

import fnmatch
import os
import re

import cpp

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


def below(path, pattern):
    """Whether `path` is `pattern`, lies below it, or matches it."""
    return path == pattern or path.startswith(pattern + "/") or fnmatch.fnmatchcase(path, pattern)


class Rules:
    def __init__(self, text):
        self.layers = {}   # path -> what its files may include
        self.once = []     # (layer, file)
        self.vendors = []  # (header pattern, paths)
        self.calls = []    # (name, regex, paths)
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                self._add(number, line)

    def _add(self, number, line):
        left, arrow, right = line.rpartition(" -> ")
        words, paths = left.split(), right.split()
        if not arrow or len(words) < 2 or not paths:
            raise SystemExit(f"tools/layers.txt:{number}: not a rule: {line}")
        if words[0] == "layer":
            self.layers[words[1]] = paths
        elif words[0] == "once":
            self.once.append((words[1], paths[0]))
        elif words[0] == "vendor":
            self.vendors += [(header, paths) for header in words[1:]]
        elif words[0] == "call":
            self.calls.append((words[1], re.compile(left.strip().split(None, 2)[2]), paths))
        else:
            raise SystemExit(f"tools/layers.txt:{number}: no such rule: {words[0]}")

    def layer_of(self, path):
        return max((l for l in self.layers if below(path, l)), key=len, default=None)

    def vendor_paths(self, header):
        """Who may include a foreign header; None when no rule speaks of it."""
        matching = [(p, paths) for p, paths in self.vendors if fnmatch.fnmatchcase(header, p)]
        return max(matching, key=lambda rule: len(rule[0]))[1] if matching else None


class Checker:
    def __init__(self, root, rules):
        self.root, self.rules, self.faults = root, rules, []
        self.once_users = {rule: [] for rule in rules.once}

    def fault(self, path, line, sentence):
        self.faults.append(f"{path}:{line}: {sentence}")

    def check(self):
        for path in cpp.files_below(self.root, ".h", ".cc"):
            text = cpp.read(self.root, path)
            layer = self.rules.layer_of(path)
            if layer is None:
                self.fault(path, 1, "lies in no layer of tools/layers.txt")
                continue
            for match in INCLUDE.finditer(text):
                line = cpp.line_of(text, match.start(match.lastindex))
                if match.group(1):
                    self.own(path, line, layer, match.group(1))
                else:
                    self.foreign(path, line, match.group(2))
            self.calls(path, cpp.code_of(text))
        for (layer, header), users in self.once_users.items():
            if len(users) > 1:
                self.fault(users[1], 1,
                           f"{header} is for one file of {layer}, and {users[0]} has it")
        return self.faults

    def own(self, path, line, layer, header):
        for rule in self.once_users:
            if rule == (layer, header):
                self.once_users[rule].append(path)
                return
        if not any(below(header, allowed) for allowed in self.rules.layers[layer]):
            self.fault(path, line, f'{layer} may not include "{header}"')
        elif not header.startswith("thrift/gen/") and not os.path.isfile(
                os.path.join(self.root, header)):
            self.fault(path, line, f'"{header}" is not named from the root of the repository')

    def foreign(self, path, line, header):
        paths = self.rules.vendor_paths(header)
        if paths is None:
            if "/" in header:
                self.fault(path, line, f"<{header}> is of no vendor in tools/layers.txt")
        elif not any(below(path, allowed) for allowed in paths):
            self.fault(path, line, f"<{header}> is only for {' '.join(paths)}")

    def calls(self, path, code):
        for name, regex, paths in self.rules.calls:
            if any(below(path, allowed) for allowed in paths):
                continue
            for match in regex.finditer(code):
                call = match.group().strip()
                self.fault(path, cpp.line_of(code, match.start()),
                           f"{name} call ({call}) outside {' '.join(paths)}")


if __name__ == "__main__":
    tree = cpp.root_argument()
    cpp.report("layers", Checker(tree, Rules(cpp.read(tree, "tools/layers.txt"))).check())
