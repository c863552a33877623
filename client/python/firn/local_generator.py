"""Ids that a program makes by itself, under a leased machine id."""

from __future__ import annotations

import dataclasses
import functools
import os
import queue
import threading
import time
import weakref
from datetime import datetime
from typing import Callable, Optional, Union

from . import lease_terms
from .base import BaseClient
from .connection import Connection
from .engine import Engine
from .errors import AttemptFailed, Closed, End, NoLease, printable
from .lease_requests import Order
from .leased_ids import LeasedIds, SystemClock, start_ms, utc
from .lessee import Lessee
from .protocol import LeaseTerms
from .options import described
from .server import Server
from .threads import Hooks, ThreadIo, run
from .view import LeaseLoss

_CLOSE_S = 1.0
_DEFECT_S = 1.0
_SOON_S = 0.02
_AHEAD_MS = (2_000, 86_400_000)


class LocalGenerator:
    """Makes ids in this process, under a machine id that no other process has at the same time.

        with firn.LocalGenerator(client, "checkout-7f9c") as generator:
            generator.next()

    An id costs no call, also while no server is reachable, until the interval of the lease ends. A thread extends the
    lease, and obtains the next one when its server does not. Ids rise, also across leases. They are plain snowflake ids,
    outside every tag.

    Thread-safe. `next` does not wait longer than for the next tick, so tasks of asyncio may call it; create the generator
    by asyncio.to_thread there. A forked child gets no id from the generator that it inherits; it may create its own."""

    def __init__(self, client: BaseClient, name: str, *, ahead_ms: int = 60_000, rack: Optional[int] = None,
                 timeout_ms: int = 10_000, on_lost: Optional[Callable[[LeaseLoss], None]] = None) -> None:
        """Waits for the first lease, for at most `timeout_ms`, and raises NoLease if no server grants one.

        `client` is a firn.Client, whose servers the generator shares, or a firn.aio.Client, whose options it has. It keeps a
        connection of its own to the server of its lease.
        `name` is shown to operators. `ahead_ms` is the length of the interval, 2,000 to 86,400,000: the longest outage of
        all servers that the generator survives. `on_lost` is called with a LeaseLoss when a lease was revoked, or has
        ended without a successor. It runs on a thread of its own, one loss at a time, until the generator is closed."""
        fault = lease_terms.fault_of_name(name)
        if rack is not None and not (isinstance(rack, int) and 0 <= rack <= 65_535):
            fault = f"rack is {described(rack)}; it must be 0 to 65535"
        if on_lost is not None and not callable(on_lost):
            fault = f"on_lost is {described(on_lost)}, not a function"
        if not _AHEAD_MS[0] <= ahead_ms <= _AHEAD_MS[1]:
            fault = f"ahead_ms is {ahead_ms}; it must be {_AHEAD_MS[0]} to {_AHEAD_MS[1]}"
        if fault:
            raise ValueError(fault)
        if client._closed:
            raise Closed("the client was closed")
        self._ids = LeasedIds()
        self._runner = _Runner(client, self._ids, name, ahead_ms, rack, on_lost)
        _generators.add(self)
        # It ends by itself after the last reference to the generator is gone.
        self._when_forgotten = weakref.finalize(self, self._runner.forget)
        self._when_forgotten.atexit = False
        self._runner.start()
        try:
            if not self._runner.leased.wait(timeout_ms / 1000):
                self._ids.next()  # raises the reason
        except BaseException:
            self.close()
            raise

    def next(self) -> int:
        """Returns the next id. If the sequence of this tick is used up, waits for the next tick. Raises NoLease if no
        lease is in force, or Closed."""
        return self._ids.next()

    def machine_id(self) -> Optional[int]:
        """Returns the machine id of the current lease."""
        terms = self._ids.terms()
        return terms.machine if terms else None

    def until(self) -> Optional[datetime]:
        """Returns the time in ids at which the current lease ends, unless a server extends it."""
        terms = self._ids.terms()
        return utc(start_ms(terms, terms.until_tick)) if terms else None

    def close(self) -> None:
        """Ends the generator, and reports to the server which ids were used. Waits for at most a second."""
        self._ids.refuse(Closed, "the generator was closed")
        self._runner.stop()

    def __enter__(self) -> LocalGenerator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forked(self) -> None:
        self._when_forgotten.detach()
        self._ids.forked()
        self._runner.forked()


class _Runner:
    """The thread of a generator, which sends what the lessee decides."""

    def __init__(self, client: BaseClient, ids: LeasedIds, name: str, ahead_ms: int, rack: Optional[int],
                 on_lost: Optional[Callable[[LeaseLoss], None]]) -> None:
        options = dataclasses.replace(client._options, local_ranges=(), on_event=None)
        self._ids, self._process = ids, os.getpid()
        self._engine = Engine(options, ThreadIo(), client._fleet_of_threads())
        self._hooks, self._on_lost = Hooks(), on_lost
        self._lessee = Lessee(name, ahead_ms, rack, ids, self._pick, self._knows,
                              lambda loss: self._hooks.call(functools.partial(self._tell_lost, loss)), _boot_s)
        self._kept: Optional[Connection] = None  # of the thread: to the server that answered last with a lease
        self._kept_at = ""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="firn-lease", daemon=True)
        self.leased = threading.Event()

    def start(self) -> None:
        try:
            self._thread.start()
        except BaseException:  # the process has no thread left
            self._engine.close()
            raise

    def stop(self) -> None:
        """Ends the thread, and waits for at most a second. A signal handler may call it while the same thread is in it."""
        if os.getpid() != self._process:
            return
        self._stopping = True
        self._ids.wakes.put(None)
        if self._thread is not threading.current_thread() and self._thread.ident is not None:
            self._thread.join(_CLOSE_S)

    def forget(self) -> None:
        """Ends the thread from a finalizer, which may run while any lock is held."""
        self._stopping = True

    def forked(self) -> None:
        """Runs in a forked child: only closes its copies of the connections."""
        self._engine.abandon()

    def _tell_lost(self, loss: LeaseLoss) -> None:
        if self._on_lost and not self._stopping:  # the program has not closed it meanwhile
            self._on_lost(loss)

    def _run(self) -> None:
        end_at = None
        while end_at is None or not (self._lessee.stopped or time.monotonic() >= end_at):
            if self._stopping and end_at is None:
                end_at = time.monotonic() + _CLOSE_S
                self._lessee.stop()
            try:
                self._turn()
            except Exception as fault:  # a defect of this library must not end the renewals
                self._ids.trouble = f"a defect of this library: {printable(repr(fault))}"
                time.sleep(_DEFECT_S)
        self._hang_up()
        self._engine.close()

    def _turn(self) -> None:
        self._hooks.retry()
        order = self._lessee.due()
        if order is None:
            wait_s = max(0.0, self._lessee.next_at - _boot_s())
            if self._stopping:
                time.sleep(min(wait_s, _SOON_S))  # for a release that is repeated
                return
            try:
                self._ids.wakes.get(timeout=wait_s)
            except queue.Empty:
                pass
            return
        outcome: Union[LeaseTerms, AttemptFailed, None]
        try:
            outcome = self._send(order)
        except AttemptFailed as failure:
            outcome = failure
        if self._stopping:
            self._lessee.stop()
        self._lessee.done(order, outcome)
        if self._ids.terms():
            self.leased.set()

    # --- servers ----------------------------------------------------------------------------------

    def _pick(self, tried: list[str]) -> Optional[str]:
        fleet = self._engine.fleet
        with fleet.lock:
            excluded = [one for one in fleet.servers.values() if one.address in tried]
        server = fleet.pick("", excluded)
        if server is None:
            return None
        fleet.give_back(server)
        return server.address

    def _knows(self, address: str) -> bool:
        fleet = self._engine.fleet
        with fleet.lock:
            return address in fleet.servers

    def _send(self, order: Order) -> Optional[LeaseTerms]:
        """Sends the request over a connection that no call uses: an answer may take seconds. That of the last lease is
        kept, so that its renewal needs no file descriptor and no DNS. It has half of the time: its path can be dead."""
        now = time.monotonic()
        earlier: Optional[AttemptFailed] = None
        until = now + order.limit_s
        if self._kept and self._kept_at == order.address:
            try:
                if self._kept.idle_and_open():
                    return self._ask(self._kept, order, now + order.limit_s / 2)
            except AttemptFailed as failure:
                if not failure.stale and failure.end is not End.TIMEOUT:
                    raise
                earlier = failure
            except BaseException:
                self._hang_up()
                raise
            self._hang_up()
        try:
            connection = self._connect(order.address, until)
        except AttemptFailed:
            if earlier and order.ask.method == "lease":
                raise earlier from None  # the server may have granted the lease
            raise
        return self._ask(connection, order, until)

    def _ask(self, connection: Connection, order: Order, until: float) -> Optional[LeaseTerms]:
        keeps = False
        try:
            answer: Optional[LeaseTerms] = connection.checked(order.ask, run(connection.call(order.ask, until)))
            keeps = connection is self._kept or answer is not None
            return answer
        except AttemptFailed as failure:
            keeps = connection is self._kept and failure.spoke
            raise
        finally:
            if keeps and connection is not self._kept:
                self._hang_up()
                self._kept, self._kept_at = connection, order.address
            elif not keeps and connection is self._kept:
                self._hang_up()
            elif not keeps:
                self._engine.drop(connection)

    def _hang_up(self) -> None:
        """Closes the kept connection."""
        if self._kept:
            self._engine.drop(self._kept)
            self._kept = None

    def _connect(self, address: str, until: float) -> Connection:
        fleet, server = self._engine.fleet, self._server(address)
        try:
            connection, _ = run(self._engine.connect(server, until))
        except AttemptFailed as failure:
            fleet.failed(server, "", failure)
            raise
        with fleet.lock:
            server.connected()
        return connection

    def _server(self, address: str) -> Server:
        """Returns the server at an address, also if no list has it."""
        fleet = self._engine.fleet
        with fleet.lock:
            server = fleet.servers.get(address) or fleet.made(address)
        if not server.addresses:
            try:
                server.addresses = run(self._engine.io.resolve(server.host))
            except (OSError, UnicodeError) as fault:
                raise AttemptFailed(End.UNREACHABLE, str(fault)) from fault
        return server


def _boot_s() -> float:
    return SystemClock.boot_ns() / 1e9


_generators: weakref.WeakSet[LocalGenerator] = weakref.WeakSet()


def _after_fork() -> None:
    for generator in list(_generators):
        generator._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
