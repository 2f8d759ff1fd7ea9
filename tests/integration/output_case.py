"""What people are told, compared with a file of such texts (golden.py)."""

import os
import re
import unittest


def replaced(cluster, text):
    for path in sorted({cluster.dir, os.path.realpath(cluster.dir)}, key=len, reverse=True):
        text = text.replace(path, "<dir>")
    text = re.sub(r"\b[0-9a-z]{13}\b(?<=[0-9][0-9a-z]{12}|[0-9a-z]{13})", lambda m: "<job>" if re.search(r"[0-9]", m[0]) and re.search(r"[a-z]", m[0]) else m[0], text)
    text = re.sub(r"\b[0-9a-f]{16}\b", "<cluster>", re.sub(r"\b[0-9a-f]{32}\b", "<instance>", text))
    text = re.sub(r"\b(port|localhost:|127\.0\.0\.1:) ?\d+", lambda m: m[0].rstrip("0123456789") + "<port>", text)
    text = re.sub(r"\b\d+(\.\d+)?(ms|s|m\d\ds) ago", "<age> ago", text)
    text = re.sub(r"\bafter \d+(\.\d+)?(ms|s|m\d\ds)\b", "after <time>", text)
    text = re.sub(r"\bpid \d+", "pid <pid>", text)
    text = re.sub(r"\b\d+ MiB free", "<n> MiB free", text)
    text = re.sub(r"(has no interface '\w+') \([^)]*\)", r"\1 (<interfaces>)", text)
    return text


class Case(unittest.TestCase):
    maxDiff = None
    golden = None  # golden.Golden

    def check_output(self, cluster, title, done, code):
        self.assertEqual(done.code, code, str(done))
        text = f"$ {' '.join(done.command)}\nexit {done.code}\n{done.out}{done.err}"
        self.golden.check(self, title, replaced(cluster, text))
