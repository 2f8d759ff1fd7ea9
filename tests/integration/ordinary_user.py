"""Runs a test file again as an ordinary user whom no other program knows: without root's rights, and without a way to get them back.

The user has a home, a name (where this machine lets root make a namespace of mounts), and copies of the programs and of the tests, because a checkout may be
somewhere that only root can read."""

import os
import shutil
import subprocess
import sys
import tempfile

from cluster import BIN
from cluster.programs import ROOT

NAME = "musterer"
HOME = "MUSTER_TEST_HOME"  # set: this process is the ordinary user's
PROGRAMS = ("muster", "muster-agent", "muster-controller", "muster-worker")
# Variables that the user gets.
KEPT = ("PATH", "LANG", "MUSTER_TEST_SLOW", "MUSTER_LOG_LEVEL", "MUSTER_TEST_TARBALL")
RUN = """
mount --make-rprivate / && mount --bind "$0/passwd" /etc/passwd && mount --bind "$0/group" /etc/group && exec "$@"
"""


def inside():
    return HOME in os.environ


def has_name():
    return inside() and os.environ["USER"] == NAME


def _lines(path, line):
    with open(path, encoding="utf-8") as file:
        return file.read().rstrip("\n") + "\n" + line


def _fill(home, uid):
    """Everything that the user needs, in its home."""
    tests = os.path.join(ROOT, "tests", "integration")
    kept = shutil.ignore_patterns("__pycache__")
    shutil.copytree(tests, os.path.join(home, "checkout/tests/integration"), ignore=kept)
    shutil.copytree(os.path.join(ROOT, "proto"), os.path.join(home, "checkout/proto"))
    for name in PROGRAMS:
        os.makedirs(os.path.join(home, "bin"), exist_ok=True)
        shutil.copy(os.path.join(BIN, name), os.path.join(home, "bin", name))
    for folder, _, names in os.walk(home):
        for path in (folder, *(os.path.join(folder, name) for name in names)):
            os.chown(path, uid, uid)


def run_again(*files):
    """For root: runs each file to its end, with this program's arguments, and returns the highest exit code."""
    uid = 61_000 + os.getpid() % 4_000
    outer = tempfile.mkdtemp(prefix="muster-user-")
    home = os.path.join(outer, "home")
    try:
        os.chmod(outer, 0o755)
        os.mkdir(home, 0o700)
        _fill(home, uid)
        for name, line in (
            ("passwd", f"{NAME}:x:{uid}:{uid}::{home}:/bin/sh\n"),
            ("group", f"{NAME}:x:{uid}:\n"),
        ):
            with open(os.path.join(outer, name), "w", encoding="utf-8") as made:
                made.write(_lines(f"/etc/{name}", line))
        again = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--pdeathsig=KILL",
                 "/usr/bin/python3", "-B"]  # fmt: skip
        named = ["unshare", "--mount", "sh", "-c", RUN, outer]
        can_name = (
            subprocess.run([*named, "true"], capture_output=True, check=False).returncode == 0
        )
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment = {
            **kept,
            "HOME": home,
            HOME: home,
            "USER": NAME if can_name else "",
            "MUSTER_BIN": os.path.join(home, "bin"),
        }
        codes = []
        for file in files:
            copy = os.path.join(home, "checkout/tests/integration", os.path.basename(file))
            words = [*(named if can_name else []), *again, copy, *sys.argv[1:]]
            codes.append(subprocess.run(words, env=environment, cwd=home, check=False).returncode)
        return max(codes)
    finally:
        shutil.rmtree(outer, ignore_errors=True)
