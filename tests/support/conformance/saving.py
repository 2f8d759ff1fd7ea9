"""Carries out the release's own order of writing a checkpoint: the steps of the data file, one after the other, on every rank.

    {"print": TEXT}                    a line of the release's
    {"say": NAME}                      the same, of "lines" of the data file
    {"barrier": true}                  nobody goes on before all are here
    {"file": PATH, "holds": WHAT, "how": HOW}

"by" says who: all (the default), first, last, model (the first data-parallel rank of each part of the model).  "if", "unless": only with all of these
options, only without any of these.  A save in the background has four such lists: what is done at once ("now"), files whose second half comes later
("background"), what is said then ("scheduled"), and what follows when every rank has its files ("finalize").

    holds   text:TEXT   json:{...}   zip:PART   ckpt:PART   safetensors:PART   raw
            PART: all, model, optimizer, counters (the step alone), none (weights without a step)
    how     in place                 opened under its final name and written in two parts: a kill in between leaves half a file
            in place, 0400           the same, and read-only when it is whole
            rename                   beside it, then renamed
            rename, 0400             the same, and read-only
"""

import copy
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
        self._steps, self._part, self._gang, self._say, self._run = (
            steps,
            part,
            training.gang,
            training.say,
            training.run,
        )
        self._lines = training.release["checkpoint"].get("lines", {})
        self._counters = counters

    def _content(self, holds, training, values):
        kind, _, rest = holds.partition(":")
        kind = kind.replace("{ckpt_format}", values.get("ckpt_format", ""))
        if kind == "text":
            return rest.format(**values).encode()
        if kind == "json":
            return json.dumps(
                {
                    key: values[value] if value in values else value
                    for key, value in json.loads(rest).items()
                }
            ).encode()
        if kind == "raw":
            return json.dumps(training.record()).encode() + bytes(1024)
        record = training.record(rest)
        if rest == "none":
            del record["step"]
        if kind == "zip":
            return state.zip_bytes(record)
        counters = (
            []
            if rest == "none"
            else [(name, dims, typ, values[key]) for name, dims, typ, key in self._counters]
        )
        return (state.safetensors_bytes if kind == "safetensors" else state.ckpt_bytes)(
            record, counters
        )

    def _own(self, steps, options):
        """Those that are this rank's, with these options."""
        for step in steps:
            if any(name not in options for name in step.get("if", [])) or any(
                name in options for name in step.get("unless", [])
            ):
                continue
            if "barrier" in step or step.get("by", "all") in self._part:
                yield step

    def carry_out(self, steps, training, options, values, between=lambda: None):
        for step in self._own(steps, options):
            if "barrier" in step:
                self._gang.barrier()
            elif "print" in step or "say" in step:
                text = step["print"] if "print" in step else self._lines[step["say"]]
                self._say(
                    text.format(**values), **{key: step[key] for key in ("at",) if key in step}
                )
            else:
                _write(
                    step["file"].format(**values),
                    self._content(step["holds"], training, values),
                    step["how"],
                    between,
                )

    def save(self, training, options, values):
        self.carry_out(
            self._steps, training, options, values, lambda: self._run.half_way(training.step)
        )
        self._run.saved(training.step)

    def begin(self, training, options, values):
        """A save in the background: what is done at once, and the rest, to be called where the files are whole (`finish`)."""
        rules, training = self._steps, copy.copy(training)  # which goes on meanwhile
        self.carry_out(rules["now"], training, options, values)
        halves = []
        for step in self._own(rules["background"], options):
            path, content = step["file"].format(**values), self._content(
                step["holds"], training, values
            )
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content[: len(content) // 2])
            halves.append((path, content[len(content) // 2 :]))
        self.carry_out(rules["scheduled"], training, options, values)

        def finish():
            for path, content in halves:
                with open(path, "ab") as file:
                    file.write(content)
            self._run.half_way(training.step)
            self.carry_out(rules["finalize"], training, options, values)
            self._run.saved(training.step)

        return finish
