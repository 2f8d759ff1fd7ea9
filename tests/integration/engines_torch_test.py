#!/usr/bin/python3
"""The engines `torch` and `command` on 16 ranks of two nodes: a training script that takes its place from torchrun's variables, given by the one and written
out for the other. The script is strict about all of them, and about what another launcher left behind.

Run:  /usr/bin/python3 -B tests/integration/engines_torch_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance.harness import UNHURRIED, EngineTest, option  # noqa: E402

STEPS = 40
ARGS = """--use-mcore-models --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 1
    --tokenizer-type NullTokenizer --mock-data --lr 1e-4 --log-interval 1 --ckpt-format torch_dist --save-interval 5""".split()
# What torchrun would give every worker, in the words of a spec.
WRITTEN_OUT = {
    "RANK": "${rank}", "LOCAL_RANK": "${local_rank}", "WORLD_SIZE": "${world_size}", "LOCAL_WORLD_SIZE": "${devices}", "GROUP_RANK": "${node.rank}",
    "GROUP_WORLD_SIZE": "${nodes}", "ROLE_NAME": "default", "ROLE_RANK": "${rank}", "ROLE_WORLD_SIZE": "${world_size}", "MASTER_ADDR": "${master.addr}",
    "MASTER_PORT": "${master.port}", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
}  # fmt: skip


class Torch(EngineTest):
    scripts = {"train.py": "megatron-core-0.12"}

    @classmethod
    def prepare(cls):
        job, record = cls.begin("whole", "torch", step_ms=5)
        cls.cluster.wait(job)
        cls.expected = record.losses()
        assert sorted(cls.expected) == list(range(1, STEPS + 1)), cls.cluster.story(job)

    @classmethod
    def begin(cls, name, engine, **spec):
        args = [
            *ARGS,
            "--train-iters",
            str(STEPS),
            "--save",
            "${save.dir}",
            "--load",
            "${resume.dir}",
        ]
        return cls.submit(name, engine, {"script": "train.py", "args": args}, **spec)

    def survive(self, name, engine, **spec):
        job, record = self.begin(name, engine, step_ms=UNHURRIED, **spec)
        killed = self.kill_one(job, record, at=12)
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]),
            ("succeeded", 2),
            f"rank {killed} was killed\n{self.cluster.story(job)}",
        )
        self.check_blame(job, killed)
        self.assertEqual(record.losses(), self.expected)
        self.assertEqual(
            {option(start["argv"], "--load") for start in record.starts(1).values()}, {""}
        )
        self.resumed_step(record, shown)
        return record

    def test_torch(self):
        record = self.survive("torch", "torch")
        self.assertEqual(
            {start["env"]["TORCHELASTIC_RESTART_COUNT"] for start in record.starts(2).values()},
            {"1"},
        )
        self.assertEqual(
            {start["env"]["GROUP_RANK"] for rank, start in record.starts(2).items() if rank >= 8},
            {"1"},
        )

    def test_command(self):
        record = self.survive("command", "command", env=WRITTEN_OUT)
        # Nothing is there that the spec does not say.
        names = {name for start in record.starts(1).values() for name in start["env"]}
        self.assertFalse(
            [
                name
                for name in names
                if name.startswith(("TORCH_", "NCCL_", "HCCL_", "GLOO_", "MS_", "RANK_"))
            ],
            names,
        )

    def test_what_another_launcher_left_behind(self):
        job, record = self.begin(
            "left", "torch", env={"RANK_TABLE_FILE": "/user/serverid/devindex/config/hccl.json"}
        )
        self.check_refused(
            job, record, "RANK_TABLE_FILE=/user/serverid/devindex/config/hccl.json is left over", 3
        )

    def test_a_rank_table_needs_cards(self):
        """MindFormers by rank table on plain slots: refused at submission, with what would help."""
        spec, record = self.cluster.job(
            "slots", "mindformers", self.code, {"config": "configs/run.yaml", "script": "train.py"}
        )
        with self.assertRaisesRegex(
            AssertionError,
            r"(?s)exit 2\n.*'n0' has \d+ cpu, 0 of them with an address.*needs the address of every card's network port.*launch\.launcher: msrun",
        ):
            self.cluster.submit(spec)
        self.assertEqual(record.starts(1), {})


if __name__ == "__main__":
    unittest.main()
