#!/usr/bin/python3
"""Where outputs of jobs are: --outputs-root, which nodes see the same files there, and what checkpoint.storage makes of it. Nodes with disks of their own are
agents in mount namespaces.

Run:  /usr/bin/python3 -B tests/integration/outputs_test.py [-v] [CASE]       (needs root for disks of nodes' own)
"""

import json
import os
import re
import unittest

from cluster import Cluster, wait_until
from own_disks import WHY_NOT, may_mount, own_disk, read_only

STEPS = ["--steps", "4", "--step-ms", "10", "--save-interval", "2", "--save", "${save.dir}", "--load", "${resume.dir}"]  # fmt: skip


class OutputsTest(unittest.TestCase):
    maxDiff = None

    def start(self, cluster, *args):
        root = cluster.path("shared", "out")
        os.makedirs(root, exist_ok=True)
        cluster.controller("--outputs-root", root, *args)
        return root

    def nodes(self, cluster):
        answer = json.loads(cluster.output("node", "ls", "-o", "json"))
        return {node["name"]: node for node in answer["items"]}

    def storages(self, cluster, wanted):
        """Waits until the storage of so many nodes is known, and returns it by node."""

        def known():
            nodes = self.nodes(cluster).items()
            found = {name: node.get("outputs", {}).get("storage", "") for name, node in nodes}
            return {name: storage for name, storage in found.items() if storage}

        wait_until(lambda: len(known()) == wanted, what=f"the storage of {wanted} nodes is known")
        return known()

    def job(self, cluster, name, hosts=(), nodes=2, storage=None):
        spec = cluster.stub(name, *STEPS, nodes=nodes, devices=1)
        if hosts:
            spec["resources"]["hosts"] = list(hosts)
        if storage:
            spec["checkpoint"] = {"storage": storage}
        return cluster.spec(json.dumps(spec))

    def placed_on(self, cluster, job):
        return [node["node"] for node in cluster.show(job)["attempts"][-1]["nodes"]]


@unittest.skipUnless(may_mount(), WHY_NOT)
class OwnDisks(OutputsTest):
    def test_nodes_that_do_not_share_the_storage(self):
        with Cluster() as cluster:
            root = self.start(cluster)
            disk = cluster.path("disk-n2")
            os.makedirs(disk)
            cluster.agent("n0")
            cluster.agent("n1")
            cluster.agent("n2", before=own_disk(disk, root))
            storages = self.storages(cluster, 3)
            self.assertEqual(storages["n0"], storages["n1"])
            self.assertNotEqual(storages["n0"], storages["n2"])
            self.assertEqual(os.listdir(disk), [".muster"])

            wide = cluster.output("node", "ls", "-o", "wide")
            self.assertRegex(wide, rf"(?m)^n1 .* {storages['n0']} \(2\) ")
            self.assertRegex(wide, rf"(?m)^n2 .* {storages['n2']} \(1\) ")
            shown = cluster.output("node", "show", "n0")
            self.assertRegex(shown, rf"(?m)^outputs +{root}: shared by 2 nodes")
            self.assertIn(
                f"{root}: the nodes have 2 different storages there",
                " ".join(cluster.output("cluster", "status").split()),
            )
            checks = json.loads(cluster.muster("doctor", "-o", "json").out)["items"]
            apart = [one for one in checks if (one["subject"], one["check"]) == ("cluster", "outputs")]  # fmt: skip
            self.assertEqual([one["level"] for one in apart], ["warn"])

            # auto: a warning that names the nodes.
            names = r"see the same files in '\S+' \(storage of 'n0', 'n2'\): what a node saves there is lost with the node"
            done = cluster.muster("plan", self.job(cluster, "auto", ["n0", "n2"]), code=0)
            self.assertRegex(" ".join((done.out + done.err).split()), names)
            done = cluster.muster("run", "-d", self.job(cluster, "auto", ["n0", "n2"]), code=0)
            self.assertRegex(" ".join(done.err.split()), names)
            cluster.jobs.append(done.out.split()[0])
            cluster.wait(done.out.split()[0])
            done = cluster.muster("plan", self.job(cluster, "same", ["n0", "n1"]), code=0)
            self.assertNotIn("see the same files", " ".join((done.out + done.err).split()))
            local = self.job(cluster, "local", ["n0", "n2"], storage="local")
            done = cluster.muster("plan", local, code=0)
            self.assertNotIn("see the same files", " ".join((done.out + done.err).split()))

            # shared: only nodes that share it, or not at all.
            shared = self.job(cluster, "apart", ["n0", "n2"], storage="shared")
            done = cluster.muster("run", "-d", shared, code=2)
            self.assertIn(
                "checkpoint.storage: shared, but at most 1 of the nodes that could do see the same files",
                " ".join(done.err.split()),
            )
            job = cluster.submit(
                json.dumps({
                    **cluster.stub("together", *STEPS, nodes=2, devices=1),
                    "checkpoint": {"storage": "shared"},
                })
            )  # fmt: skip
            cluster.wait(job)
            self.assertEqual(self.placed_on(cluster, job), ["n0", "n1"])

    def test_a_directory_that_cannot_be_written(self):
        with Cluster() as cluster:
            root = self.start(cluster)
            cluster.agent("n0", before=read_only(root))

            def trouble():
                return self.nodes(cluster)["n0"].get("outputs", {}).get("trouble", "")

            wait_until(trouble, what="the agent has reported it")
            self.assertIn("Read-only file system", trouble())
            self.assertEqual(os.listdir(root), [])
            self.assertRegex(cluster.output("node", "ls", "-o", "wide"), r"(?m)^n0 .* error ")
            self.assertRegex(
                cluster.muster("doctor").out, r"(?m)^warn +node n0 +outputs: jobs cannot save there"
            )


class OutputsRoot(OutputsTest):
    def test_an_accepted_job_keeps_its_directory(self):
        """The controller is started with another root; each job has its checkpoints where they were when it was accepted."""
        with Cluster() as cluster:
            cluster.controller()
            cluster.agent("n0")
            default = cluster.path("controller", "outputs")
            status = json.loads(cluster.output("cluster", "status", "-o", "json"))
            self.assertEqual(status["outputsRoot"], default)
            first = cluster.submit(cluster.stub("first", *STEPS, nodes=1, devices=1))
            cluster.wait(first)
            cluster.kill("controller")
            root = self.start(cluster)
            wait_until(lambda: self.nodes(cluster)["n0"].get("connected"), what="n0 is back")
            second = cluster.submit(cluster.stub("second", *STEPS, nodes=1, devices=1))
            cluster.wait(second)
            cluster.kill("controller")
            cluster.controller("--outputs-root", cluster.path("third"))
            wait_until(lambda: self.nodes(cluster)["n0"].get("connected"), what="n0 is back")
            self.assertEqual(cluster.show(first)["outputDir"], f"{default}/{first}")
            self.assertEqual(cluster.show(second)["outputDir"], f"{root}/{second}")
            for place, job in ((default, first), (root, second)):
                self.assertTrue(os.path.isdir(os.path.join(place, job, "checkpoints", "attempt-1")))
            # The agent checks the newest one.
            wait_until(
                lambda: self.nodes(cluster)["n0"].get("outputs", {}).get("root")
                == cluster.path("third"),
                what="the agent checks the new directory",
            )
            self.assertTrue(os.path.exists(cluster.path("third", ".muster", "storage")))

    def test_one_mark_for_each_agent(self):
        with Cluster() as cluster:
            root = self.start(cluster)
            for name in ("n0", "n1", "n2"):
                cluster.agent(name)
            self.assertEqual(len(set(self.storages(cluster, 3).values())), 1)
            cluster.restart("n1")
            wait_until(
                lambda: self.nodes(cluster)["n1"].get("outputs", {}).get("nodes") == 3,
                what="n1 is back, and all share it",
            )
            marks = os.listdir(os.path.join(root, ".muster", "seen"))
            self.assertEqual(len(marks), 3, marks)
            self.assertTrue(all(re.fullmatch(r"[0-9a-f]+\.\d+", mark) for mark in marks), marks)
            self.assertRegex(
                cluster.output("cluster", "status"),
                rf"(?m)^outputs +{root}: 3 of 3 connected nodes share it$",
            )


if __name__ == "__main__":
    unittest.main()
