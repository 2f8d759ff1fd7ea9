#!/usr/bin/python3
"""MindFormers as msrun starts it, 16 ranks on two nodes: a conformance trainer with r1.0's arguments, environment, log lines and checkpoints, whose ranks meet
at MindSpore's scheduler, a process of its own beside rank 0.

r1.0 renames finished checkpoints into place and writes meta.json behind them; rank 0 decides by the meta files from which step all go on.

Run:  /usr/bin/python3 -B tests/integration/engines_msrun_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import functools
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance import state  # noqa: E402
from conformance.harness import (
    SAMPLES,
    UNHURRIED,
    EngineTest,
    configuration,
    kill_process,
    option,
)  # noqa: E402

STEPS = 40
CONFIG = "configs/llama2/run_llama2_7b_finetune.yaml"


class Msrun(EngineTest):
    ascend = True
    scripts = {"run_mindformer.py": "mindformers-r1.0"}
    files = {CONFIG: configuration(epochs=4, per_epoch=10, ranks=16, save_steps=4)}
    sample = os.path.join(SAMPLES, "mindformers-finetune/job.yaml")

    @classmethod
    def prepare(cls):
        cls.weights = os.path.join(cls.cluster.work, "llama2_7b.ckpt")
        with open(cls.weights, "wb") as file:
            file.write(state.ckpt_bytes({"weights": f"{state.mix(5):016x}"}, []))
        cls.whole, cls.whole_record = cls.begin("whole", step_ms=5)
        cls.cluster.wait(cls.whole)
        cls.expected = cls.whole_record.losses()
        assert sorted(cls.expected) == list(range(1, STEPS + 1)), cls.cluster.story(cls.whole)

    @classmethod
    def begin(cls, name, step_ms=0, env=None):
        # Storage that r1.0 takes for shared: else ranks beyond eight go by the newest file.
        return cls.from_sample(
            cls.sample,
            name,
            step_ms,
            {"--load_checkpoint": cls.weights},
            env={"SHARED_PATHS": cls.cluster.dir, **(env or {})},
        )

    def check_cluster(self, record, attempt):
        starts = record.starts(attempt)
        self.assertEqual(sorted(starts, key=str), sorted([*range(16), "scheduler"], key=str))
        scheduler = starts["scheduler"]["env"]
        self.assertEqual(
            (scheduler["MS_ROLE"], scheduler["MS_WORKER_NUM"], scheduler["MS_SCHED_HOST"]),
            ("MS_SCHED", "16", "127.0.0.1"),
        )
        for rank in range(16):
            env = starts[rank]["env"]
            self.assertEqual(
                (env["MS_ROLE"], env["MS_NODE_ID"], env["RANK_ID"]),
                ("MS_WORKER", str(rank), str(rank)),
            )
            self.assertEqual(
                (env["MS_SCHED_HOST"], env["MS_SCHED_PORT"]),
                (scheduler["MS_SCHED_HOST"], scheduler["MS_SCHED_PORT"]),
            )
            self.assertNotIn("RANK_TABLE_FILE", env)
            self.assertEqual(env["ASCEND_RT_VISIBLE_DEVICES"], "0,1,2,3,4,5,6,7")
        self.assertEqual(len({start["cwd"] for start in starts.values()}), 17)

    def test_the_cluster(self):
        self.check_cluster(self.whole_record, 1)
        progress = self.progress(self.whole)
        self.assertEqual((progress["step"], progress["total"]), (STEPS, STEPS), progress)
        self.assertEqual(self.kept_checkpoints(self.whole, 1)[-1], STEPS)

    def test_the_schedulers_log(self):
        """It stayed on the node, and went with the run directory."""
        out = self.cluster.output(
            "logs", self.whole, "-f", "--auxiliary", "scheduler", "--timeout", "60s"
        )
        self.assertRegex(out, r"(?m)^\[n0 scheduler\] The cluster of 16 workers is built$")
        self.assertNotIn("[rank", out)

    def check_survived(self, job, record):
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]), ("succeeded", 2), self.cluster.story(job)
        )
        self.assertEqual(record.losses(), self.expected)
        self.check_cluster(record, 2)
        step = self.resumed_step(record, shown)
        self.assertIn(step, self.kept_checkpoints(job, 1))
        self.assertNotEqual(
            record.starts(1)["scheduler"]["env"]["MS_SCHED_PORT"],
            record.starts(2)["scheduler"]["env"]["MS_SCHED_PORT"],
        )
        for rank in range(16):
            argv = record.starts(2)[rank]["argv"]
            self.assertEqual(
                (
                    option(argv, "--resume_training"),
                    option(argv, "--auto_trans_ckpt"),
                    option(argv, "--run_mode"),
                ),
                ("True", "False", "finetune"),
            )
            self.assertEqual(
                option(argv, "--load_checkpoint"),
                record.starts(2)[rank]["env"]["MUSTER_RESUME_DIR"],
            )
            self.assertEqual(
                option(record.starts(1)[rank]["argv"], "--load_checkpoint"), self.weights
            )

    def test_a_killed_rank(self):
        job, record = self.begin("killed", step_ms=UNHURRIED)
        killed = self.kill_one(job, record, at=14)
        self.check_survived(job, record)
        self.check_blame(job, killed)

    def test_killed_before_the_rename(self):
        self.check_torn(
            functools.partial(self.begin, "torn"), torn=12, before=8, expected=self.expected
        )

    def test_a_killed_scheduler(self):
        """No rank of its own, and none can go on without it."""
        job, record = self.begin("headless", step_ms=UNHURRIED)
        record.wait(job, 14)
        schedulers = [
            process
            for process in self.cluster.processes()
            if process.env.get("MS_ROLE") == "MS_SCHED"
        ]
        self.assertEqual(len(schedulers), 1, schedulers)
        self.assertTrue(kill_process(schedulers[0]))
        self.check_survived(job, record)
        self.assertIn(
            "scheduler", "".join(event.get("text", "") for event in self.cluster.events(job))
        )


if __name__ == "__main__":
    unittest.main()
