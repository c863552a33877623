"""Checks that a server can have issued ids, by the layout in its status."""

from __future__ import annotations

import datetime
import re
from typing import Optional

_DEFAULT_EPOCH_MS = 1_704_067_200_000
_VESTA = "version:1 type:1={} method:2 time:{} {} machine:10 epoch:1420041600000"
_NAMED = {
    "firn": "time:41 machine:10 sequence:12",
    "twitter": "time:41 machine:10 sequence:12 epoch:1288834974657",
    "vesta-max-peak": _VESTA.format(0, "30s", "sequence:20"),
    "vesta-min-granularity": _VESTA.format(1, "40", "sequence:10"),
    "js-safe": "time:41 machine:6 sequence:6",
}
_TIME = re.compile(r"(\d+)(?:@(\d+))?(ms|s)?")
_SLACK_MS = 24 * 3_600_000


class Layout:
    """The position of the time in an id, and the bits that never change."""

    def __init__(self, text: str) -> None:
        self.tick_ms, self.epoch_ms, shift = 1, _DEFAULT_EPOCH_MS, 0
        self.fixed_mask = self.fixed_bits = self.time_shift = self.time_mask = 0
        self.signed = False
        for token in reversed(_NAMED.get(text, text).split()):
            name, _, value = token.partition(":")
            if name == "epoch":
                self.epoch_ms = _moment_ms(value)
                continue
            width = self._field(name, value, shift)
            shift += width
        if not self.time_mask or shift > 64:
            raise ValueError(f"'{text}' is not a layout")
        self.fixed_mask |= (1 << 64) - (1 << shift)

    def _field(self, name: str, value: str, shift: int) -> int:
        """Adds the field that begins at bit `shift`; returns its width."""
        if name == "time":
            match = _TIME.fullmatch(value)
            if match is None:
                raise ValueError(f"'{value}' is not a time field")
            width = int(match[1])
            self.tick_ms = int(match[2] or 1) * (1000 if match[3] == "s" else 1)
            self.time_shift, self.time_mask = shift, (1 << width) - 1
            return width
        digits, _, constant = value.partition("=")
        width = int(digits)
        if name in ("zero", "type"):
            self.fixed_mask |= ((1 << width) - 1) << shift
            self.fixed_bits |= int(constant or 0) << shift
        self.signed = self.signed or (name == "version" and shift + width == 64)
        return width

    def fault_of(self, numbers: list[int], wall_ms: float) -> Optional[str]:
        """A sentence if a server whose clock shows `wall_ms` cannot have issued these ids, which contain a time."""
        mask, fixed, shift, time_mask = self.fixed_mask, self.fixed_bits, self.time_shift, self.time_mask
        earliest = (wall_ms - _SLACK_MS - self.epoch_ms) / self.tick_ms
        latest = (wall_ms + _SLACK_MS - self.epoch_ms) / self.tick_ms
        for number in numbers:
            if number & mask != fixed:
                return f"{number} cannot be an id of this cluster: a fixed bit of the layout differs"
            if not earliest <= number >> shift & time_mask <= latest:
                return f"{number} cannot be an id of this cluster: its time is more than a day from the clock"
        return None


def _moment_ms(text: str) -> int:
    if text.isdigit():
        return int(text)
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return round(moment.timestamp() * 1000)


class IdCheck:
    """The ids that one server can have issued, by its status at the start of a connection."""

    def __init__(self, layout: str, timed: frozenset[str], clock_offset_ms: float) -> None:
        try:
            self._layout: Optional[Layout] = Layout(layout)
        except ValueError:
            self._layout = None  # a newer layout: checks only rules of all layouts
        self._timed, self._offset_ms = timed, clock_offset_ms

    def fault_of(self, tag: str, numbers: list[int], now_ms: float) -> Optional[str]:
        layout, least = self._layout, min(numbers, default=1)
        if least <= 0 and (0 in numbers or not (layout and layout.signed)):
            return f"no id is {0 if 0 in numbers else least}"
        if layout and numbers and tag in self._timed:
            return layout.fault_of(numbers, now_ms + self._offset_ms)
        return None
