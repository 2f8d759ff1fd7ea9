#!/usr/bin/python3
"""Every engine on `muster local up --nodes 2 --devices 8 --device-type ascend910b`, the command as a user types it: 16 ranks each, one of them is killed, and
the next attempt goes on from the last whole checkpoint with the engine's own resume arguments. The trainers are the conformance trainers of one release each.

Run:  /usr/bin/python3 -B tests/integration/engines_local_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance.harness import (
    SAMPLES,
    UNHURRIED,
    Engines,
    EngineTest,
    configuration,
    option,
)  # noqa: E402

STEPS = 20
CONFIG = "configs/llama2/run_llama2_7b.yaml"
MEGATRON = f"""--use-mcore-models --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 1
    --tokenizer-type NullTokenizer --vocab-size 1024 --mock-data --lr 1e-4 --bf16 --log-interval 1 --save-interval 4 --train-iters {STEPS}
    --ckpt-format torch_dist""".split()


class LocalUp(Engines):
    """A cluster of muster's own making: its daemons are nobody's children here."""

    def __enter__(self):
        self.up()
        return self

    def up(self):
        answer = self.output("local", "up", "--state-dir", self.dir, "--nodes", "2", "--devices", "8", "--device-type", "ascend910b", "--controller-arg=--port-range",
                             f"--controller-arg={self.port_range()}")  # fmt: skip
        assert "controller and 2 nodes with 8 devices each are up" in answer, answer
        self._read_endpoint()

    def _end(self):
        self.output("local", "down", "--state-dir", self.dir)
        return super()._end()


class OnLocalUp(EngineTest):
    ascend = True
    cluster_type = LocalUp
    scripts = {
        "run_mindformer.py": "mindformers-r1.0",
        "pretrain_gpt.py": "megatron-core-0.12",
        "pretrain_vlm.py": "mindspeed-mm-2.2",
    }
    files = {CONFIG: configuration(epochs=2, per_epoch=10, ranks=16, save_steps=4), "examples/qwen2.5vl/data_7b.json": "{}\n",
             "examples/qwen2.5vl/model_7b.json": "{}\n", "mindspeed_mm/tools/tools.json": "{}\n"}  # fmt: skip

    @classmethod
    def begin(cls, engine, launch, name=None, **more):
        return cls.submit(name or engine, engine, launch, step_ms=UNHURRIED, **more)

    def survive(self, submitted, loads, saves):
        job, record = submitted
        killed = self.kill_one(job, record, at=9)
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]),
            ("succeeded", 2),
            f"rank {killed} was killed\n{self.cluster.story(job)}",
        )
        self.check_blame(job, killed)
        self.assertEqual(sorted(record.losses()), list(range(1, STEPS + 1)))
        self.assertIn(self.resumed_step(record, shown), (4, 8, 12, 16))
        starts = {rank: start for rank, start in record.starts(2).items() if rank != "scheduler"}
        self.assertEqual(sorted(starts), [*range(16)])
        for start in starts.values():
            self.assertEqual(option(start["argv"], loads), start["env"]["MUSTER_RESUME_DIR"])
            self.assertEqual(option(start["argv"], saves), start["env"]["MUSTER_SAVE_DIR"])
        return record.starts(1), starts

    def test_mindformers_by_rank_table(self):
        first, second = self.survive(
            self.begin("mindformers", {"config": CONFIG}, env={"SHARED_PATHS": self.cluster.dir}),
            "--load_checkpoint",
            "--output_dir",
        )
        for starts in (first, second):
            self.assertEqual(sorted((start["env"]["MUSTER_NODE"], int(start["env"]["DEVICE_ID"])) for start in starts.values()),
                             [(node, card) for node in ("n0", "n1") for card in range(8)])  # fmt: skip
        self.assertEqual(
            {option(start["argv"], "--resume_training") for start in first.values()}, {None}
        )
        self.assertEqual(
            {option(start["argv"], "--resume_training") for start in second.values()}, {"True"}
        )

    def test_mindformers_by_msrun(self):
        _, second = self.survive(self.begin("mindformers", {"config": CONFIG, "launcher": "msrun"}, name="msrun", env={"SHARED_PATHS": self.cluster.dir}),
                                 "--load_checkpoint", "--output_dir")  # fmt: skip
        self.assertEqual(
            {option(start["argv"], "--resume_training") for start in second.values()}, {"True"}
        )
        self.assertEqual({start["env"]["MS_WORKER_NUM"] for start in second.values()}, {"16"})

    def test_megatron(self):
        args = [
            *MEGATRON,
            "--tensor-model-parallel-size",
            "8",
            "--load",
            "/nowhere/ckpt",
            "--save",
            "/nowhere/ckpt",
        ]
        first, second = self.survive(
            self.begin("megatron", {"script": "pretrain_gpt.py", "args": args}), "--load", "--save"
        )
        self.assertEqual(
            {option(start["argv"], "--load") for start in first.values()}, {"/nowhere/ckpt"}
        )
        self.assertEqual(
            {start["env"]["TORCHELASTIC_RESTART_COUNT"] for start in second.values()}, {"1"}
        )

    def test_mindspeed_mm(self):
        sample = os.path.join(SAMPLES, "mindspeed-mm-finetune/job.yaml")
        begun = self.from_sample(
            sample,
            "mindspeed-mm",
            UNHURRIED,
            {"--load": "/nowhere/weights", "--train-iters": STEPS, "--save-interval": 4},
        )
        self.survive(begun, "--load", "--save")

    def test_torch_and_command(self):
        args = [*MEGATRON, "--save", "${save.dir}", "--load", "${resume.dir}"]
        self.survive(
            self.begin("torch", {"script": "pretrain_gpt.py", "args": args}), "--load", "--save"
        )
        written_out = {"RANK": "${rank}", "LOCAL_RANK": "${local_rank}", "WORLD_SIZE": "${world_size}", "LOCAL_WORLD_SIZE": "${devices}", "GROUP_RANK": "${node.rank}",
                       "GROUP_WORLD_SIZE": "${nodes}", "ROLE_NAME": "default", "ROLE_RANK": "${rank}", "ROLE_WORLD_SIZE": "${world_size}",
                       "MASTER_ADDR": "${master.addr}", "MASTER_PORT": "${master.port}", "TORCHELASTIC_RESTART_COUNT": "0",
                       "TORCHELASTIC_MAX_RESTARTS": "0"}  # fmt: skip
        self.survive(
            self.begin("command", {"script": "pretrain_gpt.py", "args": args}, env=written_out),
            "--load",
            "--save",
        )

    def test_what_there_is(self):
        nodes = self.cluster.output("node", "ls")
        self.assertIn("ascend910b", nodes)
        again = self.cluster.muster(
            "local", "up", "--state-dir", self.cluster.dir, "--device-type", "cpu"
        )
        self.assertEqual(again.code, 0, again.err)
        self.assertIn("the devices of 'n0' are of type ascend910b, not cpu", again.err)


if __name__ == "__main__":
    unittest.main()
