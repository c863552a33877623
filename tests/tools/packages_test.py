"""The lists of packages: each name once, with a reason; tools/run installs nothing that only tests need.

    packages_test.py ROOT
"""

import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = os.path.join(os.path.abspath(sys.argv[1]), "tools")
RUN = "packages-run.txt"
CLUSTER = "packages-cluster.txt"
DRILL = "packages-drill.txt"
# Packages that tools/run must not install: databases, browsers, other languages, tests.
HEAVY = re.compile(r"(-server|^zookeeper|^postgresql|^chromium|jre|jdk|golang|nodejs|^npm|gtest|gmock"
                   r"|benchmark|python|systemd|mmdebstrap|buildah|prometheus)$")


def packages(name):
    with open(os.path.join(TOOLS, name)) as file:
        lines = [line.split(None, 1) for line in file if line.strip() and not line.startswith("#")]
    return [(words[0], words[1].strip() if len(words) > 1 else "") for words in lines]


LISTS = {name: packages(name) for name in sorted(os.listdir(TOOLS))
         if re.fullmatch(r"packages.*\.txt", name)}

# The scripts of tools/drill, and the places of a program's name in them: at the beginning of a command, and in
# the words from which a command is assembled.
DRILL_SCRIPTS = "drill", "cluster", "members.sh", "certificates.sh", "lib.sh"
PROGRAM = re.compile(r"(?=(?:^|[(|;!&{]|\b(?:then|do|else|if|while|exec|command -v|timeout \d+|"
                     r"printf '%s\\n'))[ \t]*([a-z][\w.-]*)(?![\w=.]|\(\)))", re.MULTILINE)
FILE = re.compile(r"(/usr/(?:share|lib)/[\w$()./ -]+\.(?:jar|so\.\d))")


def installed():
    """{package: (whether it is essential, its dependencies)}; installed packages replace virtual ones."""
    asked = "${Package}\t${Essential}\t${Pre-Depends}, ${Depends}\t${Provides}\n"
    told = subprocess.run(["dpkg-query", "-W", "-f", asked], stdout=subprocess.PIPE, text=True, check=True)
    rows = [line.split("\t") for line in told.stdout.splitlines()]
    there = {row[0]: row[0] for row in rows}
    for name, _, _, provides in rows:
        for virtual in re.findall(r"[a-z0-9][\w.+-]*(?=[ ,]|$)", re.sub(r"\([^)]*\)", "", provides)):
            there.setdefault(virtual, name)
    needs = {}
    for name, essential, depends, _ in rows:
        wanted = [[there[word] for word in re.findall(r"[a-z0-9][\w.+-]+", re.sub(r"\([^)]*\)|:any", "", one))
                   if word in there] for one in depends.split(",")]
        needs[name] = (essential == "yes", [some[0] for some in wanted if some])
    return needs


def all_that_comes(names, needs):
    coming, left = set(), [name for name, (essential, _) in needs.items() if essential] + names
    while left:
        name = left.pop()
        if name in needs and name not in coming:
            coming.add(name)
            left += needs[name][1]
    return coming


def owners(paths):
    """{file: its package}; files of /bin and /lib are in /usr now."""
    names = {path: (path, os.path.realpath(path), os.path.realpath(path).removeprefix("/usr"))
             for path in paths}
    asked = [name for of_path in names.values() for name in of_path]
    told = subprocess.run(["dpkg-query", "-S", *asked], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False).stdout
    package = {file: who.split(":")[0].split(",")[0] for who, file in
               (line.split(": ", 1) for line in told.splitlines() if not line.startswith("diversion "))}
    return {path: next((package[name] for name in of_path if name in package), "")
            for path, of_path in names.items()}


class PackagesTest(unittest.TestCase):
    def test_there_is_a_list_for_each_purpose(self):
        self.assertEqual({RUN, CLUSTER, DRILL, "packages.txt", "packages-bench.txt",
                          "packages-check.txt", "packages-arm64.txt"}, set(LISTS))

    def test_each_package_is_listed_once_with_a_reason(self):
        counts = collections.Counter(name for named in LISTS.values() for name, _ in named)
        self.assertEqual([], [name for name, count in counts.items() if count > 1])
        self.assertEqual([], [name for named in LISTS.values() for name, why in named if not why])

    def test_running_needs_no_package_for_tests(self):
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

    def test_setup_installs_the_requested_lists(self):
        missing = {words: subprocess.run([os.path.join(TOOLS, "setup"), "--list", *words.split()],
                                         check=True, stdout=subprocess.PIPE,
                                         env=self.bare_environment(), text=True).stdout.split()
                   for words in ("", "--run", "--cluster", "--drill", "--check", "--arm64")}
        names = {name: [package for package, _ in named] for name, named in LISTS.items()}
        self.assertEqual(names[RUN], missing["--run"])
        self.assertEqual(names[RUN] + names[CLUSTER], missing["--cluster"])
        self.assertEqual(missing["--cluster"] + names[DRILL], missing["--drill"])
        self.assertEqual(missing["--drill"] + names["packages.txt"]
                         + names["packages-bench.txt"], missing[""])
        for words in "check", "arm64":
            self.assertEqual(missing[""] + names[f"packages-{words}.txt"], missing[f"--{words}"])

    def test_each_reason_of_a_drill_names_its_scenarios(self):
        with open(os.path.join(TOOLS, "drill")) as file:
            every = re.search(r"^every=\((.*?)\)", file.read(), re.MULTILINE | re.DOTALL).group(1)
        for name, why in LISTS[DRILL]:
            self.assertLessEqual(set(why.split(": ")[0].split(", ")), set(every.split()), name)

    def test_the_lists_of_a_drill_contain_all_its_programs(self):
        text = ""
        for script in DRILL_SCRIPTS:
            with open(os.path.join(TOOLS, script)) as file:
                text += re.sub(r"(?m)(^|\s)#.*$", "", file.read())
        machine = subprocess.run(["uname", "-m"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        files = {file.replace("$(uname -m)", machine) for file in FILE.findall(text)}
        programs = {shutil.which(word) for word in PROGRAM.findall(text)} - {None}
        self.assertLessEqual({"java", "openssl", "curl", "setsid"}, {os.path.basename(p) for p in programs})
        self.assertEqual(3, len(files), files)
        lists = [name for list_name in (RUN, CLUSTER, DRILL) for name, _ in LISTS[list_name]]
        coming = all_that_comes(lists, installed())
        for path, package in sorted(owners(files | programs).items()):
            with self.subTest(path):
                # Skips programs without a package, such as a java from elsewhere.
                self.assertTrue(package in coming or not package, f"{package} is in no list of a drill")

    def bare_environment(self):
        """An environment in which dpkg lists only itself, as on a fresh machine."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        for name in ("info", "updates"):
            os.mkdir(os.path.join(folder, name))
        with open(os.path.join(folder, "status"), "w") as status:
            status.write("Package: dpkg\nStatus: install ok installed\nVersion: 1\n"
                         "Architecture: all\nMaintainer: nobody\nDescription: one\n\n")
        return {**os.environ, "DPKG_ADMINDIR": folder}


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
