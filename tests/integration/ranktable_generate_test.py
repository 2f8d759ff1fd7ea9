#!/usr/bin/python3
"""`muster ranktable generate`: the vendor tools' options and bytes, hostile card tools, lists of hosts, where the table goes, and every sentence about it.

The sentences are in tests/golden/ranktable-generate.txt.  Run:  /usr/bin/python3 tests/integration/ranktable_generate_test.py [--rewrite] [-v] [CASE]
"""

import json
import os
import stat

from cluster import DEADLINE, ROOT
import ranktable_verbs
from ranktable_verbs import HOSTS, RankTable, bytes_of

GOLDEN = ranktable_verbs.sentences("ranktable-generate.txt", "ranktable_generate_test.py")
TABLES = os.path.join(ROOT, "tests/unit/ranktable/golden")


class Sentences(RankTable):
    golden = GOLDEN


class LikeTheVendorsTools(Sentences):
    def cases(self):
        with open(os.path.join(TABLES, "cases.json"), encoding="utf-8") as file:
            return json.load(file)["cases"]

    def test_every_table_of_theirs_byte_for_byte(self):
        for case in self.cases():
            expected = bytes_of(os.path.join(TABLES, case["expected_file"]))
            for source in ("tool", "file"):
                with self.subTest(case["id"], addresses=source):
                    folder = self.at.path("w", case["id"] + source)
                    os.mkdir(folder)
                    files = []
                    for host in case["hosts"]:
                        conf = self.put(
                            "hccn.conf",
                            "".join(
                                f"netmask_{d}=255.255.255.0\naddress_{d}={ip}\n"
                                for d, ip in host["device_ips"].items()
                            ),
                        )
                        if source == "tool":
                            self.good_tool(host["device_ips"])
                        elif os.path.exists(os.path.join(self.bin, "hccn_tool")):
                            os.unlink(os.path.join(self.bin, "hccn_tool"))
                        args = [
                            "--server_ip",
                            host["server_id"],
                            "--device_num",
                            host["device_range"],
                            "--device_num_per_node",
                            host["device_num_per_node"],
                        ]
                        done = self.generate(
                            *args,
                            "--hccn-conf",
                            self.conf if source == "tool" else conf,
                            "-o",
                            folder,
                        )
                        files.append(done.out.strip())
                        self.assertEqual(done.err, "")
                        self.assertEqual(
                            self.generate(
                                *args,
                                "--hccn-conf",
                                self.conf if source == "tool" else conf,
                                "-o",
                                "-",
                            ).out.encode(),
                            bytes_of(files[-1]),
                        )
                    if case["kind"] == "merge":
                        self.assertEqual(
                            [os.path.basename(name) for name in files], case["merge_arguments"]
                        )
                        files = [self.run_verb("merge", *files, "-o", folder + "/").out.strip()]
                    self.assertEqual(files, [os.path.join(folder, case["tool_file_name"])])
                    self.assertEqual(bytes_of(files[0]), expected)
                    self.assertEqual(
                        self.run_verb("merge", files[0], "-o", "-").out.encode(), expected
                    )
                    self.assertEqual(self.run_verb("check", files[0]).err, "")

    def test_their_default_is_the_current_directory(self):
        self.good_tool({d: f"192.1.1.{d + 1}" for d in range(8)})
        done = self.generate("--server-ip", "n1")
        self.assertEqual(done.out, self.at.path("hccl_8p_01234567_n1.json") + "\n")
        merged = self.run_verb("merge", "hccl_8p_01234567_n1.json")
        self.assertEqual(merged.out, self.at.path("hccl_1s_8p.json") + "\n")
        self.assertEqual(
            bytes_of(self.at.path("hccl_1s_8p.json")),
            bytes_of(self.at.path("hccl_8p_01234567_n1.json")),
        )

    def test_without_server_ip_it_is_an_address_of_this_machine_that_others_can_use(self):
        self.good_tool({0: "192.1.1.1"})
        done = self.generate("--device-num", "[0,1)", "-o", "-", code=None)
        if done.code == 0:
            self.assertNotRegex(json.loads(done.out)["server_list"][0]["server_id"], r"^127\.|^$")
        else:  # a machine without a name and without a route
            self.assertEqual(done.code, 64)
            self.assertIn("give --server-ip", done.err)

    def test_remapped_devices_get_their_own_addresses(self):
        # Theirs asks hccn_tool for the logic number, and fails.
        self.good_tool({d: f"192.1.1.{d}" for d in (4, 5, 6, 7)})
        done = self.generate(
            "--server-ip",
            "n1",
            "--device-num",
            "[0,2)",
            "--visible-devices",
            "4,5,6,7",
            "-o",
            self.at.path("w"),
        )
        self.assertEqual(os.path.basename(done.out.strip()), "hccl_2p_01_n1.json")
        devices = json.loads(bytes_of(done.out.strip()))["server_list"][0]["device"]
        self.assertEqual(
            [(d["device_id"], d["device_ip"], d["rank_id"]) for d in devices],
            [("4", "192.1.1.4", "0"), ("5", "192.1.1.5", "1")],
        )

    def test_sixteen_devices_need_no_list(self):
        self.good_tool({d: f"192.1.1.{d + 1}" for d in range(16)})
        done = self.generate(
            "--server-ip",
            "n1",
            "--device-num",
            "[0,16)",
            "--device-num-per-node",
            "16",
            "-o",
            self.at.path("w"),
        )
        self.assertEqual(
            os.path.basename(done.out.strip()), "hccl_16p_0123456789101112131415_n1.json"
        )

    def test_ranges(self):
        self.good_tool({d: f"192.1.1.{d + 1}" for d in range(16)})
        for title, args, code in (
            ("a range with a square bracket at its end", ("[0,4]",), 0),
            ("a range of three devices", ("[0,3)",), 0),
            ("a range across the groups", ("[2,8)",), 64),
            (
                "a range across the groups, for a chip without groups",
                ("[2,8)", "--chip", "910b"),
                0,
            ),
            ("a range of three devices, for a 910", ("[0,3)", "--chip", "910"), 64),
            ("a range without devices", ("[3,3)",), 64),
            ("a range behind the last device", ("[0,16)",), 64),
            ("a range in other words", ("0-7",), 64),
            ("a range behind the visible devices", ("[2,4)", "--visible-devices", "6,7"), 64),
            ("a list of visible devices with words", ("[0,2)", "--visible-devices", "all"), 64),
            ("unequal halves of sixteen", ("[4,16)", "--device-num-per-node", "16"), 0),
        ):
            with self.subTest(title):
                done = self.generate(
                    "--server-ip", "n1", "--device-num", *args, "-o", "-", code=None
                )
                if code == 0:
                    self.assertEqual(json.loads(done.out)["status"], "completed")
                    done.out = "(a table)\n"
                self.check_output(title, done, code)

    def test_other_options(self):
        self.good_tool({0: "192.1.1.1"})
        for title, args in (
            (
                "a server id that would be a path",
                ("--server-ip", "../../etc/x", "--device-num", "[0,1)"),
            ),
            ("a server id that is too long", ("--server-ip", "n" * 65, "--device-num", "[0,1)")),
            ("more devices than servers have", ("--device-num-per-node", "17")),
            (
                "version 1.2 of one server",
                ("--version", "1.2", "--server-ip", "n1", "--device-num", "[0,1)"),
            ),
            ("a version that is none", ("--version", "3", "--server-ip", "n1")),
            (
                "a time-out that is none",
                ("--tool-timeout", "soon", "--server-ip", "n1", "--device-num", "[0,1)"),
            ),
        ):
            with self.subTest(title):
                self.check_output(title, self.run_verb("generate", *args, "-o", "-", code=None), 64)


class Addresses(Sentences):
    """hccn_tool is somebody else's program, and its file may be anything."""

    def two(self, *args, **options):
        return self.generate(
            "--server-ip", "n1", "--device-num", "[0,2)", *args, "-o", "-", **options
        )

    def good_conf(self):
        return self.put("hccn.conf", "address_0=192.1.1.1\naddress_1=192.1.1.2\n")

    def test_no_source_at_all(self):
        self.check_output("no hccn_tool and no file", self.two(code=None), 64)

    def test_what_is_no_answer(self):
        lots = (
            "i=0; while [ $i -lt 3000 ]; do echo ipaddr:192.1.1.1ipaddr:192.1.1.1; i=$((i+1)); done"
        )
        for title, script in (
            ("a tool that fails", "echo ipaddr:192.1.1.1; exit 7"),
            ("a tool that is killed", "kill -SEGV $$"),
            ("a tool that prints nothing", "exit 0"),
            ("a tool that prints something else", "echo 'Error: device 1 has no address'; exit 0"),
            ("a tool that prints too much", lots),
            (
                "a tool that knows one device only",
                '[ "$2" = 0 ] && echo ipaddr:192.9.9.9 && exit 0; echo "no address"',
            ),
        ):
            with self.subTest(title):
                self.tool("#!/bin/sh\n" + script + "\n")
                self.check_output(title + ", and no file", self.two(code=None), 64)
                done = self.two("--hccn-conf", self.good_conf())
                self.assertEqual(
                    [d["device_ip"] for d in json.loads(done.out)["server_list"][0]["device"]],
                    ["192.1.1.1", "192.1.1.2"],
                )  # never mixed
                done.out = "(a table)\n"
                self.check_output(title, done, 0)

    def test_a_tool_that_cannot_be_executed(self):
        self.tool("#!/bin/none\n")
        self.two(code=64)
        os.chmod(os.path.join(self.bin, "hccn_tool"), 0o644)
        self.two("--hccn-conf", self.good_conf(), code=0)

    def test_a_tool_that_hangs_is_ended_with_its_children(self):
        self.tool("#!/bin/sh\ntail -f /dev/null &\nwait\n")
        self.check_output("a tool that hangs", self.two("--tool-timeout", "100ms", code=None), 64)
        self.nothing_left()

    def test_a_tool_that_leaves_a_child_behind(self):
        self.tool('#!/bin/sh\ntail -f /dev/null &\necho "ipaddr:192.1.1.$((1 + $2))"\n')
        done = self.two()
        self.assertEqual(
            [d["device_ip"] for d in json.loads(done.out)["server_list"][0]["device"]],
            ["192.1.1.1", "192.1.1.2"],
        )
        self.assertEqual(done.err, "")
        self.nothing_left()

    def test_the_tool_gets_no_shell(self):
        # A directory of PATH with blanks and signs of a shell in its name.
        folder = self.at.path("bin; touch pwned $(touch pwned)")
        os.mkdir(folder)
        self.bin = folder
        self.path = folder + ":/usr/bin:/bin"
        self.good_tool({0: "192.1.1.1", 1: "192.1.1.2"})
        self.two(code=0, env={"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"})
        self.assertFalse(os.path.exists(self.at.path("pwned")))

    def test_files(self):
        for title, text in (
            ("a file without the device", "address_0=192.1.1.1\n"),
            (
                "a file with two addresses of one device",
                "address_0=192.1.1.1\naddress_0=192.1.1.9\n",
            ),
            ("a file with an address that is none", "address_0=192.1.1.1\naddress_1=none\n"),
            ("an empty file", ""),
            ("a file with one address twice", "address_0=192.1.1.1\naddress_1=192.1.1.1\n"),
        ):
            with self.subTest(title):
                self.check_output(
                    "addresses: " + title,
                    self.two("--hccn-conf", self.put("hccn.conf", text), code=None),
                    64,
                )
        self.check_output(
            "addresses: a directory", self.two("--hccn-conf", self.at.dir, code=None), 64
        )
        self.check_output(
            "addresses: a file without an end", self.two("--hccn-conf", "/dev/zero", code=None), 64
        )


class Output(Sentences):
    def setUp(self):
        super().setUp()
        self.good_tool({0: "192.1.1.1"})

    def one(self, *args, **options):
        return self.generate("--server-ip", "n1", "--device-num", "[0,1)", *args, **options)

    def test_a_file_that_appears_whole_and_readable_for_all(self):
        path = self.at.path("w", "hccl.json")
        old = os.umask(0o077)
        try:
            self.assertEqual(self.one("-o", path).out, path + "\n")
        finally:
            os.umask(old)
        first = bytes_of(path)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o644)
        self.assertEqual(os.listdir(self.at.path("w")), ["hccl.json"])
        with open(path, "rb") as reader:
            # A new one takes its place; who has the old one open reads it to its end.
            self.good_tool({0: "192.1.1.2"})
            self.one("-o", "w/hccl.json")
            self.assertEqual(reader.read(), first)
        self.assertIn(b"192.1.1.2", bytes_of(path))
        self.assertEqual(os.listdir(self.at.path("w")), ["hccl.json"])

    def test_a_link_is_replaced_and_not_followed(self):
        target = self.put("target.json", "mine")
        os.symlink(target, self.at.path("w", "hccl.json"))
        self.one("-o", "w/hccl.json")
        self.assertEqual(bytes_of(target), b"mine")
        self.assertFalse(os.path.islink(self.at.path("w", "hccl.json")))

    def test_standard_output_gets_the_table_and_nothing_else(self):
        done = self.one("-o", "-")
        self.assertEqual(done.err, "")
        self.assertTrue(done.out.startswith('{\n    "version": "1.0",'))
        self.assertTrue(done.out.endswith('"status": "completed"\n}'))
        self.assertEqual(os.listdir(self.at.path("w")), [])

    def test_places_that_are_none(self):
        os.mkdir(self.at.path("x.json.d"))
        os.mkdir(self.at.path("w", "dir.json"))
        for title, where in (
            ("a directory that HCCL cannot read from", "x.json.d"),
            ("a name that HCCL does not open", "w/table.txt"),
            ("a directory that is not there", "none/"),
            ("a folder of the file that is not there", "none/x.json"),
        ):
            with self.subTest(title):
                self.check_output("output: " + title, self.one("-o", where, code=None), 64)
        done = self.one("-o", "w/dir.json", code=64)
        self.assertIn("'.json'", done.err)  # hccl_...json below dir.json
        self.assertEqual(os.listdir(self.at.path("w", "dir.json")), [])

    def test_a_full_disk(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            process = self.at.popen(
                "ranktable",
                "generate",
                "--hosts",
                self.put(
                    "h.yaml",
                    "hosts: [{server_id: a, devices: [{device_id: 0, device_ip: 1.1.1.1}]}]",
                ),
                "-o",
                "-",
                stdout=full,
            )
            _, err = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 70)
        self.assertEqual(err, "muster: writing to standard output: No space left on device\n")


class Hosts(Sentences):
    def of(self, text, *args, **options):
        return self.run_verb("generate", "--hosts", self.put("hosts.yaml", text), *args, **options)

    def test_version_1_0(self):
        done = self.of(HOSTS, "-o", "-")
        made = json.loads(done.out)
        self.assertEqual(list(made), ["version", "server_count", "server_list", "status"])
        self.assertEqual(
            [list(server) for server in made["server_list"]],
            [["server_id", "device", "host_nic_ip"]] * 2,
        )
        self.assertEqual(
            [d["rank_id"] for s in made["server_list"] for d in s["device"]], ["0", "1", "2", "3"]
        )
        self.assertEqual(
            list(made["server_list"][0]["device"][0]), ["device_id", "device_ip", "rank_id"]
        )
        self.assertEqual(done.out, json.dumps(made, indent=4))
        self.assertEqual(self.of(HOSTS).out, self.at.path("hccl_2s_4p.json") + "\n")

    def test_version_1_2(self):
        done = self.of(HOSTS, "--version", "1.2", "-o", "-")
        made = json.loads(done.out)
        self.assertEqual(
            list(made), ["status", "version", "server_count", "server_list", "super_pod_list"]
        )
        self.assertEqual(
            made["super_pod_list"],
            [
                {"super_pod_id": str(p), "server_list": [{"server_id": s}]}
                for p, s in ((0, "node-a"), (1, "node-b"))
            ],
        )
        self.assertEqual(
            [d["super_device_id"] for s in made["server_list"] for d in s["device"]],
            ["0", "1", "0", "1"],
        )
        self.assertEqual(done.out, json.dumps(made, indent=4))
        path = self.of(HOSTS, "--version", "1.2").out.strip()
        self.assertEqual(
            self.run_verb("check", path, "--chip", "910_93").out,
            f"{path}: acceptable: version 1.2, 2 servers, 4 ranks\n",
        )

    def test_the_same_as_json_and_from_standard_input(self):
        wanted = self.of(HOSTS, "--version", "1.2", "-o", "-").out
        hosts = [
            {
                "server_id": f"node-{n}",
                "super_pod_id": str(p),
                "devices": [
                    {"device_id": d, "device_ip": f"192.1.{p + 1}.{d + 1}", "super_device_id": d}
                    for d in (0, 1)
                ],
            }
            for p, n in enumerate("ab")
        ]
        self.assertEqual(self.of({"hosts": hosts}, "--version", "1.2", "-o", "-").out, wanted)
        self.assertEqual(
            self.run_verb(
                "generate", "--hosts", "-", "--version", "1.2", "-o", "-", stdin=HOSTS
            ).out,
            wanted,
        )

    def test_a_whole_large_cluster(self):
        hosts = [
            {
                "server_id": f"s{n}",
                "super_pod_id": n // 64,
                "devices": [
                    {
                        "device_id": d,
                        "device_ip": f"10.{n // 250}.{n % 250}.{d + 1}",
                        "super_device_id": n % 64 * 16 + d,
                    }
                    for d in range(16)
                ],
            }
            for n in range(1024)
        ]
        path = self.of({"hosts": hosts}, "--version", "1.2").out.strip()
        self.assertEqual(os.path.basename(path), "hccl_1024s_16384p.json")
        self.assertEqual(
            self.run_verb("check", path).out,
            f"{path}: acceptable: version 1.2, 1024 servers, 16384 ranks\n",
        )
        self.assertEqual(self.run_verb("merge", path, "-o", "-").out.encode(), bytes_of(path))

    def test_what_is_wrong(self):
        line = "hosts: [{server_id: a, super_pod_id: 0, devices: [{device_id: 0, device_ip: 1.1.1.1, super_device_id: 0}]}"
        for title, text, args in (
            ("nothing", "", ()),
            ("a list", "- a\n", ()),
            ("no YAML", "hosts: [", ()),
            ("no JSON either", "{hosts: [}", ()),
            ("no servers", "hosts: []\n", ()),
            ("other keys", "hosts:\n  - {server_id: a, device: []}\nversion: 1.2\n", ()),
            (
                "many problems",
                "hosts:\n  - server_id: a/b\n    devices: [{device_id: one, device_ip: [1]}, {device_ip: 1.1.1.1}, x, {device_id: 1}, {device_id: 1}]\n  - {devices: 8}\n  - 7\n",
                (),
            ),
            ("an alias", "a: &a 1\nhosts: *a\n", ()),
            (
                "rules of the table",
                line.replace("1.1.1.1", "1.1.1")
                + ", {server_id: a, devices: [{device_id: 16}]}]\n",
                (),
            ),
            (
                "no super-pods for 1.2",
                "hosts: [{server_id: a, devices: [{device_id: 0, device_ip: 1.1.1.1}]}]\n",
                ("--version", "1.2"),
            ),
            (
                "super-pods in turns",
                line
                + "".join(
                    f", {{server_id: s{n}, super_pod_id: {n % 2}, devices: [{{device_id: 0, device_ip: 1.1.1.{n + 1}, super_device_id: {n}}}]}}"
                    for n in (1, 2)
                )
                + "]\n",
                ("--version", "1.2"),
            ),
            (
                "a number beyond counting",
                line.replace("device_id: 0", "device_id: 99999999999999999999") + "]\n",
                (),
            ),
            ("not a number", line.replace("device_id: 0", "device_id: .nan") + "]\n", ()),
            (
                "uneven servers for a 910",
                line
                + ", {server_id: b, devices: [{device_id: 0, device_ip: 1.1.1.2}, {device_id: 1, device_ip: 1.1.1.3}]}]\n",
                ("--chip", "910"),
            ),
            (
                "more values than YAML may have",
                "hosts:\n" + "- {server_id: a, devices: [" + "{device_id: 0}," * 40_000 + "]}\n",
                (),
            ),
        ):
            with self.subTest(title):
                self.check_output("hosts: " + title, self.of(text, *args, "-o", "-", code=None), 64)
        self.check_output(
            "hosts: no file",
            self.run_verb("generate", "--hosts", self.at.path("none.yaml"), code=None),
            64,
        )
        self.check_output(
            "hosts: with options of one server",
            self.run_verb("generate", "--hosts", "h", "--device-num", "[0,8)", code=None),
            64,
        )


if __name__ == "__main__":
    ranktable_verbs.main(GOLDEN)
