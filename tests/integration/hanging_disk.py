"""A file system of a test's own that hangs when the test wants it to: a directory, served by
fuse_server.py at another path. It is mounted in the test's mount namespace (namespaces.py), and is
gone with it. Its server ends with the test; then nobody waits any more.

    disk = HangingDisk("/run/disk")
    disk.hang()                              # from now on every access hangs
    disk.hang("MKDIR", path=r"/out$")        # from the first such one on
    disk.wait_hanging()                      # until somebody hangs: (operation, path)
    disk.answer()                            # they go on

    namespaces.main(("ip",), hanging_disk.MAKES)  # left out where the kernel lets us have none
"""

import json
import os
import select
import shlex
import subprocess
import sys
import tempfile
import time

import fuse_protocol
import fuse_server
from cluster import DEADLINE

SERVER = [sys.executable, "-B", fuse_server.__file__]
# A shell's words (namespaces.main): whether there can be such a disk here.
MAKES = f"mkdir -p /run/f && {shlex.join(SERVER)} --try /run/f"


def why_not():
    """Why there can be no such disk here; empty: there can."""
    with tempfile.TemporaryDirectory() as place:
        tried = subprocess.run(
            [*SERVER, "--try", place],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    return "" if tried.returncode == 0 else tried.stderr.strip()


class HangingDisk:
    """`path`: where it is; `files`: the directory that it shows, which never hangs."""

    def __init__(self, path):
        self.path, self.files = path, path + ".files"
        os.mkdir(self.path)
        os.mkdir(self.files)
        # Its command line names neither: cluster.processes_of() takes it for nobody's.
        self._server = subprocess.Popen(
            SERVER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
        )
        self._read, self._events = b"", []
        self._send({"directory": self.files, "mount_point": self.path})
        self._wait("mounted")

    def hang(self, *operations, path=""):
        """From the first request on that is one of these (FUSE's names; none: any), and whose path
        below the disk has this regular expression in it."""
        self._events.clear()
        self._send({"do": "hang", "operations": operations, "path": path})
        self._wait("armed")

    def wait_hanging(self, within=DEADLINE):
        """Until somebody hangs. Returns (operation, path)."""
        first = self._wait("hangs", within)
        return first["operation"], first["path"]

    def answer(self):
        """Returns how many requests hung."""
        self._send({"do": "answer"})
        return self._wait("answers")

    def close(self):
        """Whoever still hangs has an error."""
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
        fuse_protocol.unmount(self.path)

    def _send(self, command):
        self._server.stdin.write(json.dumps(command).encode() + b"\n")
        self._server.stdin.flush()

    def _wait(self, kind, within=DEADLINE):
        """The server's first event of this kind that was not taken yet."""
        end = time.monotonic() + within
        while True:
            for i, event in enumerate(self._events):
                if kind in event:
                    return self._events.pop(i)[kind]
            if not select.select([self._server.stdout], [], [], max(0.0, end - time.monotonic()))[
                0
            ]:
                raise AssertionError(f"waited {within:.0f} s for '{kind}' of the hanging disk")
            data = os.read(self._server.stdout.fileno(), 1 << 16)
            if not data:
                raise AssertionError(
                    f"the hanging disk's server has ended with {self._server.wait()}"
                )
            *lines, self._read = (self._read + data).split(b"\n")
            self._events += map(json.loads, lines)
