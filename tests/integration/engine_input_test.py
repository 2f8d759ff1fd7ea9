#!/usr/bin/python3
"""What a job of an engine is refused for before anything starts, or ends by at once: every sentence names the key, the file and the remedy.

They are in tests/golden/engine-errors.txt.  Run:  /usr/bin/python3 tests/integration/engine_input_test.py [--rewrite] [-v] [CASE]
"""

import json
import os
import sys
import unittest

from cluster import ROOT, Cluster
from golden import Golden, GoldenCase

HEAD = """# What people are told of a job that its engine, its cards, its files or the jobs before it make impossible. Reviewed as text.
# Written by tests/integration/engine_input_test.py --rewrite. <dir> is the test's directory; ids, ports, pids and ages are replaced.
"""
GOLDEN = Golden(os.path.join(ROOT, "tests/golden/engine-errors.txt"), HEAD, "--rewrite" in sys.argv)

MINDFORMERS = """\
name: {name}
engine: mindformers
launch: {{config: {config}}}
resources: {resources}
recovery: {{max_restarts: 0}}
"""


def table(servers):
    """{server_id: cards} as a rank table of version 1.0."""
    rank, listed = 0, []
    for server, cards in servers.items():
        devices = []
        for card in cards:
            devices.append(
                {
                    "device_id": str(card),
                    "device_ip": f"192.168.{len(listed)}.{card}",
                    "rank_id": str(rank),
                }
            )
            rank += 1
        listed.append({"server_id": server, "device": devices})
    return json.dumps(
        {
            "version": "1.0",
            "server_count": str(len(listed)),
            "server_list": listed,
            "status": "completed",
        }
    )


class Cards(GoldenCase):
    """Two nodes with eight cards each, as written lists have them."""

    golden = GOLDEN
    card = "ascend910"

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.controller()
        for number, name in enumerate(("n0", "n1")):
            cards = cls.cluster.write(
                name + ".devices",
                "".join(f"id={i} type={cls.card} address=192.168.{number}.{i}\n" for i in range(8)),
            )
            cls.cluster.agent(name, args=["--devices-from", cards], address=f"127.0.0.{number + 1}")
        cls.cluster.write("run_mindformer.py", "print('never')\n")
        os.makedirs(cls.cluster.path("configs"))
        cls.cluster.write("configs/run_llama2_7b.yaml", "runner_config:\n  epochs: 1\n")

    def refused(self, title, spec, code, verb=("run", "-q")):
        self.check_output(
            self.cluster,
            title,
            self.cluster.muster(*verb, self.cluster.spec(spec, "job.yaml"), "--timeout", "60s"),
            code,
        )

    def mindformers(self, **more):
        return MINDFORMERS.format(
            **{
                "name": "llama",
                "config": "configs/run_llama2_7b.yaml",
                "resources": "{nodes: 2, type: ascend}",
                **more,
            }
        )

    def test_servers_of_a_table_of_ones_own(self):
        self.cluster.write("uneven.json", table({"n0": [0, 1], "n1": [0]}))
        self.refused(
            "a rank table of one's own with uneven servers on 910",
            self.mindformers(resources="{rank_table: uneven.json, type: ascend}"),
            64,
        )
        self.cluster.write("strangers.json", table({"n0": [0, 1], "n7": [0, 1]}))
        self.refused(
            "a rank table of one's own that names another node",
            self.mindformers(resources="{rank_table: strangers.json, type: ascend}"),
            2,
        )

    def test_cards_that_910_refuses_where_the_nodes_have_nothing_else(self):
        self.refused(
            "three cards where all nodes are 910",
            self.mindformers(resources="{nodes: 1, devices: 3, type: ascend}"),
            2,
        )

    def test_files_that_are_not_there(self):
        one = "{hosts: [n0], type: ascend}"  # of two nodes either may be the first to say so
        self.refused(
            "a configuration that is missing",
            self.mindformers(config="configs/run_llama_7b.yaml", resources=one),
            1,
        )
        spec = "name: gpt\nengine: megatron\nlaunch: {script: run_mindformers.py}\nresources: {devices: 1}\nrecovery: {max_restarts: 0}\n"
        self.refused("a script that is missing", spec, 1)

    def test_whatever_is_not_there_is_reported_by_its_key(self):
        for name in ("pretrain_vlm.py", "run_distribute.sh", "train.diff"):
            self.cluster.write(
                name, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" if name == "train.diff" else ""
            )
        os.makedirs(self.cluster.path("code"))
        self.cluster.write("code/train_gpt.py", "")
        self.cluster.write("code/x", "a\n")
        config, code = "configs/run_llama2_7b.yaml", self.cluster.path("code")
        missing = {
            "a script: mindformers": (
                "mindformers",
                f"{{script: run_mindformer2.py, config: {config}}}",
                "",
            ),
            "a script: mindspeed-mm": (
                "mindspeed-mm",
                "{script: pretrain_vl.py, args: '--mm-model a.json'}",
                "",
            ),
            "a script: torch, no Python": ("torch", "{script: run_distributed.sh}", ""),
            "a script: a template": ("torch", "{script: 'pretrain_vlm${rank}.py'}", ""),
            "a script: per node": ("megatron", "{per: node, script: run_distributed.sh}", ""),
            "a script: per node, in a command": (
                "megatron",
                "{per: node, run: bash run_distributed.sh 2}",
                "",
            ),
            "a script: per once, in a command": (
                "command",
                "{per: once, run: python3 -u pretrain_vl.py}",
                "",
            ),
            "a script: in code with patches": (
                "torch",
                "{script: train_gtp.py}",
                f"code: {{at: {code}, patches: [train.diff]}}\n",
            ),
            "a script: not to be executed": ("torch", "{script: run_distribute.sh}", ""),
            "the code": ("torch", "{script: train_gpt.py}", f"code: {{at: {code[:-1]}}}\n"),
            "the code: per once, no script": (
                "command",
                "{per: once, run: 'true'}",
                f"code: {{at: {code[:-1]}}}\n",
            ),
            "the working directory": ("torch", "{script: pretrain_vlm.py, cwd: config}", ""),
            "the interpreter": (
                "torch",
                "{script: pretrain_vlm.py}",
                "runtime: {python: venv/bin/python}\n",
            ),
            "the interpreter: by its name": (
                "torch",
                "{script: pretrain_vlm.py}",
                "runtime: {python: pyton3, env: {PATH: '/usr/bin:/bin'}}\n",
            ),
            "a program": (
                "command",
                "{run: pyton3 pretrain_vlm.py}",
                "runtime: {env: {PATH: '/usr/bin:/bin'}}\n",
            ),
            "a file to change": (
                "mindformers",
                f"{{config: {config}, patch: {{configs/run_llama_7b.yaml: {{a: 1}}}}, args: '--also configs/run_llama_7b.yaml'}}",
                "",
            ),
            "a file of the setup": (
                "torch",
                "{script: pretrain_vlm.py}",
                "runtime: {setup: [source configs/set_env.sh]}\n",
            ),
        }
        for title, (engine, launch, more) in missing.items():
            with self.subTest(title):
                spec = f"name: job\nengine: {engine}\nlaunch: {launch}\nresources: {{hosts: [n0], devices: 1, type: ascend}}\nrecovery: {{max_restarts: 0}}\n{more}"
                self.refused(f"what is missing: {title}", spec, 1)
        self.refused(
            "what is missing: a rank table of one's own",
            self.mindformers(resources="{rank_table: hccl.json, type: ascend}"),
            64,
        )
        spec = f"name: job\nengine: torch\nlaunch: {{script: train_gpt.py}}\ncode: {{at: {code}, patches: [trian.diff]}}\nresources: {{devices: 1}}\n"
        self.refused("what is missing: a patch", spec, 64)

    def test_a_start_that_is_not_there(self):
        """Restarts are allowed, and none is made."""
        os.makedirs(self.cluster.path("trained/checkpoint_network/rank_0"))
        self.cluster.write("trained/checkpoint_network/rank_0/llama_rank_0-network.ckpt", "x")
        for title, place in (("nothing", "none"), ("weights alone", "trained")):
            spec = self.mindformers(resources="{hosts: [n0], type: ascend}").replace(
                "recovery: {max_restarts: 0}\n", ""
            )
            self.refused(
                f"going on from a directory with {title}",
                spec + f"start: {{from: {self.cluster.path(place)}, as: resume, step: 5}}\n",
                1,
            )
            newest = max(
                json.loads(self.cluster.muster("ps", "-a", "-o", "json").out)["items"],
                key=lambda job: job["id"],
            )
            self.assertEqual(newest["attempt"], 1, newest)

    def test_a_configuration_that_no_attempt_could_go_on_from(self):
        self.cluster.write(
            "configs/plain.yaml", "runner_config:\n  epochs: 1\n  sink_mode: False\n"
        )
        self.refused(
            "a configuration without sink mode on several ranks",
            self.mindformers(config="configs/plain.yaml", resources="{hosts: [n0], type: ascend}"),
            1,
        )

    def test_files_of_a_dump(self):
        self.refused(
            "a dump's file that is missing", self.mindformers() + "observe: {dump: dump.json}\n", 64
        )
        self.cluster.write("text.json", "iteration: all\n")
        self.refused(
            "a dump's file that is no JSON", self.mindformers() + "observe: {dump: text.json}\n", 64
        )
        self.cluster.write("short.json", '{"common_dump_settings": {"iteration": "all"}}\n')
        self.refused(
            "a dump's file that MindSpore would not start with",
            self.mindformers() + "observe: {dump: short.json}\n",
            64,
        )

    def test_an_interface_that_is_not_there(self):
        self.refused(
            "an interface that no node has", self.mindformers() + "network: {interface: ib9}\n", 2
        )

    def test_jobs_before_it(self):
        spec = "name: {}\nengine: command\nlaunch: {{run: '{}'}}\nresources: {{devices: 1}}\nrecovery: {{max_restarts: 0}}\n"
        self.cluster.muster(
            "run",
            "-q",
            self.cluster.spec(spec.format("prepare", "false")),
            "--timeout",
            "60s",
            code=1,
        )
        for title, after in (("that there is not", "tokenize"), ("that has failed", "prepare")):
            self.refused(
                f"behind a job {title}",
                spec.format("train", "true") + f"schedule: {{after: {after}}}\n",
                {"tokenize": 10, "prepare": 2}[after],
            )


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv if argument != "--rewrite"]
    program = unittest.main(argv=arguments, exit=False)
    if program.result.wasSuccessful() or GOLDEN.rewrite:
        GOLDEN.save(
            whole=program.result.wasSuccessful()
            and all(argument.startswith("-") for argument in arguments[1:])
        )
    sys.exit(not program.result.wasSuccessful())
