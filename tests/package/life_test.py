"""Tests the Debian packages on a machine with a real systemd: they are installed, started, killed,
upgraded while clients call, removed and purged.

    life_test.py FOLDER_OF_MAKE BIN ROOT

It runs in its own network namespace, where the ports of the package's flags are free. Its transcript
must equal tools/package/LIFE.md except for numbers; FIRN_PAGE=FILE writes a new page to that file.
"""

import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

from machine import Machine, await_true, in_a_network_of_its_own
from transcript import Transcript

MADE, BIN, ROOT = sys.argv[1:4]
CLUSTER = os.path.join(ROOT, "tools/cluster")
PAGE = os.path.join(ROOT, "tools/package/LIFE.md")
HEAD = """# Life cycle of the packages

A transcript of `tests/package/life_test.py`, on a machine of its own with Debian, a real systemd, and the `.deb`
files of the release build. Each run of the test repeats the commands and compares each line, except for numbers."""
FLAGS = "/etc/firn/firn-server.flags"
NEXT = ("firn", "next", "--servers=list://127.0.0.1:7609")
# dpkg's messages about Firn's packages.
DPKG = "(Unpacking|Setting up|Removing|Purging|Configuration file| ==> Using) "
# Folders and files in which dpkg, systemd and useradd record their work.
REMEMBERED = ("/var/lib/dpkg/", "/var/log/", "/var/cache/", "/var/lib/systemd/", "/var/backups/",
              "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock",
              "/etc/subuid-", "/etc/subgid-", "/run/", "/tmp/", "/dev/", "/proc/", "/sys/")


def newer(deb, folder):
    """The same package with a higher version and a longer flags file."""
    tree = os.path.join(folder, "newer")
    subprocess.run(["dpkg-deb", "--raw-extract", deb, tree], check=True)
    control = os.path.join(tree, "DEBIAN/control")
    with open(control) as file:
        text = file.read()
    with open(control, "w") as file:
        file.write(text.replace("\nVersion: ", "\nVersion: 1:"))
    with open(tree + FLAGS, "a") as flags:
        flags.write("# A comment of the newer version.\n")
    path = os.path.join(folder, "newer.deb")
    subprocess.run(["dpkg-deb", "--build", tree, path], check=True, stdout=subprocess.DEVNULL)
    return path


class Callers:
    """Starts clients one after the other, two at any time, until `end`."""

    def __init__(self, servers, folder):
        self.servers, self.folder = servers, folder
        self.stopping, self.runs, self.faults = threading.Event(), [0, 0], []
        self.threads = [threading.Thread(target=self.call, args=(i,)) for i in range(2)]
        for thread in self.threads:
            thread.start()

    def call(self, number):
        while not self.stopping.is_set():
            file = os.path.join(self.folder, f"ids-{number}-{self.runs[number]}")
            done = subprocess.run(
                [f"{BIN}/firn", "bench", f"--servers={self.servers}", "--rate=200", "--seconds=2",
                 f"--ids_file={file}", "--json"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, check=False)
            if done.returncode != 0:
                self.faults.append(done.stdout)
            self.runs[number] += 1

    def end(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def during(self, steps, case):
        """The number of ids that clients got during the steps. Each must get all of them, and all must differ."""
        try:
            steps()
            reached = max(self.runs)
            await_true("callers that saw all of it", lambda: min(self.runs) >= reached + 2)
        finally:
            self.end()
        case.assertEqual([], self.faults)
        ids = self.ids()
        case.assertEqual(len(ids), len(set(ids)), "an id was issued twice")
        return len(ids)

    def ids(self):
        found = []
        for path in glob.glob(os.path.join(self.folder, "ids-*")):
            with open(path) as file:
                found += file.read().split()
        return found


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="firn-package-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.addClassCleanup(subprocess.run, [CLUSTER, "down", f"--folder={cls.folder}/cluster"], check=False,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.machine = Machine(os.path.join(MADE, "machine.tar"), cls.folder)
        cls.addClassCleanup(cls.machine.end)
        cls.page = Transcript(HEAD)

    def deb(self, path):
        """Copies a package to the machine. Returns its path there."""
        name = os.path.basename(path)
        shutil.copy(path, os.path.join(self.machine.root, "root", name))
        return f"/root/{name}"

    def paths(self):
        found = self.machine.said("find", "/", "-xdev", "-not", "-type", "d").splitlines()
        found += self.machine.said("find", "/", "-xdev", "-type", "d").splitlines()
        return {path for path in found if not (path + "/").startswith(REMEMBERED)
                and not path.startswith(REMEMBERED)}

    def shown(self, *command, only=".*", code=0):
        """Runs a command in the machine, and shows it on the page with the lines that match `only`."""
        done = self.machine.run(*command, check=False)
        self.assertEqual(code, done.returncode, f"{' '.join(command)}\n{done.stdout}")
        lines = [line for line in done.stdout.splitlines() if re.match(only, line)]
        self.page.shows(shlex.join(command), "\n".join(lines))
        return done.stdout.strip()

    def main_pid(self):
        return self.machine.said("systemctl", "show", "-P", "MainPID", "firn-server")

    def next_id(self, *flags):
        """Waits until the server issues an id, and returns it."""
        ids = []

        def taken():
            done = self.machine.run("firn", "next", "--servers=list://127.0.0.1:7609", *flags,
                                    check=False)
            if done.returncode == 0:
                ids.append(int(done.stdout))
            return done.returncode == 0
        await_true("an id", taken, self.log)
        return ids[0]

    def log(self):
        return self.machine.run("journalctl", "-u", "firn-server", "--no-pager", "-n", "30",
                                check=False).stdout

    def machine_id(self):
        with urllib.request.urlopen("http://127.0.0.1:7610/v1/status", timeout=60) as answer:
            return json.load(answer)["machine"]

    def test_every_command_of_the_page_works_from_installation_to_purge(self):
        before = self.paths()
        packages = [self.deb(path) for path in sorted(glob.glob(f"{MADE}/debs/firn-*.deb"))]
        self.installed(packages)
        self.started()
        self.misconfigured()
        self.killed()
        self.upgraded()
        self.removed()
        self.purged(before)
        self.assertEqual([], self.page.differences(PAGE))

    def installed(self, packages):
        self.page.section("Installed")
        self.shown("dpkg", "--install", *packages, only=DPKG)
        self.assertIn(FLAGS, self.machine.said("dpkg-query", "-W", "-f", "${Conffiles}",
                                               "firn-server"))
        self.assertEqual("inactive", self.shown("systemctl", "is-active", "firn-server", code=3))
        self.page.says("The service does not run yet, so that you can edit its flags first.")

    def started(self):
        """The server starts with only the package's files."""
        self.page.section("Started with the packaged flags")
        self.shown("systemd-analyze", "verify", "--man=no", "firn-server.service")
        # Replaces the device, which this machine lacks.
        self.machine.said("sh", "-c", "echo generation >/dev/vmclock0; chmod 444 /dev/vmclock0")
        self.shown("systemctl", "enable", "--now", "firn-server")
        self.next_id()
        self.assertEqual("generation", self.machine.said("cat", f"/proc/{self.main_pid()}/root/dev/vmclock0"))
        self.machine.said("rm", "/dev/vmclock0")
        self.shown(*NEXT)
        pid = self.main_pid()
        self.assertIn(" firn ", self.shown("ps", "-o", "pid,user,comm", "-p", pid))
        self.assertIn("Seccomp:\t2", self.machine.said("cat", f"/proc/{pid}/status"))
        self.assertEqual("drwxr-x--- firn /var/lib/firn\ndrwx------ firn /run/firn",
                         self.shown("stat", "-c", "%A %U %n", "/var/lib/firn", "/run/firn"))
        self.shown("systemctl", "reload", "firn-server")
        self.assertEqual(pid, self.main_pid())

    def misconfigured(self):
        """A restart with a flag that does not exist fails, and says so."""
        self.machine.said("sh", "-c", f"cp -p {FLAGS} /tmp/flags; echo --registy=x >>{FLAGS}; "
                          f"firn-server --flagfile={FLAGS} --check_config 2>/dev/null; [ $? = 2 ] && "
                          f"! systemctl restart firn-server; failed=$?; cp -p /tmp/flags {FLAGS}; "
                          "[ $failed = 0 ] && systemctl restart firn-server")
        self.next_id()

    def killed(self):
        """A server that systemd restarts resumes the same machine id, by its grant in memory."""
        self.page.section("Killed")
        earlier, held, pid = self.next_id(), self.machine_id(), self.main_pid()
        self.shown("kill", "-KILL", pid)
        await_true("another process", lambda: self.main_pid() not in ("0", pid))
        self.assertGreater(self.next_id(), earlier)
        self.assertEqual(held, self.machine_id())
        self.shown(*NEXT)
        self.page.says(f"systemd has replaced process {pid} by {self.main_pid()}, which still holds "
                       f"machine id {held}.")

    def upgraded(self):
        """In a cluster with two more servers, no call fails, and the operator's flags stay."""
        self.page.section("Upgraded, with clients calling")
        self.page.says("The server has joined a ZooKeeper with two more servers; two clients ask the "
                       "three for 200 ids a second each.")
        servers = self.join_cluster("--state_dir=/var/lib/firn/shop")
        held, pid, flags = self.machine_id(), self.main_pid(), self.machine.said("cat", FLAGS)
        taken = self.upgraded_under_load(servers)
        self.assertGreater(taken, 1000)
        self.assertNotEqual(pid, self.main_pid(), "the old server still runs")
        self.assertEqual(held, self.machine_id())
        self.assertEqual(flags, self.machine.said("cat", FLAGS))
        self.page.says(f"Process {self.main_pid()} has replaced {pid} and still holds machine id {held}. "
                       f"The operator's flags\nare unchanged. The clients took {taken:,} ids in the "
                       f"meantime: no call failed, and no id was issued twice.")

    def join_cluster(self, flag):
        """Starts a cluster outside the machine, and lets the server join it with one more flag. Returns the servers."""
        subprocess.run([CLUSTER, "up", "--servers=2", "--zookeeper=1", f"--bin={BIN}",
                        f"--folder={self.folder}/cluster"], check=True)
        ports = ["7609"]
        for name in ("server-1", "server-2"):
            with open(f"{self.folder}/cluster/{name}/port") as file:
                ports.append(file.read().strip())
        registry = subprocess.run([CLUSTER, "status", f"--folder={self.folder}/cluster"],
                                  stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]
        registry = registry.replace("127.0.0.1", "localhost")  # so that the resolver is needed
        self.machine.said("sh", "-c", f"echo --registry={registry} >>{FLAGS}; echo {flag} >>{FLAGS}; "
                          "systemctl enable firn-server; systemctl restart firn-server")
        self.next_id()
        return "list://" + ",".join(f"127.0.0.1:{port}" for port in ports)

    def upgraded_under_load(self, servers):
        callers = Callers(servers, self.folder)

        def upgrade():
            await_true("callers call", lambda: min(callers.runs) >= 1)
            self.shown("dpkg", "--install", "--force-confold", self.deb(
                newer(glob.glob(f"{MADE}/debs/firn-server_*.deb")[0], self.folder)), only=DPKG)
            self.next_id()
        return callers.during(upgrade, self)

    def removed(self):
        self.page.section("Removed")
        self.shown("dpkg", "--remove", "firn-server", only=DPKG)
        self.assertIn("draining", self.log())
        self.shown("pgrep", "-x", "firn-server", code=1)
        self.shown("ls", "-d", FLAGS, "/var/lib/firn/shop")
        self.page.says("The server has drained and released its machine id. Flags and state stay.")

    def purged(self, before):
        self.page.section("Purged")
        self.shown("dpkg", "--purge", "firn-server", "firn-tools", "firn-thrift", only=DPKG)
        left = {path for path in self.paths() - before if not path.startswith("/root/")}
        self.assertEqual(set(), left)
        self.shown("getent", "passwd", "firn", code=2)
        for folder in ("/run/firn", "/var/lib/firn"):
            self.shown("test", "-e", folder, code=1)
        self.page.says("No file or user of Firn is left.")


def main():
    in_a_network_of_its_own(os.path.join(MADE, "machine.tar"))
    # A SIGTERM to this test also ends the machine.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    unittest.main(argv=sys.argv[:1], verbosity=2)


if __name__ == "__main__":
    main()
