"""Waiting for what tells nobody that it is there: a port that somebody opens, a file on storage that another host may write to."""

import select
import time

from .fail import Violation

PATIENCE = 120.0  # s; a bound, no more
_AGAIN = 0.01  # s


def until(read, what):
    """What `read()` gives, the first time that it raises no OSError."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return read()
        except OSError as error:
            if time.monotonic() > end:
                raise Violation(f"{what}: {error}") from error
        select.select([], [], [], _AGAIN)
