#!/usr/bin/python3
"""Daemons that may open few descriptors: they say so at their start, and serve a node full of ranks all the same.

Run:  /usr/bin/python3 tests/integration/descriptors_test.py [-v] [CASE]
"""

import os
import unittest

from cluster import Cluster, wait_until

RANKS = 48


class FewDescriptors(unittest.TestCase):
    # Each log had two descriptors at the controller and two at the agent: with 64 and 48 ranks there were none for anything else, and nothing moved.
    def test_a_node_full_of_ranks_under_64(self):
        with Cluster() as cluster:
            limit = ["prlimit", "--nofile=64:64"]
            controller = cluster.controller(before=limit)
            agent = cluster.agent("n0", devices=RANKS, before=limit)
            for daemon in (controller, agent):
                daemon.wait_for("at most 64 descriptors may be open in this process")
            script = "for i in 1 2 3; do echo line $i of rank $RANK; done"
            job = cluster.submit(
                f"name: many\nengine: torch\nlaunch: {{run: [sh, -c, '{script}']}}\nresources: {{devices: {RANKS}, type: cpu}}\n"
            )
            cluster.muster("wait", job, "--timeout", "60s", code=0, within=90)
            runs = cluster.path("agent-n0", "runs")
            wait_until(
                lambda: not any(job in name for name in os.listdir(runs)),
                what=f"the logs to be collected\n{controller.logged()}\n{agent.logged()}",
            )
            output = cluster.muster("logs", job, "--rank", "0-47", code=0).out
            for rank in range(RANKS):
                self.assertIn(f"line 3 of rank {rank}\n", output)
            cluster.trivial()


if __name__ == "__main__":
    unittest.main()
