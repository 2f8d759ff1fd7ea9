#!/usr/bin/python3
"""Every spec below deploy/samples is run to its end, by the file as it stands there: a conformance trainer is where its engine's script would be, and
only places, sizes and kinds of devices are set otherwise. One that has no test here fails.

One cluster for all of them, jobs side by side as they fit: nodes n0 and n1 have eight 910B each and one storage; n2 and n3 eight GPUs each, and
each a storage of its own where this user may mount; n4 and n5 are CPU slots.

Run:  /usr/bin/python3 -B tests/integration/samples_run_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import glob
import json
import os
import re
import shlex
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance import state  # noqa: E402
from conformance.harness import (
    SAMPLES,
    Engines,
    EngineTest,
    Record,
    configuration,
    kill_process,
    option,
    wait_gone,
)  # noqa: E402
from cluster import Ports  # noqa: E402
from own_disks import OwnOutputs, may_mount  # noqa: E402

STEPS, SAVED = 12, 6
LLAMA = "configs/llama2/run_llama2_7b"
SHORT = {"--train-iters": STEPS, "--save-interval": SAVED, "--log-interval": 3}
EVALUATION = 'eval_dataset:\n  data_loader:\n    type: MindDataset\n    dataset_dir: ""\n'


class Machines(OwnOutputs, Engines):
    """What is below ${out} of n2 and n3 are two directories, which neither of them can see both of."""

    def __init__(self):
        super().__init__(nodes=6, devices=8)
        self.own_disks = may_mount()

    def agent(self, name, **more):
        if name not in ("n2", "n3") or not self.own_disks:
            return super().agent(name, **more)
        return super().agent(name, before=self.before_own(name), **more)

    def device_list(self, name):
        return {"n0": self._cards, "n1": self._cards, "n2": self._gpus, "n3": self._gpus}.get(
            name, lambda _: None
        )(self.nodes.index(name))

    def _gpus(self, _):
        path = os.path.join(self.work, "gpus")
        with open(path, "w", encoding="ascii") as file:
            file.writelines(
                f"id={card} type=nvidia name=H100 memory_mib=81559\n"
                for card in range(self.devices)
            )
        return path

    def rank_table(self):
        """Of n0 and n1, as merge_hccl.py would have it: their ranks are n1's first, as nobody but the table could say."""
        servers = []
        for first, index in ((0, 1), (8, 0)):
            cards = [
                {
                    "device_id": str(card),
                    "device_ip": f"192.{card % 4 + 1}.{index + 1}.{card + 10}",
                    "rank_id": str(first + card),
                }
                for card in range(8)
            ]
            servers.append(
                {"server_id": f"127.0.0.{index + 1}", "device": cards, "host_nic_ip": "reserve"}
            )
        path = os.path.join(self.work, "hccl_2s_16p.json")
        with open(path, "w", encoding="ascii") as file:
            json.dump(
                {
                    "version": "1.0",
                    "server_count": "2",
                    "server_list": servers,
                    "status": "completed",
                },
                file,
            )
        return path


class Samples(unittest.TestCase):
    cluster: Machines

    @classmethod
    def setUpClass(cls):
        # PyTorch's store listens at all addresses of this machine, which to the controller are other hosts: in a range of its own.
        ports = Ports()
        cls.addClassCleanup(ports.close)
        cls.wide, cls.jobs = int(ports.range.split("-")[0]), {}
        cls.cluster = Machines()
        cls.cluster.__enter__()
        try:
            cls.trees()
            cls.begin_all()
        except BaseException:
            cls.cluster.__exit__(*sys.exc_info())
            raise
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)

    # ---- what users have on their machines

    @classmethod
    def trees(cls):
        config, own, alone = (
            configuration(epochs=2, per_epoch=STEPS // 2, ranks=ranks, save_steps=SAVED)
            for ranks in (16, 8, 1)
        )
        code = cls.cluster.code
        cls.r06 = code(
            {
                "run_mindformer.py": "mindformers-r0.6",
                "mindformers/tools/transform_ckpt.py": "mindformers-r0.6",
            },
            {f"{LLAMA}.yaml": config},
        )
        shutil.copy(os.path.join(SAMPLES, "mindformers-reshard", "transform.sh"), cls.r06)
        cls.r10 = code(
            {"run_mindformer.py": "mindformers-r1.0"},
            {f"{LLAMA}_finetune.yaml": config, "configs/llama2/lora_llama2_7b.yaml": own},
        )
        cls.eval = code(
            {"run_mindformer.py": "mindformers-r1.0"}, {f"{LLAMA}.yaml": own + EVALUATION}
        )
        cls.predict = code({"run_mindformer.py": "mindformers-r1.0"}, {f"{LLAMA}.yaml": alone})
        cls.megatron = code({"pretrain_gpt.py": "megatron-core-0.12"})
        cls.own_index = code(
            {"pretrain_gpt.py": "megatron-core-0.12"}
        )  # with the lines that builtin:node-local-index looks for
        shutil.copytree(
            os.path.join(SAMPLES, "../../tests/fixtures/megatron-lm/core_v0.12.0"),
            cls.own_index,
            dirs_exist_ok=True,
        )
        cls.mm = code({"pretrain_vlm.py": "mindspeed-mm-2.2"}, {f"{name}.json": "{}\n" for name in
                      ("examples/qwen2.5vl/data_7b", "examples/qwen2.5vl/model_7b", "mindspeed_mm/tools/tools")})  # fmt: skip
        cls.zero = code({"train.py": "deepspeed"}, {"ds_config.json": json.dumps({"train_batch_size": 16, "zero_optimization": {"stage": 2},
                         "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}}})})  # fmt: skip
        # Scripts that are the tree's own; the samples have them beside the spec.
        cls.in_script = {"torchrun": cls.scripted(code({"pretrain_gpt.py": "megatron-core-0.12"}), "examples"),
                         "msrun": cls.scripted(code({"run_mindformer.py": "mindformers-r1.0-script"}, {f"{LLAMA}.yaml": config}), "scripts"),
                         "run_distribute": cls.scripted(code({"run_mindformer.py": "mindformers-r0.6-script"},
                                                             {f"{LLAMA}.yaml": config, "mindformers/__init__.py": ""}), "scripts")}  # fmt: skip

        cls.weights = os.path.join(cls.cluster.work, "llama2_7b.ckpt")
        with open(cls.weights, "wb") as file:
            file.write(state.ckpt_bytes({"weights": f"{state.mix(5):016x}"}, []))
        cls.release = os.path.join(cls.cluster.work, "Qwen2.5-VL-7B-Instruct")
        for part in range(2):  # as mm-convert leaves them: weights alone, TP 1, PP 2
            directory = os.path.join(cls.release, "release", f"mp_rank_00_{part:03d}")
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
            os.path.join(cls.release, "latest_checkpointed_iteration.txt"), "w", encoding="ascii"
        ) as file:
            file.write("release")

    @staticmethod
    def scripted(tree, folder):
        shutil.copytree(
            os.path.join(SAMPLES, "launcher-scripts", folder), os.path.join(tree, folder)
        )
        os.mkdir(os.path.join(tree, "bin"))
        os.symlink("/usr/bin/python3", os.path.join(tree, "bin", "python"))
        return tree

    # ---- the jobs

    @classmethod
    def begin(cls, sample, code=None, options=None, env=None, **change):
        """Submits deploy/samples/SAMPLE.yaml; `options`: other values of its arguments."""
        path = os.path.join(SAMPLES, f"{sample}.yaml")
        name = re.sub(r"[/_]", "-", sample)
        record = Record(cls.cluster, name)
        settings = {
            "name": name,
            "recovery": "{orphan_grace: 60s, stop_grace: 2s}",
            "runtime.python": "/usr/bin/python3",
            **change,
        }
        if code:
            settings["code.from"] = code
        if options:
            args = shlex.split(EngineTest.sample_args(path))
            for key, value in options.items():
                args[args.index(key) + 1] = str(value)
            settings["launch.args"] = json.dumps(args)
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        env = {"CONFORMANCE_RECORD": record.path, **(env or {})}
        words += [word for key, value in env.items() for word in ("--env", f"{key}={value}")]
        job = cls.cluster.output("run", "-d", path, *words).split()[0]
        cls.cluster.jobs.append(job)
        cls.jobs[sample] = (job, record)

    @classmethod
    def begin_all(cls):
        """All that need nothing of another one, the longest first."""
        ascend = {"resources.type": "ascend"}
        cls.begin(
            "tiny-gpt/job",
            options={"--steps": 20, "--save-interval": 10},
            **{"resources.devices": 1, "network.master_port": cls.wide},
        )
        cls.begin("megatron-gpt/profile", cls.megatron, {"--train-iters": STEPS})
        # The first rank of the second stage stays in the middle of its second save.
        cls.begin("megatron-gpt/two-nodes-own-disks", cls.own_index, SHORT, {"CONFORMANCE_HOLD": f"8 {STEPS}"},
                  **{"resources.type": "nvidia", "checkpoint.dir": "auto"})  # fmt: skip
        cls.begin("mindformers-pretrain/job", cls.r06)
        cls.begin("megatron-gpt/two-nodes", cls.megatron, SHORT, **ascend)
        cls.begin("megatron-gpt/one-node", cls.megatron, SHORT, **ascend)
        cls.begin(
            "deepspeed-zero/job",
            cls.zero,
            {"--steps": STEPS, "--save_interval": SAVED},
            **ascend,
            **{"launch.patch": "{ds_config.json: {steps_per_print: 3}}"},
        )
        # Storage that r1.0 takes for shared.
        cls.begin(
            "mindformers-finetune/job",
            cls.r10,
            {"--load_checkpoint": cls.weights},
            {"SHARED_PATHS": cls.cluster.dir},
        )
        cls.begin("mindformers-finetune/lora", cls.r10, {"--load_checkpoint": cls.weights})
        cls.begin("mindformers-infer/eval", cls.eval, {"--load_checkpoint": cls.weights})
        cls.begin("mindformers-observe/eval-during-training", cls.eval, {"--eval_step_interval": 4})
        cls.begin("mindformers-observe/profile", cls.eval, {"--epochs": 2})
        cls.begin("mindformers-observe/dump", cls.eval, {"--epochs": 2})
        cls.begin("mindformers-infer/predict", cls.predict, {"--load_checkpoint": cls.weights})
        cls.begin(
            "mindspeed-mm-finetune/job",
            cls.mm,
            {"--load": cls.release, "--train-iters": STEPS, "--save-interval": SAVED},
        )
        short = "{TRAIN_ITERS: %d, SAVE_INTERVAL: %d, LOG_INTERVAL: 3}" % (STEPS, SAVED)
        cls.begin(
            "launcher-scripts/torchrun",
            cls.in_script["torchrun"],
            **ascend,
            **{"launch.vars": short},
        )
        cls.begin("launcher-scripts/msrun", cls.in_script["msrun"])
        tree = cls.in_script["run_distribute"]
        env = {
            "PATH": f"{tree}/bin:/usr/bin:/bin",
            "PYTHONPATH": tree,
        }  # each rank has a copy of the scripts, and not of what the trainer is made of
        cls.begin(
            "launcher-scripts/run_distribute",
            tree,
            env=env,
            **{"resources.rank_table": cls.cluster.rank_table()},
        )

    def ended(self, sample, ranks, steps=range(1, STEPS + 1), kept=STEPS, attempt=1):
        """(job, record) of one that has succeeded: as many ranks as it asks for, each at its place, made all the steps and saved the last one."""
        job, record = self.jobs[sample]
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]), ("succeeded", attempt), self.cluster.story(job)
        )
        self.assertEqual(
            sorted(rank for rank in record.starts(attempt) if rank != "scheduler"), [*range(ranks)]
        )
        self.assertEqual(sorted(record.losses()), [*steps])
        items = json.loads(self.cluster.output("ckpt", "ls", job, "-o", "json"))["items"]
        self.assertEqual(
            max((item["step"] for item in items if item["attempt"] == attempt), default=None), kept
        )
        return job, record

    def values(self, record, name, attempt=1):
        return {
            option(start["argv"], name)
            for rank, start in record.starts(attempt).items()
            if rank != "scheduler"
        }

    def sources(self, record, attempt=1):
        """From where each rank loaded."""
        loaded = record.events("loaded", attempt)
        self.assertEqual(
            sorted(loaded), sorted(rank for rank in record.starts(attempt) if rank != "scheduler")
        )
        return {(event["source"], event["step"]) for event in loaded.values()}

    def saved_in(self, record):
        return next(iter(record.starts(1).values()))["env"]["MUSTER_SAVE_DIR"]

    # ---- every one

    def test_every_sample_has_its_test(self):
        found = {
            os.path.relpath(path, SAMPLES)[: -len(".yaml")]
            for path in glob.glob(os.path.join(SAMPLES, "**", "*.yaml"), recursive=True)
        }
        tests = {name[len("test_") :] for name in dir(self) if name.startswith("test_")} - {
            "every_sample_has_its_test"
        }
        self.assertEqual({re.sub(r"\W", "_", sample) for sample in found}, tests)

    def test_mindformers_pretrain_job(self):
        _, record = self.ended("mindformers-pretrain/job", 16)
        self.assertEqual(self.values(record, "--run_mode"), {"train"})
        self.assertEqual(len({start["table"] for start in record.starts(1).values()}), 1)

    def test_mindformers_pretrain_resume(self):
        _, old = self.ended("mindformers-pretrain/job", 16)
        directory = os.path.join(self.cluster.work, "old_run", "checkpoint")
        for rank in range(16):  # what it had when it was killed: the first save
            os.makedirs(os.path.join(directory, f"rank_{rank}"))
            name = f"rank_{rank}/llama2_7b_rank_{rank}-{SAVED // 2}_2.ckpt"
            shutil.copy2(
                os.path.join(self.saved_in(old), "checkpoint", name), os.path.join(directory, name)
            )
        self.begin("mindformers-pretrain/resume", self.r06, {"--load_checkpoint": directory})
        _, record = self.ended("mindformers-pretrain/resume", 16, range(SAVED + 1, STEPS + 1))
        self.assertEqual(self.sources(record), {(directory, SAVED)})
        self.assertLessEqual(record.losses().items(), old.losses().items())

    def test_mindformers_reshard_job(self):
        job, old = self.ended("mindformers-pretrain/job", 16)
        directory = os.path.join(self.cluster.work, "old_run_of_16")
        shutil.copytree(
            self.saved_in(old), directory
        )  # with checkpoints of both steps, and the strategy
        self.begin(
            "mindformers-reshard/job", self.r06, **{"stages.transform.inputs.old_run": directory}
        )
        chain, record = "mindformers-reshard-job", self.jobs["mindformers-reshard/job"][1]
        self.cluster.wait(chain)
        stages = [
            self.cluster.show(f"{chain}.{stage}") for stage in ("strategy", "transform", "train")
        ]
        self.assertEqual(
            [(shown["phase"], shown["attempt"]) for shown in stages], [("succeeded", 1)] * 3
        )
        self.assertEqual(sorted(record.starts(1)), [*range(8)])
        self.assertEqual(sorted(record.losses()), [*range(SAVED + 1, STEPS + 1)])
        self.assertLessEqual(record.losses().items(), old.losses().items())
        self.assertEqual(len(os.listdir(os.path.join(directory, "strategy"))), 16)
        # The same of the job itself, without a spec: what is cut again is cut on a CPU slot.
        record = Record(self.cluster, "resumed-on-8")
        patch = (
            f"{{{LLAMA}.yaml: {{parallel_config.data_parallel: 8, runner_config.batch_size: 2}}}}"
        )
        self.cluster.output("resume", job, "--from", str(SAVED), "--nodes", "1", "--set", "name=resumed-on-8", "--set", f"launch.patch={patch}",
                            "--env", f"CONFORMANCE_RECORD={record.path}")  # fmt: skip
        self.assertIn(
            self.cluster.show("resumed-on-8.transform")["attempts"][0]["nodes"][0]["node"],
            ("n4", "n5"),
        )
        self.assertEqual(sorted(record.losses()), [*range(SAVED + 1, STEPS + 1)])
        self.assertLessEqual(record.losses().items(), old.losses().items())

    def test_deepspeed_zero_job(self):
        job, record = self.ended("deepspeed-zero/job", 16)
        self.assertEqual(self.values(record, "--load_dir"), {""})
        self.assertEqual(self.cluster.show(job)["progress"]["step"], STEPS)

    def test_mindformers_finetune_job(self):
        _, record = self.ended("mindformers-finetune/job", 16)
        self.assertEqual(
            (self.values(record, "--run_mode"), self.sources(record)),
            ({"finetune"}, {(self.weights, 0)}),
        )
        self.assertIn("scheduler", record.starts(1))

    def test_mindformers_finetune_lora(self):
        _, record = self.ended("mindformers-finetune/lora", 8)
        self.assertEqual(
            (self.values(record, "--run_mode"), self.sources(record)),
            ({"finetune"}, {(self.weights, 0)}),
        )
        self.assertEqual(
            {os.path.basename(path) for path in self.values(record, "--config")},
            {"lora_llama2_7b.yaml"},
        )
        self.assertNotIn("scheduler", record.starts(1))

    def test_mindformers_infer_eval(self):
        job, record = self.ended("mindformers-infer/eval", 8, steps=(), kept=None)
        self.assertEqual(
            (self.values(record, "--run_mode"), self.sources(record)),
            ({"eval"}, {(self.weights, 0)}),
        )
        self.assertIn(
            "'PPL': 8.395", self.cluster.output("logs", "-f", job, "--grep", "PerplexityMetric")
        )  # the command that the sample names

    def test_mindformers_observe_eval_during_training(self):
        job, record = self.ended("mindformers-observe/eval-during-training", 8)
        self.assertEqual(
            (self.values(record, "--run_mode"), self.values(record, "--do_eval")),
            ({"train"}, {"True"}),
        )
        found = self.cluster.output(
            "logs", "-f", job, "--rank", "0", "--grep", "Eval result"
        )  # the command that the sample names
        self.assertEqual(found.count("'PPL': 8.395"), STEPS // 4, found)
        self.assertEqual(self.cluster.show(job)["progress"]["step"], STEPS)

    def observed(self, record, below):
        """{path below it: path} of what the ranks have written into a directory of ${out}, as the first one's node sees it."""
        env = record.starts(1)[0]["env"]
        own = self.cluster.own_disks and env["MUSTER_NODE"] in ("n2", "n3")
        top = os.path.join(
            *(
                [self.cluster.disk(env["MUSTER_NODE"]), env["MUSTER_JOB_ID"]]
                if own
                else [env["MUSTER_OUT"]]
            ),
            below,
        )
        return {
            os.path.relpath(os.path.join(path, name), top): os.path.join(path, name)
            for path, _, names in os.walk(top)
            for name in names
        }

    def test_mindformers_observe_profile(self):
        job, record = self.ended("mindformers-observe/profile", 8)
        files = self.observed(record, "checkpoints/attempt-1/profile")
        self.assertEqual(sorted(files), [f"rank_{rank}/profiler_info.json" for rank in range(8)])
        with open(files["rank_7/profiler_info.json"], encoding="utf-8") as file:
            self.assertEqual(json.load(file), {"start": 5, "stop": 8})
        self.assertIn(
            "data sink mode will be turned off",
            self.cluster.output("logs", "-f", job, "--rank", "0"),
        )

    def test_mindformers_observe_dump(self):
        _, record = self.ended("mindformers-observe/dump", 8)
        self.assertEqual(
            len({start["env"]["MINDSPORE_DUMP_CONFIG"] for start in record.starts(1).values()}), 1
        )  # a file a node
        files = self.observed(record, "dump/attempt-1")
        tensors = [f"llama2_7b/0/{iteration}/Conv2D.Conv2D-op1.0.0.json" for iteration in (0, 4, 5)]
        self.assertEqual(
            sorted(files),
            sorted(
                f"rank_{rank}/{name}"
                for rank in range(8)
                for name in (".dump_metadata/data_dump.json", *tensors)
            ),
        )

    def test_megatron_gpt_profile(self):
        _, record = self.ended("megatron-gpt/profile", 8, kept=None)
        self.assertEqual(
            sorted(self.observed(record, "profile/attempt-1")), ["tensorboard/rank-0.pt.trace.json"]
        )

    def test_mindformers_infer_predict(self):
        job, record = self.ended("mindformers-infer/predict", 1, steps=(), kept=None)
        self.assertEqual(
            (self.values(record, "--use_parallel"), self.sources(record)),
            ({"False"}, {(self.weights, 0)}),
        )
        self.assertEqual(self.values(record, "--predict_data"), {"I love Beijing, because"})
        self.assertIn("text_generation_text", self.cluster.output("logs", "-f", job))

    def test_mindspeed_mm_finetune_job(self):
        _, record = self.ended("mindspeed-mm-finetune/job", 16)
        self.assertEqual(self.sources(record), {(self.release, 0)})

    def test_megatron_gpt_one_node(self):
        _, record = self.ended("megatron-gpt/one-node", 8)
        self.assertEqual(
            {start["env"]["MUSTER_NODES"] for start in record.starts(1).values()}, {"1"}
        )

    def test_megatron_gpt_two_nodes(self):
        _, record = self.ended("megatron-gpt/two-nodes", 16)
        self.assertEqual(
            {start["env"]["CUDA_DEVICE_MAX_CONNECTIONS"] for start in record.starts(1).values()},
            {"1"},
        )

    def test_megatron_gpt_resume(self):
        _, old = self.ended("megatron-gpt/two-nodes", 16)
        directory = os.path.join(self.cluster.work, "old_run", "gpt-345m")
        shutil.copytree(
            os.path.join(self.saved_in(old), f"iter_{SAVED:07d}"),
            os.path.join(directory, f"iter_{SAVED:07d}"),
        )
        with open(
            os.path.join(directory, "latest_checkpointed_iteration.txt"), "w", encoding="ascii"
        ) as file:
            file.write(str(SAVED))
        self.begin(
            "megatron-gpt/resume",
            self.megatron,
            {**SHORT, "--load": directory},
            **{"resources.type": "ascend"},
        )
        _, record = self.ended("megatron-gpt/resume", 16, range(SAVED + 1, STEPS + 1))
        self.assertEqual(self.sources(record), {(directory, SAVED)})
        self.assertLessEqual(record.losses().items(), old.losses().items())

    def test_megatron_gpt_two_nodes_own_disks(self):
        """A fault is what this one is about: no node sees the whole checkpoint, and each goes on from its own part of it."""
        job, record = self.jobs["megatron-gpt/two-nodes-own-disks"]
        record.wait_blocked(job)
        blocked = next(
            p
            for p in self.cluster.rank_processes()
            if (p.env["MUSTER_JOB_ID"], p.env["MUSTER_RANK"]) == (job, "8")
        )
        self.assertTrue(kill_process(blocked) and wait_gone(blocked))
        self.ended("megatron-gpt/two-nodes-own-disks", 16, attempt=2)
        self.assertEqual(
            self.sources(record, 2), {(record.starts(2)[0]["env"]["MUSTER_RESUME_DIR"], SAVED)}
        )
        _, shared = self.ended("megatron-gpt/two-nodes", 16)
        self.assertEqual(record.losses(), shared.losses())
        self.assertEqual(
            {
                os.path.basename(os.path.dirname(start["cwd"]))
                for start in record.starts(2).values()
            },
            {"node-0", "node-1"},
        )
        if not self.cluster.own_disks:
            self.skipTest("this user may mount nothing: its nodes have shared a storage")
        for stage, node in enumerate(
            sorted({start["env"]["MUSTER_NODE"] for start in record.starts(2).values()})
        ):
            here = os.path.join(
                self.cluster.disk(node), job, "checkpoints", "attempt-1", f"iter_{SAVED:07d}"
            )
            self.assertEqual(
                sorted(os.listdir(here)),
                [f"mp_rank_{tensor:02d}_{stage:03d}" for tensor in range(4)],
            )

    def test_tiny_gpt_job(self):
        job, _ = self.jobs["tiny-gpt/job"]
        self.cluster.wait(job)
        self.assertEqual(self.cluster.show(job)["progress"]["step"], 20)

    def test_tiny_gpt_finetune(self):
        first, _ = self.jobs["tiny-gpt/job"]
        self.cluster.wait(first)
        weights = os.path.dirname(
            self.cluster.output("ckpt", "ls", first, "-o", "name").split()[-1]
        )
        self.begin(
            "tiny-gpt/finetune",
            options={"--steps": 5},
            env={"WEIGHTS": weights},
            **{"network.master_port": self.wide + 1},
        )
        job, _ = self.jobs["tiny-gpt/finetune"]
        self.cluster.wait(job)
        self.assertIn(
            f"successfully loaded checkpoint from {weights} at iteration 20",
            self.cluster.output("logs", "-f", job),
        )
        last = [self.cluster.show(one)["progress"] for one in (first, job)]
        self.assertEqual([progress["step"] for progress in last], [20, 5])
        self.assertLess(last[1]["loss"], 5.2)  # of 5.5 with random weights

    def test_launcher_scripts_torchrun(self):
        job, record = self.ended("launcher-scripts/torchrun", 16)
        self.assertEqual(self.values(record, "--save"), {self.saved_in(record)})
        self.assertIn(
            "--nnodes 1 -> 2, --node_rank 0 -> 1, --master_addr localhost -> 127.0.0.1",
            self.cluster.output("logs", "-f", job),
        )
        # Both nodes write that one file, as they would by hand; what each has said is in its log.
        self.assertGreater(
            os.path.getsize(os.path.join(self.in_script["torchrun"], "logs", "train_gpt_345m.log")),
            0,
        )
        _, direct = self.ended("megatron-gpt/two-nodes", 16)
        self.assertEqual(record.losses(), direct.losses())

    def test_launcher_scripts_msrun(self):
        job, record = self.ended("launcher-scripts/msrun", 16)
        self.assertIn("scheduler", record.starts(1))
        self.assertEqual(
            {start["env"]["MS_CLUSTER_TIMEOUT"] for start in record.starts(1).values()}, {"7200"}
        )
        self.assertIn("msrun: ranks ", self.cluster.output("logs", "-f", job))
        self.assertTrue(
            os.path.exists(os.path.join(self.in_script["msrun"], "output/msrun_log/worker_15.log"))
        )

    def test_launcher_scripts_run_distribute(self):
        job, record = self.ended("launcher-scripts/run_distribute", 16, kept=None)
        for rank, start in record.starts(1).items():
            self.assertEqual(
                (start["env"]["DEVICE_ID"], start["env"]["MUSTER_NODE"]),
                (str(rank % 8), "n1" if rank < 8 else "n0"),
            )
            with open(
                os.path.join(
                    self.in_script["run_distribute"], f"output/log/rank_{rank}/mindformer.log"
                ),
                encoding="utf-8",
            ) as file:
                self.assertIn("Training Over!", file.read())
        self.assertIn(
            "start training for rank 15, device 7", self.cluster.output("logs", "-f", job)
        )


if __name__ == "__main__":
    unittest.main()
