#!/usr/bin/python3
"""`muster local`: the private cluster that a person starts with.

Run:  /usr/bin/python3 tests/integration/local_test.py [-v] [CASE]
"""

import ctypes
import json
import os
import re
import signal
import unittest

import private
from private import Private


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
PTRACE_SEIZE, PTRACE_DETACH, PTRACE_O_TRACEEXIT, WALL = 0x4206, 17, 0x40, 0x40000000


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


def waits_for_a_process(pid):
    folder = f"/proc/{pid}/fd"
    try:
        return any("pidfd" in os.readlink(f"{folder}/{name}") for name in os.listdir(folder))
    except FileNotFoundError:  # a descriptor that was closed meanwhile
        return False


def job(name, run, resources="{nodes: 2, devices: 1, type: cpu}"):
    return f"name: {name}\nengine: command\nlaunch: {{run: [bash, -c, {json.dumps(run)}]}}\nresources: {resources}\n"


class Local(unittest.TestCase):
    def setUp(self):
        self.cluster = Private()  # only its directory and environment
        self.state = self.cluster.path("cluster")
        self.cluster.env["MUSTER_LOCAL_DIR"] = self.state
        self.cluster.env.pop("MUSTER_CONTROLLER")

    def tearDown(self):
        self.cluster.muster("local", "down")
        self.cluster.close()

    def pids(self):
        return re.findall(r"running +(\d+)", self.cluster.muster("local", "status", code=0).out)

    def test_up_and_down(self):
        self.cluster.muster("local", "status", code=10)
        up = self.cluster.muster("local", "up", "--nodes", "2", "--devices", "2", code=0)
        self.assertIn("controller and 2 nodes with 2 devices each are up", up.out)
        self.assertNotIn("MUSTER_CONTROLLER", up.out, "clients look there anyway")
        pids = self.pids()
        self.assertEqual(len(pids), 3)
        self.cluster.muster("local", "up", "--nodes", "2", "--devices", "2", code=0)
        self.assertEqual(self.pids(), pids, "what runs is left alone")
        with open(self.state + "/processes", encoding="utf-8") as file:
            of_this_boot = file.read()
        with open(self.state + "/processes", "w", encoding="utf-8") as file:
            file.write(re.sub('"bootId": "[^"]*"', '"bootId": "another"', of_this_boot))
        self.cluster.muster("local", "status", code=13)  # numbers of another boot are strangers' now
        with open(self.state + "/processes", "w", encoding="utf-8") as file:
            file.write(of_this_boot)
        for path in ("", "/controller", "/agents/n0"):
            self.assertEqual(os.stat(self.state + path).st_mode & 0o777, 0o700, path)
        self.assertEqual(os.stat(self.state + "/controller.sock").st_mode & 0o777, 0o600)

        # One that was killed is started again, the others stay.
        os.kill(int(pids[1]), signal.SIGKILL)
        self.cluster.muster("local", "status", code=13)
        self.cluster.muster("local", "up", code=0)
        self.assertEqual(self.pids()[::2], pids[::2])
        self.cluster.trivial()

        # A job that is running when the cluster goes down goes with it.
        self.cluster.submit(job("endless", "echo up; exec tail -f /dev/null"))
        self.cluster.muster("wait", "endless", "--for", "running", "--timeout", "60s", code=0)
        down = self.cluster.muster("local", "down", code=0)
        self.assertIn("is down", down.out)
        self.assertEqual(private.processes_of(self.cluster.dir), [], "no process is left")
        self.assertIn("controller.log", os.listdir(self.state + "/log"))
        left = [os.path.join(folder, name) for folder, _, names in os.walk(self.state) for name in names]
        for path in left:
            self.assertNotIn(os.path.basename(path), ("endpoint", "controller.sock", "processes"))
            if os.path.basename(path) != "bell":  # a run directory's, which stays as it is
                self.assertTrue(os.path.isfile(path), f"{path}: no socket or pipe is left")
        self.cluster.muster("local", "down", code=10)
        self.cluster.muster("ps", code=13)

        # And up again: what was is remembered.
        self.cluster.muster("local", "up", code=0)
        self.assertEqual(self.cluster.muster("wait", "endless", code=3).out, "")
        self.cluster.trivial()
        self.cluster.muster("local", "down", code=0)

    def test_up_while_a_killed_agent_is_still_ending(self):
        """The new agent was refused the state directory: of the killed one the first thread was gone, which looks like the whole process, and another held the lock."""
        self.cluster.muster("local", "up", "--nodes", "1", "--devices", "1", code=0)
        pids = self.pids()
        agent = int(pids[1])
        thread = max(int(name) for name in os.listdir(f"/proc/{agent}/task"))
        self.assertNotEqual(thread, agent)
        if LIBC.ptrace(PTRACE_SEIZE, thread, None, PTRACE_O_TRACEEXIT) != 0:
            self.skipTest("this user may trace no process")
        os.kill(agent, signal.SIGKILL)
        self.assertEqual(os.waitpid(thread, WALL)[0], thread)  # it stops at its exit
        private.wait_until(lambda: state_of(agent) == "Z", what="the first thread's end")
        with self.cluster.start("local", "up", "--nodes", "1", "--devices", "1") as up:
            up_fd = os.pidfd_open(up.pid)
            try:
                private.wait_until(lambda: waits_for_a_process(up.pid), up_fd, what="`local up` to wait for the agent's end")
                self.assertEqual(LIBC.ptrace(PTRACE_DETACH, thread, None, None), 0)
                self.assertEqual(up.communicate(timeout=private.PATIENCE), ("private cluster in " + self.state + ": controller and 1 node with 1 device each are up\n", ""))
            finally:
                os.close(up_fd)
            self.assertEqual(up.returncode, 0)
        now = self.pids()
        self.assertEqual(now[0], pids[0])
        self.assertNotEqual(now[1], pids[1])
        self.cluster.trivial()

    def test_up_says_what_there_is(self):
        """`up --devices 8` said 8 of a cluster that went on with 2."""
        first = self.cluster.muster("local", "up", "--nodes", "2", "--devices", "2", code=0)
        self.assertEqual(first.err, "")
        for args, other in ((["--devices", "8"], "'n0' has 2 devices, not 8, 'n1' has 2 devices, not 8;"), (["--nodes", "1"], "it has 2 nodes, not 1;"), ([], None)):
            again = self.cluster.muster("local", "up", *args, code=0)
            self.assertIn("controller and 2 nodes with 2 devices each are up", again.out, args)
            if other is None:
                self.assertEqual(again.err, "")
            else:
                self.assertIn(other, again.err)
                self.assertIn("'muster local down' first", again.err)
        third = self.cluster.muster("local", "up", "--nodes", "3", "--devices", "1", code=0)
        self.assertIn("controller and 3 nodes are up: 'n0' with 2 devices, 'n1' with 2 devices, 'n2' with 1 device", third.out)
        self.assertIn("'n0' has 2 devices, not 1, 'n1' has 2 devices, not 1;", third.err)

    def test_down_cancels_every_job(self):
        """Of more than a page of jobs the others came to life again with the next `local up`."""
        self.cluster.muster("local", "up", "--nodes", "1", "--devices", "1", code=0)
        for number in range(103):  # a page is 100
            self.cluster.submit(job(f"waits-{number}", "exec tail -f /dev/null", "{devices: 1, type: cpu}"))
        self.cluster.muster("local", "down", code=0)
        self.cluster.muster("local", "up", "--nodes", "1", "--devices", "1", code=0)
        self.assertEqual(self.cluster.muster("ps", "-o", "name", code=0).out, "")
        self.assertEqual(len(self.cluster.muster("ps", "-a", "-o", "name", code=0).out.split()), 103)

    def test_elsewhere(self):
        other = self.cluster.path("else where")
        up = self.cluster.muster("local", "up", "--nodes", "1", "--state-dir", other, code=0)
        try:
            self.assertIn("export MUSTER_CONTROLLER=", up.out)
            self.cluster.muster("ps", code=13)
            self.assertEqual(self.cluster.muster("node", "ls", "-o", "name", env={"MUSTER_CONTROLLER": other + "/endpoint"}, code=0).out, "n0\n")
        finally:
            self.cluster.muster("local", "down", "--state-dir", other, code=0)

    def test_long_path(self):
        other = self.cluster.path("x" * 100)
        self.cluster.muster("local", "up", "--nodes", "1", "--state-dir", other, code=0)
        try:
            with open(other + "/endpoint", encoding="utf-8") as file:
                self.assertTrue(json.load(file)["address"].startswith("127.0.0.1:"), "too long for a socket: loopback and a token")
            self.assertEqual(os.stat(other + "/controller/token").st_mode & 0o777, 0o600)
            self.cluster.muster("ps", env={"MUSTER_CONTROLLER": other + "/endpoint"}, code=0)
        finally:
            self.cluster.muster("local", "down", "--state-dir", other, code=0)


if __name__ == "__main__":
    unittest.main()
