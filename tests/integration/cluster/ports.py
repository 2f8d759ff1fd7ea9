"""Port ranges of their own for clusters side by side: a port that one cluster has taken costs a job of another one a start."""

import errno
import random
import socket

FIRST, END = 20000, 32000  # below those that the kernel gives away
SIZE = 200  # HCCL wants 32 a job and host


class Ports:
    """A range that no other test on this host has, until close() or the end of the process: its name is that of an abstract socket, of which nothing is left."""

    def __init__(self):
        self._reservation = socket.socket(socket.AF_UNIX)
        for first in random.SystemRandom().sample(range(FIRST, END, SIZE), (END - FIRST) // SIZE):
            try:
                self._reservation.bind(f"\0muster-test-ports-{first}")
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
            self.range = f"{first}-{first + SIZE - 1}"
            return
        self._reservation.close()
        raise AssertionError(f"other tests on this host have all ports from {FIRST} to {END - 1}")

    def close(self):
        self._reservation.close()
