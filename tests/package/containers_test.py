"""Tests the image, compose.yaml and k8s.yaml: they agree with each other and with the programs, and the
servers serve when they are started with exactly these flags, inside the image, with a real
ensemble.

    containers_test.py ROOT BIN FOLDER     FOLDER was filled by image.sh

It runs in its own network namespace, in which the addresses of compose.yaml are loopback addresses.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import yaml

from machine import await_true, in_a_network_of_its_own, programs

ROOT, BIN, FOLDER = (os.path.abspath(path) for path in sys.argv[1:4])
sys.path.insert(0, os.path.join(ROOT, "tools/package"))
import program_help  # noqa: E402

BYTES_MAX = 120_000_000
# Compilers and Debian's updates change the size by a few percent.
DRIFT = 0.1
# Minimum time between the end of the drain and the kill, for the registry's answers.
GRACE_S = 5
DUBBO_S = 10  # for consumers of Dubbo to leave
JARS = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"


def buildah(*arguments, **options):
    return subprocess.run(["buildah", "--root", f"{FOLDER}/storage", "--runroot", f"{FOLDER}/run",
                           "--storage-driver", "vfs", *arguments], check=True, text=True,
                          stdout=subprocess.PIPE, **options).stdout.strip()


def read(name):
    with open(os.path.join(ROOT, "tools/package", name)) as file:
        return list(yaml.safe_load_all(file))


def flag_names(words):
    return {word[2:].partition("=")[0] for word in words if word.startswith("--")}


class Container:
    """A container of the image, in which a test starts processes."""

    def __init__(self):
        self.name = buildah("from", "localhost/firn")
        self.root = buildah("mount", self.name)
        with open(f"{self.root}/etc/hosts", "a"):
            pass  # to mount on

    def start(self, words, environment=None, log=subprocess.DEVNULL):
        """Starts a process as the image's user, in the caller's network."""
        user = subprocess.run(["stat", "-c", "%u:%g", f"{self.root}/var/lib/firn"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.strip().split(":")
        # `buildah run` passes no signal on. So this makes the same chroot, with the same user, and becomes the process.
        return programs.start(
            ["unshare", "--mount", "sh", "-c",
             'mount -t proc proc "$1/proc"; mount --bind /dev "$1/dev"; mount --bind /etc/hosts '
             '"$1/etc/hosts"; root=$1 user=$2 group=$3; shift 3; '
             'exec chroot --userspec "$user:$group" "$root" "$@"',
             "start", self.root, *user, *words],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **(environment or {})},
            stdout=log, stderr=subprocess.STDOUT)

    def end(self):
        buildah("rm", self.name)


class ContainersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="firn-containers-")
        cls.compose = read("compose.yaml")[0]
        cls.kube = {part["kind"]: part for part in read("k8s.yaml")}
        cls.config = json.loads(buildah("inspect", "--type", "image", "localhost/firn"))
        cls.config = cls.config["Docker"]["config"]
        cls.containers, cls.processes = [], []
        cls.name_hosts()

    @classmethod
    def tearDownClass(cls):
        for process in reversed(cls.processes):
            programs.end(process)
        for container in cls.containers:
            container.end()
        for folder in (cls.folder, f"{FOLDER}/storage", f"{FOLDER}/run"):
            shutil.rmtree(folder, ignore_errors=True)  # image.sh builds the image again

    @classmethod
    def address(cls, service):
        networks = cls.compose["services"][service].get("networks")
        return networks["firn"]["ipv4_address"] if isinstance(networks, dict) else None

    @classmethod
    def name_hosts(cls):
        lines = ["127.0.0.1 localhost"]
        for service in cls.compose["services"]:
            address = cls.address(service)
            if address:
                subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
                lines.append(f"{address} {service}")
        lines.append(f"{cls.address('zk1')} zookeeper")  # its name in k8s.yaml
        hosts = os.path.join(cls.folder, "hosts")
        with open(hosts, "w") as file:
            file.write("\n".join(lines) + "\n")
        subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)

    @staticmethod
    def said_by_page(row):
        with open(os.path.join(ROOT, "tools/package/CONTAINERS.md")) as file:
            return re.search(rf"^\| {row} \| ([\d.]+)", file.read(), re.MULTILINE)[1]

    def container(self):
        self.containers.append(Container())
        return self.containers[-1]

    def started(self, container, words, environment=None):
        log = os.path.join(self.folder, f"log-{len(self.processes)}")
        with open(log, "w") as file:
            self.processes.append(container.start(words, environment, file))
        self.processes[-1].log = log
        return self.processes[-1]

    # --- contents of the files -------------------------------------------------------------------

    def test_image_is_small_and_contains_the_programs(self):
        root = self.container().root
        used = subprocess.run(["du", "-sxb", root], check=True, stdout=subprocess.PIPE, text=True)
        size = int(used.stdout.split()[0])
        print(f"  the image has {size / 1e6:.1f} MB")
        self.assertLess(size, BYTES_MAX)
        told = 1e6 * float(self.said_by_page("size of all files"))
        self.assertLess(abs(size - told), DRIFT * told, "CONTAINERS.md has another size")
        for path in ("usr/bin/firn-server", "usr/bin/firn", "etc/ssl/certs/ca-certificates.crt"):
            self.assertTrue(os.path.exists(f"{root}/{path}"), path)
        self.assertFalse(glob.glob(f"{root}/tmp/*"))

    def test_bill_of_materials_lists_the_packages_of_the_image(self):
        root, sbom = self.container().root, os.path.join(ROOT, "tools/package/sbom.py")
        form = subprocess.run([sbom, "--format"], check=True, text=True, stdout=subprocess.PIPE).stdout
        lines = subprocess.run(["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f",
                                form.strip()], check=True, text=True, stdout=subprocess.PIPE).stdout
        made = subprocess.run([sbom, "firn"], input=lines, check=True, text=True, stdout=subprocess.PIPE)
        names = {part["name"] for part in json.loads(made.stdout)["packages"]}
        self.assertLessEqual({"firn-server", "firn-tools", "ca-certificates", "bash"}, names)
        self.assertEqual([], [name for name in names if name.startswith("libqt")])

    def test_image_runs_as_an_unprivileged_user_and_stops_cleanly(self):
        self.assertEqual("firn", self.config["User"])
        self.assertEqual("SIGTERM", self.config["StopSignal"])
        self.assertEqual({"7609/tcp", "7610/tcp"}, set(self.config["ExposedPorts"]))
        health = self.config["Healthcheck"]["Test"]
        self.assertEqual(["CMD", "bash", "-c"], health[:3])
        self.assertIn("127.0.0.1/7610", health[3], "the public port may be closed to this host")

    def test_admin_port_is_published_to_this_host_only(self):
        for service in self.compose["services"].values():
            for port in service.get("ports", []):
                self.assertFalse(port.endswith(":7610") and not port.startswith("127.0.0.1:"), port)
        policy = self.kube["NetworkPolicy"]["spec"]
        self.assertEqual(self.kube["StatefulSet"]["spec"]["template"]["metadata"]["labels"],
                         policy["podSelector"]["matchLabels"])
        for rule in policy["ingress"]:
            if {"port": "admin"} in rule["ports"]:
                self.assertNotIn({"namespaceSelector": {}}, rule["from"])

    def test_pod_is_confined(self):
        pod = self.kube["StatefulSet"]["spec"]["template"]["spec"]
        self.assertEqual("RuntimeDefault", pod["securityContext"]["seccompProfile"]["type"])
        self.assertIs(False, pod["automountServiceAccountToken"])
        self.assertIn("memory", pod["containers"][0]["resources"]["limits"])

    def test_flags_are_those_of_the_programs(self):
        known = {flag.name for flag in program_help.server_flags(f"{BIN}/firn-server")}
        words = list(self.config["Entrypoint"])
        for name in ("server1", "server2", "server3"):
            words += self.compose["services"][name]["command"]
        words += self.pod()["args"]
        self.assertEqual(set(), flag_names(words) - known)
        taken = re.search(r"--tryfromenv=(\S+)", " ".join(words))[1].split(",")
        self.assertEqual(set(), set(taken) - known)
        given = {variable["name"].removeprefix("FLAGS_") for variable in self.pod()["env"]
                 if variable["name"].startswith("FLAGS_")}
        self.assertEqual(set(), given - set(taken))
        verbs = {verb.words: {flag.name for flag in verb.flags} for verb in
                 program_help.all_verbs(program_help.verb_tree(f"{BIN}/firn"))}
        init, = self.compose["services"]["init"]["command"]
        self.assertEqual(set(), flag_names(init.split()) - verbs[("init",)])
        self.assertEqual(set(), flag_names(self.compose["services"]["client"]["command"])
                         - verbs[("next",)])

    def pod(self):
        return self.kube["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]

    def test_ports_paths_and_users_fit_the_image(self):
        spec = self.kube["StatefulSet"]["spec"]["template"]["spec"]
        exposed = {int(port.split("/")[0]) for port in self.config["ExposedPorts"]}
        self.assertEqual(exposed, {port["containerPort"] for port in self.pod()["ports"]})
        root = self.container().root
        self.assertEqual(os.stat(f"{root}/var/lib/firn").st_uid,
                         spec["securityContext"]["runAsUser"])
        mounts = {mount["name"]: mount["mountPath"] for mount in self.pod()["volumeMounts"]}
        defaults = {flag.name: flag.default for flag in
                    program_help.server_flags(f"{BIN}/firn-server")}
        self.assertIn(f"--state_dir={mounts['state']}", self.config["Entrypoint"])
        self.assertEqual(defaults["grant_dir"], mounts["grant"])
        self.assertEqual(list(self.config["Volumes"]), [mounts["state"]])
        for name in ("server1", "server2", "server3"):
            self.assertIn("{0}:{0}".format(mounts["grant"]),
                          self.compose["services"][name]["volumes"])

    def test_there_is_time_to_drain(self):
        defaults = {flag.name: flag.default for flag in
                    program_help.server_flags(f"{BIN}/firn-server")}
        drain = sum(int(value) for name, value in defaults.items() if name.startswith("drain_"))
        drain += int(defaults["drain_patience_ms"])  # once for another owner, once for calls in flight
        least = drain / 1000 + DUBBO_S + GRACE_S
        grace = self.compose["services"]["server1"]["stop_grace_period"]
        self.assertGreater(int(grace.rstrip("s")), least)
        pause = int(self.pod()["lifecycle"]["preStop"]["exec"]["command"][1])
        spec = self.kube["StatefulSet"]["spec"]["template"]["spec"]
        self.assertGreater(spec["terminationGracePeriodSeconds"], least + pause)

    # --- running programs ------------------------------------------------------------------------

    def start_zookeeper(self, service):
        """Configures ZooKeeper by the variables of the service, as its image does."""
        variables = self.compose["services"][service]["environment"]
        folder = os.path.join(self.folder, service)
        os.makedirs(f"{folder}/data")
        with open(f"{folder}/data/myid", "w") as file:
            file.write(str(variables["ZOO_MY_ID"]))
        with open(f"{folder}/zoo.cfg", "w") as file:
            file.write("tickTime=500\ninitLimit=40\nsyncLimit=20\nadmin.enableServer=false\n"
                       f"dataDir={folder}/data\n" +
                       # Each member listens at its own address instead of in a separate network.
                       "".join(re.sub("=(.*?):(.*);", r"=\1:\2;\1:", line) + "\n"
                               for line in variables["ZOO_SERVERS"].split()))
        with open(f"{folder}/log", "w") as log:
            self.processes.append(programs.start(
                ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", JARS,
                 "-Dzookeeper.jmx.log4j.disable=true", "-Dzookeeper.forceSync=no",
                 "org.apache.zookeeper.server.quorum.QuorumPeerMain", f"{folder}/zoo.cfg"],
                stdout=log, stderr=log))

    def ids(self, container, address, count):
        words = ["firn", "next", "-n", str(count), f"--servers=list://{address}:7609"]
        taken = []

        def asked():
            process = container.start(words, log=subprocess.PIPE)
            said = process.communicate()[0].decode().split()
            taken[:] = said if process.returncode == 0 else []
            return process.returncode == 0
        await_true(f"ids of {address}", asked, self.logs)
        return taken

    def logs(self):
        texts = []
        for process in self.processes:
            if hasattr(process, "log"):
                with open(process.log) as file:
                    texts.append(file.read()[-1500:])
        return "\n---\n".join(texts)

    def test_servers_serve_with_these_flags(self):
        services = self.compose["services"]
        for name in ("zk1", "zk2", "zk3"):
            self.start_zookeeper(name)
        tool = self.container()
        init = services["init"]["entrypoint"] + [services["init"]["command"][0].replace("$$", "$")]
        await_true("a cluster, by the words of init", lambda: self.started(tool, init).wait() == 0,
                   self.logs)
        self.assertEqual(0, self.started(tool, init).wait(), "a second init")
        servers, taken = [], []
        for name in ("server1", "server2", "server3"):
            # Each server listens at its own address instead of in a separate network.
            words = [word.replace("0.0.0.0", self.address(name)) for word in
                     self.config["Entrypoint"] + services[name]["command"]]
            servers.append(self.started(self.container(), words))
        for name in ("server1", "server2", "server3"):
            taken += self.ids(tool, self.address(name), 5)
        self.assertEqual(15, len(set(taken)))
        health = self.config["Healthcheck"]["Test"][1:]
        health = [word.replace("127.0.0.1", self.address("server1")) for word in health]
        self.assertEqual(0, self.started(tool, health).wait(), self.logs())
        self.client_prints(tool)
        taken += self.pod_serves(tool)
        self.assertEqual(20, len(set(taken)))
        for server in servers:
            server.terminate()
        self.assertEqual([0, 0, 0], [server.wait() for server in servers], self.logs())

    def test_image_alone_serves_as_its_page_says(self):
        container = self.container()
        server = self.started(container, self.config["Entrypoint"] + [
            "--embedded", "--advertise=127.0.0.1:7609"])
        first, = self.ids(container, "127.0.0.1", 1)
        print(f"  the first id: {first}")
        with urllib.request.urlopen("http://127.0.0.1:7609/v1/ids/default", timeout=60) as answer:
            later = int(json.load(answer)["ids"][0])
        server.terminate()
        self.assertEqual(0, server.wait(), self.logs())
        told = int(self.said_by_page("the first id"))
        self.assertLess(told, int(first), "CONTAINERS.md has an id of the future")
        self.assertLess(int(first), later)
        fields = [subprocess.run([f"{BIN}/firn", "explain", str(id)], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout for id in (told, first)]
        self.assertEqual(*(re.sub(r"\d+", "1", text).split() for text in fields))

    def client_prints(self, tool):
        client = self.compose["services"]["client"]
        process = self.started(tool, client["entrypoint"] + client["command"])

        def printed():
            with open(process.log) as file:
                return len(file.read().splitlines()) > 2
        await_true("lines of the client", printed, self.logs)
        process.terminate()
        process.wait()

    def pod_serves(self, tool):
        """Starts the pod of k8s.yaml, for a cluster made by its comment's command."""
        address = "172.28.0.31"
        subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
        with open(os.path.join(ROOT, "tools/package/k8s.yaml")) as file:
            made = re.search(r"^# (firn init .*)$", file.read(), re.MULTILINE)[1]
        self.assertEqual(0, self.started(
            tool, made.split() + ["--default_strategy=snowflake"]).wait(), self.logs())
        environment = {variable["name"]: variable.get("value", address)
                       for variable in self.pod()["env"]}
        environment["POD_NAME"] = "firn-0"
        self.assertIn("registry=" + environment["FLAGS_registry"], made)
        words = [word.replace("$(POD_IP)", address).replace("$(POD_NAME)", "firn-0").replace("0.0.0.0", address)
                 for word in self.config["Entrypoint"] + self.pod()["args"]]
        server = self.started(self.container(), words, environment)
        taken = self.ids(tool, address, 5)
        for part in ("readinessProbe", "livenessProbe"):
            path = self.pod()[part]["httpGet"]["path"]
            with urllib.request.urlopen(f"http://{address}:7610{path}", timeout=60) as answer:
                self.assertEqual(200, answer.status)
        server.terminate()
        self.assertEqual(0, server.wait(), self.logs())
        return taken


if __name__ == "__main__":
    in_a_network_of_its_own(os.path.join(FOLDER, "storage"))
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
