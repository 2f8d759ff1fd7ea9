"""Launchers that others use, each started the way that is quickest here: start(ranks, stamps) gives (moment before the exec, process), end(process) stops it.

Each starts peer_stub: the stub trainer, which also knows its rank by the variables of these launchers.
"""

import os
import shutil
import signal
import subprocess
import tempfile

import slurm
from measuring import PATIENCE, now, pause, processes, read, tool

PYTHON = "/usr/bin/python3"


class Peer:
    def __init__(self, options):
        self.options = options
        self.dir = tempfile.mkdtemp(prefix="muster-bench-peer-")
        self.env = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("SLURM", "OMPI", "PMIX", "MUSTER_"))
        } | {"TMPDIR": self.dir}
        self.running = []

    def __enter__(self):
        return self

    def spawn(self, stamps, argv):
        with open(os.path.join(self.dir, "log"), "ab") as log:
            began = now()
            process = subprocess.Popen(
                argv,
                env=self.env,
                cwd=self.dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.running.append((process, stamps))
        return began, process

    def stub(self, stamps):
        return [tool("peer_stub"), "--block", "--stamp", stamps]

    def end(self, process):
        """Asks it; what hangs is killed: mpirun does now and then when many ranks end at once."""
        stamps = next(stamps for one, stamps in self.running if one is process)
        process.terminate()
        try:
            process.wait(PATIENCE / 6)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pid in processes(stamps):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while processes(stamps):
            pause(0.005)
        self.running = [(one, board) for one, board in self.running if one is not process]

    def log_end(self):
        return read(os.path.join(self.dir, "log"))[-1000:].decode(errors="replace")

    def __exit__(self, *_):
        for process, _ in list(self.running):
            self.end(process)
        shutil.rmtree(self.dir, ignore_errors=True)


class Srun(Peer):
    """srun of a job of its own, allocation and all, as `muster run` is."""

    name = "srun"

    @staticmethod
    def missing():
        return slurm.missing()

    def __init__(self, options):
        super().__init__(options)
        self.slurm = slurm.Slurm(options, 256)

    def __enter__(self):
        self.slurm.__enter__()
        self.env = self.slurm.env
        return self

    def start(self, ranks, stamps):
        return self.spawn(stamps, ["srun", f"-n{ranks}", "--overcommit", *self.stub(stamps)])

    def end(self, process):
        super().end(process)
        self.slurm.rest()

    def __exit__(self, *_):
        super().__exit__()
        self.slurm.__exit__()


class Mpirun(Peer):
    name = "mpirun"

    @staticmethod
    def missing():
        return (
            ""
            if shutil.which("mpirun")
            else "mpirun is not installed (deploy/install-packages bench)"
        )

    def start(self, ranks, stamps):
        root = ["--allow-run-as-root"] if os.getuid() == 0 else []
        return self.spawn(
            stamps,
            [
                "mpirun",
                *root,
                "--oversubscribe",
                "--bind-to",
                "none",
                "-n",
                str(ranks),
                *self.stub(stamps),
            ],
        )


class Torchrun(Peer):
    """One agent, or two that meet over a store on loopback; looks at its ranks every 10 ms (by default: every 5 s)."""

    name = "torchrun"
    agents = 1

    @staticmethod
    def missing():
        found = (
            subprocess.run(
                [
                    PYTHON,
                    "-c",
                    "import importlib.util as u; raise SystemExit(u.find_spec('torch') is None)",
                ],
                check=False,
            ).returncode
            == 0
        )
        return "" if found else "python3-torch is not installed (deploy/install-packages run)"

    def start(self, ranks, stamps):
        port = slurm.free_ports(1)[0]
        meeting = ["--master_addr", "127.0.0.1", "--master_port", str(port)]
        if self.agents > 1:
            meeting = [
                "--rdzv_backend",
                "c10d",
                "--rdzv_endpoint",
                f"127.0.0.1:{port}",
                "--rdzv_id",
                "bench",
            ]
        first = None
        for agent in range(self.agents):
            which = (
                ["--node_rank", str(agent)]
                if self.agents == 1
                else ["--rdzv_conf", f"is_host={1 - agent}"]
            )
            started = self.spawn(stamps, [
                PYTHON, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "torchrun_start.py"), "--nnodes", str(self.agents), *which, *meeting,
                "--nproc_per_node", str(ranks // self.agents), "--monitor_interval", "0.01", "--max_restarts", "1000", "--log_dir", self.dir,
                "--no_python", *self.stub(stamps)])  # fmt: skip
            first = first or started
        return first

    def end(self, process):
        for other in [one for one, _ in self.running if one is not process]:
            other.terminate()
        super().end(process)


class TorchrunTwoAgents(Torchrun):
    name = "torchrun-2-agents"
    agents = 2
