#!/usr/bin/python3
"""Builds and installs the Java packages by Maven, and uses them in projects of their own, as users would.

    java_package_test.py FIRN_SERVER FIRN

Their unit tests run. A project takes ids from three real servers, which are killed and paused in turn. Programs of Spring
Boot 3.5 and 4.0 store rows, whose identifiers come from a real server. Exit 77 when something is not installed, or
Maven reaches no registry.
"""

import json
import os
import re
import shutil
import time
import unittest
import urllib.error
import urllib.request
import zipfile
from xml.etree import ElementTree

import builds
import cluster
import drill
import interop
import pages
import web

SAMPLES = os.path.join(builds.HERE, "samples", "java")
GROUP = "io/firn"
MINE = os.path.expanduser("~/.m2/repository/" + GROUP)
SPACE = {"": "http://maven.apache.org/POM/4.0.0"}
STARTUP_S = 300  # of a program of Spring Boot on a busy machine
RETURN_S = 10  # a lease that is not given back lasts 15 s
PACKAGES = "firn-client", "firn-spring-boot-starter"
BOOT = {"3.5.7": "mybatis-plus-spring-boot3-starter", "4.0.7": "mybatis-plus-spring-boot4-starter"}


def page_program(page, name):
    """The program on the page that has the class."""
    return next(block for block in pages.blocks(page) if f"class {name} " in block)


class PackageTest(unittest.TestCase):
    program = firn = folder = None

    @classmethod
    def setUpClass(cls):
        cls.packing = builds.new(cls.folder, "packing")
        cls.client = builds.copy("java", cls.packing, planted=False)
        tables = builds.new(cls.packing, "tests", "contract")
        for name in "frames.json", "jumps.json", "lessees.json":
            shutil.copy(os.path.join(builds.ROOT, "tests", "contract", name), tables)
        cls.repository = os.path.join(cls.folder, "repository")
        if not os.path.exists(MINE):  # what the user has installed stays
            cls.addClassCleanup(shutil.rmtree, MINE, ignore_errors=True)
        cls.said = builds.maven("install", cwd=cls.client)
        builds.maven("install", "-DskipTests", cwd=cls.client, repository=cls.repository)

    def artifact(self, name, end):
        folder = os.path.join(self.repository, GROUP, name)
        version, = [one for one in os.listdir(folder) if os.path.isdir(os.path.join(folder, one))]
        return os.path.join(folder, version, f"{name}-{version}{end}")

    def pom(self, name):
        return ElementTree.parse(self.artifact(name, ".pom")).getroot()

    def test_unit_tests_ran(self):
        ran = sum(map(int, re.findall(r"Tests run: (\d+), Failures: 0, Errors: 0, Skipped: 0$", self.said, re.MULTILINE)))
        self.assertGreater(ran, 60, self.said)

    def test_packages_have_what_maven_central_requires(self):
        parent = self.pom("firn-parent")
        for path in ("name", "description", "url", "licenses/license/name", "developers/developer/name",
                     "scm/connection", "scm/url"):
            self.assertTrue(parent.find(path, SPACE).text, path)
        for name in PACKAGES:
            self.assertTrue(self.pom(name).find("description", SPACE).text)
            for end, member in ((".jar", "META-INF/LICENSE"), ("-javadoc.jar", "index.html"),
                                ("-sources.jar", "io/firn/")):
                with zipfile.ZipFile(self.artifact(name, end)) as jar:
                    self.assertIn(member, jar.namelist())

    def test_every_package_has_the_group_of_the_parent(self):
        group = self.pom("firn-parent").find("groupId", SPACE).text
        for name in PACKAGES:
            self.assertEqual(self.pom(name).find("parent/groupId", SPACE).text, group)

    def test_client_brings_no_dependencies(self):
        for one in self.pom("firn-client").iterfind("dependencies/dependency", SPACE):
            scope, optional = one.find("scope", SPACE), one.find("optional", SPACE)
            self.assertTrue((scope is not None and scope.text == "test") or optional is not None)

    def test_build_writes_below_build_only(self):
        self.assertEqual([at for at, folders, _ in os.walk(self.client) if "target" in folders], [])
        self.assertTrue(os.path.isdir(os.path.join(self.packing, "build", "java", "firn-client")))

    # --- a project --------------------------------------------------------------------------------

    def test_project_takes_ids_while_servers_are_killed_and_paused(self):
        place = builds.new(self.folder, "drill")
        with cluster.Cluster(self.program, self.firn, builds.new(place, "servers")) as servers:
            address = "firn://" + servers.members[0].address
            java = self.project(servers.members[0].address)
            self.assertEqual(builds.run(*java, "Kinds", address), "all different\nUNKNOWN_TAG\nfrom memory\n")
            done = pages.run(*java, "Ids")
            self.assertEqual(done.returncode, 0, done.stderr)
            ids = re.findall(r"\b\d{15,19}\b", done.stdout)
            self.assertEqual((len(ids), len(set(ids))), (101, 101))
            self.assertRegex(builds.run(*java, "Leased"), r"^\d{15,19}\n\d+ until 20\S+Z\n$")
            self.assertIn("from memory: 4000", builds.run(*java, "Example", address))
            play = drill.Drill(servers, [*java, "Driver"], drill.GENEROUS, place)
            play.rounds = 1
            for scenario in "quiet", "killed", "storm":
                play.play(scenario)
            play.end()
            self.assertFalse(play.failed)

    def project(self, address):
        """The command of the programs of a project that needs the client: the page's, the example, and a driver."""
        made = os.path.join(self.folder, "project")
        shutil.copytree(os.path.join(SAMPLES, "project"), made)
        sources = os.path.join(made, "src", "main", "java")
        for page, name in ("README", "Ids"), ("LEASES", "Leased"):
            with open(os.path.join(sources, name + ".java"), "w") as file:
                file.write(page_program(f"client/java/{page}.md", name).replace("127.0.0.1:7609", address))
        shutil.copy(os.path.join(self.client, "example", "Example.java"), sources)
        shutil.copy(os.path.join(builds.DRIVERS, "java", "Driver.java"), sources)
        builds.maven("compile", cwd=made, repository=self.repository)
        path = os.path.join(made, "target", "classes") + ":" + self.artifact("firn-client", ".jar")
        return ["java", *builds.QUICK, "-cp", path]

    def test_the_web_service_of_the_page_serves_ids(self):
        folder, port = builds.new(self.folder, "web"), interop.programs.free_port()
        server = interop.Server(self.program, os.path.join(folder, "server"))
        source = os.path.join(folder, "Orders.java")
        with open(source, "w") as file:
            file.write(web.program("client/java/README.md", "HttpServer", server, port))
        web.check(["java", *builds.QUICK, "-cp", self.artifact("firn-client", ".jar"), source], port, server)

    # --- Spring Boot ------------------------------------------------------------------------------

    def test_the_starter_works_with_spring_boot_3(self):
        self.check_spring_boot("3.5.7")

    def test_the_starter_works_with_spring_boot_4(self):
        self.check_spring_boot("4.0.7")

    def check_spring_boot(self, version):
        folder = os.path.join(self.folder, "boot-" + version)
        shutil.copytree(os.path.join(SAMPLES, "boot"), folder)
        with open(os.path.join(folder, "pom.xml"), "r+") as file:
            text = file.read().replace("BOOT", version).replace("MYBATIS", BOOT[version])
            file.seek(0)
            file.write(text)
            file.truncate()
        controller = page_program("client/java/firn-spring-boot-starter/README.md", "Orders")
        with open(os.path.join(folder, "src", "main", "java", "sample", "Orders.java"), "w") as file:
            file.write("package sample;\n\n" + controller.replace('"order"', '"default"'))
        builds.maven("package", "-DskipTests", cwd=folder)
        server = interop.Server(self.program, os.path.join(folder, "server"))
        command = ["java", *builds.QUICK, "-jar", os.path.join(folder, "target", "boot-1.jar"),
                   f"--firn.servers=firn://127.0.0.1:{server.port}"]
        log_path = os.path.join(folder, "log")
        try:
            self.check_leased_program(command, server)
            with open(log_path, "w") as log:
                app = cluster.programs.start(command, stdout=log, stderr=log)
            try:
                self.check_program(app, log_path, server)
            finally:
                cluster.programs.end(app)
        finally:
            cluster.programs.end(server.process)

    def check_leased_program(self, command, server):
        """Without a tag, identifiers have the machine id of the lease, which ends with the program."""
        said = builds.run(*command, "--firn.lease.name=sample", "--firn.lease.timeout=60s",
                          "--spring.main.web-application-type=none")
        machine = int(re.search(r"^machine (\d+)$", said, re.MULTILINE)[1])
        for name, count in ("hibernate", 10), ("mybatis", 10):
            ids = {int(one) for one in re.findall(rf"^{name} (\d{{15,19}})$", said, re.MULTILINE)}
            self.assertEqual((len(ids), {one >> 12 & 0x3ff for one in ids}), (count, {machine}), said)
        self.assertNotEqual(int(re.search(r"^client (\d+)$", said, re.MULTILINE)[1]) >> 12 & 0x3ff, machine)
        self.await_return(f"http://127.0.0.1:{server.admin_port}/v1/leases")

    def await_return(self, url):
        """The program gave its lease back; the server lists it until the time of its last id has passed."""
        deadline = time.monotonic() + RETURN_S
        while held := [one for one in self.asked(url)["leases"] if not one["ending"]]:
            self.assertLess(time.monotonic(), deadline, held)
            time.sleep(0.1)

    def check_program(self, app, log_path, server):
        def text():
            with open(log_path) as log:
                return log.read()

        deadline = time.monotonic() + STARTUP_S
        while not re.search(r"^port \d+$", text(), re.MULTILINE) and app.poll() is None:
            self.assertLess(time.monotonic(), deadline, text())
            time.sleep(0.1)
        self.assertIsNone(app.poll(), text())
        for name, count in ("hibernate", 10), ("mybatis", 10), ("client", 1):
            self.assertEqual(len(set(re.findall(rf"^{name} (\d{{15,19}})$", text(), re.MULTILINE))), count, text())
        ids = re.findall(r"^\w+ (\d{15,19})$", text(), re.MULTILINE)
        self.assertEqual((len(ids), len(set(ids))), (21, 21))
        self.assertIn("\nrows 20\n", text())
        port = re.search(r"^port ([0-9]+)$", text(), re.MULTILINE)[1]
        base = f"http://127.0.0.1:{port}/actuator/"
        health = self.asked(base + "health")["components"]["firn"]
        self.assertEqual(health, {"status": "UP", "details": {"servers": {f"127.0.0.1:{server.port}": "healthy"}}})
        calls = self.asked(base + "metrics/firn.client.calls")["measurements"]
        self.assertGreaterEqual({one["statistic"]: one["value"] for one in calls}["COUNT"], 21)
        web.check_answers(port, server, app)
        health = self.asked(base + "health")["components"]["firn"]
        self.assertEqual(health["status"], "DOWN")
        self.assertIn("127.0.0.1", health["details"]["fault"])

    @staticmethod
    def asked(url):
        try:
            with urllib.request.urlopen(url, timeout=cluster.PATIENCE_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as unhealthy:
            with unhealthy:
                return json.load(unhealthy)


if __name__ == "__main__":
    if lacking := builds.missing("java", more=("java", "/usr/share/java/zookeeper.jar")):
        interop.skip(f"not installed: {', '.join(lacking)}")
    interop.main(PackageTest, "mvn", "firn")
