"""A tree of Debian 11, with its C library 2.31: what an older host has. Tests only read it: they mount over its folders, or an overlay over all of it.

It is fetched once by debootstrap, from this machine's package source, and kept in the build folder. Two tests that want it at the same time fetch it once.
"""

import fcntl
import os
import shutil
import subprocess

from cluster import BIN

OLD = "bullseye"
PATH = os.path.join(os.path.dirname(BIN), f"root-{OLD}")
FETCH_MOST = 300  # s


def fetch():
    """Makes the tree where it is not there yet. Returns why there is none, or an empty text."""
    with open(PATH + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _fetch()


def _fetch():
    done = os.path.join(PATH, "complete")
    if os.path.exists(done):
        return ""
    if os.geteuid() != 0:
        return "making a root needs root"
    if shutil.which("debootstrap") is None:
        return "there is no 'debootstrap' on PATH"
    sources = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(CODENAME)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    site = next(
        (line.split()[0] for line in sources.splitlines() if line.endswith(" bookworm")), None
    )
    if site is None:
        return "no package source for Debian in this machine's apt configuration"
    shutil.rmtree(PATH, ignore_errors=True)
    # The first stage unpacks the packages and runs nothing of them, which is all that is needed.
    command = ["debootstrap", "--foreign", "--variant=minbase", OLD, PATH, site]
    try:
        made = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_MOST, check=False
        )
    except subprocess.TimeoutExpired:
        return f"'{' '.join(command)}' did not end within {FETCH_MOST} s"
    if made.returncode != 0:
        return f"'{' '.join(command)}': {(made.stdout + made.stderr).strip().splitlines()[-1:]}"
    proc = os.path.join(PATH, "proc")
    if os.path.islink(proc):  # so debootstrap does it in a container
        os.unlink(proc)
        os.mkdir(proc)
    with open(done, "w", encoding="ascii"):
        pass
    return ""
