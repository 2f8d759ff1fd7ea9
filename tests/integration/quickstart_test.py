#!/usr/bin/python3
"""deploy/quickstart, on the programs that are built: a training that survives a kill, and no success where nothing was killed or nothing broke.

Run:  /usr/bin/python3 tests/integration/quickstart_test.py [-v]
"""

import importlib.util
import os
import re
import subprocess
import sys
import unittest

import private

QUICKSTART = os.path.join(private.ROOT, "deploy/quickstart")
LONG = 400.0  # s; only a bound


class Quickstart(unittest.TestCase):
    def setUp(self):
        self.cluster = private.Private()  # only its directory and environment
        self.addCleanup(self.cluster.close)  # fails when a process is left
        del self.cluster.env["MUSTER_CONTROLLER"]

    def quickstart(self, bin_dir):
        env = {**self.cluster.env, "MUSTER_BIN": bin_dir, "MUSTER_LOCAL_DIR": self.cluster.path("local")}
        done = subprocess.run([QUICKSTART], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONG, check=False)
        return private.Done([QUICKSTART], done.returncode, done.stdout, done.stderr)

    def programs(self, muster):
        """The real programs, but for these lines of shell before the real `muster`."""
        path = self.cluster.path("bin")
        os.mkdir(path)
        for name in ("muster-controller", "muster-agent", "muster-worker"):
            os.symlink(os.path.join(private.BIN, name), os.path.join(path, name))
        self.cluster.write("bin/muster", f'#!/bin/sh\n{muster}\nexec {private.BIN}/muster "$@"\n', 0o755)
        return path

    def test_trains_through_a_kill(self):
        if importlib.util.find_spec("torch") is None:
            print("skipped: the sample training needs python3-torch", file=sys.stderr)
            self.skipTest("needs python3-torch")
        done = self.quickstart(private.BIN)
        self.assertEqual(done.code, 0, str(done))
        self.assertRegex(done.err, r"== kill -9 \d+: rank [0-3] of four")
        self.assertRegex(done.out, r"attempt 1 broke: rank [0-3] on node 'n[01]' was killed by signal 9")
        self.assertRegex(done.out, r"placed, from the checkpoint of step \d+")
        self.assertTrue(re.search(r"^tiny-gpt succeeded after .*, 1 restart$", done.out, re.MULTILINE), str(done))
        self.assertIn("== done", done.err)

    def test_says_that_nothing_was_killed(self):
        """A job without a checkpoint is over before there is anybody to kill: that was a success once."""
        spec = self.cluster.spec('name: short\nengine: command\nlaunch: {run: "true"}\nresources: {devices: 1, type: cpu}\n')
        done = self.quickstart(self.programs(f'[ "$1" != run ] || exec {private.BIN}/muster run -d {spec}'))
        self.assertEqual(done.code, 1, str(done))
        self.assertIn("quickstart failed: the training ended well, but no rank was killed", done.err)
        self.assertNotIn("== done", done.err)

    def test_says_that_nothing_broke(self):
        if not os.access(private.STUB, os.X_OK):
            self.skipTest("stub_trainer is not built")
        spec = self.cluster.spec(f"name: stub\nengine: torch\nlaunch:\n  script: {private.STUB}\n  args: --steps 200 --step-ms 10 --save ${{save.dir}} --load ${{resume.dir}} --save-interval 20\n"
                                 "resources: {nodes: 2, devices: 2, type: cpu}\n")
        done = self.quickstart(self.programs(f'[ "$1" != run ] || exec {private.BIN}/muster run -d {spec}\n[ "$1" != events ] || exit 0'))
        self.assertEqual(done.code, 1, str(done))
        self.assertRegex(done.err, r"== kill -9 \d+")
        self.assertIn("quickstart failed: a rank was killed, but no attempt broke", done.err)


if __name__ == "__main__":
    unittest.main()
