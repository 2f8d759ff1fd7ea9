"""Real ends of stores for tests, on 127.0.0.1 and a free port. They end with the test.

    port = serve_rclone(test, "webdav", folder, "--user", "ann")   # or "sftp"
    port = serve_http(test, folder)
    end = S3End(test, folder); end.port                            # s3rver, which tests/s3_end/install puts into build/s3_end
    end.put(path, "data/wiki")                                     # what is below `path`, into bucket "data"
    end.differences(path, "data/wiki")                             # from what is below `path`
"""

import os
import re
import shutil
import subprocess
import sys
import unittest

from cluster import wait_until

S3RVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/s3_end/node_modules/.bin/s3rver")
HOST = r"(?:127\.0\.0\.1|localhost)"


def _serve(test, command, log, port_of):
    """The port that the program says it has."""
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    test.addCleanup(process.wait)
    test.addCleanup(process.kill)

    def port():
        with open(log, encoding="utf-8") as file:
            found = re.search(port_of, file.read())
        return found and int(found[1])

    wait_until(port, what=f"an end of '{' '.join(command[:3])}'")
    return port()


def serve_rclone(test, kind, folder, *options):
    command = ["rclone", "serve", kind, folder, "--addr", "127.0.0.1:0", *options]
    return _serve(test, command, f"{folder}.{kind}.log", rf"{HOST}:(\d+)")


def serve_http(test, folder):
    """Python's own server: rclone's does not say which port it has."""
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", folder]
    return _serve(test, command, f"{folder}.http.log", r"port (\d+)")


class S3End:
    """s3rver knows its users, and does not check their signatures."""

    USER = KEY = "S3RVER"  # of every s3rver

    def __init__(self, test, folder, bucket="data"):
        if not os.path.exists(S3RVER) or not shutil.which("node"):
            raise unittest.SkipTest("there is no S3 end: tests/s3_end/install makes it, with npm")
        os.mkdir(folder)
        command = ["node", S3RVER, "-d", folder, "-a", "127.0.0.1", "-p", "0", "--no-vhost-buckets", "--configure-bucket", bucket]
        self.port = _serve(test, command, f"{folder}.s3.log", rf"listening on {HOST}:(\d+)")

    def put(self, path, to, *options):
        """By rclone, with `options` of it."""
        self._rclone("copy", *options, path, self._remote(to), check=True)

    def differences(self, path, at):
        """What rclone says about files below `path` that are not there, or have other bytes; "": none. It reads both."""
        done = self._rclone("check", "--download", "--one-way", "--fast-list", path, self._remote(at))
        return "" if done.returncode == 0 else done.stderr

    def get(self, at, path):
        """What is there goes to the directory `path`."""
        self._rclone("copy", "--fast-list", self._remote(at), path, check=True)

    def names(self, below):
        return sorted(self._rclone("lsf", "--recursive", "--files-only", self._remote(below)).stdout.splitlines())

    def _remote(self, path):
        return f":s3,provider=Other,access_key_id={self.USER},secret_access_key={self.KEY},endpoint='http://127.0.0.1:{self.port}',force_path_style=true:{path}"

    @staticmethod
    def _rclone(verb, *words, check=False):
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
        return subprocess.run(["rclone", verb, "--config", "/dev/null", *words], env=environment, check=check, capture_output=True, text=True)
