#!/usr/bin/python3
"""docs/operations/troubleshooting.md, and the table of deploy.md: each sentence that they explain is one that a program prints.

Run:  /usr/bin/python3 -B tests/tidy/symptoms_test.py [-v]
"""

import itertools
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ("docs/operations/troubleshooting.md", "docs/operations/deploy.md")
# Of the operating system, or of gRPC; the last one is in a script of sh.
FOREIGN = {"Connection refused", "Timeout", "connect deadline", "No route to host", "No space left on device", "which would stop it, is gone"}
PLACEHOLDER = re.compile(r"\.\.\.|\{[^}]*\}")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def printed():
    """All text literals of the programs. Neighbours are one; what formatting or `+` puts in is `...`."""
    files = subprocess.run(
        ["git", "ls-files", "agent", "client", "common", "controller", "deploy", "worker"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    texts = []
    for path in files:
        if not path.endswith((".cc", ".h")):
            continue
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            source = file.read()
        source = re.sub(r'"\s*\n\s*"', "", source)
        texts += [PLACEHOLDER.sub("...", one) for one in LITERAL.findall(source)]
    return "\n".join(texts)


def explained(page):
    """(heading, sentence) of each row's first cell."""
    heading = ""
    for line in page.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("| ") and heading != "Where to look first":
            for sentence in re.findall(r"`([^`]+)`", line.split(" | ")[0]):
                if "|---" not in line and sentence not in ("muster", "muster why", "plan", "up"):
                    yield heading, sentence


class Symptoms(unittest.TestCase):
    def test_each_is_printed(self):
        pages = []
        for path in PAGES:
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                pages.append(file.read())
        pages[1] = pages[1][pages[1].index("## Troubleshooting") : pages[1].index("## Limits")]
        texts, count = printed(), 0
        for heading, sentence in itertools.chain.from_iterable(map(explained, pages)):
            if sentence in FOREIGN:
                continue
            for part in PLACEHOLDER.split(sentence):
                part = part.strip(" '()")
                if len(part) < 4:
                    continue
                count += 1
                with self.subTest(heading=heading, sentence=sentence):
                    self.assertIn(part, texts)
        self.assertGreater(count, 50, "the page was not read")


if __name__ == "__main__":
    unittest.main()
