"""Runs the command as a user would."""
import pathlib
import subprocess
import sys
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "csvsum"


def csvsum(*arguments, given):
    return subprocess.run([sys.executable, PROGRAM, *arguments], input=given, capture_output=True,
                          text=True, timeout=20)


class Sums(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(csvsum("n", given="n\n1\n2.5\n").stdout, "3.5\n")

    def test_brackets_are_negative(self):
        self.assertEqual(csvsum("n", given="n\n10\n(2.50)\n").stdout, "7.50\n")

    def test_groups(self):
        done = csvsum("n", "--by", "who", given="who,n\nb,1\na,2\nb,3\n")
        self.assertEqual(done.stdout, "a\t2\nb\t4\n")

    def test_currency(self):
        self.assertEqual(csvsum("n", given="n\n$3\n").stdout, "3\n")


class Complaints(unittest.TestCase):
    def test_unknown_column(self):
        done = csvsum("m", given="n\n1\n")
        self.assertEqual((done.returncode, done.stderr), (2, "csvsum: no column 'm'; there are: n\n"))

    def test_not_an_amount(self):
        done = csvsum("n", given="n\n1\nx\n")
        self.assertEqual((done.returncode, done.stderr), (2, "csvsum: line 3: not an amount: 'x'\n"))


if __name__ == "__main__":
    unittest.main()
