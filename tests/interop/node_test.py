#!/usr/bin/python3
"""Every method of the wire contract from Node, against a running firn-server.

    node_test.py FIRN_SERVER FIRN FIRN_THRIFT FOLDER

The npm package `thrift`, at the version that node/package-lock.json says, is installed into FOLDER
unless it is there already. Exit 77 when npm's registry cannot be reached, or Node is not installed.
"""

import os
import sys

import interop
import npm

if __name__ == "__main__":
    program, firn, contract, folder = sys.argv[1:]
    npm.install(os.path.join(interop.HERE, "node"), folder)
    with interop.Servers(program, firn) as servers:
        stubs = os.path.join(servers.folder, "stubs")
        interop.generate("js:node,es6", contract, stubs)
        client = os.path.join(interop.HERE, "node", "contract_client.js")
        code = interop.run_client(["node", client, stubs], servers, env={
            **os.environ, "NODE_PATH": os.path.join(folder, "node_modules")})
    sys.exit(code)
