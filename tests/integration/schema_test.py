#!/usr/bin/python3
"""`muster explain --schema`: a validator of JSON Schema that is not muster's own takes every sample and every example of the docs, and of the wrong specs
of the golden file refuses no sound one and every one whose fault a single value shows.

Run:  /usr/bin/python3 -B tests/integration/schema_test.py [-v]       (needs python3-jsonschema, python3-yaml)
"""

import glob
import json
import os
import re
import subprocess
import sys
import unittest

import jsonschema
import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster.programs import ROOT, binary  # noqa: E402

# What one value alone shows, whatever the others are.
ALONE = (
    "unknown key; did you mean",
    "must be a map",
    "must be a list",
    "is not a whole number",
    "must be one value, not a",
    "is known but not in this release",
)


class Core(yaml.SafeLoader):
    """The core schema of YAML 1.2: only true, false, null and plain numbers are no texts."""


Core.yaml_implicit_resolvers = {}
Core.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
Core.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|)$"), ["~", "n", ""])
Core.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[0-9]+$"), list("0123456789"))
Core.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[0-9]+\.[0-9]+$"), list("0123456789")
)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def golden_cases():
    for block in re.split(r"^== ", read(f"{ROOT}/tests/golden/spec-errors.txt"), flags=re.M)[1:]:
        head, _, reported = block.partition("-- said\n")
        title, _, text = head.partition("\n")
        if "--set " not in text and "--env " not in text and "<0x" not in text:
            yield title, text, reported


class SchemaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        printed = subprocess.run(
            [binary("muster"), "explain", "--schema"], capture_output=True, check=True
        )
        cls.schema = json.loads(printed.stdout)
        cls.validator = jsonschema.Draft202012Validator(cls.schema)

    def faults(self, spec):
        return [
            f"{'.'.join(map(str, fault.absolute_path))}: {fault.message[:200]}"
            for fault in self.validator.iter_errors(spec)
        ]

    def test_is_a_schema_that_explains_every_key(self):
        jsonschema.Draft202012Validator.check_schema(self.schema)
        for key in ("name", "engine", "launch", "resources", "stages"):
            self.assertIn("description", self.schema["properties"][key])
        launch = self.schema["properties"]["launch"]["anyOf"][0]["properties"]
        self.assertEqual(launch["per"]["enum"], ["rank", "node", "once"])
        self.assertEqual(self.schema["properties"]["labels"]["default"], {})
        self.assertEqual(self.schema["properties"]["description"]["default"], "")
        self.assertEqual(self.schema["properties"]["stages"]["default"], {})

    def test_knows_the_keys_of_a_stage(self):
        def faults(stages):
            return self.faults({"name": "c", "stages": stages})

        sound = {"a": None, "b": {"after": [], "creates": None}, "c": {"after": "a", "creates": "x"}}
        self.assertEqual(faults(sound), [])
        self.assertEqual(faults(None), [])
        for wrong in ({"after": None}, {"creates": ""}, {"name": "x"}, {"stages": {}}, 7):
            with self.subTest(wrong):
                self.assertNotEqual(faults({"a": wrong}), [])

    def test_takes_every_sample(self):
        paths = glob.glob(f"{ROOT}/deploy/samples/**/*.yaml", recursive=True)
        specs = [path for path in paths if "\nengine:" in "\n" + read(path)]
        self.assertGreater(len(specs), 15)
        for path in specs:
            with self.subTest(path=os.path.relpath(path, ROOT)):
                self.assertEqual(self.faults(yaml.load(read(path), Core)), [])

    def test_takes_every_example_of_the_docs(self):
        count = 0
        for page in [f"{ROOT}/docs/job-spec.md", *glob.glob(f"{ROOT}/docs/engines/*.md")]:
            for example in re.findall(r"^```yaml\n(.*?)^```", read(page), flags=re.M | re.S):
                spec = yaml.load(example, Core)
                if not isinstance(spec, dict) or not set(spec) <= set(self.schema["properties"]):
                    continue
                count += 1
                with self.subTest(page=os.path.basename(page), example=example):
                    self.assertEqual(self.faults({"name": "x", **spec}), [])
        self.assertGreater(count, 15)

    def test_refuses_what_muster_refuses(self):
        refused = alone = 0
        for title, text, reported in golden_cases():
            try:
                spec = yaml.load(text, Core)
            except (yaml.YAMLError, ValueError):
                continue
            faults = self.faults(spec)
            refused += bool(faults)
            with self.subTest(title):
                if reported.strip() == "nothing":
                    self.assertEqual(faults, [], "muster takes it")
                shown = [
                    line for line in reported.splitlines() if any(word in line for word in ALONE)
                ]
                alone += bool(shown)
                if shown:
                    self.assertNotEqual(faults, [], "\n".join(shown))
        self.assertGreater(refused, 60)
        self.assertGreater(alone, 25)


if __name__ == "__main__":
    unittest.main()
