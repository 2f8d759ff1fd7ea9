"""MindFormers' training loop as its log and its files show it (mindspore-lab/mindformers run_mindformer.py, mindformers/trainer/{base_trainer,utils}.py,
mindformers/core/callback/callback.py); what differs between releases is in the data file.

Sink mode, the default: the engine counts in sinks of `sink_size` steps.  A line, an epoch number in a checkpoint's name and a save are a sink's.
"""

import json
import math
import os
import struct
import sys
import time
from datetime import datetime, timedelta

from . import config as configuration
from . import observing, saving, state
from .fail import Violation, engine_error

MODES = ("train", "finetune", "eval", "predict")


def _number(name, prefix, suffix):
    """(epoch, step) of `prefix-E_S.ckpt`, or None."""
    if not name.startswith(prefix) or not name.endswith(suffix) or "-" not in name:
        return None
    epoch, _, step = name[: -len(suffix)].rpartition("-")[2].partition("_")
    return (int(epoch), int(step)) if epoch.isdigit() and step.isdigit() else None


class Training:
    def __init__(self, release, place, options, run):
        self.release, self.place, self.options, self.run, self.gang = (
            release,
            place,
            options,
            run,
            None,
        )
        path = options.get("--config")
        if not os.path.isabs(path):
            path = os.path.join(run.code, path)
        self.config = configuration.read(path)
        for option, key in release["arguments"]["sets"].items():
            if option in options:
                configuration.put(self.config, key, options.get(option))
        for key, value in options.pairs.items():
            configuration.put(self.config, key, value)
        self.mode = self.config.get("run_mode")
        if self.mode not in MODES:
            raise engine_error(
                *release["texts"]["bad_mode"][:1],
                release["texts"]["bad_mode"][1].format(modes=list(MODES), mode=self.mode),
            )
        self._parallel()
        self.out = self._output_root()
        self.log_dir = os.path.join(self.out, "log", f"rank_{place.rank}")
        place.meet_in(self.out)
        self.watching = observing.of_mindformers(self)
        runner = self.config["runner_config"]
        parallel = self.config.get("parallel_config") or {}
        dp, mp, pp = (
            parallel.get(key) or 1 for key in ("data_parallel", "model_parallel", "pipeline_stage")
        )
        if place.world > 1 and dp * mp * pp != place.world:
            raise engine_error("ValueError", f"The parallel config data_parallel * model_parallel * pipeline_stage should be equal to device_num, "
                                             f"but get {dp}*{mp}*{pp} = {dp * mp * pp}, device_num {place.world}")  # fmt: skip
        self.batch = int(runner["batch_size"]) * dp
        self.per_epoch = (
            int(self.config["train_dataset"]["data_loader"]["num_samples"]) // self.batch
        )
        self.epochs = int(runner["epochs"])
        self.sink = bool(runner.get("sink_mode"))
        self.sink_size = (
            (int(runner.get("sink_size") or -1) if self.sink else 1) if self.sink else 1
        )
        if self.sink_size < 0:
            self.sink_size = self.per_epoch
        # In sink mode the runner's epochs are sinks (check_runner_config).
        self.batch_num = self.sink_size if self.sink else self.per_epoch
        self.runner_epochs = (
            int(self.per_epoch / self.sink_size * self.epochs) if self.sink else self.epochs
        )
        self.saver = next(
            (
                entry
                for entry in self.config["callbacks"]
                if entry["type"] in ("CheckpointMonitor", "CheckpointMointor")
            ),
            None,
        )
        if self.saver and self.saver["type"] != release["checkpoint"]["callback"]:
            raise engine_error(
                "ValueError",
                f"Can't find class type callback class name {self.saver['type']} in class registry",
            )
        formats = release["checkpoint"].get("formats", ["ckpt"])
        self.format = (self.saver or {}).get("checkpoint_format") or formats[0]
        if self.format not in formats:
            raise engine_error(
                "TypeError",
                f"{self.saver['type']}.__init__() got an unexpected keyword argument 'checkpoint_format'",
            )
        self.load_format = self.config.get("load_ckpt_format") or formats[0]
        # use_legacy_format: False: one directory a step, with every rank's files in it
        self.new = (
            release["checkpoint"].get("new")
            if self.config.get("use_legacy_format") is False
            else None
        )
        self.state = state.Cut(place.rank, place.world)
        self.part = {"all"} | ({"first"} if place.rank == 0 else set())
        self.initial_epoch = self.initial_step = 0
        self.prefix = None

    def _parallel(self):
        """build_context(): use_parallel needs somebody to be parallel with, and without it every process would train alone."""
        parallel = bool(self.config.get("use_parallel"))
        if parallel and self.place.launcher == "single":
            raise engine_error(
                "RuntimeError",
                "Ascend collective communication initialization failed: neither a rank table nor a scheduler is given",
            )
        if not parallel and self.place.launcher != "single":
            raise Violation(
                f"use_parallel is false, and this is one of {self.place.world} processes: each would train alone"
            )
        device = (self.config.get("context") or {}).get("device_id")
        if (
            not parallel
            and self.place.device is not None
            and device not in (None, self.place.device)
        ):
            raise Violation(
                f"DEVICE_ID is {self.place.device}, the device that would be used is {device} (context.device_id)"
            )

    def _output_root(self):
        for source in self.release["output_root"]:
            found = (
                os.environ.get(source[1:]) if source.startswith("$") else self.config.get(source)
            )
            if found:
                return os.path.abspath(found)
        return os.path.abspath("./output")

    # ---- lines

    def say(self, text, at="base"):
        now = datetime.now()
        stamp = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}"
        where = self.release["log"]["at"].get(at, at)
        sys.stdout.write(self.release["log"]["prefix"].format(stamp=stamp, at=where) + text + "\n")
        sys.stdout.flush()
        if not os.path.isdir(self.log_dir):
            os.makedirs(self.log_dir, exist_ok=True)
        with open(os.path.join(self.log_dir, "info.log"), "a", encoding="utf-8") as file:
            file.write(f"[INFO] {stamp} [{where}] : {text}\n")

    def _line(self, key, **words):
        for entry in self.release["log"][key]:
            if entry.get("sink", self.sink) == self.sink:
                self.say(entry["text"].format(**words), entry["at"])

    # ---- strategy

    def compile(self):
        """Every rank's strategy is written before the first step. True: that was all."""
        only = bool(self.config.get("only_save_strategy"))
        parallel = (
            self.place.world > 1 and (self.config.get("parallel") or {}).get("parallel_mode") == 1
        )
        if self.mode in ("train", "finetune") and parallel and not self.run.forgets_strategy():
            path = self.release["strategy"].format(out=self.out, rank=self.place.rank)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                json.dump(
                    {
                        "rank": self.place.rank,
                        "world": self.place.world,
                        "units": state.units_of(self.place.rank, self.place.world),
                    },
                    file,
                )
        if only:
            self.say("Only_save_strategy is True, model.compile() finished, system exit! ", "utils")
        return only

    # ---- resume

    def load(self):
        source, resume = self.config.get("load_checkpoint"), self.config.get("resume_training")
        given = {name: self.options.get(name) for name in ("--train_dataset_dir", "" if resume else "--load_checkpoint")}
        self.run.found({name: path for name, path in given.items() if path})
        if self.mode == "finetune" and not source and "no_checkpoint" in self.release["texts"]:
            raise engine_error(*self.release["texts"]["no_checkpoint"])
        if not source:
            if resume:
                raise Violation(
                    "resume_training without load_checkpoint: training would begin anew"
                )
            return
        if (
            self.config.get("auto_trans_ckpt")
            and "auto_trans_unshared" in self.release["texts"]
            and not self._shared(self.out)
        ):
            kind, text = self.release["texts"]["auto_trans_unshared"]
            raise engine_error(kind, text.format(path=self.out))
        if self.config.get("auto_trans_ckpt") and resume:
            raise Violation("auto_trans_ckpt with resume_training: what is resumed is cut already")
        if self.new:
            path, record, counters = self._read_new(source)
        else:
            path = self._resume_file(source) if resume or os.path.isdir(source) else source
            record, counters = self._read(path)
        self.say(f"Start to load checkpoint from {path}", "utils")
        if not resume:
            self.state.restore(
                {**{key: record[key] for key in ("weights", "units") if key in record}, "step": 0}
            )
            self.run.loaded(source, 0)
            return
        if (
            record.get("shard") != self.place.rank
            or "step" not in record
            or record["step"] != counters.get("step_num")
        ):
            raise Violation(
                f"'{path}' is no training state of rank {self.place.rank}: {record.get('shard')}, step {record.get('step')}, counters {counters}"
            )
        if (
            "counters_of" in self.release["resume"] and not self.new
        ):  # load_resume_context_from_checkpoint(): of one rank, for all
            other = self._read(
                self._newest(self._rank_dir(source, self.release["resume"]["counters_of"]))
            )[1]
            if other != counters:
                raise Violation(
                    f"the counters of rank {self.place.rank} are {counters}, those that all ranks take {other}"
                )
        if record["world"] != self.place.world:
            raise Violation(
                f"'{path}' is cut for {record['world']} ranks, and there are {self.place.world}"
            )
        if self.place.world > 1 and not self.sink:
            raise engine_error(
                "ValueError",
                "When distributed loads are sliced weights, sink_mode must be set True.",
            )
        if (
            self.place.world > 1
            and self.runner_epochs > 1
            and self.sink_size == 1
            and self.release["texts"]["sink_size_one"]
        ):
            raise engine_error(
                "ValueError",
                self.release["texts"]["sink_size_one"].format(epochs=self.runner_epochs),
            )
        self.state.restore(record)
        seen = self.gang.exchange(f"{self.state.step} {self.state.optimizer.hex()}".encode())
        if len(set(seen)) != 1:
            raise Violation(f"the ranks resume from different states: {sorted(set(seen))}")
        self.initial_epoch = counters["epoch_num"]
        self.initial_step = self.state.step
        for text in self.release["texts"]["resumed"]:
            self.say(
                text.format(epoch=self.initial_epoch, step=self.initial_step, batch=self.batch),
                "base",
            )
        self.run.loaded(source, self.state.step)

    def _read(self, path):
        try:
            return (state.read_safetensors if path.endswith(".safetensors") else state.read_ckpt)(
                path
            )
        except (OSError, ValueError, IndexError, struct.error) as error:
            text = f"Failed to read the checkpoint file {path}: {error}. May not have permission to read it, or it is not complete."
            raise engine_error("ValueError", text) from error

    def _read_new(self, source):
        """get_checkpoint_path(), verify_ckpt_valid(): the step that the tracker names, or the directory itself."""
        tracker = os.path.join(source, "latest_checkpointed_iteration.txt")
        if os.path.exists(tracker):
            with open(tracker, encoding="utf-8") as file:
                text = file.read().strip()
            if not text.isdigit():
                raise engine_error("ValueError", f"Invalid iteration num in {tracker}")
            source = os.path.join(source, f"iteration_{int(text):08d}")
            if not os.path.isdir(source):
                raise engine_error(
                    "FileNotFoundError",
                    f"Can not find the latest iteration weight path: '{source}'. Or it does not a directory.",
                )
        try:
            with open(os.path.join(source, "metadata.json"), encoding="utf-8") as file:
                named = json.load(file)["storage_data"]
            with open(os.path.join(source, "common.json"), encoding="utf-8") as file:
                counters = json.load(file)
        except ValueError as error:
            raise engine_error(
                "RuntimeError",
                f"Checkpoint metadata validation failed: '{source}' has invalid JSON format: {error}",
            ) from error
        except OSError as error:
            raise engine_error(
                "FileNotFoundError", f"No common.json found in directory '{source}'."
            ) from error
        missing = [name for name in named if not os.path.exists(os.path.join(source, name))]
        if missing:
            raise engine_error(
                "FileNotFoundError",
                f"Checkpoint file validation failed: Safetensors file '{missing[0]}' is missing from '{source}'",
            )
        record = {}
        for kind in ("model", "opt"):
            name = next((name for name in named if f"-{kind}-{self.place.rank:07d}-" in name), None)
            record.update(self._read(os.path.join(source, name))[0] if name else {})
        if os.path.basename(source) != f"iteration_{counters['step_num']:08d}":
            raise Violation(f"'{source}' holds step {counters['step_num']}")
        return source, record, counters

    def _rank_dir(self, source, rank):
        return os.path.join(source, f"rank_{rank}")

    def _resume_file(self, source):
        if not os.path.isdir(source):
            raise engine_error("FileNotFoundError", f"{source} is not found")
        own = self._rank_dir(source, self.place.rank)
        if not os.path.isdir(own):
            raise engine_error("FileNotFoundError", f"{own} is not found.")
        if self.release["resume"]["by"] == "meta" and self._shared(source):
            name = self._by_meta(source)
            if name is not None:
                return os.path.join(own, name)
        return self._newest(own)

    def _newest(self, own):
        """get_last_checkpoint(): by time. Nobody makes the ranks agree, so whoever puts the files there has to."""
        if not os.path.isdir(own):
            raise engine_error("FileNotFoundError", f"{own} is not found.")
        names = [name for name in os.listdir(own) if name.endswith(f".{self.load_format}")]
        if not names:
            raise engine_error("ValueError", f"No checkpoint file in {own}.")
        return os.path.join(
            own, max(names, key=lambda name: os.path.getmtime(os.path.join(own, name)))
        )

    def _shared(self, source):
        """is_publicly_accessible_path()."""
        if self.place.world <= int(os.environ.get("DEVICE_NUM_PER_NODE") or 8):
            return True
        real = os.path.realpath(source)
        return any(
            path and real.startswith(os.path.realpath(path))
            for path in os.environ.get("SHARED_PATHS", "").split(",")
        )

    def _by_meta(self, source):
        """get_resume_checkpoint_by_meta(): rank 0 decides, writes it down, and the others read that. None: no meta.json anywhere."""
        record = os.path.join(self.out, self.release["resume"]["record"])
        if self.place.rank == 0:
            os.makedirs(os.path.dirname(record), exist_ok=True)
            with open(record, "w", encoding="utf-8") as file:
                file.write(self._basic(source))
        self.gang.barrier()
        with open(record, encoding="utf-8") as file:
            text = file.read().strip()
        if text == "FOUND NO META.JSON":
            return None
        if text.startswith("Error"):
            raise engine_error("ValueError", f"Get resume-able checkpoint failed, due to {text}.")
        self.say(f"Get resume checkpoint: {text}", "resume")
        return os.path.basename(text).replace("_rank_0", f"_rank_{self.place.rank}", 1)

    def _basic(self, source):
        found = []
        for rank in range(self.place.world):
            try:
                with open(
                    os.path.join(self._rank_dir(source, rank), "meta.json"), encoding="utf-8"
                ) as file:
                    meta = json.load(file)
                found.append((meta["last_epoch"], meta["last_step"], meta["last_ckpt_file"], rank))
            except (OSError, ValueError, KeyError) as error:
                self.say(f"meta.json of rank {rank} is not found: {error}", "resume")
        if not found:
            return "FOUND NO META.JSON"
        epoch, step, name, rank = min(found)
        prefix = name.split("-")[0]
        complete = set()
        for other in range(self.place.world):
            own = prefix.replace(f"rank_{rank}", f"rank_{other}")
            here = {
                _number(file, own, f".{self.load_format}")
                for file in os.listdir(self._rank_dir(source, other))
            } - {None}
            here = {number for number in here if number <= (epoch, step)}
            complete = here if other == 0 else complete & here
        if not complete:
            return "Error: No checkpoint could be resumed."
        last = max(complete)
        own = prefix.replace(f"rank_{rank}", "rank_0")
        return os.path.join(
            self._rank_dir(source, 0), f"{own}-{last[0]}_{last[1]}.{self.load_format}"
        )

    # ---- train and save

    def _free_prefix(self):
        """ModelCheckpoint's: a run that finds files of its prefix takes the next one, by which nothing of another run is overwritten."""
        prefix, taken = f"{self.saver.get('prefix') or 'CKP'}_rank_{self.place.rank}", 0
        own = self._rank_dir(
            os.path.join(self.saver.get("directory") or self.out, "checkpoint"), self.place.rank
        )
        for name in os.listdir(own) if os.path.isdir(own) else []:
            rest = name[len(prefix) :]
            if name.startswith(prefix) and name.endswith(".ckpt") and not rest[0].isalpha():
                number = rest[1 : rest.find("-")]
                taken = max(
                    taken, 1 if rest.startswith("-") else int(number) + 1 if number.isdigit() else 0
                )
        return f"{prefix}_{taken}" if taken else prefix

    def save(self, epoch, cur_step):
        prefix = self.prefix
        in_epoch = (cur_step - 1) % self.batch_num + 1
        directory = self.saver.get("directory") or self.out
        words = {"out": directory, "rank": self.place.rank, "prefix": prefix, "epoch": epoch, "step": in_epoch, "seconds": 0.011,
                 "epoch_num": epoch, "step_num": self.state.step, "global_step": self.state.step, "loss_scale": 65536.0,
                 "global_batch_size": self.batch, "ckpt_format": self.format, "ckpt_file": f"{prefix}-{epoch}_{in_epoch}.{self.format}"}  # fmt: skip
        layout = self.release["checkpoint"]
        if not self.new:
            self._retain(os.path.join(directory, "checkpoint", f"rank_{self.place.rank}"))
            saving.Saver(layout["steps"], self.part, self, layout["counters"]).save(
                self.state, self.options, words
            )
            return
        if not self._shared(directory):
            raise engine_error("RuntimeError", self.new["unshared"])
        name, world = self.saver.get("prefix") or "CKP", self.place.world
        words.update(base=os.path.join(directory, "checkpoint", f"iteration_{self.state.step:08d}"), name=name, world=world,
                     files=[f"{name}-{kind}-{rank:07d}-{world:07d}.safetensors" for kind in ("model", "opt") for rank in range(world)])  # fmt: skip
        saving.Saver(self.new["steps"], self.part, self).save(self.state, self.options, words)

    def _retain(self, own):
        """CheckpointManager: before a save the oldest file of this run's prefix goes where there are as many as are kept; each rank by itself."""
        most = self.saver.get("keep_checkpoint_max", 5)
        names = os.listdir(own) if os.path.isdir(own) else []
        there = [
            os.path.join(own, name)
            for name in names
            if name.startswith(f"{self.prefix}-") and not name.endswith(".tmp")
        ]
        if 0 < most <= len(there):
            os.remove(min(there, key=os.path.getmtime))

    def _progress(self, cur_step):
        """(epoch, step in it) as MFLossMonitor.step_end() works them out: some releases forget where in an epoch a run has resumed."""
        if not self.sink:
            done = self.initial_epoch * self.per_epoch + cur_step
            return (done - 1) // self.per_epoch + 1, (done - 1) % self.per_epoch + 1
        if self.release["log"]["knows_initial_step"]:
            return (cur_step + self.initial_step - 1) // self.per_epoch + 1, (
                cur_step + self.initial_step - 1
            ) % self.per_epoch + 1
        skipped = self.initial_epoch * self.batch_num // self.per_epoch
        return (cur_step - 1) // self.per_epoch + skipped + 1, (cur_step - 1) % self.per_epoch + 1

    def train(self):
        rate = float((self.config.get("optimizer") or {}).get("learning_rate") or 1e-5)
        every = int(self.saver["save_checkpoint_steps"]) if self.saver else 0
        self._line("begin")
        self.prefix = self._free_prefix() if self.saver else None
        cur_step, losses, last_saved = 0, [], self.state.step
        for epoch in range(self.initial_epoch, self.runner_epochs):
            for _ in range(1 if self.sink else self.per_epoch):
                began = time.monotonic()
                for _ in range(self.sink_size):
                    self.run.pause()
                    loss = self.state.advance(self.gang, self.place.rank)
                    self.run.step(self.state.step, loss)
                    losses.append(loss)
                cur_step += self.sink_size
                ms = (time.monotonic() - began) * 1e3
                at_epoch, at_step = self._progress(cur_step)
                done = ((at_epoch - 1) * self.per_epoch + at_step) / self.epochs / self.per_epoch
                per_step = ms / self.sink_size
                left = (self.epochs - at_epoch + 1) * self.per_epoch - at_step
                self._line("step", epoch=at_epoch, epochs=self.epochs, step=at_step, per_epoch=self.per_epoch, loss=loss, mean=math.fsum(losses) / len(losses),
                           norm=loss / 10.0, ms=ms, per_step=int(per_step), lr=f"{rate:.6g}", percent=done * 100, bar=f"{int(50 * done) * chr(0x2588):<50}",
                           throughput=self.batch / self.place.world / (per_step / 1e3), left=timedelta(seconds=int(left * per_step / 1e3)))  # fmt: skip
                if every and self.state.step - last_saved >= every:
                    last_saved = self.state.step
                    self.save(epoch + 1, cur_step)
                for one in self.watching:
                    one.step_end(cur_step)
                if self.run.leaves(self.state.step):
                    return
            self._line(
                "epoch", ms=ms, per_step=ms / self.batch_num, mean=math.fsum(losses) / len(losses)
            )
            losses = []
            for one in self.watching:
                one.epoch_end(epoch + 1)
        if self.saver and last_saved != self.state.step:
            self.save(self.runner_epochs, cur_step)  # ModelCheckpoint.end(): a last one is forced
        self._line("end")

    def evaluate(self):
        self._line("eval", metric="{'PerplexityMetric': {'loss': 2.1276, 'PPL': 8.395}}")

    def predict(self):
        if not self.options.get("--predict_data") and not self.config.get("input_data"):
            raise engine_error("ValueError", "Input data is None, please pass it by --predict_data")
        self._line("predict", out="[{'text_generation_text': ['conformance']}]")
