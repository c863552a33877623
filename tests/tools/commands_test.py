#!/usr/bin/env python3
"""tools/checks/commands.py catches a command that a source assembles itself, and a row that no test pastes.

    commands_test.py ROOT
"""

import os
import unittest

import checks_test  # finds the checks
import commands

HEADER = """enum class PrintedCommand { kRestore };
CommandTemplate{PrintedCommand::kRestore, "firn restore"},
"""
PASTED = "Paste(\n    PrintedCommand::kRestore, command);\n"


class CommandsTest(checks_test.Tree):
    def setUp(self):
        super().setUp()
        self.write(commands.TABLE, HEADER)
        self.write("tests/tools/paste_test.cc", PASTED)

    def faults(self, line, path="server/x.cc"):
        self.write(path, line + "\n")
        faults = commands.faults_of(self.root)
        os.remove(os.path.join(self.root, path))
        return faults

    def test_a_fault_is_an_exit_code(self):
        self.assertEqual(self.exit_code("commands"), 0)
        self.write("server/x.cc", 'f("run firn audit");\n')
        self.assertEqual(self.exit_code("commands"), 1)

    def test_catches_a_command_in_a_literal(self):
        for line in ('return "; run firn restore";', 'Cat("run firn "\n    "tags set ", tag);',
                     'constexpr char kHelp[] = "see `firn servers`";'):
            self.assertEqual(len(self.faults(line)), 1, line)

    def test_help_and_comments_and_programs_pass(self):
        for line in ('DEFINE_string(x, "", "As firn init sets it.");', '// run firn restore',
                     '.details =\n    "Example: firn compose time=1\\n"', '"firn init: waiting "',
                     '"firn-server"', '"was permanently retired by firn restore"'):
            self.assertEqual(self.faults(line), [], line)

    def test_catches_a_row_that_no_test_pastes(self):
        self.write("tests/tools/paste_test.cc", "// Paste(PrintedCommand::kInit\n")
        self.assertIn("kRestore", commands.faults_of(self.root)[0])

    def test_catches_an_enumerator_without_a_row(self):
        self.write(commands.TABLE, HEADER.replace("{ kRestore }", "{ kRestore, kInit }"))
        self.assertIn("kInit", commands.faults_of(self.root)[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
