import sys

sys.path.insert(0, ".")
from slug import slug

with open("fixtures/titles.txt", encoding="utf-8") as file:
    titles = [line.rstrip("\n") for line in file]
TESTS = [
    ("titles of the fixture", [slug(title) for title in titles] == ["two-words", "about-this-page"]),
    ("a tab is a blank", slug("Two\tWords") == "two-words"),
]

print(f"1..{len(TESTS)}")
for number, (name, good) in enumerate(TESTS, 1):
    print("ok" if good else "not ok", number, "-", name)
