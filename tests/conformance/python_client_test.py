#!/usr/bin/python3
"""What only the Python client can get wrong: signals, garbage collection, the speed of its interpreter, and
modules that others replace.

    python_client_test.py

Builds the client from a copy, and plays it against scripted servers. Exit 77 when something is not
installed.
"""

import gc
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import builds

PATIENCE_S = 60


def patiently(what, holds):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"after {PATIENCE_S} s: {what}")
        time.sleep(0.01)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


class Interrupted(Exception):
    pass


def test_signal_in_a_call_leaks_neither_its_place_nor_its_connection(firn, server):
    def interrupt(*_):
        raise Interrupted

    def silent_then_interrupted():
        server.behaviours = [{"do": "silent"}]
        before = server.requests
        main = threading.main_thread().ident

        def strike():
            patiently("no request comes", lambda: server.requests > before)
            signal.pthread_kill(main, signal.SIGUSR1)
        striker = threading.Thread(target=strike)
        striker.start()
        try:
            client.next_id("order")
            raise SystemExit("the call was not interrupted")
        except Interrupted:
            pass
        striker.join()
        server.behaviours = []

    signal.signal(signal.SIGUSR1, interrupt)
    limits = {"deadline_ms": 30_000, "attempt_limit_ms": 30_000, "connections_max": 1}
    with firn.Client(f"list://{server.address}", **limits) as client:
        for _ in range(3):
            silent_then_interrupted()
            client.next_id("order")
        patiently("interrupted calls leave connections", lambda: len(server.peers) <= 1)


def test_forgotten_client_leaves_no_thread_and_no_descriptor(firn, server):
    def use():
        client = firn.Client(f"firn://{server.address}", deadline_ms=30_000,
                             local_ranges=[firn.LocalTag.segment("count")])
        client.next_id("order")
        client.next_id("count")

    patiently("threads of other tests stay", lambda: not named_threads())
    before = descriptors() - len(server.peers)
    for _ in range(5):
        use()
    gc.collect()
    patiently("threads stay", lambda: not named_threads())
    gc.collect()
    patiently("descriptors stay", lambda: not server.peers and descriptors() <= before)


def named_threads():
    return [one for one in threading.enumerate() if one.name.startswith("firn-")]


def test_many_ids_take_no_step_of_the_interpreter_for_each(firn, server):
    calls = 0

    def count(_, event, __):
        nonlocal calls
        calls += event == "call"

    with firn.Client(f"list://{server.address}", deadline_ms=30_000,
                     attempt_limit_ms=30_000) as client:
        client.next_id("order")
        for tag in "order", "count":
            calls = 0
            sys.setprofile(count)
            try:
                ids = client.next_ids(tag, 100_000)
            finally:
                sys.setprofile(None)
            if len(set(ids)) != 100_000 or not all(isinstance(one, int) for one in ids):
                raise SystemExit("these are not 100000 ids")
            if calls > 10_000:
                raise SystemExit(f"100000 ids took {calls} calls of functions")


def test_works_where_select_has_no_poll(firn, server):
    poll = select.poll
    del select.poll  # as eventlet does
    try:
        with firn.Client(f"list://{server.address}", deadline_ms=30_000) as client:
            client.next_id("order")
            client.next_id("order")
            server.drop()
            patiently("the connections stay", lambda: not server.peers)
            client.next_id("order")
    finally:
        select.poll = poll


def play():
    """Inside the environment that has the client."""
    import firn
    firn.__path__.append(os.path.join(os.environ["FIRN_STUBS"], "firn"))  # the server's stubs are a package firn, too
    from scripted_server import ScriptedServer
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            server = ScriptedServer()
            test(firn, server)
            server.close()
            print("ok", name[5:].replace("_", " "), flush=True)


def main():
    if lacking := builds.missing("python"):
        print(f"skipped: not installed: {', '.join(lacking)}")
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="firn-python-")
    try:
        stubs = builds.new(folder, "stubs")
        builds.run("thrift", "--gen", "py", "-out", stubs, os.path.join(builds.ROOT, "thrift", "firn.thrift"))
        client = builds.copy("python", folder, planted=False)
        python = builds.install_python(builds.wheel_of(client), folder, "--system-site-packages")  # Thrift, for stubs
        done = subprocess.run([python, "-B", os.path.abspath(__file__), "play"], check=False,
                              env={**os.environ, "FIRN_STUBS": stubs})
        sys.exit(done.returncode)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    play() if sys.argv[1:] == ["play"] else main()
