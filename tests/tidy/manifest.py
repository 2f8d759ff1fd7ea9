#!/usr/bin/env python3
"""tests/dumps/MANIFEST: the SHA-256 of every file of the frozen dumps, in the form of sha256sum.

A file of a dump is written once: what is added later is in further files (docs/compatibility.md). So lines are only added.

Usage: tests/tidy/manifest.py [ROOT]; adds the lines of new files. Exits 1, and changes nothing, if a file is changed or lost.
"""
import hashlib
import pathlib
import sys

NAME = "MANIFEST"


def read(dumps):
    """The digests of the manifest, by name, and sentences about its own faults."""
    digests, faults = {}, []
    path = dumps / NAME
    for line in path.read_text().splitlines() if path.is_file() else ():
        digest, _, name = line.partition("  ")
        if name in digests:
            faults.append(f"'{name}' stands twice in {NAME}")
        digests[name] = digest
    return digests, faults


def digests_of(dumps):
    """The digests of the files that are there, by name."""
    return {
        str(path.relative_to(dumps)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(dumps.rglob("*"))
        if path.is_file() and path != dumps / NAME
    }


def compare(dumps):
    """Sentences about what is frozen and is not as it was, and the lines that the manifest lacks."""
    if not dumps.is_dir():
        return [], []
    frozen, faults = read(dumps)
    there = digests_of(dumps)
    for name, digest in frozen.items():
        if name not in there:
            faults.append(f"'{name}' is frozen and lost; restore it with git")
        elif there[name] != digest:
            faults.append(
                f"'{name}' is frozen and has changed; restore it with git, and add what is new in another file"
            )
    return faults, [f"{digest}  {name}" for name, digest in there.items() if name not in frozen]


def main():
    root = pathlib.Path(
        sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    )
    dumps = root / "tests/dumps"
    faults, lines = compare(dumps)
    for fault in faults:
        print(fault)
    if faults:
        return 1
    if lines:
        path = dumps / NAME
        all_lines = (path.read_text().splitlines() if path.is_file() else []) + lines
        path.write_text("".join(f"{line}\n" for line in sorted(all_lines, key=lambda one: one[66:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
