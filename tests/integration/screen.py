"""A terminal as people look at it: what a program writes to a pty becomes rows of text, those that have scrolled away included.

    with Screen(command, env, columns=40) as screen:
        screen.wait_for("3/40")           # until it can be read there
        screen.rows, screen.history()     # the window; all lines, wrapped ones joined
        screen.wait()                     # exit code

It knows what xterm, tmux and VTE agree on, and fails on any sequence beyond: a program that needs more should say so here.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata

SEQUENCE = re.compile(r"\x1b(?:\[(\??[0-9;:]*)([A-Za-z])|([78]))")


class Terminal:
    """The grid. `lines` are all rows since the beginning; the window is the last `height` of them."""

    def __init__(self, columns=80, height=24):
        self.columns, self.height = columns, height
        self.lines, self.wrapped = [[]], [False]
        self.row = self.column = 0
        self.cuts = False  # DECAWM off
        self.painted = []  # (text, SGR) runs, for what has colour
        self.paint = ""
        self._rest = ""

    def feed(self, text):
        text, self._rest = self._rest + text, ""
        at = 0
        while at < len(text):
            letter = text[at]
            if letter == "\x1b":
                found = SEQUENCE.match(text, at)
                if not found:
                    if len(text) - at > 32:
                        raise AssertionError(f"no sequence that is known: {text[at:at + 32]!r}")
                    self._rest = text[at:]
                    return
                self._obey(found[1], found[2])
                at = found.end()
                continue
            at += 1
            if letter == "\n":
                self._down()
            elif letter == "\r":
                self.column = 0
            elif letter == "\t":
                self.column = min(self.columns - 1, self.column // 8 * 8 + 8)
            elif ord(letter) < 32 or letter == "\x7f":
                raise AssertionError(f"control character {letter!r}")
            else:
                self._put(letter)

    def _obey(self, number, what):
        count = int(number) if number and number.isdigit() else 0
        if what == "m":
            self.paint = "" if number in ("", "0") else self.paint + f"\x1b[{number}m"
        elif what == "A":
            self.row = max(self._top(), self.row - max(1, count))
        elif what == "J" and count == 0:
            del self.lines[self.row + 1 :], self.wrapped[self.row + 1 :]
            del self.lines[self.row][self.column :]
        elif what == "K" and count == 0:
            del self.lines[self.row][self.column :]
        elif what in "hl" and number == "?7":
            self.cuts = what == "l"
        else:
            raise AssertionError(f"sequence ESC [ {number} {what}")

    def _top(self):
        return max(0, len(self.lines) - self.height)

    def _down(self, wrapped=False):
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])
            self.wrapped.append(wrapped)
        else:
            self.wrapped[self.row] = wrapped

    def _put(self, letter):
        width = 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if self.column + width > self.columns:
            if self.cuts:
                self.column = self.columns - width
            else:
                self.column = 0
                self._down(wrapped=True)
        line = self.lines[self.row]
        line.extend(" " * (self.column - len(line)))
        line[self.column : self.column + width] = [letter, ""][:width]
        self.column += width
        self.painted.append((letter, self.paint))

    def resize(self, columns):
        """As VTE and tmux do it: rows are laid out anew, the cursor stays on its text."""
        texts, cursor = [], None
        for number, line in enumerate(self.lines):
            if not self.wrapped[number] or not texts:
                texts.append([])
            if number == self.row:
                cursor = (len(texts) - 1, len(texts[-1]) + self.column)
            texts[-1].extend(line)
        self.columns, self.lines, self.wrapped = columns, [], []
        for number, text in enumerate(texts):
            first = len(self.lines)
            for start in range(0, max(1, len(text)), columns):
                self.lines.append(text[start : start + columns])
                self.wrapped.append(start > 0)
            if number == cursor[0]:
                self.row, self.column = (
                    min(first + cursor[1] // columns, len(self.lines) - 1),
                    cursor[1] % columns,
                )

    @property
    def rows(self):
        """The window, without the empty rows at its end."""
        shown = ["".join(line).rstrip() for line in self.lines[self._top() :]]
        while shown and not shown[-1]:
            shown.pop()
        return shown

    def history(self):
        """All lines, wrapped ones joined."""
        texts = []
        for line, wrapped in zip(self.lines, self.wrapped):
            if wrapped and texts:
                texts[-1] += "".join(line)
            else:
                texts.append("".join(line))
        return [text.rstrip() for text in texts]

    def paint_of(self, text):
        """The SGR sequences that the first letter of `text` was written under."""
        written = "".join(letter for letter, _ in self.painted)
        at = written.find(text)
        return None if at < 0 else self.painted[at][1]


class Screen(Terminal):
    """A command on a pty. `to`: which of its outputs are that terminal; the others are given."""

    def __init__(
        self, command, env, columns=80, height=24, cwd=None, stdout=None, stderr=None, patience=60.0
    ):
        super().__init__(columns, height)
        self.patience = patience
        self._leader, follower = pty.openpty()
        self._size(follower)
        self.process = subprocess.Popen(
            command,
            env={**env, "TERM": env.get("TERM_HERE", "xterm-256color")},
            stdin=follower,
            stdout=stdout or follower,
            stderr=stderr or follower,
            cwd=cwd,
            start_new_session=True,
        )
        self.follower = follower  # kept open: what others write to the terminal goes here
        self.bytes = b""

    def _size(self, fd):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", self.height, self.columns, 0, 0))

    def resize(self, columns):
        super().resize(columns)
        self._size(self._leader)

    def write(self, text):
        """As another program on this terminal does."""
        os.write(self.follower, text.encode())

    def _read(self, until):
        deadline = time.monotonic() + self.patience
        while not until():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            watch = [self._leader]
            ended = self.process.poll() is not None
            ready = select.select(watch, [], [], 0 if ended else min(left, 0.05))[0]
            if ready:
                data = os.read(self._leader, 65536)
                self.bytes += data
                self.feed(self._decode(data))
            elif ended:
                return until()
        return True

    def _decode(self, data):
        data = getattr(self, "_tail", b"") + data
        for cut in range(len(data), max(-1, len(data) - 4), -1):
            try:
                text = data[:cut].decode()
                self._tail = data[cut:]
                return text
            except UnicodeDecodeError:
                continue
        self._tail = b""
        return data.decode(errors="replace")

    def wait_for(self, text, everywhere=False):
        """Until the text can be read in the window (or `everywhere`, in what has scrolled away, too)."""
        there = (
            (lambda: any(text in line for line in self.history()))
            if everywhere
            else (lambda: any(text in row for row in self.rows))
        )
        if not self._read(there):
            raise AssertionError(f"never showed {text!r}:\n{self}")

    def wait_for_rows(self, shown, what):
        """Until `shown` is true of the window's rows: the lines above the view come before it is drawn again."""
        if not self._read(lambda: shown(self.rows)):
            raise AssertionError(f"never showed {what}:\n{self}")

    def wait(self):
        if not self._read(lambda: False) and self.process.poll() is None:
            raise AssertionError(f"goes on:\n{self}")
        return self.process.wait()

    def __str__(self):
        return "\n".join(["-" * self.columns, *self.history(), "-" * self.columns])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self.follower)
        os.close(self._leader)
