#!/usr/bin/python3
"""Users over TLS: whose job it is, what each role may do to it, and what is written down of refusals.

Run:  /usr/bin/python3 tests/integration/people_test.py [-v] [CASE]       (needs python3-grpcio, python3-protobuf, protoc)
"""

import glob
import json
import os
import pwd
import re
import signal
import stat
import subprocess
import unittest

import grpc
import tls
from cluster import DEADLINE, Cluster, wait_until
from google.protobuf import descriptor_pb2

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ACCESS = """\
users: {olga: operator, vera: viewer, ada: admin}
"""
ROLES = ("Viewer", "User", "Operator", "Admin")  # each has the rights of those before it
SECRET = "alices-own-words"


class People(unittest.TestCase):
    args = ()

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.access = self.cluster.write("access.yaml", ACCESS)
        self.controller = self.cluster.controller(
            "--access", self.access, *self.args, listen="127.0.0.1:0"
        )
        self.cluster.agent("n0", tcp=True)

    def by(self, user, *args, code=0, **options):
        """What `muster` prints for this user, over TCP."""
        return self.cluster.muster(*args, env=self.cluster.over_tcp(user), code=code, **options)

    def spec(self, name, gate=None):
        run = f"read x < {gate.path}; echo over" if gate else f"echo {SECRET}"
        return self.cluster.spec(
            f"name: {name}\ndescription: {SECRET}\nengine: command\nruntime: {{env: {{WORD: {SECRET}}}}}\n"
            f"launch: {{run: [sh, -c, '{run}']}}\nresources: {{devices: 1, type: cpu}}\n"
        )

    def submitted(self, user, name, gate=None):
        job = self.by(user, "run", "-d", self.spec(name, gate)).out.split()[0]
        self.cluster.jobs.append(job)
        return job

    def refused(self, user, *args, says):
        done = self.by(user, *args, code=11)
        self.assertIn(says, done.err)
        self.assertNotIn(SECRET, done.out + done.err)
        return done

    def denials(self):
        with open(self.cluster.path("controller", "denials.log"), encoding="utf-8") as file:
            return file.read().splitlines()


class Jobs(People):
    def test_what_bob_may_not_do_to_alices_job(self):
        job = self.submitted("alice", "alices")
        self.by("alice", "wait", job)
        says = "it is of user 'alice'"
        for verb in ("logs", "why", "resume", "cancel"):
            self.refused("bob", verb, job, says=says)
        self.refused("bob", "env", job, "--rank", "0", says=says)
        self.refused("bob", "ckpt", "ls", job, says=says)
        for verb in (
            ("show",),
            ("show", "-o", "json"),
            ("events",),
            ("ps", "-a", "--all-users", "-o", "wide"),
        ):
            done = self.by("bob", *verb, *([] if verb[0] == "ps" else [job]))
            self.assertIn("alice", done.out)
            self.assertNotIn(SECRET, done.out + done.err, verb)
            own = self.by("alice", *verb, *([] if verb[0] == "ps" else [job]))
            if verb[0] != "events":
                self.assertIn(SECRET, own.out, verb)
        behind = self.cluster.spec(
            f"name: behind\nengine: command\nlaunch: {{run: [cat, '${{inputs.it}}']}}\n"
            f"inputs: {{it: 'job:{job}/it'}}\nresources: {{devices: 1, type: cpu}}\n"
        )
        self.refused("bob", "run", "-d", behind, says=says)
        for user in ("alice", "olga"):
            self.assertIn(SECRET, self.by(user, "logs", "-f", job).out)
            self.assertIn(SECRET, self.by(user, "env", job, "--rank", "0").out)
        self.assertIn(SECRET, self.cluster.output("logs", "-f", job))

    def test_ps(self):
        with self.cluster.gate() as gate:
            job = self.submitted("alice", "alices", gate)
            own = self.cluster.submit(
                "name: owners\nengine: command\nlaunch: {run: 'true'}\nschedule: {after: [alices]}\n"
                "resources: {devices: 1, type: cpu}\n"
            )
            empty = self.by("bob", "ps")
            self.assertIn("2 jobs of other users; 'muster ps --all-users' shows them", empty.err)
            self.assertNotIn("alices", empty.out)
            self.assertRegex(self.by("alice", "ps").out, r"NAME .*\nalices ")
            everybody = self.by("bob", "ps", "--all-users").out
            self.assertRegex(everybody, r"NAME .*OWNER.*\n")
            for name in ("alices", "owners"):
                self.assertIn(name, everybody)
            alices = json.loads(self.by("bob", "ps", "--user", "alice", "-o", "json").out)["items"]
            self.assertEqual([one["owner"] for one in alices], ["alice"])
            self.assertTrue(alices[0]["withheld"])
            local = self.cluster.output("ps")  # over the socket everything, as ever
            for name in ("alices", "owners"):
                self.assertIn(name, local)
            self.assertEqual(self.cluster.show(job)["owner"], "alice")
            me = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout
            self.assertEqual(self.cluster.show(own)["owner"], me.strip())
            gate.open()
            self.cluster.wait(own)

    def test_a_name_that_is_taken_is_of_somebody(self):
        with self.cluster.gate() as gate:
            self.submitted("alice", "train", gate)
            done = self.by("bob", "run", "-d", self.spec("train"), code=12)
            self.assertIn(
                "it is of user 'alice': choose another name, or ask 'alice' or an operator",
                done.err,
            )
            self.assertNotIn("muster cancel", done.err)
            gate.open()

    def test_who_cancelled(self):
        with self.cluster.gate() as gate:
            job = self.submitted("alice", "alices", gate)
            self.by("alice", "wait", job, "--for", "running", "--timeout", "60s")
            self.refused("bob", "cancel", job, says="cancelling job")
            self.by("olga", "cancel", job, "--reason", "too long")
            self.cluster.wait(job, code=3)
        self.assertIn("cancelled by olga: too long", self.by("alice", "why", job).out)
        self.assertIn("cancel was asked for by olga", self.by("alice", "events", job).out)
        # The socket has every right, and the name of the controller's user.
        with self.cluster.gate("other") as gate:
            job = self.submitted("alice", "again", gate)
            self.cluster.muster("cancel", job, code=0)
            self.cluster.wait(job, code=3)
        me = pwd.getpwuid(os.getuid()).pw_name
        self.assertIn(f"cancelled by {me}", self.cluster.output("why", job))

    def test_after_a_restart(self):
        job = self.submitted("alice", "alices")
        self.by("alice", "wait", job)
        self.controller.stop(signal.SIGKILL)
        self.controller = self.cluster.controller("--access", self.access, listen="127.0.0.1:0")
        self.assertEqual(self.cluster.show(job)["owner"], "alice")
        self.refused("bob", "logs", job, says="it is of user 'alice'")


class Archived(People):
    args = ("--archive-after", "1s")

    def test_whose_it_was(self):
        job = self.submitted("alice", "alices")
        self.by("alice", "wait", job)
        self.cluster.wait_event(
            lambda event: event["type"] == "job-archived" and event["jobId"] == job
        )
        for verb in (("logs",), ("why",), ("env", "--rank", "0"), ("resume",)):
            self.refused("bob", *verb, job, says="it is of user 'alice'")
        for verb in ("show", "events"):
            self.assertNotIn(SECRET, self.by("bob", verb, job).out)
        self.assertIn(SECRET, self.by("alice", "logs", job).out)
        self.assertNotIn("alices", self.by("bob", "ps", "-a").out)
        listed = self.by("bob", "ps", "-a", "--all-users").out
        self.assertIn("alices", listed)
        self.assertNotIn(SECRET, listed)


class Roles(People):
    def test_a_viewer(self):
        with self.cluster.gate() as gate:
            job = self.submitted("alice", "alices", gate)
            says = "the role 'user' is needed, and this user has 'viewer'"
            self.refused("vera", "run", "-d", self.spec("veras"), says=says)
            self.refused("vera", "cancel", job, says=says)
            self.refused("vera", "logs", job, says="it is of user 'alice'")
            self.assertIn("alices", self.by("vera", "ps", "--all-users").out)
            self.assertIn("n0", self.by("vera", "node", "ls").out)
            gate.open()
            self.cluster.wait(job)

    def test_only_operators_end_nodes(self):
        says = "the role 'operator' is needed"
        self.refused("alice", "node", "declare-dead", "n0", says=says)
        self.by("olga", "node", "declare-dead", "n0", code=12)  # it is alive

    def test_a_reload(self):
        job = self.submitted("alice", "alices")
        self.by("alice", "wait", job)
        self.refused("bob", "logs", job, says="it is of user 'alice'")
        self.cluster.write("access.yaml", ACCESS + "others_may: [logs]\n")
        self.controller.send_signal(signal.SIGHUP)
        self.controller.wait_for("the access file was read again")
        self.assertIn(SECRET, self.by("bob", "logs", "-f", job).out)
        self.refused("bob", "why", job, says="it is of user 'alice'")
        self.cluster.write("access.yaml", "user: {bob: operator}\n")
        self.controller.send_signal(signal.SIGHUP)
        self.controller.wait_for("access.yaml:1:1: unknown key 'user'; did you mean 'users'?")
        self.assertIn(SECRET, self.by("bob", "logs", "-f", job).out)
        self.refused("bob", "why", job, says="it is of user 'alice'")

    def reload(self, text):
        self.cluster.write("access.yaml", text)
        before = self.controller.logged().count("the access file was read again")
        self.controller.send_signal(signal.SIGHUP)
        wait_until(
            lambda: self.controller.logged().count("the access file was read again") > before,
            what="the access file to be read again",
        )

    def follow(self, user, *args):
        """A client that goes on, and has printed its first line."""
        before, self.cluster.env = self.cluster.env, {**self.cluster.env, **self.cluster.over_tcp(user)}  # fmt: skip
        client = self.cluster.popen(*args)
        self.cluster.env = before
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        self.assertTrue(client.stdout.readline())
        return client

    def ended(self, client, says):
        out, err = client.communicate(timeout=60)
        self.assertEqual(client.returncode, 11, err)
        self.assertIn(says, err)
        return out

    def test_a_stream_ends_with_the_right_to_it(self):
        """A client that shows what it may not show any more does not go on in silence."""
        self.reload(ACCESS + "others_may: [logs, env]\n")
        with self.cluster.gate() as gate:
            spec = self.cluster.spec(
                f"name: alices\nengine: command\nlaunch: {{run: [sh, -c, 'echo begun; read x < {gate.path}; echo {SECRET}']}}\n"
                "resources: {devices: 1, type: cpu}\n"
            )
            job = self.by("alice", "run", "-d", spec).out.split()[0]
            self.cluster.jobs.append(job)
            logs = {user: self.follow(user, "logs", "-f", job) for user in ("alice", "bob", "olga")}
            events = {user: self.follow(user, "events", "-f") for user in ("alice", "bob", "olga")}
            one = {user: self.follow(user, "events", "-f", job) for user in ("alice", "bob")}
            self.reload(ACCESS)  # bob is a user
            self.ended(logs.pop("bob"), f"reading the logs of job '{job}': it is of user 'alice'")
            self.ended(one.pop("bob"), "it is of user 'alice'")
            watching = "watching all jobs: the access file was changed, and user '{}' may see less"
            self.ended(events.pop("bob"), watching.format("bob"))
            self.ended(events.pop("alice"), watching.format("alice"))  # bob's jobs were hers to see
            self.reload("users: {olga: viewer}\n")
            self.ended(logs.pop("olga"), f"reading the logs of job '{job}': it is of user 'alice'")
            self.ended(events.pop("olga"), watching.format("olga"))
            gate.open()
            # The owner's streams are as they were.
            self.assertIn(SECRET, logs["alice"].communicate(timeout=60)[0])
            self.assertEqual(logs["alice"].returncode, 0)
            self.assertIn("job-ended", one["alice"].stdout.read())
        denied = [line for line in self.denials() if "JobService/ReadLogs" in line]
        self.assertEqual({word for line in denied for word in line.split() if word.startswith("user=")}, {"user=bob", "user=olga"})  # fmt: skip

    def test_a_stream_goes_on_with_the_same_rights(self):
        with self.cluster.gate() as gate:
            job = self.submitted("alice", "alices", gate)
            self.by("alice", "wait", job, "--for", "running", "--timeout", "60s")
            clients = [self.follow("olga", "events", "-f", job), self.follow("bob", "events", "-f", job)]  # fmt: skip
            self.reload(ACCESS + "others_may: [cancel]\n")
            self.reload(ACCESS + "default: viewer\n")
            gate.open()
            for client in clients:
                self.assertIn("job-ended", client.stdout.read())

    def test_a_wrong_file_at_the_start(self):
        self.controller.stop()
        wrong = self.cluster.write("wrong.yaml", "users:\n  bob: boss\n")
        for file, code, says in (
            (wrong, 64, "wrong.yaml:2:8: unknown role 'boss'"),
            (self.cluster.path("missing.yaml"), 70, "missing.yaml"),
        ):
            daemon = self.cluster.controller("--access", file, wait=False)
            self.assertEqual(daemon.ended()[0], code)
            self.assertIn(says, daemon.logged())


def methods_of_protos(to):
    """'/package.Service/Method' of every service that a .proto file of muster has."""
    made = os.path.join(to, "services.pb")
    files = glob.glob(f"{ROOT}/proto/**/*.proto", recursive=True)
    subprocess.run(["protoc", f"-I{ROOT}/proto", f"--descriptor_set_out={made}", *files], check=True)  # fmt: skip
    with open(made, "rb") as file:
        known = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    return {
        f"/{file.package}.{service.name}/{method.name}"
        for file in known.file
        for service in file.service
        for method in service.method
    }


def call_rules():
    """The table in the controller's source: {method: (who may, the least role of a user)}."""
    with open(f"{ROOT}/controller/access/call_rules.cc", encoding="utf-8") as file:
        text = file.read()
    names = dict(re.findall(r"\b(k\w+) = (?:CallerRole|UserRole)::(\w+)", text))
    rows = re.findall(r'CallRule\{"([^"]+)", (k\w+)(?:, (k\w+))?', text)
    assert len(rows) == text.count('CallRule{"')
    return {
        method: (names[caller], names[least or "kViewer"]) for method, caller, least in rows
    }


class EveryCall(People):
    """By each kind of certificate, every method of every service: the door lets in whom the table names, and nobody else."""

    # The door lets these in, and the method itself refuses an empty request: it names no node, or no user.
    refused_inside = {
        ("node", "/muster.v1.AgentService/FetchFiles"),
        ("node", "/muster.v1.AgentService/FetchSecrets"),
        ("node", "/muster.v1.AgentService/ReportStore"),
        ("Admin", "/muster.v1.CertificateService/CreateToken"),
    }

    def answer(self, channel, method):
        """The code and the sentence of an empty request. A stream counts as soon as it shows something."""
        call = channel.stream_stream(method)(iter([b""]), timeout=DEADLINE)
        try:
            next(call, None)
            return grpc.StatusCode.OK, ""
        except grpc.RpcError as error:
            return error.code(), error.details()
        finally:
            call.cancel()

    def test_the_table(self):
        rules = call_rules()
        self.assertEqual(
            {method for method in rules if not method.startswith("/grpc.")},
            methods_of_protos(self.cluster.dir),
        )
        refused_inside = set()
        people = dict(zip(ROLES, ("vera", "alice", "olga", "ada")))
        for role in ("node", *ROLES):
            own = {"node": "n0"} if role == "node" else {"user": people[role]}
            who = "node 'n0'" if role == "node" else f"user '{people[role]}'"
            with tls.channel(grpc, self.cluster, self.cluster.credentials(**own)) as channel:
                for method, (caller, least) in rules.items():
                    if role == "node":
                        allowed = caller in ("Node", "NodeOrUser")
                    else:
                        allowed = caller in ("User", "NodeOrUser") and ROLES.index(role) >= ROLES.index(least)  # fmt: skip
                    with self.subTest(method, role=role):
                        code, why = self.answer(channel, method)
                        at_the_door = f"calling {method[1:]} as {who}: "
                        self.assertNotIn(
                            code,
                            (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNIMPLEMENTED),
                            why,
                        )  # fmt: skip
                        if not allowed:
                            self.assertEqual(code, grpc.StatusCode.UNAUTHENTICATED, why)
                            self.assertTrue(why.startswith(at_the_door), why)
                        elif code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):  # fmt: skip
                            self.assertFalse(why.startswith(at_the_door), why)
                            refused_inside.add((role, method))
        self.assertEqual(refused_inside, self.refused_inside)
        self.cluster.trivial()


class WithoutAFile(unittest.TestCase):
    def test_every_certificate_is_user(self):
        with Cluster() as cluster:
            controller = cluster.controller(listen="127.0.0.1:0")
            cluster.agent("n0", tcp=True)
            controller.send_signal(signal.SIGHUP)
            controller.wait_for("nothing is read again")
            env = cluster.over_tcp("bob")
            refused = cluster.muster("node", "declare-dead", "n0", env=env, code=11)
            self.assertIn("the role 'operator' is needed, and this user has 'user'", refused.err)
            cluster.env.update(env)
            cluster.trivial()


class Denials(People):
    def test_a_line_and_a_count(self):
        job = self.submitted("alice", "alices")
        self.by("alice", "wait", job)
        path = self.cluster.path("controller", "denials.log")
        self.refused("bob", "why", job, says="it is of user 'alice'")
        wait_until(lambda: os.path.exists(path) and self.denials(), what="the first line")
        for _ in range(4):
            self.refused("bob", "why", job, says="it is of user 'alice'")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        lines = [line for line in self.denials() if "method=JobService/ExplainJob" in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(
            lines[0],
            rf"^\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ user=bob method=JobService/ExplainJob job={job} count=1 "
            r"why=\"it is of user 'alice', and you are user 'bob' with the role 'user';",
        )
        self.controller.stop()
        lines = [line for line in self.denials() if "method=JobService/ExplainJob" in line]
        self.assertEqual(len(lines), 2, lines)
        self.assertIn(" count=4 ", lines[1])


if __name__ == "__main__":
    unittest.main()
