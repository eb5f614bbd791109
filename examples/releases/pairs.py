"""The list of release pairs: reading it, and which files of a release its globs name."""
import dataclasses
import fnmatch
import json
import pathlib
import re

from shell import Failed

ECOSYSTEMS = ("python", "go", "rust", "c", "local")


@dataclasses.dataclass
class Pair:
    id: str
    ecosystem: str
    package: str
    old: str
    new: str
    test_paths: list
    src_paths: list
    test_cmd: str
    fail_to_pass: list
    home: pathlib.Path  # folder of the list: locks/ and local releases are relative to it
    deps: list = dataclasses.field(default_factory=list)
    env: dict = dataclasses.field(default_factory=dict)
    needs: list = dataclasses.field(default_factory=list)  # of `local`: programs the tests start
    python: str = ""
    import_name: str = ""
    timeout: int = 150
    sums: dict = dataclasses.field(default_factory=dict)
    pass_to_pass_count: int | None = None
    seconds: float = 0
    type: str = "bug fix"
    reason: str = ""
    note: str = ""


KINDS = {"id": str, "ecosystem": str, "package": str, "old": str, "new": str, "test_paths": list, "src_paths": list,
         "test_cmd": str, "fail_to_pass": list, "deps": list, "env": dict, "needs": list, "python": str,
         "import_name": str, "timeout": int, "sums": dict, "pass_to_pass_count": int, "seconds": (int, float),
         "type": str, "reason": str, "note": str}
REQUIRED = ("id", "ecosystem", "package", "old", "new", "test_paths", "src_paths", "test_cmd", "fail_to_pass")


def _pair(entry, where, home):
    if not isinstance(entry, dict):
        raise Failed(f"{where}: expected an object")
    for key in REQUIRED:
        if key not in entry:
            raise Failed(f"{where}: no `{key}`")
    known = {}
    for key, kind in KINDS.items():
        value = entry.get(key)
        if value is None:
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            raise Failed(f"{where}: `{key}` is {json.dumps(value)[:60]}")
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise Failed(f"{where}: `{key}`: expected a list of texts")
        known[key] = value
    pair = Pair(home=home, **known)
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", pair.id):
        raise Failed(f"{where}: the id {pair.id!r}: expected a-z, 0-9, '.', '_' and '-'")
    if pair.ecosystem not in ECOSYSTEMS:
        raise Failed(f"{pair.id}: ecosystem {pair.ecosystem!r}: expected one of {', '.join(ECOSYSTEMS)}")
    for key in ("package", "old", "new"):
        if getattr(pair, key).startswith("-"):
            raise Failed(f"{pair.id}: `{key}` looks like an option: {getattr(pair, key)!r}")
    if not pair.fail_to_pass:
        raise Failed(f"{pair.id}: no test id in `fail_to_pass`")
    return pair


def load(file, ids, is_default):
    """The chosen pairs in the order of the list."""
    if not file.is_file():
        hint = ": it is no part of this repository; name another with --pairs FILE" if is_default else ""
        raise Failed(f"no list of release pairs at {file}{hint}")
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as why:
        raise Failed(f"{file}: {why}") from None
    if not isinstance(entries, list):
        raise Failed(f"{file}: expected a list of objects")
    home = file.absolute().parent
    found = [_pair(entry, f"{file.name}, entry {number}", home) for number, entry in enumerate(entries, 1)]
    names = [pair.id for pair in found]
    for name in names:
        if names.count(name) != 1:
            raise Failed(f"{file}: two entries with the id {name}")
    for wanted in ids:
        if wanted not in names:
            raise Failed(f"no {wanted} in {file}; it has {', '.join(names)}")
    return [pair for pair in found if not ids or pair.id in ids]


def _covers(pattern, path):
    pattern = pattern.rstrip("/")
    if not any(c in pattern for c in "*?["):
        return pattern == "." or path == pattern or path.startswith(pattern + "/")
    # '*' crosses folders here, and a pattern without a folder matches in every folder.
    return fnmatch.fnmatchcase(path, pattern) or (
        "/" not in pattern and fnmatch.fnmatchcase(path.rsplit("/", 1)[-1], pattern))


def covers(patterns, path):
    return any(_covers(pattern, path) for pattern in patterns)


def contract_globs(patterns):
    """The same set of files as a contract's globs, where `*` stays in one folder and `**` does not."""
    globs = []
    for pattern in patterns:
        pattern = pattern.strip("/")
        if pattern in ("", "."):
            return ["**"]
        if "[" in pattern:
            continue  # a contract's globs have no sets; changed test files are acceptance files anyway
        if "/" not in pattern:
            globs.append(("**/" if "*" in pattern or "?" in pattern else "") + pattern)
        else:
            globs.append("/".join("**" if part == "*" else part for part in pattern.split("/")))
    return sorted(set(globs))
