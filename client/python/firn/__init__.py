"""Ids from a cluster of Firn servers: see Client."""

from .client import Client
from .errors import Attempt, Closed, End, FirnError, NoLease, Reason, Refused, Unavailable
from .local_generator import LocalGenerator
from .options import Event, LocalTag, Options, Tls
from .server import SeenServer
from .view import Counters, LeaseLoss

__all__ = ["Attempt", "Client", "Closed", "Counters", "End", "Event", "FirnError", "LeaseLoss", "LocalGenerator",
           "LocalTag", "NoLease", "Options", "Reason", "Refused", "SeenServer", "Tls", "Unavailable"]
