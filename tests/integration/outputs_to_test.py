#!/usr/bin/python3
"""outputs.to: what a job has written goes to a store, by a real rclone, while the job is completing and its devices are free.

Run:  /usr/bin/python3 tests/integration/outputs_to_test.py [-v] [CASE]       (needs rclone)
"""

import json
import os
import unittest

from cluster import DEADLINE, Cluster, wait_until
from counting_proxy import CountingProxy
from store_ends import serve_rclone
from store_sums import check_sums

PASSWORD = "pl4nted-pass"
# Each rank writes a file of its own; the one of rank 0 is in a directory.
PROGRAM = """import os, sys
out, rank, attempt = sys.argv[1], os.environ["MUSTER_RANK"], os.environ["MUSTER_ATTEMPT"]
os.makedirs(os.path.join(out, "a b"), exist_ok=True)
with open(os.path.join(out, "a b" if rank == "0" else "", f"rank {rank}.bin"), "w") as file:
    file.write(f"attempt {attempt} of rank {rank}\\n" * 1000)
sys.exit(3 if attempt in sys.argv[2:] else 0)
"""
# Two lines, the second when a directory is there; it ends when that is gone.
GROWING = """import os, sys, time
with open(os.path.join(sys.argv[1], "log"), "w") as file:
    file.write("line 1\\n")
    file.flush()
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.02)
    file.write("line 2\\n")
while os.path.exists(sys.argv[2]):
    time.sleep(0.02)
"""


class OutputsTo(unittest.TestCase):
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
        self.cluster.muster("store", "add", "dav", "webdav://out", "--endpoint", f"http://{self.proxy.address}", "--user", "ann", stdin=PASSWORD, code=0)

    def tearDown(self):
        self.proxy.gate.set()

    def submit(self, name, *failing, **outputs):
        spec = {
            "name": name,
            "engine": "command",
            "launch": {"run": ["python3", self.program, "${out}", *failing]},
            "outputs": {"to": "webdav://out/runs/" + name, **outputs},
            "resources": {"nodes": len(self.nodes), "devices": 1, "type": "cpu"},
            "recovery": {"max_restarts": 3},
        }
        return self.cluster.submit(json.dumps(spec))

    def uploaded(self, name):
        """{name below the URL: its text}, but for the lists of sums, which are true."""
        top = os.path.join(self.store, "runs", name)
        check_sums(self, top)
        found = {}
        for folder, below, names in os.walk(top):
            below[:] = [one for one in below if one != ".muster"]
            for one in names:
                path = os.path.join(folder, one)
                with open(path, encoding="utf-8") as file:
                    found[os.path.relpath(path, top)] = file.read()
        return found

    def expected(self, attempt):
        return {"a b/rank 0.bin": f"attempt {attempt} of rank 0\n" * 1000, "rank 1.bin": f"attempt {attempt} of rank 1\n" * 1000}

    def events(self, job, kind):
        return [event for event in map(json.loads, self.cluster.output("events", "-o", "jsonl", job).splitlines()) if event["type"] == kind]

    def test_outputs_are_there_when_the_job_has_ended(self):
        job = self.submit("plain")
        self.cluster.wait(job)
        self.assertEqual(self.uploaded("plain"), self.expected(1), self.cluster.story(job))
        self.assertEqual(len(self.events(job, "outputs-uploaded")), 1, "both nodes have the same files: the first one uploads them")

    def test_only_what_is_included(self):
        job = self.submit("some", include=["a b/"])
        self.cluster.wait(job)
        self.assertEqual(sorted(self.uploaded("some")), ["a b/rank 0.bin"], self.cluster.story(job))

    def test_other_files_are_there_while_it_trains(self):
        written = self.cluster.path("work", "written")
        program = self.cluster.write("grows.py", GROWING)
        spec = {
            "name": "grows",
            "engine": "command",
            "launch": {"run": ["python3", program, "${out}", written]},
            "outputs": {"to": "webdav://out/runs/grows", "every": "1s", "rate_limit": "1MiB"},
            "resources": {"nodes": 1, "devices": 1, "type": "cpu"},
        }
        job = self.cluster.submit(json.dumps(spec))
        wait_until(lambda: self.uploaded("grows") == {"log": "line 1\n"}, what="the first line in the store")
        self.assertEqual(self.cluster.show(job)["phase"], "running")
        os.mkdir(written)
        wait_until(lambda: self.uploaded("grows") == {"log": "line 1\nline 2\n"}, what="the second line in the store")
        os.rmdir(written)
        self.cluster.wait(job)
        self.assertEqual(self.uploaded("grows"), {"log": "line 1\nline 2\n"})

    def test_the_devices_are_free_while_it_uploads(self):
        self.proxy.gates = ("PUT",)
        self.proxy.gate.clear()
        job = self.submit("first")
        with self.proxy.changed:
            self.assertTrue(self.proxy.changed.wait_for(lambda: self.proxy.waiting > 0, DEADLINE), self.cluster.story(job))
        self.assertEqual(self.cluster.show(job)["phase"], "completing")
        self.assertIn("its outputs are uploaded by", self.cluster.output("why", job))
        self.assertEqual(self.uploaded("first"), {})
        spec = {"name": "other", "engine": "command", "launch": {"run": ["true"]}, "resources": {"nodes": 2, "devices": 1, "type": "cpu"}}
        self.cluster.wait(self.cluster.submit(json.dumps(spec)))
        self.assertEqual(self.cluster.show(job)["phase"], "completing")
        self.proxy.gate.set()
        self.cluster.wait(job)
        self.assertEqual(self.uploaded("first"), self.expected(1))

    def test_an_agent_that_is_killed_while_it_uploads(self):
        self.proxy.gates = ("PUT",)
        self.proxy.gate.clear()
        job = self.submit("killed")
        with self.proxy.changed:
            self.assertTrue(self.proxy.changed.wait_for(lambda: self.proxy.waiting > 0, DEADLINE), self.cluster.story(job))
        self.cluster.kill("n0")
        self.cluster.agent("n0", devices=1, wait=False)
        self.proxy.gate.set()
        self.cluster.wait(job)
        self.assertEqual(self.uploaded("killed"), self.expected(1), self.cluster.story(job))

    def test_a_failed_attempt_is_uploaded_too_and_restarts_at_once(self):
        job = self.submit("again", "1")
        self.cluster.wait(job)
        self.assertEqual(self.cluster.show(job)["attempt"], 2)
        wait_until(lambda: self.uploaded("again") == self.expected(2), what="the outputs of the second attempt")

    def test_a_wrong_key_ends_the_upload_with_a_sentence(self):
        self.cluster.muster("store", "add", "dav2", "webdav://out/runs/wrong", "--endpoint", f"http://{self.proxy.address}", "--user", "bob", stdin="no", code=0)
        job = self.submit("wrong")
        self.cluster.wait(job)
        incomplete = self.events(job, "outputs-incomplete")
        self.assertEqual(len(incomplete), 1, self.cluster.story(job))
        self.assertIn("node 'n0' could not upload all outputs", incomplete[0]["text"])
        self.assertEqual(self.uploaded("wrong"), {})

    def test_a_cancel_does_not_wait_for_it(self):
        self.proxy.gates = ("PUT",)
        self.proxy.gate.clear()
        job = self.submit("cancelled")
        with self.proxy.changed:
            self.assertTrue(self.proxy.changed.wait_for(lambda: self.proxy.waiting > 0, DEADLINE), self.cluster.story(job))
        self.cluster.muster("cancel", job, code=0)
        wait_until(lambda: self.cluster.show(job)["phase"] == "cancelled", what="the job's end")


if __name__ == "__main__":
    unittest.main()
