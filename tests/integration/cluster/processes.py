"""Processes: who lives, who belongs to a cluster, to kill one and to wait for its end. Pid and start time together are a process."""

import collections
import os
import re
import select
import signal

from .programs import DEADLINE

Process = collections.namedtuple("Process", "pid start parent argv env")


def _stat(pid):
    """(state, parent, start time)"""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return fields[0], int(fields[1]), int(fields[19])


def _read(pid, name):
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()


def carriers(prefix):
    """The live processes whose MUSTER_PROCESS_TAG begins with this."""
    needle, found = b"MUSTER_PROCESS_TAG=" + prefix.encode(), []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            environ = _read(entry, "environ")
            if needle not in environ:
                continue
            _, parent, start = _stat(entry)
            argv = _read(entry, "cmdline").decode(errors="replace").split("\0")[:-1]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # gone meanwhile, or another user's
        env = dict(
            item.decode(errors="replace").split("=", 1)
            for item in environ.split(b"\0")
            if b"=" in item
        )
        if env.get("MUSTER_PROCESS_TAG", "").startswith(prefix):
            found.append(Process(int(entry), start, parent, argv, env))
    return found


def processes_of(directory):
    """[(pid, command line)] of the live processes that have the directory in their command line or environment."""
    found = []
    mark = re.compile(re.escape(directory.encode()) + rb"(/|\0|$|[^A-Za-z0-9_.-])")
    for entry in filter(str.isdigit, os.listdir("/proc")):
        if int(entry) == os.getpid():
            continue
        try:
            if _stat(entry)[0] in (b"Z", b"X"):
                continue
            command, environ = _read(entry, "cmdline"), _read(entry, "environ")
        except OSError:
            continue
        if mark.search(command + b"\0" + environ):
            found.append(
                (
                    int(entry),
                    command.rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")[:200],
                )
            )
    return found


def kill_process(process):
    """SIGKILL for exactly this process; False: it was gone already."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if _stat(process.pid)[2] != process.start:
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        return True
    except (FileNotFoundError, ProcessLookupError):
        return False
    finally:
        os.close(pidfd)


def wait_ended(pid_fd, within=DEADLINE):
    """True as soon as the process of this pidfd has ended."""
    poll = select.poll()
    poll.register(pid_fd, select.POLLIN)
    return bool(poll.poll(within * 1000))


def wait_gone(process, within=DEADLINE):
    """True as soon as this process has ended."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        return _stat(process.pid)[2] != process.start or wait_ended(pidfd, within)
    except (FileNotFoundError, ProcessLookupError):
        return True
    finally:
        os.close(pidfd)


def wait_pid(pid, within):
    """True as soon as there is no process of this number."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return wait_ended(pidfd, within)
    finally:
        os.close(pidfd)
