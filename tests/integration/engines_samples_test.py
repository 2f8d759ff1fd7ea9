#!/usr/bin/python3
"""Every spec below deploy/samples is sound, says nothing that only its author's machine has, and stands in the table of README.md.
That they run: samples_run_test.py.

Run:  /usr/bin/python3 -B tests/integration/engines_samples_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import ROOT, binary  # noqa: E402

SAMPLES = os.path.join(ROOT, "deploy/samples")


class Samples(unittest.TestCase):
    def muster(self, *args):
        with tempfile.TemporaryDirectory(prefix="muster-samples-") as empty:
            env = {"PATH": os.environ["PATH"], "HOME": empty, "MUSTER_LOCAL_DIR": empty}
            command = [binary("muster"), *args]
            done = subprocess.run(
                command,
                env=env,
                cwd=empty,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        return done.returncode, done.stdout + done.stderr

    def test_every_sample_is_sound(self):
        found = sorted(glob.glob(os.path.join(SAMPLES, "*", "*.yaml")))
        self.assertGreaterEqual(len(found), 16)
        for path in found:
            with self.subTest(os.path.relpath(path, SAMPLES)):
                self.assertEqual(
                    self.muster("validate", path)[0], 0, self.muster("validate", path)[1]
                )

    def test_the_table_names_every_sample(self):
        with open(os.path.join(SAMPLES, "README.md"), encoding="utf-8") as file:
            named = re.findall(r"\]\(([^)]*\.yaml)\)", file.read())
        found = [
            os.path.relpath(path, SAMPLES)
            for path in glob.glob(os.path.join(SAMPLES, "*", "*.yaml"))
        ]
        self.assertEqual(sorted(named), sorted(found))

    def test_what_a_user_changes_from_the_command_line(self):
        for path in glob.glob(os.path.join(SAMPLES, "[lm]*", "*.yaml")):
            with self.subTest(os.path.relpath(path, SAMPLES)):
                self.assertEqual(
                    self.muster(
                        "validate", path, "--set", "code.from=/data/code", "--set", "name=mine"
                    )[0],
                    0,
                )

    def test_sizes_that_the_devices_do_not_divide_into(self):
        code, text = self.muster(
            "validate",
            os.path.join(SAMPLES, "megatron-gpt/one-node.yaml"),
            "--set",
            "resources.devices=7",
        )
        self.assertEqual(code, 64)
        self.assertIn("tensor 2", text)


if __name__ == "__main__":
    unittest.main()
