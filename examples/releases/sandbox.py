"""A small bubblewrap sandbox with the layout of Proctor's own (docs/worker.md), for runs outside of Proctor.

Used to find out which tests pass before a contract is written: same paths, same user, no network.
"""
import os
import pathlib
import shutil
import threading

from shell import Missing, run_to_file

HOME, CONTRACT, RESULTS, WORKSPACE = "/proctor/home", "/proctor/contract", "/proctor/results", "/workspace"
_ETC = {"passwd": "root:x:0:0:root:/root:/bin/sh\nproctor:x:1000:1000::/home/proctor:/bin/sh\n"
                  "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        "group": "root:x:0:\nproctor:x:1000:\nnogroup:x:65534:\n",
        "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n", "hostname": "sandbox\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n", "resolv.conf": ""}
_ETC_COPIES = ("ld.so.cache", "ld.so.conf", "localtime", "alternatives", "mime.types")
_one_at_a_time = threading.Lock()


def _etc(work):
    folder = work / "etc"
    with _one_at_a_time:
        if (folder / "complete").exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, text in _ETC.items():
            (folder / name).write_text(text)
        for name in _ETC_COPIES:
            source = pathlib.Path("/etc") / name
            if source.is_dir():
                shutil.copytree(source, folder / name, symlinks=True)
            elif source.exists():
                shutil.copyfile(source, folder / name, follow_symlinks=False)
        (folder / "complete").write_text("")
    return folder


def environment(runtime):
    path = "".join(f"{at}/bin:" for _, at in runtime.toolchains)
    return {"PATH": path + "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": HOME,
            "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "1",
            "PYTHONDONTWRITEBYTECODE": "1", "PROCTOR_SEED": "1", "PROCTOR_RESULTS": RESULTS,
            "PROCTOR_CONTRACT": CONTRACT, **runtime.variables}


def execute(runtime, command, mounts, work, log, timeout):
    """The exit code, or None after `timeout` seconds.  `mounts`: (folder, place, writable)."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise Missing("bwrap is not on this machine")
    argv = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox",
            "--uid", "1000", "--gid", "1000"]
    for name, value in environment(runtime).items():
        argv += ["--setenv", name, value]
    argv += ["--ro-bind", "/usr", "/usr"]
    for folder in ("/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"):
        if os.path.islink(folder):
            argv += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            argv += ["--ro-bind", folder, folder]
    argv += ["--ro-bind", _etc(work), "/etc", "--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp",
             "--tmpfs", "/run", "--tmpfs", "/home", "--dir", "/home/proctor", "--symlink", "/tmp", "/var/tmp"]
    # The workspace first: what is shown below it must land on it.
    for folder, place, writable in sorted(mounts, key=lambda m: m[1] != WORKSPACE):
        argv += ["--bind" if writable else "--ro-bind", folder, place]
    for folder, place in runtime.toolchains:
        argv += ["--ro-bind", folder, place]
    argv += ["--remount-ro", "/", "--chdir", WORKSPACE, "--", "/bin/sh", "-c", command]
    return run_to_file(argv, log, timeout=timeout)
