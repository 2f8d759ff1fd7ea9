#!/usr/bin/python3
"""What others wrote reaches a terminal as text and nothing else.  A controller that answers every call with texts full of what a terminal
obeys (a window's title, cursor moves, C1, right-to-left) stands in for submitters, nodes and ranks that have them; each verb is asked.
Ranks' lines are the exception that `muster logs` has: a pipe, and whoever says --raw, gets their bytes.

Run:  /usr/bin/python3 tests/integration/hostile_text_test.py [-v]       (needs python3-grpcio, python3-protobuf, protoc)
"""

import concurrent.futures
import glob
import json
import os
import pty
import re
import subprocess
import sys
import unittest

import grpc
from cluster import DEADLINE, ROOT, Cluster
from protos import compile_protos
from google.protobuf import descriptor

HOSTILE = "x\x1b]0;title\x07\x9b2J\x7f\u202e\x1b[2Jy"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
BYTES = HOSTILE.encode() + b"\r\xff\xfe\x9b2J\xc2z"  # no UTF-8
PAINT = re.compile("\x1b\\[(0|1|2|31|32|33|36)m")

VERBS = [
    ("ps", "-a"),
    ("ps", "-a", "-o", "wide"),
    ("show", "j"),
    ("why", "j"),
    ("events",),
    ("ckpt", "ls", "j"),
    ("node", "ls"),
    ("node", "ls", "-o", "wide"),
    ("node", "show", "n"),
    ("node", "show", "n", "-o", "wide"),
    ("node", "declare-dead", "n"),
    ("node", "drain", "n"),
    ("node", "undrain", "n"),
    ("node", "label", "n", "a=b"),
    ("node", "rm", "n"),
    ("cluster", "status"),
    ("cert", "issue", "--node", "n", "-o", "never.pem"),
    ("cert", "ls"),
    ("cert", "ls", "-o", "wide"),
    ("cert", "revoke", "n", "--why", "w"),
    ("cert", "ca"),
    ("cert", "rotate"),
    ("token", "create", "--node", "n"),
    ("token", "ls"),
    ("token", "revoke", "t"),
    ("secret", "set", "s"),
    ("secret", "ls"),
    ("secret", "rm", "s"),
    ("store", "add", "s", "https://host"),
    ("store", "ls"),
    ("store", "check", "https://host/x"),
    ("store", "rm", "s"),
    ("node", "replace", "n"),
    ("cancel", "j"),
    ("env", "j", "--rank", "1"),
    ("version",),
]
LOGS = ("logs", "j")
WATCH = ("watch", "j")
BLOCK = re.compile(
    "\r?\x1b\\[\\?7l|\x1b\\[\\?7h\r?|\r?\x1b\\[[JK]|\x1b\\[[0-9]+A"
)  # its own: the block, or a bar, is drawn anew
DOCUMENTS = [
    ("ps", "-a"),
    ("show", "j"),
    ("why", "j"),
    ("events",),
    ("ckpt", "ls", "j"),
    ("node", "ls"),
    ("node", "show", "n"),
    ("cluster", "status"),
    ("cert", "ls"),
    ("cert", "ca"),
    ("token", "ls"),
    ("secret", "ls"),
    ("store", "ls"),
    ("store", "check", "https://host/x"),
    ("env", "j", "--rank", "1"),
]


def fill(message, depth=0):
    """Every field of an answer: texts hostile, numbers 1, one element in every list."""
    for field in message.DESCRIPTOR.fields:
        many = field.label == descriptor.FieldDescriptor.LABEL_REPEATED
        if field.name in ("next_page_token", "checkpoints_first"):
            continue
        if field.full_name == "muster.v1.Job.withheld":
            continue  # with it the client leaves texts out
        if field.containing_oneof is not None and message.WhichOneof(field.containing_oneof.name):
            continue
        if field.full_name == "muster.v1.ReadLogsResponse.rank":
            continue  # of `oneof log`, whose other member is a text
        if field.cpp_type == descriptor.FieldDescriptor.CPPTYPE_MESSAGE:
            if depth > 6:
                continue
            if field.message_type.GetOptions().map_entry:
                entry = field.message_type.fields_by_name["value"]
                if entry.cpp_type == descriptor.FieldDescriptor.CPPTYPE_STRING:
                    getattr(message, field.name)[HOSTILE] = HOSTILE
                continue
            fill(
                getattr(message, field.name).add() if many else getattr(message, field.name),
                depth + 1,
            )
            continue
        if field.cpp_type == descriptor.FieldDescriptor.CPPTYPE_STRING:
            value = BYTES if field.type == descriptor.FieldDescriptor.TYPE_BYTES else HOSTILE
        elif field.cpp_type == descriptor.FieldDescriptor.CPPTYPE_BOOL:
            value = True
        elif field.cpp_type == descriptor.FieldDescriptor.CPPTYPE_ENUM:
            value = field.enum_type.values[min(1, len(field.enum_type.values) - 1)].number
        else:
            value = 1
        if many:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)
    return message


def texts(value):
    """All of a JSON document."""
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts(inner)] + list(value)
    if isinstance(value, list):
        return [text for inner in value for text in texts(inner)]
    return [value]


class Hostile(grpc.GenericRpcHandler):
    """All services of clients. With `refuses` every call fails, with a hostile sentence."""

    def __init__(self, services, classes):
        self._methods = {
            f"/{service.full_name}/{method.name}": method
            for service in services
            for method in service.methods
        }
        self._classes = classes
        self.refuses = False
        self.names_logs = True

    def service(self, details):
        method = self._methods.get(details.method)
        if method is None:
            return None
        asked, answered = (
            self._classes[method.input_type.full_name],
            self._classes[method.output_type.full_name],
        )

        def one(_request, context):
            if self.refuses:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, HOSTILE)
            answer = fill(answered())
            if method.name == "ReadLogs" and not self.names_logs:
                answer.ClearField("node_log")
            return answer

        def stream(request, context):
            yield one(request, context)

        make = (
            grpc.unary_stream_rpc_method_handler
            if method.name in ("Watch", "ReadLogs")
            else grpc.unary_unary_rpc_method_handler
        )
        return make(
            stream if method.name in ("Watch", "ReadLogs") else one,
            request_deserializer=asked.FromString,
            response_serializer=answered.SerializeToString,
        )


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.close)

    def assert_text(self, text, where):
        found = OBEYED.search(text)
        self.assertIsNone(found, f"{found}, {where}: {text!r}")

    def on_terminal(self, *args):
        """The bytes that a terminal gets, and the exit code."""
        leader, follower = pty.openpty()
        process = subprocess.Popen(
            self.cluster.command(*args),
            stdin=subprocess.DEVNULL,
            stdout=follower,
            stderr=follower,
            env={**self.cluster.env, "TERM": "xterm"},
            cwd=self.cluster.dir,
        )
        os.close(follower)
        shown = b""
        try:
            while block := os.read(leader, 65536):
                shown += block
        except OSError:  # EIO: the other end is closed
            pass
        os.close(leader)
        return shown.replace(b"\r\n", b"\n"), process.wait(timeout=DEADLINE)

    def in_pipe(self, *args):
        """The bytes of standard output, and the exit code."""
        done = subprocess.run(
            self.cluster.command(*args),
            env=self.cluster.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE,
            cwd=self.cluster.dir,
        )
        return done.stdout, done.returncode


class HostileText(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        classes = cls.cluster.path("classes")
        os.mkdir(classes)
        protos = glob.glob(os.path.join(ROOT, "proto/muster/v1/*.proto"))
        compile_protos(classes, *protos, includes=[os.path.join(ROOT, "proto")])
        sys.path.insert(0, classes)
        from muster.v1 import certificate_service_pb2, event_pb2, job_pb2, job_service_pb2, node_pb2, node_service_pb2, secret_service_pb2, store_service_pb2  # fmt: skip

        sys.path.remove(classes)
        made = {}
        modules = (certificate_service_pb2, event_pb2, job_pb2, job_service_pb2, node_pb2, node_service_pb2, secret_service_pb2, store_service_pb2)  # fmt: skip
        for module in modules:
            for name, message in module.DESCRIPTOR.message_types_by_name.items():
                made[message.full_name] = getattr(module, name)
        services = [
            job_service_pb2.DESCRIPTOR.services_by_name["JobService"],
            node_service_pb2.DESCRIPTOR.services_by_name["NodeService"],
            certificate_service_pb2.DESCRIPTOR.services_by_name["CertificateService"],
            secret_service_pb2.DESCRIPTOR.services_by_name["SecretService"],
            store_service_pb2.DESCRIPTOR.services_by_name["StoreService"],
        ]
        cls.hostile = Hostile(services, made)
        cls.server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=4))
        cls.server.add_generic_rpc_handlers((cls.hostile,))
        cls.address = "unix:" + cls.cluster.path("hostile")
        cls.server.add_insecure_port(cls.address)
        cls.server.start()
        cls.addClassCleanup(lambda: cls.server.stop(None).wait())

    def ask(self, *verb):
        return self.cluster.muster("--controller", self.address, *verb)

    def test_people_see_text(self):
        for verb in VERBS:
            with self.subTest(verb=" ".join(verb)):
                done = self.ask(*verb)
                self.assertNotIn("Received message", done.err)
                self.assert_text(done.out + done.err, done)
                self.assertGreater(len(done.out + done.err), 0)

    def test_a_terminal_gets_its_colours_and_nothing_else(self):
        for verb in [*VERBS, LOGS]:
            with self.subTest(verb=" ".join(verb)):
                shown, _ = self.on_terminal("--controller", self.address, *verb)
                text = shown.decode(errors="replace" if verb == LOGS else "strict")
                self.assertGreater(len(text), 0)
                self.assert_text(PAINT.sub("", text), text)

    def test_a_follower_shows_text(self):
        for way in (self.in_pipe, self.on_terminal):
            with self.subTest(way.__name__):
                shown, _ = way("--controller", self.address, *WATCH)
                text = shown.decode(
                    errors="replace"
                )  # which bytes are no UTF-8 is the terminal's affair
                self.assertIn("x?]0;title", text)
                self.assert_text(PAINT.sub("", BLOCK.sub("", text)), text)

    def test_a_pipe_gets_the_bytes_of_a_log_behind_a_label_of_text(self):
        out, code = self.in_pipe("--controller", self.address, *LOGS)
        self.assertEqual((code, out.count(BYTES)), (0, 1), out)
        self.assert_text(out.replace(BYTES, b"").decode(), out)

    def test_raw_is_the_bytes_and_nothing_else(self):
        for way in (self.in_pipe, self.on_terminal):
            with self.subTest(way.__name__):
                self.assertEqual(
                    way("--controller", self.address, *LOGS, "--raw", "--rank", "1"), (BYTES, 0)
                )

    def test_bytes_of_a_log_without_a_name_are_refused(self):
        self.hostile.names_logs = False
        try:
            done = self.ask(*LOGS)
        finally:
            self.hostile.names_logs = True
        self.assertNotEqual(done.code, 0, done)
        self.assertEqual(done.out, "")
        self.assertIn("a ReadLogsResponse has neither a rank nor a node_log", done.err)

    def test_documents_hold_it_escaped(self):
        for verb in DOCUMENTS:
            for form in ("json", "jsonl", "yaml"):
                with self.subTest(verb=" ".join(verb), form=form):
                    done = self.ask(*verb, "-o", form)
                    troubled = verb[:2] == ("store", "check")  # it has a sentence of trouble
                    self.assertEqual(done.code, int(troubled), done)
                    self.assert_text(done.out, done)
                    if form == "jsonl":
                        self.assertTrue(
                            any(
                                HOSTILE in texts(json.loads(line)) for line in done.out.splitlines()
                            ),
                            done,
                        )
                    elif form == "json":
                        self.assertIn(HOSTILE, texts(json.loads(done.out)))

    def test_errors_are_text(self):
        self.hostile.refuses = True
        try:
            for verb in [*VERBS, LOGS, WATCH]:
                if verb == ("version",):  # says its own, whatever the controller says
                    continue
                with self.subTest(verb=" ".join(verb)):
                    done = self.ask(*verb)
                    self.assertNotEqual(done.code, 0, done)
                    self.assertIn("?]0;title", done.err)
                    self.assert_text(done.out + done.err, done)
        finally:
            self.hostile.refuses = False

    def test_words_of_the_command_line_are_text(self):
        for verb in (
            ("explain", HOSTILE),
            ("run", "/nowhere/" + HOSTILE),
            ("validate", "/nowhere/" + HOSTILE),
            ("plan", "/nowhere/" + HOSTILE),
            ("cert", "show", "/nowhere/" + HOSTILE),
        ):
            with self.subTest(verb=verb[0]):
                done = self.cluster.muster(*verb)
                self.assertNotEqual(done.code, 0, done)
                self.assertIn("?]0;title", done.err)
                self.assert_text(done.out + done.err, done)


class HostileRank(Case):
    """A real one: nobody on the way from its file to here may change a byte, or break on it."""

    LINE = b"Error: " + BYTES

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.controller()
        cls.cluster.agent("n0")
        with open(cls.cluster.path("said"), "wb") as file:
            file.write(b"first\n" + cls.LINE + b"\n")
        run = f"cat {cls.cluster.path('said')}; exit 3"
        cls.spec = f"engine: command\nlaunch: {{run: [sh, -c, {json.dumps(run)}]}}\nresources: {{devices: 1, type: cpu}}\nrecovery: {{max_restarts: 0}}\n"
        cls.cluster.muster(
            "run", "-q", cls.cluster.spec("name: loud\n" + cls.spec), "--timeout", "60s", code=1
        )

    def test_logs(self):
        expected = b"first\n" + self.LINE + b"\n"
        for args, wanted in (
            (
                (),
                expected.replace(b"first", b"[rank 0] first").replace(b"Error", b"[rank 0] Error"),
            ),
            (("--rank", "0"), expected),
            (("--rank", "0", "--raw"), expected),
        ):
            with self.subTest(args):
                self.assertEqual(self.in_pipe("logs", "loud", "-f", *args), (wanted, 0))
                shown, code = self.on_terminal("logs", "loud", "-f", *args)
                self.assertEqual(code, 0, shown)
                if "--raw" in args:
                    self.assertEqual(shown, expected)
                else:
                    text = PAINT.sub("", BLOCK.sub("", shown.decode(errors="replace")))
                    self.assertIn("Error: x?]0;title", text)
                    self.assert_text(text, shown)

    def test_those_that_quote_a_line(self):
        for verb in (
            ("why", "loud"),
            ("show", "loud"),
            ("events", "loud"),
            ("run", self.cluster.spec("name: piped\n" + self.spec)),
        ):
            with self.subTest(verb[0]):
                out, code = self.in_pipe(*verb)
                self.assertEqual(code, 1 if verb[0] == "run" else 0, out)
                text = out.decode(
                    errors="replace"
                )  # which bytes are no UTF-8 is the terminal's affair
                self.assert_text(text, out)
                if verb[0] in ("why", "run"):
                    self.assertRegex(text, r"Error: x\??\]0;title")

    def test_run_on_a_terminal(self):
        """It moves the cursor itself, for its block; what it does not do is a window's title, a beep, or text from right to left."""
        shown, code = self.on_terminal("run", self.cluster.spec("name: seen\n" + self.spec))
        text = shown.decode(errors="replace")
        self.assertEqual(code, 1, text)
        self.assertIn("Error: x?]0;title", text)
        for sign in ("\x1b]", "\x07", "\u202e", "\x9b", "\x1b[2J"):
            self.assertNotIn(sign, text)


if __name__ == "__main__":
    unittest.main()
