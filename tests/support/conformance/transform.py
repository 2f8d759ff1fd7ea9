"""mindformers/tools/transform_ckpt.py: cuts a checkpoint again, for another strategy. One process, no device, and nothing that it is forgiving about:

    a strategy directory is merged into merged_ckpt_strategy.ckpt inside of it (one that is there is deleted first), and has to hold the file of every rank
    every rank directory of the source holds one .ckpt, that of one step, and there are as many of them as the source's strategy has ranks
    rank_<i>/<prefix><i>.ckpt below the target directory, which has none of them yet

    import sys; from conformance.transform import main; main("mindformers-r1.0")
"""

import argparse
import json
import os
import sys

from . import state
from .fail import Ended, Violation, engine_error
from .trainer import release

_MERGED = "merged_ckpt_strategy.ckpt"


def _ranks(path):
    """How many ranks a strategy is of; none: the model is whole."""
    if path in ("", "None"):
        return 1
    if not os.path.isdir(path):
        if not os.path.isfile(path):
            raise engine_error("FileNotFoundError", f"strategy '{path}' is not there")
        with open(path, encoding="ascii") as file:
            return json.load(file)["ranks"]
    merged = os.path.join(path, _MERGED)
    if os.path.exists(merged):
        os.remove(merged)
    found = {}
    for name in sorted(os.listdir(path)):
        with open(os.path.join(path, name), encoding="ascii") as file:
            one = json.load(file)
        if name != f"ckpt_strategy_rank_{one['rank']}.ckpt":
            raise Violation(f"'{name}' in '{path}' is the strategy of rank {one['rank']}")
        found[one["rank"]] = one
    worlds = {one["world"] for one in found.values()}
    if len(worlds) != 1 or sorted(found) != [*range(next(iter(worlds)))]:
        raise Violation(
            f"'{path}' has the strategies of ranks {sorted(found)}, of {sorted(worlds)}"
        )
    with open(merged, "w", encoding="ascii") as file:
        json.dump({"ranks": len(found)}, file)
    return len(found)


def _source(path, ranks):
    """({rank: state}, counters): one file a rank, all of one step."""
    there = sorted(
        name
        for name in os.listdir(path)
        if name.startswith("rank_") and os.path.isdir(os.path.join(path, name))
    )
    if there != sorted(f"rank_{rank}" for rank in range(ranks)):
        raise Violation(f"'{path}' has {there}, and the strategy is of {ranks} ranks")
    records, counters = {}, {}
    for rank in range(ranks):
        own = os.path.join(path, f"rank_{rank}")
        files = [name for name in os.listdir(own) if name.endswith(".ckpt")]
        if len(files) != 1:
            raise Violation(
                f"'{own}' has {len(files)} checkpoints, {sorted(files)}: it would take any of them"
            )
        records[rank], counters[rank] = state.read_ckpt(os.path.join(own, files[0]))
    if (
        len({record.get("step") for record in records.values()}) != 1
        or len({json.dumps(one) for one in counters.values()}) != 1
    ):
        raise Violation(
            f"'{path}' has files of steps {sorted(str(record.get('step')) for record in records.values())}"
        )
    if any(record["world"] != ranks or record["shard"] != rank for rank, record in records.items()):
        raise Violation(
            f"'{path}' has shards of {sorted({record['world'] for record in records.values()})} ranks, and the strategy is of {ranks}"
        )
    return records, counters[0]


def _run(rules, argv):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name, default in (
        ("src_ckpt_strategy", ""),
        ("dst_ckpt_strategy", ""),
        ("src_ckpt_dir", ""),
        ("dst_ckpt_dir", ""),
        ("prefix", "checkpoint_"),
    ):
        parser.add_argument(f"--{name}", default=default)
    args = parser.parse_args(argv)
    left = [name for name in ("RANK_TABLE_FILE", "RANK_ID", "MS_ROLE") if name in os.environ]
    if left:
        raise Violation(f"{left} are set: it would take itself for one of several processes")
    print("......Start transform......", flush=True)
    world = _ranks(args.dst_ckpt_strategy)
    records, counters = _source(args.src_ckpt_dir, _ranks(args.src_ckpt_strategy))
    try:
        shards = state.cut_again(records, world)
    except ValueError as error:
        raise engine_error("ValueError", str(error)) from error
    kinds = [
        (name, dims, kind, counters[name])
        for name, dims, kind, _ in rules["checkpoint"]["counters"]
        if name in counters
    ]
    for rank, record in shards.items():
        path = os.path.join(args.dst_ckpt_dir, f"rank_{rank}", f"{args.prefix}{rank}.ckpt")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.write(state.ckpt_bytes(record, kinds))
    print("......Transform succeed!......", flush=True)


def main(name, argv=None):
    try:
        _run(release(name), sys.argv[1:] if argv is None else argv)
    except Ended as ended:
        sys.stdout.flush()
        sys.exit(ended.leave())
