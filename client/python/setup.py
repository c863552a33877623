"""Generates the stubs in firn/wire from the contract, if it exists; a source package contains them."""

import os
import shutil
import subprocess
import tempfile

from setuptools import setup

HERE = os.path.dirname(os.path.abspath(__file__))
CONTRACT = os.path.join(HERE, "..", "..", "thrift", "firn.thrift")
STUBS = os.path.join(HERE, "firn", "wire")

if os.path.exists(CONTRACT):
    with tempfile.TemporaryDirectory() as made:
        subprocess.run(["thrift", "--gen", "py", "-out", made, CONTRACT], check=True)
        shutil.rmtree(STUBS, ignore_errors=True)
        shutil.copytree(os.path.join(made, "firn", "wire"), STUBS)

setup()
