"""Reads programs' help: the verbs and flags of firn, the flags of firn-server."""

import re
import subprocess
from collections import namedtuple
from xml.etree import ElementTree

Flag = namedtuple("Flag", "name value meaning default")
Verb = namedtuple("Verb", "words arguments summary details flags below")


def said(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True).stdout


def server_flags(program):
    """Returns the server's own flags, and gflags' own that read values from elsewhere."""
    flags = []
    for element in ElementTree.fromstring(said(program, "--helpxml")).iter("flag"):
        at = {child.tag: child.text or "" for child in element}
        if "/server/" in at["file"] or at["name"] in ("flagfile", "fromenv", "tryfromenv"):
            flags.append(Flag(at["name"], "" if at["type"] == "bool" else "=" + at["type"],
                              " ".join(at["meaning"].split()), at["default"]))
    return sorted(flags)


def sections(text):
    """The help of a verb, by heading. The text above the first heading has the key ""."""
    found, heading = {"": []}, ""
    for line in text.splitlines():
        if re.match(r"(Verbs|Flags|Exit codes)\b.*:", line):
            heading = line.split()[0].rstrip(":")
            found[heading] = [line] if heading == "Exit" else []
        else:
            found[heading].append(line)
    return found


def flags_of(lines):
    """The flags of a help text: `  --name=...`, then the meaning, which may continue in indented lines."""
    for part in re.split(r"^  --", "\n".join(lines), flags=re.MULTILINE)[1:]:
        name, meaning = " ".join(part.split()).split(" ", 1)
        default = re.search(r" \(([^()]*)\)$", meaning) if name.endswith("=...") else None
        yield Flag(name.removesuffix("=..."), "", meaning[:default.start()] if default else meaning,
                   default[1] if default else "")


def verb_tree(program, words=()):
    """The verb that `words` name, and all below it."""
    parts = sections(said(program, *words, "--help"))
    head, *details = parts[""]
    called, _, summary = head.partition(": ")
    below = [re.match(r"  (\S+)", line)[1] for line in parts.get("Verbs", ()) if line.strip()]
    return Verb(words, called.split()[1 + len(words):], summary, "\n".join(details).strip(),
                list(flags_of(parts.get("Flags", ()))),
                [verb_tree(program, (*words, name)) for name in below])


def all_verbs(verb):
    yield verb
    for below in verb.below:
        yield from all_verbs(below)


def exit_codes(program):
    return [part.strip() for part in " ".join(sections(said(program, "--help"))["Exit"])
            .removeprefix("Exit codes:").rstrip(" .").split(";")]
