#!/usr/bin/env python3
"""House rules that a machine can hold. Each rule has a reason; a rule without one may be deleted.

  layers     an include may only follow an arrow of CMake: DEPS between targets (one a folder), ROOMS between the subfolders of one target; the
             arrows have no cycle
  pure       controller/core, agent/core, common/engine, common/text, and launcher and shell of common/compat see the standard library, protobuf messages and each other's base: no I/O
  banned     calls that have a better replacement here, named in the message
  threads    the product locks with common/base/mutex.h, whose annotations clang checks (threads.py); tests may use the standard types
  headers    #pragma once, an opening comment that says what the header owns, and NAME.cc includes its NAME.h before anything else: so
             every such header is known to be self-contained
  engines    outside an engine's folder and the table nobody compares engines' names or asks is_NAME(): what differs is a field of Engine, so that
             an engine is one folder and one row
  columns    C++ and proto fit the width that .clang-format has; raw strings and what stands between `clang-format off` and `on` may be wider;
             prose of .md fits 120, tables and examples may be wider
  words      unfinished work does not land
  glossary   docs/glossary.md has one word for one thing: its rivals stand nowhere, and vague verbs are in no identifier and no field name
  paths      nothing holds a path of the machine it was written on
  dumps      no file of the frozen dumps is changed or lost: tests/dumps/MANIFEST has the digest of each (manifest.py)

Usage: tests/tidy/tidy.py [ROOT]; prints `file:line: rule: message`, exits 1 when there is any.
"""
import io
import pathlib
import re
import subprocess
import sys
import tokenize

sys.dont_write_bytecode = True  # the checkout may be read-only
import manifest

ROOT = pathlib.Path(
    sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
).resolve()
ROOMS = ("common", "controller", "agent", "worker", "client", "deploy")
problems = []


def problem(path, line, rule, message):
    problems.append(f"{path.relative_to(ROOT)}:{line}: {rule}: {message}")


def tracked():
    """Files of the checkout: what git tracks or would track; without git, all but build folders."""
    try:
        out = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        names = out.splitlines()
    except (OSError, subprocess.CalledProcessError):
        names = [
            str(p.relative_to(ROOT))
            for p in ROOT.rglob("*")
            if p.is_file() and "build" not in p.relative_to(ROOT).parts[:1]
        ]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


FILES = tracked()
SOURCES = [p for p in FILES if p.suffix in (".h", ".cc")]
PRODUCT = [p for p in SOURCES if p.relative_to(ROOT).parts[0] in ROOMS]

# --- layers ---------------------------------------------------------------------------------------------------------
KEYWORDS = ("DEPS", "PCH", "ALONE", "ROOMS")
arrows, folders_of = (
    {},
    {},
)  # of a folder: targets and folders that it names; of a target: its folders


def by_keyword(text):
    """The arguments of muster_library behind its name, by keyword."""
    found, words = {}, None
    for word in re.findall(r'"[^"]*"|[^\s"]+', text):
        if word in KEYWORDS:
            words = found.setdefault(word, [])
        elif words is not None:
            words.append(word.strip('"'))
    return found


for cmake in FILES:
    if cmake.name != "CMakeLists.txt" or cmake.relative_to(ROOT).parts[0] not in ROOMS:
        continue
    folder = str(cmake.parent.relative_to(ROOT))
    text = re.sub(r"#.*", "", cmake.read_text())
    for name, rest in re.findall(r"muster_library\(\s*(\S+)([^)]*)\)", text):
        arguments = by_keyword(rest)
        targets = arguments.get("DEPS", [])
        rooms = {}
        if folder in arrows:
            problem(cmake, 1, "layers", "one muster_library a folder")
        for room in arguments.get("ROOMS", []):
            own, _, others = room.partition(":")
            rooms[f"{folder}/{own.strip()}"] = [f"{folder}/{other}" for other in others.split()]
        folders_of[name] = [folder, *rooms]
        arrows[folder] = [*rooms, *targets]
        for room, others in rooms.items():
            arrows[room] = [*others, *targets]
            for other in set(others) - rooms.keys():
                problem(cmake, 1, "layers", f"ROOMS: '{room}' names '{other}', which is not a room")


def reach(folder, seen=None):
    """Folders that `folder` may include from: along the arrows, transitively."""
    seen = set() if seen is None else seen
    for arrow in arrows.get(folder, []):
        for other in folders_of.get(arrow, [arrow] if arrow in arrows else []):
            if other not in seen:
                seen.add(other)
                reach(other, seen)
    return seen


for path in PRODUCT:
    if path.suffix == ".cc" and str(path.parent.relative_to(ROOT)) not in arrows:
        problem(path, 1, "layers", "in no target's folder and in no ROOMS: nothing compiles it")

allowed = {folder: reach(folder) | {folder} for folder in arrows}
for folder in arrows:
    if folder in reach(folder):
        problem(
            ROOT / folder / "CMakeLists.txt",
            1,
            "layers",
            f"'{folder}' depends on itself in a cycle",
        )

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]')
for path in PRODUCT:
    folder = str(path.parent.relative_to(ROOT))
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match or match[1] == "<":
            continue
        target = match[2]
        room = target.split("/")[0]
        if room in ROOMS:
            other = str(pathlib.PurePosixPath(target).parent)
            if other not in allowed.get(folder, set()):
                problem(
                    path, number, "layers", f"'{folder}' has no arrow (DEPS, ROOMS) to '{other}'"
                )
        elif target.startswith("tests/"):
            problem(path, number, "layers", "the product never includes a test")

# Rooms that must not know each other, whatever CMake says.
for one, other in (
    ("controller", "agent"),
    ("agent", "worker"),
    ("agent", "controller"),
    ("worker", "agent"),
    ("client", "agent"),
    ("client", "controller"),
    ("common", "controller"),
    ("common", "agent"),
):
    for folder, seen in allowed.items():
        if folder.split("/")[0] == one and any(s.split("/")[0] == other for s in seen):
            problem(
                ROOT / folder / "CMakeLists.txt",
                1,
                "layers",
                f"'{one}' must not depend on '{other}'",
            )

# --- pure -----------------------------------------------------------------------------------------------------------
PURE = (
    "controller/core",
    "agent/core",
    "common/engine",
    "common/compat/launcher",
    "common/compat/shell",
    "common/text",
)  # with all below them
IMPURE = re.compile(
    r"boost|grpc|yaml-cpp|spdlog|sqlite|<(fstream|iostream|filesystem|thread|mutex|random|future|condition_variable|unistd\.h|sys/|fcntl\.h|time\.h|ctime)"
)
IMPURE_CALL = re.compile(
    r"\b(system_clock::now|steady_clock::now|getenv|system_clock\(\)|std::rand|random_device|clock_gettime|::open\(|fopen|printf)\b"
)
for path in PRODUCT:
    if not str(path.relative_to(ROOT)).startswith(tuple(folder + "/" for folder in PURE)):
        continue
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if INCLUDE.match(line) and IMPURE.search(line):
            problem(path, number, "pure", "a core stops at values: no I/O, no clock, no thread")
        if IMPURE_CALL.search(line.split("//")[0]):
            problem(path, number, "pure", "a core is handed its clock and chance")

# --- banned ---------------------------------------------------------------------------------------------------------
BANNED = [
    (
        re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\s*\("),
        "wait for an event with a deadline (pidfd, epoll, timer)",
        ("tests/bench/",),
    ),  # a benchmark polls what it measures
    (
        re.compile(r"(?<![\w.>:])(::)?v?fork\s*\("),
        "daemons posix_spawn (common/process/spawn.h): gRPC must not be forked without exec",
        ("worker/", "tests/unit/journal/crash", "tests/unit/process/stranger",
         "tests/unit/process/tag_users", "tests/unit/io/remove_tree"),
    ),
    (re.compile(r"(?<![\w.>:])(std::)?system\s*\("), "posix_spawn with an argv: no shell", ()),
    (re.compile(r"\b(sprintf|strcpy|strcat|gets)\s*\("), "fmt, std::string", ()),
    (re.compile(r"(?<![\w.>:])(std::)?rand\s*\("), "std::mt19937 with a named seed", ()),
    (re.compile(r"\bstd::endl\b"), "'\\n'", ()),
    (
        re.compile(r"(?<![\w.>:])::kill\s*\(\s*[a-z_]*pid"),
        "a pidfd whose start time was checked (common/process/pidfd.h)",
        ("worker/", "common/process/", "tests/"),
    ),
    (
        re.compile(
            r"\b(getaddrinfo|getnameinfo|gethostby(?:name|addr)\w*|getpw(?:nam|uid|ent)\w*|getgr(?:nam|gid|ent|ouplist)\w*"
            r"|initgroups|getservby\w*|dlopen)\s*\("
        ),
        "common/name_service: the programs are static and run on hosts with another C library, whose plug-ins they cannot load",
        ("tests/",),  # they stay dynamic
    ),
    (re.compile(r"\busing namespace std\s*;"), "names spelled out", ()),
    (
        re.compile(r"\bdefault\s*:"),
        "switch without default: a new kind must break the build where it is to be handled",
        (
            "tests/",
            "client/",
            "common/spec/",
            "worker/",
            "common/io",
            "common/process",
            "common/rpc",
            "common/engine",
            "common/text",
            "agent/logs",
            "agent/saves",
            "agent/launch",
            "controller/logs",
            "controller/journal",
        ),
    ),
]
for path in SOURCES:
    name = str(path.relative_to(ROOT))
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        code = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line).split("//")[0]
        if "tidy: allow" in line:
            continue
        for pattern, instead, where in BANNED:
            if pattern.search(code) and not any(name.startswith(prefix) for prefix in where):
                problem(
                    path,
                    number,
                    "banned",
                    f"'{pattern.search(code).group(0).strip()}': use {instead}",
                )

# --- threads --------------------------------------------------------------------------------------------------------
STANDARD_LOCK = re.compile(
    r"\bstd::(?:(?:recursive_|timed_|recursive_timed_|shared_|shared_timed_)?mutex|condition_variable(?:_any)?|(?:lock_guard|scoped_lock|unique_lock|shared_lock))\b"
)
for path in PRODUCT:
    if path.relative_to(ROOT) == pathlib.PurePath("common/base/mutex.h"):
        continue
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = STANDARD_LOCK.search(line.split("//")[0])
        if match:
            problem(path, number, "threads", f"{match[0]}: use common/base/mutex.h")

# --- headers --------------------------------------------------------------------------------------------------------
for path in PRODUCT:
    if path.suffix != ".h":
        continue
    lines = path.read_text().splitlines()
    if "#pragma once" not in lines:
        problem(path, 1, "headers", "no #pragma once")
    if not lines or not lines[0].startswith("//"):
        problem(path, 1, "headers", "opens without saying what it owns and promises")

for path in SOURCES:
    header = path.with_suffix(".h")
    if path.suffix != ".cc" or not header.is_file():
        continue
    first = next(
        (m for m in map(INCLUDE.match, path.read_text(errors="replace").splitlines()) if m), None
    )
    if first is None or first[2] != str(header.relative_to(ROOT)):
        problem(
            path,
            1,
            "headers",
            f"'{header.relative_to(ROOT)}' is its first include, so that the header stands by itself",
        )

# --- engines ---------------------------------------------------------------------------------------------------------
ENGINES = ("mindformers", "megatron", "mindspeed-mm", "torch", "deepspeed", "command")
NAME = re.compile(
    '"(?:' + "|".join(ENGINES) + r')"|\bis_(?:' + "|".join(ENGINES).replace("-", "_") + r")(?=\()"
)
NAMED_IN = (  # the table; people's words for engines
    "common/engine/engine_table.cc",
    "common/spec/keys/key_table.cc",
)
for path in PRODUCT:
    name = str(path.relative_to(ROOT))
    own = re.match(r"common/engine/(\w+)/", name)
    if (own and own[1].replace("_", "-") in ENGINES) or name.startswith(NAMED_IN):
        continue
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if NAME.search(line.split("//")[0]):
            problem(
                path,
                number,
                "engines",
                f"{NAME.search(line)[0]}: ask a field of Engine (model/engine.h)",
            )

# --- columns --------------------------------------------------------------------------------------------------------
WIDTH = int(re.search(r"^ColumnLimit: (\d+)$", (ROOT / ".clang-format").read_text(), re.M)[1])
WIDE = re.compile(r'R"([^(\s"]*)\(.*?\)\1"|clang-format off.*?clang-format on', re.S)
for path in SOURCES + [p for p in FILES if p.suffix == ".proto"]:
    text = path.read_text(errors="replace")
    wide = set()
    for match in WIDE.finditer(text):
        wide |= set(
            range(text.count("\n", 0, match.start()) + 1, text.count("\n", 0, match.end()) + 2)
        )
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > WIDTH and number not in wide:
            problem(
                path,
                number,
                "columns",
                f"{len(line)} columns, {WIDTH} are allowed (clang-format-19 -i; prose in comments by hand)",
            )

PROSE_WIDTH = 120
for path in FILES:
    if path.suffix != ".md":
        continue
    fenced = False
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        if len(line) > PROSE_WIDTH and not fenced and not line.lstrip().startswith("|") and not line.startswith("    "):
            problem(path, number, "columns", f"{len(line)} columns, {PROSE_WIDTH} are allowed in prose")

# --- words and paths ------------------------------------------------------------------------------------------------
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|not implemented|unimplemented")
# The checkout's own place (wherever it is now), and root's home.
MACHINE = re.compile("|".join([re.escape(str(ROOT)) + "/", "/root/"]))
for path in FILES:
    if (
        path.suffix
        not in (".h", ".cc", ".py", ".md", ".sh", ".yaml", ".txt", ".cmake", ".proto", ".json", "")
        or path == pathlib.Path(__file__).resolve()
    ):
        continue
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        continue
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line):
            problem(path, number, "words", "unfinished work: finish it, or write an issue")
        if MACHINE.search(line):
            problem(path, number, "paths", "a path of one machine")

# --- glossary -------------------------------------------------------------------------------------------------------
ANYWHERE = {
    "spokesman": "reporting rank",
    "spokesmen": "reporting ranks",
    "companion": "auxiliary process",
    "cookie": "process tag",
    "bell": "wake FIFO",
    "pulse": "heartbeat",
    "pulsing": "sending heartbeats",
    "pulsed": "sent a heartbeat",
    "hushed": "suppressed",
    "hush": "suppress",
    "circle": "reachable set, cycle",
}
IN_NAMES = {
    "told": "reported, notified",
    "said": "output, reported",
    "look": "scan (files), probe (devices), check",
    "held": "reserved, owned",
    "beside": "the relation that is meant",
    "bring": "fetch",
    "brings": "fetches",
    "brought": "fetched",
    "looked": "scanned, probed, checked",
    "minds": "respects",
    "minded": "supervised",
}
OTHERS = (
    "tests/fixtures/",
    "tests/dumps/",
    "tests/unit/patch/cases.txt",
    "tests/unit/import/exported_test.cc",
    "tests/s3_end/package-lock.json",
)  # words of other people's programs
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OUR_NAMES = re.compile(r"(?i)mind(formers|speed|spore|cluster|ie)")  # products are called so
CPP_TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/|\bR"([^()\\\s]*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<![0-9A-Za-z])\'(?:[^\'\\\n]|\\.)+\'',
    re.S,
)


CPP = (".h", ".cc", ".proto")


def is_python(path, text):
    return path.suffix == ".py" or text.startswith(("#!/usr/bin/env python", "#!/usr/bin/python"))


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def names_only(path, text):
    """The text with comments and strings blanked, on the same lines."""
    if path.suffix in CPP:
        return CPP_TEXT.sub(lambda match: blank(match[0]), text)
    lines = [list(line) for line in text.split("\n")]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            (row, column), (last, end) = token.start, token.end
            for number in range(row, last + 1):
                begin, until = column if number == row else 0, end if number == last else len(
                    lines[number - 1]
                )
                lines[number - 1][begin:until] = " " * (until - begin)
    return "\n".join("".join(line) for line in lines)


for path in FILES:
    name = str(path.relative_to(ROOT))
    if name.startswith(OTHERS) or path == pathlib.Path(__file__).resolve():
        continue
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        continue
    code = None
    if path.suffix in CPP or is_python(path, text):
        code = names_only(path, text).splitlines()
    for part in {part.lower() for part in PART.findall(OUR_NAMES.sub("", name))}:
        if part in ANYWHERE or part in IN_NAMES:
            problem(path, 1, "glossary", f"'{part}' in the file's name")
    for number, line in enumerate(text.splitlines(), 1):
        if "tidy: allow" in line:
            continue
        for part in {part.lower() for part in PART.findall(line)}:
            word = part if part in ANYWHERE else part[:-1] if part.endswith("s") else part
            if word in ANYWHERE:
                problem(path, number, "glossary", f"'{part}': say {ANYWHERE[word]}")
        for word in NAME.findall(code[number - 1]) if code else ():
            for part in {part.lower() for part in PART.findall(OUR_NAMES.sub("", word))}:
                if part in IN_NAMES:
                    problem(path, number, "glossary", f"'{part}' in '{word}': {IN_NAMES[part]}")

# --- dumps ----------------------------------------------------------------------------------------------------------
DUMPS = ROOT / "tests/dumps"
faults, unlisted = manifest.compare(DUMPS)
for fault in faults:
    problem(DUMPS / manifest.NAME, 1, "dumps", fault)
for line in unlisted:
    problem(DUMPS / manifest.NAME, 1, "dumps", f"lacks '{line}'; run tests/tidy/manifest.py")

for line in problems:
    print(line)
print(f"tidy: {len(SOURCES)} sources, {len(problems)} problems", file=sys.stderr)
sys.exit(1 if problems else 0)
