#!/usr/bin/python3
"""outputs.logs_to: what the ranks of a job print goes to a store as gzip segments that are never written again, by a real rclone: while they run, and the rest
in the end. All segments of a log together are what `muster logs` has, byte for byte, whatever is killed.

Run:  /usr/bin/python3 tests/integration/logs_to_test.py [-v] [CASE]       (needs rclone)
"""

import collections
import json
import os
import re
import subprocess
import unittest

from cluster import DEADLINE, Cluster, wait_until
from counting_proxy import CountingProxy
from store_ends import serve_rclone

PASSWORD = "pl4nted-pass"
# Prints until a directory is there, then more, and ends. Its engine's process log grows too.
PROGRAM = """import os, sys, time
rank, until = os.environ["MUSTER_RANK"], sys.argv[1]
plog = os.path.join(os.environ["ASCEND_PROCESS_LOG_PATH"], "debug/plog")
os.makedirs(plog)
with open(os.path.join(plog, "plog-17_20260107224103518.log"), "w") as engine:
    line = 0
    while line == 0 or not os.path.exists(until):
        for _ in range(100):
            line += 1
            print(f"rank {rank}, line {line}: " + "x" * (line % 70), flush=line % 100 == 0)
            print(f"[INFO] rank {rank}, line {line}", file=engine, flush=line % 100 == 0)
        time.sleep(0.05)
    for _ in range(30000):
        line += 1
        print(f"rank {rank}, line {line}")
    print("the end, without a line end", end="")
    print("[ERROR] the end", file=engine)
sys.exit(3 if os.environ["MUSTER_ATTEMPT"] in sys.argv[2:] else 0)
"""
PLOG = "debug/plog/plog-17_20260107224103518.log"
SEGMENT = re.compile(r"(\d{6})-(\d{15})-(\d{15})\.log\.gz$")


class LogsTo(unittest.TestCase):
    nodes = ("n0", "n1")

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.store = self.cluster.path("store")
        os.mkdir(self.store)
        self.proxy = CountingProxy("127.0.0.1", serve_rclone(self, "webdav", self.store, "--dir-cache-time", "0", "--user", "ann", "--pass", PASSWORD))
        self.addCleanup(self.proxy.__exit__)
        self.cluster.controller()
        for node in self.nodes:
            self.cluster.agent(node, devices=1)
        self.program = self.cluster.write("program.py", PROGRAM)
        self.until = self.cluster.path("work", "until")
        self.cluster.muster("store", "add", "dav", "webdav://out", "--endpoint", f"http://{self.proxy.address}", "--user", "ann", stdin=PASSWORD, code=0)

    def tearDown(self):
        self.proxy.gate.set()

    def submit(self, name, *failing, **more):
        spec = {
            "name": name,
            "engine": "command",
            "launch": {"run": ["python3", self.program, self.until, *failing]},
            "outputs": {"logs_to": "webdav://out/logs", "every": "1s"},
            "observe": {"plog": True},
            "runtime": {"setup": ["echo made ready"]},
            "resources": {"nodes": len(self.nodes), "devices": 1, "type": "cpu"},
            "recovery": {"max_restarts": 3},
            **more,
        }
        return self.cluster.submit(json.dumps(spec))

    def top(self, job, attempt=1):
        return os.path.join(self.store, "logs", job, f"attempt-{attempt}")

    def segments(self, job, log, attempt=1):
        """Paths, in the order of the log."""
        folder = os.path.join(self.top(job, attempt), log)
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))] if os.path.isdir(folder) else []

    def text(self, job, log, attempt=1):
        """What `zcat` gives; every byte has the place that the names say."""
        segments = self.segments(job, log, attempt)
        expected = 0
        for number, path in enumerate(segments, 1):
            sequence, begin, end = map(int, SEGMENT.search(path).groups())
            self.assertEqual((sequence, begin), (number, expected), path)
            content = subprocess.run(["zcat", path], capture_output=True, check=True).stdout
            self.assertEqual(len(content), end - begin, path)
            expected = end
        return subprocess.run(["zcat", *segments], capture_output=True, check=True).stdout if segments else b""

    def printed(self, job, *which):
        return self.cluster.muster("logs", "--raw", *which, job, text=False, code=0).out

    def events(self, job, kind):
        """Also those behind the job's end, which `muster events JOB` does not print."""
        every = map(json.loads, self.cluster.output("events", "-o", "jsonl").splitlines())
        return [event for event in every if event["type"] == kind and event.get("jobId") == job]

    def wait_for_logs(self, job, count=2):
        wait_until(lambda: len(self.events(job, "logs-uploaded") + self.events(job, "logs-incomplete")) >= count, what="the end of the logs' upload")
        self.assertEqual(self.events(job, "logs-incomplete"), [], self.cluster.story(job))

    def check_logs(self, job, attempt=1):
        which = ("--attempt", str(attempt))
        for rank, node in enumerate(self.nodes):
            self.assertEqual(self.text(job, f"rank-{rank}", attempt), self.printed(job, "--rank", str(rank), *which))
            self.assertIn(b"the end, without a line end", self.text(job, f"rank-{rank}", attempt)[-30:])
            self.assertEqual(self.text(job, f"setup@{node}", attempt), self.printed(job, "--auxiliary", "setup", "--node", node, *which))
            engine = self.text(job, f"plog/rank-{rank}/{PLOG}", attempt)
            self.assertTrue(engine.startswith(f"[INFO] rank {rank}, line 1\n".encode()), engine[:100])
            self.assertTrue(engine.endswith(b"[ERROR] the end\n"), engine[-100:])

    def test_segments_come_while_it_runs_and_the_rest_in_the_end(self):
        job = self.submit("plain")
        wait_until(lambda: len(self.segments(job, "rank-0")) > 1 and len(self.segments(job, "rank-1")) > 1, what="two segments of each rank")
        self.assertEqual(self.cluster.show(job)["phase"], "running")
        first = self.segments(job, "rank-0")[0]
        with open(first, "rb") as file:
            before = file.read()
        os.mkdir(self.until)
        self.cluster.wait(job)
        self.wait_for_logs(job)
        self.check_logs(job)
        with open(first, "rb") as file:
            self.assertEqual(file.read(), before)
        puts = collections.Counter(path for command, path in self.proxy.paths if command == "PUT")
        self.assertEqual([path for path, times in puts.items() if times > 1], [], "a segment is written once")
        wait_until(lambda: not os.path.exists(os.path.join(self.cluster.agent_dir("n0"), "runs", f"{job}.1")), what="the end of the run directory")

    def test_an_agent_that_is_killed_while_it_uploads(self):
        job = self.submit("killed")
        wait_until(lambda: self.segments(job, "rank-0"), what="a segment")
        for _ in range(2):
            self.proxy.gated = lambda path: "/rank-0/" in path
            self.proxy.gates = ("PUT",)
            self.proxy.gate.clear()
            waiting = self.proxy.waiting
            with self.proxy.changed:
                self.assertTrue(self.proxy.changed.wait_for(lambda: self.proxy.waiting > waiting, DEADLINE), self.cluster.story(job))
            self.cluster.kill("n0")
            self.cluster.agent("n0", devices=1, wait=False)
            self.proxy.gate.set()
        os.mkdir(self.until)
        self.cluster.wait(job)
        self.wait_for_logs(job)
        self.check_logs(job)

    def test_an_agent_that_is_killed_while_it_uploads_the_rest(self):
        job = self.submit("late", outputs={"logs_to": "webdav://out/logs"})
        self.proxy.gated = lambda path: "/rank-0/" in path
        self.proxy.gates = ("PUT",)
        self.proxy.gate.clear()
        os.mkdir(self.until)
        with self.proxy.changed:
            self.assertTrue(self.proxy.changed.wait_for(lambda: self.proxy.waiting > 0, DEADLINE), self.cluster.story(job))
        self.cluster.wait(job)  # the job does not wait for its logs
        self.assertEqual(self.events(job, "logs-incomplete"), [])
        self.cluster.kill("n0")
        self.cluster.agent("n0", devices=1, wait=False)
        self.proxy.gate.set()
        self.wait_for_logs(job)
        self.check_logs(job)

    def test_each_attempt_has_logs_of_its_own(self):
        os.mkdir(self.until)
        job = self.submit("again", "1")
        self.cluster.wait(job)
        self.assertEqual(self.cluster.show(job)["attempt"], 2)
        self.wait_for_logs(job, 4)
        for attempt in (1, 2):
            self.assertEqual(self.text(job, "rank-0", attempt), self.printed(job, "--rank", "0", "--attempt", str(attempt)))
            self.assertNotEqual(self.text(job, "rank-0", attempt), b"")

    def test_they_are_read_without_a_controller(self):
        os.mkdir(self.until)
        job = self.submit("read")
        self.cluster.wait(job)
        self.wait_for_logs(job)
        whichs = [("--rank", "1", "--raw"), ("--rank", "0"), ("--rank", "0", "--tail", "3"), ("--auxiliary", "setup"), ("--grep", "line 30", "--rank", "0-1")]
        expected = [sorted(self.cluster.muster("logs", *which, job, text=False, code=0).out.split(b"\n")) for which in whichs]
        self.cluster.kill("controller")
        port = serve_rclone(self, "webdav", self.store, "--dir-cache-time", "0")
        end = ("webdav://out/logs/" + job, "--endpoint", f"http://127.0.0.1:{port}")
        for place in ((os.path.join(self.store, "logs", job),), end, ("dir://d/logs/" + job, "--endpoint", self.store)):
            for which, lines in zip(whichs, expected):
                found = self.cluster.muster("logs", *which, *place, text=False, code=0).out
                self.assertEqual(sorted(found.split(b"\n")), lines, (place, which))
        self.assertIn(b"is not in the store", self.without_a_segment(job))
        self.cluster.muster("logs", self.cluster.path("work"), code=10)
        self.cluster.muster("logs", "dir://d/logs/" + job, code=64)
        self.cluster.muster("logs", "-f", os.path.join(self.store, "logs", job), code=64)
        self.cluster.muster("logs", "webdav://out/none", *end[1:], code=13)

    def without_a_segment(self, job):
        segments = self.segments(job, "rank-0")
        os.rename(segments[0], segments[0].replace("/000001-", "/000002-"))
        return self.cluster.muster("logs", "--rank", "0", os.path.join(self.store, "logs", job), text=False, code=0).out

    def test_a_wrong_key_ends_the_upload_with_a_sentence(self):
        self.cluster.muster("store", "add", "dav2", "webdav://out/wrong", "--endpoint", f"http://{self.proxy.address}", "--user", "bob", stdin="no", code=0)
        os.mkdir(self.until)
        job = self.submit("wrong", outputs={"logs_to": "webdav://out/wrong"})
        self.cluster.wait(job)
        wait_until(lambda: len(self.events(job, "logs-incomplete")) == 2, what="the sentences of both nodes")
        self.assertIn("could not upload all logs of attempt 1", self.events(job, "logs-incomplete")[0]["text"])
        self.assertEqual(self.cluster.show(job)["phase"], "succeeded")
        self.assertIn("not all logs of attempt 1 on node 'n0' are in the store", self.cluster.output("why", job))


if __name__ == "__main__":
    unittest.main()
