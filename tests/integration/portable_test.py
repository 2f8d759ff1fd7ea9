#!/usr/bin/python3
"""The delivered programs run on a host that has nothing that they were built with.

    - They need no loader and no library.
    - An empty root has only the programs, a static rank, /proc, /dev/null, /tmp and a few tables in /etc: no C library, no getent.
    - An old root is Debian 11 with its C library 2.31. Names are looked up by that root's getent.

The old root is old_root.py's. The two roots are entered in namespaces of the test's own (namespaces.py).

Run:  /usr/bin/python3 tests/integration/portable_test.py [-v] [CASE]
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import unittest

import namespaces
import old_root
from cluster import DEADLINE, binary, wait_until

PROGRAMS = ("muster", "muster-agent", "muster-controller", "muster-worker")
STATIC = os.environ.get("MUSTER_TEST_STATIC", "ON") == "ON"  # tests/CMakeLists.txt
WHY_NO_OLD_ROOT = "MUSTER_TEST_WHY_NO_OLD_ROOT"  # from this file's process outside
CHROOT = shutil.which("chroot", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or "chroot"
ADDRESS = "10.7.7.7"  # of this host's name in the roots' /etc/hosts; no interface has it
TABLES = {
    "passwd": "root:x:0:0:Root:/tmp/root-home:/bin/sh\n",
    "group": "root:x:0:\n",
    "hosts": f"127.0.0.1 localhost\n{ADDRESS} {socket.gethostname()}\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


def setUpModule():
    if namespaces.inside():
        namespaces.ip("link", "set", "lo", "up")


class Programs(unittest.TestCase):
    @unittest.skipUnless(STATIC, "only preset release links statically")
    def test_they_need_no_loader_and_no_library(self):
        for name in PROGRAMS:
            with self.subTest(name):
                read = subprocess.run(
                    ["readelf", "-lW", "-dW", binary(name)],
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
                self.assertIn("LOAD", read)
                self.assertNotIn("INTERP", read)
                self.assertNotIn("NEEDED", read)


def mount(*words):
    subprocess.run(["mount", *words], check=True, capture_output=True, text=True)


def others():
    """The processes of this pid namespace but its first one and the test."""
    return {
        int(entry) for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != os.getpid()
    } - {1}


class Root:
    """A directory that becomes / for programs: `on` a tree of a distribution, or on nothing. Gone with the namespaces."""

    def __init__(self, on=None):
        self.path = tempfile.mkdtemp(prefix="root-")
        if on:
            mount("--bind", on, self.path)
        else:
            mount("-t", "tmpfs", "none", self.path)
        for folder in ("proc", "dev", "tmp", "etc", "opt"):
            os.makedirs(os.path.join(self.path, folder), exist_ok=True)
        mount("-t", "proc", "proc", self.inside("proc"))
        for folder in ("dev", "tmp", "etc", "opt"):  # a kept tree stays as it is
            mount("-t", "tmpfs", "none", self.inside(folder))
        self.bind("/dev/null", "dev/null")
        for name in (*PROGRAMS, "stub_trainer"):
            self.bind(binary(name), f"opt/{name}")
        for name, text in TABLES.items():
            self.write(f"etc/{name}", text)
        os.mkdir(self.inside("tmp/code"))

    def inside(self, path):
        return os.path.join(self.path, path)

    def bind(self, file, path):
        self.write(path, "")
        mount("--bind", file, self.inside(path))

    def write(self, path, text):
        with open(self.inside(path), "w", encoding="utf-8") as file:
            file.write(text)

    def muster(self, *args, code=0):
        done = subprocess.run(
            [CHROOT, self.path, "/opt/muster", *args],
            env={"HOME": "/tmp", "PATH": "/opt:/usr/bin:/bin", "TERM": "dumb", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        if done.returncode != code:
            raise AssertionError(
                f"muster {args}: exit {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout


@unittest.skipUnless(STATIC, "only preset release links statically")
@unittest.skipUnless(namespaces.inside(), "this machine lets us make no namespaces")
class Roots(unittest.TestCase):
    def run_job(self, root, launch):
        """A private cluster, a job of two ranks, and the end of both. Returns the log of each rank."""
        before = others()
        root.muster("local", "up", "--nodes", "2", "--devices", "1")
        try:
            spec = {
                "name": "two",
                "engine": "command",
                "code": {"at": "/tmp/code"},
                "launch": launch,
                "resources": {"nodes": 2, "devices": 1, "type": "cpu"},
            }
            root.write("tmp/job.yaml", json.dumps(spec))  # JSON is YAML
            root.muster("run", "-d", "/tmp/job.yaml")
            try:
                root.muster("wait", "two", "--timeout", f"{DEADLINE / 2:.0f}s")
            except AssertionError as error:
                story = root.muster("why", "two") + root.muster("logs", "two")
                raise AssertionError(f"{error}{story}") from None
            logs = [
                root.muster("logs", "two", "-f", "--raw", "--rank", str(rank)) for rank in range(2)
            ]
            shown = json.loads(root.muster("env", "two", "--rank", "0", "-o", "json"))
        finally:
            root.muster("local", "down")
        wait_until(lambda: others() <= before, what="the end of all that was started")
        # The agent's own user, from the root's table of users.
        environment = {value["name"]: value["value"] for value in shown["env"]}
        self.assertEqual(
            [environment[name] for name in ("HOME", "USER", "LOGNAME")],
            ["/tmp/root-home", "root", "root"],
        )
        return logs

    def check_host_name(self, root):
        root.write("tmp/hccn.conf", "address_0=192.1.1.1\n")
        table = root.muster(
            "ranktable",
            "generate",
            "--device-num",
            "[0,1)",
            "--hccn-conf",
            "/tmp/hccn.conf",
            "-o",
            "-",
        )
        self.assertEqual(json.loads(table)["server_list"][0]["server_id"], ADDRESS)

    def test_in_an_empty_root(self):
        root = Root()
        logs = self.run_job(root, {"run": ["/opt/stub_trainer", "--steps", "3"]})
        for log in logs:
            self.assertIn("iteration        3/", log)
        self.check_host_name(root)

    def test_with_an_older_c_library(self):
        why = os.environ.get(WHY_NO_OLD_ROOT)
        if why:
            self.skipTest(why)
        root = Root(on=old_root.PATH)
        version = subprocess.run(
            [CHROOT, root.path, "/usr/bin/getent", "--version"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        self.assertIn("2.31", version.splitlines()[0])
        logs = self.run_job(root, {"run": ["/bin/bash", "-c", "getent passwd $USER; id -un"]})
        self.assertEqual(logs, [f"{TABLES['passwd']}root\n"] * 2)
        self.check_host_name(root)


def prepare():
    if STATIC and not namespaces.inside():
        os.environ[WHY_NO_OLD_ROOT] = old_root.fetch()


if __name__ == "__main__":
    prepare()
    namespaces.main(("chroot", "ip"), "ip link set lo up", needed=False)
