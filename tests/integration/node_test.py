#!/usr/bin/python3
"""What a node gives to a job, and what it does without: inotify, Python, control groups.

Run:  /usr/bin/python3 tests/integration/node_test.py [-v] [CASE]
"""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from cluster import BIN, Cluster, processes_of, wait_ended, wait_until

WATCHING = "watching files: making an inotify instance: Too many open files"
# A user namespace has limits of its own: nobody else's programs lose theirs.
NO_INOTIFY = [
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"',
    "sh",
]


def job(name, run, more=""):
    """`run`: what a shell is given, in each of two ranks."""
    return (f"name: {name}\nengine: command\nobserve: {{progress: auto}}\nlaunch: {{run: [sh, -c, {json.dumps(run)}]}}\n"
            f"resources: {{nodes: 1, devices: 2, type: cpu}}\n{more}\n")  # fmt: skip


def can_have_no_inotify():
    return (
        subprocess.run(
            [*NO_INOTIFY, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False
        ).returncode
        == 0
    )


def cgroup_parent():
    """The directory in which agents that we start make theirs; none: nobody lets us."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        own = [line.rstrip("\n")[3:] for line in file if line.startswith("0::")]
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if own and os.path.exists(f"{root}/cgroup.controllers"):
            parent = root + own[0].rstrip("/")
            return (
                parent
                if os.access(parent, os.W_OK) and os.access(f"{parent}/cgroup.procs", os.W_OK)
                else None
            )
    return None


def put_disk(path):
    return (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", path],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        ).returncode
        == 0
    )


def take_disk(path):
    """Whoever has files open there keeps them."""
    subprocess.run(
        ["umount", "-l", path], stdin=subprocess.DEVNULL, capture_output=True, check=True
    )


def end(pid_fd):
    try:
        signal.pidfd_send_signal(pid_fd, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.close(pid_fd)


class Inotify(unittest.TestCase):
    def test_an_agent_takes_one_instance(self):
        """A user has 128: with two an agent, 64 agents of one machine had them all."""
        with Cluster() as cluster, cluster.gate() as gate:
            cluster.controller()
            agent = cluster.agent("n0")
            name = cluster.submit(job("waits", f"echo here; read line < {gate.path}"))
            cluster.wait_event(lambda event: event["type"] == "node-started", name)
            links = []
            for entry in os.listdir(f"/proc/{agent.process.pid}/fd"):
                try:
                    links.append(os.readlink(f"/proc/{agent.process.pid}/fd/{entry}"))
                except FileNotFoundError:
                    pass  # closed meanwhile
            self.assertEqual(links.count("anon_inode:inotify"), 1, links)
            gate.open(2)
            cluster.muster("wait", name, "--timeout", "60s", code=0)

    @unittest.skipUnless(can_have_no_inotify(), "this machine lets us make no user namespace")
    def test_without_an_instance_jobs_run_and_one_line_says_so(self):
        """The 65th agent did not start, and a job that was placed on its node failed."""
        with Cluster() as cluster, cluster.gate() as gate:
            cluster.controller()
            agent = cluster.agent("n0", before=NO_INOTIFY)
            steps = 'printf " iteration %8d/%8d | lm loss: %E |\\n" 1 3 3.5 2 3 2.5 3 3 1.5'
            cluster.submit(
                job("good", f"{steps}; read line < {gate.path}; echo rank $MUSTER_RANK is well")
            )
            wait_until(
                lambda: re.search(
                    r'"step": "?3\b', cluster.muster("show", "good", "-o", "json", code=0).out
                ),
                what="step 3",
            )
            gate.open(2)
            cluster.muster("wait", "good", "--timeout", "60s", code=0)
            logs = cluster.muster("logs", "good", "-f", "--rank", "0-1", code=0).out
            for rank in (0, 1):
                self.assertIn(f"rank {rank} is well", logs)
            bad = cluster.muster(
                "run",
                "-q",
                cluster.spec(
                    job(
                        "bad",
                        "echo 'ValueError: no such shard' >&2; exit 3",
                        "recovery: {max_restarts: 0}",
                    )
                ),
                "--timeout",
                "60s",
            )
            self.assertEqual(bad.code, 1, bad)
            self.assertIn("ValueError: no such shard", cluster.muster("why", "bad").out)
            self.assertEqual(agent.logged().count(WATCHING), 1, agent.logged())
            self.assertIn("raise fs.inotify.max_user_instances", agent.logged())


class Python(unittest.TestCase):
    def test_auto_is_the_first_on_the_path_of_the_rank(self):
        """A virtual environment was active where the agents were started, and ranks ran with the system's Python."""

        def interpreter(cluster, folder):
            os.makedirs(cluster.path(folder, "bin"))
            path = cluster.write(
                f"{folder}/bin/python3", f'#!/bin/sh\necho "I am {folder} $1 $2"\n', 0o755
            )
            return os.path.dirname(path)

        with Cluster() as cluster:
            cluster.controller()
            venv, other = interpreter(cluster, "venv"), interpreter(cluster, "other")
            cluster.agent("n0", env={"PATH": f"{venv}:/usr/bin:/bin"})
            script = cluster.write("train.py", "import sys\nprint('I am', sys.executable)\n")
            spec = f"engine: command\nlaunch: {{script: {script}}}\nresources: {{devices: 1, type: cpu}}\n"
            for name, runtime, output in (
                ("agents-path", "", f"I am venv -u {script}"),
                (
                    "jobs-path",
                    f"runtime: {{env: {{PATH: '{other}'}}}}\n",
                    f"I am other -u {script}",
                ),
                ("named", "runtime: {python: /usr/bin/python3}\n", "I am /usr/bin/python3"),
                ("system", "runtime: {env: {PATH: /nowhere}}\n", "I am /usr/bin/python3"),
            ):
                done = cluster.muster(
                    "run", "-q", cluster.spec(f"name: {name}\n{spec}{runtime}"), "--timeout", "60s"
                )
                self.assertEqual(done.code, 0, done)
                self.assertIn(output, cluster.muster("logs", name, "-f", code=0).out)

    def test_one_that_is_not_there_is_a_sentence(self):
        with Cluster() as cluster:
            cluster.controller()
            cluster.agent("n0")
            script = cluster.write("train.py", "")
            spec = (f"name: none\nengine: command\nlaunch: {{script: {script}}}\nruntime: {{python: python2.3}}\nresources: {{devices: 1, type: cpu}}\n"
                    f"recovery: {{max_restarts: 0}}\n")  # fmt: skip
            done = cluster.muster("run", "-q", cluster.spec(spec), "--timeout", "60s")
            self.assertEqual(done.code, 1, done)
            self.assertIn(
                "runtime.python: there is no 'python2.3' on PATH", cluster.muster("why", "none").out
            )


def read(path):
    """Nothing, before somebody writes it."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def frames(path):
    """How many there are: each has its length before it, and a checksum (docs/run-directory.md)."""
    with open(path, "rb") as file:
        data = file.read()
    count = at = 0
    while at < len(data):
        at += 8 + int.from_bytes(data[at : at + 4], "little")
        count += 1
    return count


class Killed(unittest.TestCase):
    def test_a_rank_that_was_killed_is_named_though_its_peer_was_seen_to_end_first(self):
        """The peer said "Connection reset by peer", muster asked for a stop, and only then was the killed rank's end seen: the verdict named the peer."""
        with Cluster() as cluster, cluster.gate() as gate:
            cluster.controller()
            cluster.agent("n0")
            ranks = (f'if [ "$MUSTER_RANK" = 1 ]; then read line < {gate.path}; echo "ConnectionResetError: [Errno 104] Connection reset by peer" >&2; exit 1; fi; '
                     f"trap : TERM; echo $$$$ > {cluster.path('pid')}; while :; do read line < {cluster.path('never')}; done")  # fmt: skip
            os.mkfifo(cluster.path("never"))
            name = cluster.submit(
                job("killed", ranks, "recovery: {max_restarts: 0, stop_grace: 50s}")
            )
            cluster.wait_event(lambda event: event["type"] == "node-started", name)
            wait_until(lambda: read(cluster.path("pid")).endswith("\n"), what="rank 0")
            gate.open()
            events = glob.glob(cluster.path("agent-n0", "runs", "*", "events"))[0]
            # Two that were forked, started, an exit, and the stop, which is written before it is carried out. Rank 0 does not obey.
            wait_until(lambda: frames(events) == 5, what="the stop")
            os.kill(int(read(cluster.path("pid"))), signal.SIGKILL)
            cluster.muster("wait", name, "--timeout", "40s", code=1)
            why = cluster.muster("why", name, code=0).out
            self.assertIn("rank 0 on node 'n0' was killed by signal 9 (SIGKILL)", why)
            self.assertNotIn("rank 1", why)


class Frozen(unittest.TestCase):
    def test_a_job_whose_worker_is_frozen_can_be_cancelled(self):
        """SIGTERM waited in the queue of a worker that was stopped by SIGSTOP, and its ranks ran for ever."""
        with Cluster() as cluster, cluster.gate() as gate:
            cluster.controller()
            agent = cluster.agent("n0")
            name = cluster.submit(
                job("frozen", f"read line < {gate.path}", "recovery: {stop_grace: 1s}")
            )
            cluster.wait_event(lambda event: event["type"] == "node-started", name)
            workers = [
                pid for pid, command in processes_of(cluster.dir) if "muster-worker" in command
            ]
            self.assertEqual(len(workers), 1)
            os.kill(workers[0], signal.SIGSTOP)
            cluster.muster("cancel", name, code=0)
            cluster.muster("wait", name, "--timeout", "60s", code=3)
            self.assertIn("it is killed, its ranks with it", agent.logged())
            self.assertEqual(
                [command for _, command in processes_of(cluster.dir) if gate.path in command], []
            )


class Record(unittest.TestCase):
    def test_env_shows_what_the_rank_really_got(self):
        """`muster env` showed the plan: no HOME, no PATH, no process tag, and a name where the node had found a program."""
        with Cluster() as cluster:
            cluster.controller()
            cluster.agent("n0", env={"PATH": f"{BIN}:/usr/bin:/bin"})
            name = cluster.submit("name: real\nengine: torch\nlaunch: {run: [stub_trainer, --block]}\nruntime: {env: {USER: ada, RUN: 'a b'}}\n"
                                  "resources: {devices: 2, type: cpu}\n")  # fmt: skip

            def process(rank):
                for pid, _ in processes_of(cluster.dir):
                    try:
                        with open(f"/proc/{pid}/environ", "rb") as file:
                            env = [item.decode() for item in file.read().split(b"\0")[:-1]]
                        with open(f"/proc/{pid}/cmdline", "rb") as file:
                            argv = [item.decode() for item in file.read().split(b"\0")[:-1]]
                    except OSError:
                        continue
                    if f"MUSTER_RANK={rank}" in env and argv[1:] == ["--block"]:
                        return pid, env, argv
                raise AssertionError(f"no process of rank {rank}")

            def shown(rank):
                launch = json.loads(
                    cluster.muster("env", name, "--rank", rank, "-o", "json", code=0).out
                )
                return launch, sorted(
                    f"{value['name']}={value['value']}" for value in launch["env"]
                )

            cluster.wait_event(lambda event: event["type"] == "node-started", name)
            for rank in (0, 1):
                pid, env, argv = process(rank)
                launch, output = shown(rank)
                self.assertEqual(output, sorted(env))
                self.assertEqual(launch["argv"], argv)
                self.assertEqual(launch["cwd"], os.readlink(f"/proc/{pid}/cwd"))
                self.assertEqual(
                    os.path.realpath(launch["argv"][0]), os.path.realpath(f"/proc/{pid}/exe")
                )
                self.assertIn("USER=ada", output)
                sources = {value["name"]: value["source"] for value in launch["env"]}
                self.assertEqual(
                    [
                        sources[key]
                        for key in ("USER", "HOME", "LOGNAME", "PATH", "MUSTER_PROCESS_TAG")
                    ],
                    ["runtime.env"] + ["node"] * 4,
                )
            # It is durable: neither a restart nor the end of the job changes what was.
            before = shown(1)
            cluster.daemons[0].stop(signal.SIGKILL)
            cluster.controller()
            cluster.wait_event(lambda event: event["type"] == "node-started", name)
            self.assertEqual(shown(1), before)
            cluster.muster("cancel", name, code=0)
            cluster.muster("wait", name, "--timeout", "60s", code=3)
            self.assertEqual(shown(1), before)

    def test_bytes_that_are_not_utf8_do_not_break_the_stream(self):
        """What a node adds to a rank's environment travels in a message; a path may hold any bytes."""
        with Cluster() as cluster:
            cluster.controller()
            cluster.agent("n0", env={"PATH": f"{BIN}:/usr/bin:/bin:/opt/\udcff"})
            name = cluster.submit(
                'name: odd\nengine: command\nlaunch: {run: "true"}\nresources: {devices: 1, type: cpu}\n'
            )
            cluster.muster("wait", name, "--timeout", "60s", code=0)
            self.assertIn("/opt/?", cluster.muster("env", name, "--rank", "0", code=0).out)

    def test_a_directory_in_a_save_directory_may_have_any_name(self):
        """One that is not UTF-8 was in every heartbeat: no fact of the node was ever heard again."""
        with Cluster() as cluster:
            cluster.controller()
            cluster.agent("n0")
            odd = "mkdir -p \"$MUSTER_SAVE_DIR/iter_0000001/mp_rank_$(printf '\\377')\""
            spec = (f"name: odd\nengine: torch\nlaunch: {{run: [sh, -c, {json.dumps(odd + '; exit 3')}]}}\nresources: {{devices: 1, type: cpu}}\n"
                    "recovery: {max_restarts: 0}\n")  # fmt: skip
            done = cluster.muster("run", "-q", cluster.spec(spec), "--timeout", "60s")
            self.assertEqual(done.code, 1, done)
            cluster.trivial()


@unittest.skipUnless(cgroup_parent(), "no cgroup v2 directory that this user may write to")
class Cgroups(unittest.TestCase):
    def setUp(self):
        self.node = f"cg{os.getpid()}-{self._testMethodName[5:10]}"

    def bases(self):
        return sorted(glob.glob(f"{cgroup_parent()}/muster-{self.node}*"))

    def waiting(self, cluster, gate, more=""):
        name = cluster.submit(job("waits", f"read line < {gate.path}", more))
        cluster.wait_event(lambda event: event["type"] == "node-started", name)
        return name

    def test_two_clusters_with_one_node_name_share_nothing(self):
        """Their runs lay in one directory; with job ids that were equal, the end of one killed the other."""
        with Cluster() as one, Cluster() as two, one.gate() as first, two.gate() as second:
            for cluster in (one, two):
                cluster.controller()
                cluster.agent(self.node)
            self.assertEqual(self.bases(), [], "an idle agent has none")
            jobs = self.waiting(one, first), self.waiting(two, second)
            self.assertEqual(len(self.bases()), 2)
            self.assertEqual([len(glob.glob(f"{base}/*/")) for base in self.bases()], [1, 1])
            one.muster("cancel", jobs[0], code=0)
            one.muster("wait", jobs[0], "--timeout", "60s", code=3)
            self.assertEqual(len(self.bases()), 1)
            second.open(2)
            two.muster("wait", jobs[1], "--timeout", "60s", code=0)
            self.assertEqual(self.bases(), [])

    def test_an_agent_that_is_killed_for_good_leaves_none(self):
        """kill -9 while a run goes on: it ends with its grace, and takes its group and the base with it."""
        with Cluster() as cluster, cluster.gate() as gate:
            cluster.controller()
            agent = cluster.agent(self.node)
            self.waiting(
                cluster, gate, "recovery: {orphan_grace: 5s, stop_grace: 1s, max_restarts: 0}"
            )
            self.assertEqual(len(self.bases()), 1)
            workers = [
                pid for pid, command in processes_of(cluster.dir) if "muster-worker" in command
            ]
            self.assertEqual(len(workers), 1)
            worker = os.pidfd_open(workers[0])
            agent.stop(signal.SIGKILL)
            self.assertTrue(wait_ended(worker))
            os.close(worker)
            self.assertEqual(self.bases(), [])

    def loses_its_state(self, cluster, state, then, lose):
        """An agent is killed, `lose` takes its state directory away, and the next one starts with `then`: all is ended before it is said, and the devices are
        given out. What had emptied its environment lived on in a group of the instance before."""
        cluster.controller()
        agent = cluster.agent(self.node, state=state)
        pids = cluster.path("pids")
        text = job(
            "left",
            f"setsid env -i sleep 1000 & echo $! >> {pids}; wait",
            "recovery: {max_restarts: 0, orphan_grace: 10m}",
        )
        name = cluster.submit(text)
        cluster.wait_event(lambda event: event["type"] == "node-started", name)
        wait_until(
            lambda: os.path.exists(pids) and read(pids).count("\n") == 2,
            agent.pid_fd,
            what="both ranks' children",
        )
        left = [os.pidfd_open(int(pid)) for pid in read(pids).split()]
        for one in left:
            self.addCleanup(end, one)
        agent.stop(signal.SIGKILL)
        lose()
        cluster.agent(self.node, state=then, wait=False)
        done = cluster.muster("wait", name, "--timeout", "60s")
        self.assertNotIn(done.code, (0, 4), done)
        cluster.wait_event(lambda event: event["type"] == "node-swept", name)
        for one in left:
            self.assertTrue(wait_ended(one, 0), "swept, it was said")
        cluster.trivial()
        self.assertEqual(self.bases(), [])

    def test_a_state_directory_that_was_emptied_leaves_nothing_running(self):
        with Cluster() as cluster:
            state = cluster.path("state")
            self.loses_its_state(cluster, state, state, lambda: shutil.rmtree(state))

    def test_other_state_directory_in_its_place_leaves_nothing_running(self):
        with Cluster() as cluster:
            state = cluster.path("state")
            self.loses_its_state(
                cluster, state, cluster.path("other"), lambda: shutil.rmtree(state)
            )

    def test_replaced_state_disk_leaves_nothing_running(self):
        state = tempfile.mkdtemp(prefix="muster-disk-")
        self.addCleanup(os.rmdir, state)
        if not put_disk(state):
            self.skipTest("this user may mount nothing")
        self.addCleanup(take_disk, state)

        def replace():
            take_disk(state)
            self.assertTrue(put_disk(state))

        with Cluster() as cluster:
            self.loses_its_state(cluster, state, state, replace)

    def test_local_down_leaves_none(self):
        """After kill -9 of agent and worker the run's group stood there for ever."""
        with Cluster() as cluster, cluster.gate() as gate:
            where = cluster.path("local")
            cluster.muster(
                "local", "up", "--nodes", "1", "--devices", "2", "--state-dir", where, code=0
            )
            cluster.env["MUSTER_CONTROLLER"] = os.path.join(where, "endpoint")
            name = cluster.submit(
                job("waits", f"(setsid env -i sleep 1000 &) ; read line < {gate.path}")
            )
            cluster.wait_event(lambda event: event["type"] == "node-started", name)
            instance = json.loads(cluster.muster("show", name, "-o", "json", code=0).out)[
                "attempts"
            ][0]["nodes"][0]["instance"]
            bases = f"{cgroup_parent()}/muster-*-{instance}"
            self.assertEqual(len(glob.glob(bases)), 1)
            for binary in ("muster-controller", "muster-agent", "muster-worker"):
                for pid, command in processes_of(cluster.dir):
                    if binary in command:
                        handle = os.pidfd_open(pid)
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                        wait_ended(handle)
                        os.close(handle)
            cluster.muster("local", "down", "--state-dir", where, code=0)
            self.assertEqual(glob.glob(bases), [])
            cluster.env["MUSTER_CONTROLLER"] = cluster.endpoint


if __name__ == "__main__":
    unittest.main()
