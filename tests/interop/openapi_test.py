#!/usr/bin/python3
"""Compares firn-server with its description, /v1/openapi.json, both ways: every path answers as
described, and every path and parameter in the sources is described.

    openapi_test.py FIRN_SERVER FIRN SOURCES

SOURCES is the folder of the handlers. Exit 77 when python3-jsonschema is not installed.
"""

import copy
import glob
import json
import os
import re
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import interop

try:
    from jsonschema import Draft202012Validator
except ImportError:
    interop.skip("python3-jsonschema is not installed")

BOTH_SIDES = ("/v1/servers", "/v1/openapi.json", "/v1/explain/{id}")
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


def closed(schema):
    """The schema, changed to refuse members that it does not name."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(part) for name, part in schema.items()}
    if "properties" in schema and "type" in schema:
        made.setdefault("additionalProperties", False)
    return made


class OpenApiTest(unittest.TestCase):
    program = firn = sources = folder = None

    @classmethod
    def setUpClass(cls):
        cls.server = interop.Server(cls.program, os.path.join(cls.folder, "firn"))
        subprocess.run([cls.firn, "tags", "create", "order", "strategy=segment",
                        "--registry=" + cls.server.registry], check=True)
        deadline = time.time() + interop.PATIENCE_S
        while cls.server.answer("order") != "ID" and time.time() < deadline:
            time.sleep(0.05)
        issued = cls.ask("public", "GET", "/genid")[2].decode()
        cls.document = json.loads(cls.ask("public", "GET", "/v1/openapi.json")[2])
        # A request's clock is compared with the server's, so it must be current.
        cls.examples = {("who", "id"): issued}
        for operation in ("lease", "renewLease"):
            cls.examples[operation, "clock_ms"] = lambda: int(time.time() * 1000)
        cls.examples["renewLease", "lease"] = cls.examples["releaseLease", "lease"] = cls.lease()
        cls.components = closed(copy.deepcopy(cls.document["components"]))

    @classmethod
    def lease(cls):
        """The id of a new lease."""
        words = {"token": os.urandom(16).hex(), "name": "openapi"}
        deadline = time.time() + interop.PATIENCE_S
        status = 503  # until the server has claimed a machine id for leases
        while status == 503 and time.time() < deadline:
            words["clock_ms"] = int(time.time() * 1000)
            status, _, body = cls.ask("public", "POST", "/v1/leases?" + urllib.parse.urlencode(words))
            time.sleep(0.1)
        if status != 201:
            raise SystemExit(f"no lease: {status} {body!r}")
        return json.loads(body)["lease"]

    @classmethod
    def tearDownClass(cls):
        if cls.server.stop() != 0:
            raise SystemExit(cls.server.log())

    @classmethod
    def ask(cls, side, method, target, headers=None, body=None):
        """Status, fields and body."""
        port = cls.server.port if side == "public" else cls.server.admin_port
        request = urllib.request.Request(f"http://127.0.0.1:{port}{target}", method=method,
                                         headers=headers or {}, data=body)
        try:
            with urllib.request.urlopen(request, timeout=interop.PATIENCE_S) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.headers, answer.read()

    def operations(self):
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                for side in self.sides(path, operation):
                    yield side, path, method.upper(), operation

    @staticmethod
    def sides(path, operation):
        if path in BOTH_SIDES:
            return ("public", "admin")
        return ("admin",) if "admin" in operation["tags"] else ("public",)

    def example(self, operation, parameter):
        value = self.examples.get((operation["operationId"], parameter["name"]),
                                  parameter.get("example"))
        return value() if callable(value) else value

    def request(self, path, operation):
        """Target and headers, of everything that has an example."""
        query, headers = {}, {}
        for parameter in operation.get("parameters", ()):
            value = self.example(operation, parameter)
            if value is None:
                self.assertFalse(parameter.get("required"), f"{path}: {parameter['name']}")
            elif parameter["in"] == "path":
                path = path.replace("{%s}" % parameter["name"], str(value))
            elif parameter["in"] == "query":
                query[parameter["name"]] = value
            else:
                headers[parameter["name"]] = value
        return path + ("?" + urllib.parse.urlencode(query) if query else ""), headers

    def expect_described(self, operation, status, headers, body):
        responses = operation["responses"]
        described = responses.get(str(status)) or responses.get("default")
        self.assertIsNotNone(described, f"{status} is not described: {body!r}")
        if "$ref" in described:
            described = self.document["components"]["responses"][described["$ref"].split("/")[-1]]
        if "content" not in described:
            self.assertEqual(body, b"")
            return
        kind = headers["Content-Type"].split(";")[0]
        self.assertIn(kind, described["content"])
        if kind == JSON:
            schema = {**closed(described["content"][kind]["schema"]),
                      "components": self.components}
            Draft202012Validator(schema).validate(json.loads(body))

    def test_every_operation_answers_as_described(self):
        for side, path, method, operation in self.operations():
            if side == "admin" and path in BOTH_SIDES and method == "POST":
                continue  # the admin side explains by GET alone
            with self.subTest(side=side, operation=operation["operationId"]):
                for headers, body in self.bodies(path, operation):
                    target, more = self.request(path, operation)
                    deadline = time.time() + interop.PATIENCE_S
                    answer = self.ask(side, method, target, {**more, **headers}, body)
                    while answer[0] == 503 and time.time() < deadline:
                        time.sleep(0.2)
                        answer = self.ask(side, method, target, {**more, **headers}, body)
                    success = min(code for code in operation["responses"] if code.isdigit())
                    self.assertEqual(answer[0], int(success), f"{target}: {answer[2]!r}")
                    self.expect_described(operation, *answer)

    def bodies(self, path, operation):
        """The possible requests: without a body, or each kind of body with the examples of the GET."""
        if "requestBody" not in operation:
            return [({}, None)]
        told = {p["name"]: p["example"] for p in self.document["paths"][path]["get"]["parameters"]
                if p["in"] == "query" and "example" in p}
        made = {FORM: urllib.parse.urlencode(told), JSON: json.dumps(told)}
        return [({"Content-Type": kind}, made[kind].encode())
                for kind in operation["requestBody"]["content"]]

    def test_every_path_lists_its_methods(self):
        for path, methods in self.document["paths"].items():
            operation = next(iter(methods.values()))
            side = self.sides(path, operation)[0]
            expected = {method.upper() for method, other in methods.items()
                        if side in self.sides(path, other)} | {"OPTIONS"}
            if "GET" in expected:
                expected.add("HEAD")
            target, _ = self.request(path, operation)
            with self.subTest(path=path):
                _, headers, _ = self.ask(side, "OPTIONS", target)
                self.assertEqual(set((headers["Allow"] or "").split(", ")), expected)

    def test_refusals_are_as_described(self):
        for side, path, method, operation in self.operations():
            if method != "GET" or not path.startswith("/v1/"):
                continue
            target, _ = self.request(path, operation)
            target += ("&" if "?" in target else "?") + "unknown=1"
            with self.subTest(side=side, path=path):
                status, headers, body = self.ask(side, method, target)
                self.assertEqual(status, 400, body)
                self.expect_described(operation, status, headers, body)
        answer = self.ask("public", "GET", "/v1/ids/undefined")
        self.assertEqual(answer[0], 404)
        self.expect_described(self.document["paths"]["/v1/ids/{tag}"]["get"], *answer)
        answer = self.ask("admin", "POST", "/v1/offline")
        self.assertEqual(answer[0], 403)
        self.expect_described(self.document["paths"]["/v1/offline"]["post"], *answer)

    def sources_text(self):
        return "".join(open(path).read() for path in
                       sorted(glob.glob(os.path.join(self.sources, "http_*.cc"))))

    def test_no_path_of_the_sources_is_left_out(self):
        described = list(self.document["paths"])
        literals = set(re.findall(r'"(/[A-Za-z0-9_./]*)"', self.sources_text()))
        self.assertGreater(len(literals), 15)
        for literal in sorted(literals):
            with self.subTest(literal=literal):
                self.assertTrue(any(path.startswith(literal) for path in described))
        self.assertEqual(self.ask("public", "GET", "/v1/nowhere")[0], 404)

    def test_no_parameter_of_the_sources_is_left_out(self):
        described = [{p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"}
                     for _, _, _, operation in self.operations()]
        for taken in re.findall(r"TakesOnly\(\{([^}]*)\}", self.sources_text()):
            names = set(re.findall(r'"([a-z_]+)"', taken))
            with self.subTest(names=names):
                self.assertIn(names, described)
        read = set(re.findall(r'(?:Number|Parameter|Unsigned|Need)\((?:request, )?"(\w+)"',
                              self.sources_text()))
        self.assertEqual(read - set().union(*described), set())


if __name__ == "__main__":
    interop.main(OpenApiTest, "curl", "firn", "sources")
