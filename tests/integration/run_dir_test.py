#!/usr/bin/python3
"""A job that replaces its own run directory, or parts of it, on a real cluster.

A rank puts links, pipes, hard links and directories in the place of what agent and worker keep
there. The links lead to files of the agent's user outside, with a secret in them. The agent is
killed and started again meanwhile. Then: the files outside are as they were; the secret is in no
file of the cluster, no log and no answer; the job ends with a sentence; the run directory goes;
and the node runs the next job.

Root runs everything twice: as root, and as an ordinary user (setpriv of util-linux). And a process
of another user that forges the process tag of a run is left alone.

Run:  /usr/bin/python3 tests/integration/run_dir_test.py [-v] [CASE]
"""

import os
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import BIN, DEADLINE, Cluster, kill_process, wait_until  # noqa: E402

AGENT = ("--cgroup", "none", "--min-free", "1")
SECRET = "never-to-be-read-4711"
RECORDS = ("launch", "claim", "lease", "events", "mark")
FILES = ("rank-0.log", "rank-0.cursor", "worker.log")
ORDINARY = 65534

# $RUN is the run directory, $BAIT the directory outside, with files of the same names, $AWAY an empty one.
CASES = {
    "links in the place of the records": """
for name in launch claim lease events mark wake_fifo; do
  ln -s "$BAIT/$name" "$AWAY/new"; put "$RUN/$name"
done""",
    "pipes in the place of the records": """
for name in launch claim lease events mark; do mkfifo "$AWAY/new"; put "$RUN/$name"; done""",
    "other names of files outside": """
for name in launch claim lease events mark; do
  ln "$BAIT/$name" "$AWAY/new"; put "$RUN/$name"
done""",
    "directories in the place of the records": """
for name in launch claim lease events mark; do
  until mkdir "$RUN/$name" 2>/dev/null; do rm -f "$RUN/$name"; done
done""",
    "links in the place of the logs": """
for name in rank-0.log rank-0.cursor worker.log; do
  ln -s "$BAIT/logs/$name" "$AWAY/new"; put "$RUN/logs/$name"
done""",
    "a link in the place of the directory of logs": """
mv "$RUN/logs" "$RUN/away"; ln -s "$BAIT/logs" "$RUN/logs" """,
    "a link in the place of the run directory": """
mv "$RUN" "$AWAY/run"; ln -s "$BAIT" "$RUN" """,
    "links and closed directories to be removed": """
mkdir -p "$RUN/plog/a/b"; ln -s "$BAIT" "$RUN/plog/a/link"; ln -s "$BAIT" "$RUN/logs/link"
ln -s "$BAIT/logs" "$RUN/.gone-0"; mkfifo "$RUN/plog/a/b/pipe"; chmod 0500 "$RUN/plog/a" """,
}
RANK = """
set -e
exec 3>&1; LOG=$(readlink /proc/self/fd/3); RUN=$${LOG%/logs/*}
[ -f "$RUN/launch" ]
put() { mv -fT "$AWAY/new" "$1"; }  # at once: the agent writes some of these again and again
echo begun
"""


def state_of(directory):
    """What is in it: types, owners, modes, times and bytes."""
    found = {}
    for folder, dirs, files in os.walk(directory):
        for name in dirs + files:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            text = b""
            if stat.S_ISREG(info.st_mode):
                with open(path, "rb") as file:
                    text = file.read()
            key = os.path.relpath(path, directory)
            found[key] = (info.st_mode, info.st_uid, info.st_gid, info.st_size, text)
            if stat.S_ISREG(info.st_mode):
                found[key] += (info.st_mtime_ns,)
    return found


class OneNode(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(devices=1, agent_args=AGENT)
        self.addCleanup(self.cluster.close)
        self.cluster.controller()
        self.agent = self.cluster.agent("n0")
        self.runs = os.path.join(self.cluster.agent_dir("n0"), "runs")

    def job(self, name, script, **env):
        spec = self.cluster.torch_spec(
            name, {"run": ["sh", "-c", script]}, nodes=1, devices=1
        )
        spec["recovery"]["max_restarts"] = 0
        spec["runtime"] = {"env": env}
        return self.cluster.submit(spec)

    def wait_end(self, job):
        """However it ends."""
        done = self.cluster.muster("wait", job, "--timeout", f"{int(DEADLINE)}s")
        self.assertIn(done.code, (0, 1), f"{done}\n{self.cluster.story(job)}")
        return done.code


class Replaced(OneNode):
    def setUp(self):
        super().setUp()
        self.bait = self.cluster.path("bait")
        self.away = self.cluster.path("away")
        for folder in (self.away, self.bait, os.path.join(self.bait, "logs")):
            os.mkdir(folder, 0o700)
        for name in (*RECORDS, "wake_fifo", *(os.path.join("logs", name) for name in FILES)):
            path = os.path.join(self.bait, name)
            with open(path, "w", encoding="ascii") as file:
                file.write(f"{SECRET}\n")
            os.chmod(path, 0o600)

    def secret_is_nowhere(self, what):
        for folder, dirs, files in os.walk(self.cluster.dir):
            dirs[:] = [name for name in dirs if os.path.join(folder, name) != self.bait]
            for name in files:
                path = os.path.join(folder, name)
                try:
                    info = os.lstat(path)
                    if not stat.S_ISREG(info.st_mode):
                        continue
                    with open(path, "rb") as file:
                        text = file.read()
                except FileNotFoundError:
                    continue
                self.assertNotIn(SECRET.encode(), text, f"{what}: it is in {path}")

    def replaced(self, number, what, script):
        before = state_of(self.bait)
        ready = self.cluster.path(f"ready-{number}")
        with self.cluster.gate(f"gate-{number}") as gate:
            job = self.job(
                f"job-{number}",
                f"{RANK}{script}\n: > $READY; read line < $GATE; echo ended",
                BAIT=self.bait, AWAY=self.away, READY=ready, GATE=gate.path,
            )  # fmt: skip
            # the agent may see no end of this rank any more: what it does is waited for
            wait_until(lambda: os.path.exists(ready), self.agent.pid_fd, DEADLINE / 4, "the rank")
            self.cluster.kill("n0")
            self.agent = self.cluster.start("n0")
            gate.open()
            self.wait_end(job)
        self.assertTrue(self.agent.alive(), f"{what}\n{self.cluster.log_end('n0')}")
        why = self.cluster.output("why", job)
        self.assertTrue(why.strip())
        answers = [why, self.cluster.output("events", job), self.cluster.muster("logs", job).out]
        for answer in answers:
            self.assertNotIn(SECRET, answer)
        # nothing of the run stays, and nothing of a removal
        wait_until(
            lambda: not os.listdir(self.runs), self.agent.pid_fd, what=f"its directory ({what})"
        )
        wait_until(lambda: not self.cluster.processes(), self.agent.pid_fd, what="its processes")
        after = state_of(self.bait)
        self.assertEqual(before, after, what)
        self.secret_is_nowhere(what)

    def test_nothing_outside_is_read_or_changed(self):
        for number, (what, script) in enumerate(CASES.items()):
            with self.subTest(what):
                self.replaced(number, what, script)
        self.assertIn("it is not believed", "\n".join(self.agent_log()))
        self.cluster.trivial()

    def agent_log(self):
        with open(self.cluster.path("log", "n0.log"), encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()


class ReplacedByAnOrdinaryUser(unittest.TestCase):
    def test_the_same_without_root(self):
        if os.geteuid() != 0:
            self.skipTest("this is an ordinary user: Replaced shows it")
        as_user = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]
        program = os.path.join(BIN, "muster-agent")
        if subprocess.run([*as_user, program, "--version"], capture_output=True).returncode != 0:
            self.skipTest(f"an ordinary user may not execute {program}")
        done = subprocess.run(
            [*as_user, sys.executable, "-B", os.path.abspath(__file__), "Replaced"],
            capture_output=True, text=True, timeout=10 * DEADLINE,
            env={**os.environ, "TMPDIR": "/tmp"},
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)


class ForgedTag(OneNode):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root reads the environment of other users")
        super().setUp()

    def forge(self, tag):
        process = subprocess.Popen(
            ["sleep", "1000"], env={"PATH": os.environ["PATH"], "MUSTER_PROCESS_TAG": tag},
            user=ORDINARY, start_new_session=True, cwd="/",
        )  # fmt: skip
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_another_users_process_is_neither_killed_nor_waited_for(self):
        with self.cluster.gate() as gate:
            job = self.job("job", "read line < $GATE", GATE=gate.path)
            wait_until(self.cluster.ranks, self.agent.pid_fd, what="the rank")
            rank = self.cluster.rank_processes()[0]
            forged = self.forge(rank.env["MUSTER_PROCESS_TAG"])
            # Without its worker the run is swept by the agent.
            for worker in self.cluster.workers():
                kill_process(worker)
            self.assertEqual(self.wait_end(job), 1)
        wait_until(lambda: not os.listdir(self.runs), self.agent.pid_fd, what="the sweep")
        self.assertIsNone(forged.poll(), "a process that is not of the run was killed")
        with self.cluster.gate("other") as gate:
            job = self.job("other", "read line < $GATE", GATE=gate.path)
            wait_until(self.cluster.ranks, self.agent.pid_fd, what="the rank")
            rank = self.cluster.rank_processes()[0]
            other = self.forge(rank.env["MUSTER_PROCESS_TAG"])
            # and by the worker
            gate.open()
            self.assertEqual(self.wait_end(job), 0)
        self.assertIsNone(other.poll())
        for process in (forged, other):
            process.kill()
            process.wait()


if __name__ == "__main__":
    unittest.main()
