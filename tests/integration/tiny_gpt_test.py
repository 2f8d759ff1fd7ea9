#!/usr/bin/python3
"""The sample training job, deploy/samples/tiny-gpt/train.py, without muster: is its resume exact?

Everything muster promises about going on after a fault rests on a trainer that, resumed from a checkpoint,
does what it would have done.  These tests start the ranks by hand, kill them, start them again, and compare
the losses as exact hexadecimal floats:

    4 ranks, one whole run          -> the losses to compare with
    4 ranks, broken three times     -> the same losses, over two epoch edges
    2 ranks, one whole run          -> the losses to compare with
    2 ranks, resumed beside a torn save; resumed without adam / rng / schedule / sampler; a broken checkpoint
    1 rank,  bad arguments

Run:  /usr/bin/python3 tests/integration/tiny_gpt_test.py [-v]       (needs python3-torch; about a minute)
"""

import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

TRAIN = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../deploy/samples/tiny-gpt/train.py"
)
TEXT = "/usr/share/common-licenses/GPL-3"
TRACKER = "latest_checkpointed_iteration.txt"

# 130 samples of 16 bytes, 8 a step: an epoch is 16.25 steps, so its edges lie inside the steps 17 and 33
SAMPLES, SEQUENCE, BATCH = 130, 16, 8
MODEL = f"--layers 1 --width 16 --heads 2 --sequence {SEQUENCE} --batch-size {BATCH} --warmup 8 --dropout 0.2".split()
STEPS_LONG, STEPS_SHORT, INTERVAL = 36, 12, 5

START = 120.0  # s; only a bound: four imports of torch on two busy cores
LEAVE = (
    20.0  # s; only a bound: after a rank's death the others go by themselves, far below --timeout
)


class Gang:
    """All ranks of one run, started on entry, gone on exit.  Their output is read only while waiting."""

    def __init__(self, world_size, args, env=None):
        self._world_size = world_size
        self._args = [str(arg) for arg in args]
        self._env = env or {}
        self.ranks = []
        self.output = [b""] * world_size

    def __enter__(self):
        # Bound and not listening: rank 0 can still listen there, and nobody else is given this port meanwhile.
        self._port = socket.socket()
        self._selector = selectors.DefaultSelector()
        try:
            self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._port.bind(("127.0.0.1", 0))
            for rank in range(self._world_size):
                self.ranks.append(self._start(rank))
                os.set_blocking(self.ranks[rank].stdout.fileno(), False)
                self._selector.register(self.ranks[rank].stdout, selectors.EVENT_READ, rank)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, rank):
        env = dict(os.environ)
        env.update(
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE=str(self._world_size),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(self._port.getsockname()[1]),
            GLOO_SOCKET_IFNAME="lo",
            OMP_NUM_THREADS="1",
        )
        env.update(self._env)
        command = ["/usr/bin/python3", "-u", TRAIN, *self._args]
        return subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def __exit__(self, *_):
        self.kill()
        for process in self.ranks:
            process.wait()
            process.stdout.close()
        self._selector.close()
        self._port.close()

    def kill(self, ranks=None):
        for process in self.ranks if ranks is None else [self.ranks[rank] for rank in ranks]:
            process.send_signal(signal.SIGKILL)  # does nothing when it has been reaped

    def wait_for(self, rank, text, within=START):
        """Returns as soon as that rank has printed the text."""
        self._read(
            lambda: text.encode() in self.output[rank], within, f"rank {rank} to print '{text}'"
        )
        if text.encode() not in self.output[rank]:
            raise AssertionError(
                f"every rank ended and rank {rank} never printed '{text}'\n{self.shown()}"
            )

    def wait(self, within=START):
        """Waits for the end of every rank; returns their exit codes."""
        self._read(lambda: False, within, "all ranks to end")
        return [process.wait(within) for process in self.ranks]

    def _read(self, enough, within, what):
        deadline = time.monotonic() + within
        while not enough() and self._selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(f"waited {within:.0f} s for {what}\n{self.shown()}")
            for key, _ in self._selector.select(left):
                data = os.read(key.fd, 65536)
                self.output[key.data] += data
                if not data:
                    self._selector.unregister(key.fileobj)

    def text(self, rank):
        return self.output[rank].decode(errors="replace")

    def shown(self):
        return "\n".join(f"--- rank {rank}\n{self.text(rank)}" for rank in range(self._world_size))


def read_losses(path):
    """[(step, loss as text)] of a --loss-hex file."""
    with open(path, encoding="ascii") as file:
        return [(int(step), loss) for step, loss in (line.split() for line in file)]


def tracked(directory):
    with open(os.path.join(directory, TRACKER), encoding="ascii") as file:
        return int(file.read())


def checkpoint_file(directory, iteration):
    return os.path.join(directory, f"iter_{iteration:07d}", "mp_rank_00", "model_optim_rng.pt")


class TinyGptTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="muster-tiny-gpt-")
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.data = os.path.join(cls.root, "text")
        with open(TEXT, "rb") as source, open(cls.data, "wb") as target:
            target.write(source.read(SAMPLES * SEQUENCE + 1))
        cls.long = cls.whole_run(4, STEPS_LONG, "long")
        cls.short = cls.whole_run(2, STEPS_SHORT, "short")

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.root, *names)

    @classmethod
    def args(cls, steps, losses, *more):
        base = [
            "--data",
            cls.data,
            "--steps",
            steps,
            "--save-interval",
            INTERVAL,
            "--log-interval",
            1,
        ]
        return [*base, "--timeout", 100, "--loss-hex", losses, *MODEL, *more]

    @classmethod
    def whole_run(cls, world_size, steps, name):
        """An uninterrupted first start (an empty --load); returns {step: loss}."""
        losses = cls.path(name + ".hex")
        with Gang(
            world_size, cls.args(steps, losses, "--save", cls.path(name), "--load", "")
        ) as gang:
            codes = gang.wait()
            if any(codes):
                raise AssertionError(f"exit codes {codes}\n{gang.shown()}")
            cls.whole_output = gang.output  # of the latest
        return dict(read_losses(losses))

    def resumable(self, name):
        """A directory as muster hands to --load: a link to step 5 of the short run, and a tracker."""
        directory = self.path(name)
        os.mkdir(directory)
        os.symlink(self.path("short", "iter_0000005"), os.path.join(directory, "iter_0000005"))
        with open(os.path.join(directory, TRACKER), "w", encoding="ascii") as tracker:
            tracker.write("5")
        return directory

    def resume_short(self, name, load, *more):
        """Trains from step 5 to the end; returns {step: loss} and rank 0's output."""
        losses = self.path(name + ".hex")
        with Gang(2, self.args(STEPS_SHORT, losses, "--load", load, *more)) as gang:
            self.assertEqual(gang.wait(), [0, 0], gang.shown())
            output = gang.text(0)
        resumed = dict(read_losses(losses))
        self.assertEqual(sorted(resumed), list(range(6, STEPS_SHORT + 1)))
        return resumed, output

    # ---- a whole run

    def test_whole_run_prints_and_saves_as_megatron_does(self):
        save = self.path("short")
        first = self.whole_output[0].decode()
        for iteration in (5, 10, 12):  # 12: the last step, though it is not on the interval
            self.assertIn(
                f"\nsaving checkpoint at iteration {iteration:7d} to {save} in torch format\n",
                first,
            )
            self.assertIn(
                f"\n  successfully saved checkpoint from iteration {iteration:7d} to {save}\n",
                first,
            )
            self.assertTrue(os.path.isfile(checkpoint_file(save, iteration)))
        self.assertRegex(
            first, r"(?m)^\[before the start of training step\] datetime: [-0-9]{10} [:0-9]{8} $"
        )
        self.assertRegex(first, r"(?m)^\[after training is done\] datetime: [-0-9]{10} [:0-9]{8} $")
        self.assertNotIn(" iteration        1/", first)  # that line is the last rank's
        with open(os.path.join(save, TRACKER), "rb") as tracker:
            self.assertEqual(tracker.read(), b"12")

        lines = [
            line for line in self.whole_output[1].decode().splitlines() if " iteration " in line
        ]
        self.assertEqual(len(lines), STEPS_SHORT)
        for step, line in enumerate(lines, 1):
            self.assertRegex(
                line,
                rf"^ \[[-0-9]{{10}} [:0-9]{{8}}\] iteration {step:8d}/{STEPS_SHORT:8d}"
                rf" \| consumed samples: {step * BATCH:12d}"
                r" \| elapsed time per iteration \(ms\): \d+\.\d"
                r" \| learning rate: \d\.\d{6}E-\d\d"
                rf" \| global batch size: {BATCH:5d}"
                rf" \| lm loss: {re.escape(format(float.fromhex(self.short[step]), '.6E'))}"
                r" \| loss scale: 1\.0"
                r" \| grad norm: \d+\.\d{3}"
                r" \| number of skipped iterations:   0"
                r" \| number of nan iterations:   0 \|$",
            )

    # ---- interrupted and resumed

    def test_an_often_broken_run_repeats_every_loss_to_the_last_bit(self):
        save = self.path("broken")
        killed_at = {7: [1], 16: [0, 1, 2, 3], 31: [0, 1, 2, 3]}  # after this step: these ranks
        seen = []
        start = 0
        for attempt, step in enumerate([*killed_at, None]):
            losses = self.path(f"broken-{attempt}.hex")
            # slowly, so that the kill comes before the next save even where this process has to wait for a core
            delay = 0.1 if step is not None else 0.0
            args = self.args(
                STEPS_LONG, losses, "--save", save, "--load", save, "--step-delay", delay
            )
            with Gang(4, args) as gang:
                if step is None:
                    self.assertEqual(gang.wait(), [0, 0, 0, 0], gang.shown())
                else:
                    gang.wait_for(3, f" iteration {step:8d}/")
                    gang.kill(killed_at[step])
                    codes = gang.wait(within=LEAVE)
                    for rank, code in enumerate(codes):
                        if rank in killed_at[step]:
                            self.assertEqual(code, -signal.SIGKILL, gang.shown())
                        else:  # left behind: notices, says so and fails, long before --timeout
                            self.assertEqual(code, 1, gang.shown())
                            self.assertIn("Traceback (most recent call last)", gang.text(rank))
                text = gang.text(0)
            if attempt == 0:
                self.assertIn("WARNING: could not find the metadata file", text)
            else:
                self.assertIn(f" loading checkpoint from {save} at iteration {start}\n", text)
                self.assertIn(
                    f"  successfully loaded checkpoint from {save} at iteration {start}\n", text
                )
                self.assertGreaterEqual(start, list(killed_at)[attempt - 1] // INTERVAL * INTERVAL)
            losses_seen = read_losses(losses)
            self.assertEqual(
                [step for step, _ in losses_seen],
                list(range(start + 1, start + 1 + len(losses_seen))),
            )
            seen.append((start, losses_seen))
            start = tracked(save)

        self.assertEqual(start, STEPS_LONG)
        self.assertEqual({step for _, part in seen for step, _ in part}, set(self.long))
        for attempt, (start, part) in enumerate(seen):
            for step, loss in part:
                self.assertEqual(
                    loss, self.long[step], f"step {step}, attempt {attempt} resumed at {start}"
                )

        edges = [edge * SAMPLES // BATCH + 1 for edge in (1, 2)]
        self.assertTrue(
            any(start < edges[0] <= part[-1][0] for start, part in seen[1:]),
            "no resume before an edge",
        )
        self.assertTrue(
            any(edges[0] < start < edges[1] for start, _ in seen), "no resume in the second epoch"
        )

    def test_a_torn_save_is_not_used_and_is_overwritten(self):
        directory = self.resumable("torn")
        torn = checkpoint_file(directory, 10)
        os.makedirs(os.path.dirname(torn))
        with open(checkpoint_file(self.path("short"), 10), "rb") as whole, open(torn, "wb") as half:
            content = whole.read()
            half.write(content[: len(content) // 2])
        resumed, output = self.resume_short("torn", directory, "--save", directory)
        self.assertIn(f" loading checkpoint from {directory} at iteration 5\n", output)
        self.assertEqual(resumed, {step: self.short[step] for step in resumed})
        self.assertEqual(tracked(directory), STEPS_SHORT)
        self.assertGreater(os.path.getsize(torn), len(content) // 2)

    def test_a_named_checkpoint_that_cannot_be_read_fails_on_every_rank(self):
        directory = self.resumable("unreadable")
        with open(os.path.join(directory, TRACKER), "w", encoding="ascii") as tracker:
            tracker.write("10")
        torn = checkpoint_file(directory, 10)
        os.makedirs(os.path.dirname(torn))
        with open(torn, "wb") as half:
            half.write(b"PK\x03\x04 half a file")
        losses = self.path("unreadable.hex")
        with Gang(2, self.args(STEPS_SHORT, losses, "--load", directory)) as gang:
            self.assertEqual(gang.wait(), [1, 1], gang.shown())
            for rank in range(2):
                self.assertIn(
                    f"RuntimeError: loading a checkpoint on rank {rank}: ", gang.text(rank)
                )
        self.assertFalse(os.path.exists(losses))

    def test_finetuning_without_weights_fails_on_every_rank(self):
        losses = self.path("random.hex")
        with Gang(
            2, self.args(STEPS_SHORT, losses, "--load", self.path("nothing"), "--finetune")
        ) as gang:
            self.assertEqual(gang.wait(), [1, 1], gang.shown())
            for rank in range(2):
                self.assertIn(
                    "FileNotFoundError: --finetune: there is no checkpoint in --load ",
                    gang.text(rank),
                )
        self.assertFalse(os.path.exists(losses))

    # ---- each part of the state matters

    def test_without_the_adam_moments_the_second_step_differs(self):
        self.check_omitted(
            "adam", first_differs=7
        )  # the weights are the old ones, so the first loss is too

    def test_without_the_schedule_the_second_step_differs(self):
        self.check_omitted("schedule", first_differs=7)

    def test_without_the_random_state_the_first_step_differs(self):
        self.check_omitted("rng", first_differs=6)

    def test_without_the_sampler_the_first_step_differs(self):
        self.check_omitted("sampler", first_differs=6)

    def check_omitted(self, part, first_differs):
        resumed, output = self.resume_short(part, self.resumable(part), "--omit", part)
        self.assertIn(" at iteration 5\n", output)
        differing = [step for step, loss in resumed.items() if loss != self.short[step]]
        self.assertEqual(differing[:1], [first_differs], f"{part}: steps {differing} differ")
        self.assertIn(STEPS_SHORT, differing)

    # ---- arguments

    def test_bad_arguments_are_named_all_at_once_and_exit_2(self):
        bad = "--steps 0 --save-interval -3 --lr nan --dropout 1 --heads 3 --data /nowhere --finetune".split()
        with Gang(1, bad, env={"LOCAL_RANK": "x", "RANK": "1", "MASTER_ADDR": ""}) as many, Gang(
            1, ["--omit", "weights"]
        ) as choice, Gang(1, ["--step", "5"]) as unknown:
            self.assertEqual(many.wait(), [2], many.shown())
            for problem in (
                "--steps must be 1 or more, not 0",
                "--finetune without --load: there are no weights to begin with",
                "--save-interval must be 1 or more, not -3",
                "--lr must be a number above 0, not nan",
                "--dropout must be at least 0 and below 1, not 1.0",
                "--width 32 cannot be shared by --heads 3",
                "--data '/nowhere': No such file or directory",
                "LOCAL_RANK in the environment is 'x', not a number",
                "RANK 1 in the environment is not below WORLD_SIZE 1",
                "MASTER_ADDR is not set in the environment",
            ):
                self.assertIn("train.py: error: " + problem, many.text(0))
            self.assertNotIn("Traceback", many.text(0))
            self.assertEqual(choice.wait(), [2], choice.shown())
            self.assertIn("invalid choice: 'weights'", choice.text(0))
            self.assertEqual(unknown.wait(), [2], unknown.shown())
            self.assertIn("unrecognized arguments: --step 5", unknown.text(0))


if __name__ == "__main__":
    unittest.main()
