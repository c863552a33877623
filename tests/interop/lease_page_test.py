#!/usr/bin/python3
"""The example of client/lease/README.md, compiled, takes ids from a real server.

    lease_page_test.py FIRN_SERVER EXAMPLE
    lease_page_test.py --write PAGE PROGRAM.cc

The second form writes the page's first code block as a program that takes the server's address as its argument.
"""

import json
import os
import re
import subprocess
import sys
import time
import unittest
import urllib.request

import interop

PATIENCE_S = 60
RETURN_S = 10
ADDRESS = '"firn://10.0.0.7:7609"'
MAIN = """
#include <cstdio>
#include <string>

int main(int, char** arguments) {{
{body}
  if (!id.ok()) return std::fprintf(stderr, "%s\\n", id.status().ToString().c_str()), 1;
  std::printf("%lld\\n", static_cast<long long>(*id));
  return 0;
}}
"""


def write(page, program):
    with open(page) as file:
        block = re.search(r"(?:^    .*\n(?:^\n)*)+", file.read(), re.MULTILINE)[0]
    if ADDRESS not in block:
        sys.exit(f"{page}: the first code block has no {ADDRESS}")
    lines = [line.removeprefix("    ") for line in block.replace(ADDRESS, 'std::string("firn://") + arguments[1]')
             .splitlines()]
    includes = [line for line in lines if line.startswith("#include")]
    body = ["  " + line for line in lines if not line.startswith("#include")]
    with open(program, "w") as file:
        file.write("\n".join(includes) + MAIN.format(body="\n".join(body)))


class LeasePageTest(unittest.TestCase):
    program = example = folder = None

    def test_the_example_takes_an_id_under_a_leased_machine_id(self):
        self.take_id(interop.Server(self.program, os.path.join(self.folder, "server")))

    def test_the_example_needs_no_option_where_the_claim_window_is_short(self):
        self.take_id(interop.Server(self.program, os.path.join(self.folder, "short"), "--claim_window_ms=5000"))

    def take_id(self, server):
        said = subprocess.run([self.example, f"127.0.0.1:{server.port}"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
        self.assertEqual(said.returncode, 0, said.stderr + server.log())
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/v1/explain/{said.stdout.strip()}",
                                    timeout=PATIENCE_S) as answer:
            machine = json.load(answer)["machine"]
        # The example gave its lease back when it ended.
        deadline = time.monotonic() + RETURN_S
        while "was given back" not in server.log():
            self.assertLess(time.monotonic(), deadline, server.log())
            time.sleep(0.1)
        self.assertIn("checkout-7f9c", server.log())
        self.assertIn(f"was granted machine id {machine}", server.log())
        self.assertEqual(server.stop(), 0, server.log())


if __name__ == "__main__":
    if sys.argv[1] == "--write":
        write(*sys.argv[2:])
    else:
        interop.main(LeasePageTest, "true", "example")
