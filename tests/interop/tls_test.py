#!/usr/bin/python3
"""TLS and mutual TLS of the public port, and new certificates by SIGHUP, with Python's own client.

    tls_test.py FIRN_SERVER

Exit 77 when the command openssl is not installed.
"""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
import unittest
import urllib.request

import interop


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


class Authority:
    def __init__(self, folder, name):
        self.path = lambda file: os.path.join(folder, f"{name}-{file}")
        self.request("ca", "ca.crt", "-x509", "-days", "2")

    def request(self, who, out, *more):
        openssl("req", *more, "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-subj", f"/CN={who}", "-keyout", self.path(who + ".key"), "-out", self.path(out))

    def sign(self, who, days=2):
        """The files of a new certificate and its key; with days < 0 it has expired."""
        self.request(who, who + ".csr")
        openssl("x509", "-req", "-in", self.path(who + ".csr"), "-CA", self.path("ca.crt"), "-CAkey",
                self.path("ca.key"), "-CAcreateserial", "-days", str(days), "-out",
                self.path(who + ".crt"))
        return self.path(who + ".crt"), self.path(who + ".key")


class TlsTest(unittest.TestCase):
    program = folder = None

    @classmethod
    def setUpClass(cls):
        cls.ours, cls.theirs = (Authority(cls.folder, name) for name in ("ours", "theirs"))
        cls.client, cls.stranger = cls.ours.sign("client"), cls.theirs.sign("client")
        cls.files = [os.path.join(cls.folder, name) for name in ("server.crt", "server.key")]
        cls.use("first")
        cls.server = interop.Server(cls.program, os.path.join(cls.folder, "server"),
                                    f"--tls_cert={cls.files[0]}", f"--tls_key={cls.files[1]}",
                                    "--tls_client_ca=" + cls.ours.path("ca.crt"))

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.log()

    @classmethod
    def use(cls, name, days=2):
        """Replaces the server's certificate files."""
        for source, target in zip(cls.ours.sign(name, days), cls.files):
            shutil.copy(source, target)

    def ask(self, certificate):
        """Requests an id; returns the name in the server's certificate. None: it refuses the client."""
        context = ssl.create_default_context(cafile=self.ours.path("ca.crt"))
        context.check_hostname = False
        if certificate:
            context.load_cert_chain(*certificate)
        connection = http.client.HTTPSConnection("127.0.0.1", self.server.port, context=context,
                                                 timeout=interop.PATIENCE_S)
        try:
            connection.request("GET", "/genid")
            answer = connection.getresponse()
            subject = connection.sock and connection.sock.getpeercert()["subject"]
            self.assertEqual(answer.status, 200)
            self.assertGreater(int(answer.read()), 0)
            return dict(pair for part in subject for pair in part)["commonName"]
        except (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected):
            return None
        finally:
            connection.close()

    def reload(self, says):
        """Sends SIGHUP, and waits until the log contains the result."""
        before = self.server.log().count(says)
        self.server.process.send_signal(signal.SIGHUP)
        deadline = time.time() + interop.PATIENCE_S
        while self.server.log().count(says) == before:
            self.assertLess(time.time(), deadline, self.server.log())
            time.sleep(0.05)

    def test_serves_only_clients_of_the_authority(self):
        self.assertTrue(self.ask(self.client))
        self.assertIsNone(self.ask(self.stranger))
        self.assertIsNone(self.ask(None))
        with socket.create_connection(("127.0.0.1", self.server.port)) as plain:
            plain.sendall(b"GET /genid HTTP/1.0\r\n\r\n")
            self.assertNotIn(b" 200 ", plain.recv(4096))
        self.assertTrue(self.ask(self.client))

    def test_a_reload_takes_new_certificates_or_keeps_the_old_ones_if_they_are_invalid(self):
        self.use("second")
        self.reload("TLS certificates and rights reloaded")
        self.assertEqual(self.ask(self.client), "second")
        with open(self.files[1], "w") as key:
            key.write("no key\n")
        self.reload("reload failed, the files read before stay in force")
        self.assertEqual(self.ask(self.client), "second")
        self.use("third")
        self.reload("TLS certificates and rights reloaded")
        self.assertEqual(self.ask(self.client), "third")

    def test_refuses_to_load_an_expired_certificate_and_shows_when_its_own_expires(self):
        self.use("good")
        self.reload("TLS certificates and rights reloaded")
        self.use("late", days=-1)
        self.reload("the certificate expired at")
        self.assertEqual(self.ask(self.client), "good")
        shown, = self.admin("/v1/status", json.loads)["certificates"]
        self.assertEqual(shown["door"], "public")
        self.assertGreater(shown["expires_in_s"], 86400)
        seconds = re.search(r'^firn_tls_certificate_expiry_seconds{door="public"} (.*)$',
                            self.admin("/metrics", str), re.MULTILINE)
        self.assertAlmostEqual(float(seconds[1]), shown["expires_in_s"], delta=3600)
        self.assertGreater(shown["client_ca_expires_in_s"], 86400)
        seconds = re.search(r'^firn_tls_client_ca_expiry_seconds{door="public"} (.*)$',
                            self.admin("/metrics", str), re.MULTILINE)
        self.assertAlmostEqual(float(seconds[1]), shown["client_ca_expires_in_s"], delta=3600)
        self.use("good")

    def admin(self, path, read):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.admin_port}{path}") as answer:
            return read(answer.read().decode())


if __name__ == "__main__":
    interop.main(TlsTest, "openssl")
