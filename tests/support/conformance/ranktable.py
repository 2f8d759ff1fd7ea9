"""A rank table as HCCL reads it, with HCCL's own codes (reference: CANN HCCL topoinfo_ranktableParser.cc, topoinfo_ranktableConcise.cc, config.cc).

Stricter than HCCL in one thing: the table is never waited for.  Whoever starts the ranks publishes it first, whole, so "initializing" is a fault here.
"""

import hashlib
import ipaddress
import json
import os
import socket
import stat

from .fail import Violation


def _scalars(where, entry, names, problems):
    for name in names:
        if name in entry and not isinstance(entry[name], str):
            problems.append(f"EI0004: {where}: {name} is not string!")


def _unique(what, values, problems):
    seen = set()
    for value in values:
        if value in seen:
            problems.append(f"EI0004: {what} {value} is used repeatedly")
        seen.add(value)


def _path(path, problems):
    first = path.find(".json")
    if first < 0 or first + len(".json") != len(path):
        problems.append(
            f"EI0004: RANK_TABLE_FILE '{path}' is not a valid real path: the first '.json' has to be its end"
        )
    if os.path.islink(path):
        problems.append(f"RANK_TABLE_FILE '{path}' is a symbolic link, which torch_npu refuses")
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        problems.append(f"RANK_TABLE_FILE '{path}' is no file")
    if mode & 0o022:
        problems.append(
            f"RANK_TABLE_FILE '{path}' can be written by others ({stat.S_IMODE(mode):o})"
        )


def _servers(table, problems):
    servers = table.get("server_list")
    if not isinstance(servers, list) or not servers:
        problems.append("EI0017: server_list is missing or empty")
        return []
    if "server_count" in table and table["server_count"] != str(len(servers)):
        problems.append(
            f"EI0004: server_count {table['server_count']!r} and {len(servers)} servers"
        )
    _unique("server_id", [server.get("server_id") for server in servers], problems)
    rows = []
    for server in servers:
        _scalars("server", server, ("server_id",), problems)
        if not server.get("device"):
            problems.append(f"EI0017: server {server.get('server_id')!r} has no device")
        for device in server.get("device", []):
            _scalars(
                "device", device, ("device_id", "device_ip", "rank_id", "super_device_id"), problems
            )
            rows.append((server, device))
    _unique(
        "device_ip", [device["device_ip"] for _, device in rows if "device_ip" in device], problems
    )
    for server in servers:
        _unique(
            f"server {server.get('server_id')}: device_id",
            [device.get("device_id") for device in server.get("device", [])],
            problems,
        )
    if len(servers) > 1:
        for _, device in rows:
            if not is_address(device.get("device_ip", "")):
                problems.append(
                    f"EI0014: rank {device.get('rank_id')}: device_ip {device.get('device_ip')!r} is no address, and there is more than one server"
                )
    if sorted(device.get("rank_id", "") for _, device in rows) != sorted(
        str(i) for i in range(len(rows))
    ):
        problems.append(f"EI0004: rank ids are not 0..{len(rows) - 1}")
    return rows


def is_address(text):
    """A server's name need not be one: to HCCL it is only a name."""
    try:
        ipaddress.ip_address(text)
        return True
    except ValueError:
        return False


def is_own_address(address):
    """Whether this machine answers to it: a table that names another host sends the other ranks there."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            probe.bind((address, 0))
        return True
    except OSError:
        return False


class Table:
    def __init__(self, path, rank, size, device_id):
        problems = []
        try:
            with open(path, "rb") as file:
                content = file.read()
            _path(path, problems)
            table = json.loads(content)
        except OSError as error:
            raise Violation(
                f"EI0004: RANK_TABLE_FILE '{path}' is not a valid real path: {error.strerror}"
            ) from error
        except ValueError as error:
            raise Violation(
                f"EI0004: RANK_TABLE_FILE '{path}' cannot be parsed: {error}"
            ) from error
        if table.get("version") not in ("1.0", "1.2"):
            problems.append(f"EI0004: version {table.get('version')!r}")
        if table.get("status") != "completed":
            problems.append(
                f"EI0004: status {table.get('status')!r}: HCCL would wait for up to 1800 s"
            )
        rows = _servers(table, problems)
        if problems:
            raise Violation(*problems)
        own = [(server, device) for server, device in rows if device["rank_id"] == str(rank)]
        if len(rows) != size or not own:
            raise Violation(
                f"EI0004: the table has {len(rows)} ranks; RANK_ID is {rank}, RANK_SIZE {size}"
            )
        server, device = own[0]
        if device["device_id"] != str(device_id):
            raise Violation("EI0004: config devId is inconsistent with the local devId: "
                            f"rank {rank} is on device {device['device_id']}, DEVICE_ID is {device_id}")  # fmt: skip
        if is_address(server["server_id"]) and not is_own_address(server["server_id"]):
            raise Violation(
                f"EI0014: rank {rank} is said to be on server {server['server_id']}, which is no address of this host"
            )
        # Where the ranks of a test meet; HCCL's own would go by the cards' network.
        first = next(s["server_id"] for s, d in rows if d["rank_id"] == "0")
        self.first_server = first if is_address(first) else "127.0.0.1"
        self.sha256 = hashlib.sha256(content).hexdigest()
