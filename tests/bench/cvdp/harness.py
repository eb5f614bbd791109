"""harness.py PROCTOR SOURCE: harnesses by Proctor beside docker compose, in one run on two cores.

Prints `figure cvdp.harness_overhead` (one problem whose harness is `true`: what a run of it costs among many, over one
`docker compose run`) and `figure cvdp.golden64_speedup` (64 copies of the runnable examples, golden: problems per
minute over sequential `docker compose run` of the same).  Needs a Docker Engine, docker compose or docker-compose, the
image of ops/images/cvdp-sim and, for Proctor's side, root and runc (else the Engine API is measured, and that is said).
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PROCTOR, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
SIM = "proctor-cvdp-sim"
SOCKET = os.environ.get("PROCTOR_DOCKER_SOCKET", "/var/run/docker.sock")
MANY, PASSES = 40, 6


def not_measured(why):
    print(f"not measured: {why}")
    sys.exit(0)


def call(words, **more):
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)


def compose_words():
    for words in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(words[0]) and call([*words, "version"]).returncode == 0:
            return words
    not_measured("there is neither docker compose nor docker-compose")


def new_file(text):
    lines = text.splitlines()
    return f"@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines)


def examples():
    """The two runnable examples of the benchmark, the second with a solution of ours; else a problem of our own."""
    ours = SOURCE / "tests/integration/cvdp/data"
    shared = pathlib.Path(os.environ.get("PROCTOR_CVDP_DATA", SOURCE.parent / "shared/data/cvdp")) / "datasets"
    first = shared / "cvdp_v1.1.0_example_nonagentic_code_generation_no_commercial_with_solutions.jsonl"
    second = shared / "cvdp_v1.1.0_example_agentic_code_generation_no_commercial.jsonl"
    if not first.exists():
        print("the benchmark's examples are not here: a problem of our own instead")
        compose = ("services:\n  direct:\n    image: __OSS_SIM_IMAGE__\n    env_file: ./src/.env\n"
                   "    volumes:\n      - ./src/:/src/:ro\n    command: pytest /src/test_runner.py\n")
        return [{"id": "cvdp_agentic_toggle_0001", "categories": ["cid003", "easy"], "prompt": "p", "context": {},
                 "patch": {"rtl/toggle.sv": new_file((ours / "toggle.sv").read_text())},
                 "harness": {"docker-compose.yml": compose,
                             "src/.env": "SIM = icarus\nPYTHONPATH = /src\nVERILOG_SOURCES = /code/rtl/toggle.sv\n",
                             "src/test_toggle.py": (ours / "test_toggle.py").read_text(),
                             "src/test_runner.py": (ours / "test_runner.py").read_text()}}] * 2
    arbiter = json.loads(second.read_text())
    arbiter["patch"]["rtl/fixed_priority_arbiter.sv"] = new_file((ours / "fixed_priority_arbiter.sv").read_text())
    return [json.loads(first.read_text()), arbiter]


def copies(problems, count):
    out = []
    for i in range(count):
        problem = dict(problems[i % len(problems)])
        kind = problem["id"].split("_")[1]
        problem["id"] = f"cvdp_{kind}_copy{i:03d}_{i + 1:04d}"
        out.append(problem)
    return out


def proctor(work, name, problems, engine, slots):
    file, prefix = work / f"{name}.jsonl", work / name
    if not file.exists():
        file.write_text("".join(json.dumps(p) + "\n" for p in problems))
    begun = time.monotonic()
    done = call([PROCTOR, "cvdp", "run", str(file), "--golden", "-p", str(prefix), "--image-sim", SIM, "--engine", engine,
                 "--workers", "1", "-t", str(slots)])
    wall = time.monotonic() - begun
    if done.returncode != 0 or f"{len(problems)} of {len(problems)} problems passed" not in done.stdout:
        sys.exit(f"proctor cvdp run: {done.stdout[-1500:]} {done.stderr[-1500:]}")
    return wall, prefix


def compose_run(words, prefix, problem, number):
    """Upstream's command line on a folder that Proctor has prepared; its wall time alone."""
    repository, issue = problem["id"].rsplit("_", 1)
    folder = prefix / repository / "harness" / str(int(issue))
    text = json.dumps(problem)
    service = "direct" if '"direct"' in text or "direct:" in text else None
    compose = folder / "bench-compose.yml"
    harness = problem["harness"].get("files", problem["harness"])
    compose.write_text(harness["docker-compose.yml"].replace("__OSS_SIM_IMAGE__", SIM))
    if service is None:
        sys.exit("the example's service has another name")
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "DOCKER_HOST": "unix://" + SOCKET}
    project = [*words, "-f", str(compose), "-p", f"proctor-bench-{os.getpid()}-{number}"]
    mounts = [w for d in ("docs", "rundir", "rtl", "verif", "src") for w in ("-v", f"{folder}/{d}:/code/{d}")]
    begun = time.monotonic()
    done = call([*project, "run", "--rm", "-T", "--user", f"{os.getuid()}:{os.getgid()}", "-e", "HOME=/code/rundir", *mounts,
                 "-w", "/code/rundir", service], env=environment, cwd=folder)
    wall = time.monotonic() - begun
    call([*project, "down", "-v", "--timeout", "0", "--rmi", "local"], env=environment, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"docker compose run: {done.stdout[-1500:]} {done.stderr[-1500:]}")
    return wall


def overhead(work, words, engine):
    problem = {"id": "cvdp_agentic_true_0001", "categories": ["cid003", "easy"], "prompt": "p", "context": {"rtl/a.sv": "x\n"},
               "patch": {"rtl/a.sv": "@@ -1 +1 @@\n-x\n+y"},
               "harness": {"docker-compose.yml": "services:\n  direct:\n    image: __OSS_SIM_IMAGE__\n    command: 'true'\n"}}
    one, _ = proctor(work, "one", copies([problem], 1), engine, 1)
    many, prefix = proctor(work, "many", copies([problem], MANY + 1), engine, 1)
    each = (many - one) / MANY
    walls = [compose_run(words, prefix, p, i) for i, p in enumerate(copies([problem], PASSES))]
    print(f"one harness of `true` by {engine}: {each * 1000:.0f} ms; one docker compose run: "
          f"{statistics.median(walls) * 1000:.0f} ms")
    print(f"figure cvdp.harness_overhead {each / statistics.median(walls):.4f} ratio")


def speedup(work, words, engine):
    problems = copies(examples(), 64)
    wall, prefix = proctor(work, "golden64", problems, engine, 2)
    walls = [compose_run(words, prefix, p, i) for i, p in enumerate(problems[:PASSES])]
    ours, theirs = 64 / wall * 60, 60 / statistics.mean(walls)
    print(f"64 golden problems by {engine}, two at a time: {ours:.0f} a minute; docker compose run, one after another: "
          f"{theirs:.1f} a minute")
    print(f"figure cvdp.golden64_speedup {ours / theirs:.2f} x")


def main():
    words = compose_words()
    images = call([PROCTOR, "images", "build", SIM, "--by", str(SOURCE / "ops/images/cvdp-sim/build")])
    if images.returncode != 0:
        not_measured("the simulator image cannot be had: " + images.stderr.strip()[-300:])
    with tempfile.TemporaryDirectory(prefix="proctor-cvdp-bench") as folder:
        work, engine = pathlib.Path(folder), "api"
        if os.geteuid() == 0 and shutil.which("runc"):
            cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path(os.environ.get("HOME", "/tmp")) / ".cache"))
            os.environ["PROCTOR_IMAGES"] = str(cache / "proctor/test-images")
            archive = call([str(SOURCE / "ops/images/cvdp-sim/build"), "--archive"]).stdout.strip()
            there = SIM + ":latest" in call([PROCTOR, "images", "list"]).stdout
            if there or call([PROCTOR, "images", "import", archive]).returncode == 0:
                engine = "oci"
        if engine == "api":
            print("not by OCI: that needs root, runc and the image in a store")
        overhead(work, words, engine)
        speedup(work, words, engine)


main()
