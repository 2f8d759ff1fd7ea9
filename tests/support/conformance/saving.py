"""Carries out the release's own order of writing a checkpoint: the steps of the data file, one after the other, on every rank.

    {"print": TEXT}                    a line of the release's
    {"barrier": true}                  nobody goes on before all are here
    {"file": PATH, "holds": WHAT, "how": HOW}

"by" says who: all (the default), first, last, model (the first data-parallel rank of each part of the model).  "if", "unless": only with all of these
options, only without any of these.

    holds   text:TEXT   json:{...}   zip:PART   ckpt:PART   raw         PART: all, model, optimizer, none (weights without a step)
    how     in place                 opened under its final name and written in two parts: a kill in between leaves half a file
            in place, 0400           the same, and read-only when it is whole
            rename                   beside it, then renamed
            rename, 0400             the same, and read-only
"""

import json
import os
import stat

from . import state


def _write(path, content, how, between):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    target = path if how.startswith("in place") else f"{path}.tmp"
    if os.path.exists(target) and not os.stat(target).st_mode & stat.S_IWUSR:
        os.chmod(target, stat.S_IWUSR)
        os.remove(target)
    with open(target, "wb") as file:
        file.write(content[: len(content) // 2])
        file.flush()
        between()
        file.write(content[len(content) // 2 :])
    if how.startswith("rename"):
        os.replace(target, path)
    if how.endswith("0400"):
        os.chmod(path, stat.S_IRUSR)


class Saver:
    def __init__(self, steps, part, training, counters=()):
        self._steps, self._part, self._gang, self._say, self._run = steps, part, training.gang, training.say, training.run
        self._counters = counters

    def _content(self, holds, training, values):
        kind, _, rest = holds.partition(":")
        if kind == "text":
            return rest.format(**values).encode()
        if kind == "json":
            return json.dumps({key: values[value] if value in values else value for key, value in json.loads(rest).items()}).encode()
        if kind == "raw":
            return json.dumps(training.record()).encode() + bytes(1024)
        record = training.record(rest)
        if rest == "none":
            del record["step"]
        if kind == "zip":
            return state.zip_bytes(record)
        return state.ckpt_bytes(record, [] if rest == "none" else [(name, dims, typ, values[key]) for name, dims, typ, key in self._counters])

    def save(self, training, options, values):
        for step in self._steps:
            if any(name not in options for name in step.get("if", [])) or any(name in options for name in step.get("unless", [])):
                continue
            if "barrier" in step:
                self._gang.barrier()
                continue
            if step.get("by", "all") not in self._part:
                continue
            if "print" in step:
                self._say(step["print"].format(**values), **{key: step[key] for key in ("at",) if key in step})
            else:
                _write(step["file"].format(**values), self._content(step["holds"], training, values), step["how"], lambda: self._run.half_way(training.step))
        self._run.saved(training.step)
