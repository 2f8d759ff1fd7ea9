"""The program: a release's data file, a command line, an environment, and what that release would make of them.  See README.md.

A test puts this folder into a code tree and beside it, under the name that a user knows, a script of two lines:

    from conformance.trainer import main
    main("mindformers-r1.0", __file__)

A few variables are the test's, and no engine's; none has to be set:

    CONFORMANCE_RECORD    a directory: every rank writes down its starts, steps, loads and saves there
    CONFORMANCE_STEP_MS   how long a step takes
    CONFORMANCE_HOLD      "RANK STEP": the first process that is this rank stays in the middle of its first file of that step, until it is killed
    CONFORMANCE_RECORD/stay  a file with a step, the test's: ranks stay behind that step, or behind a later one, until the file is gone
    CONFORMANCE_NO_STRATEGY  MindFormers: a rank, which writes no strategy file
    CONFORMANCE_LEAVE     MindFormers: a step; the first run ends behind it with status 0 and without a word, as under a wrapper that swallows how it ended
"""

import hashlib
import json
import os
import signal
import sys
import time

from . import arguments, deepspeed, fsdp2, gang, megatron, mindformers, place
from .fail import Ended

_LOOPS = {"mindformers": mindformers, "megatron": megatron, "fsdp2": fsdp2, "deepspeed": deepspeed}


def release(name):
    """The data file. "extends" names another one; what both have is this one's, mappings are joined, "NAME!" replaces the other's NAME whole, and
    arguments.without names flags of the other's that are gone."""
    with open(
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "releases", f"{name}.json"),
        encoding="utf-8",
    ) as file:
        own = json.load(file)
    if "extends" in own:
        own = _joined(release(own["extends"]), own)
    for name in own["arguments"].pop("without", []):
        del own["arguments"]["flags"][name]
    return own


def _joined(base, own):
    if not isinstance(base, dict) or not isinstance(own, dict):
        return own
    out = dict(base)
    for key, value in own.items():
        out[key.rstrip("!")] = _joined(base[key], value) if key in base else value
    return out


def _digests(top):
    """{path below it: SHA-256}; a file is "." itself."""
    found = {}
    for folder, _, names in os.walk(top) if os.path.isdir(top) else [(os.path.dirname(top), (), [os.path.basename(top)])]:
        for path in (os.path.join(folder, name) for name in names):
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = hashlib.sha256(file.read()).hexdigest()
    return found


class Run:
    """What the test wants to know, and nobody else: written beside the log, in a directory of the test's."""

    def __init__(self, script, name):
        self.code = os.path.dirname(os.path.abspath(script))
        self._name = name
        self._step = float(os.environ.get("CONFORMANCE_STEP_MS") or 0) / 1e3
        self._hold = os.environ.get("CONFORMANCE_HOLD", "").split()
        self._forget = os.environ.get("CONFORMANCE_NO_STRATEGY")
        record = self._record = os.environ.get("CONFORMANCE_RECORD")
        self._leave = (
            os.environ.get("CONFORMANCE_LEAVE")
            if record and not os.path.exists(os.path.join(record, "left"))
            else None
        )
        self._trace = (
            open(os.path.join(record, f"{name}.trace"), "a", encoding="ascii") if record else None
        )
        self._events = (
            open(os.path.join(record, f"{name}.events"), "a", encoding="utf-8") if record else None
        )

    def _event(self, kind, **more):
        if self._events:
            self._events.write(json.dumps({"event": kind, "pid": os.getpid(), **more}) + "\n")
            self._events.flush()

    def started(self, argv, table):
        self._event("started", argv=argv, cwd=os.getcwd(), env=dict(os.environ), table=table)

    def found(self, places):
        """{option: path} of what the arguments name: the SHA-256 of each file that is there, by its path."""
        if self._events:
            self._event("found", places=places, files={name: _digests(path) for name, path in places.items()})

    def loaded(self, source, step):
        self._event("loaded", source=source, step=step)

    def saved(self, step):
        self._event("saved", step=step)

    def observed(self, path):
        self._event("observed", path=path)

    def step(self, step, loss):
        if self._trace:
            self._trace.write(f"{step} {loss.hex()} {time.monotonic_ns()} {os.getpid()}\n")
            self._trace.flush()
            while self._stays(step):
                time.sleep(0.01)

    def _stays(self, step):
        try:
            with open(os.path.join(self._record, "stay"), encoding="ascii") as file:
                return step >= int(file.read())
        except FileNotFoundError:
            return False

    def pause(self):
        if self._step:
            time.sleep(self._step)

    def leaves(self, step):
        """Every rank of the first run says so behind the same step; those of later ones find its trace."""
        if str(step) != self._leave:
            return False
        with open(os.path.join(self._record, "left"), "w", encoding="ascii"):
            return True

    def forgets_strategy(self):
        return self._name == f"rank-{self._forget}"

    def half_way(self, step):
        if self._hold and [self._name, str(step)] == [f"rank-{self._hold[0]}", self._hold[1]]:
            try:
                os.close(
                    os.open(
                        os.path.join(self._record, "blocked"), os.O_CREAT | os.O_EXCL | os.O_WRONLY
                    )
                )
            except FileExistsError:
                return  # a later attempt's
            while True:
                signal.pause()


def _work(rules, script, argv):
    options = arguments.parse(rules, script, argv)
    where = place.Place(rules, os.environ)
    if rules["private_directory"]:
        place.own_directory()
    run = Run(script, "scheduler" if where.is_scheduler else f"rank-{where.rank}")
    run.started([script, *argv], where.table.sha256 if where.table else None)
    if where.is_scheduler:
        gang.schedule(where)
        return
    training = _LOOPS[rules["loop"]].Training(rules, where, options, run)
    training.gang = gang.Gang(where, rules)
    if where.table:
        tables = set(training.gang.exchange(where.table.sha256.encode()))
        if len(tables) != 1:
            raise place.Violation(f"EI0004: the ranks have {len(tables)} different rank tables")
    mode = getattr(training, "mode", "train")
    if not getattr(training, "compile", bool)():
        training.load()
        {
            "eval": getattr(training, "evaluate", None),
            "predict": getattr(training, "predict", None),
        }.get(mode, training.train)()
    training.gang.barrier()
    training.gang.goodbye()


def main(name, script, argv=None):
    try:
        _work(release(name), script, sys.argv[1:] if argv is None else argv)
    except Ended as ended:
        sys.stdout.flush()
        sys.exit(ended.leave())
