#!/usr/bin/python3
"""State directories put back from an older copy, or copied.

The controller's, whole: found out by agents, paused, read, and gone on from with --accept-loss. Nothing is missing to be seen: database and head file agree. Since the copy one job went on, one was cancelled, and one that the copy has as
queued was started. None of their ranks may notice, and no attempt may run beside another of its job.

An agent's, from before a job: what the job had started there is swept, not started a second time beside it, and the job goes on with a new attempt.

Run:  /usr/bin/python3 tests/integration/restore_test.py [-v]
"""

import glob
import os
import shutil
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import DEADLINE, SLOW, Cluster, Trace, wait_until  # noqa: E402
from state_copy import copy_of, put_back  # noqa: E402

STEPS, AGAIN_STEPS, STEP_MS = 1200 * SLOW, 250 * SLOW, 20
UNKNOWN = 1_000_000  # attempts' numbers go on behind so many


class Restore(unittest.TestCase):
    def pauses(self, cluster, job):
        """The controller, once an agent has told it or at once, takes nothing in, says why, and can be read."""
        end, message = time.monotonic() + DEADLINE, None
        while message is None and time.monotonic() < end:
            message = next(
                (
                    line
                    for line in cluster.output("version").splitlines()
                    if "the controller pauses" in line
                ),
                None,
            )
        self.assertIsNotNone(message, cluster.log_end("controller"))
        self.assertRegex(message, "is older than what node '[^']+' has seen.*--accept-loss")
        self.assertEqual(cluster.output("why", job).splitlines()[1].strip(), message)
        self.assertRegex(cluster.output("ps"), r"(?m)^on +\w+ +running")
        for words in (("ps",), ("node", "ls")):
            self.assertEqual(
                cluster.muster(*words).err.strip(), message, "a list that looks as always"
            )
        refused = cluster.muster("cancel", job)
        self.assertEqual(refused.code, 70, refused)
        self.assertIn(message, refused.err)
        return message

    def test_older_copy(self):
        with Cluster(nodes=2, devices=2) as cluster:
            state, copy = os.path.join(cluster.dir, "controller"), os.path.join(cluster.dir, "copy")
            trace, again = Trace(cluster, "on"), Trace(cluster, "again")
            job = cluster.submit(
                cluster.stub(
                    "on", "--steps", STEPS, "--step-ms", STEP_MS, "--trace", trace.path, devices=1
                )
            )
            other = cluster.submit(
                cluster.stub("other", "--steps", 10**6, "--step-ms", STEP_MS, devices=1)
            )
            queued = cluster.submit(
                cluster.stub(
                    "queued",
                    "--steps",
                    AGAIN_STEPS,
                    "--step-ms",
                    STEP_MS,
                    "--trace",
                    again.path,
                    devices=1,
                )
            )
            trace.wait(job, 3)
            self.assertEqual(cluster.show(queued)["phase"], "queued")

            cluster.kill("controller")
            copy_of(state, copy)
            cluster.start("controller")
            cluster.output("cancel", other)
            cluster.muster("wait", other)
            again.wait(queued, 3)
            before = self.ranks(cluster, job)
            self.assertEqual(len(before), 2)

            cluster.kill("controller")
            put_back(copy, state)
            cluster.start("controller", wait=False)
            message = self.pauses(cluster, job)
            cluster.restart(
                "controller"
            )  # as a supervisor would: it waits for no agent to tell it again
            self.assertEqual(self.pauses(cluster, job), message)
            cluster.kill("controller")

            cluster.controller("--accept-loss")
            cluster.output("cancel", other)  # again: that was lost
            went = trace.best()
            self.assertLess(went, STEPS, "the restarts did not fit into the run")
            trace.wait(job, went + 3)
            self.assertEqual(self.ranks(cluster, job), before)
            cluster.restart("controller")  # without the flag: accepted once is accepted

            cluster.wait(queued)
            cluster.wait(
                cluster.submit(cluster.stub("new", "--steps", 3, "--step-ms", 1, devices=1))
            )
            cluster.wait(job)
            self.assertEqual(cluster.show(job)["attempt"], 1)
            for rank, (_, pid, _) in before.items():
                self.assertEqual(
                    [(entry.step, entry.pid) for entry in trace.read(rank)],
                    [(step, pid) for step in range(1, STEPS + 1)],
                )
            self.assertGreater(cluster.show(queued)["attempt"], UNKNOWN)
            self.ran_twice(
                again, "the run that the copy does not know, and the one that followed it"
            )

            # The same copy once more. It has nothing of the accepted loss, and agents know its generation.
            cluster.kill("controller")
            put_back(copy, state)
            cluster.start("controller", wait=False)
            self.assertIn(
                "that was generation 1 of its lineage", self.pauses(cluster, job), "not paused by it"
            )
            cluster.kill("controller")
            cluster.controller("--accept-loss")
            self.assertIn(", generation 2, epoch ", cluster.output("version"))
            for name in (other, queued):
                cluster.output("cancel", name)
            cancelled = cluster.muster("cancel", job)
            if cancelled.code != 0:  # its nodes may have told by now how it ended
                self.assertIn("it has succeeded already", cancelled.err)
            cluster.wait(
                cluster.submit(cluster.stub("newest", "--steps", 3, "--step-ms", 1, devices=1))
            )
            loss = cluster.wait_event(lambda event: event["type"] == "journal-end-lost")
            self.assertIn("generation 2 of the journal begins", loss["text"])

    def test_copy_from_while_it_started(self):
        """The copy has the job as launching. All its nodes have it, so it goes on: the same processes, and no second attempt."""
        with Cluster(nodes=2, devices=1) as cluster:
            state, copy = os.path.join(cluster.dir, "controller"), os.path.join(cluster.dir, "copy")
            trace, gate = Trace(cluster, "trace"), cluster.gate()
            spec = cluster.stub(
                "job", "--steps", AGAIN_STEPS, "--step-ms", STEP_MS, "--trace", trace.path
            )
            spec["runtime"] = {"setup": [f"read -rn 1 < {gate.path} || true"]}
            job = cluster.submit(spec)
            wait_until(
                lambda: "being set up" in cluster.output("why", job), what="the setup to run"
            )
            cluster.kill("controller")
            copy_of(state, copy)
            cluster.start("controller")
            gate.open(2)
            trace.wait(job, 3)
            before = self.ranks(cluster, job)
            cluster.kill("controller")
            put_back(copy, state)
            cluster.controller("--accept-loss")
            self.assertEqual(cluster.show(job)["attempt"], 1)
            cluster.wait(job)
            self.assertEqual(cluster.show(job)["attempt"], 1, cluster.story(job))
            self.assertEqual(cluster.show(job)["restarts"], 0)
            for rank, (_, pid, _) in before.items():
                self.assertEqual(
                    [(entry.step, entry.pid) for entry in trace.read(rank)],
                    [(step, pid) for step in range(1, AGAIN_STEPS + 1)],
                )

    def backup(self, cluster):
        """Of n0's state directory, before any job."""
        copy = os.path.join(cluster.dir, "copy")
        cluster.kill("n0")
        shutil.copytree(cluster.agent_dir("n0"), copy, ignore=shutil.ignore_patterns("wake_fifo"))
        cluster.start("n0")
        return copy

    def ran_twice(self, trace, why):
        """Two processes a rank, one behind the other, the last from the first step to the end."""
        for rank in (0, 1):
            entries = trace.read(rank)
            pids = list(dict.fromkeys(entry.pid for entry in entries))
            self.assertEqual(len(pids), 2, why)
            self.assertEqual(
                [entry.pid for entry in entries],
                sorted((entry.pid for entry in entries), key=pids.index),
            )
            self.assertEqual(
                [entry.step for entry in entries[-AGAIN_STEPS:]], list(range(1, AGAIN_STEPS + 1))
            )

    def swept_and_gone_on(self, cluster, trace, job):
        cluster.wait(job)
        self.assertEqual(cluster.show(job)["attempt"], 2, cluster.story(job))
        causes = [
            event["text"] for event in cluster.events(job) if event["type"] == "attempt-broke"
        ]
        self.assertEqual(len(causes), 1, causes)
        self.assertIn("node 'n0' came back without the run directory of attempt 1", causes[0])
        self.assertEqual(trace.ranks(), [0, 1])
        self.ran_twice(trace, "once an attempt")

    def test_older_agent(self):
        with Cluster(nodes=2, devices=1) as cluster:
            copy, trace = self.backup(cluster), Trace(cluster, "trace")
            job = cluster.submit(
                cluster.stub(
                    "job", "--steps", AGAIN_STEPS, "--step-ms", STEP_MS, "--trace", trace.path
                )
            )
            trace.wait(job, 3)
            cluster.kill("n0")
            os.rename(cluster.agent_dir("n0"), os.path.join(cluster.dir, "newest"))
            os.rename(copy, cluster.agent_dir("n0"))
            cluster.start("n0")
            self.swept_and_gone_on(cluster, trace, job)
            # Swept by its process tag: the name of its control group was in the directory that is gone. The agent removes it nevertheless.
            self.assertEqual(
                glob.glob(f"/sys/fs/cgroup/muster-n0-*/{job}.1")
                + glob.glob(f"/sys/fs/cgroup/unified/muster-n0-*/{job}.1"),
                [],
            )

    def test_copied_agent_comes_first(self):
        """The controller is killed, and the agent on the copy is there before the one that runs the job."""
        with Cluster(nodes=2, devices=1) as cluster:
            copy, trace = self.backup(cluster), Trace(cluster, "trace")
            job = cluster.submit(
                cluster.stub(
                    "job", "--steps", AGAIN_STEPS, "--step-ms", STEP_MS, "--trace", trace.path
                )
            )
            trace.wait(job, 3)
            first = cluster.daemon("n0")
            first.send_signal(signal.SIGSTOP)
            cluster.kill("controller")
            cluster.start("controller")
            second = cluster.agent("n0", state=copy, wait=False)
            try:
                self.swept_and_gone_on(cluster, trace, job)
            finally:
                first.send_signal(signal.SIGCONT)
                second.stop()

    @staticmethod
    def ranks(cluster, job):
        """{rank: (attempt, pid, start time)} of this job's live processes."""
        return {
            int(p.env["MUSTER_RANK"]): (int(p.env["MUSTER_ATTEMPT"]), p.pid, p.start)
            for p in cluster.rank_processes()
            if p.env["MUSTER_JOB_ID"] == job
        }


if __name__ == "__main__":
    unittest.main()
