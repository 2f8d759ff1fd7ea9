#!/usr/bin/python3
"""muster deploy where something is not as it was: an agent that moved in hosts.yaml, a name that another agent has, a stopped controller, directories of
others, outputs of jobs, drained nodes, certificates that renew themselves. The hosts are those of ssh_hosts.py.

Run:  /usr/bin/python3 -B tests/integration/deploy_faults_test.py [-v] [CASE]       (MUSTER_BIN names the binaries' folder)
"""

import datetime
import json
import os
import re
import shutil
import unittest

import namespaces
import ssh_hosts
from cluster import wait_until
from cluster.programs import DEADLINE
from deploy_test import HOSTS, DeployTest

HEAD = "/var/lib/muster/controller"
BIN = "/opt/muster/current/bin"


class FaultsTest(DeployTest):
    def tearDown(self):
        self.fleet.write_hosts()
        self.fleet.deploy("down", "--force", "--purge", "--outputs")
        self.assert_left_nothing()

    def nodes(self):
        return {item["name"]: item for item in json.loads(self.fleet.muster("node", "ls", "-o", "json"))["items"]}

    def only(self, number, **keys):
        self.fleet.write_hosts(agent=lambda each: keys if each == number else {})

    def sleeping_job(self):
        text = (
            "name: long\nengine: command\nlaunch: {run: sleep 987}\nresources: {nodes: 2, devices: 1, type: cpu}\n"
            "outputs: {dir: /tmp/out}\nrecovery: {max_restarts: 0}\n"
        )
        self.fleet.hosts[0].sh(f"cat > /tmp/long.yaml <<'END'\n{text}END")
        self.fleet.muster("run", "/tmp/long.yaml", "-d")
        wait_until(lambda: all(self.sleepers(host) for host in self.fleet.hosts[1:]), what="the job's ranks")

    def sleepers(self, host):
        return host.sh("grep -lsx sleep /proc/[0-9]*/comm | wc -l").strip() != "0"


class Places(FaultsTest):
    def test_an_agent_that_moved_is_refused_until_it_was_removed(self):
        self.fleet.place_programs()
        self.fleet.deploy("up")
        host = self.fleet.hosts[1]
        for keys in ({"prefix": "/opt/other"}, {"state_dir": "/var/lib/other/agent"}):
            self.only(1, **keys)
            sentence = r"n1[^\n]*(\n[^\n]*)*it is deployed on '\S+' as 'root', with prefix '/opt/muster'"
            self.assertRegex(self.fleet.deploy("plan", code=1), sentence)
            self.assertRegex(self.fleet.deploy("up", code=1), sentence)
            self.assertEqual(host.sh("grep -lsx muster-agent /proc/[0-9]*/comm | wc -l").strip(), "1")
            self.assertEqual(host.sh("ls /opt; ls /var/lib").split(), ["muster", "muster"])
        # A key in another file is no other place, and the manifest learns of it.
        key = f"{self.fleet.folder}/id.new"
        os.rename(f"{self.fleet.folder}/id", key)
        self.addCleanup(lambda: os.path.exists(key) and os.rename(key, f"{self.fleet.folder}/id"))
        self.fleet.write_hosts(defaults={"identity": key})
        self.assertEqual(self.fleet.deploy("up").count(" unchanged "), HOSTS)
        manifest = f"grep -c id.new {HEAD}/deploy/manifest.json; true"
        self.assertEqual(self.fleet.hosts[0].sh(manifest).strip(), str(HOSTS))
        # Also where it is the controller's login alone.
        shutil.copy(key, f"{self.fleet.folder}/id")
        for of_controller, count in (({}, 0), ({"identity": key}, 1)):
            self.fleet.write_hosts(controller=of_controller)
            self.assertEqual(self.fleet.deploy("up").count(" unchanged "), HOSTS)
            self.assertEqual(self.fleet.hosts[0].sh(manifest).strip(), str(count))
        os.rename(key, f"{self.fleet.folder}/id")
        self.fleet.write_hosts()
        self.fleet.deploy("down", "--purge")

    def test_another_agent_of_the_name_is_not_the_hosts_own(self):
        self.fleet.place_programs()
        self.only(1, port=2)
        self.fleet.deploy("up", code=1)
        self.fleet.muster("cert", "issue", "--node", "n1", "-o", "/tmp/n1.pem")
        head, host = self.fleet.hosts[0], self.fleet.hosts[2]
        host.sh(f"umask 077; cat > /tmp/n1.pem <<'END'\n{head.sh('cat /tmp/n1.pem')}END")
        pid = host.sh(
            f"setsid {BIN}/muster-agent --controller {head.address}:7070 --credentials /tmp/n1.pem --name n1 --state-dir /tmp/n1 --devices=2 "
            "--log-file /tmp/n1.log </dev/null >/dev/null 2>&1 & echo $!"
        ).strip()
        self.addCleanup(host.sh, "rm -rf /tmp/n1 /tmp/n1.pem /tmp/n1.log")
        self.addCleanup(host.sh, f"kill {pid}; while [ -d /proc/{pid} ]; do sleep 0.1; done", False)
        wait_until(lambda: self.nodes().get("n1", {}).get("connected"), what="the other agent")
        self.fleet.write_hosts()
        up = self.fleet.deploy("up", "--timeout", "5s", code=1)
        self.assertRegex(up, r"the controller sees another agent of this name after 5 s")
        self.assertRegex(self.fleet.deploy("status", code=1), r"n1 .* no +the controller sees another agent of this name")
        host.sh(f"kill {pid}", False)

    def test_a_wrong_controller_does_not_take_the_cluster_over(self):
        self.fleet.place_programs()
        self.fleet.deploy("up")
        self.sleeping_job()
        self.fleet.write_hosts(controller={"host": self.fleet.hosts[2].address})
        foreign = r"n1: problem: it belongs to cluster '\w+', and the controller's host to none yet"
        self.assertRegex(self.fleet.deploy("plan", code=1), foreign)
        self.assertRegex(self.fleet.deploy("up", code=70), r"node 'n1' belongs to cluster '\w+'; is 'controller' the right host\?; nothing was changed")
        self.assertRegex(self.fleet.deploy("status", code=1), r"n1 .* it belongs to cluster")
        self.assertIn("nothing is deployed", self.fleet.deploy("down"))
        self.fleet.write_hosts()
        self.assertEqual(self.fleet.deploy("up").count(" unchanged "), HOSTS)
        self.assertTrue(all(self.sleepers(host) for host in self.fleet.hosts[1:]))

    def test_a_node_that_a_job_uses_keeps_its_name(self):
        self.fleet.place_programs()
        self.fleet.deploy("up")
        self.sleeping_job()
        with open(self.fleet.file, encoding="utf-8") as file:
            hosts = json.load(file)
        hosts["agents"]["z1"] = hosts["agents"].pop("n1")
        with open(self.fleet.file, "w", encoding="utf-8") as file:
            json.dump(hosts, file)
        refused = r"z1[^\n]*(\n[^\n]*)*it is deployed there as node 'n1', and jobs use that: long"
        self.assertRegex(self.fleet.deploy("plan", code=1), refused)
        up = self.fleet.deploy("up", code=1)
        self.assertRegex(up, refused)
        self.assertRegex(up, r"n1 .* it still runs")
        self.assertEqual(set(self.nodes()), {f"n{host.number}" for host in self.fleet.hosts[1:]})
        self.fleet.muster("cancel", "long")
        self.fleet.muster("wait", "long", code=3)
        self.assertRegex(self.fleet.deploy("up"), r"n1 .* 'z1' takes its place on the host")
        self.assertRegex(self.fleet.deploy("up", "--prune"), r"n1 .* done ")

    def test_down_leaves_agents_of_another_cluster(self):
        self.fleet.place_programs()
        self.fleet.deploy("up")
        head, credentials = self.fleet.hosts[0], "/opt/muster/agent/credentials.pem"
        before = self.fleet.hosts[1].sh(f"cat {credentials}")
        # As if somebody else had brought the agents' hosts up since.
        own = json.loads(head.sh(f"cat {HEAD}/endpoint.json"))["cluster_id"]
        head.sh(f"cp {HEAD}/deploy/manifest.json /tmp; sed -i s/{own}/0123456789abcdef/ {HEAD}/endpoint.json")
        self.assertRegex(self.fleet.deploy("down"), rf"n1 .* unchanged +left as it is: it belongs to cluster '{own}'")
        self.assertEqual(self.fleet.hosts[1].sh(f"cat {credentials}"), before)
        head.sh(f"sed -i s/0123456789abcdef/{own}/ {HEAD}/endpoint.json; mkdir -p {HEAD}/deploy; mv /tmp/manifest.json {HEAD}/deploy")
        self.assertRegex(self.fleet.deploy("up"), r"n1 .* unchanged ")

    def test_an_access_file_that_is_missing_stops_nothing(self):
        self.fleet.place_programs()
        self.fleet.deploy("up")
        self.fleet.write_hosts(controller={"access": "/etc/none.yaml"})
        self.assertIn("controller: problem: there is no file '/etc/none.yaml'", self.fleet.deploy("plan", code=1))
        self.assertRegex(self.fleet.deploy("up", code=70), r"there is no file '/etc/none.yaml'[^\n]*; nothing was changed")
        self.assertEqual(len(self.nodes()), HOSTS - 1)

    def test_an_access_file_with_a_mistake_stops_nothing(self):
        self.fleet.place_programs()
        self.fleet.deploy("up")
        head = self.fleet.hosts[0]
        pid = json.loads(head.sh(f"cat {HEAD}/endpoint.json"))["pid"]
        head.sh("echo 'users: {ann: king}' > /home/roles.yaml")
        self.addCleanup(head.sh, "rm -f /home/roles.yaml")
        self.fleet.write_hosts(controller={"access": "/home/roles.yaml"})
        self.assertRegex(
            self.fleet.deploy("up", code=70),
            r"checking the configuration of the controller on '\S+': muster-controller: /home/roles.yaml:1:14: [^\n]*"
            "; the controller runs on as it was",
        )
        self.assertEqual(json.loads(head.sh(f"cat {HEAD}/endpoint.json"))["pid"], pid)
        self.assertEqual(len(self.nodes()), HOSTS - 1)
        self.fleet.write_hosts(agent=lambda _: {"log_level": "inof"})
        up = self.fleet.deploy("up", code=1)
        self.assertRegex(up, r"checking the configuration of the agent on '\S+': muster-agent: [^\n]*'inof'[^\n]*; the agent runs on as it was")
        self.assertTrue(all(node["connected"] for node in self.nodes().values()))
        self.fleet.write_hosts(controller={"access": "/home/roles.yaml"})
        head.sh("echo 'users: {ann: admin}' > /home/roles.yaml")
        self.assertRegex(self.fleet.deploy("up"), r"controller .* done ")

    def test_an_address_that_cannot_serve_stops_nothing(self):
        self.fleet.place_programs()
        self.fleet.deploy("up")
        # sshd's
        self.fleet.write_hosts(controller={"listen": "0.0.0.0:22"})
        self.assertIn("controller: problem: another program listens at the controller's port (0.0.0.0:22)", self.fleet.deploy("plan", code=1))
        self.assertIn("nothing was changed", self.fleet.deploy("up", code=70))
        self.fleet.write_hosts(controller={"listen": "127.0.0.1:7070"})
        self.assertIn("controller: problem: 'listen: 127.0.0.1:7070' is reached from the controller's host alone", self.fleet.deploy("plan", code=1))
        self.assertIn("nothing was changed", self.fleet.deploy("up", code=70))
        self.fleet.write_hosts()
        self.assertEqual(self.fleet.deploy("up").count(" unchanged "), HOSTS)

    def test_the_hosts_file_of_another_cluster(self):
        self.fleet.place_programs()
        self.fleet.deploy("up")
        with open(self.fleet.file, encoding="utf-8") as file:
            hosts = json.load(file)
        with open(self.fleet.file, "w", encoding="utf-8") as file:
            json.dump({**hosts, "cluster": "other"}, file)
        sentence = "the manifest on it is of cluster 'test', and hosts.yaml of 'other'"
        plan = self.fleet.deploy("plan", code=1)
        self.assertIn(f"controller: problem: {sentence}", plan)
        self.assertIn("nothing will be changed until the controller's host is well", plan)
        self.assertIn(sentence, self.fleet.deploy("up", code=12))
        self.assertIn(sentence, self.fleet.deploy("status", code=1))

    def test_directories_of_others(self):
        self.fleet.place_programs([0, 1])
        host = self.fleet.hosts[2]
        host.sh("mkdir /opt/open; chmod 777 /opt/open")
        self.addCleanup(host.sh, "rm -rf /opt/open")
        self.only(2, prefix="/opt/open/muster")
        self.assertRegex(self.fleet.deploy("up", code=1), r"'/opt/open', on the way[^\n]* may be written by everybody")
        host.sh("chmod 755 /opt/open; chown 1500 /opt/open")
        self.assertRegex(self.fleet.deploy("up", code=1), r"'/opt/open', on the way[^\n]* belongs to user 1500")
        self.assertEqual(host.sh("ls /opt/open"), "")
        host.sh("rm -rf /opt/open")

    def test_the_controller_refuses_a_state_directory_of_somebody_else(self):
        self.fleet.place_programs()
        self.fleet.deploy("up")
        refused = self.fleet.hosts[0].sh(
            f"mkdir /tmp/theirs; chown 1500 /tmp/theirs; {BIN}/muster-controller --state-dir=/tmp/theirs 2>&1; echo $?; ls -A /tmp/theirs; rm -r /tmp/theirs"
        )
        self.assertRegex(refused, r"it belongs to user 1500, this process runs as user 0; .*chown.*\n70\n$")


class LostHost(FaultsTest):
    """Host 2 is held in the middle of a copy: its gzip waits for a fifo, so the copy has begun and nothing is in flight."""

    options = {
        2: {
            "setup": "gzip=$(readlink -f \"$(command -v gzip)\"); cp $gzip /tmp/gzip.own\n"
            "printf '#!/bin/sh\n[ ! -e /tmp/hold ] || read line < /tmp/hold\nexec /tmp/gzip.own \"$@\"\n' > /tmp/gzip\n"
            "chmod 755 /tmp/gzip; mount --bind /tmp/gzip $gzip"
        }
    }

    def test_a_host_that_is_lost_in_the_middle_of_a_copy(self):
        self.fleet.place_programs([0, 1])
        host, config = self.fleet.hosts[2], f"{self.fleet.folder}/config"
        with open(config, "w", encoding="utf-8") as file:
            file.write("ServerAliveInterval 2\nServerAliveCountMax 2\n")
        host.sh("mkfifo /tmp/hold")
        half = "find /opt -name '*.new' -type f"
        up = self.fleet.start("up", "--ssh-config", config)
        self.addCleanup(up.kill)
        wait_until(lambda: host.sh(half) or up.poll() is not None, what="the copy")
        namespaces.ip("link", "set", "v2", "down")
        out, err = up.communicate(timeout=DEADLINE)
        self.assertEqual(up.returncode, 1, out + err)
        self.assertRegex(out, r"n1 .* done")
        self.assertRegex(out, r"n2 [^\n]*(\n[^\n]*)*(the connection was lost: |the host has taken nothing for 6 s)")
        namespaces.ip("link", "set", "v2", "up")
        # sshd on the host learns of it when it writes; the half of a copy goes with its script.
        host.sh("rm /tmp/hold; kill $(grep -lx gzip /proc/[0-9]*/comm | cut -d/ -f3)")
        wait_until(lambda: not host.sh(half), what="the end of the copy's script")
        again = self.fleet.deploy("up")
        self.assertRegex(again, r"n1 .* unchanged")
        self.assertRegex(again, r"n2 .* done")
        self.assert_up()


class Ends(FaultsTest):
    def test_purge_ends_what_jobs_left(self):
        """The controller is gone, so nobody cancels the job."""
        self.fleet.place_programs()
        self.fleet.deploy("up")
        self.sleeping_job()
        self.fleet.hosts[0].sh(f"{BIN}/muster deploy supervise stop /opt/muster/controller")
        self.assertIn("it is not known whether", self.fleet.deploy("down", "--purge", code=12))
        self.fleet.deploy("down", "--force", "--purge")
        for host in self.fleet.hosts[1:]:
            self.assertFalse(self.sleepers(host), host.name)
        self.assert_left_nothing()

    def test_a_full_disk_of_the_controllers_host(self):
        """It was "printf: I/O error", without a word of a disk."""
        self.fleet.place_programs()
        self.fleet.deploy("up")
        head = self.fleet.hosts[0]
        head.sh(f"{BIN}/muster deploy supervise stop /opt/muster/controller")  # or it would make room
        head.sh("mount -o remount,size=$(( $(df -Pk /var/lib | awk 'END { print $3 }') + 8 ))k /var/lib; cat /dev/zero > /var/lib/full 2>/dev/null; true")
        self.addCleanup(head.sh, "mount -o remount,size=50% /var/lib; rm -f /var/lib/full")
        full = r"No space left on device; the disk is full: make room, then run it again \('/var/lib/muster/controller' on '\S+': 0 KiB free on the disk of /var/lib\)"
        self.assertRegex(self.fleet.deploy("down", "--force", code=70), f"locking the deployment: .*{full}; nothing was changed")
        self.assertRegex(self.fleet.deploy("up", code=70), r"'/var/lib/muster/controller' has 0 MiB free, and needs 512 MiB; make room; nothing was changed")
        head.sh("mount -o remount,size=50% /var/lib; rm /var/lib/full")
        self.assertEqual(self.fleet.deploy("up").count(" unchanged "), HOSTS - 1)

    def test_down_after_a_first_up_that_failed(self):
        """It asked for 'up' or --force, for it could not know whether jobs run. None can: no controller has served, no agent is there."""
        head = self.fleet.hosts[0]
        head.sh("echo 'users: {ann: king}' > /home/roles.yaml")
        self.addCleanup(head.sh, "rm -f /home/roles.yaml")
        self.fleet.write_hosts(controller={"access": "/home/roles.yaml"})
        for made in ("", f"mkdir {HEAD}/journal"):  # by a controller that ended at its start
            self.fleet.place_programs([0])
            self.assertIn("the controller was not started", self.fleet.deploy("up", code=70))
            head.sh(made)
            self.assertRegex(self.fleet.deploy("down", "--purge"), r"controller .* done")
            self.assert_left_nothing()

    def test_status_shows_why_a_daemon_ended(self):
        self.fleet.place_programs()
        self.fleet.deploy("up")
        for number, role in ((1, "agent"), (0, "controller")):
            host = self.fleet.hosts[number]
            host.sh(f"{BIN}/muster deploy supervise stop /opt/muster/{role}; echo the last word of the {role} >> /var/lib/muster/{role}/muster-{role}.log")
            status = self.fleet.deploy("status", code=1)
            self.assertIn(f"it does not run; 'muster deploy up' starts it; its log ends with: the last word of the {role}", status)
        self.fleet.deploy("up")
        self.assertNotIn("the last word", self.fleet.deploy("status"))

    def test_outputs_stay(self):
        self.fleet.place_programs()
        head, file = self.fleet.hosts[0], f"{HEAD}/outputs/job/checkpoint"
        self.fleet.deploy("up")
        node = self.fleet.hosts[1]
        for host in (head, node):
            host.sh(f"mkdir -p $(dirname {file}); : > {file}")
        down = self.fleet.deploy("down", "--purge")
        self.assertEqual(down.count(f"kept '{HEAD}/outputs'"), 2, down)
        self.assertCountEqual(head.sh(f"find {HEAD} -type f").split(), [f"{HEAD}/.muster-deploy", file])
        self.assertEqual(node.sh(f"find {HEAD} -type f").split(), [file])
        self.fleet.deploy("up")
        self.fleet.deploy("down", "--purge", "--outputs")
        self.assert_left_nothing()

    def test_down_drains_while_it_works(self):
        self.fleet.place_programs()
        self.fleet.deploy("up")
        self.sleeping_job()
        self.fleet.deploy("down", code=12)
        self.assertFalse([node for node in self.nodes().values() if "drain" in node])
        self.fleet.muster("cancel", "long")
        self.fleet.muster("wait", "long", code=3)
        self.fleet.deploy("down")
        self.fleet.deploy("up")
        self.assertFalse([node for node in self.nodes().values() if "drain" in node])
        self.fleet.muster("node", "drain", "n1", "--why", "muster deploy down")  # as one that was killed
        self.fleet.muster("node", "drain", "n2", "--why", "a new disk")
        self.fleet.deploy("up")
        self.assertEqual([name for name, node in self.nodes().items() if "drain" in node], ["n2"])
        self.fleet.deploy("down")
        self.fleet.deploy("up")
        self.assertEqual([name for name, node in self.nodes().items() if "drain" in node], ["n2"])


class Certificates(FaultsTest):
    def test_those_that_renew_themselves_live_a_month_and_stay(self):
        self.fleet.place_programs()
        for controller, days in (({}, 30), ({"enrol": "none"}, 365), ({}, 365)):
            self.fleet.write_hosts(controller=controller)
            self.fleet.deploy("up")
            shown = self.fleet.hosts[1].sh(f"{BIN}/muster cert show /opt/muster/agent/credentials.pem")
            until = datetime.datetime.fromisoformat(re.search(r"until +(\S+)", shown)[1].replace("Z", "+00:00"))
            self.assertEqual((until - datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)).days, days)
            self.assertEqual(self.fleet.deploy("up").count(" unchanged "), HOSTS)


@unittest.skipUnless(shutil.which("sudo"), "there is no 'sudo'")
class SudoForSh(FaultsTest):
    """A rule of sudoers lets the user run sh without a password, and the rest with one."""

    options = {
        1: {
            "setup": "printf 'Defaults lecture=never\\nann ALL=(ALL) NOPASSWD: /bin/sh, /usr/bin/sh, PASSWD: /usr/bin/id\\n' > /tmp/sudoers\n"
            "chmod 440 /tmp/sudoers; mount --bind /tmp/sudoers /etc/sudoers"
        }
    }

    def test_it_needs_no_password(self):
        self.fleet.place_programs()
        self.only(1, user="ann", sudo=True)
        self.assertEqual(self.fleet.deploy("up").count(" done "), HOSTS)
        self.assertEqual(self.fleet.hosts[1].sh("stat -c %U /opt/muster/agent").strip(), "root")
        self.fleet.deploy("down", "--purge")


if __name__ == "__main__":
    namespaces.main(("ip", "nsenter", "ssh-keygen"), "ip netns add a && ip link add va type veth peer vb netns a", ssh_hosts.why_not)
