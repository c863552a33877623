"""TLS contexts that follow their files, and the meaning of TLS faults."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from typing import Any, Optional

from .errors import AttemptFailed, End
from .options import Tls


class TlsContexts:
    """The TLS context for new connections, re-created when a file has changed. While the files are
    unusable, such as half written, the last usable ones stay in force. Thread-safe."""

    def __init__(self, tls: Tls) -> None:
        self._tls, self._lock = tls, threading.Lock()
        self._stamp: Any = None
        self._context: Optional[ssl.SSLContext] = None

    def name_for(self, host: str) -> str:
        """Returns the name that the certificate of a server at the host must contain."""
        return self._tls.name or host

    def current(self) -> ssl.SSLContext:
        files = [file for file in (self._tls.ca, self._tls.cert, self._tls.key) if file]
        with self._lock:
            try:
                stamp = [(found.st_mtime_ns, found.st_ino, found.st_size)
                         for found in map(os.stat, files)]
                if self._context is None or stamp != self._stamp:
                    self._context, self._stamp = self._read(), stamp
            except (OSError, ValueError):
                if self._context is None:
                    raise  # otherwise the next connection tries again
            return self._context

    def _read(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._tls.ca)
        if self._tls.cert:
            context.load_cert_chain(self._tls.cert, self._tls.key)
        return context


def tls_failure(fault: Exception) -> AttemptFailed:
    """Returns the failure of an attempt whose TLS handshake or TLS connection failed."""
    if isinstance(fault, ssl.SSLCertVerificationError):
        return AttemptFailed(End.WRONG_SERVICE, f"its certificate: {fault.verify_message}")
    ended = isinstance(fault, (ssl.SSLEOFError, ssl.SSLZeroReturnError))
    if isinstance(fault, ssl.SSLError) and not ended:
        plain = fault.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
        return AttemptFailed(End.WRONG_SERVICE,
                             "it does not speak TLS" if plain else f"TLS: {fault.reason}")
    if isinstance(fault, (socket.timeout, TimeoutError)):
        return AttemptFailed(End.CONNECT_TIMEOUT, "in the TLS handshake")
    return AttemptFailed(End.UNREACHABLE, f"in the TLS handshake: {fault}")
