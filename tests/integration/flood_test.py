#!/usr/bin/python3
"""What callers over TCP can make the controller hold, without a certificate and with one that does not allow the call: nothing that lasts, and nobody is kept out by
it.

Run:  /usr/bin/python3 tests/integration/flood_test.py [-v] [CASE]       (needs python3-grpcio)
"""

import os
import select
import socket
import ssl
import struct
import time
import unittest

import grpc
import tls
from cluster import SLOW, Cluster, wait_until
from http2 import PREFACE, Connection

UNARY, STREAM = "/muster.v1.JobService/CancelJob", "/muster.v1.AgentService/Connect"
REFLECTION, HEALTH, ISSUE = (
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/grpc.health.v1.Health/Check",
    "/muster.v1.CertificateService/IssueCertificate",
)
MIB = 1 << 20
SILENT = 100  # connections of somebody who says nothing: twice as many are below the bound of one address
HANDSHAKE = 10 + 50 * SLOW  # s; a handshake that is not finished is given up after 10 s
WORKED_OFF = 240 * SLOW  # s


KEPT = 0 if SLOW == 1 else 1024  # MiB that a sanitizer keeps of what was freed


def grown_to(daemon):
    """The most memory that it ever had, MiB."""
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) // 1024 for line in file if line.startswith("VmHWM"))


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


class Flood(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.controller = self.cluster.controller(listen="127.0.0.1:0")
        host, _, port = self.cluster.tcp_address().rpartition(":")
        self.at = (host, int(port))
        self.name = tls.server_name(self.cluster)
        self.agent = self.cluster.agent("n0", devices=1, tcp=True)
        self.agent.wait_for("attached to the controller")
        self.cluster.env.update(self.cluster.over_tcp("ann"))
        self.node = self.cluster.credentials(node="n1")
        self.user = self.cluster.credentials(user="bob")
        self.cluster.trivial()
        self.before = grown_to(self.controller)

    def connect(self, credentials):
        connection = Connection(*self.at, tls.context(credentials), self.name)
        self.addCleanup(connection.close)
        return connection

    def plain(self, count=1):
        """TCP connections, and nothing more."""
        made = [socket.create_connection(self.at, timeout=60) for _ in range(count)]
        for one in made:
            self.addCleanup(one.close)
        return made

    def check_works(self, kept_stream=True):
        """A client and an agent work, over TCP, and the agent was not dropped meanwhile."""
        self.cluster.trivial()
        self.assertTrue(self.agent.alive())
        if kept_stream:
            self.assertNotIn(
                "agent disconnected",
                self.controller.logged(),
                "the streams of agents are not those that are dropped",
            )

    def unfinished(self, connection, path, count, size=15 * MIB):
        """So many calls whose request of this size never ends; how many bytes of each the controller took."""
        streams = [connection.begin(path) for _ in range(count)]
        taken = dict.fromkeys(streams, 0)
        body = b"x" * 16_384
        while True:
            moved = False
            for stream in streams:
                if taken[stream] >= size:
                    continue
                data = (b"\0" + struct.pack(">I", size) + body) if taken[stream] == 0 else body
                sent = connection.send(stream, data[: 4 + size - taken[stream]])
                taken[stream] += sent
                moved = moved or sent > 0
            while connection.read(0):
                moved = True
            if not moved and not connection.read(2):
                return taken


class Strangers(Flood):
    """Somebody who reaches the port, and has no certificate."""

    def test_calls_in_the_clear(self):
        for _ in range(60):
            with self.assertRaises(ConnectionError):
                Connection(*self.at)
        self.pour(PREFACE + b"x" * 15 * MIB, 20)
        self.assertLess(grown_to(self.controller) - self.before, 200 + KEPT)
        self.check_works()

    def test_random_bytes(self):
        # The second begins as a record of TLS does, with a length that it does not keep.
        for begin in (b"", b"\x16\x03\x01\x40\x00\x01\x00\xff\xff\xff"):
            self.pour(begin + os.urandom(15 * MIB), 20)
        self.assertLess(grown_to(self.controller) - self.before, 200 + KEPT)
        self.check_works()

    def pour(self, data, connections):
        """All of it into each of so many connections. Each is cut before it took all."""
        for one in self.plain(connections):
            with self.assertRaises(ConnectionError):
                one.sendall(data)

    def test_handshakes_without_a_certificate(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3) * 60:
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                Connection(*self.at, tls.context(version=version), self.name)
        self.assertLess(grown_to(self.controller) - self.before, 200 + KEPT)
        self.check_works()

    # In TLS 1.3 a client may send before the server has judged its certificate.
    def test_requests_behind_a_handshake_without_a_certificate(self):
        version = tls.context(version=ssl.TLSVersion.TLSv1_3)
        for one in self.plain(20):
            within = version.wrap_socket(one, server_hostname=self.name)
            self.addCleanup(within.close)
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                within.sendall(PREFACE + b"x" * 15 * MIB)
        self.assertLess(grown_to(self.controller) - self.before, 200 + KEPT)
        self.check_works()

    def test_connections_that_say_nothing_end(self):
        """Idle ones, and handshakes that stop after their first message."""
        before = descriptors(self.controller)
        silent = self.plain(SILENT)
        hello = tls.client_hello(tls.context())
        begun = self.plain(SILENT)
        for one in begun:
            one.sendall(hello)
        wait_until(
            lambda: descriptors(self.controller) > before + 2 * SILENT - SILENT // 10,
            what="the connections to be accepted",
        )
        self.check_works()
        self.assertLess(grown_to(self.controller) - self.before, 200 + KEPT)
        poll = select.poll()
        for one in silent + begun:
            one.setblocking(False)
            poll.register(one, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
        wait_until(
            lambda: len(poll.poll(0)) == 2 * SILENT,
            within=HANDSHAKE,
            what="the controller to end every one of them",
        )
        wait_until(
            lambda: descriptors(self.controller) < before + SILENT // 10,
            what="their descriptors to be given back",
        )
        self.check_works()


class Idle:
    """Whether a process has used hardly any processor time for a second."""

    def __init__(self, pid):
        self._pid = pid
        self._since = self._used = None

    def __call__(self):
        with open(f"/proc/{self._pid}/stat", encoding="ascii") as file:
            used = sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
        now = time.monotonic()
        if self._since is None or used - self._used > 0.1 * max(now - self._since, 1):
            self._since, self._used = now, used
        return now - self._since >= 1


class WrongRoles(Flood):
    """Somebody whose certificate is of this cluster, and does not allow the call."""

    def refused(self):
        """Calls, and whose certificate does not allow them."""
        return (
            (UNARY, self.node),
            (STREAM, self.user),
            (REFLECTION, self.node),
            (ISSUE, self.node),
            (ISSUE, self.user),
        )

    # 60 of them on one connection: 925 MiB. Each was read whole before its handler could ask who calls.
    def test_requests_that_never_end(self):
        for path, credentials in self.refused():
            connection = self.connect(credentials)
            taken = self.unfinished(connection, path, connection.streams_most)
            self.assertLess(
                max(taken.values()), MIB, f"{path}: more was taken than the headers need"
            )
            self.assertEqual({connection.ended.get(stream) for stream in taken}, {"answered"}, path)
            self.cluster.trivial()
        self.assertLess(grown_to(self.controller) - self.before, 200 + KEPT)
        self.check_works()

    # 400,000 of them: 2.2 GiB.
    def test_calls_that_are_taken_back_at_once(self):
        for path, credentials in ((UNARY, self.node), (STREAM, self.user)) * 4:
            self.connect(credentials).take_back(path, 20_000 // SLOW)
        wait_until(Idle(self.controller.process.pid), within=WORKED_OFF, what="what was sent to be worked off")
        self.assertLess(grown_to(self.controller) - self.before, 400 + KEPT)
        # On a busy machine the calls are worked off for so long that the agent, whose ping has no answer in 8 s, connects again.
        self.check_works(kept_stream=False)

    def test_every_role_may_ask_for_health(self):
        for credentials in (self.node, self.user):
            with tls.channel(grpc, self.cluster, credentials) as channel:
                self.assertEqual(channel.unary_unary(HEALTH)(b"", timeout=60), b"\x08\x01")


class RightRoles(Flood):
    """What one connection may have."""

    def test_one_connection_has_16_calls_at_a_time(self):
        connection = self.connect(self.node)
        self.assertEqual(connection.streams_most, 16)
        for _ in range(16):
            connection.begin(STREAM)
        while connection.read(1):
            pass
        self.assertEqual(len(connection.open), 16, "all of them are open")
        connection.begin(STREAM)
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            while connection.read(60):
                pass
        self.cluster.trivial()

    def test_a_request_has_a_bound(self):
        def cancel(reason):
            size = len(reason)
            return (
                b"\x0a\x01j\x12"
                + bytes(
                    (
                        size & 0x7F | 0x80,
                        size >> 7 & 0x7F | 0x80,
                        size >> 14 & 0x7F | 0x80,
                        size >> 21,
                    )
                )
                + reason
            )

        with tls.channel(grpc, self.cluster, self.user) as channel:
            call = channel.unary_unary(UNARY, request_serializer=None, response_deserializer=None)
            for size, code in (
                (8 * MIB, grpc.StatusCode.INVALID_ARGUMENT),
                (10 * MIB, grpc.StatusCode.RESOURCE_EXHAUSTED),
            ):
                with self.assertRaises(grpc.RpcError) as raised:
                    call(cancel(b"r" * size), timeout=60)
                self.assertEqual(raised.exception.code(), code, raised.exception.details())


if __name__ == "__main__":
    unittest.main()
