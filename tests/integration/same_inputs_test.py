#!/usr/bin/python3
"""All attempts and all nodes of a job have the same objects of its inputs, whatever is done at the store meanwhile: real stores, a real rclone.

Run:  /usr/bin/python3 tests/integration/same_inputs_test.py [-v] [CASE]       (needs rclone, s3rver)
"""

import contextlib
import json
import os
import unittest

from cluster import Cluster, wait_until
from counting_proxy import CountingProxy
from own_disks import WHY_NOT, may_mount, own_disk
from store_ends import S3End

# What a rank has below a directory, in one line. An attempt for which there is a FIFO waits for somebody to write to it, and fails.
PROGRAM = """import os, sys
top, gate = sys.argv[1], sys.argv[2] + "." + os.environ["MUSTER_ATTEMPT"]
found = sorted(os.path.relpath(os.path.join(folder, name), top) for folder, _, names in os.walk(top) for name in names)
texts = [name + "=" + open(os.path.join(top, name)).read() for name in found]
print("FOUND", *texts, flush=True)
if os.path.exists(gate):
    open(gate).read()
    sys.exit(3)
"""


class Jobs(unittest.TestCase):
    nodes = ("n0",)

    def start(self, **agents):
        """`agents`: what is before each agent's command line."""
        self.cluster.controller("--inputs-root", self.cluster.path("inputs"))
        for node in self.nodes:
            self.cluster.agent(node, devices=1, before=agents.get(node, ()))
        self.gate = self.cluster.path("gate")
        self.program = self.cluster.write("program.py", PROGRAM)

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)

    def submit(self, name, url):
        spec = {
            "name": name,
            "engine": "command",
            "launch": {"run": ["python3", self.program, "${inputs.data}", self.gate]},
            "inputs": {"data": url},
            "resources": {"nodes": len(self.nodes), "devices": 1, "type": "cpu"},
            "recovery": {"max_restarts": 20},
        }
        return self.cluster.submit(json.dumps(spec))

    def write(self, *path, text):
        name = os.path.join(*path)
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def first_attempt_waits(self):
        """When it does: what ends its wait when it is closed."""

        def opened():
            with contextlib.suppress(OSError):  # nobody reads yet
                return os.fdopen(os.open(self.gate + ".1", os.O_WRONLY | os.O_NONBLOCK), "w")

        writers = []
        wait_until(lambda: writers.append(opened()) or writers[-1], what="the first attempt to wait")
        return writers[-1]

    def found(self, job, attempt):
        """{rank: its line}"""
        out = {}
        for rank in range(len(self.nodes)):
            text = self.cluster.output("logs", job, "--raw", "--rank", str(rank), "--attempt", str(attempt))
            out.update({rank: line.removeprefix("FOUND ") for line in text.splitlines() if line.startswith("FOUND")})
        return out

    def events(self, job, kind):
        lines = self.cluster.output("events", "-o", "jsonl", job).splitlines()
        return [event for event in map(json.loads, lines) if event["type"] == kind]


class TheStoreChanges(Jobs):
    """While a job trains. The next attempt asks the store for nothing; another job has what is there by then."""

    def setUp(self):
        super().setUp()
        self.start()
        os.mkfifo(self.gate + ".1")
        self.end = S3End(self, self.cluster.path("s3"))
        self.proxy = CountingProxy("127.0.0.1", self.end.port)
        self.addCleanup(self.proxy.__exit__)
        self.put(a="first", b="second")
        self.cluster.muster("store", "add", "s3", "s3://", "--endpoint", f"http://{self.proxy.address}", "--path-style", "--user", S3End.USER,
                            stdin=S3End.KEY, code=0)  # fmt: skip

    def put(self, **texts):
        source = self.cluster.path("source")
        for name, text in texts.items():
            self.write(source, name, text=text)
        self.end.put(source, "data/wiki")


    def test_a_restart_has_what_the_job_began_with(self):
        job = self.submit("first", "s3://data/wiki")
        with self.first_attempt_waits():
            self.put(a="another text", c="new")
            self.proxy.clear()
        self.cluster.wait(job)
        self.assertEqual(self.cluster.show(job)["attempt"], 2)
        for attempt in (1, 2):
            self.assertEqual(self.found(job, attempt), {0: "a=first b=second"})
        self.assertEqual(self.proxy.paths, [], "the store is asked for nothing")
        self.assertEqual(self.events(job, "inputs-changed"), [])
        os.remove(self.gate + ".1")
        another = self.submit("second", "s3://data/wiki")
        self.cluster.wait(another)
        self.assertEqual(self.found(another, 1), {0: "a=another text b=second c=new"})

    def test_a_node_that_has_lost_the_list_says_so(self):
        job = self.submit("first", "s3://data/wiki")
        with self.first_attempt_waits():
            self.put(c="new")
            kept = self.cluster.path("inputs", "cache", "contents")
            self.assertEqual(len(os.listdir(kept)), 1)
            for name in os.listdir(kept):
                os.remove(os.path.join(kept, name))
        self.cluster.wait(job)
        self.assertEqual(self.found(job, 2), {0: "a=first b=second c=new"})
        changed = self.events(job, "inputs-changed")
        self.assertEqual(len(changed), 1, self.cluster.story(job))
        self.assertIn("data", changed[0]["text"])


@unittest.skipUnless(may_mount(), WHY_NOT)
class NodesDiffer(Jobs):
    """A directory of the site that shows one node more than the other, as a mount that is stale."""

    nodes = ("n0", "n1")

    def test_the_attempt_ends_with_a_sentence_and_a_later_one_goes_on(self):
        seen = self.cluster.path("site")
        sites = {node: self.cluster.path(f"site-{node}") for node in self.nodes}
        for path in (seen, *sites.values()):
            os.mkdir(path)
        for number, site in enumerate(sites.values()):  # copies of one file: their times do not count
            os.utime(self.write(site, "a", text="same"), (1_700_000_000 + number, 1_700_000_000 + number))
        self.write(sites["n1"], "b", text="new")
        self.start(**{node: own_disk(site, seen) for node, site in sites.items()})
        self.cluster.muster("store", "add", "site", "dir://site", "--endpoint", seen, code=0)
        job = self.submit("differ", "dir://site")
        wait_until(lambda: self.events(job, "attempt-ended"), what="the end of an attempt")
        ended = self.events(job, "attempt-ended")[0]["text"]
        self.assertIn("inputs.data has other files on node", ended)
        self.assertIn("'dir://site'", ended)
        os.rename(self.write(sites["n0"], ".b", text="new"), os.path.join(sites["n0"], "b"))
        self.cluster.wait(job)
        last = self.cluster.show(job)["attempt"]
        self.assertEqual(self.found(job, last), {0: "a=same b=new", 1: "a=same b=new"})


if __name__ == "__main__":
    unittest.main()
