#!/usr/bin/python3
"""What is delivered (cmake/MusterPackage.cmake, deploy/package): tarball, .deb, units of systemd, settings, completion.

    - deploy/package/controller.yaml and agent.yaml have the options of the programs, and the words of their help. --rewrite writes them anew.
    - The .deb is installed, used by hand, removed while a rank runs, and purged, in a tree of Debian 11 (old_root.py) below an overlay.
    - systemd's own tools read the units. tests/systemd-root starts them; it is not part of the suite.

Run:  /usr/bin/python3 tests/integration/package_test.py [--rewrite] [-v] [CASE]
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import namespaces
import old_root
from cluster import BIN, DEADLINE, ROOT, binary, wait_until
from portable_test import CHROOT, PROGRAMS, STATIC, TABLES, mount, others

PACKAGE = os.path.join(ROOT, "deploy", "package")
REWRITE = "--rewrite" in sys.argv
WHY_NO_OLD_ROOT = "MUSTER_TEST_WHY_NO_OLD_ROOT"  # from this file's process outside
# The lines of a sample that are no comment: what the packages set.
SET = {"controller.yaml": {"state-dir": "/var/lib/muster/controller"}, "agent.yaml": {}}
# The most that `systemd-analyze security` may say of a unit, in tenths of its exposure level. An agent's unit can take little away: ranks inherit it.
EXPOSURE = {"muster-controller.service": 16, "muster-agent.service": 93}
VERSION = re.search(
    r"project\(muster VERSION ([\d.]+)", open(os.path.join(ROOT, "CMakeLists.txt")).read()
)[1]
NOW = {}  # the packages, made once: "deb" and "tar.gz"


def run(*words, code=0, **more):
    done = subprocess.run(
        [str(word) for word in words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
        **more,
    )
    if done.returncode != code:
        raise AssertionError(f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def setUpModule():
    if namespaces.inside():
        namespaces.ip("link", "set", "lo", "up")
    if STATIC:
        out = tempfile.mkdtemp(prefix="packages-")
        unittest.addModuleCleanup(shutil.rmtree, out)
        run("cpack", "--config", os.path.join(os.path.dirname(BIN), "CPackConfig.cmake"), "-B", out)
        for name in os.listdir(out):
            for kind in ("deb", "tar.gz"):
                if name.endswith("." + kind):
                    NOW[kind] = os.path.join(out, name)


class Settings(unittest.TestCase):
    maxDiff = None

    def test_the_samples_have_every_option(self):
        for name, program in (("controller.yaml", "muster-controller"), ("agent.yaml", "muster-agent")):  # fmt: skip
            wanted = run(binary(program), "--print-config", env={})
            for key, value in SET[name].items():
                wanted, count = re.subn(
                    f"^#{key}: .*$", f"{key}: {value}", wanted, flags=re.MULTILINE
                )
                self.assertEqual(count, 1, key)
            path = os.path.join(PACKAGE, name)
            if REWRITE:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(wanted)
            with self.subTest(name), open(path, encoding="utf-8") as file:
                self.assertEqual(wanted, file.read(), "--rewrite writes the sample anew")

    def test_every_option_of_the_help_is_in_the_sample(self):
        """By another way than --print-config: the help page's own list."""
        alone = {"help", "version", "config", "check-config", "print-config", "accept-loss", "dump"}
        for name, program in (("controller.yaml", "muster-controller"), ("agent.yaml", "muster-agent")):  # fmt: skip
            options = set(re.findall(r"^  (?:-\w,)?--([\w-]+)", run(binary(program), "--help"), re.M))  # fmt: skip
            with self.subTest(name), open(os.path.join(PACKAGE, name), encoding="utf-8") as file:
                keys = re.findall(r"^#?([a-z][\w-]+): ", file.read(), re.M)
                self.assertEqual(len(keys), len(set(keys)))
                self.assertEqual(options - alone, set(keys) - {"key"})

    def test_completion_of_bash(self):
        for words, wanted in (
            (["muster", "loc"], ["local"]),
            (["muster", "node", "decl"], ["declare-dead"]),
            (["muster", "--controller", "run", "nod"], ["node"]),  # "run" is the option's value
            (["muster", "ps", "-o", "js"], ["json", "jsonl"]),
            (["muster", "wait", "--for", "=", "che"], ["checkpoint"]),
            (["muster", "run", "--quiet", "--deta"], ["--detach"]),
            (["muster", "cancel", "@"], ["@last"]),
        ):
            script = (
                f"source {PACKAGE}/completion.bash; COMP_WORDS=({' '.join(words)});"
                f" COMP_CWORD={len(words) - 1}; _muster; printf '%s\\n' \"${{COMPREPLY[@]}}\""
            )
            environment = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": "/nonexistent"}
            with self.subTest(words):
                printed = run("bash", "-c", script, env=environment)
                self.assertEqual(printed.split(), wanted)

    @unittest.skipUnless(shutil.which("zsh"), "there is no 'zsh' on PATH")
    def test_completion_of_zsh(self):
        script = (
            "compdef() { :; }; _describe() { print -l -- ${(P)${@[-1]}}; };"
            f' eval "$({binary("muster")} completion zsh)"; words=(muster node ""); CURRENT=3; _muster'
        )
        printed = run("zsh", "-f", "-c", script, env={"PATH": f"{BIN}:/usr/bin:/bin"})
        self.assertIn("ls:", printed)
        self.assertIn("declare-dead:", printed)


class Units(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "there is no 'systemd-analyze' on PATH")
    def test_systemd_reads_them(self):
        with tempfile.TemporaryDirectory() as root:
            units = os.path.join(root, "usr/lib/systemd/system")
            shutil.copytree("/usr/lib/systemd/system", units, symlinks=True)
            os.makedirs(os.path.join(root, "usr/bin"))
            os.mkdir(os.path.join(root, "bin"))
            shutil.copy("/bin/true", os.path.join(root, "bin/kill"))
            for name, most in EXPOSURE.items():
                shutil.copy(os.path.join(PACKAGE, name), units)
                program = os.path.join(root, "usr/bin", name.removesuffix(".service"))
                shutil.copy("/bin/true", program)
            for name, most in EXPOSURE.items():
                with self.subTest(name):
                    printed = run("systemd-analyze", "verify", "--man=no", f"--root={root}", name)
                    self.assertNotIn(name, printed)
                    run("systemd-analyze", "security", "--offline=yes", f"--threshold={most}", os.path.join(PACKAGE, name))  # fmt: skip

    @unittest.skipUnless(shutil.which("systemd-sysusers"), "there is no 'systemd-sysusers' on PATH")
    def test_user_and_directories(self):
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "etc"))
            for tool, name in (("systemd-sysusers", "sysusers"), ("systemd-tmpfiles", "tmpfiles")):
                folder = os.path.join(root, f"usr/lib/{name}.d")
                os.makedirs(folder)
                shutil.copy(os.path.join(PACKAGE, f"{name}.conf"), f"{folder}/muster.conf")
                more = ["--create"] if name == "tmpfiles" else []
                run(tool, *more, f"--root={root}", "muster.conf")
            with open(os.path.join(root, "etc/passwd"), encoding="utf-8") as file:
                self.assertRegex(file.read(), r"(?m)^muster:.*:/var/lib/muster:/usr/sbin/nologin$")
            for name, mode in (("", 0o755), ("controller", 0o700), ("agent", 0o700)):
                made = os.stat(os.path.join(root, "var/lib/muster", name))
                self.assertEqual(made.st_mode & 0o7777, mode, name)
            made = os.stat(os.path.join(root, "run/muster"))
            self.assertEqual(made.st_mode & 0o7777, 0o755)  # users log in there


@unittest.skipUnless(STATIC, "only preset release links statically")
class Tarball(unittest.TestCase):
    def test_what_is_in_it(self):
        top = f"muster-{VERSION}-amd64"
        self.assertEqual(os.path.basename(NOW["tar.gz"]), top + ".tar.gz")
        with tempfile.TemporaryDirectory() as folder, tarfile.open(NOW["tar.gz"]) as tar:
            files = {member.name: member.mode for member in tar if member.isfile()}
            self.assertEqual(
                files,
                {f"{top}/bin/{name}": 0o755 for name in PROGRAMS}
                | {f"{top}/{name}": 0o644 for name in (
                    "etc/muster/agent.yaml", "etc/muster/controller.yaml",
                    "lib/systemd/system/muster-agent.service", "lib/systemd/system/muster-controller.service",
                    "lib/sysusers.d/muster.conf", "lib/tmpfiles.d/muster.conf",
                    "share/bash-completion/completions/muster", "share/zsh/vendor-completions/_muster",
                    "share/doc/muster/first-cluster.md", "share/doc/muster/install.md",
                )},
            )  # fmt: skip
            tar.extractall(folder)
            for name in PROGRAMS:
                path = os.path.join(folder, top, "bin", name)
                self.assertNotIn(".debug_info", run("readelf", "-SW", path))
                self.assertLess(os.path.getsize(path), 40 << 20)
            run(os.path.join(folder, top, "bin/muster"), "--version")

    def test_deploy_takes_it_as_a_bundle(self):
        """Port 1 of this machine is closed: the plan ends at the host, after it has read the programs."""
        with tempfile.TemporaryDirectory() as folder:
            hosts = os.path.join(folder, "hosts.yaml")
            with open(hosts, "w", encoding="utf-8") as file:
                file.write("controller: {host: 127.0.0.1, port: 1}\nagents: {n1: {host: 127.0.0.1, port: 1}}\n")
            plan = run(binary("muster"), "deploy", "plan", hosts, "--bundle", NOW["tar.gz"], code=1)
            self.assertIn("Connection refused", plan)


@unittest.skipUnless(STATIC, "only preset release links statically")
@unittest.skipUnless(namespaces.inside(), "this machine lets us make no namespaces")
class Deb(unittest.TestCase):
    """Each test has the tree as the package found it: what dpkg writes goes to a tmpfs above it."""

    def setUp(self):
        why = os.environ.get(WHY_NO_OLD_ROOT)
        if why:
            self.skipTest(why)
        layers = tempfile.mkdtemp(prefix="layers-")
        mount("-t", "tmpfs", "none", layers)
        for name in ("upper", "work", "root"):
            os.mkdir(os.path.join(layers, name))
        self.root = os.path.join(layers, "root")
        below = f"lowerdir={old_root.PATH},upperdir={layers}/upper,workdir={layers}/work"
        mount("-t", "overlay", "overlay", "-o", below, self.root)
        mount("-t", "proc", "proc", self.inside("proc"))
        for name, text in {
            **TABLES, "shadow": "root:*:19000::::::\n", "gshadow": "root:*::\n",
        }.items():  # fmt: skip
            self.write(f"etc/{name}", text)
        for device in ("null", "urandom"):
            self.write(f"dev/{device}", "")
            mount("--bind", f"/dev/{device}", self.inside(f"dev/{device}"))
        shutil.copy(NOW["deb"], self.inside("tmp/muster.deb"))

    def inside(self, path):
        return os.path.join(self.root, path.lstrip("/"))

    def write(self, path, text):
        with open(self.inside(path), "w", encoding="utf-8") as file:
            file.write(text)

    def command(self, *words, user=None):
        return [CHROOT, *([f"--userspec={user}:{user}"] if user else []), self.root, *words]

    def here(self, *words, code=0, user=None):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
        if words[0] == "/usr/bin/muster":
            environment["MUSTER_CONTROLLER"] = "/var/lib/muster/controller/endpoint.json"
        return run(*self.command(*words, user=user), code=code, env=environment)

    def start(self, *words, user=None):
        log = tempfile.TemporaryFile("w+")
        self.addCleanup(log.close)
        daemon = subprocess.Popen(
            self.command(*words, user=user),
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )

        def end():
            daemon.terminate()
            daemon.wait(DEADLINE)

        self.addCleanup(end)
        return end

    def test_install_use_remove_purge(self):
        before = others()
        self.here("/usr/bin/dpkg", "-i", "/tmp/muster.deb")
        self.assertEqual(others(), before, "an installation starts nothing")
        for path, mode, user in (
            ("/var/lib/muster", 0o755, 0),
            ("/var/lib/muster/controller", 0o700, None),
            ("/var/lib/muster/agent", 0o700, 0),
            ("/etc/muster/controller.yaml", 0o644, 0),
        ):
            made = os.stat(self.inside(path))
            self.assertEqual(made.st_mode & 0o7777, mode, path)
            self.assertEqual(made.st_uid == 0, user == 0, path)
        checks = ("--config", "/etc/muster/controller.yaml", "--check-config")
        self.assertIn("nothing wrong", self.here("/usr/bin/muster-controller", *checks))
        agent = ("/usr/bin/muster-agent", "--config", "/etc/muster/agent.yaml")
        self.assertIn("--controller is required", self.here(*agent, "--check-config", code=64))
        with open(self.inside("etc/muster/agent.yaml"), "a", encoding="utf-8") as settings:
            settings.write(
                "controller: /var/lib/muster/controller/endpoint.json\ndevices: 2\nname: n0\n"
            )
        self.here(*agent, "--check-config")

        stop_controller = self.start("/usr/bin/muster-controller", *checks[:2], user="muster")
        endpoint = self.inside("var/lib/muster/controller/endpoint.json")
        wait_until(lambda: os.path.exists(endpoint), what="the controller to listen")
        stop_agent = self.start(*agent)
        listed = lambda: self.here("/usr/bin/muster", "node", "ls", "-o", "name")  # noqa: E731
        wait_until(lambda: listed() == "n0\n", what="the node to register")
        os.mkfifo(self.inside("tmp/go"))
        wait = "read line < /tmp/go; echo rank ended"
        job = {"name": "two", "engine": "command", "launch": {"run": ["/bin/bash", "-c", wait]},
               "resources": {"nodes": 1, "devices": 2, "type": "cpu"}}  # fmt: skip
        self.write("tmp/job.yaml", json.dumps(job))
        self.here("/usr/bin/muster", "run", "-d", "/tmp/job.yaml")
        self.here("/usr/bin/muster", "wait", "two", "--for", "running", "--timeout", "60s")

        # An upgrade, and then a removal, do nothing to daemons that no systemd runs, nor to workers and ranks.
        running = others()
        self.here("/usr/bin/dpkg", "-i", "/tmp/muster.deb")
        with open(self.inside("etc/muster/agent.yaml"), encoding="utf-8") as settings:
            self.assertIn("\ndevices: 2\n", settings.read(), "changed settings stay")
        self.here("/usr/bin/dpkg", "-r", "muster")
        self.assertLessEqual(running, others(), "a removal ended a process")
        self.assertFalse(os.path.exists(self.inside("usr/bin/muster")))
        self.here("/usr/bin/dpkg", "-i", "/tmp/muster.deb")
        go = os.open(self.inside("tmp/go"), os.O_RDWR)
        os.write(go, b"\n\n")  # one line for each rank
        self.here("/usr/bin/muster", "wait", "two", "--timeout", "60s")
        os.close(go)
        stop_agent()
        stop_controller()
        wait_until(lambda: others() <= before, what="the end of all that was started")

        purged = self.here("/usr/bin/dpkg", "-P", "muster")
        self.assertIn("/var/lib/muster stays", purged)
        self.assertFalse(os.path.exists(self.inside("etc/muster")))
        self.assertTrue(os.path.exists(self.inside("var/lib/muster/controller/journal")))

    def test_a_purge_of_what_was_never_used_leaves_nothing(self):
        self.here("/usr/bin/dpkg", "-i", "/tmp/muster.deb")
        self.here("/usr/bin/dpkg", "-P", "muster")
        for path in ("etc/muster", "var/lib/muster", "run/muster", "usr/bin/muster-agent"):
            self.assertFalse(os.path.exists(self.inside(path)), path)


if __name__ == "__main__":
    sys.argv = [word for word in sys.argv if word != "--rewrite"]
    if REWRITE:
        Settings("test_the_samples_have_every_option").test_the_samples_have_every_option()
        sys.exit(0)
    if STATIC and not namespaces.inside():
        os.environ[WHY_NO_OLD_ROOT] = old_root.fetch()
    namespaces.main(("chroot", "ip"), "ip link set lo up", needed=False)
