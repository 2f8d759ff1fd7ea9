"""Launches and restarts, beside the posix_spawn floor and beside the launchers that others use; and how soon a rank's end is durable."""

import contextlib
import os
import signal
import statistics
import subprocess

import peers
from measuring import FLOOR_SOUND, MS, Board, floor, now, percentile, processes, ranks_of, read
from watched import WatchedCluster

ATTEMPTS_PER_JOB = 4  # a job that makes no progress is given up after five
LAUNCHERS = {8: (peers.Torchrun,), 64: (peers.Srun, peers.Mpirun), 256: (peers.Srun,)}


def opened(stack, options, report, rows):
    """{row: launcher, ready}; of one kind there is one.  What is not installed gets its row at once."""
    ready, by_kind = {}, {}
    for row, kind in rows.items():
        if why := kind.missing():
            report.absent(row, why)
            continue
        if kind not in by_kind:
            try:
                by_kind[kind] = stack.enter_context(kind(options))
            except (RuntimeError, OSError) as error:
                report.absent(row, f"{kind.name} does not start: {error}")
                continue
        ready[row] = by_kind[kind]
    return ready


@contextlib.contextmanager
def dropped_if_it_fails(report, references, row):
    """A launcher's trouble costs its own row only."""
    try:
        yield
    except (RuntimeError, OSError, subprocess.SubprocessError, IndexError) as error:
        launcher = references.pop(row)[0]
        for process, _ in list(launcher.running):
            launcher.end(process)
        report.absent(row, f"{error}; {launcher.log_end()}")


def compared(report, name, took, ours, floors):
    """A launcher's row: its time against the floor, and muster's against its own."""
    share = statistics.median(mine / theirs for mine, theirs in zip(ours, took))
    report.add(
        name,
        took,
        "ms",
        f"muster takes {share:.2f} of it",
        None,
        floors=floors,
        ratios=[t / f for t, f in zip(took, floors)],
        muster_share=share,
    )


def launch(options, report, wanted):
    counts = [ranks for ranks in (1, 8, 64, 256) if wanted(f"launch-{ranks}")]
    if not counts:
        return
    others = {
        f"launch-{ranks}-{kind.name}": kind
        for ranks in counts
        for kind in LAUNCHERS.get(ranks, ())
        if wanted(f"launch-{ranks}-{kind.name}")
    }
    with WatchedCluster(options, 1, 256) as cluster, contextlib.ExitStack() as stack:
        others = opened(stack, options, report, others)
        for ranks in counts:
            stamps = os.path.join(cluster.dir, "stamps")
            board = Board(stamps, ranks)
            spec = cluster.stub_file(f"launch-{ranks}", ranks, ["--block", "--stamp", stamps])
            references = {
                row: (launcher, [])
                for row, launcher in others.items()
                if row.startswith(f"launch-{ranks}-")
            }
            took, floors = [], []
            cluster.syncs = []
            for repeat in range(-1, options.repeats(30)):  # the first only warms
                board.clear()
                floors.append(floor(ranks))
                cluster.sync(3)
                began, job = cluster.launch(spec)
                took.append((board.last_after(began) - began) / MS)
                cluster.watcher.wait("node-started", job)
                cluster.cancel(job)
                for row, (launcher, theirs) in list(references.items()):
                    with dropped_if_it_fails(report, references, row):
                        board.clear()
                        began, process = launcher.start(ranks, stamps)
                        theirs.append((board.last_after(began) - began) / MS)
                        launcher.end(process)
            took, floors = took[1:], floors[1:]
            ratios = [t / f for t, f in zip(took, floors)]
            goal, met = "-", None
            if ranks >= 64:
                met = statistics.median(ratios) <= 2.5
                sound = statistics.median(floors) / ranks <= FLOOR_SOUND
                goal = (
                    "ratio <= 2.5"
                    if sound or not met
                    else "ratio <= 2.5 (no verdict: load; the floor is inflated: --realtime)"
                )
                met = met if sound or not met else None
            report.add(
                f"launch-{ranks}",
                took,
                "ms",
                goal,
                met,
                syncs=cluster.syncs,
                floors=floors,
                ratios=ratios,
            )
            for row, (_, theirs) in references.items():
                compared(report, row, theirs[1:], took, floors)


def peer_restarts(launcher, times, ranks, stamps, took, floors):
    """As many restarts of one start of it: SIGKILL for one rank, until the last of all is in main() again."""
    board = Board(stamps, ranks)
    began, process = launcher.start(ranks, stamps)
    board.last_after(began)
    for repeat in range(times):
        floors.append(floor(ranks))
        board.clear()
        stubs = [
            pid
            for pid in processes(stamps)
            if b"peer_stub" in read(f"/proc/{pid}/cmdline").split(b"\0")[0]
        ]
        killed = now()
        os.kill(stubs[repeat % len(stubs)], signal.SIGKILL)
        took.append((board.last_after(killed) - killed) / MS)
    launcher.end(process)


def restart(options, report, wanted):
    grace = 1000
    rows = [
        ("restart-8", 8, 30, [], 100),
        ("restart-64", 64, 30, [], 400),
        ("restart-8-ignoring-sigterm", 8, 8, ["--ignore-sigterm"], grace + 100),
    ]
    rows = [row for row in rows if wanted(row[0]) or wanted("killed-to-durable")]
    if not rows:
        return
    others = {f"restart-8-{kind.name}": kind for kind in (peers.Torchrun, peers.TorchrunTwoAgents)}
    others = {
        row: kind for row, kind in others.items() if rows[0][0] == "restart-8" and wanted(row)
    }
    with WatchedCluster(options, 2, 32) as cluster, contextlib.ExitStack() as stack:
        others = opened(stack, options, report, others)
        for name, ranks, repeats, args, goal in rows:
            stamps = os.path.join(cluster.dir, "stamps")
            board = Board(stamps, ranks)
            spec = cluster.stub_file(
                name, ranks, ["--block", "--stamp", stamps, *args], nodes=2, stop_grace="1s"
            )
            references = (
                {row: (launcher, [], []) for row, launcher in others.items()}
                if name == "restart-8"
                else {}
            )
            took, floors, durable, job, attempt = [], [], [], None, 0
            cluster.syncs = []
            for repeat in range(options.repeats(repeats)):
                if job is None:
                    # In turns of a few restarts: a launcher that looks at its ranks every 10 ms would cost muster's ranks the cores.
                    for row, (launcher, theirs, under) in list(references.items()):
                        if len(theirs) < options.repeats(repeats) // launcher.agents:
                            with dropped_if_it_fails(report, references, row):
                                peer_restarts(
                                    launcher,
                                    min(ATTEMPTS_PER_JOB, options.repeats(repeats)),
                                    ranks,
                                    stamps + "-peer",
                                    theirs,
                                    under,
                                )
                    began, job = cluster.launch(spec)
                    board.last_after(began)
                    attempt = 1
                cluster.watcher.wait("node-started", job, attempt, count=2)
                floors.append(floor(ranks))
                cluster.sync(3)
                victim, _ = ranks_of(job)[repeat % ranks]
                killed = now()
                os.kill(victim, signal.SIGKILL)
                took.append((board.last_after(killed) - killed) / MS)
                durable.append((cluster.watcher.wait("rank-exited", job, attempt) - killed) / MS)
                attempt += 1
                if attempt > ATTEMPTS_PER_JOB:
                    cluster.cancel(job)
                    job = None
            if job:
                cluster.cancel(job)
            ratios = [t / f for t, f in zip(took, floors)]
            report.add(
                name,
                took,
                "ms",
                f"median <= {goal} ms",
                statistics.median(took) <= goal,
                syncs=cluster.syncs,
                floors=floors,
                ratios=ratios,
            )
            if name == "restart-8":
                bound = 5 + percentile(cluster.syncs, 0.99)
                report.add(
                    "killed-to-durable",
                    durable,
                    "ms",
                    f"p99 <= {bound:.1f} ms",
                    percentile(durable, 0.99) <= bound,
                    syncs=cluster.syncs,
                )
            for row, (_, theirs, under) in references.items():
                compared(report, row, theirs, took, under)


def exit_to_durable(options, report, wanted):
    """A rank's own exit with status 7: from its last trace line (two writes before its _exit) to the event at a Watch client."""
    if not wanted("exit-to-durable"):
        return
    with WatchedCluster(options, 1, 8) as cluster:
        took = []
        spec = cluster.stub_file(
            "exits",
            1,
            [
                "--steps",
                "3",
                "--step-ms",
                "20",
                "--no-barrier",
                "--exit-code-at",
                "2:7",
                "--trace",
                cluster.dir,
            ],
        )
        trace = os.path.join(cluster.dir, "rank-0.trace")
        for repeat in range(options.repeats(60)):
            _, job = cluster.launch(spec)
            cluster.watcher.wait("job-ended", job)
            moments = [int(line.split()[2]) for line in read(trace).decode().splitlines()]
            os.remove(trace)
            for attempt, last in enumerate(moments, 1):  # the same user error twice ends the job
                took.append((cluster.watcher.wait("rank-exited", job, attempt) - last) / MS)
            cluster.sync(5)
        bound = 5 + percentile(cluster.syncs, 0.99)
        report.add(
            "exit-to-durable",
            took,
            "ms",
            f"p99 <= {bound:.1f} ms",
            percentile(took, 0.99) <= bound,
            syncs=cluster.syncs,
        )
