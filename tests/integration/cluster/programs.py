"""The binaries under test, and how long a test waits for them."""

import os

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
BIN = os.path.abspath(os.environ.get("MUSTER_BIN") or os.path.join(ROOT, "build/release/bin"))
STUB = os.path.join(BIN, "stub_trainer")
# Programs under a sanitizer take several times as long to start. Their jobs are as much longer, so that every kill falls into them.
SLOW = int(os.environ.get("MUSTER_TEST_SLOW") or 1)
DEADLINE = 120.0 * SLOW  # s; only a bound, never a measure


def binary(name):
    path = os.path.join(BIN, name)
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(
            f"'{path}' is not there: build it, or name its folder by MUSTER_BIN"
        )
    return path
