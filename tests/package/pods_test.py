"""Drills the pods of k8s.yaml as processes: with exactly its flags, environment and volumes, a real ZooKeeper,
and another address at each start, as Kubernetes gives them.

    pods_test.py ROOT BIN
"""

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import yaml

from machine import await_true, in_a_network_of_its_own, programs

ROOT, BIN = (os.path.abspath(path) for path in sys.argv[1:3])
PACKAGE = os.path.join(ROOT, "tools/package")
JARS = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"
COUNT = 50  # numbers of one call
LOSS = "frozen|went back"

# Mounts each volume of a container, and starts it under its host name and user: NAME USER GROUP MOUNTS WORDS...
# An empty /var/lib hides that of this machine, which may lack the folders to mount on.
CONTAINER = r"""
set -e
hostname "$1"
mount -t tmpfs tmpfs /var/lib
for mount in $4; do mkdir -p "${mount#*=}"; mount --bind "${mount%%=*}" "${mount#*=}"; done
user=$2 group=$3
shift 4
exec setpriv --reuid="$user" --regid="$group" --groups="$group" "$@"
"""


def read_objects():
    with open(f"{PACKAGE}/k8s.yaml") as file:
        return {part["kind"]: part for part in yaml.safe_load_all(file)}


def image_command(what):
    """Returns the command of the Dockerfile's ENTRYPOINT or HEALTHCHECK."""
    with open(f"{PACKAGE}/Dockerfile") as file:
        text = file.read().replace("\\\n", "")
    return json.loads(re.search(rf"^{what} .*?(\[.*\])", text, re.MULTILINE)[1])


class Pod:
    """A pod from its creation to its deletion, at `address`."""

    def __init__(self, workload, ordinal, address, folder):
        self.address = address
        self.spec = workload["spec"]["template"]["spec"]
        self.container, = self.spec["containers"]
        owner = workload["metadata"]["name"]
        self.name = f"{owner}-{ordinal if workload['kind'] == 'StatefulSet' else secrets.token_hex(4)}"
        claims = [claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])]
        self.volumes = {name: self.made(f"{folder}/{name}-{self.name}") for name in claims}
        for volume in self.spec["volumes"]:
            assert "emptyDir" in volume, volume
            path = f"{folder}/{volume['name']}-{secrets.token_hex(4)}"
            os.mkdir(path)
            if volume["emptyDir"].get("medium") == "Memory":
                subprocess.run(["mount", "-t", "tmpfs", "tmpfs", path], check=True)
            self.volumes[volume["name"]] = self.made(path)
        self.log = f"{folder}/log-{self.name}-{address}"
        self.words = self.command(folder)
        self.start_container()

    def start_container(self):
        with open(self.log, "a") as log:
            self.process = programs.start(self.words, env=self.environment(), stdout=log, stderr=subprocess.STDOUT)

    def made(self, path):
        """Prepares a volume as the kubelet does for the pod's fsGroup."""
        os.makedirs(path, exist_ok=True)
        for at, _, files in os.walk(path):
            os.chown(at, -1, self.spec["securityContext"]["fsGroup"])
            os.chmod(at, os.stat(at).st_mode | 0o2770)
            for name in files:
                os.chown(f"{at}/{name}", -1, self.spec["securityContext"]["fsGroup"])
                os.chmod(f"{at}/{name}", os.stat(f"{at}/{name}").st_mode | 0o660)
        return path

    def environment(self):
        fields = {"status.podIP": self.address, "metadata.name": self.name}
        return {"PATH": os.environ["PATH"],
                **{one["name"]: one["value"] if "value" in one else fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
                   for one in self.container["env"]}}

    def command(self, folder):
        program, *words = image_command("ENTRYPOINT") + self.container["args"]
        for name, value in self.environment().items():
            words = [word.replace(f"$({name})", value) for word in words]
        # At its own address instead of in a network of its own.
        words = [word.replace("0.0.0.0", self.address) for word in words]
        mounts = [f"{self.volumes[one['name']]}={one['mountPath']}" for one in self.container["volumeMounts"]]
        security = self.spec["securityContext"]
        return ["unshare", "--mount", "--uts", "sh", "-c", CONTAINER, "container", self.name,
                str(security["runAsUser"]), str(security["fsGroup"]), " ".join(mounts),
                f"{folder}/{program}", *words]

    def get(self, port, path):
        """Returns status and text of an answer; 0 without one."""
        try:
            with urllib.request.urlopen(f"http://{self.address}:{port}{path}", timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()
        except OSError as why:
            return 0, str(why)

    def ready(self):
        return self.get(7610, self.container["readinessProbe"]["httpGet"]["path"])

    def logged(self):
        with open(self.log) as file:
            return file.read()

    def stop(self):
        self.process.terminate()
        return self.process.wait()


class PodsTest(unittest.TestCase):
    def setUp(self):
        # Not in TMPDIR: the pod's volume at /dev/shm would hide it. A copy of the server, because its folder
        # may be one that only root can enter.
        self.folder = tempfile.mkdtemp(prefix="firn-pods-", dir="/var/tmp")
        self.addCleanup(self.remove_folder)
        os.chmod(self.folder, 0o755)
        shutil.copy(f"{BIN}/firn-server", self.folder)
        parts = read_objects()
        self.workload = parts.get("StatefulSet") or parts["Deployment"]
        self.pods, self.addresses, self.taken = [], 0, []
        hosts = f"{self.folder}/hosts"
        with open(hosts, "w") as file:
            file.write("127.0.0.1 localhost zookeeper\n")
        subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
        self.addCleanup(subprocess.run, ["umount", "/etc/hosts"], check=True)
        self.start_zookeeper()
        with open(f"{PACKAGE}/k8s.yaml") as file:
            made = re.search(r"^# firn (init .*)$", file.read(), re.MULTILINE)[1].split()
        await_true("a cluster, by the command of k8s.yaml", lambda: self.firn(*made).returncode == 0)
        self.registry, = [word for word in made if word.startswith("--registry=")]
        created = self.firn("tags", "create", "order", "strategy=segment", "step=100", "step_max=100",
                            self.registry)
        self.assertEqual(0, created.returncode, created.stdout)

    def remove_folder(self):
        with open("/proc/self/mounts") as mounts:
            inside = [line.split()[1] for line in mounts if line.split()[1].startswith(self.folder)]
        for volume in inside:
            subprocess.run(["umount", volume], check=True)
        shutil.rmtree(self.folder)

    def start_zookeeper(self):
        data = f"{self.folder}/zookeeper"
        os.makedirs(data, exist_ok=True)
        with open(f"{self.folder}/zoo.cfg", "w") as file:
            file.write(f"tickTime=500\ndataDir={data}\nclientPort=2181\nadmin.enableServer=false\n")
        with open(f"{self.folder}/zookeeper.log", "a") as log:
            self.zookeeper = programs.start(
                ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", JARS,
                 "-Dzookeeper.jmx.log4j.disable=true", "-Dzookeeper.forceSync=no",
                 "org.apache.zookeeper.server.quorum.QuorumPeerMain", f"{self.folder}/zoo.cfg"],
                stdout=log, stderr=log)
        self.addCleanup(programs.end, self.zookeeper)

    def put_zookeeper_back(self):
        programs.end(self.zookeeper)
        shutil.rmtree(f"{self.folder}/zookeeper")
        shutil.copytree(f"{self.folder}/backup", f"{self.folder}/zookeeper")
        self.start_zookeeper()

    def firn(self, *words):
        return subprocess.run([f"{BIN}/firn", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def logs(self):
        return "\n---\n".join(pod.logged()[-2000:] for pod in self.pods)

    def start_pods(self):
        """Creates all pods, at addresses that none had before."""
        self.pods = []
        for ordinal in range(self.workload["spec"]["replicas"]):
            self.addresses += 1
            self.pods.append(Pod(self.workload, ordinal, f"127.7.0.{self.addresses}", self.folder))
            self.addCleanup(programs.end, self.pods[-1].process)

    def stop_pods(self):
        self.assertEqual([0] * len(self.pods), [pod.stop() for pod in self.pods], self.logs())

    def take(self):
        """Takes numbers of each pod, as far as it serves; returns what each answered."""
        answers = [pod.get(7609, f"/v1/ids/order?count={COUNT}") for pod in self.pods]
        for status, text in answers:
            if status == 200:
                self.taken += json.loads(text)["numbers"]
        return answers

    def await_numbers(self):
        await_true("numbers of all pods", lambda: all(status == 200 for status, _ in self.take()), self.logs)

    def assert_no_number_twice(self):
        twice = len(self.taken) - len(set(self.taken))
        self.assertEqual(0, twice, f"{twice} of {len(self.taken)} numbers were issued twice")

    def test_no_number_twice_after_zookeeper_went_back_while_the_pods_were_stopped(self):
        self.start_pods()
        self.await_numbers()
        programs.end(self.zookeeper)
        shutil.copytree(f"{self.folder}/zookeeper", f"{self.folder}/backup")
        self.start_zookeeper()
        for _ in range(10):
            self.await_numbers()
        self.assert_no_number_twice()
        self.stop_pods()

        self.put_zookeeper_back()
        self.start_pods()
        # A pod that knows nothing serves; one that knows more than ZooKeeper freezes the cluster.
        await_true("the pods have decided", lambda: all(
            pod.ready()[0] == 200 or "firn restore" in pod.logged() for pod in self.pods), self.logs)
        await_true("numbers, or refusals", lambda: all(
            status == 200 or re.search(LOSS, text) for status, text in self.take()), self.logs)
        self.assert_no_number_twice()
        self.refused_and_restored()

    def refused_and_restored(self):
        """Every screen shows the loss and the command, which ends it."""
        for pod in self.pods:
            status, text = pod.get(7609, "/v1/ids/order")
            self.assertEqual(503, status, text)
            self.assertRegex(text, LOSS)
            status, text = pod.ready()
            self.assertEqual(503, status, text)
            self.assertRegex(text, LOSS)
        doctor, audit = self.firn("doctor", self.registry), self.firn("audit", self.registry)
        self.assertEqual(6, doctor.returncode, doctor.stdout)
        self.assertNotEqual(0, audit.returncode, audit.stdout)
        for screen in (doctor.stdout, audit.stdout):
            self.assertRegex(screen, LOSS)
            self.assertIn("firn restore", screen)
        def commands():
            return re.findall(r"^\s+firn (restore .*)$", self.pods[0].logged(), re.MULTILINE)
        await_true("the printed command", commands, self.logs)
        ran = []

        def restored():
            # The pod's state folder is not here, but the pod's document is.
            status, known = self.pods[0].get(7610, "/v1/knowledge")
            self.assertEqual(200, status, known)
            with open(f"{self.folder}/known.json", "w") as file:
                file.write(known)
            command, count = re.subn(r"--from=\S+", f"--from={self.folder}/known.json", commands()[-1])
            self.assertEqual(1, count, command)
            ran.append(subprocess.run(["sh", "-c", f"{BIN}/firn {command}"], text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
            # 4: it asks for numbers that a pod has not reported yet.
            self.assertIn(ran[-1].returncode, (0, 4), f"{command}\n{ran[-1].stdout}")
            return ran[-1].returncode == 0
        await_true("a restore by the printed command", restored, lambda: ran[-1].stdout)
        self.await_numbers()
        self.assert_no_number_twice()
        await_true("nothing is wrong", lambda: self.firn("doctor", self.registry).returncode == 0,
                   lambda: self.firn("doctor", self.registry).stdout)

    def test_restarted_container_waits_for_zookeeper_because_it_may_be_a_copy(self):
        self.start_pods()
        self.await_numbers()
        programs.end(self.zookeeper)
        pod = self.pods[0]
        programs.end(pod.process)
        pod.start_container()
        await_true("an answer", lambda: pod.get(7609, "/v1/ids/default")[0] != 0, self.logs)
        await_true("the server has tried to resume", lambda: "starting without it" in pod.logged(), self.logs)
        self.assertEqual(503, pod.get(7609, "/v1/ids/default")[0], self.logs())
        self.start_zookeeper()
        await_true("an id", lambda: pod.get(7609, "/v1/ids/default")[0] == 200, self.logs)

    def test_health_check_of_the_image_asks_plain_and_tls_ports(self):
        certificate = [f"{self.folder}/tls.key", f"{self.folder}/tls.crt"]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", certificate[0], "-out", certificate[1], "-days", "2", "-subj", "/CN=firn"],
                       check=True, stderr=subprocess.DEVNULL)
        check = image_command("HEALTHCHECK")
        self.assertNotEqual(0, subprocess.run(check, stderr=subprocess.DEVNULL).returncode, "there is no server")
        program, *words = image_command("ENTRYPOINT")
        words += ["--embedded", "--advertise=127.0.0.1:7609", f"--state_dir={self.folder}/state"]
        for more in [], [f"--admin_tls_key={certificate[0]}", f"--admin_tls_cert={certificate[1]}"]:
            server = programs.start([f"{self.folder}/{program}", *words, *more])
            await_true(f"the health check with {more}", lambda: subprocess.run(
                check, stderr=subprocess.DEVNULL).returncode == 0)
            programs.end(server)


if __name__ == "__main__":
    in_a_network_of_its_own(f"{BIN}/firn-server")
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
