#!/usr/bin/python3
"""Changed copies: a MindFormers configuration with other values (launch.patch), other ones again on an attempt that resumes (resume.patch, resume.drop),
a shell script with other assignments, and what is missing or misspelt. And that what is made of YAML is, to Python's YAML, the same change made to what it loads.

Run:  /usr/bin/python3 -B tests/integration/engines_patch_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import copy
import hashlib
import os
import re
import sys
import unittest

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance.harness import UNHURRIED, EngineTest, configuration, option  # noqa: E402

CONFIG = "configs/llama2/run_llama2_7b.yaml"
CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../unit/patch/cases.txt")
SCRIPT = """\
#!/bin/bash
# WORDS=0
WORDS=one
export PLACE="nowhere \\
  at all"
echo "words $WORDS at $PLACE from $MUSTER_NODE: $*" > "$CONFORMANCE_RECORD/$MUSTER_NODE"
"""


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Patched(EngineTest):
    ascend = True
    scripts = {"run_mindformer.py": "mindformers-r0.6"}
    files = {
        CONFIG: configuration(epochs=1, per_epoch=10, ranks=8, save_steps=10),
        "run.sh": SCRIPT,
    }

    def job(self, name, launch, **more):
        spec, record = self.cluster.job(
            name, "mindformers", self.code, launch, nodes=2, devices=2, **more
        )
        return self.cluster.submit(spec), record

    def test_other_values_and_others_again_on_a_resume(self):
        saver = "callbacks[type=CheckpointMointor]"
        original = digest(os.path.join(self.code, CONFIG))
        patch = {CONFIG: {"runner_config.epochs": 4, "parallel_config.data_parallel": 4, f"{saver}.save_checkpoint_steps": 4,
                          "train_dataset.data_loader.num_samples": 40, "context.max_device_memory": "31GB"}}  # fmt: skip
        resume = {"drop": ["--seed"], "patch": {CONFIG: {f"{saver}.save_checkpoint_steps": 2}}}
        job, record = self.job(
            "patched",
            {"config": CONFIG, "args": ["--seed", "7"], "patch": patch},
            step_ms=UNHURRIED,
            resume=resume,
        )
        self.kill_one(job, record, at=14)
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]), ("succeeded", 2), self.cluster.story(job)
        )
        self.assertEqual(sorted(record.losses()), list(range(1, 41)))
        self.assertEqual(self.resumed_step(record, shown) % 4, 0)
        self.assertEqual(digest(os.path.join(self.code, CONFIG)), original)
        for attempt, steps, seed in ((1, 4, "7"), (2, 2, None)):
            starts = record.starts(attempt)
            self.assertEqual(sorted(starts), [0, 1, 2, 3])
            paths = {
                (start["env"]["MUSTER_NODE"], option(start["argv"], "--config"))
                for start in starts.values()
            }
            self.assertEqual(len(paths), 2, paths)  # a copy a node
            for _, path in paths:
                with open(path, encoding="utf-8") as file:
                    config = yaml.safe_load(file)
                self.assertEqual(
                    (
                        config["runner_config"]["epochs"],
                        config["callbacks"][1]["save_checkpoint_steps"],
                    ),
                    (4, steps),
                )
                self.assertEqual(
                    config["train_dataset_task"]["dataset_config"], config["train_dataset"]
                )
                self.assertEqual(config["train_dataset"]["data_loader"]["num_samples"], 40)
                self.assertIn(f"work/attempt-{attempt}/patched/node-", path)
            self.assertEqual({option(start["argv"], "--seed") for start in starts.values()}, {seed})
        self.assertTrue({step % 4 for step in self.kept_checkpoints(job, 1)} <= {0})
        self.assertIn(38, self.kept_checkpoints(job, 2))
        shown = self.cluster.output("env", job, "--rank", "3")
        self.assertRegex(
            shown,
            rf"# launch\.patch of '{re.escape(os.path.join(self.code, CONFIG))}' on n1, copied to \S+/patched/node-1/0/run_llama2_7b\.yaml",
        )

    def test_a_script_gets_other_assignments(self):
        launch = {
            "run": ["bash", "run.sh", "a b"],
            "vars": {"WORDS": "it's ${nodes}", "PLACE": "${node.rank}"},
        }
        spec, record = self.cluster.job("script", "command", self.code, launch, nodes=2, devices=1)
        job = self.cluster.submit(spec)
        self.cluster.wait(job)
        for node in (0, 1):
            with open(os.path.join(record.path, f"n{node}"), encoding="utf-8") as file:
                self.assertEqual(file.read(), f"words it's 2 at {node} from n{node}: a b\n")

    def refused(self, name, launch, words, **more):
        """Before anything starts, and once."""
        job, record = self.job(name, launch, **more)
        self.cluster.wait(job, code=1)
        shown = self.cluster.show(job)
        self.assertEqual(shown["phase"], "failed", self.cluster.story(job))
        self.assertIn(words, self.cluster.output("why", job))
        self.assertEqual(record.starts(None), {})
        self.assertLessEqual(shown["attempt"], 2)

    def test_what_is_missing_or_misspelt_starts_nothing(self):
        here = os.path.join(self.code, CONFIG)
        self.refused("missing", {"config": "configs/llama2/run_llama2_8b.yaml"},
                     f"launch.config: '{os.path.join(self.code, 'configs/llama2/run_llama2_8b.yaml')}' is not there on this node; nearest: '{here}'")  # fmt: skip
        self.refused("misspelt", {"config": CONFIG, "patch": {CONFIG: {"runer_config.epochs": 4}}},
                     f"changing 'runer_config.epochs' of '{here}': there is no 'runer_config'; nearest: 'runner_config'")  # fmt: skip

    def test_a_plan_shows_the_difference(self):
        launch = {
            "config": CONFIG,
            "patch": {CONFIG: {"runner_config.epochs": 4, "output_dir": "${out}/${nodes}"}},
        }
        spec, _ = self.cluster.job("planned", "mindformers", self.code, launch, nodes=2, devices=4)
        path = os.path.join(self.cluster.work, "planned.yaml")
        with open(path, "w", encoding="utf-8") as file:
            yaml.safe_dump(spec, file)
        text = self.cluster.output("plan", path)
        self.assertIn("\n-  epochs: 1\n+  epochs: 4\n", text)
        self.assertEqual(len(re.findall(r"^[-+] ", text, re.M)), 2, text)
        out = re.search("^export MUSTER_OUT=(\\S+)", text, re.M)[1]
        self.assertIn(f"\n+output_dir: {out}/2\n", text, "what the copy will have")
        self.assertIn("launch.patch: ", text)


# ---- the cases of tests/unit/patch, as Python's YAML sees them

# Sections with nothing in them are no objects in Python, and an anchor that gets another value is another object there.
NOT_IN_PYTHON = (
    "a new key of an empty section",
    "an empty file",
    "a whole anchored value, and where it is referred to",
)


def cases():
    with open(CASES, encoding="utf-8") as file:
        parts = re.split(r"(?m)^== ", file.read())[1:]
    for part in parts:
        title, _, rest = part.partition("\n")
        text, _, rest = rest.partition("-- file ")
        name, _, rest = rest.partition("\n")
        changes, _, becomes = rest.partition("-- becomes\n")
        pairs = [line[len("-- change ") :].split(": ", 1) for line in changes.splitlines()]
        yield title, text, name, [
            (at.strip("'"), yaml.safe_load(value))
            for at, value in pairs
            if not becomes.startswith("refused")
        ], becomes


def steps_of(at):
    for key, index, match in re.findall(r"((?:\\.|[^.\[\\])+)|\[(\d+)\]|\[([^\]]+)\]", at):
        if key:
            yield re.sub(r"\\(.)", r"\1", key)
        elif index:
            yield int(index)
        else:
            yield tuple(match.split("=", 1))


def change(tree, at, value):
    *way, last = steps_of(at)
    node = tree
    place = (
        lambda node, step: step
        if not isinstance(step, tuple)
        else next(i for i, item in enumerate(node) if item.get(step[0]) == step[1])
    )  # noqa: E731
    for step in way:
        node = node[place(node, step)]
    node[place(node, last)] = value


class LoadedYaml(unittest.TestCase):
    def test_a_copy_is_the_changed_original(self):
        checked = 0
        for title, text, name, changes, becomes in cases():
            if (
                not name.endswith(".yaml")
                or becomes.startswith("refused")
                or title in NOT_IN_PYTHON
            ):
                continue
            with self.subTest(title):
                tree = yaml.safe_load(text)
                for at, value in changes:
                    change(tree, at, copy.deepcopy(value))
                if "base_config" in tree:
                    tree["base_config"] = [
                        path if path.startswith("/") else f"{os.path.dirname(name)}/{path}"
                        for path in tree["base_config"]
                    ]
                self.assertEqual(yaml.safe_load(becomes), tree)
                checked += 1
        self.assertGreaterEqual(checked, 10)


if __name__ == "__main__":
    unittest.main()
