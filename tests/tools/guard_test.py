"""tools/guard ends a test with all of its processes, and tools/programs.py ends the programs that a test starts.

    guard_test.py ROOT
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.abspath(sys.argv[1])
GUARD = os.path.join(ROOT, "tools/guard")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import programs

PATIENCE_S = 60
# The worst process that a test may leave: in another session, ignoring SIGTERM, with its caller's output.
GRANDCHILD = "(trap '' TERM; setsid sh -c 'echo $$ >grandchild; while :; do sleep 1; done') & "
# A case whose setup raises after it has started a program.
RAISING = f"""
import sys, unittest
sys.path.insert(0, {os.path.join(ROOT, "tools")!r})
import programs
class Raising(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(programs.start(["sh", "-c", "sleep 1000 & wait"]).pid, flush=True)
        raise RuntimeError("no such port")
    def test(self):
        pass
unittest.main()
"""


def eventually(holds):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def in_group(group):
    """The processes of a process group, without zombies."""
    listed = subprocess.run(["ps", "-A", "-o", "pgid=,stat=,args="], stdout=subprocess.PIPE, text=True, check=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    return [row for row in rows if row[0] == str(group) and not row[1].startswith("Z")]


class GuardTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def guarded(self, script, limit=PATIENCE_S):
        return subprocess.run([GUARD, "--name", "subject", "--limit", str(limit), "--", "sh", "-c", script],
                              cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=2 * PATIENCE_S, check=False)

    def grandchild(self):
        path = os.path.join(self.folder, "grandchild")
        self.assertTrue(eventually(lambda: os.path.exists(path) and os.path.getsize(path) > 0))
        with open(path) as file:
            return int(file.read())

    def expect_no_grandchild(self):
        self.assertEqual([], in_group(self.grandchild()))

    def test_passes_output_and_exit_code_on(self):
        done = self.guarded("echo out; echo err >&2; exit 77")
        self.assertEqual((77, "out\nerr\n"), (done.returncode, done.stdout))
        self.assertEqual(128 + signal.SIGSEGV, self.guarded("kill -SEGV $$").returncode)
        self.assertEqual(127, subprocess.run([GUARD, "--name", "x", "--limit", "9", "--", "/nowhere"], check=False,
                                             stdout=subprocess.DEVNULL).returncode)

    def test_ends_a_hanging_test_and_its_processes_at_the_limit(self):
        done = self.guarded(GRANDCHILD + "while [ ! -s grandchild ]; do sleep 0.1; done; wait", limit=6)
        self.assertEqual(124, done.returncode)
        self.assertIn("subject exceeded its time limit of 6 s; still running:", done.stdout)
        self.assertIn("while :; do sleep 1; done", done.stdout)
        self.expect_no_grandchild()

    def test_fails_a_test_that_leaves_a_process_behind(self):
        done = self.guarded(GRANDCHILD + "while [ ! -s grandchild ]; do sleep 0.1; done; exit 0")
        self.assertEqual(1, done.returncode)
        self.assertIn("subject ended with 0 and left processes behind:", done.stdout)
        self.expect_no_grandchild()

    def test_ends_all_at_a_signal(self):
        guard = programs.start([GUARD, "--name", "subject", "--limit", "1000", "--", "sh", "-c",
                                GRANDCHILD + "wait"], cwd=self.folder)
        self.grandchild()
        guard.send_signal(signal.SIGTERM)
        self.assertEqual(128 + signal.SIGTERM, guard.wait(PATIENCE_S))
        self.expect_no_grandchild()

    def test_ends_all_with_its_parent(self):
        parent = programs.start(["sh", "-c", '"$@"; :', "sh", GUARD, "--with-parent", "--name", "subject", "--limit",
                                 "1000", "--", "sh", "-c", GRANDCHILD + "wait"], cwd=self.folder)
        grandchild = self.grandchild()
        parent.kill()
        self.assertTrue(eventually(lambda: not in_group(grandchild)))

    def test_names_the_tests_that_a_guard_runs(self):
        done = self.guarded(f"{GUARD} --name inner --limit 1000 -- sleep 1000", limit=6)
        self.assertRegex(done.stdout, r"guard:   \d+ test inner\n")

    def test_takes_orphans_at_once(self):
        """A script that waits until a daemon is gone must not wait for a zombie."""
        done = self.guarded("(sh -c 'echo $$ >orphan; exec sleep 1000' &); while [ ! -s orphan ]; do sleep 0.1; done;"
                            "kill -9 $(cat orphan); while kill -0 $(cat orphan); do sleep 0.1; done")
        self.assertEqual(0, done.returncode, done.stdout)


class ProgramsTest(unittest.TestCase):
    def test_a_setup_that_raises_ends_its_processes(self):
        done = subprocess.run([sys.executable, "-c", RAISING], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=PATIENCE_S, check=False)
        self.assertIn("no such port", done.stderr)
        self.assertEqual([], in_group(int(done.stdout)))

    def test_the_processes_of_a_killed_test_end(self):
        test = programs.start([sys.executable, "-c", RAISING.replace("raise ", "input() or ").replace(
            "sleep 1000 & wait", "exec sleep 1000")],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started = int(test.stdout.readline())
        test.kill()
        self.assertTrue(eventually(lambda: not os.path.exists(f"/proc/{started}")))

    def test_a_program_does_not_start_after_its_test_was_killed(self):
        """The test is killed before setpriv has asked the kernel to end the program with it."""
        with tempfile.TemporaryDirectory() as folder:
            slow = os.path.join(folder, "setpriv")
            with open(slow, "w") as file:
                file.write(f"#!/bin/sh\nwhile [ ! -e {folder}/killed ]; do sleep 0.1; done\n"
                           f"exec {shutil.which('setpriv')} \"$@\"\n")
            os.chmod(slow, 0o755)
            first = f"import os; os.environ['PATH'] = '{folder}:' + os.environ['PATH']\n"
            test = programs.start([sys.executable, "-c", first + RAISING.replace("raise ", "input() or ")],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            started = int(test.stdout.readline())
            test.kill()
            test.wait()
            open(os.path.join(folder, "killed"), "w").close()
            self.assertTrue(eventually(lambda: not in_group(started)))

    def test_holds_a_port_against_other_programs(self):
        port = programs.free_port()
        shell = subprocess.run(["flock", "--nonblock", f"/tmp/firn-ports-{os.getuid()}/{port}", "true"], check=False)
        self.assertEqual(1, shell.returncode)

    def test_sees_a_port_that_a_script_holds(self):
        script = f"source {ROOT}/tools/lib.sh; free_port; echo $port; read -r _"
        holder = programs.start(["bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        port = int(holder.stdout.readline())
        with open(f"/tmp/firn-ports-{os.getuid()}/{port}", "w") as file:
            with self.assertRaises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
