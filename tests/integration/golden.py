"""Texts that people read, kept in one file and reviewed as text.

    == title
    $ muster run job.yaml
    exit 64
    what it said
"""

import os
import re


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
            test.assertEqual(text, self.cases.get(title, "(not in the golden file; run with --rewrite)"), f"{title}; --rewrite takes over what was said")

    def save(self, whole):
        """Writes the file anew; after a part of the tests, the others' texts stay."""
        if not self.rewrite:
            return
        cases = self.new if whole else {**self.cases, **self.new}
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.head + "".join(f"\n== {title}\n{cases[title]}\n" for title in sorted(cases)))
