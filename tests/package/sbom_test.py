"""Tests tools/package/sbom.py on this machine's packages: spdx-tools finds no fault in its document, which
lists exactly the installed packages.

    sbom_test.py ROOT FOLDER     FOLDER keeps spdx-tools for the next run
"""

import copy
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import unittest

from pinned import import_from

ROOT, FOLDER = (os.path.abspath(path) for path in sys.argv[1:3])
SPDX = "spdx-tools==0.8.5"
SBOM = os.path.join(ROOT, "tools/package/sbom.py")


def sbom(*arguments, lines=None, epoch="1700000000"):
    return subprocess.run([SBOM, *arguments], input=lines, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**os.environ, "SOURCE_DATE_EPOCH": epoch})


def installed():
    return subprocess.run(["dpkg-query", "-W", "-f", sbom("--format").stdout.strip()], check=True,
                          text=True, stdout=subprocess.PIPE).stdout


class SbomTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import_from(FOLDER, SPDX)
        cls.lines = installed()
        cls.made = json.loads(sbom("firn:0.1.0", lines=cls.lines).stdout)

    def faults(self, document):
        from spdx_tools.spdx.parser.parse_anything import parse_file
        from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
        with tempfile.NamedTemporaryFile("w", suffix=".spdx.json") as file:
            json.dump(document, file)
            file.flush()
            return validate_full_spdx_document(parse_file(file.name), "SPDX-2.3")

    def test_document_is_valid(self):
        self.assertEqual([], self.faults(self.made))
        wrong = copy.deepcopy(self.made)
        wrong["packages"][1]["externalRefs"][0]["referenceLocator"] = "not a locator"
        self.assertEqual(1, len(self.faults(wrong)))

    def test_lists_the_installed_packages(self):
        image, *packages = self.made["packages"]
        self.assertEqual("firn:0.1.0", image["name"])
        rows = [line.split("\t") for line in self.lines.splitlines() if line.startswith("installed\t")]
        self.assertEqual(sorted((row[1], row[2]) for row in rows),
                         sorted((part["name"], part["versionInfo"]) for part in packages))
        contained = [relation["relatedSpdxElement"] for relation in self.made["relationships"]
                     if relation["relationshipType"] == "CONTAINS"]
        self.assertEqual([part["SPDXID"] for part in packages], contained)
        self.assertEqual(len(contained), len(set(contained)))

    def test_omits_removed_packages_and_knows_its_own(self):
        lines = ("config-files\tgone\t1\tall\tDebian\tgone\t1\n"
                 "installed\tfirn-server\t0.1.0\tamd64\tFirn <firn@localhost>\tfirn-server\t0.1.0\n"
                 "installed\tlibstdc++6\t1:12~2\tamd64\tDebian GCC <gcc@example>\tgcc-12\t12.2.0-14\n")
        made = json.loads(sbom("firn", lines=lines).stdout)
        _, firn, gcc = made["packages"]
        self.assertEqual("MIT", firn["licenseDeclared"])
        self.assertEqual("Organization: Debian GCC", gcc["supplier"])
        self.assertEqual("gcc-12 12.2.0-14", gcc["sourceInfo"])
        self.assertEqual("pkg:deb/debian/libstdc%2B%2B6@1%3A12~2?arch=amd64",
                         gcc["externalRefs"][0]["referenceLocator"])
        self.assertEqual([], self.faults(made))

    def test_depends_on_packages_name_and_time_only(self):
        shuffled = "".join(reversed(self.lines.splitlines(keepends=True)))
        self.assertEqual(self.made, json.loads(sbom("firn:0.1.0", lines=shuffled).stdout))
        for other in (sbom("firn:0.1.1", lines=self.lines),
                      sbom("firn:0.1.0", lines=self.lines, epoch="1700000001"),
                      sbom("firn:0.1.0", lines=self.lines.partition("\n")[2])):
            self.assertNotEqual(self.made["documentNamespace"],
                                json.loads(other.stdout)["documentNamespace"])

    def test_lists_published_files_with_their_checksums(self):
        made = json.loads(sbom("firn", SBOM, lines=self.lines).stdout)
        file = made["packages"][-1]
        with open(SBOM, "rb") as text:
            digest = hashlib.sha256(text.read()).hexdigest()
        self.assertEqual(("sbom.py", [{"algorithm": "SHA256", "checksumValue": digest}]),
                         (file["name"], file["checksums"]))
        self.assertIn({"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                       "relatedSpdxElement": file["SPDXID"]}, made["relationships"])
        self.assertEqual([], self.faults(made))

    def test_refuses_other_input(self):
        for arguments, lines, code in ((("firn",), "", 2), ((), self.lines, 2), (("firn",), "a\tb\n", 1),
                                       (("firn", "no-such-file"), self.lines, 1)):
            said = sbom(*arguments, lines=lines)
            self.assertEqual(code, said.returncode)
            self.assertEqual("", said.stdout)
            self.assertTrue(said.stderr.startswith("sbom.py: "), said.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
