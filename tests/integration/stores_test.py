#!/usr/bin/python3
"""Stores of users: set over TLS, and looked at by a node with a real rclone against real ends.

Run:  /usr/bin/python3 tests/integration/stores_test.py [-v] [CASE]       (needs rclone, openssl, s3rver)
"""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster  # noqa: E402
from people_test import ACCESS  # noqa: E402
from store_ends import S3End, serve_http, serve_rclone  # noqa: E402

PASSWORD = 'pl4nted p"ass'


class Stores(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.controller = self.cluster.controller("--access", self.cluster.write("access.yaml", ACCESS), listen="127.0.0.1:0")
        self.agent = self.cluster.agent("n0", tcp=True)
        os.makedirs(self.cluster.path("data", "wiki"))
        self.cluster.write("data/wiki/a b.txt", "hello\n")

    def by(self, user, *args, code=0, **options):
        return self.cluster.muster(*args, env=self.cluster.over_tcp(user), code=code, **options)

    def serve(self, kind, *options):
        return serve_rclone(self, kind, self.cluster.path("data"), *options)

    def check(self, url, user="ann", code=0):
        shown = self.by(user, "store", "check", url, "-o", "json", code=code)
        return json.loads(shown.out)

    def trouble(self, url):
        return self.check(url, code=1)["trouble"]


class Ends(Stores):
    def test_webdav_with_a_password(self):
        port = self.serve("webdav", "--user", "ann", "--pass", PASSWORD)
        add = ["store", "add", "dav", "webdav://data", "--endpoint", f"http://127.0.0.1:{port}", "--user", "ann"]
        self.assertEqual(self.by("ann", *add, stdin=PASSWORD + "\n").out, "dav set\n")
        found = self.check("webdav://data/wiki")
        self.assertEqual((found["names"], found["node"], found["store"]), (["a b.txt"], "n0", "dav"))
        shown = self.by("ann", "store", "check", "webdav://data").out
        self.assertEqual(shown, "store 'dav', seen from node 'n0': 1 entries\n  wiki/\n")
        self.by("ann", "secret", "set", "store.dav", stdin="another-password")
        self.assertIn("401", self.trouble("webdav://data"))

    def test_webdav_with_a_ca_of_its_own(self):
        key, cert = self.cluster.path("tls.key"), self.cluster.path("tls.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=end",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)  # fmt: skip
        port = self.serve("webdav", "--cert", cert, "--key", key)
        add = ["store", "add", "dav", f"webdav://127.0.0.1:{port}"]
        self.by("ann", *add)
        self.assertIn("certificate signed by unknown authority", self.trouble(f"webdav://127.0.0.1:{port}/wiki"))
        self.by("ann", *add, "--ca", cert)
        self.assertEqual(self.check(f"webdav://127.0.0.1:{port}/wiki")["names"], ["a b.txt"])

    def test_sftp_with_a_key_and_the_hosts_key(self):
        own, host = self.cluster.path("own"), self.cluster.path("host")
        for path in (own, host):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        port = self.serve("sftp", "--user", "ann", "--authorized-keys", own + ".pub", "--key", host)
        with open(host + ".pub", encoding="utf-8") as file:
            public = " ".join(file.read().split()[:2])
        known = self.cluster.write("known", f"[127.0.0.1]:{port} {public}\n")
        add = ["store", "add", "files", f"sftp://127.0.0.1:{port}", "--user", "ann", "--key-file", own]
        self.by("ann", *add, "--host-key", known)
        self.assertEqual(self.check(f"sftp://127.0.0.1:{port}/wiki")["names"], ["a b.txt"])
        with open(own + ".pub", encoding="utf-8") as file:
            other = " ".join(file.read().split()[:2])
        self.by("ann", *add, "--host-key", self.cluster.write("other", f"[127.0.0.1]:{port} {other}\n"))
        self.assertIn("knownhosts: key mismatch", self.trouble(f"sftp://127.0.0.1:{port}/wiki"))

    def test_s3_with_a_key(self):
        end = S3End(self, self.cluster.path("s3"))
        end.put(self.cluster.path("data"), "data")
        add = ["store", "add", "s3", "s3://", "--endpoint", f"http://127.0.0.1:{end.port}", "--path-style", "--user", end.USER]
        self.by("ann", *add, stdin=end.KEY)
        self.assertEqual(self.check("s3://data/wiki")["names"], ["a b.txt"])
        self.assertIn("directory not found", self.trouble("s3://nowhere/wiki"))
        self.by("ann", *add[:-1], "NOBODY", stdin=end.KEY)
        self.assertIn("InvalidAccessKeyId", self.trouble("s3://data/wiki"))

    def test_http_and_a_directory(self):
        port = serve_http(self, self.cluster.path("data"))
        self.by("ann", "store", "add", "web", f"http://127.0.0.1:{port}")
        self.assertEqual(self.check(f"http://127.0.0.1:{port}/wiki")["names"], ["a b.txt"])
        self.by("ann", "store", "add", "local", "dir://data", "--endpoint", self.cluster.path("data"))
        self.assertEqual(self.check("dir://data/wiki")["names"], ["a b.txt"])
        self.assertIn("directory not found", self.trouble("dir://data/none"))

    def test_an_end_that_is_not_there(self):
        self.by("ann", "store", "add", "dav", "webdav://data", "--endpoint", "http://127.0.0.1:1")
        self.assertIn("connection refused", self.trouble("webdav://data/wiki"))
        self.agent.stop()
        refused = self.by("ann", "store", "check", "webdav://data/wiki", code=2)
        self.assertIn("no connected node has rclone 1.60 or later on its agent's PATH", refused.err)
        self.assertIn("no store is for it", self.by("ann", "store", "check", "obs://data", code=10).err)


class Who(Stores):
    def test_a_key_is_in_no_record_and_no_command_line(self):
        port = self.serve("webdav", "--user", "ann", "--pass", PASSWORD)
        self.by("ann", "store", "add", "dav", "webdav://data", "--endpoint", f"http://127.0.0.1:{port}", "--user", "ann", stdin=PASSWORD)
        self.check("webdav://data/wiki")
        self.agent.stop()
        self.controller.stop()
        for folder, _, names in os.walk(self.cluster.dir):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        self.assertNotIn(PASSWORD.encode(), file.read(), path)

    def test_stores_are_each_users_own(self):
        local = ["store", "add", "local", "dir://data", "--endpoint", self.cluster.path("data")]
        self.by("ann", *local)
        self.assertIn("no store is for it", self.by("bob", "store", "check", "dir://data", code=10).err)
        self.assertIn("for admins", self.by("bob", *local, "--shared", code=11).err)
        self.assertIn("is for 'dir://data' already", self.by("ann", "store", "add", "again", *local[3:], code=12).err)
        self.by("ada", *local, "--shared")
        found = self.check("dir://data/wiki", user="bob")
        self.assertTrue(found["shared"])
        self.assertEqual(self.by("bob", "store", "ls", "-o", "name").out, "local\n")
        self.by("ann", "store", "rm", "local")
        self.assertIn("there is no such store", self.by("ann", "store", "rm", "local", code=10).err)
        self.assertIn("url: begins with none of", self.by("ann", "store", "add", "x", "gs://data", code=64).err)
        self.assertIn("the role 'user' is needed", self.by("vera", "store", "ls", code=11).err)


if __name__ == "__main__":
    unittest.main()
