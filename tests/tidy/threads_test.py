#!/usr/bin/env python3
"""tests/tidy/threads.py on small trees of its own, with the product's mutex.h and loop.h: what it finds, and what passes."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

THREADS = pathlib.Path(__file__).resolve().with_name("threads.py")
CHECKOUT = THREADS.parents[2]
COUNTER = """// Counts. Thread-safe.
#pragma once
#include "common/base/mutex.h"
namespace muster {
class Counter {
 public:
  void add();
  int count() {
    const MutexLock lock(mutex_);
    return count_;
  }

 private:
  void add_locked() MUSTER_REQUIRES(mutex_);
  Mutex mutex_;
  int count_ MUSTER_GUARDED_BY(mutex_) = 0;
};
}  // namespace muster
"""
LOCKED = """#include "common/base/counter.h"
namespace muster {
void Counter::add_locked() { ++count_; }
void Counter::add() {
  const MutexLock lock(mutex_);
  add_locked();
}
}  // namespace muster
"""
ON_A_LOOP = """#include "common/async/loop.h"
namespace muster {
class Turns {
 public:
  explicit Turns(async::Loop& loop) : loop_(loop) {}
  void take() {
    loop_.post("take", [this] {
      loop_.assert_on();
      ++turns_;
    });
  }

 private:
  async::Loop& loop_;
  int turns_ MUSTER_GUARDED_BY(loop_) = 0;
};
void take(Turns& turns) { turns.take(); }
}  // namespace muster
"""


class Threads(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name)
        self.build = self.root / "build/release"
        self.build.mkdir(parents=True)
        (self.root / "common/async").mkdir(parents=True)
        shutil.copytree(CHECKOUT / "common/base", self.root / "common/base")
        shutil.copy(CHECKOUT / "common/async/loop.h", self.root / "common/async")
        self.write("common/base/counter.h", COUNTER)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def problems(self, *compiled):
        """What is found when the build compiles these files."""
        entries = [
            {
                "directory": str(self.build),
                "command": f"c++ -I{self.root} -O2 -fno-plt -Wold-style-cast -std=c++23 -o a.o -c {self.root / one}",
                "file": str(self.root / one),
            }
            for one in compiled
        ]
        self.write("build/release/compile_commands.json", json.dumps(entries))
        done = subprocess.run(
            [sys.executable, "-B", str(THREADS), str(self.build), str(self.root)],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 1 if done.stdout else 0, done.stderr)
        return done.stdout.splitlines()

    def of_counter(self, text):
        self.write("common/base/counter.cc", text)
        return self.problems("common/base/counter.cc")

    def test_what_is_locked_passes(self):
        self.assertEqual(self.of_counter(LOCKED), [])

    def test_a_field_without_its_mutex(self):
        (found,) = self.of_counter(
            LOCKED.replace("  add_locked();\n", "").replace(
                "  const MutexLock lock(mutex_);\n", "  ++count_;\n"
            )
        )
        self.assertTrue(
            found.startswith("common/base/counter.cc:5: writing variable 'count_' requires"), found
        )

    def test_a_function_that_needs_the_mutex(self):
        (found,) = self.of_counter(LOCKED.replace("  const MutexLock lock(mutex_);\n", ""))
        self.assertTrue(
            found.startswith("common/base/counter.cc:5: calling function 'add_locked' requires"),
            found,
        )

    def test_a_header_is_found_once(self):
        self.write(
            "common/base/counter.h", COUNTER.replace("    const MutexLock lock(mutex_);\n", "")
        )
        self.write("common/base/counter.cc", LOCKED)
        self.write("common/base/other.cc", '#include "common/base/counter.h"\n')
        (found,) = self.problems("common/base/counter.cc", "common/base/other.cc")
        self.assertTrue(
            found.startswith("common/base/counter.h:9: reading variable 'count_' requires"), found
        )

    def test_two_mutexes_in_the_wrong_order(self):
        (found,) = self.of_counter(
            '#include "common/base/mutex.h"\nnamespace muster {\nstruct Two {\n  Mutex second;\n'
            "  Mutex first MUSTER_ACQUIRED_BEFORE(second);\n};\nvoid both(Two& two) {\n"
            "  const MutexLock one(two.second);\n  const MutexLock other(two.first);\n}\n}  // namespace muster\n"
        )
        self.assertTrue(
            found.startswith("common/base/counter.cc:9: mutex 'first' must be acquired before"),
            found,
        )

    def test_what_belongs_to_a_loop(self):
        self.write("common/base/turns.cc", ON_A_LOOP)
        self.assertEqual(self.problems("common/base/turns.cc"), [])
        self.write("common/base/turns.cc", ON_A_LOOP.replace("      loop_.assert_on();\n", ""))
        (found,) = self.problems("common/base/turns.cc")
        self.assertTrue(
            found.startswith(
                "common/base/turns.cc:8: writing variable 'turns_' requires holding loop"
            ),
            found,
        )

    def test_sources_of_a_unity_file(self):
        self.write(
            "common/base/counter.cc", LOCKED.replace("  const MutexLock lock(mutex_);\n", "")
        )
        self.write("common/base/plain.cc", "this is not even C++\n")  # nothing to check in it
        unity = "build/release/CMakeFiles/a.dir/Unity/unity_0_cxx.cxx"
        self.write(
            unity,
            "".join(
                f'#include "{self.root}/common/base/{one}.cc"\n' for one in ("plain", "counter")
            ),
        )
        (found,) = self.problems(unity)
        self.assertTrue(found.startswith("common/base/counter.cc:5: calling function"), found)

    def test_what_has_passed_is_checked_again_after_a_change(self):
        self.assertEqual(self.of_counter(LOCKED), [])
        self.assertEqual(self.of_counter(LOCKED), [])
        self.write(
            "common/base/counter.h", COUNTER.replace("    const MutexLock lock(mutex_);\n", "")
        )
        for _ in range(2):
            self.assertEqual(len(self.of_counter(LOCKED)), 1)

    def test_what_clang_cannot_read_is_a_problem(self):
        (found,) = self.of_counter(LOCKED + "int a = no_such_name;\n")
        self.assertTrue(
            found.startswith("common/base/counter.cc:9: use of undeclared identifier"), found
        )

    def test_a_build_with_nothing_to_check(self):
        (found,) = self.problems("common/base/error.cc")
        self.assertIn("names no source that is annotated", found)


if __name__ == "__main__":
    unittest.main()
