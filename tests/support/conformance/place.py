"""Which process of the gang this is, by the environment alone: what the release needs is there and agrees with itself, and nothing of another launcher is
left over.

The data file lists the release's launchers, first fit wins ("when": a variable that is set, or NAME=VALUE; "" = always):

    needs      NAME: kind; number, port, sched_port (1024 and above), hccl_port (32 from it on), address, own_address (of this host), path, or =WORD
    may        the same, of what need not be set
    not        NAME: {value: why}; "*" is any value at all
    agree      expressions over the environment's numbers, and `visible` (the devices shown to the process); every one has to hold
    rank, world, device, hub, scheduler   where this launcher tells them
"""

import os

from . import gang
from .fail import Violation
from .ranktable import Table, is_address, is_own_address
from .wait import until


def _wrong(kind, text):
    if kind.startswith("="):
        return None if text == kind[1:] else f"is {text!r}, not {kind[1:]!r}"
    if kind == "path":
        return None if text.startswith("/") else f"is {text!r}, no absolute path"
    if kind in ("address", "own_address"):
        if not is_address(text):
            return f"is {text!r}, no address"
        return (
            f"is {text}, which is no address of this host"
            if kind == "own_address" and not is_own_address(text)
            else None
        )
    if not text.isdigit():
        return f"is {text!r}, no number"
    least, most = {"port": (1, 65535), "sched_port": (1024, 65535), "hccl_port": (1024, 65520)}.get(
        kind, (0, 1 << 31)
    )
    return None if least <= int(text) <= most else f"is {text}, not within {least}..{most}"


def _check(rules, environment):
    problems = []
    for name, kind in rules.get("needs", {}).items():
        if environment.get(name, "") == "":
            problems.append(f"{name} is not set ({rules['name']})")
        elif wrong := _wrong(kind, environment[name]):
            problems.append(f"{name} {wrong}")
    for name, kind in rules.get("may", {}).items():
        if name in environment and (wrong := _wrong(kind, environment[name])):
            problems.append(f"{name} {wrong}")
    for name, values in rules.get("not", {}).items():
        for value, why in values.items():
            if name in environment and value in ("*", environment[name]):
                problems.append(f"{name}={environment[name]} is left over: {why}")
    if problems:
        return problems
    numbers = {name: int(value) for name, value in environment.items() if value.isdigit()}
    shown = environment.get("ASCEND_RT_VISIBLE_DEVICES") or environment.get("CUDA_VISIBLE_DEVICES")
    numbers["visible"] = (
        [int(word) for word in shown.split(",") if word.isdigit()] if shown else None
    )
    for rule in rules.get("agree", []):
        try:
            holds = eval(
                rule, {"__builtins__": {}, "sorted": sorted, "len": len}, numbers
            )  # pylint: disable=eval-used  # of this folder's own data files
        except NameError as error:
            problems.append(f"'{rule}': {error}")
            continue
        if not holds:
            problems.append(
                f"'{rule}' does not hold: {', '.join(f'{name}={value}' for name, value in numbers.items() if name in rule)}"
            )
    return problems


def _fits(when, environment):
    name, equals, value = when.partition("=")
    return when == "" or (name in environment and (not equals or environment[name] == value))


class Place:
    def __init__(self, release, environment):
        everywhere = {"name": "any launcher", **release["environment"]}
        problems = _check(everywhere, environment)
        rules = next(rules for rules in release["launchers"] if _fits(rules["when"], environment))
        problems += _check(rules, environment)
        if problems:
            raise Violation(*problems)
        self.launcher = rules["name"]
        self.rank = int(environment[rules["rank"]]) if "rank" in rules else 0
        self.world = int(environment[rules["world"]]) if "world" in rules else 1
        self.device = (
            int(environment[rules["device"]]) if rules.get("device", "") in environment else None
        )
        self.is_scheduler = rules["name"] == "scheduler"
        self.scheduler = None
        self._hub = None
        if "scheduler" in rules:
            self.scheduler = (
                environment[rules["scheduler"][0]],
                int(environment[rules["scheduler"][1]]),
            )
        elif "hub" in rules:
            self._hub = (environment[rules["hub"][0]], int(environment[rules["hub"][1]]))
        self.table = None
        if "table" in rules:
            self.table = Table(environment[rules["table"]], self.rank, self.world, self.device)
        self._meeting = None

    def meet_in(self, directory):
        """A table names the first server and no port: rank 0 takes a free one and writes down which."""
        self._meeting = os.path.join(directory, ".hub")

    def open_hub(self):
        if self._hub is not None:
            return gang.listen(*self._hub)
        server = gang.listen(self.table.first_server, 0)
        os.makedirs(os.path.dirname(self._meeting), exist_ok=True)
        with open(f"{self._meeting}.new", "w", encoding="ascii") as file:
            file.write(f"{server.getsockname()[0]} {server.getsockname()[1]}")
        os.rename(f"{self._meeting}.new", self._meeting)
        return server

    def find_hub(self):
        if self._hub is not None:
            return self._hub

        def written():
            with open(self._meeting, encoding="ascii") as file:
                return file.read().split()

        address, port = until(written, "rank 0 never wrote down where it is")
        return address, int(port)


def own_directory():
    """Dumps, compile caches and relative logs of two processes in one working directory overwrite each other."""
    try:
        os.close(os.open("conformance.lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError as error:
        raise Violation(f"another process has run, or runs, in '{os.getcwd()}'") from error
