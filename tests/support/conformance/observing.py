"""What the engines do beside their loops: profiles, dumps, evaluation during training (mindspore-lab/mindformers mindformers/core/callback/callback.py,
mindformers/core/context/build_context.py; mindspore-ai/mindspore mindspore/ccsrc/debug/data_dump/dump_json_parser.cc; NVIDIA/Megatron-LM
megatron/training/training.py; Ascend/MindSpeed-MM mindspeed_mm/tools/profiler.py).  What differs between releases is "observing" of the data file.

Every class has step_end(step) and epoch_end(epoch), which the loop calls as it calls its callbacks.
"""

import json
import os
import re
import time

from .fail import Violation, engine_error

METRIC = "{'PerplexityMetric': {'loss': 2.1276, 'PPL': 8.395}}"


def _written(run, directory, name, content):
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)
    run.observed(path)


class _Quiet:
    def step_end(self, step):
        pass

    def epoch_end(self, epoch):
        pass


# ---- MindFormers


class Profile(_Quiet):
    """ProfileMonitor. A configuration without profile_stop_step never comes to the step at which it writes."""

    def __init__(self, training):
        self._training, config, rules = (
            training,
            training.config,
            training.release["observing"]["profile"],
        )
        self._start, self._stop = config.get("profile_start_step"), config.get("profile_stop_step")
        for key, value in (("profile_start_step", self._start), ("profile_stop_step", self._stop)):
            if value is not None and not isinstance(value, int):
                raise Violation(f"{key} is {value!r}, which no step is")
        for line in rules["begin"]:
            training.say(line)
        if not rules["sink"]:
            config["runner_config"]["sink_mode"] = False

    def step_end(self, step):
        if step != self._stop:
            return
        directory = os.path.join(self._training.out, "profile", f"rank_{self._training.place.rank}")
        _written(
            self._training.run,
            directory,
            "profiler_info.json",
            {"start": self._start, "stop": self._stop},
        )
        self._training.say(
            self._training.release["observing"]["profile"]["end"].format(path=directory)
        )


class Dump(_Quiet):
    """MindSpore's, as every process reads its file."""

    NEEDS = (
        "dump_mode",
        "path",
        "net_name",
        "iteration",
        "input_output",
        "kernels",
        "support_device",
    )

    def __init__(self, training, path):
        self._training, self._done = training, 0
        if not path.endswith(".json"):
            raise engine_error(
                "RuntimeError", f"[MINDSPORE_DUMP_CONFIG] config file {path} must end with .json"
            )
        with open(path, encoding="utf-8") as file:
            self._text = file.read()
        settings = json.loads(self._text).get("common_dump_settings", {})
        for key in self.NEEDS:
            if key not in settings:
                raise engine_error("RuntimeError", f"Check dump json failed, {key} not found")
        self._path, self._net, self._iteration = (
            settings["path"],
            settings["net_name"],
            settings["iteration"],
        )
        if not re.fullmatch(r"/[A-Za-z0-9/_-]*", self._path):
            raise engine_error(
                "RuntimeError",
                f"Dump path only support alphabets, digit or {{'-', '_', '/'}}, but got:{self._path}",
            )
        if not re.fullmatch(r"[A-Za-z0-9_-]+", self._net):
            raise engine_error(
                "RuntimeError",
                f"Dump path only support alphabets, digit or {{'-', '_'}}, but got:{self._net}",
            )
        self._rank = os.path.join(self._path, f"rank_{training.place.rank}")
        _written(
            training.run,
            os.path.join(self._rank, ".dump_metadata"),
            "data_dump.json",
            json.loads(self._text),
        )

    def _wanted(self, iteration):
        for part in self._iteration.split("|"):
            low, _, high = part.partition("-")
            if part == "all" or int(low) <= iteration <= int(high or low):
                return True
        return False

    def step_end(self, step):
        for iteration in range(self._done, step):  # counted from 0; a sink's one after another
            if self._wanted(iteration):
                _written(
                    self._training.run,
                    os.path.join(self._rank, self._net, "0", str(iteration)),
                    "Conv2D.Conv2D-op1.0.0.json",
                    {"step": iteration + 1},
                )
        self._done = step


class Evaluation(_Quiet):
    """EvalCallBack: both intervals have other defaults in other releases; in sink mode an epoch is a sink."""

    def __init__(self, training):
        self._training, config, rules = (
            training,
            training.config,
            training.release["observing"]["evaluation"],
        )
        if not config.get("eval_dataset"):
            raise engine_error(
                "ValueError",
                "if do_eval is true, eval_dataset must be input, the task text_generation is not support eval now.",
            )
        self._steps = config.get("eval_step_interval") or rules["step_interval"]
        self._epochs = config.get("eval_epoch_interval") or rules["epoch_interval"]
        training.say(".........Build Evaluate in Training Callback..........")

    def _evaluate(self):
        began = time.monotonic()
        self._training.run.pause()
        rules = self._training.release["observing"]["evaluation"]
        for text in rules["lines"]:
            self._training.say(
                text.format(metric=METRIC, seconds=time.monotonic() - began), rules["at"]
            )

    def step_end(self, step):
        if self._steps > 0 and step % self._steps == 0:
            self._evaluate()

    def epoch_end(self, epoch):
        if self._epochs > 0 and epoch % self._epochs == 0:
            self._evaluate()


def of_mindformers(training):
    """In the order of the callbacks. A profile changes the configuration, so that this comes before it is read."""
    config, out = training.config, []
    if config.get("profile"):
        out.append(Profile(training))
    if os.environ.get("MINDSPORE_DUMP_CONFIG"):
        out.append(Dump(training, os.environ["MINDSPORE_DUMP_CONFIG"]))
    if config.get("do_eval") and training.mode in ("train", "finetune"):
        out.append(Evaluation(training))
    return out


# ---- Megatron-LM, MindSpeed, MindSpeed-MM


class MegatronProfile(_Quiet):
    """--profile: of core it is a word to nsys, unless PyTorch's own profiler is asked for; of MindSpeed it is torch_npu's."""

    def __init__(self, training):
        options, rules = training.options, training.release["observing"]["profile"]
        self._training, self._stop = training, options.get("--profile-step-end", 12)
        if options.get("--profile-step-start", 10) >= self._stop:
            raise engine_error("AssertionError", "Invalid profiler schedule arguments")
        ranks = options.get("--profile-ranks", rules["ranks"])
        self._mine = ranks == [-1] or training.place.rank in ranks
        self._path = options.get("--profile-save-path", "./profile_dir") if rules["npu"] else None
        if not rules["npu"] and "--use-pytorch-profiler" in options:
            self._path = options.get("--tensorboard-dir")
            if self._path is None:
                raise engine_error(
                    "TypeError", "expected str, bytes or os.PathLike object, not NoneType"
                )

    def step_end(self, step):
        if self._mine and self._path and step == self._stop:
            _written(
                self._training.run,
                self._path,
                f"rank-{self._training.place.rank}.pt.trace.json",
                {"stop": step},
            )


class ToolProfile(_Quiet):
    """MindSpeed-MM: by the file behind --mm-tool, and by no option."""

    def __init__(self, training, rules):
        self._training, self._rules = training, rules
        if rules["profile_type"] != "static":
            raise engine_error(
                "ValueError",
                f"profile_type only supports static and dynamic, but gets {rules['profile_type']}",
            )
        self._mine = rules["ranks"] == [-1] or training.place.rank in rules["ranks"]

    def step_end(self, step):
        static = self._rules["static_param"]
        if self._mine and step == static["end_step"]:
            _written(
                self._training.run,
                static["save_path"],
                f"rank-{self._training.place.rank}_ascend_pt.json",
                static,
            )


class MegatronEvaluation(_Quiet):
    """Every --eval-interval steps, and behind the training's end; printed by the last rank."""

    def __init__(self, training):
        self._training, self._every = training, training.options.get("--eval-interval", 1000)

    def _evaluate(self, step, where=""):
        self._training.run.pause()
        line = self._training.release["observing"]["evaluation"]["line"].format(
            iteration=step, where=where, loss=2.3, ppl=9.974182
        )
        for text in ("-" * (len(line) + 1), line, "-" * (len(line) + 1)):
            self._training.say(text, "last")

    def step_end(self, step):
        if step % self._every == 0:
            self._evaluate(step)

    def training_end(self, step):
        for name in ("validation", "test"):
            self._evaluate(step, f" on {name} set")


def of_megatron(training):
    """[what looks at every step], and the evaluation, which is one of them; None: there is none."""
    options, out = training.options, []
    # Without data for it nothing is evaluated: who names no interval has none here.
    evaluation = (
        MegatronEvaluation(training)
        if "--eval-interval" in options and options.get("--eval-iters", 100) > 0
        else None
    )
    if evaluation:
        out.append(evaluation)
    if training.release["observing"]["profile"].get("by") == "tool":
        rules = {}
        if "--mm-tool" in options:
            with open(options.get("--mm-tool"), encoding="utf-8") as file:
                rules = json.load(file).get("profile", {})
        if rules.get("enable"):
            out.append(ToolProfile(training, rules))
    elif "--profile" in options:
        out.append(MegatronProfile(training))
    return out, evaluation
