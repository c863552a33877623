"""Runs the cases of cases.json with scripted servers and a client behind a driver."""

import json
import math
import os
import resource
import ssl
import threading
import time

from case_list import filled, half_closed_ports
from driver_process import PATIENCE_S, Driver, Red
from firn.wire import ttypes
from scripted_server import EPOCH_MS, ScriptedServer

GENEROUS = {"deadline_ms": 20_000, "attempt_limit_ms": 10_000}
COUNTERS = ("requests", "statuses", "lists", "asked", "accepted", "open", "half_closed")  # asked: requests, lists
STATES = ("open", "half_closed")  # of now, and not since `mark`


class Play:
    """One case, with its own servers and client."""

    def __init__(self, case, driver, authorities, folder):
        self.case, self.driver, self.folder = case, driver, folder
        self.tls = None
        if case.get("tls"):
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*authorities["server"])
            if case["tls"] == "mutual":
                self.tls.verify_mode = ssl.CERT_REQUIRED
                self.tls.load_verify_locations(authorities["ca"])
        self.servers = {name: ScriptedServer(self.tls) for name in case.get("servers", "abc")}
        self.words = {name: server.address for name, server in self.servers.items()}
        self.words.update({name + ".port": server.port for name, server in self.servers.items()})
        self.words.update(ca=authorities["ca"], other_ca=authorities["other_ca"], long="t" * 70_000,
                          own_ca=os.path.join(folder, f"ca-{id(self)}"))
        with open(authorities["ca"]) as file:
            self.authority = file.read()
        self.do_write("whole")
        for whose in "client", "other":
            self.words[whose + "_cert"], self.words[whose + "_key"] = authorities[whose]
        self.given, self.base, self.listed, self.kept = set(), {}, "", []

    def run(self):
        try:
            if "list" in self.case:
                self.do_list(self.case["list"])
            self.open(dict(self.case.get("open", {})))
            for step in self.case["steps"]:
                verb = next(iter(step))
                try:
                    getattr(self, "do_" + verb, self.call)(step[verb], **(
                        {} if hasattr(self, "do_" + verb) else {"verb": verb, "step": step}))
                except Red as why:
                    raise Red(f"{why}\n      at {json.dumps(step)[:200]}") from why
            self.driver.ask("close")
        finally:
            for server in self.servers.values():
                server.close()

    def open(self, said):
        fault = said.pop("invalid", None)
        said.setdefault("servers", "list://" + ",".join(s.address for s in self.servers.values()))
        answer = self.driver.ask("open", **filled({**GENEROUS, **said}, self.words))
        if fault is None and "kind" in answer:
            raise Red(f"the client was not made: {answer}")
        if fault and (answer.get("kind") != "invalid" or fault not in answer["failure"]):
            raise Red(f"the options were taken: {answer}")

    # --- servers ----------------------------------------------------------------------------------

    def named(self, names):
        if "kept" in names:
            names = self.kept
        return [self.servers[name] for name in (self.servers if "*" in names else names)]

    def do_set(self, behaviours):
        for name, behaviour in behaviours.items():
            for server in self.named([name]):
                server.behaviours = behaviour if isinstance(behaviour, list) else [behaviour]

    def do_said(self, what):
        for name, said in what.items():
            self.servers[name].said.update(said)

    def do_list(self, told):
        told = filled(told, self.words)
        entries, self.listed = [], told["of"]
        for name in told["of"]:
            said = {"rack": 0, "weight": 100, "online": True, "state": "READY",
                    **told.get("entries", {}).get(name, {})}
            said["state"] = ttypes.ServerState._NAMES_TO_VALUES.get(said["state"])
            entries.append(ttypes.ServerEntry(address=self.servers[name].address,
                                              tls=self.tls is not None, **said))
        self.list_version = told.get("version", 1)
        for server in self.servers.values():
            server.list = (self.list_version, told.get("ask_again_ms", 100), entries)

    def do_leave(self, whose):
        """Removes a server from the list: one that the client uses, or another one."""
        going = next(name for name in self.listed if (name in self.kept) == (whose == "kept"))
        self.do_list({"of": [name for name in self.listed if name != going],
                      "version": self.list_version + 1})

    def do_down(self, names):
        for server in self.named(names):
            server.down()

    def do_up(self, names):
        for server in self.named(names):
            server.up()

    def do_full(self, names):
        for server in self.named(names):
            server.full()

    def do_drop(self, names):
        for server in self.named(names):
            server.drop()

    def do_write(self, what):
        """Writes the file {own_ca}, or removes it."""
        if what == "gone":
            return os.remove(self.words["own_ca"])
        end = {"whole": None, "half": len(self.authority) // 2, "empty": 0}[what]
        with open(self.words["own_ca"], "w") as file:
            file.write(self.authority[:end])

    def do_descriptors(self, what):
        """Whether the client's process can open one more file or connection."""
        pid = self.driver.process.pid
        _, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, ({"none": 3, "enough": 1024}[what], most))

    # --- comparisons ------------------------------------------------------------------------------

    def counters(self):
        now = {}
        half_closed = half_closed_ports()
        for what in COUNTERS:
            each = {name: len(server.peers) if what == "open" else
                    half_closed.count(server.port) if what == "half_closed" else
                    server.requests + server.lists_asked if what == "asked" else
                    getattr(server, {"lists": "lists_asked"}.get(what, what))
                    for name, server in self.servers.items()}
            now.update({f"{name}.{what}": count for name, count in each.items()})
            now[what] = sum(each.values())
            now["kept." + what] = sum(each[name] for name in self.kept)
        return now

    def do_mark(self, _):
        self.base = {key: count for key, count in self.counters().items()
                     if not key.endswith(STATES)}

    def amiss(self, wanted):
        """A sentence about the first difference, or None."""
        now = self.counters()
        for key, want in wanted.items():
            if key == "event":
                events = self.driver.ask("seen")["events"]
                if want not in events:
                    return f"no event '{want}' among {events}"
                continue
            got = now[key] - self.base.get(key, 0)
            holds = {">": got > int(str(want)[1:] or 0), "<": got < int(str(want)[1:] or 0)}.get(
                str(want)[0], got == want)
            if not holds:
                return f"{key} is {got}, not {want}; all: { {k: v for k, v in now.items() if v} }"
        return None

    def do_seen(self, wanted):
        if why := self.amiss(wanted):
            raise Red(why)

    def do_await(self, wanted):
        self.patiently(lambda: self.amiss(wanted))

    def do_view(self, wanted):
        def amiss():
            view = self.driver.ask("view")["servers"]
            got = {name: view.get(self.servers[name].address) for name in wanted}
            return None if got == wanted else f"the client sees {got}, not {wanted}"
        self.patiently(amiss)

    # --- a large cluster ----------------------------------------------------------------------------

    def asked(self, calls):
        """The servers that the client uses, after it got their list."""
        self.do_view({name: "healthy" if name in self.listed else None for name in self.case["may_list"]})
        before = self.counters()
        self.take(self.driver.ask("id", tag="order", times=calls), {"answered": calls})
        now = self.counters()
        return [name for name in self.servers
                if now[name + ".requests"] > before[name + ".requests"]]

    def do_keeps(self, said):
        """Checks that the client uses that many servers, some of them the same as last time."""
        before, kept, deadline = self.kept, set(), time.monotonic() + PATIENCE_S
        while len(kept) < said["to"] and time.monotonic() < deadline:
            kept.update(self.asked(120))  # not a server that was slow a moment ago
        self.kept = sorted(kept)
        stay = len(set(before) & set(self.kept))
        if len(self.kept) != said["to"] or stay < said.get("of_before", 0):
            raise Red(f"it keeps to {self.kept}; before: {before}")

    def do_clients(self, said):
        """Starts sixty clients one after another, each of which uses half of the servers. Every server must
        be used by some of them, but not by all: 30 are expected, and 5 would be 6 standard deviations off."""
        clients, keepers = 60, dict.fromkeys(self.listed, 0)
        for _ in range(clients):
            self.driver.ask("close")
            self.open(dict(self.case["open"]))
            kept = self.asked(16)
            if len(kept) > said["most"]:
                raise Red(f"a client asks {kept}")
            for name in kept:
                keepers[name] += 1
        if not all(5 < count < clients - 5 for count in keepers.values()):
            raise Red(f"the servers have so many of {clients} clients: {keepers}")

    @staticmethod
    def patiently(amiss):
        deadline = time.monotonic() + PATIENCE_S
        while why := amiss():
            if time.monotonic() > deadline:
                raise Red(f"after {PATIENCE_S} s: {why}")
            time.sleep(0.01)

    def do_pause_ms(self, length):
        self.paused_at_ms = time.time() * 1000
        time.sleep(length / 1000)

    # --- calls ------------------------------------------------------------------------------------

    def call(self, words, verb, step):
        if verb == "start":
            words = {"file": os.path.join(self.folder, str(id(self))), **words}
        if verb in ("id", "ids", "text", "fork", "start", "burst"):
            words = {"tag": "order", **words}
        words = filled(words, self.words)
        if "until" in step:
            return self.until(verb, words, step)
        helper = self.when(step["when"]) if "when" in step else None
        answer = self.driver.ask(verb, **words)
        if helper:
            helper.join()
        self.take(answer, step)

    def do_runs_out(self, said):
        """Makes slow calls until one fails; it must fail for the reason, before `most` were answered."""
        for _ in range(said["most"]):
            answer = self.driver.ask("id", tag=said["tag"])
            self.take(answer, {"failed": 1, "reason": said["reason"]} if answer["failed"] else {})
            if answer["failed"]:
                return
            time.sleep(0.02)
        raise Red(f"{said['most']} calls were answered")

    def until(self, verb, words, step):
        """Calls until the condition holds. All calls must be answered, unless the condition is an answer."""
        anyhow = step["until"] == "answered"
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.driver.ask(verb, **words)
            self.take(answer, {} if anyhow else {"answered": 1})
            why = None if answer["answered"] else str(answer)
            if not anyhow:
                why = self.amiss(step["until"])
            if not why:
                return self.take({**answer, "ids": []}, {**step, "ids": answer["ids"]})
            if time.monotonic() > deadline:
                raise Red(f"after {PATIENCE_S} s of calls: {why}")

    def when(self, said):
        """Acts during a call."""
        def work():
            deadline = time.monotonic() + PATIENCE_S
            if "seconds" in said:
                time.sleep(said["seconds"])
            while "requests" in said and self.counters()["requests"] < said["requests"]:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.01)
            for verb in set(said) - {"requests", "seconds"}:
                getattr(self, "do_" + verb)(said[verb])
        helper = threading.Thread(target=work)
        helper.start()
        return helper

    def take(self, answer, step):
        """Compares an answer with the step's keys. No id may be issued twice in a case."""
        ids = answer.get("ids", [])
        if len(set(ids)) < len(ids) or self.given.intersection(ids):
            raise Red("an id was given twice")
        self.given.update(ids)
        for key in ("answered", "failed", "kind", "reason", "retry_after_ms", "deadline_exceeded"):
            if key in step and answer.get(key) != step[key]:
                raise Red(f"{key} is {answer.get(key)!r}, not {step[key]!r}: {told(answer)}")
        if answer.get("failed", 0) < step.get("failed_least", 0):
            raise Red(f"only {answer['failed']} calls failed: {told(answer)}")
        if step.get("says", "") not in answer.get("failure", ""):
            raise Red(f"'{step['says']}' is not in: {told(answer)}")
        if "hides" in step and step["hides"] in answer.get("failure", ""):
            raise Red(f"'{step['hides']}' is in: {told(answer)}")
        if controls := [one for one in answer.get("failure", "") if not one.isprintable()]:
            raise Red(f"control characters {controls} are in: {told(answer)}")
        if len(answer.get("attempts", [])) > step.get("attempts_most", math.inf):
            raise Red(f"the error lists {len(answer['attempts'])} attempts")
        if "attempts" in step:
            got = sorted((one["server"], f"{one['end']} {one['reason']}".strip())
                         for one in answer["attempts"])
            if got != sorted((self.words[name], end) for name, end in step["attempts"].items()):
                raise Red(f"the attempts were {got}")
        if "last_of" in step and step["ids"] != [self.servers[step["last_of"]].last_id]:
            raise Red("the id is another call's")
        if "newer_than_ms" in step:
            oldest = min((number >> 22) + EPOCH_MS for number in ids)
            if oldest < self.paused_at_ms + step["newer_than_ms"] - 1000:
                raise Red("an id is older than it may be")


def told(answer):
    return {key: value for key, value in answer.items() if key != "ids"}


def play_all(cases, command, authorities, folder, drivers=4):
    """Runs the cases; returns for each one, in order, its fault or None."""
    ends = ["no driver played it"] * len(cases)
    # Starts cases with long waits first. Those with thousands of calls take their turn alone, at the end: all servers are
    # threads of this process, and would miss the time limits of other cases.
    order = sorted(range(len(cases)), key=lambda at: not cases[at].get("first"))
    lock = threading.Lock()

    def work(queue):
        with open(os.path.join(folder, "driver.log"), "a") as log:
            driver = Driver(command, log)
            while True:
                with lock:
                    at = next(queue, None)
                if at is None:
                    break
                try:
                    Play(cases[at], driver, authorities, folder).run()
                    ends[at] = None
                except Red as why:
                    ends[at] = str(why)
                # Ends the driver after a failed case, and after one without descriptors, from which a JVM
                # does not recover.
                if ends[at] or any("descriptors" in step for step in cases[at]["steps"]):
                    driver.process.kill()
                    driver.end()
                    driver = Driver(command, log)
            driver.end()

    for alone, count in (False, drivers), (True, 1):
        queue = iter([at for at in order if bool(cases[at].get("alone")) == alone])
        workers = [threading.Thread(target=work, args=(queue,)) for _ in range(count)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return ends
