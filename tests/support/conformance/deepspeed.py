"""A program of one's own on DeepSpeed, as its log and its files show it (deepspeedai/DeepSpeed deepspeed/runtime/{engine,config,state_dict_factory}.py); what
differs between releases is in the data file.

The program is the one of DeepSpeed's first pages: `--local_rank` and add_config_arguments(), load_checkpoint() where --load_dir is not empty, save_checkpoint()
without a tag. With ZeRO every rank has its own part of the state, and without ZeRO all have the same one.
"""

import glob
import json
import os
import time
from datetime import datetime

from . import saving, state
from .fail import Violation, engine_error


def _configuration(path):
    if path is None:
        raise engine_error(
            "AssertionError",
            "DeepSpeed requires --deepspeed_config to specify configuration file",
        )
    if not os.path.exists(path):
        raise engine_error(
            "ValueError",
            f"Expected a string path to an existing deepspeed config, or a dictionary or a valid base64. Received: {path}",
        )
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Training:
    def __init__(self, release, place, options, run):
        self.release, self.place, self.options, self.run, self.gang = (
            release,
            place,
            options,
            run,
            None,
        )
        self._check_local_rank()
        config = _configuration(options.get("--deepspeed_config"))
        self.every = config.get("steps_per_print")
        self.rate = config["optimizer"]["params"]["lr"]
        self.stage = config.get("zero_optimization", {}).get("stage", 0)
        self.prefix = "bf16_" if config.get("bf16", {}).get("enabled") else ""
        self.batch = config["train_batch_size"]
        self._check_batch(config)
        self.state = state.State(place.rank if self.stage else 0, place.world)
        self.part = {"all"} | ({"first"} if place.rank == 0 else set())

    def _check_local_rank(self):
        given, own = self.options.get("--local_rank", -1), int(os.environ["LOCAL_RANK"])
        if given >= 0 and given != own:
            raise engine_error(
                "AssertionError",
                f"Mismatch in local rank setting, args.local_rank={given} but env['LOCAL_RANK']={own}.",
            )
        if given < 0:
            raise Violation("the launcher passes --local_rank to this program, and it is missing")

    def _check_batch(self, config):
        micro, steps = (
            config.get("train_micro_batch_size_per_gpu", 1),
            config.get("gradient_accumulation_steps", 1),
        )
        if self.batch != micro * steps * self.place.world:
            raise engine_error(
                "AssertionError",
                "Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size "
                f"{self.batch} != {micro} * {steps} * {self.place.world}",
            )

    def say(self, text):
        """logger.info() behind the logger's own words."""
        print(
            self.release["log"]["prefix"].format(
                stamp=datetime.now().strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
            )
            + text,
            flush=True,
        )

    def _words(self):
        save = self.options.get("--save_dir")
        return {
            "save": save,
            "step": self.state.step,
            "dir": f"{save}/global_step{self.state.step}",
            "rank": self.place.rank,
            "bf16": self.prefix,
        }

    # ---- resume

    def load(self):
        if self.place.rank == 0:  # of deepspeed.initialize(), which is before any load
            self.say(self.release["log"]["step"].format(step=0, lr=self.rate))
        directory, texts = self.options.get("--load_dir"), self.release["texts"]
        if not directory:
            return
        path = os.path.join(directory, "latest")
        tag = ""
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                tag = file.read().strip()
        seen = set(self.gang.exchange(tag.encode()))
        if len(seen) != 1:
            raise Violation(f"the ranks read different tags in '{path}': {sorted(seen)}")
        if not tag:
            self.say(texts["nothing"].format(path=path))
            return
        for record in self._records(os.path.join(directory, tag)):
            self._restore(record, tag)
        steps = set(self.gang.exchange(f"{self.state.step} {self.state.optimizer.hex()}".encode()))
        if len(steps) != 1:
            raise Violation(f"the ranks resume from different states: {sorted(steps)}")
        self.run.loaded(directory, self.state.step)

    def _records(self, base):
        """The model's file first, then this rank's part of the optimizer."""
        rank = self.place.rank
        model = (
            f"zero_pp_rank_{rank}_mp_rank_*_model_states.pt"
            if self.stage == 3
            else "mp_rank_*_model_states.pt"
        )
        found = sorted(glob.glob(os.path.join(base, model)))
        if not found:
            raise engine_error("AssertionError", "")
        yield self._read(found[0])
        if self.stage:
            yield self._read(
                os.path.join(base, f"{self.prefix}zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
            )

    def _read(self, path):
        try:
            record = state.read_zip(path)
        except FileNotFoundError as error:
            raise engine_error(
                "FileNotFoundError", f"[Errno 2] No such file or directory: {path!r}"
            ) from error
        except Exception as error:
            raise engine_error(
                "RuntimeError", f"PytorchStreamReader failed reading zip archive: {path}: {error}"
            ) from error
        if self.stage and record["world"] != self.place.world:
            raise engine_error(
                "deepspeed.runtime.zero.utils.ZeRORuntimeException",
                self.release["texts"]["other_world"].format(
                    then=record["world"], now=self.place.world
                ),
            )
        if self.place.rank == 0:
            self.say(self.release["texts"]["loaded"].format(path=path))
        return record

    def _restore(self, record, tag):
        if tag != f"global_step{record['step']}":
            raise Violation(f"'latest' says {tag}, what lies there is of step {record['step']}")
        if "weights" in record and record["shard"] != self.state.shard:
            raise Violation(
                f"'{tag}' gave shard {record['shard']} to rank {self.place.rank}, which is shard {self.state.shard}"
            )
        self.state.restore(record)

    # ---- train and save

    def train(self):
        options, log = self.options, self.release["log"]
        total, interval = options.get("--steps"), options.get("--save_interval")
        count, began = 0, time.monotonic()  # DeepSpeed's timer counts from the process's start
        while self.state.step < total:
            self.run.pause()
            loss = self.state.advance(self.gang, self.place.rank)
            step, count = self.state.step, count + 1
            self.run.step(step, loss)
            if self.place.rank == 0 and self.every and step % self.every == 0:
                speed = self.batch * count / (time.monotonic() - began)
                self.say(log["step"].format(step=step, lr=self.rate))
                self.say(log["speed"].format(count=count, speed=speed))
            if options.get("--save_dir") and interval and step % interval == 0:
                steps = self.release["checkpoint"]["steps"][f"zero-{self.stage}"]
                saving.Saver(steps, self.part, self).save(self.state, options, self._words())
