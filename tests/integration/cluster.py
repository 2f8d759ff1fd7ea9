"""A private cluster of real processes for the integration tests: one controller and some agents below one temporary directory.

The daemons get the command lines of `muster local up`, but they are this process's own children: any of them can be killed and started again at
an exact moment, and none outlives the test.  Nothing here sleeps: what is waited for is a process (pidfd), a file (inotify) or a command's end.

    with Cluster(devices=4) as cluster:
        job = cluster.submit(cluster.stub(steps=100, step_ms=10))
        Trace(...).wait(step=20); cluster.kill("controller"); cluster.start("controller")
        cluster.wait(job)

On leaving, every process that carries the process tag of this cluster is gone, and that is checked, or the test fails.
"""

import collections
import ctypes
import errno
import glob
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

from ports import Ports

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.abspath(os.environ.get("MUSTER_BIN") or os.path.join(HERE, "../../build/release/bin"))
# Programs under a sanitizer take several times as long to start: their jobs are as much longer, so that every kill falls into them.
SLOW = int(os.environ.get("MUSTER_TEST_SLOW") or 1)
DEADLINE = 120.0 * SLOW  # s; only a bound for what should take well under a second on a machine that is not overloaded

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_IN_MODIFY, _IN_MOVED_TO, _IN_CREATE = 0x2, 0x80, 0x100


def binary(name):
    path = os.path.join(BIN, name)
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(f"'{path}' is not there: build it, or name its folder by MUSTER_BIN")
    return path


# ---- Processes ---------------------------------------------------------------------------------------

Process = collections.namedtuple("Process", "pid start parent argv env")
Rank = collections.namedtuple("Rank", "rank attempt pid start")


def _stat(pid):
    """(parent, start time): start time and pid together are a process."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[1]), int(fields[19])


def carriers(process_tag):
    """The live processes with a MUSTER_PROCESS_TAG that begins with this."""
    needle, found = b"MUSTER_PROCESS_TAG=" + process_tag.encode(), []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                environ = file.read()
            if needle not in environ:
                continue
            parent, start = _stat(entry)
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                argv = file.read().decode(errors="replace").split("\0")[:-1]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # gone meanwhile, or another user's
        env = dict(item.decode(errors="replace").split("=", 1) for item in environ.split(b"\0") if b"=" in item)
        if env.get("MUSTER_PROCESS_TAG", "").startswith(process_tag):
            found.append(Process(int(entry), start, parent, argv, env))
    return found


def kill_process(process):
    """SIGKILL for exactly this process; False: it was gone already."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if _stat(process.pid)[1] != process.start:
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        return True
    except (FileNotFoundError, ProcessLookupError):
        return False
    finally:
        os.close(pidfd)


def wait_gone(process, deadline=DEADLINE):
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        if _stat(process.pid)[1] != process.start:
            return True
        return bool(select.select([pidfd], [], [], deadline)[0])
    except (FileNotFoundError, ProcessLookupError):
        return True
    finally:
        os.close(pidfd)


# ---- Files -------------------------------------------------------------------------------------------


class Directory:
    """Wakes up when something in a directory changes."""

    def __init__(self, path):
        self._fd = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        # A user has few inotify instances (128 by default), and everybody's tests share them: without one, wait() ends early and its caller looks again.
        if self._fd < 0 and ctypes.get_errno() == errno.EMFILE:
            return
        if self._fd < 0 or _libc.inotify_add_watch(self._fd, os.fsencode(path), _IN_MODIFY | _IN_MOVED_TO | _IN_CREATE) < 0:
            raise OSError(ctypes.get_errno(), f"watching '{path}'")

    def wait(self, seconds):
        """True: something may have changed (since the last call)."""
        if self._fd < 0:
            select.select([], [], [], min(0.02, max(0.0, seconds)))
            return seconds > 0
        if not select.select([self._fd], [], [], max(0.0, seconds))[0]:
            return False
        try:
            os.read(self._fd, 1 << 16)
        except BlockingIOError:
            pass
        return True

    def close(self):
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


Entry = collections.namedtuple("Entry", "step loss at pid")


class Trace:
    """What the ranks of one job themselves wrote down of every step, over all attempts: the truth that a test compares with.

    The stub trainer's lines are 'STEP LOSS CLOCK_MONOTONIC_NS PID', the tiny GPT's --loss-hex lines 'STEP LOSS'.
    """

    def __init__(self, cluster, name):
        self.path = os.path.join(cluster.work, name)
        os.mkdir(self.path)
        self.cluster = cluster
        self._watch = Directory(self.path)
        cluster.closing.append(self._watch)

    def file(self, rank=0):
        return os.path.join(self.path, f"rank-{rank}.trace")

    def read(self, rank=0):
        try:
            with open(self.file(rank), encoding="ascii") as file:
                text = file.read()
        except FileNotFoundError:
            return []
        out = []
        for line in text[: text.rfind("\n") + 1].splitlines():
            fields = line.split()
            out.append(Entry(int(fields[0]), fields[1], int(fields[2]) if len(fields) > 2 else 0, int(fields[3]) if len(fields) > 3 else 0))
        return out

    def until_ended(self):
        """Arguments of a stub trainer that goes on until end(): however slow the machine is, what the test does falls into the training."""
        return ["--steps", 10**6, "--end-file", os.path.join(self.path, "end")]

    def end(self, job):
        """Ends it some hundred steps from now, so that no rank has passed that step, and waits for a new one. Returns the last step."""
        best = self.best()
        with open(os.path.join(self.path, "end.new"), "w", encoding="ascii") as file:
            file.write(str(best + 300))
        os.rename(os.path.join(self.path, "end.new"), os.path.join(self.path, "end"))
        self.wait(job, best + 1)
        return best + 300

    def ranks(self):
        return sorted(int(path.rpartition("-")[2].partition(".")[0]) for path in glob.glob(os.path.join(self.path, "rank-*.trace")))

    def best(self, rank=0):
        try:
            with open(self.file(rank), "rb") as file:
                if not hasattr(self, "_best"):
                    self._best, self._at = {}, {}
                at = self._at.get(rank, 0)
                file.seek(at)
                text = file.read()
        except FileNotFoundError:
            return 0
        whole = text[: text.rfind(b"\n") + 1]
        steps = [int(line.split(None, 1)[0]) for line in whole.splitlines()]
        self._at[rank] = at + len(whole)
        self._best[rank] = max(steps + [self._best.get(rank, 0)])
        return self._best[rank]

    def wait(self, job, step, deadline=DEADLINE):
        """Until rank 0 made that step; a job that ends before it is a failure at once."""
        end = time.monotonic() + deadline
        while self.best() < step:
            if not self._watch.wait(min(5.0, end - time.monotonic())):
                shown = self.cluster.show(job, check=False)
                ended = shown is None or shown.get("phase") in ("succeeded", "failed", "cancelled")
                if time.monotonic() > end or (ended and shown is not None and self.best() < step):
                    raise AssertionError(f"step {step} was waited for, {self.best()} is the best\n{self.cluster.story(job)}")
        return self.best()

    def losses(self):
        """{step: loss}: every rank that wrote, every attempt, must agree on every step."""
        out, where = {}, {}
        for rank in self.ranks():
            for entry in self.read(rank):
                if out.setdefault(entry.step, entry.loss) != entry.loss:
                    raise AssertionError(f"step {entry.step}: loss {entry.loss} of rank {rank}, process {entry.pid}; {out[entry.step]} of {where[entry.step]}")
                where.setdefault(entry.step, f"rank {rank}, process {entry.pid}")
        return out

    def gaps(self, rank=0):
        """Seconds between the steps that follow each other in one process."""
        entries = self.read(rank)
        return [(b.at - a.at) / 1e9 for a, b in zip(entries, entries[1:]) if a.pid == b.pid]


# ---- The cluster -------------------------------------------------------------------------------------


class Cluster:
    def __init__(self, nodes=2, devices=4, controller_args=(), agent_args=()):
        self.nodes, self.devices = [f"n{i}" for i in range(nodes)], devices
        self._controller_args, self._agent_args = list(controller_args), list(agent_args)
        self.daemons, self.closing, self.jobs, self.cluster_id = {}, [], [], None

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="muster-")  # short: a unix socket's path has 107 bytes
        self.work = os.path.join(self.dir, "work")
        self.endpoint = os.path.join(self.dir, "endpoint")
        for name in ("", "controller", "agents", "log", "work"):
            os.makedirs(os.path.join(self.dir, name), mode=0o700, exist_ok=True)
        self._ports = Ports()
        try:
            self.start("controller")
            for node in self.nodes:
                self.start(node)
            self._registered()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind, error, trace):
        left = self._stop()
        if kind is None and left:
            raise AssertionError("left behind: " + "; ".join(left))

    def _argv(self, name):
        if name == "controller":
            return [binary("muster-controller"), "--state-dir", f"{self.dir}/controller", "--endpoint-file", self.endpoint, "--listen",
                    f"unix:{self.dir}/controller.sock", "--port-range", self._ports.range, *self._controller_args]  # fmt: skip
        return [binary("muster-agent"), "--controller", self.endpoint, "--name", name, "--state-dir", self.agent_dir(name), "--devices", str(self.devices),
                "--address", "127.0.0.1", *self._agent_args]  # fmt: skip

    def agent_dir(self, node):
        return f"{self.dir}/agents/{node}"

    def start(self, name, wait=True):
        """Starts a daemon; the controller is waited for until it listens, unless told."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("MUSTER_") or key == "MUSTER_LOG_LEVEL"}
        watch = None
        if name == "controller":
            if os.path.exists(self.endpoint):
                os.unlink(self.endpoint)
            watch = Directory(self.dir) if wait else None
        with open(f"{self.dir}/log/{name}.log", "ab") as log:
            self.daemons[name] = subprocess.Popen(
                self._argv(name), env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL))  # fmt: skip
        if watch is not None:
            try:
                self._listening(watch)
            finally:
                watch.close()

    def _listening(self, watch):
        end = time.monotonic() + DEADLINE
        while not os.path.exists(self.endpoint):
            watch.wait(1.0)
            if self.daemons["controller"].poll() is not None or time.monotonic() > end:
                raise AssertionError("the controller does not start\n" + self.log_end("controller"))
        if self.cluster_id is None:
            with open(self.endpoint, encoding="utf-8") as file:
                self.cluster_id = json.load(file)["cluster_id"]

    def _registered(self):
        """A job that the nodes which are there can never satisfy would be refused."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("MUSTER_")}
        env["MUSTER_CONTROLLER"] = self.endpoint
        seen = set()
        command = [binary("muster"), "events", "-f", "-o", "jsonl", "--timeout", f"{int(DEADLINE)}s"]
        with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as events:
            for line in events.stdout:
                event = json.loads(line)
                seen |= {event["node"]} if event["type"] == "node-registered" else set()
                if seen >= set(self.nodes):
                    break
            events.kill()
        if not seen >= set(self.nodes):
            raise AssertionError("nodes do not register\n" + "\n".join(self.log_end(node) for node in self.nodes))

    def kill(self, name):
        """SIGKILL for a daemon; returns when it is gone."""
        self.daemons[name].kill()
        self.daemons[name].wait()

    def restart(self, name, wait=True):
        self.kill(name)
        self.start(name, wait)

    # ---- what a person would type

    def run(self, *args, timeout=DEADLINE, binary_output=False):
        env = {key: value for key, value in os.environ.items() if not key.startswith("MUSTER_")}
        env["MUSTER_CONTROLLER"] = self.endpoint
        command = [binary("muster"), *args]
        return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=not binary_output, timeout=timeout, check=False)

    def muster(self, *args, **more):
        done = self.run(*args, **more)
        if done.returncode != 0:
            raise AssertionError(f"muster {' '.join(args)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, spec):
        path = os.path.join(self.work, f"{spec['name']}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)  # JSON is YAML
        job = self.muster("run", "-d", path).split()[0]
        self.jobs.append(job)
        return job

    def spec(self, name, launch, nodes=None, devices=None):
        """Restarts without end; a short grace, so that nothing would outlive a killed test for long."""
        return {
            "name": name,
            "engine": "torch",
            "launch": launch,
            "resources": {"nodes": nodes or len(self.nodes), "devices": devices or self.devices, "type": "cpu"},
            "recovery": {"max_restarts": 100000, "orphan_grace": "60s", "stop_grace": "2s"},
        }

    def stub(self, name, *args, nodes=None, devices=None):
        return self.spec(name, {"run": [binary("stub_trainer"), *[str(arg) for arg in args]]}, nodes, devices)

    def show(self, job, check=True):
        done = self.run("show", job, "-o", "json")
        if done.returncode != 0 and not check:
            return None
        if done.returncode != 0:
            raise AssertionError(f"muster show {job}: exit {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout)

    def wait(self, job, timeout=DEADLINE, code=0):
        end = time.monotonic() + timeout
        while True:
            done = self.run("wait", job, "--timeout", f"{int(timeout)}s", timeout=timeout + 30)
            if done.returncode != 13 or time.monotonic() > end:
                break
            watch = Directory(self.dir)  # a controller that was started without waiting has not written its endpoint file yet
            try:
                self._listening(watch)
            finally:
                watch.close()
        if done.returncode != code:
            raise AssertionError(f"job {job}: exit {done.returncode}, not {code}\n{self.story(job)}")

    def events(self, job):
        return [json.loads(line) for line in self.muster("events", job, "-o", "jsonl").splitlines()]

    # ---- what is there

    def processes(self):
        return carriers(self.cluster_id + "/")

    def workers(self):
        found = [p for p in self.processes() if "MUSTER_RANK" not in p.env and p.argv and os.path.basename(p.argv[0]) == "muster-worker"]
        pids = {p.pid for p in found}
        return [p for p in found if p.parent not in pids]  # not a rank between fork and exec

    def rank_processes(self):
        found = [p for p in self.processes() if "MUSTER_RANK" in p.env]
        pids = {p.pid for p in found}
        return [p for p in found if p.parent not in pids]  # not what a rank started

    def ranks(self):
        """Who the ranks are: {rank: (attempt, pid, start time)} of the processes that live now."""
        return {int(p.env["MUSTER_RANK"]): (int(p.env["MUSTER_ATTEMPT"]), p.pid, p.start) for p in self.rank_processes()}

    def log_end(self, name, lines=12):
        try:
            with open(f"{self.dir}/log/{name}.log", encoding="utf-8", errors="replace") as file:
                return f"---- the end of {name}'s log\n" + "".join(file.readlines()[-lines:])
        except OSError as error:
            return str(error)

    def story(self, job):
        """For a failure's message: what the job did, and what the daemons said last."""
        events = self.run("events", job)
        text = "\n".join((events.stdout + events.stderr).splitlines()[-25:])
        return "\n".join([text, self.run("why", job).stdout, *[self.log_end(name) for name in ("controller", *self.nodes)]])

    # ---- the end

    def _stop(self):
        """Ends everything; says what should not have been there any more when all had ended in order."""
        left = []
        for item in self.closing:
            item.close()
        controller = self.daemons.get("controller")
        if controller is not None and controller.poll() is None:
            for job in self.jobs:  # those that have ended answer that they have
                self.run("cancel", job)
                self.run("wait", job, "--timeout", f"{int(DEADLINE / 2)}s")
        for name in [*self.nodes, "controller"]:
            daemon = self.daemons.get(name)
            if daemon is None:
                continue
            daemon.terminate()
            try:
                daemon.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                left.append(f"{name} does not end by SIGTERM")
                daemon.kill()
                daemon.wait()
        if self.cluster_id is not None:
            for process in self.processes():
                left.append(f"process {process.pid} ({' '.join(process.argv)[:80]}) of {process.env['MUSTER_PROCESS_TAG']}")
                kill_process(process)
                wait_gone(process)
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
            left += ["socket " + line.split()[-1] for line in file if self.dir in line]
        for job in self.jobs:
            for base in ("", "unified/"):
                left += ["control group " + path for path in glob.glob(f"/sys/fs/cgroup/{base}muster-*/*{job}*")]
        self._ports.close()
        shutil.rmtree(self.dir, ignore_errors=True)
        return left
