"""How many jobs that do nothing end in a second: beside Slurm, and with a hundred thousand finished ones behind the controller."""

import contextlib
import os
import sqlite3
import statistics
import sys
import time

import slurm
from measuring import FLOOR_RANKS, PATIENCE, disturbed, floor, judge_ratio, pause, read
from watched import WatchedCluster

SLURM_TASKS = 640  # of one array: ten times its 64 slots, as its scheduler looks once a second
CHUNK = 10_000  # jobs of one reading while the history grows
STILL = 6.0  # s without a move after which jobs are taken for left behind
ARCHIVE_AFTER = (
    "1s"  # by default finished jobs stay at hand for 10 minutes: most of a history is archived
)


def run_jobs(cluster, jobs, slots, tag):
    """Jobs a second, from the first submission to the last end seen, by an API client that keeps as many open as there are slots."""
    helper = cluster.start_helper("rate", str(jobs), str(slots), tag)
    text, _ = helper.communicate(timeout=60 * PATIENCE)
    if not text.startswith("total"):
        raise RuntimeError(
            f"bench_client rate said {text!r}; the end of the daemons' log:\n{cluster.log_ends()}"
        )
    _, seconds, succeeded = text.split()
    if int(succeeded) != jobs:
        raise RuntimeError(f"{succeeded} of {jobs} trivial jobs succeeded")
    return jobs / float(seconds)


def rate(options, report, wanted):
    """In turns with Slurm, each with the same number of slots."""
    for slots, suffix, goal in ((64, "", 10), (256, "-256", None)):
        name = "trivial-jobs" + suffix
        if not wanted(name):
            continue
        jobs, tasks = (200, 128) if options.quick else (1000, SLURM_TASKS)
        why = slurm.missing()
        with WatchedCluster(options, 1, slots) as cluster, contextlib.ExitStack() as stack:
            reference = None
            if not why:
                try:
                    reference = stack.enter_context(slurm.Slurm(options, slots))
                except (RuntimeError, OSError) as error:
                    why = f"Slurm does not start: {error}"
            rates, theirs, floors = [], [], []
            for repeat in range(-1, options.repeats(12)):  # the first only warms
                cluster.sync(20)
                floors.append(floor(FLOOR_RANKS))
                if reference:
                    theirs.append(tasks / reference.array(tasks if repeat >= 0 else slots))
                rates.append(
                    run_jobs(cluster, jobs if repeat >= 0 else slots, slots, f"t{repeat + 1}")
                )
            rates, theirs, floors = rates[1:], theirs[1:], floors[1:]
        if not reference:
            report.absent(name + "-slurm", why)
            report.add(
                name,
                rates,
                "jobs/s",
                f">= {goal} x Slurm (not measured: absolute figure)" if goal else "-",
                None,
                syncs=cluster.syncs,
                jobs_a_run=jobs,
            )
            continue
        ratios = [ours / slurms for ours, slurms in zip(rates, theirs)]
        met, text = judge_ratio(ratios, goal or 0, disturbed(floors, FLOOR_RANKS))
        goal_text = f">= {goal} x Slurm: {text}" if goal else f"x Slurm: {text}"
        report.add(
            name,
            rates,
            "jobs/s",
            goal_text,
            met if goal else None,
            syncs=cluster.syncs,
            jobs_a_run=jobs,
            slurm_ratios=ratios,
        )
        report.add(
            name + "-slurm",
            theirs,
            "jobs/s",
            "-",
            None,
            tasks_a_run=tasks,
            scheduler=slurm.SCHEDULER,
        )


# ---------------------------------------------------------------- after many finished jobs


def archived(cluster):
    """Finished jobs that have moved to the journal's archive."""
    path = os.path.join(cluster.dir, "controller", "journal", "journal.db")
    with contextlib.closing(
        sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=PATIENCE)
    ) as database:
        return database.execute("SELECT count(*) FROM archive").fetchone()[0]


def rest(cluster, finished):
    """Until all of them are archived, so that this is no part of what is measured next.  How many are not, though nothing has moved for a while."""
    moved, moved_at = archived(cluster), time.monotonic()
    while moved < finished and time.monotonic() < moved_at + STILL:
        pause(0.1)
        if (more := archived(cluster)) != moved:
            moved, moved_at = more, time.monotonic()
    return finished - moved


def unreaped(pid):
    """Children of that process that have ended and were not waited for."""
    stats = [
        read(f"/proc/{one}/stat").rsplit(b")", 1)[-1].split()
        for one in os.listdir("/proc")
        if one.isdigit()
    ]
    return sum(fields[:2] == [b"Z", str(pid).encode()] for fields in stats)


def cpu_ms(pid):
    """Of all its threads, ended ones too; its unit is a clock tick of 10 ms."""
    fields = read(f"/proc/{pid}/stat").rsplit(b")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def rss_mib(pid):
    status = dict(line.split(":", 1) for line in read(f"/proc/{pid}/status").decode().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024


def tree_mib(path):
    return (
        sum(
            os.path.getsize(os.path.join(folder, name))
            for folder, _, names in os.walk(path)
            for name in names
        )
        / 2**20
    )


class Side:
    """One cluster, and what its daemons have spent a job."""

    def __init__(self, cluster):
        self.cluster, self.finished, self.runs, self.stuck = cluster, 0, 0, 0

    def daemons(self):
        return {
            "controller": self.cluster.pid("controller"),
            "agent": self.cluster.pid(self.cluster.nodes[0]),
        }

    def run(self, jobs):
        """(jobs a second, {daemon: ms of CPU a job})"""
        before = {name: cpu_ms(pid) for name, pid in self.daemons().items()}
        self.runs += 1
        a_second = run_jobs(self.cluster, jobs, 64, f"r{self.runs}")
        self.finished += jobs
        self.stuck += rest(self.cluster, self.finished - self.stuck)
        return a_second, {
            name: (cpu_ms(pid) - before[name]) / jobs for name, pid in self.daemons().items()
        }


def grow(side, finished):
    """What each chunk was like."""
    trend = []
    while side.finished < finished:
        a_second, spent = side.run(min(CHUNK, finished - side.finished))
        now = {
            "jobs": side.finished,
            "jobs_a_second": a_second,
            "cpu_ms_a_job": spent,
            "rss_mib": {name: rss_mib(pid) for name, pid in side.daemons().items()},
        }
        trend.append(now)
        parts = [
            f"{name} {spent[name]:.2f} ms of CPU a job, {now['rss_mib'][name]:.0f} MiB"
            for name in spent
        ]
        print(
            f"  {side.finished} jobs have ended, {a_second:.0f} a second; {'; '.join(parts)}",
            file=sys.stderr,
            flush=True,
        )
    return trend


def sizes(side):
    state = os.path.join(side.cluster.dir, "controller")
    out = {f"{name}-rss": rss_mib(pid) for name, pid in side.daemons().items()}
    journal = os.path.join(state, "journal")
    out["journal"] = (
        sum(
            os.path.getsize(os.path.join(journal, name))
            for name in os.listdir(journal)
            if name.startswith("journal.db")
        )
        / 2**20
    )
    out["controller-dir"] = (
        tree_mib(state) - tree_mib(journal) + out["journal"]
    )  # without the ballast
    out["agent-dir"] = tree_mib(side.cluster.agent_dir(side.cluster.nodes[0]))
    return out


def after_many(options, report, wanted):
    """In turns with a fresh controller and agent each time."""
    name = f"trivial-jobs-after-{options.finished}"
    if not wanted(name):
        return
    if not options.all:
        report.absent(name, "takes too long without --all")
        return
    jobs = 200 if options.quick else 1000
    extra = ["--archive-after", ARCHIVE_AFTER]
    with WatchedCluster(options, 1, 64, extra) as behind:
        old = Side(behind)
        old.run(jobs)
        small = sizes(old)
        trend = grow(old, options.finished)
        big = sizes(old)
        rates, floors, cpu = {"old": [], "fresh": []}, [], {"old": [], "fresh": []}
        for repeat in range(options.repeats(12)):
            with WatchedCluster(options, 1, 64, extra) as young:
                fresh = Side(young)
                fresh.run(
                    jobs
                )  # a cluster's first jobs are slow: caches, first pages of everything
                old.run(64)
                floors.append(floor(FLOOR_RANKS))
                behind.sync(20)
                order = [("old", old), ("fresh", fresh)]
                for which, side in order if repeat % 2 else reversed(order):
                    a_second, spent = side.run(jobs)
                    rates[which].append(a_second)
                    cpu[which].append(spent)
        runs = os.listdir(os.path.join(behind.agent_dir(behind.nodes[0]), "runs"))
        left = {
            "not archived": old.stuck,
            "run directories": len(runs),
            "unreaped workers": unreaped(old.daemons()["agent"]),
        }
    ratios = [after / before for after, before in zip(rates["old"], rates["fresh"])]
    met, text = judge_ratio(ratios, 0.9, disturbed(floors, FLOOR_RANKS))
    report.add(
        name,
        rates["old"],
        "jobs/s",
        f">= 0.9 x a fresh controller: {text}",
        met,
        syncs=behind.syncs,
        jobs_a_run=jobs,
        ratios_to_fresh=ratios,
        trend=trend,
    )
    report.add(name + "-fresh", rates["fresh"], "jobs/s", "-", None)
    for daemon in cpu["old"][0]:
        spent = {which: [one[daemon] for one in runs] for which, runs in cpu.items()}
        share = statistics.median(spent["old"]) / max(statistics.median(spent["fresh"]), 1e-9)
        report.add(
            f"{name}-{daemon}-cpu",
            spent["old"],
            "ms/job",
            f"x {share:.2f} of the fresh one's",
            None,
            fresh=spent["fresh"],
        )
    report.add(
        name + "-left-behind",
        [sum(left.values())],
        "",
        "0 " + ", ".join(f"{what} ({count})" for what, count in left.items()),
        not any(left.values()),
        **left,
    )
    for what, mib in big.items():
        report.add(f"{name}-{what}", [mib], "MiB", f"{small[what]:.1f} after {jobs}", None)
