"""A file system by the kernel's FUSE protocol: a directory at another path, whose requests can be
kept without an answer. No libfuse: requests are read from /dev/fuse and answered there, one after
the other. The protocol is Linux include/uapi/linux/fuse.h (7.31); fs/fuse/ has what each request
means.

A caller whose request was read and has no answer waits in state D. SIGKILL ends it only after the
answer, as on a hard NFS mount whose server is gone. Nothing is cached (all timeouts are 0, files
are opened with FOPEN_DIRECT_IO), so every access comes here.

It is a process of its own (hanging_disk.py). It reads commands from its standard input and writes
events to its standard output, each a JSON object in one line:

    {"directory": .., "mount_point": ..}    the first line                  -> {"mounted": true}
    {"do": "hang", "operations": ["MKDIR"], "path": "out$"}                 -> {"armed": true}
        from the first such request on nothing is answered; then: {"hangs": {"operation", "path"}}
    {"do": "answer"}   what was kept is answered, and what comes later      -> {"answers": count}

At the end of its input it ends. Then everybody who waits has an error (ENOTCONN, ECONNABORTED).

For root alone: it checks no rights, and all that it makes belongs to its own user.

Run:  fuse_server.py
      fuse_server.py --try MOUNT_POINT      mounts, unmounts, and ends
"""

import contextlib
import ctypes
import errno
import json
import os
import re
import select
import stat
import struct
import sys
import time

import fuse_protocol as fuse

LONGEST = 300.0  # s: then a test has forgotten those who wait, and they have an error


def of_fd(fd):
    return f"/proc/self/fd/{fd}"


class Node:
    """A file that the kernel knows. Its O_PATH descriptor stays good whatever its name becomes."""

    def __init__(self, fd, key):
        self.fd, self.key, self.lookups = fd, key, 0


class Server:
    def __init__(self, device, directory):
        self._device, self._directory = device, directory
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        info = os.fstat(fd)
        self._nodes = {fuse.ROOT: Node(fd, (info.st_dev, info.st_ino))}
        self._ids = {self._nodes[fuse.ROOT].key: fuse.ROOT}
        self._handles, self._next = {}, fuse.ROOT + 1
        self._kept, self._rule, self._hangs_since = [], None, None

    def serve(self):
        """Until the end of the input, or until nothing is mounted any more."""
        poll = select.poll()
        poll.register(self._device, select.POLLIN)
        poll.register(0, select.POLLIN)
        while True:
            for fd, _ in poll.poll(1000):
                if not (self._command() if fd == 0 else self._take()):
                    return
            if self._hangs_since is not None and time.monotonic() > self._hangs_since + LONGEST:
                return

    def _command(self):
        line = sys.stdin.readline()  # each is answered before the next is sent
        if not line:
            return False
        command = json.loads(line)
        if command["do"] == "hang":
            self._rule = (set(command["operations"]), re.compile(command["path"]))
            event({"armed": True})
        else:
            kept, self._kept, self._rule, self._hangs_since = self._kept, [], None, None
            for request in kept:
                self._answer(request)
            event({"answers": len(kept)})
        return True

    def _take(self):
        try:
            data = os.read(self._device, fuse.MAX_WRITE + 4096)
        except OSError as error:
            # gone before it was read; not there at all; not mounted any more
            return error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN)
        request = fuse.Request(data)
        if request.operation not in fuse.NEVER_KEPT and self._hangs(request):
            self._kept.append(request)
        else:
            self._answer(request)
        return True

    def _hangs(self, request):
        if self._rule is not None and self._hangs_since is None:
            operations, pattern = self._rule
            path = self._path(request)
            if (not operations or request.operation in operations) and pattern.search(path):
                self._hangs_since = time.monotonic()
                event({"hangs": {"operation": request.operation, "path": path}})
        return self._hangs_since is not None

    def _path(self, request):
        """Below the directory, as the request has it."""
        path = os.readlink(of_fd(self._nodes[request.node].fd))
        path = os.path.relpath(path, self._directory)
        return os.path.normpath(os.path.join(path, *map(os.fsdecode, request.names()[:1])))

    def _answer(self, request):
        method = getattr(self, "do_" + request.operation.lower(), None)
        number, data = 0, b""
        try:
            if method is None:
                raise OSError(errno.ENOSYS, "")
            data = method(request) or b""
        except OSError as error:
            number = error.errno
        if request.operation in fuse.WITHOUT_ANSWER:
            return
        with contextlib.suppress(FileNotFoundError):  # nobody waits any more
            os.write(
                self._device,
                fuse.ANSWER.pack(fuse.ANSWER.size + len(data), -number, request.unique) + data,
            )

    # ---- what the kernel knows

    def _fd(self, node):
        return self._nodes[node].fd

    def _open(self, flags, node=None, name=None, mode=0):
        """A handle. A name is below the node."""
        flags &= ~(os.O_DIRECT | os.O_NOFOLLOW)
        fd = (
            os.open(of_fd(self._fd(node)), flags)
            if name is None
            else os.open(name, flags | os.O_CREAT | os.O_NOFOLLOW, mode, dir_fd=self._fd(node))
        )
        return self._handle(fd)

    def _handle(self, what):
        self._next += 1
        self._handles[self._next] = what
        return self._next

    @staticmethod
    def _attributes(info):
        times = (info.st_atime_ns, info.st_mtime_ns, info.st_ctime_ns)
        return fuse.ATTRIBUTES.pack(
            *(info.st_ino, info.st_size, info.st_blocks),
            *(ns // 10**9 for ns in times),
            *(ns % 10**9 for ns in times),
            *(info.st_mode, info.st_nlink, info.st_uid, info.st_gid, 0, 4096, 0),
        )

    def _entry(self, parent, name):
        """Each of these counts as a lookup of the node, until the kernel forgets it."""
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=self._fd(parent))
        info = os.fstat(fd)
        key = (info.st_dev, info.st_ino)
        if key in self._ids:
            os.close(fd)
        else:
            self._next += 1
            self._ids[key], self._nodes[self._next] = self._next, Node(fd, key)
        node = self._ids[key]
        self._nodes[node].lookups += 1
        return fuse.ENTRY.pack(node, 0, 0, 0, 0, 0) + self._attributes(info)

    def _forget(self, node, lookups):
        known = self._nodes.get(node)
        if known is None or node == fuse.ROOT:
            return
        known.lookups -= lookups
        if known.lookups <= 0:
            os.close(known.fd)
            del self._nodes[node], self._ids[known.key]

    # ---- the operations

    def do_init(self, request):
        _, _, ahead, flags = struct.unpack_from("<IIII", request.body)
        flags &= fuse.ASYNC_READ | fuse.BIG_WRITES | fuse.PARALLEL_DIROPS
        version, largest = (7, fuse.MINOR), fuse.MAX_WRITE
        return fuse.INIT_OUT.pack(*version, ahead, flags, 0, 0, largest, 1, *[0] * 10)

    def do_destroy(self, request):
        pass

    def do_interrupt(self, request):
        pass

    def do_forget(self, request):
        self._forget(request.node, *struct.unpack_from("<Q", request.body))

    def do_batch_forget(self, request):
        (count,) = struct.unpack_from("<I", request.body)
        for i in range(count):
            self._forget(*struct.unpack_from("<QQ", request.body, 8 + 16 * i))

    def do_lookup(self, request):
        return self._entry(request.node, request.name())

    def do_getattr(self, request):
        flags, _, handle = struct.unpack_from("<IIQ", request.body)
        open_file = flags & fuse.GETATTR_HANDLE and isinstance(self._handles.get(handle), int)
        info = os.fstat(self._handles[handle] if open_file else self._fd(request.node))
        return struct.pack("<QII", 0, 0, 0) + self._attributes(info)

    def do_setattr(self, request):
        valid, _, handle, size, _, atime, mtime, _, *rest = fuse.SETATTR.unpack_from(request.body)
        atime_ns, mtime_ns, _, mode, _, uid, gid, _ = rest
        fd = self._fd(request.node)
        path = of_fd(fd)
        if valid & fuse.SET_MODE:
            os.chmod(path, stat.S_IMODE(mode))
        if valid & (fuse.SET_UID | fuse.SET_GID):
            os.chown(path, uid if valid & fuse.SET_UID else -1, gid if valid & fuse.SET_GID else -1)
        if valid & fuse.SET_SIZE:
            os.truncate(self._handles[handle] if valid & fuse.SET_HANDLE else path, size)
        if valid & (fuse.SET_ATIME | fuse.SET_MTIME):
            info, now = os.fstat(fd), time.time_ns()
            times = [info.st_atime_ns, info.st_mtime_ns]
            if valid & fuse.SET_ATIME:
                times[0] = now if valid & fuse.SET_ATIME_NOW else atime * 10**9 + atime_ns
            if valid & fuse.SET_MTIME:
                times[1] = now if valid & fuse.SET_MTIME_NOW else mtime * 10**9 + mtime_ns
            os.utime(path, ns=tuple(times))
        return struct.pack("<QII", 0, 0, 0) + self._attributes(os.fstat(fd))

    def do_access(self, request):
        (mask,) = struct.unpack_from("<I", request.body)
        if not os.access(of_fd(self._fd(request.node)), mask):
            raise OSError(errno.EACCES, "")

    def do_readlink(self, request):
        return os.readlink(b"", dir_fd=self._fd(request.node))

    def do_symlink(self, request):
        name, target = request.body.split(b"\0")[:2]
        os.symlink(target, name, dir_fd=self._fd(request.node))
        return self._entry(request.node, name)

    def do_link(self, request):
        (old,) = struct.unpack_from("<Q", request.body)
        parent = self._fd(request.node)
        os.link(of_fd(self._fd(old)), request.name(), dst_dir_fd=parent, follow_symlinks=True)
        return self._entry(request.node, request.name())

    def do_mknod(self, request):
        (mode,) = struct.unpack_from("<I", request.body)
        os.mknod(request.name(), mode, dir_fd=self._fd(request.node))  # no devices
        return self._entry(request.node, request.name())

    def do_mkdir(self, request):
        (mode,) = struct.unpack_from("<I", request.body)
        os.mkdir(request.name(), mode & 0o7777, dir_fd=self._fd(request.node))
        return self._entry(request.node, request.name())

    def do_unlink(self, request):
        os.unlink(request.name(), dir_fd=self._fd(request.node))

    def do_rmdir(self, request):
        os.rmdir(request.name(), dir_fd=self._fd(request.node))

    def do_rename(self, request):
        self._rename(request, *struct.unpack_from("<Q", request.body), 0)

    def do_rename2(self, request):
        self._rename(request, *struct.unpack_from("<QI", request.body))

    def _rename(self, request, to, flags):
        old, new = request.names()
        if fuse.libc.renameat2(self._fd(request.node), old, self._fd(to), new, flags):
            raise OSError(ctypes.get_errno(), "")

    def do_open(self, request):
        (flags,) = struct.unpack_from("<I", request.body)
        return fuse.OPENED.pack(self._open(flags, request.node), fuse.DIRECT_IO, 0)

    def do_create(self, request):
        flags, mode = struct.unpack_from("<II", request.body)
        handle = self._open(flags, request.node, request.name(), mode & 0o7777)
        entry = self._entry(request.node, request.name())
        return entry + fuse.OPENED.pack(handle, fuse.DIRECT_IO, 0)

    def do_read(self, request):
        handle, offset, size = struct.unpack_from("<QQI", request.body)
        return os.pread(self._handles[handle], size, offset)

    def do_write(self, request):
        handle, offset, size = struct.unpack_from("<QQI", request.body)
        data = request.body[40 : 40 + size]
        return struct.pack("<II", os.pwrite(self._handles[handle], data, offset), 0)

    def do_flush(self, request):
        pass

    def do_fsync(self, request):
        os.fsync(self._handles[struct.unpack_from("<Q", request.body)[0]])

    def do_release(self, request):
        os.close(self._handles.pop(struct.unpack_from("<Q", request.body)[0]))

    def do_opendir(self, request):
        path = of_fd(self._fd(request.node))
        listed = [(os.stat(path).st_ino, stat.S_IFDIR, name) for name in (b".", b"..")]
        with os.scandir(os.fsencode(path)) as entries:
            for entry in entries:
                info = entry.stat(follow_symlinks=False)
                listed.append((info.st_ino, stat.S_IFMT(info.st_mode), entry.name))
        return fuse.OPENED.pack(self._handle(listed), 0, 0)

    def do_readdir(self, request):
        handle, offset, size = struct.unpack_from("<QQI", request.body)
        out = b""
        for i, (number, kind, name) in enumerate(self._handles[handle][offset:], offset + 1):
            one = fuse.DIRENT.pack(number, i, len(name), kind >> 12) + name
            one += bytes(-len(one) % 8)
            if len(out) + len(one) > size:
                break
            out += one
        return out

    def do_releasedir(self, request):
        del self._handles[struct.unpack_from("<Q", request.body)[0]]

    def do_fsyncdir(self, request):
        pass

    def do_statfs(self, request):
        info = os.statvfs(self._fd(request.node))
        return struct.pack(
            "<5QIIII24x",
            *(info.f_blocks, info.f_bfree, info.f_bavail, info.f_files, info.f_ffree),
            *(info.f_bsize, info.f_namemax, info.f_frsize, 0),
        )


def event(values):
    print(json.dumps(values), flush=True)


def serve(directory, mount_point):
    device = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
    fuse.mount(device, mount_point)
    os.umask(0)  # the kernel has applied the caller's already
    event({"mounted": True})
    Server(device, directory).serve()


def main(words):
    try:
        if words[:1] == ["--try"]:
            device = os.open("/dev/fuse", os.O_RDWR)
            fuse.mount(device, words[1])
            os.close(device)
            return fuse.unmount(words[1])
        place = json.loads(sys.stdin.readline())
        return serve(place["directory"], place["mount_point"])
    except OSError as error:
        return f"a file system by /dev/fuse: {error}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
