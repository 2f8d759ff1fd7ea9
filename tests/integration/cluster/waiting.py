"""Waiting for files and for conditions. Nothing here sleeps through an event: a process's end or a change of a file ends the wait."""

import ctypes
import errno
import os
import select
import time

from .programs import DEADLINE

_libc = ctypes.CDLL(None, use_errno=True)
_IN_MODIFY, _IN_MOVED_TO, _IN_CREATE = 0x2, 0x80, 0x100


def wait_until(true, pid_fd=None, within=DEADLINE, what="it"):
    """Asks every 20 ms, or at once when the process of the pidfd ends: for what sends no event (a file that appears)."""
    deadline = time.monotonic() + within
    poll = select.poll()
    if pid_fd is not None:
        poll.register(pid_fd, select.POLLIN)
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within:.0f} s for {what}")
        if poll.poll(20) and not true():
            raise AssertionError(f"waiting for {what}: the process ended")


class Directory:
    """Wakes up when something in a directory changes."""

    def __init__(self, path):
        self._fd = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        # A user has few inotify instances (128 by default), and everybody's tests share them: without one, wait() ends early and its caller looks again.
        if self._fd < 0 and ctypes.get_errno() == errno.EMFILE:
            return
        if (
            self._fd < 0
            or _libc.inotify_add_watch(
                self._fd, os.fsencode(path), _IN_MODIFY | _IN_MOVED_TO | _IN_CREATE
            )
            < 0
        ):
            raise OSError(ctypes.get_errno(), f"watching '{path}'")

    def wait(self, seconds):
        """True: something may have changed (since the last call)."""
        if self._fd < 0:
            select.select([], [], [], min(0.02, max(0.0, seconds)))
            return seconds > 0
        if not select.select([self._fd], [], [], max(0.0, seconds))[0]:
            return False
        try:
            os.read(self._fd, 1 << 16)
        except BlockingIOError:
            pass
        return True

    def close(self):
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


class Gate:
    """A pipe that ranks wait at until the test lets them through, one byte each: no polling on either side."""

    def __init__(self, path):
        self.path = path
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def open(self, ranks=1):
        os.write(self._fd, b"\n" * ranks)

    def close(self):
        os.close(self._fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
