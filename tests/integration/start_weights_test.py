#!/usr/bin/python3
"""A job that begins with another one's weights: links to the one step, until it has a checkpoint of its own.

Run:  /usr/bin/python3 tests/integration/start_weights_test.py [-v]
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster, Trace, kill_process  # noqa: E402


class StartWeights(unittest.TestCase):
    def test_links_to_one_step_until_there_is_a_checkpoint_of_its_own(self):
        with Cluster(nodes=1, devices=2) as cluster:
            base, tuned = Trace(cluster, "base"), Trace(cluster, "tuned")
            saving = ["--save", "${save.dir}", "--save-interval", 4]
            first = cluster.submit(
                cluster.stub("base", "--steps", 12, "--step-ms", 2, *saving, "--trace", base.path)
            )
            cluster.wait(first)
            # Of the two one is empty: the weights at a first start, else what it goes on from.
            spec = cluster.stub(
                "tuned",
                *tuned.until_ended(),
                "--step-ms",
                10,
                *saving,
                "--load",
                "${start.dir}${resume.dir}",
                "--trace",
                tuned.path,
            )
            spec["start"] = {"from": "job:base", "as": "weights", "step": 8}
            job = cluster.submit(spec)
            tuned.wait(job, 40)
            self.assertEqual(
                tuned.read()[0].step,
                9,
                "the links hold step 8 alone, although there is a newer one",
            )
            out = cluster.show(job)["outputDir"]
            placed = cluster.show(job)["attempts"][0]
            self.assertEqual((placed["resume"]["step"], placed["resume"]["fromStart"]), (8, True))
            self.assertTrue(os.path.isdir(f"{out}/resume/attempt-1"))
            self.assertIn(f"{out}/resume/attempt-1", cluster.output("env", job, "--rank", "0"))
            for rank in cluster.rank_processes():
                kill_process(rank)
            last = tuned.end(job)
            cluster.wait(job)
            attempts = cluster.show(job)["attempts"]
            self.assertEqual(len(attempts), 2)
            self.assertGreater(attempts[1]["resume"]["step"], 8)
            self.assertFalse(attempts[1]["resume"]["fromStart"])
            self.assertEqual(tuned.best(), last)


if __name__ == "__main__":
    unittest.main()
