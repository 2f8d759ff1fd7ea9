#!/usr/bin/python3
"""Checkpoints that were whole once, and are torn, or forgotten, when a job wants to go on from them.

The newest one is truncated, emptied, or a shard's directory of it removed, while older whole ones lie beside it; then a rank is killed. Five starts went from
the torn one, each blamed on the node, and after 155 s the job had failed. It is quarantined now, and the older one taken at once, by one start a torn checkpoint.

The controller's directory is put back from a copy that knows no checkpoint: training went on from the beginning, over whole steps on disk.

Run:  /usr/bin/python3 tests/integration/torn_checkpoint_test.py [-v]
"""

import os
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import SLOW, Cluster, Trace, binary  # noqa: E402

STEPS, INTERVAL, STEP_MS = 200 * SLOW, 20, 20
SAVING = (
    "--save",
    "${save.dir}",
    "--load",
    "${resume.dir}",
    "--save-interval",
    INTERVAL,
    "--step-ms",
    STEP_MS,
)


def shards(path):
    return [os.path.join(path, shard, "model_optim_rng.pt") for shard in sorted(os.listdir(path))]


def truncated(path):
    os.truncate(shards(path)[0], 1000)


def emptied(path):
    os.truncate(shards(path)[-1], 0)


def removed(path):
    shutil.rmtree(os.path.dirname(shards(path)[0]))


class TornCheckpoint(unittest.TestCase):
    def begin(self, cluster, name, endless=False):
        trace = Trace(cluster, name)
        ending = trace.until_ended() if endless else ["--steps", STEPS]
        return (
            cluster.submit(cluster.stub(name, *ending, *SAVING, "--trace", trace.path)),
            trace,
        )

    def saved(self, cluster, job, trace, count):
        """Until muster knows so many whole ones; then no rank moves. Their paths, oldest first."""
        while True:
            known = cluster.show(job).get("checkpoints", [])
            if len(known) >= count:
                break
            trace.wait(job, trace.best() + 1)
        ranks = [rank for rank in cluster.rank_processes() if rank.env["MUSTER_JOB_ID"] == job]
        for rank in ranks:
            os.kill(rank.pid, signal.SIGSTOP)
        return [one["path"] for one in known], ranks

    def spoil(self, path, oldest, how):
        """Every one that is newer, the one too that muster may have come to know since."""
        save = os.path.dirname(path)
        torn = [
            name
            for name in os.listdir(save)
            if name.startswith("iter_") and name > os.path.basename(oldest)
        ]
        for name in torn:
            how(os.path.join(save, name))
        self.assertTrue(torn)

    def kill(self, ranks):
        for rank in ranks[1:]:  # they wait for the first; once that is dead muster ends them
            os.kill(rank.pid, signal.SIGCONT)
        os.kill(ranks[0].pid, signal.SIGKILL)

    def goes_on(self, cluster, name, how, nodes):
        job, trace = self.begin(cluster, name)
        paths, ranks = self.saved(cluster, job, trace, 2)
        self.spoil(paths[0], paths[0], how)
        self.kill(ranks)
        cluster.wait(job)
        shown, events = cluster.show(job), cluster.events(job)
        quarantined = [
            event["text"] for event in events if event["type"] == "checkpoint-quarantined"
        ]
        story = cluster.story(job)
        self.assertGreaterEqual(len(quarantined), 1, story)
        oldest = int(paths[0].rpartition("_")[2])
        self.assertIn(f"the job goes on from step {oldest} of attempt 1", quarantined[-1])
        last = shown["attempts"][-1]
        self.assertEqual(int(last["resume"]["step"]), oldest, story)
        # On two nodes one may report before the other has looked, which is then stopped. What one node
        # misses that another has written is that node's fault, and the next start looks again.
        starts = shown["attempts"][1:-1]
        unproven = [attempt for attempt in starts if attempt["verdict"].get("node")]
        self.assertLessEqual(len(unproven), len(quarantined) if nodes > 1 else 0, story)
        self.assertEqual(
            len(starts), len(quarantined) + len(unproven), "one start a torn checkpoint\n" + story
        )
        for attempt in starts:
            if attempt in unproven:
                continue
            self.assertEqual(attempt["verdict"]["class"], "launch", story)
            self.assertIn("is torn: node", attempt["verdict"]["reason"].replace("nodes", "node"))
        self.assertNotIn(
            "(quarantined)",
            "".join(
                line
                for line in cluster.output("ckpt", "ls", job).splitlines(True)
                if line.startswith(f"{oldest} ")
            ),
        )
        self.assertIn("(quarantined)", cluster.output("ckpt", "ls", job))
        trace.losses()  # every attempt agrees on every step: from another state it would not

    def test_on_the_node_that_wrote_it(self):
        with Cluster(nodes=1, devices=2) as cluster:
            for how in (truncated, emptied, removed):
                with self.subTest(how.__name__):
                    self.goes_on(cluster, how.__name__, how, nodes=1)

    def test_on_two_nodes(self):
        with Cluster(nodes=2, devices=1) as cluster:
            for how in (truncated, removed):
                with self.subTest(how.__name__):
                    self.goes_on(cluster, how.__name__, how, nodes=2)

    def test_the_only_one(self):
        """Nothing is begun anew because of it, and whoever names it is refused."""
        with Cluster(nodes=1, devices=2) as cluster:
            job, trace = self.begin(cluster, "only")
            paths, ranks = self.saved(cluster, job, trace, 1)
            self.spoil(paths[0], "", truncated)
            self.kill(ranks)
            cluster.muster("wait", job)
            shown = cluster.show(job)
            self.assertEqual(shown["phase"], "failed", cluster.story(job))
            self.assertIn("no older whole one is there to go on from", shown["verdict"]["reason"])
            self.assertEqual([entry.step for entry in trace.read()].count(1), 1)

            step = int(paths[0].rpartition("_")[2])
            again = cluster.output("resume", job, "--from", str(step), "-d").split()[0]
            cluster.jobs.append(again)
            cluster.muster("wait", again)
            shown = cluster.show(again)
            self.assertEqual(
                (shown["phase"], shown["attempt"]), ("failed", 1), cluster.story(again)
            )
            self.assertIn(
                f"start.from: the checkpoint of step {step} in '", shown["verdict"]["reason"]
            )

    def put_back(self, copy, state):
        """The checkpoints stay: without them, and without a rank that saved new ones, there was nothing left to find."""
        for name in os.listdir(state):
            path = os.path.join(state, name)
            if name != "outputs":
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        shutil.copytree(
            copy, state, dirs_exist_ok=True, ignore=lambda _, names: {"outputs"} & set(names)
        )

    def test_records_that_the_journal_has_lost(self):
        with Cluster(nodes=1, devices=2) as cluster:
            state, copy = os.path.join(cluster.dir, "controller"), os.path.join(cluster.dir, "copy")
            job, trace = self.begin(cluster, "lost", endless=True)
            trace.wait(job, 1)
            cluster.kill("controller")
            shutil.copytree(state, copy)
            has = subprocess.run(
                [binary("muster-controller"), "--dump", copy],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            self.assertIn(job, has)
            self.assertNotIn(
                "/checkpoints/attempt-1/iter_", has, "the copy was taken behind a checkpoint"
            )
            cluster.start("controller")
            paths, ranks = self.saved(cluster, job, trace, 2)
            self.kill(ranks)
            went = trace.best()
            trace.wait(job, went + 1)  # attempt 2, of which the copy knows nothing

            cluster.kill("controller")
            self.put_back(copy, state)
            cluster.controller("--accept-loss")
            trace.end(job)
            cluster.wait(job)
            story = cluster.story(job)
            self.assertEqual(
                [entry.step for entry in trace.read()].count(1), 1, "it was begun anew\n" + story
            )
            last = cluster.show(job)["attempts"][-1]
            self.assertGreaterEqual(
                int(last["resume"]["step"]), int(paths[-1].rpartition("_")[2]), story
            )
            trace.losses()


if __name__ == "__main__":
    unittest.main()
