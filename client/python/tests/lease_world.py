"""A clock that a test sets, and servers that lease machine ids, without network."""

from firn.ask import Ask
from firn.errors import AttemptFailed, End, LeaseFault, LeaseRefused, Reason
from firn.leased_ids import LeasedIds
from firn.lessee import Lessee
from firn.protocol import LeaseTerms

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


def lost():
    return AttemptFailed(End.TIMEOUT, "")


def unreachable():
    return AttemptFailed(End.UNREACHABLE, "refused")


def refused(fault, server=""):
    return LeaseRefused(fault, fault.name, server)


def not_ready(retry_after_ms=700):
    return AttemptFailed(End.REFUSED, "the registry is unreachable", Reason.NOT_READY, retry_after_ms, True)


def claiming(retry_after_ms=700):
    return AttemptFailed(End.REFUSED, "a machine id is being claimed", Reason.NOT_READY, retry_after_ms, False)


class Server:
    """The rules of a server for tokens and turns. `say` replaces its next answers; `after` those after it has acted."""

    def __init__(self, address, clock, machines):
        self.address, self.clock, self.machines = address, clock, machines
        self.say, self.after = [], []
        self.leases = {}  # by token: terms, last turn
        self.ended = {}   # by lease: turn and used tick
        self.bound = 0    # tick: of leases that are ending
        self.paused = False  # each request lasts until its limit

    def answer(self, ask: Ask):
        if self.say:
            outcome = self.say.pop(0)
            if outcome is not None:
                return outcome
        outcome = getattr(self, ask.method)(*ask.lease)
        return self.after.pop(0) if self.after else outcome

    def lease(self, token, name, clock_ms, ahead_ms, rack):
        assert len(token) == 32 and name == "checkout" and rack is None
        assert clock_ms == self.clock.wall // MS
        if token not in self.leases:
            machine = next(self.machines)
            now = self.clock.tick()
            self.leases[token] = [terms_of(machine, server=self.address, from_tick=now, until_tick=now + min(15_000, ahead_ms)), ""]
        return self.leases[token][0]

    def renewLease(self, lease, turn, acknowledged, clock_ms, ahead_ms):
        held = next((one for one in self.leases.values() if one[0].lease == lease), None)
        if held is None:
            return refused(LeaseFault.UNKNOWN_LEASE)
        if turn != held[1]:
            if acknowledged != held[1]:
                return refused(LeaseFault.REVOKED)
            until = self.clock.tick() + ahead_ms
            if held[0].ending:
                until = max(held[0].until_tick, min(until, self.bound))
            held[0] = held[0]._replace(until_tick=until, renew_in_ms=max(100, (until - self.clock.tick()) // 3))
            held[1] = turn
        return held[0]

    def releaseLease(self, lease, turn, used_tick):
        self.ended[lease] = turn, used_tick
        return None


class World:
    """A lessee and its servers, a, b and so on."""

    def __init__(self, servers=2, ahead_ms=60_000):
        self.clock = Clock()
        machines = iter(range(17, 1000))
        self.servers = [Server(f"10.0.0.{i + 1}:7609", self.clock, machines) for i in range(servers)]
        self.known = list(self.servers)  # and usable
        self.listed = {one.address for one in self.servers}
        self.asked, self.lost, self.ids = [], [], LeasedIds(self.clock)
        drawn = iter(range(1, 1000))
        self.lessee = Lessee("checkout", ahead_ms, None, self.ids, self.pick, lambda address: address in self.listed,
                             lambda loss: self.lost.append(loss.reason),
                             lambda: self.clock.boot / 1e9, lambda: f"{next(drawn):032x}")
        self.issued = []

    def pick(self, tried):
        return next((one.address for one in self.known if one.address not in tried), None)

    def turn(self):
        """Sends what is due now. Returns the requests."""
        sent = []
        while (order := self.lessee.due()) is not None:
            assert len(sent) < 50
            server, = [one for one in self.servers if one.address == order.address]
            sent.append((server, order.ask))
            if server.paused:
                self.clock.advance(order.limit_s * 1000)
            self.lessee.done(order, lost() if server.paused else server.answer(order.ask))
        self.asked += sent
        return [(server.address[7], ask.method, *ask.lease) for server, ask in sent]

    def run(self, ms, take=True):
        """Lets time pass. An id is taken in each step unless `take` is false, and must not fail."""
        sent, step = [], 50
        for _ in range(ms // step):
            self.clock.advance(step)
            sent += self.turn()
            if take:
                self.take()
        return sent

    def take(self):
        self.issued.append(self.ids.next())

    def check(self, test):
        """No id is issued twice; ids rise; each is of a lease that was granted to this lessee."""
        positions = [number >> 22 << 12 | number & 4095 for number in self.issued]
        test.assertEqual(positions, sorted(set(positions)))
        granted = [held[0] for server in self.servers for held in server.leases.values()]
        for number in self.issued:
            test.assertTrue(any(one.machine == number >> 12 & 1023 and one.from_tick <= number >> 22 < one.until_tick
                                for one in granted), number)
