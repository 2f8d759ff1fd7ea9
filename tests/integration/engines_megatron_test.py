#!/usr/bin/python3
"""Megatron-LM as its own documents start it, 16 ranks on two nodes: conformance trainers with the arguments, environment, log lines and checkpoints of
core_r0.12, and, where those differ, of core_r0.8 and core_r0.16.

They refuse what their release refuses, and what would harm it silently: an unknown argument, left-over variables of another launcher, a stale tracker.

Run:  /usr/bin/python3 -B tests/integration/engines_megatron_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import functools
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance.harness import SAMPLES, UNHURRIED, EngineTest, option  # noqa: E402

STEPS = 40
MODEL = """--use-mcore-models --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 1
    --tokenizer-type NullTokenizer --vocab-size 1024 --mock-data --lr 1.25e-6 --lr-decay-style cosine --bf16 --log-interval 1 --save-interval 5""".split()
SHAPE = (
    "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --sequence-parallel".split()
)
EXPERTS = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --expert-model-parallel-size 2 --num-experts 4 --sequence-parallel".split()
SHARDED = (
    "--untie-embeddings-and-output-weights --no-gradient-accumulation-fusion".split()
)  # data parallel over all ranks


class Megatron(EngineTest):
    scripts = {"pretrain_gpt.py": "megatron-core-0.12"}

    def begin(
        self,
        name,
        *more,
        load="/nowhere/ckpt",
        save="/nowhere/ckpt",
        steps=STEPS,
        drop=(),
        shape=SHAPE,
        **spec,
    ):
        words = [
            *MODEL,
            *shape,
            "--train-iters",
            str(steps),
            *(["--load", load] if load else []),
            *(["--save", save] if save else []),
            *more,
        ]
        for name_of in drop:
            at = words.index(name_of)
            del words[at : at + 2]
        return self.submit(name, "megatron", {"script": "pretrain_gpt.py", "args": words}, **spec)

    def survive(self, name, *more, expected=None, **spec):
        """Killed once on the way: what a restart has to change is changed, and nothing that a training sees differs."""
        job, record = self.begin(name, *more, step_ms=UNHURRIED, **spec)
        killed = self.kill_one(job, record, at=12)
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]), ("succeeded", 2), self.cluster.story(job)
        )
        self.check_blame(job, killed)
        self.assertEqual(record.losses(), expected or self.expected)
        self.assertIn(self.resumed_step(record, shown), self.kept_checkpoints(job, 1))
        return self.check_arguments(job, record)

    def check_arguments(self, job, record):
        first, second = record.starts(1), record.starts(2)
        self.assertEqual((sorted(first), sorted(second)), ([*range(16)], [*range(16)]))
        for rank, start in second.items():
            argv = start["argv"]
            self.assertEqual(option(argv, "--load"), start["env"]["MUSTER_RESUME_DIR"])
            self.assertEqual(option(argv, "--save"), start["env"]["MUSTER_SAVE_DIR"])
            self.assertNotEqual(option(argv, "--save"), option(first[rank]["argv"], "--save"))
            for gone in ("--finetune", "--ckpt-step", "--no-load-optim", "--no-load-rng"):
                self.assertNotIn(gone, argv)
            self.assertEqual(start["env"]["TORCHELASTIC_RESTART_COUNT"], "1")
        self.assertEqual(self.kept_checkpoints(job, 2)[-1], STEPS)
        return first, second

    def test_a_killed_rank_costs_an_attempt_and_no_loss(self):
        first, _ = self.survive("killed", "--ckpt-format", "torch")
        # `--load X --save X` with X empty is a normal first start; saving goes into the attempt's own directory all the same.
        self.assertEqual(option(first[0]["argv"], "--load"), "/nowhere/ckpt")
        self.assertEqual(option(first[0]["argv"], "--save"), first[0]["env"]["MUSTER_SAVE_DIR"])

    def test_torch_dist_checkpoints(self):
        self.survive("dist", "--ckpt-format", "torch_dist", "--use-distributed-optimizer")

    def test_distributed_optimizer_in_the_old_layout(self):
        self.survive("optim", "--ckpt-format", "torch", "--use-distributed-optimizer", "--finetune")

    def test_killed_in_the_middle_of_a_save(self):
        for form in ("torch", "torch_dist"):
            with self.subTest(form):
                # With tensor 4 x pipeline 2 on 16 ranks the second of each two data-parallel ranks writes no file of the old form.
                writers = [0, 1, 2, 3, 8, 9, 10, 11] if form == "torch" else range(16)
                begin = functools.partial(
                    self.begin, f"torn-{form.replace('_', '-')}", "--ckpt-format", form
                )
                self.check_torn(begin, torn=15, before=10, expected=self.expected, writers=writers)

    def torn(self, name, *more, release="0.12", shape=SHAPE, writers=range(16), expected=None):
        """Killed in the middle of a save: each release's own files and lines, and what a restart has to change."""
        begin = functools.partial(self.begin, name, *more, shape=shape, code=self.tree(release))
        job, record = self.check_torn(
            begin, torn=15, before=10, expected=expected or self.expected, writers=writers
        )
        self.check_arguments(job, record)
        return os.path.join(record.starts(1)[0]["env"]["MUSTER_SAVE_DIR"], "iter_0000015")

    def tree(self, release):
        if release not in self.trees:
            self.trees[release] = self.cluster.code(
                {"pretrain_gpt.py": f"megatron-core-{release}"}, {}
            )
        return self.trees[release]

    def undisturbed(self, name, *more, **spec):
        job, record = self.begin(name, *more, **spec)
        self.cluster.wait(job)
        self.assertEqual(
            sorted(record.losses()), list(range(1, STEPS + 1)), self.cluster.story(job)
        )
        return record.losses()

    def test_other_releases(self):
        """core_r0.8 chooses the layout by --use-dist-ckpt and names no part of the model in its lines; core_r0.16 stamps every line of a save."""
        for release, form, *more in (
            ("0.8", "torch", "--use-distributed-optimizer"),
            ("0.8", "dist", "--use-dist-ckpt", "--dist-ckpt-format", "torch_dist"),
            ("0.16", "torch", "--ckpt-format", "torch"),
            ("0.16", "dist", "--use-distributed-optimizer", "--save-retain-interval", "20"),
        ):
            with self.subTest(release=release, form=form):
                writers = [0, 1, 2, 3, 8, 9, 10, 11] if form == "torch" else range(16)
                self.torn(
                    f"core-{release.replace('.', '-')}-{form}",
                    *more,
                    release=release,
                    writers=writers,
                )

    def test_a_save_in_the_background(self):
        """Every file of every rank is whole, and nothing says so yet: a checkpoint without its metadata is none."""
        for release, *more in (
            ("0.8", "--use-dist-ckpt", "--dist-ckpt-format", "torch_dist"),
            ("0.12",),
            ("0.16", "--use-persistent-ckpt-worker"),
        ):
            with self.subTest(release):
                left = os.listdir(
                    self.torn(
                        f"async-{release.replace('.', '-')}", "--async-save", *more, release=release
                    )
                )
                self.assertEqual(
                    sorted(left),
                    sorted(["common.pt", *(f"__{rank}_0.distcp" for rank in range(16))]),
                )

    def test_experts(self):
        """A directory for every part of the model, of which each expert-parallel rank has its own."""
        expected = self.undisturbed("experts", "--ckpt-format", "torch", shape=EXPERTS)
        self.torn(
            "experts-torn",
            "--ckpt-format",
            "torch",
            "--use-distributed-optimizer",
            shape=EXPERTS,
            writers=[*range(4), *range(8, 12)],
            expected=expected,
        )

    def test_fully_sharded(self):
        """No metadata.json, and CUDA_DEVICE_MAX_CONNECTIONS=1 is what these refuse."""
        expected = self.undisturbed(
            "sharded", "--use-torch-fsdp2", "--ckpt-format", "torch_dcp", shape=SHARDED
        )
        self.torn(
            "torch-dcp",
            "--use-torch-fsdp2",
            "--ckpt-format",
            "torch_dcp",
            shape=SHARDED,
            expected=expected,
        )
        self.torn(
            "fsdp-dtensor",
            "--use-megatron-fsdp",
            "--ckpt-format",
            "fsdp_dtensor",
            shape=SHARDED,
            release="0.16",
            expected=expected,
        )

    def test_without_a_save_every_attempt_begins_anew(self):
        job, record = self.begin("anew", load=None, save=None, step_ms=UNHURRIED)
        self.kill_one(job, record, at=12)
        self.cluster.wait(job)
        self.assertEqual(self.cluster.show(job)["attempt"], 2)
        self.assertEqual((record.events("loaded"), record.events("saved")), ({}, {}))
        self.assertEqual(record.losses(), self.expected)

    def test_an_orderly_end_before_the_last_step_goes_on(self):
        """Status 0 without the steps that were asked for: each attempt gets further, and the last one gets there."""
        job, record = self.begin("interval", "--ckpt-format", "torch", "--exit-interval", "15")
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]), ("succeeded", 3), self.cluster.story(job)
        )
        ends = [
            event["text"] for event in self.cluster.events(job) if event["type"] == "attempt-ended"
        ]
        self.assertEqual([f"after step {step} of {STEPS}: the training did not reach its last step" in text for step, text in zip((15, 30), ends)],
                         [True, True], ends)  # fmt: skip
        self.assertEqual({event["step"] for event in record.events("loaded", 3).values()}, {30})
        self.assertEqual(record.losses(), self.expected)

    def test_an_end_at_the_same_step_again_is_the_last(self):
        job, _ = self.begin("short", "--exit-interval", "15", load=None, save=None)
        self.cluster.wait(job, code=1)
        self.assertEqual(self.cluster.show(job)["attempt"], 2, self.cluster.story(job))
        why = self.cluster.output("why", job)
        self.assertIn(
            f"every rank ended with status 0 after step 15 of {STEPS}: the training did not reach its last step",
            why,
        )

    def test_the_status_alone_where_it_is_asked_for(self):
        job, _ = self.begin("alone", "--exit-interval", "15", load=None, save=None, success="exit0")
        self.cluster.wait(job)
        self.assertEqual(self.cluster.show(job)["attempt"], 1)

    def test_the_log_is_read(self):
        shown = self.cluster.show(self.whole)
        self.assertEqual(shown["phase"], "succeeded")
        # Saved every few hundredths of a second here: the newest is listed for sure, and none that was not saved.
        kept = self.kept_checkpoints(self.whole, 1)
        self.assertEqual(kept[-1], STEPS)
        self.assertLessEqual(set(kept), set(range(5, STEPS + 1, 5)))
        progress = self.progress(self.whole)
        self.assertEqual((progress["step"], progress["total"]), (STEPS, STEPS), progress)
        self.assertAlmostEqual(progress["loss"], float.fromhex(self.expected[STEPS]), places=5)

    @classmethod
    def prepare(cls):
        cls.trees = {"0.12": cls.code}
        cls.whole, record = cls.begin(cls, "whole", "--ckpt-format", "torch", step_ms=5)
        cls.cluster.wait(cls.whole)
        cls.expected = record.losses()
        assert sorted(cls.expected) == list(range(1, STEPS + 1)), cls.cluster.story(cls.whole)

    def test_samples_run(self):
        for name, nodes in (("one-node", 1), ("two-nodes", 2)):
            with self.subTest(name):
                path = os.path.join(SAMPLES, "megatron-gpt", f"{name}.yaml")
                job, record = self.from_sample(
                    path, name, 0, {"--train-iters": 12, "--save-interval": 6, "--log-interval": 3}
                )
                self.cluster.wait(job)
                self.assertEqual(sorted(record.starts(1)), [*range(8 * nodes)])
                self.assertEqual(sorted(record.losses()), list(range(1, 13)))
                self.assertEqual(self.kept_checkpoints(job, 1)[-1], 12)
                self.assertEqual({start["cwd"] for start in record.starts(1).values()}, {self.code})

    def refused(self, name, words, status, *more, **spec):
        job, record = self.begin(name, *more, **spec)
        self.check_refused(job, record, words, status)

    def test_a_lone_backslash_is_the_engines_refusal(self):
        self.refused("backslash", "unrecognized arguments: \\", 2, "\\", steps=5)

    def test_an_argument_of_another_release(self):
        self.refused(
            "unknown",
            "unrecognized arguments: --use-flash-attention-9",
            2,
            "--use-flash-attention-9",
            steps=5,
        )

    def test_a_variable_that_old_releases_want(self):
        """Where no parallel size asks for it, only they do."""
        words = "RuntimeError: Using async gradient all reduce requires setting the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 1"
        self.refused("connections", words, 1, steps=5, shape=[], code=self.tree("0.8"))

    def test_a_size_that_is_missing(self):
        self.refused("missing", "hidden_size argument is None", 1, steps=5, drop=["--hidden-size"])


if __name__ == "__main__":
    unittest.main()
