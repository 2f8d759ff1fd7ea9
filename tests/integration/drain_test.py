#!/usr/bin/python3
"""What an operator does with nodes on the first day: drain and undrain, label, rm; `cluster status` and `doctor`.

Run:  /usr/bin/python3 tests/integration/drain_test.py [-v] [CASE]
"""

import json
import os
import pwd
import unittest

from cluster import DEADLINE, Cluster, Trace, wait_until
from screen import Screen

STEPS = ["--steps", "1000000", "--step-ms", "20", "--save-interval", "5", "--save", "${save.dir}", "--load", "${resume.dir}"]  # fmt: skip


class Drain(unittest.TestCase):
    maxDiff = None
    me = pwd.getpwuid(os.getuid()).pw_name

    def node(self, cluster, name):
        return json.loads(cluster.output("node", "show", name, "-o", "json"))

    def states(self, cluster):
        rows = cluster.output("node", "ls").splitlines()[1:]
        return {row.split()[0]: row.split()[1] for row in rows}

    def placed_on(self, cluster, job):
        return [node["node"] for node in cluster.show(job)["attempts"][-1]["nodes"]]

    def begin(self, cluster, name, **recovery):
        """A job on one node that trains without end, and its trace."""
        trace = Trace(cluster, name)
        spec = cluster.stub(name, *STEPS, "--trace", trace.path, nodes=1)
        spec["recovery"].update(recovery)
        return cluster.submit(spec), trace

    def ended_by_cancel(self, cluster, job):
        cluster.muster("cancel", job, code=0)
        cluster.wait(job, code=3)

    def test_at_the_deadline_the_job_goes_on_on_another_node(self):
        """It loses no restart, and goes on from its last checkpoint; the empty node is drained, also over restarts of both daemons."""
        with Cluster(nodes=2, devices=2) as cluster:
            job, trace = self.begin(cluster, "moved", max_restarts=0)
            trace.wait(job, 12)
            self.assertEqual(self.placed_on(cluster, job), ["n0"])

            done = cluster.muster("node", "drain", "n0", "--why", "new disk", code=0)
            self.assertEqual(done.out.splitlines()[0], "n0 draining")
            self.assertEqual(self.states(cluster), {"n0": "draining", "n1": "ready"})
            self.assertIn(
                f"node 'n0' drains ({self.me}: new disk); attempt 1 goes on there until it ends",
                cluster.output("why", job),
            )
            cluster.muster("node", "drain", "n0", "--deadline", "0s", code=0)
            broke = cluster.wait_event(lambda event: event["type"] == "attempt-broke", job)
            self.assertIn(f"node 'n0' drains ({self.me}: new disk)", broke["text"])
            cluster.wait_event(
                lambda event: event["type"] == "first-step" and event.get("attempt") == 2, job
            )
            shown = cluster.show(job)
            first, second = shown["attempts"]
            self.assertEqual(first["verdict"]["class"], "operator")
            self.assertEqual([node["node"] for node in second["nodes"]], ["n1"])
            self.assertGreaterEqual(second["resume"]["step"], 5)
            wait_until(lambda: self.states(cluster)["n0"] == "drained", what="n0 is drained")

            # A second job has no room, and says why. The drain is a fact.
            waits, _ = self.begin(cluster, "waits")
            cluster.restart("controller")
            cluster.restart("n0")
            cluster.restart("n1")
            wait_until(
                lambda: f"'n0' drains ({self.me}: new disk)" in cluster.muster("why", waits).out,
                what="why names the drained node",
            )
            drain = self.node(cluster, "n0")["drain"]
            self.assertEqual((drain["actor"], drain["why"]), (self.me, "new disk"))
            shown = cluster.output("node", "show", "n0")
            self.assertRegex(shown, rf"(?m)^drain +by {self.me} since .+: new disk$")
            self.assertNotIn("deadline", shown)  # nothing is being stopped there any more

            done = cluster.muster("node", "undrain", "n0", code=0)
            self.assertEqual(done.out.split()[0], "n0")
            cluster.wait_event(lambda event: event["type"] == "node-started", waits)
            self.assertEqual(self.placed_on(cluster, waits), ["n0"])
            for one in (job, waits):
                self.ended_by_cancel(cluster, one)

    def test_the_actor_over_tcp_is_the_certificates_user(self):
        with Cluster() as cluster:
            access = cluster.write("access.yaml", "users: {ann: operator}\n")
            cluster.controller("--access", access, listen="127.0.0.1:0")
            cluster.agent("n0", tcp=True)
            cluster.env.update(cluster.over_tcp("ann"))
            cluster.muster("node", "drain", "n0", code=0)
            self.assertEqual(self.node(cluster, "n0")["drain"]["actor"], "ann")
            out = cluster.output("doctor")
            self.assertRegex(out, r"(?m)^ok +this client +certificate: ends in ")
            wait_until(
                lambda: "certificate: ends in"
                in cluster.muster("doctor").out.split("node n0", 1)[1],
                what="the agent has reported its certificate",
            )

    def test_labels(self):
        with Cluster(nodes=2, agent_args=("--label", "zone=a")) as cluster:
            done = cluster.muster("node", "label", "n1", "rack=r1", "zone=b", code=0)
            self.assertEqual(done.out, "n1 rack=r1,zone=b\n")
            self.assertEqual(
                cluster.output("node", "ls", "-l", "rack=r1", "-o", "name").split(), ["n1"]
            )
            self.assertEqual(
                cluster.output("node", "ls", "-l", "zone=a", "-o", "name").split(), ["n0"]
            )
            done = cluster.muster("node", "ls", "-l", "rack=r1", "-l", "zone=a", code=0)
            self.assertEqual(done.out, "")
            self.assertIn(
                "no node has the labels rack=r1 and zone=a; 2 nodes have registered", done.err
            )
            job = cluster.submit(
                'name: selects\nengine: command\nlaunch: {run: "true"}\n'
                "resources: {devices: 1, type: cpu, select: {zone: b}}\n"
            )
            cluster.wait(job)
            self.assertEqual(self.placed_on(cluster, job), ["n1"])
            done = cluster.muster("node", "label", "n1", "zone-", "rack-", code=0)
            self.assertEqual(done.out, "n1 zone=a\n")
            twice = cluster.muster("node", "label", "n1", "a=b", "a-", code=64)
            self.assertIn("the label 'a' is there twice", twice.err)
            done = cluster.muster("node", "label", "n1", "zone-", code=10)
            self.assertIn("it is of the node's agent (--label)", done.err)
            done = cluster.muster("node", "label", "n1", "a b=c", code=64)
            self.assertIn("a key holds letters", done.err)

    def test_rm(self):
        with Cluster(nodes=2) as cluster:
            job, trace = self.begin(cluster, "there")
            trace.wait(job, 3)
            done = cluster.muster("node", "rm", "n1", code=12)
            self.assertIn("its agent is connected", done.err)
            cluster.daemon("n1").stop()
            wait_until(
                lambda: not self.node(cluster, "n1").get("connected"), what="n1 is not connected"
            )
            self.assertEqual(cluster.output("node", "rm", "n1"), "n1 removed\n")
            self.assertEqual(cluster.output("node", "ls", "-o", "name").split(), ["n0"])
            cluster.muster("node", "show", "n1", code=10)
            cluster.restart("controller")
            self.assertEqual(cluster.output("node", "ls", "-o", "name").split(), ["n0"])
            cluster.start("n1")  # the name is free
            wait_until(
                lambda: cluster.output("node", "ls", "-o", "name").split() == ["n0", "n1"],
                what="n1 is back",
            )
            # One whose ranks live goes only after it was declared dead.
            cluster.kill("n0")
            wait_until(
                lambda: not self.node(cluster, "n0").get("connected"), what="n0 is not connected"
            )
            done = cluster.muster("node", "rm", "n0", code=12)
            self.assertIn("attempt 1 of job 'there' may still be there", done.err)
            cluster.start("n0")
            self.ended_by_cancel(cluster, job)

    def test_cluster_status(self):
        with Cluster(nodes=2) as cluster:
            cluster.trivial()
            cluster.muster("node", "drain", "n1", code=0)
            out = cluster.output("cluster", "status")
            for wanted in (
                r"(?m)^controller +\S+, pid \d+$",
                r"(?m)^address +unix:",
                r"(?m)^enrolment +off$",
                r"(?m)^uptime +\S+$",
                r"(?m)^journal +newest row \d+, [\d.]+ [KM]iB$",
                r"(?m)^disk +.+ of .+ free$",
                r"(?m)^agents +1 drained, 1 ready$",
                r"(?m)^jobs +1 succeeded$",
            ):
                self.assertRegex(out, wanted)
            status = json.loads(cluster.output("cluster", "status", "-o", "json"))
            self.assertEqual(status["kind"], "ClusterStatus")
            self.assertEqual(status["enrolAddress"], "")
            self.assertEqual(status["phases"], [{"phase": "succeeded", "jobs": 1}])
            self.assertGreater(status["journalBytes"], 0)
            self.assertGreater(status["diskBytesFree"], 0)

    def test_doctor(self):
        with Cluster(nodes=2) as cluster:
            wait_until(
                lambda: "disk: " in cluster.muster("doctor").out.split("node n1", 1)[1],
                what="both agents have reported their disks",
            )
            done = cluster.muster("doctor")
            self.assertNotIn("bad", [line.split()[0] for line in done.out.splitlines()], done)
            self.assertEqual(done.code, 0, done)
            for wanted in (
                r"(?m)^ok +controller +reachable: unix:\S+ answers in ",
                r"(?m)^ok +controller +version: ",
                r"(?m)^ok +this machine +clock: ",
                r"(?m)^ok +node n0 +connection: connected, heard ",
                r"(?m)^ok +node n1 +clock: within 5\.0s",
                r"(?m)^(ok|warn) +node n1 +disk: \S+: .+ free",
            ):
                self.assertRegex(done.out, wanted)
            checks = json.loads(cluster.output("doctor", "-o", "json"))
            self.assertEqual(checks["kind"], "CheckList")
            self.assertIn("reachable", [one["check"] for one in checks["items"]])

            cluster.kill("n1")
            wait_until(
                lambda: not self.node(cluster, "n1").get("connected"), what="n1 is not connected"
            )
            done = cluster.muster("doctor", code=1)
            self.assertRegex(done.out, r"(?m)^bad +node n1 +connection: ")
            cluster.kill("controller")
            done = cluster.muster("doctor", code=1)
            self.assertRegex(done.out, r"(?m)^bad +controller +reachable: calling the controller")
            os.unlink(cluster.endpoint)
            done = cluster.muster("doctor", code=1)
            self.assertRegex(done.out, r"(?m)^bad +controller +endpoint: finding a controller")
            cluster.start("controller")
            cluster.start("n1")

    def test_on_a_terminal_of_80_columns(self):
        with Cluster(nodes=1) as cluster:
            cluster.muster(
                "node", "drain", "n0", "--why", "a new disk, " * 12 + "and a fan", code=0
            )
            for command in (("doctor",), ("cluster", "status"), ("node", "show", "n0")):
                with Screen(
                    cluster.command(*command),
                    cluster.env,
                    cwd=cluster.dir,
                    patience=DEADLINE,
                    columns=80,
                ) as screen:
                    self.assertEqual(screen.wait(), 0, screen)
                    if command != ("node", "show", "n0"):
                        self.assertFalse(
                            any(screen.wrapped), f"{command}: a row was too long\n{screen}"
                        )


if __name__ == "__main__":
    unittest.main()
