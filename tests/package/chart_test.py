"""Tests the Helm chart with helm: it renders k8s.yaml, its objects are valid in every Kubernetes from the
oldest that Chart.yaml permits, it refuses wrong values, and a server accepts the rendered flags and the
Secrets as the kubelet mounts them.

    chart_test.py ROOT BIN FOLDER     FOLDER keeps helm and the schemas for the next run
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

from machine import skip_unless
from pinned import go_program, import_from

ROOT, BIN, FOLDER = (os.path.abspath(path) for path in sys.argv[1:4])
HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"
SCHEMAS = "kubernetes-validate==1.37.0"
KUBERNETES = [f"1.{minor}" for minor in range(25, 38)]
CHART = os.path.join(ROOT, "tools/package/helm")

SECRETS = {"registryAuth": "zk", "tls": "public", "tlsClientCa": True, "adminTls": "admin",
           "stores": "stores", "keys": "keys"}
EVERYTHING = {
    "replicas": 5, "image": {"repository": "registry.example/firn", "tag": "0.1.0",
                             "pullSecrets": ["pull"]},
    "secrets": SECRETS, "flags": {"io_threads": 2, "output_total_bytes_max": 67108864,
                                  "clock_policy": "strict"},
    "service": {"type": "LoadBalancer", "annotations": {"a": "b"}},
    "podDisruptionBudget": {"maxUnavailable": "25%"},
    "state": {"storageClass": "fast", "size": "2Gi"},
    "serviceMonitor": {"enabled": True, "interval": "5s", "labels": {"release": "prometheus"}},
    "podAnnotations": {"a": "b"}, "podLabels": {"team": "ids"}, "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "ids", "operator": "Exists"}], "priorityClassName": "high",
}
NOTHING = {"podDisruptionBudget": {"enabled": False}, "networkPolicy": {"enabled": False},
           "spreadOver": [], "state": {"persistent": False}}
WRONG = [
    {"replica": 3}, {"secrets": {"tsl": "public"}}, {"secrets": {"tlsClientCa": True}},
    {"registry": "zookeeper:2181"}, {"flags": {"--io_threads": 2}}, {"flags": {"io_threads": 2.5}},
    {"serviceMonitor": {"interval": "15"}}, {"state": {"size": "1G"}}, {"state": {"persistent": "yes"}},
]


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


class ChartTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.helm = go_program(FOLDER, HELM)
        import_from(FOLDER, SCHEMAS)
        cls.folder = tempfile.mkdtemp(prefix="firn-chart-")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def template(self, *arguments, release="firn", **options):
        # A helm that is built from its module does not know the version of Kubernetes.
        return run(self.helm, "template", release, CHART, f"--kube-version={KUBERNETES[-1]}",
                   *arguments, **options)

    def rendered(self, values, **options):
        file = os.path.join(self.folder, "values.yaml")
        with open(file, "w") as out:
            yaml.safe_dump(values, out)
        text = self.template("--values", file, **options)
        return {f"{part['kind']} {part['metadata']['name']}": part
                for part in yaml.safe_load_all(text) if part}

    def pod(self, values):
        return self.rendered(values)["StatefulSet firn"]["spec"]["template"]["spec"]

    def test_lint_has_no_warning(self):
        said = run(self.helm, "lint", "--strict", CHART)
        self.assertIn("1 chart(s) linted, 0 chart(s) failed", said)

    def test_k8s_yaml_is_what_the_chart_renders(self):
        with open(os.path.join(ROOT, "tools/package/k8s.yaml")) as file:
            self.assertEqual(self.template(), file.read(),
                             "run: helm template firn tools/package/helm >tools/package/k8s.yaml")

    def test_objects_are_valid_in_every_kubernetes(self):
        import kubernetes_validate
        for values in ({}, EVERYTHING, NOTHING):
            parts = self.rendered(values)
            parts.pop("ServiceMonitor firn", None)  # has a separate test
            for version in KUBERNETES:
                for name, part in parts.items():
                    with self.subTest(f"{name} in {version}"):
                        self.assertEqual(version, kubernetes_validate.validate(part, version, True))
        part = self.rendered({})["StatefulSet firn"]
        part["spec"]["replica"] = 3
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(part, KUBERNETES[-1], True)

    def test_state_stays_with_the_pod_unless_values_say_otherwise(self):
        def state(values):
            spec = self.rendered(values)["StatefulSet firn"]["spec"]
            claims = {claim["metadata"]["name"]: claim["spec"] for claim in spec.get("volumeClaimTemplates", [])}
            volumes = {volume["name"]: volume for volume in spec["template"]["spec"]["volumes"]}
            return claims.get("state"), volumes.get("state")
        claim, volume = state(EVERYTHING)
        self.assertIsNone(volume)
        self.assertEqual(("fast", "2Gi"), (claim["storageClassName"], claim["resources"]["requests"]["storage"]))
        self.assertNotIn("storageClassName", state({})[0])
        self.assertEqual((None, {"name": "state", "emptyDir": {}}), state(NOTHING))

    def test_service_monitor_finds_the_admin_ports(self):
        parts = self.rendered(EVERYTHING)
        self.assertNotIn("ServiceMonitor firn", self.rendered({}))
        monitor, service = parts["ServiceMonitor firn"], parts["Service firn-admin"]
        self.assertEqual("monitoring.coreos.com/v1", monitor["apiVersion"])
        self.assertEqual("prometheus", monitor["metadata"]["labels"]["release"])
        chosen = monitor["spec"]["selector"]["matchLabels"].items()
        self.assertLessEqual(chosen, service["metadata"]["labels"].items())
        self.assertFalse(chosen <= parts["Service firn"]["metadata"]["labels"].items())
        port, = service["spec"]["ports"]
        self.assertEqual([{"port": port["name"], "path": "/metrics", "interval": "5s",
                           "scheme": "https", "tlsConfig": {"insecureSkipVerify": True}}],
                         monitor["spec"]["endpoints"])
        pod = parts["StatefulSet firn"]["spec"]["template"]
        self.assertLessEqual(service["spec"]["selector"].items(), pod["metadata"]["labels"].items())
        self.assertIn({"name": port["targetPort"], "containerPort": 7610},
                      pod["spec"]["containers"][0]["ports"])

    def test_release_names_become_names_of_services(self):
        release = "a" * 45 + ".release"
        for kind, name in (part.split() for part in self.rendered(EVERYTHING, release=release)):
            with self.subTest(kind):
                self.assertRegex(name, r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
                self.assertLessEqual(len(name), 52 if kind == "StatefulSet" else 63)

    def test_wrong_values_are_refused(self):
        for values in WRONG:
            with self.subTest(values):
                with self.assertRaises(subprocess.CalledProcessError) as refused:
                    self.rendered(values, stderr=subprocess.PIPE)
                self.assertIn("don't meet the specifications of the schema",
                              refused.exception.stderr)

    def test_probes_use_tls_if_the_admin_port_does(self):
        for secrets, scheme in (({}, None), ({"adminTls": "admin"}, "HTTPS")):
            server, = self.pod({"secrets": secrets})["containers"]
            for probe in ("readinessProbe", "livenessProbe"):
                self.assertEqual(scheme, server[probe]["httpGet"].get("scheme"))

    def mount(self, pod, root, mode=None):
        """Writes the pod's Secrets below `root` as the kubelet does for its fsGroup."""
        group = pod["securityContext"]["fsGroup"]
        server, = pod["containers"]
        paths = {mount["name"]: mount["mountPath"] for mount in server["volumeMounts"]}
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", f"{root}/tls.key", "-out", f"{root}/tls.crt", "-days", "2", "-subj", "/CN=firn",
            stderr=subprocess.DEVNULL)
        with open(f"{root}/tls.key") as key, open(f"{root}/tls.crt") as certificate:
            pair = {"tls.key": key.read(), "tls.crt": certificate.read()}
        data = {"zk": {"auth": "firn:word\n"}, "public": {**pair, "ca.crt": pair["tls.crt"]},
                "admin": pair, "keys": {"k1.key": "ab" * 32 + "\n"},
                "stores": {"stores.ini": "[cache]\nkind = redis\naddress = redis:6379\nprefix = a:\n"
                                         "credentials_file = /etc/firn/stores/cache.cred\n",
                           "cache.cred": "firn:word\n"}}
        for volume in pod["volumes"]:
            if "secret" not in volume:
                continue
            folder = root + paths[volume["name"]]
            os.makedirs(f"{folder}/..2026")
            os.symlink("..2026", f"{folder}/..data")
            for name, text in data[volume["secret"]["secretName"]].items():
                with open(f"{folder}/..2026/{name}", "w") as file:
                    file.write(text.replace("/etc/firn", f"{root}/etc/firn"))
                os.chown(file.name, 0, group)
                os.chmod(file.name, (mode or volume["secret"]["defaultMode"]) | 0o440)
                os.symlink(f"..data/{name}", f"{folder}/{name}")

    def check(self, mode=None):
        """firn-server's verdict on the rendered flags, as the user of the pod."""
        root = tempfile.mkdtemp(dir=self.folder)
        os.chmod(self.folder, 0o755)
        os.chmod(root, 0o755)
        pod = self.pod(EVERYTHING)
        self.mount(pod, root, mode)
        server, = pod["containers"]
        with open(os.path.join(ROOT, "tools/package/Dockerfile")) as file:
            entry = re.search(r"^ENTRYPOINT (\[.*?\])", file.read().replace("\\\n", ""),
                              re.MULTILINE | re.DOTALL)[1]
        words = [word.replace("/etc/firn", f"{root}/etc/firn")
                 .replace("$(POD_IP)", "127.0.0.1").replace("$(POD_NAME)", "firn-0")
                 for word in json.loads(entry)[1:] + server["args"]]
        environment = {variable["name"]: variable["value"] for variable in server["env"]
                       if "value" in variable}
        security = pod["securityContext"]
        # Another path may lead through a folder that only root can read.
        program = shutil.copy(f"{BIN}/firn-server", f"{root}/firn-server")
        return subprocess.run(
            ["setpriv", f"--reuid={security['runAsUser']}", f"--regid={security['runAsGroup']}",
             f"--groups={security['fsGroup']}", program, *words, "--check_config"],
            env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def test_server_accepts_the_flags_and_the_secrets(self):
        checked = self.check()
        self.assertEqual(0, checked.returncode, checked.stdout)
        refused = self.check(mode=0o644)  # the default of Kubernetes
        self.assertEqual(2, refused.returncode, refused.stdout)
        self.assertIn("can be read by group or others", refused.stdout)


if __name__ == "__main__":
    skip_unless(os.geteuid() == 0, "only root writes the files of another user")
    skip_unless(shutil.which("go"), "go is not installed")
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
