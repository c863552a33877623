"""Obtains a lease, extends it, and obtains the next one in time."""

from __future__ import annotations

import secrets
from typing import Callable, Optional, Union

from . import lease_terms
from .ask import Ask, LeaseFields
from .errors import AttemptFailed, Closed, End, LeaseFault, LeaseRefused, NoLease, Reason
from .lease_requests import Backoff, Grant, Held, Order, Release, Renewal, Request, longest_wait_s
from .leased_ids import LeasedIds, start_ms, utc
from .protocol import LeaseTerms
from .view import LeaseLoss

_ATTEMPT_S = 2.0            # a claim needs several answers of the registry
_TURN_MAX_S = 1.0          # between two readings of the clocks
_RENEW_LEAST_S = 0.1
_GRANT_PAUSE_S = 2.0       # between a lease and the request for another
_ADVICE_MAX_S = 10.0       # of a server, to wait
_HOPS_MAX = 2              # of one request, from one server to another that has the lease
_GRANT_REPEATS = 1         # at the server that may have granted the lease, before the client fails over
_RELEASES_MAX = 4
_ENDED_THERE = (LeaseFault.UNKNOWN_LEASE, LeaseFault.NO_LEASES, LeaseFault.OTHER)  # it extends the lease no further
_MAY_BE_DONE = (End.TIMEOUT, End.CLOSED, End.BROKEN)


class Lessee:
    """Decides which request is sent when, and what its outcome means. It does no input and output, and owns no thread:
    one thread calls `due`, sends what that returns, and passes the outcome to `done`.

    1. A grant is repeated with its token until a server answers: a lost answer costs nothing.
    2. A renewal has a fresh turn, which is repeated until it is answered, and shows the turn that was answered last. A
       copy of this process cannot show both. If several requests are due, a renewal is sent first.
    3. The lease is used until its end, whatever servers answer, with one exception: when the server has revoked it, the
       ids are closed at once.
    4. A lease that is ending is renewed, too: its server extends it up to a final bound. When a third of the interval is
       left, another lease is requested, from another server if there is one; at once when the server does not extend it. It replaces the first, and continues in a later tick.
    5. A lease that was replaced is released: first its ids are closed, then its highest used tick is read. A lease that
       cannot be used is released at once.
    6. A lease's id is secret. It is sent only to servers in the list, to the one that granted the lease, and to the one that
       the grant named."""

    def __init__(self, name: str, ahead_ms: int, rack: Optional[int], ids: LeasedIds,
                 pick: Callable[[list[str]], Optional[str]], knows: Callable[[str], bool],
                 on_lost: Optional[Callable[[LeaseLoss], None]], boot_s: Callable[[], float],
                 draw: Callable[[], str] = lambda: secrets.token_hex(16)) -> None:
        """`pick` returns a usable server that is not among those given, or None. `knows` returns whether the list of servers
        has an address."""
        self._name, self._ahead_ms, self._rack, self._ids = name, ahead_ms, rack, ids
        self._pick, self._knows, self._on_lost = pick, knows, on_lost
        self._boot_s, self._draw = boot_s, draw
        self._held: Optional[Held] = None
        self._grant: Optional[Grant] = None
        self._renewal: Optional[Renewal] = None
        self._releases: list[Release] = []
        self._last_server = ""
        self._interval_ms = ahead_ms  # that a server gave last, at most `ahead_ms`; before that, `ahead_ms`
        self._grant_not_before = 0.0
        self._stopping = False
        self.next_at = 0.0  # boot clock: when `due` is to be called, at the latest

    @property
    def stopped(self) -> bool:
        """Whether nothing is left to be sent after `stop`."""
        return self._stopping and not self._releases

    def due(self) -> Optional[Order]:
        """Returns the request to send now, if one is due. Its outcome must be passed to `done` before the next call."""
        now, time_ms = self._boot_s(), self._ids.now_ms()
        self.next_at = now + _TURN_MAX_S
        jumped = self._ids.jumped()
        self._hurry(jumped, now)
        self._plan(now, time_ms)
        self._releases = [one for one in self._releases if one.useless_at_ms > time_ms]
        for request in (self._renewal, self._grant, *self._releases):
            if request is None:
                continue
            if request.send_at <= now:
                order = self._order(request, now)
                if order is not None:
                    request.sent_in_jump = jumped
                    return order
            self.next_at = min(self.next_at, request.send_at)
        return None

    def done(self, order: Order, outcome: Union[LeaseTerms, AttemptFailed, None]) -> None:
        """Takes the outcome of a request: terms, a failure, or None for a lease that was released."""
        request = order.request
        if isinstance(outcome, AttemptFailed):
            self._ids.trouble = f"{order.address} {outcome}"
        if request is self._grant:
            self._granted(self._grant, order.address, outcome)
        elif request is self._renewal:
            self._renewed(self._renewal, order.address, outcome)
        elif isinstance(request, Release):
            self._released(request, outcome)
        elif isinstance(request, Grant) and isinstance(outcome, LeaseTerms):  # the generator was closed meanwhile
            self._give_back(outcome, order.address)

    def stop(self) -> None:
        """Closes the ids for good, and requests the end of the lease."""
        if self._stopping:
            return
        self._stopping = True
        used_tick = self._ids.close(Closed, "the generator was closed")
        if self._held and self._held.known:
            self._release(self._held, used_tick)
        self._held = self._grant = self._renewal = None

    # --- what is to be sent -----------------------------------------------------------------------

    def _plan(self, now: float, time_ms: int) -> None:
        held = self._held
        if held:
            if time_ms >= held.end_ms and not held.expired:
                held.expired = True
                self._lose("expired", held, f"the lease of machine id {held.terms.machine} ended at "
                           f"{utc(held.end_ms):%Y-%m-%d %H:%M:%S} UTC, and no server extended it")
            if held.renewable and not self._renewal and now >= held.renew_at:
                self._renewal = Renewal(self._draw(), now, Backoff())
            if held.renewable and not self._renewal:
                self.next_at = min(self.next_at, held.renew_at)
            if time_ms < held.end_ms:
                self.next_at = min(self.next_at, now + (held.end_ms - time_ms) / 1000)
        wants = not self._stopping and (held is None or time_ms >= held.replace_at_ms)
        if wants and not self._grant and now >= self._grant_not_before:
            tried = [self._last_server] if self._last_server else []
            self._grant = Grant(self._draw(), now, Backoff(), tried)

    def _hurry(self, jumped: bool, now: float) -> None:
        """After a jump of the wall clock, makes a request due whose answer confirms it: a renewal, or a request that was
        sent before the jump. If that fails, too, it has the ordinary wait."""
        if self._held and jumped:
            self._held.renew_at = min(self._held.renew_at, self._held.answered_at + _RENEW_LEAST_S)
        for request in self._renewal, self._grant:
            if request:
                request.sent_in_jump &= jumped
                if jumped and not request.sent_in_jump:
                    request.send_at = min(request.send_at, now)

    def _order(self, request: Request, now: float) -> Optional[Order]:
        held = self._held
        if isinstance(request, Release):
            limit_s = held.renew_at - now if held else _ATTEMPT_S
            return self._order_of(request, request.server, limit_s, "releaseLease", (
                request.lease, request.turn, request.used_tick))
        wall_ms, zero_ns = self._ids.wall_clock()
        # If it is sent several times, which of them is answered is unknown.
        request.wall_at_zero_ns = min(zero_ns, zero_ns if request.wall_at_zero_ns is None else request.wall_at_zero_ns)
        if isinstance(request, Grant):
            address = self._server_for(request, now)
            fields = (request.token, self._name, wall_ms, self._ahead_ms, self._rack)
            return self._order_of(request, address, _ATTEMPT_S, "lease", fields) if address else None
        assert held is not None
        limit_s = (held.replace_at_ms - self._ids.now_ms()) / 1000
        return self._order_of(request, held.server, limit_s, "renewLease", (
            held.terms.lease, request.turn, held.acknowledged, wall_ms, self._ahead_ms))

    def _order_of(self, request: Request, address: str, limit_s: float, method: str, fields: LeaseFields) -> Order:
        limit_s = min(max(limit_s, longest_wait_s(self._interval_ms)), _ATTEMPT_S)
        return Order(request, address, Ask(method, lease=fields), limit_s)

    def _server_for(self, grant: Grant, now: float) -> Optional[str]:
        """Returns the server to ask next. When all were tried, begins again after a wait."""
        if grant.holder and grant.repeats <= _GRANT_REPEATS:
            return grant.holder
        address = self._pick(grant.tried)
        if address is None:
            grant.send_at = now + max(grant.backoff.next(self._interval_ms), grant.advice_s)
            grant.tried, grant.advice_s = [], 0.0
        elif grant.holder and address != grant.holder:
            grant.token, grant.holder = self._draw(), ""
        return address

    # --- what was answered ------------------------------------------------------------------------

    def _granted(self, grant: Grant, address: str, outcome: Union[LeaseTerms, AttemptFailed, None]) -> None:
        now = self._boot_s()
        if isinstance(outcome, LeaseTerms):
            try:
                if self._holds(outcome):
                    raise ValueError("it is held already")
                used_tick = self._ids.adopt(outcome)
                self._confirm(grant)
            except ValueError as fault:
                self._ids.trouble = f"{address} granted a lease that cannot be used: {fault}"
                self._give_back(outcome, address)
                grant.token, grant.holder = self._draw(), ""  # this token would get the same lease
                grant.tried.append(address)
                grant.send_at = now + grant.backoff.next(self._interval_ms)
                return
            self._hold(outcome, address, used_tick, now)
            return
        failure = outcome if outcome is not None else AttemptFailed(End.BROKEN, "it returned no lease")
        advice_s = self._advice_s(failure, self._held.end_ms if self._held else 0)
        grant.advice_s = max(grant.advice_s, advice_s)
        may_be_done = failure.end in _MAY_BE_DONE or failure.reason is Reason.NOT_READY
        if failure.reason is Reason.NOT_READY and not failure.another_may_help:
            # The server is claiming a machine id for this token.
            grant.holder, grant.repeats = address, 0
            grant.send_at = now + max(grant.backoff.next(self._interval_ms), advice_s)
            return
        if may_be_done and not failure.lacks_method:
            grant.repeats = grant.repeats + 1 if grant.holder == address else 1
            grant.holder = address
            if grant.repeats <= _GRANT_REPEATS:
                grant.send_at = now + max(grant.backoff.next(self._interval_ms), advice_s)
                return
        elif isinstance(failure, LeaseRefused):
            grant.token, grant.holder = self._draw(), ""  # such as: a copy of this process has renewed the lease
        else:
            grant.repeats = _GRANT_REPEATS + 1
        grant.tried.append(address)
        grant.send_at = now

    def _holds(self, terms: LeaseTerms) -> bool:
        return self._held is not None and self._held.terms.lease == terms.lease

    def _confirm(self, answered: Union[Grant, Renewal]) -> None:
        assert answered.wall_at_zero_ns is not None
        self._ids.confirm(answered.wall_at_zero_ns)

    def _hold(self, terms: LeaseTerms, address: str, used_tick: int, now: float) -> None:
        """Replaces the lease before, whose ids are closed."""
        if self._held and self._held.known:
            self._release(self._held, used_tick)
        self._renewal = self._grant = None
        self._last_server = self._home(terms, address)
        self._held = Held(terms, self._last_server, terms.server)
        self._grant_not_before = now + _GRANT_PAUSE_S
        self._schedule(self._held, terms, now)

    def _schedule(self, held: Held, terms: LeaseTerms, now: float) -> None:
        """Sets the times of the lease after an answer."""
        held.terms, held.end_ms = terms, start_ms(terms, terms.until_tick)
        left_ms = max(0, held.end_ms - self._ids.now_ms())
        if left_ms > 0:
            self._interval_ms = min(left_ms, self._ahead_ms)
        # A lease that is ending is finally not extended any further.
        held.third_ms = max(left_ms // 3, held.third_ms if terms.ending else 0)
        held.replace_at_ms = held.end_ms - held.third_ms
        held.answered_at = now
        held.renew_at = now + max(min(terms.renew_in_ms, left_ms // 3) / 1000, _RENEW_LEAST_S)
        held.expired = held.expired and left_ms == 0

    def _renewed(self, renewal: Renewal, address: str, outcome: Union[LeaseTerms, AttemptFailed, None]) -> None:
        held, now = self._held, self._boot_s()
        assert held is not None
        if isinstance(outcome, LeaseTerms):
            fault = lease_terms.fault_of_renewal(outcome, held.terms)
            if fault is None:
                self._ids.extend(outcome.until_tick)
                self._confirm(renewal)
                held.acknowledged, held.server, self._renewal = renewal.turn, self._home(outcome, address), None
                self._schedule(held, outcome, now)
                if self._grant and not self._grant.holder and not outcome.ending:
                    self._grant = None  # no server can have granted it
                return
            self._ids.trouble = f"{held.server}: {fault}"
            outcome = None
        if isinstance(outcome, LeaseRefused) and outcome.fault in (LeaseFault.REVOKED, LeaseFault.OUTDATED):
            # A later turn than this one was not this process's.
            why = f"the lease of machine id {held.terms.machine} was revoked: {outcome.detail}"
            self._ids.close(NoLease, why)
            self._held = self._renewal = None
            self._lose("revoked", held, why)
        elif isinstance(outcome, AttemptFailed) and (outcome.lacks_method or (
                isinstance(outcome, LeaseRefused) and outcome.fault in _ENDED_THERE)):
            held.known = not (isinstance(outcome, LeaseRefused) and outcome.fault is LeaseFault.UNKNOWN_LEASE)
            held.renewable, held.replace_at_ms, self._renewal = False, 0, None
            if self._grant and not self._grant.holder:
                self._grant.send_at = now  # a server answers again
        elif not self._redirected(held, renewal, outcome):
            advice_s = self._advice_s(outcome, held.end_ms) if outcome else 0.0
            renewal.send_at = now + max(renewal.backoff.next(self._interval_ms), advice_s)

    def _redirected(self, lease: Union[Held, Release], request: Union[Renewal, Release],
                    outcome: Optional[AttemptFailed]) -> bool:
        """Returns whether another server that has the lease is to be asked at once."""
        if not isinstance(outcome, LeaseRefused) or outcome.fault is not LeaseFault.ANOTHER_SERVERS:
            return False
        known = self._knows(outcome.server) or outcome.server == lease.granted_by
        if not known or request.hops == _HOPS_MAX:
            return False
        lease.server = outcome.server
        request.hops += 1
        return True

    def _home(self, terms: LeaseTerms, address: str) -> str:
        """Returns the server to ask next about a lease, of which the server at this address has sent the terms."""
        return terms.server if self._knows(terms.server) else address

    def _advice_s(self, failure: AttemptFailed, end_ms: int) -> float:
        """Returns how long a server asks to wait. A mistaken one must not prevent the renewal of a lease that ends then."""
        left_s = (end_ms - self._ids.now_ms()) / 1000
        advice_s = min(failure.retry_after_ms / 1000, _ADVICE_MAX_S)
        return min(advice_s, left_s / 2) if left_s > 0 else advice_s

    def _released(self, release: Release, outcome: Union[LeaseTerms, AttemptFailed, None]) -> None:
        again = isinstance(outcome, AttemptFailed) and not outcome.lacks_method and (
            outcome.end is not End.REFUSED or outcome.reason is Reason.NOT_READY or (
                isinstance(outcome, LeaseRefused) and outcome.fault is LeaseFault.ANOTHER_SERVERS))
        if not again:
            self._releases = [one for one in self._releases if one is not release]
            return
        assert isinstance(outcome, AttemptFailed)
        if not self._redirected(release, release, outcome):
            advice_s = self._advice_s(outcome, release.useless_at_ms)
            release.send_at = self._boot_s() + max(release.backoff.next(self._interval_ms), advice_s)

    def _release(self, held: Held, used_tick: int) -> None:
        turn = self._renewal.turn if self._renewal and held is self._held else held.acknowledged
        self._add_release(held.terms, held.server, held.granted_by, turn, used_tick, held.end_ms)

    def _give_back(self, terms: LeaseTerms, address: str) -> None:
        """Releases a lease of which no id was issued. Its terms may be wrong: an end that has passed, or is more than
        `ahead` away, is ignored."""
        if terms.lease and not self._holds(terms):
            time_ms, end_ms = self._ids.now_ms(), start_ms(terms, terms.until_tick)
            latest_ms = time_ms + self._ahead_ms
            self._add_release(terms, self._home(terms, address), terms.server, "", max(terms.from_tick, 0) - 1,
                              end_ms if time_ms < end_ms < latest_ms else latest_ms)

    def _add_release(self, terms: LeaseTerms, server: str, granted_by: str, turn: str, used_tick: int,
                     useless_at_ms: int) -> None:
        self._releases = self._releases[1 - _RELEASES_MAX:]
        self._releases.append(Release(terms.lease, server, granted_by, turn, used_tick, useless_at_ms, self._boot_s(),
                                      Backoff()))

    def _lose(self, kind: str, held: Held, why: str) -> None:
        if self._on_lost:
            try:
                self._on_lost(LeaseLoss(kind, held.terms.machine, why))
            except Exception:  # of the program; it must not end the renewals
                pass
