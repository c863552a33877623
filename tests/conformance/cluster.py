"""Three real servers with a real ZooKeeper, and the faults that a test can inject."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import builds

sys.path.insert(0, os.path.join(builds.HERE, "..", "interop"))
import interop
import programs

# ZooKeeper's client library does not free requests that are unanswered when a program ends. Nothing else may leak.
os.environ.setdefault("LSAN_OPTIONS", f"suppressions={builds.HERE}/leaks.txt:print_suppressions=0")
PATIENCE_S = 60
TRY_LATER, REFUSED, UNKNOWN = 3, 4, 5  # exit codes of firn


def patiently(what, holds):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"after {PATIENCE_S} s: {what}")
        time.sleep(0.05)


def again(run, makes=False):
    """Runs a command of `firn` again while the registry does not answer in time, as on a busy machine. `makes`: if it is then
    refused, an earlier run has made what it makes."""
    deadline, unanswered = time.monotonic() + PATIENCE_S, False
    while True:
        done = run()
        if makes and done.returncode == REFUSED and unanswered:
            done.returncode = 0
        if done.returncode not in (TRY_LATER, UNKNOWN) or time.monotonic() > deadline:
            return done
        unanswered = True
        time.sleep(0.2)


class ZooKeeper:
    """One ZooKeeper; with `peers`, lines of zoo.cfg, the member of an ensemble that has this number there."""

    def __init__(self, folder, peers="", number=0):
        self.folder, self.port = folder, programs.free_port()
        self.hosts = f"127.0.0.1:{self.port}"
        os.makedirs(os.path.join(folder, "data"))
        if peers:
            with open(os.path.join(folder, "data", "myid"), "w") as file:
                file.write(f"{number}\n")
        with open(os.path.join(folder, "zoo.cfg"), "w") as config:
            config.write(f"tickTime=1000\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
                         f"dataDir={folder}/data\nadmin.enableServer=false\nmaxClientCnxns=0\n"
                         f"4lw.commands.whitelist=ruok,srvr,mntr\n{peers}")
        self.start()

    def said(self, command):
        """The values that the command shows, by name."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as line:
            line.sendall(command.encode())
            return dict(re.findall(r"^(\w+):?\s+(\w+)", line.makefile("r").read(), re.M))

    def requests(self):
        """The numbers of reads, of writes (a multi is one), and of others: pings, syncs, reads of nodes that do not exist."""
        shown = self.said("mntr")
        reads, writes, answered = (int(shown[f"zk_cnt_{name}"]) for name in (
            "firn_read_per_namespace", "updatelatency", "readlatency"))
        return reads, writes, answered - reads

    def mode(self):
        """Its part in the ensemble; empty while it has none."""
        try:
            return self.said("srvr").get("Mode", "")
        except OSError:
            return ""

    def start(self):
        jars = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar"
        with open(os.path.join(self.folder, "log"), "a") as log:
            self.process = programs.start(
                ["java", "-Xmx96m", *builds.QUICK, "-Dzookeeper.jmx.log4j.disable=true", "-cp", jars,
                 "org.apache.zookeeper.server.quorum.QuorumPeerMain", self.folder + "/zoo.cfg"],
                stdout=log, stderr=log)
        patiently("ZooKeeper does not answer", self.serves)  # one of an ensemble, whether it has a leader or not

    def serves(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as asked:
                asked.sendall(b"ruok")
                return asked.recv(4) == b"imok"
        except OSError:
            return False

    def kill(self):
        programs.end(self.process)

    def copy(self):
        """Keeps a copy of its data, for `put_back`."""
        self.kill()
        shutil.rmtree(self.folder + "/copy", ignore_errors=True)
        shutil.copytree(self.folder + "/data", self.folder + "/copy")
        self.start()

    def put_back(self, copy=True):
        """Replaces its data by the copy, or by nothing."""
        self.kill()
        shutil.rmtree(self.folder + "/data")
        shutil.copytree(self.folder + "/copy", self.folder + "/data") if copy else os.mkdir(self.folder + "/data")
        self.start()


class Member:
    """One server, at the same address whenever it runs. A wired one advertises the address of the Wire `wire`."""

    def __init__(self, program, folder, registry, *flags, wired=False):
        self.port, self.admin = programs.free_port(), programs.free_port()
        self.wire = Wire(self.port) if wired else None
        self.state, self.log_path = folder, folder + ".log"
        self.command = [program, f"--listen=127.0.0.1:{self.port}",
                        f"--admin_listen=127.0.0.1:{self.admin}", f"--state_dir={folder}",
                        f"--registry={registry}", "--drain_notice_ms=500", *flags]
        self.address = f"127.0.0.1:{self.port}"
        if self.wire:
            self.address = self.wire.address
            self.command.append(f"--advertise={self.address}")
        self.start()

    def start(self, *more):
        with open(self.log_path, "a") as log:
            self.process = programs.start([*self.command, *more], stderr=log)

    def await_ready(self):
        patiently(f"{self.address} is not ready: see {self.log_path}", self.ready)

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/readyz", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def listed(self):
        """The addresses of the servers that this server lists as ready."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/servers", timeout=5) as answer:
                return {one["address"] for one in json.load(answer)["servers"] if one["state"] == "READY"}
        except (urllib.error.URLError, OSError):
            return set()

    def signal(self, which):
        self.process.send_signal(which)

    def drain(self):
        """Sends SIGTERM, and waits for the end."""
        self.signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)


class Wire:
    """A proxy before a member, which can be cut: then it silently drops all bytes in both directions, and
    accepts new connections without forwarding them."""

    def __init__(self, behind):
        self.behind, self.whole = behind, threading.Event()
        self.whole.set()
        self.door = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.door.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.door.accept()
            except OSError:
                return
            threading.Thread(target=self.join, args=(near,), daemon=True).start()

    def join(self, near):
        self.whole.wait()
        try:
            far = socket.create_connection(("127.0.0.1", self.behind), PATIENCE_S)
        except OSError:
            return near.close()
        far.settimeout(None)
        for one in near, far:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, sink in (near, far), (far, near):
            threading.Thread(target=self.carry, args=(source, sink), daemon=True).start()

    def carry(self, source, sink):
        try:
            while data := source.recv(65536):
                self.whole.wait()
                sink.sendall(data)
        except OSError:
            pass
        for one in source, sink:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.whole.clear()

    def mend(self):
        self.whole.set()

    def close(self):
        self.mend()
        self.door.close()


class Cluster:
    """A context manager; ends all of its processes by their ids. `flags` are the servers', `init` those of `firn init`. If the
    servers are wired, each has a Wire to ZooKeeper, and one before the address that it advertises. `zookeeper`: starts it in
    a folder."""

    def __init__(self, server, firn, folder, workers=16, flags=(), init=(), wired=False, zookeeper=ZooKeeper):
        self.server, self.firn, self.folder, self.workers, self.flags = server, firn, folder, workers, flags
        self.init_flags, self.wired, self.members, self.start_zookeeper = init, wired, [], zookeeper

    def __enter__(self):
        self.zookeeper = self.start_zookeeper(os.path.join(self.folder, "zookeeper"))
        try:
            self.registry = f"zk://{self.zookeeper.hosts}/firn/drill"
            self.init(self.registry)
            for name in "abc":
                self.members.append(self.member(os.path.join(self.folder, name), self.registry))
            for member in self.members:
                member.await_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def member(self, folder, registry):
        if not self.wired:
            return Member(self.server, folder, registry, *self.flags)
        to_zookeeper = Wire(self.zookeeper.port)
        member = Member(self.server, folder, f"zk://{to_zookeeper.address}/firn/drill", *self.flags, wired=True)
        member.to_zookeeper = to_zookeeper
        return member

    def init(self, registry):
        words = [self.firn, "init", "--brand_new", "--force", f"--workers={self.workers}", *self.init_flags,
                 "--registry=" + registry]
        done = again(lambda: subprocess.run(words, stdout=subprocess.DEVNULL), makes=True)
        if done.returncode != 0:
            raise SystemExit(f"firn init exits with {done.returncode}")

    def __exit__(self, *_):
        for member in self.members:
            programs.end(member.process)
            if member.wire:
                member.wire.close()
                member.to_zookeeper.close()
        self.zookeeper.kill()
