"""Acceptance test of py-csvsum; the agent never sees it."""
import pathlib
import subprocess
import sys
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "csvsum"


def total(*amounts):
    given = "n\n" + "".join(f'"{amount}"\n' for amount in amounts)
    done = subprocess.run([sys.executable, PROGRAM, "n"], input=given, capture_output=True, text=True,
                          timeout=20)
    return done.stdout.strip() or done.stderr.strip()


class Thousands(unittest.TestCase):
    def test_one_separator(self):
        self.assertEqual(total("1,234.50", "0.50"), "1235.00")

    def test_several_separators(self):
        self.assertEqual(total("1,000,000", "1"), "1000001")

    def test_with_brackets_and_currency(self):
        self.assertEqual(total("($2,500)"), "-2500")


if __name__ == "__main__":
    unittest.main()
