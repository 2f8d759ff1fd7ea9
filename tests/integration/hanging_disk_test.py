#!/usr/bin/python3
"""The file system that the tests of hanging starts use (hanging_disk.py), by itself: what a program
writes there is there, and who hangs goes on after the answer.

Everything runs in namespaces of its own (namespaces.py). Needs root and /dev/fuse.

Run:  /usr/bin/python3 tests/integration/hanging_disk_test.py [-v] [CASE]
"""

import ctypes
import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import fuse_protocol
import hanging_disk
import namespaces
from cluster import wait_ended, wait_until
from hanging_disk import HangingDisk

MIB = 1 << 20


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)
        os.fsync(file.fileno())


def read(path):
    with open(path, "rb") as file:
        return file.read()


class OneDisk(unittest.TestCase):
    def setUp(self):
        self.disk = HangingDisk(os.path.join(tempfile.mkdtemp(), "disk"))
        self.addCleanup(self.disk.close)

    def path(self, *parts):
        return os.path.join(self.disk.path, *parts)

    def child(self, text, *words):
        """A Python program that runs meanwhile, killed at the end: (Popen, its pidfd)."""
        child = subprocess.Popen(
            [sys.executable, "-B", "-c", text, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        pid_fd = os.pidfd_open(child.pid)

        def end():
            child.kill()
            child.communicate()
            os.close(pid_fd)

        self.addCleanup(end)
        return child, pid_fd

    def reader(self, name):
        return self.child("import sys; print(open(sys.argv[1]).read())", self.path(name))


class Files(OneDisk):
    def test_what_is_written_is_there(self):
        data = os.urandom(MIB)
        write(self.path("a"), data)
        self.assertEqual(read(self.path("a")), data)
        self.assertEqual(read(os.path.join(self.disk.files, "a")), data)
        with open(self.path("a"), "r+b") as file:
            file.seek(MIB - 1)
            file.write(b"end")
            file.truncate(MIB + 1)
        with open(self.path("a"), "ab") as file:
            file.write(b"more")
        self.assertEqual(read(self.path("a")), data[:-1] + b"en" + b"more")
        os.truncate(self.path("a"), 3)
        self.assertEqual(read(self.path("a")), data[:3])
        write(os.path.join(self.disk.files, "a"), b"of others")
        self.assertEqual(read(self.path("a")), b"of others", "nothing is cached")
        self.assertGreater(os.statvfs(self.disk.path).f_bavail, 0)

    def test_directories(self):
        os.makedirs(self.path("a/b/c"))
        for i in range(300):  # more than one answer to READDIR has
            write(self.path("a/b", f"{i:03}-{'x' * 60}"), b"")
        self.assertEqual(len(os.listdir(self.path("a/b"))), 301)
        self.assertEqual(
            [entry.name for entry in os.scandir(self.path("a/b")) if entry.is_dir()], ["c"]
        )
        with self.assertRaises(FileExistsError):
            os.mkdir(self.path("a/b"))
        with self.assertRaises(OSError) as caught:
            os.rmdir(self.path("a/b"))
        self.assertEqual(caught.exception.errno, errno.ENOTEMPTY)
        shutil.rmtree(self.path("a"))
        self.assertEqual(os.listdir(self.disk.files), [])

    def test_names(self):
        write(self.path("old"), b"old")
        write(self.path("new"), b"new")
        with open(self.path("old"), "rb") as file:
            os.rename(self.path("new"), self.path("old"))
            self.assertEqual(file.read(), b"old", "an open file stays what it is")
        self.assertEqual(read(self.path("old")), b"new")
        os.makedirs(self.path("d/e"))
        os.rename(self.path("d"), self.path("f"))
        write(self.path("f/e/g"), b"g")
        os.rename(self.path("f/e/g"), self.path("g"))
        os.symlink("g", self.path("link"))
        self.assertEqual(os.readlink(self.path("link")), "g")
        self.assertEqual(read(self.path("link")), b"g")
        os.lchown(self.path("link"), 0, 0)
        os.link(self.path("g"), self.path("h"))
        self.assertEqual(os.stat(self.path("h")).st_nlink, 2)
        os.unlink(self.path("g"))
        self.assertEqual(read(self.path("h")), b"g")
        with self.assertRaises(FileNotFoundError):
            read(self.path("link"))
        os.mkfifo(self.path("fifo"))
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("fifo")).st_mode))
        # RENAME_NOREPLACE and RENAME_EXCHANGE, as muster does it
        with self.assertRaises(OSError) as caught:
            self.rename2("h", "old", 1)
        self.assertEqual(caught.exception.errno, errno.EEXIST)
        self.rename2("h", "old", 2)
        self.assertEqual((read(self.path("h")), read(self.path("old"))), (b"new", b"g"))

    def rename2(self, old, new, flags):
        old, new = (os.fsencode(self.path(name)) for name in (old, new))
        if fuse_protocol.libc.renameat2(-100, old, -100, new, flags):  # AT_FDCWD
            raise OSError(ctypes.get_errno(), "")

    def test_attributes(self):
        write(self.path("a"), b"#!/bin/sh\necho ran\n")
        os.chmod(self.path("a"), 0o750)
        os.utime(self.path("a"), ns=(1, 10**18 + 1))
        info = os.stat(self.path("a"))
        self.assertEqual((stat.S_IMODE(info.st_mode), info.st_mtime_ns), (0o750, 10**18 + 1))
        self.assertEqual(info.st_ino, os.stat(os.path.join(self.disk.files, "a")).st_ino)
        self.assertTrue(os.access(self.path("a"), os.X_OK))
        with self.assertRaises(OSError) as caught:
            os.getxattr(self.path("a"), "user.x")
        self.assertEqual(caught.exception.errno, errno.EOPNOTSUPP)
        ran = subprocess.run([self.path("a")], capture_output=True, text=True, check=True)
        self.assertEqual(ran.stdout, "ran\n")
        shutil.copy(shutil.which("true"), self.path("program"))
        subprocess.run([self.path("program")], check=True)


class Hanging(OneDisk):
    def setUp(self):
        super().setUp()
        write(self.path("a"), b"of a")
        os.mkdir(self.path("d"))

    def test_who_hangs_goes_on_after_the_answer_and_nobody_else_hangs(self):
        self.disk.hang()
        child, pid_fd = self.reader("a")
        self.assertEqual(self.disk.wait_hanging()[1], "a")
        other = os.path.join(os.path.dirname(self.disk.path), "other")
        write(other, b"other")
        self.assertEqual(read(other), b"other")
        self.assertEqual(read(os.path.join(self.disk.files, "a")), b"of a")
        child.kill()  # as on a dead NFS mount: not even that ends it
        wait_until(lambda: self.state(child.pid) in "DZ", what="the child to get the signal")
        self.assertFalse(wait_ended(pid_fd, 0.2))
        self.assertGreaterEqual(self.disk.answer(), 1)
        self.assertTrue(wait_ended(pid_fd))
        self.assertEqual(read(self.path("a")), b"of a")

        self.disk.hang()
        child, _ = self.reader("a")
        self.disk.wait_hanging()
        self.disk.answer()
        self.assertEqual(child.communicate()[0], "of a\n")

    def test_the_first_request_of_a_kind(self):
        self.disk.hang("MKDIR", path=r"/x\d$")
        self.assertEqual(read(self.path("a")), b"of a")
        os.mkdir(self.path("d/x"))
        write(self.path("d/x1"), b"")
        os.unlink(self.path("d/x1"))
        child, pid_fd = self.child("import os, sys; os.mkdir(sys.argv[1])", self.path("d/x1"))
        self.assertEqual(self.disk.wait_hanging(), ("MKDIR", "d/x1"))
        _, also = self.reader("a")  # from then on nothing is answered
        self.assertFalse(wait_ended(also, 0.2))
        self.disk.answer()
        for one in (pid_fd, also):
            self.assertTrue(wait_ended(one))
        self.assertEqual(child.wait(), 0)
        self.assertTrue(os.path.isdir(self.path("d/x1")))

    def test_kinds(self):
        """What a step of a start does, and what the file system is asked for then."""
        for kind, text in {
            "LOOKUP": "os.path.exists(there + '/new')",
            "STATFS": "os.statvfs(there)",
            "OPENDIR": "os.listdir(there)",
            "CREATE": "os.close(os.open(there + '/new', os.O_CREAT | os.O_EXCL | os.O_WRONLY))",
            "SYMLINK": "os.symlink('x', there + '/link')",
            "RENAME": "os.rename(there + '/new', there + '/newer')",
        }.items():
            with self.subTest(kind):
                self.disk.hang(kind, path="^d(/|$)")
                child, pid_fd = self.child(
                    f"import os, sys; there = sys.argv[1]; {text}", self.path("d")
                )
                self.assertEqual(self.disk.wait_hanging()[0], kind)
                self.disk.answer()
                self.assertTrue(wait_ended(pid_fd))
                self.assertEqual(child.wait(), 0)
        self.assertEqual(sorted(os.listdir(self.path("d"))), ["link", "newer"])

    def test_the_end_of_its_server_is_an_error_of_those_who_wait(self):
        disk = HangingDisk(self.disk.path + "-2")
        disk.hang()
        child, pid_fd = self.child("import os, sys; os.stat(sys.argv[1] + '/a')", disk.path)
        disk.wait_hanging()
        disk.close()
        self.assertTrue(wait_ended(pid_fd))
        self.assertRegex(child.communicate()[1], "OSError|ConnectionAbortedError")
        self.assertEqual(os.listdir(disk.path), [], "nothing is mounted")

    @staticmethod
    def state(pid):
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]


if __name__ == "__main__":
    namespaces.main((), hanging_disk.MAKES)
