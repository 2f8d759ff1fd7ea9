"""A small disk of a test's own, which can be broken and filled: ext4 on a loop device. Mounted in the test's mount namespace (namespaces.py): gone with it."""

import contextlib
import errno
import fcntl
import os
import struct
import subprocess

_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN


def run(*words):
    subprocess.run(
        [*map(str, words)], stdin=subprocess.DEVNULL, check=True, capture_output=True, text=True
    )


class Disk:
    def __init__(self, path, megabytes=64):
        self.path, self.image = path, path + ".image"
        os.mkdir(path)
        with open(self.image, "wb") as file:
            file.truncate(megabytes << 20)
        run("mkfs.ext4", "-q", "-m", 0, self.image)
        self.mount()

    def mount(self):
        run("mount", "-o", "loop,errors=remount-ro", self.image, self.path)

    def device(self):
        with open("/proc/self/mounts", encoding="utf-8") as mounts:
            return next(line.split()[0] for line in mounts if line.split()[1] == self.path)

    def fail(self):
        """What the kernel does when it finds the file system damaged: from now on nothing can be written."""
        with open(
            f"/sys/fs/ext4/{os.path.basename(self.device())}/trigger_fs_error",
            "w",
            encoding="ascii",
        ) as trigger:
            trigger.write("1")
        try:
            os.mkdir(os.path.join(self.path, "try"))
        except OSError as error:
            assert error.errno == errno.EROFS, error
        else:
            raise AssertionError(f"'{self.path}' can be written all the same")

    def shut_down(self):
        """As when the device is gone: every read and write is an error (EIO)."""
        directory = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, _SHUTDOWN, struct.pack("I", 2))  # without writing its log
        finally:
            os.close(directory)

    def mend(self):
        """What an operator does. Nobody has a file open there for writing any more."""
        run("umount", self.path)
        subprocess.run(
            ["e2fsck", "-f", "-y", self.image],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )  # 1: it has repaired something
        self.mount()

    @contextlib.contextmanager
    def filled(self):
        """Not a byte is left, until the end."""
        path = os.path.join(self.path, "filler")
        with open(path, "wb", buffering=0) as file:
            for take in (64 << 20, 1 << 20, 4096):  # without writing a byte: the image stays small
                self._until_full(
                    lambda size=take: os.posix_fallocate(
                        file.fileno(), file.seek(0, os.SEEK_END), size
                    )
                )
            self._until_full(lambda: file.write(b"x"))
        try:
            yield
        finally:
            os.unlink(path)

    @staticmethod
    def _until_full(take):
        try:
            while True:
                take()
        except OSError as error:
            assert error.errno == errno.ENOSPC, error

    def close(self):
        subprocess.run(
            ["umount", "-l", self.path], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
