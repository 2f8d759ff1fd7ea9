#!/usr/bin/python3
"""A node's state directory on a disk of its own that turns read-only under it (ext4, errors=remount-ro), or fills up.

What was seen: a rank of a job ended on a node whose state disk had turned read-only. Its worker could not record that, tried for ever and turned at 97 % of a
processor; the job stood still, `why` said "running on every node", and healthy silent ranks died when their lease ended, on a full disk as well.

Everything runs in namespaces of its own (namespaces.py). Needs root, loop devices and mkfs.ext4.

Run:  /usr/bin/python3 tests/integration/disk_test.py [-v] [CASE]
"""

import errno
import glob
import json
import os
import signal
import unittest

import namespaces
from disks import Disk
from namespaces import ip
from cluster import Cluster, processes_of, wait_ended, wait_until

SPEC = """
name: {name}
engine: command
launch:
  run: [{words}]
resources: {{devices: {ranks}, type: cpu}}
recovery: {{max_restarts: 0, stop_grace: 2s, orphan_grace: {grace}}}
"""
# Rank 0 waits at the gate, the others for ever; none of them prints a word: on such a disk that alone would be their end.
WAITS = (
    "sh",
    "-c",
    'if [ "$MUSTER_RANK" = 0 ]; then read line < {gate}; exit 0; fi; exec sleep 1000',
)


def setUpModule():
    ip("link", "set", "lo", "up")


class OwnDisk(unittest.TestCase):
    ARGS = ("--cgroup", "none", "--min-free", "1")

    def setUp(self):
        self.cluster = Cluster()
        self.disk = Disk(self.cluster.path("disk"))
        self.addCleanup(self.disk.close)
        self.addCleanup(self.cluster.close)  # first
        self.cluster.controller()
        self.agent = self.cluster.agent("n0", state=self.disk.path, args=self.ARGS)
        self.gate = self.cluster.gate()
        self.addCleanup(self.gate.close)

    def start(self, name, ranks, grace="30m"):
        words = ", ".join(json.dumps(word.format(gate=self.gate.path)) for word in WAITS)
        job = self.cluster.submit(SPEC.format(name=name, ranks=ranks, grace=grace, words=words))
        self.cluster.wait_event(lambda event: event["type"] == "node-started", job)
        return job

    def node(self):
        return json.loads(self.cluster.muster("node", "show", "n0", "-o", "json", code=0).out)

    def why(self, job):
        return self.cluster.muster("why", job, code=0).out

    def worker(self):
        """A pidfd of it, and those of its ranks."""
        pid = next(
            pid
            for pid, command in processes_of(self.disk.path)
            if command.split()[0].endswith("muster-worker")
        )
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            opened = [os.pidfd_open(int(one)) for one in (pid, *file.read().split())]
        for one in opened:
            self.addCleanup(os.close, one)
        return opened[0], opened[1:]


class ReadOnly(OwnDisk):
    def test_a_rank_that_ends_is_known_and_not_waited_for(self):
        job = self.start("stuck", 2)
        worker, ranks = self.worker()
        self.assertEqual(len(ranks), 2)
        self.disk.fail()
        wait_until(lambda: self.node().get("diskTrouble"), worker, what="the node to say so")
        self.assertIn(os.strerror(errno.EROFS), self.node()["diskTrouble"])
        wait_until(
            lambda: "lease ends in" in self.why(job),
            worker,
            what=f"the end of the lease\n{self.why(job)}",
        )
        self.assertRegex(
            self.why(job),
            r"node 'n0' cannot write to its state directory \(.*Read-only file system\): .*; its ranks go on until their lease ends in ",
        )
        listed = self.cluster.muster("node", "ls", code=0).out
        self.assertRegex(listed, r"n0 +disk ")
        self.assertRegex(
            listed, r"n0: no writes to its state directory .*; ranks are stopped in \d+m"
        )
        self.assertFalse(
            wait_ended(worker, 0),
            "nobody has ended: nothing is to be recorded, and nothing is killed",
        )
        for one in ranks:
            self.assertFalse(wait_ended(one, 0))
        self.gate.open()  # rank 0 ends
        done = self.cluster.muster("wait", job, "--timeout", "60s")
        self.assertNotIn(done.code, (0, 4), f"{done}\n{self.why(job)}")
        self.assertTrue(wait_ended(worker))
        for one in ranks:
            self.assertTrue(wait_ended(one, 0), "swept, before it was said")
        self.assertIn(
            "could not record how its ranks ended: the disk of its state directory takes no writes",
            self.why(job),
        )

    def test_a_stop_is_obeyed(self):
        job = self.start("stopped", 2)
        worker, ranks = self.worker()
        self.disk.fail()
        self.cluster.muster("cancel", job, code=0)
        done = self.cluster.muster("wait", job, "--timeout", "60s")
        self.assertNotEqual(done.code, 4, f"{done}\n{self.why(job)}")
        self.assertTrue(wait_ended(worker))
        for one in ranks:
            self.assertTrue(wait_ended(one, 0))
        self.assertIn("cancelled", self.why(job))

    def test_an_agent_that_is_started_again_goes_on(self):
        """It could not open its lock for writing, and ended: the node was silent, and nobody was told of its disk."""
        job = self.start("adopted", 2)
        worker, ranks = self.worker()
        os.mkdir(self.disk.path + "/fresh", 0o700)
        self.disk.fail()
        self.agent.stop(signal.SIGKILL)
        agent = self.cluster.agent("n0", state=self.disk.path, args=self.ARGS, wait=False)
        wait_until(lambda: self.node().get("diskTrouble"), agent.pid_fd, what="the node to say so")
        self.assertIn(os.strerror(errno.EROFS), self.node()["diskTrouble"])
        wait_until(
            lambda: "lease ends in" in self.why(job),
            agent.pid_fd,
            what=f"the end of the lease\n{self.why(job)}",
        )
        self.assertRegex(self.cluster.muster("node", "ls", code=0).out, r"n0 +disk ")
        for one in (worker, *ranks):
            self.assertFalse(wait_ended(one, 0), "adopted")
        code, output = self.cluster.agent(
            "n0", state=self.disk.path, args=self.ARGS, wait=False
        ).ended()
        self.assertEqual(code, 12, output)
        self.assertIn("a second agent on this state directory", output)
        code, output = self.cluster.agent(
            "n1", state=self.disk.path + "/fresh", args=self.ARGS, wait=False
        ).ended()
        self.assertEqual(code, 70, output)
        self.assertIn(f"fresh/lock': {os.strerror(errno.EROFS)}", output)
        self.gate.open()  # rank 0 ends
        done = self.cluster.muster("wait", job, "--timeout", "60s")
        self.assertNotIn(done.code, (0, 4), f"{done}\n{self.why(job)}")
        for one in (worker, *ranks):
            self.assertTrue(wait_ended(one))
        self.assertIn(
            "could not record how its ranks ended: the disk of its state directory takes no writes",
            self.why(job),
        )
        self.assertEqual(agent.logged().count("writing to the state directory"), 1, agent.logged())


class Gone(OwnDisk):
    def test_a_rank_that_ends_is_known_though_nothing_can_be_read_either(self):
        """Errors that last: the worker gives up after a while, and the agent did not believe in its end, for it could not read what it had said."""
        job = self.start("gone", 2)
        worker, ranks = self.worker()
        self.disk.shut_down()
        wait_until(lambda: self.node().get("diskTrouble"), worker, what="the node to say so")
        self.assertIn(os.strerror(errno.EIO), self.node()["diskTrouble"])
        for one in ranks:
            self.assertFalse(wait_ended(one, 0))
        self.gate.open()
        done = self.cluster.muster("wait", job, "--timeout", "40s")
        self.assertNotIn(done.code, (0, 4), f"{done}\n{self.why(job)}")
        for one in (worker, *ranks):
            self.assertTrue(wait_ended(one))
        self.assertIn("could not record how its ranks ended", self.why(job))


class Full(OwnDisk):
    def test_nothing_healthy_is_killed(self):
        job = self.start("healthy", 1, grace="6s")
        worker, ranks = self.worker()
        lease = glob.glob(self.disk.path + "/runs/*/lease")[0]
        with self.disk.filled():
            began = self.lease_end(lease)
            wait_until(lambda: self.node().get("diskTrouble"), worker, what="the node to say so")
            self.assertIn(os.strerror(errno.ENOSPC), self.node()["diskTrouble"])
            self.assertRegex(
                self.why(job),
                r"cannot write to its state directory \(.*No space left on device\): .*; its ranks go on\n",
            )
            # Twice the grace later than it was: it is renewed, and its old end has passed.
            wait_until(
                lambda: self.lease_end(lease) - began > 12, worker, what="the lease to be renewed"
            )
            self.assertFalse(wait_ended(ranks[0], 0))
            self.assertNotIn("leaseEnds", self.node())
        self.gate.open()
        self.cluster.muster("wait", job, "--timeout", "60s", code=0)
        wait_until(
            lambda: not self.node().get("diskTrouble"),
            self.agent.pid_fd,
            what="the disk to be well again",
        )

    @staticmethod
    def lease_end(path):
        """Seconds of CLOCK_BOOTTIME: a frame of eight bytes, then field 1 as a varint (docs/run-directory.md)."""
        with open(path, "rb") as file:
            record = file.read()[8:]
        assert record[0] == 8, record
        value = 0
        for at, byte in enumerate(record[1:]):
            value |= (byte & 0x7F) << (7 * at)
            if byte < 0x80:
                return value / 1e9
        raise AssertionError(record)


if __name__ == "__main__":
    namespaces.main(
        ("mkfs.ext4",),
        "mkdir /run/d && truncate -s 8M /run/i && mkfs.ext4 -q /run/i && mount -o loop /run/i /run/d",
    )
