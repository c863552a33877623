"""Requests of the wire contract, and checks that an answer can belong to its request."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Union

from . import protocol
from .errors import printable

_MOST = (1 << 63) - 1
LeaseFields = tuple[Union[str, int, None], ...]


class Ask(NamedTuple):
    """A method of the wire contract and its arguments."""

    method: str
    tag: str = ""
    count: int = 1  # type: ignore[assignment]  # of `servers`: the version of the known list
    lease: Optional[LeaseFields] = None  # fields of a request about a lease; None: absent

    def request(self, sequence: int) -> bytes:
        """Returns the frame of the request."""
        if self.lease is not None:
            return protocol.lease_request(self.method, sequence, self.lease)
        return protocol.request(self.method, sequence, self.tag, self.count)

    def answer(self, frame: bytes, sequence: int) -> Any:
        """Returns the result in a frame without its length, or raises AttemptFailed."""
        return protocol.answer(frame, self.method, sequence)

    def fault_of(self, answer: Any) -> Optional[str]:
        """Returns what is wrong with the answer, such as a duplicate id, or None."""
        if isinstance(answer, protocol.LeaseTerms):
            clean = all(text.isascii() and text.isprintable() for text in (answer.lease, answer.server))
            return None if clean else "its lease has a character that no lease has"
        if self.method == "getText":
            if not answer:
                return "its text is empty"
            return None if printable(answer) == answer else "its text has a control character"
        if self.method == "getIds":
            if len(answer) != self.count:
                return f"it gave {len(answer)} ids, not {self.count}"
            return None if len(set(answer)) == self.count else "its answer contains an id twice"
        return self._fault_of_runs(answer) if self.method == "getRuns" else None

    def _fault_of_runs(self, runs: list[protocol.Run]) -> Optional[str]:
        got, last = 0, None
        for run in runs:
            if run.count < 1 or run.stride < 1 or (last is not None and run.first <= last):
                return "a run is empty, or does not ascend"
            got, last = got + run.count, run.first + (run.count - 1) * run.stride
            if last > _MOST:
                return "a run exceeds the largest 64-bit id"
        return None if got == self.count else f"its runs hold {got} ids, not {self.count}"

    def numbers(self, answer: Any) -> list[int]:
        """The ids to check: the first and the last one of each run."""
        if self.method == "getId":
            return [answer]
        if self.method == "getIds":
            return list(answer)
        if self.method == "getRuns":
            return [end for run in answer
                    for end in (run.first, run.first + (run.count - 1) * run.stride)]
        return []
