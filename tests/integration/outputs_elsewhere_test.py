#!/usr/bin/python3
"""A cluster that never saw a job goes on from what that has uploaded: with the lists of its sums, and without them.

The first cluster is gone by then, with its disks. The end is a real WebDAV server (`rclone serve`), behind a proxy that counts requests.

Run:  /usr/bin/python3 tests/integration/outputs_elsewhere_test.py [-v] [CASE]       (needs rclone)
"""

import json
import os
import shutil
import tempfile
import unittest

from cluster import Cluster, Trace
from counting_proxy import CountingProxy
from store_ends import serve_rclone
from store_sums import check_sums, lists_below

INTERVAL = 20


class Elsewhere(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The job of the first cluster saves six times; that cluster ends."""
        top = tempfile.mkdtemp(prefix="muster-elsewhere-")
        cls.addClassCleanup(shutil.rmtree, top)
        cls.saved = os.path.join(top, "store")
        os.mkdir(cls.saved)
        setup = unittest.TestCase()
        cls.addClassCleanup(setup.doCleanups)
        port = serve_rclone(setup, "webdav", cls.saved, "--dir-cache-time", "0")
        with Cluster() as first:
            first.controller()
            for node in ("n0", "n1"):
                first.agent(node, devices=1)
            first.muster("store", "add", "dav", "webdav://out", "--endpoint", f"http://127.0.0.1:{port}", code=0)
            words = ["--save", "${save.dir}", "--load", "${resume.dir}", "--save-interval", INTERVAL, "--steps", 6 * INTERVAL, "--step-ms", 20]
            spec = first.stub("first", *words, nodes=2, devices=1)
            spec["outputs"] = {"to": "webdav://out/runs/first"}
            job = first.submit(spec)
            first.wait(job)
            cls.steps = sorted(int(one["step"]) for one in first.show(job)["checkpoints"] if one.get("uploaded"))

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.store = self.cluster.path("store")
        shutil.copytree(self.saved, self.store, copy_function=shutil.copy2)
        self.saves = os.path.join(self.store, "runs", "first", "checkpoints", "attempt-1")
        self.proxy = CountingProxy("127.0.0.1", serve_rclone(self, "webdav", self.store, "--dir-cache-time", "0"))
        self.addCleanup(self.proxy.__exit__)
        self.cluster.controller()
        for node in ("n0", "n1"):
            self.cluster.agent(node, devices=1)
        self.cluster.muster("store", "add", "dav", "webdav://out", "--endpoint", f"http://{self.proxy.address}", code=0)

    def go_on(self, step):
        trace = Trace(self.cluster, "second")
        spec = self.cluster.stub("second", "--steps", 7 * INTERVAL, "--load", "${resume.dir}", "--save", "${save.dir}", "--step-ms", 1, "--trace", trace.path, nodes=2, devices=1)
        spec["start"] = {"from": "webdav://out/runs/first/checkpoints/attempt-1", "as": "resume", "step": step}
        spec["recovery"] = {"max_restarts": 0}
        return self.cluster.submit(spec), trace

    def check_went_on(self, step):
        job, trace = self.go_on(step)
        self.cluster.wait(job)
        self.assertEqual(trace.read()[0].step, step + 1, self.cluster.story(job))
        self.assertEqual(trace.read()[-1].step, 7 * INTERVAL)

    def shards(self, step):
        return [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(self.saves, f"iter_{step:07}")) for name in names]

    def test_with_its_lists(self):
        self.assertGreaterEqual(len(self.steps), 2)
        self.assertGreaterEqual(check_sums(self, self.store), 2 * len(self.steps) + 1)
        step = self.steps[0]
        self.check_went_on(step)
        fetched = {path.split("/iter_")[1].split("/")[0] for method, path in self.proxy.paths if method == "GET" and "/iter_" in path}
        self.assertEqual(fetched, {f"{step:07}"}, "no file of another checkpoint")

    def test_whatever_the_mark_in_the_store_says(self):
        with open(os.path.join(self.saves, "latest_checkpointed_iteration.txt"), "w", encoding="ascii") as file:
            file.write("999999")
        self.check_went_on(self.steps[0])

    def test_of_a_foreign_tree_by_its_layout(self):
        for one in lists_below(self.store):
            os.unlink(one)
        self.check_went_on(self.steps[-1])

    def test_a_damaged_shard_is_named(self):
        step = self.steps[-1]
        shard = self.shards(step)[0]
        with open(shard, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
        job, trace = self.go_on(step)
        self.cluster.wait(job, code=1)
        self.assertFalse(os.path.exists(trace.path) and trace.read(), "nothing has trained with it")
        story = json.dumps(self.cluster.show(job)) + self.cluster.muster("why", job).out
        self.assertIn(os.path.relpath(shard, self.saves), story)
        self.assertIn("is not what its job has uploaded", story)


if __name__ == "__main__":
    unittest.main()
