#!/usr/bin/python3
"""`muster node rename`: a machine gets another name, over the unix socket and over TCP with a token.

Run:  /usr/bin/python3 -B tests/integration/rename_test.py [-v] [CASE]
"""

import json
import os
import stat
import unittest

from cluster import Cluster, wait_until


class Rename(unittest.TestCase):
    def node(self, cluster, name):
        return json.loads(cluster.output("node", "show", name, "-o", "json"))

    def away(self, cluster, name):
        cluster.daemon(name).stop()
        wait_until(
            lambda: not self.node(cluster, name).get("connected"), what=f"{name} is not connected"
        )

    def names(self, cluster):
        return cluster.output("node", "ls", "-o", "name").split()

    def test_labels_and_drain_go_along(self):
        with Cluster(nodes=2) as cluster:
            job = cluster.submit(
                'name: before\nengine: command\nlaunch: {run: "true"}\n'
                "resources: {devices: 1, type: cpu, hosts: [n1]}\n"
            )
            cluster.wait(job)
            cluster.muster("node", "label", "n1", "rack=r1", code=0)
            cluster.muster("node", "drain", "n1", "--why", "moves to r2", code=0)
            done = cluster.muster("node", "rename", "n1", "m1", code=12)
            self.assertIn("renaming node 'n1': its agent is connected", done.err)
            self.away(cluster, "n1")
            done = cluster.muster("node", "rename", "n1", "n0", code=12)
            self.assertIn("there is a node 'n0'", done.err)
            cluster.muster("node", "rename", "n9", "m1", code=10)
            cluster.muster("node", "rename", "n1", "-m", code=64)
            cluster.muster("node", "rename", "n1", "m/1", code=64)

            done = cluster.muster("node", "rename", "n1", "m1", code=0)
            self.assertEqual(done.out.splitlines()[0], "n1 renamed to m1")
            self.assertRegex(done.out, r"(?m)^next +start the agent there with --name m1 ")
            self.assertEqual(self.names(cluster), ["m1", "n0"])
            events = [json.loads(line) for line in cluster.output("events", "-o", "jsonl").splitlines()]  # fmt: skip
            (event,) = [one for one in events if one["type"] == "node-renamed"]
            self.assertRegex(event["text"], r"^node 'n1' was renamed to 'm1' by \S+$")

            # The same machine, with the same state directory. Also after a restart of the controller.
            cluster.restart("controller")
            cluster.agent("m1", state=cluster.agent_dir("n1"))
            node = self.node(cluster, "m1")
            self.assertEqual(node["labels"], {"rack": "r1"})
            self.assertEqual(node["drain"]["why"], "moves to r2")
            cluster.muster("node", "undrain", "m1", code=0)
            after = cluster.submit(
                'name: after\nengine: command\nlaunch: {run: "true"}\n'
                "resources: {devices: 1, type: cpu, hosts: [m1]}\n"
            )
            cluster.wait(after)
            self.assertEqual(cluster.show(job)["attempts"][-1]["nodes"][0]["node"], "n1")

    def test_something_of_a_job_may_be_there(self):
        with Cluster(nodes=1) as cluster:
            spec = cluster.stub("there", "--steps", 1000000, "--step-ms", 20, nodes=1, devices=1)
            job = cluster.submit(spec)
            cluster.wait_event(lambda event: event["type"] == "node-started", job)
            self.away(cluster, "n0")
            done = cluster.muster("node", "rename", "n0", "m0", code=12)
            self.assertIn("attempt 1 of job 'there' may still be there", done.err)
            cluster.start("n0")
            cluster.muster("cancel", job, code=0)
            cluster.wait(job, code=3)

    def test_over_tcp_it_joins_again(self):
        with Cluster() as cluster:
            access = cluster.write("access.yaml", "users: {ann: operator, bob: user}\n")
            cluster.controller("--enrol", "127.0.0.1:0", "--access", access, listen="127.0.0.1:0")
            cluster.agent("n0", tcp=True)
            self.away(cluster, "n0")
            done = cluster.muster(
                "node", "rename", "n0", "m0", env=self.by(cluster, "bob"), code=11
            )
            self.assertIn("the role 'operator' is needed", done.err)

            token = cluster.path("m0.token")
            done = cluster.muster("node", "rename", "n0", "m0", "-o", token, code=0)
            self.assertEqual(stat.S_IMODE(os.stat(token).st_mode), 0o600)
            with open(token, encoding="utf-8") as file:
                self.assertNotIn(file.read().split(":")[2], done.out + done.err)
            listed = {one.get("node"): one for one in json.loads(cluster.output("cert", "ls", "-o", "json"))["items"]}  # fmt: skip
            self.assertIn("revokedAt", listed["n0"])
            # What exists is not written over, and then nothing is renamed.
            cluster.muster("node", "rename", "m0", "x0", "-o", token, code=12)
            self.assertEqual(self.names(cluster), ["m0"])

            # With its old certificate the machine is no node any more.
            old = cluster.agent("n0", tcp=True, state=cluster.agent_dir("n0"), wait=False)
            old.wait_for("the node was renamed to 'm0'")
            old.stop()
            cluster.agent(
                "m0",
                state=cluster.agent_dir("n0"),
                controller=cluster.tcp_address(),
                args=("--enrol", cluster.announced()["enrol"], "--join", token),
            )
            self.assertEqual(self.names(cluster), ["m0"])
            cluster.trivial()

    def test_a_removed_node_of_the_new_name_stays_out(self):
        """Regression: with its certificate, which nobody had revoked, it came back as the renamed node."""
        with Cluster() as cluster:
            cluster.controller("--enrol", "127.0.0.1:0", listen="127.0.0.1:0")
            for name in ("n1", "n2"):
                cluster.agent(name, tcp=True)
                self.away(cluster, name)
            cluster.muster("node", "label", "n1", "rack=r1", code=0)
            cluster.muster("node", "rm", "n2", code=0)
            token = cluster.path("n2.token")
            cluster.muster("node", "rename", "n1", "n2", "-o", token, code=0)

            removed = cluster.agent("n2", tcp=True, wait=False)
            removed.wait_for("was revoked: node 'n1' was renamed to 'n2'")
            self.assertFalse(self.node(cluster, "n2").get("connected"))
            removed.stop()
            cluster.agent(
                "n2",
                state=cluster.agent_dir("n1"),
                controller=cluster.tcp_address(),
                args=("--enrol", cluster.announced()["enrol"], "--join", token),
            ).wait_for("attached to the controller")
            self.assertEqual(self.node(cluster, "n2")["labels"], {"rack": "r1"})
            cluster.trivial()

    def by(self, cluster, user):
        return {**cluster.env, **cluster.over_tcp(user)}


if __name__ == "__main__":
    unittest.main()
