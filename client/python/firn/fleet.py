"""The servers of a client, their standing, and which of them a call asks next."""

from __future__ import annotations

import collections
import functools
import random
import threading
import time
from typing import Collection, Iterable, Optional

from .choice import less_busy, subset
from .connection import Connection, Io
from .errors import REFUSAL_RULES, AttemptFailed, End, Reason
from .health import IN_A_ROW, ListPace, RetryBudget
from .options import Options, split_address
from .protocol import Entry, ServerList, State, Status
from .server import EJECTED, HEALTHY, NAMES, NEVER, PROBE_AGAIN_S, QUARANTINED, SeenServer, Server, at_least, remember
from .view import Counters

_NO_ADVICE_S = 0.1
_HEALTHY_MIN = 3  # while fewer are healthy, calls can use all servers
_MOVES_EVERY = 10  # attempt limits after which a server that hangs again frees retries again


class Fleet:
    """Shared by a client and its generators. Thread-safe. Calls hooks without its lock."""

    def __init__(self, options: Options, io: Io) -> None:
        self._options, self.io = options, io
        self._name = random.randbytes(8)
        self.lock = threading.Lock()
        self.news = io.bell()  # servers were added, or are healthy again
        self.stopped = False  # the client
        self.keeper = io.room(1)  # for the engine that does the background work
        self.wake = io.bell()  # wakes that engine
        self.list_pace = ListPace(options.lists_change)
        self.uuid, self.layout, self.version = options.cluster_uuid, "", 0
        self.servers: dict[str, Server] = {}
        self._subset: list[Server] = []
        self._own_numbers: set[str] = set()  # tags that need no machine id
        self._budget = RetryBudget(time.monotonic())
        self._counts: collections.Counter[str] = collections.Counter()
        self._seeds = options.addresses()
        for seed in self._seeds:
            self.servers[seed] = self.made(seed)
        self._choose()

    def made(self, address: str) -> Server:
        server = Server(address, self.io.room(self._options.connections_max))
        server.tls = self._options.tls is not None and server.port != 0
        return server

    # --- the list ---------------------------------------------------------------------------------

    def apply(self, answer: ServerList, told_by: Server) -> list[Server]:
        """Takes a list if it is newer, or if only a last resort answers; the servers that left."""
        entries = answer.servers
        with self.lock:
            lower = answer.version < self.version and not told_by.last_resort
            if not entries or answer.version == self.version or lower:
                return []
            before, self.servers = self.servers, {}
            for entry in entries:
                self._merge(entry, before)
            for seed in self._seeds:
                if seed not in self.servers:
                    server = self.servers[seed] = before.get(seed) or self.made(seed)
                    server.last_resort = True
            self.version = answer.version
            self._counts["lists"] += 1
            self._choose()
            self.news.ring()
            left = [one for address, one in before.items() if address not in self.servers]
        self.tell("list", "", f"{len(entries)} servers, version {answer.version}")
        return left

    def _merge(self, entry: Entry, before: dict[str, Server]) -> None:
        try:
            split_address(entry.address)
        except ValueError:
            return
        server = before.get(entry.address) or self.made(entry.address)
        server.listed(entry)
        server.tls = bool(entry.tls or self._options.tls)
        self.servers[entry.address] = server

    def _choose(self) -> None:
        listed = [one for one in self.servers.values() if not one.last_resort]
        self._subset = subset(listed, self._name, self._options.servers_max, self._options.rack)

    # --- picking ----------------------------------------------------------------------------------

    def pick(self, tag: str, tried: Collection[Server]) -> Optional[Server]:
        """Returns a server that is not among `tried`. Of those with the best standing, and of these in the
        client's rack, it draws two by weight, and takes the second if that is clearly less busy. The
        server counts as busy until give_back."""
        now = time.monotonic()
        with self.lock:
            best, offered = self._offer(self._subset, tag, tried, now)
            if best > HEALTHY or len(offered) < min(_HEALTHY_MIN, len(self._subset)):
                _, offered = self._offer(self.servers.values(), tag, tried, now)
            if not offered:
                return None
            if self._options.rack is not None:
                offered = [one for one in offered if one.rack == self._options.rack] or offered
            server = less_busy(offered)
            server.in_flight += 1
            return server

    def _offer(self, servers: Iterable[Server], tag: str, tried: Collection[Server],
               now: float) -> tuple[int, list[Server]]:
        """Returns the best standing among the servers, and the servers that have it. Quarantined servers are
        among them only while fewer than half of the servers are healthy, and foreign ones never."""
        best = QUARANTINED
        offered: list[Server] = []
        for server in servers:
            if server in tried or not server.addresses or not server.may_serve(now):
                continue
            standing = server.standing(tag, tag not in self._own_numbers, now)
            if standing == QUARANTINED:
                if server.foreign or not self._panics(now):
                    continue
                standing = EJECTED
            if standing < best:
                best, offered = standing, []
            if standing == best:
                offered.append(server)
        return best, offered

    def _panics(self, now: float) -> bool:
        """Returns whether fewer than half of the servers are healthy."""
        members = [one for one in self.servers.values() if one.online and not one.foreign and not one.last_resort]
        return sum(one.standing("", False, now) == HEALTHY for one in members) * 2 < len(members)

    def call_begins(self) -> None:
        with self.lock:
            self._counts["calls"] += 1
            self._budget.call_begins()

    def take_retry(self) -> bool:
        with self.lock:
            taken = self._budget.take(time.monotonic())
            self._counts["retries" if taken else "retries_denied"] += 1
            return taken

    def may_move(self, server: Server, began: float) -> bool:
        """Returns whether a call whose attempt timed out fails over free of the retry budget: another call
        timed out at the server since this attempt began, another server has answered since, and the
        server has not lost calls so recently. One hung server then does not use up the budget."""
        now, limit_s = time.monotonic(), self._options.attempt_limit_ms / 1000
        with self.lock:
            shared, server.lost_at = server.lost_at > began, now
            if not shared or all(one is server or one.answered_at <= began for one in self.servers.values()):
                return False
            if now >= server.moves_again_at:
                server.moves_until = now + limit_s
                server.moves_again_at = now + _MOVES_EVERY * limit_s
            return now < server.moves_until

    def count(self, *what: str) -> None:
        """Counts for the client's counters."""
        with self.lock:
            for one in what:
                self._counts[one] += 1

    def counted(self) -> Counters:
        with self.lock:
            return Counters(**self._counts)

    # --- connecting -------------------------------------------------------------------------------

    def dialled(self, server: Server, reached: bool) -> None:
        """Records an attempt to connect. `reached`: the connection opened and the server sent its status."""
        with self.lock:
            self._counts["connects"] += 1
            self._counts["connects_failed"] += not reached
            if server.dialled(reached, time.monotonic()):
                self.news.ring()  # calls that wait for the pause to end

    def may_dial(self, server: Server, until: float) -> bool:
        """Whether a call may open a connection now. After a failure one call at a time may."""
        with self.lock:
            if time.monotonic() < server.connect_at:
                return False
            if server.dial_failed:
                server.connect_at = until
            return True

    def paused_until(self, tried: set[Server]) -> float:
        """Time at which the first untried server's backoff ends; NEVER: no untried server is in backoff."""
        now = time.monotonic()
        with self.lock:
            return min((one.connect_at for one in self.servers.values()
                        if one not in tried and one.addresses and not one.foreign
                        and not one.may_serve(now)), default=NEVER)

    def has_healthier(self, than: Server, tag: str, tried: set[Server]) -> bool:
        """Returns whether a server that is neither this one nor tried has a better standing for the tag."""
        now = time.monotonic()
        with self.lock:
            needs_machine = tag not in self._own_numbers
            standing = than.standing(tag, needs_machine, now)
            return any(one.standing(tag, needs_machine, now) < standing
                       for one in self.servers.values()
                       if one is not than and one not in tried and one.addresses)

    def take_idle(self, since: float) -> list[tuple[Server, Connection]]:
        """Takes the connections that are idle since then; the caller returns them."""
        with self.lock:
            taken = []
            for server in self.servers.values():
                taken += [(server, one) for one in server.idle if one.idle_since < since]
                server.idle = [one for one in server.idle if one.idle_since >= since]
            return taken

    def give_back(self, server: Server) -> None:
        with self.lock:
            server.in_flight -= 1

    def view(self) -> list[SeenServer]:
        now = time.monotonic()
        with self.lock:
            return [SeenServer(one.address, one.rack, one.weight, NAMES[standing], one.why if standing else "", one.in_flight)
                    for one in sorted(self.servers.values(), key=lambda one: one.address)
                    for standing in [one.standing("", True, now)]]

    async def wait_for_stop(self, until: float) -> None:
        """Waits until that time, or until the client is closed."""
        seen = self.news.rings
        while not self.stopped and time.monotonic() < until:
            await self.news.wait(seen, until)
            seen = self.news.rings

    def tell(self, kind: str, server: str, detail: str) -> None:
        """Reports an event, unless the client was closed."""
        if self._options.on_event and not self.stopped:
            self.io.call_hook(functools.partial(self._options.tell, kind, server, detail))

    def trouble(self) -> None:
        """Asks for the list soon: after a failed call it may have changed."""
        self.list_pace.hurry()
        self.wake.ring()

    # --- answers and failures ---------------------------------------------------------------------

    def admit(self, status: Status) -> None:
        """Fails unless the server with this status is of this cluster."""
        with self.lock:
            if not status.cluster_uuid and self.uuid:
                raise AttemptFailed(End.REFUSED, "it does not know its cluster yet", Reason.NOT_READY,
                                    another_may_help=True)
            for what, theirs, ours in (("cluster", status.cluster_uuid, self.uuid),
                                       ("layout", status.layout, self.layout)):
                if (ours and theirs != ours) or (what == "layout" and not theirs):
                    raise AttemptFailed(End.WRONG_SERVICE, f"its {what} is '{theirs}', not '{ours}'")
            self.uuid, self.layout = status.cluster_uuid, status.layout
            self._own_numbers.update(one.tag for one in status.tags if one.strategy != "snowflake")

    def answered(self, server: Server, tag: str, refused: bool = False) -> None:
        """Records that a server has answered a call, or refused it as every server would. A server that gave
        ids of the tag no longer drains: it would have refused."""
        with self.lock:
            back, server.answered_at = server.health.out, time.monotonic()
            if not refused:
                self._counts["attempts"] += 1
                back = back or server.draining
                server.draining = False
                server.closed_until.pop(tag, None)
            if not server.health.too_many_failures and not back:
                server.health.answered()
                return
            server.revive()
            self.news.ring()
        if back:
            self.tell("healthy", server.address, "answers again")

    def failed(self, server: Server, tag: str, failure: AttemptFailed) -> None:
        """Records the failure of an attempt."""
        if failure.end is End.NO_ROOM or failure.stale or failure.lacks_method or failure.counted:
            return
        if failure.end is End.REFUSED:
            return self._refused(server, tag, failure)
        self.trouble()
        if failure.end in (End.BROKEN, End.WRONG_SERVICE):
            return self._quarantine(server, failure, False)
        self._count(server, 2 if failure.end is End.CONNECT_TIMEOUT else 1, failure)

    def _refused(self, server: Server, tag: str, failure: AttemptFailed) -> None:
        now = time.monotonic()
        until = now + at_least(failure.retry_after_ms / 1000 or _NO_ADVICE_S)
        reason = failure.reason
        if reason is Reason.INTERNAL:
            return self._count(server, 1, failure)
        if reason and REFUSAL_RULES[reason][1]:
            return self.answered(server, tag, refused=True)
        began = False
        with self.lock:
            server.why = f"{reason}: {failure.detail}" if reason else failure.detail
            if reason in (Reason.NOT_READY, Reason.CLOCK):
                server.not_ready_until = until
            elif reason is Reason.STORE_DOWN:
                remember(server.down_until, tag, until)
            elif reason is Reason.DRAINING:
                remember(server.closed_until, tag, now + at_least(PROBE_AGAIN_S))
                began = not server.draining and not server.quarantined
                if began:
                    server.draining, server.probe_at = True, now
        if began:
            self.trouble()
            self.tell("draining", server.address, failure.detail)

    def _count(self, server: Server, times: int, failure: AttemptFailed) -> None:
        now = time.monotonic()
        with self.lock:
            server.health.failed(times)
            if server.health.out or not server.health.too_many_failures:
                return
            server.why = f"{failure.end.value}: {failure.detail}" if failure.detail else failure.end.value
            length = server.take_out(self._may_leave(server), now)
            what = "ejected" if server.health.ejected else "called last"
        self.tell("unhealthy", server.address, f"{what} for {length:.1f} s; {server.why}")

    def _may_leave(self, server: Server) -> bool:
        """Returns whether the server may be ejected or quarantined: at most half of the enabled servers may be.
        Foreign servers do not count."""
        members = [one for one in self.servers.values() if one.online and not one.foreign]
        out = sum(one.health.ejected or one.quarantined for one in members if one is not server)
        return (out + 1) * 2 <= len(members)

    def _quarantine(self, server: Server, failure: AttemptFailed, probed: bool) -> None:
        """Quarantines the server. Invalid answers on its other connections do not extend the quarantine; a
        failed probe does."""
        foreign = failure.end is End.WRONG_SERVICE
        with self.lock:
            began = not server.quarantined
            allowed = foreign or not began or self._may_leave(server)
            if allowed and (began or probed or (foreign and not server.foreign)):
                server.quarantine(foreign, failure.detail, time.monotonic())
        if not allowed:
            self._count(server, IN_A_ROW, failure)
        elif began:
            self.tell("quarantined", server.address, failure.detail)

    # --- probes of ejected servers ----------------------------------------------------------------

    def take_probes(self) -> tuple[list[Server], float]:
        """Returns the servers to probe now, and when the next probe is due."""
        now = time.monotonic()
        with self.lock:
            due = [one for one in self.servers.values() if one.probe_at <= now and one.addresses]
            for server in due:
                server.probe_at = now + PROBE_AGAIN_S
            return due, min((one.probe_at for one in self.servers.values()), default=NEVER)

    def probed(self, server: Server, status: Optional[Status], failure: Optional[AttemptFailed]) -> None:
        """Records the result of a background probe: the status, or a failure."""
        now = time.monotonic()
        if failure and failure.end in (End.BROKEN, End.WRONG_SERVICE):
            return self._quarantine(server, failure, True)
        with self.lock:
            if status is None:  # the probe is repeated
                server.probe_later(now)
                if server.health.out:
                    server.take_out(self._may_leave(server), now)
                return
            was_out = server.draining or server.quarantined or server.health.out
            server.draining = status.state == State.DRAINING
            server.quarantined = server.foreign = False
            server.health.seen()
            server.probe_at = now + PROBE_AGAIN_S if server.draining else NEVER
            back = was_out and not server.draining
            if back:
                self.news.ring()
        if back:
            self.tell("healthy", server.address, "answers again")

    def take_names(self) -> list[Server]:
        """Returns the servers whose names must be resolved: without an address, or failing."""
        now = time.monotonic()
        with self.lock:
            names = [one for one in self.servers.values() if one.has_name()
                     and now >= one.resolve_at and (not one.addresses or one.health.too_many_failures)]
            for server in names:
                server.resolve_at = now + 2
            return names

    def unresolved(self) -> list[str]:
        """Returns the hosts that have no known address."""
        with self.lock:
            return [one.host for one in self.servers.values() if not one.addresses]

    def resolved(self, server: Server, addresses: list[str]) -> None:
        random.shuffle(addresses)
        with self.lock:
            if addresses and set(addresses) != set(server.addresses):
                server.addresses = addresses
                self.news.ring()
