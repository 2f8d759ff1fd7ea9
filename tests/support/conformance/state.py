"""The training state, real enough to tell a right resume from a wrong one, and the file formats that hold it.

A loss is a function of everything: of each shard's own number, which every step moves on (weights), and of a running mean over all ranks (the optimizer).
Resumed from another step, from another rank's shard, or without the optimizer, the losses differ from the first step on.
"""

import json
import struct

_MASK = (1 << 64) - 1


def mix(value):
    """splitmix64."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


class State:
    def __init__(self, shard, world, seed=1234):
        self.shard, self.world = shard, world
        self.step, self.weights, self.optimizer = 0, mix(seed + shard), 0.0

    def advance(self, gang, rank):
        """One step of all ranks together; the loss."""
        self.step += 1
        self.weights = mix(self.weights + self.step)
        own = mix(self.weights ^ (rank << 32)) / 2.0**64
        total = 0.0
        for (value,) in struct.iter_unpack("!d", b"".join(gang.exchange(struct.pack("!d", own)))):
            total += value  # in rank order, the same on every rank
        self.optimizer = 0.9 * self.optimizer + 0.1 * total / self.world
        return 10.0 / (1.0 + 0.02 * self.step) + self.optimizer

    def record(self, part="all", **more):
        out = {"step": self.step, "shard": self.shard, "world": self.world, **more}
        if part in ("all", "model"):
            out["weights"] = f"{self.weights:016x}"
        if part in ("all", "optimizer"):
            out["optimizer"] = self.optimizer.hex()
        return out

    def restore(self, record):
        self.step = record["step"]
        if "weights" in record:
            self.weights = int(record["weights"], 16)
        if "optimizer" in record:
            self.optimizer = float.fromhex(record["optimizer"])


UNITS = 16  # that MindFormers' whole model has, where as many ranks share them evenly


def units_of(rank, world):
    """Which of the model's units a rank has: the first, how many, of how many."""
    units = UNITS if UNITS % world == 0 else world
    return rank * (units // world), units // world, units


class Cut(State):
    """The whole model is so many units, and every rank has some of them. The losses are the same whatever the number of ranks; a rank's shard fits one cut
    alone, and another one only when transform_ckpt.py has made it."""

    def __init__(self, rank, world, seed=1234):
        super().__init__(rank, world, seed)
        self.first, self.count, self.units = units_of(rank, world)
        self.weights = [mix(seed + self.first + i) for i in range(self.count)]

    def advance(self, gang, rank):
        self.step += 1
        self.weights = [mix(number + self.step) for number in self.weights]
        own = [
            mix(number ^ (self.first + i << 32)) / 2.0**64
            for i, number in enumerate(self.weights)
        ]
        total = 0.0
        for (value,) in struct.iter_unpack(
            "!d", b"".join(gang.exchange(struct.pack(f"!{self.count}d", *own)))
        ):
            total += value  # in the order of the units, the same on every rank
        self.optimizer = 0.9 * self.optimizer + 0.1 * total / self.units
        return 10.0 / (1.0 + 0.02 * self.step) + self.optimizer

    def record(self, part="all", **more):
        out = super().record(
            "optimizer" if part in ("all", "optimizer") else "none",
            units=[self.first, self.count, self.units],
            **more,
        )
        if part in ("all", "model"):
            out["weights"] = [f"{number:016x}" for number in self.weights]
        return out

    def restore(self, record):
        super().restore({key: value for key, value in record.items() if key != "weights"})
        weights = record.get("weights", [])
        if isinstance(weights, str):  # a stranger's: one number for all
            self.weights = [int(weights, 16)] * self.count
        elif weights:
            first, count, units = record["units"]
            if units != self.units or first > self.first or first + count < self.first + self.count:
                raise ValueError(
                    f"it holds {count} units from {first} on, of {units}; asked for are {self.count} from {self.first} on, of {self.units}"
                )
            self.weights = [
                int(number, 16) for number in weights[self.first - first :][: self.count]
            ]


def cut_again(records, world):
    """The shards of one cut, by rank -> those of another one."""
    whole = [number for _, record in sorted(records.items()) for number in record["weights"]]
    out = {}
    for rank in range(world):
        first, count, units = units_of(rank, world)
        if units != len(whole):
            raise ValueError(
                f"the shards have {len(whole)} units together, and {world} ranks share {units}"
            )
        out[rank] = {
            **records[0],
            "shard": rank,
            "world": world,
            "units": [first, count, units],
            "weights": whole[first : first + count],
        }
    return out


# ---- torch.save: a zip archive, stored; the pickle is not one, and nobody unpickles it here


def zip_bytes(record):
    import io  # pylint: disable=import-outside-toplevel  # a rank that saves nothing needs neither
    import zipfile  # pylint: disable=import-outside-toplevel

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", json.dumps(record))
        archive.writestr("archive/data/0", bytes(2048))
        archive.writestr("archive/version", "3\n")
    return buffer.getvalue()


def read_zip(path):
    import zipfile  # pylint: disable=import-outside-toplevel

    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("archive/data.pkl"))


# ---- mindspore.save_checkpoint: protobuf messages one behind the other (mindspore/ccsrc/utils/checkpoint.proto)


def _varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number, content):
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _value(tag, dims, kind, content):
    tensor = (
        b"".join(b"\x08" + _varint(dim) for dim in dims)
        + _field(2, kind.encode())
        + _field(3, content)
    )
    return _field(1, _field(1, tag.encode()) + _field(2, tensor))


def ckpt_bytes(record, counters):
    """`counters`: (name, dims, kind, value) in the order in which the release appends them."""
    text = json.dumps(record).encode()
    out = _value("embedding.weight", [2, 256], "Float32", bytes(2048)) + _value(
        "conformance.state", [len(text)], "UInt8", text
    )
    for name, dims, kind, value in counters:
        packed = (
            struct.pack("<f", value)
            if kind == "Float32"
            else struct.pack("<q", value)
            if kind == "Int64"
            else struct.pack("<i", value)
        )
        out += _value(name, dims, kind, packed)
    return out


def _read_varint(text, at):
    value = shift = 0
    while True:
        byte = text[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _fields(text):
    at = 0
    while at < len(text):
        key, at = _read_varint(text, at)
        if key & 7 == 0:
            value, at = _read_varint(text, at)
        else:
            size, at = _read_varint(text, at)
            if at + size > len(text):
                raise ValueError("truncated")
            value, at = text[at : at + size], at + size
        yield key >> 3, value


def read_ckpt(path):
    """(the state, the counters): every message is read to its end."""
    with open(path, "rb") as file:
        text = file.read()
    record, counters = None, {}
    for _, message in _fields(text):
        value = dict(_fields(message))
        tensor = dict(_fields(value[2]))
        tag, content = value[1].decode(), tensor[3]
        if tag == "conformance.state":
            record = json.loads(content)
        elif len(content) in (4, 8):
            counters[tag] = struct.unpack(
                {b"Float32": "<f", b"Int64": "<q"}.get(tensor[2], "<i"), content
            )[0]
    if record is None:
        raise ValueError(f"'{path}' holds no training state")
    return record, counters


# ---- safetensors: eight bytes of length, a JSON header of names, types, shapes and places, the data (huggingface/safetensors README)

_TYPES = {"Float32": ("F32", "<f"), "Int64": ("I64", "<q"), "Int32": ("I32", "<i")}


def safetensors_bytes(record, counters):
    text = json.dumps(record).encode()
    entries = [
        ("embedding.weight", "F32", [2, 256], bytes(2048)),
        ("conformance.state", "U8", [len(text)], text),
    ]
    for name, dims, kind, value in counters:
        entries.append(
            (
                name,
                _TYPES[kind][0],
                [dim for dim in dims if dim],
                struct.pack(_TYPES[kind][1], value),
            )
        )
    header, data = {}, b""
    for name, kind, shape, content in entries:
        header[name] = {
            "dtype": kind,
            "shape": shape,
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + data


def read_safetensors(path):
    """(the state, the counters): as read_ckpt."""
    with open(path, "rb") as file:
        text = file.read()
    (size,) = struct.unpack_from("<Q", text)
    header, data = json.loads(text[8 : 8 + size]), text[8 + size :]
    if max(entry["data_offsets"][1] for entry in header.values()) != len(data):
        raise ValueError("truncated")
    parts = {
        name: data[entry["data_offsets"][0] : entry["data_offsets"][1]]
        for name, entry in header.items()
    }
    kinds = {kind: form for kind, form in _TYPES.values()}
    counters = {
        name: struct.unpack(kinds[header[name]["dtype"]], part)[0]
        for name, part in parts.items()
        if len(part) in (4, 8)
    }
    return json.loads(parts["conformance.state"]), counters
