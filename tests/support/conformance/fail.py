"""How a conformance trainer ends before its time."""

import sys

VIOLATION = 3  # no engine of the field ends with it: whoever started this process did something that the release would not bear, or that would harm it silently


class Ended(Exception):
    """What the engine itself would do: these lines on its streams, this exit status."""

    def __init__(self, code, *lines, stream=None):
        super().__init__(*lines)
        self.code, self.lines, self.stream = code, lines, stream or sys.stderr

    def leave(self):
        for line in self.lines:
            print(line, file=self.stream)
        return self.code


class Violation(Ended):
    """What the engine would not notice, or only by hanging: said at once, everything that is wrong together."""

    def __init__(self, *problems):
        super().__init__(
            VIOLATION,
            "Traceback (most recent call last):",
            f"conformance.Violation: {'; '.join(problems)}",
        )


def engine_error(kind, text, code=1):
    """An exception that nobody catches, as Python prints it (without the frames of files that are not here)."""
    return Ended(code, "Traceback (most recent call last):", f"{kind}: {text}")
