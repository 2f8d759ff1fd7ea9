#!/usr/bin/python3
"""The engine's own log (observe.plog) and the cores of ranks, on nodes whose cards are written down: a directory of each rank's own, quoted where a rank dies
without a word, gone with the run; and ranks that run where their cards are.

Run:  /usr/bin/python3 -B tests/integration/plog_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance.harness import Engines  # noqa: E402
from cluster import wait_until  # noqa: E402

LINE = ("[ERROR] HCCL(4711,python3):2026-01-07-22:43:10.004.871 [ranktable.cc:79] [4711][InitGroupStage][RanktableConfig]EI0004: Failed to parse the ranktable "
        "file. Reason: made up by rank 1")  # fmt: skip
DIES = f"""
mkdir -p "$ASCEND_PROCESS_LOG_PATH/debug/plog" && [ -w "$ASCEND_PROCESS_LOG_PATH" ] || exit 9
[ "$RANK" = 1 ] || exec sleep 100
echo "$ASCEND_PROCESS_LOG_PATH" > "$TO/where"
ln -s /etc/passwd "$ASCEND_PROCESS_LOG_PATH/debug/plog/plog-1_1.log"
echo '{LINE}' > "$ASCEND_PROCESS_LOG_PATH/debug/plog/plog-4711_20260107224103518.log"
exit 1
"""
TELLS = """
import json, os
with open(f"{os.environ['TO']}/rank-{os.environ['RANK']}", "w") as file:
    json.dump([sorted(os.sched_getaffinity(0)), dict(os.environ)], file)
"""


class Nodes(Engines):
    """Two cards on NUMA node 0."""

    def __init__(self):
        super().__init__(nodes=1, devices=2, ascend=True)

    def _cards(self, index):
        path = os.path.join(self.work, f"cards-{index}")
        with open(path, "w", encoding="ascii") as file:
            for card in range(self.devices):
                file.write(
                    f"id={card} type=ascend910b name=910B3 address=192.{card + 1}.1.10 numa=0\n"
                )
        return path


def cpus(text):
    """{0, 1, 2, 8} of "0-2,8"."""
    found = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


class Plog(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Nodes()
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)

    def job(self, name, run, **more):
        spec = self.cluster.torch_spec(name, {"run": run})
        spec.update(**more)
        to = os.path.join(self.cluster.work, name)
        os.mkdir(to)
        spec.setdefault("runtime", {}).setdefault("env", {})["TO"] = to
        spec["resources"]["type"] = "ascend"
        spec["recovery"]["max_restarts"] = 0
        return spec

    def run_ranks(self, name, **more):
        """[processors, environment] of each rank of a job that tells them."""
        spec = self.job(name, ["/usr/bin/python3", "-c", TELLS], **more)
        job = self.cluster.submit(spec)
        self.cluster.wait(job)
        found = []
        for rank in range(self.cluster.devices):
            with open(
                os.path.join(spec["runtime"]["env"]["TO"], f"rank-{rank}"), encoding="utf-8"
            ) as file:
                found.append(json.load(file))
        return found, job

    def test_a_rank_that_dies_without_a_word_is_spoken_for(self):
        # The fact of a bad exit waits a few milliseconds for its line: a busy machine may take longer than that, though not always.
        for name in [f"silent-{i}" for i in range(5)]:
            spec = self.job(name, ["sh", "-c", DIES])
            job = self.cluster.submit(spec)
            self.cluster.wait(job, code=1)
            why = self.cluster.output("why", job)
            if LINE in why:
                break
        self.assertIn("plog-4711_20260107224103518.log: " + LINE, why)
        self.assertIn("rank 1", why)
        plan = self.cluster.output(
            "plan", os.path.join(self.cluster.work, f"{name}.yaml"), "--rank", "1"
        )
        self.assertRegex(
            plan,
            r"ASCEND_PROCESS_LOG_PATH='\(run directory\)/plog/rank-1' +# observe\.plog; the node reports its run directory when it has started\n",
        )

        # On the node's own disk, below the run directory, and gone with it; the node has told where that is.
        with open(os.path.join(spec["runtime"]["env"]["TO"], "where"), encoding="utf-8") as file:
            where = file.read().strip()
        self.assertTrue(where.startswith(os.path.join(self.cluster.agent_dir("n0"), "runs")), where)
        self.assertRegex(
            self.cluster.output("env", job, "--rank", "1"),
            rf"ASCEND_PROCESS_LOG_PATH={where} +# observe\.plog\n",
        )
        wait_until(lambda: not os.path.exists(where), what=f"'{where}' to go with its run")

    def test_the_jobs_own_directory_wins_and_nobody_makes_another(self):
        mine = os.path.join(self.cluster.work, "mine")
        found, job = self.run_ranks(
            "own", runtime={"env": {"ASCEND_PROCESS_LOG_PATH": mine}}, observe={"plog": True}
        )
        self.assertEqual([env["ASCEND_PROCESS_LOG_PATH"] for _, env in found], [mine, mine])
        self.assertRegex(
            self.cluster.output("env", job, "--rank", "0"),
            r"ASCEND_PROCESS_LOG_PATH=.*runtime\.env",
        )

    def test_who_has_none(self):
        self.assertNotIn(
            "ASCEND_PROCESS_LOG_PATH", self.run_ranks("off", observe={"plog": False})[0][0][1]
        )
        found, _ = self.run_ranks("asked", observe={"plog": True})
        self.assertNotEqual(
            found[0][1]["ASCEND_PROCESS_LOG_PATH"], found[1][1]["ASCEND_PROCESS_LOG_PATH"]
        )

    @unittest.skipUnless(
        os.path.exists("/sys/devices/system/node/node0/cpulist"),
        "the kernel tells nothing of NUMA nodes here",
    )
    def test_ranks_run_where_their_cards_are(self):
        found, _ = self.run_ranks("bound")
        allowed = os.sched_getaffinity(0)
        with open("/sys/devices/system/node/node0/cpulist", encoding="ascii") as file:
            near = cpus(file.read().strip()) & allowed
        for processors, env in found:
            self.assertEqual(set(processors), cpus(env["MUSTER_CPUS"]))
        self.assertEqual(set(found[0][0]) | set(found[1][0]), near)
        first, second = set(found[0][0]), set(found[1][0])
        self.assertTrue(first == second or not first & second, "they share all or nothing")

        found, _ = self.run_ranks("unbound", runtime={"env": {"CPU_AFFINITY_CONF": "1"}})
        for processors, env in found:
            self.assertEqual(set(processors), allowed)
            self.assertNotIn("MUSTER_CPUS", env)


if __name__ == "__main__":
    unittest.main()
