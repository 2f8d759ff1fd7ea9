#!/usr/bin/python3
"""How much a job writes into the journal: 8 ranks at 10 steps a second with a checkpoint a minute, at most 50 records in 10 minutes.

The ten minutes pass a hundred times faster: the 6,000 steps and 10 checkpoints are there, and no record is made of time alone.

Run:  /usr/bin/python3 tests/integration/records_test.py [-v]
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster, Trace  # noqa: E402

STEPS, INTERVAL, MOST = 6000, 600, 50


class Records(unittest.TestCase):
    def test_ten_minutes(self):
        with Cluster(nodes=2, devices=4) as cluster:
            trace = Trace(cluster, "ten-minutes")
            saving = [
                "--save",
                "${save.dir}",
                "--load",
                "${resume.dir}",
                "--save-interval",
                INTERVAL,
                "--save-ms",
                2,
            ]
            job = cluster.submit(
                cluster.stub(
                    "ten-minutes", "--steps", STEPS, "--step-ms", 1, *saving, "--trace", trace.path
                )
            )
            cluster.wait(job)
            self.assertEqual([trace.best(rank) for rank in range(8)], [STEPS] * 8)
            events = cluster.events(job)
            kinds = [event["type"] for event in events]
            self.assertGreaterEqual(
                kinds.count("checkpoint-completed"), STEPS // INTERVAL - 2, kinds
            )
            # Nobody else writes into this cluster's journal: what lies between the job's first and last event is of this job, shown or not.
            records = int(events[-1]["index"]) - int(events[0]["index"]) + 1
            print(f"{records} records, {len(events)} of them events", file=sys.stderr)
            self.assertGreaterEqual(records, len(events))
            self.assertLessEqual(records, MOST, kinds)


if __name__ == "__main__":
    unittest.main()
