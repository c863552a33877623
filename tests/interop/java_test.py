#!/usr/bin/python3
"""Every method of the wire contract from Java, against a running firn-server.

    java_test.py FIRN_SERVER FIRN FIRN_THRIFT

Exit 77 when there is no Java compiler, or Debian's libthrift-java is not installed.
"""

import glob
import os
import shutil
import subprocess
import sys

import interop

JARS = ["/usr/share/java/" + name + ".jar"
        for name in ("thrift", "slf4j-api", "slf4j-nop", "geronimo-annotation-1.3-spec")]
# Two short programs, for which full just-in-time compilation would take longer than it saves.
QUICK = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]

if __name__ == "__main__":
    program, firn, contract = sys.argv[1:]
    for tool in "java", "javac":
        if not shutil.which(tool):
            interop.skip(f"{tool} (default-jdk-headless) is not installed")
    for jar in JARS:
        if not os.path.exists(jar):
            interop.skip(f"{jar} (libthrift-java) is not installed")
    with interop.Servers(program, firn) as servers:
        stubs = os.path.join(servers.folder, "stubs")
        interop.generate("java", contract, stubs)
        sources = glob.glob(stubs + "/**/*.java", recursive=True)
        client = os.path.join(interop.HERE, "java", "ContractClient.java")
        classes = os.path.join(servers.folder, "classes")
        path = ":".join(JARS + [classes])
        subprocess.run(["javac", *("-J" + flag for flag in QUICK), "-nowarn", "-proc:none", "-g:none",
                        "-Xlint:none", "-cp", path, "-d", classes, client, *sources],
                       check=True)
        code = interop.run_client(["java", *QUICK, "-cp", path, "ContractClient"], servers)
    sys.exit(code)
