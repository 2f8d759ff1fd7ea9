#!/usr/bin/python3
"""What somebody without the token can make the controller hold, over TCP: nothing that lasts, and nobody is kept out by it.

Run:  /usr/bin/python3 tests/integration/flood_test.py [-v] [CASE]       (needs python3-grpcio)
"""

import json
import struct
import unittest

import grpc
from cluster import SLOW, Cluster, wait_until
from http2 import Connection

UNARY, STREAM = "/muster.v1.JobService/CancelJob", "/muster.v1.AgentService/Connect"
REFLECTION, HEALTH = (
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/grpc.health.v1.Health/Check",
)
MIB = 1 << 20


KEPT = 0 if SLOW == 1 else 1024  # MiB that a sanitizer keeps of what was freed


def grown_to(daemon):
    """The most memory that it ever had, MiB."""
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) // 1024 for line in file if line.startswith("VmHWM"))


class Flood(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.token = "t" * 32
        path = self.cluster.write("token", self.token + "\n", mode=0o600)
        self.controller = self.cluster.controller("--token-file", path, listen="127.0.0.1:0")
        with open(self.cluster.endpoint, encoding="utf-8") as file:
            self.address = json.load(file)["address"]
        host, _, port = self.address.rpartition(":")
        self.at = (host, int(port))
        self.agent = self.cluster.agent("n0", devices=1)
        self.cluster.trivial()
        self.before = grown_to(self.controller)

    def connect(self):
        connection = Connection(*self.at)
        self.addCleanup(connection.close)
        return connection

    def unfinished(self, connection, path, count, size=15 * MIB, token=None):
        """So many calls whose request of this size never ends; how many bytes of each the controller took."""
        streams = [connection.begin(path, token) for _ in range(count)]
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

    # 60 of them: 925 MiB. Each was read whole before its handler could ask for a token.
    def test_requests_that_never_end(self):
        for path in (UNARY, STREAM, REFLECTION, HEALTH):
            connection = self.connect()
            taken = self.unfinished(connection, path, 60)
            self.assertLess(
                max(taken.values()), MIB, f"{path}: more was taken than the headers need"
            )
            self.assertEqual({connection.ended.get(stream) for stream in taken}, {"answered"}, path)
        self.assertLess(grown_to(self.controller) - self.before, 200 + KEPT)
        self.cluster.trivial()

    # 400,000 of them: 2.2 GiB.
    def test_calls_that_are_taken_back_at_once(self):
        for path in (UNARY, STREAM) * 4:
            self.connect().take_back(path, 20_000 // SLOW)
        wait_until(
            lambda: self.cluster.muster("ps").code == 0,
            what="an answer, once what was sent is worked off",
        )
        self.cluster.trivial()
        self.assertLess(grown_to(self.controller) - self.before, 400 + KEPT)
        self.assertTrue(self.agent.alive())
        self.assertNotIn(
            "agent disconnected",
            self.controller.logged(),
            "the streams of agents are not those that are dropped",
        )

    def test_one_connection_has_64_calls_at_a_time(self):
        connection = self.connect()
        self.assertEqual(connection.streams_most, 64)
        for _ in range(64):
            connection.begin(STREAM, self.token)
        while connection.read(1):
            pass
        self.assertEqual(len(connection.open), 64, "all of them are open")
        connection.begin(STREAM, self.token)
        with self.assertRaises(ConnectionError):
            while connection.read(60):
                pass
        self.cluster.trivial()

    def test_a_request_with_the_token_has_a_bound(self):
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

        with grpc.insecure_channel(self.address) as channel:
            call = channel.unary_unary(UNARY, request_serializer=None, response_deserializer=None)
            for size, code in (
                (8 * MIB, grpc.StatusCode.INVALID_ARGUMENT),
                (10 * MIB, grpc.StatusCode.RESOURCE_EXHAUSTED),
            ):
                with self.assertRaises(grpc.RpcError) as raised:
                    call(
                        cancel(b"r" * size),
                        metadata=(("authorization", "Bearer " + self.token),),
                        timeout=60,
                    )
                self.assertEqual(raised.exception.code(), code, raised.exception.details())


if __name__ == "__main__":
    unittest.main()
