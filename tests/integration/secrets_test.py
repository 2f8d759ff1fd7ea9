#!/usr/bin/python3
"""Secrets of users: set over TLS, given to the processes of a job alone, and found nowhere else.

Run:  /usr/bin/python3 tests/integration/secrets_test.py [-v] [CASE]       (needs python3-grpcio)
"""

import base64
import json
import os
import signal
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster, wait_until  # noqa: E402
from people_test import ACCESS  # noqa: E402

LINE = "pl4nted-s3cret-line"
VALUES = {
    "plain": "pl4nted-s3cret",
    "coded": base64.b64encode(b"pl4nted-s3cret-coded").decode(),
    "lines": f"-----BEGIN KEY-----\n{LINE}\n-----END KEY-----",
}
OTHER_UID = 61_777
WORDS = (VALUES["plain"], VALUES["coded"], LINE)
SEARCH = r"""
import os, sys
words = [word.encode() for word in sys.argv[1].split("|")]
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("cmdline", "environ"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                text = file.read()
        except OSError:
            continue
        if pid != str(os.getpid()) and any(word in text for word in words):
            found.append(f"/proc/{pid}/{name}")
print("\n".join(found))
"""


class Secrets(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.access = self.cluster.write("access.yaml", ACCESS)
        self.begin()

    def begin(self):
        self.controller = self.cluster.controller("--access", self.access, listen="127.0.0.1:0")
        self.agent = self.cluster.agent("n0", tcp=True)

    def end(self):
        self.agent.stop()
        self.controller.stop()

    def by(self, user, *args, code=0, **options):
        return self.cluster.muster(*args, env=self.cluster.over_tcp(user), code=code, **options)

    def keep(self, user, name, value, *more):
        self.assertEqual(self.by(user, "secret", "set", name, *more, stdin=value).out, f"{name} set\n")

    def spec(self, name, run, env, **more):
        """`run`: a line of a shell, or the text of a Python program."""
        command = ["/usr/bin/python3", "-c", run] if "\n" in run else ["sh", "-c", run]
        spec = {
            "name": name, "engine": "command", "launch": {"run": command},
            "runtime": {"env": {key: f"${{secret:{value}}}" for key, value in env.items()}, **more},
            "resources": {"devices": 1, "type": "cpu"}, "recovery": {"max_restarts": 1},
        }  # fmt: skip
        return self.cluster.spec(json.dumps(spec))

    def submitted(self, user, spec):
        job = self.by(user, "run", "-d", spec).out.split()[0]
        self.cluster.jobs.append(job)
        return job

    def files_with(self, *words, below=()):
        """Of the cluster's files those that have one of the words."""
        found = []
        for folder, _, names in os.walk(self.cluster.path(*below)):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        text = file.read()
                    found += [path] if any(word.encode() in text for word in words) else []
        return found


READS = """
import os
for name in ("PLAIN", "CODED", "LINES"):
    with open(os.path.join("{out}", name + ".part"), "w") as file:
        file.write(os.environ[name])
    os.rename(os.path.join("{out}", name + ".part"), os.path.join("{out}", name))
open("{gate}").readline()
"""


class Given(Secrets):
    def test_the_processes_of_the_job_have_it_and_nobody_else(self):
        for name, value in VALUES.items():
            self.keep("ann", name, value + "\n")
        out = self.cluster.path("got")
        os.mkdir(out)
        setup = [f'printf %s "$PLAIN" > {out}/setup']
        env = {"PLAIN": "plain", "CODED": "coded", "LINES": "lines"}
        with self.cluster.gate() as gate:
            spec = self.spec("reads", READS.format(out=out, gate=gate.path), env, setup=setup)
            job = self.submitted("ann", spec)
            wait_until(lambda: os.path.exists(f"{out}/LINES"), what="the job")
            got = {}
            for name in os.listdir(out):
                with open(os.path.join(out, name), encoding="utf-8") as file:
                    got[name] = file.read()
                os.remove(os.path.join(out, name))  # what the job itself has written
            self.assertEqual(got, {"setup": VALUES["plain"], **{name.upper(): value for name, value in VALUES.items()}})
            self.assertEqual(self.files_with(*WORDS), [])
            self.processes_with_it()
            for verb in (("show", job), ("env", job, "--rank", "0"), ("events", job), ("plan", spec), ("secret", "ls", "-o", "json")):
                shown = self.by("ann", *verb)
                for word in WORDS:
                    self.assertNotIn(word, shown.out + shown.err, verb)
            self.assertIn("# PLAIN is secret 'plain' (runtime.env)", self.by("ann", "env", job, "--rank", "0").out)
            gate.open(1)
            self.by("ann", "wait", job)
        self.end()
        self.assertEqual(self.files_with(*WORDS), [], "after everything was written out")

    def processes_with_it(self):
        search = [sys.executable, "-B", "-c", SEARCH, "|".join(WORDS)]
        found = subprocess.run(search, text=True, capture_output=True, check=True).stdout.split()
        ranks = {str(rank.pid) for rank in self.cluster.rank_processes()}
        self.assertEqual({path.split("/")[2] for path in found}, ranks, "the own user sees it in ranks alone")
        self.assertEqual({path.split("/")[3] for path in found}, {"environ"})
        if os.getuid() != 0:
            print("left out: another user's look into /proc, which only root can arrange", file=sys.stderr)
            return
        other = subprocess.run(search, user=OTHER_UID, group=OTHER_UID, extra_groups=[], text=True, capture_output=True, check=True, cwd="/")
        self.assertEqual(other.stdout.split(), [])

    def test_a_line_of_evidence_has_its_name_in_its_place(self):
        self.keep("ann", "hf", VALUES["plain"])
        job = self.submitted("ann", self.spec("fails", 'echo "ValueError: bad token $T" >&2; exit 3', {"T": "hf"}))
        self.by("ann", "wait", job, code=1)
        self.assertIn("bad token [secret hf]", self.by("ann", "why", job).out)
        self.assertIn("bad token " + VALUES["plain"], self.by("ann", "logs", job).out, "logs are as they were written")
        self.end()
        self.assertEqual(self.files_with(VALUES["plain"], below=("controller", "journal")), [])

    def test_after_a_restart_of_the_controller_it_is_still_hidden(self):
        self.keep("ann", "hf", "first-value")
        with self.cluster.gate() as gate:
            run = f'read x < {gate.path}; echo "ValueError: bad token $T" >&2; exit 3'
            job = self.submitted("ann", self.spec("fails", run, {"T": "hf"}))
            wait_until(self.cluster.ranks, what="the rank")
            self.keep("ann", "hf", "second-value")
            self.end()
            self.begin()
            gate.open(1)
            wait_until(lambda: "[secret hf]" in self.by("ann", "show", job, code=None).out, what="the evidence")
            self.by("ann", "cancel", job)

    def test_a_new_value_is_for_the_next_attempt(self):
        self.keep("ann", "hf", "first-value")
        out = self.cluster.path("values")
        with self.cluster.gate() as gate:
            job = self.submitted("ann", self.spec("again", f'echo "$T" >> {out}; read x < {gate.path}', {"T": "hf"}))
            wait_until(lambda: os.path.exists(out), what="the first attempt")
            self.keep("ann", "hf", "second-value")
            for rank in self.cluster.rank_processes():
                os.kill(rank.pid, signal.SIGKILL)

            def values():
                with open(out, encoding="utf-8") as file:
                    return file.read().split()

            wait_until(lambda: len(values()) == 2, what="the second attempt")
            self.assertEqual(values(), ["first-value", "second-value"])
            gate.open(1)
            self.by("ann", "wait", job)

    def test_the_worker_keeps_it_when_the_agent_dies(self):
        self.keep("ann", "hf", "kept-value")
        with self.cluster.gate() as gate:
            job = self.submitted("ann", self.spec("survives", f'read x < {gate.path}; [ "$T" = kept-value ]', {"T": "hf"}))
            wait_until(self.cluster.ranks, what="the rank")
            self.cluster.kill("n0")
            self.agent = self.cluster.agent("n0", tcp=True, wait=False)
            gate.open(1)
            self.by("ann", "wait", job)

    def test_without_it_the_job_waits_until_it_is_set_again(self):
        self.keep("ann", "hf", "first-value")
        self.agent.stop()
        job = self.submitted("ann", self.spec("late", '[ "$T" = second-value ]', {"T": "hf"}))
        self.by("ann", "secret", "rm", "hf")
        self.agent = self.cluster.agent("n0", tcp=True, wait=False)
        says = "secret 'hf' (runtime.env.T) is there no more; `muster secret set hf` lets the job go on"
        wait_until(lambda: says in self.by("ann", "why", job, code=None).out, what="the reason")
        self.by("bob", "run", "-d", self.cluster.spec("name: other\nengine: command\nlaunch: {run: [true]}\nresources: {devices: 1, type: cpu}\n"))
        self.by("bob", "wait", "other")  # it delays no other job
        self.keep("ann", "hf", "second-value")
        self.by("ann", "wait", job)

    def test_too_much_for_a_process(self):
        self.keep("ann", "big", "x" * 60_000)
        job = self.submitted("ann", self.spec("much", "true", {f"V{number}": "big" for number in range(30)}))
        self.by("ann", "wait", job, code=1)
        self.assertIn("its secrets have", self.by("ann", "why", job).out)


class Who(Secrets):
    def test_names_are_each_users_own(self):
        self.keep("ann", "hf", "of-ann")
        refused = self.by("bob", "run", "-d", self.spec("bobs", "true", {"T": "hf"}), code=64)
        self.assertIn("there is no secret 'hf' of user 'bob', and none of that name is shared", refused.err)
        self.assertNotIn("hf", self.by("bob", "secret", "ls", "-o", "name").out)
        self.assertIn("secret 'hf' of user 'bob': there is no such secret", self.by("bob", "secret", "rm", "hf", code=10).err)
        for args in (("set", "hf", "--shared"), ("rm", "hf", "--shared"), ("rm", "hf", "--owner", "ann"), ("ls", "--all")):
            self.assertIn("admins", self.by("bob", "secret", *args, stdin="x", code=11).err, args)
        self.assertIn("the role 'user' is needed", self.by("vera", "secret", "ls", code=11).err)
        self.keep("ada", "hf", "of-everybody", "--shared")
        job = self.submitted("bob", self.spec("bobs", '[ "$T" = of-everybody ]', {"T": "hf"}))
        self.by("bob", "wait", job)
        listed = [json.loads(line) for line in self.by("ada", "secret", "ls", "--all", "-o", "jsonl").out.splitlines()]
        self.assertEqual({(one.get("owner", ""), one.get("shared", False)) for one in listed}, {("ann", False), ("", True)})
        self.by("ada", "secret", "rm", "hf", "--owner", "ann")
        self.assertEqual(self.by("ann", "secret", "ls", "-o", "name").out.split(), ["hf"], "the shared one")
        events = self.by("bob", "events", "-o", "jsonl", "--timeout", "1s", code=None).out
        self.assertNotIn("secret 'hf'", events)

    def test_values_and_names_that_are_none(self):
        for args, value, says in (
            (("a b",), "x", "not a name"),
            (("ok",), "", "its value is empty"),
            (("ok",), "x" * 70_000, "at most 65536"),
            (("ok",), "a\0b", "has a zero byte"),
        ):
            refused = self.by("ann", "secret", "set", *args, stdin=value, code=64)
            self.assertIn(says, refused.err)
        self.assertEqual(os.listdir(self.cluster.path("controller", "secrets")), [], "nothing is left of a refused one")
        for spec in ("launch: {script: a.py, args: ['${secret:hf}']}", "launch: {script: a.py}\nruntime: {env: {T: 'x${secret:hf}'}}"):
            path = self.cluster.spec(f"name: x\nengine: torch\n{spec}\n")
            self.assertIn("whole value of a variable", self.cluster.muster("validate", path, code=64).err)

    def test_the_key_is_apart(self):
        key = self.cluster.path("controller", "secrets.key")
        self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o600)
        self.keep("ann", "hf", "of-ann")
        self.end()
        os.rename(key, key + ".away")
        started = self.cluster.controller("--access", self.access, listen="127.0.0.1:0", wait=False)
        wait_until(lambda: started.ended() is not None, what="the controller's end")
        self.assertIn("its key is missing", started.logged())
        self.assertFalse(os.path.exists(key), "a new one would open nothing")
        os.rename(key + ".away", key)
        self.begin()
        job = self.submitted("ann", self.spec("reads", '[ "$T" = of-ann ]', {"T": "hf"}))
        self.by("ann", "wait", job)


if __name__ == "__main__":
    unittest.main()
