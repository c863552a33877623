"""Tests the manual pages and completion: they contain the programs' whole help, and man and bash accept them.

    pages_test.py BUILD_TREE ROOT
"""

import os
import subprocess
import sys
import unittest

BUILD, ROOT = sys.argv[1:3]
sys.path.insert(0, os.path.join(ROOT, "tools/package"))
import program_help  # noqa: E402

MADE = os.path.join(BUILD, "tools/package")
FIRN, SERVER = (os.path.join(BUILD, "bin", name) for name in ("firn", "firn-server"))


def manual(page):
    """Returns the formatted page in one line; a warning of the typesetter fails the test."""
    done = subprocess.run(["man", "--warnings", "-l", os.path.join(MADE, page)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True,
                          env={**os.environ, "MANWIDTH": "1000", "LC_ALL": "C.UTF-8",
                               "MAN_KEEP_FORMATTING": ""})
    assert not done.stderr, done.stderr
    return " ".join(done.stdout.split())


def completed(program, *words):
    """Returns bash's completions of the last word."""
    script = ('source "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); '
              f'_{program.replace("-", "_")}_complete; printf "%s\\n" "${{COMPREPLY[@]}}"')
    return subprocess.run(["bash", "-c", script, "bash", os.path.join(MADE, program), program,
                           *words], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


class PagesTest(unittest.TestCase):
    def test_the_manual_lists_every_flag_of_the_server(self):
        page, flags = manual("firn-server.8"), program_help.server_flags(SERVER)
        self.assertGreater(len(flags), 50)
        for flag in flags:
            self.assertIn(f"--{flag.name}{flag.value} {flag.meaning}", page)

    def test_the_manual_lists_every_verb_and_its_flags(self):
        page, verbs = manual("firn.1"), list(program_help.all_verbs(program_help.verb_tree(FIRN)))
        self.assertIn(("tags", "create"), [verb.words for verb in verbs])
        for verb in verbs[1:]:
            at = page.index(" ".join(("firn", *verb.words, *verb.arguments)))
            for flag in verb.flags:
                at = page.index(f"--{flag.name} {flag.meaning}", at)
        for code in program_help.exit_codes(FIRN):
            self.assertIn(code, page)

    def test_verbs_are_completed(self):
        for verb in program_help.all_verbs(program_help.verb_tree(FIRN)):
            self.assertEqual([below.words[-1] for below in verb.below],
                             completed("firn", *verb.words, ""))
            self.assertEqual([f"--{flag.name}" for flag in verb.flags] + ["--help"],
                             completed("firn", *verb.words, "--"))
        self.assertEqual(["tags"], completed("firn", "--json", "ta"))

    def test_flags_of_the_server_are_completed(self):
        self.assertIn("--state_dir", completed("firn-server", "--embedded", "--st"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
