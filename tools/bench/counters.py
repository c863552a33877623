"""Servers that keep counters: firn-server with segment tags, and three databases.

Each is configured for speed as its documentation recommends: no database waits for a disk before it answers, and
each keeps its answered numbers when its process is killed. A second Redis syncs its file before each answer, as it must
so that no number comes again after a crash.
"""

import glob
import os
import signal
import subprocess
import urllib.error
import urllib.request

from processes import Folder, Server, program, programs

# No call waits for long; a wait shows as latency, and not as a refusal.
ISSUE_WAIT_MS = 30_000

SEGMENT_TAGS = {
    "wide": "step = 10000000",
    "usual": "step = 1000",
    "switching": "step = 10000\nstep_max = 10000",
    "owner": "buffer = owner",
    "unbuffered": "buffer = none",
}

MARIADB_CONFIG = """[mariadbd]
tmpdir={folder}
innodb_log_file_size=64M
innodb_buffer_pool_size=64M
innodb_flush_log_at_trx_commit=2
performance_schema=off
skip_name_resolve
skip_log_bin
"""

MARIADB_SETUP = """CREATE DATABASE bench;
CREATE USER bench@'127.0.0.1';
GRANT SELECT, UPDATE ON bench.* TO bench@'127.0.0.1';
CREATE TABLE bench.counter (id BIGINT NOT NULL) ENGINE=InnoDB;
INSERT INTO bench.counter VALUES (0);
"""


def check_installed():
    """Exits with the package's name if one of the databases is not installed."""
    redis_server(), mariadb_programs(), postgresql_programs()


def redis_server():
    return program("redis-server", "redis-server")


def mariadb_programs():
    return (program("mariadbd", "mariadb-server", ["/usr/sbin"]),
            program("mariadb-install-db", "mariadb-server"))


def postgresql_programs():
    places = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    return program("postgres", "postgresql", places), program("initdb", "postgresql", places)


def start_redis(pin, synced=False):
    folder = Folder("redis")
    file = ["--appendonly", "yes", "--appendfsync", "always", "--dir", folder.path] if synced else ["--appendonly", "no"]
    return Server(folder, [redis_server(), "--port", "@PORT@", "--bind", "127.0.0.1", "--save", "", *file], pin)


def start_mariadb(pin):
    """With a table `counter` of one row in the database `bench`."""
    server, install = mariadb_programs()
    folder = Folder("mariadb", user="mysql")
    config, setup = folder / "my.cnf", folder / "setup.sql"
    with open(config, "w", encoding="utf-8") as file:
        file.write(MARIADB_CONFIG.format(folder=folder.path))
    with open(setup, "w", encoding="utf-8") as file:
        file.write(MARIADB_SETUP)
    folder.prepare([install, f"--defaults-file={config}", f"--datadir={folder / 'data'}",
                    "--auth-root-authentication-method=normal", "--skip-test-db", "--force"])
    return Server(folder, [server, f"--defaults-file={config}", f"--datadir={folder / 'data'}",
                           "--bind-address=127.0.0.1", "--port=@PORT@",
                           f"--socket={folder / 'socket'}", f"--pid-file={folder / 'pid'}",
                           f"--init-file={setup}"], pin)


def start_postgresql(pin):
    """With a sequence `counter` in the database `postgres`."""
    server, initdb = postgresql_programs()
    folder = Folder("postgresql", user="postgres")
    data = folder / "data"
    folder.prepare([initdb, f"--pgdata={data}", "--username=bench", "--auth=trust", "--no-sync"])
    folder.prepare([server, "--single", "-D", data, "postgres"], "CREATE SEQUENCE counter\n")
    return Server(folder, [server, "-D", data, "-p", "@PORT@", "-c", "listen_addresses=127.0.0.1",
                           "-c", f"unix_socket_directories={folder.path}",
                           "-c", "synchronous_commit=off"], pin, stop_signal=signal.SIGINT)


class FirnServer(Server):
    """firn-server on its embedded registry, with the tag `default`, which has no store, and with
    those of `tags`; or a second server of the cluster of `beside`, with its tags."""

    def __init__(self, pin, bin_folder, layout, tags=SEGMENT_TAGS, machine_ids=1,
                 issue_wait_ms=ISSUE_WAIT_MS, beside=None):
        folder = Folder("firn")
        registry = [f"--registry=dir://{beside.folder / 'state/registry'}"] if beside else []
        self.tags = tags
        super().__init__(folder, [
            os.path.join(bin_folder, "firn-server"), "--listen=127.0.0.1:@PORT@",
            f"--admin_listen=127.0.0.1:{programs.free_port()}", f"--state_dir={folder / 'state'}",
            f"--layout={layout}", "--io_threads=1", f"--issue_wait_ms={issue_wait_ms}",
            f"--machine_ids={machine_ids}", *registry], pin)
        try:
            self.await_that(lambda: self.serves("default"), "get a machine id")
            if tags and not beside:
                self.make_tags(os.path.join(bin_folder, "firn"))
        except SystemExit:
            self.stop()
            raise

    def make_tags(self, firn):
        path = self.folder / "tags.ini"
        with open(path, "w", encoding="utf-8") as file:
            for tag, lines in self.tags.items():
                file.write(f"[{tag}]\nstrategy = segment\n{lines}\n")
        done = subprocess.run([firn, "tags", "apply", path,
                               f"--registry=dir://{self.folder / 'state/registry'}"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"cannot create the tags: {done.stderr.strip()}")
        for tag in self.tags:
            self.await_that(lambda tag=tag: self.serves(tag), f"serve the tag {tag}")

    def serves(self, tag):
        url = f"http://127.0.0.1:{self.port}/v1/ids/{tag}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False
