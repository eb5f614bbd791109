"""From two releases to a task: which files are tests, which are the fix, and the git objects of both.

  base   = old release + tests of the new one        the acceptance suite must fail here
  golden = base + the rest of the difference         and pass here
Files that neither test_paths nor src_paths name stay as in the old release.
"""
import dataclasses
import os
import pathlib
import shutil
import stat

from pairs import covers
from shell import Failed, run

# Nobody's settings and no clock go into a commit: the same release has the same id on every machine.
GIT_ENV = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "Proctor",
           "GIT_AUTHOR_EMAIL": "proctor@localhost", "GIT_COMMITTER_NAME": "Proctor",
           "GIT_COMMITTER_EMAIL": "proctor@localhost", "GIT_AUTHOR_DATE": "2026-03-07T00:00:00Z",
           "GIT_COMMITTER_DATE": "2026-03-07T00:00:00Z"}


@dataclasses.dataclass
class Trees:
    old: pathlib.Path
    new: pathlib.Path
    tests: list  # changed test files, relative
    sources: list  # changed files of the fix, relative

    def placed(self):
        return [path for path in self.tests if os.path.lexists(self.new / path)]

    def removed(self):
        return [path for path in self.tests if not os.path.lexists(self.new / path)]


def files_of(root):
    found = set()
    for folder, folders, names in os.walk(root):
        # A link to a folder is a file of the tree, as git sees it.
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in folders if name not in ("__pycache__", ".git") and name not in links]
        for name in (*names, *links):
            if not name.endswith(".pyc") and name != ".git":
                found.add(os.path.relpath(os.path.join(folder, name), root))
    return found


def content(path):
    """What git would store: mode and bytes; nothing where there is no file."""
    if not os.path.lexists(path):
        return None
    if os.path.islink(path):
        return "120000", os.fsencode(os.readlink(path))
    mode = "100755" if os.stat(path).st_mode & stat.S_IXUSR else "100644"
    return mode, pathlib.Path(path).read_bytes()


def split(pair, old, new):
    changed = []
    for path in sorted(files_of(old) | files_of(new)):
        before, after = content(old / path), content(new / path)
        # Archives of one project differ in modes for no reason; only bytes make a difference.
        if before is None or after is None or before[1] != after[1]:
            changed.append(path)
    tests = [path for path in changed if covers(pair.test_paths, path)]
    sources = [path for path in changed if covers(pair.src_paths, path) and path not in set(tests)]
    if not sources:
        raise Failed("the two releases do not differ in src_paths")
    if not tests:
        raise Failed("the two releases do not differ in test_paths")
    return Trees(old, new, tests, sources)


def put(source, dest, path):
    """Makes dest/path what source/path is; with a fresh time, which build tools look at."""
    target = dest / path
    if os.path.lexists(target):
        target.unlink()
    if not os.path.lexists(source / path):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.islink(source / path):
        os.symlink(os.readlink(source / path), target)
    else:
        shutil.copyfile(source / path, target)
        shutil.copymode(source / path, target)


def build(trees, which, dest):
    """A fresh copy of `old`, `base` or `golden` at dest."""
    shutil.rmtree(dest, ignore_errors=True)
    shutil.copytree(trees.old, dest, symlinks=True)
    for path in (*(trees.tests if which != "old" else ()), *(trees.sources if which == "golden" else ())):
        put(trees.new, dest, path)


def _git(repository, *words, stdin=None):
    import subprocess
    done = subprocess.run(["git", f"--git-dir={repository}", *words], input=stdin, capture_output=True,
                          env={**os.environ, **GIT_ENV, "GIT_INDEX_FILE": str(repository / "proctor-index")})
    if done.returncode != 0:
        raise Failed(f"git {words[0]}: {done.stderr.decode(errors='replace')[:300]}")
    return done.stdout


def _write_tree(repository, files):
    """`files`: path -> (mode, bytes).  Plumbing only: no filter and no .gitignore of the release has a say."""
    lines = []
    for path, (mode, data) in sorted(files.items()):
        blob = _git(repository, "hash-object", "-w", "--no-filters", "--stdin", stdin=data).decode().strip()
        lines.append(f"{mode} {blob}\t".encode() + os.fsencode(path) + b"\0")
    _git(repository, "read-tree", "--empty")
    _git(repository, "update-index", "-z", "--index-info", stdin=b"".join(lines))
    return _git(repository, "write-tree").decode().strip()


def _init(repository):
    shutil.rmtree(repository, ignore_errors=True)
    run(["git", "init", "-q", "--bare", "--initial-branch=main", repository], env=GIT_ENV)


def commit_old(trees, repository, message):
    """A bare repository with one commit, the old release.  Nothing of the new one is ever written there."""
    _init(repository)
    tree = _write_tree(repository, {path: content(trees.old / path) for path in files_of(trees.old)})
    commit = _git(repository, "commit-tree", tree, "-m", message).decode().strip()
    _git(repository, "update-ref", "refs/heads/main", commit)
    (repository / "proctor-index").unlink()
    return commit


def golden_patch(trees, scratch):
    """The fix as a diff against the old release; made in a repository of its own, which is thrown away."""
    _init(scratch)
    before = {path: content(trees.old / path) for path in trees.sources}
    after = {path: content(trees.new / path) for path in trees.sources}
    ids = [_write_tree(scratch, {path: value for path, value in side.items() if value}) for side in (before, after)]
    diff = _git(scratch, "diff", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", *ids)
    shutil.rmtree(scratch)
    return diff
