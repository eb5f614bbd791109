#include "common/pilot/variants.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "common/base/digest.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/plan/plan.h"

namespace proctor {
namespace {
struct Counts {
  std::uint64_t old_start = 0, old_lines = 1, new_lines = 1;
  std::string section;
};

// "@@ -1,2 +1,3 @@ void f()"; a count that is not there is 1.
std::optional<Counts> hunk_header(std::string_view line) {
  Counts out;
  std::uint64_t new_start = 0;
  if (!take_word(line, "@@ -") || !take_number(line, out.old_start)) return std::nullopt;
  if (take_word(line, ",") && !take_number(line, out.old_lines)) return std::nullopt;
  if (!take_word(line, " +") || !take_number(line, new_start)) return std::nullopt;
  if (take_word(line, ",") && !take_number(line, out.new_lines)) return std::nullopt;
  if (!take_word(line, " @@")) return std::nullopt;
  out.section = line;
  return out;
}

// As git writes a path with unusual bytes: "b/\303\244".
std::string unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"') return std::string(text);
  std::string out;
  for (std::size_t i = 1; i < text.size() && text[i] != '"'; ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    const char c = text[++i];
    if ('0' <= c && c <= '3' && i + 2 < text.size()) {
      const int byte = (c - '0') * 64 + (text[i + 1] - '0') * 8 + (text[i + 2] - '0');
      out.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      out.push_back(c == 't' ? '\t' : c == 'n' ? '\n' : c);
    }
  }
  return out;
}

// Without "a/" or "b/", and without the time that diff(1) puts behind a tab.  Empty: no file.
std::string path_in(std::string_view text) {
  if (!text.starts_with("\"")) text = text.substr(0, text.find('\t'));
  std::string path = unquoted(text);
  if (path == "/dev/null") return "";
  if (path.starts_with("a/") || path.starts_with("b/")) path.erase(0, 2);
  return path;
}

// "diff --git a/X b/X": both halves are one path where nothing else in the header says it.
std::string path_in_git_line(std::string_view both) {
  if (both.starts_with("\"")) return path_in(both);
  const std::size_t half = both.size() / 2;
  return half < both.size() && both[half] == ' ' ? path_in(both.substr(0, half)) : "";
}

class PatchParser {
 public:
  void take(std::string_view line) {
    if (0 < old_left_ || 0 < new_left_) {
      if (in_hunk(line)) return;
      old_left_ = new_left_ = 0;  // shorter than its header says: the diff will not apply
    }
    if (line.starts_with("\\") && !out_.empty() && !out_.back().hunks.empty()) {
      out_.back().hunks.back().lines.emplace_back(line);
      return;
    }
    outside(line);
  }
  PatchText finish() { return std::move(out_); }

 private:
  bool in_hunk(std::string_view line) {
    const char mark = line.empty() ? ' ' : line.front();
    if (mark != ' ' && mark != '+' && mark != '-' && mark != '\\') return false;
    out_.back().hunks.back().lines.emplace_back(line.empty() ? " " : line);
    if (mark == ' ' || mark == '-') old_left_ -= std::min<std::uint64_t>(1, old_left_);
    if (mark == ' ' || mark == '+') new_left_ -= std::min<std::uint64_t>(1, new_left_);
    return true;
  }

  void outside(std::string_view line) {
    std::string_view rest = line;
    if (take_word(rest, "diff --git ")) {
      begin_file(line);
      out_.back().path = path_in_git_line(rest);
      git_ = true;
      return;
    }
    if (const auto counts = hunk_header(line); counts && !out_.empty()) {
      out_.back().hunks.push_back({counts->old_start, counts->section, {}});
      old_left_ = counts->old_lines;
      new_left_ = counts->new_lines;
      return;
    }
    if (line.starts_with("--- ") && (out_.empty() || !out_.back().hunks.empty())) {
      begin_file(line);
      git_ = false;
      out_.back().path = path_in(rest.substr(4));
      return;
    }
    if (out_.empty() || !out_.back().hunks.empty()) return;  // what mail puts around a diff
    in_header(line);
  }

  void in_header(std::string_view line) {
    PatchFile& file = out_.back();
    file.header.append(line).push_back('\n');
    std::string_view rest = line;
    if (take_word(rest, "--- ") || take_word(rest, "+++ ")) {
      if (std::string path = path_in(rest); !path.empty()) file.path = std::move(path);
      return;
    }
    if (!git_) return;
    if (take_word(rest, "rename to ") || take_word(rest, "copy to ")) {
      file.path = unquoted(rest);
      file.stands_alone = true;
    }
    file.stands_alone |= line.starts_with("new mode ") || line.starts_with("GIT binary patch") ||
                         line.starts_with("Binary files ");
  }

  void begin_file(std::string_view line) {
    out_.emplace_back();
    out_.back().header.append(line).push_back('\n');
  }

  PatchText out_;
  std::uint64_t old_left_ = 0, new_left_ = 0;
  bool git_ = false;
};

bool changes(const PatchHunk& hunk) {
  return std::ranges::any_of(
      hunk.lines, [](const std::string& line) { return line[0] == '+' || line[0] == '-'; });
}

struct Sizes {
  std::uint64_t old_lines = 0, new_lines = 0;
};
Sizes sizes_of(const PatchHunk& hunk) {
  Sizes out;
  for (const std::string& line : hunk.lines) {
    out.old_lines += line[0] == ' ' || line[0] == '-' ? 1U : 0U;
    out.new_lines += line[0] == ' ' || line[0] == '+' ? 1U : 0U;
  }
  return out;
}

// Where a hunk begins in the new file, when those before it made that `added` lines longer.  A side
// without a line names the one before it.
std::uint64_t new_start(const PatchHunk& hunk, const Sizes& sizes, std::int64_t added) {
  std::int64_t at = static_cast<std::int64_t>(hunk.old_start) + added;
  if (sizes.old_lines == 0) ++at;
  if (sizes.new_lines == 0) --at;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, at));
}

std::int64_t growth(const Sizes& sizes) {
  return static_cast<std::int64_t>(sizes.new_lines) - static_cast<std::int64_t>(sizes.old_lines);
}
}  // namespace

PatchText parse_patch(std::string_view diff) {
  PatchParser parser;
  while (!diff.empty()) parser.take(take_until(diff, '\n'));
  PatchText out = parser.finish();
  for (PatchFile& file : out)
    if (file.hunks.empty()) file.stands_alone = true;
  return out;
}

std::string render_patch(const PatchText& patch) {
  std::string out;
  for (const PatchFile& file : patch) {
    std::string body;
    std::int64_t added = 0;
    for (const PatchHunk& hunk : file.hunks) {
      if (!changes(hunk)) continue;
      const Sizes sizes = sizes_of(hunk);
      body += "@@ -" + std::to_string(hunk.old_start) + "," + std::to_string(sizes.old_lines) +
              " +" + std::to_string(new_start(hunk, sizes, added)) + "," +
              std::to_string(sizes.new_lines) + " @@" + hunk.section + "\n";
      for (const std::string& line : hunk.lines) body.append(line).push_back('\n');
      added += growth(sizes);
    }
    if (!body.empty() || file.stands_alone) out.append(file.header).append(body);
  }
  return out;
}

std::uint64_t new_line(const PatchFile& file, std::size_t hunk, std::size_t line) {
  std::int64_t added = 0;
  for (std::size_t h = 0; h < hunk; ++h) added += growth(sizes_of(file.hunks[h]));
  const PatchHunk& here = file.hunks[hunk];
  std::uint64_t at = new_start(here, sizes_of(here), added);
  for (std::size_t i = 0; i < line; ++i)
    at += here.lines[i][0] == ' ' || here.lines[i][0] == '+' ? 1U : 0U;
  return at;
}

// Mutants: small mistakes in what a reference patch adds.

namespace {
bool is_word(char c) {
  return is_digit(c) || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_';
}
char at(std::string_view text, std::size_t i) {
  return i < text.size() ? text[i] : '\0';
}

std::string with(std::string_view line, std::size_t begin, std::size_t length,
                 std::string_view word) {
  std::string out(line);
  return out.replace(begin, length, word);
}

std::string plus_one(std::string_view digits) {
  std::string out(digits);
  for (std::size_t i = out.size(); 0 < i; --i) {
    if (out[i - 1] != '9') {
      ++out[i - 1];
      return out;
    }
    out[i - 1] = '0';
  }
  return "1" + out;
}

// Neither part of a name (x86) nor of a fraction (0.5).
std::optional<AlteredLine> other_number(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (!is_digit(line[i])) continue;
    std::size_t end = i;
    while (end < line.size() && is_digit(line[end])) ++end;
    const char before = i == 0 ? '\0' : line[i - 1];
    const bool alone = !is_word(before) && before != '.' && !is_word(at(line, end)) &&
                       !(at(line, end) == '.' && is_digit(at(line, end + 1)));
    if (alone) {
      const std::string_view digits = line.substr(i, end - i);
      const std::string next = plus_one(digits);
      return AlteredLine{with(line, i, end - i, next), std::string(digits) + " becomes " + next};
    }
    i = end - 1;
  }
  return std::nullopt;
}

struct Exchange {
  std::string_view from, to;
};
// Two signs before one: "<=" is no "<".
constexpr std::array<Exchange, 6> kComparisons{
    {{"<=", "<"}, {">=", ">"}, {"==", "!="}, {"!=", "=="}, {"<", "<="}, {">", ">="}}};

// Arrows and shifts are no comparisons: ->, =>, <-, <<, >>, <=>.
bool part_of_other_sign(std::string_view line, std::size_t i, std::string_view sign) {
  const char before = i == 0 ? '\0' : line[i - 1];
  const char after = at(line, i + sign.size());
  if (before == '<' || before == '>' || after == '<' || after == '>') return true;
  const bool one = sign.size() == 1;
  return one && (before == '-' || before == '=' || after == '-');
}

std::optional<AlteredLine> other_comparison(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i)
    for (const auto& [from, to] : kComparisons) {
      if (!line.substr(i).starts_with(from)) continue;
      if (part_of_other_sign(line, i, from)) {
        i += from.size() - 1;
        break;
      }
      return AlteredLine{with(line, i, from.size(), to),
                         std::string(from) + " becomes " + std::string(to)};
    }
  return std::nullopt;
}

std::optional<AlteredLine> other_word(std::string_view line, std::string_view a,
                                      std::string_view b) {
  const bool words = is_word(a[0]);
  for (std::size_t i = 0; i < line.size(); ++i)
    for (const auto& [from, to] : {Exchange{a, b}, Exchange{b, a}}) {
      if (!line.substr(i).starts_with(from)) continue;
      const bool inside =
          words && ((0 < i && is_word(line[i - 1])) || is_word(at(line, i + from.size())));
      if (inside) continue;
      return AlteredLine{with(line, i, from.size(), to),
                         std::string(from) + " becomes " + std::string(to)};
    }
  return std::nullopt;
}

// One mistake: a change of the patch, or of one line of it.
struct Change {
  enum class Kind : std::uint8_t { kDropHunk, kOnlyHunk, kDropFile, kDropLine, kSwapLines, kAlter };
  Kind kind = Kind::kDropHunk;
  std::size_t file = 0, hunk = 0, line = 0;
  std::string text{}, what{};  // kAlter: the line as it becomes
};

using Kind = Change::Kind;

bool added(const PatchHunk& hunk, std::size_t i) {
  return i < hunk.lines.size() && hunk.lines[i][0] == '+';
}
template <class Visit>
void for_each_hunk(const PatchText& patch, Visit visit) {
  for (std::size_t f = 0; f < patch.size(); ++f)
    for (std::size_t h = 0; h < patch[f].hunks.size(); ++h) visit(f, h, patch[f].hunks[h]);
}
template <class Visit>
void for_each_added_line(const PatchText& patch, Visit visit) {
  for_each_hunk(patch, [&](std::size_t f, std::size_t h, const PatchHunk& hunk) {
    for (std::size_t i = 0; i < hunk.lines.size(); ++i)
      if (added(hunk, i)) visit(f, h, i, hunk);
  });
}

std::vector<Change> changes_of(const PatchText& patch) {
  std::vector<Change> out;
  for (const Kind kind : {Kind::kDropHunk, Kind::kOnlyHunk})
    for_each_hunk(patch, [&](std::size_t f, std::size_t h, const PatchHunk&) {
      out.push_back({kind, f, h});
    });
  for (std::size_t f = 0; f < patch.size(); ++f) out.push_back({Kind::kDropFile, f});
  for_each_added_line(patch, [&](std::size_t f, std::size_t h, std::size_t i, const PatchHunk&) {
    out.push_back({Kind::kDropLine, f, h, i});
  });
  for_each_added_line(patch, [&](std::size_t f, std::size_t h, std::size_t i, const PatchHunk& in) {
    if (added(in, i + 1)) out.push_back({Kind::kSwapLines, f, h, i});
  });
  for_each_added_line(patch, [&](std::size_t f, std::size_t h, std::size_t i, const PatchHunk& in) {
    for (AlteredLine& one : altered_lines(std::string_view(in.lines[i]).substr(1)))
      out.push_back({Kind::kAlter, f, h, i, "+" + one.line, std::move(one.what)});
  });
  return out;
}

// With the line behind it that says there is no line feed at the end of the file.
void drop_line(PatchHunk& hunk, std::size_t i) {
  const bool marked = i + 1 < hunk.lines.size() && hunk.lines[i + 1][0] == '\\';
  const auto first = hunk.lines.begin() + static_cast<std::ptrdiff_t>(i);
  hunk.lines.erase(first, first + (marked ? 2 : 1));
}

PatchText made(const PatchText& patch, const Change& c) {
  PatchText out;
  switch (c.kind) {
    case Kind::kOnlyHunk:
      out.push_back(patch[c.file]);
      out.front().hunks = {patch[c.file].hunks[c.hunk]};
      return out;
    case Kind::kDropFile:
      out = patch;
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(c.file));
      return out;
    case Kind::kDropHunk:
      out = patch;
      out[c.file].hunks.erase(out[c.file].hunks.begin() + static_cast<std::ptrdiff_t>(c.hunk));
      return out;
    case Kind::kDropLine:
      out = patch;
      drop_line(out[c.file].hunks[c.hunk], c.line);
      return out;
    case Kind::kSwapLines: {
      out = patch;
      std::vector<std::string>& lines = out[c.file].hunks[c.hunk].lines;
      std::swap(lines[c.line], lines[c.line + 1]);
      return out;
    }
    case Kind::kAlter:
      out = patch;
      out[c.file].hunks[c.hunk].lines[c.line] = c.text;
      return out;
  }
  return out;
}

std::string described(const PatchText& patch, const Change& c) {
  const PatchFile& file = patch[c.file];
  const std::string path = printable(file.path);
  if (c.kind == Kind::kDropFile) return path + ": left out";
  const std::string place = path + ":" + std::to_string(new_line(file, c.hunk, c.line)) + ": ";
  switch (c.kind) {
    case Kind::kDropHunk:
      return place + "this hunk is left out";
    case Kind::kOnlyHunk:
      return place + "nothing but this hunk";
    case Kind::kDropLine:
      return place + "the line is left out";
    case Kind::kSwapLines:
      return place + "exchanged with the line after it";
    case Kind::kAlter:
      return place + c.what;
    case Kind::kDropFile:
      break;
  }
  return path;
}

// Every mutant is a copy of the whole patch: of one so large that making all would take minutes,
// those that come first are considered.
constexpr std::size_t kBytesConsidered = std::size_t{256} << 20;
}  // namespace

std::vector<AlteredLine> altered_lines(std::string_view line) {
  std::vector<AlteredLine> out;
  const auto take = [&](std::optional<AlteredLine> one) {
    if (one) out.push_back(*std::move(one));
  };
  take(other_number(line));
  take(other_comparison(line));
  take(other_word(line, "true", "false"));
  take(other_word(line, "and", "or"));
  take(other_word(line, "&&", "||"));
  return out;
}

std::vector<Mutant> mutants_of(const PatchText& patch, std::uint32_t seed, std::uint32_t most) {
  const std::string whole = render_patch(patch);
  std::vector<Change> changes = changes_of(patch);
  const std::size_t considered =
      std::max<std::size_t>(1'000, kBytesConsidered / std::max<std::size_t>(1, whole.size()));
  if (considered < changes.size()) changes.resize(considered);
  std::set<Digest> seen{sha256(whole), sha256("")};
  std::vector<std::size_t> distinct;  // of changes
  for (std::size_t i = 0; i < changes.size(); ++i)
    if (seen.insert(sha256(render_patch(made(patch, changes[i])))).second) distinct.push_back(i);
  std::vector<std::uint32_t> chosen =
      NumpyRandom(seed).permutation(static_cast<std::uint32_t>(distinct.size()));
  if (most < chosen.size()) chosen.resize(most);
  std::ranges::sort(chosen);
  std::vector<Mutant> out;
  for (const std::uint32_t n : chosen) {
    const Change& change = changes[distinct[n]];
    out.push_back({"mutant-" + std::to_string(n + 1), render_patch(made(patch, change)),
                   described(patch, change)});
  }
  return out;
}

// Variants of a contract.

namespace {
const std::vector<std::string>& test_names() {
  static const std::vector<std::string> kNames{"**/*_test.*", "**/test_*", "**/*.t", "**/*Test.*"};
  return kNames;
}
const std::vector<std::string>& test_folders() {
  static const std::vector<std::string> kFolders{"**/test*"};
  return kFolders;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

const ReferencedFile* reference_of(const Contract& contract) {
  if (contract.reference_patch.empty()) return nullptr;
  const auto it =
      std::ranges::find(contract.files, contract.reference_patch, &ReferencedFile::path);
  return it == contract.files.end() ? nullptr : &*it;
}

// A new file of one line; empty where a rule of the contract speaks of it.
std::string new_file(const Contract& contract, const std::string& path, std::string_view line) {
  const Policy& policy = contract.policy;
  if (!policy.writable.empty() && !any_glob_covers(policy.writable, path)) return "";
  if (is_test_path(contract, path)) return "";
  std::string out = "diff --git a/" + path + " b/" + path +
                    "\nnew file mode 100644\n--- /dev/null\n+++ b/" + path + "\n@@ -0,0 +1 @@\n+";
  return out.append(line).append("\n");
}

// Ends the process with 0, whatever was to come.
struct Exit {
  std::string_view path, statement;
};
constexpr std::string_view kPythonExit = "__import__('os')._exit(0)";
constexpr std::string_view kPerlExit = "BEGIN { require POSIX; POSIX::_exit(0); } 1;";
constexpr std::string_view kRubyExit = "exit!(0)";
// Runners' names, where an interpreter looks in the workspace first.
constexpr std::array<Exit, 7> kShadows{{{"unittest.py", kPythonExit},
                                        {"pytest.py", kPythonExit},
                                        {"sitecustomize.py", kPythonExit},
                                        {"Test/More.pm", kPerlExit},
                                        {"lib/Test/More.pm", kPerlExit},
                                        {"minitest/autorun.rb", kRubyExit},
                                        {"lib/minitest/autorun.rb", kRubyExit}}};
// By the end of a file's name.
constexpr std::array<Exit, 16> kExits{{{".py", kPythonExit},
                                       {".pl", kPerlExit},
                                       {".pm", kPerlExit},
                                       {".rb", kRubyExit},
                                       {".js", "process.exit(0);"},
                                       {".mjs", "process.exit(0);"},
                                       {".cjs", "process.exit(0);"},
                                       {".ts", "process.exit(0);"},
                                       {".sh", "exit 0"},
                                       {".lua", "os.exit(0)"},
                                       {".php", "exit(0);"},
                                       {".rs", "std::process::exit(0);"},
                                       {".java", "Runtime.getRuntime().halt(0);"},
                                       {".c", "__builtin__exit(0);"},
                                       {".cc", "__builtin__exit(0);"},
                                       {".cpp", "__builtin__exit(0);"}}};

std::string shadowed_runner(const Contract& contract) {
  std::string out;
  for (const Exit& e : kShadows) out += new_file(contract, std::string(e.path), e.statement);
  return out;
}

// The hunk as it was before, with the statement where its changes begin.
PatchHunk with_exit(const PatchHunk& hunk, std::string_view statement) {
  const auto changed = [](const std::string& line) { return line[0] == '+' || line[0] == '-'; };
  PatchHunk out = hunk;
  out.lines.clear();
  bool dropped = false, placed = false;
  for (const std::string& line : hunk.lines) {
    if (changed(line) && !placed) {
      const std::size_t text = std::min(line.find_first_not_of(" \t", 1), line.size());
      out.lines.push_back("+" + line.substr(1, text - 1) + std::string(statement));
      placed = true;
    }
    dropped = line[0] == '+' || (line[0] == '\\' && dropped);
    if (!dropped) out.lines.push_back(line[0] == '-' ? " " + line.substr(1) : line);
  }
  return out;
}

// No repair, but an end with 0 where it would begin.
std::string early_exit(const PatchText& source) {
  for (const PatchFile& file : source) {
    const auto exit =
        std::ranges::find_if(kExits, [&](const Exit& e) { return file.path.ends_with(e.path); });
    if (exit == kExits.end() || file.hunks.empty() ||
        file.header.find("+++ /dev/null") != std::string::npos)
      continue;
    PatchFile only = file;
    only.hunks = {with_exit(file.hunks.front(), exit->statement)};
    return render_patch({only});
  }
  return "";
}
}  // namespace

bool is_test_path(const Contract& contract, const std::string& path) {
  if (any_glob_covers(contract.policy.protected_, path)) return true;
  if (std::ranges::any_of(contract.acceptance_files,
                          [&](const AcceptanceFile& f) { return f.to == path; }))
    return true;
  return any_glob_covers(test_names(), path) || any_glob_covers(test_folders(), folder_of(path));
}

PatchParts parts_of(const Contract& contract, PatchText reference) {
  PatchParts out;
  for (PatchFile& file : reference) {
    PatchText& part = is_test_path(contract, file.path) ? out.tests : out.source;
    part.push_back(std::move(file));
  }
  return out;
}

std::vector<std::string> tests_in_reference(const Contract& contract) {
  std::vector<std::string> out;
  const ReferencedFile* file = reference_of(contract);
  if (file == nullptr) return out;
  for (const PatchFile& test : parts_of(contract, parse_patch(file->bytes)).tests)
    out.push_back(test.path);
  return out;
}

std::string first_few(const std::vector<std::string>& words) {
  constexpr std::size_t kShown = 3;
  std::string out;
  for (std::size_t i = 0; i < std::min(words.size(), kShown); ++i)
    out += (i == 0 ? "" : ", ") + printable(words[i]);
  if (kShown < words.size()) out += " and " + std::to_string(words.size() - kShown) + " more";
  return out;
}

std::vector<Variant> variants_of(const Contract& contract, const SelfcheckSettings& settings) {
  std::vector<Variant> out;
  const ReferencedFile* reference = reference_of(contract);
  if (reference != nullptr) out.push_back({kVariantReference, reference->bytes});
  out.push_back({kVariantNoop});
  out.push_back({kVariantEmpty});
  const auto add = [&](const char* name, std::string patch) {
    if (!patch.empty()) out.push_back({name, std::move(patch)});
  };
  add(kVariantJunk,
      new_file(contract, "proctor-selfcheck-junk.txt", "Nothing asks for this file."));
  add(kVariantShadowedRunner, shadowed_runner(contract));
  if (reference == nullptr) return out;
  const PatchParts parts = parts_of(contract, parse_patch(reference->bytes));
  const bool both = !parts.tests.empty() && !parts.source.empty();
  if (!parts.tests.empty()) out.push_back({kVariantTestsOnly, render_patch(parts.tests)});
  if (both) out.push_back({kVariantSourceOnly, render_patch(parts.source)});
  add(kVariantEarlyExit, early_exit(parts.source));
  for (Mutant& mutant : mutants_of(parts.source, settings.seed, settings.mutants))
    out.push_back({std::move(mutant.name), std::move(mutant.patch), std::move(mutant.what)});
  return out;
}
}  // namespace proctor
