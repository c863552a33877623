"""A real Prometheus scrapes three real servers under load: every query of the dashboard returns data,
every metric of the alerts exists, and no alert fires.

    watch_test.py BIN ROOT
"""

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import yaml

from machine import await_true, programs

BIN, ROOT = (os.path.abspath(path) for path in sys.argv[1:3])
PACKAGE = os.path.join(ROOT, "tools/package")
CLUSTER = os.path.join(ROOT, "tools/cluster")


# Series that these servers do not have: of certificates (tests/interop/tls_test.py reads them), of refused and
# outdated tags (tag_states_test.py, redis_tag_test.cc) and of a history file.
ABSENT = {"firn_tls_certificate_expiry_seconds", "firn_tls_client_ca_expiry_seconds", "firn_tag_refused",
          "firn_tag_outdated", "firn_history_runs_total"}


def queries():
    """Of each panel, as Grafana would send them."""
    with open(os.path.join(PACKAGE, "grafana.json")) as file:
        board = json.load(file)
    for panel in board["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", "15s").replace("$job", ".*")
            yield panel["title"], query


def metrics_of(expression):
    return set(re.findall(r"\bfirn_\w+|\bup\b", re.sub(r'"[^"]*"', "", expression)))


class WatchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="firn-watch-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.cluster = f"{cls.folder}/cluster"
        cls.addClassCleanup(subprocess.run, [CLUSTER, "down", f"--folder={cls.cluster}"], check=False,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run([CLUSTER, "up", "--servers=3", "--zookeeper=1", f"--bin={BIN}",
                        f"--folder={cls.cluster}"], check=True, stdout=subprocess.DEVNULL)
        said = subprocess.run([CLUSTER, "status", f"--folder={cls.cluster}"],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        cls.registry = said.split()[-1]
        subprocess.run([f"{BIN}/firn", "tags", "create", "order", f"--registry={cls.registry}"],
                       check=True, stdout=subprocess.DEVNULL)
        cls.admins = []
        for number in (1, 2, 3):
            with open(f"{cls.cluster}/server-{number}/admin") as file:
                cls.admins.append("127.0.0.1:" + file.read().strip())
        cls.lease()
        cls.call_without_end("default")
        cls.call_without_end("order")
        cls.start_prometheus()

    @classmethod
    def lease(cls):
        """Takes a lease at one server, which from then on counts the free machine ids for leases of its rack."""
        with open(f"{cls.cluster}/server-1/port") as file:
            url = f"http://127.0.0.1:{file.read().strip()}/v1/leases"

        def granted():
            asked = {"token": os.urandom(16).hex(), "name": "watched", "clock_ms": int(time.time() * 1000)}
            try:
                urllib.request.urlopen(url, urllib.parse.urlencode(asked).encode(), timeout=30).close()
                return True
            except urllib.error.HTTPError:
                return False
        await_true("a lease", granted)

    @classmethod
    def call_without_end(cls, tag):
        cls.start(["sh", "-c", 'while :; do "$0" "$@" >"$OUT" 2>&1; done', f"{BIN}/firn", "bench", tag,
                   "--rate=300", "--seconds=30", f"--registry={cls.registry}"],
                  env={**os.environ, "OUT": f"{cls.folder}/bench-{tag}"})

    @classmethod
    def start(cls, command, **options):
        process = programs.start(command, **options)
        cls.addClassCleanup(programs.end, process)
        return process

    @classmethod
    def start_prometheus(cls):
        with open(os.path.join(PACKAGE, "prometheus.yml")) as file:
            config = yaml.safe_load(file)
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["scrape_configs"][0]["static_configs"][0]["targets"] = cls.admins
        shutil.copy(os.path.join(PACKAGE, "alerts.yml"), cls.folder)
        with open(f"{cls.folder}/prometheus.yml", "w") as file:
            yaml.safe_dump(config, file)
        cls.port = programs.free_port()
        with open(f"{cls.folder}/log", "w") as log:
            cls.prometheus = cls.start(
                ["prometheus", f"--config.file={cls.folder}/prometheus.yml",
                 f"--storage.tsdb.path={cls.folder}/data",
                 f"--web.listen-address=127.0.0.1:{cls.port}"], stderr=log, stdout=log)
        await_true("Prometheus is ready", cls.ready)

    @classmethod
    def ready(cls):
        assert cls.prometheus.poll() is None, open(f"{cls.folder}/log").read()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{cls.port}/-/ready", timeout=30).close()
            return True
        except OSError:
            return False

    def asked(self, path, **arguments):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?" + urllib.parse.urlencode(arguments)
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)["data"]

    def values(self, query):
        found = [float(row["value"][1]) for row in self.asked("query", query=query)["result"]]
        return [value for value in found if not math.isnan(value)]

    def test_every_query_of_the_dashboard_brings_data(self):
        tried = 0
        for title, query in queries():
            with self.subTest(title):
                await_true(f"data of {title}: {query}", lambda q=query: self.values(q))
                print(f"  {title}: {query}: {self.values(query)[:4]}")
                tried += 1
        self.assertGreater(tried, 15)

    def test_metrics_show_the_load(self):
        await_true("ids a second", lambda: self.values("sum(rate(firn_ids_total[15s]))")[0] > 100)
        self.assertEqual([3], self.values("sum(firn_ready)"))

    def test_metrics_of_the_alerts_are_there_and_none_fires(self):
        groups = []
        await_true("rules that were tried", lambda: groups.append(self.asked("rules")["groups"]) or
                   all(rule["lastEvaluation"] > "1" for rule in groups[-1][0]["rules"]))
        rules = groups[-1][0]["rules"]
        for rule in rules:
            self.assertEqual("ok", rule["health"], rule)
            for metric in metrics_of(rule["query"]) - ABSENT:
                await_true(f"{metric} of {rule['name']}", lambda m=metric: self.values(m))
        firing = [a for a in self.asked("alerts")["alerts"] if a["state"] == "firing"]
        self.assertEqual([], firing)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
