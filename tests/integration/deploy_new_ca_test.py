#!/usr/bin/python3
"""muster deploy up --new-ca: the CA's key is lost, and the cluster gets another CA over SSH, while a job runs on.

Run:  /usr/bin/python3 -B tests/integration/deploy_new_ca_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import json

import namespaces
import ssh_hosts
from cluster import wait_until
from deploy_test import DeployTest


class NewCa(DeployTest):
    def authority(self):
        (one,) = json.loads(self.fleet.muster("cert", "ca", "-o", "json"))["items"]
        return one["sha256"]

    def connected(self):
        items = json.loads(self.fleet.muster("node", "ls", "-o", "json"))["items"]
        return sum(item.get("connected", False) and not item.get("silent", False) for item in items)

    def test_a_lost_key(self):
        fleet, controller = self.fleet, self.fleet.hosts[0]
        fleet.place_programs()
        fleet.deploy("up")
        nodes = len(fleet.hosts) - 1
        controller.sh(
            "cat > /tmp/open.yaml <<'END'\nname: open\nengine: command\nlaunch: {per: rank, run: [sh, -c, 'while [ ! -e /tmp/done ]; do sleep 0.2; done']}\n"
            f"resources: {{nodes: {nodes}, devices: 1, type: cpu}}\noutputs: {{dir: /tmp/out}}\nrecovery: {{max_restarts: 0}}\nEND"
        )
        fleet.muster("run", "/tmp/open.yaml", "-d")
        fleet.muster("wait", "open", "--for", "running", "--timeout", "60s")
        before = self.authority()
        controller.sh("rm /var/lib/muster/controller/pki/ca.key")
        up = fleet.deploy("up", "--new-ca")
        self.assertEqual(up.count(" done "), nodes + 1, up)
        self.assertNotEqual(self.authority(), before)
        wait_until(lambda: self.connected() == nodes, what="all nodes, by their new certificates")
        self.assert_up()
        # The old files are kept, and nobody else reads them.
        self.assertEqual(controller.sh("stat -c %a /var/lib/muster/controller/pki/before-*").split(), ["700"])
        for host in fleet.hosts[1:]:
            self.assertEqual(host.sh("stat -c %a /opt/muster/agent/credentials.pem").split(), ["600"])
            host.sh("touch /tmp/done")
        fleet.muster("wait", "open", "--timeout", "60s")
        (job,) = [json.loads(fleet.muster("show", "open", "-o", "json"))]
        self.assertEqual(len(job["attempts"]), 1)
        self.assertIn("unchanged", fleet.deploy("up"), "nothing is left to do")
        fleet.deploy("down", "--purge")
        self.assert_left_nothing()


if __name__ == "__main__":
    namespaces.main(("ip", "nsenter", "ssh-keygen"), "ip netns add a && ip link add va type veth peer vb netns a", ssh_hosts.why_not)
