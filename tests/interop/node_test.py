#!/usr/bin/python3
"""Every method of the wire contract from Node, against a running firn-server.

    node_test.py FIRN_SERVER FIRN FIRN_THRIFT FOLDER

The npm package `thrift`, at the version that node/package-lock.json says, is installed into FOLDER
unless it is there already. Exit 77 when npm's registry cannot be reached, or Node is not installed.
"""

import filecmp
import os
import shutil
import subprocess
import sys

import interop

UNREACHABLE = ("ENOTFOUND", "ETIMEDOUT", "ECONNREFUSED", "ECONNRESET", "EAI_AGAIN", "ENETUNREACH",
               "EHOSTUNREACH", "ERR_SOCKET_TIMEOUT")
NPM_PATIENCE_S = 60


def install(folder):
    """Puts node_modules into the folder."""
    wanted, had = (os.path.join(place, "package-lock.json")
                   for place in (os.path.join(interop.HERE, "node"), folder))
    done = os.path.join(folder, "installed")
    if os.path.exists(done) and filecmp.cmp(wanted, had, shallow=False):
        return
    os.makedirs(folder, exist_ok=True)
    shutil.copytree(os.path.join(interop.HERE, "node"), folder, dirs_exist_ok=True)
    try:
        npm = subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1",
             "--fetch-timeout=15000"], cwd=folder, capture_output=True, text=True,
            timeout=NPM_PATIENCE_S)
    except subprocess.TimeoutExpired:
        interop.skip(f"npm's registry did not answer in {NPM_PATIENCE_S} s")
    if npm.returncode != 0:
        cause = next((word for word in UNREACHABLE if word in npm.stderr), None)
        if cause:
            interop.skip(f"npm's registry cannot be reached ({cause})")
        raise SystemExit("npm ci failed:\n" + npm.stderr)
    open(done, "w").close()


if __name__ == "__main__":
    program, firn, contract, folder = sys.argv[1:]
    for tool in "node", "npm":
        if not shutil.which(tool):
            interop.skip(f"{tool} is not installed")
    install(folder)
    with interop.Servers(program, firn) as servers:
        stubs = os.path.join(servers.folder, "stubs")
        interop.generate("js:node,es6", contract, stubs)
        client = os.path.join(interop.HERE, "node", "contract_client.js")
        code = interop.run_client(["node", client, stubs], servers, env={
            **os.environ, "NODE_PATH": os.path.join(folder, "node_modules")})
    sys.exit(code)
