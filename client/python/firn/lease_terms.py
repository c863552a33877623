"""What a lease of a machine id permits."""

from __future__ import annotations

from typing import Optional

from .errors import printable
from .options import split_address
from .protocol import LeaseTerms

_ID_BITS = 63  # an id is not negative, except in layouts with a constant sign in base_bits
_TICK_MS_MAX = 5_000


def fault_of(terms: LeaseTerms) -> Optional[str]:
    """Returns why no id may be issued under these terms, or None."""
    if not terms.lease or not 1 <= terms.tick_ms <= _TICK_MS_MAX:
        return "a lease without an id, or with ticks of an unknown length"
    try:
        split_address(terms.server)
    except ValueError as fault:
        return f"its server: {fault}"
    if not 0 <= terms.from_tick < terms.until_tick:
        return f"ticks from {terms.from_tick} to {terms.until_tick}"
    width = (terms.until_tick - 1).bit_length()
    fields = ((terms.tick_shift, width), (terms.sequence_shift, terms.sequence_bits))
    if any(shift < 0 or bits < 0 or shift + bits > _ID_BITS for shift, bits in fields):
        return "a tick or a sequence outside an id's bits"
    time, sequence = (((1 << bits) - 1) << shift for shift, bits in fields)
    if time & sequence or terms.base_bits & (time | sequence):
        return "fields that overlap"
    last = terms.sequence_from + terms.sequence_count
    if not 0 <= terms.sequence_from < last <= 1 << terms.sequence_bits:
        return f"sequences from {terms.sequence_from} to {last}"
    return None


def fault_of_renewal(terms: LeaseTerms, before: LeaseTerms) -> Optional[str]:
    """Returns why these terms cannot be those of a renewal, or None."""
    if terms.until_tick < before.until_tick or same_but_end(terms) != same_but_end(before):
        return "a renewal was answered with the terms of another lease"
    return fault_of(terms)


def same_but_end(terms: LeaseTerms) -> LeaseTerms:
    """Returns the terms without what a renewal may change."""
    return terms._replace(until_tick=0, renew_in_ms=0, ending=False, server="")


def same_layout(one: LeaseTerms, other: LeaseTerms) -> bool:
    return all(getattr(one, name) == getattr(other, name)
               for name in ("tick_ms", "epoch_ms", "tick_shift", "sequence_shift", "sequence_bits"))


def fault_of_name(name: str) -> Optional[str]:
    """Returns why this cannot be the name of a lease, or None. Servers check the same."""
    marks = "-_.:/@"
    if not 1 <= len(name) <= 64 or not all(one.isascii() and (one.isalnum() or one in marks) for one in name):
        return f"name is '{printable(name)}'; it must have 1 to 64 letters, digits or characters of {marks}"
    return None
