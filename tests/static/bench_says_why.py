#!/usr/bin/env python3
"""bench_says_why.py SCRIPTS: a figure that scripts/bench could not measure is a line of its table, with the reason.
Figures of a script are measured when they are asked for.  What makes very many files has a file system of its own where that of the temporary files would take long over it, or it is
said why not."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("bench", str(pathlib.Path(sys.argv[1]) / "bench"))
bench = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench", loader))
loader.exec_module(bench)

with tempfile.TemporaryDirectory() as folder:
    bench.BUILD = pathlib.Path(folder)
    bench.benchmarks = lambda: {"good": {"a.one"}, "absent": {"b.two", "b.three"}, "broken": {"c.four"}}
    bench.build = lambda targets: None
    for name, text in (("good", "echo figure a.one 3 s"), ("absent", "echo not measured: no engine answers"),
                       ("broken", "echo it broke >&2; exit 3")):
        (bench.BUILD / name).write_text("#!/bin/sh\n" + text + "\n")
        (bench.BUILD / name).chmod(0o755)

    def said(*names):
        sys.argv = ["bench", "--runs", "1", *names]
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = bench.main()
        said.errors = errors.getvalue()
        return code, [line.split(None, 5) for line in out.getvalue().splitlines()]

    code, lines = said()
    assert code == 1, "a benchmark that broke is a failure"
    assert ["b.two", "-", "-", "-", "0", "not measured: no engine answers"] in lines, lines
    assert ["c.four", "-", "-", "-", "0", "not measured: exit code 3: it broke"] in lines, lines
    assert [line[0] for line in lines] == ["figure", "a.one", "b.three", "b.two", "c.four"], lines
    code, lines = said("b.two")
    assert code == 0 and len(lines) == 2, (code, lines)

    bench.SCRIPT_FOLDER = bench.BUILD
    for script in ("build_bench", "test_bench"):
        (bench.BUILD / script).write_text(f"#!/bin/sh\necho figure {script.split('_')[0]}.${{1:+full_}}min 2.5 min\n")
        (bench.BUILD / script).chmod(0o755)
    bench.SCRIPTS = {"build_bench": {"build.min"}, "test_bench": {"test.min"}, "test_bench --full": {"test.full_min"}}
    bench.TOP = bench.BUILD
    assert said("build") == (0, [["figure", "median", "min", "max", "runs", "unit"], ["build.min", "2.500", "2.500", "2.500", "1", "min"]])
    assert [line[0] for line in said("test")[1]] == ["figure", "test.min"]
    assert [line[0] for line in said("test", "a", "--full")[1]] == ["figure", "a.one", "test.full_min", "test.min"]
    assert "build.min" not in str(said()[1])

    bench.MANY_FILES = {"good"}
    bench.forgets_inodes_slowly = lambda folder: True
    (bench.BUILD / "good").write_text('#!/bin/sh\ntest -d "${TMPDIR:-/nowhere}/lost+found" && echo figure a.one 4 s || echo figure a.one 3 s\n')
    able = bench.why_no_disk(tempfile.gettempdir())
    code, lines = said("a.one")
    assert code == 0 and lines[1][1] == ("3" if able else "4"), (able, code, lines, said.errors)
    assert (able or "has a disk of its own") in said.errors, said.errors
    bench.why_no_disk = lambda folder: "only root may mount one"
    code, lines = said("a.one")
    assert lines[1][1] == "3" and "good takes very long (only root may mount one)" in said.errors, said.errors
    loops = pathlib.Path("/proc/self/mountinfo").read_text()
    assert "bench-disk-" not in loops, loops
