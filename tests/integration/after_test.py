#!/usr/bin/python3
"""schedule.after on a real cluster: a chain whose controller is killed at the hand-over, a chain behind a job that fails, and a cancel while it waits.

Run:  /usr/bin/python3 tests/integration/after_test.py [-v]
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import SLOW, Cluster, Trace, wait_gone, wait_until  # noqa: E402

STEPS, STEP_MS = 1000 * SLOW, 10


class After(unittest.TestCase):
    def behind(self, cluster, name, after, *args):
        spec = cluster.stub(name, *args, devices=1, nodes=1)
        spec["schedule"] = {"after": after}
        return spec

    def why(self, cluster, job):
        return cluster.output("why", job)

    def test_chain_and_a_killed_controller(self):
        with Cluster(nodes=1, devices=2) as cluster:
            first, second = Trace(cluster, "first"), Trace(cluster, "second")
            one = cluster.submit(
                cluster.stub(
                    "one", "--steps", STEPS, "--step-ms", STEP_MS, "--trace", first.path, devices=1
                )
            )
            two = cluster.submit(
                self.behind(cluster, "two", "one", "--steps", 3, "--trace", second.path)
            )
            three = cluster.submit(self.behind(cluster, "three", [two[:12], "one"], "--steps", 3))
            self.assertEqual(cluster.show(two)["resolved"]["after"], [one])
            self.assertEqual(cluster.show(three)["resolved"]["after"], [two, one])
            first.wait(one, 3)
            waits = f"waits for job 'one' ({one}), which is running, step "
            wait_until(  # the step comes with a heartbeat
                lambda: waits in self.why(cluster, two), what=f"the sentence: {waits}"
            )
            self.assertRegex(cluster.output("ps"), r"two +\w+ +queued .* behind one\n")
            # Both devices are there and one is free: it does not wait for that. What comes behind the waiting ones is not held up.
            other = cluster.submit(cluster.stub("other", "--steps", 3, devices=1))
            cluster.wait(other)

            cluster.restart("controller")
            self.assertIn(f"job 'one' ({one})", self.why(cluster, two))
            # The end of `one` comes while nobody listens: its worker and its agent keep it.
            ranks = cluster.rank_processes()
            cluster.kill("controller")
            for rank in ranks:
                self.assertTrue(wait_gone(rank), f"rank {rank.pid} does not end")
            self.assertEqual(second.read(), [])
            cluster.start("controller")
            cluster.wait(three)
            for job in (one, two, three):
                self.assertEqual(cluster.show(job)["phase"], "succeeded")
            # By what the ranks wrote down: not one step of `two` before the last one of `one`.
            self.assertEqual(first.best(), STEPS)
            self.assertGreater(second.read()[0].at, first.read()[-1].at)
            types = [event["type"] for event in cluster.events(three)]
            self.assertEqual(types.count("predecessor-succeeded"), 2)
            self.assertLess(types.index("predecessor-succeeded"), types.index("attempt-placed"))

    def test_failure_and_cancel(self):
        with Cluster(nodes=1, devices=1) as cluster:
            # It has the one device until the chain is there.
            gate = cluster.submit(
                cluster.stub("gate", "--steps", 10**6, "--step-ms", STEP_MS, devices=1)
            )
            spec = cluster.stub(
                "bad", "--steps", 100, "--step-ms", STEP_MS, "--exit-code-at", "3:7", devices=1
            )
            spec["recovery"]["max_restarts"] = 0
            bad = cluster.submit(spec)
            two = cluster.submit(self.behind(cluster, "two", "bad", "--steps", 3))
            three = cluster.submit(self.behind(cluster, "three", "two", "--steps", 3))
            cluster.output("cancel", gate)
            cluster.wait(three, code=3)
            cluster.wait(two, code=3)
            cluster.wait(bad, code=1)
            self.assertIn(f"because job 'bad' ({bad}) failed: ", self.why(cluster, three))
            self.assertEqual(
                [event["type"] for event in cluster.events(two)], ["job-submitted", "job-ended"]
            )
            # Behind it nothing is taken any more; what there is not is said apart.
            path = os.path.join(cluster.work, "two.yaml")
            self.assertEqual(
                cluster.muster(
                    "run", "-d", path, "--set", f"schedule.after={bad}", "--set", "name=late"
                ).code,
                2,
            )
            unknown = cluster.muster(
                "run", "-d", path, "--set", "schedule.after=nobody", "--set", "name=late"
            )
            self.assertEqual(unknown.code, 10)
            self.assertIn("the newest are 'three'", unknown.err)

            # A request that is repeated is the same job, though the spec that is stored has the id of what was typed as a name.
            long = cluster.submit(
                cluster.stub("long", "--steps", 10**6, "--step-ms", STEP_MS, devices=1)
            )
            submit = (
                "run",
                "-d",
                path,
                "--set",
                "schedule.after=long",
                "--set",
                "name=waiting",
                "--request-id",
                "once",
            )
            job = cluster.output(*submit).split()[0]
            self.assertEqual(cluster.output(*submit).split()[0], job)
            plan = cluster.output("plan", path, "--set", "schedule.after=long")
            self.assertRegex(
                plan,
                rf"^would wait: for job 'long' \({long}\), which is .*\nshown on nodes that are made up: ",
            )
            last = cluster.output("plan", path, "--set", "schedule.after='@last'")
            self.assertIn(
                f"would wait: for job 'waiting' ({job}), which is queued behind others", last
            )
            cluster.output("cancel", job)
            cluster.wait(job, code=3)
            cluster.output("cancel", long)
            cluster.wait(long, code=3)


if __name__ == "__main__":
    unittest.main()
