"""Nodes with disks of their own: an agent in a mount namespace sees another directory where the other nodes see theirs. Needs root."""

import os
import subprocess

WHY_NOT = "this user may mount nothing: nodes cannot have disks of their own"
_OWN_DISK = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
_READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'


def may_mount():
    return (
        os.geteuid() == 0
        and subprocess.run(
            ["unshare", "--mount", "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        ).returncode
        == 0
    )


def own_disk(disk, path):
    """What stands before an agent's command line: for it, `path` is the directory `disk`."""
    return ["unshare", "--mount", "sh", "-c", _OWN_DISK, "sh", disk, path]


def read_only(path):
    """The same, and it can write nothing below `path`."""
    return ["unshare", "--mount", "sh", "-c", _READ_ONLY, "sh", path]


class OwnOutputs:
    """For a cluster: below ${out} of a node is a directory that no other node sees."""

    def disk(self, name):
        return os.path.join(self.dir, f"disk-{name}")

    def outputs(self):
        return os.path.join(self.dir, "controller", "outputs")

    def before_own(self, name):
        for path in (self.outputs(), self.disk(name)):
            os.makedirs(path, mode=0o700, exist_ok=True)
        return own_disk(self.disk(name), self.outputs())
