#!/usr/bin/python3
"""Nodes that join with a token at the enrolment port, and renew their certificates there.

Run:  /usr/bin/python3 -B tests/integration/join_test.py [-v] [CASE]
"""

import contextlib
import glob
import hashlib
import os
import re
import signal
import socket
import stat
import subprocess
import threading
import unittest

from cluster import BIN, DEADLINE, Cluster, wait_until

HOUR_MS = 3600 * 1000
REFUSED = 77


class Relay:
    """Passes connections on to `to` (HOST:PORT), once open() was called: before that its address refuses connections. `answers` False: what comes back
    after the client's request goes nowhere, and `swallowed` is set when there is something."""

    def __init__(self, to, answers=True):
        host, _, port = to.rpartition(":")
        self._to, self._answers, self.swallowed = (host, int(port)), answers, threading.Event()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._sockets, self._threads = [], []

    def open(self):
        self._listener.listen()
        self._thread(self._accept)
        return self

    def _thread(self, target, *args):
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while True:
            try:
                near = self._listener.accept()[0]
            except OSError:  # it was closed
                return
            far = socket.create_connection(self._to)
            self._sockets += [near, far]
            # TLS 1.3: the client's second flight is the end of the handshake, with the request behind it.
            flights = {"client": 0}
            self._thread(self._pass, near, far, flights, True)
            self._thread(self._pass, far, near, flights, False)

    def _pass(self, here, there, flights, from_client):
        with contextlib.suppress(OSError):
            while data := here.recv(1 << 16):
                if from_client:
                    flights["client"] += 1
                elif not self._answers and flights["client"] > 1:
                    self.swallowed.set()
                    continue
                there.sendall(data)
        for end in (here, there):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        for end in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in [self._listener, *self._sockets]:
            end.close()


class Joining(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.start_controller()

    def start_controller(self, offset_ms=0, listen="127.0.0.1:0", enrol="127.0.0.1:0"):
        before = ("env", f"MUSTER_WALL_CLOCK_OFFSET_MS={offset_ms}") if offset_ms else ()
        self.controller = self.cluster.controller("--enrol", enrol, listen=listen, before=before)
        self.enrol = self.cluster.announced()["enrol"]

    def token(self, name="token", node="n*", uses=1):
        path = self.cluster.path(name)
        self.cluster.muster(
            "token", "create", "--node", node, "--uses", str(uses), "-o", path, code=0
        )
        return path

    def secret(self, token):
        with open(token, encoding="utf-8") as file:
            return file.read().split(":")[2]

    def agent(
        self, node, token=None, enrol=None, credentials=None, offset_ms=0, wait=False, state=None
    ):
        args = ["--enrol", enrol or self.enrol]
        args += ["--join", token] if token else []
        args += ["--credentials", credentials] if credentials else []
        env = {"MUSTER_WALL_CLOCK_OFFSET_MS": str(offset_ms)} if offset_ms else None
        return self.cluster.agent(
            node, controller=self.cluster.tcp_address(), args=args, env=env, wait=wait, state=state
        )

    def kept(self, node="n0"):
        return os.path.join(self.cluster.agent_dir(node), "credentials.pem")

    def key(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def attached(self, agent, times=1):
        wait_until(
            lambda: agent.logged().count("attached to the controller") >= times,
            agent.pid_fd,
            what=f"{agent.name} to be attached\n{agent.logged()}",
        )

    def restart_later(self, later):
        """The controller starts again at the same addresses, by a clock of so many hours later."""
        listen, enrol = self.cluster.tcp_address(), self.enrol
        self.controller.stop()
        self.start_controller(later * HOUR_MS, listen, enrol)


class Tokens(Joining):
    def test_a_node_joins_and_works(self):
        token = self.token()
        secret = self.secret(token)
        agent = self.agent("n0", token, wait=True)
        self.assertEqual(stat.S_IMODE(os.stat(self.kept()).st_mode), 0o600)
        self.assertFalse(os.path.exists(os.path.join(self.cluster.agent_dir("n0"), "enrol.key")))
        self.cluster.trivial()
        self.assertRegex(
            self.cluster.output("cluster", "status"), rf"(?m)^enrolment +{re.escape(self.enrol)}$"
        )
        # The secret is nowhere but in the file.
        for pid in (agent.process.pid, self.controller.process.pid):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                self.assertNotIn(secret.encode(), file.read())
        digest = hashlib.sha256(secret.encode())
        found = False
        for path in glob.glob(self.cluster.path("**"), recursive=True):
            if os.path.isfile(path) and path != token:
                with open(path, "rb") as file:
                    data = file.read()
                self.assertNotIn(secret.encode(), data, path)
                found = found or digest.hexdigest().encode() in data or digest.digest() in data
        self.assertTrue(found, "the journal has the token's digest")
        # Later starts do not need the token.
        os.unlink(token)
        agent.stop()
        agent = self.agent("n0", token)
        self.attached(agent)
        self.cluster.trivial()

    def test_a_token_that_was_used(self):
        token = self.token()
        self.agent("n0", token, wait=True)
        code, logged = self.agent("n1", token).ended()
        self.assertEqual(code, REFUSED, logged)
        self.assertIn("joining the cluster as node 'n1'", logged)
        self.assertFalse(os.path.exists(self.kept("n1")))
        # The controller's log has a line for each: who, from where, and why not.
        self.agent("n2", token).ended()
        for node in ("n1", "n2"):
            self.assertRegex(
                self.controller.logged(),
                rf"a call was refused.*enrolment port, from 127\.0\.0\.1: .*'{node}'",
            )

    def test_a_name_that_is_known_with_another_key(self):
        token = self.token(uses=2)
        first = self.agent("n0", token, wait=True)
        first.stop()
        code, logged = self.agent("n0", token, state=self.cluster.path("other")).ended()
        self.assertEqual(code, REFUSED, logged)
        self.assertIn("joining the cluster as node 'n0'", logged)

    def test_a_name_that_the_token_is_not_for(self):
        code, logged = self.agent("m0", self.token()).ended()
        self.assertEqual(code, REFUSED, logged)

    def test_the_answer_is_lost_and_the_agent_dies(self):
        token = self.token()
        relay = Relay(self.enrol, answers=False).open()
        self.addCleanup(relay.close)
        agent = self.agent("n0", token, enrol=relay.address)
        self.assertTrue(relay.swallowed.wait(DEADLINE), agent.logged())
        agent.stop(signal.SIGKILL)
        self.assertFalse(os.path.exists(self.kept()))
        self.agent("n0", token, wait=True)  # the same token, which has one use
        self.cluster.trivial()

    def test_token_files(self):
        token = self.token()
        os.chmod(token, 0o644)
        code, logged = self.agent("n0", token).ended()
        self.assertEqual(code, REFUSED, logged)
        self.assertIn("others may read it", logged)
        os.chmod(token, 0o600)
        with open(token, encoding="utf-8") as file:
            text = file.read().strip()
        for wrong, code_wanted, sentence in (
            (text.rpartition(":")[0] + ":" + "0" * 64, 70, "another cluster's controller"),
            (text[:-1], 64, "it is not a token"),
        ):
            path = self.cluster.write("wrong", wrong + "\n", 0o600)
            code, logged = self.agent("n0", path).ended()
            self.assertEqual(code, code_wanted, logged)
            self.assertIn(sentence, logged)
            self.assertNotIn(self.secret(token), logged)

    def test_standard_input(self):
        token = self.token()
        with open(token, encoding="utf-8") as file:
            done = subprocess.Popen(
                [os.path.join(BIN, "muster-agent"), "--controller", self.cluster.tcp_address(), "--enrol", self.enrol, "--join", "-",
                 "--name", "n0", "--devices", "1", "--state-dir", self.cluster.agent_dir("n0")],
                stdin=file, stderr=subprocess.PIPE, env=self.cluster.env | {"MUSTER_CONTROLLER": ""}, text=True)  # fmt: skip
        try:
            self.cluster.wait_event(
                lambda event: event["type"] == "node-registered" and event["node"] == "n0"
            )
        finally:
            done.terminate()
            done.communicate(timeout=DEADLINE)
        self.assertEqual(done.returncode, 0)

    def test_a_signal_while_nobody_answers(self):
        relay = Relay(self.enrol)  # refuses connections
        self.addCleanup(relay.close)
        agent = self.agent("n0", self.token(), enrol=relay.address)
        agent.wait_for("trying again")
        self.assertEqual(agent.stop(), 0)

    def test_the_two_ports_are_taken_for_each_other(self):
        """`missing selected ALPN property` was what one read of it."""
        code, logged = self.agent("n0", self.token(), enrol=self.cluster.tcp_address()).ended()
        self.assertEqual(code, 70, logged)
        self.assertIn(
            "it is a port of gRPC, not an enrolment port: give the port of the controller's --enrol",
            logged,
        )
        path = self.cluster.credentials(node="n1")
        agent = self.cluster.agent(
            "n1", controller=self.enrol, args=["--credentials", path], wait=False
        )
        agent.wait_for("it has TLS, but not gRPC: is this the controller's enrolment port?")
        self.assertNotIn("ALPN", agent.logged())
        self.assertEqual(agent.stop(), 0)
        user = self.cluster.over_tcp("ann") | {"MUSTER_CONTROLLER": self.enrol}
        done = self.cluster.muster("ps", env=user, code=13)
        self.assertIn("is this its enrolment port? Give the port of its --listen", done.err)

    def test_join_needs_the_port(self):
        done = subprocess.run(
            [os.path.join(BIN, "muster-agent"), "--controller", self.cluster.tcp_address(), "--name", "n0", "--join", "/nowhere"],
            capture_output=True, text=True, timeout=DEADLINE, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 64)
        self.assertIn("--join needs --enrol", done.stderr)


class Renewals(Joining):
    """Clocks are set on by less than a day: a certificate begins a day before it is made, and gRPC's TLS does not know of the offset."""

    def issued(self, lifetime, later):
        """The certificate of n0, which counts for so many hours, by clocks of so many hours later."""
        path = self.cluster.path("n0.pem")
        self.cluster.muster(
            "cert", "issue", "--node", "n0", "--lifetime", f"{lifetime}h", "-o", path, code=0
        )
        self.restart_later(later)
        return path

    def agent_later(self, path, later, enrol=None):
        return self.agent("n0", credentials=path, enrol=enrol, offset_ms=later * HOUR_MS)

    def test_at_two_thirds_with_an_open_stream(self):
        later = 19  # due between the hours 16 and 18 of 24
        path = self.issued(24, later)
        before = self.key(path)
        relay = Relay(self.enrol)
        self.addCleanup(relay.close)
        agent = self.agent_later(path, later, relay.address)
        self.attached(agent)
        with self.cluster.gate() as gate:
            job = self.cluster.submit(
                f"name: open\nengine: command\nlaunch: {{run: [sh, -c, 'read x < {gate.path}']}}\n"
                "resources: {devices: 1, type: cpu}\n"
            )
            self.cluster.muster("wait", job, "--for", "running", "--timeout", "60s", code=0)
            agent.wait_for("renewing the certificate of node 'n0'")  # nobody listens yet
            self.assertEqual(self.key(path), before)
            relay.open()
            agent.wait_for("renewed the certificate")
            self.assertNotEqual(self.key(path), before)
            self.assertEqual(agent.logged().count("attached to the controller"), 1)
            # The next connection uses it, and the job has noticed nothing.
            self.restart_later(later)
            self.attached(agent, 2)
            gate.open(1)
            self.cluster.wait(job)
        self.assertEqual(len(self.cluster.show(job)["attempts"]), 1)

    def test_one_that_has_ended(self):
        path = self.issued(1, later=5)
        before = self.key(path)
        agent = self.agent_later(path, 5)
        agent.wait_for("renewed the certificate")
        self.attached(agent)
        self.assertNotEqual(self.key(path), before)
        self.cluster.trivial()

    def test_one_that_is_revoked(self):
        path = self.issued(1, later=5)
        before = self.key(path)
        self.cluster.muster("cert", "revoke", "n0", "--why", "lost", code=0)
        agent = self.agent_later(path, 5)
        agent.wait_for("renewing the certificate of node 'n0'")
        agent.wait_for("revoked")
        self.assertEqual(self.key(path), before)
        line = f"renewing the certificate of node 'n0' at '{self.enrol}'"
        self.assertEqual(agent.logged().count(line), 1)
        self.assertEqual(agent.stop(), 0)


if __name__ == "__main__":
    unittest.main()
