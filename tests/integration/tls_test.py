#!/usr/bin/python3
"""A cluster over TCP: a job and its recovery, what can be read on the wire, and who is refused there.

Run:  /usr/bin/python3 tests/integration/tls_test.py [-v] [CASE]       (needs openssl, python3-grpcio)
"""

import contextlib
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import threading
import time
import unittest

import grpc
import tls
from cluster import DEADLINE, SLOW, Cluster, wait_until
from http2 import SETTINGS, Connection

# A program that honours it can use no algorithm: it has this provider alone, and cannot load it.
MISSING_PROVIDER = """
openssl_conf = init
[init]
providers = providers
[providers]
missing = missing
[missing]
module = /nonexistent/missing.so
activate = 1
"""
PLANTED = "planted-words-of-a-secret"
LINES = 500  # of a log that has them
HOUR_MS = 3_600_000  # the shortest life of a certificate
LEFT_S = 20 * SLOW  # of the life of one that ends during a test


def _cut(*sockets):
    """Whoever waits at one of them wakes up."""
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


class Relay:
    """Passes connections on to `to` (HOST:PORT, or unix:PATH), from `address`, and records every byte of both directions."""

    def __init__(self, to, path=None):
        self._to, self._recorded, self._lock = to, [], threading.Lock()
        if path is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(path)
            self._listener.listen()
            self.address = "unix:" + path
        self._served = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _connect(self):
        if self._to.startswith("unix:"):
            made = socket.socket(socket.AF_UNIX)
            made.connect(self._to[len("unix:") :])
            return made
        host, _, port = self._to.rpartition(":")
        return socket.create_connection((host, int(port)))

    def _accept(self):
        while True:
            try:
                near = self._listener.accept()[0]
            except OSError:  # it was closed
                return
            try:
                far = self._connect()
            except OSError:  # the controller is gone
                near.close()
                continue
            thread = threading.Thread(target=self._serve, args=(near, far), daemon=True)
            with self._lock:
                self._served.append((thread, near, far))
            thread.start()

    def _serve(self, near, far):
        answers = threading.Thread(target=self._pass, args=(far, near), daemon=True)
        answers.start()
        self._pass(near, far)
        answers.join()
        near.close()
        far.close()

    def _pass(self, here, there):
        # One record a direction: a word must not be torn by what goes the other way.
        record = bytearray()
        with self._lock:
            self._recorded.append(record)
        try:
            while data := here.recv(1 << 16):
                record += data
                there.sendall(data)
        except OSError:
            pass
        _cut(here, there)

    def recorded(self):
        with self._lock:
            return [bytes(record) for record in self._recorded]

    def has(self, word):
        return any(word.encode() in record for record in self.recorded())

    def close(self):
        _cut(self._listener)
        self._accepting.join()
        self._listener.close()
        for thread, near, far in self._served:
            _cut(near, far)
            thread.join()


class FakeController:
    """A TLS server at `address` that plays the controller, with the certificate in `file`. `trusted`: connections over which the peer sent something after
    the handshake; `refused`: the others."""

    def __init__(self, file, key=None):
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.set_alpn_protocols(["h2"])
        self._context.load_cert_chain(file, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self.trusted = self.refused = 0
        self._serving = threading.Thread(target=self._serve, daemon=True)
        self._serving.start()

    def _serve(self):
        while True:
            try:
                plain = self._listener.accept()[0]
            except OSError:  # it was closed
                return
            plain.settimeout(DEADLINE)
            sent = b""
            try:
                with self._context.wrap_socket(plain, server_side=True) as within:
                    sent = within.recv(1 << 16)
            except OSError:  # an ssl.SSLError is one
                plain.close()
            if sent:
                self.trusted += 1
            else:
                self.refused += 1

    def close(self):
        _cut(self._listener)
        self._serving.join()
        self._listener.close()


class OverTcp(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.controller = self.cluster.controller(listen="127.0.0.1:0")
        self.address = self.cluster.tcp_address()
        host, _, port = self.address.rpartition(":")
        self.at = (host, int(port))
        self.name = tls.server_name(self.cluster)

    def certificate(self, credentials):
        """The controller's own, which it shows."""
        with socket.create_connection(self.at, timeout=60) as plain:
            with tls.context(credentials).wrap_socket(plain, server_hostname=self.name) as within:
                return within.getpeercert(binary_form=True)

    def attached(self, agent, times=1):
        wait_until(
            lambda: agent.logged().count("attached to the controller") >= times,
            agent.pid_fd,
            what=f"{agent.name} to be attached\n{agent.logged()}",
        )

    def gated(self, name, gate):
        return self.cluster.submit(
            f"name: {name}\nengine: command\nlaunch: {{run: [sh, -c, 'read x < {gate.path}; echo over']}}\n"
            "resources: {nodes: 2, devices: 1, type: cpu}\n"
        )


class Jobs(OverTcp):
    """Agents and clients have nothing but the TCP address."""

    def setUp(self):
        super().setUp()
        self.agents = [self.cluster.agent(node, tcp=True) for node in ("n0", "n1")]
        self.cluster.env.update(self.cluster.over_tcp("ann"))

    def ended_well(self, job):
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(len(shown["attempts"]), 1, "nothing broke")
        self.assertEqual(self.cluster.output("logs", job, "-f").count("over"), 2)

    def test_daemons_that_die(self):
        own = self.cluster.credentials(user="ann")
        before = self.certificate(own)
        with self.cluster.gate() as gate:
            job = self.gated("survives", gate)
            self.cluster.muster("wait", job, "--for", "running", "--timeout", "60s", code=0)
            self.controller.stop(signal.SIGKILL)
            self.controller = self.cluster.controller(listen=self.address)
            for agent in self.agents:
                self.attached(agent, 2)
            self.assertNotEqual(self.certificate(own), before, "it is made anew at each start")
            self.agents[0].stop(signal.SIGKILL)
            self.agents[0] = self.cluster.agent("n0", tcp=True, wait=False)
            self.attached(self.agents[0])
            gate.open(2)
            self.ended_well(job)

    def test_another_ca(self):
        """Agents say why they stay away, though they have already said that the controller is lost."""
        self.controller.stop()
        self.agents[0].wait_for("lost the controller")
        for name in ("ca.key", "ca.pem"):
            os.unlink(self.cluster.path("controller", "pki", name))
        self.controller = self.cluster.controller(listen=self.address)
        for agent in self.agents:
            agent.wait_for("of another CA than the controller's")
        os.unlink(self.cluster.path("node-n0.pem"))
        self.cluster.credentials(node="n0")
        self.attached(self.agents[0], 2)
        self.assertEqual(self.agents[1].logged().count("of another CA"), 1)

    def test_a_certificate_that_ends_soon(self):
        own = self.cluster.path("node-n9.pem")
        self.cluster.muster("cert", "issue", "--node", "n9", "--lifetime", "3d", "-o", own,
                            env={"MUSTER_CONTROLLER": self.cluster.endpoint}, code=0)  # fmt: skip
        agent = self.cluster.agent("n9", tcp=True)
        agent.wait_for("the certificate of node 'n9' ends at")
        self.assertNotIn("ends at", self.agents[0].logged())

    def test_a_certificate_is_replaced_below_a_running_agent(self):
        """It reads the file at each connection: no restart, and no job that breaks."""
        own = self.cluster.credentials(node="n0")
        with self.cluster.gate() as gate:
            job = self.gated("renewed", gate)
            self.cluster.muster("wait", job, "--for", "running", "--timeout", "60s", code=0)
            self.controller.stop()
            # Between the two it is empty, and then missing, which shows that the agent reads it.
            self.cluster.write("node-n0.pem", "", 0o600)
            self.agents[0].wait_for("reading credentials: there must be one private key")
            os.unlink(own)
            self.controller = self.cluster.controller(listen=self.address)
            self.attached(self.agents[1], 2)
            self.assertEqual(self.agents[0].logged().count("attached to the controller"), 1)
            self.cluster.credentials(node="n0")
            self.attached(self.agents[0], 2)
            gate.open(2)
            self.ended_well(job)


class Wire(OverTcp):
    def spec(self, name):
        return (
            f"name: {name}\nengine: command\nruntime: {{env: {{WORD: {PLANTED}}}}}\n"
            f"launch: {{run: [sh, -c, 'for i in $(seq {LINES}); do echo $WORD $i; done']}}\n"
            "resources: {devices: 1, type: cpu}\n"
        )

    def through(self, relay, name, **variables):
        """A job whose agent and client use the relay."""
        before = dict(self.cluster.env)
        self.cluster.env.update(variables, MUSTER_CONTROLLER=relay.address)
        try:
            job = self.cluster.submit(self.spec(name))
            self.cluster.wait(job)
            self.assertEqual(self.cluster.output("logs", job, "-f").count(PLANTED), LINES)
        finally:
            self.cluster.env = before

    def test_nothing_can_be_read(self):
        relay = Relay(self.address)
        self.cluster.closing.append(relay)
        self.cluster.agent("n0", tcp=True, controller=relay.address)
        user = self.cluster.credentials(user="ann")
        self.through(relay, "secret", MUSTER_CREDENTIALS=user)
        # The log went from the agent to the controller, and from there to the client.
        self.assertGreater(sum(map(len, relay.recorded())), 2 * LINES * len(PLANTED))
        for word in (PLANTED, "muster.v1", "secret", "AgentService"):
            self.assertFalse(relay.has(word), word)

    def test_what_the_relay_would_see(self):
        """The same over a unix socket, which has no TLS: it would notice."""
        relay = Relay("unix:" + self.cluster.path("s"), self.cluster.path("r"))
        self.cluster.closing.append(relay)
        self.cluster.agent("n0", controller=relay.address)
        self.through(relay, "secret")
        for word in (PLANTED, "muster.v1", "secret", "AgentService"):
            self.assertTrue(relay.has(word), word)


class Who(OverTcp):
    def settings(self, context):
        return tls.first_frame(self.at, context, self.name)

    def test_only_certificates_of_this_cluster(self):
        theirs = self.cluster.path("theirs.pem")
        with Cluster() as other:
            other.controller(listen="127.0.0.1:0")
            shutil.copy(other.credentials(user="ann"), theirs)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            for own in ({"user": "ann"}, {"node": "n0"}):
                context = tls.context(self.cluster.credentials(**own), version)
                self.assertEqual(self.settings(context)[3], SETTINGS, own)
            nobody = tls.context(version=version)
            self.assertEqual(self.settings(nobody), b"")
            stranger = tls.context(version=version)
            stranger.load_cert_chain(theirs)
            self.assertEqual(self.settings(stranger), b"")
        for why in ("the caller showed none", "of no CA of this cluster"):
            wait_until(lambda why=why: why in self.controller.logged(), what=f"a line: {why}")
        with self.assertRaises(ssl.SSLCertVerificationError):  # theirs does not believe in ours
            Connection(*self.at, tls.context(theirs), self.name)

    def fake(self, file, key=None):
        made = FakeController(file, key)
        self.cluster.closing.append(made)
        return made

    def test_a_user_who_plays_the_controller(self):
        """A certificate of this cluster is not enough: only the controller has its name."""
        user, node = self.cluster.credentials(user="ann"), self.cluster.credentials(node="n0")
        fake = self.fake(user)
        self.cluster.muster("--controller", fake.address, "--credentials", user, "ps", code=13)
        wait_until(lambda: fake.refused > 0, what="the end of the client's connection")
        before = fake.refused
        agent = self.cluster.agent(
            "n0", controller=fake.address, args=["--credentials", node], wait=False
        )
        wait_until(lambda: fake.refused >= before + 2, agent.pid_fd, what="two tries of the agent")
        agent.stop()
        self.assertEqual(fake.trusted, 0)
        # Whoever has the CA's key can play it, and the same server would notice the client.
        pki = self.cluster.path("controller", "pki")
        made, key = self.cluster.path("played.pem"), self.cluster.path("played.key")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-CA", f"{pki}/ca.pem", "-CAkey", f"{pki}/ca.key", "-out", made, "-keyout", key, "-subj", "/CN=played",
             "-addext", "basicConstraints=critical,CA:FALSE", "-addext", "extendedKeyUsage=serverAuth",
             "-addext", f"subjectAltName=DNS:{self.name}"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE, check=True)  # fmt: skip
        fake = self.fake(made, key)
        self.cluster.muster("--controller", fake.address, "--credentials", user, "ps", code=13)
        wait_until(lambda: fake.trusted > 0, what="what the client sends to it")

    def test_a_method_that_is_not_there(self):
        """A newer client asks for it, and must be able to tell that from a certificate that is not enough."""
        for own in ({"user": "ann"}, {"node": "n0"}):
            with tls.channel(grpc, self.cluster, self.cluster.credentials(**own)) as channel:
                for method in ("/muster.v1.JobService/Nothing", "/muster.v9.Other/Nothing"):
                    with self.subTest(method, **own), self.assertRaises(grpc.RpcError) as error:
                        channel.unary_unary(method)(b"", timeout=DEADLINE)
                    self.assertEqual(error.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_openssl(self):
        """What an auditor would type."""
        own = self.cluster.credentials(user="ann")
        authority = self.cluster.path("controller", "pki", "ca.pem")

        def connect(*words):
            return subprocess.run(
                ["openssl", "s_client", "-connect", self.address, "-alpn", "h2", "-servername", self.name,
                 "-CAfile", authority, "-verify_hostname", self.name, "-verify_return_error", *words],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE, check=False)  # fmt: skip

        for version in ("TLSv1.2", "TLSv1.3"):
            words = "-" + version.lower().replace("v", "").replace(".", "_")
            allowed = connect("-brief", words, "-cert", own, "-key", own)
            self.assertEqual(allowed.returncode, 0, allowed)
            text = allowed.stderr.decode()
            self.assertIn(f"Protocol version: {version}\n", text)
            self.assertIn("Verification: OK\n", text)
            self.assertIn(f"Verified peername: {self.name}\n", text)
            # It waits for the controller, which says nothing and ends the connection.
            refused = connect("-quiet", words)
            self.assertEqual(refused.stdout, b"", refused)
        # SECLEVEL=0: or openssl itself would not try.
        old = connect("-brief", "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0", "-cert", own, "-key", own)  # fmt: skip
        self.assertNotEqual(old.returncode, 0, old)
        self.assertNotIn(b"Protocol version", old.stderr)

    def test_what_a_file_holds(self):
        node = self.cluster.path("made.pem")
        made = self.cluster.muster("cert", "issue", "--node", "n0", "-o", node, code=0)
        self.assertIn("carry", made.err)
        self.assertEqual(stat.S_IMODE(os.stat(node).st_mode), 0o600)
        self.assertEqual(
            [label for label, _ in tls.blocks(node)], ["PRIVATE KEY", "CERTIFICATE", "CERTIFICATE"]
        )
        cluster_id = self.cluster.announced()["cluster_id"]
        time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
        shown = self.cluster.output("cert", "show", node)
        self.assertRegex(
            shown,
            rf"^for +node 'n0'\ncluster +{cluster_id}\nfrom +{time}\nuntil +{time}\nkey +[0-9a-f]{{64}}\n$",
        )
        self.assertEqual(shown, made.out)
        user = self.cluster.credentials(user="ann")
        self.assertRegex(self.cluster.output("cert", "show", user), r"^for +user 'ann'\n")

    def test_where_the_ca_is(self):
        for name, mode in (("", 0o700), ("ca.key", 0o600), ("ca.pem", 0o600)):
            path = self.cluster.path("controller", "pki", name)
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), mode, path)
        announced = self.cluster.announced()
        self.assertEqual(announced["address"], "unix:" + self.cluster.path("s"))
        self.assertEqual(announced["tcp"], [self.address])
        self.assertNotIn("token_file", announced)


class Ended(unittest.TestCase):
    """Certificates that end while they are used. The controller that issued them had a clock that was behind."""

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.begin(("env", f"MUSTER_WALL_CLOCK_OFFSET_MS={LEFT_S * 1000 - HOUR_MS}"))
        self.files = {"user": self.cluster.path("user-ann.pem"), "node": self.cluster.path("node-n0.pem")}  # fmt: skip
        for (role, file), name in zip(self.files.items(), ("ann", "n0")):
            self.cluster.output("cert", "issue", f"--{role}", name, "--lifetime", "1h", "-o", file)
        self.controller.stop()
        self.begin()
        self.over_tcp = self.cluster.over_tcp("ann")

    def begin(self, before=()):
        self.controller = self.cluster.controller(listen="127.0.0.1:0", before=before)

    def wait_for_the_end(self):
        ends = []
        for file in self.files.values():
            shown = subprocess.run(
                ["openssl", "x509", "-in", file, "-noout", "-enddate"],
                text=True, capture_output=True, timeout=DEADLINE, check=True).stdout  # fmt: skip
            ends.append(ssl.cert_time_to_seconds(shown.strip().removeprefix("notAfter=")))
        wait_until(lambda: time.time() > max(ends) + 1, what="the end of the certificates")

    def follow(self, *args):
        client = self.cluster.popen(*args, "-f", "--timeout", f"{DEADLINE}s")
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        return client

    def begin_job(self, name, script):
        return self.cluster.submit(
            f"name: {name}\nengine: command\nlaunch: {{run: [sh, -c, '{script}']}}\nresources: {{devices: 1, type: cpu}}\n"
        )

    def test_what_is_open_goes_on_and_nothing_new_begins(self):
        agent = self.cluster.agent("n0", tcp=True)
        by_socket = self.cluster.env
        self.cluster.env = {**by_socket, **self.over_tcp}
        with self.cluster.gate() as gate:
            first = self.begin_job("first", f"echo begun; read x < {gate.path}; echo over")
            logs, events = self.follow("logs", first), self.follow("events", "-o", "jsonl")
            self.assertTrue(any("begun" in line for line in logs.stdout))
            self.assertTrue(any(first in line for line in events.stdout))
            self.wait_for_the_end()
            self.cluster.env = by_socket
            gate.open(1)
            self.cluster.wait(first)
        self.assertTrue(any("over" in line for line in logs.stdout))
        second = self.begin_job("second", "echo nothing")
        self.assertTrue(any(second in line for line in events.stdout))
        self.cluster.wait(second)
        self.assertEqual(agent.logged().count("attached to the controller"), 1)
        self.assertNotIn("lost the controller", agent.logged())
        refused = self.cluster.muster("ps", env=self.over_tcp, code=11)
        self.assertIn("the certificate of user 'ann' ended at", refused.err)
        # A clock that is behind as well: the controller ends the handshake, and cannot say why.
        behind = {**self.over_tcp, "MUSTER_WALL_CLOCK_OFFSET_MS": str(-HOUR_MS)}
        refused = self.cluster.muster("ps", env=behind, code=13)
        self.assertIn("the certificate may have ended", refused.err)
        wait_until(lambda: "or its time is over" in self.controller.logged(), what="a line of the handshake")
        agent.stop()
        agent = self.cluster.agent("n0", tcp=True, wait=False, env={"MUSTER_WALL_CLOCK_OFFSET_MS": str(-HOUR_MS)})  # fmt: skip
        agent.wait_for("cannot reach the controller")
        self.assertIn("the certificate may have ended", agent.logged())


class HostsConfig(unittest.TestCase):
    """openssl.cnf of the host may name libraries, which a static program cannot load: the programs ignore it."""

    def test_a_provider_that_is_missing(self):
        with Cluster() as cluster:
            config = cluster.write("openssl.cnf", MISSING_PROVIDER)
            honours_it = subprocess.run(
                ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
                env={**os.environ, "OPENSSL_CONF": config}, capture_output=True, timeout=DEADLINE, check=False)  # fmt: skip
            self.assertNotEqual(honours_it.returncode, 0, honours_it)
            cluster.env["OPENSSL_CONF"] = config
            cluster.controller(listen="127.0.0.1:0")
            cluster.agent("n0", tcp=True)
            cluster.env.update(cluster.over_tcp("ann"))
            cluster.trivial()


if __name__ == "__main__":
    unittest.main()
