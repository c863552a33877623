"""Tests the folder that tools/release makes: it is complete, and everything in it can be installed and used without a network,
from that folder alone.

    release_test.py ROOT FOLDER     FOLDER was filled by make.sh and image.sh; the release is made in FOLDER/published

A server of the Debian package runs in a root of Debian, and the clients of each language take ids from it. The crates that the
Rust client needs, and Maven's plugins, are downloaded the first time.
"""

import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from machine import await_true, in_a_network_of_its_own, programs, skip_unless

ROOT, MADE = (os.path.abspath(path) for path in sys.argv[1:3])
sys.path.insert(0, os.path.join(ROOT, "tests/conformance"))
import builds  # noqa: E402
import npm  # noqa: E402
import pages  # noqa: E402
import rust_package_test  # noqa: E402

PUBLISHED = os.path.join(MADE, "published")
VERSION = builds.VERSION
LISTS = {"SHA256SUMS", f"firn-{VERSION}.spdx.json"}
JAVA = """
public class First {
  public static void main(String[] words) throws Exception {
    try (io.firn.FirnClient client = new io.firn.FirnClient(new io.firn.Options("firn://" + words[0]).deadlineMs(60000))) {
      System.out.println(client.nextId("default"));
    }
  }
}
"""
GO = """
package main

import ("context"; "fmt"; "os"; "time"; firn "MODULE")

func main() {
    client, err := firn.New("firn://"+os.Args[1], firn.Options{Deadline: time.Minute})
    if err != nil { panic(err) }
    id, err := client.NextID(context.Background(), "default")
    if err != nil { panic(err) }
    fmt.Println(id)
}
"""
TYPESCRIPT = """
import { Client } from 'firn-client';
const client = new Client('firn://' + process.argv[2], { deadlineMs: 60000 });
console.log(String(await client.nextId('default')));
client.close();
"""
PYTHON = """
import sys, firn
print(firn.Client("firn://" + sys.argv[1], deadline_ms=60000).next_id("default"))
"""
SERVER = "127.0.0.1:7609"  # of the package's flags, and of the crate's page
NEXT = ("firn", "next", "--servers=list://" + SERVER)


def published(pattern):
    path, = glob.glob(os.path.join(PUBLISHED, pattern), recursive=True)
    return path


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)} exits with {done.returncode}:\n{done.stdout}")
    return done.stdout


def inside(root, *command):
    """A command in a root of Debian, whose /proc and /dev are mounted for it alone."""
    return ["unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc"; mount --bind /dev "$0/dev"; exec chroot "$0" '
            'env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"', root, *command]


def write(text, *path):
    with open(os.path.join(*path), "w") as file:
        file.write(text)
    return file.name


def make():
    """Makes the release, and downloads what its users would have in their registries."""
    shutil.rmtree(PUBLISHED, ignore_errors=True)
    done = subprocess.run([os.path.join(ROOT, "tools/release"), "--made", PUBLISHED])
    skip_unless(done.returncode != 77, "a registry cannot be reached")
    if done.returncode:
        sys.exit(done.returncode)
    with builds.rust_place() as place:
        builds.cargo("fetch", cwd=rust_project(place))


def rust_project(place):
    unpacked = rust_package_test.unpacked_below(place, published("*.crate"))
    return rust_package_test.project(place, unpacked, SERVER, SERVER, SERVER)


class ReleaseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="firn-release-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.root = builds.new(cls.folder, "root")
        run("tar", "-C", cls.root, "-xf", os.path.join(MADE, "machine.tar"))
        debs = [published(f"{name}_*.deb") for name in ("firn-server", "firn-tools", "firn-thrift")]
        for deb in debs:
            shutil.copy(deb, cls.root)
        run(*inside(cls.root, "dpkg", "--install", *("/" + os.path.basename(deb) for deb in debs)))
        with open(os.path.join(cls.folder, "log"), "w+") as log:
            server = programs.start(inside(cls.root, "firn-server", "--embedded", "--state_dir=/var/lib/firn"), stderr=log)
            cls.addClassCleanup(programs.end, server)
            await_true("an id", cls.serves, log.read)

    @classmethod
    def serves(cls):
        return subprocess.run(inside(cls.root, *NEXT), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    def check_id(self, said):
        self.assertRegex(said.strip().splitlines()[-1], r"^\d{15,19}\b")

    def check_programs(self, root):
        for program in "firn-server", "firn":
            self.assertIn(VERSION, run(*inside(root, program, "--version")))
        self.check_id(run(*inside(root, *NEXT)))

    # --- the folder ---------------------------------------------------------------------------------

    def files(self):
        return {os.path.relpath(os.path.join(at, name), PUBLISHED) for at, _, names in os.walk(PUBLISHED) for name in names}

    def test_checksums_are_those_of_all_files(self):
        run("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS", cwd=PUBLISHED)
        with open(published("SHA256SUMS")) as file:
            self.assertEqual({line.split("  ")[1].strip() for line in file}, self.files() - {"SHA256SUMS"})

    def test_every_file_has_the_version(self):
        for name in self.files() - LISTS:
            self.assertRegex(name, rf"{re.escape(VERSION)}[^/]*$|@v/list$")

    def test_bill_of_materials_lists_all_files_and_the_packages_of_the_image(self):
        with open(published("*.spdx.json")) as file:
            packages = json.load(file)["packages"]
        digests = {one["packageFileName"]: one["checksums"][0]["checksumValue"] for one in packages if "checksums" in one}
        self.assertEqual(self.files() - LISTS, set(digests))
        for name, digest in digests.items():
            with open(os.path.join(PUBLISHED, name), "rb") as file:
                self.assertEqual(hashlib.sha256(file.read()).hexdigest(), digest)
        installed = {one["name"]: one["versionInfo"] for one in packages if "versionInfo" in one}
        self.assertIn(VERSION + "~deb", installed["firn-server"])

    def test_source_is_this_version(self):
        said = run("tar", "-xzOf", published(f"firn-{VERSION}.tar.gz"), f"firn-{VERSION}/CMakeLists.txt")
        self.assertIn(f"VERSION {VERSION} ", said)

    # --- what is installed --------------------------------------------------------------------------

    def test_debian_packages(self):
        self.check_programs(self.root)

    def test_development_package(self):
        place = builds.new(self.folder, "dev")
        for name in "libfirn-dev", "firn-thrift":
            run("dpkg-deb", "--extract", published(f"{name}_*.deb"), place)
        config = os.path.dirname(*glob.glob(f"{place}/usr/lib/**/firn-client.pc", recursive=True))
        flags = run("pkg-config", f"--define-variable=prefix={place}/usr", "--cflags", "--libs", "firn-client",
                    env={**os.environ, "PKG_CONFIG_PATH": config}).split()
        program = os.path.join(place, "list")
        run("g++", "-std=c++20", os.path.join(ROOT, "tests/install/client_consumer/list_client.cc"), "-o", program, *flags)
        self.assertIn("127.0.0.1:1 unreachable", run(program))

    def test_image(self):
        storage = ["--root", f"{self.folder}/storage", "--runroot", f"{self.folder}/run", "--storage-driver", "vfs"]
        name = run("buildah", *storage, "from", f"oci-archive:{published('*-image-*.tar')}").splitlines()[-1]
        self.addCleanup(run, "buildah", *storage, "rm", name)
        self.check_programs(run("buildah", *storage, "mount", name).strip())

    def test_python(self):
        place = builds.new(self.folder, "python")
        run("/usr/bin/python3", "-m", "venv", "--without-pip", place + "/venv")
        python = place + "/venv/bin/python"
        run("/usr/bin/python3", "-m", "pip", "--python", python, "--disable-pip-version-check", "install", "--no-index",
            "--find-links", PUBLISHED, "firn-client==" + VERSION)
        self.check_id(run(python, "-c", PYTHON, SERVER))

    def test_typescript(self):
        place = builds.new(self.folder, "typescript")
        write('{"name": "project", "version": "1.0.0", "private": true}', place, "package.json")
        npm.run_npm(place, "install", "--offline", published("firn-client-*.tgz"), local=True)
        self.check_id(run("node", write(TYPESCRIPT, place, "first.mjs"), SERVER))

    def test_java(self):
        place = builds.new(self.folder, "java")
        jar = published(f"maven/io/firn/firn-client/{VERSION}/firn-client-{VERSION}.jar")
        self.check_id(run("java", *builds.QUICK, "-cp", jar, write(JAVA, place, "First.java"), SERVER))
        for name in "firn-client", "firn-spring-boot-starter":
            for end in ".jar", "-sources.jar", "-javadoc.jar", ".pom":
                published(f"maven/io/firn/{name}/{VERSION}/{name}-{VERSION}{end}")
        published(f"maven/io/firn/firn-parent/{VERSION}/firn-parent-{VERSION}.pom")

    def test_go(self):
        place = builds.new(self.folder, "go")
        write(GO.replace("MODULE", builds.GO_MODULE), place, "main.go")
        environment = {**builds.go_environment(place), "GOPROXY": f"file://{PUBLISHED}/go", "GOSUMDB": "off",
                       "GOFLAGS": "-mod=mod -modcacherw"}
        run("go", "mod", "init", "project", cwd=place, env=environment)
        run("go", "get", f"{builds.GO_MODULE}@v{VERSION}", cwd=place, env=environment)
        self.check_id(run("go", "run", ".", SERVER, cwd=place, env=environment))
        with zipfile.ZipFile(published(f"go/**/go-leased/@v/v{VERSION}.zip")) as module:
            text = module.read(next(name for name in module.namelist() if name.endswith("/go.mod"))).decode()
        self.assertIn(f"{builds.GO_MODULE} v{VERSION}\n", text)

    def test_rust(self):
        with builds.rust_place() as place:
            builds.cargo("build", "--offline", "--bin", "first", cwd=rust_project(place))
            first = shutil.copy(os.path.join(place, "target/debug/first"), self.folder)
        self.check_id(pages.run(first).stdout.partition("\n")[0])


if __name__ == "__main__":
    skip_unless(os.path.exists(os.path.join(MADE, "oci.tar")), "the image could not be made")
    if lacking := builds.missing("python", "go", "java", "typescript", "rust", more=("buildah", "pkg-config")):
        skip_unless(False, f"not installed: {', '.join(lacking)}")
    if os.environ.get("FIRN_OWN_NETWORK") is None:
        make()
    in_a_network_of_its_own(os.path.join(MADE, "oci.tar"))
    unittest.main(argv=sys.argv[:1], verbosity=2)
