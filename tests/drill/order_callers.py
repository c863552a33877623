"""Callers that take numbers of a tag over each protocol, and the judge of their order."""

import bisect
import http.client
import json
import socket
import struct
import threading
import time

COUNTS = (1, 1, 7, 1000)  # numbers of a caller's calls
PIPELINED = 8
REASONS = {3: "NOT_READY", 4: "CLOCK", 5: "OVERLOADED", 6: "EXHAUSTED", 7: "DRAINING", 9: "STORE_DOWN", 10: "INTERNAL"}


class Caller:
    """Takes numbers from one server by INCRBY, until stopped. Each call is (begin, end, first, last)."""

    def __init__(self, member, tag, calls, tls=None):
        self.member, self.tag, self.calls, self.tls = member, tag, calls, tls
        self.stopped, self.refused, self.line = False, [], None
        self.answered_at = self.silence = 0.0  # silence: the longest time between two answers
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        turn = 0
        while not self.stopped:
            try:
                if self.line is None:
                    self.connect()
                count, turn = COUNTS[turn % len(COUNTS)], turn + 1
                said = self.ask(count, time.monotonic())
                if said is not None:
                    self.refused.append((time.monotonic(), said))
                    time.sleep(0.01)
            except (OSError, http.client.HTTPException):
                self.line = None
                time.sleep(0.02)

    def connect(self):
        line = socket.create_connection(("127.0.0.1", self.member.port), 5)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls:
            line = self.tls.wrap_socket(line, server_hostname="127.0.0.1")
        self.line, self.answers = line, line.makefile("rb")

    def got(self, began, ended, first, last):
        self.calls.append((began, ended, first, last))
        self.silence, self.answered_at = max(self.silence, ended - self.answered_at), ended

    def ask(self, count, began):
        """Returns the text of the refusal, if the call is refused."""
        words = "INCRBY", self.tag, str(count)
        self.line.sendall("".join([f"*{len(words)}\r\n", *(f"${len(one)}\r\n{one}\r\n" for one in words)]).encode())
        answer = self.answers.readline()
        ended = time.monotonic()
        if not answer:
            raise OSError("closed")
        if answer[:1] != b":":
            return answer.decode().strip().lstrip("-")
        last = int(answer[1:])
        return self.got(began, ended, last - count + 1, last)

    def stop(self):
        self.stopped = True
        self.thread.join()


class HttpCaller(Caller):
    """Takes numbers by GET, on one connection."""

    def connect(self):
        self.line = http.client.HTTPConnection("127.0.0.1", self.member.port, timeout=5)

    def ask(self, count, began):
        self.line.request("GET", f"/v1/ids/{self.tag}?count={count}")
        answer = self.line.getresponse()
        body = answer.read()
        ended = time.monotonic()
        if answer.status != 200:
            error = json.loads(body)["error"]
            return f"{error['reason']} {error['message']}"
        numbers = json.loads(body)["numbers"]
        assert len(numbers) == count, numbers
        first = numbers[0]
        for last, following in zip(numbers, [*numbers[1:], None]):  # a call may get parts of two ranges
            if following != last + 1:
                self.got(began, ended, first, last)
                first = following
        return None


class PipelinedCaller(Caller):
    """Takes single numbers over Thrift, in pipelines of several calls, which the server may join."""

    def ask(self, count, began):
        tag = self.tag.encode()
        call = struct.pack(f">Ii5sibhi{len(tag)}sb", 0x80010001, 5, b"getId", 0, 11, 1, len(tag), tag, 0)
        self.line.sendall((struct.pack(">i", len(call)) + call) * PIPELINED)
        said = None
        for _ in range(PIPELINED):
            size = self.answers.read(4)
            if len(size) < 4:
                raise OSError("closed")
            answer = self.answers.read(struct.unpack(">i", size)[0])
            ended = time.monotonic()
            if answer[17:20] == b"\x0a\0\0":
                number = struct.unpack(">q", answer[20:28])[0]
                self.got(began, ended, number, number)
            else:  # the struct Refusal: its reason, then its message
                reason, size = struct.unpack(">i3xi", answer[23:34])
                said = f"{REASONS.get(reason, reason)} {answer[34:34 + size].decode()}"
        return said


def disorder(calls):
    """The calls that got a number below one that had been answered before they began, and duplicates."""
    by_end = sorted(calls, key=lambda call: call[1])
    ends, largest, top = [call[1] for call in by_end], [], 0
    for call in by_end:
        top = max(top, call[3])
        largest.append(top)
    late = []
    for call in calls:
        before = bisect.bisect_left(ends, call[0])
        if before and largest[before - 1] >= call[2]:
            late.append((call, largest[before - 1]))
    runs, twice, end = sorted((call[2], call[3]) for call in calls), 0, 0
    for first, last in runs:
        twice += max(0, min(end, last) - first + 1)
        end = max(end, last)
    return late, twice
