"""What the ranks of one job themselves wrote down of every step, over all attempts: the truth that a test compares with."""

import collections
import glob
import os
import time

from .programs import DEADLINE
from .waiting import Directory

Entry = collections.namedtuple("Entry", "step loss at pid")


class Trace:
    """The stub trainer's lines are 'STEP LOSS CLOCK_MONOTONIC_NS PID', the tiny GPT's --loss-hex lines 'STEP LOSS'."""

    def __init__(self, cluster, name):
        self.path = os.path.join(cluster.work, name)
        os.mkdir(self.path)
        self.cluster = cluster
        self._watch = Directory(self.path)
        cluster.closing.append(self._watch)

    def file(self, rank=0):
        return os.path.join(self.path, f"rank-{rank}.trace")

    def read(self, rank=0):
        try:
            with open(self.file(rank), encoding="ascii") as file:
                text = file.read()
        except FileNotFoundError:
            return []
        out = []
        for line in text[: text.rfind("\n") + 1].splitlines():
            fields = line.split()
            out.append(
                Entry(
                    int(fields[0]),
                    fields[1],
                    int(fields[2]) if len(fields) > 2 else 0,
                    int(fields[3]) if len(fields) > 3 else 0,
                )
            )
        return out

    def until_ended(self):
        """Arguments of a stub trainer that goes on until end(): however slow the machine is, what the test does falls into the training."""
        return ["--steps", 10**6, "--end-file", os.path.join(self.path, "end")]

    def end(self, job):
        """Ends it some hundred steps from now, so that no rank has passed that step, and waits for a new one. Returns the last step."""
        best = self.best()
        with open(os.path.join(self.path, "end.new"), "w", encoding="ascii") as file:
            file.write(str(best + 300))
        os.rename(os.path.join(self.path, "end.new"), os.path.join(self.path, "end"))
        self.wait(job, best + 1)
        return best + 300

    def ranks(self):
        return sorted(
            int(path.rpartition("-")[2].partition(".")[0])
            for path in glob.glob(os.path.join(self.path, "rank-*.trace"))
        )

    def best(self, rank=0):
        try:
            with open(self.file(rank), "rb") as file:
                if not hasattr(self, "_best"):
                    self._best, self._at = {}, {}
                at = self._at.get(rank, 0)
                file.seek(at)
                text = file.read()
        except FileNotFoundError:
            return 0
        whole = text[: text.rfind(b"\n") + 1]
        steps = [int(line.split(None, 1)[0]) for line in whole.splitlines()]
        self._at[rank] = at + len(whole)
        self._best[rank] = max(steps + [self._best.get(rank, 0)])
        return self._best[rank]

    def wait(self, job, step, deadline=DEADLINE):
        """Until rank 0 made that step; a job that ends before it is a failure at once."""
        end = time.monotonic() + deadline
        while self.best() < step:
            if not self._watch.wait(min(5.0, end - time.monotonic())):
                shown = self.cluster.show(job, check=False)
                ended = shown is None or shown.get("phase") in ("succeeded", "failed", "cancelled")
                if time.monotonic() > end or (ended and shown is not None and self.best() < step):
                    raise AssertionError(
                        f"step {step} was waited for, {self.best()} is the best\n{self.cluster.story(job)}"
                    )
        return self.best()

    def losses(self):
        """{step: loss}: every rank that wrote, every attempt, must agree on every step."""
        out, where = {}, {}
        for rank in self.ranks():
            for entry in self.read(rank):
                if out.setdefault(entry.step, entry.loss) != entry.loss:
                    raise AssertionError(
                        f"step {entry.step}: loss {entry.loss} of rank {rank}, process {entry.pid}; {out[entry.step]} of {where[entry.step]}"
                    )
                where.setdefault(entry.step, f"rank {rank}, process {entry.pid}")
        return out

    def gaps(self, rank=0):
        """Seconds between the steps that follow each other in one process."""
        entries = self.read(rank)
        return [(b.at - a.at) / 1e9 for a, b in zip(entries, entries[1:]) if a.pid == b.pid]
