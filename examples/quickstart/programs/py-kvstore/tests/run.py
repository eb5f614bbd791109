"""Runs every test here.  With a file name as argument it also writes the results as JUnit XML."""
import pathlib
import sys
import unittest
from xml.sax.saxutils import quoteattr


class Recorder(unittest.TextTestResult):
    """Remembers how each test ended."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ended = {}

    def addSuccess(self, test):
        super().addSuccess(test)
        self.ended[test.id()] = None

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.ended[test.id()] = ("failure", err[1])

    def addError(self, test, err):
        super().addError(test, err)
        self.ended[test.id()] = ("error", err[1])


def junit(ended):
    lines = [f'<testsuite name="unittest" tests="{len(ended)}">']
    for name, problem in sorted(ended.items()):
        group, _, test = name.rpartition(".")
        start = f"  <testcase classname={quoteattr(group)} name={quoteattr(test)}"
        if problem is None:
            lines.append(start + "/>")
        else:
            kind, what = problem
            first_line = (str(what) or type(what).__name__).splitlines()[0]
            lines.append(f"{start}><{kind} message={quoteattr(first_line)}/></testcase>")
    return "\n".join(lines + ["</testsuite>", ""])


def main():
    here = pathlib.Path(__file__).resolve().parent
    suite = unittest.defaultTestLoader.discover(str(here), top_level_dir=str(here.parent))
    result = unittest.TextTestRunner(verbosity=2, resultclass=Recorder).run(suite)
    if len(sys.argv) > 1:
        pathlib.Path(sys.argv[1]).write_text(junit(result.ended), encoding="utf-8")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
