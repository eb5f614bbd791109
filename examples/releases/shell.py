"""Running programs, and the two ways in which a task can end early."""
import os
import signal
import subprocess


class Failed(Exception):
    """The task is wrong or something broke: a FAIL line."""


class Missing(Exception):
    """This machine lacks a toolchain: a SKIP line that names it."""


def tail(text, limit=600):
    text = " ".join(text.split())
    return text if len(text) <= limit else "... " + text[-limit:]


def run(argv, cwd=None, env=None, timeout=900, check=True):
    """The output of a program.  With `check`, Failed says what it wrote when its exit code is not 0."""
    merged = {**os.environ, **(env or {})}
    try:
        done = subprocess.run([str(a) for a in argv], cwd=cwd, env=merged, timeout=timeout, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    except FileNotFoundError:
        raise Missing(f"{argv[0]} is not on this machine") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"{argv[0]} {argv[1]}: longer than {timeout} s") from None
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(map(str, argv[:3]))}: exit code {done.returncode}: {tail(done.stderr or done.stdout)}")
    return done


def run_to_file(argv, log, cwd=None, timeout=900):
    """The exit code, or None after `timeout`.  Output goes to a file: a child left behind cannot block us."""
    with open(log, "wb") as out:
        child = subprocess.Popen([str(a) for a in argv], cwd=cwd, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return child.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)  # only the group that we started
                child.wait()


def last_line(log, limit=300):
    with open(log, errors="replace") as lines:
        kept = [line.strip() for line in lines if line.strip()]
    return tail(kept[-1], limit) if kept else "no output"
