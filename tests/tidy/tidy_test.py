#!/usr/bin/env python3
"""tests/tidy/tidy.py on small trees of its own: what its rules about rooms and words find, and what they leave alone."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TIDY = pathlib.Path(__file__).resolve().with_name("tidy.py")
HEADER = "// Adds. Pure.\n#pragma once\n"


class Tidy(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name)
        self.write(".clang-format", "BasedOnStyle: Google\nColumnLimit: 100\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def problems(self):
        done = subprocess.run(
            [sys.executable, "-B", str(TIDY), str(self.root)], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 1 if done.stdout else 0, done.stderr)
        return done.stdout.splitlines()

    def rooms(self, rooms, **sources):
        """A target `common/sum` with these ROOMS; sources: a path with __ for / and what it includes."""
        self.write("common/sum/CMakeLists.txt", f"muster_library(muster_sum ROOMS {rooms} DEPS)\n")
        for name, included in sources.items():
            path = "common/sum/" + name.replace("__", "/") + ".h"
            self.write(path, HEADER + "".join(f'#include "common/sum/{one}"\n' for one in included))
        return self.problems()

    def test_rooms_include_along_their_arrows(self):
        self.assertEqual(
            self.rooms(
                'low "high: low"', low__a=[], high__b=["low/a.h"], top=["high/b.h", "low/a.h"]
            ),
            [],
        )

    def test_against_an_arrow(self):
        found = self.rooms('low "high: low"', low__a=["high/b.h"], high__b=[])
        self.assertEqual(len(found), 1, found)
        self.assertIn("'common/sum/low' has no arrow (DEPS, ROOMS) to 'common/sum/high'", found[0])

    def test_a_room_does_not_include_the_folder_above(self):
        found = self.rooms("low", low__a=["top.h"], top=[])
        self.assertEqual(len(found), 1, found)
        self.assertIn("'common/sum/low' has no arrow (DEPS, ROOMS) to 'common/sum'", found[0])

    def test_a_cycle_of_rooms(self):
        found = self.rooms('"low: high" "high: low"', low__a=[], high__b=[])
        self.assertEqual(len([line for line in found if "in a cycle" in line]), 2, found)

    def test_an_arrow_to_no_room(self):
        found = self.rooms('low "high: lwo"', low__a=[], high__b=[])
        self.assertEqual(len(found), 1, found)
        self.assertIn("names 'common/sum/lwo', which is not a room", found[0])

    def test_a_source_that_nothing_compiles(self):
        self.write("common/sum/lost/a.cc", "// Adds.\n")
        found = self.rooms("low", low__a=[])
        self.assertEqual(len(found), 1, found)
        self.assertIn("nothing compiles it", found[0])

    def test_engines_are_named_in_their_folders_and_the_table(self):
        self.write(
            "common/engine/CMakeLists.txt", "muster_library(muster_engine ROOMS model torch DEPS)\n"
        )
        self.write("client/import/CMakeLists.txt", "muster_library(muster_import DEPS)\n")
        for name in (
            "common/engine/torch/launch.cc",
            "common/engine/engine_table.cc",
            "common/engine/model/dirs.cc",
            "client/import/draft.cc",
        ):
            self.write(
                name, 'const char* kName = "torch";  // as "megatron"\nbool is_torchrun();\n'
            )
        self.write("client/import/asks.cc", "bool own = is_mindspeed_mm(name);\n")
        self.assertEqual(
            sorted(line.split(": ")[0] for line in self.problems()),
            [
                "client/import/asks.cc:1",
                "client/import/draft.cc:1",
                "common/engine/model/dirs.cc:1",
            ],
        )

    def test_the_c_librarys_name_service_is_for_tests_alone(self):
        self.write("agent/CMakeLists.txt", "muster_library(muster_agent DEPS)\n")
        calls = (
            "int rc = ::getaddrinfo(name, port, &hints, &found);\n",
            "rc = getpwnam_r(name, &entry, buffer, size, &found);\n",
            "int count = getgrouplist(name, gid, groups, &most);\n",
            "void* plug_in = dlopen(path, RTLD_NOW);\n",
            'ask("getaddrinfo(");  // getpwuid(0)\n',
            "::getgroups(0, nullptr);\n",
        )
        self.write("agent/a.cc", "".join(calls))
        self.write("tests/unit/a_test.cc", "".join(calls))
        self.assertEqual(
            [line.split(": ")[:2] for line in self.problems()],
            [[f"agent/a.cc:{line}", "banned"] for line in range(1, 5)],
        )

    def test_prose_fits_and_tables_may_be_wider(self):
        wide = "word " * 30
        self.write(
            "docs/a.md", f"# A\n\n| {wide} |\n\n    {wide}\n\n```\n{wide}\n```\n\n- {wide}\n"
        )
        found = self.problems()
        self.assertEqual([line.split(": ")[:2] for line in found], [["docs/a.md:11", "columns"]])

    def test_frozen_dumps_are_added_and_never_changed(self):
        self.write("tests/dumps/wire/v1/schema.txt", "a.M 1 one single bool\n")
        self.write("tests/dumps/rundir/v1/state/events", "e")
        self.assertEqual(len(self.problems()), 2)
        freeze = [sys.executable, "-B", str(TIDY.with_name("manifest.py")), str(self.root)]
        subprocess.run(freeze, check=True)
        self.assertEqual(self.problems(), [])
        manifest = self.root / "tests/dumps/MANIFEST"
        frozen = manifest.read_text()
        self.assertEqual(
            [line[64:] for line in frozen.splitlines()],
            ["  rundir/v1/state/events", "  wire/v1/schema.txt"],
        )

        self.write("tests/dumps/wire/v1.1/schema.txt", "a.M 2 two single bool\n")
        (found,) = self.problems()
        self.assertIn("tests/dumps/MANIFEST:1: dumps: lacks '", found)
        self.assertIn("  wire/v1.1/schema.txt'; run tests/tidy/manifest.py", found)
        for changed in (None, "a.M 1 one single bool\na.M 2 two single bool\n"):
            path = self.root / "tests/dumps/wire/v1/schema.txt"
            path.unlink(missing_ok=True)
            if changed:
                path.write_text(changed)
            found = [line for line in self.problems() if "lacks" not in line]
            self.assertEqual(len(found), 1, found)
            self.assertIn("'wire/v1/schema.txt' is frozen and ", found[0])
            self.assertEqual(subprocess.run(freeze, capture_output=True).returncode, 1)
            self.assertEqual(manifest.read_text(), frozen, "it freezes no change")
        self.write("tests/dumps/wire/v1/schema.txt", "a.M 1 one single bool\n")
        subprocess.run(freeze, check=True)
        self.assertEqual(len(manifest.read_text().splitlines()), 3)
        self.assertTrue(set(frozen.splitlines()) < set(manifest.read_text().splitlines()))
        self.write("tests/dumps/MANIFEST", frozen + frozen)
        self.assertIn("'wire/v1/schema.txt' stands twice", "".join(self.problems()))

    def test_the_product_locks_with_its_own_mutex(self):
        self.write("common/base/CMakeLists.txt", "muster_library(muster_base)\n")
        lock = "const std::lock_guard lock(mutex_);  // not std::scoped_lock\n"
        self.write("common/base/mutex.h", HEADER + "std::mutex mutex_;\n")
        self.write("common/base/gate.h", HEADER + "std::shared_mutex a;\nMutex b;  // no std::mutex\n")
        self.write("common/base/gate.cc", '#include "common/base/gate.h"\n' + lock)
        self.write("tests/unit/base/gate_test.cc", lock)
        self.assertEqual(
            sorted(self.problems()),
            [
                "common/base/gate.cc:2: threads: std::lock_guard: use common/base/mutex.h",
                "common/base/gate.h:3: threads: std::shared_mutex: use common/base/mutex.h",
            ],
        )

    def test_words_of_the_glossary(self):
        self.write(
            "docs/page.md", "Every node sends its pul" + "ses.\n"
        )  # in no file, not even here
        self.write("tests/one.py", "told_of = 'what it told'  # told\n")
        self.write("tests/two.cc", "// said and told are good English\nint kLastLook;\n")
        self.write("tests/three.cc", 'int MindFormersTree; const char* a = "held";\n')
        self.assertEqual(
            sorted(line.split(": ")[0] for line in self.problems()),
            ["docs/page.md:1", "tests/one.py:1", "tests/two.cc:2"],
        )


if __name__ == "__main__":
    unittest.main()
