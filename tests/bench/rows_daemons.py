"""Daemons that die and come back, and what they need while nothing happens."""

import os
import statistics
import subprocess

from measuring import MS, now, pause, processes, ranks_of, read, tool
from watched import WatchedCluster, Watcher


def reattach(options, report, wanted):
    agents = 16 if options.quick else 64
    names = [f"controller-killed-{agents}-agents", "controller-down-5s", "agent-killed"]
    if not any(map(wanted, names)):
        return
    with WatchedCluster(options, agents, 1) as cluster:
        began, job = cluster.launch(cluster.stub_file("held", 16, ["--block"], nodes=16))
        cluster.watcher.wait("node-started", job, 1, count=16)
        ranks = ranks_of(job)
        for name, down, repeats in ((names[0], 0, 30), (names[1], 5, 3)):
            attached, listening = [], []
            if not wanted(name):
                continue
            cluster.syncs = []
            for repeat in range(options.repeats(repeats)):
                cluster.sync(3)
                cluster.watcher.close()
                helper = cluster.start_helper("listen", str(agents))
                cluster.kill("controller")
                pause(down)
                started = now()
                cluster.start("controller", wait=False)
                moments = cluster.moments(helper)
                listening.append((moments["listen"] - started) / MS)
                attached.append((moments["attached"] - moments["listen"]) / MS)
                cluster.watcher = Watcher(cluster.endpoint)
            disturbed = sum(ranks_of(job).get(rank) != who for rank, who in ranks.items())
            report.add(name, attached, "ms", "median <= 1000 ms, 0 disturbed", statistics.median(attached) <= 1000 and not disturbed, syncs=cluster.syncs,
                       exec_to_listen_ms=statistics.median(listening), disturbed=disturbed)  # fmt: skip
        if wanted(names[2]):
            took = []
            for repeat in range(options.repeats(30)):
                name = cluster.nodes[repeat % 16]
                helper = cluster.start_helper("back", str(agents))
                cluster.kill(name)
                lost = helper.stdout.readline()
                started = now()
                cluster.start(name)
                took.append((cluster.moments(helper)["attached"] - started) / MS)
                assert lost.startswith("lost")
            disturbed = sum(ranks_of(job).get(rank) != who for rank, who in ranks.items())
            report.add(
                names[2],
                took,
                "ms",
                "median <= 1000 ms, 0 disturbed",
                statistics.median(took) <= 1000 and not disturbed,
                disturbed=disturbed,
            )


def placing(options, report, wanted):
    """The core alone: one batch is what everybody else waits for."""
    if not wanted("placing"):
        return
    nodes, jobs = (500, 1000) if options.quick else (2000, 4000)
    longest, whole = [], []
    for _ in range(options.repeats(30)):
        words = subprocess.run(
            [tool("placing_bench"), str(nodes), str(jobs)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        longest.append(float(words[words.index("longest") + 1]))
        whole.append(float(words[words.index("all") + 1]))
    report.add(
        f"placing-{jobs}-jobs-{nodes}-nodes",
        longest,
        "ms",
        "longest batch: median <= 250 ms",
        statistics.median(longest) <= 250,
        whole_ms=statistics.median(whole),
    )


def resources(options, report, wanted):
    if not wanted("rss-cpu"):
        return
    seconds = 15 if options.quick else 60
    with WatchedCluster(options, 1, 8) as cluster:
        _, job = cluster.launch(
            cluster.stub_file("steps", 8, ["--steps", "1000000", "--step-ms", "1000"])
        )
        cluster.watcher.wait("first-step", job)
        agent = cluster.pid(cluster.nodes[0])
        worker = next(
            p for p in processes(f"/runs/{job}.1") if b"muster-worker" in read(f"/proc/{p}/cmdline")
        )
        watched = {"agent": agent, "controller": cluster.pid("controller"), "worker": worker}

        def on_cpu(pid):
            return sum(
                int(read(f"/proc/{pid}/task/{task}/schedstat").split()[0])
                for task in os.listdir(f"/proc/{pid}/task")
            )

        before = {name: on_cpu(pid) for name, pid in watched.items()}
        began = now()
        pause(seconds)
        goals = {"agent": (30.0, 0.3), "controller": (None, None), "worker": (3.0, None)}
        for name, pid in watched.items():
            share = 100 * (on_cpu(pid) - before[name]) / (now() - began)
            status = dict(
                line.split(":", 1) for line in read(f"/proc/{pid}/status").decode().splitlines()
            )
            sizes = {
                key: int(status[key].split()[0]) / 1024 for key in ("VmRSS", "RssAnon", "RssFile")
            }
            rss, cpu = goals[name]
            report.add(
                f"rss-cpu-{name}-rss",
                [sizes["VmRSS"]],
                "MiB",
                f"<= {rss} MB" if rss else "-",
                sizes["VmRSS"] * 1.048576 <= rss if rss else None,
                **sizes,
            )
            report.add(
                f"rss-cpu-{name}-cpu",
                [share],
                "%core",
                f"<= {cpu} % over {seconds} s" if cpu else "-",
                share <= cpu if cpu else None,
            )
