"""Plays the steps of tests/contract/lessees.json and jumps.json, which the generators of all languages share."""

import json
import os
import re
import types

import firn
from firn.errors import AttemptFailed, End, LeaseFault, LeaseRefused, Reason
from firn.leased_ids import LeasedIds
from firn.lessee import Lessee
from firn.protocol import LeaseTerms
from test_frames import PATH

EPOCH_MS = 1_704_067_200_000
START_MS = EPOCH_MS + 1_000_000_000
MS = 1_000_000


class Clock:
    """All clocks advance together; `step` moves the wall clock alone."""

    def __init__(self):
        self.wall, self.boot = START_MS * MS, 5_000 * MS

    def wall_ns(self):
        return self.wall

    def boot_ns(self):
        return self.boot

    steady_ns = boot_ns

    def advance(self, ms):
        self.wall += round(ms * MS)
        self.boot += round(ms * MS)

    def step(self, ms):
        self.wall += ms * MS

    def tick(self):
        return self.wall // MS - EPOCH_MS

    def wall_at_zero(self):
        return self.wall - self.boot


def terms_of(machine=17, **words):
    """Terms of the layout firn: time:41 machine:10 sequence:12."""
    now = START_MS - EPOCH_MS
    said = {"lease": f"lease-{machine}", "number": 1, "machine": machine, "worker": machine, "base_bits": machine << 12,
            "tick_shift": 22, "sequence_bits": 12, "sequence_count": 4096, "tick_ms": 1, "epoch_ms": EPOCH_MS,
            "from_tick": now, "until_tick": now + 15_000, "renew_in_ms": 5_000, "server": "10.0.0.1:7609"}
    return LeaseTerms(**{**said, **words})


KINDS = {"Grant": "grant", "Renewal": "renewal", "Release": "release"}
FAULTS = {"none": LeaseFault.NO_LEASES, "other": LeaseFault.OTHER, "unknown": LeaseFault.UNKNOWN_LEASE,
          "outdated": LeaseFault.OUTDATED, "revoked": LeaseFault.REVOKED}
REASONS = {"none": "no server has granted one yet", "ended": "ended, and no server extended it", "revoked": "was revoked",
           "closed": "the generator was closed", "jumped": " s, and no server has confirmed it", "nothing": ""}


def table(name):
    """Returns the cases; none if a source package does not contain the table."""
    path = os.path.join(os.path.dirname(PATH), name)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return json.load(file)["cases"]


def address_of(server):
    return f"10.0.0.{server[1:]}:7609"


def matches(request, pattern):
    """Whether the request has the parts that the pattern has."""
    parts, expected = request.split(":"), pattern.split(":")
    return all(one in ("_", part) for part, one in zip(parts, expected))


class Player:
    def __init__(self, test, case):
        self.test, self.clock = test, Clock()
        self.servers = [address_of(f"s{i}") for i in range(1, case.get("servers", 2) + 1)]
        self.ahead_ms, self.replies, self.order, self.sent, self.losses = case.get("ahead", 60_000), {}, None, [], []
        self.names, self.machine, self.held, self.leases, self.used, self.position = {}, 6, None, {}, {}, -1
        self.ids, drawn = LeasedIds(self.clock), iter(range(1, 1_000_000))
        self.lessee = Lessee("checkout", self.ahead_ms, None, self.ids,
                             lambda tried: next((one for one in self.servers if one not in tried), None),
                             lambda address: address in self.servers, self.on_lost,
                             lambda: self.clock.boot / 1e9, lambda: f"{next(drawn):032x}")

    def on_lost(self, loss):
        self.losses.append(loss.kind)
        raise RuntimeError("as every case does")

    def play(self, steps):
        for number, step in enumerate(steps, 1):
            verb, *words = step.split()
            try:
                getattr(self, "do_" + verb)(*words)
            except (AssertionError, firn.FirnError) as fault:
                raise AssertionError(f"step {number}, {step}: {fault}") from fault

    # --- time and requests ------------------------------------------------------------------------

    def turn(self):
        """Sends what is due, up to a request that has no standing reply."""
        while True:
            if self.order is None:
                self.order = self.lessee.due()
                if self.order is None:
                    return
                self.sent.append((self.described(self.order), self.clock.boot))
                self.test.assertLess(len(self.sent), 100_000, "requests without end")
            reply = self.replies.get(KINDS[type(self.order.request).__name__])
            if reply is None:
                return
            self.reply(reply)

    def reply(self, word):
        order, self.order = self.order, None
        self.lessee.done(order, self.outcome(word, order))

    def do_lease(self, keys=""):
        self.turn()
        self.do_answer("terms:" + keys)
        self.sent = []

    def do_pass(self, ms):
        self.turn()
        until = self.clock.boot + int(ms) * 1_000_000
        while self.clock.boot < until:
            due_ms = int(ms) if self.order else max(1, self.lessee.next_at * 1e3 - self.clock.boot / 1e6)
            self.clock.advance(min(due_ms, (until - self.clock.boot) / 1e6))
            self.turn()

    def do_work(self, ms):
        for _ in range(int(ms) // 50):
            self.do_pass(50)
            self.check_id(self.ids.next())

    def do_sleep(self, ms):
        self.clock.advance(int(ms))

    def do_step(self, ms):
        self.clock.step(int(ms))
        self.clock.advance(1)

    def do_answer(self, word):
        self.test.assertIsNotNone(self.order, "no request has no outcome")
        self.reply(word)
        self.turn()

    def do_reply(self, kind, word):
        self.replies[kind] = word
        if self.order:
            self.turn()

    def do_stop(self):
        self.lessee.stop()
        self.turn()

    # --- checks -----------------------------------------------------------------------------------

    def do_stopped(self, expected):
        self.test.assertEqual(self.lessee.stopped, expected == "yes")

    def do_loss(self, *kinds):
        losses, self.losses = self.losses, []
        self.test.assertEqual(losses, list(kinds))

    def do_sent(self, *expected):
        sent, self.sent = [one for one, _ in self.sent], []
        self.test.assertTrue(len(sent) == len(expected) and all(map(matches, sent, expected)), f"sent {sent}")

    def do_saw(self, *expected):
        sent, self.sent = [one for one, _ in self.sent], []
        self.test.assertTrue(all(any(matches(one, pattern.lstrip("?")) for pattern in expected) for one in sent) and
                             all(pattern[0] == "?" or any(matches(one, pattern) for one in sent) for pattern in expected),
                             f"sent {sent}")

    def do_waits(self, kind, least, most):
        at = [boot for one, boot in self.sent if matches(one, kind)]
        longest_ms = max(later - one for one, later in zip(at, at[1:])) / 1e6
        self.sent = []
        self.test.assertTrue(int(least) <= longest_ms <= int(most) + 1, f"{longest_ms} ms")

    def do_next(self, expected, more=None):
        if expected in REASONS:
            kind = firn.Closed if expected == "closed" else firn.NoLease
            with self.test.assertRaisesRegex(kind, re.escape(REASONS[expected])):
                self.ids.next()
            if more:
                self.test.assertEqual("asleep" if self.ids.wakes.empty() else "woken", more)
        else:
            self.check_id(self.ids.next(), *(("", "+0") if expected == "id" else (expected, more)))
        if not self.ids.wakes.empty():
            self.ids.wakes.get()
            self.turn()

    def do_look(self, _):
        generator = types.SimpleNamespace(_ids=self.ids)
        self.test.assertIsNotNone(firn.LocalGenerator.machine_id(generator))
        self.test.assertIsNotNone(firn.LocalGenerator.until(generator))

    def check_id(self, number, machine="", after_wall=None):
        tick, held = number >> 22, self.leases[self.held]
        self.test.assertEqual(number >> 12 & 1023, held.machine)
        self.test.assertTrue(held.from_tick <= tick < held.until_tick, "outside the interval")
        position = number >> 22 << 12 | number & 4095
        self.test.assertGreater(position, self.position, "ids do not rise")
        self.position, self.used[self.held] = position, tick
        if machine:
            self.test.assertEqual(str(held.machine), machine)
        if after_wall:
            after = tick - self.clock.tick()  # not exact at nine tenths of the pace
            self.test.assertLessEqual(abs(after - int(after_wall)), 60 if int(after_wall) >= 1000 else 0, f"{after} ms")

    def name(self, kind, drawn):
        if not drawn:
            return "-"
        self.test.assertEqual(len(drawn), 32)
        names = self.names.setdefault(kind, {})
        return names.setdefault(drawn, f"{kind}{len(names) + 1}")

    def described(self, order):
        server, kind = f"s{order.address[7]}", KINDS[type(order.request).__name__]
        if kind == "release":
            lease, turn, used_tick = order.ask.lease
            first = max(self.leases[lease].from_tick, 0) - 1
            if lease in self.used:
                self.test.assertEqual(used_tick, self.used[lease])
            else:
                self.test.assertTrue(first <= used_tick <= max([first, *self.used.values()]), used_tick)
            return f"release:{self.leases[lease].machine}:{self.name('r', turn)}:{server}"
        one, other, wall_ms, ahead_ms = order.ask.lease[:2] + order.ask.lease[-3 if kind == "grant" else -2:][:2]
        self.test.assertEqual((wall_ms, ahead_ms), (self.clock.wall // 1_000_000, self.ahead_ms))
        if kind == "grant":
            self.test.assertEqual((other, order.ask.lease[-1]), ("checkout", None))
            return f"grant:{self.name('t', one)}:{server}"
        self.test.assertEqual(one, self.held)
        return f"renewal:{self.name('r', other)}:{self.name('r', order.ask.lease[2])}:{server}"

    # --- answers ----------------------------------------------------------------------------------

    def outcome(self, text, order):
        word, _, more = text.partition(":")
        if word == "terms":
            keys = dict(pair.split("=") for pair in more.split(",") if pair)
            return self.granted(keys, order) if KINDS[type(order.request).__name__] == "grant" else self.renewed(keys)
        if word in FAULTS:
            return LeaseRefused(FAULTS[word], word, "")
        return {
            "released": lambda: None,
            "lost": lambda: AttemptFailed(End.TIMEOUT, ""),
            "unreachable": lambda: AttemptFailed(End.UNREACHABLE, "refused"),
            "notready": lambda: AttemptFailed(End.REFUSED, "not ready", Reason.NOT_READY, int(more or 0), True),
            "claiming": lambda: AttemptFailed(End.REFUSED, "claiming", Reason.NOT_READY, int(more or 0), False),
            "refused": lambda: AttemptFailed(End.REFUSED, "the clock is ahead of the server's", Reason.BAD_REQUEST),
            "old": lambda: AttemptFailed(End.WRONG_SERVICE, "it does not know the method", lacks_method=True),
            "elsewhere": lambda: LeaseRefused(LeaseFault.ANOTHER_SERVERS, "elsewhere", address_of(more)),
        }[word]()

    def changed(self, terms, keys, spoilt):
        """Returns the terms with the end and what else an answer may change."""
        now, bound = self.clock.tick(), int(keys.get("bound", 0))
        until = now + int(keys.get("for", 60_000))
        if bound:
            until = min(until, START_MS - EPOCH_MS + bound)
        terms = terms._replace(until_tick=until, renew_in_ms=int(keys.get("renew", 20_000)), ending=bound > 0)
        if "server" in keys:
            terms = terms._replace(server=address_of(keys["server"]))
        return terms._replace(**spoilt(terms).get(keys.get("spoilt"), {}))

    def granted(self, keys, order):
        self.machine += 1
        terms = self.changed(terms_of(self.machine, server=order.address, from_tick=self.clock.tick() +
                                      int(keys.get("from", -3_600_000))), keys, lambda terms: {
            "name": {"lease": ""}, "overlap": {"base_bits": terms.base_bits | 1}, "empty": {"until_tick": terms.from_tick},
            "begin": {"from_tick": -5}, "layout": {"epoch_ms": terms.epoch_ms + 1}})
        if "again" in keys:
            terms = self.leases[self.held]._replace(**{"lease": {}, "interval": {"lease": terms.lease}}[keys["again"]])
        self.leases[terms.lease] = terms
        if "spoilt" not in keys and terms.until_tick > self.clock.tick():
            self.held = terms.lease
        return terms

    def renewed(self, keys):
        held = self.leases[self.held]
        terms = self.changed(held, keys, lambda terms: {
            "lease": {"lease": "another"}, "machine": {"machine": 99, "base_bits": 99 << 12},
            "layout": {"epoch_ms": terms.epoch_ms + 1}, "less": {"until_tick": held.until_tick - 1}})
        if "spoilt" not in keys:
            self.leases[self.held] = terms
        return terms
