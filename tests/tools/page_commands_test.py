#!/usr/bin/env python3
"""Tests every command that a page shows: it runs as printed, or page_commands.txt names another test of it.

    page_commands_test.py ROOT FOLDER_OF_PROGRAMS

A command is a line of a block (indented by four, or fenced) that begins with a program's name. The commands
of a page run one after the other in an empty folder, in which the repository's tools and programs have the
same paths as in a clone. Free addresses of this machine replace those of the pages, and a real ZooKeeper replaces
`zk://zk1,zk2,zk3/...`. Verbs, flags and files that a command names must exist, also in a command within a
sentence, and in one that is not run here.

The commands of a transcript follow a "$ " and run in one shell. Each must print the lines that follow it on the
page; a date in them stands for any day.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "interop"), os.path.join(HERE, "..", "..", "tools"),
                os.path.join(HERE, "..", "..", "tools", "package")]
import interop
import program_help
import programs

PROGRAMS = re.compile(
    r"(\./)?(tools|tests|build)/\S+|(firn(?! \")|firn-server|firn-load|claim_sim|lease_sim|node_sim|segment_sim|curl|redis-cli|"
    r"cmake|ctest|cpack|apt|systemctl|buildah|docker|kubectl|helm|openssl|head|mkdir|thrift|pip|npm|node|javac|java|go|"
    r"export|editor)(?= |$)")
IN_A_SENTENCE = re.compile(r"`((?:\./)?(?:tools/[\w/]+|firn|firn-server) [^`]+)`")
LIST = "page_commands.txt"
PATIENCE_S = 120
TRY_LATER = 3  # an exit code of firn
DATE = re.compile(r"20\d{6}(?=-?\d{6})")
END = "--- end of a command ---"


def pages(root):
    for folder, below, names in os.walk(root):
        below[:] = sorted(b for b in below if b not in (".git", "build", "node_modules", "firn-state"))
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), root)


def text_of(root, page):
    with open(os.path.join(root, page), encoding="utf-8") as file:
        return file.read()


def block_lines(text):
    """The lines of all code blocks except pictures; lines that end in a backslash are joined."""
    fence, lines = "", []
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fence = "" if fence else line.strip()
        elif fence != "```mermaid" and (fence or line.startswith("    ")):
            lines.append(line.strip())
    return "\n".join(lines).replace("\\\n", "").splitlines()


def commands(text):
    """The commands without comments and prompts."""
    found = []
    for line in block_lines(text):
        line = re.sub(r"\s+#\s.*$", "", line).removeprefix("$ ")
        if PROGRAMS.match(line):
            found.append(line)
    return found


def steps_of(text):
    """[(command, the lines that it prints)] of a transcript."""
    steps = []
    for line in text.splitlines():
        if line.startswith("    $ "):
            steps.append((line[6:], []))
        elif line.startswith("    ") and steps:
            steps[-1][1].append(line[4:])
    return steps


def rows(path):
    """{page: {command: how}} of the list."""
    known, page = {}, None
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            if line.startswith("["):
                page = known.setdefault(line.strip("[]"), {})
            else:
                how, _, command = line.partition(" :: ")
                page[command.strip()] = how.split(None, 2)
    return known


class Words:
    """Checks a command's verbs, flags and files against the programs' help."""

    def __init__(self, root, programs):
        self.root = root
        tree = program_help.verb_tree(os.path.join(programs, "firn"))
        self.verbs = {verb.words: verb for verb in program_help.all_verbs(tree)}
        flags = program_help.server_flags(os.path.join(programs, "firn-server"))
        self.server_flags = {flag.name for flag in flags} | {"help", "helpfull", "version"}

    def fault(self, command):
        """The command's fault, or ""."""
        try:
            words = shlex.split(command, comments=True)
        except ValueError as trouble:
            return str(trouble)
        if not words:
            return ""
        name = os.path.basename(words[0])
        flags = [word.lstrip("-").partition("=")[0] for word in words[1:] if word.startswith("--")]
        if name == "firn":
            return self.fault_of_firn(words[1:], flags)
        if name == "firn-server":
            return self.unknown(flags, self.server_flags)
        path = os.path.join(self.root, words[0])
        if re.match(r"(\./)?(tools|tests)/", words[0]):
            if not os.path.exists(path):
                return f"there is no {words[0]}"
            if os.path.isfile(path) and os.access(path, os.X_OK):
                with open(path, encoding="utf-8") as script:
                    text = script.read() + "--help"
                return "; ".join(f"{words[0]} has no --{flag}" for flag in flags if flag not in text)
        if name in ("docker", "kubectl"):
            files = [words[i + 1] for i, word in enumerate(words[:-1]) if word in ("-f", "--file")]
            return "; ".join(f"there is no {file}" for file in files
                             if not os.path.exists(os.path.join(self.root, file)))
        return ""

    def fault_of_firn(self, words, flags):
        path = ()
        while words and (*path, words[0]) in self.verbs:
            path, words = (*path, words[0]), words[1:]
        verb = self.verbs[path]
        if verb.below and words and re.fullmatch(r"[a-z]+", words[0]):
            return f"firn {' '.join(path)} has no verb {words[0]}"
        known = {flag.name for flag in verb.flags} | {"help", "version"}
        if not path:
            return ""
        return self.unknown(flags, known)

    @staticmethod
    def unknown(flags, known):
        names = [flag.replace("-", "_") for flag in flags]
        return "; ".join(f"there is no --{name}" for name in names
                         if name not in known and name.removeprefix("no") not in known)


class Place:
    """The folder in which the commands of one page run, and the servers that they use."""

    def __init__(self, root, programs, folder):
        self.root, self.programs, self.folder = root, programs, folder
        self.started, self.zookeeper, self.server = [], None, None
        for name in ("tools", "tests", "client", "thrift"):
            os.symlink(os.path.join(root, name), os.path.join(folder, name))
        for build in "release", "dev":
            os.makedirs(os.path.join(folder, "build", build))
            os.symlink(programs, os.path.join(folder, "build", build, "bin"))
        self.environment = {**os.environ, "PATH": programs + ":" + os.environ["PATH"],
                            "ASAN_OPTIONS": "detect_leaks=0"}

    def here(self, command):
        """Returns the command with the addresses of this test."""
        for public in re.findall(r"zk://[\w,:]+/", command):
            command = command.replace(public, f"zk://127.0.0.1:{self.zookeeper_port()}/")
        if "firn-server" not in command and ":7609" in command:
            command = re.sub(r"[\d.]+:7609", f"127.0.0.1:{self.server_port()}", command)
        return command

    def start(self, *command, **options):
        log = open(os.path.join(self.folder, f"log-{len(self.started)}"), "w+")
        process = programs.start(command, cwd=self.folder, env=self.environment, stdout=log,
                                 stderr=log, **options)
        self.started.append((process, log))
        return process

    def server_port(self):
        if not self.server:
            self.server = interop.Server(os.path.join(self.programs, "firn-server"),
                                         os.path.join(self.folder, "asked"))
        return self.server.port

    def zookeeper_port(self):
        if not self.zookeeper:
            self.zookeeper = programs.free_port()
            config = os.path.join(self.folder, "zoo.cfg")
            with open(config, "w") as file:
                file.write(f"tickTime=500\ndataDir={self.folder}/zk\nclientPort={self.zookeeper}\n"
                           "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n")
            jars = ":".join(f"/usr/share/java/{jar}.jar" for jar in ("zookeeper", "slf4j-simple"))
            self.start("java", "-Xmx128m", "-Dzookeeper.jmx.log4j.disable=true", "-cp", jars,
                       "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
            wait(lambda: answers(self.zookeeper))
        return self.zookeeper

    def run(self, command):
        return subprocess.run(["bash", "-c", self.here(command)], cwd=self.folder,
                              env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=PATIENCE_S, check=False)

    def replay(self, text):
        """Runs a transcript on free ports. Returns the printed lines of each command that has ended."""
        for port in set(re.findall(r"127\.0\.0\.1:(\d+)", text)):
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{programs.free_port()}")
        script = "set -m\n" + "".join(f"{command}\necho '{END}'\n" for command, _ in steps_of(text))
        shell = programs.start(["bash", "-c", script + "kill %% 2>/dev/null; wait\n"], cwd=self.folder,
                               env=self.environment, text=True, stdout=subprocess.PIPE)
        try:
            printed, _ = shell.communicate(timeout=2 * PATIENCE_S)
        finally:
            programs.end(shell)
        return [part.splitlines() for part in printed.replace(END + "\n", END).split(END)[:-1]]

    def serve(self, command):
        """Starts a server with the page's command on free ports. Returns its log when it is ready, or
        has ended."""
        listen, admin = programs.free_port(), programs.free_port()
        command = re.sub(r"--listen=\S+", "", self.here(command))
        process = self.start(*shlex.split(command), f"--listen=127.0.0.1:{listen}",
                             f"--admin_listen=127.0.0.1:{admin}", f"--state_dir={self.folder}/{listen}")
        ready = lambda: b" 200 " in asked(admin, "/readyz")
        ended = lambda: process.poll() is not None
        came = wait(lambda: ready() or ended()) and not ended()
        log = self.started[-1][1]
        log.seek(0)
        return came, log.read()

    def end(self):
        if self.server:
            self.server.stop()
        for process, log in reversed(self.started):
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)
            log.close()


def wait(holds):
    deadline = time.time() + PATIENCE_S
    while not holds():
        if time.time() > deadline:
            return False
        time.sleep(0.1)
    return True


def asked(port, path):
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as peer:
            peer.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            return peer.recv(4096)
    except OSError:
        return b""


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class PageCommandsTest(unittest.TestCase):
    root = programs = None

    @classmethod
    def setUpClass(cls):
        cls.rows = rows(os.path.join(HERE, LIST))
        cls.words = Words(cls.root, cls.programs)
        cls.text = {page: text_of(cls.root, page) for page in pages(cls.root)}

    def test_each_command_is_listed_and_each_row_is_a_command(self):
        for page in sorted({*self.text, *self.rows}):
            shown = set(commands(self.text.get(page, "")))
            listed = set(self.rows.get(page, {}))
            self.assertEqual(shown - listed, set(), f"{page}: {LIST} does not say what runs these")
            self.assertEqual(listed - shown, set(), f"{page} has no such commands; {LIST} lists them")

    def test_tests_that_the_list_names_exist(self):
        lists = subprocess.run(["grep", "-rhE", "test\\(|sim\\(", self.root + "/tests", "--include=CMakeLists.txt"],
                               stdout=subprocess.PIPE, text=True, check=True).stdout
        for page, of_page in self.rows.items():
            for command, how in of_page.items():
                self.assertIn(how[0], ("run", "serve", "replay", "test", "words"), f"{page}: {command}")
                self.assertGreater(len(how), 0 if how[0] in ("serve", "replay") else 1,
                                   f"{page}: {command}: why?")
                if how[0] == "test":
                    self.assertIn(f"({how[1]}", lists, f"{page}: {command}")

    def test_words_of_blocks_and_of_sentences_exist(self):
        for page, text in self.text.items():
            if page == "CHANGELOG.md":  # describes earlier versions
                continue
            sentences = [" ".join(found.split()) for found in IN_A_SENTENCE.findall(text)]
            for command in commands(text) + sentences:
                with self.subTest(page=page, command=command):
                    self.assertEqual(self.words.fault(command), "")

    def test_each_block_can_be_pasted(self):
        for page, text in self.text.items():
            for command in commands(text):
                parsed = subprocess.run(["bash", "-n", "-c", command], stderr=subprocess.PIPE, check=False)
                self.assertEqual(parsed.returncode, 0, f"{page}: {command}: {parsed.stderr}")
                self.assertNotIn("   ", re.sub(r"'[^']*'", "''", command),
                                 f"{page}: an explanation of a command must follow a #: {command}")

    def test_commands_do_what_the_list_says(self):
        for page, of_page in self.rows.items():
            if not any(how[0] in ("run", "serve") for how in of_page.values()):
                continue
            folder = tempfile.mkdtemp(prefix="firn-pages-")
            place = Place(self.root, self.programs, folder)
            try:
                for command in commands(self.text[page]):
                    with self.subTest(page=page, command=command):
                        self.do(place, command, of_page[command])
            finally:
                place.end()
                shutil.rmtree(folder, ignore_errors=True)

    def test_transcripts_print_what_the_page_shows(self):
        for page, of_page in self.rows.items():
            if any(how[0] == "replay" for how in of_page.values()):
                with self.subTest(page=page):
                    days, shown, printed = self.replayed(self.text[page])
                    if days > 1 and shown != printed:  # the test ran past midnight
                        _, shown, printed = self.replayed(self.text[page])
                    self.assertEqual(shown, printed)

    def replayed(self, text):
        """Returns the number of dates that a transcript printed, its lines on the page, and the printed lines, with the
        page's date."""
        with tempfile.TemporaryDirectory(prefix="firn-pages-") as folder:
            printed = Place(self.root, self.programs, folder).replay(text)
        # redis-cli prints an empty line after an error, which no page can show at the end of a block.
        printed = [lines[:-1] if lines[-1:] == [""] else lines for lines in printed]
        shown = [lines for _, lines in steps_of(text)]
        on_page = set(DATE.findall(str(shown)))
        self.assertLessEqual(len(on_page), 1)
        days = set(DATE.findall(str(printed)))
        if on_page:
            printed = [[DATE.sub(*on_page, line) for line in lines] for lines in printed]
        return len(days), shown, printed

    @staticmethod
    def tried(place, command, code):
        """Repeats the command while it exits with "try again later": a busy machine's registry is slow."""
        runs = []

        def settled():
            runs.append(place.run(command))
            return runs[-1].returncode == code or runs[-1].returncode != TRY_LATER
        wait(settled)
        return runs[-1]

    def do(self, place, command, how):
        if how[0] == "serve":
            ready, log = place.serve(command)
            self.assertTrue(ready, log)
        elif how[0] == "run":
            done = self.tried(place, command, int(how[1]))
            self.assertEqual(done.returncode, int(how[1]), done.stdout)
            if len(how) > 2:
                self.assertRegex(done.stdout, how[2])


if __name__ == "__main__":
    PageCommandsTest.root = os.path.abspath(sys.argv.pop(1))
    PageCommandsTest.programs = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
