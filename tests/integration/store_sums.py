"""The lists of SHA-256 that muster leaves beside what it has uploaded, read by sha256sum."""

import os
import subprocess


def lists_below(top):
    """Their paths, sorted: .muster/*.sha256 and .muster/*/*.sha256 of any directory."""
    found = []
    for folder, _, names in os.walk(top):
        if f"{os.sep}.muster" in folder:
            found += [os.path.join(folder, name) for name in names if name.endswith(".sha256")]
    return sorted(found)


def check_sums(test, top):
    """Each list is true of the files below `top`. How many there are."""
    lists = lists_below(top)
    for one in lists:
        names_below = one[: one.index(f"{os.sep}.muster{os.sep}")]
        done = subprocess.run(["sha256sum", "--check", "--strict", "--quiet", one], cwd=names_below, check=False, capture_output=True, text=True)
        test.assertEqual((done.returncode, done.stdout[:2000] + done.stderr[:2000]), (0, ""), one)
    return len(lists)
