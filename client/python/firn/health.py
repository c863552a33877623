"""Whether a server answers: when it rests, and for how long."""

from __future__ import annotations

import random

_IN_A_ROW = 3
_WINDOW = 20
_FIRST_REST_S = 1.0
_LONGEST_REST_S = 30.0


class Health:
    """Ill after 3 failures in a row, or when half of the last 20 calls failed. An ill server rests for
    1 s at first, twice as long each time up to 30 s, spread over the upper half; any success ends
    that and forgets all failures. The owner guards it, and sees to it that never more than half rest."""

    def __init__(self) -> None:
        self.rest_until = 0.0  # 0: it does not rest
        self._rest_s = 0.0
        self._in_a_row = 0
        self._window = 0  # the last calls, newest in bit 0; 1: failed

    @property
    def ill(self) -> bool:
        return self._in_a_row >= _IN_A_ROW or bin(self._window).count("1") * 2 >= _WINDOW

    @property
    def resting(self) -> bool:
        return self.rest_until > 0

    def answered(self) -> None:
        """A call went well, on a server that is not ill."""
        self._in_a_row = 0
        self._window = self._window << 1 & ((1 << _WINDOW) - 1)

    def succeeded(self) -> None:
        self.__init__()  # type: ignore[misc]

    def failed(self, times: int) -> None:
        for _ in range(times):
            self._in_a_row += 1
            self._window = (self._window << 1 | 1) & ((1 << _WINDOW) - 1)

    def rest(self, now: float) -> float:
        """Begins a rest; its length in seconds."""
        self._rest_s = min(max(_FIRST_REST_S, 2 * self._rest_s), _LONGEST_REST_S)
        length = self._rest_s * random.uniform(0.5, 1.0)
        self.rest_until = now + length
        return length
