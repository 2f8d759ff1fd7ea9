#!/usr/bin/python3
"""MindFormers by rank table, 16 ranks on two nodes of eight 910B each: a conformance trainer with r0.6's arguments, environment, log lines and checkpoints. It
reads the rank table itself, by HCCL's rules, and wants RANK_ID and DEVICE_ID to agree with it, a working directory of its own, and nothing of another launcher.

r0.6 writes checkpoints in place, takes the newest file of each rank for its resume, and counts steps from the beginning of the epoch after one.

Run:  /usr/bin/python3 -B tests/integration/engines_mindformers_test.py [-v]       (MUSTER_BIN names the binaries' folder)
"""

import functools
import hashlib
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from conformance import state  # noqa: E402
from conformance.harness import SAMPLES, UNHURRIED, EngineTest, configuration, option  # noqa: E402

STEPS = 40  # 4 epochs of 10
CONFIG = "configs/llama2/run_llama2_7b.yaml"


class RankTable(EngineTest):
    ascend = True
    scripts = {"run_mindformer.py": "mindformers-r0.6"}
    files = {CONFIG: configuration(epochs=4, per_epoch=10, ranks=16, save_steps=4),
             "configs/one.yaml": configuration(epochs=1, per_epoch=4, ranks=1, save_steps=2),
             "configs/alone.yaml": configuration(epochs=4, per_epoch=10, ranks=1, save_steps=4),
             "configs/half.yaml": configuration(epochs=1, per_epoch=4, ranks=8, save_steps=2)}  # fmt: skip
    sample = os.path.join(SAMPLES, "mindformers-pretrain/job.yaml")

    @classmethod
    def prepare(cls):
        cls.whole, record = cls.begin("whole", step_ms=5)
        cls.cluster.wait(cls.whole)
        cls.whole_record = record
        cls.expected = record.losses()
        assert sorted(cls.expected) == list(range(1, STEPS + 1)), cls.cluster.story(cls.whole)

    @classmethod
    def begin(cls, name, step_ms=0):
        return cls.from_sample(cls.sample, name, step_ms, {})

    def small(self, name, launch, nodes=2, devices=8, code=None, **spec):
        """Not the sample: another configuration or mode."""
        job, record = self.cluster.job(
            name, "mindformers", code or self.code, launch, nodes=nodes, devices=devices, **spec
        )
        return self.cluster.submit(job), record

    # ---- the table

    def check_tables(self, job, record, attempt):
        """What every rank read is one table, the same bytes on both nodes, and the one that `muster ranktable show` prints."""
        starts = record.starts(attempt)
        paths = {start["env"]["RANK_TABLE_FILE"] for start in starts.values()}
        self.assertEqual(len(paths), 2, paths)  # a place a node
        bytes_of = set()
        for path in paths:
            with open(path, "rb") as file:
                bytes_of.add(file.read())
        self.assertEqual(len(bytes_of), 1)
        table = bytes_of.pop()
        self.assertEqual(
            {start["table"] for start in starts.values()}, {hashlib.sha256(table).hexdigest()}
        )
        self.assertEqual(
            self.cluster.muster(
                "ranktable", "show", job, "--attempt", str(attempt), text=False
            ).out,
            table,
        )
        rows = {}
        for server in json.loads(table)["server_list"]:
            for device in server["device"]:
                rows[int(device["rank_id"])] = (
                    server["server_id"],
                    device["device_id"],
                    device["device_ip"],
                )
        for rank, start in starts.items():
            index = int(start["env"]["MUSTER_NODE"][1:])
            card = int(start["env"]["DEVICE_ID"])
            self.assertEqual(
                rows[rank],
                (f"127.0.0.{index + 1}", str(card), f"192.{card % 4 + 1}.{index + 1}.{card + 10}"),
            )
        return json.loads(table)

    def test_the_table(self):
        table = self.check_tables(self.whole, self.whole_record, 1)
        self.assertEqual(
            (table["version"], table["server_count"], table["status"]), ("1.0", "2", "completed")
        )
        self.assertEqual([len(server["device"]) for server in table["server_list"]], [8, 8])
        self.assertEqual(len({start["cwd"] for start in self.whole_record.starts(1).values()}), 16)

    def test_two_jobs_share_the_hosts(self):
        """Each on half of the cards: DEVICE_ID is the card's own number, and HCCL's 32 ports of one job are not the other's."""
        jobs = {
            cards: self.small(
                f"half-{cards[1]}", {"config": "configs/half.yaml"}, devices=cards, step_ms=150
            )
            for cards in ("[0,4)", "[4,8)")
        }
        bases = {}
        for cards, (job, record) in jobs.items():
            self.cluster.wait(job)
            self.check_tables(job, record, 1)
            starts = [start for _, start in sorted(record.starts(1).items())]
            first = int(cards[1])
            self.assertEqual(
                [start["env"]["DEVICE_ID"] for start in starts],
                [str(first + i) for i in range(4)] * 2,
            )
            self.assertEqual(sorted(record.losses()), [1, 2, 3, 4])
            for start in starts:
                bases.setdefault(start["env"]["MUSTER_NODE"], {}).setdefault(cards, set()).add(
                    int(start["env"]["HCCL_IF_BASE_PORT"])
                )
        for node, of_jobs in bases.items():
            self.assertEqual([len(ports) for ports in of_jobs.values()], [1, 1], (node, of_jobs))
            low, high = sorted(port for ports in of_jobs.values() for port in ports)
            self.assertGreaterEqual(high - low, 32, (node, of_jobs))

    def test_a_table_of_ones_own_with_other_cards_on_each_node(self):
        """Cards 0 to 3 of one node and 4 to 7 of the other, the second node first: hosts, cards and the order of ranks are the table's, and its bytes are."""
        servers = [(2, range(4, 8), 0), (1, range(4), 4)]
        table = {"version": "1.0", "server_count": "2", "status": "completed", "server_list": [
            {"server_id": f"127.0.0.{node}", "host_nic_ip": "reserve", "device": [
                {"device_id": str(card), "device_ip": f"192.{card % 4 + 1}.{node}.{card + 10}", "rank_id": str(first + index)} for index, card in enumerate(cards)]}
            for node, cards, first in servers]}  # fmt: skip
        own = os.path.join(self.cluster.work, "own.json")
        with open(own, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=3)
        job, record = self.cluster.job(
            "own-table", "mindformers", self.code, {"config": "configs/half.yaml"}, step_ms=20
        )
        job["resources"] = {"rank_table": own, "type": "ascend"}
        job = self.cluster.submit(job)
        self.cluster.wait(job)
        self.assertEqual(self.check_tables(job, record, 1), table)
        with open(
            next(iter(record.starts(1).values()))["env"]["RANK_TABLE_FILE"], "rb"
        ) as given, open(own, "rb") as written:
            self.assertEqual(given.read(), written.read())
        cards = {
            rank: (start["env"]["MUSTER_NODE"], start["env"]["RANK_ID"], start["env"]["DEVICE_ID"])
            for rank, start in record.starts(1).items()
        }
        self.assertEqual(
            cards,
            {
                first + index: (f"n{node - 1}", str(first + index), str(card))
                for node, row, first in servers
                for index, card in enumerate(row)
            },
        )
        self.assertEqual(sorted(record.losses()), [1, 2, 3, 4])

    # ---- a fault

    def test_a_killed_rank_costs_an_attempt_and_no_loss(self):
        job, record = self.begin("killed", step_ms=UNHURRIED)
        killed = self.kill_one(job, record, at=14)
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]),
            ("succeeded", 2),
            f"rank {killed} was killed\n{self.cluster.story(job)}",
        )
        self.check_blame(job, killed)
        self.assertEqual(record.losses(), self.expected)
        self.check_tables(job, record, 2)
        step = self.resumed_step(record, shown)
        self.assertIn(step, (4, 8, 12, 16, 20))
        first, second = record.starts(1), record.starts(2)
        self.assertEqual((sorted(first), sorted(second)), ([*range(16)], [*range(16)]))
        for rank, start in second.items():
            argv, env = start["argv"], start["env"]
            self.assertIsNone(option(first[rank]["argv"], "--resume_training"))
            self.assertEqual(
                (
                    option(argv, "--resume_training"),
                    option(argv, "--run_mode"),
                    option(argv, "--use_parallel"),
                ),
                ("True", "train", "True"),
            )
            self.assertEqual(option(argv, "--load_checkpoint"), env["MUSTER_RESUME_DIR"])
            self.assertEqual(env["LOCAL_DEFAULT_PATH"], env["MUSTER_SAVE_DIR"])
            self.assertEqual((env["RANK_ID"], env["RANK_SIZE"]), (str(rank), "16"))
            self.assertNotEqual(start["cwd"], first[rank]["cwd"])
        self.assertIn(step, self.kept_checkpoints(job, 1))
        self.assertEqual(self.kept_checkpoints(job, 2)[-1], STEPS)

    def test_status_0_before_the_last_step_is_not_the_end(self):
        job, record = self.from_sample(self.sample, "left", 0, {}, env={"CONFORMANCE_LEAVE": "14"})
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]), ("succeeded", 2), self.cluster.story(job)
        )
        ends = [
            event["text"] for event in self.cluster.events(job) if event["type"] == "attempt-ended"
        ]
        self.assertIn(f"every rank ended with status 0 after step 14 of {STEPS}", ends[0])
        self.assertEqual(self.resumed_step(record, shown), 12)
        self.assertEqual(record.losses(), self.expected)

    def test_killed_while_files_are_written_in_place(self):
        self.check_torn(
            functools.partial(self.small, "torn", {"config": CONFIG}),
            torn=12,
            before=8,
            expected=self.expected,
        )

    def test_killed_in_the_middle_of_a_save_of_another_release(self):
        """r0.8 writes in place as r0.6 does, and weights alone beside it; r1.3 on, every rank reads its counters from rank 0's file; r1.5 has another
        format of the files, r1.8 another tree."""
        saver, shared = "CheckpointMonitor", {"SHARED_PATHS": self.cluster.dir}
        make = functools.partial(configuration, epochs=4, per_epoch=10, ranks=16, save_steps=4)
        for release, name, config, env in (
            ("r0.8", "of-08", make(), {}),
            ("r1.3", "of-13", make(saver=saver), shared),
            ("r1.5", "of-15", make(saver=saver), {}),
            (
                "r1.5",
                "of-15-safe",
                make(saver=f"{saver}\n    checkpoint_format: safetensors")
                + "load_ckpt_format: safetensors\n",
                shared,
            ),
            ("r1.8", "of-18-new", make(saver=saver) + "use_legacy_format: False\n", shared),
        ):
            with self.subTest(name):
                code = self.cluster.code(
                    {"run_mindformer.py": f"mindformers-{release}"}, {CONFIG: config}
                )

                def begin(env, name=name, code=code, more=env):
                    return self.small(name, {"config": CONFIG}, code=code, env={**more, **env})

                job, record = self.check_torn(begin, torn=12, before=8, expected=self.expected)
                progress = self.progress(job)
                if release != "r0.8":  # which counts from the beginning of the epoch after a resume
                    self.assertEqual(
                        (progress["step"], progress["total"]), (STEPS, STEPS), progress
                    )
                self.assertEqual(self.kept_checkpoints(job, 2)[-1], STEPS)
                argv = record.starts(2)[0]["argv"]
                self.assertEqual(
                    (option(argv, "--resume_training"), option(argv, "--auto_trans_ckpt")),
                    ("True", "False"),
                )

    def test_a_directory_that_two_runs_have_saved_into(self):
        """The second one's files have another prefix, and are the newer ones; the job gets them under the plain one."""
        kept = os.path.join(self.cluster.work, "kept")
        for name, epochs in (("first", 1), ("second", 2)):
            config = configuration(
                epochs=epochs,
                per_epoch=10,
                ranks=16,
                save_steps=4,
                saver=f'CheckpointMointor\n    directory: "{kept}"',
            )
            code = self.cluster.code(self.scripts, {CONFIG: config})
            self.cluster.wait(self.small(name, {"config": CONFIG}, code=code, resume="none")[0])
        saved = os.listdir(os.path.join(kept, "checkpoint", "rank_3"))
        self.assertEqual(
            [
                name in saved
                for name in ("llama2_7b_rank_3-5_2.ckpt", "llama2_7b_rank_3_1-10_2.ckpt")
            ],
            [True, True],
            saved,
        )
        job, record = self.small(
            "third", {"config": CONFIG}, start={"from": kept, "as": "resume", "step": 20}
        )
        self.cluster.wait(job)
        self.assertEqual(
            {event["step"] for event in record.events("loaded", 1).values()},
            {20},
            self.cluster.story(job),
        )
        self.assertEqual(
            record.losses(), {step: loss for step, loss in self.expected.items() if step > 20}
        )
        links = os.path.join(record.starts(1)[3]["env"]["MUSTER_RESUME_DIR"], "rank_3")
        self.assertEqual(
            os.readlink(os.path.join(links, "llama2_7b_rank_3-10_2.ckpt")),
            os.path.join(kept, "checkpoint/rank_3/llama2_7b_rank_3_1-10_2.ckpt"),
        )

    def test_one_rank_needs_no_table(self):
        job, record = self.small(
            "alone", {"config": "configs/alone.yaml"}, nodes=1, devices=1, step_ms=20
        )
        self.kill_one(job, record, at=14)
        self.cluster.wait(job)
        shown = self.cluster.show(job)
        self.assertEqual(
            (shown["phase"], shown["attempt"]), ("succeeded", 2), self.cluster.story(job)
        )
        self.resumed_step(record, shown)
        self.assertEqual(
            sorted(record.losses()), list(range(1, STEPS + 1))
        )  # and the attempts agree about each
        start = record.starts(2)[0]
        self.assertEqual(option(start["argv"], "--use_parallel"), "False")
        self.assertNotIn("RANK_TABLE_FILE", start["env"])

    # ---- what is no training

    def test_predict_and_eval_succeed_without_a_step(self):
        for mode, args in (
            ("predict", ["--predict_data", "I love Beijing, because"]),
            ("eval", []),
        ):
            with self.subTest(mode):
                job, record = self.small(
                    mode,
                    {"config": "configs/one.yaml", "mode": mode, "args": args},
                    nodes=1,
                    devices=1,
                )
                self.cluster.wait(job)
                self.assertEqual(self.cluster.show(job)["phase"], "succeeded")
                start = record.starts(1)[0]
                self.assertEqual(
                    (option(start["argv"], "--run_mode"), option(start["argv"], "--use_parallel")),
                    (mode, "False"),
                )
                self.assertEqual(option(start["argv"], "--device_id"), start["env"]["DEVICE_ID"])
                self.assertEqual(record.losses(), {})

    def test_finetune_takes_weights_once(self):
        weights = os.path.join(self.cluster.work, "llama2_7b.ckpt")
        with open(weights, "wb") as file:
            file.write(state.ckpt_bytes({"weights": f"{state.mix(5):016x}"}, []))
        job, record = self.small(
            "finetune",
            {"config": CONFIG, "mode": "finetune", "args": ["--load_checkpoint", weights]},
            step_ms=UNHURRIED,
        )
        self.kill_one(job, record, at=14)
        self.cluster.wait(job)
        self.assertEqual(self.cluster.show(job)["attempt"], 2, self.cluster.story(job))
        self.assertEqual(
            {event["source"] for event in record.events("loaded", 1).values()}, {weights}
        )
        self.resumed_step(record, None)
        self.assertEqual(sorted(record.losses()), list(range(1, STEPS + 1)))
        self.assertNotEqual(record.losses(), self.expected)

    # ---- the user's own faults

    def refused(self, name, words, status, launch, **spec):
        job, record = self.small(name, launch, **spec)
        self.check_refused(job, record, words, status)

    def test_a_lone_backslash(self):
        self.refused(
            "backslash",
            "ValueError: input arg key-values are not in pair",
            1,
            {"config": CONFIG, "args": ["\\"]},
        )

    def test_a_release_that_takes_none_of_it(self):
        """r0.3's run_mindformer.py knows neither an output directory nor a resume: it refuses the first argument that it does not know."""
        code = self.cluster.code({"run_mindformer.py": "mindformers-r0.3"}, self.files)
        self.refused(
            "old",
            "run_mindformer.py: error: unrecognized arguments: --output_dir",
            2,
            {"config": CONFIG},
            code=code,
        )


if __name__ == "__main__":
    unittest.main()
