"""The Debian packages' life on a machine with a real systemd: installed, started, killed, upgraded
while clients call, removed, purged.

    life_test.py FOLDER_OF_MAKE BIN TOOLS_CLUSTER

It runs in a network of its own, where the ports of the package's flags are free.
"""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

from machine import Machine, await_true, in_a_network_of_its_own

MADE, BIN, CLUSTER = sys.argv[1:4]
FLAGS = "/etc/firn/firn-server.flags"
# Where dpkg, systemd and useradd remember what they did for anybody.
REMEMBERED = ("/var/lib/dpkg/", "/var/log/", "/var/cache/", "/var/lib/systemd/", "/var/backups/",
              "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock",
              "/etc/subuid-", "/etc/subgid-", "/run/", "/tmp/", "/dev/", "/proc/", "/sys/")


def newer(deb, folder):
    """The same package under the next version."""
    tree = os.path.join(folder, "newer")
    subprocess.run(["dpkg-deb", "--raw-extract", deb, tree], check=True)
    control = os.path.join(tree, "DEBIAN/control")
    with open(control) as file:
        text = file.read()
    with open(control, "w") as file:
        file.write(text.replace("\nVersion: ", "\nVersion: 1:"))
    path = os.path.join(folder, "newer.deb")
    subprocess.run(["dpkg-deb", "--build", tree, path], check=True, stdout=subprocess.DEVNULL)
    return path


class Callers:
    """Clients that call one after the other, two at any time, until they are told to stop."""

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
        cls.machine = Machine(os.path.join(MADE, "machine.tar"), cls.folder)

    @classmethod
    def tearDownClass(cls):
        subprocess.run([CLUSTER, "down", f"--folder={cls.folder}/cluster"], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.machine.end()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def deb(self, path):
        """Hands a package to the machine, and says what it is called there."""
        name = os.path.basename(path)
        shutil.copy(path, os.path.join(self.machine.root, "root", name))
        return f"/root/{name}"

    def paths(self):
        found = self.machine.said("find", "/", "-xdev", "-not", "-type", "d").splitlines()
        found += self.machine.said("find", "/", "-xdev", "-type", "d").splitlines()
        return {path for path in found if not (path + "/").startswith(REMEMBERED)
                and not path.startswith(REMEMBERED)}

    def main_pid(self):
        return self.machine.said("systemctl", "show", "-P", "MainPID", "firn-server")

    def next_id(self, *flags):
        """The first id that the server gives, once it does."""
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

    def test_life(self):
        before = self.paths()
        packages = [self.deb(path) for path in glob.glob(f"{MADE}/debs/firn-*.deb")]
        self.installed(packages)
        self.started()
        self.killed()
        self.upgraded()
        self.removed()
        self.purged(before)

    def installed(self, packages):
        self.machine.said("dpkg", "--install", *packages)
        self.assertIn(FLAGS, self.machine.said("dpkg-query", "-W", "-f", "${Conffiles}",
                                               "firn-server"))
        self.assertEqual("inactive", self.machine.run("systemctl", "is-active", "firn-server",
                                                      check=False).stdout.strip())

    def started(self):
        """With nothing but what the package brings."""
        self.machine.said("systemd-analyze", "verify", "--man=no", "firn-server.service")
        self.machine.said("systemctl", "enable", "--now", "firn-server")
        self.next_id()
        pid = self.main_pid()
        self.assertEqual("firn", self.machine.said("ps", "-o", "user=", "-p", pid))
        self.assertIn("Seccomp:\t2", self.machine.said("cat", f"/proc/{pid}/status"))
        self.assertEqual("firn 750", self.machine.said("stat", "-c", "%U %a", "/var/lib/firn"))
        self.assertEqual("firn 700", self.machine.said("stat", "-c", "%U %a", "/run/firn"))
        self.machine.said("systemctl", "reload", "firn-server")
        self.assertEqual(pid, self.main_pid())

    def killed(self):
        """What systemd starts again goes on with the same machine id, by its grant in memory."""
        earlier, held, pid = self.next_id(), self.machine_id(), self.main_pid()
        self.machine.said("kill", "-KILL", pid)
        await_true("another process", lambda: self.main_pid() not in ("0", pid))
        self.assertGreater(self.next_id(), earlier)
        self.assertEqual(held, self.machine_id())

    def upgraded(self):
        """In a cluster with two more servers: no call fails, what the operator wrote stays."""
        subprocess.run([CLUSTER, "up", "--servers=2", "--zookeeper=1", f"--bin={BIN}",
                        f"--folder={self.folder}/cluster"], check=True)
        ports = []
        for name in ("zk-1", "server-1", "server-2"):
            with open(f"{self.folder}/cluster/{name}/port") as file:
                ports.append(file.read().strip())
        registry = subprocess.run([CLUSTER, "status", f"--folder={self.folder}/cluster"],
                                  stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]
        registry = registry.replace("127.0.0.1", "localhost")  # which wants the resolver
        self.machine.said("sh", "-c", f"echo --registry={registry} >>{FLAGS}; "
                          f"echo --state_dir=/var/lib/firn/shop >>{FLAGS}; "
                          "systemctl restart firn-server")
        self.next_id()
        held, pid, flags = self.machine_id(), self.main_pid(), self.machine.said("cat", FLAGS)
        self.assertGreater(self.join_and_upgrade(ports), 1000)
        self.assertNotEqual(pid, self.main_pid(), "the old server still runs")
        self.assertEqual(held, self.machine_id())
        self.assertEqual(flags, self.machine.said("cat", FLAGS))

    def join_and_upgrade(self, ports):
        servers = "list://" + ",".join(f"127.0.0.1:{port}" for port in ("7609", *ports[1:]))
        callers = Callers(servers, self.folder)
        try:
            await_true("callers call", lambda: min(callers.runs) >= 1)
            self.machine.said("dpkg", "--install", self.deb(
                newer(glob.glob(f"{MADE}/debs/firn-server_*.deb")[0], self.folder)))
            self.next_id()
            reached = max(callers.runs)
            await_true("callers that saw all of it", lambda: min(callers.runs) >= reached + 2)
        finally:
            callers.end()
        self.assertEqual([], callers.faults)
        ids = callers.ids()
        self.assertEqual(len(ids), len(set(ids)), "an id came twice")
        return len(ids)

    def removed(self):
        self.machine.said("dpkg", "--remove", "firn-server")
        self.assertIn("draining", self.log())
        self.assertEqual("", self.machine.run("pgrep", "-x", "firn-server", check=False).stdout)
        for kept in (FLAGS, "/var/lib/firn/shop"):
            self.machine.said("test", "-e", kept)

    def purged(self, before):
        self.machine.said("dpkg", "--purge", "firn-server", "firn-tools", "firn-thrift")
        left = {path for path in self.paths() - before if not path.startswith("/root/")}
        self.assertEqual(set(), left)
        self.assertNotEqual(0, self.machine.run("getent", "passwd", "firn", check=False).returncode)
        for folder in ("/run/firn", "/var/lib/firn"):
            self.assertFalse(self.machine.run("test", "-e", folder, check=False).returncode == 0)


if __name__ == "__main__":
    in_a_network_of_its_own(os.path.join(MADE, "machine.tar"))
    # An end from outside ends the machine as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    unittest.main(argv=sys.argv[:1], verbosity=2)
