#!/usr/bin/python3
"""code.patches on a cluster of two nodes: each runs its own patched copy and the code stays as it is, a later attempt runs the same copy, a patch that does not apply
ends the job at once, muster's own patch makes every node build its index files, and a container sees the copy.

What people are told is in tests/golden/code-errors.txt.  Run:  /usr/bin/python3 tests/integration/code_patches_test.py [--rewrite] [-v] [CASE]
"""

import json
import os
import shutil
import signal
import sys
import unittest

import container_test
from cluster import BIN, ROOT, Cluster, wait_until
from golden import Golden, GoldenCase

HEAD = """# What people are told of code.patches. Reviewed as text.
# Written by tests/integration/code_patches_test.py --rewrite. <dir> is the test's directory; ids, ports, pids and ages are replaced.
"""
GOLDEN = Golden(os.path.join(ROOT, "tests/golden/code-errors.txt"), HEAD, "--rewrite" in sys.argv)

TRAIN = """\
import json, os, sys
sys.dont_write_bytecode = True
from lib import steps
rank, attempt = os.environ["MUSTER_RANK"], os.environ["MUSTER_ATTEMPT"]
again = os.path.exists("left-by-an-attempt")
open("left-by-an-attempt", "w").close()
seen = {"cwd": os.getcwd(), "script": os.path.abspath(__file__), "steps": steps.STEPS, "pid": os.getpid(), "again": again, "word": "plain"}
with open(f"{sys.argv[1]}/{rank}-{attempt}.part", "w") as file:
    json.dump(seen, file)
os.rename(file.name, f"{sys.argv[1]}/{rank}-{attempt}")
if attempt == "1" and len(sys.argv) > 2:
    open(sys.argv[2]).read()
"""
STEPS = "# how long\nSTEPS = 3\n"
WORD = """\
--- a/train.py
+++ b/train.py
@@ -5,5 +5,5 @@ rank, attempt = os.environ["MUSTER_RANK"], os.environ["MUSTER_ATTEMPT"]
 again = os.path.exists("left-by-an-attempt")
 open("left-by-an-attempt", "w").close()
-seen = {"cwd": os.getcwd(), "script": os.path.abspath(__file__), "steps": steps.STEPS, "pid": os.getpid(), "again": again, "word": "plain"}
+seen = {"cwd": os.getcwd(), "script": os.path.abspath(__file__), "steps": steps.STEPS, "pid": os.getpid(), "again": again, "word": "patched"}
 with open(f"{sys.argv[1]}/{rank}-{attempt}.part", "w") as file:
     json.dump(seen, file)
"""
LONGER = """\
diff --git a/lib/steps.py b/lib/steps.py
index 1111111..2222222 100644
--- a/lib/steps.py
+++ b/lib/steps.py
@@ -1,2 +1,3 @@
 # how long
-STEPS = 3
+from lib.more import MORE
+STEPS = 3 + MORE
diff --git a/lib/more.py b/lib/more.py
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/lib/more.py
@@ -0,0 +1 @@
+MORE = 4
"""

JOB = """\
name: {name}
engine: command
code: {{from: code, patches: {patches}}}
launch: {{script: train.py, args: [{seen}{args}]}}
resources: {{nodes: 2, devices: 1, type: cpu}}
recovery: {{max_restarts: 3, stop_grace: 2s}}
"""


def tree(path):
    """{file below it: its bytes}."""
    found = {}
    for directory, _, names in os.walk(path):
        for name in names:
            with open(os.path.join(directory, name), "rb") as file:
                found[os.path.relpath(file.name, path)] = file.read()
    return found


class Patches(GoldenCase):
    golden = GOLDEN

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.cluster.controller()
        for name in ("n0", "n1"):
            self.cluster.agent(name, devices=1)
        os.makedirs(self.cluster.path("code/lib"))
        os.mkdir(self.cluster.path("seen"))
        self.cluster.write("code/train.py", TRAIN)
        self.cluster.write("code/lib/__init__.py", "")
        self.cluster.write("code/lib/steps.py", STEPS)
        self.cluster.write("word.diff", WORD)
        self.cluster.write("longer.diff", LONGER)

    def job(self, name, patches, args="", seen=None):
        return self.cluster.spec(
            JOB.format(
                name=name, patches=patches, seen=seen or self.cluster.path("seen"), args=args
            ),
            "job.yaml",
        )

    def seen(self, rank, attempt):
        path = self.cluster.path("seen", f"{rank}-{attempt}")
        wait_until(lambda: os.path.exists(path), what=f"rank {rank} of attempt {attempt}")
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def shown(self, job):
        return json.loads(self.cluster.muster("show", job, "-o", "json", code=0).out)

    def test_every_node_runs_its_copy_and_every_attempt_the_same(self):
        before = tree(self.cluster.path("code"))
        gate = self.cluster.path("gate")
        os.mkfifo(gate)
        job = (
            self.cluster.muster(
                "run", "-d", self.job("patched", "[word.diff, longer.diff]", f", {gate}"), code=0
            )
            .out.strip()
            .split()[-1]
        )
        first = [self.seen(rank, 1) for rank in (0, 1)]
        for rank, seen in enumerate(first):
            self.assertEqual((seen["word"], seen["steps"], seen["again"]), ("patched", 7, False))
            self.assertRegex(seen["cwd"], rf"/code/node-{rank}/code$")
            self.assertEqual(seen["script"], os.path.join(seen["cwd"], "train.py"))
        self.assertEqual(
            tree(self.cluster.path("code")), before, "the code itself is never written"
        )

        self.cluster.write("code/lib/steps.py", "STEPS = 100\n")  # somebody goes on working in it
        os.kill(first[1]["pid"], signal.SIGKILL)
        for rank in (0, 1):
            seen = self.seen(rank, 2)
            self.assertEqual(
                (seen["cwd"], seen["word"], seen["steps"], seen["again"]),
                (first[rank]["cwd"], "patched", 7, True),
            )
        self.cluster.muster("wait", job, code=0)
        self.assertEqual(
            sorted(os.listdir(os.path.dirname(os.path.dirname(first[0]["cwd"])))),
            ["node-0", "node-1"],
            "nothing is left beside the copies",
        )

    def test_a_patch_that_does_not_apply_ends_the_job_at_once(self):
        self.cluster.write("code/lib/steps.py", "# how short\nSTEPS = 3\n")
        spec = self.job("unfit", "[word.diff, longer.diff]")

        def run():  # on one node: which of two is the first to say so nobody knows
            return self.cluster.muster(
                "run",
                "-q",
                spec,
                "--set",
                "resources.nodes=1",
                "--set",
                "resources.hosts=[n1]",
                "--timeout",
                "60s",
            )

        self.check_output(self.cluster, "a patch that does not apply", run(), 1)
        self.assertEqual(self.shown("unfit").get("attempt"), 1)
        self.cluster.write(
            "code/lib/steps.py", "# how long\nfrom lib.more import MORE\nSTEPS = 3 + MORE\n"
        )
        self.cluster.write("code/lib/more.py", "MORE = 4\n")
        self.check_output(self.cluster, "a patch that the code has already", run(), 1)
        os.truncate(self.cluster.write("code/data.bin", ""), 501 << 20)
        self.check_output(self.cluster, "code that is too big for a copy", run(), 1)
        self.assertEqual(os.listdir(self.cluster.path("seen")), [], "nothing ran")

    def test_what_is_wrong_is_reported_before_anything_is_sent(self):
        self.cluster.write("outside.diff", WORD.replace("b/train.py", "b/../train.py"))
        self.cluster.write("short.diff", "\n".join(WORD.split("\n")[:6]) + "\n")
        self.cluster.write("words.txt", "please make it faster\n")
        spec = self.job(
            "wrong",
            "[outside.diff, short.diff, words.txt, gone.diff, builtin:node-local-index, builtin:faster]",
        )
        self.check_output(
            self.cluster, "patches that are none", self.cluster.muster("run", "-q", spec), 64
        )
        self.cluster.write("big.diff", "#" * (513 << 10))
        self.check_output(
            self.cluster,
            "a patch that is too big",
            self.cluster.muster("run", "-q", self.job("big", "big.diff")),
            64,
        )

    def test_the_plan_shows_patches_and_paths_of_the_copy(self):
        spec = self.job("planned", "[word.diff, longer.diff]")
        plan = self.cluster.muster(
            "plan",
            spec,
            "--set",
            f"runtime.env.PYTHONPATH={self.cluster.path('code')}/lib",
            "--rank",
            "1",
            code=0,
        ).out
        self.assertIn(
            f"# code.patches: node K copies {self.cluster.path('code')} to ${{out}}/code/node-K/code and puts on it, in this order:\n# word.diff (",
            plan,
        )
        self.assertIn("#   train.py +1 -1\n", plan)
        self.assertIn("#   lib/steps.py +2 -1\n#   lib/more.py (new) +1 -0\n", plan)
        self.assertIn("runtime.env.PYTHONPATH names the code without the patches", plan)
        self.assertRegex(plan, r"\ncd \S+/code/node-1/code\n")
        self.assertRegex(plan, r" -u \S+/code/node-1/code/train\.py ")


# Megatron-LM as far as builtin:node-local-index touches it: the known lines in programs that run.
TORCH = """\
import os
class distributed:
    is_initialized = staticmethod(lambda: True)
    get_rank = staticmethod(lambda: int(os.environ["RANK"]))
    barrier = staticmethod(lambda: None)
class utils:
    class data:
        Dataset = object
"""
GPT = """\
import os
import torch


class GPTDataset(torch.utils.data.Dataset):
    def __init__(self, config, dataset):
        self.config, self.dataset, self.unique_description_hash, self.index_split = config, dataset, "abc", "train"
        self.index = self._build_document_sample_shuffle_indices()

    def _build_document_sample_shuffle_indices(
        self,
    ):
        path_to_cache = self.config.path_to_cache
        path = os.path.join(path_to_cache, "document_index")
        cache_hit = os.path.isfile(path)
        if not path_to_cache or (
            not cache_hit
            and (not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0)
        ):
            os.makedirs(path_to_cache, exist_ok=True)
            with open(os.path.join(path_to_cache, "builders"), "a") as file:
                file.write(os.environ["RANK"] + "\\n")
            with open(path, "w") as file:
                for number in range(20000):
                    file.write(f"{number}\\n")
        with open(path) as file:
            return len(file.readlines())
"""
BLENDED = """\
import os
import torch


class BlendedDataset(torch.utils.data.Dataset):
    def _build_indices(self):
        path_to_cache, cache_hit = None, False
        if not path_to_cache or (not cache_hit and torch.distributed.get_rank() == 0):
            return 1
"""
INITIALIZE = """\
import torch


def _compile_dependencies():
    if torch.distributed.get_rank() == 0:
        from megatron.core.datasets.utils import compile_helpers

        compile_helpers()
    torch.distributed.barrier()


def after():
    pass
"""
UTILS = """\
import os


def compile_helpers():
    with open(os.path.join(os.path.dirname(__file__), "helpers_cpp"), "a") as file:
        file.write(os.environ["RANK"] + "\\n")
"""
PRETRAIN = """\
import os, sys
sys.dont_write_bytecode = True
from megatron.training.initialize import _compile_dependencies
from megatron.core.datasets.gpt_dataset import GPTDataset
from megatron.core.datasets.blended_dataset import BlendedDataset
_compile_dependencies()
class Config:
    path_to_cache, mock = sys.argv[sys.argv.index("--data-cache-path") + 1], False
class Files:
    path_prefix = "/data/wiki"
print("samples", GPTDataset(Config, Files).index)
"""

MEGATRON = """\
name: {name}
engine: megatron
code: {{from: Megatron-LM, patches: {patches}}}
launch: {{script: pretrain_gpt.py, args: ["--data-cache-path", "{dir}/{name}/disk-of-${{node.rank}}"]}}
runtime: {{env: {{TMPDIR: "{dir}"}}}}
resources: {{nodes: 2, devices: 4, type: cpu}}
recovery: {{max_restarts: 0}}
success: exit0
"""


class NodeLocalIndex(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.cluster.controller()
        for name in ("n0", "n1"):
            self.cluster.agent(name, devices=4)
        files = {"pretrain_gpt.py": PRETRAIN, "torch.py": TORCH, "megatron/training/initialize.py": INITIALIZE, "megatron/core/datasets/gpt_dataset.py": GPT,
                 "megatron/core/datasets/blended_dataset.py": BLENDED, "megatron/core/datasets/utils.py": UTILS}  # fmt: skip
        for name, text in files.items():
            os.makedirs(os.path.dirname(self.cluster.path("Megatron-LM", name)), exist_ok=True)
            self.cluster.write("Megatron-LM/" + name, text)

    def read(self, *path):
        with open(self.cluster.path(*path), encoding="utf-8") as file:
            return file.read().split()

    def test_one_rank_a_node_builds(self):
        spec = MEGATRON.format(
            name="local", patches="[builtin:node-local-index]", dir=self.cluster.dir
        )
        job = (
            self.cluster.muster("run", "-d", self.cluster.spec(spec, "job.yaml"), code=0)
            .out.strip()
            .split()[-1]
        )
        done = self.cluster.muster("logs", "-f", "--rank", "all", job)
        self.cluster.muster("wait", job, code=0)
        self.assertEqual(done.out.count("samples 20000"), 8, f"{done}")
        for node, ranks in enumerate(({"0", "1", "2", "3"}, {"4", "5", "6", "7"})):
            builders = self.read("local", f"disk-of-{node}", "builders")
            self.assertEqual(len(builders), 1, "the others waited for it, and found its files")
            self.assertLess(set(builders), ranks)
        copies = [
            line.split()[1]
            for line in self.cluster.muster("env", job, "--rank", "4", code=0).out.split("\n")
            if line.startswith("cd ")
        ]
        self.assertEqual(
            self.read(copies[0], "megatron/core/datasets/helpers_cpp"),
            ["4"],
            "each node's first rank compiles for its copy",
        )
        self.assertFalse(
            os.path.exists(self.cluster.path("Megatron-LM/megatron/core/datasets/helpers_cpp"))
        )

    def test_without_it_ranks_of_the_other_node_find_nothing(self):
        spec = MEGATRON.format(name="plain", patches="[]", dir=self.cluster.dir)
        done = self.cluster.muster(
            "run", "-q", self.cluster.spec(spec, "job.yaml"), "--timeout", "60s"
        )
        self.assertEqual(done.code, 1, f"{done}")
        self.assertFalse(os.path.exists(self.cluster.path("plain/disk-of-1/document_index")))


CONTAINER = """\
name: boxed
engine: command
code: {{from: code, patches: [rank.diff]}}
runtime: {{image: "file://{image}"}}
launch: {{run: [sh, rank.sh]}}
resources: {{nodes: 2, devices: 1, type: cpu}}
recovery: {{max_restarts: 0}}
"""


class InContainer(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("podman's options here need root")
        for program in ("podman", "runc", "busybox"):
            if shutil.which(program) is None:
                self.skipTest(f"there is no {program} (deploy/packages/test.txt)")
        if not container_test.is_static(os.path.join(BIN, "muster-worker")):
            self.skipTest(
                "muster-worker is not static in this build, so that it cannot be an image's entry point"
            )
        self.cluster = Cluster()
        self.podman = container_test.Podman(self.cluster.dir)
        self.addCleanup(self.close)
        container_test.root_tar(self.cluster.path("root.tar"))
        tried = self.podman.run(
            "import", self.cluster.path("root.tar"), "localhost/made:1", check=False
        )
        if tried.returncode != 0:
            self.skipTest(f"podman cannot make an image here: {tried.stderr.strip()}")
        self.podman.run("save", "--output", self.cluster.path("image.tar"), "localhost/made:1")

    def close(self):
        try:
            wait_until(lambda: not self.podman.containers(), what="the containers to be gone")
        finally:
            self.podman.run("rm", "--all", "--force", check=False)
            self.cluster.close()

    def test_it_runs_the_copy(self):
        self.cluster.controller()
        for name in ("n0", "n1"):
            self.cluster.agent(name, devices=1, args=self.podman.agent_args())
        os.mkdir(self.cluster.path("code"))
        self.cluster.write("code/rank.sh", "cat /etc/image\necho plain\n")
        self.cluster.write(
            "rank.diff",
            "--- a/rank.sh\n+++ b/rank.sh\n@@ -1,2 +1,2 @@\n cat /etc/image\n-echo plain\n+echo patched\n",
        )
        job = (
            self.cluster.muster(
                "run",
                "-d",
                self.cluster.spec(
                    CONTAINER.format(image=self.cluster.path("image.tar")), "job.yaml"
                ),
                code=0,
            )
            .out.strip()
            .split()[-1]
        )
        out = self.cluster.muster("logs", "-f", "--rank", "all", job).out
        self.cluster.muster("wait", job, code=0)
        self.assertEqual(
            (out.count("the image"), out.count("patched"), out.count("plain")), (2, 2, 0), out
        )


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--rewrite"]
    program = unittest.main(argv=[sys.argv[0], *words], exit=False)
    GOLDEN.save(whole=not [word for word in words if not word.startswith("-")])
    sys.exit(not program.result.wasSuccessful())
