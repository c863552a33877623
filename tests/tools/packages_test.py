"""The lists of packages: each name once, a reason beside it, and nothing for tests in what tools/run
installs.

    packages_test.py ROOT
"""

import collections
import os
import re
import subprocess
import sys
import tempfile
import unittest

TOOLS = os.path.join(os.path.abspath(sys.argv[1]), "tools")
RUN = "packages-run.txt"
CLUSTER = "packages-cluster.txt"
DRILL = "packages-drill.txt"
# What no one should wait for who only wants an id: databases, browsers, other languages, tests.
HEAVY = re.compile(r"(-server|^zookeeper|^postgresql|^chromium|jre|jdk|golang|nodejs|^npm|gtest|gmock"
                   r"|benchmark|python|systemd|mmdebstrap|buildah|prometheus)$")


def packages(name):
    with open(os.path.join(TOOLS, name)) as file:
        lines = [line.split(None, 1) for line in file if line.strip() and not line.startswith("#")]
    return [(words[0], words[1].strip() if len(words) > 1 else "") for words in lines]


LISTS = {name: packages(name) for name in sorted(os.listdir(TOOLS))
         if re.fullmatch(r"packages.*\.txt", name)}


class PackagesTest(unittest.TestCase):
    def test_there_is_a_list_for_each_purpose(self):
        self.assertEqual({RUN, CLUSTER, DRILL, "packages.txt", "packages-bench.txt",
                          "packages-check.txt"}, set(LISTS))

    def test_each_package_stands_once_with_its_reason(self):
        counts = collections.Counter(name for named in LISTS.values() for name, _ in named)
        self.assertEqual([], [name for name, count in counts.items() if count > 1])
        self.assertEqual([], [name for named in LISTS.values() for name, why in named if not why])

    def test_running_wants_nothing_that_is_there_for_tests(self):
        for name, why in LISTS[RUN]:
            self.assertNotRegex(name, HEAVY)
            self.assertFalse(why.startswith(("tests", "benchmarks")), name)

    def test_run_cluster_and_drill_install_no_more_than_they_need(self):
        for script in "run", "cluster", "drill":
            with open(os.path.join(TOOLS, script)) as file:
                self.assertEqual([f"tools/setup --{script}"],
                                 re.findall(r"^ *(tools/setup.*)$", file.read(), re.MULTILINE))
        for name, why in LISTS[CLUSTER] + LISTS[DRILL]:
            self.assertFalse(why.startswith(("tests", "benchmarks")), name)

    def test_setup_takes_what_it_is_asked_for(self):
        missing = {words: subprocess.run([os.path.join(TOOLS, "setup"), "--list", *words.split()],
                                         check=True, stdout=subprocess.PIPE,
                                         env=self.bare_environment(), text=True).stdout.split()
                   for words in ("", "--run", "--cluster", "--drill", "--check")}
        names = {name: [package for package, _ in named] for name, named in LISTS.items()}
        self.assertEqual(names[RUN], missing["--run"])
        self.assertEqual(names[RUN] + names[CLUSTER], missing["--cluster"])
        self.assertEqual(missing["--cluster"] + names[DRILL], missing["--drill"])
        self.assertEqual(missing["--drill"] + names["packages.txt"]
                         + names["packages-bench.txt"], missing[""])
        self.assertEqual(missing[""] + names["packages-check.txt"], missing["--check"])

    def test_each_reason_of_a_drill_names_its_scenarios(self):
        with open(os.path.join(TOOLS, "drill")) as file:
            every = re.search(r"^every=\((.*?)\)", file.read(), re.MULTILINE | re.DOTALL).group(1)
        for name, why in LISTS[DRILL]:
            self.assertLessEqual(set(why.split(": ")[0].split(", ")), set(every.split()), name)

    def bare_environment(self):
        """Where dpkg knows of itself only, as on a fresh machine."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        for name in ("info", "updates"):
            os.mkdir(os.path.join(folder, name))
        with open(os.path.join(folder, "status"), "w") as status:
            status.write("Package: dpkg\nStatus: install ok installed\nVersion: 1\n"
                         "Architecture: all\nMaintainer: nobody\nDescription: one\n\n")
        return {**os.environ, "DPKG_ADMINDIR": folder}


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
