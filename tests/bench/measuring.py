"""What every row needs: moments, percentiles, the floor, and the table with its verdicts."""

import math
import mmap
import os
import select
import statistics
import struct
import subprocess
import time

from cluster import BIN

MS = 1e6  # nanoseconds
PATIENCE = 60.0  # s; only a bound
FLOOR_SOUND = (
    0.6  # ms a rank: it is 0.15 to 0.3 where nothing else wants the cores; above, others had them
)
FLOOR_RANKS = 64  # of the floor that only tells whether the machine was disturbed


def tool(name):
    return os.path.join(BIN, name)


def now():
    return time.monotonic_ns()


def pause(seconds):
    select.select([], [], [], seconds)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Board:
    """Moments of main(), as tests/support/stub_trainer/stamp.h lays them out."""

    def __init__(self, path, ranks):
        self.ranks = ranks
        self.bytes = 8 + 8 * ranks
        with open(path, "wb") as file:
            file.truncate(self.bytes)
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), self.bytes)

    def clear(self):
        self.memory[:] = bytes(self.bytes)

    def last_after(self, moment):
        """Waits for a stamp of every rank behind that moment; gives the last."""
        deadline = time.monotonic() + PATIENCE
        while True:
            stamps = struct.unpack_from(f"{self.ranks}Q", self.memory, 8)
            if min(stamps) > moment:
                return max(stamps)
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"{sum(s > moment for s in stamps)} of {self.ranks} ranks came to main()"
                )
            pause(0.002)


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def processes(text):
    """Processes whose command line has the text."""
    return [
        int(p)
        for p in os.listdir("/proc")
        if p.isdigit() and int(p) != os.getpid() and text.encode() in read(f"/proc/{p}/cmdline")
    ]


def ranks_of(job):
    """{rank: (pid, start time)} of a job's stubs."""
    out = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        env = read(f"/proc/{pid}/environ").split(b"\0")
        if b"MUSTER_JOB_ID=" + job.encode() in env:
            rank = next(int(e[12:]) for e in env if e.startswith(b"MUSTER_RANK="))
            out[rank] = (int(pid), read(f"/proc/{pid}/stat").rsplit(b")", 1)[1].split()[19])
    return out


def floor(ranks):
    text = subprocess.run(
        [tool("spawn_floor"), tool("stub_trainer"), str(ranks), "1"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return float(text.split()[0])


def disturbed(floors, ranks):
    """How much the floor suffered from other load, in words; empty: not enough to matter."""
    a_rank = statistics.median(floors) / ranks
    return (
        ""
        if a_rank <= FLOOR_SOUND
        else f"no verdict: load (floor {a_rank:.2f} ms a rank, sound up to {FLOOR_SOUND})"
    )


def interval(values):
    """Where the median lies in 95 of 100 cases, whatever the distribution: two of the ordered values.  None: too few of them."""
    ordered, share, low = sorted(values), 0.0, -1
    while (share := share + math.comb(len(ordered), low + 1) / 2 ** len(ordered)) <= 0.025:
        low += 1
    return None if low < 0 else (ordered[low], ordered[-1 - low])


def judge_ratio(ratios, at_least, load):
    """(met or None, why): by the interval of the median ratio, so that noise gives no verdict rather than a wrong one."""
    between = interval(ratios)
    text = f"{statistics.median(ratios):.2f} x" + (
        f" (95 %: {between[0]:.2f} to {between[1]:.2f})" if between else ""
    )
    if load:
        return None, f"{text}; {load}"
    if not between:
        return None, f"{text}; no verdict: too few repeats"
    if between[0] < at_least <= between[1]:
        return None, f"{text}; no verdict: spread"
    return between[0] >= at_least, text


class Report:
    def __init__(self):
        self.rows = []

    def add(self, name, values, unit, goal, met, *, syncs=(), floors=(), ratios=(), **more):
        row = {"row": name, "n": len(values), "unit": unit, "median": statistics.median(values), "p95": percentile(values, 0.95), "p99": percentile(values, 0.99),
               "goal": goal, "met": met, "load": [round(x, 1) for x in os.getloadavg()], "values": [round(v, 3) for v in values]}  # fmt: skip
        if floors:
            row["floor_median"] = statistics.median(floors)
        if ratios:
            row["ratio_median"], row["ratio_p95"] = statistics.median(ratios), percentile(
                ratios, 0.95
            )
        if syncs:
            row["fdatasync_ms"] = [percentile(syncs, share) for share in (0.5, 0.9, 0.99)]
        row.update(more)
        self.rows.append(row)
        number = (lambda v: f"{v:9.2f}") if max(values) < 1000 else (lambda v: f"{v:9.0f}")
        sync = "/".join(f"{v:.1f}" for v in row.get("fdatasync_ms", [])) or "-"
        against = (
            f"{row['floor_median']:7.1f} {row['ratio_median']:5.2f}x {row['ratio_p95']:5.2f}x"
            if ratios
            else f"{'-':>7} {'-':>6} {'-':>6}"
        )
        print(f"{name:34} {row['n']:4} {number(row['median'])} {number(row['p95'])} {number(row['p99'])} {unit:6} {against} {sync:>14} {row['load'][0]:5.1f}  "
              f"{'-' if met is None else 'met' if met else 'MISSED':6} {goal}", flush=True)  # fmt: skip

    def absent(self, name, why):
        self.rows.append({"row": name, "n": 0, "absent": why})
        print(f"{name:34}    0 not measured: {why}", flush=True)

    @staticmethod
    def heading():
        columns = f"{'row':34} {'n':>4} {'median':>9} {'p95':>9} {'p99':>9} {'unit':6} {'floor':>7} {'ratio':>6} {'p95':>6} {'sync 50/90/99':>14} {'load':>5}"
        print(f"{columns}  {'':6} goal", flush=True)
