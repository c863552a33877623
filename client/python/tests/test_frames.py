"""The frames of tests/contract/frames.json, which all hand-written codecs share. FIRN_FRAMES is its path."""

import json
import os
import tracemalloc
import unittest

from firn import protocol
from firn.ask import Ask
from firn.errors import AttemptFailed, End, LeaseRefused
from firn.layout import IdCheck

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = os.environ.get("FIRN_FRAMES") or os.path.join(HERE, "..", "..", "..", "tests", "contract", "frames.json")


ARGUMENTS = {"lease": ("token", "name", "clock_ms", "ahead_ms", "rack"),
             "renewLease": ("lease", "turn", "acknowledged", "clock_ms", "ahead_ms"),
             "releaseLease": ("lease", "turn", "used_tick")}
LONG = ("clock_ms", "used_tick", "number", "base_bits", "sequence_from", "sequence_count", "epoch_ms", "from_tick",
        "until_tick")


def told(method, answer):
    """A result as frames.json has it."""
    if method == "releaseLease":
        return {}
    if method in ARGUMENTS:
        return {name: str(value) if name in LONG else value for name, value in answer._asdict().items()}
    if method == "getIds":
        return [str(one) for one in answer]
    if method == "getRuns":
        return [[str(one.first), one.count, str(one.stride)] for one in answer]
    if method == "status":
        return {"cluster_uuid": answer.cluster_uuid, "layout": answer.layout, "state": answer.state,
                "wall_ms": str(answer.wall_ms), "tags": [one._asdict() for one in answer.tags]}
    if method == "servers":
        return {"version": str(answer.version), "ask_again_ms": answer.ask_again_ms,
                "servers": [one._asdict() for one in answer.servers]}
    return answer if method == "getText" else str(answer)


def ask_of(frame):
    said = frame.get("arguments", {})
    if frame["method"] in ARGUMENTS:
        return Ask(frame["method"], lease=tuple(int(said[name]) if name in LONG and name in said else said.get(name)
                                                for name in ARGUMENTS[frame["method"]]))
    return Ask(frame["method"], said.get("tag", ""), int(said.get("known_version", said.get("count", 1))))


def outcome(frame, received):
    """What a connection makes of these bytes, as frames.json has it."""
    ask = ask_of(frame)
    try:
        if len(received) < 4 or len(received) < 4 + protocol.frame_size(received):
            return {"incomplete": True}
        answer = ask.answer(received[4:4 + protocol.frame_size(received)], frame["sequence"])
        fault = ask.fault_of(answer) or IdCheck("", frozenset(), 0).fault_of(ask.tag, ask.numbers(answer), 0)
        return {"broken": True} if fault else {"answer": told(frame["method"], answer)}
    except AttemptFailed as failure:
        if failure.lacks_method:
            return {"lacks_method": True}
        if isinstance(failure, LeaseRefused):
            return {"lease_refusal": {"fault": int(failure.fault), "message": failure.detail, "server": failure.server}}
        if failure.end is not End.REFUSED:
            return {"broken": failure.end is End.BROKEN}
        return {"refusal": {"reason": int(failure.reason), "message": failure.detail,
                            "retry_after_ms": failure.retry_after_ms,
                            "another_server_may_help": failure.another_may_help}}


@unittest.skipUnless(os.path.exists(PATH), "a source package does not contain the frames")
class FramesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(PATH, encoding="utf-8") as file:
            frames = json.load(file)
        cls.frames = {kind: frames[kind] + frames["lease_" + kind] for kind in ("requests", "answers")}

    def test_writes_the_requests(self):
        for one in self.frames["requests"]:
            with self.subTest(one["case"]):
                self.assertEqual(ask_of(one).request(one["sequence"]).hex(), one["frame"])

    def test_reads_the_answers(self):
        for one in self.frames["answers"]:
            with self.subTest(one["case"]):
                wanted = {key: value for key, value in one.items()
                          if key not in ("case", "method", "sequence", "arguments", "frame")}
                self.assertEqual(outcome(one, bytes.fromhex(one["frame"])), wanted)

    def test_allocates_no_more_than_has_arrived(self):
        tracemalloc.start()
        try:
            for one in self.frames["answers"]:
                received = bytes.fromhex(one["frame"])
                tracemalloc.reset_peak()
                before = tracemalloc.get_traced_memory()[1]
                outcome(one, received)
                self.assertLess(tracemalloc.get_traced_memory()[1] - before, 1 << 20, one["case"])
        finally:
            tracemalloc.stop()

    def test_reads_no_further_than_the_end_of_a_frame(self):
        for one in self.frames["answers"]:
            received, ask = bytes.fromhex(one["frame"]), ask_of(one)
            for end in range(4, len(received)):
                with self.subTest(one["case"], end=end), self.assertRaises(AttemptFailed):
                    ask.answer(received[4:end], one["sequence"])

    def test_survives_every_changed_byte(self):
        for one in self.frames["answers"]:
            received, ask = bytearray.fromhex(one["frame"]), ask_of(one)
            for at in range(4, len(received)):
                for value in 0, 1, 0x0B, 0x0C, 0x0F, 0x7F, 0x80, 0xFF:
                    changed = bytearray(received)
                    changed[at] = value
                    try:
                        ask.fault_of(ask.answer(bytes(changed[4:]), one["sequence"]))
                    except AttemptFailed:
                        pass


if __name__ == "__main__":
    unittest.main()
