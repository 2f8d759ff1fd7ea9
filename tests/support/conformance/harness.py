"""For the integration tests: a code tree with conformance trainers in it, a cluster of nodes that look like several hosts, and what the trainers wrote down.

The nodes of a test share one machine, but not one address: 127.0.0.1, 127.0.0.2, ...  With `ascend=True` each has eight 910B cards, as its agent is told
by a file: no card is needed where no operator runs.
"""

import contextlib
import glob
import json
import os
import random
import re
import shlex
import shutil
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../integration"))
from cluster import DEADLINE, Cluster, Trace, kill_process, wait_gone  # noqa: E402

SAMPLES = os.path.abspath(os.path.join(HERE, "../../../deploy/samples"))
UNHURRIED = 100  # ms a step: of a job that is to be hurt while it runs, on a busy machine too
SCRIPT = '''"""Stands where {name} of {release} stands."""
from conformance.trainer import main

main("{release}", __file__)
'''


TOOL = '''"""Stands where {name} of {release} stands."""
from conformance.transform import main

main("{release}")
'''


def install(code, scripts):
    """A user's code tree: {script: release}. The package is copied, so that its compiled files go with the tree."""
    os.makedirs(code, exist_ok=True)
    shutil.copytree(
        HERE,
        os.path.join(code, "conformance"),
        ignore=shutil.ignore_patterns("__pycache__", "harness.py"),
    )
    for name, release in scripts.items():
        os.makedirs(os.path.dirname(os.path.join(code, name)), exist_ok=True)
        with open(os.path.join(code, name), "w", encoding="utf-8") as file:
            file.write(
                (TOOL if name.endswith("transform_ckpt.py") else SCRIPT).format(
                    name=name, release=release
                )
            )
    return code


class Engines(Cluster):
    def __init__(self, nodes=2, devices=8, ascend=False, **more):
        super().__init__(nodes, devices, **more)
        self._ascend = ascend

    def agent(self, name, **more):
        path = self.device_list(name)
        return super().agent(
            name,
            address=f"127.0.0.{self.nodes.index(name) + 1}",
            args=("--devices-from", path) if path else (),
            **more,
        )

    def device_list(self, name):
        """A file that lists the node's cards; None: CPU slots."""
        return self._cards(self.nodes.index(name)) if self._ascend else None

    def _cards(self, index):
        path = os.path.join(self.work, f"cards-{index}")
        with open(path, "w", encoding="ascii") as file:
            for card in range(self.devices):
                file.write(
                    f"id={card} type=ascend910b name=910B3 memory_mib=65536 address=192.{card % 4 + 1}.{index + 1}.{card + 10}\n"
                )
        return path

    def code(self, scripts, files=None):
        """A tree of its own; `files`: {path below it: text}."""
        tree = install(
            os.path.join(self.work, f"code-{len(glob.glob(os.path.join(self.work, 'code-*')))}"),
            scripts,
        )
        for name, text in (files or {}).items():
            path = os.path.join(tree, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return tree

    def job(self, name, engine, code, launch, step_ms=0, **more):
        """(spec, Record) of a job on every device."""
        record = Record(self, name)
        env = {
            "CONFORMANCE_RECORD": record.path,
            "CONFORMANCE_STEP_MS": str(step_ms),
            **more.pop("env", {}),
        }
        spec = {
            **self.torch_spec(name, launch, more.pop("nodes", None), more.pop("devices", None)),
            "engine": engine,
            "code": {"at": code},
            **more,
        }
        spec["runtime"] = {"python": "/usr/bin/python3", "env": env}
        spec["resources"]["type"] = "ascend" if self._ascend else "cpu"
        return spec, record


class Record(Trace):
    """A job's ranks in their own words: losses (as Trace), and how each was started, what it loaded and saved."""

    def events(self, kind, attempt=None):
        """{rank: event} of one attempt; "scheduler" is a rank here."""
        out = {}
        for path in glob.glob(os.path.join(self.path, "*.events")):
            name = os.path.basename(path)[: -len(".events")]
            rank = int(name[len("rank-") :]) if name.startswith("rank-") else name
            with open(path, encoding="utf-8") as file:
                lines = [
                    json.loads(line) for line in file.read().splitlines() if line.endswith("}")
                ]
            pids = {
                line["pid"]: int(line["env"]["MUSTER_ATTEMPT"])
                for line in lines
                if line["event"] == "started"
            }
            for line in lines:
                if line["event"] == kind and attempt in (None, pids[line["pid"]]):
                    out[rank] = line
        return out

    def wait_blocked(self, job, deadline=DEADLINE):
        """Until the rank of CONFORMANCE_HOLD is where it stays."""
        end = time.monotonic() + deadline
        while not os.path.exists(os.path.join(self.path, "blocked")):
            if not self._watch.wait(min(5.0, end - time.monotonic())) and time.monotonic() > end:
                raise AssertionError(
                    f"nobody came to the save that was waited for\n{self.cluster.story(job)}"
                )

    @contextlib.contextmanager
    def staying(self, step):
        """Ranks that come to that step stay there for as long as this lasts."""
        path = os.path.join(self.path, "stay")
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(str(step))
        os.rename(path + ".new", path)
        try:
            yield
        finally:
            os.unlink(path)

    def starts(self, attempt):
        return self.events("started", attempt)


def kill_rank(test, cluster, job, choose):
    """SIGKILL for the rank that is chosen out of those that live; returns which."""
    victims = sorted(cluster.rank_processes())
    test.assertTrue(victims, cluster.story(job))
    victim = choose(victims)
    test.assertTrue(
        kill_process(victim), f"rank process {victim.pid} was gone before it was killed"
    )
    test.assertTrue(wait_gone(victim))
    return int(victim.env["MUSTER_RANK"])


def option(argv, name):
    """The value behind --name in a recorded command line; None: it is not there."""
    for i, word in enumerate(argv):
        if word == name:
            return argv[i + 1] if i + 1 < len(argv) else ""
        if word.startswith(name + "="):
            return word[len(name) + 1 :]
    return None


class EngineTest(unittest.TestCase):
    """One cluster and one code tree a class; jobs take all devices, one after the other."""

    scripts = {}  # of the code tree: {name: release}
    files = {}
    ascend = False
    cluster_type = Engines
    cluster: Engines

    @classmethod
    def setUpClass(cls):
        if cls is EngineTest:
            raise unittest.SkipTest("no tests of its own")
        cls.seed = int(
            os.environ.get("MUSTER_TEST_SEED") or random.SystemRandom().randrange(1 << 32)
        )
        print(
            f"seed {cls.seed}: MUSTER_TEST_SEED={cls.seed} chooses the same victims",
            file=sys.stderr,
        )
        cls.cluster = cls.cluster_type(ascend=cls.ascend)
        cls.cluster.__enter__()
        try:
            cls.code = cls.cluster.code(cls.scripts, cls.files)
            cls.prepare()
        except BaseException:
            cls.cluster.__exit__(*sys.exc_info())
            raise
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)

    @classmethod
    def prepare(cls):
        """Runs that several tests compare with."""

    @classmethod
    def submit(cls, name, engine, launch, **more):
        spec, record = cls.cluster.job(name, engine, more.pop("code", cls.code), launch, **more)
        return cls.cluster.submit(spec), record

    @classmethod
    def from_sample(cls, sample, name, step_ms, options, more=(), env=None, **change):
        """A job.yaml of deploy/samples as it stands there, run on this test's code and nodes, with some of its arguments' values replaced."""
        record = Record(cls.cluster, name)
        path = os.path.join(cls.cluster.work, f"{name}.yaml")
        shutil.copy(sample, path)
        args = shlex.split(cls.sample_args(path))
        for key, value in options.items():
            args[args.index(key) + 1] = str(value)
        settings = {"name": name, "code.from": cls.code, "launch.args": json.dumps([*args, *more]), "runtime.python": "/usr/bin/python3",
                    "resources.type": "ascend" if cls.ascend else "cpu", "recovery": "{orphan_grace: 60s, stop_grace: 2s}", **change}  # fmt: skip
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        env = {"CONFORMANCE_RECORD": record.path, "CONFORMANCE_STEP_MS": step_ms, **(env or {})}
        words += [word for key, value in env.items() for word in ("--env", f"{key}={value}")]
        job = cls.cluster.output("run", "-d", path, *words).split()[0]
        cls.cluster.jobs.append(job)
        return job, record

    @staticmethod
    def sample_args(path):
        """The folded text below `args: >-`."""
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        begin = next(i for i, line in enumerate(lines) if line.strip() == "args: >-")
        indent = len(lines[begin]) - len(lines[begin].lstrip())
        taken = []
        for line in lines[begin + 1 :]:
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            taken.append(line.strip())
        return " ".join(taken)

    def random(self):
        return random.Random(f"{self.seed} {self.id()}")

    def kill_one(self, job, record, at):
        """Any rank, once the job has made that step. It does not get further, however busy the machine is."""
        with record.staying(at):
            record.wait(job, at)
            return kill_rank(self, self.cluster, job, self.random().choice)

    def check_torn(self, begin, torn, before, expected, writers=range(16)):
        """Killed in the middle of a file of step `torn`: it goes on from `before`, and `torn` of the first attempt is nothing to anybody."""
        killed = self.random().choice(writers)
        job, record = begin(env={"CONFORMANCE_HOLD": f"{killed} {torn}"})
        record.wait_blocked(job)
        kill_rank(
            self,
            self.cluster,
            job,
            lambda victims: next(
                victim for victim in victims if victim.env["MUSTER_RANK"] == str(killed)
            ),
        )
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]),
            ("succeeded", 2),
            f"rank {killed} was killed\n{self.cluster.story(job)}",
        )
        self.assertNotIn(
            torn,
            {event["step"] for rank, event in record.events("saved", 1).items() if rank == killed},
        )
        self.assertEqual(self.resumed_step(record, shown), before)
        self.assertNotIn(torn, self.kept_checkpoints(job, 1))
        self.assertEqual(record.losses(), expected)
        return job, record

    def check_blame(self, job, rank):
        """The verdict names the rank that was killed, and not one that ended because of it."""
        ended = [event for event in self.cluster.events(job) if event["type"] == "attempt-ended"]
        self.assertEqual((ended[0]["attempt"], ended[0]["rank"]), (1, rank), ended)
        self.assertIn("SIGKILL", ended[0]["text"])

    def resumed_step(self, record, shown):
        """Attempt 2 went on from one step, the same on every rank, out of the directory of links; which."""
        loaded, starts = record.events("loaded", 2), record.starts(2)
        self.assertEqual(sorted(loaded), sorted(rank for rank in starts if rank != "scheduler"))
        steps = {event["step"] for event in loaded.values()}
        self.assertEqual(len(steps), 1, loaded)
        step = steps.pop()
        self.assertGreater(step, 0)
        for rank, event in loaded.items():
            self.assertEqual(event["source"], starts[rank]["env"]["MUSTER_RESUME_DIR"])
            self.assertEqual(str(step), starts[rank]["env"]["MUSTER_RESUME_STEP"])
        return step

    def kept_checkpoints(self, job, attempt):
        """The steps that `muster ckpt ls` lists of an attempt."""
        items = json.loads(self.cluster.output("ckpt", "ls", job, "-o", "json"))["items"]
        return sorted(item["step"] for item in items if item["attempt"] == attempt)

    def check_refused(self, job, record, words, status):
        """The engine's own refusal: its exit status, one line that says why, and not again and again."""
        self.cluster.wait(job, code=1)
        shown = self.cluster.show(job)
        self.assertEqual(shown["phase"], "failed")
        ends = [(event["text"], exit.get("evidence", "")) for event in self.cluster.events(job) if event["type"] == "attempt-ended"
                for exit in shown["attempts"][event["attempt"] - 1]["exits"] if exit["rank"] == event["rank"]]  # fmt: skip
        # Twice, and no more. On a machine that has no time for it the agent sends an end without its line, which is not taken for the same error.
        last_lines = [re.sub(r"\d+", "0", line) for _, line in ends]
        self.assertLessEqual(len(last_lines), 5, ends)
        self.assertEqual(
            [i for i in range(1, len(last_lines)) if last_lines[i] == last_lines[i - 1]],
            [len(last_lines) - 1] if len(last_lines) > 1 else [],
            ends,
        )
        why = self.cluster.output("why", job)
        self.assertIn(words, why)
        self.assertRegex(why, rf"(exit|status|code) {status}\b")
        self.assertEqual(record.losses(), {})

    def progress(self, job):
        return self.cluster.show(job)["progress"]


def configuration(epochs, per_epoch, ranks, save_steps, sink_size=2, saver="CheckpointMointor"):
    """A MindFormers configuration, shortened to what its training loop goes by; data parallel over all ranks. `saver`: the callback's name in the release,
    with further settings of it as lines."""
    return f"""\
seed: 0
output_dir: './output' # path to save checkpoint/strategy
load_checkpoint: ''
auto_trans_ckpt: False
only_save_strategy: False
resume_training: False
run_mode: 'train'

runner_config:
  epochs: {epochs}
  batch_size: 1
  sink_mode: True
  sink_size: {sink_size}

optimizer:
  type: FP32StateAdamWeightDecay
  learning_rate: 3.e-4

train_dataset: &train_dataset
  data_loader:
    type: MindDataset
    dataset_dir: ""
    num_samples: {per_epoch * ranks}
train_dataset_task:
  type: CausalLanguageModelDataset
  dataset_config: *train_dataset

use_parallel: True
parallel:
  parallel_mode: 1 # 0-data parallel, 1-semi-auto parallel, 2-auto parallel, 3-hybrid parallel
parallel_config:
  data_parallel: {ranks}
  model_parallel: 1
  pipeline_stage: 1

callbacks:
  - type: MFLossMonitor
  - type: {saver}
    prefix: "llama2_7b"
    save_checkpoint_steps: {save_steps}

context:
  mode: 0
  device_target: "Ascend"
  device_id: 0
"""
