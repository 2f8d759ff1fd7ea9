#!/usr/bin/python3
"""Inputs in a store: real agents fetch them with a real rclone from real ends of WebDAV and S3, behind a proxy that counts and breaks.

Run:  /usr/bin/python3 tests/integration/inputs_test.py [-v] [CASE]       (needs rclone, s3rver)
"""

import hashlib
import json
import os
import subprocess
import unittest
import zipfile

from cluster import DEADLINE, Cluster, wait_until
from counting_proxy import CountingProxy
from store_ends import S3End, serve_rclone

PASSWORD = "pl4nted-pass"
NAMES = ("train/a b.bin", "train/sub/é.txt", "train/zero", "train/it's 100%", "train/new\nline", "vocab.json")
# Prints what a rank finds: {path: sha256}.
FOUND = """import hashlib,json,os,sys
found = {}
for top in sys.argv[1:]:
    for folder, _, names in os.walk(top) if os.path.isdir(top) else [(os.path.dirname(top), [], [os.path.basename(top)])]:
        for name in names:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, os.path.dirname(top))] = hashlib.sha256(open(path, "rb").read()).hexdigest()
print("FOUND " + json.dumps(found), flush=True)
"""


class Inputs(unittest.TestCase):
    nodes = 1
    agent_options = ()

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        os.makedirs(self.cluster.path("store", "wiki", "train", "sub"))
        for index, name in enumerate(NAMES):
            data = b"" if name.endswith("zero") else hashlib.sha256(name.encode()).digest() * (1000 * index + 1)
            with open(os.path.join(self.wiki, name), "wb") as file:
                file.write(data)
        os.mkdir(os.path.join(self.wiki, "train", "empty"))
        self.controller = self.cluster.controller("--inputs-root", self.cluster.path("inputs"))
        self.agents = [self.cluster.agent(f"n{i}", devices=1, args=self.agent_options) for i in range(self.nodes)]
        self.proxy = CountingProxy("127.0.0.1", self.serve())
        self.addCleanup(self.proxy.__exit__)
        self.program = self.cluster.write("found.py", FOUND)
        self.add_store()

    def add_store(self):
        self.cluster.muster("store", "add", "dav", "webdav://data", "--endpoint", f"http://{self.proxy.address}", "--user", "ann",
                            stdin=PASSWORD, code=0)  # fmt: skip

    @property
    def wiki(self):
        return self.cluster.path("store", "wiki")

    def serve(self):
        return serve_rclone(self, "webdav", self.cluster.path("store"), "--dir-cache-time", "0", "--user", "ann", "--pass", PASSWORD)

    def spec(self, name, **more):
        spec = {
            "name": name,
            "engine": "command",
            "launch": {"run": ["python3", self.program, "${inputs.train}", "${inputs.vocab}"]},
            "inputs": {"train": "webdav://data/wiki/train", "vocab": "webdav://data/wiki/vocab.json"},
            "resources": {"nodes": self.nodes, "devices": 1, "type": "cpu"},
            **more,
        }
        return self.cluster.spec(json.dumps(spec))

    def submit(self, name, **more):
        job = self.cluster.output("run", "-d", self.spec(name, **more)).split()[0]
        self.cluster.jobs.append(job)
        return job

    def expected(self):
        digests = {}
        for name in NAMES:
            with open(os.path.join(self.wiki, name), "rb") as file:
                digests[name] = hashlib.sha256(file.read()).hexdigest()
        return digests

    def found(self, job):
        """What each rank has found."""
        text = self.cluster.output("logs", job)
        return [json.loads(line.split("FOUND ", 1)[1]) for line in text.splitlines() if "FOUND " in line]

    def assert_found(self, job, count=None):
        found = self.found(job)
        self.assertEqual(len(found), count or self.nodes, self.cluster.story(job))
        for one in found:
            self.assertEqual(one, self.expected())

    def partial(self):
        """What fetches have left."""
        folder = self.cluster.path("inputs", "cache", "partial")
        return [name for name in os.listdir(folder) if not name.endswith(".lock")] if os.path.isdir(folder) else []


class OneNode(Inputs):
    def test_a_job_finds_them_and_the_next_one_fetches_nothing(self):
        job = self.submit("first")
        self.cluster.wait(job)
        self.assert_found(job)
        self.assertEqual(self.proxy.counts["GET"], len(NAMES))
        self.proxy.clear()
        again = self.submit("second")
        self.cluster.wait(again)
        self.assert_found(again)
        self.assertEqual(self.proxy.counts["GET"], 0, self.proxy.paths)
        self.assertEqual(self.partial(), [])

    def test_what_is_new_alone_is_fetched(self):
        self.cluster.wait(self.submit("first"))
        with open(os.path.join(self.wiki, "train", "sub", "é.txt"), "w", encoding="utf-8") as file:
            file.write("another text")
        self.proxy.clear()
        job = self.submit("second")
        self.cluster.wait(job)
        self.assert_found(job)
        self.assertEqual(self.proxy.counts["GET"], 1, self.proxy.paths)

    def test_answers_that_are_cut_are_fetched_again(self):
        left = {"count": 3}

        def cut(_path):
            left["count"] -= 1
            return left["count"] >= 0

        self.proxy.cut = cut
        job = self.submit("cut")
        self.cluster.wait(job)
        self.assert_found(job)

    def test_a_store_that_goes_away_in_the_middle(self):
        self.proxy.gate.clear()
        job = self.submit("away")
        with self.proxy.changed:
            self.assertTrue(self.proxy.changed.wait_for(lambda: self.proxy.waiting > 0, DEADLINE), self.cluster.story(job))
        cuts = []
        self.proxy.cut = lambda path: cuts.append(path) or True
        self.proxy.gate.set()
        with self.proxy.changed:
            self.assertTrue(self.proxy.changed.wait_for(lambda: cuts, DEADLINE), self.cluster.story(job))
        self.proxy.slam()
        with self.proxy.changed:
            self.assertTrue(self.proxy.changed.wait_for(lambda: self.proxy.slammed > 1, DEADLINE), self.cluster.story(job))
        self.proxy.cut = lambda path: False
        self.proxy.away()
        self.proxy.back()
        self.cluster.wait(job)
        self.assert_found(job)
        self.assertGreater(self.proxy.counts["GET"], len(NAMES), "what was cut came again")

    def test_an_agent_that_is_killed_in_the_middle(self):
        self.proxy.gate.clear()
        job = self.submit("killed")
        with self.proxy.changed:
            self.assertTrue(self.proxy.changed.wait_for(lambda: self.proxy.waiting > 0, DEADLINE), self.cluster.story(job))
        self.cluster.kill("n0")
        self.cluster.agent("n0", devices=1, wait=False)
        self.proxy.gate.set()
        self.cluster.wait(job)
        self.assert_found(job)
        self.assertEqual(self.partial(), [])
        self.assertEqual(self.rclones(), [])

    def rclones(self):
        of_this_test = f"rclone copy .*{self.cluster.dir}"
        return subprocess.run(["pgrep", "-f", of_this_test], capture_output=True, check=False, text=True).stdout.split()

    def test_nothing_is_left_of_an_agent_that_was_killed(self):
        self.proxy.gate.clear()
        job = self.submit("killed")
        with self.proxy.changed:
            self.assertTrue(self.proxy.changed.wait_for(lambda: self.proxy.waiting > 0, DEADLINE), self.cluster.story(job))
        wait_until(self.rclones, what="rclone to run")
        self.cluster.kill("n0")
        wait_until(lambda: not self.rclones(), what="rclone to end with its agent")
        self.cluster.muster("cancel", job, code=0)
        self.cluster.agent("n0", devices=1, wait=False)
        self.cluster.muster("wait", job)
        self.proxy.gate.set()
        other = self.submit("other", inputs={"train": "webdav://data/wiki/train/sub", "vocab": "webdav://data/wiki/vocab.json"})
        self.cluster.wait(other)
        self.assertEqual(self.partial(), [])

    def test_a_body_that_is_longer_than_the_list_says(self):
        self.proxy.endless = lambda path: path.endswith("vocab.json")
        job = self.submit("endless", recovery={"max_restarts": 0})
        self.assertNotEqual(self.cluster.muster("wait", job).code, 0)
        why = self.cluster.output("why", job)
        self.assertIn("'vocab.json' is longer than the", why)
        self.assertEqual(self.partial(), [])

    def test_a_cancel_while_the_cache_is_searched(self):
        many = os.path.join(self.wiki, "many")
        os.mkdir(many)
        for index in range(300):
            with open(os.path.join(many, str(index)), "wb") as file:
                file.write(b"x")
        inputs = {"train": "webdav://data/wiki/many", "vocab": "webdav://data/wiki/vocab.json"}
        self.cluster.wait(self.submit("first", inputs=inputs))
        jobs = [self.submit(f"again{i}", inputs=inputs, resources={"nodes": 1, "devices": 1, "type": "cpu"}) for i in range(3)]
        for job in jobs:
            wait_until(lambda: "inputs" in self.cluster.output("show", job) or self.cluster.show(job)["phase"] in ("running", "succeeded"), what="the start")
            self.cluster.muster("cancel", job)
            self.cluster.muster("wait", job)
        self.assertTrue(self.agents[0].alive(), "the agent lives")

    def test_a_wrong_key_is_one_sentence(self):
        self.cluster.muster("secret", "set", "store.dav", stdin="wrong", code=0)
        job = self.submit("refused")
        done = self.cluster.muster("wait", job)
        self.assertNotEqual(done.code, 0)
        why = self.cluster.output("why", job)
        self.assertIn("inputs.train: 'webdav://data/wiki/train': rclone: ", why)
        self.assertIn("401 Unauthorized", why)
        self.assertEqual(len(self.cluster.show(job)["attempts"]), 1, "no further try")

    def test_a_spec_without_a_store_is_refused(self):
        refused = self.cluster.muster("run", "-d", self.spec("none", inputs={"train": "obs://bucket/x", "vocab": "webdav://data/wiki/vocab.json"}))
        self.assertEqual(refused.code, 64, refused)
        self.assertIn("inputs.train ('obs://bucket/x'): there is no store", refused.err)

    def test_the_key_is_in_no_file_and_no_command_line(self):
        self.proxy.gate.clear()
        job = self.submit("secret")
        with self.proxy.changed:
            self.assertTrue(self.proxy.changed.wait_for(lambda: self.proxy.waiting > 0, DEADLINE))
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for name in ("cmdline", "environ"):
                try:
                    with open(f"/proc/{pid}/{name}", "rb") as file:
                        text = file.read()
                except OSError:
                    continue
                if b"serve\0webdav" not in text:
                    self.assertNotIn(PASSWORD.encode(), text, (pid, name))
        self.proxy.gate.set()
        self.cluster.wait(job)
        for folder, _, names in os.walk(self.cluster.dir):
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.isfile(path):
                    continue
                try:
                    with open(path, "rb") as file:
                        text = file.read()
                except FileNotFoundError:  # the daemons are at work
                    continue
                self.assertNotIn(PASSWORD.encode(), text, path)


class SmallDisk(Inputs):
    """The inputs are on a disk of 64 MiB, of which 16 stay free."""

    agent_options = ("--min-free", str(16 << 20))

    def setUp(self):
        super().setUp()
        path = self.cluster.path("inputs")
        os.mkdir(path, 0o711)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=711", "tmpfs", path], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest("a small disk needs a tmpfs: " + (done.stderr.strip() or "mount failed"))
        self.addCleanup(subprocess.run, ["umount", "-l", path], check=True)

    def test_others_fill_the_disk_meanwhile(self):
        with open(os.path.join(self.wiki, "train", "a b.bin"), "wb") as file:
            file.write(bytes(30 << 20))
        self.proxy.gate.clear()
        job = self.submit("filled", recovery={"max_restarts": 0})
        with self.proxy.changed:
            self.assertTrue(self.proxy.changed.wait_for(lambda: self.proxy.waiting > 0, DEADLINE), self.cluster.story(job))
        with open(self.cluster.path("inputs", "others"), "wb") as file:
            file.write(bytes(40 << 20))
        self.proxy.gate.set()
        self.assertNotEqual(self.cluster.muster("wait", job).code, 0)
        self.assertRegex(self.cluster.output("why", job), "the disk is full|no space left on device|remaining disk space")
        self.assertEqual(self.partial(), [])

    def test_what_does_not_fit_is_refused_before(self):
        with open(os.path.join(self.wiki, "train", "a b.bin"), "wb") as file:
            file.write(bytes(50 << 20))
        job = self.submit("large", recovery={"max_restarts": 0})
        self.assertNotEqual(self.cluster.muster("wait", job).code, 0)
        self.assertIn("that this node has not, and", self.cluster.output("why", job))
        self.assertNotIn("a%20b.bin", " ".join(path for method, path in self.proxy.paths if method == "GET"))


class TwoNodes(Inputs):
    nodes = 2

    def test_nodes_that_share_a_disk_fetch_once(self):
        job = self.submit("two")
        self.cluster.wait(job)
        self.assert_found(job)
        self.assertEqual(self.proxy.counts["GET"], len(NAMES), self.proxy.paths)


class ObjectStorage(Inputs):
    """As the tutorials for ModelArts have it: data in object storage, named on the command line of run_mindformer.py."""

    def serve(self):
        self.end = S3End(self, self.cluster.path("s3"))
        os.remove(os.path.join(self.wiki, "train", "new\nline"))  # s3rver cannot keep it
        os.rmdir(os.path.join(self.wiki, "train", "empty"))  # no object
        self.end.put(self.wiki, "data/wiki")
        return self.end.port

    def add_store(self, user=S3End.USER):
        self.cluster.muster("store", "add", "s3", "s3://", "--endpoint", f"http://{self.proxy.address}", "--path-style", "--user", user,
                            stdin=S3End.KEY, code=0)  # fmt: skip

    def expected(self):
        names = [name for name in NAMES if os.path.exists(os.path.join(self.wiki, name)) and name.startswith("train/")]
        digests = {}
        for name in names:
            with open(os.path.join(self.wiki, name), "rb") as file:
                digests[name] = hashlib.sha256(file.read()).hexdigest()
        return digests

    def tutorial(self, name):
        code = self.cluster.path("code")
        if not os.path.isdir(code):
            os.mkdir(code)
            for file, text in (("run_mindformer.py", FOUND.replace("sys.argv[1:]", '[sys.argv[sys.argv.index("--train_dataset_dir") + 1]]')), ("a.yaml", "{}")):
                self.cluster.write(os.path.join("code", file), text)
        spec = {
            "name": name,
            "engine": "mindformers",
            "code": {"at": code},
            "launch": {"config": "a.yaml", "args": "--train_dataset_dir s3://data/wiki/train"},
            "resources": {"nodes": 1, "devices": 1, "type": "cpu"},
            "resume": "none",
            "success": "exit0",
        }
        job = self.cluster.output("run", "-d", self.cluster.spec(json.dumps(spec))).split()[0]
        self.cluster.jobs.append(job)
        return job

    def gets(self):
        """Those of objects, and those of lists."""
        paths = [path for method, path in self.proxy.paths if method == "GET"]
        return [path for path in paths if "list-type" not in path and "prefix=" not in path], [path for path in paths if "prefix=" in path]

    def test_the_tutorials_own_command_line(self):
        job = self.tutorial("first")
        self.cluster.wait(job)
        self.assert_found(job)
        objects, _ = self.gets()
        self.assertEqual(len(objects), len(self.expected()), self.proxy.paths)
        self.proxy.clear()
        again = self.tutorial("second")
        self.cluster.wait(again)
        self.assert_found(again)
        objects, lists = self.gets()
        self.assertEqual((objects, len(lists), self.proxy.counts["GET"]), ([], 1, 1), self.proxy.paths)

    def test_beginnings_of_names_take_the_files_that_begin_so(self):
        """As Megatron's --data-path has them; beside them is more."""
        for name in ("text.bin", "text.idx", "other.bin"):
            with open(os.path.join(self.wiki, "train", name), "wb") as file:
                file.write(name.encode())
        self.end.put(self.wiki, "data/wiki")
        job = self.trained("megatron", "--data-path 30 s3://data/wiki/train/text", 'glob.glob(sys.argv[3] + "*")')
        self.assertEqual(
            [os.path.basename(path) for path in self.printed(job)], ["text.bin", "text.idx"], self.cluster.story(job)
        )
        objects, _ = self.gets()
        self.assertEqual(len(objects), 2, self.proxy.paths)

    def test_a_job_starts_from_weights_in_a_store(self):
        start = {"start": {"from": "s3://data/wiki/train"}}
        job = self.trained("command", "--from ${start.dir}", 'os.listdir(sys.argv[2])', **start)
        self.assertEqual(self.printed(job), sorted(os.listdir(os.path.join(self.wiki, "train"))))
        # A step of it, which muster looks for in the files that were fetched.
        start["start"].update({"as": "resume", "step": 7})
        more = {"checkpoint": {"layout": "megatron"}, "resume": {"args": "--load ${resume.dir}"}, **start}
        job = self.trained("command", "", "sys.argv", done=False, **more)
        self.assertIn("start.from: ", self.cluster.output("why", job))
        tree = os.path.join(self.wiki, "train", "iter_0000007", "mp_rank_00")
        os.makedirs(tree)
        with zipfile.ZipFile(os.path.join(tree, "model_optim_rng.pt"), "w") as file:
            file.writestr("archive/data.pkl", "state")
        self.end.put(self.wiki, "data/wiki")
        job = self.trained("command", "", "os.listdir(sys.argv[-1])", **more)
        self.assertEqual(self.printed(job), ["iter_0000007", "latest_checkpointed_iteration.txt"])

    def trained(self, engine, args, found, done=True, **more):
        """A job of this command line, whose ranks print `found`."""
        script = self.cluster.write("train.py", f"import glob, json, os, sys\nprint('FOUND', json.dumps(sorted({found})), flush=True)\n")
        launch = {"script": script, "args": args} if engine != "command" else {"run": f"python3 {script} {args}"}
        spec = {"name": "trained", "engine": engine, "launch": launch, "success": "exit0", "resume": "none", **more}
        spec["resources"] = {"nodes": 1, "devices": 1, "type": "cpu"}
        job = self.cluster.output("run", "-d", self.cluster.spec(json.dumps(spec))).split()[0]
        self.cluster.jobs.append(job)
        self.cluster.wait(job) if done else self.cluster.muster("wait", job)
        return job

    def printed(self, job):
        return self.found(job)[0]

    def test_urls_in_the_configuration(self):
        """The ranks get a copy of it with paths."""
        self.tutorial("first")  # makes the code
        self.cluster.write("code/b.yaml", "load_checkpoint: s3://data/wiki/vocab.json\nremote_save_url: s3://data/out\n")
        self.cluster.write("code/run_mindformer.py", "import sys\nprint('FOUND', '[\"' + open(sys.argv[sys.argv.index('--config') + 1]).read().split()[1].strip(chr(39)) + '\"]', flush=True)\n")
        spec = {"name": "config", "engine": "mindformers", "code": {"at": self.cluster.path("code")}, "launch": {"config": "b.yaml", "args": "--run_mode train"}}
        spec.update({"resources": {"nodes": 1, "devices": 1, "type": "cpu"}, "resume": "none", "success": "exit0"})
        file = self.cluster.spec(json.dumps(spec))
        plan = self.cluster.muster("plan", file, code=0)
        self.assertIn("+load_checkpoint: ", plan.out)
        self.assertIn("# inputs.load_checkpoint: s3://data/wiki/vocab.json: 1 object, ", plan.out)
        self.assertIn("+remote_save_url: null", plan.out)
        done = self.cluster.muster("run", "-d", file, code=0)
        job = done.out.split()[0]
        self.cluster.jobs.append(job)
        self.cluster.wait(job)
        path = self.printed(job)[0]
        self.assertEqual(os.path.basename(path), "vocab.json")
        self.assertTrue(path.startswith(self.cluster.path("inputs")), path)

    def test_a_plan_counts_what_would_come(self):
        spec = self.spec("counted", inputs={"train": "s3://data/wiki/train", "none": "s3://data/none"}, launch={"run": ["ls", "${inputs.train}", "${inputs.none}"]})
        plan = json.loads(self.cluster.output("plan", spec, "-o", "json"))
        inputs = {one["name"]: one for one in plan["inputs"]}
        sizes = [os.path.getsize(os.path.join(self.wiki, name)) for name in NAMES if name in self.expected()]
        self.assertEqual((int(inputs["train"]["objects"]), int(inputs["train"]["bytes"])), (len(sizes), sum(sizes)))
        self.assertEqual(inputs["none"]["trouble"], "there is nothing at this URL")
        self.assertEqual(inputs["train"]["store"], "s3")
        self.assertIn(f"{len(sizes)} objects", self.cluster.output("store", "check", "--size", "s3://data/wiki/train"))

    def test_one_object_of_a_large_directory(self):
        """Nothing beside it is listed."""
        spec = self.spec("one", inputs={"vocab": "s3://data/wiki/vocab.json"}, launch={"run": ["sha256sum", "${inputs.vocab}"]})
        job = self.cluster.output("run", "-d", spec).split()[0]
        self.cluster.jobs.append(job)
        self.cluster.wait(job)
        with open(os.path.join(self.wiki, "vocab.json"), "rb") as file:
            self.assertIn(hashlib.sha256(file.read()).hexdigest(), self.cluster.output("logs", job))
        objects, lists = self.gets()
        self.assertEqual((len(objects), lists), (1, []), self.proxy.paths)

    def test_an_object_of_several_parts(self):
        with open(os.path.join(self.wiki, "train", "a b.bin"), "wb") as file:
            file.write(os.urandom(1 << 20) * 11)
        self.end.put(self.wiki, "data/wiki", "--s3-upload-cutoff", "5M", "--s3-chunk-size", "5M")
        job = self.tutorial("parts")
        self.cluster.wait(job)
        self.assert_found(job)

    def test_a_wrong_key_is_one_sentence(self):
        self.add_store("NOBODY")
        job = self.tutorial("refused")
        self.assertNotEqual(self.cluster.muster("wait", job).code, 0)
        why = self.cluster.output("why", job)
        self.assertIn("inputs.train_dataset_dir: 's3://data/wiki/train': rclone: ", why)
        self.assertIn("Forbidden", why)
        self.assertEqual(len(self.cluster.show(job)["attempts"]), 1, "no further try")

    def test_thousands_of_objects_are_listed_a_thousand_at_a_time(self):
        many = self.cluster.path("many")
        os.mkdir(many)
        for index in range(2_100):
            with open(os.path.join(many, f"{index:05}"), "w", encoding="utf-8") as file:
                file.write(str(index))
        self.end.put(many, "data/many", "--transfers", "16")
        spec = self.spec("many", inputs={"train": "s3://data/many"}, launch={"run": ["ls", "${inputs.train}"]})
        plan, counts = self.cluster.output("plan", spec), []
        for _ in range(2):
            self.proxy.clear()
            job = self.cluster.output("run", "-d", spec).split()[0]
            self.cluster.jobs.append(job)
            self.cluster.wait(job)
            listed = self.cluster.output("logs", job, "--raw", "--rank", "0").split()
            self.assertEqual(sorted(listed), sorted(os.listdir(many)))
            objects, lists = self.gets()
            counts.append((len(objects), len(lists)))
        self.assertEqual(counts, [(2_100, 9), (0, 3)])
        self.assertIn("2100 GETs and about 9 list requests, else 3", plan, "the same as was counted")


if __name__ == "__main__":
    unittest.main()
