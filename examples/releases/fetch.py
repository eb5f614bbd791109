"""Downloads one release through the ordinary client of its registry and unpacks it.

Archives and module caches are kept under WORK/downloads, which no sandbox ever shows: they hold the answers.
"""
import glob
import hashlib
import json
import os
import pathlib
import shutil
import sys
import tarfile
import threading
import zipfile

from shell import Failed, Missing, run

# `pip download` of a source distribution builds its metadata, so the build backend must be there; pinned, because
# a backend is code that runs.
BACKENDS = ("setuptools==75.8.0", "setuptools_scm==8.1.0", "wheel==0.48.0", "flit_core==3.12.0", "hatchling==1.33.0",
            "hatch-vcs==0.4.0", "hatch-fancy-pypi-readme==25.1.0", "poetry-core==2.5.0", "pdm-backend==2.5.0",
            "coherent.licensed==0.5.2")
_one_at_a_time = threading.Lock()


def _sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def _extract(archive, into):
    """Nothing lands outside `into`: archives come from strangers."""
    if str(archive).endswith(".zip"):
        with zipfile.ZipFile(archive) as z:
            z.extractall(into)  # drops absolute names and ".." by itself
        return
    with tarfile.open(archive) as t:
        if hasattr(tarfile, "data_filter"):
            t.extractall(into, filter="data")
            return
        root = os.path.realpath(into) + os.sep
        for member in t:
            place = os.path.realpath(os.path.join(into, member.name))
            if not (place + os.sep).startswith(root) or not (member.isreg() or member.isdir()):
                continue
            t.extract(member, into, set_attrs=False)


def _unpack(archive, dest):
    """An archive with one folder at its top; that folder becomes `dest`."""
    inside = pathlib.Path(f"{dest}.unpacking")
    shutil.rmtree(inside, ignore_errors=True)
    _extract(archive, inside)
    tops = list(inside.iterdir())
    if len(tops) != 1 or not tops[0].is_dir():
        raise Failed(f"{pathlib.Path(archive).name}: expected one folder at its top")
    tops[0].rename(dest)
    inside.rmdir()


def _python(pair, version, dest, work):
    from toolchains import virtual_environment
    folder = work / "downloads" / "sdist" / f"{pair.package}-{version}"
    if not any(folder.glob("*")):
        folder.mkdir(parents=True, exist_ok=True)
        backends = virtual_environment(sys.executable, BACKENDS, work)
        base = [sys.executable, "-m", "pip", "--python", backends / "bin" / "python", "download", "-q", "--no-deps",
                "--no-binary", ":all:", "-d", folder]
        wanted = f"{pair.package}=={version}"
        if run([*base, "--no-build-isolation", wanted], check=False).returncode != 0:
            run([*base, wanted])
    archive = next(folder.glob("*"), None)
    if archive is None:
        raise Failed(f"pip left no archive of {pair.package} {version}")
    _unpack(archive, dest)
    return _sha256(archive)


def _go(pair, version, dest, work):
    cache = work / "downloads" / "go"
    cache.mkdir(parents=True, exist_ok=True)
    said = run(["go", "mod", "download", "-json", f"{pair.package}@{version}"], cwd=cache,
               env={"GOMODCACHE": str(cache / "mod"), "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"})
    module = json.loads(said.stdout)
    shutil.copytree(module["Dir"], dest, symlinks=True)
    for folder, _, files in os.walk(dest):  # the module cache is read-only
        os.chmod(folder, 0o755)
        for name in files:
            path = os.path.join(folder, name)
            os.chmod(path, os.stat(path).st_mode | 0o200)
    return module["Sum"]


def cargo_home(work):
    """Ours, so that the packages of a person's own stay out; with their settings (a proxy, a mirror)."""
    home = work / "downloads" / "cargo"
    home.mkdir(parents=True, exist_ok=True)
    theirs = pathlib.Path(os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo"))
    for name in ("config.toml", "config"):
        if (theirs / name).is_file() and not (home / name).exists():
            shutil.copyfile(theirs / name, home / name)
    return home


def _rust(pair, version, dest, work):
    home = cargo_home(work)
    sources = str(home / "registry" / "src" / "*" / f"{pair.package}-{version}")
    if not glob.glob(sources):
        stub = work / "downloads" / "cargo-stub" / f"{pair.package}-{version}"
        (stub / "src").mkdir(parents=True, exist_ok=True)
        (stub / "src" / "lib.rs").write_text("")
        (stub / "Cargo.toml").write_text(
            '[package]\nname = "stub"\nversion = "0.0.0"\nedition = "2021"\n\n'
            f'[dependencies.{pair.package}]\nversion = "={version}"\ndefault-features = false\n')
        run(["cargo", "fetch", "-q", "--manifest-path", stub / "Cargo.toml"], env={"CARGO_HOME": str(home)})
    found = glob.glob(sources)
    archives = glob.glob(str(home / "registry" / "cache" / "*" / f"{pair.package}-{version}.crate"))
    if not found or not archives:
        raise Failed(f"cargo fetch left no {pair.package} {version}")
    # What cargo adds to a package is no part of it.
    shutil.copytree(found[0], dest, symlinks=True,
                    ignore=lambda _, names: {".cargo-ok", ".cargo_vcs_info.json", "Cargo.toml.orig"} & set(names))
    return _sha256(archives[0])


def _apt_options(work):
    """A private apt with the machine's own sources, asked for source packages: needs no root, changes nothing."""
    root = work / "downloads" / "apt"
    parts = root / "sources.d"
    for folder in (parts, root / "state" / "lists" / "partial", root / "cache" / "archives" / "partial"):
        folder.mkdir(parents=True, exist_ok=True)
    (root / "none").write_text("")
    etc = pathlib.Path("/etc/apt")
    for file in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]:
        if not file.is_file() or file.suffix not in (".list", ".sources"):
            continue
        lines = []
        for text in file.read_text(errors="replace").splitlines():
            if file.suffix == ".sources" and text.lower().startswith("types:"):
                text = "Types: deb-src"
            elif file.suffix == ".list" and text.startswith("deb "):
                text = "deb-src " + text[len("deb "):]
            lines.append(text)
        (parts / file.name).write_text("\n".join(lines) + "\n")
    return [x for pair in (("Dir::Etc::SourceList", root / "none"), ("Dir::Etc::SourceParts", parts),
                           ("Dir::State", root / "state"), ("Dir::Cache", root / "cache"),
                           ("Dir::State::status", "/var/lib/dpkg/status"), ("APT::Sandbox::User", "root"))
            for x in ("-o", f"{pair[0]}={pair[1]}")]


def _c(pair, version, dest, work):
    """version: DEBIANVERSION/N, the upstream archive with the first N patches of Debian's series."""
    debian, _, count = version.rpartition("/")
    if not debian or not count.isdigit():
        raise Failed(f"version {version!r}: expected DEBIANVERSION/N")
    folder = work / "downloads" / "deb" / f"{pair.package}-{debian}"
    if not list(folder.glob("*.dsc")):
        if shutil.which("apt-get") is None:
            raise Missing("apt-get is not on this machine")
        folder.mkdir(parents=True, exist_ok=True)
        options = _apt_options(work)
        run(["apt-get", *options, "update", "-qq"])
        run(["apt-get", *options, "source", "-qq", "--download-only", f"{pair.package}={debian}"], cwd=folder)
    origin, packaging = list(folder.glob("*.orig.tar.*[!c]")), list(folder.glob("*.debian.tar.*"))
    if not origin or not packaging:
        raise Failed(f"apt-get source left no upstream archive with a debian folder of {pair.package} {debian}")
    _unpack(origin[0], dest)
    patches = pathlib.Path(f"{dest}.debian")
    shutil.rmtree(patches, ignore_errors=True)
    _extract(packaging[0], patches)
    series = (patches / "debian" / "patches" / "series").read_text().splitlines()
    names = [line.split()[0] for line in series if line.strip() and not line.startswith("#")]
    for name in names[:int(count)]:
        run(["patch", "-p1", "-s", "--no-backup-if-mismatch", "-i", patches / "debian" / "patches" / name], cwd=dest)
    shutil.rmtree(patches)
    return _sha256(origin[0])


def _local(pair, version, dest, _):
    source = pair.home / version
    if not source.is_dir():
        raise Failed(f"no folder {source}")
    shutil.copytree(source, dest, symlinks=True)
    return ""


_CLIENTS = {"python": _python, "go": _go, "rust": _rust, "c": _c, "local": _local}


def fetch(pair, which, dest, work):
    """One release as a folder; Failed when its archive is not the one that was recorded."""
    with _one_at_a_time:
        try:
            found = _CLIENTS[pair.ecosystem](pair, getattr(pair, which), dest, work)
        except Failed as why:
            raise Failed(f"download: {why}") from None
    recorded = pair.sums.get(which)
    if recorded and recorded != found:
        raise Failed(f"the {which} release has the checksum {found}, recorded is {recorded}")
