"""A machine for one test: a root of Debian in which a real systemd runs, in namespaces of
process, mount, name and cgroup. It uses the caller's network. Needs root."""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import programs

PATIENCE_S = 120

# Run in the new namespaces: makes the folder $1 the root, and systemd the first process in it.
BOOT = r"""
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t cgroup2 cgroup2 sys/fs/cgroup
else
  mount -t tmpfs tmpfs sys/fs/cgroup
  mkdir sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
fi
for folder in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs "$folder"; done
chmod 1777 tmp
mkdir dev/shm dev/pts
mount -t tmpfs tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
ln -s /proc/self/fd dev/fd
ln -s pts/ptmx dev/ptmx
mkdir -p old
pivot_root . old
umount -l /old
rmdir /old
exec env -i container=firn-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
"""


def skip_unless(possible, why):
    if not possible:
        print(f"skipped: {why}")
        sys.exit(77)


def in_a_network_of_its_own(made):
    """Runs the program again in its own network and mount namespaces, where only loopback exists and all
    ports are free. Skips the test if that is not permitted, or if `made`, a file of make.sh or image.sh,
    does not exist."""
    skip_unless(os.geteuid() == 0, "only root makes namespaces")
    skip_unless(os.path.exists(made), f"{made} could not be made")
    if os.environ.get("FIRN_OWN_NETWORK") is None:
        try_it = ["unshare", "--net", "--mount", "--pid", "--cgroup", "--fork", "--mount-proc", "true"]
        skip_unless(subprocess.run(try_it).returncode == 0, "namespaces are not permitted")
        os.environ["FIRN_OWN_NETWORK"] = "yes"
        os.execvp("unshare", ["unshare", "--net", "--mount", "--", sys.executable, "-B", *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def await_true(what, condition, log=lambda: ""):
    deadline = time.time() + PATIENCE_S
    while not condition():
        if time.time() > deadline:
            raise AssertionError(f"timed out after {PATIENCE_S} s: {what}\n{log()}")
        time.sleep(0.1)


class Machine:
    def __init__(self, tar, folder):
        self.root = os.path.join(folder, "root")
        os.makedirs(self.root)
        subprocess.run(["tar", "-C", self.root, "-xf", tar], check=True)
        with open(os.path.join(self.root, "etc/hosts"), "w") as hosts:
            hosts.write("127.0.0.1 localhost\n")
        # The machine has no terminal.
        for unit in ("console-getty.service", "systemd-logind.service"):
            os.symlink("/dev/null", os.path.join(self.root, "etc/systemd/system", unit))
        self.outer = programs.start(
            ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--cgroup", "--kill-child",
             "sh", "-c", BOOT, "boot", self.root])
        await_true("systemd has started", self.started)

    def first_process(self):
        with open(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children") as children:
            return children.read().strip()

    def started(self):
        assert self.outer.poll() is None, "the machine ended while it started"
        first = self.first_process()
        if not first:
            return False
        with open(f"/proc/{first}/comm") as comm:
            if comm.read().strip() != "systemd":
                return False
        state = self.run("systemctl", "is-system-running", check=False)
        return state.stdout.strip() in ("running", "degraded")

    def run(self, *command, check=True):
        """Runs a command in the machine; `stdout` contains both of its outputs. `--root` because the root of the machine's
        mount namespace is another one if this test itself runs in a chroot."""
        done = subprocess.run(
            ["nsenter", f"--target={self.first_process()}", "--mount", "--root", "--pid", "--uts", "--ipc",
             "--cgroup", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
             "DEBIAN_FRONTEND=noninteractive", *command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
            check=False, timeout=600)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}")
        return done

    def said(self, *command):
        return self.run(*command).stdout.strip()

    def end(self):
        programs.end(self.outer)  # and the machine's first process with it
