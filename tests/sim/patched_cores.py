#!/usr/bin/python3
"""Copies the cores' sources to OUT and applies tests/sim/patches/*.patch to the copy.

    tests/sim/patched_cores.py SOURCE OUT PATCH...

Each patch leaves one rule out, where sim::broken() says that this variant is played.  A patch that does not
apply any more is an error: the rule has moved, and its patch has to follow it.
"""

import pathlib
import shutil
import subprocess
import sys


def main():
    source, out, patches = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    shutil.rmtree(out, ignore_errors=True)
    for core in ("controller/core", "agent/core"):
        for file in (source / core).rglob("*.cc"):
            to = out / file.relative_to(source)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, to)
    for patch in patches:
        done = subprocess.run(
            ["patch", "-p1", "--batch", "--fuzz=0", "--no-backup-if-mismatch", "-d", str(out), "-i", patch],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            sys.exit(f"{patch} does not apply to {source}:\n{done.stdout}{done.stderr}")


main()
