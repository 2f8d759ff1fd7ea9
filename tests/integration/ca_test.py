#!/usr/bin/python3
"""The cluster's CA: a change of it under a running job, with kills of the controller and a node that is away; an imported one; a lost key.

Run:  /usr/bin/python3 -B tests/integration/ca_test.py [-v] [CASE]       (needs openssl)
"""

import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import unittest

from cluster import DEADLINE, Cluster, wait_until

NOT_ALLOWED, CONFLICT = 11, 12


class Ca(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.start_controller()

    def start_controller(self, listen="127.0.0.1:0", enrol="127.0.0.1:0"):
        self.controller = self.cluster.controller("--enrol", enrol, listen=listen)
        self.enrol = self.cluster.announced()["enrol"]

    def kill_controller(self):
        """It is killed, and started again at the same addresses."""
        listen, enrol = self.cluster.tcp_address(), self.enrol
        self.controller.stop(signal.SIGKILL)
        self.start_controller(listen, enrol)

    def token(self, name, node="n*", uses=1):
        path = self.cluster.path(name)
        self.cluster.muster(
            "token", "create", "--node", node, "--uses", str(uses), "-o", path, code=0
        )
        return path

    def agent(self, node, token=None, wait=True):
        args = ["--enrol", self.enrol, *(["--join", token] if token else [])]
        return self.cluster.agent(
            node, devices=1, controller=self.cluster.tcp_address(), args=args, wait=wait
        )

    def attached(self, agent, times=1):
        wait_until(
            lambda: agent.logged().count("attached to the controller") >= times,
            agent.pid_fd,
            what=f"{agent.name} to be attached\n{agent.logged()}",
        )

    def authorities(self):
        """By state."""
        listed = json.loads(self.cluster.output("cert", "ca", "-o", "json"))["items"]
        return {one["state"].removeprefix("AUTHORITY_STATE_").lower(): one for one in listed}

    def nobody_is_waited_for(self, state):
        """The controller has heard of it from every node; agents report every few seconds."""
        wait_until(
            lambda: not self.authorities()[state].get("waitingNodes"),
            self.controller.pid_fd,
            what=f"no node that is waited for\n{self.cluster.output('cert', 'ca')}\n{self.cluster.log_ends()}",
        )

    def rotate(self, *args, code=0):
        return self.cluster.muster("cert", "rotate", *args, code=code)

    def files(self):
        return sorted(os.listdir(self.cluster.path("controller", "pki")))

    def digest(self, certificate):
        done = subprocess.run(
            ["openssl", "x509", "-in", certificate, "-noout", "-fingerprint", "-sha256"],
            capture_output=True, text=True, timeout=DEADLINE, check=True)  # fmt: skip
        return done.stdout.split("=")[1].strip().replace(":", "").lower()

    def running(self, gate, nodes=2):
        job = self.cluster.submit(
            f"name: open\nengine: command\nlaunch: {{per: rank, run: [sh, -c, 'read x < {gate.path}']}}\n"
            f"resources: {{nodes: {nodes}, devices: 1, type: cpu}}\n"
        )
        self.cluster.muster("wait", job, "--for", "running", "--timeout", "60s", code=0)
        wait_until(
            lambda: len(self.cluster.ranks()) == nodes, self.controller.pid_fd, what="its ranks"
        )
        return job

    @staticmethod
    def of_ca(token, digest):
        """Puts another CA's digest into the token."""
        with open(token, "r+", encoding="ascii") as file:
            parts = file.read().strip().split(":")
            file.seek(0)
            file.truncate()
            file.write(":".join([*parts[:3], digest]))

    def call(self, file):
        """A call over TCP with this file."""
        return self.cluster.muster(
            "ps",
            env={"MUSTER_CONTROLLER": self.cluster.tcp_address(), "MUSTER_CREDENTIALS": file},
        )


class Rotation(Ca):
    def test_a_whole_one_under_a_running_job(self):
        first = self.digest(self.cluster.path("controller", "pki", "ca.pem"))
        old_token = self.token("old.token", uses=4)
        agents = [self.agent(node, old_token) for node in ("n0", "n1")]
        away = self.agent("n2", old_token)
        away.stop()
        ann = self.cluster.credentials(user="ann")
        self.assertEqual(self.call(ann).code, 0)
        self.assertIn("no change is under way", self.rotate().out)
        with self.cluster.gate() as gate:
            job = self.running(gate)
            ranks = self.cluster.ranks()

            self.assertIn("is published", self.rotate("start").out)
            self.assertEqual(self.rotate("start", code=CONFLICT).code, CONFLICT)
            self.assertEqual(self.rotate("finish", code=CONFLICT).code, CONFLICT)
            self.nobody_is_waited_for("next")
            self.kill_controller()
            second = self.authorities()["next"]["sha256"]
            self.assertEqual(self.authorities()["signing"]["sha256"], first)
            self.assertEqual(self.files(), ["ca.key", "ca.pem", "next.pem"])
            # Only connected nodes are waited for: one that comes back is, until it reports.
            for agent in agents:
                self.attached(agent, times=2)
            self.nobody_is_waited_for("next")

            self.assertIn("still count", self.rotate("sign").out)
            self.kill_controller()
            self.assertEqual(self.authorities()["signing"]["sha256"], second)
            self.assertEqual(self.authorities()["old"]["sha256"], first)
            self.assertEqual(self.authorities()["old"]["userCertificates"], 1)
            self.assertEqual(self.digest(self.cluster.path("controller", "pki", "ca.pem")), second)
            self.assertEqual(self.call(ann).code, 0)
            for agent in agents:
                agent.wait_for("renewed the certificate")
            # Who was away knows the old CA alone: it connects, and gets another certificate.
            away = self.agent("n2", wait=False)
            self.attached(away)
            away.wait_for("renewed the certificate")
            # Tokens of both CAs count.
            self.agent("n3", old_token)
            self.agent("n4", self.token("new.token"))
            self.nobody_is_waited_for("old")
            for name in self.files():
                if name != "ca.pem":
                    mode = os.stat(self.cluster.path("controller", "pki", name)).st_mode
                    self.assertEqual(stat.S_IMODE(mode), 0o600, name)

            self.assertIn("no change is under way", self.rotate("finish").out)
            self.kill_controller()
            self.assertEqual(list(self.authorities()), ["signing"])
            self.assertEqual(self.files(), ["ca.key", "ca.pem"])
            self.assertNotEqual(self.call(ann).code, 0)
            os.unlink(ann)
            self.assertEqual(self.call(self.cluster.credentials(user="ann")).code, 0)
            code, logged = self.agent("n5", old_token, wait=False).ended()
            self.assertNotEqual(code, 0, logged)
            self.assertIn("the cluster's CA was changed meanwhile", logged)
            # The digest of the new CA is no secret: whoever has the token can put that into it.
            self.of_ca(old_token, second)
            code, logged = self.agent("n6", old_token, wait=False).ended()
            self.assertNotEqual(code, 0, logged)
            self.assertIn("when the CA that it is of was dropped", logged)
            self.cluster.trivial()
            self.assertEqual(self.cluster.ranks(), ranks, "nobody was started again")
            gate.open(2)
            self.cluster.wait(job)
        self.assertEqual(len(self.cluster.show(job)["attempts"]), 1)
        changes = [
            json.loads(line)
            for line in self.cluster.output("events", "-o", "jsonl").splitlines()
            if '"ca-' in line
        ]
        self.assertEqual(
            [one["type"] for one in changes],
            ["ca-signs", "ca-published", "ca-signs", "ca-dropped"],
        )
        me = pwd.getpwuid(os.getuid()).pw_name
        self.assertIn(f"(by {me})", changes[-1]["text"])

    def test_a_step_waits_for_the_nodes_and_can_be_forced(self):
        agent = self.agent("n0", self.token("token"))
        lost = self.agent("n1", self.token("token1"))
        lost.stop()
        self.rotate("start")
        self.nobody_is_waited_for("next")
        # n0 is connected, and cannot report: as one whose file cannot be written. n1 is away.
        os.kill(agent.process.pid, signal.SIGSTOP)
        self.rotate("sign")
        refused = self.rotate("finish", code=CONFLICT)
        self.assertIn("these nodes have no certificate of the new CA yet: n0, n1;", refused.err)
        self.assertIn("n0", self.rotate().out)
        self.rotate("finish", "--force")
        os.kill(agent.process.pid, signal.SIGCONT)
        # It knew the new CA already, so it helps itself.
        agent.wait_for("renewed the certificate")
        self.attached(agent, 2)
        self.cluster.trivial()
        # The other one did not.
        lost = self.agent("n1", wait=False)
        lost.wait_for("joins again: `muster node replace NAME`")
        lost.stop()
        token = self.cluster.path("again.token")
        self.cluster.muster("node", "replace", "n1", "-o", token, code=0)
        os.unlink(os.path.join(self.cluster.agent_dir("n1"), "credentials.pem"))
        self.attached(self.agent("n1", token, wait=False))

    def test_a_live_user_of_the_dropped_ca_is_refused_with_a_sentence(self):
        ann = self.cluster.credentials(user="ann")
        self.rotate("start")
        self.rotate("sign")
        self.assertIn("1 certificate of users is from before", self.rotate().out)
        watch = subprocess.Popen(
            self.cluster.command("events", "-f", "-o", "jsonl"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**self.cluster.env, "MUSTER_CONTROLLER": self.cluster.tcp_address(), "MUSTER_CREDENTIALS": ann})  # fmt: skip
        self.assertIn('"type"', watch.stdout.readline(), "it is open")
        self.rotate("finish")
        _, err = watch.communicate(timeout=DEADLINE)
        self.assertEqual(watch.returncode, NOT_ALLOWED, err)
        self.assertIn("is of a CA that was dropped; a user gets a new one by", err)

    def test_the_old_ca_issues_nothing_when_the_files_of_the_new_one_cannot_be_written(self):
        """Regression: it did, and the last step, which did not wait for that, cut those nodes off."""
        early = self.token("early.token", uses=2)
        personal = self.cluster.path("personal.token")
        self.cluster.muster("token", "create", "--user", "vera", "-o", personal, code=0)
        self.agent("n0", early)
        self.rotate("start")
        self.nobody_is_waited_for("next")
        second = self.authorities()["next"]["sha256"]
        # As on a full disk: the step is decided, and old.pem cannot be made.
        taken = self.cluster.path("controller", "pki", "old.pem")
        os.mkdir(taken)
        self.assertIn("the step was decided", self.rotate("sign", code=70).err)

        late = self.cluster.path("late.token")
        in_the_way = "does not have its files in place yet"
        for verb in (
            ("token", "create", "--node", "late", "-o", late),
            ("token", "create", "--user", "ann", "-o", late),
            ("cert", "issue", "--user", "ann", "-o", late),
        ):
            self.assertIn(in_the_way, self.cluster.muster(*verb, code=70).err)
            self.assertFalse(os.path.exists(late), verb)
        joins = self.agent("n1", early, wait=False)
        joins.wait_for(in_the_way)
        login = ("login", "--token-file", personal, "--enrol", self.enrol)
        home = {**self.cluster.env, "HOME": self.cluster.path("home")}
        os.mkdir(home["HOME"], 0o700)
        self.assertIn(in_the_way, self.cluster.muster(*login, env=home, code=70).err)
        listed = json.loads(self.cluster.output("cert", "ls", "-o", "json"))["items"]
        self.assertEqual([one.get("node") for one in listed], ["n0"])

        os.rmdir(taken)
        self.kill_controller()
        self.assertEqual(self.authorities()["signing"]["sha256"], second)
        self.attached(joins)
        self.cluster.muster(*login, env=home, code=0)
        with open(self.token("new.token"), encoding="ascii") as file:
            self.assertEqual(file.read().strip().split(":")[3], second)
        self.nobody_is_waited_for("old")
        self.rotate("finish")
        self.cluster.trivial()

    def test_abort(self):
        self.rotate("abort", code=CONFLICT)
        self.rotate("start")
        self.assertIn("no change is under way", self.rotate("abort").out)
        self.assertEqual(self.files(), ["ca.key", "ca.pem"])
        self.assertEqual(list(self.authorities()), ["signing"])

    def test_only_the_owner_may(self):
        user = self.cluster.over_tcp("ann")
        for verb in (("ca",), ("rotate",), ("rotate", "start")):
            done = self.cluster.muster("cert", *verb, env=user, code=NOT_ALLOWED)
            self.assertIn("only the user who runs the controller may", done.err)


class Import(Ca):
    def made(self, name="site", usage="critical,keyCertSign,cRLSign", curve="prime256v1"):
        """An intermediate of a company's root, by openssl: its certificate, its key, and the root's certificate."""
        root, root_key = self.cluster.path(name + "-root.pem"), self.cluster.path(name + "-root.key")  # fmt: skip
        own, key = self.cluster.path(name + ".pem"), self.cluster.path(name + ".key")
        config = self.cluster.write(
            name + ".cnf",
            "[req]\ndistinguished_name=dn\n[dn]\n[root]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\nsubjectKeyIdentifier=hash\n"
            f"[own]\nbasicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage={usage}\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n",
        )
        run = lambda *words: subprocess.run(["openssl", *words], capture_output=True, timeout=DEADLINE, check=True)  # fmt: skip
        run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", root_key, "-out", root,
            "-subj", "/O=Company/CN=Company root", "-config", config, "-extensions", "root", "-days", "400")  # fmt: skip
        run("req", "-new", "-newkey", "ec", "-pkeyopt", f"ec_paramgen_curve:{curve}", "-nodes", "-keyout", key, "-out", own + ".csr",
            "-subj", "/O=Company/CN=muster of the training hall", "-config", config)  # fmt: skip
        run("x509", "-req", "-in", own + ".csr", "-CA", root, "-CAkey", root_key, "-CAcreateserial", "-out", own,
            "-extfile", config, "-extensions", "own", "-days", "300")  # fmt: skip
        os.chmod(key, 0o600)
        return own, key, root

    def imported(self, certificate, key, code=0):
        return self.cluster.muster(
            "cert", "import", "--certificate", certificate, "--key", key, code=code
        )

    def test_on_a_fresh_cluster_it_signs_at_once(self):
        own, key, root = self.made()
        done = self.imported(own, key)
        self.assertIn("no change is under way", done.out)
        self.assertEqual(self.authorities()["signing"]["sha256"], self.digest(own))
        self.assertTrue(self.authorities()["signing"]["imported"])
        self.agent("n0", self.token("token"))
        self.cluster.trivial()
        # The root vouches for it, where a program asks for that.
        subprocess.run(["openssl", "verify", "-CAfile", root, "-untrusted", own, self.cluster.credentials(user="ann")],
                       capture_output=True, timeout=DEADLINE, check=True)  # fmt: skip
        self.kill_controller()
        self.assertEqual(self.authorities()["signing"]["sha256"], self.digest(own))
        self.cluster.trivial()
        self.assertEqual(self.call(self.cluster.credentials(user="ann")).code, 0)

    def test_with_nodes_it_is_published_first(self):
        agent = self.agent("n0", self.token("token"))
        own, key, _ = self.made()
        self.assertIn("is published", self.imported(own, key).out)
        self.assertTrue(self.authorities()["next"]["imported"])
        self.nobody_is_waited_for("next")
        self.rotate("sign")
        agent.wait_for("renewed the certificate")
        self.nobody_is_waited_for("old")
        self.rotate("finish")
        self.attached(agent, 2)
        self.cluster.trivial()
        self.assertEqual(self.files(), ["ca.key", "ca.pem"])

    def test_what_is_no_ca_for_muster(self):
        own, key, root = self.made()
        _, other_key, _ = self.made("other")
        for certificate, private, sentence in (
            (own, other_key, "the private key is that of another one"),
            (*self.made("weak", usage="critical,digitalSignature")[:2], "CA"),
            (*self.made("curve", curve="secp384r1")[:2], "P-256"),
        ):
            done = self.imported(certificate, private, code=64)
            self.assertIn("importing a CA", done.err)
            self.assertIn(sentence, done.err)
        os.chmod(key, 0o644)
        self.assertIn("others may read it", self.imported(own, key, code=NOT_ALLOWED).err)
        self.assertEqual(self.files(), ["ca.key", "ca.pem"])
        with open(root, "rb") as file, open(own, "ab") as both:
            shutil.copyfileobj(file, both)
        os.chmod(key, 0o600)
        self.assertIn("one PEM block", self.imported(own, key, code=64).err)


class LostKey(Ca):
    def test_a_new_ca_takes_the_place_of_one_that_was_removed(self):
        self.agent("n0", self.token("token"))
        self.rotate("start")
        self.nobody_is_waited_for("next")
        self.rotate("sign")
        self.nobody_is_waited_for("old")
        self.rotate("finish")
        lost = self.authorities()["signing"]["sha256"]
        listen, enrol = self.cluster.tcp_address(), self.enrol
        self.controller.stop()
        os.unlink(self.cluster.path("controller", "pki", "ca.key"))
        refused = self.cluster.controller("--enrol", enrol, listen=listen, wait=False)
        code, logged = refused.ended()
        self.assertNotEqual(code, 0, logged)
        self.assertIn(f"the key of CA {lost}, which signs the certificates, is in no file", logged)
        os.unlink(self.cluster.path("controller", "pki", "ca.pem"))
        self.start_controller(listen, enrol)
        fresh = self.authorities()["signing"]["sha256"]
        self.assertNotEqual(fresh, lost)
        self.assertIn(f"CA {lost} is trusted no more", self.cluster.output("events"))
        self.kill_controller()
        self.assertEqual(self.authorities()["signing"]["sha256"], fresh)

    def test_a_journal_that_is_older_than_a_finished_change(self):
        """Regression: it names a CA whose files are gone, and the controller did not start. The next one, which all nodes know, signs."""
        self.rotate("start")
        ahead = self.authorities()["next"]["sha256"]
        listen, enrol = self.cluster.tcp_address(), self.enrol
        self.controller.stop()
        journal, copy = self.cluster.path("controller", "journal"), self.cluster.path("copy")
        shutil.copytree(journal, copy)
        self.start_controller(listen, enrol)
        self.rotate("sign")
        self.rotate("finish")
        self.controller.stop()
        shutil.rmtree(journal)
        shutil.copytree(copy, journal)
        self.start_controller(listen, enrol)
        for _ in range(2):
            known = self.authorities()
            self.assertEqual(known["signing"]["sha256"], ahead)
            self.assertEqual(known.keys(), {"signing"})
            self.assertEqual(self.files(), ["ca.key", "ca.pem"])
            self.kill_controller()
        self.agent("n0", self.token("token"))

    def test_tokens_of_the_first_ca_end_with_it(self):
        """No change of the CA was ever made. Whoever has a token of before knows the digest of the new one, too."""
        token = self.token("token")
        listen, enrol = self.cluster.tcp_address(), self.enrol
        self.controller.stop()
        for name in ("ca.key", "ca.pem"):
            os.unlink(self.cluster.path("controller", "pki", name))
        self.start_controller(listen, enrol)
        self.of_ca(token, self.authorities()["signing"]["sha256"])
        code, logged = self.agent("n0", token, wait=False).ended()
        self.assertNotEqual(code, 0, logged)
        self.assertIn("when the CA that it is of was dropped", logged)


if __name__ == "__main__":
    unittest.main()
