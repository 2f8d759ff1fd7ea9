#!/usr/bin/python3
"""outputs.to while a job trains: each whole checkpoint goes to a store by a real rclone, the engine's mark of it last.

Whoever reads the store at any moment finds whole checkpoints behind the mark, also when the job deletes or rewrites its own meanwhile, when an agent or a rank
is killed, and when each node has its own disk.

Run:  /usr/bin/python3 tests/integration/outputs_during_test.py [-v] [CASE]       (needs rclone; two cases need root)
"""

import json
import os
import re
import shutil
import signal
import unittest

from cluster import DEADLINE, Cluster, Trace, wait_until
from counting_proxy import CountingProxy
from own_disks import WHY_NOT, OwnOutputs, may_mount
from store_ends import serve_rclone
from store_sums import check_sums

INTERVAL = 20
MARK = "latest_checkpointed_iteration.txt"


def tree(top):
    """{name below it: its bytes}"""
    found = {}
    for folder, _, names in os.walk(top):
        for one in names:
            path = os.path.join(folder, one)
            try:
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = file.read()
            except FileNotFoundError:
                pass  # a job that trains deletes and renames
    return found


class OwnDisks(OwnOutputs, Cluster):
    def agent(self, name, **more):
        return super().agent(name, before=self.before_own(name), **more)


class Uploads(unittest.TestCase):
    cluster_type = Cluster
    checkpoint = {}

    def setUp(self):
        self.cluster = self.cluster_type()
        self.addCleanup(self.cluster.close)
        self.store = self.cluster.path("store")
        os.mkdir(self.store)
        self.proxy = CountingProxy("127.0.0.1", serve_rclone(self, "webdav", self.store, "--dir-cache-time", "0"))
        self.addCleanup(self.proxy.__exit__)
        self.cluster.controller()
        for node in ("n0", "n1"):
            self.cluster.agent(node, devices=1)
        self.cluster.muster("store", "add", "dav", "webdav://out", "--endpoint", f"http://{self.proxy.address}", code=0)

    def tearDown(self):
        self.proxy.gate.set()

    def begin(self, name, *more, endless=True, **outputs):
        trace = Trace(self.cluster, name)
        ending = trace.until_ended() if endless else []
        spec = self.cluster.stub(name, *ending, "--save", "${save.dir}", "--load", "${resume.dir}", "--save-interval", INTERVAL, "--step-ms", 10, "--trace", trace.path, *more, nodes=2, devices=1)
        spec["outputs"] = {"to": "webdav://out/runs/" + name, **outputs}
        spec["checkpoint"] = self.checkpoint
        return self.cluster.submit(spec), trace

    def events(self, job, kind):
        return [event for event in map(json.loads, self.cluster.output("events", "-o", "jsonl", job).splitlines()) if event["type"] == kind]

    def wait_for(self, job, kind, count=1):
        wait_until(lambda: len(self.events(job, kind)) >= count, what=f"{count} events '{kind}'")
        return self.events(job, kind)

    def remote(self, name, *below):
        return os.path.join(self.store, "runs", name, *below)

    def wait_for_gate(self, job):
        with self.proxy.changed:
            self.assertTrue(self.proxy.changed.wait_for(lambda: self.proxy.waiting > 0, DEADLINE), self.cluster.story(job))

    def close_gate(self, gated=lambda path: True):
        self.proxy.gated = gated
        self.proxy.gates = ("PUT",)
        self.proxy.gate.clear()

    def marked(self, name, attempt=1):
        """The step that the mark in the store says; None: there is none."""
        try:
            with open(self.remote(name, "checkpoints", f"attempt-{attempt}", MARK), encoding="ascii") as file:
                return int(file.read())
        except (FileNotFoundError, ValueError):  # a WebDAV end writes in place
            return None

    def check_end(self, job, name):
        """What is in the store is what the job has left."""
        self.cluster.wait(job)
        there = tree(self.remote(name))
        for one, content in self.left(job).items():
            self.assertEqual(there.get(one), content, one)

    def left(self, job):
        return tree(os.path.join(self.cluster.dir, "controller", "outputs", job))


class During(Uploads):
    def test_whole_checkpoints_are_there_while_it_trains(self):
        job, trace = self.begin("plain")
        self.wait_for(job, "checkpoint-uploaded", 2)
        step = self.marked("plain")
        self.assertGreaterEqual(step, INTERVAL)
        shown = [one for one in self.cluster.show(job)["checkpoints"] if one.get("uploaded")]
        self.assertGreaterEqual(len(shown), 2)
        self.assertRegex(self.cluster.output("ckpt", "ls", job), r"(?s)UPLOADED +PATH.*\byes +/")
        # Another job takes it from the store, as another cluster would.
        other = Trace(self.cluster, "other")
        spec = self.cluster.stub("other", "--steps", 10**6, "--end-file", os.path.join(trace.path, "end"), "--load", "${resume.dir}", "--step-ms", 1, "--trace", other.path, nodes=2, devices=1)
        spec["start"] = {"from": "webdav://out/runs/plain/checkpoints/attempt-1", "as": "resume", "step": step}
        last = trace.end(job)
        taken = self.cluster.submit(spec)
        self.cluster.wait(taken)
        self.assertGreaterEqual(other.read()[0].step, step + 1, self.cluster.story(taken))
        self.assertEqual(other.read()[-1].step, last)
        self.check_end(job, "plain")
        self.assertEqual(self.marked("plain"), max(int(one["step"]) for one in self.cluster.show(job)["checkpoints"]))

    def test_a_checkpoint_that_is_deleted_meanwhile_is_uploaded_whole(self):
        self.close_gate()
        job, trace = self.begin("rotated")
        self.wait_for_gate(job)
        local = os.path.join(self.cluster.dir, "controller", "outputs", job, "checkpoints", "attempt-1")
        first = os.path.join(local, f"iter_{INTERVAL:07}")
        before = tree(first)
        self.assertTrue(before)
        shutil.rmtree(first)
        self.proxy.gate.set()
        self.wait_for(job, "checkpoint-uploaded")
        self.assertEqual(tree(self.remote("rotated", "checkpoints", "attempt-1", f"iter_{INTERVAL:07}")), before)
        trace.end(job)
        self.check_end(job, "rotated")
        self.assertFalse(os.path.exists(os.path.join(local, "..", "..", ".muster-upload")))

    def test_a_checkpoint_that_is_rewritten_meanwhile_gets_no_mark(self):
        self.close_gate()
        job, trace = self.begin("rewritten")
        self.wait_for_gate(job)
        local = os.path.join(self.cluster.dir, "controller", "outputs", job, "checkpoints", "attempt-1", f"iter_{INTERVAL:07}")
        shard = next(os.path.join(folder, names[0]) for folder, _, names in os.walk(local) if names)
        with open(shard, "r+b") as file:
            file.write(b"!")
        self.proxy.gate.set()
        failed = self.wait_for(job, "checkpoint-not-sent")
        self.assertIn(f"the checkpoint of step {INTERVAL}: ", failed[0]["text"])
        self.assertIn("was written after the checkpoint was whole", failed[0]["text"])
        self.wait_for(job, "checkpoint-uploaded")
        self.assertGreater(self.marked("rewritten"), INTERVAL)
        trace.end(job)
        self.check_end(job, "rewritten")

    def test_the_mark_waits_for_the_last_shard(self):
        self.close_gate(lambda path: path.endswith(".pt"))
        job, trace = self.begin("slow")
        self.wait_for_gate(job)
        self.assertIsNone(self.marked("slow"))
        self.proxy.gate.set()
        self.wait_for(job, "checkpoint-uploaded")
        self.assertIsNotNone(self.marked("slow"))
        trace.end(job)
        self.check_end(job, "slow")

    def test_old_ones_are_removed_from_the_store(self):
        job, trace = self.begin("kept", keep=2)
        self.wait_for(job, "checkpoint-uploaded", 4)
        rank = next(one for one in self.cluster.rank_processes() if one.env["MUSTER_JOB_ID"] == job)
        os.kill(rank.pid, signal.SIGKILL)
        wait_until(lambda: self.marked("kept", 2) is not None, what="a checkpoint of the second attempt")
        self.wait_for(job, "checkpoint-uploaded", 7)
        trace.end(job)
        self.cluster.wait(job)
        there = tree(self.remote("kept"))
        shards = {tuple(name.split("/")[1:3]) for name in there if "/iter_" in name}
        self.assertEqual(len(shards), 2, sorted(there))
        uploaded = {(f"attempt-{one['attempt']}", f"iter_{int(one['step']):07}") for one in self.cluster.show(job)["checkpoints"] if one.get("uploaded")}
        self.assertEqual(shards, uploaded)
        newest = max(int(one["step"]) for one in self.cluster.show(job)["checkpoints"])
        self.assertIn(f"iter_{newest:07}", {step for _, step in shards})
        self.assertEqual(check_sums(self, self.remote("kept")), 5, "a list of each node and of the step, twice; and of everything")
        self.assertEqual({name for name in there if name.endswith(MARK) and name.startswith("checkpoints/")}, {f"checkpoints/attempt-2/{MARK}"}, "the first attempt has none there")
        self.assertTrue([one for one in self.events(job, "checkpoint-uploaded") if re.search("older (one is|ones are) removed there", one["text"])])

    def test_an_agent_and_a_rank_that_are_killed(self):
        self.close_gate()
        job, trace = self.begin("killed")
        self.wait_for_gate(job)
        self.cluster.kill("n0")
        self.cluster.agent("n0", devices=1, wait=False)
        self.proxy.gate.set()
        self.wait_for(job, "checkpoint-uploaded")
        rank = next(one for one in self.cluster.rank_processes() if one.env["MUSTER_JOB_ID"] == job)
        os.kill(rank.pid, signal.SIGKILL)
        wait_until(lambda: self.marked("killed", 2) is not None, what="a checkpoint of the second attempt")
        trace.end(job)
        self.check_end(job, "killed")


@unittest.skipUnless(may_mount(), WHY_NOT)
class OnOwnDisks(Uploads):
    cluster_type = OwnDisks
    checkpoint = {"storage": "local"}

    def left(self, job):
        return {**tree(os.path.join(self.cluster.disk("n0"), job)), **tree(os.path.join(self.cluster.disk("n1"), job))}

    def test_the_mark_waits_for_all_nodes(self):
        self.close_gate(lambda path: "mp_rank_01" in path)
        job, trace = self.begin("disks")
        self.wait_for_gate(job)
        self.wait_for(job, "checkpoint-sent")
        self.assertIsNone(self.marked("disks"))
        self.proxy.gate.set()
        self.wait_for(job, "checkpoint-uploaded")
        step = self.marked("disks")
        self.assertEqual(sorted(os.listdir(self.remote("disks", "checkpoints", "attempt-1", f"iter_{step:07}"))), ["mp_rank_00", "mp_rank_01"])
        trace.end(job)
        self.check_end(job, "disks")


if __name__ == "__main__":
    unittest.main()
