"""Reads a command line as the release's own argparse parser does: only the options of its data file, no abbreviations, everything else is refused.

Kinds in the data file: flag (no value), int, float, str, bool (str2bool: true and false in any case), "bool or str", with "+" or "*" behind them: one or more,
any number of values; "a|b|c": one of these words.  "unknown" says what the release does with what its parser does not know:

    error   parse_args(): usage and "unrecognized arguments", exit status 2
    pairs   parse_known_args(), and the rest, split at every "=", must be `--key value` pairs of configuration keys (MindFormers)
    words   there is no parser: the loop reads them (MindSpeed-MM's FSDP2 back end)
"""

import json
import os

from .fail import Ended, Violation, engine_error


class Options:
    def __init__(self, values, pairs):
        self._values, self.pairs = values, pairs

    def get(self, name, default=None):
        return self._values.get(name, default)

    def __contains__(self, name):
        return name in self._values


def _refuse(script, flags, text):
    shown = " ".join(
        f"[{name}{'' if kind == 'flag' else ' ' + name[2:].replace('-', '_').upper()}]"
        for name, kind in list(flags.items())[:6]
    )
    return Ended(
        2,
        f"usage: {os.path.basename(script)} [-h] {shown} ...",
        f"{os.path.basename(script)}: error: {text}",
    )


def _one(name, kind, text):
    """The value, or the words with which argparse refuses it."""
    try:
        if kind == "int":
            return int(text), None
        if kind == "float":
            return float(text), None
    except ValueError:
        return None, f"argument {name}: invalid {kind} value: {text!r}"
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            return None, f"argument {name}: invalid str2bool value: {text!r}"
        return text.lower() == "true", None
    if kind == "bool or str":
        return {"true": True, "false": False}.get(text.lower(), text), None
    if "|" in kind and text not in kind.split("|"):
        return (
            None,
            f"argument {name}: invalid choice: {text!r} (choose from {', '.join(repr(word) for word in kind.split('|'))})",
        )
    return text, None


def _is_option(word):
    """As argparse: a negative number is a value."""
    if not word.startswith("-") or word == "-":
        return False
    try:
        float(word)
    except ValueError:
        return " " not in word
    return False


def parse(release, script, argv):
    rules = release["arguments"]
    if rules["unknown"] == "words":
        return Options({}, argv)
    flags, values, rest, at = rules["flags"], {}, [], 0
    while at < len(argv):
        word = argv[at]
        at += 1
        name, equals, inline = word.partition("=")
        kind = flags.get(name)
        if kind is None or not name.startswith("--"):
            rest.append(word)
            continue
        many = kind[-1] in "+*"
        taken = [inline] if equals else []
        while (
            not equals
            and kind != "flag"
            and at < len(argv)
            and not _is_option(argv[at])
            and (many or not taken)
        ):
            taken.append(argv[at])
            at += 1
        if kind == "flag":
            if equals:
                raise _refuse(
                    script, flags, f"argument {name}: ignored explicit argument {inline!r}"
                )
            values[name] = True
            continue
        if not taken and kind[-1] != "*":
            raise _refuse(
                script,
                flags,
                f"argument {name}: expected {'at least ' if many else ''}one argument",
            )
        read = []
        for text in taken:
            value, wrong = _one(name, kind.rstrip("+*"), text)
            if wrong:
                raise _refuse(script, flags, wrong)
            read.append(value)
        values[name] = read if many else read[0]
    missing = [name for name in rules.get("required", []) if name not in values]
    if missing:
        raise _refuse(script, flags, f"the following arguments are required: {', '.join(missing)}")
    if rest and rules["unknown"] == "error":
        raise _refuse(script, flags, f"unrecognized arguments: {' '.join(rest)}")
    return Options(values, _pairs(rules, rest))


def _pairs(rules, rest):
    """MindFormers' second reading. A key that no configuration has is taken silently by the engine, and is a fault of whoever passed it."""
    words = [part for word in rest for part in word.split("=")]
    if len(words) % 2:
        raise engine_error(
            "ValueError", "input arg key-values are not in pair, please check input args. "
        )
    pairs = {}
    for key, value in zip(words[::2], words[1::2]):
        if not key.startswith("--"):
            raise engine_error("ValueError", "Custom config key need to start with --.")
        if key[2:].split(".")[0] not in rules["configuration_keys"]:
            raise Violation(
                f"'{key}' is no argument of this release and no key of its configurations: it would be taken, and nothing would come of it"
            )
        try:
            pairs[key[2:]] = json.loads(value)
        except ValueError:
            pairs[key[2:]] = {"True": True, "False": False}.get(value, value)
    return pairs
