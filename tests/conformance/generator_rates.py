#!/usr/bin/python3
"""Measures generators of ids in a program: LocalGenerator under a lease beside other generators of its language.

    generator_rates.py LANGUAGE,... FIRN_SERVER FIRN [--driver PROGRAM] [--rounds N] [--round-ms MS]

One server on this machine grants the leases. In each round every generator of a language makes ids for a moment, in one
process, with 1 thread and then with 8. Prints medians of the rounds as a table in Markdown. `Firn's x` is the median of
Firn's rate divided by the other's in the same round. Before that, each generator's first ids are compared: a repeated id
ends the program. LANGUAGE is python, go, java, typescript, rust, or cpp, whose program is built already: --driver
firn-generators; `all` are these six. Exit 77 when something is not installed, or a registry of packages cannot be reached.
"""

import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import builds

sys.path.insert(0, os.path.join(builds.HERE, "..", "interop"))
import interop
import npm

PROGRAMS = os.path.join(builds.HERE, "generators")
JARS = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
RUST_LEAST = (1, 86)  # of ferroid
FIRN = "firn"
# Of each generator: its name, and the most ids that its layout has for a millisecond.
PEERS = {
    "core": ("Firn's issuing core", "4,096"),
    "cosid": ("CosId `MillisecondSnowflakeId`", "4,096"),
    "hutool": ("Hutool `Snowflake`", "4,096"),
    "bwmarrin": ("bwmarrin/snowflake", "4,096"),
    "sonyflake": ("sonyflake", "25.6"),
    "simple-flakeid": ("simple-flakeid", "4,091, and up to 2 s ahead"),
    "nodejs-snowflake": ("nodejs-snowflake", "1,024"),
    "ferroid": ("ferroid `AtomicSnowflakeGenerator`", "4,096"),
    "snowflake-id": ("snowflake-id", "4,096"),
}
ONE_THREAD = "python", "typescript"


def build_cpp(said, _):
    return [os.path.abspath(said.driver)]


def build_python(_, folder):
    python = builds.install_python(builds.wheel_of(builds.copy("python", folder, planted=False)), folder)
    needs = os.path.join(PROGRAMS, "python", "requirements.txt")
    done = subprocess.run(["/usr/bin/python3", "-m", "pip", "--python", python, "--disable-pip-version-check", "install",
                           "--retries=1", "--require-hashes", "--no-deps", "-r", needs], capture_output=True, text=True)
    if done.returncode:
        interop.skip("pip cannot install the other generator: " + done.stderr[-300:])
    return [python, "-B", os.path.join(PROGRAMS, "python", "generators.py")]


def build_go(_, folder):
    place = os.path.join(PROGRAMS, "go")
    environment = {**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}
    got = subprocess.run(["go", "mod", "download"], cwd=place, env=environment, capture_output=True, text=True)
    if got.returncode:
        interop.skip("no module proxy has the other generators: " + got.stderr[-300:])
    program = os.path.join(folder, "generators")
    builds.run("go", "build", "-o", program, ".", cwd=place, env=environment)
    return [program]


def build_java(_, folder):
    *_, path, _ = builds.build("java", folder)
    jars, place = builds.new(folder, "jars"), os.path.join(PROGRAMS, "java")
    builds.maven(JARS, "-DoutputDirectory=" + jars, cwd=place)
    path = [*path.split(":"), *glob.glob(jars + "/*.jar"), folder]
    builds.javac("17", folder, path, os.path.join(place, "Generators.java"))
    return ["java", "-cp", ":".join(path), "Generators"]


def build_typescript(_, folder):
    place, peers = os.path.join(PROGRAMS, "typescript"), os.path.join(builds.ROOT, "build", "generators")
    npm.install(place, peers)
    program = os.path.dirname(builds.build("typescript", folder)[-1])
    for name in "simple-flakeid", "nodejs-snowflake":
        os.symlink(os.path.abspath(os.path.join(peers, "node_modules", name)), os.path.join(program, "node_modules", name))
    return ["node", shutil.copy(os.path.join(place, "generators.mjs"), program)]


def build_rust(_, folder):
    if builds.version("rustc", "--version") < RUST_LEAST:
        interop.skip("not installed: Rust {}.{} or newer".format(*RUST_LEAST))
    with builds.rust_place() as place:
        builds.cargo("build", "--locked", "--release", cwd=os.path.join(PROGRAMS, "rust"))
        return [shutil.copy(os.path.join(place, "target", "release", "firn-generator-rates"), folder)]


def measure(said, folder):
    """What the programs print, by language and number of threads."""
    commands = {one: globals()["build_" + one](said, builds.new(folder, one)) for one in said.languages}
    server, told = interop.Server(os.path.abspath(said.server), os.path.join(folder, "server")), {}
    try:
        for language, command in commands.items():
            for threads in [1] if language in ONE_THREAD else [1, 8]:
                answer = builds.run(*command, f"firn://127.0.0.1:{server.port}", str(threads), str(said.rounds),
                                    str(said.round_ms))
                told[language, threads] = json.loads(answer.splitlines()[-1])
    finally:
        server.stop()
    return told


def faults_of(told):
    """Sentences about generators that repeated an id."""
    for (language, threads), measured in told.items():
        for name, one in measured.items():
            if one["different"] != one["taken"]:
                yield f"{language}, {name}, {threads} threads: {one['taken']} ids, {one['different']} different ones"


def cells_of(measured, name):
    """Rate, processor time and quotient of one generator with some number of threads."""
    if not measured:
        return "", "", ""
    one, ours = measured[name], measured[FIRN]
    # On a busy machine, a short round may end before the first id.
    quotients = [a / b for a, b in zip(ours["rates"], one["rates"]) if b > 0]
    return (f"{statistics.median(one['rates']):,.0f}", f"{statistics.median(one['cpu']):,.0f}",
            f"{statistics.median(quotients):.2f}" if quotients and name != FIRN else "")


def show(said, told):
    print("| generator | most ids a ms | ids a second, 1 thread | CPU ns an id | Firn's x | ids a second, 8 threads | "
          "CPU ns an id | Firn's x |")
    print("|---" * 8 + "|")
    for language in said.languages:
        one, many = told[language, 1], told.get((language, 8))
        for name in sorted(one, key=lambda name: name != FIRN):
            label, most = (f"**{language}, Firn `LocalGenerator`**", "4,096") if name == FIRN else PEERS[name]
            print("|", " | ".join([label, most, *cells_of(one, name), *cells_of(many, name)]), "|")


def main():
    parser = builds.parser()
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--round-ms", type=int, default=400)
    said = builds.parsed(parser)
    if lacking := builds.missing(*said.languages):
        interop.skip(f"not installed: {', '.join(lacking)}")
    folder = tempfile.mkdtemp(prefix="firn-generators-")
    try:
        told = measure(said, folder)
        show(said, told)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if faults := list(faults_of(told)):
        raise SystemExit("\n".join(faults))


if __name__ == "__main__":
    main()
