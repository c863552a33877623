"""Tests that the runbook is complete: it has a section for each alert, each alarm in a server's log, and
each fault that `firn audit` may find, and no section for a message that no longer exists.

    runbook_test.py ROOT
"""

import glob
import os
import re
import sys
import unittest

import yaml

ROOT = sys.argv[1]
# Beginnings of statements with a message for operators.
FINDINGS = r"\b(?:Fault|Loss|Lose|Missing|findings\.(?:push_back|insert))\("
ALARMS = (r"\balarms_?\.push_back\(|\bTell\(ClaimEvent::Kind::kAlarm,|\{ClaimEvent::Kind::kAlarm,|"
          r"\balarm_\(|\bLogError\(|\bLogLine\(alarm|"
          r"\bIs\(finding, Verdict::k(?!Ours)")
# Statements that pass on the message of another statement, and the heading for it. None: the test finds
# the statement with the message itself.
HANDED_ON = {
    "void Fault(": None, "std::move(finding)": None, "std::string fault, Audit&": None,
    "std::move(fault)": None, "std::move(note)": None, "std::move(sentence)": None, "std::move(alarm)": None,
    "Loss(fault)": "A damaged node",
    "kAlarm, alarm)": None, "event.text": None, '"start_failed"': None, '": " + fault': None, '"store " << name': None,
    "UnguardedVersionFault(": "has version -1", "WhyFrozen(meta)": "the cluster is only partly created",
    "Loss(node.status()": "A damaged node", "read.status()": "A damaged node",
    "record.status()": "A damaged node", "cluster.status()": "A damaged node",
    "split.status()": "the layout cannot be read",
    "text.status()": "A file of the state folder", "hint.status()": "A file of the state folder",
    "found.status()": "A file of the state folder", "hint.message()": "A file of the state folder",
    "kAlarm, written.message()": "A file of the state folder",
    "grant_trouble_": "the grant file cannot be written", "reason_}": "the grant file cannot be written",
    "push_back(finding.reason)": "may be duplicated", "std::move(text)": "may be duplicated",
    "ClockTrouble(": "The clock of the registry disagrees",
    "report.clock_trouble": "The clock of the registry disagrees",
    "report.grant_trouble": "no grant file, ",
    "note->what": "numbers left, up to",
    "std::move(ahead)": "which is in the future: the registry's clock was wrong",
    "<< sentence": "was lost or went back", '" " + fault': "has seen the ledger of tag",
}
PARTS = ("**Means**", "**Do**", "**Do not**", "**Wait**")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def sites(pattern, *folders):
    """(file, code) of each statement that begins with the pattern."""
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(ROOT, folder, "**", "*.cc"), recursive=True)):
            code = re.sub(r"//[^\n]*", "", read(path))
            for match in re.finditer(pattern, code):
                yield os.path.relpath(path, ROOT), code[match.start():code.index(";\n", match.start())]


def words(code):
    return "|".join(re.findall(r'"((?:\\.|[^"\\])*)"', re.sub(r'"\s+"', "", code)))


class RunbookTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sections = re.split(r"^### ", read("tools/package/RUNBOOK.md"), flags=re.MULTILINE)[1:]
        cls.headings = [section.splitlines()[0] for section in cls.sections]
        cls.phrases = [p for heading in cls.headings for p in re.findall(r"`([^`]+)`", heading)]

    def covered(self, pattern, *folders):
        for file, code in sites(pattern, *folders):
            said = words(code)
            heads = [head for key, head in HANDED_ON.items() if key in code]
            with self.subTest(f"{file}: {' '.join(code.split())[:110]}"):
                for head in filter(None, heads):
                    self.assertTrue(any(head in heading for heading in self.headings), head)
                self.assertTrue(heads or any(phrase in said for phrase in self.phrases),
                                f"no section for: {said}")

    def test_alerts(self):
        alerts = [rule["alert"] for group in yaml.safe_load(read("tools/package/alerts.yml"))["groups"]
                  for rule in group["rules"]]
        self.assertEqual(alerts, [heading for heading in self.headings if heading.startswith("Firn")])

    def test_findings(self):
        self.covered(FINDINGS, "registry/operate")

    def test_alarms(self):
        self.covered(ALARMS, "registry/claim", "server")

    def test_each_section_has_all_parts(self):
        for section in self.sections:
            with self.subTest(section.splitlines()[0]):
                for part in PARTS:
                    self.assertIn(part, section)

    def test_the_page_of_logs_lists_every_event(self):
        named = {f"claim_{kind}" for kind in re.findall(r'return "(\w+)";', read(
            "registry/claim/claim_status.cc").split("ClaimEventName")[1]) if kind != "unknown"} | {"library"}
        for folder in ("server", "registry"):
            for path in glob.glob(f"{ROOT}/{folder}/**/*.cc", recursive=True):
                named.update(re.findall(r'\bLog(?:Info|Warning|Error|Line)\([^;"]*"([a-z_]+)"', read(path)))
        page = re.findall(r"^\| `([a-z_]+)` \| [a-z, ]+ \|", read("tools/package/LOGS.md").split("## Events")[1],
                          flags=re.MULTILINE)
        self.assertEqual(page, sorted(named))

    def test_every_quoted_message_exists(self):
        code = ""
        for folder in "registry", "server", "common/tag":
            for path in sorted(glob.glob(f"{ROOT}/{folder}/**/*.cc", recursive=True)):
                code += re.sub(r'"\s+"', "", read(path))
        for phrase in self.phrases:
            with self.subTest(phrase):
                self.assertTrue(phrase in code, "no such message")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
