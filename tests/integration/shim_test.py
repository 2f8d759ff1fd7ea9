#!/usr/bin/python3
"""launch.per: node: scripts as tutorials have them run unchanged on two nodes, with muster's torchrun in place of theirs, with the real one, and without any.

Run:  /usr/bin/python3 -B tests/integration/shim_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import glob
import json
import os
import re
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance.harness import UNHURRIED, EngineTest, kill_process, option, wait_gone  # noqa: E402
from conformance.wait import until  # noqa: E402

STEPS = 40
ARGS = f"""--use-mcore-models --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 1
    --tokenizer-type NullTokenizer --mock-data --lr 1e-4 --log-interval 1 --ckpt-format torch_dist --save-interval 5 --train-iters {STEPS}""".replace(
    "\n", " "
)

# As in Megatron-LM's and MindSpeed's examples: one machine with eight cards is written into it.
TORCHRUN = f"""#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1

GPUS_PER_NODE=8
# Change for multinode config
MASTER_ADDR=localhost
MASTER_PORT=6000
NNODES=1
NODE_RANK=0
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))

CHECKPOINT_PATH=/nowhere/of/the/author

DISTRIBUTED_ARGS="
    --nproc_per_node $GPUS_PER_NODE \\
    --nnodes $NNODES \\
    --node_rank $NODE_RANK \\
    --master_addr $MASTER_ADDR \\
    --master_port $MASTER_PORT
"
GPT_ARGS="
    {ARGS}
"
OUTPUT_ARGS="
    --save $CHECKPOINT_PATH \\
    --load $CHECKPOINT_PATH
"

mkdir -p logs
torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \\
    $GPT_ARGS \\
    $OUTPUT_ARGS \\
    --distributed-backend gloo | tee logs/train_$$.log
"""

# The backslash of the last line but one has a blank behind it: the argument is a blank, and the next line a command of its own.
FAULTY = TORCHRUN.replace("    $OUTPUT_ARGS \\\n", "    $OUTPUT_ARGS \\ \n")

# The multimodal tutorials' words: what is saved is weights alone.
WEIGHTS = TORCHRUN.replace(
    "    --load $CHECKPOINT_PATH\n",
    "    --load /nowhere/of/weights --no-load-optim --no-load-rng --no-save-optim --no-save-rng\n",
)

# Trained with one script, gone on from with another.
FIRST = TORCHRUN.replace(
    "    --save $CHECKPOINT_PATH \\\n    --load $CHECKPOINT_PATH\n", "    --save ./ckpt\n"
)
FURTHER = FIRST.replace("--save ./ckpt", "--load ./ckpt --save further").replace(
    f"--train-iters {STEPS}", f"--train-iters {STEPS + 10}"
)
# The first saved nothing.
SHORT = "torchrun --nproc_per_node 8 fails.py --save ./short\n"
BEHIND_SHORT = FIRST.replace("--save ./ckpt", "--load ./short --save further")

# A rank fails, and so does the script's last line, as in the tutorials that end with a chmod.
LAST_LINE = """#!/bin/bash
torchrun --nproc_per_node 8 fails.py
chmod 640 /nowhere/of/the/author
"""
FAILS = """import os
import time
if os.environ["RANK"] == "3":
    raise RuntimeError("the fault of this rank alone")
time.sleep(600)
"""

# Each rank says who it is. On two nodes with two devices each, n1's script has the number 1, and rank 1 of the training is inside n0's.
NUMBERS = "torchrun --nproc_per_node 8 who.py\n"
WHO = """import os
print(f"this is rank {os.environ['RANK']} of the training", flush=True)
"""

# A script that changes a variable of muster's.
CHANGED = """export MUSTER_SHIM_EDITS='{"edits":[{"erase":"--save"}]}'
torchrun --nproc_per_node 8 who.py
"""

# A batch size that is the script's own business, as it thinks.
COMPUTED = TORCHRUN.replace("mkdir -p logs", "GBS=$((NNODES * 8))\nmkdir -p logs")

# An environment that stands before muster's directory on PATH, and python -m.
ACTIVATED = """#!/bin/bash
export PATH="$PWD/env/bin:$PATH"
python3 -m torch.distributed.launch --use_env --nproc_per_node=8 --nnodes=1 allreduce.py
torchrun --nproc-per-node=8 allreduce.py > elsewhere_$NODE_RANK.log 2>&1
"""

# The loop of the rank table tutorials.
BACKGROUND = (
    """#!/bin/bash
export WORLD_SIZE=$(($NNODES*$NPROC_PER_NODE)) LOCAL_WORLD_SIZE=$NPROC_PER_NODE GROUP_WORLD_SIZE=$NNODES GROUP_RANK=$NODE_RANK
export ROLE_NAME=default ROLE_WORLD_SIZE=$WORLD_SIZE TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_MAX_RESTARTS=0
for((i=0; i<NPROC_PER_NODE; i++))
do
    export LOCAL_RANK=$i
    export RANK=$((NODE_RANK*NPROC_PER_NODE+i)) ROLE_RANK=$((NODE_RANK*NPROC_PER_NODE+i))
    mkdir -p rank_$RANK
    /usr/bin/python3 pretrain_gpt.py %s --save $MUSTER_SAVE_DIR ${MUSTER_RESUME_DIR:+--load $MUSTER_RESUME_DIR} &> rank_$RANK/train.log &
done
"""
    % ARGS
)

# The same, and every rank's output of each attempt is kept in a file of its own.
KEPT = BACKGROUND.replace("mkdir -p rank_$RANK\n", "mkdir -p kept\n").replace(
    "&> rank_$RANK/train.log", "> kept/rank_$RANK.$MUSTER_ATTEMPT.txt 2>&1"
)

ALLREDUCE = """import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
value = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(value)
print(f"sum {int(value.item())} over {dist.get_world_size()} by rank {dist.get_rank()} of {os.environ['TORCHELASTIC_RUN_ID']}", flush=True)
dist.barrier()
"""

# Debian's torchrun with the one function that Python 3.11 breaks repaired (Std.from_str).
REAL_TORCHRUN = """#!/usr/bin/python3
from torch.distributed.elastic.multiprocessing import Std
from torch.distributed.elastic.multiprocessing import api
api.Std.from_str = classmethod(lambda cls, text: Std.NONE)
import torch.distributed.run as run
run.main()
"""
REAL = """#!/bin/bash
torchrun --nnodes $NNODES --node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT --nproc_per_node $NPROC_PER_NODE allreduce.py
"""
# As MindFormers' scripts/msrun_launcher.sh ends.
MSRUN = """#!/bin/bash
msrun --worker_num=8 --local_worker_num=8 --master_port=8118 --log_dir=msrun_log_$NODE_RANK --join=True --cluster_time_out=300 worker.py --config x.yaml
"""
WORKER = """import os
import sys
env = os.environ
print(*[f"{name}={env.get(name)}" for name in ("MS_ROLE", "MS_WORKER_NUM", "MS_NODE_ID", "RANK_ID", "RANK_SIZE", "DEVICE_ID", "MS_CLUSTER_TIMEOUT")], *sys.argv[1:])
assert env["MS_SCHED_PORT"] == env["MUSTER_MASTER_PORT"]
"""
NOT_THIS = '#!/bin/sh\necho "the real $(basename $0) was called" >&2\nexit 99\n'


class Shim(EngineTest):
    scripts = {"pretrain_gpt.py": "megatron-core-0.12"}
    files = {"run.sh": TORCHRUN, "weights.sh": WEIGHTS, "first.sh": FIRST, "further.sh": FURTHER, "short.sh": SHORT, "behind_short.sh": BEHIND_SHORT, "computed.sh": COMPUTED, "last_line.sh": LAST_LINE, "fails.py": FAILS, "numbers.sh": NUMBERS, "who.py": WHO, "changed.sh": CHANGED, "faulty.sh": FAULTY, "activated.sh": ACTIVATED, "background.sh": BACKGROUND, "kept.sh": KEPT, "allreduce.py": ALLREDUCE, "real.sh": REAL, "msrun.sh": MSRUN, "worker.py": WORKER,
             "real/torchrun": REAL_TORCHRUN, "env/bin/torchrun": NOT_THIS}  # fmt: skip

    @classmethod
    def prepare(cls):
        for name in ("real/torchrun", "env/bin/torchrun"):
            os.chmod(os.path.join(cls.code, name), 0o755)
        job, record = cls.submit(
            "whole",
            "megatron",
            {
                "script": "pretrain_gpt.py",
                "args": f"{ARGS} --save /x --load /nowhere --distributed-backend gloo",
            },
            devices=2,
        )
        cls.cluster.wait(job)
        cls.expected = record.losses()
        assert sorted(cls.expected) == list(range(1, STEPS + 1)), cls.cluster.story(job)

    @classmethod
    def script(cls, name, script, engine="megatron", launch=None, **more):
        return cls.submit(
            name,
            engine,
            {"per": "node", "run": f"bash {script}", **(launch or {})},
            devices=2,
            **more,
        )

    def kill_a_rank(self, job, record):
        """Any process of the training, once the job has made some steps. It does not get further meanwhile, however slow this is."""
        with record.staying(12):
            return self.kill_one_of_four(job, record)

    def kill_one_of_four(self, job, record):
        record.wait(job, 12)
        ranks = sorted(
            p
            for p in self.cluster.processes()
            if "pretrain_gpt.py" in " ".join(p.argv[:4])
            and "RANK" in p.env
            and p.argv[0].endswith("python3")
        )
        self.assertEqual(len(ranks), 4, self.cluster.story(job))
        victim = self.random().choice(ranks)
        self.assertTrue(kill_process(victim))
        self.assertTrue(wait_gone(victim))
        return int(victim.env["RANK"])

    def steps_and_losses(self, job):
        shown = next(
            item
            for item in json.loads(self.cluster.output("ps", "-a", "-o", "json"))["items"]
            if item["id"] == job
        ).get("progress", {})
        if shown.get("step", 0) < 8 or "loss" not in shown:
            raise OSError(f"muster ps has {shown}\n{self.cluster.story(job)}")

    def logs(self, job):
        return self.cluster.output("logs", job, "--rank", "0-1", "--attempt", "all")

    def rank_logs(self, record, attempt):
        directory = (
            next(iter(record.starts(attempt).values()))["env"]["MUSTER_OUT"]
            + f"/logs/attempt-{attempt}"
        )
        out = {}
        for path in glob.glob(directory + "/rank_*.log"):
            with open(path, encoding="utf-8") as file:
                out[int(re.search(r"rank_(\d+)", path)[1])] = file.read()
        return out

    def test_a_tutorials_torchrun(self):
        job, record = self.script("torchrun", "run.sh", step_ms=UNHURRIED)
        killed = self.kill_a_rank(job, record)
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]),
            ("succeeded", 2),
            f"rank {killed} was killed\n{self.cluster.story(job)}",
        )
        self.assertEqual(record.losses(), self.expected)
        self.assertEqual(
            {option(start["argv"], "--load") for start in record.starts(1).values()},
            {"/nowhere/of/the/author"},
        )
        self.resumed_step(record, shown)
        starts = record.starts(2)
        self.assertEqual(sorted(starts), [0, 1, 2, 3])
        self.assertEqual({start["env"]["MASTER_ADDR"] for start in starts.values()}, {"127.0.0.1"})
        self.assertEqual(
            {start["env"]["TORCHELASTIC_RESTART_COUNT"] for start in starts.values()}, {"1"}
        )
        self.assertFalse(
            [
                name
                for start in starts.values()
                for name in start["env"]
                if name.startswith(("MUSTER_SHIM", "BASH_FUNC"))
            ]
        )
        # tee's status is 0: it is the rank's own end that is told.
        ended = [event for event in self.cluster.events(job) if event["type"] == "attempt-ended"]
        self.assertEqual((ended[0]["attempt"], ended[0]["rank"]), (1, killed // 2), ended)
        self.assertIn("SIGKILL", ended[0]["text"])
        self.assertIn("--nnodes 1 -> 2, --nproc_per_node 8 -> 2", self.logs(job))
        self.assertIn(f"rank {killed} was ended by signal 9", self.logs(job))
        logs = self.rank_logs(record, 2)
        self.assertEqual(sorted(logs), [0, 1, 2, 3])
        self.assertIn(f"iteration {STEPS:8d}/", logs[3])
        self.assertTrue(glob.glob(os.path.join(self.code, "logs/train_*.log")))
        self.assertEqual(self.progress(job)["step"], STEPS)
        # `logs --rank 3` and `env --rank 3` said that there is no rank 3, and the verdict named the script alone.
        self.assertIn(
            f"rank {killed} of the training, in the script on node '{self.cluster.nodes[killed // 2]}', was killed by signal 9",
            ended[0]["text"],
        )
        self.assertIn(
            f"rank {killed} of the training",
            next(
                event["text"]
                for event in self.cluster.events(job)
                if event["type"] == "attempt-broke"
            ),
        )
        self.assertIn(f"iteration {STEPS:8d}/", self.cluster.output("logs", job, "--rank", "3"))
        self.assertEqual(
            self.cluster.muster("logs", job, "--rank", "3", "--raw", text=False).out.decode(),
            logs[3],
        )
        given = self.cluster.output("env", job, "--rank", "3")
        for line in (
            "rank 3 of the training, inside of the script on",
            "RANK=3",
            "LOCAL_RANK=1",
            "WORLD_SIZE=4",
            "launcher in the script",
        ):
            self.assertIn(line, given)
        missing = self.cluster.muster("logs", job, "--rank", "4")
        self.assertEqual(missing.code, 10)
        self.assertIn("no rank 4", missing.err)
        self.assertIn("inside their scripts ranks 0-3 of the training", missing.err)

    def test_weights_alone_are_no_resume_points(self):
        """The multimodal tutorial's words: the training went on without its optimizer, and nobody said so."""
        job, record = self.script("weights", "weights.sh", step_ms=UNHURRIED)
        self.kill_a_rank(job, record)  # checkpoints of steps 5 and 10 are there
        until(lambda: self.assert_placed(job, 2), "the second attempt")
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]), ("succeeded", 2), self.cluster.story(job)
        )
        launched = [
            event for event in self.cluster.events(job) if event["type"] == "script-launched"
        ]
        self.assertEqual([event["attempt"] for event in launched], [1, 2], launched)
        self.assertIn("'/nowhere/of/the/author'", launched[0]["text"])
        self.assertIn(
            "has no optimizer (--no-save-optim): no attempt goes on from these checkpoints",
            launched[0]["text"],
        )
        placed = [
            event["text"] for event in self.cluster.events(job) if event["type"] == "attempt-placed"
        ]
        self.assertIn("from the beginning", placed[1])
        self.assertEqual(
            {option(start["argv"], "--load") for start in record.starts(2).values()},
            {"/nowhere/of/weights"},
        )
        self.assertEqual(record.events("loaded", 2), {})
        kept = json.loads(self.cluster.output("ckpt", "ls", job, "-o", "json"))["items"]
        self.assertTrue(kept and all(item.get("quarantined") for item in kept), kept)
        self.assertIn("--no-save-optim: checkpoints hold weights alone", self.logs(job))

    def assert_placed(self, job, attempt):
        if self.cluster.show(job)["attempt"] < attempt:
            raise OSError(f"attempt {attempt} is not placed yet")

    def test_what_an_earlier_job_would_have_saved_there(self):
        """--save ./ckpt, then --load ./ckpt: the second began with random weights, for the first had been redirected."""
        first, _ = self.script("first", "first.sh")
        self.cluster.wait(first)
        job, record = self.script("further", "further.sh")
        self.cluster.wait(job)
        self.assertEqual(self.cluster.show(job)["phase"], "succeeded", self.cluster.story(job))
        loaded = record.events("loaded", 1)
        self.assertEqual(
            {event["step"] for event in loaded.values()}, {STEPS}, self.cluster.story(job)
        )
        self.assertEqual(len(loaded), 4)
        self.assertEqual(sorted(record.losses())[0], STEPS + 1)
        self.assertIn(f"--load ./ckpt: job {first} would have saved there", self.logs(job))
        self.assertFalse(
            os.path.lexists(os.path.join(self.code, "ckpt")), "nothing is put into the user's tree"
        )
        # Regression: checkpoints of the user's own in ./ckpt were ignored, and the other job's were loaded.
        own = min(
            json.loads(self.cluster.output("ckpt", "ls", first, "-o", "json"))["items"],
            key=lambda item: item["step"],
        )
        self.assertLess(own["step"], STEPS)
        shutil.copytree(own["path"], os.path.join(self.code, "ckpt", os.path.basename(own["path"])))
        with open(
            os.path.join(self.code, "ckpt/latest_checkpointed_iteration.txt"), "w", encoding="ascii"
        ) as file:
            file.write(str(own["step"]))
        theirs, record = self.script("theirs", "further.sh")
        self.cluster.wait(theirs)
        loaded = record.events("loaded", 1)
        self.assertEqual(
            {event["step"] for event in loaded.values()}, {own["step"]}, self.cluster.story(theirs)
        )
        self.assertEqual({event["source"] for event in loaded.values()}, {"./ckpt"})
        self.assertIn(
            "itself are loaded, as its latest_checkpointed_iteration.txt says; to go on from that job's checkpoints",
            self.logs(theirs),
        )
        # Both save in `further`: the event names the job without whose checkpoints a launch would begin that loads there as well.
        launched = next(
            event["text"]
            for event in self.cluster.events(theirs)
            if event["type"] == "script-launched"
        )
        self.assertIn(f". Job {job} would have saved there, too: ", launched)

    def test_an_earlier_job_that_saved_nothing(self):
        """The launch stopped with a sentence in its log alone: the verdict was "ended with status 1"."""
        first, _ = self.script("short", "short.sh")
        self.cluster.wait(first, code=1)
        job, _ = self.script("behind-short", "behind_short.sh")
        self.cluster.wait(job, code=1)
        why = self.cluster.output("why", job)
        self.assertIn(f"--load ./short: job {first} would have saved there", why)
        self.assertIn("it has no whole checkpoint to begin with: take --load out", why)

    def test_whose_fault_it_was(self):
        """The verdict named "rank 1", and the reason was the script's last line, which fails as well."""
        job, _ = self.script("whose", "last_line.sh", engine="torch")
        self.cluster.wait(job, code=1)
        why = self.cluster.output("why", job)
        self.assertIn(
            f"rank 3 of the training, in the script on node '{self.cluster.nodes[1]}', ended with status 1",
            why,
        )
        self.assertIn("rank 3: RuntimeError: the fault of this rank alone", why)
        self.assertNotIn("chmod", why)
        exits = [
            exit
            for exit in self.cluster.show(job)["attempts"][0]["exits"]
            if exit.get("trainingRank") == 3
        ]
        self.assertEqual([exit["rank"] for exit in exits], [1])

    def test_a_number_of_a_script_and_of_a_rank(self):
        """`logs --rank 1` printed n1's script alone, and `env --rank 1` showed it: rank 1 of the training, which `why` names, is inside n0's."""
        job, _ = self.script("numbers", "numbers.sh", engine="torch")
        self.cluster.wait(job)
        first, second = self.cluster.nodes
        ranks = [f"this is rank {rank} of the training" for rank in range(4)]
        lines = self.cluster.output("logs", job, "--rank", "1").splitlines()
        printed = [line for line in lines if "this is rank" in line]
        self.assertEqual(
            sorted(printed),
            sorted(
                [f"[{first} rank-1] {ranks[1]}", f"[rank 1] {ranks[2]}", f"[rank 1] {ranks[3]}"]
            ),
            lines,
        )
        self.assertEqual(
            self.cluster.output("logs", job, "--rank", "1", "--grep", "rank [01] of"),
            f"[{first} rank-1] {ranks[1]}\n",
        )
        raw = self.cluster.output("logs", job, "--rank", "1", "--raw")
        self.assertEqual([ranks[i] in raw for i in range(4)], [False, False, True, True], raw)
        for node, expected in (
            (first, [False, True, False, False]),
            (second, [False, False, True, True]),
        ):
            shown = self.cluster.output("logs", job, "--rank", "1", "--node", node)
            self.assertEqual([ranks[i] in shown for i in range(4)], expected, shown)
        shown = self.cluster.output("env", job, "--rank", "1")
        self.assertIn(
            f"# rank 1 on {second}\n# rank 1 of the training is inside of the script on {first}: --training-rank 1 shows it\n",
            shown,
        )
        self.assertEqual(
            json.loads(self.cluster.output("env", job, "--rank", "1", "-o", "json"))[
                "trainingNode"
            ],
            first,
        )
        given = self.cluster.output("env", job, "--training-rank", "1")
        for line in (
            f"# rank 1 of the training, inside of the script on {first};",
            "RANK=1",
            "LOCAL_RANK=1",
            "WORLD_SIZE=4",
            "launcher in the script",
        ):
            self.assertIn(line, given)
        self.assertNotIn("--training-rank", given)
        self.assertNotIn("--training-rank", self.cluster.output("env", job, "--rank", "0"))
        for flag in ("--rank", "--training-rank"):
            missing = self.cluster.muster("env", job, flag, "5")
            self.assertEqual(missing.code, 10, missing.err)
            self.assertIn(
                "attempt 1 has ranks 0..1, and inside the scripts ranks 0..3 of the training",
                missing.err,
            )
        self.assertEqual(
            self.cluster.muster("env", job, "--rank", "1", "--training-rank", "1").code, 64
        )
        self.assertIn("--rank is required, or --training-rank", self.cluster.muster("env", job).err)

    def test_run_warns_of_what_plan_warns_of(self):
        """`muster plan` told of computed values and `muster run` did not; a value that launch.vars replaces was told all the same."""
        for vars, reported in (({}, True), ({"vars": {"GBS": "64"}}, False)):
            name = "computed" if reported else "answered"
            spec, _ = self.cluster.job(
                name,
                "megatron",
                self.code,
                {"per": "node", "run": "bash computed.sh", **vars},
                devices=2,
                step_ms=UNHURRIED,
            )
            path = os.path.join(self.cluster.work, f"{name}.yaml")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(spec, file)
            warning = (
                "computed.sh:29: 'GBS=$((NNODES * 8))' is computed from the script's own NNODES"
            )
            self.assertEqual(warning in self.cluster.output("plan", path), reported)
            done = self.cluster.muster("run", "-d", path)
            self.cluster.jobs.append(done.out.split()[0])
            self.assertEqual("muster: " + warning in done.err, reported, done.err)
            self.cluster.output("cancel", done.out.split()[0])

    def test_a_cancel_ends_all_of_it(self):
        job, record = self.script("cancelled", "run.sh", step_ms=UNHURRIED)
        record.wait(job, 12)
        self.cluster.output("cancel", job)
        self.cluster.wait(job, code=3)
        ends = [
            event["text"] for event in self.cluster.events(job) if event["type"] == "rank-exited"
        ]
        self.assertEqual(len(ends), 2, ends)
        self.assertTrue(all("after a stop was asked for" in text for text in ends), ends)
        self.assertEqual(
            [p.argv for p in self.cluster.processes() if p.env.get("MUSTER_JOB_ID") == job], []
        )

    def test_a_scripts_own_fault(self):
        job, record = self.script("faulty", "faulty.sh")
        self.cluster.wait(job, code=1)
        shown = self.cluster.show(job)
        self.assertEqual(shown["attempt"], 2)  # the same signature twice
        why = self.cluster.output("why", job)
        self.assertRegex(
            why,
            r"unrecognized arguments: +\(a lone blank: in the script a line ends with a backslash",
        )
        self.assertRegex(why, r"(exit|status|code) 2\b")
        self.assertIn("is a lone blank", self.logs(job))
        self.assertEqual(record.losses(), {})

    def test_edits_that_a_script_has_changed(self):
        job, _ = self.script("changed", "changed.sh")
        self.cluster.wait(job, code=1)
        logs = self.logs(job)
        self.assertIn("muster: error: torchrun: changing the training program's arguments: ", logs)
        self.assertIn("change 1 is of no known form; leave the variable as muster sets it", logs)
        self.assertNotIn("this is rank", logs)

    def test_ranks_in_the_background(self):
        job, record = self.script("background", "background.sh", engine="torch", step_ms=UNHURRIED)
        killed = self.kill_a_rank(job, record)
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]), ("succeeded", 2), self.cluster.story(job)
        )
        self.assertEqual(record.losses(), self.expected)
        self.assertIn(
            f"rank {killed}, which the script had left running, was ended by signal 9",
            self.logs(job),
        )

    def test_what_ranks_in_the_background_write_into_files(self):
        """Followed as logs: progress, why the attempt ended, and every byte, over the death of an agent."""
        job, record = self.script(
            "kept", "kept.sh", engine="torch", step_ms=UNHURRIED, observe={"progress": "auto"}
        )
        with record.staying(12):
            record.wait(job, 3)
            node = self.random().choice(self.cluster.nodes)
            self.cluster.kill(node)
            record.wait(job, 8)
            self.cluster.start(node)
            record.wait(job, 12)
            until(lambda: self.steps_and_losses(job), "progress")
            killed = self.kill_one_of_four(job, record)
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]), ("succeeded", 2), self.cluster.story(job)
        )
        self.assertEqual(record.losses(), self.expected)
        ended = next(
            event for event in self.cluster.events(job) if event["type"] == "attempt-ended"
        )
        self.assertEqual((ended["attempt"], ended["rank"]), (1, killed // 2), ended)
        self.assertIn("SIGKILL", ended["text"])
        reported = next(
            exit["evidence"]
            for exit in shown["attempts"][0]["exits"]
            if exit["rank"] == killed // 2
        )
        self.assertEqual(
            reported,
            f"the script ended with status 0, and rank {killed}, which the script had left running, was ended by signal 9",
        )
        for attempt in (1, 2):
            for rank in range(4):
                chosen = (
                    "--attempt",
                    str(attempt),
                    "--auxiliary",
                    f"rank-{rank}",
                    "--node",
                    self.cluster.nodes[rank // 2],
                )
                got = self.cluster.muster("logs", "-f", job, *chosen, "--raw", text=False).out
                with open(os.path.join(self.code, f"kept/rank_{rank}.{attempt}.txt"), "rb") as file:
                    self.assertEqual(got, file.read(), f"rank {rank} of attempt {attempt}")
        self.assertEqual(self.progress(job)["step"], STEPS)

    def test_pytorch_by_name_and_by_module(self):
        """Real ranks: gloo over two nodes. The script's own environment stands first on PATH, and one launch writes its output away."""
        job, _ = self.script(
            "allreduce", "activated.sh", engine="torch", env={"PATH": "/usr/bin:/bin"}
        )
        self.cluster.wait(job)
        logs = self.logs(job)
        for rank in range(4):
            self.assertEqual(logs.count(f"sum 10 over 4 by rank {rank} of {job}"), 2, logs)
        for node in range(2):
            with open(os.path.join(self.code, f"elsewhere_{node}.log"), encoding="utf-8") as file:
                self.assertIn("sum 10 over 4", file.read())

    def test_the_real_torchrun(self):
        path = os.path.join(self.code, "real") + ":/usr/bin:/bin"
        job, _ = self.script(
            "real",
            "real.sh",
            engine="torch",
            launch={"intercept": "off"},
            env={"PATH": path, "TMPDIR": self.code},
        )  # it leaves directories there
        self.cluster.wait(job)
        logs = self.logs(job)
        for rank in range(4):
            self.assertRegex(logs, f"sum 10 over 4 by rank {rank} of ")
        self.assertNotIn("muster:", logs)

    def test_msrun(self):
        job, _ = self.script(
            "msrun", "msrun.sh", engine="mindformers", launch={"launcher": "msrun"}
        )
        self.cluster.wait(job)
        logs = self.logs(job)
        for rank in range(4):
            line = f"MS_ROLE=MS_WORKER MS_WORKER_NUM=4 MS_NODE_ID={rank} RANK_ID={rank} RANK_SIZE=4 DEVICE_ID={rank % 2} MS_CLUSTER_TIMEOUT=300 --config x.yaml"
            self.assertIn(line, logs)
            with open(
                os.path.join(self.code, f"msrun_log_{rank // 2}/worker_{rank}.log"),
                encoding="utf-8",
            ) as file:
                self.assertEqual(file.read().strip(), line)
        self.assertEqual(logs.count("MS_ROLE=MS_SCHED"), 1, logs)
        self.assertIn("MS_NODE_ID=3", self.cluster.output("logs", job, "--rank", "3"))
        given = self.cluster.output("env", job, "--rank", "3")
        for line in ("MS_ROLE=MS_WORKER", "RANK_ID=3", "RANK_SIZE=4", "DEVICE_ID=1"):
            self.assertIn(line, given)
        self.assertTrue(os.path.exists(os.path.join(self.code, "msrun_log_0/scheduler.log")))

    def test_plan_shows_what_a_script_gets(self):
        spec, _ = self.cluster.job(
            "shown", "megatron", self.code, {"per": "node", "run": "bash run.sh"}, devices=2
        )
        path = os.path.join(self.cluster.work, "shown.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        plan = self.cluster.output("plan", path, "--rank", "1")
        for line in ("NODE_RANK=1", "NNODES=2", "MUSTER_SHIM_WORLD_SIZE=4", "launch.per: node"):
            self.assertIn(line, plan)
        edits = re.search(r"MUSTER_SHIM_EDITS='(\{.*\})'", plan)
        self.assertIsNotNone(edits, plan)
        self.assertIn({"onlyWith": {"options": ["--save", "--load"]}}, json.loads(edits[1])["edits"])


if __name__ == "__main__":
    unittest.main()
