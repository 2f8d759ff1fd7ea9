#!/usr/bin/python3
"""`runtime.setup`: one shell a node whose environment every rank inherits, what is said while it runs, and that its time is the job's start time.

Run:  /usr/bin/python3 tests/integration/setup_test.py [-v] [CASE]
"""

import os
import unittest

import private
from private import Private

SPEC = """
name: toolkit
engine: command
runtime:
  setup:
    - cd {dir}
    - 'read -r word < gate'
    - 'export TOOLKIT=$word HOME_OF_IT=$PWD PATH="$PWD/tools:$PATH"'
    - 'shopt -s expand_aliases; count() {{ echo counted >> count; }}; count'
  env: {{TOOLKIT_HOME: kept}}
launch: {{run: [toolkit-trainer, "${{rank}}"]}}
resources: {{nodes: 1, devices: 3, type: cpu}}
recovery: {{max_restarts: 0}}
"""


class Setup(unittest.TestCase):
    def setUp(self):
        self.cluster = Private()
        self.addCleanup(self.cluster.close)
        os.mkdir(self.cluster.path("tools"))
        self.cluster.write("tools/toolkit-trainer", '#!/bin/sh\necho "rank $1: $TOOLKIT in $HOME_OF_IT, $TOOLKIT_HOME, rank again $MUSTER_RANK"\n', 0o755)
        os.mkfifo(self.cluster.path("gate"))
        self.cluster.controller()
        self.cluster.agent("n0", devices=3)

    def test_ranks_inherit_its_environment(self):
        self.cluster.submit(SPEC.format(dir=self.cluster.dir))
        says = "attempt 1 is being set up (runtime.setup) on n0, within 30m a node"
        private.wait_until(lambda: says in self.cluster.muster("why", "toolkit", code=0).out.replace("'", ""), what=f"why to say: {says}")
        with open(self.cluster.path("gate"), "w", encoding="utf-8") as gate:  # opens when the setup reads
            gate.write("cann-8.0\n")
        self.cluster.muster("wait", "toolkit", "--timeout", "60s", code=0)
        for rank in range(3):
            out = self.cluster.muster("logs", "toolkit", "-f", "--raw", "--rank", str(rank), code=0).out
            self.assertEqual(out, f"rank {rank}: cann-8.0 in {self.cluster.dir}, kept, rank again {rank}\n")
        with open(self.cluster.path("count"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "counted\n", "once a node")

    def test_a_cancel_ends_it(self):
        self.cluster.submit(SPEC.format(dir=self.cluster.dir))
        private.wait_until(lambda: "being set up" in self.cluster.muster("why", "toolkit", code=0).out, what="the setup to run")
        self.cluster.muster("cancel", "toolkit", code=0)
        self.cluster.muster("wait", "toolkit", "--timeout", "60s", code=3)
        self.assertFalse(os.path.exists(self.cluster.path("count")))


if __name__ == "__main__":
    unittest.main()
