#!/usr/bin/python3
"""Jobs in containers, with podman and runc and without any network: the image is made here of busybox, every run of a job's part is a container, and logs, exits,
restarts and adoption are those of a job without one.

Run:  /usr/bin/python3 tests/integration/container_test.py [-v] [CASE]
"""

import contextlib
import glob
import io
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tarfile
import unittest

from cluster import BIN, DEADLINE, Cluster, wait_until
from image_registry import Registry
from store_ends import serve_rclone

APPLETS = [
    "sh",
    "echo",
    "cat",
    "env",
    "grep",
    "seq",
    "test",
    "true",
    "false",
    "sleep",
    "printf",
    "read",
    "kill",
    "id",
    "hostname",
    "ls",
    "mkdir",
    "touch",
    "tail",
]
PARENT = "libpod_parent"  # the control group that podman makes below every controller

RANK = """echo "rank $MUSTER_RANK of $MUSTER_WORLD_SIZE in $(cat /etc/image) with $TOOLKIT on $MUSTER_NODE"
cat /data/word
if test -n "$GATE"; then read -r word < "$GATE-$MUSTER_RANK"; fi
i=0; while test $i -lt 500; do i=$((i+1)); echo "line $i of rank $MUSTER_RANK"; done
"""

SPEC = """
name: {name}
engine: command
runtime:
  image: {image}
  mounts: ["{dir}/data:/data:ro"]
  env: {{GATE: "{gate}", SECRET: only-in-the-record}}
launch: {{run: [sh, rank.sh]}}
resources: {{nodes: 2, devices: 1, type: cpu}}
recovery: {{max_restarts: {restarts}, stop_grace: 2s}}
"""


# The first rank's output goes to what is mounted, the other's to a file of the container's own.
BACKGROUND = """for rank in 0 1; do
  log=/data/$MUSTER_NODE.log; if test $rank = 1; then log=/tmp/rank.log; fi
  RANK_ID=$rank sh one.sh > $log 2>&1 &
done
"""
ONE = """echo "begun by $RANK_ID on $MUSTER_NODE"
read -r word < "$GATE-$MUSTER_RANK-$RANK_ID"
i=0; while test $i -lt 500; do i=$((i+1)); echo "line $i of $RANK_ID"; done
"""

HUNGRY = """for file in memory/memory.limit_in_bytes memory.max cpu/cpu.cfs_quota_us cpu.max; do
  test -e /sys/fs/cgroup/$file && echo "$file: $(cat /sys/fs/cgroup/$file)"
done
exec tail /dev/zero
"""


def is_static(path):
    """No program header PT_INTERP: nothing of an image is needed to run it."""
    with open(path, "rb") as file:
        head = file.read(64)
        offset, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from(
            "<HH", head, 54
        )
        file.seek(offset)
        return all(struct.unpack_from("<I", file.read(size))[0] != 3 for _ in range(count))


def root_tar(path):
    """A root file system of busybox and one file that tells it from the node's."""
    with tarfile.open(path, "w") as tar:
        for name in ("bin", "usr", "usr/bin", "etc", "tmp", "proc", "sys", "dev", "root"):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        tar.add(shutil.which("busybox"), "bin/busybox")
        for link, target in [(f"bin/{applet}", "busybox") for applet in APPLETS] + [
            ("usr/bin/env", "../../bin/busybox")
        ]:
            info = tarfile.TarInfo(link)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    mark = path + ".mark"
    with open(mark, "w", encoding="utf-8") as file:
        file.write("the image\n")
    with tarfile.open(path, "a") as tar:
        tar.add(mark, "etc/image")


class Podman:
    """With a store of its own below the cluster's directory: nothing of it is left, and nothing of anybody else's is seen."""

    def __init__(self, directory):
        self.args = [f"--root={directory}/store", f"--runroot={directory}/store-run", f"--tmpdir={directory}/store-tmp", f"--volumepath={directory}/store-volumes",
                     "--runtime=runc", "--storage-driver=vfs", "--cgroup-manager=cgroupfs"]  # fmt: skip

    def run(self, *words, check=True):
        done = subprocess.run(
            ["podman", *self.args, *words], capture_output=True, text=True, timeout=DEADLINE
        )
        if check and done.returncode != 0:
            raise AssertionError(
                f"podman {' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done

    def agent_args(self):
        return [f"--container-arg={word}" for word in self.args]

    def containers(self):
        return self.run("ps", "--all", "--format", "{{.Names}}").stdout.split()


def cgroup_parents():
    return glob.glob(f"/sys/fs/cgroup/{PARENT}") + glob.glob(f"/sys/fs/cgroup/*/{PARENT}")


class Containers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("podman's options here need root")
        for program in ("podman", "runc", "busybox"):
            if shutil.which(program) is None:
                raise unittest.SkipTest(f"there is no {program} (deploy/packages/test.txt)")
        if not is_static(os.path.join(BIN, "muster-worker")):
            raise unittest.SkipTest(
                "muster-worker is not static in this build, so that it cannot be an image's entry point"
            )
        cls.parents = cgroup_parents()

    @classmethod
    def tearDownClass(cls):
        for path in cgroup_parents():
            if path not in cls.parents:
                for directory, _, _ in os.walk(path, topdown=False):
                    with contextlib.suppress(OSError):  # somebody else's container is in it now
                        os.rmdir(directory)

    def setUp(self):
        self.cluster = Cluster()
        self.podman = Podman(self.cluster.dir)
        self.addCleanup(self.close)
        os.mkdir(self.cluster.path("data"))
        self.cluster.write("data/word", "mounted\n")
        self.cluster.write("rank.sh", RANK)
        self.tar = self.cluster.path("root.tar")
        root_tar(self.tar)
        tried = self.podman.run(
            "import",
            "--change",
            "ENV TOOLKIT=cann",
            "--change",
            "VOLUME /scratch",
            self.tar,
            "localhost/made:1",
            check=False,
        )
        if tried.returncode != 0:
            self.skipTest(f"podman cannot make an image here: {tried.stderr.strip()}")
        tried = self.podman.run("run", "--rm", "--network", "host", "--pid", "host", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "localhost/made:1",
                                "true", check=False)  # fmt: skip
        if tried.returncode != 0:
            self.skipTest(f"podman cannot run a container here: {tried.stderr.strip()}")
        self.archive = self.cluster.path("image.tar")
        self.podman.run("save", "--output", self.archive, "localhost/made:1")
        self.podman.run("rmi", "localhost/made:1")
        self.cluster.controller()

    def agents(self, args=None):
        return {
            name: self.cluster.agent(
                name, devices=1, args=self.podman.agent_args() if args is None else args
            )
            for name in ("n0", "n1")
        }

    def close(self):
        """Every container goes with its run, by itself."""
        try:
            if self.cluster.daemons:
                for job in self.cluster.muster("ps", "-o", "name").out.split():
                    self.cluster.muster("cancel", job)
                    self.cluster.muster("wait", job, "--timeout", "50s")
            wait_until(lambda: not self.podman.containers(), what="the containers to be gone")
        finally:
            self.podman.run("rm", "--all", "--force", check=False)
            self.cluster.close()

    def spec(self, name, gate="", restarts=0, image=None):
        for rank in (0, 1) if gate else ():
            os.mkfifo(f"{gate}-{rank}")
        return SPEC.format(
            name=name,
            image=image or "file://" + self.archive,
            dir=self.cluster.dir,
            gate=gate,
            restarts=restarts,
        )

    def processes(self, job):
        """{pid: (command line, environment)} of what carries the job's process tag."""
        found = {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    env = file.read().decode(errors="replace").split("\0")
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    argv = file.read().decode(errors="replace").split("\0")[:-1]
            except OSError:
                continue
            if any(word.startswith("MUSTER_PROCESS_TAG=") and f"/{job}." in word for word in env):
                found[int(entry)] = (argv, env)
        return found

    def ranks(self, job):
        """{rank: pid}, of the shells alone, and not of the copies that they make of themselves for a command."""
        found = {}
        for pid, (argv, env) in self.processes(job).items():
            rank = [word.partition("=")[2] for word in env if word.startswith("MUSTER_RANK=")]
            if rank and "rank.sh" in argv:
                found[int(rank[0])] = min(pid, found.get(int(rank[0]), pid))
        return found

    def worker(self, job, node):
        return next(
            pid
            for pid, (argv, _) in self.processes(job).items()
            if "muster-worker" in argv[0] and f"agent-{node}/" in argv[-1]
        )

    def both_wait(self, job):
        def there():
            self.assertNotIn("failed\n", self.cluster.muster("why", job).out)
            return len(self.ranks(job)) == 2

        wait_until(there, what=f"two ranks of {job}")
        return self.ranks(job)

    def let_go(self, gate):
        for rank in (0, 1):
            with open(f"{gate}-{rank}", "w", encoding="utf-8") as file:
                file.write("go\n")

    def succeeds(self, job):
        done = self.cluster.muster("wait", job, "--timeout", f"{DEADLINE:.0f}s")
        outputs = [daemon.logged()[-2000:] for daemon in self.cluster.daemons]
        self.assertEqual(
            done.code, 0, f"{done}\n{self.cluster.muster('why', job)}\n" + "\n---\n".join(outputs)
        )

    def logs_are_whole(self, job):
        """Followed, for an agent that was killed may bring the last of them after the end."""
        for rank in (0, 1):
            want = f"rank {rank} of 2 in the image with cann on n{rank}\nmounted\n" + "".join(
                f"line {i} of rank {rank}\n" for i in range(1, 501)
            )
            self.assertEqual(
                self.cluster.muster(
                    "logs", job, "--raw", "--follow", "--rank", str(rank), code=0
                ).out,
                want,
            )

    def test_two_nodes(self):
        self.agents()
        gate = self.cluster.path("gate")
        job = self.cluster.submit(self.spec("boxed", gate))
        ranks = self.both_wait(job)
        for pid in ranks.values():
            with open(os.path.join(f"/proc/{pid}", "root", "etc/image"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "the image\n", "the rank's root is the image's")
            self.assertEqual(
                os.readlink(f"/proc/{pid}/ns/net"),
                os.readlink("/proc/self/ns/net"),
                "the node's network",
            )
            self.assertNotEqual(
                os.readlink(f"/proc/{pid}/ns/mnt"), os.readlink("/proc/self/ns/mnt")
            )
            self.assertEqual(self.processes(job)[pid][1].count("SECRET=only-in-the-record"), 1)
        names = self.podman.containers()
        self.assertEqual(
            [name for name in sorted(names) if name.endswith(f"-{job}-1")], sorted(names)
        )
        self.assertEqual(len(names), 2)
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    self.assertNotIn(
                        b"only-in-the-record",
                        file.read(),
                        "what a job keeps secret stands on no command line",
                    )
            except FileNotFoundError:
                continue
        self.let_go(gate)
        self.succeeds(job)
        self.logs_are_whole(job)
        # The image is there now: another job needs no file any more than this one did.
        images = self.podman.run("images", "--quiet").stdout
        again = self.cluster.submit(self.spec("again"))
        self.succeeds(again)
        self.logs_are_whole(again)
        self.assertEqual(self.podman.run("images", "--quiet").stdout, images)

    def test_a_killed_rank_is_started_again(self):
        self.agents()
        gate = self.cluster.path("gate")
        job = self.cluster.submit(self.spec("killed", gate, restarts=1))
        first = self.both_wait(job)
        os.kill(first[1], signal.SIGKILL)
        wait_until(
            lambda: len(self.ranks(job)) == 2
            and not set(self.ranks(job).values()) & set(first.values()),
            what="the second attempt's ranks",
        )
        self.let_go(gate)
        self.succeeds(job)
        self.logs_are_whole(job)
        ends = [event["text"] for event in self.events(job) if event["type"] == "rank-exited"]
        self.assertIn(
            "rank 1 on node 'n1' was killed by signal 9 (SIGKILL)",
            ends[0],
            "as it is told of a rank without a container",
        )

    def events(self, job):
        return [
            json.loads(line)
            for line in self.cluster.muster("events", job, "-o", "jsonl", code=0).out.splitlines()
        ]

    def test_a_killed_agent_adopts(self):
        agents = self.agents()
        gate = self.cluster.path("gate")
        job = self.cluster.submit(self.spec("adopted", gate))
        before = self.both_wait(job)
        agents["n0"].stop(signal.SIGKILL)
        again = self.cluster.agent("n0", devices=1, args=self.podman.agent_args(), wait=False)
        again.wait_for("adopted a run")
        self.assertEqual(self.ranks(job), before)
        self.let_go(gate)
        self.succeeds(job)
        self.logs_are_whole(job)
        self.assertNotIn("attempt-broke", [event["type"] for event in self.events(job)])

    def test_an_agent_that_is_killed_behind_its_container_step(self):
        """Right after the step of its start, which loads the image; the next attempt goes on as if nobody had been killed."""
        args = self.podman.agent_args()
        env = {"MUSTER_FAILPOINT": "start:container:kill"}
        killed = self.cluster.agent("n0", devices=1, args=args, env=env)
        self.cluster.agent("n1", devices=1, args=args)
        job = self.cluster.submit(self.spec("loaded", restarts=5))
        code, output = killed.ended()
        self.assertEqual(code, -signal.SIGKILL, output)
        self.cluster.agent("n0", devices=1, args=args, wait=False)
        self.succeeds(job)
        self.logs_are_whole(job)
        attempts = self.cluster.show(job)["attempts"]
        self.assertEqual(len(attempts), 2, self.cluster.story(job))
        self.assertEqual(len(attempts[1]["exits"]), 2)

    def test_a_killed_worker_takes_its_container_along(self):
        self.agents()
        gate = self.cluster.path("gate")
        job = self.cluster.submit(self.spec("orphaned", gate, restarts=1))
        first = self.both_wait(job)
        os.kill(self.worker(job, "n0"), signal.SIGKILL)
        wait_until(
            lambda: len(self.ranks(job)) == 2
            and not set(self.ranks(job).values()) & set(first.values()),
            what="the second attempt's ranks",
        )
        self.assertEqual(
            [name for name in self.podman.containers() if name.endswith("-1")],
            [],
            "those of the first attempt are gone",
        )
        wait_until(
            lambda: len(self.podman.run("volume", "ls", "--quiet").stdout.split()) == 2,
            what="their volumes, which the image asks for, to be gone as well",
        )
        self.let_go(gate)
        self.succeeds(job)

    def test_a_cancel_ends_it(self):
        self.agents()
        job = self.cluster.submit(self.spec("cancelled", self.cluster.path("gate")))
        ranks = self.both_wait(job)
        self.cluster.muster("cancel", job, code=0)
        self.cluster.muster("wait", job, "--timeout", "60s", code=3)
        for pid in ranks.values():
            self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_setup_runs_inside_and_a_root_file_system_will_do(self):
        self.agents()
        spec = self.spec("inside", image="file://" + self.tar).replace(
            "  env:",
            "  setup: ['read -r image < /etc/image', 'export TOOLKIT=\"$image, set up\"']\n  env:",
        )
        job = self.cluster.submit(spec)
        self.succeeds(job)
        self.assertIn(
            "in the image with the image, set up on n1\n",
            self.cluster.muster("logs", job, "--raw", "--follow", "--rank", "1", code=0).out,
        )

    def test_inputs_of_stores_are_inside(self):
        """A directory, a file, and the weights to start from, each where the node has them; a container cannot change them."""
        os.makedirs(self.cluster.path("served/wiki/sub"))
        for name, text in (("sub/words", "of the store\n"), ("vocab", "a b c\n"), ("model.bin", "weights\n")):
            self.cluster.write(os.path.join("served/wiki", name), text)
        port = serve_rclone(self, "webdav", self.cluster.path("served"))
        self.cluster.muster(
            "store", "add", "dav", "webdav://data", "--endpoint", f"http://127.0.0.1:{port}", code=0
        )
        self.cluster.write(
            "inputs.sh",
            'cat "$1/sub/words" "$2" "$3/model.bin"; echo more 2>/dev/null >> "$1/sub/words" || echo unchanged\n'
            "touch /etc/of-the-container && echo $MUSTER_RANK ends\n",
        )
        self.agents()
        spec = self.spec("staged").replace("[sh, rank.sh]", "[sh, inputs.sh, '${inputs.all}', '${inputs.vocab}', '${start.dir}']")
        spec += "inputs: {all: webdav://data/wiki, vocab: webdav://data/wiki/vocab}\nstart: {from: webdav://data/wiki}\n"
        job = self.cluster.submit(spec)
        self.succeeds(job)
        for rank in (0, 1):
            self.assertEqual(
                self.cluster.muster("logs", job, "--raw", "--rank", str(rank), code=0).out,
                f"of the store\na b c\nweights\nunchanged\n{rank} ends\n",
            )

    def test_that_the_image_is_on_its_way_is_reported(self):
        gate = self.cluster.gate("load-gate")
        self.addCleanup(gate.close)
        script = f'#!/bin/sh\nfor word; do if test "$word" = load; then read -r go < {gate.path}; fi; done\nexec podman "$@"\n'
        tool = self.cluster.write("podman-slow", script, 0o755)
        self.agents([*self.podman.agent_args(), "--container-tool", tool])
        job = self.cluster.submit(self.spec("far"))
        says = "attempt 1 is being set up (runtime.image) on n0, n1, within 30m a node"
        wait_until(
            lambda: says in self.cluster.muster("why", job, code=0).out.replace("'", ""),
            what=f"why to say: {says}",
        )
        gate.open(2)
        self.succeeds(job)
        self.logs_are_whole(job)

    def test_how_far_it_is_on_its_way_is_reported(self):
        """podman's own copy of the archive is stood in for; nothing else of it could be held up at a place that is known."""
        gate = self.cluster.gate("load-gate")
        self.addCleanup(gate.close)
        copy = self.cluster.path("storage1")
        os.mkdir(copy)
        with open(os.path.join(copy, "1"), "wb") as file:
            file.write(bytes(1 << 20))
        hold = f"exec 9< {copy}/1; read go < {gate.path}; exec 9<&-"
        script = f'#!/bin/sh\nfor word; do if test "$word" = load; then {hold}; fi; done\nexec podman "$@"\n'
        tool = self.cluster.write("podman-slow", script, 0o755)
        self.agents([*self.podman.agent_args(), "--container-tool", tool])
        job = self.cluster.submit(self.spec("far"))
        size = os.path.getsize(self.archive) / (1 << 20)
        for node in ("n0", "n1"):
            says = f"node '{node}': runtime.image: 1.0 of {size:.1f} MiB"
            wait_until(
                lambda says=says: says in self.cluster.muster("why", job, code=0).out,
                what=f"why to say: {says}",
            )
        self.assertIn("runtime.image: 1.0 of ", self.cluster.muster("show", job, code=0).out)
        watch = self.cluster.popen("watch", job, "--timeout", f"{DEADLINE:.0f}s")
        reported = any(
            line.startswith("launching: node 'n0': runtime.image: 1.0 of ")
            for line in iter(watch.stdout.readline, "")
        )
        self.assertTrue(reported, "a pipe is told how far it has come")
        gate.open(2)
        watch.communicate(timeout=DEADLINE)
        self.succeeds(job)
        self.assertNotIn("runtime.image", self.cluster.muster("why", job, code=0).out)

    def test_a_pull_tells_its_layers(self):
        more = io.BytesIO()
        with tarfile.open(fileobj=more, mode="w") as tar:
            info = tarfile.TarInfo("weights")
            info.size = 4 << 20
            tar.addfile(info, io.BytesIO(bytes(info.size)))
        with open(self.tar, "rb") as file:
            registry = Registry([file.read(), more.getvalue()], DEADLINE, env=["TOOLKIT=cann"])
        self.addCleanup(registry.close)
        script = '#!/bin/sh\nfor word; do shift; set -- "$@" "$word"; if test "$word" = pull; then set -- "$@" --tls-verify=false; fi; done\nexec podman "$@"\n'
        tool = self.cluster.write("podman-plain", script, 0o755)
        self.agents([*self.podman.agent_args(), "--container-tool", tool])
        job = self.cluster.submit(self.spec("pulled", image=registry.name("team/train:1")))
        for node in ("n0", "n1"):
            says = rf"node '{node}': runtime\.image: 2 layers begun, \d\.\d MiB fetched \(step 'container'\)\n"
            wait_until(
                lambda says=says: re.search(says, self.cluster.muster("why", job, code=0).out),
                what=f"why to say: {says}",
            )
        registry.go.set()
        self.succeeds(job)
        self.logs_are_whole(job)

    def test_jobs_that_begin_at_once_fetch_their_image_once(self):
        gate = self.cluster.gate("load-gate")
        self.addCleanup(gate.close)
        loads = self.cluster.path("loads")
        script = f'#!/bin/sh\nfor word; do if test "$word" = load; then echo load >> {loads}; read go < {gate.path}; fi; done\nexec podman "$@"\n'
        tool = self.cluster.write("podman-slow", script, 0o755)
        self.cluster.agent(
            "n0", devices=2, args=[*self.podman.agent_args(), "--container-tool", tool]
        )
        jobs = [
            self.cluster.submit(self.spec(name).replace("nodes: 2", "nodes: 1"))
            for name in ("one", "two")
        ]
        for job in jobs:
            wait_until(
                lambda job=job: "being set up (runtime.image) on 'n0'"
                in self.cluster.muster("why", job, code=0).out,
                what=f"{job} to be set up",
            )
        says = "node 'n0': runtime.image: fetched by another start"
        wait_until(
            lambda: any(says in self.cluster.muster("why", job, code=0).out for job in jobs),
            what=f"one of them to say: {says}",
        )
        gate.open(1)
        for job in jobs:
            self.succeeds(job)
        with open(loads, encoding="utf-8") as file:
            self.assertEqual(file.read(), "load\n")

    def test_a_container_has_no_more_memory_than_it_is_given(self):
        tried = self.podman.run("import", self.tar, "localhost/tried:1", check=False)
        tried = self.podman.run("run", "--rm", "--network", "host", "--pid", "host", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--memory", "64m",
                                "--cpus", "0.5", "localhost/tried:1", "true", check=False)  # fmt: skip
        if tried.returncode != 0:
            self.skipTest(f"podman cannot limit a container here: {tried.stderr.strip()}")
        self.agents()
        self.cluster.write("rank.sh", HUNGRY)
        spec = (
            self.spec("hungry")
            .replace("nodes: 2", "nodes: 1")
            .replace("  env:", "  limits: {memory: 64MiB, cpus: 0.5}\n  env:")
        )
        run = self.cluster.muster("run", self.cluster.spec(spec), "--timeout", "60s", code=1)
        logs = self.cluster.muster("logs", "@last", "--raw", "--follow", "--rank", "0", code=0).out
        self.assertRegex(logs, r"memory[a-z_./]*: 67108864\n")
        self.assertRegex(logs, r"cpu[a-z_./]*: 50000( 100000)?\n")
        ends = [event["text"] for event in self.events("@last") if event["type"] == "rank-exited"]
        self.assertIn("ran out of memory and was killed", ends[0], f"{run}")

    def test_what_ranks_in_the_background_write_into_files(self):
        self.agents()
        self.cluster.write("script.sh", BACKGROUND)
        self.cluster.write("one.sh", ONE)
        gate = self.cluster.path("gate")
        gates = [f"{gate}-{node}-{rank}" for node in (0, 1) for rank in (0, 1)]
        for path in gates:
            os.mkfifo(path)
        spec = (
            self.spec("background")
            .replace(":/data:ro", ":/data")
            .replace("run: [sh, rank.sh]", "per: node, run: [sh, script.sh]")
            .replace('GATE: ""', f'GATE: "{gate}"')
        )
        job = self.cluster.submit(spec)

        def log(node, rank, *more):
            return self.cluster.muster(
                "logs", job, "--raw", "--auxiliary", f"rank-{rank}", "--node", f"n{node}", *more
            ).out

        for node in (0, 1):
            for rank in (0, 1):
                wait_until(
                    lambda node=node, rank=rank: log(node, rank) == f"begun by {rank} on n{node}\n",
                    what=f"the first line of rank {rank} on n{node}",
                )
        for path in gates:
            with open(path, "w", encoding="utf-8") as file:
                file.write("go\n")
        self.succeeds(job)
        for node in (0, 1):
            for rank in (0, 1):
                want = f"begun by {rank} on n{node}\n" + "".join(
                    f"line {i} of {rank}\n" for i in range(1, 501)
                )
                self.assertEqual(log(node, rank, "--follow"), want)
        self.assertFalse(os.path.exists("/tmp/rank.log"))

    def test_what_cannot_run_says_why(self):
        self.agents()
        self.cluster.write("garbage.tar", "no archive\n")
        for name, image, says in [
            (
                "missing",
                f"file://{self.cluster.dir}/imag.tar",
                f"loading image '{self.cluster.dir}/imag.tar': No such file or directory",
            ),
            (
                "garbage",
                f"file://{self.cluster.dir}/garbage.tar",
                f"loading image '{self.cluster.dir}/garbage.tar': as an archive of an image: ",
            ),
            (
                "nowhere",
                "no-such-image-anywhere",
                "pulling image 'no-such-image-anywhere': it ended with status 125: ",
            ),
        ]:
            run = self.cluster.muster(
                "run", self.cluster.spec(self.spec(name, image=image)), "--timeout", "60s", code=1
            )
            self.assertIn(says, run.out + run.err)
        spec = self.spec("mount").replace(
            f"{self.cluster.dir}/data:/data", f"{self.cluster.dir}/dato:/data"
        )
        run = self.cluster.muster("run", self.cluster.spec(spec), "--timeout", "60s", code=1)
        self.assertIn(
            f"mounting '{self.cluster.dir}/dato' at '/data': No such file or directory",
            run.out + run.err,
        )
        spec = self.spec("program").replace("[sh, rank.sh]", "[no-such-program]")
        run = self.cluster.muster("run", self.cluster.spec(spec), "--timeout", "60s", code=1)
        self.assertIn(
            "executing 'no-such-program': No such file or directory; it was looked for on the container's PATH",
            run.out + run.err,
        )

    def test_a_node_without_podman_says_so(self):
        self.agents(["--container-tool", "/nowhere/podman"])
        run = self.cluster.muster(
            "run", self.cluster.spec(self.spec("toolless")), "--timeout", "60s", code=1
        )
        self.assertIn(
            "looking for podman or docker: '/nowhere/podman' is not there or not executable",
            run.out + run.err,
        )


if __name__ == "__main__":
    unittest.main()
