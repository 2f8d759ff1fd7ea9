"""A cluster of real processes below one temporary directory: a controller and agents, all children of the test.

    with Cluster(nodes=2, devices=4) as cluster:          # a controller, n0 and n1 are there
        job = cluster.submit(cluster.stub("name", "--steps", 100))
        cluster.kill("controller"); cluster.start("controller")
        cluster.wait(job)

    with Cluster() as cluster:                            # nothing is there yet
        cluster.controller("--archive-after", "1s")
        cluster.agent("n0", devices=2)
        done = cluster.muster("run", cluster.spec("name: x ..."))       # done.code, done.out, done.err

    with Cluster() as cluster:                            # over TCP: TLS, with certificates
        cluster.controller(listen="127.0.0.1:0")
        cluster.agent("n0", tcp=True)
        cluster.env.update(cluster.over_tcp("ann"))

At the end nothing of it may be left: no process, no socket, no control group. close() checks that, and fails otherwise.
"""

import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from .command import Done
from .daemon import Daemon
from .ports import Ports
from .processes import carriers, kill_process, processes_of, wait_gone, wait_pid
from .programs import BIN, DEADLINE, binary
from .waiting import Directory, Gate

LAST_MOMENT = 20.0  # s that a killed tool's own child, or a worker without ranks, may take to end


class Cluster:
    """`nodes`: so many, n0, n1, ..., are started by `with`, each with `devices` slots, and the controller before them."""

    keep = False  # the directory, at the end

    def __init__(self, nodes=0, devices=2, controller_args=(), agent_args=()):
        self.nodes, self.devices = [f"n{i}" for i in range(nodes)], devices
        self._controller_args, self._agent_args = tuple(controller_args), tuple(agent_args)
        self.dir = tempfile.mkdtemp(prefix="muster-")  # short: a unix socket's path has 107 bytes
        self.work = self.path("work")
        os.mkdir(self.work)
        self.endpoint = self.path("endpoint")
        self.env = {
            name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")
        }
        self.env.pop("XDG_STATE_HOME", None)
        self.env.pop("XDG_CONFIG_HOME", None)
        self.env.update(
            HOME=self.dir, TERM="dumb", LC_ALL="C.UTF-8", MUSTER_CONTROLLER=self.endpoint
        )
        self.daemons, self.closing, self.jobs = [], [], []
        self._cluster_ids, self._left, self._count, self._ports = set(), [], 0, None

    def __enter__(self):
        if self.nodes:
            try:
                self.start("controller")
                for node in self.nodes:
                    self.start(node)
                self._registered()
            except BaseException:
                self._end()
                raise
        return self

    def __exit__(self, kind, error, trace):
        left = self._end()
        if left and kind is None:
            raise AssertionError("left behind: " + "; ".join(left))
        if left:
            print("left behind, too: " + "; ".join(left), file=sys.stderr)

    def close(self):
        """Ends everything. Fails when something did not go by itself."""
        self.__exit__(None, None, None)

    # ---- files

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def agent_dir(self, node):
        return self.path("agent-" + node)

    def write(self, name, text, mode=None):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if mode is not None:
            os.chmod(path, mode)
        return path

    def gate(self, name="gate"):
        return Gate(self.path(name))

    # ---- daemons

    def controller(self, *args, state=None, listen=None, wait=True, before=()):
        """Starts one. It serves a unix socket, and the TCP address `listen`. `wait`: until it listens. `before`: words of a program that starts the controller's."""
        if "--port-range" not in args:
            args = ("--port-range", self.port_range(), *args)
        for address in (listen, "unix:" + self.path("s")):
            args = ("--listen", address, *args) if address else args
        command = [*before, os.path.join(BIN, "muster-controller"), "--state-dir", state or self.path("controller"),
                   "--endpoint-file", self.endpoint, *args]  # fmt: skip
        if os.path.exists(self.endpoint):
            os.unlink(self.endpoint)
        daemon = self._start("controller", command)
        if wait:
            self._listening(daemon)
        return daemon

    def agent(
        self,
        name,
        devices=None,
        state=None,
        controller=None,
        args=(),
        wait=True,
        env=None,
        address="127.0.0.1",
        before=(),
        probe=False,
        tcp=False,
    ):
        """Starts one. `wait`: until its node is registered. `before`: words of a program that starts the agent's. `probe`: it finds its devices itself. `tcp`: it
        calls the controller over TCP, with its node's certificate."""
        args = (*self._agent_args, *args)
        if tcp:
            controller = controller or self.tcp_address()
            args = ("--credentials", self.credentials(node=name), *args)
        probe = probe or "--devices-from" in args
        slots = () if probe else ("--devices", str(self.devices if devices is None else devices))
        command = [*before, os.path.join(BIN, "muster-agent"), "--controller", controller or self.endpoint, "--name", name,
                   "--state-dir", state or self.agent_dir(name), *slots, *(("--address", address) if address else ()), *args]  # fmt: skip
        daemon = self._start(name, command, env)
        if wait:
            self.wait_event(
                lambda event: event["type"] == "node-registered" and event["node"] == name
            )
        return daemon

    def announced(self):
        """What the controller's endpoint file says: address, tcp, cluster_id, pid."""
        with open(self.endpoint, encoding="utf-8") as file:
            return json.load(file)

    def tcp_address(self):
        """HOST:PORT, where the controller serves TLS."""
        return self.announced()["tcp"][0]

    def credentials(self, node=None, user=None):
        """The file with the key and the certificate of this node or user; each is made once."""
        role, name = ("node", node) if node else ("user", user)
        path = self.path(f"{role}-{name}.pem")
        if not os.path.exists(path):
            by_socket = {"MUSTER_CONTROLLER": self.endpoint}
            self.muster("cert", "issue", f"--{role}", name, "-o", path, env=by_socket, code=0)
        return path

    def over_tcp(self, user):
        """The variables of a client that calls the controller over TCP as this user."""
        return {
            "MUSTER_CONTROLLER": self.tcp_address(),
            "MUSTER_CREDENTIALS": self.credentials(user=user),
        }

    def port_range(self):
        self._ports = self._ports or Ports()
        return self._ports.range

    def start(self, name, wait=True):
        """The controller, or a node's agent, as `with` starts it. The controller is waited for until it listens."""
        return (
            self.controller(*self._controller_args, wait=wait)
            if name == "controller"
            else self.agent(name, wait=False)
        )

    def daemon(self, name):
        """The last one that was started under this name."""
        return next(daemon for daemon in reversed(self.daemons) if daemon.name == name)

    def kill(self, name):
        """SIGKILL for a daemon; returns when it is gone."""
        self.daemon(name).stop(signal.SIGKILL)

    def restart(self, name, wait=True):
        self.kill(name)
        self.start(name, wait)

    def _start(self, name, command, env=None):
        kept = {key: value for key, value in self.env.items() if not key.startswith("MUSTER_")}
        if "MUSTER_LOG_LEVEL" in os.environ:
            kept["MUSTER_LOG_LEVEL"] = os.environ["MUSTER_LOG_LEVEL"]
        os.makedirs(self.path("log"), exist_ok=True)
        twins = sum(daemon.name == name and daemon.alive() for daemon in self.daemons)
        log = self.path("log", f"{name}-{twins + 1}.log" if twins else f"{name}.log")
        self.daemons.append(Daemon(name, command, {**kept, **(env or {})}, log))
        return self.daemons[-1]

    def _listening(self, daemon):
        watch = Directory(self.dir)
        try:
            end = time.monotonic() + DEADLINE
            while not self._read_endpoint():
                if not daemon.alive() or time.monotonic() > end:
                    raise AssertionError(
                        "the controller does not start\n" + self.log_end("controller")
                    )
                watch.wait(1.0)
        finally:
            watch.close()

    def _read_endpoint(self):
        """Notes whose processes are this cluster's. False: there is no controller."""
        try:
            self._cluster_ids.add(self.announced()["cluster_id"])
        except FileNotFoundError:
            return False
        return True

    def _registered(self):
        """A job that the nodes which are there can never satisfy would be refused."""
        missing = set(self.nodes)

        def last(event):
            if event["type"] == "node-registered":
                missing.discard(event["node"])
            return not missing

        self.wait_event(last)

    def log_end(self, name, lines=12):
        try:
            with open(self.path("log", name + ".log"), encoding="utf-8", errors="replace") as file:
                return f"---- the end of {name}'s log\n" + "".join(file.readlines()[-lines:])
        except OSError as error:
            return str(error)

    def log_ends(self):
        return "\n".join(
            self.log_end(os.path.basename(path)[: -len(".log")])
            for path in sorted(glob.glob(self.path("log", "*.log")))
        )

    # ---- what a person would type

    def command(self, *args):
        return [os.path.join(BIN, "muster"), *map(str, args)]

    def muster(self, *args, env=None, stdin="", within=DEADLINE, code=None, text=True):
        """Runs one command to its end. `code`: what it must be."""
        result = subprocess.run(self.command(*args), env={**self.env, **(env or {})}, input=stdin if text else stdin.encode(),
                                capture_output=True, text=text, timeout=within, cwd=self.dir)  # fmt: skip
        done = Done(["muster", *map(str, args)], result.returncode, result.stdout, result.stderr)
        if code is not None and done.code != code:
            raise AssertionError(f"wanted exit {code}:\n{done}")
        return done

    def output(self, *args):
        """What a command that succeeds prints."""
        return self.muster(*args, code=0).out

    def popen(self, *args, **options):
        """A command that is not waited for: a Popen with text pipes."""
        pipes = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            **options,
        }
        return subprocess.Popen(self.command(*args), env=self.env, cwd=self.dir, **pipes)

    def spec(self, text, name=None):
        """The path of a job.yaml with this text."""
        self._count += 1
        return self.write(name or f"job-{self._count}.yaml", text)

    def torch_spec(self, name, launch, nodes=None, devices=None):
        """Restarts without end; a short grace, so that nothing would outlive a killed test for long."""
        return {
            "name": name,
            "engine": "torch",
            "launch": launch,
            "resources": {
                "nodes": nodes or len(self.nodes),
                "devices": devices or self.devices,
                "type": "cpu",
            },
            "recovery": {"max_restarts": 100000, "orphan_grace": "60s", "stop_grace": "2s"},
        }

    def stub(self, name, *args, nodes=None, devices=None):
        return self.torch_spec(
            name, {"run": [binary("stub_trainer"), *[str(arg) for arg in args]]}, nodes, devices
        )

    def submit(self, spec, *args):
        """The id of a job that was submitted and not waited for. `spec`: the text of a job.yaml, or its values."""
        path = (
            self.spec(spec)
            if isinstance(spec, str)
            else os.path.join(self.work, f"{spec['name']}.yaml")
        )
        if not isinstance(spec, str):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(spec, file)  # JSON is YAML
        job = self.output("run", "-d", path, *args).split()[0]
        self.jobs.append(job)
        return job

    def trivial(self):
        """The cluster works: a small job runs to its end."""
        self._count += 1
        name = f"trivial-{self._count}"
        text = f'name: {name}\nengine: command\nlaunch: {{run: "true"}}\nresources: {{devices: 1, type: cpu}}\n'
        self.muster("run", "-q", self.spec(text), "--timeout", "60s", code=0)
        return name

    def show(self, job, check=True):
        done = self.muster("show", job, "-o", "json", code=0 if check else None)
        return json.loads(done.out) if done.code == 0 else None

    def wait(self, job, timeout=DEADLINE, code=0):
        end = time.monotonic() + timeout
        while True:
            done = self.muster("wait", job, "--timeout", f"{int(timeout)}s", within=timeout + 30)
            if done.code != 13 or time.monotonic() > end:
                break
            self._listening(
                self.daemon("controller")
            )  # one that was started without waiting has no endpoint file yet
        if done.code != code:
            raise AssertionError(f"job {job}: exit {done.code}, not {code}\n{self.story(job)}")

    def events(self, job):
        return [json.loads(line) for line in self.output("events", job, "-o", "jsonl").splitlines()]

    def wait_event(self, wanted, target=None, within=DEADLINE):
        """The first event, old or new, that `wanted` says yes to."""
        process = self.popen(
            "events",
            *([target] if target else []),
            "-f",
            "-o",
            "jsonl",
            "--timeout",
            f"{within:.0f}s",
        )
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
        raise AssertionError(
            f"events of {target or 'everything'} ended without the one that was waited for: {seen}\n{rest[1]}\n{self.log_ends()}"
        )

    def story(self, job):
        """For a failure's message: what the job did, and what the daemons logged last."""
        events = self.muster("events", job)
        text = "\n".join((events.out + events.err).splitlines()[-25:])
        return "\n".join([text, self.muster("why", job).out, self.log_ends()])

    # ---- what is there

    def processes(self):
        """Those that carry this cluster's tag: workers, ranks, and what they started."""
        return [
            process for cluster_id in self._cluster_ids for process in carriers(cluster_id + "/")
        ]

    def workers(self):
        found = [
            p
            for p in self.processes()
            if "MUSTER_RANK" not in p.env
            and p.argv
            and os.path.basename(p.argv[0]) == "muster-worker"
        ]
        pids = {p.pid for p in found}
        return [p for p in found if p.parent not in pids]  # not a rank between fork and exec

    def rank_processes(self):
        found = [p for p in self.processes() if "MUSTER_RANK" in p.env]
        pids = {p.pid for p in found}
        return [p for p in found if p.parent not in pids]  # not what a rank started

    def ranks(self):
        """Who the ranks are: {rank: (attempt, pid, start time)} of the processes that live now."""
        return {
            int(p.env["MUSTER_RANK"]): (int(p.env["MUSTER_ATTEMPT"]), p.pid, p.start)
            for p in self.rank_processes()
        }

    # ---- the end

    def end_daemons(self):
        """Agents first: what they have to clean up is known to the controller then."""
        for daemon in sorted(
            reversed(self.daemons), key=lambda daemon: daemon.name == "controller"
        ):
            if not daemon.close():
                self._left.append(f"{daemon.name} does not end by SIGTERM")
            if report := daemon.sanitizer_report():
                self._left.append(f"a report of {daemon.name}: {report}")
        self.daemons.clear()

    def _end(self):
        """Ends everything; what should not have been there any more when all had ended in order."""
        for item in self.closing:
            item.close()
        try:
            self._read_endpoint()
            if any(daemon.alive() and daemon.name == "controller" for daemon in self.daemons):
                self._end_jobs()
        except (AssertionError, subprocess.SubprocessError, OSError, ValueError, KeyError) as error:
            self._left.append(f"{type(error).__name__}: {error}")
        self.end_daemons()
        for worker in self.workers():  # one that has told its last has still to exit
            wait_gone(worker, LAST_MOMENT)
        for process in self.processes():
            self._left.append(
                f"process {process.pid} ({' '.join(process.argv)[:80]}) of {process.env['MUSTER_PROCESS_TAG']}"
            )
            kill_process(process)
            wait_gone(process)
        for pid, _ in processes_of(self.dir):
            wait_pid(pid, LAST_MOMENT)
        for pid, command in processes_of(self.dir):
            self._left.append(f"process {pid} ({command})")
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
            self._left += ["socket " + line.split()[-1] for line in file if self.dir in line]
        for job in self.jobs:
            for base in ("", "unified/"):
                self._left += [
                    "control group " + path
                    for path in glob.glob(f"/sys/fs/cgroup/{base}muster-*/*{job}*")
                ]
        if self._ports is not None:
            self._ports.close()
        if self.keep:
            print("kept:", self.dir, file=sys.stderr)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)
        return self._left

    def _end_jobs(self):
        listed = self.muster("ps", "-o", "name")
        for job in listed.out.split() if listed.code == 0 else self.jobs:
            self.muster("cancel", job)
            self.muster("wait", job, "--timeout", f"{int(DEADLINE / 2)}s")
