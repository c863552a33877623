#!/usr/bin/python3
"""Upgrades the Debian packages of an older version to this tree's under load, and back, on a machine with a real systemd.

    version_life.py MADE BIN ROOT OLD

MADE is the folder of make.sh, BIN has this tree's programs, and OLD the packages of the older version. The server has joined
a cluster with two more servers, and its flags file has a retired flag. Without a terminal, dpkg stops at its question about
this file. With --force-confold, the file and the machine id stay, no call fails, and no id is issued twice.
"""

import glob
import sys

import life_test
from life_test import FLAGS, MADE
from machine import await_true

OLD = sys.argv[4]


class VersionLife(life_test.PackagesTest):
    test_every_command_of_the_page_works_from_installation_to_purge = None

    def test_upgrade_and_way_back(self):
        old, new = ([self.deb(path) for name in ("server", "tools") for path in glob.glob(f"{folder}/firn-{name}_*.deb")]
                    for folder in (OLD, f"{MADE}/debs"))
        self.assertEqual([2, 2], [len(old), len(new)])
        self.machine.said("dpkg", "--install", *old)
        servers = self.join_cluster("--turn_us_max=2000")
        callers = life_test.Callers(servers, self.folder)

        def replace_all():
            for packages in new, old, new:
                self.replace(packages, callers)
        ids = callers.during(replace_all, self)
        self.assertIn("--turn_us_max is retired", self.log())
        self.machine.said("systemd-analyze", "verify", "--man=no", "firn-server.service")
        self.machine.said("firn-server", "--check_config", f"--flagfile={FLAGS}")
        self.machine.said("dpkg", "--purge", "firn-server", "firn-tools")
        self.machine.said("sh", "-c", "! ls -d /etc/firn /var/lib/firn /run/firn")
        print(f"  {'ids':18} {ids}\n  {'issued twice':18} 0\n  {'failed calls':18} 0", flush=True)

    def replace(self, packages, callers):
        """Installs the packages over others, while clients call."""
        reached = max(callers.runs)
        await_true("callers call", lambda: min(callers.runs) > reached)
        pid, held, flags = self.main_pid(), self.machine_id(), self.machine.said("cat", FLAGS)
        asked = self.machine.run("dpkg", "--install", *packages, check=False)
        self.assertEqual((1, pid), (asked.returncode, self.main_pid()), asked.stdout)
        self.assertIn("end of file on stdin at conffile prompt", asked.stdout)
        self.next_id()
        self.machine.said("dpkg", "--install", "--force-confold", *packages)
        self.next_id()
        self.assertNotEqual(pid, self.main_pid(), "the former server still runs")
        self.assertEqual((held, flags), (self.machine_id(), self.machine.said("cat", FLAGS)))
        print(f"  {self.machine.said('firn-server', '--version')} continues with machine id {held}", flush=True)


if __name__ == "__main__":
    life_test.main()
