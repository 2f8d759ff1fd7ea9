#!/usr/bin/python3
"""compat: modelarts on nodes that are not ModelArts: what scripts of that platform look for is there, and nothing of it without being asked for.

Run:  /usr/bin/python3 -B tests/integration/modelarts_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import glob
import json
import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance.harness import Engines  # noqa: E402

# What tells an engine that it is inside, in the environment of the daemons themselves: an agent that was started in such a container.
INSIDE = {"MA_JOB_DIR": "/leaked", "MA_LOG_DIR": "/leaked", "MA_LOCAL_LOG_PATH": "/leaked", "MA_NUM_HOSTS": "99", "VC_TASK_INDEX": "99", "BATCH_GROUP_NAME": "leaked",
          "S3_ACCESS_KEY_ID": "leaked", "S3_SECRET_ACCESS_KEY": "leaked", "RANK_TABLE_FILE": "/leaked"}  # fmt: skip


class ModelArts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with mock.patch.dict(os.environ, INSIDE):
            cls.cluster = Engines(devices=2, ascend=True)
            cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)

    def environments(self, name, per="rank", engine="command", **more):
        """{rank: its environment} of a job whose ranks write it down."""
        to = os.path.join(self.cluster.work, name)
        os.mkdir(to)
        spec = self.cluster.torch_spec(
            name, {"per": per, "run": ["sh", "-c", f"env -0 > {to}/env-$MUSTER_RANK"]}
        )
        spec.update(engine=engine, **more)
        spec["resources"]["type"] = "ascend"
        self.cluster.wait(self.cluster.submit(spec))
        found = {}
        for path in glob.glob(os.path.join(to, "env-*")):
            with open(path, encoding="utf-8") as file:
                found[int(path.rpartition("-")[2])] = dict(
                    item.split("=", 1) for item in file.read().split("\0") if item
                )
        return found

    def test_a_command_finds_variables_directories_and_its_rank_table(self):
        ranks = self.environments("asked", compat="modelarts")
        self.assertEqual(sorted(ranks), [0, 1, 2, 3])
        for rank, env in ranks.items():
            node = rank // 2
            wanted = {"VC_WORKER_NUM": "2", "MA_NUM_HOSTS": "2", "VC_TASK_INDEX": str(node), "VC_WORKER_HOSTS": "127.0.0.1,127.0.0.2", "MA_NUM_GPUS": "2",
                      "MA_CURRENT_IP": f"127.0.0.{node + 1}", "MA_TASK_NAME": "worker"}  # fmt: skip
            self.assertEqual({name: env.get(name) for name in wanted}, wanted)
            self.assertTrue(env["MA_CURRENT_INSTANCE_NAME"].endswith(f"-worker-{node}"))
            for name in ("MA_HOME", "MA_MOUNT_PATH", "MA_LOG_DIR"):
                self.assertTrue(os.path.isdir(env[name]), env[name])
                self.assertTrue(env[name].startswith(env["MUSTER_OUT"] + "/"), env[name])
            self.assertFalse(
                [
                    name
                    for name in ("MA_INPUTS", "MA_OUTPUTS", "BATCH_GROUP_NAME", "S3_ACCESS_KEY_ID")
                    if name in env
                ]
            )
        self.assertEqual(
            len({env["RANK_TABLE_FILE"] for env in ranks.values()}), 2
        )  # a directory a node

        for env in ranks.values():
            with open(
                os.path.join(env["RANK_TABLE_FILE"], "jobstart_hccl.json"), encoding="utf-8"
            ) as file:
                self.assertEqual(json.load(file)["group_list"][0]["instance_count"], "2")
            table = json.loads(
                self.cluster.output("ranktable", "convert", env["RANK_TABLE_FILE"], "-o", "-")
            )
            rows = [
                (server["server_id"], device["device_id"], device["device_ip"], device["rank_id"])
                for server in table["server_list"]
                for device in server["device"]
            ]
            self.assertEqual(rows, [("127.0.0.1", "0", "192.1.1.10", "0"), ("127.0.0.1", "1", "192.2.1.11", "1"),
                                    ("127.0.0.2", "0", "192.1.2.10", "2"), ("127.0.0.2", "1", "192.2.2.11", "3")])  # fmt: skip

    def test_a_script_a_node_has_a_table_of_all_devices(self):
        ranks = self.environments("script", per="node", compat="modelarts")
        self.assertEqual(sorted(ranks), [0, 1])
        table = json.loads(
            self.cluster.output("ranktable", "convert", ranks[1]["RANK_TABLE_FILE"], "-o", "-")
        )
        self.assertEqual([len(server["device"]) for server in table["server_list"]], [2, 2])

    # Started where a cloud's variables were in the shell: none of them may switch an engine to its cloud mode.
    def test_without_it_nothing_of_the_agents_environment_leaks(self):
        for engine in ("command", "torch"):
            ranks = self.environments(f"plain-{engine}", engine=engine)
            for env in ranks.values():
                self.assertEqual(
                    {
                        name: value
                        for name, value in env.items()
                        if name in INSIDE or name.startswith(("MA_", "VC_")) or "leaked" in value
                    },
                    {},
                )

    def test_the_platforms_own_names_are_refused(self):
        spec = self.cluster.torch_spec("refused", {"run": ["true"]})
        spec.update(compat="modelarts", runtime={"env": {"MA_MINE": "1"}})
        path = os.path.join(self.cluster.work, "refused.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        done = self.cluster.muster("run", "-d", path)
        self.assertEqual(done.code, 64, done.out + done.err)
        self.assertIn(
            "runtime.env.MA_MINE: is the platform's own with compat: modelarts", done.out + done.err
        )


if __name__ == "__main__":
    unittest.main()
