"""A campaign that a driver plays: `with Campaign(...) as c` writes it, runs it and ends all of it."""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import faultlib

LONG = 600  # seconds until something that must happen has not
# What every metered agent begins with; what it does depends on its run alone.
METERED = r'''#!/usr/bin/env python3
import hashlib, json, os, random, socket, time
rnd = random.Random(hashlib.sha256(os.environ["PROCTOR_RUN"].encode()).digest())
meter = socket.socket(socket.AF_UNIX)
meter.connect(os.environ["PROCTOR_METER"])
lines = meter.makefile("r", encoding="utf-8")
def ask(**request):
    meter.sendall((json.dumps(request) + "\n").encode())
    while True:
        answer = json.loads(lines.readline())
        if "answer" in answer:
            return answer
'''


def options(doc, seed):
    """The options that all drivers have; each adds its own."""
    out = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--build", default=str(faultlib.TOP / "build/release"), help="folder of the built programs")
    out.add_argument("--seed", type=int, default=seed)
    out.add_argument("--keep", action="store_true", help="keep the folder of what did not hold")
    return out


def wait_for(answer, what, said=lambda: "", within=LONG):
    until = time.monotonic() + within
    while not (got := answer()):
        if until < time.monotonic():
            raise SystemExit(f"it did not come about: {what}\n{said()}")
        time.sleep(0.02)
    return got


class Process:
    """A program that may be started again and again; what it says is in NAME.said."""

    def __init__(self, name, command, folder, env=None):
        self.name, self.command, self.env, self.child, self.starts = name, command, env, None, 0
        self.file = folder / f"{name}.said"

    def start(self):
        command = self.command() if callable(self.command) else self.command
        with open(self.file, "ab") as log:
            self.child = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env,
                                          start_new_session=True)
        self.starts += 1
        return self

    def code(self):
        """None: it runs, or was never started."""
        return self.child.poll() if self.child else None

    def ended(self):
        return self.child is None or self.code() is not None

    def signal(self, number):
        if not self.ended():
            self.child.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        if self.child is not None:
            self.child.wait()

    def wait(self, seconds=LONG):
        """Its exit code; None when it does not end."""
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def said(self):
        return self.file.read_text(errors="replace") if self.file.exists() else ""


class Place:
    """A folder of its own and what runs in it.  At the end of `with` all of it ends, and the folder goes, unless it is to be
    kept because `problems` are left."""

    def __init__(self, programs, at=None, prefix="proctor-", parent=None, keep=False, own_redis=False):
        self.programs, self.keep = programs, keep
        self.folder = pathlib.Path(at or tempfile.mkdtemp(prefix=prefix, dir=parent or faultlib.scratch_parent()))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.redis = faultlib.Redis(self.folder) if own_redis else None
        self.processes, self.begun = [], time.monotonic()
        self.problems = ["it did not come to an end"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for it in self.processes:
            it.kill()
        if self.redis:
            self.redis.stop()
        faultlib.end_all(self.folder)
        if self.problems and self.keep:
            print(f"kept: {self.folder}", file=sys.stderr)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def process(self, name, command, env=None):
        self.processes.append(Process(name, command, self.folder, env))
        return self.processes[-1]

    def seconds(self):
        return round(time.monotonic() - self.begun, 1)

    def verdict(self, problems, **figures):
        """What a driver says last, and its exit code."""
        self.problems = problems
        for text in problems[:40]:
            print("DOES NOT HOLD  " + text)
        print(json.dumps({"seconds": self.seconds(), **figures, "problems": len(problems)}))
        return 1 if problems else 0


class Campaign(Place):
    """One campaign with the real programs, made by `write` in `inside` of its place, or copied."""

    def __init__(self, programs, at=None, prefix="proctor-", parent=None, keep=False, copy_of=None, inside="", own_redis=False,
                 write=faultlib.make_template, **made):
        super().__init__(programs, at, prefix, parent, keep, own_redis)
        self.roots, self.endpoint = {}, None
        self.raised, self.asked = [], None  # what `global` was raised to; (to, the command) of a raise under way
        self.temporary = self.folder / "tmp"  # goes with the folder, with all that killed programs leave there
        self.env = dict(os.environ, TMPDIR=str(self.temporary), PROCTOR_SHARE_USER="1")
        self.temporary.mkdir()
        try:
            if copy_of:
                self.camp = self.folder / "camp"
                shutil.copytree(copy_of, self.camp, symlinks=True)
            else:
                if own_redis:
                    made["redis"] = f"unix:{self.redis.socket}"
                self.camp = write(self.folder / inside, **made)
        except BaseException:
            self.__exit__()
            raise
        self.coordinator = self.process("coordinator", self._go_on, self.env)

    def __exit__(self, *_):
        try:
            self.clean_up_workers()
        finally:
            super().__exit__()

    # ---- its programs

    def proctor(self, verb, *more, check=False, env=None, timeout=LONG):
        """`proctor VERB CAMPAIGN MORE` to its end."""
        command = [self.programs.proctor, *verb.split(), self.camp, *more]
        try:
            done = subprocess.run(command, env=env or self.env, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
                                  timeout=timeout)
        except subprocess.TimeoutExpired as e:
            done = subprocess.CompletedProcess(command, "still running", *((s or b"").decode(errors="replace") for s in (e.stdout, e.stderr)))
        if check and done.returncode != 0:
            raise SystemExit(f"proctor {verb}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def _go_on(self):
        begun = faultlib.started(self.camp) and self.rows("SELECT 1 FROM attempts LIMIT 1")
        return [self.programs.proctor, "resume" if begun else "run", self.camp]

    def start(self):
        """Runs or resumes it in the background."""
        self.coordinator.start()

    def kill(self):
        self.coordinator.kill()

    def over(self):
        """It ended as it should; one that ended otherwise is started again."""
        code = self.coordinator.code()
        if code not in (None, 0, 3):
            self.start()
        return code in (0, 3)

    def said(self):
        return self.coordinator.said()[-3000:]

    def serve(self, *more):
        """Waits for workers of its own by TCP, at `endpoint`."""
        self.coordinator.command = [self.programs.proctor, "serve", self.camp, "--listen", "tcp://127.0.0.1:0", *more]
        self.start()
        listens = lambda: self.coordinator.ended() or re.search(r"listening on (tcp://127\.0\.0\.1:\d+)", self.coordinator.said())
        found = wait_for(listens, "it listens", self.said)
        if found is True:
            raise SystemExit("the coordinator did not start\n" + self.said())
        self.endpoint = found[1]

    def with_key(self, name):
        keys = self.camp / ".proctor/keys"
        return ["--server-key", keys / "coordinator.pub", "--key", keys / f"{name}.key"]

    def worker(self, name, *more, slots=2):
        self.roots[name] = self.folder / "roots" / name
        return self.process(name, [self.programs.worker, "--connect", self.endpoint, "--name", name, "--slots", slots, "--root",
                                   self.roots[name], "--docker-socket", self.folder / "no-engine", *more], self.env).start()

    def clean_up(self, name, root, *more):
        subprocess.run([self.programs.worker, "--clean-up", "--name", name, "--root", root, *more], stdin=subprocess.DEVNULL, capture_output=True)

    def clean_up_workers(self):
        """Ends what goes on, and removes what a killed worker left, as its next start would."""
        for it in self.processes:
            it.kill()
            if it.name in self.roots and it.code() != 0:
                self.clean_up(it.name, self.roots[it.name])

    # ---- a raise while it is disturbed

    def _raise(self, to):
        return [self.programs.proctor, "budget", "raise", self.camp, "global", f"{to / 1e6:.6f}", "--reason", "a drill", "--by", "driver"]

    def begin_raise(self):
        """Asks for a little more, so little that no run can be paid with it; at most one is under way."""
        before = faultlib.cap(self.camp)
        if self.asked and before == self.asked[0] and self.asked[1].poll() is not None:
            self.finish_raise()
        if self.asked or before is None:
            return
        self.asked = before + 100, subprocess.Popen([str(w) for w in self._raise(before + 100)], env=self.env, stdin=subprocess.DEVNULL,
                                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def finish_raise(self, ended=lambda: False):
        """Says it again until the journal has it; or until all has `ended`, when it may be there or not."""
        if not self.asked:
            return
        (to, command), self.asked = self.asked, None
        command.wait(LONG)

        def there():
            if faultlib.cap(self.camp) == to or ended():
                return True
            subprocess.run([str(w) for w in self._raise(to)], env=self.env, stdin=subprocess.DEVNULL, capture_output=True)
            return False
        wait_for(there, "a raise is in force", self.said)
        if faultlib.cap(self.camp) == to:
            self.raised.append(to)

    def raise_while(self, disturb=lambda: None):
        self.begin_raise()
        try:
            return disturb()
        finally:
            self.finish_raise()

    # ---- what it came to

    def rows(self, query):
        return faultlib.rows(self.camp, query)

    def count(self, what):
        return self.rows(f"SELECT count(*) n FROM {what}")[0]["n"]

    def reports(self):
        return {which: report for which, (report, _) in faultlib.reports(self.camp).items()}

    def summary(self):
        return faultlib.summary(self.camp)

    def plan(self):
        return faultlib.plan(self.camp)

    def books(self, redis=None):
        """What is wrong with its money or what the auditors see."""
        return faultlib.money_problems(self.camp) + self.raise_problems() + faultlib.auditors(self.programs, self.camp, redis)

    def raise_problems(self):
        """Each raise that was asked for is in force, once."""
        found = faultlib.raises(self.camp)
        return [] if found == self.raised else [f"global was raised to {self.raised}, in the journal to {found}"]

    def differs(self, undisturbed):
        own = self.summary()
        return [f"run {run} came to {own.get(run)}, undisturbed to {undisturbed.get(run)}"
                for run in sorted(own.keys() | undisturbed.keys()) if own.get(run) != undisturbed.get(run)]

    def left(self, *roots):
        """What is left of it and of its workers on the machine."""
        found = faultlib.leftovers(self.folder, [self.camp / ".proctor/workers", *self.roots.values(), *roots])
        return found + [f"temporary file {p.name}" for p in self.temporary.iterdir()]
