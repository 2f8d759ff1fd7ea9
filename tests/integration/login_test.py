#!/usr/bin/python3
"""Users who log in: at the controller's socket for users, and with a personal token at the enrolment port. What comes after it: who they are, what they may, and
which controller their commands call.

As root the tests log in as other accounts of this machine; without root, as the own one alone.

Run:  /usr/bin/python3 -B tests/integration/login_test.py [-v] [CASE]
"""

import glob
import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

from cluster import BIN, DEADLINE, Cluster
from cluster.command import Done
from join_test import HOUR_MS, REFUSED, Relay

OVERFLOW_UID = 65534  # the kernel's name for everybody of other user namespaces; nobody logs in by it


def account():
    """Another account of this machine, as which the test may run commands; else None."""
    if os.geteuid() != 0:
        return None
    names = ("daemon", "bin", "sys", "games", "mail")
    for entry in pwd.getpwall():
        if entry.pw_name in names and entry.pw_uid not in (0, OVERFLOW_UID):
            return entry
    return None


OTHER = account()
WHY_NONE = "only root can run commands as another account"


class Logins(unittest.TestCase):
    access = ""

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        # The cluster's own directory is closed to other accounts.
        self.place = tempfile.mkdtemp(prefix="muster-login-")
        self.addCleanup(shutil.rmtree, self.place)
        os.chmod(self.place, 0o755)
        self.socket = os.path.join(self.place, "run", "login.sock")
        args = ["--enrol", "127.0.0.1:0", "--login-socket", self.socket]
        if self.access:
            args += ["--access", self.cluster.write("access.yaml", self.access)]
        self.controller = self.cluster.controller(*args, listen="127.0.0.1:0")
        self.enrol = self.cluster.announced()["enrol"]

    def home(self, name, owner=None):
        path = os.path.join(self.place, name)
        if not os.path.isdir(path):
            os.mkdir(path, 0o700)
            if owner:
                os.chown(path, owner.pw_uid, owner.pw_gid)
        return path

    def by(self, home, *args, owner=None, code=0, stdin="", env=None):
        """What `muster` does for a person whose home directory this is, and who names no controller."""
        kept = {key: value for key, value in self.cluster.env.items() if not key.startswith("MUSTER_")}
        kept |= {"HOME": self.home(home, owner), **(env or {})}
        who = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if owner else {}
        done = subprocess.run([os.path.join(BIN, "muster"), *map(str, args)], env=kept, input=stdin, capture_output=True, text=True,
                              timeout=DEADLINE, cwd=self.place, check=False, **who)  # fmt: skip
        result = Done(["muster", *map(str, args)], done.returncode, done.stdout, done.stderr)
        self.assertIn(result.code, code if isinstance(code, tuple) else (code,), result)
        return result

    def token(self, *args, name="token", by=None):
        path = self.cluster.path(name)
        self.cluster.muster("token", "create", *args, "-o", path, code=0, env=by)
        return path

    def text(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def certificates(self):
        return json.loads(self.cluster.output("cert", "ls", "-o", "json"))["items"]

    def with_token(self, home, token, *args, code=0, **options):
        return self.by(home, "login", "--token-file", token, "--enrol", self.enrol, *args, code=code, **options)  # fmt: skip


@unittest.skipUnless(OTHER, WHY_NONE)
class AnotherAccount(Logins):
    access = f"users: {{{OTHER.pw_name if OTHER else 'x'}: viewer}}\n"

    def test_at_the_socket(self):
        name = OTHER.pw_name
        shown = self.by("a", "login", "--socket", self.socket, owner=OTHER)
        self.assertRegex(shown.out, rf"user +{name}\n")
        self.assertIn(self.cluster.tcp_address(), shown.out)
        folder = os.path.join(self.home("a"), ".config", "muster")
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        self.assertEqual(sorted(os.listdir(folder)), ["login.json", "login.pem"])
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(folder, "login.pem")).st_mode), 0o600)
        self.by("a", "node", "ls", owner=OTHER)
        status = self.by("a", "login", "--status", owner=OTHER)
        self.assertRegex(status.out, rf"user +{name}\n(.*\n)*until ")
        # The role of the access file counts for the name.
        spec = os.path.join(self.place, "job.yaml")
        with open(spec, "w", encoding="utf-8") as file:
            file.write("name: j\nengine: command\nlaunch: {run: 'true'}\nresources: {devices: 1, type: cpu}\n")  # fmt: skip
        refused = self.by("a", "run", "-d", spec, owner=OTHER, code=11)
        self.assertIn("the role 'user' is needed, and this user has 'viewer'", refused.err)
        one = [one for one in self.certificates() if one.get("user") == name]
        self.assertEqual([entry["actor"] for entry in one], [f"uid {OTHER.pw_uid}"])
        # It is a client's certificate, and of a user: no agent.
        self.by("a", "logout", owner=OTHER)
        self.assertFalse(os.path.exists(folder))
        gone = self.by("a", "node", "ls", owner=OTHER, code=13)
        self.assertIn("there is no endpoint file", gone.err)

    def test_two_accounts_have_two_names(self):
        self.by("a", "login", "--socket", self.socket, owner=OTHER)
        self.by("me", "login", "--socket", self.socket)
        names = {one.get("user") for one in self.certificates()}
        self.assertEqual(names, {OTHER.pw_name, pwd.getpwuid(os.geteuid()).pw_name})

    def test_revoked_by_name(self):
        name = OTHER.pw_name
        self.by("a", "login", "--socket", self.socket, owner=OTHER)
        self.cluster.muster("cert", "revoke", "--user", name, "--why", "left the team", code=0)
        self.assertIn("left the team", self.by("a", "node", "ls", owner=OTHER, code=11).err)
        again = self.by("a", "login", "--socket", self.socket, owner=OTHER, code=11)
        self.assertIn("left the team", again.err)
        self.assertIn(f"muster token create --user {name}", again.err)
        self.with_token("back", self.token("--user", name))
        self.by("back", "node", "ls")
        self.by("a", "login", "--socket", self.socket, owner=OTHER)
        self.by("a", "node", "ls", owner=OTHER)

    def test_an_account_without_a_name(self):
        nobody = type("Entry", (), {"pw_uid": 3_999_999_999, "pw_gid": 3_999_999_999})
        refused = self.by("n", "login", "--socket", self.socket, owner=nobody, code=11)
        self.assertIn("this host has no user with uid 3999999999", refused.err)
        nobody.pw_uid = OVERFLOW_UID
        refused = self.by("m", "login", "--socket", self.socket, owner=nobody, code=11)
        self.assertIn("user namespace", refused.err)
        self.assertEqual(self.certificates(), [])


class OwnAccount(Logins):
    def setUp(self):
        super().setUp()
        if os.geteuid() == OVERFLOW_UID:
            self.skipTest("this account is nobody's")

    def test_what_the_endpoint_file_says(self):
        self.assertEqual(stat.S_IMODE(os.stat(self.socket).st_mode), 0o666)
        self.assertEqual(self.cluster.announced()["login"], self.socket)
        self.by("me", "--controller", self.cluster.endpoint, "login", "--lifetime", "2h")
        self.cluster.agent("n0")
        name = pwd.getpwuid(os.geteuid()).pw_name
        job = self.by("me", "run", "-d", self.cluster.spec("name: mine\nengine: command\nlaunch: {run: 'true'}\nresources: {devices: 1, type: cpu}\n"))  # fmt: skip
        job = job.out.split()[0]
        self.cluster.jobs.append(job)
        self.by("me", "wait", job)
        self.assertEqual(self.cluster.show(job)["owner"], name)
        # It is over TCP, and so it has no rights of the socket.
        self.assertIn("only the user who runs the controller may", self.by("me", "token", "ls", code=11).err)  # fmt: skip
        # What is named wins over it, and so does a private cluster that is up.
        self.by("me", "token", "ls", env={"MUSTER_CONTROLLER": self.cluster.endpoint})
        local = os.path.join(self.place, "local")
        os.mkdir(local)
        shutil.copy(self.cluster.endpoint, os.path.join(local, "endpoint"))
        self.by("me", "token", "ls", env={"MUSTER_LOCAL_DIR": local})

    def test_a_socket_that_is_not_there(self):
        missing = self.by("me", "login", "--socket", os.path.join(self.place, "none"), code=10)
        self.assertIn("--token-file FILE --enrol HOST:PORT", missing.err)
        self.controller.stop()
        self.assertFalse(os.path.exists(self.socket))
        self.by("me", "login", "--socket", self.socket, code=10)
        self.by("me", "login", "--status", code=10)

    def test_a_certificate_that_has_ended_and_a_wrong_clock(self):
        self.by("me", "login", "--socket", self.socket, "--lifetime", "1h")
        later = {"MUSTER_WALL_CLOCK_OFFSET_MS": str(2 * HOUR_MS)}
        ended = self.by("me", "ps", env=later, code=11)
        self.assertIn("'muster login' gets another certificate", ended.err)
        self.assertIn("clock", ended.err)
        self.by("me", "login", "--status", env=later, code=11)
        early = {"MUSTER_WALL_CLOCK_OFFSET_MS": str(-48 * HOUR_MS)}
        wrong = self.by("me", "login", "--socket", self.socket, env=early, code=11)
        self.assertIn("set the one that is wrong", wrong.err)
        noted = self.by("me", "login", "--socket", self.socket, env={"MUSTER_WALL_CLOCK_OFFSET_MS": str(-HOUR_MS)})  # fmt: skip
        self.assertIn("one of them is wrong", noted.err)

    def test_a_renewal_at_the_socket_keeps_its_key(self):
        self.by("me", "login", "--socket", self.socket)
        first = self.certificates()
        self.assertEqual(len(first), 1)
        self.by("me", "login", "--socket", self.socket)
        second = self.certificates()
        self.assertEqual(len(second), 1, "it is the same key")
        self.assertNotEqual(second[0]["serial"], first[0]["serial"])
        # One that was revoked is not asked for again and again.
        self.cluster.muster("cert", "revoke", "--serial", second[0]["serial"], "--why", "leaked", code=0)  # fmt: skip
        self.by("me", "login", "--socket", self.socket)
        self.assertEqual(len(self.certificates()), 2)
        self.by("me", "node", "ls")
        # Neither is a file that is damaged.
        path = os.path.join(self.home("me"), ".config", "muster", "login.pem")
        with open(path, "w", encoding="utf-8") as file:
            file.write("nothing\n")
        self.by("me", "login", "--socket", self.socket)
        self.assertEqual(len(self.certificates()), 3)

    def test_a_lifetime(self):
        for wrong in ("59m", "32d"):
            self.assertIn("1h to 31d", self.by("me", "login", "--socket", self.socket, "--lifetime", wrong, code=64).err)  # fmt: skip
        self.by("me", "login", "--socket", self.socket, "--lifetime", "31d")


class Tokens(Logins):
    access = "users: {ada: admin, vera: viewer}\n"

    def test_over_tcp(self):
        token = self.token("--user", "ann")
        self.assertEqual(stat.S_IMODE(os.stat(token).st_mode), 0o600)
        secret = self.text(token).split(":")[2]
        shown = self.with_token("ann", token)
        self.assertRegex(shown.out, r"user +ann\n")
        self.by("ann", "node", "ls")
        listed = json.loads(self.cluster.output("token", "ls", "-o", "json"))["items"]
        self.assertEqual([(one["user"], one["used"]) for one in listed], [("ann", 1)])
        self.assertIn("user ann", self.cluster.output("token", "ls"))
        one = [one for one in self.certificates() if one.get("user") == "ann"]
        self.assertEqual([entry["actor"] for entry in one], [f"token {listed[0]['id']}"])
        # The same token with another key.
        again = self.with_token("mallory", token, code=11)
        self.assertIn("is used up (1 of 1)", again.err)
        self.assertFalse(os.path.exists(os.path.join(self.home("mallory"), ".config/muster/login.pem")))
        # The enrolment port is known from the last login, and the token may come from a pipe.
        self.by("ann", "login", "--token-file", "-", stdin=self.text(self.token("--user", "ann", name="second")))  # fmt: skip
        for path in glob.glob(self.cluster.path("**"), recursive=True):
            if os.path.isfile(path) and path not in (token, self.cluster.path("second")):
                with open(path, "rb") as file:
                    self.assertNotIn(secret.encode(), file.read(), path)

    def test_no_token_opens_the_other_door(self):
        join = self.token("--node", "*", name="join")
        personal = self.token("--user", "ann", name="personal")
        self.assertIn("for nodes that join", self.with_token("ann", join, code=64).err)
        code, logged = self.agent("n0", personal)
        self.assertEqual(code, 64, logged)
        self.assertIn("it is a personal token", logged)
        # Nor do they when somebody writes the other words in front.
        forged = self.cluster.write("forged", self.text(join).replace("join", "login", 1), 0o600)
        self.assertIn("is for nodes that join", self.with_token("ann", forged, code=11).err)
        forged = self.cluster.write("forged", self.text(personal).replace("login", "join", 1), 0o600)  # fmt: skip
        code, logged = self.agent("n0", forged)
        self.assertEqual(code, REFUSED, logged)
        self.assertIn("is a personal one", logged)
        self.with_token("ann", personal)

    def agent(self, node, token):
        return self.cluster.agent(node, controller=self.cluster.tcp_address(), args=["--enrol", self.enrol, "--join", token], wait=False).ended()  # fmt: skip

    def test_the_answer_is_lost(self):
        token = self.token("--user", "ann")
        relay = Relay(self.enrol, answers=False).open()
        self.addCleanup(relay.close)
        self.by("ann", "login", "--token-file", token, "--enrol", relay.address, code=(4, 13))
        self.assertTrue(relay.swallowed.is_set())
        self.with_token("ann", token)  # it has one use
        self.by("ann", "node", "ls")

    def test_an_admin_makes_one(self):
        ada = self.cluster.over_tcp("ada")
        token = self.token("--user", "ann", by=ada)
        self.with_token("ann", token)
        listed = json.loads(self.cluster.output("token", "ls", "-o", "json"))["items"]
        self.assertEqual([one["actor"] for one in listed], ["ada"])
        refused = self.cluster.muster("token", "create", "--node", "n9", "-o", self.cluster.path("x"), env=ada, code=11)  # fmt: skip
        self.assertIn("only the user who runs the controller may", refused.err)
        refused = self.cluster.muster("token", "create", "--user", "vera", "-o", self.cluster.path("x"), env=self.cluster.over_tcp("vera"), code=11)  # fmt: skip
        self.assertIn("the role 'admin' is needed", refused.err)

    def test_revoked(self):
        token = self.token("--user", "ann", "--uses", "3")
        self.with_token("ann", token)
        self.cluster.muster("cert", "revoke", "--user", "ann", "--why", "lost laptop", code=0)
        self.assertIn("lost laptop", self.by("ann", "node", "ls", code=11).err)
        refused = self.with_token("ann", token, code=11)
        self.assertIn("was revoked at", refused.err)
        ended = self.token("--user", "bob", name="bobs")
        self.cluster.muster("token", "revoke", self.text(ended).split(":")[1], code=0)
        self.assertIn("was revoked at", self.with_token("bob", ended, code=11).err)

    def test_files_that_are_none(self):
        token = self.token("--user", "ann")
        os.chmod(token, 0o644)
        self.assertIn("others may read it", self.with_token("ann", token, code=11).err)
        os.chmod(token, 0o600)
        self.assertIn("give --enrol HOST:PORT", self.by("ann", "login", "--token-file", token, code=64).err)  # fmt: skip
        wrong = self.cluster.write("wrong", self.text(token).rpartition(":")[0] + ":" + "0" * 64, 0o600)  # fmt: skip
        self.assertIn("another cluster's controller", self.with_token("ann", wrong, code=11).err)
        self.with_token("ann", token)


if __name__ == "__main__":
    if OTHER is None:
        print(f"tests with other accounts are left out: {WHY_NONE}", file=sys.stderr)
    unittest.main()
