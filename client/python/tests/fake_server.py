"""A server of the wire contract for the tests of the package. Its frames are written here, and not by the client."""

import itertools
import socket
import struct
import threading
import time

EPOCH_MS = 1_704_067_200_000  # of the layout firn
PATIENCE_S = 60


def patiently(holds):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not after {PATIENCE_S} s")
        time.sleep(0.01)


def text(number, value):
    return struct.pack(">bhi", 11, number, len(value)) + value.encode()


def i32(number, value):
    return struct.pack(">bhi", 8, number, value)


def i64(number, value):
    return struct.pack(">bhq", 10, number, value)


class FakeServer:
    """On 127.0.0.1, or on a Unix socket at `path`. Closed by close() or as a context manager."""

    ids = itertools.count(1)

    def __init__(self, path=None):
        self.refuse_for = None  # a reason: calls for ids are refused
        self.refuse_status = False  # connections are closed at their first request
        self.delay_s = {}       # by method
        self.lease_ms = 15_000  # the intervals of leases
        self.lease_fault = None  # a fault: requests for leases are refused
        self.renew_ms = 0  # when they are renewed; 0: after a third
        self.machines = itertools.count(17)
        self.asked = []         # the methods of all requests
        self.peers = set()
        self._muted = set()
        self._lock = threading.Lock()
        if path:
            self._listener = socket.create_server(path, family=socket.AF_UNIX)
            self.address = f"unix:{path}"
        else:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.refuse_connections()
        self.drop()

    def refuse_connections(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        except OSError:
            pass  # it is already closed
        self._listener.close()

    def drop(self):
        """Ends all connections."""
        for peer in list(self.peers):
            try:
                peer.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def mute(self):
        """Answers no more requests on the connections that are open."""
        self._muted.update(self.peers)

    def _accept(self):
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        self.peers.add(peer)
        try:
            with peer:
                while True:
                    answer = self._answer(self._read(peer, *struct.unpack(">i", self._read(peer, 4))))
                    if peer not in self._muted:
                        peer.sendall(answer)
        except OSError:
            pass
        finally:
            self.peers.discard(peer)

    @staticmethod
    def _read(peer, size):
        data = b""
        while len(data) < size:
            more = peer.recv(size - len(data))
            if not more:
                raise ConnectionError
            data += more
        return data

    def _answer(self, request):
        length, = struct.unpack_from(">i", request, 4)
        method = request[8:8 + length].decode()
        sequence, = struct.unpack_from(">i", request, 8 + length)
        if method == "status" and self.refuse_status:
            raise ConnectionError
        self.asked.append(method)
        time.sleep(self.delay_s.get(method, 0))
        body = self._result(method, request) + b"\0"
        head = struct.pack(f">Ii{length}si", 0x80010002, length, method.encode(), sequence)
        return struct.pack(">i", len(head) + len(body)) + head + body

    def _result(self, method, request):
        if method == "status":
            return struct.pack(">bh", 12, 0) + (
                text(1, "u") + text(5, "firn") + i32(7, 2) + i64(10, int(time.time() * 1000)) + b"\0")
        if method == "servers":
            return struct.pack(">bh", 12, 0) + text(1, "u") + i64(3, 1) + i32(6, 60_000) + b"\0"
        if method in ("lease", "renewLease", "releaseLease"):
            return self._lease(method, request)
        if self.refuse_for:
            return struct.pack(">bh", 12, 1) + i32(1, self.refuse_for) + text(2, "as the test says") + b"\0"
        count = {"getIds": ">i", "getRuns": ">q"}.get(method)
        count = struct.unpack(count, request[-1 - struct.calcsize(count):-1])[0] if count else 1
        with self._lock:
            first = (int(time.time() * 1000) - EPOCH_MS) << 22 | next(self.ids)
            for _ in range(count - 1):
                next(self.ids)
        if method == "getRuns":
            return struct.pack(">bhbi", 15, 0, 12, 1) + i64(1, first) + i32(2, count) + i64(3, 1) + b"\0"
        if method == "getIds":
            return struct.pack(f">bhbi{count}q", 15, 0, 10, count, *range(first, first + count))
        return text(0, str(first)) if method == "getText" else i64(0, first)

    def _lease(self, method, request):
        """Every renewal succeeds. The id of a lease is its machine id."""
        if self.lease_fault:
            return struct.pack(">bh", 12, 2) + i32(1, self.lease_fault) + text(2, "as the test says") + b"\0"
        if method == "releaseLease":
            return b""
        begins = request.index(b"\x0b\0\1") + 7  # the first field of the argument
        now = int(time.time() * 1000) - EPOCH_MS
        machine, since = next(self.machines), now
        if method == "renewLease":
            machine, _, since = request[begins:].split(b"\x0b", 1)[0].decode().partition("-")
            machine, since = int(machine), int(since)
        return struct.pack(">bh", 12, 0) + (
            text(1, f"{machine}-{since}") + i32(3, machine) + i64(6, machine << 12) + i32(7, 22) + i32(9, 12)
            + i64(11, 4096) + i32(12, 1) + i64(13, EPOCH_MS) + i64(14, since) + i64(15, now + self.lease_ms)
            + i32(16, self.renew_ms or self.lease_ms // 3) + text(18, self.address) + b"\0")
