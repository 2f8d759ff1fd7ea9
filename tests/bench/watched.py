"""The tests' cluster, as it is measured: daemons with nothing in their environment, and one stream of all its events."""

import json
import os
import subprocess
import threading
import time

from cluster import Cluster
from measuring import MS, PATIENCE, now, tool

WRITE = b"x" * 4096


class Watcher:
    """bench_client watch: every event with the moment of its arrival."""

    def __init__(self, endpoint):
        self.events = []
        self.news = threading.Condition()
        self.process = subprocess.Popen(
            [tool("bench_client"), "watch", endpoint], stdout=subprocess.PIPE, text=True
        )
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("bench_client watch did not start")
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            at, kind, job, attempt, rank = line.split()
            with self.news:
                self.events.append((int(at), kind, job, int(attempt), int(rank)))
                self.news.notify_all()

    def wait(self, kind, job, attempt=None, count=1):
        """The moment of the count-th event of that kind."""
        deadline = time.monotonic() + PATIENCE
        seen, done = 0, 0
        with self.news:
            while True:
                for event in self.events[done:]:
                    if event[1] == kind and event[2] == job and attempt in (None, event[3]):
                        seen += 1
                        if seen == count:
                            return event[0]
                done = len(self.events)
                if not self.news.wait(deadline - time.monotonic()):
                    raise RuntimeError(
                        f"waiting for {kind} of {job} {attempt or ''}: {self.events[-8:]}"
                    )

    def close(self):
        self.process.kill()
        self.process.wait()


class WatchedCluster(Cluster):
    """`extra`: more words for the controller. No daemon is waited for here but by bench_client, to the moment."""

    def __init__(self, options, nodes, devices, extra=()):
        super().__init__(
            nodes, devices, controller_args=extra, agent_args=("--cgroup", options.cgroup)
        )
        self.nodes = [f"bench{os.getpid()}-{n}" for n in range(nodes)]
        self.env = {"PATH": "/usr/bin:/bin", "HOME": self.dir, "MUSTER_CONTROLLER": self.endpoint}
        self.keep, self.watcher, self.syncs = options.keep, None, []
        self.sync_file = os.open(self.path("sync"), os.O_WRONLY | os.O_CREAT, 0o600)
        os.pwrite(self.sync_file, WRITE * 64, 0)
        os.fdatasync(self.sync_file)

    def __enter__(self):
        try:
            helper = self.start_helper("listen", str(len(self.nodes)))
            for name in ("controller", *self.nodes):
                self.start(name, wait=False)
            self.moments(helper)
            self.watcher = Watcher(self.endpoint)
        except BaseException:
            self._end()
            raise
        return self

    def port_range(self):
        return "20000-29999"  # as wide as a controller has it by itself: some rows run many jobs at once

    def pid(self, name):
        return self.daemon(name).process.pid

    def start_helper(self, verb, *args):
        helper = subprocess.Popen(
            [tool("bench_client"), verb, self.endpoint, *args], stdout=subprocess.PIPE, text=True
        )
        if helper.stdout.readline() != "ready\n":
            raise RuntimeError(f"bench_client {verb} did not start")
        return helper

    def moments(self, helper):
        """What a helper prints, to its end: {word: nanoseconds}."""
        try:
            text, _ = helper.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            helper.kill()
            helper.communicate()
            raise RuntimeError(f"waiting for the nodes: time is up\n{self.log_ends()}") from None
        if helper.returncode:
            raise RuntimeError(f"bench_client ended with {helper.returncode}\n{self.log_ends()}")
        return {line.split()[0]: int(line.split()[1]) for line in text.splitlines()}

    def stub_file(self, name, ranks, args, nodes=1, stop_grace="10s"):
        """The path of a job.yaml."""
        return self.spec(json.dumps({
            "name": name, "engine": "torch",
            "launch": {"run": [tool("stub_trainer"), *args]},
            "resources": {"nodes": nodes, "devices": ranks // nodes, "type": "cpu"},
            "recovery": {"stop_grace": stop_grace}}))  # fmt: skip

    def launch(self, path):
        """(moment before the exec of `muster run -d`, job id)."""
        out, into = os.pipe()
        began = now()
        pid = os.posix_spawn(
            tool("muster"),
            ["muster", "run", "-d", path],
            self.env,
            file_actions=[(os.POSIX_SPAWN_DUP2, into, 1), (os.POSIX_SPAWN_CLOSE, out)],
        )
        os.close(into)
        with os.fdopen(out, encoding="ascii") as reader:
            job = reader.read().strip()
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
            raise RuntimeError(f"muster run failed\n{self.log_ends()}")
        self.jobs.append(job)
        return began, job

    def cancel(self, job):
        self.output("cancel", job)
        self.watcher.wait("job-ended", job)

    def sync(self, times=1):
        for _ in range(times):
            began = now()
            os.pwrite(self.sync_file, WRITE, 4096 * (len(self.syncs) % 64))
            os.fdatasync(self.sync_file)
            self.syncs.append((now() - began) / MS)

    def _end(self):
        if self.watcher:
            self.watcher.close()
        os.close(self.sync_file)
        left = super()._end()
        for name in self.nodes:
            for base in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
                try:
                    os.rmdir(os.path.join(base, "muster-" + name))
                except OSError:
                    pass
        return left
