"""Hosts with real SSH servers: each is a namespace of mounts, processes, names and network, with its own sshd, address, state and users.

    client (the test)  10.80.N.1 ---- 10.80.N.2  host N         hosts reach each other through the client, which forwards
                       fd80:0:0:M::1 ---- fd80:0:0:M::2         M = N + 1

Only inside of namespaces.py. When the test is gone, however it ended, the kernel ends every process of every host.
"""

import os
import shutil
import socket
import subprocess

from cluster import wait_until
from namespaces import ip

SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin") or ""
PASSWORDS = "root:x:0:0:root:/root:/bin/sh\nsshd:x:74:65534::/run/sshd:/usr/sbin/nologin\nann:x:1500:1500::/home/ann:/bin/sh\n"
GROUPS = "root:x:0:\nann:x:1500:\nnogroup:x:65534:\n"
SHADOW = "root:*:20000:0:99999:7:::\nann:*:20000:0:99999:7:::\n"

# Process 1 of a host: it starts sshd, and buries everybody's children. It ends when its standard input does.
INIT = """
import os, select, subprocess, sys
daemon = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
while not select.select([0], [], [], 0.1)[0]:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        break
"""

# Everything that a deployment writes is a disk of the host's own, in memory.
MOUNTS = """
set -e
mount --make-rprivate /
hostname "$NAME"
for d in /opt /var/lib /root /home /tmp; do mount -t tmpfs -o mode=755 none $d; done
chmod 1777 /tmp
[ -z "$OPT" ] || mount -o "remount,$OPT" /opt
for f in passwd group shadow hosts; do mount --bind "$FILES/$f" /etc/$f; done
for home in /root /home/ann; do mkdir -p $home/.ssh; cp "$FILES/authorized_keys" $home/.ssh/; chmod 700 $home $home/.ssh; done
chown -R 1500:1500 /home/ann
mkdir -p /run/sshd /run/muster
mount -t tmpfs -o mode=755 none /run/muster
eval "$SETUP"
exec "$@"
"""


class SshHost:
    def __init__(self, folder, number, options="", sshd="", key_type="ed25519", setup="", passwd=PASSWORDS, shadow=SHADOW):
        """`options` of the mount of /opt; `sshd`: lines before those of sshd_config; `setup`: a script that runs as root before sshd starts."""
        self.number, self.folder, self.key_type = number, folder, key_type
        self.name, self.address, self.address6 = f"h{number}", f"10.80.{number}.2", f"fd80:0:0:{number + 1}::2"
        self.files = os.path.join(folder, self.name)
        os.makedirs(self.files, exist_ok=True)
        self._link()
        self.make_key()
        self._write("passwd", passwd)
        self._write("group", GROUPS)
        # There is no name server, and sudo looks its own host up.
        self._write("hosts", f"127.0.0.1 localhost\n::1 localhost\n{self.address} {self.name}\n")
        self._write("shadow", shadow, 0o600)
        shutil.copy(os.path.join(folder, "id.pub"), os.path.join(self.files, "authorized_keys"))
        self._write(
            "sshd_config",
            f"{sshd}\nListenAddress {self.address}\nListenAddress {self.address6}\nHostKey {self.files}/key\nPermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"UsePAM no\nPidFile none\nMaxStartups 100\n",
        )
        with open(f"{self.files}/log", "wb") as log:
            self.process = self._start({"OPT": options, "SETUP": setup}, log)
        wait_until(lambda: self.listens() or self._ended(), within=30, what=f"sshd of {self.name}")

    def _start(self, more, log):
        environment = {**os.environ, "NAME": self.name, "FILES": self.files, **more}
        return subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{self.name}", "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc",
             "sh", "-c", MOUNTS, "sh", "/usr/bin/python3", "-c", INIT, SSHD, "-D", "-e", "-f", f"{self.files}/sshd_config"],
            stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, env=environment,
        )  # fmt: skip

    def _ended(self):
        if self.process.poll() is None:
            return False
        with open(f"{self.files}/log", encoding="utf-8", errors="replace") as log:
            raise AssertionError(f"host {self.name} did not start: {log.read()}")

    def _write(self, name, text, mode=0o644):
        path = os.path.join(self.files, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def _link(self):
        ip("netns", "add", self.name)
        ip("-n", self.name, "link", "set", "lo", "up")
        ip("link", "add", f"v{self.number}", "type", "veth", "peer", "name", "eth0", "netns", self.name)
        ip("addr", "add", f"10.80.{self.number}.1/30", "dev", f"v{self.number}")
        ip("link", "set", f"v{self.number}", "up")
        ip("-n", self.name, "addr", "add", f"{self.address}/30", "dev", "eth0")
        ip("-n", self.name, "link", "set", "eth0", "up")
        ip("-n", self.name, "route", "add", "default", "via", f"10.80.{self.number}.1")
        ip("addr", "add", f"fd80:0:0:{self.number + 1}::1/64", "dev", f"v{self.number}", "nodad")
        ip("-n", self.name, "addr", "add", f"{self.address6}/64", "dev", "eth0", "nodad")
        ip("-n", self.name, "-6", "route", "add", "default", "via", f"fd80:0:0:{self.number + 1}::1")

    def make_key(self):
        for end in ("", ".pub"):
            if os.path.exists(f"{self.files}/key{end}"):
                os.unlink(f"{self.files}/key{end}")
        subprocess.run(["ssh-keygen", "-q", "-t", self.key_type, "-N", "", "-f", f"{self.files}/key"], check=True)

    def known(self):
        with open(f"{self.files}/key.pub", encoding="utf-8") as file:
            return f"{self.address},{self.address6} {' '.join(file.read().split()[:2])}\n"

    def listens(self):
        try:
            with socket.create_connection((self.address, 22), 1):
                return True
        except OSError:
            return False

    def init_pid(self):
        """The host's process 1, as the test sees it."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="utf-8") as file:
            return int(file.read().split()[0])

    def sh(self, script, check=True):
        """Runs as root on the host, without SSH. It enters the host's root, too: without that, tests in a chroot would come out of it."""
        done = subprocess.run(
            ["nsenter", f"--target={self.init_pid()}", "--mount", "--root", "--uts", "--ipc", "--net", "--pid", "sh", "-c", script],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if check and done.returncode != 0:
            raise AssertionError(f"{self.name}: {script}: {done.stdout}{done.stderr}")
        return done.stdout

    def close(self):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        subprocess.run(["ip", "link", "del", f"v{self.number}"], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True, check=False)


def prepare(folder):
    """The operator's key, and forwarding between the hosts."""
    ip("link", "set", "lo", "up")
    for setting in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        with open(f"/proc/sys/net/{setting}", "w", encoding="ascii") as file:
            file.write("1")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(folder, "id")], check=True)


def why_not():
    if not SSHD:
        return "there is no 'sshd'"
    if os.geteuid() != 0:
        return "sshd of several hosts needs root"
    return ""
