"""A test in namespaces of its own (mounts, processes, network): when it is gone, however it ended, the kernel ends every process and takes every interface
and file with them. Needs root, or a kernel that lets users make such namespaces.

    if __name__ == "__main__":
        namespaces.main(("ip",), "ip link add va type veth peer vb")
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

INSIDE = "MUSTER_TEST_NETNS"  # set: in the namespaces, and the tests run
LEFT_OUT = 77  # to CTest: neither passed nor failed (tests/CMakeLists.txt)
UNSHARE = [
    "unshare",
    *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]),
    "--mount",
    "--pid",
    "--net",
    "--fork",
    "--kill-child",
    "--mount-proc",
]


def inside():
    return INSIDE in os.environ


def ip(*words):
    subprocess.run(
        ["ip", *map(str, words)],
        stdin=subprocess.DEVNULL,
        check=True,
        capture_output=True,
        text=True,
    )


def main(programs, makes, why_not=lambda: "", needed=True):
    """Runs this file's tests in them; says why it does not where a program is missing, or `makes`, what a shell in them is given, fails. Where they are not
    needed the tests run all the same, and find out by inside()."""
    enter(programs, makes, why_not, needed)
    unittest.main()


def enter(programs, makes, why_not=lambda: "", needed=True):
    """The same for a program that is no test: returns in them."""
    if INSIDE not in os.environ:
        why = _cannot(programs, makes) or why_not()
        if why and not needed:
            print(f"without namespaces: {why}")
            return
        if why:
            print(f"skipped: {why}")
            sys.exit(LEFT_OUT)
        os.execvpe(
            UNSHARE[0], [*UNSHARE, sys.executable, "-B", *sys.argv], {**os.environ, INSIDE: "1"}
        )
    if os.getpid() == 1:
        _first_process()


def _cannot(programs, makes):
    for program in ("unshare", *programs):
        if shutil.which(program) is None:
            return f"there is no '{program}' on PATH"
    tried = subprocess.run(
        [*UNSHARE, "sh", "-c", f"mount -t tmpfs none /run && {makes}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return (
        ""
        if tried.returncode == 0
        else f"this machine lets us make no namespaces: {tried.stderr.strip()}"
    )


def _first_process():
    """Process 1 of a namespace has to bury everybody's children; the tests are one of its own."""
    subprocess.run(
        ["mount", "-t", "tmpfs", "none", "/run"], check=True
    )  # namespaces' names and all files of the test: gone with it
    os.environ["TMPDIR"] = tempfile.tempdir = "/run"
    tests = os.fork()
    if tests == 0:
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(1))
    while True:
        pid, status = os.wait()
        if pid == tests:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
