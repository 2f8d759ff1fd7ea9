#!/usr/bin/python3
"""Real PyTorch over two nodes that are two network namespaces with two networks each: does torch.distributed (gloo) find its way from the environment alone?

    controller  10.77.9.9 (lo)                                   control: one pair of interfaces a node and nothing between the nodes
       |  c0 10.77.0.1 ---------- 10.77.0.2 control of node n0
       |  c1 10.77.0.5 ---------- 10.77.0.6 control of node n1   training: the two nodes alone
    n0 training 10.78.0.1 ------- 10.78.0.2 training of n1

Over the control network no node reaches the other, so that a wrong interface or a wrong address ends in a failed job, which two tests show. Interfaces are
named so that a guess is wrong: on n0 control is first by name, on n1 training is. Agents that are told no address find that of the control network, as the
controller is there; the training network is then found by the nodes' routes. Agents call the controller over TCP, with their nodes' certificates.

Everything runs in namespaces of its own (namespaces.py). Needs root, or a kernel that lets users make such.

Run:  /usr/bin/python3 tests/integration/netns_test.py [-v] [CASE]
"""

import json
import subprocess
import unittest

import namespaces
from cluster import Cluster, wait_until
from namespaces import ip

CONTROLLER = "10.77.9.9"
CONTROL = ("10.77.0.2", "10.77.0.6")
TRAINING = ("10.78.0.1", "10.78.0.2")
FLOATS = 1 << 20  # of one all_reduce: far more bytes than all that control messages need
PATIENCE = 240.0  # s; only a bound: eight imports of torch on busy cores
LOST = 20  # s; how long ranks that cannot meet try it

# torch: as any script reads torchrun's variables. megatron: as megatron/training/initialize.py, _initialize_distributed, and the groups of
# megatron/core/parallel_state.py, initialize_model_parallel: tensor parallel within a node, data parallel across.
COMMON = f"""
import datetime, os, sys
import torch
import torch.distributed as dist

def reduced(group=None):
    one = torch.full(({FLOATS},), float(2 ** dist.get_rank()))
    dist.all_reduce(one, group=group)
    assert bool((one == one[0]).all())
    return int(one[0])
"""
# Without it PyTorch 1.13 now and then aborts while a finished interpreter takes its threads down.
END = """
dist.barrier()
dist.destroy_process_group()
"""
TORCH = (
    COMMON
    + f"""
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds={LOST}))
total = reduced()
assert total == 2 ** dist.get_world_size() - 1, total
print(f"rank {{dist.get_rank()}} of {{dist.get_world_size()}} sums {{total}}", flush=True)
"""
    + END
)
MEGATRON = (
    COMMON
    + """
import argparse
parser = argparse.ArgumentParser(allow_abbrev=False)
for name in ("--tensor-model-parallel-size", "--distributed-timeout-minutes", "--train-iters", "--save-interval"):
    parser.add_argument(name, type=int, required=True)
for name in ("--distributed-backend", "--save", "--load"):
    parser.add_argument(name, required=True)
args = parser.parse_args()
rank, world, local = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
tensor = args.tensor_model_parallel_size
assert tensor == 1 or os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS") == "1"
dist.init_process_group(backend=args.distributed_backend, world_size=world, rank=rank, timeout=datetime.timedelta(minutes=args.distributed_timeout_minutes))
assert rank % tensor == local
sums = {}
for kind, members in [("tensor", list(range(first, first + tensor))) for first in range(0, world, tensor)] + [
        ("data", list(range(first, world, tensor))) for first in range(tensor)]:
    group = dist.new_group(members)
    if rank in members:
        sums[kind] = reduced(group)
        assert sums[kind] == sum(2 ** member for member in members), (kind, sums)
for step in range(1, args.train_iters + 1):
    assert reduced() == 2 ** world - 1
    if rank == world - 1:
        print(f" iteration {step:8d}/{args.train_iters:8d} | consumed samples: {step * 8:12d} | elapsed time per iteration (ms): 10.0 | "
              f"learning rate: 1.000E-04 | global batch size:     8 | lm loss: {1 / step:.6E} | loss scale: 1.0 | grad norm: 1.000 | "
              "number of skipped iterations:   0 | number of nan iterations:   0 |", flush=True)
print(f"rank {rank} tensor {sums['tensor']} data {sums['data']}", flush=True)
"""
    + END
)


class Nodes:
    """The two nodes, their networks and their cluster. `names`: of each node's control and training interface. `address`: which one agents are given, if any."""

    def __init__(self, names, address):
        self.names, self.address = names, address
        self.cluster = Cluster()
        self.made = []
        self.agents = []

    def __enter__(self):
        try:
            self._links()
            self._daemons()
        except BaseException as error:
            self.close()
            if isinstance(error, subprocess.CalledProcessError):
                raise AssertionError(f"{' '.join(error.cmd)}: {error.stderr}") from error
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            self.cluster.close()
        finally:
            # Interfaces by name: those of a namespace that is deleted go when the kernel finds the time, and the next test makes the same ones.
            for number, node in enumerate(self.made):
                subprocess.run(
                    ["ip", "link", "del", f"c{number}"], capture_output=True, check=False
                )
                ip("netns", "del", node)
            self.made = []
            subprocess.run(
                ["ip", "addr", "del", f"{CONTROLLER}/32", "dev", "lo"],
                capture_output=True,
                check=False,
            )

    def _links(self):
        ip("link", "set", "lo", "up")
        ip("addr", "add", f"{CONTROLLER}/32", "dev", "lo")
        for number, (control, _) in enumerate(self.names):
            node, own = f"n{number}", f"10.77.0.{1 + 4 * number}"
            ip("netns", "add", node)
            self.made.append(node)
            ip("-n", node, "link", "set", "lo", "up")
            ip("link", "add", f"c{number}", "type", "veth", "peer", "name", control, "netns", node)
            ip("addr", "add", f"{own}/30", "dev", f"c{number}")
            ip("link", "set", f"c{number}", "up")
            ip("-n", node, "addr", "add", f"{CONTROL[number]}/30", "dev", control)
            ip("-n", node, "link", "set", control, "up")
            ip("-n", node, "route", "add", CONTROLLER, "via", own)
        (_, first), (_, second) = self.names
        ip("-n", "n0", "link", "add", first, "type", "veth", "peer", "name", second, "netns", "n1")
        for node, name, address in (("n0", first, TRAINING[0]), ("n1", second, TRAINING[1])):
            ip("-n", node, "addr", "add", f"{address}/24", "dev", name)
            ip("-n", node, "link", "set", name, "up")
        for node, other in (("n0", 1), ("n1", 0)):
            answer = subprocess.run(
                ["ip", "-n", node, "route", "get", CONTROL[other]],
                capture_output=True,
                text=True,
                check=False,
            )
            if answer.returncode == 0:
                raise AssertionError(
                    f"{node} reaches the other node over the control network, and no wrong choice would be noticed: {answer.stdout}"
                )

    def _daemons(self):
        cluster = self.cluster
        cluster.controller(listen=f"{CONTROLLER}:0")
        for number, address in enumerate(self.address):
            inside = ["nsenter", f"--net=/run/netns/n{number}"]
            self.agents.append(
                cluster.agent(
                    f"n{number}",
                    args=["--cgroup", "none"],
                    address=address,
                    before=inside,
                    wait=False,
                    tcp=True,
                )
            )
        for number in (0, 1):
            cluster.wait_event(
                lambda event, name=f"n{number}": event["type"] == "node-registered"
                and event["node"] == name
            )

    def inventory(self, number):
        return json.loads(
            self.cluster.muster("node", "show", f"n{number}", "-o", "json", code=0).out
        )["inventory"]

    def bytes_over(self, number, name):
        """Received so far, by this interface of this node."""
        answer = subprocess.run(
            ["ip", "-n", f"n{number}", "-s", "-j", "link", "show", name],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        return json.loads(answer)[0]["stats64"]["rx"]["bytes"]

    def run(self, name, script, engine="torch", args="", devices=1, env=None, more=""):
        """How the job ended, and what all its ranks printed."""
        path = self.cluster.write(f"train_{name}.py", script)
        spec = self.cluster.spec(f"name: {name}\nengine: {engine}\nruntime: {{python: /usr/bin/python3, env: {json.dumps(env or {})}}}\n"
                                 f"launch: {{script: {path}, args: {json.dumps(args)}}}\n"
                                 f"resources: {{nodes: 2, devices: {devices}, type: cpu}}\nrecovery: {{max_restarts: 0}}\n{more}\n")  # fmt: skip
        done = self.cluster.muster(
            "run", "-q", spec, "--timeout", f"{PATIENCE:.0f}s", within=PATIENCE + 30
        )
        return done, self.cluster.muster("logs", name, "-f", code=0).out

    def variables(self, name, rank):
        launch = json.loads(
            self.cluster.muster("env", name, "--rank", rank, "-o", "json", code=0).out
        )
        return {value["name"]: value["value"] for value in launch["env"]}


class Auto(unittest.TestCase):
    """network.interface: auto: the interface that has the training address that agents were given, whatever it is called on each node."""

    NAMES = (("eth0", "eth1"), ("eth1", "eth0"))
    ADDRESS = TRAINING

    @classmethod
    def setUpClass(cls):
        cls.nodes = Nodes(cls.NAMES, cls.ADDRESS)
        cls.nodes.__enter__()
        cls.addClassCleanup(cls.nodes.close)

    def assert_over_training(self, before):
        payload = 4 * FLOATS
        for number, (control, training) in enumerate(self.NAMES):
            self.assertGreater(
                self.nodes.bytes_over(number, training) - before[number][1],
                payload,
                f"n{number}: the training network carries the tensors",
            )
            self.assertLess(
                self.nodes.bytes_over(number, control) - before[number][0],
                payload,
                f"n{number}: the control network does not",
            )

    def counted(self):
        return [
            tuple(self.nodes.bytes_over(number, name) for name in names)
            for number, names in enumerate(self.NAMES)
        ]

    def test_torch(self):
        before = self.counted()
        done, output = self.nodes.run("torch", TORCH)
        self.assertEqual(done.code, 0, f"{done}\n{output}")
        for rank in (0, 1):
            self.assertIn(f"rank {rank} of 2 sums 3", output)
            env = self.nodes.variables("torch", rank)
            self.assertEqual(
                (env["MASTER_ADDR"], env["GLOO_SOCKET_IFNAME"]), (TRAINING[0], self.NAMES[rank][1])
            )
        self.assert_over_training(before)

    def test_megatron(self):
        before = self.counted()
        args = ("--tensor-model-parallel-size 2 --distributed-backend gloo --distributed-timeout-minutes 1 --train-iters 3 --save-interval 10 "
                "--save /run/none --load /run/none")  # fmt: skip
        done, output = self.nodes.run("megatron", MEGATRON, "megatron", args, devices=2)
        self.assertEqual(done.code, 0, f"{done}\n{output}")
        for rank, (tensor, data) in enumerate([(3, 5), (3, 10), (12, 5), (12, 10)]):
            self.assertIn(f"rank {rank} tensor {tensor} data {data}", output)
        self.assert_over_training(before)
        events = self.nodes.cluster.muster(
            "events", "megatron", "-o", "jsonl", code=0
        ).out.splitlines()
        self.assertIn("first-step", [json.loads(line)["type"] for line in events])

    def test_a_wrong_interface_fails_the_job(self):
        """What the tests above rest on: with the control network's interface, which an unset variable would leave to chance, the ranks do not meet."""
        for number, (control, _) in enumerate(self.NAMES):
            # One name for both nodes: it is wrong on one of them, and that is enough.
            done, output = self.nodes.run(
                f"wrong-{number}", TORCH, env={"GLOO_SOCKET_IFNAME": control}
            )
            self.assertEqual(done.code, 1, f"{done}\n{output}")
            self.assertNotIn("sums", output)
            self.assertRegex(output, r"RuntimeError: \[\S*gloo/")


class Routed(Auto):
    """The same of agents that nobody gave an address: the one that they find is on the control network, and their routes tell the training network."""

    ADDRESS = (None, None)

    def test_what_they_found(self):
        for number, (control, training) in enumerate(self.NAMES):
            inventory = self.nodes.inventory(number)
            self.assertEqual(inventory["address"], CONTROL[number])
            self.assertFalse(inventory["addressGiven"])
            routes = {
                route["destination"]: (route["interface"], route.get("source"), route["connected"])
                for route in inventory["routes"]
            }
            self.assertEqual(routes["10.78.0.0/24"], (training, TRAINING[number], True))
            self.assertEqual(routes[f"{CONTROLLER}/32"], (control, None, False))


class NoWay(unittest.TestCase):
    def test_nodes_that_do_not_meet_are_refused_before_anything_starts(self):
        with Nodes((("ctl", "train"), ("ctl", "train")), (None, None)) as nodes:
            ip("-n", "n1", "link", "set", "train", "down")
            wait_until(
                lambda: all(route["interface"] == "ctl" for route in nodes.inventory(1)["routes"]),
                nodes.agents[1].pid_fd,
                what="n1's routes",
            )
            spec = nodes.cluster.spec(
                'name: apart\nengine: command\nlaunch: {run: "true"}\nresources: {nodes: 2, devices: 1, type: cpu}\n'
            )
            refused = nodes.cluster.muster("run", "-d", spec, code=2)
            self.assertIn(
                f"'n1' has no route to {CONTROL[0]}, the training address of 'n0'", refused.err
            )
            self.assertIn("network.interface", refused.err)


class WrongAddress(unittest.TestCase):
    def test_the_address_towards_the_controller_is_not_the_training_network(self):
        """Agents that were given the control network's addresses: the job cannot meet over them, and says so instead of hanging."""
        with Nodes((("ctl", "train"), ("ctl", "train")), CONTROL) as nodes:
            done, output = nodes.run("wrong", TORCH)
            self.assertEqual(done.code, 1, f"{done}\n{output}")
            self.assertNotIn("sums", output)
            self.assertIn("failed to connect to any network address of (10.77.0.2", output)
            self.assertEqual(nodes.variables("wrong", 0)["MASTER_ADDR"], CONTROL[0])


class Named(unittest.TestCase):
    def test_the_interface_of_the_spec(self):
        """network.interface names the training network, where the nodes' own address is another: its interface, and its address for the master."""
        with Nodes((("ctl", "train"), ("ctl", "train")), CONTROL) as nodes:
            done, output = nodes.run("named", TORCH, more="network: {interface: train}")
            self.assertEqual(done.code, 0, f"{done}\n{output}")
            for rank in (0, 1):
                self.assertIn(f"rank {rank} of 2 sums 3", output)
                env = nodes.variables("named", rank)
                self.assertEqual(
                    (env["MASTER_ADDR"], env["GLOO_SOCKET_IFNAME"]), (TRAINING[0], "train")
                )


def without_torch():
    found = (
        subprocess.run(
            ["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False
        ).returncode
        == 0
    )
    return "" if found else "there is no python3-torch"


if __name__ == "__main__":
    namespaces.main(
        ("ip", "nsenter"),
        "ip netns add n && ip link add va type veth peer name vb netns n",
        without_torch,
    )
