#!/usr/bin/python3
"""Checks frames.json with the generated stubs: its requests, and the answers that are valid.

    frames_test.py FIRN_THRIFT

frames.json has frames of the wire contract as they are on the wire, their length first, in hexadecimal. The codecs
of clients that are written by hand must write its `requests`, and read its `answers` as they say:

    answer        the result; a run is [first, count, stride]. Ids, strides, versions and clocks are decimal text
    refusal       the fields of the refusal
    lease_refusal the fields of the refusal of a lease; `fault` 0 is absent, or one of a later version
    lacks_method  the server does not know the method
    broken        not an answer to the request with these `arguments` and this `sequence`
    incomplete    more bytes must come; as many as the length says must not be allocated before

`lease_requests` and `lease_answers` are the same for the methods of leases, which not every client has. There every
64-bit number is decimal text, an absent field of the terms is 0, false or "", and the answer to a release is {}.

Exit 77 when something is not installed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = {"answer", "refusal", "lacks_method", "broken", "incomplete"}
LONG = {"known_version", "clock_ms", "used_tick"}  # arguments of 64 bits
STRUCTS = {"lease": ("ask", "LeaseAsk"), "renewLease": ("renewal", "LeaseRenewal"),
           "releaseLease": ("lease_end", "LeaseEnd")}
LEASE_TEXTS = {"lease", "server"}
LEASE_LONG = {"number", "base_bits", "sequence_from", "sequence_count", "epoch_ms", "from_tick", "until_tick"}
STUBS = None  # the modules IdService, ttypes and those of Thrift


class FramesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(HERE, "frames.json"), encoding="utf-8") as file:
            cls.frames = json.load(file)

    def parts(self):
        service, _, protocol, transport, thrift = STUBS
        return service, protocol.TBinaryProtocol, transport.TMemoryBuffer, thrift

    def test_each_answer_has_one_meaning(self):
        for rows, kinds in (("answers", KINDS), ("lease_answers", KINDS | {"lease_refusal"})):
            for one in self.frames[rows]:
                self.assertEqual(len(kinds & set(one)), 1, one["case"])
            found = {kind for one in self.frames[rows] for kind in kinds & set(one)}
            self.assertEqual(found, kinds)

    def test_stubs_write_the_requests(self):
        service, protocol, buffer, thrift = self.parts()
        for one in self.frames["requests"] + self.frames["lease_requests"]:
            out = buffer()
            to = protocol(out)
            to.writeMessageBegin(one["method"], thrift.TMessageType.CALL, one["sequence"])
            arguments = {key: int(value) if key in LONG else value
                         for key, value in one["arguments"].items()}
            if one["method"] in STRUCTS:
                name, struct = STRUCTS[one["method"]]
                arguments = {name: getattr(STUBS[1], struct)(**arguments)}
            getattr(service, one["method"] + "_args")(**arguments).write(to)
            frame = len(out.getvalue()).to_bytes(4, "big") + out.getvalue()
            self.assertEqual(frame.hex(), one["frame"], one["case"])

    def test_stubs_read_the_valid_answers(self):
        service, protocol, buffer, thrift = self.parts()
        for one in self.frames["answers"] + self.frames["lease_answers"]:
            if "broken" in one or "incomplete" in one:
                continue
            with self.subTest(one["case"]):
                frame = bytes.fromhex(one["frame"])
                self.assertEqual(int.from_bytes(frame[:4], "big"), len(frame) - 4)
                of = protocol(buffer(frame[4:]))
                name, kind, sequence = of.readMessageBegin()
                self.assertEqual((name, sequence), (one["method"], one["sequence"]))
                if "lacks_method" in one:
                    fault = thrift.TApplicationException()
                    fault.read(of)
                    self.assertEqual(fault.type, thrift.TApplicationException.UNKNOWN_METHOD)
                    continue
                self.assertEqual(kind, thrift.TMessageType.REPLY)
                result = getattr(service, name + "_result")()
                result.read(of)
                if "answer" in one:
                    success = getattr(result, "success", None)
                    self.assertEqual({} if name == "releaseLease" else told(success), one["answer"])
                elif "lease_refusal" in one:
                    self.check_lease_refusal(result.lease_refusal, one["lease_refusal"])
                elif one["refusal"]["reason"] == (result.refusal.reason or 0):
                    self.assertEqual(
                        {key: getattr(result.refusal, key) or type(value)()
                         for key, value in one["refusal"].items()}, one["refusal"])

    def check_lease_refusal(self, refusal, wanted):
        fault = refusal.fault if refusal.fault in STUBS[1].LeaseFault._VALUES_TO_NAMES else 0
        self.assertEqual({"fault": fault, "message": refusal.message or "", "server": refusal.server or ""}, wanted)


def told(success):
    """A result as frames.json has it."""
    if isinstance(success, list):
        return [told(one) for one in success]
    if isinstance(success, int):
        return str(success)
    if isinstance(success, STUBS[1].IdRun):
        return [str(success.first), success.count, str(success.stride)]
    if isinstance(success, STUBS[1].ServerStatus):
        return {"cluster_uuid": success.cluster_uuid, "layout": success.layout, "state": success.state,
                "wall_ms": str(success.wall_ms),
                "tags": [{"tag": one.tag, "strategy": one.strategy, "as_issued": bool(one.as_issued)}
                         for one in success.tags]}
    if isinstance(success, STUBS[1].ServerList):
        return {"version": str(success.version), "ask_again_ms": success.ask_again_ms,
                "servers": [{key: getattr(one, key)
                             for key in ("address", "rack", "weight", "online", "state", "tls")}
                            for one in success.servers or []]}
    if isinstance(success, STUBS[1].LeaseTerms):
        return {key: value or "" if key in LEASE_TEXTS else str(value or 0) if key in LEASE_LONG
                else bool(value) if key == "ending" else value or 0 for key, value in vars(success).items()}
    return success


def main():
    global STUBS
    contract = sys.argv.pop(1)
    if not shutil.which("thrift"):
        print("skipped: thrift is not installed")
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="firn-frames-")
    try:
        subprocess.run(["thrift", "--gen", "py", "-out", folder, contract], check=True)
        sys.path[:0] = [folder]
        from thrift import Thrift
        from thrift.protocol import TBinaryProtocol
        from thrift.transport import TTransport
        from firn.wire import IdService, ttypes
        STUBS = (IdService, ttypes, TBinaryProtocol, TTransport, Thrift)
        unittest.main(verbosity=2)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
