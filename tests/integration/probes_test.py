#!/usr/bin/python3
"""What an auditor finds with `openssl s_client` at every port of a cluster, and what somebody who records its connections can read: no secret, no token, no line of
a log.

Run:  /usr/bin/python3 tests/integration/probes_test.py [-v] [CASE]       (needs openssl, python3-grpcio)
"""

import base64
import glob
import os
import re
import ssl
import subprocess
import unittest

import tls
from cluster import DEADLINE, Cluster, wait_until
from http2 import SETTINGS
from tls_test import Relay

VERSIONS = {"tls1": "TLSv1", "tls1_1": "TLSv1.1", "tls1_2": "TLSv1.2", "tls1_3": "TLSv1.3"}
LISTENING = "0A"  # /proc/net/tcp
PLANTED = "planted-words-of-an-environment"
LINE = "a-line-of-rank-zero-that-nobody-else-reads"
NAME = "the-name-of-a-job"
# No request of any protocol here: the server ends the connection, and with -ign_eof s_client waits for that.
GARBAGE = b"\xff" * 64
TICKET = "New Session Ticket arrived"
LINES = 300


def listening(pid):
    """The TCP ports that a process listens on."""
    own = set()
    for path in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            own.add(os.readlink(path))
        except FileNotFoundError:
            pass
    found = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{table}", encoding="ascii") as file:
            for words in map(str.split, file.readlines()[1:]):
                if words[3] == LISTENING and f"socket:[{words[9]}]" in own:
                    found.add(int(words[1].rpartition(":")[2], 16))
    return found


def shapes(word):
    """As it is, in hex, and in base64 at each of the three places where it may begin."""
    data = word.encode()
    yield data
    yield data.hex().encode()
    for before in range(3):
        text = base64.b64encode(b"\0" * before + data)
        yield text[(4 if before else 0) : len(text) // 4 * 4 - 4]


class WithPorts(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.controller = self.cluster.controller("--enrol", "127.0.0.1:0", listen="127.0.0.1:0")
        self.grpc, self.enrol = self.cluster.tcp_address(), self.cluster.announced()["enrol"]
        self.name = tls.server_name(self.cluster)
        self.own = self.cluster.credentials(user="ann")
        self.authority = self.cluster.path("controller", "pki", "ca.pem")


class Ports(WithPorts):
    def probe(self, address, *words, stdin=b"Q\n", own=False):
        """What s_client prints. SECLEVEL=0: or openssl itself would not try what is old."""
        made = ["-cert", self.own, "-key", self.own] if own else []
        done = subprocess.run(
            ["openssl", "s_client", "-connect", address, "-cipher", "ALL:@SECLEVEL=0", *made, *words],
            input=stdin, capture_output=True, timeout=DEADLINE, check=False)  # fmt: skip
        return (done.stdout + done.stderr).decode(errors="replace")

    def test_the_ports_are_two(self):
        ports = {int(address.rpartition(":")[2]) for address in (self.grpc, self.enrol)}
        self.assertEqual(listening(self.controller.process.pid), ports)
        agent = self.cluster.agent("n0", tcp=True)
        self.assertEqual(listening(agent.process.pid), set(), "an agent has no port")

    def test_versions(self):
        offered = {}
        for port, address in (("grpc", self.grpc), ("enrol", self.enrol)):
            offered[port] = [
                name
                for word, name in VERSIONS.items()
                if re.search(rf"(?m)^New, {name}, Cipher is (?!\(NONE\))", self.probe(address, "-" + word, "-alpn", "h2", own=True))
                or f"Protocol version: {name}\n" in self.probe(address, "-" + word, "-alpn", "h2", "-brief", own=True)
            ]  # fmt: skip
        self.assertEqual(offered, {"grpc": ["TLSv1.2", "TLSv1.3"], "enrol": ["TLSv1.3"]})

    def server(self, *words):
        """The address of openssl's own server, which has the faults that `words` give it: the probes must see them there. -rev: it ends a connection at the
        line CLOSE."""
        made = []
        for kind, option in (("rsa:2048", "cert"), ("ec", "dcert")):
            own, key = self.cluster.path(kind[:2] + ".pem"), self.cluster.path(kind[:2] + ".key")
            curve = ["-pkeyopt", "ec_paramgen_curve:P-256"] if kind == "ec" else []
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", kind, *curve, "-nodes", "-subj", "/CN=faulty", "-out", own, "-keyout", key],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE, check=True)  # fmt: skip
            made += ["-" + option, own, "-" + option.replace("cert", "key"), key]
        serving = subprocess.Popen(
            ["openssl", "s_server", "-accept", "127.0.0.1:0", *made, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        self.addCleanup(serving.communicate)
        self.addCleanup(serving.kill)
        for line in serving.stdout:
            if line.startswith("ACCEPT "):
                return line.split()[1]
        raise AssertionError("openssl s_server does not listen")

    def test_weak_ciphers(self):
        """Those of which openssl still has some: it has no RC4 and no 3DES to offer."""

        def agreed(address, ciphers):
            words = ("-tls1_2", "-alpn", "h2", "-cipher", f"{ciphers}:@SECLEVEL=0")
            return re.search(r"Cipher is (?!\(NONE\))", self.probe(address, *words, own=True))

        self.assertTrue(agreed(self.grpc, "ECDHE+AESGCM"))
        faulty = self.server("-tls1_2", "-cipher", "ALL:eNULL:@SECLEVEL=0", "-rev")
        for weak in ("aNULL", "eNULL", "kRSA"):
            self.assertTrue(agreed(faulty, weak), weak)
            self.assertFalse(agreed(self.grpc, weak), weak)

    def test_the_chain(self):
        """The controller's certificate is of the cluster's CA, for this name, and for a server alone."""
        for address in (self.grpc, self.enrol):
            text = self.probe(
                address, "-tls1_3", "-alpn", "h2", "-CAfile", self.authority, "-verify_hostname", self.name, "-showcerts", own=True
            )  # fmt: skip
            self.assertIn("Verify return code: 0 (ok)", text)
            leaf = re.search(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", text, re.S)
            shown = subprocess.run(
                ["openssl", "x509", "-noout", "-text"], input=leaf[0], text=True, capture_output=True, timeout=DEADLINE, check=True).stdout  # fmt: skip
            cluster = self.cluster.announced()["cluster_id"]
            names = re.search(r"Subject Alternative Name:.*\n +(.*)\n", shown)[1].split(", ")
            self.assertEqual(sorted(names), [f"DNS:{self.name}", f"URI:muster://{cluster}/controller"])  # fmt: skip
            self.assertRegex(shown, r"Basic Constraints: critical\s+CA:FALSE")
            self.assertRegex(shown, r"Extended Key Usage:.*\n +TLS Web Server Authentication\n")
            self.assertIn("prime256v1", shown)
            # Another name, or another CA: whoever checks gets an error.
            other = self.probe(address, "-alpn", "h2", "-CAfile", self.authority, "-verify_hostname", "other.muster", own=True)  # fmt: skip
            self.assertIn("Verify return code: 62 (hostname mismatch)", other)

    def test_who_must_show_a_certificate(self):
        asked = self.probe(self.grpc, "-tls1_3", "-alpn", "h2", own=True)
        self.assertIn("Acceptable client certificate CA names", asked)
        not_asked = self.probe(self.enrol, "-tls1_3")
        self.assertIn("No client certificate CA names sent", not_asked)
        host, _, port = self.grpc.rpartition(":")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            for own, frame in ((self.own, bytes((SETTINGS,))), (None, b"")):
                context = tls.context(own, version)
                begun = tls.first_frame((host, int(port)), context, self.name)
                self.assertEqual(begun[3:4], frame, (version, own))

    def test_no_renegotiation(self):
        """TLS 1.3 has none. Compression has no probe: openssl has no zlib here, so it would agree to none with any server."""
        for _ in range(20):
            asked = self.probe(self.grpc, "-tls1_2", "-alpn", "h2", stdin=b"R\n", own=True)
            self.assertIn("RENEGOTIATING", asked)
            # Where the server's first frame of HTTP/2 comes between, s_client gives up by itself.
            if "unexpected record" not in asked:
                break
        self.assertIn("no renegotiation", asked)

    def test_no_tickets_and_no_early_data(self):
        """A ticket says how much early data its server takes, and comes before what the server says or ends."""

        def early_data(text):
            return re.findall(r"Max Early Data: (\d+)", text)

        faulty = self.server("-tls1_3", "-rev")
        self.assertIn(TICKET, self.probe(faulty, "-tls1_3", "-ign_eof", stdin=b"CLOSE\n"))
        text = self.probe(self.enrol, "-tls1_3", "-ign_eof", stdin=GARBAGE)
        self.assertIn("reading a request to enrol", text)
        self.assertNotIn(TICKET, text)
        faulty = self.server("-tls1_3", "-early_data")  # takes no -rev, so it may be left too early
        wait_until(
            lambda: "16384" in early_data(self.probe(faulty, "-tls1_3")),
            what="a ticket for early data",
        )
        text = self.probe(self.grpc, "-tls1_3", "-alpn", "h2", "-ign_eof", stdin=GARBAGE, own=True)
        self.assertEqual(set(early_data(text)), {"0"}, text)

    def test_alpn(self):
        self.assertIn("ALPN protocol: h2", self.probe(self.grpc, "-tls1_3", "-alpn", "h2,http/1.1", own=True))  # fmt: skip
        for words in (("-alpn", "http/1.1"), ("-alpn", "spdy/3")):
            text = self.probe(self.grpc, "-tls1_3", *words, own=True)
            self.assertNotIn("ALPN protocol: " + words[1], text)
        self.assertIn("No ALPN negotiated", self.probe(self.enrol, "-tls1_3", "-alpn", "h2"))


class Wire(WithPorts):
    """Everything goes through recorders: a node joins, its agent works, and a user submits a job and reads its log."""

    def test_what_is_recorded(self):
        calls, enrolment = Relay(self.grpc), Relay(self.enrol)
        self.cluster.closing += [calls, enrolment]
        token = self.cluster.path("token")
        self.cluster.muster("token", "create", "--node", "n0", "-o", token, code=0)
        with open(token, encoding="utf-8") as file:
            secret = file.read().split(":")[2]
        agent = self.cluster.agent(
            "n0",
            controller=calls.address,
            args=["--enrol", enrolment.address, "--join", token],
        )
        agent.wait_for("attached to the controller")
        self.cluster.env.update(MUSTER_CONTROLLER=calls.address, MUSTER_CREDENTIALS=self.own)
        job = self.cluster.submit(
            f"name: {NAME}\nengine: command\nruntime: {{env: {{WORD: {PLANTED}}}}}\n"
            f"launch: {{run: [sh, -c, 'for i in $(seq {LINES}); do echo {LINE}; done']}}\n"
            "resources: {devices: 1, type: cpu}\n"
        )
        self.cluster.wait(job)
        self.assertEqual(self.cluster.output("logs", job, "-f").count(LINE), LINES)
        self.assertIn(PLANTED, self.cluster.output("env", job, "--rank", "0"))
        wait_until(
            lambda: sum(map(len, enrolment.recorded())) > 500, what="what the agent asked for"
        )
        records = calls.recorded() + enrolment.recorded()
        self.assertGreater(sum(map(len, records)), 2 * LINES * len(LINE), "the log went by twice")
        for word in (secret, PLANTED, LINE, NAME):
            for shape in shapes(word):
                self.assertGreater(len(shape), 10)
                self.assertFalse(any(shape in record for record in records), (word, shape))

    def test_what_a_recorder_would_find(self):
        """The same search finds each shape where it is."""
        for word in (PLANTED, LINE):
            for before in range(3):
                text = base64.b64encode(b"{}[]"[:before] + word.encode() + b"!more")
                self.assertTrue(any(shape in text for shape in shapes(word)), (word, before))
            self.assertTrue(any(shape in word.encode() for shape in shapes(word)))


if __name__ == "__main__":
    unittest.main()
