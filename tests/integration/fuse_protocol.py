"""The kernel's FUSE protocol, as far as fuse_server.py speaks it: constants and structs of Linux
include/uapi/linux/fuse.h (7.31), a request that was read from /dev/fuse, and mount and unmount."""

import ctypes
import os
import struct

libc = ctypes.CDLL(None, use_errno=True)

MINOR = 31
MAX_WRITE = 128 << 10
ROOT = 1  # FUSE_ROOT_ID

ASYNC_READ, BIG_WRITES, PARALLEL_DIROPS = 1 << 0, 1 << 5, 1 << 18  # of INIT
DIRECT_IO = 1 << 0  # FOPEN_DIRECT_IO
SET_MODE, SET_UID, SET_GID, SET_SIZE, SET_ATIME, SET_MTIME, SET_HANDLE = (1 << i for i in range(7))
SET_ATIME_NOW, SET_MTIME_NOW = 1 << 7, 1 << 8
GETATTR_HANDLE = 1 << 0

HEADER, ANSWER = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
ATTRIBUTES, ENTRY, OPENED = struct.Struct("<6Q10I"), struct.Struct("<4QII"), struct.Struct("<QII")
DIRENT, SETATTR = struct.Struct("<QQII"), struct.Struct("<IIQQQQQQIIIIIIII")
INIT_OUT = struct.Struct("<IIIIHHIIHHI7I")

OPERATIONS = {
    1: "LOOKUP", 2: "FORGET", 3: "GETATTR", 4: "SETATTR", 5: "READLINK", 6: "SYMLINK",
    8: "MKNOD", 9: "MKDIR", 10: "UNLINK", 11: "RMDIR", 12: "RENAME", 13: "LINK", 14: "OPEN",
    15: "READ", 16: "WRITE", 17: "STATFS", 18: "RELEASE", 20: "FSYNC", 25: "FLUSH", 26: "INIT",
    27: "OPENDIR", 28: "READDIR", 29: "RELEASEDIR", 30: "FSYNCDIR", 34: "ACCESS", 35: "CREATE",
    36: "INTERRUPT", 38: "DESTROY", 42: "BATCH_FORGET", 45: "RENAME2",
}  # fmt: skip
# Nobody waits for these. An INTERRUPT may be ignored; then its caller waits on.
WITHOUT_ANSWER = {"FORGET", "BATCH_FORGET", "INTERRUPT"}
NEVER_KEPT = WITHOUT_ANSWER | {"INIT", "DESTROY"}
# Where in the request names begin, and how many there are.
NAMES = {
    "LOOKUP": (0, 1), "SYMLINK": (0, 1), "MKNOD": (16, 1), "MKDIR": (8, 1), "UNLINK": (0, 1),
    "RMDIR": (0, 1), "RENAME": (8, 2), "LINK": (8, 1), "CREATE": (16, 1), "RENAME2": (16, 2),
}  # fmt: skip


def mount(device, where):
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    if libc.mount(b"muster-test", os.fsencode(where), b"fuse.muster-test", 0, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount: {os.strerror(ctypes.get_errno())}", where)


def unmount(where):
    """Whoever waits there has an error first, when its server has ended."""
    libc.umount2(os.fsencode(where), 2)  # MNT_DETACH


class Request:
    def __init__(self, data):
        length, code, self.unique, self.node, *_ = HEADER.unpack_from(data)
        self.operation = OPERATIONS.get(code, str(code))
        self.body = data[HEADER.size : length]

    def names(self):
        if self.operation not in NAMES:
            return []
        begin, count = NAMES[self.operation]
        return self.body[begin:].split(b"\0")[:count]

    def name(self):
        return self.names()[0]
