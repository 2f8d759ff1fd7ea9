#!/usr/bin/python3
"""Everything that an ordinary user does on machines where he is not root: a private cluster; a controller with TLS and enrolment, whose nodes join with a token; jobs,
logs, drain, cancel; a deployment over SSH to his own account. When root runs this file, it does so as a made-up user (ordinary_user.py).

Run:  /usr/bin/python3 -B tests/integration/unprivileged_test.py [-v] [CASE]
"""

import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import unittest

import ordinary_user
from cluster import BIN, DEADLINE, Cluster, wait_until
from portable_test import STATIC

ALSO = ("join_test.py", "tls_test.py")  # they need no right of root either
SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin")


TARBALL = "MUSTER_TEST_TARBALL"


def make_tarball(folder):
    """Its path; empty: this build has none."""
    config = os.path.join(os.path.dirname(BIN), "CPackConfig.cmake")
    if not STATIC or not os.path.exists(config):
        return ""
    command = ["cpack", "--config", config, "-G", "TGZ", "-B", folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (name,) = [name for name in os.listdir(folder) if name.endswith(".tar.gz")]
    os.chmod(folder, 0o755)
    return os.path.join(folder, name)


def own_name():
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


class WithoutRoot(unittest.TestCase):
    def test_nothing_of_root_is_left(self):
        self.assertNotIn(0, (os.getuid(), os.geteuid(), os.getgid(), *os.getgroups()))
        with open("/proc/self/status", encoding="ascii") as file:
            status = dict(line.split(":\t", 1) for line in file if ":\t" in line)
        self.assertEqual(int(status["CapEff"], 16), 0)
        if ordinary_user.inside():
            self.assertEqual(int(status["CapBnd"], 16), 0)
            self.assertEqual(status["NoNewPrivs"].strip(), "1", "no sudo gives it back")


class OverTls(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.controller = self.start_controller("127.0.0.1:0", "127.0.0.1:0")
        self.listen, self.enrol = self.cluster.tcp_address(), self.cluster.announced()["enrol"]
        self.at_socket = {"MUSTER_CONTROLLER": self.cluster.endpoint, "MUSTER_CREDENTIALS": ""}

    def start_controller(self, listen, enrol):
        return self.cluster.controller("--enrol", enrol, listen=listen)

    def owner(self, *words, code=0):
        """By the unix socket, as the user who runs the controller."""
        return self.cluster.muster(*words, env=self.at_socket, code=code).out

    def join(self, node, token):
        return self.cluster.agent(
            node,
            devices=2,
            controller=self.listen,
            args=["--enrol", self.enrol, "--join", token],
            wait=False,
        )

    def gated(self, name, gate, nodes):
        return self.cluster.submit(
            f"name: {name}\nengine: command\nlaunch: {{run: [sh, -c, 'echo begun by $(id -u); read x < {gate.path}; echo over']}}\n"
            f"resources: {{nodes: {nodes}, devices: 1, type: cpu}}\n"
        )

    def test_the_whole_story(self):
        cluster = self.cluster
        token = cluster.path("token")
        self.owner("token", "create", "--node", "n*", "--uses", "2", "-o", token)
        agents = [self.join(node, token) for node in ("n0", "n1")]
        for agent in agents:
            agent.wait_for("attached to the controller")
        cluster.env.update(cluster.over_tcp("ann"))
        with cluster.gate() as gate:
            job = self.gated("both", gate, 2)
            cluster.muster("wait", job, "--for", "running", "--timeout", "60s", code=0)
            for rank in cluster.rank_processes():
                self.assertEqual(os.stat(f"/proc/{rank.pid}").st_uid, os.getuid())
            # Both daemons die; the ranks do not notice.
            self.controller.stop(signal.SIGKILL)
            agents[0].stop(signal.SIGKILL)
            self.controller = self.start_controller(self.listen, self.enrol)
            agents[0] = self.join("n0", token)
            agents[0].wait_for("attached to the controller")
            gate.open(2)
            cluster.wait(job)
        logs = cluster.output("logs", job, "-f")
        self.assertEqual(logs.count(f"begun by {os.getuid()}"), 2, logs)
        self.assertEqual(logs.count("over"), 2)
        self.assertEqual(len(cluster.show(job)["attempts"]), 1, "nothing broke")
        self.drain_and_cancel()
        self.owner("cert", "revoke", "n1", "--why", "sold")
        agents[1].wait_for("was revoked: sold")
        self.assertEqual(agents[0].logged().count("attached to the controller"), 1)

    def drain_and_cancel(self):
        cluster = self.cluster
        self.owner("node", "drain", "n1", "--why", "new disk")
        with cluster.gate("other") as gate:
            waits, one = self.gated("waits", gate, 2), self.gated("one", gate, 1)
            cluster.muster("wait", one, "--for", "running", "--timeout", "60s", code=0)
            self.assertIn("'n1' drains", cluster.output("why", waits))
            cluster.muster("cancel", one, "--reason", "enough", code=0)
            cluster.wait(one, code=3)
            self.owner("node", "undrain", "n1")
            cluster.muster("wait", waits, "--for", "running", "--timeout", "60s", code=0)
            gate.open(2)
            cluster.wait(waits)


class Local(unittest.TestCase):
    def test_up_a_job_down(self):
        cluster = Cluster()
        self.addCleanup(cluster.close)
        cluster.env["MUSTER_LOCAL_DIR"] = cluster.path("cluster")
        cluster.env.pop("MUSTER_CONTROLLER")
        self.addCleanup(cluster.muster, "local", "down")
        cluster.muster("local", "up", "--nodes", "2", "--devices", "2", code=0)
        cluster.trivial()
        shown = json.loads(cluster.output("node", "ls", "-o", "json"))["items"]
        self.assertEqual([node["name"] for node in shown], ["n0", "n1"])
        self.assertIn("is down", cluster.muster("local", "down", code=0).out)


class Tarball(unittest.TestCase):
    """The release, unpacked at home."""

    def test_it_is_unpacked_and_works(self):
        if not os.environ.get(TARBALL):
            self.skipTest("there is no package of this build")
        cluster = Cluster()
        self.addCleanup(cluster.close)
        with tarfile.open(os.environ[TARBALL]) as tar:
            tar.extractall(cluster.path("release"))
        (top,) = os.listdir(cluster.path("release"))
        cluster.env["MUSTER_LOCAL_DIR"] = cluster.path("cluster")
        cluster.env.pop("MUSTER_CONTROLLER")

        def muster(*words):
            program = cluster.path("release", top, "bin", "muster")
            return subprocess.run(
                [program, *words],
                env=cluster.env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=DEADLINE,
                check=True,
            ).stdout

        self.addCleanup(muster, "local", "down")
        muster("local", "up", "--nodes", "1", "--devices", "1")
        for pid in re.findall(r"running +(\d+)", muster("local", "status")):
            self.assertIn(cluster.path("release"), os.readlink(f"/proc/{pid}/exe"))
        cluster.trivial()


@unittest.skipUnless(SSHD, "there is no 'sshd'")
@unittest.skipUnless(own_name(), "this user has no name here, and SSH logs in names")
class Deploy(unittest.TestCase):
    """To the own account on this machine: controller and agent, with muster's supervisor in the place of systemd."""

    def setUp(self):
        self.cluster = Cluster()  # its directory and environment
        self.addCleanup(self.cluster.close)
        for name in ("id", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.cluster.path(name)], check=True)  # fmt: skip
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start_sshd()
        with open(self.cluster.path("key.pub"), encoding="utf-8") as file:
            self.cluster.write("known", f"[127.0.0.1]:{self.port} {' '.join(file.read().split()[:2])}\n")  # fmt: skip
        host = {"host": "127.0.0.1"}
        login = {
            "port": self.port,
            "user": own_name(),
            "identity": self.cluster.path("id"),
            "known_hosts": self.cluster.path("known"),
            "prefix": self.cluster.path("deployed"),
        }
        state = {"state_dir": self.cluster.path("deployed-state", "controller")}
        ports = {"listen": f"127.0.0.1:{self.free()}", "enrol": f"127.0.0.1:{self.free()}"}
        self.hosts = self.cluster.write(
            "hosts.yaml",
            json.dumps({
                "cluster": "own",
                "defaults": login,
                "controller": {**host, **state, **ports},
                "agents": {"own": {**host, "devices": 2, "state_dir": self.cluster.path("deployed-state", "agent")}},
            }),
        )  # fmt: skip

    def free(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return free.getsockname()[1]

    def start_sshd(self):
        path = self.cluster.path
        config = self.cluster.write(
            "sshd_config",
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {path('key')}\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"UsePAM no\nPidFile none\nStrictModes no\nAuthorizedKeysFile {path('id.pub')}\n",
        )
        with open(path("sshd.log"), "wb") as log:
            daemon = subprocess.Popen([SSHD, "-D", "-e", "-f", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # fmt: skip
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)

        def listens():
            with socket.socket() as one:
                return one.connect_ex(("127.0.0.1", self.port)) == 0

        wait_until(lambda: listens() or daemon.poll() is not None, what="sshd")
        self.assertIsNone(daemon.poll(), "sshd ended")

    def deploy(self, verb, *more, code=0):
        done = self.cluster.muster(
            "deploy", verb, self.hosts, *more, code=code, within=2 * DEADLINE
        )
        return done.out + done.err

    def test_plan_up_down(self):
        self.assertIn("upload muster, muster-controller", self.deploy("plan"))
        self.assertFalse(os.path.exists(self.cluster.path("deployed")), "plan changes nothing")
        self.addCleanup(self.deploy, "down", "--force", "--purge")
        self.assertIn(" done ", self.deploy("up"))
        self.assertNotIn(" no ", self.deploy("status"))
        self.cluster.env["MUSTER_CONTROLLER"] = self.cluster.path("deployed-state", "controller", "endpoint.json")  # fmt: skip
        self.cluster.trivial()
        self.assertIn("nothing to do", self.deploy("plan"))


if __name__ == "__main__":
    chosen = [word for word in sys.argv[1:] if not word.startswith("-")]
    with tempfile.TemporaryDirectory() as made:
        if TARBALL not in os.environ and (not chosen or "Tarball" in chosen[0]):
            os.environ[TARBALL] = make_tarball(made)
        if os.geteuid() == 0:
            sys.exit(ordinary_user.run_again(__file__, *(() if chosen else ALSO)))
        unittest.main()
