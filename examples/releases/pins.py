"""Toolchains that a release names for its own developers: it is run with the one of this machine, and told so.

Version managers read such files in whatever folder a program starts, and then choose, download or refuse; so the
programs behind them are called.  A line says what is pinned, what is there, and what to set for another.
"""
import json
import os
import pathlib
import re
import shutil

from shell import Missing, run

# Where a package asks its package manager to refuse another version.
NODE = {"npm_config_engine_strict": "false", "COREPACK_ENABLE_STRICT": "0", "YARN_IGNORE_ENGINES": "1"}


def numbers(version):
    """1.75.0-beta -> (1, 75, 0); nothing for a name"""
    found = re.match(r"[^\d]*(\d+(?:\.\d+)*)", version or "")
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def _text(path):
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def first_in_path(folder):
    """The programs of this folder before those that only choose one."""
    return f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"


def rust_pin(tree):
    """(file, version): a toolchain file, then what the crate says it needs."""
    for name in ("rust-toolchain.toml", "rust-toolchain"):
        text = _text(tree / name)
        channel = re.search(r'^\s*channel\s*=\s*"([^"]+)"', text, re.MULTILINE)
        first = text.split("\n", 1)[0].strip()
        if channel or (first and not first.startswith("[")):
            return name, channel[1] if channel else first
    needs = re.search(r'^\s*rust-version\s*=\s*"([^"]+)"', _text(tree / "Cargo.toml"), re.MULTILINE)
    return ("Cargo.toml", needs[1]) if needs else None


def python_pin(tree):
    lines = _text(tree / ".python-version").split()
    return (".python-version", lines[0]) if lines else None


def node_pin(tree):
    try:
        engines = json.loads(_text(tree / "package.json") or "{}").get("engines")
    except ValueError:
        return None
    return ("package.json", engines["node"]) if isinstance(engines, dict) and engines.get("node") else None


def note(pin, have, setting):
    """One line, or nothing where what is there is what was asked for."""
    if pin is None:
        return []
    file, wanted = pin
    asked, there = numbers(wanted), numbers(have)
    if wanted == have or (asked and there[:len(asked)] == asked):
        return []
    if file == "Cargo.toml" and asked and asked <= there:  # the least that will do
        return []
    return [f"{file} asks for {wanted}; it runs with {have} (to choose: {setting})"]


def interpreter_of_manager(minor):
    """pythonX.Y that pyenv has, though it has not chosen it."""
    manager = shutil.which("pyenv")
    if manager is None:
        return None
    root = run([manager, "root"], check=False).stdout.strip()
    found = [folder / "bin" / f"python{minor}" for folder in pathlib.Path(root, "versions").glob(f"{minor}.*")]
    found = sorted((f for f in found if f.is_file()), key=lambda f: numbers(f.parent.parent.name))
    return str(found[-1]) if found else None


def no_interpreter(minor):
    return Missing(f"python{minor} is not on this machine, or its version manager has not chosen one: "
                   f"install it (pyenv install {minor}), or set PYENV_VERSION")
