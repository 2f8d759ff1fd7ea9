#!/usr/bin/python3
"""MindFormers at another size where no node sees another one's files: what lies below ${out} is a disk of each node's own, in a mount namespace of its agent.
16 ranks on two nodes, cancelled behind a checkpoint, gone on with by 8 ranks on one: the transform runs on the third node, on a CPU slot, and has to get every
shard and every strategy file from the others; the training has to get what the transform made. The losses are those of the run that nobody disturbed.

Run:  /usr/bin/python3 -B tests/integration/engines_own_disks_test.py [-v]       (MUSTER_BIN names the binaries' folder; needs root, to mount)
"""

import json
import os
import re
import shutil
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from cluster import DEADLINE, Directory  # noqa: E402
from conformance.harness import (
    UNHURRIED,
    Engines,
    EngineTest,
    Record,
    configuration,
    kill_rank,
)  # noqa: E402
from own_disks import WHY_NOT, OwnOutputs, may_mount  # noqa: E402

STEPS, SAVED = 40, 4
CONFIG = "configs/llama2/run_llama2_7b.yaml"
EIGHT = f"launch.patch={{{CONFIG}: {{parallel_config.model_parallel: 1}}}}"


class Machines(OwnOutputs, Engines):
    """n0 and n1 have eight cards each, n2 CPU slots; what is below ${out} is another directory on each."""

    def __init__(self, ascend=True):
        super().__init__(nodes=3, devices=8, ascend=ascend)

    def agent(self, name, **more):
        return super().agent(name, before=self.before_own(name), **more)

    def device_list(self, name):
        return None if name == "n2" else super().device_list(name)

    def on_disk(self, name, path):
        """Where that node's `path` is for this test."""
        return os.path.join(self.disk(name), os.path.relpath(path, self.outputs()))


@unittest.skipUnless(may_mount(), WHY_NOT)
class OwnDisks(EngineTest):
    ascend = True
    cluster_type = Machines
    scripts = {
        "run_mindformer.py": "mindformers-r1.0",
        "mindformers/tools/transform_ckpt.py": "mindformers-r1.0",
    }
    files = {
        CONFIG: configuration(epochs=4, per_epoch=10, ranks=8, save_steps=SAVED).replace(
            "model_parallel: 1", "model_parallel: 2"
        )
    }

    @classmethod
    def prepare(cls):
        whole, record = cls.train("whole", step_ms=5)
        cls.cluster.wait(whole)
        cls.expected = record.losses()
        assert sorted(cls.expected) == list(range(1, STEPS + 1)), cls.cluster.story(whole)
        cls.old, _ = cls.train("cut", step_ms=UNHURRIED)
        cls.cluster.output("wait", cls.old, "--for", "checkpoint")
        cls.cluster.output("cancel", cls.old)
        cls.cluster.wait(cls.old, code=3)
        cls.saved = max(item["step"] for item in cls.cluster.show(cls.old)["checkpoints"])

    @classmethod
    def train(cls, name, step_ms):
        return cls.submit(
            name,
            "mindformers",
            {"config": CONFIG, "mode": "train", "launcher": "msrun"},
            step_ms=step_ms,
            nodes=2,
            checkpoint={"storage": "local"},
        )

    def resume(self, name, *words, code=0):
        record = Record(self.cluster, name)
        done = self.cluster.muster("resume", "cut", "--nodes", "1", "--set", EIGHT, *words, "--env", f"CONFORMANCE_RECORD={record.path}", "--env",
                                "CONFORMANCE_STEP_MS=5")  # fmt: skip
        self.assertEqual(done.code, code, f"{done.out}{done.err}\n{self.cluster.log_end('n2')}")
        chain = next(word for word in done.err.split() if word.startswith("'cut-r")).strip("'")
        return chain, record

    def back(self, node):
        """Started again, and connected."""
        self.cluster.restart(node)
        end = time.monotonic() + DEADLINE
        watch = Directory(os.path.join(self.cluster.dir, "log"))
        self.addCleanup(watch.close)
        while not next(
            one
            for one in json.loads(self.cluster.output("node", "ls", "-o", "json"))["items"]
            if one["name"] == node
        ).get("connected"):
            watch.wait(0.2)
            self.assertLess(time.monotonic(), end, self.cluster.log_end(node))

    def ranks_on(self, node, attempt_dir):
        place = os.path.join(self.cluster.on_disk(node, attempt_dir), "checkpoint")
        return (
            sorted(int(entry[5:]) for entry in os.listdir(place) if entry.startswith("rank_"))
            if os.path.isdir(place)
            else []
        )

    def steps_on(self, node, attempt_dir):
        """What the engine has not deleted: it keeps the newest few, and a slow agent does not know of each of them."""
        place = os.path.join(self.cluster.on_disk(node, attempt_dir), "checkpoint", "rank_0")
        found = (re.search(r"-(\d+)_(\d+)\.ckpt$", name) for name in os.listdir(place))
        return {int(name[1]) * int(name[2]) for name in found if name}

    def nothing_of_fetches(self, node):
        left = [
            name
            for _, dirs, _ in os.walk(self.cluster.disk(node))
            for name in dirs
            if ".fetch-" in name
        ]
        self.assertEqual(left, [], "nothing is left beside")

    def test_half_the_ranks_go_on_with_the_same_losses(self):
        old = self.cluster.show(self.old)["attempts"][0]["saveDir"]
        self.assertEqual(
            [len(self.ranks_on(node, old)) for node in ("n0", "n1")],
            [8, 8],
            "each node has its own ranks' alone",
        )
        chain, record = self.resume("half")
        losses = record.losses()
        self.assertEqual(sorted(losses), [*range(self.saved + 1, STEPS + 1)])
        self.assertLessEqual(losses.items(), self.expected.items())
        nodes = {
            stage: self.cluster.show(f"{chain}.{stage}")["attempts"][0]["nodes"][0]["node"]
            for stage in ("strategy", "transform", "train")
        }
        self.assertEqual(nodes["transform"], "n2")
        self.assertEqual(self.ranks_on("n2", old), [*range(16)])
        for node in ("n0", "n1", "n2"):
            self.nothing_of_fetches(node)

    def on_one_node(self, name):
        """A job that has ended: (where it saved, the node that has nothing of it, a step)."""
        launch = {
            "config": CONFIG,
            "mode": "train",
            "launcher": "msrun",
            "patch": {CONFIG: {"parallel_config.model_parallel": 1}},
        }
        job, _ = self.submit(
            name, "mindformers", launch, step_ms=5, nodes=1, checkpoint={"storage": "local"}
        )
        self.cluster.wait(job)
        attempt = self.cluster.show(job)["attempts"][0]
        other = {"n0": "n1", "n1": "n0"}[attempt["nodes"][0]["node"]]
        known = {item["step"] for item in self.cluster.show(job)["checkpoints"]}
        kept = self.steps_on(attempt["nodes"][0]["node"], attempt["saveDir"])
        return attempt["saveDir"], other, sorted(known & kept)[-3:][0]

    def test_the_same_size_on_another_node(self):
        saved, other, step = self.on_one_node("one")
        record = Record(self.cluster, "moved")
        done = self.cluster.muster(
            "resume",
            "one",
            "--from",
            str(step),
            "--set",
            f"resources.hosts=[{other}]",
            "--env",
            f"CONFORMANCE_RECORD={record.path}",
        )
        self.assertEqual(done.code, 0, f"{done.out}{done.err}\n{self.cluster.log_end(other)}")
        losses = record.losses()
        self.assertEqual(sorted(losses), [*range(step + 1, STEPS + 1)])
        self.assertLessEqual(losses.items(), self.expected.items())
        self.assertEqual(self.ranks_on(other, saved), [*range(8)])

    def test_an_agent_that_is_killed_behind_its_fetch(self):
        """Right after the step of its start; the next attempt goes on as if nobody had been killed."""
        saved, other, step = self.on_one_node("fetched")
        self.cluster.kill(other)
        self.addCleanup(self.back, other)
        killed = self.cluster.agent(other, wait=False, env={"MUSTER_FAILPOINT": "start:fetch:kill"})
        record = Record(self.cluster, "fetching")
        job = self.cluster.output("resume", "fetched", "-d", "--from", str(step), "--set", f"resources.hosts=[{other}]", "--env",
                                  f"CONFORMANCE_RECORD={record.path}").split()[0]  # fmt: skip
        self.cluster.jobs.append(job)
        code, output = killed.ended()
        self.assertEqual(code, -signal.SIGKILL, output)
        self.back(other)
        self.cluster.wait(job)
        attempts = self.cluster.show(job)["attempts"]
        ran = [one["number"] for one in attempts if one.get("exits")]
        self.assertEqual((len(attempts), ran), (2, [2]), self.cluster.story(job))
        losses = record.losses()
        self.assertEqual(sorted(losses), [*range(step + 1, STEPS + 1)])
        self.assertLessEqual(losses.items(), self.expected.items())
        self.assertEqual(self.ranks_on(other, saved), [*range(8)])
        self.nothing_of_fetches(other)

    def test_a_later_attempt_on_both_nodes_goes_on(self):
        """Neither node has all ranks' shards, and neither needs them."""
        job, record = self.train("restart", step_ms=UNHURRIED)
        self.cluster.output("wait", job, "--for", "checkpoint")
        kill_rank(self, self.cluster, job, lambda ranks: ranks[0])
        self.cluster.wait(job)
        attempts = self.cluster.show(job)["attempts"]
        self.assertEqual(len(attempts), 2, self.cluster.story(job))
        losses = record.losses()
        self.assertEqual(sorted(losses), [*range(1, STEPS + 1)])
        self.assertLessEqual(losses.items(), self.expected.items())

    def test_one_whole_file(self):
        path = self.cluster.output("ckpt", "export", "cut", "--whole").strip()
        self.assertTrue(os.path.getsize(self.cluster.on_disk("n2", path)) > 0)

    def test_a_sender_that_is_killed_costs_an_attempt(self):
        """n1's agent is stopped, so that the transform waits for its files, and is killed then; a new one sends them to the next attempt."""
        fetched = os.path.join(self.cluster.disk("n2"), self.old)
        shutil.rmtree(fetched, ignore_errors=True)
        watch = Directory(self.cluster.disk("n2"))
        self.addCleanup(watch.close)
        self.addCleanup(self.back, "n1")
        self.cluster.daemon("n1").send_signal(signal.SIGSTOP)
        record = Record(self.cluster, "killed")
        job = self.cluster.output("resume", "cut", "-d", "--nodes", "1", "--set", EIGHT, "--set", "resources.hosts=[n0]", "--set",
                                  "recovery.backoff=2s", "--env", f"CONFORMANCE_RECORD={record.path}").strip()  # fmt: skip
        chain = self.cluster.show(job)["spec"]["stage"]["chainName"]
        end = time.monotonic() + DEADLINE
        while not os.path.exists(fetched) or "shards of other nodes" not in self.cluster.output(
            "why", f"{chain}.transform"
        ):
            watch.wait(0.2)
            self.assertLess(time.monotonic(), end, self.cluster.story(f"{chain}.transform"))
        self.cluster.kill("n1")
        # Only then: n0's files come first, and a node that is back by then is asked as if it had never been away.
        self.cluster.wait_event(
            lambda event: event["type"] == "attempt-broke", f"{chain}.transform"
        )
        self.back("n1")
        self.cluster.wait(chain)
        attempts = self.cluster.show(f"{chain}.transform")["attempts"]
        self.assertGreater(len(attempts), 1)
        self.assertIn("node 'n1'", json.dumps(attempts[0]))
        losses = record.losses()
        self.assertEqual(sorted(losses), [*range(self.saved + 1, STEPS + 1)])
        self.assertLessEqual(losses.items(), self.expected.items())

    def test_a_node_that_is_away_is_named(self):
        self.cluster.kill("n1")
        self.addCleanup(self.back, "n1")
        chain, _ = self.resume(
            "away", "--set", "recovery.max_restarts=0", "--set", "resources.hosts=[n0]", code=1
        )
        why = self.cluster.output("why", f"{chain}.transform")
        old = self.cluster.show(self.old)["attempts"][0]["saveDir"]
        self.assertIn(f"node 'n2' could not start its part: fetching '{old}' from node 'n1' for job '{chain}.transform': it is on that node alone, and the "
                      "node is not connected; start it again", why)  # fmt: skip


if __name__ == "__main__":
    unittest.main()
