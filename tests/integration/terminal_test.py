#!/usr/bin/python3
"""What a person sees while a job runs: `muster run`, `watch` and `logs -f` on a real pty (screen.py keeps its rows), in a pipe, and into a file.

Run:  /usr/bin/python3 tests/integration/terminal_test.py [-v] [CASE]
"""

import json
import os
import re
import signal
import subprocess
import unittest

from cluster import DEADLINE, STUB, Cluster, wait_until
from screen import Screen

STEP = 'printf " iteration %8d/%8d | lm loss: %E |\\n"'
GLYPHS = re.compile("[░▏▎▍▌▋▊▉█]")


def job(name, run, more="resources: {devices: 1, type: cpu}"):
    return f"name: {name}\nengine: command\nobserve: {{progress: auto}}\nlaunch: {{run: [bash, -c, {json.dumps(run)}]}}\n{more}\n"


class Terminal(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        try:
            cls.cluster.controller()
            cls.cluster.agent("n0")
            cls.cluster.agent("n1")
        except BaseException:
            cls.cluster.close()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def screen(self, *args, env=None, **more):
        return Screen(
            self.cluster.command(*args),
            {**self.cluster.env, **(env or {})},
            cwd=self.cluster.dir,
            patience=DEADLINE,
            **more,
        )

    # ---- where the lines go

    def test_the_programs_lines_stream_above_the_live_view(self):
        """`muster run` on a terminal showed its own events and nothing of what the program printed, but for lines that look like errors."""
        with self.cluster.gate("above") as gate:
            run = f'echo "hello from rank ${{rank}}"; echo "Error: of rank ${{rank}}"; echo "错误：第 ${{rank}} 卡"; [ ${{rank}} = 1 ] || {STEP} 1 40 3.5 2 40 2.5; read x < {gate.path}; echo "goodbye from rank ${{rank}}"'
            spec = self.cluster.spec(
                job("above", run, "resources: {nodes: 2, devices: 1, type: cpu}")
            )
            with self.screen("run", spec) as screen:
                for rank in (0, 1):
                    screen.wait_for(f"[rank {rank}] 错误")
                screen.wait_for("2/40")  # the view, drawn below
                rows = screen.rows
                gate.open(2)
                self.assertEqual(screen.wait(), 0, screen)
        printed = [row for row in rows if row.startswith("[rank ")]
        self.assertIn("[rank 0] hello from rank 0", printed)
        self.assertNotIn("[rank 1] hello from rank 1", printed, "one rank speaks for the job")
        for rank in (0, 1):
            self.assertIn(f"[rank {rank}] Error: of rank {rank}", printed)
            self.assertIn(f"[rank {rank}] 错误：第 {rank} 卡", printed)
        self.assertGreater(
            next(i for i, row in enumerate(rows) if GLYPHS.search(row)),
            rows.index("[rank 0] hello from rank 0"),
            "the block is below",
        )
        history = screen.history()
        self.assertIn("[rank 0] goodbye from rank 0", history)
        self.assertTrue(any(line.startswith("above succeeded after ") for line in history), screen)
        self.assertTrue(
            any(
                re.match(r"\d+ lines? of other ranks not shown: muster logs \S+ --rank all", line)
                for line in history
            ),
            screen,
        )

    def test_into_a_file(self):
        """`muster run x > file` on a terminal left the file empty: where lines go was judged by stderr. The view stays on the terminal."""
        path = self.cluster.path("run.log")
        with self.cluster.gate("into") as gate:
            spec = self.cluster.spec(
                job(
                    "into",
                    f"echo hello; {STEP} 1 40 3.5 2 40 2.5; read x < {gate.path}; echo goodbye",
                )
            )
            with open(path, "wb") as file, self.screen("run", spec, stdout=file) as screen:
                screen.wait_for("2/40")
                self.assertFalse(
                    any("hello" in row or "job-submitted" in row for row in screen.rows), screen
                )
                gate.open()
                self.assertEqual(screen.wait(), 0, screen)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("\x1b", text)
        for line in ("[rank 0] hello", "[rank 0] goodbye"):
            self.assertIn(line, text.splitlines())
        self.assertIn("job-submitted", text)
        self.assertRegex(text.splitlines()[-1], "^into succeeded after ")
        self.assertRegex(
            "\n".join(screen.rows),
            r"^into  succeeded  .*\n.*2/40",
            "how it ended stays on the terminal",
        )

    def test_into_a_pipe_on_a_terminal(self):
        """ "| tee run.log": the pipe's other end writes to the same terminal, and would write into a live view."""
        spec = self.cluster.spec(job("teed", f"echo hello; {STEP} 1 2 3.5 2 2 2.5"))
        command = " ".join(self.cluster.command("run", spec)) + " | cat"
        with Screen(
            ["bash", "-o", "pipefail", "-c", command],
            self.cluster.env,
            cwd=self.cluster.dir,
            patience=DEADLINE,
        ) as screen:
            self.assertEqual(screen.wait(), 0, screen)
        self.assertNotIn(b"\x1b", screen.bytes)
        self.assertIn("[rank 0] hello", screen.history())

    def test_nothing_moves_the_cursor_of_a_dumb_terminal(self):
        spec = self.cluster.spec(job("dumb", "echo hello"))
        with self.screen("run", spec, env={"TERM_HERE": "dumb"}) as screen:
            self.assertEqual(screen.wait(), 0, screen)
        self.assertNotIn(b"\x1b", screen.bytes)
        self.assertIn("[rank 0] hello", screen.history())

    def test_quiet(self):
        with self.screen("run", "-q", self.cluster.spec(job("quiet", "echo hello"))) as screen:
            self.assertEqual(screen.wait(), 0, screen)
        self.assertRegex("\n".join(screen.history()), r"\Aquiet succeeded after \S+\n*\Z")

    def test_stages_of_a_chain(self):
        """follow_chain had the same judgement: banners and the last line of `muster run chain.yaml > file` were not in the file."""
        stages = "".join(
            f"  {name}:\n    {after}engine: command\n    launch: {{run: [echo, hello {name}]}}\n    resources: {{devices: 1, type: cpu}}\n"
            for name, after in (("one", ""), ("two", "after: one\n    "))
        )
        path = self.cluster.path("chain.log")
        with open(path, "wb") as file, self.screen(
            "run", self.cluster.spec("name: links\nstages:\n" + stages), stdout=file
        ) as screen:
            self.assertEqual(screen.wait(), 0, screen)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertRegex(
            text,
            r"(?s)==== stage one \(1 of 2\).*\[rank 0\] hello one.*==== stage two \(2 of 2\).*\[rank 0\] hello two.*\nchain links succeeded: one succeeded, two succeeded\n\Z",
        )

    def test_a_long_reason_is_printed_once(self):
        """A program that is not there: six times, its whole PATH each time."""
        env = {"PATH": os.environ["PATH"]}
        done = self.cluster.muster(
            "run",
            self.cluster.spec(
                job("gone", "true", "resources: {nodes: 2, devices: 1, type: cpu}").replace(
                    "bash, -c", "no-such-program"
                )
            ),
            env=env,
            code=1,
        )
        self.assertEqual(done.out.count("there is no 'no-such-program'"), 1, done)
        self.assertIn(
            "job failed: as above; a failure before the program started is not tried again",
            done.out,
        )
        self.assertRegex(done.out, r"(?m)^launch: as above$")
        shown = self.cluster.muster("show", "gone", code=0).out
        self.assertEqual(shown.count("there is no 'no-such-program'"), 1, shown)
        why = self.cluster.muster("why", "gone", code=0).out
        self.assertEqual(why.count("there is no 'no-such-program'"), 1, why)
        self.assertRegex(
            why, r"(?m)^  attempt 1, \S+ ago; `muster events \S+` has what came before$"
        )

    # ---- the live view

    def restarted(self, name, columns):
        """A job with two checkpoints that one kill breaks; the next attempt waits before its first step. What stood there: while it waits, and all in the end."""
        with self.cluster.gate(name) as gate, self.cluster.gate(name + "-again") as again:
            run = (
                f"if [ ${{attempt}} = 1 ]; then {STEP} 21 40 3.5 22 40 2.5; read x < {gate.path}; kill -9 $BASHPID; fi; "
                f"read x < {again.path}; {STEP} 21 40 2.2 40 40 1.5"
            )
            spec = self.cluster.spec(job(name, run))
            with self.screen("run", spec, columns=columns) as screen:
                screen.wait_for("22/40")
                screen.wait_for("last step ")
                first = screen.rows
                gate.open()
                whole = lambda rows: [
                    row[:4]
                    for row in rows
                    if row.startswith(("restarting, from the beginning, ", "loss"))
                ] == [
                    "rest",
                    "loss",
                ]  # noqa: E731
                screen.wait_for_rows(whole, "the view of a restart, both rows of it")
                waiting = screen.rows
                again.open()
                self.assertEqual(screen.wait(), 0, screen)
        return first, waiting, screen

    def block_of(self, rows):
        """The rows of the view: those behind the last empty one."""
        return rows[len(rows) - rows[::-1].index("") :]

    def test_restart(self):
        """While nothing ran, the view went on to show the broken attempt's step, rate and time left."""
        first, waiting, screen = self.restarted("again", 80)
        self.assertRegex(
            self.block_of(first)[0], r"^again  (launching|running)  attempt 1  1 rank on n[01]  \d+s$"
        )
        self.assertRegex(self.block_of(first)[1], r"^\S+  22/40  55%")
        self.assertRegex(self.block_of(first)[3], r"^last step \d+s ago$")
        block = self.block_of(waiting)
        self.assertRegex(
            block[0], r"^again  (launching|running)  attempt 2  1 restart  1 rank on n[01]  \d+s$"
        )
        self.assertRegex(block[1], r"^restarting, from the beginning, \d+\.\ds$")
        self.assertRegex(block[2], r"^loss  \S+  from [23]\.5000$")
        self.assertNotRegex("\n".join(block), r"22/40|steps/s|ETA|last step")
        self.check_scrollback(screen)

    def test_narrow(self):
        """At 40 columns a row lost its end: nodes, rate, time left."""
        first, waiting, screen = self.restarted("narrow", 40)
        block = self.block_of(first)
        self.assertRegex(
            "  ".join(block[:2]), r"^narrow  (launching|running)  attempt 1  1 rank on n[01]  \d+s$"
        )
        self.assertRegex(block[2], r"^\S{20,}  22/40  55%$")
        self.assertNotIn("…", "\n".join(block + self.block_of(waiting)))
        self.assertRegex(
            "\n".join(self.block_of(waiting)), r"(?m)^restarting, from the beginning, \d+\.\ds$"
        )
        self.check_scrollback(screen)

    def check_scrollback(self, screen):
        """Of a view that is redrawn nothing stays: every line is an event, a rank's, or of the closing summary."""
        history = screen.history()
        summary = next(i for i, line in enumerate(history) if line.startswith("attempt 1 broke: "))
        for line in history[:summary]:
            self.assertRegex(line, r"^(|\d\d:\d\d:\d\d  \S.*| {10}\S.*|\[rank 0\] .*|\w+: .*)$", screen)
        self.assertFalse(any(GLYPHS.search(line) for line in history[:summary]), screen)
        self.assertRegex(
            "\n".join(history),
            r"\d\d:\d\d:\d\d  rank 0 on node 'n[01]' was\s+killed\s+by\s+signal\s+9\s+\(SIGKILL\)",
        )

    def test_others_write_to_the_terminal(self):
        """A script's line in the middle of the view ("== kill -9 123") was rubbed out by the next drawing, which left two rows of the view behind."""
        with self.cluster.gate("others") as gate:
            spec = self.cluster.spec(
                job("others", f"{STEP} 1 40 3.5 2 40 2.5; read x < {gate.path}; echo goodbye")
            )
            with self.screen("run", spec) as screen:
                screen.wait_for("2/40")
                screen.write("== kill -9 123: rank 1 of four\n")
                screen.wait_for("== kill")
                screen.resize(40)
                gate.open()
                self.assertEqual(screen.wait(), 0, screen)
        history = screen.history()
        self.assertIn("== kill -9 123: rank 1 of four", history)
        self.assertIn("[rank 0] goodbye", history)
        end = history.index("[rank 0] goodbye")
        self.assertFalse(
            any(
                GLYPHS.search(line) or line.startswith("others  running") for line in history[:end]
            ),
            screen,
        )

    def test_no_color_takes_the_colour_alone(self):
        with self.cluster.gate("grey") as gate:
            spec = self.cluster.spec(
                job(
                    "grey",
                    f"printf '\\033[31mred\\033[0m\\n'; {STEP} 1 40 3.5 2 40 2.5; read x < {gate.path}",
                )
            )
            with self.screen("run", spec, env={"NO_COLOR": "1"}) as screen:
                screen.wait_for("2/40")
                gate.open()
                self.assertEqual(screen.wait(), 0, screen)
        self.assertNotRegex(screen.bytes, rb"\x1b\[[0-9;]*m")
        self.assertIn("[rank 0] red", screen.history())

    def test_checkpoints_stand_in_the_view(self):
        """Each was a line of its own: of a long training hundreds, between which everything else was lost."""
        if not os.access(STUB, os.X_OK):
            self.skipTest("stub_trainer is not built")
        spec = self.cluster.spec(
            f"name: saves\nengine: torch\nlaunch:\n  script: {STUB}\n  args: --steps 60 --step-ms 20 --save ${{save.dir}} --load ${{resume.dir}} --save-interval 20\n"
            "resources: {devices: 1, type: cpu}\n"
        )
        with self.screen("run", spec) as screen:
            screen.wait_for("checkpoint of step 20, ")
            self.assertEqual(screen.wait(), 0, screen)
        self.assertFalse(any("is complete: " in line for line in screen.history()), screen)
        self.assertIn(
            "checkpoint-completed",
            self.cluster.muster("watch", "saves", code=0).out,
            "a pipe has the lines",
        )

    def wait_for_log(self, id, text):
        """Until the controller has a line of the current attempt. Events do not tell it: they overtake lines."""
        wait_until(
            lambda: text in self.cluster.output("logs", id, "--tail", 1),
            what=f"{text!r} in the log of {id}",
        )

    def test_watch_starts_with_the_history(self):
        """`muster watch` of a job that runs began with an empty curve, and (now that a rank's lines stream) would begin with all that it ever wrote."""
        with self.cluster.gate("old") as gate:
            steps = " ".join(f"{step} 100 {9 - step / 10}" for step in range(1, 51))
            run = f"for i in $(seq 1 300); do echo line $i; done; {STEP} {steps}; read x < {gate.path}; echo news"
            id = self.cluster.submit(job("old", run))
            self.wait_for_log(id, "      50/")
            with self.screen("watch", "old") as screen:
                screen.wait_for("iteration       50/")
                screen.wait_for_rows(
                    lambda rows: "" in rows
                    and any(
                        re.search(r"loss 4\.0000 .*from 8\.9000", row)
                        for row in self.block_of(rows)
                    ),
                    "the whole curve",
                )
                block = self.block_of(screen.rows)
                gate.open()
                self.assertEqual(screen.wait(), 0, screen)
        self.assertRegex("\n".join(block), r"loss 4\.0000  \S{20,}  from 8\.9000")
        history = screen.history()
        self.assertTrue(any("placed: 1 rank on n" in line for line in history), screen)
        self.assertNotIn("[rank 0] line 300", history)
        self.assertEqual(sum("iteration" in line for line in history), 20, screen)
        self.assertIn("[rank 0] news", history)

    def test_watch_of_a_second_attempt(self):
        """Events and rank lines came from two streams in any order: "job submitted" in row 48. And a pipe got all that every attempt ever wrote."""
        with self.cluster.gate("second") as gate:
            lines = f"for i in $(seq 1 300); do echo attempt ${{attempt}} line $i; done; {STEP} 1 40 3.5"
            run = f"{lines}; [ ${{attempt}} = 2 ] || kill -9 $BASHPID; read x < {gate.path}; echo news"
            id = self.cluster.submit(job("second", run))
            self.cluster.wait_event(
                lambda event: event["type"] == "attempt-placed" and event["attempt"] == 2, id
            )
            self.wait_for_log(id, "iteration")
            piped = [self.cluster.popen("watch", id) for _ in range(4)]
            begun = []
            for one in piped:
                begun.append([])
                for line in iter(one.stdout.readline, ""):
                    begun[-1].append(line.rstrip("\n"))
                    if "iteration" in line:
                        break
            with self.screen("watch", id) as screen:
                screen.wait_for("iteration        1/")
                gate.open()
                self.assertEqual(screen.wait(), 0, screen)
            ways = {"a terminal": screen.history()}
            for number, one in enumerate(piped):
                with one:
                    ways[f"pipe {number}"] = begun[number] + one.stdout.read().splitlines()
        for way, rows in ways.items():
            with self.subTest(way):

                def row(text, rows=rows):
                    return next((i for i, row in enumerate(rows) if text in row), -1)

                positions = [
                    row(text)
                    for text in ("job 'second' submitted", "attempt 1 placed", "attempt 2 placed")
                ]
                self.assertNotIn(-1, positions, rows)
                self.assertEqual(positions, sorted(positions))
                self.assertLess(positions[-1], row("[rank 0] "), rows)
                self.assertEqual([line for line in rows if "attempt 1 line" in line], [])
                before = [
                    line
                    for line in rows
                    if line.startswith("[rank 0] ") and not line.endswith("news")
                ]
                self.assertEqual(
                    before[:-1], [f"[rank 0] attempt 2 line {i}" for i in range(282, 301)], rows
                )
                self.assertIn("[rank 0] news", rows)

    def test_ctrl_c_detaches(self):
        with self.cluster.gate("left") as gate:
            spec = self.cluster.spec(job("left", f"{STEP} 1 40 3.5 2 40 2.5; read x < {gate.path}"))
            with self.screen("run", spec) as screen:
                screen.wait_for("2/40")
                screen.process.send_signal(signal.SIGINT)
                self.assertEqual(screen.wait(), 0, screen)
            self.assertFalse(any(GLYPHS.search(row) for row in screen.rows), screen)
            self.assertRegex(
                screen.rows[-1] if len(screen.rows[-1]) > 60 else "".join(screen.rows[-2:]),
                "detached; job 'left' goes on",
            )
            gate.open()
            self.cluster.muster("wait", "left", code=0)

    # ---- the programs' own colours and bars

    BAR = "printf 'begin\\n'; for i in 10 20 30; do printf '\\r%s%%|##  |' $i; done; printf '\\r\\033[K100%%|####|\\n\\033[1;31mwarm\\033[0m and \\033]0;title\\007cold\\n'"

    def test_logs_keep_colours_and_nothing_else(self):
        """Colours came out as "?[31m"."""
        id = self.cluster.submit(job("tinted", self.BAR))
        self.cluster.muster("wait", id, code=0)
        for args in (("logs", id), ("logs", id, "--rank", "0"), ("watch", id)):
            with self.subTest(args), self.screen(*args) as screen:
                self.assertEqual(screen.wait(), 0, screen)
                self.assertEqual(screen.paint_of("warm"), "\x1b[1;31m", screen)
                self.assertEqual(screen.paint_of("cold"), "", screen)
                self.assertTrue(
                    any(line.endswith("warm and ?]0;title?cold") for line in screen.history()),
                    screen,
                )
        done = self.cluster.muster("watch", id, code=0)
        self.assertIn("[rank 0] warm and ?]0;title?cold", done.out.splitlines())
        piped = subprocess.run(
            self.cluster.command("logs", id, "--rank", "0"),
            env=self.cluster.env,
            capture_output=True,
            timeout=DEADLINE,
            check=True,
        ).stdout
        self.assertIn(
            b"30%|##  |\r\x1b[K100%|####|\n\x1b[1;31mwarm\x1b[0m", piped, "a pipe gets the bytes"
        )

    def test_bars_redraw_where_they_are_alone(self):
        """`logs -f --rank 0` showed nothing of a progress bar until its line ended, and then all its states in one line."""
        with self.cluster.gate("bars") as gate:
            run = f"printf 'begin\\n\\r 10%%|#   |'; read x < {gate.path}; printf '\\r 20%%|##  |'; read x < {gate.path}; printf '\\r100%%|####|\\nend\\n'"
            id = self.cluster.submit(job("bars", run))
            with self.screen("logs", "-f", "--rank", "0", id) as alone, self.screen(
                "logs", "-f", id
            ) as labelled:
                alone.wait_for(" 10%|#   |")
                gate.open()
                alone.wait_for(" 20%|##  |")
                self.assertEqual(alone.rows, ["begin", " 20%|##  |"])
                gate.open()
                self.assertEqual((alone.wait(), labelled.wait()), (0, 0))
        self.assertEqual(alone.rows, ["begin", "100%|####|", "end"], alone)
        self.assertEqual(
            [labelled.rows[0], *labelled.rows[-2:]],
            ["[rank 0] begin", "[rank 0] 100%|####|", "[rank 0] end"],
            labelled,
        )
        for row in labelled.rows:
            self.assertRegex(
                row, r"^\[rank 0\] (begin| 10%\|#   \|| 20%\|##  \||100%\|####\||end)$", labelled
            )

    def test_bars_are_whole_lines_above_the_view(self):
        run = "printf 'begin\\n'; for i in $(seq 1 200); do printf '\\r%s/200' $i; done; printf '\\rdone\\n'; echo end"
        with self.screen("run", self.cluster.spec(job("many-states", run))) as screen:
            self.assertEqual(screen.wait(), 0, screen)
        printed = [line for line in screen.history() if line.startswith("[rank 0]")]
        self.assertEqual(
            [printed[0], *printed[-2:]], ["[rank 0] begin", "[rank 0] done", "[rank 0] end"], screen
        )
        self.assertLess(len(printed), 20, "one state a second")
        done = subprocess.run(
            self.cluster.command("run", self.cluster.spec(job("piped-states", run))),
            env=self.cluster.env,
            capture_output=True,
            timeout=DEADLINE,
            cwd=self.cluster.dir,
        )
        self.assertNotIn(b"\r", done.stdout)
        self.assertIn(b"[rank 0] done\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
