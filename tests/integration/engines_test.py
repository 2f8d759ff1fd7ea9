#!/usr/bin/python3
"""The conformance trainers themselves, started by hand: do they refuse what they are there to refuse?

A trainer that let everything pass would prove nothing about muster, so each fault that engines_*_test.py rely on is made here once: an unknown argument,
left-over variables, a wrong DEVICE_ID, a rank table that HCCL would not take, two ranks in one directory, a stale or garbled tracker, resume with the wrong shards,
ranks that disagree.

Run:  /usr/bin/python3 -B tests/integration/engines_test.py [-v]       (no muster needed)
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance import state  # noqa: E402
from conformance.harness import install  # noqa: E402
from conformance.trainer import release  # noqa: E402

PATIENCE = 60.0  # s; only a bound
GPT = """--num-layers 2 --hidden-size 8 --num-attention-heads 2 --seq-length 8 --max-position-embeddings 8 --micro-batch-size 1 --tokenizer-type NullTokenizer
    --train-iters 6 --lr 1e-4 --save-interval 3 --log-interval 1 --ckpt-format torch""".split()
CONFIG = """\
seed: 0
output_dir: './output'
load_checkpoint: ''
resume_training: False
run_mode: 'train'
runner_config:
  epochs: 2
  batch_size: 1
  sink_mode: True
  sink_size: 2
train_dataset: &train_dataset
  data_loader:
    type: MindDataset
    dataset_dir: ""
    num_samples: 20
use_parallel: True
parallel:
  parallel_mode: 1
parallel_config:
  data_parallel: 2
  model_parallel: 1
  pipeline_stage: 1
callbacks:
  - type: MFLossMonitor
  - type: CheckpointMointor
    prefix: "llama_7b"
    save_checkpoint_steps: 4
context:
  mode: 0
  device_target: "Ascend"
  device_id: 0
"""
TABLE = {
    "version": "1.0",
    "server_count": "2",
    "server_list": [
        {
            "server_id": "127.0.0.1",
            "device": [{"device_id": "4", "device_ip": "192.1.1.14", "rank_id": "0"}],
            "host_nic_ip": "reserve",
        },
        {
            "server_id": "127.0.0.2",
            "device": [{"device_id": "5", "device_ip": "192.2.1.15", "rank_id": "1"}],
            "host_nic_ip": "reserve",
        },
    ],
    "status": "completed",
}


def torchrun(rank, world, port):
    return {
        "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world, "GROUP_RANK": 0, "GROUP_WORLD_SIZE": 1, "ROLE_NAME": "default",
        "ROLE_RANK": rank, "ROLE_WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
    }  # fmt: skip


class Trainers(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="muster-trainers-")
        self.addCleanup(shutil.rmtree, self.root)
        self.code = install(self.path("code"), {
            "pretrain_gpt.py": "megatron-core-0.12", "gpt_0_8.py": "megatron-core-0.8", "gpt_0_16.py": "megatron-core-0.16",
            "trainer.py": "mindspeed-mm-26.1-fsdp2", "run_mindformer.py": "mindformers-r0.6", "old.py": "mindformers-r0.3",
            "new.py": "mindformers-r1.0", "newer.py": "mindformers-r1.5", "train.py": "deepspeed"})  # fmt: skip
        self.save = self.path("save")

    def path(self, *names):
        return os.path.join(self.root, *names)

    def file(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def run_all(self, script, starts):
        """[(code, output)]: one process an (arguments, environment, directory), all at once."""
        processes = []
        for args, env, cwd in starts:
            os.makedirs(cwd, exist_ok=True)
            env = {
                "PATH": "/usr/bin:/bin",
                "PYTHONDONTWRITEBYTECODE": "1",
                **{name: str(value) for name, value in env.items()},
            }
            command = [
                "/usr/bin/python3",
                "-u",
                os.path.join(self.code, script),
                *[str(arg) for arg in args],
            ]
            processes.append(
                subprocess.Popen(
                    command,
                    env=env,
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
        try:
            return [
                (process.returncode, out)
                for process, out in [
                    (process, process.communicate(timeout=PATIENCE)[0]) for process in processes
                ]
            ]
        finally:
            for process in processes:
                process.kill()
                process.wait()
                process.stdout.close()

    # ---- Megatron-LM

    def gpt(self, *args, world=2, env=None, ranks=None, script="pretrain_gpt.py", base=GPT):
        # Bound and not listening: rank 0 can still listen there, and nobody else is given this port meanwhile.
        with socket.socket() as port:
            port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port.bind(("127.0.0.1", 0))
            starts = [
                (
                    [*base, *args],
                    {**torchrun(rank, world, port.getsockname()[1]), **(env or {})},
                    self.root,
                )
                for rank in ranks or range(world)
            ]
            return self.run_all(script, starts)

    def gpt_says(self, code, words, *args, **more):
        for status, out in self.gpt(*args, **more):
            self.assertEqual(status, code, out)
            self.assertIn(words, out)

    def losses(self, out):
        return [
            line.split(" lm loss: ")[1].split(" ")[0]
            for line in out.splitlines()
            if " lm loss: " in line
        ]

    def test_a_run_that_resumes_prints_the_same_losses(self):
        whole = self.losses(self.gpt("--save", self.path("whole"))[1][1])
        self.assertEqual(len(whole), 6)
        self.gpt("--save", self.save, "--train-iters", "3")
        (code, first), (_, last) = self.gpt("--save", self.save, "--load", self.save)
        self.assertEqual(code, 0, first)
        self.assertIn(
            f"  successfully loaded checkpoint from {self.save} [ t 1/1, p 1/1 ] at iteration 3\n",
            first,
        )
        self.assertEqual(self.losses(last), whole[3:])
        # Without the optimizer's part of the state it is another run.
        shutil.rmtree(os.path.join(self.save, "iter_0000006"))
        self.file("save/latest_checkpointed_iteration.txt", "3")
        self.assertNotEqual(
            self.losses(self.gpt("--load", self.save, "--no-load-optim")[1][1]), whole[3:]
        )

    def test_an_orderly_end(self):
        (code, first), (_, last) = self.gpt("--save", self.save, "--exit-interval", "4")
        self.assertEqual((code, len(self.losses(last))), (0, 4), first)
        self.assertRegex(
            first,
            r"saved checkpoint from iteration +4 to .*\n\[exiting program at iteration 4\] datetime: ",
        )
        self.assertNotIn("after training is done", first)

    def test_arguments(self):
        self.gpt_says(2, "pretrain_gpt.py: error: unrecognized arguments: \\\n", "\\", ranks=[0])
        self.gpt_says(
            2,
            "pretrain_gpt.py: error: unrecognized arguments: --tensor-model-parallel 2\n",
            "--tensor-model-parallel",
            "2",
            ranks=[0],
        )
        self.gpt_says(2, "argument --seed: invalid int value: 'x'", "--seed", "x", ranks=[0])
        self.gpt_says(
            2,
            "argument --lr-decay-style: invalid choice: 'line'",
            "--lr-decay-style",
            "line",
            ranks=[0],
        )
        self.gpt_says(2, "argument --save: expected one argument", "--save", "--bf16", ranks=[0])
        self.gpt_says(
            1,
            "AssertionError: world size (2) is not divisible by total_model_size (4)",
            "--pipeline-model-parallel-size",
            "4",
            ranks=[0],
        )
        self.gpt_says(
            1,
            "require setting the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 1",
            "--tensor-model-parallel-size",
            "2",
            ranks=[0],
        )
        self.gpt_says(
            0, "", "--tensor-model-parallel-size", "2", env={"CUDA_DEVICE_MAX_CONNECTIONS": 1}
        )

    def test_other_releases(self):
        old = {
            "script": "gpt_0_8.py",
            "base": GPT[: GPT.index("--ckpt-format")],
            "env": {"CUDA_DEVICE_MAX_CONNECTIONS": 1},
        }
        dist = ["--use-dist-ckpt", "--dist-ckpt-format", "torch_dist"]
        self.gpt_says(
            2,
            "unrecognized arguments: --ckpt-format torch",
            "--ckpt-format",
            "torch",
            **{**old, "ranks": [0]},
        )
        self.gpt_says(1, "RuntimeError: Using async gradient all reduce requires setting the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 1",
                      **{**old, "env": {}, "ranks": [0]})  # fmt: skip
        self.gpt_says(0, "", "--save", self.save, *dist, **old)
        self.assertIn("__1_0.distcp", os.listdir(os.path.join(self.save, "iter_0000006")))
        self.gpt_says(
            1,
            "neither --use-dist-ckpt nor --auto-detect-ckpt-format is set",
            "--load",
            self.save,
            **old,
        )
        new = {"script": "gpt_0_16.py"}
        self.gpt_says(
            2, "unrecognized arguments: --use-custom-fsdp", "--use-custom-fsdp", ranks=[0], **new
        )
        (_, out), _ = self.gpt(
            "--save", self.path("new"), "--save-interval", "2", "--save-retain-interval", "4", **new
        )
        self.assertRegex(out, r"(?m)^\[\S+ \S+\.\d{6}\] saving checkpoint at iteration +2 to ")
        self.assertRegex(
            out,
            r"(?m)^  \[\S+ \S+\.\d{6}\] successfully saved checkpoint from iteration +6 to .* \[ t 1/1, p 1/1 \]$",
        )
        self.assertEqual(
            sorted(name for name in os.listdir(self.path("new")) if name.startswith("iter_")),
            ["iter_0000004", "iter_0000006"],
        )
        # A tracker that says 0: an assertion of the one, a checkpoint that is not there to the other.
        self.file("new/latest_checkpointed_iteration.txt", "0")
        self.gpt_says(1, "AssertionError: error parsing metadata file", "--load", self.path("new"))
        self.gpt_says(1, "FileNotFoundError", "--load", self.path("new"), **new)

    def test_a_save_in_the_background(self):
        self.gpt_says(
            1,
            "NotImplementedError: Async checkpoint save of legacy checkpoints",
            "--save",
            self.save,
            "--async-save",
        )
        dist = ["--save", self.save, "--ckpt-format", "torch_dist", "--save-interval", "2"]
        (code, out), _ = self.gpt(*dist, "--async-save", "--exit-interval", "3")
        self.assertEqual(code, 0, out)
        # The save of step 2 is still open at the exit, and ends then.
        self.assertRegex(out, r"scheduled an async checkpoint save at iteration +2 to [^$]*Unfinalized async checkpoint saves[^$]*"
                              r"successfully saved checkpoint from iteration +2 to [^$]*successfully saved checkpoint from iteration +3 to")  # fmt: skip
        self.gpt_says(0, "", *dist, "--load", self.save, "--async-save")
        with open(
            os.path.join(self.save, "latest_checkpointed_iteration.txt"), encoding="ascii"
        ) as file:
            self.assertEqual(file.read(), "6")
        os.unlink(os.path.join(self.save, "iter_0000006", ".metadata"))
        self.gpt_says(
            1, "is not a distributed checkpoint: no .metadata", *dist, "--load", self.save
        )
        # core_r0.16 turns it off without the worker that stays.
        (code, out), _ = self.gpt(
            "--save",
            self.path("new"),
            "--ckpt-format",
            "torch_dist",
            "--async-save",
            script="gpt_0_16.py",
        )
        self.assertEqual((code, "scheduled an async" in out), (0, False), out)

    def test_sharded_models(self):
        dcp = ["--ckpt-format", "torch_dcp", "--save", self.save]
        fsdp = ["--use-torch-fsdp2", "--untie-embeddings-and-output-weights"]
        self.gpt_says(
            1, "AssertionError: --ckpt-format torch_dcp is only tested with FSDP.", *dcp, ranks=[0]
        )
        self.gpt_says(
            1,
            "AssertionError: FSDP always requires CUDA_DEVICE_MAX_CONNECTIONS",
            *dcp,
            *fsdp,
            env={"CUDA_DEVICE_MAX_CONNECTIONS": 1},
            ranks=[0],
        )
        self.gpt_says(0, "", *dcp, *fsdp)
        self.gpt_says(
            1, "NotImplementedError: checkpoint format torch not supported", "--load", self.save
        )
        os.unlink(os.path.join(self.save, "iter_0000006", ".metadata"))
        self.gpt_says(
            1, "NotImplementedError: unknown checkpoint format in", *dcp, *fsdp, "--load", self.save
        )
        self.gpt_says(1, "RuntimeError: decoder world_size (2) is not divisible by expert_tensor_model_pipeline_parallel size (4)",
                      "--expert-model-parallel-size", "4", ranks=[0])  # fmt: skip

    # ---- MindSpeed-MM's FSDP2 back end

    def fsdp2_says(self, code, words, *args, env=None, **more):
        config = self.file(
            "config.yaml",
            "training:\n  train_iters: 6\n  save_interval: 3\n  micro_batch_size: 1\n",
        )
        for status, out in self.gpt(
            *args,
            base=[config],
            script="trainer.py",
            env={"NON_MEGATRON": "true", **(env or {})},
            **more,
        ):
            self.assertEqual(status, code, out)
            self.assertIn(words, out)

    def test_fsdp2(self):
        self.fsdp2_says(3, "'--save' is no NAME=VALUE", "--save", self.save, ranks=[0])
        self.fsdp2_says(
            3, "['sav'] are no settings of training", f"training.sav={self.save}", ranks=[0]
        )
        self.fsdp2_says(3, "NON_MEGATRON is not set", env={"NON_MEGATRON": ""}, ranks=[0])
        self.fsdp2_says(1, "no .metadata in", f"training.load={self.save}")
        self.fsdp2_says(
            0, "", f"training.save={self.save}", "training.load=", "training.save_async=true"
        )
        self.fsdp2_says(0, "", f"training.load={self.save}", "training.train_iters=7")
        os.rename(os.path.join(self.save, "iter_0000003"), os.path.join(self.save, "iter_0000005"))
        self.file("save/latest_checkpointed_iteration.txt", "5")
        self.fsdp2_says(
            3, "says 5, what lies there is of steps 3 and 3", f"training.load={self.save}"
        )
        self.file("save/latest_checkpointed_iteration.txt", "6")
        torn = os.path.join(self.save, "iter_0000006", "extra_state", "extra_state_rank_1.pt")
        os.truncate(torn, os.path.getsize(torn) // 2)
        self.assertIn(1, [code for code, _ in self.gpt(f"training.load={self.save}", base=[self.path("config.yaml")], script="trainer.py",
                                                    env={"NON_MEGATRON": "true", "HCCL_EXEC_TIMEOUT": "0.1"})])  # fmt: skip

    def test_environment(self):
        self.gpt_says(
            3, "RANK_TABLE_FILE=/x.json is left over", env={"RANK_TABLE_FILE": "/x.json"}, ranks=[0]
        )
        self.gpt_says(
            3,
            "TORCHELASTIC_USE_AGENT_STORE=True is left over",
            env={"TORCHELASTIC_USE_AGENT_STORE": "True"},
            ranks=[0],
        )
        self.gpt_says(3, "LOCAL_RANK is not set (torchrun)", env={"LOCAL_RANK": ""}, ranks=[0])
        self.gpt_says(
            3,
            "'RANK == GROUP_RANK * LOCAL_WORLD_SIZE + LOCAL_RANK' does not hold",
            env={"RANK": 1},
            ranks=[0],
        )
        self.gpt_says(
            3,
            "HCCL_IF_IP is 192.0.2.1, which is no address of this host",
            env={"HCCL_IF_IP": "192.0.2.1"},
            ranks=[0],
        )
        self.gpt_says(3, "MASTER_PORT is 0, not within 1..65535", env={"MASTER_PORT": 0}, ranks=[0])

    def test_trackers(self):
        self.gpt("--save", self.save)
        tracker = "save/latest_checkpointed_iteration.txt"
        os.rename(os.path.join(self.save, "iter_0000003"), os.path.join(self.save, "iter_0000004"))
        self.file(tracker, "4")
        self.gpt_says(3, "a stale tracker", "--load", self.save)
        self.file(tracker, "5")
        self.gpt_says(
            1, "FileNotFoundError: [Errno 2] No such file or directory", "--load", self.save
        )
        # The two that the shell takes for success: the engine leaves by sys.exit() without a status.
        self.file(tracker, "")
        self.assertEqual([code for code, _ in self.gpt("--load", self.save)], [0, 0])
        os.unlink(self.path(tracker))
        self.assertEqual(
            [code for code, _ in self.gpt("--load", self.save, "--exit-on-missing-checkpoint")],
            [0, 0],
        )

    def test_a_torn_checkpoint(self):
        self.gpt("--save", self.save)
        torn = os.path.join(self.save, "iter_0000006", "mp_rank_00", "model_optim_rng.pt")
        os.truncate(torn, os.path.getsize(torn) // 2)
        self.gpt_says(1, "PytorchStreamReader failed reading zip archive", "--load", self.save)

    # ---- DeepSpeed

    def zero(self, *args, world=2, stage=2, env=None, ranks=None, batch=None, local_rank=None):
        config = self.file("ds.json", json.dumps({"train_batch_size": batch or world, "steps_per_print": 1,
                           "optimizer": {"type": "Adam", "params": {"lr": 0.001}}, "zero_optimization": {"stage": stage}}))  # fmt: skip
        with socket.socket() as port:
            port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port.bind(("127.0.0.1", 0))
            starts = []
            for rank in ranks or range(world):
                own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_SIZE": world, "CROSS_RANK": 0, "CROSS_SIZE": 1,
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port.getsockname()[1], **(env or {})}  # fmt: skip
                given = [f"--local_rank={rank}"] if local_rank is None else local_rank
                words = [
                    *given,
                    "--deepspeed_config",
                    config,
                    "--steps",
                    "6",
                    "--save_interval",
                    "3",
                ]
                starts.append(([*words, *args], own, self.root))
            return self.run_all("train.py", starts)

    def zero_says(self, code, words, *args, **more):
        for status, out in self.zero(*args, **more):
            self.assertEqual(status, code, out)
            self.assertIn(words, out)

    def test_deepspeed(self):
        for stage in (0, 2, 3):
            with self.subTest(stage):
                save = self.path(f"zero-{stage}")
                (code, out), _ = self.zero("--save_dir", save, stage=stage)
                self.assertEqual(code, 0, out)
                self.assertRegex(out, r"\[Rank 0\] step=6, skipped=0, lr=\[0.001\]")
                files = {0: 1, 2: 3, 3: 4}[stage]
                self.assertEqual(len(os.listdir(os.path.join(save, "global_step6"))), files)
                self.file(f"zero-{stage}/latest", "global_step3")
                (code, out), _ = self.zero("--load_dir", save, stage=stage)
                self.assertEqual(code, 0, out)
                self.assertEqual((" step=3, " in out, " step=4, " in out), (False, True), out)
                # A tag of one step above the files of another one.
                os.rename(os.path.join(save, "global_step3"), os.path.join(save, "global_step4"))
                self.file(f"zero-{stage}/latest", "global_step4")
                self.zero_says(3, "'latest' says global_step4", "--load_dir", save, stage=stage)
        self.zero_says(0, "Unable to find latest file at", "--load_dir", self.path("nowhere"))
        save = self.path("zero-2")
        self.file("zero-2/latest", "global_step6")
        self.zero_says(1, "used a DP world size of 2 but the current world size is 1", "--load_dir", save, world=1)  # fmt: skip
        torn = os.path.join(save, "global_step6", "zero_pp_rank_1_mp_rank_00_optim_states.pt")
        os.truncate(torn, os.path.getsize(torn) // 2)
        self.assertIn(
            "PytorchStreamReader failed reading zip archive",
            self.zero("--load_dir", save)[1][1],
        )

    def test_arguments_of_deepspeed(self):
        self.zero_says(
            1, "AssertionError: Mismatch in local rank setting", local_rank=["--local_rank=7"], ranks=[0]
        )  # fmt: skip
        self.zero_says(3, "passes --local_rank to this program", local_rank=[], ranks=[0])
        self.zero_says(2, "unrecognized arguments: --hostfile hosts", "--hostfile", "hosts", ranks=[0])  # fmt: skip
        self.zero_says(1, "AssertionError: Check batch related parameters.", batch=3, ranks=[0])
        self.zero_says(
            1,
            "ValueError: Expected a string path to an existing deepspeed config",
            "--deepspeed_config",
            "nowhere.json",
            ranks=[0],
        )
        self.zero_says(3, "CROSS_RANK is not set (deepspeed)", env={"CROSS_RANK": ""}, ranks=[0])
        self.zero_says(
            3,
            "'RANK == CROSS_RANK * LOCAL_SIZE + LOCAL_RANK' does not hold",
            env={"RANK": 1},
            ranks=[0],
        )

    # ---- MindFormers

    def table(self, change=None, name="hccl_2s_2p.json"):
        table = json.loads(json.dumps(TABLE))
        if change:
            change(table)
        return self.file(name, json.dumps(table))

    def former(
        self,
        *args,
        script="run_mindformer.py",
        table=None,
        out=None,
        env=None,
        ranks=(0, 1),
        cwd=None,
        config=CONFIG,
    ):
        self.calls = getattr(self, "calls", 0) + 1
        table, out = table or self.table(), out or f"out-{self.calls}"
        config = self.file("run_llama.yaml", config)
        starts = []
        for rank in ranks:
            own = {
                "RANK_TABLE_FILE": table,
                "RANK_ID": rank,
                "RANK_SIZE": 2,
                "DEVICE_ID": 4 + rank,
                "LOCAL_DEFAULT_PATH": self.path(out),
                **(env or {}),
            }
            own = {name: value for name, value in own.items() if value is not None}
            starts.append(
                (
                    ["--config", config, "--use_parallel", "True", *args],
                    own,
                    cwd or self.path(f"work-{self.calls}-{rank}"),
                )
            )
        return self.run_all(script, starts)

    def former_says(self, code, words, *args, **more):
        for status, out in self.former(*args, **more):
            self.assertEqual(status, code, out)
            self.assertIn(words, out)

    def test_mindformers_resumes_by_time_and_by_meta(self):
        for script, callback in (("run_mindformer.py", "time"), ("new.py", "meta")):
            with self.subTest(callback):
                out = f"out-{callback}"
                for code, text in self.former("--epochs", "1", script=script, out=out, env={} if callback == "time" else {"LOCAL_DEFAULT_PATH": None},
                                              *(["--output_dir", self.path(out)] if callback == "meta" else [])):  # fmt: skip
                    self.assertEqual(code, 0, text)
                whole = sorted(os.listdir(self.path(out, "checkpoint", "rank_1")))
                saved = [name for name in whole if name.endswith(".ckpt")]
                self.assertEqual(saved, [f"llama_7b_rank_1-{sink}_2.ckpt" for sink in (2, 4, 5)])
                self.assertEqual("meta.json" in whole, callback == "meta")
                self.assertEqual(
                    os.stat(
                        self.path(out, "checkpoint", "rank_0", "llama_7b_rank_0-5_2.ckpt")
                    ).st_mode
                    & 0o777,
                    0o400,
                )
                for code, text in self.former("--load_checkpoint", self.path(out, "checkpoint"), "--resume_training", "True",
                                              "--output_dir", self.path(out + "2"), script=script, out=out + "2"):  # fmt: skip
                    self.assertEqual(code, 0, text)
                    self.assertIn("Epoch:[  2/  2], step:[    2/   10]", text)
                    self.assertNotIn("Epoch:[  1/  2]", text)

    def test_safetensors(self):
        config = CONFIG.replace(
            "CheckpointMointor", "CheckpointMonitor\n    checkpoint_format: safetensors"
        )
        more = {"script": "newer.py", "config": config, "env": {"LOCAL_DEFAULT_PATH": None}}
        self.former_says(
            0,
            "Finish saving ckpt of epoch 5 step 2",
            "--output_dir",
            self.path("out"),
            "--epochs",
            "1",
            **more,
        )
        checkpoint = self.path("out", "checkpoint")
        resume = ["--load_checkpoint", checkpoint, "--resume_training", "true", "--output_dir"]
        self.former_says(
            1, "No checkpoint could be resumed.", *resume, self.path("two"), **more
        )  # which looks for .ckpt
        self.former_says(
            0,
            "Epoch:[  2/  2], step:[   10/   10]",
            *resume,
            self.path("three"),
            "--load_ckpt_format",
            "safetensors",
            **more,
        )

    def test_arguments_of_mindformers(self):
        self.former_says(1, "ValueError: input arg key-values are not in pair", "\\", ranks=[0])
        self.former_says(
            1, "ValueError: Custom config key need to start with --.", "\\", "x", ranks=[0]
        )
        self.former_says(
            3,
            "'--resume_trainings' is no argument of this release",
            "--resume_trainings",
            "True",
            ranks=[0],
        )
        self.former_says(
            2,
            "argument --use_parallel: invalid str2bool value: '1'",
            "--use_parallel",
            "1",
            ranks=[0],
        )
        self.former_says(
            1,
            "FileNotFoundError: [Errno 2] No such file or directory",
            "--config",
            "/nowhere.yaml",
            ranks=[0],
        )
        self.former_says(
            2,
            "old.py: error: unrecognized arguments: --resume_training True",
            "--resume_training",
            "True",
            script="old.py",
            ranks=[0],
        )
        self.former_says(
            1,
            "ValueError: if run status is finetune, load_checkpoint must be input",
            "--run_mode",
            "finetune",
        )

    def test_environment_of_mindformers(self):
        self.former_says(
            3, "config devId is inconsistent with the local devId", env={"DEVICE_ID": 0}, ranks=[0]
        )
        self.former_says(3, "MA_JOB_DIR=/x is left over", env={"MA_JOB_DIR": "/x"}, ranks=[0])
        self.former_says(
            3,
            "ASCEND_RT_VISIBLE_DEVICES=4,5 is left over",
            env={"ASCEND_RT_VISIBLE_DEVICES": "4,5"},
            ranks=[0],
        )
        self.former_says(3, "RANK_TABLE_FILE=", env={"MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": 2, "MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": 8118,
                                                     "MS_NODE_ID": 0}, ranks=[0])  # fmt: skip
        self.former_says(
            3, "the table has 2 ranks; RANK_ID is 1, RANK_SIZE 3", env={"RANK_SIZE": 3}, ranks=[1]
        )
        os.makedirs(self.path("taken"))
        self.file("taken/conformance.lock", "")
        self.former_says(
            3, "another process has run, or runs, in", cwd=self.path("taken"), ranks=[0]
        )

    def test_tables(self):
        def server(index, **more):
            return lambda table: table["server_list"][index].update(more)

        def device(index, **more):
            return lambda table: table["server_list"][index]["device"][0].update(more)

        for words, change in (
            ("status 'initializing'", lambda table: table.update(status="initializing")),
            ("server_count '3' and 2 servers", lambda table: table.update(server_count="3")),
            ("server_id 127.0.0.1 is used repeatedly", server(1, server_id="127.0.0.1")),
            ("device_ip 192.1.1.14 is used repeatedly", device(1, device_ip="192.1.1.14")),
            ("device_id is not string!", device(1, device_id=5)),
            ("rank ids are not 0..1", device(1, rank_id="2")),
            ("which is no address of this host", server(0, server_id="192.0.2.1")),
            ("device_ip '' is no address", device(1, device_ip="")),
        ):
            with self.subTest(words):
                self.former_says(3, words, table=self.table(change), ranks=[0])
        self.former_says(
            3, "is not a valid real path", table=self.table(name="hccl.json.new"), ranks=[0]
        )
        other = self.table(lambda table: table.update(comment="x"), "other.json")
        config = self.file("run_llama.yaml", CONFIG)
        starts = [(["--config", config, "--use_parallel", "True"], {"RANK_TABLE_FILE": table, "RANK_ID": rank, "RANK_SIZE": 2, "DEVICE_ID": 4 + rank,
                   "LOCAL_DEFAULT_PATH": self.path("differ")}, self.path(f"differ-{rank}")) for rank, table in enumerate((self.table(), other))]  # fmt: skip
        for code, text in self.run_all("run_mindformer.py", starts):
            self.assertEqual(code, 3, text)
            self.assertIn("2 different rank tables", text)

    def test_ranks_that_resume_from_different_steps(self):
        self.former("--epochs", "1", out="out")
        os.unlink(self.path("out", "checkpoint", "rank_1", "llama_7b_rank_1-5_2.ckpt"))
        for code, text in self.former(
            "--load_checkpoint",
            self.path("out", "checkpoint"),
            "--resume_training",
            "True",
            out="two",
        ):
            self.assertEqual(code, 3, text)
            self.assertIn("the ranks resume from different states", text)
        name = self.path("out", "checkpoint", "rank_0", "llama_7b_rank_0-4_2.ckpt")
        self.assertEqual(state.read_ckpt(name)[1]["step_num"], 8)

    def test_a_scheduler_and_its_workers(self):
        config = self.file("run_llama.yaml", CONFIG)
        with socket.socket() as port:
            port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port.bind(("127.0.0.1", 0))
            cluster = {
                "MS_WORKER_NUM": 2,
                "MS_SCHED_HOST": "127.0.0.1",
                "MS_SCHED_PORT": port.getsockname()[1],
            }
            args = ["--config", config, "--use_parallel", "True", "--output_dir", self.path("out")]

            def all_of(name, ids, scheduler=True, **more):
                starts = (
                    [(args, {**cluster, "MS_ROLE": "MS_SCHED"}, self.path(f"{name}-scheduler"))]
                    if scheduler
                    else []
                )
                for place, rank in enumerate(ids):
                    starts.append(
                        (
                            args,
                            {
                                **cluster,
                                "MS_ROLE": "MS_WORKER",
                                "MS_NODE_ID": rank,
                                "RANK_SIZE": 2,
                                **more,
                            },
                            self.path(f"{name}-{place}"),
                        )
                    )
                return self.run_all("new.py", starts)

            for code, text in all_of("good", (0, 1)):
                self.assertEqual(code, 0, text)
            code, text = all_of("twice", (1, 1), HCCL_EXEC_TIMEOUT="0.1")[
                0
            ]  # else the workers would wait half an hour, as the real ones do
            self.assertEqual(code, 3, text)
            self.assertIn("rank 1 came twice", text)
            for code, text in all_of("mixed", (0, 1), scheduler=False, RANK_TABLE_FILE="/x.json"):
                self.assertEqual(code, 3, text)
                self.assertIn("a rank table and a scheduler cannot be mixed", text)

    # ---- data files

    def test_every_data_file_names_its_sources_and_is_whole(self):
        folder = os.path.join(self.code, "conformance", "releases")
        for name in sorted(os.listdir(folder)):
            with self.subTest(name):
                rules = release(name[: -len(".json")])
                for part in ("arguments", "log", "checkpoint", "resume", "environment"):
                    self.assertIn(part, rules["sources"])
                for flag, kind in rules["arguments"]["flags"].items():
                    self.assertRegex(flag, r"^--[A-Za-z0-9_-]+$")
                    self.assertRegex(
                        kind,
                        r"^(flag|int|float|str|bool|[A-Za-z0-9_ -]+(\|[A-Za-z0-9_ -]+)*)[+*]?$",
                    )
                self.assertTrue(all(launcher["when"] == "" for launcher in rules["launchers"][-1:]))


if __name__ == "__main__":
    unittest.main()
