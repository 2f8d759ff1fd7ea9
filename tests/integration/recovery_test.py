#!/usr/bin/python3
"""kill -9 of everything, and the losses are those of a run that nobody disturbed.

    stub trainer, 8 ranks on 2 nodes    12 kills a kind: a rank, a worker, an agent, the controller; and 16 of all kinds in one run
    tiny GPT (PyTorch), 4 ranks         10 kills a kind, and 12 of all kinds in one run

The trainer's own trace is the truth, not muster's view of it.  A rank or worker dies only after a step that no attempt made before: five
attempts without one end a job, as they should.  An agent's or the controller's death must not touch a rank: same pid and start time, attempt 1,
and no gap between two steps of any rank beyond twice the median (of PyTorch's, whose steps a busy machine stretches by itself: not in more of the
moments after a kill than in as many quiet ones between them, give or take half of them).

Run:  /usr/bin/python3 tests/integration/recovery_test.py [-v]       (MUSTER_BIN names the binaries' folder, MUSTER_TEST_SEED repeats a run)
"""

import importlib.util
import os
import random
import re
import statistics
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import ROOT, SLOW, Cluster, Trace, kill_process, wait_gone  # noqa: E402

SEED = int(os.environ.get("MUSTER_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
SAMPLE = os.path.join(ROOT, "deploy/samples/tiny-gpt")
HAVE_TORCH = importlib.util.find_spec("torch") is not None


def setUpModule():
    print(
        f"seed {SEED}: MUSTER_TEST_SEED={SEED} chooses the same victims and steps", file=sys.stderr
    )


class Kills:
    """Kills at random moments of one job. Moments are counted in new steps, so that a slow machine sees the same story."""

    def __init__(self, test, cluster, job, trace, kinds, window):
        self.test, self.cluster, self.job, self.trace, self.kinds, self.window = (
            test,
            cluster,
            job,
            trace,
            kinds,
            window,
        )
        self.random = random.Random(f"{SEED} {test.id()}")
        self.done = []
        self.steps = []  # the best step when a kill began
        self.plan = []

    def one(self):
        """Waits for some steps that are new, then kills; daemons are started again at once."""
        self.trace.wait(self.job, self.trace.best() + self.random.randint(*self.window))
        if len(self.plan) <= len(self.done):  # every kind as often as the others, in any order
            self.plan += self.random.sample(self.kinds, len(self.kinds))
        kind = self.plan[len(self.done)]
        step = self.trace.best()
        if kind in ("agent", "controller"):
            self.cluster.restart(
                self.random.choice(self.cluster.nodes) if kind == "agent" else kind
            )
        else:
            # None may be there: between two attempts, after an agent's death among them, only the next steps bring ranks again.
            victims = self.cluster.rank_processes() if kind == "rank" else self.cluster.workers()
            victim = self.random.choice(sorted(victims)) if victims else None
            if victim is None or not kill_process(victim):
                return
            self.test.assertTrue(wait_gone(victim), f"process {victim.pid} outlives SIGKILL")
        self.done.append(kind)
        self.steps.append(step)

    def many(self, count):
        for _ in range(2 * count):  # a victim may end by itself first
            if len(self.done) < count:
                self.one()
        self.test.assertEqual(len(self.done), count)


class Matrix:
    """One cluster, one undisturbed job, one job a kind."""

    devices = 4
    window = (2, 12)
    cluster: Cluster

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=2, devices=cls.devices)
        cls.cluster.__enter__()
        try:
            job, trace = cls.begin("undisturbed", cls.steps)
            cls.cluster.wait(job)
            cls.expected = trace.losses()
            assert sorted(cls.expected) == list(range(1, cls.steps + 1)), sorted(cls.expected)
        except BaseException:
            cls.cluster.__exit__(*sys.exc_info())
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__(None, None, None)

    def disturbed(self, name, kinds, count, steps=None, window=None, **how):
        """Steps are plenty, so that all kills fit in; the undisturbed run has at least as many."""
        steps = steps or self.steps
        job, trace = self.begin(name, steps, **how)
        trace.wait(job, 1)
        before = self.cluster.ranks()
        kills = Kills(self, self.cluster, job, trace, kinds, window or self.window)
        kills.many(count)
        after = self.cluster.ranks()
        self.assertLess(trace.best(), steps, "the kills did not fit into the run")
        self.cluster.wait(job)
        self.assertEqual(
            trace.losses(), {step: self.expected[step] for step in range(1, steps + 1)}
        )
        shown = self.cluster.show(job)
        self.assertEqual(shown["phase"], "succeeded")
        summary = ", ".join(f"{kills.done.count(kind)} {kind}" for kind in sorted(set(kills.done)))
        print(
            f"\n{self.id().split('.', 1)[1]}: killed {summary}; {shown['attempt']} attempts, {steps} losses equal",
            file=sys.stderr,
        )
        self.killed_at = kills.steps
        return shown, trace, before, after

    def gang_restarts(self, kind, count):
        shown, trace, _, _ = self.disturbed(f"{kind}s", [kind], count)
        # Every kill was of a gang that was making steps: each costs an attempt, and none costs two.
        self.assertEqual(shown["attempt"], count + 1)
        return trace

    def nobody_notices(self, kind, count, steps=None, **how):
        steps = steps or self.steps
        shown, trace, before, after = self.disturbed(f"{kind}s", [kind], count, steps, **how)
        self.assertEqual(shown["attempt"], 1)
        self.assertEqual(len(before), 2 * self.devices)
        self.assertEqual(before, after)  # attempt, pid and start time of every rank
        for rank in trace.ranks():
            self.assertLessEqual({entry.pid for entry in trace.read(rank)}, {0, before[rank][1]})
            self.assertEqual([entry.step for entry in trace.read(rank)], list(range(1, steps + 1)))
        return shown["id"], trace

    def far_apart(self):
        """Before a kill come as many steps that no kill has touched as after it."""
        return (2 * self.span + 1, 2 * self.span + 6)

    def late_only_anyway(self, took):
        """`took`: the time of each step. A busy machine stretches steps as it likes, so the same run is its own control: as many steps before each kill as after it."""
        median = statistics.median(took.values())
        after = [max(took[step + i] for i in range(1, self.span + 1)) for step in self.killed_at]
        before = [max(took[step - i] for i in range(self.span)) for step in self.killed_at]
        late, late_anyway = (
            sum(worst > 2 * median for worst in windows) for windows in (after, before)
        )
        print(
            f"steps of {median:.1f} ms (median), at worst {max(after):.1f} ms after a kill, {max(before):.1f} ms between kills",
            file=sys.stderr,
        )
        print(
            f"beyond twice the median after {late} of {len(after)} kills, and in {late_anyway} of as many moments without one",
            file=sys.stderr,
        )
        self.assertLessEqual(
            late,
            late_anyway + 3,
            "what a daemon's death does to the ranks, it does at nearly every death",
        )


class StubTrainer(Matrix, unittest.TestCase):
    devices = 4
    span = 4  # steps after a kill
    steps = 320 * SLOW

    @classmethod
    def begin(cls, name, steps, step_ms=25):
        trace = Trace(cls.cluster, name)
        spec = cls.cluster.stub(name, "--steps", steps, "--step-ms", step_ms, "--save", "${save.dir}", "--load", "${resume.dir}", "--save-interval", 4,
                                "--save-ms", 5, "--trace", trace.path)  # fmt: skip
        return cls.cluster.submit(spec), trace

    def no_gap(self, kind):
        """Steps of 100 ms. A step takes as long as its slowest rank."""
        steps = 320
        _, trace = self.nobody_notices(kind, 12, steps, window=self.far_apart(), step_ms=100)
        took = {}
        for rank in trace.ranks():
            for gap, entry in zip(trace.gaps(rank), trace.read(rank)[1:]):
                took[entry.step] = max(took.get(entry.step, 0), gap * 1e3)
        self.assertEqual(sorted(took), [*range(2, steps + 1)])
        self.late_only_anyway(took)

    def test_rank(self):
        self.gang_restarts("rank", 12)

    def test_worker(self):
        self.gang_restarts("worker", 12)

    def test_agent(self):
        self.no_gap("agent")

    def test_controller(self):
        self.no_gap("controller")

    def test_all_kinds(self):
        self.disturbed("all", ["rank", "worker", "agent", "controller"], 16)


@unittest.skipUnless(HAVE_TORCH, "needs python3-torch")
class TinyGpt(Matrix, unittest.TestCase):
    devices = 2
    steps = 160 + 60 * SLOW
    window = (1, 8)
    span = 5  # steps after a kill: longer than a daemon is away

    @classmethod
    def begin(cls, name, steps):
        trace = Trace(cls.cluster, name)
        args = ["--steps", steps, "--save", "${save.dir}", "--load", "${resume.dir}", "--save-interval", 5, "--log-interval", 1, "--warmup", 8, "--layers", 1,
                "--width", 16, "--heads", 2, "--sequence", 16, "--batch-size", 8, "--dropout", 0.2, "--step-delay", 0.05,
                "--loss-hex", trace.file()]  # fmt: skip
        spec = cls.cluster.torch_spec(
            name, {"script": "train.py", "args": [str(arg) for arg in args]}
        )
        spec["code"] = {"at": os.path.abspath(SAMPLE)}
        spec["runtime"] = {"python": "/usr/bin/python3"}
        return cls.cluster.submit(spec), trace

    def test_rank(self):
        self.gang_restarts("rank", 10)

    def test_worker(self):
        self.gang_restarts("worker", 10)

    def no_gap(self, kind):
        """The last rank writes how long each step took; the ranks make a step together, so that is every rank's."""
        job, _ = self.nobody_notices(kind, 10, window=self.far_apart())
        log = self.cluster.output("logs", job, "--rank", str(2 * self.devices - 1), "--raw", "-f")
        took = {
            int(step): float(ms)
            for step, ms in re.findall(
                r" iteration +(\d+)/ *\d+ \|.* elapsed time per iteration \(ms\): ([0-9.]+) ", log
            )
        }
        self.assertEqual(len(took), self.steps)
        self.late_only_anyway(took)

    def test_agent(self):
        self.no_gap("agent")

    def test_controller(self):
        self.no_gap("controller")

    def test_all_kinds(self):
        self.disturbed("all", ["rank", "worker", "agent", "controller"], 12)


if __name__ == "__main__":
    unittest.main()
