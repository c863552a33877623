"""The parts of a client: the fleet, its connections and the work in the background."""

from __future__ import annotations

import time
from typing import Any, Optional

from . import protocol
from .ask import Ask
from .call import Call
from .connection import Bell, Connection, Io, connect_failure
from .errors import AttemptFailed, Closed, End, FirnError, Refused, printable
from .fleet import Fleet
from .layout import IdCheck
from .options import Options, Tls
from .ranges import Supply
from .server import Server
from .tls import TlsContexts

_ASK_AGAIN_S = (0.05, 300.0)
_NO_LIST_YET_S = 1.0
_NO_SUCH_METHOD_S = 60.0
_TROUBLE_S = 1.0
_CHECK_IDLE_S = 1.0
_SURELY_OPEN_S = 0.005  # of an idle connection; if it is closed all the same, the call retries


class Engine:
    """The connections and background work of a client, or of a generator that shares the client's fleet. Thread-safe.
    `close` does not wait: calls in progress end with Closed."""

    def __init__(self, options: Options, io: Io, fleet: Optional[Fleet] = None) -> None:
        self.options, self.io = options, io
        self.fleet = fleet or Fleet(options, io)
        self._owns_fleet = fleet is None
        self._stopped = False
        self._tls = TlsContexts(options.tls or Tls())
        self._open: set[Connection] = set()  # all open connections; under the fleet's lock
        self.supplies = {one.tag: Supply(one, self.fleet, self.call) for one in options.local_ranges}
        io.start("firn-upkeep", self._upkeep(self.fleet.keeper.enter()))

    def close(self) -> None:
        self.forget()
        with self.fleet.lock:
            idle = [one for server in self.fleet.servers.values() for one in server.idle if one in self._open]
            for server in self.fleet.servers.values():
                server.idle = [one for one in server.idle if one not in self._open]
            self._open.difference_update(idle)
            in_use = list(self._open)
        self.fleet.news.ring()
        self.fleet.wake.ring()
        for supply in self.supplies.values():
            supply.fetched.ring()
        for connection in idle:
            connection.close()
        for connection in in_use:
            connection.abort()

    def forget(self) -> None:
        """Ends the engine from a finalizer, which may run while any lock is held: the upkeep closes
        the connections within a second."""
        self._stopped = True
        if self._owns_fleet:
            self.fleet.stopped = True

    def abandon(self) -> None:
        """Only closes the copies of the parent's connections. Runs in a forked child, where threads that do
        not exist may hold locks."""
        for connection in list(self._open):
            connection.close()

    # --- calls ------------------------------------------------------------------------------------

    async def call(self, ask: Ask, deadline_ms: Optional[int]) -> Any:
        limit = self.options.deadline_ms if deadline_ms is None else deadline_ms
        self.io.call_begins()
        try:
            return await Call(self.fleet, self.options, ask, limit).run(self.attempt)
        except FirnError as failure:
            self.fleet.count("refused" if isinstance(failure, Refused) else "failed")
            if self.fleet.stopped:
                raise Closed("the client was closed", failure.attempts) from failure
            raise
        finally:
            self.io.call_ends()

    async def attempt(self, server: Server, ask: Ask, fresh: bool, deadline: float, tried: set[Server]) -> Any:
        """One server's answer, or an AttemptFailed. While all connections are in use, the call waits for
        one until the deadline; it gives up its place when the server has failed meanwhile and an untried
        one is healthier."""
        waits = not server.room.enter()
        if waits and not await server.room.wait(deadline):
            raise AttemptFailed(End.NO_ROOM, "all connections were in use")
        try:
            if waits and self.fleet.has_healthier(server, ask.tag, tried):
                raise AttemptFailed(End.NO_ROOM, "it failed while this call waited for a connection")
            limit_s, lag = self.options.attempt_limit_ms / 1000, self.io.lag
            until = min(time.monotonic() + limit_s, deadline)
            connection = await self._take(server, fresh, deadline if self.io.shares else until)
            if self.io.shares:  # the time limit of the attempt begins when the request is sent
                until = min(time.monotonic() + limit_s, deadline + self.io.lag - lag)
            try:
                answer = connection.checked(ask, await connection.call(ask, until))
            except BaseException as failure:  # also of a signal's handler, or of a cancelled task
                self._put(server, connection, self._usable_after(failure))
                raise
            self._put(server, connection, True)
            return answer
        finally:
            server.room.leave()

    async def _take(self, server: Server, fresh: bool, until: float) -> Connection:
        """Returns the connection that was used last, or a new one to a server of this cluster."""
        if self.io.shares:
            return await self._shared(server, until)
        while not fresh:
            with self.fleet.lock:
                connection = server.idle.pop() if server.idle else None
            if connection is None:
                break
            if time.monotonic() - connection.idle_since < _SURELY_OPEN_S or connection.idle_and_open():
                return connection
            self.drop(connection)
        if not self.fleet.may_dial(server, until):
            raise AttemptFailed(End.NO_ROOM, "a connection to it has just failed", paused=True)
        return (await self.connect(server, until))[0]

    async def _shared(self, server: Server, until: float) -> Connection:
        """Returns the one connection to the server; opens it if there is none, for all calls that wait for it."""
        while True:
            for connection in server.idle[:]:
                if connection.idle_and_open():
                    return connection
                server.idle.remove(connection)
                self.drop(connection)
            if server.dialling is None:
                if not self.fleet.may_dial(server, until):
                    raise AttemptFailed(End.NO_ROOM, "a connection to it has just failed", paused=True)
                server.dialling, server.dial_failure = self.io.bell(), None
                self.io.start("firn-dial", self._open_shared(server, server.dialling))
            opened = server.dialling
            await opened.wait(0, until)
            if self._stopped:
                raise AttemptFailed(End.CLOSED, "the client was closed")
            if opened.rings == 0:
                raise AttemptFailed(End.CONNECT_TIMEOUT, "", counted=True)
            if server.dial_failure is not None:
                raise server.dial_failure.again()

    async def _open_shared(self, server: Server, opened: Bell) -> None:
        try:
            connection, _ = await self.connect(server, time.monotonic() + self.options.attempt_limit_ms / 1000)
            server.idle.append(connection)
        except AttemptFailed as failure:
            server.dial_failure = failure
            self.fleet.failed(server, "", failure)  # once for all calls that wait
        finally:
            server.dialling = None
            opened.ring()

    async def connect(self, server: Server, until: float) -> tuple[Connection, protocol.Status]:
        """Returns a new connection to a server of this cluster, and the server's status."""
        reached = False
        try:
            made = await self._dial(server, until)
            reached = True
            return made
        except AttemptFailed as failure:
            reached = failure.spoke
            raise
        finally:
            self.fleet.dialled(server, reached)

    async def _dial(self, server: Server, until: float) -> tuple[Connection, protocol.Status]:
        spoke = server.spoke  # not on a connection that is opened meanwhile
        connection = await self._reach(server, until)
        with self.fleet.lock:
            self._open.add(connection)
        if self._stopped:
            connection.abort()
        try:
            return connection, await self._greet(server, connection, spoke, until)
        except BaseException:
            self.drop(connection)
            raise

    async def _reach(self, server: Server, until: float) -> Connection:
        """Tries each address in turn, with its share of the time; the reachable one is first next time."""
        fault = OSError("it has no address")
        addresses = list(server.addresses)
        for tried, address in enumerate(addresses):
            now = time.monotonic()
            share = now + (until - now) / (len(addresses) - tried)
            try:
                made = await self.io.connect(address, server.host, server.port,
                                             self._tls if server.tls else None, share)
            except OSError as failure:
                fault = failure
                continue
            if tried:
                server.addresses = [address, *(one for one in addresses if one != address)]
            return made
        raise connect_failure(fault) from fault

    async def _greet(self, server: Server, connection: Connection, spoke: bool, until: float) -> protocol.Status:
        """Asks for the server's status, and fails unless the server is of this cluster."""
        try:
            status: protocol.Status = await connection.call(Ask("status"), until)
        except AttemptFailed as failure:
            if failure.end is End.BROKEN or failure.spoke:
                raise AttemptFailed(End.WRONG_SERVICE, failure.detail) from failure
            if failure.end is End.CLOSED and not spoke:
                failure.detail += ", during the first request: it may speak TLS, or require a certificate"
            raise
        server.spoke = True
        self.fleet.admit(status)
        timed = frozenset(one.tag for one in status.tags
                          if one.strategy == "snowflake" and one.as_issued)
        connection.check = IdCheck(status.layout, timed,
                                   status.wall_ms - time.monotonic() * 1000)
        connection.used = False
        connection.limit_s = self.options.attempt_limit_ms / 1000
        return status

    def _put(self, server: Server, connection: Connection, whole: bool) -> None:
        with self.fleet.lock:
            listed = self.fleet.servers.get(server.address) is server
            if whole and listed and not self.fleet.stopped:
                connection.idle_since = time.monotonic()
                if connection not in server.idle:
                    server.idle.append(connection)
                return
            if connection in server.idle:
                server.idle.remove(connection)
        if not (whole and connection.busy):
            self.drop(connection)

    def _usable_after(self, failure: BaseException) -> bool:
        """Returns whether the connection can be used again. A cancelled call does not end one that others share."""
        if isinstance(failure, AttemptFailed):
            return failure.spoke or failure.late is not None
        return self.io.shares

    def drop(self, connection: Connection) -> None:
        with self.fleet.lock:
            self._open.discard(connection)
        connection.close()

    # --- background -------------------------------------------------------------------------------

    async def _upkeep(self, keeps: bool) -> None:
        """Does the background work of the fleet, as soon as no other engine does."""
        try:
            while not self._stopped:
                if not keeps:
                    keeps = await self.fleet.keeper.wait(time.monotonic() + _TROUBLE_S)
                    continue
                pause_s, seen = _TROUBLE_S, self.fleet.wake.rings
                try:
                    pause_s = await self._do_upkeep()
                except Exception as fault:  # a defect of this library must not end the upkeep
                    self.fleet.tell("defect", "", printable(repr(fault)))
                await self.fleet.wake.wait(seen, time.monotonic() + pause_s)
        finally:
            if keeps:
                self.fleet.keeper.leave()
            self.close()

    async def _do_upkeep(self) -> float:
        """Does the tasks that are due. Returns the seconds until the next one."""
        self.fleet.io.retry_hooks()
        for server in self.fleet.take_names():
            self.io.start("firn-name", self._resolve(server))
        due, next_probe = self.fleet.take_probes()
        for server in due:
            await self._probe(server)
        if time.monotonic() >= self.fleet.list_pace.due:
            await self._ask_list()
        self._drop_closed()
        left = min(self.fleet.list_pace.due, next_probe) - time.monotonic()
        return min(max(0.0, left), 1.0)

    def _drop_closed(self) -> None:
        """Closes idle connections that their servers have closed: nothing else would notice, and the
        system would keep their descriptors."""
        for server, connection in self.fleet.take_idle(time.monotonic() - _CHECK_IDLE_S):
            self._put(server, connection, connection.idle_and_open())

    async def _resolve(self, server: Server) -> None:
        try:
            self.fleet.resolved(server, await self.io.resolve(server.host))
        except (OSError, UnicodeError):  # also a name that cannot be encoded
            pass  # the address stays unknown, and is resolved again

    async def _probe(self, server: Server) -> None:
        until = time.monotonic() + self.options.attempt_limit_ms / 1000
        try:
            connection, status = await self.connect(server, until)
            self.drop(connection)
            self.fleet.probed(server, status, None)
        except AttemptFailed as failure:
            if not self._stopped:
                self.fleet.probed(server, None, failure)

    async def _ask_list(self) -> None:
        self.fleet.list_pace.asked, wait_s = time.monotonic(), _NO_LIST_YET_S
        server = self.fleet.pick("", ())
        if server is not None:
            try:
                until = self.fleet.list_pace.asked + self.options.attempt_limit_ms / 1000
                wait_s = await self._ask_for_list(server, until)
            except AttemptFailed as failure:
                if not self._stopped:
                    self.fleet.failed(server, "", failure)
            finally:
                self.fleet.give_back(server)
        self.fleet.list_pace.due = time.monotonic() + wait_s

    async def _ask_for_list(self, server: Server, until: float) -> float:
        """Asks the server for its list. Returns the seconds until the next request."""
        connection = await self._take(server, False, until)
        try:
            answer: protocol.ServerList = await connection.call(
                Ask("servers", count=self.fleet.version), until)
        except BaseException as failure:
            self._put(server, connection, self._usable_after(failure))
            if not isinstance(failure, AttemptFailed):
                raise
            if failure.end is End.REFUSED:
                return failure.retry_after_ms / 1000 or _NO_LIST_YET_S
            if failure.lacks_method:  # an older server: keep using the known addresses
                return _NO_SUCH_METHOD_S
            raise
        self._put(server, connection, True)
        if answer.cluster_uuid and answer.cluster_uuid != self.fleet.uuid:
            raise AttemptFailed(End.WRONG_SERVICE, "its list is of another cluster")
        for gone in self.fleet.apply(answer, server):
            for idle in gone.idle:
                if not idle.busy:  # otherwise its last call closes it
                    self.drop(idle)
        least, most = _ASK_AGAIN_S
        return min(max(answer.ask_again_ms / 1000, least), most)
