"""The training loop of MindSpeed-MM's FSDP2 back end as its log and its files show it (Ascend/MindSpeed-MM mindspeed_mm/fsdp/train/{trainer,train_engine}.py,
mindspeed_mm/fsdp/checkpoint/dcp_checkpointer.py, mindspeed_mm/config/config_manager.py).

One configuration file says everything; behind it NAME=VALUE words go over it. Every other word is passed over without a sound, so that here it is a violation.
"""

import json
import os
import time
from datetime import datetime

from . import config as configuration
from . import saving, state
from .fail import Violation, engine_error

_NOTICED_AFTER = 2  # steps that a save in the background takes here


def _value(text):
    low = text.lower()
    if low in ("true", "yes", "on", "false", "no", "off"):
        return low in ("true", "yes", "on")
    return int(text) if text.isdigit() else text


def _settings(release, words):
    if not words or not words[0].endswith((".yaml", ".yml")) or not os.path.exists(words[0]):
        raise engine_error(
            "mindspeed_mm.config.exception.ConfigValidationError", "Configuration loading failed"
        )
    config = configuration.read(words[0])
    for word in words[1:]:
        key, equals, text = word.partition("=")
        if not equals or key.startswith("-"):
            raise Violation(
                f"'{word}' is no NAME=VALUE: it would be passed over, and nothing would come of it"
            )
        configuration.put(config, key, _value(text))
    training = config["training"]
    unknown = sorted(set(training) - set(release["arguments"]["training"]))
    if unknown:
        raise Violation(
            f"{unknown} are no settings of training: they would be taken as new ones, and nothing would come of them"
        )
    return training


class Training:
    def __init__(self, release, place, options, run):
        self.release, self.place, self.run, self.gang = release, place, run, None
        self.options = _settings(release, options.pairs)
        if self.options.get("load_rank0_and_broadcast") and not self.options.get("load"):
            raise engine_error("ValueError", release["texts"]["nothing_to_broadcast"])
        self.state = state.State(place.rank, place.world)
        self.part = {"all"} | ({"first"} if place.rank == 0 else set())
        self.background = []

    def say(self, text):
        """print_rank(): of the first rank alone, behind the logger's own words."""
        if "first" in self.part:
            print(
                self.release["log"]["prefix"].format(
                    stamp=datetime.now().strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
                )
                + text,
                flush=True,
            )

    def _words(self):
        save, rank = self.options.get("save"), self.place.rank
        return {
            "save": save,
            "iteration": self.state.step,
            "dir": f"{save}/iter_{self.state.step:07d}",
            "rank": rank,
        }

    # ---- resume

    def load(self):
        directory = self.options.get("load")
        if not directory:
            return
        name = self._tracked(directory)
        base = os.path.join(directory, name)
        if not os.path.isfile(os.path.join(base, ".metadata")):
            raise engine_error(
                "CheckpointException",
                f"CheckpointException ranks:dict_keys([{self.place.rank}]): no .metadata in {base}",
            )
        is_release = name == "release"
        with open(
            os.path.join(base, f"__{0 if is_release else self.place.rank}_0.distcp"), "rb"
        ) as file:
            record = json.loads(file.read().rstrip(b"\0"))
        if is_release:
            self.state.weights = state.mix(int(record["weights"], 16) + self.place.rank)
        else:
            self._restore(directory, base, record)
        seen = set(self.gang.exchange(f"{self.state.step} {self.state.optimizer.hex()}".encode()))
        if len(seen) != 1:
            raise Violation(f"the ranks resume from different states: {sorted(seen)}")
        self.say(self.release["texts"]["loaded"].format(base=base))
        self.run.loaded(directory, self.state.step)

    def _tracked(self, directory):
        """A directory without a tracker is read as iteration -1, which is nowhere."""
        path = os.path.join(directory, "latest_checkpointed_iteration.txt")
        if not os.path.isfile(path):
            return f"iter_{-1:07d}"
        with open(path, encoding="utf-8") as file:
            text = file.read().strip()
        if text != "release" and not text.isdigit():
            raise engine_error("ValueError", f"ERROR: Invalid metadata file {path}.")
        return text if text == "release" else f"iter_{int(text):07d}"

    def _restore(self, directory, base, record):
        try:
            extra = state.read_zip(
                os.path.join(base, "extra_state", f"extra_state_rank_{self.place.rank}.pt")
            )
        except (OSError, ValueError) as error:
            raise engine_error(
                "RuntimeError", f"PytorchStreamReader failed reading zip archive: {base}: {error}"
            ) from error
        step = int(os.path.basename(base)[len("iter_") :])
        if {record["step"], extra["step"]} != {step}:
            raise Violation(
                f"the tracker of '{directory}' says {step}, what lies there is of steps {record['step']} and {extra['step']}"
            )
        if record["shard"] != self.place.rank:
            raise Violation(f"'{base}' gave shard {record['shard']} to rank {self.place.rank}")
        self.state.restore(record)
        if self.options.get("no_load_optim"):
            self.state.optimizer = 0.0

    # ---- train and save

    def save(self):
        layout = self.release["checkpoint"]
        self.finalize()  # what still runs is waited for
        if not self.options.get("save_async"):
            saving.Saver(layout["steps"]["dcp"], self.part, self).save(
                self.state, self.options, self._words()
            )
            return
        finish = saving.Saver(layout["async"]["dcp"], self.part, self).begin(
            self.state, self.options, self._words()
        )
        self.background.append((self.state.step + _NOTICED_AFTER, finish))

    def finalize(self, until=None):
        while self.background and (until is None or until >= self.background[0][0]):
            self.background.pop(0)[1]()

    def train(self):
        options = self.options
        total, interval, every = (
            options.get(name, default)
            for name, default in (("train_iters", 10000), ("save_interval", 1), ("log_interval", 1))
        )
        rate = float(options.get("lr") or 5e-5)
        batch = (
            options.get("micro_batch_size", 1)
            * self.place.world
            * (options.get("gradient_accumulation_steps") or 1)
        )
        while self.state.step < total:
            self.finalize(self.state.step)
            began = time.monotonic()
            self.run.pause()
            loss = self.state.advance(self.gang, self.place.rank)
            step = self.state.step
            self.run.step(step, loss)
            if step % every == 0:
                ms = (time.monotonic() - began) * 1e3
                self.say(self.release["log"]["step"].format(stamp=datetime.now().strftime("%Y-%m-%d %H:%M:%S"), iteration=step, train_iters=total,
                                                            samples=step * batch, ms=ms, lr=rate, batch=batch, loss=loss, norm=loss / 10.0))  # fmt: skip
            if options.get("save") and interval > 0 and step % interval == 0:
                self.save()
        if options.get("save"):
            self.save()  # once more, in the same place where the interval has just saved
        self.finalize()
