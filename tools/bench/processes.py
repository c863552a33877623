"""Starts and ends the processes of a measurement, each on its own core and in its own folder."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import programs

PATIENCE_S = 60
LOG_LINES_SHOWN = 10


def program(name, package, places=()):
    """The absolute path of a program; exits if it is not installed."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *places]))
    if not found:
        raise SystemExit(f"{name} is not installed: it comes with the package {package}, which "
                         "tools/setup installs")
    return found


class Folder:
    """A temporary folder. As root, it belongs to `user`, because databases refuse to run as root."""

    def __init__(self, purpose, user=None):
        self.user = user if user and os.geteuid() == 0 else None
        self.path = tempfile.mkdtemp(prefix=f"firn-bench-{purpose}-")
        if self.user:
            entry = pwd.getpwnam(self.user)
            os.chown(self.path, entry.pw_uid, entry.pw_gid)

    def __truediv__(self, name):
        return os.path.join(self.path, name)

    def as_user(self, argv):
        """The command `argv` as the folder's user. It ends when this program does."""
        who = []
        if self.user:
            who = [f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
        return ["setpriv", "--pdeathsig=KILL", *who, *argv]

    def prepare(self, argv, text=None):
        """Runs a command to its end, `text` on its input."""
        done = subprocess.run(self.as_user(argv), cwd=self.path, input=text, capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{argv[0]} failed: {(done.stdout + done.stderr).strip()}")

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


class Server:
    """A server on a core and a free loopback port, which replaces @PORT@ in its command. Its folder
    is deleted with it."""

    def __init__(self, folder, command, pin, stop_signal=signal.SIGTERM):
        self.folder, self.stop_signal = folder, stop_signal
        self.name = os.path.basename(command[0])
        self.port = programs.free_port()
        argv = [part.replace("@PORT@", str(self.port)) for part in command]
        with open(folder / "log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(pin(folder.as_user(argv)), cwd=folder.path, stdout=log,
                                            stderr=log)
        try:
            self.await_that(self.listens, "listen")
        except SystemExit:
            self.stop()
            raise

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def await_that(self, holds, what):
        end = time.monotonic() + PATIENCE_S
        while not holds():
            if self.process.poll() is not None or time.monotonic() > end:
                with open(self.folder / "log", encoding="utf-8", errors="replace") as log:
                    said = "".join(log.readlines()[-LOG_LINES_SHOWN:])
                raise SystemExit(f"{self.name} does not {what}; its output:\n{said}")
            time.sleep(0.05)

    def memory_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            size = next(line for line in status if line.startswith("VmRSS:"))
        return int(size.split()[1]) / 1024

    def processor_s(self):
        """The processor time that the server has used."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as stat:
            user, system = stat.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.folder.remove()
