"""What the drivers of this folder share: a tiny campaign, what it came to, what it left on the machine.

Knows Proctor by its commands and its documented files only (docs/journal.md, docs/run-directory.md).
"""
import csv
import ctypes
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
AUDIT = TOP / "tests" / "audit" / "audit"
SOLVER = "{name: solver, kind: command, command: 'BEFOREecho \"echo \\$((\\$1 + \\$2))\" > calc.sh'}"


def _leave(number, _):
    raise SystemExit(128 + number)


# Whoever ends a driver ends what it started: its `finally` runs.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(_number, _leave)


PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_head = None  # of the driver's family: whoever descends from it was started by this driver, and nobody else was


def run_driver(main):
    """Runs `main` in a family of its own and ends with its exit code.  Its head inherits every process that lost its
    parent, whatever was killed, so that what is ours is told by descent and never by a name or a mount that others
    on this machine have too."""
    global _head
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise SystemExit("cannot inherit orphans: " + os.strerror(ctypes.get_errno()))
    _head = os.getpid()
    driver = os.fork()
    if driver == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        sys.exit(main())
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal sends them to the driver too
    signal.signal(signal.SIGTERM, lambda *_: kill(driver, signal.SIGTERM))
    pid = 0
    while pid != driver:
        pid, status = os.wait()
    code, ended = os.waitstatus_to_exitcode(status), time.monotonic()
    while (strays := family() - {_head}) and time.monotonic() < ended + 60:
        for stray in strays:  # of a driver that was killed; an engine of ours ends its containers when it is told to
            kill(stray, signal.SIGTERM if time.monotonic() < ended + 10 else signal.SIGKILL)
        time.sleep(0.1)
    sys.exit(code if code >= 0 else 128 - code)


class Programs:
    """The built binaries."""

    def __init__(self, build):
        build = pathlib.Path(build).resolve()
        self.proctor = build / "proctor"
        self.worker = build / "proctor-worker"
        self.shims = build / "tests" / "fault" / "shim"
        for program in (self.proctor, self.worker):
            if not program.exists():
                raise SystemExit(f"{program} is not there: cmake --build {build} first")

    def shim(self, name):
        path = self.shims / f"libproctor_{name}.so"
        if not path.exists():
            raise SystemExit(f"{path} is not there: cmake --build ... --target proctor_{name}")
        return path


def scratch_parent():
    """Where campaigns are played: in memory if it can be, because thousands of them sync."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp"


PRICES = "action_type,unit,unit_price,notes\nprobe,unit,0.000001,what the agent buys\nsandbox,minute,0,\n"


def make_template(folder, methods=("noop", "reference", SOLVER.replace("BEFORE", "")), replicates=1, tasks=("add",),
                  workers=1, slots=2, redis="", more="", images=None, name="camp", agent="",
                  budget='global: "50.00", task: "40.00", run: "0.50"',
                  policy='protected: ["tests/**"], wall: 60s, memory: 256MiB, processes: 64'):
    """A campaign whose calc.sh subtracts instead of adding; `folder`/camp is what is run.

    `images`: of tasks that run in one, by task.  `agent`: a metered one, agent.py.
    """
    camp = pathlib.Path(folder) / "camp"
    repo = camp / "repo"
    (repo / "tests").mkdir(parents=True)
    (camp / "contracts").mkdir()
    (repo / "calc.sh").write_text("echo $(($1 - $2))\n")
    (repo / "tests/t.sh").write_text('test "$(sh calc.sh 2 3)" = 5\n')
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main", "-C", str(repo)]
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "broken"]):
        subprocess.run(git + args, check=True, stdin=subprocess.DEVNULL)
    commit = subprocess.run(git + ["rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    (camp / "contracts/fix.patch").write_text("diff --git a/calc.sh b/calc.sh\n--- a/calc.sh\n+++ b/calc.sh\n@@ -1 +1 @@\n"
                                              "-echo $(($1 - $2))\n+echo $(($1 + $2))\n")
    listed = "".join(f"  - {m}\n" for m in methods)
    (camp / "campaign.yaml").write_text(
        f"name: {name}\nmethods:\n{listed}replicates: {replicates}\nbudget: {{{budget}}}\n"
        f"strata: [language, type]\nworkers: {workers}\nslots: {slots}\n"
        + (f'redis: "{redis}"\n' if redis else "") + more)
    if agent:
        (camp / "agent.py").write_text(agent)
        (camp / "agent.py").chmod(0o755)
        (camp / "pilot_cost_model.csv").write_text(PRICES)
    for task in tasks:
        (camp / f"contracts/{task}.yaml").write_text(
            f"id: {task}\ntitle: Addition subtracts\ntype: bug_fix\nstrata: {{language: shell}}\n"
            f'briefing: calc.sh A B must print the sum.\nrepository:\n  source: ../repo\n  commit: "{commit}"\n'
            "checks:\n  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 20s}\n"
            f"policy: {{{policy}}}\nreference_patch: fix.patch\ngates: {{build: none}}\n"
            + (f'environment:\n  image: "{images[task]}"\n  variables: {{PATH: /usr/bin:/bin}}\n' if task in (images or {}) else ""))
    return camp


class Redis:
    """A private redis-server on a unix socket, and its contents as the auditor wants them."""

    def __init__(self, folder):
        self.socket = pathlib.Path(folder) / "redis.sock"
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", str(self.socket), "--save", "", "--appendonly", "no",
             "--dir", str(self.socket.parent)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while True:
            try:
                if self.call("PING") == "PONG":
                    return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def call(self, *words):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect(str(self.socket))
            data = f"*{len(words)}\r\n".encode()
            for w in words:
                data += f"${len(w.encode())}\r\n{w}\r\n".encode()
            s.sendall(data)
            with s.makefile("rb") as f:
                return self._reply(f)

    def _reply(self, f):
        line = f.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind in b"+-:":
            return rest.decode()
        if kind == b"$":
            n = int(rest)
            return None if n < 0 else f.read(n + 2)[:-2].decode()
        return [self._reply(f) for _ in range(int(rest))]

    def dump(self):
        out = {}
        for key in self.call("KEYS", "*"):
            kind = self.call("TYPE", key)
            if kind == "hash":
                flat = self.call("HGETALL", key)
                out[key] = dict(zip(flat[::2], flat[1::2]))
            elif kind == "string":
                out[key] = self.call("GET", key)
        return out

    def stop(self):
        self.process.kill()
        self.process.wait()


# ---------------------------------------------------------------- what a campaign came to

def rows(camp, query):
    db = sqlite3.connect((pathlib.Path(camp) / ".proctor/journal.sqlite").resolve().as_uri() + "?mode=ro", uri=True, timeout=60)
    try:
        db.row_factory = sqlite3.Row
        return [dict(r) for r in db.execute(query)]
    finally:
        db.close()


def started(camp):
    """A coordinator has begun there, so that `resume` is the command that goes on."""
    try:
        return bool(rows(camp, "SELECT 1 FROM epochs LIMIT 1"))
    except sqlite3.Error:
        return False


def evidence_of(folder):
    """Digests of what two honest runs of the same thing have in common: the patch and each check's streams and verdict."""
    out = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or not (name == "patch.diff" or name.startswith("acceptance/")):
            continue
        data = path.read_bytes()
        if path.name == "result.json":
            data = json.dumps({k: v for k, v in json.loads(data).items() if k != "wall_ms"}, sort_keys=True).encode()
        out[name] = hashlib.sha256(data).hexdigest()[:16]
    return out


def reports(camp):
    """By run and attempt: its report, and the folder of its evidence."""
    out = {}
    for path in pathlib.Path(camp).glob("runs/*/*/r*/attempt-*/report.json"):
        report = json.loads(path.read_bytes())
        out[(report["identity"]["run"], report["identity"]["attempt"])] = (report, path.parent)
    return out


def plan(camp):
    with (pathlib.Path(camp) / "pilot_randomization_plan.csv").open(newline="") as f:
        return list(csv.DictReader(f))


def summary(camp):
    """Run by run: name, outcome, what its evidence says."""
    known, out = reports(camp), {}
    for r in rows(camp, "SELECT run, state, outcome, attempt FROM runs ORDER BY run"):
        report, folder = known.get((r["run"], r["attempt"]), (None, None))
        name = report["identity"]["run_name"] if report else "?"
        out[r["run"]] = (name, r["state"], r["outcome"], evidence_of(folder) if folder else "no evidence")
    return out


def raises(camp):
    """What `global` was raised to, in the journal's order."""
    notes = [json.loads(n["detail"]) for n in rows(camp, "SELECT detail FROM notes WHERE kind = 'budget_raised' ORDER BY seq")]
    return [n["to"] for n in notes if n["name"] == "global"]


def cap(camp):
    """Of `global` as raised; None while nothing has begun."""
    try:
        return raises(camp)[-1] if raises(camp) else rows(camp, "SELECT cap FROM scopes WHERE id = 0")[0]["cap"]
    except (sqlite3.Error, IndexError):
        return None


def money_problems(camp):
    problems = []
    for r in rows(camp, "SELECT run, attempt, state FROM attempts WHERE settled_ms IS NULL AND state NOT IN ('denied', 'voided')"):
        problems.append(f"attempt {r['run']}.{r['attempt']} ({r['state']}) was never settled")
    balance = rows(camp, "SELECT * FROM balance")[0]
    if balance["reserved"] != 0:
        problems.append(f"{balance['reserved']} micro-dollars are reserved at the end")
    if balance["spent"] > cap(camp):
        problems.append(f"{balance['spent']} spent of {cap(camp)}")
    return problems


def auditors(programs, camp, redis=None):
    """Both auditors' complaints."""
    problems = []
    verified = subprocess.run([programs.proctor, "verify", camp], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if verified.returncode != 0:
        problems.append("proctor verify: " + (verified.stdout + verified.stderr).strip())
    command = [AUDIT, camp]
    if redis is not None:
        dump = pathlib.Path(camp).parent / "redis.json"
        dump.write_text(json.dumps(redis.dump()))
        command += ["--redis", dump]
    audited = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if audited.returncode != 0:
        problems.append("audit: " + (audited.stdout + audited.stderr).strip())
    return problems


# ---------------------------------------------------------------- what is left over

def _slurp(path):
    try:
        with open(path, "rb") as f:
            return f.read().decode(errors="replace")
    except OSError:
        return ""


def _parents():
    out = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            m = re.search(r"^State:\t(\S).*^PPid:\t(\d+)$", _slurp(f"/proc/{name}/status"), re.M | re.S)
            if m and m[1] not in "ZX":
                out[int(name)] = int(m[2])
    return out


def family():
    """The living processes that run_driver's head has started, or that were started by those, and itself."""
    ours = set()
    for _ in range(2):  # a parent may end while we read: its children have another one by the second time
        parents = _parents()
        near = {_head}
        while near:
            ours |= near
            near = {pid for pid, parent in parents.items() if parent in near}
    return ours


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _mounts(pid):
    """(device, its folder there, where it is, the line) of each."""
    return [(w[2], w[3], w[4], line) for line in _slurp(f"/proc/{pid}/mountinfo").splitlines() if len(w := line.split(" ")) > 4]


class _Places:
    """Where a folder lies: its part of a file system, and the file systems that are mounted only below it."""

    def __init__(self, folder):
        self.folder = str(folder)
        all_mounts = _mounts("self")
        below = [m for m in all_mounts if self.has(m[2])]
        others = [m for m in all_mounts if not self.has(m[2])]
        self.device, root, at, _ = max((m for m in others if (self.folder + "/").startswith(m[2].rstrip("/") + "/")), key=lambda m: len(m[2]))
        self.inside = root.rstrip("/") + self.folder[len(at.rstrip("/")):] + "/"
        self.own = {m[0] for m in below} - {m[0] for m in others}

    def has(self, path):
        return (path + "/").startswith(self.folder + "/")

    def shown_to(self, pid):
        """At a place of its own: under its own name it is there in every namespace that was made beside it."""
        return any(device in self.own or (device == self.device and (root + "/").startswith(self.inside)) or self.folder + "/" in line
                   for device, root, at, line in _mounts(pid) if not self.has(at))


def processes_of(folder):
    """pid to command line, of our family's that name the folder or are shown something of it in a namespace of their own."""
    ours, places, out = os.readlink("/proc/self/ns/mnt"), _Places(folder), {}
    for pid in family() - {os.getpid(), _head}:
        line = _slurp(f"/proc/{pid}/cmdline")
        if not line:
            continue  # it has just ended
        try:
            if f"{folder}/" in line.replace("\0", "/") or (os.readlink(f"/proc/{pid}/ns/mnt") != ours and places.shown_to(pid)):
                out[pid] = line.replace("\0", " ").strip()
        except OSError:
            continue
    return out


def _life_of(pid):
    """Its state, parent, where it waits and its control group of memory: why it may still be there."""
    status = dict(line.split(":\t", 1) for line in _slurp(f"/proc/{pid}/status").splitlines() if ":\t" in line)
    groups = [line for line in _slurp(f"/proc/{pid}/cgroup").splitlines() if ":memory:" in line or line.startswith("0::")]
    return f"({status.get('State', '?')}, child of {status.get('PPid', '?')}, at {_slurp(f'/proc/{pid}/wchan') or '?'}, {groups})"


def mounts_of(folder):
    folder = str(folder) + "/"
    return [w[1] for w in (line.split(" ") for line in _slurp("/proc/self/mounts").splitlines()) if w[1].startswith(folder)]


def leftovers(folder, worker_roots, within=60.0):
    """Lines: processes, mounts, sockets that name `folder`, control groups of workers with these roots."""
    until = time.monotonic() + within
    while True:
        out = [f"process {pid} {_life_of(pid)}: {' '.join(line.split())}" for pid, line in processes_of(folder).items()]
        out += [f"mount {at}" for at in mounts_of(folder)]
        out += [f"socket {line}" for line in _slurp("/proc/net/unix").splitlines()
                if str(folder) + "/" in line and "/redis.sock" not in line]
        marks = tuple("-" + hashlib.sha256(str(r).encode()).hexdigest()[:12] for r in worker_roots)
        for base in ("", "memory", "pids", "cpu", "cpuacct"):
            at = pathlib.Path("/sys/fs/cgroup") / base / "proctor"
            try:
                out += [f"control group {g}" for g in at.iterdir() if g.name.endswith(marks)]
            except OSError:
                pass
        if not out or time.monotonic() > until:
            return out
        time.sleep(0.02)


def still_spooled(camp):
    """Spool files whose result is in the journal already: a worker that was killed while it dropped them sends them
    once more should it ever come back, and drops them then.  Names as in files_of."""
    out = set()
    for path in pathlib.Path(camp).glob(".proctor/workers/workers/*/spool/*/*"):
        m = re.match(r"(\d+)\.(\d+)\.(result|tar\.zst)$", path.name)
        if m and rows(camp, f"SELECT 1 FROM attempts WHERE run = {m[1]} AND attempt = {m[2]} AND outcome IS NOT NULL"):
            out.add(re.sub(r"[0-9a-f]{12,}", "HASH", path.relative_to(camp).as_posix()))
    return out


def copy_tree(source, target):
    """With its sockets, which shutil does not copy."""
    pathlib.Path(target).parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", source, target], check=True)


def end_all(folder):
    """Whatever happened: nothing of the folder goes on or is mounted."""
    until = time.monotonic() + 60
    while (left := processes_of(folder)) and time.monotonic() < until:
        for pid in left:
            kill(pid)
        time.sleep(0.02)
    for at in reversed(mounts_of(folder)):
        subprocess.run(["umount", "-l", at], stderr=subprocess.DEVNULL)


def clear_away(folder):
    end_all(folder)
    shutil.rmtree(folder, ignore_errors=True)


def files_of(camp):
    """The names of all that a campaign keeps, without what may differ between two undisturbed ones."""
    out = set()
    camp = pathlib.Path(camp)
    for parent, folders, files in os.walk(camp):
        at = pathlib.Path(parent).relative_to(camp).as_posix()
        # The mirror's references come and go with what git packs.
        if at == "repo" or at.endswith("repo.git/refs"):
            folders.clear()
            continue
        for name in folders + files:
            path = re.sub(r"attempt-\d+", "attempt-N", f"{at}/{name}" if at != "." else name)
            out.add(re.sub(r"[0-9a-f]{12,}", "HASH", path))
    return out
