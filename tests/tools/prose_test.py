#!/usr/bin/env python3
"""tools/checks/prose.py finds each kind of wording, in each kind of text, and passes correct English.

    prose_test.py ROOT
"""

import unittest

import checks_test  # finds the checks
import prose


class ProseTest(checks_test.Folder):
    def found(self, path, text):
        self.write(path, text)
        return [what for name, _, what, _ in prose.places(self.root) if name == path]

    def test_passes_a_clean_tree(self):
        self.write("common/a.md", "The client retries.\n")
        self.assertEqual(prose.faults_of(self.root, allowed=0), [])

    def test_reads_comments_literals_pages_and_test_names(self):
        wording = ["an indefinite person"]
        self.assertEqual(self.found("common/a.h", "// Whoever calls this must hold the lock.\n"), wording)
        self.assertEqual(self.found("common/a.cc", 'Fault("nobody "\n      "answers");\n'), wording)
        self.assertEqual(self.found("common/a.md", "Somebody calls.\n"), wording)
        self.assertEqual(self.found("tests/a.cc", "TEST(Claim, NobodyAnswers) {}\n"), wording)

    def test_joins_lines(self):
        self.assertEqual(self.found("common/a.h", "// The call goes\n// on with another server.\n"),
                         ["go on, go by"])

    def test_ignores_code_and_correct_english(self):
        self.assertEqual(self.found("common/a.cc", "int nobody = 0;\n"), [])
        self.assertEqual(self.found("common/a.md", "There is no server a. It is no longer used.\n"), [])

    def test_fails_above_the_allowance(self):
        self.write("common/a.md", "Nobody calls. Somebody calls.\n")
        self.assertEqual(prose.faults_of(self.root, allowed=2), [])
        self.assertEqual(len(prose.faults_of(self.root, allowed=1)), 3)


if __name__ == "__main__":
    unittest.main()
