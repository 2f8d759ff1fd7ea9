#!/usr/bin/python3
"""No byte of a rank's log is lost or doubled by the death of a muster process, and what a program or a full disk took away is said.

The ranks write self-numbered lines; the controller's copy (muster logs --raw) is compared with the rank's own file, held open from the beginning
so that it is there when muster has removed its name, and where a file loses bytes (truncation, hard cap) with the lines as they must have been.

Run:  /usr/bin/python3 tests/integration/logs_test.py [-v]       (the hard cap's test mounts a small tmpfs and needs root)
"""

import ctypes
import datetime
import json
import os
import random
import re
import shutil
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import DEADLINE, SLOW, Cluster, Trace, kill_process  # noqa: E402

SEED = int(os.environ.get("MUSTER_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
GOAL = (
    2.0 * SLOW
)  # s after a killed daemon is back, or a rank or worker is gone, for what the ranks had written before the kill

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE, _MNT_DETACH = 0x20000, 0x4000, 1 << 18, 2


def lines_of(rank, first, last, size):
    """Lines [first, last) as the stub trainer writes them."""
    dots = b"." * (size - 1 - len(b"line %012d of rank %d " % (0, rank))) + b"\n"
    return b"".join(
        b"line %012d of rank %d " % (number, rank) + dots for number in range(first, last)
    )


class Logs(unittest.TestCase):
    def raw(self, cluster, job, rank, *more):
        done = cluster.muster("logs", job, "--raw", "--rank", str(rank), *more, text=False)
        self.assertIn(done.code, (0, 10), done.err)  # 10: nothing there yet
        return done.out

    def gaps(self, cluster, job, rank, attempt=1):
        """[(first logical offset behind the gap, why)]"""
        text = cluster.output(
            "logs", job, "--rank", str(rank), "--attempt", str(attempt), "--timeout", "60s"
        )
        return [
            (int(offset), why)
            for offset, why in re.findall(r"-- bytes missing before offset (\d+): (.*)", text)
        ]

    def assert_same(self, copy, truth, what):
        if copy != truth:
            at = next(
                (i for i, (a, b) in enumerate(zip(copy, truth)) if a != b),
                min(len(copy), len(truth)),
            )
            self.fail(
                f"{what}: {len(copy)} bytes, {len(truth)} in truth, differ at {at}: {copy[at:at + 60]!r}, not {truth[at:at + 60]!r}"
            )

    def back(self, cluster, name, killed):
        """Waits until a daemon that was started again is there: the controller listens (start() has waited for that), or has heard of the agent."""
        end = time.monotonic() + DEADLINE
        while name != "controller":
            node = json.loads(cluster.output("node", "show", name, "-o", "json"))
            if (
                node.get("connected")
                and datetime.datetime.fromisoformat(
                    node["lastHeard"].replace("Z", "+00:00")
                ).timestamp()
                > killed
            ):
                break
            self.assertLess(
                time.monotonic(), end, f"agent {name} does not come back\n{cluster.log_end(name)}"
            )
        return time.monotonic()

    def test_kills(self):
        """Daemons die, ranks and workers too: the log of every attempt stays byte for byte what its ranks wrote."""
        choose = random.Random(SEED)
        print(f"seed {SEED}", file=sys.stderr)
        kinds = ["agent", "controller", "rank", "worker"]
        took = {kind: [] for kind in kinds}
        with Cluster(nodes=2, devices=2) as cluster:
            trace = Trace(cluster, "kills")
            step_ms = 10 * SLOW  # under a sanitizer the daemons, and not the trainer, are slow
            saving = [
                "--save",
                "${save.dir}",
                "--load",
                "${resume.dir}",
                "--save-interval",
                4,
                "--save-ms",
                2,
            ]
            job = cluster.submit(
                cluster.stub(
                    "kills",
                    *trace.until_ended(),
                    "--step-ms",
                    step_ms,
                    "--lines",
                    40,
                    "--line-bytes",
                    100,
                    *saving,
                    "--trace",
                    trace.path,
                )
            )
            open_files = {}  # attempt: the ranks' own files, from its beginning
            try:
                for kind in [kind for _ in range(5) for kind in choose.sample(kinds, len(kinds))]:
                    trace.wait(
                        job, trace.best() + choose.randint(3, 25)
                    )  # a new step: an attempt without one counts against the job
                    cluster.output("wait", job, "--for", "running", "--timeout", "60s")
                    attempt = cluster.show(job)["attempt"]
                    files = self.hold(cluster, job, attempt, open_files)
                    victims = {
                        "agent": cluster.nodes,
                        "controller": ["controller"],
                        "rank": cluster.rank_processes(),
                        "worker": cluster.workers(),
                    }[kind]
                    victim = choose.choice(sorted(victims))
                    written = [os.fstat(file.fileno()).st_size for file in files]
                    killed = time.time()
                    if kind in ("agent", "controller"):
                        cluster.kill(victim)
                        cluster.start(victim)
                        back = self.back(cluster, victim, killed)
                    else:
                        self.assertTrue(
                            kill_process(victim),
                            f"{kind} {victim.pid} ended by itself\n{cluster.story(job)}",
                        )
                        back = time.monotonic()
                    for rank, file in enumerate(files):
                        # A slow client does not count: what it asks for within the goal may be short, what it asks for later may not.
                        asked, copy = time.monotonic(), self.raw(
                            cluster, job, rank, "--attempt", str(attempt)
                        )
                        while len(copy) < written[rank]:
                            late = f"rank {rank}, {asked - back:.2f} s after the {kind}'s death: {len(copy)} of the {written[rank]} bytes written before it"
                            self.assertLess(asked - back, GOAL, f"{late}\n{cluster.story(job)}")
                            asked, copy = time.monotonic(), self.raw(
                                cluster, job, rank, "--attempt", str(attempt)
                            )
                        file.seek(0)
                        self.assert_same(
                            copy,
                            file.read(len(copy)),
                            f"attempt {attempt}, rank {rank} after killing a {kind}",
                        )
                    took[kind].append(asked - back)
                trace.end(job)
                cluster.output("wait", job, "--for", "running", "--timeout", "60s")
                self.hold(cluster, job, cluster.show(job)["attempt"], open_files)
                cluster.wait(job)
                self.assertEqual(
                    sorted(open_files),
                    list(range(1, 12)),
                    "ten deaths of a gang, and no more attempts than that",
                )
                self.raw(cluster, job, 0, "-f")  # returns when the logs of the whole job are in
                total = 0
                for attempt, files in open_files.items():
                    for rank, file in enumerate(files):
                        file.seek(0)
                        truth = file.read()
                        self.assert_same(
                            self.raw(cluster, job, rank, "--attempt", str(attempt)),
                            truth,
                            f"attempt {attempt}, rank {rank} at the end",
                        )
                        self.assertEqual(self.gaps(cluster, job, rank, attempt), [])
                        total += len(truth)
                        if rank in (
                            1,
                            2,
                        ):  # the first rank writes of its checkpoints, the last one of its steps, too
                            numbered = truth.partition(b"Traceback")[
                                0
                            ]  # of a rank whose neighbour was killed
                            lines = lines_of(rank, 0, len(numbered) // 100 + 1, 100)
                            self.assert_same(
                                numbered,
                                lines[: len(numbered)],
                                f"attempt {attempt}, rank {rank}'s own file",
                            )
            finally:
                for file in sum(open_files.values(), []):
                    file.close()
        for kind, seconds in took.items():
            print(
                f"after killing {kind}: what had been written before was asked for {max(seconds):.2f} s later, at most",
                file=sys.stderr,
            )
        print(f"{total} bytes of {len(open_files)} attempts, none lost or doubled", file=sys.stderr)

    def hold(self, cluster, job, attempt, open_files):
        """Opens the ranks' own files: they are compared with when muster has removed their names."""
        if attempt not in open_files:
            paths = [
                f"{cluster.agent_dir(f'n{rank // 2}')}/runs/{job}.{attempt}/logs/rank-{rank}.log"
                for rank in range(4)
            ]
            open_files[attempt] = [open(path, "rb") for path in paths]  # noqa: SIM115
        return open_files[attempt]

    def truncated(self, agent_watches):
        steps, at, lines, size = 120, 60, 20, 100
        with Cluster(nodes=1, devices=3) as cluster:
            trace = Trace(cluster, "cut")
            spec = cluster.stub(
                "cut",
                "--steps",
                steps,
                "--step-ms",
                25,
                "--lines",
                lines,
                "--line-bytes",
                size,
                "--truncate-at",
                at,
                "--trace",
                trace.path,
            )
            job = cluster.submit(spec)
            trace.wait(job, at // 2)
            first = {rank: lines_of(rank, 0, at * lines, size) for rank in (0, 1)}
            shipped = {
                rank: len(os.path.commonprefix([self.shipped(cluster, job, rank), first[rank]]))
                for rank in (0, 1)
            }
            if trace.best() >= at - 1:
                shipped = {0: 0, 1: 0}  # asked too late: some of it may be of behind the truncation
            if not agent_watches:
                cluster.kill("n0")
                trace.wait(job, at + 2)
                cluster.start("n0")
            cluster.wait(job)
            for rank in (0, 1):
                copy = self.raw(cluster, job, rank, "-f")
                after = lines_of(rank, at * lines, steps * lines, size)
                self.assertTrue(
                    copy.endswith(after),
                    f"rank {rank}: of the lines behind the truncation some are missing",
                )
                before = copy[: len(copy) - len(after)]
                self.assert_same(
                    before, first[rank][: len(before)], f"rank {rank} before the truncation"
                )
                self.assertGreaterEqual(
                    len(before),
                    shipped[rank],
                    f"rank {rank}: of what the controller had before the truncation some is missing",
                )
                gaps = self.gaps(cluster, job, rank)
                self.assertEqual(len(gaps), 1, gaps)
                self.assertIn("truncated by the program", gaps[0][1])
                when = "before the agent's eyes" if agent_watches else "while no agent ran"
                print(
                    f"rank {rank}, truncated {when}: {len(before)} of {at * lines * size} bytes before, all {len(after)} behind; {gaps}",
                    file=sys.stderr,
                )

    def shipped(self, cluster, job, rank):
        """What the controller has of a log by now, as soon as that is something."""
        deadline = time.monotonic() + 30 * SLOW
        while not (copy := self.raw(cluster, job, rank)):
            self.assertLess(time.monotonic(), deadline, f"nothing of rank {rank}'s log ever came")
        return copy

    def test_the_last_lines_of_a_job_that_has_just_ended(self):
        """Regression: behind an agent's new start the end of a job was known before its lines had come, and `logs` had none."""
        with Cluster(nodes=1, devices=1) as cluster:
            for turn in range(5):
                with cluster.gate(f"gate-{turn}") as gate:
                    job = cluster.submit(
                        f"name: late\nengine: command\nlaunch: {{run: [sh, -c, 'read x < {gate.path}; echo last line']}}\n"
                        "resources: {nodes: 1, devices: 1, type: cpu}\n"
                    )
                    cluster.output("wait", job, "--for", "running", "--timeout", "60s")
                    cluster.kill("n0")
                    gate.open(1)
                cluster.agent("n0", devices=1, wait=False)
                cluster.wait(job)
                self.assertIn("last line", cluster.output("logs", job), f"turn {turn}")

    def test_truncated_by_the_program(self):
        self.truncated(True)

    def test_truncated_while_no_agent_runs(self):
        self.truncated(False)

    @unittest.skipUnless(os.geteuid() == 0, "mounts a tmpfs: needs root")
    def test_hard_cap(self):
        """Below 256 MiB free the oldest bytes go, shipped or not, and the controller, away at that time, is told which."""
        if (
            _libc.unshare(_CLONE_NEWNS) != 0
            or _libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) != 0
        ):
            self.skipTest("no mount namespace of its own: " + os.strerror(ctypes.get_errno()))
        steps, lines, size = 160, 2000, 100  # 32 MB a rank

        class Small(Cluster):
            def agent(self, name, **more):
                if not os.path.exists(self.agent_dir(name)):
                    os.mkdir(self.agent_dir(name), 0o700)
                    if (
                        _libc.mount(
                            b"none",
                            self.agent_dir(name).encode(),
                            b"tmpfs",
                            0,
                            b"size=280m,mode=0700",
                        )
                        != 0
                    ):
                        raise OSError(ctypes.get_errno(), "mounting a tmpfs")
                return super().agent(name, **more)

            def __exit__(self, *what):
                try:
                    super().__exit__(*what)
                finally:
                    _libc.umount2(self.agent_dir("n0").encode(), _MNT_DETACH)
                    shutil.rmtree(self.dir, ignore_errors=True)

        with Small(nodes=1, devices=2) as cluster:
            trace = Trace(cluster, "cap")
            job = cluster.submit(
                cluster.stub(
                    "cap",
                    "--steps",
                    steps,
                    "--step-ms",
                    20,
                    "--lines",
                    lines,
                    "--line-bytes",
                    size,
                    "--trace",
                    trace.path,
                )
            )
            trace.wait(job, 10)
            cluster.kill("controller")
            trace.wait(job, steps)
            cluster.start("controller")
            cluster.wait(job)
            truth = lines_of(0, 0, steps * lines, size)
            copy = self.raw(cluster, job, 0, "-f")
            gaps = self.gaps(cluster, job, 0)
            self.assertTrue(gaps, "nothing was punched: the disk was not full enough")
            self.assertTrue(all("hard cap" in why for _, why in gaps), gaps)
            self.assertTrue(
                self.made_of(copy, truth, [offset for offset, _ in gaps]),
                f"{len(copy)} bytes are not the lines without the gaps {gaps}",
            )
            self.assertTrue(copy.endswith(truth[-65536:]))
            print(f"hard cap: {len(copy)} of {len(truth)} bytes kept, gaps {gaps}", file=sys.stderr)

    def made_of(self, copy, truth, starts):
        """Is the copy truth[0:a] truth[starts[0]:b] ... to the end? Where a piece ends is not said; the lines look alike for at most one line."""
        if not starts:
            return copy == truth
        same = len(os.path.commonprefix([copy, truth]))
        first = starts[0]
        later = [start - first for start in starts[1:]]
        return any(
            end <= first and self.made_of(copy[end:], truth[first:], later)
            for end in range(same, max(-1, same - 200), -1)
        )


if __name__ == "__main__":
    unittest.main()
