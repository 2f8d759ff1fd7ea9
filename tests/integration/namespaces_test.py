#!/usr/bin/python3
"""An agent in a container: pids of its own, where the tools name processes by the host's, and a network of its own that changes while it runs.

Everything runs in namespaces of its own (namespaces.py). Needs root, or a kernel that lets users make such.

Run:  /usr/bin/python3 tests/integration/namespaces_test.py [-v] [CASE]
"""

import json
import unittest

import namespaces
from devices_test import Machine, recorded, with_process
from namespaces import ip
from cluster import Cluster, wait_until

OF_THE_HOST = 4194303  # a pid that is nobody's in here
ALONE = ("--cgroup", "none")  # control groups are the host's


def setUpModule():
    ip("link", "set", "lo", "up")


class Pids(unittest.TestCase):
    def test_a_rank_whose_pid_the_tools_name_as_the_host_does(self):
        """A card was a stranger's as soon as a rank of ours was on it, and until the look after its end."""
        machine = Machine(self, "910b_container", args=ALONE)
        text = recorded("910b_container")
        with machine.cluster.gate() as gate:
            job = machine.job("ours", 1, f"read line < {gate.path}")
            machine.cluster.wait_event(lambda event: event["type"] == "node-started", job)
            self.assertEqual(machine.placed(job), [[0]])
            shown = with_process(
                with_process(text, 4, OF_THE_HOST, "python", memory=7777),
                5,
                OF_THE_HOST - 1,
                "python",
                memory=8888,
            )
            machine.show(shown)
            machine.until(
                lambda: (
                    machine.reading(0).get("memoryUsedMib"),
                    machine.reading(1).get("memoryUsedMib"),
                )
                == (7777, 8888),
                "a look at both",
            )
            self.assertNotIn("occupants", machine.reading(0), "on a card of ours: ours")
            self.assertEqual(
                [one["pid"] for one in machine.reading(1)["occupants"]],
                [OF_THE_HOST - 1],
                "on any other card: a stranger",
            )
            # The agent that adopts the run knows its cards, too.
            machine.agent.stop()
            machine.start(args=ALONE)
            machine.until(lambda: machine.reading(1).get("occupants"), "a look of the next life")
            self.assertNotIn("occupants", machine.reading(0))
            gate.open()
            machine.well(job)
            machine.until(lambda: machine.reading(0).get("occupants"), "a look after the run's end")
            machine.show(text)
            machine.well(machine.job("next", 4, "true"))


class Network(unittest.TestCase):
    def test_an_interface_that_comes_later(self):
        """The agent told the interfaces of its start for as long as it lived."""
        with Cluster() as cluster:
            cluster.controller()
            agent = cluster.agent("n0", args=ALONE)

            def interfaces():
                node = json.loads(cluster.muster("node", "show", "n0", "-o", "json", code=0).out)
                return {one["name"]: one["addresses"] for one in node["inventory"]["interfaces"]}

            self.assertEqual(list(interfaces()), ["lo"])
            spec = cluster.spec(
                'name: bonded\nengine: command\nlaunch: {run: "true"}\nresources: {devices: 1}\nnetwork: {interface: bond0}\n'
            )
            refused = cluster.muster("run", "-d", spec, code=2)
            self.assertIn("'n0' has no interface 'bond0' (lo)", refused.err)
            ip("link", "add", "bond0", "type", "veth", "peer", "name", "other")
            ip("addr", "add", "10.77.3.4/24", "dev", "bond0")
            ip("link", "set", "bond0", "up")
            wait_until(
                lambda: interfaces() == {"bond0": ["10.77.3.4"]}, agent.pid_fd, what="the interface"
            )
            cluster.muster("run", "-q", spec, "--timeout", "60s", code=0)


if __name__ == "__main__":
    namespaces.main(("ip",), "ip link add va type veth peer vb")
