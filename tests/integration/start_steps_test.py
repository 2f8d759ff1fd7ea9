#!/usr/bin/python3
"""The steps of a start (agent/start/start_step.h), one after the other, on a real cluster.

Hangs: a file system hangs when a step begins (hanging_disk.py). The job of that file system waits,
and `muster show` names the step. Another job of the same node starts, has its lease renewed, and
succeeds. The job that hangs can be cancelled meanwhile, or goes on when the file system answers.

Killed: the agent is killed right after a step. Started again, it ends in the same state as one that
nobody killed: one attempt ran, the same files are next to the outputs, nothing else is left.

The steps `fetch` and `container` are killed in engines_own_disks_test.py and container_test.py,
which have what these steps need. That they hang is for the unit tests (unit_agent_run), as are the
bounds of the steps: no test here waits for one.

Hangs needs namespaces of its own (namespaces.py), root and /dev/fuse; without them it is left out.

Run:  /usr/bin/python3 tests/integration/start_steps_test.py [-v] [CASE]
"""

import os
import re
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import disk_test  # noqa: E402
import hanging_disk  # noqa: E402
import namespaces  # noqa: E402
from cluster import STUB, Cluster, Trace, kill_process, wait_until  # noqa: E402
from hanging_disk import HangingDisk  # noqa: E402
from state_copy import copy_of, put_back  # noqa: E402

AGENT = ("--cgroup", "none", "--min-free", "1")
PROMPT = "45s"  # less than any step's bound, and than the controller's
TRAIN = f"""\
#!/bin/bash
# as it was written
STEPS=1
exec {STUB} --steps "$STEPS" "$@"
"""
PATCH = """\
--- a/train.sh
+++ b/train.sh
@@ -1,3 +1,3 @@
 #!/bin/bash
-# as it was written
+# patched
 STEPS=1
"""


def setUpModule():
    if namespaces.inside():
        namespaces.ip("link", "set", "lo", "up")


class Starts(unittest.TestCase):
    """One cluster with one node, n0."""

    def setUp(self):
        self.cluster = Cluster(agent_args=AGENT)
        self.prepare()
        self.addCleanup(self.cluster.close)
        self.cluster.controller()
        self.agent = self.cluster.agent("n0", devices=2)

    def prepare(self):
        """Makes what goes only after the cluster."""

    def code(self, path):
        """A code directory, and the path of a patch for it."""
        os.mkdir(path)
        with open(os.path.join(path, "train.sh"), "w", encoding="utf-8") as file:
            file.write(TRAIN)
        return self.cluster.write("train.diff", PATCH)

    def saved(self, devices, **more):
        """Job 'saved', which has ended with checkpoints of the steps 4 and 8."""
        saving = ("--save", "${save.dir}", "--save-interval", 4)
        spec = self.cluster.stub("saved", "--steps", 8, *saving, nodes=1, devices=devices)
        self.cluster.wait(self.cluster.submit({**spec, **more}))

    def behind_a_lost_end(self, name, saves):
        """(job, trace) of a controller that has lost the end of its journal. The job trains, and
        its next attempt begins with the step Checkpoints."""
        state, copy = self.cluster.path("controller"), self.cluster.path("copy")
        trace = Trace(self.cluster, name)
        saving = ("--save", "${save.dir}", "--load", "${resume.dir}", "--save-interval", 10)
        args = (*trace.until_ended(), "--step-ms", 10, *saving, "--trace", trace.path)
        spec = self.cluster.stub(name, *args, nodes=1, devices=1)
        spec["checkpoint"] = {"dir": saves}
        spec["outputs"] = {"dir": self.cluster.path(f"out-{name}")}
        job = self.cluster.submit(spec)
        trace.wait(job, 1)
        self.cluster.kill("controller")
        copy_of(state, copy)
        self.cluster.start("controller")
        while not self.cluster.show(job).get("checkpoints"):
            trace.wait(job, trace.best() + 1)
        self.cluster.kill("controller")
        put_back(copy, state)
        self.cluster.controller("--accept-loss")
        trace.wait(job, trace.best() + 1)
        return job, trace

    def kill_ranks(self, job):
        ranks = [rank for rank in self.cluster.rank_processes() if rank.env["MUSTER_JOB_ID"] == job]
        self.assertTrue(ranks, self.cluster.story(job))
        for rank in ranks:
            kill_process(rank)

    def nothing_is_left(self):
        """Of jobs that have ended: no process, and no run directory."""
        runs, agent = os.path.join(self.cluster.agent_dir("n0"), "runs"), self.agent.pid_fd
        wait_until(lambda: not self.cluster.processes(), agent, what="the processes to be gone")
        wait_until(lambda: not os.listdir(runs), agent, what="the run directories to be forgotten")


class Hangs(Starts):
    def setUp(self):
        if not namespaces.inside():
            self.skipTest("this machine lets us have no file system of our own that hangs")
        super().setUp()
        self.addCleanup(self.disk.answer)  # first, or the agent could not end
        self.count = 0

    def prepare(self):
        self.disk = HangingDisk(self.cluster.path("disk"))
        self.addCleanup(self.disk.close)

    def waiting(self, name, grace="60s"):
        """(job, gate): it ends when the gate is open."""
        gate = self.cluster.gate(f"gate-{name}")
        self.addCleanup(gate.close)
        run = ["sh", "-c", f"read line < {gate.path}"]
        spec = self.small(name, {"launch": {"run": run}})
        spec["recovery"]["orphan_grace"] = grace
        return self.cluster.submit(spec), gate

    @staticmethod
    def small(name, more):
        return {
            "name": name,
            "engine": "command",
            "launch": {"run": ["true"]},
            "resources": {"nodes": 1, "devices": 1, "type": "cpu"},
            "recovery": {"max_restarts": 5, "orphan_grace": "60s", "stop_grace": "2s"},
            **more,
        }

    def hanging(self, step, spec, *operations, path=""):
        """The id of a job whose start hangs in that step. It is submitted while nothing hangs."""
        before, gate = self.waiting(f"before-{spec['name']}")
        job = self.cluster.submit({**spec, "schedule": {"after": [before]}})
        self.disk.hang(*operations, path=path)
        gate.open()
        self.shows(step, job)
        return job

    def shows(self, step, job):
        self.disk.wait_hanging()
        wait_until(
            lambda: f"step '{step}'" in self.cluster.output("show", job),
            self.agent.pid_fd,
            what=f"`muster show {job}` to name step '{step}'",
        )
        shown = self.cluster.output("show", job)
        self.assertRegex(shown, rf"(?m)^why +node 'n0': .*step '{step}'")
        self.assertRegex(self.cluster.output("why", job), rf"node 'n0': .*step '{step}'")

    def others_go_on(self):
        """A job of the same node starts, its lease is renewed, and it succeeds."""
        self.count += 1
        other, gate = self.waiting(f"other-{self.count}", grace="5s")
        self.cluster.wait_event(lambda event: event["type"] == "node-started", other)
        self.lease_goes_on(other)
        gate.open()
        self.cluster.wait(other)

    def lease_goes_on(self, job):
        lease = os.path.join(self.cluster.agent_dir("n0"), "runs", f"{job}.1", "lease")
        began = disk_test.Full.lease_end(lease)
        wait_until(
            lambda: disk_test.Full.lease_end(lease) > began + 2,
            self.agent.pid_fd,
            what="the lease to be renewed",
        )

    def check(self, step, spec_of, *operations, path=""):
        """A job that is cancelled while its start hangs, and one that goes on. `spec_of`: the spec
        of a name."""
        job = self.hanging(step, spec_of(f"{step}-cancelled"), *operations, path=path)
        self.others_go_on()
        self.cluster.muster("cancel", job, code=0)
        self.cluster.muster("wait", job, "--timeout", PROMPT, code=3)
        self.disk.answer()
        self.nothing_is_left()

        job = self.hanging(step, spec_of(f"{step}-answered"), *operations, path=path)
        self.others_go_on()
        self.disk.answer()
        self.cluster.wait(job)
        self.nothing_is_left()
        # The same node has both devices again.
        self.cluster.wait(
            self.cluster.submit(self.cluster.stub(f"{step}-next", nodes=1, devices=2))
        )

    def test_check(self):
        os.mkdir(os.path.join(self.disk.files, "cwd"))
        launch = {"run": ["true"], "cwd": os.path.join(self.disk.path, "cwd")}
        self.check("check", lambda name: self.small(name, {"launch": launch}))

    def test_checkpoints(self):
        saves = os.path.join(self.disk.path, "saves")
        job, trace = self.behind_a_lost_end("trained", saves)
        self.disk.hang("OPENDIR", path="^saves$")
        self.kill_ranks(job)
        self.shows("checkpoints", job)
        self.others_go_on()
        self.disk.answer()
        trace.end(job)
        self.cluster.wait(job)
        trace.losses()  # every attempt agrees on every step
        self.nothing_is_left()

    def test_directories(self):
        self.check("directories", self.with_outputs, "MKDIR")

    def with_outputs(self, name, **more):
        return self.small(name, {"outputs": {"dir": os.path.join(self.disk.path, name)}, **more})

    def test_code(self):
        patch = self.code(os.path.join(self.disk.files, "tree"))
        more = {
            "code": {"at": os.path.join(self.disk.path, "tree"), "patches": [patch]},
            "launch": {"run": ["grep", "^# patched", "train.sh"]},
        }
        self.check("code", lambda name: self.small(name, more))

    def test_files(self):
        self.cluster.write("work/conf.json", '{"steps": 3}\n')
        more = {
            "code": {"at": self.cluster.work},
            "launch": {"run": ["grep", "4", "conf.json"], "patch": {"conf.json": {"steps": 4}}},
        }
        self.check("files", lambda name: self.with_outputs(name, **more), "CREATE")

    def test_links(self):
        self.saved(1, outputs={"dir": os.path.join(self.disk.path, "saved")})
        args = ("--steps", 12, "--load", "${resume.dir}")
        start = {"from": "job:saved", "as": "resume"}
        self.check(
            "links",
            lambda name: {**self.cluster.stub(name, *args, nodes=1, devices=1), "start": start},
        )

    def test_record(self):
        os.mkdir(os.path.join(self.disk.files, "bin"))
        program = os.path.join(self.disk.files, "bin", "quick")
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(program, 0o755)
        more = {
            "launch": {"run": ["quick"]},
            "runtime": {"env": {"PATH": f"{self.disk.path}/bin:/usr/bin:/bin"}},
        }
        self.check("record", lambda name: self.small(name, more))


    def test_success_file(self):
        """No step, but the same disk: whether the file is there is unknown, and so the node's
        fault."""
        os.makedirs(os.path.join(self.disk.files, "done"))
        gate = self.cluster.gate("gate")
        self.addCleanup(gate.close)
        run = ["sh", "-c", f"test $MUSTER_ATTEMPT -gt 1 || read line < {gate.path}"]
        more = {"launch": {"run": run}, "success": {"file": os.path.join(self.disk.path, "done")}}
        job = self.cluster.submit(self.small("unknown", more))
        self.cluster.wait_event(lambda event: event["type"] == "node-started", job)
        self.disk.hang(path="^done$")
        gate.open()
        broke = self.cluster.wait_event(lambda event: event["type"] == "attempt-broke", job)
        self.assertIn("could not find out within 10 s whether success.file", broke["text"])
        self.disk.answer()
        self.cluster.wait(job)
        first = self.cluster.show(job)["attempts"][0]
        self.assertEqual(first["verdict"]["class"], "node")
        self.nothing_is_left()

    def test_killed_agent(self):
        """The thread that hangs outlives the agent, and has its lock. The next agent takes over."""
        running, gate = self.waiting("running", grace="10s")
        self.cluster.wait_event(lambda event: event["type"] == "node-started", running)
        hanging = self.hanging("directories", self.with_outputs("hanging"), "MKDIR")
        killed = self.agent
        killed.send_signal(signal.SIGKILL)
        self.agent = self.cluster.agent("n0", devices=2, wait=False)
        self.lease_goes_on(running)
        self.assertTrue(killed.alive())
        gate.open()
        self.cluster.wait(running)
        self.disk.answer()
        self.assertEqual(killed.ended()[0], -signal.SIGKILL)
        self.cluster.wait(hanging)
        self.nothing_is_left()


class Killed(Starts):
    def start_to_die(self, step):
        """The agent, again: the first start that does this step kills it."""
        self.agent.stop()
        env = {"MUSTER_FAILPOINT": f"start:{step}:kill"}
        self.agent = self.cluster.agent("n0", devices=2, env=env)

    def start_after_death(self, step):
        code, output = self.agent.ended()
        self.assertEqual(code, -signal.SIGKILL, f"after step '{step}'\n{output}")
        self.agent = self.cluster.agent("n0", devices=2)

    def spec(self, name):
        """(spec, trace) of a job that has every step but Checkpoints, Fetch and Container."""
        trace = Trace(self.cluster, name)
        saving = ["--save", "${save.dir}", "--load", "${resume.dir}", "--save-interval", "2"]
        run = ["bash", "train.sh", *saving, "--trace", trace.path]
        launch = {"run": run, "vars": {"STEPS": "12"}}
        return {
            **self.cluster.torch_spec(name, launch, nodes=1, devices=2),
            "code": {"at": self.cluster.path("tree"), "patches": [self.patch]},
            "start": {"from": "job:saved", "as": "resume"},
            "outputs": {"dir": self.cluster.path("out", name)},
        }, trace

    def files(self, name):
        """What lies in the output directory, whatever the attempts' numbers are."""
        out, found = self.cluster.path("out", name), set()
        for directory, directories, names in os.walk(out):
            place = os.path.relpath(directory, out)
            found |= {os.path.normpath(os.path.join(place, one)) for one in directories + names}
        return {re.sub(r"attempt-\d+", "attempt-N", path) for path in found}

    def ran_once(self, job, trace):
        attempts = self.cluster.show(job)["attempts"]
        ran = [attempt["number"] for attempt in attempts if attempt.get("exits")]
        self.assertEqual(ran, [attempts[-1]["number"]], self.cluster.story(job))
        for rank in (0, 1):
            self.assertEqual([entry.step for entry in trace.read(rank)], [9, 10, 11, 12])
        return attempts

    def test_steps(self):
        self.patch = self.code(self.cluster.path("tree"))
        self.saved(2)
        spec, trace = self.spec("undisturbed")
        job = self.cluster.submit(spec)
        self.cluster.wait(job)
        self.assertEqual(len(self.ran_once(job, trace)), 1)
        files = self.files("undisturbed")
        for wanted in ("code/node-0/tree/train.sh", "resume/attempt-N"):
            self.assertIn(wanted, files)

        for step in ("check", "directories", "code", "files", "links", "record", "spawn"):
            with self.subTest(step):
                self.start_to_die(step)
                spec, trace = self.spec(f"killed-{step}")
                job = self.cluster.submit(spec)
                self.start_after_death(step)
                self.cluster.wait(job)
                attempts = self.ran_once(job, trace)
                if step != "spawn":  # its worker may be adopted
                    self.assertEqual(len(attempts), 2, self.cluster.story(job))
                    self.assertIn("the agent was restarted", attempts[0]["verdict"]["reason"])
                self.assertEqual(self.files(f"killed-{step}"), files)
                self.nothing_is_left()
        # The node has both devices again.
        self.cluster.wait(self.cluster.submit(self.cluster.stub("next", nodes=1, devices=2)))

    def test_checkpoints(self):
        job, trace = self.behind_a_lost_end("trained", self.cluster.path("saves"))
        self.start_to_die("checkpoints")
        trace.wait(job, trace.best() + 1)  # adopted
        self.kill_ranks(job)
        self.start_after_death("checkpoints")
        trace.wait(job, trace.best() + 1)
        trace.end(job)
        self.cluster.wait(job)
        steps = [entry.step for entry in trace.read()]
        self.assertEqual(steps.count(1), 1, "it went on from a checkpoint")
        trace.losses()  # every attempt agrees on every step
        self.nothing_is_left()


if __name__ == "__main__":
    namespaces.main(("ip", "git"), hanging_disk.MAKES, needed=False)
