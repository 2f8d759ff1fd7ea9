#!/usr/bin/python3
"""The controller's disk is full: of its own logs, or of a stranger's files. It lives, facts flow, it starts again, and takes jobs as soon as there is room.

Run:  /usr/bin/python3 tests/integration/controller_disk_test.py [-v] [CASE]
"""

import os
import signal
import subprocess
import sys
import unittest

from cluster import Cluster, wait_until

MIB = 1 << 20
START = (
    256 * MIB
)  # what the agent wants free where a run's outputs lie, which is this disk: logs leave that as well


class SmallDisk:
    """A tmpfs for the controller's state directory."""

    def __init__(self, case, cluster, size):
        self.path = cluster.path("disk")
        os.mkdir(self.path)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", self.path],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            reason = "a small disk needs a tmpfs: " + (done.stderr.strip() or "mount failed")
            print("skipped:", reason, file=sys.stderr)
            case.skipTest(reason)
        self.filler = os.path.join(self.path, "filler")

    def free(self):
        info = os.statvfs(self.path)
        return info.f_bavail * info.f_frsize

    def fill(self, leave=0):
        """A stranger's file, all but `leave` bytes."""
        with open(self.filler, "ab") as file:
            if self.free() > leave:
                os.posix_fallocate(file.fileno(), file.tell(), self.free() - leave)

    def empty(self):
        os.unlink(self.filler)

    def unmount(self):
        subprocess.run(["umount", "-l", self.path], check=True)


class ControllersDisk(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.disk = SmallDisk(self, self.cluster, "600m")
        self.addCleanup(self.end)
        self.state = os.path.join(self.disk.path, "controller")
        self.daemon = self.cluster.controller(state=self.state)
        self.cluster.agent("n0")

    def end(self):
        self.cluster.end_daemons()
        self.disk.unmount()

    def ballast(self):
        path = os.path.join(self.state, "journal", "ballast")
        return os.path.exists(path) and os.stat(path).st_blocks * 512 == 64 * MIB

    def logs_are_in(self, job):
        """When every log byte is with the controller the node forgets the run."""
        runs = self.cluster.path("agent-n0", "runs")
        wait_until(
            lambda: not any(job in name for name in os.listdir(runs)),
            what="the logs to be collected",
        )

    def job_that_says(self, name, mib):
        # Lines as a program prints them, and a last one that must not be lost.
        script = f"yes 'step 1: what a program prints that prints much, line after line' | head -c {mib * MIB}; echo the last line of {name}"
        return self.cluster.submit(
            f'name: {name}\nengine: command\nlaunch: {{per: once, run: [sh, -c, "{script}"]}}\nresources: {{devices: 1, type: cpu}}\n'
        )

    # Logs filled the disk, whatever the quota; what the ballast gave up was full of them within a second, the controller died, and no start had room.
    def test_logs_do_not_fill_it(self):
        job = self.job_that_says("much", 400)
        self.cluster.muster("wait", job, "--timeout", "120s", code=0, within=150)
        self.logs_are_in(job)
        self.assertTrue(self.daemon.alive(), self.daemon.logged())
        self.assertGreaterEqual(self.disk.free(), START)
        self.assertTrue(self.ballast(), "it was never needed")
        self.assertIn(
            "the last line of much", self.cluster.muster("logs", job, "--tail", "2", code=0).out
        )
        self.cluster.trivial()
        done = self.job_that_says("done", 40)  # its logs are in when it is over for good
        self.cluster.muster("wait", done, "--timeout", "60s", code=0)
        self.logs_are_in(done)

        # Nothing is free when it starts again: finished jobs' logs give the room, though the journal, which knows them, is not read yet.
        self.daemon.stop(signal.SIGKILL)
        self.disk.fill()
        os.unlink(os.path.join(self.state, "journal", "ballast"))
        self.disk.fill()
        self.assertEqual(self.disk.free(), 0)
        self.daemon = self.cluster.controller(state=self.state)
        self.cluster.muster("show", job, code=0)
        self.assertGreater(self.disk.free(), 8 * MIB)
        self.disk.empty()
        self.cluster.trivial()
        self.assertTrue(self.ballast())

    # Submissions stayed refused until something was appended, though there was room; and where nothing runs, nothing is.
    def test_a_shortage_is_over_when_there_is_room(self):
        with self.cluster.gate() as gate:
            live = self.cluster.submit(
                f"name: live\nengine: command\nlaunch: {{run: [sh, -c, 'read x < {gate.path}']}}\nresources: {{devices: 1, type: cpu}}\n"
            )
            self.cluster.muster("wait", live, "--for", "running", "--timeout", "60s", code=0)
            self.disk.fill()
            gate.open()
            self.cluster.muster(
                "wait", live, "--timeout", "60s", code=0
            )  # facts flow: for them the ballast is there
        self.logs_are_in(live)
        spec = self.cluster.spec(
            'name: refused\nengine: command\nlaunch: {run: "true"}\nresources: {devices: 1, type: cpu}\n'
        )
        refused = self.cluster.muster("run", "-d", spec, code=70)
        self.assertIn(
            "the controller's disk is nearly full, new jobs are refused until there is room",
            refused.err,
        )
        self.daemon.wait_for("new jobs are refused until there is room")
        self.disk.empty()
        self.cluster.muster("run", "-d", spec, code=0)
        self.daemon.wait_for("the controller's disk has room again")
        wait_until(self.ballast, what="the ballast")


if __name__ == "__main__":
    unittest.main()
