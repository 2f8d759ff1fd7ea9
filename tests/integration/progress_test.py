#!/usr/bin/python3
"""What muster says of a training's steps, when the program says odd things or does not do what it was asked to.

Run:  /usr/bin/python3 tests/integration/progress_test.py [-v] [CASE]
"""

import json
import os
import unittest

from cluster import Cluster, wait_until

# Prints steps; SAVE writes a checkpoint that muster knows, or one that it does not; waits at the gates that it is given; dies of a signal where it is told to.
TRAINER = r"""
import os, signal, struct, sys, zipfile

def whole(step, save):
    os.makedirs(f"{save}/iter_{step:07d}/mp_rank_00", exist_ok=True)
    with zipfile.ZipFile(f"{save}/iter_{step:07d}/mp_rank_00/model_optim_rng.pt", "w") as archive:
        archive.writestr("weights", "w")
    with open(f"{save}/latest_checkpointed_iteration.txt", "w") as tracker:
        tracker.write(str(step))

def wait(gate):
    os.read(os.open(gate, os.O_RDONLY), 1)

attempt, save = int(os.environ["MUSTER_ATTEMPT"]), os.environ["MUSTER_SAVE_DIR"]
os.makedirs(save, exist_ok=True)
exec(open(sys.argv[1]).read())
"""


class Progress(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        try:
            cls.daemon = cls.cluster.controller()
            cls.cluster.agent("n0")
            cls.trainer = os.path.join(cls.cluster.dir, "trainer.py")
            with open(cls.trainer, "w", encoding="ascii") as file:
                file.write(TRAINER)
        except BaseException:
            cls.cluster.close()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def muster(self, *args, **more):
        return self.cluster.muster(*args, **{"code": 0, **more})

    def job(self, name, program, more=""):
        """A job whose one rank runs these lines."""
        path = os.path.join(self.cluster.dir, f"{name}.py")
        with open(path, "w", encoding="ascii") as file:
            file.write(program)
        run = json.dumps(["/usr/bin/python3", "-u", self.trainer, path])
        spec = f"name: {name}\nengine: torch\nlaunch: {{run: {run}}}\nresources: {{devices: 1, type: cpu}}\n{more}\n"
        self.cluster.submit(spec)

    def events(self, name, kind):
        return [
            event["text"]
            for event in map(
                json.loads, self.muster("events", name, "-o", "jsonl").out.splitlines()
            )
            if event["type"] == kind
        ]

    def shown(self, name):
        return json.loads(self.muster("show", name, "-o", "json").out)

    def test_a_program_that_does_not_load_is_reported(self):
        """Attempt 2 "resumes from step 20", "step 20 reached again: the incident is over": the program ignores ${resume.dir}, and had begun at step 1."""
        with self.cluster.gate("ignores") as gate:
            self.job(
                "ignores",
                f"""
first = 19 if attempt == 1 else 2
for step in range(first, 22):
    print(f"step {{step}}/40 loss 2.5")
    if step == 20 and attempt == 1:
        whole(20, save)
        wait({gate.path!r})
        os.kill(os.getpid(), signal.SIGKILL)
wait({gate.path!r})
""",
            )
            wait_until(
                lambda: self.shown("ignores").get("checkpoints"), what="the checkpoint of step 20"
            )
            gate.open()
            wait_until(
                lambda: self.events("ignores", "caught-up"),
                what="attempt 2 to be where attempt 1 was",
            )
            message = "attempt 2 did not go on from step 20: began at 2; the program has to load what is in ${resume.dir} (MUSTER_RESUME_DIR)"
            self.assertEqual(
                self.events("ignores", "first-step"), ["attempt 1 made its first step: 19", message]
            )
            self.assertRegex(
                " and ".join(self.events("ignores", "caught-up")),
                r"^step 2[01] reached again, trained anew from step 2 on$",
            )
            self.assertIn(message, self.muster("why", "ignores").out)
            shown = self.muster("show", "ignores").out
            self.assertIn("20 (began at 2)", shown)
            self.assertIn("first step: did not go on from step 20, began at 2", shown)
            gate.open()
            self.muster("wait", "ignores")

    def test_files_that_no_layout_knows_are_reported(self):
        """A script saved step_3.pt into ${save.dir}; nothing said that no attempt would go on from it."""
        self.job(
            "strange",
            """
for step in (1, 2, 3):
    print(f"step {step}/6 loss 2.5")
open(f"{save}/step_3.pt", "w").write("weights")
sys.exit(0 if attempt == 2 else 3)
""",
        )
        self.muster("wait", "strange")
        message = self.events("strange", "unknown-files")
        self.assertEqual(
            message,
            [
                "'step_3.pt' is in ${save.dir}, and nothing that checkpoint.layout knows: no attempt goes on from it"
            ],
            "once a job",
        )
        listed = self.muster("ckpt", "ls", "strange")
        self.assertIn(
            "step_3.pt' of attempt 1 is no checkpoint that layout torch knows: no attempt goes on from it; docs/engines/torch.md says",
            listed.err,
        )

    def test_one_absurd_step_does_not_end_the_job(self):
        """ "step 999999999999" was the best step from then on: with five more attempts, each further than the one before, the job had failed."""
        self.job(
            "absurd",
            """
print(f"step {attempt * 10} loss 2.5")
if attempt == 1: print("step 999999999999 loss 2.5")
print(f"step {attempt * 10 + 1} loss 2.5")
sys.exit(0 if attempt == 7 else attempt)
""",
        )
        self.muster("wait", "absurd", "--timeout", "120s")
        self.assertEqual(
            [attempt["bestStep"] for attempt in self.shown("absurd")["attempts"]],
            [10 * number + 1 for number in range(1, 8)],
        )

    def test_a_loss_that_is_no_number_and_a_step_that_is_long_ago(self):
        """`ps` showed "-" for a loss that was nan, and rate and time left of a training that hung."""
        with self.cluster.gate("nan") as gate:
            self.job(
                "nan",
                f"""
for step in (1, 2): print(f"step {{step}}/40 loss 2.5")
for step in (3, 4): print(f"step {{step}}/40 loss nan")
wait({gate.path!r})
""",
            )
            wait_until(lambda: self.events("nan", "loss-not-finite"), what="the event")
            self.assertEqual(
                self.events("nan", "loss-not-finite"),
                ["the loss is not a number (NaN or infinite) at step 3"],
            )
            wait_until(
                lambda: self.shown("nan").get("progress", {}).get("lossNotFinite"),
                what="the reading",
            )
            lines = self.muster("ps", "-o", "wide").out.splitlines()
            row = dict(
                zip(
                    lines[0].split(),
                    next(line.split() for line in lines if line.startswith("nan ")),
                )
            )
            self.assertEqual((row["STEP"], row["LOSS"]), ("4/40", "NaN"), lines)
            self.assertRegex(row["SINCE"], r"^\d", lines)
            why = self.muster("why", "nan").out
            self.assertRegex(why, r"the loss was not a number at step 3\n")
            self.assertRegex(why, r"step 4 of 40 was \d+m?s ago\n")
            self.assertRegex(
                self.muster("show", "nan").out, r"progress +step 4 of 40, loss NaN, \S+ ago\n"
            )
            gate.open()
            self.muster("wait", "nan")

    def test_the_last_loss_stays(self):
        """Ten minutes after its end a job's step was there, and its loss was not: it was known from heartbeats alone."""
        self.job("fell", 'for step in range(1, 5): print(f"step {step}/4 loss {3 - step / 4}")\n')
        self.job(
            "broken",
            'for step in (1, 2): print(f"step {step}/4 loss 2.5")\nfor step in (3, 4): print(f"step {step}/4 loss nan")\n',
        )
        for name in ("fell", "broken"):
            self.muster("wait", name)
        seen = {}
        for name, key in (("fell", "loss"), ("broken", "lossNotFinite")):
            wait_until(
                lambda name=name, key=key: self.shown(name)["progress"].get(key),
                what=f"the loss of {name}",
            )
            seen[name] = self.last_progress(name)
        self.assertEqual(seen["fell"][:2], (4, 2.0), seen)
        self.assertEqual([progress[2] for progress in seen.values()], [False, True], seen)
        for when, more in (("a restart", ()), ("archiving", ("--archive-after", "1s"))):
            self.daemon.stop()
            type(self).daemon = self.cluster.controller(*more)
            for name in seen if more else ():
                self.cluster.wait_event(
                    lambda event, name=name: event["type"] == "job-archived"
                    and event["jobName"] == name
                )
            with self.subTest(when):
                self.assertEqual({name: self.last_progress(name) for name in seen}, seen)
                rows = [line.split() for line in self.muster("ps", "-a").out.splitlines()]
                at = rows[0].index("LOSS") - len(rows[0])
                self.assertEqual(
                    {row[0]: row[at] for row in rows if row[0] in seen},
                    {"fell": "2.0000", "broken": "NaN"},
                    rows,
                )

    def last_progress(self, name):
        progress = self.shown(name)["progress"]
        return progress["step"], progress.get("loss"), progress["lossNotFinite"]


if __name__ == "__main__":
    unittest.main()
