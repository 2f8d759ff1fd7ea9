#!/usr/bin/python3
"""Join tokens and revocation: what the verbs print, and that a revoked certificate counts no more, also after a restart of the controller.

Run:  /usr/bin/python3 tests/integration/tokens_test.py [-v] [CASE]       (needs openssl, python3-grpcio)
"""

import contextlib
import hashlib
import json
import os
import pwd
import re
import signal
import stat
import subprocess
import threading
import time
import unittest

import grpc
import tls
from cluster import DEADLINE, Cluster, wait_until
from flood_test import REFLECTION
from screen import Screen

WHY = "the machine is lost"
HEALTH_WATCH = "/grpc.health.v1.Health/Watch"


def until(event):
    """One request of reflection, and no end of them before the event."""
    yield b"\x3a\x00"  # list_services
    event.wait()


class OverTcp(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.controller = self.cluster.controller(listen="127.0.0.1:0")
        self.address = self.cluster.tcp_address()

    def tokens(self):
        """By id."""
        return {
            one["id"]: one
            for one in json.loads(self.cluster.output("token", "ls", "-o", "json"))["items"]
        }

    def certificates(self):
        return json.loads(self.cluster.output("cert", "ls", "-o", "json"))["items"]

    def logged(self, daemon, text, times=1):
        wait_until(
            lambda: daemon.logged().count(text) >= times,
            daemon.pid_fd,
            what=f"'{text}' of {daemon.name}\n{daemon.logged()}",
        )


class OnATerminal(OverTcp):
    def rows(self, *args):
        with Screen(
            self.cluster.command(*args), self.cluster.env, cwd=self.cluster.dir, patience=DEADLINE
        ) as screen:
            self.assertEqual(screen.wait(), 0, screen)
        self.assertFalse(any(screen.wrapped), screen)
        return screen.rows

    def test_no_column_is_lost_at_80_columns(self):
        """A serial of 40 letters, and a long reason, pushed the columns behind them over the edge."""
        node = "gpu-17.rack-12.hall-3.site-north-of-the-river"
        self.cluster.credentials(node=node)
        self.cluster.credentials(user="ann")
        self.cluster.muster("cert", "revoke", node, "--why", "the machine is lost, " * 9, code=0)
        for pattern in ("gpu-*.rack-12.hall-3.site-north-of-the-river", "n0"):
            self.cluster.muster("token", "create", "--node", pattern, "--uses", "10000", code=0)
        me = pwd.getpwuid(os.getuid()).pw_name
        minute = r"\d{4}-\d\d-\d\dT\d\d:\d\dZ"
        rows = self.rows("cert", "ls")
        self.assertEqual(rows[0].split(), ["OF", "STATE", "ISSUED", "UNTIL", "BY", "WHY"])
        self.assertRegex(rows[2], rf"^node gpu-17\.r\S* +revoked +\S+ ago +{minute} +{me} +the machine is")
        self.assertRegex(rows[1], rf"^user ann +counts +\S+ ago +{minute} +{me} +-$")
        rows = self.rows("token", "ls")
        self.assertEqual(rows[0].split(), ["TOKEN", "FOR", "STATE", "USED", "CREATED", "UNTIL", "BY"])
        self.assertEqual(len(rows), 3)
        for row in rows[1:]:
            self.assertRegex(row, rf"^[0-9a-f]{{10}} +(gpu-\S+|n0) +open +0/10000 +\S+ ago +{minute} +{me}$")
        # What is asked for whole is whole, also there.
        serials = [one["serial"] for one in self.certificates()]
        with Screen(
            self.cluster.command("cert", "ls", "-o", "wide"), self.cluster.env, cwd=self.cluster.dir,
            patience=DEADLINE,
        ) as screen:  # fmt: skip
            self.assertEqual(screen.wait(), 0, screen)
        for serial in serials:
            self.assertTrue(any(serial in line for line in screen.history()), screen)


class Tokens(OverTcp):
    def test_a_token_is_made_listed_and_revoked(self):
        file = self.cluster.path("join.token")
        made = self.cluster.muster("token", "create", "--node", "gpu-*", "--uses", "16", "--lifetime", "2h", "-o", file, code=0)  # fmt: skip
        self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600)
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
        found = re.fullmatch(r"muster-join-1:([0-9a-f]{10}):([0-9a-f]{40}):([0-9a-f]{64})\n", text)
        self.assertIsNotNone(found, text)
        token, secret, authority = found.groups()
        der = subprocess.run(
            ["openssl", "x509", "-in", self.cluster.path("controller", "pki", "ca.pem"), "-outform", "DER"],
            capture_output=True, timeout=DEADLINE, check=True).stdout  # fmt: skip
        self.assertEqual(authority, hashlib.sha256(der).hexdigest())
        self.assertNotIn(secret, made.out + made.err)
        listed = self.tokens()
        self.assertEqual(list(listed), [token])
        self.assertEqual(listed[token]["nodes"], "gpu-*")
        self.assertEqual(listed[token]["uses"], 16)
        self.assertEqual(listed[token]["actor"], pwd.getpwuid(os.getuid()).pw_name)
        self.assertRegex(self.cluster.output("token", "ls"), rf"{token} +gpu-\* +open +0/16 ")
        self.assertEqual(self.cluster.output("token", "ls", "-o", "name"), token + "\n")
        self.assertEqual(self.cluster.output("token", "revoke", token), f"{token} revoked\n")
        self.assertRegex(self.cluster.output("token", "ls"), rf"{token} +gpu-\* +revoked ")
        # The secret is nowhere: not in the journal, not in a log, not in an event.
        self.controller.stop()
        for folder, _, names in os.walk(self.cluster.path("controller")):
            for name in names:
                with open(os.path.join(folder, name), "rb") as opened:
                    self.assertNotIn(secret.encode(), opened.read(), name)
        self.controller = self.cluster.controller(listen=self.address)
        self.assertIn("revokedAt", self.tokens()[token])
        events = self.cluster.output("events", "-o", "jsonl")
        self.assertIn("token-created", events)
        self.assertIn("token-revoked", events)
        self.assertNotIn(secret, events)

    def test_a_token_on_standard_output(self):
        made = self.cluster.muster("token", "create", "--node", "n7", code=0)
        self.assertRegex(made.out, r"^muster-join-1:[0-9a-f:]+\n$")
        self.assertEqual(made.err, "", "the warning is for terminals")
        unknown = self.cluster.muster("node", "replace", "n7", code=10)
        self.assertIn("there is no node 'n7' whose place another machine could take", unknown.err)
        self.cluster.credentials("n7")
        replacing = self.cluster.muster("node", "replace", "n7", code=0)
        self.assertRegex(replacing.out, r"^muster-join-1:[0-9a-f:]+\n$")
        self.assertEqual(
            sorted((one["nodes"], one.get("mayReplace", False)) for one in self.tokens().values()),
            [("n7", False), ("n7", True)],
        )
        self.cluster.muster("cert", "revoke", "n7", "--why", "lost", code=0)
        self.assertEqual(
            {one.get("mayReplace", False): "revokedAt" in one for one in self.tokens().values()},
            {False: False, True: True},
            "the one that could take the place of the node; the other lets nobody in as n7",
        )

    def test_a_token_that_cannot_be_written_is_named(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            process = self.cluster.popen("token", "create", "--node", "n9", stdout=full)
            err = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 70)
        self.assertRegex(err, r"token '(\w+)' was made and is lost \(`muster token revoke \1`\)")
        dash = self.cluster.muster("token", "create", "--node", "n9", "-o", "-")
        self.assertEqual(dash.code, 64)
        self.assertIn("to '-': that is no file; name one", dash.err)


class ServedByGrpc(OverTcp):
    """Health and reflection are streams of gRPC's own."""

    def test_their_streams_end_too(self):
        credentials = {user: self.cluster.credentials(user=user) for user in ("ann", "bob")}
        ends = {}
        with contextlib.ExitStack() as stack:
            for user in credentials:
                channel = stack.enter_context(tls.channel(grpc, self.cluster, credentials[user]))
                never = threading.Event()
                stack.callback(never.set)
                for name, call in (
                    ("health", channel.unary_stream(HEALTH_WATCH)(b"", timeout=600)),
                    ("reflection", channel.stream_stream(REFLECTION)(until(never), timeout=600)),
                ):
                    stack.callback(call.cancel)
                    next(call)
                    ends[user, name] = threading.Event()
                    call.add_callback(ends[user, name].set)
                    ends[user, name].call = call
            self.cluster.muster("cert", "revoke", "--user", "ann", "--why", WHY, code=0)
            for name in ("health", "reflection"):
                self.assertTrue(ends["ann", name].wait(5), f"the stream of {name} goes on")
                call = ends["ann", name].call
                self.assertEqual(call.code(), grpc.StatusCode.UNAUTHENTICATED)
                self.assertIn(f"the certificate of user 'ann' was revoked: {WHY}", call.details())
                self.assertFalse(ends["bob", name].is_set())


class Revoked(OverTcp):
    def setUp(self):
        super().setUp()
        self.agents = {node: self.cluster.agent(node, tcp=True, devices=1) for node in ("n0", "n1")}
        for agent in self.agents.values():
            self.logged(agent, "attached to the controller")

    def events(self):
        return [json.loads(line) for line in self.cluster.output("events", "-o", "jsonl").splitlines()]  # fmt: skip

    def test_a_node(self):
        begun = time.monotonic()
        self.assertEqual(
            self.cluster.output("cert", "revoke", "n0", "--why", WHY), "node 'n0' revoked\n"
        )
        refused = f"the certificate of node 'n0' was revoked: {WHY}"
        self.logged(self.agents["n0"], refused)
        self.assertLess(time.monotonic() - begun, 5, "at once, and not when its stream ends by itself")  # fmt: skip
        self.logged(self.controller, "agent disconnected")
        self.logged(self.controller, refused)
        # The other one goes on, on the same stream.
        job = self.cluster.submit(
            "name: on\nengine: command\nlaunch: {run: ['true']}\nresources: {devices: 1, type: cpu}\n"
        )
        self.cluster.wait(job)
        self.assertEqual(self.agents["n1"].logged().count("attached to the controller"), 1)
        (event,) = [one for one in self.events() if one["type"] == "certificate-revoked"]
        self.assertEqual(event["node"], "n0")
        self.assertIn(f"(by {pwd.getpwuid(os.getuid()).pw_name})", event["text"])
        self.controller.stop(signal.SIGKILL)
        times = self.agents["n0"].logged().count(refused)
        self.controller = self.cluster.controller(listen=self.address)
        self.logged(self.agents["n1"], "attached to the controller", 2)
        self.logged(self.controller, refused)
        self.assertGreaterEqual(self.agents["n0"].logged().count(refused), times)
        self.assertEqual(self.agents["n0"].logged().count("attached to the controller"), 1)
        listed = {one.get("node"): one for one in self.certificates()}
        self.assertEqual(listed["n0"]["why"], WHY)
        self.assertNotIn("revokedAt", listed["n1"])
        # A new key, which the owner issues, counts: in place of the file, without a restart.
        os.unlink(self.cluster.path("node-n0.pem"))
        self.cluster.credentials(node="n0")
        self.logged(self.agents["n0"], "attached to the controller", 2)

    def test_a_user_who_watches(self):
        over_tcp = self.cluster.over_tcp("ann")
        self.cluster.muster("ps", env=over_tcp, code=0)
        watching = subprocess.Popen(
            self.cluster.command("events", "-f"),
            env={**self.cluster.env, **over_tcp},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(watching.communicate)
        self.addCleanup(watching.kill)
        self.assertTrue(watching.stdout.readline())
        self.cluster.muster("cert", "revoke", "--user", "ann", "--why", "left the team", code=0)
        _, err = watching.communicate(timeout=DEADLINE)
        self.assertIn(b"the certificate of user 'ann' was revoked: left the team", err)
        self.assertEqual(watching.returncode, 11)
        refused = self.cluster.muster("ps", env=over_tcp, code=11)
        self.assertIn("the certificate of user 'ann' was revoked: left the team", refused.err)
        self.cluster.muster("ps", env=self.cluster.over_tcp("bob"), code=0)

    def test_one_serial(self):
        first = self.cluster.over_tcp("ann")
        second = self.cluster.path("second.pem")
        self.cluster.muster("cert", "issue", "--user", "ann", "-o", second, code=0)
        newest, older = [one for one in self.certificates() if one.get("user") == "ann"]
        self.cluster.muster("cert", "revoke", "--serial", older["serial"], "--why", "leaked", code=0)  # fmt: skip
        self.cluster.muster("ps", env=first, code=11)
        self.cluster.muster("ps", env={**first, "MUSTER_CREDENTIALS": second}, code=0)
        self.assertNotEqual(newest["serial"], older["serial"])


if __name__ == "__main__":
    unittest.main()
