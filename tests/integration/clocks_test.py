#!/usr/bin/python3
"""Nodes whose clocks do not agree: whose rank failed first is not a question of whose clock is behind.

Run:  /usr/bin/python3 tests/integration/clocks_test.py [-v] [CASE]       (needs faketime)
"""

import glob
import json
import os
import signal
import unittest

from cluster import SLOW, Cluster, wait_until

LIBRARY = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)


@unittest.skipIf(LIBRARY is None, "libfaketime is not installed (deploy/install-packages test)")
@unittest.skipIf(
    SLOW > 1, "a sanitizer's runtime must be the first library of a process, and so must this one"
)
class Clocks(unittest.TestCase):
    def test_the_first_to_fail_is_named_whatever_its_clock_says(self):
        """n1's clock was behind by 5 s: its rank, a later victim, was named as the cause."""
        behind = {"LD_PRELOAD": LIBRARY, "FAKETIME": "-5s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        with Cluster() as cluster, cluster.gate("first") as first, cluster.gate("second") as second:
            cluster.controller()
            cluster.agent("n0", devices=1)
            away = cluster.agent("n1", devices=1, env=behind)
            script = (f'if [ "$RANK" = 0 ]; then read line < {first.path}; echo "ValueError: the first" >&2; exit 3; fi; '
                      f'trap : TERM; read line < {second.path}; sleep 0.5; echo "ValueError: the second" >&2; exit 4')  # fmt: skip
            name = cluster.submit(f"name: clocks\nengine: torch\nlaunch: {{run: [sh, -c, {json.dumps(script)}]}}\n"
                                  "resources: {nodes: 2, devices: 1, type: cpu}\nrecovery: {max_restarts: 0, stop_grace: 50s}\n")  # fmt: skip
            for node in ("n0", "n1"):
                cluster.wait_event(
                    lambda event, node=node: event["type"] == "node-started"
                    and event["node"] == node,
                    name,
                )
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
