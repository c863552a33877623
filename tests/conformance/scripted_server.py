"""A server that speaks the wire contract and misbehaves as a case says.

It is made of the generated stubs and Python's own sockets; a thread for each connection. What it does
with a request is a behaviour, a dictionary:

    do            serve, silent, reset, close, half, drip, garbage, http, no_method, other_sequence, repeat,
                  empty, zero, far_time, too_few, twice, no_stride, refuse; serve unless said
    to            the methods that are treated so, by default those that give ids; "connect": with close,
                  a connection ends before anything is read, or TLS is agreed upon
    tag           only requests for this tag are
    reason, retry_after_ms, another_may_help    of a refusal
    message       of a refusal, or the text of getText
    delay_ms      before each answer, or before each byte of one that drips

A list of behaviours is gone through until one fits. Beside it stands what the server says of itself:
`uuid`, `layout`, `state` in its status, and the list of its servers(), which a case gives and changes.
"""

import itertools
import select
import socket
import struct
import threading
import time

from thrift.Thrift import TApplicationException, TMessageType
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from firn.wire import IdService, ttypes

UUID = "11111111-2222-3333-4444-555555555555"
EPOCH_MS = 1_704_067_200_000  # of the layout firn
GIVING = ("getId", "getIds", "getRuns", "getText")
FRAME_MAX = 1 << 20
DAY_MS = 24 * 3_600_000


class Handler:
    """What an honest server answers."""

    def __init__(self, server):
        self.server = server

    def getId(self, tag):
        return self.server.new_ids("getId", tag, 1)[0]

    def getIds(self, tag, count):
        assert 1 <= count <= 100_000, f"a client sent the count {count}"
        return self.server.new_ids("getIds", tag, count)

    def getRuns(self, tag, count):
        ids = self.server.new_ids("getRuns", tag, count)
        stride = None if self.server.wants("no_stride", "getRuns", tag) else 1
        return [ttypes.IdRun(first=ids[0], count=len(ids), stride=stride)]

    def getText(self, tag):
        ids = self.server.new_ids("getText", tag, 1)
        told = self.server.behaviour_for("getText", tag).get("message", str(ids[0]))
        return "" if self.server.wants("too_few", "getText", tag) else told

    def status(self):
        return self.server.status()

    def servers(self, known_version):
        return self.server.server_list(known_version)

    def lease(self, ask):
        raise ttypes.LeaseRefusal(ttypes.LeaseFault.NO_LEASES, "it grants none")

    def ping(self):
        pass


class ScriptedServer:
    """On 127.0.0.1. Thread-safe. Closed by close(), after which nothing is left of it."""

    numbers = itertools.count(1)

    def __init__(self, tls=None):
        self.lock = threading.Lock()
        self.number = next(self.numbers)
        self.behaviours = []
        self.said = {"uuid": UUID, "layout": "firn", "state": "READY"}
        self.list = None
        self.tls = tls  # a context: everything is said within TLS
        self.last_id = self.last_ordered = 0
        self.last_counted = self.number << 40
        self.requests, self.statuses, self.lists_asked, self.accepted = 0, 0, 0, 0
        self.peers, self.listener = set(), None
        # Never listens. Holds the port while the server is down, so that no other program gets it meanwhile.
        self.held = self.bound(0)
        self.port = self.held.getsockname()[1]
        self.up()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    # --- what a case does to it -------------------------------------------------------------------

    def full(self):
        """Takes no more connections: they are neither refused nor answered."""
        self.down()
        self.listener = self.listen(0)
        for _ in range(4):
            waiting = socket.socket()
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", self.port))
            self.peers.add(waiting)

    def up(self):
        if not self.listener:
            self.listener = self.listen(128)
            threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    @staticmethod
    def bound(port):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.bind(("127.0.0.1", port))
        return one

    def listen(self, backlog):
        listener = self.bound(self.port)
        listener.listen(backlog)
        return listener

    def down(self):
        """Dies: connections end, new ones are refused."""
        listener, self.listener = self.listener, None
        if listener:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.drop()

    def drop(self):
        """Ends its connections, in an orderly way."""
        with self.lock:
            peers, self.peers = self.peers, set()
        for peer in peers:
            try:
                peer.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.down()
        self.held.close()

    # --- what it says -----------------------------------------------------------------------------

    def new_ids(self, method, tag, count):
        """Ids in ascending order that no server of this program gives again."""
        do = self.behaviour_for(method, tag).get("do")
        with self.lock:
            if tag == "count":
                first = self.last_counted + 1
                self.last_counted += count
            else:
                ticks = int(time.time() * 1000) - EPOCH_MS
                ticks += 400 * DAY_MS if do == "far_time" else 0
                first = max(ticks << 22 | (self.number % 1024) << 12, self.last_ordered + 1)
                self.last_ordered = first + count - 1
            self.last_id = first + count - 1
        ids = list(range(first, first + count))
        if do == "zero":
            ids[0] = 0
        if do == "twice":
            ids[-1] = ids[0]
        return ids[:-1] or ids if do == "too_few" else ids

    def status(self):
        said = self.said
        tags = [ttypes.TagStatus(tag="order", strategy="snowflake", issued=1, as_issued=True),
                ttypes.TagStatus(tag="count", strategy="segment", issued=1)]
        return ttypes.ServerStatus(
            cluster_uuid=said["uuid"], cluster_name="conformance", application="firn",
            address=self.address, layout=said["layout"], rack_bits=2,
            state=ttypes.ServerState._NAMES_TO_VALUES[said["state"]], machine=self.number % 1024,
            wall_ms=int(time.time() * 1000), layout_ends_ms=EPOCH_MS + (1 << 41), started_ms=1,
            tags=tags, version="0", build="scripted", machines=[self.number % 1024])

    def server_list(self, known_version):
        if self.list is None:
            raise ttypes.Refusal(ttypes.Reason.NOT_READY, "it has read no list", 0, True)
        version, ask_again_ms, entries = self.list
        answer = ttypes.ServerList(cluster_uuid=self.said["uuid"], application="firn",
                                   version=version, age_ms=0, ask_again_ms=ask_again_ms)
        if known_version != version:
            answer.servers = entries
        return answer

    def wants(self, do, method, tag):
        return self.behaviour_for(method, tag).get("do", "serve") == do

    def behaviour_for(self, method, tag):
        """The first that fits; an empty one is to serve."""
        return next((one for one in self.behaviours if method in one.get("to", GIVING)
                     and one.get("tag", tag) == tag), {})

    # --- its connections --------------------------------------------------------------------------

    def accept(self, listener):
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        with self.lock:
            self.accepted += 1
            self.peers.add(peer)
        plain = peer
        try:
            if self.behaviour_for("connect", None).get("do") == "close":
                return
            if self.tls:
                peer = self.tls.wrap_socket(peer, server_side=True)
                with self.lock:
                    self.peers.discard(plain)
                    self.peers.add(peer)
            while self.listener and self.answer(peer):
                pass
        except OSError:
            pass
        finally:
            with self.lock:
                self.peers.discard(peer)
            peer.close()

    @staticmethod
    def read(peer, size):
        data = b""
        while len(data) < size:
            more = peer.recv(size - len(data))
            if not more:
                raise ConnectionError("the client has gone")
            data += more
        return data

    def answer(self, peer):
        """Reads one request and does with it what the case says; false ends the connection."""
        size, = struct.unpack(">i", self.read(peer, 4))
        if not 0 < size <= FRAME_MAX:
            return False
        request = self.read(peer, size)
        method, _, sequence = TBinaryProtocol(TMemoryBuffer(request)).readMessageBegin()
        tag = self.tag_of(method, request)
        with self.lock:
            self.requests += method in GIVING
            self.statuses += method == "status"
            self.lists_asked += method == "servers"
        return self.act(peer, self.behaviour_for(method, tag), method, sequence, request)

    @staticmethod
    def tag_of(method, request):
        if method not in GIVING:
            return None
        protocol = TBinaryProtocol(TMemoryBuffer(request))
        protocol.readMessageBegin()
        arguments = getattr(IdService, method + "_args")()
        arguments.read(protocol)
        return arguments.tag

    def act(self, peer, behaviour, method, sequence, request):
        do = behaviour.get("do", "serve")
        if do == "silent":
            return self.wait_for_end(peer)
        if do == "close":
            return False
        if do == "reset":
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if do in ("garbage", "http"):
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" if do == "http" else
                         struct.pack(">i", 12) + b"nonsense-ish")
            return self.wait_for_end(peer)
        reply = self.reply(behaviour, method, sequence, request)
        frame = struct.pack(">i", len(reply)) + reply
        delay = behaviour.get("delay_ms", 0) / 1000
        if do == "drip":
            return all(self.pause(peer, delay) and not peer.send(frame[at:at + 1]) - 1
                       for at in range(len(frame)))
        if delay and not self.pause(peer, delay):
            return False
        peer.sendall({"half": frame[:len(frame) // 2], "repeat": frame + frame}.get(do, frame))
        return do != "half"

    def reply(self, behaviour, method, sequence, request):
        out = TMemoryBuffer()
        protocol = TBinaryProtocol(out)
        do = behaviour.get("do", "serve")
        if do == "no_method":
            protocol.writeMessageBegin(method, TMessageType.EXCEPTION, sequence)
            TApplicationException(TApplicationException.UNKNOWN_METHOD, "unknown").write(protocol)
        elif do in ("refuse", "empty"):
            protocol.writeMessageBegin(method, TMessageType.REPLY, sequence)
            result = getattr(IdService, method + "_result")()
            if do == "refuse":
                result.refusal = ttypes.Refusal(
                    ttypes.Reason._NAMES_TO_VALUES[behaviour["reason"]],
                    behaviour.get("message", "as the case says"),
                    behaviour.get("retry_after_ms", 0), behaviour.get("another_may_help", False))
            result.write(protocol)
        else:
            processor = IdService.Processor(Handler(self))
            processor.process(TBinaryProtocol(TMemoryBuffer(request)), protocol)
            if do == "other_sequence":
                return self.renumbered(out.getvalue(), sequence)
        return out.getvalue()

    @staticmethod
    def renumbered(reply, sequence):
        """The same answer under another call's number, which stands behind the method's name."""
        length, = struct.unpack(">i", reply[4:8])
        at = 8 + length
        return reply[:at] + struct.pack(">i", sequence + 1) + reply[at + 4:]

    def pause(self, peer, seconds):
        """Whether the client is still there afterwards. It may have sent more meanwhile."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not select.select([peer], [], [], left)[0]:
                return True
            if not socket.socket.recv(peer, 1, socket.MSG_PEEK):  # below TLS
                return False
            time.sleep(min(left, 0.005))
        return True

    def wait_for_end(self, peer):
        """Says nothing until the client has gone."""
        while self.listener and peer.recv(4096):
            pass
        return False
