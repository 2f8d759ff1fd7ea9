#!/usr/bin/python3
"""deploy/quickstart, on the programs that are built: a training that survives a kill, and no success where nothing was killed or nothing broke.

Run:  /usr/bin/python3 tests/integration/quickstart_test.py [-v]
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import unittest

from cluster import BIN, ROOT, STUB, Cluster, Done
from screen import Screen

QUICKSTART = os.path.join(ROOT, "deploy/quickstart")
LONG = 400.0  # s; only a bound


class Quickstart(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()  # only its directory and environment
        self.addCleanup(self.cluster.close)  # fails when a process is left
        del self.cluster.env["MUSTER_CONTROLLER"]

    def quickstart(self, bin_dir):
        env = {
            **self.cluster.env,
            "MUSTER_BIN": bin_dir,
            "MUSTER_LOCAL_DIR": self.cluster.path("local"),
        }
        done = subprocess.run(
            [QUICKSTART],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
        return Done([QUICKSTART], done.returncode, done.stdout, done.stderr)

    def programs(self, muster):
        """The real programs, but for these lines of shell before the real `muster`."""
        path = self.cluster.path("bin")
        os.mkdir(path)
        for name in ("muster-controller", "muster-agent", "muster-worker"):
            os.symlink(os.path.join(BIN, name), os.path.join(path, name))
        self.cluster.write("bin/muster", f'#!/bin/sh\n{muster}\nexec {BIN}/muster "$@"\n', 0o755)
        return path

    def test_trains_through_a_kill(self):
        if importlib.util.find_spec("torch") is None:
            print("skipped: the sample training needs python3-torch", file=sys.stderr)
            self.skipTest("needs python3-torch")
        done = self.quickstart(BIN)
        self.assertEqual(done.code, 0, str(done))
        self.assertRegex(done.err, r"== kill -9 \d+: rank [0-3] of four")
        self.assertRegex(
            done.out, r"attempt 1 broke: rank [0-3] on node 'n[01]' was killed by signal 9"
        )
        self.assertRegex(done.out, r"placed, from the checkpoint of step \d+")
        self.assertTrue(
            re.search(r"^tiny-gpt succeeded after .*, 1 restart$", done.out, re.MULTILINE),
            str(done),
        )
        self.assertIn("== done", done.err)
        self.check_hint(done)

    def check_hint(self, done):
        """The last lines told of `muster` and of `muster ps`, for which nothing was left to talk to."""
        commands = re.search(r"== done\. To go on:\n((?:   .*\n)+)", done.err)
        self.assertTrue(commands, str(done))
        lines = [line for line in commands[1].splitlines() if "my-job.yaml" not in line]
        self.assertEqual(len(lines), 4, lines)
        env = {
            name: value
            for name, value in self.cluster.env.items()
            if not name.startswith("MUSTER_")
        }
        result = subprocess.run(
            ["bash", "-e", "-c", "\n".join(lines)],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
        self.assertEqual(result.returncode, 0, (lines, result.stdout, result.stderr))
        self.assertIn("tiny-gpt", result.stdout)

    def stub_job(self, steps, step_ms):
        """Its first attempt lasts until it is killed: one of fixed length had ended before that on a busy machine."""
        script = self.cluster.write(
            "stub.sh",
            f'#!/bin/sh\n[ "$MUSTER_ATTEMPT" != 1 ] && steps={steps} || steps=1000000\nexec {STUB} --steps $steps "$@"\n',
            0o755,
        )
        return self.cluster.spec(
            f"name: stub\nengine: torch\nlaunch:\n  script: {script}\n"
            f"  args: --step-ms {step_ms} --save ${{save.dir}} --load ${{resume.dir}} --save-interval 20\n"
            "resources: {nodes: 2, devices: 2, type: cpu}\n"
        )

    def test_the_kill_stays_on_the_terminal(self):
        """The line "== kill -9" was rubbed out by the live view, of which two rows stayed for it."""
        if not os.access(STUB, os.X_OK):
            self.skipTest("stub_trainer is not built")
        spec = self.stub_job(steps=120, step_ms=25)
        env = {
            **self.cluster.env,
            "MUSTER_BIN": self.programs(f'[ "$1" != run ] || exec {BIN}/muster run -d {spec}'),
            "MUSTER_LOCAL_DIR": self.cluster.path("local"),
        }
        for columns in (80, 40):
            with self.subTest(columns), Screen(
                [QUICKSTART], env, columns=columns, patience=LONG
            ) as screen:
                self.assertEqual(screen.wait(), 0, screen)
                history = screen.history()
                kill = next(
                    (
                        i
                        for i, line in enumerate(history)
                        if re.match(r"== kill -9 \d+: rank [0-3] of four$", line)
                    ),
                    None,
                )
                self.assertIsNotNone(kill, screen)
                summary = next(
                    i for i, line in enumerate(history) if line.startswith("attempt 1 broke: ")
                )
                self.assertLess(kill, summary)
                self.assertFalse(
                    any(re.search("[░▏▎▍▌▋▊▉█]|steps/s", line) for line in history[:summary]),
                    screen,
                )

    def build_of(self, edges):
        """A copy of the script whose build is ninja's with so many edges; its other programs do nothing."""
        for name in ("deploy", "build/release/bin", "tools"):
            os.makedirs(self.cluster.path("tree", name), exist_ok=True)
        shutil.copy(QUICKSTART, self.cluster.path("tree/deploy/quickstart"))
        self.cluster.write("tree/build/release/bin/muster", "#!/bin/sh\nexit 0\n", 0o755)
        outs = [f"out-{i}" for i in range(edges)]
        rules = "rule make\n  command = touch $out\n  description = Building $out\n" + "".join(
            f"build {out}: make\n" for out in outs
        )
        self.cluster.write("tree/build/release/build.ninja", rules)
        self.cluster.write(
            "tree/tools/cmake",
            f"#!/bin/sh\nwhile [ $# -gt 0 ] && [ \"$1\" != -- ]; do shift; done\n[ $# = 0 ] || shift\nexec ninja -C {self.cluster.path('tree/build/release')} \"$@\"\n",
            0o755,
        )
        env = {
            **self.cluster.env,
            "MUSTER_NO_INSTALL": "1",
            "MUSTER_LOCAL_DIR": self.cluster.path("local"),
            "PATH": self.cluster.path("tree/tools") + ":" + os.environ["PATH"],
        }
        return [self.cluster.path("tree/deploy/quickstart"), "--no-kill"], env

    def test_the_build_shows_how_far_it_is(self):
        """Minutes without a word; and where nothing was to be built, "ninja: no work to do."."""
        if shutil.which("ninja") is None:
            self.skipTest("needs ninja")
        command, env = self.build_of(40)
        done = subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            re.findall(r"^   (\d+) of 40, \d+ s$", done.stderr, re.MULTILINE),
            [str(tenth * 4) for tenth in range(1, 11)],
            done.stderr,
        )
        again = subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
        self.assertEqual(
            (again.returncode, "ninja" in again.stdout + again.stderr, " of " in again.stderr),
            (0, False, False),
            again.stderr,
        )
        self.build_of(45)
        with Screen(command, env, columns=40, patience=LONG) as screen:
            self.assertEqual(screen.wait(), 0, screen)
        self.assertIn(b" of 5, 0 s: Building out-4", screen.bytes)
        self.assertFalse(
            any("Building" in line or "ninja" in line for line in screen.history()), screen
        )

    def test_a_build_that_fails_says_why(self):
        if shutil.which("ninja") is None:
            self.skipTest("needs ninja")
        command, env = self.build_of(3)
        with open(
            self.cluster.path("tree/build/release/build.ninja"), "a", encoding="utf-8"
        ) as file:
            file.write("rule break\n  command = echo no such header; false\nbuild bad: break\n")
        done = subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no such header\n", done.stderr)
        self.assertNotIn("== done", done.stderr)

    def test_says_that_nothing_was_killed(self):
        """A job without a checkpoint is over before there is anybody to kill: that was a success once."""
        spec = self.cluster.spec(
            'name: short\nengine: command\nlaunch: {run: "true"}\nresources: {devices: 1, type: cpu}\n'
        )
        done = self.quickstart(self.programs(f'[ "$1" != run ] || exec {BIN}/muster run -d {spec}'))
        self.assertEqual(done.code, 1, str(done))
        self.assertIn(
            "quickstart failed: the training ended well, but no rank was killed", done.err
        )
        self.assertNotIn("== done", done.err)

    def test_says_that_nothing_broke(self):
        if not os.access(STUB, os.X_OK):
            self.skipTest("stub_trainer is not built")
        spec = self.stub_job(steps=200, step_ms=10)
        done = self.quickstart(
            self.programs(
                f'[ "$1" != run ] || exec {BIN}/muster run -d {spec}\n[ "$1" != events ] || exit 0'
            )
        )
        self.assertEqual(done.code, 1, str(done))
        self.assertRegex(done.err, r"== kill -9 \d+")
        self.assertIn("quickstart failed: a rank was killed, but no attempt broke", done.err)


if __name__ == "__main__":
    unittest.main()
