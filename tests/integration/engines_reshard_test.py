#!/usr/bin/python3
"""MindFormers at another size: 16 ranks on two nodes trained, cancelled behind a checkpoint, and gone on with by 8 ranks on one, by `muster resume --nodes 1`:
a chain of the strategy at the new size, transform_ckpt.py, and the training. The conformance trainer's losses do not depend on the number of ranks, so those of
the resumed run are those of the run that nobody disturbed; its transform_ckpt.py is strict about what it is given.

What people are told stands in tests/golden/resume-errors.txt.

Run:  /usr/bin/python3 -B tests/integration/engines_reshard_test.py [--rewrite] [-v]       (MUSTER_BIN names the binaries' folder)
"""

import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance import state  # noqa: E402
from conformance.harness import UNHURRIED, EngineTest, Record, configuration, option  # noqa: E402
from golden import Golden, replaced  # noqa: E402

HEAD = """# What people are told of a job that cannot be gone on with, or whose checkpoint cannot be made whole. Reviewed as text.
# Written by tests/integration/engines_reshard_test.py --rewrite. Ids are replaced, and the steps that happened to be saved.
"""
HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = Golden(os.path.join(HERE, "../golden/resume-errors.txt"), HEAD, "--rewrite" in sys.argv)
STEPS, SAVED = 40, 4
CONFIG = "configs/llama2/run_llama2_7b.yaml"
EIGHT = f"launch.patch={{{CONFIG}: {{parallel_config.model_parallel: 1}}}}"
GPT = """--num-layers 2 --hidden-size 8 --num-attention-heads 2 --seq-length 8 --max-position-embeddings 8 --micro-batch-size 1 --tokenizer-type NullTokenizer
    --global-batch-size 32 --lr 1e-4 --save-interval 4 --log-interval 1 --ckpt-format torch""".split()


class Reshard(EngineTest):
    ascend = True
    scripts = {
        "run_mindformer.py": "mindformers-r1.0",
        "mindformers/tools/transform_ckpt.py": "mindformers-r1.0",
        "pretrain_gpt.py": "megatron-core-0.12",
    }
    # Of the five checkpoints that MindFormers keeps by itself the one that is gone back to would be none.
    files = {CONFIG: configuration(epochs=4, per_epoch=10, ranks=8, save_steps=SAVED, saver="CheckpointMointor\n    keep_checkpoint_max: 20")
             .replace("model_parallel: 1", "model_parallel: 2")}  # fmt: skip

    @classmethod
    def prepare(cls):
        whole, record = cls.train("whole", step_ms=5)
        cls.cluster.wait(whole)
        cls.expected = record.losses()
        assert sorted(cls.expected) == list(range(1, STEPS + 1)), cls.cluster.story(whole)
        cls.old, cls.old_record = cls.train("cut", step_ms=UNHURRIED)
        cls.cluster.output("wait", cls.old, "--for", "checkpoint")
        cls.live = cls.cluster.muster("resume", "cut", "-d")
        cls.cluster.output("cancel", cls.old)
        cls.cluster.wait(cls.old, code=3)
        cls.saved = max(item["step"] for item in cls.checkpoints(cls.old))
        assert cls.saved < STEPS, cls.saved

    @classmethod
    def train(cls, name, step_ms=0, mode="train", env=None, **more):
        # Storage that r1.0 takes for shared: else ranks beyond eight go by the newest file.
        env = {"SHARED_PATHS": cls.cluster.dir, **(env or {})}
        return cls.submit(
            name, "mindformers", {"config": CONFIG, "mode": mode}, step_ms=step_ms, env=env, **more
        )

    @classmethod
    def checkpoints(cls, job):
        return json.loads(cls.cluster.output("ckpt", "ls", job, "-o", "json"))["items"]

    def save_dir(self, job, attempt=1):
        return self.cluster.show(job)["attempts"][attempt - 1]["saveDir"]

    def resume(self, name, *words, code=0):
        record = Record(self.cluster, name)
        done = self.cluster.muster(
            "resume",
            *words,
            "--env",
            f"CONFORMANCE_RECORD={record.path}",
            "--env",
            "CONFORMANCE_STEP_MS=20",
        )
        self.assertEqual(done.code, code, f"{done.out}{done.err}")
        return done, record

    def check_losses(self, record, saved):
        losses = record.losses()
        self.assertEqual(sorted(losses), [*range(saved + 1, STEPS + 1)])
        self.assertLessEqual(losses.items(), self.expected.items())

    # ---- the strategy alone

    def test_a_strategy_is_a_file_of_every_rank(self):
        job, record = self.train("plan16", mode="strategy")
        self.cluster.wait(job)
        self.assertEqual(
            sorted(os.listdir(os.path.join(self.save_dir(job), "strategy"))),
            sorted(f"ckpt_strategy_rank_{rank}.ckpt" for rank in range(16)),
        )
        self.assertEqual(record.losses(), {})
        self.assertEqual(
            {option(start["argv"], "--only_save_strategy") for start in record.starts(1).values()},
            {"True"},
        )
        self.assertEqual(self.checkpoints(job), [])

    def test_status_0_without_every_file_is_no_success(self):
        job, _ = self.train("forgetful", mode="strategy", env={"CONFORMANCE_NO_STRATEGY": "11"})
        self.cluster.wait(job, code=1)
        self.assertEqual(
            self.cluster.show(job)["attempt"], 2, "the same again is not tried a third time"
        )
        node = next(
            node["node"]
            for node in self.cluster.show(job)["attempts"][1]["nodes"]
            if node.get("firstRank", 0) == 8
        )
        self.assertIn(f"every rank ended with status 0, but rank 11 on node '{node}' has not written 'strategy/ckpt_strategy_rank_11.ckpt' below its save directory",
                      self.cluster.output("why", job))  # fmt: skip

    # ---- another size

    def test_half_the_ranks_go_on_with_the_same_losses(self):
        done, record = self.resume("half", "cut", "--nodes", "1", "--set", EIGHT)
        chain = next(word for word in done.err.split() if word.startswith("'cut-r")).strip("'")
        self.check_losses(record, self.saved)
        stages = {
            stage: self.cluster.show(f"{chain}.{stage}")
            for stage in ("strategy", "transform", "train")
        }
        self.assertEqual({shown["phase"] for shown in stages.values()}, {"succeeded"})
        self.assertEqual(
            [
                len(stages[stage]["attempts"][0]["nodes"])
                for stage in ("strategy", "transform", "train")
            ],
            [1, 1, 1],
        )
        starts = record.starts(1)
        self.assertEqual(sorted(starts), [*range(8)])
        # The old job's own directory is as it was: the tool writes into what it merges.
        self.assertEqual(len(os.listdir(os.path.join(self.save_dir(self.old), "strategy"))), 16)
        steps = sorted(item["step"] for item in self.checkpoints(stages["train"]["id"]))
        self.assertEqual(steps[-1], STEPS)
        # And on from there, at the old size again.
        _, again = self.resume("again", f"{chain}.train", "--from", str(steps[0]), "--nodes", "2", "--set",
                               f"launch.patch={{{CONFIG}: {{parallel_config.model_parallel: 2}}}}")  # fmt: skip
        self.assertEqual(sorted(again.starts(1)), [*range(16)])
        self.check_losses(again, steps[0])
        self.assertLess(steps[0], STEPS)

    def test_a_rank_that_is_killed_afterwards_costs_an_attempt_and_no_loss(self):
        record = Record(self.cluster, "hurt")
        job = self.cluster.output(
            "resume",
            "cut",
            "-d",
            "--nodes",
            "1",
            "--set",
            EIGHT,
            "--env",
            f"CONFORMANCE_RECORD={record.path}",
        ).strip()
        chain = self.cluster.show(job)["spec"]["stage"]["chainName"]
        self.kill_one(job, record, at=self.saved + SAVED + 2)
        self.cluster.wait(chain)
        self.assertEqual(
            [
                self.cluster.show(f"{chain}.{stage}")["attempt"]
                for stage in ("strategy", "transform", "train")
            ],
            [1, 1, 2],
        )
        self.check_losses(record, self.saved)
        self.assertGreater(
            self.resumed_step(record, None),
            self.saved,
            "its own checkpoint, and not the one that it began with",
        )

    def test_the_same_size_is_one_job(self):
        done, record = self.resume("same", "cut", "--from", str(self.saved))
        self.check_losses(record, self.saved)
        self.assertNotIn("cut for the new size", done.err)
        self.assertEqual(sorted(record.starts(1)), [*range(16)])

    def test_a_configuration_of_the_old_size_ends_the_chain_at_its_strategy(self):
        done, _ = self.resume("old-size", "cut", "--nodes", "1", code=1)
        chain = next(word for word in done.err.split() if word.startswith("'cut-r")).strip("'")
        self.assertIn(
            "data_parallel * model_parallel * pipeline_stage should be equal to device_num",
            self.cluster.output("why", f"{chain}.strategy"),
        )
        self.assertEqual(self.cluster.show(f"{chain}.train")["phase"], "cancelled")

    # ---- one whole file

    def test_one_whole_file(self):
        directory = os.path.join(self.cluster.work, "whole-file")
        os.makedirs(
            os.path.join(directory, f"cut-step{self.saved}.ckpt.attempt-9", "cut")
        )  # what a killed one has left
        for words, expected in (
            ([], None),
            (["-o", directory], os.path.join(directory, f"cut-step{self.saved}.ckpt")),
        ):
            path = self.cluster.output("ckpt", "export", "cut", "--whole", *words).strip()
            if expected:
                self.assertEqual(path, expected)
            record, counters = state.read_ckpt(path)
            self.assertEqual(
                (record["step"], record["units"], len(record["weights"]), record["world"]),
                (self.saved, [0, 16, 16], 16, 1),
            )
            self.assertEqual(counters["step_num"], self.saved)
        self.assertEqual(os.listdir(directory), [f"cut-step{self.saved}.ckpt"])
        again = self.cluster.muster("ckpt", "export", "cut", "--whole", "-o", directory)
        self.assertEqual(again.code, 1)
        self.assertIn("is there already", again.err + self.cluster.output("logs", "@last"))

    # ---- what is refused

    def check_output(self, title, code, command, done):
        self.assertEqual(done.code, code, done.out + done.err)
        text = replaced(
            self.cluster, f"$ muster {' '.join(command)}\nexit {code}\n{done.out}{done.err}"
        )
        text = re.sub(
            r"(the newest are )[0-9, ]+", r"\1<steps>", re.sub(r"(step )\d\d?:", r"\1<step>:", text)
        )
        GOLDEN.check(self, title, text)

    def refused(self, title, code, *command):
        self.check_output(title, code, command, self.cluster.muster(*command))

    def test_a_job_that_goes_on_is_not_resumed(self):
        self.check_output("a job that goes on by itself", 12, ["resume", "cut", "-d"], self.live)

    def test_what_is_not_there(self):
        job, _ = self.train("plan-only", mode="strategy")
        self.cluster.wait(job)
        self.refused("no whole checkpoint", 2, "resume", "plan-only")
        self.refused("no whole checkpoint: export", 2, "ckpt", "export", "plan-only", "--whole")
        self.refused("a step that was not saved", 10, "resume", "cut", "--from", "3")
        self.refused("a job that is not there", 10, "resume", "nobody")
        self.refused("no step at all", 64, "resume", "cut", "--from", "newest")
        self.refused("another start", 64, "resume", "cut", "--set", "start.from=none")
        self.refused("a key that is not there", 64, "resume", "cut", "--set", "resource.nodes=1")
        self.refused("resume: none", 64, "resume", "cut", "--set", "resume=none")
        self.refused("a request id and no name", 64, "resume", "cut", "-d", "--request-id", "again")
        self.refused("another engine", 64, "resume", "cut", "--set", "engine=torch")
        self.refused(
            "a script of a model's own",
            64,
            "resume",
            "cut",
            "--nodes",
            "1",
            "--set",
            "launch.script=run_qwen.py",
        )
        self.refused(
            "a script a node",
            64,
            "resume",
            "cut",
            "--reshard",
            "--set",
            "launch.per=node",
            "--set",
            "launch.launcher=msrun",
        )
        self.refused("export as it is", 64, "ckpt", "export", "cut")

    # ---- other engines

    def megatron(self, name, iterations, tensor, engine="megatron", nodes=2, **more):
        words = [
            *GPT,
            "--train-iters",
            str(iterations),
            "--tensor-model-parallel-size",
            str(tensor),
            *more.pop("args", []),
        ]
        words += [
            "--load",
            "/nowhere/ckpt",
            "--save",
            "/nowhere/ckpt" if engine == "megatron" else "${save.dir}",
        ]
        return words, self.submit(
            name, engine, {"script": "pretrain_gpt.py", "args": words}, nodes=nodes, **more
        )

    def test_megatron_loads_the_parts_of_its_model_at_another_size(self):
        words, (job, record) = self.megatron("parts", 8, 2)
        self.cluster.wait(job)
        self.assertEqual(sorted(record.starts(1)), [*range(16)])
        longer = json.dumps([{"8": "12"}.get(word, word) for word in words])
        _, again = self.resume(
            "parts-again", "parts", "--nodes", "1", "--set", f"launch.args={longer}"
        )
        self.assertEqual(sorted(again.losses()), [9, 10, 11, 12])
        self.assertEqual(sorted(again.starts(1)), [*range(8)])
        self.assertEqual({event["step"] for event in again.events("loaded", 1).values()}, {8})
        self.refused(
            "parts of another tensor size",
            64,
            "resume",
            "parts",
            "--set",
            f"launch.args={' '.join(words).replace('size 2', 'size 4')}",
        )
        self.refused("parts made whole", 64, "ckpt", "export", "parts", "--whole")
        self.refused("--reshard of another engine", 64, "resume", "parts", "--reshard")

    def test_whole_as_it_is(self):
        _, (job, _) = self.megatron("dist", 4, 2, args=["--ckpt-format", "torch_dist"])
        self.cluster.wait(job)
        done = self.cluster.muster("ckpt", "export", job, "--whole")
        self.assertEqual(
            done.out.strip(), os.path.join(self.save_dir(job), "iter_0000004"), done.err
        )
        _, (job, _) = self.megatron("own", 4, 1, engine="torch", nodes=1, devices=1)
        self.cluster.wait(job)
        self.refused("a program's own files", 64, "ckpt", "export", "own", "--whole")


if __name__ == "__main__":
    rest = [word for word in sys.argv if word != "--rewrite"]
    program = unittest.main(argv=rest, exit=False)
    GOLDEN.save(whole=len(rest) == 1)
    sys.exit(not program.result.wasSuccessful())
