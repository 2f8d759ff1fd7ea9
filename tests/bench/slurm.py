"""A private Slurm: munged, slurmctld and one slurmd in a directory of their own, with a key made there and ports that were free.

Set up as Slurm's guide for high throughput has it: no accounting database, no job accounting, no cgroups, completing jobs not waited for,
finished jobs soon forgotten, errors only in the logs, the simplest scheduler, and a look at the queue each second (the shortest interval
there is; the default lets batch jobs wait 3 s).  The only record of ended jobs is a line in a text file, by which their end is seen without asking.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from measuring import PATIENCE, now, pause, read

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "sinfo", "squeue")
SCHEDULER = "batch_sched_delay=0,sched_interval=1,default_queue_depth=10000"
CONFIGURATION = """
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={dir}/munge.sock
SlurmctldPort={controller_port}
SlurmdPort={node_port}
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.log
SlurmctldDebug=error
SlurmdDebug=error
MpiDefault=none
SwitchType=switch/none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
PriorityType=priority/basic
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters={scheduler}
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc={dir}/ended
CompleteWait=0
EpilogMsgTime=0
MinJobAge=2
KillWait=1
ReturnToService=2
MaxJobCount=100000
MaxArraySize=100001
SlurmdParameters=config_overrides
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=node Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """Why there can be no Slurm here; empty: there can."""
    if gone := [name for name in PROGRAMS if not find(name)]:
        return f"{', '.join(gone)} not installed (deploy/install-packages bench)"
    return "" if os.getuid() == 0 else "slurmd needs root"


def find(name):
    return shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin")


def free_ports(count):
    with contextlib.ExitStack() as stack:
        taken = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in taken:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in taken]


class Slurm:
    def __init__(self, options, cpus):
        self.options, self.cpus, self.daemons, self.ended = options, cpus, [], 0
        self.dir = tempfile.mkdtemp(prefix="muster-bench-slurm-")
        self.env = {
            k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH", "MUSTER_"))
        } | {"SLURM_CONF": os.path.join(self.dir, "slurm.conf")}

    def path(self, name):
        return os.path.join(self.dir, name)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        for name in ("state", "spool"):
            os.mkdir(self.path(name))
        with open(os.open(self.path("munge.key"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(os.urandom(1024))
        host, (controller, node) = socket.gethostname().split(".")[0], free_ports(2)
        with open(self.path("slurm.conf"), "w", encoding="ascii") as file:
            file.write(
                CONFIGURATION.format(
                    host=host,
                    dir=self.dir,
                    cpus=self.cpus,
                    scheduler=SCHEDULER,
                    controller_port=controller,
                    node_port=node,
                )
            )
        # The interpreter of this script is /bin/true itself: a task is one exec, without a shell.
        with open(
            os.open(self.path("true"), os.O_WRONLY | os.O_CREAT, 0o700), "w", encoding="ascii"
        ) as file:
            file.write("#!/bin/true\n")
        # --force: the directory is closed to other users, which munged would rather not have.
        files = {
            "socket": "sock",
            "key-file": "key",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        self.daemon(
            "munged",
            "--foreground",
            "--force",
            *(f"--{kind}={self.path('munge.' + name)}" for kind, name in files.items()),
        )
        self.until("munged listens", lambda: os.path.exists(self.path("munge.sock")))
        self.daemon("slurmctld", "-D", "-c")
        self.daemon("slurmd", "-D", "-N", "node")
        self.until(
            "the node is idle", lambda: self.ask("sinfo", "-h", "-o", "%T").startswith("idle")
        )

    def daemon(self, name, *args):
        with open(self.path("daemons.log"), "ab") as log:
            self.daemons.append(
                subprocess.Popen(
                    [find(name), *args],
                    env=self.env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def until(self, what, holds):
        deadline = time.monotonic() + PATIENCE
        while not holds():
            dead = [process.args[0] for process in self.daemons if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise RuntimeError(
                    f"waiting until {what} in Slurm: {'ended: ' + ', '.join(dead) if dead else 'time is up'}; {self.log_end()}"
                )
            pause(0.02)

    def log_end(self):
        return "; ".join(
            read(self.path(name))[-700:].decode(errors="replace")
            for name in ("daemons.log", "slurmctld.log", "slurmd.log")
        )

    def ask(self, *argv):
        return subprocess.run(
            argv, env=self.env, capture_output=True, text=True, timeout=PATIENCE
        ).stdout

    def array(self, tasks):
        """Seconds from before sbatch of an array of /bin/true to the end of its last task."""
        began = now()
        submit = [
            "sbatch",
            "--parsable",
            f"--array=0-{tasks - 1}",
            "-o",
            "/dev/null",
            "-D",
            "/",
            self.path("true"),
        ]
        subprocess.run(submit, env=self.env, check=True, capture_output=True, timeout=PATIENCE)
        lines, deadline = b"", time.monotonic() + 10 * PATIENCE
        with open(self.path("ended"), "rb") as record:
            record.seek(self.ended)
            while lines.count(b"\n") < tasks:
                if time.monotonic() > deadline:
                    raise RuntimeError(
                        f"Slurm: {lines.count(b'JobState=')} of {tasks} tasks ended; {self.log_end()}"
                    )
                pause(0.005)
                lines += record.read()
            took = (now() - began) / 1e9
            self.ended = record.tell()
        if (well := lines.count(b"JobState=COMPLETED")) != tasks:
            raise RuntimeError(f"Slurm: {well} of {tasks} tasks completed; {self.log_end()}")
        self.rest()
        return took

    def rest(self):
        """Until nothing runs or waits, so that the next figure is not of this one's end."""
        self.until(
            "it is idle",
            lambda: not self.ask("squeue", "-h")
            and self.ask("sinfo", "-h", "-o", "%T").startswith("idle"),
        )

    def __exit__(self, *_):
        if len(self.daemons) > 1:
            try:
                self.ask("scancel", "--signal=KILL", "--state=running")
                self.ask("scancel", "--state=pending")
            except subprocess.SubprocessError as error:
                print(f"ending Slurm's jobs: {error}", file=sys.stderr)
        for process in reversed(
            self.daemons
        ):  # slurmd says goodbye to slurmctld, both by way of munged
            process.terminate()
            try:
                process.wait(PATIENCE / 4)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in filter(
            str.isdigit, os.listdir("/proc")
        ):  # step daemons and tasks, after a failure: they have the configuration's name from their parents
            if (
                self.env["SLURM_CONF"].encode() in read(f"/proc/{pid}/environ")
                and int(pid) != os.getpid()
            ):
                os.kill(int(pid), signal.SIGKILL)
        if self.options.keep:
            print("kept:", self.dir, file=sys.stderr)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)
