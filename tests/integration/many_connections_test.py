#!/usr/bin/python3
"""More TCP connections than the controller has descriptors, of somebody without a certificate: the unix socket, agents and clients go on, and afterwards everything
is as before.

Run:  /usr/bin/python3 tests/integration/many_connections_test.py [-v] [CASE]       (needs python3-grpcio)
"""

import contextlib
import os
import select
import socket
import threading
import unittest

import grpc
import tls
from cluster import SLOW, Cluster, wait_until
from flood_test import HEALTH, REFLECTION, descriptors, grown_to
from tokens_test import until

LIMIT = 256  # descriptors of the controller: 64 connections over TCP, 32 without a certificate, 8 of one address
FEW = 200  # descriptors, of which a quarter may be the enrolment port's
PRESSED = 600
KEPT = 0 if SLOW == 1 else 1024  # MiB that a sanitizer keeps of what was freed


class Crowd:
    """Keeps so many connections open, from each of the addresses in turn, and opens another one for each that is closed, until it ends."""

    def __init__(self, at, addresses, count=PRESSED):
        self._at, self._addresses, self._count = at, addresses, count
        self.opened = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._press, daemon=True)

    def __enter__(self):
        self._thread.start()
        wait_until(lambda: self.opened > 2 * self._count, what="the crowd to press")
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def _press(self):
        poll, open_ = select.poll(), {}
        while not self._end.is_set():
            while len(open_) < self._count and not self._end.is_set():
                one = socket.socket()
                one.setblocking(False)
                one.bind((self._addresses[self.opened % len(self._addresses)], 0))
                one.connect_ex(self._at)
                open_[one.fileno()] = one
                poll.register(one, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
                self.opened += 1
            for number, _ in poll.poll(20):
                poll.unregister(number)
                open_.pop(number).close()
        for one in open_.values():
            one.close()


class ManyConnections(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.controller = self.cluster.controller(
            listen="127.0.0.1:0", before=["prlimit", f"--nofile={LIMIT}:{LIMIT}"]
        )
        host, _, port = self.cluster.tcp_address().rpartition(":")
        self.at = (host, int(port))
        self.agent = self.cluster.agent("n0", devices=1, tcp=True)
        self.user = self.cluster.credentials(user="ann")
        self.cluster.trivial()
        self.before = grown_to(self.controller)

    def health(self, within=60):
        """A call over TCP, on a connection of its own."""
        with tls.channel(grpc, self.cluster, self.user) as channel:
            ask = channel.unary_unary(HEALTH)
            self.assertEqual(ask(b"", timeout=within, wait_for_ready=True), b"\x08\x01")

    def check_works(self):
        for _ in range(5):
            self.assertEqual(self.cluster.muster("ps").code, 0)
        self.cluster.trivial()  # by the socket to the agent's stream over TCP
        self.assertTrue(self.agent.alive())
        self.assertNotIn("agent disconnected", self.controller.logged())

    def check_modest(self):
        self.assertLess(grown_to(self.controller) - self.before, 100 + KEPT)
        refused = [line for line in self.controller.logged().splitlines() if "was refused" in line]
        self.assertLess(len(refused), 6, "a line for each bound, not for each connection")
        return refused

    def test_one_address(self):
        with Crowd(self.at, ["127.0.0.2"]):
            self.check_works()
            self.health()
            # A new agent comes in, from another address.
            other = self.cluster.agent("n1", devices=1, tcp=True)
            other.wait_for("attached to the controller")
            self.assertLess(descriptors(self.controller), LIMIT)
        self.check_works()
        self.health()
        refused = self.check_modest()
        self.assertIn("a connection from 127.0.0.2 was refused", "\n".join(refused))

    def test_many_addresses(self):
        before = descriptors(self.controller)
        with Crowd(self.at, [f"127.0.1.{i}" for i in range(1, 120)]):
            self.check_works()
            self.assertLess(descriptors(self.controller), LIMIT)
        self.health()
        self.check_works()
        self.check_modest()
        wait_until(
            lambda: descriptors(self.controller) < before + 10, what="the descriptors to be back"
        )

    def test_one_user_with_a_certificate(self):
        """More connections than there are places. Calls are answered on a quarter of them."""
        bob = self.cluster.over_tcp("bob")
        with contextlib.ExitStack() as stack:
            answered, refused = 0, set()
            for _ in range(LIMIT // 2):
                channel = stack.enter_context(tls.channel(grpc, self.cluster, self.user))
                try:
                    answered += channel.unary_unary(HEALTH)(b"", timeout=60) == b"\x08\x01"
                except grpc.RpcError as error:
                    refused.add((error.code(), error.details()))
            self.assertEqual(answered, LIMIT // 16)
            self.assertIn(
                (
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    "calling the controller: user 'ann' has 16 connections already, which is the bound; "
                    "use one connection for many calls, or try again when others have ended",
                ),
                refused,
            )
            self.assertLessEqual(
                {code for code, _ in refused},
                {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE},
            )
            # What is refused stays open as one of an address, until others want its place.
            wait_until(
                lambda: self.cluster.muster("ps", env=bob).code == 0,
                within=30 * SLOW,
                what="another user to be answered",
            )
            other = self.cluster.agent("n1", devices=1, tcp=True)
            other.wait_for("attached to the controller")
            self.assertLess(descriptors(self.controller), LIMIT)
        self.check_works()
        self.health()

    def test_reflection_streams_are_bounded(self):
        """gRPC serves reflection with a thread for each stream."""
        before = len(os.listdir(f"/proc/{self.controller.process.pid}/task"))
        with contextlib.ExitStack() as stack:
            asked = []
            for _ in range(6):
                channel = stack.enter_context(tls.channel(grpc, self.cluster, self.user))
                for _ in range(15):
                    never = threading.Event()
                    stack.callback(never.set)
                    asked.append(channel.stream_stream(REFLECTION)(until(never), timeout=600))
            for one in asked:
                stack.callback(one.cancel)
            answers = [self._first(one) for one in asked]
            self.assertLess(
                len(os.listdir(f"/proc/{self.controller.process.pid}/task")), before + 60
            )
            self.assertIn(grpc.StatusCode.RESOURCE_EXHAUSTED, answers)
            self.check_works()
        self.test_reflection_and_a_stream_are_calls_as_well()

    @staticmethod
    def _first(call):
        try:
            return bytes(next(call)) and None
        except grpc.RpcError as error:
            return error.code()

    def test_reflection_and_a_stream_are_calls_as_well(self):
        with tls.channel(grpc, self.cluster, self.user) as channel:
            ask = channel.stream_stream(REFLECTION)
            answers = ask(iter([b"\x3a\x00"]), timeout=60)  # list_services
            self.assertIn(b"muster.v1.JobService", next(iter(answers)))

    # Each counted as a call whose request is not whole, of which there may be 1,024, until the connection ended.
    def test_streams_of_reflection_that_are_over_do_not_count(self):
        with tls.channel(grpc, self.cluster, self.user) as channel:
            ask = channel.stream_stream(REFLECTION)
            for _ in range(1_100):
                self.assertEqual(len(list(ask(iter([b"\x3a\x00"]), timeout=60))), 1)


class FewDescriptors(unittest.TestCase):
    """Somebody without a certificate opens connections at the enrolment port, as many as there are descriptors."""

    def test_the_enrolment_port_leaves_some(self):
        cluster = Cluster()
        self.addCleanup(cluster.close)
        controller = cluster.controller(
            "--enrol",
            "127.0.0.1:0",
            listen="127.0.0.1:0",
            before=["prlimit", f"--nofile={FEW}:{FEW}"],
        )
        host, _, port = cluster.announced()["enrol"].rpartition(":")
        agent = cluster.agent("n0", devices=1, tcp=True)
        user = cluster.over_tcp("ann")
        token = cluster.path("token")
        cluster.muster("token", "create", "--node", "n1", "-o", token, code=0)
        with Crowd((host, int(port)), [f"127.0.1.{i}" for i in range(1, 120)]):
            for _ in range(5):
                cluster.muster("ps", code=0)
                cluster.muster("ps", env=user, code=0)
            cluster.trivial()
            self.assertLess(descriptors(controller), FEW * 3 // 4)
        self.assertTrue(agent.alive())
        for trouble in ("agent disconnected", "Too many open files"):
            self.assertNotIn(trouble, controller.logged())
        cluster.agent(
            "n1",
            devices=1,
            controller=cluster.tcp_address(),
            args=["--enrol", f"{host}:{port}", "--join", token],
        )


if __name__ == "__main__":
    unittest.main()
