"""Three real servers with a registry in a folder, which are killed and restarted in turn while a program takes ids."""

import contextlib
import os
import signal
import subprocess
import threading

import builds
import cluster


@contextlib.contextmanager
def running(program, firn, folder):
    """Yields the servers when each lists all of them."""
    registry = f"dir://{folder}/registry"
    builds.run(firn, "init", "--brand_new", "--force", "--workers=16", "--registry=" + registry)
    members = []
    try:
        for name in "abc":
            members.append(cluster.Member(program, os.path.join(folder, name), registry))
        await_all(members)
        yield members
    finally:
        for one in members:
            cluster.programs.end(one.process)


def await_all(members):
    addresses = {one.address for one in members}
    for one in members:
        one.await_ready()
        cluster.patiently("a server is not listed", lambda of=one: addresses <= of.listed())


def seeds(members):
    """What a client is told: the third server is one that it must discover."""
    return "firn://" + ",".join(one.address for one in members[:2])


def kill_each(members, take_more):
    """Kills and restarts one server after another. `take_more` takes ids: of all servers, and while one is dead."""
    take_more()
    for one in members:
        one.signal(signal.SIGKILL)
        one.process.wait()
        take_more()
        one.start()
        await_all(members)
        take_more()


def take_ids(command, members, take_more, **options):
    """Starts a program that takes ids until its input ends, and kills each server. `take_more` gets the program.
    Returns its exit code and the rest of its output."""
    ids = cluster.programs.start(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
    watch = threading.Timer(cluster.PATIENCE_S * 3, ids.kill)
    watch.start()
    try:
        kill_each(members, lambda: take_more(ids))
        ids.stdin.close()
        said = ids.stdout.read()
        return ids.wait(cluster.PATIENCE_S), said
    finally:
        watch.cancel()
        cluster.programs.end(ids)
        ids.stdout.close()
