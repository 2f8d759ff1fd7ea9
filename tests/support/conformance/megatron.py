"""Megatron-LM's training loop as its log and its files show it (NVIDIA/Megatron-LM megatron/training/{arguments,training,checkpointing}.py); what differs
between releases is in the data file."""

import json
import os
import time
from datetime import datetime

from . import observing, saving, state
from .fail import Ended, Violation, engine_error


class Shape:
    """Who holds which part of the model: ranks count tensor first, then context, data, pipeline (order tp-cp-ep-dp-pp)."""

    def __init__(self, options, rank, world):
        self.tp_size = options.get("--tensor-model-parallel-size", 1)
        self.pp_size = options.get("--pipeline-model-parallel-size", 1)
        self.cp_size = options.get("--context-parallel-size", 1)
        total = self.tp_size * self.pp_size * self.cp_size
        if options.get("--expert-model-parallel-size", 1) > 1:
            raise Violation("--expert-model-parallel-size: experts are not modelled here")
        if world % total:
            raise engine_error("AssertionError", f"world size ({world}) is not divisible by total_model_size ({total})")
        self.dp_size = world // total
        self.tp = rank % self.tp_size
        self.cp = rank // self.tp_size % self.cp_size
        self.dp = rank // (self.tp_size * self.cp_size) % self.dp_size
        self.pp = rank // (world // self.pp_size)
        # checkpointing.py get_checkpoint_name(): the pipeline's number only where there is a pipeline
        self.directory = f"mp_rank_{self.tp:02d}" if self.pp_size == 1 else f"mp_rank_{self.tp:02d}_{self.pp:03d}"
        self.shard = self.pp * self.tp_size + self.tp


def _asserted(release, options, shape, environment):
    """validate_args: what the release asserts before anything is built."""
    for rule in release["asserts"]:
        if any(options.get(name) in (None, 1) for name in rule.get("with", [])) or any(name in options for name in rule.get("without", [])):
            continue
        if "option" in rule and rule["option"] not in options:
            raise engine_error("AssertionError", rule["text"])
        if "env" in rule and environment.get(rule["env"][0]) != rule["env"][1]:
            raise engine_error(rule.get("kind", "AssertionError"), rule["text"])
    batch, micro = options.get("--global-batch-size"), options.get("--micro-batch-size")
    if batch and batch % (micro * shape.dp_size):
        text = f"global batch size ({batch}) is not divisible by micro batch size ({micro}) times data parallel size ({shape.dp_size})"
        raise engine_error("AssertionError", text)


class Training:
    def __init__(self, release, place, options, run):
        self.release, self.place, self.options, self.run = release, place, options, run
        if "--async-save" in options:
            raise Violation("--async-save: saves that end later are not modelled here")
        self.shape = Shape(options, place.rank, place.world)
        _asserted(release, options, self.shape, os.environ)
        for name in release.get("files", []):
            if name in options and not os.path.isfile(options.get(name)):
                raise engine_error("FileNotFoundError", f"[Errno 2] No such file or directory: {options.get(name)!r}")
        self.state = state.State(self.shape.shard, place.world)
        self.part = {"all"} | ({"first"} if place.rank == 0 else set()) | ({"last"} if place.rank == place.world - 1 else set())
        self.part |= {"model"} if self.shape.dp == self.shape.cp == 0 else set()
        self.gang = None
        self.watching, self.evaluation = observing.of_megatron(self)

    def say(self, text, by="all"):
        if by in self.part:
            print(text, flush=True)

    def _words(self, **more):
        now = datetime.now()
        shape, options = self.shape, self.options
        words = {
            "stamp": now.strftime("%Y-%m-%d %H:%M:%S"), "rank": self.place.rank, "iteration": self.state.step, "train_iters": options.get("--train-iters"),
            "save": options.get("--save"), "load": options.get("--load"), "format": options.get("--ckpt-format", self.release["checkpoint"]["format"]),
            "tp1": shape.tp + 1, "tp_size": shape.tp_size, "pp1": shape.pp + 1, "pp_size": shape.pp_size, "mp": shape.directory,
            "backend_version": 1,
        }  # fmt: skip
        return {**words, **more}

    # ---- resume

    def _read_tracker(self, directory):
        """(iteration, release?) or None: there is none."""
        path = os.path.join(directory, "latest_checkpointed_iteration.txt")
        if not os.path.isfile(path):
            return None
        with open(path, encoding="ascii", errors="replace") as file:
            text = file.read().strip()
        try:
            return int(text), False
        except ValueError:
            if text == "release":
                return 0, True
            # sys.exit() without a status: the shell sees success
            raise Ended(0, *([self.release["texts"]["bad_tracker"].format(path=path)] if self.place.rank == 0 else []), stream=None) from None

    def load(self):
        texts, directory = self.release["texts"], self.options.get("--load")
        if directory is None:
            return
        found = self._read_tracker(directory)
        # Every rank reads; the highest wins. Where storage is not shared, ranks without a tracker would wait in the next collective for ever.
        seen = [json.loads(text) for text in self.gang.exchange(json.dumps(found).encode())]
        if any(entry != seen[0] for entry in seen):
            raise Violation(f"the ranks read different trackers in --load {directory}: {seen}")
        if found is None:
            for line in texts["no_tracker"]:
                self.say(line.format(path=os.path.join(directory, "latest_checkpointed_iteration.txt")), "first")
            if "--exit-on-missing-checkpoint" in self.options:
                raise Ended(0, ">> '--exit-on-missing-checkpoint' set ... exiting. <<")
            return
        iteration, is_release = found
        iteration = self.options.get("--ckpt-step", iteration)
        base = os.path.join(directory, "release" if is_release else f"iter_{iteration:07d}")
        distributed = os.path.isfile(os.path.join(base, "metadata.json"))
        words = self._words(iteration=iteration)
        self.say(texts["loading_release" if is_release else "loading_dist" if distributed else "loading"].format(**words), "first")
        records = self._read_dist(base) if distributed else self._read_parts(base)
        for record in records:
            if record["step"] != iteration and not is_release:
                raise Violation(f"the tracker of --load {directory} says {iteration}, what lies there is of step {record['step']}: a stale tracker")
            if record["shard"] != self.state.shard:
                raise Violation(f"'{base}' gave shard {record['shard']} to rank {self.place.rank}, which is shard {self.state.shard}")
            self.state.restore(record)
        if is_release or "--finetune" in self.options:
            self.state.step, self.state.optimizer = 0, 0.0
        if "--no-load-optim" in self.options:
            self.state.optimizer = 0.0
        steps = {text for text in self.gang.exchange(f"{self.state.step} {self.state.optimizer.hex()}".encode())}
        if len(steps) != 1:
            raise Violation(f"the ranks resume from different states: {sorted(steps)}")
        self.say(texts["loaded"].format(**self._words()), "first")
        self.run.loaded(directory, self.state.step)

    def _read(self, path):
        try:
            return state.read_zip(path)
        except FileNotFoundError as error:
            raise engine_error("FileNotFoundError", f"[Errno 2] No such file or directory: {path!r}") from error
        except Exception as error:
            raise engine_error("RuntimeError", f"PytorchStreamReader failed reading zip archive: {path}: {error}") from error

    def _read_parts(self, base):
        records = [self._read(os.path.join(base, self.shape.directory, "model_optim_rng.pt"))]
        if "--use-distributed-optimizer" in self.options and "--no-load-optim" not in self.options and "--finetune" not in self.options:
            records.append(self._read(os.path.join(base, self.shape.directory, "distrib_optim.pt")))
        return records

    def _read_dist(self, base):
        if not os.path.isfile(os.path.join(base, ".metadata")):
            raise engine_error("CheckpointException", f"{base} is not a distributed checkpoint: no .metadata")
        path = os.path.join(base, f"__{self.place.rank}_0.distcp")
        try:
            with open(path, "rb") as file:
                own = json.loads(file.read().rstrip(b"\0"))
        except (OSError, ValueError) as error:
            raise engine_error("CheckpointingException", f"{path}: {error}") from error
        return [own]

    # ---- train and save

    def save(self):
        layout = self.release["checkpoint"]
        kind = self._words()["format"]
        if kind not in layout["steps"]:
            raise Violation(f"--ckpt-format {kind} is not modelled here")
        steps = layout["steps"][kind]
        saving.Saver(steps, self.part, self).save(self.state, self.options, self._words())

    def train(self):
        options, log = self.options, self.release["log"]
        total, interval, every = options.get("--train-iters"), options.get("--save-interval"), options.get("--log-interval", 100)
        rate, batch = options.get("--lr", 0.0), options.get("--global-batch-size") or options.get("--micro-batch-size") * self.shape.dp_size
        self.say(log["begin"].format(**self._words()), "first")
        began = time.monotonic()
        while self.state.step < total:
            self.run.pause()
            loss = self.state.advance(self.gang, self.place.rank)
            self.run.step(self.state.step, loss)
            if self.state.step % every == 0:
                took = (time.monotonic() - began) * 1e3 / every
                began = time.monotonic()
                self.say(log["step"].format(**self._words(loss=loss, ms=took, lr=rate, batch=batch, samples=self.state.step * batch, norm=loss / 10.0)), "last")
            for one in self.watching:
                one.step_end(self.state.step)
            saved = options.get("--save") and interval and self.state.step % interval == 0
            if saved:
                self.save()
            # checkpoint_and_decide_exit(): an orderly end, status 0
            if options.get("--exit-interval") and self.state.step % options.get("--exit-interval") == 0:
                if options.get("--save") and not saved:
                    self.save()
                self.say(log["exit"].format(**self._words()), "first")
                return
        self.say(log["end"].format(**self._words()), "first")
        if options.get("--save") and interval and self.state.step % interval:
            self.save()
        if self.evaluation:
            self.evaluation.training_end(self.state.step)
