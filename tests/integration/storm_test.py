#!/usr/bin/python3
"""Hundreds of kills of everything at once, 64 ranks on 2 nodes: when the faults stop, the job ends with the losses of a run that nobody disturbed.

Unlike recovery_test.py this does not wait for order: daemons die while others start, agents while they adopt, the controller in the middle of an
attempt's end, ranks and workers as often as the rule allows that five attempts without a new best step end a job.  MUSTER_TEST_KILLS says how many.
In between the disk with the state directory of one node is full for a while, and turns read-only, until somebody puts it right: where this machine lets us have
a disk of our own (namespaces.py, loop devices, mkfs.ext4). Agents are killed right after a step of a start, too, and the start of another job hangs on a dead
file system while this one is started again: where we can have one (hanging_disk.py).

Run:  /usr/bin/python3 tests/integration/storm_test.py [-v]       (MUSTER_TEST_SEED repeats a run's choices)
"""

import collections
import os
import random
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hanging_disk  # noqa: E402
import namespaces  # noqa: E402
from cluster import SLOW, Cluster, Trace, kill_process, wait_gone  # noqa: E402
from disks import Disk  # noqa: E402

SEED = int(os.environ.get("MUSTER_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
KILLS = int(os.environ.get("MUSTER_TEST_KILLS") or 240 // SLOW)
DEVICES = 32  # of a node that the job has; one more is for others
START_STEPS = ("check", "directories", "files", "links", "record", "spawn")
INTERVAL = 10  # a checkpoint is 64 directories: more of them cost more than the storm
LONG = 300.0 * SLOW  # s; only a bound


def setUpModule():
    if namespaces.inside():
        namespaces.ip("link", "set", "lo", "up")


class WithDisks(Cluster):
    """The last node's state directory has a disk of its own, and there is another one that hangs: where there can be such."""

    disk = hanging = None

    def agent(self, name, **more):
        if name == self.nodes[-1] and namespaces.inside() and self.disk is None:
            self.disk = Disk(self.agent_dir(name), 1024)
            if why := hanging_disk.why_not():
                print(f"without a disk that hangs: {why}", file=sys.stderr)
            else:
                self.hanging = hanging_disk.HangingDisk(self.path("hanging"))
        return super().agent(name, **more)

    def _end(self):
        if self.hanging is not None:
            self.hanging.answer()
        left = super()._end()
        for disk in (self.hanging, self.disk):
            if disk is not None:
                disk.close()
        return left


class Storm(unittest.TestCase):
    def fill(self, cluster, job, trace):
        """Nothing healthy ends for it, whoever is started again meanwhile."""
        trace.wait(job, trace.best() + 5)
        attempt = cluster.show(job)["attempt"]
        with cluster.disk.filled():
            for name in ("controller", *cluster.nodes):
                cluster.restart(name)
                trace.wait(job, trace.best() + 5)
            for name in ("controller", *cluster.nodes):
                self.assertTrue(cluster.daemon(name).alive(), cluster.log_end(name))
        trace.wait(job, trace.best() + 2)
        self.assertEqual(
            cluster.show(job)["attempt"], attempt, f"a full disk ended it\n{cluster.story(job)}"
        )

    def turn_read_only(self, cluster, job, trace):
        """The next end of a rank there can be recorded by nobody: its worker ends with everything, and after the repair the job goes on."""
        node = cluster.nodes[-1]
        trace.wait(job, trace.best() + 5)
        cluster.disk.fail()
        there = [
            process
            for process in cluster.processes()
            if process.env["MUSTER_PROCESS_TAG"].endswith("@" + node)
        ]
        victim = next(process for process in there if "MUSTER_RANK" in process.env)
        self.assertTrue(kill_process(victim))
        for process in there:
            self.assertTrue(wait_gone(process), f"{process.argv} is left\n{cluster.story(job)}")
        cluster.kill(node)
        cluster.disk.mend()
        cluster.start(node)
        trace.wait(job, trace.best() + 1)

    def hit_the_gang(self, cluster, job):
        """One rank dies: every node starts its part again."""
        victim = next(
            process for process in cluster.rank_processes() if process.env["MUSTER_JOB_ID"] == job
        )
        self.assertTrue(kill_process(victim))

    def hang(self, cluster, job, trace):
        """The start of another job hangs. This one is started again meanwhile, on both nodes."""
        trace.wait(job, trace.best() + 5)
        spec = cluster.stub("hangs", "--steps", 3, nodes=1, devices=1)
        spec["outputs"] = {"dir": os.path.join(cluster.hanging.path, "out")}
        cluster.hanging.hang()
        hangs = cluster.submit(spec)
        cluster.hanging.wait_hanging()
        self.hit_the_gang(cluster, job)
        trace.wait(job, trace.best() + 5)
        cluster.restart("controller")
        self.hit_the_gang(cluster, job)
        trace.wait(job, trace.best() + 5)
        self.assertNotIn(cluster.show(hangs)["phase"], ("running", "succeeded", "failed"))
        cluster.hanging.answer()
        cluster.wait(hangs)

    def die_in_starts(self, cluster, job, trace, choose):
        """An agent kills itself right after a step of a start, and is started again."""
        while not cluster.show(job).get("checkpoints"):  # without one there is no step `links`
            trace.wait(job, trace.best() + 1)
        for step in choose.sample(START_STEPS, 2):
            node = choose.choice(cluster.nodes)
            trace.wait(job, trace.best() + 5)
            cluster.kill(node)
            cluster.agent(node, wait=False, env={"MUSTER_FAILPOINT": f"start:{step}:kill"})
            self.hit_the_gang(cluster, job)
            code, output = cluster.daemon(node).ended()
            self.assertEqual(code, -signal.SIGKILL, f"after step '{step}'\n{output}")
            cluster.start(node)
            trace.wait(job, trace.best() + 1)

    def storm(self, cluster, job, trace, choose):
        """Each round kills one to three at once, and waits for a little: new steps when a gang was hit, else the daemon's own start."""
        killed = collections.Counter()
        gang_hit_at = 0
        end = time.monotonic() + LONG
        faults = [
            ("disk", self.fill),
            ("start", lambda *args: self.die_in_starts(*args, choose)),
            ("disk", self.turn_read_only),
            ("hang", self.hang),
            ("start", lambda *args: self.die_in_starts(*args, choose)),
            ("disk", self.fill),
        ]
        there = {"disk": cluster.disk, "hang": cluster.hanging, "start": cluster}
        faults = [(kind, fault) for kind, fault in faults if there[kind] is not None]
        parts = len(faults) + 1
        while killed.total() < KILLS:
            if faults and killed.total() >= KILLS * (parts - len(faults)) // parts:
                cluster.restart("controller")
                kind, fault = faults.pop(0)
                fault(cluster, job, trace)
                killed[kind] += 1
                gang_hit_at = trace.best()
            self.assertLess(time.monotonic(), end, f"{killed} only\n{cluster.story(job)}")
            started = []
            for _ in range(choose.randint(1, 3)):
                kind = choose.choices(["rank", "worker", "agent", "controller"], [4, 3, 4, 4])[0]
                if kind in ("agent", "controller"):
                    name = choose.choice(cluster.nodes) if kind == "agent" else kind
                    if name not in started:
                        cluster.restart(name, wait=False)
                        started.append(name)
                        killed[kind] += 1
                    continue
                # A gang that made no new step since it was hit last is left alone.
                victims = (
                    (cluster.rank_processes() if kind == "rank" else cluster.workers())
                    if trace.best() > gang_hit_at
                    else []
                )
                if victims and kill_process(choose.choice(sorted(victims))):
                    killed[kind] += 1
                    # More of the same attempt may die with it: one attempt, one charge.
                    for victim in choose.sample(
                        sorted(victims), min(len(victims), choose.choice([0, 0, 1, 4]))
                    ):
                        killed[kind] += kill_process(victim)
                    gang_hit_at = trace.best()
            if choose.random() < 0.7:
                trace.wait(job, max(trace.best(), gang_hit_at) + choose.randint(1, 4))
        return killed

    def test_storm(self):
        print(f"seed {SEED}", file=sys.stderr)
        choose = random.Random(SEED)
        with WithDisks(nodes=2, devices=DEVICES + 1) as cluster:
            began = time.monotonic()
            trace = Trace(cluster, "storm")
            saving = [
                "--save",
                "${save.dir}",
                "--load",
                "${resume.dir}",
                "--save-interval",
                INTERVAL,
                "--shard-bytes",
                256,
            ]
            job = cluster.submit(
                cluster.stub(
                    "storm",
                    *trace.until_ended(),
                    "--step-ms",
                    12,
                    *saving,
                    "--trace",
                    trace.path,
                    devices=DEVICES,
                )
            )
            trace.wait(job, 1)
            killed = self.storm(cluster, job, trace, choose)
            stormed = time.monotonic() - began
            steps = trace.end(job)
            if not cluster.daemon("controller").alive():
                cluster.start("controller")
            cluster.wait(job, LONG)
            shown = cluster.show(job)
            summary = ", ".join(f"{count} {kind}" for kind, count in sorted(killed.items()))
            print(f"storm: {killed.total()} kills ({summary}) in {stormed:.0f} s, of {steps} steps; {shown['attempt']} attempts; "
                  f"succeeded after {time.monotonic() - began:.0f} s", file=sys.stderr)  # fmt: skip
            self.assertEqual(shown["phase"], "succeeded")

            undisturbed = Trace(cluster, "undisturbed")
            cluster.wait(
                cluster.submit(
                    cluster.stub(
                        "undisturbed",
                        "--steps",
                        steps,
                        "--trace",
                        undisturbed.path,
                        devices=DEVICES,
                    )
                ),
                LONG,
            )
            expected = undisturbed.losses()
            self.assertEqual(sorted(expected), list(range(1, steps + 1)))
            self.assertEqual(len(undisturbed.ranks()), 2 * DEVICES)
            self.assertEqual(trace.losses(), expected)
            self.assertGreaterEqual(
                min(killed[kind] for kind in ("rank", "worker", "agent", "controller")),
                KILLS // 20,
                killed,
            )
            self.assertEqual(killed["start"], 2)
            if cluster.disk is None or cluster.hanging is None:
                self.skipTest(
                    "all but faults of a disk: this machine lets us have no such disk of our own"
                )
            self.assertEqual((killed["disk"], killed["hang"]), (3, 1))


if __name__ == "__main__":
    namespaces.main(
        ("ip", "mkfs.ext4", "e2fsck"),
        "truncate -s 8M /run/i && mkfs.ext4 -q /run/i && mkdir /run/d && mount -o loop /run/i /run/d",
        needed=False,
    )
