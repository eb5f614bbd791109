#!/usr/bin/env python3
"""discover_tests.py PROGRAM TESTS OUT: what ctest includes for a test program (proctor_test_program writes the call).

A line of TESTS is one proctor_test: key=value pairs between "|".  Each case of its files becomes a ctest of its own,
chosen by its file and its name, for two files of one program may have cases of the same name.
"""
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


def quoted(word):
    return f"[==[{word}]==]"


def escaped(name):
    """As doctest reads one name in a list of them."""
    return name.replace("\\", "\\\\").replace(",", "\\,")


def settings(test, suite):
    labels = test["labels"].split(",")
    if test["full"] == "TRUE" or suite == "full":
        labels.append("full")
    out = {"LABELS": ";".join(labels), "TIMEOUT": test["timeout"], "WORKING_DIRECTORY": test["folder"],
           "SKIP_REGULAR_EXPRESSION": "MESSAGE: not run:"}
    if test["environment"]:
        out["ENVIRONMENT"] = test["environment"].replace(",", ";")
    return out


def add(name, command, properties):
    pairs = " ".join(f"{key} {quoted(value)}" for key, value in properties.items())
    return f"add_test({quoted(name)} {' '.join(map(quoted, command))})\nset_tests_properties({quoted(name)} PROPERTIES {pairs})\n"


def main():
    program, tests, out = sys.argv[1:]
    listed = subprocess.run([program, "--list-test-cases", "--reporters=xml"], check=True, capture_output=True).stdout
    cases = [case.attrib for case in ElementTree.fromstring(listed).iter("TestCase")]
    for case in cases:
        if not case.get("name"):  # doctest writes none for ""
            sys.exit(f"{program}: {case['filename']}:{case['line']}: a test case needs a name")
    script, claimed = [], set()
    with open(tests, encoding="utf-8") as lines:
        every = [dict(pair.split("=", 1) for pair in line.strip().split("|")) for line in lines if line.strip()]
    for test in every:
        mine = [(case, file) for file in test["files"].split(",") for case in cases
                if ("/" + case["filename"]).endswith("/" + file[1:])]
        if not mine:
            sys.exit(f"{program}: {test['name']} has no test case")
        for case, file in mine:
            claimed.add((case["filename"], case["name"]))
            properties = settings(test, case.get("testsuite"))
            command = [program, "--source-file=" + file, "--test-case=" + escaped(case["name"])]
            serial = {"RUN_SERIAL": "TRUE"} if test["serial"] == "TRUE" else {}
            script.append(add(f"{test['name']}: {case['name']}", command, properties | serial))
            if test["unprivileged"] == "TRUE":
                script.append(add(f"{test['name']} as nobody: {case['name']}", [*command, "--as-user=65534"], properties))
    lost = {(case["filename"], case["name"]) for case in cases} - claimed
    if lost:
        sys.exit(f"{program}: no proctor_test names the file of {sorted(lost)}")
    with open(out, "w", encoding="utf-8") as file:
        file.write("".join(script))


if __name__ == "__main__":
    main()
