#!/usr/bin/python3
"""Nodes whose clocks do not agree: whose rank failed first is not a question of whose clock is behind.

Run:  /usr/bin/python3 tests/integration/clocks_test.py [-v] [CASE]
"""

import glob
import json
import os
import signal
import time
import unittest

from cluster import Cluster, wait_until

BEHIND = 50  # s; from a minute on, a node reports that its clock is wrong


def first_written(events):
    """When a worker wrote the first event, by its own wall clock: the first field of the first frame (rundir.proto, common/io/frames.h)."""
    with open(events, "rb") as file:
        payload = file.read()[8:]
    assert payload[0] == 0x08, payload[:16]
    nanoseconds = 0
    for place, byte in enumerate(payload[1:]):
        nanoseconds |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return nanoseconds / 1e9


class Clocks(unittest.TestCase):
    def test_the_first_to_fail_is_named_whatever_its_clock_says(self):
        """n1's clock was behind: its rank, a later victim, was named as the cause."""
        behind = {"MUSTER_WALL_CLOCK_OFFSET_MS": str(-1000 * BEHIND)}
        with Cluster() as cluster, cluster.gate("first") as first, cluster.gate("second") as second:
            cluster.controller()
            cluster.agent("n0", devices=1)
            away = cluster.agent("n1", devices=1, env=behind)
            script = (f'if [ "$RANK" = 0 ]; then read line < {first.path}; echo "ValueError: the first" >&2; exit 3; fi; '
                      f'trap : TERM; read line < {second.path}; sleep 0.5; echo "ValueError: the second" >&2; exit 4')  # fmt: skip
            begun = time.time()
            name = cluster.submit(f"name: clocks\nengine: torch\nlaunch: {{run: [sh, -c, {json.dumps(script)}]}}\n"
                                  "resources: {nodes: 2, devices: 1, type: cpu}\nrecovery: {max_restarts: 0, stop_grace: 50s}\n")  # fmt: skip
            for node in ("n0", "n1"):
                cluster.wait_event(
                    lambda event, node=node: event["type"] == "node-started"
                    and event["node"] == node,
                    name,
                )
            for node, is_behind in (("n0", False), ("n1", True)):
                (events,) = glob.glob(cluster.path(f"agent-{node}", "runs", "*", "events"))
                self.assertEqual(first_written(events) < begun, is_behind, f"the worker of {node}")
            # The agent hears of no stop before its rank has failed by itself.
            os.kill(away.process.pid, signal.SIGSTOP)
            try:
                first.open()
                cluster.wait_event(lambda event: event["type"] == "rank-exited", name)
                second.open()
                ends = glob.glob(cluster.path("agent-n1", "runs", "*", "events"))[0]
                size = os.path.getsize(ends)
                wait_until(lambda: os.path.getsize(ends) > size, what="the second rank's end")
            finally:
                os.kill(away.process.pid, signal.SIGCONT)
            cluster.muster("wait", name, "--timeout", "60s", code=1)
            why = cluster.muster("why", name, code=0).out
            self.assertIn("rank 0 on node 'n0' ended with status 3", why)
            self.assertIn("ValueError: the first", why)
            self.assertNotIn("rank 1", why, "it failed half a second later")


if __name__ == "__main__":
    unittest.main()
