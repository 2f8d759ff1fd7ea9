"""Texts that people read, kept in one file and reviewed as text.

    == title
    $ muster run job.yaml
    exit 64
    what it printed
"""

import os
import re
import unittest


def replaced(cluster, text):
    for path in sorted({cluster.dir, os.path.realpath(cluster.dir)}, key=len, reverse=True):
        text = text.replace(path, "<dir>")
    text = re.sub(
        r"\b[0-9a-z]{13}\b(?<=[0-9][0-9a-z]{12}|[0-9a-z]{13})",
        lambda m: "<job>" if re.search(r"[0-9]", m[0]) and re.search(r"[a-z]", m[0]) else m[0],
        text,
    )
    text = re.sub(r"\b[0-9a-f]{64}\b", "<sha256>", text)
    text = re.sub(r"\b[0-9a-f]{16}\b", "<cluster>", re.sub(r"\b[0-9a-f]{32}\b", "<instance>", text))
    text = re.sub(
        r"\b(port|localhost:|127\.0\.0\.1:) ?\d+",
        lambda m: m[0].rstrip("0123456789") + "<port>",
        text,
    )
    text = re.sub(r"\b\d+(\.\d+)?(ms|s|m\d\ds) ago", "<age> ago", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>", text)
    text = re.sub(r"\bafter \d+(\.\d+)?(ms|s|m\d\ds)\b", "after <time>", text)
    text = re.sub(r"\bpid \d+", "pid <pid>", text)
    text = re.sub(r"\b\d+ MiB free", "<n> MiB free", text)
    text = re.sub(r"(has no interface '\w+') \([^)]*\)", r"\1 (<interfaces>)", text)
    return text


class Golden:
    def __init__(self, path, head, rewrite):
        self.path, self.head, self.rewrite = path, head, rewrite
        self.cases, self.new = {}, {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for block in re.split(r"^== ", file.read(), flags=re.MULTILINE)[1:]:
                    title, _, text = block.partition("\n")
                    self.cases[title] = text.strip("\n")

    def check(self, test, title, text):
        text = "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))
        self.new[title] = text
        if not self.rewrite:
            test.assertEqual(
                text,
                self.cases.get(title, "(not in the golden file; run with --rewrite)"),
                f"{title}; --rewrite takes over what is printed",
            )

    def save(self, whole):
        """Writes the file anew; after a part of the tests, the others' texts stay."""
        if not self.rewrite:
            return
        cases = self.new if whole else {**self.cases, **self.new}
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(
                self.head + "".join(f"\n== {title}\n{cases[title]}\n" for title in sorted(cases))
            )


class GoldenCase(unittest.TestCase):
    maxDiff = None
    golden: Golden

    def check_output(self, cluster, title, done, code):
        self.assertEqual(done.code, code, str(done))
        text = f"$ {' '.join(done.command)}\nexit {done.code}\n{done.out}{done.err}"
        self.golden.check(self, title, replaced(cluster, text))
