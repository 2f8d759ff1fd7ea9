#!/usr/bin/python3
"""The rank table of a job: made of its nodes' cards, or a file of the user's own, byte for byte as its ranks read it.

Run:  /usr/bin/python3 tests/integration/ranktable_show_test.py [-v] [CASE]
"""

import hashlib
import json
import unittest

from cluster import Cluster

# What a rank was told, one line; then its table.
SAY = """import json, os
table = open(os.environ["RANK_TABLE_FILE"]).read()
print(json.dumps({name: os.environ.get(name) for name in ("RANK_ID", "DEVICE_ID", "RANK_SIZE", "MUSTER_NODE", "MUSTER_MASTER_ADDR")}), flush=True)
print(table, flush=True)
"""


class Tables(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.at = Cluster()
        self.addCleanup(self.at.close)
        self.at.write("a.yaml", "{}\n")

    def cards(self, name, lines):
        """An agent whose cards are a written list."""
        listed = self.at.write(name + ".devices", "\n".join(lines) + "\n")
        self.at.agent(name, args=["--devices-from", listed])

    def attempt(self, job):
        return json.loads(self.at.muster("show", job, "-o", "json", code=0).out)["attempts"][0]


class Made(Tables):
    def test_the_table_of_a_job(self):
        """What its ranks read, byte for byte; also when the job is over, and from a controller that was started again."""
        controller = self.at.controller()
        for name in ("n0", "n1"):
            self.cards(
                name,
                [
                    f"id={i} type=ascend910b physical={i + 4} address=192.168.{name[1]}.{i}"
                    for i in range(2)
                ],
            )
        self.at.write(
            "run_mindformer.py",
            "import os\nprint(open(os.environ['RANK_TABLE_FILE']).read(), flush=True)\n",
        )
        spec = self.at.spec(
            "name: two\nengine: mindformers\nlaunch: {config: a.yaml}\nresources: {nodes: 2, devices: 2, type: ascend}\nsuccess: exit0\n",
            "two.yaml",
        )
        planned = self.at.muster("plan", spec, "--contents", code=0).out
        self.at.muster("run", "-q", spec, "--timeout", "60s", code=0)
        shown = self.at.muster("ranktable", "show", "two", code=0).out
        self.assertIn(shown + "\n", planned, "the same cards, the same table")
        for rank in range(4):
            self.assertEqual(
                self.at.muster("logs", "two", "-f", "--rank", rank, "--raw", code=0).out,
                shown + "\n",
                rank,
            )
        self.assertEqual(
            [server["server_id"] for server in json.loads(shown)["server_list"]],
            ["n0", "n1"],
            "of one address: by their names",
        )
        self.assertEqual(
            [device["device_id"] for device in json.loads(shown)["server_list"][1]["device"]],
            ["4", "5"],
        )
        digest = hashlib.sha256(shown.encode()).hexdigest()
        self.assertEqual(self.attempt("two")["tableSha256"], digest)
        launch = json.loads(self.at.muster("env", "two", "--rank", 3, "-o", "json", code=0).out)
        self.assertEqual(
            [(file["node"], file["sha256"], file["content"]) for file in launch["files"]],
            [("n1", digest, shown)],
        )
        self.assertEqual(len(launch["argvSources"]), len(launch["argv"]))
        self.at.muster(
            "ranktable", "check", self.at.write("hccl.json", shown), "--chip", "910b", code=0
        )
        controller.stop()
        self.at.controller()
        self.assertEqual(self.at.muster("ranktable", "show", "two", code=0).out, shown)


class Own(Tables):
    """resources.rank_table: hosts, devices and the order of ranks are the file's; the ranks get its bytes."""

    SPEC = "name: {name}\nengine: mindformers\nlaunch: {{config: a.yaml}}\nresources: {{rank_table: {table}, type: ascend}}\nsuccess: exit0\nrecovery: {{max_restarts: 0}}\n"

    # Shuffled: the first server in the file has the last ranks, and on both the second card has the lower rank. Spelt as no tool of ours would.
    TABLE = """{"status": "completed", "version":"1.0", "server_count": "2", "server_list": [
  {"server_id": "n0", "device": [{"device_id": "5", "device_ip": "192.168.0.1", "rank_id": "3"}, {"device_id": "6", "device_ip": "192.168.0.2", "rank_id": "2"}]},
  {"server_id": "n1", "device": [{"device_id": "7", "device_ip": "192.168.1.3", "rank_id": "0"}, {"device_id": "4", "device_ip": "192.168.1.0", "rank_id": "1"}],
   "hardware_type": "their own"}
]}
"""

    def setUp(self):
        super().setUp()
        self.at.controller()
        for name in ("n0", "n1"):
            self.cards(
                name,
                [
                    f"id={i} type=ascend910b physical={i + 4} address=192.168.{name[1]}.{i}"
                    for i in range(4)
                ],
            )
        self.at.write("run_mindformer.py", SAY)

    def spec(self, name, table):
        return self.at.spec(self.SPEC.format(name=name, table=table), name + ".yaml")

    def test_ranks_are_where_the_table_has_them(self):
        self.at.write("hccl.json", self.TABLE)
        spec = self.spec("own", "hccl.json")
        planned = self.at.muster("plan", spec, "--contents", "--all-ranks", code=0).out
        self.assertIn(self.TABLE, planned)
        self.at.muster("run", "-q", spec, "--timeout", "60s", code=0)
        printed = []
        for rank in range(4):
            first, _, rest = self.at.muster(
                "logs", "own", "-f", "--rank", rank, "--raw", code=0
            ).out.partition("\n")
            printed.append(json.loads(first))
            self.assertEqual(rest, self.TABLE + "\n", "its bytes, unchanged")
        physical = [(line["MUSTER_NODE"], int(line["DEVICE_ID"]) + 4) for line in printed]
        self.assertEqual([int(line["RANK_ID"]) for line in printed], [0, 1, 2, 3])
        self.assertEqual(physical, [("n1", 7), ("n1", 4), ("n0", 6), ("n0", 5)])
        listed = {
            int(device["rank_id"]): (server["server_id"], int(device["device_id"]))
            for server in json.loads(self.TABLE)["server_list"]
            for device in server["device"]
        }
        self.assertEqual(dict(enumerate(physical)), listed)
        self.assertEqual(self.at.muster("ranktable", "show", "own", code=0).out, self.TABLE)
        self.assertEqual(
            self.attempt("own")["tableSha256"], hashlib.sha256(self.TABLE.encode()).hexdigest()
        )
        self.assertEqual([node["node"] for node in self.attempt("own")["nodes"]], ["n1", "n0"])

    def test_what_is_wrong_with_it_is_reported_before_anything_starts(self):
        self.at.write("hccl.json", self.TABLE)
        nobody = self.at.write("nobody.json", self.TABLE.replace('"n1"', '"10.9.9.9"'))
        other = self.at.write("other.json", self.TABLE.replace("192.168.1.0", "192.168.7.7"))
        missing = self.at.write(
            "missing.json", self.TABLE.replace('"device_id": "7"', '"device_id": "3"')
        )
        broken = self.at.write("broken.json", self.TABLE.replace('"rank_id": "2"', '"rank_id": 2'))
        for table, code, words in (
            (
                nobody,
                2,
                f"resources.rank_table '{nobody}': '10.9.9.9' is no registered node; there are 'n0' (127.0.0.1), 'n1' (127.0.0.1), and a server_id is a node's name or address",
            ),
            (
                other,
                2,
                "'n1' says that its card 4 has the address 192.168.1.0, and the table has 192.168.7.7",
            ),
            (missing, 2, "'n1' has no ascend910b with the number 3 (device_id)"),
            (broken, 64, f"resources.rank_table: '{broken}': server_list[0].device[1].rank_id: "),
            (
                "none.json",
                64,
                f"wrong.yaml:4:25: resources.rank_table: 'none.json': there is no such file ({self.at.path('none.json')})",
            ),
        ):
            for verb in (("plan",), ("run", "-d")):
                with self.subTest(table, verb=verb[0]):
                    done = self.at.muster(*verb, self.spec("wrong", table), code=code)
                    self.assertIn(words, done.err)
        self.assertEqual(
            self.at.muster("ps", "-a", "-o", "name", code=0).out, "", "nothing was submitted"
        )


class Groups(Tables):
    """Cards of a 910 server: what HCCL would refuse is never chosen."""

    SPEC = "name: {name}\nengine: mindformers\nlaunch: {{config: a.yaml}}\nresources: {{devices: {devices}, type: {type}}}\nsuccess: exit0\nrecovery: {{max_restarts: 0}}\n"

    def run_job(self, name, devices, code, kind="ascend"):
        return self.at.muster(
            "run",
            "-q",
            self.at.spec(self.SPEC.format(name=name, devices=devices, type=kind), name + ".yaml"),
            "--timeout",
            "60s",
            code=code,
        )

    def test_two_cards_of_one_group(self):
        self.at.controller()
        self.cards("n0", [f"id={i} type=ascend910 address=192.168.0.{i}" for i in (0, 4, 5, 6)])
        self.at.write("run_mindformer.py", SAY)
        self.run_job("pair", 2, 0)
        self.assertEqual(
            [
                device["device_id"]
                for device in json.loads(self.at.muster("ranktable", "show", "pair", code=0).out)[
                    "server_list"
                ][0]["device"]
            ],
            ["4", "5"],
        )
        self.assertIn(
            "need 1 node with 4 devices of one group (0-3 or 4-7) of type 'ascend'; 0 of 1 registered node could do: 'n0' has 1+3 ascend910",
            self.run_job("four", 4, 2).err,
        )
        self.assertIn(
            "'n0' cannot give them: 3 devices; on 910 a server takes part with 1, 2, 4 or 8",
            self.run_job("three", 3, 2).err,
        )
        self.assertIn(
            "resources.devices: 3 devices; on 910 a server takes part with 1, 2, 4 or 8",
            self.run_job("three", 3, 64, "ascend910").err,
        )
        self.assertIn(
            "resources.devices: 4 devices out of both groups of a 910 server",
            self.run_job("across", "'[2,6)'", 64, "ascend910").err,
        )


if __name__ == "__main__":
    unittest.main()
