"""What TLS costs: launches and restarts with agents and client over TCP, beside the same over the unix socket, in turns."""

import contextlib
import os
import signal
import statistics

from measuring import MS, Board, disturbed, floor, interval, now, ranks_of
from rows_launch import ATTEMPTS_PER_JOB
from watched import WatchedCluster


class TlsCluster(WatchedCluster):
    """Agents and clients call the controller over TLS; only what measures uses the unix socket."""

    def __init__(self, options, nodes, devices):
        super().__init__(options, nodes, devices)
        self.nodes = [f"{name}-tls" for name in self.nodes]  # next to the other cluster's

    def __enter__(self):
        super().__enter__()
        self.env.update(self.over_tcp("bench"))
        return self

    def port_range(self):
        return "30000-31999"  # next to the other cluster's

    def start(self, name, wait=True):
        if name == "controller":
            return self.controller(listen="127.0.0.1:0")
        return self.agent(name, wait=False, tcp=True)


class Side:
    """One of the two clusters, and what was measured with it."""

    def __init__(self, name, cluster):
        self.name, self.cluster = name, cluster
        self.took, self.floors = [], []
        self.job, self.attempt, self.spec = None, 0, None

    def prepare(self, row, ranks, nodes):
        self.took, self.floors = [], []
        self.stamps = os.path.join(self.cluster.dir, f"stamps-{row}")
        self.board = Board(self.stamps, ranks)
        args = ["--block", "--stamp", self.stamps]
        self.spec = self.cluster.stub_file(row, ranks, args, nodes=nodes, stop_grace="1s")

    def launch(self):
        self.board.clear()
        began, self.job = self.cluster.launch(self.spec)
        moment = self.board.last_after(began)
        self.attempt = 1
        return (moment - began) / MS

    def end(self):
        if self.job:
            self.cluster.cancel(self.job)
        self.job = None

    def launch_once(self, ranks):
        self.floors.append(floor(ranks))
        self.took.append(self.launch())
        self.cluster.watcher.wait("node-started", self.job)
        self.end()

    def restart_once(self, ranks, repeat):
        if self.job is None:
            self.launch()
        self.cluster.watcher.wait("node-started", self.job, self.attempt, count=2)
        self.floors.append(floor(ranks))
        victim, _ = ranks_of(self.job)[repeat % ranks]
        killed = now()
        os.kill(victim, signal.SIGKILL)
        self.took.append((self.board.last_after(killed) - killed) / MS)
        self.attempt += 1
        if self.attempt > ATTEMPTS_PER_JOB:
            self.end()


def add(report, row, sides, ranks):
    unix, tls = sides
    costs = [theirs / own for theirs, own in zip(tls.took, unix.took)]
    between = interval(costs)
    text = f"{statistics.median(costs):.2f} x the unix socket" + (
        f" (95 %: {between[0]:.2f} to {between[1]:.2f})" if between else ""
    )
    load = disturbed(unix.floors + tls.floors, ranks)
    for side, goal in ((unix, "-"), (tls, text + (f"; {load}" if load else ""))):
        ratios = [t / f for t, f in zip(side.took, side.floors)]
        report.add(f"{row}-{side.name}", side.took, "ms", goal, None, floors=side.floors, ratios=ratios)  # fmt: skip


def what_tls_costs(options, report, wanted):
    launches = [ranks for ranks in (8, 64) if wanted(f"launch-{ranks}-tls")]
    restarts = [ranks for ranks in (8,) if wanted(f"restart-{ranks}-tls")]
    for nodes, counts in ((1, launches), (2, restarts)):
        if not counts:
            continue
        with contextlib.ExitStack() as stack:
            sides = [
                Side(name, stack.enter_context(kind(options, nodes, 64 // nodes)))
                for name, kind in (("unix", WatchedCluster), ("tls", TlsCluster))
            ]
            for ranks in counts:
                row = f"{'launch' if nodes == 1 else 'restart'}-{ranks}"
                for side in sides:
                    side.prepare(row, ranks, nodes)
                    side.launch()  # the first only warms
                    if nodes == 1:
                        side.cluster.watcher.wait("node-started", side.job)
                        side.end()
                for repeat in range(options.repeats(30)):
                    for side in sides:
                        if nodes == 1:
                            side.launch_once(ranks)
                        else:
                            side.restart_once(ranks, repeat)
                for side in sides:
                    side.end()
                add(report, row, sides, ranks)
