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
        self.rooms = {}    # its first path -> what its files may include
        self.places = {}   # each path -> the first path of its room
        self.once = []     # (room, file)
        self.vendors = []  # (header pattern, paths)
        self.calls = []    # (name, regex, paths)
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                self._add(number, line)

    def _add(self, number, line):
        left, arrow, right = (line + " ").rpartition(" -> ")
        words, paths = left.split(), right.split()
        if not arrow or len(words) < 2 or not paths and words[0] != "room":
            raise SystemExit(f"tools/layers.txt:{number}: not a rule: {line}")
        if words[0] == "room":
            self.rooms[words[1]] = paths
            self.places.update((path, words[1]) for path in words[1:])
        elif words[0] == "once":
            self.once.append((words[1], paths[0]))
        elif words[0] == "vendor":
            self.vendors += [(header, paths) for header in words[1:]]
        elif words[0] == "call":
            self.calls.append((words[1], re.compile(left.strip().split(None, 2)[2]), paths))
        else:
            raise SystemExit(f"tools/layers.txt:{number}: no such rule: {words[0]}")

    def room_of(self, path):
        place = max((p for p in self.places if below(path, p)), key=len, default=None)
        return self.places.get(place)

    def may_include(self, room, header):
        of = self.room_of(header)
        return of == room or any(header.startswith(path) if path.endswith("/") else of == path
                                 for path in self.rooms[room])

    def arrows(self, room):
        """The other rooms that a room may include."""
        found = []
        for path in self.rooms[room]:
            found += [r for r in self.rooms if r == path or path.endswith("/") and
                      (r + "/").startswith(path)]
        return [r for r in found if r != room]

    def circle(self):
        """Rooms of which each may include the next, and the last the first; none when no such are."""
        done, way = set(), []

        def walk(room):
            if room in way:
                return way[way.index(room):] + [room]
            if room in done:
                return None
            way.append(room)
            for other in self.arrows(room):
                if found := walk(other):
                    return found
            done.add(way.pop())
            return None

        return next(filter(None, map(walk, self.rooms)), None)

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
        for room, paths in self.rules.rooms.items():
            for path in paths:
                if not path.endswith("/") and path not in self.rules.rooms:
                    self.fault("tools/layers.txt", 1, f"{room} points at {path}, which is no room")
        if circle := self.rules.circle():
            self.fault("tools/layers.txt", 1, "a circle: " + " -> ".join(circle))
        for path in cpp.files_below(self.root, ".h", ".cc"):
            text = cpp.read(self.root, path)
            room = self.rules.room_of(path)
            if room is None:
                self.fault(path, 1, "lies in no room of tools/layers.txt")
                continue
            for match in INCLUDE.finditer(text):
                line = cpp.line_of(text, match.start(match.lastindex))
                if match.group(1):
                    self.own(path, line, room, match.group(1))
                else:
                    self.foreign(path, line, match.group(2))
            self.calls(path, cpp.code_of(text))
        for (room, header), users in self.once_users.items():
            if len(users) > 1:
                self.fault(users[1], 1,
                           f"{header} is for one file of {room}, and {users[0]} has it")
        return self.faults

    def own(self, path, line, room, header):
        for rule in self.once_users:
            if rule == (room, header):
                self.once_users[rule].append(path)
                return
        if not self.rules.may_include(room, header):
            self.fault(path, line, f'{room} may not include "{header}"')
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
