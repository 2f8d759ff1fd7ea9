#!/usr/bin/python3
"""What bad input gets: one clear sentence, the right exit code, nothing lost, and a cluster that works afterwards.

Every sentence is in tests/golden/errors.txt.  Run:  /usr/bin/python3 tests/integration/bad_input_test.py [--rewrite] [-v] [CASE]
"""

import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from cluster import DEADLINE, ROOT, Cluster, Done, binary, wait_until
from golden import Golden, GoldenCase, replaced
from protos import compile_protos

HEAD = """# What people are told when something is wrong: what happened, to which thing, what would help. Reviewed as text.
# Written by tests/integration/bad_input_test.py --rewrite. <dir> is the test's directory; ids, ports, pids and ages are replaced.
"""
GOLDEN = Golden(os.path.join(ROOT, "tests/golden/errors.txt"), HEAD, "--rewrite" in sys.argv)

TRUE = (
    'name: {name}\nengine: command\nlaunch: {{run: "true"}}\nresources: {{devices: 1, type: cpu}}\n'
)

TEN_MISTAKES = """\
name: Bad Name
engine: torch
colour: red
launch:
  script: train.py
  per: host
  args: "--load ${resume.dirr}"
resources:
  nodes: none
  devices: -4
runtime:
  env: {RANK: 3}
recovery:
  max_restarts: many
  window: soon
schedule: {priority: 7000000000}
"""


def last_log_line(text):
    """A daemon's last complaint without time and place."""
    lines = [
        line
        for line in text.strip().split("\n")
        if re.search(r"\b(error|warn|warning|critical)\b|^muster-", line, re.IGNORECASE)
    ]
    line = lines[-1] if lines else text.strip().split("\n")[-1]
    return re.sub(r"^\S*\d\d:\d\d:\d\d\S*\s+(\w+ +[\w-]+\[\d+\] )?", "", line)


def open_stream(first, done):
    """Requests of a stream that its sender does not close."""
    yield first
    done.wait(DEADLINE)


class Case(GoldenCase):
    golden = GOLDEN

    def check_daemon_output(self, cluster, title, daemon, code):
        got, text = daemon.ended()
        self.assertEqual(got, code, text)
        GOLDEN.check(self, title, replaced(cluster, f"exit {code}\n{last_log_line(text)}"))


class OneCluster(Case):
    """A controller and two nodes with two devices each; after every test a small job still runs to its end."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        try:
            cls.cluster.controller()
            cls.agents = {name: cls.start_agent(name) for name in ("n0", "n1")}
        except BaseException:
            cls.cluster.close()
            raise

    @classmethod
    def start_agent(cls, name):
        """Ranks get its PATH, and a sentence names it."""
        agent = cls.cluster.agent(
            name, env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        )
        agent.wait_for("attached to the controller")
        return agent

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def tearDown(self):
        self.cluster.trivial()

    def jobs(self):
        return json.loads(self.cluster.muster("ps", "-a", "-o", "json", code=0).out)["items"]

    def test_ten_mistakes(self):
        before = len(self.jobs())
        path = self.cluster.spec(TEN_MISTAKES, "ten.yaml")
        done = self.cluster.muster("run", path)
        self.check_output(self.cluster, "ten mistakes in one spec", done, 64)
        places = re.findall(r"^.*ten\.yaml:(\d+):(\d+): .+$", done.err, re.MULTILINE)
        self.assertEqual(len(places), 10, done.err)
        self.assertEqual(
            places,
            sorted(places, key=lambda place: (int(place[0]), int(place[1]))),
            "in the order of the file",
        )
        self.assertEqual(self.cluster.muster("validate", path, code=64).err, done.err)
        self.assertEqual(len(self.jobs()), before, "nothing was submitted")

    def test_spec_files(self):
        self.check_output(
            self.cluster,
            "no such spec file",
            self.cluster.muster("run", self.cluster.path("none.yaml")),
            64,
        )
        self.check_output(
            self.cluster,
            "spec file is a directory",
            self.cluster.muster("run", self.cluster.dir),
            64,
        )
        self.check_output(
            self.cluster,
            "spec over 1 MiB",
            self.cluster.muster(
                "run", self.cluster.write("big.yaml", "#" * (1 << 20) + "\nname: x\n")
            ),
            64,
        )
        self.check_output(
            self.cluster,
            "spec over 1 MiB on standard input",
            self.cluster.muster("run", "-", stdin="#" * (1 << 20) + "\nname: x\n"),
            64,
        )
        with open("/dev/zero", "rb") as endless:  # it was read until memory was full
            process = self.cluster.popen("run", "-", stdin=endless)
            self.assertIn("longer than 1 MiB", process.communicate(timeout=DEADLINE)[1])
            self.assertEqual(process.returncode, 64)
        self.check_output(
            self.cluster, "empty spec on standard input", self.cluster.muster("run", "-"), 64
        )

    def test_never_satisfiable(self):
        before = len(self.jobs())
        spec = TRUE.format(name="large")
        for title, more in (
            ("more nodes than there are", "resources.nodes=3"),
            ("more devices than a node has", "resources.devices=16"),
            ("another type of device", "resources.type=ascend"),
            ("a device index that is not there", "resources.devices=[0,7]"),
            ("a host that is not there", "resources.hosts=[n0,n9]"),
            ("an interface that is not there", "network.interface=ib9"),
        ):
            with self.subTest(title):
                extra = ["--set", "resources.nodes=2"] if "hosts" in more else []
                done = self.cluster.muster(
                    "run", "-d", self.cluster.spec(spec, "large.yaml"), "--set", more, *extra
                )
                self.check_output(self.cluster, "never satisfiable: " + title, done, 2)
        self.assertEqual(len(self.jobs()), before, "nothing was submitted")

    def test_script_that_is_not_there(self):
        spec = "name: no-script\nengine: torch\nlaunch: {script: none.py}\nresources: {devices: 1, type: cpu}\n"
        done = self.cluster.muster(
            "run", "-q", self.cluster.spec(spec, "no-script.yaml"), "--timeout", "60s"
        )
        self.check_output(self.cluster, "a script that does not exist", done, 1)
        self.check_output(
            self.cluster,
            "a script that does not exist: why",
            self.cluster.muster("why", "no-script"),
            0,
        )

    def test_program_that_is_not_there(self):
        spec = "name: no-program\nengine: command\nlaunch: {run: no-such-program --x}\nresources: {devices: 1, type: cpu}\n"
        done = self.cluster.muster(
            "run", "-q", self.cluster.spec(spec, "no-program.yaml"), "--timeout", "60s"
        )
        self.check_output(self.cluster, "a program that does not exist", done, 1)

    def test_chains(self):
        before = len(self.jobs())
        stages = "stages:\n  one: {launch: {run: 'true'}}\n  two: {launch: {run: 'true'}}\n"
        chain = self.cluster.spec(
            "name: pipe\nengine: command\nresources: {devices: 1, type: cpu}\n" + stages,
            "pipe.yaml",
        )
        alone = self.cluster.spec(TRUE.format(name="alone"), "alone.yaml")
        self.check_output(
            self.cluster,
            "a chain: a stage that is not there",
            self.cluster.muster("plan", chain, "--stage", "tow"),
            64,
        )
        self.check_output(
            self.cluster,
            "a chain: a stage of a spec without stages",
            self.cluster.muster("plan", alone, "--stage", "one"),
            64,
        )
        for verb in (["run", "-d"], ["plan"]):
            done = self.cluster.muster(*verb, chain, "--set", "stages.two.resources.nodes=3")
            self.check_output(
                self.cluster, f"a chain: a stage that no nodes can run: {verb[0]}", done, 2
            )
        self.assertEqual(
            len(self.jobs()), before, "nothing was submitted: all of a chain, or nothing"
        )
        self.cluster.muster(
            "run", "-q", "--request-id", "of-the-pipe", chain, "--timeout", "60s", code=0
        )
        for title, args in (
            ("with another spec", ["--set", "stages.two.runtime.env.A=b"]),
            ("with another stage", ["--set", "stages={three: {launch: {run: 'true'}}}"]),
        ):
            done = self.cluster.muster("run", "-d", "--request-id", "of-the-pipe", chain, *args)
            self.check_output(
                self.cluster, f"a chain: a request id that was given before, {title}", done, 12
            )
        late = (
            "name: late\nengine: torch\nlaunch: {run: 'true'}\nresources: {devices: 1, type: cpu}\n"
        )
        for title, start in (
            ("a job that has saved nothing", "job:pipe.one"),
            ("a step of a job that has saved nothing", "job:pipe.two, step: 7"),
        ):
            done = self.cluster.muster(
                "run",
                "-d",
                self.cluster.spec(late + f"start: {{as: resume, from: {start}}}\n", "late.yaml"),
            )
            self.check_output(self.cluster, f"start: {title}", done, 2)
        for more, key in (
            ("start: {as: resume, from: job:nobody}\n", "start.from"),
            ("inputs: {x: job:nobody/out}\n", "inputs.x"),
        ):
            done = self.cluster.muster(
                "run", "-d", self.cluster.spec(late + more, "late.yaml"), code=10
            )
            self.assertIn(
                f"submitting job 'late': {key}: finding job 'nobody': no job has this id, prefix or name; 'muster ps -a' lists them; the newest are '",
                done.err,
            )

    def test_unknown_job(self):
        for verb in (
            ["show"],
            ["why"],
            ["logs"],
            ["events"],
            ["cancel"],
            ["wait"],
            ["watch"],
            ["resume"],
            ["ckpt", "ls"],
            ["env", "--rank", "0"],
            ["ranktable", "show"],
        ):
            with self.subTest(verb[0]):
                done = self.cluster.muster(*verb, "nothing")
                self.check_output(self.cluster, f"unknown job: {verb[0]}", done, 10)
        self.check_output(
            self.cluster, "unknown chain: wait", self.cluster.muster("wait", "chain:nothing"), 10
        )
        self.check_output(
            self.cluster,
            "unknown key: explain",
            self.cluster.muster("explain", "resources.devises"),
            10,
        )
        self.check_output(
            self.cluster, "unknown node: show", self.cluster.muster("node", "show", "n9"), 10
        )
        for verb in ("declare-dead", "drain", "undrain", "label", "rm"):
            more = ["rack=r1"] if verb == "label" else []
            self.check_output(
                self.cluster,
                f"unknown node: {verb}",
                self.cluster.muster("node", verb, "n9", *more),
                10,
            )

    def test_rank_tables_that_are_not_there(self):
        spec = TRUE.format(name="tableless")
        self.cluster.muster("run", "-q", self.cluster.spec(spec), "--timeout", "60s", code=0)
        self.check_output(
            self.cluster,
            "a rank table that is not there: the engine needs none",
            self.cluster.muster("ranktable", "show", "tableless"),
            10,
        )
        self.check_output(
            self.cluster,
            "a rank table that is not there: attempt",
            self.cluster.muster("ranktable", "show", "tableless", "--attempt", "2"),
            10,
        )

    def test_logs_that_are_not_there(self):
        spec = "name: four\nengine: command\nlaunch: {run: echo hello}\nresources: {nodes: 2, devices: 2, type: cpu}\n"
        self.cluster.muster("run", "-q", self.cluster.spec(spec), "--timeout", "60s", code=0)
        for title, args in (
            ("rank", ["--rank", "2-5"]),
            ("node", ["--node", "n9"]),
            ("rank of a node", ["--node", "n0", "--rank", "3"]),
            ("attempt", ["--attempt", "2"]),
        ):
            with self.subTest(title):
                self.check_output(
                    self.cluster,
                    f"logs that are not there: {title}",
                    self.cluster.muster("logs", "four", *args),
                    10,
                )

    def test_name_taken_and_cancel_twice(self):
        with self.cluster.gate("taken") as gate:
            spec = f"name: taken\nengine: command\nlaunch: {{run: [sh, -c, 'read x < {gate.path}']}}\nresources: {{devices: 1, type: cpu}}\n"
            first = self.cluster.submit(spec)
            self.cluster.muster("wait", first, "--for", "running", "--timeout", "60s", code=0)
            self.check_output(
                self.cluster,
                "a name taken by a live job",
                self.cluster.muster("run", "-d", self.cluster.spec(spec, "taken.yaml")),
                12,
            )
            self.check_output(
                self.cluster,
                "declaring a living node dead",
                self.cluster.muster(
                    "node",
                    "declare-dead",
                    json.loads(self.cluster.muster("show", first, "-o", "json").out)["attempts"][0][
                        "nodes"
                    ][0]["node"],
                ),
                12,
            )
            self.cluster.muster("cancel", "taken", code=0)
            self.cluster.muster("wait", first, code=3)
            again = self.cluster.muster("cancel", first)
            self.check_output(self.cluster, "a cancelled job cancelled again", again, 12)
            self.assertEqual(self.cluster.muster("wait", first).code, 3, "still cancelled")
            second = self.cluster.submit(spec)  # the name is free again
            self.assertNotEqual(first, second)
            gate.open()
            self.cluster.muster("wait", second, code=0)

    def test_ambiguous_prefix(self):
        self.cluster.trivial()
        self.cluster.trivial()
        ids = sorted(job["id"] for job in self.jobs())
        common = os.path.commonprefix(ids[-2:])
        self.assertTrue(common, ids)
        done = self.cluster.muster("show", common)
        self.assertEqual(done.code, 12, str(done))
        self.assertIn("the prefix is ambiguous", done.err)
        self.assertEqual(
            self.cluster.muster("show", ids[-1], "-o", "name", code=0).out.strip(), ids[-1]
        )
        one_more = ids[-1][: len(common) + 1]
        self.assertEqual(
            self.cluster.muster("show", one_more, "-o", "name", code=0).out.strip(),
            ids[-1],
            "unique prefix",
        )

    def test_usage(self):
        path = self.cluster.spec(TRUE.format(name="usage"), "usage.yaml")
        for title, args in (
            ("no verb", []),
            ("unknown verb", ["rum"]),
            ("unknown verb, and help wanted", ["frob", "--help"]),
            ("a verb of another scheduler", ["squeue"]),
            (
                "unknown verb of a group, behind an option",
                ["--controller", "unix:x", "node", "list", "--help"],
            ),
            ("a time-out without a unit", ["wait", "x", "--timeout", "5"]),
            ("unknown option", ["ps", "--al"]),
            ("no job given", ["show"]),
            ("unknown output format", ["ps", "-o", "xml"]),
            ("a time-out that is none", ["wait", "x", "--timeout", "soon"]),
            ("ranks that are none", ["logs", "x", "--rank", "a-b"]),
            ("an expression that is none", ["logs", "x", "--grep", "("]),
            ("--set without a value", ["run", path, "--set", "resources.nodes"]),
            ("--set of an unknown key", ["run", path, "--set", "resources.node=2"]),
            ("wait for something else", ["wait", "x", "--for", "lunch"]),
            ("a time that is none", ["logs", "x", "--since", "yesterday"]),
            ("an attempt that is none", ["logs", "x", "--attempt", "0"]),
            ("raw bytes of every rank", ["logs", "x", "--raw"]),
            ("a number below nothing", ["logs", "x", "--tail", "-1"]),
            ("a number that fits nowhere", ["logs", "x", "--tail", "99999999999999999999"]),
            ("an index below nothing", ["events", "x", "--from", "-1"]),
            ("no devices", ["local", "up", "--devices", "0"]),
        ):
            with self.subTest(title):
                done = self.cluster.muster(*args)
                self.check_output(self.cluster, "usage: " + title, done, 64)

    def test_second_agent_with_one_name(self):
        second = self.cluster.agent("n0", state=self.cluster.path("other-n0"), wait=False)
        second.wait_for("the name is taken by")
        complaint = [
            line for line in second.logged().split("\n") if "the name is taken by" in line
        ][0]
        GOLDEN.check(
            self, "a second agent with one name", replaced(self.cluster, last_log_line(complaint))
        )
        self.cluster.trivial()
        second.stop()

    def test_second_agent_on_a_copy_of_the_state_directory(self):
        """A cloned image or a restored backup: the two took turns on the name, and each started what was ordered."""
        state, copy = self.cluster.path("agent-n0"), self.cluster.path("copied-n0")
        # Of a directory in which nobody removes anything meanwhile: neither an agent nor the worker of a test before.
        wait_until(
            lambda: not os.listdir(os.path.join(state, "runs")),
            what="the run directories to be gone",
        )
        self.agents["n0"].stop()
        shutil.copytree(state, copy, ignore=shutil.ignore_patterns("wake_fifo"))
        self.agents["n0"] = self.start_agent("n0")
        second = self.cluster.agent("n0", state=copy, wait=False)
        second.wait_for("uses a copy of")
        complaint = [line for line in second.logged().split("\n") if "uses a copy of" in line][0]
        GOLDEN.check(
            self,
            "a second agent on a copy of the state directory",
            replaced(self.cluster, last_log_line(complaint)),
        )
        self.cluster.trivial()
        second.stop()

    def test_second_agent_on_one_state_directory(self):
        second = self.cluster.agent("n0", wait=False)
        self.check_daemon_output(self.cluster, "a second agent on one state directory", second, 12)

    def test_second_controller_on_one_state_directory(self):
        other = Cluster()
        try:
            daemon = other.controller(state=self.cluster.path("controller"), wait=False)
            got, text = daemon.ended()
            self.assertEqual(got, 70, text)
            GOLDEN.check(
                self,
                "a second controller on one state directory",
                replaced(self.cluster, f"exit {got}\n{last_log_line(text)}"),
            )
        finally:
            other.close()

    def test_another_clusters_agent(self):
        with Cluster() as other:
            other.controller()
            agent = other.agent("n7")
            agent.wait_for("attached to the controller")  # it has written down where it belongs
            agent.stop()
            stranger = self.cluster.agent("n7", state=other.path("agent-n7"), wait=False)
            self.check_daemon_output(self.cluster, "another cluster's agent", stranger, 70)
            self.assertNotIn(
                "n7", self.cluster.muster("node", "ls", "-o", "name", code=0).out.split()
            )

    def test_another_users_hand(self):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            print("skipped: another user's hand needs root and setpriv", file=sys.stderr)
            self.skipTest("needs root and setpriv")
        before = len(self.jobs())
        binary = self.cluster.path("binary")
        shutil.copy(self.cluster.command()[0], binary)
        os.chmod(binary, 0o755)
        os.chmod(self.cluster.dir, 0o755)
        spec = self.cluster.spec(TRUE.format(name="hand"), "hand.yaml")
        try:
            for title, controller in (
                ("through the socket", "unix:" + self.cluster.path("s")),
                ("through the endpoint file", self.cluster.endpoint),
            ):
                command = [
                    "setpriv",
                    "--reuid=65534",
                    "--regid=65534",
                    "--clear-groups",
                    binary,
                    "--controller",
                    controller,
                    "run",
                    "-d",
                    spec,
                ]
                done = subprocess.run(
                    command,
                    env=self.cluster.env,
                    capture_output=True,
                    text=True,
                    timeout=60,
                    cwd="/",
                )
                with self.subTest(title):
                    self.check_output(
                        self.cluster,
                        "another user's hand: " + title,
                        Done(["muster", *command[5:]], done.returncode, done.stdout, done.stderr),
                        11,
                    )
        finally:
            os.chmod(self.cluster.dir, 0o700)
        self.assertEqual(len(self.jobs()), before, "nothing was submitted")

    def test_old_and_new_releases(self):
        import grpc

        classes = self.cluster.path("classes")
        os.mkdir(classes)
        sys.path.insert(0, classes)
        try:
            protos = sorted(glob.glob(os.path.join(ROOT, "proto/muster/v1/*.proto")))
            compile_protos(classes, *protos, includes=[os.path.join(ROOT, "proto")])
            from google.protobuf import duration_pb2
            from muster.v1 import agent_service_pb2, job_service_pb2

            with grpc.insecure_channel("unix:" + self.cluster.path("s")) as channel:
                # A method of a release to come.
                call = channel.unary_unary("/muster.v1.JobService/PauseJob")
                with self.assertRaises(grpc.RpcError) as refused:
                    call(b"", timeout=30)
                self.assertEqual(refused.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
                # A field of a release to come is passed over: field 999, "later".
                get = channel.unary_unary(
                    "/muster.v1.JobService/ListJobs",
                    response_deserializer=job_service_pb2.ListJobsResponse.FromString,
                )
                get(b"\xba\x3e\x05later", timeout=30)
                # Bytes that are no message at all.
                with self.assertRaises(grpc.RpcError) as refused:
                    get(b"\xff\xff\xff", timeout=30)
                self.assertIn(
                    refused.exception.code(),
                    (
                        grpc.StatusCode.INTERNAL,
                        grpc.StatusCode.INVALID_ARGUMENT,
                        grpc.StatusCode.UNIMPLEMENTED,
                    ),
                )  # gRPC 1.51 itself answers
                # A spec over the API is checked again: YAML is not the only door.
                submit = channel.unary_unary(
                    "/muster.v1.JobService/SubmitJob",
                    request_serializer=job_service_pb2.SubmitJobRequest.SerializeToString,
                    response_deserializer=job_service_pb2.SubmitJobResponse.FromString,
                )
                with self.assertRaises(grpc.RpcError) as refused:
                    submit(job_service_pb2.SubmitJobRequest(), timeout=30)
                self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
                GOLDEN.check(self, "an empty spec over the API", refused.exception.details())
                # Agents that have no protocol, or no cluster, in common with this controller.
                connect = channel.stream_stream(
                    "/muster.v1.AgentService/Connect",
                    request_serializer=agent_service_pb2.ConnectRequest.SerializeToString,
                    response_deserializer=agent_service_pb2.ConnectResponse.FromString,
                )
                sound = dict(
                    protocol_min=1,
                    protocol_max=1,
                    version="9.9.9",
                    node="n8",
                    instance="0" * 32,
                    incarnation="b/1/1",
                    boot_id="b",
                    uptime=duration_pb2.Duration(seconds=60),
                )
                for title, change in (
                    ("a newer agent", dict(protocol_min=99, protocol_max=99)),
                    ("an agent without a protocol", dict(protocol_min=0, protocol_max=0)),
                    ("an agent of another cluster", dict(cluster_id="0123456789abcdef")),
                    ("an agent that has seen a later epoch", dict(highest_epoch=1000)),
                    ("an agent without a name", dict(node="")),
                    ("an agent without an incarnation", dict(incarnation="")),
                    ("an agent without its machine's uptime", dict(uptime=None)),
                ):
                    with self.subTest(title):
                        done = threading.Event()
                        hello = agent_service_pb2.ConnectRequest(
                            hello=agent_service_pb2.Hello(**{**sound, **change})
                        )
                        with self.assertRaises(grpc.RpcError) as refused:
                            list(connect(open_stream(hello, done), timeout=30))
                        done.set()
                        GOLDEN.check(
                            self,
                            "on the agents' stream: " + title,
                            replaced(
                                self.cluster,
                                f"{refused.exception.code().name}: {refused.exception.details()}",
                            ),
                        )
        finally:
            sys.path.remove(classes)
        self.assertEqual(
            sorted(self.cluster.muster("node", "ls", "-o", "name", code=0).out.split()),
            ["n0", "n1"],
        )


class Cards(Case):
    """Two nodes with Ascend cards, as written lists have them: what HCCL would refuse, what a node cannot be sent, a setup that fails."""

    TABLE = "name: {name}\nengine: mindformers\nlaunch: {{config: a.yaml}}\nresources: {{nodes: {nodes}, devices: 2, type: ascend}}\nrecovery: {{max_restarts: 0}}\n"

    def cluster(self, cards):
        cluster = Cluster()
        self.addCleanup(cluster.close)
        cluster.controller()
        for name, lines in cards.items():
            inventory = cluster.write(name + ".devices", "\n".join(lines) + "\n")
            cluster.agent(name, args=["--devices-from", inventory])
        cluster.write("run_mindformer.py", "print('never')\n")
        return cluster

    def test_cards_without_addresses(self):
        cluster = self.cluster(
            {name: [f"id={i} type=ascend910b" for i in range(2)] for name in ("n0", "n1")}
        )
        spec = cluster.spec(self.TABLE.format(name="table", nodes=2), "table.yaml")
        self.check_output(
            cluster,
            "a rank table of cards without addresses",
            cluster.muster("run", "-q", spec, "--timeout", "60s"),
            2,
        )
        self.check_output(
            cluster,
            "a rank table of cards without addresses: plan",
            cluster.muster("plan", spec),
            2,
        )

    def test_two_cards_with_one_address(self):
        cluster = self.cluster(
            {
                name: [f"id={i} type=ascend910b address=192.168.0.{i}" for i in range(2)]
                for name in ("n0", "n1")
            }
        )
        spec = cluster.spec(self.TABLE.format(name="table", nodes=2), "table.yaml")
        self.check_output(
            cluster,
            "a rank table with one address twice",
            cluster.muster("run", "-q", spec, "--timeout", "60s"),
            1,
        )

    def test_a_table_that_is_too_large(self):
        cluster = self.cluster({"n0": ["id=0 type=ascend910b address=192.168.0.1"]})
        spec = cluster.spec(self.TABLE.format(name="table", nodes=32768), "table.yaml")
        self.check_output(
            cluster,
            "a rank table that is more than a node can be sent",
            cluster.muster("run", "-d", spec),
            64,
        )

    def test_a_setup_that_fails(self):
        cluster = self.cluster({"n0": ["id=0 type=ascend910b"]})
        spec = "name: setup\nengine: command\nlaunch: {run: 'true'}\nresources: {devices: 1}\nruntime: {setup: ['echo looking for the toolkit', 'exit 3']}\nrecovery: {max_restarts: 0}\n"
        self.check_output(
            cluster,
            "a setup that fails",
            cluster.muster("run", "-q", cluster.spec(spec, "setup.yaml"), "--timeout", "60s"),
            1,
        )


class NoNode(Case):
    def test_waits_for_a_node(self):
        with Cluster() as cluster:
            cluster.controller()
            job = cluster.submit(TRUE.format(name="early"))
            self.check_output(cluster, "no node registered: why", cluster.muster("why", "early"), 0)
            self.check_output(
                cluster, "no node registered: node ls", cluster.muster("node", "ls"), 0
            )
            self.check_output(
                cluster,
                "no node registered: wait with a time-out",
                cluster.muster("wait", "early", "--timeout", "50ms"),
                4,
            )
            cluster.agent("n0")
            cluster.muster("wait", job, code=0)

    def test_no_room_now(self):
        with Cluster() as cluster, cluster.gate() as gate:
            cluster.controller()
            cluster.agent("n0")
            gated = cluster.submit(
                f"name: first\nengine: command\nlaunch: {{run: [sh, -c, 'read x < {gate.path}']}}\nresources: {{devices: 2, type: cpu}}\n"
            )
            next_one = cluster.submit(TRUE.format(name="second"))
            self.check_output(cluster, "all devices busy: why", cluster.muster("why", "second"), 0)
            gate.open(2)
            cluster.muster("wait", gated, code=0)
            cluster.muster("wait", next_one, code=0)


class Unreachable(Case):
    def test_nobody_there(self):
        with Cluster() as cluster:
            self.check_output(cluster, "no endpoint file", cluster.muster("ps"), 13)
            self.check_output(
                cluster,
                "no socket",
                cluster.muster("--controller", "unix:" + cluster.path("s"), "ps"),
                13,
            )
            with Cluster() as other, socket.socket() as taken:
                other.controller()
                user = other.credentials(user="ann")
                taken.bind(("127.0.0.1", 0))  # bound, nobody listens: refused
                address = "127.0.0.1:%d" % taken.getsockname()[1]
                done = other.muster("--controller", address, "--credentials", user, "ps")
                self.check_output(other, "nobody listens", done, 13)
            self.check_output(
                cluster, "not an address", cluster.muster("--controller", "local host:x", "ps"), 64
            )
            cluster.write("endpoint", "{}")
            self.check_output(cluster, "not an endpoint file", cluster.muster("ps"), 64)
            os.unlink(cluster.endpoint)
            self.check_output(
                cluster,
                "run without a controller",
                cluster.muster("run", cluster.spec(TRUE.format(name="x"), "x.yaml")),
                13,
            )
            self.check_output(
                cluster,
                "local status without a cluster",
                cluster.muster("local", "status", "--state-dir", cluster.path("none")),
                10,
            )
            self.check_output(
                cluster,
                "local down without a cluster",
                cluster.muster("local", "down", "--state-dir", cluster.path("none")),
                10,
            )

    def test_controller_gone_and_back(self):
        with Cluster() as cluster:
            daemon = cluster.controller()
            cluster.agent("n0")
            name = cluster.trivial()
            daemon.stop(signal.SIGKILL)
            self.check_output(cluster, "the controller was killed", cluster.muster("ps"), 13)
            cluster.controller()
            cluster.muster("show", name, code=0)  # nothing lost
            cluster.trivial()


class Certificates(Case):
    """Over TCP: callers without a certificate, or with one that does not do, and how one is made."""

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.controller = self.cluster.controller(listen="127.0.0.1:0")
        self.address = self.cluster.tcp_address()
        self.user = self.cluster.credentials(user="ann")

    def ps(self, file, env=None):
        words = ["--credentials", file] if file else []
        return self.cluster.muster("--controller", self.address, *words, "ps", env=env)

    def check_complaint(self, title, agent):
        """What an agent that connects to nobody, and goes on trying, has logged."""
        text = "finding the controller"
        agent.wait_for(text)
        (line,) = (line for line in agent.logged().split("\n") if text in line)
        GOLDEN.check(self, title, replaced(self.cluster, last_log_line(line)))
        agent.stop()
        self.assertEqual(self.cluster.output("node", "ls", "-o", "name"), "")

    def test_files(self):
        self.assertEqual(self.ps(self.user).code, 0)
        self.check_output(self.cluster, "no credentials for host:port", self.ps(None), 11)
        with open(self.user, encoding="ascii") as file:
            key, end, _ = file.read().partition("-----END PRIVATE KEY-----\n")
        self.assertTrue(end)
        for title, file, code in (
            ("that is not there", self.cluster.path("none"), 10),
            ("without a PEM block", self.cluster.write("words.pem", "let me in\n", 0o600), 64),
            ("with a key alone", self.cluster.write("key.pem", key + end, 0o600), 64),
        ):
            self.check_output(self.cluster, "a credentials file " + title, self.ps(file), code)
        os.chmod(self.user, 0o640)
        self.check_output(
            self.cluster, "a credentials file that others may read", self.ps(self.user), 11
        )
        self.cluster.muster("ps", env={"MUSTER_CREDENTIALS": self.user}, code=0)  # by the socket
        done = self.cluster.muster("--credentials", self.user, "ps")
        self.check_output(self.cluster, "credentials for a unix socket", done, 64)

    def test_clocks(self):
        ending = self.cluster.path("ending.pem")
        self.cluster.output("cert", "issue", "--user", "eve", "--lifetime", "1h", "-o", ending)
        self.assertEqual(self.ps(ending).code, 0)
        for title, file, hours in (
            ("that has ended", ending, 2),
            ("that does not count yet", self.user, -25),
        ):
            wrong = {"MUSTER_WALL_CLOCK_OFFSET_MS": str(hours * 3_600_000)}
            self.check_output(self.cluster, "a certificate " + title, self.ps(file, wrong), 11)
            shown = self.cluster.muster("cert", "show", file, env=wrong)
            self.check_output(self.cluster, f"a certificate {title}: show", shown, 11)
        self.assertEqual(self.ps(ending).code, 0, "its file is as it was")
        year = {"MUSTER_WALL_CLOCK_OFFSET_MS": str(365 * 24 * 3_600_000)}
        self.check_output(
            self.cluster, "a clock that cannot be so wrong", self.ps(ending, year), 64
        )

    def test_an_agent_whose_certificate_has_ended(self):
        """It tries again without end. What its clock says is another text each second, and still it has one line."""
        ending = self.cluster.path("node-n0.pem")
        self.cluster.output("cert", "issue", "--node", "n0", "--lifetime", "1h", "-o", ending)
        wrong = {"MUSTER_WALL_CLOCK_OFFSET_MS": str(2 * 3_600_000)}
        agent = self.cluster.agent("n0", tcp=True, env=wrong, wait=False)
        agent.wait_for("the certificate of node 'n0' ended at")
        later = time.monotonic() + 2.5
        wait_until(lambda: time.monotonic() > later, agent.pid_fd, what="more tries of the agent")
        self.assertEqual(agent.logged().count("the certificate of node 'n0' ended at"), 1)

    def test_another_clusters(self):
        theirs = self.cluster.path("theirs.pem")
        with Cluster() as other:
            other.controller(listen="127.0.0.1:0")
            shutil.copy(other.credentials(user="ann"), theirs)
        self.check_output(self.cluster, "a certificate of another cluster", self.ps(theirs), 13)

    def test_roles(self):
        node = self.cluster.credentials(node="n0")
        self.check_output(self.cluster, "a client with a node's certificate", self.ps(node), 11)
        for title, name, file in (
            ("a user's certificate", "n0", self.user),
            ("another node's certificate", "n1", node),
            ("no credentials for host:port", "n0", None),
        ):
            args = ["--credentials", file] if file else []
            agent = self.cluster.agent(name, controller=self.address, args=args, wait=False)
            self.check_complaint("an agent with " + title, agent)
        self.cluster.agent("n0", tcp=True)
        self.cluster.trivial()

    def test_issuing(self):
        made = self.cluster.path("made.pem")
        over_tcp = ["--controller", self.address, "--credentials", self.user]
        for title, before, words, file, code in (
            ("over TCP", over_tcp, ["--user", "eve"], made, 11),
            ("to a file that is there", [], ["--user", "ann"], self.user, 12),
            ("for a name that is none", [], ["--node", "../x"], made, 64),
            ("for nobody", [], [], made, 64),
            ("for two", [], ["--node", "n0", "--user", "ann"], made, 64),
            ("for a short time", [], ["--node", "n0", "--lifetime", "59m"], made, 64),
            ("to no directory", [], ["--node", "n0"], self.cluster.path("none", "made.pem"), 10),
            ("to no file", [], ["--node", "n0"], "", 64),
            ("to stdout", [], ["--node", "n0"], "-", 64),
        ):
            with self.subTest(title):
                done = self.cluster.muster(*before, "cert", "issue", *words, "-o", file)
                self.check_output(self.cluster, f"a certificate is issued {title}", done, code)
                self.assertFalse(os.path.exists(made))
        self.assertEqual(self.ps(self.user).code, 0, "the file that was there is as it was")

    def test_tokens(self):
        made = self.cluster.path("made.token")
        over_tcp = ["--controller", self.address, "--credentials", self.user]
        for title, before, words, code in (
            ("a token is made over TCP", over_tcp, ["token", "create", "--node", "n9", "-o", made], 11),
            ("a token is made for two patterns", [], ["token", "create", "--node", "a*b*", "-o", made], 64),
            ("a token is made for no use", [], ["token", "create", "--node", "n9", "--uses", "0", "-o", made], 64),
            ("a token is made for long", [], ["token", "create", "--node", "n9", "--lifetime", "31d", "-o", made], 64),
            ("a token is made into a file that is there", [], ["token", "create", "--node", "n9", "-o", self.user], 12),
            ("a name that is none is replaced", [], ["node", "replace", "../x", "-o", made], 64),
            ("a token that is not there is revoked", [], ["token", "revoke", "1f2e3d4c5b"], 10),
        ):  # fmt: skip
            with self.subTest(title):
                done = self.cluster.muster(*before, *words)
                self.check_output(self.cluster, title, done, code)
                self.assertFalse(os.path.exists(made))

    def test_secrets(self):
        over_tcp = ["--controller", self.address, "--credentials", self.user]
        for title, before, words, value, code in (
            ("a secret is set with no value", [], ["set", "hf"], "", 64),
            ("a secret is set with a value that is too long", [], ["set", "hf"], "x" * (64 * 1024 + 1), 64),
            ("a secret is set with megabytes", [], ["set", "hf"], "x" * (2 << 20), 64),
            ("a secret is set with a zero byte", [], ["set", "hf"], "a\0b", 64),
            ("a secret is set under a name that is none", [], ["set", "../x"], "v", 64),
            ("a secret is set from a file that is not there", [], ["set", "hf", "--file", "nowhere"], "", 10),
            ("a shared secret is set by a user", over_tcp, ["set", "hf", "--shared"], "v", 11),
            ("the secrets of all are listed by a user", over_tcp, ["ls", "--all"], "", 11),
            ("another user's secret is removed by a user", over_tcp, ["rm", "hf", "--owner", "bob"], "", 11),
            ("a shared secret of an owner is removed", [], ["rm", "hf", "--shared", "--owner", "bob"], "", 64),
            ("a secret that is not there is removed", [], ["rm", "hf"], "", 10),
        ):  # fmt: skip
            with self.subTest(title):
                done = self.cluster.muster(*before, "secret", *words, stdin=value)
                self.check_output(self.cluster, title, done, code)
        self.assertEqual(self.cluster.output("secret", "ls", "-o", "name"), "")

    def test_stores(self):
        over_tcp = ["--controller", self.address, "--credentials", self.user]
        no_pem = self.cluster.write("no.pem", "\x01 no certificate\n")
        s3 = ["add", "s", "s3://bucket", "--user", "AKID"]
        for title, before, words, key, code in (
            ("a store is added for no URL of one", [], ["add", "s", "gs://bucket"], "", 64),
            ("a store of OBS is added without its endpoint", [], ["add", "s", "obs://"], "", 64),
            ("a store is added with a password in its URL", [], ["add", "s", "webdav://ann:pw@host"], "", 64),
            ("a store is added with a CA that is none", [], ["add", "s", "s3://bucket", "--ca", no_pem], "", 64),
            ("a store is added with a CA that is not there", [], ["add", "s", "s3://bucket", "--ca", "nowhere"], "", 10),
            ("a store of sftp is added without the host's key", [], ["add", "s", "sftp://host", "--user", "ann"], "pw", 64),
            ("a store of a directory is added without its path", [], ["add", "s", "dir://data"], "", 64),
            ("a store of everything would send its password anywhere", [], ["add", "s", "webdav://", "--user", "ann"], "pw", 64),
            ("a store is added without its key", [], s3, "", 64),
            ("a store is added with a key file and no user", [], ["add", "s", "s3://bucket", "--key-file", no_pem], "", 64),
            ("a store is added with a secret that is not there", [], [*s3, "--secret", "none"], "", 64),
            ("a store is added under a name that is none", [], ["add", "../x", "s3://bucket"], "", 64),
            ("a shared store is added by a user", over_tcp, ["add", "s", "s3://bucket", "--shared"], "", 11),
            ("the stores of all are listed by a user", over_tcp, ["ls", "--all"], "", 11),
            ("a URL without a store is checked", [], ["check", "obs://bucket/x"], "", 10),
            ("what is no URL is checked", [], ["check", "bucket"], "", 64),
            ("a store that is not there is removed", [], ["rm", "s"], "", 10),
        ):  # fmt: skip
            with self.subTest(title):
                done = self.cluster.muster(*before, "store", *words, stdin=key)
                self.check_output(self.cluster, title, done, code)
        self.assertEqual(self.cluster.output("store", "ls", "-o", "name"), "")
        self.assertEqual(self.cluster.output("secret", "ls", "-o", "name"), "", "a refused store leaves no key")

    def test_revoking(self):
        over_tcp = ["--controller", self.address, "--credentials", self.user]
        for title, before, words, code in (
            ("a certificate is revoked over TCP", over_tcp, ["n0"], 11),
            ("nobody's certificate is revoked", [], [], 64),
            ("the certificates of two are revoked", [], ["n0", "--user", "ann"], 64),
            ("a serial that is not known is revoked", [], ["--serial", "0badc0de"], 10),
            ("the certificate of a name that is none is revoked", [], ["../x"], 64),
            ("the certificate of a name without one is revoked", [], ["nowhere"], 0),
        ):
            with self.subTest(title):
                done = self.cluster.muster(*before, "cert", "revoke", *words, "--why", "lost")
                self.check_output(self.cluster, title, done, code)
        self.cluster.output("cert", "issue", "--user", "mal", "-o", self.cluster.path("mal.pem"))
        self.cluster.output("cert", "revoke", "--user", "mal", "--why", "left the team")
        self.check_output(
            self.cluster, "a revoked certificate", self.ps(self.cluster.path("mal.pem")), 11
        )

    def test_the_authority(self):
        key = self.cluster.path("controller", "pki", "ca.key")
        self.controller.stop()
        os.chmod(key, 0o640)
        again = self.cluster.controller(listen=self.address, wait=False)
        self.check_daemon_output(
            self.cluster, "a controller whose CA's key others may read", again, 70
        )
        os.chmod(key, 0o600)
        os.rename(key, key + ".away")
        again = self.cluster.controller(listen=self.address, wait=False)
        self.check_daemon_output(self.cluster, "a controller whose CA's key is gone", again, 70)
        os.rename(key + ".away", key)
        self.cluster.controller(listen=self.address)
        self.assertEqual(self.ps(self.user).code, 0, "the certificates of before count")


class Addresses(Case):
    def test_open_address(self):
        """It may be served as any other: without a certificate nobody gets in."""
        with Cluster() as cluster:
            cluster.controller(listen="0.0.0.0:0")
            host, _, port = cluster.tcp_address().rpartition(":")
            self.assertEqual(host, "0.0.0.0")
            address, user = f"127.0.0.1:{port}", cluster.credentials(user="ann")
            cluster.muster("--controller", address, "ps", code=11)
            cluster.muster("--controller", address, "--credentials", user, "ps", code=0)

    def test_taken_address(self):
        with Cluster() as cluster, socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen(1)
            daemon = cluster.controller(listen="127.0.0.1:%d" % taken.getsockname()[1], wait=False)
            self.check_daemon_output(cluster, "listening on a port that is taken", daemon, 70)


class Ports(Case):
    def test_taken_port(self):
        with Cluster() as cluster, socket.socket() as busy:
            # Two neighbouring ports: the first taken by us, the second free.
            for _ in range(100):
                busy.bind(("127.0.0.1", 0))
                port = busy.getsockname()[1]
                with socket.socket() as other:
                    try:
                        other.bind(("127.0.0.1", port + 1))
                        break
                    except OSError:
                        pass
                busy.close()
                busy.__init__()
            busy.listen(1)
            cluster.controller("--port-range", f"{port}-{port + 1}")
            cluster.agent("n0")
            spec = 'name: ports\nengine: torch\nlaunch: {run: "true"}\nresources: {devices: 1, type: cpu}\n'
            job = cluster.submit(spec)
            code = cluster.muster("wait", job, "--timeout", "60s").code
            events = [
                json.loads(line)
                for line in cluster.muster("events", job, "-o", "jsonl", code=0).out.splitlines()
            ]
            reasons = [
                event["text"] for event in events if "taken by another process" in event["text"]
            ]
            self.assertTrue(reasons, events)
            GOLDEN.check(self, "a taken port", replaced(cluster, reasons[0]))
            self.assertEqual(code, 0, "the next attempt takes the other port")
            busy.close()
            cluster.trivial()


class FullDisk(Case):
    def setUp(self):
        self.mounts = []

    def tmpfs(self, cluster, name, size):
        path = cluster.path(name)
        os.mkdir(path)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", path],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            reason = "a full disk needs a tmpfs: " + (done.stderr.strip() or "mount failed")
            print("skipped:", reason, file=sys.stderr)
            self.skipTest(reason)
        self.mounts.append(path)
        return path

    def unmount(self):
        for path in reversed(self.mounts):
            subprocess.run(["umount", "-l", path], check=True)

    def fill(self, path, leave):
        """All but `leave` bytes."""
        info = os.statvfs(path)
        with open(os.path.join(path, "filler"), "wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(4096, info.f_bavail * info.f_frsize - leave))

    def test_agents_disk(self):
        with Cluster() as cluster:
            try:
                path = self.tmpfs(cluster, "small", "16m")
                cluster.controller()
                cluster.agent("n0", state=path + "/agent", args=["--min-free", str(4 << 20)])
                cluster.trivial()
                self.fill(path, 2 << 20)
                job = cluster.submit(TRUE.format(name="full"), "--set", "recovery.max_restarts=1")
                code = cluster.muster("wait", job, "--timeout", "60s").code
                self.assertEqual(code, 1, cluster.muster("why", job).out)
                self.check_output(
                    cluster, "the agent's disk is full: why", cluster.muster("why", "full"), 0
                )
                os.unlink(path + "/filler")
                cluster.trivial()
            finally:
                cluster.end_daemons()
                self.unmount()

    def test_controllers_disk(self):
        with Cluster() as cluster:
            try:
                path = self.tmpfs(cluster, "small", "400m")
                first = cluster.controller(state=path + "/controller")
                cluster.agent("n0")
                with cluster.gate() as gate:
                    live = cluster.submit(
                        f"name: live\nengine: command\nlaunch: {{run: [sh, -c, 'read x < {gate.path}']}}\nresources: {{devices: 1, type: cpu}}\n"
                    )
                    cluster.muster("wait", live, "--for", "running", "--timeout", "60s", code=0)
                    self.fill(path, 1 << 20)
                    done = cluster.muster(
                        "run", "-d", cluster.spec(TRUE.format(name="refused"), "refused.yaml")
                    )
                    self.check_output(cluster, "the controller's disk is full", done, 70)
                    cluster.muster("ps", code=0)  # reads are served
                    gate.open()
                    cluster.muster("wait", live, "--timeout", "60s", code=0)  # facts flow
                self.assertTrue(first.alive(), first.logged())
                os.unlink(path + "/filler")
                cluster.trivial()
                cluster.muster("show", live, code=0)
            finally:
                cluster.end_daemons()
                self.unmount()


class TakenSocket(Case):
    # A second controller took the socket of the first one without a word, and nobody could reach that one any more.
    def test_a_socket_that_is_served(self):
        with Cluster() as cluster:
            cluster.controller()
            second = cluster.controller(state=cluster.path("other"), wait=False)
            code, text = second.ended()
            self.assertEqual(code, 70, text)
            self.assertIn("another controller serves this socket", last_log_line(text))
            cluster.muster("--controller", "unix:" + cluster.path("s"), "ps", code=0)


class OptionsFromAFile(Case):
    """--config FILE of the two daemons: what --check-config prints about it."""

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)

    def check(self, title, program, text, code, *more):
        path = self.cluster.write("options.yaml", text) if text is not None else "none.yaml"
        words = [binary(program), "--config", path, "--check-config", *more]
        ran = subprocess.run(
            words, env={**self.cluster.env, "MUSTER_CONTROLLER": ""}, cwd=self.cluster.dir, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=DEADLINE, check=False,
        )  # fmt: skip
        done = Done([program, *words[1:]], ran.returncode, ran.stdout, ran.stderr)
        self.check_output(self.cluster, f"options from a file: {title}", done, code)

    def test_a_pipe_is_no_file(self):
        os.mkfifo(self.cluster.path("pipe.yaml"))
        for program in ("muster-controller", "muster-agent"):
            words = [binary(program), "--config", self.cluster.path("pipe.yaml")]
            for more in ([], ["--check-config"]):
                ran = subprocess.run(
                    [*words, *more], cwd=self.cluster.dir, stdin=subprocess.DEVNULL,
                    capture_output=True, text=True, timeout=DEADLINE, check=False,
                )  # fmt: skip
                self.assertEqual(ran.returncode, 64, ran.stderr)
                self.assertIn("pipe.yaml' is not a regular file", ran.stderr)

    def test_of_a_controller(self):
        for title, text, code, more in (
            ("nothing wrong", "state-dir: /var/lib/m\nlisten: ['0.0.0.0:7070']\n", 0, []),
            ("unknown, command line's own, wrong kinds",
             "listne: x\naccept-loss: true\nport-range: [1, 2]\nlog-level:\n", 64, []),
            ("no YAML", "state-dir: [/var\n", 64, []),
            ("no options", "- state-dir\n", 64, []),
            ("a file that is not there", None, 64, []),
            ("a time that is none", "state-dir: /s\narchive-after: soon\n", 64, []),
            ("the command line wins", "state-dir: /s\narchive-after: soon\n", 0, ["--archive-after", "1h"]),
            ("too short a time", "state-dir: /s\narchive-keep: 1d\n", 64, []),
            ("ports that are none", "state-dir: /s\nport-range: 80-90\n", 64, []),
            ("an address without a port", "state-dir: /s\nlisten: [unix:/s, head]\n", 64, []),
            ("enrolment at the port of listen", "state-dir: /s\nlisten: '0.0.0.0:70'\nenrol: 10.0.0.1:70\n", 64, []),
            ("enrolment without calls over TCP", "state-dir: /s\nenrol: 0.0.0.0:71\n", 64, []),
            ("no state directory", "log-level: debug\n", 64, []),
            ("a path that the shell would have expanded", "state-dir: ~/muster\n", 64, []),
            ("the same on the command line", "", 64, ["--state-dir=~/muster"]),
            ("less than no room for logs", "state-dir: /s\nlog-quota: -1GB\n", 64, []),
        ):  # fmt: skip
            with self.subTest(title):
                self.check("controller: " + title, "muster-controller", text, code, *more)

    def test_of_an_agent(self):
        for title, text, code, more in (
            ("nothing wrong", "controller: 10.0.0.1:7070\nlabel: [rack=1, row=2]\n", 0, []),
            ("no controller", "name: n0\n", 64, []),
            ("slots that are no number", "controller: unix:/s\ndevices: many\n", 64, []),
            ("the same on the command line", "controller: unix:/s\n", 64, ["--devices", "many"]),
            ("a name that is none", "controller: unix:/s\nname: ../n0\n", 64, []),
            ("a label that is none", "controller: unix:/s\nlabel: [rack]\n", 64, []),
            ("less than no room", "controller: unix:/s\nmin-free: -1\n", 64, []),
            ("a path that the shell would have expanded", "controller: unix:/s\nworker: ~/w\n", 64, []),
            ("a control group that is none", "controller: unix:/s\ncgroup: /proc/self\n", 64, []),
            ("two that exclude each other", "controller: unix:/s\ndevices: 1\ndevices-from: /d\n", 64, []),
        ):  # fmt: skip
            with self.subTest(title):
                self.check("agent: " + title, "muster-agent", text, code, *more)


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv if argument != "--rewrite"]
    program = unittest.main(argv=arguments, exit=False)
    if program.result.wasSuccessful() or GOLDEN.rewrite:
        GOLDEN.save(
            whole=program.result.wasSuccessful()
            and all(argument.startswith("-") for argument in arguments[1:])
            and not program.result.skipped
        )
    sys.exit(not program.result.wasSuccessful())
