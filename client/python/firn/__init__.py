"""Ids from a cluster of Firn servers: see Client."""

from .client import Client
from .errors import Attempt, Closed, End, FirnError, Reason, Refused, Unavailable
from .options import Event, LocalTag, Options, Tls
from .server import SeenServer
from .view import Counters

__all__ = ["Attempt", "Client", "Closed", "Counters", "End", "Event", "FirnError", "LocalTag", "Options", "Reason",
           "Refused", "SeenServer", "Tls", "Unavailable"]
