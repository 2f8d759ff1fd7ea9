#!/usr/bin/python3
"""Inputs from stores where much is asked of them. Each time ranks find what the store has, by SHA-256, and requests are counted or nothing is left behind:
a MindFormers training on two nodes by a tutorial's own command line, in which a rank is killed; an S3 prefix with more objects than one list has; a file with
holes; an agent that is killed (SIGKILL) at each moment of a start.

MUSTER_TEST_LARGE=1 also has prefixes of 10,000 and 100,000 objects and a file of 4 GiB: a minute, half an hour and a minute; 9 GiB of disk. It says how long
each took.

Run:  /usr/bin/python3 -B tests/integration/staging_test.py [-v] [CASE]       (needs rclone, s3rver; root, for nodes with disks of their own)
"""

import contextlib
import fcntl
import hashlib
import itertools
import json
import math
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from cluster import DEADLINE, Cluster, Directory, wait_until  # noqa: E402
from conformance import state  # noqa: E402
from conformance.harness import UNHURRIED, Engines, EngineTest, configuration, option  # noqa: E402
from counting_proxy import CountingProxy  # noqa: E402
from own_disks import WHY_NOT, may_mount, own_disk  # noqa: E402
from store_ends import S3End  # noqa: E402
from store_sums import check_sums

LARGE = bool(os.environ.get("MUSTER_TEST_LARGE"))
WHY_NOT_LARGE = "it takes minutes, or much disk: MUSTER_TEST_LARGE=1 runs it"
LONG = 3600.0  # s; only a bound
A_LIST = 1000  # objects that S3 names in one answer

# Prints the SHA-256 of the sorted lines "PATH SHA-256\n" of all that is below a directory, and how many there are; with a file, of that one.
DIGEST = """import hashlib, os, sys
top, lines = sys.argv[1], []
def digest(path):
    with open(path, "rb") as file:
        sha256 = hashlib.sha256()
        while data := file.read(1 << 20):
            sha256.update(data)
        return sha256.hexdigest()
if os.path.isdir(top):
    for folder, _, names in os.walk(top):
        lines += [f"{os.path.relpath(os.path.join(folder, name), top)} {digest(os.path.join(folder, name))}\\n" for name in names]
else:
    lines.append(f". {digest(top)}\\n")
print(f"FOUND {len(lines)} {hashlib.sha256(''.join(sorted(lines)).encode()).hexdigest()}", flush=True)
"""


def tell(text):
    """For a person: how long the large ones take."""
    if LARGE:
        print(text, file=sys.stderr)


def sha256_of(path):
    sha256 = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            sha256.update(data)
    return sha256.hexdigest()


def digests_below(top):
    """{path: SHA-256}"""
    return {
        os.path.relpath(os.path.join(folder, name), top): sha256_of(os.path.join(folder, name))
        for folder, _, names in os.walk(top)
        for name in names
    }


def fill(top, files):
    """{path: bytes} below a directory."""
    for name, data in files.items():
        path = os.path.join(top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


def left_by_fetches(partial):
    return [name for name in os.listdir(partial) if not name.endswith(".lock")]


def is_list(path):
    return "list-type=" in path or "prefix=" in path


class Requests:
    """What has come to a proxy since its clear()."""

    def __init__(self, proxy):
        with proxy.changed:
            gets = [path for method, path in proxy.paths if method == "GET"]
        self.objects = [path for path in gets if not is_list(path)]
        self.lists = sum(map(is_list, gets))


def serve_objects(test, cluster, disk):
    """(S3 end, proxy before it), and the cluster's store is it."""
    end = S3End(test, os.path.join(disk, "s3"))
    proxy = CountingProxy("127.0.0.1", end.port)
    test.addCleanup(proxy.__exit__)
    cluster.muster("store", "add", "s3", "s3://", "--endpoint", f"http://{proxy.address}", "--path-style", "--user", S3End.USER,
                   stdin=S3End.KEY, code=0)  # fmt: skip
    return end, proxy


# ---- the tutorial


class Machines(Engines):
    """Two nodes of eight cards each; what they fetch is on a disk of each one's own."""

    def __init__(self, ascend=True):
        super().__init__(nodes=2, devices=8, ascend=ascend)
        self.inputs = self.path("inputs")
        self._controller_args = ("--inputs-root", self.inputs)

    def disk(self, name):
        return self.path(f"disk-{name}")

    def agent(self, name, **more):
        for path in (self.inputs, self.disk(name)):
            os.makedirs(path, mode=0o755, exist_ok=True)
        return super().agent(name, before=own_disk(self.disk(name), self.inputs), **more)


CONFIG = "configs/llama2/run_llama2_7b.yaml"
EPOCHS, PER_EPOCH, RANKS = 4, 10, 16
TUTORIAL = "--train_dataset_dir s3://data/wiki/train --load_checkpoint s3://data/weights"


@unittest.skipUnless(may_mount(), WHY_NOT)
class Tutorial(EngineTest):
    ascend = True
    cluster_type = Machines
    scripts = {"run_mindformer.py": "mindformers-r0.6"}
    files = {CONFIG: configuration(epochs=EPOCHS, per_epoch=PER_EPOCH, ranks=RANKS, save_steps=4)}

    def setUp(self):
        disk = self.cluster.path(f"of-{self.id().rpartition('.')[2]}")
        os.mkdir(disk)
        self.end, self.proxy = serve_objects(self, self.cluster, disk)
        wiki, weights = os.path.join(disk, "wiki"), os.path.join(disk, "weights")
        fill(wiki, {f"train/wiki4096.mindrecord{number}": hashlib.sha256(bytes([number])).digest() * 30_000 for number in range(5)})
        fill(wiki, {"train/wiki4096.mindrecord0.db": b"an index", "train/more/part 6": b"x", "other/not asked for": b"y"})
        fill(weights, {f"rank_{rank}/llama2_7b.ckpt": state.ckpt_bytes({"weights": f"{state.mix(rank):016x}"}, []) for rank in range(RANKS)})
        self.end.put(wiki, "data/wiki")
        self.end.put(weights, "data/weights")
        self.expected = {"--train_dataset_dir": digests_below(os.path.join(wiki, "train")), "--load_checkpoint": digests_below(weights)}
        self.count = sum(map(len, self.expected.values()))

    def train(self, name, words="", **more):
        launch = {"config": CONFIG, "mode": "finetune", "args": TUTORIAL + words}
        return self.submit(name, "mindformers", launch, **more)

    def check_found(self, job, record, attempt):
        """All ranks of both nodes have found everything, below the paths of their own command lines."""
        expected = self.expected if attempt == 1 else {"--train_dataset_dir": self.expected["--train_dataset_dir"]}
        found, starts = record.events("found", attempt), record.starts(attempt)
        self.assertEqual(sorted(found), list(range(RANKS)), self.cluster.story(job))
        self.assertEqual({start["env"]["MUSTER_NODE"] for start in starts.values()}, {"n0", "n1"})
        for rank, event in found.items():
            self.assertEqual(event["files"], expected, f"rank {rank}")
            for name, path in event["places"].items():
                self.assertEqual(path, option(starts[rank]["argv"], name))
                self.assertTrue(path.startswith(self.cluster.inputs + "/jobs/"), path)
        for node in self.cluster.nodes:
            self.assertEqual(left_by_fetches(os.path.join(self.cluster.disk(node), "cache/partial")), [], node)

    def check_nothing_new(self):
        """Since the last clear(): each node has listed each input, in as few requests as it takes, and fetched nothing."""
        requests = Requests(self.proxy)
        self.assertEqual(requests.objects, [])
        most = sum(math.ceil(len(files) / A_LIST) for files in self.expected.values())
        self.assertLessEqual(requests.lists, len(self.cluster.nodes) * most, self.proxy.paths)

    def test_its_own_command_line_up_to_the_end_of_the_training(self):
        job, record = self.train("first", step_ms=UNHURRIED)
        with record.staying(2):
            record.wait(job, 2)
            requests = Requests(self.proxy)
            self.assertEqual(len(requests.objects), len(self.cluster.nodes) * self.count, "each node for itself, each object once")
            self.proxy.clear()
        killed = self.kill_one(job, record, at=14)
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual((shown["phase"], shown["attempt"]), ("succeeded", 2), f"rank {killed} was killed\n{self.cluster.story(job)}")
        self.check_blame(job, killed)
        self.check_found(job, record, 1)
        self.check_found(job, record, 2)
        self.assertEqual(self.proxy.paths, [], "a restart goes by the lists that the nodes have kept")
        self.resumed_step(record, shown)
        self.assertEqual(sorted(record.losses()), list(range(1, EPOCHS * PER_EPOCH + 1)))

        self.proxy.clear()
        again, of_again = self.train("second")
        self.cluster.wait(again)
        self.check_found(again, of_again, 1)
        self.check_nothing_new()
        self.assertEqual(of_again.losses(), record.losses(), "the fault and the resume have changed no loss")

    def test_what_it_saves_goes_where_its_command_line_says(self):
        job, record = self.train("uploaded", words=" --remote_save_url s3://data/runs/7", step_ms=UNHURRIED)

        def uploaded():
            return [one for one in self.cluster.show(job).get("checkpoints", []) if one.get("uploaded")]

        with record.staying(14):
            wait_until(uploaded, what="a checkpoint in the store while the job trains")
            saved = self.end.names("data/runs/7")
            step = int(uploaded()[-1]["step"])
            for rank in range(RANKS):
                files = [name for name in saved if f"/rank_{rank}/" in name and name.endswith(".ckpt")]
                self.assertTrue(files, f"rank {rank} of step {step}: {saved}")
        killed = self.kill_one(job, record, at=22)
        self.cluster.wait(job)
        self.check_blame(job, killed)
        for starts in (record.starts(1), record.starts(2)):
            for start in starts.values():
                self.assertNotIn("--remote_save_url", start["argv"], "run_mindformer.py uploads nothing itself")
        out = os.path.join(self.cluster.dir, "controller", "outputs", job)
        self.assertEqual(self.end.differences(out, "data/runs/7")[:2000], "", self.cluster.story(job))
        copy = self.cluster.path("copy")
        self.end.get("data/runs/7", copy)
        self.assertGreaterEqual(check_sums(self, copy), 4, "of checkpoints, and of all that each node has uploaded in the end")
        attempts = {name.split("/")[1] for name in self.end.names("data/runs/7") if name.startswith("checkpoints/")}
        self.assertEqual(attempts, {"attempt-1", "attempt-2"})


# ---- one node


class Staging(unittest.TestCase):
    """A job has one rank on each node, which says what it finds. All nodes have the same disk."""

    nodes = ("n0",)
    in_memory = False  # thousands of files: some disks take 5 ms to remove one

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.disk = self.cluster.path("disk")  # inputs, and what they are made from
        os.mkdir(self.disk, 0o711)
        if self.in_memory and may_mount():
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=711", "tmpfs", self.disk], check=True)
            self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=True)
        self.cluster.controller("--inputs-root", self.inputs())
        for node in self.nodes:
            self.cluster.agent(node, devices=1)
        self.program = self.cluster.write("digest.py", DIGEST)

    def submit(self, name, url):
        spec = {
            "name": name,
            "engine": "command",
            "launch": {"run": ["python3", self.program, "${inputs.data}"]},
            "inputs": {"data": url},
            "resources": {"nodes": len(self.nodes), "devices": 1, "type": "cpu"},
        }
        return self.cluster.submit(json.dumps(spec))

    def check_found(self, job, expected, timeout=DEADLINE):
        """The job ends well, and each rank has found {path: SHA-256}; of a file, the path is "."."""
        self.cluster.wait(job, timeout)
        text = "".join(sorted(f"{path} {sha256}\n" for path, sha256 in expected.items()))
        wanted = f"FOUND {len(expected)} {hashlib.sha256(text.encode()).hexdigest()}"

        def found():
            return [line[line.index("FOUND ") :] for line in self.cluster.output("logs", job).splitlines() if "FOUND " in line]

        # An agent that has found a rank's end at its own start sends the rank's log a moment after that end.
        wait_until(lambda: len(found()) == len(self.nodes), what="the ranks' lines")
        self.assertEqual(found(), [wanted] * len(self.nodes), self.cluster.story(job))

    def inputs(self, *parts):
        return os.path.join(self.disk, "inputs", *parts)

    def partial(self):
        return self.inputs("cache", "partial")

    def check_nothing_left(self, expected):
        """Of fetches: the cache has the objects and nothing else."""
        self.assertEqual(left_by_fetches(self.partial()), [])
        self.assertEqual(set(self.objects_kept()), set(expected.values()))
        self.assertEqual(self.rclones(), [])

    def rclones(self):
        """Those that copy into this test's directory."""
        of_this_test = f"rclone copy .*{self.cluster.dir}"
        found = subprocess.run(["pgrep", "-f", of_this_test], capture_output=True, check=False, text=True).stdout.split()
        return [int(pid) for pid in found]

    def wait_at(self, job, pattern):
        """Until `muster show` says that the start is there; the match."""
        pattern = re.compile("node '(n[0-9])': inputs.data: " + pattern)
        wait_until(lambda: pattern.search(self.cluster.output("show", job)), what=f"'{pattern.pattern}'")
        return pattern.search(self.cluster.output("show", job))

    def again(self, node="n0"):
        """The agent is started once more."""
        self.cluster.agent(node, devices=1, wait=False)

    def objects_kept(self):
        """{SHA-256: inode}"""
        objects = self.inputs("cache", "objects")
        return {name: os.stat(os.path.join(folder, name)).st_ino for folder, _, names in os.walk(objects) for name in names}


def put_many(disk, count):
    """{name: SHA-256} of s3://data/many. Directly into s3rver's directory: uploads would take longer than a test."""
    folder = os.path.join(disk, "s3", "data", "many")
    os.makedirs(folder)
    expected = {}
    for number in range(count):
        name, data = f"{number:06}.json", b'{"id": %d}' % number
        with open(os.path.join(folder, f"{name}._S3rver_object"), "wb") as file:
            file.write(data)
        with open(os.path.join(folder, f"{name}._S3rver_object.md5"), "w", encoding="ascii") as file:
            file.write(hashlib.md5(data).hexdigest())
        expected[name] = hashlib.sha256(data).hexdigest()
    return expected


class ManyObjects(Staging):
    in_memory = True

    def start(self, name, expected):
        """(requests for objects, requests for lists)"""
        self.proxy.clear()
        began = time.monotonic()
        self.check_found(self.submit(name, "s3://data/many"), expected, LONG)
        requests = Requests(self.proxy)
        tell(f"{name}: {len(requests.objects)} objects, {requests.lists} lists, {self.proxy.counts['HEAD']} HEAD, {time.monotonic() - began:.1f} s")
        self.assertEqual(len(set(requests.objects)), len(requests.objects), "none twice")
        return len(requests.objects), requests.lists

    def check_counts(self, count):
        _, self.proxy = serve_objects(self, self.cluster, self.disk)
        expected = put_many(self.disk, count)
        a_listing = math.ceil(count / A_LIST)
        fetched, lists = self.start("first", expected)
        self.assertEqual(fetched, count)
        # Before, after, and rclone's own list of all for each batch of 10,000.
        self.assertLessEqual(lists, (2 + math.ceil(count / 10_000)) * a_listing)
        self.assertEqual(self.start("second", expected), (0, a_listing))
        self.check_nothing_left(expected)

    def test_one_object_more_than_a_list_has(self):
        self.check_counts(A_LIST + 1)

    @unittest.skipUnless(LARGE, WHY_NOT_LARGE)
    def test_ten_thousand_objects(self):
        self.check_counts(10_000)

    @unittest.skipUnless(LARGE, WHY_NOT_LARGE)
    def test_a_hundred_thousand_objects(self):
        self.check_counts(100_000)


class Holes(Staging):
    """A file with holes, of a directory of the nodes: no list has its MD5, so nothing that a killed rclone has left may count."""

    def check_killed(self, size):
        folder = os.path.join(self.disk, "mirror")
        os.mkdir(folder)
        path = os.path.join(folder, "corpus.bin")
        with open(path, "wb") as file:
            file.truncate(size)
            for at in (0, size // 2 + 4096, size - 100):  # a cut, or another hole, shows
                file.seek(at)
                file.write(os.urandom(100))
        self.assertLess(os.stat(path).st_blocks * 512, 1 << 20, "it has holes")
        expected = {".": sha256_of(path)}
        self.cluster.muster("store", "add", "mirror", "dir://mirror", "--endpoint", folder, code=0)
        began = time.monotonic()
        job = self.submit("killed", "dir://mirror/corpus.bin")

        def come():
            return sum(os.stat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(self.partial()) for name in names)

        wait_until(self.rclones, what="rclone to run")
        (rclone,) = self.rclones()
        wait_until(lambda: come() > 0, what="rclone to write")
        os.kill(rclone, signal.SIGSTOP)  # it gets no further until the agent is killed
        self.assertTrue(0 < come() < size, come())
        self.cluster.kill("n0")
        wait_until(lambda: not self.rclones(), what="rclone to end with its agent")
        self.again()
        self.check_found(job, expected, LONG)
        self.check_nothing_left(expected)
        tell(f"{size >> 20} MiB: killed, and fetched again in {time.monotonic() - began:.1f} s")

    def test_an_agent_is_killed_in_the_middle_of_it(self):
        self.check_killed(512 << 20)

    @unittest.skipUnless(LARGE, WHY_NOT_LARGE)
    def test_4_gib(self):
        self.check_killed(4 << 30)


class Objects(Staging):
    """Sixty objects behind the proxy."""

    def setUp(self):
        super().setUp()
        end, self.proxy = serve_objects(self, self.cluster, self.disk)
        source = os.path.join(self.disk, "source")
        fill(source, {f"{number % 7}/{number:03}": hashlib.sha256(bytes([number])).digest() * (100 * number) for number in range(60)})
        end.put(source, "data/wiki")
        self.expected = digests_below(source)
        self.assertEqual(len(set(self.expected.values())), 60)

    def tearDown(self):
        self.proxy.gate.set()

    def begin(self, gated):
        """A job, as soon as a GET for which `gated` is true has come. They wait."""
        self.proxy.gated, before = gated, self.proxy.waiting
        self.proxy.gate.clear()
        job = self.submit("killed", "s3://data/wiki")
        with self.proxy.changed:
            self.assertTrue(self.proxy.changed.wait_for(lambda: self.proxy.waiting > before, DEADLINE), self.cluster.story(job))
        return job


class Killed(Objects):
    """An agent is killed at a moment of a start, and started again: the job ends well, nothing is left of the first fetch, and what was kept then is not
    fetched again."""

    def kill(self):
        self.cluster.kill("n0")
        wait_until(lambda: not self.rclones(), what="rclone to end with its agent")

    def check_end(self, job, kept):
        """`kept`: how many objects the cache had when the agent was killed."""
        self.assertEqual(len(self.objects_kept()), kept)
        self.proxy.clear()
        self.proxy.gate.set()
        self.again()
        self.check_found(job, self.expected)
        self.check_nothing_left(self.expected)
        self.assertEqual(len(set(Requests(self.proxy).objects)), len(self.expected) - kept, self.proxy.paths)
        self.assertFalse(os.path.exists(self.inputs("jobs", job, "data.new")))
        self.proxy.clear()
        self.check_found(self.submit("after", "s3://data/wiki"), self.expected)
        self.assertEqual(Requests(self.proxy).objects, [], "what is kept is whole")

    def test_while_it_lists(self):
        job = self.begin(is_list)
        self.wait_at(job, "listing")
        self.kill()
        self.check_end(job, kept=0)

    def test_while_it_fetches(self):
        """Some objects have come, and others not."""
        numbers = itertools.count()
        job = self.begin(lambda path: not is_list(path) and next(numbers) >= 20)
        self.wait_at(job, ".* of ")
        come = sum(len(names) for folder, _, names in os.walk(self.partial()) if folder != self.partial())
        self.assertTrue(0 < come < len(self.expected), come)
        self.kill()
        self.check_end(job, kept=0)

    @contextlib.contextmanager
    def nobody_writes_into_the_index(self):
        with contextlib.closing(sqlite3.connect(self.inputs("cache", "index.db"), isolation_level=None)) as index:
            index.execute("BEGIN IMMEDIATE")
            yield index
            index.execute("ROLLBACK")

    def wait_come(self):
        """Until rclone has brought everything. Then the agent reads it."""
        self.proxy.gate.set()
        wait_until(lambda: len(set(Requests(self.proxy).objects)) == len(self.expected) and not self.rclones(), what="all to come")

    def test_when_all_has_come_and_nothing_is_kept_yet(self):
        job = self.begin(lambda path: not is_list(path))
        with self.nobody_writes_into_the_index():
            self.wait_come()
            self.kill()
        self.check_end(job, kept=0)

    def test_while_it_keeps_what_has_come(self):
        """Mostly in the middle of it: nothing stops the agent between two objects."""
        job = self.begin(lambda path: not is_list(path))
        with self.nobody_writes_into_the_index() as index:
            self.wait_come()
            index.execute("ROLLBACK")
            wait_until(self.objects_kept, what="the first object")
            index.execute("BEGIN IMMEDIATE")  # in none of the agent's transactions
            self.kill()
        kept = len(self.objects_kept())
        tell(f"{kept} of {len(self.expected)} objects were kept")
        self.check_end(job, kept)

    def test_while_it_lists_again(self):
        job = self.begin(lambda path: is_list(path) and self.objects_kept())
        self.wait_at(job, "listing again")
        self.kill()
        self.check_end(job, kept=60)

    def test_before_it_links(self):
        job = self.begin(is_list)
        trees = os.open(self.inputs("jobs"), os.O_RDONLY)
        try:
            fcntl.flock(trees, fcntl.LOCK_EX)  # it waits for its turn to change them
            self.proxy.gate.set()
            self.wait_at(job, "linking")
            self.kill()
        finally:
            os.close(trees)
        self.check_end(job, kept=60)


class KilledOneOfTwo(Objects):
    """Two nodes have the same disk, and the one that fetches for both is killed."""

    nodes = ("n0", "n1")

    def test_the_other_takes_its_turn(self):
        job = self.begin(lambda path: not is_list(path))
        waiting = self.wait_at(job, "waiting for another start that fetches the same")[1]
        fetching = next(node for node in self.nodes if node != waiting)
        self.cluster.kill(fetching)
        self.again(fetching)
        self.proxy.gate.set()
        self.check_found(job, self.expected)
        self.check_nothing_left(self.expected)
        self.proxy.clear()
        self.check_found(self.submit("after", "s3://data/wiki"), self.expected)
        self.assertEqual(Requests(self.proxy).objects, [])


@contextlib.contextmanager
def ahead_of_others():
    """On a busy machine, too, this thread goes on at once when what it waits for has happened: where its user has the right to."""
    before, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, before, parameter)


class KilledAmongLinks(Staging):
    """In the middle of a tree of some thousands."""

    in_memory = True
    count, tries = 5_000, 20

    def setUp(self):
        super().setUp()
        source = os.path.join(self.disk, "source")
        fill(source, {f"{number % 10}/{number:05}": b"%d" % number for number in range(self.count)})
        self.cluster.muster("store", "add", "mirror", "dir://mirror", "--endpoint", source, code=0)
        self.expected = digests_below(source)
        self.check_found(self.submit("first", "dir://mirror"), self.expected)
        self.objects = self.objects_kept()

    def kill_in(self, job):
        """When some directories of the job's tree have their links: how many links there are then. 0: too late."""
        trees = self.inputs("jobs", job)
        wait_until(lambda: os.path.isdir(trees), what="the directory of the job's trees")
        watch = Directory(trees)  # its close() takes longer than the links
        self.addCleanup(watch.close)
        begun, some, all_made = (os.path.join(trees, *path) for path in (("data.new",), ("data.new", "mirror", "3"), ("data",)))
        end = time.monotonic() + DEADLINE
        with ahead_of_others():
            while not os.path.exists(begun) and not os.path.exists(all_made):
                if not watch.wait(end - time.monotonic()):
                    self.fail(self.cluster.story(job))
            while not os.path.exists(some) and not os.path.exists(all_made) and time.monotonic() < end:
                pass  # a few ms
            self.cluster.daemon("n0").send_signal(signal.SIGKILL)
        self.cluster.kill("n0")
        return sum(len(names) for _, _, names in os.walk(begun))

    def test_the_job_ends_well_with_the_objects_that_are_there(self):
        """Who is late kills a job that runs, which has to end well, too; then another one is tried."""
        for number in range(self.tries):
            job = self.submit(f"links{number}", "dir://mirror")
            made = self.kill_in(job)
            self.again()
            self.check_found(job, self.expected)
            self.check_nothing_left(self.expected)
            self.assertEqual(self.objects_kept(), self.objects, "nothing was fetched again")
            self.assertFalse(os.path.exists(self.inputs("jobs", job, "data.new")))
            tell(f"{made} of {self.count} links were made")
            if 0 < made < self.count:
                return
        self.skipTest(f"{self.tries} agents had made all links before they were killed: this machine is too busy, or its user has no right to go first")


if __name__ == "__main__":
    unittest.main()
