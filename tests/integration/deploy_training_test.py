#!/usr/bin/python3
"""A training job on hosts that muster deploy brought up, with TLS: real PyTorch (deploy/samples/tiny-gpt) on four of five nodes. One host is lost, cable and all;
a machine with another key takes its name; another node is drained with a deadline. Each time the job goes on elsewhere, from its last whole checkpoint.

MUSTER_TEST_HOSTS=18 (or more) does the same with stub ranks on 16 nodes of 17.

Run:  /usr/bin/python3 -B tests/integration/deploy_training_test.py [-v] [CASE]       (MUSTER_BIN names the binaries' folder)
"""

import json
import os
import re
import shutil
import subprocess
import unittest

import namespaces
import ssh_hosts
from cluster import STUB, wait_until
from cluster.programs import DEADLINE, ROOT
from deploy_test import HOSTS, DeployTest, program

FAST = {"heartbeat_interval": "1s"}
PATIENCE = DEADLINE * 3  # ranks of PyTorch start slowly where several share a core


def no_torch():
    done = subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return done.stderr.strip().splitlines()[-1] if done.returncode != 0 else ""


class Life(DeployTest):
    count = 6
    placed = 4  # nodes of the job; one more is there

    def job(self):
        raise NotImplementedError

    # ---- what is known of the job

    def shown(self):
        return json.loads(self.fleet.muster("show", "train", "-o", "json"))

    def nodes_of(self, attempt):
        attempts = self.shown()["attempts"]
        return sorted(node["node"] for node in attempts[attempt - 1]["nodes"]) if len(attempts) >= attempt else []

    def story(self):
        return self.fleet.muster("events", "train") + self.fleet.muster("why", "train") + self.fleet.muster("node", "ls")

    def saved(self):
        """The newest whole checkpoint: the step, 0 if there is none."""
        return max([int(step) for step in re.findall(r"iter_(\d+)", self.fleet.muster("ckpt", "ls", "train", "-o", "name"))], default=0)

    def resumed(self, attempt):
        """The step from which the attempt went on; -1: not yet."""
        attempts = self.shown()["attempts"]
        return int(attempts[attempt - 1].get("resume", {}).get("step", -1)) if len(attempts) >= attempt else -1

    def goes_on(self, attempt, least):
        wait_until(lambda: self.resumed(attempt) >= least or self.ended(), within=PATIENCE, what=f"attempt {attempt} from step {least} on\n{self.story()}")
        self.assertGreaterEqual(self.resumed(attempt), least, self.story())
        step = self.saved()
        wait_until(lambda: self.saved() > step or self.ended(), within=PATIENCE, what=f"a checkpoint after {step}")

    def ended(self):
        return self.shown()["phase"] in ("succeeded", "failed", "cancelled")

    # ---- what happens

    def life(self):
        fleet = self.fleet
        fleet.write_hosts(controller=FAST, defaults={"devices": 1})
        fleet.place_programs()
        self.assertEqual(fleet.deploy("up").count(" done "), self.count)
        spec = os.path.join(fleet.folder, "train.yaml")
        with open(spec, "w", encoding="utf-8") as file:
            json.dump(self.job(), file)  # JSON is YAML
        fleet.muster("run", "-d", spec)
        wait_until(lambda: self.saved() > 0 or self.ended(), within=PATIENCE, what="a checkpoint")
        first = self.nodes_of(1)
        self.assertEqual(len(first), self.placed, self.story())
        name, step = first[-1], self.saved()
        self.lose(name)
        wait_until(lambda: len(self.shown()["attempts"]) > 1 or self.ended(), within=PATIENCE, what=f"another attempt\n{self.story()}")
        second = self.nodes_of(2)
        self.assertNotIn(name, second, self.story())
        self.goes_on(2, step)
        self.another_machine(name)
        drained, step = second[0], self.saved()
        fleet.muster("node", "drain", drained, "--why", "new disk", "--deadline", "1s")
        wait_until(lambda: len(self.shown()["attempts"]) > 2 or self.ended(), within=PATIENCE, what=f"a third attempt\n{self.story()}")
        third = self.nodes_of(3)
        self.assertNotIn(drained, third, self.story())
        self.assertIn(name, third, "the machine that took the name works")
        self.goes_on(3, step)
        self.finish()
        fleet.muster("node", "undrain", drained)
        fleet.deploy("down", "--force", "--purge")
        self.assert_left_nothing()

    def finish(self):
        self.fleet.muster("cancel", "train")

    def host_of(self, name):
        return self.fleet.hosts[int(name[1:])]

    def lose(self, name):
        """Nobody is told: the cable is out, then every process is gone with the machine."""
        host = self.host_of(name)
        self.old_key = self.key_on(host)
        namespaces.ip("link", "set", f"v{host.number}", "down")
        host.close()

    @staticmethod
    def key_on(host):
        return re.search(r"(?m)^key +([0-9a-f]{64})$", host.sh("/opt/muster/current/bin/muster cert show /opt/muster/agent/credentials.pem"))[1]

    def another_machine(self, name):
        """It has the address of the old one, another host key, and nothing of muster. It joins under the name by a token of `node replace`."""
        fleet, number = self.fleet, int(name[1:])
        fleet.hosts[number] = host = ssh_hosts.SshHost(fleet.folder, number)
        self.assertRegex(fleet.deploy("up", code=1), f"{name} .*key.* has changed")
        fleet.write_known()
        token = os.path.join(fleet.folder, "join.token")
        fleet.muster("node", "replace", name, "-o", token)
        agent = program("muster-agent")
        head = fleet.hosts[0].address
        host.sh(
            f"mkdir -p -m 700 /opt/muster/agent /var/lib/muster/join\n"
            f"{agent} --state-dir /var/lib/muster/join --controller {head}:7070 --enrol {head}:7071 --join {token} --name {name}"
            f" --credentials /opt/muster/agent/credentials.pem --log-file /var/lib/muster/join.log & pid=$!\n"
            "for i in $(seq 600); do [ -s /opt/muster/agent/credentials.pem ] && break; sleep 0.1; done; kill $pid; wait $pid\n"
            "[ -s /opt/muster/agent/credentials.pem ] || { cat /var/lib/muster/join.log >&2; exit 1; }; rm -rf /var/lib/muster/join*"
        )
        listed = {one["keySha256"]: one for one in json.loads(fleet.muster("cert", "ls", "-o", "json"))["items"] if one.get("node") == name}
        self.assertIn("revokedAt", listed[self.old_key], "the key of the machine that is gone")
        up = fleet.deploy("up")
        self.assertEqual((up.count(" done "), up.count(" unchanged ")), (1, self.count - 1), up)
        self.assertNotIn("issuing credentials", up)
        self.assertNotIn("revokedAt", listed[self.key_on(host)])


@unittest.skipIf(no_torch(), f"no PyTorch: {no_torch()}")
class Torch(Life):
    def job(self):
        code = os.path.join(self.fleet.folder, "code")
        os.makedirs(code)
        shutil.copy(os.path.join(ROOT, "deploy/samples/tiny-gpt/train.py"), code)
        self.losses = os.path.join(self.fleet.folder, "losses")
        args = "--data /usr/share/common-licenses/GPL-3 --steps 100000 --save ${save.dir} --load ${resume.dir} --save-interval 5 --log-interval 5 --step-delay 0.2"
        return {
            "name": "train", "engine": "torch", "code": {"from": code}, "runtime": {"python": "/usr/bin/python3"},
            "launch": {"script": "train.py", "args": f"{args} --timeout 30 --loss-hex {self.losses}"},
            "resources": {"nodes": self.placed, "devices": 1, "type": "cpu"},
            "outputs": {"dir": os.path.join(self.fleet.folder, "out")},
            "recovery": {"orphan_grace": "10s", "stop_grace": "2s"},
        }  # fmt: skip

    def test_it(self):
        self.life()


@unittest.skipUnless(HOSTS >= 18, f"MUSTER_TEST_HOSTS is {HOSTS}: stub ranks on 16 nodes need 18 hosts, and minutes")
class Stubs(Life):
    count, placed = 18, 16
    def job(self):
        stub = os.path.join(self.fleet.folder, "stub_trainer")
        shutil.copy(STUB, stub)
        return {
            "name": "train", "engine": "torch",
            "launch": {"run": [stub, "--steps", "1000000", "--step-ms", "100", "--save-interval", "10", "--save", "${save.dir}", "--load", "${resume.dir}"]},
            "resources": {"nodes": self.placed, "devices": 1, "type": "cpu"},
            "outputs": {"dir": os.path.join(self.fleet.folder, "out")},
            "recovery": {"orphan_grace": "10s", "stop_grace": "2s"},
        }  # fmt: skip

    def test_it(self):
        self.life()


if __name__ == "__main__":
    namespaces.main(("ip", "nsenter", "ssh-keygen"), "ip netns add a && ip link add va type veth peer vb netns a", ssh_hosts.why_not)
