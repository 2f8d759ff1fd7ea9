#!/usr/bin/python3
"""muster deploy over SSH: hosts with real SSH servers (ssh_hosts.py), from nothing to a running cluster and back to nothing, and what is in the way.

MUSTER_TEST_HOSTS says how many hosts there are (default 3: the controller's and two nodes).

Run:  /usr/bin/python3 -B tests/integration/deploy_test.py [-v] [CASE]       (MUSTER_BIN names the binaries' folder)
"""

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import namespaces
import ssh_hosts
from cluster import wait_until
from cluster.programs import DEADLINE, binary

HOSTS = max(3, int(os.environ.get("MUSTER_TEST_HOSTS") or 3))
LEFT = "find /opt /var/lib ~root /home/ann -mindepth 1 -not -path '*/.ssh*' -not -name .ssh"


@functools.cache
def programs():
    """A folder with the programs as packages have them: without symbols, a third of the size."""
    folder = tempfile.mkdtemp(prefix="programs")
    for each in ("muster", "muster-agent", "muster-controller", "muster-worker"):
        if shutil.which("strip") is None:
            shutil.copy(binary(each), folder)
        else:
            subprocess.run(["strip", "-o", os.path.join(folder, each), binary(each)], check=True)
    return folder


def program(name="muster"):
    return os.path.join(programs(), name)


@functools.cache
def version():
    return subprocess.run([program(), "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]


class Fleet:
    """Hosts 0 to N-1; the controller is on host 0, the nodes are n1 to nN-1."""

    def __init__(self, count=HOSTS, options=None):
        self.folder = tempfile.mkdtemp(prefix="deploy")
        ssh_hosts.prepare(self.folder)
        self.hosts = []
        try:
            for number in range(count):
                self.hosts.append(ssh_hosts.SshHost(self.folder, number, **(options or {}).get(number, {})))
        except BaseException:
            self.close()
            raise
        self.write_known()
        self.file = os.path.join(self.folder, "hosts.yaml")
        self.write_hosts()

    def close(self):
        for host in self.hosts:
            host.close()

    def place_programs(self, numbers=None):
        """As an upload that was all that happened: where a test is about something else, `up` need not send 50 MB to each host. All of these hosts have to
        be deployed in the end, with the default prefix: only then does `down --purge` remove the programs."""
        bin_dir = f"/opt/muster/{version()}/bin"
        for host in self.hosts if numbers is None else [self.hosts[number] for number in numbers]:
            of_role = ["muster-agent", "muster-worker"] if host.number else ["muster-controller"]
            files = " ".join(program(name) for name in ["muster", *of_role])
            host.sh(f"umask 022; mkdir -p {bin_dir}; cp {files} {bin_dir}; chmod 755 {bin_dir}/*")

    def write_known(self):
        with open(os.path.join(self.folder, "known_hosts"), "w", encoding="utf-8") as file:
            file.write("".join(host.known() for host in self.hosts))

    def write_hosts(self, agent=lambda number: {}, controller=None, defaults=None):
        file = {
            "cluster": "test",
            "defaults": {"user": "root", "identity": f"{self.folder}/id", "known_hosts": f"{self.folder}/known_hosts", "devices": 2, **(defaults or {})},
            "controller": {"host": self.hosts[0].address, **(controller or {})},
            "agents": {f"n{host.number}": {"host": host.address, **agent(host.number)} for host in self.hosts[1:]},
        }  # fmt: skip
        with open(self.file, "w", encoding="utf-8") as out:
            json.dump(file, out)  # JSON is YAML

    def environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SSH_", "MUSTER_"))}
        return {**kept, "HOME": self.folder, "USER": "operator"}

    def start(self, verb, *more):
        return subprocess.Popen(
            [program(), "deploy", verb, self.file, *more],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment(),
        )  # fmt: skip

    def deploy(self, verb, *more, code=0):
        process = self.start(verb, *more)
        out, err = process.communicate(timeout=DEADLINE * 2)
        if process.returncode != code:
            raise AssertionError(f"deploy {verb}: exit {process.returncode}, not {code}\n{out}\n{err}")
        return out + err

    def muster(self, *words, code=0):
        """On the controller's host, by the programs that were deployed there."""
        done = subprocess.run(
            ["nsenter", f"--target={self.hosts[0].init_pid()}", "--mount", "--root", "--uts", "--ipc", "--net", "--pid",
             "/opt/muster/current/bin/muster", "--controller", "/var/lib/muster/controller/endpoint.json", *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=DEADLINE, env={"PATH": os.environ["PATH"], "HOME": "/root"},
        )  # fmt: skip
        if done.returncode != code:
            raise AssertionError(f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout


class DeployTest(unittest.TestCase):
    count, options = HOSTS, None

    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet(cls.count, cls.options)
        cls.addClassCleanup(cls.fleet.close)

    def assert_left_nothing(self):
        for host in self.fleet.hosts:
            self.assertEqual(host.sh(LEFT), "", f"{host.name}: files are left")
            self.assertNotIn("muster", host.sh("cat /proc/[0-9]*/comm 2>/dev/null; true"), f"{host.name}: processes are left")

    def assert_up(self):
        self.assertNotIn(" no ", self.fleet.deploy("status"))


class WholeLife(DeployTest):
    """Up, a job over two nodes, up again, an agent that dies, down."""

    # Without `access` a person has to say so: whoever logs in may submit jobs.
    controller = {"login_socket": "/run/muster/login.sock"}

    def test_it(self):
        fleet = self.fleet
        fleet.write_hosts(controller=self.controller)
        plan = fleet.deploy("plan")
        self.assertIn("upload muster, muster-controller", plan)
        for host in fleet.hosts:
            self.assertEqual(host.sh(LEFT + " -type f"), "", "plan changed something")
        up = fleet.deploy("up")
        self.assertEqual(up.count(" done "), HOSTS, up)
        self.assert_up()
        self.assertIn("nothing to do", fleet.deploy("plan"))
        self.credentials_are_private()
        self.a_user_of_the_head_logs_in()
        self.a_job_runs()
        before = [host.sh("cat /opt/muster/*/supervisor") for host in fleet.hosts]
        again = fleet.deploy("up")
        self.assertEqual(again.count(" unchanged "), HOSTS, again)
        self.assertEqual(before, [host.sh("cat /opt/muster/*/supervisor") for host in fleet.hosts])
        self.a_killed_agent_is_back(fleet.hosts[1])
        self.a_killed_supervisor_is_replaced(fleet.hosts[2])
        self.a_changed_option_starts_one_agent(before)
        self.down_refuses_while_a_job_runs()
        fleet.deploy("down", "--force", "--purge")
        self.assert_left_nothing()
        self.assertIn("nothing is deployed", fleet.deploy("down"))

    def credentials_are_private(self):
        for host in self.fleet.hosts[1:]:
            self.assertEqual(host.sh("stat -c %a /opt/muster/agent/credentials.pem /opt/muster/agent").split(), ["600", "700"])
            self.assertNotIn("PRIVATE KEY", host.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; cat /var/lib/muster/agent/*.log"))
        self.assertEqual(self.fleet.hosts[0].sh("ls -d /opt/muster/controller/issue.* 2>/dev/null; true"), "")

    def a_user_of_the_head_logs_in(self):
        muster = "env -i PATH=$PATH HOME=/tmp/ann setpriv --reuid=1500 --regid=1500 --clear-groups /opt/muster/current/bin/muster"
        self.fleet.hosts[0].sh(f"install -d -o 1500 -g 1500 /tmp/ann; {muster} login")
        self.assertIn("ann", self.fleet.hosts[0].sh(f"{muster} login --status"))

    def submit(self, name, command, wait=True):
        text = (f"name: {name}\nengine: command\nlaunch: {{run: {json.dumps(command)}}}\nresources: {{nodes: 2, devices: 1, type: cpu}}\n"
                "outputs: {dir: /tmp/out}\nrecovery: {max_restarts: 0}\n")  # fmt: skip
        host = self.fleet.hosts[0]
        host.sh(f"cat > /tmp/{name}.yaml <<'END'\n{text}END")
        return self.fleet.muster("run", f"/tmp/{name}.yaml", *(["-q", "--timeout", "60s"] if wait else ["-d"]))

    def a_job_runs(self):
        self.submit("two", "uname -n")
        logs = self.fleet.muster("logs", "two", "-f")
        names = set(re.findall(r"\bh\d+\b", logs))
        self.assertEqual(len(names), 2, logs)
        self.assertLessEqual(names, {host.name for host in self.fleet.hosts[1:]}, logs)

    def agent_pid(self, host):
        return host.sh("cut -d' ' -f4 /opt/muster/agent/supervisor 2>/dev/null", check=False).strip()

    def a_killed_agent_is_back(self, host):
        old = self.agent_pid(host)
        host.sh(f"kill -9 {old}")
        wait_until(lambda: self.agent_pid(host) not in ("", old), what="the agent's next process")
        self.wait_registered()

    def a_killed_supervisor_is_replaced(self, host):
        old = host.sh("cut -d' ' -f2 /opt/muster/agent/supervisor").strip()
        host.sh(f"kill -9 {old}")
        self.assertIn("start it", self.fleet.deploy("plan"))
        self.fleet.deploy("up")
        self.assertNotEqual(old, host.sh("cut -d' ' -f2 /opt/muster/agent/supervisor").strip())
        self.assertEqual(host.sh("grep -lx muster-agent /proc/[0-9]*/comm | wc -l").strip(), "1")

    def wait_registered(self):
        def all_there():
            items = json.loads(self.fleet.muster("node", "ls", "-o", "json"))["items"]
            return sum(item.get("connected", False) and not item.get("silent", False) for item in items) == HOSTS - 1

        wait_until(all_there, what="all nodes")

    def a_changed_option_starts_one_agent(self, _):
        host, other = self.fleet.hosts[1:3]
        pids = self.agent_pid(host), self.agent_pid(other)
        self.fleet.write_hosts(agent=lambda number: {"labels": {"rack": "r1"}} if number == 1 else {}, controller=self.controller)
        up = self.fleet.deploy("up")
        self.assertEqual(up.count(" done "), 1, up)
        self.assertNotEqual(self.agent_pid(host), pids[0])
        self.assertEqual(self.agent_pid(other), pids[1])
        self.assertIn("r1", self.fleet.muster("node", "show", "n1", "-o", "json"))

    def down_refuses_while_a_job_runs(self):
        self.submit("long", "sleep 600", wait=False)
        self.assertIn("jobs have not ended: long", self.fleet.deploy("down", code=12))
        self.assert_up()


class Faults(DeployTest):
    """Each has its sentence, leaves the other hosts alone, and the next run does only what is left."""

    def tearDown(self):
        self.fleet.write_known()
        self.fleet.write_hosts()
        self.fleet.deploy("down", "--force", "--purge")
        self.assert_left_nothing()

    def up_without_n2(self, sentence):
        up = self.fleet.deploy("up", code=1)
        self.assertRegex(up, sentence)
        self.assertEqual(up.count(" done "), HOSTS - 1, up)

    def up_with_n2(self):
        up = self.fleet.deploy("up")
        self.assertEqual((up.count(" done "), up.count(" unchanged ")), (1, HOSTS - 1), up)
        self.assert_up()

    def test_a_host_that_refuses_connections(self):
        self.fleet.place_programs()
        self.fleet.write_hosts(agent=lambda number: {"port": 2} if number == 2 else {})
        self.up_without_n2(r"n2 .*refused")
        self.fleet.write_hosts()
        self.up_with_n2()

    def test_a_changed_host_key(self):
        self.fleet.place_programs()
        host, known = self.fleet.hosts[2], self.fleet.hosts[2].known()
        path = os.path.join(self.fleet.folder, "known_hosts")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(known, self.fleet.hosts[1].known().replace(self.fleet.hosts[1].address, host.address)))
        self.up_without_n2(r"n2 .*key.* has changed")
        self.fleet.write_known()
        self.up_with_n2()

    def test_a_full_disk(self):
        self.fleet.place_programs()
        host = self.fleet.hosts[2]
        host.sh("mount -t tmpfs -o size=20m none /opt")
        self.up_without_n2(r"n2 .*'/opt/muster' has \d+ MiB free, and needs \d+ MiB")
        host.sh("umount /opt")
        self.up_with_n2()

    def test_a_noexec_prefix(self):
        self.fleet.place_programs()
        host = self.fleet.hosts[2]
        host.sh("mount -o remount,noexec /opt")
        self.up_without_n2(r"n2 .*mounted noexec")
        host.sh("mount -o remount,exec /opt")
        self.up_with_n2()

    def test_no_sudo(self):
        self.fleet.place_programs()
        self.fleet.write_hosts(agent=lambda number: {"user": "ann", "sudo": True} if number == 2 else {})
        self.up_without_n2(r"n2 .*becoming root on .*: (there is no sudo; log in as root|sudo wants a password, and there is nobody to ask)")
        self.fleet.write_hosts()
        self.up_with_n2()

    def test_an_unreachable_controller(self):
        self.fleet.place_programs()
        host = self.fleet.hosts[2]
        host.sh(f"ip route add unreachable {self.fleet.hosts[0].address}")
        self.up_without_n2(r"n2 .*cannot be reached from this host")
        host.sh(f"ip route del unreachable {self.fleet.hosts[0].address}")
        self.up_with_n2()

    @unittest.skipUnless(shutil.which("iptables"), "there is no 'iptables'")
    def test_a_firewall_that_rejects(self):
        """As firewalld does. "No route to host" was taken for a route that is missing."""
        head = self.fleet.hosts[0]
        for address, tables, reject in ((head.address, "iptables", "icmp-admin-prohibited"), (head.address6, "ip6tables", "icmp6-adm-prohibited")):
            self.fleet.write_hosts(controller={"address": address, "listen": "[::]:7070"})
            rule = f"INPUT -p tcp --dport 7070 -j REJECT --reject-with {reject}"
            head.sh(f"{tables} -A {rule}")
            self.addCleanup(head.sh, f"{tables} -D {rule}", False)
            self.assertRegex(self.fleet.deploy("plan", code=1), r"n2: problem: .*: most likely a firewall on the controller's host rejects it; open TCP port 7070 there")
            head.sh(f"{tables} -D {rule}")

    def test_killed_in_the_middle_of_an_upload(self):
        process = self.fleet.start("up")
        while "sending muster-agent" not in process.stderr.readline():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGKILL)
        process.communicate()
        up = self.fleet.deploy("up")
        self.assertNotIn("failed", up)
        self.assertRegex(up, r"controller +\S+ +unchanged")
        self.assert_up()
        for each in self.fleet.hosts:
            self.assertEqual(each.sh("find /opt -name '*.new'"), "")

    def test_two_at_once(self):
        first = self.fleet.start("up")
        while "sending" not in first.stderr.readline():
            self.assertIsNone(first.poll())
        second = self.fleet.deploy("up", code=12)
        self.assertRegex(second, r"operator@\S+ deploys since 20\d\d-")
        out, err = first.communicate(timeout=DEADLINE * 2)
        self.assertEqual(first.returncode, 0, out + err)

    def test_as_a_user_without_root(self):
        self.fleet.write_hosts(defaults={"user": "ann"})
        self.fleet.deploy("up")
        self.assert_up()
        self.assertEqual(self.fleet.hosts[1].sh("stat -c %U /home/ann/.muster/agent").strip(), "ann")
        self.fleet.deploy("down", "--purge")


class Hold:
    """While it is there, `program` waits on the host before it does anything."""

    def __init__(self, host, program):
        self.host, self.path = host, host.sh(f"readlink -f $(command -v {program})").strip()
        host.sh(
            f"cp {self.path} /tmp/{program}.own; : > /tmp/hold\n"
            f"printf '#!/bin/sh\\n: > /tmp/held\\nwhile [ -e /tmp/hold ]; do sleep 0.1; done\\nexec /tmp/{program}.own \"$@\"\\n' > /tmp/{program}\n"
            f"chmod 755 /tmp/{program}; mount --bind /tmp/{program} {self.path}"
        )

    def wait(self):
        wait_until(lambda: self.host.sh("ls /tmp").split().count("held"), within=60, what="the step that waits")

    def end(self):
        self.host.sh("rm -f /tmp/hold")

    def close(self):
        self.host.sh(f"rm -f /tmp/hold; umount {self.path}; rm -f /tmp/held", check=False)


class Lock(DeployTest):
    """The deployment's lock, whose owner works, is killed, or loses it."""

    DIR = "/var/lib/muster/controller"
    MARK = "eve@elsewhere|2026-11-26T10:00:00Z|no-boot|1|1"

    def setUp(self):
        self.head = self.fleet.hosts[0]

    def tearDown(self):
        self.fleet.deploy("down", "--force", "--purge")
        self.assert_left_nothing()

    def test_a_stale_lock_has_one_next_owner(self):
        self.head.sh(
            f"mkdir -p {self.DIR}/deploy/lock; : > {self.DIR}/.muster-deploy; printf '{self.MARK}' > {self.DIR}/deploy/lock/owner\n"
            f"touch -d '5 minutes ago' {self.DIR}/deploy/lock"
        )
        ups = [self.fleet.start("up") for _ in range(2)]
        outs = ["".join(each.communicate(timeout=DEADLINE * 2)) for each in ups]
        self.assertEqual(sorted(each.returncode for each in ups), [0, 12], outs)
        self.assertRegex("".join(outs), r"operator@\S+ deploys since 20\d\d-")
        self.assertEqual(self.head.sh(f"ls {self.DIR}/deploy"), "manifest.json\n")

    def test_it_is_kept_during_a_long_step_and_another_ones_stays(self):
        hold = Hold(self.head, "gzip")
        self.addCleanup(hold.close)
        process = self.fleet.start("up")
        hold.wait()
        lock = f"{self.DIR}/deploy/lock"
        self.head.sh(f"touch -d '2 minutes ago' {lock}")
        age = lambda: int(self.head.sh(f"echo $(( $(date +%s) - $(stat -c %Y {lock}) ))"))
        wait_until(lambda: age() < 60, within=60, what="the owner's touch")
        self.head.sh(f"printf '{self.MARK}' > {lock}/owner")  # as one that took it over
        hold.end()
        out, err = process.communicate(timeout=DEADLINE * 2)
        self.assertEqual(process.returncode, 70, out + err)
        self.assertIn("another one took the lock of the deployment over", err)
        self.assertEqual(self.head.sh(f"cat {lock}/owner"), self.MARK)
        self.assertIn("eve@elsewhere deploys since", self.fleet.deploy("up", code=12))
        self.head.sh(f"rm -r {lock}")
        self.fleet.deploy("up")


class Changes(DeployTest):
    """What a later run finds changed."""

    def setUp(self):
        self.fleet.place_programs()

    def tearDown(self):
        self.fleet.write_hosts()
        self.fleet.deploy("down", "--force", "--purge")
        self.assert_left_nothing()

    def manifest(self):
        return json.loads(self.fleet.hosts[0].sh("cat /var/lib/muster/controller/deploy/manifest.json"))

    def test_another_state_directory_of_the_controller_is_refused(self):
        self.fleet.deploy("up")
        self.fleet.write_hosts(controller={"state_dir": "/var/lib/other"})
        self.assertIn("was state_dir changed? run 'muster deploy down' with the old hosts.yaml first", self.fleet.deploy("up", code=12))
        self.assertEqual(self.fleet.hosts[0].sh("ls /var/lib"), "muster\n")
        self.fleet.write_hosts()
        self.assertEqual(self.fleet.deploy("up").count(" unchanged "), HOSTS)

    def test_down_forgets_a_host_that_is_gone(self):
        self.fleet.deploy("up")
        gone = self.fleet.hosts[2].address
        namespaces.ip("route", "add", "unreachable", gone)
        try:
            self.assertRegex(self.fleet.deploy("down", code=1), r"n2 .*if the host does not come back, use --force")
            self.fleet.deploy("up", code=1)
            down = self.fleet.deploy("down", "--force")
            self.assertRegex(down, r"n2 .* done +forgotten, and what is there stays there: ")
            self.assertIn("nothing is deployed", self.fleet.deploy("down"))
        finally:
            namespaces.ip("route", "del", "unreachable", gone)
        self.fleet.deploy("up")

    def test_old_versions_go(self):
        self.fleet.deploy("up")
        host, manifest = self.fleet.hosts[1], self.manifest()
        versions = manifest["agents"]["n1"]["versions"]
        manifest["agents"]["n1"]["versions"] = ["0.0.1", "0.0.2", "0.0.3", *versions]
        host.sh("for v in 1 2 3; do mkdir -p /opt/muster/0.0.$v/bin; : > /opt/muster/0.0.$v/bin/muster; done")
        self.fleet.hosts[0].sh(f"cat > /var/lib/muster/controller/deploy/manifest.json <<'END'\n{json.dumps(manifest)}\nEND")
        self.assertIn("removing old versions: 0.0.1, 0.0.2", self.fleet.deploy("up"))
        self.assertEqual(host.sh("ls /opt/muster").split(), ["0.0.3", *versions, "agent", "current"])
        self.assertEqual(self.manifest()["agents"]["n1"]["versions"], ["0.0.3", *versions])

    def test_an_agent_of_before_does_not_count_as_registered(self):
        """The agent starts again, and cannot reach the controller, which still takes the one of before for alive."""
        host, slow = self.fleet.hosts[1], {"heartbeat_interval": "10s"}
        self.fleet.write_hosts(controller=slow)
        self.fleet.deploy("up")
        self.fleet.write_hosts(controller=slow, agent=lambda number: {"labels": {"rack": "r1"}} if number == 1 else {})
        hold = Hold(host, "sync")
        self.addCleanup(hold.close)
        process = self.fleet.start("up", "--timeout", "3s")
        hold.wait()
        host.sh(f"ip route add unreachable {self.fleet.hosts[0].address}")
        hold.end()
        out, err = process.communicate(timeout=DEADLINE * 2)
        host.sh(f"ip route del unreachable {self.fleet.hosts[0].address}")
        self.assertEqual(process.returncode, 1, out + err)
        self.assertRegex(out, r"n1 .*the controller does not see the node after 3 s")
        self.fleet.deploy("up")


class UnknownKeys(unittest.TestCase):
    def test_a_mistake_has_its_place(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "hosts.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("controller: head\nagents:\n  a: {hots: x}\n")
            done = subprocess.run([binary("muster"), "deploy", "up", path], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 64)
            self.assertIn("hosts.yaml:3:7: key 'hots' is unknown; did you mean 'host'?", done.stderr)


if __name__ == "__main__":
    namespaces.main(("ip", "nsenter", "ssh-keygen"), "ip netns add a && ip link add va type veth peer vb netns a", ssh_hosts.why_not)
