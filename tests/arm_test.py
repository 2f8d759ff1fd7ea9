#!/usr/bin/python3
"""The programs built for arm64 (preset release-arm64) run a job of two ranks, on this machine under qemu's user emulation.

The test is in namespaces of its own, with a binfmt_misc of its own: there the kernel starts programs for arm64 by qemu, whoever execs them, and nowhere else
on this machine (Linux 6.7, binfmt_misc in user namespaces). The cluster and its ranks are portable_test's, in an empty root: no program for amd64 is in it.

What an emulation cannot show: the speed of a real machine, its memory order, and kernels of other page sizes.

Run:  tests/run --arm, or where it is built: /usr/bin/python3 tests/arm_test.py [-v] [CASE]
"""

import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(HERE), "build", "release-arm64", "bin")
sys.path.insert(0, os.path.join(HERE, "integration"))
os.environ.setdefault("MUSTER_BIN", BUILD)
os.environ["MUSTER_TEST_STATIC"] = "ON"

import namespaces  # noqa: E402
import portable_test  # noqa: E402

QEMU = shutil.which("qemu-aarch64-static") or "qemu-aarch64-static"
BINFMT = "/proc/sys/fs/binfmt_misc"
# An ELF file of 64 bits, little endian, EXEC or DYN, for EM_AARCH64 (0xb7). F: the kernel opens qemu now, so that it is found in every root. P: argv[0] stays.
# https://docs.kernel.org/admin-guide/binfmt-misc.html
RULE = (
    r":muster-arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    f":{QEMU}:FP"
)
MAKES = (
    f"mount -t binfmt_misc none {BINFMT} && printf '%s' '{RULE}' >{BINFMT}/register"
    f" && ip link set lo up && '{portable_test.binary('muster')}' --version"
)


def setUpModule():
    portable_test.mount("-t", "binfmt_misc", "none", BINFMT)
    with open(f"{BINFMT}/register", "w", encoding="ascii") as rules:
        rules.write(RULE)
    portable_test.setUpModule()


class Programs(portable_test.Programs):
    def test_they_are_for_arm64(self):
        for name in (*portable_test.PROGRAMS, "stub_trainer"):
            with self.subTest(name):
                header = subprocess.run(
                    ["readelf", "-h", portable_test.binary(name)],
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
                self.assertRegex(header, r"Machine: +AArch64")


class Cluster(portable_test.Roots):
    """Its test in an old root needs that root's programs for arm64; the job in an empty root is all of ours."""

    test_with_an_older_c_library = None


def load_tests(loader, tests, pattern):
    return unittest.TestSuite(loader.loadTestsFromTestCase(each) for each in (Programs, Cluster))


if __name__ == "__main__":
    # A user namespace for root, too: otherwise the rule would be the whole machine's.
    if "--user" not in namespaces.UNSHARE:
        namespaces.UNSHARE[1:1] = ["--user", "--map-root-user"]
    namespaces.main(("chroot", "ip", "readelf", "qemu-aarch64-static"), MAKES)
