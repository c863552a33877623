"""What the walks of server/node/STATES.md share: real servers, their registries, and the comparison of every surface
with a row of the page."""

import fcntl
import glob
import json
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

BIN, ROOT = (os.path.abspath(path) for path in sys.argv[1:3])
HERE = os.path.dirname(os.path.abspath(__file__))
for folder in "tools", "tools/checks", "tests/interop":
    sys.path.insert(0, os.path.join(ROOT, folder))
sys.dont_write_bytecode = True

import browser  # noqa: E402
import cpp  # noqa: E402
import programs  # noqa: E402
import states  # noqa: E402

PATIENCE_S = 60
ROWS = list(states.rows_of(cpp.read(ROOT, states.PAGE)))
READY_OF_TAG = ("/readyz?tag=T", "snowflake tag's /readyz?tag=T")
# An alert of the cluster, which has one server here.
OF_CLUSTER = {"FirnNoServerReady"}
DOCTOR_EXITS = {"Healthy": 0, "Act soon": 1, "Calls are refused": 4, "Act now": 6}  # by the console's urgency
FAKETIME = (glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1") or [""])[0]


def name_of(row):
    """The words of a row's first cell before its explanation."""
    return (row.get("state") or row.get("reason")).split(":")[0].replace("`", "")


def row_of(name):
    found = [row for row in ROWS if name_of(row) == name]
    assert len(found) == 1, (name, [name_of(row) for row in ROWS])
    return found[0]


def walks(*names):
    """Marks a test that compares these rows, and fails it if it does not."""
    def decorate(test):
        def run(self):
            test(self)
            self.assertEqual(sorted(set(names)), sorted(set(self.compared)))
        run.__name__, run.walks = test.__name__, names
        return run
    return decorate


def get(url, context=None):
    """(status, body); status 0: no answer."""
    try:
        with urllib.request.urlopen(url, timeout=30, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def clock_of(file):
    """The environment of a program whose wall clock follows the offset in the file, such as `-1h`."""
    return {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": file, "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1",
            "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}


def node_text(data, version=1000):
    """The file of a root node in a directory registry, as registry/dir/dir_format.h describes it."""
    head = f"version={version} created=1 modified=1 owner=0 bytes={len(data)} name=".encode()
    check = 0xcbf29ce484222325
    for byte in head + data:
        check = (check ^ byte) * 0x100000001b3 % 2**64
    return f"firn-node check={check:016x} ".encode() + head + b"\n" + data


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Prometheus:
    """A real Prometheus that scrapes the servers of a test. It evaluates the condition of each alert."""

    def __init__(self, folder):
        self.targets, self.port = f"{folder}/targets.json", programs.free_port()
        self.name(None)
        job = {"job_name": "firn", "file_sd_configs": [{"files": [self.targets]}]}
        with open(f"{folder}/prometheus.yml", "w", encoding="utf-8") as file:
            yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}, file)
        with open(f"{folder}/prometheus.log", "w", encoding="utf-8") as log:
            programs.start(["prometheus", f"--config.file={folder}/prometheus.yml",
                            f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{self.port}"],
                           stdout=log, stderr=log)
        with open(os.path.join(ROOT, states.ALERTS), encoding="utf-8") as file:
            self.alerts = {rule["alert"]: rule["expr"] for group in yaml.safe_load(file)["groups"]
                           for rule in group["rules"]}

    def name(self, port):
        """Names the only server to scrape from now on."""
        targets = [{"targets": [f"127.0.0.1:{port}"], "labels": {"job": f"firn-{port}"}}] if port else []
        with open(self.targets + ".new", "w", encoding="utf-8") as file:
            json.dump(targets, file)
        os.rename(self.targets + ".new", self.targets)

    def holds(self, query, port):
        """Whether a condition holds for the server with this admin port."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        status, body = get(url)
        return status == 200 and any(one["metric"].get("instance", f":{port}").endswith(f":{port}") and
                                     one["metric"].get("job", f"firn-{port}") == f"firn-{port}"
                                     for one in json.loads(body)["data"]["result"])


class Server:
    """One firn-server on loopback."""

    def __init__(self, test, name, registry, *flags, environment=None, context=None):
        self.test, self.context, self.schema = test, context, "https" if context else "http"
        self.port, self.admin = programs.free_port(), programs.free_port()
        self.registry, self.log_path = registry, f"{test.folder}/{name}.log"
        self.command = [f"{BIN}/firn-server", f"--registry={registry}", f"--listen=127.0.0.1:{self.port}",
                        f"--admin_listen=127.0.0.1:{self.admin}", f"--state_dir={test.folder}/{name}",
                        "--restore_probation_ms=0", *flags]
        self.environment = {**os.environ, **(environment or {})}
        self.start()

    def start(self):
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = programs.start(self.command, stderr=log, env=self.environment)
        self.test.addCleanup(programs.end, self.process)

    def log(self):
        with open(self.log_path, encoding="utf-8") as log:
            return log.read()

    def get(self, path):
        return get(f"http://127.0.0.1:{self.admin}{path}")

    def status(self):
        return json.loads(self.get("/v1/status")[1] or "{}")

    def reason(self, tag):
        """What a call for an id of the tag gets: "served", or the reason of the refusal."""
        status, body = get(f"{self.schema}://127.0.0.1:{self.port}/v1/ids/{tag}", self.context)
        if status == 0:
            return "no connection"
        return "served" if status == 200 else json.loads(body or "{}").get("error", {}).get("reason", body)

    def samples(self, metric):
        """Values of a metric on /metrics."""
        return [float(value) for value in
                re.findall(rf"(?m)^{re.escape(metric)}(?:{{[^}}]*}})? (\S+)$", self.get("/metrics")[1])]

    def banner(self):
        """What the console's banner can show: a list of {urgency, what}."""
        done = subprocess.run(["node", f"{HERE}/console_banner.js", f"http://127.0.0.1:{self.admin}"], check=True,
                              stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout)


class Walk(unittest.TestCase):
    """A test with a folder, a registry in it, and the comparison."""
    browser = None

    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="firn-states-")
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.prometheus = Prometheus(cls.shared)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="firn-states-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.registry = f"dir://{self.folder}/registry"
        self.compared = []

    # ---- what a test does ------------------------------------------------------------------------

    def firn_says(self, *words):
        done = subprocess.run([f"{BIN}/firn", *words, f"--registry={self.registry}"], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def firn(self, *words):
        code, said = self.firn_says(*words)
        self.assertEqual(code, 0, f"firn {words}: {said}")
        return said

    def init(self, *words):
        self.firn("init", "--brand-new", "--force", "--workers=2", *words)

    def start(self, *flags, name="server", **options):
        return Server(self, name, self.registry, *flags, **options)

    def node(self, path=""):
        """The file of a node in the directory registry."""
        return os.path.join(self.folder, "registry", path, "node")

    def hold_registry(self):
        """Makes the directory registry unavailable, as a process does that is stopped inside a write. Returns the
        file, whose close makes the registry available again."""
        lock = open(f"{self.folder}/registry/.firn/lock", "rb")
        self.addCleanup(lock.close)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def await_true(self, what, true, server, pause_s=0.1):
        end = time.monotonic() + PATIENCE_S
        while not true():
            if time.monotonic() > end or server.process.poll() is not None:
                self.fail(f"{what}: {server.get('/readyz')}\n{server.log()}")
            time.sleep(pause_s)

    def await_ready(self, server, tag=""):
        path = "/readyz" + (f"?tag={tag}" if tag else "")
        self.await_true("ready", lambda: server.get(path)[0] == 200, server)

    def scrape(self, server):
        """Returns once Prometheus has a sample of the server, the only one that it scrapes from now on."""
        self.prometheus.name(server.admin)
        self.await_true("Prometheus scrapes", lambda: self.prometheus.holds("firn_ready", server.admin), server)

    # ---- the comparison --------------------------------------------------------------------------

    def compare(self, name, server, tag, called=None, default=None, like=None, audit=True,
                refused=None):
        """Compares every surface with the row. `tag`: the tag that the state is about; `called`: the tag of the
        calls; `default`: the status of /readyz where the row leaves it open; `like`: the row that has the cells which
        this one leaves open; `audit`: whether there is a registry that firn audit can read;
        `refused`: the refused tag, where that is not `tag`."""
        row = row_of(name)
        if like:
            row = {key: cell if not re.search("that row|by tag", cell) else row_of(like).get(key, cell)
                   for key, cell in {**row_of(like), **row}.items()}
        self.compared.append(name)
        await_it = lambda what, true: self.await_true(f"{name}: {what}", true, server)
        called = tag if called is None else called
        reasons = re.findall(r"`([A-Z_]+)`", row["calls get"]) or [row["calls get"].split(":")[0].split(" until")[0]]
        if reasons == ["none"]:
            reasons = ["no connection"]
        await_it(f"calls get {reasons}", lambda: server.reason(called) in reasons)
        want = next(row[key] for key in READY_OF_TAG if key in row)
        await_it(f"/readyz?tag={tag} is {want}", lambda: server.get(f"/readyz?tag={tag}")[0] == int(want))
        ready = int(row["/readyz"]) if row.get("/readyz", "").isdigit() else default
        await_it(f"/readyz is {ready}", lambda: server.get("/readyz")[0] == ready)
        for field in states.quoted(row["status field"]):
            await_it(f"status shows {field}", lambda f=field: self.shows(server, f, like or name, tag))
        self.compare_metrics(row, server, await_it)
        self.compare_alerts(row, server, await_it)
        # Before the audit, which shows a state that has just ended until the server's next report.
        self.compare_banner(row, server, refused or tag, await_it)
        if audit:
            self.compare_audit(row, server, await_it)
            self.compare_doctor(row, server, await_it)
        if "as the log prints it" in row["fix"]:
            await_it("the log prints firn restore", lambda: re.search("firn restore .*--", server.log()))
        if "as `firn audit` prints it" in row["fix"]:
            await_it("firn audit prints firn restore",
                     lambda: re.search("firn restore .*--", self.firn_says("audit")[1]))

    @staticmethod
    def shows(server, field, name, tag):
        """Whether the status has a text, a number or true in a field, at any depth."""
        def values(json_value):
            if isinstance(json_value, dict):
                for key, value in json_value.items():
                    if key == field:
                        yield value
                    yield from values(value)
            elif isinstance(json_value, list):
                for value in json_value:
                    yield from values(value)
        found = list(values(server.status()))
        if field == "refused_tags":
            states_of_tag = [one["state"] for one in found[0] if one["tag"] == tag] if found else []
            return name not in (name_of(row) for row in ROWS if "/readyz" not in row) and found[0] or \
                states_of_tag == [name]
        return any(value is not False and value not in ("", [], None) for value in found)

    def compare_metrics(self, row, server, await_it):
        for metric, condition in re.findall(r"`(\w+)`((?: below)? -?\d+)?", row["metric"]):
            def holds(metric=metric, condition=condition):
                samples = server.samples(metric)
                if "below" in condition:
                    return any(sample < int(condition.split()[1]) for sample in samples)
                return any(not condition or sample == int(condition) for sample in samples)
            await_it(f"{metric}{condition}", holds)

    def compare_alerts(self, row, server, await_it):
        self.scrape(server)
        names = re.findall(r"\bFirn\w+", row["alert"])
        for name in names:
            await_it(name, lambda n=name: self.prometheus.holds(self.prometheus.alerts[n], server.admin))
        if not names:
            for name in set(self.prometheus.alerts) - OF_CLUSTER:
                self.assertFalse(self.prometheus.holds(self.prometheus.alerts[name], server.admin),
                                 f"{name_of(row)}: {name} fires")

    def compare_audit(self, row, server, await_it):
        lines, code = states.quoted(row["firn audit"]), re.search(r"exit code (\d)", row["firn audit"])
        if code:
            self.assertEqual(self.firn_says("audit")[0], int(code[1]), name_of(row))
        elif lines:
            await_it(f"audit says one of {lines}", lambda: any(line in self.firn_says("audit")[1] for line in lines))
        else:
            wrong = [line for line in self.firn_says("audit")[1].splitlines() if line.startswith("WRONG")]
            self.assertEqual(wrong, [], name_of(row))

    def compare_doctor(self, row, server, await_it):
        """firn doctor names the state first, with its fix, and its exit code is as urgent as the server's trouble."""
        lines, code = states.quoted(row["firn audit"]), re.search(r"exit code (\d)", row["firn audit"])
        said = ["", ""]

        def first():
            said[:] = [*self.firn_says("doctor")]
            found = said[1].splitlines() + ["", ""]
            return found[0], found[1]

        def names_it():
            what, fix = first()
            # A restore repairs the cause of such a state, which the doctor names first.
            named = said[1] if "firn restore" in row["fix"] else what
            return any(line in named for line in lines) and fix.strip().startswith("fix: ") and all(
                words in fix for words in re.findall(r"`(firn (?:restore|servers online|tags set))", row["fix"]))
        if code:
            self.assertIn("the registry cannot be read", first()[0])
            self.assertEqual(said[0], int(code[1]), said[1])
        elif lines:
            try:
                await_it(f"firn doctor names one of {lines} first", names_it)
            except AssertionError as failure:
                raise AssertionError(f"{said}") from failure
            least = {"soon": 1, "refused": 4, "data": 6}.get(server.status().get("trouble_urgency"), 0)
            self.assertGreaterEqual(said[0], least, said[1])
        else:
            first()
            self.assertEqual(said[0], 0, said[1])

    def compare_page(self, server, urgency, words, doctor=None, **options):
        """The console in a real browser has a banner of this urgency with these words. firn doctor has the exit code of
        the same urgency, or `doctor`."""
        if self.browser is None:
            Walk.browser = browser.Browser(f"{self.shared}/browser")
            self.addClassCleanup(self.browser.end)
        self.browser.open(f"http://127.0.0.1:{server.admin}/")
        self.browser.await_text("banner", f"^{urgency}: .*{re.escape(words)}", **options)
        code, said = self.firn_says("doctor")
        self.assertEqual(code, DOCTOR_EXITS[urgency] if doctor is None else doctor, said)
        self.assertEqual(self.browser.errors, [])

    def compare_banner(self, row, server, tag, await_it):
        cell = row["console banner"]
        if cell.startswith("none"):
            await_it("the console has no banner", lambda: server.banner() == [])
        if "`trouble`" in cell:
            plain = lambda text: re.sub(r"\d+", "#", text)  # it may contain the time
            await_it("the console's banner is the trouble", lambda: server.status().get("trouble") and
                     plain(server.status()["trouble"]) in [plain(one["what"]) for one in server.banner()])
            await_it("the trouble is as urgent as /readyz says", lambda: server.get("/readyz")[0] == (
                503 if server.status().get("trouble_urgency") == "refused" else 200))
        words = [f"refuses tag {tag} "] * ("refused tags" in cell) + [one for one in states.quoted(cell) if " " in one]
        for begin in words:
            await_it(f"the console's banner has {begin}", lambda begin=begin: any(
                one["what"].startswith(begin) for one in server.banner()))


def complete(section, unproduced, *classes):
    """A test that every row of a section is walked by a test, or has a reason in `unproduced`."""
    class Complete(unittest.TestCase):
        def test_every_row_is_walked(self):
            walked = {name for case in classes for test in vars(case).values() for name in getattr(test, "walks", ())}
            rows = {name_of(row) for row in ROWS if section(row)}
            self.assertTrue(rows)
            self.assertEqual(rows - walked - set(unproduced), set(), "rows that no test walks")
            self.assertEqual((walked | set(unproduced)) - rows, set(), "no such rows")
            self.assertEqual(walked & set(unproduced), set(), "rows with a test need no reason")
    return Complete


def main():
    for program in "node", "prometheus", "chromium":
        if not shutil.which(program):
            print(f"skipped: {program} is not installed")
            sys.exit(77)
    sys.argv[1:] = sys.argv[3:]
    unittest.main(verbosity=2)
