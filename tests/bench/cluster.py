"""A private cluster of real daemons, and one stream of all its events."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from measuring import MS, PATIENCE, now, processes, tool

WRITE = b"x" * 4096


class Watcher:
    """bench_client watch: every event with the moment of its arrival."""

    def __init__(self, endpoint):
        self.events = []
        self.news = threading.Condition()
        self.process = subprocess.Popen([tool("bench_client"), "watch", endpoint], stdout=subprocess.PIPE, text=True)
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
                    raise RuntimeError(f"waiting for {kind} of {job} {attempt or ''}: {self.events[-8:]}")

    def close(self):
        self.process.kill()
        self.process.wait()


class Cluster:
    """Real daemons in a directory of their own; each can be killed and started again."""

    def __init__(self, options, nodes, devices, extra=()):
        self.dir = tempfile.mkdtemp(prefix="muster-bench-")
        self.options, self.devices, self.extra = options, devices, extra
        self.endpoint = os.path.join(self.dir, "endpoint")
        self.names = [f"bench{os.getpid()}-{n}" for n in range(nodes)]
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith("MUSTER_")}, "MUSTER_CONTROLLER": self.endpoint}
        self.agents, self.controller, self.watcher, self.syncs = {}, None, None, []
        self.sync_file = os.open(os.path.join(self.dir, "sync"), os.O_WRONLY | os.O_CREAT, 0o600)
        os.pwrite(self.sync_file, WRITE * 64, 0)
        os.fdatasync(self.sync_file)

    def __enter__(self):
        try:
            helper = self.start_helper("listen", str(len(self.names)))
            self.start_controller()
            for name in self.names:
                self.start_agent(name)
            self.moments(helper)
            self.watcher = Watcher(self.endpoint)
        except BaseException:
            self.__exit__()
            raise
        return self

    def daemon(self, *argv):
        with open(os.path.join(self.dir, "daemons.log"), "ab") as log:
            return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env={"PATH": "/usr/bin:/bin"})

    def start_controller(self):
        state = os.path.join(self.dir, "controller")
        self.controller = self.daemon(tool("muster-controller"), "--state-dir", state, "--endpoint-file", self.endpoint, "--listen", f"unix:{self.dir}/sock", *self.extra)

    def start_agent(self, name):
        self.agents[name] = self.daemon(
            tool("muster-agent"), "--controller", self.endpoint, "--name", name, "--state-dir", os.path.join(self.dir, name),
            "--devices", str(self.devices), "--address", "127.0.0.1", "--cgroup", self.options.cgroup)

    def start_helper(self, verb, *args):
        helper = subprocess.Popen([tool("bench_client"), verb, self.endpoint, *args], stdout=subprocess.PIPE, text=True)
        if helper.stdout.readline() != "ready\n":
            raise RuntimeError(f"bench_client {verb} did not start")
        return helper

    def moments(self, helper):
        """What a helper says, to its end: {word: nanoseconds}."""
        try:
            text, _ = helper.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            helper.kill()
            helper.communicate()
            raise RuntimeError(f"waiting for the nodes: time is up; the end of the daemons' log:\n{self.log_end()}") from None
        if helper.returncode:
            raise RuntimeError(f"bench_client ended with {helper.returncode}; the end of the daemons' log:\n{self.log_end()}")
        return {line.split()[0]: int(line.split()[1]) for line in text.splitlines()}

    def log_end(self):
        with open(os.path.join(self.dir, "daemons.log"), "rb") as log:
            return log.read()[-2000:].decode(errors="replace")

    def spec(self, name, ranks, args, nodes=1, stop_grace="10s"):
        path = os.path.join(self.dir, name + ".yaml")
        with open(path, "w", encoding="ascii") as file:
            json.dump({
                "name": name, "engine": "torch",
                "launch": {"run": [tool("stub_trainer"), *args]},
                "resources": {"nodes": nodes, "devices": ranks // nodes, "type": "cpu"},
                "recovery": {"stop_grace": stop_grace}}, file)  # fmt: skip
        return path

    def submit(self, path):
        """(moment before the exec of `muster run -d`, job id)."""
        out, into = os.pipe()
        began = now()
        pid = os.posix_spawn(tool("muster"), ["muster", "run", "-d", path], self.env, file_actions=[(os.POSIX_SPAWN_DUP2, into, 1), (os.POSIX_SPAWN_CLOSE, out)])
        os.close(into)
        with os.fdopen(out, encoding="ascii") as reader:
            job = reader.read().strip()
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
            raise RuntimeError(f"muster run failed; the end of the daemons' log:\n{self.log_end()}")
        return began, job

    def cancel(self, job):
        subprocess.run([tool("muster"), "cancel", job], env=self.env, stdout=subprocess.DEVNULL, check=True)
        self.watcher.wait("job-ended", job)

    def sync(self, times=1):
        for _ in range(times):
            began = now()
            os.pwrite(self.sync_file, WRITE, 4096 * (len(self.syncs) % 64))
            os.fdatasync(self.sync_file)
            self.syncs.append((now() - began) / MS)

    def __exit__(self, *_):
        if self.watcher:
            self.watcher.close()
        if self.controller and os.path.exists(self.endpoint):
            try:
                listed = subprocess.run([tool("muster"), "ps", "-o", "name"], env=self.env, capture_output=True, text=True, timeout=PATIENCE).stdout.split()
                for job in listed:
                    subprocess.run([tool("muster"), "cancel", job], env=self.env, capture_output=True, timeout=PATIENCE)
                    subprocess.run([tool("muster"), "wait", job], env=self.env, capture_output=True, timeout=PATIENCE)
            except subprocess.SubprocessError as error:
                print(f"ending the jobs: {error}", file=sys.stderr)
        for process in [*self.agents.values(), self.controller]:
            if process and process.poll() is None:
                process.terminate()
        for process in [*self.agents.values(), self.controller]:
            if process:
                process.wait()
        for process in processes(self.dir):  # only after a failure
            os.kill(process, signal.SIGKILL)
        os.close(self.sync_file)
        for name in self.names:
            for base in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
                try:
                    os.rmdir(os.path.join(base, "muster-" + name))
                except OSError:
                    pass
        if self.options.keep:
            print("kept:", self.dir, file=sys.stderr)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)


