"""What the fuzzers start from: inputs made of the tests' own fixtures and golden files at run time, and the words of each format (libFuzzer's dictionaries)."""

import base64
import glob
import hashlib
import hmac
import io
import os
import re
import struct
import zipfile
import zlib

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
SLICE = 2000  # bytes of a log that make one seed: short inputs are mutated better than long ones


def files(*patterns):
    found = []
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True)):
            with open(path, "rb") as file:
                found.append(file.read())
    return found


def cases(text, end):
    """The inputs of a golden file of cases: behind "== TITLE", up to a line that starts with `end`."""
    found = []
    for part in re.split(rb"(?m)^== .*\n", text)[1:]:
        found.append(re.split(rb"(?m)^" + end, part)[0])
    return found


def slices(text):
    """At line ends, each at most SLICE bytes unless a line is longer."""
    found, pending = [], b""
    for line in text.splitlines(keepends=True):
        if pending and len(pending) + len(line) > SLICE:
            found.append(pending)
            pending = b""
        pending += line
    return found + [pending]


def ranktable():
    words = [
        b"[0,8)",
        b"[0,16)",
        b"[4,8]",
        b"4,5,6,7",
        b"0-7",
        b"10.20.0.11",
        b"fe80::1%eth0",
        b"/a/hccl_8p.json",
        b"node-1",
    ]
    group = (b'{"status":"completed","group_count":"1","group_list":[{"group_name":"g","device_count":"2","instance_count":"2","instance_list":['
             b'{"pod_name":"p-1","server_id":"a","devices":[{"device_id":"0","device_ip":"1.1.1.1"}]},'
             b'{"pod_name":"p-0","server_id":"b","devices":[{"device_id":"0","device_ip":"1.1.1.2"}]}]}]}')  # fmt: skip
    lab = (b'{"status":"completed","deploy_mode":"lab","group_count":"1","para_plane_nic_location":"device","group_list":[{"group_name":"g","device_num":"2",'
           b'"server_num":"1","instance_count":"2","instance_list":[{"rank_id":"0","server_id":"a","devices":[{"device_id":"0","device_ip":"1.1.1.1"}]},'
           b'{"rank_id":"1","server_id":"a","devices":[{"device_id":"1","device_ip":"1.1.1.2"}]}]}]}')  # fmt: skip
    pods = (b'{"version":"1.2","server_count":"2","server_list":['
            b'{"server_id":"a","device":[{"device_id":"0","super_device_id":"0","rank_id":"0","device_ip":"1.1.1.1"}]},'
            b'{"server_id":"b","device":[{"device_id":"0","super_device_id":"1","rank_id":"1"}]}],"super_pod_list":[{"super_pod_id":"0","server_list":['
            b'{"server_id":"a"},{"server_id":"b"}]}],"status":"completed"}')  # fmt: skip
    return files("tests/unit/ranktable/golden/*.json") + words + [group, lab, pods]


def spec():
    found = files("deploy/samples/**/*.yaml")
    for text in files("tests/golden/spec-errors.txt"):
        for case in cases(text, b"-- said"):
            over = re.sub(rb"(?m)^--(set|env) ", rb"#\1 ", case.strip(b"\n") + b"\n").replace(
                b"<0xff>", b"\xff"
            )
            base = b"name: base\nengine: torch\nlaunch: {script: train.py}\n"
            found.append(
                base + over if over.startswith(b"#set") or over.startswith(b"#env") else over
            )
    for text in files("tests/unit/spec/plans/*.txt"):
        found += cases(text, b"-- placed")
    for text in files("docs/job-spec.md", "docs/engines/*.md"):
        found += re.findall(rb"(?ms)^```yaml\n(.*?)^```", text)
    return found + [b"1h30m", b"1.5s", b"64KiB", b"1.5GiB", b"[4,8)", b"${env:HOME} $$ ${rank}"]


def patch():
    found = []
    for text in files("tests/unit/patch/cases.txt"):
        for part in re.split(rb"(?m)^== .*\n", text)[1:]:
            body, _, rest = part.partition(b"-- file ")
            found.append(
                re.sub(
                    rb"(?m)^-- change ",
                    b"#at ",
                    rest.partition(b"\n")[2].partition(b"-- becomes")[0],
                )
                + body
            )
    script = b"#var A=x y\n#!/bin/bash\nexport A=1 B=\"$(date)\"\ncat <<-'E' | tee x\n\tA=2\n\tE\nA=${B:-`c`} run.py --x \\\n  1\nL=(1 2)\n"
    return found + files("deploy/samples/**/*.sh") + [script]


def log():
    found = []
    for text in files("tests/fixtures/logs/*.log"):
        found += slices(text)
    bar = "\r".join(
        f"  {n}%|{'█' * n}{' ' * (50 - n)}| {n}/50 [00:{n:02d}<00:10,  1.00s/it, loss=2.{n}]"
        for n in range(0, 50, 7)
    )
    return found + [
        bar.encode(),
        b"x" * 70_000 + b" iteration 1/ 2 | lm loss: 1.0 |\nRuntimeError: " + b"y" * 2000 + b"\n",
    ]


def probe():
    found = [text.split(b"== expected")[0] for text in files("tests/fixtures/probe/*.txt")]
    return found + [b"id=0 type=ascend910b name=910B3 physical=4 bus=0000:c1:00.0 memory_mib=65536 address=192.1.1.4 numa=1\nid=1 type=cpu # a comment\n",
                    b"id=3 type=ascend910_93 super_device=12 super_pod=0 server=1\n"]  # fmt: skip


def _zip(names, comment=b""):
    to = io.BytesIO()
    with zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), b"weights")
        archive.comment = comment
    return to.getvalue()


def _safetensors(tensors):
    at, parts = 0, []
    for name, dtype, size in tensors:
        parts.append(
            f'"{name}":{{"dtype":"{dtype}","shape":[{size}],"data_offsets":[{at},{at + size}]}}'
        )
        at += size
    header = ('{"__metadata__":{"format":"ms"},' + ",".join(parts) + "}").encode()
    return struct.pack("<Q", len(header)) + header + b"\1" * at, header


def _ckpt_value(tag, kind, content):
    def field(key, data):
        size, length = len(data), b""
        while True:
            length += bytes([size & 0x7F | (0x80 if size > 0x7F else 0)])
            size >>= 7
            if size == 0:
                return key + length + data

    return field(
        b"\x0a",
        field(b"\x0a", tag)
        + field(b"\x12", b"\x08\x02\x08\x02" + field(b"\x12", kind) + field(b"\x1a", content)),
    )


def checkpoint():
    plain, header = _safetensors([("w", "F32", 16)])
    scalars = [
        ("epoch_num", "I64", 8),
        ("step_num", "I64", 8),
        ("global_step", "I32", 4),
        ("loss_scale", "F32", 4),
    ]
    resume, resume_header = _safetensors([("w", "F32", 16), *scalars])
    ckpt = b"".join(_ckpt_value(tag, kind, content) for tag, kind, content in (
        (b"w", b"Float32", b"\0" * 16), (b"epoch_num", b"Int32", struct.pack("<i", 3)), (b"step_num", b"Int32", struct.pack("<i", 70)),
        (b"global_step", b"Int64", struct.pack("<q", 170)), (b"loss_scale", b"Float32", struct.pack("<f", 65536))))  # fmt: skip
    crc = ckpt + b"crc_num" + struct.pack(">q", 1234).rjust(10, b"\0")
    archive = _zip(["archive/data.pkl", "archive/data/0"], b"a comment")
    at, size, count = archive.find(b"PK\1\2"), archive.find(b"PK\5\6") - archive.find(b"PK\1\2"), 2
    records = struct.pack(
        "<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, size, at
    ) + struct.pack("<IIQI", 0x07064B50, 0, at + size, 1)
    zip64 = archive[: at + size] + records + archive[at + size :]
    return [
        plain,
        header,
        resume,
        resume_header,
        ckpt,
        ckpt[: len(ckpt) // 2],
        crc,
        _zip(["a"]),
        archive,
        zip64,
        archive[:-5],
    ]


def frames():
    def frame(payload):
        return struct.pack("<II", len(payload), zlib.crc32(payload)) + payload

    lines = b"started\nrank 0 ended\nswept\n"
    # muster.rundir.v1.Event: wall_ns, boot_ns, boot_id; then kinds
    event = b"\x09" + struct.pack("<q", 1) + b"\x11" + struct.pack("<q", 2) + b"\x1a\x04boot"
    return [lines, b"a\n" * 20, frame(b"abc") + frame(b"d" * 100), frame(b"abc") + frame(b"abc")[:5],
            frame(event) + frame(event + b"\x22\x00"), frame(event)[:-1] + b"x"]  # fmt: skip


def enrol():
    def field(number, data):
        return (
            bytes([number << 3 | 2])
            + (
                bytes([len(data)])
                if len(data) < 128
                else bytes([len(data) & 127 | 128, len(data) >> 7])
            )
            + data
        )

    # The curve's own base point is a sound public key.
    key = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
                        "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5")  # fmt: skip
    signature = bytes.fromhex("3006020101020101")
    join = field(
        1,
        field(1, b"t1")
        + field(2, b"secret")
        + field(3, b"n1")
        + field(4, key)
        + field(5, signature),
    )
    renew = field(
        2,
        field(1, b"n1") + field(2, key) + field(3, key) + field(4, signature) + field(5, signature),
    )
    hour = field(5, b"\x08\x90\x1c")  # Duration: 3600 s
    login = field(
        3, field(1, b"t1") + field(2, b"secret") + field(3, key) + field(4, signature) + hour
    )
    at_socket = field(3, field(3, key) + hour)
    at_socket_short = field(3, field(3, key) + field(5, b"\x08\x01"))
    token = b"muster-join-1:t1:secret:" + b"0123456789abcdef" * 4
    personal = token.replace(b"join", b"login")
    logins = [login, at_socket, at_socket_short, personal]
    return [*logins, join, renew, token, struct.pack(">I", len(join)) + join, b"\0\0\x40\x01"]


def access():
    found = [
        block
        for text in files("docs/operations/users.md")
        for block in re.findall(rb"(?ms)^```yaml\n(.*?)^```", text)
    ]
    return found + [
        b"users: {alice: operator, bob: viewer}\n",
        b"default: viewer\ngroups:\n  lab: [bob, carol]\n  all: []\nroles:\n  lab: admin\n",
        b"others_may: [logs, env, cancel]\nuser: {}\n",
    ]


def config():
    """The samples of the packages, with their keys taken in, and files for the options of the target itself."""
    samples = [
        re.sub(rb"(?m)^#([a-z-]+: )", rb"\1", text) for text in files("deploy/package/*.yaml")
    ]
    return samples + [
        b"level: debug\ncount: 3\naddress: [a:1, 'b:2']\nslots: 9\nfile: /a/b\n",
        b"slots: 10\n",
        b"count: many\naddress: []\nonce: true\n",
    ]


def agents():
    def hello(node, devices, more=""):
        cards = " ".join(
            f'devices {{ id: {id} physical_id: {physical} type: "{kind}" }}'
            for id, physical, kind in devices
        )
        return (f'== {node}\nhello {{ protocol_min: 1 protocol_max: 1 version: "1" node: "{node}" instance: "i-{node}" incarnation: "1" boot_id: "b" uptime {{ seconds: 60 }}\n'
                f'  inventory {{ address: "10.0.0.1" interfaces {{ name: "eth0" addresses: "10.0.0.1" }} {cards} }} {more} }}\n')  # fmt: skip

    def fact(node, job, what, attempt=1):
        return f'== {node}\nfacts {{ sequence: 1 facts {{ job_id: "{job}" attempt: {attempt} at {{ seconds: 1800000000 }} {what} }} }}\n'

    cpu = [(id, id, "cpu") for id in range(4)]
    two = hello("n0", cpu) + hello("n1", cpu)
    ends = [
        (
            "started { pids: 7 worker_pid: 6 }",
            'exited { rank: 0 code: 1 evidence: "RuntimeError: x" }',
            "swept { why: SWEPT_WHY_ENDED }",
        ),
        (
            'start_failed { why: START_FAILURE_DISK text: "disk full" step: "check" }',
            "swept { why: SWEPT_WHY_NEVER_STARTED }",
        ),
        (
            "started { }",
            "first_step { step: 1 }",
            "node_clock_skewed { ahead { seconds: 75 } }",
            "exited { rank: 0 }",
            "exited { rank: 1 signal: 9 }",
            'auxiliary_exited { name: "scheduler" code: 1 }',
            "swept { }",
        ),
    ]
    histories = [
        two + "".join(fact("n0", job, what) for what in history) + "== later 20\n"
        for job in ("j1", "j2", "j3")
        for history in ends
    ]
    heartbeat = ('== n0\nheartbeat { number: 1 devices { id: 0 health: DEVICE_HEALTH_BAD occupants { pid: 9 } } readings { job_id: "j1" attempt: 1 ranks { rank: 0 step: 4 loss: 1 }\n'
             '  samples { step: 4 seconds: 1 } shards { step: 4 shard: "rank_0" bytes: 1 finished: true expected: 1 path: "/c" } setting_up: true setup_text: "x" start_step: "container" } }\n')  # fmt: skip
    return [hello("n0", [(0, 0, "ascend910_93"), (1, 0, "ascend910_93"), (2, 1, "ascend910_93")]), hello("n0", [(0, 0, "cpu"), (0, 1, "cpu"), (1, 2, "cpu")]),
            hello("n0", [(0, 0, "ascend910b"), (1, 8, "ascend910b"), (2, 8, "ascend910b")]) + hello("n1", cpu), *histories, two + heartbeat + "== later 60\n" + heartbeat,
            two + hello("n0", cpu, 'present { job_id: "j1" attempt: 1 } present { job_id: "j9" attempt: 3 }') + "== later 2000\n"]  # fmt: skip


def hosts():
    for text in files("docs/operations/deploy.md"):
        for block in re.findall(rb"(?ms)^```yaml\n(.*?)^```", text):
            yield block
    yield b"cluster: c\ncontroller: {host: head, listen: '[::]:7070', address: 10.0.0.1, log_quota: 20GB}\ndefaults: {user: u, port: 22, sudo: true}\nagents:\n  n[01-03]: {host: 'h[1-3]', labels: {rack: r}}\n"


def known_hosts():
    def blob(kind, text):
        return b"".join(struct.pack(">I", len(part)) + part for part in (kind, text))

    def line(names, kind=b"ssh-ed25519", text=b"key"):
        return names + b" " + kind + b" " + base64.b64encode(blob(kind, text)) + b"\n"

    salt = base64.b64encode(b"s" * 20)
    hashed = b"|1|" + salt + b"|" + base64.b64encode(hmac.new(b"s" * 20, b"n1", "sha1").digest())
    private = b"openssh-key-v1\0" + b"".join(
        struct.pack(">I", len(part)) + part for part in (b"none", b"none", b"")
    )
    private += struct.pack(">II", 1, len(blob(b"ssh-ed25519", b"key"))) + blob(
        b"ssh-ed25519", b"key"
    )
    return [
        b"n1\n# a comment\n" + line(b"n1,10.0.0.1") + line(b"[n1]:2222", text=b"other"),
        b"n1\n" + line(hashed) + b"@revoked " + line(b"*"),
        b"n1.lab\n" + line(b"*.lab,!bad.*,gpu-??", b"ecdsa-sha2-nistp256"),
        b"n1\n@cert-authority " + line(b"*") + b"n1 ssh-rsa AAAA\n" + line(b"n1", text=b"two"),
        struct.pack(">II", 1, 22) + blob(b"ssh-ed25519", b"key") + b"\0\0\0\1c",
        b"-----BEGIN OPENSSH PRIVATE KEY-----\n"
        + base64.b64encode(private)
        + b"\n-----END OPENSSH PRIVATE KEY-----\n",
        line(b"ssh-ed25519")[12:],
    ]


def listing():
    """Lines as rclone 1.60 prints them."""

    def entry(name, size=5, time="2026-11-28T03:28:22Z", is_dir="false", md5=""):
        hashes = f',"Hashes":{{"md5":"{md5}"}}' if md5 else ""
        return f'{{"Path":"{name}","Name":"x","Size":{size},"ModTime":"{time}","IsDir":{is_dir}{hashes}}}'

    def whole(*entries):
        return "[\n" + ",\n".join(entries) + "\n]\n"

    log = '{"level":"notice","msg":"x"}\n'
    p_dir = entry("p", -1, "", "true")
    return [
        whole(entry("b", md5="415290769594460e2e485922904f345d"), entry("a/x"), entry("d/e", -1, "", "true"), entry("d", -1, "", "true")),
        whole(entry("p"), entry("p-x"), entry("p.x"), entry("p/q")),
        whole(entry("p"), p_dir) + log,
        log + whole(entry("a␊", 9223372036854775807), entry("‛␊", 18446744073709551615), entry("‛．‛．"), entry("．")),
        whole(entry("a", time="1970-01-01T09:00:00+09:00"), entry("c", time="2026-11-28T07:14:58.543374147Z")),
        "[\n" + entry("a") + log + ",\n" + entry("b") + "\n]\n",
        whole(entry("a", -1)),
        whole(entry("a\\nb"), entry("..")),
        whole(entry("a" * 255 + "/" + "b/" * 200 + "c")),
        "[\n]\n",
    ]  # fmt: skip


def diff():
    body = b"@@ -1,3 +1,4 @@ def f():\n a\n-b\n+B\n+C\n c\n@@ -20 +21 @@\n-x\n\\ No newline at end of file\n+y\n"
    git = b"diff --git a/t/x.py b/t/x.py\nindex 1..2 100644\n--- a/t/x.py\n+++ b/t/x.py\n" + body
    plain = (
        b"diff -ru old/t/x.py new/t/x.py\n--- old/t/x.py\t2024-01-01 00:00:00 +0000\n+++ new/t/x.py\t2024-01-02 00:00:00 +0000\n"
        + body
        + b"Only in new: y\n"
    )
    come_and_go = (b"diff --git a/n b/n\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n"
                   b"diff --git a/o b/o\ndeleted file mode 100644\nindex 1..0\n--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
                   b"diff --git a/m.py b/n.py\nsimilarity index 100%\nrename from m.py\nrename to n.py\n"
                   b"diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n")  # fmt: skip
    mail = (
        b"From 12ab\nSubject: [PATCH] --- not a file\n\n---\n t/x.py | 2 +-\n\n"
        + git
        + b"-- \n2.39\n"
    )
    return [
        git,
        plain,
        come_and_go,
        mail,
        b"diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 1\n",
    ]


WORDS = {
    "access": r"""
        "default: " "users: {" "groups: {" "roles: {" "others_may: [" "logs" "env" "cancel" "viewer" "user" "operator" "admin"
    """,
    "config": r"""
        "level: " "count: " "slots: " "address: [" "file: " "once: " "config: " "check-config: " "info" "debug" "null" "~" "\"\x01\""
    """,
    "enrol": r"""
        "muster-join-1:" "\x00\x00\x40\x00" "\xff\xff\xff\xff" "\x0a" "\x12" "\x1a" "\x22" "\x30\x59\x30\x13"
    """,
    "agents": r"""
        "== n0" "== n1" "== later " "hello { " "facts { " "heartbeat { " "devices { " "physical_id: " "job_id: " "attempt: " "started { " "exited { " "swept { "
        "start_failed { " "start_step: " "first_step { " "auxiliary_exited { " "rank: " "seconds: " "readings { " "ranks { " "samples { " "shards { " "occupants { "
        "present { " "incarnation: " "uptime { " "4294967295" "18446744073709551615" "-9223372036854775808"
    """,
    "hosts": r"""
        "cluster: " "controller: " "defaults: " "agents: " "host: " "port: " "user: " "identity: " "jump: " "known_hosts: " "host_keys: " "sudo: true" "prefix: /"
        "listen: " "address: " "labels: {" "training_address: " "container_args: [" "state_dir: /" "[01-16]" "[1,3-5]" "[::]:7070"
    """,
    "known_hosts": r"""
        "ssh-ed25519 " "ssh-rsa " "ecdsa-sha2-nistp256 " "AAAAC3NzaC1lZDI1NTE5AAAA" "@revoked " "@cert-authority " "|1|" "[n1]:2222" "*." ",!" "==" "#"
        "-----BEGIN OPENSSH PRIVATE KEY-----" "-----END"
    """,
    "diff": r"""
        "diff --git a/" " b/" "--- a/" "+++ b/" "/dev/null" "@@ -1,3 +1,4 @@" "@@ -0,0 +1 @@" "new file mode 100644" "deleted file mode " "old mode " "new mode "
        "index 1..2 " "120000" "160000" "100755" "rename from " "rename to " "copy from " "GIT binary patch" "Binary files " " differ" "\\ No newline" "../"
        ".git/" "-- "
    """,
    "ranktable": r"""
        "status" "completed" "initializing" "version" "1.0" "1.2" "server_count" "server_list" "server_id" "device" "device_id" "device_ip" "rank_id"
        "host_ip" "host_nic_ip" "super_device_id" "super_pod_list" "super_pod_id" "group_count" "group_list" "group_name" "device_count" "device_num"
        "server_num" "instance_count" "instance_list" "pod_name" "devices" "deploy_mode" "lab" "para_plane_nic_location" "device_port"
        "backup_device_ip"
    """,
    "probe": r"""
        "== npu-smi info" "== npu-smi info -m" "== npu-smi info -l" "== hccn_tool -i 0 -ip -g" "=> status 1" "| NPU   Name" "Phy-ID" "Bus-Id"
        "HBM-Usage(MB)" "No running processes found in NPU" "NPU ID" "Chip Count" "Total Count" "ipaddr:" "link status: UP" "address_0="
        "[GPU is lost]" "index, uuid, name"
    """,
    "patch": r"""
        "#at " "#var " "[type=" "<<: *" "&a " "*a" "!!str " "- " ": " "{}" "[]" "|" ">-" "null" "export " "<<EOF" "$(" "${" "(("
    """,
    "listing": r"""
        "{\"Path\":\"" "\",\"Size\":" "\",\"ModTime\":\"" "\",\"IsDir\":true}" ",\"IsDir\":false}" "\"Hashes\":{\"md5\":\"" "{\"level\":" "\x0a]\x0a" "[\x0a" ",\x0a"
        "\\u0000" "\\n" "../" "/" "-1" "18446744073709551615" "1970-01-01T00:00:00Z" "+09:00" "\xe2\x80\x9b" "\xe2\x90\x8a" "\xe2\x90\xa1" "\xef\xbc\x8e"
    """,
    "log": r"""
        "elapsed time per iteration (ms):" "lm loss:" "iteration" "Epoch:[" "loss:" "ERROR" "Traceback (most recent call last)" "RuntimeError:"
        "EI0006:" "ERR01100" "[rank0]: " "nan" "inf"
    """,
    "checkpoint": r"""
        "PK\x05\x06" "PK\x06\x06" "PK\x06\x07" "PK\x01\x02" "__metadata__" "dtype" "data_offsets" "shape" "epoch_num" "step_num" "global_step"
        "loss_scale" "crc_num" "Int32" "Int64"
    """,
}


def dictionary(target):
    if target == "spec":
        with open(os.path.join(ROOT, "common/spec/keys/key_table.cc"), encoding="utf-8") as file:
            keys = set(re.findall(r'^\s*\{"([a-z_.]+)",', file.read(), re.M))
        words = {part for key in keys for part in (key, key.split(".")[-1] + ": ")} | {
            "#set ",
            "#env ",
            "${",
            "<<: ",
            "- ",
        }
        return "".join(f'"{word}"\n' for word in sorted(words))
    return "".join(word + "\n" for word in re.findall(r'"(?:[^"\\]|\\.)*"', WORDS.get(target, "")))


def write(target, folder):
    os.makedirs(folder, exist_ok=True)
    for seed in {
        "access": access,
        "agents": agents,
        "checkpoint": checkpoint,
        "config": config,
        "diff": diff,
        "enrol": enrol,
        "frames": frames,
        "hosts": hosts,
        "known_hosts": known_hosts,
        "listing": listing,
        "log": log,
        "patch": patch,
        "probe": probe,
        "ranktable": ranktable,
        "spec": spec,
    }[target]():
        data = seed.encode() if isinstance(seed, str) else seed
        with open(os.path.join(folder, hashlib.sha1(data).hexdigest()), "wb") as file:
            file.write(data)
