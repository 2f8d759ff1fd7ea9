#!/usr/bin/python3
"""MindSpeed-MM's finetuning of a vision-language model, 16 ranks on two nodes, with the arguments and the environment of its own example script: a conformance
trainer with 2.2.0's arguments, log lines and checkpoints, and one with those of 26.1.0's FSDP2 back end, which has a configuration file and no arguments. Both
start from converted weights (`release`), and go on from their own checkpoint after a fault.

Run:  /usr/bin/python3 -B tests/integration/engines_mindspeed_mm_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import functools
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance import state  # noqa: E402
from conformance.harness import SAMPLES, UNHURRIED, EngineTest, option  # noqa: E402

STEPS = 40


class MindSpeedMM(EngineTest):
    ascend = True
    scripts = {"pretrain_vlm.py": "mindspeed-mm-2.2"}
    files = {
        "examples/qwen2.5vl/data_7b.json": "{}\n",
        "examples/qwen2.5vl/model_7b.json": "{}\n",
        "mindspeed_mm/tools/tools.json": "{}\n",
    }
    sample = os.path.join(SAMPLES, "mindspeed-mm-finetune/job.yaml")

    @classmethod
    def prepare(cls):
        """Weights as mm-convert leaves them: no step, no optimizer, a tracker that says "release". TP 1, PP 2."""
        cls.weights = os.path.join(cls.cluster.work, "Qwen2.5-VL-7B-Instruct")
        for part in range(2):
            directory = os.path.join(cls.weights, "release", f"mp_rank_00_{part:03d}")
            os.makedirs(directory)
            with open(os.path.join(directory, "model_optim_rng.pt"), "wb") as file:
                file.write(
                    state.zip_bytes(
                        {
                            "step": 0,
                            "shard": part,
                            "world": 16,
                            "weights": f"{state.mix(99 + part):016x}",
                        }
                    )
                )
        with open(
            os.path.join(cls.weights, "latest_checkpointed_iteration.txt"), "w", encoding="ascii"
        ) as file:
            file.write("release")
        cls.whole, record = cls.begin("whole", step_ms=5)
        cls.cluster.wait(cls.whole)
        cls.expected = record.losses()
        assert sorted(cls.expected) == list(range(1, STEPS + 1)), cls.cluster.story(cls.whole)

    @classmethod
    def begin(cls, name, *more, step_ms=0):
        """The sample, with this test's places in it."""
        return cls.from_sample(
            cls.sample,
            name,
            step_ms,
            {"--load": cls.weights, "--train-iters": STEPS, "--save-interval": 5},
            more,
        )

    def test_an_orderly_end_before_the_last_step_goes_on(self):
        job, record = self.begin("interval", "--exit-interval", "25")
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]), ("succeeded", 2), self.cluster.story(job)
        )
        ends = [
            event["text"] for event in self.cluster.events(job) if event["type"] == "attempt-ended"
        ]
        self.assertIn(f"every rank ended with status 0 after step 25 of {STEPS}", ends[0])
        self.assertEqual(record.losses(), self.expected)

    def test_weights_are_taken_once_and_checkpoints_after_a_fault(self):
        job, record = self.begin("killed", step_ms=UNHURRIED)
        killed = self.kill_one(job, record, at=12)
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]), ("succeeded", 2), self.cluster.story(job)
        )
        self.check_blame(job, killed)
        self.assertEqual(record.losses(), self.expected)
        first, second = record.starts(1), record.starts(2)
        self.assertEqual(sorted(second), [*range(16)])
        self.assertEqual(
            {event["source"] for event in record.events("loaded", 1).values()}, {self.weights}
        )
        self.resumed_step(record, shown)
        for rank, start in second.items():
            self.assertEqual(option(first[rank]["argv"], "--load"), self.weights)
            self.assertIn("--no-load-optim", first[rank]["argv"])  # of weights alone
            self.assertNotIn("--no-load-optim", start["argv"])
            self.assertEqual(option(start["argv"], "--load"), start["env"]["MUSTER_RESUME_DIR"])
            self.assertEqual(start["env"]["TASK_QUEUE_ENABLE"], "2")
            self.assertNotIn(
                "HCCL_IF_IP", start["env"]
            )  # the nodes' addresses are loopback's, of which HCCL can make nothing
            self.assertRegex(start["env"]["HCCL_IF_BASE_PORT"], r"^\d+$")
            self.assertEqual(start["env"]["ASCEND_RT_VISIBLE_DEVICES"], "0,1,2,3,4,5,6,7")
            self.assertEqual(start["cwd"], self.code)
        self.assertEqual(self.kept_checkpoints(job, 2)[-1], STEPS)

    def test_the_loss_is_read_by_its_own_name(self):
        progress = self.progress(self.whole)
        self.assertEqual((progress["step"], progress["total"]), (STEPS, STEPS), progress)
        self.assertAlmostEqual(progress["loss"], float.fromhex(self.expected[STEPS]), places=5)

    def test_a_file_of_the_model_that_is_not_there(self):
        job, record = self.begin("missing", "--mm-model", "examples/qwen2.5vl/model_8b.json")
        self.check_refused(job, record, "model_8b.json", 1)


FSDP2_CONFIG = """\
parallel:
  fully_shard_parallel_size: auto
training:
  micro_batch_size: 1
  seed: 42
  lr: 1.0e-5
  lr_decay_style: cosine
  train_iters: 40
  init_model_with_meta_device: true
  load: ./ckpt/Qwen3-VL-30B-A3B-Instruct-dcp
  save_interval: 5
  plugin:
    - mindspeed_mm/fsdp/models/qwen3vl
"""


class FSDP2(EngineTest):
    ascend = True
    scripts = {"mindspeed_mm/fsdp/train/trainer.py": "mindspeed-mm-26.1-fsdp2"}
    files = {"examples/qwen3vl/qwen3vl_30B_config_v1.yaml": FSDP2_CONFIG}

    @classmethod
    def prepare(cls):
        """Weights as mm-convert's hf_to_dcp leaves them."""
        weights = os.path.join(cls.code, "ckpt/Qwen3-VL-30B-A3B-Instruct-dcp")
        os.makedirs(os.path.join(weights, "release"))
        for name, text in (
            ("release/__0_0.distcp", '{"weights": "4d"}'),
            ("release/.metadata", "."),
            ("latest_checkpointed_iteration.txt", "release"),
        ):
            with open(os.path.join(weights, name), "w", encoding="ascii") as file:
                file.write(text)
        cls.whole, record = cls.begin("whole")
        cls.cluster.wait(cls.whole)
        cls.expected = record.losses()
        assert sorted(cls.expected) == list(range(1, STEPS + 1)), cls.cluster.story(cls.whole)

    @classmethod
    def begin(cls, name, words=True, more=(), **spec):
        """26.1 takes words that go over its file; 26.0 reads the file alone, which is changed on a copy."""
        config = next(iter(cls.files))
        launch = {
            "script": "mindspeed_mm/fsdp/train/trainer.py",
            "args": [config, *(["training.save=${save.dir}"] if words else []), *more],
        }
        launch.update({} if words else {"patch": {config: {"training.save": "${save.dir}"}}})
        resume = (
            {"args": ["training.load=${resume.dir}"]}
            if words
            else {"patch": {config: {"training.load": "${resume.dir}"}}}
        )
        env = {"NON_MEGATRON": "true", "PYTHONPATH": cls.code, **spec.pop("env", {})}
        return cls.submit(name, "mindspeed-mm", launch, env=env, resume=resume, **spec)

    def test_killed_in_the_middle_of_a_save(self):
        """An asynchronous save has its tracker at once and its metadata at the end: the other way round than Megatron-LM's."""
        for name, words, more in (
            ("torn", False, ()),
            ("torn-async", True, ("training.save_async=true",)),
        ):
            with self.subTest(name):
                _, record = self.check_torn(
                    functools.partial(self.begin, name, words, more),
                    torn=15,
                    before=10,
                    expected=self.expected,
                )
                first, second = record.starts(1), record.starts(2)
                saved = first[0]["env"]["MUSTER_SAVE_DIR"]
                self.assertNotIn(".metadata", os.listdir(os.path.join(saved, "iter_0000015")))
                with open(
                    os.path.join(saved, "latest_checkpointed_iteration.txt"), encoding="ascii"
                ) as file:
                    self.assertEqual(file.read(), "15" if more else "10")
                self.assertEqual(
                    {event["source"] for event in record.events("loaded", 1).values()},
                    {"./ckpt/Qwen3-VL-30B-A3B-Instruct-dcp"},
                )
                for start in second.values():
                    env = start["env"]
                    options = [
                        f"training.load={env['MUSTER_RESUME_DIR']}",
                        f"training.save={env['MUSTER_SAVE_DIR']}",
                    ]
                    given = [word in start["argv"] for word in options]
                    self.assertEqual(given, [words, words], start["argv"])
                    self.assertNotEqual(env["MUSTER_SAVE_DIR"], saved)
                self.assertIn("iter_0000040", os.listdir(second[0]["env"]["MUSTER_SAVE_DIR"]))

    def test_the_log_is_read(self):
        """There is no line of the training's end, and only the first rank says anything."""
        progress = self.progress(self.whole)
        self.assertEqual((progress["step"], progress["total"]), (STEPS, STEPS), progress)
        self.assertAlmostEqual(progress["loss"], float.fromhex(self.expected[STEPS]), places=5)
        self.assertEqual(self.cluster.show(self.whole)["phase"], "succeeded")
        self.assertEqual(self.kept_checkpoints(self.whole, 1)[-1], STEPS)


if __name__ == "__main__":
    unittest.main()
