#!/usr/bin/env python3
"""Clang's thread-safety analysis over the product: what a mutex or a loop guards is used only while that is locked, or asserted (common/base/mutex.h,
common/async/loop.h). The compiler of the product, gcc, ignores the annotations.

Checked are the sources of compile_commands.json that have an annotation themselves, or in a header that they or their own header include. What the build
compiles together (MUSTER_UNITY) is checked together, so that clang reads the headers once. What has passed is not checked again in this build folder
until a file of the product that it includes has changed, directly or not.

Usage: tests/tidy/threads.py BUILD [ROOT]; prints `file:line: message`, exits 1 when there is any. BUILD has compile_commands.json and the generated
headers, so it has been built.
"""
import concurrent.futures
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(
    sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).resolve().parents[2]
).resolve()
ROOMS = ("common", "controller", "agent", "worker", "client")
JOBS = 2
CLANG = [
    "clang++-19",
    "-fsyntax-only",
    "-Wno-everything",  # gcc has its own warnings
    "-Wthread-safety",
    "-Wthread-safety-beta",  # the order of mutexes
]
ANNOTATED = re.compile(
    r"\bMUSTER_(?:PT_)?GUARDED_BY\(|\bMUSTER_(?:REQUIRES|EXCLUDES)\(|\bMutexLock\b|\bassert_(?:on|idle)\("
)
DEFINITIONS = ("common/base/mutex.h", "common/async/loop.h")  # used by nothing yet
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
DIAGNOSTIC = re.compile(r"^(.+?):(\d+):\d+: (?:warning|(?:fatal )?error): (.*)$", re.M)

texts = {}


def text_of(name):
    """Of a file of the product; None: it is no such file."""
    if name not in texts:
        path = ROOT / name
        texts[name] = path.read_text() if path.parts and path.is_file() else None
    return texts[name]


def included(name, seen):
    """Adds the file and all files of the product that it includes."""
    if name not in seen and text_of(name) is not None:
        seen.add(name)
        for other in INCLUDE.findall(text_of(name)):
            included(other, seen)
    return seen


def sources_of(entry):
    """Names of the product's sources that the entry compiles."""
    path = pathlib.Path(entry["directory"], entry["file"])
    paths = [path.resolve()]
    if "/Unity/" in str(path):
        paths = [pathlib.Path(one).resolve() for one in INCLUDE.findall(path.read_text())]
    names = [str(one.relative_to(ROOT)) for one in paths if one.is_relative_to(ROOT)]
    return [name for name in names if name.split("/")[0] in ROOMS and name.endswith(".cc")]


def flags_of(entry):
    """Those of its flags that clang needs, and the headers that are included before the file: a PCH, which is gcc's."""
    words = shlex.split(entry["command"])
    flags, headers = [], []
    for word, value in zip(words, words[1:] + [""]):
        if word.startswith(("-I", "-D", "-std=")):
            flags.append(word)
        elif word == "-isystem":
            flags += [word, value]
        elif word == "-include":
            headers.append(value)
    return flags, headers


def is_annotated(name):
    near = {name, name.removesuffix(".cc") + ".h"}
    near.update(*(INCLUDE.findall(text_of(one) or "") for one in list(near)))
    return any(ANNOTATED.search(text_of(one) or "") for one in near.difference(DEFINITIONS))


def check(entry, sources):
    """Returns the problems."""
    flags, headers = flags_of(entry)
    command = [*CLANG, *flags, f"-I{ROOT}", "-x", "c++", "-"]
    unit = "".join(f'#include "{one}"\n' for one in [*headers, *sources])
    digest = hashlib.sha256(repr((command, unit)).encode())
    for name in sorted(set().union(*(included(source, set()) for source in sources))):
        digest.update(text_of(name).encode())
    digest.update(messages)
    passed = BUILD / "tidy_threads" / digest.hexdigest()
    if passed.exists():
        return []
    done = subprocess.run(
        command, input=unit, cwd=entry["directory"], capture_output=True, text=True
    )
    found = []
    for file, line, message in DIAGNOSTIC.findall(done.stderr):
        path = pathlib.Path(entry["directory"], file).resolve()
        if path.is_relative_to(ROOT):
            found.append(f"{path.relative_to(ROOT)}:{line}: {message}")
        else:  # a template of a library
            found.append(f"{path}:{line}: {message} (in {', '.join(sources)})")
    if done.returncode != 0 and not found:
        found.append(f"{sources[0]}:1: {done.stderr.strip() or 'clang failed'}")
    if not found:
        passed.parent.mkdir(exist_ok=True)
        passed.touch()
    return found


entries = json.loads((BUILD / "compile_commands.json").read_text())
units, taken = [], set()
for entry in entries:
    sources = [one for one in sources_of(entry) if one not in taken and is_annotated(one)]
    taken.update(sources)
    if sources:
        units.append((entry, sources))
messages = b"".join(path.read_bytes() for path in sorted(ROOT.glob("proto/**/*.proto")))
with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
    found = sum(pool.map(lambda unit: check(*unit), units), [])
problems = list(dict.fromkeys(found))  # a header's are found in each unit
if not units:
    problems.append(f"{BUILD.name}/compile_commands.json:1: names no source that is annotated")
for line in problems:
    print(line)
print(f"threads: {len(taken)} sources, {len(problems)} problems", file=sys.stderr)
sys.exit(1 if problems else 0)
