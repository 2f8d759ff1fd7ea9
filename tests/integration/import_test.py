#!/usr/bin/python3
"""A job without a file (muster run -- torchrun ...), and a spec made of what a script launches (muster import), which is then run.

Every sentence is in tests/golden/import-errors.txt.  Run:  /usr/bin/python3 -B tests/integration/import_test.py [--rewrite] [-v] [CASE]
"""

import json
import os
import re
import subprocess
import sys
import unittest

from cluster import DEADLINE, ROOT, Cluster, processes_of
from golden import Golden

HEAD = """# What `muster run -- COMMAND`, `muster plan -- COMMAND` and `muster import` say to what they cannot take. Reviewed as text.
# Written by tests/integration/import_test.py --rewrite. <dir> is the test's directory.
"""
GOLDEN = Golden(os.path.join(ROOT, "tests/golden/import-errors.txt"), HEAD, "--rewrite" in sys.argv)
LONG = 5 * DEADLINE  # s; importing torch on a machine with much to do

RANK = """import os
import sys
env = os.environ
print("rank", env["RANK"], "of", env["WORLD_SIZE"], "in", os.getcwd(), "A=" + env.get("A", "-"), *sys.argv[1:], flush=True)
"""

ALLREDUCE = """import torch
import torch.distributed as dist
dist.init_process_group("gloo")
value = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(value)
print(f"sum {int(value.item())} over {dist.get_world_size()} by rank {dist.get_rank()}", flush=True)
dist.barrier()
"""

# As in Megatron-LM's and MindSpeed's examples; nothing but values and the launch.
LAUNCH = """#!/bin/bash
export A="one two" HF_TOKEN=hidden-word
GPUS_PER_NODE=2
MASTER_ADDR=localhost
MASTER_PORT=6000
NNODES=${1:-1}
NODE_RANK=0
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
DISTRIBUTED_ARGS="
    --nproc_per_node $GPUS_PER_NODE \\
    --nnodes $NNODES \\
    --node_rank $NODE_RANK \\
    --master_addr $MASTER_ADDR \\
    --master_port $MASTER_PORT
"
echo "launching $WORLD_SIZE ranks"
torchrun $DISTRIBUTED_ARGS rank.py \\
    --global-batch-size $((WORLD_SIZE * 4)) \\
    --name 'a ${b}' 2>&1 | tee log.txt
"""

# One that does more, by python -m, in the background, and reads a variable of the shell that it is started in.
MORE = """#!/bin/bash
mkdir -p made
python3 -c 'print("the real python")'
NNODES=1
steps=$((NNODES * 100))
nohup python3 -m torch.distributed.run --nnodes $NNODES --nproc_per_node 2 rank.py --data $DATA --steps $steps > made/log.txt 2>&1 &
wait
cat made/log.txt
"""

# The loop of the rank table tutorials, and the same of PyTorch.
TABLE = """#!/bin/bash
export RANK_TABLE_FILE=$1 RANK_SIZE=8
for((i=4; i<8; i++))
do
    export RANK_ID=$((i-4)) DEVICE_ID=$i
    rm -rf mf_parallel$i
    mkdir mf_parallel$i
    cp run_mindformer.py mf_parallel$i
    cd mf_parallel$i
    env > env.log
    python run_mindformer.py --config=configs/x.yaml --use_parallel=True --run_mode=finetune &> mindformer.log &
    cd ..
done
"""
BACKGROUND = """#!/bin/bash
export WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=6000
for i in 0 1; do
    RANK=$i LOCAL_RANK=$i python3 rank.py --number $i --out=out/$i.bin > rank_$i.log 2>&1 &
done
wait
"""

# As MindFormers' scripts/msrun_launcher.sh ends.
MSRUN = """#!/bin/bash
WORKER_NUM=$1
source ./settings.sh
msrun --worker_num=$WORKER_NUM --local_worker_num=$WORKER_NUM --master_port=8118 --log_dir=msrun_log --join=True --cluster_time_out=300 worker.py --config x.yaml
"""
WORKER = """import os
import sys
print(*[f"{name}={os.environ.get(name)}" for name in ("MS_ROLE", "RANK_ID", "RANK_SIZE")], *sys.argv[1:])
"""

FILES = {"rank.py": RANK, "allreduce.py": ALLREDUCE, "launch.sh": LAUNCH, "more.sh": MORE, "table.sh": TABLE, "background.sh": BACKGROUND, "msrun.sh": MSRUN, "worker.py": WORKER,
         "settings.sh": "export B=2\n", "run_mindformer.py": "raise SystemExit(99)\n",
         "nothing.sh": "echo trained\n", "fails.sh": "echo what is wrong >&2\nexit 3\ntorchrun rank.py\n", "twice.sh": "torchrun rank.py --first\ntorchrun rank.py --second\n",
         "elastic.sh": "torchrun --nnodes 1:4 --nproc_per_node 2 rank.py\n", "later.sh": "torchrun --nproc_per_node 2 rank.py\ngrep no-such-line launch.sh\n",
         "stuck.sh": "torchrun rank.py\ntail -f /dev/null\n", "leaves.sh": "tail -f /dev/null > /dev/null 2>&1 &\nsetsid tail -f /dev/null > /dev/null 2>&1 &\ntorchrun --nproc_per_node 2 rank.py &\n",
         "unlike.sh": "for i in 0 1; do RANK=$i python3 rank.py --path /data/$((i * 7 + 1)) & done\nwait\n", "path.sh": "/usr/bin/env torchrun --frobnicate rank.py\n"}  # fmt: skip


class Import(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        try:
            cls.cluster.controller()
            cls.cluster.agent("n0")
            cls.cluster.agent("n1")
            for name, text in FILES.items():
                cls.cluster.write(name, text)
            os.mkdir(cls.cluster.path("temporary"))
            for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHON_EXEC"):  # of whoever runs the test
                cls.cluster.env.pop(name, None)
        except BaseException:
            cls.cluster.close()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()  # fails when a process is left

    def muster(self, *args, env=None, **more):
        return self.cluster.muster(
            *args, env={"TMPDIR": self.cluster.path("temporary"), **(env or {})}, **more
        )

    def tearDown(self):
        self.assertEqual(
            os.listdir(self.cluster.path("temporary")),
            [],
            "records of an import hold an environment",
        )

    def check_output(self, title, done, code):
        self.assertEqual(done.code, code, str(done))
        text = f"$ {' '.join(done.command)}\nexit {done.code}\n{done.out}{done.err}"
        for path in sorted(
            {self.cluster.dir, os.path.realpath(self.cluster.dir)}, key=len, reverse=True
        ):
            text = text.replace(path, "<dir>")
        GOLDEN.check(self, title, text)

    # ---- a job without a file

    def test_torchrun(self):
        """Real PyTorch over two nodes, which finds its master by what muster tells it."""
        words = (
            "--nproc_per_node",
            2,
            "--nnodes=2",
            "--node_rank",
            0,
            "--master_addr",
            "10.0.0.1",
            "--log_dir",
            "logs",
            "allreduce.py",
        )
        done = self.muster(
            "run",
            "--set",
            "runtime.python=/usr/bin/python3",
            "--timeout",
            f"{LONG:.0f}s",
            "--",
            "torchrun",
            *words,
            within=LONG + 20,
            code=0,
        )
        self.assertIn("muster: job 'allreduce', engine 'torch': 2 nodes with 2 processes each; "
                      "decided by the placement: --master_addr 10.0.0.1, --node_rank 0; without effect: --log_dir logs\n", done.err)  # fmt: skip
        logs = self.muster("logs", "-f", "allreduce", "--rank", "all", code=0).out
        for rank in range(4):
            self.assertIn(f"sum 10 over 4 by rank {rank}", logs)

    def test_words_of_the_program_are_its_own(self):
        words = (
            "rank.py",
            "[0,8]",
            "",
            "a b",
            "--set",
            "x=1",
            "--",
            "it's",
            "#",
            "--save",
            "${save.dir}",
        )
        self.muster(
            "run",
            "-q",
            "--set",
            "name=words",
            "--env",
            "A=1",
            "--timeout",
            "60s",
            "--",
            "torchrun",
            "--nproc_per_node=1",
            *words,
            code=0,
        )
        log = self.muster("logs", "-f", "words", "--rank", "0", code=0).out
        self.assertRegex(
            log,
            re.escape(
                f"in {os.path.realpath(self.cluster.dir)} A=1 [0,8]  a b --set x=1 -- it's # --save "
            )
            + r"/\S+/checkpoints/attempt-1\n",
        )

    def test_python_launchers(self):
        for name, words in (("run", ("torch.distributed.run", "--nproc_per_node", 2)), ("use-env", ("torch.distributed.launch", "--use_env", "--nproc_per_node=2")),
                            ("launch", ("torch.distributed.launch", "--nproc_per_node=2"))):  # fmt: skip
            with self.subTest(name):
                self.muster(
                    "run",
                    "-q",
                    "--set",
                    f"name={name}",
                    "--timeout",
                    "60s",
                    "--",
                    "python3",
                    "-m",
                    *words,
                    "rank.py",
                    "--x",
                    code=0,
                )
                log = self.muster("logs", "-f", name, "--rank", "all", code=0).out
                for rank in range(2):
                    local = f"--local[-_]rank={rank} " if name == "launch" else ""
                    self.assertRegex(log, rf"rank {rank} of 2 in \S+ A=- {local}--x")

    def test_plan(self):
        plan = json.loads(
            self.muster(
                "plan",
                "-o",
                "json",
                "--set",
                "resources.nodes=2",
                "--",
                "torchrun",
                "--nproc_per_node",
                2,
                "rank.py",
                code=0,
            ).out
        )
        self.assertEqual([node["rankCount"] for node in plan["nodes"]], [2, 2])
        self.assertEqual(plan["spec"]["launch"]["script"], "rank.py")
        self.assertEqual(plan["spec"]["code"]["at"], os.path.realpath(self.cluster.dir))
        megatron = ("--micro-batch-size", 1, "--train-iters", 10, "--save", "/x")
        plan = json.loads(
            self.muster(
                "plan",
                "-o",
                "json",
                "--",
                "torchrun",
                "--nproc_per_node",
                2,
                "rank.py",
                *megatron,
                code=0,
            ).out
        )
        self.assertEqual(plan["spec"]["engine"], "megatron")
        plan = json.loads(
            self.muster(
                "plan",
                "-o",
                "json",
                "--",
                "msrun",
                "--worker_num",
                2,
                "worker.py",
                "--config",
                "x.yaml",
                code=0,
            ).out
        )
        self.assertEqual(
            (plan["spec"]["engine"], plan["spec"]["launch"]["launcher"]), ("mindformers", "msrun")
        )

    def test_the_interpreter_of_an_active_environment(self):
        os.makedirs(self.cluster.path("venv/bin"))
        os.symlink("/usr/bin/python3", self.cluster.path("venv/bin/python3"))
        done = self.muster(
            "plan",
            "--",
            "torchrun",
            "--nproc_per_node",
            2,
            "rank.py",
            env={"VIRTUAL_ENV": self.cluster.path("venv")},
            code=0,
        )
        self.assertIn(f"by '{self.cluster.path('venv/bin/python3')}'", done.err)
        self.assertIn(f"{self.cluster.path('venv/bin/python3')} -u ", done.out)

    def test_what_is_no_job(self):
        for title, words in (
                ("nothing", []), ("no launcher", ["torchrn", "rank.py"]), ("a script", ["bash", "launch.sh"]), ("a program alone", ["python3", "rank.py"]),
                ("no such script", ["torchrun", "--nproc_per_node", "2", "rnk.py"]), ("a directory for a script", ["torchrun", "temporary"]), ("an unknown option", ["torchrun", "--nproc", "2", "--frobnicate", "rank.py"]),
                ("nodes that come and go", ["torchrun", "--nnodes", "1:4", "--nproc_per_node", "2", "rank.py"]), ("as many as there are", ["torchrun", "--nproc_per_node", "gpu", "rank.py"]),
                ("no program", ["torchrun", "--nproc_per_node", "2"]), ("help", ["torchrun", "--help"]), ("workers that do not divide", ["msrun", "--worker_num", "8", "--local_worker_num", "3", "worker.py"]),
                ("no workers", ["msrun", "--worker_num", "none", "worker.py"]), ("a simulation", ["msrun", "--sim_level", "1", "worker.py"])):  # fmt: skip
            with self.subTest(title):
                self.check_output(f"run: {title}", self.muster("run", "-d", "--", *words), 64)
        self.check_output(
            "run: a file and a command",
            self.muster("run", "x.yaml", "--", "torchrun", "rank.py"),
            64,
        )
        self.check_output(
            "run: a wrong --set",
            self.muster("plan", "--set", "resources.nods=2", "--", "torchrun", "rank.py"),
            64,
        )
        self.check_output(
            "a verb that takes no command", self.muster("ps", "--", "torchrun", "rank.py"), 64
        )

    # ---- import

    def imported(self, name, *command, env=None, code=0):
        """The spec's text, which is sound."""
        path = self.cluster.path(f"{name}.yaml")
        done = self.muster("import", "-o", path, "--name", name, "--", *command, env=env, code=code)
        self.assertEqual(done.out, "")
        self.muster("validate", path, code=0)
        with open(path, encoding="utf-8") as file:
            return path, file.read(), done.err

    def run_to_its_end(self, path, *args):
        self.muster("run", "-q", path, "--timeout", "60s", *args, code=0)

    def test_a_script_that_only_launches(self):
        path, text, err = self.imported("launch", "bash", "launch.sh", "2")
        self.assertIn("launching 4 ranks", err)
        self.assertIn("not written down, because they look like secrets: HF_TOKEN", err)
        self.assertIn("launch.sh:18: '$((WORLD_SIZE * 4))' was computed from WORLD_SIZE", err)
        self.assertNotIn("hidden-word", text + err)
        for part in ("engine: torch\n", "    A: \"one two\"\n", "  script: rank.py\n", "    --global-batch-size 16\n    --name 'a $${b}'\n", "  nodes: 2\n", "  devices: 2\n",
                     "# decided by the placement: --master_addr localhost, --master_port 6000, --node_rank 0\n", "# check this: launch.sh:18:"):  # fmt: skip
            self.assertIn(part, text)
        self.assertNotIn("per: node", text)
        self.run_to_its_end(path)
        log = self.muster("logs", "-f", "launch", "--rank", "all", code=0).out
        for rank in range(4):
            self.assertIn(
                f"rank {rank} of 4 in {os.path.realpath(self.cluster.dir)} A=one two --global-batch-size 16 --name a ${{b}}\n",
                log,
            )

    def test_a_script_that_does_more(self):
        path, text, err = self.imported(
            "more", "bash", "more.sh", env={"DATA": "/data/${x}", "OTHER": "1"}
        )
        self.assertIn("the real python", err)
        warning = "more.sh:5: 'steps=$((NNODES * 100))' is computed from the script's own NNODES"
        self.assertIn(warning, err)
        for part in (
            "  per: node\n",
            "  run: [bash, more.sh]\n",
            "it does more than launch (line 2: mkdir -p made)",
            '    DATA: "/data/$${x}"\n',
            "  nodes: 1\n",
            "  devices: 2\n",
            warning,
        ):
            self.assertIn(part, text)
        self.assertNotIn("OTHER", text)
        plan = self.muster("plan", path, code=0).out
        self.assertIn("# " + warning, plan)
        self.assertNotIn(
            warning,
            self.muster("plan", path, "--set", "launch.vars={NNODES: '${nodes}'}", code=0).out,
        )
        self.assertNotIn(
            warning, self.muster("plan", path, "--set", "launch.intercept=off", code=0).out
        )
        self.run_to_its_end(path, "--set", "resources.nodes=2")
        log = self.muster("logs", "-f", "more", "--rank", "all", code=0).out
        for rank in range(4):
            self.assertIn(
                f"rank {rank} of 4 in {os.path.realpath(self.cluster.dir)} A=- --data /data/${{x}} --steps 100\n",
                log,
            )

    def test_ranks_in_the_background(self):
        path, text, _ = self.imported("background", "bash", "background.sh")
        for part in (
            "engine: torch\n",
            "  script: rank.py\n",
            "    --number ${rank}\n    --out=out/${rank}.bin\n",
            "  nodes: 1\n",
            "  devices: 2\n",
        ):
            self.assertIn(part, text)
        self.run_to_its_end(path)
        log = self.muster("logs", "-f", "background", "--rank", "all", code=0).out
        for rank in range(2):
            self.assertIn(
                f"rank {rank} of 2 in {os.path.realpath(self.cluster.dir)} A=- --number {rank} --out=out/{rank}.bin\n",
                log,
            )

    def test_ranks_of_a_table(self):
        _, text, _ = self.imported("table", "bash", "table.sh", "/data/hccl.json")
        for part in ("engine: mindformers\n", f"  at: {os.path.realpath(self.cluster.dir)}\n", "  mode: finetune\n", "  script: run_mindformer.py\n", "  config: configs/x.yaml\n",
                     "    --use_parallel=True\n", "  nodes: 2\n", "  devices: \"[4,8)\"\n", "muster sets them: RANK_SIZE, RANK_TABLE_FILE\n"):  # fmt: skip
            self.assertIn(part, text)

    def test_msrun(self):
        path, text, _ = self.imported("msrun", "bash", "msrun.sh", "2")
        for part in (
            "engine: mindformers\n",
            "  per: node\n",
            "  launcher: msrun\n",
            '  run: [bash, msrun.sh, "2"]\n',
            "  nodes: 1\n",
            "  devices: 2\n",
        ):
            self.assertIn(part, text)
        self.run_to_its_end(path)
        log = self.muster("logs", "-f", "msrun", "--rank", "0", code=0).out
        for rank in range(2):
            self.assertIn(f"MS_ROLE=MS_WORKER RANK_ID={rank} RANK_SIZE=2 --config x.yaml\n", log)

    def test_a_launcher_alone_and_printed(self):
        done = self.muster(
            "import",
            "-o",
            "-",
            "--",
            "torchrun",
            "--nproc_per_node",
            "2",
            "rank.py",
            "[0,8]",
            code=0,
        )
        self.assertIn("name: rank\n", done.out)
        self.assertEqual(done.err, "")
        path = self.cluster.write("printed.yaml", done.out)
        self.run_to_its_end(path)
        self.assertIn("A=- [0,8]\n", self.muster("logs", "-f", "rank", "--rank", "1", code=0).out)

    def test_stand_ins_in_odd_environments(self):
        self.cluster.write(
            "emptied.sh",
            "PATH=$(dirname $(command -v python3))/:$PATH python3 -c 'print(\"found behind itself\")'\nenv -i PATH=$PATH python3 -c 'print(\"the real python\")'\nenv -i PATH=$PATH A=2 torchrun --nproc_per_node 2 rank.py\n",
        )
        done = self.muster("import", "-o", "-", "--", "bash", "emptied.sh", code=0)
        self.assertEqual(done.err, "found behind itself\nthe real python\n")
        self.assertIn("launched: torchrun --nproc_per_node 2 rank.py\n", done.out)

    def test_a_command_line_in_another_script(self):
        path = "/" + "语料" * 40
        for front in (
            "",
            "x",
            "xx",
        ):  # the comment that shows it is cut within a character with one of them
            done = self.muster(
                "import",
                "-o",
                "-",
                "--",
                "torchrun",
                "--nproc_per_node",
                "2",
                "rank.py",
                front + path,
                code=0,
            )
            self.assertIn(f"'{front}{path}'\n", done.out)

    def test_a_script_that_fails_later(self):
        _, text, err = self.imported("later", "bash", "later.sh")
        self.assertIn("the script ended with status 1 behind its launch", err)
        self.assertIn("# the script ended with status 1 behind its launch", text)

    def test_what_a_script_leaves_running_is_ended(self):
        _, text, err = self.imported("leaves", "bash", "leaves.sh")
        self.assertIn("left running in the background was killed 5 s after its end", err)
        self.assertIn("  devices: 2\n", text)
        self.assertEqual(
            [command for _, command in processes_of(self.cluster.path("temporary"))], []
        )

    def test_a_script_that_does_not_end(self):
        self.check_output(
            "import: a script that does not end",
            self.muster("import", "-o", "none.yaml", "--timeout", "1s", "--", "bash", "stuck.sh"),
            4,
        )
        self.assertEqual(
            [command for _, command in processes_of(self.cluster.path("temporary"))], []
        )
        self.assertFalse(os.path.exists(self.cluster.path("none.yaml")))

    def test_an_interrupted_import_ends_its_script(self):
        env = {**self.cluster.env, "TMPDIR": self.cluster.path("temporary")}
        started = self.cluster.path("started")
        os.mkfifo(started)
        self.cluster.write("waits.sh", f"echo > {started}\ntail -f /dev/null\n")
        process = subprocess.Popen(
            self.cluster.command("import", "-o", "-", "--", "bash", "waits.sh"),
            env=env,
            cwd=self.cluster.dir,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with open(started, encoding="ascii") as file:
            file.read()
        process.terminate()
        out, err = process.communicate(timeout=DEADLINE)
        self.assertEqual((process.returncode, out), (64, ""), err)
        self.assertIn("interrupted; it was killed with all that it had started", err)
        self.assertEqual(
            [command for _, command in processes_of(self.cluster.path("temporary"))], []
        )

    def test_what_one_job_cannot_be(self):
        self.cluster.write("taken.yaml", "mine\n")
        for title, code, words in (
                ("no command", 64, []), ("an empty command", 64, ["--"]), ("no such program", 64, ["--", "no-such-program"]), ("no such script", 64, ["--", "bash", "none.sh"]),
                ("nothing is launched", 64, ["--", "bash", "nothing.sh"]), ("it fails", 64, ["--", "bash", "fails.sh"]), ("two launches", 64, ["--", "bash", "twice.sh"]),
                ("nodes that come and go", 64, ["--", "bash", "elastic.sh"]), ("ranks that are unlike", 64, ["--", "bash", "unlike.sh"]), ("an unknown option", 64, ["--", "bash", "path.sh"]),
                ("a file that is there", 12, ["-o", "taken.yaml", "--", "bash", "launch.sh"]), ("a name that is none", 64, ["-o", "-", "--name", "No Name", "--", "torchrun", "rank.py"]),
                ("a directory that is not there", 64, ["-o", "nowhere/x.yaml", "--", "torchrun", "rank.py"])):  # fmt: skip
            with self.subTest(title):
                self.check_output(f"import: {title}", self.muster("import", *words), code)
        with open(self.cluster.path("taken.yaml"), encoding="ascii") as file:
            self.assertEqual(file.read(), "mine\n")
        self.assertFalse(os.path.exists(self.cluster.path("job.yaml")))

    def test_help(self):
        text = self.muster("import", "--help", code=0).out
        for part in ("-h,--help", "muster import -- bash", "exit:"):
            self.assertIn(part, text)
        self.assertIn("muster run -- torchrun", self.muster("run", "--help", code=0).out)
        self.assertRegex(self.muster("--help", code=0).out, r"\n  import +Run a script")


if __name__ == "__main__":
    arguments = [word for word in sys.argv if word != "--rewrite"]
    program = unittest.main(argv=arguments, exit=False)
    GOLDEN.save(whole=not [word for word in arguments[1:] if not word.startswith("-")])
    sys.exit(not program.result.wasSuccessful())
