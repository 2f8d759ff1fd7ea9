"""The part of YAML that MindFormers' configurations are written in: mappings, lists of mappings and of words, plain scalars;
an anchor is passed over, an alias stays its name.  No PyYAML: it is slow to
import sixteen times on two cores, and not everywhere."""

import json

from .fail import engine_error


def _scalar(text):
    text = text.strip()
    if text[:1] in "'\"" and text[-1:] == text[:1]:
        return text[1:-1]
    low = {"true": True, "false": False, "": None, "null": None, "~": None}
    if text.lower() in low:
        return low[text.lower()]
    if text.startswith("["):
        return [_scalar(word) for word in text.strip("[]").split(",") if word.strip()]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _lines(text):
    for line in text.splitlines():
        bare = line.split(" #")[0].rstrip()
        if bare and not bare.lstrip().startswith("#"):
            yield len(bare) - len(bare.lstrip()), bare.strip()


def _block(lines, at, indent):
    """The value that begins at `at`, and where it ends."""
    if lines[at][1].startswith("- "):
        items = []
        while at < len(lines) and lines[at][0] == indent and lines[at][1].startswith("- "):
            rest = lines[at][1][2:]
            if ":" not in rest:
                items.append(_scalar(rest))
                at += 1
                continue
            lines[at] = (indent + 2, rest)
            item, at = _block(lines, at, indent + 2)
            items.append(item)
        return items, at
    mapping = {}
    while at < len(lines) and lines[at][0] == indent and not lines[at][1].startswith("- "):
        key, _, rest = lines[at][1].partition(":")
        at += 1
        if rest.strip() and not rest.strip().startswith("&"):
            mapping[key.strip()] = _scalar(rest)
        elif at < len(lines) and (
            lines[at][0] > indent or (lines[at][0] == indent and lines[at][1].startswith("- "))
        ):
            mapping[key.strip()], at = _block(lines, at, lines[at][0])
        else:
            mapping[key.strip()] = None
    return mapping, at


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            lines = list(_lines(file.read()))
    except OSError as error:
        raise engine_error(
            "FileNotFoundError", f"[Errno {error.errno}] {error.strerror}: {path!r}"
        ) from error
    return _block(lines, 0, lines[0][0])[0] if lines else {}


def put(config, key, value):
    """`a.b.c = value`; every part but the last has to be there."""
    *parts, last = key.split(".")
    for part in parts:
        if not isinstance(config, dict) or part not in config:
            raise engine_error(
                "ValueError", f"{part} is not a key of {config}, please check input arg keys. "
            )
        config = config[part]
    config[last] = value
