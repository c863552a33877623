#!/usr/bin/python3
"""firn-server's reports to a service manager, and --check_config.

    service_manager_test.py FIRN_SERVER
"""

import os
import socket
import subprocess
import unittest

import interop


class ServiceManagerTest(unittest.TestCase):
    program = folder = None

    def test_reports_start_readiness_and_stop(self):
        path = os.path.join(self.folder, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reports:
            reports.bind(path)
            reports.settimeout(interop.PATIENCE_S)
            server = interop.Server(self.program, os.path.join(self.folder, "server"),
                                    environment={"NOTIFY_SOCKET": path})
            self.addCleanup(server.process.kill)
            self.assertEqual(reports.recv(4096), b"READY=1")
            while reports.recv(4096) != b"STATUS=READY":
                pass
            self.assertEqual(server.stop(), 0)
            while reports.recv(4096) != b"STOPPING=1":
                pass

    def check(self, *flags):
        return subprocess.run([self.program, "--check_config", f"--state_dir={self.folder}/state",
                               *flags], capture_output=True, text=True, check=False)

    def test_check_config_accepts_a_valid_configuration_and_starts_nothing(self):
        done = self.check("--listen=127.0.0.1:7609")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("the configuration is valid", done.stdout)
        self.assertFalse(os.path.exists(f"{self.folder}/state"))

    def test_check_config_names_every_fault(self):
        done = self.check("--io_threads=99", "--layout=nonsense", "--tls_cert=/nowhere")
        self.assertEqual(done.returncode, 2)
        for flag in "io_threads", "layout", "tls_cert":
            self.assertIn(flag, done.stderr)
        words = self.check("--registy=x", "--claim_window_ms=abc", "--colour=blue", "--layout=nonsense")
        self.assertEqual(words.returncode, 2)
        for flag in "'--registy'", "--claim_window_ms is 'abc'", "'--colour'", "layout":
            self.assertIn(flag, words.stderr)


if __name__ == "__main__":
    interop.main(ServiceManagerTest, "python3")
