"""A cluster of real daemons for one test: below a temporary directory, over a unix socket, gone at the end.

    with Private() as cluster:
        cluster.controller()
        cluster.agent("n0", devices=2)
        done = cluster.muster("run", cluster.spec("name: x ..."))       # done.code, done.out, done.err

Nothing here sleeps: it waits for processes (pidfd), for lines (muster events -f), or for a file beside a pidfd.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

from ports import Ports

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BIN = os.path.abspath(os.environ.get("MUSTER_BIN") or os.path.join(ROOT, "build/release/bin"))
PATIENCE = 60.0 * int(os.environ.get("MUSTER_TEST_SLOW") or 1)  # s; only a bound, never a measure
STUB = os.path.join(BIN, "stub_trainer")


class Done:
    """How a command ended."""

    def __init__(self, command, code, out, err):
        self.command, self.code, self.out, self.err = command, code, out, err

    def __str__(self):
        return f"$ {' '.join(self.command)}\nexit {self.code}\n--- stdout\n{self.out}--- stderr\n{self.err}"


def wait_gone(pid_fd, within=PATIENCE):
    """True as soon as the process of this pidfd has ended."""
    poll = select.poll()
    poll.register(pid_fd, select.POLLIN)
    return bool(poll.poll(within * 1000))


def wait_until(true, pid_fd=None, within=PATIENCE, what="it"):
    """Looks again every 20 ms, or at once when the process of the pidfd ends: for what sends no event (a file that appears)."""
    deadline = time.monotonic() + within
    poll = select.poll()
    if pid_fd is not None:
        poll.register(pid_fd, select.POLLIN)
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within:.0f} s for {what}")
        if poll.poll(20) and not true():
            raise AssertionError(f"waiting for {what}: the process ended")


def clean_environment(home):
    env = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    env.update(HOME=home, TERM="dumb", LC_ALL="C.UTF-8")
    env.pop("XDG_STATE_HOME", None)
    return env


def processes_of(directory):
    """Living processes that carry the directory in their command line or environment: daemons, workers, ranks."""
    found = []
    mark = re.compile(re.escape(directory.encode()) + rb"(/|\0|$|[^A-Za-z0-9_.-])")
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                if file.read().rsplit(b")", 1)[1].split()[0] in (b"Z", b"X"):
                    continue
            texts = b""
            for name in ("cmdline", "environ"):
                with open(f"/proc/{entry}/{name}", "rb") as file:
                    texts += file.read() + b"\0"
        except OSError:
            continue
        if mark.search(texts):
            found.append((int(entry), texts.split(b"\0\0")[0].replace(b"\0", b" ").decode(errors="replace")[:200]))
    return found


class Daemon:
    def __init__(self, name, command, env, log):
        self.name, self.log = name, log
        with open(log, "ab") as output:
            self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        self.pid_fd = os.pidfd_open(self.process.pid)

    def alive(self):
        return self.process.poll() is None

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        if not wait_gone(self.pid_fd):
            self.process.kill()
        return self.process.wait()

    def ended(self):
        """Its exit code and what it said, once it has ended by itself."""
        if not wait_gone(self.pid_fd):
            raise AssertionError(f"{self.name} goes on; it said:\n{self.output()}")
        return self.process.wait(), self.output()

    def output(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for(self, text, within=PATIENCE):
        """Until its log has the text."""
        wait_until(lambda: text in self.output(), self.pid_fd, within, f"{self.name} to say '{text}'\n{self.output()}")

    def close(self):
        if self.alive():
            self.stop()
        os.close(self.pid_fd)


class Private:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="muster-")
        self.env = clean_environment(self.dir)
        self.daemons = []
        self.endpoint = os.path.join(self.dir, "endpoint")
        self.env["MUSTER_CONTROLLER"] = self.endpoint
        self._count = 0
        self._ports = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def write(self, name, text, mode=None):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if mode is not None:
            os.chmod(path, mode)
        return path

    def spec(self, text, name=None):
        self._count += 1
        return self.write(name or f"job-{self._count}.yaml", text)

    def controller(self, *args, state=None, listen=None, wait=True):
        state = state or self.path("controller")
        if "--port-range" not in args:
            self._ports = self._ports or Ports()
            args = ("--port-range", self._ports.range, *args)
        command = [os.path.join(BIN, "muster-controller"), "--state-dir", state, "--endpoint-file", self.endpoint, "--listen", listen or "unix:" + self.path("s"), *args]
        if os.path.exists(self.endpoint):
            os.unlink(self.endpoint)
        daemon = self._start("controller", command)
        if wait:
            wait_until(lambda: os.path.exists(self.endpoint), daemon.pid_fd, what=f"the controller's endpoint file; {daemon.log}")
        return daemon

    def agent(self, name, devices=2, state=None, controller=None, args=(), wait=True, env=None, address="127.0.0.1"):
        slots = () if "--devices-from" in args else ("--devices", str(devices))
        command = [os.path.join(BIN, "muster-agent"), "--controller", controller or self.endpoint, "--name", name, "--state-dir", state or self.path("agent-" + name),
                   *slots, "--address", address, *args]
        daemon = self._start("agent-" + name, command, env)
        if wait:
            self.wait_event(lambda event: event["type"] == "node-registered" and event["node"] == name)
        return daemon

    def _start(self, name, command, env=None):
        self._count += 1
        daemon_env = {key: value for key, value in self.env.items() if not key.startswith("MUSTER_")}
        daemon = Daemon(name, command, {**daemon_env, **(env or {})}, self.path(f"{self._count}-{name}.log"))
        self.daemons.append(daemon)
        return daemon

    def command(self, *args):
        return [os.path.join(BIN, "muster"), *map(str, args)]

    def muster(self, *args, env=None, stdin="", within=PATIENCE, code=None):
        """Runs one command to its end. `code`: what it must be."""
        command = self.command(*args)
        result = subprocess.run(command, env={**self.env, **(env or {})}, input=stdin, capture_output=True, text=True, timeout=within, cwd=self.dir)
        done = Done(["muster", *map(str, args)], result.returncode, result.stdout, result.stderr)
        if code is not None and done.code != code:
            raise AssertionError(f"wanted exit {code}:\n{done}")
        return done

    def start(self, *args, **options):
        """The same, without waiting: a Popen with text pipes."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        return subprocess.Popen(self.command(*args), env=self.env, cwd=self.dir, **pipes)

    def wait_event(self, wanted, target=None, within=PATIENCE):
        """The first event, old or new, that `wanted` says yes to."""
        import json

        args = ["events", *([target] if target else []), "-f", "-o", "jsonl", "--timeout", f"{within:.0f}s"]
        process = self.start(*args)
        seen = []
        try:
            for line in process.stdout:
                event = json.loads(line)
                seen.append(event["type"])
                if wanted(event):
                    return event
        finally:
            process.kill()
            rest = process.communicate()
        raise AssertionError(f"events of {target or 'everything'} ended without the one that was waited for: {seen}\n{rest[1]}")

    def submit(self, text, *args):
        """The id of a job that was submitted and not waited for."""
        return self.muster("run", "-d", self.spec(text), *args, code=0).out.strip()

    def trivial(self):
        """The cluster works: a small job runs to its end."""
        self._count += 1
        name = f"trivial-{self._count}"
        self.muster("run", "-q", self.spec(f'name: {name}\nengine: command\nlaunch: {{run: "true"}}\nresources: {{devices: 1, type: cpu}}\n'), "--timeout", "60s", code=0)
        return name

    def gate(self, name="gate"):
        return Gate(self.path(name))

    def close(self):
        """Stops everything and says what did not go by itself."""
        left = []
        try:
            if any(daemon.alive() and daemon.name == "controller" for daemon in self.daemons):
                for job in self.muster("ps", "-o", "name").out.split():
                    self.muster("cancel", job)
                    self.muster("wait", job, "--timeout", "50s")
        except (AssertionError, subprocess.SubprocessError) as error:
            left.append(str(error))
        for daemon in reversed(self.daemons):
            daemon.close()
        for pid, _ in processes_of(self.dir):
            gone(pid)
        left += [f"{pid} {command}" for pid, command in processes_of(self.dir)]
        for pid, _ in processes_of(self.dir):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self._ports is not None:
            self._ports.close()
        shutil.rmtree(self.dir, ignore_errors=True)
        if left:
            raise AssertionError("left behind: " + "; ".join(left))


def gone(pid, seconds=20):
    """Waits for the end of a process that was killed: a tool's child in the middle of its own is no leftover."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        select.select([fd], [], [], seconds)
    finally:
        os.close(fd)


class Gate:
    """A pipe that ranks wait at until the test lets them through, one byte each: no polling on either side."""

    def __init__(self, path):
        self.path = path
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def open(self, ranks=1):
        os.write(self._fd, b"\n" * ranks)

    def close(self):
        os.close(self._fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def compile_protos(to, *files, includes=()):
    """Python classes of .proto files, made with protoc into a temporary directory; to be put first on sys.path."""
    command = ["protoc", f"--python_out={to}", *(f"-I{path}" for path in includes), *files]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
