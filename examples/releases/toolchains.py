"""What a task runs with: folders of this machine that its sandbox shows, variables, setup and the test command.

Everything here is prepared with the network and used without it.  Nothing that is shown may hold the new release:
not the packages of this machine's Python, not a shared module cache, not a registry.
"""
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import threading

import pins
from fetch import cargo_home
from shell import Failed, Missing, run
import trees as tree_maker

HARNESS = "harness.py"
_one_at_a_time = threading.Lock()
# Tests that take the time themselves, and the factor their package has for slow machines: a machine may be busy.
PATIENT_TESTS = {"github.com/yuin/goldmark": {"GOLDMARK_TEST_TIMEOUT_MULTIPLIER": "10"}}


@dataclasses.dataclass
class Runtime:
    language: str
    command: str  # writes $PROCTOR_RESULTS/<result_file>
    reader: str  # junit or tap
    toolchains: list = dataclasses.field(default_factory=list)  # (folder of this machine, place in the sandbox)
    variables: dict = dataclasses.field(default_factory=dict)
    setup: list = dataclasses.field(default_factory=list)
    dependencies: int = 0
    notes: list = dataclasses.field(default_factory=list)  # pinned otherwise: see pins
    probe: str = ""  # a command that must succeed in the golden tree, and its output begin with /workspace/

    @property
    def result_file(self):
        return "results.xml" if self.reader == "junit" else "results.tap"

    def show(self, folder, at=None):
        place = (str(folder), str(at or folder))
        if place not in self.toolchains:
            self.toolchains.append(place)


def through_harness(pair, kind, command):
    reader = "junit" if kind in ("go", "junit") else "tap"
    file = "results.xml" if reader == "junit" else "results.tap"
    return reader, (f'python3 "$PROCTOR_CONTRACT/{pair.id}/{HARNESS}" {kind} "$PROCTOR_RESULTS/{file}" '
                    + shlex.quote(command))


def _interpreter(pair):
    """A Python of the minor version that the results depend on."""
    if not pair.python or pair.python == "%d.%d" % sys.version_info[:2]:
        return sys.executable
    name = "python" + pair.python
    found = shutil.which(name)
    # A version manager puts programs on PATH that only say the version is not chosen.
    if found and run([found, "-c", ""], cwd="/", check=False).returncode == 0:
        return found
    found = pins.interpreter_of_manager(pair.python)
    if found is None:
        raise pins.no_interpreter(pair.python)
    return found


def _layout_of(python):
    code = ("import json, site, sys, sysconfig; print(json.dumps([sys.base_prefix, sys.base_exec_prefix,"
            " sysconfig.get_path('purelib', vars={'base': sys.base_prefix, 'platbase': sys.base_prefix})]))")
    return json.loads(run([python, "-c", code]).stdout)


def _show_interpreter(runtime, python, work):
    """The interpreter with its library, without the packages installed beside it: one may be the new release."""
    empty = work / "empty"
    empty.mkdir(parents=True, exist_ok=True)
    prefix, exec_prefix, packages = _layout_of(python)
    for folder in (prefix, exec_prefix):
        if not (folder == "/usr" or folder.startswith("/usr/")):
            runtime.show(folder)
    hidden = [pathlib.Path(packages), *pathlib.Path("/usr/lib/python3").glob("dist-packages"),
              *pathlib.Path("/usr/local/lib").glob("python3*/*-packages")]
    for folder in hidden:
        if folder.is_dir():
            runtime.show(empty, folder)


def virtual_environment(python, requirements, work):
    """One per set of exact requirements; without pip, which carries copies of other packages."""
    version = run([python, "-c", "import sys; print(sys.version)"]).stdout
    name = hashlib.sha256(json.dumps([version, sorted(requirements)]).encode()).hexdigest()[:16]
    folder = work / "environments" / name
    with _one_at_a_time:
        if (folder / "complete").exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        if run([sys.executable, "-m", "pip", "--version"], check=False).returncode != 0:
            raise Missing("pip is not on this machine")
        run([python, "-m", "venv", "--without-pip", folder])
        run([sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "-q", *requirements],
            env={"PIP_CACHE_DIR": str(work / "downloads" / "pip")})
        (folder / "complete").write_text("\n".join(requirements) + "\n")
    return folder


def _refuse_new_in_environment(pair, folder):
    normal = re.sub(r"[-_.]+", "_", pair.package).lower()
    for info in folder.glob("lib/python*/site-packages/*.dist-info"):
        name, _, version = info.name.removesuffix(".dist-info").partition("-")
        if re.sub(r"[-_.]+", "_", name).lower() == normal and version == pair.new:
            raise Failed(f"the requirements install {pair.package} {version}, the answer")


def _python(pair, trees, work, __):
    python = _interpreter(pair)
    have = run([python, "-c", "import platform; print(platform.python_version())"]).stdout.strip()
    folder = virtual_environment(python, pair.deps, work)
    _refuse_new_in_environment(pair, folder)
    command = (f'{pair.test_cmd} -o junit_family=xunit1 --junitxml="$PROCTOR_RESULTS/results.xml"')
    runtime = Runtime("python", command, "junit", dependencies=len(pair.deps))
    runtime.notes = pins.note(pins.python_pin(trees.old), have, "`python` in the list")
    runtime.show(folder)
    _show_interpreter(runtime, python, work)
    if pair.import_name:
        runtime.probe = f"python -c 'import {pair.import_name} as m; print(m.__file__)'"
    return runtime


def _go(pair, trees, work, scratch):
    if shutil.which("go") is None:
        raise Missing("go is not on this machine")
    said = json.loads(run(["go", "env", "-json", "GOROOT", "GOVERSION"], cwd="/").stdout)
    module = trees.old / "go.mod"
    wanted = re.search(r"^go (\d+)\.(\d+)", module.read_text() if module.exists() else "", re.MULTILINE)
    have = re.match(r"go(\d+)\.(\d+)", said["GOVERSION"])
    if wanted and have and (int(have[1]), int(have[2])) < (int(wanted[1]), int(wanted[2])):
        raise Missing(f"go {wanted[1]}.{wanted[2]} is not on this machine, which has {said['GOVERSION']}: install it and "
                      "put its bin first in PATH")
    modules = scratch / "modules"
    env = {"GOMODCACHE": str(modules), "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod -modcacherw",
           "GOCACHE": str(scratch / "download-build"), "PATH": pins.first_in_path(said["GOROOT"] + "/bin")}
    modules.mkdir(parents=True)
    for which in ("base", "golden"):  # the fix may ask for another version of a dependency
        tree_maker.build(trees, which, scratch / "module")
        run(["go", "mod", "download"], cwd=scratch / "module", env=env)
        run(["go", "list", "-deps", "-test", "./..."], cwd=scratch / "module", env=env, check=False)
    shutil.rmtree(scratch / "module")
    shutil.rmtree(scratch / "download-build", ignore_errors=True)
    escaped = re.sub(r"[A-Z]", lambda upper: "!" + upper[0].lower(), pair.package)
    if (modules / f"{escaped}@{pair.new}").exists():
        raise Failed(f"the tests need {pair.package} {pair.new}, the answer")
    reader, command = through_harness(pair, "go", pair.test_cmd + " -json")
    runtime = Runtime("go", command, reader, dependencies=len(list((modules / "cache" / "download").glob("**/@v"))))
    runtime.show(said["GOROOT"])
    runtime.show(modules, "/toolchain/modules")
    runtime.variables = {"GOMODCACHE": "/toolchain/modules", "GOFLAGS": "-mod=mod -buildvcs=false", "GOPROXY": "off",
                         "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOROOT": said["GOROOT"]}
    _show_interpreter(runtime, sys.executable, work)
    return runtime


def _rust(pair, trees, work, scratch):
    for program in ("cargo", "rustc", "cc"):
        if shutil.which(program) is None:
            raise Missing(f"{program} is not on this machine")
    toolchain = run(["rustc", "--print", "sysroot"], cwd="/").stdout.strip()  # where nothing is pinned
    have = run(["rustc", "--version"], cwd="/").stdout.split()[1]
    env = {"CARGO_HOME": str(cargo_home(work)), "PATH": pins.first_in_path(toolchain + "/bin")}
    _rust_lock(pair, trees, scratch, env)
    tree_maker.build(trees, "base", scratch / "crate")
    vendor = scratch / "vendor"
    run(["cargo", "vendor", "-q", "--locked", "--versioned-dirs", vendor / "crates"], cwd=scratch / "crate", env=env)
    shutil.rmtree(scratch / "crate")
    (vendor / "crates").mkdir(parents=True, exist_ok=True)  # cargo makes none where there is nothing to hold
    if (vendor / "crates" / f"{pair.package}-{pair.new}").exists():
        raise Failed(f"the tests need {pair.package} {pair.new}, the answer")
    (vendor / "config.toml").write_text('[source.crates-io]\nreplace-with = "vendored"\n\n'
                                        '[source.vendored]\ndirectory = "/toolchain/vendor/crates"\n')
    reader, command = through_harness(pair, "cargo", pair.test_cmd)
    runtime = Runtime("rust", command, reader, dependencies=len(list((vendor / "crates").iterdir())))
    pin = pins.rust_pin(trees.old)
    runtime.notes = pins.note(pin, have, f"RUSTUP_TOOLCHAIN={pin[1]}" if pin else "")
    runtime.show(toolchain)
    runtime.show(vendor, "/toolchain/vendor")
    runtime.variables = {"CARGO_NET_OFFLINE": "true", "CARGO_TERM_COLOR": "never", "RUSTFLAGS": "--cap-lints=warn"}
    runtime.setup = ['mkdir -p "$HOME/.cargo" && cp /toolchain/vendor/config.toml "$HOME/.cargo/config.toml"']
    _show_interpreter(runtime, sys.executable, work)
    return runtime


def _rust_lock(pair, trees, scratch, env):
    """The lock that was recorded is part of the repository: without it a test run would choose versions itself."""
    lock = trees.old / "Cargo.lock"
    recorded = pair.home / "locks" / f"{pair.id}.Cargo.lock"
    if recorded.is_file():
        shutil.copyfile(recorded, lock)
    elif not lock.exists():
        tree_maker.build(trees, "base", scratch / "crate")
        run(["cargo", "generate-lockfile"], cwd=scratch / "crate", env=env)
        shutil.copyfile(scratch / "crate" / "Cargo.lock", lock)


def _c(pair, _, work, __):
    for program in ("cmake", "ctest", "make", "cc"):
        if shutil.which(program) is None:
            raise Missing(f"{program} is not on this machine")
    reader, command = through_harness(pair, "ctest", pair.test_cmd)
    runtime = Runtime("c", command, reader)
    _show_interpreter(runtime, sys.executable, work)
    return runtime


def _local(pair, trees, work, __):
    for program in pair.needs:
        if shutil.which(program) is None:
            raise Missing(f"{program} is not on this machine")
    reader, command = through_harness(pair, "tap", pair.test_cmd)
    runtime = Runtime("shell", command, reader)
    if (trees.old / "package.json").exists():
        runtime.variables.update(pins.NODE)
        have = run(["node", "--version"], cwd="/", check=False).stdout.strip() if shutil.which("node") else "none"
        runtime.notes = pins.note(pins.node_pin(trees.old), have, "another node first in PATH")
    _show_interpreter(runtime, sys.executable, work)
    return runtime


_MAKERS = {"python": _python, "go": _go, "rust": _rust, "c": _c, "local": _local}


def runtime_of(pair, trees, work, scratch):
    scratch.mkdir(parents=True, exist_ok=True)
    runtime = _MAKERS[pair.ecosystem](pair, trees, work, scratch)
    runtime.variables.update(PATIENT_TESTS.get(pair.package, {}))
    for name, value in pair.env.items():
        runtime.variables[name] = str(value).replace("{tree}", "/workspace")
    return runtime
