#!/usr/bin/env python3
"""tools/checks/package_versions.py passes the unchanged tree, and catches another version in any of its files.

    package_versions_test.py ROOT
"""

import os
import re
import shutil
import unittest

import checks_test  # finds the checks
import cpp
import package_versions as check


class VersionsTest(checks_test.Folder):
    def setUp(self):
        super().setUp()
        for path in ("CMakeLists.txt", *check.PLACES):
            os.makedirs(os.path.join(self.root, os.path.dirname(path)), exist_ok=True)
            shutil.copy(os.path.join(checks_test.ROOT, path), os.path.join(self.root, path))

    def test_one_version_everywhere(self):
        self.assertEqual([], list(check.faults_of(self.root)))

    def test_catches_another_version_in_each_file(self):
        for path, pattern in check.PLACES.items():
            text = cpp.read(self.root, path)
            for found in list(re.finditer(pattern, text, re.MULTILINE))[:1 if pattern == check.CHANGES else None]:
                self.write(path, text[:found.start(1)] + "9.9" + text[found.end(1):])
                self.assertRegex("\n".join(check.faults_of(self.root)), f"^{path}: has version 9.9, not [0-9.]+$")
            self.write(path, re.sub(pattern, "", text, flags=re.MULTILINE))
            self.assertEqual([f"{path}: has no version"], list(check.faults_of(self.root)))
            self.write(path, text)

    def test_catches_a_new_version_that_reached_no_file(self):
        text = cpp.read(self.root, "CMakeLists.txt")
        self.write("CMakeLists.txt", re.sub(check.PROJECT, "project(firn VERSION 9.9.9", text, flags=re.MULTILINE))
        self.assertEqual(len(check.PLACES), len(list(check.faults_of(self.root))))


if __name__ == "__main__":
    unittest.main(verbosity=2)
