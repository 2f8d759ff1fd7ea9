#!/usr/bin/python3
"""`muster local`: the private cluster that a person starts with.

Run:  /usr/bin/python3 tests/integration/local_test.py [-v] [CASE]
"""

import ctypes
import json
import os
import re
import signal
import unittest

from cluster import DEADLINE, Cluster, processes_of, wait_ended, wait_until


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
PTRACE_SEIZE, PTRACE_DETACH, PTRACE_O_TRACEEXIT, WALL = 0x4206, 17, 0x40, 0x40000000


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


def waits_for_a_process(pid):
    folder = f"/proc/{pid}/fd"
    try:
        return any("pidfd" in os.readlink(f"{folder}/{name}") for name in os.listdir(folder))
    except FileNotFoundError:  # a descriptor that was closed meanwhile
        return False


def job(name, run, resources="{nodes: 2, devices: 1, type: cpu}"):
    return f"name: {name}\nengine: command\nlaunch: {{run: [bash, -c, {json.dumps(run)}]}}\nresources: {resources}\n"


class Local(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()  # only its directory and environment
        self.state = self.cluster.path("cluster")
        self.cluster.env["MUSTER_LOCAL_DIR"] = self.state
        self.cluster.env.pop("MUSTER_CONTROLLER")

    def tearDown(self):
        self.cluster.muster("local", "down")
        self.cluster.close()

    def pids(self):
        return re.findall(r"running +(\d+)", self.cluster.muster("local", "status", code=0).out)

    def test_up_and_down(self):
        self.cluster.muster("local", "status", code=10)
        up = self.cluster.muster("local", "up", "--nodes", "2", "--devices", "2", code=0)
        self.assertIn("controller and 2 nodes with 2 devices each are up", up.out)
        self.assertNotIn("MUSTER_CONTROLLER", up.out, "clients look there anyway")
        pids = self.pids()
        self.assertEqual(len(pids), 3)
        self.cluster.muster("local", "up", "--nodes", "2", "--devices", "2", code=0)
        self.assertEqual(self.pids(), pids, "what runs is left alone")
        for path in ("", "/controller", "/agents/n0"):
            self.assertEqual(os.stat(self.state + path).st_mode & 0o777, 0o700, path)
        self.assertEqual(os.stat(self.state + "/controller.sock").st_mode & 0o777, 0o600)

        # One that was killed is started again, the others stay.
        os.kill(int(pids[1]), signal.SIGKILL)
        self.cluster.muster("local", "status", code=13)
        self.cluster.muster("local", "up", code=0)
        self.assertEqual(self.pids()[::2], pids[::2])
        self.cluster.trivial()

        # A job that is running when the cluster goes down goes with it.
        self.cluster.submit(job("endless", "echo up; exec tail -f /dev/null"))
        self.cluster.muster("wait", "endless", "--for", "running", "--timeout", "60s", code=0)
        down = self.cluster.muster("local", "down", code=0)
        self.assertIn("is down", down.out)
        self.assertEqual(processes_of(self.cluster.dir), [], "no process is left")
        self.assertIn("controller.log", os.listdir(self.state + "/log"))
        left = [
            os.path.join(folder, name) for folder, _, names in os.walk(self.state) for name in names
        ]
        for path in left:
            self.assertNotIn(os.path.basename(path), ("endpoint", "controller.sock", "processes"))
            if os.path.basename(path) != "wake_fifo":  # a run directory's, which stays as it is
                self.assertTrue(os.path.isfile(path), f"{path}: no socket or pipe is left")
        for verb in ("down", "status"):
            # It said that none was ever started there.
            self.assertIn(
                "it is down; its state is there", self.cluster.muster("local", verb, code=10).err
            )
        self.cluster.muster("ps", code=13)

        # And up again: what was is remembered.
        self.cluster.muster("local", "up", code=0)
        self.assertEqual(self.cluster.muster("wait", "endless", code=3).out, "")
        self.cluster.trivial()
        self.cluster.muster("local", "down", code=0)

    def test_numbers_of_another_boot_are_strangers_now(self):
        os.mkdir(self.state, 0o700)
        with open("/proc/self/stat", encoding="ascii") as file:
            start_time = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            this_boot = file.read().strip()
        for boot, code, state in ((this_boot, 0, "running"), ("another", 13, "gone")):
            daemon = {
                "name": "agent",
                "node": "n0",
                "pid": os.getpid(),
                "startTime": start_time,
                "bootId": boot,
                "log": "x",
            }
            with open(self.state + "/processes", "w", encoding="utf-8") as file:
                json.dump([daemon], file)
            self.assertRegex(
                self.cluster.muster("local", "status", code=code).out,
                f"agent n0 +{state} +{os.getpid()}",
            )
        os.unlink(self.state + "/processes")  # or tearDown would end this very test

    def test_up_while_a_killed_agent_is_still_ending(self):
        """The new agent was refused the state directory: of the killed one the first thread was gone, which looks like the whole process, and another held the lock."""
        self.cluster.muster("local", "up", "--nodes", "1", "--devices", "1", code=0)
        pids = self.pids()
        agent = int(pids[1])
        thread = max(int(name) for name in os.listdir(f"/proc/{agent}/task"))
        self.assertNotEqual(thread, agent)
        if LIBC.ptrace(PTRACE_SEIZE, thread, None, PTRACE_O_TRACEEXIT) != 0:
            self.skipTest("this user may trace no process")
        os.kill(agent, signal.SIGKILL)
        self.assertEqual(os.waitpid(thread, WALL)[0], thread)  # it stops at its exit
        wait_until(lambda: state_of(agent) == "Z", what="the first thread's end")
        with self.cluster.popen("local", "up", "--nodes", "1", "--devices", "1") as up:
            up_fd = os.pidfd_open(up.pid)
            try:
                wait_until(
                    lambda: waits_for_a_process(up.pid),
                    up_fd,
                    what="`local up` to wait for the agent's end",
                )
                self.assertEqual(LIBC.ptrace(PTRACE_DETACH, thread, None, None), 0)
                self.assertEqual(
                    up.communicate(timeout=DEADLINE),
                    (
                        "private cluster in "
                        + self.state
                        + ": controller and 1 node with 1 device each are up\n",
                        "",
                    ),
                )
            finally:
                os.close(up_fd)
            self.assertEqual(up.returncode, 0)
        now = self.pids()
        self.assertEqual(now[0], pids[0])
        self.assertNotEqual(now[1], pids[1])
        self.cluster.trivial()

    # Specs for cards could only be tried where the cards are.
    def test_stand_ins_for_cards(self):
        table = self.cluster.write(
            "table.yaml",
            "name: table\nengine: mindformers\nlaunch: {config: a.yaml}\nresources: {nodes: 2, devices: 2, type: ascend}\n",
        )
        gpu = self.cluster.write(
            "gpu.yaml",
            "name: gpu\nengine: torch\nlaunch: {script: train.py}\nresources: {nodes: 2, devices: 2, type: nvidia}\n",
        )
        for kind, spec, words in (
            ("ascend910", table, '"version": "1.0"'),
            ("ascend910_93", table, '"version": "1.2"'),
            ("nvidia", gpu, "CUDA_VISIBLE_DEVICES"),
        ):
            with self.subTest(kind):
                up = self.cluster.muster(
                    "local", "up", "--devices", "2", "--device-type", kind, code=0
                )
                self.assertEqual(up.err, "", up)
                self.assertIn(words, self.cluster.muster("plan", spec, "--contents", code=0).out)
                self.assertIn(
                    f"not what was asked for: the devices of 'n0' are of type {kind}, not cpu",
                    self.cluster.muster("local", "up", "--device-type", "cpu").err,
                )
                self.cluster.muster("local", "down", code=0)
        refused = self.cluster.muster(
            "local", "up", "--devices", "17", "--device-type", "nvidia", code=64
        )
        self.assertIn(
            "starting node 'n0' with 17 stand-ins for cards of type nvidia: a node has at most 16 (--devices)",
            refused.err,
        )

    def test_up_says_what_there_is(self):
        """`up --devices 8` said 8 of a cluster that went on with 2."""
        first = self.cluster.muster("local", "up", "--nodes", "2", "--devices", "2", code=0)
        self.assertEqual(first.err, "")
        for args, other in (
            (["--devices", "8"], "'n0' has 2 devices, not 8, 'n1' has 2 devices, not 8;"),
            (["--nodes", "1"], "it has 2 nodes, not 1;"),
            ([], None),
        ):
            again = self.cluster.muster("local", "up", *args, code=0)
            self.assertIn("controller and 2 nodes with 2 devices each are up", again.out, args)
            if other is None:
                self.assertEqual(again.err, "")
            else:
                self.assertIn(other, again.err)
                self.assertIn("'muster local down' first", again.err)
        third = self.cluster.muster("local", "up", "--nodes", "3", "--devices", "1", code=0)
        self.assertIn(
            "controller and 3 nodes are up: 'n0' with 2 devices, 'n1' with 2 devices, 'n2' with 1 device",
            third.out,
        )
        self.assertIn("'n0' has 2 devices, not 1, 'n1' has 2 devices, not 1;", third.err)

    def sizes(self):
        nodes = json.loads(self.cluster.muster("node", "ls", "-o", "json", code=0).out)["items"]
        return {
            node["name"]: len(node["inventory"]["devices"]) for node in nodes if node["connected"]
        }

    def kill(self, *which):
        """The nth daemons of `status`, controller first."""
        pids = self.pids()
        for number in which:
            fd = os.pidfd_open(int(pids[number]))
            os.kill(int(pids[number]), signal.SIGKILL)
            self.assertTrue(wait_ended(fd))
            os.close(fd)
        return pids

    def test_up_starts_again_what_there_was(self):
        """After an agent's death a plain `up` gave its node 4 devices instead of 8 and started a second node: a job of 8 devices waited for ever."""
        self.cluster.muster("local", "up", "-n", "1", "-d", "8", code=0)
        self.kill(1)
        self.cluster.muster("local", "up", code=0)
        self.assertEqual(self.sizes(), {"n0": 8})
        self.cluster.muster("local", "up", "-n", "3", code=0)
        self.assertEqual(self.sizes(), {"n0": 8, "n1": 8, "n2": 8}, "new ones are like the first")
        self.kill(1, 3)
        self.cluster.muster("local", "up", code=0)
        self.assertEqual(self.sizes(), {"n0": 8, "n1": 8, "n2": 8})
        self.kill(3)
        self.cluster.muster("local", "up", "-d", "2", code=0)
        self.assertEqual(
            self.sizes(), {"n0": 8, "n1": 8, "n2": 2}, "what is asked for holds for what is started"
        )

    def wait_for_daemons(self):
        """A child of a killed `up` that is not a daemon yet has its lock for a moment."""
        wait_until(
            lambda: not any("local up" in command for _, command in processes_of(self.state)),
            what="the last child to become a daemon",
        )

    def test_up_that_was_killed_half_way(self):
        """Daemons that were started in the moment of its end were found by nobody: `down` left them."""
        for number in range(12):
            with self.cluster.popen("local", "up", "-n", "8", "-d", "1") as up:
                # `up` itself and some daemons: each kill falls into another moment of the starts.
                wait_until(
                    lambda: len(processes_of(self.state)) > 1 + number % 5, what="the first daemons"
                )
                up.kill()
                up.communicate(timeout=DEADLINE)
            self.wait_for_daemons()
            self.cluster.muster("local", "down", code=0)
            self.assertEqual(processes_of(self.state), [])
        with self.cluster.popen("local", "up", "-n", "3", "-d", "1") as up:
            wait_until(
                lambda: os.path.exists(self.state + "/processes"), what="the plan to be written"
            )
            up.kill()
            up.communicate(timeout=DEADLINE)
        self.wait_for_daemons()
        self.cluster.muster("local", "up", code=0)
        self.assertEqual(self.sizes(), {"n0": 1, "n1": 1, "n2": 1}, "the plan is carried out")

    def test_daemons_that_are_not_written_down(self):
        """Without its list of processes `status` said that none was started, `up` unlinked the endpoint of the living controller, and `down` said it was down."""
        self.cluster.muster("local", "up", "-n", "2", "-d", "3", code=0)
        pids = self.pids()
        os.unlink(self.state + "/processes")
        self.assertEqual(self.pids(), pids)
        self.cluster.muster("local", "up", code=0)
        self.assertEqual(self.pids(), pids)
        self.assertEqual(self.sizes(), {"n0": 3, "n1": 3})
        self.kill(2)
        self.cluster.muster("local", "up", code=0)
        self.assertEqual(self.sizes(), {"n0": 3, "n1": 3}, "it was written down again")
        os.unlink(self.state + "/processes")
        self.cluster.muster("local", "down", code=0)
        self.assertEqual(processes_of(self.state), [])
        self.cluster.muster("local", "status", code=10)

    def test_up_that_cannot_write_starts_nothing(self):
        """An agent was started and forgotten when the disk was full; the next one was refused its directory, and `up` said that all were up."""
        self.cluster.muster("local", "up", "-n", "2", "-d", "1", code=0)
        pids = self.kill(2)
        os.unlink(self.state + "/processes")
        os.mkdir(self.state + "/processes")  # no file can take its place
        failed = self.cluster.muster("local", "up", "-n", "2", code=70)
        self.assertIn("/processes'", failed.err)
        running = [pid for pid, _ in processes_of(self.state)]
        self.assertEqual(sorted(map(str, running)), sorted(pids[:2]))
        os.rmdir(self.state + "/processes")
        self.cluster.muster("local", "up", "-n", "2", code=0)
        self.assertEqual(self.sizes(), {"n0": 1, "n1": 1})

    def test_down_without_a_controller_says_that_jobs_go_on(self):
        """It said that the cluster was down, and the job started again with the next `up`."""
        self.cluster.muster("local", "up", "-n", "1", "-d", "1", code=0)
        self.cluster.submit(
            job("endless", "echo up; exec tail -f /dev/null", "{devices: 1, type: cpu}")
        )
        self.cluster.muster("wait", "endless", "--for", "running", "--timeout", "60s", code=0)
        self.kill(0)
        down = self.cluster.muster("local", "down", code=0)
        self.assertIn("its jobs could not be cancelled (the controller was gone)", down.err)
        self.assertEqual(processes_of(self.state), [])
        self.cluster.muster("local", "up", code=0)
        self.assertEqual(self.cluster.muster("ps", "-o", "name", code=0).out, "endless\n")
        self.assertEqual(self.cluster.muster("local", "down", code=0).err, "")

    def test_up_mends_a_controller_that_no_client_finds(self):
        """`status` said that all ran, and `up` waited until its time was up."""
        self.cluster.muster("local", "up", "-n", "1", "-d", "1", code=0)
        self.cluster.submit(
            job("endless", "echo up; exec tail -f /dev/null", "{devices: 1, type: cpu}")
        )
        self.cluster.muster("wait", "endless", "--for", "running", "--timeout", "60s", code=0)
        for name, what in (("controller.sock", "its socket"), ("endpoint", "its endpoint file")):
            pids = self.pids()
            os.unlink(f"{self.state}/{name}")
            status = self.cluster.muster("local", "status", code=13)
            self.assertIn(
                f"the controller runs, but {what} '{self.state}/{name}' is missing: 'muster local up' starts it anew",
                status.err,
            )
            up = self.cluster.muster("local", "up", code=0)
            self.assertIn(
                f"the controller ran, but {what} '{self.state}/{name}' is missing", up.err
            )
            now = self.pids()
            self.assertNotEqual(now[0], pids[0])
            self.assertEqual(now[1], pids[1])
            shown = json.loads(self.cluster.muster("show", "endless", "-o", "json", code=0).out)
            self.assertEqual((shown["phase"], shown["attempt"]), ("running", 1), "jobs go on")

    def test_up_says_why_agents_do_not_register(self):
        """After a loss of the journal it said only that time was up."""
        self.cluster.muster("local", "up", "-n", "1", "-d", "1", code=0)
        self.kill(0)
        os.rename(self.state + "/controller/journal", self.state + "/lost")
        self.assertIn(
            "it belongs to cluster",
            self.cluster.muster(
                "local", "up", "--controller-arg=--accept-loss", "--timeout", "3s"
            ).err,
        )

    def test_down_cancels_every_job(self):
        """Of more than a page of jobs the others came to life again with the next `local up`."""
        self.cluster.muster("local", "up", "--nodes", "1", "--devices", "1", code=0)
        for number in range(103):  # a page is 100
            self.cluster.submit(
                job(f"waits-{number}", "exec tail -f /dev/null", "{devices: 1, type: cpu}")
            )
        self.cluster.muster("local", "down", code=0)
        self.cluster.muster("local", "up", "--nodes", "1", "--devices", "1", code=0)
        self.assertEqual(self.cluster.muster("ps", "-o", "name", code=0).out, "")
        self.assertEqual(
            len(self.cluster.muster("ps", "-a", "-o", "name", code=0).out.split()), 103
        )

    def test_elsewhere(self):
        other = self.cluster.path("else where")
        up = self.cluster.muster("local", "up", "--nodes", "1", "--state-dir", other, code=0)
        try:
            self.assertIn("export MUSTER_CONTROLLER=", up.out)
            self.cluster.muster("ps", code=13)
            self.assertEqual(
                self.cluster.muster(
                    "node",
                    "ls",
                    "-o",
                    "name",
                    env={"MUSTER_CONTROLLER": other + "/endpoint"},
                    code=0,
                ).out,
                "n0\n",
            )
        finally:
            self.cluster.muster("local", "down", "--state-dir", other, code=0)

    def test_long_path(self):
        """No socket can have such a path: it is elsewhere, in a directory of this user alone."""
        other, runtime, link = (self.cluster.path(name) for name in ("x" * 100, "run", "link"))
        os.mkdir(runtime)
        os.symlink(runtime, link)

        def local(verb, *args, directory=runtime, **options):
            env = {"XDG_RUNTIME_DIR": directory, "MUSTER_LOCAL_DIR": other}
            return self.cluster.muster("local", verb, *args, env=env, **options)

        for mode, directory in ((0o755, runtime), (0o710, runtime), (0o700, link)):
            os.chmod(runtime, mode)
            refused = local("up", "--nodes", "1", directory=directory, code=11)
            self.assertIn(f"too long for one, in '{directory}'", refused.err)
            self.assertIn("it is not a directory of this user alone (mode 0700)", refused.err)
            self.assertEqual(os.listdir(runtime), [])
        local("up", "--nodes", "1", code=0)
        try:
            names = sorted(os.listdir(runtime))
            self.assertEqual(names[1:], [names[0] + ".lock"])
            self.assertRegex(names[0], r"^muster-[0-9a-f]{16}\.sock$")
            for name in names:
                self.assertEqual(os.stat(f"{runtime}/{name}").st_mode & 0o777, 0o600, name)
            with open(other + "/endpoint", encoding="utf-8") as file:
                self.assertEqual(json.load(file)["address"], f"unix:{runtime}/{names[0]}")
            self.cluster.muster("ps", env={"MUSTER_CONTROLLER": other + "/endpoint"}, code=0)
            local("status", code=0)
            local("up", code=0)
            self.assertEqual(sorted(os.listdir(runtime)), names, "what runs is left alone")
        finally:
            local("down", code=0)
        self.assertEqual(os.listdir(runtime), [], "neither the socket nor its lock is left")


if __name__ == "__main__":
    unittest.main()
