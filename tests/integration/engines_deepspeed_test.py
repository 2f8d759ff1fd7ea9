#!/usr/bin/python3
"""The engine `deepspeed` on 16 ranks of two nodes: a program that DeepSpeed's launcher would start, strict about the launcher's variables and --local_rank, with
ZeRO and without.

Run:  /usr/bin/python3 -B tests/integration/engines_deepspeed_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance.harness import UNHURRIED, EngineTest, option  # noqa: E402

STEPS, SAVED = 40, 5


def configuration(stage):
    return json.dumps(
        {
            "train_batch_size": 16,
            "train_micro_batch_size_per_gpu": 1,
            "steps_per_print": 1,
            "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}},
            "bf16": {"enabled": stage == 3},
            "zero_optimization": {"stage": stage},
        }
    )


class DeepSpeed(EngineTest):
    scripts = {"train.py": "deepspeed"}
    files = {f"zero-{stage}.json": configuration(stage) for stage in (0, 2, 3)}

    @classmethod
    def prepare(cls):
        cls.expected = {}
        for stage in (0, 2):
            job, record = cls.begin(f"whole-{stage}", stage, step_ms=5)
            cls.cluster.wait(job)
            cls.expected[stage] = record.losses()
            assert sorted(cls.expected[stage]) == list(range(1, STEPS + 1)), cls.cluster.story(job)
        cls.expected[3] = cls.expected[2]  # the same parts in other files

    @classmethod
    def begin(cls, name, stage, **spec):
        args = ["--deepspeed_config", f"zero-{stage}.json", "--steps", str(STEPS), "--save_interval", str(SAVED),
                "--save_dir", "${save.dir}", "--load_dir", "${resume.dir}"]  # fmt: skip
        return cls.submit(name, "deepspeed", {"script": "train.py", "args": args}, **spec)

    def survive(self, stage):
        job, record = self.begin(f"zero-{stage}", stage, step_ms=UNHURRIED)
        killed = self.kill_one(job, record, at=12)
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]),
            ("succeeded", 2),
            f"rank {killed} was killed\n{self.cluster.story(job)}",
        )
        self.check_blame(job, killed)
        self.assertEqual(record.losses(), self.expected[stage])
        self.resumed_step(record, shown)
        # each process prints a line of step 0 before it loads
        self.assertNotIn("did not go on", self.cluster.output("events", job))
        self.assertEqual(shown["progress"]["step"], STEPS)
        return record

    def test_zero_2(self):
        record = self.survive(2)
        for rank, start in record.starts(2).items():
            self.assertEqual(option(start["argv"], "--local_rank"), str(rank % 8))
            self.assertEqual(start["env"]["CROSS_RANK"], str(rank // 8))
            self.assertEqual((start["env"]["LOCAL_SIZE"], start["env"]["CROSS_SIZE"]), ("8", "2"))
        self.assertEqual(
            {option(start["argv"], "--load_dir") for start in record.starts(1).values()}, {""}
        )

    def test_zero_3(self):
        self.survive(3)

    def test_without_zero(self):
        self.survive(0)

    def test_torn(self):
        """Rank 0 writes `latest` while another rank is in the middle of its file."""
        for stage in (2, 3):
            with self.subTest(stage):
                self.check_torn(
                    lambda env, stage=stage: self.begin(
                        f"torn-{stage}", stage, step_ms=UNHURRIED, env=env
                    ),
                    15,
                    10,
                    self.expected[stage],
                    writers=range(1, 16),
                )

    def test_a_command_gets_no_local_rank(self):
        run = ["/usr/bin/python3", "train.py", "--deepspeed_config", "zero-2.json", "--steps", "3"]
        job, record = self.submit("command", "deepspeed", {"run": run})
        self.check_refused(
            job, record, "the launcher passes --local_rank to this program, and it is missing", 3
        )
        job, record = self.submit(
            "given", "deepspeed", {"run": [*run, "--local_rank", "${local_rank}"]}
        )
        self.cluster.wait(job)
        self.assertEqual(sorted(record.losses()), [1, 2, 3])

    def test_another_number_of_ranks(self):
        job, _ = self.begin("sixteen", 2, step_ms=5)
        self.cluster.wait(job)
        with self.assertRaisesRegex(AssertionError, r"8 ranks in place of 16.*ds_to_universal\.py"):
            self.cluster.output("resume", job, "--nodes", "1")


if __name__ == "__main__":
    unittest.main()
