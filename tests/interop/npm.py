"""Installs npm packages at the versions that a package-lock.json names."""

import fcntl
import filecmp
import os
import shutil
import subprocess

import interop

UNREACHABLE = ("ENOTFOUND", "ETIMEDOUT", "ECONNREFUSED", "ECONNRESET", "EAI_AGAIN", "ENETUNREACH",
               "EHOSTUNREACH", "ERR_SOCKET_TIMEOUT")
PATIENCE_S = 120
NAMES = ("package.json", "package-lock.json")


def install(source, folder):
    """Installs the packages of `source` into `folder`/node_modules, unless they are there. Ends the test as
    skipped if npm is not installed or its registry cannot be reached. Several processes may call it."""
    for tool in "node", "npm":
        if not shutil.which(tool):
            interop.skip(f"{tool} is not installed")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = os.path.join(folder, "installed")
        wanted = os.path.join(source, "package-lock.json")
        if os.path.exists(done) and filecmp.cmp(wanted, done, shallow=False):
            return
        for name in NAMES:
            shutil.copy(os.path.join(source, name), folder)
        run_npm(folder, "ci", "--ignore-scripts", "--include=dev")
        shutil.copy(wanted, done)


def run_npm(folder, *arguments, local=False):
    """Runs npm; returns its output. Ends the test as skipped if the registry cannot be reached, unless the command
    is `local`: such a command needs no registry and has no time limit."""
    try:
        npm = subprocess.run(
            ["npm", *arguments, "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=15000"],
            cwd=folder, capture_output=True, text=True, timeout=None if local else PATIENCE_S)
    except subprocess.TimeoutExpired:
        interop.skip(f"npm's registry did not answer in {PATIENCE_S} s")
    if npm.returncode != 0:
        cause = next((word for word in UNREACHABLE if word in npm.stderr), None)
        if cause and not local:
            interop.skip(f"npm's registry cannot be reached ({cause})")
        raise SystemExit(f"npm {' '.join(arguments)} failed:\n{npm.stdout}{npm.stderr}")
    return npm.stdout
