import sys

sys.path.insert(0, ".")
from slug import slug

TESTS = [
    ("letters are small", slug("Index") == "index"),
    ("one blank is one hyphen", slug("Two Words") == "two-words"),
    ("two blanks are one hyphen", slug("Two  Words") == "two-words"),
]

print(f"1..{len(TESTS)}")
for number, (name, good) in enumerate(TESTS, 1):
    print("ok" if good else "not ok", number, "-", name)
