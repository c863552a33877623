"""Ids from a cluster of Firn servers: see Client."""

from .client import Client
from .errors import Attempt, Closed, End, FirnError, Reason, Refused, Unavailable
from .fleet import SeenServer
from .options import Event, LocalTag, Options, Tls

__all__ = ["Attempt", "Client", "Closed", "End", "Event", "FirnError", "LocalTag", "Options", "Reason",
           "Refused", "SeenServer", "Tls", "Unavailable"]
