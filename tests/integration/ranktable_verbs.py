"""For the tests of `muster ranktable`: its verbs without any card tool or endpoint of this machine, stand-in tools, and tables to give to them."""

import json
import os
import sys
import unittest

from cluster import ROOT, Cluster, processes_of, wait_until
from golden import Golden

HEAD = """# What `muster ranktable` says: what happened, to which thing, what would help. Reviewed as text.
# Written by tests/integration/{test} --rewrite. <dir> is the test's directory.
"""

TOOL = """#!/bin/sh
[ "$LANG" = C ] && [ -z "$LC_ALL" ] && [ "$#" = 4 ] && [ "$1 $3 $4" = "-i -ip -g" ] || exit 9
case $2 in
{cases}
*) echo "device $2 is not there" ; exit 1 ;;
esac
echo netmask:255.255.255.0
"""

HOSTS = """\
hosts:
  - server_id: node-a
    super_pod_id: 0
    devices:
      - {device_id: 0, device_ip: 192.1.1.1, super_device_id: 0}
      - {device_id: 1, device_ip: 192.1.1.2, super_device_id: 1}
  - server_id: node-b
    super_pod_id: 1
    devices:
      - {device_id: 0, device_ip: 192.1.2.1, super_device_id: 0}
      - {device_id: 1, device_ip: 192.1.2.2, super_device_id: 1}
"""


def sentences(name, test):
    return Golden(
        os.path.join(ROOT, "tests/golden", name), HEAD.format(test=test), "--rewrite" in sys.argv
    )


def main(golden):
    arguments = [argument for argument in sys.argv if argument != "--rewrite"]
    program = unittest.main(argv=arguments, exit=False)
    if program.result.wasSuccessful() or golden.rewrite:
        golden.save(
            whole=program.result.wasSuccessful()
            and all(argument.startswith("-") for argument in arguments[1:])
        )
    sys.exit(not program.result.wasSuccessful())


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def table(servers, status="completed", **top):
    """[(server_id, [(device_id, device_ip, rank_id)])] as a table of version 1.0."""
    listed = [
        {
            "server_id": name,
            "device": [
                {"device_id": str(d), "device_ip": ip, "rank_id": str(r)} for d, ip, r in devices
            ],
        }
        for name, devices in servers
    ]
    return {
        "version": "1.0",
        "server_count": str(len(servers)),
        "server_list": listed,
        "status": status,
        **top,
    }


def cloud(instances, **top):
    """[(pod_name, server_id, [(device_id, device_ip)])] as a group list."""
    listed = [
        {
            "pod_name": pod,
            "server_id": server,
            "devices": [{"device_id": str(d), "device_ip": ip} for d, ip in devices],
        }
        for pod, server, devices in instances
    ]
    group = {
        "group_name": "job",
        "device_count": str(sum(len(i["devices"]) for i in listed)),
        "instance_count": str(len(listed)),
        "instance_list": listed,
    }
    return {"status": "completed", "group_count": "1", "group_list": [group], **top}


class RankTable(unittest.TestCase):
    """`golden`: where the sentences of a class are."""

    maxDiff = None
    golden: Golden

    def setUp(self):
        self.at = Cluster()
        self.addCleanup(self.at.close)
        # No card tool of this machine, no endpoint: these verbs ask nobody.
        self.bin = self.at.path("bin")
        os.mkdir(self.bin)
        self.path = self.bin + ":/usr/bin:/bin"
        self.conf = self.at.path("none.conf")
        os.mkdir(self.at.path("w"))

    def tearDown(self):
        self.nothing_left()

    def nothing_left(self):
        """What was killed may take a moment to be gone."""
        wait_until(lambda: not processes_of(self.at.dir), what="the last process to be gone")

    def run_verb(self, *args, code=0, **options):
        return self.at.muster(
            "ranktable",
            *args,
            code=code,
            env={"PATH": self.path, **options.pop("env", {})},
            **options,
        )

    def generate(self, *args, **options):
        return self.run_verb(
            "generate",
            *(() if "--hccn-conf" in args else ("--hccn-conf", self.conf)),
            *args,
            **options,
        )

    def tool(self, text):
        path = os.path.join(self.bin, "hccn_tool")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def good_tool(self, addresses):
        self.tool(
            TOOL.format(
                cases="\n".join(
                    f"{device}) echo ipaddr:{ip} ;;" for device, ip in addresses.items()
                )
            )
        )

    def put(self, name, content):
        return self.at.write(name, content if isinstance(content, str) else json.dumps(content))

    def check_output(self, title, done, code):
        self.assertEqual(done.code, code, str(done))
        text = f"$ {' '.join(done.command)}\nexit {done.code}\n{done.out}{done.err}"
        for path in sorted({self.at.dir, os.path.realpath(self.at.dir)}, key=len, reverse=True):
            text = text.replace(path, "<dir>")
        self.golden.check(self, title, text)
