#!/usr/bin/python3
"""Chains on a real cluster: stages that read what others wrote, what is done and what runs again, their names, starts from another stage's checkpoint.

Run:  /usr/bin/python3 tests/integration/stages_test.py [-v]
"""

import json
import os
import re
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster, Trace, binary, wait_gone  # noqa: E402

ONCE = {
    "engine": "command",
    "resources": {"nodes": 1, "devices": 1, "type": "cpu"},
    "recovery": {"max_restarts": 0, "orphan_grace": "60s", "stop_grace": "2s"},
}


def shell(text):
    return {"per": "once", "run": ["bash", "-euc", text]}


class Stages(unittest.TestCase):
    maxDiff = None

    def write(self, cluster, spec):
        path = os.path.join(cluster.work, f"{spec['name']}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)  # JSON is YAML
        return path

    def run_chain(self, cluster, *args, code=0):
        done = cluster.muster("run", *args)
        self.assertEqual(done.code, code, done.out + done.err)
        return done

    def phases(self, cluster, job):
        return [job["phase"] for job in self.chain(cluster, job)]

    def chain(self, cluster, name):
        """The jobs of the newest chain of that name, in order, as `muster ps` has them."""
        jobs = json.loads(cluster.output("ps", "-a", "-o", "json"))["items"]
        ids = [stage["jobId"] for stage in cluster.show(name)["chain"]]
        for one, row in zip(
            ids,
            re.findall(
                r"^[a-z0-9_-]+ +([0-9a-z]{6,13})  +[a-z]+( +\(below\))? *$",
                cluster.output("show", name),
                re.MULTILINE,
            ),
            strict=True,
        ):
            self.assertTrue(one.endswith(row[0]), "a table has the ends of ids")
        by_id = {job["id"]: job for job in jobs}
        return [by_id[one] for one in ids]

    def three(self, cluster):
        """prepare -> shape -> train; each writes its name into `runs`, and what it made from what it was given."""
        with open(os.path.join(cluster.work, "raw"), "w", encoding="utf-8") as file:
            file.write("one")
        self.runs = os.path.join(cluster.work, "runs")
        fail = os.path.join(cluster.work, "fail")
        spec = {
            "name": "chain",
            **ONCE,
            "stages": {
                "prepare": {
                    "launch": shell(
                        f"echo prepare >> {self.runs}; tr a-z A-Z < ${{inputs.raw}} > ${{out}}/tokens"
                    ),
                    "inputs": {"raw": "raw"},  # beside the spec
                    "creates": "tokens",
                },
                "shape": {
                    "launch": shell(
                        f'echo shape >> {self.runs}; test ! -e {fail}; mkdir -p ${{out}}/made; echo "[$(cat ${{stages.prepare.out}}/tokens)]" > ${{out}}/made/shaped'
                    ),
                    "creates": "${out}/made",
                },
                "train": {
                    "launch": shell(f'echo train >> {self.runs}; cp "$SHAPED" ${{out}}/model'),
                    "inputs": {"shaped": {"from": "stage:shape/made/shaped", "env": "SHAPED"}},
                    "creates": "model",
                },
            },
        }
        return self.write(cluster, spec), fail

    def ran(self):
        """What has run since it was asked last."""
        with open(self.runs, encoding="utf-8") as file:
            names = file.read().split()
        os.truncate(self.runs, 0)
        return names

    def test_what_is_done_does_not_run_again(self):
        with Cluster(nodes=1, devices=2) as cluster:
            path, fail = self.three(cluster)
            open(fail, "w", encoding="utf-8").close()

            # The stage in the middle fails: what comes behind it is not run.
            done = self.run_chain(cluster, path, code=1)
            self.assertEqual(self.ran(), ["prepare", "shape"])
            banners = re.findall(r"^==== stage (\w+) \((\d) of 3\)", done.out, re.MULTILINE)
            self.assertEqual(banners, [("prepare", "1"), ("shape", "2")])
            self.assertIn(
                "chain chain failed: prepare succeeded, shape failed, train cancelled", done.out
            )
            self.assertEqual(self.phases(cluster, "chain"), ["succeeded", "failed", "cancelled"])
            self.assertEqual(
                cluster.show("chain")["spec"]["name"], "chain.shape"
            )  # the one that matters
            self.assertTrue(cluster.output("why", "chain").startswith("stage shape, job "))

            # Once more: the first one is done, the rest goes on.
            os.unlink(fail)
            done = self.run_chain(cluster, path)
            self.assertEqual(self.ran(), ["shape", "train"])
            self.assertRegex(
                done.err, r"stage 'prepare' is done: job \w{13} of .* ago made '/.*/tokens'"
            )
            self.assertEqual(
                re.findall(r"^==== stage (\w+) ", done.out, re.MULTILINE), ["shape", "train"]
            )
            last = cluster.show("chain")
            with open(os.path.join(last["outputDir"], "model"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "[ONE]\n")

            # All of it is done.
            done = self.run_chain(cluster, path)
            self.assertEqual(self.ran(), [])
            self.assertIn("all 3 stages are done; nothing is run", done.err)
            self.assertEqual(self.run_chain(cluster, "-d", path).out.split(), [last["id"]])
            plan = cluster.output("plan", path)
            self.assertEqual(
                len(
                    re.findall(
                        r"^==== stage \w+ \(\d of 3\).*, done by job \w{13}: would not run ====$",
                        plan,
                        re.MULTILINE,
                    )
                ),
                3,
                plan,
            )

            # What it made is gone: made anew, and nothing else.
            os.unlink(os.path.join(last["outputDir"], "model"))
            done = self.run_chain(cluster, path)
            self.assertIn("stage 'train' runs again: ", done.err)
            self.assertEqual(self.ran(), ["train"])

            # Another spec of one stage: that, and what comes behind it.
            self.run_chain(cluster, path, "--set", "stages.shape.runtime.env.X=1")
            self.assertEqual(self.ran(), ["shape", "train"])
            self.run_chain(
                cluster,
                path,
                "--set",
                "stages.shape.runtime.env.X=1",
                "--set",
                "description=other words",
            )
            self.assertEqual(self.ran(), [])

            # An input that has changed: all.
            with open(os.path.join(cluster.work, "raw"), "w", encoding="utf-8") as file:
                file.write("two words")
            self.run_chain(cluster, path)
            self.assertEqual(self.ran(), ["prepare", "shape", "train"])
            with open(
                os.path.join(cluster.show("chain")["outputDir"], "model"), encoding="utf-8"
            ) as file:
                self.assertEqual(file.read(), "[TWO WORDS]\n")

            self.run_chain(cluster, "--again", path)
            self.assertEqual(self.ran(), ["prepare", "shape", "train"])

            # A plain path that is not there is a warning: the nodes count.
            os.unlink(os.path.join(cluster.work, "raw"))
            done = self.run_chain(cluster, "-q", path, code=1)
            self.assertIn(
                f"muster: inputs.raw: '{cluster.work}/raw' is not on this machine", done.err
            )

    def test_what_is_there_before_the_stage_is_reported(self):
        with Cluster(nodes=1, devices=1) as cluster:
            made, message = (
                os.path.join(cluster.work, "made"),
                "stage 'prepare' runs, though '{}' is there: no job of the stage as it is now has made it.",
            )
            spec = {
                "name": "left",
                **ONCE,
                "stages": {
                    "prepare": {"launch": shell(f"echo new > {made}"), "creates": made},
                    "use": {"launch": shell("true")},
                },
            }
            path = self.write(cluster, spec)
            self.assertNotIn("though", self.run_chain(cluster, path).err)
            self.assertIn("stage 'prepare' is done", self.run_chain(cluster, path).err)
            # Another spec: what the first one left is in the way, and said to be.
            again = self.run_chain(cluster, path, "--set", "stages.prepare.runtime.env.X=1")
            self.assertIn(message.format(made), again.err)
            self.assertIn(
                f"==== stage prepare (1 of 2), '{made}' is there already, and not by a job of the stage as it is now: would run ====",
                cluster.output("plan", path),
            )
            # It ends well without touching it: it counts as made.
            spec["stages"]["prepare"]["launch"] = shell("true")
            self.assertIn(
                message.format(made), self.run_chain(cluster, self.write(cluster, spec)).err
            )
            os.unlink(made)
            self.run_chain(cluster, "--again", path, code=1)

    def test_names_of_a_chain(self):
        with Cluster(nodes=1, devices=2) as cluster:
            gate = os.path.join(cluster.work, "gate")
            os.mkfifo(gate)
            spec = {
                "name": "flow",
                **ONCE,
                "stages": {
                    "a": {"launch": shell(f"echo here; cat {gate}")},
                    "b": {"launch": shell("true")},
                    "c": {"launch": shell("true")},
                },
            }
            path = self.write(cluster, spec)
            whole = self.run_chain(cluster, "-d", "--request-id", "once", path).out.strip()
            self.assertTrue(whole.startswith("chain:"), whole)
            first = whole.removeprefix("chain:")
            cluster.jobs.append(first)
            chain = self.chain(cluster, "flow")
            self.assertEqual([job["spec"]["name"] for job in chain], ["flow.a", "flow.b", "flow.c"])
            self.assertEqual(chain[0]["id"], first)
            cluster.jobs += [job["id"] for job in chain[1:]]
            # Asked for again it is the same chain; with another spec it is refused; and so is its name.
            self.assertEqual(
                self.run_chain(cluster, "-d", "--request-id", "once", path).out.strip(), whole
            )
            self.assertIn(
                "with another spec",
                self.run_chain(
                    cluster,
                    "-d",
                    "--request-id",
                    "once",
                    path,
                    "--set",
                    "stages.b.runtime.env.A=b",
                    code=12,
                ).err,
            )
            self.assertIn(
                "the name 'flow' is taken by chain 'flow'",
                self.run_chain(cluster, "-d", path, code=12).err,
            )

            cluster.output("wait", first, "--for", "running")
            self.assertRegex(cluster.output("ps"), r"flow\.b +\w+ +queued .* behind flow\.a\n")
            self.assertEqual(cluster.show("flow")["id"], first)
            self.assertEqual(
                [(stage["stage"], stage["jobId"]) for stage in cluster.show("flow.b")["chain"]],
                [(name, job["id"]) for name, job in zip("abc", chain)],
            )
            self.assertEqual(
                cluster.muster("logs", "flow").err.splitlines()[0], f"stage a, job {first}"
            )
            self.assertNotIn("stage", cluster.muster("logs", "flow.a").err)
            self.assertEqual(
                json.loads(cluster.output("why", "flow.b", "-o", "json"))["jobId"], chain[1]["id"]
            )
            # What `run -d` printed is the chain wherever its name is; the first job's id alone is that stage.
            for named in ("flow", whole, f"chain:{chain[2]['id']}"):
                late = cluster.muster(
                    "wait", named, "--timeout", "2s"
                )  # its answer has to come in that time
                self.assertEqual(
                    (late.code, late.err),
                    (
                        4,
                        f"muster: waiting for stage 'a' of chain 'flow' ({first}) to be done: time is up; the chain goes on\n",
                    ),
                )
                self.assertEqual(
                    json.loads(cluster.output("why", named, "-o", "json"))["jobId"], first
                )
                self.assertEqual(
                    cluster.muster("logs", named).err.splitlines()[0], f"stage a, job {first}"
                )
                self.assertEqual(
                    cluster.output("show", named, "-o", "json"),
                    cluster.output("show", "flow", "-o", "json"),
                )
                self.assertEqual(
                    {
                        json.loads(line)["jobName"]
                        for line in cluster.output("events", named, "-o", "jsonl").splitlines()
                    },
                    {"flow.a", "flow.b", "flow.c"},
                )
            self.assertEqual(
                {
                    json.loads(line)["jobName"]
                    for line in cluster.output("events", first, "-o", "jsonl").splitlines()
                },
                {"flow.a"},
            )

            # Ctrl-C leaves the chain as it is, and says how to come back.
            env = {**os.environ, "MUSTER_CONTROLLER": cluster.endpoint}
            with subprocess.Popen(
                [binary("muster"), "watch", "flow"],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as follower:
                self.assertEqual(
                    follower.stdout.readline(), f"==== stage a (1 of 3): job {first} ====\n"
                )
                follower.send_signal(signal.SIGINT)
                self.assertIn(
                    "detached; chain 'flow' goes on. Come back with 'muster watch flow', stop it with 'muster cancel flow'",
                    follower.communicate()[1],
                )
            self.assertEqual(follower.returncode, 0)
            self.assertEqual(cluster.muster("watch", "flow", "--timeout", "1ms").code, 4)

            message = cluster.output("cancel", whole)
            self.assertEqual([line.split()[1] for line in message.splitlines()], ["a", "b", "c"])
            self.assertEqual(cluster.muster("wait", "flow").code, 3)
            self.assertEqual(self.phases(cluster, "flow"), ["cancelled"] * 3)
            names = {
                json.loads(line)["jobName"]
                for line in cluster.output("events", "flow", "-o", "jsonl").splitlines()
            }
            self.assertEqual(names, {"flow.a", "flow.b", "flow.c"})

            # Followed by its name to the end; nothing here creates anything, so all of it runs.
            spec["stages"]["a"]["launch"] = shell("echo here")
            again = self.run_chain(cluster, "-d", self.write(cluster, spec)).out.strip()
            self.assertNotEqual(again, whole)
            self.assertEqual(cluster.muster("watch", again).code, 0)
            self.assertEqual(cluster.muster("wait", again).code, 0)
            self.assertEqual(cluster.muster("wait", "flow").code, 0)
            self.assertEqual(self.phases(cluster, "flow"), ["succeeded"] * 3)
            watched = cluster.muster("watch", again).out
            self.assertEqual(
                re.findall(r"^==== stage \w \(\d of \d\)|^chain .*", watched, re.MULTILINE),
                ["==== stage c (3 of 3)", "chain flow succeeded: c succeeded"],
            )
            # The name is the newer one's now, and that of the first chain its own for ever.
            self.assertEqual(cluster.muster("wait", whole).code, 3)

    def test_a_controller_that_is_killed_in_the_middle(self):
        with Cluster(nodes=1, devices=1) as cluster:
            gate = os.path.join(cluster.work, "gate")
            os.mkfifo(gate)
            spec = {"name": "flow", **ONCE, "stages": {
                "a": {"launch": shell("echo 1 > ${out}/made"), "creates": "made"},
                "b": {"launch": shell(f"cat {gate}; cp ${{stages.a.out}}/made ${{out}}/made"), "creates": "made"},
                "c": {"launch": shell("grep -qx 1 ${stages.b.out}/made && grep -qx 1 ${stages.a.out}/made && touch ${out}/made"), "creates": "made"}}}  # fmt: skip
            first = (
                self.run_chain(cluster, "-d", self.write(cluster, spec))
                .out.strip()
                .removeprefix("chain:")
            )
            ids = [job["id"] for job in self.chain(cluster, "flow")]
            cluster.jobs += ids
            cluster.wait(first)
            cluster.output("wait", ids[1], "--for", "running")
            ranks = cluster.rank_processes()
            cluster.kill("controller")
            with open(gate, "w", encoding="utf-8"):
                pass
            for rank in ranks:  # its end comes while nobody listens
                self.assertTrue(wait_gone(rank), f"rank {rank.pid} does not end")
            cluster.start("controller")
            cluster.wait("flow")
            self.assertEqual(self.phases(cluster, "flow"), ["succeeded"] * 3)
            self.assertEqual([cluster.show(job)["attempt"] for job in ids], [1, 1, 1])

    def test_start_from_a_stage_and_from_a_job(self):
        steps = 12
        with Cluster(nodes=1, devices=2) as cluster:

            def trainer(trace, count, *more):
                return cluster.stub("x", "--steps", count, "--step-ms", 2, "--save", "${save.dir}", "--load", "${resume.dir}", "--save-interval", 4, "--trace",
                                    trace.path, *more)["launch"]  # fmt: skip

            whole, first, second, third = (
                Trace(cluster, name) for name in ("whole", "first", "second", "third")
            )
            spec = cluster.stub(
                "whole",
                "--steps",
                3 * steps,
                "--save",
                "${save.dir}",
                "--load",
                "${resume.dir}",
                "--save-interval",
                4,
                "--trace",
                whole.path,
            )
            cluster.wait(cluster.submit(spec))
            del spec["launch"]
            chain = {**spec, "name": "grow", "stages": {
                "train": {"launch": trainer(first, steps)},
                "more": {"launch": trainer(second, 2 * steps), "start": {"from": "stage:train", "as": "resume"}}}}  # fmt: skip
            self.run_chain(cluster, "-q", self.write(cluster, chain))
            more = cluster.show("grow.more")
            self.assertEqual(more["attempts"][0]["resume"]["step"], steps)
            self.assertTrue(more["attempts"][0]["resume"]["fromStart"])
            self.assertEqual(second.read()[0].step, steps + 1)

            last = {
                **spec,
                "name": "last",
                "launch": trainer(third, 3 * steps),
                "start": {"from": "job:grow.more", "as": "resume", "step": 2 * steps - 4},
            }
            self.run_chain(cluster, "-q", self.write(cluster, last))
            self.assertEqual(third.read()[0].step, 2 * steps - 4 + 1)
            # A loss that depends on every rank's own state: it went on from what was saved, or the numbers were others.
            undisturbed = whole.losses()
            for trace in (first, second, third):
                for step, loss in trace.losses().items():
                    self.assertEqual(loss, undisturbed[step], f"step {step} of {trace.path}")
            self.assertEqual(third.best(), 3 * steps)

            # From a job that has saved nothing.
            none = {
                **spec,
                "name": "none",
                "launch": {"run": ["bash", "-c", "true"]},
                "engine": "torch",
            }
            cluster.wait(cluster.submit(none))
            for how, code in (("resume", 2), ("resume-or-scratch", 0)):
                done = cluster.muster(
                    "run",
                    "-q",
                    self.write(
                        cluster, {**last, "name": "late", "start": {"from": "job:none", "as": how}}
                    ),
                )
                self.assertEqual(done.code, code, done.out + done.err)
            self.assertIn(
                "has no whole checkpoint",
                cluster.muster(
                    "run",
                    "-d",
                    self.write(cluster, {**last, "start": {"from": "job:none", "as": "resume"}}),
                ).err,
            )
            self.assertEqual(third.read()[-1].step, 3 * steps)

            # A stage that ends without one: what waits for it cannot start.
            chain["stages"]["train"]["launch"] = {"run": ["bash", "-c", "true"]}
            self.assertEqual(
                cluster.muster("run", "-q", self.write(cluster, {**chain, "name": "empty"})).code, 3
            )
            self.assertIn("whole checkpoint", cluster.output("why", "empty.more"))


if __name__ == "__main__":
    unittest.main()
