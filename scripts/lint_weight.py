"""The brake of scripts/lint: what is measured of the whole product, and the two tables that hold the limits.

scripts/lint-ratchet has a row for each number that is above its usual limit, scripts/lint-budget the lines of code of
each room.  A number above its limit is a finding.  scripts/lint --ratchet lowers limits to what is measured and drops
rows that are no longer needed; it raises none.  Raising is an edit by hand, seen in the diff.
"""
import collections
import pathlib
import re
import subprocess

PRODUCT = ("common/", "coordinator/", "worker/")
RATCHET, BUDGET = "scripts/lint-ratchet", "scripts/lint-budget"
SHORT = 60
WORDS = "Of|What|Who|Whoever|Whom|Likewise|Nothing|Nobody"
# Rule: the limit where no row says another, what is counted, what to do.
RULES = {
    "lines": (0, "lines in one file", "split it by what it decides, not by length"),
    "functions": (30, "functions in one class", "give a part of its state a class of its own"),
    "files": (1, ".cc files for one class", "a class is defined in one file"),
    "small-files": (0, f"files of {SHORT} lines or less", "put it where it is used"),
    "one-user": (0, "headers that one file includes", "put it where it is used"),
    "units": (0, "units that include this by any way", "forward-declare it, include it in the .cc"),
    "to_string": (0, "times std::to_string(", "fmt::format"),
    "named": (0, "lines that read or write one named member by hand", "describe the structure once (common/base/fields.h)"),
    "switches": (0, "switches from an enumeration to text", "words() beside the enumeration (common/base/words.h)"),
    "sentences": (0, "lines that parse a sentence which the product wrote", "carry the fact as a member; coordinator/journal/legacy_text reads old ones"),
    "comments": (0, "comments that begin with " + WORDS.replace("|", ", "), "subject, verb, object"),
    "uncalled": (0, "functions that no file of the product calls", "delete them and their tests, or a row here says who will call them"),
    "code": (0, "lines of code", "delete as much, or raise the budget here and say why in the body of the same commit"),
}
LINES = {".cc": 1000, ".h": 400}
TOTAL = ("code", "total")  # the row of the budget that holds the sum of the others
SLACK = 20  # lines that a room's budget may be above what is measured
PLACES = 3

COMMENT = re.compile(rf"(?<![:\"'\w/])(?://[/!<]*[ \t]*|/\*[\s*!<]*)(?:{WORDS})\b", re.I)
# Commits before this day have long titles, and history is not rewritten.
TITLES_SINCE, TITLES, TITLE_MAX = 1795824000, 50, 72  # 2026-11-28, by the committer's clock, for an author's date is what he says
TITLE = re.compile(rf"(?:[^:]*: )?(?:{WORDS})\b", re.I)

INCLUDE = re.compile(r"^[ \t]*#include [\"<]([^\">]+)[\">]", re.M)
THIRD = {"json": re.compile(r"nlohmann/"),
         "asio": re.compile("boost/asio"), "CLI11": re.compile("CLI/")}

NAME = r'"[a-z][a-z0-9_]*"'
NAMED = re.compile("|".join((
    rf"\[{NAME}\]", rf"\.(?:at|value|contains|find|emplace|get|has)\({NAME}", rf"(?:[{{,(]|^)\s*\{{{NAME},(?! (?:[\w:]+::)?k[A-Z])",
    rf"\b\w+(?:\.|->)(?:text|count|flag|duration|size|usd|choice|texts|table|each|optional\w*|boolean|integer|digest\w*|u64|u32|name|money|binary|"
    rf"list|nested|enumerator|object|array|missing|refuse|wrong|path|number|real|counts|attempts|names|digests|wall_ms|micros|find|add|put)"
    rf"\(\s*(?:\w+,\s*)?{NAME}",
    rf"\b(?:read_\w+|take_\w+|field|member|get_\w+|text|count|number|flag)\(\w+(?:\.\w+)*, {NAME}")))
SWITCH = re.compile(r"switch \([^)]*\) \{(.*?)\n\s*\}\n", re.S)
TEXT_CASE = re.compile(r'case [\w:]+:\s*(?://[^\n]*)?\s*return "')
SENTENCE = re.compile(r"\b(?:rationale|cause|reason|faults?|why|detail)(?:\(\))?\.(?:starts_with|find|substr|compare|ends_with)\((?!'|\"\{)")
LEGACY = "coordinator/journal/legacy_text.cc"  # reads what journals of older schemas say in words

CLASS = re.compile(r"\b(?:class|struct|union)\s+((?:\w+::)*\w+)(?:<[^;{}]*>)?(?:\s+final)?\s*(?::[^;{]*)?\{")
# clang-format indents all but namespaces' own declarations, so these begin in the first column.
MEMBER = re.compile(r"^(?![#\s}])(?:<[^;{}]*?>|\([^\n;{}()]*\)|[^\n;{}()=<>])*?\b((?:\w+::)+)(?:~?\w+|operator\W{1,3}|operator [\w:]+)\s*\(", re.M)
FREE = re.compile(r"^(?![#\s}])[^\n;{}()=]*?(?<![\w:])(\w+)\(", re.M)
CALL = re.compile(r"(?<![\w.])(?<!->)([A-Za-z_]\w*)(?=\s*(?:[(<,);}]|:(?!:)))")
IN_CLASS = re.compile(r"\s*[^\s,(=][^(=]*(?:\boperator\W+)?\(")
NO_FUNCTION = re.compile(r"\s*(?:using|typedef|class|struct|enum|static_assert|friend|extern\s+template|template\s*class)\b|.*\boperator\b|[^(]*=", re.S)
# Found by argument, in templates of others.
BY_ARGUMENT = ("fields", "words", "to_json", "from_json", "swap", "begin", "end", "hash_value", "tag_invoke")


def usual(rule, name):
    return LINES.get(pathlib.PurePath(name).suffix, 0) if rule == "lines" else RULES[rule][0]


def room_of(path):
    return "/".join(path.split("/")[:2])


def heads(code):
    """What stands before each `{` and `;` outside parentheses, and in what: class names, "" for a namespace, "{" for a body."""
    code = re.sub(r"^[ \t]*#.*?(?<!\\)$", "", code, flags=re.M | re.S)
    code = re.sub("'[(){};]'", "' '", code)
    begin, inside, parentheses = 0, [], 0
    for match in re.finditer(r"[(){};]", code):
        sign = match.group(0)
        if sign in "()" or parentheses:
            parentheses += (sign == "(") - (sign == ")")
            continue
        head = code[begin:match.start()]
        begin = match.end()
        if sign == "}":
            inside = inside[:-1]
            continue
        while (shorter := re.sub(r"<[^<>]*>", "", head)) != head:
            head = shorter
        yield head, inside, sign
        if sign == "{":
            named = not re.search(r"\benum\b", head) and CLASS.search(head + "{")
            inside = [*inside, named.group(1) if named else "" if re.search(r"\bnamespace\b|\bextern \"", head) else "{"]


def declared(code):
    """The names of functions that a header declares in a namespace, outside classes and bodies."""
    for head, inside, _ in heads(code):
        if not any(inside) and not NO_FUNCTION.match(head) and (name := re.search(r"(?<![\w:])(\w+)\s*\(", head)):
            yield name.group(1)


def in_class(code):
    """The class of each function that has its body in it: of a `{` whose head in a class has a `(` that no `=` precedes, but
    is neither a class nor the next of a constructor's members.  What is in a body or in parentheses is of no class."""
    for head, inside, sign in heads(code):
        name = "::".join(inside).rpartition("{")[2].strip(":")
        if sign == "{" and name and IN_CLASS.match(head) and not CLASS.search(head + "{"):
            yield name


def classes(product):
    """Of each class: the files of its functions."""
    in_headers = collections.defaultdict(set)
    for path, (_, code) in product.items():
        if path.endswith(".h"):
            in_headers[room_of(path)].update(CLASS.findall(code))
    found = collections.defaultdict(list)
    for path, (_, code) in product.items():
        own = set(CLASS.findall(code)) if path.endswith(".cc") else ()
        for name in [*(scope[:-2] for scope in MEMBER.findall(code)), *in_class(code)]:
            first = name.split("::")[0]
            if first in own:
                found[f"{path}:{name}"].append(path)
            elif first in in_headers[room_of(path)]:
                found[f"{room_of(path)}:{name}"].append(path)
            elif homes := sorted(room for room, names in in_headers.items() if first in names):
                found[f"{homes[0]}:{name}"].append(path)  # of another room
    return found


def reached(product, includes):
    """Of each file: which of THIRD it includes, by any way."""
    known = {}

    def look(path):
        if path not in known:
            known[path] = set()
            for name in includes.get(path, ()):
                known[path] |= {third for third, pattern in THIRD.items() if pattern.match(name)} | look(name)
        return known[path]

    return {path: look(path) for path in product}


def uncalled(product):
    homes, calls = {}, collections.defaultdict(int)
    for path, (_, code) in product.items():
        # Declarations and heads of definitions are no calls, and what is declared in a class is indented.
        calls_here = collections.Counter(CALL.findall(code))
        calls_here.subtract(FREE.findall(code))
        if path.endswith(".h"):
            for name in declared(code):
                homes.setdefault(name, path)
        for name, count in calls_here.items():
            calls[name] += max(count, 0)
    return [(path, name) for name, path in homes.items() if calls[name] == 0 and name not in BY_ARGUMENT]


def measure(sources):
    """sources: a path, what it holds, and that without comments and strings.  Returns (rule, name): (number, places)."""
    product = {path: held for path, held in sources.items() if path.startswith(PRODUCT)}
    out = {}

    def put(rule, name, places):
        out[rule, name] = (len(places), places)

    for path, (text, _) in sources.items():
        out["lines", path] = (text.count("\n"), [path])
    for name, places in classes(product).items():
        put("functions", name, places)
        put("files", name, sorted({path for path in places if path.endswith(".cc")}))
    put("small-files", "product", [path for path, (text, _) in product.items() if text.count("\n") <= SHORT])
    includes = {path: INCLUDE.findall(text) for path, (text, _) in product.items()}
    users = collections.Counter(name for path, names in includes.items() for name in names if name != path[:-3] + ".h")
    put("one-user", "product", [path for path in product if users[path] == 1])
    thirds = reached(product, includes)
    for third in THIRD:
        put("units", third, [path for path in product if path.endswith(".cc") and third in thirds[path]])
    put("to_string", "product", [path for path, (_, code) in product.items() for _ in range(code.count("std::to_string("))])
    lines = [(path, line) for path, (text, _) in product.items() for line in text.splitlines() if not line.lstrip().startswith("//")]
    put("named", "product", [path for path, line in lines if NAMED.search(line)])
    put("switches", "product", [path for path, (text, _) in product.items() for match in SWITCH.finditer(text)
                                if len(TEXT_CASE.findall(match.group(1))) > 1])
    put("sentences", "product", [path for path, line in lines if path != LEGACY and SENTENCE.search(line)])
    put("comments", "all", [f"{path}:{line}" for path, (text, _) in sources.items() for line in begun(text)])
    lacking = collections.defaultdict(list)
    for path, name in uncalled(product):
        lacking[path].append(f"{path} {name}")
    for path, places in lacking.items():
        put("uncalled", path, places)
    rooms = collections.Counter()
    for path, (_, code) in product.items():
        rooms[room_of(path)] += sum(1 for line in code.splitlines() if line.strip())
    for room, lines in rooms.items():
        out["code", room] = (lines, [])
    return out


def begun(text):
    """The lines on which a comment begins with one of WORDS; a comment of several lines has one beginning."""
    for match in COMMENT.finditer(text):
        line = text.rfind("\n", 0, match.start()) + 1
        before = text[line:match.start()]
        above = text[text.rfind("\n", 0, max(line - 1, 0)) + 1:line]
        if "//" not in before if before.strip() or match.group(0).startswith("/*") else not above.startswith("//", len(before)):
            yield text.count("\n", 0, line) + 1


class Table:
    """The limits.  A row is `RULE NAME NUMBER [WHY]`, in the budget `ROOM NUMBER`; # begins a comment."""

    ROW = {RATCHET: re.compile(r"(\S+) (\S+) +(\d+)( .*)?$"), BUDGET: re.compile(r"()(\S+) +(\d+)$")}

    def __init__(self, top):
        self.top, self.rows, self.wrong = top, {}, []
        for file in self.ROW:
            for number, line in enumerate(self.lines(file), 1):
                key = self.key(file, line)
                if key in self.rows:
                    self.wrong.append((file, number, "table", "a second row of this name"))
                elif key:
                    self.rows[key] = (file, number, int(self.ROW[file].match(line).group(3)))
                elif line.strip() and not line.startswith("#"):
                    self.wrong.append((file, number, "table", "a row is RULE NAME NUMBER [WHY], in the budget ROOM NUMBER"))

    def lines(self, file):
        path = self.top / file
        return path.read_text().splitlines() if path.is_file() else []

    def key(self, file, line):
        row = self.ROW[file].match(line)
        rule = row and (row.group(1) or "code")
        return (rule, row.group(2)) if rule in RULES else None

    def limit(self, rule, name):
        file = BUDGET if rule == "code" else RATCHET
        return self.rows.get((rule, name), (file, 1, usual(rule, name)))

    def check(self, measured):
        """Findings, each (file, line, rule, what to do); and whether a limit is above what is measured."""
        budgets = {key: limit for key, (_, _, limit) in self.rows.items() if key[0] == "code" and key != TOTAL}
        out = list(self.wrong)
        for key, limit in {**budgets, TOTAL: self.limit(*TOTAL)[2]}.items():
            due = sum(budgets.values()) if key == TOTAL else measured.get(key, (0,))[0] + SLACK
            if limit > due:
                out.append((*self.limit(*key)[:2], "slack", f"{key[1]}: {limit} lines; {due} at most: scripts/lint --ratchet lowers it"))
        for (rule, name), (number, places) in sorted({**measured, TOTAL: (sum(budgets.values()), [])}.items()):
            file, line, limit = self.limit(rule, name)
            if number > limit:
                _, unit, advice = RULES[rule]
                shown = ", ".join(sorted(dict.fromkeys(places), key=self.age)[:PLACES])
                out.append((file, line, rule, f"{name}: {number} {unit}; {limit} at most: {advice}" + (f" (the newest: {shown})" if shown else "")))
        return out, any(self.lowered(key, measured) < limit for key, (_, _, limit) in self.rows.items())

    def age(self, place):
        """The files edited last come first."""
        path = self.top / re.split(r"[: ]", place)[0]
        return -path.stat().st_mtime if path.is_file() else 0

    def lowered(self, key, measured):
        limit = self.rows[key][2]
        if key == TOTAL:
            return min(limit, sum(self.lowered(other, measured) for other in self.rows if other[0] == "code" and other != TOTAL))
        return min(limit, max(measured.get(key, (0,))[0], usual(*key)))

    def lower(self, measured):
        """Writes lower limits; a row that says no more than what is usual goes.  Returns how many changed."""
        changed = 0
        for file in self.ROW:
            kept, before = [], changed
            for line in self.lines(file):
                key = self.key(file, line)
                if key is not None:
                    row, new = self.ROW[file].match(line), self.lowered(key, measured)
                    changed += new < int(row.group(3))
                    if new <= usual(*key):
                        continue
                    line = f"{line[:row.start(3)]}{new}{line[row.end(3):]}" if new < int(row.group(3)) else line
                kept.append(line)
            if changed > before:
                (self.top / file).write_text("\n".join(kept) + "\n")
        return changed


def titles(top):
    """What is wrong with the titles of the last commits, as (commit, line, rule, text).  Without a history: nothing."""
    done = subprocess.run(["git", "log", f"-{TITLES}", "--no-merges", "--format=%ct %h %s"], cwd=top, capture_output=True, text=True)
    for line in done.stdout.splitlines() if done.returncode == 0 else ():
        when, commit, title = (line + " ").split(" ", 2)
        title = title.strip()
        if int(when) < TITLES_SINCE:
            continue
        if len(title) > TITLE_MAX:
            yield commit, 1, "title", f"{len(title)} characters; {TITLE_MAX} at most: the reason belongs in the body ({title})"
        if match := TITLE.match(title):
            yield commit, 1, "title", f"`{match.group(0)}...`: a title names what changed: subject, verb, object"
