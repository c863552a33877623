"""Starts and ends programs for tests and measurements, and reserves their ports."""

import atexit
import fcntl
import os
import random
import signal
import socket
import subprocess

held = []


def free_port():
    """Returns a loopback port on which no program listens, and holds it until this program ends: no other
    call returns it, in Python, C++ or shell (tests/support/process.h, tools/lib.sh). It is below the range
    from which the kernel takes the ports of outgoing connections, so it stays free while a server restarts.
    """
    folder = f"/tmp/firn-ports-{os.getuid()}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for _ in range(1000):
        port = random.SystemRandom().randrange(10_000, 30_000)
        file = os.open(f"{folder}/{port}", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            os.close(file)
            continue
        held.append(file)
        return port
    raise SystemExit("no free port")


def start(command, **options):
    """Starts a program in its own session. It ends when this program ends, for any reason, and is killed
    when the thread that started it ends. Its streams are /dev/null unless `options` name others, so that
    it does not hold the test's own output open."""
    # A killed caller may have ended before setpriv requests the signal: then the program must not start.
    started_by_caller = 'test "$PPID" = "$0" && exec "$@"'
    for stream in "stdin", "stdout", "stderr":
        options.setdefault(stream, subprocess.DEVNULL)
    process = subprocess.Popen(["setpriv", "--pdeathsig=KILL", "--", "sh", "-c", started_by_caller, str(os.getpid()),
                                *command], start_new_session=True, **options)
    atexit.register(end, process)
    return process


def end(process):
    """Kills the program and its process group, unless its exit code was taken before."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
