#!/usr/bin/python3
"""A small GPT that a launcher can start, kill and resume: the sample job of muster.

What it is.  A byte-level language model in plain PyTorch (CPU, gloo, DistributedDataParallel), a few
hundred lines to read from top to bottom: arguments, data, model, schedule, checkpoints, training loop.
It learns one text file, by default the GNU GPL, and its loss falls from 5.5 to about 2.9 in 300 steps.

What it shows.  A training job needs nothing from its launcher but torchrun's contract: the variables
RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT.  One process is one rank; all ranks run this
same file.  By hand, one rank alone:

    RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \\
        /usr/bin/python3 train.py --steps 50 --save out --load out

How it resumes.  A step depends on more than the weights.  A checkpoint therefore holds

    model       the weights
    adam        AdamW's two moments for each weight, and its own step counter
    rng         the random state of every rank (dropout); each rank draws from its own stream
    schedule    how many steps the learning rate has been through (warm-up, then cosine decay)
    sampler     the shuffled order of this epoch, and how much of it is used up

and a run that is killed anywhere and started again with --load prints, from the checkpoint on, exactly
the losses, to the last bit, that it would have printed.  `--omit adam` (or another of the four) leaves
that part out when restoring: the run goes on, looks healthy, and is no longer the same run.  `--finetune`
takes the weights alone and begins anew with them: another text, another schedule.

Checkpoints and log lines have Megatron-LM's form (`torch` format), so that tools for it work here too:

    SAVE/iter_0000020/mp_rank_00/model_optim_rng.pt     written in place by rank 0
    SAVE/latest_checkpointed_iteration.txt              "20", written after every rank knows the file is whole

A directory iter_* that the second file has not reached is a torn save; it is not looked at, and is
overwritten when the run gets there again.

Exit status: 0 trained to the last step, 1 a failure (the traceback says which), 2 bad arguments.
"""

import argparse
import datetime
import math
import os
import sys
import time
import traceback

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY = 256  # a token is a byte
TRACKER = "latest_checkpointed_iteration.txt"
OMITTABLE = ("adam", "rng", "schedule", "sampler")


# ---- Arguments ---------------------------------------------------------------------------------------


def parse_arguments(argv=None):
    """Returns the checked arguments; on a mistake prints what is wrong and exits with status 2."""
    parser = argparse.ArgumentParser(description="Train a small GPT on the bytes of one file.", allow_abbrev=False)
    add = parser.add_argument
    add("--data", default="/usr/share/common-licenses/GPL-3", metavar="FILE", help="the text to learn")
    add("--steps", type=int, default=300, metavar="N", help="train up to this step; also the end of the decay")
    # nargs="?": a launcher may well pass an empty value for "no checkpoint yet"
    add("--save", nargs="?", const="", default="", metavar="DIR", help="write checkpoints here")
    add("--load", nargs="?", const="", default="", metavar="DIR", help="resume from here, if it holds a checkpoint")
    add("--finetune", action="store_true", help="take the weights alone from --load, and begin at step 0")
    add("--save-interval", type=int, default=20, metavar="N", help="steps between checkpoints")
    add("--log-interval", type=int, default=10, metavar="N", help="steps between log lines")
    add("--batch-size", type=int, default=16, metavar="N", help="samples a step, all ranks together")
    add("--lr", type=float, default=3e-3, help="learning rate at its highest")
    add("--warmup", type=int, default=20, metavar="N", help="steps until --lr is reached")
    add("--seed", type=int, default=1234)
    add("--dropout", type=float, default=0.1)
    add("--layers", type=int, default=2)
    add("--width", type=int, default=32, help="size of a token's vector")
    add("--heads", type=int, default=4)
    add("--sequence", type=int, default=32, help="bytes a sample")
    add("--omit", choices=OMITTABLE, help="do not restore this part of a checkpoint (to see that it matters)")
    add("--step-delay", type=float, default=0.0, metavar="SECONDS", help="sleep after each step")
    add("--loss-hex", metavar="FILE", help="append 'STEP LOSS' a step, the loss as exact hexadecimal float")
    add("--timeout", type=float, default=120.0, metavar="SECONDS", help="longest wait for another rank")
    args = parser.parse_args(argv)

    problems = []

    def require(condition, message):
        if not condition:
            problems.append(message)
        return condition

    for name in ("steps", "save_interval", "log_interval", "batch_size", "layers", "width", "heads", "sequence"):
        value = getattr(args, name)
        require(value >= 1, f"--{name.replace('_', '-')} must be 1 or more, not {value}")
    require(args.load or not args.finetune, "--finetune without --load: there are no weights to begin with")
    require(args.warmup >= 0, f"--warmup must be 0 or more, not {args.warmup}")
    require(0 <= args.seed < 2**32, f"--seed must be at least 0 and below 2^32, not {args.seed}")
    require(0.0 < args.lr < math.inf, f"--lr must be a number above 0, not {args.lr}")
    require(0.0 <= args.dropout < 1.0, f"--dropout must be at least 0 and below 1, not {args.dropout}")
    require(0.0 <= args.step_delay <= 3600.0, f"--step-delay must be from 0 to 3600 seconds, not {args.step_delay}")
    require(0.0 < args.timeout <= 86400.0, f"--timeout must be above 0 and at most 86400 seconds, not {args.timeout}")
    if args.heads >= 1:
        require(args.width % args.heads == 0, f"--width {args.width} cannot be shared by --heads {args.heads}")
    try:
        with open(args.data, "rb") as file:
            length = os.fstat(file.fileno()).st_size
        require(
            length > args.sequence,
            f"--data '{args.data}' has {length} bytes; --sequence {args.sequence} needs at least {args.sequence + 1}",
        )
    except OSError as error:
        problems.append(f"--data '{args.data}': {error.strerror}")

    # torchrun's contract
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        text = os.environ.get(name, "")
        if not require(text != "", f"{name} is not set in the environment: start this with muster or torchrun"):
            continue
        if name != "MASTER_ADDR":
            number = text.isascii() and text.isdigit()
            require(number, f"{name} in the environment is '{text}', not a number")
            setattr(args, name.lower(), int(text) if number else None)
    rank, world_size = getattr(args, "rank", None), getattr(args, "world_size", None)
    if world_size is not None and require(world_size >= 1, "WORLD_SIZE in the environment is 0, not 1 or more"):
        batch = args.batch_size
        require(batch % world_size == 0, f"--batch-size {batch} cannot be shared by {world_size} ranks")
        if rank is not None:
            require(rank < world_size, f"RANK {rank} in the environment is not below WORLD_SIZE {world_size}")

    if problems:  # all of them at once: nobody likes to correct one and wait for the next
        for problem in problems:
            print(f"{parser.prog}: error: {problem}", file=sys.stderr)
        sys.exit(2)
    return args


# ---- Data --------------------------------------------------------------------------------------------


class Text:
    """The file's bytes, cut into samples of `sequence` inputs and, one byte further on, `sequence` targets."""

    def __init__(self, path, sequence):
        with open(path, "rb") as file:
            self._bytes = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()
        self._sequence = sequence

    def __len__(self):
        return (len(self._bytes) - 1) // self._sequence

    def batch(self, indices):
        starts = [int(i) * self._sequence for i in indices]
        rows = torch.stack([self._bytes[start : start + self._sequence + 1] for start in starts])
        return rows[:, :-1], rows[:, 1:]


class ShuffledSampler:
    """Sample numbers in a new random order each epoch; a batch may reach over the edge into the next.

    Every rank holds the same sampler, draws the whole batch and takes its own part of it.
    """

    def __init__(self, size, seed):
        self._generator = torch.Generator().manual_seed(seed)
        self._order = torch.randperm(size, generator=self._generator)
        self._used = 0

    def take(self, count):
        taken = []
        while count > 0:
            if self._used == len(self._order):
                self._order = torch.randperm(len(self._order), generator=self._generator)
                self._used = 0
            part = self._order[self._used : self._used + count]
            self._used += len(part)
            count -= len(part)
            taken.append(part)
        return torch.cat(taken)

    def state_dict(self):
        return {"order": self._order, "used": self._used, "generator": self._generator.get_state()}

    def load_state_dict(self, state):
        if len(state["order"]) != len(self._order):
            raise ValueError(
                f"the checkpoint was made with {len(state['order'])} samples, this run has {len(self._order)}: "
                "give the same --data and --sequence"
            )
        self._order = state["order"]
        self._used = state["used"]
        self._generator.set_state(state["generator"])


# ---- Model -------------------------------------------------------------------------------------------


class Block(nn.Module):
    """Causal self-attention, then a two-layer perceptron, each added to its input."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self._heads = heads
        self.norm_1 = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm_2 = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask):
        x = x + self.dropout(self.project(self._attend(self.norm_1(x), mask)))
        return x + self.dropout(self.narrow(F.gelu(self.widen(self.norm_2(x)))))

    def _attend(self, x, mask):
        batch, length, width = x.shape
        split = (batch, length, self._heads, width // self._heads)
        query, key, value = (part.view(split).transpose(1, 2) for part in self.query_key_value(x).chunk(3, dim=-1))
        scores = query @ key.transpose(-2, -1) / math.sqrt(split[-1]) + mask
        weights = self.dropout(F.softmax(scores, dim=-1))
        return (weights @ value).transpose(1, 2).reshape(batch, length, width)


class Gpt(nn.Module):
    """Bytes in, mean cross-entropy of the next byte out."""

    def __init__(self, layers, width, heads, sequence, dropout):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width)
        self.position = nn.Embedding(sequence, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        mask = torch.full((sequence, sequence), -math.inf).triu(1)
        self.register_buffer("_mask", mask, persistent=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        length = tokens.shape[1]
        x = self.dropout(self.token(tokens) + self.position.weight[:length])
        for block in self.blocks:
            x = block(x, self._mask[:length, :length])
        scores = F.linear(self.norm(x), self.token.weight)  # the output layer shares the input's table
        return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


class CosineSchedule:
    """Learning rate: a straight line up during warm-up, then half a cosine down to a tenth at the last step."""

    def __init__(self, highest, warmup, steps):
        self._highest = highest
        self._warmup = warmup
        self._steps = steps
        self._done = 0

    def next(self):
        step = self._done
        self._done += 1
        if step < self._warmup:
            return self._highest * (step + 1) / self._warmup
        way = min(1.0, (step - self._warmup) / max(1, self._steps - self._warmup))
        return self._highest * (0.1 + 0.9 * 0.5 * (1.0 + math.cos(math.pi * way)))

    def state_dict(self):
        return {"num_steps": self._done}

    def load_state_dict(self, state):
        self._done = state["num_steps"]


# ---- Ranks together ----------------------------------------------------------------------------------


def add_gradients_in_rank_order(world_size, bucket):
    """DDP's communication hook: the mean of all ranks' gradients, each element added as rank 0 + 1 + 2 + ...

    DDP lays its buckets out anew after the first step, and a ring all-reduce adds an element in an order that
    depends on where it lies in the bucket.  So the first step after a resume would round differently from the
    same step in an uninterrupted run.  Adding in rank order makes the sum independent of the layout; it moves
    more bytes than a ring, which does not matter at this size.
    """
    mine = bucket.buffer()
    parts = [torch.empty_like(mine) for _ in range(world_size)]
    dist.all_gather(parts, mine)
    total = parts[0]
    for part in parts[1:]:
        total += part
    result = torch.futures.Future()
    result.set_result(total / world_size)
    return result


def mean_over_ranks(value):
    """The mean of one number; summed in double precision, so that single-precision losses lose nothing."""
    total = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def max_over_ranks(value):
    highest = torch.tensor([value], dtype=torch.int64)
    dist.all_reduce(highest, op=dist.ReduceOp.MAX)
    return int(highest.item())


def say(message):
    print(message, flush=True)


def say_once(message):
    if dist.get_rank() == 0:
        say(message)


def say_time(event):
    dist.barrier()
    say_once(f"[{event}] datetime: {datetime.datetime.now():%Y-%m-%d %H:%M:%S} ")


# ---- Checkpoints -------------------------------------------------------------------------------------


class Training:
    """Everything a step depends on, and nothing else: what a checkpoint must hold."""

    def __init__(self, args):
        torch.manual_seed(args.seed)  # the same weights on every rank
        self.text = Text(args.data, args.sequence)
        self.model = Gpt(args.layers, args.width, args.heads, args.sequence, args.dropout)
        self.adam = torch.optim.AdamW(self.model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1)
        self.schedule = CosineSchedule(args.lr, args.warmup, args.steps)
        self.sampler = ShuffledSampler(len(self.text), args.seed)
        self.iteration = 0
        torch.manual_seed(args.seed + 1 + args.rank)  # from here on another dropout stream on every rank


def checkpoint_file(directory, iteration):
    return os.path.join(directory, f"iter_{iteration:07d}", "mp_rank_00", "model_optim_rng.pt")


def save_checkpoint(training, args):
    """All ranks call this together.  The order is Megatron's: the file, a barrier, the tracker."""
    iteration = training.iteration
    say_once(f"saving checkpoint at iteration {iteration:7d} to {args.save} in torch format")
    rng_states = [None] * args.world_size
    dist.all_gather_object(rng_states, {"torch_rng_state": torch.get_rng_state()})
    if args.rank == 0:
        path = checkpoint_file(args.save, iteration)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        state = {
            "checkpoint_version": 3.0,
            "args": vars(args),
            "iteration": iteration,
            "model": training.model.state_dict(),
            "optimizer": training.adam.state_dict(),
            "rng_state": rng_states,
            "opt_param_scheduler": training.schedule.state_dict(),
            "sampler": training.sampler.state_dict(),
        }
        torch.save(state, path)
    dist.barrier()
    if args.rank == 0:
        with open(os.path.join(args.save, TRACKER), "w", encoding="ascii") as tracker:
            tracker.write(str(iteration))
    say_once(f"  successfully saved checkpoint from iteration {iteration:7d} to {args.save}")
    dist.barrier()


def read_tracker(directory):
    """The iteration the tracker names, or 0 where there is no tracker (a first start)."""
    path = os.path.join(directory, TRACKER)
    try:
        with open(path, encoding="ascii", errors="replace") as tracker:
            text = tracker.read().strip()
    except FileNotFoundError:
        return 0
    if not text.isdigit() or int(text) == 0:
        raise ValueError(f"reading tracker '{path}': '{text}' is not the number of an iteration")
    return int(text)


def load_checkpoint(training, args):
    """All ranks call this together; they load the same iteration, or all of them fail."""
    if not args.load:
        return
    problem, found = None, 0
    try:
        found = read_tracker(args.load)
    except (OSError, ValueError) as error:
        problem = error
    agree_or_fail(problem)

    # each rank may see a file system of its own: the highest number wins, as in Megatron
    iteration = max_over_ranks(found)
    if iteration == 0:
        if args.finetune:
            raise FileNotFoundError(f"--finetune: there is no checkpoint in --load '{args.load}'")
        say_once(f"WARNING: could not find the metadata file {os.path.join(args.load, TRACKER)}")
        say_once("    will not load any checkpoints and will start from random")
        return
    if found != iteration:
        say(
            f"WARNING: on rank {args.rank} found iteration {found} in the metadata while max iteration across "
            f"the ranks is {iteration}, replacing it with max iteration."
        )

    say_once(f" loading checkpoint from {args.load} at iteration {iteration}")
    try:
        restore(training, args, torch.load(checkpoint_file(args.load, iteration), map_location="cpu"))
        if training.iteration != (0 if args.finetune else iteration):
            raise ValueError(f"the file says iteration {training.iteration}, the tracker {iteration}")
    except Exception as error:  # torch.load raises many kinds on a torn file, and all mean the same here
        problem = error
    agree_or_fail(problem)
    say_once(f"  successfully loaded checkpoint from {args.load} at iteration {iteration}")


def restore(training, args, state):
    training.model.load_state_dict(state["model"])
    if args.finetune:
        return
    if args.omit != "adam":
        training.adam.load_state_dict(state["optimizer"])
    if args.omit != "schedule":
        training.schedule.load_state_dict(state["opt_param_scheduler"])
    if args.omit != "sampler":
        training.sampler.load_state_dict(state["sampler"])
    if args.omit != "rng":
        if len(state["rng_state"]) == args.world_size:
            torch.set_rng_state(state["rng_state"][args.rank]["torch_rng_state"])
        else:
            say_once(
                f"WARNING: the checkpoint holds the random state of {len(state['rng_state'])} ranks, this run has "
                f"{args.world_size}: dropout goes on with new streams"
            )
            torch.manual_seed(args.seed + 1 + args.rank + args.world_size * state["iteration"])
    training.iteration = state["iteration"]


def agree_or_fail(problem):
    """Fails on every rank if there is a problem on any, so that no rank waits for one that has given up."""
    if max_over_ranks(0 if problem is None else 1) == 0:
        return
    if problem is not None:
        raise RuntimeError(f"loading a checkpoint on rank {dist.get_rank()}: {problem}") from problem
    raise RuntimeError(f"loading a checkpoint on rank {dist.get_rank()}: another rank could not, see its log")


# ---- Training loop -----------------------------------------------------------------------------------


class Progress:
    """Megatron's log line, averaged over the steps since the last one; printed by the last rank."""

    def __init__(self, args):
        self._args = args
        self._start()

    def _start(self):
        self._since = time.monotonic()
        self._steps = 0
        self._loss = 0.0
        self._nan = 0

    def step(self, iteration, loss, learning_rate, grad_norm):
        args = self._args
        self._steps += 1
        if math.isfinite(loss):
            self._loss += loss
        else:
            self._nan += 1
        if iteration % args.log_interval != 0:
            return
        if args.rank == args.world_size - 1:
            milliseconds = 1000.0 * (time.monotonic() - self._since) / self._steps
            average = self._loss / max(1, self._steps - self._nan)
            line = f" [{datetime.datetime.now():%Y-%m-%d %H:%M:%S}]"
            line += f" iteration {iteration:8d}/{args.steps:8d} |"
            line += f" consumed samples: {iteration * args.batch_size:12d} |"
            line += f" elapsed time per iteration (ms): {milliseconds:.1f} |"
            line += f" learning rate: {learning_rate:.6E} |"
            line += f" global batch size: {args.batch_size:5d} |"
            if average > 0.0:
                line += f" lm loss: {average:.6E} |"
            line += " loss scale: 1.0 |"
            line += f" grad norm: {grad_norm:.3f} |"
            line += f" number of skipped iterations: {0:3d} |"
            line += f" number of nan iterations: {self._nan:3d} |"
            say(line)
        self._start()


def train(args):
    training = Training(args)
    load_checkpoint(training, args)

    model = nn.parallel.DistributedDataParallel(training.model, broadcast_buffers=False)
    model.register_comm_hook(args.world_size, add_gradients_in_rank_order)
    model.train()

    share = args.batch_size // args.world_size
    mine = slice(args.rank * share, (args.rank + 1) * share)
    writes_losses = args.loss_hex is not None and args.rank == args.world_size - 1
    losses = open(args.loss_hex, "a", encoding="ascii", buffering=1) if writes_losses else None

    say_time("before the start of training step")
    progress = Progress(args)
    first = training.iteration
    while training.iteration < args.steps:
        tokens, targets = training.text.batch(training.sampler.take(args.batch_size)[mine])
        training.adam.zero_grad(set_to_none=True)
        loss = model(tokens, targets)
        loss.backward()
        grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
        learning_rate = training.schedule.next()
        for group in training.adam.param_groups:
            group["lr"] = learning_rate
        training.adam.step()
        training.iteration += 1

        loss = mean_over_ranks(loss.item())
        if losses is not None:
            losses.write(f"{training.iteration} {loss.hex()}\n")
        progress.step(training.iteration, loss, learning_rate, grad_norm)
        if args.step_delay > 0.0:
            time.sleep(args.step_delay)
        if args.save and training.iteration % args.save_interval == 0:
            save_checkpoint(training, args)
    say_time("after training is done")
    if args.save and training.iteration % args.save_interval != 0 and training.iteration > first:
        save_checkpoint(training, args)
    if losses is not None:
        losses.close()


def main():
    args = parse_arguments()
    torch.set_num_threads(1)  # a rank is one device: here, one core's worth
    try:
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=args.timeout))
        train(args)
        dist.barrier()
        dist.destroy_process_group()
    except Exception:
        # Mostly: another rank has died and gloo noticed.  Leave at once; an orderly end of the interpreter
        # could wait for collectives that will never finish.
        traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main()
