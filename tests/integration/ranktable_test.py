#!/usr/bin/python3
"""`muster ranktable`: the vendor tools' options and bytes, hostile files and tools, and every sentence that is said about them.

The sentences are in tests/golden/ranktable-errors.txt.  Run:  /usr/bin/python3 tests/integration/ranktable_test.py [--rewrite] [-v] [CASE]
"""

import hashlib
import itertools
import json
import os
import stat
import sys
import unittest

import private
from golden import Golden
from private import Private, processes_of, wait_until

HEAD = """# What `muster ranktable` says: what happened, to which thing, what would help. Reviewed as text.
# Written by tests/integration/ranktable_test.py --rewrite. <dir> is the test's directory.
"""
GOLDEN = Golden(os.path.join(private.ROOT, "tests/golden/ranktable-errors.txt"), HEAD, "--rewrite" in sys.argv)
TABLES = os.path.join(private.ROOT, "tests/unit/ranktable/golden")

TOOL = """#!/bin/sh
[ "$LANG" = C ] && [ -z "$LC_ALL" ] && [ "$#" = 4 ] && [ "$1 $3 $4" = "-i -ip -g" ] || exit 9
case $2 in
{cases}
*) echo "device $2 is not there" ; exit 1 ;;
esac
echo netmask:255.255.255.0
"""


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def table(servers, status="completed", **top):
    """[(server_id, [(device_id, device_ip, rank_id)])] as a table of version 1.0."""
    listed = [{"server_id": name, "device": [{"device_id": str(d), "device_ip": ip, "rank_id": str(r)} for d, ip, r in devices]} for name, devices in servers]
    return {"version": "1.0", "server_count": str(len(servers)), "server_list": listed, "status": status, **top}


def cloud(instances, **top):
    """[(pod_name, server_id, [(device_id, device_ip)])] as a group list."""
    listed = [{"pod_name": pod, "server_id": server, "devices": [{"device_id": str(d), "device_ip": ip} for d, ip in devices]} for pod, server, devices in instances]
    group = {"group_name": "job", "device_count": str(sum(len(i["devices"]) for i in listed)), "instance_count": str(len(listed)), "instance_list": listed}
    return {"status": "completed", "group_count": "1", "group_list": [group], **top}


class RankTable(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.at = Private()
        self.addCleanup(self.at.close)
        # No card tool of this machine, no endpoint: these verbs ask nobody.
        self.bin = self.at.path("bin")
        os.mkdir(self.bin)
        self.path = self.bin + ":/usr/bin:/bin"
        self.conf = self.at.path("none.conf")
        os.mkdir(self.at.path("w"))

    def tearDown(self):
        self.nothing_left()

    def nothing_left(self):
        """What was killed may take a moment to be gone."""
        wait_until(lambda: not processes_of(self.at.dir), what="the last process to be gone")

    def run_verb(self, *args, code=0, **options):
        return self.at.muster("ranktable", *args, code=code, env={"PATH": self.path, **options.pop("env", {})}, **options)

    def generate(self, *args, **options):
        return self.run_verb("generate", *(() if "--hccn-conf" in args else ("--hccn-conf", self.conf)), *args, **options)

    def tool(self, text):
        path = os.path.join(self.bin, "hccn_tool")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def good_tool(self, addresses):
        self.tool(TOOL.format(cases="\n".join(f"{device}) echo ipaddr:{ip} ;;" for device, ip in addresses.items())))

    def put(self, name, content):
        return self.at.write(name, content if isinstance(content, str) else json.dumps(content))

    def said(self, title, done, code):
        self.assertEqual(done.code, code, str(done))
        text = f"$ {' '.join(done.command)}\nexit {done.code}\n{done.out}{done.err}"
        for path in sorted({self.at.dir, os.path.realpath(self.at.dir)}, key=len, reverse=True):
            text = text.replace(path, "<dir>")
        GOLDEN.check(self, title, text)


class LikeTheVendorsTools(RankTable):
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
                        conf = self.put("hccn.conf", "".join(f"netmask_{d}=255.255.255.0\naddress_{d}={ip}\n" for d, ip in host["device_ips"].items()))
                        if source == "tool":
                            self.good_tool(host["device_ips"])
                        elif os.path.exists(os.path.join(self.bin, "hccn_tool")):
                            os.unlink(os.path.join(self.bin, "hccn_tool"))
                        args = ["--server_ip", host["server_id"], "--device_num", host["device_range"], "--device_num_per_node", host["device_num_per_node"]]
                        done = self.generate(*args, "--hccn-conf", self.conf if source == "tool" else conf, "-o", folder)
                        files.append(done.out.strip())
                        self.assertEqual(done.err, "")
                        self.assertEqual(self.generate(*args, "--hccn-conf", self.conf if source == "tool" else conf, "-o", "-").out.encode(), bytes_of(files[-1]))
                    if case["kind"] == "merge":
                        self.assertEqual([os.path.basename(name) for name in files], case["merge_arguments"])
                        files = [self.run_verb("merge", *files, "-o", folder + "/").out.strip()]
                    self.assertEqual(files, [os.path.join(folder, case["tool_file_name"])])
                    self.assertEqual(bytes_of(files[0]), expected)
                    self.assertEqual(self.run_verb("merge", files[0], "-o", "-").out.encode(), expected)
                    self.assertEqual(self.run_verb("check", files[0]).err, "")

    def test_their_default_is_the_current_directory(self):
        self.good_tool({d: f"192.1.1.{d + 1}" for d in range(8)})
        done = self.generate("--server-ip", "n1")
        self.assertEqual(done.out, self.at.path("hccl_8p_01234567_n1.json") + "\n")
        merged = self.run_verb("merge", "hccl_8p_01234567_n1.json")
        self.assertEqual(merged.out, self.at.path("hccl_1s_8p.json") + "\n")
        self.assertEqual(bytes_of(self.at.path("hccl_1s_8p.json")), bytes_of(self.at.path("hccl_8p_01234567_n1.json")))

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
        done = self.generate("--server-ip", "n1", "--device-num", "[0,2)", "--visible-devices", "4,5,6,7", "-o", self.at.path("w"))
        self.assertEqual(os.path.basename(done.out.strip()), "hccl_2p_01_n1.json")
        devices = json.loads(bytes_of(done.out.strip()))["server_list"][0]["device"]
        self.assertEqual([(d["device_id"], d["device_ip"], d["rank_id"]) for d in devices], [("4", "192.1.1.4", "0"), ("5", "192.1.1.5", "1")])

    def test_sixteen_devices_need_no_list(self):
        self.good_tool({d: f"192.1.1.{d + 1}" for d in range(16)})
        done = self.generate("--server-ip", "n1", "--device-num", "[0,16)", "--device-num-per-node", "16", "-o", self.at.path("w"))
        self.assertEqual(os.path.basename(done.out.strip()), "hccl_16p_0123456789101112131415_n1.json")

    def test_ranges(self):
        self.good_tool({d: f"192.1.1.{d + 1}" for d in range(16)})
        for title, args, code in (
            ("a range with a square bracket at its end", ("[0,4]",), 0),
            ("a range of three devices", ("[0,3)",), 0),
            ("a range across the groups", ("[2,8)",), 64),
            ("a range across the groups, for a chip without groups", ("[2,8)", "--chip", "910b"), 0),
            ("a range of three devices, for a 910", ("[0,3)", "--chip", "910"), 64),
            ("a range without devices", ("[3,3)",), 64),
            ("a range behind the last device", ("[0,16)",), 64),
            ("a range in other words", ("0-7",), 64),
            ("a range behind the visible devices", ("[2,4)", "--visible-devices", "6,7"), 64),
            ("a list of visible devices with words", ("[0,2)", "--visible-devices", "all"), 64),
            ("unequal halves of sixteen", ("[4,16)", "--device-num-per-node", "16"), 0),
        ):
            with self.subTest(title):
                done = self.generate("--server-ip", "n1", "--device-num", *args, "-o", "-", code=None)
                if code == 0:
                    self.assertEqual(json.loads(done.out)["status"], "completed")
                    done.out = "(a table)\n"
                self.said(title, done, code)

    def test_other_options(self):
        self.good_tool({0: "192.1.1.1"})
        for title, args in (
            ("a server id that would be a path", ("--server-ip", "../../etc/x", "--device-num", "[0,1)")),
            ("a server id that is too long", ("--server-ip", "n" * 65, "--device-num", "[0,1)")),
            ("more devices than servers have", ("--device-num-per-node", "17")),
            ("version 1.2 of one server", ("--version", "1.2", "--server-ip", "n1", "--device-num", "[0,1)")),
            ("a version that is none", ("--version", "3", "--server-ip", "n1")),
            ("a time-out that is none", ("--tool-timeout", "soon", "--server-ip", "n1", "--device-num", "[0,1)")),
        ):
            with self.subTest(title):
                self.said(title, self.run_verb("generate", *args, "-o", "-", code=None), 64)


class Addresses(RankTable):
    """hccn_tool is somebody else's program, and its file may be anything."""

    def two(self, *args, **options):
        return self.generate("--server-ip", "n1", "--device-num", "[0,2)", *args, "-o", "-", **options)

    def good_conf(self):
        return self.put("hccn.conf", "address_0=192.1.1.1\naddress_1=192.1.1.2\n")

    def test_no_source_at_all(self):
        self.said("no hccn_tool and no file", self.two(code=None), 64)

    def test_what_is_no_answer(self):
        lots = "i=0; while [ $i -lt 3000 ]; do echo ipaddr:192.1.1.1ipaddr:192.1.1.1; i=$((i+1)); done"
        for title, script in (
            ("a tool that fails", "echo ipaddr:192.1.1.1; exit 7"),
            ("a tool that is killed", "kill -SEGV $$"),
            ("a tool that prints nothing", "exit 0"),
            ("a tool that prints something else", "echo 'Error: device 1 has no address'; exit 0"),
            ("a tool that prints too much", lots),
            ("a tool that knows one device only", '[ "$2" = 0 ] && echo ipaddr:192.9.9.9 && exit 0; echo "no address"'),
        ):
            with self.subTest(title):
                self.tool("#!/bin/sh\n" + script + "\n")
                self.said(title + ", and no file", self.two(code=None), 64)
                done = self.two("--hccn-conf", self.good_conf())
                self.assertEqual([d["device_ip"] for d in json.loads(done.out)["server_list"][0]["device"]], ["192.1.1.1", "192.1.1.2"])  # never mixed
                done.out = "(a table)\n"
                self.said(title, done, 0)

    def test_a_tool_that_cannot_be_executed(self):
        self.tool("#!/bin/none\n")
        self.two(code=64)
        os.chmod(os.path.join(self.bin, "hccn_tool"), 0o644)
        self.two("--hccn-conf", self.good_conf(), code=0)

    def test_a_tool_that_hangs_is_ended_with_its_children(self):
        self.tool("#!/bin/sh\ntail -f /dev/null &\nwait\n")
        self.said("a tool that hangs", self.two("--tool-timeout", "100ms", code=None), 64)
        self.nothing_left()

    def test_a_tool_that_leaves_a_child_behind(self):
        self.tool('#!/bin/sh\ntail -f /dev/null &\necho "ipaddr:192.1.1.$((1 + $2))"\n')
        done = self.two()
        self.assertEqual([d["device_ip"] for d in json.loads(done.out)["server_list"][0]["device"]], ["192.1.1.1", "192.1.1.2"])
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
            ("a file with two addresses of one device", "address_0=192.1.1.1\naddress_0=192.1.1.9\n"),
            ("a file with an address that is none", "address_0=192.1.1.1\naddress_1=none\n"),
            ("an empty file", ""),
            ("a file with one address twice", "address_0=192.1.1.1\naddress_1=192.1.1.1\n"),
        ):
            with self.subTest(title):
                self.said("addresses: " + title, self.two("--hccn-conf", self.put("hccn.conf", text), code=None), 64)
        self.said("addresses: a directory", self.two("--hccn-conf", self.at.dir, code=None), 64)
        self.said("addresses: a file without an end", self.two("--hccn-conf", "/dev/zero", code=None), 64)


class Output(RankTable):
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
                self.said("output: " + title, self.one("-o", where, code=None), 64)
        done = self.one("-o", "w/dir.json", code=64)
        self.assertIn("'.json'", done.err)  # hccl_...json below dir.json
        self.assertEqual(os.listdir(self.at.path("w", "dir.json")), [])

    def test_a_full_disk(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            process = self.at.start("ranktable", "generate", "--hosts", self.put("h.yaml", "hosts: [{server_id: a, devices: [{device_id: 0, device_ip: 1.1.1.1}]}]"), "-o", "-", stdout=full)
            _, err = process.communicate(timeout=private.PATIENCE)
        self.assertEqual(process.returncode, 70)
        self.assertEqual(err, "muster: writing to standard output: No space left on device\n")


HOSTS = """\
hosts:
  - server_id: node-a
    super_pod_id: 0
    devices:
      - {device_id: 0, device_ip: 192.1.1.1, super_device_id: 0}
      - {device_id: 1, device_ip: 192.1.1.2, super_device_id: 1}
  - server_id: node-b
    super_pod_id: 1
    devices:
      - {device_id: 0, device_ip: 192.1.2.1, super_device_id: 0}
      - {device_id: 1, device_ip: 192.1.2.2, super_device_id: 1}
"""


class Hosts(RankTable):
    def of(self, text, *args, **options):
        return self.run_verb("generate", "--hosts", self.put("hosts.yaml", text), *args, **options)

    def test_version_1_0(self):
        done = self.of(HOSTS, "-o", "-")
        made = json.loads(done.out)
        self.assertEqual(list(made), ["version", "server_count", "server_list", "status"])
        self.assertEqual([list(server) for server in made["server_list"]], [["server_id", "device", "host_nic_ip"]] * 2)
        self.assertEqual([d["rank_id"] for s in made["server_list"] for d in s["device"]], ["0", "1", "2", "3"])
        self.assertEqual(list(made["server_list"][0]["device"][0]), ["device_id", "device_ip", "rank_id"])
        self.assertEqual(done.out, json.dumps(made, indent=4))
        self.assertEqual(self.of(HOSTS).out, self.at.path("hccl_2s_4p.json") + "\n")

    def test_version_1_2(self):
        done = self.of(HOSTS, "--version", "1.2", "-o", "-")
        made = json.loads(done.out)
        self.assertEqual(list(made), ["status", "version", "server_count", "server_list", "super_pod_list"])
        self.assertEqual(made["super_pod_list"], [{"super_pod_id": str(p), "server_list": [{"server_id": s}]} for p, s in ((0, "node-a"), (1, "node-b"))])
        self.assertEqual([d["super_device_id"] for s in made["server_list"] for d in s["device"]], ["0", "1", "0", "1"])
        self.assertEqual(done.out, json.dumps(made, indent=4))
        path = self.of(HOSTS, "--version", "1.2").out.strip()
        self.assertEqual(self.run_verb("check", path, "--chip", "910_93").out, f"{path}: acceptable: version 1.2, 2 servers, 4 ranks\n")

    def test_the_same_as_json_and_from_standard_input(self):
        wanted = self.of(HOSTS, "--version", "1.2", "-o", "-").out
        hosts = [{"server_id": f"node-{n}", "super_pod_id": str(p), "devices": [{"device_id": d, "device_ip": f"192.1.{p + 1}.{d + 1}", "super_device_id": d} for d in (0, 1)]} for p, n in enumerate("ab")]
        self.assertEqual(self.of({"hosts": hosts}, "--version", "1.2", "-o", "-").out, wanted)
        self.assertEqual(self.run_verb("generate", "--hosts", "-", "--version", "1.2", "-o", "-", stdin=HOSTS).out, wanted)

    def test_a_whole_large_cluster(self):
        hosts = [{"server_id": f"s{n}", "super_pod_id": n // 64, "devices": [{"device_id": d, "device_ip": f"10.{n // 250}.{n % 250}.{d + 1}", "super_device_id": n % 64 * 16 + d} for d in range(16)]}
                 for n in range(1024)]
        path = self.of({"hosts": hosts}, "--version", "1.2").out.strip()
        self.assertEqual(os.path.basename(path), "hccl_1024s_16384p.json")
        self.assertEqual(self.run_verb("check", path).out, f"{path}: acceptable: version 1.2, 1024 servers, 16384 ranks\n")
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
            ("many problems", "hosts:\n  - server_id: a/b\n    devices: [{device_id: one, device_ip: [1]}, {device_ip: 1.1.1.1}, x, {device_id: 1}, {device_id: 1}]\n  - {devices: 8}\n  - 7\n", ()),
            ("an alias", "a: &a 1\nhosts: *a\n", ()),
            ("rules of the table", line.replace("1.1.1.1", "1.1.1") + ", {server_id: a, devices: [{device_id: 16}]}]\n", ()),
            ("no super-pods for 1.2", "hosts: [{server_id: a, devices: [{device_id: 0, device_ip: 1.1.1.1}]}]\n", ("--version", "1.2")),
            ("super-pods in turns", line + "".join(f", {{server_id: s{n}, super_pod_id: {n % 2}, devices: [{{device_id: 0, device_ip: 1.1.1.{n + 1}, super_device_id: {n}}}]}}" for n in (1, 2)) + "]\n",
             ("--version", "1.2")),
            ("a number beyond counting", line.replace("device_id: 0", "device_id: 99999999999999999999") + "]\n", ()),
            ("not a number", line.replace("device_id: 0", "device_id: .nan") + "]\n", ()),
            ("uneven servers for a 910", line + ", {server_id: b, devices: [{device_id: 0, device_ip: 1.1.1.2}, {device_id: 1, device_ip: 1.1.1.3}]}]\n", ("--chip", "910")),
            ("more values than YAML may have", "hosts:\n" + "- {server_id: a, devices: [" + "{device_id: 0}," * 40_000 + "]}\n", ()),
        ):
            with self.subTest(title):
                self.said("hosts: " + title, self.of(text, *args, "-o", "-", code=None), 64)
        self.said("hosts: no file", self.run_verb("generate", "--hosts", self.at.path("none.yaml"), code=None), 64)
        self.said("hosts: with options of one server", self.run_verb("generate", "--hosts", "h", "--device-num", "[0,8)", code=None), 64)


class Merge(RankTable):
    def test_the_order_is_that_of_the_arguments(self):
        names = ["10.0.0.9", "10.0.0.10", "10.0.0.11"]
        files = [self.put(f"{name}.json", table([(name, [(0, f"192.1.1.{n + 1}", 0), (1, f"192.1.2.{n + 1}", 1)])])) for n, name in enumerate(names)]
        for order in itertools.permutations(range(3)):
            done = self.run_verb("merge", *(files[n] for n in order), "-o", "-")
            made = json.loads(done.out)
            self.assertEqual([s["server_id"] for s in made["server_list"]], [names[n] for n in order])
            self.assertEqual([d["rank_id"] for s in made["server_list"] for d in s["device"]], [str(r) for r in range(6)])
            self.assertEqual(bool(done.err), order == (1, 2, 0), done.err)
        self.said("merge: in a wildcard's order", self.run_verb("merge", *sorted(files)), 0)

    def test_merging_again_and_keys_of_others(self):
        one = table([("a", [(0, "192.1.1.1", 0)])])
        one["server_list"][0].update(host_nic_ip="reserve", hardware_type="x", levels=[1, {"a": None}])
        one["server_list"][0]["device"][0]["device_port"] = "16667"
        two = table([("b", [(0, "192.1.1.2", 0)])])
        first = self.run_verb("merge", self.put("1.json", one), self.put("2.json", two)).out.strip()
        again = json.loads(self.run_verb("merge", first, self.put("3.json", table([("c", [(0, "192.1.1.3", 0)])])), "-o", "-").out)
        self.assertEqual(again["server_count"], "3")
        self.assertEqual([d["rank_id"] for s in again["server_list"] for d in s["device"]], ["0", "1", "2"])
        self.assertEqual(again["server_list"][0]["levels"], [1, {"a": None}])
        self.assertEqual(again["server_list"][0]["device"][0]["device_port"], "16667")

    def test_ranks_of_an_input_keep_their_order(self):
        # Ranks of a file need not stand in order, and stay as they are: theirs would turn them round.
        done = self.run_verb("merge", self.put("1.json", table([("a", [(0, "192.1.1.1", 1), (1, "192.1.1.2", 0)])])), self.put("2.json", table([("b", [(0, "192.1.1.3", 1), (1, "192.1.1.4", 0)])])), "-o", "-")
        self.assertEqual([(d["device_id"], d["rank_id"]) for s in json.loads(done.out)["server_list"] for d in s["device"]], [("0", "1"), ("1", "0"), ("0", "3"), ("1", "2")])

    def test_what_is_wrong(self):
        good = self.put("good.json", table([("a", [(0, "192.1.1.1", 0)])]))
        pods = self.put("hosts.yaml", HOSTS)
        for title, content, code in (
            ("the same server twice", table([("a", [(0, "192.1.1.2", 0)])]), 64),
            ("the same address twice", table([("b", [(0, "192.1.1.1", 0)])]), 64),
            ("not completed", table([("b", [(0, "192.1.1.2", 0)])], status="initializing"), 2),
            ("several problems", {**table([("b", [(0, "x", 1), (1, "192.1.1.2", 1)])]), "server_count": "3"}, 64),
            ("a group list", cloud([("p-0", "b", [(0, "192.1.1.2")])]), 64),
            ("another version", self.run_verb("generate", "--hosts", pods, "--version", "1.2", "-o", "-").out, 64),
            ("version 2.0", {"status": "completed", "version": "2.0", "rank_count": 1, "rank_list": []}, 64),
            ("no JSON", "{", 64),
        ):
            with self.subTest(title):
                self.said("merge: " + title, self.run_verb("merge", good, self.put("other.json", content), "-o", "-", code=None), code)
        self.said("merge: one file twice", self.run_verb("merge", good, good, "-o", "-", code=None), 64)
        self.said("merge: a file that is not there", self.run_verb("merge", good, self.at.path("none.json"), "-o", "-", code=None), 64)
        self.said("merge: nothing", self.run_verb("merge", code=None), 64)
        self.said("merge: uneven servers", self.run_verb("merge", good, self.put("two.json", table([("b", [(0, "192.1.1.2", 0), (1, "192.1.1.3", 1)])]))), 0)


class Convert(RankTable):
    PODS = [("ma-job-worker-10", "10.0.0.3", [(0, "192.1.3.1"), (1, "192.1.3.2")]), ("ma-job-worker-2", "10.0.0.2", [(1, "192.1.2.2"), (0, "192.1.2.1")]),
            ("ma-job-worker-0", "10.0.0.9", [(0, "192.1.9.1"), (1, "192.1.9.2")])]

    def test_the_launchers_order_and_bytes(self):
        done = self.run_verb("convert", self.put("jobstart_hccl.json", cloud(self.PODS)), "-o", "-")
        self.assertEqual(done.err, "")
        servers = [("10.0.0.9", [(0, "192.1.9.1", 0), (1, "192.1.9.2", 1)]), ("10.0.0.2", [(1, "192.1.2.2", 2), (0, "192.1.2.1", 3)]), ("10.0.0.3", [(0, "192.1.3.1", 4), (1, "192.1.3.2", 5)])]
        made = table(servers)
        wanted = {key: made[key] for key in ("status", "version", "server_count", "server_list")}
        self.assertEqual(done.out, json.dumps(wanted))

    def test_the_directory_and_where_it_goes(self):
        self.put("w/jobstart_hccl.json", cloud(self.PODS))
        path = self.run_verb("convert", self.at.path("w")).out.strip()
        self.assertEqual(path, self.at.path("hccl_3s_6p.json"))
        self.assertEqual(self.run_verb("check", path).out, f"{path}: acceptable: version 1.0, 3 servers, 6 ranks\n")
        self.assertEqual(self.run_verb("convert", "-", "-o", "-", stdin=json.dumps(cloud(self.PODS))).out.encode(), bytes_of(path))

    def test_pods_of_one_server_are_one_server(self):
        pods = [("p-0", "a", [(0, "192.1.1.1")]), ("p-1", "b", [(0, "192.1.2.1")]), ("p-2", "a", [(1, "192.1.1.2")])]
        done = self.run_verb("convert", self.put("jobstart_hccl.json", cloud(pods)), "-o", "-")
        self.assertEqual([(s["server_id"], [d["rank_id"] for d in s["device"]]) for s in json.loads(done.out)["server_list"]], [("a", ["0", "2"]), ("b", ["1"])])
        done.out = "(a table)\n"
        self.said("convert: pods of one server apart", done, 0)

    def test_what_is_wrong(self):
        for title, content, code in (
            ("not completed", cloud(self.PODS, status="initializing"), 2),
            ("a table of version 1.0", table([("a", [(0, "192.1.1.1", 0)])]), 64),
            ("a pod without a number", cloud([("master", "a", [(0, "192.1.1.1")])]), 64),
            ("a pod twice", cloud([("p-0", "a", [(0, "192.1.1.1")]), ("p-0", "b", [(0, "192.1.1.2")])]), 64),
            ("counts that are wrong", cloud(self.PODS, group_count="2"), 64),
            ("numbers for strings", cloud(self.PODS, group_count=1), 64),
            ("one address twice", cloud([("p-0", "a", [(0, "192.1.1.1")]), ("p-1", "b", [(0, "192.1.1.1")])]), 64),
            ("no groups", {"status": "completed", "group_count": "0", "group_list": []}, 64),
            ("a list", [], 64),
        ):
            with self.subTest(title):
                self.said("convert: " + title, self.run_verb("convert", self.put("jobstart_hccl.json", content), "-o", "-", code=None), code)
        self.said("convert: a directory without it", self.run_verb("convert", self.at.path("w"), code=None), 64)


class Check(RankTable):
    GOOD = table([("a", [(0, "192.1.1.1", 0), (1, "192.1.1.2", 1)]), ("b", [(0, "192.1.2.1", 2), (1, "192.1.2.2", 3)])])

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
        self.assertEqual(self.run_verb("check", "-", stdin=json.dumps(self.GOOD)).out, "<stdin>: acceptable: version 1.0, 2 servers, 4 ranks\n")

    def test_text(self):
        def device(server, number, **keys):
            return lambda t: t["server_list"][server]["device"][number].update(keys)

        def both(*changes):
            return lambda t: [change(t) for change in changes]

        for title, content, args, code in (
            ("acceptable", self.GOOD, (), 0),
            ("not completed", self.changed(lambda t: t.update(status="initializing")), (), 2),
            ("several problems", self.changed(both(device(1, 1, rank_id="7"), device(0, 1, device_ip="192.1.2.1"), lambda t: t.update(server_count="9"))), (), 64),
            ("a number for a string", self.changed(device(0, 0, device_id=0)), (), 64),
            ("without a version", {key: value for key, value in self.GOOD.items() if key != "version"}, (), 64),
            ("one server of three on a 910", self.changed(lambda t: t["server_list"][1]["device"].pop()), ("--chip", "910"), 64),
            ("one server of three", self.changed(both(lambda t: t["server_list"][1]["device"].pop())), (), 0),
            ("a group list of uneven servers", cloud([("p-0", "a", [(0, "192.1.1.1")]), ("p-1", "b", [(0, "192.1.1.2"), (1, "192.1.1.3")])]), (), 64),
            ("a group list of even servers", cloud([("p-0", "a", [(0, "192.1.1.1")]), ("p-1", "b", [(0, "192.1.1.2")])]), (), 0),
            ("version 2.0", {"status": "completed", "version": "2.0"}, (), 64),
            ("signs of a terminal", self.changed(lambda t: t["server_list"][1].update(server_id="a\x1b[31m" * 12)), (), 64),
        ):
            with self.subTest(title):
                done = self.check(content, *args, code=None)
                self.assertEqual(done.err, "")
                self.said("check: " + title, done, code)

    def test_hundreds_of_problems_are_counted(self):
        done = self.check(table([("a", [(n % 16, "x", n) for n in range(150)])]), code=64)
        self.assertEqual((done.out.count("\n"), "rejected: 150 problems\n" in done.out, done.out.count("  and 50 more\n")), (1 + 100 + 1 + 20, True, 1), done.out)

    def test_json(self):
        good = json.loads(self.check(self.GOOD, "-o", "json", code=0).out)
        self.assertEqual({key: good[key] for key in ("apiVersion", "kind", "verdict", "form", "servers", "ranks", "problems")},
                         {"apiVersion": "muster/v1", "kind": "RankTableCheck", "verdict": "acceptable", "form": "version 1.0", "servers": 2, "ranks": 4, "problems": []})
        bad = self.changed(lambda t: t["server_list"][1]["device"][0].update(rank_id="0"))
        for output in ("json", "jsonl"):
            done = self.check(bad, "-o", output, code=64)
            document = json.loads(done.out)
            self.assertEqual((document["verdict"], [p["where"] for p in document["problems"]], done.err), ("rejected", ["server_list[1].device[0].rank_id"], ""))
            self.assertEqual(done.out.count("\n") == 1, output == "jsonl")
        waiting = json.loads(self.check(self.changed(lambda t: t.update(status="initializing")), "-o", "json", code=2).out)
        self.assertEqual((waiting["verdict"], waiting["status"]), ("not completed", "initializing"))
        self.assertIn('verdict: "acceptable"', self.check(self.GOOD, "-o", "yaml").out)
        self.check(self.GOOD, "-o", "name", code=64)

    def test_the_path_counts(self):
        os.mkdir(self.at.path("x.json.d"))
        for name in ("hccl.txt", "x.json.d/hccl.json"):
            with self.subTest(name):
                self.said(f"check: the path {name}", self.run_verb("check", self.put(name, self.GOOD), code=None), 64)
        os.symlink(self.put("hccl.json", self.GOOD), self.at.path("link.json"))
        self.said("check: a link", self.run_verb("check", self.at.path("link.json")), 0)

    def test_hostile_files(self):
        sparse = self.at.path("sparse.json")
        with open(sparse, "wb") as file:
            file.truncate(33 << 20)
        for title, path in (
            ("an empty file", self.put("a.json", "")),
            ("half a file", self.put("b.json", json.dumps(self.GOOD)[:-40])),
            ("depth", self.put("c.json", '{"status":' + "[" * 100_000)),
            ("a key twice", self.put("d.json", json.dumps(self.GOOD)[:-1] + ', "status": "completed"}')),
            ("NaN", self.put("e.json", json.dumps(self.changed(lambda t: t.update(x=float("nan")))))),
            ("a number beyond counting", self.put("f.json", json.dumps(self.GOOD)[:-1] + ', "x": 1e999}')),
            ("a word", self.put("g.json", '"completed"')),
            ("33 MiB of zeros", sparse),
            ("no end", "/dev/zero"),
            ("a directory", self.at.path("w")),
            ("nothing there", self.at.path("none.json")),
        ):
            with self.subTest(title):
                self.said("hostile: " + title, self.run_verb("check", path, code=None), 64)
        with open(self.at.path("h.json"), "wb") as file:
            file.write(b'{"status": "completed", "version": "1.0", "server_list": [{"server_id": "\xff\xfe"}]}')
        self.assertIn("this is not JSON", self.run_verb("check", self.at.path("h.json"), code=64).out)


class Words(RankTable):
    def test_help_and_verbs(self):
        self.assertIn("merge_hccl.py", self.run_verb("merge", "--help").out)
        self.run_verb(code=64)
        self.run_verb("make", code=64)
        self.run_verb("show", code=64)

    def test_no_controller_is_asked(self):
        self.run_verb("check", self.put("hccl.json", Check.GOOD), env={"MUSTER_CONTROLLER": "127.0.0.1:1"})

    def test_what_is_made_is_the_same_everywhere(self):
        # The content hash in events is sha256sum of the file.
        done = self.run_verb("generate", "--hosts", self.put("hosts.yaml", HOSTS), "-o", "-")
        self.assertEqual(hashlib.sha256(done.out.encode()).hexdigest(), hashlib.sha256(self.run_verb("generate", "--hosts", "hosts.yaml", "-o", "-").out.encode()).hexdigest())


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv if argument != "--rewrite"]
    program = unittest.main(argv=arguments, exit=False)
    if program.result.wasSuccessful() or GOLDEN.rewrite:
        GOLDEN.save(whole=program.result.wasSuccessful() and all(argument.startswith("-") for argument in arguments[1:]))
    sys.exit(not program.result.wasSuccessful())
