#!/usr/bin/env python3
"""tests/tidy/shape on a small tree of its own: what it counts, and what must not confuse it."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SHAPE = pathlib.Path(__file__).resolve().with_name("shape")


def function(head, lines):
    """A function of that many lines, from its signature to its last brace."""
    return "\n".join([head + " {"] + ["  ++count;"] * (lines - 2) + ["}"]) + "\n"


class Shape(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name)
        self.write(".clang-format", "BasedOnStyle: Google\nColumnLimit: 40\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_shape(self, *options):
        done = subprocess.run(
            [sys.executable, "-B", str(SHAPE), *options, str(self.root)],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def facts(self, *options):
        return json.loads(self.run_shape("--json", *options))

    def long_functions(self, text):
        self.write("common/base/a.cc", text)
        facts = self.facts()
        self.assertEqual(facts["files_not_followed"], [])
        return [
            (f["name"], f["line"], f["lines"]) for f in facts["functions_over_60_lines"]["product"]
        ]

    def test_61_lines_are_over_60_and_60_are_not(self):
        text = (
            "namespace muster {\n"
            + function("int longer(int count)", 61)
            + function("int shorter(int count)", 60)
            + "}\n"
        )
        self.assertEqual(self.long_functions(text), [("longer", 2, 61)])

    def test_braces_in_literals_and_comments_are_no_braces(self):
        odd = (
            "int odd(int count) {\n  f(\"}\", '}', '\\'', \"\\\"}\", 1'000);  // }\n  /* } */\n"
            '  f(R"(}")", R"x(}})" )x");\n' + "  ++count;\n" * 56 + "}\n"
        )
        self.assertEqual(odd.count("\n"), 61)
        self.assertEqual(
            self.long_functions(odd + function("int after(int count)", 60)), [("odd", 1, 61)]
        )

    def test_a_lambda_counts_to_its_function_and_a_class_is_none(self):
        inside = "int outer(int count) {\n  auto f = [&] {\n" + "    ++count;\n" * 57 + "  };\n}\n"
        self.assertEqual(inside.count("\n"), 61)
        classes = (
            "struct Big {\n"
            + "  int a{1};\n" * 70
            + function("  Big() : x_{1}, y_(2)", 62)
            + "};\n"
        )
        self.assertEqual(
            self.long_functions(classes + inside), [("Big::Big", 72, 62), ("outer", 135, 61)]
        )

    def test_tables_enums_and_operators(self):
        text = (
            "enum class Kind {\n"
            + "  A,\n" * 70
            + "};\nconstexpr Row kRows[] = {\n"
            + "  {1, 2},\n" * 70
            + "};\n"
            + function("template <class T>\nbool operator<(const T& a, T b = {})", 60)
            + "#ifdef X\n"
            + function("int one(int a)", 3)
            + "#else\n"
            + function("int one(int b)", 3)
            + "#endif\n"
        )
        self.assertEqual(self.long_functions(text), [("operator<", 145, 61)])

    def test_lines_by_folder(self):
        self.write("agent/core/a.h", "// a\n#pragma once\n")
        self.write("agent/core/b.cc", "x\n" * 3 + "y" * 50 + "\n")
        self.write("agent/core/notes.md", "no code\n")
        self.write("tests/unit/base/a_test.cc", "x\n")
        self.write("tests/golden/a.txt", "x\nx\n")
        facts = self.facts()
        self.assertEqual(facts["width"], 40)
        self.assertEqual(
            facts["product"],
            [{"folder": "agent/core", "files": 2, "lines": 6, "longer": 1, "lines_at_width": 7}],
        )
        self.assertEqual(
            [(row["folder"], row["lines"]) for row in facts["tests"]], [("tests/unit", 1)]
        )
        self.assertEqual(facts["test_data"], [{"folder": "tests/golden", "files": 1, "lines": 2}])
        self.assertEqual(self.facts("--width", "80")["product"][0]["longer"], 0)

    def test_twins(self):
        for name in ("both.h", "both.cc", "header.h", "source.cc"):
            self.write("worker/" + name, "\n")
        facts = self.facts()
        self.assertEqual(facts["headers_without_source"], ["worker/header.h"])
        self.assertEqual(facts["sources_without_header"], ["worker/source.cc"])

    def test_names(self):
        self.write(
            "common/engine/a.cc", '// torch: see "torch"\nif (engine == "megatron") torchrun();\n'
        )
        self.write("common/engine/torch/torch.cc", "spec.orphan_grace();\n")
        self.write("controller/core/b.cc", "body.rank_exited(); CheckRankExited(); MASTER_PORT;\n")
        facts = self.facts()
        self.assertEqual(facts["engines"]["megatron"]["code"], ["common/engine/a.cc"])
        self.assertEqual(facts["engines"]["torch"]["code"], ["common/engine/torch/torch.cc"])
        self.assertEqual(
            facts["engines"]["torch"]["anywhere"],
            ["common/engine/a.cc", "common/engine/torch/torch.cc"],
        )
        self.assertEqual(facts["keys"]["orphan_grace"]["code"], ["common/engine/torch/torch.cc"])
        self.assertEqual(facts["keys"]["master_port"]["code"], [])
        self.assertEqual(facts["facts"]["RankExited"]["code"], ["controller/core/b.cc"])

    def test_the_page_fits_100_columns(self):
        self.write("common/base/a.cc", function("int f(int count)", 61))
        for options in ((), ("-v",)):
            page = self.run_shape(*options)
            self.assertIn("common/base/a.cc:1  f", page)
            self.assertEqual([line for line in page.splitlines() if len(line) > 100], [])


if __name__ == "__main__":
    unittest.main()
