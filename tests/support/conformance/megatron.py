"""Megatron-LM's training loop as its log and its files show it (NVIDIA/Megatron-LM megatron/training/{arguments,training,checkpointing}.py); what differs
between releases is in the data file."""

import json
import os
import shutil
import time
from datetime import datetime

from . import observing, saving, state
from .fail import Ended, Violation, engine_error

_NOTICED_AFTER = 2  # steps that a save in the background takes here


class Shape:
    """Who holds which part of the model: ranks count tensor first, then context, data, pipeline (order tp-cp-ep-dp-pp). Experts are spread over the context-
    and data-parallel ranks together."""

    def __init__(self, options, rank, world, uneven):
        self.tp_size = options.get("--tensor-model-parallel-size", 1)
        self.pp_size = options.get("--pipeline-model-parallel-size", 1)
        self.cp_size = options.get("--context-parallel-size", 1)
        ep_size = options.get("--expert-model-parallel-size", 1)
        total = self.tp_size * self.pp_size * self.cp_size
        if world % total:
            raise engine_error(
                "AssertionError",
                f"world size ({world}) is not divisible by total_model_size ({total})",
            )
        self.dp_size = world // total
        experts = self.tp_size * self.pp_size * ep_size
        if world % experts:
            raise engine_error(
                uneven[0],
                uneven[1].format(world=world, experts=experts, dp=self.dp_size, ep=ep_size),
            )
        self.tp = rank % self.tp_size
        self.pp = rank // (world // self.pp_size)
        ep = rank // self.tp_size % ep_size
        self.first_copy = (
            rank // (self.tp_size * ep_size) % (world // experts) == 0
        )  # of those that hold the same part
        # checkpointing.py get_checkpoint_name(): the pipeline's and the experts' numbers only where there are some
        self.directory = (
            f"mp_rank_{self.tp:02d}"
            + (f"_{self.pp:03d}" if self.pp_size > 1 else "")
            + (f"_{ep:03d}" if ep_size > 1 else "")
        )
        self.shard = (self.pp * self.tp_size + self.tp) * ep_size + ep


def _asserted(release, options, shape, environment):
    """validate_args: what the release asserts before anything is built."""
    for rule in release["asserts"]:
        asked = [options.get(name) for name in rule.get("with", [])]
        if any(value is None or (value is not True and value == 1) for value in asked) or any(
            name in options for name in rule.get("without", [])
        ):
            continue
        if any(options.get(name) != value for name, value in rule.get("is", {}).items()):
            continue
        missing = "option" in rule and rule["option"] not in options
        other = "env" in rule and environment.get(rule["env"][0]) != rule["env"][1]
        if (
            missing
            or other
            or ("env_not" in rule and environment.get(rule["env_not"][0]) == rule["env_not"][1])
        ):
            raise engine_error(rule.get("kind", "AssertionError"), rule["text"])
    batch, micro = options.get("--global-batch-size"), options.get("--micro-batch-size")
    if batch and batch % (micro * shape.dp_size):
        text = f"global batch size ({batch}) is not divisible by micro batch size ({micro}) times data parallel size ({shape.dp_size})"
        raise engine_error("AssertionError", text)


class Training:
    def __init__(self, release, place, options, run):
        self.release, self.place, self.options, self.run = release, place, options, run
        self.shape = Shape(options, place.rank, place.world, release["texts"]["uneven_experts"])
        _asserted(release, options, self.shape, os.environ)
        for name in release.get("files", []):
            if name in options and not os.path.isfile(options.get(name)):
                raise engine_error(
                    "FileNotFoundError",
                    f"[Errno 2] No such file or directory: {options.get(name)!r}",
                )
        self.state = state.State(self.shape.shard, place.world)
        self.part = (
            {"all"}
            | ({"first"} if place.rank == 0 else set())
            | ({"last"} if place.rank == place.world - 1 else set())
        )
        self.part |= {"model"} if self.shape.first_copy else set()
        self.gang = None
        self.background = []  # [(the step at which it is noticed to be done, what is left to do)]
        self.watching, self.evaluation = observing.of_megatron(self)

    def say(self, text, by="all"):
        if by in self.part:
            print(text, flush=True)

    def _format(self):
        """Up to core_r0.8 the layout is chosen by a flag and a name, from core_r0.9 on by a name alone."""
        layout, options = self.release["checkpoint"], self.options
        if "flag" in layout:
            return (
                options.get(layout["name"], layout["named"])
                if layout["flag"] in options
                else layout["format"]
            )
        return options.get("--ckpt-format", layout["format"])

    def _words(self, **more):
        shape, options = self.shape, self.options
        words = {
            "stamp": datetime.now().strftime(self.release["log"]["stamp"]), "rank": self.place.rank, "iteration": self.state.step,
            "train_iters": options.get("--train-iters"), "save": options.get("--save"), "load": options.get("--load"), "format": self._format(),
            "tp": shape.tp, "tp1": shape.tp + 1, "tp_size": shape.tp_size, "pp": shape.pp, "pp1": shape.pp + 1, "pp_size": shape.pp_size,
            "mp": shape.directory, "backend_version": 1,
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
            iteration = int(text)
            if iteration < self.release["checkpoint"]["least"]:
                raise engine_error("AssertionError", f"error parsing metadata file {path}")
            return iteration, False
        except ValueError:
            if text == "release":
                return 0, True
            # sys.exit() without a status: the shell sees success
            raise Ended(
                0,
                *(
                    [self.release["texts"]["bad_tracker"].format(path=path)]
                    if self.place.rank == 0
                    else []
                ),
                stream=None,
            ) from None

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
                self.say(
                    line.format(path=os.path.join(directory, "latest_checkpointed_iteration.txt")),
                    "first",
                )
            if "--exit-on-missing-checkpoint" in self.options:
                raise Ended(0, ">> '--exit-on-missing-checkpoint' set ... exiting. <<")
            return
        iteration, is_release = found
        iteration = self.options.get("--ckpt-step", iteration)
        base = os.path.join(directory, "release" if is_release else f"iter_{iteration:07d}")
        kind = self._kind(base)
        words = self._words(iteration=iteration)
        self.say(
            texts[
                "loading_release"
                if is_release
                else "loading_dist"
                if kind == "torch_dist"
                else "loading"
            ].format(**words),
            "first",
        )
        records = self._read_parts(base) if kind == "torch" else self._read_dist(base)
        for record in records:
            if record["step"] != iteration and not is_release:
                raise Violation(
                    f"the tracker of --load {directory} says {iteration}, what lies there is of step {record['step']}: a stale tracker"
                )
            if record["shard"] != self.state.shard:
                raise Violation(
                    f"'{base}' gave shard {record['shard']} to rank {self.place.rank}, which is shard {self.state.shard}"
                )
            self.state.restore(record)
        if is_release or "--finetune" in self.options:
            self.state.step, self.state.optimizer = 0, 0.0
        if "--no-load-optim" in self.options:
            self.state.optimizer = 0.0
        steps = {
            text
            for text in self.gang.exchange(
                f"{self.state.step} {self.state.optimizer.hex()}".encode()
            )
        }
        if len(steps) != 1:
            raise Violation(f"the ranks resume from different states: {sorted(steps)}")
        self.say(texts["loaded"].format(**self._words()), "first")
        self.run.loaded(directory, self.state.step)

    def _kind(self, base):
        """_get_checkpoint_format(): by what lies there, not by the options; but some releases read only what the options name."""
        if os.path.isfile(os.path.join(base, "metadata.json")):
            layout = self.release["checkpoint"]
            if "flag" in layout and not any(
                name in self.options for name in (layout["flag"], "--auto-detect-ckpt-format")
            ):
                raise engine_error("RuntimeError", self.release["texts"]["dist_unasked"])
            return "torch_dist"
        if not os.path.isdir(base) or any(
            name.startswith("mp_rank_0") for name in os.listdir(base)
        ):
            return "torch"
        if not os.path.isfile(os.path.join(base, ".metadata")):
            raise engine_error(
                "NotImplementedError", self.release["texts"]["unknown_format"].format(base=base)
            )
        kind = self._format()
        if kind not in ("torch_dcp", "fsdp_dtensor"):
            raise engine_error("NotImplementedError", f"checkpoint format {kind} not supported")
        return kind

    def _read(self, path):
        try:
            return state.read_zip(path)
        except FileNotFoundError as error:
            raise engine_error(
                "FileNotFoundError", f"[Errno 2] No such file or directory: {path!r}"
            ) from error
        except Exception as error:
            raise engine_error(
                "RuntimeError", f"PytorchStreamReader failed reading zip archive: {path}: {error}"
            ) from error

    def _read_parts(self, base):
        records = [self._read(os.path.join(base, self.shape.directory, "model_optim_rng.pt"))]
        if (
            "--use-distributed-optimizer" in self.options
            and "--no-load-optim" not in self.options
            and "--finetune" not in self.options
        ):
            records.append(self._read(os.path.join(base, self.shape.directory, "distrib_optim.pt")))
        return records

    def _read_dist(self, base):
        if not os.path.isfile(os.path.join(base, ".metadata")):
            raise engine_error(
                "CheckpointException", f"{base} is not a distributed checkpoint: no .metadata"
            )
        path = os.path.join(base, f"__{self.place.rank}_0.distcp")
        try:
            with open(path, "rb") as file:
                own = json.loads(file.read().rstrip(b"\0"))
        except (OSError, ValueError) as error:
            raise engine_error("CheckpointingException", f"{path}: {error}") from error
        return [own]

    # ---- train and save

    def save(self):
        layout, kind = self.release["checkpoint"], self._format()
        if kind not in layout["steps"]:
            raise Violation(f"checkpoints of the format {kind} are not modelled here")
        if "--async-save" not in self.options or any(
            name not in self.options for name in layout["async"].get(kind, {}).get("needs", [])
        ):
            before = self._read_tracker(self.options.get("--save"))
            saving.Saver(layout["steps"][kind], self.part, self).save(
                self.state, self.options, self._words()
            )
            retain = self.options.get("--save-retain-interval")
            if (
                retain
                and before
                and before[0] != self.state.step
                and before[0] % retain
                and "first" in self.part
            ):
                shutil.rmtree(os.path.join(self.options.get("--save"), f"iter_{before[0]:07d}"))
            return
        if kind not in layout["async"]:
            what = (
                "legacy checkpoints" if kind == "torch" else f"{kind} distributed checkpoint format"
            )
            raise engine_error("NotImplementedError", f"Async checkpoint save of {what}")
        finish = saving.Saver(layout["async"][kind], self.part, self).begin(
            self.state, self.options, self._words()
        )
        self.background.append((self.state.step + _NOTICED_AFTER, finish))

    def finalize(self, blocking):
        """maybe_finalize_async_save(): the ranks agree about which saves are done; those end in their order."""
        if blocking and self.background:
            self.say(self.release["checkpoint"]["lines"]["unfinished"], "first")
        while self.background and (blocking or self.state.step >= self.background[0][0]):
            self.background.pop(0)[1]()

    def train(self):
        options, log = self.options, self.release["log"]
        total, interval, every = (
            options.get("--train-iters"),
            options.get("--save-interval"),
            options.get("--log-interval", 100),
        )
        rate, batch = (
            options.get("--lr", 0.0),
            options.get("--global-batch-size")
            or options.get("--micro-batch-size") * self.shape.dp_size,
        )
        self.say(log["begin"].format(**self._words()), "first")
        began = time.monotonic()
        while self.state.step < total:
            self.finalize(False)
            self.run.pause()
            loss = self.state.advance(self.gang, self.place.rank)
            self.run.step(self.state.step, loss)
            if self.state.step % every == 0:
                took = (time.monotonic() - began) * 1e3 / every
                began = time.monotonic()
                self.say(
                    log["step"].format(
                        **self._words(
                            loss=loss,
                            ms=took,
                            lr=rate,
                            batch=batch,
                            samples=self.state.step * batch,
                            norm=loss / 10.0,
                        )
                    ),
                    "last",
                )
            for one in self.watching:
                one.step_end(self.state.step)
            saved = options.get("--save") and interval and self.state.step % interval == 0
            if saved:
                self.save()
            # checkpoint_and_decide_exit(): an orderly end, status 0
            if (
                options.get("--exit-interval")
                and self.state.step % options.get("--exit-interval") == 0
            ):
                if options.get("--save") and not saved:
                    self.save()
                self.say(log["exit"].format(**self._words()), "first")
                self.finalize(True)
                return
        self.say(log["end"].format(**self._words()), "first")
        if options.get("--save") and interval and self.state.step % interval:
            self.save()
        self.finalize(True)
        if self.evaluation:
            self.evaluation.training_end(self.state.step)
