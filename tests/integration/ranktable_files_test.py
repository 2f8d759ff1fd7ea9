#!/usr/bin/python3
"""`muster ranktable merge`, `convert` and `check`: tables of others, sound and hostile, and every sentence about them.

The sentences are in tests/golden/ranktable-files.txt.  Run:  /usr/bin/python3 tests/integration/ranktable_files_test.py [--rewrite] [-v] [CASE]
"""

import itertools
import json
import os

import ranktable_verbs
from ranktable_verbs import HOSTS, RankTable, bytes_of, cloud, table

GOLDEN = ranktable_verbs.sentences("ranktable-files.txt", "ranktable_files_test.py")


class Sentences(RankTable):
    golden = GOLDEN


class Merge(Sentences):
    def test_the_order_is_that_of_the_arguments(self):
        names = ["10.0.0.9", "10.0.0.10", "10.0.0.11"]
        files = [
            self.put(
                f"{name}.json",
                table([(name, [(0, f"192.1.1.{n + 1}", 0), (1, f"192.1.2.{n + 1}", 1)])]),
            )
            for n, name in enumerate(names)
        ]
        for order in itertools.permutations(range(3)):
            done = self.run_verb("merge", *(files[n] for n in order), "-o", "-")
            made = json.loads(done.out)
            self.assertEqual(
                [s["server_id"] for s in made["server_list"]], [names[n] for n in order]
            )
            self.assertEqual(
                [d["rank_id"] for s in made["server_list"] for d in s["device"]],
                [str(r) for r in range(6)],
            )
            self.assertEqual(bool(done.err), order == (1, 2, 0), done.err)
        self.check_output("merge: in a wildcard's order", self.run_verb("merge", *sorted(files)), 0)

    def test_merging_again_and_keys_of_others(self):
        one = table([("a", [(0, "192.1.1.1", 0)])])
        one["server_list"][0].update(
            host_nic_ip="reserve", hardware_type="x", levels=[1, {"a": None}]
        )
        one["server_list"][0]["device"][0]["device_port"] = "16667"
        two = table([("b", [(0, "192.1.1.2", 0)])])
        first = self.run_verb("merge", self.put("1.json", one), self.put("2.json", two)).out.strip()
        again = json.loads(
            self.run_verb(
                "merge", first, self.put("3.json", table([("c", [(0, "192.1.1.3", 0)])])), "-o", "-"
            ).out
        )
        self.assertEqual(again["server_count"], "3")
        self.assertEqual(
            [d["rank_id"] for s in again["server_list"] for d in s["device"]], ["0", "1", "2"]
        )
        self.assertEqual(again["server_list"][0]["levels"], [1, {"a": None}])
        self.assertEqual(again["server_list"][0]["device"][0]["device_port"], "16667")

    def test_ranks_of_an_input_keep_their_order(self):
        # Ranks of a file need not stand in order, and stay as they are: theirs would turn them round.
        done = self.run_verb(
            "merge",
            self.put("1.json", table([("a", [(0, "192.1.1.1", 1), (1, "192.1.1.2", 0)])])),
            self.put("2.json", table([("b", [(0, "192.1.1.3", 1), (1, "192.1.1.4", 0)])])),
            "-o",
            "-",
        )
        self.assertEqual(
            [
                (d["device_id"], d["rank_id"])
                for s in json.loads(done.out)["server_list"]
                for d in s["device"]
            ],
            [("0", "1"), ("1", "0"), ("0", "3"), ("1", "2")],
        )

    def test_what_is_wrong(self):
        good = self.put("good.json", table([("a", [(0, "192.1.1.1", 0)])]))
        pods = self.put("hosts.yaml", HOSTS)
        for title, content, code in (
            ("the same server twice", table([("a", [(0, "192.1.1.2", 0)])]), 64),
            ("the same address twice", table([("b", [(0, "192.1.1.1", 0)])]), 64),
            ("not completed", table([("b", [(0, "192.1.1.2", 0)])], status="initializing"), 2),
            (
                "several problems",
                {**table([("b", [(0, "x", 1), (1, "192.1.1.2", 1)])]), "server_count": "3"},
                64,
            ),
            ("a group list", cloud([("p-0", "b", [(0, "192.1.1.2")])]), 64),
            (
                "another version",
                self.run_verb("generate", "--hosts", pods, "--version", "1.2", "-o", "-").out,
                64,
            ),
            (
                "version 2.0",
                {"status": "completed", "version": "2.0", "rank_count": 1, "rank_list": []},
                64,
            ),
            ("no JSON", "{", 64),
        ):
            with self.subTest(title):
                self.check_output(
                    "merge: " + title,
                    self.run_verb(
                        "merge", good, self.put("other.json", content), "-o", "-", code=None
                    ),
                    code,
                )
        self.check_output(
            "merge: one file twice", self.run_verb("merge", good, good, "-o", "-", code=None), 64
        )
        self.check_output(
            "merge: a file that is not there",
            self.run_verb("merge", good, self.at.path("none.json"), "-o", "-", code=None),
            64,
        )
        self.check_output("merge: nothing", self.run_verb("merge", code=None), 64)
        self.check_output(
            "merge: uneven servers",
            self.run_verb(
                "merge",
                good,
                self.put("two.json", table([("b", [(0, "192.1.1.2", 0), (1, "192.1.1.3", 1)])])),
            ),
            0,
        )


class Convert(Sentences):
    PODS = [
        ("ma-job-worker-10", "10.0.0.3", [(0, "192.1.3.1"), (1, "192.1.3.2")]),
        ("ma-job-worker-2", "10.0.0.2", [(1, "192.1.2.2"), (0, "192.1.2.1")]),
        ("ma-job-worker-0", "10.0.0.9", [(0, "192.1.9.1"), (1, "192.1.9.2")]),
    ]

    def test_the_launchers_order_and_bytes(self):
        done = self.run_verb("convert", self.put("jobstart_hccl.json", cloud(self.PODS)), "-o", "-")
        self.assertEqual(done.err, "")
        servers = [
            ("10.0.0.9", [(0, "192.1.9.1", 0), (1, "192.1.9.2", 1)]),
            ("10.0.0.2", [(1, "192.1.2.2", 2), (0, "192.1.2.1", 3)]),
            ("10.0.0.3", [(0, "192.1.3.1", 4), (1, "192.1.3.2", 5)]),
        ]
        made = table(servers)
        wanted = {key: made[key] for key in ("status", "version", "server_count", "server_list")}
        self.assertEqual(done.out, json.dumps(wanted))

    def test_the_directory_and_where_it_goes(self):
        self.put("w/jobstart_hccl.json", cloud(self.PODS))
        path = self.run_verb("convert", self.at.path("w")).out.strip()
        self.assertEqual(path, self.at.path("hccl_3s_6p.json"))
        self.assertEqual(
            self.run_verb("check", path).out,
            f"{path}: acceptable: version 1.0, 3 servers, 6 ranks\n",
        )
        self.assertEqual(
            self.run_verb(
                "convert", "-", "-o", "-", stdin=json.dumps(cloud(self.PODS))
            ).out.encode(),
            bytes_of(path),
        )

    def test_pods_of_one_server_are_one_server(self):
        pods = [
            ("p-0", "a", [(0, "192.1.1.1")]),
            ("p-1", "b", [(0, "192.1.2.1")]),
            ("p-2", "a", [(1, "192.1.1.2")]),
        ]
        done = self.run_verb("convert", self.put("jobstart_hccl.json", cloud(pods)), "-o", "-")
        self.assertEqual(
            [
                (s["server_id"], [d["rank_id"] for d in s["device"]])
                for s in json.loads(done.out)["server_list"]
            ],
            [("a", ["0", "2"]), ("b", ["1"])],
        )
        done.out = "(a table)\n"
        self.check_output("convert: pods of one server apart", done, 0)

    def test_what_is_wrong(self):
        for title, content, code in (
            ("not completed", cloud(self.PODS, status="initializing"), 2),
            ("a table of version 1.0", table([("a", [(0, "192.1.1.1", 0)])]), 64),
            ("a pod without a number", cloud([("master", "a", [(0, "192.1.1.1")])]), 64),
            (
                "a pod twice",
                cloud([("p-0", "a", [(0, "192.1.1.1")]), ("p-0", "b", [(0, "192.1.1.2")])]),
                64,
            ),
            ("counts that are wrong", cloud(self.PODS, group_count="2"), 64),
            ("numbers for strings", cloud(self.PODS, group_count=1), 64),
            (
                "one address twice",
                cloud([("p-0", "a", [(0, "192.1.1.1")]), ("p-1", "b", [(0, "192.1.1.1")])]),
                64,
            ),
            ("no groups", {"status": "completed", "group_count": "0", "group_list": []}, 64),
            ("a list", [], 64),
        ):
            with self.subTest(title):
                self.check_output(
                    "convert: " + title,
                    self.run_verb(
                        "convert", self.put("jobstart_hccl.json", content), "-o", "-", code=None
                    ),
                    code,
                )
        self.check_output(
            "convert: a directory without it",
            self.run_verb("convert", self.at.path("w"), code=None),
            64,
        )


class Check(Sentences):
    GOOD = table(
        [
            ("a", [(0, "192.1.1.1", 0), (1, "192.1.1.2", 1)]),
            ("b", [(0, "192.1.2.1", 2), (1, "192.1.2.2", 3)]),
        ]
    )

    def check(self, content, *args, **options):
        return self.run_verb("check", self.put("hccl.json", content), *args, **options)

    def changed(self, change):
        content = json.loads(json.dumps(self.GOOD))
        change(content)
        return content

    def test_exit_codes(self):
        self.check(self.GOOD, code=0)
        self.check(self.changed(lambda t: t.update(status="initializing")), code=2)
        self.check(self.changed(lambda t: t.update(server_count="3")), code=64)
        self.assertEqual(
            self.run_verb("check", "-", stdin=json.dumps(self.GOOD)).out,
            "<stdin>: acceptable: version 1.0, 2 servers, 4 ranks\n",
        )

    def test_text(self):
        def device(server, number, **keys):
            return lambda t: t["server_list"][server]["device"][number].update(keys)

        def both(*changes):
            return lambda t: [change(t) for change in changes]

        for title, content, args, code in (
            ("acceptable", self.GOOD, (), 0),
            ("not completed", self.changed(lambda t: t.update(status="initializing")), (), 2),
            (
                "several problems",
                self.changed(
                    both(
                        device(1, 1, rank_id="7"),
                        device(0, 1, device_ip="192.1.2.1"),
                        lambda t: t.update(server_count="9"),
                    )
                ),
                (),
                64,
            ),
            ("a number for a string", self.changed(device(0, 0, device_id=0)), (), 64),
            (
                "without a version",
                {key: value for key, value in self.GOOD.items() if key != "version"},
                (),
                64,
            ),
            (
                "one server of three on a 910",
                self.changed(lambda t: t["server_list"][1]["device"].pop()),
                ("--chip", "910"),
                64,
            ),
            (
                "one server of three",
                self.changed(both(lambda t: t["server_list"][1]["device"].pop())),
                (),
                0,
            ),
            (
                "a group list of uneven servers",
                cloud(
                    [
                        ("p-0", "a", [(0, "192.1.1.1")]),
                        ("p-1", "b", [(0, "192.1.1.2"), (1, "192.1.1.3")]),
                    ]
                ),
                (),
                64,
            ),
            (
                "a group list of even servers",
                cloud([("p-0", "a", [(0, "192.1.1.1")]), ("p-1", "b", [(0, "192.1.1.2")])]),
                (),
                0,
            ),
            ("version 2.0", {"status": "completed", "version": "2.0"}, (), 64),
            (
                "signs of a terminal",
                self.changed(lambda t: t["server_list"][1].update(server_id="a\x1b[31m" * 12)),
                (),
                64,
            ),
        ):
            with self.subTest(title):
                done = self.check(content, *args, code=None)
                self.assertEqual(done.err, "")
                self.check_output("check: " + title, done, code)

    def test_hundreds_of_problems_are_counted(self):
        done = self.check(table([("a", [(n % 16, "x", n) for n in range(150)])]), code=64)
        self.assertEqual(
            (
                done.out.count("\n"),
                "rejected: 150 problems\n" in done.out,
                done.out.count("  and 50 more\n"),
            ),
            (1 + 100 + 1 + 20, True, 1),
            done.out,
        )

    def test_json(self):
        good = json.loads(self.check(self.GOOD, "-o", "json", code=0).out)
        self.assertEqual(
            {
                key: good[key]
                for key in ("apiVersion", "kind", "verdict", "form", "servers", "ranks", "problems")
            },
            {
                "apiVersion": "muster/v1",
                "kind": "RankTableCheck",
                "verdict": "acceptable",
                "form": "version 1.0",
                "servers": 2,
                "ranks": 4,
                "problems": [],
            },
        )
        bad = self.changed(lambda t: t["server_list"][1]["device"][0].update(rank_id="0"))
        for output in ("json", "jsonl"):
            done = self.check(bad, "-o", output, code=64)
            document = json.loads(done.out)
            self.assertEqual(
                (document["verdict"], [p["where"] for p in document["problems"]], done.err),
                ("rejected", ["server_list[1].device[0].rank_id"], ""),
            )
            self.assertEqual(done.out.count("\n") == 1, output == "jsonl")
        waiting = json.loads(
            self.check(
                self.changed(lambda t: t.update(status="initializing")), "-o", "json", code=2
            ).out
        )
        self.assertEqual((waiting["verdict"], waiting["status"]), ("not completed", "initializing"))
        self.assertIn('verdict: "acceptable"', self.check(self.GOOD, "-o", "yaml").out)
        self.check(self.GOOD, "-o", "name", code=64)

    def test_the_path_counts(self):
        os.mkdir(self.at.path("x.json.d"))
        for name in ("hccl.txt", "x.json.d/hccl.json"):
            with self.subTest(name):
                self.check_output(
                    f"check: the path {name}",
                    self.run_verb("check", self.put(name, self.GOOD), code=None),
                    64,
                )
        os.symlink(self.put("hccl.json", self.GOOD), self.at.path("link.json"))
        self.check_output("check: a link", self.run_verb("check", self.at.path("link.json")), 0)

    def test_hostile_files(self):
        sparse = self.at.path("sparse.json")
        with open(sparse, "wb") as file:
            file.truncate(33 << 20)
        for title, path in (
            ("an empty file", self.put("a.json", "")),
            ("half a file", self.put("b.json", json.dumps(self.GOOD)[:-40])),
            ("depth", self.put("c.json", '{"status":' + "[" * 100_000)),
            (
                "a key twice",
                self.put("d.json", json.dumps(self.GOOD)[:-1] + ', "status": "completed"}'),
            ),
            (
                "NaN",
                self.put("e.json", json.dumps(self.changed(lambda t: t.update(x=float("nan"))))),
            ),
            (
                "a number beyond counting",
                self.put("f.json", json.dumps(self.GOOD)[:-1] + ', "x": 1e999}'),
            ),
            ("a word", self.put("g.json", '"completed"')),
            ("33 MiB of zeros", sparse),
            ("no end", "/dev/zero"),
            ("a directory", self.at.path("w")),
            ("nothing there", self.at.path("none.json")),
        ):
            with self.subTest(title):
                self.check_output("hostile: " + title, self.run_verb("check", path, code=None), 64)
        with open(self.at.path("h.json"), "wb") as file:
            file.write(
                b'{"status": "completed", "version": "1.0", "server_list": [{"server_id": "\xff\xfe"}]}'
            )
        self.assertIn(
            "this is not JSON", self.run_verb("check", self.at.path("h.json"), code=64).out
        )


class Words(Sentences):
    def test_help_and_verbs(self):
        self.assertIn("merge_hccl.py", self.run_verb("merge", "--help").out)
        self.run_verb(code=64)
        self.run_verb("make", code=64)
        self.run_verb("show", code=64)

    def test_no_controller_is_asked(self):
        self.run_verb(
            "check", self.put("hccl.json", Check.GOOD), env={"MUSTER_CONTROLLER": "127.0.0.1:1"}
        )

    def test_what_is_made_is_the_same_everywhere(self):
        here = self.run_verb("generate", "--hosts", self.put("hosts.yaml", HOSTS), "-o", "-")
        there = self.run_verb(
            "generate",
            "--hosts",
            "-",
            "-o",
            "-",
            stdin=HOSTS,
            env={"HOME": "/", "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Shanghai"},
        )
        self.assertEqual(here.out, there.out)


if __name__ == "__main__":
    ranktable_verbs.main(GOLDEN)
