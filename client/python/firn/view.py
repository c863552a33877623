"""What a client shows of its work."""

from __future__ import annotations

from typing import NamedTuple


class LeaseLoss(NamedTuple):
    """A lease that a generator has lost. Until the next one, `next` raises NoLease."""

    kind: str        # revoked: another process may have its ids; expired: no server extended its interval
    machine_id: int
    reason: str      # a sentence


class Counters(NamedTuple):
    """What a client has done since it was created. Each number only grows."""

    calls: int = 0             # calls to servers; ids from memory are not among them
    failed: int = 0            # calls that failed without a refusal
    refused: int = 0           # calls that a server refused
    attempts: int = 0          # attempts at servers
    retries: int = 0           # requests that used the retry budget
    retries_denied: int = 0    # retries that the exhausted retry budget prevented
    timeouts: int = 0          # attempts without an answer in time
    broken: int = 0            # invalid answers
    connects: int = 0          # connections that were begun
    connects_failed: int = 0   # connections that failed before the server's status arrived
    lists: int = 0             # server lists that were accepted
    local_ids: int = 0         # ids that threads took from memory, in pieces
    local_ids_missed: int = 0  # how often no id was in memory although the tag is prefetched
