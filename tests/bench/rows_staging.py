"""What fetching an input costs: processor time of the agent and its rclone, beside rclone alone with the same flags, in turns. From a WebDAV end whose own
processor time does not count."""

import contextlib
import json
import os
import resource
import shutil
import statistics
import subprocess

from cluster import Cluster
from measuring import interval, read
from store_ends import serve_rclone

GIB = 0.5  # of one fetch
FLAGS = ("--multi-thread-streams", "0", "--transfers", "8", "--use-server-modtime", "--ignore-times", "--retries", "1", "--no-traverse")
TICKS = os.sysconf("SC_CLK_TCK")


class Cleanups:
    """What the tests' ends want of a test."""

    def __init__(self, stack):
        self.addCleanup = stack.callback


def agent_seconds(pid):
    """Of the process, and of its children that have ended."""
    fields = read(f"/proc/{pid}/stat").rsplit(b")", 1)[1].split()
    return sum(map(int, fields[11:15])) / TICKS


def by_muster(cluster, agent, spec):
    before = agent_seconds(agent.process.pid)
    job = cluster.output("run", "-d", spec).split()[0]
    cluster.jobs.append(job)
    cluster.wait(job)
    took = agent_seconds(agent.process.pid) - before
    shutil.rmtree(cluster.path("inputs"))  # the next one fetches again
    return took / GIB


def by_rclone(address, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    subprocess.run(
        ["rclone", "copy", "--config", "/dev/null", *FLAGS, f":webdav,url='http://{address}':data", folder],
        env=environment, check=True, capture_output=True)  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    shutil.rmtree(folder)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / GIB


def staging(options, report, wanted):
    if not wanted("stage-cpu"):
        return
    if shutil.which("rclone") is None:
        return report.absent("stage-cpu", "there is no rclone")
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(contextlib.closing(Cluster()))
        os.makedirs(cluster.path("store", "data"))
        with open(cluster.path("store", "data", "tokens.bin"), "wb") as file:
            for _ in range(int(GIB * 1024)):
                file.write(os.urandom(1 << 20))
        port = serve_rclone(Cleanups(stack), "webdav", cluster.path("store"))
        cluster.controller("--inputs-root", cluster.path("inputs"))
        agent = cluster.agent("n0", devices=1)
        cluster.muster("store", "add", "dav", "webdav://end", "--endpoint", f"http://127.0.0.1:{port}", code=0)
        spec = cluster.spec(
            json.dumps(
                {"name": "stage", "engine": "command", "launch": {"run": ["true", "${inputs.data}"]}, "inputs": {"data": "webdav://end/data"},
                 "resources": {"nodes": 1, "devices": 1, "type": "cpu"}}))  # fmt: skip
        ours, alone = [], []
        for _ in range(options.repeats(10)):
            alone.append(by_rclone(f"127.0.0.1:{port}", cluster.path("alone")))
            ours.append(by_muster(cluster, agent, spec))
        above = [mine - plain for mine, plain in zip(ours, alone)]
        between = interval(above)
        text = f"{statistics.median(above):+.2f} s a GiB beside rclone" + (
            f" (95 %: {between[0]:+.2f} to {between[1]:+.2f})" if between else ""
        )
        report.add("stage-cpu-rclone", alone, "s/GiB", "-", None)
        report.add("stage-cpu", ours, "s/GiB", text, None)
