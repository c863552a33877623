"""Serves the console's own files with invented answers, for clusters that a test cannot run.

    console_stage.py PORT SERVERS [SCENE]
    scenes: healthy, trouble, fresh, killed, frozen, overloaded, outdated, warned
"""

import http.server
import ipaddress
import json
import os
import sys
import threading
import time

CONSOLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "server", "front", "http",
                       "console")
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
RACK_BITS, SLOTS = 2, 1024
REASONS = ("BAD_REQUEST", "UNKNOWN_TAG", "EXHAUSTED", "REJECTED", "INTERNAL", "NOT_READY", "STORE_DOWN", "OVERLOADED")
FROZEN = "the cluster is frozen: the ledger of tag 'order' was lost or went back: its node is missing"
RESTORE = "run the firn restore command that a running server prints in its log and as `trouble` in its /v1/status"
LOST = {"tag": "order", "state": "lost", "reason": "INTERNAL",
        "why": "the tag's node is missing from the registry, so data were lost; run the firn restore command that this "
               "server's log and /v1/status show"}


def left_finding(place, holder, free_from):
    """The finding of a killed server, in the words of firn doctor."""
    return {"urgency": "soon", "what": f"{place}: its holder, {holder}, has left without giving it back, or is cut off; "
            f"it is free from {free_from}",
            "fix": "start that server again, or check its connection to the registry"}


class Stage:
    """A cluster of `servers` servers. `healthy` has traffic; so has `trouble`, in which a server does not report,
    another refuses a tag and some machine ids are reserved or retired; `fresh` has none. In `killed`, the last
    server was killed; in `frozen`, the node of a tag is lost; in `overloaded`, each server refuses half of its calls;
    in `outdated`, the cluster was read minutes ago; in `warned`, the server has a trouble that refuses no calls, and
    servers issue an id in 10 s."""

    def __init__(self, servers, scene="healthy"):
        self.servers, self.scene, self.started = servers, scene, time.time()
        stage = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                status, kind, body = stage.answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", kind + "; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        self.handler = Handler

    def serve(self, port=0):
        """Serves in a thread. Returns the port."""
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), self.handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self.server.server_address[1]

    def end(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path):
        if path == "/" or path.startswith("/console/"):
            file = os.path.join(CONSOLE, os.path.basename(path) or "index.html")
            with open(file, "rb") as content:
                return 200, KINDS[os.path.splitext(file)[1]], content.read()
        if path == "/metrics":
            return 200, "text/plain", self.metrics().encode()
        made = {"/v1/status": self.status, "/v1/audit": self.audit, "/v1/tags": self.tags,
                "/v1/servers": self.listed, "/v1/consumers": self.consumers,
                "/v1/history": lambda: self.history(0)}.get(path)
        if made is None:
            return 404, "application/json", b'{"error":{"message":"not staged"}}'
        return 200, "application/json", json.dumps(made()).encode()

    # ---- activity of the servers ----

    def now_ms(self):
        return int(time.time() * 1000)

    def address(self, i):
        return f"10.0.{i // 250}.{i % 250 + 1}:7609"

    def ids(self, i, period):
        """Ids that a server issues in a period of ten seconds."""
        if self.scene in ("fresh", "warned"):
            return int(self.scene == "warned")
        wave = 8 + (period // 6 + 3 * i) % 7
        return 4000 * wave * (1 + 3 * (i % 5 == 0))

    def history(self, i):
        """The newest sample is of the period that has begun."""
        now = time.time()
        last = int(now / 10)
        length, part = 2 if self.scene == "fresh" else 90, now % 10 / 10
        periods = range(last + 1 - length, last + 1)
        ids = [self.ids(i, p) for p in periods]
        refused = [40 if self.scene == "trouble" and i == 1 and 20 < p % 90 < 35 else
                   count // 20 if self.scene == "overloaded" else 0 for p, count in zip(periods, ids)]
        for counts in ids, refused:
            counts[-1] = int(counts[-1] * part)
        return {"every_ms": 10000, "age_ms": int(10000 * part) - 10000, "ids": ids, "refused": refused,
                "p99_us": [0 if self.scene == "fresh" else 64 << (p + i) % 3 for p in periods]}

    def is_silent(self, i):
        return self.scene == "trouble" and i == 2

    def listed_count(self):
        return self.servers - (self.scene == "killed")

    def is_away(self, i):
        return self.is_silent(i) or i == self.listed_count()

    def pace(self, i):
        history = self.history(i)
        made = {"over_ms": 5000, "ids": history["ids"][-2] // 2, "calls": history["ids"][-2] // 20,
                "refused": 20 if self.scene == "trouble" and i == 1 else history["refused"][-2] // 2,
                "age_ms": 95_000 if self.is_silent(i) else 300, "history": history,
                "connections": {"thrift": 0 if self.scene == "fresh" else 40 + i % 9, "http": 3,
                                "redis": i % 4, "dubbo": 2 if i % 10 == 0 else 0},
                "console": f"http://{self.address(i).split(':')[0]}:7610/"}
        if self.scene != "fresh":
            made["p99_us"] = 64 << i % 3
        return made

    # ---- answers ----

    def listed(self):
        return {"servers": [{"address": self.address(i), "weight": 100, "online": True}
                            for i in range(self.listed_count())]}

    def bound_ms(self, i):
        """Claims in a frozen cluster are not renewed."""
        return self.now_ms() + (200_000 if self.scene == "frozen" else 600_000) - 30_000 * (i % 5)

    def machine(self, i):
        return i * 4 + i % 4

    def owner(self, i):
        ip = self.address(i).split(":", maxsplit=1)[0]
        return f"firn.7609.{int(ipaddress.IPv4Address(ip))}.9e107d9d372bb682"

    def findings(self):
        last = self.servers - 1
        if self.scene == "killed":
            free_from = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(self.bound_ms(last) / 1000))
            return [left_finding(f"rack {last % 4} worker {last}",
                                 f"firn {self.address(last)} on host-{self.machine(last)}", free_from)]
        if self.scene == "frozen":
            each = [self.address(i) for i in range(self.servers)]
            return [{"urgency": "data", "what": FROZEN, "fix": RESTORE},
                    *({"urgency": "data", "what": f"{one} reports numbers of tag 'order', which is missing",
                       "fix": RESTORE} for one in each),
                    *({"urgency": "data", "what": f"{one} refuses tag 'order': lost: {LOST['why']}",
                       "fix": RESTORE} for one in each)]
        if self.scene == "overloaded":
            return [{"urgency": "refused", "what": f"{self.address(i)} refuses calls (OVERLOADED): over 1 % in the last 10 s",
                     "fix": "add servers, or raise the tag's step; if the refusals name another cause, such as too many ids "
                     "in one call, do what they say"} for i in range(self.servers)]
        if self.scene != "trouble":
            return []
        return [{"urgency": "refused", "what": f"server {self.address(1)} refuses tag 'invoice': there is no "
                 "store 'main' here", "fix": "start it with --stores_file that defines [main]"},
                {"urgency": "soon", "what": f"the certificate of the public port of {self.address(0)} expires "
                 "on 2026-12-01", "fix": "replace the certificate, then send SIGHUP"},
                {"urgency": "note", "what": "machine id 8 is granted until 12:10 and its holder is away"}]

    def machines(self):
        now, made = self.now_ms(), []
        for i in range(self.servers):
            made.append({"machine": self.machine(i), "use": "unattended" if self.is_away(i) else "held",
                         "live": not self.is_away(i), "endpoint": self.address(i),
                         "owner": self.owner(i), "left": i == self.listed_count(), "bound_ms": self.bound_ms(i)})
        if self.scene == "healthy":
            made += [{"machine": 512 + 4 * j, "use": "held", "live": True, "endpoint": self.address(0),
                      "lease": {"name": f"shop-{j}", "server": self.address(0)}} for j in range(self.servers // 3)]
        if self.scene == "trouble":
            made += [{"machine": 900 + j, "use": use, "live": False} for j, use in enumerate(
                ["reserved"] * 8 + ["retired"] * 3 + ["released"] * 5 + ["passed"] * 2 + ["poisoned"])]
        for one in made:
            machine = one["machine"]
            one.setdefault("owner", "reserved: leaf" if one["use"] == "reserved" else self.owner(0))
            one.setdefault("bound_ms", now + 480_000)
            one.update(worker=machine >> RACK_BITS, rack=machine & 3, host=f"host-{machine}", pid=4711, build="abc1234",
                       since_ms=now - 86_400_000, nonce="n", version=3, clock_skew_ms=0)
            if machine % 8 == 0:
                one.update(past_count=7, past=[
                    {"owner": "10.0.0.9", "host": f"host-{j}", "pid": 100 + j,
                     "first_ms": now - (10 - j) * 86_400_000, "end_ms": now - (9 - j) * 86_400_000}
                    for j in range(5)])
        return made

    def audit(self):
        now = self.now_ms()
        providers = [{"address": self.address(i), "application": "firn", "state": "serving",
                      "bound_ms": self.bound_ms(i), "clock_skew_ms": i % 7, "rack": i % 4, "tls": False,
                      "since_ms": now - 86_400_000, "pid": 4711, "build": "abc1234",
                      "machine": self.machine(i), "machines": [{"machine": self.machine(i),
                                                                "bound_ms": self.bound_ms(i)}],
                      "pace": self.pace(i)} for i in range(self.listed_count())]
        if self.scene == "trouble":
            providers[1]["reason"] = "tag 'invoice': there is no store 'main' here; set --stores_file"
        age = 212_000 if self.scene == "outdated" else 900
        return {"cluster": {}, "machines": self.machines(), "providers": providers, "faults": [], "notes": [],
                "findings": self.findings(), "paces_wanted_ms": 60_000, "slots": SLOTS, "at_ms": now - age,
                "age_ms": age}

    def tags(self):
        made = [{"tag": "default", "strategy": "snowflake", "high": "0", "state": "enabled"},
                {"tag": "order", "strategy": "segment", "step": 2000, "step_max": 100000000, "high": "9001",
                 "next": "9001", "state": "enabled", "buffer": "double", "plugins": ""},
                {"tag": "invoice", "strategy": "segment", "step": 1000, "high": "25000", "next": "25000",
                 "store": "main", "state": "enabled"},
                {"tag": "old", "strategy": "snowflake", "high": "0", "state": "disabled"}]
        return {"tags": made, "at_ms": self.now_ms(), "age_ms": 900}

    def status(self):
        trouble, now = self.scene == "trouble", time.time()
        troubles = {"warned": {"trouble": "no grant file", "trouble_urgency": "soon"},
                    "frozen": {"trouble": f"{FROZEN}; run firn restore: firn restore --registry=zk://zk1,zk2,zk3 "
                               "--from=/var/lib/firn --uuid=0c5a…", "trouble_urgency": "data"}}
        refused_tags = [{"tag": "old", "state": "disabled", "reason": "REJECTED", "why": "disabled"}]
        if trouble:
            refused_tags.insert(0, {"tag": "invoice", "state": "unsupported", "reason": "NOT_READY",
                                    "why": "there is no store 'main' here; set --stores_file"})
        if self.scene == "frozen":
            refused_tags.insert(0, LOST)
        issued = 0 if self.scene == "fresh" else int(1_000_000 + 9000 * (now - self.started))
        rfc = "2026-11-25T03:15:17Z"
        seconds = int(now - self.started)
        refused = {**dict.fromkeys(REASONS, 0), "STORE_DOWN": seconds if trouble else 0,
                   "OVERLOADED": 900 * seconds if self.scene == "overloaded" else 0}
        return {"state": "READY", "cluster_uuid": "0c5a…", "cluster_name": "zk://zk1,zk2,zk3",
                "application": "firn", "address": self.address(0), "layout": "time:41 machine:10 sequence:12",
                "layout_ends": "2089-09-06T15:47:35Z", "rack_bits": RACK_BITS, "machine_bits": 10,
                "machine": 0, "machines": [{"claim": "holding", "machine": 0, "worker": 0, "rack": 0,
                                            "bound_ms": self.now_ms(), "bound_in_ms": 480000}],
                "bound_in_ms": 480_000, "registry": {"connected": True, "session_age_ms": 7_200_000,
                                                     "renewals": 1440, "renewals_failed": 0},
                "frozen": self.scene == "frozen", "overloaded": self.scene == "overloaded", "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
                "started": rfc, "clock_skew_ms": 2, "certificates": [], "calls": issued // 10 + refused["OVERLOADED"],
                "refused": refused, "protocols": self.protocols(refused),
                "tags": [{"tag": "default", "strategy": "snowflake", "issued": issued},
                         {"tag": "order", "strategy": "segment", "high": "25000", "step": 2000,
                          "supply": 25000, "supply_seconds": 12.5, "issued": 0 if not issued else 2000}],
                "refused_tags": refused_tags, "refused_tags_count": len(refused_tags), "version": "0.1.0",
                "build": "abc1234", **troubles.get(self.scene, {})}

    def protocols(self, refused):
        counts = {"thrift": 25000, "http": 12000, "redis": 2000, "dubbo": 0}
        if self.scene == "fresh":
            counts = dict.fromkeys(counts, 0)
        return [{"protocol": name, "connections": calls // 1000, "calls": calls,
                 "refused": refused if name == "thrift" else dict.fromkeys(REASONS, 0)}
                for name, calls in counts.items()]

    def consumers(self):
        shop = {"interface": "firn.IdService", "application": "shop", "dubbo": "3.3.0"}
        made = [] if self.scene == "fresh" or self.servers < 12 else [
            {**shop, "host": f"10.1.0.{i}", "pid": str(300 + i)} for i in range(self.servers // 6)]
        return {"consumers": made, "at_ms": self.now_ms(), "age_ms": 900}

    def metrics(self):
        if self.scene == "fresh":
            return ""
        lines = []
        for name, requests in ("http", 12000), ("redis", 2000), ("thrift", 25000):
            lines += [f'firn_request_seconds_bucket{{door="public",protocol="{name}",le="{le}"}} {count}'
                      for le, count in (("3.2e-05", requests // 2), ("6.4e-05", requests), ("+Inf", requests))]
        return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Stage(int(sys.argv[2]), *sys.argv[3:4]).serve(int(sys.argv[1]))
    time.sleep(3600)
