#!/usr/bin/python3
"""Thousands of hostile calls at both doors of a controller, the port of gRPC and that of enrolment, while an agent and its job work: the controller's memory is
bounded, the agent's heartbeats are on time, the job goes on, and afterwards an honest node joins and an honest user calls at once. And one user who sends requests
that never end, on as many connections as he likes.

Run:  /usr/bin/python3 tests/integration/hostile_doors_test.py [-v] [CASE]

10,000 calls are about half a minute of two cores. MUSTER_TEST_CALLS=N makes it N.
"""

import collections
import concurrent.futures
import contextlib
import itertools
import json
import os
import select
import socket
import ssl
import struct
import threading
import time
import unittest
from datetime import datetime, timezone

import tls
from cluster import SLOW, Cluster, wait_until
from flood_test import KEPT, MIB, descriptors, grown_to
from http2 import PING, PREFACE, SETTINGS, Connection
from join_test import REFUSED

CALLS = int(os.environ.get("MUSTER_TEST_CALLS") or 10_000 // SLOW)
CALLERS = 32  # threads
IDLE = 1_000  # connections that say nothing
SLOWLY = 600  # connections that send one byte at a time
ENDED = (
    30 * SLOW
)  # s; the controller gives a handshake 10 s, and the enrolment port 5 s for everything
SILENT_AFTER = (
    3.2 * SLOW
)  # s; after so long the controller calls an agent silent (heartbeats of 1 s)
JOINS = 8  # nodes with a token that is nobody's
AT_ONCE = 5 * SLOW  # s; until an honest call is answered
GROWTH = 400 + KEPT  # MiB
MOST_OF_FRAME = 16 * 1024
LIST_JOBS, WATCH = "/muster.v1.JobService/ListJobs", "/muster.v1.JobService/Watch"
PUSH_LOGS = "/muster.v1.AgentService/PushLogs"
GET_JOB = "/muster.v1.JobService/GetJob"
BIG_WORDS = 9  # variables of a job, 100 kB each: a spec has at most 1 MiB
CONNECTIONS_OF_USER = 60  # of the 64 that one user may have
OF_ONE = 300 + KEPT  # MiB; what one user or node can make the controller hold (docs/architecture.md)
HOLDERS = 6  # threads
HOLD = 8 * SLOW  # s; for each kind
ACCESS = "users: {vera: viewer}\n"


def resident(daemon):
    """MiB."""
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))


class Waits:
    """How long a daemon has waited for a processor since this was made: its attackers here are processes of the same machine, which may have other work, too. What
    it waited for beside that is its own."""

    def __init__(self, daemon):
        self._pid = daemon.process.pid
        self._before = self._read()

    def _read(self):
        """By thread, in ns: the second number of /proc/PID/task/TID/schedstat."""
        waited = {}
        for thread in os.listdir(f"/proc/{self._pid}/task"):
            with contextlib.suppress(OSError, IndexError):
                with open(f"/proc/{self._pid}/task/{thread}/schedstat", encoding="ascii") as file:
                    waited[thread] = int(file.read().split()[1])
        return waited

    def longest(self):
        """Of the thread that waited longest; in seconds."""
        more = (now - self._before.get(thread, now) for thread, now in self._read().items())
        return max(more, default=0) / 1e9


class Doors:
    """Where the two ports are. Connections come from many addresses, so that no bound of one address hides what all of them do."""

    def __init__(self, grpc, enrol, name):
        self.grpc, self.enrol, self.name = self._pair(grpc), self._pair(enrol), name
        self._from = (f"127.0.{i % 64 + 1}.{i % 199 + 1}" for i in itertools.count())
        self._lock = threading.Lock()

    @staticmethod
    def _pair(address):
        host, _, port = address.rpartition(":")
        return host, int(port)

    def connect(self, at, blocking=True):
        with self._lock:
            source = next(self._from)
        made = socket.socket()
        made.settimeout(ENDED)
        try:
            made.bind((source, 0))
            if blocking:
                made.connect(at)
            else:
                made.setblocking(False)
                made.connect_ex(at)
        except BaseException:
            made.close()
            raise
        return made


def to_its_end(one):
    """Reads until the controller ends the connection. TimeoutError: it does not."""
    received = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while more := one.recv(1 << 16):
            received += more
    return received


class Strangers:
    """Calls of somebody without a certificate; each returns once the controller has ended the connection."""

    def __init__(self, doors):
        self._doors = doors
        self.answered = 0  # frames, with a sentence
        self._hello = tls.client_hello(tls.context())
        self._contexts = {
            version: tls.context(version=version)
            for version in (None, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
        }

    def all(self):
        """Pairs: what is done, and the function that does it."""
        doors = self._doors
        for name, at in (("grpc", doors.grpc), ("enrol", doors.enrol)):
            yield f"{name}: random bytes", lambda at=at: self._send(at, os.urandom(2_000))
            yield f"{name}: HTTP/2 in the clear", lambda at=at: self._send(at, PREFACE + bytes(9))
            yield f"{name}: a record of 64 KiB", lambda at=at: self._send(
                at, b"\x16\x03\x01\xff\xff\x01\x00\xff\xff\xfb" + os.urandom(4_000)
            )
            yield f"{name}: half a handshake", lambda at=at: self._leave(at)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            yield f"grpc: no certificate, {version.name}", lambda version=version: self._shake(
                version
            )
        yield "enrol: TLS 1.2", self._old
        for length in (0, MOST_OF_FRAME + 1, 0xFFFFFFFF):
            yield f"enrol: a frame of {length}", lambda length=length: self._frame(
                struct.pack(">I", length) + b"x" * 64, answered=True
            )
        yield "enrol: a frame of random bytes", lambda: self._frame(
            struct.pack(">I", 300) + os.urandom(300), answered=True
        )
        yield "enrol: half a frame", lambda: self._frame(
            struct.pack(">I", MOST_OF_FRAME) + b"x" * 100, answered=False
        )

    def _send(self, at, data):
        with self._doors.connect(at) as one:
            with contextlib.suppress(ConnectionError):
                one.sendall(data)
            to_its_end(one)

    def _leave(self, at):
        with self._doors.connect(at) as one, contextlib.suppress(ConnectionError):
            one.sendall(self._hello[: 1 + os.urandom(1)[0]])
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _shake(self, version):
        with self._doors.connect(self._doors.grpc) as one:
            try:
                with self._contexts[version].wrap_socket(
                    one, server_hostname=self._doors.name
                ) as within:
                    assert to_its_end(within) == b"", "nothing is said to a stranger"
            except (ssl.SSLError, ConnectionError):
                pass

    def _old(self):
        with self._doors.connect(self._doors.enrol) as one:
            try:
                with self._contexts[ssl.TLSVersion.TLSv1_2].wrap_socket(one):
                    raise AssertionError("the enrolment port speaks TLS 1.2")
            except (ssl.SSLError, ConnectionError):
                pass

    def _frame(self, data, answered):
        """Where there is no room for the connection, it is closed before the handshake."""
        with self._doors.connect(self._doors.enrol) as one:
            try:
                within = self._contexts[None].wrap_socket(one)
            except (ssl.SSLError, ConnectionError):
                return
            with within:
                within.sendall(data)
                if not answered:
                    return
                received = to_its_end(within)
                assert b"reading a request to enrol" in received, received
                self.answered += 1


class Crowd:
    """Idle connections, and those that send one byte of a handshake at a time, on a thread, until the controller has ended all of them."""

    def __init__(self, doors, idle, slowly):
        hello = tls.client_hello(tls.context())
        self._left = {}
        self._poll = select.poll()
        for number in range(idle + slowly):
            one = doors.connect((doors.grpc, doors.enrol)[number % 2], blocking=False)
            self._left[one.fileno()] = (one, bytearray(hello if number >= idle else b""))
            self._poll.register(one, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
        self._thread = threading.Thread(target=self._press, daemon=True)
        self._stop = threading.Event()
        self._thread.start()

    def left(self):
        return len(self._left)

    def _press(self):
        while self._left and not self._stop.is_set():
            for number, _ in self._poll.poll(50):
                self._poll.unregister(number)
                self._left.pop(number)[0].close()
            for one, waiting in self._left.values():
                if waiting:
                    with contextlib.suppress(OSError):
                        one.send(waiting[:1])
                        del waiting[0]

    def close(self):
        self._stop.set()
        self._thread.join()
        for one, _ in self._left.values():
            one.close()


class Watch:
    """The controller's memory, and how long it has not heard of the agent, on a thread, until it ends. `late`: of that, where the controller called the agent
    silent, what it did not wait for a processor."""

    def __init__(self, cluster, controller, node):
        self._cluster, self._controller, self._node = cluster, controller, node
        self.highest = self.gap = self.late = 0.0
        self.samples = 0
        self.failed = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def _watch(self):
        try:
            while not self._end.wait(0.1):
                self.highest = max(self.highest, resident(self._controller))
                waits = Waits(self._controller)
                listed = self._cluster.output("node", "ls", "-o", "json")
                answered = datetime.now(timezone.utc)
                (node,) = (n for n in json.loads(listed)["items"] if n["name"] == self._node)
                heard = datetime.fromisoformat(node["lastHeard"].replace("Z", "+00:00"))
                gap = (answered - heard).total_seconds()
                self.gap = max(self.gap, gap)
                if node.get("silent"):
                    self.late = max(self.late, gap - waits.longest())
                self.samples += 1
        except Exception as error:  # the test's own thread raises it
            self.failed = error


class Holder:
    """A user with many connections on threads, each with as many calls as it may have, whose requests do not end; a connection that was ended is replaced.
    `path` is the method, `head` begins each request, and `size` bytes follow. `call_first`: a call is answered before them."""

    def __init__(self, connect, path, head, size, call_first):
        self._connect, self._path, self._head, self._size = connect, path, head, size
        self._call_first = call_first
        self.sent = self.ended = 0
        self._lock, self._end = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._hold, daemon=True) for _ in range(HOLDERS)]

    def __enter__(self):
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        for one in self._threads:
            one.join()

    def _hold(self):
        while not self._end.is_set():
            with contextlib.suppress(OSError), contextlib.closing(self._connect()) as connection:
                if self._call_first:
                    connection.call(LIST_JOBS)
                self._pour(connection)
            with self._lock:
                self.ended += 1

    def _pour(self, connection):
        data = b"x" * MOST_OF_FRAME
        left = {connection.begin(self._path): self._size for _ in range(connection.streams_most)}
        for stream in left:
            connection.send(stream, self._head)
        while not self._end.is_set():
            moved = 0
            for stream in left:
                sent = connection.send(stream, data[: left[stream]])
                left[stream] -= sent
                moved += sent
            with self._lock:
                self.sent += moved
            while connection.read(0 if moved else 0.05):
                pass


class HostileDoors(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        access = self.cluster.write("access.yaml", ACCESS)
        self.controller = self.cluster.controller(
            "--enrol", "127.0.0.1:0", "--access", access, listen="127.0.0.1:0"
        )
        self.enrol = self.cluster.announced()["enrol"]
        self.doors = Doors(self.cluster.tcp_address(), self.enrol, tls.server_name(self.cluster))
        self.agent = self.cluster.agent("n0", devices=2, tcp=True)
        self.token = self.cluster.path("token")
        self.cluster.muster("token", "create", "--node", "n1", "-o", self.token, code=0)
        self.ann, self.vera = self.cluster.over_tcp("ann"), self.cluster.credentials(user="vera")
        self.node = self.cluster.credentials(node="n9")
        self.cluster.trivial()
        self.begin_job()

    def begin_job(self):
        """It answers each line of a pipe with a line of its log, which a client follows."""
        self.pipe = self.cluster.path("pipe")
        os.mkfifo(self.pipe)
        self.write_end = os.open(self.pipe, os.O_RDWR)
        self.addCleanup(os.close, self.write_end)
        run = f'while read x; do echo "alive $x"; [ "$x" = end ] && exit 0; done < {self.pipe}'
        self.job = self.cluster.submit(
            f"name: goes-on\nengine: command\nlaunch: {{run: [sh, -c, '{run}']}}\nresources: {{devices: 1, type: cpu}}\n"
        )
        self.cluster.muster("wait", self.job, "--for", "running", "--timeout", "60s", code=0)
        self.logs = self.cluster.popen("logs", "-f", self.job)
        self.addCleanup(self.logs.communicate)
        self.addCleanup(self.logs.kill)

    def wrong_joins(self):
        """Agents whose requests are sound, signature and all, but for the token's secret."""
        with open(self.token, encoding="ascii") as file:
            parts = file.read().strip().split(":")
        parts[2] = parts[2][::-1]
        wrong = self.cluster.write("wrong-token", ":".join(parts) + "\n", 0o600)
        words = ["--enrol", self.enrol, "--join", wrong]
        to = self.cluster.tcp_address()
        return [self.cluster.agent(f"w{i}", controller=to, args=words, wait=False) for i in range(JOINS)]  # fmt: skip

    def check_wrong_joins(self, agents):
        for agent in agents:
            code, logged = agent.ended()
            self.assertEqual(code, REFUSED, logged)
            self.assertIn("the controller does not know this token", logged)
        self.assertEqual(self.cluster.output("node", "ls", "-o", "name").split(), ["n0"])

    def check_job(self, word):
        os.write(self.write_end, word.encode() + b"\n")
        poll = select.poll()
        poll.register(self.logs.stdout, select.POLLIN)
        self.assertTrue(poll.poll(ENDED * 1000), f"no line of the job, '{word}'")
        self.assertIn("alive " + word, self.logs.stdout.readline())

    def strangers(self, calls):
        """How many of each kind, and how many frames were answered."""
        done, strangers = collections.Counter(), Strangers(self.doors)
        kinds = list(strangers.all())
        with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
            begun = {
                pool.submit(call): kind
                for kind, call in itertools.islice(itertools.cycle(kinds), calls)
            }
            for one in concurrent.futures.as_completed(begun):
                one.result()
                done[begun[one]] += 1
        return done, strangers.answered

    def viewer(self, calls):
        """Somebody with a certificate, and the least role."""
        done = collections.Counter()
        context = tls.context(self.vera)
        for kind in (PING, SETTINGS):
            connection = Connection(*self.doors.grpc, context, self.doors.name)
            self.addCleanup(connection.close)
            connection.flood(kind, 50_000 // SLOW)
            done[f"viewer: a flood of {'PING' if kind == PING else 'SETTINGS'}"] += 1
        for _ in range(20):
            connection = Connection(*self.doors.grpc, context, self.doors.name)
            self.addCleanup(connection.close)
            with self.assertRaises((ConnectionError, ssl.SSLError)):
                connection.huge()
            done["viewer: a frame of 16 MiB"] += 1
        for _ in range(4):  # their requests never end
            connection = Connection(*self.doors.grpc, context, self.doors.name)
            self.addCleanup(connection.close)
            for stream in [connection.begin(LIST_JOBS) for _ in range(connection.streams_most)]:
                connection.send(stream, b"\0" + struct.pack(">I", 8 * MIB) + b"x" * 500)
                done["viewer: a call that is not finished"] += 1
        while calls > sum(done.values()):
            now = min(500, calls - sum(done.values()))
            connection = Connection(*self.doors.grpc, context, self.doors.name)
            self.addCleanup(connection.close)
            connection.take_back(LIST_JOBS, now)
            done["viewer: a call that is reset"] += now
        return done

    def as_vera(self):
        return Connection(*self.doors.grpc, tls.context(self.vera), self.doors.name)

    def as_node(self):
        return Connection(*self.doors.grpc, tls.context(self.node), self.doors.name)

    # 64 calls on each of three connections, of almost 9 MiB each: 1.8 GiB, as long as the user liked. One call that announces 2 GiB does it as well.
    def test_requests_that_never_end(self):
        self.check_job("before")
        before = resident(self.controller)
        kinds = (
            ("first requests of 9 MiB", self.as_vera, LIST_JOBS, 9 * MIB, False),
            ("requests of 9 MiB, behind a whole one", self.as_vera, LIST_JOBS, 9 * MIB, True),
            ("requests of 2 GiB", self.as_vera, LIST_JOBS, 2 << 30, True),
            ("more, behind the whole request of a stream", self.as_vera, WATCH, 0, True),
            ("messages of 2 GiB of a node's streams", self.as_node, PUSH_LOGS, 2 << 30, False),
        )
        answered = 0.0
        with Watch(self.cluster, self.controller, "n0") as watch:
            for what, connect, path, size, call_first in kinds:
                head = b"\0" + struct.pack(">I", size)
                holder = Holder(connect, path, head, (size or 1 << 30) - 1, call_first)
                with self.subTest(what), holder:
                    until = time.monotonic() + HOLD
                    while time.monotonic() < until:
                        begun, waits = time.monotonic(), Waits(self.controller)
                        self.cluster.muster("ps", env=self.ann, code=0)
                        answered = max(answered, time.monotonic() - begun - waits.longest())
                    print(
                        f"{what}: {holder.sent >> 20} MiB sent, {holder.ended} connections ended, "
                        f"resident {resident(self.controller):.0f} MiB, {grown_to(self.controller)} at most"
                    )
                self.check_job(f"after {what}")
        print(f"not heard of for {watch.gap:.1f} s at most; apart from waits for a processor, a user is answered in {answered:.1f} s")
        self.assertIsNone(watch.failed, watch.failed)
        self.assertLess(grown_to(self.controller) - before, OF_ONE)
        self.assertLess(watch.late, SILENT_AFTER, "the agent was silent")
        self.assertLess(answered, AT_ONCE)
        logged = self.controller.logged()
        self.assertNotIn("agent disconnected", logged)
        self.assertRegex(logged, "a connection without a whole request yet from .* was ended")
        self.check_job("end")
        self.cluster.wait(self.job)

    # gRPC holds each answer until its caller reads it: 64 connections with 16 calls each for a job of megabytes.
    def test_answers_that_nobody_reads(self):
        words = "".join(f"    W{i}: {'x' * 100_000}\n" for i in range(BIG_WORDS))
        spec = self.cluster.spec(
            f"name: big\nengine: command\nlaunch: {{run: [sh, -c, 'exit 0']}}\nresources: {{devices: 1, type: cpu}}\nruntime:\n  env:\n{words}"
        )
        big = self.cluster.muster("run", "-d", spec, env=self.ann, code=0).out.split()[0]
        self.cluster.jobs.append(big)
        request = bytes((0x0A, len(big))) + big.encode()
        context = tls.context(self.ann["MUSTER_CREDENTIALS"])
        before = resident(self.controller)
        asked = 0
        with Watch(self.cluster, self.controller, "n0") as watch:
            connections = []
            for _ in range(CONNECTIONS_OF_USER):
                connection = Connection(*self.doors.grpc, context, self.doors.name)
                self.addCleanup(connection.close)
                connections.append(connection)
                for _ in range(connection.streams_most):
                    connection.ask(GET_JOB, request)
                    asked += 1
                connection.read(0.1)
            self.cluster.muster("ps", code=0)
            self.check_job("meanwhile")
        print(f"{asked} answers of {BIG_WORDS / 10} MB asked for, resident {resident(self.controller):.0f} MiB, {grown_to(self.controller):.0f} at most")
        self.assertLess(grown_to(self.controller) - before, OF_ONE)
        self.assertIsNone(watch.failed, watch.failed)
        self.assertLess(watch.late, SILENT_AFTER, "the agent was silent")
        self.assertIn("user 'ann' leaves answers of 64 MiB unread", self.controller.logged())
        for connection in connections:
            connection.close()
        wait_until(lambda: self.cluster.muster("show", big, env=self.ann).code == 0, what="an answer when none waits any more")  # fmt: skip
        self.check_job("end")
        self.cluster.wait(self.job)

    def test_thousands_of_calls(self):
        self.check_job("before")
        before, open_before = resident(self.controller), descriptors(self.controller)
        begun = time.monotonic()
        with Watch(self.cluster, self.controller, "n0") as watch:
            crowd = Crowd(self.doors, IDLE, SLOWLY)
            self.addCleanup(crowd.close)
            done = collections.Counter({"idle": IDLE, "one byte at a time": SLOWLY})
            left = max(CALLS - IDLE - SLOWLY, 100)
            joins = self.wrong_joins()
            done += self.strangers(left // 3)[0]
            self.check_job("strangers")
            done += self.viewer(left // 3)
            self.check_job("viewer")
            wait_until(lambda: crowd.left() == 0, within=ENDED, what="every idle connection to end")
            more, answered = self.strangers(
                left - 2 * (left // 3)
            )  # now the enrolment port has room
            done += more
            self.check_job("strangers-again")
            self.check_wrong_joins(joins)
            done["enrol: a join with a wrong token"] += JOINS
        took = time.monotonic() - begun
        text = "\n".join(f"{count:6} {kind}" for kind, count in sorted(done.items()))
        print(
            f"\n{text}\n{sum(done.values())} calls in {took:.0f} s; resident {before:.0f} MiB before, {watch.highest:.0f} at most, "
            f"{resident(self.controller):.0f} after; the agent was not heard of for {watch.gap:.1f} s at most ({watch.samples} samples)"
        )
        if sum(done.values()) < 10_000:
            print("fewer than 10,000: MUSTER_TEST_CALLS or MUSTER_TEST_SLOW makes it so")
        self.assertGreater(answered, 0)
        self.assertIsNone(watch.failed, watch.failed)
        self.assertGreater(watch.samples, 3)
        self.assertLess(grown_to(self.controller) - before, GROWTH)
        self.assertLess(watch.late, SILENT_AFTER, "the agent was silent")
        self.assertNotIn("agent disconnected", self.controller.logged())
        # Whoever is honest gets an answer at once.
        begun, waits = time.monotonic(), Waits(self.controller)
        self.cluster.muster("ps", env=self.ann, code=0)
        called = time.monotonic() - begun
        joined = self.cluster.agent(
            "n1",
            devices=1,
            controller=self.cluster.tcp_address(),
            args=["--enrol", self.enrol, "--join", self.token],
        )
        joined.wait_for("attached to the controller")
        print(
            f"a user is answered in {called:.2f} s, a node joins in {time.monotonic() - begun - called:.2f} s"
        )
        self.assertLess(time.monotonic() - begun - waits.longest(), AT_ONCE)
        self.check_job("end")
        self.cluster.wait(self.job)
        self.assertEqual(len(self.cluster.show(self.job)["attempts"]), 1, "nothing broke")
        wait_until(
            lambda: descriptors(self.controller) < open_before + 20,
            what="the descriptors to be given back",
        )


if __name__ == "__main__":
    unittest.main()
