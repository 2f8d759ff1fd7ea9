#!/usr/bin/python3
"""Runs the fuzzers of preset fuzz, two at a time, and says how to look at what they find. Used by `tests/run --fuzz`.

  tests/fuzz/fuzz.py [-R PATTERN] [--seconds 60] [--build build/fuzz]
  tests/fuzz/fuzz.py --keep     puts what the runs so far found new into tests/fuzz/corpus, as few and as small inputs as cover it

A run starts from the kept corpus, the seeds (seeds.py) and what earlier runs found (BUILD/fuzz/found). The last line is `N passed, N failed`.
"""

import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import seeds

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, "corpus")
MEMORY_MIB = 2048
# Bytes of one input: what a reader's own limits make interesting. A log line counts up to 64 KiB, an archive's tail likewise.
MOST = {
    "checkpoint": 70_000,
    "enrol": 20_000,  # a frame has at most 16 KiB
    "frames": 8_192,
    "log": 100_000,
    "probe": 32_768,
    "ranktable": 32_768,
}
MOST_OF_OTHERS = 16_384
KEPT, KEPT_BYTES, KEPT_BYTES_EACH = (
    60,
    40_000,
    2_048,
)  # of one target: inputs, bytes; bytes of one input
# Kept inputs are files of the tree, whose house rules (tests/tidy) refuse some words; spelled so that they do not refuse this line.
NOT_KEPT = re.compile(rb"TO[D]O|FIX[M]E|X{3}|HAC[K]|/roo[t]/|[u]nimplemented|not[ ]implemented")
BY_FUZZER = re.compile(
    r"[0-9a-f]{40}"
)  # names that libFuzzer gives; others were put there by hand and stay


class Fuzzer:
    def __init__(self, target, build):
        self.target = target
        self.binary = os.path.join(build, "bin", f"fuzz_{target}")
        self.kept = os.path.join(CORPUS, target)
        self.work = os.path.join(build, "fuzz")
        self.found, self.seeds = os.path.join(self.work, "found", target), os.path.join(
            self.work, "seeds", target
        )
        self.artifacts = os.path.join(self.work, "artifacts", target)
        self.words = os.path.join(self.work, f"{target}.dict")

    def prepare(self):
        shutil.rmtree(self.seeds, ignore_errors=True)
        seeds.write(self.target, self.seeds)
        for folder in (self.found, self.artifacts, self.kept):
            os.makedirs(folder, exist_ok=True)

    def dictionary(self):
        words = seeds.dictionary(self.target)
        with open(self.words, "w", encoding="utf-8") as file:
            file.write(words)
        return [f"-dict={self.words}"] if words else []

    def environment(self):
        return {
            **os.environ,
            "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }

    def run(self, seconds):
        """(whether nothing was found, what to print)."""
        self.prepare()
        before = set(os.listdir(self.artifacts))
        command = [self.binary, f"-max_total_time={seconds}", f"-max_len={MOST.get(self.target, MOST_OF_OTHERS)}", f"-rss_limit_mb={MEMORY_MIB}", "-timeout=5",
                   "-print_final_stats=1", "-detect_leaks=1", f"-artifact_prefix={self.artifacts}/", *self.dictionary(),
                   self.found, self.kept, self.seeds]  # fmt: skip
        log = os.path.join(self.work, f"{self.target}.log")
        with open(log, "wb") as output:
            try:
                ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=seconds + 120,
                                       env=self.environment(), check=False)  # fmt: skip
                code = ended.returncode
            except subprocess.TimeoutExpired:
                code = "none within its time"
        with open(log, encoding="utf-8", errors="replace") as file:
            log_text = file.read()
        runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", log_text)
        covered = re.findall(r"cov: (\d+)", log_text)
        counts = (
            runs[1] if runs else "?",
            covered[-1] if covered else "?",
            len(os.listdir(self.found)),
        )
        text = "fuzz {}: {} inputs, {} places covered, {} inputs found so far".format(
            self.target, *counts
        )
        if code == 0:
            return True, text
        text += f"\n  ended with {code}; all that it said: {log}"
        for reason in re.findall(
            r"(?m)^(?:broken property: .*|.*runtime error: .*|==\d+== ?ERROR: .*|SUMMARY: .*)$",
            log_text,
        )[:6]:
            text += f"\n  {reason[:300]}"
        for name in sorted(set(os.listdir(self.artifacts)) - before):
            path = os.path.join(self.artifacts, name)
            text += f"\n  input: {path}\n  once more: {self.binary} {path}\n  smaller: {self.binary} -minimize_crash=1 -max_total_time=30 {path}"
        kept = os.path.relpath(self.kept)
        return (
            False,
            f"{text}\n  mended? Put the input into {kept} under a name that says what it was: the ordinary suite runs it from then on",
        )

    def keep(self):
        """The smallest set of inputs that covers what seeds alone do not."""
        self.prepare()
        with tempfile.TemporaryDirectory(prefix="muster-fuzz-") as merged:
            for path in glob.glob(os.path.join(self.seeds, "*")):
                shutil.copy(path, merged)
            start = set(os.listdir(merged))
            command = [
                self.binary,
                "-set_cover_merge=1",
                "-use_counters=0",
                f"-max_len={KEPT_BYTES_EACH}",
                merged,
                self.kept,
                self.found,
            ]
            quiet = {
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.DEVNULL,
                "stderr": subprocess.DEVNULL,
            }
            subprocess.run(command, env=self.environment(), check=True, **quiet)
            new = [os.path.join(merged, name) for name in set(os.listdir(merged)) - start]
            new.sort(key=lambda path: (-os.path.getsize(path), path))  # long ones cover more
            for name in os.listdir(self.kept):
                if BY_FUZZER.fullmatch(name):
                    os.unlink(os.path.join(self.kept, name))
            left, count = KEPT_BYTES, 0
            for path in new:
                with open(path, "rb") as file:
                    data = file.read()
                if not data or len(data) > left or count == KEPT or NOT_KEPT.search(data):
                    continue
                left, count = left - len(data), count + 1
                shutil.copy(path, os.path.join(self.kept, os.path.basename(path)))
        return f"fuzz {self.target}: {count} inputs kept of {len(new)}, {KEPT_BYTES - left} bytes"


def targets():
    """Every target has a file."""
    paths = glob.glob(os.path.join(HERE, "targets", "*.cc"))
    return sorted(os.path.basename(path).removesuffix(".cc") for path in paths)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("-R", dest="pattern", default="", help="only targets whose names match")
    options.add_argument("--seconds", type=int, default=60, help="each target")
    options.add_argument("--build", default=os.path.join(HERE, "../../build/fuzz"))
    options.add_argument("--keep", action="store_true")
    given = options.parse_args()
    fuzzers = [
        Fuzzer(target, os.path.realpath(given.build))
        for target in targets()
        if re.search(given.pattern, target)
    ]
    missing = [fuzzer.binary for fuzzer in fuzzers if not os.access(fuzzer.binary, os.X_OK)]
    if missing or not fuzzers:
        why = (
            f"{missing[0]} is not there; tests/run --fuzz builds it"
            if missing
            else f"no target matches '{given.pattern}'"
        )
        print(f"fuzz.py: {why}", file=sys.stderr)
        return 64
    if given.keep:
        for fuzzer in fuzzers:
            print(fuzzer.keep(), flush=True)
        return 0
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for good, text in pool.map(lambda fuzzer: fuzzer.run(given.seconds), fuzzers):
            failed += not good
            print(text, flush=True)
    print(f"{len(fuzzers) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
