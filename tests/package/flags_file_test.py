"""Tests that the page server/FLAGS.md has every flag of `firn-server --help`, in its groups and with its words,
and that the server accepts the packaged /etc/firn/firn-server.flags.

    flags_file_test.py BIN ROOT
    flags_file_test.py BIN ROOT page    # rewrites the page's tables
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

BIN, ROOT = (os.path.abspath(path) for path in sys.argv[1:3])
SERVER = f"{BIN}/firn-server"
FILE = f"{ROOT}/tools/package/firn-server.flags"
PAGE = f"{ROOT}/server/FLAGS.md"
# Flags that the page does not list.
LEFT_OUT = "General"


def help_groups():
    """{group: [(flag, words, default)]} of the help."""
    text = subprocess.run([SERVER, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
    groups, flags = {}, None
    for line in text.splitlines():
        heading, flag = re.match(r"(\S.*):$", line), re.match(r"  --(\w+)(?:=\.\.\.)?\s*(.*)$", line)
        if heading:
            flags = groups.setdefault(heading[1], [])
        elif flag and flags is not None:
            flags.append([flag[1], flag[2]])
        elif flags and line.startswith("      "):
            flags[-1][1] = f"{flags[-1][1]} {line.strip()}".strip()
    del groups[LEFT_OUT]
    return {group: [(name, *re.fullmatch(r"(.*?)(?: \(([^()]*)\))?", words).groups()) for name, words in flags]
            for group, flags in groups.items()}


def as_page(words):
    """Text for a person; only code keeps its <."""
    return "`".join(part if i % 2 else part.replace("<", "&lt;") for i, part in enumerate(words.split("`")))


def page_tables(groups):
    """The groups of the help as tables of the page."""
    return "".join(f"\n## {group}\n\n| flag | default | meaning, and when to change it |\n|---|---|---|\n" +
                   "".join(f"| `{name}` | {f'`{default}`' if default else ''} | {as_page(words)} |\n"
                           for name, words, default in flags)
                   for group, flags in groups.items())


def page_parts():
    """The page's text before its tables, and the tables."""
    with open(PAGE, encoding="utf-8") as file:
        head, group, tables = file.read().partition("\n## ")
    return head, group + tables


class FlagsFileTest(unittest.TestCase):
    def test_the_page_has_the_groups_and_flags_of_the_help(self):
        self.assertEqual(page_parts()[1], page_tables(help_groups()), "write it anew by: flags_file_test.py BIN ROOT page")

    def test_the_server_accepts_the_file(self):
        with tempfile.TemporaryDirectory(prefix="firn-flags-") as folder:
            with open(FILE, encoding="utf-8") as file:
                text = file.read().replace("/var/lib/firn", folder).replace("/run/firn", folder)
            path = os.path.join(folder, "flags")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            checked = subprocess.run([SERVER, f"--flagfile={path}", "--check_config"], check=False, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(checked.returncode, 0, checked.stdout)
            # Every flag of the file exists, also those that are not set.
            names = re.findall(r"(?m)^#?--(\w+)", text)
            known = subprocess.run([SERVER, "--helpfull"], check=False, text=True, stdout=subprocess.PIPE).stdout
            self.assertEqual([name for name in names if not re.search(rf"-{name}\b", known)], [])


if __name__ == "__main__":
    if sys.argv[3:] == ["page"]:
        text = page_parts()[0] + page_tables(help_groups())
        with open(PAGE, "w", encoding="utf-8") as page:
            page.write(text)
        sys.exit()
    unittest.main(argv=sys.argv[:1], verbosity=2)
