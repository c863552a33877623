#!/usr/bin/env python3
"""Checks the rules of tools/layers.txt: includes between rooms, use of vendors' headers and of
restricted calls. Also checks that the diagram in ARCHITECTURE.md shows these rules.

    tools/checks/layers.py [ROOT]
"""

import fnmatch
import os
import re

import cpp

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


PICTURE = "ARCHITECTURE.md"


def below(path, pattern):
    """Whether `path` is `pattern`, lies below it, or matches it."""
    return path == pattern or path.startswith(pattern + "/") or fnmatch.fnmatchcase(path, pattern)


class Rules:
    def __init__(self, text):
        self.rooms = {}    # its first path -> includes that its files may have
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

    def all_arrows(self):
        """Pairs of a room and another one that it, or one of its files, may include."""
        once = [(room, self.room_of(header)) for room, header in self.once]
        return [(room, other) for room in self.rooms for other in self.arrows(room)] + once

    def circle(self):
        """A cycle of rooms, each of which may include the next; empty if there is none."""
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
        """The paths that may include a vendor's header; None if no rule names the header."""
        matching = [(p, paths) for p, paths in self.vendors if fnmatch.fnmatchcase(header, p)]
        return max(matching, key=lambda rule: len(rule[0]))[1] if matching else None


class Picture:
    """The first flowchart of a page: boxes of folders ("folder: purpose") and the arrows between
    them. Other boxes are not checked."""

    FLOWCHART = re.compile(r"^```mermaid\nflowchart\b.*?^```", re.MULTILINE | re.DOTALL)
    BOX = re.compile(r'(\w+)\["(?:([^":]*): )?[^"]*"\]')
    ARROW = re.compile(r'\s+(?:-->|-\.(?:\s*"[^"]*"\s*\.)?->)\s+')

    def __init__(self, page):
        chart = self.FLOWCHART.search(page)
        self.folders, self.arrows = {}, set()  # of a box its folder; pairs of boxes
        for line in chart.group().splitlines()[2:-1] if chart else []:
            self.folders.update((box, folder) for box, folder in self.BOX.findall(line) if folder)
            ends = [re.findall(r"\w+", end) for end in self.ARROW.split(self.BOX.sub(r"\1", line))]
            for froms, tos in zip(ends, ends[1:]):
                self.arrows.update((a, b) for a in froms for b in tos)

    def box_of(self, path):
        """The box that contains a room; None if the diagram does not show it."""
        boxes = [b for b, folder in self.folders.items() if below(path, folder)]
        return max(boxes, key=lambda box: len(self.folders[box]), default=None)

    def leads(self, box, other):
        """Whether arrows lead from one box to the other, directly or through others."""
        reached, new = set(), {box}
        while new:
            reached |= new
            new = {b for a, b in self.arrows if a in new} - reached
        return other in reached

    def faults(self, arrows):
        """Differences between the diagram and `arrows`, which are all arrows between rooms."""
        real = {(self.box_of(a), self.box_of(b)): (a, b) for a, b in arrows}
        for (box, other), (room, included) in real.items():
            if box and other and not self.leads(box, other):
                yield f"no arrows lead from {box} to {other}, though {room} may include {included}"
        for box, other in sorted(self.arrows):
            folders = box in self.folders and other in self.folders
            if folders and (box, other) not in real:
                yield f"{box} has an arrow to {other}, but may not include any room of it"


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
                    self.fault("tools/layers.txt", 1, f"{room} points at {path}, which is not a room")
        if circle := self.rules.circle():
            self.fault("tools/layers.txt", 1, "a cycle: " + " -> ".join(circle))
        if os.path.isfile(os.path.join(self.root, PICTURE)):
            picture = Picture(cpp.read(self.root, PICTURE))
            for sentence in picture.faults(self.rules.all_arrows()):
                self.fault(PICTURE, 1, sentence)
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
                           f"only one file of {room} may include {header}, and {users[0]} does")
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
                self.fault(path, line, f"<{header}> is not listed in tools/layers.txt")
        elif not any(below(path, allowed) for allowed in paths):
            self.fault(path, line, f"<{header}> is permitted only in {' '.join(paths)}")

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
