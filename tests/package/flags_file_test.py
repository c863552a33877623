"""Tests that the server accepts the packaged /etc/firn/firn-server.flags.

    flags_file_test.py BIN ROOT
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


class FlagsFileTest(unittest.TestCase):
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
    unittest.main(argv=sys.argv[:1], verbosity=2)
