#!/usr/bin/python3
"""`runtime.setup`: one shell a node whose environment every rank inherits, what is said while it runs, that its time is the job's start time, and what it wrote.

Run:  /usr/bin/python3 tests/integration/setup_test.py [-v] [CASE]
"""

import json
import os
import signal
import unittest

from cluster import DEADLINE, Cluster, wait_until

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
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        os.mkdir(self.cluster.path("tools"))
        self.cluster.write(
            "tools/toolkit-trainer",
            '#!/bin/sh\necho "rank $1: $TOOLKIT in $HOME_OF_IT, $TOOLKIT_HOME, rank again $MUSTER_RANK"\n',
            0o755,
        )
        os.mkfifo(self.cluster.path("gate"))
        self.cluster.controller()
        self.cluster.agent("n0", devices=3)

    def test_ranks_inherit_its_environment(self):
        self.cluster.submit(SPEC.format(dir=self.cluster.dir))
        says = "attempt 1 is being set up (runtime.setup) on n0, within 30m a node"
        wait_until(
            lambda: says in self.cluster.muster("why", "toolkit", code=0).out.replace("'", ""),
            what=f"why to say: {says}",
        )
        with open(
            self.cluster.path("gate"), "w", encoding="utf-8"
        ) as gate:  # opens when the setup reads
            gate.write("cann-8.0\n")
        self.cluster.muster("wait", "toolkit", "--timeout", "60s", code=0)
        for rank in range(3):
            out = self.cluster.muster(
                "logs", "toolkit", "-f", "--raw", "--rank", str(rank), code=0
            ).out
            self.assertEqual(
                out, f"rank {rank}: cann-8.0 in {self.cluster.dir}, kept, rank again {rank}\n"
            )
        with open(self.cluster.path("count"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "counted\n", "once a node")

    def test_a_cancel_ends_it(self):
        self.cluster.submit(SPEC.format(dir=self.cluster.dir))
        wait_until(
            lambda: "being set up" in self.cluster.muster("why", "toolkit", code=0).out,
            what="the setup to run",
        )
        self.cluster.muster("cancel", "toolkit", code=0)
        self.cluster.muster("wait", "toolkit", "--timeout", "60s", code=3)
        self.assertFalse(os.path.exists(self.cluster.path("count")))


PAIR = """
name: {name}
engine: command
runtime:
  setup:
{commands}
launch: {{run: [echo, trained]}}
resources: {{nodes: 2, devices: 1, type: cpu}}
recovery: {{max_restarts: 0}}
"""


class SetupLogs(unittest.TestCase):
    """What the setup of each of two nodes wrote is with the controller, also when the run directories are gone."""

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.cluster.controller()
        self.agents = {name: self.cluster.agent(name, devices=1) for name in ("n0", "n1")}

    def submit(self, name, commands, *args):
        return self.cluster.submit(
            PAIR.format(
                name=name,
                commands="".join(f"    - {json.dumps(command)}\n" for command in commands),
            ),
            *args,
        )

    def until_forgotten(self):
        runs = [self.cluster.path("agent-" + name, "runs") for name in self.agents]
        wait_until(
            lambda: not any(os.listdir(path) for path in runs),
            what="the run directories to be gone",
        )

    def raw(self, job, node):
        return self.cluster.muster(
            "logs", job, "--auxiliary", "setup", "--node", node, "--raw", code=0
        ).out

    def test_it_is_kept_for_each_node(self):
        job = self.submit("kept", ['for i in $(seq 1 3000); do echo "line $i"; done'])
        follower = self.cluster.popen("logs", job, "-f", "--auxiliary", "setup", "--timeout", "60s")
        self.cluster.muster("wait", job, "--timeout", "60s", code=0)
        lines = [f"line {i}" for i in range(1, 3001)]
        followed = follower.communicate(timeout=DEADLINE)[0].splitlines()
        self.assertEqual(follower.returncode, 0)
        self.until_forgotten()
        for node in self.agents:
            self.assertEqual(self.raw(job, node).splitlines(), lines)
            self.assertEqual(
                [line for line in followed if line.startswith(f"[{node} setup] ")],
                [f"[{node} setup] {line}" for line in lines],
            )
        self.assertEqual(len(followed), 6000)
        tail = self.cluster.muster("logs", job, "--auxiliary", "all", "--tail", "1", code=0).out
        self.assertEqual(
            sorted(tail.splitlines()), ["[n0 setup] line 3000", "[n1 setup] line 3000"]
        )
        both = self.cluster.muster(
            "logs",
            job,
            "--auxiliary",
            "setup",
            "--rank",
            "1",
            "--grep",
            "trained|line 2999",
            code=0,
        ).out
        self.assertEqual(
            sorted(both.splitlines()),
            ["[n0 setup] line 2999", "[n1 setup] line 2999", "[rank 1] trained"],
        )
        self.assertEqual(
            sorted(self.cluster.muster("logs", job, code=0).out.splitlines()),
            ["[rank 0] trained", "[rank 1] trained"],
        )

    def test_a_name_that_is_not_there_says_what_there_is(self):
        job = self.submit("named", ["true"])
        done = self.cluster.muster("logs", job, "--auxiliary", "schedulr", code=10)
        self.assertIn(
            "it has no log of 'schedulr'; apart from its ranks' there is that of 'setup'", done.err
        )
        for wrong in (
            ["--auxiliary", "a b"],
            ["--auxiliary", "setup", "--raw"],
            ["--auxiliary", "setup", "--rank", "all"],
        ):
            self.cluster.muster("logs", job, *wrong, code=64)

    def test_one_that_fails_is_shown(self):
        """The sentence of the failure has one line of it; at 3 a.m. that was not enough."""
        self.cluster.write(
            "set_env.sh",
            "echo 'ASCEND_HOME_PATH is /usr/local/Ascend'\necho 'set_env.sh: libascendcl.so: not found' >&2\nreturn 3\n",
        )
        spec = PAIR.format(
            name="fails", commands=f"    - source {self.cluster.path('set_env.sh')}\n"
        )
        run = self.cluster.muster("run", self.cluster.spec(spec), "--timeout", "60s", code=1)
        says = [
            "setup] ASCEND_HOME_PATH is /usr/local/Ascend",
            "setup] set_env.sh: libascendcl.so: not found",
        ]
        for line in says:
            self.assertIn(line, run.out)
        self.assertNotIn("was lost", run.out, "a rank that was never there")
        self.until_forgotten()
        for follow in ([], ["-f"]):
            shown = self.cluster.muster("logs", "fails", *follow, code=0).out
            for line in says:
                self.assertIn(line, shown)

    def test_a_killed_agent_loses_no_byte(self):
        gates = {}
        for node in self.agents:
            os.mkfifo(self.cluster.path(f"gate-{node}"))
        commands = [
            f"exec 9< {self.cluster.dir}/gate-$MUSTER_NODE",
            'for part in 1 2 3; do read -r word <&9; for i in $(seq 1 800); do echo "$word $part line $i"; done; done',
        ]
        job = self.submit("killed", commands)
        for node in self.agents:
            gates[node] = open(
                self.cluster.path(f"gate-{node}"), "w", encoding="utf-8"
            )  # noqa: SIM115
            self.addCleanup(gates[node].close)

        def go(node):
            gates[node].write(node + "\n")
            gates[node].flush()

        def lines(node, parts):
            return [
                f"{node} {part} line {i}" for part in range(1, parts + 1) for i in range(1, 801)
            ]

        def there(node, parts):
            wait_until(
                lambda: self.raw(job, node).splitlines() == lines(node, parts),
                what=f"part {parts} of {node}",
            )

        for node in self.agents:
            go(node)
            there(node, 1)
        self.agents["n0"].stop(signal.SIGKILL)
        go("n0")  # nobody ships it
        go("n1")
        there("n1", 2)
        self.agents["n0"] = self.cluster.agent("n0", devices=1, wait=False)
        there("n0", 2)
        for node in self.agents:
            go(node)
        self.cluster.muster("wait", job, "--timeout", "60s", code=0)
        self.until_forgotten()
        for node in self.agents:
            self.assertEqual(self.raw(job, node).splitlines(), lines(node, 3))


if __name__ == "__main__":
    unittest.main()
