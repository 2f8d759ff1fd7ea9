#!/usr/bin/python3
"""Every verb of `muster`, as scripts, pipes and terminals see it.

Run:  /usr/bin/python3 tests/integration/client_test.py [-v] [CASE]
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from cluster import DEADLINE, STUB, Cluster, wait_until

try:
    import yaml
except ImportError:  # then YAML is looked at as text only
    yaml = None

ISO = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
TIME_KEYS = re.compile(
    r"(At|Heard|fault|detected|decided|swept|placed|started|firstStep|caughtUp)$"
)
STEPS = 'printf " iteration %8d/%8d | lm loss: %E |\\n" 1 3 3.5 2 3 2.5 3 3 1.5; echo "rank ${rank} says hello"'
LAST = "rank %d says hello"


def job(name, run, more="resources: {nodes: 2, devices: 1, type: cpu}"):
    return f"name: {name}\nengine: command\nobserve: {{progress: auto}}\nlaunch: {{run: [bash, -c, {json.dumps(run)}]}}\n{more}\n"


def times_in(value, path=""):
    """Every text that is meant to be a time."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str) and TIME_KEYS.search(key) and inner:
                yield f"{path}.{key}", inner
            yield from times_in(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from times_in(inner, f"{path}[{index}]")


class Verbs(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        try:
            cls.cluster.controller()
            cls.cluster.agent("n0")
            cls.cluster.agent("n1")
            cls.spec = cls.cluster.spec(job("done", STEPS), "done.yaml")
            cls.cluster.muster("run", "-q", cls.spec, "--timeout", "60s", code=0)
        except BaseException:
            cls.cluster.close()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def muster(self, *args, **more):
        return self.cluster.muster(*args, **{"code": 0, **more})

    # ---- output formats

    def check_document(self, document, verb):
        self.assertEqual(document["apiVersion"], "muster/v1", verb)
        self.assertTrue(document["kind"], verb)
        for path, text in times_in(document):
            self.assertRegex(text, ISO, f"{verb}: {path}")

    def test_output_formats(self):
        verbs = {
            "ps": ["ps", "-a"],
            "show": ["show", "done"],
            "why": ["why", "done"],
            "events": ["events", "done"],
            "ckpt ls": ["ckpt", "ls", "done"],
            "node ls": ["node", "ls"],
            "node show": ["node", "show", "n0"],
            "plan": ["plan", self.spec],
            "env": ["env", "done", "--rank", "1"],
        }
        for verb, args in verbs.items():
            with self.subTest(verb):
                for kind in ("table", "wide"):
                    done = self.muster(*args, "-o", kind)
                    self.assertNotIn("\x1b", done.out + done.err, "colour is for terminals")
                    self.assertFalse(
                        [line for line in done.out.split("\n") if line.rstrip() == "muster:"], done
                    )
                lines = self.muster(*args, "-o", "jsonl").out.splitlines()
                for line in lines:
                    self.check_document(json.loads(line), verb)
                text = self.muster(*args, "-o", "json").out
                if verb == "events":  # a stream: an object a line
                    self.assertEqual(text.splitlines(), lines)
                else:
                    document = json.loads(text)
                    self.check_document(document, verb)
                    if "items" in document:
                        self.assertEqual(len(document["items"]), len(lines), verb)
                        for item in document["items"]:
                            self.assertIn(verb, ("ps", "node ls", "ckpt ls"))
                            self.assertTrue(item)
                text = self.muster(*args, "-o", "yaml").out
                self.assertIn('apiVersion: "muster/v1"', text)
                if yaml and verb not in ("events",):
                    self.assertEqual(
                        yaml.safe_load(text)["kind"],
                        json.loads(self.muster(*args, "-o", "json").out)["kind"],
                        verb,
                    )
                named = self.cluster.muster(*args, "-o", "name")
                if verb in ("events", "plan", "env"):
                    self.assertEqual(named.code, 64, str(named))
                else:
                    self.assertEqual(named.code, 0, str(named))
                    self.assertFalse(
                        re.search(r"[{}:\s]", named.out.strip().replace("\n", "")), str(named)
                    )
                self.cluster.muster(*args, "-o", "xml", code=64)
        self.assertEqual(self.muster("node", "ls", "-o", "name").out.split(), ["n0", "n1"])
        self.assertEqual(self.muster("node", "show", "n0", "-o", "name").out, "n0\n")
        self.assertIn("done", self.muster("ps", "-a", "-o", "name").out.split())
        self.assertEqual(
            json.loads(self.muster("ps", "-a", env={"MUSTER_OUTPUT": "json"}).out)["kind"],
            "JobList",
            "every flag has a variable",
        )

    def test_a_job_is_found_by_what_a_table_shows(self):
        """`ps` showed ids of which the first eight characters are everybody's, and took their beginning alone."""
        with self.cluster.gate("parts") as gate:
            spec = job(
                "parts-of-a-name",
                f"read x < {gate.path}",
                "description: a sentence\nlabels: {team: llm}\nresources: {devices: 1, type: cpu}",
            )
            whole = self.cluster.submit(spec)
            self.muster("wait", whole, "--for", "running")
            row = next(
                line
                for line in self.muster("ps").out.splitlines()
                if line.startswith("parts-of-a-name ")
            )
            end = row.split()[1]
            self.assertTrue(whole.endswith(end) and 6 <= len(end) < len(whole), row)
            for text in (end, "parts-of", "parts-of-a-name"):
                self.assertEqual(self.muster("show", text, "-o", "name").out.strip(), whole, text)
            for verb in (["why"], ["logs"], ["events"], ["ckpt", "ls"], ["env", "--rank", "0"]):
                self.muster(*verb, "parts-of")
            for verb in ("cancel", "wait", "resume"):
                done = self.cluster.muster(verb, "parts-of", code=10)
                self.assertIn("write the whole name of 'parts-of-a-name'", done.err, verb)
            listed = json.loads(
                self.muster("ps", "--label", "team=llm", "--state", "running", "-o", "json").out
            )["items"]
            self.assertEqual(
                [
                    (item["id"], item["spec"]["description"], item["spec"]["labels"])
                    for item in listed
                ],
                [(whole, "a sentence", {"team": "llm"})],
            )
            self.assertEqual(
                self.muster("ps", "-a", "--label", "team=vision", "-o", "name").out, ""
            )
            self.assertNotIn("parts-of", self.muster("ps", "--state", "ended", "-o", "name").out)
            self.assertEqual(
                self.muster("ps", "-a").out.splitlines()[1].split()[0],
                "parts-of-a-name",
                "live ones first",
            )
            shown = self.muster("show", end).out
            self.assertRegex(shown, r"description +a sentence\nlabel +team=llm\n")
            self.assertNotIn("unspecified", self.muster("show", end, "-o", "json").out)
            self.assertIn('"memlock": "unlimited"', self.muster("show", end, "-o", "json").out)
            self.assertIn(
                "did you mean 'running'?",
                self.cluster.muster("ps", "--state", "runing", code=64).err,
            )
            self.muster("cancel", end)
            self.cluster.muster("wait", whole, code=3)

    def test_ps_says_why_a_job_waits(self):
        with self.cluster.gate("holds") as gate:
            holds = self.cluster.submit(
                job(
                    "holds", f"read x < {gate.path}", "resources: {nodes: 2, devices: 1, type: cpu}"
                )
            )
            self.muster("wait", holds, "--for", "running")
            waits = self.cluster.submit(
                job("waits", "true", "resources: {nodes: 2, devices: 2, type: cpu}")
            )
            behind = self.cluster.submit(
                job("behind", "true", "resources: {nodes: 2, devices: 2, type: cpu}")
            )
            rows = {line.split()[0]: line for line in self.muster("ps").out.splitlines()}
            self.assertRegex(
                rows["waits"], r" queued .* need 2 nodes with 2 devices of type 'cpu', 0 fit"
            )
            self.assertRegex(rows["behind"], r" queued .* behind 'waits' in the queue, 1 ahead$")
            gate.open(2)
            for one in (holds, waits, behind):
                self.muster("wait", one)

    def test_texts(self):
        shown = self.muster("show", "done").out
        for word in (
            "name",
            "phase        succeeded",
            "restarts     0",
            "step 3 of 3, loss 1.5",
            "ATTEMPT",
        ):
            self.assertIn(word, shown)
        self.assertEqual(self.muster("why", "done").out, "succeeded\n")
        self.assertRegex(
            self.muster("events", "done").out.splitlines()[-1], r"job-ended +job succeeded$"
        )
        self.assertRegex(
            self.muster("ps", "-a", "-o", "wide").out,
            r"NAME +ID .*ENGINE +LABELS +DESCRIPTION( +REASON)?\n(.*\n)*done ",
        )
        self.assertRegex(
            self.muster("version").out,
            r"^client +\S+\ncontroller +\S+ \(protocol 1 to 1, cluster [0-9a-f]{16}, epoch 1\)\n$",
        )
        self.assertIn("exit codes:", self.muster("--help").out)
        for verb in (
            "run",
            "plan",
            "validate",
            "explain",
            "ps",
            "show",
            "why",
            "logs",
            "events",
            "watch",
            "wait",
            "cancel",
            "ckpt",
            "ckpt ls",
            "ranktable",
            "env",
            "deploy",
            "deploy plan",
            "deploy up",
            "deploy status",
            "deploy down",
            "node",
            "node ls",
            "node show",
            "node declare-dead",
            "node rename",
            "node drain",
            "node undrain",
            "node label",
            "node rm",
            "cluster",
            "cluster status",
            "doctor",
            "cert",
            "cert issue",
            "cert show",
            "cert ls",
            "cert revoke",
            "cert ca",
            "cert rotate",
            "cert import",
            "token",
            "token create",
            "token ls",
            "token revoke",
            "secret",
            "secret set",
            "secret ls",
            "secret rm",
            "store",
            "store add",
            "store ls",
            "store check",
            "store rm",
            "login",
            "logout",
            "node replace",
            "local",
            "local up",
            "local down",
            "local status",
            "completion",
            "completion bash",
            "completion zsh",
            "version",
        ):
            text = self.muster(*verb.split(), "--help").out
            self.assertIn("-h,--help", text)
            self.assertNotIn("first steps", text, f"{verb}: a verb's own help")
            self.assertNotRegex(
                text, r"\b(TEXT:|UINT|INT|FLOAT)\b", f"{verb}: words for people, not of the parser"
            )
        self.assertEqual(self.muster("validate", self.spec).out, f"{self.spec}: sound\n")
        self.assertIn("accepted:", self.muster("explain", "resources.devices").out)
        self.assertRegex(self.muster("explain").out, r"\n  resources +\S")

    # ---- run, wait

    def test_run_ends_with_the_jobs_code(self):
        self.muster("run", self.cluster.spec(job("good", "true")), code=0)
        done = self.muster(
            "run",
            self.cluster.spec(job("bad", 'echo "ValueError: no such thing" >&2; exit 3')),
            code=1,
        )
        self.assertIn("ValueError: no such thing", done.out)
        self.assertIn("user error: ", done.out)
        self.assertIn("muster why", done.out)
        self.muster("wait", "bad", code=1)
        self.muster("wait", "good", "--for", "running", code=0)
        self.muster("wait", "good", "--for", "checkpoint", code=1)
        self.assertIn("bad", self.muster("events", "-o", "table").out)

    def test_run_piped(self):
        done = self.muster(
            "run",
            self.cluster.spec(job("piped", STEPS, "resources: {devices: 1, type: cpu}")),
            env={"TERM": "xterm-256color"},
        )
        self.assertNotIn("\x1b", done.out + done.err)
        self.assertNotIn("\r", done.out)
        self.assertEqual(done.err, "")
        self.assertIn("job-submitted", done.out)
        self.assertIn("[rank 0] " + LAST % 0, done.out)
        self.assertRegex(done.out.splitlines()[-1], r"^piped succeeded after ")
        self.assertEqual(
            re.sub(
                r"after .*",
                "",
                self.muster("run", "-q", self.cluster.spec(job("quiet", STEPS))).out,
            ),
            "quiet succeeded \n",
        )

    def test_run_piped_reporting_rank_is_not_rank_0(self):
        """Megatron prints its steps on the last rank: no line of it is lost, though who speaks is known only with the first step."""
        steps = 'printf " iteration %8d/%8d | lm loss: %E |\\n" 1 2 3.5 2 2 2.5'
        with self.cluster.gate("speaker") as gate:
            run = f'if [ ${{rank}} = 1 ]; then for i in $(seq 1 20); do echo "early $i"; done; {steps}; read x < {gate.path}; echo late; printf "no end"; else read x < {gate.path}; fi'
            process = self.cluster.popen("run", self.cluster.spec(job("last-speaks", run)))
            seen = []
            for line in process.stdout:
                seen.append(line)
                if "iteration" in line:
                    gate.open(2)
            err = process.communicate(timeout=DEADLINE)[1]
        out = "".join(seen)
        self.assertEqual((process.returncode, err), (0, ""), out)
        lines = [line for line in out.split("\n") if line.startswith("[rank ")]
        self.assertEqual(
            [line for line in lines if "iteration" not in line],
            [f"[rank 1] early {i}" for i in range(1, 21)] + ["[rank 1] late", "[rank 1] no end"],
        )
        self.assertEqual(len(lines), 24)
        self.assertNotIn("not shown", out)

    def test_run_piped_says_what_it_left_out(self):
        done = self.muster(
            "run",
            self.cluster.spec(
                job(
                    "left-out",
                    'echo "rank ${rank} one"; echo "rank ${rank} two"; echo "Error: of rank ${rank}"',
                )
            ),
        )
        self.assertEqual(
            [line for line in done.out.splitlines() if line.startswith("[rank 0]")],
            [f"[rank 0] {text}" for text in ("rank 0 one", "rank 0 two", "Error: of rank 0")],
        )
        self.assertEqual(
            [line for line in done.out.splitlines() if line.startswith("[rank 1]")],
            ["[rank 1] Error: of rank 1"],
        )
        hint = re.search(
            r"^2 lines of other ranks not shown: muster (logs \S+ --rank all)$",
            done.out,
            re.MULTILINE,
        )
        self.assertTrue(hint, done.out)
        self.assertEqual(len(self.muster(*hint[1].split()).out.splitlines()), 6)
        self.assertNotIn(
            "not shown",
            self.muster(
                "run",
                self.cluster.spec(job("alone", "echo hello", "resources: {devices: 1, type: cpu}")),
            ).out,
        )

    def test_options_stand_where_people_put_them(self):
        self.muster("validate", "--set", "resources.nodes=2", self.spec)
        self.muster("plan", "--rank", "1", "--env", "A=b", self.spec)
        self.assertEqual(
            self.muster("logs", "--rank", "0", "--tail", "1", "done").out, LAST % 0 + "\n"
        )
        self.assertEqual(
            self.muster("logs", "--rank", "0", "done", env={"MUSTER_LOGS_TAIL": "1"}).out,
            LAST % 0 + "\n",
            "every flag has a variable",
        )
        self.assertIn(
            "done", self.muster("ps", "-o", "name", env={"MUSTER_PS_ALL": "true"}).out.split()
        )

    def test_a_full_disk_behind_stdout_is_reported(self):
        for verb in (["ps", "-a"], ["logs", "done", "-f"], ["show", "done", "-o", "json"]):
            with self.subTest(verb[0]), open("/dev/full", "w", encoding="utf-8") as full:
                process = self.cluster.popen(*verb, stdout=full)
                err = process.communicate(timeout=DEADLINE)[1]
                self.assertEqual(process.returncode, 70, err)
                self.assertIn("No space left on device", err)

    def test_detached_and_request_id(self):
        with self.cluster.gate("once") as gate:
            spec = self.cluster.spec(job("once", f"read x < {gate.path}"))
            done = self.muster("run", "-d", spec, "--request-id", "the-same")
            self.assertRegex(done.out, r"^[0-9a-z]{13}\n$")
            self.assertEqual(
                self.muster("run", "-d", spec, "--request-id", "the-same").out, done.out
            )
            gate.open(2)
            self.muster("wait", "once")
            self.assertEqual(
                self.muster("run", "-d", spec, "--request-id", "the-same").out,
                done.out,
                "after the end, too",
            )
            self.assertEqual(self.muster("ps", "-a", "-o", "name").out.split().count("once"), 1)
        # Another spec under an id that was given before is another job: its sender must not be told of the old one's success.
        for args in (["-d"], ["-q"]):
            other = self.muster(
                "run",
                *args,
                self.cluster.spec(job("once-more", "exit 3")),
                "--request-id",
                "the-same",
                code=12,
            )
            self.assertEqual(other.out, "")
            self.assertIn(
                f"request id 'the-same' was given before, with another spec, for job 'once' ({done.out.strip()})",
                other.err,
            )
        self.assertNotIn("once-more", self.muster("ps", "-a", "-o", "name").out.split())
        self.assertEqual(
            self.muster("show", done.out.strip()[:12], "-o", "name").out, done.out, "a prefix"
        )

    def test_wait(self):
        with self.cluster.gate("slow") as gate:
            name = self.cluster.submit(job("slow", f"read x < {gate.path}; exit 0"))
            self.muster("wait", "slow", "--for", "running", "--timeout", "60s")
            self.assertIn("slow", self.muster("ps", "-o", "name").out.split())
            waiting = self.muster("wait", "slow", "--timeout", "100ms", code=4)
            self.assertIn("time is up", waiting.err)
            self.muster("events", "slow", "-f", "--timeout", "100ms", code=4)
            self.muster("logs", "slow", "-f", "--timeout", "100ms", code=4)
            self.muster("watch", "slow", "--timeout", "100ms", code=4)
            # The time may be up before the controller has the job: it is submitted before, under the same id.
            again = (
                "run",
                self.cluster.spec(job("slow-2", f"read x < {gate.path}; exit 0")),
                "--request-id",
                "slow-2",
            )
            self.muster(*again, "-d")
            self.muster(*again, "-q", "--timeout", "100ms", code=4)
            stopped = self.cluster.popen("wait", "slow")
            self.wait_until_it_catches(stopped, signal.SIGINT)
            stopped.send_signal(signal.SIGINT)
            self.assertIn("interrupted; the job goes on", stopped.communicate(timeout=DEADLINE)[1])
            self.assertEqual(stopped.returncode, 4, "it waited in vain, as when time is up")
            other = self.cluster.popen("wait", "slow")
            gate.open(4)
            out, err = other.communicate(timeout=DEADLINE)
            self.assertEqual(other.returncode, 0, out + err)
            self.muster("wait", "slow-2")
            # They said "time is up; the job goes on" of a job that had ended, because they had not asked.
            for limit in ("0", "1ms"):
                self.muster("wait", "slow", "--timeout", limit)
                self.assertRegex(
                    self.muster("watch", "slow", "--timeout", limit).out, r"slow succeeded after "
                )
                self.cluster.muster("wait", "nobody", "--timeout", limit, code=10)
            self.assertEqual(self.muster("show", "slow", "-o", "name").out.strip(), name)

    def test_time_is_up_and_nobody_answers(self):
        """Whether the job goes on is not known then, and it is not said."""
        with Cluster() as cluster:
            controller = cluster.controller()
            name = cluster.submit(job("unheard", "true"))
            controller.process.send_signal(signal.SIGSTOP)
            os.waitid(
                os.P_PID, controller.process.pid, os.WSTOPPED | os.WNOWAIT
            )  # until all of its threads stand still it may answer
            try:
                for verb in ("wait", "watch"):
                    done = cluster.muster(verb, name, "--timeout", "1ms", code=4)
                    state = {"wait": "its state", "watch": f"the state of job '{name}'"}[verb]
                    expected = f"time is up, and {state} is not known: calling the controller at "
                    self.assertIn(expected, done.err)
                    self.assertNotIn("the job goes on", done.err)
            finally:
                controller.process.send_signal(signal.SIGCONT)

    def test_wait_for_what_does_not_come(self):
        name = self.cluster.submit(job("saves-nothing", "true"))
        done = self.muster("wait", name, "--for", "checkpoint", code=1)
        self.assertEqual(
            done.err,
            f"muster: waiting for a checkpoint of job '{name}': it has ended without (succeeded)\n",
        )

    def wait_until_it_catches(self, process, number):
        """Until the command has the signal blocked, to take it when it likes."""

        def blocked():
            with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
                return (
                    int(re.search(r"SigBlk:\s*([0-9a-f]+)", file.read())[1], 16) >> (number - 1) & 1
                )

        wait_until(blocked, what=f"the command to catch {number.name}")

    def test_wait_for_checkpoint(self):
        if not os.access(STUB, os.X_OK):
            self.skipTest("stub_trainer is not built")
        spec = (
            f"name: saves\nengine: torch\nlaunch:\n  script: {STUB}\n  args: --steps 100000 --step-ms 20 --save ${{save.dir}} --load ${{resume.dir}} --save-interval 5\n"
            "resources: {nodes: 2, devices: 1, type: cpu}\n"
        )
        self.cluster.submit(spec)
        self.muster("wait", "saves", "--for", "checkpoint", "--timeout", "60s")
        listed = json.loads(self.muster("ckpt", "ls", "saves", "-o", "json").out)["items"]
        self.assertEqual(listed[0]["step"] % 5, 0)
        self.assertTrue(os.path.isdir(listed[0]["path"]), listed[0])
        self.assertRegex(
            self.muster("ckpt", "ls", "saves").out, r"STEP +ATTEMPT +SHARDS +SIZE +AGE +PATH\n"
        )
        self.muster("cancel", "saves", "--reason", "seen enough")
        self.muster("wait", "saves", code=3)
        self.assertIn("seen enough", self.muster("why", "saves").out)

    def test_interrupt_detaches(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name), self.cluster.gate(number.name) as gate:
                name = "left-" + number.name.lower()
                run = self.cluster.popen(
                    "run", self.cluster.spec(job(name, f"echo started; read x < {gate.path}"))
                )
                self.muster(
                    "wait", self.wait_for_name(name), "--for", "running", "--timeout", "60s"
                )
                run.send_signal(number)
                out, err = run.communicate(timeout=DEADLINE)
                self.assertEqual(run.returncode, 0, out + err)
                self.assertIn(f"detached; job '{name}' goes on", err)
                self.assertIn(f"muster watch {name}", err)
                self.assertEqual(
                    json.loads(self.muster("show", name, "-o", "json").out)["phase"], "running"
                )
                gate.open(2)
                self.muster("wait", name)

    def wait_for_name(self, name):
        return self.cluster.wait_event(
            lambda event: event["type"] == "job-submitted" and event.get("jobName") == name
        )["jobId"]

    # ---- logs

    def test_logs(self):
        self.cluster.muster(
            "run",
            "-q",
            self.cluster.spec(
                job(
                    "chatty",
                    'for i in $(seq 1 50); do echo "rank ${rank} line $i"; done; printf "no end"',
                )
            ),
            code=0,
        )
        lines = self.muster("logs", "chatty", "-f").out.splitlines()
        for rank in (0, 1):
            self.assertEqual(
                [line for line in lines if line.startswith(f"[rank {rank}]")],
                [f"[rank {rank}] rank {rank} line {i}" for i in range(1, 51)]
                + [f"[rank {rank}] no end"],
            )
        self.assertEqual(len(lines), 102)
        self.assertEqual(
            self.muster("logs", "chatty", "--rank", "1", "--grep", "line 4[0-3]$").out.splitlines(),
            [f"rank 1 line {i}" for i in range(40, 44)],
        )
        self.assertEqual(
            self.muster("logs", "chatty", "--rank", "0", "--tail", "2").out.splitlines(),
            ["rank 0 line 50", "no end"],
        )
        self.assertEqual(
            self.muster("logs", "chatty", "--rank", "0", "--raw").out,
            "".join(f"rank 0 line {i}\n" for i in range(1, 51)) + "no end",
        )
        self.assertIn(
            "from 1 to", self.muster("logs", "chatty", "--tail", "0", code=64).err
        )  # the whole log came
        self.assertEqual(
            self.muster("logs", "chatty", "--node", "n1", "--tail", "1").out.splitlines(),
            ["[rank 1] no end"],
        )
        self.assertEqual(
            len(
                self.muster("logs", "chatty", "--rank", "0-1", "--attempt", "all").out.splitlines()
            ),
            102,
        )
        self.assertEqual(len(self.muster("logs", "chatty", "--rank", "all").out.splitlines()), 102)

        # What is not there is not found, and not an empty log.
        for args, wanted in (
            (["--attempt", "7"], "it has no attempt 7; there is attempt 1"),
            (
                ["--rank", "2"],
                "it has no rank 2; there are ranks 0-1 on nodes 'n0', 'n1' in attempt 1",
            ),
            (["--rank", "0,5-6", "-f"], "it has no ranks 5-6; "),
            (
                ["--node", "n9"],
                "it has no node 'n9'; there are ranks 0-1 on nodes 'n0', 'n1' in attempt 1",
            ),
            (
                ["--node", "n1", "--rank", "0"],
                "it has no rank 0 on node 'n1'; there is rank 1 in attempt 1",
            ),
            (["--rank", "7", "--attempt", "all"], "it has no rank 7; "),
        ):
            with self.subTest(args):
                done = self.cluster.muster("logs", "chatty", *args, code=10)
                self.assertIn(wanted, done.err)
                self.assertEqual(done.out, "")

    def test_logs_since(self):
        with self.cluster.gate("since") as gate:
            self.cluster.submit(
                job(
                    "since",
                    f'echo "rank ${{rank}} before"; read x < {gate.path}; echo "rank ${{rank}} after"',
                )
            )
            first = self.cluster.popen("logs", "since", "-f", "--rank", "0")
            self.assertEqual(first.stdout.readline(), "rank 0 before\n")
            # The index is coarse: its edges are a unit test's; here, that it is asked, and what each way of writing a time means.
            for text in ("10m", "2020-01-01", "2020-01-01T00:00:00Z", "1h"):
                self.assertEqual(
                    self.muster("logs", "since", "--rank", "0", "--since", text).out,
                    "rank 0 before\n",
                    text,
                )
            for text in ("2099-01-01", "2099-01-01T00:00Z"):
                done = self.muster("logs", "since", "--rank", "0", "--since", text)
                self.assertEqual((done.out, done.err), ("", "no log lines since then\n"), text)
            later = self.cluster.popen(
                "logs", "since", "-f", "--rank", "0", "--since", "2099-01-01"
            )
            both = self.cluster.popen(
                "logs", "since", "-f", "--rank", "0", "--since", "10m", "--tail", "1"
            )
            self.assertEqual(both.stdout.readline(), "rank 0 before\n")
            gate.open(2)
            self.muster("wait", "since")
            for follower in (first, both):
                self.assertEqual(follower.stdout.read(), "rank 0 after\n")
                follower.communicate(timeout=DEADLINE)
            self.assertIn(
                later.communicate(timeout=DEADLINE)[0],
                ("rank 0 after\n", ""),
                "from where the log ended when it was asked for",
            )
        self.cluster.muster("logs", "since", "--since", "yesterday", code=64)
        self.assertIn(
            "write 3600s, 3600m or 3600h (so long ago)",
            self.cluster.muster("logs", "since", "--since", "3600", code=64).err,
        )

    def test_logs_of_a_job_that_waits(self):
        with self.cluster.gate("busy") as gate:
            self.cluster.submit(
                job(
                    "busy",
                    f"read x < {gate.path}; true",
                    "resources: {nodes: 2, devices: 2, type: cpu}",
                )
            )
            self.muster("wait", "busy", "--for", "running", "--timeout", "60s")
            self.cluster.submit(
                job("queued", "echo hello", "resources: {nodes: 2, devices: 2, type: cpu}")
            )
            done = self.muster("logs", "queued")
            self.assertEqual((done.out, done.err), ("", "no log lines yet\n"))
            shown = self.muster("show", "queued").out
            self.assertRegex(shown, r"(?m)^why +waits: ")
            second = self.cluster.popen(
                "run",
                self.cluster.spec(
                    job("queued-2", "true", "resources: {nodes: 2, devices: 2, type: cpu}")
                ),
                "--timeout",
                "60s",
            )
            self.assertTrue(
                any(
                    re.match(r"queued: (waits: |\d+ jobs? (is|are) ahead)", line)
                    for line in iter(second.stdout.readline, "")
                ),
                "a pipe is told why it waits",
            )
            missing = self.cluster.popen(
                "logs", "queued", "-f", "--rank", "4"
            )  # which ranks there are shows when it is placed
            there = self.cluster.popen("logs", "queued", "-f", "--rank", "3")
            gate.open(4)
            self.assertEqual(there.communicate(timeout=DEADLINE)[0], "hello\n")
            self.assertIn(
                "it has no rank 4; there are ranks 0-3 on nodes 'n0', 'n1' in attempt 1",
                missing.communicate(timeout=DEADLINE)[1],
            )
            self.assertEqual((there.returncode, missing.returncode), (0, 10))
            self.cluster.muster("logs", "queued", "-f", "--attempt", "2", code=10)
            second.communicate(timeout=DEADLINE)
            self.assertEqual(second.returncode, 0)

    def test_logs_of_an_attempt_that_could_not_start(self):
        """The lines are an earlier attempt's: "no log lines" alone hides them."""
        program = self.cluster.write("once.sh", "#!/bin/sh\necho first\nrm $0\nexit 1\n", 0o755)
        name = self.cluster.submit(
            f"name: once-there\nengine: command\nlaunch: {{run: [{program}]}}\nresources: {{devices: 1, type: cpu}}\nrecovery: {{max_restarts: 1}}\n"
        )
        self.muster("wait", name, code=1)
        done = self.muster("logs", name)
        self.assertEqual(
            (done.out, done.err),
            (
                "",
                "no log lines of attempt 2: the job has ended (failed); --attempt all has those of earlier ones\n",
            ),
        )
        self.assertEqual(
            self.muster("logs", name, "--attempt", "all").out.splitlines(), ["[rank 0] first"]
        )

    def test_logs_of_a_job_that_wrote_nothing(self):
        """It is not "yet" when nothing more can come."""
        self.muster("run", "-q", self.cluster.spec(job("mute", "true")))
        done = self.muster("logs", "mute", "-f")
        self.assertEqual(
            (done.out, done.err), ("", "no log lines: the job has ended (succeeded)\n")
        )

    def test_logs_of_a_line_without_end(self):
        """A line of 400 MB took 1.5 GB of memory: a long one is printed as several of 1 MiB, and --raw is still byte for byte what was written."""
        most, length = 1 << 20, 2_500_000
        run = f"head -c {length} /dev/zero | tr '\\0' x; echo; echo short"
        self.muster(
            "run", "-q", self.cluster.spec(job("wide", run, "resources: {devices: 1, type: cpu}"))
        )
        lines = self.muster("logs", "wide", "-f", "--rank", "0").out.split("\n")
        self.assertEqual(
            [(len(line), set(line)) for line in lines[:3]],
            [(most, {"x"}), (most, {"x"}), (length - 2 * most, {"x"})],
        )
        self.assertEqual(lines[3:], ["short", ""])
        self.assertEqual(
            self.muster("logs", "wide", "--rank", "0", "--raw").out, "x" * length + "\nshort\n"
        )

    def test_ps_knows_when_a_job_ends(self):
        """`ps` had no ETA for programs that do not write how long a step took, while `watch` showed one.

        The time of a step comes from its log's time stamp, which is up to 4 ms old: the first steps may seem to be as old as the start, and then there is no ETA yet.
        """

        def eta():
            gate.open()
            lines = self.muster("ps").out.splitlines()
            row = next(line.split() for line in lines if line.startswith("eta "))
            return re.match(r"\d", row[lines[0].split().index("ETA")])

        with self.cluster.gate("eta") as gate:
            line = 'printf " iteration %8d/%8d | lm loss: %E |\n" $i 400 2.5'
            run = f"for i in $(seq 400); do {line}; read x < {gate.path}; done"
            self.cluster.submit(job("eta", run, "resources: {devices: 1, type: cpu}"))
            self.muster("wait", "eta", "--for", "running", "--timeout", "60s")
            wait_until(eta, what="an ETA")
            gate.open(400)
            self.muster("wait", "eta")

    def test_logs_follow_ends_with_the_job(self):
        with self.cluster.gate("talk") as gate:
            self.cluster.submit(job("talk", f"echo first; read x < {gate.path}; echo last"))
            follow = self.cluster.popen("logs", "talk", "-f", "--rank", "0")
            self.assertEqual(follow.stdout.readline(), "first\n")
            gate.open(2)
            self.assertEqual(follow.stdout.read(), "last\n")
            self.assertEqual(follow.wait(DEADLINE), 0)
            follow.communicate()

    def test_followers_outlive_the_controller(self):
        """logs -f and events -f go on where they were when the controller comes back; neither loses or doubles a line."""
        with Cluster() as cluster, cluster.gate() as gate:
            controller = cluster.controller()
            cluster.agent("n0")
            cluster.submit(
                job(
                    "long",
                    f"echo before; read x < {gate.path}; echo after",
                    "resources: {devices: 1, type: cpu}",
                )
            )
            logs = [
                cluster.popen("logs", "long", "-f", *args)
                for args in ([], ["--tail", "1"], ["--rank", "0", "--raw"])
            ]
            for follower in logs:
                self.assertIn("before", follower.stdout.readline())
            events = cluster.popen("events", "long", "-f", "-o", "jsonl")
            first = json.loads(events.stdout.readline())
            controller.stop(signal.SIGKILL)
            for follower in [*logs, events]:
                self.assertIn("is away: waiting for it", follower.stderr.readline())
            cluster.controller()
            gate.open(1)
            texts = [
                follower.stdout.read() for follower in logs
            ]  # not communicate(): it passes over what readline() has read ahead
            self.assertEqual(
                [(text.count("before"), text.count("after")) for text in texts], [(0, 1)] * 3
            )
            indices = [first["index"]] + [
                json.loads(line)["index"] for line in events.stdout.read().splitlines()
            ]
            for follower in [*logs, events]:
                follower.communicate(timeout=DEADLINE)
            self.assertEqual([follower.returncode for follower in [*logs, events]], [0] * 4)
            whole = cluster.muster("events", "long", "-o", "jsonl", code=0).out.splitlines()
            self.assertEqual(indices, [json.loads(line)["index"] for line in whole])

    # ---- what a rank gets

    def test_plan_and_env(self):
        plan = self.muster("plan", self.spec, "--env", "COLOUR=blue", "--all-ranks").out
        self.assertRegex(plan, r"NODE +ADDRESS +DEVICES +RANKS\nn0 ")
        self.assertRegex(plan, r"export COLOUR=blue +# runtime.env\n")
        for line in plan.splitlines():
            if line.startswith("export "):
                self.assertRegex(line, r"  # \S", "every value says where it comes from")
        self.assertEqual(plan.count("# rank "), 2)
        with self.cluster.gate("looked-at") as gate:
            self.cluster.submit(
                job("looked-at", f"echo $$$$; read x < {gate.path}; true"),
                "--env",
                "COLOUR=dark blue",
            )
            follow = self.cluster.popen("logs", "looked-at", "-f", "--rank", "1")
            pid = int(follow.stdout.readline())
            with open(f"/proc/{pid}/environ", "rb") as file:
                real = dict(
                    entry.split("=", 1) for entry in file.read().decode().split("\0") if entry
                )
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().decode().split("\0")[:-1]
            shown = json.loads(self.muster("env", "looked-at", "--rank", "1", "-o", "json").out)
            cwd = os.readlink(f"/proc/{pid}/cwd")
            gate.open(2)
            self.muster("wait", "looked-at")
            follow.communicate()
        self.assertEqual(
            {value["name"]: real.get(value["name"]) for value in shown["env"]},
            {value["name"]: value["value"] for value in shown["env"]},
        )
        self.assertTrue(all(value["source"] for value in shown["env"]))
        self.assertEqual(
            {value["name"]: value["source"] for value in shown["env"]}["COLOUR"], "runtime.env"
        )
        self.assertEqual(
            [os.path.basename(shown["argv"][0]), *shown["argv"][1:]],
            [os.path.basename(command[0]), *command[1:]],
        )  # found on PATH by the worker
        self.assertEqual(shown["cwd"], cwd)
        not_shown = set(real) - {value["name"] for value in shown["env"]} - set(self.cluster.env)
        self.assertEqual(
            {
                name
                for name in not_shown
                if not name.startswith(
                    ("MUSTER_", "_", "SHLVL", "PWD", "OLDPWD", "NOTIFY_SOCKET", "USER", "LOGNAME")
                )
            },
            set(),
            "nothing of muster's is hidden",
        )

    # ---- a terminal

    def test_terminal_gets_the_live_view(self):
        with self.cluster.gate("seen") as gate:
            spec = self.cluster.spec(
                job(
                    "seen",
                    f'printf " iteration %8d/%8d | lm loss: %E |\\n" 1 40 3.5 2 40 2.5 3 40 2.0; read x < {gate.path}',
                )
            )
            out = self.on_terminal(["run", spec], until=b"3/40", then=lambda: gate.open(2))
        text = out.decode(errors="replace")
        self.assertIn("\x1b[", text)
        self.assertRegex(text, "[░▏▎▍▌▋▊▉█]")
        plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
        self.assertIn("seen succeeded after", plain)
        self.assertNotIn("nan", plain)
        for line in re.split(r"\r?\n", plain):
            self.assertLessEqual(len(line), 4 * 80)

    def on_terminal(self, args, until, then, columns=80):
        """What the command draws on a terminal of that width. `then` is done once it has drawn `until`."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = {**self.cluster.env, "TERM": "xterm-256color"}
        process = subprocess.Popen(
            self.cluster.command(*args),
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=self.cluster.dir,
            start_new_session=True,
        )
        os.close(slave)
        out, deadline = b"", time.monotonic() + DEADLINE
        try:
            while time.monotonic() < deadline:
                if not select.select([master], [], [], deadline - time.monotonic())[0]:
                    break
                try:
                    data = os.read(master, 65536)
                except OSError:  # the other end is closed
                    data = b""
                if not data:
                    break
                out += data
                if then and until in out:
                    then()
                    then = None
            self.assertIsNone(then, f"never drew {until!r}: {out.decode(errors='replace')}")
            self.assertEqual(process.wait(DEADLINE), 0, out.decode(errors="replace"))
            return out
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(master)

    def test_no_colour(self):
        done = self.muster("ps", "-a", env={"TERM": "xterm-256color"})
        self.assertNotIn("\x1b", done.out)


if __name__ == "__main__":
    unittest.main()
