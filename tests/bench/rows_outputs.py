"""What uploading outputs costs: processor time of the agent and its rclone, beside rclone alone with the same flags; and what a training's steps lose while
its checkpoints are uploaded with a limited rate. In turns each, to a WebDAV end whose own processor time does not count."""

import contextlib
import json
import os
import resource
import shutil
import statistics
import subprocess

from cluster import Cluster, Trace
from measuring import interval, percentile
from rows_staging import Cleanups, agent_seconds
from store_ends import serve_rclone

GIB = 0.5  # of one upload
FLAGS = ("--multi-thread-streams", "0", "--no-check-dest", "--retries", "1")
STEPS, STEP_MS, INTERVAL = 400, 20, 100
SHARD_BYTES = 64 << 20
RATE = "32MiB"


def by_muster(cluster, agent, data):
    before = agent_seconds(agent.process.pid)
    spec = {"name": "upload", "engine": "command", "launch": {"run": ["ln", os.path.join(data, "weights.bin"), "${out}/"]}, "outputs": {"to": "webdav://end/muster"},
            "resources": {"nodes": 1, "devices": 1, "type": "cpu"}}  # fmt: skip
    cluster.wait(cluster.submit(json.dumps(spec)))
    took = agent_seconds(agent.process.pid) - before
    shutil.rmtree(cluster.path("store", "muster"))
    return took / GIB


def by_rclone(cluster, address, data):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        ["rclone", "copy", "--config", "/dev/null", *FLAGS, data, f":webdav,url='http://{address}':alone"],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, check=True, capture_output=True)  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    shutil.rmtree(cluster.path("store", "alone"))
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / GIB


def step_times(cluster, name, outputs):
    """ms between the steps of rank 0, without those that have a save between them."""
    trace = Trace(cluster, name)
    spec = cluster.stub(name, "--steps", STEPS, "--step-ms", STEP_MS, "--save", "${save.dir}", "--save-interval", INTERVAL, "--shard-bytes", SHARD_BYTES,
                        "--trace", trace.path, nodes=1, devices=1)  # fmt: skip
    if outputs:
        spec["outputs"] = {"to": "webdav://end/steps", "rate_limit": RATE}
    job = cluster.submit(spec)
    cluster.wait(job, timeout=300)
    if outputs:
        uploaded = [one for one in cluster.show(job)["checkpoints"] if one.get("uploaded")]
        assert uploaded, cluster.story(job)
        shutil.rmtree(cluster.path("store", "steps"))
    shutil.rmtree(cluster.path("controller", "outputs", job))
    entries = trace.read()
    return [
        (after.at - before.at) / 1e6
        for before, after in zip(entries, entries[1:])
        if before.step % INTERVAL not in (0, INTERVAL - 1)
    ]


def uploading(options, report, wanted):
    if not wanted("upload-cpu") and not wanted("step-uploading"):
        return
    if shutil.which("rclone") is None:
        return report.absent("upload-cpu", "there is no rclone")
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(contextlib.closing(Cluster()))
        os.makedirs(cluster.path("store"))
        data = cluster.path("data")
        os.makedirs(data)
        with open(os.path.join(data, "weights.bin"), "wb") as file:
            for _ in range(int(GIB * 1024)):
                file.write(os.urandom(1 << 20))
        port = serve_rclone(Cleanups(stack), "webdav", cluster.path("store"), "--dir-cache-time", "0")
        cluster.controller()
        agent = cluster.agent("n0", devices=1)
        cluster.muster("store", "add", "dav", "webdav://end", "--endpoint", f"http://127.0.0.1:{port}", code=0)
        if wanted("upload-cpu"):
            ours, alone = [], []
            for _ in range(options.repeats(10)):
                alone.append(by_rclone(cluster, f"127.0.0.1:{port}", data))
                ours.append(by_muster(cluster, agent, data))
            above = [mine - plain for mine, plain in zip(ours, alone)]
            between = interval(above)
            text = f"{statistics.median(above):+.2f} s a GiB beside rclone" + (f" (95 %: {between[0]:+.2f} to {between[1]:+.2f})" if between else "")
            report.add("upload-cpu-rclone", alone, "s/GiB", "-", None)
            report.add("upload-cpu", ours, "s/GiB", text, None)
        if wanted("step-uploading"):
            plain, busy = [], []
            for number in range(options.repeats(3)):
                plain += step_times(cluster, f"plain-{number}", False)
                busy += step_times(cluster, f"busy-{number}", True)
            ratio = percentile(busy, 0.95) / percentile(plain, 0.95)
            report.add("step-alone", plain, "ms", "-", None)
            report.add("step-uploading", busy, "ms", f"p95 {ratio:.3f} x of step-alone (goal 1.05)", ratio <= 1.05)
