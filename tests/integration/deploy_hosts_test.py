#!/usr/bin/python3
"""muster deploy on hosts as they are in the field: other algorithms of SSH, wrong clocks, sudo with a password, a bastion with one, strange login shells,
full and noexec disks, IPv6; nodes that were revoked, or left hosts.yaml; an operator's Ctrl-C. The hosts are those of ssh_hosts.py.

Run:  /usr/bin/python3 -B tests/integration/deploy_hosts_test.py [-v] [CASE]       (MUSTER_BIN names the binaries' folder)
"""

import contextlib
import glob
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import threading
import time
import unittest

import namespaces
import ssh_hosts
from cluster import wait_until
from cluster.programs import DEADLINE
from deploy_test import DeployTest, program

SECRET = "correct horse"
HEAD = "/var/lib/muster/controller"


def hashed(password):
    return subprocess.run(["openssl", "passwd", "-6", password], check=True, capture_output=True, text=True).stdout.strip()


def with_password(user):
    return ssh_hosts.SHADOW.replace(f"{user}:*:", f"{user}:{hashed(SECRET)}:")


class Typed:
    """muster deploy on a terminal of 80 columns; each question that matches gets its answer."""

    def __init__(self, fleet, *words):
        self.text, self.pid, self.status = "", 0, None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(program(), ["muster", "deploy", words[0], fleet.file, *words[1:]], {**fleet.environment(), "TERM": "xterm", "COLUMNS": "80"})

    def until(self, pattern, within=DEADLINE):
        """Reads until the text has the pattern, once more than before."""
        end, begin = time.monotonic() + within, len(self.text)
        while not re.search(pattern, self.text[begin:]):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no '{pattern}' in: {self.text}")
            try:
                self.text += os.read(self.fd, 65536).decode(errors="replace")
            except OSError as error:
                raise AssertionError(f"it ended without '{pattern}': {self.text}") from error
        return self

    def type(self, text):
        os.write(self.fd, text.encode())
        return self

    def echoes(self):
        import termios  # noqa: PLC0415

        return bool(termios.tcgetattr(self.fd)[3] & termios.ECHO)

    def wait(self):
        while True:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                break
            if not data:
                break
            self.text += data.decode(errors="replace")
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return self


class FieldTest(DeployTest):
    count = 3  # also where MUSTER_TEST_HOSTS asks for more

    def tearDown(self):
        self.fleet.write_known()
        self.fleet.write_hosts()
        self.fleet.deploy("down", "--force", "--purge")
        self.assert_left_nothing()

    def assert_up(self):
        self.fleet.deploy("status")  # it ends with 0

    def nodes(self):
        return self.fleet.muster("node", "ls", "-o", "name").split()


class Transports(FieldTest):
    """What Debian's libssh2 cannot do is done by OpenSSH's program, host by host, and shown."""

    count = 5
    options = {
        1: {"sshd": "Ciphers aes256-gcm@openssh.com,aes128-gcm@openssh.com"},
        2: {"key_type": "rsa", "sshd": "HostKeyAlgorithms rsa-sha2-512,rsa-sha2-256"},
        3: {"sshd": "PubkeyAcceptedAlgorithms rsa-sha2-512,rsa-sha2-256"},
    }

    def test_it(self):
        fleet = self.fleet
        rsa = os.path.join(fleet.folder, "id_rsa")
        subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", rsa], check=True)
        with open(rsa + ".pub", encoding="ascii") as file:
            fleet.hosts[3].sh(f"echo '{file.read().strip()}' > ~root/.ssh/authorized_keys")
        own = lambda number: {"identity": rsa} if number == 3 else {}
        fleet.write_hosts(agent=own)
        plan = fleet.deploy("plan")
        for name, kind in (("controller", "libssh2"), ("n1", "openssh"), ("n2", "openssh"), ("n3", "openssh"), ("n4", "libssh2")):
            self.assertRegex(plan, rf"(?m)^{name} +\S+ +{kind} ")
        for name, why in (("n1", "no common algorithm"), ("n2", "of type ssh-rsa"), ("n3", r"key '.*id_rsa' \(ssh-rsa\)")):
            self.assertRegex(plan, rf"(?m)^{name}: reached by the program ssh: .*{why}")
        up = fleet.deploy("up")
        self.assertEqual(up.count(" done "), 5, up)
        self.assert_up()
        fleet.write_hosts(agent=own)
        down = fleet.deploy("down", "--purge")
        self.assertEqual(down.count(" done"), 5, down)
        for host in fleet.hosts:  # no connection of OpenSSH's program is left
            self.assertNotIn("id_rsa", host.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))


# Linux gives no host a wall clock of its own. This stands for one: `date`, by which the host is judged, and the offset by which muster's programs set
# theirs (docs/decisions/0014), which they inherit from sshd.
DATE = """
cp /usr/bin/date /tmp/date.own; echo OFFSET > /tmp/clock
printf '#!/bin/sh\\n[ "$*" = +%%s ] || exec /tmp/date.own "$@"\\necho $(( $(/tmp/date.own +%%s) + $(cat /tmp/clock) ))\\n' > /tmp/date
chmod 755 /tmp/date; mount --bind /tmp/date /usr/bin/date
"""


def wrong_clock(seconds):
    return {"setup": DATE.replace("OFFSET", str(seconds)), "sshd": f"SetEnv MUSTER_WALL_CLOCK_OFFSET_MS={seconds * 1000}"}


class Clocks(FieldTest):
    count = 4
    options = {1: wrong_clock(-2 * 3600), 2: wrong_clock(25 * 3600)}

    def offset_of_a_login(self, host):
        folder = self.fleet.folder
        return subprocess.run(
            ["ssh", "-F", "none", "-i", f"{folder}/id", "-o", f"UserKnownHostsFile={folder}/known_hosts", "-o", "BatchMode=yes", f"root@{host.address}",
             "echo offset=$MUSTER_WALL_CLOCK_OFFSET_MS"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=DEADLINE,
        ).stdout  # fmt: skip

    def test_it(self):
        self.fleet.place_programs()
        plan = self.fleet.deploy("plan", code=1)
        self.assertRegex(plan, r"n1: note: its clock is 7[12]\d\d s behind the clock here; run NTP or chrony on it")
        self.assertRegex(plan, r"n2: problem: its clock is (900|899)\d\d s ahead of the clock here; .*: certificates would not count there")
        up = self.fleet.deploy("up", code=1)
        self.assertRegex(up, r"n2 +\S+ +failed +its clock is")
        self.assertEqual(up.count(" done "), 3, up)
        self.assertCountEqual(self.nodes(), ["n1", "n3"])
        # Its clock is set.
        host = self.fleet.hosts[2]
        self.assertEqual(self.offset_of_a_login(host), f"offset={25 * 3600 * 1000}\n")
        host.sh(f"echo 0 > /tmp/clock; sed -i '/SetEnv/d' {host.files}/sshd_config; kill -HUP $(cat /proc/1/task/1/children | cut -d' ' -f1)")
        wait_until(lambda: self.offset_of_a_login(host) == "offset=\n", within=30, what="sshd with its new configuration")
        up = self.fleet.deploy("up")
        self.assertEqual((up.count(" done "), up.count(" unchanged ")), (1, 3), up)
        self.assert_up()


class Members(FieldTest):
    """Nodes that were revoked, replaced, or are no longer in the file."""

    count = 4

    def without_n3(self):
        self.fleet.write_hosts()
        with open(self.fleet.file, encoding="utf-8") as file:
            text = file.read()
        with open(self.fleet.file, "w", encoding="utf-8") as file:
            file.write(re.sub(r', "n3": \{[^}]*\}', "", text))

    def test_a_revoked_node_joins_again(self):
        self.fleet.place_programs()
        fleet = self.fleet
        fleet.deploy("up")
        old = fleet.hosts[1].sh("cat /opt/muster/agent/credentials.pem")
        fleet.muster("cert", "revoke", "n1", "--why", "it was lost")
        self.assertRegex(fleet.deploy("status", code=1), r"n1 .* no +it runs, and the controller does not see it")
        plan = fleet.deploy("plan")
        self.assertRegex(plan, r"n1: note: its certificate was revoked \('it was lost'\), so it gets a new one; to keep it out")
        self.assertRegex(plan, r"n1 .*issue new credentials; start it again")
        self.assertIn("1 of 4 to be changed", plan)
        up = fleet.deploy("up")
        self.assertIn("n1: issuing credentials in place of those that were revoked", up)
        self.assertEqual((up.count(" done "), up.count(" unchanged ")), (1, 3), up)
        self.assert_up()
        self.assertNotEqual(old, fleet.hosts[1].sh("cat /opt/muster/agent/credentials.pem"))
        self.assertIn("nothing to do", fleet.deploy("plan"))

    def test_a_node_that_left_the_file(self):
        self.fleet.place_programs()
        fleet = self.fleet
        fleet.deploy("up")
        self.without_n3()
        sentence = "deployed, and no longer in hosts.yaml: it still runs; 'muster deploy up --prune' removes it"
        self.assertIn(f"n3: note: {sentence}", fleet.deploy("plan"))
        self.assertRegex(fleet.deploy("up"), f"n3 .* unchanged +{sentence}")
        self.assertIn("up --prune", fleet.deploy("status"))
        self.assertIn("n3", self.nodes())
        job = ("name: long\nengine: command\nlaunch: {run: sleep 600}\nresources: {nodes: 3, devices: 1, type: cpu}\n"
               "outputs: {dir: /tmp/out}\nrecovery: {stop_grace: 1s}\n")  # fmt: skip
        fleet.hosts[0].sh(f"cat > /tmp/long.yaml <<'END'\n{job}END")
        fleet.muster("run", "/tmp/long.yaml", "-d")
        wait_until(lambda: "long" in fleet.muster("node", "show", "n3"), what="the job's place")
        self.assertRegex(fleet.deploy("up", "--prune", code=1), "n3 .*failed +jobs use it: long; end them, or move them with")
        fleet.muster("cancel", "long")
        wait_until(lambda: "long" not in fleet.muster("node", "show", "n3"), what="the end of the job")
        up = fleet.deploy("up", "--prune")
        self.assertRegex(up, r"n3 +\S+ +done")
        self.assertCountEqual(self.nodes(), ["n1", "n2"])
        # What was logged there stays until a purge.
        self.assertEqual(fleet.hosts[3].sh("find /opt ! -type d"), "/opt/muster/agent/supervisor.log\n")
        self.assertNotIn("muster", fleet.hosts[3].sh("cat /proc/[0-9]*/comm"))
        self.assertNotIn("n3", fleet.deploy("up", "--prune"))
        fleet.write_hosts()  # it comes back
        self.assertEqual(fleet.deploy("up").count(" done "), 1)
        self.assert_up()

    def test_pruning_a_host_that_is_gone_takes_its_rights(self):
        self.fleet.place_programs()
        fleet = self.fleet
        fleet.deploy("up")
        self.without_n3()
        namespaces.ip("route", "add", "unreachable", fleet.hosts[3].address)
        try:
            wait_until(lambda: "silent" in fleet.muster("node", "show", "n3"), what="silence")
            self.assertRegex(fleet.deploy("up", "--prune"), "n3 .*done +forgotten, and what is there stays there: ")
        finally:
            namespaces.ip("route", "del", "unreachable", fleet.hosts[3].address)
        self.assertRegex(fleet.muster("cert", "ls"), "node n3 +revoked .* removed by muster deploy")
        fleet.write_hosts()
        fleet.deploy("up")
        self.assert_up()


@unittest.skipUnless(shutil.which("sudo"), "there is no 'sudo'")
class Sudo(FieldTest):
    """The real sudo, with a real password that is asked at the terminal."""

    SUDO = {
        "shadow": with_password("ann") if shutil.which("openssl") else "",
        "setup": "printf 'Defaults lecture=never\\nroot ALL=(ALL) ALL\\nann ALL=(ALL) ALL\\n' > /tmp/sudoers; chmod 440 /tmp/sudoers\n"
        "mount --bind /tmp/sudoers /etc/sudoers",
    }
    options = {1: SUDO, 2: SUDO}

    def test_it(self):
        fleet = self.fleet
        rising = lambda number: {"user": "ann", "sudo": True}
        fleet.write_hosts(agent=rising)
        up = fleet.deploy("up", code=1)  # nobody to ask
        self.assertRegex(up, r"n1 .*becoming root on .*: sudo wants a password, and there is nobody to ask; let the login user run sudo without one \(NOPASSWD\)")
        wrong = Typed(fleet, "up").until("password of ann for sudo on .*: ").type("wrong\n").until("password of ann for sudo").type(SECRET + "\n").wait()
        self.assertEqual(wrong.status, 0, wrong.text)
        self.assertEqual(wrong.text.count("password of ann"), 2, "each question is asked once for all hosts")
        self.assertNotIn(SECRET, wrong.text)
        self.assert_credentials()
        for host in fleet.hosts:
            self.assertNotIn(SECRET, host.sh("cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' ' '; cat /var/lib/muster/*/*.log 2>/dev/null"))
        down = Typed(fleet, "down", "--purge").until("password of ann").type(SECRET + "\n").wait()
        self.assertEqual(down.status, 0, down.text)

    def assert_credentials(self):
        for host in self.fleet.hosts[1:]:
            self.assertEqual(host.sh("stat -c '%U %a' /opt/muster/agent/credentials.pem").split(), ["root", "600"])


class Bastion(FieldTest):
    """A jump host that takes a password only, and a key with a passphrase behind it."""

    options = {2: {"sshd": "PasswordAuthentication yes", "shadow": with_password("ann") if shutil.which("openssl") else ""}}

    def test_it(self):
        fleet = self.fleet
        bastion = fleet.hosts[2]
        bastion.sh("rm /home/ann/.ssh/authorized_keys")
        locked = os.path.join(fleet.folder, "locked")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "a phrase", "-f", locked], check=True)
        with open(locked + ".pub", encoding="ascii") as file:
            fleet.hosts[1].sh(f"echo '{file.read().strip()}' > ~root/.ssh/authorized_keys")
        fleet.write_hosts(agent=lambda number: {"jump": f"ann@{bastion.address}", "identity": locked} if number == 1 else {})
        self.assertRegex(fleet.deploy("up", code=1), rf"n1 .*at the jump host 'ann@{bastion.address}': the host refused the authentication; it accepts .*password")
        typed = Typed(fleet, "up").until(f"passphrase of the key '{locked}'").type("a phrase\n")
        typed.until(rf"password of 'ann@{bastion.address}', the jump host").type("no\n").until("the jump host").type(SECRET + "\n").wait()
        self.assertEqual(typed.status, 0, typed.text)
        self.assertEqual(typed.text.count("passphrase of"), 1, typed.text)
        self.assert_registered(2)
        down = Typed(fleet, "down", "--purge").until("passphrase").type("a phrase\n").until("the jump host").type(SECRET + "\n").wait()
        self.assertEqual(down.status, 0, down.text)

    def assert_registered(self, count):
        self.assertEqual(len(self.nodes()), count)


@unittest.skipUnless(shutil.which("openssl"), "there is no 'openssl'")
class Passwords(FieldTest):
    """Accounts that take a password; --install-key, after which none is asked."""

    options = {
        number: {"sshd": "PasswordAuthentication yes", "shadow": with_password("ann") if shutil.which("openssl") else ""} for number in (1, 2)
    }

    def test_the_key_is_installed_once(self):
        fleet, host = self.fleet, self.fleet.hosts[1]
        host.sh("rm -r /home/ann/.ssh")
        fleet.write_hosts(agent=lambda number: {"user": "ann"} if number == 1 else {})
        self.assertRegex(fleet.deploy("plan", code=1), r"n1: problem: .*refused the authentication")
        typed = Typed(fleet, "plan", "--install-key").until(rf"password of 'ann@{host.address}'").type(SECRET + "\n").wait()
        self.assertEqual(typed.status, 0, typed.text)
        self.assertIn("n1: the public key was added to ~/.ssh/authorized_keys", typed.text)
        self.assertEqual(host.sh("stat -c '%U %a' /home/ann/.ssh /home/ann/.ssh/authorized_keys").split(), ["ann", "700", "ann", "600"])
        with open(os.path.join(fleet.folder, "id.pub"), encoding="ascii") as file:
            key = file.read()
        self.assertEqual(host.sh("cat /home/ann/.ssh/authorized_keys"), key)
        fleet.deploy("plan", "--install-key")  # nobody is asked
        self.assertEqual(host.sh("cat /home/ann/.ssh/authorized_keys"), key)

    def test_one_question_for_an_account_name(self):
        fleet = self.fleet
        for host in fleet.hosts[1:]:
            host.sh("rm -f /home/ann/.ssh/authorized_keys")
        fleet.write_hosts(agent=lambda number: {"user": "ann"})
        asked = Typed(fleet, "plan").until("password of 'ann@.*, and of 'ann' on the other hosts: ").type(SECRET + "\n").wait()
        self.assertEqual((asked.status, asked.text.count("password of")), (0, 1), asked.text)

    def refusals(self):
        counts = []
        for host in self.fleet.hosts[1:]:
            with open(f"{host.files}/log", encoding="utf-8", errors="replace") as log:
                counts.append(log.read().count("Failed password for ann"))
        return counts

    def test_a_wrong_password_is_tried_at_one_host(self):
        """Two hosts that refuse it would lock an account of a directory twice as soon."""
        fleet, before = self.fleet, self.refusals()
        for host in fleet.hosts[1:]:
            host.sh("rm -f /home/ann/.ssh/authorized_keys")
        fleet.write_hosts(agent=lambda number: {"user": "ann"})
        asked = Typed(fleet, "plan").until("password of 'ann@").type("wrong\n").until("password of 'ann@").type(SECRET + "\n").wait()
        self.assertEqual((asked.status, asked.text.count("password of")), (0, 2), asked.text)
        self.assertEqual(sum(self.refusals()) - sum(before), 1, (before, self.refusals()))

    def test_a_host_with_a_password_of_its_own(self):
        fleet, other = self.fleet, self.fleet.hosts[2]
        for host in fleet.hosts[1:]:
            host.sh("rm -f /home/ann/.ssh/authorized_keys")
        with open(f"{other.files}/shadow", encoding="utf-8") as file:
            as_before = file.read()
        other._write("shadow", ssh_hosts.SHADOW.replace("ann:*:", f"ann:{hashed('of n2 alone')}:"), 0o600)
        try:
            fleet.write_hosts(agent=lambda number: {"user": "ann"})
            typed, question = Typed(fleet, "plan"), r"password of 'ann@([^']*)'([^:]*): "
            for number in range(2):  # which host is asked for first depends on who answers first
                typed.until(question)
                asked = re.findall(question, typed.text)
                self.assertEqual(len(asked), number + 1, typed.text)
                typed.type(("of n2 alone" if asked[-1][0] == other.address else SECRET) + "\n")
            typed.wait()
            self.assertEqual(typed.status, 0, typed.text)
            self.assertEqual(typed.text.count("password of"), 2, typed.text)
            self.assertIn("on the other hosts", asked[0][1])
            self.assertNotIn("on the other hosts", asked[1][1], "it is asked for alone")
        finally:
            other._write("shadow", as_before, 0o600)


class ProcessTexts:
    """Reads the command line and the environment of every process of this machine, again and again, until stop()."""

    def __init__(self):
        self._texts, self._end = set(), threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while not self._end.is_set():
            for path in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
                with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
                    self._texts.add(file.read())

    def stop(self):
        self._end.set()
        self._thread.join()
        return "\n".join(self._texts)


@unittest.skipUnless(shutil.which("openssl"), "there is no 'openssl'")
class HardenedHosts(FieldTest):
    """Hosts that libssh2 cannot talk to. One takes a password only, one a key with a passphrase: the program `ssh` gets both."""

    options = {
        1: {
            "sshd": "Ciphers aes256-gcm@openssh.com\nPasswordAuthentication yes",
            "shadow": with_password("ann") if shutil.which("openssl") else "",
        },
        2: {"sshd": "Ciphers aes256-gcm@openssh.com"},
    }

    def test_a_password_behind_a_jump_host(self):
        fleet, first = self.fleet, self.fleet.hosts[1]
        first.sh("rm -f /home/ann/.ssh/authorized_keys")
        fleet.write_hosts(agent=lambda number: {"user": "ann", "jump": f"root@{fleet.hosts[0].address}"} if number == 1 else {})
        typed = Typed(fleet, "plan").until(f"password of 'ann@{first.address}'").type(SECRET + "\n").wait()
        self.assertEqual(typed.status, 0, typed.text)
        self.assertRegex(typed.text, "n1: reached by the program ssh")

    def test_it(self):
        fleet = self.fleet
        first, second = fleet.hosts[1], fleet.hosts[2]
        first.sh("rm -r /home/ann/.ssh")
        locked = os.path.join(fleet.folder, "locked")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "a phrase", "-f", locked], check=True)
        with open(locked + ".pub", encoding="ascii") as file:
            second.sh(f"echo '{file.read().strip()}' > ~root/.ssh/authorized_keys")
        fleet.write_hosts(agent=lambda number: {"user": "ann"} if number == 1 else {"identity": locked})
        plan = fleet.deploy("plan", code=1)
        for name in ("n1", "n2"):
            self.assertRegex(plan, rf"{name}: problem: .*refused the authentication.*it is asked for at a terminal alone")
        typed = Typed(fleet, "plan", "--install-key")
        seen = ProcessTexts()
        self.addCleanup(seen.stop)
        for _ in range(2):  # in the order of the hosts' answers
            typed.until("(passphrase of the key|password of 'ann@)")
            of_key = typed.text.rfind("passphrase of") > typed.text.rfind("password of")
            typed.type("a phrase\n" if of_key else SECRET + "\n")
        typed.wait()
        texts = seen.stop()
        self.assertIn("MUSTER_SSH_ASKPASS=", texts)  # it has seen the right processes
        for secret in (SECRET, "a phrase"):
            self.assertNotIn(secret, texts)
        self.assertEqual(typed.status, 0, typed.text)
        self.assertEqual((typed.text.count("passphrase of"), typed.text.count("password of")), (1, 1), typed.text)
        self.assertIn("n1: the public key was added to ~/.ssh/authorized_keys", typed.text)
        self.assertRegex(typed.text, r"n1: reached by the program ssh")
        wrong = Typed(fleet, "plan").until("passphrase of the key").type("no\n").wait()
        self.assertEqual(wrong.status, 1, wrong.text)
        self.assertRegex(wrong.text, r"n2: .*problem:.*refused the authentication.*; is what was typed right")
        self.assertNotIn("password of", wrong.text)  # the key is there now


def login_shell(path):
    return ssh_hosts.PASSWORDS.replace("/root:/bin/sh", f"/root:{path}")


NOISE = "printf 'Authorized use only.\\n' > /tmp/banner; printf 'echo Welcome to $HOSTNAME; printf \"{ no line end\"\\n' > ~root/.bashrc\n"


class Shells(FieldTest):
    """Banners, login shells that print, and login shells that are no sh."""

    count = 5
    options = {
        0: {"setup": NOISE, "sshd": "Banner /tmp/banner", "passwd": login_shell("/bin/bash")},
        1: {"setup": NOISE, "sshd": "Banner /tmp/banner\nCiphers aes256-gcm@openssh.com", "passwd": login_shell("/bin/bash")},
        2: {"passwd": login_shell(shutil.which("csh") or "/bin/sh")},
        3: {"passwd": login_shell(shutil.which("fish") or "/bin/sh")},
        4: {"passwd": login_shell("/usr/sbin/nologin")},
    }

    def test_it(self):
        fleet = self.fleet
        up = fleet.deploy("up", code=1)
        self.assertRegex(up, r"n4 .*failed +.*the login shell does not run it: This account is currently not available.*chsh")
        self.assertEqual(up.count(" done "), 4, up)
        self.assertCountEqual(self.nodes(), ["n1", "n2", "n3"])
        again = fleet.deploy("up", code=1)
        self.assertEqual(again.count(" unchanged "), 4, again)
        fleet.hosts[4].sh(f"sed 's,/usr/sbin/nologin,/bin/sh,' {fleet.hosts[4].files}/passwd > /tmp/passwd; mount --bind /tmp/passwd /etc/passwd")
        fleet.deploy("up")
        self.assert_up()

    def assert_left_nothing(self):
        for host in self.fleet.hosts:
            host.sh("rm -rf ~root/.bashrc ~root/.local ~root/.config")  # fish makes the last two
        super().assert_left_nothing()


class Disks(FieldTest):
    """/tmp is full, the state is on a noexec disk, the user has no home, there is no sha256sum."""

    def test_a_full_tmp_and_a_noexec_state(self):
        fleet = self.fleet
        for host in fleet.hosts[:2]:
            host.sh("mount -t tmpfs -o size=64k none /tmp; cat /dev/zero > /tmp/full 2>/dev/null; mount -o remount,noexec /var/lib")
        try:
            fleet.deploy("up")
            self.assert_up()
            job = ("name: one\\nengine: command\\nlaunch: {run: uname -n}\\nresources: {nodes: 1, devices: 1, type: cpu, hosts: [n1]}\\n"
                   "outputs: {dir: /var/lib/out}\\n")  # fmt: skip
            fleet.hosts[0].sh(f"printf '{job}' > /var/lib/one.yaml")
            fleet.muster("run", "/var/lib/one.yaml", "-q", "--timeout", "60s")
            self.assertIn(fleet.hosts[1].name, fleet.muster("logs", "one"))
            fleet.deploy("down", "--purge")
        finally:
            for host in fleet.hosts[:2]:
                host.sh("umount /tmp; mount -o remount,exec /var/lib; rm -rf /var/lib/out /var/lib/one.yaml")
            fleet.hosts[2].sh("rm -rf /var/lib/out")

    def test_a_user_without_a_home(self):
        self.fleet.place_programs([0, 1])
        host = self.fleet.hosts[2]
        host.sh("mv /home/ann /home/elsewhere; mkdir /opt/ann; chown 1500:1500 /opt/ann")
        keys = host.sh("cat /home/elsewhere/.ssh/authorized_keys")
        try:
            # sshd finds no key of a user without a home, but in a file of its own.
            self.fleet.write_hosts(agent=lambda number: {"user": "ann"} if number == 2 else {})
            self.assertRegex(self.fleet.deploy("up", code=1), r"n2 .*refused the authentication")
            host.sh(f"mkdir -p /opt/keys; printf '%s' '{keys}' > /opt/keys/ann; echo 'AuthorizedKeysFile /opt/keys/%u .ssh/authorized_keys' >> {host.files}/sshd_config\n"
                    "kill -HUP $(cut -d' ' -f1 /proc/1/task/1/children)")  # fmt: skip
            wait_until(lambda: host.listens() and "refused the auth" not in self.fleet.deploy("plan", code=1), within=60, what="sshd")
            self.assertRegex(self.fleet.deploy("up", code=1), r"n2 .*'ann' may not write to '/home', where the prefix '/home/ann/\.muster' is to be")
            self.fleet.write_hosts(agent=lambda number: {"user": "ann", "prefix": "/opt/ann/muster", "state_dir": "/opt/ann/state"} if number == 2 else {})
            self.fleet.deploy("up")
            self.assert_up()
            self.fleet.deploy("down", "--purge")
        finally:
            host.sh("mv /home/elsewhere /home/ann; rm -rf /opt/ann /opt/keys")

    def test_no_sha256sum(self):
        self.fleet.place_programs([0, 1])
        host = self.fleet.hosts[2]
        host.sh("mkdir -p /opt/none; : > /opt/none/sha256sum; mount --bind /opt/none/sha256sum /usr/bin/sha256sum")
        try:
            self.assertRegex(self.fleet.deploy("up", code=1), r"n2 .*failed +there is no 'sha256sum' on PATH \(coreutils or busybox\)")
        finally:
            host.sh("umount /usr/bin/sha256sum; rm -r /opt/none")
        self.fleet.deploy("up")


class Addresses(FieldTest):
    def test_ipv6(self):
        self.fleet.place_programs()
        fleet = self.fleet
        head = fleet.hosts[0].address6
        fleet.write_hosts(agent=lambda number: {"host": fleet.hosts[number].address6}, controller={"host": head, "listen": "[::]:7070"})
        up = fleet.deploy("up")
        self.assertEqual(up.count(" done "), len(fleet.hosts), up)
        self.assert_up()
        self.assertIn(f"--controller=[{head}]:7070", fleet.hosts[1].sh("cat /opt/muster/agent/command-line"))
        fleet.deploy("down", "--purge")

    def test_new_keys_are_accepted_only_when_asked(self):
        fleet = self.fleet
        with open(os.path.join(fleet.folder, "known_hosts"), "w", encoding="utf-8") as file:
            file.write(fleet.hosts[0].known())
        self.assertRegex(fleet.deploy("plan", code=1), r"n1: problem: .*the host's key is not known: .*accept.new")
        fleet.deploy("plan", "--accept-new")
        fleet.deploy("plan")

    def test_one_host_by_two_names(self):
        self.fleet.place_programs([0])
        fleet = self.fleet
        fleet.write_hosts(agent=lambda number: {"host": fleet.hosts[1].address6} if number == 2 else {})
        plan = fleet.deploy("plan", code=1)
        for one, other in (("n1", "n2"), ("n2", "n1")):
            self.assertRegex(plan, f"{one}: problem: it is the same machine as node '{other}', by another name; one agent a host")
        up = fleet.deploy("up", code=1)
        self.assertEqual(up.count(" done "), len(fleet.hosts) - 2, up)
        self.assertEqual(fleet.hosts[1].sh("ls -A /opt"), "")

    def test_a_management_address(self):
        """The names are nobody's; SSH and the agents go by the addresses."""
        self.fleet.place_programs()
        fleet = self.fleet
        by = lambda number: {"host": f"gpu-{number}", "management_address": fleet.hosts[number].address, "training_address": fleet.hosts[number].address6}
        fleet.write_hosts(agent=by, controller={"host": "head", "management_address": fleet.hosts[0].address})
        fleet.deploy("up")
        status = fleet.deploy("status")
        self.assertRegex(status, r"n1 +gpu-1 +yes")
        self.assertIn(fleet.hosts[1].address6, fleet.muster("node", "show", "n1", "-o", "json"))
        fleet.deploy("down", "--purge")


class Operator(FieldTest):
    def test_ctrl_c_and_again(self):
        fleet = self.fleet
        for moment in ("sending muster ", "issuing credentials", "starting the agent"):
            process = fleet.start("up")
            while moment not in process.stderr.readline():
                self.assertIsNone(process.poll())
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=DEADLINE)
            self.assertNotEqual(process.returncode, 0)
        up = fleet.deploy("up")
        self.assertNotIn("failed", up)
        self.assert_up()
        for host in fleet.hosts:
            self.assertEqual(host.sh("find /opt -name '*.new'"), "")
            self.assertEqual(host.sh("ls -d /opt/muster/controller/issue.* 2>/dev/null; true"), "")

    def test_ctrl_c_at_a_question(self):
        """The terminal shows again what is typed."""
        locked = os.path.join(self.fleet.folder, "locked")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "a phrase", "-f", locked], check=True)
        self.fleet.write_hosts(defaults={"identity": locked})
        typed = Typed(self.fleet, "plan").until("passphrase of the key")
        self.assertFalse(typed.echoes())
        typed.type("half\x7f\x03")
        wait_until(typed.echoes, within=30, what="the terminal as it was")
        typed.wait()
        self.assertEqual(typed.status, -signal.SIGINT, typed.text)

    def test_80_columns(self):
        """Where a table is wider than the terminal, its sentences stand below it, whole."""
        self.fleet.place_programs([0, 1])
        self.fleet.write_hosts(agent=lambda number: {"port": 2} if number == 2 else {})
        typed = Typed(self.fleet, "up").wait()
        self.assertEqual(typed.status, 1, typed.text)
        table = typed.text[typed.text.index("NAME ") :].replace("\r", "").split("\n")
        self.assertLess(max(map(len, table[:4])), 80, table)
        self.assertRegex(typed.text, r"\nn2: connecting to '.*refused")


if __name__ == "__main__":
    namespaces.main(("ip", "nsenter", "ssh-keygen"), "ip netns add a && ip link add va type veth peer vb netns a", ssh_hosts.why_not)
