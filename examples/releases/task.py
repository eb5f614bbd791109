"""From a pair to a task that is ready for a contract: trees, repository, patch, toolchains and the tests that count."""
import concurrent.futures
import dataclasses
import pathlib
import re
import shlex
import shutil
import sys
import xml.etree.ElementTree

import sandbox
import toolchains
import trees as tree_maker
from fetch import fetch
from shell import Failed, last_line

# A machine may be slower than the one the list was measured on, and busy.
PATIENCE = 4
LONGEST_ID = 1000  # of a test in a contract
SETUP_TIMEOUT = 600
SAFE_PATH = re.compile(r"[^\"'`$\\;&|<>*?!(){}\[\]\x00-\x1f\x7f]+")  # what a contract takes for a file's path


@dataclasses.dataclass
class Settings:
    proctor: pathlib.Path
    work: pathlib.Path
    verbose: bool = False

    def say(self, pair, text):
        if self.verbose:
            print(f"{pair.id}: {text}", file=sys.stderr, flush=True)


@dataclasses.dataclass
class Task:
    folder: pathlib.Path
    campaign: pathlib.Path
    commit: str
    runtime: toolchains.Runtime
    command: str
    acceptance: list  # (file beside the contract, place in the workspace)
    extra_files: list  # files beside the contract that the command needs
    pass_to_pass: list = dataclasses.field(default_factory=list)
    has_long_ids: bool = False  # longer than Proctor reads: see the harness

    @property
    def contracts(self):
        return self.campaign / "contracts"


def check_timeout(pair):
    return pair.timeout * PATIENCE


def prepare(pair, settings):
    folder = settings.work / "tasks" / pair.id
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    settings.say(pair, "downloading both releases")
    for which in ("old", "new"):
        fetch(pair, which, folder / which, settings.work)
    trees = tree_maker.split(pair, folder / "old", folder / "new")
    settings.say(pair, "preparing its toolchain")
    runtime = toolchains.runtime_of(pair, trees, settings.work, folder / "toolchain")
    for line in runtime.notes:
        print(f"{pair.id}: {line}", file=sys.stderr, flush=True)
    task = _write_files(pair, trees, runtime, folder)
    if runtime.language == "go":
        _warm_go(pair, task, trees, settings)
    settings.say(pair, "running its tests on both sides")
    _calibrate(pair, task, trees, settings)
    for name in ("old", "new", "base", "golden"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return task


def _write_files(pair, trees, runtime, folder):
    """Repository, golden patch, acceptance files and the harness, in the campaign's folder."""
    campaign = folder / "campaign"
    beside = campaign / "contracts" / pair.id
    beside.mkdir(parents=True)
    commit = tree_maker.commit_old(trees, campaign / "repository.git", f"{pair.package} {pair.old}")
    # Not in `beside`, all of which the tests may read.
    (campaign / "contracts" / f"{pair.id}.patch").write_bytes(tree_maker.golden_patch(trees, folder / "diff.git"))
    acceptance, extra, before = [], [], []
    for number, path in enumerate(trees.placed()):
        # A contract takes no shell characters in paths; such a file goes the same way, under another name.
        usable = SAFE_PATH.fullmatch(path) and not path.startswith("-")
        kept = f"acceptance/{path}" if usable else f"placed/{number:04}"
        (beside / kept).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(trees.new / path, beside / kept)
        shutil.copymode(trees.new / path, beside / kept)
        if usable:
            acceptance.append((f"{pair.id}/{kept}", path))
        else:
            extra.append(f"{pair.id}/{kept}")
            place = shlex.quote("./" + path)
            before.append(f'mkdir -p "$(dirname -- {place})" && cp "$PROCTOR_CONTRACT/{pair.id}/{kept}" {place}')
    if trees.removed():  # tests that the new release no longer has
        before.append("rm -f " + " ".join(shlex.quote("./" + path) for path in trees.removed()))
    command = " && ".join([*before, runtime.command])
    task = Task(folder, campaign, commit, runtime, command, acceptance, extra)
    if runtime.command.startswith("python3 \"$PROCTOR_CONTRACT"):
        _add_harness(pair, task)
    return task


def _add_harness(pair, task):
    shutil.copyfile(pathlib.Path(__file__).parent / toolchains.HARNESS, task.contracts / pair.id / toolchains.HARNESS)
    task.extra_files.append(f"{pair.id}/{toolchains.HARNESS}")


def _warm_go(pair, task, trees, settings):
    """Compiles the standard library and the old release's tests once; every later run starts from a copy."""
    home, tree = task.folder / "warm-home", task.folder / "warm"
    home.mkdir()
    tree_maker.build(trees, "old", tree)
    sandbox.execute(task.runtime, "go test -vet=off -count=1 -run '^$' ./... || :",
                    [(tree, sandbox.WORKSPACE, True), (home, sandbox.HOME, True)],
                    settings.work, task.folder / "warm.log", check_timeout(pair) + SETUP_TIMEOUT)
    built = home / ".cache" / "go-build"
    if built.is_dir():
        built.rename(task.folder / "toolchain" / "go-build")
        task.runtime.show(task.folder / "toolchain" / "go-build", "/toolchain/go-build")
        task.runtime.setup.append('mkdir -p "$HOME/.cache" && cp -R /toolchain/go-build "$HOME/.cache/go-build"')
    for leftover in (home, tree):
        shutil.rmtree(leftover, ignore_errors=True)


def read_results(reader, file):
    """test id -> pass, fail or skip, as Proctor reads the same file; nothing where there is no whole file"""
    if not file.is_file():
        return None
    return _read_junit(file) if reader == "junit" else _read_tap(file.read_text(encoding="utf-8"))


def _read_junit(file):
    tests = {}
    for case in xml.etree.ElementTree.parse(file).iter("testcase"):
        path, group, name = case.get("file") or "", case.get("classname") or "", case.get("name")
        if path:
            module = path.removesuffix(".py").replace("/", ".")
            group = "" if group == module else group.removeprefix(module + ".").replace(".", "::")
        inside = {child.tag for child in case}
        state = "fail" if inside & {"failure", "error"} else "skip" if "skipped" in inside else "pass"
        key = "::".join(part for part in (path, group, name) if part)
        if tests.get(key) != "fail":
            tests[key] = state
    return tests


def _read_tap(text):
    tests = {}
    for line in text.splitlines():
        found = re.match(r"(not )?ok\b(?:\s+\d+)?(?:\s+-)?\s*(.*)", line)
        if not found:
            continue
        name, _, directive = re.sub(r"\\([\\#])", lambda m: chr(0xE000 + ord(m[1])), found[2]).partition(" #")
        name = re.sub("[\ue023\ue05c]", lambda m: chr(ord(m[0]) - 0xE000), name).strip()
        words = directive.upper().split()
        skipped = words[:1] == ["SKIP"] or (bool(found[1]) and words[:1] == ["TODO"])
        state = "skip" if skipped else "fail" if found[1] else "pass"
        if tests.get(name) != "fail":
            tests[name] = state
    return tests


def _run_side(pair, task, trees, which, settings):
    folder = task.folder / f"calibration-{which}"
    for name in ("home", "results"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    tree_maker.build(trees, which, task.folder / which)
    mounts = [(task.folder / which, sandbox.WORKSPACE, True), (folder / "home", sandbox.HOME, True),
              (folder / "results", sandbox.RESULTS, True),
              (task.contracts / pair.id, f"{sandbox.CONTRACT}/{pair.id}", False)]

    def do(command, log, timeout):
        return sandbox.execute(task.runtime, command, mounts, settings.work, folder / log, timeout)

    for step in task.runtime.setup:
        if do(step, "setup.log", SETUP_TIMEOUT) != 0:
            raise Failed(f"setup of the {which} tree: {last_line(folder / 'setup.log')}")
    if which == "golden" and task.runtime.probe:
        do(task.runtime.probe, "probe.log", SETUP_TIMEOUT)
        if not last_line(folder / "probe.log").startswith(sandbox.WORKSPACE + "/"):
            raise Failed(f"the tests import another copy: {last_line(folder / 'probe.log')}")
    code = do(task.command, "tests.log", check_timeout(pair))
    if code is None:
        raise Failed(f"the tests of the {which} tree take longer than {check_timeout(pair)} s")
    results = read_results(task.runtime.reader, folder / "results" / task.runtime.result_file)
    if results is None:
        raise Failed(f"the tests of the {which} tree left no results: {last_line(folder / 'tests.log')}")
    shutil.rmtree(folder / "home", ignore_errors=True)
    if any(LONGEST_ID < len(test.encode()) for test in results):
        task.has_long_ids = True
    return {test for test, state in results.items() if state == "pass"}


def _calibrate(pair, task, trees, settings):
    """Which tests pass on both sides; and that the recorded ones fail on one and pass on the other."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        sides = [pool.submit(_run_side, pair, task, trees, which, settings) for which in ("base", "golden")]
        base, golden = (side.result() for side in sides)
    wanted = set(pair.fail_to_pass)
    for problem, tests in (("do not pass with the new source", wanted - golden),
                           ("pass without the new source", wanted & base)):
        if tests:
            raise Failed(f"{len(tests)} of the fail-to-pass tests {problem}, first: {min(tests)}")
    task.pass_to_pass = sorted(test for test in base & golden if len(test.encode()) <= LONGEST_ID)
    if task.has_long_ids and task.runtime.language == "python":
        _, task.command = toolchains.through_harness(pair, "junit", task.command)
        _add_harness(pair, task)
    recorded = pair.pass_to_pass_count
    if recorded is not None and recorded != len(base & golden):
        print(f"{pair.id}: {len(base & golden)} tests pass on both sides here, recorded are {recorded}",
              file=sys.stderr, flush=True)
