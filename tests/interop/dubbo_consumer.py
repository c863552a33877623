"""Real consumers of Dubbo: the packages that Maven fetches, and the programs of dubbo/java."""

import fcntl
import filecmp
import glob
import os
import shutil
import socket
import subprocess
import sys
import tempfile

import interop
import programs

sys.path.insert(0, os.path.join(interop.HERE, "..", "conformance"))
import builds

SOURCES = os.path.join(interop.HERE, "dubbo", "java")
INTERFACE = os.path.join(interop.HERE, "..", "..", "client", "java", "firn-client", "src", "main", "java", "io", "firn",
                         "IdService.java")
# With Java 17, consumers need both to read exceptions and dates.
OPENS = ["--add-opens", "java.base/java.lang=ALL-UNNAMED", "--add-opens", "java.base/java.math=ALL-UNNAMED"]
UNREACHABLE = ("Unknown host", "Connection refused", "Connect timed out", "Network is unreachable",
               "Connection timed out", "Temporary failure in name resolution", "Could not transfer artifact")


def fetch(version, folder):
    """Fetches the packages. Returns their class path."""
    jars = os.path.join(folder, version)
    os.makedirs(jars, exist_ok=True)
    wanted = os.path.join(interop.HERE, "dubbo", version, "pom.xml")
    with open(os.path.join(jars, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = os.path.join(jars, "pom.xml")
        if not os.path.exists(done) or not filecmp.cmp(wanted, done, shallow=False):
            for old in glob.glob(jars + "/*.jar"):
                os.unlink(old)
            copied = subprocess.run(["mvn", "-q", "-B", "-f", wanted, "dependency:copy-dependencies",
                                     "-DoutputDirectory=" + jars], capture_output=True, text=True)
            if copied.returncode != 0:
                if any(word in copied.stdout for word in UNREACHABLE):
                    interop.skip("the packages of Dubbo cannot be fetched")
                raise SystemExit("mvn failed:\n" + copied.stdout + copied.stderr)
            shutil.copy(wanted, done)
    return jars + "/*"


def class_path(version, packages, classes):
    """The class path of the programs of dubbo/java, which it compiles into `classes`. The packages that
    dubbo/VERSION/pom.xml names are copied into `packages`, unless they are there already. Ends the test as skipped
    if they cannot be fetched, or a tool is not installed."""
    for tool in "java", "javac", "mvn":
        if not shutil.which(tool):
            interop.skip(f"{tool} is not installed")
    path = fetch(version, packages)
    sources = [INTERFACE, *glob.glob(SOURCES + "/**/*.java", recursive=True)]
    subprocess.run(["javac", "-nowarn", "-proc:none", "-Xlint:none", "-cp", path, "-d", classes, *sources], check=True)
    return path + ":" + classes


def java(path, hosts, program, *words, quick=builds.QUICK):
    """The command that runs a program of the class path. `hosts` is a file for it; `quick`: flags of Java for a short
    run."""
    with open(hosts, "w") as file:
        file.write(f"127.0.0.1 {socket.gethostname()} localhost\n")
    # Dubbo replaces 127.0.0.1 by an address of the host, unless the host has no other.
    network = ["-Ddubbo.network.interface.ignored=.*", "-Djdk.net.hosts.file=" + hosts,
               "-Djava.net.preferIPv4Stack=true"]
    return ["java", *OPENS, *network, *quick, "-Xmx256m", "-cp", path, program, *words]


class Consumer:
    """A program with Dubbo, which answers one line for each command."""

    def __init__(self, path, folder, *where, environment=None, pin=lambda command: command, quick=builds.QUICK):
        self.log = os.path.join(folder, f"consumer-{'-'.join(where).replace('/', '_')}.log")
        with open(self.log, "w") as log:
            self.process = programs.start(
                pin(java(path, os.path.join(folder, "hosts"), "DubboConsumer", *where, quick=quick)),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder,
                env={**os.environ, **(environment or {})})
        self.expect("ready")

    def expect(self, line):
        while (read := self.process.stdout.readline().strip()) != line:
            if not read and self.process.poll() is not None:
                with open(self.log) as log:
                    raise SystemExit("the consumer ended:\n" + log.read()[-4000:])

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        while (line := self.process.stdout.readline()):
            if line.startswith("> "):
                return line[2:].rstrip("\n")
        raise SystemExit(f"no answer to '{command}'; see {self.log}")

    def end(self):
        programs.end(self.process)


def main(case, *programs):
    """Runs the case with the arguments FIRN_SERVER FIRN VERSION FOLDER, or skips it; sets case.path."""
    version, packages = sys.argv[3:5]
    del sys.argv[3:5]
    if not os.path.exists("/usr/share/java/zookeeper.jar"):
        interop.skip("ZooKeeper (libzookeeper-java) is not installed")
    with tempfile.TemporaryDirectory(prefix="firn-dubbo-") as classes:
        case.path = class_path(version, packages, classes)
        interop.main(case, *programs)
