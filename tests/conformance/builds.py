"""Builds the clients under test as a user would: from copies, without network access."""

import argparse
import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
DRIVERS = os.path.join(HERE, "drivers")
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "tests", "interop")]
import npm

JARS = ["/usr/share/java/" + name + ".jar"
        for name in ("thrift", "slf4j-api", "slf4j-nop", "geronimo-annotation-1.3-spec")]
# Short programs: the optimizing just-in-time compiler would take more time than it saves.
QUICK = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
PYTHON_BUILD = "/usr/lib/python3/dist-packages/build"
GO_LEAST = (1, 22)
with open(os.path.join(ROOT, "client", "go", "go.mod")) as go_mod:
    GO_MODULE = go_mod.readline().split()[1]
with open(os.path.join(ROOT, "CMakeLists.txt")) as project:
    VERSION = re.search(r"VERSION ([0-9.]+)", project.read().partition("project(")[2])[1]
NODE_LEAST = (20,)
RUST_LEAST = (1, 75)
GO_THRIFT = "/usr/share/gocode/src/github.com/apache/thrift/lib/go/thrift"
NODE_PACKAGES = os.path.join(ROOT, "build", "typescript", "node_modules")
COMPILER = os.path.join(NODE_PACKAGES, "typescript", "bin", "tsc")

# Words of cargo and Maven when they cannot fetch a package.
UNREACHABLE = ("Could not resolve host", "Could not connect", "Connection refused", "Timeout was reached",
               "failed to download from", "spurious network error", "failed to fetch", "Unknown host",
               "Connect timed out", "Could not transfer artifact", "Network is unreachable")

# Planted faults: file of the client, text there, its replacement, the row that must fail.
PLANTS = {
    "cpp": (None, None, None, "too few ids, or a duplicate"),
    "python": ("firn/ask.py", "return f\"it gave {len(answer)} ids, not {self.count}\"",
               "return None", "too few ids, or a duplicate"),
    "java": ("firn-client/src/main/java/io/firn/Ask.java", "if (hasDuplicates(answer)) {",
             "if (answer.length > ask.number) {", "too few ids, or a duplicate"),
    "go": ("codec.go", "if len(ids) != count {", "if len(ids) > count {",
           "too few ids, or a duplicate"),
    "typescript": ("src/asks.ts", "if (ids.length !== count) return", "if (ids.length > count) return",
                   "too few ids, or a duplicate"),
    "rust": ("src/layout.rs", "if ids.len() as i64 != count {", "if ids.len() as i64 > count {",
             "too few ids, or a duplicate"),
}


def copy(language, folder, planted):
    """The client's folder and the contract, as they lie in the tree; the folder of the copy."""
    client = os.path.join(folder, "client", language)
    shutil.copytree(os.path.join(ROOT, "client", language), client,
                    ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache"))
    shutil.copytree(os.path.join(ROOT, "thrift"), os.path.join(folder, "thrift"))
    if planted:
        name, before, after, _ = PLANTS[language]
        with open(os.path.join(client, name)) as file:
            text = file.read()
        if text.count(before) != 1:
            raise SystemExit(f"the fault cannot be planted: '{before}' is not once in {name}")
        with open(os.path.join(client, name), "w") as file:
            file.write(text.replace(before, after))
    return client


def planted_in(client, language):
    """Returns whether the copy has the planted fault."""
    name, _, after, _ = PLANTS[language]
    with open(os.path.join(client, name)) as file:
        return after in file.read()


def run(*command, **options):
    """Runs a step of a build; prints its output if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}")
    return done.stdout


def build_python(client, folder, of):
    """The wheel, installed into an empty environment; `rates` also has a bare stub, and Debian's Thrift."""
    if of != "rates":
        return [install_python(wheel_of(client), folder), "-B", os.path.join(DRIVERS, of + ".py")]
    python = install_python(wheel_of(client), folder, "--system-site-packages")
    stubs = new(folder, "bare", "stubs")
    run("thrift", "--gen", "py:package_prefix=stubs.", "-out", stubs, os.path.join(folder, "thrift", "firn.thrift"))
    return ["env", "PYTHONPATH=" + os.path.dirname(stubs), python, "-B", os.path.join(DRIVERS, of + ".py")]


def wheel_of(client):
    """Packs the Python client by `python -m build`: a source package, and the wheel from that; the wheel."""
    run("/usr/bin/python3", "-m", "build", "--no-isolation", cwd=client)
    wheel, = [name for name in os.listdir(os.path.join(client, "dist")) if name.endswith(".whl")]
    return os.path.join(client, "dist", wheel)


def install_python(wheel, folder, *more):
    """A new environment with the wheel; its interpreter."""
    venv = os.path.join(folder, "venv")
    run("/usr/bin/python3", "-m", "venv", "--without-pip", *more, venv)
    python = os.path.join(venv, "bin", "python")
    run("/usr/bin/python3", "-m", "pip", "--python", python, "--disable-pip-version-check",
        "install", "--no-index", wheel, env={"PATH": os.path.join(venv, "bin"), "HOME": folder})
    return python


def thrift_for_go(folder):
    """Debian's Thrift for Go as a module; its folder."""
    module = os.path.join(folder, "thrift-module")
    shutil.copytree(GO_THRIFT, os.path.join(module, "lib", "go", "thrift"),
                    ignore=shutil.ignore_patterns("*_test.go"))
    with open(os.path.join(module, "go.mod"), "w") as file:
        file.write("module github.com/apache/thrift\n\ngo 1.19\n")
    return module


def new(*path):
    """Returns a new folder."""
    folder = os.path.join(*path)
    os.makedirs(folder)
    return folder


def build_go(client, folder, of):
    """As a program of its own that needs the client's module."""
    program = os.path.join(folder, "driver")
    shutil.copytree(os.path.join(DRIVERS, "go", of), program)
    with open(os.path.join(program, "go.mod"), "w") as file:
        file.write(f"module driver\n\ngo 1.22\n\nrequire {GO_MODULE} v0.0.0\nreplace {GO_MODULE} => {client}\n")
        if of == "rates":
            file.write("require github.com/apache/thrift v0.0.0\n"
                       f"replace github.com/apache/thrift => {thrift_for_go(folder)}\n")
    if of == "rates":  # beside a bare stub
        run("thrift", "--gen", "go:package_prefix=driver/gen/,skip_remote", "-out", new(program, "gen"),
            os.path.join(folder, "thrift", "firn.thrift"))
    run("go", "build", "-o", "run", ".", cwd=program, env=go_environment(folder))
    return [os.path.join(program, "run")]


def build_java(client, folder, of, fast=False):
    """The jar of Maven's build, and a driver beside it. `rates` has a bare stub as well, with Debian's Thrift."""
    maven("package", "-pl", "firn-client", "-Dmaven.test.skip=true", "-Dmaven.source.skip=true",
          "-Dmaven.javadoc.skip=true", cwd=client)
    path, sources = [java_jar(os.path.join(folder, "build", "java", "firn-client"))], []
    if of == "rates":
        sources = [new(folder, "stubs")]
        run("thrift", "--gen", "java", "-out", *sources, os.path.join(folder, "thrift", "firn.thrift"))
        path += JARS
    driver = os.path.join(folder, "driver")
    javac("11", driver, path, os.path.join(DRIVERS, "java", of.capitalize() + ".java"), *sources)
    quick = [] if fast or of == "rates" else QUICK
    return ["java", *quick, "-cp", ":".join([driver, *path]), of.capitalize()]


def java_jar(folder):
    """The jar of classes in a folder that may have those of sources and documentation too."""
    jar, = [name for name in os.listdir(folder) if re.fullmatch(r"[a-z-]+-[\d.]+\.jar", name)]
    return os.path.join(folder, jar)


def maven(*arguments, cwd, repository=None):
    """Runs Maven, with network access only if something was not downloaded yet. Exits as skipped if it reaches no
    registry. With `repository`, an empty one is filled from the user's, without network access."""
    options = ["-B", "-ntp"]
    if repository:
        options += ["-s", maven_settings(repository), "-Dmaven.repo.local=" + repository]
    environment = {**os.environ, "MAVEN_OPTS": " ".join(QUICK)}
    with place_of("java"):  # Maven's repository may have one writer at a time
        for network in ([],) if repository else (["-o"], []):
            done = subprocess.run(["mvn", *options, *network, *arguments], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, cwd=cwd, env=environment)
            if not (done.returncode and network and "offline mode" in done.stdout):
                break
    return output_of("mvn", arguments, done)


def output_of(program, arguments, done):
    """The output of a program that fetches packages. Exits if it failed, as skipped if it reached no registry."""
    if done.returncode and (cause := next((one for one in UNREACHABLE if one in done.stdout), None)):
        print(f"skipped: {program} reaches no registry ({cause})")
        sys.exit(77)
    if done.returncode:
        raise SystemExit(f"{program} {' '.join(arguments)} failed:\n{done.stdout}")
    return done.stdout


def maven_settings(repository):
    """A file of settings in which what the user's repository has takes the place of Maven Central."""
    file = repository + "-settings.xml"
    with open(file, "w") as settings:
        settings.write("<settings><mirrors><mirror><id>cached</id><mirrorOf>*</mirrorOf><url>file://"
                       + os.path.expanduser("~/.m2/repository") + "</url></mirror></mirrors></settings>\n")
    return file


def build_typescript(client, folder, of, check=("--noCheck", "--declaration", "false")):
    """The modules of the client, and a program that imports it by its name. The types are checked only in a test of
    its own, where `check` is empty."""
    with open(os.path.join(client, "package.json")) as file:
        name = json.load(file)["name"]
    os.symlink(node_packages(), os.path.join(folder, "node_modules"))
    run("node", COMPILER, *check, cwd=client)
    program = os.path.join(folder, "driver")
    shutil.copytree(os.path.join(DRIVERS, "typescript"), program)
    modules = os.path.join(program, "node_modules")
    os.makedirs(os.path.dirname(os.path.join(modules, name)))
    os.symlink(client, os.path.join(modules, name))
    run("node", COMPILER, *check, cwd=program)
    return ["node", os.path.join(program, of + ".js")]


def node_packages():
    """The development packages of the TypeScript client, which are installed once; their folder."""
    npm.install(os.path.join(ROOT, "client", "typescript"), os.path.dirname(NODE_PACKAGES))
    return NODE_PACKAGES


def javac(release, out, path, *places):
    """Compiles files, and all files of folders."""
    sources = [place for place in places if os.path.isfile(place)]
    sources += [os.path.join(at, name) for folder in places
                for at, _, names in os.walk(folder) for name in names if name.endswith(".java")]
    run("javac", *("-J" + flag for flag in QUICK), "--release", release, "-nowarn", "-proc:none",
        "-Xlint:none", "-encoding", "UTF-8", "-cp", ":".join(path), "-d", out, *sources)


def build_rust(client, folder, of, fast=False):
    """As an example of the client's package. The crates that it needs are compiled once below build/, because
    compiling them takes a minute."""
    with rust_place() as place:
        # New files each time: cargo takes a copy with a planted fault and one without for the same package, and
        # would not notice that a file is older again.
        package = os.path.join(place, "planted" if planted_in(client, "rust") else "package")
        shutil.rmtree(package, ignore_errors=True)
        shutil.copytree(client, package, copy_function=shutil.copy)
        shutil.copy(os.path.join(DRIVERS, "rust", of + ".rs"), os.path.join(package, "examples"))
        profile = ["--release"] if fast or of == "rates" else []
        cargo("build", "--locked", "--all-features", "--example", of, *profile, cwd=package)
        built = os.path.join(place, "target", "release" if profile else "debug", "examples", of)
        return [shutil.copy(built, os.path.join(folder, of))]


def rust_place():
    """The folder of cargo's output, which is this program's alone meanwhile."""
    return place_of("rust")


@contextlib.contextmanager
def place_of(language):
    """A folder below build/, which is this program's alone meanwhile."""
    place = os.path.join(ROOT, "build", language)
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


def cargo(*arguments, cwd):
    """Runs cargo with its output below build/. Exits as skipped if it needs a crate and reaches no registry."""
    environment = {**os.environ, "CARGO_TARGET_DIR": os.path.join(ROOT, "build", "rust", "target"),
                   "CARGO_INCREMENTAL": "0", "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_NET_RETRY": "1",
                   "CARGO_BUILD_JOBS": "1", "CARGO_TERM_COLOR": "never"}
    done = subprocess.run(["cargo", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, cwd=cwd, env=environment)
    return output_of("cargo", arguments, done)


def go_environment(folder):
    """An environment without network access, which reuses earlier compilations."""
    return {**os.environ, "GOPROXY": "off", "GOFLAGS": "-mod=mod -trimpath", "GOTOOLCHAIN": "local",
            "GOPATH": os.path.join(folder, "gopath")}


def languages(text):
    """The languages that a command line names: one, some with commas between them, or `all`."""
    chosen = list(PLANTS) if text == "all" else text.split(",")
    if unknown := set(chosen) - set(PLANTS):
        raise argparse.ArgumentTypeError(f"no client speaks {', '.join(unknown)}")
    return chosen


def parser():
    """The arguments of a program that runs clients on real servers."""
    made = argparse.ArgumentParser()
    made.add_argument("languages", type=languages)
    made.add_argument("server")
    made.add_argument("firn")
    made.add_argument("--driver")
    return made


def parsed(by):
    said = by.parse_args()
    if "cpp" in said.languages and not said.driver:
        by.error("cpp needs --driver")
    return said


def missing(*chosen, more=()):
    """The missing packages for the languages and `more`; empty if none is missing."""
    needs = {"python": ("pip3", PYTHON_BUILD), "go": ("go", GO_THRIFT), "java": ("javac", "mvn", *JARS),
             "typescript": ("node", "npm"),
             "rust": ("cargo", "rustc")}
    tools = ["thrift", *more, *(tool for one in chosen for tool in needs.get(one, ()))]
    lacking = [tool for tool in tools if not shutil.which(tool) and not os.path.exists(tool)]
    if "go" in chosen and "go" not in lacking and version("go", "version") < GO_LEAST:
        lacking.append(f"go {'.'.join(map(str, GO_LEAST))} or newer")
    if "typescript" in chosen and "node" not in lacking and version("node", "--version") < NODE_LEAST:
        lacking.append(f"node {NODE_LEAST[0]} or newer")
    if "rust" in chosen and "rustc" not in lacking and version("rustc", "--version") < RUST_LEAST:
        lacking.append(f"Rust {'.'.join(map(str, RUST_LEAST))} or newer")
    return lacking


def version(*command):
    """The first two numbers of what a program prints as its version."""
    return tuple(map(int, re.search(r"(\d+)\.(\d+)", run(*command)).groups()))


def build(language, folder, planted=False, of="driver", **more):
    """The command of a program of the language's drivers (`driver`, `rates`), over a client that was
    built in `folder`. `fast=True`, of Java and Rust: it is optimized, which takes longer."""
    return globals()["build_" + language](copy(language, folder, planted), folder, of, **more)
