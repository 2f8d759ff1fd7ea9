#!/usr/bin/python3
"""Evaluation during training, profiles, and a configuration without sink mode, with conformance trainers of three engines on two nodes of 910B.

An evaluation between two steps prints lines and takes time: it is no step, no end and no hang, and a run that was killed goes on to the same losses. What a
profile is told by (options, pairs of configuration keys, a changed copy of a file) each engine's trainer reads as that release does. Dumps and the profile of
Megatron-LM on GPUs: samples_run_test.py.

Run:  /usr/bin/python3 -B tests/integration/engines_observe_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import glob
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance.harness import UNHURRIED, EngineTest, configuration, option  # noqa: E402

STEPS = 20
EVALUATION = 'eval_dataset:\n  data_loader:\n    type: MindDataset\n    dataset_dir: ""\n'
CONFIG = "configs/a.yaml"
WITH_SINK = configuration(epochs=2, per_epoch=10, ranks=4, save_steps=4) + EVALUATION
GPT = """--use-mcore-models --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 1
    --tokenizer-type NullTokenizer --vocab-size 1024 --lr 1.25e-6 --bf16 --log-interval 1 --tensor-model-parallel-size 2""".split()
TOOL = {"profile": {"enable": False, "profile_type": "dynamic", "ranks": [0, 1, 2, 3],
                    "static_param": {"level": "level1", "save_path": "./npu_profiling", "start_step": 10, "end_step": 11}},
        "memory_profile": {"enable": False}}  # fmt: skip


class Observed(EngineTest):
    """Four ranks, two on each node."""

    ascend = True
    engine = ""

    @classmethod
    def setUpClass(cls):
        if cls is Observed:
            raise unittest.SkipTest("no tests of its own")
        super().setUpClass()

    def begin(self, name, launch, **more):
        return self.submit(name, self.engine, launch, nodes=2, devices="[0,2)", **more)

    def finished(self, job, attempt=1):
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]), ("succeeded", attempt), self.cluster.story(job)
        )
        return shown

    def killed_once(self, job, record):
        killed = self.kill_one(job, record, at=9)
        shown = self.finished(job, attempt=2)
        self.check_blame(job, killed)
        self.assertEqual(sorted(record.losses()), [*range(1, STEPS + 1)])
        return self.resumed_step(record, shown), shown["progress"]["step"]

    def evaluations(self, job, words):
        return self.cluster.output(
            "logs", "-f", job, "--rank", "3", "--attempt", "2", "--grep", words
        ).count(words)


class MindFormers(Observed):
    engine = "mindformers"
    scripts = {"run_mindformer.py": "mindformers-r0.6"}
    files = {CONFIG: WITH_SINK, "configs/plain.yaml": WITH_SINK.replace("sink_mode: True", "sink_mode: False"),
             "configs/own.yaml": "base_config: plain.yaml\n"}  # fmt: skip

    def test_evaluation_during_training(self):
        plain, without = self.begin("without", {"config": CONFIG})
        self.finished(plain)
        job, record = self.begin(
            "evaluated",
            {"config": CONFIG, "args": "--do_eval True --eval_dataset_dir /data/valid"},
            step_ms=UNHURRIED,
        )
        step, _ = self.killed_once(
            job, record
        )  # this release's lines count from the beginning of the epoch after a resume
        self.assertEqual(record.losses(), without.losses())
        # r0.6 in sink mode: at the end of every sink of two steps.
        self.assertEqual(
            self.evaluations(job, "Eval result: {'PerplexityMetric'"), (STEPS - step) // 2
        )

    def test_a_profile_and_what_it_costs(self):
        """Without sink mode; an attempt that follows a fault begins anew, and profiles again."""
        job, record = self.begin(
            "profiled",
            {"config": CONFIG},
            step_ms=UNHURRIED,
            resume="none",
            observe={"profile": {"start": 2, "stop": 6}},
        )
        self.kill_one(job, record, at=9)
        self.finished(job, attempt=2)
        self.assertEqual(record.events("loaded"), {})
        for attempt in (1, 2):
            start = record.starts(attempt)[3]
            self.assertEqual(
                (
                    option(start["argv"], "--profile_start_step"),
                    option(start["argv"], "--profile_stop_step"),
                ),
                ("2", "6"),
            )
            found = glob.glob(
                os.path.join(
                    start["env"]["MUSTER_SAVE_DIR"], "profile", "rank_*", "profiler_info.json"
                )
            )
            self.assertEqual(len(found), 4, found)

    def test_a_configuration_without_sink_mode(self):
        for number, name in enumerate(("configs/plain.yaml", "configs/own.yaml")):
            job, record = self.begin(f"sinkless-{number}", {"config": name})
            self.cluster.wait(job, code=1)
            self.assertEqual((self.cluster.show(job)["attempt"], record.starts(1)), (1, {}))
            path = os.path.join(self.code, "configs/plain.yaml")
            self.assertIn(f"launch.config: '{path}': runner_config.sink_mode is False: without sink mode a later attempt cannot load the ranks' parts of a "
                          "checkpoint; set it to True there or with launch.patch, or start every attempt from the beginning with resume: none",
                          self.cluster.output("why", job))  # fmt: skip
        job, _ = self.begin(
            "helped",
            {
                "config": "configs/plain.yaml",
                "patch": {"configs/plain.yaml": {"runner_config.sink_mode": True}},
            },
        )
        self.finished(job)
        job, _ = self.begin("anew", {"config": "configs/plain.yaml"}, resume="none")
        self.finished(job)


class MindSpeed(Observed):
    engine = "megatron"
    scripts = {"pretrain_gpt.py": "mindspeed-2.1"}

    def test_evaluation_during_training_and_a_profile(self):
        args = [*GPT, "--mock-data", "--train-iters", str(STEPS), "--save", "/x", "--load", "/x", "--save-interval", "4", "--ckpt-format", "torch",
                "--eval-interval", "5", "--eval-iters", "2"]  # fmt: skip
        job, record = self.begin(
            "evaluated",
            {"script": "pretrain_gpt.py", "args": args},
            step_ms=UNHURRIED,
            observe={"profile": {"start": 3, "stop": 6, "ranks": [0, 3]}},
        )
        step, shown = self.killed_once(job, record)
        self.assertEqual(shown, STEPS)
        # Between the steps, and on both sets of data at the end.
        self.assertEqual(
            self.evaluations(job, "validation loss at iteration"), STEPS // 5 - step // 5 + 2
        )
        out = record.starts(1)[0]["env"]["MUSTER_OUT"]
        self.assertEqual(
            sorted(os.listdir(os.path.join(out, "profile/attempt-1"))),
            ["rank-0.pt.trace.json", "rank-3.pt.trace.json"],
        )
        self.assertEqual(
            option(record.starts(2)[3]["argv"], "--profile-save-path"),
            os.path.join(out, "profile/attempt-2"),
        )


class MindSpeedMM(Observed):
    engine = "mindspeed-mm"
    scripts = {"pretrain_vlm.py": "mindspeed-mm-2.2"}
    files = {"mm/tools.json": json.dumps(TOOL), "mm/data.json": "{}", "mm/model.json": "{}"}

    def test_a_profile_by_a_copy_of_the_tool_file(self):
        args = [
            *GPT,
            "--train-iters",
            str(STEPS),
            "--mm-tool",
            "mm/tools.json",
            "--mm-data",
            "mm/data.json",
            "--mm-model",
            "mm/model.json",
        ]
        job, record = self.begin(
            "profiled",
            {"script": "pretrain_vlm.py", "args": args},
            observe={"profile": {"start": 5, "stop": 7, "ranks": [2]}},
        )
        self.finished(job)
        out = record.starts(1)[0]["env"]["MUSTER_OUT"]
        with open(
            os.path.join(out, "profile/attempt-1/rank-2_ascend_pt.json"), encoding="utf-8"
        ) as file:
            static = json.load(file)
        self.assertEqual(
            (static["level"], static["start_step"], static["end_step"]), ("level1", 5, 7)
        )
        self.assertEqual(
            os.listdir(os.path.join(out, "profile/attempt-1")), ["rank-2_ascend_pt.json"]
        )
        with open(os.path.join(self.code, "mm/tools.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), TOOL)


if __name__ == "__main__":
    unittest.main()
